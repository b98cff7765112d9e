//! `inspect`: the contents of a binary: registers, spills, shared memory, opcodes.

use super::compile::{DEVICE_PARTS, EMULATED_PARTS};
use super::descriptor::{Descriptor, Lane, Runs, Work, rewritten};
use super::{Platform, WorkerCode};
use crate::record::params::InspectParams;

pub(super) const KIND: Descriptor = Descriptor {
    name: "inspect",
    version: 1,
    verb: "Inspecting",
    color: "#5a8fb0",
    usual_ms: 100,
    // For nvdisasm's JSON of a large binary.
    memory_mib: 128,
    runs: Runs::Worker {
        lane: Lane::Compiler,
        work: &[
            Work { on: Platform::Cpu, code: WorkerCode::EmulatedInspect, parts: Some(EMULATED_PARTS) },
            Work { on: Platform::Device, code: WorkerCode::Inspect, parts: Some(DEVICE_PARTS) },
        ],
    },
    observes: None,
    parameters: rewritten::<InspectParams>,
    #[cfg(test)]
    golden: include_str!("../golden/inspect.json"),
};
