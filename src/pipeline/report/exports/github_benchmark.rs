//! The input of github-action-benchmark, tool `customSmallerIsBetter`: a list of names, values and units. Knows that format.

use serde::Serialize;

use super::measurement::{Measurement, measurements};
use super::{ExportError, json};
use crate::report::Report;

/// One value.
#[derive(Debug, Serialize)]
struct Entry {
    name: String,
    unit: &'static str,
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<String>,
    extra: String,
}

/// The times of champions.
pub(super) fn github_benchmark(report: &Report) -> Result<String, ExportError> {
    json(&measurements(report).iter().map(entry).collect::<Vec<Entry>>())
}

fn entry(one: &Measurement<'_>) -> Entry {
    // The format has one number for both sides of the interval.
    let range = one.interval_ns.map(|(low, high)| (one.median_ns - low).max(high - one.median_ns).max(0.0));
    let device = [("device", one.device.to_string())];
    let facts: Vec<String> =
        device.into_iter().chain(one.facts()).map(|(name, value)| format!("{name}: {value}")).collect();
    Entry {
        name: one.name(),
        unit: "ns",
        value: one.median_ns,
        range: range.map(|range| format!("± {range:.1}")),
        extra: facts.join("\n"),
    }
}
