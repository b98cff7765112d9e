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
