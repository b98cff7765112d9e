//! Solutions as kernels in PyTorch, and their results as traces. Pure.
//!
//! | status of a trace | from |
//! |---|---|
//! | `PASSED` | pass. `performance` is `null` where nothing was timed, as on a server without a GPU |
//! | `COMPILE_ERROR` | a source that does not compile |
//! | `INCORRECT_SHAPE`, `INCORRECT_DTYPE`, `INCORRECT_NUMERICAL` | an output of another shape or type; wrong values |
//! | `TIMEOUT` | a call of the solution that makes no progress, or an evaluation that did not end in time |
//! | `RUNTIME_ERROR` | any other failure, such as an exception |
//!
//! What is unknown is no status of a trace: the task has failed, with the reason.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::{
    Candidate, Cause, EvaluationRequest, EvaluationResult, KernelResult, Measure, PackageCandidate, Priority,
    ShapeResult, VerdictWord,
};
use crate::service::ReferencePackage;
use kforge_foundation::base::Digest;
use kforge_types::record::FindingKind;

/// The folder and the name of the reference as a kernel.
const REFERENCE: &str = "reference";

/// A solution.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Solution {
    pub(super) name: String,
    pub(super) definition: String,
    spec: Spec,
    sources: Vec<Source>,
}

#[derive(Debug, Clone, Deserialize)]
struct Spec {
    language: String,
    entry_point: String,
    /// The dataset's form has it as true if it is missing.
    #[serde(default = "yes")]
    destination_passing_style: bool,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Clone, Deserialize)]
struct Source {
    path: String,
    content: String,
}

impl Solution {
    /// The name under which it is evaluated: that of the solution with a digest of its contents.
    pub(super) fn unique_name(&self) -> String {
        let plain: String = self.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let start = if plain.starts_with(|c: char| c.is_ascii_alphabetic()) { "" } else { "solution_" };
        let sources: Vec<(&str, &str)> = self.sources.iter().map(|s| (s.path.as_str(), s.content.as_str())).collect();
        let digest = Digest::of(format!("{:?} {sources:?}", self.spec).as_bytes());
        format!("{start}{plain}_{}", &digest.hex()[..8])
    }

    /// Why kforge cannot call it.
    pub(super) fn unusable(&self) -> Option<String> {
        if !["python", "triton", "pytorch"].contains(&self.spec.language.to_lowercase().as_str()) {
            return Some(format!("the solution is in {}: expected python or triton", self.spec.language));
        }
        if self.spec.destination_passing_style {
            return Some(
                "the solution gets its outputs (`destination_passing_style`): expected one that returns them".into(),
            );
        }
        let mut paths = BTreeSet::new();
        if let Some(twice) = self.sources.iter().find(|source| !paths.insert(&source.path)) {
            return Some(format!("two sources have the path `{}`", twice.path));
        }
        self.spec.entry_point.split_once("::").is_none().then(|| "`entry_point` is not `FILE::FUNCTION`".into())
    }

    /// The evaluation of the solution beside a reference, on a device with this architecture and product.
    pub(super) fn evaluation(
        &self,
        reference: &ReferencePackage,
        device: Option<&(String, String)>,
    ) -> Result<EvaluationRequest, String> {
        if let Some(why) = self.unusable() {
            return Err(why);
        }
        let text = |text: &str| toml::Value::from(text).to_string();
        let name = self.unique_name();
        let mut manifest = reference.manifest.clone();
        let target = if device.is_some() { "device" } else { "cpu" };
        if let Some((arch, product)) = device {
            manifest += &format!("\n[targets.device]\narch = {}\ndevice = {}\n", text(arch), text(product));
        }
        let mut kernels = vec![(name.as_str(), format!("{name}/{}", self.spec.entry_point))];
        let mut files = reference.files.clone();
        if device.is_some() {
            kernels.push((REFERENCE, format!("{REFERENCE}/ref.py::run")));
            files.extend(reference.files.get("ref.py").map(|text| (format!("{REFERENCE}/ref.py"), text.clone())));
        }
        for (kernel, source) in kernels {
            manifest += &format!(
                "\n[kernel.{kernel}]\noperator = {}\nlanguage = \"torch\"\ntargets = [\"{target}\"]\nsource = {}\n",
                text(&reference.operator),
                text(&source)
            );
        }
        files.extend(self.sources.iter().map(|source| (format!("{name}/{}", source.path), source.content.clone())));
        Ok(EvaluationRequest {
            id: None,
            candidate: Candidate::Package(PackageCandidate { manifest, files, kernels: vec![] }),
            target: None,
            device: None,
            measure: if device.is_some() { Measure::Build } else { Measure::Verify },
            priority: Priority::default(),
            timeout_s: None,
        })
    }
}

/// The traces of a result, or why the task has failed. `workloads` are those that were asked for.
pub(super) fn traces(
    result: &EvaluationResult,
    (definition, solution): (&str, &str),
    workloads: &BTreeMap<String, Value>,
    finished_at: Option<&str>,
) -> Result<Vec<Value>, String> {
    let kernel = result.kernels.iter().find(|kernel| kernel.kernel == solution);
    let reference = result.kernels.iter().find(|kernel| kernel.kernel == REFERENCE);
    let reason = || {
        let own = kernel.and_then(|kernel| kernel.reason.clone()).or_else(|| result.reason.clone());
        own.unwrap_or_else(|| "the evaluation gave no result".into())
    };
    let trace = |uuid: &str, workload: &Value, evaluation: Value| json!({ "definition": definition, "solution": solution, "workload": workload, "uuid": uuid, "evaluation": evaluation });
    let evaluation = |status: &str, log: Option<String>, correctness: Value, performance: Value| {
        let device = kernel.and_then(|kernel| kernel.observed_on.first());
        let environment = json!({ "hardware": device, "libs": { "kforge": result.kforge } });
        json!({
            "status": status, "log": log.unwrap_or_default(), "environment": environment, "timestamp": finished_at,
            "correctness": correctness, "performance": performance,
        })
    };
    // A cause is that of all kernels, also of the reference.
    let has_failed = kernel.is_none_or(|kernel| kernel.verdict == VerdictWord::Fail);
    let shapes: Vec<&ShapeResult> =
        kernel.into_iter().flat_map(|kernel| &kernel.variants).flat_map(|variant| &variant.shapes).collect();
    let mut out = vec![];
    for (uuid, workload) in workloads {
        let found = shapes.iter().find(|shape| shape.shape == *uuid);
        out.push(match (found.map(|shape| shape.verdict), result.cause) {
            (Some(VerdictWord::Pass), _) => {
                let performance = performance(kernel, reference, uuid);
                let correctness = json!({ "worst_of_tolerance": found.and_then(|shape| shape.worst) });
                trace(uuid, workload, evaluation("PASSED", None, correctness, performance))
            }
            (Some(VerdictWord::Fail), _) => {
                let log = found.map(|shape| log_of(shape));
                trace(
                    uuid,
                    workload,
                    evaluation(found.map_or("RUNTIME_ERROR", |shape| status_of(shape)), log, Value::Null, Value::Null),
                )
            }
            (None, Some(Cause::NotCompiled)) if has_failed => {
                trace(uuid, workload, evaluation("COMPILE_ERROR", Some(reason()), Value::Null, Value::Null))
            }
            (None, Some(Cause::NoProgress)) if has_failed => {
                trace(uuid, workload, evaluation("TIMEOUT", Some(reason()), Value::Null, Value::Null))
            }
            (_, Some(Cause::TimedOut)) => {
                trace(uuid, workload, evaluation("TIMEOUT", Some(reason()), Value::Null, Value::Null))
            }
            (Some(VerdictWord::Unknown) | None, _) => return Err(reason()),
        });
    }
    Ok(out)
}

fn performance(kernel: Option<&KernelResult>, reference: Option<&KernelResult>, uuid: &str) -> Value {
    let ms = |kernel: &KernelResult| kernel.calls.iter().find(|calls| calls.shape == uuid)?.call_ns.map(|ns| ns / 1e6);
    let (own, other) = (kernel.and_then(ms), reference.and_then(ms));
    match own {
        None => Value::Null,
        Some(own) => json!({
            "latency_ms": own, "reference_latency_ms": other, "speedup_factor": other.map(|other| other / own),
        }),
    }
}

fn log_of(shape: &ShapeResult) -> String {
    let explained = shape.finding.as_ref().map(|finding| finding.explanation.clone());
    explained.or_else(|| shape.reason.clone()).unwrap_or_default()
}

fn status_of(shape: &ShapeResult) -> &'static str {
    match shape.finding.as_ref().and_then(|finding| finding.kind) {
        None => "INCORRECT_NUMERICAL",
        Some(FindingKind::WrongShape) => "INCORRECT_SHAPE",
        Some(FindingKind::WrongType) => "INCORRECT_DTYPE",
        Some(FindingKind::NoProgress) => "TIMEOUT",
        Some(FindingKind::Unwritten | FindingKind::OrderDependent | FindingKind::KeepsState) => "INCORRECT_NUMERICAL",
        Some(_) => "RUNTIME_ERROR",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn solution(language: &str, passes: bool) -> Solution {
        serde_json::from_value(json!({
            "name": "my-solution", "definition": "d", "author": "a",
            "spec": { "language": language, "entry_point": "pkg/main.py::kernel", "destination_passing_style": passes },
            "sources": [{ "path": "pkg/main.py", "content": "def kernel(x):\n    return x\n" }],
        }))
        .unwrap()
    }

    #[test]
    fn a_solution_is_a_kernel_whose_name_has_a_digest_of_its_contents() {
        let files = [("ref.py".to_string(), "def run(x): pass".to_string())].into();
        let reference = ReferencePackage { manifest: "M".into(), operator: "o".into(), files, left_out: vec![] };
        let python = solution("python", false);
        let name = python.unique_name();
        assert!(
            name.starts_with("my_solution_")
                && name == python.unique_name()
                && name != solution("triton", false).unique_name()
        );
        let device = ("sm_90".to_string(), "NVIDIA H200".to_string());
        let request = python.evaluation(&reference, Some(&device)).unwrap();
        let Candidate::Package(package) = request.candidate else { panic!() };
        assert!(package.manifest.contains(&format!("source = \"{name}/pkg/main.py::kernel\"")), "{}", package.manifest);
        assert!(package.manifest.contains("[kernel.reference]") && package.files.contains_key("reference/ref.py"));
        assert!(solution("cuda", false).evaluation(&reference, None).unwrap_err().contains("cuda"));
        let mut twice = solution("python", false);
        twice.sources.push(twice.sources[0].clone());
        assert!(twice.unusable().unwrap().contains("two sources have the path `pkg/main.py`"));
        assert!(solution("python", true).evaluation(&reference, None).unwrap_err().contains("destination"));
    }

    #[test]
    fn each_workload_has_a_trace_and_what_is_unknown_is_a_failed_task() {
        let shape = |uuid: &str, verdict: &str, kind: Option<&str>| {
            let finding = kind.map(|kind| json!({ "kind": kind, "explanation": "why" }));
            json!({ "shape": uuid, "verdict": verdict, "reason": "the reason", "emulated": false, "confirmed": true, "finding": finding })
        };
        let result = |cause: Option<&str>, shapes: Value| -> EvaluationResult {
            let kernel = |name: &str, ms: f64| {
                json!({
                    "kernel": name, "operator": "o", "target": "device", "verdict": "fail", "observed_on": ["NVIDIA H200"],
                    "variants": [{ "variant": "", "verdict": "fail", "shapes": shapes }],
                    "calls": [{ "shape": "a", "variant": "", "call_ns": ms * 1e6, "interval": null, "hand_over_ns": null, "calls": 9, "compared": 9 }],
                })
            };
            serde_json::from_value(json!({
                "verdict": "fail", "cause": cause, "reason": "all of it", "kernels": [kernel("s", 2.0), kernel("reference", 6.0)],
                "messages": [], "seconds": 1.0, "kforge": "0",
            }))
            .unwrap()
        };
        let workloads = ["a", "b"].map(|uuid| (uuid.to_string(), json!({ "uuid": uuid }))).into();
        let of = |cause, shapes| traces(&result(cause, shapes), ("d", "s"), &workloads, None);
        let status = |all: &[Value]| {
            all.iter().map(|t| t["evaluation"]["status"].as_str().unwrap().to_string()).collect::<Vec<_>>()
        };
        let mixed = of(Some("wrong"), json!([shape("a", "pass", None), shape("b", "fail", Some("raised"))])).unwrap();
        assert_eq!(status(&mixed), ["PASSED", "RUNTIME_ERROR"]);
        assert_eq!(mixed[0]["evaluation"]["performance"]["speedup_factor"], 3.0);
        assert_eq!(mixed[1]["evaluation"]["log"], "why");
        let wrong =
            of(Some("wrong"), json!([shape("a", "fail", None), shape("b", "fail", Some("wrong-shape"))])).unwrap();
        assert_eq!(status(&wrong), ["INCORRECT_NUMERICAL", "INCORRECT_SHAPE"]);
        assert_eq!(status(&of(Some("not-compiled"), json!([])).unwrap()), ["COMPILE_ERROR", "COMPILE_ERROR"]);
        assert_eq!(status(&of(Some("timed-out"), json!([])).unwrap()), ["TIMEOUT", "TIMEOUT"]);
        let unknown = json!([shape("a", "unknown", None), shape("b", "unknown", None)]);
        assert!(of(Some("no-progress"), unknown).is_err(), "it is the reference that makes no progress");
        assert_eq!(of(Some("undecided"), json!([shape("a", "unknown", None)])), Err("all of it".into()));
    }
}
