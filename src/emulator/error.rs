//! What can be wrong with a binary, its launches and what they need of the system.

use std::io;

use kforge_foundation::base::count;
use kforge_types::record::LaunchPart;

use super::abi::MAX_DYNAMIC_SHARED;

/// Why the bytes of a binary cannot be read as one that was compiled here.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// They are not a shared object.
    #[error("the binary is not a shared object: {0}")]
    NotShared(object::Error),
    /// A symbol that states an entry's parameters has no bytes.
    #[error("`{0}` is not in any section")]
    NoSection(String),
    /// It has fewer entries.
    #[error("the binary has no entry {0}: it was compiled with fewer")]
    NoEntry(usize),
}

/// Why buffers cannot be mapped.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// There is no room for them.
    #[error("cannot reserve {bytes} bytes for buffers: {source}")]
    Reserve {
        /// Bytes of all buffers and the gaps between them.
        bytes: usize,
        /// What the system says.
        source: io::Error,
    },
    /// A buffer cannot be mapped.
    #[error("cannot map the buffer `{name}` of {bytes} bytes from descriptor {fd}: {source}")]
    Buffer {
        /// The buffer.
        name: String,
        /// Its bytes.
        bytes: u64,
        /// The descriptor of its file.
        fd: i32,
        /// What the system says.
        source: io::Error,
    },
    /// More arrays of addresses than room was kept for.
    #[error("no space was reserved for `{0}`")]
    NoRoom(String),
    /// An array of addresses cannot be mapped.
    #[error("cannot place `{name}`: {source}")]
    Place {
        /// Which array.
        name: String,
        /// What the system says.
        source: io::Error,
    },
}

/// Why an entry does not take the arguments of a launch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// There are more or fewer than its parameters.
    #[error("`{entry}` takes {}, the launch passes {passed}", count(*.takes, "parameter"))]
    Count {
        /// The entry.
        entry: String,
        /// Its parameters.
        takes: usize,
        /// The arguments.
        passed: usize,
    },
    /// One has another size or kind than its parameter.
    #[error("argument {number} of `{entry}` is {what} ({}), the parameter {expected} of {}", count(*.size, "byte"), count(*.parameter, "byte"))]
    Mismatch {
        /// The entry.
        entry: String,
        /// The argument's position, from 1.
        number: usize,
        /// What the argument is.
        what: String,
        /// Its bytes.
        size: u64,
        /// What the parameter is.
        expected: &'static str,
        /// The parameter's bytes.
        parameter: u32,
    },
}

/// Why a launch is refused, as a device would.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The entry does not take its arguments.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// An array of addresses cannot be placed.
    #[error(transparent)]
    Map(#[from] MapError),
    /// It fills a buffer that may not be written.
    #[error("a launch fills `{0}`, which is read-only")]
    ReadOnly(String),
    /// It names a buffer that is not there.
    #[error("no buffer is named `{0}`")]
    NoBuffer(String),
    /// It names an entry that is not there.
    #[error("the binary was not compiled with the entry `{0}`")]
    NoEntry(String),
    /// The binary lacks a symbol to be filled.
    #[error("the binary has no `__constant__` symbol `{0}`")]
    NoConstant(String),
    /// A buffer is larger than the symbol that it fills.
    #[error("`{buffer}` has {bytes} bytes, but the `__constant__` symbol `{symbol}` has only {room}")]
    ConstantTooSmall {
        /// The buffer.
        buffer: String,
        /// Its bytes.
        bytes: usize,
        /// The symbol.
        symbol: String,
        /// The symbol's bytes.
        room: u64,
    },
    /// Its blocks have too many threads, or none.
    #[error("`{entry}` is launched with blocks of {block:?} threads; 1 to 1024 are possible, at most 64 along z")]
    Block {
        /// The entry.
        entry: String,
        /// Threads along x, y, z.
        block: [u32; 3],
    },
    /// Its grid has too many blocks, or none.
    #[error("`{entry}` is launched with a grid of {grid:?} blocks; at most 2^31-1, 65535 and 65535 are possible")]
    Grid {
        /// The entry.
        entry: String,
        /// Blocks along x, y, z.
        grid: [u32; 3],
    },
    /// It asks for too much shared memory.
    #[error("`{entry}` asks for {bytes} bytes of dynamic shared memory; at most {MAX_DYNAMIC_SHARED} are possible")]
    Shared {
        /// The entry.
        entry: String,
        /// The bytes.
        bytes: u64,
    },
}

impl LaunchError {
    /// The part of the launch that is at fault, where it is its arguments.
    pub(super) fn part(&self) -> Option<LaunchPart> {
        match self {
            LaunchError::Argument(ArgumentError::Count { entry, .. }) => {
                Some(LaunchPart { entry: entry.clone(), argument: None })
            }
            LaunchError::Argument(ArgumentError::Mismatch { entry, number, .. }) => {
                Some(LaunchPart { entry: entry.clone(), argument: u32::try_from(*number).ok() })
            }
            _ => None,
        }
    }
}

/// Why a request cannot be served: no fault of the kernel's.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The binary cannot be read.
    #[error("cannot read the binary: {0}")]
    Read(io::Error),
    /// It is none that was compiled here.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// Buffers cannot be mapped.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The loader refuses it.
    #[error("cannot load the binary: {0}")]
    Load(String),
    /// It lacks a symbol that every binary has.
    #[error("the binary has no `{symbol}`: {why}")]
    NoSymbol {
        /// The symbol.
        symbol: String,
        /// What the loader says.
        why: String,
    },
    /// A stack cannot be mapped.
    #[error("cannot map a stack: {0}")]
    Stack(io::Error),
    /// A thread of the emulator's own ended.
    #[error("an OS thread of the emulator ended")]
    ThreadEnded,
    /// All threads of the emulator's own ended.
    #[error("the OS threads of the emulator ended")]
    ThreadsEnded,
}
