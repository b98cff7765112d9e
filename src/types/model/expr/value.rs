//! Values of names and of scalar expressions.

use std::collections::BTreeMap;
use std::fmt;

use crate::model::real;

/// A value of a name or of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// An integer.
    Int(i64),
    /// A float: the value of a name or of a constant may be infinite or NaN, a computed one is finite.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A string: a type's name, a target, a tunable.
    Str(String),
}

impl Value {
    /// The kind of value, for messages.
    pub(super) fn kind(&self) -> &'static str {
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
            Value::Float(x) => match real::word(*x) {
                Some(word) => f.write_str(word),
                None => x.fmt(f),
            },
            Value::Bool(b) => b.fmt(f),
            Value::Str(s) => f.write_str(s),
        }
    }
}

/// The values of the names in an expression.
pub type Scope = BTreeMap<String, Value>;
