//! Compiles CUDA C++ to machine code and inspects machine code. For worker processes. Knows compilers and ELF, but no packages, plans or caches, and launches
//! kernels only in [`device`].

pub mod args;
mod attempts;
pub mod compile;
mod compiler_process;
mod compiler_server;
pub mod device;
mod elf;
mod fatbin;
mod fatbinary;
mod host_code;
pub mod inspect;
pub mod line_tables;
mod load;
mod log;
mod nvcc;
mod nvrtc;
pub mod shim;
mod stage;
pub mod triton;

pub use compile::{CudaCompileError, CudaCompiled, compile, compile_within};
pub use compiler_process::{kept_process, prepare};
pub use compiler_server::compiler_server_main;
pub use elf::{ElfError, SectionFault};
pub use fatbin::LibraryError;
pub use fatbinary::{FatbinaryError, fatbin, fatbin_within};
pub use inspect::{DisassemblyError, InspectError, inspect, inspect_within, listing_within};
pub use line_tables::compile_lined;
pub use log::tool_messages;
pub use nvcc::HOST_HEADER;
pub use shim::shim_headers;
pub use triton::compile_triton;

/// The code of this package that executes steps: the name, digest and size of each part, in the order of `parts.rs`.
pub const IMPLEMENTATION: &[(&str, [u8; 32], u64)] = include!(concat!(env!("OUT_DIR"), "/implementation.rs"));
