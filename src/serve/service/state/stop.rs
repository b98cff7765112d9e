//! Stops an evaluation that runs, for a reason.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::time::Instant;

/// Why an evaluation is to be stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::service) enum StopReason {
    /// No task waits for it any more.
    Abandoned = 1,
    /// Its time is over.
    TimedOut = 2,
    /// The server ends.
    Drained = 3,
}

/// Stops an evaluation.
#[derive(Debug)]
pub(in crate::service) struct Stop {
    pub(in crate::service) began: Instant,
    pub(in crate::service) interrupted: Arc<AtomicBool>,
    reason: AtomicU8,
    /// The time limit in seconds that it exceeded, if it did.
    limit_s: AtomicU32,
}

impl Default for Stop {
    fn default() -> Self {
        Stop {
            began: Instant::now(),
            interrupted: Arc::default(),
            reason: AtomicU8::new(0),
            limit_s: AtomicU32::new(0),
        }
    }
}

impl Stop {
    /// Stops it. The first reason counts.
    pub(in crate::service) fn set(&self, reason: StopReason) {
        // If there is a reason already, the flag is set already.
        let _ = self.reason.compare_exchange(0, reason as u8, Ordering::SeqCst, Ordering::SeqCst);
        self.interrupted.store(true, Ordering::SeqCst);
    }

    /// Stops it because it took so many seconds.
    pub(in crate::service) fn time_out(&self, limit_s: u32) {
        self.limit_s.store(limit_s, Ordering::SeqCst);
        self.set(StopReason::TimedOut);
    }

    /// The limit in seconds that it exceeded.
    pub(in crate::service) fn limit_s(&self) -> u32 {
        self.limit_s.load(Ordering::SeqCst)
    }

    pub(in crate::service) fn reason(&self) -> Option<StopReason> {
        [StopReason::Abandoned, StopReason::TimedOut, StopReason::Drained]
            .into_iter()
            .find(|reason| *reason as u8 == self.reason.load(Ordering::SeqCst))
    }
}
