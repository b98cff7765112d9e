//! `kforge serve` under load, over real sockets, with this machine's processors shared by the server and its clients. 64 clients send requests whose result is
//! known, first ten a second each and then one after the other; 1,000 clients send 20,000 of them. Prints percentiles and the server's memory, and fails if a
//! request of the first takes longer than the limit in `docs/performance.md`. A number as an argument divides how many requests each client sends.
//! `KFORGE_TEST_PROGRAM` names another program, such as a released one.
#![expect(clippy::print_stdout, reason = "a bench's result is what it prints")]

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

#[path = "../tests/serve/client.rs"]
#[expect(dead_code, reason = "tests use all of it")]
mod client;

use client::Connection;

/// The most that the median request of 64 clients may take where the result is known.
const LIMIT: Duration = Duration::from_millis(5);

/// How many contents are known: each request is one of them.
const CONTENTS: usize = 4;

/// A server, killed at the end.
struct Server {
    child: Child,
    address: SocketAddr,
    _place: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[expect(clippy::disallowed_methods, reason = "a bench stands where a shell does, and hands PATH on")]
fn start() -> Server {
    // On a disk: the journal is written for each request.
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let named = std::env::var_os("KFORGE_TEST_PROGRAM");
    let mut child = Command::new(named.unwrap_or_else(|| env!("CARGO_BIN_EXE_kforge").into()))
        .args(["serve", "--listen", "127.0.0.1:0", "--offline"])
        .current_dir(place.path())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", place.path())
        .env("KFORGE_HOME", place.path().join("home"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let address = loop {
        let line = lines.next().expect("the server did not start").unwrap();
        if let Some((_, address)) = line.split_once("http://") {
            break address.trim().parse().unwrap();
        }
    };
    std::thread::spawn(move || lines.for_each(drop));
    Server { child, address, _place: place }
}

fn request(content: usize) -> Vec<u8> {
    let source = format!(
        "// {content}\nextern \"C\" __global__ void twice(const float *x, float *y, int n) {{\n    if (threadIdx.x < n) y[threadIdx.x] = 2 * x[threadIdx.x] + 1;\n}}\n"
    );
    let value = json!({ "candidate": { "operator": {
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
    } } });
    value.to_string().into_bytes()
}

/// The resident memory of the server, and the most that it had, in bytes.
fn memory(server: &Server) -> (u64, u64) {
    let text = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    };
    (of("VmRSS:"), of("VmHWM:"))
}

/// The times of so many requests of each of so many clients, and the time of all of them. Each waits `pace` after the start of its last request.
fn load(server: &Server, clients: usize, each: usize, pace: Duration) -> (Vec<Duration>, Duration) {
    let times: Mutex<Vec<Duration>> = Mutex::default();
    let begin = Barrier::new(clients + 1);
    let began = std::thread::scope(|scope| {
        for client in 0..clients {
            let (times, begin) = (&times, &begin);
            let run = move || {
                let mut connection = Connection::open(server.address, None).unwrap();
                let mut own = Vec::with_capacity(each);
                begin.wait();
                // Clients do not begin at one moment.
                std::thread::sleep(pace.mul_f64(client as f64 / clients as f64));
                for at in 0..each {
                    let body = request((client + at) % CONTENTS);
                    let began = Instant::now();
                    let answer = connection.ask("POST", "/v1/evaluations", Some(&body)).unwrap();
                    own.push(began.elapsed());
                    let value: Value = answer.expect(200).json();
                    assert_eq!(value["result"]["verdict"], "pass");
                    std::thread::sleep(pace.saturating_sub(began.elapsed()));
                }
                times.lock().unwrap_or_else(PoisonError::into_inner).extend(own);
            };
            std::thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, run).unwrap();
        }
        begin.wait();
        Instant::now()
    });
    let mut times = times.into_inner().unwrap();
    times.sort_unstable();
    (times, began.elapsed())
}

fn show(name: &str, (times, all): &(Vec<Duration>, Duration)) {
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
    println!(
        "{name}: {} requests in {:.1} s: median {:.2} ms, 95 % {:.2} ms, 99 % {:.2} ms, most {:.2} ms",
        times.len(),
        all.as_secs_f64(),
        at(0.5),
        at(0.95),
        at(0.99),
        at(1.0)
    );
}

fn main() {
    let server = start();
    let mut connection = Connection::open(server.address, None).unwrap();
    for content in 0..CONTENTS {
        let began = Instant::now();
        let answer = connection.ask("POST", "/v1/evaluations?wait=600", Some(&request(content))).unwrap();
        let (value, seconds) = (answer.expect(200).json(), began.elapsed().as_secs_f64());
        assert_eq!(value["result"]["verdict"], "pass", "{value}");
        println!("evaluation {content} on cpu: {seconds:.2} s");
    }
    let part: usize = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(1).max(1);
    let each = |requests: usize| requests.div_ceil(part);
    let before = memory(&server).0;
    let paced = load(&server, 64, each(50), Duration::from_millis(100));
    show("64 clients, ten requests a second each", &paced);
    show("64 clients, one request after the other", &load(&server, 64, each(200), Duration::ZERO));
    show("1,000 clients, one request after the other", &load(&server, 1000, each(20), Duration::ZERO));
    let (after, most) = memory(&server);
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!(
        "memory of the server: {:.0} MiB before, {:.0} MiB after, {:.0} MiB at most",
        mib(before),
        mib(after),
        mib(most)
    );
    let median = paced.0[paced.0.len() / 2];
    assert!(median <= LIMIT, "the median of 64 clients is {median:?}, and the limit {LIMIT:?}");
}
