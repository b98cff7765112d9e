//! The cost of a remote cache: a build of 10,000 steps whose results another machine has stored, beside the same build with every result on this machine. The
//! server is in this process, first without delay and then 20 ms away. The stores of this machine are in memory. Fails if the remote cache adds more than the
//! limits in `docs/performance.md`: requests that wait for each other take minutes.
#![expect(clippy::print_stdout, reason = "a bench's result is what it prints")]

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kforge::base::Digest;
use kforge::engine::{
    Blobs, BuildOptions, Cache, Capacity, Execution, Executor, Expand, ExpandError, Graph, Hit, InputRef, Job, Memory,
    NoLocks, Node, PreviousResult, Rank, RemoteCache, Resources, Row, RunError, Services, Source, build,
};
use kforge::ops::implementation::implementations;
use kforge::record::event::{CacheOrigin, Labels};
use kforge::record::{Form, Spec, StepKind, StepResult};
use kforge_remote::{Access, Remote, RemoteBlobs, RemoteOptions, Tls, lacking};

#[path = "../tests/remote/proxy.rs"]
#[expect(dead_code, reason = "tests use all of it")]
mod proxy;
#[path = "../tests/remote/server.rs"]
#[expect(dead_code, reason = "tests use all of it")]
mod server;

/// A chain of five steps for each kernel. The first and the last run on every machine.
const CHAIN: [StepKind; 5] =
    [StepKind::Generate, StepKind::Compile, StepKind::Inspect, StepKind::Verify, StepKind::Judge];
const STEPS: usize = 10_000;
/// How much longer than without a remote cache the build may take, at each round trip.
const LIMITS: [(Duration, Duration); 2] =
    [(Duration::ZERO, Duration::from_secs(1)), (Duration::from_millis(20), Duration::from_secs(3))];

fn node(kernel: usize, at: usize) -> Node {
    let kind = CHAIN[at];
    let id = |kind: StepKind| format!("package/kernel_{kernel:06}/BLOCK=256,VEC=4/cpu/{kind}");
    let form = Form::Blob;
    let source = InputRef { source: Source::Blob(Digest::of(b"source")), form };
    let mut inputs = BTreeMap::from([("source".to_string(), source)]);
    for before in &CHAIN[at.saturating_sub(1)..at] {
        let source = Source::Output { node: id(*before), name: "out".into(), required: true };
        inputs.insert(before.name().into(), InputRef { source, form });
    }
    Node {
        id: id(kind),
        labels: Labels::default(),
        rank: Rank { round: 0, phase: 0, wave: 0, kind },
        kind,
        params: serde_json::json!({ "arch": "cpu", "kernel": kernel }),
        inputs,
        after: vec![],
        product: None,
        resources: Resources { cpus: u32::from(kind.lane().is_some()), ..Resources::default() },
        time_limit_s: 60,
        unavailable: None,
        expands: false,
        advisory: false,
    }
}

/// A machine's stores.
#[derive(Default)]
struct Machine {
    results: Mutex<HashMap<Digest, StepResult>>,
    blobs: Mutex<HashMap<Digest, Vec<u8>>>,
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cache for Machine {
    fn get(&self, key: &Digest, _: &Spec) -> io::Result<Option<Hit>> {
        let found = locked(&self.results).get(key).cloned();
        Ok(found.map(|result| Hit { result, origin: CacheOrigin::Local, evidence: None, tag: None }))
    }
    fn put(&self, key: &Digest, _: &Spec, result: &StepResult) -> io::Result<()> {
        locked(&self.results).insert(*key, result.clone());
        Ok(())
    }
}

impl Memory for Machine {
    fn last_key(&self, _: &str) -> Option<Digest> {
        None
    }
    fn last(&self, _: &str) -> Option<PreviousResult> {
        None
    }
    fn remember(&self, _: &Row<'_>) -> io::Result<()> {
        Ok(())
    }
    fn duration(&self, _: &str, _: StepKind) -> Option<u64> {
        None
    }
}

impl Blobs for Machine {
    fn get(&self, digest: &Digest) -> io::Result<Option<Vec<u8>>> {
        Ok(locked(&self.blobs).get(digest).cloned())
    }
    fn path(&self, _: &Digest) -> io::Result<Option<PathBuf>> {
        Ok(None)
    }
    fn put(&self, bytes: &[u8]) -> io::Result<Digest> {
        let digest = Digest::of(bytes);
        locked(&self.blobs).insert(digest, bytes.to_vec());
        Ok(digest)
    }
    fn put_file(&self, path: &Path) -> io::Result<Digest> {
        Blobs::put(self, &std::fs::read(path)?)
    }
    fn has(&self, digest: &Digest) -> bool {
        locked(&self.blobs).contains_key(digest)
    }
}

/// Gives 600 bytes that follow from the key, the mean size of what a step other than a compilation leaves.
struct Instantly;

impl Executor for Instantly {
    fn run(&self, job: &Job<'_>) -> Result<Execution, RunError> {
        let bytes = job.key.hex().repeat(10);
        let out = job.blobs.put(bytes.as_bytes()).map_err(|e| RunError::io("", &e))?;
        let mut outputs = BTreeMap::from([("out".to_string(), out)]);
        while let Some(name) = lacking(job.spec.kind, None, &outputs) {
            outputs.insert(name.into(), out);
        }
        Ok(Execution { outputs, ..Execution::default() })
    }
}

impl Expand for Instantly {
    fn expand(&self, _: &Node, _: &StepResult, _: &dyn Fn(&str) -> Option<Vec<u8>>) -> Result<Vec<Node>, ExpandError> {
        Ok(vec![])
    }
}

/// Builds on a machine. Returns how long that took, and how many steps of workers ran.
fn built(machine: &Machine, blobs: &dyn Blobs, remote: Option<&dyn RemoteCache>) -> (Duration, u64) {
    let nodes = (0..STEPS / CHAIN.len()).flat_map(|kernel| (0..CHAIN.len()).map(move |at| node(kernel, at))).collect();
    let graph = Graph::new(nodes).expect("the plan of this bench is sound");
    let implementations = implementations();
    let services = Services {
        executor: &Instantly,
        caches: vec![machine],
        remote,
        blobs,
        memory: machine,
        locks: &NoLocks,
        expand: &Instantly,
        implementations: &implementations,
        machine_key: None,
    };
    let options =
        BuildOptions { quiet_fresh: true, capacity: Capacity { cpus: 2, ..Capacity::default() }, ..Default::default() };
    let start = Instant::now();
    let outcome = build(graph, &options, &services, &mut |_| {});
    assert_eq!(outcome.counts.executed + outcome.counts.fresh, STEPS as u64, "all steps have a result");
    (start.elapsed(), outcome.counts.executed)
}

fn remote(url: &str, store: Arc<Machine>) -> Arc<Remote> {
    let access = Access {
        url: url.parse().expect("the address of the server"),
        instance: String::new(),
        timeout: Duration::from_secs(10),
        token_file: None,
        credential_helper: None,
        environment: BTreeMap::new(),
        tls: Tls::default(),
    };
    let report = Box::new(|error: &kforge_remote::RemoteError| println!("the remote cache failed: {error}"));
    let options = RemoteOptions {
        access,
        writes: true,
        holdout: false,
        private: vec![],
        interrupted: Arc::default(),
        report,
        recheck: None,
    };
    Arc::new(Remote::start(options, store).expect("a thread"))
}

fn new_machine() -> Arc<Machine> {
    let machine = Machine::default();
    Blobs::put(&machine, b"source").expect("a store in memory");
    Arc::new(machine)
}

fn main() {
    let server = server::Server::start(server::Options::default());
    let first = new_machine();
    let cache = remote(&server.url(), first.clone());
    let (cold, ran) = built(&first, &*first, Some(&*cache));
    let start = Instant::now();
    assert_eq!((cache.finish(), ran), (0, STEPS as u64), "all is computed and stored");
    let stored = start.elapsed().as_secs_f64() * 1e3;
    println!(
        "{STEPS} steps, nothing known: {:.0} ms, and {stored:.0} ms until all is stored",
        cold.as_secs_f64() * 1e3
    );
    let (local, _) = (0..3).map(|_| built(&first, &*first, None)).min().expect("three builds");
    println!("{STEPS} steps, all on this machine: {:.0} ms", local.as_secs_f64() * 1e3);
    let mut is_slow = false;
    for (round_trip, limit) in LIMITS {
        let proxy = proxy::Proxy::start(server.address(), round_trip / 2);
        let url = if round_trip.is_zero() { server.url() } else { proxy.url() };
        let one = || {
            let machine = new_machine();
            let cache = remote(&url, machine.clone());
            let blobs = RemoteBlobs::new(machine.clone(), cache.clone());
            let (took, ran) = built(&machine, &blobs, Some(&*cache));
            assert_eq!(ran, 2 * (STEPS / CHAIN.len()) as u64, "only pure steps run");
            took
        };
        let took = (0..3).map(|_| one()).min().expect("three builds");
        let beyond = took.saturating_sub(local);
        println!(
            "{STEPS} steps, all on a server {} ms away: {:.0} ms, {:.0} ms beyond this machine; limit {} ms",
            round_trip.as_millis(),
            took.as_secs_f64() * 1e3,
            beyond.as_secs_f64() * 1e3,
            limit.as_millis()
        );
        is_slow |= beyond > limit;
    }
    assert!(!is_slow, "the remote cache is slower than its limits");
}
