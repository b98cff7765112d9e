//! The expression language of `elementwise`: arithmetic, comparisons and functions over named values.
//!
//! ```text
//! comparison: sum [("<" | "<=" | ">" | ">=" | "==" | "!=") sum]      1 where it holds, else 0
//! sum:        product (("+" | "-") product)*
//! product:    unary (("*" | "/") unary)*
//! unary:      "-" unary | power
//! power:      atom ["**" unary]
//! atom:       number | name | name "(" comparison ("," comparison)* ")" | "(" comparison ")"
//! ```
//!
//! Functions are listed in [`function`]. Knows neither tensors nor shapes.

mod eval;
mod function;
mod parse;

pub(super) use eval::{exact, is_exact, magnitude, operations, value};
pub(super) use function::{ACTIVATIONS, activation};
pub(super) use parse::parse;

/// A parsed expression; names are positions in the list that [`parse`] gives along.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expr {
    /// A literal.
    Number(f64),
    /// A named value.
    Name(usize),
    /// The negative.
    Negate(Box<Expr>),
    /// Two operands.
    Binary(Operator, Box<Expr>, Box<Expr>),
    /// A function of [`function`].
    Call(function::Function, Vec<Expr>),
}

/// An operator of two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
}
