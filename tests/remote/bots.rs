//! Workers of the Remote Workers API: `kforge worker --bots`, and the client that it uses, against a service of the test's own. The service of a real server is in
//! `buildgrid.rs`.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bazel_remote_apis::build::bazel::remote::execution::v2 as re;
use bazel_remote_apis::google::protobuf::{self, Any};
use kforge::base::Digest;
use kforge::engine::lock::{Lock, LockError, Mode, Wait};
use kforge::harness::elsewhere::OnceAnswer;
use kforge::harness::message::Response;
use kforge::ops::elsewhere::{Origin, StepFile, StepLimits};
use kforge::process::{self, Finished};
use kforge::record::params::Toolchain;
use kforge::record::{Form, Input, Spec, StepKind};
use kforge_remote::{
    Access, BotEvent, BotOptions, ExecuteIn, Meaning, Program, Remote, RemoteError, RemoteOptions, RemoteStep,
    serve_bots,
};
use prost::Message;
use tonic::Code;

use crate::client::{Memory, access};
use crate::executing::{ONE, alone, cxx_that_waits, elsewhere, executed, executing, online, project, warnings};
use crate::plain::sha256;
use crate::project::Project;
use crate::server::bots::{Cancels, Lease};
use crate::server::{Blob, Function, Method, Options, Refusal, Server};

const STEP: &str = "kforge worker --once spec.json in out --places places.json";

/// A limit that no step of a test reaches.
const LONG: Duration = Duration::from_secs(100);

/// A worker in this process. It ends when it is dropped.
struct Bot {
    interrupted: Arc<AtomicBool>,
    said: Arc<Mutex<Vec<String>>>,
    scratch: tempfile::TempDir,
    thread: Option<JoinHandle<Result<(), RemoteError>>>,
}

impl Bot {
    fn start(server: &Server, execute: ExecuteIn) -> Bot {
        Bot::of(access(&server.url()), execute, tempfile::tempdir().unwrap())
    }

    /// The folders of steps are in `steps` of a folder.
    fn of(access: Access, execute: ExecuteIn, scratch: tempfile::TempDir) -> Bot {
        let (interrupted, said) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<String>>>::default());
        let (flag, heard, folder) = (interrupted.clone(), said.clone(), scratch.path().join("steps"));
        let thread = std::thread::spawn(move || {
            let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
            serve_bots(BotOptions {
                access,
                name: "one".into(),
                properties: vec![pair("OSFamily", "linux"), pair("pool", "a"), pair("pool", "b")],
                scratch: folder,
                beat: Duration::from_millis(20),
                longest: Duration::from_secs(100),
                interrupted: flag,
                execute,
                report: Box::new(move |event| {
                    heard.lock().unwrap().push(match event {
                        BotEvent::Registered => "registered".into(),
                        BotEvent::Gone(_) => "gone".into(),
                        BotEvent::Began { .. } => "began".into(),
                        BotEvent::Ended { how: Ok(code), .. } => format!("exit {code}"),
                        BotEvent::Ended { how: Err(why), .. } => why.to_string(),
                    });
                }),
            })
        });
        Bot { interrupted, said, scratch, thread: Some(thread) }
    }

    fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }

    fn end(&mut self) -> Result<(), RemoteError> {
        self.interrupted.store(true, Ordering::Relaxed);
        self.thread.take().map_or(Ok(()), |thread| thread.join().unwrap())
    }

    /// No file of a step is left.
    fn is_tidy(&self) -> bool {
        std::fs::read_dir(self.scratch.path().join("steps")).map_or(true, |mut entries| entries.next().is_none())
    }
}

impl Drop for Bot {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Runs a shell in the folder of the step.
fn shell(script: &'static str) -> ExecuteIn {
    Arc::new(move |folder: &Path, limit, stop: &AtomicBool| -> std::io::Result<Finished> {
        process::run(&process::Command::new("/bin/sh").args(["-c", script]).dir(folder), Some(limit), stop)
    })
}

/// Waits until it is.
#[track_caller]
pub(crate) fn until(what: &str, mut is: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn keep(server: &Server, bytes: Vec<u8>) -> re::Digest {
    let digest = sha256(&bytes);
    let blob = Blob { function: Function::Sha256, size: digest.size_bytes, bytes };
    server.state().blobs.insert(digest.hash.clone(), blob);
    digest
}

/// An action with these words and files, all of whose contents the server has. The files other than the spec are inputs.
fn action(server: &Server, words: &str, files: Vec<re::FileNode>, limit: Duration) -> re::Action {
    let command = re::Command {
        arguments: words.split(' ').map(String::from).collect(),
        output_paths: vec!["out".into()],
        ..Default::default()
    };
    let (files, inputs) =
        files.into_iter().partition(|file| ["spec.json", "places.json"].contains(&file.name.as_str()));
    let inputs = re::Directory { files: inputs, ..Default::default() };
    let inputs = re::DirectoryNode { name: "in".into(), digest: Some(keep(server, inputs.encode_to_vec())) };
    let root = re::Directory { files, directories: vec![inputs], ..Default::default() };
    re::Action {
        command_digest: Some(keep(server, command.encode_to_vec())),
        input_root_digest: Some(keep(server, root.encode_to_vec())),
        timeout: Some(protobuf::Duration { seconds: limit.as_secs() as i64, nanos: limit.subsec_nanos() as i32 }),
        ..Default::default()
    }
}

fn file(server: &Server, name: &str, bytes: &[u8]) -> re::FileNode {
    re::FileNode { name: name.into(), digest: Some(keep(server, bytes.to_vec())), ..Default::default() }
}

fn any(name: &str, message: &impl Message) -> Any {
    let type_url = format!("type.googleapis.com/build.bazel.remote.execution.v2.{name}");
    Any { type_url, value: message.encode_to_vec() }
}

fn give(server: &Server, id: &str, payload: Any) {
    server.state().bots.queue.push_back(Lease { id: id.into(), payload: Some(payload), ..Lease::default() });
}

fn ended(server: &Server, id: &str) -> Lease {
    until("a lease ends", || server.state().bots.ended.contains_key(id));
    server.state().bots.ended[id].clone()
}

fn code(lease: &Lease) -> Code {
    Code::from(lease.status.as_ref().map_or(0, |status| status.code))
}

#[test]
fn a_lease_is_executed_in_a_folder_of_its_own_and_its_outputs_come_back() {
    for (gives_active, by_digest) in [(false, false), (true, true)] {
        let server = executing();
        server.state().bots.gives_active = gives_active;
        // Larger than a batch: it comes and goes in a stream.
        let large = vec![7; 5 << 20];
        let files =
            vec![file(&server, "empty", b""), file(&server, "large", &large), file(&server, "spec.json", b"{}")];
        let action = action(&server, STEP, files, Duration::ZERO);
        let payload = match by_digest {
            true => any("Digest", &keep(&server, action.encode_to_vec())),
            false => any("Action", &action),
        };
        give(&server, "a", payload);
        let mut bot = Bot::start(&server, shell("mkdir out; cp in/large out/copy; cat spec.json; echo no >&2; exit 3"));
        let lease = ended(&server, "a");
        assert_eq!(code(&lease), Code::Ok, "{lease:?}");
        let result = re::ActionResult::decode(lease.result.unwrap().value.as_slice()).unwrap();
        assert_eq!((result.exit_code, result.stdout_raw, result.stderr_raw), (3, b"{}".to_vec(), b"no\n".to_vec()));
        assert_eq!(result.execution_metadata.unwrap().worker, "one");
        let tree = result.output_directories[0].tree_digest.clone().unwrap();
        let tree = re::Tree::decode(server.state().blobs[&tree.hash].bytes.as_slice()).unwrap();
        let files: Vec<_> =
            tree.root.unwrap().files.into_iter().map(|file| (file.name, file.digest.unwrap())).collect();
        assert_eq!(files, [("copy".to_string(), sha256(&large))]);
        assert_eq!(server.state().blobs[&sha256(&large).hash].bytes, large);
        assert!(server.state().blobs.contains_key(&result.stdout_digest.unwrap().hash));
        // The server stores results, not the worker.
        assert_eq!(server.state().counts.of(Method::UpdateActionResult), 0);
        let session = server.state().bots.sessions.values().next().unwrap().clone();
        let device = &session.worker.as_ref().unwrap().devices[0];
        let properties: Vec<_> = device.properties.iter().map(|p| (p.key.as_str(), p.value.as_str())).collect();
        assert_eq!(properties, [("OSFamily", "linux"), ("pool", "a"), ("pool", "b")]);
        assert_eq!(bot.end(), Ok(()));
        assert_eq!(bot.said(), ["registered", "began", "exit 3"]);
        assert!(bot.is_tidy());
        assert_eq!(server.state().bots.sessions.values().next().unwrap().status, 4, "it said that it leaves");
    }
}

#[test]
#[ignore = "second tier: every lease that is refused"]
fn what_is_no_step_or_lacks_a_content_is_refused_and_the_next_lease_is_executed() {
    let server = executing();
    let bot = Bot::start(&server, shell("true"));
    let good = |server: &Server| action(server, STEP, vec![file(server, "spec.json", b"{}")], LONG);
    let lost = |hash: &str| Some(re::Digest { hash: hash.repeat(32), size_bytes: 3 });
    let wrong = file(&server, "spec.json", b"another").digest.unwrap();
    server.state().blobs.get_mut(&wrong.hash).unwrap().bytes = b"anothex".to_vec();
    let with = |file: re::FileNode| action(&server, STEP, vec![file], LONG);
    let node = |name: &str, digest| re::FileNode { name: name.into(), digest, ..Default::default() };
    let link = re::SymlinkNode { name: "in".into(), target: "/etc".into(), ..Default::default() };
    let linked = keep(&server, re::Directory { symlinks: vec![link], ..Default::default() }.encode_to_vec());
    let rooted = |root: re::Directory| {
        let root = Some(keep(&server, root.encode_to_vec()));
        any("Action", &re::Action { input_root_digest: root, ..good(&server) })
    };
    let library = file(&server, "libc.so.6", b"x");
    let folder = re::DirectoryNode { name: "out".into(), digest: Some(keep(&server, vec![])) };
    let huge = Some(re::Digest { size_bytes: 1 << 30, ..sha256(b"x") });
    let cases: [(&str, Any, Code, &str); 13] = [
        (
            "library",
            rooted(re::Directory { files: vec![library], ..Default::default() }),
            Code::InvalidArgument,
            "`libc.so.6` is none of a step",
        ),
        (
            "outputs",
            rooted(re::Directory { directories: vec![folder], ..Default::default() }),
            Code::InvalidArgument,
            "`out` is none of a step",
        ),
        (
            "huge folder",
            any("Action", &re::Action { input_root_digest: huge.clone(), ..good(&server) }),
            Code::InvalidArgument,
            "their names take more than",
        ),
        (
            "huge command",
            any("Action", &re::Action { command_digest: huge, ..good(&server) }),
            Code::InvalidArgument,
            "too large",
        ),
        (
            "foreign",
            any("Action", &action(&server, "/bin/sh -c true", vec![], LONG)),
            Code::FailedPrecondition,
            "only steps",
        ),
        ("payload", any("Command", &re::Command::default()), Code::InvalidArgument, "no action"),
        ("lost file", any("Action", &with(node("a", lost("ab")))), Code::FailedPrecondition, "lacks a content"),
        (
            "lost command",
            any("Action", &re::Action { command_digest: lost("cd"), ..good(&server) }),
            Code::FailedPrecondition,
            "lacks a content",
        ),
        ("wrong", any("Action", &with(node("a", Some(wrong)))), Code::Internal, "other bytes"),
        ("outside", any("Action", &with(file(&server, "../a", b"x"))), Code::InvalidArgument, "is no name"),
        ("absolute", any("Action", &with(file(&server, "/tmp/a", b"x"))), Code::InvalidArgument, "is no name"),
        (
            "link",
            any("Action", &re::Action { input_root_digest: Some(linked), ..good(&server) }),
            Code::InvalidArgument,
            "is a link",
        ),
        ("good", any("Action", &good(&server)), Code::Ok, ""),
    ];
    for (id, payload, expected, says) in cases {
        give(&server, id, payload);
        let lease = ended(&server, id);
        let message = lease.status.clone().unwrap_or_default().message;
        assert!(code(&lease) == expected && message.contains(says), "{id}: {lease:?}");
        assert_eq!(lease.result.is_some(), expected == Code::Ok, "{id}");
        let details = lease.status.unwrap_or_default().details;
        assert_eq!(details.len(), usize::from(says == "lacks a content"), "{id}: {details:?}");
    }
    assert_eq!(bot.said().iter().filter(|said| *said == "began").count(), 13);
    assert!(bot.is_tidy());
}

#[test]
fn a_lease_that_nobody_wants_and_one_beyond_its_time_are_killed() {
    for how in [Cancels::ByState, Cancels::ByLeavingOut] {
        let server = executing();
        let bot = Bot::start(&server, shell("sleep 100 & echo $! > ../pid; wait"));
        give(&server, "a", any("Action", &action(&server, STEP, vec![], LONG)));
        let written = bot.scratch.path().join("steps/pid");
        until("the step runs", || std::fs::read_to_string(&written).is_ok_and(|text| text.ends_with('\n')));
        let pid: u32 = std::fs::read_to_string(&written).unwrap().trim().parse().unwrap();
        assert!(process::family::is_alive(pid));
        server.state().bots.cancelled = Some(("a".into(), how));
        until("its processes end", || !process::family::is_alive(pid));
        until("the worker says so", || bot.said().contains(&"the server cancelled the lease".to_string()));
        if how == Cancels::ByState {
            assert_eq!(code(&ended(&server, "a")), Code::Cancelled);
        }
        std::fs::remove_file(written).unwrap();
        // The worker goes on.
        give(&server, "b", any("Action", &action(&server, STEP, vec![], Duration::from_millis(50))));
        assert_eq!(code(&ended(&server, "b")), Code::DeadlineExceeded, "its time is over");
    }
}

#[test]
fn a_worker_that_is_to_end_kills_its_step_and_gives_it_back() {
    let server = executing();
    let mut bot = Bot::start(&server, shell("sleep 100"));
    give(&server, "a", any("Action", &action(&server, STEP, vec![], LONG)));
    until("the step runs", || bot.said().contains(&"began".to_string()));
    let began = Instant::now();
    assert_eq!(bot.end(), Ok(()));
    assert!(began.elapsed() < Duration::from_secs(20));
    assert_eq!(code(&ended(&server, "a")), Code::Unavailable, "another worker may have it");
    assert_eq!(bot.said().last().unwrap(), "the worker leaves");
    assert!(bot.is_tidy());
}

#[test]
fn a_server_that_dies_and_returns_gets_the_result_or_the_worker_a_new_session() {
    let mut server = executing();
    let bot = Bot::start(&server, shell("touch ../runs; while [ ! -e ../go ]; do sleep 0.01; done; rm ../go"));
    let go = bot.scratch.path().join("steps/go");
    let runs = go.with_file_name("runs");
    let begin = |server: &Server, id: &str| {
        give(server, id, any("Action", &action(server, STEP, vec![], LONG)));
        until("the step runs", || std::fs::remove_file(&runs).is_ok());
    };
    // It remembers the session: the step goes on meanwhile.
    begin(&server, "a");
    server.stop();
    std::fs::write(&go, "").unwrap();
    until("the step ends", || !go.exists());
    server.restart();
    assert_eq!(code(&ended(&server, "a")), Code::Ok);
    assert_eq!(server.state().counts.of(Method::CreateBotSession), 1);
    // It has forgotten the session: the step is another worker's now.
    begin(&server, "b");
    server.stop();
    server.state().bots.sessions.clear();
    server.restart();
    until("a new session", || server.state().bots.sessions.len() == 1);
    assert_eq!(server.state().counts.of(Method::CreateBotSession), 2);
    assert!(bot.said().contains(&"the server cancelled the lease".to_string()), "{:?}", bot.said());
    assert!(!server.state().bots.ended.contains_key("b"));
    std::fs::write(&go, "").unwrap();
    give(&server, "c", any("Action", &action(&server, STEP, vec![], LONG)));
    assert_eq!(code(&ended(&server, "c")), Code::Ok);
    // Errors that go away are none.
    server.state().options.refusals = vec![Refusal::next(3, Method::UpdateBotSession, Code::Unavailable)];
    std::fs::write(&go, "").unwrap();
    give(&server, "d", any("Action", &action(&server, STEP, vec![], LONG)));
    assert_eq!(code(&ended(&server, "d")), Code::Ok);
    assert_eq!(server.state().counts.of(Method::CreateBotSession), 2);
}

#[test]
fn a_server_that_refuses_the_worker_ends_it_and_one_that_is_not_there_is_waited_for() {
    let ends = |options: Options| {
        let server = Server::start(options);
        let mut bot = Bot::start(&server, shell("true"));
        until("it ends", || bot.thread.as_ref().is_none_or(JoinHandle::is_finished));
        bot.end().unwrap_err().to_string()
    };
    assert!(ends(Options { serves_bots: false, ..Options::default() }).contains("no Remote Workers API"));
    assert!(ends(Options { token: Some("secret".into()), ..Options::default() }).contains("Unauthenticated"));
    assert!(ends(Options { instance: "other".into(), ..Options::default() }).contains("NotFound"));
    let refuses = Refusal::always(Method::CreateBotSession, Code::InvalidArgument);
    assert!(ends(Options { refusals: vec![refuses], ..Options::default() }).contains("CreateBotSession"));
    let mut server = executing();
    server.stop();
    let mut bot = Bot::start(&server, shell("true"));
    until("it waits", || bot.said() == ["gone"]);
    server.restart();
    until("it registers", || bot.said() == ["gone", "registered"]);
    assert_eq!(bot.end(), Ok(()));
}

#[test]
fn credentials_that_are_renewed_end_no_step_and_those_that_stay_refused_end_the_session() {
    let server = executing();
    server.state().options.token = Some("one".into());
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "one").unwrap();
    let access = Access { token_file: Some(token.clone()), ..access(&server.url()) };
    let step = "mkdir out; echo x > out/x; touch ../runs; while [ ! -e ../go ]; do sleep 0.01; done";
    let bot = Bot::of(access, shell(step), tempfile::tempdir().unwrap());
    give(&server, "a", any("Action", &action(&server, STEP, vec![], LONG)));
    let steps = bot.scratch.path().join("steps");
    until("the step runs", || steps.join("runs").exists());
    std::fs::write(&token, "two").unwrap();
    server.state().options.token = Some("two".into());
    std::fs::write(steps.join("go"), "").unwrap();
    assert_eq!(code(&ended(&server, "a")), Code::Ok);
    assert_eq!(server.state().counts.of(Method::CreateBotSession), 1);
    assert_eq!(bot.said(), ["registered", "began", "exit 0"]);
    server.state().options.token = Some("three".into());
    until("the session ends", || bot.said().contains(&"gone".to_string()));
}

#[test]
fn sessions_that_end_at_once_begin_after_pauses() {
    let refusals = vec![Refusal::always(Method::UpdateBotSession, Code::NotFound)];
    let server = Server::start(Options { refusals, ..Options::default() });
    let _bot = Bot::start(&server, shell("true"));
    let begun = || server.state().counts.of(Method::CreateBotSession);
    until("a second session", || begun() >= 2);
    std::thread::sleep(Duration::from_millis(500));
    assert!(begun() <= 5, "{}", begun());
}

#[test]
fn a_lease_is_accepted_only_if_none_is_executed_and_all_are_given_back_at_the_end() {
    let server = executing();
    server.state().bots.gives_all = true;
    let lease = any("Action", &action(&server, STEP, vec![], LONG));
    give(&server, "a", lease.clone());
    give(&server, "b", lease.clone());
    let mut bot = Bot::start(&server, shell("touch ../runs; while [ ! -e ../go ]; do sleep 0.01; done; rm ../go"));
    let steps = bot.scratch.path().join("steps");
    until("the step runs", || steps.join("runs").exists());
    let state = |id: &str| {
        let sessions = &server.state().bots.sessions;
        sessions.values().flat_map(|session| &session.leases).find(|lease| lease.id == id).map(|lease| lease.state)
    };
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!((state("a"), state("b")), (Some(2), Some(1)), "the other one may be another worker's");
    // Then it is its turn.
    std::fs::write(steps.join("go"), "").unwrap();
    assert_eq!(code(&ended(&server, "a")), Code::Ok);
    until("the other one is executed", || state("b") == Some(2));
    give(&server, "c", lease);
    until("a further one is given", || state("c") == Some(1));
    assert_eq!(bot.end(), Ok(()));
    assert_eq!((code(&ended(&server, "b")), code(&ended(&server, "c"))), (Code::Unavailable, Code::Unavailable));
}

#[test]
fn folders_of_workers_that_were_killed_are_removed_and_those_in_use_are_not() {
    let server = executing();
    let scratch = tempfile::tempdir().unwrap();
    let steps = scratch.path().join("steps");
    for name in ["lease-dead", "lease-lives", "lease-begins", "step-of-a-build"] {
        std::fs::create_dir_all(steps.join(name).join("in")).unwrap();
    }
    for name in ["lease-dead", "lease-lives", "step-of-a-build"] {
        std::fs::write(steps.join(name).join("lock"), "").unwrap();
    }
    let _lock = Lock::acquire(&steps.join("lease-lives/lock"), Mode::Exclusive, Wait::No).unwrap();
    let bot = Bot::of(access(&server.url()), shell("true"), scratch);
    until("it registers", || bot.said() == ["registered"]);
    let left = ["lease-dead", "lease-lives", "lease-begins", "step-of-a-build"].map(|name| steps.join(name).exists());
    assert_eq!(left, [false, true, true, true]);
}

#[test]
fn no_input_of_a_step_may_be_executed() {
    let server = executing();
    let program = re::FileNode { is_executable: true, ..file(&server, "x", b"#!/bin/sh\n") };
    give(&server, "a", any("Action", &action(&server, STEP, vec![program], LONG)));
    let _bot = Bot::start(&server, shell("test -e in/x -a ! -x in/x"));
    let result = ended(&server, "a").result.unwrap();
    assert_eq!(re::ActionResult::decode(result.value.as_slice()).unwrap().exit_code, 0);
}

#[test]
#[ignore = "second tier: a server that does not answer is waited for"]
fn a_worker_that_is_to_end_does_not_wait_for_a_server_that_hangs() {
    let server = executing();
    let access = Access { timeout: Duration::from_secs(100), ..access(&server.url()) };
    let mut bot = Bot::of(access, shell("touch ../runs; sleep 100"), tempfile::tempdir().unwrap());
    give(&server, "a", any("Action", &action(&server, STEP, vec![], LONG)));
    until("the step runs", || bot.scratch.path().join("steps/runs").exists());
    server.state().options.hangs = Some(Method::UpdateBotSession);
    std::thread::sleep(Duration::from_millis(200));
    let began = Instant::now();
    assert_eq!(bot.end(), Ok(()));
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

/// The words with which a process was started.
fn words(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default()
}

/// `kforge worker --bots`, in a home of its own. It is killed when it is dropped.
pub(crate) struct Worker {
    child: Child,
    home: PathBuf,
}

impl Worker {
    pub(crate) fn start(project: &Project, url: &str, name: &str, words: &[&str], vars: &[(&str, &str)]) -> Worker {
        let all = [&["worker", "--bots", url, "--name", name], words].concat();
        Worker::of(project.command(&all), &project.place().join(format!("home of {name}")), vars)
    }

    pub(crate) fn of(mut command: Command, home: &Path, vars: &[(&str, &str)]) -> Worker {
        std::fs::create_dir_all(home).unwrap();
        let log = std::fs::File::create(home.join("log")).unwrap();
        command.env_remove("KFORGE_REMOTE_URL").env("KFORGE_HOME", home).envs(vars.iter().copied());
        let child = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
        Worker { child, home: home.into() }
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.home.join("log")).unwrap()
    }

    /// How many steps it has executed.
    pub(crate) fn executed(&self) -> usize {
        self.log().matches("Executed lease").count()
    }

    pub(crate) fn terminate(&mut self) -> Option<i32> {
        let pid = i32::try_from(self.child.id()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), rustix::process::Signal::TERM)
            .unwrap();
        self.child.wait().unwrap().code()
    }

    /// The processes that it started, and those that these started.
    fn descendants(&self) -> Vec<u32> {
        process::family::descendants(self.child.id())
    }

    /// Whether it executes a step whose compiler waits ([`cxx_that_waits`]).
    pub(crate) fn compiler_waits(&self) -> bool {
        self.descendants().iter().any(|pid| words(*pid).starts_with("sleep"))
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

#[test]
fn kforge_as_a_worker_executes_the_steps_of_a_build_and_nothing_else() {
    let server = executing();
    server.state().options.by_bots = true;
    let project = project(&server, ONE);
    let mut worker = Worker::start(&project, &server.url(), "w", &["--no-device"], &[]);
    // The program of the sender does not exist: the worker uses its own.
    let project = project.var("KFORGE_REMOTE_PROGRAM", "/nowhere/kforge");
    let built = online(&project, &[]).expect(0);
    assert_eq!(warnings(&built), 0, "{}{}", built.stderr(), worker.log());
    assert!(executed(&built) >= 4 && elsewhere(&built) == executed(&built), "{:?}", built.executed());
    assert_eq!(worker.executed(), executed(&built), "{}", worker.log());
    assert_eq!(project.report(), alone(&project));
    // It says what it is, by the digests that keys of steps state.
    let session = server.state().bots.sessions.values().next().unwrap().clone();
    assert_eq!(session.bot_id, "w");
    let mut said: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for property in session.worker.unwrap().devices.remove(0).properties {
        said.entry(property.key).or_default().push(property.value);
    }
    let sent = |name: &str| -> Vec<String> {
        let blobs = &server.state().blobs;
        let specs = blobs.values().filter_map(|blob| serde_json::from_slice::<Spec>(&blob.bytes).ok());
        specs.filter_map(|spec| Some(spec.inputs.get(name)?.digest?.hex())).collect()
    };
    for (name, input) in
        [("kforge-toolchain", "toolchain"), ("kforge-runtime", "runtime"), ("kforge-processor", "processor")]
    {
        let sent = sent(input);
        assert!(!sent.is_empty() && sent.iter().all(|digest| said[name].contains(digest)), "{name}: {said:?} {sent:?}");
    }
    assert!(said["OSFamily"] == ["linux"] && !said.contains_key("gpu"));
    // Paths that are sent name no program, neither one of this machine nor one of the step.
    let (mark, sent) = (project.place().join("mark"), project.place().join("sent"));
    let script = format!("#!/bin/sh\ntouch '{}'\n", mark.display());
    std::fs::write(&sent, &script).unwrap();
    std::fs::set_permissions(&sent, std::fs::Permissions::from_mode(0o755)).unwrap();
    let toolchain = serde_json::to_vec(&Toolchain::default()).unwrap();
    let digest = Digest::of(&toolchain);
    let inputs = [("toolchain:python".to_string(), Input { digest: Some(digest), form: Form::Blob })].into();
    let kind = StepKind::Oracle;
    let spec = Spec { kind, version: kind.version(), implementation: None, params: serde_json::json!({}), inputs };
    let limits = StepLimits { time_s: 60, run_s: 60, memory: 1 << 30, compiler_memory: 1 << 30 };
    for (id, python) in [("path", sent.as_path()), ("tree", Path::new("/proc/self/cwd/in/x"))] {
        let toolchains = [(digest, Origin::Python)].into();
        let places = StepFile { cxx: None, python: Some(python.into()), toolchains, limits };
        let files = vec![
            file(&server, "spec.json", &serde_json::to_vec(&spec).unwrap()),
            file(&server, "places.json", &serde_json::to_vec(&places).unwrap()),
            file(&server, "toolchain-python", &toolchain),
            re::FileNode { is_executable: true, ..file(&server, "x", script.as_bytes()) },
        ];
        give(&server, id, any("Action", &action(&server, STEP, files, LONG)));
        let result = re::ActionResult::decode(ended(&server, id).result.unwrap().value.as_slice()).unwrap();
        let answer: OnceAnswer = serde_json::from_slice(&result.stdout_raw).unwrap();
        assert!(matches!(answer, OnceAnswer::Differs { .. }) && !mark.exists(), "{id}: {answer:?}");
    }
    // A foreign command.
    give(&server, "foreign", any("Action", &action(&server, "/bin/touch here", vec![], LONG)));
    assert_eq!(code(&ended(&server, "foreign")), Code::FailedPrecondition);
    assert!(worker.log().contains("No result of lease foreign"), "{}", worker.log());
    assert_eq!(worker.terminate(), Some(0), "{}", worker.log());
    assert!(worker.log().contains("Ended"));
}

#[test]
fn the_processes_of_a_step_end_with_a_worker_that_is_killed() {
    let server = executing();
    server.state().options.by_bots = true;
    let project = project(&server, ONE).var("KFORGE_REMOTE_PROGRAM", "kforge");
    let (cxx, hold) = cxx_that_waits(&project);
    let project = project.var("KFORGE_TOOLCHAIN_CXX", cxx);
    let mut worker = Worker::start(&project, &server.url(), "w", &["--no-device"], &[]);
    let mut build = project.command(&["build", "-j", "1"]).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    until("a compiler waits", || worker.compiler_waits());
    let family = worker.descendants();
    assert!(family.iter().any(|pid| words(*pid).contains("--once")), "{family:?}");
    worker.kill();
    until("its processes end", || !family.iter().any(|pid| process::family::is_alive(*pid)));
    assert!(hold.exists(), "nothing else ended them");
    let _ = build.kill();
    build.wait().unwrap();
}

#[test]
fn words_and_addresses_that_make_no_worker_are_usage_errors() {
    let project = Project::new();
    let said = |words: &[&str]| {
        let output = project.command(words).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, text) = said(&["worker", "--bots", "localhost:1"]);
    assert!(code == Some(2) && text.contains("`localhost:1` is no address of a server"), "{code:?} {text}");
    let (code, text) = said(&["worker", "--name", "x"]);
    assert!(code == Some(2) && text.contains("--bots <URL>"), "{code:?} {text}");
    // Options of every command may come first.
    let (code, text) = said(&["worker", "--color", "never", "--bots", "localhost:1"]);
    assert!(code == Some(2) && text.contains("`localhost:1` is no address of a server"), "{code:?} {text}");
    let (code, text) = said(&["worker", "--offline", "--bots", "grpc://localhost:1"]);
    assert!(code == Some(101) && text.contains("`--offline`"), "{code:?} {text}");
    let (code, text) = said(&["--offline", "worker", "--bots", "grpc://localhost:1"]);
    assert!(code == Some(101) && text.contains("`--offline`"), "{code:?} {text}");
}

/// The program that was built with the tests: one of a release has no virtual device.
pub(crate) fn with_device(project: &Project, words: &[&str]) -> Command {
    let scenario = project.place().join("scenario.toml");
    std::fs::write(&scenario, "[[device]]\nproduct = \"Virtual H\"\narch = \"sm_90\"\ndriver = \"580.1\"\n").unwrap();
    let mut command = of_tests(project, words);
    command.env("KFORGE_VIRTUAL_DEVICE", scenario);
    command
}

/// A command of the program that was built with the tests.
pub(crate) fn of_tests(project: &Project, words: &[&str]) -> Command {
    let own = project.command(words);
    let mut command = Command::new(env!("CARGO_BIN_EXE_kforge"));
    command.args(words).current_dir(project.root()).env_clear();
    command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?)))).stdin(Stdio::null());
    command
}

/// What a worker with these properties says of the peaks of its device, as a build of such steps would ask.
pub(crate) fn peaks(url: &str, instance: &str, properties: &[(&str, &str)]) -> Result<OnceAnswer, Vec<String>> {
    let params = serde_json::json!({ "arch": "sm_90a", "protocol": kforge::plan::bound::PEAKS_PROTOCOL });
    let (kind, said) = (StepKind::Peaks, Arc::<Mutex<Vec<String>>>::default());
    let implementation = kforge::ops::implementation::implementations().of(kind, &params);
    let spec = Spec { kind, version: kind.version(), implementation, params, inputs: BTreeMap::new() };
    let limits = StepLimits { time_s: 60, run_s: 60, memory: 1 << 30, compiler_memory: 1 << 30 };
    let places = StepFile { cxx: None, python: None, toolchains: BTreeMap::new(), limits };
    let heard = said.clone();
    let options = RemoteOptions {
        access: Access { instance: instance.into(), ..access(url) },
        writes: false,
        holdout: false,
        private: vec![],
        interrupted: Arc::default(),
        report: Box::new(move |error| heard.lock().unwrap().push(error.to_string())),
        recheck: None,
    };
    let remote = Remote::start(options, Arc::new(Memory::default())).unwrap();
    let step = RemoteStep {
        program: Program::Installed("kforge".into()),
        spec: serde_json::to_vec(&spec).unwrap(),
        places: serde_json::to_vec(&places).unwrap(),
        inputs: vec![],
        properties: properties.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        compared: Digest::of(b"device"),
        is_observed: true,
        time_limit_s: 60,
        queue_limit: Duration::from_secs(20),
    };
    let read = |answer: &[u8]| match serde_json::from_slice(answer) {
        Ok(OnceAnswer::Answered { response: Response::Done { .. }, outputs, .. }) => Meaning::Result(outputs),
        _ => Meaning::Refused(String::from_utf8_lossy(answer).into_owned()),
    };
    let answer = remote.execute(step, Box::new(read));
    drop(remote);
    answer.map(|answer| serde_json::from_slice(&answer).unwrap()).ok_or_else(|| said.lock().unwrap().clone())
}

#[test]
fn a_worker_holds_its_device_and_executes_what_observes_one() {
    if !cfg!(any(debug_assertions, feature = "virtual-device")) {
        return;
    }
    let server = executing();
    server.state().options.by_bots = true;
    let project = Project::new();
    let url = server.url();
    let home = project.place().join("home of gpu");
    let start = |name: &str, words: &[&str]| {
        let words = [&["worker", "--bots", &url, "--name", name], words].concat();
        // What it lacks it says; these steps need no compiler.
        Worker::of(with_device(&project, &words), &home, &[("KFORGE_TOOLCHAIN_CXX", "/nowhere/g++")])
    };
    // A build measures on it.
    let lock = || Lock::acquire(&home.join("devices/locks/device-GPU-virtual-0"), Mode::Exclusive, Wait::No);
    let held = lock().unwrap();
    let late = with_device(&project, &["worker", "--bots", &url]).env("KFORGE_HOME", &home).output().unwrap();
    assert_eq!(late.status.code(), Some(75), "{}", String::from_utf8_lossy(&late.stderr));
    drop(held);
    let mut worker = start("gpu", &[]);
    until("it registers", || worker.log().contains("Registered"));
    let said = worker.log();
    assert!(said.contains("gpu=virtual-h, gpu-arch=sm_90, gpu-driver=580"), "{said}");
    assert!(said.contains("Lacking the C++ compiler: ") && said.contains("/nowhere/g++"), "{said}");
    let Ok(OnceAnswer::Answered { outputs, .. }) = peaks(&url, "", &[]) else { panic!("{}", worker.log()) };
    assert!(outputs.contains_key("observation") && outputs.contains_key("provenance"), "{outputs:?}");
    // Builds wait.
    assert!(matches!(lock(), Err(LockError::Busy(_))));
    // Another one of the same home does not get the device.
    let second = with_device(&project, &["worker", "--bots", &url]).env("KFORGE_HOME", &home).output().unwrap();
    let text = String::from_utf8_lossy(&second.stderr);
    assert!(
        second.status.code() == Some(75) && text.contains("another process holds the device `GPU-virtual-0`"),
        "{text}"
    );
    // One without a device cannot execute the step.
    assert_eq!(worker.terminate(), Some(0));
    let without = start("none", &["--no-device"]);
    until("it registers", || without.log().contains("Registered"));
    assert!(!without.log().contains("gpu="), "{}", without.log());
    server.state().results.clear();
    let why = peaks(&url, "", &[]).unwrap_err().concat();
    assert!(why.contains("a worker did not execute a step"), "{why}");
    // The lock is free again.
    drop(without);
    let again = start("again", &[]);
    until("it registers", || again.log().contains("Registered"));
}
