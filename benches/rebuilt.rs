//! How often a compilation repeats: the share of the binaries in the examples' bundles that compiling here gives again, byte for byte, and the share that two
//! builds here give alike, with homes, workspaces, environments and numbers of processes that differ. The arguments are the examples (all three).
//!
//! The first run fetches CUDA into a home below the target folder, as the bench `compile` does. Nothing that was compiled before is used.
#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a bench prints its result, and stops where it cannot be set up"
)]
#![expect(clippy::disallowed_methods, reason = "a bench is told by its environment where its home is")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use kforge::record::StepKind;
use kforge::release::archive;
use serde_json::Value;

const EXAMPLES: [&str; 3] = ["quickstart", "kernels", "generated"];

/// The binary of each compilation, by the names of its steps.
type Binaries = BTreeMap<String, String>;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let chosen: Vec<&str> =
        EXAMPLES.into_iter().filter(|name| words.is_empty() || words.iter().any(|w| w == name)).collect();
    let fetched = std::env::var_os("KFORGE_BENCH_HOME")
        .map_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-home"), PathBuf::from);
    let dir = tempfile::tempdir().expect("a temporary folder");
    let short = Place { root: dir.path().join("w"), home: dir.path().join("h"), jobs: "-j1", vars: &[] };
    let long = Place {
        root: dir.path().join("a/workspace/whose/path/is/much/longer/than/the/other"),
        home: dir.path().join("a/home/whose/path/is/longer/too"),
        jobs: "-j2",
        vars: &[("LC_ALL", "C.UTF-8"), ("TZ", "Asia/Kolkata"), ("SOME_OTHER_VARIABLE", "with a value")],
    };
    let [mut brought, mut equal, mut lacking, mut made, mut alike] = [0; 5];
    for name in chosen {
        let bundle = of_bundle(name);
        let (here, there) = (short.compile(name, &fetched), long.compile(name, &fetched));
        let again = bundle.iter().filter(|(_, digest, steps)| steps.iter().any(|step| here.get(step) == Some(digest)));
        let unasked = bundle.iter().filter(|(.., steps)| steps.iter().all(|step| !here.contains_key(step)));
        let same: BTreeSet<&String> =
            here.iter().filter(|(step, digest)| there.get(*step) == Some(digest)).map(|(step, _)| step).collect();
        let (again, unasked) = (again.count(), unasked.count());
        println!(
            "{name}: {again} of {} binaries of the bundle compiled again ({unasked} not compiled); {} of {} alike in two places",
            bundle.len(),
            same.len(),
            here.len()
        );
        for (step, ..) in
            bundle.iter().filter(|(_, digest, steps)| !steps.iter().any(|step| here.get(step) == Some(digest)))
        {
            println!("  unlike the bundle's: {step}");
        }
        for step in here.keys().filter(|step| !same.contains(step)) {
            println!("  unlike in two places: {step}");
        }
        brought += bundle.len();
        equal += again;
        lacking += unasked;
        made += here.len();
        alike += same.len();
    }
    let percent = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
    println!("equal to the bundles': {equal} of {brought}, {:.1} % ({lacking} not compiled)", percent(equal, brought));
    println!("alike in two places: {alike} of {made}, {:.1} %", percent(alike, made));
}

/// The compilations of an example's bundle: the first of their steps, the binary, all of their steps.
fn of_bundle(name: &str) -> Vec<(String, String, Vec<String>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name).join("evidence/h200.kfe");
    let bundle = archive::read(&path).expect("a bundle");
    let compilations = bundle.questions.into_iter().filter(|question| question.spec.kind == StepKind::Compile);
    compilations
        .map(|question| {
            let steps: Vec<String> = question.steps.into_iter().map(|step| step.id).collect();
            let digest = question.records[0].result.outputs["binary"].to_string();
            (steps[0].clone(), digest, steps)
        })
        .collect()
}

/// Where examples are built, and how.
struct Place {
    root: PathBuf,
    home: PathBuf,
    jobs: &'static str,
    vars: &'static [(&'static str, &'static str)],
}

impl Place {
    /// Builds a copy of an example, in which its bundle is only claimed: everything that the bundle is about is compiled.
    fn compile(&self, name: &str, fetched: &Path) -> Binaries {
        let root = self.root.join(name);
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name), &root);
        self.kforge(&root, fetched, &["fetch"]);
        std::fs::create_dir_all(&self.home).expect("a home");
        let toolchains = self.home.join("toolchains");
        if !toolchains.exists() {
            std::os::unix::fs::symlink(fetched.join("toolchains"), toolchains).expect("a link");
        }
        let words = ["build", "--target", "h200", "--keep-going", "--message-format", "json", self.jobs];
        let said = self.kforge(&root, &self.home, &words);
        let finished = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let compiled = finished.filter(|event| event["reason"] == "step-finished" && event["kind"] == "compile");
        compiled
            .filter_map(|event| Some((event["id"].as_str()?.to_string(), self.binary(event["key"].as_str()?)?)))
            .collect()
    }

    /// The binary that a compilation with this key gave.
    fn binary(&self, key: &str) -> Option<String> {
        let hex = key.split(':').nth(1)?;
        let text = std::fs::read_to_string(self.home.join("actions").join(&hex[..2]).join(hex)).ok()?;
        let result: Value = serde_json::from_str(&text).ok()?;
        Some(result["body"]["result"]["outputs"]["binary"].as_str()?.to_string())
    }

    fn kforge(&self, root: &Path, home: &Path, words: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kforge"));
        command.args(words).current_dir(root).env("KFORGE_HOME", home).envs(self.vars.iter().copied());
        let done = command.output().expect("kforge runs");
        let failed = done.status.code().is_none_or(|code| code != 0 && code != 103);
        assert!(!failed, "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).into_owned()
    }
}

fn copy(from: &Path, to: &Path) {
    let inside = |e: &walkdir::DirEntry| e.file_name() != "target";
    for entry in walkdir::WalkDir::new(from).into_iter().filter_entry(inside).flatten() {
        let to = to.join(entry.path().strip_prefix(from).expect("a path below it"));
        match entry.file_type().is_dir() {
            true => std::fs::create_dir_all(to).expect("a folder"),
            false => drop(std::fs::copy(entry.path(), to).expect("a copy")),
        }
    }
}
