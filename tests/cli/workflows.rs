//! Workflows that `kforge new --ci` writes: where they go, that they overwrite nothing, and what their jobs may do. The commands of the job without a GPU are
//! executed in order in a fresh clone, as GitHub's runner would, and so are those of the action; `tests/virtual_device` executes those of the job with one.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::place::{MANIFEST, Place, SOURCE};
use crate::workflow_file::{Runner, Values, filled, git, holds, said, values, yaml};

const GITHUB: &str = ".github/workflows/kforge.yml";
const GITLAB: &str = ".gitlab-ci.yml";

/// An empty repository.
fn repository() -> Place {
    let place = Place::empty();
    git(&place.at(""), &["init", "--quiet"]);
    place
}

#[test]
fn a_workflow_goes_to_the_root_of_the_repository() {
    let place = repository();
    place.run("new sums --ci github").expect(0).says("Created workflow `.github/workflows/kforge.yml`");
    assert!(!place.at("sums/.github").exists());
    let workflow = yaml(&place.read(GITHUB));
    assert_eq!(workflow["defaults"]["run"]["working-directory"], "sums");
    assert_eq!(workflow["env"]["KFORGE_VERSION"], env!("CARGO_PKG_VERSION"));
    place.run("-C sums new ../more --ci gitlab").expect(0).says("Created workflow ");
    assert!(place.read(GITLAB).contains("PACKAGE_DIR: 'more'"));
    // A package's folder is the root where no repository encloses it, and a workspace is built where its manifest is.
    let place = repository();
    place.run("init --name sums --ci github").expect(0);
    assert_eq!(yaml(&place.read(GITHUB))["defaults"]["run"]["working-directory"], ".");
    let place = repository().file("kernels/kernel.toml", "[workspace]\nmembers = [\"a\"]\n");
    place.run("new kernels/a --ci github").expect(0);
    assert_eq!(yaml(&place.read(GITHUB))["defaults"]["run"]["working-directory"], "kernels");
    place.run("new x --ci jenkins").expect(2).says("github").says("gitlab");
}

#[test]
fn a_package_that_exists_gets_a_workflow_and_nothing_else() {
    let place = repository().file("kernels/kernel.toml", "[workspace]\nmembers = [\"a\"]\n");
    place.run("new kernels/a").expect(0);
    let manifest = place.read("kernels/a/kernel.toml");
    let said = place.run("-C kernels/a init --ci github").expect(0).says("Created workflow ");
    assert!(!said.err.contains("package"), "{}", said.err);
    assert_eq!(yaml(&place.read(GITHUB))["defaults"]["run"]["working-directory"], "kernels");
    assert_eq!(place.read("kernels/a/kernel.toml"), manifest);
    place.run("-C kernels/a init --ci github").expect(101).says("kforge does not overwrite it");
    place.run("-C kernels/a init").expect(101).says("already exists");
    place.run("-C kernels/a init --name other --ci gitlab").expect(101).says("already exists");
    assert!(!place.at(GITLAB).exists());
}

#[test]
fn a_workflow_that_is_there_stays_and_nothing_is_half_written() {
    let place = repository().file(GITHUB, "mine").file(GITLAB, "mine");
    for service in ["github", "gitlab"] {
        place.run(&format!("new sums --ci {service}")).expect(101).says("kforge does not overwrite it");
        assert!(!place.at("sums").exists());
        place.run(&format!("init --name sums --ci {service}")).expect(101).says("kforge does not overwrite it");
        assert!(!place.at("kernel.toml").exists());
    }
    assert_eq!((place.read(GITHUB), place.read(GITLAB)), ("mine".into(), "mine".into()));
}

/// The workflow of a new package.
fn github() -> Value {
    let place = repository();
    place.run("new k --ci github").expect(0);
    yaml(&place.read(GITHUB))
}

/// Every value in a document, with the keys of tables.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(all) => all.iter().flat_map(texts).collect(),
        Value::Object(all) => all.iter().flat_map(|(key, value)| [vec![key.clone()], texts(value)].concat()).collect(),
        _ => vec![],
    }
}

fn steps(job: &Value) -> &[Value] {
    job["steps"].as_array().unwrap()
}

#[test]
fn a_job_without_a_gpu_holds_no_secret_and_actions_are_pinned() {
    let workflow = github();
    let read = json!({ "contents": "read" });
    assert_eq!(workflow["permissions"], read);
    let jobs = workflow["jobs"].as_object().unwrap();
    let (cpu, gpu, release) = (&jobs["cpu"], &jobs["gpu"], &jobs["release"]);
    for (name, job) in jobs {
        let writes = (name == "release").then(|| json!({ "contents": "read", "packages": "write" }));
        assert_eq!(job.get("permissions"), writes.as_ref(), "{name}");
    }
    assert!(!texts(cpu).iter().any(|text| text.contains("secrets.") || text == "environment"));
    // The key is where it is used, and nowhere else.
    let that_name = |job: &Value, part: &str| -> Vec<String> {
        let steps = steps(job).iter().filter(|step| texts(step).iter().any(|text| text.contains(part)));
        steps.map(|step| step["name"].as_str().unwrap().into()).collect()
    };
    assert_eq!(that_name(gpu, "secrets."), ["Sign the evidence"]);
    assert_eq!(that_name(release, "secrets."), ["Sign the artifacts"]);
    assert_eq!(that_name(release, "github.token"), ["Publish the artifacts"]);
    assert!([cpu, gpu].iter().all(|job| that_name(job, "github.token").is_empty()));
    assert_eq!(that_name(release, "cache"), [""; 0], "a release restores nothing");
    for step in steps(cpu).iter().chain(steps(gpu)).chain(steps(release)) {
        if let Some(action) = step["uses"].as_str() {
            let pin = action.split_once('@').unwrap().1;
            assert!(pin.len() == 40 && pin.bytes().all(|b| b.is_ascii_hexdigit()), "{action}");
            assert!(!action.starts_with("actions/checkout") || step["with"]["persist-credentials"] == false);
        }
        // The machine's own key lies in `~/.local/state`, and travels in no cache and no artifact.
        for path in step["with"]["path"].as_str().unwrap_or_default().lines() {
            let known = ["~/.cargo/bin/kforge", "~/.kforge/actions", "~/.kforge/cas", "~/.kforge/toolchains"];
            assert!(known.contains(&path) || path.starts_with("k/target/kforge/"), "{path}");
        }
        assert!(!step["uses"].as_str().unwrap_or_default().starts_with("actions/cache@"), "it saves by itself");
    }
}

/// An event: the values that differ from those of a push to the default branch of a repository with a GPU runner and a review.
fn event(differs: &[(&str, &str)]) -> Values {
    let mut all = values(&[
        ("github.event_name", "push"),
        ("github.ref_name", "main"),
        ("github.ref_type", "branch"),
        ("github.event.repository.default_branch", "main"),
        ("github.repository", "o/r"),
        ("github.event.pull_request.head.repo.full_name", ""),
        ("vars.KFORGE_GPU_RUNNER", "h200"),
        ("vars.KFORGE_GPU_REVIEW", "gpu-review"),
    ]);
    all.extend(values(differs));
    all
}

#[test]
fn a_gpu_runs_no_fork_and_pull_requests_get_neither_the_key_nor_a_cache() {
    let workflow = github();
    let (cpu, gpu) = (&workflow["jobs"]["cpu"], &workflow["jobs"]["gpu"]);
    let condition = |step: &Value| step["if"].as_str().unwrap_or("'always'").to_string();
    let saves = steps(cpu).iter().find(|s| s["name"] == "Save results, toolchains and the program").map(condition);
    let signs = steps(gpu).iter().find(|s| s["name"] == "Sign the evidence").map(condition);
    // Whether a job on a GPU runs, in which environment, whether it signs, and whether the other job saves.
    let allowed = |event: &Values| {
        let runs = holds(gpu["if"].as_str().unwrap(), event);
        let environment = filled(gpu["environment"].as_str().unwrap(), event);
        let signs = runs && holds(signs.as_deref().unwrap(), event);
        (runs.then_some(environment), signs, holds(saves.as_deref().unwrap(), event))
    };
    let fork = ("github.event.pull_request.head.repo.full_name", "fork/r");
    let own = ("github.event.pull_request.head.repo.full_name", "o/r");
    let (request, merged) = (("github.event_name", "pull_request"), ("github.ref_name", "7/merge"));
    assert_eq!(allowed(&event(&[])), (Some("gpu".into()), true, true));
    assert_eq!(allowed(&event(&[("vars.KFORGE_GPU_RUNNER", "")])), (None, false, true));
    assert_eq!(allowed(&event(&[("github.ref_name", "branch")])), (None, false, false));
    assert_eq!(allowed(&event(&[request, merged, fork])), (None, false, false));
    assert_eq!(allowed(&event(&[request, merged, own])), (Some("gpu-review".into()), false, false));
    assert_eq!(allowed(&event(&[request, merged, own, ("vars.KFORGE_GPU_REVIEW", "")])), (None, false, false));
    // A branch of a fork may have any name, and this event runs with the rights of the base.
    assert_eq!(allowed(&event(&[request, ("github.ref_name", "main"), fork])), (None, false, false));
    assert_eq!(allowed(&event(&[("github.event_name", "pull_request_target"), fork])), (None, false, false));
    assert_eq!(allowed(&event(&[("github.event_name", "workflow_dispatch")])), (Some("gpu".into()), true, false));
    let dispatched = [("github.event_name", "workflow_dispatch"), ("github.ref_name", "branch")];
    assert_eq!(allowed(&event(&dispatched)), (None, false, false));
}

#[test]
fn only_a_tag_that_somebody_pushed_to_the_repository_is_released_and_nothing_else_runs_for_it() {
    let workflow = github();
    let runs = |job: &str, event: &Values| holds(workflow["jobs"][job]["if"].as_str().unwrap(), event);
    let tag = event(&[("github.ref_type", "tag"), ("github.ref_name", "v1.2.0")]);
    // Job gpu needs job cpu.
    assert_eq!([runs("cpu", &tag), runs("release", &tag)], [false, true]);
    assert_eq!(workflow["jobs"]["gpu"]["needs"], "cpu");
    assert_eq!(workflow["jobs"]["release"]["environment"], "release");
    let request = ("github.event_name", "pull_request");
    for differs in [&[][..], &[request], &[request, ("github.ref_name", "v1.2.0")], &[("github.ref_name", "v1.2.0")]] {
        assert_eq!([runs("cpu", &event(differs)), runs("release", &event(differs))], [true, false], "{differs:?}");
    }
    for name in ["pull_request", "pull_request_target", "workflow_dispatch"] {
        let tag = event(&[("github.ref_type", "tag"), ("github.event_name", name)]);
        assert!(!runs("release", &tag), "{name}");
    }
}

/// A repository with the tiny package in `k` and its workflow, after two commits; the first one's name.
fn committed() -> (Place, String) {
    let place = repository();
    place.run("new k --ci github").expect(0);
    for file in ["bias_gelu.cu", "README.md"] {
        fs::remove_file(place.at("k").join(file)).unwrap();
    }
    let place = place.file("k/kernel.toml", MANIFEST).file("k/twice.cu", SOURCE);
    let root = place.at("");
    git(&root, &["add", "--all"]);
    git(&root, &["commit", "--quiet", "-m", "first"]);
    let first = git(&root, &["rev-parse", "HEAD"]);
    place.edit("k/twice.cu", "2.0f * x[i]", "x[i] + x[i]");
    git(&root, &["commit", "--quiet", "--all", "-m", "second"]);
    (place, first)
}

/// A runner that checked out a fresh clone. kforge is installed there: its folder is on `PATH`, so no step installs it.
#[expect(clippy::disallowed_methods, reason = "a test stands where a runner does, and hands PATH on")]
fn runner(place: &Place, base: &str) -> Runner {
    git(&place.at(""), &["clone", "--quiet", ".", "clone"]);
    let programs = Path::new(env!("CARGO_BIN_EXE_kforge")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let at = |name: &str| place.at(name).display().to_string();
    let machine = [
        ("PATH", path),
        ("HOME", at("home")),
        ("KFORGE_HOME", place.home().display().to_string()),
        ("KFORGE_NET_OFFLINE", "true".into()),
        ("GITHUB_STEP_SUMMARY", at("summary")),
        ("GITHUB_OUTPUT", at("outputs")),
        ("GITHUB_PATH", at("path")),
        ("GITHUB_ACTION_PATH", env!("CARGO_MANIFEST_DIR").into()),
    ];
    let values = values(&[
        ("vars.KFORGE_SOURCE", ""),
        ("github.event.pull_request.base.sha", base),
        ("github.event.before", ""),
        ("steps.ci.outcome", "success"),
    ]);
    Runner {
        checkout: place.at("clone"),
        machine: machine.into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
        values,
    }
}

#[track_caller]
fn expect(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{}", said(output));
    said(output)
}

#[test]
fn the_commands_of_the_job_without_a_gpu_work_in_a_fresh_clone() {
    let (place, first) = committed();
    let runner = runner(&place, &first);
    let workflow = yaml(&fs::read_to_string(runner.checkout.join(GITHUB)).unwrap());
    let folder = workflow["defaults"]["run"]["working-directory"].as_str().unwrap();
    let cpu = &workflow["jobs"]["cpu"];
    let mut executed = 0;
    for step in steps(cpu) {
        if let Some(output) = runner.run(step, &[&workflow, cpu], folder) {
            expect(&output, 0);
            executed += 1;
        }
    }
    assert_eq!(executed, 3, "install, check, show");
    let results = steps(cpu).iter().find(|s| s["name"] == "Keep the results").unwrap();
    let results = runner.checkout.join(results["with"]["path"].as_str().unwrap());
    for file in ["ci.json", "junit.xml", "results.sarif", "code-quality.json", "annotations.txt"] {
        assert!(results.join(file).exists(), "{file}");
    }
    assert_eq!(place.read("summary"), fs::read_to_string(results.join("summary.md")).unwrap());
    // The machine's own key is outside of the home, which is what a cache takes.
    assert!(place.at("home/.local/state/kforge/machine-key").exists());
    assert!(!place.home().join("machine-key").exists());
    // What the workflow leaves behind is ignored, so that results name a clean commit.
    assert_eq!(git(&runner.checkout, &["status", "--porcelain", "k"]), "");
}

#[test]
#[ignore = "second tier: many builds"]
fn a_wrong_kernel_fails_the_job_and_is_still_shown() {
    let (place, first) = committed();
    place.edit("k/twice.cu", "x[i] + x[i]", "3.0f * x[i]");
    git(&place.at(""), &["commit", "--quiet", "--all", "-m", "third"]);
    let runner = Runner { values: values(&[("steps.ci.outcome", "failure")]), ..runner(&place, &first) };
    let workflow = yaml(&place.read(GITHUB));
    let step = |name: &str| steps(&workflow["jobs"]["cpu"]).iter().find(|s| s["name"] == name).unwrap();
    expect(&runner.run(step("Check the kernels"), &[], "k").unwrap(), 100);
    let show = || expect(&runner.run(step("Show the results"), &[], "k").unwrap(), 0);
    let shown = show();
    assert!(shown.contains("::error ") && shown.contains("file=k/kernel.toml"), "{shown}");
    assert!(place.read("summary").contains("twice"));
    // A run that could not be started wrote nothing to show.
    fs::remove_dir_all(runner.checkout.join("k/target/kforge/ci")).unwrap();
    assert_eq!(show(), "");
}

#[test]
#[ignore = "second tier: many builds"]
fn the_action_checks_a_clone_and_installs_an_archive_only_with_its_digest() {
    let (place, first) = committed();
    let mut runner = runner(&place, &first);
    let action = yaml(&fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/action.yml")).unwrap());
    let folder = place.at("archive/kforge-0.0.0");
    fs::create_dir_all(&folder).unwrap();
    // The released program is a file. A link gives the same, and is a smaller archive.
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_kforge"), folder.join("kforge")).unwrap();
    let packed =
        place.shell("tar -czf kforge.tar.gz -C archive kforge-0.0.0 && sha256sum kforge.tar.gz | cut -d' ' -f1");
    let digest = packed.trim();
    let archive = place.at("kforge.tar.gz").display().to_string();
    runner.values.extend(values(&[
        ("inputs.archive", &archive),
        ("inputs.sha256", digest),
        ("inputs.working-directory", "k"),
        ("inputs.base", &first),
        ("inputs.args", "--target cpu"),
        ("inputs.cache", "none"),
        ("steps.source.outputs.digest", &"0".repeat(64)),
    ]));
    let step = |name: &str| action["runs"]["steps"].as_array().unwrap().iter().find(|s| s["name"] == name).unwrap();
    expect(&runner.run(step("Find the digest of the program's source"), &[], "").unwrap(), 0);
    assert_eq!(place.read("outputs"), format!("digest={digest}\n"));
    let mut wrong = runner.clone();
    wrong.values.extend(values(&[("inputs.sha256", &"0".repeat(64))]));
    let refused = wrong.run(step("Install kforge"), &[], "").unwrap();
    assert!(!refused.status.success() && !place.at("home/.kforge-action").exists(), "{}", said(&refused));
    runner.values.extend(values(&[("steps.source.outputs.digest", digest)]));
    let mut names = vec![];
    for step in action["runs"]["steps"].as_array().unwrap().iter().skip(1) {
        let folder = filled(step["working-directory"].as_str().unwrap_or(""), &runner.values);
        if let Some(output) = runner.run(step, &[], &folder) {
            expect(&output, 0);
            names.push(step["name"].as_str().unwrap());
        }
        let outputs = place.read("outputs");
        let results = outputs.lines().find_map(|line| line.strip_prefix("results=")).unwrap_or_default();
        runner.values.insert("steps.ci.outputs.results".into(), results.into());
    }
    assert_eq!(names, ["Install kforge", "Check the kernels", "Show the results"]);
    assert_eq!(place.read("path"), format!("{}/.kforge-action/{digest}/bin\n", place.at("home").display()));
    assert!(place.at("clone/k/target/kforge/ci/ci.json").exists());
    assert!(!place.read("summary").is_empty());
}

#[test]
fn the_action_builds_the_source_that_it_was_taken_from() {
    let (place, first) = committed();
    let mut runner = runner(&place, &first);
    let action = yaml(&fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/action.yml")).unwrap());
    runner.values.extend(values(&[("inputs.archive", ""), ("inputs.sha256", "")]));
    let source = &action["runs"]["steps"][0];
    expect(&runner.run(source, &[], "").unwrap(), 0);
    expect(&runner.run(source, &[], "").unwrap(), 0);
    let digests = place.read("outputs");
    let digests: Vec<&str> = digests.lines().collect();
    assert!(digests[0] == digests[1] && digests[0].len() == "digest=".len() + 64, "{digests:?}");
    // An archive without its digest is refused before anything is fetched.
    runner.values.extend(values(&[("inputs.archive", "https://example.com/kforge.tar.gz")]));
    assert!(!runner.run(source, &[], "").unwrap().status.success());
}
