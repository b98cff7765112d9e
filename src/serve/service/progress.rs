//! How far an evaluation is, for those who follow it. Hears the events of a build, and keeps the steps that ended. Steps about holdout shapes are left out.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::api::{StepDone, VerdictWord};
use kforge_engine::Graph;
use kforge_ops::event::{Blocked, Event, Observer, Steps, Watch};
use kforge_types::model::ShapeRole;
use kforge_types::record::event::{Event as StepEvent, StepFinished, Trouble};
use kforge_types::record::{Outcome, Verdict};

/// The most steps that are kept.
const MOST_STEPS: usize = 1000;

/// The progress of one evaluation.
#[derive(Default)]
pub struct ProgressLog {
    run: Mutex<Run>,
    changed: watch::Sender<u64>,
    moved: watch::Sender<u64>,
}

/// The steps of one run of an evaluation. After it was stopped, another run begins from the start.
#[derive(Default)]
struct Run {
    number: u64,
    steps: Vec<StepDone>,
    /// Whether a worker was killed during it.
    lost_a_worker: bool,
}

/// How much of a log was seen.
#[derive(Debug, Default)]
pub struct Seen {
    run: u64,
    steps: usize,
}

impl ProgressLog {
    /// The steps that ended since, of the run that is in progress.
    pub fn steps_after(&self, seen: &mut Seen) -> Vec<StepDone> {
        let run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.run != run.number {
            *seen = Seen { run: run.number, steps: 0 };
        }
        let steps: Vec<StepDone> = run.steps.iter().skip(seen.steps).cloned().collect();
        seen.steps += steps.len();
        steps
    }

    /// Sees when there is more to see.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Sees when the evaluation begins, stops or ends, or a task leaves it.
    pub(super) fn subscribe_to_status(&self) -> watch::Receiver<u64> {
        self.moved.subscribe()
    }

    /// Wakes whoever follows: a status is another one.
    pub(super) fn changed(&self) {
        self.moved.send_modify(|n| *n += 1);
        self.changed.send_modify(|n| *n += 1);
    }

    /// The evaluation begins, perhaps again.
    pub(super) fn begin(&self) {
        let mut run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        *run = Run { number: run.number + 1, ..Run::default() };
        drop(run);
        self.changed();
    }

    /// Whether a worker was killed during the run, by the system or by somebody.
    pub(super) fn lost_a_worker(&self) -> bool {
        self.run.lock().unwrap_or_else(PoisonError::into_inner).lost_a_worker
    }

    fn lose_a_worker(&self) {
        self.run.lock().unwrap_or_else(PoisonError::into_inner).lost_a_worker = true;
    }

    fn add(&self, step: StepDone) {
        let mut run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        if run.steps.len() < MOST_STEPS {
            run.steps.push(step);
            drop(run);
            self.changed.send_modify(|n| *n += 1);
        }
    }
}

/// A verdict in a word.
pub(super) fn word(verdict: &Verdict) -> VerdictWord {
    match verdict {
        Verdict::Pass => VerdictWord::Pass,
        Verdict::Fail(_) => VerdictWord::Fail,
        Verdict::Unknown(_) => VerdictWord::Unknown,
    }
}

/// Hears the build of an evaluation. What takes long and concerns the server, such as the installation of a compiler, is reported to the server's own observer.
pub(super) struct Listener {
    pub(super) log: Arc<ProgressLog>,
    pub(super) server: Arc<dyn Observer>,
}

impl Observer for Listener {
    fn event(&self, event: &Event<'_>) {
        match event {
            Event::Resolving(_)
            | Event::Downloading(_)
            | Event::Downloaded { .. }
            | Event::Installing(_)
            | Event::Blocked(Blocked::Toolchain) => self.server.event(event),
            _ => {}
        }
    }

    fn watch<'b>(&'b self, build: Steps<'b>, _: &Graph) -> Box<dyn Watch + 'b> {
        let shapes = build.packages.all().flat_map(|package| &package.operators).flat_map(|operator| &operator.shapes);
        let held_back = shapes.filter(|shape| shape.role == ShapeRole::Holdout).map(|shape| shape.name.clone());
        Box::new(Watching { log: &self.log, held_back: held_back.collect() })
    }
}

struct Watching<'b> {
    log: &'b ProgressLog,
    held_back: BTreeSet<String>,
}

impl Watch for Watching<'_> {
    fn event(&mut self, event: &StepEvent) {
        let StepEvent::StepFinished(step) = event else { return };
        let StepFinished { kind, labels, outcome, verdict, duration_ms, trouble, .. } = &**step;
        if *trouble == Some(Trouble::Killed) {
            self.log.lose_a_worker();
        }
        // The names of shapes are those of operators; a name that any operator holds back is left out everywhere.
        if labels.shape.as_ref().is_some_and(|shape| self.held_back.contains(shape)) {
            return;
        }
        let outcome = match outcome {
            Outcome::Executed => "executed",
            Outcome::Fresh => "fresh",
            Outcome::Unavailable(_) => "unavailable",
            Outcome::Skipped(_) => "skipped",
            Outcome::Failed(_) => "failed",
        };
        self.log.add(StepDone {
            kind: kind.name().into(),
            kernel: labels.kernel.clone(),
            variant: labels.variant.clone(),
            shape: labels.shape.clone(),
            outcome: outcome.into(),
            verdict: verdict.as_ref().map(word),
            ms: *duration_ms,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(kind: &str) -> StepDone {
        let (kernel, variant, shape, verdict) = (None, None, None, None);
        StepDone { kind: kind.into(), kernel, variant, shape, outcome: "executed".into(), verdict, ms: 0 }
    }

    #[test]
    fn whoever_follows_sees_all_steps_of_a_run_that_begins_again() {
        let (log, mut seen) = (ProgressLog::default(), Seen::default());
        log.begin();
        ["a", "b"].iter().for_each(|kind| log.add(step(kind)));
        let mut kinds = || log.steps_after(&mut seen).into_iter().map(|step| step.kind).collect::<Vec<_>>();
        assert_eq!((kinds(), kinds()), (vec!["a".to_string(), "b".into()], vec![]));
        log.begin();
        ["c", "d", "e"].iter().for_each(|kind| log.add(step(kind)));
        assert_eq!(kinds(), ["c", "d", "e"]);
    }

    #[test]
    fn the_server_hears_what_is_installed_and_nothing_else_of_a_build() {
        #[derive(Default)]
        struct Heard(Mutex<Vec<String>>);
        impl Observer for Heard {
            fn event(&self, event: &Event<'_>) {
                self.0.lock().unwrap().push(format!("{event:?}"));
            }
        }
        let server = Arc::new(Heard::default());
        let listener = Listener { log: Arc::default(), server: server.clone() };
        let names = ["nvidia-cuda-nvcc".to_string()];
        for event in [
            Event::Resolving(kforge_ops::event::Resolving::Cuda("13.0")),
            Event::Downloading(&names),
            Event::Installing(&names[0]),
            Event::Blocked(Blocked::Toolchain),
            Event::Blocked(Blocked::Workspace),
            Event::LockfileWritten,
        ] {
            listener.event(&event);
        }
        let heard = server.0.lock().unwrap();
        assert_eq!(heard.len(), 4, "{heard:?}");
        assert!(heard[2].contains("nvidia-cuda-nvcc"), "{heard:?}");
    }

    #[test]
    fn a_run_that_begins_again_has_lost_no_worker() {
        let log = ProgressLog::default();
        log.begin();
        log.lose_a_worker();
        assert!(log.lost_a_worker());
        log.begin();
        assert!(!log.lost_a_worker());
    }

    #[test]
    fn a_step_wakes_those_who_follow_and_not_those_who_wait_for_the_end() {
        let log = ProgressLog::default();
        let (mut follows, mut waits) = (log.subscribe(), log.subscribe_to_status());
        log.add(step("a"));
        assert!(follows.has_changed().unwrap() && !waits.has_changed().unwrap());
        follows.mark_unchanged();
        log.changed();
        assert!(follows.has_changed().unwrap() && waits.has_changed().unwrap());
        waits.mark_unchanged();
    }
}
