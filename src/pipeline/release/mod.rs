//! What moves from one machine to another, and how two states compare. Knows formats and their conditions; prints nothing and plans nothing.
//!
//! | file | does |
//! |---|---|
//! | [`bundle`] | the contents of a bundle, and everything that must hold before kforge trusts it |
//! | [`archive`] | its form as a file |
//! | [`committed`] | finds bundles in the repository |
//! | [`trajectory`] | a recorded attempt at a round, as training data |
//! | [`transfer`] | from answered questions to a bundle, and from a bundle into the index |
//! | [`evidence_list`] | the records that are held, for people and programs |
//! | [`provenance`] | where an accepted source comes from |
//! | [`revision`] | a revision of the repository in a separate folder |
//! | [`comparison`] | how champions of two states compare |

pub mod archive;
pub mod bundle;
pub mod committed;
pub mod comparison;
pub mod evidence_list;
pub mod provenance;
mod error;
pub mod revision;
pub mod trajectory;
pub mod transfer;

pub use bundle::Bundle;
pub use committed::Committed;
pub use error::{ArchiveError, QuestionFault, Refused};

use serde_json::Value;

/// The names of this room's JSON Schemas, sorted.
pub const SCHEMAS: [&str; 4] = ["bundle", "comparison", "holdings", "trajectory"];

/// The JSON Schema with that name; none if this room has none.
pub fn schema(name: &str) -> Option<Value> {
    let schema = match name {
        "bundle" => schemars::schema_for!(bundle::Document),
        "comparison" => schemars::schema_for!(comparison::Comparison),
        "trajectory" => schemars::schema_for!(trajectory::Trajectory),
        "holdings" => schemars::schema_for!(evidence_list::Holding),
        _ => return None,
    };
    Some(schema.to_value())
}

#[cfg(test)]
mod tests;
