//! What a release is made of: manual pages, and `.ci/glibc`, which keeps the program running on old systems.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::place::Place;
use crate::workflow_file::said;

#[test]
fn every_command_has_a_manual_page() {
    let place = Place::empty();
    place.run("man pages/man1").expect(0).says("Wrote manual pages to pages/man1");
    let first = place.read("pages/man1/kforge.1");
    assert!(first.contains(".TH kforge 1") && first.contains("Cargo for GPU kernels"), "{first}");
    let commands = place.run("help").expect(0).out;
    let commands = commands.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // A description that is continued is indented further.
    let named = commands.filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
    let names: Vec<&str> = named.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"build") && names.contains(&"man"), "{names:?}");
    for name in names.into_iter().filter(|name| *name != "help") {
        assert!(place.at(&format!("pages/man1/kforge-{name}.1")).exists(), "{name}");
    }
    assert!(place.read("pages/man1/kforge-evidence-sign.1").contains("PUBLIC_FILE"));
    assert!(!place.at("pages/man1/kforge-worker.1").exists(), "the worker is no command for people");
    place.file("file", "").run("man file/man1").expect(101).says("cannot write manual pages to `file/man1`");
}

/// `.ci/glibc WORDS`.
fn glibc(words: &[&str]) -> Output {
    Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.ci/glibc")).args(words).output().unwrap()
}

/// Compiles C to a shared library.
#[track_caller]
fn library(folder: &Path, name: &str, source: &str, words: &[&str]) -> String {
    let (from, to) = (folder.join("source.c"), folder.join(name));
    fs::write(&from, source).unwrap();
    let mut command = Command::new("cc");
    command.args(["-shared", "-fPIC", "-nostdlib", "-o"]).arg(&to).arg(&from).args(words).current_dir(folder);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    to.display().to_string()
}

#[test]
fn a_symbol_of_a_newer_c_library_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    // A C library that has one function since 2.9, one since 2.28, and one since 2.100, which is newer, although its text sorts first.
    let versions = "GLIBC_2.9 { global: a; }; GLIBC_2.28 { global: b; }; GLIBC_2.100 { global: c; };";
    fs::write(folder.join("versions"), versions).unwrap();
    let all = "void a(void) {} void b(void) {} void c(void) {}";
    library(folder, "libc.so.6", all, &["-Wl,--version-script=versions", "-Wl,-soname,libc.so.6"]);
    let uses = |name: &str, calls: &str| {
        let source = format!("void a(void); void b(void); void c(void); void f(void) {{ {calls} }}");
        library(folder, name, &source, &["libc.so.6"])
    };
    let (old, new) = (uses("old.so", "a(); b();"), uses("new.so", "a(); c();"));
    let fine = glibc(&["2.28", &old]);
    assert!(fine.status.success() && said(&fine).contains("needs GLIBC 2.28, at most 2.28"), "{}", said(&fine));
    let refused = glibc(&["2.28", &old, &new]);
    assert!(!refused.status.success(), "{}", said(&refused));
    let text = said(&refused);
    assert!(text.contains("new.so needs GLIBC_2.100: c") && !text.contains("old.so needs GLIBC_"), "{text}");
    let refused = glibc(&["2.9", &old]);
    assert!(!refused.status.success() && said(&refused).contains("GLIBC_2.28: b"), "{}", said(&refused));
    assert!(glibc(&["2.100", &new]).status.success());
}

#[test]
fn a_version_without_a_number_and_a_library_of_others_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    fs::write(folder.join("versions"), "GLIBC_ABI_DT_RELR { global: r; };").unwrap();
    library(folder, "libc.so.6", "void r(void) {}", &["-Wl,--version-script=versions", "-Wl,-soname,libc.so.6"]);
    let relative = library(folder, "relative.so", "void r(void); void f(void) { r(); }", &["libc.so.6"]);
    let refused = glibc(&["2.28", &relative]);
    assert!(!refused.status.success() && said(&refused).contains("GLIBC_ABI_DT_RELR"), "{}", said(&refused));
    library(folder, "libodd.so.1", "void o(void) {}", &["-Wl,-soname,libodd.so.1"]);
    let odd = library(folder, "odd.so", "void o(void); void f(void) { o(); }", &["libodd.so.1"]);
    let refused = glibc(&["2.28", &odd]);
    assert!(
        !refused.status.success() && said(&refused).contains("needs the library libodd.so.1"),
        "{}",
        said(&refused)
    );
    assert!(!glibc(&["2.28", "/nonexistent"]).status.success());
    assert_eq!(glibc(&["2.28"]).status.code(), Some(2));
}
