//! What a judge asks of a runner that holds a device, and what that answers: a line each, bytes through the exchange. Values only.
//!
//! The runner's host side is kforge's own and loads device code only, so its answers are taken as they are; a candidate reaches them only by reaching the memory of
//! its process from the device, which the probe tells of ([`super::facts::DeviceFacts::reaches_host`]).

use serde::{Deserialize, Serialize};

use super::fault::Fault;
use crate::model::bound::Launch;

/// How a runner is started: the word after `--device-runner`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Start {
    /// Where the driver's library lies.
    pub(super) libcuda: Option<std::path::PathBuf>,
    /// Where the exchange is.
    pub(super) exchange: At,
    /// The process that starts it, with which it dies; none where a tool stands between.
    pub(super) parent: Option<u32>,
}

/// How a runner reaches the exchange.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum At {
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
pub(super) enum Before {
    /// Nothing: no kernel may change it, or none cares.
    Keep,
    /// What was written is written again.
    Restore,
    /// So many bytes from the start of the kernel's part are set to a byte: an answer that an earlier sample left is not there to be found.
    Set {
        /// The byte.
        byte: u8,
        /// How many.
        count: u64,
    },
}

/// How one sample is taken.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Shot {
    /// The module.
    pub(super) slot: Slot,
    /// The buffers.
    pub(super) set: Set,
    /// Whether the L2 cache is emptied before.
    pub(super) cold: bool,
    /// Sequences of launches in one graph; 0 for none: launched one by one.
    pub(super) copies: u32,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Ask {
    /// Load a binary of so many bytes, and look up its entries by symbol.
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
    /// Write a whole buffer from the exchange.
    Write {
        /// In which set.
        set: Set,
        /// Its name.
        name: String,
        /// What happens to the kernel's part of it before each sample.
        before: Before,
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
    /// Sum a whole buffer on the device.
    Checksum {
        /// In which set.
        set: Set,
        /// Its name.
        name: String,
    },
    /// Take samples, one after another.
    Time {
        /// Which.
        shots: Vec<Shot>,
    },
    /// Free all buffers, and all modules.
    Clear,
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    /// It has started: the device's free memory.
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
    /// A sum.
    Sum {
        /// The sum.
        sum: u64,
    },
    /// Nanoseconds of each sample, in the order asked.
    Times {
        /// The samples.
        ns: Vec<f64>,
    },
    /// The driver's error. The runner ends after it.
    Fault(Fault),
    /// It cannot be done, by no fault of the candidate's.
    Refused {
        /// Why.
        why: String,
    },
}
