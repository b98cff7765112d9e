//! Steps that are added by the result of another step.

use std::time::SystemTime;

use super::*;

#[test]
fn a_result_may_add_steps_and_they_belong_to_the_same_build() {
    let world = World { expand: FakeExpand(grown), ..World::default() };
    let select = Node { expands: true, ..with(source(&world, "a", "x"), json!({"modulo": 1})) };
    let other = Node { id: "b".into(), ..select.clone() };
    for turn in 0..2 {
        let built = world.build(std::slice::from_ref(&select));
        assert_eq!((built.counts.total, built.graph.len()), (3, 3));
        let gauge = &world.options.gauge;
        assert_eq!((gauge.total(), gauge.ended(), gauge.left()), (3, 3, None));
        assert!(built.step("seen 1").unwrap().result.is_some());
        assert_eq!(world.executor.take().len(), if turn == 0 { 3 } else { 0 });
    }
    // `other` has the key of `select` and adds nodes of the same names that read `other` instead. That is an error of `other`, and it fails only `other`.
    let built = world.build(&[select, other]);
    let failed: Vec<&Done> = built.steps.iter().filter(|d| matches!(d.outcome, Outcome::Failed(_))).collect();
    assert_eq!((failed.len(), built.counts.total), (1, 4));
}

#[test]
fn a_step_is_planned_when_its_node_is_added_and_not_when_it_runs() {
    let world = World { expand: FakeExpand(grown), ..World::default() };
    let began = SystemTime::now();
    world.build(&[
        Node { expands: true, ..with(source(&world, "a", "x"), json!({"modulo": 1})) },
        source(&world, "b", "y"),
    ]);
    let planned = world.executor.planned.lock().unwrap();
    assert_eq!(planned["a"], planned["b"]);
    assert!(began <= planned["a"] && planned["a"] < planned["seen 1"], "{planned:?}");
}

#[test]
fn an_expansion_that_does_not_rank_after_its_node_fails_that_node() {
    let world = World { expand: FakeExpand(|n, _| vec![Node { id: "new".into(), ..n.clone() }]), ..World::default() };
    let built = world.build(&[Node { expands: true, ..source(&world, "a", "x") }]);
    assert!(matches!(outcome(&built, "a"), Outcome::Failed(why) if why.contains("does not rank after")));
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
