//! `fatbin`: the machine code of a champion, and its PTX, in a container from which a driver takes what its device can run.

use super::descriptor::{Descriptor, Lane, Runs, Work, rewritten};
use super::{Platform, WorkerCode};

pub mod documents;

use documents::FatbinParams;

/// The code that packs.
const PARTS: &[&str] = &[
    "foundation/documents",
    "types/documents",
    "types/kinds/fatbin",
    "harness/tasks",
    "harness/confinement",
    "cuda/fatbinary",
    "worker/fatbin",
];

pub(super) const KIND: Descriptor = Descriptor {
    name: "fatbin",
    version: 1,
    verb: "Packing",
    color: "#3f6b5c",
    usual_ms: 20,
    memory_mib: 32,
    runs: Runs::Worker {
        lane: Lane::Compiler,
        work: &[Work { on: Platform::Device, code: WorkerCode::Fatbin, parts: Some(PARTS) }],
    },
    observes: None,
    parameters: rewritten::<FatbinParams>,
    #[cfg(test)]
    golden: include_str!("../golden/fatbin.json"),
};
