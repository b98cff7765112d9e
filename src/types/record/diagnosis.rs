//! What explains the wrong values of an output, if their pattern is plain: a transposed output, a shift, a factor. Values only: `measure::diagnose` finds them,
//! and `measure::diagnosed` puts them into words.

use serde::{Deserialize, Serialize};

use super::observation::FrontPoint;
use crate::model::DType;

/// A pattern that explains the wrong elements of an output. An element is wrong here if it is far off, as in [`super::observation::Gross`], or differs, if the
/// output is compared exactly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Diagnosis {
    /// The pattern.
    pub pattern: WrongPattern,
    /// How many elements are wrong.
    pub wrong: u64,
    /// How many of these the pattern explains. The pattern says nothing about the others, such as the first one after a shift.
    pub explained: u64,
    /// Whether the pattern holds for the elements that are not wrong, too, so that it describes the output as a whole.
    pub whole: bool,
}

/// How near the elements of an output are to what a pattern says of them: fronts as that of the output, so that every tolerance can judge whether it holds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Fit {
    /// The distance of each element to its expected value or to the value of the pattern, whichever is nearer. `want` of a point is that value. Elements that are
    /// far off and about which the pattern says nothing are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<FrontPoint>,
    /// The distance of each element to the value of the pattern, where it says one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub every: Vec<FrontPoint>,
}

/// An axis of an output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Axis {
    /// Its number, counted from 0 for the outermost.
    pub axis: u32,
    /// Its extent.
    pub extent: u64,
    /// The dim with that value, if there is exactly one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dim: Option<String>,
}

/// How wrong elements follow from expected values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum WrongPattern {
    /// The output's bytes are the expected values in another type.
    ElementType {
        /// The type.
        dtype: DType,
        /// How many expected values they are, from the first on.
        values: u64,
    },
    /// Exactly that part of the output was written that its number of elements needs in a smaller type.
    ElementSize {
        /// The bytes of an element of the smaller type.
        bytes: u64,
    },
    /// The expected values with two axes exchanged.
    Transposed {
        /// The two axes, the outer one first.
        axes: (u32, u32),
    },
    /// The expected values of places that are a fixed distance away.
    Shifted {
        /// The axis along which they are shifted; none if the output is shifted as one row of elements.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        axis: Option<Axis>,
        /// Element `i` holds the expected value of element `i + by`.
        by: i64,
        /// Whether the elements at the end hold the expected values of those at the other end.
        rotated: bool,
    },
    /// The expected values of other slices along an axis, such as those of another row, head or batch.
    Slices {
        /// The axis.
        axis: Axis,
        /// How they are arranged.
        arrangement: Arrangement,
        /// How many slices are wrong.
        slices: u64,
        /// The first wrong slices, each with the slice whose expected values it holds.
        first: Vec<(u64, u64)>,
    },
    /// The expected values with the opposite sign.
    Negated,
    /// The expected values times a number.
    Factor {
        /// The number.
        factor: f64,
        /// The dim with the value of the factor or of its reciprocal, if there is exactly one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dim: Option<String>,
    },
    /// The expected values plus a number.
    Offset {
        /// The number.
        by: f64,
    },
    /// A function of the expected values.
    Function {
        /// The function.
        function: Function,
    },
    /// The expected values of each row, which lies along the last axis, times a number that differs between rows.
    RowFactors {
        /// The smallest of these numbers.
        least: f64,
        /// The largest of these numbers.
        most: f64,
    },
    /// One value everywhere, whatever is expected.
    Constant {
        /// The value, as text.
        value: String,
    },
}

/// How slices are arranged that hold the expected values of other slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arrangement {
    /// Two slices hold the values of each other.
    Swapped,
    /// All slices are in the opposite order.
    Reversed,
    /// Every wrong slice holds the values of the same slice.
    Repeated,
    /// Any other.
    Other,
}

/// A function of an expected value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Function {
    /// 1/x.
    Reciprocal,
    /// x².
    Square,
    /// √x.
    SquareRoot,
    /// |x|.
    Magnitude,
    /// eˣ.
    Exponential,
    /// ln x.
    Logarithm,
}
