//! What no single value shows: names across tables, and whether everything binds. Knows operators, kernels and targets; reads no TOML.

mod kernel;
mod operator;

pub(super) use operator::{identifier, operator};

use super::package::Package;
use crate::base::Diagnostic;

/// What is wrong across the tables of a package.
pub(super) fn package(package: &Package) -> Vec<Diagnostic> {
    package.kernels.iter().flat_map(|k| kernel::kernel(package, k)).collect()
}
