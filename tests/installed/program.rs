//! The program that tests start.

use std::path::PathBuf;

/// The program that `KFORGE_TEST_PROGRAM` names, such as a released one, which computes faster; else the one that was built with the tests.
#[expect(clippy::disallowed_methods, reason = "whoever runs the tests names the program")]
pub(crate) fn program() -> PathBuf {
    std::env::var_os("KFORGE_TEST_PROGRAM").map_or_else(|| env!("CARGO_BIN_EXE_kforge").into(), PathBuf::from)
}
