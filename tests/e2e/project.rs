//! A workspace in its own folder, and builds of it as people run them: the program, its arguments, its exit code, its JSON lines. Knows the program's
//! interface, but not its rooms.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::compiler_survey::remember;
use crate::folders::folder;

/// Files of a home: name, bytes, permissions.
pub(crate) type Kept = Vec<(PathBuf, Vec<u8>, fs::Permissions)>;

/// A project from `make`, in a home with the results that another such project has after `how`, which runs only once. For tests of what happens to existing
/// results.
pub(crate) fn known(known: &OnceLock<Kept>, make: impl Fn() -> Project, how: impl FnOnce(&Project)) -> Project {
    let kept = known.get_or_init(|| {
        let project = make();
        how(&project);
        project.kept()
    });
    let project = make();
    project.keep(kept);
    project
}

/// A workspace, its home, and the program that builds it.
#[derive(Clone)]
pub(crate) struct Project {
    /// The folder of everything but the program: workspaces, homes.
    place: Arc<tempfile::TempDir>,
    /// The folder of a link to the program, below the target folder so that both are in one file system. The project's processes are found by its name.
    program: Arc<tempfile::TempDir>,
    root: PathBuf,
    home: PathBuf,
    vars: Vec<(String, OsString)>,
}

impl Project {
    /// An empty workspace with a home that knows only the compiler.
    pub(crate) fn new() -> Self {
        let place = folder();
        let linked = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let (program, link) = (program(), linked.path().join("kforge"));
        fs::hard_link(&program, &link).or_else(|_| fs::copy(&program, &link).map(drop)).unwrap();
        fs::create_dir(place.path().join("user")).unwrap();
        let (root, home) = (place.path().join("work"), place.path().join("home"));
        fs::create_dir(&root).unwrap();
        remember(&program, &home);
        Project { place: Arc::new(place), program: Arc::new(linked), root, home, vars: vec![] }
    }

    /// Uses a copy of the program, so that no other test changes its times: each link to the same file does. A certificate states the times of the program.
    pub(crate) fn copied_program(self) -> Self {
        let copy = self.program();
        fs::remove_file(&copy).unwrap();
        fs::copy(program(), &copy).unwrap();
        self
    }

    /// Adds a file.
    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        self.write(name, text);
        self
    }

    /// Sets an environment variable.
    pub(crate) fn var(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.vars.push((name.into(), value.into()));
        self
    }

    /// Uses another home in the same place, which does not exist yet: a build queries the compiler first.
    pub(crate) fn home_at(mut self, path: impl AsRef<Path>) -> Self {
        self.home = self.place.path().join(path);
        self
    }

    /// Uses another home in the same place, which knows only the compiler.
    pub(crate) fn fresh_home(self, path: impl AsRef<Path>) -> Self {
        let project = self.home_at(path);
        remember(&program(), &project.home);
        project
    }

    /// Writes a file of the workspace.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Replaces a text that occurs once in a file of the workspace.
    pub(crate) fn edit(&self, name: &str, from: &str, to: &str) {
        let path = self.root.join(name);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.matches(from).count(), 1, "`{from}` in {name}");
        fs::write(path, text.replace(from, to)).unwrap();
    }

    /// A copy of the workspace without its outputs, in another folder, with the same home.
    pub(crate) fn cloned(&self, name: &str) -> Self {
        let root = self.place.path().join(name);
        copy(&self.root, &root);
        Project { root, ..self.clone() }
    }

    /// Waits out the granularity of the file system's clock: a command that begins now finds no file that may still change, so it may write a certificate.
    pub(crate) fn age(&self) {
        let probe = self.place().join("probe");
        let began = std::time::SystemTime::now();
        loop {
            fs::write(&probe, "").unwrap();
            let written = fs::metadata(&probe).unwrap().modified().unwrap();
            if written.duration_since(began).is_ok_and(|past| past.as_millis() > 40) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// Moves the workspace with its outputs to another folder.
    pub(crate) fn moved(mut self, name: &str) -> Self {
        let root = self.place.path().join(name);
        fs::create_dir_all(root.parent().unwrap()).unwrap();
        fs::rename(&self.root, &root).unwrap();
        self.root = root;
        self
    }

    /// The folder that holds everything of this project.
    pub(crate) fn place(&self) -> &Path {
        self.place.path()
    }

    /// The program, by a name that only this project has.
    pub(crate) fn program(&self) -> PathBuf {
        self.program.path().join("kforge")
    }

    /// The workspace's folder.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The home of kforge.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// The results in the home, and their contents.
    fn kept(&self) -> Kept {
        let folders = ["actions", "cas"].map(|name| walkdir::WalkDir::new(self.home.join(name)));
        let files = folders.into_iter().flatten().map(Result::unwrap).filter(|e| e.file_type().is_file());
        let name = |path: &Path| path.strip_prefix(&self.home).unwrap().to_path_buf();
        files.map(|e| (name(e.path()), fs::read(e.path()).unwrap(), e.metadata().unwrap().permissions())).collect()
    }

    /// Adds these results to the home.
    fn keep(&self, known: &Kept) {
        for (name, bytes, permissions) in known {
            let path = self.home.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, bytes).unwrap();
            fs::set_permissions(&path, permissions.clone()).unwrap();
        }
    }

    /// The outputs of the workspace.
    pub(crate) fn target(&self) -> PathBuf {
        self.root.join("target/kforge")
    }

    /// The program with these arguments, in an otherwise empty environment.
    #[expect(clippy::disallowed_methods, reason = "a test stands where a shell does, and hands PATH on")]
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.program());
        command.args(words).current_dir(&self.root).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.place().join("user")).env("KFORGE_HOME", &self.home);
        // The project's folder may lie in that of this checkout, and is not part of its repository.
        command.env("GIT_CEILING_DIRECTORIES", self.place());
        command.envs(self.vars.iter().map(|(k, v)| (k, v)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// A build to start: JSON lines, no network, and these arguments.
    pub(crate) fn building(&self, words: &[&str]) -> Command {
        self.command(&[&["build", "--offline", "--message-format", "json"], words].concat())
    }

    /// Builds.
    pub(crate) fn build(&self, words: &[&str]) -> Built {
        Built::of(&self.building(words).output().unwrap())
    }

    /// Builds, and checks that the build succeeds.
    pub(crate) fn built(&self, words: &[&str]) -> Built {
        self.build(words).expect(0)
    }

    /// The announcement of a dry run: the steps that will run, and those that may.
    pub(crate) fn dry_run(&self) -> (BTreeSet<String>, BTreeSet<String>) {
        let output = self.command(&["build", "--offline", "--dry-run"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let ids = |word: &str| {
            let lines = text.lines().filter_map(|l| l.strip_prefix(word));
            lines.map(|l| l.trim().trim_end_matches(" +").to_string()).collect()
        };
        (ids("will "), ids("may "))
    }

    /// The output of `kforge explain` for a step.
    #[track_caller]
    pub(crate) fn explain(&self, step: &str) -> Value {
        let output = self.command(&["explain", "--offline", "--json", step]).output().unwrap();
        assert!(output.status.success(), "{step}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The results in the report of a build, byte for byte: without when, where and by whom they were found.
    pub(crate) fn report(&self) -> String {
        results(&fs::read_to_string(self.target().join("report.json")).unwrap())
    }

    /// The report as a value.
    pub(crate) fn report_value(&self) -> Value {
        serde_json::from_str(&fs::read_to_string(self.target().join("report.json")).unwrap()).unwrap()
    }
}

/// The text of a report without the provenance of its results, and without the time of an earlier version, which only a home that timed it knows.
pub(crate) fn results(text: &str) -> String {
    let mut report: Value = serde_json::from_str(text).unwrap();
    report.as_object_mut().unwrap().remove("built");
    let targets = report["packages"].as_array_mut().unwrap().iter_mut();
    let targets =
        targets.flat_map(|p| p["kernels"].as_array_mut().unwrap()).flat_map(|k| k["targets"].as_array_mut().unwrap());
    targets.for_each(|target| {
        let target = target.as_object_mut().unwrap();
        target.remove("observed");
        target.remove("earlier");
        let times = target.get_mut("times").and_then(Value::as_array_mut).into_iter().flatten();
        times.filter_map(|time| time["seen"].as_object_mut()).for_each(|seen| drop(seen.remove("standing")));
    });
    serde_json::to_string_pretty(&report).unwrap()
}

/// The tested program: the one that was built with this test, or the one that is named.
pub(crate) fn program() -> PathBuf {
    named().unwrap_or_else(|| env!("CARGO_BIN_EXE_kforge").into())
}

/// The tested program, if it is built as for a release.
pub(crate) fn released() -> Option<PathBuf> {
    let debug = cfg!(any(debug_assertions, feature = "virtual-device"));
    named().or_else(|| (!debug).then(program))
}

/// The program that `KFORGE_TEST_PROGRAM` names, such as a released one. Tests that need something that only this build has do not accept another program.
#[expect(clippy::disallowed_methods, reason = "whoever runs the tests names the program")]
fn named() -> Option<PathBuf> {
    std::env::var_os("KFORGE_TEST_PROGRAM").filter(|_| crate::ACCEPTS_NAMED_PROGRAM).map(PathBuf::from)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap).filter(|e| e.file_name() != "target") {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

/// The schema of every event.
fn schema() -> &'static jsonschema::Validator {
    static SCHEMA: OnceLock<jsonschema::Validator> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/events.json");
        jsonschema::validator_for(&serde_json::from_slice(&fs::read(path).unwrap()).unwrap()).unwrap()
    })
}

/// A build that has ended.
pub(crate) struct Built {
    code: i32,
    events: Vec<Value>,
    stderr: String,
}

impl Built {
    /// Parses the program's output. Every line of standard output must be an event that matches the schema.
    pub(crate) fn of(output: &Output) -> Self {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("`{line}` is no event: {e}"));
        let events: Vec<Value> = String::from_utf8_lossy(&output.stdout).lines().map(parse).collect();
        for event in &events {
            let wrong: Vec<String> = schema().iter_errors(event).map(|e| e.to_string()).collect();
            assert!(wrong.is_empty(), "{event} is not what schemas/events.json says: {wrong:?}");
        }
        let built = Built { code: output.status.code().unwrap_or(-1), events, stderr };
        built.check_sums();
        built
    }

    /// The last of several builds by one command, such as `optimize`.
    pub(crate) fn last_of(output: &Output) -> Self {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        let from = lines.iter().rposition(|line| line.contains("\"reason\":\"build-started\"")).unwrap_or(0);
        let stdout = lines[from..].join("\n").into_bytes();
        Built::of(&Output { stdout, stderr: output.stderr.clone(), status: output.status })
    }

    /// Checks in every build that the outcomes add up to the total, and that every counted step was reported.
    fn check_sums(&self) {
        let Some(end) = self.events.iter().find(|e| e["reason"] == "build-finished") else { return };
        let count = |name: &str| end["steps"][name].as_u64().unwrap();
        let outcomes = ["executed", "fresh", "unavailable", "skipped", "failed"].map(count);
        assert_eq!(outcomes.iter().sum::<u64>(), count("total"), "{end}");
        assert_eq!(self.finished().count() as u64, count("total"), "{end}");
        assert_eq!(self.executed().len() as u64, count("executed"), "{end}");
        assert_eq!(end["success"], self.code == 0, "exit code {}", self.code);
    }

    /// Checks the exit code.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}", self.stderr);
        self
    }

    /// The exit code; -1 if a signal ended the program.
    pub(crate) fn code(&self) -> i32 {
        self.code
    }

    /// Standard error.
    pub(crate) fn stderr(&self) -> &str {
        &self.stderr
    }

    /// Checks that standard error contains this text.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "no `{text}` in:\n{}", self.stderr);
        self
    }

    /// Events of a kind.
    pub(crate) fn events(&self, reason: &str) -> impl Iterator<Item = &Value> {
        self.events.iter().filter(move |e| e["reason"] == reason)
    }

    /// The events of steps that ended.
    pub(crate) fn finished(&self) -> impl Iterator<Item = &Value> {
        self.events("step-finished")
    }

    /// The ids of executed steps.
    pub(crate) fn executed(&self) -> BTreeSet<String> {
        self.finished().filter(|s| s["outcome"] == "executed").map(id).collect()
    }

    /// The number of executed steps by kind.
    pub(crate) fn executed_kinds(&self) -> BTreeMap<String, usize> {
        let mut kinds = BTreeMap::new();
        for step in self.finished().filter(|s| s["outcome"] == "executed") {
            *kinds.entry(step["kind"].as_str().unwrap().to_string()).or_default() += 1;
        }
        kinds
    }

    /// The number of steps with this outcome.
    pub(crate) fn count(&self, outcome: &str) -> u64 {
        self.events("build-finished").next().expect("the build finished")["steps"][outcome].as_u64().unwrap()
    }

    /// A step by its id.
    #[track_caller]
    pub(crate) fn step(&self, id: &str) -> &Value {
        let found = self.finished().find(|s| s["id"] == id);
        found.unwrap_or_else(|| panic!("no step `{id}` among {:?}", self.finished().map(self::id).collect::<Vec<_>>()))
    }

    /// The key and the result of each step, by id. A verification draws inputs of its own, so its result and the key of the judgement that reads it are left
    /// out: they differ between verifications. The result of the judgement does not.
    pub(crate) fn keys(&self) -> BTreeMap<String, (Value, Value)> {
        let known = |step: &Value, field: &str| match (step["kind"].as_str(), field) {
            (Some("verify"), "result") | (Some("judge"), "key") => Value::Null,
            _ => step[field].clone(),
        };
        self.finished().map(|s| (id(s), (known(s, "key"), known(s, "result")))).collect()
    }
}

/// The id of a step that ended.
pub(crate) fn id(step: &Value) -> String {
    step["id"].as_str().unwrap().to_string()
}

/// A set of ids.
pub(crate) fn ids(all: &[&str]) -> BTreeSet<String> {
    all.iter().map(|i| i.to_string()).collect()
}
