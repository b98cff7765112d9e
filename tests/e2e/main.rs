//! The checks that a build must pass, run with the real program in separate folders: no step is repeated, no input is forgotten, no result is trusted without
//! an observation, and accidents lose nothing. Only the `cpu` target runs here, on shapes of a few elements. Only `machine` compiles machine code, if a
//! toolchain is installed. No test uses the network.

mod accepted;
mod accidents;
mod again;
mod asked;
mod attacked;
mod calibrated;
mod certificate;
mod changed;
mod compared;
mod cub;
mod declared;
mod diagnosed;
mod edits;
mod fresh;
mod generated;
mod host_code;
mod hostile;
mod imported;
mod indecisive;
mod keys;
mod killed;
mod machine;
mod memory;
mod preprocessed;
mod processes;
mod project;
#[path = "../installed/python.rs"]
mod python;
mod random;
mod real_kernels;
mod released;
#[path = "../installed/compiler_survey.rs"]
mod compiler_survey;
#[path = "../installed/folders.rs"]
mod folders;
mod reworded;
mod rounds;
mod sample;
mod searched;
mod standing;
mod stored;
mod concurrent;
mod unconfined;
mod wrong;

/// These tests can run another kforge program, such as a released one.
const ACCEPTS_NAMED_PROGRAM: bool = true;
