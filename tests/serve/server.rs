//! A server as a process, and the candidates that tests send to it.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ExitStatus};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Answer, Connection};
use crate::project::{Kept, Project, known};

/// The longest time that a server may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(300);

/// A server. It is killed when it is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    /// What it wrote to standard error.
    said: std::sync::Arc<Mutex<String>>,
}

impl Server {
    /// Starts one in a project, with further words.
    pub(crate) fn start(project: &Project, words: &[&str]) -> Server {
        Server::try_start(project, words).unwrap_or_else(|said| panic!("{said}"))
    }

    /// The same. If it ends at once, the error is what it said.
    pub(crate) fn try_start(project: &Project, words: &[&str]) -> Result<Server, String> {
        Server::try_spawn(project, &[&["--offline"], words].concat())
    }

    /// Starts one that may use the network, and so may collect the cache.
    pub(crate) fn start_online(project: &Project, words: &[&str]) -> Server {
        Server::try_spawn(project, words).unwrap_or_else(|said| panic!("{said}"))
    }

    fn try_spawn(project: &Project, words: &[&str]) -> Result<Server, String> {
        let listen: &[&str] = if words.contains(&"--listen") { &[] } else { &["--listen", "127.0.0.1:0"] };
        let all = [&["serve"], listen, words].concat();
        let mut child = project.command(&all).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut before = String::new();
        let address = loop {
            let mut line = String::new();
            if lines.read_line(&mut line).unwrap() == 0 {
                child.wait().unwrap();
                return Err(before);
            }
            before += &line;
            if let Some((_, address)) = line.split_once("http://") {
                break address.trim().parse().unwrap();
            }
        };
        let said = std::sync::Arc::new(Mutex::new(before));
        let kept = said.clone();
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                *kept.lock().unwrap() += &format!("{line}\n");
            }
        });
        Ok(Server { child, address, said })
    }

    pub(crate) fn connect(&self) -> Connection {
        Connection::open(self.address, None).unwrap()
    }

    pub(crate) fn connect_as(&self, token: &str) -> Connection {
        Connection::open(self.address, Some(token)).unwrap()
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.connect().ask("GET", path, None).unwrap()
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.connect().ask("POST", path, Some(body.to_string().as_bytes())).unwrap()
    }

    pub(crate) fn delete(&self, path: &str) -> Answer {
        self.connect().ask("DELETE", path, None).unwrap()
    }

    /// Submits a request and waits for its result.
    #[track_caller]
    pub(crate) fn evaluate(&self, request: &Value) -> Value {
        let task = self.post("/v1/evaluations?wait=100", request).expect(200).json();
        assert_eq!(task["status"], "done", "{task}");
        task
    }

    /// A value of the metrics.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let text = self.get("/metrics").expect(200).text();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name}: {text}")).parse().unwrap()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The processes that it started: its workers.
    pub(crate) fn workers(&self) -> Vec<i32> {
        let parent = |pid: &i32| state_of(*pid)?.split(' ').nth(1)?.parse::<u32>().ok();
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let all = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        all.filter(|pid| parent(pid) == Some(self.pid())).collect()
    }

    /// Kills it with SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends it SIGTERM.
    #[expect(unsafe_code, reason = "a signal to a child")]
    pub(crate) fn terminate(&self) {
        let pid = i32::try_from(self.child.id()).unwrap();
        // SAFETY: the child was not waited for, so the id is its own.
        assert_eq!(unsafe { libc::kill(pid, libc::SIGTERM) }, 0);
    }

    /// Waits until it has ended.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "the server does not end: {}", self.said());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What the system says of a process after its name: its state, its parent.
fn state_of(pid: i32) -> Option<String> {
    // The name in parentheses can have spaces.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(stat.rsplit_once(") ")?.1.to_string())
}

/// Whether a process runs; one that has ended may still be listed.
pub(crate) fn is_alive(pid: i32) -> bool {
    state_of(pid).is_some_and(|state| !state.starts_with(['Z', 'X']))
}

/// Kills a process with SIGKILL. Returns whether it was there.
#[expect(unsafe_code, reason = "a signal to a process")]
pub(crate) fn kill(worker: i32) -> bool {
    // SAFETY: the process was a child of a server a moment ago. If it has ended, the signal goes nowhere.
    unsafe { libc::kill(worker, libc::SIGKILL) == 0 }
}

/// Waits until something holds.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A kernel that is right if `factor` is 2. Each `mark` is another source, with the same machine code.
pub(crate) fn source(factor: &str, mark: &str) -> String {
    format!(
        "// {mark}\nextern \"C\" __global__ void twice(const float *x, float *y, int n) {{\n    int i = threadIdx.x;\n    if (i < n) y[i] = {factor} * x[i] + 1;\n}}\n"
    )
}

/// An evaluation of that source.
pub(crate) fn request(source: &str) -> Value {
    json!({ "candidate": { "operator": {
        "operator": {
            "dims": ["n"],
            "inputs": { "x": { "dtype": "f32", "shape": ["n"] } },
            "outputs": { "y": { "dtype": "f32", "shape": ["n"] } },
            "reference": { "builtin": "elementwise", "y": "2 * x + 1" },
            "tolerance": { "atol": 1e-6, "rtol": 1e-6 },
            "shapes": { "tiny": { "n": 10 } },
        },
        "source": source,
        "entry": "twice",
        "launch": [{ "grid": ["1"], "block": ["n"], "args": ["x", "y", "n"] }],
    } } })
}

/// The same evaluation with another tolerance, so that nothing is known of it but what its steps have in common with the other: only judgements are new.
pub(crate) fn distinct(mut request: Value, number: u32) -> Value {
    request["candidate"]["operator"]["operator"]["tolerance"]["atol"] = (1e-6 + 1e-9 * f64::from(number)).into();
    request
}

/// An evaluation whose kernel never ends by itself.
pub(crate) fn endless(mark: &str) -> Value {
    request(&format!(
        "// {mark}\nextern \"C\" __global__ void twice(const float *x, float *y, int n) {{\n    volatile int go = 1;\n    while (go) {{}}\n}}\n"
    ))
}

/// A project whose home has the results of the right and the wrong kernel.
pub(crate) fn project() -> Project {
    static KNOWN: OnceLock<Kept> = OnceLock::new();
    known(&KNOWN, Project::new, |project| {
        let server = Server::start(project, &[]);
        for factor in ["2", "3"] {
            server.evaluate(&request(&source(factor, "first")));
        }
    })
}
