//! One file per kind: what a step of that kind does with its spec. Kinds that run in the engine's process run here; the others pass their spec to a worker
//! process. Knows specs and workers; does not know the plan, packages or caches. A kind's descriptor says where it runs ([`kforge_types::record::kind`]).

use kforge_engine::{Execution, Executor, Job, RunError};
use kforge_types::record::Runs;
use kforge_types::record::kind::EngineCode;

pub mod attribute;
pub mod calibrate;
pub mod generate;
pub mod io;
pub mod judge;
pub mod matching;
pub mod rate;
pub mod roofline;
pub mod round;
pub mod search;
pub mod select;

/// The code that runs in the engine's process, registered only here.
fn registered(code: EngineCode) -> fn(&Job<'_>) -> Result<Execution, RunError> {
    match code {
        EngineCode::Generate => generate::run,
        EngineCode::Calibrate => calibrate::run,
        EngineCode::Judge => judge::run,
        EngineCode::Match => matching::run,
        EngineCode::Search => search::run,
        EngineCode::Select => select::run,
        EngineCode::Attribute => attribute::run,
        EngineCode::Rate => rate::run,
        EngineCode::Roofline => roofline::run,
        EngineCode::Round => round::run,
    }
}

/// Runs a step outside the engine's process: in the worker pool, or on another machine.
pub trait RemoteExecutor: Send + Sync {
    /// Runs the step and returns when the step and everything that it started has ended.
    fn execute(&self, job: &Job<'_>) -> Result<Execution, RunError>;
}

/// All executors as one.
pub struct StepExecutor<R> {
    /// Executes the steps of workers.
    pub workers: R,
}

impl<R: RemoteExecutor> Executor for StepExecutor<R> {
    fn run(&self, job: &Job<'_>) -> Result<Execution, RunError> {
        match job.spec.kind.descriptor().runs {
            Runs::Engine { code, .. } => registered(code)(job),
            Runs::Worker { .. } => self.workers.execute(job),
        }
    }
}
