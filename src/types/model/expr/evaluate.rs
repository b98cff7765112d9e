//! Evaluates a scalar: exactly over integers, in f64 over floats. Knows values of names; does not know where the expression is used.
//!
//! Intermediate integers have 128 bits. Only the result must fit 64 bits.

use std::fmt;
use std::ops::Range;

use super::functions::{self, Function, FunctionKind};
use super::tree::{Arithmetic, Comparison, Logic, Node, NodeKind};
use super::value::Value;
use crate::model::DType;

/// An intermediate value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Operand<'a> {
    Int(i128),
    Float(f64),
    Bool(bool),
    Str(&'a str),
}

impl<'a> From<&'a Value> for Operand<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Int(i) => Operand::Int((*i).into()),
            Value::Float(f) => Operand::Float(*f),
            Value::Bool(b) => Operand::Bool(*b),
            Value::Str(s) => Operand::Str(s),
        }
    }
}

impl fmt::Display for Operand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Int(i) => i.fmt(f),
            Operand::Float(x) => x.fmt(f),
            Operand::Bool(b) => b.fmt(f),
            Operand::Str(s) => f.write_str(s),
        }
    }
}

/// Why an expression has no value, and where.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) cause: Cause,
    pub(super) at: Range<usize>,
}

/// Why an expression has no value.
#[derive(Debug, thiserror::Error)]
pub(super) enum Cause {
    #[error("{a} / {b} leaves a remainder of {rest}")]
    Remainder { a: i128, b: i128, rest: i128 },
    #[error("division by zero")]
    DivisionByZero,
    #[error("the number does not fit 64 bits")]
    Overflow,
    #[error("`{0}` is not a finite number")]
    NotFinite(String),
    #[error("`{a} ** {b}` is not an integer")]
    NegativePower { a: i128, b: i128 },
    #[error("{0} is not a number")]
    NotNumber(String),
    #[error("{0} is a string, not a condition")]
    NotCondition(String),
    #[error("{0} and {1} have no order")]
    NoOrder(String, String),
    #[error("`{0}` takes integers")]
    NotInteger(&'static str),
    #[error("`sizeof` takes a type, such as `T` or `'f16'`")]
    NoType,
}

/// Boxed, so that the frames of the recursion stay small.
type Evaluated<'a> = Result<Operand<'a>, Box<Failure>>;

fn fail<T>(cause: Cause, at: &Range<usize>) -> Result<T, Box<Failure>> {
    Err(Box::new(Failure { cause, at: at.clone() }))
}

fn whole<'a>(result: Option<i128>, at: &Range<usize>) -> Evaluated<'a> {
    match result {
        Some(int) => Ok(Operand::Int(int)),
        None => fail(Cause::Overflow, at),
    }
}

/// The context in which an expression is evaluated.
#[derive(Clone, Copy)]
pub(super) struct Evaluation<'a> {
    /// The values of its names.
    pub(super) names: &'a [Operand<'a>],
    /// Whether `/` divides integers as floats.
    pub(super) real: bool,
}

impl<'a> Evaluation<'a> {
    /// The value of a part of the expression.
    pub(super) fn value(self, node: &'a Node) -> Evaluated<'a> {
        Ok(match &node.kind {
            NodeKind::Int(int) => Operand::Int(*int),
            NodeKind::Float(float) => Operand::Float(*float),
            NodeKind::Truth(truth) => Operand::Bool(*truth),
            NodeKind::Str(text) => Operand::Str(text),
            NodeKind::Name(name) => self.names[*name],
            NodeKind::Group(inner) => return self.value(inner),
            NodeKind::Negate(inner) => return self.negate(inner, &node.at),
            NodeKind::Not(inner) => Operand::Bool(!self.holds(inner)?),
            NodeKind::Arithmetic(operator, at, pair) => return self.arithmetic(*operator, at, pair),
            NodeKind::Compare(first, rest) => return self.compare(first, rest),
            NodeKind::Logic(logic, pair) => return self.logic(*logic, pair),
            NodeKind::If(three) => return self.choose(&three[..]),
            NodeKind::Call(function, arguments) => return self.call(function, arguments, &node.at),
        })
    }

    fn negate(self, inner: &'a Node, at: &Range<usize>) -> Evaluated<'a> {
        match self.value(inner)? {
            Operand::Int(int) => whole(int.checked_neg(), at),
            Operand::Float(float) => Ok(Operand::Float(-float)),
            other => fail(Cause::NotNumber(other.to_string()), &inner.at),
        }
    }

    /// Whether a condition holds. A condition is a truth value or a number; a number holds if it is not zero.
    fn holds(self, node: &'a Node) -> Result<bool, Box<Failure>> {
        is_true(self.value(node)?, &node.at)
    }

    fn choose(self, three: &'a [Node]) -> Evaluated<'a> {
        if self.holds(&three[0])? { self.value(&three[1]) } else { self.value(&three[2]) }
    }

    fn logic(self, logic: Logic, pair: &'a [Node; 2]) -> Evaluated<'a> {
        let first = self.value(&pair[0])?;
        let decides = is_true(first, &pair[0].at)? == (logic == Logic::Or);
        if decides { Ok(first) } else { self.value(&pair[1]) }
    }

    fn compare(self, first: &'a Node, rest: &'a [(Comparison, Node)]) -> Evaluated<'a> {
        let mut left = self.value(first)?;
        for (comparison, node) in rest {
            let right = self.value(node)?;
            if !compared(*comparison, left, right, &node.at)? {
                return Ok(Operand::Bool(false));
            }
            left = right;
        }
        Ok(Operand::Bool(true))
    }

    /// A number. Truth values are not numbers.
    fn number(self, node: &'a Node) -> Evaluated<'a> {
        match self.value(node)? {
            number @ (Operand::Int(_) | Operand::Float(_)) => Ok(number),
            other => fail(Cause::NotNumber(other.to_string()), &node.at),
        }
    }

    fn arithmetic(self, operator: Arithmetic, at: &Range<usize>, pair: &'a [Node; 2]) -> Evaluated<'a> {
        match (self.number(&pair[0])?, self.number(&pair[1])?) {
            (Operand::Int(a), Operand::Int(b)) => integers(operator, a, b, at, self.real),
            (a, b) => floats(operator, float(a), float(b), at),
        }
    }

    fn call(self, function: &Function, arguments: &'a [Node], at: &Range<usize>) -> Evaluated<'a> {
        match function.kind {
            FunctionKind::Where => return self.choose(arguments),
            FunctionKind::Sizeof => return self.size(&arguments[0]),
            _ => {}
        }
        let numbers: Vec<Operand<'a>> = arguments.iter().map(|a| self.number(a)).collect::<Result<_, _>>()?;
        let ints: Option<Vec<i128>> =
            numbers.iter().map(|n| if let Operand::Int(i) = n { Some(*i) } else { None }).collect();
        match (ints.as_deref(), function.kind) {
            (Some([_, 0]), FunctionKind::CeilDiv) => fail(Cause::DivisionByZero, at),
            (Some(ints), _) if function.exact => whole(exact(function.kind, ints), at),
            (Some([int]), FunctionKind::Round(_)) => Ok(Operand::Int(*int)),
            (None, FunctionKind::Min | FunctionKind::Max) => extreme(function, &numbers, at),
            (None, FunctionKind::CeilDiv) => fail(Cause::NotInteger(function.name), at),
            (_, kind) => real(function.name, kind, &numbers.iter().map(|n| float(*n)).collect::<Vec<_>>(), at),
        }
    }

    fn size(self, node: &'a Node) -> Evaluated<'a> {
        let dtype = match self.value(node)? {
            Operand::Str(name) => name.parse::<DType>().ok(),
            _ => None,
        };
        match dtype {
            Some(dtype) => Ok(Operand::Int(i128::from(dtype.bytes()))),
            None => fail(Cause::NoType, &node.at),
        }
    }
}

fn is_true(value: Operand<'_>, at: &Range<usize>) -> Result<bool, Box<Failure>> {
    match value {
        Operand::Bool(truth) => Ok(truth),
        Operand::Int(int) => Ok(int != 0),
        Operand::Float(float) => Ok(float != 0.0),
        Operand::Str(text) => fail(Cause::NotCondition(text.into()), at),
    }
}

/// Compares two values. Truth values are 1 and 0 in comparisons with numbers; a string equals no number.
fn compared(comparison: Comparison, a: Operand<'_>, b: Operand<'_>, at: &Range<usize>) -> Result<bool, Box<Failure>> {
    let plain = |operand: Operand<'_>| match operand {
        Operand::Int(int) => Some(int),
        Operand::Bool(truth) => Some(truth.into()),
        _ => None,
    };
    match (a, b) {
        (Operand::Str(a), Operand::Str(b)) => Ok(comparison.holds(&a, &b)),
        (Operand::Str(_), _) | (_, Operand::Str(_)) => match comparison {
            Comparison::Equal => Ok(false),
            Comparison::NotEqual => Ok(true),
            _ => fail(Cause::NoOrder(a.to_string(), b.to_string()), at),
        },
        _ => Ok(match (plain(a), plain(b)) {
            (Some(a), Some(b)) => comparison.holds(&a, &b),
            _ => comparison.holds(&float(a), &float(b)),
        }),
    }
}

fn float(operand: Operand<'_>) -> f64 {
    match operand {
        Operand::Int(int) => int as f64,
        Operand::Float(float) => float,
        Operand::Bool(truth) => f64::from(u8::from(truth)),
        Operand::Str(_) => f64::NAN,
    }
}

fn integers<'a>(operator: Arithmetic, a: i128, b: i128, at: &Range<usize>, real: bool) -> Evaluated<'a> {
    match operator {
        Arithmetic::Divide | Arithmetic::FloorDivide | Arithmetic::Remainder if b == 0 => {
            fail(Cause::DivisionByZero, at)
        }
        Arithmetic::Divide if real => Ok(Operand::Float(a as f64 / b as f64)),
        Arithmetic::Divide => match a.checked_rem(b) {
            Some(0) => whole(a.checked_div(b), at),
            Some(rest) => fail(Cause::Remainder { a, b, rest }, at),
            None => fail(Cause::Overflow, at),
        },
        Arithmetic::Power if b < 0 && real => floats(operator, a as f64, b as f64, at),
        Arithmetic::Power if b < 0 => fail(Cause::NegativePower { a, b }, at),
        Arithmetic::Power => whole(u32::try_from(b).ok().and_then(|b| a.checked_pow(b)), at),
        Arithmetic::Add => whole(a.checked_add(b), at),
        Arithmetic::Subtract => whole(a.checked_sub(b), at),
        Arithmetic::Multiply => whole(a.checked_mul(b), at),
        Arithmetic::FloorDivide => whole(functions::floor_divide_exact(a, b), at),
        Arithmetic::Remainder => whole(a.checked_rem_euclid(b), at),
    }
}

fn floats<'a>(operator: Arithmetic, a: f64, b: f64, at: &Range<usize>) -> Evaluated<'a> {
    let divides = matches!(operator, Arithmetic::Divide | Arithmetic::FloorDivide | Arithmetic::Remainder);
    if divides && b == 0.0 {
        return fail(Cause::DivisionByZero, at);
    }
    Ok(Operand::Float(operator.floats(a, b)))
}

/// A function of integers. None if the result does not fit.
fn exact(kind: FunctionKind, ints: &[i128]) -> Option<i128> {
    match (kind, ints) {
        (FunctionKind::Abs, [x]) => x.checked_abs(),
        (FunctionKind::Sign, [x]) => Some(x.signum()),
        (FunctionKind::Relu, [x]) => Some(*x.max(&0)),
        (FunctionKind::Clamp, [x, low, high]) => Some(*x.max(low).min(high)),
        (FunctionKind::CeilDiv, [a, b]) => functions::ceil_div_exact(*a, *b),
        (FunctionKind::Min, all) => all.iter().min().copied(),
        (FunctionKind::Max, all) => all.iter().max().copied(),
        _ => None,
    }
}

/// A function of floats. The result must be finite.
fn real<'a>(name: &'static str, kind: FunctionKind, floats: &[f64], at: &Range<usize>) -> Evaluated<'a> {
    let value = match (kind, floats) {
        (FunctionKind::One(f), [x]) => f(*x),
        (FunctionKind::Two(f), [x, y]) => f(*x, *y),
        (FunctionKind::Float, [x]) => *x,
        // 2^63 is the least positive float that does not fit an i64.
        (FunctionKind::Round(_), [x]) if x.is_nan() || x.abs() >= 9_223_372_036_854_775_808.0 => {
            return fail(Cause::Overflow, at);
        }
        (FunctionKind::Round(f), [x]) => return Ok(Operand::Int(f(*x) as i128)),
        (FunctionKind::Abs, [x]) => x.abs(),
        (FunctionKind::Sign, [x]) => functions::sign(*x),
        (FunctionKind::Relu, [x]) => functions::relu(*x),
        (FunctionKind::Clamp, [x, low, high]) => functions::clamp(*x, *low, *high),
        _ => f64::NAN,
    };
    if value.is_finite() { Ok(Operand::Float(value)) } else { not_finite(name, floats, at) }
}

/// The smallest or largest number, the first if several are equal. It stays an integer if it is one.
fn extreme<'a>(function: &Function, numbers: &[Operand<'a>], at: &Range<usize>) -> Evaluated<'a> {
    let floats: Vec<f64> = numbers.iter().map(|n| float(*n)).collect();
    let pick = if matches!(function.kind, FunctionKind::Min) { functions::minimum } else { functions::maximum };
    let best = floats.iter().copied().reduce(pick);
    match floats.iter().position(|f| Some(*f) == best) {
        Some(place) => Ok(numbers[place]),
        None => not_finite(function.name, &floats, at),
    }
}

fn not_finite<'a>(name: &str, floats: &[f64], at: &Range<usize>) -> Evaluated<'a> {
    let arguments: Vec<String> = floats.iter().map(ToString::to_string).collect();
    fail(Cause::NotFinite(format!("{name}({})", arguments.join(", "))), at)
}
