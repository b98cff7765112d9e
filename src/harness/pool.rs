//! The coordinator's workers: kept warm, one request at a time each, replaced when they die. Knows processes and messages; does not know what a step does.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::compilers;
use super::confine::Confinement;
use super::device_slots::{Turn, Turns};
use super::message::{Request, Response};
use kforge_foundation::process::{Command, End, Talker};
use kforge_types::record::Lane;

/// What a worker gets beyond a step's time limit to answer that it ran out of time; then it is killed.
const GRACE: Duration = Duration::from_secs(15);

/// A lane, and the UUID of the device that its workers observe, if they do.
type Seat = (Lane, Option<String>);

/// A warm worker, and what it keeps; none if it is not confined as a whole.
type Warm = (Option<Confinement>, Talker);

/// Steps that are at work for a device at once. On it they take turns; two of them have the next one ready by the time that one leaves it, and each more would make
/// inputs of its own, and hold a context, which takes half a gigabyte and is made after the others.
const AT_A_DEVICE: u32 = 2;

/// Steps that a build has begun for a device at most: beside those at work as many whose inputs are laid out or whose results are kept, which takes as long as the work of
/// a short one.
pub const FOR_A_DEVICE: u32 = 2 * AT_A_DEVICE;

/// The workers that a request is for. A kind that runs in the engine's process comes here in tests only.
fn lane(request: &Request) -> Lane {
    request.spec.kind.lane().unwrap_or(Lane::Reference)
}

/// After how long a worker is given up that does a step of this many seconds: a step for a device waits for its turn there, which is not its time.
fn patience(lane: Lane, time_limit_s: u64) -> Duration {
    let own = Duration::from_secs(time_limit_s);
    // So many may take all of their time before the last has its turn.
    if lane == Lane::Candidate { own.saturating_mul(AT_A_DEVICE) } else { own }.saturating_add(GRACE)
}

/// Warm workers.
pub struct Pool {
    worker: Command,
    steps: Option<PathBuf>,
    /// By lane and the UUID of the device whose context a worker holds.
    idle: Mutex<BTreeMap<Seat, Vec<Warm>>>,
    turns: Turns,
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
        Pool { worker, steps: None, idle: Mutex::default(), turns: Turns::default() }
    }

    /// With workers that compile confined to the toolchain and this folder, which holds the folders of all steps.
    #[must_use]
    pub fn within(mut self, steps: impl Into<PathBuf>) -> Self {
        self.steps = Some(steps.into());
        self
    }

    /// What a worker has to keep to do a step.
    fn keeps(&self, request: &Request) -> Option<Confinement> {
        let steps = self.steps.as_deref().filter(|_| lane(request) == Lane::Compiler)?;
        Some(compilers::of_worker(&request.places, request.compiler_memory, steps))
    }

    /// Waits for a place among those at work for a device, by its UUID; none if it is interrupted.
    pub fn turn(&self, device: &str, interrupted: &AtomicBool) -> Option<Turn<'_>> {
        self.turns.take(device, AT_A_DEVICE, interrupted)
    }

    /// Has a worker do a step. As many run at once as threads call this.
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
                });
            }
            Ok(Ok(answered)) => answered,
        };
        // A worker that answers nonsense is dropped, and so killed.
        let response = serde_json::from_str(&answer).map_err(|e| WorkerDied {
            end: format!("gave a malformed response: {e}"),
            stderr: String::new(),
            interrupted: false,
        })?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).entry(seat).or_default().push((keep, worker));
        Ok(response)
    }

    /// Of the workers that keep enough, the one used last, which is the warmest; or a new one.
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
                // It died while it was idle, of nothing that we asked.
                Some(dead) => drop(dead),
                None => {
                    let mut worker = self.worker.clone();
                    if let Some(keep) = &keep {
                        worker = worker.arg("--within").arg(serde_json::to_string(keep).map_err(io::Error::other)?);
                    }
                    return Ok((keep, Talker::start(&worker)?));
                }
            }
        }
    }

    /// Process ids of idle workers.
    pub fn idle(&self) -> Vec<u32> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.values().flatten().map(|(_, worker)| worker.pid()).collect()
    }
}

/// Whether a worker that keeps `kept` can do what needs `wanted`. Without tools nothing more is read, so what inspects is done where it was compiled.
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
        assert_eq!(patience(Lane::Candidate, 60), Duration::from_secs(120) + GRACE);
        assert!(patience(Lane::Candidate, u64::MAX) >= Duration::from_secs(u64::MAX));
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
