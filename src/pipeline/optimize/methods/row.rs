//! The form of a method in the data files. Knows TOML; the registry checks whether the data makes sense.
//!
//! | key | is |
//! |---|---|
//! | `id` | axis and name |
//! | `title` | a title in words |
//! | `priority` | its place within its axis, from 1; lower is tried first |
//! | `least` | the oldest architecture for which it makes sense; at least the oldest that the toolchain compiles for |
//! | `features` | what the hardware must have |
//! | `trigger` | when metrics support it; none if no metric can |
//! | `requires`, `unless` | facts that must hold, or must not |
//! | `conflicts` | methods that are not applied together with it |
//! | `signature` | what machine code shows it, in the form of `sass` in a manifest; or `"none"` |
//! | `unseen` | why there is no signature |
//! | `off` | what turning it off means |
//! | `advice` | a paragraph for the author of the kernel |
//! | `triton` | the same for the author of a kernel in Triton; none if the method has no form there, because the compiler decides, or nobody can |

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Fact, Feature, Trigger};
use kforge_types::model::SassPatterns;

/// A data file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) method: Vec<Row>,
}

/// A method in a data file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) priority: u32,
    pub(super) least: String,
    #[serde(default)]
    pub(super) features: Vec<Feature>,
    pub(super) trigger: Option<Trigger>,
    #[serde(default)]
    pub(super) requires: Vec<Fact>,
    #[serde(default)]
    pub(super) unless: Vec<Fact>,
    #[serde(default)]
    pub(super) conflicts: Vec<String>,
    pub(super) signature: SignatureRow,
    pub(super) unseen: Option<String>,
    pub(super) off: String,
    pub(super) advice: String,
    pub(super) triton: Option<String>,
}

/// `"none"`, or patterns.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum SignatureRow {
    Word(String),
    Patterns {
        #[serde(flatten)]
        common: SassPatterns,
        #[serde(flatten)]
        by_arch: BTreeMap<String, SassPatterns>,
    },
}
