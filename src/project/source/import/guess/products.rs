//! Matrix and dot products, guessed from names, and how their operands are stored.

use super::super::super::declarations::closing;
use super::super::super::tokens::Token;
use super::super::kernel::Kernel;
use super::reductions::accumulated;
use super::{Guess, Role, Sizes, builtin, has, in_order, shaped, split};

pub(super) fn matmul(kernel: &Kernel, words: &[String], guess: &Guess) -> Option<Guess> {
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
    let order = in_order(kernel, &inputs);
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
        let Some(close) = closing(body, at + 1) else { continue };
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
pub(super) fn dot(kernel: &Kernel, words: &[String], guess: &Guess) -> Option<Guess> {
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
