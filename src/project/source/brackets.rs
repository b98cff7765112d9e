//! Brackets of a text of tokens, and the words that stand before them. Knows no declarations.

use super::tokens::{Kind, Token};

/// How many tokens a list of template parameters or arguments may have.
const LONGEST_LIST: usize = 5_000;

/// Words before a parenthesis that begins no list of parameters.
const ATTRIBUTES: [&str; 15] = [
    "__launch_bounds__",
    "__attribute__",
    "__attribute",
    "alignas",
    "__align__",
    "__builtin_align__",
    "__declspec",
    "decltype",
    "noexcept",
    "__cluster_dims__",
    "__maxnreg__",
    "__block_size__",
    "explicit",
    "requires",
    "__typeof__",
];

pub(super) fn is_attribute(word: &str) -> bool {
    ATTRIBUTES.contains(&word)
}

/// The keyword that says what a declaration declares: the first one after template parameters, attributes and specifiers.
pub(super) fn head(text: &[Token]) -> Option<&str> {
    let mut at = 0;
    while at < text.len() {
        let token = &text[at];
        match token.text.as_str() {
            "template" if text.get(at + 1).is_some_and(|t| t.is("<")) => at = closing_angle(text, at + 1)?,
            word @ ("struct" | "class" | "union" | "enum" | "typedef" | "using" | "namespace" | "static_assert"
            | "concept") => {
                return Some(word);
            }
            "requires" => at = constraint(text, at + 1)?.checked_sub(1)?,
            word if is_attribute(word) && text.get(at + 1).is_some_and(|t| t.is("(")) => at = closing(text, at + 1)?,
            "[" if token.kind == Kind::Punctuation && text.get(at + 1).is_some_and(|t| t.is("[")) => {
                at = closing(text, at)?;
            }
            "static" | "inline" | "extern" | "constexpr" | "const" | "volatile" | "__device__" | "__constant__"
            | "__host__" | "__managed__" | "__shared__" | "template" => {}
            _ if matches!(token.kind, Kind::Literal | Kind::Directive) => {}
            _ => return None,
        }
        at += 1;
    }
    None
}

/// The position behind the constraint of a `requires` clause that begins at a position.
fn constraint(text: &[Token], from: usize) -> Option<usize> {
    let is = |at: usize, what: &[&str]| text.get(at).is_some_and(|t| what.iter().any(|word| t.is(word)));
    let mut at = from;
    loop {
        while is(at, &["!", "::"]) {
            at += 1;
        }
        let requirements = is(at, &["requires"]);
        at = if is(at, &["("]) { closing(text, at)? + 1 } else { at + 1 };
        while is(at, &["::", "<"]) || requirements && is(at, &["(", "{"]) {
            at = match text[at].text.as_str() {
                "<" => closing_angle(text, at)? + 1,
                "::" => at + 2,
                _ => closing(text, at)? + 1,
            };
        }
        if !(is(at, &["&", "|"]) && is(at + 1, &["&", "|"])) {
            return (at <= text.len()).then_some(at);
        }
        at += 2;
    }
}

/// The position of the bracket that closes the one at `open`.
pub(super) fn closing(text: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, token) in text.iter().enumerate().skip(open).filter(|(_, t)| t.kind == Kind::Punctuation) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// The position of the `>` that closes the `<` at `open`, where a list of template parameters or arguments begins.
pub(super) fn closing_angle(text: &[Token], open: usize) -> Option<usize> {
    let (mut depth, mut at) = (0, open);
    while let Some(token) = text.get(at).filter(|_| at < open + LONGEST_LIST) {
        match token.text.as_str() {
            _ if token.kind != Kind::Punctuation => {}
            "<" => depth += 1,
            ">" => depth -= 1,
            "(" | "[" | "{" => at = closing(text, at)?,
            ";" | ")" | "}" => return None,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// Whether a brace opens the list of a `requires` expression: `requires (T t) {`.
pub(super) fn opens_requirements(text: &[Token], at: usize) -> bool {
    let Some(mut before) = at.checked_sub(1) else { return false };
    if text[before].is(")") {
        let mut depth = 0;
        loop {
            match text[before].text.as_str() {
                ")" => depth += 1,
                "(" => depth -= 1,
                _ => {}
            }
            match before.checked_sub(1) {
                Some(next) => before = next,
                None => return false,
            }
            if depth == 0 {
                break;
            }
        }
    }
    // After a head, `requires (X) {` is a constraint and a body.
    let expression = |t: &Token| ["requires", "&", "|", "!", "(", "="].iter().any(|text| t.is(text));
    text[before].is("requires") && before.checked_sub(1).is_some_and(|at| expression(&text[at]))
}
