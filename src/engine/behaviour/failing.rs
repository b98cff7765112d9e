//! What a build does when a step fails, lacks an input or is interrupted.

use super::*;
use crate::state::INTERRUPTED;

#[test]
fn what_needs_a_failed_step_is_skipped_naming_where_it_began() {
    let world = World::default();
    let a = with(source(&world, "a", "x"), json!({"fail": true}));
    let plan = [a, reads("b", StepKind::Compile, "a"), reads("c", StepKind::Inspect, "b"), source(&world, "d", "y")];
    let built = world.build(&plan);
    assert_eq!(outcome(&built, "a"), &Outcome::Failed("refused".into()));
    assert_eq!(outcome(&built, "c"), &Outcome::Skipped("a".into()));
    assert_eq!(outcome(&built, "d"), &Outcome::Executed);
    world.executor.take();
    world.build(&plan);
    assert_eq!(world.executor.take(), ["a"], "a failure is not remembered");
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
    assert_eq!(world.executor.take(), ["a", "b"]);
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
        let ran = world.executor.take();
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
    assert_eq!(world.executor.take(), ["a", "j"], "it is remembered");
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
    // Without remembered durations, compiling is estimated to take longer than generating, so `a` runs first.
    let built = world.build(&plan);
    assert!(built.step("z").unwrap().stopped && built.step("j").unwrap().stopped);
    assert_eq!(world.executor.take(), ["a"]);
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
    assert!(world.executor.take().is_empty());
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
    assert_eq!(world.executor.take(), ["a"]);
    assert!(built.interrupted);
    assert_eq!((built.counts.skipped, built.counts.total), (3, 3));
    assert_eq!(outcome(&built, "a"), &Outcome::Skipped(INTERRUPTED.into()));
    assert!(world.cache.rows.lock().unwrap().is_empty());
    world.options.interrupted.store(false, Ordering::SeqCst);
    assert!(!world.build(&[source(&world, "b", "y")]).interrupted);
}
