//! What a build does, case by case.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use serde_json::json;

use super::testing::{FakeCache, FakeExpand, World, blob, node, output, with};
use super::*;
use kforge_foundation::base::{Digest, Severity};
use kforge_types::record::event::{CacheOrigin, Event, EvidenceSeen, StepFinished};
use kforge_types::record::{Form, Outcome, Spec, StepKind, StepResult, Verdict};

mod dry_run;
mod expansion;
mod failing;
mod remote;
mod sharing;
mod waiting;

fn source(world: &World, id: &str, text: &str) -> Node {
    node(id, StepKind::Generate, &[("file", world.store(text))])
}

fn reads(id: &str, kind: StepKind, from: &str) -> Node {
    node(id, kind, &[("in", output(from, true))])
}

fn outcome<'a>(outcome: &'a BuildOutcome, id: &str) -> &'a Outcome {
    &outcome.step(id).unwrap().outcome
}

/// Makes a step run before others when there is one slot: it is remembered as taking long.
fn first(world: &World, id: &str) {
    world.memory.durations.borrow_mut().insert(id.into(), 1_000_000);
}

fn finished(events: &[Event]) -> Vec<&StepFinished> {
    events
        .iter()
        .filter_map(|e| match e {
            Event::StepFinished(f) => Some(&**f),
            _ => None,
        })
        .collect()
}

fn grown(node: &Node, text: &str) -> Vec<Node> {
    let rank = Rank { phase: 1, ..node.rank };
    let pair = testing::node("pair", StepKind::Pairs, &[("in", output(&node.id, true))]);
    let seen = testing::node(&format!("seen {}", text.len()), StepKind::Attribute, &[("p", output("pair", true))]);
    let phase = |n: Node| Node { rank: Rank { kind: n.kind, ..rank }, ..n };
    vec![phase(seen), phase(pair)]
}

fn gives(out: Digest) -> StepResult {
    let outputs = [("out".to_string(), out)].into();
    StepResult { outputs, verdict: None, notes: vec![], summary: String::new(), duration_ms: 0 }
}

#[test]
fn a_second_build_runs_nothing_and_an_edit_runs_what_reads_it() {
    let world = World::default();
    let plan = |text: &str| {
        let other = node("b", StepKind::Compile, &[("file", world.store("other"))]);
        vec![source(&world, "a", text), reads("a2", StepKind::Compile, "a"), other]
    };
    world.build(&plan("one"));
    assert_eq!(world.executor.take().len(), 3);
    let again = world.build(&plan("one"));
    assert_eq!((again.counts.fresh, again.counts.total, world.executor.take().len()), (3, 3, 0));
    world.build(&plan("two"));
    assert_eq!(world.executor.take(), ["a", "a2"]);
}

#[test]
fn an_output_that_stays_the_same_cuts_off_what_follows() {
    let world = World::default();
    let plan = |text: &str| {
        let a = with(source(&world, "a", text), json!({"modulo": 1}));
        vec![a, reads("b", StepKind::Compile, "a")]
    };
    world.build(&plan("one"));
    world.executor.take();
    world.build(&plan("two"));
    assert_eq!(world.executor.take(), ["a"]);
}

#[test]
fn every_step_ends_in_one_event_and_the_outcomes_sum_to_the_total() {
    let world = World::default();
    let missing = Node { unavailable: Some("no gpu".into()), ..reads("c", StepKind::Verify, "a") };
    let failing = with(reads("d", StepKind::Compile, "a"), json!({"fail": true}));
    let plan = [source(&world, "a", "x"), missing, failing, reads("e", StepKind::Inspect, "d")];
    let (built, events) = world.build_telling(&plan);
    let counts = built.counts;
    assert_eq!((counts.total, counts.executed, counts.unavailable, counts.failed, counts.skipped), (4, 1, 1, 1, 1));
    let ended: BTreeSet<&str> = finished(&events).iter().map(|f| f.id.as_str()).collect();
    assert_eq!((ended.len(), finished(&events).len()), (4, 4));
    let started = events.iter().filter(|e| matches!(e, Event::StepStarted { .. })).count();
    assert_eq!(started, 2);
    let a = finished(&events)[0];
    assert_eq!(
        (a.why.as_ref().unwrap().code.as_str(), a.cache, a.started_ms.is_some()),
        ("new", CacheOrigin::None, true)
    );
    assert_eq!(a.labels.package, "p");
    assert!(a.result.is_some() && a.key.is_some());
    let (_, events) = world.build_telling(&plan[..1]);
    let a = finished(&events)[0];
    assert_eq!((&a.outcome, a.cache, a.why.is_none(), a.started_ms), (&Outcome::Fresh, CacheOrigin::Local, true, None));
}

#[test]
fn what_this_machine_cannot_run_is_unavailable_unless_its_result_is_known() {
    let world = World::default();
    let verify = |unavailable: Option<&str>| Node {
        unavailable: unavailable.map(Into::into),
        ..node("v", StepKind::Verify, &[("in", world.store("x"))])
    };
    let judge = node("j", StepKind::Judge, &[("observation", output("v", false))]);
    let select = reads("s", StepKind::Select, "v");
    let built = world.build(&[verify(Some("no gpu")), judge.clone(), select.clone()]);
    assert_eq!(outcome(&built, "v"), &Outcome::Unavailable("no gpu".into()));
    assert_eq!(outcome(&built, "j"), &Outcome::Executed, "an absent input is bound as absent");
    assert_eq!(outcome(&built, "s"), &Outcome::Skipped("v".into()));
    world.build(&[verify(None)]);
    world.executor.take();
    let built = world.build(&[verify(Some("no gpu")), judge, select]);
    assert_eq!(outcome(&built, "v"), &Outcome::Fresh);
    assert_eq!(world.executor.take(), ["j", "s"]);
}

#[test]
fn a_runner_may_find_a_step_unavailable_and_that_is_not_remembered() {
    let world = World::default();
    let plan = [with(source(&world, "a", "x"), json!({"unavailable": true}))];
    for _ in 0..2 {
        assert_eq!(outcome(&world.build(&plan), "a"), &Outcome::Unavailable("no tool".into()));
        assert_eq!(world.executor.take(), ["a"]);
    }
}

#[test]
fn a_result_that_is_not_to_be_kept_is_made_again_and_explained_so() {
    let world = World::default();
    let plan = [with(source(&world, "a", "x"), json!({"forget": true}))];
    world.build(&plan);
    let (_, events) = world.build_telling(&plan);
    assert_eq!(finished(&events)[0].why.as_ref().unwrap().code, "forgotten");
    assert_eq!(world.executor.take().len(), 2);
}

#[test]
fn a_result_that_is_lost_is_made_again_and_explained_so() {
    let world = World::default();
    let plan = [source(&world, "a", "x")];
    world.build(&plan);
    world.cache.rows.lock().unwrap().clear();
    let (_, events) = world.build_telling(&plan);
    assert_eq!(finished(&events)[0].why.as_ref().unwrap().code, "not-cached");
}

#[test]
fn remeasuring_runs_a_step_whose_result_is_known_unless_it_cannot() {
    let mut world = World::default();
    let bench = |unavailable: Option<&str>| Node {
        unavailable: unavailable.map(Into::into),
        ..node("b", StepKind::Bench, &[("in", world_input())])
    };
    fn world_input() -> InputRef {
        blob("x")
    }
    world.store("x");
    world.build(&[bench(None)]);
    world.options.remeasure = Some(std::sync::Arc::new(|n: &Node| n.kind == StepKind::Bench));
    let (_, events) = world.build_telling(&[bench(None)]);
    assert_eq!(finished(&events)[0].why.as_ref().unwrap().code, "remeasure");
    assert_eq!(world.executor.take().len(), 2);
    assert_eq!(outcome(&world.build(&[bench(Some("no gpu"))]), "b"), &Outcome::Fresh);
}

#[test]
fn slots_bound_how_many_run_at_once_and_pure_steps_take_none() {
    let mut world = World::default();
    world.options.capacity = Capacity { cpus: 3, ..Capacity::default() };
    let plan: Vec<Node> = (0..40).map(|i| source(&world, &format!("s{i}"), &format!("{i}"))).collect();
    world.build(&plan);
    assert!(world.executor.most.load(Ordering::SeqCst) <= 3);
}

#[test]
fn the_reason_is_followed_to_the_file_that_changed() {
    let world = World::default();
    let tree = |text: &str| {
        let files = [("x.cu", text), ("y.h", "same")].map(|(n, t)| (n.to_string(), Digest::of(t.as_bytes())));
        let tree = kforge_types::record::spec::Tree { files: files.into() };
        let digest = world.blobs.put(&serde_json::to_vec(&tree).unwrap()).unwrap();
        InputRef { source: Source::Blob(digest), form: Form::Tree }
    };
    let plan = |text: &str| {
        let compile = node("compile", StepKind::Compile, &[("source", tree(text))]);
        let verify = node("verify", StepKind::Verify, &[("binary", output("compile", true))]);
        let judge = with(reads("judge", StepKind::Judge, "verify"), json!({"modulo": 1}));
        vec![compile, verify, judge, reads("end", StepKind::Select, "judge")]
    };
    world.build(&plan("one"));
    let asked =
        |text: &str, id: &str| explain(world.graph(&plan(text)), &world.options, &world.services(), id).unwrap();
    let before = asked("two", "compile");
    assert_eq!(before.prospect, Prospect::WillRun);
    assert_eq!(before.because[0].why.field.as_deref(), Some("inputs.source"));
    assert_eq!(before.because[1].what, "inputs.source/x.cu");
    let pending = asked("two", "verify");
    assert_eq!(pending.prospect, Prospect::MayRun);
    assert_eq!(pending.because[0].why.code, "input-pending");
    assert_eq!(pending.because.last().unwrap().what, "inputs.source/x.cu");
    world.build(&plan("two"));
    let after = asked("two", "verify");
    assert_eq!(after.prospect, Prospect::Fresh);
    let whats: Vec<&str> = after.because.iter().map(|b| b.what.as_str()).collect();
    assert_eq!(whats, ["verify", "compile", "inputs.source/x.cu"]);
    assert_eq!(after.because[0].why.field.as_deref(), Some("inputs.binary"));
    assert!(after.because[0].why.before.is_some() && after.because[0].why.after.is_some());
    let text = after.to_string();
    assert!(text.contains("because `inputs.source` of `compile` changed from blake3:"), "{text}");
    assert!(text.contains("`inputs.source/x.cu` was changed"), "{text}");
    assert!(text.contains("inputs.binary = blake3:"), "{text}");
    assert_eq!(asked("two", "end").because[0].why.code, "new", "it was cut off");
}

/// A cache that answers with all records so far, as evidence does.
#[derive(Default)]
struct Records(std::sync::Mutex<Vec<Digest>>);

impl Cache for Records {
    fn get(&self, _: &Digest, _: &Spec) -> std::io::Result<Option<Hit>> {
        let records = self.0.lock().unwrap();
        let all: Vec<String> = records.iter().map(Digest::to_string).collect();
        let outputs = [("out".to_string(), Digest::of(all.join(" ").as_bytes()))].into();
        let evidence = EvidenceSeen {
            origin: "here".into(),
            measured_at: "now".into(),
            device_class: "any".into(),
            driver: "1.0".into(),
            kforge: "0.1.0".into(),
            standing: kforge_types::record::Standing::Here,
            signer: None,
            clocks_mhz: None,
            temperature_c: None,
            throttle: vec![],
        };
        let result = StepResult { outputs, ..gives(Digest::of(b"")) };
        Ok((!records.is_empty()).then_some(Hit {
            result,
            origin: CacheOrigin::Evidence,
            evidence: Some(evidence),
            tag: None,
        }))
    }
    fn put(&self, _: &Digest, _: &Spec, result: &StepResult) -> std::io::Result<()> {
        self.0.lock().unwrap().push(result.outputs["out"]);
        Ok(())
    }
}

#[test]
fn what_a_measurement_gives_is_what_all_records_together_say() {
    let mut world = World::default();
    let records = Records::default();
    let bench = node("b", StepKind::Bench, &[]);
    let measure = |world: &World| {
        let services = Services { caches: vec![&records], ..world.services() };
        build(world.graph(std::slice::from_ref(&bench)), &world.options, &services, &mut |_| {})
    };
    measure(&world);
    world.options.remeasure = Some(std::sync::Arc::new(|_: &Node| true));
    let again = measure(&world).step("b").unwrap().clone();
    world.options.remeasure = None;
    let fresh = measure(&world).step("b").unwrap().clone();
    assert_eq!((&again.outcome, &fresh.outcome), (&Outcome::Executed, &Outcome::Fresh));
    assert_eq!(again.result.unwrap().outputs, fresh.result.unwrap().outputs);
    assert_eq!(again.evidence.unwrap().origin, "here");
    assert_eq!(world.executor.take().len(), 2);
}

#[test]
fn a_device_is_measured_by_one_step_at_a_time() {
    let mut world = World::default();
    world.options.capacity = Capacity { cpus: 16, ..Capacity::default() };
    let bench = |i: usize| {
        let mut bench = node(&format!("b{i}"), StepKind::Bench, &[("in", world.store(&i.to_string()))]);
        bench.resources = Resources { device: Some(["h200".into()].into()), exclusive: true, ..Resources::default() };
        bench
    };
    let plan: Vec<Node> = (0..30).map(bench).collect();
    assert_eq!(world.build(&plan).counts.executed, 30);
    assert_eq!(world.executor.most.load(Ordering::SeqCst), 1);
}
