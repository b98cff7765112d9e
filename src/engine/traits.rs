//! The interfaces of the engine: what executes steps, remembers results and adds nodes. Remote execution implements [`Executor`], a remote cache
//! [`Cache`] and [`Blobs`]; steps notice neither.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::home::trouble;
use super::{GraphError, Node};
use kforge_foundation::base::{Diagnostic, Digest, worded};
use kforge_types::record::event::{CacheOrigin, EvidenceSeen, Trouble};
use kforge_types::record::{Note, Spec, StepResult, Verdict};

/// A content store. Many threads and processes use one at once.
pub trait Blobs: Send + Sync {
    /// The bytes of that digest; none if they are not there (or were found corrupt, and removed).
    fn get(&self, digest: &Digest) -> std::io::Result<Option<Vec<u8>>>;
    /// A read-only file with these bytes, for large ones; valid while the build runs.
    fn path(&self, digest: &Digest) -> std::io::Result<Option<PathBuf>>;
    /// Keeps bytes.
    fn put(&self, bytes: &[u8]) -> std::io::Result<Digest>;
    /// Keeps a file's bytes; may move the file.
    fn put_file(&self, path: &Path) -> std::io::Result<Digest>;
    /// Whether it is there, without reading it.
    fn has(&self, digest: &Digest) -> bool;
}

/// A remembered result.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The result.
    pub result: StepResult,
    /// Who remembered it.
    pub origin: CacheOrigin,
    /// Where it was observed, if it is an observation of a device.
    pub evidence: Option<EvidenceSeen>,
}

/// A memory of results. Asked in turn: journal, local, evidence, remote.
pub trait Cache: Send + Sync {
    /// The result under that key, if all its outputs are available.
    fn get(&self, key: &Digest, spec: &Spec) -> std::io::Result<Option<Hit>>;
    /// The same for results that depend on more than the key: observations of devices, where only those of `product` ([`Node::product`]) count.
    fn answer(&self, key: &Digest, spec: &Spec, product: Option<&str>) -> std::io::Result<Option<Hit>> {
        let _ = product;
        self.get(key, spec)
    }
    /// Why [`Cache::answer`] has none, for people, where this memory keeps what such a spec asks for; none where it does not.
    fn lacks(&self, key: &Digest, spec: &Spec, product: Option<&str>) -> Option<String> {
        let _ = (key, spec, product);
        None
    }
    /// Remembers a result; its outputs are in the store already.
    fn put(&self, key: &Digest, spec: &Spec, result: &StepResult) -> std::io::Result<()>;
}

/// A step ready to run: all its inputs are bound and in the store.
pub struct Job<'a> {
    /// Its readable id, for messages only.
    pub id: &'a str,
    /// All that it may see.
    pub spec: &'a Spec,
    /// Its key.
    pub key: &'a Digest,
    /// The UUID of the device that it has, if it has one: one of those in [`Resources::device`](super::Resources::device).
    pub device: Option<&'a str>,
    /// Seconds after which it must be ended.
    pub time_limit_s: u64,
    /// The store, for its inputs and outputs.
    pub blobs: &'a dyn Blobs,
    /// Set when the build is interrupted: the executor ends what it started and returns [`RunError::Interrupted`].
    pub interrupted: &'a AtomicBool,
}

/// What an executor gives.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Execution {
    /// Outputs, in the store.
    pub outputs: BTreeMap<String, Digest>,
    /// For kinds that judge, and for candidates that crashed or wrote nonsense.
    pub verdict: Option<Verdict>,
    /// Messages to show, now and when fresh.
    pub notes: Vec<Note>,
    /// One line for people.
    pub summary: String,
    /// Whether another run may give another result, so that it must not be remembered (a time-out).
    pub forget: bool,
}

/// Why an executor gave nothing.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RunError {
    /// This machine cannot: no device, no tool.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// It needs a tool that is not installed. The caller may install it and try again; otherwise this counts as unavailable.
    #[error("{tool} is needed: {why}")]
    NeedsTool {
        /// The tool.
        tool: String,
        /// What it needs it for.
        why: String,
    },
    /// It failed: the compiler reported errors, or the machine ran out of a resource. Not remembered.
    #[error("{message}")]
    Failed {
        /// One line.
        message: String,
        /// The tool's own words and what else helps.
        notes: Vec<Note>,
        /// The fault of the system, if known.
        trouble: Option<Trouble>,
    },
    /// The build was interrupted.
    #[error("interrupted")]
    Interrupted,
}

impl Execution {
    /// With its words hidden, where words are.
    #[must_use]
    pub(crate) fn worded(self) -> Self {
        let notes = self.notes.into_iter().map(Note::worded).collect();
        Execution { verdict: self.verdict.map(Verdict::worded), notes, summary: worded(self.summary), ..self }
    }
}

impl RunError {
    /// With its words hidden, where words are.
    #[must_use]
    pub(crate) fn worded(self) -> Self {
        match self {
            RunError::Unavailable(why) => RunError::Unavailable(worded(why)),
            RunError::NeedsTool { tool, why } => RunError::NeedsTool { tool, why: worded(why) },
            RunError::Failed { message, notes, trouble } => {
                let notes = notes.into_iter().map(Note::worded).collect();
                RunError::Failed { message: worded(message), notes, trouble }
            }
            RunError::Interrupted => RunError::Interrupted,
        }
    }

    /// Whether it needs this tool.
    pub fn needs(&self, tool: &str) -> bool {
        matches!(self, RunError::NeedsTool { tool: needed, .. } if needed == tool)
    }

    /// It could not be done, in one line and without notes.
    pub fn failed(message: impl Into<String>) -> Self {
        RunError::Failed { message: message.into(), notes: vec![], trouble: None }
    }

    /// A file could not be read or written; `what` says what for.
    pub fn io(what: &str, error: &std::io::Error) -> Self {
        RunError::Failed { message: format!("{what}{error}"), notes: vec![], trouble: trouble(error) }
    }
}

/// Runs the steps of some kinds. One object serves many threads.
pub trait Executor: Send + Sync {
    /// Runs the step and returns when it, and everything it started, has ended.
    fn run(&self, job: &Job<'_>) -> Result<Execution, RunError>;
}

/// Why the nodes that a result adds are not known.
#[derive(Debug, thiserror::Error)]
pub enum ExpandError {
    /// What the step gave cannot be read any more.
    #[error("{0} is not in the store")]
    NotStored(&'static str),
    /// It cannot be decoded.
    #[error(transparent)]
    Decode(#[from] serde_json::Error),
    /// The manifest has no such nodes.
    #[error("{}", .0.message)]
    Plan(Box<Diagnostic>),
    /// The nodes do not fit the graph: an error of kforge.
    #[error("internal error: {0}")]
    Graph(#[from] GraphError),
    /// Planning panicked before: an error of kforge.
    #[error("BUG: planning panicked before")]
    Panicked,
}

impl From<Diagnostic> for ExpandError {
    fn from(error: Diagnostic) -> Self {
        ExpandError::Plan(Box::new(error))
    }
}

/// Adds the nodes that are known only after an earlier result. Pure.
pub trait Expand: Send + Sync {
    /// Nodes to add after `node` gave `result`; `read` gives the bytes of its outputs. New nodes depend only on nodes that exist or on each other, and
    /// rank after `node`.
    fn expand(
        &self,
        node: &Node,
        result: &StepResult,
        read: &dyn Fn(&str) -> Option<Vec<u8>>,
    ) -> Result<Vec<Node>, ExpandError>;
}
