//! A report of LLVM's LNT, format 2, for its suite `nts`: tests with their execution times in seconds. Knows that format.
//!
//! LNT has one machine for each report, and a series for each machine and test. Names of tests have the device in them, so that series of different devices never
//! mix, also in a report that has several. Every key of a test but `name` is a metric of the suite, so a test says nothing else.

use std::collections::BTreeMap;

use serde::Serialize;

use super::measurement::measurements;
use super::{ExportError, json};
use crate::report::Report;

#[derive(Debug, Serialize)]
struct LntReport {
    format_version: &'static str,
    machine: BTreeMap<&'static str, String>,
    run: BTreeMap<&'static str, String>,
    tests: Vec<Test>,
}

#[derive(Debug, Serialize)]
struct Test {
    name: String,
    execution_time: f64,
}

/// The times of champions.
pub(super) fn lnt(report: &Report) -> Result<String, ExportError> {
    let all = measurements(report);
    let mut devices: Vec<&str> = all.iter().map(|one| one.device).collect();
    devices.sort_unstable();
    devices.dedup();
    let machine = if devices.is_empty() { "no device".to_string() } else { devices.join(" + ") };
    let built = report.built.as_ref();
    let mut run = BTreeMap::new();
    if let Some(built) = built.filter(|built| !built.at.is_empty()) {
        // LNT's times have no zone. They are in UTC.
        let at = built.at.trim_end_matches('Z').to_string();
        run.extend([("start_time", at.clone()), ("end_time", at)]);
    }
    // Runs are ordered by this field, which is mandatory.
    let revision = built.and_then(|built| built.commit.clone().or(Some(built.at.clone())));
    run.insert("llvm_project_revision", revision.filter(|r| !r.is_empty()).unwrap_or_else(|| "unknown".into()));
    if let Some(built) = built {
        run.insert("kforge", built.kforge.clone());
        if built.dirty == Some(true) {
            run.insert("uncommitted_changes", "yes".into());
        }
    }
    let test = |name: String, ns: f64| Test { name, execution_time: ns / 1e9 };
    json(&LntReport {
        format_version: "2",
        machine: [("name", machine)].into(),
        run,
        tests: all.iter().map(|one| test(one.name(), one.median_ns)).collect(),
    })
}
