//! Kernels in PyTorch: modules that cheat or err in each way that such a module can, and unusual modules that are correct. The former are refused for the right
//! reason, and the latter pass. `torch_candidates/expected.toml` states what is found of each. Here they run on `cpu`.
//!
//! The second tier installs the part of PyTorch that runs on processors below `target/kforge-test-home` when it is missing, which needs the network and 1.7 GB.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::folders::folder;
use serde::Deserialize;
use serde_json::Value;

/// `expected.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    /// Regular expressions for verdicts.
    reason: BTreeMap<String, String>,
    cheat: BTreeMap<String, String>,
    honest: BTreeMap<String, Honest>,
    /// Regular expressions for verdicts, by kernel.
    timed: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Honest {
    operator: String,
    function: String,
}

fn suite() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/torch_candidates")
}

fn expected() -> Expected {
    toml::from_str(&fs::read_to_string(suite().join("expected.toml")).unwrap()).unwrap()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap().map(Result::unwrap).filter(|file| file.path().is_file()) {
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

/// Links the files of a folder into another one.
#[cfg(any(debug_assertions, feature = "virtual-device"))]
fn link(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => link(&entry.path(), &to),
            false => fs::hard_link(entry.path(), to).unwrap(),
        }
    }
}

/// A package with some kernels of the suite, in a folder of its own.
struct Lab {
    folder: tempfile::TempDir,
    home: tempfile::TempDir,
    /// The Python and the scenario of a machine with a device.
    on_device: Option<(PathBuf, PathBuf)>,
}

impl Lab {
    /// `kernels` are names with an operator, a function and further keys.
    fn new(of: &str, kernels: &[(&str, &str, &str, &str)]) -> Self {
        let lab = Lab { folder: folder(), home: folder(), on_device: None };
        let mut manifest = fs::read_to_string(suite().join("operators.toml")).unwrap();
        copy(&suite().join("reference"), &lab.path("reference"));
        for (name, operator, function, more) in kernels {
            copy(&suite().join(of).join(name), &lab.path(name));
            write!(
                manifest,
                "\n[kernel.{name}]\noperator = \"{operator}\"\nlanguage = \"torch\"\nsource = \"{name}/kernel.py::{function}\"\n{more}\n"
            )
            .unwrap();
        }
        fs::write(lab.path("kernel.toml"), manifest).unwrap();
        let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/torch/kforge.lock");
        fs::copy(lock, lab.path("kforge.lock")).unwrap();
        lab
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn edit(&self, name: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(name)).unwrap();
        assert!(text.contains(from), "{name} has no {from}");
        fs::write(self.path(name), text.replacen(from, to, 1)).unwrap();
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a test stands where a shell does, and hands PATH and the index of packages on"
    )]
    fn run(&self, words: &[&str]) -> Ran {
        // Only the program of this build has devices for which the processor stands in.
        let program =
            if self.on_device.is_some() { env!("CARGO_BIN_EXE_kforge").into() } else { crate::program::program() };
        let mut command = Command::new(program);
        command.args(words).current_dir(self.folder.path()).env_clear().stdin(Stdio::null());
        command.env("KFORGE_HOME", self.home.path()).env("KFORGE_BUILD_TIME_LIMIT", "30s");
        let passed = |name: &str| {
            matches!(name, "PATH" | "HOME") || name.starts_with("PIP_") || name.to_lowercase().ends_with("_proxy")
        };
        for (name, value) in std::env::vars().filter(|(name, _)| passed(name)) {
            command.env(name, value);
        }
        if let Some(python) = crate::python::python() {
            command.env("KFORGE_TOOLCHAIN_PYTHON", python);
        }
        if let Some((python, scenario)) = &self.on_device {
            command.env("KFORGE_TOOLCHAIN_PYTHON", python).env("KFORGE_VIRTUAL_DEVICE", scenario);
        }
        let done = command.output().unwrap();
        let out = String::from_utf8_lossy(&done.stdout).into_owned();
        let lines = out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Ran { lines, said: format!("{out}{}", String::from_utf8_lossy(&done.stderr)), code: done.status.code() }
    }

    /// The same with PyTorch, which is installed once for all tests; none if it cannot be.
    fn installed(self) -> Option<Self> {
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("kforge-test-home/toolchains");
        fs::create_dir_all(&kept).unwrap();
        std::os::unix::fs::symlink(&kept, self.home.path().join("toolchains")).unwrap();
        let fetched = self.run(&["fetch"]);
        if fetched.code != Some(0) {
            kforge::base::testing::skipped(&format!("PyTorch cannot be installed: {}", fetched.said));
            return None;
        }
        Some(self)
    }

    /// The same on a machine with a device, for which the processor stands in: the process of a kernel keeps its tensors apart from the verifier's memory. The
    /// second part is removed with the Python of that machine, which imports the PyTorch that was installed.
    #[cfg(any(debug_assertions, feature = "virtual-device"))]
    fn on_a_device(self) -> Option<(Self, tempfile::TempDir)> {
        let lab = self.installed()?;
        let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let venv = place.path().join("venv");
        let python = crate::python::python()?;
        let made = Command::new(python).args(["-m", "venv", "--without-pip"]).arg(&venv).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let site = fs::read_dir(venv.join("lib")).unwrap().next().unwrap().unwrap().path().join("site-packages");
        let kept = fs::read_dir(lab.home.path().join("toolchains")).unwrap().map(|entry| entry.unwrap().path());
        let torch = kept.into_iter().find(|folder| folder.join("torch/__init__.py").exists()).unwrap();
        link(&torch, &site);
        // Beside the libraries that need them, they are found without being asked for.
        link(&torch.join("kforge-stubs"), &site.join("torch/lib"));
        let scenario = place.path().join("scenario.toml");
        let device = "torch = true\n[[device]]\nproduct = \"Virtual H\"\narch = \"sm_90\"\ndriver = \"580.1\"\n";
        fs::write(&scenario, device).unwrap();
        lab.edit("kernel.toml", "torch = \"2.15\"", "torch = \"system\"");
        lab.edit("kernel.toml", "[targets.cpu]", "[targets.h]\narch = \"sm_90a\"");
        Some((Lab { on_device: Some((venv.join("bin/python3"), scenario)), ..lab }, place))
    }

    fn report(&self) -> Value {
        serde_json::from_slice(&fs::read(self.path("target/kforge/report.json")).unwrap()).unwrap()
    }

    /// The messages of the report.
    fn messages(&self) -> Vec<Value> {
        self.report()["packages"][0]["messages"].as_array().unwrap().clone()
    }

    /// The entry of each kernel and shape in the report.
    fn shapes(&self) -> BTreeMap<String, Vec<Value>> {
        let report = self.report();
        let kernels = report["packages"][0]["kernels"].as_array().unwrap();
        let shapes = |kernel: &Value| kernel["targets"][0]["shapes"].as_array().unwrap().clone();
        kernels.iter().map(|kernel| (kernel["name"].as_str().unwrap().to_string(), shapes(kernel))).collect()
    }
}

struct Ran {
    lines: Vec<Value>,
    said: String,
    code: Option<i32>,
}

impl Ran {
    /// The number of steps of a kind that were executed.
    fn executed(&self, kind: &str) -> usize {
        let of = |line: &&Value| line["reason"] == "step-finished" && line["kind"] == kind;
        self.lines.iter().filter(of).filter(|line| line["outcome"].to_string().contains("executed")).count()
    }
}

#[test]
fn every_kernel_of_the_suite_has_an_expectation() {
    let expected = expected();
    let folders = |of: &str| -> BTreeSet<String> {
        let all = fs::read_dir(suite().join(of)).unwrap().map(|entry| entry.unwrap().file_name());
        all.map(|name| name.into_string().unwrap()).collect()
    };
    assert_eq!(folders("cheats"), expected.cheat.keys().cloned().collect());
    assert_eq!(folders("honest"), expected.honest.keys().cloned().collect());
    assert_eq!(folders("timed"), expected.timed.keys().cloned().collect());
    expected.timed.values().for_each(|words| drop(regex::Regex::new(words).unwrap()));
    assert!(expected.cheat.len() >= 30 && expected.honest.len() >= 15);
    let used: BTreeSet<&String> = expected.cheat.values().collect();
    assert_eq!(used, expected.reason.keys().collect());
    expected.reason.values().for_each(|words| drop(regex::Regex::new(words).unwrap()));
    for (of, name) in expected
        .cheat
        .keys()
        .map(|name| ("cheats", name))
        .chain(expected.honest.keys().map(|name| ("honest", name)))
        .chain(expected.timed.keys().map(|name| ("timed", name)))
    {
        let text = fs::read_to_string(suite().join(of).join(name).join("kernel.py")).unwrap();
        assert!(text.starts_with("# ") && text.lines().next().unwrap().ends_with('.'), "{name} says what it does");
    }
}

#[test]
fn every_kernel_of_the_suite_for_gpus_has_an_expectation() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gpu/torch_candidates");
    let own: toml::Table = toml::from_str(&fs::read_to_string(place.join("expected.toml")).unwrap()).unwrap();
    let keys = |of: &str| -> BTreeSet<String> { own[of].as_table().unwrap().keys().cloned().collect() };
    let folders = |of: &str| -> BTreeSet<String> {
        let all = fs::read_dir(place.join(of)).unwrap().map(|entry| entry.unwrap().file_name());
        all.map(|name| name.into_string().unwrap()).collect()
    };
    let common = expected();
    // Others of its expectations are of the common suite, where a device shows something else.
    let apart: BTreeSet<String> = keys("cheat").difference(&folders("cheats")).cloned().collect();
    assert!(folders("cheats").is_subset(&keys("cheat")) && apart.iter().all(|name| common.cheat.contains_key(name)));
    for of in ["honest", "beside"] {
        assert_eq!(folders(of), keys(of));
    }
    assert_eq!(folders("policies"), keys("policy"));
    assert!(keys("left-out").iter().all(|name| common.honest.contains_key(name)));
    let known = |reason: &toml::Value| {
        let reason = reason.as_str().unwrap();
        own["reason"].get(reason).is_some() || common.reason.contains_key(reason)
    };
    assert!(own["cheat"].as_table().unwrap().values().all(known));
    for words in own["reason"].as_table().unwrap().values() {
        drop(regex::Regex::new(words.as_str().unwrap()).unwrap());
    }
}

#[test]
#[ignore = "second tier: many processes with PyTorch; needs the network once"]
fn every_module_that_cheats_is_refused_for_its_reason() {
    let expected = expected();
    let kernels = cheats(&expected);
    let Some(lab) = Lab::new("cheats", &kernels).installed() else { return };
    refused(&lab, &expected);
}

/// Every module that cheats, with what is called of it.
fn cheats(expected: &Expected) -> Vec<(&str, &str, &str, &str)> {
    expected.cheat.keys().map(|name| (name.as_str(), "linear", "ModelNew", "")).collect()
}

/// Each of them is refused for its reason.
fn refused(lab: &Lab, expected: &Expected) {
    let ran = lab.run(&["build", "--keep-going"]);
    assert_eq!(ran.code, Some(100), "{}", ran.said);
    let found = lab.shapes();
    let mut missed = vec![];
    for (name, reason) in &expected.cheat {
        let words = regex::Regex::new(&expected.reason[reason]).unwrap();
        let verdicts: Vec<&Value> = found[name].iter().map(|shape| &shape["verdict"]).collect();
        if !verdicts.iter().all(|verdict| verdict["fail"].as_str().is_some_and(|text| words.is_match(text))) {
            missed.push(format!("{name}: expected `{reason}`, found {verdicts:?}"));
        }
    }
    assert!(missed.is_empty(), "{} of {}:\n{}", missed.len(), expected.cheat.len(), missed.join("\n"));
    for (name, kind) in [("half_result", "wrong-type"), ("flat_result", "wrong-shape"), ("two_results", "wrong-form")] {
        let of = |message: &&Value| message["kernel"] == name && message["code"] == format!("verify.{kind}");
        assert!(lab.messages().iter().any(|message| of(&message)), "{name}: {:?}", lab.messages());
    }
}

/// Every honest module, with what is called of it.
fn honest(expected: &Expected) -> Vec<(&str, &str, &str, &str)> {
    let more = |name: &str| if name == "tuned" { "tune.BLOCK = [2, 4]" } else { "" };
    let all = expected.honest.iter();
    all.map(|(name, one)| (name.as_str(), one.operator.as_str(), one.function.as_str(), more(name))).collect()
}

#[test]
#[ignore = "second tier: many processes with PyTorch; needs the network once"]
#[cfg(any(debug_assertions, feature = "virtual-device"))]
fn the_processor_in_the_place_of_a_device_refuses_every_module_that_cheats() {
    let expected = expected();
    let Some((lab, _place)) = Lab::new("cheats", &cheats(&expected)).on_a_device() else { return };
    refused(&lab, &expected);
}

#[test]
#[ignore = "second tier: many processes with PyTorch; needs the network once"]
#[cfg(any(debug_assertions, feature = "virtual-device"))]
fn the_processor_in_the_place_of_a_device_accepts_every_honest_module() {
    let expected = expected();
    let Some((lab, _place)) = Lab::new("honest", &honest(&expected)).on_a_device() else { return };
    let ran = lab.run(&["build", "--message-format", "json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.said);
    assert_eq!(ran.executed("verify"), expected.honest.len() + 1, "{}", ran.said);
    assert_eq!(ran.executed("bench"), 0, "{}", ran.said);
    for (name, shapes) in lab.shapes() {
        assert!(!shapes.is_empty(), "{name}");
        for shape in shapes {
            assert_eq!((&shape["verdict"], &shape["emulated"]), (&Value::from("pass"), &Value::Bool(false)), "{name}");
            assert!(shape["no_fresh"].is_null(), "{name}: {shape}");
        }
    }
    let again = lab.run(&["build", "--message-format", "json"]);
    assert_eq!(again.executed("verify"), 0, "{}", again.said);
}

/// Declares every shape as one that is timed.
#[cfg(any(debug_assertions, feature = "virtual-device"))]
fn benched(lab: &Lab) {
    let manifest = fs::read_to_string(lab.path("kernel.toml")).unwrap();
    let timed = regex::Regex::new(r"(?m)^(shapes\.small = \{.*) \}$").unwrap();
    fs::write(lab.path("kernel.toml"), timed.replace_all(&manifest, r#"$1, role = "bench" }"#).as_ref()).unwrap();
}

#[test]
#[ignore = "second tier: many processes with PyTorch; needs the network once"]
#[cfg(any(debug_assertions, feature = "virtual-device"))]
fn calls_are_timed_where_the_processor_stands_in_for_a_device_and_their_outputs_compared() {
    let kernels = [
        ("eager", "linear", "ModelNew", ""),
        ("running_statistics", "batch_norm", "ModelNew", ""),
        ("counts", "positive", "ModelNew", ""),
        ("one_number", "total", "total", ""),
        ("own_buffer", "linear", "ModelNew", ""),
        ("tuned", "linear", "ModelNew", "tune.BLOCK = [2, 4]"),
    ];
    let expected = expected();
    let kernels = kernels.map(|(name, operator, _, more)| (name, operator, &*expected.honest[name].function, more));
    let Some((lab, _place)) = Lab::new("honest", &kernels).on_a_device() else { return };
    benched(&lab);
    let manifest = fs::read_to_string(lab.path("kernel.toml")).unwrap();
    fs::write(lab.path("kernel.toml"), manifest + "\n[baseline.as_written]\nhow = \"eager\"\n").unwrap();
    let ran = lab.run(&["build", "--message-format", "json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.said);
    // One of them has two variants. Whether they are so near each other that they are paired depends on the machine; baselines are always paired.
    assert_eq!(ran.executed("calls"), kernels.len() + 1, "{}", ran.said);
    assert_eq!(ran.executed("baseline"), kernels.len(), "{}", ran.said);
    let report = lab.report();
    for kernel in report["packages"][0]["kernels"].as_array().unwrap() {
        let target = &kernel["targets"][0];
        assert_eq!(target["shapes"][0]["confirmed"], true, "{target}");
        assert_eq!(target["champions"][0]["provisional"], false, "{target}");
        let [baseline] = &target["baselines"].as_array().unwrap()[..] else { panic!("{target}") };
        let rating = &baseline["rating"];
        assert_eq!((&rating["verdict"], &rating["of_calls"]), (&Value::from("pass"), &Value::Bool(true)), "{rating}");
        assert!(rating["ratio"]["median"].as_f64().unwrap() > 0.0, "{rating}");
        // In the place of a device, its device time is that of the processor.
        assert!(rating["device_ns"].as_f64().unwrap() > 0.0 && rating["versions"]["torch"].is_string(), "{rating}");
        let [calls] = &target["calls"].as_array().unwrap()[..] else { panic!("{target}") };
        let of = |name: &str| calls[name].as_f64().unwrap_or_default();
        assert!(of("calls") >= 12.0 && of("compared") >= 5.0 && of("compared") <= of("calls"), "{calls}");
        assert!(of("call_ns") > 0.0 && of("hand_over_ns") > 0.0, "{calls}");
        let [low, high] = [0, 1].map(|at| calls["interval"][at].as_f64().unwrap());
        assert!(low <= of("call_ns") && of("call_ns") <= high, "{calls}");
    }
    let said = lab.run(&["report"]).said;
    assert!(said.contains("small  call ") && said.contains(" of it; "), "{said}");
    let explained = lab.run(&["explain", "eager"]).said;
    assert!(explained.contains("small  call "), "{explained}");
    assert_eq!(lab.run(&["build", "--message-format", "json"]).executed("calls"), 0);
}

#[test]
#[ignore = "second tier: many processes with PyTorch; needs the network once"]
#[cfg(any(debug_assertions, feature = "virtual-device"))]
fn what_cheats_only_when_its_calls_are_timed_is_refused_for_its_reason() {
    let expected = expected();
    let kernels: Vec<_> = expected.timed.keys().map(|name| (name.as_str(), "linear", "ModelNew", "")).collect();
    let Some((lab, _place)) = Lab::new("timed", &kernels).on_a_device() else { return };
    let verified = lab.run(&["verify"]);
    assert_eq!(verified.code, Some(0), "a verification sees nothing: {}", verified.said);
    benched(&lab);
    let ran = lab.run(&["build", "--keep-going"]);
    assert_eq!(ran.code, Some(100), "{}", ran.said);
    let found = lab.shapes();
    let mut missed = vec![];
    for (name, words) in &expected.timed {
        let verdict = &found[name][0]["verdict"];
        if !verdict["fail"].as_str().is_some_and(|text| regex::Regex::new(words).unwrap().is_match(text)) {
            missed.push(format!("{name}: expected `{words}`, found {verdict}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
#[ignore = "second tier: a process with PyTorch; needs the network once"]
#[cfg(any(debug_assertions, feature = "virtual-device"))]
fn what_a_machine_with_a_device_lacks_is_unknown_there_and_the_line_is_said() {
    let Some((lab, _place)) = Lab::new("honest", &[("eager", "linear", "ModelNew", "")]).on_a_device() else { return };
    lab.edit("eager/kernel.py", "import torch\n", "import triton\nimport torch\n");
    let ran = lab.run(&["build"]);
    assert_eq!(ran.code, Some(0), "{}", ran.said);
    let verdict = lab.shapes()["eager"][0]["verdict"].clone();
    let said = "`triton`, which it imports at eager/kernel.py:2, is not installed here";
    assert_eq!(verdict["unknown"]["missing"], said, "{verdict}");
}

#[test]
#[ignore = "second tier: many processes with PyTorch; needs the network once"]
fn every_honest_module_passes_and_the_verdict_says_what_ran_it() {
    let expected = expected();
    let Some(lab) = Lab::new("honest", &honest(&expected)).installed() else { return };
    let ran = lab.run(&["build", "--message-format", "json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.said);
    // One of them has two variants.
    assert_eq!(ran.executed("verify"), expected.honest.len() + 1, "{}", ran.said);
    for (name, shapes) in lab.shapes() {
        assert!(!shapes.is_empty(), "{name}");
        for shape in shapes {
            assert_eq!((&shape["verdict"], &shape["in_torch"]), (&Value::from("pass"), &Value::Bool(true)), "{name}");
            assert!(shape["no_fresh"].is_null(), "{name}: {shape}");
        }
    }
    let report = lab.run(&["report"]);
    assert!(report.said.contains("emulated (torch on cpu)"), "{}", report.said);
    let printed = lab.run(&["verify", "-v"]);
    assert!(printed.said.contains("shape (6, 32)"), "what it printed: {}", printed.said);

    // Nothing is done twice, a comment stops at the compilation, and another line does not.
    let again = lab.run(&["build", "--message-format", "json"]);
    assert_eq!((again.executed("verify"), again.executed("compile")), (0, 0), "{}", again.said);
    lab.edit("eager/kernel.py", "# Calls", "# It calls");
    let commented = lab.run(&["build", "--message-format", "json"]);
    assert_eq!((commented.executed("compile"), commented.executed("verify")), (1, 0), "{}", commented.said);
    lab.edit("helpers/helper.py", "torch.relu(x)", "torch.relu(x) + 1");
    let wrong = lab.run(&["build", "--message-format", "json"]);
    assert_eq!((wrong.code, wrong.executed("verify")), (Some(100), 1), "{}", wrong.said);
}

#[test]
#[ignore = "second tier: a process with PyTorch; needs the network once"]
fn what_the_process_of_a_module_must_not_do_fails_there() {
    let Some(lab) = Lab::new("confined", &[("escapes", "linear", "ModelNew", "")]).installed() else { return };
    let ran = lab.run(&["verify"]);
    assert_eq!(ran.code, Some(0), "{}", ran.said);
}

#[test]
fn without_pytorch_a_module_is_unknown_and_the_reason_says_what_to_do() {
    let lab = Lab::new("honest", &[("eager", "linear", "ModelNew", "")]);
    let ran = lab.run(&["verify", "--offline"]);
    assert_eq!(ran.code, Some(0), "{}", ran.said);
    assert!(ran.said.contains("not installed") && ran.said.contains("run `kforge fetch`"), "{}", ran.said);
    assert!(ran.said.contains("  eager  cpu  unknown\n"), "{}", ran.said);
}

#[test]
fn what_the_source_does_not_have_is_said_at_its_place() {
    let lab = Lab::new("honest", &[("eager", "linear", "ModelNow", "")]);
    let ran = lab.run(&["check", "--offline"]);
    assert_eq!(ran.code, Some(101), "{}", ran.said);
    assert!(ran.said.contains("`eager/kernel.py` has no `ModelNow`"), "{}", ran.said);
    assert!(ran.said.contains("did you mean `ModelNew`"), "{}", ran.said);
}
