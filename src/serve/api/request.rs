//! What a client sends: evaluations.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::table::Table;
use super::task::{ErrorAnswer, Task};

/// The most evaluations of one batch.
pub const MOST_IN_BATCH: usize = 1000;

/// The request for one evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvaluationRequest {
    /// The id of the task: 1 to 100 letters, digits and `.`, `_`, `-`, `:`. The server makes one if it is missing. An id names one content: the same id with
    /// another content is refused, and with the same content it is the same task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100), regex(pattern = r"^[A-Za-z0-9._:-]{1,100}$"))]
    pub id: Option<String>,
    /// What is evaluated.
    pub candidate: Candidate,
    /// For a candidate of an operator: `cpu`, the default, or an architecture such as `sm_90a`. For a package: the name of one of its targets; all of them if
    /// it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    pub target: Option<String>,
    /// The product whose measurements count, such as `NVIDIA H200`, for a candidate of an operator; that of the server's device if it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    pub device: Option<String>,
    /// What is done.
    #[serde(default)]
    pub measure: Measure,
    /// Which tasks come first.
    #[serde(default)]
    pub priority: Priority,
    /// The seconds that the evaluation may take from its start, without its time in the queue; the server's limit by default, and never more than that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub timeout_s: Option<u32>,
}

/// What is evaluated.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Candidate {
    /// A kernel for an operator that the request states.
    Operator(Box<OperatorCandidate>),
    /// A package: its manifest and its files.
    Package(PackageCandidate),
}

/// The two keys of a candidate.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", field_identifier)]
enum Kind {
    Operator,
    Package,
}

/// Reads an object with one of the two keys, and nothing else: neither a list nor a key without a value.
struct CandidateVisitor;

impl<'de> Visitor<'de> for CandidateVisitor {
    type Value = Candidate;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object with `operator` or `package`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Candidate, A::Error> {
        let mut found = None;
        while let Some(kind) = map.next_key::<Kind>()? {
            found = Some(match (kind, found) {
                (Kind::Operator, None) => Candidate::Operator(map.next_value()?),
                (Kind::Package, None) => Candidate::Package(map.next_value()?),
                (Kind::Operator, Some(Candidate::Operator(_))) => return Err(A::Error::duplicate_field("operator")),
                (Kind::Package, Some(Candidate::Package(_))) => return Err(A::Error::duplicate_field("package")),
                (_, Some(_)) => {
                    // Its value is read, so that the message is about the candidate.
                    map.next_value::<IgnoredAny>()?;
                    return Err(A::Error::custom("one of `operator` and `package` is expected, and it has both"));
                }
            });
        }
        found.ok_or_else(|| A::Error::custom("missing field `operator` or `package`: one of them is expected"))
    }
}

impl<'de> Deserialize<'de> for Candidate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(CandidateVisitor)
    }
}

/// A kernel for an operator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OperatorCandidate {
    /// The operator: the keys of an `operator` table of `kernel.toml` as JSON, such as `dims`, `inputs`, `outputs`, `reference`, `tolerance` and `shapes`.
    /// The order of `inputs`, `outputs` and `params` counts, as in a manifest.
    pub operator: Table,
    /// The language of the source.
    #[serde(default)]
    pub language: Language,
    /// The text of the source.
    pub source: String,
    /// The entry of every launch that names none; in PyTorch, what is called: a class of modules, a module or a function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// The launches in order: the keys of a `launch` table of `kernel.toml` as JSON, such as `grid`, `block` and `args`. None in PyTorch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub launch: Vec<Table>,
    /// Other keys of the `kernel` table, such as `workspace`, `tune`, `flags` or `call`. The order of tunables counts.
    #[serde(default, skip_serializing_if = "Table::is_empty")]
    pub kernel: Table,
    /// The `toolchain` table; `{ "cuda": "system" }` is the server's own CUDA.
    #[serde(default, skip_serializing_if = "Table::is_empty")]
    pub toolchain: Table,
    /// Further files beside the source, such as headers or a reference in Python: text by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
}

/// A package.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PackageCandidate {
    /// The text of its `kernel.toml`.
    pub manifest: String,
    /// Its other files: text by path.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// The kernels that are evaluated, by name; all of them if it is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<String>,
}

/// The language of a source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Language {
    /// CUDA C++.
    #[default]
    Cuda,
    /// Triton.
    Triton,
    /// PyTorch.
    Torch,
}

/// What is done with a candidate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// It is compiled and verified.
    #[default]
    Verify,
    /// It is timed at its bench shapes as well, on a device.
    Bench,
    /// All that `kforge build` does: champions are selected, confirmed in a process of their own, and compared with baselines; calls of kernels in PyTorch are
    /// timed.
    Build,
}

/// Which tasks come first. No task waits for ever: for each seven evaluations that begin while all three wait, four are of high priority, two of normal and one
/// of low.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// After others.
    Low,
    /// The default.
    #[default]
    Normal,
    /// Before others.
    High,
}

impl Priority {
    /// Every priority, the highest first.
    pub const ALL: [Priority; 3] = [Priority::High, Priority::Normal, Priority::Low];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Priority::Low => "low",
            Priority::Normal => "normal",
            Priority::High => "high",
        }
    }
}

/// The request for several evaluations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// The evaluations. Each is accepted or refused by itself.
    #[schemars(length(min = 1, max = 1000))]
    pub evaluations: Vec<EvaluationRequest>,
}

/// The answer to a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BatchAnswer {
    /// One entry for each evaluation, in order.
    pub tasks: Vec<BatchEntry>,
}

/// What became of one evaluation of a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BatchEntry {
    /// It was accepted.
    Task(Box<Task>),
    /// It was refused.
    Error(ErrorAnswer),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidate_is_an_object_with_one_of_two_keys() {
        let of = |text: &str| serde_json::from_str::<Candidate>(text).map_err(|error| error.to_string());
        let package = r#"{"manifest":""}"#;
        let found = of(&format!(r#"{{"package":{package}}}"#)).unwrap();
        assert!(matches!(&found, Candidate::Package(package) if package.manifest.is_empty()), "{found:?}");
        assert_eq!(of(&serde_json::to_string(&found).unwrap()).as_ref(), Ok(&found));
        for (text, said) in [
            (format!("[null,{package}]"), "invalid type: sequence, expected an object with `operator` or `package`"),
            ("null".into(), "invalid type: null, expected an object with `operator` or `package`"),
            (
                format!(r#"{{"operator":null,"package":{package}}}"#),
                "invalid type: null, expected struct OperatorCandidate",
            ),
            (format!(r#"{{"package":{package},"operator":null}}"#), "it has both"),
            (format!(r#"{{"package":{package},"package":{package}}}"#), "duplicate field `package`"),
            (r#"{"kernel":{}}"#.into(), "unknown field `kernel`, expected `operator` or `package`"),
            ("{}".into(), "missing field `operator` or `package`"),
        ] {
            let error = of(&text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
