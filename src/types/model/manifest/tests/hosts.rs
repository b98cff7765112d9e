//! Kernels with their own launcher: what such a launcher replaces, and which keys conflict with it.

use super::{launched, package, read, show};

/// A manifest with this kernel. Its targets are a GPU and the emulator.
fn with(kernel: &str) -> String {
    format!(
        "[package]\nname = \"hosted\"\n[targets.cpu]\n[targets.h200]\narch = \"sm_90a\"\n\
         [operator.o]\ndims = [\"n\"]\ninputs.x = {{ dtype = \"f32\", shape = [\"n\"] }}\noutputs.y = {{ dtype = \"f32\", shape = [\"n\"] }}\n\
         reference = {{ builtin = \"elementwise\", y = \"2 * x\" }}\nshapes.s = {{ n = 8 }}\n\
         [kernel.k]\noperator = \"o\"\n{kernel}\n"
    )
}

const HOST: &str = "host = \"src/launch.cu::run\"";

#[test]
fn a_launcher_names_the_file_that_is_compiled_and_stands_for_launches() {
    let package =
        package(&with(&format!("{HOST}\ntargets = [\"h200\"]\nworkspace.w = {{ dtype = \"f32\", shape = [\"n\"] }}")));
    let kernel = &package.kernels[0];
    let function = kernel.host.as_ref().map(|host| host.function.as_str());
    assert_eq!((kernel.source.as_str(), function), ("src/launch.cu", Some("run")));
    let (launches, workspaces) = launched(&package, "s");
    assert_eq!((launches, workspaces.len()), (vec![], 1));
}

#[test]
fn the_same_file_may_be_stated_as_the_source() {
    let text = with(&format!("{HOST}\nsource = \"src/launch.cu\"\ntargets = [\"h200\"]\ncompiler = \"nvcc\""));
    assert_eq!(package(&text).kernels[0].source, "src/launch.cu");
}

#[test]
fn what_has_no_place_beside_a_launcher_is_refused_where_it_stands() {
    let launch = "launch = [{ entry = \"k\", grid = [1], block = [32], args = [\"x\", \"y\"] }]";
    let gpu = "targets = [\"h200\"]";
    for (more, code, at, says) in [
        (launch, "manifest.conflict", "launch", "either `host`"),
        ("constants.c = \"x\"", "manifest.conflict", "constants", "no `constants`"),
        ("generate = { agent = \"rules\" }", "manifest.conflict", "generate", "neither generates nor improves"),
        ("source = \"other.cu\"", "manifest.conflict", "\"other.cu\"", "include `other.cu` in `src/launch.cu`"),
        ("compiler = \"nvrtc\"", "manifest.conflict", "\"nvrtc\"", "built by nvcc"),
        ("verify.sanitize = [\"memcheck\"]", "manifest.conflict", "sanitize", "no `sanitize`"),
        (
            "tune = { B = [1, 2], strategy = \"random\", budget = { evaluations = 2 } }",
            "manifest.conflict",
            "strategy",
            "is not timed",
        ),
    ] {
        let text = with(&format!("{HOST}\n{gpu}\n{more}"));
        let (_, _, found) = read(&text);
        let shown: Vec<String> = found.iter().map(show).collect();
        let error = found.iter().find(|d| d.code == code).unwrap_or_else(|| panic!("{more}: {shown:?}"));
        assert_eq!(&text[error.labels[0].span.clone()], at, "{more}");
        assert!(shown.iter().any(|text| text.contains(says)), "{more}: {shown:?}");
    }
}

#[test]
fn a_launcher_that_names_no_function_and_one_on_the_emulator_are_errors() {
    for (kernel, code, says) in [
        ("host = \"launch.cu\"", "manifest.function", "`file.cu::function`"),
        ("host = \"../launch.cu::run\"\ntargets = [\"h200\"]", "manifest.path", "without `..`"),
        (HOST, "manifest.host", "list the other targets in `targets`"),
    ] {
        let (_, _, found) = read(&with(kernel));
        let shown: Vec<String> = found.iter().map(show).collect();
        assert!(found.iter().any(|d| d.code == code), "{kernel}: {shown:?}");
        assert!(shown.iter().any(|text| text.contains(says)), "{kernel}: {shown:?}");
    }
}
