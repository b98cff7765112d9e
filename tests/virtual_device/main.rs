//! Features that need a device, tested on the virtual device: selection with real decisions, pairs, attribution, evidence, expansion. Builds with debug
//! assertions include it, others need `--features virtual-device`. No test uses a network, a GPU or a toolchain.
#![cfg(any(debug_assertions, feature = "virtual-device"))]

mod ablated;
mod agreed;
mod baselined;
mod baselined_triton;
mod second_device;
mod bounded;
mod compared;
mod confirmed;
mod differences;
mod disassembled;
mod evidence;
mod explained;
mod exported;
mod forged;
mod gated;
mod growth;
mod history;
mod hung;
mod implausible;
mod in_torch;
mod lab;
mod leaders;
mod many;
mod own_inputs;
mod packaged;
mod packaged_again;
mod packaged_fatbins;
mod packaged_in_ci;
mod packaged_triton;
mod products;
#[path = "../e2e/project.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod project;
mod property;
mod published;
mod published_debian;
#[path = "../e2e/random.rs"]
mod random;
mod rebuilt_and_rerun;
#[path = "../remote/registry/server.rs"]
#[expect(dead_code, reason = "tests of the client use the rest of it")]
mod server;
#[path = "../installed/compiler_survey.rs"]
mod compiler_survey;
#[path = "../installed/python.rs"]
mod installed_python;
#[path = "../installed/folders.rs"]
mod folders;
mod refuted;
mod restored;
mod rounds;
mod scored;
mod searched;
mod selected;
mod split;
mod standing;
mod traced;
mod travel;
mod trusted;
mod tuned;
mod workflow;
#[path = "../cli/workflow_file.rs"]
mod workflow_file;

/// A released program has no virtual device, so these tests run the program that was built with them.
const ACCEPTS_NAMED_PROGRAM: bool = false;
