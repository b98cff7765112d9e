//! Every name that a declaration may declare behind its first one, and declarations without attributes. Takes a word for a name in doubt: a name too much keeps a
//! declaration that nothing needs, a name too few would change what a kernel means.

use std::collections::BTreeSet;

use super::brackets::{closing, closing_angle};
use super::part::is_keyword;
use super::tokens::{Kind, Token};

/// Words that begin an attribute with arguments.
const WITH_ARGUMENTS: [&str; 13] = [
    "__attribute__",
    "__attribute",
    "__location__",
    "alignas",
    "_Alignas",
    "__align__",
    "__builtin_align__",
    "__declspec",
    "__launch_bounds__",
    "__cluster_dims__",
    "__maxnreg__",
    "__block_size__",
    "__asm__",
];

/// A text without attributes: `[[..]]`, `__attribute__((..))`, `alignas(..)` and the like.
pub(super) fn without_attributes(text: &[Token]) -> Vec<Token> {
    let (mut out, mut at) = (vec![], 0);
    while at < text.len() {
        let next = |what: &str| text.get(at + 1).is_some_and(|t| t.kind == Kind::Punctuation && t.is(what));
        let open = match text[at].text.as_str() {
            "[" if text[at].kind == Kind::Punctuation && next("[") => Some(at),
            word if WITH_ARGUMENTS.contains(&word) && next("(") => Some(at + 1),
            _ => None,
        };
        match open.and_then(|open| closing(text, open)) {
            Some(close) => at = close,
            None => out.push(text[at].clone()),
        }
        at += 1;
    }
    out
}

/// The names of declarators behind the first comma outside brackets, in a declaration that ends with a semicolon: `*q` of `T *p = f(a, b), *q;`. `text` is without
/// the body of a class. Every word before an initializer counts.
pub(super) fn further(text: &[Token]) -> (BTreeSet<String>, bool) {
    let (mut names, mut several, mut value, mut at) = (BTreeSet::new(), false, false, 0);
    while at < text.len() {
        let token = &text[at];
        if token.is_word() {
            if several && !value && !is_keyword(&token.text) {
                names.insert(token.text.clone());
            }
        } else if token.kind == Kind::Punctuation {
            match token.text.as_str() {
                "<" if !value && at > 0 && text[at - 1].is_word() => at = closing_angle(text, at).unwrap_or(at),
                "(" | "[" | "{" => {
                    let close = closing(text, at).unwrap_or(text.len());
                    // `(*q)(int)`
                    let named = at > 0 && (text[at - 1].is_word() || text[at - 1].is(")") || text[at - 1].is("]"));
                    if several && !value && !named {
                        names.extend(plain_words(&text[at..close]));
                    }
                    at = close;
                }
                "," => (several, value) = (true, false),
                "=" => value = true,
                ";" => break,
                _ => {}
            }
        }
        at += 1;
    }
    (names, several)
}

/// The words in parentheses before other brackets: `f` of `void (*f)(int)` and of `int (&f)[3]`.
pub(super) fn enclosed(text: &[Token]) -> BTreeSet<String> {
    let (mut names, mut at) = (BTreeSet::new(), 0);
    while at < text.len() {
        match text[at].text.as_str() {
            "template" if text.get(at + 1).is_some_and(|t| t.is("<")) => {
                at = closing_angle(text, at + 1).unwrap_or(at);
            }
            "(" | "[" | "{" if text[at].kind == Kind::Punctuation => {
                let close = closing(text, at).unwrap_or(text.len());
                let pointer = text.get(at + 1).is_some_and(|t| !t.is(")"));
                if text[at].is("(") && pointer && text.get(close + 1).is_some_and(|t| t.is("(") || t.is("[")) {
                    names.extend(outer_words(&text[at + 1..close]));
                }
                at = close;
            }
            ";" | "=" => break,
            _ => {}
        }
        at += 1;
    }
    names
}

/// What stands before a macro of a header that is not here, which may be an attribute: `b` of `int b UNUSED = 3`.
pub(super) fn before_attribute(text: &[Token]) -> Option<String> {
    let end = text.iter().position(|t| ["=", "{", ";", "["].iter().any(|end| t.is(end))).unwrap_or(text.len());
    let called = (0..end).rfind(|at| text[*at].is("(")).filter(|_| end > 0 && text[end - 1].is(")"));
    let [.., name, last] = &text[..called.unwrap_or(end)] else { return None };
    let capital =
        last.text.len() > 1 && last.text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    let both = name.is_word() && last.is_word() && !is_keyword(&name.text);
    (both && capital).then(|| name.text.clone())
}

fn plain_words(text: &[Token]) -> impl Iterator<Item = String> {
    text.iter().filter(|t| t.is_word() && !is_keyword(&t.text)).map(|t| t.text.clone())
}

/// Words outside inner brackets.
fn outer_words(text: &[Token]) -> Vec<String> {
    let (mut out, mut at) = (vec![], 0);
    while at < text.len() {
        match text[at].text.as_str() {
            "(" | "[" | "{" if text[at].kind == Kind::Punctuation => at = closing(text, at).unwrap_or(text.len()),
            word if text[at].is_word() && !is_keyword(word) => out.push(word.to_string()),
            _ => {}
        }
        at += 1;
    }
    out
}
