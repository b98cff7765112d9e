//! Indecisive operators, tested with the real program: each null candidate reaches the calibrate step through the plan, is judged at every shape and
//! distribution, and is reported by its name.

use crate::project::{Built, Project};
use crate::sample::{ONE, one_kernel};

const RIGHT: &str = "__global__ void k(const float *x, float *y, int n) {\n  int i = threadIdx.x;\n  if (i < n) y[i] = 2 * x[i] + 1;\n}\n";
const CALIBRATE: &str = "one/twice/calibrate";

fn with(edits: &[(&str, &str)]) -> Project {
    let project = one_kernel(RIGHT);
    edits.iter().for_each(|(from, to)| project.edit("kernel.toml", from, to));
    project
}

/// The null candidates that would pass everywhere, according to a build's output.
fn indecisive(built: &Built) -> Vec<String> {
    told(built, "indecisive: a kernel that gives ", " as y would pass every shape and distribution")
}

/// The texts between `before` and `after`, in order, each once.
fn told(built: &Built, before: &str, after: &str) -> Vec<String> {
    let found = built.stderr().split(before).skip(1).filter_map(|rest| Some(rest.lines().next()?.split_once(after)?.0));
    let mut found: Vec<String> = found.map(str::to_string).collect();
    found.sort();
    found.dedup();
    found
}

#[test]
#[ignore = "second tier: compiles for the emulator"]
fn every_candidate_reaches_calibration_and_passes_where_anything_does() {
    let built = with(&[("{ atol = 1e-6, rtol = 1e-6 }", "{ atol = 1e6 }")]).build(&[]).expect(0);
    let all = ["another seed", "constant 1", "constant mean", "copy of x", "inputs rounded to f16", "zeros"];
    assert_eq!(indecisive(&built), all);
    assert_eq!(
        built.step(CALIBRATE)["verdict"]["unknown"]["indecisive"],
        "`y` accepts another seed and 5 more answers at every shape"
    );
}

#[test]
fn only_what_a_tolerance_cannot_tell_is_told() {
    // An f16 has eleven bits: the rounding error is below 1e-3 of the value, and far above 1e-6 of it.
    let built = with(&[("{ atol = 1e-6, rtol = 1e-6 }", "{ rtol = 1e-2, atol = 1e-2 }")]).build(&[]).expect(0);
    assert_eq!(indecisive(&built), ["inputs rounded to f16"]);
    with(&[]).built(&[]);
}

#[test]
#[ignore = "second tier: compiles for the emulator"]
fn a_candidate_that_is_the_expectation_is_no_candidate() {
    // For an identity, a copy is correct. A copy rounded to f16 and then to f8 would not be.
    let project = with(&[("y = \"2 * x + 1\"", "y = \"x\""), ("{ atol = 1e-6, rtol = 1e-6 }", "{ atol = 1e6 }")]);
    project.edit("k.cu", "2 * x[i] + 1", "x[i]");
    let built = project.build(&[]).expect(0);
    assert_eq!(indecisive(&built), ["another seed", "constant 1", "constant mean", "inputs rounded to f16", "zeros"]);
    let project =
        with(&[("y = \"2 * x + 1\"", "y = \"0 * x + 1\""), ("{ atol = 1e-6, rtol = 1e-6 }", "{ atol = 1e6 }")]);
    project.edit("k.cu", "2 * x[i] + 1", "1");
    // An output that is 1 everywhere equals a constant, and the outputs for another seed and for less precise inputs. That it is a constant is said.
    assert_eq!(indecisive(&project.build(&[]).expect(0)), ["constant mean", "copy of x", "zeros"]);
}

#[test]
#[ignore = "second tier: compiles for the emulator"]
fn what_rounding_makes_equal_is_no_candidate() {
    // One half is exact in f16, and the same in every trial; y is 2 everywhere.
    let project = with(&[("{ atol = 1e-6, rtol = 1e-6 }", "{ atol = 1e6 }")]);
    project.edit(
        "kernel.toml",
        "inputs.x = { dtype = \"f32\",",
        "inputs.x = { dtype = \"f32\", init = { constant = 0.5 },",
    );
    assert_eq!(indecisive(&project.build(&[]).expect(0)), ["constant 1", "constant mean", "copy of x", "zeros"]);
}

#[test]
#[ignore = "second tier: compiles for the emulator"]
fn a_candidate_that_passes_at_some_shapes_only_is_a_note() {
    let loose = "shapes.tiny = { n = 10 }\nshapes.loose = { n = 12, tolerance = { atol = 1e6 } }";
    let built = with(&[("shapes.tiny = { n = 10 }", loose)]).built(&["-v"]);
    assert_eq!(built.step(CALIBRATE)["verdict"], "pass");
    assert_eq!(indecisive(&built), [""; 0]);
    let all = ["another seed", "constant 1", "constant mean", "copy of x", "inputs rounded to f16", "zeros"];
    assert_eq!(told(&built, "a kernel that gives ", " as y would pass 4 of 8 trials"), all);
}

#[test]
#[ignore = "second tier: compiles for the emulator"]
fn integers_have_no_precision_to_lose() {
    let integers = one_kernel(&RIGHT.replace("float", "int"));
    integers.write("kernel.toml", &ONE.replace("f32", "i32").replace("tolerance = { atol = 1e-6, rtol = 1e-6 }\n", ""));
    let built = integers.built(&[]);
    assert!(!built.stderr().contains("rounded"), "{}", built.stderr());
}

#[test]
#[ignore = "second tier: compiles for the emulator"]
fn an_operator_of_which_nothing_is_computed_is_unknown_and_says_why() {
    let unknown = |project: &Project, words: &[&str], kind: &str| {
        let built = project.built(words);
        let why = built.step(CALIBRATE)["verdict"]["unknown"][kind].as_str().unwrap_or_default().to_string();
        assert!(built.count("executed") > 0 || words.is_empty(), "{}", built.stderr());
        why
    };
    let large = with(&[]).var("KFORGE_EMULATOR_MAX_WORK", "5");
    let why = unknown(&large, &[], "too-large");
    assert!(why.contains("its smallest shape needs 2.0e1") && why.contains("`emulator.max-work`"), "{why}");
    let report = large.report_value();
    let operator = &report["packages"][0]["operators"][0];
    assert_eq!((&operator["name"], operator["verdict"]["unknown"].is_object()), (&"twice".into(), true), "{operator}");

    let alone = with(&[]);
    let text = std::fs::read_to_string(alone.root().join("kernel.toml")).unwrap();
    let kernel = text.find("[kernel.k]").unwrap();
    alone.write("kernel.toml", &text[..kernel]);
    assert_eq!(unknown(&alone, &[], "missing"), "no kernel implements it, so kforge computes nothing for it");
}

#[test]
fn a_derived_tolerance_is_shown_and_rejects_less_precision() {
    for (stated, rejects) in [("\"auto\"", true), ("{ atol = 1e-2 }", false)] {
        let project = with(&[("tolerance = { atol = 1e-6, rtol = 1e-6 }", &format!("tolerance = {stated}"))]);
        let built = project.built(&["-v"]);
        assert_eq!(indecisive(&built).is_empty(), rejects);
        let shown =
            built.stderr().contains("tolerance derived for sums of up to 1 terms: `y` atol = rtol = 4.77e-7, ulp = 1");
        assert_eq!(shown, rejects, "{}", built.stderr());
    }
}

#[test]
fn a_scale_that_no_reference_has_is_an_error_where_it_is_asked_for() {
    let project = with(&[("outputs.y = { dtype = \"f32\"", "outputs.y = { dtype = \"i32\"")]);
    project.edit("kernel.toml", "{ builtin = \"elementwise\", y = \"2 * x + 1\" }", "\"builtin:argmax\"");
    project.edit("kernel.toml", "shape = [\"n\"] }\nreference", "shape = [] }\nreference");
    project.edit("kernel.toml", "tolerance = { atol = 1e-6, rtol = 1e-6 }", "tolerance = { scaled = 4 }");
    project
        .build(&[])
        .expect(101)
        .says("a tolerance for `y` has no effect: its elements are integers, which are compared exactly");
    with(&[("tolerance = { atol = 1e-6, rtol = 1e-6 }", "tolerance = { scaled = 4 }")]).built(&[]);
}
