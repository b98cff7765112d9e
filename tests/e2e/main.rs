//! The checks that a build must pass, made with the real program in folders of their own: nothing done twice, nothing forgotten, nothing believed that was not
//! seen, and nothing lost by accidents. Only the `cpu` target runs here, on shapes of a few elements; `machine` alone compiles machine code, where a toolchain is
//! installed. No test uses the network.

mod accepted;
mod accidents;
mod again;
mod asked;
mod attacked;
mod calibrated;
mod compared;
mod edits;
mod generated;
mod hostile;
mod keys;
mod killed;
mod machine;
mod memory;
mod processes;
mod project;
#[path = "../installed/python.rs"]
mod python;
mod random;
mod released;
#[path = "../installed/compiler_survey.rs"]
mod compiler_survey;
mod reworded;
mod rounds;
mod sample;
mod searched;
mod concurrent;
mod unconfined;
mod wrong;

/// These tests can run another build of kforge, such as a released one.
const ACCEPTS_NAMED_PROGRAM: bool = true;
