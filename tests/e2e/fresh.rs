//! Inputs that nobody knows: each verification has trials of its own, a failing one can be repeated by its seed, and nothing that a kernel prints gives them
//! away.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::project::Project;
use crate::sample::one_kernel;

/// A kernel that is wrong only near zero, where no fixed trial of this operator looks: a fresh one does.
const FAR: &str = "__global__ void k(const float *x, float *y, int n) {\n  int i = threadIdx.x;\n  if (i >= n) return;\n\
  float largest = 0;\n  for (int j = 0; j < n; ++j) largest = fmaxf(largest, fabsf(x[j]));\n\
  y[i] = largest < 0.01f ? 3.0f : 2 * x[i] + 1;\n}\n";

const RIGHT: &str = "__global__ void k(const float *x, float *y, int n) {\n  int i = threadIdx.x;\n  if (i < n) y[i] = 2 * x[i] + 1;\n}\n";

/// The seed in a text that says how to repeat a trial.
fn seed(text: &str) -> u64 {
    let (_, rest) = text.split_once("`seeds = [").unwrap_or_else(|| panic!("no seed in {text}"));
    rest.split_once(']').unwrap().0.parse().unwrap()
}

#[test]
fn a_failing_fresh_trial_is_repeated_by_its_seed() {
    let project = one_kernel(FAR);
    let said = project.build(&[]).expect(100);
    let (first, text) = (seed(said.stderr()), said.stderr());
    assert!(text.contains(" (tiny): ") && !text.contains("trial 0 ("), "{text}");
    // In an overlay, the same inputs are among the known trials, so the failure names the same elements whatever is drawn.
    let overlay = project.place().join("again.toml");
    fs::write(&overlay, format!("[operator.twice]\nseeds = [{first}]\n")).unwrap();
    let again = project.build(&["--overlay", overlay.to_str().unwrap()]).expect(100);
    // The trial of an ordinary distribution comes before that of `tiny`, and now and then all its elements are near zero too.
    let class = text.split_once("`y`, trial ").and_then(|(_, rest)| rest.split_once('(')?.1.split_once(')')).unwrap().0;
    let line = |text: &str, of: &str| {
        let found = text.lines().find(|line| line.contains(of)).unwrap_or_else(|| panic!("no {of} in {text}"));
        found.split_once(&format!(" ({class}")).unwrap().1.to_string()
    };
    assert_eq!(line(again.stderr(), &format!("trial 4 ({class})")), line(text, &format!("({class})")));
}

#[test]
fn each_verification_draws_its_own_inputs_and_judges_alike() {
    let project = one_kernel(RIGHT);
    let observed = |project: &Project| -> (Value, Value) {
        assert_eq!(project.built(&[]).count("failed"), 0);
        let blobs = contents(&project.home().join("cas"));
        let with = |field: &str| {
            blobs
                .iter()
                .filter_map(|b| serde_json::from_slice::<Value>(b).ok())
                .find(|v| v.get(field).is_some())
                .unwrap()
        };
        (with("ran_as")["fresh"].clone(), with("explanation"))
    };
    let other = project.cloned("other").fresh_home("other-home");
    let (a, b) = (observed(&project), observed(&other));
    let drawn = |fresh: &Value| {
        fresh["drawn"].as_array().unwrap().iter().map(|t| t["seed"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!((drawn(&a.0).len(), drawn(&b.0).len()), (3, 3), "{a:?}");
    assert!(drawn(&a.0).iter().all(|seed| !drawn(&b.0).contains(seed)));
    assert_eq!(a.1, b.1, "a judgement that passes does not depend on what was drawn");
}

fn contents(folder: &Path) -> Vec<Vec<u8>> {
    let folders = fs::read_dir(folder).unwrap().map(|f| f.unwrap().path());
    folders.flat_map(|f| fs::read_dir(f).unwrap()).map(|f| fs::read(f.unwrap().path()).unwrap()).collect()
}

#[test]
fn what_a_kernel_prints_at_a_holdout_shape_is_shown_to_nobody() {
    let says = RIGHT.replace("int i", "if (threadIdx.x == 0) printf(\"x is %f at %d\\n\", x[0], n);\n  int i");
    let project = one_kernel(&format!("#include <cstdio>\n{says}"));
    project.edit(
        "kernel.toml",
        "shapes.tiny = { n = 10 }",
        "shapes.tiny = { n = 10 }\nshapes.secret = { n = 11, role = \"holdout\" }",
    );
    let said = |words: &[&str]| {
        let output = project.command(words).output().unwrap();
        let all = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&all).into_owned();
        assert!(output.status.success(), "{text}");
        text
    };
    let built = said(&["build", "--offline", "-v"]);
    assert!(built.contains(" at 10") && !built.contains(" at 11"), "{built}");
    for words in
        [&["run", "--offline", "k", "--shape", "secret", "-v"][..], &["run", "--offline", "k/cpu/secret/verify"]]
    {
        assert!(!said(words).contains(" at 11"), "{words:?}");
    }
    let all = contents(&project.home().join("actions")).concat();
    let all = String::from_utf8_lossy(&all).into_owned();
    assert!(all.contains(" at 10") && !all.contains(" at 11"), "a remembered result holds no such text either");
}

/// How many trials each operator gets; a hundred clean builds draw a hundred. By default one of each distribution.
#[expect(clippy::disallowed_methods, reason = "a variable of the tests")]
fn trials() -> u64 {
    std::env::var("KFORGE_TEST_TRIALS").ok().and_then(|n| n.parse().ok()).unwrap_or(8)
}

/// For every operator of every example, one honest kernel at a small shape on `cpu`, on many fresh trials of every class.
#[test]
#[ignore = "second tier: hundreds of verifications"]
fn many_fresh_trials_accuse_no_honest_kernel() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    // Numbers as a verification draws them: every distribution, each with seeds that no other has.
    let seeds = (0..trials()).map(|n| 1 << 62 | (n % 8) << 56 | n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8);
    let seeds = seeds.map(|seed| seed.to_string()).collect::<Vec<_>>().join(", ");
    let project = Project::new();
    let overlay = project.place().join("many.toml");
    let target = project.place().join("target");
    let mut tried = 0;
    for example in ["quickstart", "kernels", "generated"] {
        let folder = examples.join(example);
        let run = |words: &[&str]| {
            let mut command = project.command(&[&["-C", folder.to_str().unwrap()], words].concat());
            let output = command.env("KFORGE_BUILD_TARGET_DIR", &target).output().unwrap();
            let said = String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned();
            assert!(output.status.success(), "{example}: {words:?}: {said}");
            output.stdout
        };
        let metadata: Value = serde_json::from_slice(&run(&["metadata"])).unwrap();
        for package in metadata["packages"].as_array().unwrap() {
            let name = package["name"].as_str().unwrap();
            for operator in package["operators"].as_array().unwrap() {
                let kernels = package["kernels"].as_array().unwrap().iter();
                let kernel =
                    kernels.into_iter().find(|k| k["operator"] == operator["name"]).unwrap()["name"].as_str().unwrap();
                let operator = operator["name"].as_str().unwrap();
                fs::write(&overlay, format!("[operator.{operator}]\nseeds = [{seeds}]\n")).unwrap();
                let words = ["run", "--offline", kernel, "-p", name, "--shape", "ragged", "--overlay"];
                run(&[&words[..], &[overlay.to_str().unwrap()]].concat());
                tried += 1;
            }
        }
    }
    assert!(tried >= 45, "{tried} operators");
}
