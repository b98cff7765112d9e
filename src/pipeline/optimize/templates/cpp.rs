//! Expressions in CUDA C++: formulas of `elementwise` as text, and the functions that they call. Knows C++; knows no tensors and no templates.

use std::collections::BTreeSet;

use kforge_numerics::reference::Formula;

/// How tightly an expression binds, for as few parentheses as read well.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Bind {
    Compare,
    Sum,
    Product,
    Unary,
    Atom,
}

/// A formula over values of type `real`. `name` gives the C++ of a name; the functions of `math` that it calls are added to `called`.
pub(super) fn expression(formula: &Formula, name: &dyn Fn(&str) -> String, called: &mut BTreeSet<String>) -> String {
    write(formula, name, called).0
}

fn write(formula: &Formula, name: &dyn Fn(&str) -> String, called: &mut BTreeSet<String>) -> (String, Bind) {
    let at = |formula: &Formula, least: Bind, called: &mut BTreeSet<String>| {
        let (text, bind) = write(formula, name, called);
        if bind < least { format!("({text})") } else { text }
    };
    match formula {
        Formula::Number(number) => (format!("real({})", literal(*number)), Bind::Atom),
        Formula::Name(word) if word == "pi" => ("real(3.14159265358979323846)".into(), Bind::Atom),
        Formula::Name(word) => (name(word), Bind::Atom),
        Formula::Negate(inner) => (format!("-{}", at(inner, Bind::Atom, called)), Bind::Unary),
        Formula::Binary("**", base, exponent) => match (base.as_ref(), exponent.as_ref()) {
            // As the reference does: exact where the product is.
            (Formula::Name(_), Formula::Number(2.0)) => {
                let base = at(base, Bind::Atom, called);
                (format!("{base} * {base}"), Bind::Product)
            }
            (_, Formula::Number(2.0)) => {
                called.insert("square".into());
                (format!("math::square({})", at(base, Bind::Compare, called)), Bind::Atom)
            }
            _ => {
                called.insert("pow".into());
                let (base, exponent) = (at(base, Bind::Compare, called), at(exponent, Bind::Compare, called));
                (format!("math::pow({base}, {exponent})"), Bind::Atom)
            }
        },
        Formula::Binary(sign @ ("+" | "-"), a, b) => {
            (format!("{} {sign} {}", at(a, Bind::Sum, called), at(b, Bind::Product, called)), Bind::Sum)
        }
        Formula::Binary(sign @ ("*" | "/"), a, b) => {
            (format!("{} {sign} {}", at(a, Bind::Product, called), at(b, Bind::Unary, called)), Bind::Product)
        }
        Formula::Binary(sign, a, b) => (
            format!("{} {sign} {} ? real(1) : real(0)", at(a, Bind::Sum, called), at(b, Bind::Sum, called)),
            Bind::Compare,
        ),
        Formula::Call("where", arguments) => {
            let condition = match &arguments[0] {
                Formula::Binary(sign, a, b) if sign.contains(['<', '>', '=']) => {
                    format!("{} {sign} {}", at(a, Bind::Sum, called), at(b, Bind::Sum, called))
                }
                other => format!("{} != real(0)", at(other, Bind::Sum, called)),
            };
            let [yes, no] = [1, 2].map(|i| at(&arguments[i], Bind::Sum, called));
            (format!("{condition} ? {yes} : {no}"), Bind::Compare)
        }
        Formula::Call("clamp", arguments) => {
            called.extend(["min".to_string(), "max".to_string()]);
            let [x, low, high] = [0, 1, 2].map(|i| at(&arguments[i], Bind::Compare, called));
            (format!("math::min(math::max({x}, {low}), {high})"), Bind::Atom)
        }
        Formula::Call(function, arguments) => {
            called.insert((*function).to_string());
            let arguments: Vec<String> = arguments.iter().map(|a| at(a, Bind::Compare, called)).collect();
            (format!("math::{function}({})", arguments.join(", ")), Bind::Atom)
        }
    }
}

/// A number as C++ reads it, without loss.
fn literal(number: f64) -> String {
    let text = format!("{number:?}");
    if text == "inf" { "INFINITY".into() } else { text }
}

/// A function of `math`: name, params, body in f32, body in f64, and what it calls.
type Function = (&'static str, &'static str, &'static str, &'static str, &'static [&'static str]);

/// `x` less `|x|` times the share of the normal distribution beyond `|x|`. A coarse one takes two to the power of a polynomial in `|x|` for that share, which has one
/// function of the special unit and a multiply-add for each of eight powers: fitted by least squares with weights that even out relative errors, over `|x|` up to
/// 14.6, where f32 has come to zero, it is right to 9.2e-5, a fifth of the last place of f16. Else that share is `exp(-x^2 / 2)` times a polynomial in
/// `1 / (1 + p |x|)`, fitted likewise over `|x|` up to 16: its error is 3.3e-8, and with rounding the result is right to 4.3e-7 (seen over 400,000 values). That takes half
/// the instructions of `erfcf`.
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

/// The functions that have a coarse form too, for results that are stored in f16 or bf16: a template argument `COARSE` chooses it.
const COARSE: [&str; 2] = ["exp", "gelu"];

/// Every function that expressions and activations have, callers after what they call. Below the bounds the value is a zero of f32 or f64; without them an
/// infinite argument would give NaN. 1.5957691216057308 is 2 sqrt(2 / pi).
const FUNCTIONS: [Function; 31] = [
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
    ("where", "", "", "", &[]),
    ("clamp", "", "", "", &[]),
    ("none", "", "", "", &[]),
];

/// The namespace `math` with these functions, and what they call, on f32 and f64; nothing if there are none.
pub(super) fn helpers(functions: &[String]) -> String {
    let mut wanted: BTreeSet<&str> = functions.iter().map(String::as_str).collect();
    for (_, _, _, _, calls) in FUNCTIONS.iter().filter(|f| functions.iter().any(|name| name == f.0)) {
        wanted.extend(calls.iter());
    }
    let mut out = String::new();
    for (name, params, single, double, _) in FUNCTIONS.iter().filter(|f| !f.1.is_empty() && wanted.contains(f.0)) {
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

/// Includes, and the functions that generated code converts elements with.
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
