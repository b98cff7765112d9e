//! The code of a worker: a file or folder of `steps/` for what no other package does, and the one place where all of it is registered. Which code does a kind
//! of step is in its descriptor ([`kforge_types::record::kind`]).

use kforge_cuda::device;
use kforge_harness::message::Response;
use kforge_harness::task::Task;
use kforge_types::record::Platform;
use kforge_types::record::kind::WorkerCode;

pub mod compiled;
mod emulated;
pub mod verifier;

#[cfg(any(debug_assertions, feature = "virtual-device"))]
use crate::virtual_device;

/// What does a step.
pub type Handler = fn(&Task) -> Response;

/// Finds what does a task; none if the worker cannot do it.
pub type Dispatch = fn(&Task) -> Option<Handler>;

/// Registered code.
#[derive(Clone, Copy)]
struct Code {
    run: Handler,
    /// What does the same for the device that a scenario stands in for.
    #[cfg(any(debug_assertions, feature = "virtual-device"))]
    stand_in: Option<Handler>,
}

/// Code that has no stand-in, or code and its stand-in of builds for tests.
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
        WorkerCode::Verify => code!(device::verify, virtual_device::verify),
        WorkerCode::Bench => code!(device::bench, virtual_device::bench),
        WorkerCode::Peaks => code!(device::peaks, virtual_device::peaks),
        WorkerCode::Pairs => code!(device::pairs, virtual_device::pairs),
        WorkerCode::Profile => code!(device::profile, virtual_device::profile),
    }
}

/// Large products of the oracle are made on a device, where there is one.
fn oracle(task: &Task) -> Response {
    kforge_harness::oracle::run(task, device::products(task))
}

/// What does a task, by its kind and platform; in a build for tests the stand-in for a device, where the task names a scenario.
pub fn handler(task: &Task) -> Option<Handler> {
    let code = registered(task.spec.kind.worker_code(Platform::of(&task.spec.params))?);
    #[cfg(any(debug_assertions, feature = "virtual-device"))]
    if let Some(stand_in) = code.stand_in.filter(|_| task.tool(virtual_device::TOOL).is_ok()) {
        return Some(stand_in);
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
