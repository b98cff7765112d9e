//! Kernels with a launcher of their own: host code that is not ours shares a process, and the device's context, with whatever there is. So it gets a process to
//! itself, that is trusted with nothing: as on `cpu`, it has its inputs in memory files that nobody can write, leaves what it made in others, and has ended before
//! these are read. Nothing is timed: every clock in reach is the launcher's.
//!
//! | what | how |
//! |---|---|
//! | files | Landlock, before the driver is started: libraries, what the driver reads, the files of the devices |
//! | calls | seccomp, for every thread, once there is a context and before the library is loaded: no sockets, processes, signals to others, files made or removed |
//! | expectations, seeds | stay with the verifier |
//! | canaries, inputs | copied to the device and back by the process: who leaves them alone is shown to; who forges them can have gained nothing, since every output is compared whole |
//! | reports | add findings; `harness::reports` says why no report helps |
//!
//! A driver opens its devices when it likes, so that calls which open files cannot be refused: only Landlock keeps such a process from writing files.

mod abi;
mod message;
mod runner;
mod verify;

pub use runner::host_runner_main;
pub(super) use verify::verify;
