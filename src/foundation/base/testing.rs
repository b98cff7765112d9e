//! Helpers that tests of several packages share: files on a disk, and a way to report that a test was skipped. Only tests use them.

use std::io::Write;

/// Reports that the test on this thread is skipped, and why. Writes past libtest's capture, so that a test run shows the report.
///
/// # Panics
/// `KFORGE_TEST_REQUIRE` is `all`: a test that lacks what it needs then fails.
#[expect(clippy::disallowed_methods, reason = "the environment says whether tests may be skipped")]
pub fn skipped(why: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    assert!(
        std::env::var_os("KFORGE_TEST_REQUIRE").is_none_or(|value| value != "all"),
        "{test} lacks what it needs: {why}"
    );
    let _ = writeln!(std::io::stderr().lock(), "skipped {test}: {why}");
}

/// A temporary folder with these files. Dropping it removes the folder.
///
/// # Panics
/// The folder or a file cannot be written.
pub fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    dir
}
