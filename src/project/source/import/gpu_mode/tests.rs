//! Tasks of gpu-mode: what becomes a manifest with its adapters, and what is left out or refused.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::extents::{Size, fit};
use super::*;
use crate::source::import::tasks::{FindingKind, Origin, Refusal};

/// A `task.yml` with these tests and benchmarks.
fn task(tests: Value, benchmarks: Value) -> TaskYaml {
    serde_json::from_value(
        json!({ "lang": "py", "tests": tests, "benchmarks": benchmarks, "ranked_by": "geom", "gpus": ["A100"] }),
    )
    .unwrap()
}

fn source(arguments: &[&str], names: Option<&[&str]>, check: Check) -> GpuModeSource {
    let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let functions = [("generate_input", arguments), ("ref_kernel", &["data"][..])];
    GpuModeSource {
        functions: functions.map(|(name, of)| (name.to_string(), Some(owned(of)))).into(),
        names: names.map(owned),
        check,
        refused: None,
    }
}

/// What PyTorch shows of a sum of two tensors with room for the result, at these rows and columns.
fn sum(sizes: &[(i64, i64)]) -> Value {
    let cases = sizes.iter().map(|(rows, cols)| {
        json!({ "shapes": [[rows, cols], [rows, cols], [rows, cols]], "outputs": [[rows, cols]], "constants": [null, null, null] })
    });
    json!({
        "form": { "tuple": [0, 1, 2] },
        "leaves": [{ "path": [0], "dtype": "f16" }, { "path": [1], "dtype": "f16" }, { "path": [2], "dtype": "f16" }],
        "cases": cases.collect::<Vec<_>>(),
        "outputs": [{ "name": "", "dtype": "f16" }],
        "room": [[2, 0]], "contiguous": [true, false, true], "constant": [false], "low": null,
    })
}

fn write(task: &TaskYaml, source: &GpuModeSource, facts: &Value) -> Result<ImportedGpuMode, Refusal> {
    let facts: GpuModeFacts = serde_json::from_value(facts.clone()).unwrap();
    let origin = Origin { set: "gpu-mode".into(), level: None, number: None, name: "sum_py".into() };
    write_gpu_mode(&GpuModeRequest {
        package: "sum_py",
        torch: Some("2.9"),
        origin: &origin,
        task,
        source,
        arguments: &arguments(task, source)?,
        facts: &facts,
        limit: 100_000,
    })
}

const EXACT: Check = Check::Close { atol: 1e-8, rtol: 1e-5 };

fn sizes_of_sum() -> (TaskYaml, GpuModeSource, Value) {
    let tests = json!([{ "size": 7, "pad": 3, "seed": 1 }, { "size": 16, "pad": 1, "seed": 2 }]);
    let benchmarks = json!([{ "size": 512, "pad": 64, "seed": 3 }, { "size": 512, "pad": 64, "seed": 4 }]);
    let facts = sum(&[(7, 10), (16, 17), (512, 576), (512, 576)]);
    (task(tests, benchmarks), source(&["size", "pad", "seed"], Some(&["a", "in", "_"]), EXACT), facts)
}

#[test]
fn a_task_becomes_an_operator_whose_adapter_calls_it() {
    let (task, source, facts) = sizes_of_sum();
    let done = write(&task, &source, &facts).unwrap();
    for line in [
        "# Submissions are ranked by `geom` over the benchmarks.",
        "[operator.sum_py]",
        "origin = { set = \"gpu-mode\", name = \"sum_py\" }",
        "dims = [\"size\", \"pad\"]",
        "inputs.a = { dtype = \"f16\", shape = [\"size\", \"size + pad\"] }",
        // A word of Python.
        "inputs.in_ = { dtype = \"f16\", shape = [\"size\", \"size + pad\"] }",
        "outputs.y = { dtype = \"f16\", shape = [\"size\", \"size + pad\"] }",
        "reference = { torch = \"kforge_task.py::reference\" }",
        "generate_inputs = { torch = \"kforge_task.py::inputs\" }",
        "tolerance = { atol = 1e-8, rtol = 1e-5, ulp = 1 }",
        "test_0 = { size = 7, pad = 3 }",
        "benchmark_0 = { size = 512, pad = 64, role = \"bench\" }",
    ] {
        assert!(done.text.lines().any(|own| own == line), "no {line}:\n{}", done.text);
    }
    let names: Vec<&str> = done.shapes.iter().map(|shape| shape.name.as_str()).collect();
    assert_eq!(names, ["test_0", "test_1", "benchmark_0"], "a case that differs in its seed is the same shape");
    for line in [
        "    data = generate_input(size=axes_and_scalars[\"size\"], pad=axes_and_scalars[\"pad\"], seed=seed)",
        "    return {\"a\": data[0], \"in_\": data[1]}",
        "def reference(a, in_, pad, size):",
        "    return ref_kernel((a, in_, torch.empty((size, size + pad))))",
    ] {
        assert!(done.adapter.lines().any(|own| own == line), "no {line}:\n{}", done.adapter);
    }
    let call =
        "    return custom_kernel((a, in_, torch.empty((size, size + pad), dtype=torch.float16, device=a.device)))";
    assert!(done.kernel.lines().any(|own| own == call), "{}", done.kernel);
    let said: Vec<FindingKind> = done.findings.iter().map(|finding| finding.kind).collect();
    use FindingKind::{Inputs, Tolerance, TooLarge};
    assert_eq!(said, [Inputs, Inputs, Tolerance, TooLarge], "{:?}", done.findings);
    assert!(
        done.findings[3].message.contains("at `benchmark_0`, `benchmark_1` the reference needs more than 100000 bytes")
    );
    let tables = kernel_tables("sum_py", ["mine"]);
    assert!(tables.contains("source = \"mine/kernel.py::kernel\""), "{tables}");
}

#[test]
fn tables_of_tensors_and_constants_keep_their_form() {
    let tests = json!([
        { "width": 4, "share": 90, "gated": true, "kind": "a", "seed": null },
        { "width": 8, "share": 12.5, "gated": false, "kind": "a", "seed": null },
        { "width": 8, "share": 1, "gated": false, "kind": "b", "seed": null },
    ]);
    let case = |width: i64, gated: bool| json!({ "shapes": [[], [width, 3], [], [], []], "outputs": [[width * width]], "constants": ["a b", null, 2 * width, gated, { "float": "inf" }] });
    let facts = json!({
        "form": { "list": [0, { "dict": [["up.w", 1]] }, { "dict": [["n", 2], ["gated", 3], ["most", 4]] }] },
        "leaves": [
            { "path": [0], "dtype": null }, { "path": [1, "up.w"], "dtype": "f32" }, { "path": [2, "n"], "dtype": null },
            { "path": [2, "gated"], "dtype": null }, { "path": [2, "most"], "dtype": null },
        ],
        "cases": [case(4, true), case(8, false)],
        "outputs": [{ "name": "total", "dtype": "i64" }],
        "room": [], "contiguous": [true, true, true, true, true], "constant": [true],
        "low": { "floats": "float32", "operation": "aten.x", "line": 3 },
    });
    let of = source(&["width", "share", "gated", "kind"], None, Check::Own);
    let done = write(&task(tests, Value::Null), &of, &facts).unwrap();
    for line in [
        "inputs.up_w = { dtype = \"f32\", shape = [\"width\", 3] }",
        "outputs.total = { dtype = \"i64\", shape = [\"total_0\"] }",
        "params.share = { dtype = \"f64\" }",
        "params.gated = { dtype = \"bool\" }",
        "test_1 = { width = 8, total_0 = 64, share = 12.5, gated = false }",
    ] {
        assert!(done.text.lines().any(|own| own == line), "no {line}:\n{}", done.text);
    }
    let call = "    return ref_kernel([\"a b\", {\"up.w\": up_w}, {\"n\": 2 * width, \"gated\": gated, \"most\": float(\"inf\")}])";
    assert!(done.adapter.lines().any(|own| own == call), "{}", done.adapter);
    assert!(done.adapter.contains("def reference(up_w, gated, width):"), "{}", done.adapter);
    assert!(done.adapter.contains("gated=axes_and_scalars[\"gated\"], kind=\"a\")"), "{}", done.adapter);
    assert!(done.adapter.contains("return {\"up_w\": data[1][\"up.w\"]}"), "{}", done.adapter);
    let said: Vec<FindingKind> = done.findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(said, [FindingKind::ConstantOutput, FindingKind::LowFloats, FindingKind::Workload]);
    let left_out = "the case `test_2` is left out: its `kind` is `b`, and `a` in the cases that are imported";
    assert_eq!(done.findings[2].message, left_out);
}

#[test]
fn what_a_manifest_cannot_state_is_refused_or_left_out_with_the_reason() {
    let (task_of_sum, of, facts) = sizes_of_sum();
    let refused = |task: &TaskYaml, of: &GpuModeSource, facts: &Value| write(task, of, facts).unwrap_err().message;
    assert_eq!(refused(&task(json!([]), Value::Null), &of, &facts), "`task.yml` has neither `tests` nor `benchmarks`");
    let none = GpuModeSource { functions: BTreeMap::new(), ..of.clone() };
    assert_eq!(refused(&task_of_sum, &none, &facts), "`reference.py` defines no function `generate_input`");
    let broken = Refusal { kind: "syntax".into(), message: "is not Python".into(), line: Some(3) };
    let broken = GpuModeSource { refused: Some(broken), ..of.clone() };
    assert_eq!(refused(&task_of_sum, &broken, &facts), "is not Python");
    let hostile = task(json!([{ "size": 1, "x=exit()": 1 }]), Value::Null);
    assert_eq!(refused(&hostile, &of, &facts), "`task.yml` has the key `x=exit()`, which is no argument");
    let mut short = facts.clone();
    short["contiguous"] = json!([]);
    assert_eq!(refused(&task_of_sum, &of, &short), "its description is not complete");
    // A case that cannot be sized is left out.
    let mut one = facts.clone();
    one["cases"][1] = json!({ "refused": { "kind": "error", "message": "out of memory", "line": null } });
    let done = write(&task_of_sum, &of, &one).unwrap();
    assert!(
        done.findings.iter().any(|f| f.message == "the case `test_1` is left out: out of memory"),
        "{:?}",
        done.findings
    );
    assert_eq!(done.shapes.len(), 2);
    // A constant that follows the case in no known way.
    let mut odd = facts;
    odd["leaves"][2]["dtype"] = Value::Null;
    odd["room"] = json!([]);
    for (at, value) in [17, 5, 90, 91].iter().enumerate() {
        odd["cases"][at]["constants"][2] = json!(value);
    }
    let why = "`data[2]` follows from the case in a way that no expression shows";
    assert_eq!(refused(&task_of_sum, &of, &odd), why);
}

#[test]
fn the_tolerance_is_that_of_the_task_where_it_is_known() {
    let (task, of, facts) = sizes_of_sum();
    let line = |check: Check, dtype: &str| {
        let mut facts = facts.clone();
        facts["outputs"][0]["dtype"] = dtype.into();
        facts["room"] = json!([]);
        let done = write(&task, &GpuModeSource { check, ..of.clone() }, &facts).unwrap();
        let line = done.text.lines().find_map(|line| line.strip_prefix("tolerance = ")).map(String::from);
        (line, done.findings.iter().any(|finding| finding.kind == FindingKind::Tolerance))
    };
    let loose = Check::Close { atol: 1e-2, rtol: 1e-2 };
    assert_eq!(line(loose, "f16"), (Some("{ atol = 0.01, rtol = 0.01 }".into()), false));
    assert_eq!(line(Check::Equal, "f32"), (Some("{ ulp = 1 }".into()), true));
    assert_eq!(line(Check::Own, "f32"), (None, true));
    // Integers are exact.
    assert_eq!(line(Check::Equal, "i64"), (None, false));
    assert_eq!(line(Check::Own, "i64"), (None, false));
}

#[test]
fn an_expression_gives_the_integer_in_every_case() {
    let size = |name: &str, values: &[i64]| Size { name: name.into(), values: values.to_vec() };
    let sizes = [size("n", &[5, 9, 20]), size("k", &[3, 2, 7])];
    let of = |wanted: &[i64]| fit(wanted, &sizes);
    for (wanted, text) in [
        ([5, 9, 20], "n"),
        ([4, 4, 4], "4"),
        ([6, 10, 21], "n + 1"),
        ([10, 18, 40], "2 * n"),
        ([2, 4, 10], "n // 2"),
        ([15, 18, 140], "n * k"),
        ([8, 11, 27], "n + k"),
        ([3, 8, 14], "n - k + 1"),
        ([1, 4, 2], "n // k"),
    ] {
        assert_eq!(of(&wanted).as_deref(), Some(text));
    }
    assert_eq!(of(&[1, 100, 3]), None);
    assert_eq!(fit(&[1, 2], &[size("zero", &[0, 0]), size("n", &[i64::MAX, i64::MIN])]), None);
}

#[test]
fn only_files_that_a_reference_may_import_are_read() {
    let yaml: TaskYaml = serde_json::from_value(json!({
        "files": [
            { "name": "submission.py", "source": "@SUBMISSION@" }, { "name": "eval.py", "source": "../eval.py" },
            { "name": "utils.py", "source": "../utils.py" }, { "name": "x.cuh", "source": "x.cuh" },
        ],
        "config": { "main": "eval.py", "compile_flags": ["-O3"] },
    }))
    .unwrap();
    assert_eq!(yaml.sources().map(|file| file.name.as_str()).collect::<Vec<_>>(), ["utils.py"]);
}
