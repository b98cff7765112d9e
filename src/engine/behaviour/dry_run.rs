//! What a dry run reports, and that it writes nothing.

use super::*;

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
    world.executor.take();
    assert_eq!(world.dry_run(&plan("one")).fresh, 6, "what is added by a known result is known");
    let edited = world.dry_run(&plan("two"));
    assert_eq!((edited.will.len(), edited.may.len(), edited.fresh), (1, 2, 1));
    assert_eq!(edited.will[0].1.field.as_deref(), Some("inputs.file"));
    assert!(world.executor.take().is_empty());
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
    // A step that this machine cannot run may get its result from a step with the same key.
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
