//! A step for the workers of a server, and what it gave there. Knows no server, and nothing of what a worker answers: who asks reads that.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use kforge_foundation::base::Digest;
use kforge_types::record::Form;

/// The kforge that a worker runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// This one, sent with the step.
    Sent(PathBuf),
    /// One that the worker has at this path.
    Installed(String),
}

/// An input of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepInput {
    /// The name of its file or folder.
    pub name: String,
    /// Its content, in the store.
    pub digest: Digest,
    /// Whether it is a file or a folder.
    pub form: Form,
}

/// A step to execute elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteStep {
    /// The program.
    pub program: Program,
    /// The spec as JSON.
    pub spec: Vec<u8>,
    /// What the worker needs to find the tools, as JSON.
    pub places: Vec<u8>,
    /// The inputs.
    pub inputs: Vec<StepInput>,
    /// What the worker must be, by name and in their order.
    pub properties: Vec<(String, String)>,
    /// What the worker compares with itself. Steps with the same digest are refused by the same workers.
    pub compared: Digest,
    /// Whether only a worker can execute it, because it observes a device. The server must not remember its result: another execution gives another one.
    pub is_observed: bool,
    /// The time limit of the step in seconds.
    pub time_limit_s: u64,
    /// How long the step may wait for a worker.
    pub queue_limit: Duration,
}

/// What the answer of a worker means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// A result with these outputs.
    Result(BTreeMap<String, Digest>),
    /// The worker's word without outputs, which is all that it can give.
    Answer,
    /// The step failed, or gave a result that another run may not give, such as a time-out. It runs here, which decides.
    Failed,
    /// The worker is another machine than the step needs, and how. Another worker may be the right one.
    Differs(String),
    /// The worker did not execute the step, and why.
    Refused(String),
}

/// Reads the answer of a worker: what it wrote to its standard output.
pub type ReadAnswer = Box<dyn Fn(&[u8]) -> Meaning + Send>;
