//! The crate, compiled with cudarc.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use kforge::model::{Role, Scalar};
use kforge::release::bindings::{Language, files};

use crate::documents::Sample;
use crate::expected::{Expected, WORKSPACE, address};
use crate::lab::{Lab, all_expected, compare, root, samples, write};

/// A program that makes every call, with slices at the addresses that are expected.
fn program(sample: &Sample, expected: &[Expected]) -> String {
    let name = &sample.plan.name;
    let mut text = String::from(
        "use cudarc::driver::{CudaContext, CudaSlice, CudaStream};\nuse std::mem::ManuallyDrop;\nuse std::sync::Arc;\n\n\
         fn at<T>(stream: &Arc<CudaStream>, at: u64, len: usize) -> ManuallyDrop<CudaSlice<T>> {\n    ManuallyDrop::new(unsafe { stream.upgrade_device_ptr(at, len) })\n}\n\n",
    );
    for (at, (case, expected)) in sample.cases.iter().zip(expected).enumerate() {
        let function = sample.plan.functions.iter().find(|f| f.name == case.function).unwrap();
        let mut values: Vec<String> =
            function.dims.iter().map(|dim| expected.problem.dims[&dim.name].to_string()).collect();
        values.extend(expected.problem.params.iter().map(|param| match param.value {
            Scalar::Int(int) => int.to_string(),
            Scalar::Float(float) => format!("{float:?}"),
            Scalar::Bool(truth) => truth.to_string(),
        }));
        let mut all = vec!["s".to_string()];
        for (position, tensor) in expected.problem.tensors.iter().enumerate() {
            let reference = if tensor.role == Role::Input { "&" } else { "&mut " };
            all.push(format!("{reference}*at(s, {}, {})", address(position), tensor.span()));
        }
        all.extend(values.iter().cloned());
        let _ = writeln!(text, "fn call_{at}(s: &Arc<CudaStream>) -> Result<(), {name}::Error> {{");
        if function.has_workspace() {
            let values = [vec!["s".into()], values].concat().join(", ");
            let _ = writeln!(text, "    let bytes = {name}::{}_workspace({values})?;", function.name);
            let _ = writeln!(text, "    assert_eq!(bytes, {});", expected.workspace);
            all.push(format!("&mut *at::<u8>(s, {WORKSPACE}, bytes)"));
        }
        let _ = writeln!(text, "    unsafe {{ {name}::{}({}) }}\n}}\n", function.name, all.join(", "));
    }
    let calls: String = (0..sample.cases.len()).map(|at| format!("    call_{at}(&stream).unwrap();\n")).collect();
    text + "fn main() {\n    let context = CudaContext::new(0).unwrap();\n    unsafe { context.disable_event_tracking() };\n    let stream = context.default_stream();\n"
        + &calls
        + "    // The driver of the tests has no memory to give back.\n    std::process::exit(0);\n}\n"
}

fn compiled(folder: &Path, package: &str, text: &str) {
    let manifest = format!(
        "[package]\nname = \"program\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\n{package} = {{ path = \"loader\" }}\n\
         cudarc = {{ version = \"0.19.10\", default-features = false, features = [\"std\", \"driver\", \"dynamic-loading\"] }}\n\n[workspace]\n"
    );
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    fs::create_dir_all(folder.join("src")).unwrap();
    fs::write(folder.join("src/main.rs"), text).unwrap();
    let done = Command::new(env!("CARGO"))
        .args(["build", "--quiet"])
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", root().join("target/bindings/programs"))
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("RUSTFLAGS", "-D warnings")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{package}: {}", said.chars().take(4000).collect::<String>());
}

#[test]
#[ignore = "second tier: compiles a crate for each package of the examples"]
fn a_crate_asks_the_driver_for_what_kforge_asks_for() {
    for sample in samples() {
        let lab = Lab::new();
        let expected = all_expected(&sample);
        write(&lab.path("loader"), &files(&sample.plan, Language::Rust).unwrap());
        let sizes: Vec<String> = expected.iter().flat_map(|one| one.sizes.clone()).collect();
        compiled(lab.folder.path(), &sample.plan.package, &program(&sample, &expected));
        let program = root().join("target/bindings/programs/debug/program");
        let (said, log) = lab.run(&mut Command::new(program), &sizes);
        assert_eq!(said, "", "{}", sample.plan.package);
        compare(&format!("Rust of {}", sample.plan.package), &sample, &expected, &log);
    }
}
