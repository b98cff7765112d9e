//! The expression language of manifests: one language for integers, floats and truth values, evaluated by minijinja behind strict checks.
//!
//! What the checks add: integers stay integers (a division that leaves a remainder is an error), truth values are not numbers, an unknown name is an error that names it,
//! results must fit 64 bits, division by zero is an error, and every error has its place in the manifest. Knows no operators or kernels.

mod eval;
mod functions;
mod lex;
mod strict;
#[cfg(test)]
mod tests;

pub(crate) use eval::list;
pub use eval::{Expr, Scope, Value, Want};
pub(crate) use lex_words::words;

mod lex_words {
    //! The identifiers of a text that is not an expression, such as an entry or a flag.

    use super::lex;
    use std::ops::Range;

    /// Every identifier of `text` in order, with its place.
    pub(crate) fn words(text: &str) -> Vec<Range<usize>> {
        let mut out = vec![];
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            if c.is_ascii_alphanumeric() || c == '_' {
                let len = lex::word(&text[at..]);
                if !c.is_ascii_digit() {
                    out.push(at..at + len);
                }
                at += len;
            } else {
                at += c.len_utf8();
            }
        }
        out
    }
}
