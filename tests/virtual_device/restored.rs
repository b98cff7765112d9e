//! A cache that a CI job restores, whose results and records are well-formed and wrong: it says that a wrong kernel passes, or that the binary of a correct source
//! came from a wrong one. A plain build takes it. Whatever requires evidence computes it again, or is left without an answer: `build`, `ci` and `package`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use kforge::base::Digest;
use kforge::engine::action::Body;
use serde_json::{Value, json};

use crate::lab::{Lab, Machine, copy, steps};
use crate::packaged::{committed, machine, run, without};
use crate::project::Built;
use crate::standing::{EVIL, key, verdicts};

/// A workspace whose last commit is honest and whose working tree has a wrong kernel, with a home that says that the kernel passes. The machine that wrote the
/// home has another key.
struct Restored {
    lab: Lab,
    /// What the wrong kernel really compiles to: key and result, by step.
    compiled: BTreeMap<String, (Value, Value)>,
}

impl Restored {
    /// The home holds results and records of the wrong kernel itself, made on a device that says that everything is correct.
    fn records() -> Self {
        let lab = committed();
        lab.project.write("k.cu", EVIL);
        let compiled = compilations(&lab.built(&[]));
        Restored::of(lab, compiled)
    }

    /// The home holds results and records of the honest kernel, and says that the wrong kernel compiles to its binaries.
    fn binaries() -> Self {
        let lab = committed();
        let honest = compilations(&lab.built(&[]));
        lab.project.write("k.cu", EVIL);
        lab.on(&wrong());
        let built = lab.project.build(&["--keep-going"]).expect(100);
        let compiled = compilations(&built);
        for (step, (key, _)) in &compiled {
            swap(&lab, key, &honest[step].0);
        }
        Restored::of(lab, compiled)
    }

    fn of(lab: Lab, compiled: BTreeMap<String, (Value, Value)>) -> Self {
        assert!(compiled.len() >= 2, "{compiled:?}");
        // A job restores the home. The outputs of the workspace and the key of the machine stay behind.
        fs::remove_dir_all(lab.project.root().join("target")).unwrap();
        fs::remove_file(key(&lab)).unwrap();
        Restored { lab, compiled }
    }

    /// A job on a machine of its own that restores the home.
    fn job(&self, name: &str, machine: &Machine) -> Lab {
        let job = self.lab.anew(name);
        copy(self.lab.project.home(), job.project.home());
        let _ = fs::remove_file(key(&job));
        job.on(machine);
        job
    }

    /// Checks that the sources were compiled again, each to its own binary.
    #[track_caller]
    fn compiled_again(&self, built: &Built) {
        let ran = steps(built, "compile", "executed");
        assert!(self.compiled.keys().all(|step| ran.contains(step)), "{ran:?}");
        let found = compilations(built);
        assert!(self.compiled.iter().all(|(step, of)| found[step] == *of), "{found:?}");
    }
}

/// A machine on which every kernel is wrong.
fn wrong() -> Machine {
    machine().first("^k<", "ns = 1000.0\nerror = 1.0")
}

/// The keys and results of the compilations for the device, by step.
fn compilations(built: &Built) -> BTreeMap<String, (Value, Value)> {
    built.keys().into_iter().filter(|(step, _)| step.ends_with("/h/compile")).collect()
}

/// The file and the fields of the entry of a key, `blake3:HEX:BYTES`.
fn entry(lab: &Lab, key: &Value) -> (PathBuf, Value) {
    let hex = key.as_str().unwrap().split(':').nth(1).unwrap();
    let path = lab.project.home().join("actions").join(&hex[..2]).join(hex);
    let fields =
        serde_json::from_slice(&fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))).unwrap();
    (path, fields)
}

/// Says of a key what another one gave. The entry keeps its tag, and its check is that of what it says now.
fn swap(lab: &Lab, key: &Value, with: &Value) {
    let (path, mut fields) = entry(lab, key);
    let mut body: Body = serde_json::from_value(fields["body"].take()).unwrap();
    let other: Body = serde_json::from_value(entry(lab, with).1["body"].take()).unwrap();
    assert_ne!(body.result.outputs, other.result.outputs);
    body.result = other.result;
    // The check is of the fields in their own order, which a value does not keep.
    let text = serde_json::to_string(&body).unwrap();
    let head = json!({ "version": fields["version"], "check": Digest::of(text.as_bytes()), "tag": fields["tag"] });
    fs::write(path, format!("{},\"body\":{text}}}", head.to_string().strip_suffix('}').unwrap())).unwrap();
}

/// What `kforge ci` concluded.
fn conclusion(lab: &Lab) -> Value {
    let document = fs::read(lab.project.target().join("ci/ci.json")).unwrap();
    serde_json::from_slice::<Value>(&document).unwrap()["conclusion"].clone()
}

#[track_caller]
fn packaged_nothing(lab: &Lab) {
    assert!(!lab.project.target().join("package").exists());
}

/// Checks that nothing that requires evidence believes the home.
#[track_caller]
fn refused(restored: &Restored, because: &str) {
    // The cache is well-formed: whoever does not ask for evidence takes it, and the wrong kernel passes.
    let plain = restored.job("plain", &without()).built(&[]);
    assert_eq!((steps(&plain, "compile", "executed").len(), verdicts(&plain)[1..] == [0, 0]), (0, true));
    // Where the device is not, the kernel is compiled again and nothing else is known of it.
    let job = restored.job("dark", &without());
    let built = job.project.build(&["--require-evidence"]).expect(103);
    restored.compiled_again(&built);
    assert_eq!(verdicts(&built)[0], 0, "{}", built.stderr());
    assert!(built.stderr().contains(because), "{}", built.stderr());
    for words in [&["ci"][..], &["ci", "--base", "HEAD"]] {
        let job = restored.job(&format!("dark-ci-{}", words.len()), &without());
        let said = run(&job, words, 103);
        assert!(said.contains(because), "{said}");
        assert_eq!(conclusion(&job), "no-evidence");
    }
    let job = restored.job("dark-package", &without());
    run(&job, &["build"], 0);
    run(&job, &["package"], 103);
    packaged_nothing(&job);
    // Where the device is, it observes the kernel itself.
    let job = restored.job("device", &wrong());
    run(&job, &["build"], 0);
    let built = job.project.build(&["--require-evidence", "--keep-going"]).expect(100);
    restored.compiled_again(&built);
    assert!(!steps(&built, "verify", "executed").is_empty());
    assert_eq!(verdicts(&built)[0], 0, "{}", built.stderr());
    for words in [&["ci"][..], &["ci", "--base", "HEAD"]] {
        let job = restored.job(&format!("device-ci-{}", words.len()), &wrong());
        run(&job, words, 100);
        assert_eq!(conclusion(&job), "wrong");
    }
    let job = restored.job("device-package", &wrong());
    let said = run(&job, &["package"], 100);
    assert!(said.contains("is wrong"), "{said}");
    packaged_nothing(&job);
}

#[test]
fn restored_records_that_say_that_a_wrong_kernel_passes_count_for_nothing() {
    refused(&Restored::records(), "claimed by a record in the home that this machine did not make");
}

#[test]
#[ignore = "second tier: compiles for the emulator"]
fn a_restored_binary_that_came_from_another_source_is_compiled_again() {
    refused(&Restored::binaries(), "p/k/V=4/h/tiny/");
}
