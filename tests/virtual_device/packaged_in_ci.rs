//! `kforge ci --artifacts`: what a change touches is packaged if nothing is wrong, and nothing of an earlier run remains if something is.

use std::fs;
use std::path::Path;

use kforge::release::signature::ARTIFACT_NAMESPACE;
use serde_json::{Value, json};

use crate::compared::{commit, git};
use crate::lab::{Lab, MANIFEST, SOURCE};
use crate::packaged::{committed, key, machine, run, without};

const ARCHIVE: &str = "target/kforge/ci/package/p-0.1.0.tar";

/// The document of the last run.
#[track_caller]
fn document(lab: &Lab) -> Value {
    let document: Value = serde_json::from_slice(&fs::read(lab.project.target().join("ci/ci.json")).unwrap()).unwrap();
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/ci.json");
    let schema = jsonschema::validator_for(&serde_json::from_slice(&fs::read(schema).unwrap()).unwrap()).unwrap();
    let wrong: Vec<String> = schema.iter_errors(&document).map(|e| e.to_string()).collect();
    assert!(wrong.is_empty(), "{document}: {wrong:?}");
    document
}

fn summary(lab: &Lab) -> String {
    fs::read_to_string(lab.project.target().join("ci/summary.md")).unwrap()
}

/// The packages of the artifacts of the last run.
#[track_caller]
fn packages(lab: &Lab) -> Vec<String> {
    let document = document(lab);
    let artifacts = document["artifacts"].as_array().unwrap_or_else(|| panic!("{document}"));
    artifacts.iter().map(|of| of["package"].as_str().unwrap().into()).collect()
}

#[test]
fn a_run_that_finds_nothing_wrong_packages_and_says_what() {
    let lab = committed();
    let said = run(&lab, &["ci", "--artifacts"], 0);
    assert!(said.contains("Packaged p 0.1.0 (1 kernel, ") && said.contains("not signed; `--sign-key KEY`"), "{said}");
    let found = document(&lab);
    let artifact = &found["artifacts"][0];
    let place = [&artifact["archive"], &artifact["folder"], &artifact["signed_by"], &artifact["claimed"]];
    assert_eq!(place, [&json!("package/p-0.1.0.tar"), &json!("package/p-0.1.0"), &Value::Null, &json!(false)]);
    assert_eq!((&found["conclusion"], &found["not_packaged"]), (&json!("done"), &json!([])));
    assert!(summary(&lab).contains("\n### Artifacts\n\n* `package/p-0.1.0.tar` (1 kernel, not signed), root `sha256:"));
    let archive = lab.project.root().join(ARCHIVE);
    run(&lab, &["verify-artifact", archive.to_str().unwrap(), "--allow-untrusted"], 0);
    // It is what `kforge package` makes.
    run(&lab, &["package"], 0);
    assert_eq!(fs::read(&archive).unwrap(), fs::read(lab.project.target().join("package/p-0.1.0.tar")).unwrap());
    let (private, trusted) = key(&lab, ARTIFACT_NAMESPACE);
    let said = run(&lab, &["ci", "--artifacts", "--sign-key", private.to_str().unwrap()], 0);
    assert!(said.contains("Signed with SHA256:"), "{said}");
    let words = ["verify-artifact", archive.to_str().unwrap(), "--trust", trusted.to_str().unwrap()];
    run(&lab, &words, 0);
    assert!(document(&lab)["artifacts"][0]["signed_by"].as_str().unwrap().starts_with("SHA256:"));
    assert!(summary(&lab).contains(", signed with `SHA256:"), "{}", summary(&lab));
    // A run that is not asked for artifacts has none.
    run(&lab, &["ci"], 0);
    assert_eq!((&document(&lab)["artifacts"], archive.exists()), (&Value::Null, false));
}

#[test]
#[ignore = "second tier: many builds"]
fn only_packages_that_the_change_touches_are_packaged_and_whole() {
    let lab = committed();
    let own = fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
    let second =
        own[own.find("[kernel.k]").unwrap()..own.find("[kernel.k.methods").unwrap()].replace("kernel.k", "kernel.l");
    for name in ["p", "q"] {
        let text = own.replace("name = \"p\"", &format!("name = \"{name}\""));
        let extra = if name == "q" { second.as_str() } else { "" };
        lab.project.write(&format!("{name}/kernel.toml"), &format!("{text}\n{extra}"));
        lab.project.write(&format!("{name}/k.cu"), &fs::read_to_string(lab.project.root().join("k.cu")).unwrap());
    }
    // A package without a kernel for a GPU cannot be packaged, and does not have to be.
    let host = MANIFEST.replace("name = \"p\"", "name = \"host\"").replace("[targets.h]\narch = \"sm_90a\"", "");
    let host = host
        .replace("[toolchain]\ncuda = { path = \"cuda\" }\n", "")
        .replace("targets = [\"h\"]", "targets = [\"cpu\"]");
    lab.project.write("host/kernel.toml", &host);
    let twice = "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 2 * x[i] + 1; }";
    lab.project.write("host/k.cu", &SOURCE.replace("{}", twice));
    lab.project.write("kernel.toml", "[workspace]\nmembers = [\"p\", \"q\", \"host\"]\n");
    commit(&lab, "three packages");
    run(&lab, &["ci", "--artifacts", "--workspace"], 0);
    assert_eq!(packages(&lab), ["p", "q"]);
    run(&lab, &["ci", "--artifacts", "--base", "HEAD"], 0);
    assert_eq!((packages(&lab).len(), lab.project.root().join(ARCHIVE).exists()), (0, false), "nothing is touched");
    // One kernel of two.
    let manifest = fs::read_to_string(lab.project.root().join("q/kernel.toml")).unwrap();
    let at = manifest.find("[kernel.l]").unwrap();
    let edited = manifest[at..].replace("block = [\"32\"]", "block = [\"64\"]");
    lab.project.write("q/kernel.toml", &format!("{}{edited}", &manifest[..at]));
    run(&lab, &["ci", "--artifacts", "--base", "HEAD", "--margin", "50%"], 0);
    assert_eq!((packages(&lab), &document(&lab)["artifacts"][0]["kernels"]), (vec!["q".to_string()], &json!(2)));
    assert_eq!(document(&lab)["affected"]["affected"].as_array().unwrap().len(), 1);
    git(&lab, &["checkout", "--quiet", "."]);
    lab.project.write("host/k.cu", &format!("// edited\n{}", SOURCE.replace("{}", twice)));
    let said = run(&lab, &["ci", "--artifacts", "--base", "HEAD"], 0);
    assert!(said.contains("nothing to package") && summary(&lab).contains("nothing to package"), "{said}");
}

#[test]
#[ignore = "second tier: many builds"]
fn what_is_wrong_or_refused_leaves_no_artifact_and_has_the_exit_code_of_package() {
    let lab = committed();
    let folder = lab.project.target().join("ci/package");
    run(&lab, &["ci", "--artifacts"], 0);
    fs::write(folder.join("notes.txt"), "mine").unwrap();
    let words = ["install", "--allow-untrusted", "--into", "target/kforge/ci/package", ARCHIVE];
    run(&lab, &words, 0);
    // A wrong kernel.
    let honest = fs::read_to_string(lab.project.root().join("k.cu")).unwrap();
    lab.project.write("k.cu", &format!("{honest}// wrong\n"));
    lab.project.edit("kernel.toml", "block = [\"32\"]", "block = [\"64\"]");
    lab.on(&machine().first("^k<", "ns = 1000.0\nerror = 1.0"));
    run(&lab, &["ci", "--artifacts"], 100);
    let mut left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["notes.txt", "p"], "what others put there, installed artifacts among them, stays");
    assert_eq!((&document(&lab)["artifacts"], &document(&lab)["conclusion"]), (&Value::Null, &json!("wrong")));
    let why = "the run ended before anything was packaged: a kernel is wrong";
    assert_eq!(document(&lab)["not_packaged"], json!([why]));
    assert!(summary(&lab).contains(&format!("\n### Not packaged\n\n* {why}\n")), "{}", summary(&lab));
    git(&lab, &["checkout", "--quiet", "."]);
    // No device was ever observed: nothing is wrong, and there is no evidence to package.
    let dark = lab.anew("dark");
    dark.on(&without());
    run(&dark, &["ci"], 0);
    let said = run(&dark, &["ci", "--artifacts"], 103);
    assert!(said.contains("nothing is packaged") && said.contains("its champion is provisional"), "{said}");
    let found = document(&dark);
    assert_eq!((&found["conclusion"], &found["exit"]), (&json!("not-packaged"), &json!(103)));
    assert!(found["not_packaged"][0].as_str().unwrap().starts_with("p/k/h: its champion is provisional"), "{found}");
    assert!(summary(&dark).contains("\n### Not packaged\n\n* p/k/h: "), "{}", summary(&dark));
    run(&dark, &["package"], 103);
    // No licence.
    lab.on(&machine());
    lab.project.edit("kernel.toml", "license = \"MIT\"", "");
    let said = run(&lab, &["ci", "--artifacts"], 101);
    assert!(said.contains("states no licence"), "{said}");
    assert_eq!(document(&lab)["exit"], 101);
    run(&lab, &["package"], 101);
    // Claims are packaged where they count, and the artifact says so.
    let lab = committed();
    run(&lab, &["evidence", "export"], 0);
    let claims = lab.anew("claims");
    claims.on(&without());
    run(&claims, &["ci", "--artifacts"], 103);
    let said = run(&claims, &["ci", "--artifacts", "--require-evidence=claimed"], 0);
    assert!(said.contains("some evidence of p is only claimed"), "{said}");
    assert_eq!(document(&claims)["artifacts"][0]["claimed"], true);
}

#[test]
fn a_key_that_cannot_be_used_is_said_before_anything_is_built() {
    let lab = committed();
    let said = run(&lab, &["ci", "--artifacts", "--sign-key", "nowhere"], 101);
    assert!(said.contains("nowhere") && !said.contains("Compiling"), "{said}");
    assert!(!lab.project.target().join("ci/ci.json").exists());
    run(&lab, &["ci", "--sign-key", "nowhere"], 2);
    for part in ["--kernel", "--operator", "--shape"] {
        run(&lab, &["ci", "--artifacts", part, "k"], 2);
    }
}
