//! `baseline`: times PyTorch in turn with a champion, and compares its outputs with the expected values.

use super::descriptor::{Descriptor, Lane, Observation, Runs, Validity, Work, readable, rewritten};
use super::{Platform, WorkerCode};

pub mod documents;

use documents::{BaselineObserved, BaselineParams};

pub(super) const KIND: Descriptor = Descriptor {
    name: "baseline",
    version: 1,
    verb: "Running",
    color: "#9a5b2e",
    usual_ms: 12_000,
    memory_mib: 2048,
    runs: Runs::Worker {
        lane: Lane::Candidate,
        work: &[Work { on: Platform::Device, code: WorkerCode::Baseline, parts: None }],
    },
    observes: Some(Observation { validity: Validity::Timing, read: readable::<BaselineObserved> }),
    parameters: rewritten::<BaselineParams>,
    #[cfg(test)]
    golden: include_str!("../golden/baseline.json"),
};
