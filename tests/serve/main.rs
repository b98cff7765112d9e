//! `kforge serve`: a real process over real sockets, on target `cpu`.

mod batches;
mod browser;
mod cancel;
mod client;
mod document;
mod durable;
mod flashinfer_bench;
mod follow;
mod input;
mod kernelgym;
mod limits;
mod private;
mod python_client;
mod server;
mod slime;
mod tasks;
mod wear;
#[path = "../e2e/project.rs"]
#[expect(dead_code, reason = "the tests of builds use all of it")]
mod project;
#[path = "../installed/compiler_survey.rs"]
mod compiler_survey;
#[path = "../installed/folders.rs"]
mod folders;

/// These tests can run another kforge program, such as a released one.
const ACCEPTS_NAMED_PROGRAM: bool = true;
