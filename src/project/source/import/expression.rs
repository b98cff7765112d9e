//! Integer expressions of host code: their trees, what their names stand for, and their text in a manifest. Knows C++'s operators on integers, casts, members and
//! the usual ways to round a quotient up; a name or call that it does not know is a leaf.

use std::collections::{BTreeMap, BTreeSet};

use super::super::declarations::{closing, closing_angle};
use super::super::macros::spelled;
use super::super::tokens::{Kind, Token};
use super::arithmetic::{binary, ceil_div, substituted};
use super::parameter::{bytes, dtype};

/// An expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expression {
    Int(i64),
    Name(String),
    /// What has no value here, as the source spells it: `x.size(0)`.
    Opaque(String),
    /// A sum, difference, product, quotient or remainder; `<` and `>` are shifts by what is not known.
    Binary(char, Box<Expression>, Box<Expression>),
    /// A call of `ceil_div`, `min` or `max`.
    Call(&'static str, Vec<Expression>),
    /// A name that has one of several values here.
    Either(String, Vec<Expression>),
}

use Expression::{Binary, Call, Either, Int, Name, Opaque};

/// A function of one `return`: its parameters, and what it returns.
#[derive(Debug, Clone)]
pub(super) struct Formula {
    pub(super) parameters: Vec<String>,
    pub(super) value: Expression,
}

/// What names stand for where a kernel is launched.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    /// Variables.
    pub(super) values: BTreeMap<String, Expression>,
    /// Variables of type `dim3`, by their extents.
    pub(super) extents: BTreeMap<String, Vec<Expression>>,
    pub(super) functions: BTreeMap<String, Formula>,
    /// Names that a function or its templates declare, and that mean nothing outside it.
    pub(super) hidden: BTreeSet<String>,
}

/// The longest text that is read as an expression: it bounds how deep its tree is.
const LONGEST: usize = 500;

/// How many tokens are shown of a longer one.
const SHOWN: usize = 16;

/// How deep definitions are followed.
const DEEPEST: usize = 12;

/// Splits tokens at commas outside brackets and template arguments.
pub(super) fn split(text: &[Token]) -> Vec<&[Token]> {
    let (mut out, mut from, mut at) = (vec![], 0, 0);
    while at < text.len() {
        match text[at].text.as_str() {
            _ if text[at].kind != Kind::Punctuation => {}
            "(" | "[" | "{" => at = closing(text, at).unwrap_or(text.len()),
            "<" if is_shift(text, at) => at += 1,
            "<" if at > 0 && text[at - 1].is_word() => at = closing_angle(text, at).unwrap_or(at),
            "," => {
                out.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    if from < text.len() {
        out.push(&text[from..]);
    }
    out
}

/// Whether a shift to the left begins here: two signs that touch, and no third.
fn is_shift(text: &[Token], at: usize) -> bool {
    let (same, other) = (|at: usize| text.get(at).is_some_and(|t| t.is("<")), |at: usize| text[at].glued);
    same(at)
        && same(at + 1)
        && other(at + 1)
        && !(same(at + 2) && other(at + 2))
        && !(other(at) && at > 0 && same(at - 1))
}

/// A text as the source spells it, shortened where no person would read it.
pub(super) fn shown(text: &[Token]) -> String {
    match text.get(..SHOWN).filter(|_| text.len() > LONGEST) {
        Some(first) => format!("{} ...", spelled(first)),
        None => spelled(text),
    }
}

/// The expression of tokens; opaque if it has anything else in it, or is longer than any that a person writes.
pub(super) fn expression(text: &[Token], scope: &Scope) -> Expression {
    if text.len() > LONGEST {
        return Opaque(shown(text));
    }
    let mut reader = Reader { text, at: 0, scope };
    match reader.shift() {
        Some(found) if reader.at == text.len() => found,
        _ => Opaque(spelled(text)),
    }
}

struct Reader<'a> {
    text: &'a [Token],
    at: usize,
    scope: &'a Scope,
}

impl Reader<'_> {
    fn is(&self, text: &str) -> bool {
        self.text.get(self.at).is_some_and(|t| t.is(text))
    }

    fn operator(&self, any: &[char]) -> Option<char> {
        let token = self.text.get(self.at).filter(|t| t.kind == Kind::Punctuation)?;
        let sign = token.text.chars().next().filter(|_| token.text.len() == 1)?;
        let assigns = self.text.get(self.at + 1).is_some_and(|t| t.is("=") && t.glued);
        any.contains(&sign).then_some(sign).filter(|_| !assigns)
    }

    fn shift(&mut self) -> Option<Expression> {
        let mut left = self.sum()?;
        while let Some(sign) = self.shifted() {
            self.at += 2;
            left = binary(sign, left, self.sum()?);
        }
        Some(left)
    }

    /// The sign of a shift that stands here: two that touch, without a third or `=`.
    fn shifted(&self) -> Option<char> {
        let at = |offset: usize| self.text.get(self.at + offset).filter(|t| t.kind == Kind::Punctuation);
        let first = at(0)?;
        let sign = ['<', '>'].into_iter().find(|sign| first.text.len() == 1 && first.text.starts_with(*sign))?;
        let two = at(1).is_some_and(|t| t.glued && t.text == first.text);
        let more = at(2).is_some_and(|t| t.glued && (t.text == first.text || t.is("=")));
        (two && !more).then_some(sign)
    }

    fn sum(&mut self) -> Option<Expression> {
        let mut left = self.product()?;
        while let Some(sign) = self.operator(&['+', '-']) {
            self.at += 1;
            left = binary(sign, left, self.product()?);
        }
        Some(left)
    }

    fn product(&mut self) -> Option<Expression> {
        let mut left = self.operand()?;
        while let Some(sign) = self.operator(&['*', '/', '%']) {
            self.at += 1;
            left = binary(sign, left, self.operand()?);
        }
        Some(left)
    }

    /// The tokens in the brackets that open here.
    fn bracketed(&mut self) -> Option<(usize, usize)> {
        let close = closing(self.text, self.at)?;
        let inside = (self.at + 1, close);
        self.at = close + 1;
        Some(inside)
    }

    /// An operand with the signs and casts before it.
    fn operand(&mut self) -> Option<Expression> {
        let mut negative = false;
        loop {
            if self.is("-") {
                // `--n` changes `n`.
                if self.text.get(self.at + 1).is_some_and(|t| t.is("-") && t.glued) {
                    return None;
                }
                negative = !negative;
                self.at += 1;
            } else if !self.cast() {
                break;
            }
        }
        let found = self.unsigned()?;
        Some(if negative { binary('-', Int(0), found) } else { found })
    }

    /// Goes past a cast in C's style, if one is here.
    fn cast(&mut self) -> bool {
        let close = if self.is("(") { closing(self.text, self.at) } else { None };
        let of = close.filter(|close| is_type(&self.text[self.at + 1..*close]));
        let before_operand = |t: &Token| t.is("(") || t.is("-") || t.kind != Kind::Punctuation;
        let Some(close) = of.filter(|close| self.text.get(close + 1).is_some_and(before_operand)) else { return false };
        self.at = close + 1;
        true
    }

    fn unsigned(&mut self) -> Option<Expression> {
        let token = self.text.get(self.at)?;
        if token.is("(") {
            let (from, to) = self.bracketed()?;
            let found = expression(&self.text[from..to], self.scope);
            return if self.is(".") || self.is("->") { None } else { Some(found) };
        }
        if token.kind == Kind::Number {
            self.at += 1;
            return number(&token.text);
        }
        if !token.is_word() {
            return None;
        }
        self.word()
    }

    fn word(&mut self) -> Option<Expression> {
        let start = self.at;
        let mut name = self.text[self.at].text.clone();
        let mut spaces: Vec<String> = vec![];
        self.at += 1;
        while self.is("::") && self.text.get(self.at + 1).is_some_and(Token::is_word) {
            spaces.push(std::mem::replace(&mut name, self.text[self.at + 1].text.clone()));
            self.at += 2;
        }
        if self.is("<") && name == "static_cast" {
            self.at = closing_angle(self.text, self.at)? + 1;
            let (from, to) = self.bracketed()?;
            return Some(expression(&self.text[from..to], self.scope));
        }
        if self.is("(") {
            let (from, to) = self.bracketed()?;
            if name == "sizeof" {
                let (base, lanes) = dtype(&spelled(&self.text[from..to]))?;
                return Some(Int(lanes * bytes(base)));
            }
            if !self.is(".") && !self.is("->") && !self.is("[") {
                return Some(self.call(&name, start, from, to));
            }
        }
        if self.is(".")
            && let Some(axis) = self.text.get(self.at + 1).and_then(|t| ["x", "y", "z"].iter().position(|a| t.is(a)))
            && let Some(extents) = self.scope.extents.get(&name)
        {
            self.at += 2;
            return Some(extents.get(axis).cloned().unwrap_or(Int(1)));
        }
        if !self.is(".") && !self.is("->") && !self.is("[") {
            if spaces.is_empty() {
                return Some(Name(name));
            }
            // A name of another scope is no variable of this one.
            let whole = [spaces, vec![name]].concat().join("::");
            return Some(if self.scope.values.contains_key(&whole) { Name(whole) } else { Opaque(whole) });
        }
        // Members and elements, to their end.
        while self.is(".") || self.is("->") || self.is("[") || self.is("(") {
            if self.is("[") || self.is("(") {
                self.bracketed()?;
            } else {
                self.at += 2;
            }
        }
        let end = self.at.min(self.text.len());
        Some(Opaque(spelled(&self.text[start..end])))
    }

    fn call(&self, name: &str, start: usize, from: usize, to: usize) -> Expression {
        let arguments: Vec<Expression> =
            split(&self.text[from..to]).into_iter().map(|text| expression(text, self.scope)).collect();
        let whole = || Opaque(spelled(&self.text[start..=to]));
        if let Some(formula) = self.scope.functions.get(name)
            && formula.parameters.len() == arguments.len()
        {
            let given: BTreeMap<&str, &Expression> =
                formula.parameters.iter().map(String::as_str).zip(&arguments).collect();
            return substituted(&formula.value, &given);
        }
        let plain: String = name.chars().filter(|c| *c != '_').map(|c| c.to_ascii_lowercase()).collect();
        match (plain.as_str(), &arguments[..]) {
            ("int" | "unsigned" | "long" | "sizet" | "uint32t" | "int64t", [one]) => one.clone(),
            ("ceil" | "ceilf", [Binary('/', a, b)]) => ceil_div((**a).clone(), (**b).clone()),
            ("ceil" | "ceilf", [whole @ (Call("ceil_div", _) | Int(_))]) => whole.clone(),
            ("min" | "max", [a, b]) => Call(if plain == "min" { "min" } else { "max" }, vec![a.clone(), b.clone()]),
            ("ceildiv" | "cdiv" | "divup" | "divceil" | "divroundup" | "ceilingdivide" | "divideup", [a, b]) => {
                ceil_div(a.clone(), b.clone())
            }
            _ => whole(),
        }
    }
}

/// Whether the tokens in parentheses are those of a cast.
fn is_type(text: &[Token]) -> bool {
    const TYPES: [&str; 13] = [
        "int", "unsigned", "long", "short", "float", "double", "size_t", "uint32_t", "int32_t", "int64_t", "uint64_t",
        "const", "char",
    ];
    !text.is_empty() && text.iter().all(|t| TYPES.iter().any(|word| t.is(word)))
}

/// An integer literal, or a float that is one.
fn number(text: &str) -> Option<Expression> {
    let plain = text.replace('\'', "").to_ascii_lowercase();
    if let Some(hex) = plain.strip_prefix("0x") {
        return i64::from_str_radix(hex.trim_end_matches(['u', 'l']), 16).ok().map(Int);
    }
    let digits = plain.trim_end_matches(['u', 'l', 'f']);
    if let Ok(value) = digits.parse::<i64>() {
        return Some(Int(value));
    }
    let whole = digits.split_once('.').filter(|(_, rest)| rest.chars().all(|c| c == '0'))?;
    whole.0.parse().ok().map(Int)
}

impl Expression {
    /// Whether a name is in it.
    pub(super) fn mentions(&self, name: &str) -> bool {
        match self {
            Name(own) => own == name,
            Int(_) | Opaque(_) => false,
            Binary(_, a, b) => a.mentions(name) || b.mentions(name),
            Call(_, all) | Either(_, all) => all.iter().any(|e| e.mentions(name)),
        }
    }

    /// The names in it that have several values, as a text.
    pub(super) fn doubts(&self) -> Vec<String> {
        match self {
            Int(_) | Opaque(_) | Name(_) => vec![],
            Binary(_, a, b) => [a.doubts(), b.doubts()].concat(),
            Call(_, all) => all.iter().flat_map(Expression::doubts).collect(),
            Either(..) => vec![self.text()],
        }
    }

    /// The expression with the first of several values.
    pub(super) fn first(&self) -> Expression {
        let first = |e: &Expression| match e {
            Either(_, all) => all.first().map(Expression::first),
            _ => None,
        };
        self.renamed(&first)
    }

    /// The expression with variables replaced by their definitions, as far as they have one.
    pub(super) fn resolved(&self, scope: &Scope) -> Expression {
        self.rewritten(scope, &|_| None, DEEPEST)
    }

    /// The same, where `known` says first what an expression is.
    pub(super) fn rewritten(
        &self,
        scope: &Scope,
        known: &dyn Fn(&Expression) -> Option<Expression>,
        depth: usize,
    ) -> Expression {
        if let Some(found) = known(self) {
            return found;
        }
        let inner = |e: &Expression| e.rewritten(scope, known, depth);
        match self {
            Name(name) if depth > 0 => {
                scope.values.get(name).map_or_else(|| self.clone(), |e| e.rewritten(scope, known, depth - 1))
            }
            Binary(sign, a, b) => binary(*sign, inner(a), inner(b)),
            Call("ceil_div", both) => ceil_div(inner(&both[0]), inner(&both[1])),
            Call(name, all) => Call(name, all.iter().map(inner).collect()),
            Either(name, all) => Either(name.clone(), all.iter().map(inner).collect()),
            _ => self.clone(),
        }
    }

    /// The expression with each name that `known` names anew replaced.
    pub(super) fn renamed(&self, known: &dyn Fn(&Expression) -> Option<Expression>) -> Expression {
        self.rewritten(&Scope::default(), known, DEEPEST)
    }

    /// The names in it, in order; none if something in it has no value.
    pub(super) fn names(&self) -> Option<Vec<String>> {
        match self {
            Int(_) => Some(vec![]),
            Name(name) => Some(vec![name.clone()]),
            Opaque(_) | Either(..) | Binary('<' | '>', ..) => None,
            Binary(_, a, b) => Some([a.names()?, b.names()?].concat()),
            Call(_, all) => all.iter().try_fold(vec![], |names, e| Some([names, e.names()?].concat())),
        }
    }

    /// Its text in a manifest.
    pub(super) fn text(&self) -> String {
        match self {
            Int(value) => value.to_string(),
            Name(name) | Opaque(name) => name.clone(),
            Binary(sign @ ('<' | '>'), a, b) => {
                let inner = |e: &Expression| match e {
                    Binary(..) => format!("({})", e.text()),
                    _ => e.text(),
                };
                format!("{} {sign}{sign} {}", inner(a), inner(b))
            }
            Binary(sign, a, b) => {
                let tight = matches!(sign, '*' | '/' | '%');
                let left = match &**a {
                    Binary('+' | '-', ..) if tight => format!("({})", a.text()),
                    a => a.text(),
                };
                let right = match &**b {
                    Binary('+' | '-', ..) if tight || *sign == '-' => format!("({})", b.text()),
                    Binary(..) if tight => format!("({})", b.text()),
                    b => b.text(),
                };
                let sign = if *sign == '/' { "//".to_string() } else { sign.to_string() };
                format!("{left} {sign} {right}")
            }
            Call(name, all) => format!("{name}({})", all.iter().map(Expression::text).collect::<Vec<_>>().join(", ")),
            Either(name, all) => {
                let values: Vec<String> = all.iter().map(|e| format!("`{}`", e.text())).collect();
                format!("`{name}` is {}", values.join(" or "))
            }
        }
    }

    /// The quotients without rounding up in it, as `(dividend, divisor)`.
    pub(super) fn quotients(&self) -> Vec<(Expression, i64)> {
        match self {
            Binary(sign, a, b) => {
                let own = match &**b {
                    Int(value) if *sign == '/' => vec![((**a).clone(), *value)],
                    _ => vec![],
                };
                [own, a.quotients(), b.quotients()].concat()
            }
            Call(_, all) => all.iter().flat_map(Expression::quotients).collect(),
            _ => vec![],
        }
    }

    /// The names in it that are divided and rounded up, with their divisors.
    pub(super) fn tiles(&self) -> Vec<(String, i64)> {
        match self {
            Call("ceil_div", both) => match (&both[0], &both[1]) {
                (Name(name), Int(value)) => vec![(name.clone(), *value)],
                _ => vec![],
            },
            Call(_, all) => all.iter().flat_map(Expression::tiles).collect(),
            Binary(_, a, b) => [a.tiles(), b.tiles()].concat(),
            _ => vec![],
        }
    }
}

#[cfg(test)]
mod tests;
