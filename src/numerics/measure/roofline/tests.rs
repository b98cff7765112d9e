//! Gaps, bounds and floors from measurements, and what is unknown without them.

use super::*;
use kforge_types::record::Unknown;
use kforge_types::record::peaks::Rate;
use kforge_types::record::timing::Series;

fn series(ns: f64) -> Option<Series> {
    Some(Series { samples_ns: vec![ns, ns * 1.01, ns * 0.99], dropped: 0 })
}

fn peaks() -> Peaks {
    Peaks { dram_bytes_per_s: 1e12, ops_per_s: [("f32".to_string(), 1e13)].into() }
}

fn bench(cold: f64, hot: f64, peaks: Option<Peaks>) -> BenchObserved {
    BenchObserved { cold: series(cold), hot: series(hot), verified: true, peaks, ..BenchObserved::default() }
}

/// A shape of 1e6 operations and 2e6 bytes: at the peaks, 100 ns of arithmetic and 2000 ns of traffic.
fn params() -> RooflineParams {
    let case = RooflineCase { flops: Some(1e6), bytes: 2e6, written: 1e6, unit: "f32".into() };
    RooflineParams { cases: [(0, case)].into(), hot: false }
}

fn profile(metrics: &[(&str, f64)]) -> ProfileObserved {
    let metrics = metrics.iter().map(|(n, v)| (n.to_string(), *v)).collect();
    ProfileObserved { metrics, ..ProfileObserved::default() }
}

fn full() -> ProfileObserved {
    profile(&[
        ("sm_throughput", 8.0),
        ("pipe_tensor", 0.0),
        ("pipe_fp32", 5.0),
        ("dram_throughput", 43.0),
        ("stall_long_scoreboard", 61.0),
        ("stall_short_scoreboard", 1.0),
        ("stall_barrier", 3.0),
    ])
}

fn at(seen: Option<ProfileObserved>, peaks: Option<Peaks>) -> Roofline {
    let profiles = seen.map(|p| (0, p)).into_iter().collect();
    roofline(&params(), &[(0, bench(4000.0, 3000.0, peaks))].into(), &profiles, None)
}

#[track_caller]
fn gaps(roofline: &Roofline, wanted: [Option<f64>; 3]) {
    for (axis, wanted) in Axis::ALL.into_iter().zip(wanted) {
        let got = roofline.gaps.of(axis);
        let near = got.zip(wanted).is_some_and(|(a, b)| (a - b).abs() < 1e-9);
        assert!(near || got.is_none() && wanted.is_none(), "{axis:?}: {got:?} {:?}", roofline.missing);
        assert_eq!(roofline.from.contains_key(&axis), wanted.is_some());
        assert_eq!(roofline.missing.contains_key(&axis), wanted.is_none());
    }
}

#[test]
fn counters_give_all_three_gaps() {
    let found = at(Some(full()), Some(peaks()));
    gaps(&found, [Some(0.92), Some(0.57), Some(0.61)]);
    assert!(found.from.values().all(|from| from == "counters"));
    assert_eq!((found.bound, found.near_peak), (Some(Axis::Latency), false));
    assert_eq!((found.shape, found.time_ns), (Some(0), Some(4000.0)));
}

#[test]
fn the_busiest_pipe_counts_and_nothing_is_below_zero() {
    let with = |name: &str, value: f64| {
        let mut seen = full();
        seen.metrics.insert(name.into(), value);
        at(Some(seen), None)
    };
    gaps(&with("pipe_tensor", 70.0), [Some(0.3), Some(0.57), Some(0.61)]);
    gaps(&with("pipe_tensor_integer", 60.0), [Some(0.4), Some(0.57), Some(0.61)]);
    gaps(&with("pipe_fp32", 104.0), [Some(0.0), Some(0.57), Some(0.61)]);
    gaps(&with("dram_throughput", 101.0), [Some(0.92), Some(0.0), Some(0.61)]);
    gaps(&with("stall_wait", 130.0), [Some(0.92), Some(0.57), Some(1.0)]);
}

#[test]
fn without_counters_timing_tells_compute_and_memory_and_not_latency() {
    let refused = ProfileObserved { absent: Some(Unknown::NoCounters("ERR_NVGPUCTRPERM".into())), ..full() };
    let refused = ProfileObserved { metrics: BTreeMap::new(), ..refused };
    let found = at(Some(refused), Some(peaks()));
    gaps(&found, [Some(0.975), Some(0.5), None]);
    assert!(found.from.values().all(|from| from == "timing of theoretical peaks"));
    assert_eq!(found.missing[&Axis::Latency], "no counters: ERR_NVGPUCTRPERM");
    assert_eq!((found.bound, found.near_peak), (Some(Axis::Memory), false));
    assert_eq!(at(None, Some(peaks())).missing[&Axis::Latency], "no profile was taken");
}

#[test]
fn one_missing_metric_is_unknown_and_neither_zero_nor_one() {
    let without = |names: &[&str], peaks: Option<Peaks>| {
        let mut seen = full();
        seen.metrics.retain(|name, _| !names.contains(&name.as_str()));
        seen.missing = names.iter().map(|n| (n.to_string(), "not in this version".into())).collect();
        at(Some(seen), peaks)
    };
    gaps(&without(&["sm_throughput"], None), [None, Some(0.57), Some(0.61)]);
    gaps(&without(&["sm_throughput"], Some(peaks())), [Some(0.975), Some(0.57), Some(0.61)]);
    gaps(&without(&["pipe_fp32", "pipe_tensor"], None), [Some(0.92), Some(0.57), Some(0.61)]);
    let found = without(&["dram_throughput", "stall_barrier"], None);
    gaps(&found, [Some(0.92), None, None]);
    assert_eq!(found.missing[&Axis::Latency], "no `stall_barrier`: not in this version");
    assert!(found.missing[&Axis::Memory].contains("no `dram_throughput`: not in this version"));
    assert_eq!(found.bound, None, "memory might be nearer to its limit");
    let mut twin = full();
    let value = twin.metrics.remove("dram_throughput").unwrap();
    twin.metrics.insert("gpu_dram_throughput".into(), value);
    gaps(&at(Some(twin), None), [Some(0.92), Some(0.57), Some(0.61)]);
    let mut odd = full();
    odd.metrics.insert("sm_throughput".into(), f64::NAN);
    let found = at(Some(odd), None);
    gaps(&found, [None, Some(0.57), Some(0.61)]);
    assert!(!found.metrics.contains_key("sm_throughput"));
}

#[test]
fn arithmetic_or_a_peak_that_nobody_states_is_no_gap() {
    let of = |flops, unit: &str, peaks| {
        let mut params = params();
        let case = params.cases.get_mut(&0).unwrap();
        (case.flops, case.unit) = (flops, unit.into());
        roofline(&params, &[(0, bench(4000.0, 3000.0, peaks))].into(), &BTreeMap::new(), None)
    };
    for (flops, unit, peaks, why) in [
        (None, "f32", Some(peaks()), "states no arithmetic"),
        (Some(0.0), "f32", Some(peaks()), "states no arithmetic"),
        (Some(1e6), "f64", Some(peaks()), "does not report its peak for f64"),
        (Some(1e6), "f32", None, "does not report its peaks"),
    ] {
        let found = of(flops, unit, peaks);
        assert!(found.gaps.compute.is_none() && found.missing[&Axis::Compute].contains(why), "{found:?}");
    }
}

#[test]
fn the_shape_that_takes_longest_counts_cold_or_hot_as_asked() {
    let mut params = params();
    let case = params.cases[&0].clone();
    params.cases.insert(3, RooflineCase { bytes: 4e6, ..case });
    let benches = [(0, bench(9000.0, 3000.0, Some(peaks()))), (3, bench(8000.0, 5000.0, Some(peaks())))].into();
    let cold = roofline(&params, &benches, &BTreeMap::new(), None);
    params.hot = true;
    let hot = roofline(&params, &benches, &BTreeMap::new(), None);
    assert_eq!((cold.shape, cold.time_ns, hot.shape, hot.time_ns), (Some(0), Some(9000.0), Some(3), Some(5000.0)));
    gaps(&hot, [Some(0.98), Some(0.2), None]);
    let nothing = roofline(&params, &BTreeMap::new(), &[(0, full())].into(), None);
    gaps(&nothing, [None, None, None]);
    assert_eq!((nothing.shape, nothing.bound, nothing.near_peak), (None, None, false));
}

#[test]
fn near_the_peak_all_three_are_known_and_small() {
    let seen = |compute: f64, memory: f64, waiting: f64| {
        let mut seen = full();
        seen.metrics.extend([
            ("sm_throughput".to_string(), compute),
            ("dram_throughput".to_string(), memory),
            ("stall_long_scoreboard".to_string(), waiting),
        ]);
        seen
    };
    assert!(at(Some(seen(90.0, 91.0, 14.0)), None).near_peak);
    assert!(!at(Some(seen(90.0, 85.0, 14.0)), None).near_peak, "0.15 is not under it");
    let mut unknown = seen(90.0, 91.0, 14.0);
    unknown.metrics.remove("stall_long_scoreboard");
    assert!(!at(Some(unknown), None).near_peak);
    assert_eq!(at(Some(seen(30.0, 91.0, 80.0)), None).bound, Some(Axis::Memory));
    assert_eq!(at(Some(seen(95.0, 91.0, 10.0)), None).bound, Some(Axis::Compute));
    assert_eq!(bound(&Gaps { memory: Some(0.1), ..Gaps::default() }), Some(Axis::Memory));
    assert_eq!(bound(&Gaps { memory: Some(0.2), ..Gaps::default() }), None);
}

#[test]
fn derived_metrics_come_with_the_measured_ones() {
    let mut seen = full();
    seen.metrics.extend([("dram_read".to_string(), 3e6), ("dram_write".to_string(), 2e6)]);
    let found = at(Some(seen), None);
    assert_eq!((found.metrics["traffic_excess"], found.metrics["write_excess"]), (2.5, 2.0));
    assert_eq!(found.metrics["pipe_fp32"], 5.0);
}

#[test]
fn measured_peaks_come_before_theoretical_ones_and_each_says_which_it_is() {
    let rate = |per_s| Rate { per_s, sustained_per_s: per_s, with: "x".into() };
    let memory = |per_s| PeaksObserved {
        dram_bytes_per_s: [("read".to_string(), rate(per_s))].into(),
        ..PeaksObserved::default()
    };
    let of = |measured: Option<&PeaksObserved>, stated| {
        roofline(&params(), &[(0, bench(4000.0, 3000.0, stated))].into(), &BTreeMap::new(), measured)
    };
    // 5e11 of 8e11 bytes per second.
    let found = of(Some(&memory(8e11)), Some(peaks()));
    gaps(&found, [Some(0.975), Some(0.375), None]);
    assert_eq!(found.from[&Axis::Memory], "timing of measured peaks");
    assert_eq!(found.from[&Axis::Compute], "timing of theoretical peaks");
    let reached = &found.achieved[&0];
    assert_eq!((reached.time_ns, reached.bytes_per_s, reached.ops_per_s), (4000.0, 5e11, Some(2.5e11)));
    let shares = (reached.memory.unwrap(), reached.compute.unwrap());
    assert!((shares.0.share - 0.625).abs() < 1e-9 && shares.0.measured, "{shares:?}");
    assert!((shares.1.share - 0.025).abs() < 1e-9 && !shares.1.measured, "{shares:?}");
    let alone = of(Some(&memory(8e11)), None);
    gaps(&alone, [None, Some(0.375), None]);
    assert!(alone.missing[&Axis::Compute].contains("does not report its peak for f32"));
    let nothing = of(Some(&PeaksObserved::default()), Some(peaks()));
    gaps(&nothing, [Some(0.975), Some(0.5), None]);
    assert_eq!(of(None, None).achieved[&0].memory, None);
    // Half of the bytes are written: if a copy was measured, it is the peak.
    let mut both = memory(8e11);
    both.dram_bytes_per_s.insert("copy".into(), rate(6.25e11));
    let found = of(Some(&both), Some(peaks()));
    gaps(&found, [Some(0.975), Some(0.2), None]);
    let reached = found.achieved[&0].memory.unwrap();
    assert!((reached.share - 0.8).abs() < 1e-9 && (reached.peak_per_s - 6.25e11).abs() < 1.0, "{reached:?}");
    assert_eq!((reached.measured, reached.written), (true, Some(0.5)));
}
