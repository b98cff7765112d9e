//! kforge embedded in another program: `examples/embed.rs`, which builds through the workers of an installed kforge.
//!
//! `cargo test` builds examples before it runs tests, into `examples` beside the folder of the tests. If only this test was requested, the test builds the
//! example itself.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::place::Place;

/// The path of the example's program.
fn example() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let profile = own.parent().and_then(Path::parent).unwrap();
    let program = profile.join("examples/embed");
    if !is_current(&program) {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--example", "embed"]).current_dir(env!("CARGO_MANIFEST_DIR"));
        cargo.arg("--target-dir").arg(profile.parent().unwrap());
        // What the tests were built with is not compiled again.
        cargo.args(["--profile", if profile.ends_with("release") { "release" } else { "test" }]);
        assert!(cargo.status().unwrap().success());
    }
    program
}

/// Whether a program is newer than each of its sources, which cargo lists in a file beside it.
fn is_current(program: &Path) -> bool {
    let modified = |path: &Path| path.metadata().and_then(|m| m.modified()).ok();
    let Some((built, list)) = modified(program).zip(std::fs::read_to_string(program.with_extension("d")).ok()) else {
        return false;
    };
    list.split_whitespace().skip(1).all(|source| modified(Path::new(source)).is_some_and(|m| m <= built))
}

/// Runs the example in a place, with this worker program.
fn embed(place: &Place, worker: &str) -> Output {
    let mut command = Command::new(example());
    command.arg(worker).arg(place.at(".")).env("KFORGE_HOME", place.home()).env("KFORGE_NET_OFFLINE", "true");
    command.output().unwrap()
}

#[test]
fn a_program_builds_through_an_installed_kforge_and_reads_its_champions() {
    let place = Place::tiny().alone();
    let first = embed(&place, env!("CARGO_BIN_EXE_kforge"));
    let (out, err) = (String::from_utf8_lossy(&first.stdout), String::from_utf8_lossy(&first.stderr));
    assert!(first.status.success() && out.contains(" on cpu: `"), "{out}{err}");
    // The installed kforge knows the example's results, and vice versa.
    let said = place.run("build").expect(0);
    assert!(said.err.contains(" 0 executed"), "{}", said.err);
    let again = embed(&place, env!("CARGO_BIN_EXE_kforge"));
    assert!(String::from_utf8_lossy(&again.stdout).contains(", 0 of them executed"));
}

#[test]
fn a_worker_that_is_no_kforge_or_another_one_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::tiny().alone().file("other", "#!/bin/sh\necho kforge 0.0.1 0123\n");
    std::fs::set_permissions(place.at("other"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let other = place.at("other").display().to_string();
    for (worker, why) in [
        (other.as_str(), "is of another kforge (kforge 0.0.1 0123) than this program"),
        ("/bin/false", "is not a kforge that this program can use"),
        ("/nonexistent", "cannot start the worker program `/nonexistent`"),
    ] {
        let refused = embed(&place, worker);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains(why), "{worker}: {said}");
    }
}
