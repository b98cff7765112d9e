//! What counts as equal. Knows the terms of a tolerance; does not compare (`measure` does).

use serde::{Deserialize, Serialize};

use super::DType;

/// How far an element may differ from its expected value:
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
    /// Part relative to the operator applied to absolute values, in epsilons of the accumulator.
    pub scaled: f64,
    /// The accumulator's dtype, which determines epsilon.
    pub acc: DType,
    /// Share of elements that must pass.
    pub matched: f64,
    /// Maximum absolute error of the elements that need not pass.
    pub max_error: Option<f64>,
    /// How values that are not finite are compared.
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

/// How an operator's kernels may compute, where a tolerance is derived: less precisely than in f32 with one rounding at the end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Precision {
    /// The type in which sums are accumulated; none for f32 (f64 for an f64 output).
    pub accumulate: Option<DType>,
    /// The types to which values between the inputs and the result are rounded, one for each rounding.
    pub intermediates: Vec<DType>,
}

/// How values that are not finite are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Nonfinite {
    /// The same class (NaN, plus or minus infinity) in the same place.
    #[default]
    Same,
    /// If a value that is not finite is expected, any value that is not finite. If a finite value is expected, a finite one.
    Any,
    /// No such value may occur, even if it is expected.
    Forbid,
}

/// How an output is compared.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Compare {
    /// Element by element.
    #[default]
    Elements,
    /// The output holds indices into the named input along the axis of the reference, a built-in `argmax` or `argmin`. Any index whose value equals the largest
    /// or smallest value is accepted.
    ArgmaxOf(String),
    /// The rows of the last axis are compared as multisets.
    Unordered,
    /// A Python function of the package decides: file and function.
    Python(String, String),
}
