//! How far a kernel is from what its device can do: three gaps, what bounds it, and whether anything is left to gain (design, section 9, step 1).
//!
//! # Where a gap comes from
//!
//! | axis | counters | timing, where counters are missing |
//! |---|---|---|
//! | compute | 1 - the busiest of tensor pipe, fp32 pipe and multiprocessor / 100 | 1 - operations / (time x the unit's peak) |
//! | memory | 1 - throughput of device memory / 100 | 1 - compulsory bytes / (time x the memory's peak) |
//! | latency | the largest share of warps that wait for one cause / 100 | cannot be told |
//!
//! The formulas over counters are those of KernelFlow's roofline step, but for what is missing: there a missing metric counts as 0, so that a profile without
//! counters says that everything is to be gained. Here it is unknown, with its reason. The throughput of a multiprocessor takes in its pipes, so the compute gap is
//! known by it alone, and is not known by pipes alone: another might be busier. A share of waiting is known once the causes that no kind of GPU lacks are.
//!
//! A peak is the one that was measured on the device, where it was; else the theoretical one. What was measured of the memory is of reading and of copying: a kernel has
//! the ceiling of its own mix of both ([`super::ceiling`]).
//!
//! A gap is a distance for compute and memory, a severity for latency: 0 is good on every axis.

use std::collections::BTreeMap;

use super::ceiling::ceiling;
use super::derived::{Work, derived};
use super::stats::median;
use crate::model::Axis;
use crate::record::peaks::PeaksObserved;
use crate::record::profile::{Achieved, Gaps, Peaks, ProfileObserved, Roofline, RooflineCase, RooflineParams, Share};
use crate::record::timing::BenchObserved;

/// A kernel all of whose gaps are smaller has nothing left that is worth a round.
pub const NEAR_PEAK: f64 = 0.15;

/// What the busiest part of a multiprocessor may be, beside its own throughput.
const PIPES: [&str; 3] = ["pipe_tensor", "pipe_tensor_integer", "pipe_fp32"];
/// The throughput that takes in all pipes.
const BUSIEST: &str = "sm_throughput";
/// The throughput of device memory: the metric, and its twin as seen from the GPU.
const MEMORY: [&str; 2] = ["dram_throughput", "gpu_dram_throughput"];
/// The causes of waiting that have to be known.
const CAUSES: [&str; 3] = ["stall_long_scoreboard", "stall_short_scoreboard", "stall_barrier"];
/// What the names of all causes begin with.
const CAUSE: &str = "stall_";
/// How a gap's source is called.
const COUNTERS: &str = "counters";
const MEASURED: &str = "timing of measured peaks";
const THEORETICAL: &str = "timing of theoretical peaks";

/// The roofline of a variant from what was seen at each bench shape, by position, and what was measured of the device. It is that of the shape that takes longest.
pub fn roofline(
    params: &RooflineParams,
    bench: &BTreeMap<u32, BenchObserved>,
    profiles: &BTreeMap<u32, ProfileObserved>,
    measured: Option<&PeaksObserved>,
) -> Roofline {
    let time = |seen: &BenchObserved| {
        let series = if params.hot { seen.hot.as_ref() } else { seen.cold.as_ref() };
        series.map(|s| median(&s.samples_ns)).filter(|t| *t > 0.0)
    };
    let timed = params.cases.iter().filter_map(|(at, case)| Some((*at, case, time(bench.get(at)?)?)));
    // The first of those that take equally long.
    let longest = timed.reduce(|a, b| if b.2 > a.2 { b } else { a });
    let Some((shape, case, time_ns)) = longest else {
        let why = "no bench shape was timed".to_string();
        return Roofline { missing: Axis::ALL.map(|axis| (axis, why.clone())).into(), ..Roofline::default() };
    };
    let none = ProfileObserved::default();
    let profile = profiles.get(&shape);
    let seen = Seen {
        profile: profile.unwrap_or(&none),
        taken: profile.is_some(),
        peaks: Known { measured, stated: bench.get(&shape).and_then(|b| b.peaks.as_ref()) },
        case,
        seconds: time_ns * 1e-9,
    };
    let mut out = Roofline { shape: Some(shape), time_ns: Some(time_ns), ..Roofline::default() };
    for (at, case) in &params.cases {
        let seen = bench.get(at);
        if let Some(time) = seen.and_then(time) {
            let peaks = Known { measured, stated: seen.and_then(|b| b.peaks.as_ref()) };
            out.achieved.insert(*at, achieved(case, time, peaks));
        }
    }
    for axis in Axis::ALL {
        let found = match axis {
            Axis::Compute => seen.compute(),
            Axis::Memory => seen.memory(),
            Axis::Latency => seen.latency().map(|gap| (gap, COUNTERS)),
        };
        match found {
            Ok((gap, from)) => {
                *of(&mut out.gaps, axis) = Some(gap);
                out.from.insert(axis, from.into());
            }
            Err(why) => drop(out.missing.insert(axis, why)),
        }
    }
    out.bound = bound(&out.gaps);
    out.near_peak = Axis::ALL.into_iter().all(|axis| out.gaps.of(axis).is_some_and(|gap| gap < NEAR_PEAK));
    out.metrics = seen.profile.metrics.clone();
    out.metrics.retain(|_, value| value.is_finite());
    let work = Work { bytes: Some(case.bytes), written: Some(case.written), relative_error: None };
    out.metrics.extend(derived(&seen.profile.metrics, work));
    out
}

fn of(gaps: &mut Gaps, axis: Axis) -> &mut Option<f64> {
    match axis {
        Axis::Compute => &mut gaps.compute,
        Axis::Memory => &mut gaps.memory,
        Axis::Latency => &mut gaps.latency,
    }
}

/// What is known of what a device does at most.
#[derive(Clone, Copy)]
struct Known<'s> {
    measured: Option<&'s PeaksObserved>,
    stated: Option<&'s Peaks>,
}

impl Known<'_> {
    /// A peak, and whether it was measured.
    fn choose(measured: Option<f64>, stated: Option<f64>) -> Option<(f64, bool)> {
        let known = |peak: Option<f64>| peak.filter(|p| *p > 0.0 && p.is_finite());
        known(measured).map(|p| (p, true)).or(known(stated).map(|p| (p, false)))
    }

    /// Bytes a second of the memory for what a case reads and writes, whether that was measured, and of which share of written bytes.
    fn memory(self, case: &RooflineCase) -> Option<(f64, bool, Option<f64>)> {
        let measured = self.measured.and_then(|peaks| ceiling(peaks, case.written / case.bytes));
        let (peak, of) = Self::choose(measured.map(|m| m.0), self.stated.map(|p| p.dram_bytes_per_s))?;
        Some((peak, of, measured.map(|m| m.1).filter(|written| *written > 0.0)))
    }

    /// Operations a second of a unit.
    fn ops(self, unit: &str) -> Option<(f64, bool)> {
        let stated = self.stated.and_then(|p| p.ops_per_s.get(unit).copied());
        Self::choose(self.measured.and_then(|m| m.ops(unit)), stated)
    }

    fn is_silent(self) -> bool {
        self.measured.is_none() && self.stated.is_none()
    }
}

fn from(measured: bool) -> &'static str {
    if measured { MEASURED } else { THEORETICAL }
}

/// What is reached at a shape in so many nanoseconds.
fn achieved(case: &RooflineCase, time_ns: f64, peaks: Known<'_>) -> Achieved {
    let share =
        |rate: f64, (peak_per_s, measured)| Share { share: rate / peak_per_s, peak_per_s, measured, written: None };
    let bytes_per_s = case.bytes / time_ns * 1e9;
    let ops_per_s = case.flops.filter(|f| *f > 0.0).map(|f| f / time_ns * 1e9);
    Achieved {
        time_ns,
        bytes_per_s,
        memory: peaks
            .memory(case)
            .map(|(peak, measured, written)| Share { written, ..share(bytes_per_s, (peak, measured)) }),
        ops_per_s,
        unit: case.unit.clone(),
        compute: ops_per_s.and_then(|ops| Some(share(ops, peaks.ops(&case.unit)?))),
    }
}

/// Everything that is known of the shape.
struct Seen<'s> {
    profile: &'s ProfileObserved,
    taken: bool,
    peaks: Known<'s>,
    case: &'s RooflineCase,
    seconds: f64,
}

impl Seen<'_> {
    fn metric(&self, name: &str) -> Option<f64> {
        self.profile.metrics.get(name).copied().filter(|v| v.is_finite())
    }

    fn compute(&self) -> Result<(f64, &'static str), String> {
        if let Some(busiest) = self.metric(BUSIEST) {
            let busiest = PIPES.iter().filter_map(|pipe| self.metric(pipe)).fold(busiest, f64::max);
            return Ok((distance(busiest / 100.0), COUNTERS));
        }
        let counters = self.without(&[BUSIEST]);
        let unit = &self.case.unit;
        let flops = self.case.flops.filter(|f| *f > 0.0).ok_or("the operator states no arithmetic");
        let timed = flops.map_err(String::from).and_then(|flops| {
            if self.peaks.is_silent() {
                return Err("the device does not say its peaks".into());
            }
            let peak = self.peaks.ops(unit);
            let (peak, measured) = peak.ok_or_else(|| format!("the device does not say its peak for {unit}"))?;
            Ok((distance(flops / (self.seconds * peak)), from(measured)))
        });
        timed.map_err(|why| format!("{counters}; {why}"))
    }

    fn memory(&self) -> Result<(f64, &'static str), String> {
        if let Some(throughput) = MEMORY.iter().find_map(|name| self.metric(name)) {
            return Ok((distance(throughput / 100.0), COUNTERS));
        }
        match self.peaks.memory(self.case) {
            Some((peak, measured, _)) => Ok((distance(self.case.bytes / (self.seconds * peak)), from(measured))),
            None => Err(format!("{}; the device does not say its memory's peak", self.without(&[MEMORY[0]]))),
        }
    }

    fn latency(&self) -> Result<f64, String> {
        let missing: Vec<&str> = CAUSES.into_iter().filter(|cause| self.metric(cause).is_none()).collect();
        if !missing.is_empty() {
            return Err(self.without(&missing));
        }
        let causes = self.profile.metrics.iter().filter(|(name, value)| name.starts_with(CAUSE) && value.is_finite());
        Ok((causes.map(|(_, value)| *value).fold(0.0, f64::max) / 100.0).clamp(0.0, 1.0))
    }

    /// Why these metrics are not there.
    fn without(&self, metrics: &[&str]) -> String {
        match &self.profile.absent {
            Some(why) => why.to_string(),
            None if !self.taken => "no profile was taken".into(),
            None => {
                let why = |name: &&str| match self.profile.missing.get(*name) {
                    Some(why) => format!("no `{name}`: {why}"),
                    None => format!("no `{name}`"),
                };
                metrics.iter().map(why).collect::<Vec<_>>().join("; ")
            }
        }
    }
}

/// What is left of a peak of which so much is used. A device may run a little beyond its stated peak.
fn distance(used: f64) -> f64 {
    (1.0 - used).clamp(0.0, 1.0)
}

/// What bounds a kernel: the unit nearest to its peak, unless warps wait for a larger share of the time than it works. Of one unit alone it is known only where
/// that is at its peak.
fn bound(gaps: &Gaps) -> Option<Axis> {
    let (axis, gap) = match (gaps.compute, gaps.memory) {
        (Some(compute), Some(memory)) if compute < memory => (Axis::Compute, compute),
        (Some(_), Some(memory)) => (Axis::Memory, memory),
        (Some(compute), None) if compute < NEAR_PEAK => (Axis::Compute, compute),
        (None, Some(memory)) if memory < NEAR_PEAK => (Axis::Memory, memory),
        _ => return None,
    };
    match gaps.latency {
        Some(waiting) if waiting > 1.0 - gap => Some(Axis::Latency),
        _ => Some(axis),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Unknown;
    use crate::record::peaks::Rate;
    use crate::record::timing::Series;

    fn series(ns: f64) -> Option<Series> {
        Some(Series { samples_ns: vec![ns, ns * 1.01, ns * 0.99], dropped: 0 })
    }

    fn peaks() -> Peaks {
        Peaks { dram_bytes_per_s: 1e12, ops_per_s: [("f32".to_string(), 1e13)].into() }
    }

    fn bench(cold: f64, hot: f64, peaks: Option<Peaks>) -> BenchObserved {
        BenchObserved { cold: series(cold), hot: series(hot), verified: true, peaks, few: false, took_s: None }
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
            (Some(1e6), "f64", Some(peaks()), "does not say its peak for f64"),
            (Some(1e6), "f32", None, "does not say its peaks"),
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
        // 5e11 bytes a second of 8e11.
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
        assert!(alone.missing[&Axis::Compute].contains("does not say its peak for f32"));
        let nothing = of(Some(&PeaksObserved::default()), Some(peaks()));
        gaps(&nothing, [Some(0.975), Some(0.5), None]);
        assert_eq!(of(None, None).achieved[&0].memory, None);
        // Half of the bytes are written: where a copy was measured, it is the peak.
        let mut both = memory(8e11);
        both.dram_bytes_per_s.insert("copy".into(), rate(6.25e11));
        let found = of(Some(&both), Some(peaks()));
        gaps(&found, [Some(0.975), Some(0.2), None]);
        let reached = found.achieved[&0].memory.unwrap();
        assert!((reached.share - 0.8).abs() < 1e-9 && (reached.peak_per_s - 6.25e11).abs() < 1.0, "{reached:?}");
        assert_eq!((reached.measured, reached.written), (true, Some(0.5)));
    }
}
