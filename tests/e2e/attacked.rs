//! Rounds against answers that attack, and against leaks that could reveal holdout shapes to an agent. Each attack becomes a named finding of its attempt, and
//! the rounds continue.

use std::fs;

use crate::asked::without;
use crate::project::{Built, Project};
use crate::rounds::{DECLARATION, MANIFEST, answer, asked, champion, optimize, project, prompt, source};

const RIGHT: &str = "y[i] = 2.0f * x[i] + 1.0f;";

/// An answer whose source has code before the kernel and in its body, and with another declaration.
fn with(before: &str, body: &str, declaration: &str) -> String {
    let source = format!("{before}{}", source(body));
    serde_json::json!({ "declaration": declaration, "source": source, "branches": [{ "BLOCK": 64 }] }).to_string()
}

/// A manifest that allows this many repairs.
fn repaired(times: usize) -> String {
    MANIFEST.replace("repairs = 2", &format!("repairs = {times}"))
}

/// Runs rounds whose first answers attack and whose last is correct, and checks what each prompt reports of the previous answer.
#[track_caller]
fn survived(attacks: &[(&str, String)]) -> (Project, Built) {
    let mut answers: Vec<String> = attacks.iter().map(|(_, answer)| answer.clone()).collect();
    answers.push(answer(RIGHT));
    let project = project(&repaired(attacks.len()), &answers);
    let built = optimize(&project, &[]).expect(0);
    assert_eq!(asked(&project) as usize, answers.len(), "{}", built.stderr());
    for (n, (why, _)) in attacks.iter().enumerate() {
        let told = prompt(&project, n as u32 + 2);
        assert!(told.contains(why), "{why}: {told}");
    }
    assert_eq!(champion(&built), Some(format!("r1.{},BLOCK=64", attacks.len())), "{}", built.stderr());
    (project, built)
}

/// The contents of a system file that no agent may read.
fn secret() -> String {
    let all = fs::read_to_string("/etc/passwd").unwrap();
    all.lines().find(|line| line.starts_with("root:")).unwrap().to_string()
}

#[test]
#[ignore = "second tier: many attempts at escape"]
fn sources_that_name_files_read_none_and_the_rounds_go_on() {
    let attacks = [
        ("`#include \"/etc/passwd\"`", with("#include \"/etc/passwd\"\n", RIGHT, DECLARATION)),
        ("", with("#include \"../../../../etc/passwd\"\n", RIGHT, DECLARATION)),
        ("", with("#inc\\\nlude \"/etc/passwd\"\n", RIGHT, DECLARATION)),
        ("", with("/**/#/**/include/**/\"/etc/passwd\"\n", RIGHT, DECLARATION)),
        ("", with("%:include \"/etc/passwd\"\n", RIGHT, DECLARATION)),
        ("does not compile", with("#line 1 \"/etc/passwd\"\nnot C++;\n", RIGHT, DECLARATION)),
        ("does not compile", with("asm(\".incbin \\\"/etc/passwd\\\"\");\n", RIGHT, DECLARATION)),
        ("does not compile", with("asm(\".include \\\"/etc/passwd\\\"\");\n", RIGHT, DECLARATION)),
    ];
    let (project, built) = survived(&attacks);
    let secret = secret();
    for n in 1..=asked(&project) {
        assert!(!prompt(&project, n).contains(&secret), "{}", prompt(&project, n));
    }
    assert!(!built.stderr().contains(&secret), "{}", built.stderr());
}

#[test]
#[ignore = "second tier: compiles many sources"]
fn sources_that_redefine_what_they_are_run_by_gain_nothing() {
    let wrong = "y[i] = 0.0f;";
    let attacks = [
        // None of these changes makes the kernel correct.
        ("", with("#define atol 1e30\n#define main kforge_main\nint main() { return 0; }\n", wrong, DECLARATION)),
        ("", with("_Pragma(\"GCC poison kforge\")\n", wrong, DECLARATION)),
        ("", with("#define __global__ static inline\n#undef __CUDA_ARCH__\n", wrong, DECLARATION)),
    ];
    survived(&attacks);
}

#[test]
fn machine_code_in_a_source_proves_nothing() {
    // Opens a socket by a system call without calling a function. Inline machine code is not emulated, so the kernel must not count as correct.
    let call = "{ long r; asm volatile(\"syscall\" : \"=a\"(r) : \"a\"(41L), \"D\"(2L), \"S\"(1L), \"d\"(0L) : \"rcx\", \"r11\", \"memory\"); y[i] = 2.0f * x[i] + 1.0f; }";
    let project = project(&repaired(1), &[with("", call, DECLARATION)]);
    let built = optimize(&project, &[]);
    assert_eq!(asked(&project), 1);
    assert!(
        built.stderr().contains("not known to be correct") && !built.stderr().contains("a kernel is correct"),
        "{}",
        built.stderr()
    );
}

#[test]
fn declarations_with_words_for_a_shell_or_a_compiler_are_refused_by_name() {
    let entry = |entry: &str| with("", RIGHT, &DECLARATION.replace("k<BLOCK>", entry));
    let attacks = [
        ("unknown name `touch` in an entry", entry("k<BLOCK>; touch escaped")),
        ("has no kernel `$`", entry("$(touch escaped)")),
        ("unknown name `touch` in an entry", entry("k<BLOCK>`touch escaped`")),
        ("unknown name `system` in an entry", entry("k<BLOCK>(x); system(\\\"touch escaped\\\"); //")),
        ("has no kernel `../k`", entry("../k")),
    ];
    let (project, _) = survived(&attacks);
    let touched = walkdir::WalkDir::new(project.place()).into_iter().filter_map(Result::ok);
    assert_eq!(touched.filter(|e| e.file_name() == "escaped").count(), 0);
}

/// Everything that could reveal holdout shapes: names, numbers, their products and neighbors, in any base, and seeds.
fn tells(text: &str) -> Option<&'static str> {
    let secrets = [
        "quiet",
        "hush",
        "7919",
        "11003",
        "7918",
        "11002",
        "7920",
        "11004",
        "87132757",
        "1eef",
        "1EEF",
        "2afb",
        "2AFB",
        "918273645",
        "36bb962d",
    ];
    secrets.into_iter().find(|secret| text.contains(secret))
}

#[test]
#[ignore = "second tier: many attempts at escape"]
fn nothing_that_an_agent_is_handed_tells_what_is_held_back() {
    // One holdout shape in the manifest, and another with seeds in an overlay outside of the package.
    let manifest = repaired(9)
        .replace("dims = [\"n\"]", "dims = [\"n\", \"m\"]")
        .replace("shape = [\"n\"]", "shape = [\"n\", \"m\"]")
        .replace("{ n = 70 }", "{ n = 7, m = 10 }")
        .replace("{ n = 7919, role", "{ n = 7919, m = 3, role")
        .replace("generate = {", "generate = { exemplars = \"workspace\",");
    let declaration =
        DECLARATION.replace("ceil_div(n, BLOCK)", "ceil_div(n * m, BLOCK)").replace("\"n\"]", "\"n\", \"m\"]");
    let source = |before: &str, body: &str| {
        format!(
            "{before}template <int BLOCK> __global__ void k(const float* x, float* y, int n, int m) {{\n  int i = blockIdx.x * BLOCK + threadIdx.x;\n  if (i < n * m) {body}\n}}\n"
        )
    };
    let made = |before: &str, body: &str, declaration: &str| {
        serde_json::json!({ "declaration": declaration, "source": source(before, body), "branches": [{ "BLOCK": 64 }] })
            .to_string()
    };
    let right = "y[i] = 2.0f * x[i] + 1.0f;";
    let answers = [
        // Wrong at every shape, at compile time, at run time, only at holdout shapes, or through launches and domains that depend on the shapes: every way to
        // get details.
        made("", "y[i] = float(n) * 1000.0f + float(m);", &declaration),
        made("static_assert(BLOCK_ == 7, \"no\");\n", right, &declaration),
        made("", "y[i] = n == 7 ? 2.0f * x[i] + 1.0f : 0.0f;", &declaration),
        made(
            "",
            "{ if (n != 7) { int big = n * m; y[big * 4096L] = float(n); } y[i] = 2.0f * x[i] + 1.0f; }",
            &declaration,
        ),
        made(
            "",
            "{ if (n != 7) { printf(\"n = %d, m = %d\\n\", n, m); assert(n == 7); } y[i] = 2.0f * x[i] + 1.0f; }",
            &declaration,
        ),
        made(
            "",
            "{ if (n != 7) { volatile int* p = (volatile int*)(long)n; *p = m; } y[i] = 2.0f * x[i] + 1.0f; }",
            &declaration,
        ),
        made("", right, &declaration.replace("ceil_div(n * m, BLOCK)", "n / 7")),
        made("", right, &declaration.replace("block = [\"BLOCK\"]", "block = [\"BLOCK\"]\nshared = \"n * 1000\"")),
        made("", right, &declaration.replace("requires = []", "requires = [\"n == 7\"]")),
        made("", right, &declaration),
    ];
    let project = project(&manifest, &answers);
    let agent = fs::read_to_string(project.root().join("agent.sh")).unwrap();
    let told = project.place().join("told");
    project.write("agent.sh", &format!("{agent}env > {0}/env-$n\necho \"$@\" > {0}/words-$n\n", told.display()));
    let overlay = project.place().join("private.toml");
    fs::write(
        &overlay,
        "[operator.twice]\nseeds = [918273645]\nshapes.hush = { n = 5, m = 11003, role = \"holdout\" }\n",
    )
    .unwrap();
    let built = optimize(&project, &["--overlay", overlay.to_str().unwrap()]).expect(0);
    assert_eq!(asked(&project) as usize, answers.len(), "{}", built.stderr());
    for n in 1..=asked(&project) {
        for name in [format!("prompt-{n}"), format!("env-{n}"), format!("words-{n}")] {
            let text = fs::read_to_string(told.join(&name)).unwrap();
            assert_eq!(tells(&text), None, "{name}: {text}");
        }
    }
    assert!(prompt(&project, 4).contains("not correct at every shape") && prompt(&project, 2).contains("small"));
    // Exported trajectories reveal no more, and the recorded prompts are the exported ones.
    let exported = project.command(&["export", "trajectories", "--offline"]).output().unwrap();
    let exported = String::from_utf8(exported.stdout).unwrap();
    assert!(exported.lines().count() >= answers.len(), "{exported}");
    for line in exported.lines() {
        let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
        without(&mut value);
        assert_eq!(tells(&value.to_string()), None, "{value}");
    }
}

#[test]
#[ignore = "second tier: many attempts at escape"]
fn a_file_of_the_package_that_tells_what_is_held_back_is_warned_of() {
    let telling = MANIFEST
        .replace("reference = { builtin = \"elementwise\", y = \"2 * x + 1\" }", "reference = \"ref.py::twice\"");
    let project = project(&telling, &[answer(RIGHT)])
        .file("ref.py", "def twice(x):\n    # checked at 7919\n    return [2 * v + 1 for v in x]\n");
    let built = optimize(&project, &[]);
    assert!(
        built.stderr().contains("its operator reveals a holdout shape, and prompts show it to agents"),
        "{}",
        built.stderr()
    );
}
