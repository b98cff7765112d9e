//! The coordinator's workers: kept warm, one request at a time each, replaced when they die. Knows processes and messages; does not know what a step does.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::compilers;
use super::confine::Confinement;
use super::device_slots::{Turn, Turns};
use super::message::{Request, Response};
use kforge_foundation::process::{Command, End, Talker};
use kforge_types::record::Lane;

/// The time that a worker gets beyond a step's time limit to report that it ran out of time. Then it is killed.
const GRACE: Duration = Duration::from_secs(15);

/// A lane, and the UUID of the device that its workers observe, if any.
type Seat = (Lane, Option<String>);

/// A warm worker and its confinement; none if the worker as a whole is not confined.
type Warm = (Option<Confinement>, Talker);

/// The number of steps that are at work for a device at once. They take turns on the device. With two, the next step is ready when the other leaves the device.
/// Each further step would make its own inputs and hold a context, which takes half a gigabyte and must be created after the others.
const AT_A_DEVICE: u32 = 2;

/// About how long it takes to create a context.
const CONTEXT: Duration = Duration::from_millis(300);

/// The longest time that it may take: a driver that wakes a device takes some seconds.
const CREATING: Duration = Duration::from_secs(60);

/// The maximum number of steps that a build has started for a device: those at work, and as many whose inputs are being staged or whose results are being
/// stored, which takes as long as the work of a short step.
pub const FOR_A_DEVICE: u32 = 2 * AT_A_DEVICE;

/// The lane of the workers for a request. Only in tests does a request have a kind that runs in the engine's process.
fn lane(request: &Request) -> Lane {
    request.spec.kind.lane().unwrap_or(Lane::Reference)
}

/// The time after which a worker is given up, for a step with this time limit. A step for a device also waits for its turn there, which does not count as its
/// time.
fn patience(lane: Lane, time_limit_s: u64) -> Duration {
    let own = Duration::from_secs(time_limit_s);
    // All steps at work for the device may use their whole time before the last one gets its turn, and the first one waits for a context.
    let candidate = || own.saturating_mul(AT_A_DEVICE).saturating_add(CREATING);
    if lane == Lane::Candidate { candidate() } else { own }.saturating_add(GRACE)
}

/// Warm workers.
pub struct Pool {
    worker: Command,
    steps: Option<PathBuf>,
    /// Idle workers by lane and by the UUID of the device whose context they hold.
    idle: Mutex<BTreeMap<Seat, Vec<Warm>>>,
    turns: Turns,
    /// The turns of steps that need no device, and how many have theirs at once; no limit if none.
    processors: (Turns, Option<u32>),
    /// The workers at each device, by UUID.
    at_devices: Mutex<BTreeMap<String, DeviceWorkers>>,
}

/// The workers that were started for a device.
#[derive(Debug, Default, Clone, Copy)]
struct DeviceWorkers {
    started: u32,
    /// When the first step ended there, or about when the runner is ready that was started ahead. From then on a context exists.
    warm: Option<Instant>,
}

impl DeviceWorkers {
    /// How many steps may be at work, for a step that came at that time to a line of so many. A second worker costs a context, which takes longer than many
    /// steps; so it is started where the line is full, or where a step had to wait for longer than a context takes.
    fn most(self, came: Instant, line: usize, now: Instant) -> u32 {
        // Before the first context exists, another one could only be created after it.
        let pays = self.warm.is_some_and(|warm| {
            line >= FOR_A_DEVICE as usize || now.saturating_duration_since(warm.max(came)) >= CONTEXT
        });
        if self.started > 1 || pays { AT_A_DEVICE } else { 1 }
    }
}

/// A worker that died without an answer. It was killed with everything that it started; the next request gets a new one.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the worker {end}")]
pub struct WorkerDied {
    /// How it ended: `killed by signal 11 (SIGSEGV)`.
    pub end: String,
    /// The end of its standard error.
    pub stderr: String,
    /// Whether it was killed because the build was interrupted.
    pub interrupted: bool,
    /// Whether SIGKILL ended it: from the system, from somebody, or from a process that it started itself, such as that of a candidate.
    pub killed: bool,
}

/// The signal with which the system ends processes when memory runs out. No fault of a process sends it.
const KILL: i32 = 9;

impl WorkerDied {
    fn system(e: &io::Error) -> Self {
        WorkerDied { end: format!("could not be run: {e}"), stderr: String::new(), interrupted: false, killed: false }
    }
}

impl Pool {
    /// A pool of processes that are started by `worker`: the path of this program and the argument `worker`.
    pub fn new(worker: Command) -> Self {
        Pool {
            worker,
            steps: None,
            idle: Mutex::default(),
            turns: Turns::default(),
            processors: (Turns::default(), None),
            at_devices: Mutex::default(),
        }
    }

    /// With a limit on the steps without a device that run at once, for a pool that several builds share. The limits of each build hold as well.
    #[must_use]
    pub fn with_processors(mut self, limit: u32) -> Self {
        self.processors.1 = Some(limit.max(1));
        self
    }

    /// With workers that are confined, when they compile, to the toolchain and to this folder, which contains the folders of all steps.
    #[must_use]
    pub fn within(mut self, steps: impl Into<PathBuf>) -> Self {
        self.steps = Some(steps.into());
        self
    }

    /// The confinement of a worker that executes a step; none if the whole worker is not confined.
    fn keeps(&self, request: &Request) -> Option<Confinement> {
        let steps = self.steps.as_deref().filter(|_| lane(request) == Lane::Compiler)?;
        Some(compilers::of_worker(&request.places, request.compiler_memory, steps))
    }

    /// Waits for a place among the steps at work for a device, given by UUID; returns none if interrupted.
    pub fn turn(&self, device: &str, interrupted: &AtomicBool) -> Option<Turn<'_>> {
        let came = Instant::now();
        let most = |line| self.workers_at(device, |workers| workers.most(came, line, Instant::now()));
        self.turns.take(device, &most, interrupted)
    }

    /// Waits for a place among the steps without a device; returns none if interrupted. The first that came is the next.
    pub fn processor(&self, interrupted: &AtomicBool) -> Option<Turn<'_>> {
        let (turns, limit) = &self.processors;
        turns.take("", &|_| limit.unwrap_or(u32::MAX), interrupted)
    }

    fn workers_at<R>(&self, device: &str, with: impl FnOnce(&mut DeviceWorkers) -> R) -> R {
        let mut all = self.at_devices.lock().unwrap_or_else(PoisonError::into_inner);
        with(all.entry(device.to_string()).or_default())
    }

    /// Executes a step in a worker. As many steps run at once as threads call this.
    pub fn run(&self, request: &Request, interrupted: &AtomicBool) -> Result<Response, WorkerDied> {
        let seat = (lane(request), request.device.clone());
        let line = serde_json::to_string(request).map_err(|e| WorkerDied::system(&io::Error::other(e)))?;
        let (keep, worker) = self.take(&seat, self.keeps(request)).map_err(|e| WorkerDied::system(&e))?;
        let limit = patience(seat.0, request.time_limit_s);
        let (worker, answer) = match worker.exchange(&line, limit, interrupted) {
            Err(e) => return Err(WorkerDied::system(&e)),
            Ok(Err(died)) => {
                return Err(WorkerDied {
                    end: died.end.to_string(),
                    stderr: died.stderr.text(),
                    interrupted: died.end == End::Interrupted,
                    killed: died.end == End::Signalled(KILL),
                });
            }
            Ok(Ok(answered)) => answered,
        };
        // A worker with a malformed answer is dropped, and so killed.
        let response = serde_json::from_str(&answer).map_err(|e| WorkerDied {
            end: format!("gave a malformed response: {e}"),
            stderr: String::new(),
            interrupted: false,
            killed: false,
        })?;
        if let Some(device) = &seat.1 {
            // What starts a runner ahead does not wait for its context.
            let since = Instant::now() + if request.warm_up { CONTEXT } else { Duration::ZERO };
            self.workers_at(device, |workers| *workers.warm.get_or_insert(since));
        }
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).entry(seat).or_default().push((keep, worker));
        Ok(response)
    }

    /// The most recently used worker whose confinement suffices, because it is the warmest; otherwise a new one.
    fn take(&self, seat: &Seat, keep: Option<Confinement>) -> io::Result<Warm> {
        let idle = || {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            let idle = idle.get_mut(seat)?;
            let at = idle.iter().rposition(|(kept, _)| covers(kept.as_ref(), keep.as_ref()))?;
            Some(idle.remove(at))
        };
        loop {
            match idle() {
                Some(worker) if worker.1.is_alive() => return Ok(worker),
                // It died while idle, not because of a request.
                Some(dead) => drop(dead),
                None => {
                    let mut worker = self.worker.clone();
                    if let Some(keep) = &keep {
                        worker = worker.arg("--within").arg(serde_json::to_string(keep).map_err(io::Error::other)?);
                    }
                    let started = Talker::start(&worker)?;
                    if let Some(device) = &seat.1 {
                        self.workers_at(device, |workers| workers.started += 1);
                    }
                    return Ok((keep, started));
                }
            }
        }
    }

    /// The process ids of idle workers.
    pub fn idle(&self) -> Vec<u32> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.values().flatten().map(|(_, worker)| worker.pid()).collect()
    }
}

/// Whether a worker with the confinement `kept` can execute a step that needs `wanted`. A step may need less than the worker may read: one that only inspects
/// can use a worker that compiles.
fn covers(kept: Option<&Confinement>, wanted: Option<&Confinement>) -> bool {
    match (kept, wanted) {
        (Some(kept), Some(wanted)) => {
            let alike = Confinement { read: vec![], ..kept.clone() } == Confinement { read: vec![], ..wanted.clone() };
            alike && wanted.read.iter().all(|path| kept.read.contains(path))
        }
        (None, None) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_a_device_is_not_given_up_before_its_turn() {
        assert_eq!(patience(Lane::Compiler, 60), Duration::from_secs(60) + GRACE);
        assert_eq!(patience(Lane::Candidate, 60), Duration::from_secs(120) + CREATING + GRACE);
        assert!(patience(Lane::Candidate, u64::MAX) >= Duration::from_secs(u64::MAX));
    }

    #[test]
    fn a_second_worker_at_a_device_is_started_only_where_it_pays() {
        let came = Instant::now();
        let after = |ms| came + Duration::from_millis(ms);
        let workers = |started, warm| DeviceWorkers { started, warm };
        let full = FOR_A_DEVICE as usize;
        assert_eq!(workers(1, None).most(came, full, after(5000)), 1);
        assert_eq!(workers(1, Some(came)).most(came, full, after(0)), AT_A_DEVICE);
        assert_eq!(workers(1, Some(came)).most(came, 2, after(100)), 1);
        assert_eq!(workers(1, Some(came)).most(came, 2, after(300)), AT_A_DEVICE);
        // What it waited for the first context does not count.
        assert_eq!(workers(1, Some(after(400))).most(came, 2, after(500)), 1);
        assert_eq!(workers(2, Some(came)).most(after(100), 2, after(100)), AT_A_DEVICE);
    }

    #[test]
    fn a_worker_does_what_needs_no_more_than_it_keeps() {
        let keeps = |read: &[&str], steps: &str| {
            let read = read.iter().map(PathBuf::from).collect();
            Some(Confinement { scratch: Some(steps.into()), read, ..Confinement::default() })
        };
        let covers = |kept: &Option<Confinement>, wanted| covers(kept.as_ref(), Option::as_ref(&wanted));
        let kept = keeps(&["/a", "/b"], "/steps");
        assert!(covers(&kept, keeps(&[], "/steps")) && covers(&kept, keeps(&["/b"], "/steps")));
        assert!(!covers(&kept, keeps(&["/b", "/c"], "/steps")), "another toolchain");
        assert!(!covers(&kept, keeps(&[], "/elsewhere")));
        assert!(!covers(&kept, None) && !covers(&None, kept.clone()) && covers(&None, None));
    }
}
