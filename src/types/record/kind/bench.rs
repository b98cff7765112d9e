//! `bench`: times a binary on a device.

use super::descriptor::{Descriptor, Lane, Observation, Runs, Validity, Work, readable, rewritten};
use super::{Platform, WorkerCode};
use crate::record::params::VerifyParams;
use crate::record::timing::BenchObserved;

pub(super) const KIND: Descriptor = Descriptor {
    name: "bench",
    version: 1,
    verb: "Timing",
    color: "#c4622d",
    usual_ms: 500,
    memory_mib: 32,
    runs: Runs::Worker {
        lane: Lane::Candidate,
        work: &[Work { on: Platform::Device, code: WorkerCode::Bench, parts: None }],
    },
    observes: Some(Observation { validity: Validity::Timing, read: readable::<BenchObserved> }),
    parameters: rewritten::<VerifyParams>,
    #[cfg(test)]
    golden: include_str!("../golden/bench.json"),
};
