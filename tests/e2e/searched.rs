//! Searches on a target that is not timed: a sample represents the space, and the report says so.

use std::collections::BTreeSet;

use crate::project::Built;
use crate::sample::one_kernel;

const KERNEL: &str = "__global__ void k(const float *x, float *y, int n) {\n  if (threadIdx.x < n) y[threadIdx.x] = 2 * x[threadIdx.x] + 1 + 0 * STEP;\n}\n";

fn variants(built: &Built, kind: &str) -> BTreeSet<String> {
    let of_kind = built.finished().filter(|s| s["kind"] == kind);
    of_kind.map(|s| s["labels"]["variant"].as_str().unwrap().to_string()).collect()
}

#[test]
#[ignore = "second tier: many builds"]
fn where_nothing_is_timed_a_sample_of_the_budgets_size_stands_for_the_space() {
    let project = one_kernel(KERNEL);
    let search = "tune.STEP = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]\ntune.strategy = \"model\"\ntune.budget = { variants = 2 }";
    project.edit("kernel.toml", "source = \"k.cu\"", &format!("source = \"k.cu\"\n{search}"));
    let built = project.built(&[]);
    let report = String::from_utf8(project.command(&["report"]).output().unwrap().stdout).unwrap();
    let line = "model search: a sample of 2 of 12 variants represents all: this target is not timed";
    assert_eq!(report.matches(line).count(), 1, "{report}");
    let sample = variants(&built, "compile");
    assert_eq!((sample.len(), variants(&built, "verify")), (2, sample.clone()));
    let champion = built.events("champion").next().unwrap();
    assert_eq!(
        (&champion["provisional"], sample.contains(champion["variant"].as_str().unwrap())),
        (&true.into(), true)
    );
    assert_eq!(project.built(&[]).count("executed"), 0);
    // Builds with earlier goals use the same variants.
    for goal in ["check", "verify"] {
        let command = project.command(&[goal, "--offline", "--message-format", "json"]).output().unwrap();
        let shorter = Built::of(&command).expect(0);
        assert_eq!((variants(&shorter, "compile"), shorter.count("executed")), (sample.clone(), 0), "{goal}");
    }
    // A larger budget adds to the sample; another seed draws another.
    project.edit("kernel.toml", "variants = 2", "variants = 3");
    let larger = variants(&project.built(&[]), "compile");
    assert!(larger.len() == 3 && sample.is_subset(&larger), "{sample:?} {larger:?}");
    project.edit("kernel.toml", "variants = 3 }", "variants = 3 }\ntune.seed = 1");
    assert_ne!(variants(&project.built(&[]), "compile"), larger);
}

#[test]
#[ignore = "second tier: many builds"]
fn where_all_variants_are_tried_small_and_large_ones_are_compiled_by_turns() {
    let project = crate::sample::unbuilt();
    project.edit("kernel.toml", "tune.BLOCK = [4]", "tune.BLOCK = [4, 2, 8, 16]");
    let words = ["check", "--offline", "--message-format", "json", "--kernel", "direct", "-j1"];
    let checked = Built::of(&project.command(&words).output().unwrap()).expect(0);
    let compiled = checked.finished().filter(|step| step["kind"] == "compile");
    let variants: Vec<&str> = compiled.filter_map(|step| step["labels"]["variant"].as_str()).collect();
    assert_eq!(variants, ["BLOCK=2", "BLOCK=16", "BLOCK=4", "BLOCK=8"]);
}
