//! Which function does a step of which kind on what. The one table to add to; knows nothing else.

use super::emulated;
use crate::record::{Spec, StepKind};
use crate::worker::compiled;
use crate::worker::cuda::device;
use crate::worker::judge;
use crate::worker::message::Response;
use crate::worker::oracle;
use crate::worker::task::Task;

/// What does a step.
pub type Handler = fn(&Task) -> Response;

/// What a step is for, by its parameter `arch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// Steps without an architecture.
    Any,
    /// `arch` is `cpu`.
    Cpu,
    /// `arch` is anything else.
    Device,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The kind of step.
    pub kind: StepKind,
    /// What it is for.
    pub on: On,
    /// What does it.
    pub run: Handler,
}

/// Every step that a worker can do. The first row that fits does it.
pub const TABLE: &[Row] = &[
    Row { kind: StepKind::Oracle, on: On::Any, run: oracle::run },
    Row { kind: StepKind::Compile, on: On::Cpu, run: emulated::compile },
    Row { kind: StepKind::Inspect, on: On::Cpu, run: emulated::inspect },
    Row { kind: StepKind::Compile, on: On::Device, run: compiled::compile },
    Row { kind: StepKind::Inspect, on: On::Device, run: compiled::inspect },
    Row { kind: StepKind::Verify, on: On::Cpu, run: judge::run },
    Row { kind: StepKind::Verify, on: On::Device, run: device::verify },
    Row { kind: StepKind::Bench, on: On::Device, run: device::bench },
    Row { kind: StepKind::Peaks, on: On::Device, run: device::peaks },
    Row { kind: StepKind::Pairs, on: On::Device, run: device::pairs },
    Row { kind: StepKind::Profile, on: On::Device, run: device::profile },
];

impl On {
    /// What a step is for.
    pub fn of(spec: &Spec) -> On {
        match spec.params.get("arch").and_then(|arch| arch.as_str()) {
            None => On::Any,
            Some("cpu") => On::Cpu,
            Some(_) => On::Device,
        }
    }
}

/// The function for a task, from `table`; in a build for tests that of the device that a scenario stands in for, where the task is told of one.
pub fn handler(table: &[Row], task: &Task) -> Option<Handler> {
    #[cfg(any(debug_assertions, feature = "virtual-device"))]
    if let Some(run) = crate::worker::virtual_device::handler(task) {
        return Some(run);
    }
    of(table, &task.spec)
}

fn of(table: &[Row], spec: &Spec) -> Option<Handler> {
    let on = On::of(spec);
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
        let table = [Row { kind: StepKind::Compile, on: On::Cpu, run: no }];
        let arch = |arch: &str| serde_json::json!({ "arch": arch });
        assert!(of(&table, &spec(StepKind::Compile, arch("cpu"))).is_some());
        assert!(of(&table, &spec(StepKind::Compile, arch("sm_90a"))).is_none());
        assert!(of(&table, &spec(StepKind::Inspect, arch("cpu"))).is_none());
        assert!(of(&table, &spec(StepKind::Compile, serde_json::json!({}))).is_none());
    }
}
