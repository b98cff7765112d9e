//! The job with a GPU of the workflow that `kforge new --ci github` writes: its commands are executed in order in a fresh clone, as GitHub's runner would.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::lab::{Lab, Machine};
use crate::workflow_file::{Runner, git, said, values, yaml};

const GITHUB: &str = ".github/workflows/kforge.yml";

/// A repository with the lab's package and its workflow, and a runner that checked out a clone of it, which holds this secret.
fn runner(lab: &Lab, secret: &str) -> Runner {
    let (root, place) = (lab.project.root(), lab.project.place());
    // The toolchain of a lab is a part of its tree. A package that exists gets its workflow from a new one.
    fs::create_dir_all(place.join("new/.git")).unwrap();
    let made = lab.project.command(&["-C", &text(&place.join("new")), "init", "--ci", "github"]);
    let made = { made }.stdin(Stdio::null()).output().unwrap();
    assert!(made.status.success(), "{}", said(&made));
    lab.project.write(GITHUB, &fs::read_to_string(place.join("new").join(GITHUB)).unwrap());
    lab.project.write(".gitignore", "/target/\n");
    git(root, &["init", "--quiet"]);
    git(root, &["add", "--all"]);
    git(root, &["commit", "--quiet", "-m", "first"]);
    git(place, &["clone", "--quiet", &text(root), "clone"]);
    let command = lab.project.command(&[]);
    let vars = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let mut machine: Vec<_> = vars.map(|(n, v)| (n.display().to_string(), v.display().to_string())).collect();
    for (_, path) in machine.iter_mut().filter(|(name, _)| name == "PATH") {
        *path = format!("{}:{path}", lab.project.program().parent().unwrap().display());
    }
    fs::create_dir_all(place.join("tmp")).unwrap();
    machine.extend([
        ("KFORGE_NET_OFFLINE".into(), "true".into()),
        ("GITHUB_STEP_SUMMARY".into(), text(&place.join("summary"))),
        ("TMPDIR".into(), text(&place.join("tmp"))),
    ]);
    let values = values(&[
        ("vars.KFORGE_SOURCE", ""),
        ("vars.KFORGE_GPU_TARGET", "h"),
        ("github.event_name", "push"),
        ("github.event.pull_request.base.sha", ""),
        ("github.event.before", "0000000000000000000000000000000000000000"),
        ("steps.ci.outcome", "success"),
        ("secrets.KFORGE_SIGNING_KEY", secret),
    ]);
    Runner { checkout: place.join("clone"), machine, values }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Executes the job, and returns what its last commands printed.
fn job(runner: &Runner) -> String {
    let workflow = yaml(&fs::read_to_string(runner.checkout.join(GITHUB)).unwrap());
    let gpu = &workflow["jobs"]["gpu"];
    let mut printed = vec![];
    for step in gpu["steps"].as_array().unwrap() {
        if let Some(output) = runner.run(step, &[&workflow, gpu], ".") {
            assert!(output.status.success(), "{}: {}", step["name"], said(&output));
            printed.push(said(&output));
        }
    }
    assert_eq!(printed.len(), 5, "install, observe, show, export, sign: {printed:?}");
    printed.pop().unwrap()
}

#[test]
fn the_job_with_a_gpu_exports_and_signs_what_it_observed() {
    let lab = Lab::new(&Machine::with(&[(1, 1000.0), (2, 1400.0), (4, 1500.0)]));
    let place = lab.project.place();
    let key = place.join("key");
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key).output();
    let Ok(made) = made else { return kforge::base::testing::skipped("no ssh-keygen on PATH") };
    assert!(made.status.success(), "{}", said(&made));
    let read = |path: &Path| fs::read_to_string(path).unwrap().trim_end().to_string();
    // GitHub keeps a secret without the newline at its end.
    job(&runner(&lab, &read(&key)));
    fs::write(place.join("keys"), format!("runner@x {}\n", read(&key.with_extension("pub")))).unwrap();
    let (bundle, keys) = (text(&place.join("clone/target/kforge/evidence/h.kfe")), text(&place.join("keys")));
    let verified = lab.project.command(&["evidence", "verify", &bundle, "--trust", &keys]).output().unwrap();
    assert!(verified.status.success() && said(&verified).contains("runner@x"), "{}", said(&verified));
    // The key is gone.
    assert_eq!(fs::read_dir(place.join("tmp")).unwrap().count(), 0);
}

#[test]
fn without_a_key_the_job_says_that_its_bundle_is_only_claimed() {
    let lab = Lab::new(&Machine::with(&[(1, 1000.0), (2, 1400.0), (4, 1500.0)]));
    let runner = runner(&lab, "");
    let printed = job(&runner);
    assert!(printed.starts_with("::warning::") && printed.contains("only claimed"), "{printed}");
    let bundle = text(&lab.project.place().join("clone/target/kforge/evidence/h.kfe"));
    let verified = lab.project.command(&["evidence", "verify", &bundle]).output().unwrap();
    assert_eq!(verified.status.code(), Some(103), "{}", said(&verified));
}
