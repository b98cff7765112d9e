//! A build that is killed at any moment costs only time: the next build succeeds, and leaves the same state as an undisturbed build.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;

use crate::processes::left_behind;
use crate::project::{Built, Project};
use crate::random::Random;
use crate::sample::one_kernel;

const KERNEL: &str = "#include \"more.h\"\n__global__ void k(const float *x, float *y, int n) {\n  if (threadIdx.x < n) y[threadIdx.x] = twice(x[threadIdx.x]) + 1;\n}\n";
const MORE: &str = "__device__ float twice(float x) { return x + x; }\n";

/// One kernel in two variants, one correct and one wrong: every kind of step for `cpu`, and both verdicts.
pub(crate) fn small() -> Project {
    let project = one_kernel(KERNEL).file("more.h", MORE);
    project.edit("kernel.toml", "source = \"k.cu\"", "source = \"k.cu\"\ntune.WRONG = [0, 1]");
    project.edit("k.cu", " + 1;", " + 1 + WRONG;");
    project
}

/// The state that a build leaves: its report, byte for byte; the key, result and verdict of every step; the champions.
#[derive(Debug, PartialEq)]
pub(crate) struct State {
    report: String,
    steps: BTreeMap<String, (Value, Value)>,
    champions: Vec<Value>,
}

impl State {
    /// The report.
    pub(crate) fn report(&self) -> &str {
        &self.report
    }

    /// The key and result of each step.
    pub(crate) fn steps(&self) -> &BTreeMap<String, (Value, Value)> {
        &self.steps
    }
}

/// Builds to the end, and returns the resulting state.
#[track_caller]
pub(crate) fn state(project: &Project) -> (State, Built) {
    let built = project.build(&["--keep-going"]).expect(100);
    assert_eq!((built.count("failed"), built.count("skipped")), (0, 0), "{}", built.stderr());
    let champions = built.events("champion").cloned().collect();
    (State { report: project.report(), steps: built.keys(), champions }, built)
}

/// A build in its own process group.
fn started(mut command: Command) -> Child {
    command.process_group(0).spawn().unwrap()
}

/// Kills a build's whole group after this many lines of output and this pause, and waits for it. Returns whether the build had ended by itself.
fn kill_after(mut child: Child, lines: usize, pause: Duration) -> bool {
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let ended = (0..lines).any(|_| out.read_line(&mut String::new()).unwrap() == 0);
    // The pause hits moments between two lines too. It does not wait for anything.
    std::thread::park_timeout(pause);
    let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    child.wait().unwrap();
    ended
}

#[expect(clippy::disallowed_methods, reason = "how many kills are wanted is told by whoever runs the tests")]
fn kills() -> u64 {
    std::env::var("KFORGE_TEST_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(20)
}

#[test]
#[ignore = "second tier: hard wear"]
fn after_a_kill_at_any_moment_the_next_build_leaves_what_an_undisturbed_one_does() {
    let undisturbed = small();
    let (expected, built) = state(&undisturbed);
    let lines = 2 * built.finished().count() as u64 + 4;
    let mut random = Random::seeded();
    for kill in 0..kills() {
        let (project, home) = (undisturbed.cloned(&format!("killed-{kill}")), format!("home-{kill}"));
        // Every fifth build starts without a survey of the compiler, because surveying can be killed as well.
        let project = if kill % 5 == 0 { project.home_at(home) } else { project.fresh_home(home) };
        let (after, pause) = (random.below(lines) as usize, Duration::from_millis(random.below(60)));
        let told = format!("kill {kill}, after {after} lines and {pause:?}");
        // In every other case, another process builds the same in the same home at the same time, and must not notice.
        let other = (kill % 2 == 1).then(|| {
            let other = project.cloned(&format!("other-{kill}"));
            let child = started(other.building(&["--keep-going"]));
            (other, child)
        });
        kill_after(started(project.building(&["--keep-going"])), after, pause);
        if let Some((other, child)) = other {
            let built = Built::of(&child.wait_with_output().unwrap()).expect(100);
            assert_eq!(built.count("failed"), 0, "{told}: {}", built.stderr());
            assert_eq!(other.report(), expected.report, "{told}, of the other");
        }
        assert_eq!(left_behind(&project), Vec::<String>::new(), "{told}");
        let (found, _) = state(&project);
        assert_eq!(found, expected, "{told}");
        let (again, built) = state(&project);
        assert_eq!((again, built.count("executed")), (found, 0), "{told}");
    }
}

#[test]
#[ignore = "second tier: many kills"]
fn kills_one_after_another_lose_nothing_that_was_recorded() {
    let project = small();
    let (expected, _) = state(&small());
    let mut random = Random::seeded();
    for _ in 0..6 {
        kill_after(
            started(project.building(&["--keep-going"])),
            random.below(16) as usize,
            Duration::from_millis(random.below(30)),
        );
    }
    let (found, _) = state(&project);
    assert_eq!(found, expected);
}

#[test]
fn an_interrupted_build_says_so_and_leaves_nothing_running() {
    let project =
        one_kernel("__global__ void k(const float *, float *, int) { for (volatile int i = 0;;) i = i + 1; }\n");
    let mut child = started(project.building(&[]));
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !(line.contains("step-started") && line.contains("verify")) {
        line.clear();
        assert_ne!(out.read_line(&mut line).unwrap(), 0, "it ended before it verified");
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(left_behind(&project), Vec::<String>::new());
    let last: Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
    assert_eq!((&last["reason"], &last["success"]), (&"build-finished".into(), &false.into()));
    assert!(last["steps"]["skipped"].as_u64().unwrap() > 0, "{last}");
    assert_eq!(last["verdicts"]["fail"], 0, "an interruption says nothing of a kernel");
    let report = || {
        let output = project.command(&["report"]).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = report();
    assert!(code == Some(101) && said.contains("the last build was interrupted"), "{said}");
    // The report of an earlier build does not count as one of the interrupted build.
    std::fs::write(project.target().join("report.json"), "{\"format_version\": 1, \"packages\": []}").unwrap();
    let (_, said) = report();
    assert!(said.contains("warning: the last build was interrupted"), "{said}");
    project.write(
        "k.cu",
        "__global__ void k(const float *x, float *y, int n) { int i = threadIdx.x; if (i < n) y[i] = 2 * x[i] + 1; }\n",
    );
    project.built(&[]);
    assert_eq!(report(), (Some(0), String::new()));
}

#[test]
fn a_closed_pipe_is_no_error() {
    let project = small();
    let mut child = project.building(&["--keep-going"]).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(100), "what is wrong with a kernel decides");
    assert_eq!(state(&project).1.count("executed"), 0, "it was built to the end");
}
