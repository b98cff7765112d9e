//! The words and signs of an expression. Knows the words and signs of the language; does not know how they combine.

use std::ops::Range;

use super::fault::{SyntaxError, SyntaxFault};

/// One word or sign.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Word<'a> {
    Int(i128),
    Float(f64),
    /// A string, without its quotes.
    Str(&'a str),
    Name(&'a str),
    /// A sign, or a word of the language.
    Sign(&'static str),
    /// The end of the text.
    End,
}

/// A word with its place in the text.
#[derive(Debug, Clone)]
pub(super) struct Token<'a> {
    pub(super) word: Word<'a>,
    pub(super) at: Range<usize>,
}

/// The signs, longest first.
const SIGNS: [&str; 16] = ["**", "//", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "(", ")", ","];

const KEYWORDS: [&str; 7] = ["and", "else", "false", "if", "not", "or", "true"];

/// Words of similar languages that this language does not have.
const FOREIGN: [&str; 4] = ["in", "is", "none", "None"];

/// The words of `text`, with [`Word::End`] at the end. An error marks the place where the text stops being an expression.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, SyntaxError> {
    let mut out = vec![];
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let (word, len) = one(&text[at..], first).map_err(|(fault, len)| SyntaxError::new(fault, at..at + len))?;
        out.push(Token { word, at: at..at + len });
        at += len;
    }
    out.push(Token { word: Word::End, at: text.len()..text.len() });
    Ok(out)
}

/// The first word of `rest`, and its length in bytes.
fn one(rest: &str, first: char) -> Result<(Word<'_>, usize), (SyntaxFault, usize)> {
    if first.is_ascii_digit() || first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
        return number(rest);
    }
    if first.is_ascii_alphabetic() || first == '_' {
        let len = word(rest);
        return name(&rest[..len]).map(|word| (word, len)).map_err(|fault| (fault, len));
    }
    if first == '\'' || first == '"' {
        return match rest[1..].find(['\\', first]) {
            Some(end) if rest[1 + end..].starts_with(first) => Ok((Word::Str(&rest[1..=end]), end + 2)),
            _ => Err((SyntaxFault::OpenString, rest.len())),
        };
    }
    match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
        Some(sign) => Ok((Word::Sign(sign), sign.len())),
        None => Err((
            match first {
                '^' => SyntaxFault::Caret,
                '=' => SyntaxFault::Equals,
                _ => SyntaxFault::Character(first),
            },
            first.len_utf8(),
        )),
    }
}

/// The length in bytes of the identifier at the start of `rest`.
pub(super) fn word(rest: &str) -> usize {
    rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len())
}

fn name(word: &str) -> Result<Word<'_>, SyntaxFault> {
    if let Some(keyword) = KEYWORDS.iter().find(|k| **k == word) {
        return Ok(Word::Sign(keyword));
    }
    match word {
        "True" | "False" => Err(SyntaxFault::TruthSpelling(word.to_lowercase())),
        _ if FOREIGN.contains(&word) => Err(SyntaxFault::Word(word.into())),
        _ => Ok(Word::Name(word)),
    }
}

fn number(rest: &str) -> Result<(Word<'_>, usize), (SyntaxFault, usize)> {
    let digits = |s: &str| s.bytes().take_while(|b| b.is_ascii_digit() || *b == b'_').count();
    let mut len = digits(rest);
    let mut whole = true;
    if rest[len..].starts_with('.') {
        len += 1 + digits(&rest[len + 1..]);
        whole = false;
    }
    if rest[len..].starts_with(['e', 'E']) {
        let sign = usize::from(rest[len + 1..].starts_with(['+', '-']));
        let exponent = digits(&rest[len + 1 + sign..]);
        if exponent > 0 {
            len += 1 + sign + exponent;
            whole = false;
        }
    }
    // Characters that follow without a space belong to the number: `12abc` and `1.2.3` are not numbers.
    let more = rest[len..].bytes().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.')).count();
    let all = len + more;
    let not_number = || (SyntaxFault::NotNumber(rest[..all].into()), all);
    if more > 0 {
        return Err(not_number());
    }
    let text = rest[..len].replace('_', "");
    if !whole {
        return text.parse().map(|float| (Word::Float(float), len)).map_err(|_| not_number());
    }
    match text.parse::<u64>() {
        Ok(int) => Ok((Word::Int(int.into()), len)),
        Err(_) => Err((SyntaxFault::TooLarge(rest[..len].into()), len)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_language_lacks_is_refused_where_it_stands() {
        let at = |text: &str| tokens(text).unwrap_err().at;
        assert_eq!(at("rows.foo"), 4..5);
        assert_eq!(at("rows | abs"), 5..6);
        assert_eq!(at("rows = 2"), 5..6);
        assert_eq!(at("x in y"), 2..4);
        assert_eq!(at("12abc + 1"), 0..5);
        assert_eq!(at("x + 1.2.3"), 4..9);
        assert_eq!(at("'open"), 0..5);
        assert_eq!(at("ä + 1"), 0..2);
    }

    #[test]
    fn numbers_are_those_of_both_their_spellings() {
        for (text, word) in [
            ("1_000", Word::Int(1000)),
            ("18446744073709551615", Word::Int(u64::MAX.into())),
            (".5", Word::Float(0.5)),
            ("2.", Word::Float(2.0)),
            ("1.5e0", Word::Float(1.5)),
            ("1e-6", Word::Float(1e-6)),
        ] {
            assert_eq!(tokens(text).unwrap()[0].word, word, "{text}");
        }
    }
}
