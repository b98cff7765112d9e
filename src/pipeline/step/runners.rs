//! Sends each step to what runs it: pure kinds here and now, the rest to a worker.

use kforge_engine::{Job, Ran, RunError, Runner};
use kforge_types::record::StepKind;

use super::{attribute, calibrate, generate, judge, matching, roofline, round, search, select};

/// Runs a step outside the coordinator: the worker pool, or one day another machine.
pub trait Remote: Send + Sync {
    /// Runs the step and returns when it, and everything it started, has ended.
    fn execute(&self, job: &Job<'_>) -> Result<Ran, RunError>;
}

/// All runners behind one.
pub struct Runners<R> {
    /// Who runs what is not pure.
    pub workers: R,
}

impl<R: Remote> Runner for Runners<R> {
    fn run(&self, job: &Job<'_>) -> Result<Ran, RunError> {
        match job.spec.kind {
            StepKind::Generate => generate::run(job),
            StepKind::Judge => judge::run(job),
            StepKind::Calibrate => calibrate::run(job),
            StepKind::Match => matching::run(job),
            StepKind::Search => search::run(job),
            StepKind::Select => select::run(job),
            StepKind::Attribute => attribute::run(job),
            StepKind::Roofline => roofline::run(job),
            StepKind::Round => round::run(job),
            StepKind::Compile
            | StepKind::Inspect
            | StepKind::Oracle
            | StepKind::Verify
            | StepKind::Bench
            | StepKind::Peaks
            | StepKind::Pairs
            | StepKind::Profile => self.workers.execute(job),
        }
    }
}
