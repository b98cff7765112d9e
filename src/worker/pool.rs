//! The coordinator's workers: kept warm, one request at a time each, replaced when they die. Knows processes and messages; does not know what a step does.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

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

/// Warm workers.
pub struct Pool {
    worker: Command,
    idle: Mutex<BTreeMap<Lane, Vec<Talker>>>,
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
        Pool { worker, idle: Mutex::default() }
    }

    /// Has a worker do a step. As many run at once as threads call this.
    pub fn run(&self, request: &Request, interrupted: &AtomicBool) -> Result<Response, WorkerDied> {
        let lane = Lane::of(request.spec.kind);
        let line = serde_json::to_string(request).map_err(|e| WorkerDied::system(&io::Error::other(e)))?;
        let worker = self.take(lane).map_err(|e| WorkerDied::system(&e))?;
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
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).entry(lane).or_default().push(worker);
        Ok(response)
    }

    /// The worker used last, which is the warmest, or a new one.
    fn take(&self, lane: Lane) -> io::Result<Talker> {
        loop {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&lane).and_then(Vec::pop);
            match idle {
                Some(worker) if worker.is_alive() => return Ok(worker),
                // It died while it was idle, of nothing that we asked.
                Some(dead) => drop(dead),
                None => return Talker::start(&self.worker),
            }
        }
    }

    /// Process ids of idle workers.
    pub fn idle(&self) -> Vec<u32> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.values().flatten().map(Talker::pid).collect()
    }
}
