//! A folder in which to run the program. All folders of this test binary share one home, so that each kernel is compiled only once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::folders::{folder, prefix};

/// A folder, and the home it uses.
pub(crate) struct Place {
    folder: tempfile::TempDir,
    home: PathBuf,
}

/// The result of running the program.
pub(crate) struct Said {
    /// Its exit code.
    pub(crate) code: i32,
    /// Its standard output.
    pub(crate) out: String,
    /// Its standard error.
    pub(crate) err: String,
}

/// A package of one kernel with one variant and a shape of five elements.
pub(crate) const MANIFEST: &str = r#"[package]
name = "tiny"
version = "0.1.0"

[targets.cpu]

[operator.twice]
dims = ["n"]
inputs.x = { dtype = "f32", shape = ["n"] }
outputs.y = { dtype = "f32", shape = ["n"] }
reference = { builtin = "elementwise", y = "2 * x" }
tolerance = { atol = 1e-6, rtol = 1e-6 }

[operator.twice.shapes]
five = { n = 5 }

[kernel.twice]
operator = "twice"
source = "twice.cu"

[kernel.twice.tune]
BLOCK = [32]

[[kernel.twice.launch]]
entry = "twice<BLOCK>"
grid = ["ceil_div(n, BLOCK)"]
block = ["BLOCK"]
args = ["x", "y", "n"]
"#;

/// Its source.
pub(crate) const SOURCE: &str = r#"template <int BLOCK>
__global__ void twice(const float *x, float *y, int n) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}
"#;

/// The machine key of all folders: outside them, as that of a user is, so that it is no change of a folder.
fn machine_key() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli-machine-key")
}

/// On disk, as it stays until the next run of the tests.
fn shared_home() -> PathBuf {
    static HOME: OnceLock<tempfile::TempDir> = OnceLock::new();
    let home = || tempfile::Builder::new().prefix(&prefix()).tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    HOME.get_or_init(home).path().to_path_buf()
}

impl Place {
    /// A place with an empty folder.
    pub(crate) fn empty() -> Self {
        Place { folder: folder(), home: shared_home() }
    }

    /// A place with the tiny package.
    pub(crate) fn tiny() -> Self {
        Place::empty().file("kernel.toml", MANIFEST).file("twice.cu", SOURCE)
    }

    /// Gives the place a separate home, for tests that count or change the contents of the home.
    pub(crate) fn alone(mut self) -> Self {
        self.home = self.folder.path().join(".home");
        self
    }

    /// Adds a file.
    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// The path of a file.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The home of the place.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// The text of a file.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// Replaces a text that occurs once in a file.
    pub(crate) fn edit(&self, name: &str, from: &str, to: &str) {
        let text = self.read(name);
        assert_eq!(text.matches(from).count(), 1, "`{from}` in {name}");
        fs::write(self.at(name), text.replace(from, to)).unwrap();
    }

    /// The output of a shell command here, with errors in the order in which they are printed. Runs one step at a time, so that the output is always the same.
    #[expect(clippy::disallowed_methods, reason = "a test stands where a shell does, and hands PATH on")]
    pub(crate) fn shell(&self, line: &str) -> String {
        let programs = Path::new(env!("CARGO_BIN_EXE_kforge")).parent().unwrap();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &format!("exec 2>&1\n{line}")]).current_dir(self.at("")).env_clear().stdin(Stdio::null());
        command.env("PATH", path).env("HOME", self.folder.path()).env("KFORGE_HOME", &self.home);
        command
            .env("KFORGE_MACHINE_KEY", machine_key())
            .env("KFORGE_NET_OFFLINE", "true")
            .env("KFORGE_BUILD_JOBS", "1");
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }

    /// Runs the program with arguments split at spaces.
    pub(crate) fn run(&self, words: &str) -> Said {
        self.run_in(".", &words.split_whitespace().collect::<Vec<_>>(), &[])
    }

    /// The program with arguments, to be run here.
    #[expect(clippy::disallowed_methods, reason = "a test stands where a shell does, and hands PATH on")]
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kforge"));
        command.args(words).current_dir(self.at(".")).env_clear().stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.folder.path()).env("KFORGE_HOME", &self.home).env("KFORGE_NET_OFFLINE", "true");
        command.env("KFORGE_MACHINE_KEY", machine_key());
        command
    }

    /// Runs the program in a subfolder, with additional environment variables.
    pub(crate) fn run_in(&self, folder: &str, words: &[&str], vars: &[(&str, &str)]) -> Said {
        let mut command = self.command(words);
        command.current_dir(self.at(folder)).envs(vars.iter().copied());
        let output = command.output().unwrap();
        Said {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Said {
    /// Checks the exit code.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "out:\n{}\nerr:\n{}", self.out, self.err);
        self
    }

    /// Checks that standard output contains this text.
    #[track_caller]
    pub(crate) fn prints(self, text: &str) -> Self {
        assert!(self.out.contains(text), "`{text}` in:\n{}\nerr:\n{}", self.out, self.err);
        self
    }

    /// Checks that standard error contains this text.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.err.contains(text), "`{text}` in:\n{}\nout:\n{}", self.err, self.out);
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}:\n{}", self.out))
    }
}
