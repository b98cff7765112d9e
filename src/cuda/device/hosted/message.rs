//! The messages from the verifier to the process of a launcher. The process answers with the same reports as every runner.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use kforge_harness::confine::Confinement;
use kforge_types::model::bound::{Buffer, Param};
use kforge_types::model::{Problem, Tensor};

/// The only argument of the process, as JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Start {
    /// The driver's library, if it was found.
    pub(super) libcuda: Option<PathBuf>,
    /// The confinement of the process.
    pub(super) keep: Confinement,
}

/// A buffer of a run, including canaries, in memory files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BufferFiles {
    /// The name of the buffer.
    pub(super) name: String,
    /// The descriptor of the sealed file with the contents before the run.
    pub(super) before: i32,
    /// The descriptor of the file for the contents after the run.
    pub(super) after: i32,
    /// The size of each file.
    pub(super) bytes: u64,
    /// The offset of the kernel's part.
    pub(super) offset: u64,
}

/// What the launcher receives about the problem. It contains no expected values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct LauncherProblem {
    /// The dims, in order of names.
    pub(super) dims: Vec<(String, i64)>,
    /// The params, in declared order.
    pub(super) params: Vec<Param>,
    /// The tensors, in declared order.
    pub(super) tensors: Vec<Tensor>,
    /// The workspaces, in declared order.
    pub(super) workspaces: Vec<Buffer>,
}

impl LauncherProblem {
    /// Creates it from a problem and a kernel's workspaces.
    pub(super) fn of(problem: &Problem, workspaces: &[Buffer]) -> Self {
        LauncherProblem {
            dims: problem.dims.iter().map(|(name, value)| (name.clone(), *value)).collect(),
            params: problem.params.clone(),
            tensors: problem.tensors.clone(),
            workspaces: workspaces.to_vec(),
        }
    }
}

/// The request to the process: a line on its standard input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Request {
    /// The descriptor of the library.
    pub(super) library: i32,
    /// The name of the launcher function.
    pub(super) function: String,
    /// The argument of the launcher.
    pub(super) asked: LauncherProblem,
    /// The buffers of each run. The runs are executed in order, on the same device memory.
    pub(super) runs: Vec<Vec<BufferFiles>>,
}
