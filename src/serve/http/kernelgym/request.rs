//! Requests of KernelGYM's clients, and what they ask of the service. Unknown fields are tolerated, as KernelGYM does.
//!
//! | field | here |
//! |---|---|
//! | `reference_code`, `kernel_code`, `entry_point` | a package: the operator of the reference, and the candidate as a kernel in PyTorch |
//! | `num_correct_trials`, `num_perf_trials`, `num_warmup` | checked and not used: kforge's own trials are more, and its timing states how many calls it took |
//! | `measure_performance`, `run_performance` | without them, only verification |
//! | `uuid`, `use_reference_cache`, `force_refresh` | not used: results are found by content, so none is that of another source. What another run could change runs again |

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::api::{Candidate, EvaluationRequest, Measure, PackageCandidate, Priority};
use crate::service::ReferencePackage;
use kforge_foundation::base::Digest;

/// The shortest and the longest source of a candidate, in bytes. A reference has the same longest.
const SOURCE: std::ops::RangeInclusive<usize> = 10..=100_000;

/// The folder of the candidate, and of the reference as a kernel.
pub(super) const REFERENCE: &str = "reference";

/// The class of a reference.
const MODEL: &str = "Model";

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
    #[serde(default, deserialize_with = "whole")]
    num_correct_trials: Option<u32>,
    #[serde(default, deserialize_with = "whole")]
    num_perf_trials: Option<u32>,
    #[serde(default, deserialize_with = "whole")]
    timeout: Option<u32>,
    #[serde(default, deserialize_with = "or_normal")]
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

/// A whole number, also as `300.0`; none for `null`.
fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    let Some(number) = Option::<f64>::deserialize(from)? else { return Ok(None) };
    let is_whole = number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number);
    if is_whole { Ok(Some(number as u32)) } else { Err(D::Error::custom(format!("{number} is not a whole number"))) }
}

/// A priority; the default for `null`.
fn or_normal<'de, D: Deserializer<'de>>(from: D) -> Result<Priority, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// A text as TOML.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
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
        let is_name = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        if self.entry_point.as_deref().is_some_and(|name| !is_name(name)) {
            return wrong("entry_point", "expected the name of a class");
        }
        Ok(())
    }

    /// The digest of what is asked for.
    pub(super) fn content(&self) -> Digest {
        let texts = (&self.reference_code, &self.kernel_code, &self.entry_point, self.backend, self.times());
        Digest::of(format!("{texts:?}").as_bytes())
    }

    /// The module of the reference. Its class is `Model` there, whatever its own name is.
    pub(super) fn reference(&self) -> String {
        let text = self.reference_code.as_deref().unwrap_or_default();
        match self.entry_point.as_deref() {
            None | Some(MODEL) => text.into(),
            Some(name) => format!("{text}\n\n{MODEL} = {name}\n"),
        }
    }

    /// The class of the candidate.
    fn class(&self) -> String {
        format!("{}New", self.entry_point.as_deref().unwrap_or(MODEL))
    }

    /// Whether times are asked for.
    fn times(&self) -> bool {
        self.measure_performance != Some(false) && self.run_performance != Some(false)
    }

    /// What it asks of the service, with the package of its reference. On a device, given by architecture and product, the
    /// reference is called as a kernel too, so that both have the same kind of time.
    pub(super) fn evaluation(
        &self,
        reference: &ReferencePackage,
        is_decoy: bool,
        device: Option<&(String, String)>,
    ) -> EvaluationRequest {
        let kernel = if is_decoy { DECOY } else { CANDIDATE };
        let mut manifest = reference.manifest.clone();
        let target = if device.is_some() { "device" } else { "cpu" };
        if let Some((arch, product)) = device {
            manifest += &format!("\n[targets.device]\narch = {}\ndevice = {}\n", quoted(arch), quoted(product));
        }
        let mut kernels = vec![(kernel, self.class())];
        let is_timed = device.is_some() && self.times();
        if is_timed {
            kernels.push((REFERENCE, MODEL.into()));
        }
        for (name, class) in &kernels {
            manifest += &format!(
                "\n[kernel.{name}]\noperator = {}\nlanguage = \"torch\"\ntargets = [\"{target}\"]\nsource = {}\n",
                quoted(&reference.operator),
                quoted(&format!("{name}/kernel.py::{class}"))
            );
            if is_timed && *name == kernel {
                // It allows everything, so that the kernels that calls launch are recorded.
                manifest += "policy = { own_share = 0 }\n";
            }
        }
        let mut files = reference.files.clone();
        files.insert(format!("{kernel}/kernel.py"), self.kernel_code.clone());
        if is_timed {
            files.insert(format!("{REFERENCE}/kernel.py"), self.reference());
        }
        EvaluationRequest {
            id: None,
            candidate: Candidate::Package(PackageCandidate { manifest, files, kernels: vec![] }),
            target: None,
            device: None,
            measure: if is_timed { Measure::Build } else { Measure::Verify },
            priority: self.priority,
            timeout_s: self.timeout,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request(with: &Value) -> Result<GymRequest, WrongField> {
        let mut value =
            json!({ "task_id": "a", "reference_code": "class Net: pass", "kernel_code": "class NetNew: pass" });
        value.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
        GymRequest::of(value)
    }

    #[test]
    fn what_pydantic_takes_is_taken() {
        let nulls = json!({ "priority": null, "backend": null, "timeout": null, "entry_point": null });
        let found = request(&nulls).unwrap();
        assert_eq!((found.priority, found.backend, found.timeout), (Priority::Normal, None, None));
        let found = request(&json!({ "timeout": 300.0, "num_perf_trials": 100 })).unwrap();
        assert_eq!((found.timeout, found.num_perf_trials), (Some(300), Some(100)));
        for odd in [json!(300.5), json!("300"), json!(-1), json!(1e300)] {
            assert!(request(&json!({ "timeout": odd })).is_err(), "{odd}");
        }
    }

    #[test]
    fn a_class_of_any_name_is_the_reference() {
        assert_eq!(request(&json!({})).unwrap().reference(), "class Net: pass");
        let named = request(&json!({ "entry_point": "Net" })).unwrap();
        assert_eq!(
            (named.reference().as_str(), named.class().as_str()),
            ("class Net: pass\n\nModel = Net\n", "NetNew")
        );
        for odd in ["", "1Net", "a b", "é", "a\u{7f}"] {
            assert_eq!(request(&json!({ "entry_point": odd })).unwrap_err().field, "entry_point", "{odd}");
        }
    }

    #[test]
    fn every_text_is_a_text_of_toml() {
        for text in ["a", "a\"b\\", "a\u{7f}\u{0}", "a\nb", "''' \"\"\"", "é"] {
            let read: toml::Table = toml::from_str(&format!("a = {}\n", quoted(text))).unwrap();
            assert_eq!(read["a"].as_str(), Some(text));
        }
    }
}
