//! Packages for tasks of gpu-mode: a `task.yml` with cases, a reference in PyTorch that takes one value, and a function that makes that value. Knows the form of
//! both files and of `kernel.toml`; reads no files and runs nothing.
//!
//! | theirs | here |
//! |---|---|
//! | an integer argument of `generate_input` | a dim that each shape binds |
//! | a truth value, a number with a fraction, or a negative integer | a param that each shape binds |
//! | an argument with another value | its value in the first case, in [the adapter](adapter); cases with another one are left out by name |
//! | `seed` | drawn for each trial |
//! | a test, a benchmark | a shape; one with the role `bench` |
//! | tensors in what `generate_input` returns | inputs |
//! | a tensor of the result's form that the reference does not read | room for the result: the adapter allocates it in each call |
//! | `generate_input`, `ref_kernel` | called by the adapter, `kforge_task.py` |
//! | `make_match_reference(ref_kernel, rtol=..., atol=...)` | the tolerance |
//! | a submission | a kernel in PyTorch in a folder of its own, called by an adapter |
//! | the files themselves | kept as they are |

mod adapter;
mod arguments;
mod extents;
mod facts;
mod manifest;
mod task;
#[cfg(test)]
mod tests;

pub use adapter::{ADAPTER, KERNEL, SUBMISSION};
pub use arguments::{Arguments, arguments};
pub use facts::{Check, GpuModeAnswer, GpuModeFacts, GpuModeSource};
pub use manifest::{GpuModeRequest, ImportedGpuMode, kernel_tables, write_gpu_mode};
pub use task::{CaseValue, FileEntry, TaskYaml};
