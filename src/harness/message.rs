//! Messages between the coordinator and a worker, and between a verifier and its runner.
//!
//! A worker is a `kforge worker` process. It reads [`Request`]s from its standard input, one per line, and answers each with a [`Response`] line on its
//! standard output. `kforge worker --once SPEC IN OUT` does the same for one spec; `IN` holds inputs by name and `OUT` receives outputs by name. Sandboxing,
//! rerunning a single step and remote execution all use this interface.
//!
//! A verifier (a worker that executes a verify step) starts a runner, `kforge worker --runner`, and passes it a [`RunnerRequest`] and buffers as inherited file
//! descriptors. It believes nothing in a [`RunnerReport`] that would improve a result.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::hangs::HangMark;
use kforge_foundation::base::worded;
use kforge_types::model::bound::{Constant, Launch};
use kforge_types::record::{Finding, Note, Spec, Verdict};

/// Where this machine keeps the tools and files that a spec names by content. Never part of a key, because the contents were checked before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places {
    /// Tool names (`nvrtc`, `nvrtc-builtins`, `nvcc`, `nvdisasm`, `cuobjdump`, `cuda-include`, `c++`, `python`) with their absolute paths.
    pub tools: BTreeMap<String, PathBuf>,
    /// Other files and whole folders that the tools read, outside the system's folders.
    #[serde(default)]
    pub read: Vec<PathBuf>,
    /// A folder that workers share for bytes that can be computed again (expected outputs by digest), and its size limit in bytes.
    pub scratch: Option<(PathBuf, u64)>,
}

/// One step for a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Everything that the step may see.
    pub spec: Spec,
    /// The folder of inputs by name: a file each, or a folder for a tree. Colons in names become `-`.
    pub input: PathBuf,
    /// The folder for outputs: a file each.
    pub output: PathBuf,
    /// Where the tools are.
    pub places: Places,
    /// The UUID of the device to observe, for steps that observe one.
    pub device: Option<String>,
    /// The time in seconds after which the worker ends what it started.
    pub time_limit_s: u64,
    /// The time in seconds after which a run of the candidate is ended, counted from the start of its process.
    pub run_limit_s: u64,
    /// The memory limit in bytes of a runner.
    pub memory_limit: u64,
    /// The memory limit in bytes of compilers.
    pub compiler_memory: u64,
    /// Whether candidate code and compilers may run if the system cannot confine them.
    #[serde(default)]
    pub allow_unconfined: bool,
    /// Where the step's candidate is remembered if it times out; none for a step that runs no variant at a shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hang: Option<HangMark>,
    /// When the step was planned, as in [`kforge_engine::Job`].
    pub planned: SystemTime,
    /// Whether the worker only starts what a step for the device needs, so that the first such step does not wait for it. Executes nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warm_up: bool,
}

/// A worker's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Response {
    /// The step has outputs: all files in the output folder.
    Done {
        /// As in [`kforge_engine::Execution`].
        verdict: Option<Verdict>,
        /// As in [`kforge_engine::Execution`].
        notes: Vec<Note>,
        /// As in [`kforge_engine::Execution`].
        summary: String,
        /// As in [`kforge_engine::Execution`].
        forget: bool,
    },
    /// This machine cannot execute the step.
    Unavailable {
        /// What is missing.
        why: String,
    },
    /// The step needs a tool without a path. A caller that can get the tool may repeat the request.
    NeedsTool {
        /// The tool, by the name in [`Places::tools`].
        tool: String,
        /// Why the step needs it.
        why: String,
    },
    /// The step failed.
    Failed {
        /// One line.
        message: String,
        /// The tool's message.
        notes: Vec<Note>,
    },
}

impl Response {
    /// The same with its text hidden, when text is to be hidden.
    #[must_use]
    pub fn worded(self) -> Self {
        let all = |notes: Vec<Note>| notes.into_iter().map(Note::worded).collect();
        match self {
            Response::Done { verdict, notes, summary, forget } => Response::Done {
                verdict: verdict.map(Verdict::worded),
                notes: all(notes),
                summary: worded(summary),
                forget,
            },
            Response::Unavailable { why } => Response::Unavailable { why: worded(why) },
            Response::NeedsTool { tool, why } => Response::NeedsTool { tool, why: worded(why) },
            Response::Failed { message, notes } => Response::Failed { message: worded(message), notes: all(notes) },
        }
    }
}

/// A feature that a kernel used and that the emulator does not support.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotEmulated {
    /// The kind of the feature.
    pub cause: Unemulated,
    /// The feature and its place, as text for the user: `mma.sync at line 41`.
    pub what: String,
}

/// The kinds of features that the emulator does not support.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unemulated {
    /// A construct, by its name in the binary.
    Construct(String),
    /// More stack for a thread than the emulator provides.
    Stack,
    /// More threads at once than the emulator has room for.
    Threads,
}

/// A buffer passed to a runner as an inherited descriptor of a memory file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedBuffer {
    /// The name in the launches.
    pub name: String,
    /// The number of the descriptor in the runner.
    pub fd: i32,
    /// The number of bytes that the kernel may access.
    pub bytes: u64,
    /// The size of an element in bytes, for indices in findings.
    pub element: u64,
    /// The extent and stride of each axis, in elements, for the text of findings; empty if the buffer is not a tensor.
    pub axes: Vec<(u64, u64)>,
    /// Whether the kernel may write the buffer; otherwise the memory file is sealed against writing.
    pub writable: bool,
    /// Whether reading an element that the kernel has not written is a read of uninitialized memory.
    pub poisoned: bool,
}

/// The order in which the emulator starts and resumes threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThreadOrder {
    /// By ascending index.
    Forward,
    /// By descending index.
    Reversed,
    /// Shuffled from a seed.
    Random(u64),
}

/// One sequence of launches on one set of buffers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunnerTrial {
    /// Buffers of this trial.
    pub buffers: Vec<SharedBuffer>,
    /// Whether the state of the previous trial continues, as between launches on a device: `__device__` globals keep their values and buffers their addresses.
    /// Otherwise globals are as when the binary was loaded.
    pub goes_on: bool,
    /// Thread order.
    pub order: ThreadOrder,
    /// The side of each buffer that the guard page adjoins without a gap (plain builds): true for after, false for before.
    pub guard_after: bool,
    /// The byte that fills shared memory at the start of a block.
    pub poison: u8,
}

/// The task of a runner: the first line of its standard input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunnerRequest {
    /// The binary, as an inherited descriptor of a sealed memory file.
    pub binary_fd: i32,
    /// The entries, in the order in which they were compiled.
    pub entries: Vec<String>,
    /// Whether accesses are watched.
    pub check: bool,
    /// The launches, the same for every trial.
    pub launches: Vec<Launch>,
    /// `__constant__` symbols to fill.
    pub constants: Vec<Constant>,
    /// The trials to run, in order. A verifier requests only one, so that no run can access another run's buffers.
    pub trials: Vec<RunnerTrial>,
    /// The number of host threads to use.
    pub threads: u32,
}

/// A runner's report: one per line on the report descriptor (its standard output). From [`RunnerReport::Loading`] on, the candidate shares the process. The
/// system refuses the descriptor to its threads, and a report can only worsen a result; `reports` explains how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunnerReport {
    /// The runner has confined itself. Comes first.
    Confined {
        /// What the system could not do.
        missing: Vec<String>,
    },
    /// The candidate's code is about to run. Earlier reports are trusted; later ones may be forged.
    Loading,
    /// The candidate attempted a refused system call, and the process ends.
    Attempted {
        /// The number of the call.
        call: i64,
    },
    /// A finding in a trial.
    Finding {
        /// The trial's position.
        trial: u32,
        /// The finding.
        finding: Finding,
    },
    /// The kernel used a feature that the emulator does not support.
    NotEmulated(NotEmulated),
    /// The kernel printed a text.
    Printed {
        /// The text, capped.
        text: String,
    },
    /// A trial ended. If one of the trials has no such report, the run crashed.
    TrialDone {
        /// The trial's position.
        trial: u32,
    },
}
