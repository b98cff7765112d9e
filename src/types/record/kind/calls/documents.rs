//! What a calls step saw.

use serde::{Deserialize, Serialize};

use crate::record::VerifyObservation;

/// What a calls step saw: call times of a kernel in PyTorch by the clock of a process that runs no code of it, and how outputs of timed calls compare with the
/// expected values.
///
/// A call time begins before the inputs exist in memory that the kernel's process reaches, and ends when the outputs lie in memory that it does not reach. It
/// contains what PyTorch does on the host, and the hand-over of inputs and outputs. It compares with no device time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CallsObserved {
    /// How the outputs of the timed calls that were chosen for it compare with the expected values.
    pub compared: VerifyObservation,
    /// Nanoseconds of each call on inputs of an ordinary distribution, in the order of measurement. The hand-over is not subtracted.
    pub call_ns: Vec<f64>,
    /// Nanoseconds of hand-overs without a call, on the same buffers, taken before code of the kernel was in the process.
    pub hand_over_ns: Vec<f64>,
    /// Nanoseconds of calls on inputs of a stress class, made among the others. They are in no series, because a kernel may depend on its data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stress_ns: Vec<f64>,
    /// How many of all timed calls were compared.
    pub checked: u32,
    /// Calls that were left out, because the device was under hardware slowdown or thermal limits.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped: u32,
    /// Why calls were not timed; none if they were, or if the kernel failed before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untimed: Option<String>,
    /// The kernels that further calls launched, if the kernel has a policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launched: Option<LaunchedKernels>,
}

/// The kernels of a device that calls of a kernel in PyTorch launched, as the driver's records say. A process that ran no timed call made these calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LaunchedKernels {
    /// How many calls they are of.
    pub calls: u32,
    /// The kernels by name, with the copies and fills of memory.
    pub kernels: Vec<LaunchedKernel>,
    /// Why nothing is known of them; none if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
}

/// A kernel of a device that calls of a kernel in PyTorch launched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LaunchedKernel {
    /// Its name, with template arguments where it has some.
    pub name: String,
    /// How often it ran in all calls.
    pub launches: u64,
    /// How long it ran in all calls, in nanoseconds.
    pub ns: f64,
    /// Whether it is a copy or a fill of memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub copies: bool,
    /// Whether the kernel's own files hold a function's name that is its name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub declared: bool,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl CallsObserved {
    /// Nothing was timed yet.
    pub fn begun(compared: VerifyObservation) -> Self {
        CallsObserved {
            compared,
            call_ns: vec![],
            hand_over_ns: vec![],
            stress_ns: vec![],
            checked: 0,
            dropped: 0,
            untimed: None,
            launched: None,
        }
    }
}
