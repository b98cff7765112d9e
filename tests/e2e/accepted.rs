//! `kforge accept`: a kernel from an agent becomes the package's own, with its provenance, and is pinned. The agent and its answers are no longer needed.

use std::fs;
use std::sync::OnceLock;

use crate::project::{Built, Kept, Project, known};
use crate::rounds::{MANIFEST, answer, asked, champion, optimize, project};

/// The kernel of a project whose agent wrote a correct kernel in the first round.
fn written() -> Project {
    static KNOWN: OnceLock<Kept> = OnceLock::new();
    let optimized = |project: &Project| drop(optimize(project, &[]).expect(0));
    let project = known(&KNOWN, || project(MANIFEST, &[answer("y[i] = 2.0f * x[i] + 1.0f;")]), optimized);
    optimized(&project);
    assert_eq!(champion(&project.built(&[])), Some("r1,BLOCK=64".into()));
    project
}

fn accept(project: &Project, words: &[&str]) -> Built {
    let words = [&["accept", "--offline"], words].concat();
    Built::last_of(&project.command(&words).output().unwrap())
}

/// Every file of the workspace except outputs, with its text.
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
#[ignore = "second tier: many rounds with an agent"]
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
    for part in
        ["command [\"./agent.sh\"] in round 1", "contract blake3:", "BLOCK=64, verified at 2 shapes on the emulator"]
    {
        assert!(comment.contains(part), "{part} in {comment}");
    }
    assert!(comment.lines().all(|line| line.starts_with("//")) && rest.contains("y[i] = 2.0f * x[i] + 1.0f;"));
    let manifest = text(&project, "kernel.toml");
    assert!(!manifest.contains("generate") && manifest.contains("tune.BLOCK = [32, 64]"), "{manifest}");
    assert!(manifest.contains("[agents.a]") && manifest.contains("shapes.quiet"), "{manifest}");

    // Comments change no binary: verified results stay valid, and the variant that was not accepted is not built.
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
    assert!(
        String::from_utf8(report.stdout)
            .unwrap()
            .contains("accepted: kforge builds only the variant that kforge.lock pins")
    );

    // Repeating the command changes nothing.
    let before = files(&project);
    accept(&project, &["k"]).expect(0).says("it is already accepted");
    assert_eq!(files(&project), before);
    optimize(&project, &["k"]).expect(4);
    // Once released, every declared variant is built.
    accept(&project, &["k", "--undo"]).expect(0).says("Freed `k`: all its variants are built again");
    assert!(!text(&project, "kforge.lock").contains("accepted"));
    let built = project.built(&[]);
    assert!(built.finished().any(|s| s["id"].as_str().unwrap().contains("BLOCK=32")));
    accept(&project, &["k", "--undo"]).expect(101).says("kernel `k` has no accepted champion");
}

#[test]
#[ignore = "second tier: many rounds with an agent"]
fn a_file_that_is_not_the_kernels_is_not_written_over() {
    let project = written().file("k.cu", "// mine\n");
    accept(&project, &["k"]).expect(101).says("`k.cu` already exists").says("--force");
    assert!(text(&project, "kernel.toml").contains("generate"));
    accept(&project, &["k", "--as", "../k.cu"]).expect(101).says("is not in the package's folder");
    accept(&project, &["k", "--as", "fast/k.cu"]).expect(0);
    assert!(text(&project, "kernel.toml").contains("source = \"fast/k.cu\""));
    assert_eq!(text(&project, "k.cu"), "// mine\n");
    assert_eq!(champion(&project.built(&[])), Some("BLOCK=64".into()));
}

#[test]
#[ignore = "second tier: many rounds with an agent"]
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
#[ignore = "second tier: many rounds with an agent"]
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
#[ignore = "second tier: many rounds with an agent"]
fn an_acceptance_that_was_killed_is_carried_out_by_the_next_command() {
    let project = written();
    let other = project.cloned("other");
    accept(&project, &["k"]).expect(0);
    // The state of the other project after the changes were decided and before any was written.
    let digest = |text: &str| kforge::base::Digest::of(text.as_bytes()).to_string();
    let changes: Vec<serde_json::Value> = ["k.cu", "kernel.toml", "kforge.lock"]
        .iter()
        .map(|path| {
            let before = fs::read_to_string(other.root().join(path)).ok().map(|text| digest(&text));
            serde_json::json!({ "path": path, "before": before, "text": text(&project, path) })
        })
        .collect();
    let root = kforge::base::Digest::of(other.root().as_os_str().as_encoded_bytes());
    let pending = other.home().join("pending");
    fs::create_dir_all(&pending).unwrap();
    fs::write(pending.join(format!("{}.json", root.hex())), serde_json::to_string(&changes).unwrap()).unwrap();
    assert_eq!(champion(&other.built(&[])), Some("BLOCK=64".into()));
    assert_eq!(files(&other), files(&project));
}

#[test]
#[ignore = "second tier: many rounds with an agent"]
fn attempts_are_exported_whole_and_name_no_shape_that_is_held_back() {
    let answers = [answer("y[i] = n == 70 ? 2.0f * x[i] + 1.0f : 0.0f;"), answer("y[i] = 2.0f * x[i] + 1.0f;")];
    let project = project(MANIFEST, &answers);
    let export = |words: &[&str]| {
        let words = [&["export", "trajectories"], words].concat();
        project.command(&words).output().unwrap()
    };
    assert_eq!(export(&[]).status.code(), Some(4), "nothing is on record");
    optimize(&project, &[]).expect(0);
    let text = String::from_utf8(export(&["--kernel", "k"]).stdout).unwrap();
    assert!(!text.contains("quiet") && !text.contains("7919"), "{text}");
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let attempts: Vec<u64> = lines.iter().map(|l| l["answer"]["question"]["attempt"].as_u64().unwrap()).collect();
    assert_eq!(attempts, [0, 1]);
    for (line, (became, held_back)) in lines.iter().zip([("wrong", "fail"), ("right", "pass")]) {
        assert!(line["answer"]["exchanges"][0]["prompt"]["user"].is_string() && line["contract"].is_string(), "{line}");
        let of = &line["candidates"][0];
        assert_eq!(of["became"], became, "{line}");
        let verdicts = of["verdicts"].as_array().unwrap();
        assert!(verdicts.iter().any(|v| v["shape"] == "holdout" && v["verdict"] == held_back), "{line}");
        assert!(verdicts.iter().any(|v| v["shape"] == "small" && v["verdict"] == "pass"), "{line}");
    }
    assert_eq!(lines[0]["candidates"][0]["score"]["at_most"], 0.0, "it is wrong");
    assert!(lines[1]["candidates"][0]["speedup"].is_null() && lines[1]["candidates"][0]["champion"] == true);
    let schema = project.command(&["schema", "trajectory"]).output().unwrap().stdout;
    let schema = jsonschema::validator_for(&serde_json::from_slice(&schema).unwrap()).unwrap();
    assert!(lines.iter().all(|line| schema.is_valid(line)));
    assert_eq!(export(&["-o", "rounds.jsonl"]).status.code(), Some(0));
    assert_eq!(fs::read_to_string(project.root().join("rounds.jsonl")).unwrap(), text);
}
