//! The job with a GPU and the release job of the workflow that `kforge new --ci github` writes: their commands are executed in order in a fresh clone, as GitHub's
//! runner would.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use kforge::release::signature::ARTIFACT_NAMESPACE;

use crate::lab::{Lab, Machine};
use crate::packaged::{built, key, machine, run};
use crate::server::{Login, Server};
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
#[ignore = "second tier: many builds"]
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
#[ignore = "second tier: many builds"]
fn without_a_key_the_job_says_that_its_bundle_is_only_claimed() {
    let lab = Lab::new(&Machine::with(&[(1, 1000.0), (2, 1400.0), (4, 1500.0)]));
    let runner = runner(&lab, "");
    let printed = job(&runner);
    assert!(printed.starts_with("::warning::") && printed.contains("only claimed"), "{printed}");
    let bundle = text(&lab.project.place().join("clone/target/kforge/evidence/h.kfe"));
    let verified = lab.project.command(&["evidence", "verify", &bundle]).output().unwrap();
    assert_eq!(verified.status.code(), Some(103), "{}", said(&verified));
}

/// A repository with signed evidence, a runner without a device that checked out a tag of it, and a registry that demands a login.
struct Release {
    lab: Lab,
    runner: Runner,
    server: Server,
    /// The list of keys that a reader trusts.
    trusted: String,
}

/// The folder for temporary files of the runner.
fn left(release: &Release) -> usize {
    fs::read_dir(release.lab.project.place().join("tmp")).unwrap().count()
}

impl Release {
    fn of(tag: &str) -> Self {
        let observed = built();
        let (evidence, _) = key(&observed, "kforge-evidence");
        run(&observed, &["evidence", "export"], 0);
        run(&observed, &["evidence", "sign", "evidence/virtual-h.kfe", "--key", &text(&evidence)], 0);
        run(&observed, &["evidence", "trust", "--add", "gpu@x", &text(&evidence.with_extension("pub"))], 0);
        let (private, trusted) = key(&observed, ARTIFACT_NAMESPACE);
        let lab = observed.anew("released");
        lab.on(&Machine { device: None, ..machine() });
        let mut runner = runner(&lab, "");
        let server = Server::new();
        // As `base64` writes `Me:s3cret`.
        server.state().login = Login::Basic("Basic TWU6czNjcmV0".into());
        let file = runner.checkout.join(GITHUB);
        let workflow = fs::read_to_string(&file).unwrap();
        assert_eq!(workflow.matches("REGISTRY: ghcr.io\n").count(), 1);
        let workflow = workflow.replace("REGISTRY: ghcr.io\n", &format!("REGISTRY: '{}'\n", server.address));
        fs::write(file, workflow).unwrap();
        runner.machine.retain(|(name, _)| name != "KFORGE_NET_OFFLINE");
        runner.machine.extend([("GITHUB_ACTOR", "Me"), ("GITHUB_REPOSITORY", "Team/Kernels")].map(pair));
        let secret = fs::read_to_string(private).unwrap().trim_end().to_string();
        runner.values.extend(values(&[
            ("github.ref_name", tag),
            ("github.token", "s3cret"),
            ("secrets.KFORGE_RELEASE_KEY", &secret),
        ]));
        Release { lab, runner, server, trusted: text(&trusted) }
    }

    /// Executes the job until a step fails. Returns the names of the steps with commands, and what all of them printed.
    fn job(&self) -> (Vec<String>, Option<i32>, String) {
        let workflow = yaml(&fs::read_to_string(self.runner.checkout.join(GITHUB)).unwrap());
        let release = &workflow["jobs"]["release"];
        let (mut names, mut printed) = (vec![], String::new());
        for step in release["steps"].as_array().unwrap() {
            let Some(output) = self.runner.run(step, &[&workflow, release], ".") else { continue };
            names.push(step["name"].as_str().unwrap().to_string());
            printed += &said(&output);
            if !output.status.success() {
                return (names, output.status.code(), printed);
            }
        }
        (names, Some(0), printed)
    }

    fn tags(&self) -> Vec<String> {
        self.server.state().tags.keys().cloned().collect()
    }
}

fn pair((name, value): (&str, &str)) -> (String, String) {
    (name.into(), value.into())
}

#[test]
#[ignore = "second tier: many builds"]
fn the_release_job_signs_what_the_tag_names_and_publishes_it() {
    for tag in ["v0.1.0", "p-v0.1.0"] {
        let release = Release::of(tag);
        let (names, code, said) = release.job();
        assert_eq!(code, Some(0), "{said}");
        let expected = [
            "Install kforge",
            "Check the kernels and package them",
            "Show the results",
            "Sign the artifacts",
            "Publish the artifacts",
        ];
        assert_eq!(names, expected);
        assert!(said.contains("Signed with SHA256:") && said.contains("Published p 0.1.0 as `0.1.0`"), "{said}");
        assert!(!said.contains("s3cret") && !said.contains("TWU6czNjcmV0") && !said.contains("PRIVATE KEY"), "{said}");
        // Signing executes no step, so no compiler and no kernel runs beside the key.
        let signed = &said[said.rfind("Packaged p").unwrap()..];
        assert!(signed.contains(" 0 executed"), "{said}");
        assert!(release.tags().contains(&"0.1.0".into()), "{:?}", release.tags());
        let summary = fs::read_to_string(release.lab.project.place().join("summary")).unwrap();
        assert!(summary.contains("### Artifacts"), "{summary}");
        // Neither the key nor the login is left.
        assert_eq!(left(&release), 0);
        // Somebody who trusts the key installs it.
        release.server.state().login = Login::Nothing;
        let reader = release.lab.anew("reader");
        let source = release.server.repository("team/kernels/p:0.1.0");
        let words = ["install", &source, "--trust", &release.trusted];
        let output = reader.project.command(&words).output().unwrap();
        assert!(output.status.success(), "{}", crate::workflow_file::said(&output));
    }
}

#[test]
#[ignore = "second tier: many builds"]
fn a_release_without_evidence_key_or_version_publishes_nothing() {
    let stopped = |release: &Release, at: &str, code: i32, says: &str| {
        let (names, found, said) = release.job();
        assert_eq!((names.last().unwrap().as_str(), found), (at, Some(code)), "{said}");
        assert!(said.contains(says), "{said}");
        assert_eq!((release.tags(), left(release)), (vec![], 0));
    };
    let check = "Check the kernels and package them";
    stopped(&Release::of("v0.2.0"), check, 1, "names version 0.2.0, and p-0.1.0.tar is of another");
    stopped(&Release::of("other-v0.1.0"), check, 4, "other");
    let mut unsigned = Release::of("v0.1.0");
    unsigned.runner.values.extend(values(&[("secrets.KFORGE_RELEASE_KEY", "")]));
    stopped(&unsigned, "Sign the artifacts", 1, "has no secret KFORGE_RELEASE_KEY");
    let dark = Release::of("v0.1.0");
    fs::remove_file(dark.runner.checkout.join("evidence/virtual-h.kfe")).unwrap();
    stopped(&dark, check, 103, "its champion is provisional");
    let wrong = Release::of("v0.1.0");
    fs::remove_file(wrong.runner.checkout.join(".kforge/allowed_signers")).unwrap();
    stopped(&wrong, check, 103, "only claimed by `evidence/virtual-h.kfe`");
}
