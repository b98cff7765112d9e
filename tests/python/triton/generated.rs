//! Kernels in Triton that templates and agents make: what the real compiler and interpreter say of them.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::{Lab, Ran};

/// Operators, each with a kernel that states only its template and fewer values of tunables. `every` asks for all shapes.
fn operators(every: bool) -> String {
    let mut text = String::from(
        "[package]\nname = \"p\"\n[targets.cpu]\n[targets.gpu]\narch = \"sm_90a\"\n[targets.old]\narch = \"sm_80\"\n",
    );
    let mut add = |name: &str, template: &str, tune: &str, body: &str| {
        text.push_str(&format!(
            "[operator.{name}]\n{body}\n[kernel.{name}]\noperator = \"{name}\"\nlanguage = \"triton\"\n\
             generate = {{ template = \"{template}\" }}\n{tune}\n"
        ));
    };
    let shapes = match every {
        true => {
            "shapes.ragged = { rows = 3, cols = 37 }\nshapes.even = { rows = 2, cols = 64 }\nshapes.one = { rows = 1, cols = 3 }"
        }
        false => "shapes.ragged = { rows = 3, cols = 37 }",
    };
    let x = "dims = [\"rows\", \"cols\"]\ninputs.x = { dtype = \"f32\", shape = [\"rows\", \"cols\"] }";
    let (same, row) = ("{ dtype = \"f32\", shape = [\"rows\", \"cols\"] }", "{ dtype = \"f32\", shape = [\"rows\"] }");
    let near = "tolerance = { atol = 1e-5, rtol = 1e-5 }";
    let rows = "tune.CHUNK = [32]\ntune.WARPS = [4]\n";
    // A chunk is 1024 where a row is kept, so that it has no other values.
    let kept = "tune.CHUNK = [1024]\ntune.WARPS = [4]\n";
    for name in ["softmax", "log_softmax", "rms_norm", "layer_norm"] {
        add(
            name,
            "row-reduction",
            kept,
            &format!("{x}\noutputs.y = {same}\nreference = \"builtin:{name}\"\n{near}\n{shapes}"),
        );
    }
    let norm = "inputs.w = { dtype = \"f32\", shape = [\"cols\"] }\ninputs.b = { dtype = \"f32\", shape = [\"cols\"] }\n\
                params.eps = { dtype = \"f32\", value = 1e-3 }";
    let half = x.replace("f32", "f16");
    add(
        "scaled_norm",
        "row-reduction",
        kept,
        &format!(
            "{half}\n{norm}\noutputs.y = {}\nreference = \"builtin:layer_norm\"\n{shapes}",
            same.replace("f32", "f16")
        ),
    );
    let residual = format!("inouts.residual = {same}");
    for (name, dtype) in [("add_norm", "f32"), ("add_half_norm", "f16")] {
        let body =
            format!("{x}\n{residual}\noutputs.y = {same}\noutputs.rstd = {row}\nreference = \"builtin:rms_norm\"");
        let tolerance = if dtype == "f32" { near } else { "" };
        add(name, "row-reduction", kept, &format!("{}\n{tolerance}\n{shapes}", body.replace("f32", dtype)));
    }
    for (name, labels, y, settings) in [
        ("loss", "i64", "[]", ""),
        ("loss_sum", "i32", "[1]", ", reduction = \"sum\", ignore_index = 1"),
        ("loss_mean", "i32", "[]", ", ignore_index = 2"),
        ("losses", "i64", "[\"rows\"]", ", reduction = \"none\", ignore_index = 0"),
    ] {
        let body = format!(
            "{x}\ninputs.labels = {{ dtype = \"{labels}\", shape = [\"rows\"] }}\noutputs.y = {{ dtype = \"f32\", shape = {y} }}\n\
             outputs.lse = {row}\nreference = {{ builtin = \"cross_entropy\"{settings} }}\n{near}"
        );
        // Many labels are ignored, and not all.
        let shapes = if name == "loss_mean" { "shapes.ragged = { rows = 40, cols = 5 }" } else { shapes };
        add(name, "row-reduction", kept, &format!("{body}\n{shapes}"));
    }
    for name in ["sum", "mean", "max", "min"] {
        let tolerance = if ["max", "min"].contains(&name) { "tolerance = { atol = 0, rtol = 0 }" } else { near };
        add(
            name,
            "row-reduction",
            rows,
            &format!("{x}\noutputs.y = {row}\nreference = \"builtin:{name}\"\n{tolerance}\n{shapes}"),
        );
    }
    let index = "outputs.y = { dtype = \"i32\", shape = [\"rows\"] }\nreference = \"builtin:argmax\"\ncompare = { argmax_of = \"x\" }";
    add("argmax", "row-reduction", rows, &format!("{x}\n{index}\n{shapes}"));
    let counts = "dims = [\"rows\", \"cols\"]\ninputs.x = { dtype = \"i32\", shape = [\"rows\", \"cols\"], init = { range = [-1000, 1000] } }\n\
                  outputs.y = { dtype = \"i64\", shape = [\"rows\"] }\nreference = \"builtin:sum\"";
    add("count", "row-reduction", rows, &format!("{counts}\n{shapes}"));
    let fused = "inputs.b = { dtype = \"f32\", shape = [\"cols\"] }\ninputs.r = { dtype = \"f32\", shape = [\"rows\", 1] }\n\
                 inouts.h = { dtype = \"f32\", shape = [\"rows\", \"cols\"] }\noutputs.y = { dtype = \"f32\", shape = [\"rows\", \"cols\"] }\n\
                 reference = { builtin = \"elementwise\", y = \"gelu(x + b) + silu(r)\", h = \"where(x > h, x - 0.5, h * rows)\" }";
    let one = "tune.VEC = [4]\ntune.WARPS = [4]\n";
    add("fused", "elementwise", one, &format!("{x}\n{fused}\n{near}\n{shapes}"));
    let chosen = "inputs.b = { dtype = \"f32\", shape = [\"cols\"] }\noutputs.y = { dtype = \"f32\", shape = [\"rows\", \"cols\"] }\n\
                  reference = { builtin = \"elementwise\", y = \"min(x, b, 1) // 0.5 + (x or b) + \
                  (round(x) if -1 < x + b <= 1 and not x > b else ceil_div(x, sizeof('f16')))\" }";
    add("chosen", "elementwise", one, &format!("{x}\n{chosen}\n{near}\n{shapes}"));
    let curves = "outputs.y = { dtype = \"f32\", shape = [\"rows\", \"cols\"] }\n\
                  reference = { builtin = \"elementwise\", y = \"tanh(x) + softplus(x) + sigmoid(x) + gelu_tanh(x) + exp(x) + sqrt(abs(x)) + erf(x)\" }";
    add("curves", "elementwise", one, &format!("{x}\n{curves}\n{near}\n{shapes}"));
    // What only libdevice has.
    let library = "outputs.y = { dtype = \"f32\", shape = [\"rows\", \"cols\"] }\n\
                   reference = { builtin = \"elementwise\", y = \"pow(abs(x) + 0.1, 1.5) + expm1(x) + log1p(abs(x)) + x % 0.75\" }";
    add("library", "elementwise", one, &format!("{x}\n{library}\n{near}\n{shapes}"));
    let product = |dtype: &str, more: &str| {
        format!(
            "dims = [\"m\", \"n\", \"k\"]\ninputs.a = {{ dtype = \"{dtype}\", shape = [\"m\", \"k\"] }}\n\
             outputs.c = {{ dtype = \"{dtype}\", shape = [\"m\", \"n\"] }}\n{more}\n\
             shapes.ragged = {{ m = 33, n = 65, k = 70 }}\nshapes.one = {{ m = 1, n = 1, k = 1 }}"
        )
    };
    let of_products = "tune.WARPS = [4]\ntune.STAGES = [3, 1]\ntune.TILE_M = [64]\ntune.TILE_N = [64]\n";
    add(
        "product",
        "matmul",
        of_products,
        &product("f16", "inputs.b = { dtype = \"f16\", shape = [\"k\", \"n\"] }\nreference = \"builtin:matmul\""),
    );
    let rest = "inputs.b = { dtype = \"f32\", shape = [\"n\", \"k\"] }\ninputs.bias = { dtype = \"f32\", shape = [\"n\"] }\n\
                reference = { builtin = \"matmul\", transpose_b = true, alpha = 0.5, activation = \"relu\" }\ntolerance = { atol = 1e-4, rtol = 1e-4 }";
    add("affine", "matmul", of_products, &product("f32", rest));
    text
}

fn ok(ran: &Ran) {
    assert_eq!(ran.code, Some(0), "{}", ran.said);
}

#[test]
#[ignore = "second tier: installs Triton"]
fn templates_in_triton_make_kernels_that_the_interpreter_verifies() {
    let Some(lab) = Lab::new(&[("kernel.toml", &operators(true))]).interpreting() else { return };
    let ran = lab.run(&["build", "--target", "cpu", "--keep-going"]);
    let wrong: Vec<_> = ran.verdicts().into_iter().filter(|verdict| verdict != "\"pass\"").collect();
    assert!(ran.code == Some(0) && wrong.is_empty(), "{wrong:?}\n{}", ran.said);
    assert!(ran.passed() > 90, "{}", ran.passed());
    let shown = fs::read_to_string(lab.path("target/kforge/generated/p/softmax.py")).unwrap();
    assert!(shown.starts_with("# softmax of `x`, row by row.\n"), "{shown}");
}

#[test]
#[ignore = "second tier: installs Triton"]
fn templates_in_triton_make_kernels_that_triton_compiles_for_gpus_of_two_generations() {
    let Some(lab) = Lab::new(&[("kernel.toml", &operators(false))]).installed() else { return };
    let ran = lab.run(&["check", "--target", "gpu", "--keep-going"]);
    ok(&ran);
    // Each kernel, and those that keep rows also without it.
    assert!(ran.steps("compile").len() > 20, "{}", ran.steps("compile").len());
    let older =
        ["softmax", "product", "affine", "curves", "loss_mean", "add_norm"].map(|kernel| ["--kernel", kernel]).concat();
    ok(&lab.run(&[&["check", "--target", "old", "--keep-going"], &older[..]].concat()));
}

/// An agent whose first answer does not compile, whose first repair is wrong, and whose second is correct.
const AGENT: &str = r#"#!/usr/bin/env python3
import json, os, sys

prompt = sys.stdin.read()
attempt = int(os.environ["KFORGE_ATTEMPT"])
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), f"prompt-{os.environ['KFORGE_ROLE']}-{attempt}"), "w") as file:
    file.write(prompt)
if os.environ["KFORGE_ROLE"] == "judge":
    print(json.dumps({"critical_issue": "c", "why_it_matters": "w", "minimal_fix": "f"} if attempt else {"bottleneck": "b", "method": "", "plan": "p"}))
    sys.exit()
bodies = ["    x = tl.nothing(at)", "    x = tl.load(a + at)", "    x = tl.load(a + at, mask=at < n, other=0.0)"]
source = f"""import triton
import triton.language as tl


@triton.jit
def twice(a, b, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
{bodies[attempt]}
    tl.store(b + at, 2 * x, mask=at < n)
"""
declaration = """
[tune]
BLOCK = [64, 128]
[[launch]]
entry = "twice"
grid = ["ceil_div(n, BLOCK)"]
args = ["x", "y", "n"]
"""
print(json.dumps({"declaration": declaration, "source": source, "branches": [{"BLOCK": 64}]}))
"#;

const ASKED: &str = r#"
[package]
name = "p"

[targets.cpu]

[agents.writer]
command = ["./agent.py"]

[operator.twice]
dims = ["n"]
inputs.x = { dtype = "f32", shape = ["n"] }
outputs.y = { dtype = "f32", shape = ["n"] }
reference = { builtin = "elementwise", y = "2 * x" }
shapes.some = { n = 100 }

[kernel.twice]
operator = "twice"
language = "triton"
generate = { agent = "writer", rounds = 1, branches = 1, repairs = 2 }
"#;

#[test]
#[ignore = "second tier: installs Triton"]
fn an_agent_writes_triton_and_repairs_it_by_what_the_compiler_and_the_interpreter_found() {
    let lab = Lab::new(&[("kernel.toml", ASKED), ("agent.py", AGENT)]);
    fs::set_permissions(lab.path("agent.py"), fs::Permissions::from_mode(0o755)).unwrap();
    let Some(lab) = lab.interpreting() else { return };
    let ran = lab.command(&["optimize"]);
    ok(&ran);
    let said = |attempt: u32| fs::read_to_string(lab.path(&format!("prompt-coder-{attempt}"))).unwrap();
    assert!(said(0).contains("You write Triton kernels") && said(0).contains("@triton.jit"), "{}", said(0));
    assert!(said(1).contains("nothing") && said(1).contains("```python"), "{}", said(1));
    // The interpreter names the access, its element and its line.
    assert!(said(2).contains("x[100], which has 100 elements"), "{}", said(2));
    let built = lab.run(&["build", "--target", "cpu"]);
    ok(&built);
    assert!(built.passed() > 0, "{:?}", built.verdicts());
    assert!(lab.path("target/kforge/generated/p/twice/cpu/r1.2.py").exists());
    // What was written becomes a file of the package.
    let accepted = lab.command(&["accept", "twice"]);
    ok(&accepted);
    let source = fs::read_to_string(lab.path("twice.py")).unwrap();
    assert!(source.starts_with("# Kernel `twice` for `cpu`"), "{source}");
    let own = lab.run(&["build", "--target", "cpu"]);
    ok(&own);
}

/// The virtual device has the real compilers, and measures nothing.
#[cfg(any(debug_assertions, feature = "virtual-device"))]
const SCENARIO: &str = "compilers = true\nseed = 1\nnoise = 0.01\n\n[[device]]\nproduct = \"Virtual H\"\narch = \"sm_90\"\ndriver = \"580.1\"\n\n\
                        [[rule]]\nmatches = '.'\nns = 1000.0\n";

#[cfg(any(debug_assertions, feature = "virtual-device"))]
const TIMED: &str = r#"
[package]
name = "p"

[targets.gpu]
arch = "sm_90a"

[operator.sum]
dims = ["n"]
inputs.x = { dtype = "f32", shape = ["n"] }
inputs.z = { dtype = "f32", shape = ["n"] }
outputs.y = { dtype = "f32", shape = ["n"] }
reference = { builtin = "elementwise", y = "x + z" }
shapes.timed = { n = 4096, role = "bench" }

[kernel.sum]
operator = "sum"
language = "triton"
generate = { template = "elementwise" }
tune.VEC = [4]
tune.WARPS = [4]

[operator.product]
dims = ["m", "n", "k"]
inputs.a = { dtype = "f16", shape = ["m", "k"] }
inputs.b = { dtype = "f16", shape = ["k", "n"] }
outputs.c = { dtype = "f16", shape = ["m", "n"] }
reference = "builtin:matmul"
shapes.timed = { m = 128, n = 128, k = 128, role = "bench" }

[kernel.product]
operator = "product"
language = "triton"
generate = { template = "matmul" }
tune.TILE_M = [128]
tune.TILE_N = [128]
tune.STAGES = [3]
"#;

#[test]
#[cfg(any(debug_assertions, feature = "virtual-device"))]
#[ignore = "second tier: installs Triton"]
fn machine_code_of_templates_in_triton_shows_their_methods() {
    let mut lab = Lab::new(&[("kernel.toml", TIMED)]);
    let scenario = lab.home.path().join("scenario.toml");
    fs::write(&scenario, SCENARIO).unwrap();
    lab.variables.push(("KFORGE_VIRTUAL_DEVICE", scenario.display().to_string()));
    let Some(lab) = lab.installed() else { return };
    let built = lab.run(&["build", "--target", "gpu"]);
    ok(&built);
    let matched = built.lines.iter().filter(|line| line["reason"] == "step-finished" && line["kind"] == "match");
    let matched: Vec<String> = matched.map(serde_json::Value::to_string).collect();
    for (method, opcode) in [("memory.vectorized_access", "LDG"), ("memory.multi_stage_pipeline", "LDGSTS")] {
        let of = matched.iter().find(|line| line.contains(method));
        assert!(of.is_some_and(|line| line.contains(opcode)), "{method}: {matched:?}\n{}", built.said);
    }
}

#[test]
#[cfg(any(debug_assertions, feature = "virtual-device"))]
#[ignore = "second tier: installs Triton"]
fn rules_try_the_methods_of_templates_in_triton_and_a_second_run_tries_nothing() {
    let rows = "\n[operator.norm]\ndims = [\"rows\", \"cols\"]\ninputs.x = { dtype = \"f32\", shape = [\"rows\", \"cols\"] }\n\
                outputs.y = { dtype = \"f32\", shape = [\"rows\", \"cols\"] }\nreference = \"builtin:softmax\"\n\
                shapes.timed = { rows = 16, cols = 1024, role = \"bench\" }\n\n[kernel.norm]\noperator = \"norm\"\n\
                language = \"triton\"\ngenerate = { template = \"row-reduction\" }\ntune.CHUNK = [1024]\ntune.WARPS = [4]\n";
    let manifest = format!("{TIMED}{rows}").replace("\" }\ntune", "\", agent = \"rules\", rounds = 2 }\ntune");
    let manifest =
        manifest.replace("tune.VEC = [4]", "tune.VEC = [1, 4]").replace("tune.STAGES = [3]", "tune.STAGES = [1, 3]");
    let mut lab = Lab::new(&[("kernel.toml", &manifest)]);
    let scenario = lab.home.path().join("scenario.toml");
    fs::write(&scenario, SCENARIO).unwrap();
    lab.variables.push(("KFORGE_VIRTUAL_DEVICE", scenario.display().to_string()));
    let Some(lab) = lab.installed() else { return };
    let first = lab.run(&["optimize"]);
    ok(&first);
    let report: serde_json::Value =
        serde_json::from_slice(&fs::read(lab.path("target/kforge/report.json")).unwrap()).unwrap();
    for (kernel, method) in [
        ("sum", "memory.vectorized_access"),
        ("product", "memory.multi_stage_pipeline"),
        ("norm", "memory.rows_in_registers"),
    ] {
        let of = report["packages"][0]["kernels"].as_array().unwrap().iter().find(|one| one["name"] == kernel).unwrap();
        assert!(of["targets"][0]["methods"].to_string().contains(method), "{kernel}: {}", of["targets"][0]["methods"]);
    }
    // The start of the sum loads one element at a time; nothing suggests a method of the others.
    assert!(first.said.contains("p/sum/gpu: round 1: memory.vectorized_access"), "{}", first.said);
    assert!(first.said.contains("Correct p/sum/gpu: VEC=4,WARPS=4"), "{}", first.said);
    let again = lab.run(&["optimize"]);
    ok(&again);
    assert_eq!((again.executed("round"), again.executed("bench")), (vec![], vec![]));
}
