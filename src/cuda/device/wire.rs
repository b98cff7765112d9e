//! The requests to a runner that holds a device, and its answers: a line each, bytes through the exchange. Values only.
//!
//! The runner's host side is kforge's own and loads device code only, so its answers are trusted; a candidate reaches them only if the device can reach the memory of
//! the runner's process, which the probe reports ([`super::facts::DeviceFacts::reaches_host`]).

use serde::{Deserialize, Serialize};

use super::fault::Fault;
use kforge_types::model::bound::Launch;

/// How a runner is started: the word after `--device-runner`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Start {
    /// Where the driver's library lies.
    pub(super) libcuda: Option<std::path::PathBuf>,
    /// Where the exchange is.
    pub(super) exchange: ExchangeAddress,
    /// The process that starts it, with which it dies; none if a tool stands between.
    pub(super) parent: Option<u32>,
}

/// How a runner reaches the exchange.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ExchangeAddress {
    /// Under this number.
    Descriptor(i32),
    /// By this path: a tool that stands between need not hand descriptors on.
    Path(std::path::PathBuf),
}

/// A loaded module's name: pairs have two.
pub(super) type Slot = u8;

/// Which buffers a sequence of launches works on: those of one set, by their names.
pub(super) type Set = u32;

/// What happens to a buffer before each sample, outside the interval that is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Reset {
    /// Nothing: no kernel may change it, or none cares.
    Keep,
    /// What it was laid with is laid again: an answer that an earlier sample left is not there to be found.
    Renew,
}

/// What the kernel's part of a buffer is laid with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum BufferFill {
    /// Contents that are kept on the device, by their name.
    Contents(String),
    /// A byte over and over.
    Byte(u8),
}

/// How one buffer is laid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BufferLayout {
    /// Its name.
    pub(super) name: String,
    /// What the kernel's part holds.
    pub(super) with: BufferFill,
    /// What happens to that before each sample.
    pub(super) before: Reset,
}

/// What a buffer shows without being read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BufferSum {
    /// The sum of the kernel's part, salted.
    pub(super) sum: u64,
    /// Bytes around it that are not the canary.
    pub(super) spoilt: u64,
}

/// How one sample is taken.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct SampleRequest {
    /// The module.
    pub(super) slot: Slot,
    /// The buffers.
    pub(super) set: Set,
    /// Whether the L2 cache is emptied before.
    pub(super) cold: bool,
    /// Sequences of launches in one graph, each after what happens before a sample; 0 for none: launched one by one.
    pub(super) copies: u32,
    /// Whether a graph holds only what happens before a sample, without launches: its time is subtracted.
    pub(super) bare: bool,
    /// Whether the same launches ran on the same buffers just before, so that caches hold what they can and a hot sample needs no other run first.
    pub(super) warm: bool,
}

/// The request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Ask {
    /// Load a binary of this many bytes, and look up its entries by symbol.
    Load {
        /// Under which name.
        slot: Slot,
        /// Bytes in the exchange.
        bytes: u64,
        /// Each entry as launches spell it, and its symbol.
        entries: Vec<(String, String)>,
    },
    /// Wait for all, and unload.
    Unload {
        /// Which.
        slot: Slot,
    },
    /// Have a buffer.
    Allocate {
        /// In which set.
        set: Set,
        /// Its name.
        name: String,
        /// Its whole size, canaries included.
        bytes: u64,
        /// Where in it the kernel's part begins.
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
    /// Give kept contents back.
    Drop {
        /// Which.
        contents: String,
    },
    /// Lay buffers of a set: canaries around, and in the kernel's part what is stated.
    Lay {
        /// Which set.
        set: Set,
        /// The byte around.
        canary: u8,
        /// The buffers.
        buffers: Vec<BufferLayout>,
    },
    /// Fill a `__constant__` symbol from a buffer's own part.
    Constant {
        /// In which module.
        slot: Slot,
        /// The symbol as the binary spells it.
        symbol: String,
        /// From which set.
        set: Set,
        /// The buffer.
        name: String,
        /// How many bytes.
        bytes: u64,
    },
    /// State the launches of a module.
    Launches {
        /// Which module's.
        slot: Slot,
        /// What.
        launches: Vec<Launch>,
    },
    /// Run them once, and wait.
    Run {
        /// Which module's.
        slot: Slot,
        /// On what.
        set: Set,
    },
    /// Read a whole buffer into the exchange.
    Read {
        /// In which set.
        set: Set,
        /// Its name.
        name: String,
    },
    /// Say of buffers what they show without being read.
    Show {
        /// In which set.
        set: Set,
        /// Their names.
        names: Vec<String>,
        /// The byte that should be around them.
        canary: u8,
        /// What sums are salted with.
        salt: u64,
    },
    /// Take samples, one after another.
    Time {
        /// Which.
        shots: Vec<SampleRequest>,
    },
    /// Say how much memory of the device is free now.
    Free,
    /// Free all buffers, and all modules; kept contents stay.
    Clear,
    /// Forget all buffers and modules; memory of the former is kept for buffers of the same sizes, poisoned, up to this many bytes.
    Rest {
        /// How many.
        keep: u64,
    },
    /// Several, one after another: the answer is that of the last. What comes after one that cannot be met is not begun.
    All {
        /// Which: of those before the last none that has more to answer than that it is done.
        asks: Vec<Ask>,
    },
}

impl Ask {
    /// What the time that it takes is counted as.
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
            // What takes longest gives it its name: what the candidate itself does, else what was waited for.
            Ask::All { asks } => {
                let phases = || asks.iter().map(Ask::phase);
                phases().find(|phase| ["run", "time"].contains(phase)).or_else(|| phases().next_back()).unwrap_or("all")
            }
        }
    }
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    /// It has started, or was asked for it: the device's free memory.
    Ready {
        /// Bytes.
        free: u64,
    },
    /// Done.
    Done,
    /// So many bytes are in the exchange.
    Bytes {
        /// How many.
        bytes: u64,
    },
    /// What buffers show, in the order asked.
    Shown {
        /// One a buffer.
        shown: Vec<BufferSum>,
    },
    /// Nanoseconds of each sample, in the order asked.
    Times {
        /// The samples.
        ns: Vec<f64>,
    },
    /// The driver's error. The runner ends after it, unless it says no more than that a launch was refused.
    Fault(Fault),
    /// It cannot be done, by no fault of the candidate's.
    Refused {
        /// Why.
        why: String,
    },
}
