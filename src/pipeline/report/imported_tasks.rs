//! What the import of a problem set found, as a document for programs. Knows names and places; reads no sources.

use std::collections::BTreeMap;

use serde::Serialize;

/// What `kforge import kernelbench --message-format json` prints, and the imports of other problem sets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ImportTasksDocument {
    /// Version of this format.
    pub format_version: u32,
    /// The problem set.
    pub set: String,
    /// The folder of the packages.
    pub folder: String,
    /// The tasks by path.
    pub tasks: Vec<TaskDocument>,
    /// The paths of candidates that are for none of the tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strangers: Vec<String>,
    /// Whether nothing was written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// What became of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TaskStatus {
    /// Its package was written, or would be without `--dry-run`.
    Imported,
    /// It cannot be imported.
    Refused,
    /// Its folder exists already, and nothing was written.
    Exists,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct TaskDocument {
    /// Its file, from the folder that was named.
    pub path: String,
    /// What became of it.
    pub status: TaskStatus,
    /// The name of its package.
    pub package: String,
    /// The folder of its package.
    pub folder: String,
    /// The level in its path.
    pub level: Option<u32>,
    /// The number in its name.
    pub number: Option<u32>,
    /// The rest of its name.
    pub name: String,
    /// The operator; none unless it was imported.
    pub operator: Option<String>,
    /// `train` or `eval`; none unless a module was imported.
    pub mode: Option<String>,
    /// The bytes that its reference needs at its own size, at least.
    pub reference_bytes: Option<u64>,
    /// Its shapes.
    pub shapes: Vec<TaskShapeDocument>,
    /// The kernels that were written from candidates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<CandidateDocument>,
    /// What must be known of it.
    pub findings: Vec<FindingDocument>,
    /// Why it cannot be imported.
    pub refused: Option<RefusalDocument>,
}

/// A candidate of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct CandidateDocument {
    /// Its file, from the folder that was named.
    pub path: String,
    /// The kernel.
    pub kernel: String,
}

/// A shape of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct TaskShapeDocument {
    /// `own`, `small` or `ragged`; in FlashInfer-Trace the uuid of a workload.
    pub name: String,
    /// Its dims.
    pub dims: BTreeMap<String, i64>,
}

/// Something that must be known of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct FindingDocument {
    /// `constant-output`, `below-tolerance`, `not-finite`, `random`, `low-floats`, `too-large`, `not-computed` or `no-small-shape`; of other sets also `workload`,
    /// `solution`, `inputs` or `tolerance`.
    pub kind: String,
    /// A sentence.
    pub message: String,
    /// The line of the task, from 1.
    pub line: Option<u32>,
}

/// Why a task cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct RefusalDocument {
    /// `import`, `reads-values`, `random`, `device`, `unsupported`, `form`, `malformed`, `syntax`, `error` or `time`.
    pub kind: String,
    /// A sentence.
    pub message: String,
    /// The line of the task, from 1.
    pub line: Option<u32>,
}
