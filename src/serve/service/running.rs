//! The threads of the service: those that evaluate, and one that watches time and tidies.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::clock::Moment;
use super::evaluate::Evaluated;
use super::state::{Begun, Row, StopReason};
use super::summary::Summary;
use super::{Inner, Service};
use crate::api::Cause;
use kforge_ops::cache;

/// How often the time of evaluations is looked at.
const TICK: Duration = Duration::from_millis(50);

/// How often the state is tidied.
const TIDY: Duration = Duration::from_secs(10);

/// How long to wait before a result is written again that could not be stored.
const AGAIN: Duration = Duration::from_secs(1);

/// A journal below this size is not written again.
pub(super) const LEAST_TO_REWRITE: u64 = 64 << 20;

impl Service {
    /// Starts the threads: so many evaluate, each in a folder of its own below `work`.
    pub(super) fn start_threads(self: &Arc<Self>, evaluations: u32, work: &Path) -> std::io::Result<()> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for number in 0..evaluations {
            let (service, folder) = (self.clone(), work.join(number.to_string()));
            let name = format!("evaluation-{number}");
            threads.push(std::thread::Builder::new().name(name).spawn(move || {
                while let Some(begun) = service.next() {
                    service.run(begun, &folder);
                }
            })?);
        }
        let service = self.clone();
        threads.push(std::thread::Builder::new().name("clock".into()).spawn(move || service.watch())?);
        Ok(())
    }

    /// The next evaluation, once there is one; none when the service ends.
    fn next(&self) -> Option<Begun> {
        let mut inner = self.lock();
        loop {
            if self.draining.load(Ordering::SeqCst) || self.ended.load(Ordering::SeqCst) {
                return None;
            }
            if let Some(begun) = inner.state.begin() {
                return Some(begun);
            }
            inner = self.work.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn run(&self, begun: Begun, folder: &Path) {
        let Begun { content, request, stop, log } = begun;
        let evaluated = match request.read::<Row>() {
            Ok(Row::Request { request, .. }) => self.evaluator.evaluate(&request, folder, &stop.interrupted, &log),
            Ok(_) => fault("BUG: a row of the journal is not a request".into()),
            Err(error) => fault(format!("the request cannot be read from the journal: {error}")),
        };
        let evaluated = match (evaluated, stop.reason()) {
            (Evaluated::Interrupted, Some(StopReason::TimedOut)) => {
                let reason = "the evaluation did not end in time".to_string();
                Evaluated::Done(Box::new(Summary::without_report(Cause::TimedOut, reason, vec![])))
            }
            (other, _) => other,
        };
        match evaluated {
            Evaluated::Interrupted => self.lock().state.put_back(content),
            Evaluated::Done(summary) => self.finish(content, *summary),
        }
        self.work.notify_all();
    }

    /// Stores a result, and answers its tasks. Tries until it can be stored, or the service ends: then the next start evaluates again.
    fn finish(&self, content: kforge_foundation::base::Digest, summary: Summary) {
        let Summary { result, keeps } = summary;
        let (verdict, seconds) = (result.verdict, result.seconds);
        let value = Box::new(result);
        loop {
            let mut inner = self.lock();
            let Inner { state, journal } = &mut *inner;
            let (at, number) = (Moment::now(), state.next_result());
            let row = Row::Finished { content, result: number, keeps, at: at.wall, verdict, value: value.clone() };
            if let Ok((place, rows)) = journal.append(&row) {
                state.finish(content, number, verdict, keeps, (at, rows), place);
                journal.sync();
                break;
            }
            drop(inner);
            if self.ended.load(Ordering::SeqCst) {
                return;
            }
            std::thread::sleep(AGAIN);
        }
        self.metrics.of(verdict).add();
        self.metrics.seconds.add(seconds);
    }

    /// Ends evaluations whose time is over, and tidies.
    fn watch(&self) {
        let mut tidied = Instant::now();
        while !self.ended.load(Ordering::SeqCst) {
            std::thread::sleep(TICK);
            let running = {
                let inner = self.lock();
                let now = Instant::now();
                let running = inner.state.entries.values().filter_map(|entry| Some((entry, entry.running.as_ref()?)));
                let mut count = 0;
                for (entry, stop) in running {
                    count += 1;
                    if now.duration_since(stop.began) >= Duration::from_secs(entry.timeout_s.into()) {
                        stop.set(StopReason::TimedOut);
                    }
                }
                count
            };
            if tidied.elapsed() >= TIDY {
                // A journal that cannot be written again now is tried again, and a cache that cannot be collected is no fault of a task.
                drop(self.tidy());
                if running == 0 {
                    drop(cache::collect_sometimes(&self.session.again()));
                }
                tidied = Instant::now();
            }
        }
    }
}

fn fault(why: String) -> Evaluated {
    Evaluated::Done(Box::new(Summary::without_report(Cause::Internal, why, vec![])))
}
