//! Kernels that templates generate: from just an operator to a verified champion, and the steps that an edit of a template repeats.

use std::fs;

use crate::project::{Project, ids};

/// Ten or more operators, each with a kernel that states only its template and fewer values of tunables than the template has.
fn operators() -> String {
    let mut text = String::from("[package]\nname = \"p\"\n[targets.cpu]\n");
    let mut add = |name: &str, template: &str, body: &str| {
        text.push_str(&format!("[operator.{name}]\n{body}\n[kernel.{name}]\noperator = \"{name}\"\ngenerate = {{ template = \"{template}\" }}\n"));
        text.push_str("tune.BLOCK = [64]\ntune.where = [\"VEC > 1\"]\n");
        // The kernel must also be correct with this method turned off.
        if ["softmax", "argmax", "layer_norm"].contains(&name) {
            text.push_str("tune.SHUFFLE = [true, false]\n");
        }
    };
    let shapes = "shapes.ragged = { rows = 3, cols = 37 }\nshapes.even = { rows = 2, cols = 64 }";
    let x = "dims = [\"rows\", \"cols\"]\ninputs.x = { dtype = \"f32\", shape = [\"rows\", \"cols\"] }";
    let (same, row) = ("{ dtype = \"f32\", shape = [\"rows\", \"cols\"] }", "{ dtype = \"f32\", shape = [\"rows\"] }");
    let near = "tolerance = { atol = 1e-5, rtol = 1e-5 }";
    for (name, reference) in
        [("softmax", "softmax"), ("log_softmax", "log_softmax"), ("rms_norm", "rms_norm"), ("layer_norm", "layer_norm")]
    {
        let tighter = if name == "softmax" { "tolerance = { atol = 1e-7, rtol = 1e-5 }" } else { near };
        add(
            name,
            "row-reduction",
            &format!("{x}\noutputs.y = {same}\nreference = \"builtin:{reference}\"\n{tighter}\n{shapes}"),
        );
    }
    for name in ["sum", "mean"] {
        add(
            name,
            "row-reduction",
            &format!("{x}\noutputs.y = {row}\nreference = \"builtin:{name}\"\n{near}\n{shapes}"),
        );
    }
    for name in ["max", "min"] {
        let exact = "tolerance = { atol = 0, rtol = 0 }";
        add(
            name,
            "row-reduction",
            &format!("{x}\noutputs.y = {row}\nreference = \"builtin:{name}\"\n{exact}\n{shapes}"),
        );
    }
    let index = "outputs.y = { dtype = \"i32\", shape = [\"rows\"] }\nreference = \"builtin:argmax\"\ncompare = { argmax_of = \"x\" }";
    add("argmax", "row-reduction", &format!("{x}\n{index}\n{shapes}"));
    let loss = "inputs.labels = { dtype = \"i32\", shape = [\"rows\"] }\noutputs.y = { dtype = \"f32\", shape = [] }\nreference = \"builtin:cross_entropy\"";
    add("cross_entropy", "row-reduction", &format!("{x}\n{loss}\n{near}\n{shapes}"));
    let fused = "inputs.b = { dtype = \"f32\", shape = [\"cols\"] }\ninouts.h = { dtype = \"f32\", shape = [\"rows\", \"cols\"] }\n\
                 outputs.y = { dtype = \"f32\", shape = [\"rows\", \"cols\"] }\n\
                 reference = { builtin = \"elementwise\", y = \"gelu(x + b)\", h = \"where(x > h, x - 0.5, h * rows)\" }";
    add("fused", "elementwise", &format!("{x}\n{fused}\n{near}\n{shapes}"));
    let chosen = "inputs.b = { dtype = \"f32\", shape = [\"cols\"] }\noutputs.y = { dtype = \"f32\", shape = [\"rows\", \"cols\"] }\n\
                  reference = { builtin = \"elementwise\", y = \"min(x, b, 1) // 0.5 + (x or b) + \
                  (x % 2 if -1 < x + b <= 1 and not x > b else ceil_div(x, sizeof('f16')))\" }";
    add("chosen", "elementwise", &format!("{x}\n{chosen}\n{near}\n{shapes}"));
    text
}

#[test]
#[ignore = "second tier: every template"]
fn an_operator_and_a_template_alone_give_a_verified_champion_for_each_of_twelve_operators() {
    let project = Project::new().file("kernel.toml", &operators());
    let built = project.built(&[]);
    let champions: std::collections::BTreeSet<String> = built
        .finished()
        .filter(|s| s["kind"] == "select" && !s["result"].is_null())
        .filter_map(|s| s["labels"]["kernel"].as_str().map(String::from))
        .collect();
    assert_eq!(champions.len(), 12, "{champions:?}");
    assert!(built.finished().filter(|s| s["kind"] == "judge").all(|s| s["verdict"] == "pass"));
    let shown = fs::read_to_string(project.target().join("generated/p/softmax.cu")).unwrap();
    assert!(shown.starts_with("// softmax of `x`, row by row.\n"), "{shown}");
    assert_eq!(project.built(&[]).executed(), ids(&[]), "nothing is done twice");
}

#[test]
#[ignore = "second tier: every template"]
fn a_product_is_right_in_f32_and_on_tensor_cores_with_what_follows_it() {
    let text = r#"
[package]
name = "p"
[targets.cpu]
[operator.linear]
dims = ["m", "n", "k"]
types = { T = ["f32", "f16"] }
inputs.a = { dtype = "T", shape = ["m", "k"] }
inputs.b = { dtype = "T", shape = ["n", "k"] }
inputs.bias = { dtype = "T", shape = ["n"] }
outputs.c = { dtype = "T", shape = ["m", "n"] }
reference = { builtin = "matmul", transpose_b = true, activation = "relu" }
tolerance = { f32 = { atol = 1e-4, rtol = 1e-5 }, f16 = { atol = 1e-3, ulp = 1 } }
shapes.ragged = { m = 18, n = 35, k = 21 }
shapes.even = { m = 16, n = 64, k = 40 }
[kernel.linear]
operator = "linear"
generate = { template = "matmul" }
tune.TILE_M = [64]
tune.TILE_N = [64]
tune.where = ["VEC > 1"]
[operator.batched]
dims = ["g", "m", "n", "k"]
inputs.a = { dtype = "f32", shape = ["g", "k", "m"] }
inputs.b = { dtype = "f32", shape = ["k", "n"] }
inouts.c = { dtype = "f32", shape = ["g", "m", "n"] }
params.beta = { dtype = "f32", value = 0.5 }
reference = { builtin = "matmul", transpose_a = true }
tolerance = { atol = 1e-4, rtol = 1e-5 }
shapes.ragged = { g = 2, m = 17, n = 33, k = 21 }
[kernel.batched]
operator = "batched"
generate = { template = "matmul" }
tune.TILE_M = [64]
tune.TILE_N = [64]
tune.where = ["VEC > 1"]
[operator.near]
dims = ["m", "n", "k"]
inputs.a = { dtype = "f32", shape = ["k", "m"] }
inputs.b = { dtype = "f32", shape = ["n", "k"] }
outputs.c = { dtype = "f32", shape = ["m", "n"] }
reference = { builtin = "matmul", transpose_a = true, transpose_b = true }
tolerance = { atol = 1e-4, rtol = 1e-5 }
shapes.even = { m = 16, n = 40, k = 24 }
[kernel.near]
operator = "near"
generate = { template = "matmul" }
tune.TILE_M = [64]
tune.TILE_N = [64]
tune.TF32 = [3]
tune.where = ["VEC > 1"]
"#;
    let built = Project::new().file("kernel.toml", text).built(&[]);
    let judged: Vec<&serde_json::Value> = built.finished().filter(|s| s["kind"] == "judge").collect();
    assert!(judged.len() >= 10 && judged.iter().all(|s| s["verdict"] == "pass"));
    let has = |parts: [&str; 2]| {
        judged.iter().any(|s| s["id"].as_str().is_some_and(|id| parts.iter().all(|part| id.contains(part))))
    };
    assert!(has(["T=f16", "UNIT=wmma"]) && has(["T=f32", "UNIT=lanes"]) && has(["near", "UNIT=wmma"]));
}

const OWN: &str = r#"
[package]
name = "p"
[targets.cpu]
[operator.twice]
dims = ["n"]
inputs.x = { dtype = "f32", shape = ["n"] }
outputs.y = { dtype = "f32", shape = ["n"] }
reference = { builtin = "elementwise", y = "2 * x" }
tolerance = { rtol = 1e-6 }
shapes.tiny = { n = 10 }
[kernel.twice]
operator = "twice"
generate = { template = "templates/map" }
"#;

const DECLARATION: &str = r#"
{{ serves(["elementwise"]) }}
[tune]
BLOCK = [4]
[[launch]]
entry = "map<BLOCK>"
grid = ["ceil_div({{ fused().count }}, BLOCK)"]
block = ["BLOCK"]
args = ["{{ tensors[0].name }}", "{{ tensors[1].name }}", "{{ fused().count }}"]
"#;

const SOURCE: &str = r#"{# said to nobody #}
{{ prelude() }}
template <int BLOCK> __global__ void map(const float *x, float *y, int n) {
  using real = float;
  const int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i >= n) return;
  const real x_at = x[i];
  y[i] = {{ fused().writes[0].value }};
}
"#;

fn own() -> Project {
    Project::new()
        .file("kernel.toml", OWN)
        .file("templates/map/template.toml", DECLARATION)
        .file("templates/map/kernel.cu.j2", SOURCE)
}

#[test]
fn an_edit_of_a_template_generates_anew_and_stops_where_nothing_is_different() {
    let project = own();
    project.built(&[]);
    // The generated text is the same, so nothing is generated again.
    project.edit("templates/map/kernel.cu.j2", "said to nobody", "said to nobody at all");
    assert_eq!(project.built(&[]).executed(), ids(&[]));
    // Another text, but the same machine code.
    project.edit("templates/map/kernel.cu.j2", "const real x_at", "// The element.\n  const real x_at");
    let (will, _) = project.dry_run();
    let again = ids(&["p/twice/generate", "p/twice/BLOCK=4/cpu/compile"]);
    assert!(will.is_subset(&again) && will.contains("p/twice/generate"), "{will:?}");
    let built = project.built(&[]);
    assert_eq!(built.executed(), again);
    assert_eq!(built.step("p/twice/generate")["why"]["field"], "inputs.file:kforge-generated/twice.cu");
    // Other machine code.
    project.edit("templates/map/kernel.cu.j2", "x[i];", "x[i] * 1.5f;");
    let built = project.build(&[]);
    assert!(built.step("p/twice/BLOCK=4/cpu/tiny/judge")["verdict"]["fail"].is_string());
}

#[test]
fn the_operator_decides_the_text_and_a_template_that_is_not_there_is_an_error_at_its_line() {
    let project = own();
    project.built(&[]);
    project.edit("kernel.toml", "y = \"2 * x\"", "y = \"3 * x\"");
    assert!(project.built(&[]).executed().contains("p/twice/generate"));
    project.edit("kernel.toml", "templates/map", "templates/mop");
    let built = project.build(&[]).expect(101).says("there is no template `templates/mop`");
    assert!(built.says("`row-reduction`").stderr().contains("kernel.toml:14"));
}

#[test]
fn an_unknown_function_in_the_reference_of_a_generated_kernel_is_said_where_it_stands() {
    let manifest = OWN.replace("y = \"2 * x\"", "y = \"foo(x)\"").replace("templates/map", "elementwise");
    let built = Project::new().file("kernel.toml", &manifest).build(&[]).expect(101);
    let built = built.says("| reference = { builtin = \"elementwise\", y = \"foo(x)\" }");
    assert_eq!(built.stderr().matches("unknown function `foo`").count(), 1, "{}", built.stderr());
}
