//! What a build would do, without doing it: the same walk, up to unknown results. Knows what is remembered; runs nothing and writes nothing.
//!
//! | a step | is |
//! |---|---|
//! | whose key is formed from known results, and is cached | fresh |
//! | whose key is formed from known results, and is not cached | *will* run |
//! | whose key depends on a result that is not known yet | *may* run: the result may be the same as before |
//! | that comes after such a step, though its own key is known | *may* run: that step may have the same key |
//!
//! If nothing fails, every step that *will* run runs. Every step that runs is in *will* or *may*, or is added by the
//! expansion of one of [`DryRun::adds`].

use std::collections::BTreeSet;

use super::action::makes_binary;
use super::evidence::HERE;
use super::explain::{Earlier, Explanation, Standing, chain, plain, why_from};
use super::services::{Because, BuildOptions, PreviousResult, Services};
use super::state::{Done, NodeCheck, State, Walk};
use super::{Graph, Index, Node, NodeId, Source};
use kforge_types::record::event::{CacheOrigin, Why};
use kforge_types::record::{Outcome, Spec, StepKind, StepResult};

/// What a build would do.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DryRun {
    /// What runs, and why, in the order in which it is known.
    pub will: Vec<(NodeId, Why)>,
    /// What runs if the results of other steps change.
    pub may: Vec<NodeId>,
    /// Steps whose results are not known and may add steps that have no names yet: of *will* and *may*, shown with a `+`, and those that run nothing
    /// themselves because one with the same key does.
    pub adds: Vec<NodeId>,
    /// How many results are known.
    pub fresh: usize,
    /// What this machine cannot run, and what is missing.
    pub unavailable: Vec<(NodeId, String)>,
    /// What is skipped because a step that it needs gives nothing, and the first such step.
    pub skipped: Vec<(NodeId, String)>,
}

/// What a build of this graph would do.
pub fn dry_run(graph: Graph, options: &BuildOptions, services: &Services<'_>) -> DryRun {
    let dry = Dry::walk(graph, options, services);
    let walk = &dry.walk;
    let id = |i: Index| walk.graph.node(i).id.clone();
    // What is known to fail ends a build before anything but pure steps has started.
    let starts = |i: Index| walk.stopping.is_none() || walk.graph.node(i).kind.is_pure();
    let mut out = DryRun::default();
    for (index, because) in dry.will.iter().filter(|(i, _)| starts(*i)) {
        out.will.extend(because.first().map(|b| (id(*index), b.why.clone())));
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

/// Why a step would run now, or why it has the key that it has; none if there is no such step.
pub fn explain(graph: Graph, options: &BuildOptions, services: &Services<'_>, id: &str) -> Option<Explanation> {
    let keep_going = BuildOptions { keep_going: true, ..options.clone() };
    let dry = Dry::walk(graph, &keep_going, services);
    let index = dry.walk.graph.find(id)?;
    let last = services.memory.last(id);
    let standing = dry.standing(index);
    let changed = dry.changed(index);
    let earlier = match (&standing, &last) {
        (Standing::Fresh, _) if changed.is_some() => Some(Earlier::Now),
        (Standing::Fresh, Some(last)) if last.known => Some(Earlier::LastBuild),
        _ => None,
    };
    let because = match (dry.runs(index), &standing) {
        (Some(because), _) => because.clone(),
        (None, Standing::MayRun) => dry.pending(index),
        (None, Standing::Unavailable(_)) => dry.unanswered(index, last.as_ref()),
        (None, _) => changed.or(last.as_ref().map(|l| l.because.clone())).unwrap_or_default(),
    };
    let product = dry.walk.graph.node(index).product.clone();
    let (evidence, origin) = match &dry.walk.states[index as usize] {
        State::Done(done) => (done.evidence.clone(), done.cache),
        _ => (None, CacheOrigin::None),
    };
    // No evidence names the origin of a compilation that bundles bring along; what ran here has a result of its own in the journal.
    let brought = origin == CacheOrigin::Evidence
        && match &evidence {
            Some(seen) => seen.origin != HERE,
            None => last.as_ref().is_none_or(|last| last.forgotten),
        };
    let fields = dry.walk.spec(index).map(|s| s.explain()).or(last.map(|l| l.explanation)).unwrap_or_default();
    Some(Explanation { id: id.to_string(), standing, product, evidence, brought, because, earlier, fields })
}

/// The graph with the nodes that known results add: all that has a name now.
pub fn expanded(graph: Graph, options: &BuildOptions, services: &Services<'_>) -> Graph {
    let keep_going = BuildOptions { keep_going: true, ..options.clone() };
    Dry::walk(graph, &keep_going, services).walk.graph
}

/// What is missing for a step of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lack {
    /// A build would find it unavailable, for this reason.
    Unavailable(String),
    /// This machine lacks that, and whether the step's result is known all the same shows only once what it reads is made.
    Unless(String),
}

/// The graph as [`expanded`] gives it, with what is missing for each of its steps, in order: nothing where a result is known, or the step can run.
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

/// What a plan asks of devices, as far as results that are known tell.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Questions {
    /// The questions in the order of the plan, those that results have added too.
    pub asked: Vec<Question>,
    /// Steps of other kinds that would have to run before all questions are known.
    pub open: Vec<NodeId>,
    /// Steps whose results add steps, with these results.
    pub decided: Vec<(Node, StepResult)>,
    /// Compilations for devices, with what they made: what the questions are about.
    pub made: Vec<Compiled>,
}

/// A step that asks a device.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The step.
    pub node: Node,
    /// Its question; none where something that it reads is not known.
    pub spec: Option<Spec>,
    /// Whether it has been answered.
    pub answered: bool,
}

/// A compilation for a device that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled {
    /// The step.
    pub node: Node,
    /// All that it saw.
    pub spec: Spec,
    /// What it made.
    pub result: StepResult,
}

/// What that graph asks of devices.
pub fn questions(graph: Graph, options: &BuildOptions, services: &Services<'_>) -> Questions {
    let keep_going = BuildOptions { keep_going: true, ..options.clone() };
    let dry = Dry::walk(graph, &keep_going, services);
    let walk = &dry.walk;
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
    let open = dry.will.iter().map(|(index, _)| walk.graph.node(*index)).filter(|node| !asks(node));
    out.open = open.map(|node| node.id.clone()).collect();
    out
}

/// What is known of a plan without running any of it.
#[derive(Debug, Clone, Default)]
pub struct ReadyResult {
    /// Its steps in order, those that results have added too, with what is known of each.
    pub steps: Vec<(Node, Option<Done>)>,
    /// Steps that would have to run for more to be known.
    pub open: Vec<NodeId>,
}

/// What is known of that graph.
pub fn known(graph: Graph, options: &BuildOptions, services: &Services<'_>) -> ReadyResult {
    let keep_going = BuildOptions { keep_going: true, ..options.clone() };
    let Dry { mut walk, will, .. } = Dry::walk(graph, &keep_going, services);
    let open = will.iter().map(|(index, _)| walk.graph.node(*index).id.clone()).collect();
    let states = std::mem::take(&mut walk.states);
    let done = states.into_iter().map(|state| match state {
        State::Done(done) => Some(done),
        _ => None,
    });
    ReadyResult { steps: walk.graph.nodes().cloned().zip(done).collect(), open }
}

struct Dry<'a> {
    walk: Walk<'a>,
    will: Vec<(Index, Vec<Because>)>,
    may: Vec<Index>,
    /// Nodes that share the run of one that will.
    shares: Vec<(Index, Vec<Because>)>,
    /// Nodes that end only after something has run.
    late: Vec<bool>,
}

impl<'a> Dry<'a> {
    fn walk(graph: Graph, options: &'a BuildOptions, services: &'a Services<'a>) -> Dry<'a> {
        let walk = Walk::new(graph, options, services, false);
        let mut dry = Dry { walk, will: vec![], may: vec![], shares: vec![], late: vec![] };
        while let Some(index) = dry.walk.queue.pop_front() {
            dry.late.resize(dry.walk.graph.len(), false);
            let waits = |d: Index| matches!(dry.walk.states[d as usize], State::Unknown) || dry.late[d as usize];
            let late = dry.walk.graph.dependencies(index).any(waits);
            dry.late[index as usize] = late;
            let state = dry.check(index, late);
            dry.walk.settle(index, state);
        }
        dry
    }

    fn check(&mut self, index: Index, late: bool) -> State {
        let node = self.walk.graph.node(index);
        let (can_run, expands) = (node.unavailable.is_none(), node.expands);
        match self.walk.check(index) {
            NodeCheck::Done(done) => {
                if late && matches!(done.outcome, Outcome::Unavailable(_)) {
                    // A step that comes before may turn out to have the same key, and then this one has its result.
                    return State::Unknown;
                }
                let mut done = done;
                if let Some(result) = done.result.as_ref().filter(|_| expands)
                    && let Err(error) = self.walk.expand(index, result)
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
                // Another step with this key whose turn comes earlier runs it instead.
                self.walk.unclaim(index, todo.key);
                self.may.push(index);
                State::Unknown
            }
            NodeCheck::Run(todo) => {
                self.will.push((index, todo.because));
                State::Unknown
            }
            NodeCheck::Twin(_, todo) => {
                self.shares.push((index, todo.because));
                State::Unknown
            }
            NodeCheck::Unknown => {
                if can_run {
                    self.may.push(index);
                }
                State::Unknown
            }
        }
    }

    /// Why a node runs, if it does for certain.
    fn runs(&self, index: Index) -> Option<&Vec<Because>> {
        self.will.iter().chain(&self.shares).find(|w| w.0 == index).map(|w| &w.1)
    }

    fn standing(&self, index: Index) -> Standing {
        let missing = self.walk.graph.node(index).unavailable.clone();
        match &self.walk.states[index as usize] {
            State::Done(Done { outcome: Outcome::Unavailable(missing), .. }) => Standing::Unavailable(missing.clone()),
            State::Done(Done { outcome: Outcome::Skipped(root), .. }) => Standing::Skipped(root.clone()),
            State::Done(_) => Standing::Fresh,
            _ if self.runs(index).is_some() => Standing::WillRun,
            _ => missing.map_or(Standing::MayRun, Standing::Unavailable),
        }
    }

    /// Why a step that cannot run here has no result: what it asks is not what it asked when it had one.
    fn unanswered(&self, index: Index, last: Option<&PreviousResult>) -> Vec<Because> {
        let Some(spec) = self.walk.spec(index) else { return self.pending(index) };
        let Services { memory, blobs, .. } = self.walk.services;
        let why = why_from(last, &spec.explain());
        chain(&self.walk.graph, index, &why, |at| self.runs(at).cloned(), *memory, *blobs)
    }

    /// Why a step whose result is known has another key than in the last build; none if it has the same, or there was none.
    fn changed(&self, index: Index) -> Option<Vec<Because>> {
        let State::Done(Done { key: Some(key), result: Some(_), .. }) = &self.walk.states[index as usize] else {
            return None;
        };
        let Services { memory, blobs, .. } = self.walk.services;
        let last = memory.last(&self.walk.graph.node(index).id).filter(|last| last.key != *key)?;
        let why = why_from(Some(&last), &self.walk.spec(index)?.explain());
        Some(chain(&self.walk.graph, index, &why, |at| self.changed(at), *memory, *blobs))
    }

    /// The chain from a step that may run through the inputs that are still to be made to a step that will.
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
