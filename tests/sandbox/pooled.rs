//! Workers in a pool: reused, replaced, and ended with their coordinator.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use kforge::base::Digest;
use kforge::engine::blobs::Store;
use kforge::engine::home::Home;
use kforge::engine::{Job, RunError};
use kforge::harness::execute::WorkerExecutor;
use kforge::harness::message::{Places, Request, Response};
use kforge::harness::pool::{Pool, WorkerDied};
use kforge::harness::task::{Task, done, failed};
use kforge::process::{Command, End, Talker, family, run};
use kforge::record::event::Labels;
use kforge::record::{Platform, Spec, StepKind};
use kforge::worker::steps::{Handler, handler};

use crate::{Test, compilers};

/// The test's own steps.
pub(crate) fn steps(task: &Task) -> Option<Handler> {
    match (task.spec.kind, Platform::of(&task.spec.params)) {
        (StepKind::Bench, Platform::Any) => Some(act),
        (StepKind::Inspect, Platform::Cpu) => Some(compilers::reach),
        (StepKind::Compile, Platform::Cpu | Platform::Device) => handler(task),
        _ => None,
    }
}

pub(crate) const TESTS: &[Test] = &[
    ("a_worker_stays_warm_and_is_replaced_when_it_dies", warm),
    ("a_worker_that_takes_too_long_is_killed_with_all_it_started", too_long),
    ("a_worker_that_died_idle_is_replaced_unseen", died_idle),
    ("what_a_library_prints_is_no_answer", prints),
    ("what_a_step_leaves_running_is_killed", leaves_running),
    ("a_worker_ends_with_its_coordinator", coordinator_ends),
    ("an_interrupted_worker_is_killed", interrupted),
    ("two_steps_are_at_work_for_a_device_and_the_others_wait", turns),
    ("a_step_that_waits_for_its_turn_at_a_device_ends_when_it_is_interrupted", interrupted_in_line),
];

static GOING_ON: AtomicBool = AtomicBool::new(false);

fn act(task: &Task) -> Response {
    match task.spec.params["do"].as_str().unwrap_or_default() {
        "pid" => done(std::process::id().to_string(), vec![]),
        "die" => std::process::abort(),
        "print" => {
            println!("{{\"done\":{{}}}}");
            done("printed", vec![])
        }
        "start" => {
            #[expect(clippy::zombie_processes, reason = "out of the group, and never waited for: that is the deed")]
            let child = std::process::Command::new("/usr/bin/setsid").args(["sleep", "1000"]).spawn().unwrap();
            done(child.id().to_string(), vec![])
        }
        "hang" => {
            let never = AtomicBool::new(false);
            let _ = run(&Command::new("/bin/sleep").arg("1000"), None, &never);
            failed("it ended")
        }
        "meet" => done(meet(&task.spec.params).to_string(), vec![]),
        other => failed(format!("no act `{other}`")),
    }
}

/// Waits until three are present, for at most this many milliseconds. Returns how many were present at once.
fn meet(params: &serde_json::Value) -> usize {
    let folder = Path::new(params["at"].as_str().unwrap());
    let limit = Duration::from_millis(params["for_ms"].as_u64().unwrap());
    let (own, start) = (folder.join(std::process::id().to_string()), Instant::now());
    std::fs::write(&own, "").unwrap();
    let mut most = 0;
    while most < 3 && start.elapsed() < limit {
        most = most.max(std::fs::read_dir(folder).unwrap().count());
        std::thread::sleep(Duration::from_millis(1));
    }
    // A late arrival still meets those that were present.
    std::thread::sleep(Duration::from_millis(20));
    std::fs::remove_file(own).unwrap();
    most
}

fn request(act: &str) -> Request {
    let params = serde_json::json!({ "do": act });
    Request {
        spec: Spec { kind: StepKind::Bench, version: 1, implementation: None, params, inputs: BTreeMap::new() },
        input: PathBuf::from("/nowhere"),
        output: PathBuf::from("/nowhere"),
        places: Places::default(),
        device: None,
        time_limit_s: 60,
        run_limit_s: 60,
        memory_limit: 1 << 30,
        compiler_memory: 8 << 30,
        allow_unconfined: false,
        hang: None,
        planned: std::time::SystemTime::UNIX_EPOCH,
        warm_up: false,
    }
}

fn pool() -> Pool {
    Pool::new(Command::own().arg("worker").env("PATH", "/usr/bin:/bin"))
}

fn ask(pool: &Pool, act: &str) -> Result<String, WorkerDied> {
    match pool.run(&request(act), &GOING_ON)? {
        Response::Done { summary, .. } => Ok(summary),
        other => panic!("{other:?}"),
    }
}

fn dies(pid: u32) -> bool {
    let start = Instant::now();
    while family::is_alive(pid) && start.elapsed() < Duration::from_secs(20) {
        std::thread::yield_now();
    }
    !family::is_alive(pid)
}

fn warm() {
    let pool = pool();
    let first = ask(&pool, "pid").unwrap();
    assert_eq!(ask(&pool, "pid").unwrap(), first);
    let died = ask(&pool, "die").unwrap_err();
    assert_eq!(died.to_string(), "the worker killed by signal 6 (SIGABRT)");
    assert_ne!(ask(&pool, "pid").unwrap(), first);
    assert_eq!(pool.idle().len(), 1);
}

fn too_long() {
    // The conversation between a pool and a worker, without the pool's grace period, which is meant for people.
    let talker = Talker::start(&Command::own().arg("worker")).unwrap();
    let worker = talker.pid();
    let line = serde_json::to_string(&request("hang")).unwrap();
    let died = talker.exchange(&line, Duration::from_millis(500), &GOING_ON).unwrap().err().unwrap();
    assert_eq!(died.end.to_string(), "timed out after 0.5 s");
    assert!(dies(worker));
}

fn died_idle() {
    let pool = pool();
    let first = ask(&pool, "pid").unwrap();
    family::kill_group(first.parse().unwrap());
    assert!(dies(first.parse().unwrap()));
    assert_ne!(ask(&pool, "pid").unwrap(), first);
}

fn prints() {
    let pool = pool();
    assert_eq!(ask(&pool, "print").unwrap(), "printed");
    assert_eq!(ask(&pool, "print").unwrap(), "printed");
}

fn leaves_running() {
    let pid = ask(&pool(), "start").unwrap().parse().unwrap();
    assert!(dies(pid));
}

fn coordinator_ends() {
    // When a coordinator is killed, its end of the worker's input closes, whatever the worker is doing.
    let line = serde_json::to_string(&request("hang")).unwrap();
    let own = std::env::current_exe().unwrap();
    let script = format!("echo '{line}' | '{}' worker", own.display());
    let command = Command::new("/bin/sh").args(["-c", &script]).env("PATH", "/usr/bin:/bin");
    let finished = run(&command, Some(Duration::from_secs(30)), &GOING_ON).unwrap();
    // The status by which a shell reports that its last child was killed by signal 9.
    assert_eq!(finished.end, End::Exited(137));
}

fn interrupted() {
    let died = pool().run(&request("hang"), &AtomicBool::new(true)).unwrap_err();
    assert!(died.interrupted);
}

/// Gives tasks to workers as the engine does.
struct Engine {
    folder: tempfile::TempDir,
    store: Store,
    pool: Pool,
}

impl Engine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(&folder.path().join("home")).unwrap();
        std::fs::create_dir(folder.path().join("meeting")).unwrap();
        Engine { store: Store::new(&home), folder, pool: pool() }
    }

    /// Meets other workers, and returns how many.
    fn meet(&self, device: Option<&str>, for_ms: u64, interrupted: &AtomicBool) -> Result<usize, RunError> {
        let params = serde_json::json!({ "do": "meet", "at": self.folder.path().join("meeting"), "for_ms": for_ms });
        let scratch = self.folder.path().join("steps");
        let of = request("meet");
        let executor = WorkerExecutor {
            pool: &self.pool,
            places: of.places,
            scratch: &scratch,
            run_limit_s: of.run_limit_s,
            hangs: self.folder.path(),
            memory_limit: of.memory_limit,
            compiler_memory: of.compiler_memory,
            allow_unconfined: false,
        };
        let job = Job {
            id: "meet",
            labels: &Labels::default(),
            spec: &Spec { params, ..of.spec },
            key: &Digest::of(b"meet"),
            device,
            time_limit_s: of.time_limit_s,
            planned: of.planned,
            blobs: &self.store,
            interrupted,
        };
        executor.execute(&job).map(|ran| ran.summary.parse().unwrap())
    }
}

fn turns() {
    let meet = |count, device, for_ms| {
        let engine = Engine::new();
        let all: Vec<usize> = std::thread::scope(|scope| {
            let one = || engine.meet(device, for_ms, &GOING_ON).unwrap();
            let asked: Vec<_> = (0..count).map(|_| scope.spawn(one)).collect();
            asked.into_iter().map(|one| one.join().unwrap()).collect()
        });
        all.into_iter().max().unwrap()
    };
    assert_eq!(meet(4, Some("gpu"), 1000), 2);
    // As many as requested, if none has a device.
    assert!(meet(3, None, 20_000) >= 3);
}

fn interrupted_in_line() {
    let engine = Engine::new();
    // The first step is there alone, until it has a context.
    let turn = engine.pool.turn("gpu", &GOING_ON).unwrap();
    let ended = engine.meet(Some("gpu"), 1000, &AtomicBool::new(true));
    assert!(matches!(ended, Err(RunError::Interrupted)), "{ended:?}");
    drop(turn);
    assert_eq!(engine.meet(Some("gpu"), 10, &GOING_ON).unwrap(), 1, "nobody is left in the line");
}
