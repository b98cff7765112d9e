//! The parameters and the observation of a profile step; the theoretical peaks of a device; how far a kernel is from them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Unknown;
use super::params::VerifyParams;
use crate::model::Axis;

/// profile. Inputs: `binary`, `facts`, `inspection`, and those of [`super::params::PairsParams`] that make inputs. Output `observation`: a [`ProfileObserved`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileParams {
    /// The architecture for which the binary was built.
    pub arch: String,
    /// The launches.
    pub of: VerifyParams,
    /// The metrics to take, by their names in [`super::metric::METRICS`], sorted.
    pub metrics: Vec<String>,
    /// Version of the profiling protocol.
    pub protocol: u32,
}

/// What a profile step saw of all launches together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ProfileObserved {
    /// Metrics by name, in the units of [`super::metric::METRICS`].
    pub metrics: BTreeMap<String, f64>,
    /// Requested metrics that are unknown, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: BTreeMap<String, String>,
    /// Why nothing was seen (no permission for counters, no profiler), if nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<Unknown>,
}

/// The theoretical peaks of a device, from its own attributes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Peaks {
    /// Bytes per second between its memory and its L2 cache.
    pub dram_bytes_per_s: f64,
    /// Operations per second of its arithmetic units by dtype (`f32`, `tf32`, `f16`, `bf16`, `i8`, `f8`). A fused multiply-add counts as two operations. Matrix
    /// units are used for the dtypes that they support.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ops_per_s: BTreeMap<String, f64>,
}

/// One bench shape for the roofline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RooflineCase {
    /// Operations of the operator's cost model; none if it states none.
    pub flops: Option<f64>,
    /// Compulsory bytes.
    pub bytes: f64,
    /// Bytes of the tensors that the operator writes.
    pub written: f64,
    /// The unit of [`Peaks::ops_per_s`] that its arithmetic may use.
    pub unit: String,
}

/// roofline. Inputs: for each bench shape S, `bench:S` (a [`super::timing::BenchObserved`]) and `profile:S` (a [`ProfileObserved`]); and `peaks` (a
/// [`super::peaks::PeaksObserved`]); absent if there are none. Output `roofline`: a [`Roofline`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RooflineParams {
    /// By position of the shape.
    pub cases: BTreeMap<u32, RooflineCase>,
    /// Whether hot times count rather than cold times.
    pub hot: bool,
}

/// How far a kernel is from what a device can do, by axis: 0 at the peak, 1 if nothing of the resource is used, none if unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Gaps {
    /// The gap of the arithmetic units.
    pub compute: Option<f64>,
    /// The gap of the memory.
    pub memory: Option<f64>,
    /// The share of time during which warps wait.
    pub latency: Option<f64>,
}

impl Gaps {
    /// The gap of an axis.
    pub fn of(&self, axis: Axis) -> Option<f64> {
        match axis {
            Axis::Compute => self.compute,
            Axis::Memory => self.memory,
            Axis::Latency => self.latency,
        }
    }

    /// What is used of each resource, in words: `used compute 8 %, memory 43 %; 61 % of warps wait`. A note on an axis follows it in parentheses; axes in a
    /// row with the same note share it.
    pub fn text(&self, note: &dyn Fn(Axis) -> Option<String>) -> String {
        let used = |axis: Axis| match (axis, self.of(axis)) {
            (Axis::Latency, Some(gap)) => format!("; {:.0} % of warps wait", 100.0 * gap),
            (Axis::Latency, None) => "; waiting unknown".to_string(),
            (Axis::Compute | Axis::Memory, gap) => {
                let (comma, name) = (if axis == Axis::Compute { "" } else { ", " }, axis.name());
                let share = gap.map_or("unknown".to_string(), |gap| format!("{:.0} %", 100.0 * (1.0 - gap)));
                format!("{comma}{name} {share}")
            }
        };
        let axes = [Axis::Compute, Axis::Memory, Axis::Latency];
        let notes = axes.map(note);
        let mut out = String::from("used ");
        for (at, axis) in axes.into_iter().enumerate() {
            out += &used(axis);
            if let Some(note) = notes[at].as_ref().filter(|_| notes.get(at + 1) != Some(&notes[at])) {
                out += &format!(" ({note})");
            }
        }
        out
    }

    /// Whether any gap is unknown.
    pub fn is_degraded(&self) -> bool {
        Axis::ALL.into_iter().any(|axis| self.of(axis).is_none())
    }
}

/// What roofline concludes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Roofline {
    /// The position of the shape that takes longest, to which the other fields refer. None if nothing was timed.
    pub shape: Option<u32>,
    /// Its median time in nanoseconds.
    pub time_ns: Option<f64>,
    /// The gaps.
    pub gaps: Gaps,
    /// Where each known gap comes from: `counters`, `timing of measured peaks` or `timing of theoretical peaks`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub from: BTreeMap<Axis, String>,
    /// Why a gap is unknown.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: BTreeMap<Axis, String>,
    /// What bounds the kernel: the unit nearest to its limit, or latency if warps wait more than any unit works. None if unknown.
    pub bound: Option<Axis>,
    /// Whether all three gaps are known and below the threshold.
    pub near_peak: bool,
    /// The metrics that were taken at this shape, and those computed from them, for triggers and prompts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, f64>,
    /// What the kernel reaches at each bench shape that was timed, by position.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub achieved: BTreeMap<u32, Achieved>,
}

/// What a kernel reaches at a shape: the operator's bytes and operations over the kernel's time. What the kernel itself moves and computes does not count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Achieved {
    /// Its median time in nanoseconds, cold or hot as the kernel selects.
    pub time_ns: f64,
    /// Compulsory bytes per second.
    pub bytes_per_s: f64,
    /// The bytes as a share of the memory's peak; none if no peak is known.
    pub memory: Option<Share>,
    /// Operations per second; none if the operator states none.
    pub ops_per_s: Option<f64>,
    /// The unit that its arithmetic may use.
    pub unit: String,
    /// The operations as a share of the unit's peak; none if no peak is known.
    pub compute: Option<Share>,
    /// The blocks of the launch over the blocks that the device holds at once; none if the shape was not profiled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waves: Option<f64>,
}

/// A share of a peak.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Share {
    /// The share: 1 at the peak. More than 1 if a cache served some of the bytes, or if a faster unit did the arithmetic.
    pub share: f64,
    /// The peak rate per second.
    pub peak_per_s: f64,
    /// Whether the peak was measured. Otherwise it is the theoretical peak.
    pub measured: bool,
    /// If the peak was measured for a mix of reads and writes, the share of bytes that are written. None for any other peak.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<f64>,
}

impl Achieved {
    /// The share of the roofline: of the limit of memory or of arithmetic, whichever is nearer. None if neither peak is known.
    pub fn roofline(&self) -> Option<Share> {
        [self.memory, self.compute].into_iter().flatten().reduce(|a, b| if b.share > a.share { b } else { a })
    }

    /// A summary in one line: `4.05 TB/s, 97 % of measured 4.19 TB/s at half written; 1.01 T/s of f32, 2 % of measured 66.1 T/s`.
    pub fn line(&self) -> String {
        let of = |share: Option<Share>, per: fn(f64) -> String| match share {
            None => ", peak unknown".to_string(),
            Some(Share { share, peak_per_s, measured, written }) => {
                let which = if measured { "measured" } else { "theoretical" };
                format!(", {:.0} % of {which} {}{}", 100.0 * share, per(peak_per_s), mix(written))
            }
        };
        let bytes = format!("{}{}", bytes_a_second(self.bytes_per_s), of(self.memory, bytes_a_second));
        match self.ops_per_s {
            None => bytes,
            Some(ops) => {
                format!("{bytes}; {} of {}{}", ops_a_second(ops), self.unit, of(self.compute, ops_a_second))
            }
        }
    }
}

/// The mix of reads and writes of a peak: ` at half written`, ` at 33 % written`; empty if almost nothing is written.
fn mix(written: Option<f64>) -> String {
    match written.map(|share| (100.0 * share).round()) {
        None | Some(0.0) => String::new(),
        Some(50.0) => " at half written".into(),
        Some(percent) => format!(" at {percent:.0} % written"),
    }
}

/// `4.05 TB/s`, `12.3 GB/s`.
fn bytes_a_second(rate: f64) -> String {
    if rate >= 1e12 { format!("{:.2} TB/s", rate / 1e12) } else { format!("{:.1} GB/s", rate / 1e9) }
}

/// `66.1 T/s`, `12.3 G/s`.
fn ops_a_second(rate: f64) -> String {
    if rate >= 1e12 { format!("{:.1} T/s", rate / 1e12) } else { format!("{:.1} G/s", rate / 1e9) }
}

impl Roofline {
    /// A summary in one line: `bound by memory: used compute 8 %, memory 43 % (by timing of measured peaks); waiting unknown (no counters: ERR_NVGPUCTRPERM)`.
    pub fn summary(&self) -> String {
        let note = |axis: Axis| match self.gaps.of(axis) {
            Some(_) => self.from.get(&axis).map(|from| format!("by {from}")),
            None => self.missing.get(&axis).cloned(),
        };
        let bound = match (self.near_peak, self.bound) {
            (true, _) => "near the peak".to_string(),
            (false, Some(axis)) => format!("bound by {}", axis.name()),
            (false, None) => "bound unknown".into(),
        };
        format!("{bound}: {}", self.gaps.text(&note))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_bounds_a_kernel_and_what_is_not_known() {
        let gaps = Gaps { compute: Some(0.92), memory: Some(0.57), latency: None };
        let missing = [(Axis::Latency, "no counters".to_string())].into();
        let found = Roofline { gaps, missing, bound: Some(Axis::Memory), ..Roofline::default() };
        assert_eq!(found.summary(), "bound by memory: used compute 8 %, memory 43 %; waiting unknown (no counters)");
        let unknown = "bound unknown: used compute unknown, memory unknown; waiting unknown";
        assert_eq!(Roofline::default().summary(), unknown);
    }

    #[test]
    fn what_is_used_says_where_it_comes_from_once_for_axes_in_a_row() {
        let gaps = Gaps { compute: Some(0.95), memory: Some(0.12), latency: Some(0.4) };
        let of = |axes: [(Axis, &str); 3]| {
            let from = axes.map(|(axis, from)| (axis, from.to_string())).into();
            Roofline { gaps, from, bound: Some(Axis::Memory), ..Roofline::default() }.summary()
        };
        let all = of(Axis::ALL.map(|axis| (axis, "counters")));
        assert_eq!(all, "bound by memory: used compute 5 %, memory 88 %; 40 % of warps wait (by counters)");
        let mixed = of([(Axis::Compute, "timing"), (Axis::Memory, "counters"), (Axis::Latency, "counters")]);
        assert_eq!(
            mixed,
            "bound by memory: used compute 5 % (by timing), memory 88 %; 40 % of warps wait (by counters)"
        );
    }

    #[test]
    fn what_is_reached_stands_beside_the_peak_that_it_is_a_share_of() {
        let share = |share, peak_per_s, measured| Some(Share { share, peak_per_s, measured, written: None });
        let mut reached = Achieved {
            time_ns: 1000.0,
            bytes_per_s: 4.05e12,
            memory: share(0.864, 4.69e12, true),
            ops_per_s: Some(5.1e11),
            unit: "f32".into(),
            compute: share(0.0077, 66.1e12, false),
            waves: None,
        };
        let line = "4.05 TB/s, 86 % of measured 4.69 TB/s; 510.0 G/s of f32, 1 % of theoretical 66.1 T/s";
        assert_eq!((reached.line().as_str(), reached.roofline()), (line, reached.memory));
        for (written, said) in [(0.004, ""), (0.334, " at 33 % written"), (0.4999, " at half written")] {
            reached.memory = share(0.97, 4.19e12, true).map(|of| Share { written: Some(written), ..of });
            assert!(
                reached.line().starts_with(&format!("4.05 TB/s, 97 % of measured 4.19 TB/s{said}; ")),
                "{}",
                reached.line()
            );
        }
        (reached.ops_per_s, reached.memory) = (None, None);
        assert_eq!(reached.line(), "4.05 TB/s, peak unknown");
    }
}
