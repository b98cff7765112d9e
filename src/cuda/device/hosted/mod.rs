//! Kernels with their own launcher: foreign host code shares its process, and the device's context, with everything in that process. So the launcher gets a process of
//! its own, which is trusted with nothing: as on `cpu`, its inputs are in memory files that no process can write, it leaves its outputs in others, and it has ended
//! before these are read. Nothing is timed: the launcher controls every clock within reach.
//!
//! | what | how |
//! |---|---|
//! | files | Landlock, before the driver is started: libraries, what the driver reads, the files of the devices |
//! | calls | seccomp, for every thread, once there is a context and before the library is loaded: no sockets, processes, signals to others, files made or removed |
//! | expected values, seeds | stay with the verifier |
//! | canaries, inputs | the process copies them to the device and back: an honest launcher is shown to leave them unchanged; a launcher that forges them gains nothing, since every output is compared whole |
//! | reports | add findings; `kforge_harness::reports` explains why no report improves a result |
//!
//! A driver may open its devices at any time, so calls that open files cannot be refused: only Landlock keeps such a process from writing files.

mod abi;
mod message;
mod runner;
mod verify;

pub use runner::host_runner_main;
pub(super) use verify::verify;
