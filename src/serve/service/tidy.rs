//! What is done from time to time: tasks that are old are forgotten, the journal is written again, and the home's cache is collected.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::clock::Moment;
use super::journal::{Kept, Replacement};
use super::state::{FORMAT, Row, Snapshot};
use super::{Inner, Service};
use kforge_ops::cache;

/// The milliseconds for which each task is kept after it ended, however many there are: a client that polls must see its end.
pub(super) const YOUNG: i64 = 60_000;

/// So many bytes that were added are copied under the lock.
const FEW: u64 = 256 << 10;

/// How long no evaluation begins because the cache is to be collected, at most.
const PAUSE: Duration = Duration::from_secs(60);

/// The time between two attempts to collect the cache.
const COLLECT: Duration = Duration::from_secs(3600);

impl Service {
    /// Forgets what is older than the retention, and writes the journal again if most of it is not needed, or if some of it has not been for the retention.
    pub(super) fn tidy(&self) -> std::io::Result<()> {
        let retain = i64::try_from(self.config.retain.as_millis()).unwrap_or(i64::MAX);
        let is_old = self.rewritten.lock().unwrap_or_else(PoisonError::into_inner).elapsed() >= self.config.retain;
        let (rows, end) = {
            let found = self.change(|Inner { state, journal }| {
                let now = Moment::now().steady;
                state.forget(now.saturating_sub(retain), self.config.keep, now.saturating_sub(YOUNG));
                state.forget_unused();
                let is_new = journal.bytes() == 0;
                if is_new || !journal.works() {
                    // The second time it is a row without a meaning, to see whether rows can be written again.
                    journal.append(&Row::Format(FORMAT))?;
                    journal.sync();
                }
                let is_large = journal.bytes() >= (2 * state.live()).max(self.config.journal_bytes);
                let is_due = is_large || is_old && journal.bytes() > state.live();
                Ok::<_, std::io::Error>((!is_new && is_due).then(|| (state.rows(), journal.end())))
            })?;
            match found {
                Some(found) => found,
                None => return Ok(()),
            }
        };
        *self.rewritten.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        let rows = rows.iter().map(|row| match row {
            Snapshot::Row(row) => Kept::New(row),
            Snapshot::Copy(place) => Kept::Copy(place),
        });
        let mut new = Replacement::write(end, rows)?;
        // The lock is not held while this is copied.
        for _ in 0..10 {
            let end = self.lock().journal.end();
            if new.catch_up(&end)? < FEW {
                break;
            }
        }
        self.change(|Inner { state, journal }| {
            let moved = journal.replace(new)?;
            state.moved(&moved);
            Ok(())
        })
    }
}

/// Collects the home's cache. A build keeps it from being collected, so no evaluation begins until those that run have ended, at most [`PAUSE`].
#[derive(Debug)]
pub(super) struct Collection {
    /// Since when no evaluation begins.
    since: Option<Instant>,
    tried: Option<Instant>,
}

impl Collection {
    pub(super) fn new() -> Collection {
        Collection { since: None, tried: None }
    }

    /// Begins a pause if the cache is due.
    pub(super) fn look(&mut self, service: &Service) {
        let is_soon = self.tried.is_some_and(|tried| tried.elapsed() < COLLECT);
        if self.since.is_none() && !is_soon && cache::is_due(&service.session.again()) {
            self.since = Some(Instant::now());
            service.paused.store(true, Ordering::SeqCst);
        }
    }

    /// Collects if nothing runs, and ends the pause then, or after its time.
    pub(super) fn go_on(&mut self, service: &Service, running: usize) {
        let Some(since) = self.since else { return };
        if running > 0 && since.elapsed() < PAUSE {
            return;
        }
        if running == 0 {
            // A cache that cannot be collected is no fault of a task.
            drop(cache::collect_sometimes(&service.session.again()));
        }
        (self.since, self.tried) = (None, Some(Instant::now()));
        service.paused.store(false, Ordering::SeqCst);
        service.work.notify_all();
    }
}
