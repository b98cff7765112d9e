//! Inputs that a package gives, on a device: every step that makes inputs has the content of their files, or their generator, in its key, and verdicts say
//! which inputs candidates know.

use std::collections::BTreeMap;

use serde_json::json;

use crate::installed_python::python;
use crate::lab::{Lab, Machine, steps};
use crate::packaged::{ARCHIVE, files, licensed, run, verify};

/// The shape that is timed, with its input from a file.
const STORED: &str = "n = 100, init = { x = { safetensors = \"x.safetensors\", key = \"x\" } }, role";

/// A file with `x`: these values in turn. Their bytes are text.
fn file(values: &[f32]) -> String {
    let header = r#"{"x":{"dtype":"F32","shape":[100],"data_offsets":[0,400]}}"#;
    let data: Vec<u8> = values.iter().cycle().take(100).flat_map(|value| value.to_le_bytes()).collect();
    String::from_utf8([&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat()).unwrap()
}

#[test]
fn a_file_is_in_the_keys_of_all_steps_that_make_inputs() {
    let machine = Machine::with(&[(1, 2000.0), (2, 1000.0), (4, 1010.0)]);
    let lab = Lab::new(&machine).manifest("n = 100, role", STORED);
    lab.project.write("x.safetensors", &file(&[2.0, 3.0, 8.0]));
    let first = lab.built(&[]).executed_kinds();
    let shapes = lab.target()["shapes"].as_array().unwrap().clone();
    let known = |name: &str| shapes.iter().find(|shape| shape["shape"] == name).unwrap()["known_inputs"].clone();
    assert_eq!((known("big"), known("tiny")), (json!(["x"]), json!(null)));

    lab.project.write("x.safetensors", &file(&[2.0, 3.0, 12.0]));
    let built = lab.built(&[]);
    let again = built.executed_kinds();
    timed_again(&first, &again);
    let verified = steps(&built, "verify", "executed");
    assert!(!verified.is_empty() && verified.iter().all(|id| id.contains("/big/")), "{verified:?}");
    assert!(!again.contains_key("compile"), "{again:?}");
    assert_eq!(lab.built(&[]).count("executed"), 0);
}

/// Everything that launches a kernel at the bench shape ran in both builds.
fn timed_again(first: &BTreeMap<String, usize>, again: &BTreeMap<String, usize>) {
    for kind in ["bench", "pairs", "profile"] {
        assert_eq!((first.get(kind), first[kind] > 0), (again.get(kind), true), "{kind}: {again:?}");
    }
}

#[test]
#[ignore = "second tier: calls Python for the inputs of every trial"]
fn a_function_that_makes_inputs_is_in_the_keys_of_all_steps_that_call_it() {
    let Some(python) = python() else { return };
    let machine = Machine::with(&[(1, 2000.0), (2, 1000.0), (4, 1010.0)]);
    let lab = Lab::new(&machine).manifest("dims = [\"n\"]", "dims = [\"n\"]\ngenerate_inputs = \"inputs.py::ramp\"");
    let lab = Lab { project: lab.project.clone().var("KFORGE_TOOLCHAIN_PYTHON", python), ..lab };
    let function = "import numpy\n\ndef ramp(seed, n):\n    return {'x': numpy.linspace(0, 1 + seed % 7, n)}\n";
    lab.project.write("inputs.py", function);
    let first = lab.built(&[]).executed_kinds();
    lab.project.write("inputs.py", &function.replace("% 7", "% 5"));
    let again = lab.built(&[]).executed_kinds();
    timed_again(&first, &again);
    assert!(!again.contains_key("compile"), "{again:?}");
    assert_eq!(lab.built(&[]).count("executed"), 0);
}

#[test]
fn an_artifact_has_the_files_with_inputs_among_its_sources() {
    let lab = licensed().manifest("n = 100, role", STORED);
    let text = file(&[2.0, 3.0, 8.0]);
    lab.project.write("x.safetensors", &text);
    lab.built(&[]);
    run(&lab, &["package"], 0);
    let packed = files(&lab);
    let own = packed.iter().find(|(name, _)| name.ends_with("/x.safetensors")).map(|(_, bytes)| bytes.as_slice());
    assert_eq!(own, Some(text.as_bytes()), "{:?}", packed.keys());
    verify(&lab, &lab.project.root().join(ARCHIVE), 0);
}
