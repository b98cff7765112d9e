//! The SIMT emulator: CUDA C++ compiled by the host's compiler and run thread by thread on coroutines (design, section 8).
//! Knows CUDA's semantics and who waits for whom; not operators, expectations or tolerances.
//!
//! [`build`] compiles a source with the headers of [`headers`] in front. [`run`] takes what a judge asks of a runner and reports what it saw; places in its
//! reports are offsets until [`lines`] resolves them. [`inspect`] reads what a binary says of its entries.

mod abi;
mod args;
mod block;
pub mod build;
mod core;
mod fault;
mod headers;
mod hooks;
mod image;
mod inspect;
mod job;
pub mod lines;
mod memory;
pub mod run;
mod shadow;
mod stack;
mod warp;
mod watch;

pub use abi::MAX_DYNAMIC_SHARED;
pub use headers::headers;
pub use inspect::inspect;
pub use memory::{Placement, placement};
pub use stack::STACK_BYTES;
