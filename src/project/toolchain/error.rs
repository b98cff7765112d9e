//! Errors in finding, installing and fingerprinting tools.

use std::io;
use std::path::PathBuf;

use super::cuda::Group;
use super::cxx::Family;
use super::nsight::Nsight;
use super::pip::named;
use super::pip_failure::PipFailure;
use crate::workspace::lockfile::LockedWheel;

/// An error in finding, installing or fingerprinting a tool.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program cannot be run.
    #[error("cannot run `{}`: {source}", .program.display())]
    Run {
        /// The program.
        program: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file or folder cannot be read.
    #[error("cannot read `{}`: {source}", .path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file that is part of a compiler cannot be read.
    #[error("cannot read `{}`'s files: {source}", .program.display())]
    ReadPart {
        /// The compiler.
        program: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A temporary folder cannot be created.
    #[error("cannot create a temporary folder: {0}")]
    Temporary(io::Error),
    /// The named tool is not on `PATH`.
    #[error("{what} `{name}` is not on PATH")]
    NotOnPath {
        /// The expected kind of tool.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// The named tool cannot be executed.
    #[error("{what} `{}` is not an executable file", .path.display())]
    NotExecutable {
        /// The expected kind of tool.
        what: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The path of the named tool cannot be made absolute.
    #[error("{what} `{}`: {source}", .path.display())]
    Path {
        /// The expected kind of tool.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// No tool of a kind is on `PATH`.
    #[error("no {what} on PATH: looked for {}", .names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", "))]
    NoneOnPath {
        /// What kind of tool.
        what: &'static str,
        /// The names that were looked for.
        names: Vec<String>,
    },
    /// A tool of Nsight is not installed in any known place.
    #[error("no `{}` on PATH, below /usr/local/cuda* or in /opt/nvidia; set its path with the setting `{}`", .0.program(), .0.setting())]
    NoNsight(Nsight),
    /// A compiler does not state its version.
    #[error("`{} --version` failed: {said}", .program.display())]
    VersionFailed {
        /// The compiler.
        program: PathBuf,
        /// The compiler's output.
        said: String,
    },
    /// A C++ compiler is older than kforge supports.
    #[error(
        "`{}` is {} {major} ({version}), which is too old: expected {} {} or later, or {} {} or later",
        .program.display(), .family.name(), Family::Gnu.name(), Family::Gnu.least(), Family::Clang.name(), Family::Clang.least()
    )]
    TooOld {
        /// The compiler.
        program: PathBuf,
        /// The first line of its `--version`.
        version: String,
        /// What it is.
        family: Family,
        /// Its major version.
        major: u32,
    },
    /// The output of a tool contains no version.
    #[error("`{} --version` reports no version", .0.display())]
    NoVersion(PathBuf),
    /// A compiler cannot read the standard headers.
    #[error("`{}` cannot read the standard headers: {said}", .program.display())]
    Headers {
        /// The compiler.
        program: PathBuf,
        /// The compiler's output.
        said: String,
    },
    /// A compiler cannot link a program.
    #[error("`{}` cannot link a program: {said}", .program.display())]
    Link {
        /// The compiler.
        program: PathBuf,
        /// The compiler's output.
        said: String,
    },
    /// An interpreter does not answer the query.
    #[error("`{}` does not answer: {said}", .program.display())]
    NoAnswer {
        /// The interpreter.
        program: PathBuf,
        /// The interpreter's output.
        said: String,
    },
    /// The answer of an interpreter is not that of Python 3.8 or later.
    #[error("`{}` does not answer like Python 3.8 or later: {source}", .program.display())]
    NotPython {
        /// The interpreter.
        program: PathBuf,
        /// What is wrong with the answer.
        source: serde_json::Error,
    },
    /// Neither pip nor uv was found.
    #[error(
        "neither a Python with pip nor uv is on PATH: install one of them, or set `toolchain.cuda` to an installed CUDA"
    )]
    NoPip,
    /// pip failed.
    #[error(transparent)]
    Pip(#[from] PipFailure),
    /// pip cannot resolve requirements.
    #[error("cannot resolve {}: {why}", .requirements.iter().map(|r| format!("`{r}`")).collect::<Vec<_>>().join(", "))]
    Resolve {
        /// The requirements.
        requirements: Vec<String>,
        /// The cause.
        #[source]
        why: Box<Error>,
    },
    /// pip printed no report of what it would install.
    #[error("pip {version} gave no report (22.2 or later does): {source}")]
    NoReport {
        /// pip's version.
        version: String,
        /// The error in parsing what pip printed.
        source: serde_json::Error,
    },
    /// The query for the sizes of wheels cannot be encoded, or its answer cannot be decoded.
    #[error(transparent)]
    Sizes(serde_json::Error),
    /// An index does not state the hash of a wheel.
    #[error("the index states no SHA-256 hash of `{0}`")]
    NoHash(String),
    /// An index offers a file that is not a wheel.
    #[error("`{0}` is not a wheel")]
    NotWheel(String),
    /// A wheel is not in the folder into which pip should have downloaded it.
    #[error("pip did not download `{file}`: {source}")]
    NotDownloaded {
        /// The wheel's file.
        file: String,
        /// The system's error.
        source: io::Error,
    },
    /// pip cannot download wheels.
    #[error("cannot download {}: {why}", named(.wheels))]
    Download {
        /// The wheels.
        wheels: Vec<LockedWheel>,
        /// The cause.
        #[source]
        why: PipFailure,
    },
    /// Wheels cannot be downloaded into a folder.
    #[error("cannot download into `{}`: {source}", .folder.display())]
    DownloadInto {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// pip resolved a CUDA release without one of its parts.
    #[error("pip resolved no `{project}` for CUDA {release}")]
    NotResolved {
        /// The missing project.
        project: &'static str,
        /// The release.
        release: String,
    },
    /// The name of a CUDA release has the wrong form.
    #[error("`{0}` is not a CUDA release: expected the form `13.0`")]
    NotRelease(String),
    /// A CUDA release is too old.
    #[error(
        "CUDA {0} has no complete set of wheels: expected 13.0 or later, or the path of an installed CUDA, or \"system\""
    )]
    OldRelease(String),
    /// The lockfile lacks a wheel.
    #[error("`kforge.lock` pins no `{project}`, which {} needs: run `kforge update`", .group.name())]
    NotLocked {
        /// The wheel's project.
        project: &'static str,
        /// The group that needs the wheel.
        group: Group,
    },
    /// Wheels are not installed, and `--offline` forbids downloading them.
    #[error(
        "not installed, and --offline forbids downloading it: {}; run `kforge fetch` with a network to install it",
        named(.0)
    )]
    Offline(Vec<LockedWheel>),
    /// Wheels cannot be installed into a folder.
    #[error("cannot install into `{}`: {source}", .folder.display())]
    Install {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file differs from the locked wheel.
    #[error("`{file}` is not what `kforge.lock` pins: its {what} is {found}, expected {expected}")]
    Differs {
        /// The wheel's file.
        file: String,
        /// The property that differs.
        what: &'static str,
        /// The value that was found.
        found: String,
        /// The locked value.
        expected: String,
    },
    /// A wheel cannot be unpacked.
    #[error("cannot unpack `{file}`: {why}")]
    Unpack {
        /// The wheel's file.
        file: String,
        /// The cause.
        #[source]
        why: UnpackError,
    },
    /// Unpacked wheels contain no CUDA folder.
    #[error("`{}` holds no `nvidia/cu*`: the wheels have an unknown layout", .0.display())]
    Layout(PathBuf),
    /// A path cannot be made absolute.
    #[error("`{}`: {source}", .path.display())]
    Absolute {
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A CUDA lacks a part.
    #[error("`{}` has no {tool}, which {} needs: is it a complete CUDA?", .root.display(), .group.name())]
    Incomplete {
        /// The CUDA's folder.
        root: PathBuf,
        /// The part.
        tool: &'static str,
        /// The group that needs the part.
        group: Group,
    },
    /// An environment variable names something that is not a folder.
    #[error("`{variable}` names `{value}`, which is not a folder")]
    NoFolder {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
    },
    /// A Python cannot import any wheel of Triton.
    #[error("Triton cannot run with `{}`, which is Python {version}: {why}", .python.display())]
    TritonPython {
        /// The interpreter.
        python: PathBuf,
        /// Its version.
        version: String,
        /// Why not.
        why: String,
    },
    /// A Python cannot import any locked PyTorch.
    #[error("`kforge.lock` names no PyTorch for `{}`, which is Python {version}: run `kforge update`", .python.display())]
    TorchPython {
        /// The interpreter.
        python: PathBuf,
        /// Its version.
        version: String,
    },
    /// pip resolves requirements to nothing that was missing.
    #[error("pip resolves nothing for {}", .0.join(", "))]
    NothingAdded(Vec<String>),
    /// The PyTorch of a package index is built without CUDA.
    #[error(
        "PyTorch {version} of the package index is built without CUDA: configure pip with an index that has one with CUDA and run `kforge update`, or state \
         `toolchain.torch` without `cuda = true`"
    )]
    TorchWithoutCuda {
        /// Its version.
        version: String,
    },
    /// A Python has no PyTorch.
    #[error(
        "PyTorch is missing for `{0}`: install it with `{0} -m pip install torch` (3 GB), or set `toolchain.torch` to a release such as \"2.9\": kforge downloads its part for processors (0.5 GB), or all of it with `{{ release = \"2.9\", cuda = true }}`",
        .python.display()
    )]
    NoTorch {
        /// The interpreter.
        python: PathBuf,
    },
    /// A Python cannot import its PyTorch.
    #[error("`{}` cannot import its PyTorch: {why}", .python.display())]
    TorchImport {
        /// The interpreter.
        python: PathBuf,
        /// The message of the import.
        why: String,
    },
    /// No CUDA is installed.
    #[error(
        "no CUDA is installed: looked at `CUDA_HOME`, `CUDA_PATH`, `nvcc` on PATH and `/usr/local/cuda`; set `toolchain.cuda` to a release such as \"13.0\" to download it"
    )]
    NoCuda,
}

/// An error in unpacking a wheel.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// A file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is not an archive.
    #[error(transparent)]
    Archive(#[from] zip::result::ZipError),
    /// The archive names a path outside its folder.
    #[error("`{0}` leaves its folder")]
    Outside(String),
    /// The archive contains a link.
    #[error("`{0}` is a link")]
    IsLink(String),
}
