//! The coordinator's workers: kept warm, one request at a time each, replaced when they die. Knows processes and messages; does not know what a step does.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::compilers;
use super::message::{Request, Response};
use crate::process::{Command, End, Talker};
use crate::record::StepKind;

/// What a worker gets beyond a step's time limit to answer that it ran out of time; then it is killed.
const GRACE: Duration = Duration::from_secs(15);

/// Steps that share warm workers: one that has loaded a compiler does not judge, one that holds a device's context does not compile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Lane {
    Compile,
    Reference,
    Judge,
}

impl Lane {
    fn of(kind: StepKind) -> Lane {
        match kind {
            StepKind::Compile | StepKind::Inspect => Lane::Compile,
            kind if kind.observes_device() => Lane::Judge,
            _ => Lane::Reference,
        }
    }
}

/// Workers that can stand for each other: of one lane, and confined alike, as JSON; none where they are not confined as a whole.
type Berth = (Lane, Option<String>);

/// Warm workers.
pub struct Pool {
    worker: Command,
    steps: Option<PathBuf>,
    idle: Mutex<BTreeMap<Berth, Vec<Talker>>>,
}

/// A worker that gave no answer: what happened. It was killed with all it started; the next request gets another.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the worker {end}")]
pub struct WorkerDied {
    /// How it ended, in words: `killed by signal 11 (SIGSEGV)`.
    pub end: String,
    /// What it last wrote to its standard error, capped.
    pub stderr: String,
    /// Whether it was killed because the build was interrupted.
    pub interrupted: bool,
}

impl WorkerDied {
    fn system(e: &io::Error) -> Self {
        WorkerDied { end: format!("could not be run: {e}"), stderr: String::new(), interrupted: false }
    }
}

impl Pool {
    /// A pool of processes that `worker` starts: the path of this program and the argument `worker`.
    pub fn new(worker: Command) -> Self {
        Pool { worker, steps: None, idle: Mutex::default() }
    }

    /// With workers that compile confined to the toolchain and this folder, which holds the folders of all steps.
    #[must_use]
    pub fn within(mut self, steps: impl Into<PathBuf>) -> Self {
        self.steps = Some(steps.into());
        self
    }

    /// Which workers may do a step.
    fn berth(&self, request: &Request) -> io::Result<Berth> {
        let lane = Lane::of(request.spec.kind);
        let steps = self.steps.as_deref().filter(|_| lane == Lane::Compile);
        let keep = steps
            .map(|steps| serde_json::to_string(&compilers::of_worker(&request.places, request.compiler_memory, steps)));
        Ok((lane, keep.transpose().map_err(io::Error::other)?))
    }

    /// Has a worker do a step. As many run at once as threads call this.
    pub fn run(&self, request: &Request, interrupted: &AtomicBool) -> Result<Response, WorkerDied> {
        let berth = self.berth(request).map_err(|e| WorkerDied::system(&e))?;
        let line = serde_json::to_string(request).map_err(|e| WorkerDied::system(&io::Error::other(e)))?;
        let worker = self.take(&berth).map_err(|e| WorkerDied::system(&e))?;
        let limit = Duration::from_secs(request.time_limit_s).saturating_add(GRACE);
        let (worker, answer) = match worker.exchange(&line, limit, interrupted) {
            Err(e) => return Err(WorkerDied::system(&e)),
            Ok(Err(died)) => {
                return Err(WorkerDied {
                    end: died.end.to_string(),
                    stderr: died.stderr.text(),
                    interrupted: died.end == End::Interrupted,
                });
            }
            Ok(Ok(answered)) => answered,
        };
        // A worker that answers nonsense is dropped, and so killed.
        let response = serde_json::from_str(&answer).map_err(|e| WorkerDied {
            end: format!("answered what is no response: {e}"),
            stderr: String::new(),
            interrupted: false,
        })?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).entry(berth).or_default().push(worker);
        Ok(response)
    }

    /// The worker used last, which is the warmest, or a new one.
    fn take(&self, berth: &Berth) -> io::Result<Talker> {
        loop {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).get_mut(berth).and_then(Vec::pop);
            match idle {
                Some(worker) if worker.is_alive() => return Ok(worker),
                // It died while it was idle, of nothing that we asked.
                Some(dead) => drop(dead),
                None => {
                    let worker = self.worker.clone();
                    return Talker::start(&match &berth.1 {
                        Some(keep) => worker.args(["--within", keep]),
                        None => worker,
                    });
                }
            }
        }
    }

    /// Process ids of idle workers.
    pub fn idle(&self) -> Vec<u32> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.values().flatten().map(Talker::pid).collect()
    }
}
