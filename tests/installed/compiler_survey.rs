//! The survey of this machine's C++ compiler in a home, made once for all tests of a program, because surveying a compiler takes longer than most of the tests'
//! builds. A home for tests of surveying is created without it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::folders::folder;

/// A package with one kernel `k` in `k.cu` for an operator `y = 2 * x + 1` over ten elements.
pub(crate) const ONE: &str = r#"
[package]
name = "one"
version = "0.1.0"

[targets.cpu]

[operator.twice]
dims = ["n"]
inputs.x = { dtype = "f32", shape = ["n"] }
outputs.y = { dtype = "f32", shape = ["n"] }
reference = { builtin = "elementwise", y = "2 * x + 1" }
tolerance = { atol = 1e-6, rtol = 1e-6 }
shapes.tiny = { n = 10 }

[kernel.k]
operator = "twice"
source = "k.cu"
targets = ["cpu"]
launch = [{ entry = "k", grid = ["1"], block = ["16"], args = ["x", "y", "n"] }]
"#;

/// Adds the survey of the compiler that `program` finds to the home. If there is no compiler, the home stays unchanged.
pub(crate) fn remember(program: &Path, home: &Path) {
    static KNOWN: OnceLock<Option<Vec<u8>>> = OnceLock::new();
    if let Some(known) = KNOWN.get_or_init(|| asked(program)) {
        fs::create_dir_all(home).unwrap();
        fs::write(home.join("machine"), known).unwrap();
    }
}

/// The machine's memory of a home after a build.
#[expect(clippy::disallowed_methods, reason = "a test stands where a shell does, and hands PATH on")]
fn asked(program: &Path) -> Option<Vec<u8>> {
    let place = folder();
    let home = place.path().join("home");
    fs::write(place.path().join("kernel.toml"), ONE).unwrap();
    fs::write(place.path().join("k.cu"), "__global__ void k(const float *x, float *y, int n) { *y = *x; }\n").unwrap();
    let mut command = Command::new(program);
    command.args(["check", "--offline", "--quiet"]).current_dir(place.path()).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("KFORGE_HOME", &home);
    command.stdin(Stdio::null()).output().unwrap();
    fs::read(home.join("machine")).ok()
}
