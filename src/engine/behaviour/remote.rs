//! The remote cache: what it is asked, and what happens when it cannot keep what it answered.

use std::sync::atomic::Ordering;

use super::*;
use crate::testing::FakeRemote;

/// Per kernel: a source, its compilation, what inspects the binary, and a judgement of that.
fn kernels(world: &World, count: usize) -> Vec<Node> {
    let kernel = |k: usize| {
        let (source_id, compile, inspect) = (format!("s{k}"), format!("c{k}"), format!("i{k}"));
        vec![
            source(world, &source_id, &k.to_string()),
            reads(&compile, StepKind::Compile, &source_id),
            reads(&inspect, StepKind::Inspect, &compile),
            reads(&format!("j{k}"), StepKind::Judge, &inspect),
        ]
    };
    (0..count).flat_map(kernel).collect()
}

/// A world whose remote cache has the results of all `count` kernels. What inspections gave has been fetched, and no binary.
fn elsewhere(count: usize) -> World {
    let first = World { remote: Some(FakeRemote::default()), ..World::default() };
    let outcome = first.build(&kernels(&first, count));
    assert_eq!(outcome.counts.executed as usize, 4 * count);
    let world = World::default();
    for k in 0..count {
        let read = outcome.step(&format!("i{k}")).unwrap().result.as_ref().unwrap().outputs["out"];
        world.blobs.put(&first.blobs.get(&read).unwrap().unwrap()).unwrap();
    }
    let rows = first.remote.unwrap().rows;
    assert_eq!(rows.lock().unwrap().len(), 2 * count, "what runs in this process is not stored");
    World { remote: Some(FakeRemote { rows, ..FakeRemote::default() }), ..world }
}

#[test]
fn what_another_machine_has_stored_does_not_run_and_many_questions_are_in_flight() {
    let mut world = elsewhere(10);
    let plan = kernels(&world, 10);
    // No answer comes before all ten compilations are asked about.
    world.remote.as_mut().unwrap().at_least = 10;
    let (outcome, events) = world.build_telling(&plan);
    let ran = world.executor.take();
    assert!(ran.iter().all(|id| id.starts_with('s') || id.starts_with('j')), "{ran:?}");
    let remote: Vec<_> = finished(&events).into_iter().filter(|f| f.cache == CacheOrigin::Remote).collect();
    assert_eq!((remote.len(), remote[0].outcome.clone()), (20, Outcome::Fresh));
    // A judgement, which is pure, reads what an inspection gave; nothing that runs here reads the binary.
    let asked = world.remote.as_ref().unwrap().asked.lock().unwrap();
    assert_eq!(asked.len(), 20);
    let reads = |id: &str| &asked.iter().find(|(key, _)| Some(*key) == outcome.step(id).unwrap().key).unwrap().1;
    assert_eq!((reads("i3"), reads("c3")), (&vec!["out".to_string()], &vec![]));
}

#[test]
fn only_steps_that_no_cache_of_this_machine_knows_are_asked_about() {
    let world = World { remote: Some(FakeRemote::default()), ..World::default() };
    let plan = kernels(&world, 2);
    world.build(&plan);
    let asked = |world: &World| world.remote.as_ref().unwrap().asked.lock().unwrap().len();
    assert_eq!(asked(&world), 4);
    world.build(&plan);
    assert_eq!(asked(&world), 4, "all are known here");
    let mut other = elsewhere(1);
    other.options.remeasure = Some(std::sync::Arc::new(|_: &Node| true));
    other.build(&kernels(&other, 1));
    assert_eq!(asked(&other), 0, "what is to run again is not asked about");
}

#[test]
fn a_step_that_cannot_run_here_is_answered_and_without_an_answer_it_is_unavailable() {
    let world = elsewhere(1);
    let mut plan = kernels(&world, 2);
    for node in &mut plan {
        node.unavailable = (node.kind == StepKind::Compile).then(|| "a compiler is missing".into());
    }
    let ended = world.build(&plan);
    assert_eq!(outcome(&ended, "c0"), &Outcome::Fresh);
    assert_eq!(outcome(&ended, "c1"), &Outcome::Unavailable("a compiler is missing".into()));
    // Its output is not here either, and cannot be made.
    let world = elsewhere(1);
    let mut plan = kernels(&world, 1);
    plan[1].unavailable = Some("a compiler is missing".into());
    plan.push(reads("b", StepKind::Bench, "c0"));
    let ended = world.build(&plan);
    let Outcome::Failed(why) = outcome(&ended, "b") else { panic!("{:?}", outcome(&ended, "b")) };
    assert!(why.contains("input `in` is no longer in the store"), "{why}");
}

#[test]
fn what_another_machine_executed_is_no_result_of_this_one() {
    let world = World { remote: Some(FakeRemote::default()), ..World::default() };
    let mut plan = kernels(&world, 2);
    plan[1].params = serde_json::json!({ "elsewhere": true });
    plan[5].params = serde_json::json!({ "elsewhere": true, "forget": true });
    let (outcome, events) = world.build_telling(&plan);
    let of = |id: &str| finished(&events).into_iter().find(|step| &*step.id == id).unwrap();
    assert_eq!((of("c0").cache, of("c0").outcome.clone()), (CacheOrigin::Remote, Outcome::Executed));
    assert_eq!(of("i0").cache, CacheOrigin::None);
    let key = |id: &str| outcome.step(id).unwrap().key.unwrap();
    let (here, there) = (world.cache.rows.lock().unwrap(), world.remote.as_ref().unwrap().rows.lock().unwrap());
    assert!(!here.contains_key(&key("c0")) && here.contains_key(&key("i0")));
    // The remote cache gets it all the same, if it may be remembered.
    assert!(there.contains_key(&key("c0")) && !there.contains_key(&key("c1")));
    assert!(outcome.step("c0").unwrap().tag.is_none());
    // The time of a result is that of the step, not of the wait for it.
    let took = |id: &str| outcome.step(id).unwrap().result.as_ref().unwrap().duration_ms;
    assert!(took("c0") == 90_000 && took("i0") < 60_000, "{} {}", took("c0"), took("i0"));
}

#[test]
fn steps_with_the_same_key_share_one_question() {
    let world = elsewhere(1);
    let mut plan = kernels(&world, 1);
    plan.extend([reads("twin", StepKind::Compile, "s0"), reads("third", StepKind::Inspect, "twin")]);
    let ended = world.build(&plan);
    assert_eq!((outcome(&ended, "twin"), outcome(&ended, "third")), (&Outcome::Fresh, &Outcome::Fresh));
    assert_eq!(world.remote.as_ref().unwrap().asked.lock().unwrap().len(), 2);
    // And one run, if there is no answer.
    let world = World { remote: Some(FakeRemote::default()), ..World::default() };
    let ended = world.build(&plan_of_twins(&world));
    assert_eq!(world.executor.take().iter().filter(|id| *id == "c0" || *id == "twin").count(), 1);
    assert_eq!(ended.step("twin").unwrap().result, ended.step("c0").unwrap().result);
}

fn plan_of_twins(world: &World) -> Vec<Node> {
    let mut plan = kernels(world, 1);
    plan.push(reads("twin", StepKind::Compile, "s0"));
    plan
}

#[test]
fn what_is_lost_is_made_again_and_the_build_goes_on() {
    let world = elsewhere(2);
    // The binaries are read by steps that have to run; two of them by the first.
    let mut plan = kernels(&world, 2);
    let both = [("a", output("c0", true)), ("b", output("c1", true))];
    plan.extend([node("v", StepKind::Bench, &both), reads("w", StepKind::Bench, "c0")]);
    let (ended, events) = world.build_telling(&plan);
    assert!(ended.steps.iter().all(|done| done.result.is_some()), "{:?}", ended.steps);
    let mut ran = world.executor.take();
    ran.retain(|id| !id.starts_with('s'));
    ran.sort();
    assert_eq!(ran, ["c0", "c1", "j0", "j1", "v", "w"]);
    // Each step ends once.
    assert_eq!((ended.counts.executed, ended.counts.fresh, ended.counts.failed), (6, 4, 0));
    assert_eq!(finished(&events).len(), 10);
    // The next build finds everything here.
    assert_eq!(world.build(&plan).counts.fresh, 10);
}

#[test]
fn a_lost_output_that_comes_out_differently_ends_what_reads_it() {
    let world = elsewhere(1);
    let other = elsewhere(1);
    let key = other.build(&kernels(&other, 1)[..2]).step("c0").unwrap().key.unwrap();
    world.remote.as_ref().unwrap().rows.lock().unwrap().insert(key, gives(Digest::of(b"wrong")));
    let mut plan = kernels(&world, 1);
    plan.push(reads("v", StepKind::Bench, "c0"));
    let ended = world.build(&plan);
    let Outcome::Failed(why) = outcome(&ended, "v") else { panic!("{:?}", outcome(&ended, "v")) };
    assert!(why.contains("`c0`") && why.contains("did not give it again"), "{why}");
    // What ran is known here now, so the next build does not ask.
    let ended = world.build(&plan);
    assert!(ended.steps.iter().all(|done| done.result.is_some()), "{:?}", ended.steps);
}

#[test]
fn an_interrupted_build_waits_for_answers_and_starts_nothing() {
    let world = elsewhere(1);
    let plan = kernels(&world, 1);
    let interrupted = world.options.interrupted.clone();
    world.remote.as_ref().unwrap().rows.lock().unwrap().clear();
    let ended = build(world.graph(&plan), &world.options, &world.services(), &mut |event| {
        if matches!(event, Event::StepFinished(_)) {
            interrupted.store(true, Ordering::SeqCst);
        }
    });
    assert!(ended.interrupted && ended.step("c0").unwrap().result.is_none());
}

#[test]
fn a_step_that_was_to_run_again_ends_with_an_interrupted_build() {
    let world = elsewhere(1);
    let mut plan = kernels(&world, 1);
    plan.push(reads("v", StepKind::Bench, "c0"));
    let ended = build(world.graph(&plan), &world.options, &world.services(), &mut |event| {
        if matches!(event, Event::StepStarted { id, .. } if id == "v") {
            world.options.interrupted.store(true, Ordering::SeqCst);
        }
    });
    let v = ended.step("v").unwrap();
    assert!(v.stopped && v.interrupted && ended.interrupted, "{v:?}");
    assert_eq!(outcome(&ended, "c0"), &Outcome::Fresh, "it had ended before");
}

#[test]
fn a_dry_run_asks_and_runs_nothing() {
    let world = elsewhere(3);
    let mut plan = kernels(&world, 3);
    plan.push(source(&world, "s9", "9"));
    plan.push(reads("c9", StepKind::Compile, "s9"));
    // Pure steps have to run first: nothing that follows them is known.
    assert_eq!(world.dry_run(&plan).fresh, 0);
    let ended = world.build(&plan[12..13]);
    assert_eq!(ended.counts.executed, 1);
    for at in [0, 4, 8] {
        world.build(&plan[at..=at]);
    }
    let dry = world.dry_run(&plan);
    assert_eq!((dry.fresh, dry.will.len()), (3 + 1 + 6, 3 + 1), "{dry:?}");
}
