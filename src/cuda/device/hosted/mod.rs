//! Kernels with their own launcher. Untrusted host code shares its process, and the device's context, with everything in that process. Therefore the launcher
//! gets a separate process, which is trusted with nothing. As on `cpu`, its inputs are in memory files that no process can write, it writes its outputs to
//! other files, and it has ended before these are read. Nothing is timed, because the launcher controls every clock that it could be timed with.
//!
//! | what | how |
//! |---|---|
//! | files | Landlock, before the driver is started: only libraries, the files that the driver reads, and the device files |
//! | calls | seccomp, for all threads, between context creation and loading the library: no sockets, processes, signals to others, new or removed files |
//! | expected values, seeds | stay with the verifier |
//! | canaries, inputs | copied both ways by the process, to check honest launchers; forging them gains nothing, as every output is compared in full |
//! | reports | can only add findings; `kforge_harness::reports` explains why no report improves a result |
//!
//! A driver may open its devices at any time, so system calls that open files cannot be refused. Only Landlock keeps such a process from writing files.

mod abi;
mod message;
mod runner;
mod verify;

pub use runner::host_runner_main;
pub(super) use verify::verify;
