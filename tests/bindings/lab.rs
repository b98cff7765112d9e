//! The driver of the tests, programs that use it, and comparison of what it was asked for.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use crate::documents::{Sample, packages, sample};
use crate::expected::{Expected, expected};

/// The folder of the repository.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The name of the driver's library.
const DRIVER: &str = "libcuda.so.1";

/// The driver, which is compiled once.
fn driver() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let (driver, source) = (folder.path().join(DRIVER), root().join("tests/bindings/fake_cuda.c"));
        let done =
            Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&driver).arg(source).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        fs::read(driver).unwrap()
    })
}

/// The interpreter that `python3` starts. A version manager has a script of that name, which takes longer than most tests.
pub(crate) fn interpreter() -> Command {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    Command::new(PATH.get_or_init(|| {
        let done = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
        String::from_utf8(done.stdout).unwrap().trim().into()
    }))
}

/// A folder with the driver.
pub(crate) struct Lab {
    pub(crate) folder: tempfile::TempDir,
}

impl Lab {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(DRIVER), driver()).unwrap();
        Lab { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a program with the driver, and gives its output and what the driver was asked for.
    pub(crate) fn run(&self, command: &mut Command, sizes: &[String]) -> (String, Vec<String>) {
        let (log, table) = (self.path("log"), self.path("sizes"));
        let _ = fs::remove_file(&log);
        fs::write(&table, sizes.join("\n") + "\n").unwrap();
        command.env("LD_LIBRARY_PATH", self.folder.path()).env("KFORGE_FAKE_LOG", &log).env("KFORGE_FAKE_SIZES", table);
        let Output { status, stdout, stderr } = command.output().unwrap();
        let said = String::from_utf8_lossy(&stdout).into_owned();
        assert!(status.success(), "{said}{}", String::from_utf8_lossy(&stderr));
        let log = fs::read_to_string(log).unwrap_or_default();
        (said, log.lines().map(String::from).collect())
    }
}

/// The package with everything that a manifest can say.
pub(crate) fn exotic() -> Sample {
    let packages = packages(&root().join("tests/bindings/exotic/kernel.toml"));
    sample(&packages[0], 0).unwrap()
}

/// Every package of the examples and of this folder, with its first and with its last variants as champions.
pub(crate) fn samples() -> Vec<Sample> {
    let manifests = [
        "examples/quickstart",
        "examples/kernels",
        "examples/generated",
        "tests/gpu/launches",
        "tests/bindings/exotic",
        "tests/bindings/names",
        "examples/triton",
        "tests/gpu/triton",
    ];
    let mut all = vec![];
    for manifest in manifests {
        for package in packages(&root().join(manifest).join("kernel.toml")) {
            all.extend([0, usize::MAX / 2].into_iter().filter_map(|at| sample(&package, at)));
        }
    }
    all
}

/// What is expected of each case of a sample.
pub(crate) fn all_expected(sample: &Sample) -> Vec<Expected> {
    sample.cases.iter().map(expected).collect()
}

/// Compares calls with what is expected; `call N` lines begin a case.
pub(crate) fn compare(what: &str, sample: &Sample, expected: &[Expected], log: &[String]) {
    let mut calls = log.iter().filter(|line| !line.starts_with("attribute ") && !line.starts_with("global "));
    for (case, expected) in sample.cases.iter().zip(expected) {
        for line in &expected.lines {
            assert_eq!(
                calls.next(),
                Some(line),
                "{what}: {} `{}` at {}",
                case.function,
                case.variant.label,
                case.shape.name
            );
        }
    }
    assert_eq!(calls.next(), None, "{what}: more calls than expected");
}

/// Writes files into a folder.
pub(crate) fn write(folder: &Path, files: &std::collections::BTreeMap<String, Vec<u8>>) {
    for (name, bytes) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}
