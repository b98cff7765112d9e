//! Baselines beside champions: what they are keyed by, what a report and a score say of them, and what a machine without PyTorch says. The system's PyTorch is
//! a module of this test in a virtual environment; the virtual device stands in for its process.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::lab::{Lab, Machine, champion, steps};
use crate::project::ids;

pub(crate) const BASELINES: &str = r#"
[baseline.eager]
source = "fast.py::twice"

[baseline.tuned]
how = "compile"
mode = "max-autotune"
source = "fast.py::twice"

[baseline.wrong]
source = "fast.py::wrong"
"#;

pub(crate) const RULES: &str = r#"
[[baseline]]
matches = '^eager fast.py::twice on Virtual H$'
ns = 3000.0
call-ns = 9000.0
[[baseline]]
matches = '^compile (max-autotune )?fast.py::twice'
ns = 1500.0
call-ns = 20000.0
waits = true
[[baseline]]
matches = '^eager fast.py::wrong'
ns = 10.0
call-ns = 20.0
error = 1.0
"#;

pub(crate) const FAST: &str = "def twice(x):\n    return 2 * x + 1\n\n\ndef wrong(x):\n    return x\n";

/// A virtual environment whose Python imports a module `torch` of this release; none, with a message, if there is no Python that makes one.
pub(crate) fn python(lab: &Lab, release: &str) -> Option<PathBuf> {
    let venv = lab.project.place().join("venv");
    let python = ["/usr/local/bin/python3", "/usr/bin/python3"].into_iter().find(|path| PathBuf::from(path).exists());
    let made = python.map(|python| Command::new(python).args(["-m", "venv", "--without-pip"]).arg(&venv).output());
    if !made.is_some_and(|made| made.is_ok_and(|made| made.status.success())) {
        kforge::base::testing::skipped("no Python here makes a virtual environment");
        return None;
    }
    let library = fs::read_dir(venv.join("lib")).unwrap().next().unwrap().unwrap().path();
    let torch = library.join("site-packages/torch");
    fs::create_dir_all(&torch).unwrap();
    fs::write(torch.join("__init__.py"), format!("__version__ = \"{release}\"\n")).unwrap();
    fs::create_dir(library.join("site-packages/nvidia_cublas-13.0.0.19.dist-info")).unwrap();
    Some(venv.join("bin/python3"))
}

fn lab(rules: &str) -> Lab {
    let machine = Machine { noise: 0.0, ..Machine::with(&[(1, 2000.0), (2, 1000.0), (4, 1500.0)]) };
    let lab = Lab::new(&machine);
    let scenario = fs::read_to_string(&lab.scenario).unwrap();
    fs::write(&lab.scenario, scenario + rules).unwrap();
    let manifest = fs::read_to_string(lab.project.root().join("kernel.toml")).unwrap();
    lab.project.write("kernel.toml", &format!("{manifest}{BASELINES}"));
    lab.project.write("fast.py", FAST);
    lab
}

/// The lab with a PyTorch.
fn with_torch(rules: &str) -> Option<Lab> {
    let lab = lab(rules);
    let python = python(&lab, "2.11.0")?;
    Some(Lab { project: lab.project.clone().var("KFORGE_TOOLCHAIN_PYTHON", python), ..lab })
}

pub(crate) fn told(lab: &Lab, words: &[&str], code: i32) -> String {
    let output = lab.project.command(words).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

/// What the report says of each baseline, by name.
fn baselines(lab: &Lab) -> Value {
    let all = lab.target()["baselines"].as_array().cloned().unwrap_or_default();
    Value::Object(all.into_iter().map(|one| (one["baseline"].as_str().unwrap().to_string(), one)).collect())
}

const AT: &str = "p/k/V=2/h/big/against";

#[test]
fn baselines_are_timed_beside_the_champion_and_rated() {
    let Some(lab) = with_torch(RULES) else { return };
    let built = lab.built(&[]);
    assert_eq!(champion(&built), ("V=2".into(), false), "a baseline is never champion");
    let all = ["eager", "tuned", "wrong"].map(|name| format!("{AT}/{name}/baseline"));
    assert_eq!(steps(&built, "baseline", "executed"), ids(&all.each_ref().map(String::as_str)));
    let found = baselines(&lab);
    let thousandths = |value: &Value| (value.as_f64().unwrap() * 1000.0).round() as i64;
    let eager = &found["eager"];
    assert_eq!((&eager["shape"], &eager["variant"]), (&json!("big"), &json!("V=2")));
    let rating = &eager["rating"];
    assert_eq!(rating["verdict"], "pass", "{rating}");
    assert_eq!(thousandths(&rating["ratio"]["median"]), 3000);
    assert_eq!((&rating["call_ns"], &rating["device_ns"]), (&json!(9000.0), &json!(3000.0)));
    assert_eq!((&rating["champion_ns"], &rating["runs"]), (&json!(1000.0), &json!("PyTorch of fast.py::twice")));
    let tuned = &found["tuned"]["rating"];
    assert_eq!((thousandths(&tuned["ratio"]["median"]), &tuned["waited"]), (1500, &json!(true)));
    let wrong = &found["wrong"]["rating"];
    assert!(wrong["verdict"]["fail"].as_str().unwrap().contains("`y`") && wrong["ratio"].is_null(), "{wrong}");
    let verdicts = lab.target()["verdicts"]["fail"].as_u64().unwrap_or(0);
    assert_eq!(verdicts, 0, "a wrong baseline is no wrong kernel");
    let again = lab.built(&[]);
    assert_eq!(again.count("executed"), 0, "and nothing again");
}

#[test]
fn a_report_shows_host_time_and_device_time_apart_and_a_score_takes_pairs() {
    let Some(lab) = with_torch(RULES) else { return };
    lab.built(&[]);
    let text = told(&lab, &["report"], 0);
    for part in [
        "big  eager  call   9.00 us, device   3.00 us  3.000 (3.000 to 3.000) of the champion's 1.00 us",
        "PyTorch of fast.py::twice, torch 2.11.0",
        "torch.compile (max-autotune) of fast.py::twice",
        "its device time includes time of the host",
        "wrong: `y`",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let markdown = told(&lab, &["report", "--format", "markdown"], 0);
    assert!(
        markdown.contains("| k | h | big | eager | 9.00 us | 3.00 us | 1.00 us | 3.000 (3.000 to 3.000) |"),
        "{markdown}"
    );
    let explained = told(&lab, &["explain", "k"], 0);
    assert!(explained.contains("big  eager  call   9.00 us"), "{explained}");
    let score = |form: &str, name: &str| {
        let text = told(&lab, &["report", "--format", "json", "--score", form, "--baseline", name], 0);
        let found: Value = serde_json::from_str(&text).unwrap();
        found["candidates"][0]["score"]["at_least"].as_f64().map(|score| (score * 1000.0).round() as i64)
    };
    assert_eq!((score("speedup", "eager"), score("logistic", "eager")), (Some(3000), Some(750)));
    assert_eq!(score("speedup", "tuned"), Some(1500));
    assert_eq!(score("speedup", "declared"), Some(2000), "as before");
    let wrong = told(&lab, &["report", "--score", "speedup", "--baseline", "wrong"], 0);
    assert!(wrong.contains("unknown: the baseline is wrong, so its time at big does not count"), "{wrong}");
    let none = told(&lab, &["report", "--score", "speedup", "--baseline", "eger"], 4);
    assert!(
        none.contains("a baseline (`eager`, `tuned`, `wrong`)") && none.contains("did you mean `eager`?"),
        "{none}"
    );
}

#[test]
#[ignore = "second tier: many builds"]
fn an_edit_of_a_baseline_measures_what_calls_it_and_nothing_else() {
    let Some(lab) = with_torch(RULES) else { return };
    lab.built(&[]);
    let again = |edit: &dyn Fn()| {
        edit();
        let built = lab.built(&[]);
        let executed: Vec<String> =
            built.executed().into_iter().filter(|id| !id.ends_with("/rate") && !id.ends_with("/oracle")).collect();
        executed
    };
    let all = ["eager", "tuned", "wrong"].map(|name| format!("{AT}/{name}/baseline"));
    assert_eq!(again(&|| lab.project.edit("fast.py", "return x\n", "return 3 * x\n")), all, "one file holds them all");
    assert_eq!(again(&|| lab.project.edit("kernel.toml", "mode = \"max-autotune\"\n", "")), [all[1].as_str()]);
    let site = lab.project.place().join("venv/lib");
    let site = fs::read_dir(site).unwrap().next().unwrap().unwrap().path().join("site-packages");
    let renamed = || {
        fs::rename(site.join("nvidia_cublas-13.0.0.19.dist-info"), site.join("nvidia_cublas-13.1.0.3.dist-info"))
            .unwrap();
    };
    assert_eq!(again(&renamed), all, "another cuBLAS");
    assert_eq!(again(&|| fs::write(site.join("torch/__init__.py"), "__version__ = \"2.12.0\"\n").unwrap()), all);
    let other_name = || lab.project.edit("kernel.toml", "[baseline.wrong]", "[baseline.renamed]");
    assert_eq!(again(&other_name), [""; 0], "names are in no key");
}

#[test]
fn a_baseline_that_raises_is_wrong_and_harms_nothing() {
    let rules = RULES.replace("error = 1.0", "raises = \"`fast.py::wrong` raised ValueError: no\"");
    let Some(lab) = with_torch(&rules) else { return };
    lab.built(&["--require-evidence"]);
    let found = baselines(&lab);
    let wrong = &found["wrong"]["rating"];
    assert!(wrong["verdict"]["fail"].as_str().unwrap().contains("raised ValueError") && wrong["device_ns"].is_null());
    assert!(found["eager"]["rating"]["ratio"].is_object());
}

#[test]
#[ignore = "second tier: many builds"]
fn without_pytorch_or_with_a_release_of_ours_baselines_are_unknown_and_say_what_to_do() {
    let lab = lab(RULES);
    let empty = lab.project.place().join("bare");
    let made = Command::new("/usr/bin/python3").args(["-m", "venv", "--without-pip"]).arg(&empty).output();
    if !made.is_ok_and(|made| made.status.success()) {
        kforge::base::testing::skipped("no Python here makes a virtual environment");
        return;
    }
    let project = lab.project.clone().var("KFORGE_TOOLCHAIN_PYTHON", empty.join("bin/python3"));
    let lab = Lab { project, ..lab };
    lab.built(&["--require-evidence"]);
    let text = told(&lab, &["report"], 0);
    assert!(text.contains("unavailable 3 baseline") && text.contains("-m pip install torch"), "{text}");
    let score = told(&lab, &["report", "--score", "speedup", "--baseline", "eager"], 0);
    assert!(score.contains("unknown: the baseline `eager` was not timed beside it"), "{score}");
    let lab = lab.manifest("[toolchain]\n", "[toolchain]\ntorch = \"2.9.1\"\n");
    lab.built(&[]);
    let text = told(&lab, &["report"], 0);
    assert!(text.contains("unavailable 3 baseline"), "{text}");
    assert!(text.contains("state `toolchain.torch = { release = \"2.9.1\", cuda = true }`"), "{text}");
    assert!(text.contains("or `toolchain.torch = \"system\"`"), "{text}");
    let lab = lab.manifest("torch = \"2.9.1\"", "torch = { release = \"2.9.1\", cuda = true }");
    lab.built(&[]);
    let text = told(&lab, &["report"], 0);
    assert!(text.contains("unavailable 3 baseline"), "{text}");
    assert!(text.contains("kforge.lock names no wheels for PyTorch 2.9.1 with CUDA"), "{text}");
}
