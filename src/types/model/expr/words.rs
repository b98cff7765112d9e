//! The identifiers of a text that is not an expression, such as an entry or a flag.

use std::ops::Range;

use super::lex;

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
