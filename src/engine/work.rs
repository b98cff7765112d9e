//! One step on a worker thread: take the lock of the key, ask the caches again, execute the step, store the result. Does not know other steps.
//!
//! The order of writes ensures that a crash at any moment leaves no reference to something missing: first outputs (by the executor), then caches (here), then
//! the journal (by the coordinator, when the report arrives).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};

use super::action::asks_device;
use super::machine_key::{MachineKey, Tag};
use super::services::{Services, lacking, look_up};
use super::{Blobs, Cache, Execution, Executor, Hit, Index, Job, KeyLocks, NodeId, RemoteCache, RunError, Unanswered};
use kforge_foundation::base::Digest;
use kforge_types::record::event::{EvidenceSeen, Labels, Trouble};
use kforge_types::record::{Note, Spec, StepResult};

/// The services that worker threads may use: all except the journal.
#[derive(Clone, Copy)]
pub(super) struct Tools<'a> {
    executor: &'a dyn Executor,
    caches: &'a [&'a dyn Cache],
    remote: Option<&'a dyn RemoteCache>,
    blobs: &'a dyn Blobs,
    locks: &'a dyn KeyLocks,
    machine_key: Option<&'a MachineKey>,
    interrupted: &'a AtomicBool,
}

impl<'a> Tools<'a> {
    pub(super) fn of(services: &'a Services<'a>, interrupted: &'a AtomicBool) -> Tools<'a> {
        let Services { executor, caches, remote, blobs, locks, machine_key, .. } = services;
        let (executor, remote, blobs, locks, machine_key) = (*executor, *remote, *blobs, *locks, *machine_key);
        Tools { executor, caches, remote, blobs, locks, machine_key, interrupted }
    }
}

/// A step to run.
pub(super) struct Task {
    pub(super) index: Index,
    pub(super) id: NodeId,
    pub(super) labels: Labels,
    pub(super) spec: Arc<Spec>,
    pub(super) key: Digest,
    pub(super) product: Option<String>,
    /// The UUID of the step's device.
    pub(super) device: Option<String>,
    pub(super) time_limit_s: u64,
    pub(super) planned: SystemTime,
    /// The step is to run even if its result is known.
    pub(super) again: bool,
}

/// How a worker thread ended a task, or what the remote cache answered.
pub(super) enum WorkResult {
    /// The remote cache answered.
    Answered(Option<Hit>),
    /// This input is no longer in the store.
    Lost(String),
    /// It ran.
    Ran {
        result: StepResult,
        evidence: Option<EvidenceSeen>,
        forget: bool,
        /// The tag of the result; none if this machine has no key.
        tag: Option<Tag>,
        /// It ran on another machine.
        elsewhere: bool,
    },
    /// Another process had computed the key in the meantime.
    Known(Hit),
    /// This machine lacks what the text says; and why nothing stored answers.
    Unavailable(String, Option<Unanswered>),
    Failed {
        message: String,
        notes: Vec<Note>,
        trouble: Option<Trouble>,
    },
    Interrupted,
}

/// The end of a task, or an answer of the remote cache.
pub(super) struct Report {
    pub(super) index: Index,
    pub(super) worked: WorkResult,
    /// When the step began to run.
    pub(super) started: Instant,
    pub(super) took: Duration,
    /// Problems that do not affect the result.
    pub(super) troubles: Vec<String>,
}

impl Report {
    /// The report that the remote cache answered.
    pub(super) fn answer(index: Index, hit: Option<Hit>) -> Report {
        let started = Instant::now();
        Report { index, worked: WorkResult::Answered(hit), started, took: Duration::ZERO, troubles: vec![] }
    }

    /// Whether a worker thread sent it.
    pub(super) fn is_of_worker(&self) -> bool {
        !matches!(self.worked, WorkResult::Answered(_))
    }
}

/// Runs a task to its end.
pub(super) fn work(task: &Task, tools: &Tools<'_>) -> Report {
    let mut troubles = vec![];
    let mut started = Instant::now();
    // Without this, a panic would leave the coordinator waiting for a report. The state that the closure borrows is not used again.
    let caught = catch_unwind(AssertUnwindSafe(|| locked(task, tools, &mut started, &mut troubles)));
    let worked = caught.unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<&str>().map(ToString::to_string).or(panic.downcast_ref::<String>().cloned());
        let message = format!("internal error: {}", said.unwrap_or_else(|| "an executor panicked".into()));
        WorkResult::Failed { message, notes: vec![], trouble: None }
    });
    Report { index: task.index, worked, started, took: started.elapsed(), troubles }
}

fn locked(task: &Task, tools: &Tools<'_>, started: &mut Instant, troubles: &mut Vec<String>) -> WorkResult {
    let guard = match tools.locks.lock(&task.key, tools.interrupted) {
        Ok(Some(guard)) => Some(guard),
        Ok(None) => return WorkResult::Interrupted,
        Err(error) => {
            troubles.push(format!("cannot lock a key: {error}; another process may do the same work at the same time"));
            None
        }
    };
    if !task.again
        && let Some(hit) = look_up(tools.caches, &task.key, &task.spec, task.product.as_deref(), troubles)
    {
        return WorkResult::Known(hit);
    }
    // The wait for another process does not count as this step's time.
    *started = Instant::now();
    let worked = run(task, tools, started, troubles);
    drop(guard);
    worked
}

fn run(task: &Task, tools: &Tools<'_>, started: &Instant, troubles: &mut Vec<String>) -> WorkResult {
    let inputs: Vec<(&String, Digest)> = task.spec.inputs.iter().filter_map(|(n, i)| Some((n, i.digest?))).collect();
    tools.blobs.fetch(&inputs.iter().map(|(_, digest)| *digest).collect::<Vec<_>>());
    if let Some((name, _)) = inputs.into_iter().find(|(_, digest)| !tools.blobs.has(digest)) {
        return WorkResult::Lost(name.clone());
    }
    let job = Job {
        id: &task.id,
        labels: &task.labels,
        spec: &task.spec,
        key: &task.key,
        device: task.device.as_deref(),
        time_limit_s: task.time_limit_s,
        planned: task.planned,
        blobs: tools.blobs,
        interrupted: tools.interrupted,
    };
    match tools.executor.run(&job).map(Execution::worded).map_err(RunError::worded) {
        Ok(Execution { outputs, verdict, notes, summary, forget, elsewhere, took }) => {
            let duration_ms = took.unwrap_or_else(|| started.elapsed()).as_millis() as u64;
            let result = StepResult { outputs, verdict, notes, summary, duration_ms };
            if elsewhere && asks_device(&task.spec) {
                return observed_elsewhere(task, tools, result, forget, troubles);
            }
            if elsewhere {
                return keep_claim(task, tools, result, forget);
            }
            keep(task, tools, result, forget, troubles)
        }
        Err(RunError::Unavailable(missing)) => unavailable(task, tools, missing),
        Err(error @ RunError::NeedsTool { .. }) => unavailable(task, tools, error.to_string()),
        Err(RunError::Failed { message, notes, trouble }) => {
            if let Some(remote) = tools.remote {
                remote.compare(&task.key, &task.spec, None);
            }
            WorkResult::Failed { message, notes, trouble }
        }
        Err(RunError::Interrupted) => WorkResult::Interrupted,
    }
}

/// The end of a step that this machine cannot run: a result that was to be compared counts without that.
fn unavailable(task: &Task, tools: &Tools<'_>, missing: String) -> WorkResult {
    match tools.remote.and_then(|remote| remote.kept_back(&task.key)) {
        Some(hit) => WorkResult::Known(hit),
        None => WorkResult::Unavailable(missing, unanswered(task, tools)),
    }
}

/// Why nothing stored answers a step that turned out to be unavailable. A device that is here and cannot be asked is no question of evidence.
fn unanswered(task: &Task, tools: &Tools<'_>) -> Option<Unanswered> {
    let asked = asks_device(&task.spec);
    (!asked).then(|| lacking(tools.caches, &task.key, &task.spec, task.product.as_deref())).flatten()
}

/// Stores a result of another machine like a hit of the remote cache: in the journal, without a tag, and in that cache. Only a result of this machine gets a
/// tag and an entry in the action cache.
fn keep_claim(task: &Task, tools: &Tools<'_>, result: StepResult, forget: bool) -> WorkResult {
    if let Some(remote) = tools.remote.filter(|remote| !forget && remote.serves(&task.spec)) {
        remote.put(&task.key, &task.spec, &result);
    }
    WorkResult::Ran { result, evidence: None, forget, tag: None, elsewhere: true }
}

/// The end of a step that a device of another machine answered. Whoever executed it has brought its record; the answer is what the records then give, as for an
/// observation of this machine. A result that must not be stored has no record.
fn observed_elsewhere(
    task: &Task,
    tools: &Tools<'_>,
    result: StepResult,
    forget: bool,
    troubles: &mut Vec<String>,
) -> WorkResult {
    if forget {
        return WorkResult::Ran { result, evidence: None, forget, tag: None, elsewhere: true };
    }
    match recorded(task, tools) {
        Some(hit) => {
            if hit.result.outputs != result.outputs {
                troubles
                    .push(format!("another record counts for more than what a worker observed for `{}` now", task.id));
            }
            let result = StepResult { duration_ms: result.duration_ms, ..hit.result };
            WorkResult::Ran { result, evidence: hit.evidence, forget: false, tag: None, elsewhere: true }
        }
        None => {
            let why = lacking(tools.caches, &task.key, &task.spec, task.product.as_deref());
            WorkResult::Unavailable("what a worker of the server observed does not count here".into(), why)
        }
    }
}

/// What the records of devices answer now.
fn recorded(task: &Task, tools: &Tools<'_>) -> Option<Hit> {
    let product = task.product.as_deref();
    let read =
        |cache: &&dyn Cache| cache.answer(&task.key, &task.spec, product).ok()?.filter(|hit| hit.evidence.is_some());
    tools.caches.iter().find_map(read)
}

/// Stores a result in every cache. Observations of a device are read back from the cache that holds evidence, because the set of records answers a question,
/// not the last record. So the rest of this build sees what the next build will see.
fn keep(task: &Task, tools: &Tools<'_>, result: StepResult, forget: bool, troubles: &mut Vec<String>) -> WorkResult {
    if forget {
        return WorkResult::Ran { result, evidence: None, forget, tag: None, elsewhere: false };
    }
    let tag = tools.machine_key.map(|key| key.of_result(&task.key, &result));
    for cache in tools.caches {
        if let Err(error) = cache.put(&task.key, &task.spec, &result) {
            troubles.push(format!("cannot write a cache: {error}; the work will be repeated"));
        }
    }
    if let Some(remote) = tools.remote
        // A server that is no longer used is compared as well.
        && !remote.compare(&task.key, &task.spec, Some(&result))
        && remote.serves(&task.spec)
    {
        remote.put(&task.key, &task.spec, &result);
    }
    if task.spec.kind.observes_device()
        && let Some(hit) = recorded(task, tools)
    {
        let result = StepResult { duration_ms: result.duration_ms, ..hit.result };
        // Its record in the index has a tag of its own.
        return WorkResult::Ran { result, evidence: hit.evidence, forget, tag: None, elsewhere: false };
    }
    WorkResult::Ran { result, evidence: None, forget, tag, elsewhere: false }
}
