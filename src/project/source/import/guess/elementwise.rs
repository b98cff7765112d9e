//! Elementwise operators, guessed from the words of a kernel's name.

use super::super::super::tokens::Token;
use super::super::kernel::Kernel;
use super::super::parameter::Parameter;
use super::{Guess, Role, Sizes, half_arithmetic, quoted, shaped, split};

/// An elementwise operator: its name, how many operands it has, its expression over `{0}`, `{1}` and the scalar `{s}`, and whether it is more than arithmetic.
type Elementwise = (&'static str, usize, &'static str, bool);
fn elementwise(words: &[String], body: &[Token]) -> Option<Elementwise> {
    let has = |any: &[&str]| any.iter().any(|word| words.iter().any(|w| w == word));
    let calls = |part: &str| body.iter().any(|t| t.is_word() && t.text.to_ascii_lowercase().contains(part));
    let all: [(&[&str], Elementwise); 22] = [
        (&["relu6"], ("relu6", 1, "clamp({0}, 0, 6)", false)),
        (&["leaky", "leakyrelu"], ("leaky_relu", 1, "leaky_relu({0}, {s})", false)),
        (&["relu"], ("relu", 1, "relu({0})", false)),
        (&["hardswish"], ("hardswish", 1, "{0} * clamp({0} + 3, 0, 6) / 6", false)),
        (&["hardsigmoid"], ("hardsigmoid", 1, "clamp({0} + 3, 0, 6) / 6", false)),
        (&["hardshrink"], ("hardshrink", 1, "where(abs({0}) > 0.5, {0}, 0)", false)),
        (&["sigmoid"], ("sigmoid", 1, "sigmoid({0})", true)),
        (&["silu", "swish"], ("silu", 1, "silu({0})", true)),
        (&["gelu"], if calls("erf") { ("gelu", 1, "gelu({0})", true) } else { ("gelu", 1, "gelu_tanh({0})", true) }),
        (&["tanh"], ("tanh", 1, "tanh({0})", true)),
        (&["elu"], ("elu", 1, "where({0} > 0, {0}, expm1({0}))", true)),
        (&["saxpy", "axpy", "daxpy"], ("axpy", 2, "{s} * {0} + {1}", false)),
        (&["add", "vecadd", "vectoradd", "vadd"], ("add", 2, "{0} + {1}", false)),
        (&["sub", "subtract"], ("sub", 2, "{0} - {1}", false)),
        (&["mul", "multiply", "hadamard"], ("mul", 2, "{0} * {1}", false)),
        (&["scale"], ("scale", 1, "{s} * {0}", false)),
        (&["square"], ("square", 1, "{0} * {0}", false)),
        (&["exp"], ("exp", 1, "exp({0})", true)),
        (&["abs"], ("abs", 1, "abs({0})", false)),
        (&["neg", "negate"], ("neg", 1, "-{0}", false)),
        (&["copy", "identity"], ("copy", 1, "{0}", false)),
        (&["sin"], ("sin", 1, "sin({0})", true)),
    ];
    all.into_iter().find(|(names, _)| has(names)).map(|(_, found)| found)
}
pub(super) fn elements(kernel: &Kernel, words: &[String], guess: &Guess) -> Option<Guess> {
    let (kind, operands, expression, computes) = elementwise(words, &kernel.body)?;
    let (_, written) = split(guess)?;
    if guess.dims.is_empty() || guess.dims.len() > 3 {
        return None;
    }
    let read = |p: &&Parameter| p.pointer && guess.tensors.iter().any(|t| t.name == p.name && t.role != Role::Output);
    let inputs: Vec<&str> = kernel.parameters.iter().filter(read).map(|p| p.name.as_str()).collect();
    let scalars = usize::from(expression.contains("{s}"));
    if inputs.len() != operands || guess.floats.len() != scalars {
        return None;
    }
    let mut text = expression.replace("{0}", inputs[0]);
    if let Some(second) = inputs.get(1) {
        text = text.replace("{1}", second);
    }
    if let Some((scalar, _)) = guess.floats.first() {
        text = text.replace("{s}", scalar);
    }
    let mut out = shaped(guess, kind, &[]);
    out.reference = Some(format!("{{ builtin = \"elementwise\", {} = {} }}", written.name, quoted(&text)));
    out.tolerance = match written.dtype {
        "f32" if computes => Some("{ atol = 2e-6, rtol = 4e-6 }"),
        "f16" if half_arithmetic(&kernel.body) && kind != "relu" => Some("{ atol = 4e-3, rtol = 4e-3 }"),
        "bf16" if half_arithmetic(&kernel.body) && kind != "relu" => Some("{ atol = 3e-2, rtol = 3e-2 }"),
        _ => None,
    };
    out.sizes = Sizes::Elements;
    Some(out)
}
