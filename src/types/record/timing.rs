//! What bench and pairs steps saw: raw samples, free of policy.

use serde::{Deserialize, Serialize};

use super::profile::Peaks;

/// Samples taken one way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Series {
    /// Nanoseconds a sequence of launches, in the order taken, dropped ones left out.
    pub samples_ns: Vec<f64>,
    /// Samples dropped under hardware slowdown or thermal limits.
    pub dropped: u32,
}

/// What a bench step saw. Cold and hot are different quantities and never mixed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BenchObserved {
    /// L2 flushed, pointers rotated.
    pub cold: Option<Series>,
    /// One buffer set, rewritten between samples.
    pub hot: Option<Series>,
    /// Whether the outputs of timed launches were verified after timing.
    pub verified: bool,
    /// What the device can do at most; none where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peaks: Option<Peaks>,
    /// Whether only few samples of one kind were asked for, to say who is worth more of them, and of a variant much slower than another one alone: then nothing was done against kernels that know when they are timed
    /// beyond looking at their outputs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub few: bool,
    /// Seconds for which the step held the device, as whoever measured counted them: what a search with a budget in seconds spends. None where it was not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_s: Option<f64>,
}

/// What a pairs step saw of two binaries A and B.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PairsObserved {
    /// A block an entry: the logarithms of (time of A / time of B) of its ABBA pairs.
    pub blocks: Vec<Vec<f64>>,
}
