//! Workers and runners as real processes. This test starts itself: with `worker` as its first argument it acts as `kforge worker`, with misbehaving candidates
//! in place of compiled kernels. So it has its own `main`, and a few lines in place of the usual test runner.
#![expect(clippy::print_stdout, reason = "it is its own test runner, and a library that prints")]

#[path = "sandbox/baselines.rs"]
mod baselines;
#[path = "sandbox/candidates.rs"]
mod candidates;
#[path = "sandbox/compilers.rs"]
mod compilers;
#[path = "sandbox/confined.rs"]
mod confined;
#[path = "sandbox/verified.rs"]
mod verified;
#[path = "shared/own_runner.rs"]
mod own_runner;
#[path = "sandbox/pooled.rs"]
mod pooled;
#[path = "installed/python.rs"]
mod python;
#[path = "sandbox/references.rs"]
mod references;
#[path = "sandbox/steps.rs"]
mod steps;
#[path = "sandbox/triton.rs"]
mod triton;

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::Duration;

use kforge::harness::message::Places;
use kforge::worker::{Finders, OnceLimits, Parts, worker_main};

use own_runner::{Test, made, shares, side_by_side};

/// Tests that wait for limits of time, memory or disk, try many sources, or need PyTorch.
const SECOND_TIER: &[&str] = &[
    "a_baseline_begins_each_call_with_the_same_inouts",
    "a_baseline_is_called_with_the_tensors_of_the_operator",
    "a_baseline_that_fails_says_so_and_stays_confined",
    "a_compiler_that_fills_the_disk_is_ended",
    "a_compiler_that_never_ends_is_ended_with_all_it_started",
    "a_compiler_that_starts_processes_without_end_is_ended",
    "a_cpp_reference_that_fails_says_so",
    "a_forged_end_of_the_run_hides_no_race",
    "a_fresh_trial_that_cannot_be_computed_is_left_out_whole",
    "a_kernel_that_hangs_times_out_and_is_forgotten",
    "a_kernel_that_reaches_out_is_reported_though_its_values_are_right",
    "a_reference_that_does_not_end_is_told_with_the_setting_that_ended_it",
    "a_product_is_that_of_the_operands_as_they_are_stored",
    "a_source_in_triton_that_never_ends_is_ended_with_all_it_started",
    "a_source_in_triton_that_uses_too_much_is_ended",
    "a_stack_too_deep_is_believed_of_code_that_may_need_it",
    "expectations_that_were_lost_are_made_again",
    "flags_write_nothing_outside_the_scratch_folder",
    "no_process_survives_to_rewrite_a_verdict_or_a_tolerance",
];

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
        let finders = Finders {
            search: &Places::default,
            limits,
            described: &|_, _, _| Err(vec![]),
            seal: &|_, _, _, answer| answer,
        };
        return worker_main(&args[1..], &parts, &finders);
    }
    let words: Vec<String> = args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let asked = |word: &str| words.iter().any(|w| w == word);
    let (confinement, verification) = (
        [confined::TESTS, compilers::TESTS, triton::TESTS].concat(),
        [pooled::TESTS, verified::TESTS, references::TESTS, baselines::TESTS].concat(),
    );
    let passed = if asked("--list") {
        made(&[confinement, verification].concat(), SECOND_TIER, &words)
    } else if asked(AS_USER) {
        made(&confinement, SECOND_TIER, &words)
    } else if asked(CONFINEMENT) {
        made(&confinement, SECOND_TIER, &words) && (!rustix::process::geteuid().is_root() || as_user(&words))
    } else if asked(VERIFICATION) {
        made(&verification, SECOND_TIER, &words)
    } else {
        halves(&words)
    };
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The half of these tests that tests confinement. The superuser runs it twice.
const CONFINEMENT: &str = "--confinement";
/// The other half: candidates, workers and verifiers.
const VERIFICATION: &str = "--verification";

/// Runs the tests of confinement beside the others, which take longer and are divided in two.
fn halves(words: &[String]) -> bool {
    let confinement = vec![CONFINEMENT.to_owned()];
    let verification: Vec<Vec<String>> =
        shares(2).into_iter().map(|share| vec![VERIFICATION.to_owned(), share]).collect();
    side_by_side(words, &[&confinement, &verification[0], &verification[1]])
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
