//! The interfaces of the engine: what executes steps, remembers results and adds nodes. Remote execution implements [`Executor`]; a remote cache implements
//! [`RemoteCache`] and [`Blobs`]. Steps notice neither.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use super::home::trouble;
use super::machine_key::Tag;
use super::{GraphError, Node, Unanswered};
use kforge_foundation::base::{Diagnostic, Digest, worded};
use kforge_types::record::event::{CacheOrigin, EvidenceSeen, Labels, Trouble};
use kforge_types::record::{Note, Spec, StepResult, Verdict};

/// A content store. Many threads and processes use one at once.
pub trait Blobs: Send + Sync {
    /// The bytes of a digest; none if they are not stored (or were damaged, and have been removed).
    fn get(&self, digest: &Digest) -> std::io::Result<Option<Vec<u8>>>;
    /// A read-only file with these bytes, for large contents. Valid while the build runs.
    fn path(&self, digest: &Digest) -> std::io::Result<Option<PathBuf>>;
    /// Stores bytes.
    fn put(&self, bytes: &[u8]) -> std::io::Result<Digest>;
    /// Stores a file's bytes. May move the file.
    fn put_file(&self, path: &Path) -> std::io::Result<Digest>;
    /// Whether the bytes are stored, without reading them. Contents that a remote cache has named count as stored until they cannot be fetched.
    fn has(&self, digest: &Digest) -> bool;
    /// Fetches contents that are elsewhere, all at once, before each is read. What cannot be fetched is no longer stored afterwards. Nothing to do for a store
    /// on this machine.
    fn fetch(&self, digests: &[Digest]) {
        let _ = digests;
    }
}

/// A remembered result.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The result.
    pub result: StepResult,
    /// The cache that had it.
    pub origin: CacheOrigin,
    /// The provenance, for an observation of a device.
    pub evidence: Option<EvidenceSeen>,
    /// The tag that was stored with the result. Whoever needs it to be valid checks it.
    pub tag: Option<Tag>,
}

/// A cache of results on this machine. Caches are asked in turn: journal, local, evidence.
pub trait Cache: Send + Sync {
    /// The result under a key, if all its outputs are available.
    fn get(&self, key: &Digest, spec: &Spec) -> std::io::Result<Option<Hit>>;
    /// The same for results that depend on more than the key: observations of devices. Only those of `product` ([`Node::product`]) count.
    fn answer(&self, key: &Digest, spec: &Spec, product: Option<&str>) -> std::io::Result<Option<Hit>> {
        let _ = product;
        self.get(key, spec)
    }
    /// Why [`Cache::answer`] has no result, if this cache holds results for such specs; none if it does not.
    fn lacks(&self, key: &Digest, spec: &Spec, product: Option<&str>) -> Option<Unanswered> {
        let _ = (key, spec, product);
        None
    }
    /// Why what this cache holds about the output of a step does not answer for the result that the step has: it is about another output.
    fn unlike(&self, spec: &Spec, result: &StepResult) -> Option<Unanswered> {
        let _ = (spec, result);
        None
    }
    /// Stores a result, whose outputs are already in the store.
    fn put(&self, key: &Digest, spec: &Spec, result: &StepResult) -> std::io::Result<()>;
}

/// A question to a [`RemoteCache`].
#[derive(Debug, Clone)]
pub struct RemoteQuestion {
    /// The key of the step.
    pub key: Digest,
    /// The spec that has this key.
    pub spec: Arc<Spec>,
    /// The outputs that steps on this machine are going to read. They are in the store when a hit is answered; all other outputs are fetched when they are read.
    pub read: Vec<String>,
    /// Whether this machine can run the step.
    pub can_run: bool,
}

/// Called once, with the result that a [`RemoteCache`] has.
pub type RemoteAnswer = Box<dyn FnOnce(Option<Hit>) + Send>;

/// A cache of results on another machine. It is asked when no cache of this machine has the result, and answers later, so that many questions are in flight at
/// once. It deals with its errors itself: a result that it cannot give is one that it does not have.
pub trait RemoteCache: Send + Sync {
    /// Whether it stores results of such steps.
    fn serves(&self, spec: &Spec) -> bool;
    /// Asks for a result. `answer` is called on another thread; without a result soon after the build is interrupted.
    fn ask(&self, question: RemoteQuestion, answer: RemoteAnswer);
    /// Stores a result, in the background. Its outputs are in the store.
    fn put(&self, key: &Digest, spec: &Spec, result: &StepResult);
    /// Compares what a step gave here with the result that was kept back until it did, if one was. `ours` is none if the step failed here. Returns whether they
    /// contradict each other.
    fn compare(&self, key: &Digest, spec: &Spec, ours: Option<&StepResult>) -> bool {
        let _ = (key, spec, ours);
        false
    }
    /// The result that was kept back until the step runs here, for a step that turned out to be unavailable here.
    fn kept_back(&self, key: &Digest) -> Option<Hit> {
        let _ = key;
        None
    }
}

/// A step ready to run: all its inputs are bound and in the store.
pub struct Job<'a> {
    /// Its readable id, for messages only.
    pub id: &'a str,
    /// Its subject. It decides nothing that a result could depend on.
    pub labels: &'a Labels,
    /// Everything that the step may see.
    pub spec: &'a Spec,
    /// Its key.
    pub key: &'a Digest,
    /// The UUID of the step's device, if it uses one: one of those in [`Resources::device`](super::Resources::device).
    pub device: Option<&'a str>,
    /// The time in seconds after which the step must be ended.
    pub time_limit_s: u64,
    /// When the step was planned. Its inputs follow from contents that were known then and from steps that were planned then, so nothing that was observed
    /// later has decided what it executes.
    pub planned: SystemTime,
    /// The store, for its inputs and outputs.
    pub blobs: &'a dyn Blobs,
    /// Set when the build is interrupted: the executor ends what it started and returns [`RunError::Interrupted`].
    pub interrupted: &'a AtomicBool,
}

/// The result of an execution.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Execution {
    /// Outputs, in the store.
    pub outputs: BTreeMap<String, Digest>,
    /// The verdict, of kinds that judge and of candidates that crashed or wrote invalid output.
    pub verdict: Option<Verdict>,
    /// Messages to show, also whenever the result is fresh.
    pub notes: Vec<Note>,
    /// A line for the user.
    pub summary: String,
    /// Whether another run may give another result, so that this one must not be stored (a time-out).
    pub forget: bool,
    /// Whether another machine executed the step. Then this machine vouches for nothing: the result gets no tag.
    pub elsewhere: bool,
    /// How long the step itself took, where the execution also waited; none if it did not.
    pub took: Option<Duration>,
}

/// Why an execution gave nothing.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RunError {
    /// This machine cannot execute the step: a device or a tool is missing.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// The step needs a tool that is not installed. The caller may install the tool and try again; otherwise the step counts as unavailable.
    #[error("{tool} is needed: {why}")]
    NeedsTool {
        /// The tool.
        tool: String,
        /// Why the step needs it.
        why: String,
    },
    /// The step failed: the compiler reported errors, or the machine ran out of a resource. Not stored.
    #[error("{message}")]
    Failed {
        /// One line.
        message: String,
        /// The tool's own messages, and further help.
        notes: Vec<Note>,
        /// The fault of the system, if known.
        trouble: Option<Trouble>,
    },
    /// The build was interrupted.
    #[error("interrupted")]
    Interrupted,
}

impl Execution {
    /// The same with its text hidden, when text is to be hidden.
    #[must_use]
    pub(crate) fn worded(self) -> Self {
        let notes = self.notes.into_iter().map(Note::worded).collect();
        Execution { verdict: self.verdict.map(Verdict::worded), notes, summary: worded(self.summary), ..self }
    }
}

impl RunError {
    /// The same with its text hidden, when text is to be hidden.
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

    /// Whether `tool` is missing.
    pub fn needs(&self, tool: &str) -> bool {
        matches!(self, RunError::NeedsTool { tool: needed, .. } if needed == tool)
    }

    /// A failure with a one-line message and without notes.
    pub fn failed(message: impl Into<String>) -> Self {
        RunError::Failed { message: message.into(), notes: vec![], trouble: None }
    }

    /// A file could not be read or written. `what` precedes the error's text and states the purpose.
    pub fn io(what: &str, error: &std::io::Error) -> Self {
        RunError::Failed { message: format!("{what}{error}"), notes: vec![], trouble: trouble(error) }
    }
}

/// Executes the steps of some kinds. One object serves many threads.
pub trait Executor: Send + Sync {
    /// Executes the step. Returns when the step and everything that it started have ended.
    fn run(&self, job: &Job<'_>) -> Result<Execution, RunError>;
}

/// Why a result's nodes could not be added.
#[derive(Debug, thiserror::Error)]
pub enum ExpandError {
    /// An output of the step can no longer be read.
    #[error("{0} is not in the store")]
    NotStored(&'static str),
    /// The output cannot be decoded.
    #[error(transparent)]
    Decode(#[from] serde_json::Error),
    /// The manifest has no such nodes.
    #[error("{}", .0.message)]
    Plan(Box<Diagnostic>),
    /// The nodes do not fit the graph: a bug of kforge.
    #[error("internal error: {0}")]
    Graph(#[from] GraphError),
    /// Planning panicked before: a bug of kforge.
    #[error("BUG: planning panicked before")]
    Panicked,
}

impl From<Diagnostic> for ExpandError {
    fn from(error: Diagnostic) -> Self {
        ExpandError::Plan(Box::new(error))
    }
}

/// Adds nodes that are known only after an earlier result. Pure.
pub trait Expand: Send + Sync {
    /// The nodes to add after `node` gave `result`. `read` returns the bytes of an output. New nodes depend only on existing nodes or on each other, and rank
    /// after `node`.
    fn expand(
        &self,
        node: &Node,
        result: &StepResult,
        read: &dyn Fn(&str) -> Option<Vec<u8>>,
    ) -> Result<Vec<Node>, ExpandError>;
}
