//! What a kernel computes, guessed from its name, its parameters and how its body uses them. Knows usual names of operators and the built-in references; a guess
//! that does not fit the parameters is none. Every guess is for the user to confirm.

use std::collections::BTreeMap;

use super::super::tokens::Token;
use super::demands::{indices, multiples};
use super::extent::extent;
use super::kernel::Kernel;
use super::parameter::{Access, Parameter};

/// What an operator does with a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    Input,
    Inout,
    Output,
}

impl Role {
    /// The key of a manifest.
    pub(super) fn key(self) -> &'static str {
        match self {
            Role::Input => "inputs",
            Role::Inout => "inouts",
            Role::Output => "outputs",
        }
    }
}

/// A tensor of an operator, named as the kernel names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tensor {
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) dtype: &'static str,
    /// Extents, over the kernel's dims.
    pub(super) shape: Vec<String>,
    pub(super) check: Option<String>,
}

/// Which sizes a kernel is tried at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sizes {
    /// One extent, or several whose product counts.
    Elements,
    /// Rows and columns.
    Rows,
    /// m, n and k.
    Product,
    /// Not known.
    Unknown,
}

/// What a kernel may compute.
#[derive(Debug, Clone)]
pub(super) struct Guess {
    /// `relu`, or for an unknown operator the kernel's name.
    pub(super) kind: String,
    pub(super) tensors: Vec<Tensor>,
    /// Scalars that are floats, with their dtypes.
    pub(super) floats: Vec<(String, &'static str)>,
    /// The kernel's dims in the operator's order.
    pub(super) dims: Vec<String>,
    /// The value of `reference`; none if nothing is known.
    pub(super) reference: Option<String>,
    pub(super) tolerance: Option<&'static str>,
    /// Numbers that divide dims.
    pub(super) multiples: BTreeMap<String, i64>,
    /// Why they do.
    pub(super) demands: Vec<String>,
    pub(super) sizes: Sizes,
    /// A tensor that is zero before the kernel adds to it.
    pub(super) zeroed: Option<String>,
    /// What else than the name the reference is guessed from.
    pub(super) why: Vec<String>,
}

/// The words of a name: `relu_f32x4_kernel`, `vectorAdd`.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut out: Vec<String> = vec![];
    let mut lower = false;
    for c in name.chars() {
        if c == '_' || lower && c.is_ascii_uppercase() || out.is_empty() {
            out.push(String::new());
        }
        lower = c.is_ascii_lowercase();
        if c != '_' {
            out.last_mut().expect("BUG: the first character begins a word").push(c.to_ascii_lowercase());
        }
    }
    out.retain(|word| !word.is_empty());
    out
}

/// Words with which a name says more than the operator.
const MORE: [&str; 14] = [
    "backward",
    "bwd",
    "grad",
    "dinp",
    "bias",
    "residual",
    "fused",
    "attention",
    "attn",
    "conv",
    "histogram",
    "mask",
    "quant",
    "update",
];

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

/// What is known of a kernel whatever it computes.
fn base(kernel: &Kernel) -> Guess {
    let shape = match &kernel.dims[..] {
        [] => vec!["1".to_string()],
        dims => dims.to_vec(),
    };
    let tensor = |p: &Parameter| {
        let (role, mut check) = match p.access {
            Access::Read => (Role::Input, None),
            Access::Written => (Role::Output, None),
            Access::Both | Access::Atomic => (Role::Inout, None),
            Access::Unknown => (Role::Output, Some("whether it is written or only read".to_string())),
        };
        if p.dtype.is_none() {
            check = Some(format!("`{}` has no dtype here; f32 is a placeholder", p.spelling));
        } else if let Some(doubt) = &p.doubt {
            check = Some(format!("the dtype: {doubt}"));
        } else if p.lanes > 1 {
            let (spelling, lanes) = (&p.spelling, p.lanes);
            let counted = kernel.dims.last().map_or_else(|| "its elements".into(), |dim| format!("`{dim}`"));
            check = Some(format!(
                "the shape is a guess: {counted} may count elements of `{spelling}`, which are {lanes} of these, or these"
            ));
        }
        let mut shape = shape.clone();
        if p.lanes > 1 {
            shape.push(p.lanes.to_string());
        }
        Tensor { name: p.name.clone(), role, dtype: p.dtype.unwrap_or("f32"), shape, check }
    };
    let passed = kernel.parameters.iter().filter(|p| p.pointer && !kernel.nulls.contains(&p.name));
    let mut tensors: Vec<Tensor> = passed.map(tensor).collect();
    let asked = "host code fills this constant: state its shape and how its values are drawn";
    tensors.extend(kernel.constants.iter().filter_map(|constant| {
        let (dtype, shape) = constant.tensor.clone()?;
        let (name, check) = (constant.name.clone(), Some(asked.to_string()));
        Some(Tensor { name, role: Role::Input, dtype, shape, check })
    }));
    tensors.sort_by_key(|t| t.role);
    let float = |p: &&Parameter| !p.pointer && p.dtype.is_some_and(|d| d.starts_with(['f', 'b']) && d != "bool");
    let floats = kernel.parameters.iter().filter(float).map(|p| (p.name.clone(), p.dtype.unwrap_or("f32")));
    Guess {
        kind: kernel.name.clone(),
        tensors,
        floats: floats.collect(),
        dims: kernel.dims.clone(),
        reference: None,
        tolerance: None,
        multiples: BTreeMap::new(),
        demands: vec![],
        sizes: Sizes::Unknown,
        zeroed: None,
        why: vec![],
    }
}

/// Guesses what a kernel computes.
pub(super) fn guess(kernel: &Kernel) -> Guess {
    let words = words(&kernel.name);
    let mut guess = base(kernel);
    // What is in the constants is a part of what it computes.
    let more = words.iter().any(|word| MORE.contains(&word.as_str())) || !kernel.constants.is_empty();
    let lanes = kernel.parameters.iter().any(|p| p.lanes > 1 && p.pointer);
    let odd = kernel.parameters.iter().any(|p| p.dtype.is_none() || p.dtype == Some("bool") && !p.pointer);
    if !more && !lanes && !odd {
        let tries = [softmax, norm, matmul, transpose, dot, sum, elements];
        if let Some(found) = tries.iter().find_map(|try_| try_(kernel, &words, &guess)) {
            guess = found;
        }
    }
    (guess.multiples, guess.demands) = multiples(kernel, &guess, &words);
    let shape = if guess.reference.is_none() { "state the shape; " } else { "" };
    for (name, indexed) in indices(kernel) {
        let tensor = guess.tensors.iter_mut().find(|t| t.name == name && t.role == Role::Input);
        if let Some(tensor) = tensor {
            let asked = format!(
                "{shape}its values index `{indexed}`; state `init = {{ range = [0, \"N - 1\"] }}`, where N - 1 is the largest valid index: both ends are drawn"
            );
            tensor.check = Some(tensor.check.take().map_or(asked.clone(), |other| format!("{other}; {asked}")));
        }
    }
    guess
}

/// Whether a body computes in 16 bits.
fn half_arithmetic(body: &[Token]) -> bool {
    const NAMES: [&str; 4] = ["__h", "hexp", "htanh", "hrcp"];
    body.iter().any(|t| {
        t.is_word()
            && NAMES.iter().any(|n| t.text.starts_with(n))
            && !["__half2float", "__half22float2", "__half"].contains(&t.text.as_str())
    })
}

fn has(words: &[String], any: &[&str]) -> bool {
    any.iter().any(|word| words.iter().any(|w| w == word))
}

/// Tensors by role, where one is written.
fn split(guess: &Guess) -> Option<(Vec<&Tensor>, &Tensor)> {
    let mut written = guess.tensors.iter().filter(|t| t.role != Role::Input);
    let (one, None) = (written.next()?, written.next()) else { return None };
    Some((guess.tensors.iter().filter(|t| t.role == Role::Input).collect(), one))
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

fn builtin(name: &str, names: &[(&str, &str)], settings: &str) -> String {
    let renamed: Vec<String> =
        names.iter().filter(|(a, b)| a != b).map(|(a, b)| format!("{a} = {}", quoted(b))).collect();
    let mut parts = vec![format!("builtin = {}", quoted(name))];
    parts.extend((!settings.is_empty()).then(|| settings.to_string()));
    parts.extend((!renamed.is_empty()).then(|| format!("names = {{ {} }}", renamed.join(", "))));
    match parts.len() {
        1 => quoted(&format!("builtin:{name}")),
        _ => format!("{{ {} }}", parts.join(", ")),
    }
}

/// A guess with these shapes of tensors.
fn shaped(guess: &Guess, kind: &str, shapes: &[(&str, Vec<String>)]) -> Guess {
    let mut out = Guess { kind: kind.into(), ..guess.clone() };
    for tensor in &mut out.tensors {
        if let Some((_, shape)) = shapes.iter().find(|(name, _)| *name == tensor.name) {
            tensor.shape = shape.clone();
        }
    }
    out
}

fn elements(kernel: &Kernel, words: &[String], guess: &Guess) -> Option<Guess> {
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

/// Rows and columns, by names where they say so.
fn rows(kernel: &Kernel, guess: &Guess) -> Option<(String, String)> {
    use super::expression::Expression::{Binary, Int, Name};
    if let [row] = &guess.dims[..] {
        // The launch fixes the columns: it passes `rows * 32`.
        return kernel.integers.values().find_map(|e| match e {
            Binary('*', a, b) if **a == Name(row.clone()) => match **b {
                Int(columns) => Some((row.clone(), columns.to_string())),
                _ => None,
            },
            _ => None,
        });
    }
    let [first, second] = &guess.dims[..] else { return None };
    let name = |dim: &String| dim.to_ascii_lowercase();
    let is_column = |dim: &String| {
        ["col", "width", "hidden", "dim", "vocab", "c", "k", "d", "w"]
            .iter()
            .any(|n| name(dim) == *n || n.len() > 2 && name(dim).starts_with(n))
    };
    let is_row = |dim: &String| {
        ["row", "height", "batch", "token", "seq", "m", "h"]
            .iter()
            .any(|n| name(dim) == *n || n.len() > 2 && name(dim).starts_with(n))
    };
    // What only the launch names counts rows.
    let passed = |dim: &String| kernel.parameters.iter().any(|p| p.name == *dim);
    let turned =
        is_column(first) && !is_column(second) || is_row(second) && !is_row(first) || passed(first) && !passed(second);
    // A grid of one extent counts rows.
    let grid = match &kernel.grid.known[..] {
        [Name(dim)] if dim == first || dim == second => Some(dim == second),
        _ => None,
    };
    let turned = grid.unwrap_or(turned);
    Some(if turned { (second.clone(), first.clone()) } else { (first.clone(), second.clone()) })
}

/// How rows and columns were told apart.
fn by_rows(row: &str, col: &str) -> Vec<String> {
    vec![format!("that `{row}` counts rows and `{col}` columns is a guess")]
}

/// The extents that are dims.
fn named(extents: [String; 2]) -> Vec<String> {
    extents.into_iter().filter(|extent| extent.parse::<i64>().is_err()).collect()
}

fn softmax(kernel: &Kernel, words: &[String], guess: &Guess) -> Option<Guess> {
    let kind = match has(words, &["logsoftmax"]) || has(words, &["softmax"]) && has(words, &["log"]) {
        true => "log_softmax",
        false if has(words, &["softmax"]) => "softmax",
        false => return None,
    };
    let (inputs, written) = split(guess)?;
    let (row, col) = rows(kernel, guess)?;
    let [x] = &inputs[..] else { return None };
    if !guess.floats.is_empty() || written.role != Role::Output {
        return None;
    }
    let shape = vec![row.clone(), col.clone()];
    let mut out = shaped(guess, kind, &[(&x.name, shape.clone()), (&written.name, shape)]);
    out.reference = Some(builtin(kind, &[("x", &x.name), ("y", &written.name)], ""));
    out.why = by_rows(&row, &col);
    (out.dims, out.sizes) = (named([row, col]), Sizes::Rows);
    if written.dtype == "f32" {
        out.tolerance = Some("{ atol = 2e-6, rtol = 1e-5 }");
    }
    Some(out)
}

fn norm(kernel: &Kernel, words: &[String], guess: &Guess) -> Option<Guess> {
    let of = |a: &str, joined: &str| has(words, &[joined]) || has(words, &[a]) && has(words, &["norm"]);
    let kind = match (of("layer", "layernorm"), of("rms", "rmsnorm")) {
        (true, _) => "layer_norm",
        (_, true) => "rms_norm",
        _ => return None,
    };
    let (inputs, written) = split(guess)?;
    let (row, col) = rows(kernel, guess)?;
    let most = if kind == "layer_norm" { 3 } else { 2 };
    if inputs.is_empty() || inputs.len() > most || written.role != Role::Output {
        return None;
    }
    let eps = guess.floats.iter().filter(|(name, _)| name.to_ascii_lowercase().contains("eps")).count();
    if eps != guess.floats.len() || eps > 1 {
        return None;
    }
    let whole = vec![row.clone(), col.clone()];
    let order: Vec<&str> = kernel
        .parameters
        .iter()
        .map(|p| p.name.as_str())
        .filter(|name| inputs.iter().any(|t| t.name == *name))
        .collect();
    let mut shapes = vec![(order[0], whole.clone()), (written.name.as_str(), whole)];
    shapes.extend(order.iter().skip(1).map(|name| (*name, vec![col.clone()])));
    let mut names = vec![("x", order[0]), ("y", written.name.as_str())];
    names.extend(["w", "b"].into_iter().zip(order.iter().skip(1).copied()));
    let mut out = shaped(guess, kind, &shapes);
    let settings =
        guess.floats.first().filter(|(name, _)| name != "eps").map(|(name, _)| format!("eps = {}", quoted(name)));
    out.reference = Some(builtin(kind, &names, &settings.unwrap_or_default()));
    out.why = by_rows(&row, &col);
    (out.dims, out.sizes) = (named([row, col]), Sizes::Rows);
    if written.dtype == "f32" {
        out.tolerance = Some("{ atol = 1e-5, rtol = 1e-5 }");
    }
    Some(out)
}

fn matmul(kernel: &Kernel, words: &[String], guess: &Guess) -> Option<Guess> {
    if !has(words, &["matmul", "gemm", "sgemm", "dgemm", "hgemm", "mm"]) {
        return None;
    }
    let (inputs, written) = split(guess)?;
    let [_, _] = &inputs[..] else { return None };
    let dim = |name: &str| guess.dims.iter().find(|d| d.eq_ignore_ascii_case(name)).cloned();
    let (m, n, k) = match &guess.dims[..] {
        [one] => (one.clone(), one.clone(), one.clone()),
        [_, _, _] => (dim("m")?, dim("n")?, dim("k")?),
        _ => return None,
    };
    if guess.floats.iter().any(|(name, _)| !["alpha", "beta"].contains(&name.as_str())) {
        return None;
    }
    let beta = guess.floats.iter().any(|(name, _)| name == "beta");
    if (written.role == Role::Inout) != beta {
        return None;
    }
    let order: Vec<&str> = kernel
        .parameters
        .iter()
        .map(|p| p.name.as_str())
        .filter(|name| inputs.iter().any(|t| t.name == *name))
        .collect();
    let of = |name: &str, usual: &str, turned: &str| turned_by(&kernel.body, name, usual, turned);
    let (by_a, by_b) = if m == k { (None, None) } else { (of(order[0], &k, &m), of(order[1], &n, &k)) };
    // By the convention of BLAS, both operands of `tn` are stored along k.
    let suffix = has(words, &["tn"]);
    let (turned_a, turned_b) = (by_a.unwrap_or(false), by_b.unwrap_or(suffix));
    let pair = |first: &String, second: &String, turned: bool| match turned {
        true => vec![second.clone(), first.clone()],
        false => vec![first.clone(), second.clone()],
    };
    let shapes = [
        (order[0], pair(&m, &k, turned_a)),
        (order[1], pair(&k, &n, turned_b)),
        (written.name.as_str(), vec![m.clone(), n.clone()]),
    ];
    let mut out = shaped(guess, "matmul", &shapes);
    for (name, found, by_name) in [(order[0], by_a, false), (order[1], by_b, suffix)] {
        let stored = |turned: bool| if turned { "transposed" } else { "as its shape says" };
        out.why.push(match found {
            Some(turned) => format!("`{name}` is stored {}, by its index in the body", stored(turned)),
            None if by_name => format!("that `{name}` is stored transposed is a guess from `tn` in the name"),
            None => format!("that `{name}` is stored by rows is a guess"),
        });
    }
    let settings = [("transpose_a", turned_a), ("transpose_b", turned_b)];
    let settings = settings.iter().filter(|(_, turned)| *turned).map(|(key, _)| format!("{key} = true"));
    let settings = settings.collect::<Vec<_>>().join(", ");
    out.reference = Some(builtin("matmul", &[("a", order[0]), ("b", order[1]), ("c", &written.name)], &settings));
    out.sizes = Sizes::Product;
    if guess.dims.len() == 3 {
        out.dims = vec![m, n, k];
    }
    if written.dtype == "f32" {
        out.tolerance = Some("{ atol = 5e-5, rtol = 1e-5 }");
    }
    Some(out)
}

/// Whether a body reads a matrix by an extent that only its transposed form has: `b[j * K + k]`. None if the body does not show it.
fn turned_by(body: &[Token], name: &str, usual: &str, turned: &str) -> Option<bool> {
    let mut found = None;
    for at in 1..body.len().saturating_sub(1) {
        if !body[at].is(name) || !body[at + 1].is("[") || body[at - 1].is(".") {
            continue;
        }
        let Some(close) = super::super::declarations::closing(body, at + 1) else { continue };
        let inside = &body[at + 2..close];
        let times = |dim: &str| {
            (0..inside.len()).any(|i| {
                let beside = |j: Option<usize>| j.and_then(|j| inside.get(j)).is_some_and(|t| t.is("*"));
                inside[i].is(dim) && (beside(i.checked_sub(1)) || beside(Some(i + 1)))
            })
        };
        match (times(usual), times(turned)) {
            (true, false) if found != Some(true) => found = Some(false),
            (false, true) if found != Some(false) => found = Some(true),
            (false, false) => {}
            _ => return None,
        }
    }
    found
}

fn transpose(kernel: &Kernel, words: &[String], guess: &Guess) -> Option<Guess> {
    if !has(words, &["transpose"]) {
        return None;
    }
    let (inputs, written) = split(guess)?;
    let [x] = &inputs[..] else { return None };
    let (row, col) = rows(kernel, guess)?;
    if !guess.floats.is_empty() || written.role != Role::Output {
        return None;
    }
    let shapes =
        [(x.name.as_str(), vec![row.clone(), col.clone()]), (written.name.as_str(), vec![col.clone(), row.clone()])];
    let mut out = shaped(guess, "transpose", &shapes);
    out.reference = Some(builtin("transpose", &[("x", &x.name), ("y", &written.name)], ""));
    out.why = by_rows(&row, &col);
    (out.dims, out.sizes) = (named([row, col]), Sizes::Rows);
    Some(out)
}

fn dot(kernel: &Kernel, words: &[String], guess: &Guess) -> Option<Guess> {
    if !has(words, &["dot"]) {
        return None;
    }
    let (inputs, written) = split(guess)?;
    let ([a, b], [n]) = (&inputs[..], &guess.dims[..]) else { return None };
    if !guess.floats.is_empty() {
        return None;
    }
    let one = "1".to_string();
    let shapes = [
        (a.name.as_str(), vec![one.clone(), n.clone()]),
        (b.name.as_str(), vec![n.clone(), one.clone()]),
        (written.name.as_str(), vec![one.clone(), one]),
    ];
    let mut out = shaped(guess, "dot", &shapes);
    out.reference = Some(builtin("matmul", &[("a", &a.name), ("b", &b.name), ("c", &written.name)], ""));
    accumulated(kernel, written, &mut out)?;
    out.sizes = Sizes::Elements;
    Some(out)
}

/// Makes a tensor that the kernel adds to an output that is zero before.
fn accumulated(kernel: &Kernel, written: &Tensor, out: &mut Guess) -> Option<()> {
    let access = kernel.parameters.iter().find(|p| p.name == written.name)?.access;
    match access {
        Access::Written => return Some(()),
        Access::Atomic => {}
        _ => return None,
    }
    let tensor = out.tensors.iter_mut().find(|t| t.name == written.name)?;
    tensor.role = Role::Output;
    out.zeroed = Some(written.name.clone());
    Some(())
}

fn sum(kernel: &Kernel, words: &[String], guess: &Guess) -> Option<Guess> {
    let kind = match (has(words, &["sum", "rowsum"]), has(words, &["max"]), has(words, &["min"]), has(words, &["mean"]))
    {
        (true, false, false, false) => "sum",
        (false, true, false, false) => "max",
        (false, false, true, false) => "min",
        (false, false, false, true) => "mean",
        (false, false, false, false) if has(words, &["reduce", "reduction"]) => "sum",
        _ => return None,
    };
    let (inputs, written) = split(guess)?;
    let [x] = &inputs[..] else { return None };
    if !guess.floats.is_empty() {
        return None;
    }
    let names = [("x", x.name.as_str()), ("y", written.name.as_str())];
    let mut settings = "";
    let mut out = match &guess.dims[..] {
        [_] if kind == "sum" => {
            // A sum of each block is another operator.
            let blocks = kernel.grid.known.iter().any(|e| !matches!(e, super::expression::Expression::Int(1)));
            let atomic = kernel.parameters.iter().any(|p| p.name == written.name && p.access == Access::Atomic);
            if blocks && !atomic {
                return None;
            }
            let mut out = shaped(guess, kind, &[(&written.name, vec!["1".into()])]);
            out.sizes = Sizes::Elements;
            out
        }
        [_, _] => {
            let (row, col) = rows(kernel, guess)?;
            // The index of the store says what is left of the input.
            let left = extent(kernel, &written.name, &guess.dims);
            let by_columns = left.as_ref() == Some(&col);
            let over = if by_columns { col.clone() } else { row.clone() };
            let shapes = [(x.name.as_str(), vec![row.clone(), col.clone()]), (written.name.as_str(), vec![over])];
            let mut out = shaped(guess, kind, &shapes);
            if left.is_none()
                && let Some(tensor) = out.tensors.iter_mut().find(|t| t.name == written.name)
            {
                tensor.check = Some(format!("that it has an element for each of `{row}` is a guess"));
            }
            out.why = by_rows(&row, &col);
            (out.dims, out.sizes) = (named([row, col]), Sizes::Rows);
            settings = if by_columns { "axis = 0" } else { "" };
            out
        }
        _ => return None,
    };
    if out.sizes == Sizes::Rows || kind == "sum" {
        accumulated(kernel, written, &mut out).filter(|()| kind == "sum" || out.zeroed.is_none())?;
    }
    out.reference = Some(builtin(kind, &names, settings));
    if kind == "sum" && ["f16", "f32"].contains(&x.dtype) {
        out.tolerance = match half_arithmetic(&kernel.body) && x.dtype == "f16" {
            true => Some("{ scaled = 1, acc = \"f16\" }"),
            false => Some("{ atol = 1e-4, rtol = 1e-5 }"),
        };
    }
    Some(out)
}
