//! The kinds of work that operators do, by the words that people search for. Knows only the words; `kforge_pipeline::optimize::kind` decides which of them an
//! operator shows.

use serde::{Deserialize, Serialize};

/// How an operator's results come from its inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Each result from values at one place of each input.
    Elementwise,
    /// From all values along some axes of its inputs.
    Reduction,
    /// Sums of products of two inputs.
    MatrixProduct,
    /// Products, a normalisation, and further products.
    Attention,
    /// Results that depend on intermediate results of a complete earlier pass.
    MultiPass,
}

impl Pattern {
    /// All patterns, the simplest first.
    pub const ALL: [Pattern; 5] =
        [Pattern::Elementwise, Pattern::Reduction, Pattern::MatrixProduct, Pattern::Attention, Pattern::MultiPass];

    /// Its name: `matrix-product`.
    pub const fn name(self) -> &'static str {
        match self {
            Pattern::Elementwise => "elementwise",
            Pattern::Reduction => "reduction",
            Pattern::MatrixProduct => "matrix-product",
            Pattern::Attention => "attention",
            Pattern::MultiPass => "multi-pass",
        }
    }

    /// The pattern of that name.
    pub fn named(name: &str) -> Option<Pattern> {
        Pattern::ALL.into_iter().find(|pattern| pattern.name() == name)
    }

    /// The level of an operator if only its pattern is known.
    pub fn level(self) -> u8 {
        match self {
            Pattern::Elementwise => 1,
            Pattern::Reduction => 2,
            Pattern::MatrixProduct => 3,
            Pattern::Attention => 4,
            Pattern::MultiPass => 5,
        }
    }
}

/// The highest level: see `kforge_pipeline::optimize::kind`.
pub const HIGHEST_LEVEL: u8 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_found_by_the_name_it_is_written_with() {
        for pattern in Pattern::ALL {
            assert_eq!(Pattern::named(pattern.name()), Some(pattern));
            assert_eq!(serde_json::to_value(pattern).unwrap(), pattern.name());
            assert!(pattern.level() <= HIGHEST_LEVEL);
        }
        assert_eq!(Pattern::named("reductions"), None);
    }
}
