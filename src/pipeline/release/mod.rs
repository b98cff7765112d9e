//! What moves from one machine to another, and how two states compare. Knows formats and their conditions; prints nothing and plans nothing.
//!
//! | file | does |
//! |---|---|
//! | [`artifact`] | the champions of a package as a release: its files, and whether what it claims is so |
//! | [`bundle`] | the contents of a bundle, and everything that must hold before kforge trusts it |
//! | [`archive`] | its form as a file |
//! | [`signature`] | signatures of bundles, and the keys that make them |
//! | [`allowed_signers`] | OpenSSH's file of keys that may sign |
//! | [`trust`] | whom a build trusts, and whether a signature counts |
//! | [`signed`] | the signed documents of imported bundles, in the home |
//! | [`signatures_list`] | signatures and trusted keys, for people and programs |
//! | [`committed`] | finds bundles in the repository |
//! | [`traces`], [`t4`] | verdicts and times in the forms of FlashInfer-Trace and of the autotuning community |
//! | [`trajectory`] | recorded attempts at rounds as training data: rewards, returns, filters, conversations |
//! | [`transfer`] | from answered questions to a bundle, and from a bundle into the index |
//! | [`evidence_list`] | the records that are held, for people and programs |
//! | [`provenance`] | where an accepted source comes from |
//! | [`revision`] | a revision of the repository in a separate folder |
//! | [`registry`] | where artifacts are published: OCI registries and folders |
//! | [`install_lock`] | what is installed in a folder of somebody who uses artifacts |
//! | [`comparison`], [`comparison_page`] | how champions of two states compare |
//! | [`history`] | champions over the bundles that git holds |
//! | [`affected`] | which kernels differ between the plans of two states |
//! | [`ci`] | the document of a run in CI |

pub mod affected;
pub mod allowed_signers;
pub mod archive;
pub mod artifact;
pub mod bindings;
pub mod bundle;
pub mod ci;
pub mod committed;
pub mod comparison;
pub mod comparison_page;
pub mod evidence_list;
pub mod history;
pub mod install_lock;
pub mod provenance;
mod error;
pub mod registry;
pub mod revision;
pub mod signature;
pub mod signatures_list;
pub mod signed;
pub mod t4;
pub mod trajectory;
pub mod traces;
pub mod transfer;
pub mod trust;
pub mod version;

pub use bundle::Bundle;
pub use committed::Committed;
pub use error::{ArchiveError, QuestionFault, Refused};

use serde_json::Value;

/// The names of this room's JSON Schemas, sorted.
pub const SCHEMAS: [&str; 13] = [
    "affected",
    "artifact",
    "artifact-kernels",
    "bundle",
    "ci",
    "comparison",
    "conversation",
    "history",
    "holdings",
    "install-lock",
    "signature",
    "trajectory",
    "trusted",
];

/// The JSON Schema with that name; none if this room has none.
pub fn schema(name: &str) -> Option<Value> {
    let schema = match name {
        "affected" => schemars::schema_for!(affected::Affected),
        "artifact" => schemars::schema_for!(artifact::Index),
        "artifact-kernels" => schemars::schema_for!(artifact::KernelsDocument),
        "bundle" => schemars::schema_for!(bundle::Document),
        "ci" => schemars::schema_for!(ci::CiReport),
        "comparison" => schemars::schema_for!(comparison::Comparison),
        "conversation" => schemars::schema_for!(trajectory::conversation::Conversation),
        "history" => schemars::schema_for!(history::History),
        "trajectory" => schemars::schema_for!(trajectory::Trajectory),
        "signature" => schemars::schema_for!(signatures_list::SignatureView),
        "trusted" => schemars::schema_for!(signatures_list::TrustedView),
        "install-lock" => install_lock::schema(),
        "holdings" => schemars::schema_for!(evidence_list::Holding),
        _ => return None,
    };
    Some(schema.to_value())
}

#[cfg(test)]
mod tests;
