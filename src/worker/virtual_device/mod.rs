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

pub use scenario::{Device, Fault, Rule, Scenario, ScenarioError};

pub(crate) use compiler::{compile, inspect};
pub(crate) use steps::{bench, pairs, peaks, profile, verify};

/// The name under which a worker learns where the scenario is.
pub const TOOL: &str = "virtual-device";
