//! Properties of the engine under random graphs, edits, orders and failures, against a naive evaluator without caches, threads or order.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::Ordering;

use proptest::prelude::*;
use serde_json::json;

use super::testing::{FakeExpand, World, blob, node, output};
use super::*;
use kforge_foundation::base::Digest;
use kforge_types::record::{Input, Outcome, Spec, StepKind};

/// What a random step does.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Does {
    Gives,
    Fails,
    Judges,
    Forgets,
    GivesNothing,
    Lacks,
}

#[derive(Debug, Clone)]
struct Step {
    kind: usize,
    /// For each dependency: its distance back in the list, and whether it is required.
    reads: Vec<(usize, bool)>,
    after: Option<usize>,
    content: u8,
    modulo: u64,
    does: Does,
    expands: bool,
}

type Plan = Vec<Step>;

/// Two kinds that are not pure and two pure ones, in the order of their ranks. There are few contents and few outputs, so that keys coincide and changes are
/// cut off.
const KINDS: [StepKind; 4] = [StepKind::Generate, StepKind::Compile, StepKind::Judge, StepKind::Select];

fn does() -> impl Strategy<Value = Does> {
    prop_oneof![
        12 => Just(Does::Gives),
        1 => Just(Does::Fails),
        1 => Just(Does::Judges),
        1 => Just(Does::Forgets),
        1 => Just(Does::GivesNothing),
        1 => Just(Does::Lacks),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let reads = prop::collection::vec((1usize..8, any::<bool>()), 0..4);
    (0..KINDS.len(), reads, prop::option::weighted(0.2, 1usize..8), 0u8..3, 1u64..4, does(), prop::bool::weighted(0.15))
        .prop_map(|(kind, reads, after, content, modulo, does, expands)| Step {
            kind,
            reads,
            after,
            content,
            modulo,
            does,
            expands,
        })
}

fn plan() -> impl Strategy<Value = Plan> {
    prop::collection::vec(step(), 1..25).prop_map(|mut steps| {
        steps.sort_by_key(|s| s.kind);
        steps
    })
}

/// A plan, and the same plan with the contents and behavior of some steps replaced.
fn edited() -> impl Strategy<Value = (Plan, Plan)> {
    plan().prop_flat_map(|plan| {
        let n = plan.len();
        let edits = prop::collection::vec((0..n, 0u8..3, 1u64..4, does()), 0..4);
        edits.prop_map(move |edits| {
            let mut next = plan.clone();
            for (at, content, modulo, does) in edits {
                next[at] = Step { content, modulo, does, ..next[at].clone() };
            }
            (plan.clone(), next)
        })
    })
}

fn id(i: usize) -> String {
    format!("s{i:02}")
}

fn nodes(plan: &Plan) -> Vec<Node> {
    let back = |i: usize, by: usize| i.checked_sub(by).map(id);
    let make = |(i, s): (usize, &Step)| {
        let mut new = node(&id(i), KINDS[s.kind], &[("content", blob(&s.content.to_string()))]);
        for (n, (by, required)) in s.reads.iter().enumerate() {
            if let Some(dep) = back(i, *by) {
                new.inputs.insert(format!("in{n}"), output(&dep, *required));
            }
        }
        new.after.extend(s.after.and_then(|by| back(i, by)));
        // Whether a machine can run a spec is a function of the spec, so the parameters say so too.
        new.unavailable = (s.does == Does::Lacks).then(|| "no device".into());
        new.params = json!({
            "modulo": s.modulo, "fail": s.does == Does::Fails, "wrong": s.does == Does::Judges,
            "forget": s.does == Does::Forgets, "none": s.does == Does::GivesNothing, "lacks": s.does == Does::Lacks
        });
        new.expands = s.expands;
        new
    };
    plan.iter().enumerate().map(make).collect()
}

/// Adds, for each expanding step, a measuring step and a step that reads it; the output of the expanding step determines them.
fn grow(from: &Node, text: &str) -> Vec<Node> {
    let rank = |kind| Rank { round: 0, phase: 1, wave: 0, kind };
    let pair = Node {
        rank: rank(StepKind::Pairs),
        params: json!({"modulo": 2, "text": text}),
        ..node(&format!("{}+pair", from.id), StepKind::Pairs, &[("in", output(&from.id, true))])
    };
    let seen = Node {
        rank: rank(StepKind::Attribute),
        params: json!({"modulo": 2}),
        ..node(&format!("{}+seen{text}", from.id), StepKind::Attribute, &[("in", output(&pair.id, false))])
    };
    vec![seen, pair]
}

fn world(jobs: u32) -> World {
    let mut world = World { expand: FakeExpand(grow), ..World::default() };
    world.options.capacity.cpus = jobs;
    for content in 0u8..3 {
        world.store(&content.to_string());
    }
    world
}

/// The facts of each step that must not depend on speed, order or memory: its key, its outputs, or why it has none.
type StepFacts = BTreeMap<String, (Option<Digest>, Option<BTreeMap<String, Digest>>, Option<Outcome>)>;

fn seen(built: &BuildOutcome) -> StepFacts {
    let one = |(node, done): (&Node, &Done)| {
        let outputs = done.result.as_ref().map(|r| r.outputs.clone());
        let nothing = outputs.is_none().then(|| done.outcome.clone());
        (node.id.clone(), (done.key, outputs, nothing))
    };
    built.graph.nodes().zip(&built.steps).map(one).collect()
}

/// The same facts, computed one step after the other.
fn naive(plan: &Plan) -> StepFacts {
    let mut all: StepFacts = BTreeMap::new();
    let mut list = nodes(plan);
    let mut at = 0;
    while at < list.len() {
        let node = list[at].clone();
        at += 1;
        let mut root = None;
        let mut inputs = BTreeMap::new();
        for (name, input) in &node.inputs {
            let digest = match &input.source {
                Source::Blob(digest) => Some(*digest),
                Source::Output { node: dep, required, .. } => {
                    let (_, outputs, nothing) = &all[dep];
                    let digest = outputs.as_ref().and_then(|o| o.get("out")).copied();
                    if digest.is_none() && *required && root.is_none() {
                        root = Some(match nothing {
                            Some(Outcome::Skipped(root)) => root.clone(),
                            _ => dep.clone(),
                        });
                    }
                    digest
                }
            };
            inputs.insert(name.clone(), Input { digest, form: input.form });
        }
        if let Some(root) = root {
            all.insert(node.id, (None, None, Some(Outcome::Skipped(root))));
            continue;
        }
        let implementation = testing::implementations().of(node.kind, &node.params);
        let version = node.kind.version();
        let spec = Spec { kind: node.kind, version, implementation, params: node.params.clone(), inputs };
        let key = spec.key();
        let on = |name: &str| node.params[name] == true;
        let number = u64::from_le_bytes(std::array::from_fn(|i| key.hash()[i]));
        let text = (number % node.params["modulo"].as_u64().unwrap()).to_string();
        let out = (!on("none")).then(|| ("out".to_string(), Digest::of(text.as_bytes())));
        let given = match () {
            () if on("fail") => (Some(key), None, Some(Outcome::Failed("refused".into()))),
            () if on("lacks") => (Some(key), None, Some(Outcome::Unavailable("no device".into()))),
            () if node.expands && out.is_none() => {
                (Some(key), None, Some(Outcome::Failed("the output is not in the store".into())))
            }
            () => (Some(key), Some(out.into_iter().collect()), None),
        };
        if node.expands && given.1.is_some() {
            let mut added = grow(&node, &text);
            added.reverse();
            list.extend(added);
        }
        all.insert(node.id, given);
    }
    all
}

fn ran(world: &World) -> BTreeSet<String> {
    world.executor.take().into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_incremental_build_equals_a_clean_one((before, after) in edited()) {
        let world = world(2);
        prop_assert_eq!(seen(&world.build(&nodes(&before))), naive(&before));
        prop_assert_eq!(seen(&world.build(&nodes(&after))), naive(&after));
        prop_assert_eq!(seen(&world.build(&nodes(&before))), naive(&before));
    }

    #[test]
    fn slots_and_order_of_insertion_change_nothing(
        (plan, order) in plan().prop_flat_map(|p| (Just(p.clone()), Just((0..p.len()).collect::<Vec<_>>()).prop_shuffle()))
    ) {
        let nodes = nodes(&plan);
        let shuffled: Vec<Node> = order.iter().map(|i| nodes[*i].clone()).collect();
        let one = world(1);
        let many = world(16);
        let (first, second) = (one.build(&nodes), many.build(&shuffled));
        prop_assert_eq!(seen(&first), seen(&second));
        prop_assert_eq!(first.verdicts, second.verdicts);
        // Which of several steps with one key runs may differ, and so may whether that step then fails to expand. The number of runs may not.
        let known = |built: &BuildOutcome| (built.counts.executed + built.counts.fresh, built.counts.total);
        prop_assert_eq!(known(&first), known(&second));
        prop_assert_eq!(first.counts.failed, second.counts.failed);
        prop_assert_eq!(one.executor.take().len(), many.executor.take().len());
    }

    #[test]
    fn no_key_runs_twice_and_every_step_ends_once((before, after) in edited(), jobs in 1u32..9) {
        let world = world(jobs);
        for plan in [&before, &after] {
            let (built, events) = world.build_telling(&nodes(plan));
            let ran = std::mem::take(&mut *world.executor.ran.lock().unwrap());
            let keys: BTreeSet<Digest> = ran.iter().map(|r| r.1).collect();
            prop_assert_eq!(keys.len(), ran.len());
            let ended = events.iter().filter(|e| matches!(e, kforge_types::record::event::Event::StepFinished(_))).count();
            let c = built.counts;
            prop_assert_eq!(c.executed + c.fresh + c.unavailable + c.skipped + c.failed, c.total);
            prop_assert_eq!((ended, built.steps.len()), (built.graph.len(), built.graph.len()));
            prop_assert_eq!(c.total as usize, ended);
        }
    }

    #[test]
    fn what_runs_lies_between_what_a_dry_run_says_will_and_may((before, after) in edited(), jobs in 1u32..5) {
        let world = world(jobs);
        world.build(&nodes(&before));
        ran(&world);
        let dry = world.dry_run(&nodes(&after));
        prop_assert!(world.executor.take().is_empty());
        world.build(&nodes(&after));
        let ran = ran(&world);
        let will: BTreeSet<String> = dry.will.iter().map(|w| w.0.clone()).collect();
        let may: BTreeSet<String> = dry.may.iter().cloned().collect();
        prop_assert!(will.is_disjoint(&may));
        prop_assert!(will.is_subset(&ran), "will {:?}, ran {:?}", will, ran);
        for step in &ran {
            let by = step.split('+').next().unwrap_or_default().to_string();
            let added = by != *step && dry.adds.contains(&by);
            prop_assert!(will.contains(step) || may.contains(step) || added, "{} ran; {:?}", step, dry);
        }
    }

    #[test]
    fn a_build_that_ends_at_a_failure_gives_a_part_of_one_that_goes_on(plan in plan(), jobs in 1u32..5) {
        let nodes = nodes(&plan);
        let going = world(jobs);
        let whole = going.build(&nodes);
        let whole_ran = ran(&going);
        let mut stopping = world(jobs);
        stopping.options.keep_going = false;
        let part = stopping.build(&nodes);
        let fails = whole.graph.nodes().zip(&whole.steps).any(|(node, done)| done.fails(node));
        prop_assert_eq!(part.stopped_by.is_some(), fails);
        if !fails {
            prop_assert_eq!(seen(&part), seen(&whole));
        }
        // A step with an equal key may have run under another id, so steps are compared by their keys and outputs.
        prop_assert!(ran(&stopping).len() <= whole_ran.len());
        let whole = seen(&whole);
        for (node, done) in part.graph.nodes().zip(&part.steps) {
            if !done.stopped {
                prop_assert_eq!(done.key, whole[&node.id].0);
                prop_assert_eq!(done.result.as_ref().map(|r| &r.outputs), whole[&node.id].1.as_ref());
            }
        }
        // The next build runs what was stopped, and nothing was remembered wrongly.
        stopping.options.keep_going = true;
        prop_assert_eq!(seen(&stopping.build(&nodes)), whole);
    }

    #[test]
    fn an_interrupted_build_ends_and_the_next_one_is_as_if_it_had_never_been(plan in plan(), at in 0usize..25, jobs in 1u32..5) {
        let world = world(jobs);
        let mut nodes = nodes(&plan);
        let at = at % nodes.len();
        nodes[at].params["interrupt"] = true.into();
        let built = world.build(&nodes);
        let started = world.executor.take().contains(&id(at));
        prop_assert_eq!(built.steps.len(), built.graph.len());
        prop_assert_eq!(built.interrupted, started);
        world.options.interrupted.store(false, Ordering::SeqCst);
        nodes[at].params.as_object_mut().unwrap().remove("interrupt");
        prop_assert_eq!(seen(&world.build(&nodes)), naive(&plan));
    }

    #[test]
    fn a_graph_that_is_accepted_has_no_cycle_and_one_that_is_refused_leaves_no_trace(
        old in plan(),
        new in prop::collection::vec(((0u32..2, 0u8..2, 0u32..2), 0..KINDS.len(), prop::collection::vec(0usize..40, 0..4), 0usize..30), 1..15),
        expander in 0usize..25,
    ) {
        let old = nodes(&old);
        let mut graph = Graph::new(old.clone()).unwrap();
        let name = |i: usize| if i < 25 { id(i) } else { format!("new{}", i - 25) };
        let make = |(i, ((round, phase, wave), kind, reads, called)): (usize, &Added)| {
            let inputs: Vec<(String, InputRef)> =
                reads.iter().enumerate().map(|(n, r)| (format!("in{n}"), output(&name(*r), true))).collect();
            let inputs: Vec<(&str, InputRef)> = inputs.iter().map(|(n, i)| (n.as_str(), i.clone())).collect();
            let called = if *called < 3 { id(*called) } else { format!("new{i}") };
            Node { rank: Rank { round: *round, phase: *phase, wave: *wave, kind: KINDS[*kind] }, ..node(&called, KINDS[*kind], &inputs) }
        };
        let new: Vec<Node> = new.iter().enumerate().map(make).collect();
        let expander = (expander % old.len()) as Index;
        let before: Vec<Node> = graph.nodes().cloned().collect();
        match graph.expand(expander, new) {
            Ok(added) => {
                prop_assert!(ends(&graph));
                prop_assert_eq!(added.end as usize, graph.len());
                for i in added {
                    prop_assert!(graph.node(i).rank > graph.node(expander).rank);
                }
            }
            Err(_) => prop_assert_eq!(&before, &graph.nodes().cloned().collect::<Vec<_>>()),
        }
        for (i, node) in graph.nodes().enumerate() {
            prop_assert_eq!(graph.find(&node.id), Some(i as Index));
        }
        prop_assert_eq!(graph.find("new99"), None);
    }
}

/// An added node: round, phase and wave; kind; the nodes that it reads; the number of its name.
type Added = ((u32, u8, u32), usize, Vec<usize>, usize);

/// Whether every node of a graph can run.
fn ends(graph: &Graph) -> bool {
    let mut open: HashMap<Index, usize> =
        (0..graph.len() as Index).map(|i| (i, graph.dependencies(i).count())).collect();
    let mut queue: Vec<Index> = open.iter().filter(|(_, n)| **n == 0).map(|(i, _)| *i).collect();
    let mut ended = 0;
    while let Some(i) = queue.pop() {
        ended += 1;
        for d in graph.dependents(i) {
            let left = open.get_mut(&d).unwrap();
            *left -= 1;
            if *left == 0 {
                queue.push(d);
            }
        }
    }
    ended == graph.len()
}
