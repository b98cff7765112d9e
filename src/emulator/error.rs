//! Errors in a binary, in its launches, and in what they need from the system.

use std::io;

use kforge_foundation::base::count;
use kforge_types::record::{Finding, FindingKind, LaunchField, LaunchPart};

use super::abi::MAX_DYNAMIC_SHARED;

/// Why a binary cannot be read as one that kforge compiled.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The bytes are not a shared object.
    #[error("the binary is not a shared object: {0}")]
    NotShared(object::Error),
    /// A symbol that states an entry's parameters has no bytes.
    #[error("`{0}` is not in any section")]
    NoSection(String),
    /// The binary has fewer entries.
    #[error("the binary has no entry {0}: it was compiled with fewer")]
    NoEntry(usize),
}

/// Why buffers cannot be mapped.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// The address space for the buffers cannot be reserved.
    #[error("cannot reserve {bytes} bytes for buffers: {source}")]
    Reserve {
        /// Size of all buffers and the gaps between them, in bytes.
        bytes: usize,
        /// The error of the system.
        source: io::Error,
    },
    /// A buffer cannot be mapped.
    #[error("cannot map the buffer `{name}` of {bytes} bytes from descriptor {fd}: {source}")]
    Buffer {
        /// The buffer.
        name: String,
        /// Its size in bytes.
        bytes: u64,
        /// The descriptor of its file.
        fd: i32,
        /// The error of the system.
        source: io::Error,
    },
    /// There are more arrays of addresses than reserved space.
    #[error("no space was reserved for `{0}`")]
    NoRoom(String),
    /// An array of addresses cannot be mapped.
    #[error("cannot place `{name}`: {source}")]
    Place {
        /// The name of the array.
        name: String,
        /// The error of the system.
        source: io::Error,
    },
}

/// Why an entry does not take the arguments of a launch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// There are more or fewer arguments than parameters.
    #[error("`{entry}` takes {}, the launch passes {passed}", count(*.takes, "parameter"))]
    Count {
        /// The entry.
        entry: String,
        /// The number of its parameters.
        takes: usize,
        /// The number of arguments.
        passed: usize,
    },
    /// An argument differs from its parameter in size or kind.
    #[error("argument {number} of `{entry}` is {what} ({}), the parameter {expected} of {}{}", count(*.size, "byte"), count(*.parameter, "byte"), if *.wants_null { "; a null pointer is `{ null = true }`" } else { "" })]
    Mismatch {
        /// The entry.
        entry: String,
        /// The argument's position, from 1.
        number: usize,
        /// What the argument is.
        what: String,
        /// The argument's size in bytes.
        size: u64,
        /// What the parameter is.
        expected: &'static str,
        /// The parameter's size in bytes.
        parameter: u32,
        /// Whether the argument is a scalar and the parameter a pointer.
        wants_null: bool,
    },
}

/// Why a launch is refused, as a device would refuse it.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The entry does not take its arguments.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// An array of addresses cannot be placed.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The launch fills a buffer that is read-only.
    #[error("a launch fills `{0}`, which is read-only")]
    ReadOnly(String),
    /// The launch names a buffer that does not exist.
    #[error("no buffer is named `{0}`")]
    NoBuffer(String),
    /// The launch names an entry that does not exist.
    #[error("the binary was not compiled with the entry `{0}`")]
    NoEntry(String),
    /// The binary lacks a symbol that is to be filled.
    #[error("the binary has no `__constant__` symbol `{0}`")]
    NoConstant(String),
    /// A buffer is larger than the symbol that it fills.
    #[error("`{buffer}` has {bytes} bytes, but the `__constant__` symbol `{symbol}` has only {room}")]
    ConstantTooSmall {
        /// The buffer.
        buffer: String,
        /// The buffer's size in bytes.
        bytes: usize,
        /// The symbol.
        symbol: String,
        /// The symbol's size in bytes.
        room: u64,
    },
    /// The launch has blocks with too many threads, or none.
    #[error("`{entry}` is launched with blocks of {block:?} threads; 1 to 1024 are possible, at most 64 along z")]
    Block {
        /// The entry.
        entry: String,
        /// Threads along x, y, z.
        block: [u32; 3],
    },
    /// The launch has blocks with more threads than the kernel's launch bounds allow. In the words of the inspection of a GPU target.
    #[error("entry `{entry}`: a block has {threads} threads, the kernel's launch bounds allow {most}")]
    Bounds {
        /// The entry.
        entry: String,
        /// Threads of a block.
        threads: u32,
        /// The launch bounds.
        most: u32,
    },
    /// The launch has a grid with too many blocks, or none.
    #[error("`{entry}` is launched with a grid of {grid:?} blocks; at most 2^31-1, 65535 and 65535 are possible")]
    Grid {
        /// The entry.
        entry: String,
        /// Blocks along x, y, z.
        grid: [u32; 3],
    },
    /// The launch requests too much shared memory.
    #[error("`{entry}` asks for {bytes} bytes of dynamic shared memory; at most {MAX_DYNAMIC_SHARED} are possible")]
    Shared {
        /// The entry.
        entry: String,
        /// The requested size in bytes.
        bytes: u64,
    },
}

impl LaunchError {
    /// The finding of a launch that is refused.
    pub(super) fn finding(&self) -> Finding {
        Finding { launch: self.part(), ..Finding::new(FindingKind::LaunchRefused, self.to_string()) }
    }

    /// The part of the launch that is at fault, if the manifest states it.
    fn part(&self) -> Option<LaunchPart> {
        match self {
            LaunchError::Argument(ArgumentError::Count { entry, .. }) => {
                Some(LaunchPart { entry: entry.clone(), argument: None, field: LaunchField::Args })
            }
            LaunchError::Argument(ArgumentError::Mismatch { entry, number, .. }) => Some(LaunchPart {
                entry: entry.clone(),
                argument: u32::try_from(*number).ok(),
                field: LaunchField::Args,
            }),
            LaunchError::Bounds { entry, .. } | LaunchError::Block { entry, .. } => {
                Some(LaunchPart { entry: entry.clone(), argument: None, field: LaunchField::Block })
            }
            _ => None,
        }
    }
}

/// Why a request cannot be served, through no fault of the kernel.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The binary cannot be read.
    #[error("cannot read the binary: {0}")]
    Read(io::Error),
    /// The binary is not one that kforge compiled.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// Buffers cannot be mapped.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The loader refuses the binary.
    #[error("cannot load the binary: {0}")]
    Load(String),
    /// The binary lacks a symbol that every binary has.
    #[error("the binary has no `{symbol}`: {why}")]
    NoSymbol {
        /// The symbol.
        symbol: String,
        /// The error of the loader.
        why: String,
    },
    /// A stack cannot be mapped.
    #[error("cannot map a stack: {0}")]
    Stack(io::Error),
    /// The table of calls cannot be protected.
    #[error("cannot protect the calls of the emulator from the kernel: {0}")]
    Protect(io::Error),
    /// A thread that is to run the candidate's code cannot be confined.
    #[error("cannot confine a thread of the kernel: {0}")]
    Confine(io::Error),
    /// An OS thread of the emulator ended.
    #[error("an OS thread of the emulator ended")]
    ThreadEnded,
    /// All OS threads of the emulator ended.
    #[error("the OS threads of the emulator ended")]
    ThreadsEnded,
}
