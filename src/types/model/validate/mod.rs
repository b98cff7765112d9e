//! Checks that involve several values: names across tables, and whether everything binds. Knows operators, kernels and targets; does not read TOML.

mod baseline;
mod kernel;
mod operator;
mod torch;
mod triton;

pub use kernel::written;
pub use operator::is_free_name;
pub(super) use operator::{identifier, operator};

use super::kernel::Kernel;
use super::package::Package;
use kforge_foundation::base::{Diagnostic, Severity};

/// Errors that involve several tables of a package. If `partial`, a typo may hide tables, and names of tables are not checked. `reported` are operators that
/// already have errors.
pub(super) fn package(package: &Package, partial: bool, reported: &[&str]) -> Vec<Diagnostic> {
    let named = |k: &&Kernel| !partial && !reported.contains(&k.operator.as_str());
    let names = package.kernels.iter().filter(named).flat_map(|k| kernel::tables(package, k));
    let of_kernels: Vec<Diagnostic> =
        names.chain(package.kernels.iter().flat_map(|k| kernel::kernel(package, k))).collect();
    // What kernels with errors serve is not known.
    let sound = !of_kernels.iter().any(|found| found.severity == Severity::Error);
    let unserved = package.operators.iter().filter(|_| sound).flat_map(|o| kernel::unserved(package, o));
    let unserved: Vec<Diagnostic> = unserved.collect();
    let baselines = if partial { vec![] } else { baseline::baselines(package) };
    of_kernels.into_iter().chain(unserved).chain(baselines).collect()
}
