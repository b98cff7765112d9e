//! What rounds decide: which methods are chosen and which are passed over, what is settled, when rounds end, and which variants answer.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use kforge_types::model::{Axis, Kernel, TuneValue, Variant};
use kforge_types::record::params::{Attribution, Fate};
use kforge_types::record::profile::{Gaps, Roofline};
use kforge_types::record::round::{Decision, OpenMethod, RoundParams, Slots};

/// A method that may be added.
fn open(id: &str) -> OpenMethod {
    OpenMethod { id: id.into(), axis: Axis::of(id).unwrap(), on: false, possible: true }
}

fn on(id: &str) -> OpenMethod {
    OpenMethod { on: true, ..open(id) }
}

fn params(methods: Vec<OpenMethod>) -> RoundParams {
    let (facts, tried) = (BTreeMap::new(), vec![]);
    RoundParams { round: 1, arch: "sm_90a".into(), from_nothing: false, facts, methods, tried }
}

fn with(mut params: RoundParams, facts: &[(&str, bool)]) -> RoundParams {
    params.facts = facts.iter().map(|(f, holds)| (f.to_string(), *holds)).collect();
    params
}

fn seen(compute: f64, memory: f64, latency: f64, metrics: &[(&str, f64)]) -> Roofline {
    let gaps = Gaps { compute: Some(compute), memory: Some(memory), latency: Some(latency) };
    Roofline { gaps, metrics: metrics.iter().map(|(n, v)| (n.to_string(), *v)).collect(), ..Roofline::default() }
}

fn chosen(decision: &Decision) -> Vec<&str> {
    decision.methods.iter().map(|m| m.id.as_str()).collect()
}

/// The other metrics of the trigger of wide accesses, with values that do not support it.
const REST: [(&str, f64); 2] = [("stall_lg_throttle", 0.0), ("dram_throughput", 90.0)];

#[track_caller]
fn passed<'d>(decision: &'d Decision, id: &str) -> &'d str {
    let found = decision.passed.iter().find(|p| p.id == id);
    &found.unwrap_or_else(|| panic!("{id} is not among {:?}", decision.passed)).because
}

fn attribution(fate: Fate, because: &str) -> Attribution {
    Attribution { fate, because: because.into(), detail: None, saving: None }
}

fn decided(params: &RoundParams, roofline: &Roofline) -> Decision {
    decide(params, Some(roofline), &BTreeMap::new(), None)
}

#[test]
fn one_slot_goes_by_priority_among_those_that_metrics_ask_for() {
    let methods = ["memory.coalesced_access", "memory.tiling_smem", "memory.vectorized_access", "memory.data_layout"];
    let params = params(methods.map(open).to_vec());
    // Memory and compute share the slots. Compute has no method, so memory gets two: the first by priority among the supported ones.
    let roofline =
        seen(0.01, 0.3, 0.3, &[("l1_hit", 90.0), ("l2_hit", 65.0), ("stall_mio_throttle", 19.0), REST[0], REST[1]]);
    let slots = slots(&roofline.gaps).0;
    assert_eq!(slots, Slots { compute: 0, memory: 2, latency: 1 });
    let one = Roofline { gaps: Gaps { memory: Some(0.2), latency: Some(0.9), ..roofline.gaps }, ..roofline.clone() };
    assert_eq!(super::slots(&one.gaps).0, Slots { compute: 0, memory: 1, latency: 2 });
    let decision = decided(&params, &one);
    // Its own slot, and one that latency cannot use.
    assert_eq!(chosen(&decision), ["memory.tiling_smem", "memory.vectorized_access"]);
    assert_eq!(decision.methods[0].strength, Some(0.125));
    assert!(decision.methods[0].because.contains("l2_hit below 70"), "{}", decision.methods[0].because);
    assert_eq!(
        passed(&decision, "memory.coalesced_access"),
        "the metrics do not ask for it: l1_hit below 80, most at 30"
    );
    assert!(decision.passed.iter().all(|p| p.id != "memory.data_layout"), "it stood behind them");
    assert_eq!(decision.stop, None);
}

#[test]
fn two_slots_go_to_the_two_strongest_triggers() {
    let params =
        params(["memory.coalesced_access", "memory.tiling_smem", "memory.vectorized_access"].map(open).to_vec());
    let roofline =
        seen(0.01, 0.9, 0.01, &[("l1_hit", 75.0), ("l2_hit", 50.0), ("stall_mio_throttle", 19.0), REST[0], REST[1]]);
    assert_eq!(slots(&roofline.gaps).0.memory, 2);
    let decision = decided(&params, &roofline);
    assert_eq!(chosen(&decision), ["memory.tiling_smem", "memory.vectorized_access"], "in the order of priorities");
    let why = passed(&decision, "memory.coalesced_access");
    assert_eq!(why, "the metrics ask for other methods of its axis instead (0.10)");
}

#[test]
fn what_metrics_cannot_tell_may_be_chosen_after_what_they_ask_for_and_is_marked() {
    let params =
        params(["memory.coalesced_access", "memory.vectorized_access", "memory.cache_and_readonly"].map(open).to_vec());
    let one = |metrics| decided(&params, &seen(0.3, 0.01, 0.2, metrics));
    let decision = decided(&params, &seen(0.01, 0.9, 0.01, &[("stall_mio_throttle", 10.0), REST[0], REST[1]]));
    assert_eq!(chosen(&decision), ["memory.coalesced_access", "memory.vectorized_access"]);
    assert_eq!((decision.methods[0].strength, decision.methods[1].strength.is_some()), (None, true));
    assert!(decision.methods[0].because.contains("unknown: no `l1_hit`"), "{}", decision.methods[0].because);
    assert_eq!(
        chosen(&one(&[("stall_mio_throttle", 2.0), REST[0], REST[1], ("l1_hit", 95.0)])),
        ["memory.cache_and_readonly"]
    );
    assert!(
        one(&[("stall_mio_throttle", 2.0), REST[0], REST[1], ("l1_hit", 95.0)]).methods[0]
            .because
            .contains("no metric supports or opposes it")
    );
}

#[test]
fn without_gaps_every_axis_has_a_slot_and_the_round_is_degraded() {
    let methods = ["compute.loop_unroll", "memory.coalesced_access", "memory.tiling_smem", "latency.persistent_kernel"];
    let decision = decide(&params(methods.map(open).to_vec()), None, &BTreeMap::new(), None);
    assert!(decision.degraded);
    assert_eq!(decision.budget, Slots { compute: 1, memory: 1, latency: 1 });
    assert_eq!(chosen(&decision), ["compute.loop_unroll", "memory.coalesced_access", "latency.persistent_kernel"]);
}

#[test]
fn architecture_and_preconditions_decide_and_what_is_not_known_is_said() {
    let methods =
        ["memory.kernel_fusion", "memory.vectorized_access", "memory.tma_im2col_implicit_conv"].map(open).to_vec();
    let metrics = [("traffic_excess", 2.0), ("stall_mio_throttle", 20.0), REST[0], REST[1]];
    let roofline = seen(0.01, 0.9, 0.01, &metrics);
    let decision =
        decided(&with(params(methods.clone()), &[("several_launches", false), ("convolution", true)]), &roofline);
    assert_eq!(chosen(&decision), ["memory.vectorized_access", "memory.tma_im2col_implicit_conv"]);
    let unknown = &decision.methods[0].because;
    assert!(unknown.contains("it is unknown whether every tensor is contiguous"), "{unknown}");
    assert_eq!(passed(&decision, "memory.kernel_fusion"), "it does not hold that the kernel has several launches");
    let old = RoundParams { arch: "sm_80".into(), ..with(params(methods.clone()), &[("convolution", true)]) };
    let decision = decided(&old, &roofline);
    assert_eq!(chosen(&decision), ["memory.kernel_fusion", "memory.vectorized_access"]);
    let only = params(vec![open("memory.tma_im2col_implicit_conv")]);
    let decision = decided(&RoundParams { arch: "sm_80".into(), ..only.clone() }, &roofline);
    assert_eq!(passed(&decision, "memory.tma_im2col_implicit_conv"), "`sm_80` is older than sm_90");
    let decision = decided(&RoundParams { arch: "cpu".into(), ..only }, &roofline);
    assert_eq!(passed(&decision, "memory.tma_im2col_implicit_conv"), "the emulator has no TMA");
    let cpu = RoundParams { arch: "cpu".into(), ..params(methods) };
    assert_eq!(chosen(&decided(&cpu, &Roofline::default())), ["memory.kernel_fusion", "memory.vectorized_access"]);
}

#[test]
fn what_the_champion_has_and_what_nobody_can_add_is_passed_over() {
    let no = OpenMethod { possible: false, ..open("memory.tiling_smem") };
    let params = params(vec![on("memory.coalesced_access"), no, open("memory.vectorized_access")]);
    let decision = decided(&params, &Roofline::default());
    assert_eq!(chosen(&decision), ["memory.vectorized_access"]);
    assert_eq!(passed(&decision, "memory.coalesced_access"), "the champion has it");
    assert_eq!(passed(&decision, "memory.tiling_smem"), "no agent of this run can add it");
}

#[test]
fn methods_that_exclude_each_other_are_not_tried_together() {
    let facts = [("shared_memory", true)];
    let both = vec![open("memory.async_copy"), open("memory.register_pressure"), open("latency.async_pipeline")];
    let metrics = [("stall_long_scoreboard", 40.0), ("register_limit", 0.5)];
    let more = |memory: f64, latency: f64| {
        decided(&with(params(both.clone()), &facts), &seen(0.01, memory, latency, &metrics))
    };
    let memory = more(0.6, 0.5);
    assert_eq!(chosen(&memory), ["memory.async_copy", "memory.register_pressure"], "the larger gap first");
    assert_eq!(passed(&memory, "latency.async_pipeline"), "not together with `memory.async_copy`");
    let latency = more(0.5, 0.6);
    assert_eq!(chosen(&latency), ["memory.register_pressure", "latency.async_pipeline"]);
    assert_eq!(passed(&latency, "memory.async_copy"), "not together with `latency.async_pipeline`");
    let had = with(params(vec![on("latency.async_pipeline"), open("memory.async_copy")]), &facts);
    let decision = decided(&had, &seen(0.01, 0.9, 0.01, &metrics));
    assert_eq!(
        passed(&decision, "memory.async_copy"),
        "not together with `latency.async_pipeline`, which the champion has"
    );
    assert!(decision.stop.is_some());
    // A method that gains nothing does not exclude others.
    for (fate, takes) in [(Fate::Ineffective, true), (Fate::Effective, false), (Fate::Inconclusive, false)] {
        let buys = [("latency.async_pipeline".to_string(), attribution(fate, "why"))].into();
        let decision = decide(&had, Some(&seen(0.01, 0.9, 0.01, &metrics)), &buys, None);
        assert_eq!(decision.methods.first().is_some_and(|m| m.id == "memory.async_copy"), takes, "{fate:?}");
        let says = "in place of `latency.async_pipeline`, which gained the champion nothing";
        assert_eq!(decision.methods.first().is_some_and(|m| m.because.contains(says)), takes, "{decision:?}");
    }
}

#[test]
fn a_slot_that_its_axis_cannot_use_goes_to_the_next_largest_gap_that_can() {
    let methods =
        ["memory.coalesced_access", "memory.tiling_smem", "memory.vectorized_access", "latency.persistent_kernel"];
    let of = |methods: &[&str]| {
        let params = params(methods.iter().map(|m| open(m)).collect());
        let decision = decided(&params, &seen(0.92, 0.57, 0.61, &[]));
        assert_eq!(decision.budget, Slots { compute: 2, memory: 0, latency: 1 });
        decision.methods.into_iter().map(|m| m.id).collect::<Vec<_>>()
    };
    // Compute has no method, and latency, which is next, has no second method for one of its two slots.
    assert_eq!(of(&methods), ["memory.coalesced_access", "memory.tiling_smem", "latency.persistent_kernel"]);
    assert_eq!(of(&methods[..3]), ["memory.coalesced_access", "memory.tiling_smem"], "at most two an axis");
    assert_eq!(of(&[methods[3], "latency.stream_event"]), [methods[3], "latency.stream_event"]);
}

#[test]
fn a_method_of_the_kernel_s_own_stands_after_those_of_the_registry() {
    let params = params(vec![open("memory.aaa"), open("memory.cache_and_readonly"), open("memory.coalesced_access")]);
    let decision = decided(&params, &seen(0.01, 0.9, 0.01, &[]));
    assert_eq!(chosen(&decision), ["memory.coalesced_access", "memory.cache_and_readonly"]);
    let own = RoundParams { methods: vec![open("memory.aaa")], ..params };
    let decision = decided(&own, &seen(0.01, 0.9, 0.01, &[]));
    assert_eq!((chosen(&decision), decision.methods[0].strength), (vec!["memory.aaa"], None));
    assert!(decision.methods[0].because.starts_with("a method that the kernel declares itself"));
}

#[test]
fn what_is_settled_is_settled_and_what_failed_to_materialise_comes_back_once() {
    let ids = ["memory.coalesced_access", "memory.tiling_smem", "memory.vectorized_access"];
    let before = Decision {
        settled: decide(
            &params(vec![]),
            None,
            &[
                (ids[0].to_string(), attribution(Fate::Effective, "saves at least 9.0 %")),
                (ids[1].to_string(), attribution(Fate::Ineffective, "the lower bound is within the noise")),
                (ids[2].to_string(), attribution(Fate::ImplementationFailed, "the machine code does not show it")),
            ]
            .into(),
            None,
        )
        .settled,
        ..decided(&params(vec![]), &Roofline::default())
    };
    let round = |round: u32, tried: &[&[&str]]| {
        let tried = tried.iter().map(|t| t.iter().map(|m| m.to_string()).collect()).collect();
        let params = RoundParams { round, tried, ..params(ids.map(open).to_vec()) };
        decide(&params, None, &BTreeMap::new(), Some(&before))
    };
    let second = round(2, &[&ids]);
    assert_eq!(chosen(&second), [ids[2]]);
    let because = &second.methods[0].because;
    let said = "its implementation failed in round 1: the machine code does not show it; it is tried again once";
    assert!(because.ends_with(said), "{because}");
    assert_eq!(passed(&second, ids[0]), "settled: effective, saves at least 9.0 %");
    assert_eq!(passed(&second, ids[1]), "settled: ineffective, the lower bound is within the noise");
    let third = round(3, &[&ids, &[ids[2]]]);
    assert!(chosen(&third).is_empty());
    assert!(passed(&third, ids[2]).contains("in rounds 1 and 2: ") && passed(&third, ids[2]).ends_with("once already"));
    let stop = third.stop.as_deref().unwrap();
    assert_eq!(stop, "no method is left: each of the 3 that could be added was passed over");
}

#[test]
fn what_failed_may_come_back_although_the_champion_has_its_switch_on() {
    let failed = [("memory.tiling_smem".to_string(), attribution(Fate::ImplementationFailed, "not shown"))].into();
    let decision = decide(&params(vec![on("memory.tiling_smem")]), None, &failed, None);
    assert_eq!(chosen(&decision), ["memory.tiling_smem"]);
    assert_eq!(decision.settled["memory.tiling_smem"].round, 0);
}

#[test]
fn what_no_champion_has_comes_back_once_last_and_alone() {
    let ids = ["memory.coalesced_access", "memory.tiling_smem", "memory.vectorized_access"];
    let tried = |rounds: &[&str]| RoundParams {
        round: 9,
        tried: rounds.iter().map(|m| vec![m.to_string()]).collect(),
        ..params(ids.map(open).to_vec())
    };
    let roofline = seen(0.01, 0.9, 0.01, &[]);
    assert_eq!(chosen(&decided(&tried(&[ids[0]]), &roofline)), [ids[1], ids[2]]);
    let decision = decided(&tried(&[ids[0], ids[1]]), &roofline);
    assert_eq!(chosen(&decision), [ids[2]], "what was not tried yet stands without what may have spoiled a round");
    assert_eq!(passed(&decision, ids[0]), "it was tried before, and other methods were not");
    let decision = decided(&tried(&ids), &roofline);
    assert_eq!(chosen(&decision), [ids[0]], "by priority among those that come back, and one alone");
    assert!(decision.methods[0].because.ends_with("tried in round 1, and no champion has it; it is tried again once"));
    let decision = decided(&tried(&[ids[0], ids[0], ids[1], ids[2]]), &roofline);
    assert_eq!(chosen(&decision), [ids[1]]);
    assert!(passed(&decision, ids[0]).ends_with("it was tried again once already"));
    assert_eq!(chosen(&decided(&tried(&[ids[0], ids[0], ids[1], ids[2], ids[1]]), &roofline)), [ids[2]]);
    let undecided = [(ids[0].to_string(), attribution(Fate::Inconclusive, "not timed in pairs"))].into();
    let decision = decide(&tried(&[ids[0]]), Some(&roofline), &undecided, None);
    assert_eq!(chosen(&decision), [ids[1], ids[2]], "and so does what was left undecided");
}

#[test]
fn what_is_settled_cumulates_and_a_doubt_does_not_unsettle() {
    let id = "memory.tiling_smem".to_string();
    let at = |round: u32, fate: Fate, before: Option<&Decision>| {
        let params = RoundParams { round, ..params(vec![]) };
        decide(&params, None, &[(id.clone(), attribution(fate, "why"))].into(), before)
    };
    let first = at(1, Fate::Inconclusive, None);
    assert_eq!((first.settled[&id].round, first.settled[&id].fate), (0, Fate::Inconclusive));
    let second = at(2, Fate::Ineffective, Some(&first));
    assert_eq!((second.settled[&id].round, second.settled[&id].fate), (1, Fate::Ineffective));
    let third = at(3, Fate::Ineffective, Some(&second));
    assert_eq!(third.settled, second.settled, "the same champion settles nothing anew");
    assert_eq!(at(3, Fate::Inconclusive, Some(&second)).settled, second.settled);
    let other = decide(&RoundParams { round: 4, ..params(vec![]) }, None, &BTreeMap::new(), Some(&third));
    assert_eq!(other.settled, second.settled, "it is kept when the champion has it no longer");
}

#[test]
fn near_the_peak_and_without_methods_the_loop_stops_and_says_why() {
    let near = Roofline { near_peak: true, ..seen(0.1, 0.12, 0.14, &[]) };
    let decision = decided(&params(vec![open("memory.tiling_smem")]), &near);
    assert_eq!(decision.stop.as_deref(), Some("near the peak: used compute 90 %, memory 88 %; 14 % of warps wait"));
    assert!(decision.methods.is_empty());
    assert_eq!(decision.budget, Slots::default());
    let decision = decided(&params(vec![on("memory.tiling_smem")]), &seen(0.5, 0.5, 0.5, &[]));
    let stop = decision.stop.unwrap();
    assert!(stop.starts_with("no method is left: each of the 1"), "{stop}");
    let none = decided(&params(vec![]), &seen(0.5, 0.5, 0.5, &[]));
    assert!(none.stop.unwrap().ends_with("can add another"));
}

const MANIFEST: &str = r#"
[package]
name = "p"
[targets.h]
arch = "sm_90a"
[operator.o]
dims = ["n"]
inputs.a = { dtype = "f32", shape = ["n"] }
outputs.c = { dtype = "f32", shape = ["n"] }
reference = { builtin = "elementwise", c = "a + 1" }
[operator.o.shapes]
s = { n = 64 }
[kernel.k]
operator = "o"
language = "cuda"
source = "k.cu"
tune.BLOCK = [32, 64, 128]
tune.VEC = [1, 2, 4]
tune.STAGES = [1, 2]
tune.HINT = [false, true]
tune.where = ["VEC < 4 or STAGES == 1"]
methods."memory.vectorized_access" = { off = { VEC = 1 } }
methods."latency.async_pipeline" = { off = { STAGES = 1 } }
methods."memory.own" = { off = { flags = ["-DPLAIN"] } }
[[kernel.k.launch]]
entry = "f"
grid = [1]
block = ["BLOCK"]
args = ["a", "c"]
"#;

fn space() -> (Kernel, Vec<Variant>) {
    let file =
        std::sync::Arc::new(kforge_foundation::base::SourceFile { name: "kernel.toml".into(), text: MANIFEST.into() });
    let (manifest, wrong) = kforge_types::model::parse(&file);
    let (package, more) = kforge_types::model::inherit(&manifest.unwrap_or_else(|| panic!("{wrong:?}")), None);
    let package = package.unwrap_or_else(|| panic!("{wrong:?} {more:?}"));
    let kernel = package.kernels[0].clone();
    let variants = kernel.variants(&package.targets["h"], &package.operators[0].choices()[0]).unwrap();
    (kernel, variants)
}

fn values(block: i64, vec: i64, stages: i64, hint: bool) -> BTreeMap<String, TuneValue> {
    let int = |name: &str, value| (name.to_string(), TuneValue::Int(value));
    let hint = ("HINT".to_string(), TuneValue::Bool(hint));
    [int("BLOCK", block), int("VEC", vec), int("STAGES", stages), hint].into()
}

fn answered(chosen: &[&str], wanted: usize, tried: &[BTreeMap<String, TuneValue>]) -> Branches {
    let (kernel, space) = space();
    let chosen: Vec<String> = chosen.iter().map(|c| c.to_string()).collect();
    let tried: BTreeSet<_> = tried.iter().cloned().collect();
    branches(&kernel, &space, &values(64, 1, 1, false), &chosen, wanted, &tried)
}

#[test]
fn branches_begin_near_the_parent_and_spread_over_what_matters() {
    let found = answered(&["memory.vectorized_access"], 4, &[]);
    assert!(found.left_out.is_empty());
    let wanted = [values(64, 2, 1, false), values(32, 4, 1, false), values(128, 2, 1, false), values(64, 4, 1, false)];
    assert_eq!(found.values, wanted);
    assert_eq!(found, answered(&["memory.vectorized_access"], 4, &[]), "the same every time");
}

#[test]
fn what_was_tried_is_not_tried_again_and_fewer_come_where_there_are_no_more() {
    let all = answered(&["memory.vectorized_access"], 100, &[]);
    let distinct: BTreeSet<_> = all.values.iter().cloned().collect();
    // Three blocks, with or without the hint: VEC=2 with either number of stages, VEC=4 with one.
    assert_eq!((all.values.len(), distinct.len()), (18, 18));
    assert!(all.values.iter().all(|v| v["VEC"] != TuneValue::Int(1)));
    let rest = answered(&["memory.vectorized_access"], 100, &all.values[..16]);
    assert_eq!(rest.values.len(), 2);
    assert!(rest.values.iter().all(|v| !all.values[..16].contains(v)));
}

#[test]
fn all_chosen_methods_are_on_or_it_is_said_which_are_not() {
    let both = answered(&["memory.vectorized_access", "latency.async_pipeline"], 100, &[]);
    assert!(both.left_out.is_empty());
    assert!(both.values.iter().all(|v| v["VEC"] == TuneValue::Int(2) && v["STAGES"] == TuneValue::Int(2)));
    assert_eq!(both.values.len(), 6);
    let more = answered(&["memory.vectorized_access", "memory.unheard_of"], 2, &[]);
    assert_eq!((more.left_out.as_slice(), more.values.len()), (&["memory.unheard_of".to_string()][..], 2));
    let chosen = ["memory.vectorized_access", "memory.unheard_of"].map(String::from);
    assert_eq!(more.tries(&chosen), chosen[..1], "what no branch has on was not tried");
    let none = answered(&["memory.unheard_of"], 2, &[]);
    assert_eq!((none.left_out, none.values.len()), (vec!["memory.unheard_of".to_string()], 0));
}

#[test]
fn where_no_variant_has_all_the_first_chosen_comes_first() {
    let (kernel, space) = space();
    let without = |v: &Variant| v.values["VEC"] == TuneValue::Int(1) || v.values["STAGES"] == TuneValue::Int(1);
    let apart: Vec<Variant> = space.into_iter().filter(without).collect();
    let of = |chosen: [&str; 2]| {
        let chosen = chosen.map(String::from);
        branches(&kernel, &apart, &values(64, 1, 1, false), &chosen, 100, &BTreeSet::new())
    };
    let first = of(["latency.async_pipeline", "memory.vectorized_access"]);
    assert_eq!(first.left_out, ["memory.vectorized_access"]);
    assert!(!first.values.is_empty() && first.values.iter().all(|v| v["STAGES"] == TuneValue::Int(2)));
    let other = of(["memory.vectorized_access", "latency.async_pipeline"]);
    assert_eq!(other.left_out, ["latency.async_pipeline"]);
    assert!(other.values.iter().all(|v| v["STAGES"] == TuneValue::Int(1)));
}

#[test]
fn where_all_that_have_most_were_tried_those_that_have_fewer_are_next() {
    let both = answered(&["memory.vectorized_access", "latency.async_pipeline"], 100, &[]).values;
    let rest = answered(&["memory.vectorized_access", "latency.async_pipeline"], 100, &both);
    assert_eq!(rest.left_out, ["latency.async_pipeline"], "the first chosen before the other");
    assert!(!rest.values.is_empty() && rest.values.iter().all(|v| v["STAGES"] == TuneValue::Int(1)));
}

#[test]
fn before_there_is_a_kernel_no_method_is_asked_for_and_nothing_stops() {
    let params = RoundParams { from_nothing: true, ..params(vec![open("memory.vectorized_access")]) };
    let decision = decide(&params, None, &BTreeMap::new(), None);
    assert_eq!((decision.methods.as_slice(), decision.stop), (&[][..], None));
}
