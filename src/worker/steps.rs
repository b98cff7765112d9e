//! The code of a worker: `steps/` has a file or folder for each kind of step that no other package executes, and this file registers all code. The descriptor
//! of a kind ([`kforge_types::record::kind`]) says which code executes it.

use kforge_cuda::device;
use kforge_harness::message::Response;
use kforge_harness::task::Task;
use kforge_types::record::Platform;
use kforge_types::record::kind::WorkerCode;

pub mod compiled;
mod emulated;
pub mod fatbin;
mod interpreted;
pub mod verifier;

#[cfg(any(debug_assertions, feature = "virtual-device"))]
use crate::virtual_device;

/// Code that executes a step.
pub type Handler = fn(&Task) -> Response;

/// Finds the code that executes a task; none if the worker cannot execute it.
pub type Dispatch = fn(&Task) -> Option<Handler>;

/// Registered code.
#[derive(Clone, Copy)]
struct Code {
    run: Handler,
    /// The code that simulates the same step on the virtual device of a scenario.
    #[cfg(any(debug_assertions, feature = "virtual-device"))]
    stand_in: Option<Handler>,
}

/// Registers code, with or without a stand-in. Only test builds have stand-ins.
macro_rules! code {
    ($run:path) => {
        Code {
            run: $run,
            #[cfg(any(debug_assertions, feature = "virtual-device"))]
            stand_in: None,
        }
    };
    ($run:path, $stand_in:path) => {
        Code {
            run: $run,
            #[cfg(any(debug_assertions, feature = "virtual-device"))]
            stand_in: Some($stand_in),
        }
    };
}

fn registered(code: WorkerCode) -> Code {
    match code {
        WorkerCode::Oracle => code!(oracle),
        WorkerCode::EmulatedCompile => code!(emulated::compile),
        WorkerCode::EmulatedInspect => code!(emulated::inspect),
        WorkerCode::EmulatedVerify => code!(verifier::run),
        WorkerCode::Compile => code!(compiled::compile, virtual_device::compile),
        WorkerCode::Inspect => code!(compiled::inspect, virtual_device::inspect),
        WorkerCode::Fatbin => code!(fatbin::run, virtual_device::fatbin),
        WorkerCode::Verify => code!(verifier::on_device, virtual_device::verify),
        WorkerCode::Bench => code!(device::bench, virtual_device::bench),
        WorkerCode::Calls => code!(verifier::calls::on_device, virtual_device::calls),
        WorkerCode::Peaks => code!(device::peaks, virtual_device::peaks),
        WorkerCode::Pairs => code!(verifier::call_pairs::on_device, virtual_device::pairs),
        WorkerCode::Baseline => code!(verifier::call_pairs::baseline_on_device, virtual_device::baseline),
        WorkerCode::Profile => code!(device::profile, virtual_device::profile),
    }
}

/// Computes large matrix products of the oracle on a device if there is one.
fn oracle(task: &Task) -> Response {
    kforge_harness::oracle::run(task, device::products(task))
}

/// The code that executes a task, by its kind and platform. In a test build, a task that names a scenario gets the stand-in for a device.
pub fn handler(task: &Task) -> Option<Handler> {
    let which = task.spec.kind.worker_code(Platform::of(&task.spec.params))?;
    let code = registered(which);
    #[cfg(any(debug_assertions, feature = "virtual-device"))]
    if let Some(stand_in) = code.stand_in.filter(|_| task.tool(virtual_device::TOOL).is_ok()) {
        let compiles = matches!(which, WorkerCode::Compile | WorkerCode::Inspect);
        if !(compiles && virtual_device::Scenario::compiles(task)) {
            return Some(stand_in);
        }
    }
    Some(code.run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::record::StepKind;

    #[test]
    fn kind_and_architecture_choose_the_code() {
        let of = |kind: StepKind, params| kind.worker_code(Platform::of(&params));
        let arch = |arch: &str| serde_json::json!({ "arch": arch });
        assert_eq!(of(StepKind::Compile, arch("cpu")), Some(WorkerCode::EmulatedCompile));
        assert_eq!(of(StepKind::Compile, arch("sm_90a")), Some(WorkerCode::Compile));
        assert_eq!(of(StepKind::Compile, serde_json::json!({})), None);
        assert_eq!(of(StepKind::Bench, arch("cpu")), None);
        assert_eq!(of(StepKind::Judge, serde_json::json!({})), None, "it runs in the engine's process");
    }
}
