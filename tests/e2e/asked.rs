//! Kernels whose rounds are due at the same time: their agent is asked for all of them in parallel, and the result depends neither on the order of replies nor
//! on when a run ends.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Output};

use serde_json::Value;

use crate::project::Project;
use crate::rounds::{MANIFEST, answer, completion, request};

/// An endpoint whose requests a test answers itself, one by one.
struct Endpoint(TcpListener);

/// A request that waits for its answer.
struct Waiting {
    text: String,
    stream: TcpStream,
}

impl Endpoint {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Endpoint(listener)
    }

    /// A project of this many kernels, each with one round by this endpoint.
    fn project(&self, kernels: u32, agent: &str) -> Project {
        let url = format!("http://{}/v1", self.0.local_addr().unwrap());
        let http = format!("http = \"{url}\"\nmodel = \"m\"\nmax_tokens = 4000\n{agent}");
        let manifest = MANIFEST.replace("command = [\"./agent.sh\"]", &http);
        let (head, own) = manifest.split_once("[operator.twice]").unwrap();
        // Each kernel has its own operator, because identical questions are asked only once.
        let kernel = |n: u32| {
            format!("[operator.twice]{own}")
                .replace("twice", &format!("o{n}"))
                .replace("[kernel.k]", &format!("[kernel.k{n}]"))
                .replace("x + 1", &format!("x + {n}"))
        };
        let kernels: String = (1..=kernels).map(kernel).collect();
        Project::new().file("kernel.toml", &format!("{head}{kernels}"))
    }

    /// The next requests of a run in progress, in the order of their kernels.
    fn requests(&self, count: usize, running: &mut Child) -> Vec<Waiting> {
        let mut all = vec![];
        while all.len() < count {
            match self.0.accept() {
                Ok((mut stream, _)) => {
                    stream.set_nonblocking(false).unwrap();
                    all.push(Waiting { text: request(&mut stream), stream });
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    if running.try_wait().unwrap().is_some() {
                        let mut told = String::new();
                        running.stderr.take().unwrap().read_to_string(&mut told).unwrap();
                        panic!("it ended after {} of {count} requests: {told}", all.len());
                    }
                    std::thread::yield_now();
                }
                Err(e) => panic!("{e}"),
            }
        }
        all.sort_by_key(Waiting::kernel);
        all
    }

    /// How a run that asks for nothing more ends.
    fn end(&self, mut running: Child) -> Output {
        while running.try_wait().unwrap().is_none() {
            match self.0.accept() {
                Ok((mut stream, _)) => {
                    stream.set_nonblocking(false).unwrap();
                    let text = request(&mut stream);
                    let _ = running.kill();
                    panic!("nothing more was to be asked: {text}");
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
                Err(e) => panic!("{e}"),
            }
        }
        running.wait_with_output().unwrap()
    }
}

impl Waiting {
    /// The kernel that the request is about.
    fn kernel(&self) -> u32 {
        // The first kernel that the request names. Kernels that are already correct are shown as examples further below.
        let named = |n: u32| Some((self.text.find(&format!("`k{n}`"))?, n));
        (1..=9).filter_map(named).min().unwrap_or_else(|| panic!("{}", self.text)).1
    }

    /// Answers with a correct kernel.
    fn right(self) {
        let n = self.kernel();
        self.answer(&format!("y[i] = 2.0f * x[i] + {n}.0f;"));
    }

    fn answer(mut self, body: &str) {
        let (status, body) = completion(&answer(body), "stop");
        let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        self.stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    }
}

fn said(output: &Output, code: i32) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{text}");
    text
}

/// The champions of a build that has nothing to do, by kernel.
fn champions(project: &Project) -> BTreeMap<String, String> {
    let built = project.built(&[]);
    assert_eq!(built.count("executed"), 0, "{:?}", built.executed());
    let text = |e: &Value, key: &str| e[key].as_str().unwrap().to_string();
    built.events("champion").map(|e| (text(e, "kernel"), text(e, "variant"))).collect()
}

/// The recorded trajectories without times and addresses.
fn recorded(project: &Project) -> Vec<Value> {
    let output = project.command(&["export", "trajectories"]).output().unwrap();
    let text = said(&output, 0);
    let lines = String::from_utf8(output.stdout).unwrap();
    assert!(!lines.is_empty(), "{text}");
    let mut all: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    all.iter_mut().for_each(without);
    all.sort_by_key(Value::to_string);
    all
}

/// Removes values that differ in every run.
pub(crate) fn without(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !["answered_at", "took_ms", "agent", "chain", "groups"].contains(&key.as_str()));
            map.values_mut().for_each(without);
        }
        Value::Array(all) => all.iter_mut().for_each(without),
        _ => {}
    }
}

#[test]
#[ignore = "second tier: many rounds with an agent"]
fn kernels_are_asked_for_at_the_same_time_and_the_order_of_replies_changes_nothing() {
    let run = |forwards: bool| {
        let endpoint = Endpoint::new();
        let project = endpoint.project(3, "");
        let mut running = project.command(&["optimize"]).spawn().unwrap();
        // No request is answered before all have been sent.
        let mut first = endpoint.requests(3, &mut running);
        if !forwards {
            first.reverse();
        }
        for waiting in first {
            match waiting.kernel() {
                2 => waiting.answer("y[i] = x[i];"),
                _ => waiting.right(),
            }
        }
        // The wrong kernel is repaired, and nothing else is asked again.
        let repair = endpoint.requests(1, &mut running).remove(0);
        assert!(repair.kernel() == 2 && repair.text.contains("y[i] = x[i];"), "{}", repair.text);
        repair.right();
        let told = said(&endpoint.end(running), 0);
        for part in
            ["Asking a (coder) for p/k1/cpu", "Answered a (coder) for p/k3/cpu after 0 s: 1000 tokens in, 100 out"]
        {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert!(told.contains("a: 4 requests, 4400 tokens"), "{told}");
        (champions(&project), recorded(&project))
    };
    let ((champions, forwards), (others, backwards)) = (run(true), run(false));
    let expected = [("k1", "r1,BLOCK=64"), ("k2", "r1.1,BLOCK=64"), ("k3", "r1,BLOCK=64")];
    assert_eq!(champions, expected.map(|(k, v)| (k.to_string(), v.to_string())).into());
    assert_eq!((champions, forwards), (others, backwards));
}

#[test]
#[ignore = "second tier: many rounds with an agent"]
fn a_budget_pays_for_the_first_kernels_however_many_ask_at_once() {
    let endpoint = Endpoint::new();
    let project = endpoint.project(4, "budget = { requests = 3 }\nparallel = 8");
    let mut running = project.command(&["optimize"]).spawn().unwrap();
    let asked = endpoint.requests(3, &mut running);
    assert_eq!(asked.iter().map(Waiting::kernel).collect::<Vec<_>>(), [1, 2, 3]);
    asked.into_iter().for_each(Waiting::right);
    let told = said(&endpoint.end(running), 101);
    assert!(
        told.contains(
            "p/k4/cpu: round 1: no particular method: agent `a` has spent its budget of this run: 3 of 3 requests"
        ),
        "{told}"
    );
    let mut running = project.command(&["optimize"]).spawn().unwrap();
    endpoint.requests(1, &mut running).remove(0).right();
    said(&endpoint.end(running), 0);
    assert_eq!(champions(&project).len(), 4);
}

#[test]
#[ignore = "second tier: compiles for the emulator"]
fn the_same_question_of_two_kernels_is_asked_once() {
    let endpoint = Endpoint::new();
    let project = endpoint.project(1, "");
    let manifest = fs::read_to_string(project.root().join("kernel.toml")).unwrap();
    let (_, kernel) = manifest.split_once("[kernel.k1]").unwrap();
    project.write("kernel.toml", &format!("{manifest}[kernel.k2]{kernel}"));
    let mut running = project.command(&["optimize"]).spawn().unwrap();
    endpoint.requests(1, &mut running).remove(0).right();
    let told = said(&endpoint.end(running), 0);
    assert!(
        told.contains("Recalling what a answered (coder) for p/k2/cpu") && told.contains("a: 1 request,"),
        "{told}"
    );
    assert_eq!(champions(&project).len(), 2);
}

#[test]
#[ignore = "second tier: hard wear"]
fn a_run_that_is_killed_while_several_are_asked_for_asks_for_none_again_that_was_answered() {
    let endpoint = Endpoint::new();
    let project = endpoint.project(3, "");
    let mut running = project.command(&["optimize"]).spawn().unwrap();
    let mut asked = endpoint.requests(3, &mut running);
    asked.remove(1).right();
    let replies = || {
        let all = walkdir::WalkDir::new(project.home().join("answers/replies")).into_iter().filter_map(Result::ok);
        all.filter(|e| e.file_type().is_file()).count()
    };
    while replies() == 0 {
        assert!(running.try_wait().unwrap().is_none(), "it ended before it could be killed");
        std::thread::yield_now();
    }
    running.kill().unwrap();
    running.wait().unwrap();
    drop(asked);
    let mut running = project.command(&["optimize"]).spawn().unwrap();
    let again = endpoint.requests(2, &mut running);
    assert_eq!(again.iter().map(Waiting::kernel).collect::<Vec<_>>(), [1, 3]);
    again.into_iter().for_each(Waiting::right);
    let told = said(&endpoint.end(running), 0);
    // The killed run may have come as far as recording the candidate, so that there is nothing to recall.
    assert!(!told.contains("Asking a (coder) for p/k2/cpu"), "{told}");
    assert_eq!(champions(&project).len(), 3);
    assert_eq!(replies(), 3, "{told}");
}
