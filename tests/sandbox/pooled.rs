//! Workers in a pool: warm, replaced, ended with their coordinator.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use kforge::process::{Command, End, Talker, family, run};
use kforge::record::{Spec, StepKind};
use kforge::worker::message::{Places, Request, Response};
use kforge::worker::serve::dispatch::{self, On, Row};
use kforge::worker::serve::perform;
use kforge::worker::task::{Task, done, failed};
use kforge::worker::{Pool, WorkerDied};

use crate::{Test, compilers};

/// Steps of the test's own.
pub(crate) const TABLE: &[Row] = &[
    Row { kind: StepKind::Bench, on: On::Any, run: act },
    Row { kind: StepKind::Inspect, on: On::Cpu, run: compilers::reach },
    Row { kind: StepKind::Compile, on: On::Cpu, run: |task| perform(task, dispatch::TABLE) },
];

pub(crate) const TESTS: &[Test] = &[
    ("a_worker_stays_warm_and_is_replaced_when_it_dies", warm),
    ("a_worker_that_takes_too_long_is_killed_with_all_it_started", too_long),
    ("a_worker_that_died_idle_is_replaced_unseen", died_idle),
    ("what_a_library_prints_is_no_answer", prints),
    ("what_a_step_leaves_running_is_killed", leaves_running),
    ("a_worker_ends_with_its_coordinator", coordinator_ends),
    ("an_interrupted_worker_is_killed", interrupted),
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
        other => failed(format!("no act `{other}`")),
    }
}

fn request(act: &str) -> Request {
    let params = serde_json::json!({ "do": act });
    Request {
        spec: Spec { kind: StepKind::Bench, version: 1, implementation: None, params, inputs: BTreeMap::new() },
        input: PathBuf::from("/nowhere"),
        output: PathBuf::from("/nowhere"),
        places: Places::default(),
        product: None,
        unit: 0,
        time_limit_s: 60,
        run_limit_s: 60,
        memory_limit: 1 << 30,
        compiler_memory: 8 << 30,
        allow_unconfined: false,
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
    // Below the pool, whose grace is for people: the conversation that it has with a worker.
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
    // A coordinator that is killed closes its end of the worker's input, whatever the worker is doing.
    let line = serde_json::to_string(&request("hang")).unwrap();
    let own = std::env::current_exe().unwrap();
    let script = format!("echo '{line}' | '{}' worker", own.display());
    let command = Command::new("/bin/sh").args(["-c", &script]).env("PATH", "/usr/bin:/bin");
    let finished = run(&command, Some(Duration::from_secs(30)), &GOING_ON).unwrap();
    // As a shell tells that its last child was killed by signal 9.
    assert_eq!(finished.end, End::Exited(137));
}

fn interrupted() {
    let died = pool().run(&request("hang"), &AtomicBool::new(true)).unwrap_err();
    assert!(died.interrupted);
}
