//! How far an evaluation is, for those who follow it. Hears the events of a build, and keeps the steps that ended. Steps about holdout shapes are left out.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::api::{StepDone, VerdictWord};
use kforge_engine::Graph;
use kforge_ops::event::{Event, Observer, Steps, Watch};
use kforge_types::model::ShapeRole;
use kforge_types::record::event::{Event as StepEvent, StepFinished};
use kforge_types::record::{Outcome, Verdict};

/// The most steps that are kept.
const MOST_STEPS: usize = 1000;

/// The progress of one evaluation.
pub struct ProgressLog {
    steps: Mutex<Vec<StepDone>>,
    changed: watch::Sender<bool>,
}

impl Default for ProgressLog {
    fn default() -> Self {
        ProgressLog { steps: Mutex::default(), changed: watch::Sender::new(false) }
    }
}

impl ProgressLog {
    /// The steps that ended, from the one at this position on.
    pub fn steps_from(&self, at: usize) -> Vec<StepDone> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).iter().skip(at).cloned().collect()
    }

    /// Sees when there is more to see.
    pub fn subscribe(&self) -> watch::Receiver<bool> {
        self.changed.subscribe()
    }

    /// Wakes whoever follows.
    pub(super) fn changed(&self) {
        self.changed.send_modify(|flag| *flag = !*flag);
    }

    /// Forgets the steps: the evaluation begins again.
    pub(super) fn clear(&self) {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn add(&self, step: StepDone) {
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        if steps.len() < MOST_STEPS {
            steps.push(step);
            drop(steps);
            self.changed();
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

/// Hears the build of an evaluation.
pub(super) struct Listener(pub(super) Arc<ProgressLog>);

impl Observer for Listener {
    fn event(&self, _: &Event<'_>) {}

    fn watch<'b>(&'b self, build: Steps<'b>, _: &Graph) -> Box<dyn Watch + 'b> {
        let shapes = build.packages.all().flat_map(|package| &package.operators).flat_map(|operator| &operator.shapes);
        let held_back = shapes.filter(|shape| shape.role == ShapeRole::Holdout).map(|shape| shape.name.clone());
        Box::new(Watching { log: &self.0, held_back: held_back.collect() })
    }
}

struct Watching<'b> {
    log: &'b ProgressLog,
    held_back: BTreeSet<String>,
}

impl Watch for Watching<'_> {
    fn event(&mut self, event: &StepEvent) {
        let StepEvent::StepFinished(step) = event else { return };
        let StepFinished { kind, labels, outcome, verdict, duration_ms, .. } = &**step;
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
