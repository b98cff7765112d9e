//! The functions of expressions. Elementary functions come from `libm`, so that every machine and both evaluators give the same bits.
//!
//! `round` rounds halves to even. `gelu` is the exact form with the error function, `gelu_tanh` its usual approximation. `min` and `max` are NaN if any value
//! is NaN.

/// A function.
#[derive(Debug)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// The minimum number of arguments.
    pub arity: usize,
    /// Whether it also takes more arguments.
    pub open: bool,
    /// Whether it can give an integer or a truth value. If not, it is only for floats.
    pub exact: bool,
    /// What it computes.
    pub kind: FunctionKind,
    /// The description for the documentation.
    pub doc: &'static str,
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// What a function computes.
#[derive(Debug, Clone, Copy)]
pub enum FunctionKind {
    /// A float of a float.
    One(fn(f64) -> f64),
    /// A float of two floats.
    Two(fn(f64, f64) -> f64),
    /// Removes the fraction of a float. In a scalar expression the result is an integer.
    Round(fn(f64) -> f64),
    /// Its argument as a float.
    Float,
    /// The absolute value.
    Abs,
    /// -1, 0 or 1.
    Sign,
    /// Its argument, or zero if the argument is negative.
    Relu,
    /// The smallest argument.
    Min,
    /// The largest argument.
    Max,
    /// `min(max(x, low), high)`.
    Clamp,
    /// A quotient, rounded up.
    CeilDiv,
    /// The second argument if the first is true or not zero, else the third.
    Where,
    /// The bytes of a type.
    Sizeof,
}

const fn exact(name: &'static str, arity: usize, kind: FunctionKind, doc: &'static str) -> Function {
    let open = matches!(kind, FunctionKind::Min | FunctionKind::Max);
    Function { name, arity, open, exact: true, kind, doc }
}

const fn float(name: &'static str, kind: FunctionKind, doc: &'static str) -> Function {
    let arity = if matches!(kind, FunctionKind::Two(_)) { 2 } else { 1 };
    Function { name, arity, open: false, exact: false, kind, doc }
}

const fn one(name: &'static str, f: fn(f64) -> f64, doc: &'static str) -> Function {
    float(name, FunctionKind::One(f), doc)
}

/// Every function. The functions of integers come first.
pub static FUNCTIONS: [Function; 32] = [
    exact("abs", 1, FunctionKind::Abs, "the absolute value"),
    exact("ceil_div", 2, FunctionKind::CeilDiv, "the quotient of two integers, rounded up"),
    exact("clamp", 3, FunctionKind::Clamp, "`min(max(x, low), high)`"),
    exact("max", 2, FunctionKind::Max, "the largest of two or more numbers"),
    exact("min", 2, FunctionKind::Min, "the least of two or more numbers"),
    exact("relu", 1, FunctionKind::Relu, "`max(x, 0)`"),
    exact("sign", 1, FunctionKind::Sign, "-1, 0 or 1"),
    exact("sizeof", 1, FunctionKind::Sizeof, "the bytes of a dtype"),
    exact("where", 3, FunctionKind::Where, "`where(c, a, b)` is `a if c else b`"),
    float("ceil", FunctionKind::Round(f64::ceil), "rounded up to an integer"),
    one("cos", libm::cos, "the cosine"),
    one("erf", libm::erf, "the error function"),
    one("exp", libm::exp, "e to the power of x"),
    one("exp2", libm::exp2, "2 to the power of x"),
    one("expm1", libm::expm1, "`exp(x) - 1`, exact near zero"),
    float("float", FunctionKind::Float, "x as a float"),
    float("floor", FunctionKind::Round(f64::floor), "rounded down to an integer"),
    one("gelu", gelu, "x times the cumulative normal distribution, through the error function"),
    one("gelu_tanh", gelu_tanh, "the usual approximation of `gelu` through `tanh`"),
    float("leaky_relu", FunctionKind::Two(leaky_relu), "`leaky_relu(x, slope)`: x if it is positive, else `slope * x`"),
    one("log", libm::log, "the natural logarithm"),
    one("log1p", libm::log1p, "`log(1 + x)`, exact near zero"),
    one("log2", libm::log2, "the logarithm to the base 2"),
    float("pow", FunctionKind::Two(libm::pow), "`pow(x, y)`: x to the power of y"),
    float("round", FunctionKind::Round(f64::round_ties_even), "rounded to the nearest integer, halves to even"),
    one("rsqrt", |x| 1.0 / x.sqrt(), "`1 / sqrt(x)`"),
    one("sigmoid", sigmoid, "`1 / (1 + exp(-x))`"),
    one("silu", silu, "`x * sigmoid(x)`"),
    one("sin", libm::sin, "the sine"),
    one("softplus", softplus, "`log(1 + exp(x))`"),
    one("sqrt", f64::sqrt, "the square root"),
    one("tanh", libm::tanh, "the hyperbolic tangent"),
];

/// The function of that name.
pub fn named(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|f| f.name == name)
}

/// `a ** b`. A square is computed as a product, so it is exact if the product is exact.
pub fn power(a: f64, b: f64) -> f64 {
    if b == 2.0 { a * a } else { libm::pow(a, b) }
}

/// `a // b`.
pub fn floor_divide(a: f64, b: f64) -> f64 {
    (a / b).floor()
}

/// `a % b`: the remainder, never negative.
pub fn remainder(a: f64, b: f64) -> f64 {
    a.rem_euclid(b)
}

/// `a // b` over integers. None if the divisor is zero or the result does not fit.
pub fn floor_divide_exact(a: i128, b: i128) -> Option<i128> {
    let quotient = a.checked_div(b)?;
    Some(if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
}

/// `ceil_div(a, b)` over integers. None if the divisor is zero or the result does not fit.
pub fn ceil_div_exact(a: i128, b: i128) -> Option<i128> {
    let down = floor_divide_exact(a, b)?;
    Some(if a % b == 0 { down } else { down + 1 })
}

/// `ceil_div(a, b)`.
pub fn ceil_div(a: f64, b: f64) -> f64 {
    (a / b).ceil()
}

/// The sign of `x`. A zero or a NaN is returned as it is.
pub fn sign(x: f64) -> f64 {
    if x == 0.0 || x.is_nan() { x } else { x.signum() }
}

/// Zero if `x` is negative.
pub fn relu(x: f64) -> f64 {
    if x.is_nan() { x } else { x.max(0.0) }
}

/// The smaller value, NaN if either is NaN.
pub fn minimum(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) }
}

/// The larger value, NaN if either is NaN.
pub fn maximum(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

/// `x`, limited to the range from `low` to `high`.
pub fn clamp(x: f64, low: f64, high: f64) -> f64 {
    minimum(maximum(x, low), high)
}

/// 1 / (1 + exp(-x)), computed with the exponential that does not overflow.
fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + libm::exp(-x))
    } else {
        let e = libm::exp(x);
        e / (1.0 + e)
    }
}

/// x times the cumulative distribution function of the normal distribution. Uses erfc, which stays exact in the lower tail.
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

fn leaky_relu(x: f64, slope: f64) -> f64 {
    if x > 0.0 { x } else { slope * x }
}
