//! Executes a job of the engine by a request to a worker. Knows both sides; does not know what any kind of step does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use super::hangs::HangMark;
use super::message::{Places, Request, Response};
use super::pool::{Pool, WorkerDied};
use super::stage;
use kforge_engine::{Execution, Job, RunError};
use kforge_foundation::base::Severity;
use kforge_types::record::event::Trouble;
use kforge_types::record::{Note, Spec, StepKind};

/// The time limit in seconds for starting a runner at a device.
const STARTING_S: u64 = 60;

/// The settings that all steps of a build share.
pub struct WorkerExecutor<'a> {
    /// The workers.
    pub pool: &'a Pool,
    /// Where tools are on this machine.
    pub places: Places,
    /// The parent of the folders of steps. A step's folder is removed when the step ends.
    pub scratch: &'a Path,
    /// The time limit in seconds of one run of candidate code.
    pub run_limit_s: u64,
    /// The memory limit in bytes of candidate code.
    pub memory_limit: u64,
    /// The memory limit in bytes of compilers.
    pub compiler_memory: u64,
    /// Whether candidate code and compilers may run if the system cannot confine them.
    pub allow_unconfined: bool,
    /// The folder of this build in which candidates that timed out are remembered.
    pub hangs: &'a Path,
}

impl WorkerExecutor<'_> {
    /// Executes the job in a worker: stages its inputs, waits, stores its outputs.
    pub fn execute(&self, job: &Job<'_>) -> Result<Execution, RunError> {
        std::fs::create_dir_all(self.scratch).map_err(|e| system("make a folder for the step", &e))?;
        let dir = tempfile::Builder::new().prefix("step-").tempdir_in(self.scratch);
        let dir = dir.map_err(|e| system("make a folder for the step", &e))?;
        let (input, output) = (dir.path().join("in"), dir.path().join("out"));
        stage::prepare(job.spec, job.blobs, &input).map_err(|e| system("lay out the step's inputs", &e))?;
        std::fs::create_dir(&output).map_err(|e| system("make a folder for the step's outputs", &e))?;
        let request = Request {
            spec: job.spec.clone(),
            input,
            output: output.clone(),
            places: self.places.clone(),
            device: job.device.map(str::to_string),
            time_limit_s: job.time_limit_s,
            run_limit_s: self.run_limit_s,
            memory_limit: self.memory_limit,
            compiler_memory: self.compiler_memory,
            allow_unconfined: self.allow_unconfined,
            hang: HangMark::new(self.hangs, job.labels),
            planned: job.planned,
            warm_up: false,
        };
        let turn = match job.device {
            Some(device) => self.pool.turn(device, job.interrupted),
            None => self.pool.processor(job.interrupted),
        };
        let turn = turn.ok_or(RunError::Interrupted)?;
        let answered = self.pool.run(&request, job.interrupted);
        // The next step works while the outputs of this one are stored.
        drop(turn);
        match answered {
            Err(died) => Err(of_death(job, &died)),
            Ok(Response::Unavailable { why }) => Err(RunError::Unavailable(why)),
            Ok(Response::NeedsTool { tool, why }) => Err(RunError::NeedsTool { tool, why }),
            Ok(Response::Failed { message, notes }) => Err(RunError::Failed { message, notes, trouble: None }),
            Ok(Response::Done { verdict, notes, summary, forget }) => {
                let outputs = stage::collect(&output, job.blobs).map_err(|e| system("keep the step's outputs", &e))?;
                Ok(Execution { outputs, verdict, notes, summary, forget, elsewhere: false, took: None })
            }
        }
    }
}

/// A runner at a device, started before the first step there is due: creating a context takes longer than most compilations, and both can go on at once.
pub struct WarmUp {
    ended: Arc<AtomicBool>,
}

impl WarmUp {
    /// Starts a worker and its runner at a device in the background, for machine code of an architecture and with these places and limits of its worker. Steps for
    /// the device wait until the worker has started the runner, and the first of them until the runner is ready. If it does not start, that step reports why.
    pub fn begin(pool: Arc<Pool>, device: &str, arch: &str, limits: &WorkerExecutor<'_>) -> Self {
        let spec = Spec {
            kind: StepKind::Verify,
            version: 0,
            implementation: None,
            params: serde_json::json!({ "arch": arch }),
            inputs: BTreeMap::new(),
        };
        let request = Request {
            spec,
            input: PathBuf::new(),
            output: PathBuf::new(),
            places: limits.places.clone(),
            device: Some(device.to_string()),
            time_limit_s: STARTING_S,
            run_limit_s: limits.run_limit_s,
            memory_limit: limits.memory_limit,
            compiler_memory: limits.compiler_memory,
            allow_unconfined: limits.allow_unconfined,
            hang: None,
            planned: SystemTime::UNIX_EPOCH,
            warm_up: true,
        };
        let ended = Arc::new(AtomicBool::new(false));
        let until = ended.clone();
        // Without a thread, the first step at the device starts its runner itself.
        let begun = std::thread::Builder::new().spawn(move || {
            let turn = request.device.as_deref().and_then(|device| pool.turn(device, &until));
            if turn.is_some() {
                // Its answer matters to nobody: the first step at the device reports what is wrong there.
                drop(pool.run(&request, &until));
            }
        });
        drop(begun);
        WarmUp { ended }
    }
}

impl Drop for WarmUp {
    /// Ends a worker that is still starting a runner: nothing waits for it. A runner that was started ends with its worker.
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

fn system(what: &str, e: &std::io::Error) -> RunError {
    RunError::io(&format!("cannot {what}: "), e)
}

fn of_death(job: &Job<'_>, died: &WorkerDied) -> RunError {
    if died.interrupted {
        return RunError::Interrupted;
    }
    let stderr = died.stderr.trim();
    let note = |text: &str| Note::new(Severity::Error, "worker.died", text);
    let trouble = died.killed.then_some(Trouble::Killed);
    let help = trouble.map(|trouble| format!("; {}", trouble.help())).unwrap_or_default();
    RunError::Failed {
        message: format!("{died} while executing a `{}` step{help}", job.spec.kind),
        notes: (!stderr.is_empty()).then(|| note(stderr)).into_iter().collect(),
        trouble,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_foundation::process::Command;
    use std::sync::mpsc;
    use std::time::Duration;

    static GOING_ON: AtomicBool = AtomicBool::new(false);

    /// A pool whose workers do this for each line.
    fn pool(does: &str) -> Arc<Pool> {
        Arc::new(Pool::new(Command::new("/bin/sh").args(["-c", &format!("while read -r line; do {does}; done")])))
    }

    fn begin(pool: &Arc<Pool>) -> WarmUp {
        let limits = WorkerExecutor {
            pool,
            places: Places::default(),
            scratch: Path::new("/nonexistent"),
            run_limit_s: 1,
            memory_limit: 1,
            compiler_memory: 1,
            allow_unconfined: false,
            hangs: Path::new("/nonexistent"),
        };
        WarmUp::begin(pool.clone(), "gpu-0", "sm_90a", &limits)
    }

    /// Waits until the worker that warms up has been started.
    fn started(pool: &Arc<Pool>, file: &Path) {
        let end = std::time::Instant::now() + Duration::from_secs(60);
        while !file.exists() {
            assert!(std::time::Instant::now() < end, "no worker was started");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(pool.idle(), Vec::<u32>::new());
    }

    #[test]
    fn the_first_step_waits_until_the_runner_was_started_and_gets_its_worker() {
        let folder = tempfile::tempdir().unwrap();
        let (begun, go) = (folder.path().join("begun"), folder.path().join("go"));
        let answer = r#"{"failed":{"message":"x","notes":[]}}"#;
        let does =
            format!("touch {}; while [ ! -e {} ]; do sleep 0.01; done; echo '{answer}'", begun.display(), go.display());
        let pool = pool(&does);
        let warm_up = begin(&pool);
        started(&pool, &begun);
        let (tell, told) = mpsc::channel();
        std::thread::scope(|scope| {
            let pool = &pool;
            scope.spawn(move || tell.send(pool.turn("gpu-0", &GOING_ON).is_some()).unwrap());
            assert!(told.recv_timeout(Duration::from_millis(100)).is_err(), "the runner was not started");
            std::fs::write(&go, "").unwrap();
            assert_eq!(told.recv(), Ok(true));
        });
        assert_eq!(pool.idle().len(), 1);
        drop(warm_up);
    }

    #[test]
    fn a_runner_that_does_not_start_keeps_no_step_from_the_device() {
        // The worker dies, or never answers and nothing waits for it any more.
        let folder = tempfile::tempdir().unwrap();
        let begun = folder.path().join("begun");
        for (does, is_dropped) in [("exit 1", false), ("sleep 3600", true)] {
            let pool = pool(&format!("touch {}; {does}", begun.display()));
            let warm_up = begin(&pool);
            started(&pool, &begun);
            let kept = Some(warm_up).filter(|_| !is_dropped);
            assert!(pool.turn("gpu-0", &GOING_ON).is_some(), "{does}");
            drop(kept);
            std::fs::remove_file(&begun).unwrap();
        }
    }
}
