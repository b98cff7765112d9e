//! Requests of KernelGYM's clients, and what they ask of the service. Unknown fields are tolerated, as KernelGYM does.
//!
//! | field | here |
//! |---|---|
//! | `reference_code`, `kernel_code`, `entry_point` | a package: the operator of the reference, and the candidate as a kernel in PyTorch |
//! | `num_correct_trials`, `num_perf_trials`, `num_warmup` | checked and not used: kforge's own trials are more, and its timing states how many calls it took |
//! | `measure_performance`, `run_performance` | without them, only verification |
//! | `uuid`, `use_reference_cache`, `force_refresh` | not used: results are found by content, so no result is ever old |

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::api::{Candidate, EvaluationRequest, Measure, PackageCandidate, Priority};
use crate::service::ReferencePackage;
use kforge_foundation::base::Digest;

/// The shortest and the longest source of a candidate, in bytes. A reference has the same longest.
const SOURCE: std::ops::RangeInclusive<usize> = 10..=100_000;

/// The folder of the candidate, and of the reference as a kernel.
pub(super) const REFERENCE: &str = "reference";

/// The name of the candidate.
pub(super) const CANDIDATE: &str = "candidate";

/// The name of a candidate that is a decoy. Its result shows it by that name, so that it needs no other record.
pub(super) const DECOY: &str = "decoy";

/// What a candidate is said to be written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Backend {
    Cuda,
    Triton,
}

/// A request for one evaluation.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct GymRequest {
    pub(super) task_id: String,
    #[serde(default)]
    pub(super) reference_code: Option<String>,
    pub(super) kernel_code: String,
    #[serde(default)]
    toolkit: Option<String>,
    /// If it is missing, a candidate may be of any.
    #[serde(default)]
    pub(super) backend: Option<Backend>,
    #[serde(default)]
    num_correct_trials: Option<u32>,
    #[serde(default)]
    num_perf_trials: Option<u32>,
    #[serde(default)]
    timeout: Option<u32>,
    #[serde(default)]
    priority: Priority,
    #[serde(default)]
    entry_point: Option<String>,
    #[serde(default)]
    measure_performance: Option<bool>,
    #[serde(default)]
    run_performance: Option<bool>,
}

/// The request for a workflow.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct WorkflowRequest {
    #[serde(default)]
    pub(super) workflow: Option<String>,
    pub(super) payload: Map<String, Value>,
    #[serde(default)]
    pub(super) task_id: Option<String>,
}

/// The request for several evaluations.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct GymBatch {
    #[serde(default)]
    pub(super) batch_id: Option<String>,
    pub(super) tasks: Vec<Value>,
}

/// What a field of a request must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WrongField {
    pub(super) field: &'static str,
    pub(super) expected: String,
}

impl GymRequest {
    /// Reads a request.
    pub(super) fn of(value: Value) -> Result<GymRequest, WrongField> {
        let request: GymRequest =
            serde_json::from_value(value).map_err(|error| WrongField { field: "body", expected: error.to_string() })?;
        request.check()?;
        Ok(request)
    }

    fn check(&self) -> Result<(), WrongField> {
        let wrong = |field, expected: &str| Err(WrongField { field, expected: expected.into() });
        if !(1..=100).contains(&self.task_id.chars().count()) {
            return wrong("task_id", "expected 1 to 100 characters");
        }
        if !SOURCE.contains(&self.kernel_code.len()) {
            return wrong("kernel_code", "expected 10 to 100000 bytes");
        }
        let within = |value: Option<u32>, least: u32, most: u32| value.is_none_or(|n| (least..=most).contains(&n));
        if !within(self.num_correct_trials, 1, 20) {
            return wrong("num_correct_trials", "expected 1 to 20");
        }
        if !within(self.num_perf_trials, 1, 1000) {
            return wrong("num_perf_trials", "expected 1 to 1000");
        }
        if !within(self.timeout, 10, 3600) {
            return wrong("timeout", "expected 10 to 3600 seconds");
        }
        if self.toolkit.as_deref().is_some_and(|toolkit| toolkit != "kernelbench") {
            return wrong("toolkit", "expected `kernelbench`");
        }
        if self.reference_code.is_none() {
            return wrong("reference_code", "expected a module with `Model`, `get_inputs` and `get_init_inputs`");
        }
        if self.reference_code.as_ref().is_some_and(|code| code.len() > *SOURCE.end()) {
            return wrong("reference_code", "expected no more than 100000 bytes");
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if self.entry_point.as_deref().is_some_and(|name| name.is_empty() || !name.chars().all(is_name)) {
            return wrong("entry_point", "expected the name of a class");
        }
        Ok(())
    }

    /// The digest of what is asked for.
    pub(super) fn content(&self) -> Digest {
        let texts = (&self.reference_code, &self.kernel_code, &self.entry_point, self.backend, self.times());
        Digest::of(format!("{texts:?}").as_bytes())
    }

    /// The class of the candidate.
    fn class(&self) -> String {
        format!("{}New", self.entry_point.as_deref().unwrap_or("Model"))
    }

    /// Whether times are asked for.
    fn times(&self) -> bool {
        self.measure_performance != Some(false) && self.run_performance != Some(false)
    }

    /// What it asks of the service: the id under which the task is kept, and the package of its reference. On a device, given by architecture and product, the
    /// reference is called as a kernel too, so that both have the same kind of time.
    pub(super) fn evaluation(
        &self,
        id: String,
        reference: &ReferencePackage,
        is_decoy: bool,
        device: Option<&(String, String)>,
    ) -> EvaluationRequest {
        let text = |text: &str| Value::from(text).to_string();
        let kernel = if is_decoy { DECOY } else { CANDIDATE };
        let mut manifest = reference.manifest.clone();
        let target = if device.is_some() { "device" } else { "cpu" };
        if let Some((arch, product)) = device {
            manifest += &format!("\n[targets.device]\narch = {}\ndevice = {}\n", text(arch), text(product));
        }
        let mut kernels = vec![(kernel, self.class())];
        let is_timed = device.is_some() && self.times();
        if is_timed {
            kernels.push((REFERENCE, "Model".into()));
        }
        for (name, class) in &kernels {
            manifest += &format!(
                "\n[kernel.{name}]\noperator = {}\nlanguage = \"torch\"\ntargets = [\"{target}\"]\nsource = {}\n",
                text(&reference.operator),
                text(&format!("{name}/kernel.py::{class}"))
            );
            if is_timed && *name == kernel {
                // It allows everything, so that the kernels that calls launch are recorded.
                manifest += "policy = { own_share = 0 }\n";
            }
        }
        let mut files = reference.files.clone();
        files.insert(format!("{kernel}/kernel.py"), self.kernel_code.clone());
        if is_timed {
            files.insert(format!("{REFERENCE}/kernel.py"), self.reference_code.clone().unwrap_or_default());
        }
        EvaluationRequest {
            id: Some(id),
            candidate: Candidate::Package(PackageCandidate { manifest, files, kernels: vec![] }),
            target: None,
            device: None,
            measure: if is_timed { Measure::Build } else { Measure::Verify },
            priority: self.priority,
            timeout_s: self.timeout,
        }
    }
}
