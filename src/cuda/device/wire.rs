//! The requests to a runner that holds a device, and its answers: one line each, with bytes through the exchange. Values only.
//!
//! The runner's host side is kforge's own and loads only device code, so its answers are trusted. A candidate can forge them only if the device can reach the
//! memory of the runner's process, which the probe reports ([`super::facts::DeviceFacts::reaches_host`]).

use serde::{Deserialize, Serialize};

use super::facts::DeviceFacts;
use super::fault::Fault;
use kforge_harness::confine::Confinement;
use kforge_types::model::bound::Launch;

/// The argument that starts a runner, after `--device-runner`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Start {
    /// The path of the driver's library.
    pub(super) libcuda: Option<std::path::PathBuf>,
    /// The address of the exchange.
    pub(super) exchange: ExchangeAddress,
    /// The parent process, with which the runner dies; none if a tool starts the runner.
    pub(super) parent: Option<u32>,
    /// How the process confines itself before it loads the driver. None for a process that loads no candidate, that a tool starts, or that the user permits to
    /// run unconfined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) keep: Option<Confinement>,
}

/// How a runner reaches the exchange.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ExchangeAddress {
    /// By an inherited descriptor with this number.
    Descriptor(i32),
    /// By path: a tool that starts the runner may not pass descriptors on.
    Path(std::path::PathBuf),
}

/// The identifier of a loaded module: pairs use two.
pub(super) type Slot = u8;

/// The identifier of a set of buffers, on which a sequence of launches works.
pub(super) type Set = u32;

/// How a buffer is reset before each sample, outside the timed interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Reset {
    /// Not at all: kernels must not change it, or must restore it.
    Keep,
    /// It is laid again with its initial contents, so that a kernel cannot find the answer of an earlier sample.
    Renew,
}

/// The initial contents of the kernel's part of a buffer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum BufferFill {
    /// Contents that are kept on the device, by name.
    Contents(String),
    /// One repeated byte.
    Byte(u8),
}

/// The layout of one buffer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BufferLayout {
    /// The name of the buffer.
    pub(super) name: String,
    /// The contents of the kernel's part.
    pub(super) with: BufferFill,
    /// How the contents are reset before each sample.
    pub(super) before: Reset,
}

/// The result of checking a buffer on the device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BufferSum {
    /// The salted sum of the kernel's part.
    pub(super) sum: u64,
    /// Bytes around the kernel's part that are not the canary.
    pub(super) spoilt: u64,
}

/// The parameters of one sample.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct SampleRequest {
    /// The slot of the module.
    pub(super) slot: Slot,
    /// The set of buffers.
    pub(super) set: Set,
    /// Whether the L2 cache is emptied before the sample.
    pub(super) cold: bool,
    /// The number of sequences of launches in one graph, each after the resets before a sample; 0 to launch without a graph.
    pub(super) copies: u32,
    /// Whether a graph holds only the resets before a sample, without launches: its time is subtracted.
    pub(super) bare: bool,
    /// Whether the same launches ran on the same buffers just before, so that caches hold what they can and a hot sample needs no run to warm up.
    pub(super) warm: bool,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Ask {
    /// Load a binary of this many bytes, and look up its entries by symbol.
    Load {
        /// The slot of the module.
        slot: Slot,
        /// Bytes in the exchange.
        bytes: u64,
        /// Each entry as it is named in launches, and its symbol.
        entries: Vec<(String, String)>,
    },
    /// Wait for all work, and unload a module.
    Unload {
        /// The slot of the module.
        slot: Slot,
    },
    /// Allocate a buffer.
    Allocate {
        /// The set.
        set: Set,
        /// The name of the buffer.
        name: String,
        /// The whole size, including canaries.
        bytes: u64,
        /// The offset of the kernel's part.
        offset: u64,
        /// Bytes of the kernel's part.
        own: u64,
    },
    /// Keep contents from the exchange on the device, under a name.
    Keep {
        /// The name.
        contents: String,
        /// Bytes in the exchange.
        bytes: u64,
    },
    /// Drop kept contents.
    Drop {
        /// The name.
        contents: String,
    },
    /// Lay buffers of a set: canaries around, and the stated contents in the kernel's part.
    Lay {
        /// The set.
        set: Set,
        /// The canary byte.
        canary: u8,
        /// The buffers.
        buffers: Vec<BufferLayout>,
    },
    /// Fill a `__constant__` symbol from the kernel's part of a buffer.
    Constant {
        /// The slot of the module.
        slot: Slot,
        /// The symbol in the binary.
        symbol: String,
        /// The set.
        set: Set,
        /// The buffer.
        name: String,
        /// The number of bytes.
        bytes: u64,
    },
    /// Set the launches of a module.
    Launches {
        /// The slot of the module.
        slot: Slot,
        /// The launches.
        launches: Vec<Launch>,
    },
    /// Run the launches once, and wait.
    Run {
        /// The slot of the module.
        slot: Slot,
        /// The set of buffers.
        set: Set,
    },
    /// Read a whole buffer into the exchange.
    Read {
        /// The set.
        set: Set,
        /// The name of the buffer.
        name: String,
    },
    /// Check buffers on the device without reading them back.
    Show {
        /// The set.
        set: Set,
        /// The names of the buffers.
        names: Vec<String>,
        /// The expected byte around the kernel's part.
        canary: u8,
        /// The salt of the sums.
        salt: u64,
    },
    /// Take samples, in order.
    Time {
        /// The samples.
        shots: Vec<SampleRequest>,
    },
    /// Report the free memory of the device.
    Free,
    /// Free all buffers and modules; kept contents stay.
    Clear,
    /// Drop all buffers and modules. Memory of the buffers is kept for later buffers of the same sizes, poisoned, up to a limit.
    Rest {
        /// The limit in bytes.
        keep: u64,
    },
    /// Several requests, in order: the answer is that of the last. After a request that fails, the remaining ones are not started.
    All {
        /// The requests. Only the last one may have an answer other than done.
        asks: Vec<Ask>,
    },
}

impl Ask {
    /// The phase to which the time of the request is counted.
    pub(super) fn phase(&self) -> &'static str {
        match self {
            Ask::Load { .. } | Ask::Launches { .. } | Ask::Unload { .. } => "load",
            Ask::Allocate { .. } | Ask::Free | Ask::Clear | Ask::Rest { .. } => "allocate",
            Ask::Keep { .. } | Ask::Drop { .. } => "keep",
            Ask::Lay { .. } | Ask::Constant { .. } => "lay",
            Ask::Run { .. } => "run",
            Ask::Read { .. } => "read",
            Ask::Show { .. } => "show",
            Ask::Time { .. } => "time",
            // The phase of the longest part: runs and samples of the candidate, otherwise the request that was waited for.
            Ask::All { asks } => {
                let phases = || asks.iter().map(Ask::phase);
                phases().find(|phase| ["run", "time"].contains(phase)).or_else(|| phases().next_back()).unwrap_or("all")
            }
        }
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    /// The runner has started, or was asked for its free memory.
    Ready {
        /// Bytes of free memory.
        free: u64,
        /// What the system could not confine, when the runner has started.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        missing: Vec<String>,
        /// The device as the driver describes it to the runner, without the driver's version.
        device: Box<DeviceFacts>,
    },
    /// The request was executed.
    Done,
    /// This many bytes are in the exchange.
    Bytes {
        /// The number of bytes.
        bytes: u64,
    },
    /// The results of checking buffers, in the requested order.
    Shown {
        /// One per buffer.
        shown: Vec<BufferSum>,
    },
    /// Nanoseconds of each sample, in the requested order.
    Times {
        /// The samples.
        ns: Vec<f64>,
    },
    /// The driver's error. The runner ends after it, unless only a launch was refused.
    Fault(Fault),
    /// The request cannot be executed, for a reason other than the candidate.
    Refused {
        /// The reason.
        why: String,
    },
}
