//! `pairs`: times two binaries in turn.

use super::descriptor::{Descriptor, Lane, Observation, Runs, Validity, Work, readable, rewritten};
use super::{Platform, WorkerCode};
use crate::record::params::PairsParams;
use crate::record::timing::PairsObserved;

pub(super) const KIND: Descriptor = Descriptor {
    name: "pairs",
    version: 1,
    verb: "Pairing",
    color: "#b8862b",
    usual_ms: 800,
    memory_mib: 32,
    runs: Runs::Worker {
        lane: Lane::Candidate,
        work: &[Work { on: Platform::Device, code: WorkerCode::Pairs, parts: None }],
    },
    observes: Some(Observation { validity: Validity::Timing, read: readable::<PairsObserved> }),
    parameters: rewritten::<PairsParams>,
    #[cfg(test)]
    golden: include_str!("../golden/pairs.json"),
};
