//! Who runs candidate code and who judges it: messages between processes, the emulator, buffers. Does not know packages, plans or caches.

pub mod compare;
pub mod compiled;
pub mod compilers;
pub mod confine;
pub mod cuda;
pub mod emulator;
pub mod entry;
pub mod execute;
pub mod judge;
pub mod message;
pub mod once;
pub mod oracle;
pub mod pool;
pub mod runner;
pub mod serve;
pub mod stage;
mod system;
pub mod task;
mod turns;
#[cfg(any(debug_assertions, feature = "virtual-device"))]
pub mod virtual_device;

pub use entry::{Parts, worker_main};
pub use execute::Executor;
pub use once::OnceLimits;
pub use pool::{FOR_A_DEVICE, Pool, WorkerDied};
pub use task::Task;
