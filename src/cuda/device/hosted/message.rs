//! The messages of the verifier to the process of a launcher. The process answers with the same reports as any runner.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use kforge_harness::confine::Confinement;
use kforge_types::model::bound::{Buffer, Param};
use kforge_types::model::{Problem, Tensor};

/// How it starts: its one argument, as JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Start {
    /// The driver's library, where it was found.
    pub(super) libcuda: Option<PathBuf>,
    /// What it keeps.
    pub(super) keep: Confinement,
}

/// A buffer of a run: the whole of it, canaries and all, in memory files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BufferFiles {
    /// Its name.
    pub(super) name: String,
    /// The descriptor of the file that holds it before: sealed.
    pub(super) before: i32,
    /// That of the file that it is left in.
    pub(super) after: i32,
    /// Bytes of both.
    pub(super) bytes: u64,
    /// Where the kernel's part begins.
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
    /// Of a problem and a kernel's workspaces.
    pub(super) fn of(problem: &Problem, workspaces: &[Buffer]) -> Self {
        LauncherProblem {
            dims: problem.dims.iter().map(|(name, value)| (name.clone(), *value)).collect(),
            params: problem.params.clone(),
            tensors: problem.tensors.clone(),
            workspaces: workspaces.to_vec(),
        }
    }
}

/// What it is to do: a line on its standard input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Request {
    /// The descriptor of the library.
    pub(super) library: i32,
    /// Its function that launches.
    pub(super) function: String,
    /// Its contents.
    pub(super) asked: LauncherProblem,
    /// Runs one after the other, on the same device memory: the buffers of each.
    pub(super) runs: Vec<Vec<BufferFiles>>,
}
