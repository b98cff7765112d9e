//! Remembers accesses to a few bytes, and decides whether two accesses race. Pure: knows epochs, clocks and byte ranges, not addresses or names.
//!
//! Two accesses are ordered if
//! * one thread makes both,
//! * a barrier of their block is between them (epochs),
//! * lanes of one warp synchronized between them (a clock for each lane, and what each lane knows of the others' clocks),
//! * a launch or grid barrier is between them (phases),
//! * one thread handed over to the other, of the same block, by fence and atomic (the same clocks), or
//! * their blocks did (releases, and what a block knows of them).
//!
//! All other accesses race if they overlap, at least one of them writes, and not both are atomic.
//!
//! Two stores to the same bytes are a special case, because the values decide ([`Race::Stores`]), which are not known here. If lanes of one warp make both in one
//! instruction, equal values are no race: CUDA defines that one of the stores is performed. *One instruction* means the same place in the code, and no
//! synchronization of either lane since. The cell then remembers all lanes of the store: what follows must be ordered after each of them.

use std::collections::HashMap;

/// An access by one thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Record {
    /// The launch and the stretch between grid barriers; for shared memory, the run of the block. Zero for no access.
    pub(super) phase: u32,
    pub(super) block: u32,
    pub(super) thread: u32,
    /// Number of barriers that the block had passed.
    pub(super) epoch: u32,
    /// The lane's clock.
    pub(super) clock: u32,
    /// Number of hand-overs that the block had made.
    pub(super) release: u32,
    pub(super) pc: u32,
    /// First byte in the granule.
    pub(super) from: u8,
    pub(super) bytes: u8,
    pub(super) atomic: bool,
    /// Whether it is a plain aligned read of a word, which may be a look before an atomic operation (`watch::looks`).
    pub(super) look: bool,
    /// The number of meetings of its warp (`watch::meetings`).
    pub(super) meetings: u32,
}

/// The last write and two of the last reads of a granule: of two readers, at least one is not the next writer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cell {
    write: Record,
    /// The lanes that made the last write in one instruction, all at the clock of the record; none if only its thread did.
    with: u32,
    reads: [Record; 2],
}

/// A race of a new access with an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Race {
    /// The new access writes what the earlier one read, and perhaps another one.
    Read(Record, Option<Record>),
    /// The earlier access is a write.
    Write(Record),
    /// Both are stores to the same bytes, and their values decide.
    Stores {
        /// The earlier store.
        old: Record,
        /// Whether lanes of one warp make both stores in one instruction: equal values are then no race.
        together: bool,
    },
}

/// What the running thread knows about others.
pub(super) struct Knowledge<'a> {
    /// The clocks of its block.
    pub(super) clocks: &'a Clocks,
    /// Clocks of the lanes of its warp, as far as the thread has synchronized with them.
    pub(super) lanes: &'a [u32; 32],
    /// Clocks of the threads of its block, as far as the thread has taken them over by atomic accesses since the last barrier.
    pub(super) threads: Option<&'a [u32]>,
    /// Releases of other blocks, as far as the thread's block has acquired them.
    pub(super) blocks: &'a HashMap<u32, u32>,
}

fn ordered(old: &Record, new: &Record, knows: &Knowledge<'_>) -> bool {
    if old.phase != new.phase {
        return true;
    }
    if old.block != new.block {
        return knows.blocks.get(&old.block).is_some_and(|seen| old.release < *seen);
    }
    old.thread == new.thread
        || old.epoch < new.epoch
        || (old.thread / 32 == new.thread / 32 && knows.lanes[old.thread as usize % 32] >= old.clock)
        || knows.threads.is_some_and(|taken| taken.get(old.thread as usize).is_some_and(|seen| *seen >= old.clock))
}

fn conflicts(old: &Record, new: &Record, knows: &Knowledge<'_>) -> bool {
    overlap(old, new) && !ordered(old, new, knows)
}

/// Whether two accesses conflict unless something orders them, given that one of them writes.
fn overlap(old: &Record, new: &Record) -> bool {
    old.phase != 0 && !(old.atomic && new.atomic) && old.from < new.from + new.bytes && new.from < old.from + old.bytes
}

/// Whether lanes of one warp make two stores in one instruction: at one place, and neither lane has synchronized since its warp's lanes were last at one clock.
fn together(old: &Record, new: &Record, clocks: &Clocks) -> bool {
    let own = |thread: u32| clocks.of(thread as usize)[thread as usize % 32];
    (old.phase, old.block, old.epoch, old.thread / 32) == (new.phase, new.block, new.epoch, new.thread / 32)
        && old.pc == new.pc
        && old.clock == new.clock
        && own(old.thread) == old.clock
}

/// Whether lanes of one warp make two accesses.
pub(super) fn same_warp(one: &Record, other: &Record) -> bool {
    (one.block, one.thread / 32) == (other.block, other.thread / 32)
}

impl Cell {
    /// The records for part number `part`, if the cell is split into parts of `bytes` bytes each.
    pub(super) fn part(&self, part: u8, bytes: u8) -> Cell {
        let clip = |r: &Record| {
            let from = r.from.max(part * bytes);
            let to = (r.from + r.bytes).min((part + 1) * bytes);
            if from < to { Record { from: from - part * bytes, bytes: to - from, ..*r } } else { Record::default() }
        };
        Cell { write: clip(&self.write), with: self.with, reads: self.reads.map(|r| clip(&r)) }
    }

    /// The write that conflicts with `new`: the last one, by whichever of its lanes `new` is not ordered after.
    fn conflicting_write(&self, new: &Record, knows: &Knowledge<'_>) -> Option<Record> {
        if self.with == 0 {
            return conflicts(&self.write, new, knows).then_some(self.write);
        }
        let by = |lane: usize| Record { thread: self.write.thread / 32 * 32 + lane as u32, ..self.write };
        // The last of them first: it is the one that other messages name.
        let lanes = std::iter::once(self.write.thread as usize % 32).chain(super::warp::lanes(self.with));
        overlap(&self.write, new).then(|| lanes.map(by).find(|old| !ordered(old, new, knows))).flatten()
    }

    /// The reads of words that the warp of `new` made here since its block's last barrier.
    pub(super) fn looks(&self, new: &Record) -> impl Iterator<Item = Record> {
        let of = |r: &Record| (r.phase, r.block, r.thread / 32, r.epoch);
        let (own, new) = (of(new), *new);
        self.reads.into_iter().filter(move |r| r.look && of(r) == own && overlap(r, &new))
    }

    /// The last write of these bytes, if it was in this phase or a later one.
    pub(super) fn written_since(&self, phase: u32, new: &Record) -> Option<Record> {
        // Two atomic accesses do not conflict, but they do overlap.
        let plain = Record { atomic: false, ..*new };
        Some(self.write).filter(|write| write.phase >= phase && overlap(write, &plain))
    }

    /// Records a write. Returns the access that it races with.
    pub(super) fn write(&mut self, new: Record, knows: &Knowledge<'_>) -> Option<Race> {
        let read = || {
            let mut reads = self.reads.iter().filter(|r| conflicts(r, &new, knows)).copied();
            let (first, other) = (reads.next()?, reads.next());
            // A reader of another warp shows more than one of the writer's own.
            match other {
                Some(other) if same_warp(&first, &new) => Some(Race::Read(other, Some(first))),
                other => Some(Race::Read(first, other)),
            }
        };
        let mut with = 0;
        let race = match self.conflicting_write(&new, knows) {
            None => read(),
            Some(old) if old.atomic || new.atomic || (old.from, old.bytes) != (new.from, new.bytes) => {
                Some(Race::Write(old))
            }
            Some(old) => {
                let together = together(&self.write, &new, knows.clocks)
                    && super::warp::lanes(self.with).all(|lane| {
                        let thread = (self.write.thread / 32 * 32) as usize + lane;
                        knows.clocks.of(thread)[lane] == self.write.clock
                    });
                if together {
                    with = self.with | 1 << (old.thread % 32) | 1 << (self.write.thread % 32) | 1 << (new.thread % 32);
                }
                match read().filter(|_| together) {
                    Some(read) => Some(read),
                    None => Some(Race::Stores { old, together }),
                }
            }
        };
        (self.write, self.with) = (new, with);
        race
    }

    /// Records a read. Returns the write that it races with.
    pub(super) fn read(&mut self, new: Record, knows: &Knowledge<'_>) -> Option<Record> {
        let race = self.conflicting_write(&new, knows);
        // An earlier read that is ordered before this one need not be kept: what is ordered after this read is also ordered after the earlier one.
        let gone = |r: &Record| {
            r.phase == 0 || (ordered(r, &new, knows) && r.from >= new.from && r.from + r.bytes <= new.from + new.bytes)
        };
        if gone(&self.reads[0]) {
            self.reads[0] = new;
        } else if gone(&self.reads[1]) {
            self.reads[1] = new;
        } else {
            self.reads = [new, self.reads[0]];
        }
        race
    }
}

/// Clocks of a block's lanes: for each thread, what it knows about its warp.
#[derive(Debug, Clone)]
pub(super) struct Clocks {
    known: Vec<[u32; 32]>,
    /// Whether lanes of one warp may be at different clocks.
    uneven: bool,
}

impl Clocks {
    /// For `threads` threads that know nothing about each other; each thread's own clock starts at one.
    pub(super) fn new(threads: usize) -> Self {
        let own = |t: usize| {
            let mut own = [0; 32];
            own[t % 32] = 1;
            own
        };
        Clocks { known: (0..threads).map(own).collect(), uneven: false }
    }

    /// What `thread` knows, including its own clock.
    pub(super) fn of(&self, thread: usize) -> &[u32; 32] {
        &self.known[thread]
    }

    /// `thread` begins another stretch: its own clock advances.
    pub(super) fn advance(&mut self, thread: usize) {
        self.known[thread][thread % 32] += 1;
        self.uneven = true;
    }

    /// The number of threads.
    pub(super) fn of_threads(&self) -> usize {
        self.known.len()
    }

    /// The block has passed a barrier: the lanes of a warp are at one clock again. A clock may always advance: what is known of the lane is then only older.
    pub(super) fn level(&mut self) {
        if !std::mem::take(&mut self.uneven) {
            return;
        }
        for warp in self.known.chunks_mut(32) {
            let most = warp.iter().enumerate().map(|(lane, known)| known[lane]).max().unwrap_or(0);
            warp.iter_mut().enumerate().for_each(|(lane, known)| known[lane] = most);
        }
    }

    /// The lanes of `mask` in a warp have synchronized: each now knows what any of them knew, and all are at one clock.
    pub(super) fn join(&mut self, warp: usize, mask: u32) {
        let mut all = [0u32; 32];
        self.uneven |= mask != u32::MAX;
        for lane in super::warp::lanes(mask) {
            if let Some(known) = self.known.get(warp * 32 + lane) {
                for (a, k) in all.iter_mut().zip(known) {
                    *a = (*a).max(*k);
                }
            }
        }
        let next = super::warp::lanes(mask).map(|lane| all[lane]).max().unwrap_or(0) + 1;
        for lane in super::warp::lanes(mask) {
            if let Some(known) = self.known.get_mut(warp * 32 + lane) {
                *known = all;
                known[lane] = next;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(block: u32, thread: u32, epoch: u32, clocks: &Clocks) -> Record {
        let clock = clocks.of(thread as usize)[thread as usize % 32];
        Record { phase: 1, block, thread, epoch, clock, bytes: 4, ..Record::default() }
    }

    fn race(clocks: &Clocks, old: Record, new: Record) -> bool {
        let none = HashMap::new();
        let mut cell = Cell::default();
        cell.write(old, &Knowledge { clocks, lanes: clocks.of(old.thread as usize), threads: None, blocks: &none });
        cell.write(new, &Knowledge { clocks, lanes: clocks.of(new.thread as usize), threads: None, blocks: &none })
            .is_some()
    }

    #[test]
    fn a_barrier_orders_and_nothing_else_does() {
        let c = Clocks::new(64);
        assert!(race(&c, at(0, 1, 0, &c), at(0, 2, 0, &c)));
        assert!(!race(&c, at(0, 1, 0, &c), at(0, 2, 1, &c)));
        assert!(!race(&c, at(0, 1, 0, &c), at(0, 1, 0, &c)));
        assert!(race(&c, at(0, 1, 0, &c), at(1, 1, 5, &c)));
        let mut other = at(0, 2, 0, &c);
        other.phase = 2;
        assert!(!race(&c, at(1, 1, 0, &c), other));
    }

    #[test]
    fn lanes_that_synchronised_are_ordered_and_others_are_not() {
        let mut c = Clocks::new(64);
        let before = at(0, 1, 0, &c);
        c.join(0, 0b0110);
        assert!(!race(&c, before, at(0, 2, 0, &c)));
        assert!(race(&c, before, at(0, 3, 0, &c)));
        assert!(race(&c, at(0, 1, 0, &c), at(0, 2, 0, &c)), "after the synchronisation nothing orders them");
        // By way of a third lane.
        c.join(0, 0b1100);
        assert!(!race(&c, before, at(0, 3, 0, &c)));
        assert!(race(&c, before, at(0, 33, 0, &c)), "another warp");
    }

    #[test]
    fn atomics_race_with_plain_accesses_only() {
        let c = Clocks::new(64);
        let atomic = |t| Record { atomic: true, ..at(0, t, 0, &c) };
        assert!(!race(&c, atomic(1), atomic(2)));
        assert!(race(&c, atomic(1), at(0, 2, 0, &c)));
    }

    #[test]
    fn parts_of_a_granule_are_kept_apart() {
        let c = Clocks::new(64);
        let part = |t, from| Record { from, bytes: 2, ..at(0, t, 0, &c) };
        assert!(!race(&c, part(1, 0), part(2, 2)));
        assert!(race(&c, part(1, 2), part(2, 2)));
    }

    #[test]
    fn a_finer_cell_remembers_its_part() {
        let c = Clocks::new(64);
        let none = HashMap::new();
        let mut whole = Cell::default();
        whole.write(
            Record { from: 0, bytes: 3, ..at(0, 1, 0, &c) },
            &Knowledge { clocks: &c, lanes: c.of(1), threads: None, blocks: &none },
        );
        for (part, races) in [(0, true), (1, true)] {
            let mut cell = whole.part(part, 2);
            let new = Record { from: 0, bytes: 1, ..at(0, 2, 0, &c) };
            assert_eq!(
                cell.read(new, &Knowledge { clocks: &c, lanes: c.of(2), threads: None, blocks: &none }).is_some(),
                races
            );
        }
        let mut cell = whole.part(1, 2);
        let new = Record { from: 1, bytes: 1, ..at(0, 2, 0, &c) };
        assert!(cell.read(new, &Knowledge { clocks: &c, lanes: c.of(2), threads: None, blocks: &none }).is_none());
    }

    #[test]
    fn a_write_after_reads_of_others_is_a_race_even_if_it_read_itself() {
        let c = Clocks::new(64);
        let none = HashMap::new();
        let mut cell = Cell::default();
        for reader in [5, 7, 3] {
            assert!(
                cell.read(
                    at(0, reader, 0, &c),
                    &Knowledge { clocks: &c, lanes: c.of(reader as usize), threads: None, blocks: &none }
                )
                .is_none()
            );
        }
        assert!(
            cell.write(at(0, 3, 0, &c), &Knowledge { clocks: &c, lanes: c.of(3), threads: None, blocks: &none })
                .is_some()
        );
    }

    #[test]
    fn a_reader_of_another_warp_is_named_before_one_of_the_writer_s_own() {
        let c = Clocks::new(128);
        let none = HashMap::new();
        let by = |thread: u32| (at(0, thread, 0, &c), c.of(thread as usize));
        for readers in [[1, 40], [40, 1]] {
            for writer in [5, 50] {
                let mut cell = Cell::default();
                for reader in readers {
                    let (new, lanes) = by(reader);
                    cell.read(new, &Knowledge { clocks: &c, lanes, threads: None, blocks: &none });
                }
                let (new, lanes) = by(writer);
                let race = cell.write(new, &Knowledge { clocks: &c, lanes, threads: None, blocks: &none });
                let Some(Race::Read(old, Some(_))) = race else { panic!("{race:?}") };
                assert_ne!(old.thread / 32, writer / 32, "{readers:?} {writer}");
            }
        }
    }

    #[test]
    fn a_reader_is_known_although_the_next_writer_of_its_warp_reads_after_it() {
        let c = Clocks::new(64);
        let none = HashMap::new();
        let by = |thread: u32| (at(0, thread, 0, &c), c.of(thread as usize));
        let mut cell = Cell::default();
        for reader in [1, 2] {
            let (new, lanes) = by(reader);
            cell.read(new, &Knowledge { clocks: &c, lanes, threads: None, blocks: &none });
        }
        let (new, lanes) = by(2);
        let race = cell.write(new, &Knowledge { clocks: &c, lanes, threads: None, blocks: &none });
        assert!(matches!(race, Some(Race::Read(old, _)) if old.thread == 1), "{race:?}");
    }

    #[test]
    fn a_block_that_acquired_a_release_is_ordered_after_what_came_before_it() {
        let c = Clocks::new(64);
        let old = at(4, 0, 9, &c);
        let new = at(5, 0, 0, &c);
        let knows = HashMap::from([(4, 1)]);
        let mut cell = Cell::default();
        cell.write(old, &Knowledge { clocks: &c, lanes: c.of(0), threads: None, blocks: &knows });
        assert!(cell.read(new, &Knowledge { clocks: &c, lanes: c.of(0), threads: None, blocks: &knows }).is_none());
        cell.write(
            Record { release: 1, ..old },
            &Knowledge { clocks: &c, lanes: c.of(0), threads: None, blocks: &knows },
        );
        assert!(cell.read(new, &Knowledge { clocks: &c, lanes: c.of(0), threads: None, blocks: &knows }).is_some());
    }
}
