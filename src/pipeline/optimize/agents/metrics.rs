//! Selects the few metrics that an agent gets to see. Knows gaps, triggers and values; measures and derives none.
//!
//! A prompt with every metric does worse than one with the few that matter (CudaForge, arXiv 2511.01884, section 4: an advisor names its bottleneck by three or
//! four). The order is: the metric behind the largest gap; the metrics in the triggers of the chosen methods, strongest first; the metrics behind the other
//! gaps. Metrics that were not measured are left out.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::optimize::methods::{Strength, Trigger, registry};
use kforge_types::model::Axis;
use kforge_types::record::metric;
use kforge_types::record::profile::Gaps;

/// The most metrics that are shown.
pub const MOST: usize = 4;

/// A metric in a briefing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BriefingMetric {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
    /// Its unit; empty for counts and ratios.
    pub unit: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

/// The metrics behind each gap. The greatest value of a list counts, because the gap is measured from the busiest part, or is the worst stall.
const COMPUTE: [&str; 4] = ["pipe_tensor", "pipe_tensor_integer", "pipe_fp32", "sm_throughput"];
const MEMORY: [&str; 2] = ["dram_throughput", "memory_throughput"];
const STALLS: [&str; 9] = [
    "stall_long_scoreboard",
    "stall_short_scoreboard",
    "stall_barrier",
    "stall_branch",
    "stall_memory_dependency",
    "stall_mio_throttle",
    "stall_lg_throttle",
    "stall_wait",
    "stall_membar",
];

/// Names of the same metric: alias, then name.
const ALIASES: [(&str, &str); 1] = [("gpu_dram_throughput", "dram_throughput")];

/// At most [`MOST`] of the metrics, most informative first, for these gaps and chosen methods.
pub fn telling(metrics: &BTreeMap<String, f64>, gaps: &Gaps, methods: &[&str]) -> Vec<BriefingMetric> {
    let mut axes = Axis::ALL.to_vec();
    // Unknown gaps come last; equal gaps keep the order of axes.
    axes.sort_by(|a, b| gaps.of(*b).unwrap_or(-1.0).total_cmp(&gaps.of(*a).unwrap_or(-1.0)));
    let mut names: Vec<&str> = vec![];
    let first = axes.first().copied().filter(|axis| gaps.of(*axis).is_some());
    names.extend(first.and_then(|axis| evidence(axis, metrics)));
    let mut spoken: Vec<(f64, &str)> = vec![];
    for trigger in methods.iter().filter_map(|id| registry().get(id)?.trigger.as_ref()) {
        for ramp in trigger.ramps() {
            if let Strength::Known(strength) = Trigger::Ramp(ramp.clone()).strength(metrics) {
                spoken.push((strength, &ramp.metric));
            }
        }
    }
    // A stable sort: among equal strengths, the method that comes first wins.
    spoken.sort_by(|a, b| b.0.total_cmp(&a.0));
    names.extend(spoken.into_iter().map(|(_, name)| name));
    names.extend(axes.into_iter().filter_map(|axis| evidence(axis, metrics)));
    let mut told: Vec<BriefingMetric> = vec![];
    for name in names {
        let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
        let (Some(known), Some(value)) = (metric::metric(name), metrics.get(name)) else { continue };
        if told.len() < MOST && value.is_finite() && !told.iter().any(|t| t.name == known.name) {
            told.push(BriefingMetric {
                name: known.name,
                value: *value,
                unit: known.unit.symbol(),
                meaning: known.meaning,
            });
        }
    }
    told
}

/// The metric behind the gap of an axis.
fn evidence(axis: Axis, metrics: &BTreeMap<String, f64>) -> Option<&'static str> {
    let names: &[&'static str] = match axis {
        Axis::Compute => &COMPUTE,
        Axis::Memory => &MEMORY,
        Axis::Latency => &STALLS,
    };
    let known = names.iter().filter_map(|name| Some((*name, *metrics.get(*name)?))).filter(|(_, v)| v.is_finite());
    // Among equal values, the first.
    known.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(values: &[(&str, f64)]) -> BTreeMap<String, f64> {
        values.iter().map(|(name, value)| (name.to_string(), *value)).collect()
    }

    fn gaps(compute: f64, memory: f64, latency: f64) -> Gaps {
        Gaps { compute: Some(compute), memory: Some(memory), latency: Some(latency) }
    }

    fn names(told: &[BriefingMetric]) -> Vec<&str> {
        told.iter().map(|t| t.name).collect()
    }

    #[test]
    fn the_largest_gap_comes_first_then_what_speaks_for_the_methods() {
        let metrics = at(&[
            ("dram_throughput", 41.0),
            ("gpu_dram_throughput", 41.0),
            ("stall_long_scoreboard", 55.0),
            ("stall_barrier", 12.0),
            ("sm_throughput", 20.0),
            ("registers", 40.0),
        ]);
        let told = telling(&metrics, &gaps(0.5, 0.59, 0.55), &[]);
        assert_eq!(names(&told), ["dram_throughput", "stall_long_scoreboard", "sm_throughput"]);
        assert_eq!((told[0].value, told[0].unit), (41.0, "%"));
        assert!(!told[0].meaning.is_empty());
        let entry = registry()
            .entries()
            .iter()
            .find(|e| e.trigger.as_ref().is_some_and(|t| t.metrics().contains("stall_barrier")))
            .unwrap();
        let told = telling(&metrics, &gaps(0.5, 0.59, 0.55), &[&entry.id]);
        assert_eq!(told[0].name, "dram_throughput");
        assert!(names(&told).contains(&"stall_barrier"), "{told:?}");
    }

    #[test]
    fn no_more_than_four_are_told_and_none_that_is_unknown_or_no_number() {
        let all: Vec<(&str, f64)> = metric::METRICS.iter().map(|m| (m.name, 50.0)).collect();
        let every: Vec<&str> = registry().entries().iter().map(|e| e.id.as_str()).collect();
        assert_eq!(telling(&at(&all), &gaps(0.5, 0.5, 0.5), &every).len(), MOST);
        assert!(telling(&at(&[]), &gaps(0.5, 0.5, 0.5), &every).is_empty());
        assert!(telling(&at(&[("dram_throughput", f64::NAN)]), &gaps(0.5, 0.5, 0.5), &[]).is_empty());
    }

    #[test]
    fn without_gaps_the_metrics_of_each_axis_are_told() {
        let metrics = at(&[("pipe_fp32", 30.0), ("pipe_tensor", 60.0), ("dram_throughput", 41.0)]);
        assert_eq!(names(&telling(&metrics, &Gaps::default(), &[])), ["pipe_tensor", "dram_throughput"]);
    }
}
