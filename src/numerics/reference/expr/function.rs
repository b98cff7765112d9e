//! The functions of expressions, on f64. Elementary ones come from `libm`, so that every machine gives the same bits.
//!
//! `exp exp2 expm1 log log2 log1p sqrt rsqrt abs sign floor ceil round sin cos tanh erf sigmoid relu gelu gelu_tanh silu softplus` of one value;
//! `min max pow leaky_relu` of two; `where(condition, a, b)` and `clamp(x, low, high)` of three. `round` takes halves to even, `gelu` is the
//! exact form through the error function, `gelu_tanh` its usual approximation; `min` and `max` are NaN if either value is.

/// A function with its number of arguments.
#[derive(Debug, Clone, Copy)]
pub(in crate::reference) struct Function {
    /// Its name.
    pub(in crate::reference) name: &'static str,
    /// What it computes.
    pub(super) kind: FunctionKind,
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// What a function computes, by its number of arguments.
#[derive(Debug, Clone, Copy)]
pub(super) enum FunctionKind {
    /// Of one value; `true` where its result grows no faster than its argument, so that the argument's scale bounds its own.
    One(fn(f64) -> f64, bool),
    /// Of two values.
    Two(fn(f64, f64) -> f64),
    /// `condition != 0 ? a : b`.
    Where,
    /// `min(max(x, low), high)`.
    Clamp,
}

impl Function {
    /// How many arguments it takes.
    pub(super) fn arity(self) -> usize {
        match self.kind {
            FunctionKind::One(..) => 1,
            FunctionKind::Two(_) => 2,
            FunctionKind::Where | FunctionKind::Clamp => 3,
        }
    }
}

const fn one(name: &'static str, f: fn(f64) -> f64) -> Function {
    Function { name, kind: FunctionKind::One(f, false) }
}

/// One that follows its argument's scale.
const fn following(name: &'static str, f: fn(f64) -> f64) -> Function {
    Function { name, kind: FunctionKind::One(f, true) }
}

const fn two(name: &'static str, f: fn(f64, f64) -> f64) -> Function {
    Function { name, kind: FunctionKind::Two(f) }
}

/// Every function.
pub(super) static FUNCTIONS: [Function; 29] = [
    one("exp", libm::exp),
    one("exp2", libm::exp2),
    one("expm1", libm::expm1),
    one("log", libm::log),
    one("log2", libm::log2),
    one("log1p", libm::log1p),
    one("sqrt", f64::sqrt),
    one("rsqrt", |x| 1.0 / x.sqrt()),
    one("sign", |x| if x == 0.0 || x.is_nan() { x } else { x.signum() }),
    one("floor", f64::floor),
    one("ceil", f64::ceil),
    one("round", f64::round_ties_even),
    one("sin", libm::sin),
    one("cos", libm::cos),
    one("tanh", libm::tanh),
    one("erf", libm::erf),
    one("sigmoid", sigmoid),
    following("abs", f64::abs),
    following("relu", relu),
    following("gelu", gelu),
    following("gelu_tanh", gelu_tanh),
    following("silu", silu),
    following("softplus", softplus),
    two("min", minimum),
    two("max", maximum),
    two("pow", libm::pow),
    two("leaky_relu", |x, slope| if x > 0.0 { x } else { slope * x }),
    Function { name: "where", kind: FunctionKind::Where },
    Function { name: "clamp", kind: FunctionKind::Clamp },
];

/// The activations that operators offer by name.
pub(in crate::reference) const ACTIVATIONS: [&str; 7] =
    ["none", "relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh"];

/// The activation of that name; the identity for `none`.
pub(in crate::reference) fn activation(name: &str) -> fn(f64) -> f64 {
    match FUNCTIONS.iter().find(|f| f.name == name).map(|f| f.kind) {
        Some(FunctionKind::One(f, _)) => f,
        _ => |x| x,
    }
}

fn relu(x: f64) -> f64 {
    if x.is_nan() { x } else { x.max(0.0) }
}

/// 1 / (1 + exp(-x)), by the exponential that does not overflow.
fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + libm::exp(-x))
    } else {
        let e = libm::exp(x);
        e / (1.0 + e)
    }
}

/// x times the normal distribution's cumulative function; through erfc, which stays exact in the lower tail.
fn gelu(x: f64) -> f64 {
    if x == f64::NEG_INFINITY { -0.0 } else { 0.5 * x * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2) }
}

/// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), written as x sigmoid(2 ...) to stay exact in the lower tail.
fn gelu_tanh(x: f64) -> f64 {
    if x == f64::NEG_INFINITY {
        return -0.0;
    }
    let inner = (2.0 * std::f64::consts::FRAC_2_PI.sqrt()) * (x + 0.044715 * x * x * x);
    x * sigmoid(inner)
}

fn silu(x: f64) -> f64 {
    if x == f64::NEG_INFINITY { -0.0 } else { x * sigmoid(x) }
}

fn softplus(x: f64) -> f64 {
    if x > 0.0 { x + libm::log1p(libm::exp(-x)) } else { libm::log1p(libm::exp(x)) }
}

/// The lesser, NaN if either is.
pub(super) fn minimum(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) }
}

/// The larger, NaN if either is.
pub(super) fn maximum(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}
