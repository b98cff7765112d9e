//! The state of each node, and the check of a node once everything that it waits for has ended: bind, form the key, ask the caches. Shared by a build
//! and a dry run, so that both reach the same conclusions. Knows nothing of threads and resources.
//!
//! The order of the questions matters:
//!
//! 1. *bind*: something required that gave nothing skips the step;
//! 2. *claims*: a step with an equal key that runs or ran in this build answers for this one, whatever its outcome; for steps that observe a device, only one
//!    that asks the same product;
//! 3. *caches*: a known result counts even where this machine could not run the step;
//! 4. *unavailable*: only then kforge checks whether this machine can run the step;
//! 5. *stopped*: a build that is ending starts nothing more, except pure steps whose inputs are all known: they still judge what was observed.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rayon::prelude::*;
use serde_json::Value;

use super::bind::{Bound, bind};
use super::explain::{chain, plain, why_from};
use super::lookup::{BoundNode, Lookup, View};
use super::services::{Because, BuildOptions, Row, Services};
use super::{ExpandError, Graph, Hit, Index, Node};
use kforge_foundation::base::Digest;
use kforge_types::record::event::{CacheOrigin, EvidenceSeen, Trouble};
use kforge_types::record::{Note, Outcome, Spec, StepResult};

/// The text with which a step is skipped because the build was interrupted.
pub(super) const INTERRUPTED: &str = "interrupted";

/// What became of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// Whether it ran.
    pub outcome: Outcome,
    /// Its key, where all its inputs were known.
    pub key: Option<Digest>,
    /// What it gave; none where it gave nothing.
    pub result: Option<StepResult>,
    /// Who remembered the result.
    pub cache: CacheOrigin,
    /// Where it was observed.
    pub evidence: Option<EvidenceSeen>,
    /// Why it has another key than the time before, or ran; from itself to the root cause.
    pub because: Vec<Because>,
    /// Messages of a failure; those of a result are in it.
    pub notes: Vec<Note>,
    /// What of the system made it fail, where that is known.
    pub trouble: Option<Trouble>,
    /// When it started, in milliseconds after the build did; none if it did not run.
    pub started_ms: Option<u64>,
    /// How long it ran, in milliseconds; zero if it did not.
    pub duration_ms: u64,
    /// Whether it gave nothing only because the build ended before.
    pub stopped: bool,
    /// Whether it gave nothing only because the build was interrupted.
    pub interrupted: bool,
    /// Whether its result is of the kind that is not kept.
    pub forgotten: bool,
    /// Whether its result was known before this build: neither it nor another step with the same key ran for it.
    pub known: bool,
    /// The result of a step that failed only because its expansion did: another step with the same key may be content with it.
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
            stopped: false,
            interrupted: false,
            forgotten: false,
            known: false,
            unexpanded: None,
        }
    }

    /// A step whose result was known.
    pub(super) fn fresh(key: Digest, hit: Hit) -> Done {
        let Hit { result, origin, evidence } = hit;
        Done { result: Some(result), cache: origin, evidence, known: true, ..Done::nothing(Outcome::Fresh, Some(key)) }
    }

    /// A step that the end of the build came before: `why` it ended, if not because it was interrupted.
    pub(super) fn stopped(why: Option<&str>, key: Option<Digest>) -> Done {
        let outcome = Outcome::Skipped(why.unwrap_or(INTERRUPTED).to_string());
        Done { stopped: true, interrupted: why.is_none(), ..Done::nothing(outcome, key) }
    }

    /// Whether this, of that node, stops a build that is not to go on after a failure.
    pub(super) fn fails(&self, node: &Node) -> bool {
        let wrong =
            self.result.as_ref().is_some_and(|r| matches!(r.verdict, Some(kforge_types::record::Verdict::Fail(_))));
        (wrong && !node.advisory) || matches!(self.outcome, Outcome::Failed(_))
    }

    /// The same where the step's result could not be expanded.
    pub(super) fn not_expanded(self, error: &ExpandError) -> Done {
        Done {
            outcome: Outcome::Failed(error.to_string()),
            unexpanded: self.result.map(Box::new),
            result: None,
            ..self
        }
    }

    /// What another step with the same key becomes through this one.
    fn twin(&self) -> Done {
        let result = self.result.as_ref().or(self.unexpanded.as_deref()).cloned();
        let (outcome, cache) = match result {
            Some(_) => (Outcome::Fresh, CacheOrigin::Journal),
            None => (self.outcome.clone(), CacheOrigin::None),
        };
        let (evidence, notes) = (self.evidence.clone(), self.notes.clone());
        let (stopped, interrupted, trouble) = (self.stopped, self.interrupted, self.trouble);
        let (forgotten, known) = (self.forgotten, self.known);
        let of = Done::nothing(outcome, self.key);
        Done { result, cache, evidence, notes, stopped, interrupted, trouble, forgotten, known, ..of }
    }
}

/// How far a node is.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly every node ends as the large one")]
pub(super) enum State {
    /// It waits, is ready or runs.
    Open,
    /// In a dry run: it has ended for those who wait for it, with a result that nobody knows.
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
    /// It is to run although its result may be known.
    pub(super) again: bool,
}

/// What a check found.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly every check finds the large one, and there is one at a time")]
pub(super) enum NodeCheck {
    /// It has ended.
    Done(Done),
    /// It has to run.
    Run(Box<PendingStep>),
    /// This node, with the same key, is to run or runs.
    Twin(Index, Box<PendingStep>),
    /// Its key cannot be formed yet: in a dry run only.
    Unknown,
}

/// From how many nodes on those that wait for their turn are looked up side by side.
const MANY: usize = if cfg!(test) { 2 } else { 64 };

/// A walk over a graph.
pub(super) struct Walk<'a> {
    pub(super) graph: Graph,
    pub(super) services: &'a Services<'a>,
    pub(super) options: &'a BuildOptions,
    pub(super) states: Vec<State>,
    /// Nodes whose dependencies have all ended, to be checked in this order.
    pub(super) queue: VecDeque<Index>,
    /// Why nothing more is to start.
    pub(super) stopping: Option<String>,
    /// Things that went wrong without harm to any result, each once, in order.
    pub(super) troubles: Vec<String>,
    told: BTreeSet<String>,
    /// For each node: how many of its dependencies have not ended.
    pending: Vec<u32>,
    /// Who runs, or ran, which key in this build, by the product that is asked.
    claims: HashMap<(Digest, Option<String>), Index>,
    /// What was looked up ahead of a node's turn.
    ahead: HashMap<Index, Lookup>,
    /// Whether new keys of fresh steps are remembered.
    remembers: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn new(graph: Graph, options: &'a BuildOptions, services: &'a Services<'a>, remembers: bool) -> Self {
        let mut walk = Walk {
            states: Vec::with_capacity(graph.len()),
            pending: Vec::with_capacity(graph.len()),
            queue: VecDeque::new(),
            claims: HashMap::new(),
            ahead: HashMap::new(),
            troubles: vec![],
            told: BTreeSet::new(),
            stopping: None,
            graph,
            services,
            options,
            remembers,
        };
        walk.take_in(0..walk.graph.len() as Index);
        walk
    }

    /// Takes nodes of the graph in that are new.
    fn take_in(&mut self, nodes: Range<Index>) {
        self.states.resize_with(nodes.end as usize, || State::Open);
        self.options.total.store(u64::from(nodes.end), Ordering::Relaxed);
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

    /// Keeps a trouble, once.
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

    /// What this node comes to. Where many wait for their turn, all of them are looked up at once: what they read has ended, and will not change.
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
        // It is the first of them.
        self.ahead.remove(&index).expect("BUG: a node that was looked up is not there")
    }

    /// Checks a node all of whose dependencies have ended. See the head of this file for the order of the questions.
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

    /// The second half of [`Walk::check`]; gives the spec back where it is not needed any more.
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
        let node = self.graph.node(index);
        if let Some(missing) = &node.unavailable {
            let lacks = self.services.caches.iter().find_map(|cache| cache.lacks(&key, &spec, claim.1.as_deref()));
            let missing = lacks.map_or_else(|| missing.clone(), |lacks| format!("{missing}, and {lacks}"));
            let done = Done::nothing(Outcome::Unavailable(missing), Some(key));
            return (NodeCheck::Done(done), Some(spec));
        }
        if let Some(why) = self.stopping.as_deref().filter(|_| !node.kind.is_pure()) {
            return (NodeCheck::Done(Done::stopped(Some(why), Some(key))), Some(spec));
        }
        self.claims.insert(claim, index);
        (NodeCheck::Run(Box::new(self.todo(index, spec, key, again))), None)
    }

    /// Whether what a known result adds to the graph can be read. Caches look at sizes only; a content that turns out to be corrupt is removed by the store
    /// when it is read, and the step runs again like any whose result is not there.
    fn expandable(&self, index: Index, hit: &Hit) -> bool {
        let there = |digest: &Digest| self.services.blobs.get(digest).is_ok_and(|bytes| bytes.is_some());
        !self.graph.node(index).expands || hit.result.outputs.values().all(there)
    }

    /// All that is to be known of a step that runs or has a twin that does. The spec is kept, so the node gets a copy of its parameters.
    fn todo(&mut self, index: Index, spec: Spec, key: Digest, again: bool) -> PendingStep {
        let explanation = spec.explain();
        let because = self.because(index, &explanation, again);
        self.graph.put_params(index, spec.params.clone());
        PendingStep { spec: Arc::new(spec), key, explanation, because, again }
    }

    /// Takes back that a node is to run its key.
    pub(super) fn unclaim(&mut self, index: Index, key: Digest) {
        self.claims.remove(&(key, self.graph.node(index).product.clone()));
    }

    /// The spec of a node, where all its inputs are known.
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

    /// Why a node has another key than the time before, or runs again: the chain to the root cause.
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

    /// Keeps the row of a step whose result is known under a key that is not the one it had last time; gives the reason for that.
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

    /// Keeps the row of a step that has a result.
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
        };
        if let Err(error) = self.services.memory.remember(&row) {
            self.trouble(format!("cannot write the journal: {error}; the next build may repeat the work of this one"));
        }
    }

    /// What a node becomes through the one with the same key.
    pub(super) fn twin_of(&self, owner: Index) -> Option<Done> {
        match &self.states[owner as usize] {
            State::Done(done) => Some(done.twin()),
            _ => None,
        }
    }

    /// Asks for the nodes that a result adds, and takes them in.
    pub(super) fn expand(&mut self, index: Index, result: &StepResult) -> Result<(), ExpandError> {
        let blobs = self.services.blobs;
        let read = |name: &str| blobs.get(result.outputs.get(name)?).ok()?;
        let nodes = self.services.expand.expand(self.graph.node(index), result, &read)?;
        let added = self.graph.expand(index, nodes)?;
        self.take_in(added);
        Ok(())
    }

    /// Ends a node; those that waited for it alone are to be checked next.
    pub(super) fn settle(&mut self, index: Index, state: State) {
        self.states[index as usize] = state;
        for dependent in self.graph.dependents(index) {
            let pending = &mut self.pending[dependent as usize];
            *pending -= 1;
            if *pending == 0 {
                self.queue.push_back(dependent);
            }
        }
    }
}
