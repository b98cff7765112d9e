//! `kforge worker --once`: a step by itself, with the tools of the machine that asks. The steps are those of a build whose server's workers keep what they get.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use kforge::base::Digest;
use kforge::harness::elsewhere::{Difference, OnceAnswer};
use kforge::harness::message::Response;
use kforge::ops::elsewhere::{StepFile, StepLimits, WorkerTools};
use kforge::record::params::Toolchain;
use kforge::record::{Spec, StepKind};

use crate::executing::{ONE, cxx_that_counts, executing, online};
use crate::project::Project;
use crate::server::execution::{Task, process};

/// The same compiler as a program: a script is surveyed again on each machine.
fn program_that_counts(cxx: &Path, asked: &Path) {
    let source = cxx.with_file_name("source.c");
    let text = format!(
        "#include <stdio.h>\n#include <unistd.h>\nint main(int n, char **words) {{ FILE *f = fopen(\"{}\", \"a\"); \
         if (f) {{ fputs(\"\\n\", f); fclose(f); }} words[0] = \"/usr/bin/g++\"; return execv(words[0], words); }}\n",
        asked.display()
    );
    fs::write(&source, text).unwrap();
    fs::remove_file(cxx).unwrap();
    assert!(Command::new("/usr/bin/gcc").arg("-o").args([cxx, &source]).status().unwrap().success());
    fs::remove_file(source).unwrap();
}

/// The files of one step of each kind that a build sends to workers.
struct Steps {
    project: Project,
    /// The folder with a line for each start of the compiler.
    asked: PathBuf,
    files: BTreeMap<StepKind, BTreeMap<String, Vec<u8>>>,
}

fn steps() -> Steps {
    let (server, kept) = (executing(), Arc::new(Mutex::new(BTreeMap::new())));
    let keeps = kept.clone();
    server.state().options.worker = Arc::new(move |task: Task| {
        let spec: Spec = serde_json::from_slice(&task.files["spec.json"]).unwrap();
        keeps.lock().unwrap().entry(spec.kind).or_insert_with(|| task.files.clone());
        process(task)
    });
    let project = crate::executing::project(&server, ONE);
    let (cxx, asked) = cxx_that_counts(&project);
    program_that_counts(&cxx, &asked);
    let project = project.var("KFORGE_TOOLCHAIN_CXX", cxx);
    online(&project, &[]).expect(0);
    let files = std::mem::take(&mut *kept.lock().unwrap());
    assert_eq!(files.keys().map(|kind| kind.name()).collect::<Vec<_>>(), ["compile", "inspect", "oracle", "verify"]);
    assert!(!fs::read(&asked).unwrap().is_empty(), "the machine that asks has queried it");
    Steps { project, asked, files }
}

impl Steps {
    fn spec(&self, kind: StepKind) -> Spec {
        serde_json::from_slice(&self.files[&kind]["spec.json"]).unwrap()
    }

    /// The files of a step with another spec.
    fn with(&self, kind: StepKind, spec: &Spec) -> BTreeMap<String, Vec<u8>> {
        let mut files = self.files[&kind].clone();
        files.insert("spec.json".into(), serde_json::to_vec(spec).unwrap());
        files
    }

    /// Another machine, whose part of this name has other contents, asks for a step.
    fn of_another(&self, kind: StepKind, input: &str, part: &str) -> BTreeMap<String, Vec<u8>> {
        let mut spec = self.spec(kind);
        let mut described: Toolchain = serde_json::from_slice(&self.files[&kind][&format!("in/{input}")]).unwrap();
        *described.tools.get_mut(part).unwrap_or_else(|| panic!("no `{part}`")) = Digest::of(b"another");
        let bytes = serde_json::to_vec(&described).unwrap();
        let digest = Digest::of(&bytes);
        let stated = spec.inputs.get_mut(input).unwrap().digest.replace(digest).unwrap();
        let mut files = self.with(kind, &spec);
        files.insert(format!("in/{input}"), bytes);
        // How it is found is the same.
        let places = String::from_utf8(files["places.json"].clone()).unwrap();
        files.insert("places.json".into(), places.replace(&stated.to_string(), &digest.to_string()).into());
        files
    }

    /// Executes a step with these files. Returns the answer, the outputs, and how often the compiler was started.
    fn once(
        &self,
        files: &BTreeMap<String, Vec<u8>>,
        home: Option<&Path>,
    ) -> (OnceAnswer, BTreeMap<String, Vec<u8>>, usize) {
        self.once_with(files, home, &[])
    }

    /// The same with further words.
    fn once_with(
        &self,
        files: &BTreeMap<String, Vec<u8>>,
        home: Option<&Path>,
        words: &[&str],
    ) -> (OnceAnswer, BTreeMap<String, Vec<u8>>, usize) {
        let folder = tempfile::tempdir().unwrap();
        for (path, bytes) in files {
            let place = folder.path().join(path);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, bytes).unwrap();
        }
        let asked = || fs::read(&self.asked).unwrap_or_default().len();
        let before = asked();
        let mut command = Command::new(self.project.program());
        command
            .args("worker --once spec.json in out --places places.json".split(' '))
            .args(words)
            .current_dir(folder.path());
        command.env_clear().env("HOME", folder.path()).stdin(Stdio::null());
        command.envs(home.map(|home| ("KFORGE_HOME", home)));
        let output = command.output().unwrap();
        let answer: OnceAnswer = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stderr)));
        let is_done = matches!(answer, OnceAnswer::Answered { response: Response::Done { .. }, .. });
        assert_eq!(output.status.code(), Some(if is_done { 0 } else { 101 }));
        let entries = fs::read_dir(folder.path().join("out")).into_iter().flatten().map(Result::unwrap);
        let outputs = entries.map(|e| (e.file_name().into_string().unwrap(), fs::read(e.path()).unwrap()));
        (answer, outputs.collect(), asked() - before)
    }

    fn differences(&self, files: &BTreeMap<String, Vec<u8>>) -> Vec<Difference> {
        match self.once(files, None) {
            (OnceAnswer::Differs { differences }, outputs, _) if outputs.is_empty() => differences,
            (other, ..) => panic!("{other:?}"),
        }
    }
}

fn parts(input: &str, names: &[&str]) -> Difference {
    Difference::Parts { input: input.into(), names: names.iter().map(ToString::to_string).collect() }
}

#[test]
fn a_step_by_itself_asks_no_compiler_and_executes_nothing_where_the_machine_is_another_one() {
    let steps = steps();
    let home = tempfile::tempdir().unwrap();
    for (kind, files) in &steps.files {
        let (answer, outputs, started) = steps.once(files, Some(home.path()));
        let OnceAnswer::Answered { response: Response::Done { .. }, outputs: stated, .. } = answer else {
            panic!("{kind}: {answer:?}")
        };
        // Each output is stated by its content.
        let written: BTreeMap<String, Digest> =
            outputs.iter().map(|(n, bytes)| (n.clone(), Digest::of(bytes))).collect();
        assert!(!stated.is_empty() && stated == written, "{kind}");
        // The compiler compiles, where it cannot write its line, and is asked nothing.
        assert_eq!(started, 0, "{kind}");
    }
    assert!(home.path().join("machine").is_file(), "digests are remembered in a home that is named");

    // Another part of the compiler, another C library, another processor.
    let compile = steps.of_another(StepKind::Compile, "toolchain", "as");
    assert_eq!(steps.differences(&compile), [parts("toolchain", &["as"])]);
    let verify = steps.of_another(StepKind::Verify, "runtime", "run:libc.so.6");
    assert_eq!(steps.differences(&verify), [parts("runtime", &["run:libc.so.6"])]);
    let oracle = steps.of_another(StepKind::Oracle, "processor", "processor");
    assert_eq!(steps.differences(&oracle), [parts("processor", &["processor"])]);
    // Another kforge.
    let spec = Spec { implementation: Some(Digest::of(b"another")), ..steps.spec(StepKind::Inspect) };
    assert_eq!(steps.differences(&steps.with(StepKind::Inspect, &spec)), [Difference::Code]);
    // What is not described cannot be compared.
    let mut files = steps.files[&StepKind::Verify].clone();
    files.insert("in/runtime".into(), b"{}".to_vec());
    assert!(matches!(&steps.differences(&files)[..], [Difference::Missing { input, .. }] if input == "runtime"));
    let mut files = steps.files[&StepKind::Compile].clone();
    let mut places: serde_json::Value = serde_json::from_slice(&files["places.json"]).unwrap();
    places["toolchains"] = serde_json::json!({});
    files.insert("places.json".into(), serde_json::to_vec(&places).unwrap());
    assert!(matches!(&steps.differences(&files)[..], [Difference::Missing { input, .. }] if input == "toolchain"));
    // A file that says nothing.
    files.insert("places.json".into(), b"nonsense".to_vec());
    assert!(matches!(&steps.differences(&files)[..], [Difference::Missing { input, .. }] if input == "places"));
}

#[test]
fn a_worker_of_a_server_runs_and_shows_only_what_it_found_itself() {
    let steps = steps();
    let (mark, sent) = (steps.asked.with_file_name("mark"), steps.asked.with_file_name("sent"));
    fs::write(&sent, format!("#!/bin/sh\ntouch '{}'\nexec /usr/bin/g++ \"$@\"\n", mark.display())).unwrap();
    fs::set_permissions(&sent, fs::Permissions::from_mode(0o755)).unwrap();
    let file = |kind: StepKind| -> StepFile { serde_json::from_slice(&steps.files[&kind]["places.json"]).unwrap() };
    let honest = file(StepKind::Compile);
    let own = WorkerTools {
        cxx: honest.cxx.clone(),
        python: None,
        cuda: None,
        device: BTreeMap::new(),
        key: None,
        limits: StepLimits { time_s: 50, ..honest.limits },
    };
    let tools = steps.asked.with_file_name("own.json");
    fs::write(&tools, serde_json::to_vec(&own).unwrap()).unwrap();
    let mut theirs = honest;
    theirs.cxx.as_mut().unwrap().survey.compiler.path = sent;
    let mut files = steps.files[&StepKind::Compile].clone();
    files.insert("places.json".into(), serde_json::to_vec(&theirs).unwrap());
    // A worker that executes whatever it is sent asks that compiler.
    assert!(matches!(steps.once(&files, None).0, OnceAnswer::Differs { .. }) && mark.exists());
    fs::remove_file(&mark).unwrap();
    let (answer, outputs, _) = steps.once_with(&files, None, &["--own", tools.to_str().unwrap()]);
    assert!(matches!(answer, OnceAnswer::Answered { response: Response::Done { .. }, .. }), "{answer:?}");
    assert!(!outputs.is_empty() && !mark.exists());
    // Nor does anyone choose what the sandbox shows: a verification has no description of the compiler that would be compared.
    let spec = steps.spec(StepKind::Verify);
    let folder = tempfile::tempdir().unwrap();
    for (path, bytes) in &steps.files[&StepKind::Verify] {
        let place = folder.path().join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, bytes).unwrap();
    }
    let mut theirs = file(StepKind::Verify);
    theirs.cxx.as_mut().unwrap().survey.searched = vec!["/".into()];
    theirs.limits.time_s = 1000;
    let shown =
        |file: StepFile| file.places(&spec, &folder.path().join("in"), None, &steps.project.program()).unwrap().read;
    assert_eq!(shown(theirs.clone()), [Path::new("/")]);
    let mended = theirs.with_tools_of(&own).unwrap();
    assert_eq!(mended.limits.time_s, 50);
    let read = shown(mended);
    assert!(!read.is_empty() && !read.contains(&PathBuf::from("/")), "{read:?}");
}

#[test]
fn an_input_leads_to_no_other_folder() {
    let steps = steps();
    let mut spec = steps.spec(StepKind::Verify);
    let runtime = spec.inputs["runtime"].clone();
    for name in ["toolchain:a/../../x", "..", "/etc/passwd", ""] {
        spec.inputs = [(name.to_string(), runtime.clone())].into();
        match steps.once(&steps.with(StepKind::Verify, &spec), None).0 {
            OnceAnswer::Answered { response: Response::Failed { message, .. }, .. } => {
                assert!(message.to_string().contains("is not a valid name for an input"), "{name}: {message}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn a_compiler_that_changed_on_the_worker_is_another_one() {
    let steps = steps();
    let cxx = steps.asked.with_file_name("g++");
    let bytes = [fs::read(&cxx).unwrap(), b"changed".to_vec()].concat();
    fs::write(&cxx, bytes).unwrap();
    let differences = steps.differences(&steps.files[&StepKind::Compile]);
    assert_eq!(differences, [parts("toolchain", &["c++"])]);
    // Verifications use no compiler, only what it linked with.
    let (answer, ..) = steps.once(&steps.files[&StepKind::Verify], None);
    assert!(matches!(answer, OnceAnswer::Answered { response: Response::Done { .. }, .. }), "{answer:?}");
}

#[test]
fn a_tool_that_only_the_worker_has_before_another_is_another_compiler() {
    let steps = steps();
    let files = &steps.files[&StepKind::Compile];
    assert!(!String::from_utf8_lossy(&files["places.json"]).contains("\"absent\":\"\""));
    // The driver's folder comes first in its `PATH`.
    let tool = steps.asked.with_file_name("as");
    fs::write(&tool, "#!/bin/sh\nexec /usr/bin/as \"$@\"\n").unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    match &steps.differences(files)[..] {
        [Difference::Parts { input, names }] => assert!(input == "toolchain" && names.contains(&"as".to_string())),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_libraries_are_those_that_the_loader_of_the_worker_takes() {
    let steps = steps();
    let mut files = steps.files[&StepKind::Verify].clone();
    let mut places: serde_json::Value = serde_json::from_slice(&files["places.json"]).unwrap();
    let runtime = places["cxx"]["survey"]["runtime"].as_array_mut().unwrap();
    // The machine that asks has loaded it from a folder where the worker has another file of that name, which it does not load.
    let libm = runtime.iter_mut().find(|path| path.as_str().unwrap().ends_with("libm.so.6")).unwrap();
    let copy = steps.asked.with_file_name("libm.so.6");
    fs::write(&copy, "another").unwrap();
    *libm = copy.to_str().unwrap().into();
    files.insert("places.json".into(), serde_json::to_vec(&places).unwrap());
    let (answer, ..) = steps.once(&files, None);
    assert!(matches!(answer, OnceAnswer::Answered { response: Response::Done { .. }, .. }), "{answer:?}");
    // A library that only the machine that asks loads.
    let mut places: serde_json::Value = serde_json::from_slice(&files["places.json"]).unwrap();
    places["cxx"]["survey"]["runtime"] = serde_json::json!(["/lib64/libc.so.6"]);
    files.insert("places.json".into(), serde_json::to_vec(&places).unwrap());
    assert!(matches!(&steps.differences(&files)[..], [Difference::Parts { input, .. }] if input == "runtime"));
}

#[test]
fn settings_above_the_folder_of_a_step_say_nothing_about_its_sandbox() {
    let steps = steps();
    let verdict = |said: &str| {
        let settings = tempfile::tempdir().unwrap();
        fs::create_dir(settings.path().join(".kforge")).unwrap();
        fs::write(settings.path().join(".kforge/config.toml"), said).unwrap();
        // Damaged settings would be noticed.
        let environment = kforge::config::Environment::of([("HOME".into(), settings.path().display().to_string())]);
        (
            kforge::config::Settings::load(settings.path(), &environment, &[]).0.flag("sandbox.required"),
            kforge::config::Settings::of_variables(&environment).flag("sandbox.required"),
        )
    };
    assert_eq!(verdict("[sandbox]\nrequired = false\n"), (false, true));
    let environment = kforge::config::Environment::of([("KFORGE_SANDBOX_REQUIRED".into(), "false".into())]);
    assert!(!kforge::config::Settings::of_variables(&environment).flag("sandbox.required"));
    assert!(matches!(steps.once(&steps.files[&StepKind::Verify], None).0, OnceAnswer::Answered { .. }));
}
