//! Expressions in Triton: formulas of `elementwise` as text, and the functions that they call. Knows Triton's language, but not tensors or templates.
//!
//! Numbers stay numbers of Python where a tensor takes part in the operation, because Triton then gives them the tensor's type. Elsewhere they become tensors.
//! Functions are those of Triton's language; those of CUDA's `libdevice` stand in only where nothing else is exact.

use std::collections::BTreeSet;

use kforge_numerics::reference::{Element, Formula};
use kforge_types::model::expr::functions::{Function, FunctionKind};
use kforge_types::model::expr::{Arithmetic, Comparison, Logic};

/// How tightly an expression binds, so that only needed parentheses are written. In Python `&` and `|` bind tighter than comparisons.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Bind {
    Compare,
    Or,
    And,
    Sum,
    Product,
    Unary,
    Atom,
}

/// A formula over tensors of type `real`. `name` returns the Python for a name, which is a tensor. The functions that the formula calls are added to `called`.
pub(super) fn expression(formula: &Formula, name: &dyn Fn(&str) -> String, called: &mut BTreeSet<String>) -> String {
    let mut writer = Writer { names: &formula.names, name, called };
    // What is stored is a tensor.
    writer.tensor(&formula.root)
}

struct Writer<'a> {
    names: &'a [String],
    name: &'a dyn Fn(&str) -> String,
    called: &'a mut BTreeSet<String>,
}

impl Writer<'_> {
    /// Whether an element holds no tensor.
    fn is_plain(&self, element: &Element) -> bool {
        match element {
            Element::Number(_) => true,
            Element::Name(position) => self.names[*position] == "pi",
            Element::Negate(inner) => self.is_plain(inner),
            Element::Arithmetic(operator, pair) => {
                let simple = matches!(operator, Arithmetic::Add | Arithmetic::Subtract | Arithmetic::Multiply);
                simple && pair.iter().all(|part| self.is_plain(part))
            }
            Element::Call(Function { kind: FunctionKind::Float, .. }, arguments) => {
                arguments.iter().all(|part| self.is_plain(part))
            }
            _ => false,
        }
    }

    /// An element as a tensor, in a text that binds as a call does.
    fn tensor(&mut self, element: &Element) -> String {
        let text = self.value(element).0;
        if self.is_plain(element) { format!("tl.full((), {text}, real)") } else { text }
    }

    /// The value of an element, in parentheses if it binds less than `least`.
    fn at(&mut self, element: &Element, least: Bind) -> String {
        let (text, bind) = self.value(element);
        if bind < least { format!("({text})") } else { text }
    }

    fn value(&mut self, element: &Element) -> (String, Bind) {
        match element {
            Element::Number(number) => (literal(*number), Bind::Atom),
            Element::Name(position) => match self.names[*position].as_str() {
                "pi" => ("3.14159265358979323846".into(), Bind::Atom),
                word => ((self.name)(word), Bind::Atom),
            },
            Element::Negate(inner) => (format!("-{}", self.at(inner, Bind::Atom)), Bind::Unary),
            Element::Arithmetic(operator, pair) => self.arithmetic(*operator, &pair[0], &pair[1]),
            _ if is_truth(element) => {
                let condition = self.holds(element, Bind::Compare);
                (format!("tl.where({condition}, 1.0, 0.0).to(real)"), Bind::Atom)
            }
            Element::Logic(logic, pair) => {
                let function = if *logic == Logic::And { "both" } else { "either" };
                self.of_both(function, &pair[0], &pair[1])
            }
            Element::If(three) => {
                let condition = self.holds(&three[0], Bind::Compare);
                let [yes, no] = [1, 2].map(|i| self.tensor(&three[i]));
                (format!("tl.where({condition}, {yes}, {no})"), Bind::Atom)
            }
            Element::Call(function, arguments) => self.call(function, arguments),
            Element::Not(_) | Element::Compare(..) => unreachable!("BUG: these are truth values"),
        }
    }

    fn arithmetic(&mut self, operator: Arithmetic, a: &Element, b: &Element) -> (String, Bind) {
        match operator {
            Arithmetic::Add => (format!("{} + {}", self.at(a, Bind::Sum), self.at(b, Bind::Product)), Bind::Sum),
            Arithmetic::Subtract => (format!("{} - {}", self.at(a, Bind::Sum), self.at(b, Bind::Product)), Bind::Sum),
            Arithmetic::Multiply => {
                (format!("{} * {}", self.at(a, Bind::Product), self.at(b, Bind::Unary)), Bind::Product)
            }
            Arithmetic::Divide => self.of_both("divide", a, b),
            Arithmetic::FloorDivide => {
                let quotient = self.of_both("divide", a, b).0;
                (self.function("floor", &[quotient]), Bind::Atom)
            }
            Arithmetic::Remainder => self.of_both("modulo", a, b),
            // As in the reference: exact if the product is.
            Arithmetic::Power if *b == Element::Number(2.0) && matches!(a, Element::Name(_)) => {
                let base = self.at(a, Bind::Atom);
                (format!("{base} * {base}"), Bind::Product)
            }
            Arithmetic::Power if *b == Element::Number(2.0) => {
                let base = self.tensor(a);
                (self.function("square", &[base]), Bind::Atom)
            }
            Arithmetic::Power => self.of_both("pow", a, b),
        }
    }

    fn of_both(&mut self, function: &str, a: &Element, b: &Element) -> (String, Bind) {
        let arguments = [self.tensor(a), self.tensor(b)];
        (self.function(function, &arguments), Bind::Atom)
    }

    /// A call of one of [`FUNCTIONS`].
    fn function(&mut self, function: &str, arguments: &[String]) -> String {
        self.called.insert(function.to_string());
        format!("{}({})", name_of(function), arguments.join(", "))
    }

    fn call(&mut self, function: &Function, arguments: &[Element]) -> (String, Bind) {
        match (function.kind, arguments) {
            // Every value is a float.
            (FunctionKind::Float, [x]) => return self.value(x),
            (FunctionKind::CeilDiv, [a, b]) => {
                let quotient = self.of_both("divide", a, b).0;
                return (self.function("ceil", &[quotient]), Bind::Atom);
            }
            _ => {}
        }
        let written: Vec<String> = arguments.iter().map(|a| self.tensor(a)).collect();
        let text = match (function.kind, written.as_slice()) {
            (FunctionKind::Clamp, [x, low, high]) => {
                let least = self.function("max", &[x.clone(), low.clone()]);
                self.function("min", &[least, high.clone()])
            }
            (FunctionKind::Min | FunctionKind::Max, [first, rest @ ..]) => {
                rest.iter().fold(first.clone(), |text, next| self.function(function.name, &[text, next.clone()]))
            }
            _ => self.function(function.name, &written),
        };
        (text, Bind::Atom)
    }

    /// Whether an element is true, as a tensor of truth values.
    fn holds(&mut self, element: &Element, least: Bind) -> String {
        let (text, bind) = match element {
            Element::Not(inner) => (format!("~{}", self.holds(inner, Bind::Atom)), Bind::Unary),
            Element::Compare(first, rest) => self.chain(first, rest),
            Element::Logic(logic, pair) => {
                let (sign, bind) = if *logic == Logic::And { ("&", Bind::And) } else { ("|", Bind::Or) };
                let [a, b] = [0, 1].map(|i| self.holds(&pair[i], bind));
                (format!("{a} {sign} {b}"), bind)
            }
            other => {
                let text = if self.is_plain(other) { self.tensor(other) } else { self.at(other, Bind::Sum) };
                (format!("{text} != 0.0"), Bind::Compare)
            }
        };
        if bind < least { format!("({text})") } else { text }
    }

    /// A chain of comparisons.
    fn chain(&mut self, first: &Element, rest: &[(Comparison, Element)]) -> (String, Bind) {
        let plain = self.is_plain(first);
        let mut left = if plain { self.tensor(first) } else { self.at(first, Bind::Sum) };
        let mut parts = vec![];
        for (comparison, element) in rest {
            let right = if self.is_plain(element) { self.tensor(element) } else { self.at(element, Bind::Sum) };
            parts.push(format!("{left} {} {right}", comparison.sign()));
            left = right;
        }
        match parts.as_slice() {
            [one] => (one.clone(), Bind::Compare),
            many => (many.iter().map(|part| format!("({part})")).collect::<Vec<_>>().join(" & "), Bind::And),
        }
    }
}

/// Whether a value is always 1 or 0.
fn is_truth(element: &Element) -> bool {
    match element {
        Element::Not(_) | Element::Compare(..) => true,
        Element::Logic(_, pair) => pair.iter().all(is_truth),
        _ => false,
    }
}

/// A number as a literal of Python, without loss.
fn literal(number: f64) -> String {
    let text = format!("{number:?}");
    if text == "inf" { "float(\"inf\")".into() } else { text }
}

/// The name of a function in the source. `min`, `max`, `abs` and `round` would hide those of Python.
fn name_of(function: &str) -> String {
    format!("{function}_of")
}

/// A function: name, parameters, body for f32, body for f64, and the functions that it calls. The last line of a body is the value.
type Helper = (&'static str, &'static str, &'static [&'static str], &'static [&'static str], &'static [&'static str]);

/// Every function that expressions and activations use; callees come before their callers.
///
/// * Triton's `exp` rounds the argument times log2(e), so its error grows with the argument. What that rounding loses is added back.
/// * `log1p` and `expm1` divide by what the rounding of 1 + x or of exp(x) loses (Kahan). `tanh` near zero is a continued fraction, correct to 1e-11.
/// * The polynomial of `gelu` is that of the template in CUDA C++, correct to 4.3e-7.
const FUNCTIONS: [Helper; 32] = [
    ("divide", "x, y", &["tl.div_rn(x, y)"], &["x / y"], &[]),
    (
        "exp",
        "x",
        &[
            "power = x * 1.4426950408889634",
            "lost = tl.fma(x, 1.4426950216293335, -power) + x * 1.925963033500e-08",
            "tl.exp2(power) * tl.where(lost == lost, 1.0 + lost * 0.6931471805599453, 1.0)",
        ],
        &["tl.exp(x)"],
        &[],
    ),
    ("exp2", "x", &["tl.exp2(x)"], &["tl.exp2(x)"], &[]),
    ("log", "x", &["tl.log(x)"], &["tl.log(x)"], &[]),
    ("log2", "x", &["tl.log2(x)"], &["tl.log2(x)"], &[]),
    ("expm1", "x", &["libdevice.expm1(x)"], &["libdevice.expm1(x)"], &[]),
    ("log1p", "x", &["libdevice.log1p(x)"], &["libdevice.log1p(x)"], &[]),
    ("sqrt", "x", &["tl.sqrt_rn(x)"], &["tl.sqrt(x)"], &[]),
    ("rsqrt", "x", &["tl.div_rn(tl.full(x.shape, 1.0, x.dtype), tl.sqrt_rn(x))"], &["1.0 / tl.sqrt(x)"], &[]),
    (
        "sign",
        "x",
        &["tl.where(x > 0.0, 1.0, tl.where(x < 0.0, -1.0, x))"],
        &["tl.where(x > 0.0, 1.0, tl.where(x < 0.0, -1.0, x))"],
        &[],
    ),
    ("floor", "x", &["tl.floor(x)"], &["tl.floor(x)"], &[]),
    ("ceil", "x", &["tl.ceil(x)"], &["tl.ceil(x)"], &[]),
    (
        "round",
        "x",
        &["tl.where(tl.abs(x) < 4194304.0, (x + 12582912.0) - 12582912.0, x)"],
        &["tl.where(tl.abs(x) < 2251799813685248.0, (x + 6755399441055744.0) - 6755399441055744.0, x)"],
        &[],
    ),
    ("sin", "x", &["tl.sin(x)"], &["tl.sin(x)"], &[]),
    ("cos", "x", &["tl.cos(x)"], &["tl.cos(x)"], &[]),
    (
        "tanh",
        "x",
        &[
            "size = tl.abs(x)",
            "square = x * x",
            "above = x * (135135.0 + square * (17325.0 + square * (378.0 + square)))",
            "below = 135135.0 + square * (62370.0 + square * (3150.0 + square * 28.0))",
            "power = exp_of(-2.0 * size)",
            "large = divide_of(1.0 - power, 1.0 + power)",
            "tl.where(size < 0.6, divide_of(above, below), tl.where(x < 0.0, -large, large))",
        ],
        &["libdevice.tanh(x)"],
        &["divide", "exp"],
    ),
    ("erf", "x", &["tl.erf(x)"], &["tl.erf(x)"], &[]),
    ("abs", "x", &["tl.abs(x)"], &["tl.abs(x)"], &[]),
    ("square", "x", &["x * x"], &["x * x"], &[]),
    (
        "sigmoid",
        "x",
        &["tl.div_rn(tl.full(x.shape, 1.0, x.dtype), 1.0 + exp_of(-x))"],
        &["1.0 / (1.0 + exp_of(-x))"],
        &["exp"],
    ),
    ("relu", "x", &["tl.where(x < 0.0, 0.0, x)"], &["tl.where(x < 0.0, 0.0, x)"], &[]),
    (
        "gelu",
        "x",
        &[
            "u = tl.where(tl.abs(x) > 15.0, 15.0, tl.abs(x))",
            "square = u * u",
            "t = divide_of(tl.full(x.shape, 1.0, x.dtype), 1.0 + 0.345 * u)",
            "power = exp_of(-0.5 * square)",
            "total = 0.179259933 + t * (-0.26368045 + t * (0.14139307 - t * 0.027529412))",
            "total = 0.117689404 + t * (0.109845142 + t * (-0.0325643099 + t * total))",
            "total = 0.137622218 + t * (0.137964421 + t * total)",
            "# What the square lost when it was rounded counts far out.",
            "beyond = (power - 0.5 * tl.fma(u, u, -square) * power) * t * total",
            "tl.where(x < 0.0, 0.0, x) - u * beyond",
        ],
        &["tl.where(x < -40.0, -0.0, 0.5 * x * libdevice.erfc(-x * 0.70710678118654752))"],
        &["divide", "exp"],
    ),
    (
        "gelu_tanh",
        "x",
        &["tl.where(x < -20.0, 0.0, x * sigmoid_of(1.59576912 * (x + 0.044715 * x * x * x)))"],
        &["tl.where(x < -40.0, 0.0, x * sigmoid_of(1.5957691216057308 * (x + 0.044715 * x * x * x)))"],
        &["exp", "sigmoid"],
    ),
    (
        "silu",
        "x",
        &["tl.where(x < -110.0, 0.0, x * sigmoid_of(x))"],
        &["tl.where(x < -760.0, 0.0, x * sigmoid_of(x))"],
        &["exp", "sigmoid"],
    ),
    (
        "softplus",
        "x",
        &[
            "power = exp_of(-tl.abs(x))",
            "whole = 1.0 + power",
            "rest = tl.where(whole == 1.0, power, tl.log(whole) * divide_of(power, tl.where(whole == 1.0, 1.0, whole - 1.0)))",
            "tl.maximum(x, 0.0) + rest",
        ],
        &[
            "power = exp_of(-tl.abs(x))",
            "whole = 1.0 + power",
            "rest = tl.where(whole == 1.0, power, tl.log(whole) * (power / tl.where(whole == 1.0, 1.0, whole - 1.0)))",
            "tl.maximum(x, 0.0) + rest",
        ],
        &["divide", "exp"],
    ),
    ("min", "x, y", &["tl.where((x != x) | (x < y), x, y)"], &["tl.where((x != x) | (x < y), x, y)"], &[]),
    ("max", "x, y", &["tl.where((x != x) | (x > y), x, y)"], &["tl.where((x != x) | (x > y), x, y)"], &[]),
    ("pow", "x, y", &["libdevice.pow(x, y)"], &["libdevice.pow(x, y)"], &[]),
    ("leaky_relu", "x, y", &["tl.where(x > 0.0, x, y * x)"], &["tl.where(x > 0.0, x, y * x)"], &[]),
    ("both", "x, y", &["tl.where(x != 0.0, y, x)"], &["tl.where(x != 0.0, y, x)"], &[]),
    ("either", "x, y", &["tl.where(x != 0.0, x, y)"], &["tl.where(x != 0.0, x, y)"], &[]),
    (
        "modulo",
        "x, y",
        &["rest = libdevice.fmod(x, y)", "tl.where(rest < 0.0, rest + tl.abs(y), rest)"],
        &["rest = libdevice.fmod(x, y)", "tl.where(rest < 0.0, rest + tl.abs(y), rest)"],
        &[],
    ),
];

/// These functions and those that they call, for f32 and f64; empty if there are none.
pub(super) fn helpers(functions: &[String]) -> String {
    let mut wanted: BTreeSet<&str> = functions.iter().map(String::as_str).collect();
    for (name, _, _, _, calls) in FUNCTIONS.iter().rev() {
        if wanted.contains(name) {
            wanted.extend(calls.iter());
        }
    }
    let mut out = String::new();
    for (name, params, single, double, _) in FUNCTIONS.iter().filter(|f| wanted.contains(f.0)) {
        out.push_str(&format!("@triton.jit\ndef {}({params}):\n", name_of(name)));
        if single == double {
            out.push_str(&body(single, "    ", "return "));
        } else {
            out.push_str("    if x.dtype == tl.float64:\n");
            out.push_str(&body(double, "        ", "result = "));
            out.push_str("    else:\n");
            out.push_str(&body(single, "        ", "result = "));
            out.push_str("    return result\n");
        }
        out.push_str("\n\n");
    }
    out
}

/// A body, whose last line is the value.
fn body(lines: &[&str], indent: &str, value: &str) -> String {
    let last = lines.len().saturating_sub(1);
    let of = |(at, line): (usize, &&str)| format!("{indent}{}{line}\n", if at == last { value } else { "" });
    lines.iter().enumerate().map(of).collect()
}

/// Imports, as far as these functions need them.
pub(super) fn imports(functions: &[String]) -> String {
    let helpers = helpers(functions);
    let device = if helpers.contains("libdevice.") { "from triton.language.extra import libdevice\n" } else { "" };
    format!("import triton\nimport triton.language as tl\n{device}\n\n{helpers}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_numerics::reference::formula;
    use kforge_types::model::expr::functions::FUNCTIONS as ALL;

    fn written(text: &str) -> String {
        expression(&formula(text).unwrap(), &|name| name.to_string(), &mut BTreeSet::new())
    }

    #[test]
    fn an_expression_means_in_triton_what_it_means_in_a_manifest() {
        for (text, expected) in [
            ("x * 2 + 1", "x * 2.0 + 1.0"),
            ("2", "tl.full((), 2.0, real)"),
            ("where(x >= b, x, -b)", "tl.where(x >= b, x, -b)"),
            ("x if x >= b else 1", "tl.where(x >= b, x, tl.full((), 1.0, real))"),
            ("2 * (x != b)", "2.0 * tl.where(x != b, 1.0, 0.0).to(real)"),
            ("0 < x <= 1", "tl.where((tl.full((), 0.0, real) < x) & (x <= tl.full((), 1.0, real)), 1.0, 0.0).to(real)"),
            (
                "not x or x < b and b > 0",
                "tl.where(~(x != 0.0) | (x < b) & (b > tl.full((), 0.0, real)), 1.0, 0.0).to(real)",
            ),
            ("x or b", "either_of(x, b)"),
            ("(x + 1) // b", "floor_of(divide_of(x + 1.0, b))"),
            ("x / 3 - (b - x)", "divide_of(x, tl.full((), 3.0, real)) - (b - x)"),
            ("x % 3 + float(b)", "modulo_of(x, tl.full((), 3.0, real)) + b"),
            ("min(x, b, 1)", "min_of(min_of(x, b), tl.full((), 1.0, real))"),
            ("(x + b) ** 2 + x ** 2", "square_of(x + b) + x * x"),
        ] {
            assert_eq!(written(text), expected, "{text}");
        }
    }

    #[test]
    fn every_function_of_expressions_has_its_helpers() {
        for function in &ALL {
            let arguments =
                if function.name == "sizeof" { "'f16'" } else { ["x", "x, b", "x, b, 1"][function.arity - 1] };
            let text = format!("{}({arguments})", function.name);
            let mut called = BTreeSet::new();
            expression(&formula(&text).unwrap(), &|name| name.to_string(), &mut called);
            let called: Vec<String> = called.into_iter().collect();
            let helpers = imports(&called);
            for name in &called {
                assert!(helpers.contains(&format!("def {name}_of(x")), "{text}: {helpers}");
            }
            // Whatever a helper calls is defined before it.
            for (at, _) in helpers.match_indices("_of(") {
                let start = helpers[..at].rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |n| n + 1);
                let defined = format!("def {}_of(", &helpers[start..at]);
                assert!(helpers[..at + 4].contains(&defined), "{text}: {defined}");
            }
        }
    }
}
