//! Kernels of public source packages, byte for byte as they were published: `tests/real_kernels/fetch` downloads them, and `tests/real_kernels/run` compares their
//! verdicts on `cpu` with `tests/real_kernels/expected.toml`. `docs/real-kernels.md` is about them.

use std::path::Path;
use std::process::{Command, Output};

use kforge::base::testing::skipped;

/// The exit code of `fetch` where a registry cannot be reached.
const UNREACHABLE: i32 = 3;

fn script(python: &Path, name: &str, words: &[&str]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real_kernels").join(name);
    Command::new(python).arg("-B").arg(script).args(words).output().unwrap()
}

fn text(output: &Output) -> String {
    format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
#[ignore = "second tier: downloads source packages and builds all their kernels"]
fn kernels_of_source_packages_get_the_verdicts_that_are_recorded() {
    let Some(python) = crate::python::python() else { return };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let at = folder.path().join("packages");
    let at = at.to_str().unwrap();
    // The Python with numpy may lack pip.
    let fetched = script(Path::new("python3"), "fetch", &[at]);
    if fetched.status.code() == Some(UNREACHABLE) {
        return skipped(&format!("source packages cannot be downloaded: {}", text(&fetched)));
    }
    assert!(fetched.status.success(), "{}", text(&fetched));
    let home = folder.path().join("home");
    let python_is = format!("toolchain.python=\"{}\"", python.display());
    let (program, home) = (crate::project::program(), home.to_str().unwrap());
    let words = [program.to_str().unwrap(), at, "--home", home, "--", "--config", &python_is];
    let ran = script(Path::new("python3"), "run", &words);
    assert!(ran.status.success(), "{}", text(&ran));
}
