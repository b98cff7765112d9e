//! An expression for a scalar of a manifest. It is checked when it is read and evaluated with the values of its names. Knows kinds of results and their errors;
//! does not know what the names mean.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::check::{Used, check};
use super::evaluate::{Cause, Evaluation, Failure, Operand};
use super::fault::{SyntaxError, SyntaxFault};
use super::functions::FUNCTIONS;
use super::parse::parse;
use super::tree::{Node, NodeKind, Tree};
use super::value::{Scope, Value};
use crate::model::place::Place;
use crate::model::real;
use kforge_foundation::base::Diagnostic;

/// The kind of value that an expression must give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// An integer; `/` must leave no remainder.
    Int,
    /// A finite float; integers become floats.
    Float,
    /// A truth value; `/` divides as floats do.
    Bool,
    /// Any value; `/` must leave no remainder.
    Any,
}

/// The functions that an expression for `want` may use.
fn functions(want: Want) -> Vec<&'static str> {
    FUNCTIONS.iter().filter(|f| f.exact || want == Want::Float).map(|f| f.name).collect()
}

/// An expression of a manifest.
#[derive(Clone)]
pub struct Expr {
    text: Arc<str>,
    place: Place,
    want: Want,
    used: Arc<[Used]>,
    tree: Arc<Tree>,
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
    /// An expression that consists of one value.
    pub fn literal(value: Value, want: Want, place: Place) -> Self {
        let text: Arc<str> = value.to_string().into();
        let kind = match value {
            Value::Int(int) => NodeKind::Int(int.into()),
            Value::Float(float) => NodeKind::Float(float),
            Value::Bool(truth) => NodeKind::Truth(truth),
            Value::Str(text) => NodeKind::Str(text),
        };
        let root = Node { at: 0..text.len(), kind };
        Expr { text, place, want, used: Arc::from([]), tree: Arc::new(Tree { root, names: vec![] }) }
    }

    /// A float that is infinite or NaN. It is the whole expression: what is computed is finite.
    pub fn constant(value: f64, place: Place) -> Self {
        Expr::literal(Value::Float(value), Want::Float, place)
    }

    /// Parses `text`, which is at `place`. Fails on syntax errors, on functions that do not exist or that `want` excludes, and on operands that cannot be
    /// numbers. [`Expr::check_names`] and evaluation check the names.
    pub fn parse(text: &str, want: Want, place: Place) -> Result<Self, Diagnostic> {
        let read = parse(text).and_then(|tree| check(&tree, text, want == Want::Float).map(|used| (tree, used)));
        match read {
            Ok((tree, used)) => Ok(Expr { text: text.into(), place, want, used: used.into(), tree: Arc::new(tree) }),
            Err(error) => Err(refused(text, want, &place, &error)),
        }
    }

    /// The text as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its place in the manifest.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The names that it uses, once for each use.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.used.iter().map(|u| &self.text[u.at.clone()])
    }

    /// The name, if the expression consists only of a name.
    pub fn as_name(&self) -> Option<&str> {
        match self.tree.root.kind {
            NodeKind::Name(name) => Some(&self.tree.names[name]),
            _ => None,
        }
    }

    /// The value, if the expression is a literal.
    pub fn as_literal(&self) -> Option<Value> {
        match &self.tree.root.kind {
            NodeKind::Int(int) => i64::try_from(*int).ok().map(Value::Int),
            NodeKind::Float(float) => Some(Value::Float(*float)),
            NodeKind::Truth(truth) => Some(Value::Bool(*truth)),
            NodeKind::Str(text) => Some(Value::Str(text.clone())),
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

    fn unknown(&self, used: &Used, known: &[&str]) -> Diagnostic {
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

    fn whole(&self) -> Place {
        self.at(0..self.text.len())
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
            Value::Float(f) if f.is_finite() => Ok(f),
            Value::Float(_) => Err(self.not_finite()),
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
        self.whole().error(code, format!("`{}` gives {got}, which is {}", self.text, got.kind())).expected(want)
    }

    /// Its value, of any kind. Only a constant and a name can give a float that is infinite or NaN.
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
        match &self.tree.root.kind {
            NodeKind::Float(float) if real::constant(&self.text).is_some() => return Ok(Value::Float(*float)),
            NodeKind::Name(name) => {
                if let Some(value @ Value::Float(_)) = scope.get(&self.tree.names[*name]) {
                    return Ok(value.clone());
                }
            }
            _ => {}
        }
        // The loop above has checked that every name has a value.
        let names: Vec<Operand<'_>> =
            self.tree.names.iter().filter_map(|name| scope.get(name)).map(Operand::from).collect();
        let real = matches!(self.want, Want::Float | Want::Bool);
        match (Evaluation { names: &names, real }).value(&self.tree.root) {
            Ok(value) => self.fits(value),
            Err(failure) => Err(self.failed(*failure)),
        }
    }

    fn fits(&self, value: Operand<'_>) -> Result<Value, Diagnostic> {
        match value {
            Operand::Bool(truth) => Ok(Value::Bool(truth)),
            Operand::Str(text) => Ok(Value::Str(text.into())),
            Operand::Int(int) => i64::try_from(int).map(Value::Int).map_err(|_| {
                self.whole()
                    .error("manifest.overflow", format!("`{}` gives {int}, which does not fit 64 bits", self.text))
                    .expected("a 64-bit integer")
            }),
            Operand::Float(float) if float.is_finite() => Ok(Value::Float(float)),
            Operand::Float(_) => Err(self.not_finite()),
        }
    }

    fn not_finite(&self) -> Diagnostic {
        let message = format!("`{}` is not a finite number", self.text);
        self.whole().error("manifest.overflow", message).expected("a finite number")
    }

    fn failed(&self, Failure { cause, at }: Failure) -> Diagnostic {
        let place = self.at(at);
        let alone = cause.to_string();
        let within = format!("{alone} in `{}`", self.text);
        match cause {
            Cause::Remainder { .. } => place
                .error("manifest.remainder", alone)
                .expected("a division without remainder")
                .hint("`//` rounds down, `ceil_div(a, b)` up"),
            Cause::DivisionByZero => {
                place.error("manifest.division-by-zero", within).expected("a divisor other than zero")
            }
            Cause::Overflow => place.error("manifest.overflow", within).expected("a 64-bit integer"),
            Cause::NotFinite(_) => place.error("manifest.overflow", alone).expected("a finite number"),
            Cause::NegativePower { .. } => {
                place.error("manifest.not-integer", alone).expected("an exponent of at least 0")
            }
            Cause::NotNumber(_) => place.error("manifest.kind", within).expected("a number"),
            Cause::NotInteger(_) => place.error("manifest.kind", within).expected("an integer"),
            Cause::NotCondition(_) => place.error("manifest.kind", within).expected("a truth value"),
            Cause::NoOrder(..) => place.error("manifest.kind", within).expected("two numbers or two strings"),
            Cause::NoType => place.error("manifest.expression", alone).expected("a dtype"),
        }
    }
}

/// The error for a text that is not a valid expression for `want`.
fn refused(text: &str, want: Want, place: &Place, error: &SyntaxError) -> Diagnostic {
    // An error about a missing part at the end points to the last character.
    let last = text.trim_end().char_indices().next_back().map_or(0..0, |(at, c)| at..at + c.len_utf8());
    let at = if error.at.is_empty() { last } else { error.at.clone() };
    let diagnostic = place.within(text, at).error("manifest.expression", error.fault.to_string());
    match &error.fault {
        SyntaxFault::UnknownFunction(name) => {
            diagnostic.expected(format!("one of {}", list(&functions(want)))).suggest(name, functions(want))
        }
        SyntaxFault::FloatFunction(_) => diagnostic.expected(format!("one of {}", list(&functions(want)))),
        SyntaxFault::TooLong { most, .. } => diagnostic.expected(format!("at most {most} words and signs")),
        _ => diagnostic.expected("an expression over names in scope"),
    }
}

/// Names in back quotes, shortened if there are many.
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
