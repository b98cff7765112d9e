//! `compile`: compiles a source to a binary, for a device or for the emulator.

use super::descriptor::{Descriptor, Lane, Runs, Work, rewritten};
use super::{Platform, WorkerCode};
use crate::record::params::CompileParams;

/// The code that compiles and inspects for the emulator.
pub(super) const EMULATED_PARTS: &[&str] = &[
    "foundation/documents",
    "types/documents",
    "project/c++",
    "project/host-code",
    "project/includes",
    "harness/tasks",
    "harness/confinement",
    "harness/system",
    "harness/trees",
    "harness/triton",
    "emulator/compiler",
    "worker/emulated",
    "worker/interpreted",
];

/// The code that compiles and inspects for devices.
pub(super) const DEVICE_PARTS: &[&str] = &[
    "foundation/documents",
    "types/documents",
    "types/problems",
    "types/limits",
    "types/fatbins",
    "project/c++",
    "project/host-code",
    "harness/tasks",
    "harness/confinement",
    "harness/trees",
    "harness/python",
    "harness/triton",
    "cuda/compilers",
    "worker/compiled",
];

pub(super) const KIND: Descriptor = Descriptor {
    name: "compile",
    // 2: a binary for the emulator calls functions that are not emulated only if its source does.
    version: 2,
    verb: "Compiling",
    color: "#2f6fc4",
    usual_ms: 1500,
    memory_mib: 32,
    runs: Runs::Worker {
        lane: Lane::Compiler,
        work: &[
            Work { on: Platform::Cpu, code: WorkerCode::EmulatedCompile, parts: Some(EMULATED_PARTS) },
            Work { on: Platform::Device, code: WorkerCode::Compile, parts: Some(DEVICE_PARTS) },
        ],
    },
    observes: None,
    parameters: rewritten::<CompileParams>,
    #[cfg(test)]
    golden: include_str!("../golden/compile.json"),
};
