//! How the space of a kernel's tunables is searched, as a manifest states it. Knows words and numbers; searches nothing.

use serde::{Deserialize, Serialize};

/// Variants that a search visits where its budget does not say: enough for a model to settle in spaces of some thousand, few enough for minutes.
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
    /// Variants that are visited at most, those discarded early with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variants: Option<u32>,
    /// Seconds that its timings may hold the device, as they were counted when they were taken.
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
    /// Which variants.
    pub strategy: Strategy,
    /// How many; counts for every strategy but the exhaustive one.
    pub budget: Budget,
    /// What random choices follow from.
    pub seed: u64,
}

impl Search {
    /// How many variants of a space of `all` stand for it where nothing can be timed.
    pub fn sample_of(&self, all: usize) -> usize {
        (self.budget.variants.unwrap_or(DEFAULT_VARIANTS) as usize).min(all)
    }
}
