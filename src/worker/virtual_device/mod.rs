//! A device for tests, with a seeded virtual clock, that uses the same messages as a real device. Knows scenarios. Runs no candidate code. No released program
//! contains it: it is compiled only with debug assertions or with the feature `virtual-device`.
//!
//! | file | does |
//! |---|---|
//! | `scenario` | reads the properties of the device and how launches behave on it |
//! | `clock` | times, noise and drift: functions of seed and step |
//! | `steps` | executes verify, bench, calls, peaks, pairs, baseline and profile |
//! | `compiler` | stands in for compilers and the disassembler, so that tests need no toolchain; a scenario can have the real ones |
//! | `fatbin` | stands in for NVIDIA's `fatbinary` |
//! | `patterns` | compiles the regular expressions of scenarios, each once |

mod clock;
mod compiler;
mod fatbin;
mod patterns;
mod scenario;
mod steps;

pub use scenario::{BaselineRule, Device, Fault, Rule, Scenario, ScenarioError};

pub(crate) use compiler::{compile, inspect};
pub(crate) use fatbin::fatbin;
pub(crate) use steps::{baseline, bench, calls, pairs, peaks, profile, verify};

/// The name in a task's tools of the path of the scenario.
pub const TOOL: &str = "virtual-device";
