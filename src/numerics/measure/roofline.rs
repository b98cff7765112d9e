//! The roofline: how far a kernel is from the limits of its device, in three gaps, what bounds it, and whether anything is left to
//! gain (docs/design.md, section 9.1).
//!
//! # Where a gap comes from
//!
//! | axis | counters | timing, if counters are missing |
//! |---|---|---|
//! | compute | 1 - the busiest of tensor pipe, fp32 pipe and multiprocessor / 100 | 1 - operations / (time x the unit's peak) |
//! | memory | 1 - throughput of device memory / 100 | 1 - compulsory bytes / (time x the memory's peak) |
//! | latency | the largest share of warps that wait for one cause / 100 | unknown |
//!
//! The formulas over counters are those of KernelFlow's roofline step, except for missing metrics. In KernelFlow, a missing metric counts as 0, so that a
//! profile without counters shows everything as still to be gained. Here it is unknown, with its reason. The throughput of a multiprocessor includes its pipes,
//! so the compute gap is known from that metric, but not from the pipes only: another pipe might be busier. A share of waiting is known once those causes are
//! known that every kind of GPU reports.
//!
//! A peak is the measured one if the device was measured, otherwise the theoretical one. The peaks of memory are measured for single mixes of reads and writes:
//! a kernel has the ceiling of its own mix ([`super::ceiling`]).
//!
//! A gap is a distance for compute and memory, and a severity for latency: 0 is good on every axis.

use std::collections::BTreeMap;

use super::ceiling::ceiling;
use super::derived::{Work, derived};
use super::stats::median;
use kforge_types::model::Axis;
use kforge_types::record::peaks::PeaksObserved;
use kforge_types::record::profile::{
    Achieved, Gaps, Peaks, ProfileObserved, Roofline, RooflineCase, RooflineParams, Share,
};
use kforge_types::record::timing::BenchObserved;

/// If all gaps of a kernel are smaller than this, it has nothing left that is worth a round.
pub const NEAR_PEAK: f64 = 0.15;

/// The pipes that may be the busiest part of a multiprocessor, in addition to its own throughput.
const PIPES: [&str; 3] = ["pipe_tensor", "pipe_tensor_integer", "pipe_fp32"];
/// The throughput that includes all pipes.
const BUSIEST: &str = "sm_throughput";
/// The throughput of device memory: the metric, and its counterpart as seen from the GPU.
const MEMORY: [&str; 2] = ["dram_throughput", "gpu_dram_throughput"];
/// The causes of waiting that must be known.
const CAUSES: [&str; 3] = ["stall_long_scoreboard", "stall_short_scoreboard", "stall_barrier"];
/// The prefix of the names of all causes.
const CAUSE: &str = "stall_";
/// The blocks of a launch over those that the device holds at once.
const WAVES: &str = "waves";
/// The names of a gap's sources.
const COUNTERS: &str = "counters";
const MEASURED: &str = "timing of measured peaks";
const THEORETICAL: &str = "timing of theoretical peaks";

/// The roofline of a variant from the observations at each bench shape, by position, and the measurements of the device. It is the
/// roofline of the shape that takes longest.
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
    // The first of the shapes that take equally long.
    let longest = timed.reduce(|a, b| if b.2 > a.2 { b } else { a });
    let Some((shape, case, time_ns)) = longest else {
        let why = "no bench shape was timed".to_string();
        return Roofline { missing: Axis::ALL.map(|axis| (axis, why.clone())).into(), ..Roofline::default() };
    };
    let none = ProfileObserved::default();
    let profile = profiles.get(&shape);
    let seen = ShapeObservations {
        profile: profile.unwrap_or(&none),
        taken: profile.is_some(),
        peaks: DevicePeaks { measured, stated: bench.get(&shape).and_then(|b| b.peaks.as_ref()) },
        case,
        seconds: time_ns * 1e-9,
    };
    let mut out = Roofline { shape: Some(shape), time_ns: Some(time_ns), ..Roofline::default() };
    for (at, case) in &params.cases {
        let seen = bench.get(at);
        if let Some(time) = seen.and_then(time) {
            let peaks = DevicePeaks { measured, stated: seen.and_then(|b| b.peaks.as_ref()) };
            let waves = profiles.get(at).and_then(|profile| profile.metrics.get(WAVES).copied());
            let waves = waves.filter(|waves| waves.is_finite());
            out.achieved.insert(*at, Achieved { waves, ..achieved(case, time, peaks) });
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

/// What is known about the peaks of a device.
#[derive(Clone, Copy)]
struct DevicePeaks<'s> {
    measured: Option<&'s PeaksObserved>,
    stated: Option<&'s Peaks>,
}

impl DevicePeaks<'_> {
    /// A peak, and whether it was measured.
    fn choose(measured: Option<f64>, stated: Option<f64>) -> Option<(f64, bool)> {
        let known = |peak: Option<f64>| peak.filter(|p| *p > 0.0 && p.is_finite());
        known(measured).map(|p| (p, true)).or(known(stated).map(|p| (p, false)))
    }

    /// The memory's peak in bytes per second for the reads and writes of a case, whether it was measured, and the share of written bytes that it applies to.
    fn memory(self, case: &RooflineCase) -> Option<(f64, bool, Option<f64>)> {
        let measured = self.measured.and_then(|peaks| ceiling(peaks, case.written / case.bytes));
        let (peak, of) = Self::choose(measured.map(|m| m.0), self.stated.map(|p| p.dram_bytes_per_s))?;
        Some((peak, of, measured.map(|m| m.1).filter(|written| *written > 0.0)))
    }

    /// The peak of a unit in operations per second.
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

/// The shares of the peaks that are reached at a shape in `time_ns` nanoseconds.
fn achieved(case: &RooflineCase, time_ns: f64, peaks: DevicePeaks<'_>) -> Achieved {
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
        waves: None,
    }
}

/// Everything that is known about the shape.
struct ShapeObservations<'s> {
    profile: &'s ProfileObserved,
    taken: bool,
    peaks: DevicePeaks<'s>,
    case: &'s RooflineCase,
    seconds: f64,
}

impl ShapeObservations<'_> {
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
                return Err("the device does not report its peaks".into());
            }
            let peak = self.peaks.ops(unit);
            let (peak, measured) = peak.ok_or_else(|| format!("the device does not report its peak for {unit}"))?;
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
            None => Err(format!("{}; the device does not report the peak of its memory", self.without(&[MEMORY[0]]))),
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

    /// Why these metrics are missing.
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

/// The unused share of a peak whose share `used` is used. A device may run slightly beyond its stated peak.
fn distance(used: f64) -> f64 {
    (1.0 - used).clamp(0.0, 1.0)
}

/// What bounds a kernel: the unit nearest to its peak, unless warps wait for a larger share of the time than the unit works. If only one unit is known, the
/// bound is known only if that unit is near its peak.
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
mod tests;
