//! The worker process: its command line, its loop, which code executes which step, and the verifier of emulated kernels. Does not know packages, plans or
//! caches.

pub mod entry;
pub mod once;
pub mod serve;
pub mod steps;
#[cfg(any(debug_assertions, feature = "virtual-device"))]
pub mod virtual_device;

pub use entry::{Finders, Parts, WORDS, worker_main};
pub use once::{OnceLimits, Ready};
pub use steps::compiled;

/// The code of this package that executes steps: the name, digest and size of each part, in the order of `parts.rs`.
pub const IMPLEMENTATION: &[(&str, [u8; 32], u64)] = include!(concat!(env!("OUT_DIR"), "/implementation.rs"));
