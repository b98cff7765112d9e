//! A change of one kernel among thirty: `affected`, `build --changed-since` and `ci` find it through the plan, and evaluate nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::project::{Built, Project, id, ids};

const HEAD: &str = r#"
[package]
name = "thirty"
version = "0.1.0"

[targets.cpu]

[operator.twice]
dims = ["n"]
inputs.x = { dtype = "f32", shape = ["n"] }
outputs.y = { dtype = "f32", shape = ["n"] }
reference = { builtin = "elementwise", y = "2 * x + 1" }
tolerance = { atol = 1e-6, rtol = 1e-6 }
shapes.tiny = { n = 10 }
"#;

/// The source of a kernel. `value` is what it writes.
fn source(at: u32, value: &str) -> String {
    let header = if at < 2 { "#include \"shared.h\"\n" } else { "" };
    format!("{header}__global__ void k{at:02}(const float *x, float *y) {{ int i = threadIdx.x; y[i] = {value}; }}\n")
}

/// A repository of thirty kernels of one operator; two include a header.
fn thirty() -> Project {
    let mut manifest = HEAD.to_string();
    let mut project = Project::new().file("shared.h", "// Nothing.\n").file(".gitignore", "target/\n");
    for at in 0..30 {
        manifest += &format!(
            "[kernel.k{at:02}]\noperator = \"twice\"\nsource = \"k{at:02}.cu\"\n\
             launch = [{{ entry = \"k{at:02}\", grid = [\"1\"], block = [\"n\"], args = [\"x\", \"y\"] }}]\n"
        );
        project = project.file(&format!("k{at:02}.cu"), &source(at, "2 * x[i] + 1"));
    }
    let project = project.file("kernel.toml", &manifest);
    git(&project, &["init", "--quiet"]);
    git(&project, &["add", "--all"]);
    git(&project, &["commit", "--quiet", "-m", "first"]);
    project
}

fn git(project: &Project, words: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]);
    command.args(words).current_dir(project.root()).env("HOME", project.place());
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A document that matches its schema.
#[track_caller]
fn valid(document: Value, schema: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas").join(schema);
    let schema = jsonschema::validator_for(&serde_json::from_slice(&fs::read(path).unwrap()).unwrap()).unwrap();
    let wrong: Vec<String> = schema.iter_errors(&document).map(|e| e.to_string()).collect();
    assert!(wrong.is_empty(), "{document}: {wrong:?}");
    document
}

/// `kforge affected HEAD`, as JSON.
#[track_caller]
fn affected(project: &Project) -> Value {
    let output = project.command(&["affected", "HEAD", "--format", "json", "--offline"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    valid(serde_json::from_slice(&output.stdout).unwrap(), "affected.json")
}

/// The names of affected kernels.
fn names(affected: &Value) -> Vec<&str> {
    affected["affected"].as_array().unwrap().iter().map(|of| of["kernel"].as_str().unwrap()).collect()
}

/// `kforge ci WORDS`: its document in a folder of the workspace, and standard error.
#[track_caller]
fn ci_in(project: &Project, folder: &str, words: &[&str], code: i32) -> (Value, String) {
    let output = project.command(&[&["ci", "--offline"], words].concat()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{said}");
    let document = fs::read(project.root().join(folder).join("ci.json")).unwrap();
    let document = valid(serde_json::from_slice(&document).unwrap(), "ci.json");
    assert_eq!(document["exit"], code);
    (document, said)
}

/// The same in the usual folder.
#[track_caller]
fn ci(project: &Project, words: &[&str], code: i32) -> (Value, String) {
    ci_in(project, "target/kforge/ci", words, code)
}

/// The kernels with steps, and the ids of those that ran.
fn evaluated(document: &Value) -> (Vec<&str>, Vec<&str>) {
    let steps = document["steps"].as_array().unwrap();
    let kernels = steps.iter().filter_map(|of| of["kernel"].as_str()).collect();
    let executed = steps.iter().flat_map(|of| of["executed"].as_array().unwrap()).map(|id| id.as_str().unwrap());
    (kernels, executed.collect())
}

#[test]
#[ignore = "second tier: many builds"]
fn ci_evaluates_the_edited_kernel_of_thirty_and_a_wrong_one_fails_it() {
    let project = thirty();
    project.write("k07.cu", &source(7, "1 + 2 * x[i]"));
    let (document, said) = ci(&project, &["--base", "HEAD"], 0);
    assert!(said.contains("Affected 1 of 30 kernels: thirty/k07\n"), "{said}");
    assert_eq!((names(&document["affected"]), &document["affected"]["unaffected"]), (vec!["k07"], &Value::from(29)));
    let (kernels, executed) = evaluated(&document);
    assert_eq!(kernels, ["k07"]);
    assert!(executed.contains(&"thirty/k07/cpu/tiny/verify"), "{executed:?}");
    let own = |id: &&&str| !id.starts_with("thirty/k07/") && !id.starts_with("thirty/twice/");
    assert_eq!(executed.iter().find(own), None);
    assert_eq!((&document["conclusion"], &document["comparison"]), (&Value::from("done"), &Value::Null));
    assert_eq!(document["base"]["commit"], git(&project, &["rev-parse", "HEAD"]).trim());
    let written = |name: &str| fs::read_to_string(project.target().join("ci").join(name)).unwrap_or_default();
    assert!(written("junit.xml").contains("k07") && !written("junit.xml").contains("k08"), "{}", written("junit.xml"));
    assert!(written("summary.md").contains("k07") && said.contains("documents to "), "{said}");
    // The same again runs nothing.
    assert_eq!(evaluated(&ci(&project, &["--base", "HEAD"], 0).0), (vec!["k07"], vec![]));
    project.write("k07.cu", &source(7, "3 * x[i]"));
    let (document, said) = ci_in(&project, "out", &["--base", "HEAD", "--output", "out"], 100);
    assert_eq!((evaluated(&document).0, &document["conclusion"]), (vec!["k07"], &Value::from("wrong")));
    assert!(said.contains("a kernel is wrong"), "{said}");
    let summary = fs::read_to_string(project.root().join("out/summary.md")).unwrap();
    assert!(summary.starts_with("## kforge ci: a kernel is wrong\n"), "{summary}");
    // Another kernel that is wrong in the base, too, is not the fault of the change.
    git(&project, &["commit", "--quiet", "--all", "-m", "wrong"]);
    project.write("k08.cu", &source(8, "1 + 2 * x[i]"));
    assert_eq!(evaluated(&ci(&project, &["--base", "HEAD"], 0).0).0, ["k08"]);
    let output = project.command(&["ci", "--offline", "--base", "nowhere"]).output().unwrap();
    assert_eq!(output.status.code(), Some(101));
    assert_eq!(written("ci.json") + &written("junit.xml"), "", "a run that was not started leaves no document");
    project.edit("kernel.toml", "\"twice\"\nsource = \"k09.cu\"", "\"thrice\"\nsource = \"k09.cu\"");
    let output = project.command(&["ci", "--offline", "--base", "HEAD"]).output().unwrap();
    assert_eq!(output.status.code(), Some(101));
    assert!(written("annotations.txt").contains("thrice") && written("ci.json").is_empty(), "{output:?}");
}

#[test]
fn what_a_change_touches_is_found_through_the_plan_and_not_by_names_of_files() {
    let project = thirty();
    let none = affected(&project);
    assert_eq!((names(&none), &none["unaffected"]), (vec![], &Value::from(30)));
    // A comment in the manifest, and a file that no kernel reads.
    let manifest = fs::read_to_string(project.root().join("kernel.toml")).unwrap();
    project.write("kernel.toml", &format!("# A comment.\n{manifest}"));
    project.write("other.h", "// Nobody reads this.\n");
    assert_eq!(names(&affected(&project)), Vec::<&str>::new());
    let built = project.built(&["--changed-since", "HEAD"]).says("touch none of 30 kernels");
    assert_eq!(built.finished().count(), 0);
    // A header touches those that include it; a comment there does, too: what it compiles to is not known.
    project.write("shared.h", "// Nothing more.\n");
    let found = affected(&project);
    assert_eq!(names(&found), ["k00", "k01"]);
    let of = &found["affected"][0];
    assert_eq!(of["targets"], serde_json::json!([{ "target": "cpu", "arch": "cpu", "device": null }]));
    let because = serde_json::json!([
        { "code": "changed", "step": "thirty/k00/generate", "steps": 1, "field": "inputs.file:shared.h" }
    ]);
    assert_eq!(of["because"], because);
    let text = project.command(&["affected", "HEAD", "--offline"]).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.starts_with("thirty/k00 on cpu\n  the file `shared.h` changed: `thirty/k00/generate`\n"), "{text}");
    // The operator touches all of its kernels; a selection is considered by itself.
    project.edit("kernel.toml", "shapes.tiny = { n = 10 }", "shapes.tiny = { n = 11 }");
    assert_eq!(names(&affected(&project)).len(), 30);
    let one =
        project.command(&["affected", "HEAD", "--kernel", "k3", "--kernel", "k29", "--offline"]).output().unwrap();
    assert_eq!(one.status.code(), Some(4), "there is no k3");
    let some = project.command(&["affected", "HEAD", "--kernel", "k2*", "--format", "json", "--offline"]).output();
    let some: Value = serde_json::from_slice(&some.unwrap().stdout).unwrap();
    assert_eq!(names(&some).len(), 10);
}

#[test]
#[ignore = "second tier: many builds"]
fn builds_of_changes_name_only_what_changed() {
    let project = thirty();
    project.write("k11.cu", &source(11, "1 + 2 * x[i]"));
    let manifest = fs::read_to_string(project.root().join("kernel.toml")).unwrap();
    let kernel = &manifest[manifest.find("[kernel.k29]").unwrap()..];
    project.write("kernel.toml", &format!("{manifest}{}", kernel.replace("kernel.k29", "kernel.added")));
    let of = |built: &Built| {
        let kernels = built.finished().filter_map(|step| step["labels"]["kernel"].as_str().map(String::from));
        kernels.collect::<BTreeSet<_>>()
    };
    for goal in ["check", "verify", "build"] {
        let output =
            project.command(&[goal, "--changed-since", "HEAD", "--offline", "--message-format", "json"]).output();
        let built = Built::of(&output.unwrap()).expect(0);
        assert_eq!(of(&built), ids(&["added", "k11"]), "{goal}");
        assert!(built.finished().all(|step| !id(step).contains("k29")), "{goal}");
    }
    // A dry run says the same.
    project.write("k12.cu", &source(12, "1 + 2 * x[i]"));
    let output = project.command(&["build", "-n", "--changed-since", "HEAD", "--offline"]).output().unwrap();
    let planned = String::from_utf8(output.stdout).unwrap();
    assert!(planned.contains("thirty/k12/cpu/compile") && !planned.contains("k13"), "{planned}");
}

#[test]
fn kernels_of_one_name_in_two_packages_are_told_apart() {
    let project = Project::new().file("kernel.toml", "[workspace]\nmembers = [\"a\", \"b\"]\n");
    for package in ["a", "b"] {
        let mut manifest = HEAD.replace("\"thirty\"", &format!("\"{package}\""));
        for at in [7, 8] {
            manifest += &format!(
                "[kernel.k{at:02}]\noperator = \"twice\"\nsource = \"k{at:02}.cu\"\n\
                 launch = [{{ entry = \"k{at:02}\", grid = [\"1\"], block = [\"n\"], args = [\"x\", \"y\"] }}]\n"
            );
            project.write(&format!("{package}/k{at:02}.cu"), &source(at, "2 * x[i] + 1"));
        }
        project.write(&format!("{package}/kernel.toml"), &manifest);
    }
    git(&project, &["init", "--quiet"]);
    git(&project, &["add", "--all"]);
    git(&project, &["commit", "--quiet", "-m", "first"]);
    project.write("a/k07.cu", &source(7, "1 + 2 * x[i]"));
    project.write("b/k08.cu", &source(8, "1 + 2 * x[i]"));
    let built = project.built(&["--changed-since", "HEAD"]);
    let kernels = built.finished().filter(|step| step["labels"]["kernel"].is_string());
    let kernels: BTreeSet<String> =
        kernels.map(|step| id(step).split('/').take(2).collect::<Vec<_>>().join("/")).collect();
    assert_eq!(kernels, ids(&["a/k07", "b/k08"]));
}
