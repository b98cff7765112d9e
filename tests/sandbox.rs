//! Workers and runners as real processes. This test starts itself: with `worker` as its first argument it acts as `kforge worker`, with misbehaving candidates
//! in place of compiled kernels. So it has its own `main`, and a few lines in place of the usual test runner.
#![expect(clippy::print_stdout, reason = "it is its own test runner, and a library that prints")]

#[path = "sandbox/candidates.rs"]
mod candidates;
#[path = "sandbox/compilers.rs"]
mod compilers;
#[path = "sandbox/confined.rs"]
mod confined;
#[path = "sandbox/verified.rs"]
mod verified;
#[path = "sandbox/pooled.rs"]
mod pooled;
#[path = "installed/python.rs"]
mod python;
#[path = "sandbox/references.rs"]
mod references;
#[path = "sandbox/steps.rs"]
mod steps;

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use kforge::harness::message::Places;
use kforge::worker::{OnceLimits, Parts, worker_main};

/// A test by name.
type Test = (&'static str, fn());

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    if args.first().is_some_and(|word| word == "worker") {
        let parts = Parts { steps: pooled::steps, run: candidates::run };
        let limits = OnceLimits {
            time: Duration::from_secs(60),
            run: Duration::from_secs(60),
            memory: 1 << 30,
            compiler_memory: 8 << 30,
            allow_unconfined: false,
        };
        return worker_main(&args[1..], &parts, Places::default, limits);
    }
    let words: Vec<String> = args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let asked = |word: &str| words.iter().any(|w| w == word);
    let (confinement, verification) =
        ([confined::TESTS, compilers::TESTS].concat(), [pooled::TESTS, verified::TESTS, references::TESTS].concat());
    let passed = if asked("--list") {
        confinement.iter().chain(&verification).for_each(|(name, _)| println!("{name}: test"));
        true
    } else if asked("--ignored") {
        // All these tests belong to the first tier.
        true
    } else if asked(AS_USER) {
        made(&confinement, &words)
    } else if asked(CONFINEMENT) {
        made(&confinement, &words) && (!rustix::process::geteuid().is_root() || as_user(&words))
    } else if asked(VERIFICATION) {
        made(&verification, &words)
    } else {
        halves(&words)
    };
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The half of these tests that tests confinement. The superuser runs it twice.
const CONFINEMENT: &str = "--confinement";
/// The other half: candidates, workers and verifiers.
const VERIFICATION: &str = "--verification";

/// Runs both halves in parallel, each in its own process, because some tests count the processes that they have started.
fn halves(words: &[String]) -> bool {
    let half = |which| Command::new(std::env::current_exe().unwrap()).args(words).arg(which).spawn().unwrap();
    [CONFINEMENT, VERIFICATION].map(half).map(|mut half| half.wait().unwrap().success()) == [true, true]
}

/// Runs the tests that the arguments select, one after another; returns whether all passed.
fn made(tests: &[Test], words: &[String]) -> bool {
    let filter: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
    let mut all = true;
    for (name, test) in tests.iter().filter(|(name, _)| filter.is_empty() || filter.iter().any(|f| name.contains(*f))) {
        let began = Instant::now();
        let passed = catch_unwind(AssertUnwindSafe(test)).is_ok();
        println!("test {name} ... {} <{:.3}s>", if passed { "ok" } else { "FAILED" }, began.elapsed().as_secs_f64());
        all &= passed;
    }
    all
}

/// Marks the run of these tests that the superuser starts as another user.
const AS_USER: &str = "--as-user";
/// A user without special rights.
const NOBODY: u32 = 65534;

/// Repeats the tests of confinement as an ordinary user, who has fewer rights and other limits of the system.
fn as_user(words: &[String]) -> bool {
    // A folder in which every user can run the program.
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("sandbox");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    println!("once more, as an ordinary user:");
    let run = Command::new(program).args(words).arg(AS_USER).uid(NOBODY).gid(NOBODY).current_dir("/").status();
    run.unwrap().success()
}
