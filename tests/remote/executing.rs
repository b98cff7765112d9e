//! Builds whose steps are executed by the workers of a server, with the real program.

use std::fs;
use std::io::BufRead as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kforge::base::testing::skipped;

use crate::project::{Built, Project};
use crate::server::execution::{Given, Task, process};
use crate::server::{Method, Options, Server};

pub(crate) use crate::compiler_survey::ONE;

const KERNEL: &str =
    "__global__ void k(const float *x, float *y, int n) { int i = threadIdx.x; if (i < n) y[i] = 2 * x[i] + 1; }\n";

/// A server whose workers run what they get.
pub(crate) fn executing() -> Server {
    Server::start(Options { executes: true, ..Options::default() })
}

/// A project whose steps are executed by this server's workers, which have the program.
pub(crate) fn project(server: &Server, manifest: &str) -> Project {
    project_at(&server.url(), manifest)
}

/// The same of the server at an address.
pub(crate) fn project_at(url: &str, manifest: &str) -> Project {
    let project = Project::new().file("kernel.toml", manifest).file("k.cu", KERNEL);
    let program = project.program();
    let project = project.var("KFORGE_REMOTE_URL", url).var("KFORGE_REMOTE_EXECUTE", "true");
    project.var("KFORGE_REMOTE_PROGRAM", program).var("KFORGE_REMOTE_TIMEOUT", "5s")
}

/// A C++ compiler that adds a line to a file at each start; the file.
pub(crate) fn cxx_that_counts(project: &Project) -> (PathBuf, PathBuf) {
    let folder = project.place().join("compiler");
    fs::create_dir_all(&folder).unwrap();
    let (cxx, asked) = (folder.join("g++"), folder.join("asked"));
    // A compiler that is confined cannot write there.
    fs::write(&cxx, format!("#!/bin/sh\n{{ echo >> {}; }} 2>/dev/null\nexec /usr/bin/g++ \"$@\"\n", asked.display()))
        .unwrap();
    fs::set_permissions(&cxx, fs::Permissions::from_mode(0o755)).unwrap();
    (cxx, asked)
}

/// A C++ compiler that waits as long as a file is there, if it is confined; the file.
pub(crate) fn cxx_that_waits(project: &Project) -> (PathBuf, PathBuf) {
    let folder = project.place().join("compiler");
    fs::create_dir_all(&folder).unwrap();
    let (cxx, hold, asked) = (folder.join("g++"), folder.join("hold"), folder.join("asked"));
    fs::write(&hold, "").unwrap();
    let waits = format!("while [ -e '{}' ]; do sleep 0.01; done", hold.display());
    let script = format!("#!/bin/sh\n{{ echo >> '{}'; }} 2>/dev/null || {waits}\n", asked.display());
    fs::write(&cxx, script + "exec /usr/bin/g++ \"$@\"\n").unwrap();
    fs::set_permissions(&cxx, fs::Permissions::from_mode(0o755)).unwrap();
    (cxx, hold)
}

/// Makes a key without a passphrase; the text of its public half.
pub(crate) fn new_key(path: &Path) -> Option<String> {
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path).status();
    match made {
        Ok(status) if status.success() => fs::read_to_string(path.with_extension("pub")).ok(),
        _ => {
            skipped("no ssh-keygen on PATH");
            None
        }
    }
}

/// Builds with the network that a server is.
pub(crate) fn online(project: &Project, words: &[&str]) -> Built {
    let words = [&["build", "--message-format", "json"], words].concat();
    Built::of(&project.command(&words).output().unwrap())
}

/// How many steps other machines executed.
pub(crate) fn elsewhere(built: &Built) -> usize {
    built.finished().filter(|step| step["cache"] == "remote" && step["outcome"] == "executed").count()
}

/// How many steps of workers were executed.
pub(crate) fn executed(built: &Built) -> usize {
    let kinds = built.executed_kinds();
    ["compile", "inspect", "oracle", "verify"].iter().map(|kind| kinds.get(*kind).copied().unwrap_or_default()).sum()
}

pub(crate) fn warnings(built: &Built) -> usize {
    built.stderr().matches("remote cache").count()
}

/// The same build on this machine alone.
pub(crate) fn alone(project: &Project) -> String {
    let other = project.cloned("alone").fresh_home("home of alone").var("KFORGE_REMOTE_MODE", "off");
    other.built(&[]);
    other.report()
}

#[test]
fn workers_execute_every_step_and_their_results_are_claims() {
    let server = executing();
    let project = project(&server, ONE);
    let built = online(&project, &[]).expect(0);
    assert!(executed(&built) >= 4 && elsewhere(&built) == executed(&built), "{:?}", built.executed());
    assert_eq!((warnings(&built), project.report()), (0, alone(&project)), "{}", built.stderr());
    // They are remembered here, but not as results of this machine.
    let again = online(&project, &[]).expect(0);
    assert_eq!(executed(&again), 0);
    let strict = online(&project, &["--require-evidence"]).expect(0);
    assert!(executed(&strict) >= 4 && elsewhere(&strict) == 0, "{:?}", strict.executed());
    // Nothing of this machine's folders was sent.
    let home = project.home().display().to_string();
    let sent = server.state().blobs.values().any(|blob| String::from_utf8_lossy(&blob.bytes).contains(&home));
    assert!(!sent);
}

#[test]
fn holdout_shapes_stay_here_unless_they_may_be_sent() {
    let manifest = ONE.replace(
        "shapes.tiny = { n = 10 }",
        "shapes.tiny = { n = 10 }\nshapes.hidden = { n = 1021, role = \"holdout\" }",
    );
    let manifest = manifest.replace("block = [\"16\"]", "block = [\"1024\"]");
    for may in [false, true] {
        let server = executing();
        let project = project(&server, &manifest).var("KFORGE_REMOTE_HOLDOUT", may.to_string());
        let built = online(&project, &[]).expect(0);
        let here = executed(&built) - elsewhere(&built);
        assert_eq!(here > 0, !may, "{:?}", built.executed());
        // Neither steps that verify nor steps that compute expected values tell its dims. These digits in a digest are no dim.
        let tells = |blob: &crate::server::Blob| {
            let text = String::from_utf8_lossy(&blob.bytes);
            let is_part = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
            let mut found = text.match_indices("1021");
            found.any(|(at, _)| !is_part(text[..at].chars().next_back()) && !is_part(text[at + 4..].chars().next()))
        };
        assert_eq!(server.state().blobs.values().any(tells), may);
    }
}

#[test]
fn a_worker_with_another_compiler_refuses_and_the_build_is_that_of_this_machine() {
    let server = executing();
    let project = project(&server, ONE);
    let (cxx, _) = cxx_that_counts(&project);
    let refused = Arc::new(AtomicUsize::new(0));
    let counted = refused.clone();
    server.state().options.worker = Arc::new(move |mut task: Task| {
        let places = String::from_utf8(task.files["places.json"].clone()).unwrap();
        let is_compilation = places.contains("\"cxx\":{\"survey\"") && places.contains(":\"cxx\"");
        let places = places.replace("\"path\":\"/usr/bin/g++\"", &format!("\"path\":\"{}\"", cxx.display()));
        task.files.insert("places.json".into(), places.into());
        let given = process(task);
        counted.fetch_add(usize::from(is_compilation && given.code != 0), Ordering::Relaxed);
        given
    });
    let built = online(&project, &[]).expect(0).says("its `toolchain` has other parts: `c++`");
    assert!(refused.load(Ordering::Relaxed) > 0);
    assert_eq!((warnings(&built), project.report()), (1, alone(&project)), "{}", built.stderr());
    assert!(built.finished().filter(|step| step["kind"] == "compile").all(|step| step["cache"] != "remote"));
}

#[test]
fn a_compiler_below_the_home_directory_keeps_its_steps_here() {
    let server = executing();
    let project = project(&server, ONE);
    let (cxx, _) = cxx_that_counts(&project);
    let place = project.place().to_path_buf();
    let project = project.var("KFORGE_TOOLCHAIN_CXX", &cxx).var("HOME", place);
    let built = online(&project, &[]).expect(0);
    let there: Vec<&str> =
        built.finished().filter(|step| step["cache"] == "remote").map(|step| step["kind"].as_str().unwrap()).collect();
    assert!(there.contains(&"oracle") && !there.contains(&"compile") && !there.contains(&"verify"), "{there:?}");
    let path = cxx.display().to_string();
    let names = |blob: &crate::server::Blob| String::from_utf8_lossy(&blob.bytes).contains(&path);
    assert!(!server.state().blobs.values().any(names) && warnings(&built) == 0, "{}", built.stderr());
}

#[test]
fn a_source_that_does_not_compile_is_an_error_of_this_machine_without_a_warning() {
    let server = executing();
    let project = project(&server, ONE);
    project.edit("k.cu", "threadIdx.x;", "threadIdx.x; nonsense();");
    let built = online(&project, &[]).expect(101).says("nonsense");
    assert_eq!(warnings(&built), 0, "{}", built.stderr());
    assert!(server.state().counts.of(Method::Execute) > 0);
}

#[test]
fn a_wrong_result_of_the_cache_is_refused_where_it_is_computed_again() {
    let server = Server::start(Options::default());
    let first = project(&server, ONE).var("KFORGE_REMOTE_EXECUTE", "false").var("KFORGE_REMOTE_MODE", "read-write");
    online(&first, &[]).expect(0);
    for stored in server.state().results.values_mut() {
        let text = String::from_utf8(stored.result.stdout_raw.clone()).unwrap();
        if text.contains("\"observation\"") {
            stored.result.stdout_raw = text.replacen("\"verdict\":null", "\"verdict\":{\"fail\":\"forged\"}", 1).into();
        }
    }
    let second = first.cloned("second").fresh_home("home of second").var("KFORGE_REMOTE_RECHECK", "100");
    let built = online(&second, &[]).expect(0).says("is not what this machine computes: the verdict differs");
    assert_eq!((warnings(&built), second.report()), (1, first.report()), "{}", built.stderr());
}

#[test]
fn a_worker_that_fails_at_steps_that_run_here_is_reported_and_used_no_more() {
    for answer in [
        r#"{"answered":{"response":{"failed":{"message":"cannot confine this process","notes":[]}},"outputs":{}}}"#,
        r#"{"answered":{"response":{"done":{"verdict":null,"notes":[],"summary":"","forget":true}},"outputs":{}}}"#,
    ] {
        let server = executing();
        server.state().options.worker =
            Arc::new(move |_| Given { code: 101, answer: answer.into(), ..Given::default() });
        // More steps in flight would be sent before the first ones have run here.
        let project = project(&server, ONE);
        let built = online(&project, &["-j", "1"]).expect(0).says("this machine executes it");
        assert_eq!((warnings(&built), elsewhere(&built)), (1, 0), "{}", built.stderr());
        assert!(executed(&built) >= 4 && server.state().counts.of(Method::Execute) == 3, "{:?}", built.executed());
        assert_eq!(project.report(), alone(&project));
    }
}

#[test]
fn a_wrong_result_of_a_worker_is_refused_where_it_is_computed_again() {
    let server = executing();
    let healthy = server.state().options.worker.clone();
    server.state().options.worker = Arc::new(move |task: Task| {
        let given = healthy(task);
        if !given.outputs.contains_key("observation") {
            return given;
        }
        let mut answer: serde_json::Value = serde_json::from_slice(&given.answer).unwrap();
        answer["answered"]["response"]["done"]["verdict"] = serde_json::json!({ "fail": "forged" });
        Given { answer: serde_json::to_vec(&answer).unwrap(), ..given }
    });
    let project = project(&server, ONE).var("KFORGE_REMOTE_RECHECK", "100");
    let built = online(&project, &[]).expect(0).says("is not what this machine computes: the verdict differs");
    assert_eq!((warnings(&built), project.report()), (1, alone(&project)), "{}", built.stderr());
}

/// Builds a wrong kernel with a worker that gives for it what a right one gives, in a consistent answer: a plain build takes that as a claim, and one that
/// requires evidence computes it again.
fn is_refused_with_evidence(lies: impl Fn(&mut Task) + Send + Sync + 'static) {
    let server = executing();
    let project = project(&server, ONE);
    project.edit("k.cu", "2 * x[i] + 1", "3 * x[i] + 1");
    server.state().options.worker = Arc::new(move |mut task: Task| {
        lies(&mut task);
        process(task)
    });
    let built = online(&project, &[]).expect(0);
    assert!(elsewhere(&built) == executed(&built) && warnings(&built) == 0, "{}", built.stderr());
    let strict = online(&project, &["--require-evidence"]).expect(100).says("`y` is wrong at 0");
    assert_eq!(elsewhere(&strict), 0, "{:?}", strict.executed());
    let packed = project.command(&["package", "--output", "packed"]).output().unwrap();
    assert!(!packed.status.success() && !project.root().join("packed").exists(), "{packed:?}");
}

#[test]
fn a_wrong_and_consistent_compilation_is_refused_with_evidence() {
    is_refused_with_evidence(|task| {
        for bytes in task.files.values_mut() {
            if let Ok(text) = std::str::from_utf8(bytes) {
                *bytes = text.replace("3 * x[i] + 1", "2 * x[i] + 1").into();
            }
        }
    });
}

#[test]
fn a_wrong_and_consistent_verification_is_refused_with_evidence() {
    let server = executing();
    let (binary, keeps) = (Arc::new(std::sync::Mutex::new(vec![])), Arc::new(std::sync::Mutex::new(())));
    let kept = binary.clone();
    server.state().options.worker = Arc::new(move |task: Task| {
        let _one = keeps.lock().unwrap();
        let given = process(task);
        if let Some(bytes) = given.outputs.get("binary") {
            kept.lock().unwrap().clone_from(bytes);
        }
        given
    });
    online(&project(&server, ONE), &[]).expect(0);
    let right = binary.lock().unwrap().clone();
    assert!(!right.is_empty());
    is_refused_with_evidence(move |task| {
        if String::from_utf8_lossy(&task.files["spec.json"]).contains("\"kind\":\"verify\"") {
            *task.files.get_mut("in/binary").unwrap() = right.clone();
        }
    });
}

#[test]
fn what_workers_gave_is_stored_for_others() {
    let server = executing();
    let first = project(&server, ONE).var("KFORGE_REMOTE_MODE", "read-write");
    let there = elsewhere(&online(&first, &[]).expect(0));
    let second = first.cloned("second").fresh_home("home of second").var("KFORGE_REMOTE_EXECUTE", "false");
    let built = online(&second, &[]).expect(0);
    let hits = built.finished().filter(|step| step["cache"] == "remote" && step["outcome"] == "fresh").count();
    assert_eq!((executed(&built), hits, warnings(&built)), (0, there, 0), "{}", built.stderr());
}

#[test]
#[ignore = "second tier: workers that take their time"]
fn two_builds_at_once_let_a_worker_execute_each_step_once() {
    let server = executing();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    server.state().options.worker = Arc::new(move |task: Task| {
        counted.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(std::time::Duration::from_millis(500));
        process(task)
    });
    let one = project(&server, ONE);
    let other = one.cloned("other");
    let start = |project: &Project| project.command(&["build", "--message-format", "json"]).spawn().unwrap();
    let built = [start(&one), start(&other)].map(|child| Built::of(&child.wait_with_output().unwrap()).expect(0));
    let each = built.map(|built| (elsewhere(&built), executed(&built), warnings(&built)));
    // Each waits for the lock of the key. Then the server remembers the action.
    let steps = runs.load(Ordering::Relaxed);
    assert!(steps >= 4);
    assert_eq!(each, [(steps, steps, 0); 2]);
}

#[test]
fn doctor_reports_what_a_server_executes_and_lets_a_worker_execute_a_step() {
    let server = executing();
    let project = project(&server, ONE).var("KFORGE_REMOTE_PROPERTIES", "OSFamily=linux,pool=a-{toolchain}");
    let doctor = |project: &Project, code: i32| {
        let output = project.command(&["doctor", "--remote"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(code), "{text}");
        // A server that does not do has a remedy.
        assert_eq!(text.matches("to fix it: ").count(), usize::from(code != 0), "{text}");
        text
    };
    let said = |project: &Project| doctor(project, 0);
    let text = said(&project);
    for expected in ["sha256; kforge uses sha256", "OSFamily, pool (the operator", "a worker executed it in"] {
        assert!(text.contains(expected), "{text}");
    }
    assert!(!text.contains("stay here"), "{text}");
    // A compiler below the home directory.
    let (cxx, _) = cxx_that_counts(&project);
    let of_user = project.clone().var("KFORGE_TOOLCHAIN_CXX", &cxx).var("HOME", project.place());
    assert!(said(&of_user).contains(&format!("stay here steps of `{}`", cxx.display())), "{}", said(&of_user));
    // Workers that start and are of no use.
    let healthy = server.state().options.worker.clone();
    let failing = r#"{"answered":{"response":{"failed":{"message":"no room","notes":[]}},"outputs":{}}}"#;
    let workers: [(crate::server::execution::Worker, &str); 3] = [
        (Arc::new(|_| Given { code: 127, ..Given::default() }), "it gave no answer of kforge 0."),
        (Arc::new(move |_| Given { code: 101, answer: failing.into(), ..Given::default() }), "fails at it: no room"),
        (
            Arc::new(move |mut task: Task| {
                let mut spec: serde_json::Value = serde_json::from_slice(&task.files["spec.json"]).unwrap();
                spec["implementation"] = serde_json::json!(kforge::base::Digest::of(b"another"));
                task.files.insert("spec.json".into(), serde_json::to_vec(&spec).unwrap());
                healthy(task)
            }),
            "its kforge executes the step by other code",
        ),
    ];
    for (worker, expected) in workers {
        server.state().options.worker = worker;
        let text = doctor(&project, 101);
        assert!(text.contains("not executed: ") && text.contains(expected), "{text}");
    }
    let unknown = doctor(&project.clone().var("KFORGE_REMOTE_PROPERTIES", "gpu=h200"), 101);
    assert!(unknown.contains("no worker with the properties `gpu=h200`"), "{unknown}");
    assert!(unknown.contains("start a worker with these properties"), "{unknown}");
    // It executes, and it is to store results as well.
    let writes = project.clone().var("KFORGE_REMOTE_MODE", "read-write");
    server.state().options.worker = Arc::new(process);
    assert!(said(&writes).contains("stored and read"));
    server.state().options.stores_no_results = true;
    let text = doctor(&writes, 101);
    assert!(text.contains("a worker executed it in") && text.contains("set `remote.mode` to `read`"), "{text}");
    assert!(said(&project).contains("the server announces that it stores none"));
    server.state().options.stores_no_results = false;
    // A cache is all that is asked for.
    server.state().options.worker = Arc::new(|_| Given { code: 127, ..Given::default() });
    let output =
        project.clone().var("KFORGE_REMOTE_EXECUTE", "false").command(&["doctor", "--remote"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("not executed: ") && text.contains("to fix it: "), "{text}");
    server.state().options.executes = false;
    assert!(doctor(&project, 101).contains("no: steps run on this machine"));
    let cache = project.clone().var("KFORGE_REMOTE_EXECUTE", "false");
    assert!(said(&cache).contains("no: steps run on this machine"));
    assert!(doctor(&project.clone().var("KFORGE_REMOTE_MODE", "off"), 101).contains("is not used"));
    drop(server);
    let gone = doctor(&project.clone().var("KFORGE_REMOTE_URL", "grpc://127.0.0.1:1"), 101);
    assert!(gone.contains("cannot be used") && gone.contains("check the host and the port of `remote.url`"), "{gone}");
    let unnamed = doctor(&project.var("KFORGE_REMOTE_URL", ""), 101);
    assert!(unnamed.contains("no server is named") && unnamed.contains("set `remote.url`"), "{unnamed}");
}

#[expect(unsafe_code, reason = "a signal to a process")]
fn interrupt(child: &std::process::Child) {
    let pid = i32::try_from(child.id()).unwrap();
    // SAFETY: the child was not waited for, so the id is its own.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGINT) }, 0);
}

#[test]
fn doctor_that_is_interrupted_cancels_its_step_and_says_nothing_of_the_server() {
    let server = executing();
    let project = project(&server, ONE).var("KFORGE_REMOTE_TIMEOUT", "100s");
    let until = |method| {
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while server.state().counts.of(method) == 0 {
            assert!(std::time::Instant::now() < end, "{method:?}");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    };
    let interrupted_in = |method| {
        let mut child = project.command(&["doctor", "--remote"]).spawn().unwrap();
        until(method);
        // The name of the operation has to arrive.
        std::thread::sleep(std::time::Duration::from_millis(100));
        let began = std::time::Instant::now();
        interrupt(&child);
        let status = child.wait().unwrap();
        let said = std::io::read_to_string(child.stdout.take().unwrap()).unwrap();
        assert_eq!((status.code(), said.as_str()), (Some(130), ""), "{method:?}");
        assert!(began.elapsed() < std::time::Duration::from_secs(50), "{method:?}");
    };
    server.state().options.hangs = Some(Method::GetCapabilities);
    interrupted_in(Method::GetCapabilities);
    server.state().options.hangs = None;
    server.state().options.queues_forever = true;
    interrupted_in(Method::Execute);
    until(Method::CancelOperation);
}

#[test]
#[ignore = "second tier: many builds"]
fn no_fault_of_a_server_that_executes_changes_a_build_and_each_is_reported_once() {
    let reference = executing();
    let first = project(&reference, ONE);
    online(&first, &[]).expect(0);
    let report = first.report();
    assert_eq!(report, alone(&first));
    type Fault = fn(&mut Options);
    let faults: [(&str, Fault); 8] = [
        ("wrong outputs", |o| o.other_outputs = true),
        ("wrong contents", |o| o.wrong_bytes = true),
        ("no outputs", |o| o.no_outputs = true),
        ("no execution", |o| o.executes = false),
        ("unroutable", |o| o.properties.clear()),
        ("queued", |o| o.queues_forever = true),
        ("nothing starts", |o| o.worker = Arc::new(|_| Given { code: 127, ..Given::default() })),
        ("killed", |o| {
            o.worker = Arc::new(|_| Given { code: 137, answer: b"{\"answered\"".to_vec(), ..Given::default() })
        }),
    ];
    let machine = |server: &Server, name: &str| {
        let other = first.cloned(name).fresh_home(format!("home of {name}"));
        other.var("KFORGE_REMOTE_URL", server.url()).var("KFORGE_REMOTE_QUEUE_LIMIT", "1s")
    };
    for (name, fault) in faults {
        let server = executing();
        fault(&mut server.state().options);
        let project = machine(&server, name);
        let built = online(&project, &[]).expect(0);
        assert_eq!((warnings(&built), elsewhere(&built)), (1, 0), "{name}: {}", built.stderr());
        assert_eq!(project.report(), report, "{name}");
    }
    // Remembered failures are asked for again.
    let server = executing();
    server.state().options.remembers_failures = true;
    let healthy = server.state().options.worker.clone();
    server.state().options.worker = Arc::new(|_| Given { code: 127, ..Given::default() });
    online(&machine(&server, "broken"), &[]).expect(0);
    server.state().options.worker = healthy;
    let project = machine(&server, "mended");
    let built = online(&project, &[]).expect(0);
    assert_eq!((warnings(&built), project.report()), (0, report.clone()), "{}", built.stderr());
    assert_eq!(elsewhere(&built), executed(&built));
    // The server dies after so many executions.
    for after in [1, 2, 4] {
        let mut server = executing();
        let project = machine(&server, &format!("dead after {after}"));
        let mut child = project.command(&["build", "--message-format", "json"]).spawn().unwrap();
        while server.state().counts.of(Method::Execute) < after && child.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        server.stop();
        let built = Built::of(&child.wait_with_output().unwrap()).expect(0);
        assert_eq!(warnings(&built), 1, "{after}: {}", built.stderr());
        // The last one was not answered, and runs here with the rest.
        assert!(elsewhere(&built) < executed(&built) && (after < 4 || elsewhere(&built) > 0), "{after}");
        assert_eq!(project.report(), report, "{after}");
    }
}

#[test]
#[ignore = "second tier: the program is sent"]
fn a_worker_without_kforge_gets_it_with_the_steps() {
    let server = executing();
    let project = project(&server, ONE).var("KFORGE_REMOTE_PROGRAM", "");
    let built = online(&project, &[]).expect(0);
    assert_eq!((elsewhere(&built), warnings(&built)), (executed(&built), 0), "{}", built.stderr());
    assert_eq!(server.state().counts.of(Method::Write), 1);
}

#[test]
#[ignore = "second tier: downloads buildbox-casd from the network"]
fn casd_executes_an_example_with_its_own_runner() {
    use crate::casd::Casd;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/quickstart");
    let project = Project::new();
    crate::builds::copy(&folder, project.root());
    let program = project.program();
    let Some(mut casd) = Casd::executing(&[program.parent().unwrap()]) else { return };
    let using = |project: Project, url: &str| {
        let project = project.var("KFORGE_REMOTE_URL", url).var("KFORGE_REMOTE_EXECUTE", "true");
        project.var("KFORGE_REMOTE_HOLDOUT", "true").var("KFORGE_REMOTE_PROGRAM", program.clone())
    };
    let project = using(project, casd.url());
    let built = online(&project, &["--target", "cpu"]).expect(0);
    let (there, all) = (elsewhere(&built), executed(&built));
    assert_eq!(warnings(&built), 0, "{}", built.stderr());
    assert!(there > 0 && there == all, "{there} of {all}");
    let other = project.cloned("alone").fresh_home("home of alone").var("KFORGE_REMOTE_MODE", "off");
    other.built(&["--target", "cpu"]);
    assert_eq!(project.report(), other.report());
    // Killed in the middle.
    let third = project.cloned("third").fresh_home("home of third");
    let url = casd.url().to_string();
    casd.kill();
    let Some(mut casd) = Casd::executing(&[program.parent().unwrap()]) else { return };
    assert_ne!(casd.url(), url);
    let third = third.var("KFORGE_REMOTE_URL", casd.url());
    let mut child = third.command(&["build", "--message-format", "json", "--target", "cpu"]).spawn().unwrap();
    // The first steps end in their order; the rest is under way.
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    let mut text = String::new();
    let is_elsewhere = |line: &str| line.contains("\"cache\":\"remote\"") && line.contains("\"executed\"");
    while !text.lines().next_back().is_some_and(is_elsewhere) {
        text += &(lines.next().expect("a step of a worker").unwrap() + "\n");
    }
    casd.kill();
    lines.for_each(|line| text += &(line.unwrap() + "\n"));
    let ended = child.wait_with_output().unwrap();
    let built = Built::of(&std::process::Output { stdout: text.into(), ..ended }).expect(0);
    assert_eq!(warnings(&built), 1, "{}", built.stderr());
    assert!(elsewhere(&built) > 0 && elsewhere(&built) < executed(&built), "{:?}", built.executed());
    assert_eq!(third.report(), other.report());
}
