//! An expression, checked when it is read and evaluated against named values. Knows kinds of results and their errors; does not know what the names mean.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use minijinja::value::{Value as Dynamic, ValueKind};

use super::functions::{Cause, failure, home, is_overflow};
use super::lex::{Kind, Token, spell_division, tokens};
use super::strict::{check_functions, check_operands, functions, is_number};
use crate::model::place::Place;
use kforge_foundation::base::Diagnostic;

/// The most words of an expression: the parser of the library recurses, and signs and conditions are not among what it limits.
const MOST_WORDS: usize = 128;

/// What an expression must give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// An integer; `/` must leave no remainder.
    Int,
    /// A finite float; integers are taken as floats.
    Float,
    /// A truth value; `/` divides as floats do.
    Bool,
    /// Any value; `/` must leave no remainder.
    Any,
}

/// A value of a name or of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// An integer.
    Int(i64),
    /// A finite float.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A string: a type's name, a target, a tunable.
    Str(String),
}

impl Value {
    fn dynamic(&self) -> Dynamic {
        match self {
            Value::Int(i) => Dynamic::from(*i),
            Value::Float(f) => Dynamic::from(*f),
            Value::Bool(b) => Dynamic::from(*b),
            Value::Str(s) => Dynamic::from(s.as_str()),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Value::Int(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Bool(_) => "a truth value",
            Value::Str(_) => "a string",
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(i) => i.fmt(f),
            Value::Float(x) => x.fmt(f),
            Value::Bool(b) => b.fmt(f),
            Value::Str(s) => f.write_str(s),
        }
    }
}

/// What the names of an expression stand for.
pub type Scope = BTreeMap<String, Value>;

/// A name in an expression: its place there, and whether it is an operand of arithmetic.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NameUse {
    at: Range<usize>,
    number: bool,
}

enum Code {
    /// A literal, as most extents and factors are.
    Literal(Value),
    /// A single name, as most arguments are.
    Name,
    /// Anything else.
    Compiled(minijinja::Expression<'static, 'static>),
}

/// An expression of a manifest.
#[derive(Clone)]
pub struct Expr {
    text: Arc<str>,
    place: Place,
    want: Want,
    used: Arc<[NameUse]>,
    code: Arc<Code>,
}

impl PartialEq for Expr {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.want == other.want && self.place == other.place
    }
}

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expr({:?} at {:?})", self.text, self.place)
    }
}

impl Expr {
    /// An expression that is one value.
    pub fn literal(value: Value, want: Want, place: Place) -> Self {
        Expr { text: value.to_string().into(), place, want, used: Arc::from([]), code: Arc::new(Code::Literal(value)) }
    }

    /// Reads `text`, which stands at `place`. Fails on syntax and on functions that do not exist; names are checked by [`Expr::check_names`] and on evaluation.
    pub fn parse(text: &str, want: Want, place: Place) -> Result<Self, Diagnostic> {
        let syntax = |at: Range<usize>, why: String| {
            place.within(text, at).error("manifest.expression", why).expected("an expression over names in scope")
        };
        let words = tokens(text).map_err(|(at, why)| syntax(at, why))?;
        if words.is_empty() {
            return Err(syntax(0..0, "the expression is empty".into()));
        }
        if words.len() > MOST_WORDS {
            return Err(syntax(0..text.len(), format!("an expression of {} words", words.len()))
                .expected(format!("at most {MOST_WORDS} words")));
        }
        check_functions(&words, want).map_err(|(at, why, hint)| {
            let error = syntax(at, why).expected(format!("one of {}", list(&functions(want))));
            error.suggest(&hint, functions(want))
        })?;
        check_operands(&words).map_err(|(at, why)| syntax(at, why))?;
        let used: Arc<[NameUse]> = words
            .iter()
            .enumerate()
            .filter(|(_, w)| w.kind == Kind::Name)
            .map(|(i, w)| NameUse { at: w.at.clone(), number: is_number(&words, i, i) })
            .collect();
        let code = match words.as_slice() {
            [Token { kind: Kind::Name, .. }] => Code::Name,
            [Token { kind: Kind::Int, text: digits, at }] => match digits.replace('_', "").parse() {
                Ok(value) => Code::Literal(Value::Int(value)),
                Err(_) => return Err(syntax(at.clone(), format!("`{digits}` does not fit 64 bits"))),
            },
            _ => {
                let env = home(matches!(want, Want::Float | Want::Bool));
                // The text as written is compiled for its syntax only: its errors have exact places.
                if let Err(error) = env.compile_expression(text) {
                    let at = error.range().filter(|r| {
                        r.end <= text.len() && text.is_char_boundary(r.start) && text.is_char_boundary(r.end)
                    });
                    let why = error.detail().unwrap_or("this is not an expression").to_string();
                    return Err(syntax(at.unwrap_or(0..text.len()), why));
                }
                match env.compile_expression_owned(spell_division(&words)) {
                    Ok(code) => Code::Compiled(code),
                    Err(error) => return Err(syntax(0..text.len(), error.to_string())),
                }
            }
        };
        Ok(Expr { text: text.into(), place: place.clone(), want, used, code: Arc::new(code) })
    }

    /// The text as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where it stands.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The names it uses, each as often as it is used.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.used.iter().map(|u| &self.text[u.at.clone()])
    }

    /// The one name it consists of, if it is nothing else.
    pub fn as_name(&self) -> Option<&str> {
        // Spaces may stand around it.
        self.names().next().filter(|_| matches!(*self.code, Code::Name))
    }

    /// The value it is, if it is a literal.
    pub fn as_literal(&self) -> Option<&Value> {
        match &*self.code {
            Code::Literal(value) => Some(value),
            _ => None,
        }
    }

    /// An error for every use of a name that is not `known`.
    pub fn check_names(&self, known: &[&str]) -> Vec<Diagnostic> {
        self.used
            .iter()
            .filter(|u| !known.contains(&&self.text[u.at.clone()]))
            .map(|u| self.unknown(u, known))
            .collect()
    }

    fn unknown(&self, used: &NameUse, known: &[&str]) -> Diagnostic {
        let name = &self.text[used.at.clone()];
        let error = self.at(used.at.clone()).error("manifest.unknown-name", format!("unknown name `{name}`"));
        if matches!(name, "sm_count" | "occupancy") {
            return error
                .expected("names that are known before a device is")
                .hint(format!("`{name}` is known in the `grid` of a launch only"));
        }
        let error = if known.is_empty() {
            error.expected("no names")
        } else {
            error.expected(format!("one of {}", list(known)))
        };
        error.suggest(name, known.iter().copied())
    }

    fn at(&self, part: Range<usize>) -> Place {
        self.place.within(&self.text, part)
    }

    /// Its value as an integer.
    pub fn int(&self, scope: &Scope) -> Result<i64, Diagnostic> {
        match self.value(scope)? {
            Value::Int(i) => Ok(i),
            other => Err(self.wrong_kind(&other, "manifest.not-integer", "an integer")),
        }
    }

    /// Its value as a finite float.
    pub fn float(&self, scope: &Scope) -> Result<f64, Diagnostic> {
        match self.value(scope)? {
            Value::Int(i) => Ok(i as f64),
            Value::Float(f) => Ok(f),
            other => Err(self.wrong_kind(&other, "manifest.kind", "a number")),
        }
    }

    /// Its value as a truth value.
    pub fn truth(&self, scope: &Scope) -> Result<bool, Diagnostic> {
        match self.value(scope)? {
            Value::Bool(b) => Ok(b),
            other => Err(self.wrong_kind(&other, "manifest.kind", "a truth value")),
        }
    }

    fn wrong_kind(&self, got: &Value, code: &'static str, want: &str) -> Diagnostic {
        self.at(0..self.text.len())
            .error(code, format!("`{}` gives {got}, which is {}", self.text, got.kind()))
            .expected(want)
    }

    /// Its value, whatever its kind.
    pub fn value(&self, scope: &Scope) -> Result<Value, Diagnostic> {
        for used in self.used.iter() {
            let name = &self.text[used.at.clone()];
            match scope.get(name) {
                None => {
                    let known: Vec<&str> = scope.keys().map(String::as_str).collect();
                    return Err(self.unknown(used, &known));
                }
                Some(value @ (Value::Bool(_) | Value::Str(_))) if used.number => {
                    let error = self
                        .at(used.at.clone())
                        .error("manifest.kind", format!("`{name}` is {}, not a number", value.kind()));
                    return Err(error.expected("a number"));
                }
                Some(_) => {}
            }
        }
        match &*self.code {
            Code::Literal(value) => Ok(value.clone()),
            // The loop above has seen that the name is there.
            Code::Name => Ok(self
                .as_name()
                .and_then(|name| scope.get(name))
                .cloned()
                .expect("BUG: every name was just seen to have a value")),
            Code::Compiled(code) => {
                let names = self.names().filter_map(|name| scope.get(name).map(|v| (name, v.dynamic())));
                let result = code.eval(Dynamic::from_pairs(names)).map_err(|e| self.failed(&e))?;
                self.plain(&result)
            }
        }
    }

    fn plain(&self, result: &Dynamic) -> Result<Value, Diagnostic> {
        let whole = || self.at(0..self.text.len());
        match result.kind() {
            ValueKind::Bool => Ok(Value::Bool(result.is_true())),
            ValueKind::String => Ok(Value::Str(result.to_string())),
            ValueKind::Number if result.is_integer() => result.as_i64().map(Value::Int).ok_or_else(|| {
                whole()
                    .error("manifest.overflow", format!("`{}` gives {result}, which does not fit 64 bits", self.text))
                    .expected("a 64-bit integer")
            }),
            ValueKind::Number => match f64::try_from(result.clone()) {
                Ok(f) if f.is_finite() => Ok(Value::Float(f)),
                _ => Err(whole()
                    .error("manifest.overflow", format!("`{}` is not a finite number", self.text))
                    .expected("a finite number")),
            },
            _ => Err(whole()
                .error("manifest.expression", format!("`{}` gives no value", self.text))
                .hint("give every `if` its `else`")),
        }
    }

    fn failed(&self, error: &minijinja::Error) -> Diagnostic {
        let whole = 0..self.text.len();
        match failure(error) {
            Some(failure) => {
                let (at, why) = (failure.at, failure.to_string());
                let operator = match self.text.get(at..) {
                    Some(rest) if at > 0 => at..at + if rest.starts_with("//") { 2 } else { 1 },
                    _ => whole,
                };
                let place = self.at(operator);
                match failure.cause {
                    Cause::Remainder => place
                        .error("manifest.remainder", why)
                        .expected("a division without remainder")
                        .hint("`//` rounds down, `ceil_div(a, b)` up"),
                    Cause::DivisionByZero => place
                        .error("manifest.division-by-zero", format!("{why} in `{}`", self.text))
                        .expected("a divisor other than zero"),
                    Cause::Overflow => place
                        .error("manifest.overflow", format!("{why} in `{}`", self.text))
                        .expected("a 64-bit integer"),
                    Cause::NotFinite => place.error("manifest.overflow", why).expected("a finite number"),
                    Cause::NotNumber | Cause::NotInteger => {
                        place.error("manifest.kind", format!("{why} in `{}`", self.text)).expected("a number")
                    }
                    Cause::Arguments => place.error("manifest.expression", why).expected("a call with its arguments"),
                }
            }
            None => {
                let why = error.detail().map_or_else(|| error.kind().to_string(), str::to_string);
                let code = if is_overflow(error) { "manifest.overflow" } else { "manifest.kind" };
                self.at(whole)
                    .error(code, format!("cannot evaluate `{}`: {why}", self.text))
                    .expected("operands of one kind and a result in 64 bits")
            }
        }
    }
}

/// Names in back quotes, shortened where there are many.
pub(crate) fn list(names: &[&str]) -> String {
    let mut names: Vec<&str> = names.to_vec();
    names.sort_unstable();
    names.dedup();
    let shown: Vec<String> = names.iter().take(24).map(|n| format!("`{n}`")).collect();
    if names.len() > shown.len() {
        format!("{} and {} more", shown.join(", "), names.len() - shown.len())
    } else {
        shown.join(", ")
    }
}
