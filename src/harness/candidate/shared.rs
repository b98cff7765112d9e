//! The memory in which tensors lie while calls are timed, and the page by which calls are handed over. Both belong to a process that runs no code of the kernel.
//! Knows descriptors and words; moves nothing.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::memory_file::MemoryFile;

/// The number of words in the page.
pub const WORDS: usize = 512;
/// The word with the number of the call that the kernel's process waits for. It may be forged, and then only the kernel waits longer.
pub const READY: usize = 0;
/// The word with the number of the call that may begin: its inputs are complete.
pub const GO: usize = 8;
/// The word with the number of the last call that has ended. It may be forged: what is then not written counts as what the call gives.
pub const DONE: usize = 16;
/// The word with the number of a call that nobody waits for any more.
pub const GIVEN_UP: usize = 24;

/// The memory of a tensor.
#[derive(Debug, Clone)]
pub struct SharedTensor {
    /// Its descriptor: a memory file, or memory of a device that was exported.
    pub descriptor: Arc<OwnedFd>,
    /// The size of the memory, which may be larger than the tensor.
    pub bytes: u64,
}

/// The memory of all tensors of a problem, in their order, and the page.
#[derive(Debug, Clone)]
pub struct Shared {
    /// The tensors.
    pub tensors: Vec<SharedTensor>,
    /// The page: [`WORDS`] words of 64 bits.
    pub page: MemoryFile,
}

impl Shared {
    /// Every descriptor, to be inherited.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = &Arc<OwnedFd>> {
        self.tensors.iter().map(|tensor| &tensor.descriptor).chain([self.page.descriptor()])
    }
}
