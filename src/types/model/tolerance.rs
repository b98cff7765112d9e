//! What counts as equal. Knows the terms of a tolerance; does not compare (that is `measure`).

use serde::{Deserialize, Serialize};

use super::DType;

/// How far an element may lie from its expected value:
/// `|got - want| <= atol + rtol * |want| + ulp * ulp(want) + scaled * eps(acc) * S`, `want` rounded to the output's dtype.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Tolerance {
    /// Absolute part.
    pub atol: f64,
    /// Part relative to the expected value.
    pub rtol: f64,
    /// Units in the last place of the expected value, in the output's dtype.
    pub ulp: f64,
    /// Part relative to the operator on absolute values, in epsilons of the accumulator.
    pub scaled: f64,
    /// The accumulator's dtype, which fixes epsilon.
    pub acc: DType,
    /// Share of elements that must pass.
    pub matched: f64,
    /// Cap on the absolute error of the elements that need not pass.
    pub max_error: Option<f64>,
    /// What to make of values that are not finite.
    pub nonfinite: Nonfinite,
}

impl Default for Tolerance {
    fn default() -> Self {
        Tolerance {
            atol: 0.0,
            rtol: 0.0,
            ulp: 0.0,
            scaled: 0.0,
            acc: DType::F32,
            matched: 1.0,
            max_error: None,
            nonfinite: Nonfinite::Same,
        }
    }
}

/// What to make of values that are not finite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Nonfinite {
    /// The same class (NaN, plus or minus infinity) in the same place.
    #[default]
    Same,
    /// Any value that is not finite where one is expected; a finite one where a finite one is expected.
    Any,
    /// None may occur, expected or not.
    Forbid,
}

/// How an output is compared.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Compare {
    /// Element by element.
    #[default]
    Elements,
    /// The output indexes the named input along the axis of the reference, a built-in `argmax` or `argmin`: any index whose value equals the
    /// largest or least will do.
    ArgmaxOf(String),
    /// The rows of the last axis as multisets.
    Unordered,
    /// A Python function of the package decides: file and function.
    Python(String, String),
}
