//! The Python package, without torch: arrays come through DLPack.

use std::fs;
use std::process::Command;

use kforge::model::{Role, Scalar};
use kforge::release::bindings::{Language, files};
use serde_json::{Value, json};

use crate::documents::Sample;
use crate::expected::{Expected, address};
use crate::lab::{Lab, all_expected, compare, exotic, interpreter, root, samples, write};

/// Every case as a call. Where `usual` is true, params that have the default value are left out.
pub(crate) fn calls(sample: &Sample, expected: &[Expected]) -> Vec<Value> {
    let one = |(case, expected): (&crate::documents::Case, &Expected)| {
        let function = sample.plan.functions.iter().find(|f| f.name == case.function).unwrap();
        let array = |at: usize| {
            let tensor = &expected.problem.tensors[at];
            json!([address(at), tensor.dtype.name(), tensor.shape, tensor.strides])
        };
        let of = |output: bool| {
            let all = function.tensors.iter().enumerate().filter(|(_, t)| (t.role == Role::Output) == output);
            all.map(|(at, _)| array(at)).collect::<Vec<_>>()
        };
        let dims: Vec<i64> = function
            .dims
            .iter()
            .filter(|dim| dim.extent_of.is_none())
            .map(|dim| expected.problem.dims[&dim.name])
            .collect();
        let mut params = serde_json::Map::new();
        for (param, bound) in function.params.iter().zip(&expected.problem.params) {
            // Where the shape states no value, the loader computes the default.
            let stated = case.shape.params.contains_key(&bound.name) || param.default.is_none();
            let value = match bound.value {
                Scalar::Int(int) => json!(int),
                Scalar::Float(float) => json!(float),
                Scalar::Bool(truth) => json!(truth),
            };
            if stated {
                params.insert(param.public.clone(), value);
            }
        }
        // A kernel without types has the same name in Python as elsewhere.
        let kernel = if function.title.contains(" for ") { &function.kernel } else { &function.name };
        json!({ "kernel": kernel, "inputs": of(false), "outputs": of(true), "dims": dims, "params": params })
    };
    sample.cases.iter().zip(expected).map(one).collect()
}

pub(crate) fn run(lab: &Lab, calls: &[Value], sizes: &[String]) -> (String, Vec<String>) {
    run_with(lab, calls, sizes, false)
}

/// Runs calls, with the stand-in for torch or without.
fn run_with(lab: &Lab, calls: &[Value], sizes: &[String], torch: bool) -> (String, Vec<String>) {
    let path = lab.path("calls.json");
    fs::write(&path, serde_json::to_vec(calls).unwrap()).unwrap();
    let mut python = interpreter();
    python.arg(root().join("tests/bindings/driven.py")).arg(lab.path("build/torch-cuda")).arg(path);
    if torch {
        python.arg(root().join("tests/bindings/standin"));
    }
    lab.run(&mut python, sizes)
}

#[test]
#[ignore = "second tier: every package of the examples"]
fn a_package_asks_the_driver_for_what_kforge_asks_for() {
    for sample in samples() {
        let lab = Lab::new();
        let expected = all_expected(&sample);
        write(lab.folder.path(), &files(&sample.plan, Language::Python).unwrap());
        let sizes: Vec<String> = expected.iter().flat_map(|one| one.sizes.clone()).collect();
        // Kernels are called by their names, and their types follow from those of the arrays.
        let (said, log) = run(&lab, &calls(&sample, &expected), &sizes);
        assert_eq!(said, "", "{}", sample.plan.package);
        compare(&format!("Python of {}", sample.plan.package), &sample, &expected, &log);
        // With torch the second call of a shape runs code that was made for it.
        let twice: Vec<Value> = calls(&sample, &expected)
            .into_iter()
            .map(|mut call| {
                call["times"] = json!(2);
                call
            })
            .collect();
        let (said, log) = run_with(&lab, &twice, &sizes, true);
        assert_eq!(said, "", "{}", sample.plan.package);
        let doubled: Vec<Expected> = all_expected(&sample)
            .into_iter()
            .map(|mut expected| {
                expected.lines = [expected.lines.clone(), expected.lines].concat();
                expected
            })
            .collect();
        compare(&format!("Python of {} with torch", sample.plan.package), &sample, &doubled, &log);
    }
}

#[test]
fn what_cannot_be_launched_raises_an_error_of_its_own_and_nothing_is_launched() {
    let (lab, sample) = (Lab::new(), exotic());
    write(lab.folder.path(), &files(&sample.plan, Language::Python).unwrap());
    let call = |change: &dyn Fn(&mut Value)| {
        let at = |at: usize, dtype: &str, shape: Value| json!([address(at), dtype, shape, null, 2]);
        let mut call = json!({
            "kernel": "mixed",
            "inputs": [
                [address(0), "f32", [1, 3, 16], [72, 24, 1], 2], at(1, "i64", json!([6])), at(2, "f32", json!([16])),
                at(3, "bf16", json!([1, 8])),
            ],
            "outputs": [at(4, "f32", json!([3, 16])), at(5, "i32", json!([]))],
            "dims": [1],
            "params": {},
        });
        change(&mut call);
        call
    };
    let rooted = |scale: f64| {
        call(&|call| {
            call["inputs"][0] = json!([address(0), "f32", [1, 8, 16], [192, 24, 1], 2]);
            call["outputs"][0][2] = json!([8, 16]);
            call["params"]["scale"] = json!(scale);
            call["times"] = json!(2);
        })
    };
    let calls = [
        call(&|call| call["inputs"][0][1] = json!("f64")),
        call(&|call| call["inputs"][1][1] = json!("u8")),
        call(&|call| call["inputs"][1][2] = json!([7])),
        call(&|call| call["inputs"][0][3] = json!([48, 16, 1])),
        call(&|call| call["inputs"][2][0] = json!(address(2) + 32)),
        call(&|call| call["inputs"][2][4] = json!(1)),
        call(&|call| call["outputs"][0][2] = json!([3, 17])),
        call(&|call| call["outputs"] = json!([])),
        call(&|call| call["params"]["scale"] = json!("large")),
        call(&|call| call["params"]["offset"] = json!(1_i64 << 40)),
        call(&|call| call["dims"] = json!([-1])),
        // Arithmetic with params that has no result, at the first call of a shape and at the second.
        rooted(-4.0),
        rooted(-5.0),
    ];
    let (said, log) = run(&lab, &calls, &[]);
    let names: Vec<&str> = said.lines().map(|line| line.split(' ').next().unwrap()).collect();
    // The second call takes another choice of types, which serves it; its launches are the only ones.
    let expected = [
        "WrongDType",
        "WrongShape",
        "WrongStride",
        "WrongAlignment",
        "WrongDevice",
        "WrongShape",
        "WrongValue",
        "WrongValue",
        "WrongValue",
        "WrongShape",
        "WrongValue",
        "WrongValue",
        "WrongValue",
        "WrongValue",
    ];
    assert_eq!(names, expected, "{said}");
    let launches = log.iter().filter(|line| line.starts_with("launch ")).count();
    let of_one = run(&lab, &calls[1..2], &[]).1.iter().filter(|line| line.starts_with("launch ")).count();
    assert_eq!(launches, of_one);
    assert!(of_one > 0);
}

/// Calls with other params and at other addresses use what is kept of a shape, and a call in between changes nothing.
#[test]
fn what_is_kept_of_a_shape_holds_nothing_of_a_call() {
    let lab = Lab::new();
    let packages = crate::documents::packages(&root().join("examples/quickstart/kernel.toml"));
    let sample = crate::documents::sample(&packages[0], 0).unwrap();
    write(lab.folder.path(), &files(&sample.plan, Language::Python).unwrap());
    let call = |at: u64, eps: f64| rms_norm(at, &json!(eps));
    let symbol = &sample.plan.entries[0].symbol;
    let (said, log) =
        run(&lab, &[call(1 << 32, 0.5), call(2 << 32, 0.25), call(1 << 32, 0.5)], &[format!("{symbol} 8 8 8 4 4")]);
    assert_eq!(said, "");
    assert!(log[0].ends_with("0000000001000000 0000100001000000 0000200001000000 40000000 0000003f"), "{log:?}");
    assert!(log[1].ends_with("0000000002000000 0000100002000000 0000200002000000 40000000 0000803e"), "{log:?}");
    assert_eq!(log[2], log[0]);
}

/// A call of `rms_norm` of the quickstart, whose only param is a float.
fn rms_norm(at: u64, eps: &Value) -> Value {
    let array = |past: u64, shape: Value| json!([at + past, "f32", shape, null]);
    json!({
        "kernel": "rms_norm",
        "inputs": [array(0, json!([2, 64])), array(1 << 20, json!([64]))],
        "outputs": [array(2 << 20, json!([2, 64]))],
        "dims": [],
        "params": { "eps": eps },
    })
}

fn quickstart(lab: &Lab) -> Sample {
    let packages = crate::documents::packages(&root().join("examples/quickstart/kernel.toml"));
    let sample = crate::documents::sample(&packages[0], 0).unwrap();
    write(lab.folder.path(), &files(&sample.plan, Language::Python).unwrap());
    sample
}

/// The first call of a shape makes a plan, and later ones use what is kept of it: with torch and without, all find the same faults.
#[test]
#[ignore = "second tier: many sources"]
fn a_fault_has_the_same_name_at_every_call() {
    let lab = Lab::new();
    quickstart(&lab);
    let at = 1u64 << 32;
    let good = rms_norm(at, &json!(0.5));
    let with = |change: &dyn Fn(&mut Value)| {
        let mut call = rms_norm(at, &json!(0.5));
        change(&mut call);
        call
    };
    let faults = [
        (rms_norm(at, &json!(true)), "WrongValue"),
        (rms_norm(at, &json!(1e300)), "WrongValue"),
        (rms_norm(at, &json!("0.5")), "WrongValue"),
        (with(&|call| call["inputs"][0][0] = json!(0)), "NullPointer"),
        (with(&|call| call["outputs"][0][0] = json!(0)), "NullPointer"),
        (with(&|call| call["outputs"][0][0] = json!(at)), "Overlap"),
        (with(&|call| call["outputs"][0][0] = json!(at + 256)), "Overlap"),
        (with(&|call| call["outputs"][0][0] = json!(at + (1 << 20) - 256)), "Overlap"),
        (with(&|call| call["inputs"][1][0] = json!(at)), ""),
        (with(&|call| call["outputs"][0][0] = json!(at + 512)), ""),
    ];
    for torch in [false, true] {
        for (call, name) in &faults {
            for calls in [vec![call.clone()], vec![good.clone(), call.clone(), call.clone()]] {
                let (said, log) = run_with(&lab, &calls, &[], torch);
                let names: Vec<&str> = said.lines().map(|line| line.split(' ').next().unwrap()).collect();
                let of_good = usize::from(calls.len() == 3);
                let expected = if name.is_empty() { 0 } else { calls.len() - of_good };
                assert_eq!(names, vec![*name; expected], "{torch} {call}: {said}");
                let launches = log.iter().filter(|line| line.starts_with("launch ")).count();
                assert_eq!(launches, calls.len() - expected, "{torch} {call}");
            }
        }
    }
}

/// Where params choose the grid, plans are kept by their values, and -0.0 is 0.0 there.
#[test]
#[ignore = "second tier: compiles programs"]
fn values_that_are_equal_as_keys_keep_their_bits() {
    let (lab, sample) = (Lab::new(), exotic());
    write(lab.folder.path(), &files(&sample.plan, Language::Python).unwrap());
    let all = all_expected(&sample);
    let named = |name: &str| {
        sample.cases.iter().position(|case| case.shape.name == name && case.kernel.name == "mixed").unwrap()
    };
    let (zero, minus) = (named("none"), named("minus-none"));
    assert_ne!(all[zero].lines, all[minus].lines);
    let calls = calls(&sample, &all);
    let sizes: Vec<String> = [zero, minus].iter().flat_map(|at| all[*at].sizes.clone()).collect();
    for torch in [false, true] {
        let order = [zero, minus, minus, zero];
        let (said, log) = run_with(&lab, &order.map(|at| calls[at].clone()), &sizes, torch);
        assert_eq!(said, "");
        let log: Vec<&String> =
            log.iter().filter(|l| !l.starts_with("attribute ") && !l.starts_with("global ")).collect();
        let expected: Vec<&String> = order.iter().flat_map(|at| &all[*at].lines).collect();
        assert_eq!(log, expected, "{torch}");
    }
}

#[test]
#[ignore = "second tier: compiles programs"]
fn autograd_learns_what_is_written_and_nothing_that_needs_a_derivative_is() {
    let lab = Lab::new();
    quickstart(&lab);
    let call = |requires_grad: bool| {
        let mut call = rms_norm(1 << 32, &json!(0.5));
        call["times"] = json!(3);
        call["versions"] = json!(true);
        call["out_requires_grad"] = json!(requires_grad);
        call
    };
    let (said, _) = run_with(&lab, &[call(false)], &[], true);
    assert_eq!(said, "versions [0, 0] [1]\nversions [0, 0] [2]\nversions [0, 0] [3]\n");
    let (said, log) = run_with(&lab, &[call(false), call(true)], &[], true);
    assert_eq!(said.matches("NeedsGrad `y` requires grad").count(), 3, "{said}");
    assert_eq!(log.iter().filter(|line| line.starts_with("launch ")).count(), 3);
}

#[test]
fn arrays_of_dlpack_may_be_versioned_and_what_is_written_may_not_be_read_only() {
    let lab = Lab::new();
    quickstart(&lab);
    let call = |at: &str, index: usize, protocol: &str| {
        let mut call = rms_norm(1 << 32, &json!(0.5));
        let mut array = call[at][index].as_array().unwrap().clone();
        array.extend([json!(2), json!(protocol)]);
        call[at][index] = Value::Array(array);
        call
    };
    for (at, protocol, says) in [
        ("inputs", "versioned", ""),
        ("outputs", "versioned", ""),
        ("inputs", "read-only", ""),
        ("outputs", "read-only", "WrongValue `y` is read-only"),
        ("inputs", "later", "WrongValue `x` has version 2 of DLPack"),
        ("inputs", "lanes", "WrongDType `x` has dtype (2, 16, 2)"),
    ] {
        let (said, log) = run(&lab, &[call(at, 0, protocol)], &[]);
        assert!(said.starts_with(says) && said.is_empty() == says.is_empty(), "{at} {protocol}: {said}");
        assert_eq!(log.iter().any(|line| line.starts_with("launch ")), says.is_empty(), "{at} {protocol}");
    }
}

#[test]
#[ignore = "second tier: installs Hugging Face kernels from PyPI"]
fn kernels_loads_the_folder_and_its_digest_is_that_of_its_files() {
    let (lab, sample) = (Lab::new(), exotic());
    write(lab.folder.path(), &files(&sample.plan, Language::Python).unwrap());
    let venv = root().join("target/bindings/venv");
    if !venv.join("bin/python").exists() {
        assert!(Command::new("python3").args(["-m", "venv"]).arg(&venv).status().unwrap().success());
    }
    let pip = Command::new(venv.join("bin/python")).args(["-m", "pip", "install", "-q", "kernels==0.17.2"]).status();
    assert!(pip.unwrap().success());
    let script = "import sys\nfrom pathlib import Path\nfrom kernels import get_local_kernel\n\
                  from kernels._rust import Digest, DigestAlgorithm, Metadata\nvariant = Path(sys.argv[1])\n\
                  metadata = Metadata.read_from_file(variant / 'metadata.json')\n\
                  metadata.digest.validate(Digest.hash_variant(DigestAlgorithm.SHA256, variant))\n\
                  loaded = get_local_kernel(variant)\nprint(loaded.__name__, loaded.__version__, loaded.mixed.__name__)\n";
    // Without CUDA, `kernels` refuses `build/torch-cuda` of a folder, and takes the folder of the variant itself.
    let output = Command::new(venv.join("bin/python"))
        .args(["-c", script])
        .arg(lab.path("build/torch-cuda"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.trim().ends_with("2.1.0 mixed"), "{said}");
}
