//! The verifier on `cpu`: makes inputs, holds expected values, runs the candidate in a confined runner, and compares once that has ended. Knows operators, trials
//! and memory files; never loads candidate code, and trusts nothing from a runner that would improve a result.
//!
//! | what | how |
//! |---|---|
//! | inputs | in memory files sealed against writing: no process can change them |
//! | outputs, workspaces | in memory files of fixed size, poisoned; one set for each run, in two patterns, so that an unwritten element holds both |
//! | around a buffer | the rest of its file is canaries; on one side, in turn, lies a page that cannot be touched |
//! | runs of a trial | threads forward, reversed, shuffled; every output of every run is compared whole |
//! | the runner | confined, or not started unless that was permitted; a process of its own for each run, with the descriptors of that run's buffers only; ended with its group before anything is read back |
//! | descriptors | sealed files are opened anew for each run, so that not even an offset passes from one to the next |
//! | refused system calls | end the runner, and are findings (`kforge_harness::confine`) |
//! | reports | add findings and text; a missing end of a run is a crash, a malformed report breaks the protocol; what each claim could gain is in `reports` |
//! | "not emulated" | credible if the binary, which is read here and never loaded, or the launch can have caused it (`kforge_emulator::credible`) |
//! | the exit status | the candidate's, from the moment its code is loaded |
//! | time | the worker's own clock; a time-out fails and is not remembered |

mod buffers;
mod runs;
mod step;

pub use runs::{EndedRunner, Launchable, run_candidate};
pub use step::run;
