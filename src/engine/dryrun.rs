//! Computes what a build would do: the same walk, up to results that are not known. Knows what is remembered; does not run steps and does not write anything.
//!
//! | a step | is |
//! |---|---|
//! | whose key is formed from known results, and is cached | fresh |
//! | whose key is formed from known results, and is not cached | *will* run |
//! | whose key depends on a result that is not known yet | *may* run: the result may be the same as before |
//! | whose key is known, but which comes after a step that *may* run | *may* run: the two may have the same key |
//!
//! If nothing fails, every step under *will* runs. Every step that runs is under *will* or *may*, or is added by the expansion of a step of [`DryRun::adds`].

use std::collections::{BTreeSet, HashMap};

use crossbeam_channel::unbounded;

use super::action::makes_binary;
use super::evidence::HERE;
use super::explain::{Earlier, Explanation, Prospect, chain, plain, why_from};
use super::services::{Because, BuildOptions, PreviousResult, Services};
use super::state::{AskedStep, Done, NodeCheck, State, Walk};
use super::{Graph, Index, Memory, Node, NodeId, Source};
use kforge_foundation::base::Digest;
use kforge_types::record::event::{CacheOrigin, Why};
use kforge_types::record::{Outcome, Spec, StepKind, StepResult};

/// What a build would do.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DryRun {
    /// Steps that will run, and why, in the order in which the walk reaches them.
    pub will: Vec<(NodeId, Why)>,
    /// The keys with which they will run.
    pub keys: HashMap<NodeId, Digest>,
    /// Steps that run if the results of other steps change.
    pub may: Vec<NodeId>,
    /// Steps whose results are not known and may add steps that have no names yet. Some are in *will* or *may*, where they are shown with a `+`; the others run
    /// nothing themselves because they share the run of a step with the same key.
    pub adds: Vec<NodeId>,
    /// How many results are known.
    pub fresh: usize,
    /// Steps that this machine cannot run, and what is missing.
    pub unavailable: Vec<(NodeId, String)>,
    /// Steps that are skipped because a step that they need gives nothing, and the first such step.
    pub skipped: Vec<(NodeId, String)>,
}

/// Computes what a build of this graph would do.
pub fn dry_run(graph: Graph, options: &BuildOptions, services: &Services<'_>) -> DryRun {
    let dry = Dry::walk(graph, options, services);
    let walk = &dry.walk;
    let id = |i: Index| walk.graph.node(i).id.clone();
    // A failure that is already known ends the build before anything but pure steps has started.
    let starts = |i: Index| walk.stopping.is_none() || walk.graph.node(i).kind.is_pure();
    let mut out = DryRun::default();
    for (index, because) in dry.will.iter().filter(|(i, _)| starts(*i)) {
        out.will.extend(because.first().map(|b| (id(*index), b.why.clone())));
        out.keys.extend(dry.keys.get(index).map(|key| (id(*index), *key)));
    }
    out.may = dry.may.iter().map(|i| id(*i)).collect();
    let held: BTreeSet<Index> = dry.will.iter().chain(&dry.shares).map(|w| w.0).filter(|i| !starts(*i)).collect();
    let open = |i: &Index| matches!(walk.states[*i as usize], State::Unknown) && !held.contains(i);
    let nodes = 0..walk.graph.len() as Index;
    out.adds = nodes.filter(|i| walk.graph.node(*i).expands && open(i)).map(id).collect();
    for (index, state) in walk.states.iter().enumerate() {
        match state {
            State::Done(Done { outcome: Outcome::Fresh, .. }) => out.fresh += 1,
            State::Done(Done { outcome: Outcome::Unavailable(missing), .. }) => {
                out.unavailable.push((id(index as Index), missing.clone()));
            }
            State::Done(Done { outcome: Outcome::Skipped(root), stopped: false, .. }) => {
                out.skipped.push((id(index as Index), root.clone()));
            }
            _ => {}
        }
    }
    out
}

/// Why a step would run now, or why it has its current key; none if there is no such step.
pub fn explain(graph: Graph, options: &BuildOptions, services: &Services<'_>, id: &str) -> Option<Explanation> {
    let keep_going = BuildOptions { keep_going: true, ..options.clone() };
    let dry = Dry::walk(graph, &keep_going, services);
    let index = dry.walk.graph.find(id)?;
    let last = services.memory.last(id);
    let prospect = dry.prospect(index);
    let changed = dry.changed(index);
    let earlier = match (&prospect, &last) {
        (Prospect::Fresh, _) if changed.is_some() => Some(Earlier::Now),
        (Prospect::Fresh, Some(last)) if last.known => Some(Earlier::LastBuild),
        _ => None,
    };
    let because = match (dry.runs(index), &prospect) {
        (Some(because), _) => because.clone(),
        (None, Prospect::MayRun) => dry.pending(index),
        (None, Prospect::Unavailable(_)) => dry.unanswered(index, last.as_ref()),
        (None, _) => changed.or(last.as_ref().map(|l| l.because.clone())).unwrap_or_default(),
    };
    let product = dry.walk.graph.node(index).product.clone();
    let (evidence, origin) = match &dry.walk.states[index as usize] {
        State::Done(done) => (done.evidence.clone(), done.cache),
        _ => (None, CacheOrigin::None),
    };
    // The compilations in bundles carry no evidence that names an origin. A compilation that ran here has a result of its own in the journal.
    let brought = origin == CacheOrigin::Evidence
        && match &evidence {
            Some(seen) => seen.origin != HERE,
            None => last.as_ref().is_none_or(|last| last.forgotten),
        };
    let fields = dry.walk.spec(index).map(|s| s.explain()).or(last.map(|l| l.explanation)).unwrap_or_default();
    let notes = match &dry.walk.states[index as usize] {
        State::Done(Done { result: Some(result), .. }) => result.notes.clone(),
        _ => vec![],
    };
    Some(Explanation { id: id.to_string(), prospect, product, evidence, brought, because, earlier, notes, fields })
}

/// What is remembered of a step that no plan has now: the fields and reasons of its last run. None if nothing is.
pub fn recalled(memory: &dyn Memory, id: &str) -> Option<Explanation> {
    let last = memory.last(id)?;
    Some(Explanation {
        id: id.to_string(),
        prospect: Prospect::Gone,
        product: None,
        evidence: None,
        brought: false,
        because: last.because,
        earlier: None,
        notes: vec![],
        fields: last.explanation,
    })
}

/// The graph with the nodes that known results add: every node that has a name now.
pub fn expanded(graph: Graph, options: &BuildOptions, services: &Services<'_>) -> Graph {
    let keep_going = BuildOptions { keep_going: true, ..options.clone() };
    Dry::walk(graph, &keep_going, services).walk.graph
}

/// What a step of a plan lacks on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lack {
    /// A build would find the step unavailable, for this reason.
    Unavailable(String),
    /// This machine lacks what the text says. The step's result may still be known; that shows only when its inputs are known.
    Unless(String),
}

/// The graph of [`expanded`], with what each of its steps lacks, in order; none for a step that can run or whose result is known.
pub fn lacking(graph: Graph, options: &BuildOptions, services: &Services<'_>) -> (Graph, Vec<Option<Lack>>) {
    let keep_going = BuildOptions { keep_going: true, ..options.clone() };
    let walk = Dry::walk(graph, &keep_going, services).walk;
    let lack = |(node, state): (&Node, &State)| match state {
        State::Done(Done { outcome: Outcome::Unavailable(why), .. }) => Some(Lack::Unavailable(why.clone())),
        State::Done(_) => None,
        State::Open | State::Unknown => node.unavailable.clone().map(Lack::Unless),
    };
    let lacks = walk.graph.nodes().zip(&walk.states).map(lack).collect();
    (walk.graph, lacks)
}

/// The questions of a plan to devices, as far as known results determine them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Questions {
    /// The questions in the order of the plan, including those of steps that results added.
    pub asked: Vec<Question>,
    /// Steps of other kinds that would have to run before all questions are known.
    pub open: Vec<NodeId>,
    /// Steps whose known results add steps, with these results.
    pub decided: Vec<(Node, StepResult)>,
    /// Finished compilations for devices. The questions are about their binaries.
    pub made: Vec<Compiled>,
}

/// A step that observes a device.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The step.
    pub node: Node,
    /// The spec of its question; none if an input is not known.
    pub spec: Option<Spec>,
    /// Whether the question has been answered.
    pub answered: bool,
}

/// A finished compilation for a device.
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled {
    /// The step.
    pub node: Node,
    /// Its spec.
    pub spec: Spec,
    /// Its result.
    pub result: StepResult,
}

/// Lists the questions of a graph to devices.
pub fn questions(graph: Graph, options: &BuildOptions, services: &Services<'_>) -> Questions {
    Dry::walk(graph, &going_on(options), services).questions()
}

/// Everything that is known of a plan without running any of it.
#[derive(Debug, Clone, Default)]
pub struct ReadyResult {
    /// The steps in order, including those that results added, with how each ended if that is known.
    pub steps: Vec<(Node, Option<Done>)>,
    /// Steps that would have to run for more to be known.
    pub open: Vec<NodeId>,
}

/// Collects what is known of a graph without running any of it.
pub fn known(graph: Graph, options: &BuildOptions, services: &Services<'_>) -> ReadyResult {
    Dry::walk(graph, &going_on(options), services).known()
}

/// The same with the questions of the graph to devices, about the same steps. Results add steps to a plan once, so two walks do not give the same.
pub fn known_and_asked(graph: Graph, options: &BuildOptions, services: &Services<'_>) -> (ReadyResult, Questions) {
    let options = going_on(options);
    let dry = Dry::walk(graph, &options, services);
    let asked = dry.questions();
    (dry.known(), asked)
}

/// The same options, but no failure ends the walk.
fn going_on(options: &BuildOptions) -> BuildOptions {
    BuildOptions { keep_going: true, ..options.clone() }
}

struct Dry<'a> {
    walk: Walk<'a>,
    will: Vec<(Index, Vec<Because>)>,
    /// Their keys.
    keys: HashMap<Index, Digest>,
    may: Vec<Index>,
    /// Nodes that share the run of a node in `will`.
    shares: Vec<(Index, Vec<Because>)>,
    /// Nodes that end only after something has run.
    late: Vec<bool>,
}

impl<'a> Dry<'a> {
    fn walk(graph: Graph, options: &'a BuildOptions, services: &'a Services<'a>) -> Dry<'a> {
        let walk = Walk::new(graph, options, services, false);
        let mut dry = Dry { walk, will: vec![], keys: HashMap::new(), may: vec![], shares: vec![], late: vec![] };
        let (send, answers) = unbounded();
        let mut asked: HashMap<Index, AskedStep> = HashMap::new();
        loop {
            while let Some(index) = dry.walk.queue.pop_front() {
                dry.late.resize(dry.walk.graph.len(), false);
                let waits = |d: Index| matches!(dry.walk.states[d as usize], State::Unknown) || dry.late[d as usize];
                let late = dry.walk.graph.dependencies(index).any(waits);
                dry.late[index as usize] = late;
                match (dry.walk.check(index), services.remote) {
                    (NodeCheck::Ask(step), Some(remote)) => {
                        let (question, send) = (dry.walk.question(index, &step), send.clone());
                        asked.insert(index, step);
                        // A closed channel means that nobody waits for the answer.
                        remote.ask(question, Box::new(move |hit| drop(send.send((index, hit)))));
                    }
                    (checked, _) => dry.settle(index, checked),
                }
            }
            // This keeps a sender, so the channel stays open until every answer is here.
            let Some((index, hit)) = (!asked.is_empty()).then(|| answers.recv().ok()).flatten() else { break };
            if let Some(step) = asked.remove(&index) {
                let checked = dry.walk.check_answer(index, step, hit);
                dry.settle(index, checked);
            }
        }
        dry
    }

    /// Ends a node after its check.
    fn settle(&mut self, index: Index, checked: NodeCheck) {
        let state = self.state(index, checked);
        self.walk.settle(index, state);
    }

    /// The state of a node after its check.
    fn state(&mut self, index: Index, checked: NodeCheck) -> State {
        let node = self.walk.graph.node(index);
        let (can_run, expands, late) = (node.unavailable.is_none(), node.expands, self.late[index as usize]);
        match checked {
            NodeCheck::Done(done) => {
                if late && matches!(done.outcome, Outcome::Unavailable(_)) {
                    // An earlier step may turn out to have the same key; this step then has its result.
                    return State::Unknown;
                }
                let mut done = done;
                if let Some(result) = done.result.as_ref().filter(|_| expands)
                    && let Err(error) = self.walk.expand(index, &done, result)
                {
                    done = done.not_expanded(&error);
                }
                let fails = done.fails(self.walk.graph.node(index));
                if fails && !late && !self.walk.options.keep_going && self.walk.stopping.is_none() {
                    self.walk.stopping = Some(format!("the build ended at `{}`", self.walk.graph.node(index).id));
                }
                State::Done(done)
            }
            NodeCheck::Run(todo) if late => {
                // Another step with this key, whose turn comes earlier, runs instead.
                self.walk.unclaim(index, todo.key);
                self.may.push(index);
                State::Unknown
            }
            NodeCheck::Run(todo) => {
                self.keys.insert(index, todo.key);
                self.will.push((index, todo.because));
                State::Unknown
            }
            NodeCheck::Twin(_, todo) => {
                self.shares.push((index, todo.because));
                State::Unknown
            }
            // Without a remote cache nothing is asked.
            NodeCheck::Ask(_) | NodeCheck::Unknown => {
                if can_run {
                    self.may.push(index);
                }
                State::Unknown
            }
        }
    }

    fn questions(&self) -> Questions {
        let walk = &self.walk;
        let asks = |node: &Node| node.kind.observes_device() && node.resources.device.is_some();
        let mut out = Questions::default();
        for (index, node) in walk.graph.nodes().enumerate() {
            if asks(node) {
                let answered = matches!(&walk.states[index], State::Done(Done { result: Some(_), .. }));
                out.asked.push(Question { node: node.clone(), spec: walk.spec(index as Index), answered });
            }
            let State::Done(Done { result: Some(result), .. }) = &walk.states[index] else { continue };
            if node.expands {
                out.decided.push((node.clone(), result.clone()));
            }
            if node.kind == StepKind::Compile
                && let Some(spec) = walk.spec(index as Index).filter(makes_binary)
            {
                out.made.push(Compiled { node: node.clone(), spec, result: result.clone() });
            }
        }
        let open = self.will.iter().map(|(index, _)| walk.graph.node(*index)).filter(|node| !asks(node));
        out.open = open.map(|node| node.id.clone()).collect();
        out
    }

    fn known(self) -> ReadyResult {
        let Dry { mut walk, will, .. } = self;
        let open = will.iter().map(|(index, _)| walk.graph.node(*index).id.clone()).collect();
        let states = std::mem::take(&mut walk.states);
        let done = states.into_iter().map(|state| match state {
            State::Done(done) => Some(done),
            _ => None,
        });
        ReadyResult { steps: walk.graph.nodes().cloned().zip(done).collect(), open }
    }

    /// Why a node runs, if it certainly does.
    fn runs(&self, index: Index) -> Option<&Vec<Because>> {
        self.will.iter().chain(&self.shares).find(|w| w.0 == index).map(|w| &w.1)
    }

    fn prospect(&self, index: Index) -> Prospect {
        let missing = self.walk.graph.node(index).unavailable.clone();
        match &self.walk.states[index as usize] {
            State::Done(Done { outcome: Outcome::Unavailable(missing), .. }) => Prospect::Unavailable(missing.clone()),
            State::Done(Done { outcome: Outcome::Skipped(root), .. }) => Prospect::Skipped(root.clone()),
            State::Done(_) => Prospect::Fresh,
            _ if self.runs(index).is_some() => Prospect::WillRun,
            _ => missing.map_or(Prospect::MayRun, Prospect::Unavailable),
        }
    }

    /// Why a step that cannot run here has no result: how its question differs from the one that was answered last.
    fn unanswered(&self, index: Index, last: Option<&PreviousResult>) -> Vec<Because> {
        let Some(spec) = self.walk.spec(index) else { return self.pending(index) };
        let Services { memory, blobs, .. } = self.walk.services;
        let why = why_from(last, &spec.explain());
        chain(&self.walk.graph, index, &why, |at| self.runs(at).cloned(), *memory, *blobs)
    }

    /// Why a step whose result is known has another key than in the last build; none if the key is the same, or if there was no last build.
    fn changed(&self, index: Index) -> Option<Vec<Because>> {
        let State::Done(Done { key: Some(key), result: Some(_), .. }) = &self.walk.states[index as usize] else {
            return None;
        };
        let Services { memory, blobs, .. } = self.walk.services;
        let last = memory.last(&self.walk.graph.node(index).id).filter(|last| last.key != *key)?;
        let why = why_from(Some(&last), &self.walk.spec(index)?.explain());
        Some(chain(&self.walk.graph, index, &why, |at| self.changed(at), *memory, *blobs))
    }

    /// The chain from a step that may run, through the inputs that are not known yet, to a step that will run.
    fn pending(&self, index: Index) -> Vec<Because> {
        let mut out = vec![];
        let mut at = index;
        loop {
            if let Some(because) = self.runs(at) {
                out.extend(because.iter().cloned());
                return out;
            }
            let node = self.walk.graph.node(at);
            let unknown = node.inputs.iter().find_map(|(name, input)| match &input.source {
                Source::Output { node: maker, .. } => {
                    let maker = self.walk.graph.find(maker)?;
                    matches!(self.walk.states[maker as usize], State::Unknown).then_some((name, maker))
                }
                Source::Blob(_) => None,
            });
            let Some((name, maker)) = unknown else {
                let services = self.walk.services;
                let why = plain("not-cached");
                out.extend(chain(&self.walk.graph, at, &why, |_| None, services.memory, services.blobs));
                return out;
            };
            let why = Why { field: Some(format!("inputs.{name}")), ..plain("input-pending") };
            out.push(Because { what: node.id.clone(), why });
            at = maker;
        }
    }
}
