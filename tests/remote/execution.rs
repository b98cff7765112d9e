//! The client against a server that executes, with faults: what a worker gets, what comes back, and that no fault is more than a step that runs here.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use kforge::base::Digest;
use kforge::engine::Blobs;
use kforge::record::Form;
use kforge::record::spec::Tree;
use kforge_remote::{Meaning, Program, RemoteStep, StepInput};
use tonic::Code;

use crate::client::{Fault, Machine};
use crate::server::execution::{Given, Task};
use crate::server::{Method, Options, Refusal, Server};

/// What the worker of most tests writes.
const BINARY: &[u8] = b"machine code";

fn executing() -> Server {
    let worker = |_: Task| done();
    Server::start(Options { executes: true, worker: Arc::new(worker), ..Options::default() })
}

fn done() -> Given {
    Given { code: 0, answer: b"done".to_vec(), outputs: [("binary".to_string(), BINARY.to_vec())].into() }
}

/// Reads the answers of these workers.
fn meaning(answer: &[u8]) -> Meaning {
    let outputs = || BTreeMap::from([("binary".to_string(), Digest::of(BINARY))]);
    match answer {
        b"done" => Meaning::Result(outputs()),
        b"failed" | b"timed out" => Meaning::Failed,
        b"another machine" => Meaning::Differs("its `toolchain` has other parts".into()),
        other => Meaning::Refused(String::from_utf8_lossy(other).into_owned()),
    }
}

fn step(machine: &Machine, spec: &str) -> RemoteStep {
    let header = machine.store.put(b"#pragma once").unwrap();
    let source = Tree { files: [("a/b.h".to_string(), header), ("k.cu".to_string(), header)].into() };
    let tree = machine.store.put(&serde_json::to_vec(&source).unwrap()).unwrap();
    let input = |name: &str, digest, form| StepInput { name: name.into(), digest, form };
    RemoteStep {
        program: Program::Installed("/opt/kforge".into()),
        spec: spec.as_bytes().to_vec(),
        places: b"{}".to_vec(),
        inputs: vec![input("source", tree, Form::Tree), input("toolchain-c++", header, Form::Blob)],
        properties: vec![("ISA".into(), "x86-64".into()), ("OSFamily".into(), "linux".into())],
        compared: Digest::of(b"machine"),
        is_observed: false,
        time_limit_s: 60,
        queue_limit: Duration::from_secs(60),
    }
}

fn execute(machine: &Machine, step: RemoteStep) -> Option<Vec<u8>> {
    machine.remote.execute(step, Box::new(meaning))
}

/// Waits until so many operations were cancelled, which happens after the step's answer. No more are.
fn cancelled(server: &Server, count: usize) {
    let began = Instant::now();
    while server.state().counts.of(Method::CancelOperation) < count && began.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(server.state().counts.of(Method::CancelOperation), count);
}

fn warnings(machine: &Machine) -> Vec<String> {
    machine.warnings.lock().unwrap().clone()
}

#[test]
fn a_worker_gets_the_files_of_a_step_and_its_outputs_come_back() {
    let server = executing();
    let (tell, told) = mpsc::channel();
    server.state().options.worker = Arc::new(move |task: Task| {
        tell.send((task.words, task.files)).unwrap();
        done()
    });
    let machine = Machine::of(&server);
    assert_eq!(execute(&machine, step(&machine, "{}")).as_deref(), Some(&b"done"[..]));
    assert_eq!(machine.store.get(&Digest::of(BINARY)).unwrap().as_deref(), Some(BINARY));
    let (words, files) = told.try_recv().unwrap();
    assert_eq!(words, ["/opt/kforge", "worker", "--once", "spec.json", "in", "out", "--places", "places.json"]);
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(names, ["in/source/a/b.h", "in/source/k.cu", "in/toolchain-c++", "places.json", "spec.json"]);
    assert_eq!(files["in/source/a/b.h"], b"#pragma once");
    // The same action again: the server knows its result.
    let other = Machine::of(&server);
    assert!(execute(&other, step(&other, "{}")).is_some() && told.try_recv().is_err());
    assert_eq!((warnings(&machine), warnings(&other)), (vec![], vec![]));
    let counts = server.state().counts.clone();
    assert_eq!((counts.of(Method::Execute), counts.of(Method::CancelOperation)), (2, 0));
}

#[test]
fn every_fault_leads_to_a_run_here_with_one_warning() {
    let answers = |answer: &'static str, code| -> crate::server::execution::Worker {
        Arc::new(move |_: Task| Given { code, answer: answer.as_bytes().to_vec(), ..done() })
    };
    // The fault, and what the warning says.
    let faults: [(Fault, &str); 6] = [
        (|o| o.executes = false, "no execution of steps"),
        (|o| o.other_outputs = true, "lacks the output `binary`"),
        (|o| o.wrong_bytes = true, "other bytes"),
        (|o| o.no_outputs = true, "lacks the output `binary`"),
        (|o| o.properties.clear(), "no worker with the properties `ISA=x86-64,OSFamily=linux`"),
        (|o| o.refusals = vec![Refusal::always(Method::Execute, Code::Internal)], "Execute: Internal"),
    ];
    for (at, (fault, says)) in faults.into_iter().enumerate() {
        let server = executing();
        fault(&mut server.state().options);
        let machine = Machine::of(&server);
        let answer = execute(&machine, step(&machine, "{}"));
        let said = warnings(&machine);
        assert!(answer.is_none() && said.len() == 1 && said[0].contains(says), "{at}: {said:?}");
        // What cannot go away is not tried again.
        let before = server.state().counts.of(Method::Execute);
        execute(&machine, step(&machine, "{ }"));
        let is_final = says.contains("no ");
        assert_eq!(server.state().counts.of(Method::Execute) == before, is_final, "{says}");
        assert!(warnings(&machine).len() <= 1);
    }
    for (answer, code, says) in [
        ("its `toolchain` has other parts: `cc1plus`", 101, Some("other parts: `cc1plus`")),
        ("", 127, Some("did not execute")),
        ("done", 1, Some("ended with code 1")),
        // The compiler refuses the source, as it will here.
        ("failed", 101, None),
    ] {
        let server = executing();
        server.state().options.worker = answers(answer, code);
        let machine = Machine::of(&server);
        assert_eq!(execute(&machine, step(&machine, "{}")), None);
        let said = warnings(&machine);
        assert_eq!(said.len(), usize::from(says.is_some()), "{said:?}");
        assert!(says.is_none_or(|says| said[0].contains(says)), "{said:?}");
    }
}

#[test]
fn a_failure_that_the_server_remembers_is_asked_for_again_without_its_cache() {
    for first in ["bwrap: execvp /bin/sh", "failed", "timed out"] {
        let server = executing();
        server.state().options.remembers_failures = true;
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = runs.clone();
        server.state().options.worker = Arc::new(move |_: Task| match counted.fetch_add(1, Ordering::Relaxed) {
            0 => Given { answer: first.into(), ..done() },
            _ => done(),
        });
        let machine = Machine::of(&server);
        assert_eq!(execute(&machine, step(&machine, "{}")), None);
        let other = Machine::of(&server);
        assert_eq!(execute(&other, step(&other, "{}")).as_deref(), Some(&b"done"[..]), "{first}");
        assert_eq!((runs.load(Ordering::Relaxed), warnings(&other)), (2, vec![]), "{first}");
    }
}

#[test]
fn a_step_that_no_worker_takes_is_cancelled() {
    let server = executing();
    server.state().options.queues_forever = true;
    let machine = Machine::of(&server);
    let waiting = RemoteStep { queue_limit: Duration::from_millis(200), ..step(&machine, "{}") };
    let began = Instant::now();
    assert_eq!(execute(&machine, waiting), None);
    assert!(began.elapsed() >= Duration::from_millis(200) && began.elapsed() < Duration::from_secs(30));
    let said = warnings(&machine);
    assert!(said.len() == 1 && said[0].contains("no worker took a step"), "{said:?}");
    cancelled(&server, 1);
    assert_eq!(server.state().counts.of(Method::Execute), 1);
}

#[test]
fn an_interrupted_build_cancels_what_it_waits_for() {
    let server = executing();
    server.state().options.queues_forever = true;
    let machine = Machine::of(&server);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| execute(&machine, step(&machine, "{}")));
        while server.state().counts.of(Method::Execute) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        // The name of the operation has to arrive.
        std::thread::sleep(Duration::from_millis(100));
        machine.interrupted.store(true, Ordering::Relaxed);
        assert_eq!(waits.join().unwrap(), None);
    });
    cancelled(&server, 1);
    assert_eq!(warnings(&machine), Vec::<String>::new());
}

#[test]
fn a_broken_connection_is_followed_by_another_one_and_an_error_by_another_offer() {
    let server = executing();
    let (go, gone) = mpsc::channel();
    let gone = std::sync::Mutex::new(gone);
    server.state().options.breaking_streams = 2;
    server.state().options.worker = Arc::new(move |_: Task| {
        let _ = gone.lock().unwrap().recv_timeout(Duration::from_secs(60));
        done()
    });
    let machine = Machine::of(&server);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| execute(&machine, step(&machine, "{}")));
        while server.state().counts.of(Method::WaitExecution) < 2 {
            std::thread::sleep(Duration::from_millis(1));
        }
        go.send(()).unwrap();
        assert!(waits.join().unwrap().is_some());
    });
    drop(go);
    let counts = server.state().counts.clone();
    assert_eq!((counts.of(Method::Execute), counts.of(Method::WaitExecution)), (1, 2));
    // Some servers have an error of their own where a content is missing.
    server.state().options.refusals = vec![Refusal::next(1, Method::Execute, Code::Internal)];
    let (offers, step) = (counts.of(Method::FindMissingBlobs), step(&machine, "{ }"));
    assert!(execute(&machine, step).is_some());
    assert_eq!(server.state().counts.of(Method::FindMissingBlobs), offers + 2);
    assert_eq!(warnings(&machine), Vec::<String>::new());
}

#[test]
fn a_server_that_dies_while_it_executes_is_one_warning() {
    let mut server = executing();
    let (tell, told) = mpsc::channel();
    server.state().options.worker = Arc::new(move |_: Task| {
        tell.send(()).unwrap();
        std::thread::sleep(Duration::from_millis(200));
        done()
    });
    let machine = Machine::of(&server);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| execute(&machine, step(&machine, "{}")));
        told.recv().unwrap();
        server.stop();
        assert_eq!(waits.join().unwrap(), None);
    });
    assert_eq!(warnings(&machine).len(), 1, "{:?}", warnings(&machine));
}

#[test]
fn two_steps_at_once_send_the_program_once() {
    let server = executing();
    let (tell, told) = mpsc::channel();
    server.state().options.worker = Arc::new(move |task: Task| {
        tell.send(task.files["kforge"].len()).unwrap();
        done()
    });
    let (machine, (_folder, program)) = (Machine::of(&server), large_program());
    std::thread::scope(|scope| {
        for spec in ["{}", "{ }", "{  }", "{   }"] {
            let sends = RemoteStep { program: program.clone(), ..step(&machine, spec) };
            let machine = &machine;
            scope.spawn(move || assert!(execute(machine, sends).is_some()));
        }
    });
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [5 << 20; 4]);
    assert_eq!((server.state().counts.of(Method::Write), warnings(&machine)), (1, vec![]));
}

#[test]
fn a_tree_that_leads_elsewhere_and_private_texts_are_not_sent() {
    let server = executing();
    let machine = Machine::of(&server);
    let file = machine.store.put(b"x").unwrap();
    let tree = Tree { files: [("../x".to_string(), file)].into() };
    let digest = machine.store.put(&serde_json::to_vec(&tree).unwrap()).unwrap();
    let inputs = vec![StepInput { name: "source".into(), digest, form: Form::Tree }];
    assert_eq!(execute(&machine, RemoteStep { inputs, ..step(&machine, "{}") }), None);
    assert!(warnings(&machine)[0].contains("cannot be sent"), "{:?}", warnings(&machine));
    assert_eq!(server.state().counts.of(Method::Execute), 0);
    assert!(
        machine.remote.is_private(&[b"{}", b"/home/me/x"]) && !machine.remote.is_private(&[b"{}", b"/usr/bin/g++"])
    );
    // As JSON writes it.
    assert!(machine.remote.is_private(&[br#"{"path":"/home/\"q\"/x"}"#]));
}

/// A program that is larger than a batch, in a folder.
fn large_program() -> (tempfile::TempDir, Program) {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("kforge");
    fs::write(&program, vec![7; 5 << 20]).unwrap();
    (folder, Program::Sent(program))
}

#[test]
fn a_program_that_cannot_be_sent_is_sent_no_more() {
    let server = executing();
    server.state().options.refusals = vec![Refusal::always(Method::Write, Code::PermissionDenied)];
    let (machine, (_folder, program)) = (Machine::of(&server), large_program());
    std::thread::scope(|scope| {
        for spec in ["{}", "{ }", "{  }", "{   }"] {
            let sends = RemoteStep { program: program.clone(), ..step(&machine, spec) };
            let machine = &machine;
            scope.spawn(move || assert_eq!(execute(machine, sends), None));
        }
    });
    let counts = server.state().counts.clone();
    assert_eq!((counts.of(Method::Write), counts.of(Method::Execute), warnings(&machine).len()), (1, 0, 1));
    assert!(warnings(&machine)[0].contains("PermissionDenied"), "{:?}", warnings(&machine));
}

#[test]
fn a_server_that_falls_silent_holds_a_step_only_for_a_while() {
    let (_folder, program) = large_program();
    let methods = [
        Method::FindMissingBlobs,
        Method::Write,
        Method::Execute,
        Method::Read,
        Method::BatchReadBlobs,
        Method::BatchUpdateBlobs,
    ];
    std::thread::scope(|scope| {
        for method in methods {
            let program = program.clone();
            scope.spawn(move || {
                let server = executing();
                server.state().options.hangs = Some(method);
                let machine = Machine::hasty(&server, Duration::from_millis(200));
                let queue_limit = Duration::from_millis(300);
                let began = Instant::now();
                let answer = execute(&machine, RemoteStep { program, queue_limit, ..step(&machine, "{}") });
                assert_eq!((answer, warnings(&machine).len()), (None, 1), "{method:?}: {:?}", warnings(&machine));
                assert!(began.elapsed() < Duration::from_secs(20), "{method:?}: {:?}", began.elapsed());
                assert!(server.state().counts.of(method) > 0, "{method:?}");
            });
        }
    });
}

#[test]
#[ignore = "second tier: waits a minute and a half"]
fn a_step_ends_though_its_worker_or_its_stages_do_not() {
    let (release, held) = mpsc::channel::<()>();
    let held = Arc::new(std::sync::Mutex::new(held));
    std::thread::scope(|scope| {
        let waits: Vec<_> = [false, true]
            .into_iter()
            .map(|alternates| {
                let held = held.clone();
                scope.spawn(move || {
                    let server = executing();
                    server.state().options.alternates = alternates;
                    server.state().options.worker = Arc::new(move |_: Task| {
                        let _ = held.lock().unwrap().recv();
                        done()
                    });
                    let machine = Machine::of(&server);
                    let limits =
                        RemoteStep { time_limit_s: 0, queue_limit: Duration::from_secs(5), ..step(&machine, "{}") };
                    let began = Instant::now();
                    assert_eq!(execute(&machine, limits), None);
                    let (took, said) = (began.elapsed(), warnings(&machine));
                    assert!(took >= Duration::from_secs(60) && took < Duration::from_secs(150), "{took:?}");
                    assert_eq!((said.len(), server.state().counts.of(Method::Execute)), (1, 1), "{said:?}");
                    cancelled(&server, 1);
                    server.state().options.alternates = false;
                    // The worker of the test ends before its server does.
                    std::mem::forget(server);
                })
            })
            .collect();
        waits.into_iter().for_each(|wait| wait.join().unwrap());
        drop(release);
    });
}

#[test]
fn workers_that_are_other_machines_end_nothing_for_steps_that_need_another() {
    let server = executing();
    // Of three workers, the last one is like this machine.
    let turn = Arc::new(AtomicUsize::new(0));
    server.state().options.worker = Arc::new(move |task: Task| {
        let is_refused = task.files["spec.json"] != b"{}" || turn.fetch_add(1, Ordering::Relaxed) % 3 < 2;
        let refused = Given { code: 101, answer: b"another machine".to_vec(), outputs: BTreeMap::new() };
        if is_refused { refused } else { done() }
    });
    let machine = Machine::of(&server);
    let mixed = |at: usize| RemoteStep { places: at.to_string().into_bytes(), ..step(&machine, "{}") };
    let given: Vec<bool> = (0..6).map(|at| execute(&machine, mixed(at)).is_some()).collect();
    assert_eq!(given, [false, false, true, false, false, true]);
    // None has that toolchain: three steps find out.
    let before = server.state().counts.of(Method::Execute);
    let compared = Digest::of(b"another toolchain");
    for _ in 0..5 {
        assert_eq!(execute(&machine, RemoteStep { compared, ..step(&machine, "{ }") }), None);
    }
    assert_eq!(server.state().counts.of(Method::Execute), before + 3);
    // The others are sent all the same.
    assert!((6..9).any(|at| execute(&machine, mixed(at)).is_some()));
    let said = warnings(&machine);
    assert!(said.len() == 1 && said[0].contains("its `toolchain` has other parts"), "{said:?}");
}

#[test]
fn lost_outputs_of_a_remembered_action_are_made_again() {
    let server = executing();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    server.state().options.worker = Arc::new(move |_: Task| {
        counted.fetch_add(1, Ordering::Relaxed);
        done()
    });
    let machine = Machine::of(&server);
    assert!(execute(&machine, step(&machine, "{}")).is_some());
    server.state().blobs.retain(|_, blob| blob.bytes != BINARY);
    let other = Machine::of(&server);
    assert!(execute(&other, step(&other, "{}")).is_some() && other.store.has(&Digest::of(BINARY)));
    assert_eq!((runs.load(Ordering::Relaxed), warnings(&other)), (2, vec![]));
}

#[test]
fn a_worker_that_names_a_content_wrongly_takes_it_from_nobody() {
    let server = executing();
    let first = Machine::of(&server);
    let mut stored = crate::client::result(&first, 1);
    let binary = first.store.put(BINARY).unwrap();
    stored.outputs.insert("binary".into(), binary);
    assert_eq!(first.put(1, &stored), 0);
    let machine = Machine::of(&server);
    assert_eq!(machine.ask(1, &[]).unwrap().result.outputs["binary"], binary);
    server.state().options.worker = Arc::new(|_: Task| {
        let other = BINARY.to_ascii_uppercase();
        Given { outputs: [("binary".to_string(), other)].into(), ..done() }
    });
    assert_eq!(execute(&machine, step(&machine, "{}")), None);
    assert!(warnings(&machine)[0].contains("other bytes"), "{:?}", warnings(&machine));
    assert_eq!(machine.blobs.get(&binary).unwrap().as_deref(), Some(BINARY));
}
