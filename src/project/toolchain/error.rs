//! Why a tool cannot be found, installed or fingerprinted.

use std::io;
use std::path::PathBuf;

use super::cuda::Group;
use super::nsight::Nsight;
use super::pip::named;
use super::pip_failure::PipFailure;
use crate::workspace::lockfile::LockedWheel;

/// Why a tool cannot be found, installed or fingerprinted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program cannot be run.
    #[error("cannot run `{}`: {source}", .program.display())]
    Run {
        /// The program.
        program: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file or folder cannot be read.
    #[error("cannot read `{}`: {source}", .path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file that a compiler consists of cannot be read.
    #[error("cannot read `{}`'s files: {source}", .program.display())]
    ReadPart {
        /// The compiler.
        program: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// No temporary folder can be made.
    #[error("cannot create a temporary folder: {0}")]
    Temporary(io::Error),
    /// The tool that was named is not on `PATH`.
    #[error("{what} `{name}` is not on PATH")]
    NotOnPath {
        /// What kind of tool it should be.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// The tool that was named cannot be executed.
    #[error("{what} `{}` is not an executable file", .path.display())]
    NotExecutable {
        /// What kind of tool it should be.
        what: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The path of the tool that was named cannot be made absolute.
    #[error("{what} `{}`: {source}", .path.display())]
    Path {
        /// What kind of tool it should be.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
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
    /// A tool of Nsight's is nowhere.
    #[error("no `{}` on PATH, below /usr/local/cuda* or in /opt/nvidia; set its path with the setting `{}`", .0.program(), .0.setting())]
    NoNsight(Nsight),
    /// A compiler does not state its version.
    #[error("`{} --version` failed: {said}", .program.display())]
    VersionFailed {
        /// The compiler.
        program: PathBuf,
        /// Its own words.
        said: String,
    },
    /// What a tool says holds no version.
    #[error("`{} --version` reports no version", .0.display())]
    NoVersion(PathBuf),
    /// A compiler cannot read the standard headers.
    #[error("`{}` cannot read the standard headers: {said}", .program.display())]
    Headers {
        /// The compiler.
        program: PathBuf,
        /// Its own words.
        said: String,
    },
    /// A compiler cannot link a program.
    #[error("`{}` cannot link a program: {said}", .program.display())]
    Link {
        /// The compiler.
        program: PathBuf,
        /// Its own words.
        said: String,
    },
    /// An interpreter does not answer.
    #[error("`{}` does not answer: {said}", .program.display())]
    NoAnswer {
        /// The interpreter.
        program: PathBuf,
        /// Its own words.
        said: String,
    },
    /// An interpreter gives another answer than one of Python 3.8 or later.
    #[error("`{}` does not answer like Python 3.8 or later: {source}", .program.display())]
    NotPython {
        /// The interpreter.
        program: PathBuf,
        /// What is wrong with the answer.
        source: serde_json::Error,
    },
    /// There is neither pip nor uv.
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
        /// Why.
        #[source]
        why: Box<Error>,
    },
    /// pip gave no report of what it would install.
    #[error("pip {version} gave no report (22.2 or later does): {source}")]
    NoReport {
        /// pip's version.
        version: String,
        /// What is wrong with what it gave.
        source: serde_json::Error,
    },
    /// The sizes of wheels cannot be asked for or read.
    #[error(transparent)]
    Sizes(serde_json::Error),
    /// An index states no hash of a wheel.
    #[error("the index states no SHA-256 hash of `{0}`")]
    NoHash(String),
    /// An index has something else than a wheel.
    #[error("`{0}` is not a wheel")]
    NotWheel(String),
    /// A wheel is not where pip should have put it.
    #[error("pip did not download `{file}`: {source}")]
    NotDownloaded {
        /// The wheel's file.
        file: String,
        /// What the system says.
        source: io::Error,
    },
    /// pip cannot download wheels.
    #[error("cannot download {}: {why}", named(.wheels))]
    Download {
        /// The wheels.
        wheels: Vec<LockedWheel>,
        /// Why.
        #[source]
        why: PipFailure,
    },
    /// A folder cannot be downloaded to.
    #[error("cannot download into `{}`: {source}", .folder.display())]
    DownloadInto {
        /// The folder.
        folder: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// pip resolved a release of CUDA without one of its parts.
    #[error("pip resolved no `{project}` for CUDA {release}")]
    NotResolved {
        /// The project that is missing.
        project: &'static str,
        /// The release.
        release: String,
    },
    /// The name of a release has another form.
    #[error("`{0}` is not a CUDA release: expected the form `13.0`")]
    NotRelease(String),
    /// A release is too old.
    #[error(
        "CUDA {0} has no complete set of wheels: expected 13.0 or later, or the path of an installed CUDA, or \"system\""
    )]
    OldRelease(String),
    /// The lockfile lacks a wheel.
    #[error("`kforge.lock` pins no `{project}`, which {} needs: run `kforge update`", .group.name())]
    NotLocked {
        /// The wheel's project.
        project: &'static str,
        /// What needs it.
        group: Group,
    },
    /// Wheels are not installed and may not be fetched.
    #[error(
        "not installed, and --offline forbids downloading it: {}; run `kforge fetch` with a network to install it",
        named(.0)
    )]
    Offline(Vec<LockedWheel>),
    /// A folder cannot be installed into.
    #[error("cannot install into `{}`: {source}", .folder.display())]
    Install {
        /// The folder.
        folder: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file is not the wheel that was locked.
    #[error("`{file}` is not what `kforge.lock` pins: its {what} is {found}, expected {expected}")]
    Differs {
        /// The wheel's file.
        file: String,
        /// In what it differs.
        what: &'static str,
        /// What it has.
        found: String,
        /// What was locked.
        expected: String,
    },
    /// A wheel cannot be unpacked.
    #[error("cannot unpack `{file}`: {why}")]
    Unpack {
        /// The wheel's file.
        file: String,
        /// Why.
        #[source]
        why: UnpackError,
    },
    /// Unpacked wheels have no folder of CUDA's.
    #[error("`{}` holds no `nvidia/cu*`: the wheels have an unknown layout", .0.display())]
    Layout(PathBuf),
    /// A path cannot be made absolute.
    #[error("`{}`: {source}", .path.display())]
    Absolute {
        /// The path.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A CUDA lacks a part.
    #[error("`{}` has no {tool}, which {} needs: is it a complete CUDA?", .root.display(), .group.name())]
    Incomplete {
        /// The CUDA's folder.
        root: PathBuf,
        /// The part.
        tool: &'static str,
        /// What needs it.
        group: Group,
    },
    /// A variable of the environment names something else than a folder.
    #[error("`{variable}` names `{value}`, which is not a folder")]
    NoFolder {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
    },
    /// No CUDA is installed.
    #[error(
        "no CUDA is installed: looked at `CUDA_HOME`, `CUDA_PATH`, `nvcc` on PATH and `/usr/local/cuda`; set `toolchain.cuda` to a release such as \"13.0\" to download it"
    )]
    NoCuda,
}

/// Why a wheel cannot be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// A file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is no archive.
    #[error(transparent)]
    Archive(#[from] zip::result::ZipError),
    /// It names a place outside its folder.
    #[error("`{0}` leaves its folder")]
    Outside(String),
    /// It holds a link.
    #[error("`{0}` is a link")]
    IsLink(String),
}
