//! `verify`: runs a binary on the inputs of every trial and compares its outputs with the expected ones.

use super::descriptor::{Descriptor, Lane, Observation, Runs, Validity, Work, readable, rewritten};
use super::{Platform, WorkerCode};
use crate::record::observation::VerifyObservation;
use crate::record::params::VerifyParams;

pub(super) const KIND: Descriptor = Descriptor {
    name: "verify",
    // 2: if a function of the package compares an output, only the function decides; NaN is the most extreme value of a row.
    version: 2,
    verb: "Verifying",
    color: "#2f8f5b",
    usual_ms: 800,
    memory_mib: 32,
    runs: Runs::Worker {
        lane: Lane::Candidate,
        work: &[
            Work {
                on: Platform::Cpu,
                code: WorkerCode::EmulatedVerify,
                parts: Some(&[
                    "foundation/documents",
                    "types/documents",
                    "types/problems",
                    "types/expressions",
                    "numerics/references",
                    "numerics/comparison",
                    "numerics/diagnosis",
                    "project/c++",
                    "project/paths",
                    "project/python",
                    "harness/tasks",
                    "harness/confinement",
                    "harness/system",
                    "harness/python",
                    "harness/references",
                    "harness/candidates",
                    "harness/triton",
                    "harness/comparison",
                    "harness/verification",
                    "harness/arguments",
                    "emulator/runtime",
                    "worker/interpreted",
                    "worker/verifier",
                ]),
            },
            Work { on: Platform::Device, code: WorkerCode::Verify, parts: None },
        ],
    },
    observes: Some(Observation { validity: Validity::Product, read: readable::<VerifyObservation> }),
    parameters: rewritten::<VerifyParams>,
    #[cfg(test)]
    golden: include_str!("../golden/verify.json"),
};
