//! Packages for definitions of datasets in FlashInfer-Trace's form, which SOL-ExecBench extends: a contract and workloads in JSON, with a reference in Python, to a
//! manifest. Knows both forms; reads no files and runs nothing.
//!
//! | theirs | here |
//! |---|---|
//! | an axis `var`, `const`, `expr` | a dim that each shape binds; a derived dim |
//! | an input with the shape null | a param that each shape binds |
//! | a workload | a shape with the role `bench`, named by its uuid |
//! | inputs that are `random`, `scalar` | drawn; bound by the shape |
//! | inputs that are `safetensors` | the tensor of the file, at that shape |
//! | inputs that are `custom` | made by the definition's own function, when the package is built |
//! | the tolerance of a workload | that of its shape |
//! | a solution in Python or Triton that returns its outputs | a baseline |
//! | a solution that kforge exported | a kernel |
//! | any other solution | left out, with the reason |
//! | the files themselves | kept as they are, so that they can be exported again without loss |

mod dataset;
mod definition;
mod json;
mod kernel;
mod manifest;
mod solution;
#[cfg(test)]
mod tests;

pub use dataset::{Faulty, Parts, Set, Stray, StrayReason, belongs, sets};
pub use definition::{Allowed, Axis, Definition, InputFrom, Spec, Workload};
pub use json::{Json, Malformed};
pub use kernel::kernel_text;
pub use manifest::{DefinitionRequest, ImportedDefinition, NotStored, SIDECAR, StoredInput, write_definition};
pub use solution::{KERNEL, Language, Solution, solution_folder};
