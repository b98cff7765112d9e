//! What steps say of what they waited for, and who held it.

use serde_json::json;

use super::*;
use crate::testing::{node, with};
use kforge_types::record::event::{Wait, WaitReason};

fn slow(node: Node) -> Node {
    let id = node.id.clone();
    with(node, json!({ "sleep_ms": 20, "id": id }))
}

fn waits<'e>(finished: &[&'e StepFinished], id: &str) -> &'e [Wait] {
    &finished.iter().find(|step| step.id == id).unwrap_or_else(|| panic!("`{id}`")).waits
}

#[test]
fn steps_that_wait_for_one_slot_name_who_held_it() {
    let world = World::default();
    let plan = ["a", "b", "c"].map(|id| slow(node(id, StepKind::Compile, &[])));
    let (_, events) = world.build_telling(&plan);
    let finished = finished(&events);
    let order: Vec<&str> = finished.iter().map(|step| step.id.as_str()).collect();
    assert!(
        waits(&finished, order[0]).iter().all(|wait| wait.reason == WaitReason::Dependency),
        "it waits for no slot"
    );
    for (at, earlier) in [(1, 0), (2, 1)] {
        let all = waits(&finished, order[at]);
        let slot = all.iter().find(|wait| wait.reason == WaitReason::Processor).unwrap_or_else(|| panic!("{all:?}"));
        assert_eq!(slot.released_by.as_deref(), Some(order[earlier]), "{all:?}");
        assert!(slot.ms >= 20 * at as u64, "{all:?}");
        let started = finished[at].started_ms.unwrap();
        let total: u64 = all.iter().map(|wait| wait.ms).sum();
        assert!(total <= started + 1, "{all:?} before {started}");
    }
}

#[test]
fn a_step_that_waits_for_what_it_needs_names_the_step_that_ran_last() {
    let mut world = World::default();
    world.options.capacity.cpus = 4;
    // `same` has the key of `a`, so it ends with `a` and does not run; what needs it waits for `a`.
    let a = slow(node("a", StepKind::Compile, &[]));
    let same = Node { id: "same".into(), ..a.clone() };
    let after = node("after", StepKind::Inspect, &[("in", output("same", true))]);
    let (_, events) = world.build_telling(&[a, same, after]);
    let finished = finished(&events);
    let ran: Vec<&str> = finished.iter().filter(|s| s.outcome == Outcome::Executed).map(|s| s.id.as_str()).collect();
    assert_eq!(ran.len(), 2, "{ran:?}");
    let [wait] = waits(&finished, "after") else { panic!("{:?}", waits(&finished, "after")) };
    assert_eq!((wait.reason, wait.released_by.as_deref()), (WaitReason::Dependency, Some(ran[0])));
    assert!(wait.ms >= 20, "{wait:?}");
    let (_, events) = world.build_telling(&[node("fresh", StepKind::Compile, &[])]);
    assert!(waits(&super::finished(&events), "fresh").iter().all(|wait| wait.released_by.is_none()));
}

#[test]
fn a_step_that_waits_for_its_device_names_who_had_it() {
    let mut world = World::default();
    world.options.capacity.cpus = 4;
    let on = |id: &str| {
        let mut node = slow(node(id, StepKind::Compile, &[]));
        node.resources.device = Some(["GPU-0".to_string()].into());
        node
    };
    let (_, events) = world.build_telling(&[on("a"), on("b")]);
    let finished = finished(&events);
    let wait = waits(&finished, &finished[1].id).iter().find(|wait| wait.reason == WaitReason::Device).unwrap();
    assert_eq!(wait.released_by.as_deref(), Some(finished[0].id.as_str()));
}

#[test]
fn a_step_whose_result_is_known_waits_for_nothing() {
    let world = World::default();
    let plan = [node("a", StepKind::Compile, &[])];
    world.build(&plan);
    let (_, events) = world.build_telling(&plan);
    assert_eq!(waits(&finished(&events), "a"), []);
}
