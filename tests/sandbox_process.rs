//! Child processes: time limits, groups, capture, conversation.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

#[path = "sandbox_process/python_server.rs"]
mod python_server;

use kforge::process::{Captured, Command, End, Finished, Talker, family, run};

static GOING_ON: AtomicBool = AtomicBool::new(false);

fn sh(script: &str) -> Command {
    Command::new("/bin/sh").arg("-c").arg(script).env("PATH", "/usr/bin:/bin")
}

fn finish(script: &str) -> Finished {
    run(&sh(script), None, &GOING_ON).unwrap()
}

fn words(captured: &Captured) -> Vec<u32> {
    captured.text().split_whitespace().map(|word| word.parse().unwrap()).collect()
}

/// Whether a process that was told to end does so; the system may need a moment.
fn dies(pid: u32) -> bool {
    let start = Instant::now();
    while family::is_alive(pid) && start.elapsed() < Duration::from_secs(20) {
        std::thread::yield_now();
    }
    !family::is_alive(pid)
}

#[test]
fn what_a_spared_process_starts_meanwhile_is_spared_with_it() {
    let script =
        "/bin/sh -c 'while /bin/true; do :; done' & spared=$!; /bin/sleep 1000 & read line; echo $spared $!; wait";
    let asked = Talker::start(&sh(script)).unwrap().exchange("", Duration::from_secs(60), &GOING_ON).unwrap();
    let (talker, answer) = asked.unwrap();
    let [spared, other] = answer.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<u32>>()[..] else {
        panic!("{answer}")
    };
    // Its loop ends if one of its children is killed.
    for _ in 0..300 {
        family::kill_descendants_but(talker.pid(), &[spared]);
    }
    assert!(family::is_alive(spared), "a child of the spared process was killed");
    assert!(dies(other));
}

#[test]
fn status_output_and_environment_are_those_of_the_child() {
    let finished = finish("echo out; echo err >&2; env; exit 3");
    assert_eq!(finished.end, End::Exited(3));
    assert_eq!(finished.stderr.text(), "err\n");
    // `sh` itself adds PWD. No variable of this process's environment is there.
    let names: Vec<_> =
        finished.stdout.text().lines().skip(1).map(|l| l.split('=').next().unwrap().to_string()).collect();
    assert!(names.iter().all(|n| ["PATH", "PWD", "SHLVL", "_"].contains(&n.as_str())), "{names:?}");
    assert_eq!(finish("kill -SEGV $$").end.to_string(), "killed by signal 11 (SIGSEGV)");
}

#[test]
fn input_larger_than_a_pipe_arrives_whole_and_an_unread_one_is_no_error() {
    let command = sh("wc -c").stdin(vec![b'x'; 1 << 20]);
    assert_eq!(run(&command, None, &GOING_ON).unwrap().stdout.text().trim(), "1048576");
    let command = sh("exec <&-; echo ok").stdin(vec![b'x'; 1 << 20]);
    assert_eq!(run(&command, None, &GOING_ON).unwrap().stdout.text(), "ok\n");
}

#[test]
fn output_without_end_is_capped_while_the_clock_runs() {
    let command = Command::new("/usr/bin/yes").capture(1000);
    let finished = run(&command, Some(Duration::from_millis(200)), &GOING_ON).unwrap();
    assert_eq!(finished.end, End::TimedOut(Duration::from_millis(200)));
    assert!(finished.stdout.total() > 1000);
    assert!(finished.stdout.text().len() < 1100);
}

#[test]
fn a_time_out_kills_grandchildren_in_and_out_of_the_group() {
    let script = "sleep 1000 & echo $!; setsid sleep 1000 & echo $!; (sleep 1000 & echo $!; wait) & wait";
    let finished = run(&sh(script), Some(Duration::from_millis(300)), &GOING_ON).unwrap();
    assert!(matches!(finished.end, End::TimedOut(_)));
    let pids = words(&finished.stdout);
    assert_eq!(pids.len(), 3, "{}", finished.stdout.text());
    for pid in pids {
        assert!(dies(pid), "{pid} outlived the time limit");
    }
}

#[test]
fn a_child_that_ends_leaves_nobody_behind_and_is_not_waited_for_twice() {
    // The grandchild holds both pipes open. Even so, the end of the child counts.
    let finished = finish("sleep 1000 & echo $!");
    assert_eq!(finished.end, End::Exited(0));
    for pid in words(&finished.stdout) {
        assert!(dies(pid), "{pid} was left behind");
    }
}

#[test]
fn interruption_ends_the_child() {
    let finished = run(&sh("sleep 1000"), None, &AtomicBool::new(true)).unwrap();
    assert_eq!(finished.end, End::Interrupted);
}

#[test]
fn a_bare_name_is_refused_and_a_missing_program_is_named() {
    let error = run(&Command::new("sh"), None, &GOING_ON).unwrap_err().to_string();
    assert!(error.contains("`sh` is not an absolute path"), "{error}");
    let error = run(&Command::new("/nowhere/c++").arg("x"), None, &GOING_ON).unwrap_err().to_string();
    assert!(error.starts_with("cannot start /nowhere/c++ x: "), "{error}");
}

#[test]
fn descriptors_that_were_not_handed_over_are_closed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("secret");
    fs::write(&path, "secret").unwrap();
    let held = fs::File::open(&path).unwrap();
    let handed: std::sync::Arc<std::os::fd::OwnedFd> = std::sync::Arc::new(fs::File::open(&path).unwrap().into());
    let finished = run(&sh("ls -l /proc/self/fd").inherit(&handed), None, &GOING_ON).unwrap();
    let text = finished.stdout.text();
    assert_eq!(text.matches("secret").count(), 1, "{text}");
    drop(held);
}

#[test]
fn a_conversation_goes_line_by_line_and_its_end_is_told() {
    let talker =
        Talker::start(&sh("while read line; do [ $line = die ] && { echo why >&2; exit 7; }; echo got $line; done"))
            .unwrap();
    let second = Duration::from_secs(60);
    let (talker, answer) = talker.exchange("one", second, &GOING_ON).unwrap().ok().unwrap();
    assert_eq!(answer, "got one");
    let (talker, answer) = talker.exchange("two", second, &GOING_ON).unwrap().ok().unwrap();
    assert_eq!(answer, "got two");
    assert!(talker.is_alive());
    let died = talker.exchange("die", second, &GOING_ON).unwrap().err().unwrap();
    assert_eq!((died.end, died.stderr.text().as_str()), (End::Exited(7), "why\n"));
}

#[test]
fn an_answer_that_was_not_asked_for_ends_the_conversation() {
    let talker = Talker::start(&sh("read line; printf 'one\\ntwo\\n'; sleep 1000")).unwrap();
    let pid = talker.pid();
    match talker.exchange("x", Duration::from_secs(60), &GOING_ON).unwrap() {
        // Both lines arrived at once.
        Ok((talker, _)) => {
            let died = talker.exchange("y", Duration::from_secs(60), &GOING_ON).unwrap().err().unwrap();
            assert!(matches!(died.end, End::Misbehaved(_)), "{died:?}");
        }
        Err(died) => panic!("{died:?}"),
    }
    assert!(dies(pid));
}

#[test]
fn a_dropped_conversation_ends_its_child() {
    let talker = Talker::start(&sh("sleep 1000 & wait")).unwrap();
    let pid = talker.pid();
    drop(talker);
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
}
