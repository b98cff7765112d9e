//! Errors of problems, of their inputs, and of the use of built-ins. Does not know arithmetic.

use kforge_types::model::DType;
use kforge_types::model::expr::SyntaxFault;
use kforge_types::model::expr::functions::FUNCTIONS;

use super::check::quoted;
use super::generate::DISTRIBUTIONS;
use super::registry;

/// Why a reference cannot be bound or computed, or its inputs cannot be provided.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// The reference is a function of the package.
    #[error("the reference is a function of the package, not a built-in operator")]
    NotBuiltin,
    /// No built-in has that name.
    #[error("{}", registry::unknown(.0))]
    UnknownBuiltin(String),
    /// The problem does not fit its built-in.
    #[error(transparent)]
    Misfit(#[from] Misfits),
    /// An expression cannot be read.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// An axis is stated more than once.
    #[error("axis {0} is named twice")]
    RepeatedAxis(i64),
    /// A tensor has no such axis.
    #[error("axis {axis} is outside a tensor of rank {rank}")]
    NoAxis {
        /// The axis as stated.
        axis: i64,
        /// The rank of the tensor.
        rank: usize,
    },
    /// The rank of a tensor differs from what the operator needs.
    #[error("`{tensor}` has rank {rank}, expected {expected}")]
    Rank {
        /// The tensor.
        tensor: String,
        /// Its rank.
        rank: usize,
        /// The possible ranks.
        expected: &'static str,
    },
    /// The extents along which matrices are summed differ.
    #[error(
        "`{}` {:?} has k = {} and `{}` {:?} has k = {}, expected the same; is `transpose_a` or `transpose_b` missing?",
        .0.tensor, .0.shape, .0.k, .1.tensor, .1.shape, .1.k
    )]
    InnerExtents(Box<Factor>, Box<Factor>),
    /// The batches of two tensors do not broadcast.
    #[error("batches {:?} of `{}` and {:?} of `{}` do not broadcast", .0.1, .0.0, .1.1, .1.0)]
    Batches(Box<(String, Vec<usize>)>, Box<(String, Vec<usize>)>),
    /// A setting of windows is not a valid list of integers.
    #[error("`{setting}` is {found:?}, expected one or two integers of at least {least}")]
    Window {
        /// The setting.
        setting: &'static str,
        /// The stated integers.
        found: Vec<i64>,
        /// The least possible integer.
        least: i64,
    },
    /// A window is larger than the image with its padding.
    #[error("a window of {window} does not fit in {image} with a padding of {padding} on each side")]
    WindowTooLarge {
        /// The extent of the window.
        window: usize,
        /// The extent of the image.
        image: usize,
        /// The padding on each side.
        padding: usize,
    },
    /// The axes of a transposition are not a permutation.
    #[error("`axes` is {stated:?}, expected every axis from 0 to {last} once")]
    Permutation {
        /// The stated axes.
        stated: Vec<i64>,
        /// The last axis.
        last: usize,
    },
    /// A tensor that the reference reads has no values.
    #[error("no values for `{0}`")]
    NoValues(String),
    /// A tensor that the reference reads has a number of values that does not fit its shape.
    #[error("`{tensor}` has {found} values, expected {expected}")]
    Length {
        /// The tensor.
        tensor: String,
        /// The number of values.
        found: usize,
        /// The number that its shape needs.
        expected: usize,
    },
    /// A tensor of integers has float values.
    #[error("`{0}` holds floats, expected integers")]
    Floats(String),
    /// The operator lacks a tensor that its built-in reads.
    #[error("`{builtin}` needs a tensor `{tensor}` that is read")]
    Absent {
        /// The built-in.
        builtin: &'static str,
        /// The operator's name for the tensor.
        tensor: String,
    },
    /// A count or index is out of range.
    #[error("`{tensor}`[{}] is {found}, expected {expected}", coordinates(.place))]
    OutOfRange {
        /// The tensor.
        tensor: String,
        /// The coordinates of the value.
        place: Vec<usize>,
        /// The value.
        found: i64,
        /// The possible values.
        expected: Range,
    },
    /// An expression is for a tensor that the operator does not have, or reads a name that it does not have.
    #[error("no tensor `{0}`")]
    NoTensor(String),
    /// A name in an expression is unknown.
    #[error("unknown name `{0}`")]
    UnknownName(String),
    /// A built-in computed a number of values that differs from that of its output: an error of kforge.
    #[error("BUG: builtin `{builtin}` gave {found} values for `{tensor}` of {expected}")]
    Produced {
        /// The built-in.
        builtin: &'static str,
        /// The output.
        tensor: String,
        /// The number of computed values.
        found: usize,
        /// The number of values of the output.
        expected: usize,
    },
    /// A built-in does not compute an output of the operator.
    #[error("builtin `{builtin}` does not compute `{tensor}`")]
    NotComputed {
        /// The built-in.
        builtin: &'static str,
        /// The output.
        tensor: String,
    },
    /// A function of the package generates the inputs.
    #[error("`{file}::{function}` generates the inputs, not the built-in generator")]
    OwnInputs {
        /// The function's file.
        file: String,
        /// The function.
        function: String,
    },
    /// The values of a tensor are in a file, so it is not drawn.
    #[error("`{tensor}` is in `{file}`, and is not drawn")]
    Stored {
        /// The tensor.
        tensor: String,
        /// The file.
        file: String,
    },
    /// No distribution has that name.
    #[error("unknown distribution `{}`, expected one of {}", .0, quoted(&DISTRIBUTIONS))]
    UnknownDistribution(String),
    /// An `init` needs a nonnegative count.
    #[error("`{tensor}`: {init} needs a count of at least 0, found {found}")]
    Count {
        /// The tensor.
        tensor: String,
        /// The `init`.
        init: &'static str,
        /// The count as stated.
        found: i64,
    },
    /// A range has infinite or falling bounds.
    #[error("`{tensor}`: range = [{low}, {high}] needs finite bounds in ascending order")]
    Bounds {
        /// The tensor.
        tensor: String,
        /// The lower bound.
        low: f64,
        /// The upper bound.
        high: f64,
    },
    /// A permutation of no values.
    #[error("`{tensor}`: permutation of {found}, expected at least 1")]
    EmptyPermutation {
        /// The tensor.
        tensor: String,
        /// The count as stated.
        found: i64,
    },
    /// A tensor's dtype cannot hold the floats of its `init`.
    #[error("`{tensor}`: values from {low} to {high} do not fit in {dtype}")]
    FloatsDoNotFit {
        /// The tensor.
        tensor: String,
        /// The least value.
        low: f64,
        /// The largest value.
        high: f64,
        /// The dtype.
        dtype: DType,
    },
    /// A tensor's dtype cannot hold the integers of its `init`.
    #[error("`{tensor}`: values from {low} to {high} do not fit in {dtype}")]
    IntegersDoNotFit {
        /// The tensor.
        tensor: String,
        /// The least value.
        low: i64,
        /// The largest value.
        high: i64,
        /// The dtype.
        dtype: DType,
    },
    /// An output cannot be compared as indices of extreme values.
    #[error(
        "`{output}` cannot be compared by `argmax_of = \"{input}\"`: {why}; write `compare = \"file.py::function\"` to decide which indices are accepted"
    )]
    NotExtreme {
        /// The output.
        output: String,
        /// The input that the output should point into.
        input: String,
        /// Why it does not.
        why: Box<NotExtreme>,
    },
    /// A buffer is shorter than the tensor in it.
    #[error("the buffer of `{tensor}` holds {found} bytes, its shape and strides span {expected}")]
    ShortBuffer {
        /// The tensor.
        tensor: String,
        /// The number of bytes in the buffer.
        found: usize,
        /// The number of bytes that the tensor spans.
        expected: u64,
    },
}

/// A factor of a matrix product.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Factor {
    /// The tensor.
    pub tensor: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its extent along the axis that is summed.
    pub k: usize,
}

fn coordinates(place: &[usize]) -> String {
    place.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The possible values of counts and indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Range {
    /// Indices, or a number of keys: 0 to this.
    #[error("0 to {0}")]
    UpTo(usize),
    /// Classes: 0 to this.
    #[error("a class from 0 to {0}")]
    Class(usize),
    /// Pages: 0 to this.
    #[error("a page from 0 to {0}")]
    Page(usize),
}

/// Why an output does not determine which extreme values it points to.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NotExtreme {
    /// The reference is not a built-in.
    #[error("only the built-ins `argmax` and `argmin` define the axis")]
    NotBuiltin,
    /// The reference is another built-in.
    #[error("the reference is `{0}`, not `argmax` or `argmin`")]
    Another(&'static str),
    /// The reference points into another input.
    #[error("the reference points into `{0}`")]
    Into(String),
    /// The axis of the reference is not an axis of the input.
    #[error(transparent)]
    Axis(Error),
    /// The reference has more than one axis.
    #[error("the reference has more than one axis")]
    Axes,
}

/// Everything that does not fit a built-in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .faults.join("\n"))]
pub struct Misfits {
    /// The built-in as the reference names it.
    pub builtin: String,
    /// What does not fit, one line each, for messages: each names the tensor or setting, what was expected and what to do. Never empty.
    pub faults: Vec<String>,
}

/// Why an expression of `elementwise` cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", located(self))]
pub struct ExpressionError {
    /// What is wrong.
    pub fault: ExpressionFault,
    /// The wrong bytes of the text; empty, at the end of the text, if something is missing there.
    pub at: std::ops::Range<usize>,
    /// The expression.
    pub text: String,
}

/// The error with its column, from 1, in characters. An expression that is too long is not repeated.
fn located(error: &ExpressionError) -> String {
    let ExpressionError { fault, at, text } = error;
    if matches!(fault, ExpressionFault::Syntax { fault: SyntaxFault::TooLong { .. } }) {
        return fault.to_string();
    }
    let column = text.get(..at.start).unwrap_or_default().chars().count() + 1;
    format!("{fault} at column {column} of `{text}`")
}

/// What is wrong at one place of an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionFault {
    /// It is not an expression.
    #[error("{fault}{}", functions(.fault))]
    Syntax {
        /// The syntax error.
        fault: SyntaxFault,
    },
    /// The expression contains a string.
    #[error("`'{0}'` is a string, and elements are numbers")]
    Text(String),
    /// An argument of `sizeof` that is not a dtype in quotes.
    #[error("`sizeof` takes a dtype in quotes here, such as `'f16'`")]
    NoDType,
}

/// The functions that an unknown name may refer to.
fn functions(fault: &SyntaxFault) -> String {
    match fault {
        SyntaxFault::UnknownFunction(name) => {
            registry::suggestion(name, &FUNCTIONS.iter().map(|f| f.name).collect::<Vec<_>>())
        }
        _ => String::new(),
    }
}
