//! What bench and pairs steps saw: raw samples, free of policy.

use serde::{Deserialize, Serialize};

use super::profile::Peaks;

/// Samples of one series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Series {
    /// Nanoseconds per sequence of launches, in the order of measurement, without dropped samples.
    pub samples_ns: Vec<f64>,
    /// Samples dropped under hardware slowdown or thermal limits.
    pub dropped: u32,
}

/// What a bench step saw. Cold and hot times are different quantities and are never mixed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BenchObserved {
    /// With L2 flushed and pointers rotated.
    pub cold: Option<Series>,
    /// With one buffer set, rewritten between samples.
    pub hot: Option<Series>,
    /// Whether the outputs of timed launches were verified after timing.
    pub verified: bool,
    /// The theoretical peaks of the device; none if it does not report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peaks: Option<Peaks>,
    /// Whether only few samples of one series were requested, to decide which variants are worth more of them. A variant that is much slower than another gets
    /// only one sample. The only measure against kernels that detect timing is then a check of their outputs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub few: bool,
    /// Seconds for which the step held the device, as counted by the process that measured. A search with a budget in seconds spends them. None if they were
    /// not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_s: Option<f64>,
}

/// One of the two binaries of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the two binaries of a pair")]
pub enum Side {
    A,
    B,
}

impl Side {
    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Side::A => Side::B,
            Side::B => Side::A,
        }
    }
}

/// What a pairs step saw of two binaries A and B.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PairsObserved {
    /// One entry per block of ABBA pairs: the logarithms of (time of A / time of B).
    pub blocks: Vec<Vec<f64>>,
    /// The binary that came first in each block: that was loaded, warmed up and timed first. Empty if it was not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first: Vec<Side>,
}

impl PairsObserved {
    /// The same pairs with the names of the binaries exchanged.
    #[must_use]
    pub fn turned(self) -> Self {
        let turned = |block: Vec<f64>| block.into_iter().map(|ratio| -ratio).collect();
        PairsObserved {
            blocks: self.blocks.into_iter().map(turned).collect(),
            first: self.first.into_iter().map(Side::other).collect(),
        }
    }
}
