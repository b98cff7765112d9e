//! The Python with numpy for tests of references and checks: the one that KFORGE_TEST_PYTHON names, else the one that `acquire` installed below the target
//! folder, else the system's.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The folder in which `acquire` creates one.
pub(crate) fn place() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("kforge-test-home/python")
}

/// A Python with numpy; none, with a message, if there is none.
pub(crate) fn python() -> Option<PathBuf> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = FOUND.get_or_init(find);
    if found.is_none() {
        kforge::base::testing::skipped("no Python here has numpy; `cargo test --test acquire` installs one");
    }
    found.clone()
}

#[expect(clippy::disallowed_methods, reason = "tests are told by the environment where a Python with numpy is")]
fn find() -> Option<PathBuf> {
    let named = std::env::var_os("KFORGE_TEST_PYTHON").map(PathBuf::from);
    let others = [place().join("bin/python"), "/usr/local/bin/python3".into(), "/usr/bin/python3".into()];
    let numpy =
        |python: &PathBuf| Command::new(python).args(["-c", "import numpy"]).output().is_ok_and(|o| o.status.success());
    named.into_iter().chain(others).find(numpy)
}
