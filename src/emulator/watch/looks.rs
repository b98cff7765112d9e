//! Looks: plain reads of a word before an atomic operation on that word which decides by itself: a compare-and-swap, a minimum, a maximum, an and, an or. What a
//! look reads only decides what is tried. So a look does not race with atomic writes. A read before an `atomicAdd` or an `atomicExch` is none: what it read, such
//! as the number of a ticket, is stale once another thread makes the operation.
//!
//! A place in the code is known as a look once a thread that read a word there makes an atomic operation on that word before the block's next barrier. The
//! operation may also be made by another lane of the warp that has met the reader in a warp operation since ([`Meetings`]): all lanes look and vote, and one of
//! them operates; or one lane looks and shuffles what it saw to those that operate. Until a place is known, a race of such a read with an atomic write waits in
//! the notebook. A spin that never makes an operation is not a look.
//!
//! The shadow remembers the last reads of a word, which shows most looks. Others may read the word in between; so two kinds of reads are remembered here: those
//! of places that are asked about, by thread, and the last words that each warp read at its last places. Pure: knows places and addresses.

use std::collections::HashMap;

use super::super::job::Job;
use super::super::shadow::Record;
use super::meetings::Meetings;

/// The bytes of the widest word.
pub(super) const WORD: usize = 8;
/// How many words of a thread are remembered between two barriers. Once a place is known as a look, its words are not.
const REMEMBERED: usize = 64;
/// How many places of a warp are remembered, and how many words of each.
const PLACES: usize = 8;
const WORDS: usize = 2;
/// Threads of a warp.
const WARP: u32 = 32;

/// A word that a thread read at a place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) place: u32,
    pub(super) thread: u32,
    pub(super) address: usize,
    pub(super) size: usize,
    /// The meetings of the thread's warp at the time of the read.
    pub(super) meetings: u32,
}

impl Look {
    fn on(&self, (address, size): (usize, usize)) -> bool {
        self.address < address + size && address < self.address + self.size
    }
}

/// The last words that a warp read at a place. Sizes are zero where there are none.
#[derive(Debug, Clone, Copy, Default)]
struct LastWords {
    place: u32,
    words: [Look; WORDS],
}

/// What a warp read last, since a barrier.
#[derive(Debug, Clone, Copy, Default)]
struct LastReads {
    epoch: u32,
    places: [LastWords; PLACES],
    /// Where the next new place goes.
    next: usize,
}

impl LastReads {
    fn read(&mut self, look: Look, epoch: u32) {
        if epoch != self.epoch {
            *self = LastReads { epoch, ..LastReads::default() };
        }
        let at = match self.places.iter().position(|p| p.place == look.place && p.words[0].size != 0) {
            Some(at) => at,
            None => {
                let at = self.next;
                self.next = (at + 1) % PLACES;
                self.places[at] = LastWords { place: look.place, ..LastWords::default() };
                at
            }
        };
        let words = &mut self.places[at].words;
        // Lanes that read the same word between two meetings take one room.
        if (words[0].address, words[0].size, words[0].meetings) != (look.address, look.size, look.meetings) {
            words.rotate_right(1);
        }
        words[0] = look;
    }

    fn on(&self, word: (usize, usize), epoch: u32) -> impl Iterator<Item = &Look> {
        let places = if epoch == self.epoch { &self.places[..] } else { &[] };
        places.iter().flat_map(|p| &p.words).filter(move |look| look.on(word))
    }
}

/// What a block knows about looks.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    /// Places that are known: few, so that they are searched one by one.
    known: Vec<u32>,
    /// The number of barriers that the block had passed when `asked` was begun.
    epoch: u32,
    /// The words that a thread read at places that are asked about. Most blocks ask about none.
    asked: HashMap<u32, Vec<Look>>,
    /// By warp.
    last: Vec<LastReads>,
    meetings: Vec<Meetings>,
}

impl Looks {
    /// For blocks of `threads` threads.
    pub(super) fn new(threads: usize) -> Self {
        let warps = threads.div_ceil(WARP as usize);
        Looks {
            last: vec![LastReads::default(); warps],
            meetings: vec![Meetings::default(); warps],
            ..Looks::default()
        }
    }

    /// Another block begins.
    pub(super) fn begin(&mut self) {
        self.known.clear();
        self.asked.clear();
        self.epoch = 0;
        self.last.fill(LastReads::default());
        self.meetings.fill(Meetings::default());
    }

    fn reach(&mut self, epoch: u32) {
        if epoch != self.epoch {
            self.epoch = epoch;
            self.asked.clear();
        }
    }

    /// Lanes of a warp have met in a warp operation.
    pub(super) fn met(&mut self, warp: usize, mask: u32) {
        self.meetings[warp].met(mask);
    }

    /// The number of meetings of a thread's warp.
    pub(super) fn meetings(&self, thread: u32) -> u32 {
        self.meetings[(thread / WARP) as usize].count()
    }

    /// Whether an operation of `thread` may settle what `reader` read after that number of meetings: a thread of the same warp that has met it since, or itself.
    fn settles(meetings: &[Meetings], thread: u32, (reader, count): (u32, u32)) -> bool {
        let warp = &meetings[(thread / WARP) as usize];
        thread / WARP == reader / WARP && warp.have_met(count, reader % WARP, thread % WARP)
    }

    /// The thread reads a word at once.
    pub(super) fn read(&mut self, look: Look, epoch: u32) {
        if !self.known.contains(&look.place) {
            self.last[(look.thread / WARP) as usize].read(look, epoch);
        }
    }

    /// A word's read at this place races with an atomic write. `by` is the read if it is one of this block. Returns whether the place is not known as a look.
    pub(super) fn asks(&mut self, place: u32, by: Option<Look>, epoch: u32) -> bool {
        if self.known.contains(&place) {
            return false;
        }
        self.reach(epoch);
        if let Some(look) = by {
            let looks = self.asked.entry(look.thread).or_default();
            let word = |l: &Look| (l.place, l.address, l.size);
            if looks.len() < REMEMBERED && !looks.iter().any(|l| word(l) == word(&look)) {
                looks.push(look);
            }
        }
        true
    }

    /// The thread makes an atomic operation on these bytes: the reads of the word were looks, those by itself and those by lanes that it has met since.
    pub(super) fn operated(&mut self, thread: u32, epoch: u32, word: (usize, usize), job: &Job) {
        let meetings = &self.meetings;
        let settled = |look: &Look| look.on(word) && Self::settles(meetings, thread, (look.thread, look.meetings));
        let last = self.last[(thread / WARP) as usize].on(word, epoch);
        let mut found: Vec<u32> = last.filter(|look| settled(look)).map(|look| look.place).collect();
        if !self.asked.is_empty() && epoch == self.epoch {
            let first = thread / WARP * WARP;
            for reader in first..first + WARP {
                let Some(looks) = self.asked.get_mut(&reader) else { continue };
                found.extend(looks.extract_if(.., |look| settled(look)).map(|look| look.place));
            }
        }
        found.into_iter().for_each(|place| self.found(place, job));
    }

    /// The thread of `new` makes an atomic operation: those of the reads of its bytes that were looks.
    pub(super) fn shown(&mut self, reads: impl Iterator<Item = Record>, new: &Record, job: &Job) {
        for read in reads {
            if Self::settles(&self.meetings, new.thread, (read.thread, read.meetings)) {
                self.found(read.pc, job);
            }
        }
    }

    /// A place is known as a look.
    fn found(&mut self, place: u32, job: &Job) {
        if !self.known.contains(&place) {
            self.known.push(place);
            job.notebook.is_look(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warp_remembers_its_last_words_at_its_last_places() {
        let mut last = LastReads::default();
        let at = |place, address| Look { place, address, size: 4, ..Look::default() };
        let places = |last: &LastReads, epoch| last.on((0x100, 4), epoch).map(|l| l.place).collect::<Vec<_>>();
        last.read(at(1, 0x100), 0);
        (0..32).for_each(|lane| last.read(at(2, 0x200 + 4 * lane), 0));
        assert_eq!(places(&last, 0), [1], "other places take other rooms");
        assert!(places(&last, 1).is_empty(), "a barrier ends it");
        (0..2).for_each(|lane| last.read(at(1, 0x300 + 4 * lane), 0));
        assert!(places(&last, 0).is_empty(), "newer words of the place");
        last.read(at(3, 0x102), 1);
        assert_eq!(places(&last, 1), [3], "bytes overlap");
    }
}
