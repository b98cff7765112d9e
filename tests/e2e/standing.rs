//! Results that another machine stored: a restored cache, a tampered entry, a restored certificate. A plain build takes them; one that requires evidence
//! computes them again.

use std::fs;
use std::path::{Path, PathBuf};

use kforge::base::Digest;
use kforge::engine::action::Body;
use kforge::record::Verdict;
use serde::{Deserialize, Serialize};

use crate::project::{Built, Project};
use crate::sample::one_kernel;

const RIGHT: &str =
    "__global__ void k(const float *x, float *y, int n) { int i = threadIdx.x; if (i < n) y[i] = 2 * x[i] + 1; }\n";
const WRONG: &str =
    "__global__ void k(const float *x, float *y, int n) { int i = threadIdx.x; if (i < n) y[i] = 2 * x[i]; }\n";

/// The file with the machine's key.
fn key(project: &Project) -> PathBuf {
    project.place().join("user/.local/state/kforge/machine-key")
}

/// The number of executed steps of a kind.
fn ran(built: &Built, kind: &str) -> usize {
    built.executed_kinds().get(kind).copied().unwrap_or(0)
}

/// An entry of the action cache, without its tag.
#[derive(Serialize, Deserialize)]
struct Entry {
    version: u32,
    check: Digest,
    body: Body,
}

#[test]
fn a_home_that_comes_without_the_key_of_its_machine_is_computed_again() {
    let project = one_kernel(RIGHT).copied_program();
    let first = project.built(&[]);
    assert_eq!(project.built(&["--require-evidence"]).count("executed"), 0, "this machine computed all of it");
    // Builds at some distance from the last change are certified; a certificate answers in the human form only.
    let finished = || {
        let output = project.command(&["build", "--offline", "--require-evidence"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for _ in 0..2 {
        project.age();
        finished();
    }
    assert!(project.target().join("certificate").exists());
    assert!(finished().contains(" 0 executed"), "{}", finished());
    // A job restores home, outputs and certificate, but has a key of its own.
    fs::remove_file(key(&project)).unwrap();
    let said = finished();
    assert!(!said.contains(" 0 executed"), "a certificate of another machine answers nothing: {said}");
    fs::remove_file(key(&project)).unwrap();
    let plain = project.built(&[]);
    assert_eq!((plain.count("executed"), plain.keys()), (0, first.keys()));
    let strict = project.built(&["--require-evidence"]);
    for kind in ["compile", "oracle", "verify", "judge"] {
        assert_eq!(ran(&strict, kind), ran(&first, kind), "{kind}");
    }
    assert_eq!(strict.keys(), first.keys());
    assert_eq!(project.built(&["--require-evidence"]).count("executed"), 0, "now it is of this machine");
    // The same without the outputs of the workspace: only the home is restored.
    let clone = project.cloned("clone");
    assert_eq!(clone.built(&["--require-evidence"]).count("executed"), 0);
    fs::remove_file(key(&project)).unwrap();
    assert_eq!(ran(&project.cloned("another").built(&["--require-evidence"]), "verify"), ran(&first, "verify"));
}

#[test]
fn a_tampered_result_decides_no_build_that_requires_evidence() {
    let project = one_kernel(WRONG);
    project.build(&["--keep-going"]).expect(100);
    let mut tampered = 0;
    for file in walkdir::WalkDir::new(project.home().join("actions")).into_iter().map(Result::unwrap) {
        if !file.file_type().is_file() {
            continue;
        }
        let mut entry: Entry = serde_json::from_slice(&fs::read(file.path()).unwrap()).unwrap();
        if matches!(entry.body.result.verdict, Some(Verdict::Fail(_))) {
            entry.body.result.verdict = Some(Verdict::Pass);
            entry.check = Digest::of(&serde_json::to_vec(&entry.body).unwrap());
            // Whoever tampers may keep the tag that was there.
            let text = fs::read_to_string(file.path()).unwrap();
            let whole: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert!(whole["tag"].is_string(), "{text}");
            let tail = format!(",\"tag\":{}}}", whole["tag"]);
            let body = serde_json::to_string(&entry).unwrap();
            fs::write(file.path(), format!("{}{tail}", body.strip_suffix('}').unwrap())).unwrap();
            tampered += 1;
        }
    }
    assert!(tampered > 0);
    // Another workspace with this home has no journal of its own.
    let other = project.cloned("other");
    other.build(&[]).expect(0);
    let strict = other.build(&["--require-evidence", "--keep-going"]).expect(100);
    assert!(
        ran(&strict, "judge") > 0 && ran(&strict, "compile") == 0,
        "only what was changed runs: {:?}",
        strict.executed()
    );
    // Neither does `kforge ci` believe it.
    let ci = project.cloned("ci").command(&["ci", "--offline"]).output().unwrap();
    assert_eq!(ci.status.code(), Some(100), "{}", String::from_utf8_lossy(&ci.stderr));
}

#[test]
fn a_machine_that_cannot_compile_does_not_take_a_binary_on_trust() {
    // The lockfile names the compilers, and the home has none of them.
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/quickstart");
    let project = Project::new();
    for name in ["kernel.toml", "kforge.lock", "rms_norm.cu"] {
        project.write(name, &fs::read_to_string(example.join(name)).unwrap());
    }
    let checked = || {
        let words = ["check", "--offline", "--target", "h200", "--message-format", "json"];
        Built::of(&project.command(&words).output().unwrap())
    };
    let why = |built: &Built| -> Vec<String> {
        let compiled = built.finished().filter(|s| s["kind"] == "compile");
        compiled.map(|s| s["outcome"]["unavailable"].as_str().unwrap_or_else(|| panic!("{s}")).to_string()).collect()
    };
    let without = why(&checked());
    assert!(!without.is_empty() && without.iter().all(|why| !why.contains("claimed")), "{without:?}");
    fs::create_dir(project.root().join("evidence")).unwrap();
    fs::copy(example.join("evidence/h200.kfe"), project.root().join("evidence/h200.kfe")).unwrap();
    let with = why(&checked());
    let said = "and the binary from `evidence/h200.kfe` is only claimed: it needs the signature of a key";
    assert!(with.len() == without.len() && with.iter().all(|why| why.contains(said)), "{with:?}");
}
