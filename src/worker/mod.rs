//! Who runs candidate code and who judges it: messages between processes, the emulator, buffers. Does not know packages, plans or caches.

pub mod cuda;
pub mod message;
