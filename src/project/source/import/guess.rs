//! What a kernel computes, guessed from its name, its parameters and how its body uses them. Knows usual names of operators and the built-in references; a guess
//! that does not fit the parameters is none. Every guess is for the user to confirm.

mod elementwise;
mod products;
mod reductions;
mod rows;

use std::collections::BTreeMap;

use super::super::tokens::Token;
use super::demands::{indices, multiples};
use super::kernel::Kernel;
use super::parameter::{Access, Parameter};
use elementwise::elements;
use products::{dot, matmul};
use reductions::sum;
use rows::{norm, softmax, transpose};
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
/// The names of these tensors in the order of the kernel's parameters.
fn in_order<'a>(kernel: &'a Kernel, tensors: &[&Tensor]) -> Vec<&'a str> {
    let names = kernel.parameters.iter().map(|p| p.name.as_str());
    names.filter(|name| tensors.iter().any(|t| t.name == *name)).collect()
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
