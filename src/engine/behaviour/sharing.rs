//! Steps with equal keys, in one build and in several processes: each key is computed once.

use super::*;

#[test]
fn steps_with_equal_keys_run_once() {
    let world = World::default();
    let plan = [source(&world, "a", "x"), source(&world, "b", "x"), reads("c", StepKind::Compile, "b")];
    let built = world.build(&plan);
    assert_eq!(world.executor.take().len(), 2);
    assert_eq!(built.step("a").unwrap().result, built.step("b").unwrap().result);
    let outcomes = [outcome(&built, "a"), outcome(&built, "b")];
    assert!(outcomes.contains(&&Outcome::Executed) && outcomes.contains(&&Outcome::Fresh));
    // The step that did not run is remembered too.
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
    assert_eq!(world.executor.take().len(), 2);
    assert_eq!((built.counts.failed, built.counts.executed, built.counts.fresh), (2, 1, 1));
}

/// Makes another process get every key first and store a result under it.
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
    assert!(world.executor.take().is_empty());
    assert_eq!(world.memory.last_key("a"), built.step("a").unwrap().key, "it is remembered");
}

/// Simulates a signal that arrives while another process computes the key.
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
    assert!(built.interrupted && built.step("a").unwrap().stopped && world.executor.take().is_empty());
}

#[test]
fn a_step_that_shares_a_run_is_explained_like_the_one_that_runs() {
    let world = World::default();
    let plan = [source(&world, "a", "x"), source(&world, "b", "x")];
    let asked = |id: &str| explain(world.graph(&plan), &world.options, &world.services(), id).unwrap();
    for id in ["a", "b"] {
        let now = asked(id);
        assert_eq!((now.prospect, now.because[0].why.code.as_str()), (Prospect::WillRun, "new"));
        assert!(now.fields.iter().any(|f| f.0 == "inputs.file"));
    }
    assert!(explain(world.graph(&plan), &world.options, &world.services(), "c").is_none());
}

#[test]
fn a_step_that_waits_for_another_does_not_hide_one_with_the_same_key_that_does_not() {
    let world = World::default();
    let known =
        [source(&world, "f1", "x"), reads("f2", StepKind::Generate, "f1"), reads("f3", StepKind::Generate, "f2")];
    let built = world.build(&known);
    world.executor.take();
    let contents = built.step("f3").unwrap().result.as_ref().unwrap().outputs["out"];
    let same = InputRef { source: Source::Blob(contents), form: Form::Blob };
    let late = Node { after: vec!["new".into()], ..node("late", StepKind::Compile, &[("in", same)]) };
    let mut plan = vec![source(&world, "new", "y"), late, reads("now", StepKind::Compile, "f3")];
    plan.extend(known);
    let dry = world.dry_run(&plan);
    assert_eq!(dry.will.iter().map(|w| w.0.as_str()).collect::<BTreeSet<_>>(), BTreeSet::from(["new", "now"]));
    assert_eq!(dry.may, ["late"]);
    world.build(&plan);
    assert_eq!(
        world.executor.take().into_iter().collect::<BTreeSet<_>>(),
        BTreeSet::from(["new".into(), "now".into()])
    );
}
