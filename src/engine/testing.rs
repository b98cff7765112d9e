//! Helpers for the engine's tests: concise nodes, stores in memory, and an executor whose outputs are a function of the spec.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::SystemTime;

use super::*;
use kforge_foundation::base::Digest;
use kforge_types::record::event::{CacheOrigin, Labels};
use kforge_types::record::implementation::Work;
use kforge_types::record::{Form, Implementations, Platform, Spec, StepKind, StepResult, Verdict};

/// An input with this text, as if it were in the store.
pub(crate) fn blob(text: &str) -> InputRef {
    InputRef { source: Source::Blob(Digest::of(text.as_bytes())), form: Form::Blob }
}

/// The output `out` of another node.
pub(crate) fn output(node: &str, required: bool) -> InputRef {
    InputRef { source: Source::Output { node: node.into(), name: "out".into(), required }, form: Form::Blob }
}

/// A node of the main phase, with one processor slot unless it is pure.
pub(crate) fn node(id: &str, kind: StepKind, inputs: &[(&str, InputRef)]) -> Node {
    Node {
        id: id.into(),
        labels: Labels { package: "p".into(), ..Labels::default() },
        rank: Rank { round: 0, phase: 0, wave: 0, kind },
        kind,
        params: serde_json::json!({}),
        inputs: inputs.iter().map(|(n, i)| (n.to_string(), i.clone())).collect(),
        after: vec![],
        resources: Resources { cpus: u32::from(!kind.is_pure()), ..Resources::default() },
        product: None,
        time_limit_s: 60,
        unavailable: None,
        expands: false,
        advisory: false,
    }
}

/// The same with parameters.
pub(crate) fn with(mut node: Node, params: serde_json::Value) -> Node {
    node.params = params;
    node
}

#[derive(Default)]
pub(crate) struct FakeBlobs(pub(crate) Mutex<HashMap<Digest, Vec<u8>>>);

impl Blobs for FakeBlobs {
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

#[derive(Default)]
pub(crate) struct FakeCache {
    pub(crate) rows: Mutex<HashMap<Digest, StepResult>>,
    pub(crate) broken: bool,
}

impl Cache for FakeCache {
    fn get(&self, key: &Digest, _: &Spec) -> io::Result<Option<Hit>> {
        if self.broken {
            return Err(io::Error::other("broken"));
        }
        let row = self.rows.lock().unwrap().get(key).cloned();
        Ok(row.map(|result| Hit { result, origin: CacheOrigin::Local, evidence: None, tag: None }))
    }
    fn put(&self, key: &Digest, _: &Spec, result: &StepResult) -> io::Result<()> {
        if self.broken {
            return Err(io::Error::other("broken"));
        }
        self.rows.lock().unwrap().insert(*key, result.clone());
        Ok(())
    }
}

/// Serves steps of workers. Answers come from another thread.
#[derive(Default)]
pub(crate) struct FakeRemote {
    pub(crate) rows: Mutex<HashMap<Digest, StepResult>>,
    /// What was asked: the key, and the outputs that are read.
    pub(crate) asked: Mutex<Vec<(Digest, Vec<String>)>>,
    /// Answers wait until this many questions were asked.
    pub(crate) at_least: usize,
    pub(crate) waiting: Mutex<Vec<(Digest, RemoteAnswer)>>,
}

impl RemoteCache for FakeRemote {
    fn serves(&self, spec: &Spec) -> bool {
        spec.kind.lane().is_some()
    }
    fn ask(&self, question: RemoteQuestion, answer: RemoteAnswer) {
        let mut waiting = self.waiting.lock().unwrap();
        waiting.push((question.key, answer));
        let mut asked = self.asked.lock().unwrap();
        asked.push((question.key, question.read));
        if asked.len() < self.at_least {
            return;
        }
        for (key, answer) in waiting.drain(..) {
            let result = self.rows.lock().unwrap().get(&key).cloned();
            let hit = result.map(|result| Hit { result, origin: CacheOrigin::Remote, evidence: None, tag: None });
            std::thread::spawn(move || answer(hit));
        }
    }
    fn put(&self, key: &Digest, _: &Spec, result: &StepResult) {
        self.rows.lock().unwrap().insert(*key, result.clone());
    }
}

#[derive(Default)]
pub(crate) struct FakeMemory {
    pub(crate) rows: RefCell<BTreeMap<String, PreviousResult>>,
    pub(crate) durations: RefCell<BTreeMap<String, u64>>,
}

impl Memory for FakeMemory {
    fn last_key(&self, id: &str) -> Option<Digest> {
        self.rows.borrow().get(id).map(|l| l.key)
    }
    fn last(&self, id: &str) -> Option<PreviousResult> {
        self.rows.borrow().get(id).cloned()
    }
    fn remember(&self, row: &Row<'_>) -> io::Result<()> {
        let last = PreviousResult {
            key: *row.key,
            explanation: row.explanation.to_vec(),
            forgotten: row.result.is_none(),
            because: row.because.to_vec(),
            known: row.known,
        };
        self.rows.borrow_mut().insert(row.id.into(), last);
        Ok(())
    }
    fn duration(&self, id: &str, _: StepKind) -> Option<u64> {
        self.durations.borrow().get(id).copied()
    }
}

/// Executes as the parameters say:
///
/// | parameter | effect |
/// |---|---|
/// | `modulo` | the output is one of this many values, so that a change may be cut off |
/// | `fail`, `unavailable`, `panic`, `none` | gives no result, or one without the output |
/// | `wrong`, `forget` | gives a failing verdict; a result that is not stored |
/// | `sleep_ms` | takes that long |
/// | `interrupt` | sets the flag as a signal would, then returns as a correct executor does |
#[derive(Default)]
pub(crate) struct FakeExecutor {
    /// The id and key of every run.
    pub(crate) ran: Mutex<Vec<(String, Digest)>>,
    /// When each step that ran was planned, by its id.
    pub(crate) planned: Mutex<BTreeMap<String, SystemTime>>,
    now: AtomicUsize,
    /// The maximum number of steps that ran at once.
    pub(crate) most: AtomicUsize,
}

impl FakeExecutor {
    /// Returns the ids of the steps that ran, in order, and clears the list.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.ran.lock().unwrap()).into_iter().map(|r| r.0).collect()
    }
}

impl Executor for FakeExecutor {
    fn run(&self, job: &Job<'_>) -> Result<Execution, RunError> {
        self.most.fetch_max(self.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        self.ran.lock().unwrap().push((job.id.into(), *job.key));
        self.planned.lock().unwrap().insert(job.id.into(), job.planned);
        let ran = behave(job);
        self.now.fetch_sub(1, Ordering::SeqCst);
        ran
    }
}

fn behave(job: &Job<'_>) -> Result<Execution, RunError> {
    let p = &job.spec.params;
    let on = |name: &str| p.get(name).is_some_and(|v| v.as_bool() == Some(true));
    if on("interrupt") {
        job.interrupted.store(true, Ordering::SeqCst);
    }
    if job.interrupted.load(Ordering::SeqCst) {
        return Err(RunError::Interrupted);
    }
    if let Some(ms) = p.get("sleep_ms").and_then(serde_json::Value::as_u64) {
        std::thread::sleep(std::time::Duration::from_millis(ms));
    }
    if on("fail") {
        return Err(RunError::failed("refused"));
    }
    if on("unavailable") {
        return Err(RunError::Unavailable("no tool".into()));
    }
    assert!(!on("panic"), "a bug");
    let hash = job.key.hash();
    let number = u64::from_le_bytes(std::array::from_fn(|i| hash[i]));
    let text = match p.get("modulo").and_then(serde_json::Value::as_u64) {
        Some(modulo) => format!("{}", number % modulo.max(1)),
        None => format!("{number}"),
    };
    let out = job.blobs.put(text.as_bytes()).map_err(|e| RunError::io("", &e))?;
    let outputs = if on("none") { BTreeMap::new() } else { BTreeMap::from([("out".to_string(), out)]) };
    let verdict = on("wrong").then(|| Verdict::Fail("wrong".into()));
    let (forget, elsewhere) = (on("forget"), on("elsewhere"));
    // The other machine took a minute and a half for it.
    let took = elsewhere.then_some(std::time::Duration::from_secs(90));
    Ok(Execution { outputs, verdict, forget, elsewhere, took, ..Execution::default() })
}

/// Adds the nodes that the function returns for a node and the text of its output.
pub(crate) struct FakeExpand(pub(crate) fn(&Node, &str) -> Vec<Node>);

impl Expand for FakeExpand {
    fn expand(
        &self,
        node: &Node,
        _: &StepResult,
        read: &dyn Fn(&str) -> Option<Vec<u8>>,
    ) -> Result<Vec<Node>, ExpandError> {
        let text = read("out").ok_or(ExpandError::NotStored("the output"))?;
        Ok((self.0)(node, &String::from_utf8_lossy(&text)))
    }
}

/// A workspace's stores, and an executor.
pub(crate) struct World {
    pub(crate) blobs: FakeBlobs,
    pub(crate) cache: FakeCache,
    pub(crate) remote: Option<FakeRemote>,
    pub(crate) memory: FakeMemory,
    pub(crate) executor: FakeExecutor,
    pub(crate) expand: FakeExpand,
    pub(crate) options: BuildOptions,
}

impl Default for World {
    fn default() -> Self {
        let options = BuildOptions { keep_going: true, ..BuildOptions::default() };
        World {
            blobs: FakeBlobs::default(),
            cache: FakeCache::default(),
            remote: None,
            memory: FakeMemory::default(),
            executor: FakeExecutor::default(),
            expand: FakeExpand(|_, _| vec![]),
            options,
        }
    }
}

/// Implementations of every kind of step that does not observe a device.
pub(crate) fn implementations() -> &'static Implementations {
    static ALL: LazyLock<Implementations> = LazyLock::new(|| {
        let work: Vec<Work> = StepKind::ALL
            .into_iter()
            .filter(|kind| !kind.observes_device())
            .flat_map(|kind| [Platform::Any, Platform::Cpu, Platform::Device].map(|on| (kind, on, &["code"] as &[_])))
            .collect();
        Implementations::new(&work, &[("code", [7; 32], 1)])
    });
    &ALL
}

impl World {
    pub(crate) fn services(&self) -> Services<'_> {
        Services {
            executor: &self.executor,
            caches: vec![&self.cache],
            remote: self.remote.as_ref().map(|remote| remote as _),
            blobs: &self.blobs,
            memory: &self.memory,
            locks: &NoLocks,
            expand: &self.expand,
            implementations: implementations(),
            machine_key: None,
        }
    }

    /// A graph of these nodes.
    pub(crate) fn graph(&self, nodes: &[Node]) -> Graph {
        Graph::new(nodes.to_vec()).unwrap()
    }

    pub(crate) fn store(&self, text: &str) -> InputRef {
        self.blobs.put(text.as_bytes()).unwrap();
        blob(text)
    }

    pub(crate) fn build(&self, nodes: &[Node]) -> BuildOutcome {
        self.build_telling(nodes).0
    }

    pub(crate) fn build_telling(&self, nodes: &[Node]) -> (BuildOutcome, Vec<kforge_types::record::event::Event>) {
        let mut events = vec![];
        let outcome = build(self.graph(nodes), &self.options, &self.services(), &mut |e| events.push(e));
        (outcome, events)
    }

    pub(crate) fn dry_run(&self, nodes: &[Node]) -> DryRun {
        dry_run(self.graph(nodes), &self.options, &self.services())
    }
}
