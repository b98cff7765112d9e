//! The verifier on `cpu`, and of kernels in PyTorch on every target: makes inputs, holds expected values, runs the candidate in a confined runner, and compares
//! after the runner has ended. Knows operators, trials and memory files. Never loads candidate code, and trusts nothing from a runner that would improve a result.
//!
//! | what | how |
//! |---|---|
//! | inputs | in sealed memory files, which no process can change |
//! | outputs, workspaces | in memory files of fixed size, filled with poison; one set for each run, in two patterns, so that an unwritten element holds both |
//! | around a buffer | canaries fill the rest of its file; a page without access is on one side, and the sides alternate |
//! | runs of a trial | threads forward, reversed, shuffled; every output of every run is compared in full |
//! | state between launches | of a binary with variables of its own: a launch on other inputs, and one on inputs that differ in one element, change no result |
//! | the runner | confined or not started, unless the user permits otherwise; one process per run, with that run's buffers; its group ends before read-back |
//! | kernels in PyTorch | a process of their own calls them many times (`torch`), on the processor or on a device (`place`) |
//! | call times of kernels in PyTorch | by the clock of a process that runs no code of them (`calls`), and in turn with another one (`call_pairs`) |
//! | kernels in Triton | Triton's interpreter runs them (`interpreter`), all runs of several trials in one process (`together`) |
//! | descriptors | sealed files are opened again for each run, so that not even a file offset passes from one run to the next |
//! | refused system calls | end the runner and become findings (`kforge_harness::confine`) |
//! | reports | can only add findings and text; a run without an end is a crash, a malformed report breaks the protocol; `reports` lists possible gains |
//! | "not emulated" | accepted only if the binary, which is read here but never loaded, or the launch can have caused it (`kforge_emulator::credible`) |
//! | the exit status | is the candidate's from the moment its code is loaded |
//! | time | by the worker's own clock; a time-out fails and is not remembered |

mod buffers;
pub mod call_pairs;
pub mod calls;
mod candidate;
mod interpreter;
mod near_inputs;
mod own_functions;
mod place;
mod runs;
mod step;
mod together;
mod torch;

#[cfg(any(debug_assertions, feature = "virtual-device"))]
pub(crate) use own_functions::OwnFunctions;
pub use runs::{EndedRunner, Launchable, run_candidate};
pub use step::run;
pub use torch::on_device;
#[cfg(any(debug_assertions, feature = "virtual-device"))]
pub(crate) use torch::stand_in;
