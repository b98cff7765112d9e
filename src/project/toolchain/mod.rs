//! Finds, installs and fingerprints tools: the C++ compiler, Python, CUDA. Knows where tools come from and their contents, but not what is compiled with them.
//! Does not read the environment: callers pass search paths and variables.

pub mod cuda;
pub mod cxx;
mod digests;
mod error;
mod loader;
pub mod nsight;
pub mod pip;
pub mod probe;
pub mod processor;
pub mod python;
mod pip_failure;
mod run;
pub mod torch;
pub mod triton;

pub use cuda::{Cuda, CudaSpec, Group};
pub use cxx::Cxx;
pub use digests::DigestFile;
pub use error::{Error, UnpackError};
pub use nsight::Nsight;
pub use pip::Pip;
pub use pip_failure::{Cause, PipFailure};
pub use python::Python;

pub use run::{is_executable, on_path};

use digests::digest_of_sequence;
