//! The SIMT emulator: CUDA C++ compiled by the host's compiler and run thread by thread on coroutines (docs/design.md, section 8).
//! Knows CUDA's semantics and who waits for whom; not operators, expectations or tolerances.
//!
//! [`compile`] compiles a source with the headers of [`headers`] in front. [`run`] takes what a verifier asks of a runner and reports what it saw; places in its
//! reports are offsets until [`lines`] resolves them. [`inspect`] reads what a binary says of its entries.
//!
//! # How a launch runs
//!
//! Blocks are handed to OS threads in ascending order, one at a time each. Within a block a coroutine runs threads one after another in a loop and is kept by a thread
//! only when that thread waits. The last to come to a barrier or warp operation goes on without switching. A block in which all threads wait for the grid, or
//! poll memory, stays resident (its shared memory saved) while others run; so grid barriers, look-back and flags between blocks make progress.
//!
//! # What was decided, and why
//!
//! | question | answer | reason |
//! |---|---|---|
//! | shared memory | thread-local variables of the binary, filled with a pattern at the start of a block | blocks run in parallel; `static`, `extern` and template arrays stay legal C++ |
//! | who meets at a barrier | threads that have not left; by the barrier's number in the source, so two on one line differ | as on compute capability 7.0 and later; check builds report those that left before (`exited-before-barrier`) |
//! | who meets at a warp operation | lanes of the mask that have not left, with the same operation and mask | sites are not compared: CUDA lets branches meet at `__syncwarp` |
//! | a shuffle from an absent lane | all bits set | undefined in CUDA; a value that shows |
//! | `__activemask`, `coalesced_threads` | lanes that are at the same place when no other can come | what hardware usually gives; CUDA promises nothing |
//! | what orders accesses | barriers, `__syncwarp`, launches, grid barriers, fence with atomic; not shuffles or votes | CUDA's memory model. Within a block what a fence covers goes from the thread that leaves it at an address to the one that finds it there (`handover`); between blocks, from block to block, which may miss races and tells no false one |
//! | volatile accesses | relaxed atomics in global memory, plain in shared memory | classic warp-synchronous code fails, saying that hardware may pass it, unless the source is compiled with `KFORGE_WARP_SYNCHRONOUS` defined and checked |
//! | asynchronous copies | done at once, by the threads that ask | one of the orders CUDA allows. Other threads have to wait for them, or race; a thread that reads its own copy too early is not found |
//! | split barriers, pipelines of a block | words in memory (`kf_mbarrier.h`) on which threads poll | they need nothing of the scheduler, and their hand-overs are fences and atomics like any other |
//! | `cuda::std` | the host's standard library by another name | the same specification |
//! | shared memory's size | 48 KiB static in one function, else it does not compile; 227 KiB dynamic, else the launch is refused | what CUDA has everywhere; the most that any target has. A smaller target refuses by itself |
//! | dependent launches | begin when the kernel before them has ended | one of the orders CUDA allows; a kernel that does not wait for what it needs is not found |
//! | grids of the device's size | 8 multiprocessors that hold 2 blocks each ([`kforge_types::model::grid::EMULATED`]) | few blocks, so that each takes several turns |
//! | tensor maps | not emulated, whatever the kernel does with them: it is not run | the driver encodes them |
//! | host code, kernel launches | compile, are never run, and say so if a kernel executes them | a source may hold its launcher |
//! | what does not compile here but does with CUDA | a binary whose entries say what is missing, and where (`foreign`) | unknown, not an error; a source's own mistakes stay errors |
//! | threads that spin | give way after some polls, or when a time slice ends inside the binary's own code | plain builds see no loads; nothing is called stuck for having run long |
//! | stuck for ever | thousands of rounds of polling on all OS threads in which nothing was written, met or left | `no-progress`; endless loops without polling end by the caller's time limit |
//! | a bad address in a plain build | reported from a landing on a stack of its own; nothing more is run | the process is not to be trusted afterwards, but can say what happened |
//! | more stack than [`STACK_BYTES`] | not emulated | CUDA allows 512 KiB of local memory a thread |
//!
//! Check builds keep shared variables apart by unused bytes; an access that runs further, into another variable, is not seen unless the array's bounds tell. Parts of an
//! element of a buffer written by different threads are kept apart, but only the last is remembered.

mod abi;
mod args;
mod assembly;
mod block;
pub mod compile;
mod claims;
mod core;
mod error;
mod fault;
mod fiber;
mod foreign;
mod handover;
mod headers;
mod hint;
mod hooks;
mod image;
mod inspect;
mod job;
mod launches;
pub mod lines;
mod memory;
mod prelude;
pub mod run;
mod shadow;
mod stack;
mod warp;
mod watch;

pub use abi::MAX_DYNAMIC_SHARED;
pub use claims::{Claim, Claimant, Incredible, credible};
pub use error::{ArgumentError, ImageError, LaunchError, MapError, RunError};
pub use headers::headers;
pub use image::keeps_state;
pub use inspect::inspect;
pub use memory::{Placement, gaps, placement};
pub use stack::STACK_BYTES;

/// What of this package's code does steps: name, digest and size of each of its parts, in the order of `parts.rs`.
pub const IMPLEMENTATION: &[(&str, [u8; 32], u64)] = include!(concat!(env!("OUT_DIR"), "/implementation.rs"));
