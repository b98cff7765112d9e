//! `calls`: times calls of a kernel in PyTorch, and compares the outputs of timed calls with the expected values.

use super::descriptor::{Descriptor, Lane, Observation, Runs, Validity, Work, readable, rewritten};
use super::{Platform, WorkerCode};
use crate::record::params::VerifyParams;

pub mod documents;

use documents::CallsObserved;

pub(super) const KIND: Descriptor = Descriptor {
    name: "calls",
    version: 1,
    verb: "Calling",
    color: "#8a5a7a",
    usual_ms: 15_000,
    memory_mib: 2048,
    runs: Runs::Worker {
        lane: Lane::Candidate,
        work: &[Work { on: Platform::Device, code: WorkerCode::Calls, parts: None }],
    },
    observes: Some(Observation { validity: Validity::Timing, read: readable::<CallsObserved> }),
    parameters: rewritten::<VerifyParams>,
    #[cfg(test)]
    golden: include_str!("../golden/calls.json"),
};
