//! Messages between the coordinator and a worker, and between a verifier and its runner.
//!
//! A worker is a `kforge worker` process. It reads a [`Request`] a line from its standard input and answers each with a [`Response`] line on its standard
//! output; `kforge worker --once SPEC IN OUT` does the same for one spec, with `IN` holding inputs by name and `OUT` receiving outputs by name. This is the one
//! seam for sandboxing, for "run just this again" and for remote execution.
//!
//! A verifier (a worker doing a verify step) starts a runner, `kforge worker --runner`, gives it a [`RunnerRequest`] and buffers as inherited file
//! descriptors, and believes nothing of the [`RunnerReport`] that would improve a result.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use kforge_foundation::base::worded;
use kforge_types::model::bound::{Constant, Launch};
use kforge_types::record::{Finding, Note, Spec, Verdict};

/// Where this machine keeps what a spec names by content. Never part of a key: that the contents match was checked before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places {
    /// Tool name (`nvrtc`, `nvrtc-builtins`, `nvcc`, `nvdisasm`, `cuobjdump`, `cuda-include`, `c++`, `python`) to absolute path.
    pub tools: BTreeMap<String, PathBuf>,
    /// What these read besides, outside the system's folders: files, or folders whole.
    #[serde(default)]
    pub read: Vec<PathBuf>,
    /// A folder for recomputable bytes shared by workers (expected outputs by digest), and its size limit in bytes.
    pub scratch: Option<(PathBuf, u64)>,
}

/// One step for a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// All that the step may see.
    pub spec: Spec,
    /// Inputs by name: a file each, or a folder for a tree. Colons in names become `-`.
    pub input: PathBuf,
    /// Where outputs go: a file each.
    pub output: PathBuf,
    /// Where tools are.
    pub places: Places,
    /// The UUID of the device to observe, for steps that observe one.
    pub device: Option<String>,
    /// Seconds after which the worker ends what it started.
    pub time_limit_s: u64,
    /// Seconds after which a run of the candidate is ended, from the start of its own process on.
    pub run_limit_s: u64,
    /// Bytes of memory a runner may take.
    pub memory_limit: u64,
    /// Bytes of memory compilers may take.
    pub compiler_memory: u64,
    /// Whether candidate code and compilers may run where the system cannot confine them.
    #[serde(default)]
    pub allow_unconfined: bool,
}

/// What a worker answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Response {
    /// It gave outputs, all files of the output folder.
    Done {
        /// As in [`kforge_engine::Ran`].
        verdict: Option<Verdict>,
        /// As in [`kforge_engine::Ran`].
        notes: Vec<Note>,
        /// As in [`kforge_engine::Ran`].
        summary: String,
        /// As in [`kforge_engine::Ran`].
        forget: bool,
    },
    /// This machine cannot.
    Unavailable {
        /// What is missing.
        why: String,
    },
    /// It needs a tool for which no path was given: a caller that can get the tool may ask again.
    NeedsTool {
        /// The tool, by the name in [`Places::tools`].
        tool: String,
        /// What it needs it for.
        why: String,
    },
    /// It could not be done.
    Failed {
        /// One line.
        message: String,
        /// The tool's message.
        notes: Vec<Note>,
    },
}

impl Response {
    /// With its words hidden, where words are.
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

/// Something that a kernel asked for and the emulator does not do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotEmulated {
    /// Which kind of thing.
    pub cause: Unemulated,
    /// What and where, for people: `mma.sync at line 41`.
    pub what: String,
}

/// Kinds of what the emulator does not do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unemulated {
    /// A construct, by the name that the binary holds.
    Construct(String),
    /// A thread that needs more stack than the emulator gives.
    Stack,
    /// More threads at once than there is room for.
    Threads,
}

/// A buffer handed to a runner as an inherited file descriptor of a memory file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedBuffer {
    /// Its name in the launches.
    pub name: String,
    /// The descriptor's number in the runner.
    pub fd: i32,
    /// Bytes the kernel may touch.
    pub bytes: u64,
    /// Bytes of one element, for indices in findings.
    pub element: u64,
    /// Extent and stride of each axis, in elements, for the words of findings; empty if it is not a tensor.
    pub axes: Vec<(u64, u64)>,
    /// Whether the kernel may write: otherwise the memory file is sealed against writing.
    pub writable: bool,
    /// Whether a read before a write of the kernel's own is one of uninitialised memory.
    pub poisoned: bool,
}

/// In which order the emulator starts and resumes threads.
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
    /// Whether `__device__` globals stay as the trial before left them, and buffers lie where they lay, as between launches on a device; else globals are
    /// as when the binary was loaded.
    pub goes_on: bool,
    /// Thread order.
    pub order: ThreadOrder,
    /// On which side of each buffer the guard page lies hard against it (plain builds): true after, false before.
    pub guard_after: bool,
    /// What shared memory is filled with at the start of a block.
    pub poison: u8,
}

/// What a runner is to do; the first line of its standard input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunnerRequest {
    /// The binary, as an inherited descriptor of a sealed memory file.
    pub binary_fd: i32,
    /// Entries in the order they were compiled with.
    pub entries: Vec<String>,
    /// Whether accesses are watched.
    pub check: bool,
    /// The launches, the same for every trial.
    pub launches: Vec<Launch>,
    /// `__constant__` symbols to fill.
    pub constants: Vec<Constant>,
    /// What to run, in order. A verifier asks for one only, so that no run can reach another's buffers.
    pub trials: Vec<RunnerTrial>,
    /// Threads of the host to use.
    pub threads: u32,
}

/// What a runner says, one a line on the report descriptor (its standard output). From [`RunnerReport::Loading`] on the candidate can forge these, so each can
/// only worsen a result: `reports` says how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunnerReport {
    /// It has confined itself. Comes first.
    Confined {
        /// What the system could not do.
        missing: Vec<String>,
    },
    /// The candidate's code is about to run: what is said so far is ours, what follows need not be.
    Loading,
    /// The candidate tried a system call that is refused, and the process ends.
    Attempted {
        /// Its number.
        call: i64,
    },
    /// Something wrong was seen in a trial.
    Finding {
        /// The trial's position.
        trial: u32,
        /// What.
        finding: Finding,
    },
    /// The kernel asked for something the emulator does not do.
    NotEmulated(NotEmulated),
    /// The kernel printed this.
    Printed {
        /// The text, capped.
        text: String,
    },
    /// A trial ended; without one for each trial the run is a crash.
    TrialDone {
        /// The trial's position.
        trial: u32,
    },
}
