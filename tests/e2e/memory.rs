//! The memory of a workspace for candidates, as people search it and as prompts use it.

use std::fs;

use serde_json::Value;

use crate::project::{Built, Project};
use crate::rounds::{MANIFEST, answer, asked, champion, completion, optimize, project, prompt, server, source};

const RIGHT: &str = "y[i] = 2.0f * x[i] + 1.0f;";

/// Besides the kernel that an agent writes: kernels of other operators of the same pattern, one revealing a holdout shape, and one of another pattern.
fn manifest() -> String {
    let elementwise = |name: &str, factor: u32| {
        format!(
            "[operator.{name}]\ndims = [\"n\"]\ninputs.x = {{ dtype = \"f32\", shape = [\"n\"] }}\noutputs.y = {{ dtype = \"f32\", shape = [\"n\"] }}\n\
             reference = {{ builtin = \"elementwise\", y = \"{factor} * x\" }}\ntolerance = {{ atol = 1e-6, rtol = 1e-6 }}\nshapes.small = {{ n = 70 }}\n\
             [kernel.{name}]\noperator = \"{name}\"\nsource = \"{name}.cu\"\ntune.BLOCK = [32]\n[[kernel.{name}.launch]]\nentry = \"k<BLOCK>\"\n\
             grid = [\"ceil_div(n, BLOCK)\"]\nblock = [\"BLOCK\"]\nargs = [\"x\", \"y\", \"n\"]\n"
        )
    };
    let total = "[operator.total]\ndims = [\"n\"]\ninputs.x = { dtype = \"f32\", shape = [\"n\"] }\noutputs.y = { dtype = \"f32\", shape = [] }\n\
        reference = { builtin = \"sum\", axis = 0 }\nshapes.small = { n = 70 }\n\
        [kernel.total]\noperator = \"total\"\nsource = \"total.cu\"\n[[kernel.total.launch]]\nentry = \"k\"\ngrid = [1]\nblock = [1]\nargs = [\"x\", \"y\", \"n\"]\n";
    format!("{MANIFEST}\n{}{}{total}", elementwise("thrice", 3), elementwise("fourfold", 4))
}

/// The files of those kernels.
fn with_sources(project: Project) -> Project {
    let total = "extern \"C\" __global__ void k(const float* x, float* y, int n) {\n  float s = 0; // add up\n  for (int i = 0; i < n; ++i) s += x[i];\n  y[0] = s;\n}\n";
    project
        .file("thrice.cu", &source("y[i] = 3.0f * x[i]; // thrice as it is"))
        .file("fourfold.cu", &source("y[i] = 4.0f * x[i]; // tuned for n = 7919"))
        .file("total.cu", total)
}

/// The output of `kforge candidates`, with its exit code.
fn candidates(project: &Project, words: &[&str]) -> (i32, String, String) {
    let words = [&["candidates"], words].concat();
    let output = project.command(&words).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

fn listed(project: &Project, words: &[&str]) -> Vec<Value> {
    let (code, out, err) = candidates(project, &[&["--message-format", "json"], words].concat());
    assert_eq!(code, 0, "{err}");
    let all: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/candidate.json");
    let schema = jsonschema::validator_for(&serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()).unwrap();
    for one in &all {
        let wrong: Vec<String> = schema.iter_errors(one).map(|e| e.to_string()).collect();
        assert!(wrong.is_empty(), "{one}: {wrong:?}");
    }
    all
}

/// The champion of the kernel that the agent writes.
fn champion_of_k(built: &Built) -> Option<String> {
    let of_k = built.events("champion").find(|e| e["kernel"] == "k")?;
    of_k["variant"].as_str().map(String::from)
}

/// The kernel, round, attempt and fate of each candidate.
fn fates(all: &[Value]) -> Vec<(&str, u64, u64, &str)> {
    let of = |c: &Value, key: &str| c[key].as_u64().unwrap();
    let text = |c: &'_ Value, key: &str| c[key].as_str().unwrap().to_string().leak() as &str;
    all.iter().map(|c| (text(c, "kernel"), of(c, "round"), of(c, "attempt"), text(c, "became"))).collect()
}

#[test]
#[ignore = "second tier: many rounds with an agent"]
fn a_prompt_shows_what_is_right_of_the_same_pattern_and_nothing_that_tells_what_is_held_back() {
    let (url, server) = server(vec![completion(&answer(RIGHT), "stop")]);
    let http = format!("http = \"{url}\"\nmodel = \"m\"");
    let project = Project::new().file("kernel.toml", &manifest().replace("command = [\"./agent.sh\"]", &http));
    let project = with_sources(project);
    let output = project.command(&["optimize", "--message-format", "json"]).output().unwrap();
    let built = Built::last_of(&output).expect(0);
    let asked = server.join().unwrap();
    assert_eq!((asked.len(), champion_of_k(&built)), (1, Some("r1,BLOCK=64".into())));
    let told = &asked[0];
    assert!(told.contains("thrice as it is") && told.contains("kernel `thrice` of operator `thrice`"), "{told}");
    assert!(told.contains("Correct, and not timed: "), "nothing is timed on `cpu`: {told}");
    assert!(!told.contains("fourfold") && !told.contains("7919") && !told.contains("quiet"), "{told}");
    assert!(!told.contains("add up"), "a reduction teaches nothing of elementwise work: {told}");

    // An exemplar may change later: the recorded answer stays valid, and the agent is not asked again.
    project.write("thrice.cu", &source("y[i] = x[i] * 3.0f; // thrice in another way"));
    let again = optimize(&project, &[]).expect(0);
    assert_eq!(champion_of_k(&again), Some("r1,BLOCK=64".into()));
    assert!(again.executed().iter().all(|id| !id.starts_with("p/k/")), "{:?}", again.executed());
}

#[test]
#[ignore = "second tier: many rounds with an agent"]
fn exemplars_of_other_kernels_can_be_kept_from_an_agent() {
    let manifest = manifest().replace("rounds = 1,", "rounds = 1, exemplars = \"kernel\",");
    let project = with_sources(project(&manifest, &[answer(RIGHT)]));
    optimize(&project, &[]).expect(0);
    assert_eq!(asked(&project), 1);
    assert!(!prompt(&project, 1).contains("thrice"), "{}", prompt(&project, 1));
}

#[test]
#[ignore = "second tier: many rounds with an agent"]
fn candidates_are_searched_by_what_they_are_of_and_their_sources_are_printed() {
    let answers = [answer("y[i] = 2.0f * x[i];"), answer("y[i] = two(x[i]);"), answer(RIGHT)];
    let project = with_sources(project(&manifest(), &answers));
    let (code, _, err) = candidates(&project, &[]);
    assert!(code == 4 && err.contains("no candidate is recorded"), "{err}");
    optimize(&project, &[]).expect(0);

    let k = ["--kernel", "k"];
    let all = listed(&project, &k);
    let wrong = [("k", 1, 0, "wrong"), ("k", 1, 0, "wrong"), ("k", 1, 1, "refused"), ("k", 1, 1, "refused")];
    let right = [("k", 1, 2, "right"), ("k", 1, 2, "right")];
    assert_eq!(fates(&all), [&wrong[..], &right[..]].concat());
    assert_eq!(
        (&all[0]["pattern"], &all[0]["level"], &all[0]["arch"]),
        (&"elementwise".into(), &0.into(), &"cpu".into())
    );
    let champions: Vec<&str> =
        all.iter().filter(|c| c["champion"] == true).map(|c| c["variant"].as_str().unwrap()).collect();
    assert_eq!(champions, ["r1.2,BLOCK=64"]);

    let kernels = |words: &[&str]| -> Vec<String> {
        let mut all: Vec<String> =
            listed(&project, words).iter().map(|c| c["kernel"].as_str().unwrap().into()).collect();
        all.dedup();
        all
    };
    assert_eq!(kernels(&[]), ["fourfold", "k", "thrice", "total"]);
    assert_eq!(kernels(&["--pattern", "reduction"]), ["total"]);
    assert_eq!(kernels(&["--level", "L0", "--operator", "t*"]), ["k", "thrice"]);
    assert_eq!(kernels(&["--target", "cpu", "--level", "2"]), ["total"]);
    assert_eq!(listed(&project, &["--kernel", "k", "--correct"]).len(), 2);
    let (code, _, err) = candidates(&project, &["--operator", "twic"]);
    assert!(code == 4 && err.contains("did you mean `twice`?"), "{err}");
    let (code, _, err) = candidates(&project, &["--pattern", "reductions"]);
    assert!(code == 2 && err.contains("'reduction'"), "{err}");
    let (code, _, err) = candidates(&project, &["--level", "6"]);
    assert!(code == 2 && err.contains("L0 to L5"), "{err}");
    assert_eq!(candidates(&project, &["--pattern", "attention"]).0, 4);
    let (_, out, err) = candidates(&project, &["--correct", "--operator", "twice"]);
    assert!(out.starts_with("p/k on cpu: operator twice, elementwise, L0\n"), "{out}");
    assert!(out.contains("round 1, repair 2: r1.2,BLOCK=64: correct, champion"), "{out}");
    assert!(err.contains("Found 2 candidates, of 9"), "{err}");

    let id = |all: &[Value], at: usize| all[at]["id"].as_str().unwrap().to_string();
    assert_eq!(candidates(&project, &["--source", &id(&all, 0)]).1, source("y[i] = 2.0f * x[i];"));
    assert_eq!(candidates(&project, &["--source", &id(&all, 5)[..6]]).1, source(RIGHT));
    assert!(candidates(&project, &["--source", "zz"]).2.contains("there is no candidate `zz`"));
    assert!(candidates(&project, &["--source", ""]).2.contains("expected more characters of one id"));
    let thrice = listed(&project, &["--kernel", "thrice"]);
    assert_eq!((fates(&thrice), &thrice[0]["place"]), (vec![("thrice", 0, 0, "right")], &"thrice.cu".into()));
    project.write("thrice.cu", &source("y[i] = x[i];"));
    let edited = candidates(&project, &["--source", &id(&thrice, 0)]);
    assert!(edited.0 == 4 && edited.2.contains("it was edited since"), "{}", edited.2);
}

#[test]
#[ignore = "second tier: many rounds with an agent"]
fn rounds_of_a_kernel_that_was_edited_are_remembered_and_shown_to_those_who_begin_anew() {
    let answers = [answer("y[i] = 2.0f * x[i];"), answer(&format!("{RIGHT} // found before")), answer(RIGHT)];
    let project = project(MANIFEST, &answers);
    optimize(&project, &[]).expect(0);
    assert_eq!(asked(&project), 2);
    assert!(!prompt(&project, 1).contains("Kernels for similar problems"), "there was nothing to show");
    // Other arguments make a different agent, whose rounds start over.
    project.write("kernel.toml", &MANIFEST.replace("[\"./agent.sh\"]", "[\"./agent.sh\", \"-b\"]"));
    optimize(&project, &[]).expect(0);
    assert_eq!(asked(&project), 3);
    let told = prompt(&project, 3);
    assert!(told.contains("// found before") && told.contains("for the same contract, on cpu"), "{told}");
    let all = listed(&project, &[]);
    let rounds: Vec<_> = fates(&all).into_iter().map(|(_, _, attempt, fate)| (attempt, fate)).collect();
    let count = |one| rounds.iter().filter(|r| **r == one).count();
    assert_eq!((count((0, "wrong")), count((1, "right")), count((0, "right"))), (2, 2, 2), "{rounds:?}");
    // `kforge clean` forgets nothing, and replaying asks no agent.
    assert!(project.command(&["clean"]).output().unwrap().status.success());
    let replayed = project.built(&[]);
    assert_eq!((asked(&project), champion(&replayed)), (3, Some("r1,BLOCK=64".into())));
    assert_eq!(listed(&project, &[]), all);
}

#[test]
fn what_was_built_on_some_shapes_only_is_not_remembered() {
    let project = with_sources(Project::new().file("kernel.toml", &manifest()));
    project.built(&["--kernel", "thrice", "--shape", "small"]);
    assert_eq!(candidates(&project, &[]).0, 4);
    project.built(&["--kernel", "thrice"]);
    assert_eq!(fates(&listed(&project, &[])), [("thrice", 0, 0, "right")]);
}

#[test]
fn what_is_remembered_comes_back_to_a_build_with_nothing_to_do_and_goes_where_the_workspace_goes() {
    let project = with_sources(Project::new().copied_program().file("kernel.toml", &manifest()));
    let build = |project: &Project| {
        let output = project.command(&["build", "--offline", "--kernel", "thrice"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        said
    };
    // The second build has nothing to do, and writes a certificate that answers the next ones.
    build(&project);
    project.age();
    let said = build(&project);
    let certificate = project.target().join("certificate");
    assert!(certificate.exists(), "{said}");
    let all = listed(&project, &[]);
    assert_eq!(fates(&all), [("thrice", 0, 0, "right")]);
    let kept = project.home().join("candidates");
    let lose = || fs::read_dir(&kept).unwrap().for_each(|file| fs::remove_file(file.unwrap().path()).unwrap());
    lose();
    assert_eq!(candidates(&project, &[]).0, 4);
    build(&project);
    assert_eq!(listed(&project, &[]), all);

    // After a move, the memory is found under the workspace's former folder, with or without a build there.
    let moved = project.moved("elsewhere");
    assert_eq!(listed(&moved, &[]), all);
    moved.built(&["--kernel", "fourfold"]);
    assert_eq!(fates(&listed(&moved, &[])), [("fourfold", 0, 0, "right"), ("thrice", 0, 0, "right")]);
    assert_eq!(fs::read_dir(&kept).unwrap().count(), 1, "it is there once");
    // A copied workspace starts without a memory, and does not take the original's.
    let outputs = moved.target();
    let copied = moved.cloned("copied");
    fs::create_dir_all(copied.target()).unwrap();
    fs::copy(outputs.join("root"), copied.target().join("root")).unwrap();
    assert_eq!(candidates(&copied, &[]).0, 4);
    assert_eq!(listed(&moved, &[]).len(), 2);
}
