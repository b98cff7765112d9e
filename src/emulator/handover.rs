//! What threads of one block hand over to each other by fence and atomic access, between two barriers. Pure: knows clocks and addresses, but not accesses.
//!
//! A fence records what its thread has done and knows. The thread's next atomic writes leave that record at their addresses. A thread
//! that reads or writes such an address atomically takes the record over. CUDA promises less if the reading thread has no fence; the
//! emulator does not require one, so that it reports no false race.

use std::collections::HashMap;

use super::shadow::Clocks;

/// See the module. Each vector holds a clock for each thread of the block.
#[derive(Debug, Default)]
pub(super) struct Handover {
    /// Number of barriers passed. Records are kept only since the last barrier, because a barrier orders everything before it.
    epoch: u32,
    taken: HashMap<u32, Vec<u32>>,
    fenced: HashMap<u32, Vec<u32>>,
    left: HashMap<usize, Vec<u32>>,
    /// The address of each thread's last atomic access: another thread may have left a record there before the access itself happened.
    last: HashMap<u32, usize>,
}

fn join(to: &mut Vec<u32>, from: &[u32]) {
    to.resize(to.len().max(from.len()), 0);
    to.iter_mut().zip(from).for_each(|(t, f)| *t = (*t).max(*f));
}

impl Handover {
    /// Another block begins.
    pub(super) fn begin(&mut self) {
        *self = Handover::default();
    }

    fn reach(&mut self, epoch: u32) {
        if epoch != self.epoch {
            *self = Handover { epoch, ..Handover::default() };
        }
    }

    /// `thread` has passed a fence: the fence covers what the thread did and knows so far, but not what it does from now on.
    pub(super) fn fence(&mut self, thread: u32, epoch: u32, clocks: &mut Clocks) {
        self.reach(epoch);
        self.settle(thread, epoch);
        let mut covered = self.taken.get(&thread).cloned().unwrap_or_default();
        covered.resize(clocks.of_threads(), 0);
        let first = thread as usize / 32 * 32;
        for (known, own) in covered[first..].iter_mut().zip(clocks.of(thread as usize)) {
            *known = (*known).max(*own);
        }
        clocks.advance(thread as usize);
        self.fenced.insert(thread, covered);
    }

    /// `thread` makes an atomic access at `address`; `writes` says whether it writes or only reads.
    pub(super) fn atomic(&mut self, thread: u32, epoch: u32, address: usize, writes: bool) {
        self.reach(epoch);
        self.take(thread, address);
        self.last.insert(thread, address);
        if writes && let Some(covered) = self.fenced.get(&thread) {
            join(self.left.entry(address).or_default(), covered);
        }
    }

    /// `thread` makes another access or fence: it takes over what was left meanwhile at the address of its last atomic access.
    pub(super) fn settle(&mut self, thread: u32, epoch: u32) {
        // Every access comes here, and most kernels hand nothing over.
        if !self.last.is_empty()
            && epoch == self.epoch
            && let Some(address) = self.last.remove(&thread)
        {
            self.take(thread, address);
        }
    }

    /// What `thread` has taken over, if anything.
    pub(super) fn taken(&self, thread: u32, epoch: u32) -> Option<&[u32]> {
        if !self.taken.is_empty() && epoch == self.epoch { self.taken.get(&thread).map(Vec::as_slice) } else { None }
    }

    fn take(&mut self, thread: u32, address: usize) {
        if let Some(left) = self.left.get(&address) {
            join(self.taken.entry(thread).or_default(), left);
        }
    }

    /// The threads have synchronized with each other: each knows what any of them had taken over.
    pub(super) fn together(&mut self, threads: impl Iterator<Item = u32> + Clone) {
        if self.taken.is_empty() && self.last.is_empty() {
            return;
        }
        let mut all = Vec::new();
        for thread in threads.clone() {
            self.settle(thread, self.epoch);
            if let Some(taken) = self.taken(thread, self.epoch) {
                join(&mut all, taken);
            }
        }
        if !all.is_empty() {
            for thread in threads {
                self.taken.insert(thread, all.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether thread `b` knows what `a` did at its clock `at`.
    fn knows(h: &mut Handover, b: u32, a: usize, at: u32) -> bool {
        h.settle(b, 0);
        h.taken(b, 0).is_some_and(|t| t[a] >= at)
    }

    #[test]
    fn what_came_before_a_fence_is_handed_over_and_what_came_after_is_not() {
        let mut clocks = Clocks::new(64);
        let mut h = Handover::default();
        let before = clocks.of(3)[3];
        h.fence(3, 0, &mut clocks);
        let after = clocks.of(3)[3];
        assert!(after > before);
        h.atomic(3, 0, 0x100, true);
        h.atomic(40, 0, 0x100, false);
        assert!(knows(&mut h, 40, 3, before) && !knows(&mut h, 40, 3, after));
        assert!(!knows(&mut h, 41, 3, before), "who did not look was told nothing");
    }

    #[test]
    fn without_a_fence_nothing_is_handed_over() {
        let mut h = Handover::default();
        h.atomic(3, 0, 0x100, true);
        h.atomic(40, 0, 0x100, false);
        assert!(h.taken(40, 0).is_none());
    }

    #[test]
    fn what_was_taken_over_is_handed_on() {
        let mut clocks = Clocks::new(96);
        let mut h = Handover::default();
        h.fence(3, 0, &mut clocks);
        h.atomic(3, 0, 0x100, true);
        h.atomic(40, 0, 0x100, false);
        h.fence(40, 0, &mut clocks);
        h.atomic(40, 0, 0x200, true);
        h.atomic(70, 0, 0x200, true);
        assert!(knows(&mut h, 70, 3, 1) && knows(&mut h, 70, 40, 1));
        h.together([70, 71].into_iter());
        assert!(knows(&mut h, 71, 3, 1));
    }

    #[test]
    fn what_is_left_between_asking_and_reading_is_taken_too() {
        let mut clocks = Clocks::new(64);
        let mut h = Handover::default();
        h.atomic(40, 0, 0x100, false);
        h.fence(3, 0, &mut clocks);
        h.atomic(3, 0, 0x100, true);
        assert!(knows(&mut h, 40, 3, 1));
        assert!(h.taken(40, 1).is_none(), "a barrier orders by itself");
    }
}
