//! Bencher Metric Format: by benchmark, its latency in nanoseconds with the bounds of its interval. Knows that format.

use std::collections::BTreeMap;

use serde::Serialize;

use super::measurement::measurements;
use super::{ExportError, json};
use crate::report::Report;

/// The measures of a benchmark.
#[derive(Debug, Serialize)]
struct Measures {
    latency: Metric,
}

/// A value with its bounds, in nanoseconds.
#[derive(Debug, Serialize)]
struct Metric {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<f64>,
}

/// The times of champions.
pub(super) fn bmf(report: &Report) -> Result<String, ExportError> {
    let all = measurements(report);
    let of = all.iter().map(|one| {
        let (lower_value, upper_value) = one.interval_ns.unzip();
        (one.name(), Measures { latency: Metric { value: one.median_ns, lower_value, upper_value } })
    });
    json(&of.collect::<BTreeMap<String, Measures>>())
}
