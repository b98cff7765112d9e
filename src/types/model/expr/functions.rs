//! The functions of expressions and the environment they live in. Knows arithmetic; does not know where an expression came from.

use std::sync::OnceLock;

use minijinja::value::{Rest, Value};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior};

use crate::model::DType;

/// Functions on integers (and floats, where an expression may be one).
pub(super) const EXACT: [&str; 5] = ["abs", "ceil_div", "max", "min", "sizeof"];
/// Functions that only an expression which may be a float has.
pub(super) const FLOAT: [&str; 8] = ["ceil", "exp", "float", "floor", "log", "log2", "rsqrt", "sqrt"];

/// What went wrong in an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// A division leaves a remainder where none is allowed.
    Remainder,
    /// A division by zero.
    DivisionByZero,
    /// An integer does not fit.
    Overflow,
    /// A float is infinite or none.
    NotFinite,
    /// An operand is no number.
    NotNumber,
    /// An operand is no integer.
    NotInteger,
    /// A function has the wrong arguments.
    Arguments,
}

/// The error of a function. The library carries it as the source of its own.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct Failure {
    /// What went wrong.
    pub(super) cause: Cause,
    /// The byte of the expression where the operator stands, 0 where it is about the whole.
    pub(super) at: usize,
    message: String,
}

fn fail(cause: Cause, at: i64, message: &str) -> Error {
    let failure = Failure { cause, at: usize::try_from(at).unwrap_or(0), message: message.into() };
    Error::new(ErrorKind::InvalidOperation, message.to_owned()).with_source(failure)
}

/// The error that a function of ours made.
pub(super) fn failure(error: &Error) -> Option<&Failure> {
    std::error::Error::source(error)?.downcast_ref()
}

/// Whether an operator of the library's own left its range. The library keeps one kind for that and for operands of the wrong kind, so its words are read, here
/// only.
pub(super) fn is_overflow(error: &Error) -> bool {
    error.detail().is_some_and(|words| words == "overflow" || words.starts_with("unable to calculate "))
}

/// A number of an expression. Truth values are not numbers.
#[derive(Clone, Copy)]
enum Number {
    Int(i64),
    Float(f64),
}

impl Number {
    fn of(value: &Value, at: i64) -> Result<Self, Error> {
        if value.is_integer() {
            return value
                .as_i64()
                .map(Number::Int)
                .ok_or_else(|| fail(Cause::Overflow, at, "the number does not fit 64 bits"));
        }
        match f64::try_from(value.clone()) {
            Ok(f) if value.is_number() => Ok(Number::Float(f)),
            _ => Err(fail(Cause::NotNumber, at, &format!("{value} is not a number"))),
        }
    }

    fn float(self) -> f64 {
        match self {
            Number::Int(i) => i as f64,
            Number::Float(f) => f,
        }
    }
}

fn whole(result: Option<i64>, at: i64) -> Result<Value, Error> {
    result.map(Value::from).ok_or_else(|| fail(Cause::Overflow, at, "the number does not fit 64 bits"))
}

/// `a / b`: exact on integers, where a remainder is an error; `real` divides them as floats.
fn divide(a: &Value, b: &Value, at: i64, real: bool) -> Result<Value, Error> {
    let zero = || fail(Cause::DivisionByZero, at, "division by zero");
    match (Number::of(a, at)?, Number::of(b, at)?) {
        (Number::Int(_), Number::Int(0)) => Err(zero()),
        (Number::Int(a), Number::Int(b)) if !real => match a.checked_rem(b) {
            Some(0) => whole(a.checked_div(b), at),
            Some(rest) => Err(fail(Cause::Remainder, at, &format!("{a} / {b} leaves a remainder of {rest}"))),
            None => whole(None, at),
        },
        (a, b) if b.float() == 0.0 => {
            Err(if a.float().is_nan() { fail(Cause::NotNumber, at, "not a number") } else { zero() })
        }
        (a, b) => Ok(Value::from(a.float() / b.float())),
    }
}

fn floor_divide(a: &Value, b: &Value, at: i64) -> Result<Value, Error> {
    match (Number::of(a, at)?, Number::of(b, at)?) {
        (Number::Int(_), Number::Int(0)) => Err(fail(Cause::DivisionByZero, at, "division by zero")),
        (Number::Int(a), Number::Int(b)) => whole(floor(a, b), at),
        (a, b) => Ok(Value::from(
            (divide(&Value::from(a.float()), &Value::from(b.float()), at, true).and_then(f64::try_from)?).floor(),
        )),
    }
}

fn floor(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    Some(if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
}

fn remainder(a: &Value, b: &Value, at: i64) -> Result<Value, Error> {
    match (Number::of(a, at)?, Number::of(b, at)?) {
        (Number::Int(_), Number::Int(0)) => Err(fail(Cause::DivisionByZero, at, "division by zero")),
        (Number::Int(a), Number::Int(b)) => whole(a.checked_rem_euclid(b), at),
        (a, b) if b.float() == 0.0 => divide(&Value::from(a.float()), &Value::from(0.0), at, true),
        (a, b) => Ok(Value::from(a.float().rem_euclid(b.float()))),
    }
}

fn extreme(args: &[Value], largest: bool) -> Result<Value, Error> {
    let mut best: Option<(Number, &Value)> = None;
    for value in args {
        let number = Number::of(value, 0)?;
        let better = match (best.map(|b| b.0), number) {
            (None, _) => true,
            (Some(Number::Int(a)), Number::Int(b)) => (b > a) == largest && a != b,
            (Some(a), b) => (b.float() > a.float()) == largest,
        };
        if better {
            best = Some((number, value));
        }
    }
    best.map(|b| b.1.clone()).ok_or_else(|| fail(Cause::Arguments, 0, "`min` and `max` take at least one argument"))
}

fn ceil_div(a: &Value, b: &Value) -> Result<Value, Error> {
    match (Number::of(a, 0)?, Number::of(b, 0)?) {
        (Number::Int(_), Number::Int(0)) => Err(fail(Cause::DivisionByZero, 0, "division by zero")),
        (Number::Int(a), Number::Int(b)) => {
            let down = floor(a, b);
            whole(down.and_then(|q| if a % b == 0 { Some(q) } else { q.checked_add(1) }), 0)
        }
        _ => Err(fail(Cause::NotInteger, 0, "`ceil_div` takes integers")),
    }
}

fn arguments<const N: usize>(name: &str, args: &[Value]) -> Result<[Value; N], Error> {
    <[Value; N]>::try_from(args.to_vec()).map_err(|got| {
        fail(
            Cause::Arguments,
            0,
            &format!("`{name}` takes {N} argument{}, not {}", if N == 1 { "" } else { "s" }, got.len()),
        )
    })
}

fn math(env: &mut Environment<'static>, name: &'static str, f: fn(f64) -> f64) {
    env.add_function(name, move |args: Rest<Value>| -> Result<Value, Error> {
        let [x] = arguments(name, &args)?;
        let y = f(Number::of(&x, 0)?.float());
        if y.is_finite() {
            Ok(Value::from(y))
        } else {
            Err(fail(Cause::NotFinite, 0, &format!("`{name}({x})` is not a finite number")))
        }
    });
}

/// Rounds to an integer.
fn rounded(env: &mut Environment<'static>, name: &'static str, f: fn(f64) -> f64) {
    env.add_function(name, move |args: Rest<Value>| -> Result<Value, Error> {
        let [x] = arguments(name, &args)?;
        match Number::of(&x, 0)? {
            Number::Int(i) => Ok(Value::from(i)),
            // 2^63 is the first float beyond an i64.
            Number::Float(x) if x.abs() < 9_223_372_036_854_775_808.0 => Ok(Value::from(f(x) as i64)),
            Number::Float(_) => whole(None, 0),
        }
    });
}

fn division(env: &mut Environment<'static>, name: &'static str, f: fn(&Value, &Value, i64) -> Result<Value, Error>) {
    env.add_function(name, move |args: Rest<Value>| -> Result<Value, Error> {
        let [a, b, at] = arguments(name, &args)?;
        f(&a, &b, at.as_i64().unwrap_or_default())
    });
}

fn environment(real: bool) -> Environment<'static> {
    let mut env = Environment::empty();
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    env.set_debug(true);
    division(
        &mut env,
        "divide__",
        if real { |a, b, at| divide(a, b, at, true) } else { |a, b, at| divide(a, b, at, false) },
    );
    division(&mut env, "floor_divide__", floor_divide);
    division(&mut env, "remainder__", remainder);
    env.add_function("min", |args: Rest<Value>| extreme(&args, false));
    env.add_function("max", |args: Rest<Value>| extreme(&args, true));
    env.add_function("ceil_div", |args: Rest<Value>| {
        let [a, b] = arguments("ceil_div", &args)?;
        ceil_div(&a, &b)
    });
    env.add_function("abs", |args: Rest<Value>| -> Result<Value, Error> {
        let [x] = arguments("abs", &args)?;
        match Number::of(&x, 0)? {
            Number::Int(i) => whole(i.checked_abs(), 0),
            Number::Float(f) => Ok(Value::from(f.abs())),
        }
    });
    env.add_function("sizeof", |args: Rest<Value>| -> Result<Value, Error> {
        let [t] = arguments("sizeof", &args)?;
        let dtype = t.as_str().and_then(|t| t.parse::<DType>().ok());
        dtype
            .map(|d| Value::from(d.bytes()))
            .ok_or_else(|| fail(Cause::Arguments, 0, "`sizeof` takes a type, such as `T` or `'f16'`"))
    });
    math(&mut env, "sqrt", f64::sqrt);
    math(&mut env, "rsqrt", |x| 1.0 / x.sqrt());
    math(&mut env, "exp", f64::exp);
    math(&mut env, "log", f64::ln);
    math(&mut env, "log2", f64::log2);
    math(&mut env, "float", |x| x);
    rounded(&mut env, "floor", f64::floor);
    rounded(&mut env, "ceil", f64::ceil);
    env
}

/// Where expressions are evaluated: `real` divides integers as floats.
pub(super) fn home(real: bool) -> &'static Environment<'static> {
    static EXACT: OnceLock<Environment<'static>> = OnceLock::new();
    static REAL: OnceLock<Environment<'static>> = OnceLock::new();
    if real { REAL.get_or_init(|| environment(true)) } else { EXACT.get_or_init(|| environment(false)) }
}
