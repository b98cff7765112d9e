//! What a confined runner cannot do.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use kforge::harness::confine::{Confinement, Report, attempt, missing_here};
use kforge::harness::message::{RunnerReport, RunnerRequest};
use kforge::process::{Command, End, Finished, Limits, Talker, family, run};

use crate::Test;

pub(crate) const TESTS: &[Test] = &[
    ("a_runner_touches_no_file_but_in_its_scratch", files),
    ("a_runner_that_writes_files_is_ended", writes),
    ("a_runner_has_no_network", network),
    ("a_runner_reaches_no_other_process", processes),
    ("a_runner_starts_threads_but_no_programs", programs),
    ("a_candidate_neither_reports_nor_ends_the_process", speaks),
    ("no_handler_and_no_filter_hides_a_refused_call", hidden),
    ("a_runner_cannot_exceed_its_memory", memory),
    ("a_runner_has_no_descriptor_but_those_it_keeps", descriptors),
    ("a_runner_that_aborts_or_hangs_is_told_from_one_that_ends", ends),
    ("a_confined_program_runs_and_is_confined", confined_program),
    ("limits_hold_for_programs", limited_program),
    ("a_limited_program_dies_with_its_parent", dies_with_parent),
];

static GOING_ON: AtomicBool = AtomicBool::new(false);
const MINUTE: Option<Duration> = Some(Duration::from_secs(60));

/// The command of a runner that does these deeds.
pub(crate) fn runner(confinement: &Confinement, deeds: &[String]) -> Command {
    let request = RunnerRequest {
        binary_fd: -1,
        entries: deeds.to_vec(),
        check: false,
        launches: vec![],
        constants: vec![],
        trials: vec![],
        threads: 1,
    };
    let line = serde_json::to_string(&request).unwrap() + "\n";
    Command::own().args(["worker", "--runner", &serde_json::to_string(confinement).unwrap()]).stdin(line)
}

fn attempt_all(confinement: &Confinement, deeds: &[String]) -> Finished {
    run(&runner(confinement, deeds), MINUTE, &GOING_ON).unwrap()
}

fn told(finished: &Finished) -> Vec<String> {
    let text = finished.stdout.text();
    let reports = text.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap());
    reports
        .filter_map(|report| match report {
            RunnerReport::Confined { missing } if missing.is_empty() => None,
            RunnerReport::Printed { text } => Some(text),
            RunnerReport::Attempted { call } => Some(attempt(call)),
            other => panic!("{other:?}"),
        })
        .collect()
}

/// Tries each deed in its own runner, which must end because of it after reporting it.
fn expect_end(confinement: &Confinement, deeds: &[(String, &str)]) {
    for (deed, tried) in deeds {
        let finished = attempt_all(confinement, std::slice::from_ref(deed));
        assert_eq!(finished.end, End::Signalled(libc::SIGSYS), "{deed}: {}", finished.stdout.text());
        assert_eq!(told(&finished), [*tried], "{deed}");
    }
}

/// Tries each deed, and expects all to succeed or all to be refused.
fn expect(confinement: &Confinement, deeds: &[String], allowed: bool) {
    let finished = attempt_all(confinement, deeds);
    assert!(finished.end.success(), "{}: {}", finished.end, finished.stderr.text());
    let told = told(&finished);
    assert_eq!(told.len(), deeds.len());
    for (deed, told) in deeds.iter().zip(&told) {
        assert_eq!(told == "ok", allowed, "{deed}: {told}");
    }
}

fn files() {
    assert_eq!(missing_here(), Report::default(), "this test needs Landlock and seccomp");
    let dir = tempfile::tempdir().unwrap();
    let scratch = dir.path().join("scratch");
    let readable = dir.path().join("readable");
    fs::create_dir(&scratch).unwrap();
    fs::write(&readable, "x").unwrap();
    fs::write(dir.path().join("other"), "x").unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let keep = Confinement { scratch: Some(scratch), read: vec![readable], ..Confinement::default() };
    let good = [format!("write {}", path("scratch/a")), format!("read {}", path("readable"))];
    expect(&keep, &good, true);
    let home = std::env::home_dir().unwrap().join("kforge-was-here");
    let bad = [
        format!("write {}", home.display()),
        format!("write {}", path("other")),
        format!("write {}", path("readable")),
        format!("write {}", path("new")),
        format!("read {}", path("other")),
        format!("list {}", dir.path().display()),
        format!("remove {}", path("other")),
        "read /etc/passwd".to_string(),
        "read /proc/self/environ".to_string(),
        "write /dev/shm/kforge-was-here".to_string(),
    ];
    expect(&keep, &bad, false);
    let chmod = |name: &str| (format!("chmod {}", path(name)), "change metadata of files (chmod)");
    expect_end(&keep, &[chmod("other"), chmod("scratch")]);
    assert_eq!(fs::read_to_string(dir.path().join("other")).unwrap(), "x");
    assert!(!home.exists() && !Path::new("/dev/shm/kforge-was-here").exists());
}

fn writes() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("precious");
    fs::write(&file, "mine").unwrap();
    let open = "open a file for writing (openat)";
    let bad = [
        (format!("write {}", file.display()), open),
        (format!("write {}", dir.path().join("new").display()), open),
        ("write /dev/null".to_string(), open),
        (format!("remove {}", file.display()), "make, rename or remove files (unlink)"),
        ("duplicate".to_string(), "replace a descriptor with another (dup2)"),
        ("scribble 0".to_string(), "write to a descriptor that is not its own (write)"),
    ];
    expect_end(&Confinement::default(), &bad);
    assert_eq!(fs::read_to_string(file).unwrap(), "mine");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

fn hidden() {
    let bad = [
        ("ignore".to_string(), "hide a call that is refused (rt_sigaction)"),
        ("filter".to_string(), "change which calls are refused (seccomp)"),
    ];
    expect_end(&Confinement::default(), &bad);
    // A runner that blocks the signal is ended by the system without a report.
    let blocks = attempt_all(&Confinement::default(), &["block".to_string()]);
    assert_eq!((blocks.end, told(&blocks)), (End::Signalled(libc::SIGSYS), vec![]));
}

fn speaks() {
    let ends = "end the process before the run had ended (exit_group)";
    let writes = "write to a descriptor that is not its own (write)";
    let deeds = [("end 0", ends), ("end 70", ends), ("forge", writes)];
    expect_end(&Confinement::default(), &deeds.map(|(deed, tried)| (deed.to_string(), tried)));
}

fn network() {
    let socket = "open a socket (socket)";
    expect_end(&Confinement::default(), &["tcp", "udp", "unix"].map(|deed| (deed.to_string(), socket)));
}

fn processes() {
    let own = std::process::id();
    let deeds = [
        (format!("kill {own}"), "send a signal to another process (kill)"),
        (format!("starve {own}"), "change limits (prlimit64)"),
        ("feast".to_string(), "change limits (prlimit64)"),
        (format!("crowd {own}"), "set the CPU affinity of another process (sched_setaffinity)"),
        (format!("own {own}"), "duplicate a descriptor, or have signals sent by one (fcntl)"),
        ("leave".into(), "leave its process group (setsid)"),
        ("survive".into(), "leave its confinement (prctl)"),
    ];
    expect_end(&Confinement::default(), &deeds);
    expect(&Confinement::default(), &[format!("mem {own}")], false);
}

fn programs() {
    expect(&Confinement::default(), &["thread".to_string()], true);
    expect_end(&Confinement::default(), &[("fork".to_string(), "start a process (clone)")]);
    // The C library blocks signals while it starts a program, so that call is not reported.
    let program = attempt_all(&Confinement::default(), &["program".to_string()]);
    assert_eq!((program.end, told(&program)), (End::Signalled(libc::SIGSYS), vec![]));
}

fn memory() {
    let limits = Limits { address_space: Some(1 << 30), ..Limits::default() };
    let keep = Confinement { limits, ..Confinement::default() };
    expect(&keep, &[format!("allocate {}", 1 << 20)], true);
    expect(&keep, &[format!("allocate {}", 2u64 << 30)], false);
    expect_end(&keep, &[("memfd".to_string(), "share memory or messages beyond its limits (memfd_create)")]);
}

fn descriptors() {
    let dir = tempfile::tempdir().unwrap();
    let open = |name: &str| {
        let path = dir.path().join(name);
        fs::write(&path, "").unwrap();
        Arc::new(OwnedFd::from(fs::File::options().append(true).open(path).unwrap()))
    };
    // A descriptor number that the runner's own descriptors never have.
    let high = |fd: Arc<OwnedFd>| Arc::new(rustix::io::fcntl_dupfd_cloexec(&fd, 100).unwrap());
    let (kept, forgotten) = (open("kept"), high(open("forgotten")));
    let keep = Confinement { keep: vec![kept.as_raw_fd()], ..Confinement::default() };
    let is_open = |fd: &OwnedFd| format!("open {}", fd.as_raw_fd());
    let command = runner(&keep, &[is_open(&kept), is_open(&forgotten)]).inherit(&kept).inherit(&forgotten);
    let told = told(&run(&command, MINUTE, &GOING_ON).unwrap());
    assert_eq!(told, ["ok".to_string(), "refused: Bad file descriptor (os error 9)".to_string()]);
    // The runner can write to its own descriptors only as memory.
    let command = runner(&keep, &[format!("scribble {}", kept.as_raw_fd())]).inherit(&kept);
    assert_eq!(run(&command, MINUTE, &GOING_ON).unwrap().end, End::Signalled(libc::SIGSYS));
    assert_eq!(fs::read_to_string(dir.path().join("kept")).unwrap(), "");
}

fn ends() {
    let keep = Confinement::default();
    assert_eq!(attempt_all(&keep, &["abort".to_string()]).end.to_string(), "killed by signal 6 (SIGABRT)");
    let hangs = runner(&keep, &["hang".to_string()]);
    let finished = run(&hangs, Some(Duration::from_millis(300)), &GOING_ON).unwrap();
    assert!(matches!(finished.end, End::TimedOut(_)));
}

fn confined_program() {
    let dir = tempfile::tempdir().unwrap();
    let keep = Confinement { programs: true, scratch: Some(dir.path().into()), ..Confinement::default() };
    let script = format!(
        "echo inside > {0}/a; cat {0}/a; echo x > {0}/../kforge-was-here || echo refused",
        dir.path().display()
    );
    let command = Command::own()
        .args(["worker", "--confined", &serde_json::to_string(&keep).unwrap(), "/bin/sh", "-c", &script])
        .env("PATH", "/usr/bin:/bin");
    let finished = run(&command, MINUTE, &GOING_ON).unwrap();
    assert_eq!(finished.stdout.text(), "inside\nrefused\n", "{}: {}", finished.end, finished.stderr.text());
}

fn limited_program() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { file_size: Some(1000), open_files: Some(20), ..Limits::default() };
    let command = Command::new("/bin/sh")
        .args(["-c", "ulimit -n; ulimit -c; head -c 5000 /dev/zero > big"])
        .env("PATH", "/usr/bin:/bin")
        .dir(dir.path())
        .limits(limits);
    let finished = run(&command, MINUTE, &GOING_ON).unwrap();
    assert_eq!(finished.stdout.text(), "20\n0\n");
    assert_eq!(fs::metadata(dir.path().join("big")).unwrap().len(), 1000);
}

fn dies_with_parent() {
    // A shell starts this program outside of its process group, with the shell's own id as the parent to die with. Then the shell dies.
    let limits = serde_json::to_string(&Limits { die_with: Some(1), ..Limits::default() }).unwrap();
    let limits = limits.replace(":1", ":'$$'");
    let own = std::env::current_exe().unwrap();
    let start = format!("setsid '{}' worker --exec '{limits}' /bin/sh -c 'echo $$; exec sleep 1000'", own.display());
    let script = format!("read one; {start} & read two; kill -KILL $$");
    let shell = Talker::start(&Command::new("/bin/sh").args(["-c", &script]).env("PATH", "/usr/bin:/bin")).unwrap();
    let minute = Duration::from_secs(60);
    let (shell, pid) = shell.exchange("one", minute, &GOING_ON).unwrap().ok().unwrap();
    let pid: u32 = pid.parse().unwrap();
    assert!(family::is_alive(pid));
    let died = shell.exchange("two", minute, &GOING_ON).unwrap().err().unwrap();
    assert_eq!(died.end, End::Signalled(9));
    let start = Instant::now();
    while family::is_alive(pid) && start.elapsed() < Duration::from_secs(20) {
        std::thread::yield_now();
    }
    assert!(!family::is_alive(pid));
}
