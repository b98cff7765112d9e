//! The cost of the engine itself: a graph of 100,000 nodes is created and built with every result known, and 10,000 pure steps run. Stores are in memory, so
//! that only the engine is timed. Prints milliseconds, the best of five.
#![expect(clippy::print_stdout, reason = "a bench's result is what it prints")]

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use kforge::base::Digest;
use kforge::engine::{
    Blobs, BuildOptions, Cache, Capacity, Execution, Executor, Expand, ExpandError, Graph, Hit, InputRef, Job, Memory,
    NoLocks, Node, PreviousResult, Rank, Resources, Row, RunError, Services, Source, build, dry_run,
};
use kforge::ops::implementation::implementations;
use kforge::record::event::{CacheOrigin, Labels};
use kforge::record::{Form, Spec, StepKind, StepResult};

/// A chain of five steps for each kernel: generate, compile, inspect, verify, judge.
const CHAIN: [StepKind; 5] =
    [StepKind::Generate, StepKind::Compile, StepKind::Inspect, StepKind::Verify, StepKind::Judge];

fn node(kernel: usize, at: usize) -> Node {
    let kind = CHAIN[at];
    let id = |kind: StepKind| format!("package/kernel_{kernel:06}/BLOCK=256,VEC=4/h200/{kind}");
    let form = Form::Blob;
    let mut inputs = BTreeMap::from([(
        "source".to_string(),
        InputRef { source: Source::Blob(Digest::of(&kernel.to_le_bytes())), form },
    )]);
    for before in &CHAIN[at.saturating_sub(2)..at] {
        let source = Source::Output { node: id(*before), name: "out".into(), required: true };
        inputs.insert(before.name().into(), InputRef { source, form });
    }
    Node {
        id: id(kind),
        labels: Labels { package: "package".into(), kernel: Some(format!("kernel_{kernel:06}")), ..Labels::default() },
        rank: Rank { round: 0, phase: 0, wave: 0, kind },
        kind,
        params: serde_json::json!({
            "arch": "sm_90a", "std": "c++17", "entries": ["rms_norm<float, 256, 4>"], "defines": {"BLOCK": 256, "VEC": 4},
            "flags": ["--use_fast_math", "-lineinfo"], "compiler": {"name": "nvrtc", "version": "13.0"}, "seed": kernel
        }),
        inputs,
        after: vec![],
        product: None,
        resources: Resources { cpus: 1, ..Resources::default() },
        time_limit_s: 60,
        unavailable: None,
        expands: false,
        advisory: false,
    }
}

#[derive(Default)]
struct Store {
    results: Mutex<HashMap<Digest, StepResult>>,
    keys: Mutex<HashMap<String, Digest>>,
}

impl Cache for Store {
    fn get(&self, key: &Digest, _: &Spec) -> io::Result<Option<Hit>> {
        let found = self.results.lock().map_err(|e| io::Error::other(e.to_string()))?.get(key).cloned();
        Ok(found.map(|result| Hit { result, origin: CacheOrigin::Journal, evidence: None, tag: None }))
    }
    fn put(&self, key: &Digest, _: &Spec, result: &StepResult) -> io::Result<()> {
        self.results.lock().map_err(|e| io::Error::other(e.to_string()))?.insert(*key, result.clone());
        Ok(())
    }
}

impl Memory for Store {
    fn last_key(&self, id: &str) -> Option<Digest> {
        self.keys.lock().ok()?.get(id).copied()
    }
    fn last(&self, _: &str) -> Option<PreviousResult> {
        None
    }
    fn remember(&self, row: &Row<'_>) -> io::Result<()> {
        self.keys.lock().map_err(|e| io::Error::other(e.to_string()))?.insert(row.id.into(), *row.key);
        Ok(())
    }
    fn duration(&self, _: &str, _: StepKind) -> Option<u64> {
        None
    }
}

impl Blobs for Store {
    fn get(&self, _: &Digest) -> io::Result<Option<Vec<u8>>> {
        Ok(None)
    }
    fn path(&self, _: &Digest) -> io::Result<Option<PathBuf>> {
        Ok(None)
    }
    fn put(&self, bytes: &[u8]) -> io::Result<Digest> {
        Ok(Digest::of(bytes))
    }
    fn put_file(&self, path: &Path) -> io::Result<Digest> {
        Digest::of_file(path)
    }
    fn has(&self, _: &Digest) -> bool {
        true
    }
}

struct Instantly;

impl Executor for Instantly {
    fn run(&self, job: &Job<'_>) -> Result<Execution, RunError> {
        Ok(Execution { outputs: BTreeMap::from([("out".into(), *job.key)]), ..Execution::default() })
    }
}

impl Expand for Instantly {
    fn expand(&self, _: &Node, _: &StepResult, _: &dyn Fn(&str) -> Option<Vec<u8>>) -> Result<Vec<Node>, ExpandError> {
        Ok(vec![])
    }
}

/// Lets the allocator process freed memory, so that the next measurement does not include it.
fn tidy() {
    std::hint::black_box(vec![1u8; 100_000]);
}

fn best(mut run: impl FnMut() -> Duration) -> f64 {
    (0..5).map(|_| run().as_secs_f64() * 1e3).fold(f64::INFINITY, f64::min)
}

fn main() {
    let store = Store::default();
    let services = Services {
        executor: &Instantly,
        caches: vec![&store],
        remote: None,
        blobs: &store,
        memory: &store,
        locks: &NoLocks,
        expand: &Instantly,
        implementations: &implementations(),
        machine_key: None,
    };
    let options =
        BuildOptions { quiet_fresh: true, capacity: Capacity { cpus: 2, ..Capacity::default() }, ..Default::default() };
    for steps in [10_000, 100_000] {
        let nodes: Vec<Node> =
            (0..steps / CHAIN.len()).flat_map(|k| (0..CHAIN.len()).map(move |a| node(k, a))).collect();
        let graph = || Graph::new(nodes.clone()).expect("the plan of this bench is sound");
        let cold = Instant::now();
        build(graph(), &options, &services, &mut |_| {});
        println!("{steps:>7} steps, cold, nothing to do in any: {:8.1} ms", cold.elapsed().as_secs_f64() * 1e3);
        let made = best(|| {
            let nodes = nodes.clone();
            tidy();
            let start = Instant::now();
            let graph = Graph::new(nodes);
            let took = start.elapsed();
            assert!(graph.is_ok(), "the plan of this bench is sound");
            took
        });
        println!("{steps:>7} steps, graph made:                   {made:8.1} ms");
        for quiet_fresh in [true, false] {
            let options = BuildOptions { quiet_fresh, ..options.clone() };
            let fresh = best(|| {
                let graph = graph();
                tidy();
                let start = Instant::now();
                let outcome = build(graph, &options, &services, &mut |_| {});
                let took = start.elapsed();
                assert_eq!(outcome.counts.fresh, steps as u64, "all is fresh");
                took
            });
            println!("{steps:>7} steps, fresh, quiet {quiet_fresh:<5}:          {fresh:8.1} ms");
        }
        let dry = best(|| {
            let graph = graph();
            tidy();
            let start = Instant::now();
            std::hint::black_box(dry_run(graph, &options, &services));
            start.elapsed()
        });
        println!("{steps:>7} steps, dry run:                      {dry:8.1} ms");
        let specs: Vec<Spec> = nodes.iter().map(spec).collect();
        let keys = best(|| {
            let start = Instant::now();
            for spec in &specs {
                std::hint::black_box(spec.key());
            }
            start.elapsed()
        });
        println!("{steps:>7} specs, keys alone:                   {keys:8.1} ms");
    }
    let judges: Vec<Node> = (0..10_000)
        .map(|k| {
            let mut judge = node(k, 0);
            judge.kind = StepKind::Judge;
            judge.rank.kind = StepKind::Judge;
            judge
        })
        .collect();
    let pure = best(|| {
        let empty = Store::default();
        let services = Services { caches: vec![&empty], memory: &empty, ..services };
        let graph = Graph::new(judges.clone()).expect("the plan of this bench is sound");
        let start = Instant::now();
        let outcome = build(graph, &options, &services, &mut |_| {});
        assert_eq!(outcome.counts.executed, 10_000, "all runs");
        start.elapsed()
    });
    println!("  10000 pure steps run:                       {pure:8.1} ms");
}

fn spec(node: &Node) -> Spec {
    let inputs = node.inputs.iter().map(|(name, input)| {
        let digest = Some(Digest::of(name.as_bytes()));
        (name.clone(), kforge::record::Input { digest, form: input.form })
    });
    Spec { kind: node.kind, version: 1, implementation: None, params: node.params.clone(), inputs: inputs.collect() }
}
