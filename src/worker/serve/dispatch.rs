//! Which function does a step of which kind on what. The one table to add to; knows nothing else.

use super::emulated;
use crate::compiled;
use crate::verifier;
use kforge_cuda::device;
use kforge_harness::message::Response;
use kforge_harness::task::Task;
use kforge_types::record::{Platform, Spec, StepKind};

/// What does a step.
pub type Handler = fn(&Task) -> Response;

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The kind of step.
    pub kind: StepKind,
    /// What it is for.
    pub on: Platform,
    /// What does it.
    pub run: Handler,
}

/// Every step that a worker can do. The first row that fits does it.
pub const TABLE: &[Row] = &[
    Row { kind: StepKind::Oracle, on: Platform::Any, run: oracle },
    Row { kind: StepKind::Compile, on: Platform::Cpu, run: emulated::compile },
    Row { kind: StepKind::Inspect, on: Platform::Cpu, run: emulated::inspect },
    Row { kind: StepKind::Compile, on: Platform::Device, run: compiled::compile },
    Row { kind: StepKind::Inspect, on: Platform::Device, run: compiled::inspect },
    Row { kind: StepKind::Verify, on: Platform::Cpu, run: verifier::run },
    Row { kind: StepKind::Verify, on: Platform::Device, run: device::verify },
    Row { kind: StepKind::Bench, on: Platform::Device, run: device::bench },
    Row { kind: StepKind::Peaks, on: Platform::Device, run: device::peaks },
    Row { kind: StepKind::Pairs, on: Platform::Device, run: device::pairs },
    Row { kind: StepKind::Profile, on: Platform::Device, run: device::profile },
];

/// Large products of the oracle are made on a device, where there is one.
fn oracle(task: &Task) -> Response {
    kforge_harness::oracle::run(task, device::products(task))
}

/// The function for a task, from `table`; in a build for tests that of the device that a scenario stands in for, where the task is told of one.
pub fn handler(table: &[Row], task: &Task) -> Option<Handler> {
    #[cfg(any(debug_assertions, feature = "virtual-device"))]
    if let Some(run) = crate::virtual_device::handler(task) {
        return Some(run);
    }
    of(table, &task.spec)
}

fn of(table: &[Row], spec: &Spec) -> Option<Handler> {
    let on = Platform::of(&spec.params);
    table.iter().find(|row| row.kind == spec.kind && row.on == on).map(|row| row.run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn spec(kind: StepKind, params: serde_json::Value) -> Spec {
        Spec { kind, version: 1, implementation: None, params, inputs: BTreeMap::new() }
    }

    fn no(_: &Task) -> Response {
        Response::Unavailable { why: "no".into() }
    }

    #[test]
    fn kind_and_architecture_choose_the_row() {
        let table = [Row { kind: StepKind::Compile, on: Platform::Cpu, run: no }];
        let arch = |arch: &str| serde_json::json!({ "arch": arch });
        assert!(of(&table, &spec(StepKind::Compile, arch("cpu"))).is_some());
        assert!(of(&table, &spec(StepKind::Compile, arch("sm_90a"))).is_none());
        assert!(of(&table, &spec(StepKind::Inspect, arch("cpu"))).is_none());
        assert!(of(&table, &spec(StepKind::Compile, serde_json::json!({}))).is_none());
    }
}
