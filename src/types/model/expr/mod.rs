//! The expression language of manifests: one grammar, one parser, one tree and one list of functions for every place of a manifest that holds an expression.
//!
//! ```text
//! expression: or ["if" or "else" expression]
//! or:         and ("or" and)*
//! and:        not ("and" not)*
//! not:        "not" not | comparison
//! comparison: sum (("<" | "<=" | ">" | ">=" | "==" | "!=") sum)*          a chain holds if each of its comparisons does
//! sum:        product (("+" | "-") product)*
//! product:    unary (("*" | "/" | "//" | "%") unary)*
//! unary:      "-" unary | power
//! power:      atom ["**" unary]
//! atom:       number | string | "true" | "false" | name | name "(" expression ("," expression)* ")" | "(" expression ")"
//! ```
//!
//! [`parse`] gives a [`Tree`] with the place of each part. Two evaluators read the tree. The first is [`Expr`], here: a scalar of a manifest, such as an
//! extent, a grid or a param. Integers stay integers (a division that leaves a remainder is an error), truth values are not numbers, an unknown name is an
//! error that names it, results must fit 64 bits, and every error has its place in the manifest. The second is in `numerics::reference`: an element of a
//! tensor, where arithmetic is in f64 or over integers and a truth value is 1 or 0. Both use the same [`functions`], so they give the same bits. Knows no
//! operators or kernels.

mod check;
mod evaluate;
mod fault;
pub mod functions;
mod lex;
mod parse;
mod scalar;
#[cfg(test)]
mod tests;
mod tree;
mod value;
mod words;

pub use fault::{SyntaxError, SyntaxFault};
pub use parse::{DEEPEST, LONGEST, parse};
pub(crate) use scalar::list;
pub use scalar::{Expr, Want};
pub use tree::{Arithmetic, Comparison, Logic, Node, NodeKind, Tree};
pub use value::{Scope, Value};
pub(crate) use words::words;
