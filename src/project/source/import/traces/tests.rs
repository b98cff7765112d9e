//! Datasets in both forms: what becomes a manifest, what is refused with its field, and that every file is kept.

mod round_trip;

use std::collections::BTreeMap;

use super::*;
use crate::source::import::tasks::FindingKind;
use serde_json::{Value, json};

/// A definition of a product, as a value to be edited.
fn gemm() -> Value {
    json!({
        "name": "gemm_k_64", "op_type": "gemm", "tags": ["status:verified"],
        "axes": { "M": { "type": "var" }, "N": { "type": "var" }, "K": { "type": "const", "value": 64 } },
        "inputs": {
            "A": { "shape": ["M", "K"], "dtype": "float16" },
            "B": { "shape": ["N", "K"], "dtype": "float16" },
            "alpha": { "shape": null, "dtype": "float32" },
        },
        "outputs": { "C": { "shape": ["M", "N"], "dtype": "float16" } },
        "reference": "import torch\n\ndef run(A, B, alpha):\n    return alpha * (A @ B.T)\n",
    })
}

fn workload(uuid: &str) -> Value {
    json!({
        "uuid": uuid, "axes": { "M": 16, "N": 32 },
        "inputs": { "A": { "type": "random" }, "B": { "type": "random" }, "alpha": { "type": "scalar", "value": 2 } },
    })
}

/// The line of a workload of [`gemm`].
fn line(workload: Value) -> String {
    json!({ "definition": "gemm_k_64", "workload": workload, "solution": null, "evaluation": null }).to_string() + "\n"
}

fn solution() -> Value {
    json!({
        "name": "gemm_torch", "definition": "gemm_k_64", "author": "someone",
        "spec": {
            "language": "python", "target_hardware": ["cuda"], "entry_point": "main.py::run", "dependencies": [],
            "destination_passing_style": false,
        },
        "sources": [{ "path": "main.py", "content": "def run(A, B, alpha):\n    return alpha * (A @ B.T)\n" }],
    })
}

fn files(all: &[(&str, String)]) -> BTreeMap<String, String> {
    all.iter().map(|(path, text)| (path.to_string(), text.clone())).collect()
}

/// The files of a dataset with one definition, one workload and these solutions.
fn dataset(definition: &Value, workloads: &str, solutions: &[Value]) -> BTreeMap<String, String> {
    let mut all = files(&[
        ("definitions/gemm/gemm_k_64.json", definition.to_string()),
        ("workloads/gemm/gemm_k_64.jsonl", workloads.to_string()),
    ]);
    for (at, solution) in solutions.iter().enumerate() {
        all.insert(format!("solutions/someone/gemm/gemm_k_64/{at}.json"), solution.to_string());
    }
    all
}

/// What stands for Python's parser: the arguments of `def NAME(...)` on one line.
fn arguments(source: &str, function: &str) -> Option<Vec<String>> {
    let rest = source.split_once(&format!("def {function}("))?.1;
    Some(rest.split_once(')')?.0.split(',').map(|name| name.trim().to_string()).filter(|n| !n.is_empty()).collect())
}

/// What stands for the files with inputs: `b` is what the definition declares, `short` is not, and there is no other.
fn stored(path: &str, key: &str) -> Result<StoredInput, NotStored> {
    let rows = match key {
        "b" => 32,
        "short" => 31,
        _ => return Err(NotStored::Unfit(format!("has no tensor `{key}`, but `b`, `short`").into())),
    };
    let place = path.trim_start_matches("./").to_string();
    Ok(StoredInput { place, dtype: "f16".into(), shape: vec![rows, 64] })
}

fn write(files: &BTreeMap<String, String>) -> Result<ImportedDefinition, String> {
    let (sets, strays) = sets(files);
    assert_eq!((sets.len(), strays.len()), (1, 0), "{strays:?}");
    let parts = sets[0].parts.as_ref().map_err(|why| why.to_string())?;
    let request = DefinitionRequest {
        package: "gemm_k_64",
        file: "ref.py",
        torch: Some("2.9"),
        parts,
        arguments: &arguments,
        stored: &stored,
    };
    write_definition(&request).map_err(|why| why.to_string())
}

#[track_caller]
fn written(files: &BTreeMap<String, String>) -> ImportedDefinition {
    write(files).unwrap()
}

/// The error of a dataset whose definition is edited.
#[track_caller]
fn refused(edit: impl Fn(&mut Value)) -> String {
    let mut definition = gemm();
    edit(&mut definition);
    write(&dataset(&definition, &line(workload("a-1")), &[])).unwrap_err()
}

/// The definition with a function that makes inputs, and a workload that asks for it.
fn custom() -> (Value, Value) {
    let mut definition = gemm();
    let reference = format!("def draw(axes, device):\n    return {{}}\n\n\n{}", gemm()["reference"].as_str().unwrap());
    definition["reference"] = reference.into();
    definition["custom_inputs_entrypoint"] = "draw".into();
    let mut own = workload("a");
    own["inputs"]["A"] = json!({ "type": "custom" });
    own["inputs"]["B"] = json!({ "type": "custom" });
    (definition, own)
}

#[test]
fn the_function_of_a_definition_makes_inputs_that_are_custom() {
    let (mut definition, own) = custom();
    definition["constraints"] = json!(["M < N"]);
    let done = written(&dataset(&definition, &line(own), &[]));
    for line in [
        "generate_inputs = { torch = \"ref.py::draw\" }",
        "inputs.A = { dtype = \"f16\", shape = [\"M\", \"K\"] }",
        "a = { M = 16, N = 32, alpha = 2.0, role = \"bench\" }",
    ] {
        assert!(done.text.lines().any(|own| own == line), "no {line}: {}", done.text);
    }
    // How they are drawn, and under which conditions, is the function's own matter.
    assert!(done.findings.iter().all(|finding| finding.kind != FindingKind::Inputs), "{:?}", done.findings);
    // Without such a workload nothing is made.
    let (definition, _) = custom();
    let done = written(&dataset(&definition, &line(workload("a")), &[]));
    assert!(!done.text.contains("generate_inputs") && done.text.contains("init = \"normal\""), "{}", done.text);
}

#[test]
fn workloads_with_custom_inputs_that_cannot_be_made_are_left_out_with_the_reason() {
    let (definition, own) = custom();
    let left_out = |definition: &Value, workloads: &[Value]| {
        let lines: String = workloads.iter().map(|one| line(one.clone())).collect();
        match write(&dataset(definition, &lines, &[])) {
            Err(why) => why,
            Ok(done) => done.findings.iter().map(|finding| finding.message.clone()).collect(),
        }
    };
    let mut nameless = definition.clone();
    nameless["custom_inputs_entrypoint"] = Value::Null;
    let said = left_out(&nameless, std::slice::from_ref(&own));
    assert!(
        said.contains("`inputs.A.type` is `custom`, and the definition states no `custom_inputs_entrypoint`"),
        "{said}"
    );
    let mut missing = definition.clone();
    missing["custom_inputs_entrypoint"] = "other".into();
    let said = left_out(&missing, std::slice::from_ref(&own));
    assert!(said.contains("the reference defines no function `other` with two arguments"), "{said}");
    let mut number = own.clone();
    number["inputs"]["alpha"] = json!({ "type": "custom" });
    let said = left_out(&definition, &[number]);
    assert!(said.contains("`inputs.alpha.type` is `custom` for a number, which only a call of `draw` shows"), "{said}");
    let said = left_out(&definition, &[own, workload("b")]);
    assert!(said.contains("the workload `b` is left out: `inputs.A.type` is not `custom`"), "{said}");
}

#[test]
fn a_definition_becomes_an_operator_with_a_shape_for_each_workload() {
    let lines = line(workload("0f3c-1")) + "\n" + &line(workload("b"));
    let done = written(&dataset(&gemm(), &lines, &[]));
    for line in [
        "[operator.gemm_k_64]",
        "origin = { set = \"flashinfer-trace\", name = \"gemm_k_64\" }",
        "dims = [\"M\", \"N\"]",
        "derived = { K = \"64\" }",
        "inputs.A = { dtype = \"f16\", shape = [\"M\", \"K\"], init = \"normal\" }",
        "params.alpha = { dtype = \"f32\" }",
        "outputs.C = { dtype = \"f16\", shape = [\"M\", \"N\"] }",
        "reference = { torch = \"ref.py::run\" }",
        "tolerance = { atol = 1e-2, rtol = 1e-2 }",
        "0f3c-1 = { M = 16, N = 32, alpha = 2.0, role = \"bench\" }",
        "torch = \"2.9\"",
    ] {
        assert!(done.text.lines().any(|own| own == line), "{line}\n{}", done.text);
    }
    assert_eq!(done.files, [("ref.py".to_string(), gemm()["reference"].as_str().unwrap().to_string())]);
    assert_eq!(done.shapes[1], ("b".to_string(), vec![("M".to_string(), 16), ("N".to_string(), 32)]));
    assert_eq!(done.findings.iter().map(|f| f.kind).collect::<Vec<_>>(), [FindingKind::Tolerance]);
}

#[test]
fn arguments_go_by_their_order() {
    let mut definition = gemm();
    definition["reference"] = "def run(x, B, s):\n    return s * (x @ B.T)\n".into();
    // A value from `json!` has its keys in alphabetical order, which is that of these inputs.
    let done = written(&dataset(&definition, &line(workload("a")), &[]));
    let wanted = "reference = { torch = \"ref.py::run\", names = { \"x\" = \"A\", \"s\" = \"alpha\" } }";
    assert!(done.text.contains(wanted), "{}", done.text);
}

/// A workload whose input is a tensor of a file.
fn from_file(uuid: &str, input: &str, key: &str) -> Value {
    let mut one = workload(uuid);
    one["inputs"][input] = json!({ "type": "safetensors", "path": "./blob/b.safetensors", "tensor_key": key });
    one
}

#[test]
fn an_input_of_a_file_is_that_of_the_shape() {
    let done = written(&dataset(&gemm(), &(line(workload("a")) + &line(from_file("b", "B", "b"))), &[]));
    let wanted = "b = { M = 16, N = 32, alpha = 2.0, init = { B = { safetensors = \"flashinfer-trace/blob/b.safetensors\", key = \"b\" } }, role = \"bench\" }";
    assert!(done.text.lines().any(|own| own == wanted), "{wanted}\n{}", done.text);
    let known = done.findings.iter().find(|f| f.kind == FindingKind::Inputs).unwrap();
    assert_eq!(known.message, "`B` has the values of files at some shapes: candidates can know them");
    // With workloads of this kind only, it is a package all the same.
    assert_eq!(written(&dataset(&gemm(), &line(from_file("b", "B", "b")), &[])).shapes.len(), 1);
}

#[test]
fn a_file_may_be_named_from_the_dataset_or_from_the_definition() {
    let of = |path: &str| {
        let mut one = workload("a");
        one["inputs"]["B"] = json!({ "type": "safetensors", "path": path, "tensor_key": "b" });
        let (sets, _) = sets(&dataset(&gemm(), &line(one), &[]));
        sets[0].blobs().into_iter().map(|(path, places)| (path.to_string(), places)).collect::<Vec<_>>()
    };
    let both = vec!["blob/b".to_string(), "definitions/gemm/blob/b".to_string()];
    assert_eq!(of("./blob/b"), [("./blob/b".to_string(), both)]);
    for elsewhere in ["/etc/passwd", "../b", "blob/../../b", "blob//b"] {
        assert_eq!(of(elsewhere), [(elsewhere.to_string(), vec![])]);
    }
}

#[test]
fn workloads_whose_inputs_cannot_be_had_are_left_out_by_name() {
    let cases = [
        (
            "B",
            "short",
            "`inputs.B.path` names `./blob/b.safetensors`, which has `short` as f16 of shape [31, 64], expected f16 of shape [32, 64]",
        ),
        (
            "A",
            "b",
            "`inputs.A.path` names `./blob/b.safetensors`, which has `b` as f16 of shape [32, 64], expected f16 of shape [16, 64]",
        ),
        ("B", "c", "`inputs.B.path` names `./blob/b.safetensors`, which has no tensor `c`, but `b`, `short`"),
        ("alpha", "b", "`inputs.alpha.type` is `safetensors` for a number"),
    ];
    for (input, key, why) in cases {
        let lines = line(workload("a")) + &line(from_file("b", input, key));
        let done = written(&dataset(&gemm(), &lines, &[]));
        assert_eq!(done.shapes.len(), 1);
        let left_out = done.findings.iter().find(|f| f.kind == FindingKind::Workload).unwrap();
        assert_eq!(left_out.message, format!("the workload `b` is left out: {why}"));
    }
    let none = write(&dataset(&gemm(), &line(from_file("b", "B", "c")), &[])).unwrap_err();
    assert!(none.starts_with("`workloads` has none that can be imported: the workload `b`"), "{none}");
}

#[test]
fn the_form_of_sol_execbench_is_read_with_its_expressions_and_tolerances() {
    let definition = json!({
        "name": "rows", "op_type": null, "hf_id": "org/model",
        "axes": {
            "batch": { "type": "var", "description": null }, "len": { "type": "var" },
            "rows": { "type": "expr", "expression": "batch * len" }, "half": { "type": "expr", "expression": "rows // 2" },
        },
        "inputs": { "x": { "shape": ["rows", "3"], "dtype": "float32" } },
        "outputs": { "y": { "shape": ["half"], "dtype": "float32" } },
        "reference": "def run(x):\n    return x[::2, 0]\n",
    });
    let workload = json!({
        "uuid": "uuid1", "axes": { "batch": 2, "len": 8 }, "inputs": { "x": { "type": "random" } },
        "tolerance": { "max_atol": 0.001, "max_error_cap": 0.5, "required_matched_ratio": 0.95 },
    });
    let all = files(&[
        ("L1/rows/definition.json", definition.to_string()),
        ("L1/rows/workload.jsonl", workload.to_string() + "\n"),
        ("L1/rows/notes.txt", "unrelated".into()),
    ]);
    let done = written(&all);
    for line in [
        "derived = { rows = \"batch * len\", half = \"rows // 2\" }",
        "inputs.x = { dtype = \"f32\", shape = [\"rows\", 3], init = \"normal\" }",
        "uuid1 = { batch = 2, len = 8, tolerance = { atol = 0.001, rtol = 0.01, matched = 0.95, max_error = 0.5, nonfinite = \"forbid\" }, role = \"bench\" }",
    ] {
        assert!(done.text.lines().any(|own| own == line), "{line}\n{}", done.text);
    }
    assert!(done.findings.is_empty(), "{:?}", done.findings);
}

#[test]
fn solutions_are_baselines_or_kernels_or_left_out_by_name() {
    let of = |name: &str, edit: &dyn Fn(&mut Value)| {
        let mut one = solution();
        one["name"] = name.into();
        edit(&mut one);
        one
    };
    let kernel = "[kernel.solution]\nsource = \"k.cu\"\n\n[[kernel.solution.launch]]\nentry = \"k\"\ngrid = [\"M\"]\nblock = [32]\nargs = [\"A\", \"B\", \"C\", \"N\"]\n";
    let exported = of("own", &|one| {
        one["spec"] = json!({ "language": "cuda", "target_hardware": ["cuda"], "entry_point": "k.cu::k" });
        one["sources"] = json!([{ "path": "k.cu", "content": "__global__ void k() {}\n" }]);
        one["kforge"] = json!({ "kernel": kernel });
    });
    let hostile = of("hostile", &|one| {
        one["spec"]["entry_point"] = "k.cu::k".into();
        one["sources"] = json!([{ "path": "k.cu", "content": "__global__ void k() {}\n" }]);
        one["kforge"] = json!({ "kernel": "[kernel.solution]\nsource = \"k.cu\"\ngenerate = { agent = \"x\" }\n" });
    });
    let all = [
        of("plain", &|_| {}),
        of("in_place", &|one| one["spec"]["destination_passing_style"] = true.into()),
        of("host", &|one| {
            one["spec"]["language"] = "cuda".into();
        }),
        of("tiles", &|one| one["spec"]["language"] = "tilelang".into()),
        of("needy", &|one| one["spec"]["dependencies"] = json!(["cutlass"])),
        of("other_names", &|one| one["sources"][0]["content"] = "def run(a, b, c):\n    return a\n".into()),
        exported,
        hostile,
    ];
    let done = written(&dataset(&gemm(), &line(workload("a")), &all));
    let told: Vec<&str> =
        done.findings.iter().filter(|f| f.kind == FindingKind::Solution).map(|f| f.message.as_str()).collect();
    assert_eq!(
        told,
        [
            "the solution `plain` is the baseline `plain`",
            "the solution `in_place` is left out: it takes its outputs as arguments, and a baseline returns them",
            "the solution `host` is left out: it is CUDA C++ with host code that launches it: `kforge import cuda` reads its kernels",
            "the solution `tiles` is left out: it is in tilelang, which kforge does not run",
            "the solution `needy` is left out: it needs `cutlass`, and a baseline may use PyTorch and Triton only",
            "the solution `other_names` is left out: it takes (a, b, c), and a baseline takes the inputs by name: (A, B, alpha)",
            "the solution `own` is the kernel `own`",
            "the solution `hostile` is left out: it has the key `generate`, which does not travel with a kernel",
        ]
    );
    for line in [
        "[baseline.plain]",
        "source = \"solutions/plain/main.py::run\"",
        "[kernel.own]",
        "source = \"solutions/own/k.cu\"",
        "[[kernel.own.launch]]",
    ] {
        assert!(done.text.lines().any(|own| own == line), "{line}\n{}", done.text);
    }
    let names: Vec<&str> = done.files.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(names, ["ref.py", "solutions/plain/main.py", "solutions/own/k.cu"]);
}

#[test]
fn what_is_malformed_is_named_by_file_and_field() {
    type Edit = fn(&mut Value);
    let cases: [(Edit, &str); 9] = [
        (|d| drop(d.as_object_mut().unwrap().remove("inputs")), "`inputs` is missing"),
        (|d| d["axes"]["K"]["value"] = json!(-1), "`axes.K.value` is -1, expected an integer from 0"),
        (|d| d["axes"]["K"]["type"] = json!("range"), "`axes.K.type` is `range`, expected `var`, `const` or `expr`"),
        (|d| d["inputs"]["A"]["shape"][1] = json!("Q"), "`inputs.A.shape.1` is `Q`, which is no axis"),
        (|d| d["inputs"]["A"]["dtype"] = json!(16), "`inputs.A.dtype` is a number, expected a text"),
        (|d| d["inputs"]["A"]["dtype"] = json!("float4_e2m1"), "`inputs.A.dtype` is `float4_e2m1`, which"),
        (
            |d| d["outputs"] = json!({ "A": { "shape": ["M"], "dtype": "bool" } }),
            "`outputs.A` has the name of an input",
        ),
        (|d| d["reference"] = json!("run = 1\n"), "`reference` defines no function `run`"),
        (|d| d["axes"] = json!([]), "`axes` is a list, expected an object"),
    ];
    for (edit, wanted) in cases {
        let why = refused(edit);
        assert!(why.contains(wanted), "{why}\n{wanted}");
    }
    let lines = line(workload("a")) + "\n" + &line(json!({ "uuid": "b", "axes": { "M": 1 }, "inputs": {} }));
    let why = write(&dataset(&gemm(), &lines, &[])).unwrap_err();
    assert_eq!(why, "`workloads/gemm/gemm_k_64.jsonl`: line 3: `workload.axes.N` is missing");
    let twice = write(&dataset(&gemm(), &(line(workload("a")) + &line(workload("a"))), &[])).unwrap_err();
    assert!(twice.ends_with("`workload.uuid` is `a` in two workloads"), "{twice}");
    let mut outside = solution();
    outside["sources"][0]["path"] = "../main.py".into();
    let why = write(&dataset(&gemm(), &line(workload("a")), &[outside])).unwrap_err();
    assert!(why.contains("0.json`: `sources.0.path` is `../main.py`"), "{why}");
    let cut = write(&dataset(&gemm(), "{\"definition\": \"gemm_k_64\"", &[])).unwrap_err();
    assert!(cut.contains("gemm_k_64.jsonl`: line 1: `$` is not JSON"), "{cut}");
}

#[test]
fn what_belongs_to_no_definition_is_named() {
    let mut all = dataset(&gemm(), &line(workload("a")), &[]);
    let mut other = solution();
    other["definition"] = "gone".into();
    all.insert("solutions/someone/gemm/gone/x.json".into(), other.to_string());
    all.insert("definitions/gemm/again.json".into(), gemm().to_string());
    let (sets, strays) = sets(&all);
    assert_eq!(sets.len(), 1);
    let why: Vec<String> = strays.iter().map(|stray| stray.why.to_string()).collect();
    let told: Vec<(&str, &str)> =
        strays.iter().zip(&why).map(|(stray, why)| (stray.path.as_str(), why.as_str())).collect();
    assert_eq!(
        told,
        [
            ("definitions/gemm/gemm_k_64.json", "`name` is `gemm_k_64`, as in `definitions/gemm/again.json`"),
            ("solutions/someone/gemm/gone/x.json", "`definition` is `gone`, which the dataset does not have"),
        ]
    );
}

#[test]
fn the_tables_of_a_kernel_travel_without_what_is_bound_to_a_package() {
    let manifest = "[package]\nname = \"p\"\n\n[operator.o]\n\n[kernel.k]\noperator = \"o\"\nsource = \"k.cu\"\ntargets = [\"mine\"]\ntune.BLOCK = [32, 64]\n\n[[kernel.k.launch]]\nentry = \"k<BLOCK>\"\ngrid = [\"ceil_div(M, BLOCK)\"]\nblock = [\"BLOCK\"]\nargs = [\"A\", \"C\"]\n";
    let text = kernel_text(manifest, "k", &[("BLOCK".into(), "64".into())]).unwrap();
    let table = kernel::table(&text, "mine", "gemm", "solutions/mine").unwrap();
    assert!(!table.contains("targets"), "{table}");
    for part in ["operator = \"gemm\"", "source = \"solutions/mine/k.cu\"", "BLOCK = [64]", "entry = \"k<BLOCK>\""] {
        assert!(table.contains(part), "{part}\n{table}");
    }
    for bound in ["host = \"launch.cu::run\"", "include = [\"..\"]"] {
        let manifest = manifest.replace("targets = [\"mine\"]", bound);
        assert_eq!(kernel_text(&manifest, "k", &[]), None, "{bound}");
    }
}
