//! Kernels in Triton on `cpu`, which Triton's interpreter runs. The first tier has what needs no interpreter.

use std::fs;

use super::{Lab, Ran, SOFTMAX};
use crate::folders::folder;
use crate::python::python;

const PYTHON: &str = "KFORGE_TOOLCHAIN_PYTHON";

impl Lab {
    /// A package with one kernel `f` for `y = x` over `n` elements of a dtype, computed by `body` in programs of 64 elements, and its reference.
    fn of_body(dtype: &str, reference: &str, tolerance: &str, body: &str) -> Self {
        let manifest = format!(
            r#"
[package]
name = "p"

[targets.cpu]

[operator.f]
dims = ["n"]
inputs.x = {{ dtype = "{dtype}", shape = ["n"] }}
inputs.z = {{ dtype = "{dtype}", shape = ["n"] }}
outputs.y = {{ dtype = "{dtype}", shape = ["n"] }}
reference = "reference/ref.py::f"
tolerance = {{ {tolerance} }}
shapes.some = {{ n = 100 }}

[kernel.f]
operator = "f"
language = "triton"
source = "k.py"

[[kernel.f.launch]]
entry = "f"
grid = ["ceil_div(n, 64)"]
args = ["x", "z", "y", "n"]
constexprs = {{ BLOCK = 64 }}
"#
        );
        let reference = format!("import numpy as np\n\n\n{reference}\n");
        Lab::new(&[("kernel.toml", &manifest), ("reference/ref.py", &reference), ("k.py", &source(body))])
    }

    /// A kernel that copies, for tests of what else it does.
    fn of_copy(body: &str) -> Self {
        Lab::of_body("f32", "def f(x, z):\n    return x", "atol = 0, rtol = 0", body)
    }

    /// The same with Triton and a Python with numpy; none if there is none.
    pub(super) fn interpreting(mut self) -> Option<Self> {
        self.variables.push((PYTHON, python()?.display().to_string()));
        self.installed()
    }

    fn on_cpu(&self) -> Ran {
        self.run(&["build", "--target", "cpu"])
    }
}

/// A source whose kernel has this body. Its first line is line 7.
fn source(body: &str) -> String {
    let body: String = body.trim().lines().map(|line| format!("    {line}\n")).collect();
    format!(
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef f(x, z, y, n, BLOCK: tl.constexpr):\n{body}"
    )
}

/// A body that loads `a` of `x` and `b` of `z` and stores `r`, which `compute` makes on line 11.
fn elementwise(compute: &str) -> String {
    format!(
        "at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\ninside = at < n\na = tl.load(x + at, mask=inside)\nb = tl.load(z + at, mask=inside)\n{compute}\n\
         tl.store(y + at, r, mask=inside)"
    )
}

impl Ran {
    /// The verdicts of judge steps, as JSON.
    pub(super) fn verdicts(&self) -> Vec<String> {
        let judged = self.lines.iter().filter(|line| line["reason"] == "step-finished" && line["kind"] == "judge");
        judged.map(|line| line["verdict"].to_string()).collect()
    }

    pub(super) fn passed(&self) -> usize {
        self.verdicts().iter().filter(|verdict| *verdict == "\"pass\"").count()
    }

    /// That every verdict is of this kind and says all of this.
    fn all_say(&self, kind: &str, says: &[&str]) {
        let verdicts = self.verdicts();
        assert!(!verdicts.is_empty(), "{}\n{:?}", self.said, self.lines);
        for verdict in verdicts {
            let right = verdict.contains(&format!("\"{kind}\"")) && says.iter().all(|part| verdict.contains(part));
            assert!(right, "expected {kind} {says:?}: {verdict}\n{}", self.said);
        }
    }
}

#[test]
fn without_the_wheel_the_result_is_unknown_and_nothing_is_downloaded_offline() {
    let Some(python) = python() else { return };
    let mut lab = Lab::of_softmax();
    lab.variables.push((PYTHON, python.display().to_string()));
    let ran = lab.run(&["build", "--offline", "--target", "cpu"]);
    assert_eq!(ran.passed(), 0, "{:?}", ran.lines);
    assert!(ran.lines.iter().any(|line| line.to_string().contains("triton")), "{}\n{:?}", ran.said, ran.lines);
    ran.all_say("unknown", &[]);
}

#[test]
fn without_numpy_the_result_is_unknown_and_says_how_to_install_it() {
    let bare = folder();
    let made = std::process::Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(bare.path()).output();
    if !made.is_ok_and(|made| made.status.success()) {
        kforge::base::testing::skipped("no Python here makes a virtual environment");
        return;
    }
    let python = bare.path().join("bin/python3").display().to_string();
    let mut lab = Lab::of_softmax();
    lab.variables.push((PYTHON, python.clone()));
    let ran = lab.run(&["build", "--offline", "--target", "cpu"]);
    ran.all_say("unknown", &[]);
    let remedy = format!("{python} -m pip install numpy");
    let text = format!("{}{:?}", ran.said, ran.lines);
    assert!(text.contains("needs numpy") && text.contains(&remedy), "{text}");
}

#[test]
#[ignore = "second tier: installs Triton"]
fn every_kernel_of_the_example_passes_and_variants_that_differ_in_options_share_their_verification() {
    let lab = Lab::of_example();
    // Other values of these only repeat what the interpreter does.
    lab.keep_first_values("BLOCK|BLOCK_N|ROWS|SPLITS|TILE", 6);
    let Some(lab) = lab.interpreting() else { return };
    let ran = lab.on_cpu();
    let unknown: Vec<String> = ran.verdicts().into_iter().filter(|verdict| verdict != "\"pass\"").collect();
    // Shapes that are timed are too large for `cpu`.
    assert!(unknown.iter().all(|verdict| verdict.contains("too-large")), "{}\n{unknown:?}", ran.said);
    assert!(ran.passed() >= 8 * 2 * 2, "{}", ran.passed());
    // Warps, stages and clusters of softmax, layer_norm and matmul are nothing to the interpreter.
    for kernel in ["softmax", "layer_norm", "matmul"] {
        let of = |ids: Vec<String>| ids.into_iter().filter(|id| id.contains(&format!("/{kernel}/"))).count();
        let (all, executed) = (of(ran.steps("verify").into_keys().collect()), of(ran.executed("verify")));
        assert!(executed * 2 <= all, "{kernel}: {executed} of {all}");
    }
    let again = lab.on_cpu();
    assert_eq!((again.executed("verify").len(), again.executed("compile").len()), (0, 0));
    let shown = lab.command(&["build", "--target", "cpu"]);
    assert!(
        shown.said.contains("emulated (triton interpreter)") || shown.out.contains("emulated (triton interpreter)")
    );
}

#[test]
#[ignore = "second tier: installs Triton"]
fn a_file_with_a_wrapper_in_pytorch_and_decorators_runs_without_pytorch() {
    let mut lab = Lab::of_softmax();
    lab.edit("kernel.toml", "[targets.gpu]\narch = \"sm_90a\"\n", "");
    lab.variables.push(("TRITON_INTERPRET", "0".into()));
    let Some(lab) = lab.interpreting() else { return };
    let ran = lab.on_cpu();
    assert_eq!((ran.code, ran.passed()), (Some(0), 3), "{}\n{:?}", ran.said, ran.verdicts());
}

#[test]
#[ignore = "second tier: installs Triton"]
fn an_access_outside_of_a_buffer_is_named_with_its_element_program_and_line() {
    let store = |at: &str| elementwise("r = a").replace("tl.store(y + at, r, mask=inside)", at);
    for (body, says) in [
        (
            store("tl.store(y + at, r)"),
            ["write of 4 bytes at y[100], which has 100 elements", "program (1, 0, 0)", "k.py:12"],
        ),
        (store("tl.store(y + at - 1, r, mask=inside)"), ["write of 4 bytes at y[-1]", "program (0, 0, 0)", "k.py:12"]),
        // So far away that it is in another buffer, or in none.
        (
            store("tl.store(y + at + (1 << 28), r, mask=inside)"),
            ["write of 4 bytes at y[268435456]", "program", "k.py:12"],
        ),
        (
            elementwise("r = tl.load(x + at)"),
            ["read of 4 bytes at x[100], which has 100 elements", "program (1, 0, 0)", "k.py:11"],
        ),
        (store("tl.atomic_add(y + at, r)"), ["atomic operation of 4 bytes at y[100]", "program (1, 0, 0)", "k.py:12"]),
        (
            store("tl.store(x + at, r, mask=inside)"),
            ["write to x[0], which is read-only", "program (0, 0, 0)", "k.py:12"],
        ),
    ] {
        let Some(lab) = Lab::of_copy(&body).interpreting() else { return };
        lab.on_cpu().all_say("fail", &says);
    }
}

#[test]
#[ignore = "second tier: installs Triton"]
fn a_race_between_programs_is_named_with_both_and_their_lines_and_what_atomics_order_is_none() {
    // Each program also writes the first element of the next one.
    let race = elementwise("r = a")
        + "\ntl.store(y + at + BLOCK, tl.load(x + at + BLOCK, mask=at + BLOCK < n), mask=(at + BLOCK < n) & (at % BLOCK == 0))";
    let Some(lab) = Lab::of_copy(&race).interpreting() else { return };
    lab.on_cpu().all_say("fail", &["race on y[64]", "program (1, 0, 0)", "program (0, 0, 0)", "k.py:12", "k.py:13"]);
    // The last program that arrives writes everything.
    let last = |sem: &str| {
        format!(
            "at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\ntl.store(z2 + at, tl.load(x + at, mask=at < n), mask=at < n)\n\
             if tl.atomic_add(done, 1, sem=\"{sem}\") == tl.num_programs(0) - 1:\n    all = tl.arange(0, 128)\n    \
             tl.store(y + all, tl.load(z2 + all, mask=all < n), mask=all < n)"
        )
    };
    for (sem, passes) in [("acq_rel", true), ("relaxed", false)] {
        let lab = Lab::of_copy(&last(sem));
        lab.edit("k.py", "f(x, z, y, n,", "f(x, z2, done, y, n,");
        lab.edit("kernel.toml", "[\"x\", \"z\", \"y\", \"n\"]", "[\"x\", \"w\", \"done\", \"y\", \"n\"]");
        let workspaces = "workspace.w = { dtype = \"f32\", shape = [\"n\"] }\nworkspace.done = { dtype = \"i32\", shape = [\"1\"], init = \"zero\" }\n";
        lab.edit("kernel.toml", "source = \"k.py\"\n", &format!("source = \"k.py\"\n{workspaces}"));
        let Some(lab) = lab.interpreting() else { return };
        let ran = lab.on_cpu();
        match passes {
            true => assert_eq!(ran.passed(), 1, "{}\n{:?}", ran.said, ran.verdicts()),
            false => ran.all_say("fail", &["race on w[", "with no synchronisation"]),
        }
    }
}

/// Rounds to the nearest value of bf16, to even.
const ROUND: &str = "def bf16(x):\n    bits = np.asarray(x, np.float32).view(np.uint32)\n    \
                     bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000\n    return bits.astype(np.uint32).view(np.float32)\n\n\n";

#[test]
#[ignore = "second tier: installs Triton"]
fn arithmetic_of_bf16_rounds_each_operation_to_nearest_even() {
    for (compute, expected) in [
        ("r = a + b", "bf16(x + z)"),
        ("r = a * b - a", "bf16(bf16(x * z) - x)"),
        ("r = a / (b * b + 1)", "bf16(x / bf16(bf16(z * z) + 1))"),
        (
            "r = tl.where((a > 0.5) & (b < a), -a, tl.maximum(a, b))",
            "np.where((x > 0.5) & (z < x), -x, np.maximum(x, z))",
        ),
        ("r = tl.fma(a, b, a)", "bf16(x.astype(np.float64) * z + x)"),
        ("r = (a.to(tl.float32) * 1.001).to(tl.bfloat16)", "bf16(x * np.float32(1.001))"),
        ("r = a.to(tl.float32) * 1.001", "bf16(x * np.float32(1.001))"),
        ("r = tl.abs(a) + 0", "np.abs(x)"),
    ] {
        let reference = format!(
            "{ROUND}def f(x, z):\n    x, z = x.astype(np.float32), z.astype(np.float32)\n    return {expected}"
        );
        let Some(lab) = Lab::of_body("bf16", &reference, "atol = 0, rtol = 0", &elementwise(compute)).interpreting()
        else {
            return;
        };
        let ran = lab.on_cpu();
        assert_eq!(ran.passed(), 1, "{compute}: {}\n{:?}", ran.said, ran.verdicts());
    }
}

#[test]
#[ignore = "second tier: installs Triton"]
fn what_the_interpreter_lacks_or_computes_wrongly_is_unknown_and_named_with_its_line() {
    for (compute, says) in [
        (
            "r = tl.inline_asm_elementwise(\"mov.b32 $0, $1;\", \"=f,f\", [a], dtype=tl.float32, is_pure=True, pack=1)",
            "inline_asm",
        ),
        ("from triton.language.extra import libdevice\nr = libdevice.j0(a)", "__nv_j0f"),
        ("c = a.to(tl.float8e5)\nr = (c + c).to(tl.float32)", "`fadd` of fp8e5"),
        ("r = (a + 100000.0).to(tl.float8e4nv).to(tl.float32)", "overflows"),
        (
            "while tl.atomic_cas(y.to(tl.pointer_type(tl.int32)), -5, -5) != -5:\n    pass\nr = a",
            "waits for another one",
        ),
    ] {
        let Some(lab) = Lab::of_copy(&elementwise(compute)).interpreting() else { return };
        let ran = lab.on_cpu();
        ran.all_say("unknown", &["not-emulated", says, "k.py:1"]);
    }
}

#[test]
#[ignore = "second tier: installs Triton"]
fn functions_of_libdevice_are_those_of_their_symbols() {
    let body = "from triton.language.extra import libdevice\nfrom triton.language.extra.cuda import libdevice as of_cuda\n\
                whole = libdevice.float2int_rn(a * 4)\n\
                r = libdevice.tanh(a) + of_cuda.erf(b) + libdevice.fast_expf(-a * a) + libdevice.popc(whole) + libdevice.pow(a * a, 1.5)";
    let reference = "def f(x, z):\n    import math\n    whole = np.rint(np.float32(x) * np.float32(4)).astype(np.int64) % 2**32\n    \
                     ones = np.array([bin(one).count('1') for one in whole])\n    \
                     return np.tanh(x) + np.vectorize(math.erf)(z) + np.exp(-x * x) + ones + np.abs(x) ** 3";
    let lab = Lab::of_body("f32", reference, "atol = 1e-5, rtol = 1e-5", &elementwise(body));
    let Some(lab) = lab.interpreting() else { return };
    let ran = lab.on_cpu();
    assert_eq!(ran.passed(), 1, "{}\n{:?}", ran.said, ran.verdicts());
    // There is no such function of bf16, on a device either.
    let lab = Lab::of_body("bf16", "def f(x, z):\n    return x", "atol = 0, rtol = 0", &elementwise(body));
    let Some(lab) = lab.interpreting() else { return };
    lab.on_cpu().all_say("fail", &["k.py:1"]);
}

#[test]
#[ignore = "second tier: installs Triton"]
fn an_exception_in_the_kernel_or_its_file_is_a_failure_with_its_line() {
    let raised = "does not run at some: an exception is raised";
    for (compute, says, why) in [
        ("r = a + tl.arange(0, 32)", ["incompatible dimensions", "k.py:11"], raised),
        ("r = missing + a", ["NameError", "k.py:11"], raised),
        (
            "tl.static_assert(BLOCK == 3)\nr = a",
            ["assertion failed", "k.py:11"],
            "does not run at some: an assertion fails",
        ),
    ] {
        let Some(lab) = Lab::of_copy(&elementwise(compute)).interpreting() else { return };
        lab.on_cpu().all_say("fail", &says);
        let brief = lab.command(&["build", "--target", "cpu"]);
        let text = brief.out + &brief.said;
        assert!(text.contains(why) && !text.contains(" is wrong at "), "{text}");
    }
    let Some(lab) = Lab::of_copy(&elementwise("r = a")).interpreting() else { return };
    lab.edit("k.py", "import triton\n", "import triton\nimport nowhere\n");
    lab.on_cpu().all_say("fail", &["k.py:2", "No module named 'nowhere'"]);
    lab.edit("k.py", "import nowhere\n", "def\n");
    let ran = lab.on_cpu();
    assert!(ran.code == Some(101) && ran.said.contains("k.py:2") && ran.said.contains("SyntaxError"), "{}", ran.said);
}

#[test]
#[ignore = "second tier: installs Triton and waits for a limit"]
fn a_kernel_that_hangs_is_ended_and_the_build_goes_on() {
    let lab = Lab::of_copy(&elementwise("while n > 0:\n    n = n + 0\nr = a"));
    let right = "\n[kernel.right]\noperator = \"f\"\nlanguage = \"triton\"\nsource = \"right.py\"\n\n[[kernel.right.launch]]\nentry = \"f\"\n\
                 grid = [\"ceil_div(n, 64)\"]\nargs = [\"x\", \"z\", \"y\", \"n\"]\nconstexprs = { BLOCK = 64 }\n";
    let manifest = fs::read_to_string(lab.path("kernel.toml")).unwrap() + right;
    lab.write("kernel.toml", &manifest);
    lab.write("right.py", &source(&elementwise("r = a")));
    let Some(mut lab) = lab.interpreting() else { return };
    lab.variables.push(("KFORGE_BUILD_TIME_LIMIT", "5s".into()));
    let ran = lab.on_cpu();
    assert_eq!(ran.passed(), 1, "{}\n{:?}", ran.said, ran.verdicts());
    assert!(ran.verdicts().iter().any(|verdict| verdict.contains("build.time-limit")), "{:?}", ran.verdicts());
    // A time limit is nothing to remember.
    assert_eq!(lab.on_cpu().executed("verify").len(), 1);
}

#[test]
#[ignore = "second tier: installs Triton"]
fn a_comment_stops_at_the_compilation_and_an_edit_does_not() {
    let Some(lab) = Lab::of_copy(&elementwise("r = a")).interpreting() else { return };
    assert_eq!(lab.on_cpu().passed(), 1);
    lab.edit("k.py", "    inside = at < n\n", "\n    # What is inside.\n    inside = (at <\n              n)\n");
    let commented = lab.on_cpu();
    assert_eq!((commented.executed("compile").len(), commented.executed("verify").len()), (1, 0), "{}", commented.said);
    // Lines are those of the file as it is now.
    lab.edit("k.py", "tl.store(y + at, r, mask=inside)", "tl.store(y + at, r)");
    lab.on_cpu().all_say("fail", &["k.py:15"]);
}

#[test]
#[ignore = "second tier: installs Triton"]
fn a_source_reaches_neither_files_nor_sockets_nor_the_environment_of_the_user_when_it_runs() {
    let Some(lab) = Lab::of_copy(&elementwise("r = a")).interpreting() else { return };
    let secret = folder();
    fs::write(secret.path().join("secret"), "x").unwrap();
    let listens = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let tries = format!(
        "import os, socket, triton\nfound = []\nfor what in (\n    lambda: open('{0}/secret').read(), \
         lambda: open('{0}/written', 'w'), lambda: socket.create_connection(('127.0.0.1', {1}), timeout=5)\n):\n    \
         try:\n        what()\n        found.append('something')\n    except OSError:\n        pass\nif found or 'KFORGE_HOME' in os.environ:\n    raise \
         RuntimeError('it reaches something')\n",
        secret.path().display(),
        listens.local_addr().unwrap().port()
    );
    lab.edit("k.py", "import triton\n", &tries);
    let ran = lab.on_cpu();
    assert_eq!(ran.passed(), 1, "{}\n{:?}", ran.said, ran.verdicts());
    assert!(!secret.path().join("written").exists());
}

#[test]
#[ignore = "second tier: installs Triton"]
fn a_wrong_kernel_fails_with_its_element() {
    let Some(lab) = Lab::of_softmax().interpreting() else { return };
    lab.write("softmax.py", &SOFTMAX.replace("value / tl.sum(value, axis=0)", "value / tl.sum(value, axis=0) * 1.5"));
    lab.on_cpu().all_say("fail", &["`y` is wrong at"]);
}
