//! Remote caches that speak the Remote Execution API: a server of the test's own with every fault that a test asks for, a real server, and a proxy
//! that delays.

mod bots;
mod buildgrid;
mod builds;
mod casd;
mod certificates;
mod client;
mod executing;
mod execution;
#[cfg(any(debug_assertions, feature = "virtual-device"))]
#[path = "../virtual_device/lab.rs"]
#[expect(dead_code, reason = "the tests of devices use all of it")]
mod lab;
#[cfg(any(debug_assertions, feature = "virtual-device"))]
mod observing;
#[cfg(feature = "gpu-tests")]
mod on_gpu;
mod once;
mod plain;
#[path = "../e2e/project.rs"]
#[expect(dead_code, reason = "the tests of builds use all of it")]
mod project;
mod proxy;
mod proxy_tests;
mod registry;
mod server;
mod server_tests;
#[path = "../installed/compiler_survey.rs"]
mod compiler_survey;
#[path = "../installed/folders.rs"]
mod folders;
#[path = "../e2e/sample.rs"]
#[expect(dead_code, reason = "the tests of builds use all of it")]
mod sample;

/// These tests can run another kforge program, such as a released one.
const ACCEPTS_NAMED_PROGRAM: bool = true;
