//! Manifests of described tasks. `tests/python/problem_sets.rs` describes real ones with PyTorch.

use super::*;
use serde_json::{Value, json};

/// What is described of a task with one input `x` [batch, width], a weight [width] and a result of the same shape.
fn facts() -> Value {
    let probe = |batch: i64, width: i64| {
        let shapes = json!([[batch, width]]);
        json!({
            "values": [batch, width], "inputs": shapes, "init": [width], "ranges": [null], "state": [[width]], "outputs": shapes,
        })
    };
    json!({
        "inputs": [{ "argument": "x", "dtype": "f32" }],
        "others": [],
        "init": [{ "name": "width", "value": 4096 }, { "name": "eps", "value": 1e-5 }],
        "state": [{ "name": "norm.weight", "dtype": "f32", "buffer": false }],
        "outputs": [{ "name": "", "dtype": "f32" }],
        "atoms": [
            { "kind": "constant", "of": 0, "index": 0, "value": 16 },
            { "kind": "constant", "of": 1, "index": 0, "value": 4096 },
        ],
        "groups": [[0], [1]],
        "probes": [probe(16, 4096), probe(32, 4096), probe(17, 4096), probe(16, 8192), probe(16, 4097), probe(4, 32), probe(3, 37)],
        "small": 5,
        "ragged": 6,
        "random": null,
        "values": {
            "state": [{ "given": true, "changes": false, "init": { "range": [-0.25, 0.25] } }],
            "inputs": [{ "auto": true }],
            "outputs": [{ "constant": false, "largest": 3.5, "finite": true }],
            "tolerance": 3e-6,
            "low": null,
        },
    })
}

fn constants() -> Vec<Constant> {
    let one = |name: &str, value: i64| Constant {
        name: name.into(),
        values: vec![value],
        tuple: false,
        line: 1,
        used: false,
    };
    vec![one("batch", 16), one("width", 4096)]
}

fn written_with(facts: Value, constants: &[Constant]) -> Result<ImportedTask, Refusal> {
    let facts: TaskFacts = serde_json::from_value(facts).unwrap();
    let origin = Origin { set: "kernelbench".into(), level: Some(1), number: Some(33), name: "Row_Norm".into() };
    write_task(&TaskRequest {
        package: "level1_33_Row_Norm",
        file: "task.py",
        torch: Some("2.9"),
        origin: &origin,
        constants,
        facts: &facts,
    })
}

fn written(facts: Value) -> ImportedTask {
    written_with(facts, &constants()).unwrap()
}

/// Whether a text has these lines.
#[track_caller]
fn has(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.lines().any(|own| own == *line), "{line}\n{text}");
    }
}

#[test]
fn a_task_becomes_an_operator_whose_dims_are_its_constants() {
    let task = written(facts());
    has(
        &task.text,
        &[
            "name = \"level1_33_Row_Norm\"",
            "torch = \"2.9\"",
            "[operator.Row_Norm]",
            "origin = { set = \"kernelbench\", level = 1, number = 33, name = \"Row_Norm\" }",
            "dims = [\"batch\", \"width\"]",
            "inputs.x = { dtype = \"f32\", shape = [\"batch\", \"width\"] }",
            "inputs.norm_weight = { dtype = \"f32\", shape = [\"width\"], init = { range = [-0.25, 0.25] } }",
            "outputs.y = { dtype = \"f32\", shape = [\"batch\", \"width\"] }",
            "params.eps = { dtype = \"f32\", value = 1e-5 }",
            "torch = \"task.py::Model\"",
            "init = [\"width\", \"eps\"]",
            "mode = \"train\"",
            "own = { batch = 16, width = 4096, role = \"bench\" }",
            "small = { batch = 4, width = 32 }",
            "ragged = { batch = 3, width = 37 }",
        ],
    );
    assert!(!task.text.contains("constants") && !task.text.contains("state ="), "{}", task.text);
    assert!(task.findings.is_empty() && task.train == Some(true));
    // Inputs and weights twice, the result once.
    assert_eq!(task.reference_bytes, Some(8 * (2 * (16 * 4096 + 4096) + 16 * 4096)));
}

#[test]
fn constants_that_the_module_reads_follow_the_dims() {
    let mut own = constants();
    own[1].used = true;
    let task = written_with(facts(), &own).unwrap();
    has(&task.text, &["constants = { width = \"width\" }"]);
    own[1] = Constant { name: "shape".into(), values: vec![4096, 3], tuple: true, line: 2, used: true };
    let task = written_with(facts(), &own).unwrap();
    has(&task.text, &["constants = { shape = [\"shape_0\", 3] }", "dims = [\"batch\", \"shape_0\"]"]);
}

#[test]
fn names_that_mean_something_else_or_are_taken_are_mapped() {
    let mut facts = facts();
    facts["inputs"][0]["argument"] = json!("in");
    facts["state"][0]["name"] = json!("batch");
    facts["others"] = json!(["y"]);
    let task = written(facts);
    has(
        &task.text,
        &[
            "inputs.in_ = { dtype = \"f32\", shape = [\"batch_\", \"width\"] }",
            "inputs.batch = { dtype = \"f32\", shape = [\"width\"], init = { range = [-0.25, 0.25] } }",
            "outputs.y_ = { dtype = \"f32\", shape = [\"batch_\", \"width\"] }",
            "names = { in = \"in_\" }",
        ],
    );
}

#[test]
fn buffers_that_change_are_inouts_and_those_that_nothing_draws_are_kept() {
    let mut facts = facts();
    let buffer = |name: &str, dtype: &str| json!({ "name": name, "dtype": dtype, "buffer": true });
    facts["state"] = json!([facts["state"][0], buffer("norm.count", "i64"), buffer("mask", "f32")]);
    for probe in facts["probes"].as_array_mut().unwrap() {
        let width = probe["values"][1].clone();
        probe["state"] = json!([[width], [], [width, width]]);
    }
    facts["values"]["state"] = json!([
        facts["values"]["state"][0],
        { "given": true, "changes": true, "init": { "range": [0.0, 100.0] } },
        { "given": false, "changes": false, "init": { "auto": true } },
    ]);
    let task = written(facts);
    has(&task.text, &["inouts.norm_count = { dtype = \"i64\", shape = [], init = { range = [0, 100] } }"]);
    assert!(!task.text.contains("mask"), "{}", task.text);
}

#[test]
fn an_extent_that_no_expression_gives_is_a_dim_of_its_own() {
    let mut facts = facts();
    for probe in facts["probes"].as_array_mut().unwrap() {
        let (batch, width) = (probe["values"][0].as_i64().unwrap(), probe["values"][1].as_i64().unwrap());
        probe["outputs"] = json!([[batch, width.ilog2() * 3 + u32::try_from(width % 5).unwrap()]]);
    }
    let task = written(facts);
    has(
        &task.text,
        &[
            "dims = [\"batch\", \"width\", \"y_1\"]",
            "outputs.y = { dtype = \"f32\", shape = [\"batch\", \"y_1\"] }",
            "small = { batch = 4, width = 32, y_1 = 17 }",
        ],
    );
}

#[test]
fn an_argument_that_only_changes_the_form_of_results_is_a_literal() {
    let mut facts = facts();
    facts["atoms"] =
        json!([facts["atoms"][0], facts["atoms"][1], { "kind": "constant", "of": 2, "index": 0, "value": 1 }]);
    facts["groups"] = json!([[0], [1], [2]]);
    facts["init"] = json!([{ "name": "axis", "value": 1 }]);
    let mut probes = facts["probes"].as_array().unwrap().clone();
    for probe in &mut probes {
        let batch = probe["values"][0].clone();
        probe["values"].as_array_mut().unwrap().push(json!(1));
        probe["init"] = json!([1]);
        probe["outputs"] = json!([[batch]]);
    }
    let mut other = probes[0].clone();
    other["values"][2] = json!(0);
    other["init"] = json!([0]);
    other["outputs"] = json!([[4096]]);
    probes.push(other);
    facts["probes"] = json!(probes);
    let mut own = constants();
    own.push(Constant { name: "axis".into(), values: vec![1], tuple: false, line: 3, used: false });
    let task = written_with(facts, &own).unwrap();
    has(
        &task.text,
        &["init = [1]", "dims = [\"batch\", \"width\"]", "outputs.y = { dtype = \"f32\", shape = [\"batch\"] }"],
    );
}

#[test]
fn texts_lists_and_defaults_of_the_constructor_keep_their_form() {
    let mut facts = facts();
    facts["init"] = json!([
        { "name": "sizes", "value": [4096, true, 0.5] },
        { "name": "kind", "value": { "text": "relu" } },
        { "name": "bound", "value": { "float": "inf" } },
        { "name": "nothing", "value": null },
    ]);
    let task = written(facts.clone());
    has(
        &task.text,
        &[
            "init = { sizes = [\"width\", true, 0.5], kind = \"'relu'\", bound = \"bound\" }",
            "params.bound = { dtype = \"f32\", value = inf }",
        ],
    );
    let mut nested = facts.clone();
    nested["init"][0]["value"] = json!([4096, [true]]);
    assert_eq!(written_with(nested, &constants()).unwrap_err().kind, "unsupported");
    facts["init"][1]["value"] = json!({ "text": "it's" });
    let refused = written_with(facts, &constants()).unwrap_err();
    assert_eq!(refused.kind, "unsupported");
    assert!(refused.message.contains("`kind`"), "{refused}");
}

#[test]
fn integers_are_drawn_between_the_ends_that_the_task_states() {
    let mut facts = facts();
    facts["inputs"][0]["dtype"] = json!("i64");
    facts["values"]["inputs"][0] = json!({ "drawn": true });
    for probe in facts["probes"].as_array_mut().unwrap() {
        probe["ranges"] = json!([[0, probe["values"][1]]]);
    }
    let task = written(facts);
    has(
        &task.text,
        &["inputs.x = { dtype = \"i64\", shape = [\"batch\", \"width\"], init = { range = [0, \"width - 1\"] } }"],
    );
}

#[test]
fn what_cannot_be_told_of_a_task_is_said() {
    let kinds = |facts: Value| -> Vec<&'static str> { written(facts).findings.iter().map(|f| f.kind.word()).collect() };
    let with = |path: &str, value: Value| {
        let mut facts = facts();
        *facts.pointer_mut(path).unwrap() = value;
        facts
    };
    assert_eq!(kinds(with("/values/outputs/0/constant", json!(true))), ["constant-output"]);
    assert_eq!(kinds(with("/values/outputs/0/largest", json!(1e-7))), ["below-tolerance"]);
    assert_eq!(kinds(with("/values/outputs/0/finite", json!(false))), ["not-finite"]);
    assert_eq!(kinds(with("/values", json!(null))), ["not-computed"]);
    let low = json!({ "floats": "float32", "operation": "aten._to_copy.default", "line": 7 });
    assert_eq!(kinds(with("/values/low", low)), ["low-floats"]);
    let random = written(with("/random", json!({ "operation": "aten.bernoulli_.float", "line": 12 })));
    assert!(random.train == Some(false) && !random.text.contains("mode ="), "{}", random.text);
    has(
        &random.text,
        &[
            "# random: draws random numbers in training (`aten.bernoulli_.float`), which no kernel can reproduce: imported in evaluation mode, \
             so KernelBench's scores do not apply (task.py:12).",
        ],
    );
    let mut alone = facts();
    (alone["small"], alone["ragged"]) = (json!(null), json!(null));
    assert_eq!(kinds(alone), ["no-small-shape"]);
    let told = too_large(20 << 30, 16 << 30).unwrap();
    assert!(told.message.contains("21474836480 bytes") && told.message.contains("17179869184"), "{}", told.message);
    assert_eq!(too_large(1, 2), None);
}

#[test]
fn a_description_that_does_not_hold_together_is_refused() {
    let mut facts = facts();
    facts["groups"] = json!([[7]]);
    assert_eq!(written_with(facts, &constants()).unwrap_err().kind, "unsupported");
}
