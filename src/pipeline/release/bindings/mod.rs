//! Loaders: programs in C, Rust and Python that launch the champions of an artifact without kforge. Generated from the launch descriptions; knows formats and
//! languages, and writes no file.
//!
//! | file | does |
//! |---|---|
//! | [`expressions`] | expressions with types, constants filled in |
//! | [`plan`](mod@plan) | functions, champions and launches, in no language |
//! | `variant_plan` | the launches of a variant |
//! | [`render`] | expressions as texts of each language |
//! | [`names`] | identifiers that every language has |
//! | [`c`] | one header |
//! | [`rust`] | a crate with cudarc |
//! | [`python`] | a folder for Hugging Face `kernels` |
//! | `wheel` | a wheel of the same package |
//! | [`variant`] | what such a folder says of itself |
//! | [`card`] | the page of a repository that `kernels` loads |
//!
//! | decision | because |
//! |---|---|
//! | everything that a loader does follows from the plan; languages only spell it | one place decides, and the languages cannot differ |
//! | every check and every tensor map comes before the first launch | an error never leaves half of a sequence behind |
//! | equal artifacts give equal bytes | whoever doubts a loader generates it again |

pub mod c;
pub mod card;
pub mod error;
pub mod expressions;
pub mod names;
pub mod plan;
pub mod python;
pub mod render;
pub mod rust;
mod text;
pub mod variant;
mod variant_plan;
mod wheel;

use std::collections::BTreeMap;

pub use error::BindingsError;
pub use plan::{Plan, plan};
pub use render::Language;
pub use wheel::wheel;

/// The files of a loader by their names.
///
/// # Errors
/// A template is wrong: a bug.
pub fn files(plan: &Plan, language: Language) -> Result<BTreeMap<String, Vec<u8>>, BindingsError> {
    match language {
        Language::C => {
            let (name, text) = c::header(plan)?;
            Ok([(name, text.into_bytes())].into())
        }
        Language::Python => {
            let files = python::package(plan)?;
            Ok(files.into_iter().map(|(name, bytes)| (format!("{}/{name}", python::FOLDER), bytes)).collect())
        }
        Language::Rust => rust::krate(plan),
    }
}
