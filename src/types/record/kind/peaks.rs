//! `peaks`: the measured peak rates of a device.

use super::descriptor::{Descriptor, Lane, Observation, Runs, Validity, Work, readable, rewritten};
use super::{Platform, WorkerCode};
use crate::record::peaks::{PeaksObserved, PeaksParams};

pub(super) const KIND: Descriptor = Descriptor {
    name: "peaks",
    version: 1,
    verb: "Measuring",
    color: "#a8522a",
    usual_ms: 4000,
    memory_mib: 32,
    runs: Runs::Worker {
        lane: Lane::Candidate,
        work: &[Work { on: Platform::Device, code: WorkerCode::Peaks, parts: None }],
    },
    observes: Some(Observation { validity: Validity::Timing, read: readable::<PeaksObserved> }),
    parameters: rewritten::<PeaksParams>,
    #[cfg(test)]
    golden: include_str!("../golden/peaks.json"),
};
