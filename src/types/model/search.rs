//! How the space of a kernel's tunables is searched, as a manifest states it. Knows words and numbers; does not search.

use serde::{Deserialize, Serialize};

/// How many variants a search visits if its budget does not say. A model settles with this many in spaces of some thousand variants, and they take only
/// minutes.
pub const DEFAULT_VARIANTS: u32 = 64;

/// Which variants are visited, and in which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// All of them.
    #[default]
    Exhaustive,
    /// A seeded sample without replacement.
    Random,
    /// Simulated annealing along the tunables' lists, in several chains.
    Annealing,
    /// The variants that a model of the times so far predicts to be fastest.
    Model,
}

impl Strategy {
    /// The word in manifests.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Exhaustive => "exhaustive",
            Strategy::Random => "random",
            Strategy::Annealing => "annealing",
            Strategy::Model => "model",
        }
    }
}

/// When a search ends. At least one limit is set; the first that is reached ends the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Maximum number of variants that are visited, including those discarded early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variants: Option<u32>,
    /// Seconds for which the search's timings may hold the device, as counted when they were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
}

impl Default for Budget {
    fn default() -> Self {
        Budget { variants: Some(DEFAULT_VARIANTS), seconds: None }
    }
}

/// How a kernel's space is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Search {
    /// Which variants are visited.
    pub strategy: Strategy,
    /// When the search ends. The exhaustive strategy ignores it.
    pub budget: Budget,
    /// The seed of random choices.
    pub seed: u64,
}

impl Search {
    /// The size of the sample that represents a space of `all` variants if nothing can be timed.
    pub fn sample_of(&self, all: usize) -> usize {
        (self.budget.variants.unwrap_or(DEFAULT_VARIANTS) as usize).min(all)
    }
}
