//! Expressions in CUDA C++: formulas of `elementwise` as text, and the functions that they call. Knows C++, but not tensors or templates.

use std::collections::BTreeSet;

use kforge_numerics::reference::{Element, Formula};
use kforge_types::model::expr::functions::{Function, FunctionKind};
use kforge_types::model::expr::{Arithmetic, Comparison, Logic};

/// How tightly an expression binds, so that only needed parentheses are written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Bind {
    Choice,
    Or,
    And,
    Compare,
    Sum,
    Product,
    Unary,
    Atom,
}

/// A formula over values of type `real`. `name` returns the C++ for a name. The functions of `math` that the formula calls are added to `called`.
pub(super) fn expression(formula: &Formula, name: &dyn Fn(&str) -> String, called: &mut BTreeSet<String>) -> String {
    let mut writer = Writer { names: &formula.names, name, called };
    writer.value(&formula.root).0
}

struct Writer<'a> {
    names: &'a [String],
    name: &'a dyn Fn(&str) -> String,
    called: &'a mut BTreeSet<String>,
}

impl Writer<'_> {
    /// The value of an element, in parentheses if it binds less than `least`.
    fn at(&mut self, element: &Element, least: Bind) -> String {
        let (text, bind) = self.value(element);
        if bind < least { format!("({text})") } else { text }
    }

    /// An argument of a call.
    fn argument(&mut self, element: &Element) -> String {
        self.at(element, Bind::Choice)
    }

    fn value(&mut self, element: &Element) -> (String, Bind) {
        match element {
            Element::Number(number) => (format!("real({})", literal(*number)), Bind::Atom),
            Element::Name(position) => match self.names[*position].as_str() {
                "pi" => ("real(3.14159265358979323846)".into(), Bind::Atom),
                word => ((self.name)(word), Bind::Atom),
            },
            Element::Negate(inner) => (format!("-{}", self.at(inner, Bind::Atom)), Bind::Unary),
            Element::Arithmetic(operator, pair) => self.arithmetic(*operator, &pair[0], &pair[1]),
            _ if is_truth(element) => {
                let condition = self.holds(element, Bind::Or);
                (format!("{condition} ? real(1) : real(0)"), Bind::Choice)
            }
            Element::Logic(logic, pair) => {
                let function = if *logic == Logic::And { "both" } else { "either" };
                self.of_both(function, &pair[0], &pair[1])
            }
            Element::If(three) => {
                let condition = self.holds(&three[0], Bind::Or);
                let [yes, no] = [1, 2].map(|i| self.at(&three[i], Bind::Sum));
                (format!("{condition} ? {yes} : {no}"), Bind::Choice)
            }
            Element::Call(function, arguments) => self.call(function, arguments),
            Element::Not(_) | Element::Compare(..) => unreachable!("BUG: these are truth values"),
        }
    }

    fn arithmetic(&mut self, operator: Arithmetic, a: &Element, b: &Element) -> (String, Bind) {
        let sum = |sign: &str, writer: &mut Self| {
            (format!("{} {sign} {}", writer.at(a, Bind::Sum), writer.at(b, Bind::Product)), Bind::Sum)
        };
        let product = |sign: &str, writer: &mut Self| {
            (format!("{} {sign} {}", writer.at(a, Bind::Product), writer.at(b, Bind::Unary)), Bind::Product)
        };
        match operator {
            Arithmetic::Add => sum("+", self),
            Arithmetic::Subtract => sum("-", self),
            Arithmetic::Multiply => product("*", self),
            Arithmetic::Divide => product("/", self),
            Arithmetic::FloorDivide => {
                let quotient = product("/", self).0;
                (self.math("floor", &[quotient]), Bind::Atom)
            }
            Arithmetic::Remainder => self.of_both("modulo", a, b),
            // As in the reference: exact if the product is.
            Arithmetic::Power if *b == Element::Number(2.0) && matches!(a, Element::Name(_)) => {
                let base = self.at(a, Bind::Atom);
                (format!("{base} * {base}"), Bind::Product)
            }
            Arithmetic::Power if *b == Element::Number(2.0) => {
                let base = self.argument(a);
                (self.math("square", &[base]), Bind::Atom)
            }
            Arithmetic::Power => self.of_both("pow", a, b),
        }
    }

    fn of_both(&mut self, function: &str, a: &Element, b: &Element) -> (String, Bind) {
        let arguments = [self.argument(a), self.argument(b)];
        (self.math(function, &arguments), Bind::Atom)
    }

    /// A call of a function of `math`.
    fn math(&mut self, function: &str, arguments: &[String]) -> String {
        self.called.insert(function.to_string());
        format!("math::{function}({})", arguments.join(", "))
    }

    fn call(&mut self, function: &Function, arguments: &[Element]) -> (String, Bind) {
        match (function.kind, arguments) {
            // Every value is a float.
            (FunctionKind::Float, [x]) => return self.value(x),
            (FunctionKind::CeilDiv, [a, b]) => {
                let quotient = self.arithmetic(Arithmetic::Divide, a, b).0;
                return (self.math("ceil", &[quotient]), Bind::Atom);
            }
            _ => {}
        }
        let written: Vec<String> = arguments.iter().map(|a| self.argument(a)).collect();
        let text = match (function.kind, written.as_slice()) {
            (FunctionKind::Clamp, [x, low, high]) => {
                let least = self.math("max", &[x.clone(), low.clone()]);
                self.math("min", &[least, high.clone()])
            }
            (FunctionKind::Min | FunctionKind::Max, [first, rest @ ..]) => {
                rest.iter().fold(first.clone(), |text, next| self.math(function.name, &[text, next.clone()]))
            }
            _ => self.math(function.name, &written),
        };
        (text, Bind::Atom)
    }

    /// Whether an element is true, as a condition of C++.
    fn holds(&mut self, element: &Element, least: Bind) -> String {
        let (text, bind) = match element {
            Element::Not(inner) => (format!("!{}", self.holds(inner, Bind::Atom)), Bind::Unary),
            Element::Compare(first, rest) => self.chain(first, rest),
            Element::Logic(logic, pair) => {
                let (sign, bind) = if *logic == Logic::And { ("&&", Bind::And) } else { ("||", Bind::Or) };
                // Compilers warn about `&&` beside `||` without parentheses.
                let [a, b] = [0, 1].map(|i| {
                    let same = matches!(&pair[i], Element::Logic(inner, _) if inner == logic);
                    self.holds(&pair[i], if same { bind } else { Bind::Compare })
                });
                (format!("{a} {sign} {b}"), bind)
            }
            other => (format!("{} != real(0)", self.at(other, Bind::Sum)), Bind::Compare),
        };
        if bind < least { format!("({text})") } else { text }
    }

    /// A chain of comparisons. An operand between two comparisons is computed only once.
    fn chain(&mut self, first: &Element, rest: &[(Comparison, Element)]) -> (String, Bind) {
        let mut left = self.at(first, Bind::Sum);
        let (mut parts, mut params, mut values) = (vec![], vec![], vec![]);
        for (i, (comparison, element)) in rest.iter().enumerate() {
            let mut right = self.at(element, Bind::Sum);
            if i + 1 < rest.len() && !matches!(element, Element::Name(_) | Element::Number(_)) {
                let between = format!("between_{i}");
                params.push(format!("real {between}"));
                values.push(std::mem::replace(&mut right, between));
            }
            parts.push(format!("{left} {} {right}", comparison.sign()));
            left = right;
        }
        let bind = if parts.len() == 1 { Bind::Compare } else { Bind::And };
        let text = parts.join(" && ");
        if params.is_empty() {
            return (text, bind);
        }
        (format!("[&]({}) {{ return {text}; }}({})", params.join(", "), values.join(", ")), Bind::Atom)
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

/// A number as a C++ literal, without loss.
fn literal(number: f64) -> String {
    let text = format!("{number:?}");
    if text == "inf" { "INFINITY".into() } else { text }
}

/// A function of `math`: name, params, body in f32, body in f64, and the functions that it calls.
type Helper = (&'static str, &'static str, &'static str, &'static str, &'static [&'static str]);

/// `x` or 0, whichever is greater, minus `|x|` times the share of the normal distribution beyond `|x|`. The coarse form computes that share as two to the power
/// of a polynomial in `|x|`, which takes one function of the special unit and a multiply-add for each of eight powers. It was fitted by least squares, with
/// weights that even out relative errors, over `|x|` up to 14.6, where the result is zero in f32. It is correct to 9.2e-5, a fifth of the last place of f16.
/// The other form computes the share as `exp(-x^2 / 2)` times a polynomial in `1 / (1 + p |x|)`, fitted in the same way over `|x|` up to 16. Its error is
/// 3.3e-8, and with rounding the result is correct to 4.3e-7 (measured over 400,000 values). It takes half the instructions of `erfcf`.
const GELU: &str = "const float u = fminf(fabsf(x), COARSE ? 14.6f : 15.0f);
  float beyond;
  if constexpr (COARSE) {
    const float high = 0.00757405293f + u * (-0.000766406259f + u * (4.92763073e-05f + u * (-1.79341492e-06f + u * 2.7952775e-08f)));
    beyond = exp2f(-1.00013166f + u * (-1.14958067f + u * (-0.461878872f + u * (-0.0513505409f + u * high))));
  } else {
    const float square = u * u, t = __fdividef(1.0f, 1.0f + 0.345f * u), power = expf(-0.5f * square);
    const float sum = 0.179259933f + t * (-0.26368045f + t * (0.14139307f - t * 0.027529412f));
    // What the square lost when it was rounded counts far out.
    beyond = (power - 0.5f * fmaf(u, u, -square) * power) * t *
             (0.137622218f + t * (0.137964421f + t * (0.117689404f + t * (0.109845142f + t * (-0.0325643099f + t * sum)))));
  }
  return (x < 0.0f ? 0.0f : x) - u * beyond";

/// The functions that also have a coarse form, for results that are stored in f16 or bf16. The template argument `COARSE` selects it.
const COARSE: [&str; 2] = ["exp", "gelu"];

/// Every function that expressions and activations use; callees come before their callers. Below the bounds the value is zero in f32 or f64; without the bounds
/// an infinite argument would give NaN. 1.5957691216057308 is 2 sqrt(2 / pi).
const FUNCTIONS: [Helper; 31] = [
    ("exp", "x", "if constexpr (COARSE) return __expf(x);\n  return expf(x)", "::exp(x)", &[]),
    ("exp2", "x", "exp2f(x)", "::exp2(x)", &[]),
    ("expm1", "x", "expm1f(x)", "::expm1(x)", &[]),
    ("log", "x", "logf(x)", "::log(x)", &[]),
    ("log2", "x", "log2f(x)", "::log2(x)", &[]),
    ("log1p", "x", "log1pf(x)", "::log1p(x)", &[]),
    ("sqrt", "x", "sqrtf(x)", "::sqrt(x)", &[]),
    ("rsqrt", "x", "rsqrtf(x)", "1.0 / ::sqrt(x)", &[]),
    ("sign", "x", "x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x", "x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x", &[]),
    ("floor", "x", "floorf(x)", "::floor(x)", &[]),
    ("ceil", "x", "ceilf(x)", "::ceil(x)", &[]),
    ("round", "x", "rintf(x)", "::rint(x)", &[]),
    ("sin", "x", "sinf(x)", "::sin(x)", &[]),
    ("cos", "x", "cosf(x)", "::cos(x)", &[]),
    ("tanh", "x", "tanhf(x)", "::tanh(x)", &[]),
    ("erf", "x", "erff(x)", "::erf(x)", &[]),
    ("abs", "x", "fabsf(x)", "::fabs(x)", &[]),
    ("square", "x", "x * x", "x * x", &[]),
    ("sigmoid", "x", "1.0f / (1.0f + expf(-x))", "1.0 / (1.0 + ::exp(-x))", &[]),
    ("relu", "x", "x < 0.0f ? 0.0f : x", "x < 0.0 ? 0.0 : x", &[]),
    ("gelu", "x", GELU, "x < -40.0 ? -0.0 : 0.5 * x * ::erfc(-x * 0.70710678118654752)", &[]),
    (
        "gelu_tanh",
        "x",
        "x < -20.0f ? -0.0f : x * sigmoid(1.59576912f * (x + 0.044715f * x * x * x))",
        "x < -40.0 ? -0.0 : x * sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))",
        &["sigmoid"],
    ),
    ("silu", "x", "x < -110.0f ? -0.0f : x * sigmoid(x)", "x < -760.0 ? -0.0 : x * sigmoid(x)", &["sigmoid"]),
    (
        "softplus",
        "x",
        "x > 0.0f ? x + log1pf(expf(-x)) : log1pf(expf(x))",
        "x > 0.0 ? x + ::log1p(::exp(-x)) : ::log1p(::exp(x))",
        &[],
    ),
    ("min", "x, y", "x != x || x < y ? x : y", "x != x || x < y ? x : y", &[]),
    ("max", "x, y", "x != x || x > y ? x : y", "x != x || x > y ? x : y", &[]),
    ("pow", "x, y", "powf(x, y)", "::pow(x, y)", &[]),
    ("leaky_relu", "x, y", "x > 0.0f ? x : y * x", "x > 0.0 ? x : y * x", &[]),
    ("both", "x, y", "x != 0.0f ? y : x", "x != 0.0 ? y : x", &[]),
    ("either", "x, y", "x != 0.0f ? x : y", "x != 0.0 ? x : y", &[]),
    (
        "modulo",
        "x, y",
        "const float rest = fmodf(x, y);\n  return rest < 0.0f ? rest + fabsf(y) : rest",
        "const double rest = ::fmod(x, y);\n  return rest < 0.0 ? rest + ::fabs(y) : rest",
        &[],
    ),
];

/// The namespace `math` with these functions and the functions that they call, for f32 and f64; empty if there are none.
pub(super) fn helpers(functions: &[String]) -> String {
    let mut wanted: BTreeSet<&str> = functions.iter().map(String::as_str).collect();
    for (_, _, _, _, calls) in FUNCTIONS.iter().filter(|f| functions.iter().any(|name| name == f.0)) {
        wanted.extend(calls.iter());
    }
    let mut out = String::new();
    for (name, params, single, double, _) in FUNCTIONS.iter().filter(|f| wanted.contains(f.0)) {
        for (kind, body) in [("float", single), ("double", double)] {
            let params: Vec<String> = params.split(", ").map(|p| format!("{kind} {p}")).collect();
            if COARSE.contains(name) {
                out.push_str("template <bool COARSE = false> ");
            }
            let body = if body.contains('\n') { format!("\n  {body};\n") } else { format!(" return {body}; ") };
            out.push_str(&format!("__device__ __forceinline__ {kind} {name}({}) {{{body}}}\n", params.join(", ")));
        }
    }
    if out.is_empty() { out } else { format!("namespace math {{\n\n{out}\n}} // namespace math\n") }
}

/// Includes, and the functions by which generated code converts elements.
pub(super) fn prelude(f16: bool, bf16: bool) -> String {
    let mut out = String::new();
    for (there, header) in [(bf16, "cuda_bf16.h"), (f16, "cuda_fp16.h")] {
        if there {
            out.push_str(&format!("#include <{header}>\n"));
        }
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out.push_str(
        "// What elements of a type are computed in.\n\
         template <class T> struct Compute { using type = float; };\n\
         template <> struct Compute<double> { using type = double; };\n\n\
         // From storage to arithmetic and back; narrow types are rounded once, when they are stored.\n\
         template <class T> __device__ __forceinline__ T widen(T value) { return value; }\n",
    );
    let narrow = [
        (f16, "__half", "__half2float", "__float2half"),
        (bf16, "__nv_bfloat16", "__bfloat162float", "__float2bfloat16"),
    ];
    for (_, name, widen, _) in narrow.iter().filter(|n| n.0) {
        out.push_str(&format!("__device__ __forceinline__ float widen({name} value) {{ return {widen}(value); }}\n"));
    }
    out.push_str("template <class T> struct Narrow {\n  template <class C> __device__ static T from(C value) { return static_cast<T>(value); }\n};\n");
    for (_, name, _, from) in narrow.iter().filter(|n| n.0) {
        out.push_str(&format!(
            "template <> struct Narrow<{name}> {{\n  __device__ static {name} from(float value) {{ return {from}(value); }}\n}};\n"
        ));
    }
    out.push_str(
        "\n// N neighbouring elements, aligned so that they move in one access.\n\
         template <class T, int N> struct alignas(sizeof(T) * N) Pack {\n  T at[N];\n};\n",
    );
    out
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
    fn an_expression_means_in_cpp_what_it_means_in_a_manifest() {
        for (text, expected) in [
            ("where(x >= b, x, -b)", "x >= b ? x : -b"),
            ("x if x >= b else -b", "x >= b ? x : -b"),
            ("2 * (x != b)", "real(2.0) * (x != b ? real(1) : real(0))"),
            ("0 < x <= 1", "real(0.0) < x && x <= real(1.0) ? real(1) : real(0)"),
            (
                "0 < x + b < 1",
                "[&](real between_0) { return real(0.0) < between_0 && between_0 < real(1.0); }(x + b) ? real(1) : real(0)",
            ),
            ("not x or x < b and b > 0", "!(x != real(0)) || (x < b && b > real(0.0)) ? real(1) : real(0)"),
            ("x or b", "math::either(x, b)"),
            ("x if b else 1", "b != real(0) ? x : real(1.0)"),
            ("(x + 1) // b", "math::floor((x + real(1.0)) / b)"),
            ("ceil_div(x, b - 1)", "math::ceil(x / (b - real(1.0)))"),
            ("x % 3 + float(b)", "math::modulo(x, real(3.0)) + b"),
            ("min(x, b, 1)", "math::min(math::min(x, b), real(1.0))"),
            ("(x + b) ** 2 + x ** 2 + pow(x, b)", "math::square(x + b) + x * x + math::pow(x, b)"),
            ("sizeof('f16') * x", "real(2.0) * x"),
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
            let helpers = helpers(&called.iter().cloned().collect::<Vec<_>>());
            for name in &called {
                assert!(helpers.contains(&format!(" float {name}(float x")), "{text}: {helpers}");
            }
        }
    }

    #[test]
    fn an_expression_is_written_in_a_length_of_its_own() {
        let nested = (0..21).fold("x".to_string(), |text, _| format!("float(0 < ({text}) < 1)"));
        assert!(written(&nested).len() < 20_000);
        let chain = format!("x{}", " or x".repeat(400));
        assert!(written(&chain).len() < 20_000);
    }
}
