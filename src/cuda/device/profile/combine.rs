//! Combines the metrics of all launches of a variant, by their canonical names. Knows which metrics can be added; measures nothing.
//!
//! | metrics | value for several launches | reason |
//! |---|---|---|
//! | counts, bytes, cycles, time | the sum | each launch contributes its own |
//! | shares, rates, ratios | the mean, weighted by the duration of each launch | a launch that takes no time says nothing about the whole |
//! | description of a launch (`launch__*`: registers, limits, waves) | that of the longest launch | combined limits of several launches describe none |
//!
//! If one launch lacks a metric, the metric is unknown for the whole; a weighted metric is also unknown if a duration is. The values of a single launch are
//! unchanged.

use std::collections::BTreeMap;

use super::log::Log;
use kforge_types::record::metric::{Metric, Unit, metric};

/// The weight of a launch.
const DURATION: &str = "gpu__time_duration.sum";
/// The prefix of metrics that describe a launch.
const OF_LAUNCH: &str = "launch__";

/// Metrics by name, and why others are missing.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Combined {
    pub(super) metrics: BTreeMap<String, f64>,
    pub(super) missing: BTreeMap<String, String>,
}

/// The wanted metrics of all launches, on a device of this capability (90).
pub(super) fn combine(wanted: &[String], capability: u32, log: &Log) -> Combined {
    let mut combined = Combined::default();
    for name in wanted {
        let known = metric(name).ok_or_else(|| "this version of kforge has no such metric".to_string());
        match known.and_then(|metric| of_all(metric, capability, log)) {
            Ok(value) => drop(combined.metrics.insert(name.clone(), value)),
            Err(why) => drop(combined.missing.insert(name.clone(), why)),
        }
    }
    combined
}

fn of_all(metric: &Metric, capability: u32, log: &Log) -> Result<f64, String> {
    let names: Vec<&str> = metric.names(capability).collect();
    let none = || match &names[..] {
        [] => format!("compute capability {}.{} has no such counter", capability / 10, capability % 10),
        names => format!("this `ncu` has no `{}` on this device", names.join("` or `")),
    };
    let name = names.iter().find(|name| log.has(name)).ok_or_else(none)?;
    let each = |of: &str| log.launches.iter().map(|launch| log.value(launch, of)).collect::<Result<Vec<f64>, _>>();
    let values = each(name).map_err(|why| why.to_string())?;
    if let [one] = values[..] {
        return Ok(one);
    }
    let times = || each(DURATION).map_err(|why| format!("launches cannot be weighted: {why}"));
    match metric.unit {
        _ if name.starts_with(OF_LAUNCH) => {
            let longest = values.iter().zip(times()?).reduce(|a, b| if b.1 > a.1 { b } else { a });
            longest.map(|(value, _)| *value).ok_or_else(|| "no launch was profiled".into())
        }
        Unit::Count | Unit::Cycles | Unit::Bytes | Unit::Nanoseconds => Ok(values.iter().sum()),
        Unit::Percent | Unit::BytesPerSecond | Unit::Ratio => {
            let times = times()?;
            let whole: f64 = times.iter().sum();
            let weighted: f64 = values.iter().zip(&times).map(|(value, time)| value * time).sum();
            if whole > 0.0 { Ok(weighted / whole) } else { Err("its launches took no time".into()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::log::tests::THREE;
    use super::*;
    use kforge_types::record::metric::{METRICS, Set};

    fn wanted() -> Vec<String> {
        METRICS.iter().filter(|m| m.set != Set::Derived).map(|m| m.name.to_string()).collect()
    }

    #[test]
    fn counts_are_added_shares_weighted_by_time_and_limits_are_those_of_the_longest_launch() {
        let found = combine(&wanted(), 90, &Log::read(THREE).unwrap());
        let close = |name: &str, want: f64| {
            let got = found.metrics[name];
            assert!((got - want).abs() <= 1e-9 * want, "{name}: {got}, not {want}");
        };
        let times = 12_640.0 + 20_224.0 + 12_640.0;
        close("duration", times);
        close("instructions", 2_228_224.0 + 8_863_744.0 + 2_228_224.0);
        close("cycles_active", 20_570.32 + 36_594.56 + 20_769.40);
        close("dram_read", 16_780_544.0 + 16_781_056.0 + 16_780_800.0);
        close("dram_throughput", (28.66 * 12_640.0 + 17.28 * 20_224.0 + 28.60 * 12_640.0) / times);
        close("ipc", (0.82 * 12_640.0 + 1.83 * 20_224.0 + 0.81 * 12_640.0) / times);
        close("limit_shared", 16.0);
        close("registers", 16.0);
        close("waves", 15.52);
        // Bytes divided by time give the rate, except for rounding.
        let bytes = found.metrics["dram_read"] + found.metrics["dram_write"];
        assert!((found.metrics["dram_rate"] * times * 1e-9 / bytes - 1.0).abs() < 1e-6);
    }

    #[test]
    fn what_an_h200_lacks_is_missing_by_name() {
        let found = combine(&wanted(), 90, &Log::read(THREE).unwrap());
        let missing: Vec<&str> = found.missing.keys().map(String::as_str).collect();
        // The second name of the first metric was not requested in this recording.
        assert_eq!(missing, ["issue_fp32", "stall_memory_dependency"]);
        let name = "smsp__warp_issue_stalled_memory_dependency_per_warp_active.pct";
        assert_eq!(found.missing["stall_memory_dependency"], format!("this `ncu` has no `{name}` on this device"));
        assert_eq!(found.metrics.len(), wanted().len() - 2);
        assert!(found.metrics["pipe_fp32"] > 7.0, "by the second of its names");
    }

    #[test]
    fn of_one_launch_everything_is_as_it_was() {
        let mut log = Log::read(THREE).unwrap();
        log.launches.truncate(1);
        let found = combine(&["dram_throughput".into(), "registers".into(), "duration".into()], 90, &log);
        assert_eq!(found.metrics.into_values().collect::<Vec<_>>(), [28.66, 12_640.0, 16.0]);
    }

    #[test]
    fn what_one_launch_lacks_or_nobody_knows_is_unknown_of_the_whole() {
        let text = "\"Kernel Name\",\"dram__bytes_read.sum\",\"l1tex__t_sector_hit_rate.pct\"\n\"\",\"byte\",\"%\"\n\"a\",\"1\",\"5\"\n\"b\",\"n/a\",\"7\"\n";
        let log = Log::read(text).unwrap();
        let found = combine(&["dram_read".into(), "l1_hit".into(), "pipe_tensor_integer".into(), "x".into()], 75, &log);
        assert!(found.metrics.is_empty());
        assert_eq!(found.missing["dram_read"], "`dram__bytes_read.sum` is `n/a`");
        assert!(
            found.missing["l1_hit"].starts_with("launches cannot be weighted: `ncu` has no `gpu__time_duration.sum`")
        );
        assert_eq!(found.missing["pipe_tensor_integer"], "compute capability 7.5 has no such counter");
        assert_eq!(found.missing["x"], "this version of kforge has no such metric");
    }
}
