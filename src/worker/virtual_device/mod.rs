//! A device for tests, with a seeded virtual clock, behind the same messages as a real one. Knows scenarios; nothing here runs candidate code, and nothing here
//! is in a released program: it is compiled where debug assertions are, and elsewhere only with the feature `virtual-device`.
//!
//! | file | does |
//! |---|---|
//! | `scenario` | reads what the device is and how launches behave there |
//! | `clock` | times, noise and drift: functions of seed and step |
//! | `steps` | answers verify, bench, peaks, pairs and profile |
//! | `compiler` | stands in for NVRTC and the disassembler, so that tests need no toolchain |

mod clock;
mod compiler;
mod scenario;
mod steps;

pub use scenario::{Device, Fault, Rule, Scenario};

use compiler::{compile, inspect};
use steps::{bench, pairs, peaks, profile, verify};

use crate::serve::dispatch::Handler;
use kforge_harness::task::Task;
use kforge_types::record::{Platform, StepKind};

/// What does a task for a device if a scenario stands in for one.
pub fn handler(task: &Task) -> Option<Handler> {
    if task.tool(TOOL).is_err() || Platform::of(&task.spec.params) != Platform::Device {
        return None;
    }
    match task.spec.kind {
        StepKind::Compile => Some(compile),
        StepKind::Inspect => Some(inspect),
        StepKind::Verify => Some(verify),
        StepKind::Bench => Some(bench),
        StepKind::Peaks => Some(peaks),
        StepKind::Pairs => Some(pairs),
        StepKind::Profile => Some(profile),
        _ => None,
    }
}

/// The name under which a worker is told where the scenario lies.
pub const TOOL: &str = "virtual-device";
