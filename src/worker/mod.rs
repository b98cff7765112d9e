//! Who runs candidate code and who judges it: messages between processes, the emulator, buffers. Does not know packages, plans or caches.

pub mod execute;
pub mod message;
pub mod once;
pub mod pool;
pub mod serve;
pub mod stage;
pub mod task;

pub use execute::Executor;
pub use pool::{Pool, WorkerDied};
pub use task::Task;
