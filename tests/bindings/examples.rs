//! The programs of examples/bindings, as far as they go without a GPU: they compile with the loaders of their package, and say that there is no driver.

use std::process::Command;

use kforge::release::bindings::{Language, files};

use crate::documents::{Sample, packages, sample};
use crate::lab::{Lab, interpreter, root, write};

fn loaders() -> Sample {
    sample(&packages(&root().join("examples/bindings/kernels/kernel.toml"))[0], 0).unwrap()
}

/// Runs a program where no driver is found, and what it prints.
fn run(command: &mut Command) -> String {
    let output = command.env_remove("LD_LIBRARY_PATH").env("CUDA_VISIBLE_DEVICES", "").output().unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{command:?}: {said}");
    said
}

/// Whether this machine has a driver, with which the programs do more.
fn has_driver() -> bool {
    let script = "import ctypes; ctypes.CDLL('libcuda.so.1')";
    interpreter().args(["-c", script]).output().is_ok_and(|output| output.status.success())
}

#[test]
fn the_programs_in_c_cpp_and_python_say_that_there_is_no_driver() {
    if has_driver() {
        // Their results are asked of a GPU by tests/gpu.
        return;
    }
    let lab = Lab::new();
    // Not beside the driver of the tests.
    let folder = lab.path("loaders");
    for language in [Language::C, Language::Python] {
        write(&folder, &files(&loaders().plan, language).unwrap());
    }
    for (compiler, source) in [(["cc", "-std=c99"], "c/main.c"), (["c++", "-std=c++17"], "cpp/main.cpp")] {
        let program = lab.path("program");
        let strict = ["-O1", "-Wall", "-Wextra", "-pedantic", "-Werror", "-I"];
        let mut compile = Command::new(compiler[0]);
        compile.arg(compiler[1]).args(strict).arg(&folder).arg(root().join("examples/bindings").join(source));
        run(compile.arg("-o").arg(&program).args(["-ldl", "-lpthread", "-lm"]));
        assert!(run(&mut Command::new(program)).starts_with("no driver here; a call says: no CUDA driver"));
    }
    let mut python = interpreter();
    python.env("PYTHONDONTWRITEBYTECODE", "1").arg(root().join("examples/bindings/python/main.py")).arg(&folder);
    assert!(run(&mut python).starts_with("no GPU here; loaded by"));
}

#[test]
fn the_program_in_c_is_refused_for_the_reasons_that_it_names() {
    let lab = Lab::new();
    let sample = loaders();
    write(&lab.path("loaders"), &files(&sample.plan, Language::C).unwrap());
    let program = lab.path("program");
    let mut compile = Command::new("cc");
    compile.arg("-std=c99").arg("-I").arg(lab.path("loaders")).arg(root().join("examples/bindings/c/main.c"));
    run(compile.arg("-o").arg(&program).args(["-ldl", "-lpthread", "-lm"]));
    let mut program = Command::new(program);
    let output = program.env("LD_LIBRARY_PATH", lab.folder.path()).env("KFORGE_FAKE_NO_CONTEXT", "1").output().unwrap();
    // No kernel ran, so every result is wrong; every refusal is the expected one.
    let [said, refused] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(said.ends_with("WRONG\n") && refused.is_empty(), "{said}{refused}");
}

#[test]
#[ignore = "second tier: compiles a crate"]
fn the_program_in_rust_is_complete() {
    let folder = root().join("target/bindings/loaders-rust");
    write(&folder, &files(&loaders().plan, Language::Rust).unwrap());
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--manifest-path"]).arg(root().join("examples/bindings/rust/Cargo.toml"));
    cargo.env("CARGO_TARGET_DIR", root().join("target/bindings/programs")).env("CARGO_PROFILE_DEV_DEBUG", "0");
    assert!(has_driver() || run(&mut cargo).starts_with("no driver here"));
}
