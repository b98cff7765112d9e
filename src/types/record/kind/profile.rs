//! `profile`: the counters of a device while a kernel runs.

use super::descriptor::{Descriptor, Lane, Observation, Runs, Validity, Work, readable, rewritten};
use super::{Platform, WorkerCode};
use crate::record::profile::{ProfileObserved, ProfileParams};

pub(super) const KIND: Descriptor = Descriptor {
    name: "profile",
    version: 1,
    verb: "Profiling",
    color: "#c04f6e",
    usual_ms: 800,
    memory_mib: 32,
    runs: Runs::Worker {
        lane: Lane::Candidate,
        work: &[Work { on: Platform::Device, code: WorkerCode::Profile, parts: None }],
    },
    observes: Some(Observation { validity: Validity::Timing, read: readable::<ProfileObserved> }),
    parameters: rewritten::<ProfileParams>,
    #[cfg(test)]
    golden: include_str!("../golden/profile.json"),
};
