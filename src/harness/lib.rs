//! Runs untrusted code and compares its results, independent of what executes it: messages, tasks, confinement, the pool of worker processes, references,
//! buffers and comparison. Does not know packages, plans or caches, nor what a device or the emulator does.

pub mod arguments;
pub mod baseline;
pub mod candidate;
pub mod compare;
pub mod compilers;
pub mod confine;
pub mod elsewhere;
pub mod execute;
pub mod fresh;
pub mod hangs;
pub mod layout;
pub mod machine;
pub mod memory_file;
pub mod message;
pub mod observer;
pub mod oracle;
pub mod pool;
pub mod problem_sets;
pub mod python_server;
pub mod reports;
pub mod runner;
pub mod stage;
pub mod system;
pub mod task;
pub mod trees;
pub mod triton;
mod device_slots;

pub use execute::WorkerExecutor;
pub use memory_file::MemoryFile;
pub use pool::{FOR_A_DEVICE, Pool, WorkerDied};
pub use reports::{RunSummary, hear};
pub use task::Task;

/// The code of this package that executes steps: the name, digest and size of each part, in the order of `parts.rs`.
pub const IMPLEMENTATION: &[(&str, [u8; 32], u64)] = include!(concat!(env!("OUT_DIR"), "/implementation.rs"));
