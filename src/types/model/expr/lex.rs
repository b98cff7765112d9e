//! The words of an expression, and its division spelt as calls. Knows which words the language has; does not evaluate.
//!
//! The library divides integers into floats and lets zero through, so every `/`, `//` and `%` becomes a call of a function of ours that also receives where the operator stands.

use std::fmt::Write as _;
use std::ops::Range;

/// What a word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Int,
    Float,
    Str,
    Name,
    Function,
    /// `true`, `false`.
    Truth,
    /// `and`, `or`, `not`, `if`, `else` and comparisons.
    Logic,
    /// `+ - * / // % **`.
    Arithmetic,
    Open,
    Close,
    Comma,
}

/// A word with its place in the expression.
#[derive(Debug, Clone)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    pub(super) at: Range<usize>,
}

impl Token<'_> {
    /// Whether an operand may end with it.
    pub(super) fn ends_operand(&self) -> bool {
        matches!(self.kind, Kind::Int | Kind::Float | Kind::Str | Kind::Name | Kind::Truth | Kind::Close)
    }
}

const OPERATORS: [(&str, Kind); 17] = [
    ("**", Kind::Arithmetic),
    ("//", Kind::Arithmetic),
    ("==", Kind::Logic),
    ("!=", Kind::Logic),
    ("<=", Kind::Logic),
    (">=", Kind::Logic),
    ("<", Kind::Logic),
    (">", Kind::Logic),
    ("+", Kind::Arithmetic),
    ("-", Kind::Arithmetic),
    ("*", Kind::Arithmetic),
    ("/", Kind::Arithmetic),
    ("%", Kind::Arithmetic),
    ("(", Kind::Open),
    (")", Kind::Close),
    (",", Kind::Comma),
    // Longest first, so that this one only reports what is meant by it.
    ("=", Kind::Logic),
];

/// The words, or where the text stops being an expression and why.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, (Range<usize>, String)> {
    let mut out: Vec<Token<'_>> = vec![];
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        }
        let (kind, len) = if c.is_ascii_digit() {
            number(rest).map_err(|len| (at..at + len, format!("`{}` is not a number", &rest[..len])))?
        } else if c.is_ascii_alphabetic() || c == '_' {
            let len = word(rest);
            (keyword(&rest[..len]).map_err(|why| (at..at + len, why))?, len)
        } else if c == '\'' || c == '"' {
            match rest[1..].find(['\\', c]) {
                Some(end) if rest[1 + end..].starts_with(c) => (Kind::Str, end + 2),
                _ => return Err((at..text.len(), "a string without its closing quote, or with an escape".into())),
            }
        } else {
            match OPERATORS.iter().find(|(op, _)| rest.starts_with(op)) {
                Some(("=", _)) => return Err((at..at + 1, "`=` is not an operator; equality is `==`".into())),
                Some((op, kind)) => (*kind, op.len()),
                None => {
                    return Err((at..at + c.len_utf8(), format!("`{c}` means nothing in an expression")));
                }
            }
        };
        if kind == Kind::Open
            && let Some(last) = out.last_mut()
            && last.kind == Kind::Name
        {
            last.kind = Kind::Function;
        }
        out.push(Token { kind, text: &rest[..len], at: at..at + len });
        at += len;
    }
    Ok(out)
}

/// Bytes of the identifier that `rest` starts with.
pub(super) fn word(rest: &str) -> usize {
    rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len())
}

fn keyword(word: &str) -> Result<Kind, String> {
    match word {
        "true" | "false" => Ok(Kind::Truth),
        "and" | "or" | "not" | "if" | "else" => Ok(Kind::Logic),
        "True" | "False" => Err(format!("truth values are spelt `{}`", word.to_lowercase())),
        "in" | "is" | "loop" | "self" | "none" | "None" => {
            Err(format!("`{word}` is not part of the expression language"))
        }
        _ => Ok(Kind::Name),
    }
}

fn number(rest: &str) -> Result<(Kind, usize), usize> {
    let digits = |s: &str| s.bytes().take_while(|b| b.is_ascii_digit() || *b == b'_').count();
    let mut len = digits(rest);
    let mut kind = Kind::Int;
    if rest[len..].starts_with('.') && rest[len + 1..].starts_with(|c: char| c.is_ascii_digit()) {
        len += 1 + digits(&rest[len + 1..]);
        kind = Kind::Float;
    }
    if rest[len..].starts_with(['e', 'E']) {
        let sign = usize::from(rest[len + 1..].starts_with(['+', '-']));
        let exponent = digits(&rest[len + 1 + sign..]);
        if exponent > 0 {
            len += 1 + sign + exponent;
            kind = Kind::Float;
        }
    }
    let after = word(&rest[len..]);
    if after > 0 || rest[len..].starts_with('.') { Err(len + after.max(1)) } else { Ok((kind, len)) }
}

/// The expression with division as calls: `a * b / c` becomes `divide__(a * b, c, 6)`.
pub(super) fn spell_division(tokens: &[Token<'_>]) -> String {
    let mut out = String::new();
    let mut at = 0;
    while at < tokens.len() {
        // Unbalanced parentheses were refused before, so this runs once.
        at = group(tokens, at, &mut out);
        at += 1;
    }
    out
}

/// Spells tokens from `at` to the closing parenthesis of the group; gives where that is.
fn group(tokens: &[Token<'_>], mut at: usize, out: &mut String) -> usize {
    let mut chain = out.len();
    let mut operand = false;
    while at < tokens.len() && tokens[at].kind != Kind::Close {
        let token = &tokens[at];
        let call = match token.text {
            "/" => Some("divide__"),
            "//" => Some("floor_divide__"),
            "%" => Some("remainder__"),
            _ => None,
        };
        if let (Some(call), Kind::Arithmetic) = (call, token.kind) {
            let mut right = String::new();
            at = power(tokens, at + 1, &mut right);
            let left = out.split_off(chain);
            // Writing to a string cannot fail.
            let _ = write!(out, "{call}({left}, {right}, {})", token.at.start);
            operand = true;
            continue;
        }
        let breaks = match token.kind {
            Kind::Logic | Kind::Comma => true,
            Kind::Arithmetic => operand && matches!(token.text, "+" | "-"),
            _ => false,
        };
        if breaks {
            let _ = write!(out, " {} ", token.text);
            chain = out.len();
            operand = false;
            at += 1;
            continue;
        }
        at = atom(tokens, at, out);
        operand = tokens[at - 1].ends_operand();
    }
    at
}

/// Spells one token, or a whole parenthesised group or call; gives the index after it.
fn atom(tokens: &[Token<'_>], at: usize, out: &mut String) -> usize {
    let token = &tokens[at];
    match token.kind {
        Kind::Open => {
            out.push('(');
            let close = group(tokens, at + 1, out);
            out.push(')');
            (close + 1).min(tokens.len())
        }
        Kind::Function if at + 1 < tokens.len() => {
            out.push_str(token.text);
            atom(tokens, at + 1, out)
        }
        _ => {
            out.push_str(token.text);
            at + 1
        }
    }
}

/// Spells what stands right of a division: an operand with its signs and powers.
fn power(tokens: &[Token<'_>], mut at: usize, out: &mut String) -> usize {
    loop {
        while at < tokens.len() && tokens[at].text == "-" {
            out.push('-');
            at += 1;
        }
        if at >= tokens.len() {
            return at;
        }
        at = atom(tokens, at, out);
        if tokens.get(at).is_none_or(|t| t.text != "**") {
            return at;
        }
        out.push_str(" ** ");
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelt(text: &str) -> String {
        spell_division(&tokens(text).unwrap())
    }

    #[test]
    fn division_takes_what_its_precedence_gives_it() {
        assert_eq!(spelt("a * b / c + d"), "divide__(a*b, c, 6) + d");
        assert_eq!(spelt("a + b / c / d"), "a + divide__(divide__(b, c, 6), d, 10)");
        assert_eq!(spelt("-a / -b ** 2 * c"), "divide__(-a, -b ** 2, 3)*c");
        assert_eq!(spelt("(a - b) % f(c, d // e)"), "remainder__((a - b), f(c , floor_divide__(d, e, 17)), 8)");
        assert_eq!(spelt("a / b if c == d % 2 else 1"), "divide__(a, b, 2) if c == remainder__(d, 2, 16) else 1");
    }

    #[test]
    fn what_the_language_lacks_is_refused_where_it_stands() {
        let at = |text: &str| tokens(text).unwrap_err().0;
        assert_eq!(at("rows.foo"), 4..5);
        assert_eq!(at("rows | abs"), 5..6);
        assert_eq!(at("rows = 2"), 5..6);
        assert_eq!(at("x in y"), 2..4);
        assert_eq!(at("12abc + 1"), 0..5);
        assert_eq!(at("'open"), 0..5);
    }
}
