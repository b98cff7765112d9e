//! The JSON Schemas of the formats that people write and of the documents that kforge writes for programs. Knows the types; writes no file.

use serde_json::Value;

use super::{
    Report, candidates, difference, explanation, imported, imported_tasks, kernel, kernelbench, metadata, method, score,
};
use crate::optimize::agents::Expected;
use kforge_engine::evidence::Record;
use kforge_numerics::reference;
use kforge_project::workspace::lockfile;
use kforge_types::model;
use kforge_types::record::event::Event;
use kforge_types::record::timing::BenchObserved;

/// The names of the schemas, sorted.
pub const NAMES: [&str; 19] = [
    "candidate",
    "correction",
    "diagnosis",
    "difference",
    "events",
    "evidence",
    "explanation",
    "import",
    "import-tasks",
    "kernel",
    "kernelbench",
    "lockfile",
    "manifest",
    "metadata",
    "method",
    "proposal",
    "report",
    "samples",
    "scores",
];

/// The schema with that name; none if it does not exist.
pub fn schema(name: &str) -> Option<Value> {
    let schema = match name {
        "manifest" => return Some(model::schema(&reference::names())),
        "correction" => return Some(Expected::Correction.schema().clone()),
        "diagnosis" => return Some(Expected::Diagnosis.schema().clone()),
        "proposal" => return Some(Expected::Proposal.schema().clone()),
        "candidate" => schemars::schema_for!(candidates::Remembered),
        "difference" => schemars::schema_for!(difference::DiffDocument),
        "events" => schemars::schema_for!(Event),
        "evidence" => schemars::schema_for!(Record),
        "explanation" => schemars::schema_for!(explanation::Document),
        "import" => schemars::schema_for!(imported::ImportDocument),
        "import-tasks" => schemars::schema_for!(imported_tasks::ImportTasksDocument),
        "kernel" => schemars::schema_for!(Vec<kernel::KernelDocument>),
        "kernelbench" => schemars::schema_for!(kernelbench::KernelBenchScores),
        "lockfile" => lockfile::schema(),
        "metadata" => schemars::schema_for!(metadata::Metadata),
        "method" => schemars::schema_for!(method::MethodDocument),
        "report" => schemars::schema_for!(Report),
        "samples" => schemars::schema_for!(BenchObserved),
        "scores" => schemars::schema_for!(score::Scores),
        _ => return None,
    };
    Some(schema.to_value())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_schema() {
        assert!(NAMES.is_sorted());
        for name in NAMES {
            let schema = schema(name).unwrap_or_else(|| panic!("{name}"));
            assert!(schema.get("$schema").is_some(), "{name} says which draft it is of");
        }
        assert_eq!(schema("nothing"), None);
    }
}
