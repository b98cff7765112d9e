//! What a build does in the cases that matter, one by one.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use serde_json::json;

use super::testing::{FakeCache, FakeExpand, World, blob, node, output, with};
use super::*;
use crate::base::{Digest, Severity};
use crate::record::event::{CacheOrigin, Event, EvidenceSeen, StepFinished};
use crate::record::{Form, Outcome, Spec, StepKind, StepResult, Verdict};

fn source(world: &World, id: &str, text: &str) -> Node {
    node(id, StepKind::Generate, &[("file", world.store(text))])
}

fn reads(id: &str, kind: StepKind, from: &str) -> Node {
    node(id, kind, &[("in", output(from, true))])
}

fn outcome<'a>(outcome: &'a BuildOutcome, id: &str) -> &'a Outcome {
    &outcome.step(id).unwrap().outcome
}

/// With one slot this step runs before others, because it is remembered to take long.
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

#[test]
fn a_second_build_runs_nothing_and_an_edit_runs_what_reads_it() {
    let world = World::default();
    let plan = |text: &str| {
        let other = node("b", StepKind::Compile, &[("file", world.store("other"))]);
        vec![source(&world, "a", text), reads("a2", StepKind::Compile, "a"), other]
    };
    world.build(&plan("one"));
    assert_eq!(world.runner.take().len(), 3);
    let again = world.build(&plan("one"));
    assert_eq!((again.counts.fresh, again.counts.total, world.runner.take().len()), (3, 3, 0));
    world.build(&plan("two"));
    assert_eq!(world.runner.take(), ["a", "a2"]);
}

#[test]
fn an_output_that_stays_the_same_cuts_off_what_follows() {
    let world = World::default();
    let plan = |text: &str| {
        let a = with(source(&world, "a", text), json!({"modulo": 1}));
        vec![a, reads("b", StepKind::Compile, "a")]
    };
    world.build(&plan("one"));
    world.runner.take();
    world.build(&plan("two"));
    assert_eq!(world.runner.take(), ["a"]);
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
fn steps_with_equal_keys_run_once() {
    let world = World::default();
    let plan = [source(&world, "a", "x"), source(&world, "b", "x"), reads("c", StepKind::Compile, "b")];
    let built = world.build(&plan);
    assert_eq!(world.runner.take().len(), 2);
    assert_eq!(built.step("a").unwrap().result, built.step("b").unwrap().result);
    let outcomes = [outcome(&built, "a"), outcome(&built, "b")];
    assert!(outcomes.contains(&&Outcome::Executed) && outcomes.contains(&&Outcome::Fresh));
    // The one that did not run is remembered too.
    assert!(world.memory.last_key("a").is_some() && world.memory.last_key("a") == world.memory.last_key("b"));
}

#[test]
fn equal_keys_share_a_failure_and_a_result_that_is_not_kept() {
    let world = World::default();
    let same = |id: &str, params| with(source(&world, id, "x"), params);
    let fail = json!({"fail": true});
    let forget = json!({"forget": true});
    let plan = [same("a", fail.clone()), same("b", fail), same("c", forget.clone()), same("d", forget)];
    let built = world.build(&plan);
    assert_eq!(world.runner.take().len(), 2);
    assert_eq!((built.counts.failed, built.counts.executed, built.counts.fresh), (2, 1, 1));
}

#[test]
fn what_needs_a_failed_step_is_skipped_naming_where_it_began() {
    let world = World::default();
    let a = with(source(&world, "a", "x"), json!({"fail": true}));
    let plan = [a, reads("b", StepKind::Compile, "a"), reads("c", StepKind::Inspect, "b"), source(&world, "d", "y")];
    let built = world.build(&plan);
    assert_eq!(outcome(&built, "a"), &Outcome::Failed("refused".into()));
    assert_eq!(outcome(&built, "c"), &Outcome::Skipped("a".into()));
    assert_eq!(outcome(&built, "d"), &Outcome::Executed);
    world.runner.take();
    world.build(&plan);
    assert_eq!(world.runner.take(), ["a"], "a failure is not remembered");
}

#[test]
fn an_output_that_a_result_lacks_counts_as_nothing() {
    let world = World::default();
    let a = with(source(&world, "a", "x"), json!({"none": true}));
    let optional = node("c", StepKind::Judge, &[("in", output("a", false))]);
    let built = world.build(&[a, reads("b", StepKind::Compile, "a"), optional]);
    assert_eq!(outcome(&built, "b"), &Outcome::Skipped("a".into()));
    assert_eq!(outcome(&built, "c"), &Outcome::Executed);
}

#[test]
fn an_order_without_an_input_is_kept_and_a_failure_there_holds_nothing_back() {
    let world = World::default();
    let a = with(source(&world, "a", "x"), json!({"fail": true}));
    let b = Node { after: vec!["a".into()], ..node("b", StepKind::Compile, &[]) };
    world.build(&[b, a]);
    assert_eq!(world.runner.take(), ["a", "b"]);
}

#[test]
fn a_failure_ends_the_build_unless_it_is_to_keep_going() {
    for keep_going in [false, true] {
        let mut world = World::default();
        world.options.keep_going = keep_going;
        first(&world, "a");
        let a = with(source(&world, "a", "x"), json!({"fail": true}));
        let plan = [a, source(&world, "b", "y"), reads("c", StepKind::Compile, "b")];
        let built = world.build(&plan);
        let ran = world.runner.take();
        assert_eq!(ran.len(), if keep_going { 3 } else { 1 }, "{ran:?}");
        assert_eq!(built.stopped_by.as_deref(), (!keep_going).then_some("a"));
        if !keep_going {
            assert_eq!(outcome(&built, "c"), &Outcome::Skipped("the build ended at `a`".into()));
            assert_eq!(built.counts.skipped, 2);
        }
    }
}

#[test]
fn a_failing_verdict_is_a_result_that_ends_the_build_and_is_judged_first() {
    let mut world = World::default();
    world.options.keep_going = false;
    let verify = with(node("a", StepKind::Verify, &[]), json!({"wrong": true}));
    let plan = [verify, node("b", StepKind::Verify, &[("x", world.store("x"))]), reads("j", StepKind::Judge, "a")];
    for turn in 0..2 {
        let built = world.build(&plan);
        assert_eq!(built.step("a").unwrap().result.as_ref().unwrap().verdict, Some(Verdict::Fail("wrong".into())));
        assert!(built.step("j").unwrap().result.is_some(), "what is pure still judges");
        assert!(built.step("b").unwrap().stopped, "nothing else starts, turn {turn}");
        assert_eq!(built.verdicts.fail, 1);
    }
    assert_eq!(world.runner.take(), ["a", "j"], "it is remembered");
}

#[test]
fn a_failing_verdict_of_what_is_made_for_comparison_ends_no_build() {
    let mut world = World::default();
    world.options.keep_going = false;
    let verify = with(node("a", StepKind::Verify, &[]), json!({"wrong": true}));
    let plan = [Node { advisory: true, ..verify }, reads("b", StepKind::Bench, "a")];
    for turn in 0..2 {
        let built = world.build(&plan);
        assert!(built.step("b").unwrap().result.is_some(), "turn {turn}");
        assert_eq!((built.verdicts.fail, built.stopped_by), (1, None));
    }
    let broken = with(node("c", StepKind::Compile, &[]), json!({"fail": true}));
    let built = world.build(&[Node { advisory: true, ..broken }]);
    assert_eq!(built.stopped_by.as_deref(), Some("c"), "what gives no result is a failure all the same");
}

#[test]
fn a_stopped_build_does_not_bind_what_it_did_not_start_as_absent() {
    let mut world = World::default();
    world.options.keep_going = false;
    let a = with(node("a", StepKind::Compile, &[]), json!({"fail": true}));
    let plan = [a, source(&world, "z", "z"), node("j", StepKind::Judge, &[("in", output("z", false))])];
    // Compiling takes longer than generating where nothing is remembered, so `a` is first.
    let built = world.build(&plan);
    assert!(built.step("z").unwrap().stopped && built.step("j").unwrap().stopped);
    assert_eq!(world.runner.take(), ["a"]);
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
    world.runner.take();
    let built = world.build(&[verify(Some("no gpu")), judge, select]);
    assert_eq!(outcome(&built, "v"), &Outcome::Fresh);
    assert_eq!(world.runner.take(), ["j", "s"]);
}

#[test]
fn a_runner_may_find_a_step_unavailable_and_that_is_not_remembered() {
    let world = World::default();
    let plan = [with(source(&world, "a", "x"), json!({"unavailable": true}))];
    for _ in 0..2 {
        assert_eq!(outcome(&world.build(&plan), "a"), &Outcome::Unavailable("no tool".into()));
        assert_eq!(world.runner.take(), ["a"]);
    }
}

#[test]
fn a_kind_without_a_runner_is_unavailable() {
    let world = World::default();
    let graph = world.graph(&[source(&world, "a", "x")]);
    let services = Services { runners: Default::default(), ..world.services() };
    let built = build(graph, &world.options, &services, &mut |_| {});
    assert!(matches!(outcome(&built, "a"), Outcome::Unavailable(what) if what.contains("`generate`")));
}

#[test]
fn a_result_that_is_not_to_be_kept_is_made_again_and_explained_so() {
    let world = World::default();
    let plan = [with(source(&world, "a", "x"), json!({"forget": true}))];
    world.build(&plan);
    let (_, events) = world.build_telling(&plan);
    assert_eq!(finished(&events)[0].why.as_ref().unwrap().code, "forgotten");
    assert_eq!(world.runner.take().len(), 2);
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
fn a_panicking_runner_fails_its_step_and_no_other() {
    let world = World::default();
    let plan = [with(source(&world, "a", "x"), json!({"panic": true})), source(&world, "b", "y")];
    let built = world.build(&plan);
    assert_eq!(outcome(&built, "a"), &Outcome::Failed("internal error: a bug".into()));
    assert_eq!(outcome(&built, "b"), &Outcome::Executed);
}

#[test]
fn an_input_that_is_lost_from_the_store_fails_the_step_before_it_runs() {
    let world = World::default();
    let built = world.build(&[node("a", StepKind::Generate, &[("file", blob("never stored"))])]);
    assert!(matches!(outcome(&built, "a"), Outcome::Failed(why) if why.contains("`file`")));
    assert!(world.runner.take().is_empty());
}

#[test]
fn a_broken_cache_costs_work_and_one_warning_but_no_result() {
    let mut world = World::default();
    world.cache.broken = true;
    let (built, events) = world.build_telling(&[source(&world, "a", "x"), source(&world, "b", "y")]);
    assert_eq!(built.counts.executed, 2);
    let warnings: Vec<&Event> = events.iter().filter(|e| matches!(e, Event::Diagnostic { .. })).collect();
    assert_eq!(warnings.len(), 2, "one for reading, one for writing: {warnings:?}");
    assert!(matches!(warnings[0], Event::Diagnostic { severity: Severity::Warning, .. }));
}

#[test]
fn an_interrupted_build_starts_nothing_more_and_says_so() {
    let world = World::default();
    first(&world, "a");
    let a = with(source(&world, "a", "x"), json!({"interrupt": true}));
    let built = world.build(&[a, source(&world, "b", "y"), reads("c", StepKind::Judge, "b")]);
    assert_eq!(world.runner.take(), ["a"]);
    assert!(built.interrupted);
    assert_eq!((built.counts.skipped, built.counts.total), (3, 3));
    assert_eq!(outcome(&built, "a"), &Outcome::Skipped(INTERRUPTED.into()));
    assert!(world.cache.rows.lock().unwrap().is_empty());
    world.options.interrupted.store(false, Ordering::SeqCst);
    assert!(!world.build(&[source(&world, "b", "y")]).interrupted);
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
    assert_eq!(world.runner.take().len(), 2);
    assert_eq!(outcome(&world.build(&[bench(Some("no gpu"))]), "b"), &Outcome::Fresh);
}

#[test]
fn slots_bound_how_many_run_at_once_and_pure_steps_take_none() {
    let mut world = World::default();
    world.options.capacity = Capacity { cpus: 3, ..Capacity::default() };
    let plan: Vec<Node> = (0..40).map(|i| source(&world, &format!("s{i}"), &format!("{i}"))).collect();
    world.build(&plan);
    assert!(world.runner.most.load(Ordering::SeqCst) <= 3);
}

fn grown(node: &Node, text: &str) -> Vec<Node> {
    let rank = Rank { phase: 1, ..node.rank };
    let pair = testing::node("pair", StepKind::Pairs, &[("in", output(&node.id, true))]);
    let seen = testing::node(&format!("seen {}", text.len()), StepKind::Attribute, &[("p", output("pair", true))]);
    let phase = |n: Node| Node { rank: Rank { kind: n.kind, ..rank }, ..n };
    vec![phase(seen), phase(pair)]
}

#[test]
fn a_result_may_add_steps_and_they_belong_to_the_same_build() {
    let world = World { expand: FakeExpand(grown), ..World::default() };
    let select = Node { expands: true, ..with(source(&world, "a", "x"), json!({"modulo": 1})) };
    let other = Node { id: "b".into(), ..select.clone() };
    for turn in 0..2 {
        let built = world.build(std::slice::from_ref(&select));
        assert_eq!((built.counts.total, built.graph.len()), (3, 3));
        assert_eq!(world.options.total.load(Ordering::SeqCst), 3);
        assert!(built.step("seen 1").unwrap().result.is_some());
        assert_eq!(world.runner.take().len(), if turn == 0 { 3 } else { 0 });
    }
    // `other` has the key of `select` and adds nodes of the same names that read it instead: its own error, which costs it alone.
    let built = world.build(&[select, other]);
    let failed: Vec<&Done> = built.steps.iter().filter(|d| matches!(d.outcome, Outcome::Failed(_))).collect();
    assert_eq!((failed.len(), built.counts.total), (1, 4));
}

#[test]
fn an_expansion_that_does_not_rank_after_its_node_fails_that_node() {
    let world = World { expand: FakeExpand(|n, _| vec![Node { id: "new".into(), ..n.clone() }]), ..World::default() };
    let built = world.build(&[Node { expands: true, ..source(&world, "a", "x") }]);
    assert!(matches!(outcome(&built, "a"), Outcome::Failed(why) if why.contains("does not rank after")));
}

#[test]
fn the_reason_is_followed_to_the_file_that_changed() {
    let world = World::default();
    let tree = |text: &str| {
        let files = [("x.cu", text), ("y.h", "same")].map(|(n, t)| (n.to_string(), Digest::of(t.as_bytes())));
        let tree = crate::record::spec::Tree { files: files.into() };
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
    assert_eq!(before.standing, Standing::WillRun);
    assert_eq!(before.because[0].why.field.as_deref(), Some("inputs.source"));
    assert_eq!(before.because[1].what, "inputs.source/x.cu");
    let pending = asked("two", "verify");
    assert_eq!(pending.standing, Standing::MayRun);
    assert_eq!(pending.because[0].why.code, "input-pending");
    assert_eq!(pending.because.last().unwrap().what, "inputs.source/x.cu");
    world.build(&plan("two"));
    let after = asked("two", "verify");
    assert_eq!(after.standing, Standing::Fresh);
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

#[test]
fn a_dry_run_tells_what_will_run_from_what_may() {
    let world = World { expand: FakeExpand(grown), ..World::default() };
    let plan = |text: &str| {
        let a = source(&world, "a", text);
        let select = Node { expands: true, ..reads("s", StepKind::Select, "b") };
        let lame = Node { unavailable: Some("no gpu".into()), ..node("v", StepKind::Verify, &[]) };
        vec![a, reads("b", StepKind::Compile, "a"), select, source(&world, "same", "same"), lame]
    };
    let first = world.dry_run(&plan("one"));
    assert_eq!(
        first.will.iter().map(|w| (w.0.as_str(), w.1.code.as_str())).collect::<Vec<_>>(),
        [("a", "new"), ("same", "new")]
    );
    assert_eq!((first.may, first.adds, first.fresh), (vec!["b".to_string(), "s".into()], vec!["s".to_string()], 0));
    assert_eq!(first.unavailable, [("v".to_string(), "no gpu".to_string())]);
    world.build(&plan("one"));
    world.runner.take();
    assert_eq!(world.dry_run(&plan("one")).fresh, 6, "what is added by a known result is known");
    let edited = world.dry_run(&plan("two"));
    assert_eq!((edited.will.len(), edited.may.len(), edited.fresh), (1, 2, 1));
    assert_eq!(edited.will[0].1.field.as_deref(), Some("inputs.file"));
    assert!(world.runner.take().is_empty());
}

#[test]
fn a_dry_run_names_every_step_that_may_add_steps() {
    let add = |node: &Node, _: &str| {
        let rank = Rank { round: 0, phase: 1, wave: 0, kind: StepKind::Pairs };
        let input = ("in", output(&node.id, true));
        vec![Node { rank, ..testing::node(&format!("{}+pair", node.id), StepKind::Pairs, &[input]) }]
    };
    let world = World { expand: FakeExpand(add), ..World::default() };
    let expanding = |id: &str| Node { expands: true, ..source(&world, id, "same") };
    // Whatever it gives, a step that this machine cannot run may have it from one with the same key.
    let lame = Node {
        unavailable: Some("no gpu".into()),
        after: vec!["one".into()],
        ..Node { expands: true, ..source(&world, "lame", "other") }
    };
    let plan = [expanding("one"), expanding("two"), lame];
    let dry = world.dry_run(&plan);
    assert_eq!((dry.will.len(), dry.may.len(), dry.adds), (1, 0, ["one", "two", "lame"].map(String::from).to_vec()));
    let built = world.build(&plan);
    assert!(built.step("one+pair").is_some() && built.step("two+pair").is_some(), "the second adds its own");
}

#[test]
fn a_dry_run_writes_nothing() {
    let world = World::default();
    let plan = [source(&world, "a", "x")];
    world.build(&plan);
    world.memory.rows.borrow_mut().clear();
    assert_eq!(world.dry_run(&plan).fresh, 1);
    assert!(world.memory.rows.borrow().is_empty());
}

/// Gives every key to another process first, which keeps a result under it.
struct Overtaken<'a>(&'a FakeCache);

impl KeyLocks for Overtaken<'_> {
    fn lock(&self, key: &Digest, _: &std::sync::atomic::AtomicBool) -> std::io::Result<Option<KeyGuard>> {
        let out = Digest::of(b"theirs");
        let result = gives(out);
        self.0.rows.lock().unwrap().insert(*key, result);
        Ok(Some(Box::new(())))
    }
}

#[test]
fn a_key_that_another_process_computed_meanwhile_is_not_computed_again() {
    let world = World::default();
    let plan = [source(&world, "a", "x")];
    let locks = Overtaken(&world.cache);
    let services = Services { locks: &locks, ..world.services() };
    let built = build(world.graph(&plan), &world.options, &services, &mut |_| {});
    assert_eq!(outcome(&built, "a"), &Outcome::Fresh);
    assert_eq!(built.step("a").unwrap().result.as_ref().unwrap().outputs["out"], Digest::of(b"theirs"));
    assert!(world.runner.take().is_empty());
    assert_eq!(world.memory.last_key("a"), built.step("a").unwrap().key, "it is remembered");
}

/// As when a signal comes while another process computes the key.
struct NeverFree;

impl KeyLocks for NeverFree {
    fn lock(&self, _: &Digest, flag: &std::sync::atomic::AtomicBool) -> std::io::Result<Option<KeyGuard>> {
        flag.store(true, Ordering::SeqCst);
        Ok(None)
    }
}

#[test]
fn a_wait_for_another_process_ends_with_the_build() {
    let world = World::default();
    let services = Services { locks: &NeverFree, ..world.services() };
    let built = build(world.graph(&[source(&world, "a", "x")]), &world.options, &services, &mut |_| {});
    assert!(built.interrupted && built.step("a").unwrap().stopped && world.runner.take().is_empty());
}

/// Answers with the records so far, as evidence does.
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
        };
        let result = StepResult { outputs, ..gives(Digest::of(b"")) };
        Ok((!records.is_empty()).then_some(Hit { result, origin: CacheOrigin::Evidence, evidence: Some(evidence) }))
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
    assert_eq!(world.runner.take().len(), 2);
}

#[test]
fn a_device_is_measured_by_one_step_at_a_time() {
    let mut world = World::default();
    world.options.capacity = Capacity { cpus: 16, ..Capacity::default() };
    let bench = |i: usize| {
        let mut bench = node(&format!("b{i}"), StepKind::Bench, &[("in", world.store(&i.to_string()))]);
        bench.resources = Resources { device: Some("h200".into()), exclusive: true, ..Resources::default() };
        bench
    };
    let plan: Vec<Node> = (0..30).map(bench).collect();
    assert_eq!(world.build(&plan).counts.executed, 30);
    assert_eq!(world.runner.most.load(Ordering::SeqCst), 1);
}

#[test]
fn a_step_that_shares_a_run_is_explained_like_the_one_that_runs() {
    let world = World::default();
    let plan = [source(&world, "a", "x"), source(&world, "b", "x")];
    let asked = |id: &str| explain(world.graph(&plan), &world.options, &world.services(), id).unwrap();
    for id in ["a", "b"] {
        let now = asked(id);
        assert_eq!((now.standing, now.because[0].why.code.as_str()), (Standing::WillRun, "new"));
        assert!(now.fields.iter().any(|f| f.0 == "inputs.file"));
    }
    assert!(explain(world.graph(&plan), &world.options, &world.services(), "c").is_none());
}

fn gives(out: Digest) -> StepResult {
    let outputs = [("out".to_string(), out)].into();
    StepResult { outputs, verdict: None, notes: vec![], summary: String::new(), duration_ms: 0 }
}

#[test]
fn a_failed_expansion_costs_nothing_but_the_step_that_asked_for_it() {
    let world =
        World { expand: FakeExpand(|n, _| vec![n.clone(), Node { id: "x".into(), ..n.clone() }]), ..World::default() };
    let plain = source(&world, "b", "x");
    let expanding = Node { id: "a".into(), expands: true, ..plain.clone() };
    for plan in [[expanding.clone(), plain.clone()], [plain, expanding]] {
        world.cache.rows.lock().unwrap().clear();
        let built = world.build(&plan);
        assert!(matches!(outcome(&built, "a"), Outcome::Failed(_)) && built.step("a").unwrap().result.is_none());
        assert!(built.step("b").unwrap().result.is_some());
    }
}

#[test]
fn a_step_that_waits_for_another_does_not_hide_one_with_the_same_key_that_does_not() {
    let world = World::default();
    let known =
        [source(&world, "f1", "x"), reads("f2", StepKind::Generate, "f1"), reads("f3", StepKind::Generate, "f2")];
    let built = world.build(&known);
    world.runner.take();
    let contents = built.step("f3").unwrap().result.as_ref().unwrap().outputs["out"];
    let same = InputRef { source: Source::Blob(contents), form: Form::Blob };
    let late = Node { after: vec!["new".into()], ..node("late", StepKind::Compile, &[("in", same)]) };
    let mut plan = vec![source(&world, "new", "y"), late, reads("now", StepKind::Compile, "f3")];
    plan.extend(known);
    let dry = world.dry_run(&plan);
    assert_eq!(dry.will.iter().map(|w| w.0.as_str()).collect::<BTreeSet<_>>(), BTreeSet::from(["new", "now"]));
    assert_eq!(dry.may, ["late"]);
    world.build(&plan);
    assert_eq!(world.runner.take().into_iter().collect::<BTreeSet<_>>(), BTreeSet::from(["new".into(), "now".into()]));
}
