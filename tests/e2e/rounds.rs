//! Rounds as people run them: `kforge optimize` with a program as agent, on `cpu`. The agent's answers are stored and replayed; its prompts reveal no holdout
//! shape; its kernels are judged like any other kernel.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::project::{Built, Project};

/// An operator without a kernel and with a holdout shape, and an agent that should write a kernel.
pub(crate) const MANIFEST: &str = r#"
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

pub(crate) const DECLARATION: &str = "requires = []\ntune.BLOCK = [32, 64]\n[[launch]]\nentry = \"k<BLOCK>\"\ngrid = [\"ceil_div(n, BLOCK)\"]\nblock = [\"BLOCK\"]\nargs = [\"x\", \"y\", \"n\"]\n";

/// A kernel whose body computes `y[i]`.
pub(crate) fn source(body: &str) -> String {
    format!(
        "template <int BLOCK> __global__ void k(const float* x, float* y, int n) {{\n  int i = blockIdx.x * BLOCK + threadIdx.x;\n  if (i < n) {body}\n}}\n"
    )
}

/// An answer in the requested format.
pub(crate) fn answer(body: &str) -> String {
    let branches = serde_json::json!([{ "BLOCK": 64 }, { "BLOCK": 32 }]);
    serde_json::json!({ "declaration": DECLARATION, "source": source(body), "branches": branches, "notes": "n" })
        .to_string()
}

/// A project whose agent gives these answers, one after another, and records its prompts.
pub(crate) fn project(manifest: &str, answers: &[String]) -> Project {
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
pub(crate) fn asked(project: &Project) -> u32 {
    fs::read_to_string(project.place().join("told/count")).map_or(0, |n| n.trim().parse().unwrap())
}

pub(crate) fn prompt(project: &Project, n: u32) -> String {
    fs::read_to_string(project.place().join(format!("told/prompt-{n}"))).unwrap()
}

pub(crate) fn optimize(project: &Project, words: &[&str]) -> Built {
    let words = [&["optimize", "--offline", "--message-format", "json"], words].concat();
    Built::last_of(&project.command(&words).output().unwrap())
}

pub(crate) fn champion(built: &Built) -> Option<String> {
    built.events("champion").last().map(|e| e["variant"].as_str().unwrap().to_string())
}

#[test]
#[ignore = "second tier: builds the answers of several rounds"]
fn an_agent_writes_a_kernel_from_nothing_is_corrected_and_is_not_asked_again() {
    let answers = [
        "I would rather talk about it.".to_string(),
        answer("y[i] = 2.0f * x[i];"),
        answer("y[i] = n == 70 ? 2.0f * x[i] + 1.0f : 0.0f;"),
        answer("y[i] = 2.0f * x[i] + 1.0f;"),
    ];
    let project = project(MANIFEST, &answers);
    // Only `optimize` asks. A build reports what is missing, and that is not a failure.
    let before = project.built(&[]);
    assert_eq!(asked(&project), 0);
    let missing = before.finished().find(|s| s["id"] == "p/k/cpu/r1/generate").expect("the round that has no record");
    assert!(missing["outcome"]["unavailable"].as_str().unwrap().contains("kforge optimize k"), "{missing}");

    optimize(&project, &[]).expect(0);
    assert_eq!(asked(&project), 4);
    // A malformed reply is requested again, with the errors. A wrong kernel is returned with a description of the error. Holdout shapes are not revealed.
    assert!(prompt(&project, 2).contains("JSON"), "{}", prompt(&project, 2));
    assert!(prompt(&project, 3).contains("shape `small`") && prompt(&project, 3).contains("y[i] = 2.0f * x[i];"));
    assert!(prompt(&project, 4).contains("not correct at every shape"), "{}", prompt(&project, 4));
    for n in 1..=4 {
        let told = prompt(&project, n);
        assert!(!told.contains("quiet") && !told.contains("7919") && told.contains("small: n = 70"), "{told}");
    }

    let again = optimize(&project, &[]).expect(0);
    assert_eq!((asked(&project), again.count("executed")), (4, 0), "{:?}", again.executed());
    // The same build without the agent: nothing is asked, nothing runs, and the champion is the same.
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
#[ignore = "second tier: many rounds with an agent"]
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
    // The compiler's refusal is stored like any other result.
    assert_eq!(project.built(&[]).count("executed"), 0);
}

#[test]
fn launches_that_cannot_be_bound_are_a_finding_and_end_no_build() {
    // 70 is five times 14, and 7919 is a prime: a launch that binds at the shown shape does not bind at the holdout shape.
    let divides = answer("y[i] = 2.0f * x[i] + 1.0f;").replace("ceil_div(n, BLOCK)", "n / 14");
    let manifest = MANIFEST.replace("repairs = 2", "repairs = 1");
    let project = project(&manifest, &[divides, answer("y[i] = 2.0f * x[i] + 1.0f;")]);
    optimize(&project, &[]).expect(0);
    assert_eq!(asked(&project), 2);
    let told = prompt(&project, 2);
    assert!(told.contains("cannot be bound for a holdout shape") && !told.contains("7919"), "{told}");
    assert_eq!(champion(&project.built(&[])), Some("r1.1,BLOCK=64".into()));
}

#[test]
#[ignore = "second tier: many rounds with an agent"]
fn an_answer_reads_no_file_starts_no_program_and_brings_no_proof_of_its_own() {
    let right = "y[i] = 2.0f * x[i] + 1.0f;";
    let with = |from: &str, to: &str| {
        let mut answer: serde_json::Value = serde_json::from_str(&answer(right)).unwrap();
        for part in ["source", "declaration"] {
            answer[part] = answer[part].as_str().unwrap().replace(from, to).into();
        }
        answer.to_string()
    };
    let include = |what: &str| with("template <int", &format!("#if 0\n#include {what}\n#endif\ntemplate <int"));
    let answers = [
        include("\"../kernel.toml\""),
        include("\"own.h\""),
        include("WHERE"),
        with("requires = []", "flags = [\"-wrapper\", \"sh,-c,cat source/kernel.toml\"]"),
        with("requires = []", "flags = [\"-O2\"]\ntune.O2 = [\"fplugin\"]"),
        answer(right),
    ];
    let manifest =
        MANIFEST.replace("repairs = 2", "repairs = 5").replace("generate = {", "include = [\".\"]\ngenerate = {");
    let project = project(&manifest, &answers).file("own.h", "// secret\n");
    optimize(&project, &[]).expect(0);
    assert_eq!(asked(&project), 6);
    let why = [
        "without `..`",
        "`own.h`, which no kernel of the package includes",
        "WHERE",
        "`-wrapper` is not an allowed flag",
        "`-fplugin` is not an allowed flag",
    ];
    for (n, why) in (2..).zip(why) {
        assert!(prompt(&project, n).contains(why), "{why}: {}", prompt(&project, n));
        assert!(!prompt(&project, n).contains("7919") && !prompt(&project, n).contains("secret"));
    }
    assert_eq!(champion(&project.built(&[])), Some("r1.5,BLOCK=64".into()));
}

#[test]
#[ignore = "second tier: many rounds with an agent"]
fn what_is_told_does_not_depend_on_which_held_back_shapes_a_variant_serves() {
    // Wrong at every shape except the shown one. The tunable states the largest size that the variant serves.
    let mut asks: serde_json::Value =
        serde_json::from_str(&answer("y[i] = n == 70 ? 2.0f * x[i] + 1.0f : 0.0f;")).unwrap();
    asks["declaration"] =
        DECLARATION.replace("requires = []", "requires = [\"n == 70 or n > T\"]\ntune.T = [1000, 10000]").into();
    asks["branches"] = serde_json::json!([{ "T": 1000 }, { "T": 10000 }]);
    let manifest = MANIFEST.replace("repairs = 2", "repairs = 1");
    let project = project(&manifest, &[asks.to_string(), answer("y[i] = 2.0f * x[i] + 1.0f;")]);
    optimize(&project, &[]).expect(0);
    let told = prompt(&project, 2);
    let of = |t: &str| {
        let (_, rest) = told.split_once(&format!("T = {t}")).unwrap_or_else(|| panic!("{told}"));
        rest.split("The variant")
            .next()
            .unwrap()
            .split("# The rules")
            .next()
            .unwrap()
            .trim_start_matches([':', '\n'])
            .trim()
            .to_string()
    };
    assert_eq!(of("1000:"), of("10000:"), "{told}");
    assert!(told.contains("not correct at every shape"), "{told}");
}

#[test]
#[ignore = "second tier: many builds"]
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
fn exported_attempts_name_the_line_of_a_finding() {
    let manifest = MANIFEST.replace("repairs = 2", "repairs = 0");
    let project = project(&manifest, &[answer("y[i + 4096] = 2.0f * x[i] + 1.0f;")]);
    optimize(&project, &[]).expect(100);
    let output = project.command(&["export", "trajectories", "--offline"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.is_empty() && !text.contains("@{"), "{text}");
}

#[test]
#[ignore = "second tier: many builds"]
fn correct_attempts_are_exported_as_conversations_and_what_was_not_timed_is_in_no_band() {
    let project = project(&MANIFEST.replace("repairs = 2", "repairs = 0"), &[answer("y[i] = 2.0f * x[i] + 1.0f;")]);
    let export = |words: &[&str]| {
        let output = project.command(&[&["export", "trajectories", "--offline"], words].concat()).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    assert_eq!(export(&["--form", "sft"]).0, 4, "nothing is recorded");
    optimize(&project, &[]).expect(0);
    let (code, lines, _) = export(&["--form", "sft", "--dedup", "--balance"]);
    let line: serde_json::Value = serde_json::from_str(lines.trim_end()).unwrap();
    let message =
        |at: usize| (line["messages"][at]["role"].as_str().unwrap(), line["messages"][at]["content"].as_str().unwrap());
    assert_eq!((code, message(0).0, message(1).0), (0, "system", "user"), "{line}");
    assert!(prompt(&project, 1).contains(message(1).1), "{line}");
    assert_eq!(message(2).0, "assistant");
    assert_eq!(message(2).1.trim_end(), answer("y[i] = 2.0f * x[i] + 1.0f;"));
    let schema = project.command(&["schema", "conversation"]).output().unwrap().stdout;
    assert!(jsonschema::validator_for(&serde_json::from_slice(&schema).unwrap()).unwrap().is_valid(&line));

    let (_, lines, _) = export(&["--discount", "0.25"]);
    let line: serde_json::Value = serde_json::from_str(lines.trim_end()).unwrap();
    assert_eq!((&line["turn"]["discount"], &line["turn"]["index"]), (&0.25.into(), &0.into()));
    let logistic = &line["candidates"][0]["rewards"]["logistic"];
    assert_eq!(
        (logistic["at_least"].as_f64(), logistic["at_most"].as_f64()),
        (Some(0.0), Some(1.0)),
        "it was not timed"
    );
    let (code, _, said) = export(&["--runtime", "..1s"]);
    assert!(code == 4 && said.contains("no attempt passes the filters: 1 is recorded"), "{said}");
    for wrong in [["--runtime", "1..2"], ["--runtime", "2us..1us"], ["--discount", "1.5"], ["--form", "x"]] {
        assert_eq!(export(&wrong).0, 2, "{wrong:?}");
    }
}

#[test]
#[ignore = "second tier: many rounds with an agent"]
fn a_budget_is_that_of_all_questions_of_a_run_and_the_next_run_goes_on() {
    let command = "command = [\"./agent.sh\"]";
    let manifest = MANIFEST.replace(command, &format!("{command}\nbudget = {{ requests = 1 }}"));
    let project = project(&manifest, &[answer("y[i] = 0.0f;"), answer("y[i] = 2.0f * x[i] + 1.0f;")]);
    optimize(&project, &[]).expect(101).says("agent `a` has spent its budget of this run: 1 of 1 requests");
    assert_eq!(asked(&project), 1);
    optimize(&project, &[]).expect(0);
    assert_eq!(asked(&project), 2);
}

#[test]
fn a_kernel_without_an_agent_cannot_be_optimized() {
    let project = Project::new()
        .file("kernel.toml", &MANIFEST.replace("generate = {", "generate = { template = \"elementwise\" } #"));
    let built = optimize(&project, &[]);
    built.expect(4).says("no agent is declared for `k`").says("generate = { agent");
}

/// Files below a folder that contain a text.
fn holding(folder: &std::path::Path, text: &str) -> Vec<std::path::PathBuf> {
    let all = walkdir::WalkDir::new(folder).into_iter().filter_map(Result::ok).filter(|e| e.file_type().is_file());
    all.map(|e| e.into_path())
        .filter(|path| fs::read(path).is_ok_and(|b| b.windows(text.len()).any(|w| w == text.as_bytes())))
        .collect()
}

#[test]
fn a_run_that_is_killed_goes_on_where_it_was_and_asks_nothing_twice() {
    let project = project(MANIFEST, &[answer("y[i] = 2.0f * x[i] + 1.0f;")]);
    let mut running = project.command(&["optimize", "--offline"]).spawn().unwrap();
    // The run is killed as soon as the answer is recorded, while the answer is evaluated.
    let recorded = || {
        let answers = walkdir::WalkDir::new(project.home().join("answers")).into_iter().filter_map(Result::ok);
        answers.filter(|e| e.file_name() == "1-0.json").count() == 1
    };
    while !recorded() {
        assert!(running.try_wait().unwrap().is_none(), "it ended before it could be killed");
        std::thread::yield_now();
    }
    running.kill().unwrap();
    running.wait().unwrap();
    let built = optimize(&project, &[]).expect(0);
    assert_eq!((asked(&project), champion(&built)), (1, Some("r1,BLOCK=64".into())));
    // A kill between reply and record loses nothing either: the reply is on disk before it is read.
    for answer in walkdir::WalkDir::new(project.home().join("answers")).into_iter().filter_map(Result::ok) {
        if answer.file_name() == "1-0.json" {
            fs::remove_file(answer.path()).unwrap();
        }
    }
    let built = optimize(&project, &[]).expect(0);
    assert_eq!((asked(&project), champion(&built)), (1, Some("r1,BLOCK=64".into())));
}

/// A server that answers requests in order with these statuses and bodies, then stops. Returns its address and the full requests.
pub(crate) fn server(script: Vec<(u16, String)>) -> (String, std::thread::JoinHandle<Vec<String>>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = move || {
        let mut asked = vec![];
        for (status, body) in script {
            let (mut stream, _) = listener.accept().unwrap();
            asked.push(request(&mut stream));
            let reply = format!(
                "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nRetry-After: 0\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            std::io::Write::write_all(&mut stream, reply.as_bytes()).unwrap();
        }
        asked
    };
    (format!("http://{address}/v1"), std::thread::spawn(serve))
}

pub(crate) fn request(stream: &mut std::net::TcpStream) -> String {
    use std::io::Read;
    let (mut all, mut part) = (vec![], [0u8; 4096]);
    loop {
        let n = stream.read(&mut part).unwrap();
        all.extend_from_slice(&part[..n]);
        let text = String::from_utf8_lossy(&all).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|l| {
            l.to_ascii_lowercase().strip_prefix("content-length:").map(|n| n.trim().parse::<usize>().unwrap())
        });
        if n == 0 || length.is_some_and(|length| body.len() >= length) {
            return text;
        }
    }
}

pub(crate) fn completion(content: &str, finish: &str) -> (u16, String) {
    let body = serde_json::json!({
        "choices": [{ "message": { "role": "assistant", "content": content }, "finish_reason": finish }],
        "usage": { "prompt_tokens": 1000, "completion_tokens": 100 },
    });
    (200, body.to_string())
}

#[test]
#[ignore = "second tier: many rounds with an agent"]
fn an_endpoint_is_asked_as_often_as_it_must_be_and_its_key_is_nowhere() {
    const KEY: &str = "sk-secret-0123456789";
    let attack = answer("{ y[i] = 2.0f * x[i] + 1.0f; system(\"touch escaped\"); }")
        .replace("template <int", "extern \\\"C\\\" int system(const char*);\\ntemplate <int");
    let good = answer("y[i] = 2.0f * x[i] + 1.0f;");
    let (url, server) = server(vec![
        (429, "{}".into()),
        completion(&good[..good.len() / 2], "length"),
        completion(&attack, "stop"),
        completion(&answer("y[i] = x[i];"), "stop"),
        completion(&format!("Here it is:\n```json\n{good}\n```"), "stop"),
    ]);
    let manifest = MANIFEST.replace(
        "command = [\"./agent.sh\"]",
        &format!("http = \"{url}\"\nmodel = \"m\"\nkey = \"TEST_KEY\"\nprices = {{ input = 3, output = 15 }}"),
    );
    let project = Project::new().file("kernel.toml", &manifest).var("TEST_KEY", KEY);
    let refused = project.command(&["optimize"]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(101) && said.contains("you have not permitted"), "{said}");
    let project = project.var("KFORGE_AGENTS_KEYS", "TEST_KEY=127.0.0.1");
    let output = project.command(&["optimize", "--message-format", "json"]).output().unwrap();
    let built = Built::last_of(&output).expect(0);
    let asked = server.join().unwrap();
    assert_eq!((asked.len(), champion(&built)), (5, Some("r1.2,BLOCK=64".into())));
    assert!(asked.iter().all(|a| a.contains(&format!("Bearer {KEY}")) && !a.contains("7919")), "{asked:?}");
    assert!(asked[3].contains("the kernel tried to"), "it is told what its kernel tried: {}", asked[3]);
    assert!(built.stderr().contains("4400 tokens"), "{}", built.stderr());
    // The key is in no file and in no output.
    let keys = holding(project.place(), KEY);
    assert!(keys.is_empty(), "{keys:?}");
    assert!(!built.stderr().contains(KEY) && !String::from_utf8_lossy(&output.stdout).contains(KEY));
    // Without the server and without the key, the same build asks nothing and gives the same result.
    let replayed = Project::var(project, "TEST_KEY", "").built(&[]);
    assert_eq!((replayed.count("executed"), champion(&replayed)), (0, Some("r1.2,BLOCK=64".into())));
}

#[test]
fn without_a_network_or_a_key_nobody_is_asked_and_nothing_is_lost() {
    let (http, key) = ("http = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"", "\nkey = \"NO_SUCH_KEY\"");
    let with = |rest: &str| MANIFEST.replace("command = [\"./agent.sh\"]", rest);
    let offline = Project::new().file("kernel.toml", &with(http));
    let output = offline.command(&["optimize", "--offline"]).output().unwrap();
    assert_eq!(output.status.code(), Some(101));
    assert!(String::from_utf8_lossy(&output.stderr).contains("kforge is offline"), "{output:?}");
    let keyless = Project::new().file("kernel.toml", &with(&format!("{http}{key}")));
    let keyless = keyless.var("KFORGE_AGENTS_KEYS", "NO_SUCH_KEY=127.0.0.1");
    let output = keyless.command(&["optimize"]).output().unwrap();
    assert_eq!(output.status.code(), Some(101));
    assert!(String::from_utf8_lossy(&output.stderr).contains("`NO_SUCH_KEY` is not set"), "{output:?}");
    assert_eq!(keyless.built(&[]).count("unavailable"), 1);
}
