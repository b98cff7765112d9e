//! Artifacts of kernels in Triton: machine code for each specialization with its launch contract, and what of it `kforge verify-artifact` compares.

use std::fs;

use kforge::release::artifact::{KERNELS, KernelsDocument};
use kforge::toolchain::cuda::folder_of;
use kforge::workspace::lockfile::Lockfile;
use serde_json::{Value, json};

use crate::lab::{Lab, Machine};
use crate::packaged::{ARCHIVE, files, forged, run, verify};

const MANIFEST: &str = r#"
[package]
name = "p"
version = "0.1.0"
license = "MIT"

[targets.h]
arch = "sm_90a"

[operator.twice]
dims = ["n"]
inputs.x = { dtype = "f32", shape = ["n"] }
outputs.y = { dtype = "f32", shape = ["n"] }
reference = { builtin = "elementwise", y = "2 * x + 1" }
tolerance = { atol = 1e-6, rtol = 1e-6 }
shapes.one = { n = 1 }
shapes.even = { n = 32 }
shapes.big = { n = 100, role = "bench" }

[kernel.k]
operator = "twice"
language = "triton"
source = "k.py"
targets = ["h"]

[[kernel.k.launch]]
entry = "k"
grid = ["ceil_div(n, 64)"]
args = ["x", "y", "n"]
constexprs = { BLOCK = 64 }
options = { num_warps = 2, num_ctas = 2 }
"#;

/// The stand-in compiler reads the pragmas.
const SOURCE: &str = "#pragma fact k shared 1024\n#pragma fact k scratch 384\nimport triton\nimport triton.language as tl\nfrom beside import ONE\n\n\n@triton.jit\ndef k(x, y, n, BLOCK: tl.constexpr):\n    pass\n";

/// A package in Triton on a machine with one device, and a Triton that is never called.
fn lab() -> Lab {
    let lab = Lab::new(&Machine::default().rule("^(k|k#2|m) grid", "ns = 1000.0"));
    fs::remove_file(lab.project.root().join("k.cu")).unwrap();
    fs::remove_dir_all(lab.project.root().join("cuda")).unwrap();
    let lock = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/triton/kforge.lock")).unwrap();
    for (name, text) in
        [("kernel.toml", MANIFEST), ("k.py", SOURCE), ("beside.py", "ONE = 1\n"), ("kforge.lock", &lock)]
    {
        lab.project.write(name, text);
    }
    wheels(&lab);
    lab
}

/// Folders for the wheels of every Python that the lockfile names.
pub(crate) fn wheels(lab: &Lab) {
    let toolchains = lab.project.home().join("toolchains");
    let lock = Lockfile::read(lab.project.root()).unwrap();
    for wheel in lock.wheels.values().flatten() {
        fs::create_dir_all(folder_of(std::slice::from_ref(wheel), &toolchains).join("triton")).unwrap();
    }
}

fn variants(lab: &Lab) -> Vec<Value> {
    let document: Value = serde_json::from_slice(&files(lab)[KERNELS]).unwrap();
    document["kernels"][0]["variants"].as_array().unwrap().clone()
}

#[test]
#[ignore = "second tier: packages twice"]
fn an_artifact_has_machine_code_of_triton_for_each_class_of_values() {
    let lab = lab();
    lab.built(&[]);
    let said = run(&lab, &["package"], 0);
    assert!(said.contains("Packaged p 0.1.0 (1 kernel,"), "{said}");
    let all = files(&lab);
    let names: Vec<&str> = all.keys().map(String::as_str).filter(|name| name.starts_with("source/")).collect();
    assert_eq!(names, ["source/beside.py", "source/k.py", "source/kernel.toml", "source/kforge.lock"]);
    let lock = String::from_utf8_lossy(&all["source/kforge.lock"]).into_owned();
    assert!(
        lock.contains("triton 3.9") && String::from_utf8_lossy(&all["sbom.spdx.json"]).contains("triton"),
        "{lock}"
    );
    let variants = variants(&lab);
    let classes: Vec<&str> = variants.iter().map(|v| v["specialization"].as_str().unwrap()).collect();
    assert_eq!(classes, ["BLOCK=64", "n%16,BLOCK=64", "n=1,BLOCK=64"]);
    assert_eq!(all.keys().filter(|name| name.starts_with("binaries/")).count(), 3);
    let fits = "(n) >= -2147483648 and (n) <= 2147483647";
    for (variant, assumes) in
        variants.iter().zip([json!([fits]), json!([fits, "(n) % 16 == 0"]), json!([fits, "(n) == 1"])])
    {
        let launch = &variant["launch"];
        let action = &launch["launches"][0]["action"]["kernel"];
        let expected = json!([["(ceil_div(n, 64)) * 2"], ["64"], "1024", ["2"]]);
        assert_eq!(json!([action["grid"], action["block"], action["shared"], action["cluster"]]), expected);
        assert_eq!(action["assumes"], assumes);
        let args = action["args"].as_array().unwrap();
        // An argument that is 1 vanished; the addresses of scratch are hidden parameters.
        assert_eq!(args.len(), if assumes[1] == "(n) == 1" { 4 } else { 5 }, "{args:?}");
        assert_eq!(args[args.len() - 2..], [json!({ "pointer": { "buffer": "global scratch 0" } }), json!("null")]);
        let scratch = json!([{ "name": "global scratch 0", "dtype": "u8", "shape": ["((ceil_div(n, 64)) * 2) * 384"], "fill": "poison" }]);
        assert_eq!(launch["workspaces"], scratch);
    }
    let archive = lab.project.root().join(ARCHIVE);
    let said = verify(&lab, &archive, 0);
    assert!(said.contains("1 kernel, 3 passing shapes"), "{said}");
    let path = archive.to_str().unwrap();
    let said = run(&lab, &["verify-artifact", path, "--allow-untrusted", "--rebuild"], 0);
    assert!(said.contains("3 of 3 binaries") || said.contains("3 binaries"), "{said}");
    run(&lab, &["verify-artifact", path, "--allow-untrusted", "--rerun"], 0);
    // Loaders, not below the sources, where their files in Python would be inputs.
    let output = |name: &str| lab.project.place().join(name).display().to_string();
    for language in ["c", "rust"] {
        run(&lab, &["bindings", path, "--language", language, "--output", &output(language)], 0);
    }
    run(&lab, &["bindings", path, "--language", "python", "--output", &output("python"), "--wheel"], 0);
    // The archive is made again, with equal bytes.
    let first = fs::read(&archive).unwrap();
    run(&lab, &["package"], 0);
    assert!(first == fs::read(&archive).unwrap());
}

/// Two functions with a workspace between them, and the second function twice with other constants.
#[test]
#[ignore = "second tier: packages twice"]
fn a_kernel_of_several_functions_is_built_and_packaged_as_one_that_names_each() {
    let lab = lab();
    let second = "\n[[kernel.k.launch]]\nentry = \"k\"\ngrid = [\"ceil_div(n, 64)\"]\nargs = [\"x\", \"half\", \"n\"]\nconstexprs = { BLOCK = 64 }\n";
    let third = "\n[[kernel.k.launch]]\nwhen = \"n > 1\"\nentry = \"m\"\ngrid = [\"ceil_div(n, 32)\"]\nargs = [\"half\", \"n\"]\noptions = { num_warps = 1 }\n";
    let lab = lab
        .manifest("source = \"k.py\"", "source = \"k.py\"\nworkspace.half = { dtype = \"f32\", shape = [\"n\"] }")
        .manifest(
            "options = { num_warps = 2, num_ctas = 2 }\n",
            &format!("options = {{ num_warps = 2 }}\n{second}{third}"),
        );
    let source = format!("#pragma fact m shared 16\n{SOURCE}\n\n@triton.jit\ndef m(half, n):\n    pass\n");
    lab.project.write("k.py", &source);
    lab.built(&[]);
    let said = run(&lab, &["package"], 0);
    assert!(said.contains("Packaged p 0.1.0 (1 kernel,"), "{said}");
    let variants = variants(&lab);
    let classes: Vec<&str> = variants.iter().map(|v| v["specialization"].as_str().unwrap()).collect();
    assert_eq!(
        classes,
        [
            "k(BLOCK=64);k#2(BLOCK=64);m()",
            "k(n%16,BLOCK=64);k#2(n%16,BLOCK=64);m(n%16)",
            "k(n=1,BLOCK=64);k#2(n=1,BLOCK=64)"
        ]
    );
    let launched = |variant: &Value| -> Vec<String> {
        let launches = variant["launch"]["launches"].as_array().unwrap();
        let of = |launch: &Value| {
            let action = &launch["action"]["kernel"];
            format!("{} {} {}", action["entry"], action["block"][0], action["shared"])
        };
        launches.iter().map(of).collect()
    };
    let (first, other) = ("\"k\" \"64\" \"1024\"", "\"k#2\" \"128\" \"1024\"");
    assert_eq!(launched(&variants[0]), [first, other, "\"m\" \"32\" \"16\""]);
    assert_eq!(launched(&variants[2]), [first, other]);
    let assumes = &variants[2]["launch"]["launches"][0]["action"]["kernel"]["assumes"];
    assert!(assumes.as_array().unwrap().contains(&json!("not (n > 1)")), "{assumes}");
    let archive = lab.project.root().join(ARCHIVE);
    let said = verify(&lab, &archive, 0);
    assert!(said.contains("1 kernel, 3 passing shapes"), "{said}");
    let path = archive.to_str().unwrap();
    run(&lab, &["verify-artifact", path, "--allow-untrusted", "--rebuild"], 0);
}

#[test]
#[ignore = "second tier: many builds"]
fn what_is_not_so_of_machine_code_of_triton_is_named() {
    let lab = lab();
    lab.built(&[]);
    run(&lab, &["package"], 0);
    let whole = files(&lab);
    let change = |change: &dyn Fn(&mut Value)| {
        let mut document: Value = serde_json::from_slice(&whole[KERNELS]).unwrap();
        change(&mut document["kernels"][0]);
        let document: KernelsDocument = serde_json::from_value(document).unwrap();
        let mut files = whole.clone();
        files.insert(KERNELS.into(), kforge::release::artifact::files::document(&document).unwrap());
        verify(&lab, &forged(&lab, files), 101)
    };
    let action = |kernel: &mut Value, at: usize, key: &str, value: Value| {
        kernel["variants"][at]["launch"]["launches"][0]["action"]["kernel"][key] = value;
    };
    for said in [
        // Less is assumed, no scratch is passed, another number of threads.
        change(&|kernel| action(kernel, 2, "assumes", json!([]))),
        change(&|kernel| action(kernel, 0, "block", json!(["128"]))),
        change(&|kernel| kernel["variants"][0]["launch"]["workspaces"][0]["shape"] = json!(["16"])),
    ] {
        assert!(said.contains("gives launches that differ"), "{said}");
    }
    // The machine code of another class.
    let said = change(&|kernel| {
        let other = kernel["variants"][1].clone();
        for key in ["binary", "digest", "compilation"] {
            kernel["variants"][0][key] = other[key].clone();
        }
    });
    assert!(said.contains("is of other entries, flags, source or architecture"), "{said}");
    let said = change(&|kernel| kernel["shapes"][1]["specialization"] = json!("BLOCK=64"));
    assert!(said.contains("is of another binary"), "{said}");
    // A source whose function has other parameters.
    let mut files = whole.clone();
    let source = SOURCE.replace("(x, y, n,", "(x, y, m: tl.constexpr, n,");
    files.insert("source/k.py".into(), source.into_bytes());
    let said = verify(&lab, &forged(&lab, files), 101);
    assert!(said.contains("is not the file from which the binary was compiled"), "{said}");
}

#[test]
fn forms_that_are_not_made_of_triton_are_refused_by_name() {
    let lab = lab().manifest("arch = \"sm_90a\"", "arch = \"sm_90a\"\nptx = true\nfatbin = true");
    let said = run(&lab, &["package"], 101);
    for form in ["PTX", "a fatbin"] {
        assert!(said.contains(&format!("kernel `k` is written in Triton, and target `h` asks for {form}")), "{said}");
    }
}
