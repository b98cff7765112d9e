//! What kforge knows of a kind of step, as one value: [`Descriptor`]. Knows names and types; the code that does a step is registered where it lies, by
//! [`EngineCode`] in the engine's process and by [`WorkerCode`] in a worker.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{EngineCode, Platform, WorkerCode};

/// A kind of step. Each kind has one, in a file of its own.
#[derive(Debug)]
pub struct Descriptor {
    /// The name in ids, events, specs and on the command line.
    pub name: &'static str,
    /// The version of what a step of this kind means, and so of its record. What the step does enters keys by content ([`crate::record::implementation`]) and
    /// needs no new version.
    pub version: u32,
    /// The status verb while one runs: `Compiling`.
    pub verb: &'static str,
    /// The colour on the timings page: dark enough for white letters.
    pub color: &'static str,
    /// How long one takes where nothing is remembered, in milliseconds. Only the order of magnitude matters.
    pub usual_ms: u64,
    /// The memory that one needs, in MiB, where it does not depend on the problem.
    pub memory_mib: u64,
    /// Where it runs and which code does it.
    pub runs: Runs,
    /// What it observes of a device, for kinds that run candidate code: their results are observations valid for a class of devices.
    pub observes: Option<Observation>,
    /// Reads parameters as the type of this kind's parameters, and writes them as this version does.
    pub parameters: fn(&Value) -> serde_json::Result<Value>,
    /// Parameters, inputs and the key that they have had since the kind's version.
    #[cfg(test)]
    pub(crate) golden: &'static str,
}

/// Where a step runs.
#[derive(Debug)]
pub enum Runs {
    /// In the engine's process.
    Engine {
        /// The code that does it.
        code: EngineCode,
        /// Whether it is a pure function of its inputs.
        is_pure: bool,
        /// The parts of kforge's code that enter its key.
        parts: &'static [&'static str],
    },
    /// In a worker process.
    Worker {
        /// The workers that do it.
        lane: Lane,
        /// The code that does it, by platform; on other platforms the kind does not exist.
        work: &'static [Work],
    },
}

/// What a worker does for one platform.
#[derive(Debug)]
pub struct Work {
    /// The platform.
    pub on: Platform,
    /// The code that does it.
    pub code: WorkerCode,
    /// The parts of kforge's code that enter the step's key; none where a protocol in the parameters stands for them, because an observation outlives an upgrade.
    pub parts: Option<&'static [&'static str]>,
}

/// Steps that share warm workers: a worker that has loaded a compiler runs no candidate, and one that holds a device's context does not compile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Compilers and disassemblers. The worker is confined as a whole.
    Compiler,
    /// References of operators.
    Reference,
    /// Candidate code, emulated or on a device.
    Candidate,
}

/// What a kind observes.
#[derive(Debug)]
pub struct Observation {
    /// Where an observation holds.
    pub validity: Validity,
    /// Whether bytes are such an observation.
    pub read: fn(&[u8]) -> serde_json::Result<()>,
}

/// Where an observation of a device holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    /// On the same product and architecture: what a kernel computes.
    Product,
    /// With the same driver major and MIG profile too: how long it takes.
    Timing,
}

/// [`Descriptor::parameters`] of kinds whose parameters are a `P`.
pub(super) fn rewritten<P: DeserializeOwned + Serialize>(params: &Value) -> serde_json::Result<Value> {
    serde_json::to_value(P::deserialize(params)?)
}

/// [`Observation::read`] of kinds that observe an `O`.
pub(super) fn readable<O: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<()> {
    serde_json::from_slice::<O>(bytes).map(drop)
}
