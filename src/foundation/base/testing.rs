//! What tests of several packages share: files laid out on a disk, and how a test says that it was skipped. Nothing else uses it.

use std::io::Write;

/// Reports that the test on this thread is skipped, and why: past libtest's capture, so that a run shows it.
///
/// # Panics
/// `KFORGE_TEST_REQUIRE` is `all`: then a test that lacks what it needs has failed.
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

/// A folder with these files, which goes when it is dropped.
///
/// # Panics
/// It cannot be written.
pub fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    dir
}
