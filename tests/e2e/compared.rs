//! Outputs that a function of the package compares, with references in any language and place. Without Python and numpy these tests are skipped with a message.

use std::path::Path;
use std::sync::OnceLock;

use crate::project::{Built, Kept, Project, known};
use crate::python::python;

/// `y` holds the sums of `n` pairs in any order; `i` some index of the largest value of `x`.
const MANIFEST: &str = r#"
[package]
name = "p"
version = "0.1.0"

[targets.cpu]

[operator.pick]
dims = ["n"]
inputs.x = { dtype = "f32", shape = ["n"] }
params.least = { dtype = "f32", value = 0.5 }
outputs.y = { dtype = "f32", shape = ["n"] }
outputs.i = { dtype = "i32", shape = [] }
REFERENCE
compare = { y = "checks/near.py::near", i = "checks/near.py::points" }
shapes.tiny = { n = 10 }

[kernel.k]
operator = "pick"
source = "k.cu"
launch = [{ entry = "k", grid = ["1"], block = ["16"], args = ["x", "y", "i", "n", "least"] }]
"#;

const KERNEL: &str = r#"
__global__ void k(const float *x, float *y, int *i, int n, float least) {
  int t = threadIdx.x;
  if (t < n) y[t] = x[t] > least ? x[t] : 0;
  if (t == 0) {
    int best = 0;
    for (int j = 1; j < n; ++j) if (x[j] >= x[best]) best = j;
    *i = best;
  }
}
"#;

/// A check beside another module in the same folder.
const CHECK: &str = r#"
import numpy
from limits import LIMIT

def near(got, want, x, least, n):
    assert got.dtype == numpy.float64 and got.shape == (n,) and not got.flags.writeable and not x.flags.writeable
    good = numpy.abs(got - numpy.where(x > least, x, 0)) <= LIMIT
    return good, "%d values are no value of x above %g" % ((~good).sum(), least)

def points(got, want, x):
    inside = 0 <= got < len(x)
    return bool(inside and x[got] == x.max()), "%d is no index of the largest" % got
"#;

const PYTHON: &str = r#"
import numpy

def pick(x, least):
    return numpy.where(x > least, x, 0), numpy.argmax(x)
"#;

const CPP: &str = r#"
#include "above.h"
extern "C" void pick(const kforge::Call& call) {
    const double *x = call.floats("x");
    double *y = call.out_floats("y");
    int64_t best = 0;
    for (int64_t j = 0; j < call.dim("n"); ++j) {
        y[j] = above(x[j], call.param("least"));
        if (x[j] > x[best]) best = j;
    }
    call.out_ints("i")[0] = best;
}
"#;

/// The package with that reference; none if no Python can run its checks.
fn package(reference: &str) -> Option<Project> {
    let python = python()?;
    let manifest = MANIFEST.replace("REFERENCE", &format!("reference = \"{reference}\""));
    let project = Project::new().var("KFORGE_TOOLCHAIN_PYTHON", python.as_os_str());
    let project = project.file("kernel.toml", &manifest).file("k.cu", KERNEL);
    let project = project.file("checks/near.py", CHECK).file("checks/limits.py", "LIMIT = 0\n");
    let project = project.file("py/ref.py", PYTHON).file("cpp/ref.cpp", CPP);
    Some(project.file("cpp/above.h", "inline double above(double x, double least) { return x > least ? x : 0; }\n"))
}

/// A package with one output, computed by a built-in.
fn builtin() -> Option<Project> {
    let project = package("py/ref.py::pick")?;
    let text = MANIFEST
        .replace("REFERENCE", "reference = { builtin = \"elementwise\", y = \"where(x > least, x, 0)\" }")
        .replace("outputs.i = { dtype = \"i32\", shape = [] }\n", "")
        .replace("{ y = \"checks/near.py::near\", i = \"checks/near.py::points\" }", "\"checks/near.py::near\"")
        .replace("\"i\", ", "");
    project.write("kernel.toml", &text);
    project.write("k.cu", &KERNEL.replace("int *i, ", "").replace("*i = best", ""));
    Some(project)
}

/// One package for each kind of reference.
fn all() -> Vec<Project> {
    [builtin(), package("py/ref.py::pick"), package("cpp/ref.cpp::pick")].into_iter().flatten().collect()
}

/// The package whose reference is in C++, in a home that has its results.
fn cpp_known() -> Option<Project> {
    (!all().is_empty()).then(|| known_at(2))
}

/// The package at a position of [`all`], in a home that has its results.
fn known_at(at: usize) -> Project {
    static KNOWN: [OnceLock<Kept>; 3] = [const { OnceLock::new() }; 3];
    let correct = |project: &Project| {
        let built = project.built(&[]);
        assert_eq!(built.step(JUDGE)["verdict"], "pass");
        assert_eq!(built.step("p/pick/calibrate")["verdict"], "pass");
    };
    known(&KNOWN[at], || all().swap_remove(at), correct)
}

const JUDGE: &str = "p/k/cpu/tiny/judge";

#[track_caller]
fn failure(built: &Built, id: &str) -> String {
    let verdict = &built.step(id)["verdict"];
    verdict["fail"].as_str().unwrap_or_else(|| panic!("{id}: {verdict}\n{}", built.stderr())).to_string()
}

/// The message of a step that could not run.
#[track_caller]
fn refused(built: &Built, id: &str) -> String {
    let outcome = &built.step(id)["outcome"];
    outcome["failed"].as_str().unwrap_or_else(|| panic!("{id}: {outcome}\n{}", built.stderr())).to_string()
}

#[test]
#[ignore = "second tier: every kind of reference"]
fn a_check_in_another_folder_serves_every_kind_of_reference() {
    for project in (0..all().len()).map(known_at) {
        assert_eq!(project.built(&[]).count("executed"), 0);
    }
}

#[test]
#[ignore = "second tier: many builds"]
fn inputs_made_in_python_serve_a_reference_in_another_language_and_folder() {
    let Some(project) = package("cpp/ref.cpp::pick") else { return };
    let inputs =
        "import numpy\n\ndef inputs(seed, n):\n    return {'x': numpy.random.default_rng(seed).normal(size=n)}\n";
    project.write("gen/inputs.py", inputs);
    project.edit("kernel.toml", "compare =", "generate_inputs = \"gen/inputs.py::inputs\"\ncompare =");
    assert_eq!(project.built(&[]).step(JUDGE)["verdict"], "pass");
    project.edit("kernel.toml", "gen/inputs.py::inputs", "gen/no.py::inputs");
    project.build(&[]).expect(101).says("the generator of inputs `gen/no.py` of operator `pick` does not exist");
}

/// A wrong value of `y` is rejected in the words of the check that compares it.
fn rejects_values(project: &Project) {
    project.edit("k.cu", "x[t] > least ? x[t] : 0", "x[t]");
    let built = project.build(&[]).expect(100);
    let why = failure(&built, JUDGE);
    assert!(why.starts_with("`y`: `checks/near.py::near` rejects ") && why.contains(" of 10 elements"), "{why}");
    assert!(why.ends_with(" values are no value of x above 0.5"), "{why}");
}

/// A wrong value of `i` is rejected in the words of the check that compares it.
fn rejects_positions(project: &Project) {
    project.edit("k.cu", "*i = best", "*i = -7");
    let built = project.build(&[]).expect(100).says("-7 is no index of the largest");
    let why = failure(&built, JUDGE);
    assert!(why.starts_with("`i`: `checks/near.py::points` rejects"), "{why}");
}

/// A module that a check imports is part of the key of what it judges, other files are not.
fn is_asked_again(project: &Project) {
    project.built(&[]);
    project.write("checks/limits.py", "LIMIT = -1\n");
    let built = project.build(&["--keep-going"]).expect(100);
    failure(&built, JUDGE);
    assert!(!built.executed_kinds().contains_key("compile"), "{:?}", built.executed_kinds());
    project.write("checks/unread.txt", "no module\n");
    assert_eq!(project.build(&["--keep-going"]).count("executed"), 0);
}

#[test]
#[ignore = "second tier: many builds"]
fn a_wrong_kernel_is_rejected_in_the_checks_own_words() {
    let Some(project) = cpp_known() else { return };
    rejects_values(&project);
}

#[test]
#[ignore = "second tier: many builds"]
fn an_edited_check_or_what_it_imports_is_asked_again_and_nothing_is_compiled() {
    let Some(project) = cpp_known() else { return };
    is_asked_again(&project);
}

#[test]
#[ignore = "second tier: every kind of reference"]
fn checks_reject_and_are_asked_again_for_every_kind_of_reference() {
    for at in 0..all().len() {
        rejects_values(&known_at(at));
        if at > 0 {
            rejects_positions(&known_at(at));
        }
        is_asked_again(&known_at(at));
    }
}

#[test]
#[ignore = "second tier: every kind of reference"]
fn a_check_that_accepts_whatever_it_is_asked_about_makes_the_operator_indecisive() {
    for project in all() {
        project.edit("checks/near.py", "return good, \"%d values", "return True, \"%d values");
        let built = project.built(&[]);
        for candidate in ["zeros", "constant 1", "copy of x", "another seed"] {
            built.stderr().find(&format!("a kernel that gives {candidate} as y would pass")).unwrap_or_else(|| {
                panic!("{candidate} was not asked about:\n{}", built.stderr());
            });
        }
        assert!(built.step("p/pick/calibrate")["verdict"]["unknown"]["indecisive"].is_string());
    }
}

#[test]
fn a_check_that_fails_is_an_error_with_its_traceback() {
    let Some(project) = package("py/ref.py::pick") else { return };
    project.edit("checks/near.py", "    good = ", "    nonsense(got)\n    good = ");
    let built = project.build(&[]).expect(101);
    built.says("NameError: name 'nonsense' is not defined").says("File \"checks/near.py\", line 7, in near");
}

#[test]
#[ignore = "second tier: many builds"]
fn a_check_that_returns_nonsense_is_an_error() {
    let Some(project) = builtin() else { return };
    for (returned, said) in [
        ("None", "gave NoneType, expected a truth value"),
        ("1", "gave int, expected a truth value"),
        ("\"no\"", "gave str, expected a truth value"),
        ("numpy.abs(got - want)", "gave values of float64 in the shape [10], expected"),
        ("good[:3]", "gave values of bool in the shape [3], expected"),
        ("(good, 3)", "gave"),
    ] {
        project
            .write("checks/near.py", &CHECK.replacen("return good, ", &format!("return {returned}\n    return "), 1));
        let built = project.build(&[]).expect(101).says(said);
        assert!(refused(&built, "p/pick/tiny/0/oracle").contains("the check `checks/near.py::near` exited with 1"));
    }
}

#[test]
#[ignore = "second tier: many attempts at escape"]
fn a_check_cannot_reach_out_nor_change_what_it_is_given() {
    let Some(project) = builtin() else { return };
    let host = Path::new("/etc/hostname");
    for (line, said) in [
        (format!("open('{}')", host.display()), "PermissionError"),
        ("open('/tmp/kforge-check', 'w')".to_string(), "PermissionError"),
        ("import socket; socket.socket()".to_string(), "PermissionError"),
        ("x[0] = 1".to_string(), "ValueError: assignment destination is read-only"),
        ("got[:] = want".to_string(), "ValueError: assignment destination is read-only"),
    ] {
        project.write("checks/near.py", &CHECK.replacen("    good = ", &format!("    {line}\n    good = "), 1));
        project.build(&[]).expect(101).says(said);
    }
}

#[test]
fn a_check_that_is_not_there_and_names_that_it_hides_are_errors_of_the_manifest() {
    let Some(project) = builtin() else { return };
    project.edit("kernel.toml", "checks/near.py::near", "checks/far.py::near");
    project.build(&[]).expect(101).says("the check `checks/far.py` of operator `pick` does not exist");
    let Some(project) = builtin() else { return };
    project.edit("kernel.toml", "compare =", "tolerance = { y = { atol = 1 } }\ncompare =");
    project.build(&[]).expect(101).says("a tolerance for `y` has no effect: `checks/near.py::near` decides instead");
    project.edit("kernel.toml", "tolerance = { y = { atol = 1 } }\n", "params.want = { dtype = \"f32\", value = 1 }\n");
    project.build(&[]).expect(101).says("the param `want` has the name of an argument of the function that compares");
}
