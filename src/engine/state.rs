//! The state of each node, and the check of a node when all its dependencies have ended: bind, form the key, ask the caches. Shared by a build and a dry run,
//! so that both reach the same conclusions. Does not know threads and resources.
//!
//! The order of the checks matters:
//!
//! 1. *bind*: a missing required input skips the step;
//! 2. *claims*: a step with an equal key that runs or ran in this build answers for this one, whatever its outcome; for steps that observe a device, only a
//!    step that asks the same product;
//! 3. *caches*: a known result counts even if this machine cannot run the step;
//! 4. *remote cache*: asked only if no cache of this machine has a result. The node waits for the answer, and others are checked in the meantime;
//! 5. *unavailable*: only then does kforge check whether this machine can run the step;
//! 6. *stopped*: a build that is ending starts no more steps, except pure steps whose inputs are all known: they still judge what was observed.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use rayon::prelude::*;
use serde_json::Value;

use super::bind::{Bound, bind};
use super::explain::{chain, plain, why_from};
use super::graph::STORED;
use super::lookup::{BoundNode, Lookup, View};
use super::machine_key::Tag;
use super::services::{Because, BuildOptions, Row, Services, lacking};
use super::{ExpandError, Graph, Hit, Index, Node, RemoteQuestion, Source, Unanswered};
use kforge_foundation::base::Digest;
use kforge_types::record::event::{CacheOrigin, EvidenceSeen, Trouble, Wait};
use kforge_types::record::{Note, Outcome, Spec, StepResult};

/// The reason of a step that is skipped because the build was interrupted.
pub(super) const INTERRUPTED: &str = "interrupted";

/// The end of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// The outcome.
    pub outcome: Outcome,
    /// The key, if all inputs were known.
    pub key: Option<Digest>,
    /// The result; none if the step gave nothing.
    pub result: Option<StepResult>,
    /// The cache that had the result.
    pub cache: CacheOrigin,
    /// The provenance of the observation.
    pub evidence: Option<EvidenceSeen>,
    /// Why the step ran or its key changed, from the step to the root cause.
    pub because: Vec<Because>,
    /// Messages of a failure; the messages of a result are in the result.
    pub notes: Vec<Note>,
    /// The fault of the system that made the step fail, if known.
    pub trouble: Option<Trouble>,
    /// The start in milliseconds after the start of the build; none if the step did not run.
    pub started_ms: Option<u64>,
    /// The duration of the run in milliseconds; zero if the step did not run.
    pub duration_ms: u64,
    /// What the step waited for before it started.
    pub waits: Vec<Wait>,
    /// Whether the step gave nothing only because the build ended first.
    pub stopped: bool,
    /// Whether the step gave nothing only because the build was interrupted.
    pub interrupted: bool,
    /// Whether the result must not be stored.
    pub forgotten: bool,
    /// Whether the result was known before this build: neither this step nor another with the same key ran.
    pub known: bool,
    /// The tag of the result: made here if the step ran, else as it was stored.
    pub tag: Option<Tag>,
    /// Why what is stored does not answer a step that is unavailable.
    pub unanswered: Option<Unanswered>,
    /// The result of a step that failed only because its expansion did. Another step with the same key may use it.
    pub(super) unexpanded: Option<Box<StepResult>>,
}

impl Done {
    /// A step that gave nothing.
    pub(super) fn nothing(outcome: Outcome, key: Option<Digest>) -> Done {
        Done {
            outcome,
            key,
            result: None,
            cache: CacheOrigin::None,
            evidence: None,
            because: vec![],
            notes: vec![],
            trouble: None,
            started_ms: None,
            duration_ms: 0,
            waits: vec![],
            stopped: false,
            interrupted: false,
            forgotten: false,
            known: false,
            tag: None,
            unanswered: None,
            unexpanded: None,
        }
    }

    /// A step whose result was known.
    pub(super) fn fresh(key: Digest, hit: Hit) -> Done {
        let Hit { result, origin, evidence, tag } = hit;
        let of = Done::nothing(Outcome::Fresh, Some(key));
        Done { result: Some(result), cache: origin, evidence, known: true, tag, ..of }
    }

    /// A step that this machine cannot run, and that nothing stored answers.
    pub(super) fn unavailable(missing: String, unanswered: Option<Unanswered>, key: Digest) -> Done {
        let missing = unanswered.as_ref().map_or_else(|| missing.clone(), |why| format!("{missing}, and {why}"));
        Done { unanswered, ..Done::nothing(Outcome::Unavailable(missing), Some(key)) }
    }

    /// A step that did not start before the build ended, for the reason `why`; none if the build was interrupted.
    pub(super) fn stopped(why: Option<&str>, key: Option<Digest>) -> Done {
        let outcome = Outcome::Skipped(why.unwrap_or(INTERRUPTED).to_string());
        Done { stopped: true, interrupted: why.is_none(), ..Done::nothing(outcome, key) }
    }

    /// Whether this end of `node` stops a build that does not keep going.
    pub(super) fn fails(&self, node: &Node) -> bool {
        let wrong =
            self.result.as_ref().is_some_and(|r| matches!(r.verdict, Some(kforge_types::record::Verdict::Fail(_))));
        (wrong && !node.advisory) || matches!(self.outcome, Outcome::Failed(_))
    }

    /// The same step after its expansion failed.
    pub(super) fn not_expanded(self, error: &ExpandError) -> Done {
        Done {
            outcome: Outcome::Failed(error.to_string()),
            unexpanded: self.result.map(Box::new),
            result: None,
            ..self
        }
    }

    /// The end of another step with the same key, which shares this result.
    fn twin(&self) -> Done {
        let result = self.result.as_ref().or(self.unexpanded.as_deref()).cloned();
        let (outcome, cache) = match result {
            Some(_) => (Outcome::Fresh, CacheOrigin::Journal),
            None => (self.outcome.clone(), CacheOrigin::None),
        };
        let (evidence, notes) = (self.evidence.clone(), self.notes.clone());
        let (stopped, interrupted, trouble) = (self.stopped, self.interrupted, self.trouble);
        let (forgotten, known, tag) = (self.forgotten, self.known, self.tag);
        let of = Done { unanswered: self.unanswered.clone(), ..Done::nothing(outcome, self.key) };
        Done { result, cache, evidence, notes, stopped, interrupted, trouble, forgotten, known, tag, ..of }
    }
}

/// The progress of a node.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly every node ends as the large one")]
pub(super) enum State {
    /// It waits, is ready or runs.
    Open,
    /// Only in a dry run: the node counts as ended, with a result that is not known.
    Unknown,
    /// It has ended.
    Done(Done),
}

/// A step that has to run.
#[derive(Debug)]
pub(super) struct PendingStep {
    pub(super) spec: Arc<Spec>,
    pub(super) key: Digest,
    pub(super) explanation: Vec<(String, String)>,
    pub(super) because: Vec<Because>,
    /// The step is to run even if its result is known.
    pub(super) again: bool,
}

/// A step about which the remote cache is asked.
#[derive(Debug)]
pub(super) struct AskedStep {
    pub(super) spec: Arc<Spec>,
    pub(super) key: Digest,
}

/// The result of a check.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly every check finds the large one, and there is one at a time")]
pub(super) enum NodeCheck {
    /// It has ended.
    Done(Done),
    /// It must run.
    Run(Box<PendingStep>),
    /// The remote cache must be asked. Its answer is for [`Walk::check_answer`].
    Ask(AskedStep),
    /// The node with this index has the same key and is about to run, runs, or is asked about.
    Twin(Index, Box<PendingStep>),
    /// Its key cannot be formed yet. Only in a dry run.
    Unknown,
}

/// From this number of waiting nodes on, they are looked up in parallel.
const MANY: usize = if cfg!(test) { 2 } else { 64 };

/// A walk over a graph.
pub(super) struct Walk<'a> {
    pub(super) graph: Graph,
    pub(super) services: &'a Services<'a>,
    pub(super) options: &'a BuildOptions,
    pub(super) states: Vec<State>,
    /// Nodes whose dependencies have all ended, to be checked in this order.
    pub(super) queue: VecDeque<Index>,
    /// Why no more steps start.
    pub(super) stopping: Option<String>,
    /// Problems that affect no result, each once, in order.
    pub(super) troubles: Vec<String>,
    told: BTreeSet<String>,
    /// For each node, the number of its dependencies that have not ended.
    pending: Vec<u32>,
    /// For each node, the step that ran and whose end let it be checked; none if the build began with it.
    released: Vec<Option<Index>>,
    /// The node that runs, or ran, each key in this build, by key and product.
    claims: HashMap<(Digest, Option<String>), Index>,
    /// Nodes that were looked up before their turn.
    ahead: HashMap<Index, Lookup>,
    /// For each step whose output a step without an answer reads: why evidence about that output does not answer.
    unlike: HashMap<Index, Option<Unanswered>>,
    /// Whether new keys of fresh steps are remembered.
    remembers: bool,
    /// When nodes were planned: from which index on, in ascending order.
    planned: Vec<(Index, SystemTime)>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(graph: Graph, options: &'a BuildOptions, services: &'a Services<'a>, remembers: bool) -> Self {
        let mut walk = Walk {
            states: Vec::with_capacity(graph.len()),
            pending: Vec::with_capacity(graph.len()),
            released: Vec::with_capacity(graph.len()),
            queue: VecDeque::new(),
            claims: HashMap::new(),
            ahead: HashMap::new(),
            unlike: HashMap::new(),
            troubles: vec![],
            told: BTreeSet::new(),
            stopping: None,
            graph,
            services,
            options,
            remembers,
            planned: vec![],
        };
        walk.take_in(0..walk.graph.len() as Index, None);
        walk
    }

    /// Adds the new nodes of the graph to the walk. `by` is the step that ran and whose end added them.
    fn take_in(&mut self, nodes: Range<Index>, by: Option<Index>) {
        self.planned.push((nodes.start, SystemTime::now()));
        self.states.resize_with(nodes.end as usize, || State::Open);
        self.released.resize(nodes.end as usize, by);
        self.options.gauge.plans(u64::from(nodes.end));
        for node in nodes {
            let open =
                self.graph.dependencies(node).filter(|d| matches!(self.states[*d as usize], State::Open)).count();
            self.pending.push(open as u32);
            if open == 0 {
                self.queue.push_back(node);
            }
        }
    }

    /// Whether the build was interrupted.
    pub(super) fn interrupted(&self) -> bool {
        self.options.interrupted.load(Ordering::Relaxed)
    }

    /// Records a problem, once.
    pub(super) fn trouble(&mut self, text: String) {
        if self.told.insert(text.clone()) {
            self.troubles.push(text);
        }
    }

    fn view(&self) -> View<'_> {
        View {
            graph: &self.graph,
            states: &self.states,
            caches: &self.services.caches,
            options: self.options,
            implementations: self.services.implementations,
        }
    }

    /// The lookup of a node. If many nodes wait for their turn, they are all looked up at once: their dependencies have ended and will not change.
    fn looked(&mut self, index: Index) -> Lookup {
        if let Some(looked) = self.ahead.remove(&index) {
            return looked;
        }
        if self.queue.len() < MANY {
            let params = self.graph.take_params(index);
            return self.view().look(index, params);
        }
        let waiting: Vec<Index> = self.queue.iter().copied().filter(|i| !self.ahead.contains_key(i)).collect();
        let all: Vec<(Index, Value)> =
            std::iter::once(index).chain(waiting).map(|i| (i, self.graph.take_params(i))).collect();
        let view = self.view();
        let found: Vec<(Index, Lookup)> = all.into_par_iter().map(|(i, params)| (i, view.look(i, params))).collect();
        self.ahead.extend(found);
        // The lookups include that of the node itself.
        self.ahead.remove(&index).expect("BUG: a node that was looked up is not there")
    }

    /// Checks a node whose dependencies have all ended. The head of this file explains the order of the checks.
    pub(super) fn check(&mut self, index: Index) -> NodeCheck {
        if self.interrupted() {
            return NodeCheck::Done(Done::stopped(None, None));
        }
        let (why, params) = match self.looked(index) {
            Lookup::Found(found) => {
                let (checked, spec) = self.check_found(index, *found);
                if let Some(spec) = spec {
                    self.graph.put_params(index, spec.params);
                }
                return checked;
            }
            Lookup::Not(why, params) => (why, params),
        };
        self.graph.put_params(index, params);
        match why {
            Bound::Ready(()) | Bound::NotYet => NodeCheck::Unknown,
            Bound::Skipped(root) => NodeCheck::Done(Done::nothing(Outcome::Skipped(root), None)),
            Bound::Stopped => NodeCheck::Done(Done::stopped(self.stopping.as_deref(), None)),
        }
    }

    /// The second half of [`Walk::check`]. Returns the spec if it is no longer needed.
    fn check_found(&mut self, index: Index, found: BoundNode) -> (NodeCheck, Option<Spec>) {
        let BoundNode { spec, key, again, hit, troubles } = found;
        let claim = (key, self.graph.node(index).product.clone());
        if let Some(&owner) = self.claims.get(&claim) {
            let Some(mut done) = self.twin_of(owner) else {
                return (NodeCheck::Twin(owner, Box::new(self.todo(index, spec, key, false))), None);
            };
            done.because = self.remember_known(index, &spec, &done);
            return (NodeCheck::Done(done), Some(spec));
        }
        troubles.into_iter().for_each(|t| self.trouble(t));
        if let Some(hit) = hit.filter(|hit| self.expandable(index, hit)) {
            let mut done = Done::fresh(key, hit);
            done.because = self.remember_known(index, &spec, &done);
            return (NodeCheck::Done(done), Some(spec));
        }
        if !again && self.asks(&spec) {
            self.claims.insert(claim, index);
            self.graph.put_params(index, spec.params.clone());
            return (NodeCheck::Ask(AskedStep { spec: Arc::new(spec), key }), None);
        }
        self.check_unknown(index, spec, key, again)
    }

    /// Whether the remote cache is to be asked about such a step. A build that is ending does not wait for more answers.
    fn asks(&self, spec: &Spec) -> bool {
        self.stopping.is_none() && self.services.remote.is_some_and(|remote| remote.serves(spec))
    }

    /// The question about a node. What steps of this process read is read on this machine; a step of a worker may have a result itself.
    pub(super) fn question(&self, index: Index, asked: &AskedStep) -> RemoteQuestion {
        let mut read = BTreeSet::new();
        for dependent in self.graph.dependents(index).filter(|d| self.graph.node(*d).kind.lane().is_none()) {
            let inputs = self.graph.node(dependent).inputs.values().zip(self.graph.sources(dependent));
            read.extend(inputs.filter(|(_, source)| **source == index).filter_map(|(input, _)| match &input.source {
                Source::Output { name, .. } => Some(name.clone()),
                Source::Blob(_) => None,
            }));
        }
        let (key, spec, read) = (asked.key, Arc::clone(&asked.spec), read.into_iter().collect());
        RemoteQuestion { key, spec, read, can_run: self.graph.node(index).unavailable.is_none() }
    }

    /// The rest of the check of a node about which the remote cache was asked.
    pub(super) fn check_answer(&mut self, index: Index, asked: AskedStep, hit: Option<Hit>) -> NodeCheck {
        let AskedStep { spec, key } = asked;
        if let Some(hit) = hit.filter(|hit| self.expandable(index, hit)) {
            let mut done = Done::fresh(key, hit);
            done.because = self.remember_known(index, &spec, &done);
            return NodeCheck::Done(done);
        }
        self.unclaim(index, key);
        if self.interrupted() {
            return NodeCheck::Done(Done::stopped(None, Some(key)));
        }
        let (checked, spec) = self.check_unknown(index, Arc::unwrap_or_clone(spec), key, false);
        if let Some(spec) = spec {
            self.graph.put_params(index, spec.params);
        }
        checked
    }

    /// The end of [`Walk::check`], for a node without a known result.
    fn check_unknown(&mut self, index: Index, spec: Spec, key: Digest, again: bool) -> (NodeCheck, Option<Spec>) {
        let node = self.graph.node(index);
        let claim = (key, node.product.clone());
        if let Some(missing) = &node.unavailable {
            let missing = missing.clone();
            let why = match lacking(&self.services.caches, &key, &spec, claim.1.as_deref()) {
                Some(Unanswered::NoEvidence) => Some(self.unlike(index).unwrap_or(Unanswered::NoEvidence)),
                why => why,
            };
            return (NodeCheck::Done(Done::unavailable(missing, why, key)), Some(spec));
        }
        if let Some(why) = self.stopping.as_deref().filter(|_| !node.kind.is_pure()) {
            return (NodeCheck::Done(Done::stopped(Some(why), Some(key))), Some(spec));
        }
        self.claims.insert(claim, index);
        (NodeCheck::Run(Box::new(self.todo(index, spec, key, again))), None)
    }

    /// Whether evidence is about another output of a step that `index` reads than the one that step has.
    fn unlike(&mut self, index: Index) -> Option<Unanswered> {
        let sources: Vec<Index> =
            self.graph.sources(index).iter().copied().filter(|source| *source != STORED).collect();
        sources.into_iter().find_map(|source| {
            if let Some(known) = self.unlike.get(&source) {
                return known.clone();
            }
            let why = match &self.states[source as usize] {
                State::Done(Done { result: Some(result), .. }) => self
                    .spec(source)
                    .and_then(|spec| self.services.caches.iter().find_map(|cache| cache.unlike(&spec, result))),
                _ => None,
            };
            self.unlike.insert(source, why.clone());
            why
        })
    }

    /// Whether the outputs that an expansion reads can be read. Caches check only sizes. The store removes a damaged content when it is read, and the step then
    /// runs again as if it had no result.
    fn expandable(&self, index: Index, hit: &Hit) -> bool {
        let there = |digest: &Digest| self.services.blobs.get(digest).is_ok_and(|bytes| bytes.is_some());
        !self.graph.node(index).expands || hit.result.outputs.values().all(there)
    }

    /// Prepares a step that has ended to run again, because an output of it is no longer in the store; none if it cannot run here.
    pub(super) fn once_more(&mut self, index: Index) -> Option<PendingStep> {
        let is_fresh = matches!(&self.states[index as usize], State::Done(done) if done.outcome == Outcome::Fresh);
        if !is_fresh || self.graph.node(index).unavailable.is_some() {
            return None;
        }
        let spec = self.spec(index)?;
        let (key, explanation) = (spec.key(), spec.explain());
        let because = vec![Because { what: self.graph.node(index).id.to_string(), why: plain("not-cached") }];
        Some(PendingStep { spec: Arc::new(spec), key, explanation, because, again: true })
    }

    /// Prepares a step that runs or that shares the run of its twin. The spec is kept, so the node gets a copy of its parameters.
    fn todo(&mut self, index: Index, spec: Spec, key: Digest, again: bool) -> PendingStep {
        let explanation = spec.explain();
        let because = self.because(index, &explanation, again);
        self.graph.put_params(index, spec.params.clone());
        PendingStep { spec: Arc::new(spec), key, explanation, because, again }
    }

    /// Withdraws a node's claim to run its key.
    pub(super) fn unclaim(&mut self, index: Index, key: Digest) {
        self.claims.remove(&(key, self.graph.node(index).product.clone()));
    }

    /// The spec of a node; none unless all its inputs are known.
    pub(super) fn spec(&self, index: Index) -> Option<Spec> {
        let sources = self.graph.sources(index);
        let view = self.view();
        match bind(self.graph.node(index), self.services.implementations, |position, output| {
            view.given(sources[position], output)
        }) {
            Bound::Ready(spec) => Some(spec),
            _ => None,
        }
    }

    /// Why a node's key changed, or why it runs again: the chain to the root cause.
    fn because(&self, index: Index, explanation: &[(String, String)], again: bool) -> Vec<Because> {
        let Services { memory, blobs, .. } = self.services;
        let why = match again {
            true => plain("remeasure"),
            false => why_from(memory.last(&self.graph.node(index).id).as_ref(), explanation),
        };
        let now = |i: Index| match &self.states[i as usize] {
            State::Done(done) if !done.because.is_empty() => Some(done.because.clone()),
            _ => None,
        };
        chain(&self.graph, index, &why, now, *memory, *blobs)
    }

    /// Stores the row of a step whose result is known under another key than last time. Returns why the key changed.
    fn remember_known(&mut self, index: Index, spec: &Spec, done: &Done) -> Vec<Because> {
        let (Some(key), Some(_)) = (done.key, &done.result) else { return vec![] };
        let id = &self.graph.node(index).id;
        if !self.remembers || self.services.memory.last_key(id) == Some(key) {
            return vec![];
        }
        let explanation = spec.explain();
        let because = self.because(index, &explanation, false);
        self.remember(index, done, &explanation, &because);
        because
    }

    /// Stores the row of a step that has a result.
    pub(super) fn remember(
        &mut self,
        index: Index,
        done: &Done,
        explanation: &[(String, String)],
        because: &[Because],
    ) {
        let (Some(key), Some(result)) = (&done.key, &done.result) else { return };
        let node = self.graph.node(index);
        let row = Row {
            id: &node.id,
            kind: node.kind,
            key,
            explanation,
            result: Some(result).filter(|_| !done.forgotten),
            origin: done.cache,
            evidence: done.evidence.as_ref(),
            duration_ms: done.started_ms.map(|_| done.duration_ms),
            because,
            known: done.known,
            tag: done.tag,
        };
        if let Err(error) = self.services.memory.remember(&row) {
            self.trouble(format!("cannot write the journal: {error}; the next build may repeat the work of this one"));
        }
    }

    /// The end of a node that shares the result of `owner`; none if `owner` has not ended.
    pub(super) fn twin_of(&self, owner: Index) -> Option<Done> {
        match &self.states[owner as usize] {
            State::Done(done) => Some(done.twin()),
            _ => None,
        }
    }

    /// Adds the nodes that a result calls for to the graph and to the walk.
    pub(super) fn expand(&mut self, index: Index, done: &Done, result: &StepResult) -> Result<(), ExpandError> {
        let blobs = self.services.blobs;
        let read = |name: &str| blobs.get(result.outputs.get(name)?).ok()?;
        let nodes = self.services.expand.expand(self.graph.node(index), result, &read)?;
        let added = self.graph.expand(index, nodes)?;
        self.take_in(added, self.ran(index, done));
        Ok(())
    }

    /// When a node was planned.
    pub(super) fn planned(&self, index: Index) -> SystemTime {
        let since = self.planned.iter().rev().find(|(first, _)| *first <= index);
        since.map_or_else(SystemTime::now, |(_, at)| *at)
    }

    /// The step that ran and whose end let this one be checked.
    pub(super) fn released(&self, index: Index) -> Option<Index> {
        self.released[index as usize]
    }

    /// A node ends with another one that has the same key.
    pub(super) fn ends_with(&mut self, twin: Index, owner: Index) {
        self.released[twin as usize] = match &self.states[owner as usize] {
            State::Done(done) => self.ran(owner, done),
            _ => None,
        };
    }

    /// The node itself if it ran, else the step that ran and whose end let it end.
    fn ran(&self, index: Index, done: &Done) -> Option<Index> {
        if done.started_ms.is_some() { Some(index) } else { self.released(index) }
    }

    /// Ends a node. Nodes that waited only for it are queued for a check.
    pub(super) fn settle(&mut self, index: Index, state: State) {
        let by = match &state {
            State::Done(done) => self.ran(index, done),
            _ => None,
        };
        self.states[index as usize] = state;
        for dependent in self.graph.dependents(index) {
            let pending = &mut self.pending[dependent as usize];
            *pending -= 1;
            if *pending == 0 {
                self.released[dependent as usize] = by;
                self.queue.push_back(dependent);
            }
        }
    }
}
