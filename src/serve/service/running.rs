//! The threads of the service: those that evaluate, and one that watches time and tidies.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::clock::Moment;
use super::evaluate::{Evaluated, words};
use super::journal::Line;
use super::state::{Begun, Row, Stop, StopReason};
use super::summary::Summary;
use super::tidy::Collection;
use super::{Inner, Service};
use crate::api::{Cause, EvaluationRequest, VerdictWord};
use kforge_foundation::base::{Digest, count};

/// How often the time of evaluations is looked at.
const TICK: Duration = Duration::from_millis(50);

/// How often the state is tidied.
const TIDY: Duration = Duration::from_secs(10);

/// How long to wait before a result is written again that could not be stored.
const AGAIN: Duration = Duration::from_secs(1);

impl Service {
    /// Starts the threads: so many evaluate, each in a folder of its own below `work`.
    pub(super) fn start_threads(self: &Arc<Self>, evaluations: u32, work: &Path) -> std::io::Result<()> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for number in 0..evaluations {
            let (service, folder) = (self.clone(), work.join(number.to_string()));
            let name = format!("evaluation-{number}");
            threads.push(std::thread::Builder::new().name(name).spawn(move || {
                while let Some(begun) = service.next() {
                    service.run(&begun, &folder);
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
            let is_paused = self.paused.load(Ordering::SeqCst);
            if let Some(begun) = (!is_paused).then(|| inner.state.begin()).flatten() {
                // If it cannot be written, an end of the server during it does not count.
                drop(inner.journal.append(&Row::Began { content: begun.content }));
                self.figures.set(&inner);
                return Some(begun);
            }
            inner = self.work.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Evaluates, whatever happens: a thread that ends would leave its tasks without an answer.
    fn run(&self, begun: &Begun, folder: &Path) {
        let run = AssertUnwindSafe(|| self.evaluated(begun, folder));
        let evaluated = catch_unwind(run)
            .unwrap_or_else(|panic| fault(format!("BUG: the evaluation panicked: {}", words(&*panic))));
        match evaluated {
            Evaluated::Interrupted => self.put_back(begun.content),
            Evaluated::Done(summary) => self.finish(begun.content, *summary),
        }
        self.work.notify_all();
    }

    fn evaluated(&self, begun: &Begun, folder: &Path) -> Evaluated {
        let Begun { request, stop, attempts, .. } = begun;
        if *attempts >= self.config.attempts {
            let runs = count(*attempts, "run");
            return fault(format!(
                "the server or a worker was killed during {runs} of this evaluation, so it is given up"
            ));
        }
        let evaluated = match request.read::<Row>() {
            Ok(Row::Request { request, .. }) => match serde_json::from_str::<EvaluationRequest>(request.get()) {
                Ok(request) => self.evaluate(&request, begun, folder),
                Err(error) => fault(format!("the request was stored by another kforge, and cannot be read: {error}")),
            },
            Ok(_) => fault("BUG: a row of the journal is not a request".into()),
            Err(error) => fault(format!("the request cannot be read from the journal: {error}")),
        };
        let mut evaluated = settled(evaluated, stop);
        if let Evaluated::Done(summary) = &mut evaluated {
            summary.result.seconds = stop.began.elapsed().as_secs_f64();
        }
        evaluated
    }

    /// Evaluates, and again if a worker was killed in the meantime, by the system or by somebody, and the result lacks something. Each time counts as an attempt.
    fn evaluate(&self, request: &EvaluationRequest, begun: &Begun, folder: &Path) -> Evaluated {
        let Begun { content, stop, log, attempts, .. } = begun;
        let mut attempts = *attempts;
        loop {
            let evaluated = self.evaluator.evaluate(request, folder, &stop.interrupted, log);
            attempts += 1;
            let is_open = matches!(&evaluated, Evaluated::Done(summary) if is_open(summary));
            let is_repeated = is_open && log.lost_a_worker() && attempts < self.config.attempts;
            if !(is_repeated && self.begins_again(*content, stop)) {
                return evaluated;
            }
            self.metrics.repeated.add();
            log.begin();
        }
    }

    /// Whether an evaluation begins once more, after a worker was killed: nothing stops it. What was killed counts after a restart, too.
    fn begins_again(&self, content: Digest, stop: &Stop) -> bool {
        self.change(|Inner { state, journal }| {
            // With the lock, so that one that was put back meanwhile has not begun.
            let begins = stop.reason().is_none();
            if begins {
                // If it cannot be written, this attempt does not count after a restart.
                drop(journal.append(&Row::Began { content }));
                state.began(content);
            }
            begins
        })
    }

    pub(super) fn put_back(&self, content: Digest) {
        self.change(|Inner { state, journal }| {
            // It was put back when the service had to end at once.
            if state.entries.get(&content).is_none_or(|entry| entry.running.is_none()) {
                return;
            }
            // If it cannot be written, the next start counts this as an end of the server during the evaluation.
            drop(journal.append(&Row::Stopped { content }));
            state.put_back(content);
        });
    }

    /// Stores a result, and answers its tasks. Tries until it can be stored, or the service ends: then the next start evaluates again.
    fn finish(&self, content: Digest, summary: Summary) {
        let Summary { result, keeps } = summary;
        let (verdict, seconds) = (result.verdict, result.seconds);
        let Ok(value) = serde_json::value::to_raw_value(&result) else { return self.put_back(content) };
        let (at, number) = (Moment::now(), self.change(|inner| inner.state.take_result()));
        let row = Row::Finished { content, result: number, keeps, at: at.wall, verdict, value };
        let Ok(line) = Line::of(&row) else { return self.put_back(content) };
        loop {
            let is_stored = self.change(|Inner { state, journal }| {
                let (place, rows) = journal.write(&line)?;
                // Whoever sees the result finds it counted.
                self.metrics.of(verdict).add();
                self.metrics.seconds.add(seconds);
                state.finish(content, number, verdict, keeps, (at, rows), place);
                journal.sync();
                Ok::<_, std::io::Error>(())
            });
            if is_stored.is_ok() {
                break;
            }
            if self.ended.load(Ordering::SeqCst) {
                return;
            }
            std::thread::sleep(AGAIN);
        }
    }

    /// Ends evaluations whose time is over, and tidies.
    fn watch(&self) {
        let (mut tidied, mut collection) = (Instant::now(), Collection::new());
        while !self.ended.load(Ordering::SeqCst) {
            std::thread::sleep(TICK);
            let running = {
                let inner = self.lock();
                let now = Instant::now();
                let running = inner.state.entries.values().filter_map(|entry| Some((entry, entry.running.as_ref()?)));
                for (entry, stop) in running {
                    if now.duration_since(stop.began) >= Duration::from_secs(entry.timeout_s.into()) {
                        stop.time_out(entry.timeout_s);
                    }
                }
                inner.state.running()
            };
            if tidied.elapsed() >= TIDY {
                if self.tidy().is_err() {
                    // It is tried again.
                    self.metrics.untidied.add();
                }
                collection.look(self);
                tidied = Instant::now();
            }
            collection.go_on(self, running);
        }
    }
}

/// Whether a result leaves open what another run could decide or measure: a verdict, or times.
fn is_open(summary: &Summary) -> bool {
    !summary.keeps && summary.result.verdict != VerdictWord::Fail
}

/// What an evaluation that may have been stopped gives. A build that was stopped can end with any error, which says nothing of the candidate.
fn settled(evaluated: Evaluated, stop: &Stop) -> Evaluated {
    match (evaluated, stop.reason()) {
        (Evaluated::Done(summary), _) if summary.keeps => Evaluated::Done(summary),
        (Evaluated::Interrupted, None) => fault("BUG: the evaluation was interrupted, and nobody stopped it".into()),
        (_, Some(StopReason::Abandoned | StopReason::Drained)) => Evaluated::Interrupted,
        (Evaluated::Interrupted, Some(StopReason::TimedOut)) => {
            let (limit, took) = (stop.limit_s(), stop.began.elapsed().as_secs_f64());
            let reason = format!("the evaluation did not end within its {limit} s: it was stopped after {took:.1} s");
            Evaluated::Done(Box::new(Summary::without_report(Cause::TimedOut, reason, vec![])))
        }
        (Evaluated::Done(summary), _) => Evaluated::Done(summary),
    }
}

fn fault(why: String) -> Evaluated {
    Evaluated::Done(Box::new(Summary::without_report(Cause::Internal, why, vec![])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_without_its_times_and_an_unknown_verdict_are_open_and_a_failure_is_not() {
        let is_open = |verdict, keeps| {
            let mut summary = Summary::without_report(Cause::Undecided, "why".into(), vec![]);
            (summary.result.verdict, summary.keeps) = (verdict, keeps);
            is_open(&summary)
        };
        let all = [VerdictWord::Pass, VerdictWord::Unknown, VerdictWord::Fail];
        assert_eq!(all.map(|verdict| is_open(verdict, false)), [true, true, false]);
        assert_eq!(all.map(|verdict| is_open(verdict, true)), [false; 3]);
    }

    #[test]
    fn what_was_stopped_is_no_result_unless_it_would_be_the_same_again() {
        let of = |cause| Evaluated::Done(Box::new(Summary::without_report(cause, "why".into(), vec![])));
        let cause = |evaluated| match evaluated {
            Evaluated::Done(summary) => summary.result.cause,
            Evaluated::Interrupted => None,
        };
        for reason in [StopReason::Abandoned, StopReason::Drained] {
            let stopped = Stop::default();
            stopped.set(reason);
            assert_eq!(cause(settled(of(Cause::Unavailable), &stopped)), None, "{reason:?}");
            assert_eq!(cause(settled(of(Cause::NotAccepted), &stopped)), Some(Cause::NotAccepted));
        }
        let runs = Stop::default();
        assert_eq!(cause(settled(of(Cause::Unavailable), &runs)), Some(Cause::Unavailable));
        assert_eq!(cause(settled(Evaluated::Interrupted, &runs)), Some(Cause::Internal));
        let late = Stop::default();
        late.time_out(7);
        let Evaluated::Done(summary) = settled(Evaluated::Interrupted, &late) else { panic!("it has a result") };
        assert_eq!(summary.result.cause, Some(Cause::TimedOut));
        let reason = summary.result.reason.unwrap();
        assert!(reason.starts_with("the evaluation did not end within its 7 s: it was stopped after 0."), "{reason}");
    }
}
