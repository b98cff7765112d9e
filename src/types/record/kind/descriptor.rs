//! Everything that kforge knows of a kind of step, as one value: [`Descriptor`]. Knows names and types; the code that executes a step is registered where it is
//! defined, by [`EngineCode`] in the engine's process and by [`WorkerCode`] in a worker.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{EngineCode, Platform, WorkerCode};

/// A kind of step. Each kind has one descriptor, in its own file.
#[derive(Debug)]
pub struct Descriptor {
    /// The name in ids, events, specs and on the command line.
    pub name: &'static str,
    /// The version of the meaning of a step of this kind, and so of its record. The code that executes the step enters keys by content
    /// ([`crate::record::implementation`]) and needs no new version.
    pub version: u32,
    /// The status verb while a step runs: `Compiling`.
    pub verb: &'static str,
    /// The color on the timings page, dark enough for white letters.
    pub color: &'static str,
    /// The usual duration of a step in milliseconds if nothing is remembered. Only the order of magnitude matters.
    pub usual_ms: u64,
    /// The memory that a step needs, in MiB, if it does not depend on the problem.
    pub memory_mib: u64,
    /// Where a step runs and which code executes it.
    pub runs: Runs,
    /// What a step observes of a device, for kinds that run candidate code. Their results are observations that are valid for a class of devices.
    pub observes: Option<Observation>,
    /// Reads parameters as the type of this kind's parameters, and writes them as this version does.
    pub parameters: fn(&Value) -> serde_json::Result<Value>,
    /// Parameters, inputs and the key that they have had since the kind's version was set.
    #[cfg(test)]
    pub(crate) golden: &'static str,
}

/// Where a step runs.
#[derive(Debug)]
pub enum Runs {
    /// In the engine's process.
    Engine {
        /// The code that executes it.
        code: EngineCode,
        /// Whether it is a pure function of its inputs.
        is_pure: bool,
        /// The parts of kforge's code that enter its key.
        parts: &'static [&'static str],
    },
    /// In a worker process.
    Worker {
        /// The workers that execute it.
        lane: Lane,
        /// The code that executes it, by platform. On other platforms the kind does not exist.
        work: &'static [Work],
    },
}

/// The work of a worker on one platform.
#[derive(Debug)]
pub struct Work {
    /// The platform.
    pub on: Platform,
    /// The code that executes the step.
    pub code: WorkerCode,
    /// The parts of kforge's code that enter the step's key. None if a protocol in the parameters takes their place, because an observation outlives an
    /// upgrade.
    pub parts: Option<&'static [&'static str]>,
}

/// Steps that share warm workers. A worker that has loaded a compiler runs no candidate, and a worker that holds a device's context does not compile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Compilers and disassemblers. The worker is confined as a whole.
    Compiler,
    /// References of operators.
    Reference,
    /// Candidate code, emulated or on a device.
    Candidate,
}

/// What a step of a kind observes.
#[derive(Debug)]
pub struct Observation {
    /// Where an observation is valid.
    pub validity: Validity,
    /// Checks that bytes are such an observation.
    pub read: fn(&[u8]) -> serde_json::Result<()>,
}

/// Where an observation of a device is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    /// On the same product and architecture. For what a kernel computes.
    Product,
    /// On the same product and architecture, with the same driver major version and MIG profile. For how long a kernel takes.
    Timing,
}

/// [`Descriptor::parameters`] of kinds with parameters of type `P`.
pub(super) fn rewritten<P: DeserializeOwned + Serialize>(params: &Value) -> serde_json::Result<Value> {
    serde_json::to_value(P::deserialize(params)?)
}

/// [`Observation::read`] of kinds with observations of type `O`.
pub(super) fn readable<O: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<()> {
    serde_json::from_slice::<O>(bytes).map(drop)
}
