//! Looks: plain reads of a word before an atomic operation of the same thread on that word which decides by itself: a compare-and-swap, a minimum, a maximum, an
//! and, an or. What a look reads only decides what is tried. So a look does not race with atomic writes. A read before an `atomicAdd` or an `atomicExch` is none:
//! what it read, such as the number of a ticket, is stale once another thread makes the operation.
//!
//! A place in the code is known as a look once a thread that read a word there makes an atomic operation on that word before the block's next barrier. Until
//! then, a race of such a read with an atomic write waits in the notebook. A spin that never makes an operation is not a look.
//!
//! The shadow remembers the last reads of a word, which shows most looks. Other threads may read the word in between (a warp votes before one lane
//! makes the operation); so the reads of places that are asked about are remembered here by thread. Pure: knows places and addresses.

use std::collections::HashMap;

use super::super::job::Job;

/// The bytes of the widest word.
pub(super) const WORD: usize = 8;
/// How many words of a thread are remembered between two barriers. Once a place is known as a look, its words are not.
const REMEMBERED: usize = 64;

/// A word that was read at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look {
    place: u32,
    address: usize,
    size: usize,
}

/// What a block knows about looks. Most blocks ask about none, and remember nothing.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    /// Places that are known: few, so that they are searched one by one.
    known: Vec<u32>,
    /// The number of barriers that the block had passed when `read` was begun.
    epoch: u32,
    /// The words that a thread read at places that are asked about.
    read: HashMap<u32, Vec<Look>>,
}

impl Looks {
    /// Another block begins.
    pub(super) fn begin(&mut self) {
        self.known.clear();
        self.read.clear();
        self.epoch = 0;
    }

    fn reach(&mut self, epoch: u32) {
        if epoch != self.epoch {
            self.epoch = epoch;
            self.read.clear();
        }
    }

    /// A word's read at this place races with an atomic write. `by` is the thread of this block that reads, and the word. Returns whether it is not known
    /// as a look.
    pub(super) fn asks(&mut self, place: u32, by: Option<(u32, usize, usize)>, epoch: u32) -> bool {
        if self.known.contains(&place) {
            return false;
        }
        self.reach(epoch);
        if let Some((thread, address, size)) = by {
            let (look, looks) = (Look { place, address, size }, self.read.entry(thread).or_default());
            if looks.len() < REMEMBERED && !looks.contains(&look) {
                looks.push(look);
            }
        }
        true
    }

    /// The thread makes an atomic operation on these bytes: the reads of the word were looks.
    pub(super) fn operated(&mut self, thread: u32, epoch: u32, (address, size): (usize, usize), job: &Job) {
        if self.read.is_empty() {
            return;
        }
        self.reach(epoch);
        let Some(looks) = self.read.get_mut(&thread) else { return };
        let on = |look: &Look| look.address < address + size && address < look.address + look.size;
        let found: Vec<u32> = looks.iter().filter(|look| on(look)).map(|look| look.place).collect();
        looks.retain(|look| !on(look));
        found.into_iter().for_each(|place| self.found(place, job));
    }

    /// A place is known as a look.
    pub(super) fn found(&mut self, place: u32, job: &Job) {
        if !self.known.contains(&place) {
            self.known.push(place);
            job.notebook.is_look(place);
        }
    }
}
