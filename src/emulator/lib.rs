//! The SIMT emulator: CUDA C++ compiled by the host's compiler and run thread by thread on coroutines (docs/design.md, section 8).
//! Knows CUDA's semantics and which thread waits for which; does not know operators, expected values or tolerances.
//!
//! [`compile`] compiles a source with the headers of [`headers`] in front. [`run`] executes the verifier's request to a runner and reports what it observed;
//! places in its reports are offsets until [`lines`] resolves them. [`inspect`] reads facts about the entries of a binary.
//!
//! # How a launch runs
//!
//! OS threads take blocks in ascending order and run one at a time. Within a block, a coroutine runs threads one after another in a loop; a thread keeps the
//! coroutine only if it waits. The last thread to reach a barrier or warp operation continues without switching. A block in which all threads wait for the
//! grid, or poll memory, stays resident (with its shared memory saved) while others run, so grid barriers, look-back and flags between blocks make progress.
//!
//! # Decisions and reasons
//!
//! | question | answer | reason |
//! |---|---|---|
//! | shared memory | thread-local variables, filled with a pattern | blocks run in parallel; `static`, `extern` and template arrays stay legal C++ |
//! | who meets at a barrier | threads that have not exited, at one barrier number in the source | as on compute capability 7.0 and later |
//! | who meets at a warp operation | lanes of the mask that have not exited, with one operation and mask | CUDA lets branches meet at `__syncwarp` |
//! | a shuffle from an absent lane | all bits set in one run, infinities of both signs in another; check builds report it beside a failure (`absent-lane`) | undefined in CUDA; the values are conspicuous also in maxima and minima |
//! | `__activemask`, `coalesced_threads` | lanes at the same place when no other lane can arrive | what hardware usually gives; CUDA promises nothing |
//! | what orders accesses | barriers, `__syncwarp`, launches, grid barriers, fence with atomic; not shuffles or votes | CUDA's memory model |
//! | volatile accesses of C++ | relaxed atomics in global memory, plain in shared memory | classic warp-synchronous code is reported |
//! | volatile accesses of PTX | relaxed atomics in every space | PTX's memory model |
//! | plain reads of a word before an atomic operation on it | no race with atomic writes (`watch::looks`) | what they read only decides what is tried |
//! | a vector load of elements that were partly written | not reported, unless none was written | which elements are used is not known |
//! | the carry flag of PTX | the thread's, from one statement to the next | nvcc keeps it between volatile statements |
//! | asynchronous copies | done at once, by the threads that request them | an order that CUDA allows |
//! | inline PTX | translated to C++ before compilation (`ptx`), as a whole statement or not at all | every access has its line and is watched |
//! | shared addresses of 32 bits | the low half of the generic address, whose high half is that of this OS thread's shared memory | their arithmetic and alignment are a device's |
//! | sums of matrix instructions | in double, rounded once | a device's order is its own; this is at least as exact |
//! | split barriers, pipelines of a block | words in memory (`kf_mbarrier.h`) that threads poll | no support by the scheduler; ordinary fences and atomics |
//! | `cuda::std` | the host's standard library under another name | the same specification |
//! | cub's primitives of blocks and warps | the toolkit's own headers (`cccl`) | their order of operations and their memory are a device's |
//! | launch bounds | a call at the start of the body compares them with the block (`bounds`) | the bounds may depend on a template's parameters |
//! | static shared memory | at most 48 KiB in one function, else the source does not compile | what CUDA has everywhere |
//! | dynamic shared memory | at most 227 KiB, else the launch is refused | the most that any target has; a smaller target refuses by itself |
//! | dependent launches | begin when the kernel before them has ended | an order that CUDA allows; a missing wait is not detected |
//! | grids sized for the device | [8 multiprocessors of 2 blocks](kforge_types::model::grid::EMULATED) | few blocks, so that each takes several turns |
//! | tensor maps | not emulated: a kernel that takes one as a parameter does not run | the driver encodes them |
//! | host code, kernel launches | compile, are never run, and report it if a kernel executes them | a source may contain its launcher |
//! | host code that does not compile here | left out, if no entry needs it (`host_code`) | its headers are those of a project that may not be here |
//! | a source that only CUDA compiles | entries that report what is missing, and where (`foreign`) | unknown; a source's own mistakes stay errors |
//! | threads that spin | yield after some polls, or when a time slice ends in the binary's own code | plain builds see no loads |
//! | stuck forever (`no-progress`) | thousands of rounds of polling in which nothing was written, met or left | nothing can change any longer |
//! | the same value, stored by lanes of one warp in one instruction | no race (`watch::stores` compares the values) | CUDA: one of the stores is performed, it is undefined which |
//! | alignment of accesses | checked in both builds by the compiler's checks; in a plain build only where a source may change the type of a pointer (`pointers`) | a device faults, x86-64 does not; checks slow loops down |
//! | a bad address in a plain build | reported from a handler on a separate stack; nothing more runs | the process cannot be trusted afterwards, but reports |
//! | more stack than [`STACK_BYTES`] | not emulated | CUDA allows 512 KiB of local memory per thread |
//!
//! * Barriers: shared memory is filled at the start of a block. Two barriers on one line have different numbers. Check builds report threads that exited before
//!   a barrier (`exited-before-barrier`).
//! * Order: within a block, a fence with an atomic access orders what the fence covers for the thread that finds it at the address (`handover`). Between
//!   blocks, it orders one block after another, which may miss races but reports no false one.
//! * Volatile: classic warp-synchronous code fails with a message that hardware may pass it, unless the source is compiled with
//!   `KFORGE_WARP_SYNCHRONOUS` defined, as a check build.
//! * Asynchronous copies: other threads have to wait for them, or race. A thread that reads its own copy too early is not detected.
//! * Stuck: all OS threads have to poll without progress. A long run by itself is not reported; endless loops without polling end by the caller's time limit.
//!
//! Check builds separate shared variables by unused bytes. An access that reaches further, into another variable, is detected only if the array's bounds show
//! it. Writes of different threads to parts of one element of a buffer do not conflict, but only the last write is remembered.

mod abi;
mod args;
mod asked;
mod assembly;
mod block;
mod bounds;
mod cccl;
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
mod host_code;
mod image;
mod inspect;
mod job;
mod known_headers;
mod launches;
pub mod lines;
mod memory;
pub mod messages;
mod pointers;
mod prelude;
mod ptx;
pub mod run;
mod shadow;
mod source_lines;
mod stack;
pub mod unincluded;
mod warp;
mod watch;

pub use abi::MAX_DYNAMIC_SHARED;
pub use cccl::is_cub;
pub use claims::{Claim, Claimant, Incredible, credible};
pub use error::{ArgumentError, ImageError, LaunchError, MapError, RunError};
pub use headers::headers;
pub use image::keeps_state;
pub use inspect::inspect;
pub use memory::{Placement, gaps, placement};
pub use source_lines::SourceLines;
pub use stack::STACK_BYTES;

/// The code of this package that executes steps: the name, digest and size of each part, in the order of `parts.rs`.
pub const IMPLEMENTATION: &[(&str, [u8; 32], u64)] = include!(concat!(env!("OUT_DIR"), "/implementation.rs"));
