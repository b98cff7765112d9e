//! The Python package, without torch: arrays come through DLPack.

use std::fs;
use std::process::Command;

use kforge::model::{Role, Scalar};
use kforge::release::bindings::{Language, files};
use serde_json::{Value, json};

use crate::documents::Sample;
use crate::expected::{Expected, address};
use crate::lab::{Lab, all_expected, compare, root, samples, write};

/// Every case as a call. Where `usual` is true, params that have the default value are left out.
fn calls(sample: &Sample, expected: &[Expected]) -> Vec<Value> {
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
        json!({ "kernel": function.kernel, "inputs": of(false), "outputs": of(true), "dims": dims, "params": params })
    };
    sample.cases.iter().zip(expected).map(one).collect()
}

fn run(lab: &Lab, calls: &[Value], sizes: &[String]) -> (String, Vec<String>) {
    let path = lab.path("calls.json");
    fs::write(&path, serde_json::to_vec(calls).unwrap()).unwrap();
    let mut python = Command::new("python3");
    python.arg(root().join("tests/bindings/driven.py")).arg(lab.path("build/torch-cuda")).arg(path);
    lab.run(&mut python, sizes)
}

#[test]
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
    }
}
