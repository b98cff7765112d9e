//! The time of the system, for tasks and their retention.

use std::sync::LazyLock;
use std::time::{Instant, SystemTime};

/// When this process first asked for the time: by the system's clock, and by one that nobody sets.
static START: LazyLock<(i64, Instant)> = LazyLock::new(|| (now(), Instant::now()));

/// A time by two clocks, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    /// By the system's clock, for people and for the journal.
    pub(super) wall: i64,
    /// By a clock that nobody sets while the process runs, for ages: if the system's clock is set, no task is forgotten early or kept for years.
    pub(super) steady: i64,
}

impl Moment {
    /// Now.
    pub(super) fn now() -> Moment {
        let (wall, began) = *START;
        let since = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
        Moment { wall: now(), steady: wall.saturating_add(since) }
    }

    /// The time of a row that was read. A time after the start of this process counts as its start.
    pub(super) fn of_row(wall: i64) -> Moment {
        Moment { wall, steady: wall.min(START.0) }
    }
}

/// The milliseconds since 1970.
pub(super) fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Milliseconds since 1970 as RFC 3339.
pub(super) fn text(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms)
        .map(|at| at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_the_future_ages_from_the_start_of_the_process() {
        let year = 365 * 24 * 3_600_000;
        let now = Moment::now();
        assert!(now.steady <= Moment::now().steady && now.wall.abs_diff(now.steady) < 60_000);
        let (future, past) = (Moment::of_row(now.wall + year), Moment::of_row(now.wall - year));
        assert_eq!((future.wall, past.wall), (now.wall + year, now.wall - year));
        assert!(future.steady <= now.steady);
        assert_eq!(past.steady, past.wall);
    }
}
