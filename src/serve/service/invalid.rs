//! Why a request can be evaluated nowhere.

/// The longest id of a task.
pub(super) const LONGEST_ID: usize = 100;

/// The most files of a candidate.
pub(super) const MOST_FILES: usize = 1000;

/// What is wrong with a request.
#[derive(Debug, thiserror::Error)]
pub enum Invalid {
    /// The id is none.
    #[error("the id `{0}` is not 1 to {LONGEST_ID} letters, digits and `.`, `_`, `-`, `:`")]
    Id(String),
    /// The evaluation would have no time.
    #[error("`timeout_s` is 0: expected at least 1")]
    NoTime,
    /// A kernel's table has a key that the request states elsewhere.
    #[error("`kernel` has the key `{0}`, which a candidate of an operator cannot have")]
    KernelKey(String),
    /// A candidate in PyTorch has launches.
    #[error("a candidate in PyTorch has no `launch`")]
    LaunchInTorch,
    /// A candidate in PyTorch names nothing to call.
    #[error("a candidate in PyTorch needs an `entry`")]
    NoEntry,
    /// A product is named for the processor.
    #[error("`device` names the product of a GPU, and the target is `cpu`")]
    DeviceOfCpu,
    /// A product is named for a package.
    #[error("`device` is for a candidate of an operator: a package names it in its manifest")]
    DeviceOfPackage,
    /// A manifest is no TOML.
    #[error("the manifest is not TOML: {0}")]
    Manifest(toml::de::Error),
    /// A text of a manifest names a file outside of the package.
    #[error("`{0}` leads out of the package: only files of the request can be used")]
    LeadsOut(String),
    /// There are too many files.
    #[error("the candidate has {0} files, and {MOST_FILES} are allowed")]
    ManyFiles(usize),
    /// A file has a path that it cannot have.
    #[error("the file `{}` {why}", name.escape_debug())]
    File {
        /// Its path.
        name: String,
        /// What is wrong with it.
        why: FileFault,
    },
    /// A file has the name of another one's folder.
    #[error("`{file}` is a file and the folder of `{name}`")]
    FileAndFolder {
        /// The file.
        file: String,
        /// The other one.
        name: String,
    },
    /// A file has the name of the source.
    #[error("`files` has `{0}`, which is the name of the source")]
    SourceTwice(&'static str),
    /// The request cannot be written as JSON.
    #[error("the request cannot be stored: {0}")]
    Json(#[from] serde_json::Error),
}

/// What is wrong with the path of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say it")]
pub enum FileFault {
    #[error("has no path within the package")]
    Outside,
    #[error("has a path that is too long")]
    Long,
    #[error("has a control character in its path")]
    Control,
    #[error("is hidden: no part of a path begins with a dot")]
    Hidden,
    #[error("is the manifest, which the request has in its own place")]
    Manifest,
    #[error("lies where the outputs of the build are")]
    Output,
    #[error("is a bundle of evidence, which does not count here")]
    Evidence,
}
