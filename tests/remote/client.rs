//! The client against a server with faults: what it reads, what it stores, and that no fault is more than a missing result.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kforge::base::Digest;
use kforge::config::ServerUrl;
use kforge::engine::{Blobs, Hit, RemoteCache, RemoteQuestion};
use kforge::record::event::CacheOrigin;
use kforge::record::{Spec, StepKind, StepResult};
use kforge_remote::{Access, Remote, RemoteBlobs, RemoteOptions, Sampled, Tls};
use tonic::Code;

use crate::certificates::Authority;
use crate::server::{Compressor, Function, Method, Options, Refusal, Server, State};

/// Makes a fault.
pub(crate) type Fault = fn(&mut Options);

/// A store in memory.
#[derive(Default)]
pub(crate) struct Memory(Mutex<HashMap<Digest, Vec<u8>>>);

impl Blobs for Memory {
    fn get(&self, digest: &Digest) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.lock().unwrap().get(digest).cloned())
    }
    fn path(&self, _: &Digest) -> io::Result<Option<PathBuf>> {
        Ok(None)
    }
    fn put(&self, bytes: &[u8]) -> io::Result<Digest> {
        let digest = Digest::of(bytes);
        self.0.lock().unwrap().insert(digest, bytes.to_vec());
        Ok(digest)
    }
    fn put_file(&self, path: &Path) -> io::Result<Digest> {
        self.put(&std::fs::read(path)?)
    }
    fn has(&self, digest: &Digest) -> bool {
        self.0.lock().unwrap().contains_key(digest)
    }
}

/// A machine: a store, and the remote cache behind it.
pub(crate) struct Machine {
    pub(crate) store: Arc<Memory>,
    pub(crate) remote: Arc<Remote>,
    pub(crate) blobs: RemoteBlobs,
    pub(crate) warnings: Arc<Mutex<Vec<String>>>,
    pub(crate) interrupted: Arc<AtomicBool>,
}

pub(crate) fn access(url: &str) -> Access {
    Access {
        url: url.parse::<ServerUrl>().unwrap(),
        instance: String::new(),
        timeout: Duration::from_secs(5),
        token_file: None,
        credential_helper: None,
        environment: BTreeMap::new(),
        tls: Tls::default(),
    }
}

impl Machine {
    fn new(access: Access) -> Machine {
        Machine::checking(access, None)
    }

    /// A machine that computes a sample of results again.
    fn checking(access: Access, recheck: Option<Sampled>) -> Machine {
        let (store, warnings, interrupted) =
            (Arc::<Memory>::default(), Arc::<Mutex<Vec<String>>>::default(), Arc::default());
        let heard = warnings.clone();
        let options = RemoteOptions {
            access,
            writes: true,
            holdout: false,
            private: vec!["/home/me".into(), "/home/\"q\"".into()],
            interrupted: Arc::clone(&interrupted),
            report: Box::new(move |error| heard.lock().unwrap().push(error.to_string())),
            recheck,
        };
        let remote = Arc::new(Remote::start(options, store.clone()).unwrap());
        let blobs = RemoteBlobs::new(store.clone(), remote.clone());
        Machine { store, remote, blobs, warnings, interrupted }
    }

    pub(crate) fn of(server: &Server) -> Machine {
        Machine::new(access(&server.url()))
    }

    /// A machine that waits only so long for an answer.
    pub(crate) fn hasty(server: &Server, timeout: Duration) -> Machine {
        Machine::new(Access { timeout, ..access(&server.url()) })
    }

    /// Asks for the results of these keys, all at once.
    fn ask_all(&self, questions: Vec<RemoteQuestion>) -> Vec<Option<Hit>> {
        let (send, answers) = std::sync::mpsc::channel();
        let count = questions.len();
        for (at, question) in questions.into_iter().enumerate() {
            let send = send.clone();
            self.remote.ask(question, Box::new(move |hit| send.send((at, hit)).unwrap()));
        }
        let mut all: Vec<_> = (0..count).map(|_| answers.recv_timeout(Duration::from_secs(60)).unwrap()).collect();
        all.sort_by_key(|(at, _)| *at);
        all.into_iter().map(|(_, hit)| hit).collect()
    }

    pub(crate) fn ask(&self, number: usize, read: &[&str]) -> Option<Hit> {
        self.ask_all(vec![question(number, read)]).remove(0)
    }

    /// Stores a result, and waits until it is stored. Returns how many are not.
    pub(crate) fn put(&self, number: usize, result: &StepResult) -> usize {
        self.remote.put(&spec(number).key(), &spec(number), result);
        self.remote.finish()
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap().clone()
    }
}

fn spec(number: usize) -> Spec {
    let params = serde_json::json!({ "number": number });
    Spec { kind: StepKind::Compile, version: 1, implementation: None, params, inputs: BTreeMap::new() }
}

fn question(number: usize, read: &[&str]) -> RemoteQuestion {
    let spec = spec(number);
    RemoteQuestion {
        key: spec.key(),
        spec: Arc::new(spec),
        read: read.iter().map(ToString::to_string).collect(),
        can_run: true,
    }
}

/// A result whose outputs are in the machine's store.
pub(crate) fn result(machine: &Machine, number: usize) -> StepResult {
    let outputs = ["binary", "facts"]
        .map(|name| (name.to_string(), machine.store.put(format!("{name} of {number}").as_bytes()).unwrap()));
    StepResult { outputs: outputs.into(), verdict: None, notes: vec![], summary: format!("{number}"), duration_ms: 3 }
}

/// A server with the results of so many numbers.
fn filled(options: Options, count: usize) -> Server {
    let server = Server::start(options);
    let machine = Machine::of(&server);
    for number in 0..count {
        machine.remote.put(&spec(number).key(), &spec(number), &result(&machine, number));
    }
    assert_eq!((machine.remote.finish(), machine.warnings()), (0, vec![]));
    server
}

fn bytes(number: usize, name: &str) -> Vec<u8> {
    format!("{name} of {number}").into_bytes()
}

#[test]
fn what_one_machine_stores_another_finds_and_fetches_only_what_is_read() {
    for functions in [vec![Function::Sha256], vec![Function::Sha256, Function::Blake3]] {
        let server = filled(Options { functions, ..Options::default() }, 300);
        let stored = server.state().counts.clone();
        assert!(stored.of(Method::BatchUpdateBlobs) < 20, "{stored:?}");
        let sizes = |state: &State| (state.results.len(), state.blobs.len());
        assert_eq!(sizes(&server.state()), (300, 600));
        let machine = Machine::of(&server);
        let hits = machine.ask_all((0..301).map(|number| question(number, &["facts"])).collect());
        assert_eq!(hits.iter().flatten().count(), 300);
        let hit = hits[7].as_ref().unwrap();
        assert_eq!((hit.result.summary.as_str(), hit.origin, hit.tag), ("7", CacheOrigin::Remote, None));
        assert_eq!(machine.store.get(&hit.result.outputs["facts"]).unwrap(), Some(bytes(7, "facts")));
        assert!(!machine.store.has(&hit.result.outputs["binary"]) && machine.blobs.has(&hit.result.outputs["binary"]));
        let counts = server.state().counts.clone();
        assert_eq!(counts.blobs_read, 300);
        assert!(counts.of(Method::BatchReadBlobs) <= 60, "{counts:?}");
        // Two are read one by one, the others together.
        assert_eq!(machine.blobs.get(&hit.result.outputs["binary"]).unwrap(), Some(bytes(7, "binary")));
        let all: Vec<Digest> = hits.iter().flatten().map(|hit| hit.result.outputs["binary"]).collect();
        machine.blobs.fetch(&all);
        assert!(all.iter().all(|digest| machine.store.has(digest)));
        assert_eq!(server.state().counts.blobs_read, 600);
        assert_eq!(machine.warnings(), Vec::<String>::new());
        // What is stored already is not sent again.
        let written = server.state().counts.blobs_written;
        assert_eq!(machine.put(7, &result(&machine, 7)), 0);
        assert_eq!(server.state().counts.blobs_written, written);
    }
}

#[test]
fn large_contents_are_streams_compressed_where_the_server_can() {
    for compressors in [vec![], vec![Compressor::Zstd]] {
        let server = Server::start(Options { compressors, max_batch: 100_000, ..Options::default() });
        let machine = Machine::of(&server);
        let large: Vec<u8> = (0..2_500_000u32).map(|n| (n / 7) as u8).collect();
        let digest = machine.store.put(&large).unwrap();
        let mut stored = result(&machine, 1);
        stored.outputs.insert("binary".into(), digest);
        assert_eq!(machine.put(1, &stored), 0);
        let other = Machine::of(&server);
        let hit = other.ask(1, &[]).unwrap();
        assert_eq!(other.blobs.get(&hit.result.outputs["binary"]).unwrap(), Some(large));
        let counts = server.state().counts.clone();
        assert_eq!((counts.of(Method::Write), counts.of(Method::Read)), (1, 1));
        assert_eq!((machine.warnings(), other.warnings()), (vec![], vec![]));
    }
}

#[test]
fn many_requests_are_in_flight_and_a_server_that_limits_them_is_no_error() {
    let server = filled(Options::default(), 200);
    server.state().options.delay = Duration::from_millis(20);
    let machine = Machine::of(&server);
    let began = Instant::now();
    let questions = || (0..200).map(|number| question(number, &[])).collect();
    assert_eq!(machine.ask_all(questions()).iter().flatten().count(), 200);
    // One after the other would take four seconds.
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    let most = server.state().counts.most_in_flight;
    assert!((16..=64).contains(&most), "{most}");
    server.state().options.limit = Some(12);
    let machine = Machine::of(&server);
    assert_eq!((machine.ask_all(questions()).iter().flatten().count(), machine.warnings()), (200, vec![]));
}

#[test]
fn every_fault_is_a_missing_result_and_one_warning() {
    let server = filled(Options::default(), 9);
    let faults: [(&str, Fault, usize, &str); 9] = [
        ("a result of another program", |o| o.failed = true, 0, ""),
        ("no outputs", |o| o.no_outputs = true, 0, "a stored result cannot be read: no output `binary`"),
        ("half a result", |o| o.truncated_stdout = true, 0, "a stored result cannot be read: "),
        ("wrong contents", |o| o.wrong_bytes = true, 0, "the server gave other bytes than those of blake3:"),
        (
            "no contents",
            |o| o.missing = Some(Arc::new(|_| true)),
            0,
            "the server no longer has a content that it named",
        ),
        (
            "unavailable",
            |o| o.refusals = vec![Refusal::always(Method::GetActionResult, Code::Unavailable)],
            0,
            "GetActionResult: Unavailable",
        ),
        ("no token", |o| o.token = Some("secret".into()), 0, "GetCapabilities: Unauthenticated"),
        ("another instance", |o| o.instance = "other".into(), 0, "GetCapabilities: NotFound"),
        ("for a moment", |o| o.refusals = vec![Refusal::next(2, Method::GetActionResult, Code::Unavailable)], 9, ""),
    ];
    for (name, fault, hits, warning) in faults {
        let before = server.state().options.clone();
        fault(&mut server.state().options);
        let machine = Machine::of(&server);
        let found = machine.ask_all((0..9).map(|number| question(number, &["facts"])).collect());
        assert_eq!(found.iter().flatten().count(), hits, "{name}");
        let warnings = machine.warnings();
        assert_eq!(warnings.len(), usize::from(!warning.is_empty()), "{name}: {warnings:?}");
        assert!(warnings.iter().all(|said| said.starts_with(warning)), "{name}: {warnings:?}");
        server.state().options = before;
    }
}

#[test]
fn after_errors_in_a_row_nothing_more_is_sent() {
    let server = filled(Options::default(), 1);
    server.state().options.refusals = vec![Refusal::always(Method::GetActionResult, Code::PermissionDenied)];
    let machine = Machine::of(&server);
    assert!(machine.ask(0, &[]).is_none());
    let sent = server.state().counts.all();
    assert!(!machine.remote.serves(&spec(0)));
    assert!((0..20).all(|number| machine.ask(number, &[]).is_none()));
    assert_eq!(server.state().counts.all(), sent);
    assert_eq!(machine.warnings().len(), 1);
}

#[test]
fn a_content_that_is_gone_later_is_no_longer_named() {
    let mut server = filled(Options::default(), 2);
    let machine = Machine::of(&server);
    let binary = |number| machine.ask(number, &[]).unwrap().result.outputs["binary"];
    let (first, second) = (binary(0), binary(1));
    assert!(machine.blobs.has(&first) && machine.blobs.has(&second));
    server.state().options.missing = Some(Arc::new(|_| true));
    machine.blobs.fetch(&[first]);
    assert!(!machine.blobs.has(&first) && machine.blobs.has(&second));
    server.stop();
    assert_eq!(machine.blobs.get(&second).unwrap(), None);
    assert!(!machine.blobs.has(&second));
    assert_eq!(machine.warnings().len(), 1, "{:?}", machine.warnings());
}

#[test]
fn a_server_that_hangs_or_dies_delays_nothing_for_long() {
    let mut server = filled(Options::default(), 1);
    server.state().options.delay = Duration::from_secs(100);
    let hung = Machine::new(Access { timeout: Duration::from_millis(200), ..access(&server.url()) });
    let began = Instant::now();
    assert!(hung.ask(0, &[]).is_none());
    assert!(began.elapsed() < Duration::from_secs(10));
    assert!(hung.warnings()[0].contains("no answer within"), "{:?}", hung.warnings());
    // An interrupted build does not wait.
    let machine = Machine::of(&server);
    let began = Instant::now();
    let interrupted = machine.interrupted.clone();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        interrupted.store(true, Ordering::Relaxed);
    });
    assert!(machine.ask(0, &[]).is_none() && began.elapsed() < Duration::from_secs(4));
    server.stop();
    let dead = Machine::of(&server);
    assert!(dead.ask(0, &[]).is_none());
    assert!(dead.warnings()[0].starts_with("cannot connect: "), "{:?}", dead.warnings());
}

#[test]
fn results_that_cannot_be_stored_are_counted_and_reading_goes_on() {
    let faults: [(&str, Fault); 3] = [
        ("takes none", |o| o.read_only = true),
        ("RESOURCE", |o| o.full = true),
        ("UpdateActionResult", |o| {
            o.refusals = vec![Refusal::always(Method::UpdateActionResult, Code::PermissionDenied)]
        }),
    ];
    for (name, fault) in faults {
        let server = filled(Options::default(), 1);
        fault(&mut server.state().options);
        let machine = Machine::of(&server);
        assert_eq!(machine.put(5, &result(&machine, 5)), 1, "{name}");
        assert_eq!(machine.warnings().len(), 1, "{name}: {:?}", machine.warnings());
        assert!(machine.ask(0, &["facts"]).is_some() && machine.ask(5, &[]).is_none(), "{name}");
    }
}

#[test]
fn what_is_private_or_asks_a_device_is_not_sent() {
    let server = Server::start(Options::default());
    let machine = Machine::of(&server);
    let private = StepResult { summary: "in /home/me/kernels".into(), ..result(&machine, 1) };
    assert_eq!(machine.put(1, &private), 0);
    assert_eq!(server.state().counts.all(), 0, "nothing is sent before there is something to send");
    let of = |kind, params| Spec { kind, params, ..spec(1) };
    let serves = |kind, params| machine.remote.serves(&of(kind, params));
    let (cpu, device) = (serde_json::json!({ "arch": "cpu" }), serde_json::json!({ "arch": "sm_90" }));
    assert!(serves(StepKind::Verify, cpu.clone()) && serves(StepKind::Compile, device.clone()));
    assert!(!serves(StepKind::Verify, device.clone()) && !serves(StepKind::Bench, device));
    assert!(!serves(StepKind::Judge, cpu.clone()) && !serves(StepKind::Generate, cpu.clone()));
    assert!(!serves(StepKind::Verify, serde_json::json!({ "arch": "cpu", "holdout": true })));
}

#[test]
fn credentials_are_sent_to_whom_they_belong() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let server = filled(Options::default(), 1);
    server.state().options.token = Some("secret".into());
    let with_token = |text: &str| Access { token_file: Some(file("token", text)), ..access(&server.url()) };
    assert!(Machine::new(with_token("secret\n")).ask(0, &[]).is_some());
    let refused = Machine::new(with_token("other"));
    assert!(refused.ask(0, &[]).is_none() && refused.warnings()[0].contains("Unauthenticated"));
    // A helper finds its token in the environment, and answers with headers.
    let script = "#!/bin/sh\nset -e\n[ \"$1\" = get ] || exit 3\ncat > \"$SEEN\"\nprintf '{\"headers\": {\"Authorization\": [\"Bearer %s\"]}}' \"$TOKEN\"\n";
    let helper = file("helper", script);
    std::fs::set_permissions(&helper, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let seen = folder.path().join("seen");
    let environment = |token: &str| {
        let vars = [("TOKEN", token), ("SEEN", seen.to_str().unwrap()), ("PATH", "/usr/bin:/bin")];
        vars.map(|(name, value)| (name.to_string(), value.to_string())).into()
    };
    let helped = |token: &str| Access {
        credential_helper: Some(helper.clone()),
        environment: environment(token),
        ..access(&server.url())
    };
    assert!(Machine::new(helped("secret")).ask(0, &[]).is_some());
    let asked: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&seen).unwrap()).unwrap();
    assert_eq!(asked["uri"], server.url().replace("grpc:", "http:"));
    let wrong = Machine::new(Access { environment: BTreeMap::new(), ..helped("secret") });
    assert!(wrong.ask(0, &[]).is_none());
    assert!(wrong.warnings()[0].contains("the credential helper"), "{:?}", wrong.warnings());
    // Not without encryption to another machine: nothing is even connected to.
    let exposed = Machine::new(Access { url: "grpc://192.0.2.1:1".parse().unwrap(), ..with_token("secret") });
    assert!(exposed.ask(0, &[]).is_none());
    assert!(exposed.warnings()[0].contains("only to `grpcs://` servers"), "{:?}", exposed.warnings());
    let missing = Machine::new(Access { token_file: Some(folder.path().join("none")), ..access(&server.url()) });
    assert!(missing.ask(0, &[]).is_none() && missing.warnings()[0].contains("none`"), "{:?}", missing.warnings());
}

#[test]
fn both_ends_of_an_encrypted_connection_show_their_certificates() {
    let (authority, other) = (Authority::new(), Authority::new());
    let certified = authority.server();
    let tls = crate::server::Tls {
        certificate: certified.certificate,
        key: certified.key,
        client_authority: Some(authority.certificate.clone()),
    };
    let server = Server::start(Options { tls: Some(tls), ..Options::default() });
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        Some(path)
    };
    let client = authority.client();
    let tls = Tls {
        ca: file("ca", &authority.certificate),
        certificate: file("certificate", &client.certificate),
        key: file("key", &client.key),
    };
    let of = |tls: Tls| Machine::new(Access { tls, ..access(&server.url()) });
    let machine = of(tls.clone());
    assert_eq!((machine.put(1, &result(&machine, 1)), machine.warnings()), (0, vec![]));
    assert!(of(tls.clone()).ask(1, &["facts"]).is_some());
    let stranger = file("stranger", &other.certificate);
    for wrong in [
        Tls { ca: stranger, ..tls.clone() },
        Tls { certificate: None, key: None, ..tls.clone() },
        Tls { key: None, ..tls.clone() },
        Tls { ca: None, ..tls },
    ] {
        let machine = of(wrong);
        assert!(machine.ask(1, &[]).is_none());
        assert_eq!(machine.warnings().len(), 1, "{:?}", machine.warnings());
    }
}

#[test]
fn a_result_of_the_sample_counts_only_where_this_machine_computes_the_same() {
    let server = Server::start(Options::default());
    let (first, oracle) = (Machine::of(&server), |number: usize| Spec { kind: StepKind::Fatbin, ..spec(number) });
    let asked = |machine: &Machine, spec: &Spec| {
        let (send, answer) = std::sync::mpsc::channel();
        let question = RemoteQuestion { key: spec.key(), spec: Arc::new(spec.clone()), read: vec![], can_run: true };
        machine.remote.ask(question, Box::new(move |hit| send.send(hit).unwrap()));
        answer.recv_timeout(Duration::from_secs(60)).unwrap()
    };
    for spec in [oracle(1), oracle(2), spec(3)] {
        first.remote.put(&spec.key(), &spec, &result(&first, 1));
    }
    assert_eq!(first.remote.finish(), 0);
    let sampled = oracle(1).key();
    let machine = Machine::checking(access(&server.url()), Some(Box::new(move |key| *key == sampled)));
    assert!(asked(&machine, &oracle(2)).is_some(), "not of the sample");
    assert_eq!((asked(&machine, &oracle(1)), machine.remote.rechecks(&sampled)), (None, true));
    assert!(!machine.remote.compare(&sampled, &oracle(1), Some(&result(&machine, 1))));
    assert_eq!((machine.remote.rechecks(&sampled), machine.warnings()), (false, vec![]), "the same");
    // A compiler does not always give the same bytes.
    let all = || -> Option<Sampled> { Some(Box::new(|_| true)) };
    assert!(asked(&Machine::checking(access(&server.url()), all()), &spec(3)).is_some());
    let machine = Machine::checking(access(&server.url()), all());
    assert_eq!(asked(&machine, &oracle(1)), None);
    assert!(machine.remote.compare(&sampled, &oracle(1), Some(&result(&machine, 7))));
    let said = machine.warnings();
    assert!(
        said.len() == 1 && said[0].contains(&sampled.to_string()) && said[0].contains("`binary` differs"),
        "{said:?}"
    );
    assert!(!machine.remote.serves(&oracle(2)), "whoever stored it may have stored others");
    assert_eq!(machine.remote.finish(), 0);
    // A step that fails here has no result to compare, and one that cannot run here gets theirs.
    let machine = Machine::checking(access(&server.url()), all());
    assert_eq!(asked(&machine, &oracle(1)), None);
    assert!(machine.remote.compare(&sampled, &oracle(1), None) && machine.warnings()[0].contains("fails here"));
    let machine = Machine::checking(access(&server.url()), all());
    assert_eq!(asked(&machine, &oracle(1)), None);
    assert!(machine.remote.kept_back(&sampled).is_some() && !machine.remote.rechecks(&sampled));
    let spec = Arc::new(oracle(1));
    let (send, answer) = std::sync::mpsc::channel();
    let question = RemoteQuestion { key: sampled, spec, read: vec![], can_run: false };
    machine.remote.ask(question, Box::new(move |hit| send.send(hit).unwrap()));
    assert!(answer.recv_timeout(Duration::from_secs(60)).unwrap().is_some(), "it is not to run here");
}
