//! Expressions of `elementwise`: the tree of a manifest's expression, compiled for elements of tensors. Knows neither tensors nor shapes.
//!
//! The language is `kforge_types::model::expr`. Elements differ from scalars as follows: arithmetic is that of f64 or of integers, without errors for overflow
//! or a zero divisor; a truth value is 1 or 0; strings are errors.

mod compile;
mod evaluate;

use kforge_types::model::expr::functions::{Function, FunctionKind, named, relu};
use kforge_types::model::expr::{Arithmetic, Comparison, Logic};

pub use compile::formula;
pub(super) use evaluate::{exact, is_exact, magnitude, operations, value};

/// An expression of `elementwise`.
#[derive(Debug, Clone, PartialEq)]
pub struct Formula {
    /// Its value.
    pub root: Element,
    /// The tensors, params and dims that it uses, and `pi`, in the order of their first use.
    pub names: Vec<String>,
}

/// A part of an expression, with a value for each element.
#[derive(Debug, Clone, PartialEq)]
pub enum Element {
    /// A literal. A truth value is 1 or 0.
    Number(f64),
    /// A name, by its position in [`Formula::names`].
    Name(usize),
    /// The negative.
    Negate(Box<Element>),
    /// 1 if the operand is 0, else 0.
    Not(Box<Element>),
    /// Arithmetic on two operands.
    Arithmetic(Arithmetic, Box<[Element; 2]>),
    /// 1 if every comparison of the chain holds, else 0; there is at least one comparison.
    Compare(Box<Element>, Vec<(Comparison, Element)>),
    /// The operand that decides; an operand that is not 0 is true.
    Logic(Logic, Box<[Element; 2]>),
    /// Condition, value if the condition is not 0, and value otherwise: `if` and `where`.
    If(Box<[Element; 3]>),
    /// A function with as many arguments as it takes; never `where` or `sizeof`.
    Call(&'static Function, Vec<Element>),
}

/// The activations that operators offer by name.
pub(super) const ACTIVATIONS: [&str; 7] = ["none", "relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh"];

/// The activation of that name; the identity for `none`.
pub(super) fn activation(name: &str) -> fn(f64) -> f64 {
    match named(name).map(|f| f.kind) {
        Some(FunctionKind::One(f)) => f,
        Some(FunctionKind::Relu) => relu,
        _ => |x| x,
    }
}

#[cfg(test)]
mod tests;
