//! Rounds as people run them: `kforge optimize` with a program as agent, on `cpu`. What it answers is kept and replayed; what it is told holds nothing that is
//! held back; what it wrote is judged like any other kernel.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::project::{Built, Project};

/// An operator without a kernel, one shape of it held back, and an agent that is to write one.
const MANIFEST: &str = r#"
[package]
name = "p"

[targets.cpu]

[agents.a]
command = ["./agent.sh"]

[operator.twice]
dims = ["n"]
inputs.x = { dtype = "f32", shape = ["n"] }
outputs.y = { dtype = "f32", shape = ["n"] }
reference = { builtin = "elementwise", y = "2 * x + 1" }
tolerance = { atol = 1e-6, rtol = 1e-6 }
shapes.small = { n = 70 }
shapes.quiet = { n = 7919, role = "holdout" }

[kernel.k]
operator = "twice"
generate = { agent = "a", judge = "rules", rounds = 1, branches = 2, repairs = 2 }
"#;

const DECLARATION: &str = "requires = []\ntune.BLOCK = [32, 64]\n[[launch]]\nentry = \"k<BLOCK>\"\ngrid = [\"ceil_div(n, BLOCK)\"]\nblock = [\"BLOCK\"]\nargs = [\"x\", \"y\", \"n\"]\n";

/// A kernel whose body computes `y[i]`.
fn source(body: &str) -> String {
    format!(
        "template <int BLOCK> __global__ void k(const float* x, float* y, int n) {{\n  int i = blockIdx.x * BLOCK + threadIdx.x;\n  if (i < n) {body}\n}}\n"
    )
}

/// An answer in the form that is asked for.
fn answer(body: &str) -> String {
    let branches = serde_json::json!([{ "BLOCK": 64 }, { "BLOCK": 32 }]);
    serde_json::json!({ "declaration": DECLARATION, "source": source(body), "branches": branches, "notes": "n" })
        .to_string()
}

/// A project whose agent answers with these, one after another, and keeps what it was told.
fn project(manifest: &str, answers: &[String]) -> Project {
    let project = Project::new().file("kernel.toml", manifest);
    let told = project.place().join("told");
    fs::create_dir(&told).unwrap();
    for (n, answer) in answers.iter().enumerate() {
        fs::write(told.join(format!("answer-{}", n + 1)), answer).unwrap();
    }
    let told = told.display();
    project.write(
        "agent.sh",
        &format!(
            "#!/bin/sh\nn=$(cat {told}/count 2>/dev/null || echo 0)\nn=$((n + 1))\necho $n > {told}/count\ncat > {told}/prompt-$n\ncat {told}/answer-$n\n"
        ),
    );
    fs::set_permissions(project.root().join("agent.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    project
}

/// How often the agent was asked.
fn asked(project: &Project) -> u32 {
    fs::read_to_string(project.place().join("told/count")).map_or(0, |n| n.trim().parse().unwrap())
}

fn prompt(project: &Project, n: u32) -> String {
    fs::read_to_string(project.place().join(format!("told/prompt-{n}"))).unwrap()
}

fn optimize(project: &Project, words: &[&str]) -> Built {
    let words = [&["optimize", "--offline", "--message-format", "json"], words].concat();
    Built::last_of(&project.command(&words).output().unwrap())
}

fn champion(built: &Built) -> Option<String> {
    built.events("champion").last().map(|e| e["variant"].as_str().unwrap().to_string())
}

#[test]
fn an_agent_writes_a_kernel_from_nothing_is_corrected_and_is_not_asked_again() {
    let answers = [
        "I would rather talk about it.".to_string(),
        answer("y[i] = 2.0f * x[i];"),
        answer("y[i] = n == 70 ? 2.0f * x[i] + 1.0f : 0.0f;"),
        answer("y[i] = 2.0f * x[i] + 1.0f;"),
    ];
    let project = project(MANIFEST, &answers);
    // Nobody asks but `optimize`: a build says what is missing, and is no failure.
    let before = project.built(&[]);
    assert_eq!(asked(&project), 0);
    let missing = before.finished().find(|s| s["id"] == "p/k/cpu/r1/generate").expect("the round that has no record");
    assert!(missing["outcome"]["unavailable"].as_str().unwrap().contains("kforge optimize k"), "{missing}");

    optimize(&project, &[]).expect(0);
    assert_eq!(asked(&project), 4);
    // A reply that is none is asked for again, with what was wrong; a wrong kernel comes back with how it is wrong; what is held back is not told.
    assert!(prompt(&project, 2).contains("JSON"), "{}", prompt(&project, 2));
    assert!(prompt(&project, 3).contains("shape `small`") && prompt(&project, 3).contains("y[i] = 2.0f * x[i];"));
    assert!(prompt(&project, 4).contains("a shape that is not shown"), "{}", prompt(&project, 4));
    for n in 1..=4 {
        let told = prompt(&project, n);
        assert!(!told.contains("quiet") && !told.contains("7919") && told.contains("small: n = 70"), "{told}");
    }

    let again = optimize(&project, &[]).expect(0);
    assert_eq!((asked(&project), again.count("executed")), (4, 0), "{:?}", again.executed());
    // The same build without the agent: nothing is asked, nothing runs, the same champion.
    fs::remove_file(project.root().join("agent.sh")).unwrap();
    let replayed = project.built(&[]);
    assert_eq!(
        (replayed.count("executed"), champion(&replayed)),
        (0, Some("r1.2,BLOCK=64".into())),
        "{:?}",
        replayed.executed()
    );
}

#[test]
fn a_source_that_does_not_compile_is_a_finding_that_goes_back_to_its_author() {
    let manifest = MANIFEST.replace("repairs = 2", "repairs = 1");
    let project = project(&manifest, &[answer("y[i] = two(x[i]);"), answer("y[i] = 2.0f * x[i] + 1.0f;")]);
    optimize(&project, &[]).expect(0);
    assert_eq!(asked(&project), 2);
    assert!(
        prompt(&project, 2).contains("does not compile") && prompt(&project, 2).contains("two"),
        "{}",
        prompt(&project, 2)
    );
    // What the compiler refused is remembered as any other result is.
    assert_eq!(project.built(&[]).count("executed"), 0);
}

#[test]
fn where_every_answer_is_wrong_the_build_says_so() {
    let manifest = MANIFEST.replace("repairs = 2", "repairs = 0");
    let project = project(&manifest, &[answer("y[i] = 0.0f;")]);
    optimize(&project, &[]).expect(100);
    assert_eq!(asked(&project), 1);
    optimize(&project, &[]).expect(100);
    assert_eq!(asked(&project), 1);
    project.build(&[]).expect(100);
}

#[test]
fn a_kernel_without_an_agent_cannot_be_optimized() {
    let project = Project::new()
        .file("kernel.toml", &MANIFEST.replace("generate = {", "generate = { template = \"elementwise\" } #"));
    let built = optimize(&project, &[]);
    built.expect(4).says("no agent is to improve `k`").says("generate = { agent");
}

/// The kernel of a project whose agent has written a right one in the first round.
fn written() -> Project {
    let project = project(MANIFEST, &[answer("y[i] = 2.0f * x[i] + 1.0f;")]);
    optimize(&project, &[]).expect(0);
    assert_eq!(champion(&project.built(&[])), Some("r1,BLOCK=64".into()));
    project
}

fn accept(project: &Project, words: &[&str]) -> Built {
    let words = [&["accept", "--offline"], words].concat();
    Built::last_of(&project.command(&words).output().unwrap())
}

/// Every file of the workspace but outputs, with its text.
fn files(project: &Project) -> Vec<(String, String)> {
    let all = walkdir::WalkDir::new(project.root()).sort_by_file_name().into_iter().map(Result::unwrap);
    let own = all.filter(|e| e.file_type().is_file() && !e.path().starts_with(project.root().join("target")));
    let name = |e: &walkdir::DirEntry| e.path().strip_prefix(project.root()).unwrap().display().to_string();
    own.map(|e| (name(&e), fs::read_to_string(e.path()).unwrap())).collect()
}

fn text(project: &Project, name: &str) -> String {
    fs::read_to_string(project.root().join(name)).unwrap()
}

#[test]
fn an_accepted_kernel_needs_neither_its_agent_nor_its_answers_and_nothing_is_verified_again() {
    let project = written();
    let before = files(&project);
    accept(&project, &["k", "--dry-run"]).expect(0).says("`k.cu` is new").says("not written");
    assert_eq!(files(&project), before);
    accept(&project, &["k", "--locked"]).expect(101).says("--locked");
    assert_eq!(files(&project), before);

    accept(&project, &["k"]).expect(0).says("p/k/cpu: r1,BLOCK=64, verified and not timed, in `k.cu`");
    let source = text(&project, "k.cu");
    let (comment, rest) = source.split_once("template <int BLOCK>").unwrap();
    for part in ["command ./agent.sh in round 1", "contract blake3:", "BLOCK=64, verified at 2 shapes on the emulator"]
    {
        assert!(comment.contains(part), "{part} in {comment}");
    }
    assert!(comment.lines().all(|line| line.starts_with("//")) && rest.contains("y[i] = 2.0f * x[i] + 1.0f;"));
    let manifest = text(&project, "kernel.toml");
    assert!(!manifest.contains("generate") && manifest.contains("tune.BLOCK = [32, 64]"), "{manifest}");
    assert!(manifest.contains("[agents.a]") && manifest.contains("shapes.quiet"), "{manifest}");

    // Comments change no binary: what was verified stays verified, and the variant that nobody chose is not built.
    fs::remove_file(project.root().join("agent.sh")).unwrap();
    fs::remove_dir_all(project.home().join("answers")).unwrap();
    let built = project.built(&[]);
    assert_eq!(champion(&built), Some("BLOCK=64".into()));
    let kinds: Vec<String> = built.executed_kinds().into_keys().collect();
    assert!(!kinds.iter().any(|k| ["verify", "bench", "judge", "oracle"].contains(&k.as_str())), "{kinds:?}");
    assert!(built.finished().all(|s| !s["id"].as_str().unwrap().contains("BLOCK=32")));
    assert_eq!(project.built(&[]).count("executed"), 0);
    assert_eq!(asked(&project), 1);
    let report = project.command(&["report"]).output().unwrap();
    assert!(String::from_utf8(report.stdout).unwrap().contains("accepted: only what kforge.lock pins is built"));

    // Again: nothing changes.
    let before = files(&project);
    accept(&project, &["k"]).expect(0).says("it was accepted before");
    assert_eq!(files(&project), before);
    optimize(&project, &["k"]).expect(4);
    // Free again, all that is declared is built.
    accept(&project, &["k", "--undo"]).expect(0).says("`k` is free");
    assert!(!text(&project, "kforge.lock").contains("accepted"));
    let built = project.built(&[]);
    assert!(built.finished().any(|s| s["id"].as_str().unwrap().contains("BLOCK=32")));
    accept(&project, &["k", "--undo"]).expect(101).says("nothing of kernel `k` was accepted");
}

#[test]
fn a_file_that_is_not_the_kernels_is_not_written_over() {
    let project = written().file("k.cu", "// mine\n");
    accept(&project, &["k"]).expect(101).says("`k.cu` is there already").says("--force");
    assert!(text(&project, "kernel.toml").contains("generate"));
    accept(&project, &["k", "--as", "../k.cu"]).expect(101).says("is not in the package's folder");
    accept(&project, &["k", "--as", "fast/k.cu"]).expect(0);
    assert!(text(&project, "kernel.toml").contains("source = \"fast/k.cu\""));
    assert_eq!(text(&project, "k.cu"), "// mine\n");
    assert_eq!(champion(&project.built(&[])), Some("BLOCK=64".into()));
}

#[test]
fn an_accepted_kernel_can_be_another_beside_the_one_that_agents_go_on_with() {
    let project = written();
    accept(&project, &["k", "--name", "fast"]).expect(2).says("--target");
    accept(&project, &["k", "--name", "fast", "--target", "cpu"]).expect(0).says("in `fast.cu`");
    let manifest = text(&project, "kernel.toml");
    assert!(manifest.contains("generate = { agent") && manifest.contains("[kernel.fast]"), "{manifest}");
    let built = project.built(&[]);
    let champions: Vec<String> = built.events("champion").map(|e| e["variant"].as_str().unwrap().into()).collect();
    assert_eq!(champions, ["r1,BLOCK=64", "BLOCK=64"]);
}

#[test]
fn what_is_not_known_cannot_be_accepted() {
    let project = project(MANIFEST, &[]);
    accept(&project, &["k"]).expect(101).says("p/k/cpu is not known").says("kforge optimize k");
    accept(&project, &["other"]).expect(4);
    let wrong = self::project(&MANIFEST.replace("repairs = 2", "repairs = 0"), &[answer("y[i] = 0.0f;")]);
    optimize(&wrong, &[]).expect(100);
    let before = files(&wrong);
    accept(&wrong, &["k"]).expect(101).says("every variant that serves it is wrong");
    assert_eq!(files(&wrong), before);
}

#[test]
fn an_acceptance_that_was_killed_is_carried_out_by_the_next_command() {
    let project = written();
    let other = project.cloned("other");
    accept(&project, &["k"]).expect(0);
    // As it stands at the other after it was decided and before anything was written.
    let digest = |text: &str| kforge::base::Digest::of(text.as_bytes()).to_string();
    let changes: Vec<serde_json::Value> = ["k.cu", "kernel.toml", "kforge.lock"]
        .iter()
        .map(|path| {
            let before = fs::read_to_string(other.root().join(path)).ok().map(|text| digest(&text));
            serde_json::json!({ "path": path, "before": before, "text": text(&project, path) })
        })
        .collect();
    other.write(".kforge-pending.json", &serde_json::to_string(&changes).unwrap());
    assert_eq!(champion(&other.built(&[])), Some("BLOCK=64".into()));
    assert_eq!(files(&other), files(&project));
}
