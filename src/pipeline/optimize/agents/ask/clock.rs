//! Time for asking. Knows the machine's clock; a test provides another one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Longest sleep between two checks for an interruption.
pub(super) const TICK: Duration = Duration::from_millis(20);

/// A clock.
pub trait Clock: Send + Sync {
    /// Time since a fixed moment in the past. It never goes back.
    fn now(&self) -> Duration;

    /// The time of day, as RFC 3339 in UTC.
    fn today(&self) -> String;

    /// Waits for this time, or until `interrupted` is set.
    fn wait(&self, time: Duration, interrupted: &AtomicBool);
}

/// The clock of this machine.
#[derive(Debug)]
pub struct SystemClock {
    began: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock { began: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn today(&self) -> String {
        let now = jiff::Timestamp::now();
        // Seconds are enough: nobody compares answers more finely.
        jiff::Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
    }

    fn wait(&self, time: Duration, interrupted: &AtomicBool) {
        let end = self.now() + time;
        while !interrupted.load(Ordering::Relaxed) {
            let left = end.saturating_sub(self.now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(TICK));
        }
    }
}
