//! Packages for task files of problem sets: from what a file says and what PyTorch showed of it to a manifest. Knows the form of `kernel.toml`; reads no files
//! and runs nothing.

mod contract;
mod facts;
mod findings;
mod fit;
mod manifest;
mod sizes;
#[cfg(test)]
mod tests;

pub use facts::{Constant, Refusal, TaskAnswer, TaskFacts, TaskSource};
pub use findings::{Finding, FindingKind, too_large};
pub(in crate::source::import) use manifest::operator_name;
pub use manifest::{ImportedShape, ImportedTask, Origin, TaskRequest, write_task};
