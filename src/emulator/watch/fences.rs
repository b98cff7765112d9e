//! What the fences of a block cover for other blocks, and which threads know of them. A thread that writes atomically after a fence hands over what the block did
//! before that fence: its own fence, that of a lane it has met in its warp since, or one that came before the block's last barrier. What the block did after the
//! fence is not handed over. That other threads of the block had not synchronized with the fence's thread when it passed is not noticed. Pure: counts fences.

/// The fences of device or system scope that a block has passed.
#[derive(Debug, Default)]
pub(super) struct Fences {
    passed: u32,
    /// The number of the last fence that all threads know.
    met: u32,
    /// The number of the last fence that each thread knows beyond that. Empty without fences.
    known: Vec<u32>,
}

impl Fences {
    /// Another block begins.
    pub(super) fn begin(&mut self) {
        self.passed = 0;
        self.met = 0;
        self.known.clear();
    }

    /// How many fences there were: accesses are recorded with it.
    pub(super) fn passed(&self) -> u32 {
        self.passed
    }

    /// A thread has passed a fence.
    pub(super) fn passes(&mut self, thread: u32) {
        self.passed += 1;
        self.learns(thread as usize, self.passed);
    }

    fn learns(&mut self, thread: usize, fence: u32) {
        if self.known.len() <= thread {
            self.known.resize(thread + 1, 0);
        }
        self.known[thread] = fence;
    }

    /// All threads have met.
    pub(super) fn all_met(&mut self) {
        self.met = self.met.max(self.known.iter().copied().max().unwrap_or(0));
    }

    /// Threads have met.
    pub(super) fn have_met(&mut self, threads: impl Iterator<Item = u32> + Clone) {
        let of = |thread: u32| self.known.get(thread as usize).copied().unwrap_or(0);
        let most = threads.clone().map(of).max().unwrap_or(0);
        if most > self.met {
            threads.for_each(|thread| self.learns(thread as usize, most));
        }
    }

    /// The fence before which what the block did is handed over by an atomic write of a thread; none without a fence. `told`: another thread of the block has
    /// handed over to this one since the last barrier, and may have told it of any fence.
    pub(super) fn covers(&self, thread: u32, told: bool) -> Option<u32> {
        let known = self.known.get(thread as usize).copied().unwrap_or(0);
        let fence = if told { self.passed } else { known.max(self.met) };
        (fence > 0).then_some(fence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_known_to_its_thread_and_to_those_that_have_met_it_since() {
        let mut f = Fences::default();
        assert_eq!((f.covers(3, false), f.covers(3, true)), (None, None));
        f.passes(3);
        assert_eq!((f.covers(3, false), f.covers(4, false), f.covers(4, true)), (Some(1), None, Some(1)));
        f.have_met([3, 4].into_iter());
        f.passes(3);
        assert_eq!((f.covers(3, false), f.covers(4, false), f.covers(40, false)), (Some(2), Some(1), None));
        f.all_met();
        assert_eq!((f.covers(4, false), f.covers(40, false)), (Some(2), Some(2)));
        f.begin();
        assert_eq!((f.passed(), f.covers(3, true)), (0, None));
    }
}
