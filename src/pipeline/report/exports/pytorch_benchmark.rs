//! Records of PyTorch's benchmark database, schema v3: one for each value, with benchmark, model, metric and runner. Knows that format.
//!
//! A kernel is the *model*, and its target the *backend*. Values of `extra_info` are texts, because the database has a map of texts there. The runner is the
//! device that was measured, which need not be the machine that uploads.

use std::collections::BTreeMap;

use serde::Serialize;

use super::measurement::{Measurement, measurements};
use super::{ExportError, json};
use crate::report::Report;

#[derive(Debug, Serialize)]
struct Record {
    benchmark: Benchmark,
    model: Model,
    metric: Metric,
    runners: Vec<Runner>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    dependencies: BTreeMap<&'static str, Dependency>,
}

#[derive(Debug, Serialize)]
struct Benchmark {
    name: &'static str,
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dtype: Option<String>,
    extra_info: BTreeMap<&'static str, String>,
}

#[derive(Debug, Serialize)]
struct Model {
    name: String,
    r#type: &'static str,
    backend: String,
    extra_info: BTreeMap<&'static str, String>,
}

#[derive(Debug, Serialize)]
struct Metric {
    name: String,
    benchmark_values: Vec<f64>,
    extra_info: BTreeMap<&'static str, String>,
}

#[derive(Debug, Serialize)]
struct Runner {
    name: String,
    r#type: String,
    gpu_info: String,
    gpu_count: u32,
}

#[derive(Debug, Serialize)]
struct Dependency {
    version: String,
}

/// The times of champions.
pub(super) fn pytorch_benchmark(report: &Report) -> Result<String, ExportError> {
    let kforge = report.built.as_ref().map(|built| built.kforge.clone());
    json(&measurements(report).iter().map(|one| record(one, kforge.as_deref())).collect::<Vec<Record>>())
}

fn record(one: &Measurement<'_>, kforge: Option<&str>) -> Record {
    let texts = |all: &[(&'static str, &str)]| {
        let known = all.iter().filter(|(_, text)| !text.is_empty());
        known.map(|(name, text)| (*name, text.to_string())).collect::<BTreeMap<_, _>>()
    };
    let facts = one.facts().into_iter().filter(|(name, _)| *name != "variant");
    Record {
        benchmark: Benchmark {
            name: "kforge",
            mode: "inference",
            dtype: dtypes(one.types),
            extra_info: texts(&[("device", one.device), ("target", one.target), ("series", &one.name())]),
        },
        model: Model {
            name: one.kernel.to_string(),
            r#type: "kernel",
            backend: one.target.to_string(),
            extra_info: texts(&[
                ("package", one.package),
                ("operator", one.operator),
                ("types", one.types),
                ("shape", one.shape),
                ("variant", one.variant),
            ]),
        },
        metric: Metric {
            name: format!("{}_latency_ns", one.metric.name()),
            benchmark_values: vec![one.median_ns],
            extra_info: facts.collect(),
        },
        runners: vec![Runner {
            name: one.device.to_string(),
            r#type: one.target.to_string(),
            gpu_info: one.device.to_string(),
            gpu_count: 1,
        }],
        dependencies: kforge.map(|version| ("kforge", Dependency { version: version.into() })).into_iter().collect(),
    }
}

/// The types without their names: `f16` for `T=f16`; none if the operator has no choice.
fn dtypes(types: &str) -> Option<String> {
    let values: Vec<&str> = types.split(',').filter_map(|part| Some(part.split_once('=')?.1)).collect();
    (!values.is_empty()).then(|| values.join(","))
}
