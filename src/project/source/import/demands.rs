//! Which sizes a kernel serves: numbers that must divide its dims, by its vectors, its tiles and its launch. Knows checks of bounds in a body; a size that would
//! hide a forgotten check is not demanded.

use std::collections::BTreeMap;

use super::super::declarations::closing;
use super::super::tokens::{Kind, Token};
use super::expression::Expression;
use super::guess::{Guess, Role, Sizes, Tensor};
use super::kernel::Kernel;
use super::parameter::{bytes, vector_bytes};

/// Numbers that must divide dims, and why: vectors, quotients of the launch that are not rounded up, and tiles where the body checks no bound at all.
pub(super) fn multiples(kernel: &Kernel, guess: &Guess, words: &[String]) -> (BTreeMap<String, i64>, Vec<String>) {
    let mut found: BTreeMap<String, i64> = BTreeMap::new();
    let mut reasons: Vec<String> = vec![];
    let mut add = |dim: &String, by: i64, why: String| {
        if by > 1 && guess.dims.contains(dim) {
            let one = found.entry(dim.clone()).or_insert(1);
            *one = *one / gcd(*one, by) * by;
            if !reasons.contains(&why) {
                reasons.push(why);
            }
        }
    };
    let extents = || kernel.grid.known.iter().chain(&kernel.block.known);
    for (dividend, by) in extents().flat_map(|e| e.quotients()) {
        // A body that checks the bound is meant for every size: then it is the launch that is wrong.
        if let Expression::Name(dim) = &dividend
            && !is_bounded(dim, &kernel.body)
        {
            add(dim, by, format!("the launch divides `{dim}` by {by} and does not round up"));
        }
    }
    for (name, by) in &kernel.checked {
        let dim = match kernel.integers.get(name) {
            Some(Expression::Name(dim)) => dim,
            _ => name,
        };
        add(dim, *by, format!("host code checks that {by} divides `{dim}` before the launch"));
    }
    for tensor in guess.tensors.iter().filter(|tensor| kernel.described.contains(&tensor.name)) {
        // The rows of f16 have to begin at multiples of 16 bytes.
        if let [_, .., last] = &tensor.shape[..] {
            add(last, 8, format!("rows of `{}` must begin at multiples of 16 bytes for its descriptor", tensor.name));
        }
    }
    let by_name = words.iter().filter_map(|w| lanes_of_word(w)).max().unwrap_or(1);
    let element = guess.tensors.iter().map(|t| bytes(t.dtype)).max().unwrap_or(1);
    let by_body = vector_bytes(&kernel.body).map_or(1, |bytes| bytes / element.max(1));
    // A name alone says nothing of what the body does.
    let lanes = if by_body > 1 { by_name.max(by_body) } else { 1 };
    let vectors =
        || format!("it accesses vectors of {lanes}; if it also serves a rest, remove this line and make `ragged` odd");
    match (guess.sizes, &guess.dims[..]) {
        (Sizes::Elements, [.., last])
            if serves_rest(last, &kernel.body) || by_body > 1 && stores_elements(guess, &kernel.body) => {}
        (Sizes::Elements, [.., last]) => add(last, lanes, vectors()),
        (Sizes::Rows, [row, col]) => {
            add(col, lanes, vectors());
            if guess.kind == "transpose" {
                add(row, lanes, vectors());
            }
        }
        (Sizes::Product, dims) => dims.iter().rev().take(2).for_each(|dim| add(dim, lanes, vectors())),
        _ => {}
    }
    // Kernels that take matrices by tiles often serve whole tiles only. One that checks some bound, or goes along one dim, forgot a check: sizes that hide it
    // would let it pass.
    let tiles: Vec<(String, i64)> = kernel.grid.known.iter().flat_map(|e| e.tiles()).collect();
    let bounded = guess.dims.iter().any(|dim| is_bounded(dim, &kernel.body));
    let plane = tiles.iter().any(|(dim, _)| *dim != tiles[0].0);
    if kernel.body.iter().any(|t| t.is("__shared__")) && !bounded && plane {
        let why = "the body checks no bound, so whole tiles alone are tried; if it must serve every size, remove this line and make `ragged` odd";
        tiles.iter().for_each(|(dim, tile)| add(dim, *tile, why.into()));
        if let (Sizes::Product, Some(k)) = (guess.sizes, guess.dims.last()) {
            add(k, 32, why.into());
        }
    }
    (found, reasons)
}

/// The tensors whose elements a body uses as indices: each with the first pointer that they index.
pub(super) fn indices(kernel: &Kernel) -> BTreeMap<String, String> {
    let body = &kernel.body;
    let integers = kernel.parameters.iter().filter(|p| p.pointer && p.dtype.is_some_and(|d| d.starts_with(['i', 'u'])));
    let mut found = BTreeMap::new();
    for integer in integers {
        // The elements, and variables that are one: `int t = tokens[i];`.
        let mut names = vec![integer.name.clone()];
        for at in 2..body.len() {
            if body[at].is("=") && body[at - 1].is_word() && body[at - 2].is_word() {
                let value = body[at + 1..].iter().take_while(|t| !t.is(";"));
                let element = value.clone().any(|t| t.is("[")) && value.clone().any(|t| t.is(&integer.name));
                if element
                    && value.clone().next().is_some_and(|t| t.is(&integer.name) || t.is("(") || t.text == "__ldg")
                {
                    names.push(body[at - 1].text.clone());
                }
            }
        }
        let used = |text: &[Token]| text.iter().any(|t| names.iter().any(|name| t.is(name)));
        let indexed = (0..body.len()).find_map(|at| {
            let of = kernel.parameters.iter().find(|p| p.pointer && p.name != integer.name && body[at].is(&p.name))?;
            let open = Some(at + 1).filter(|open| body.get(*open).is_some_and(|t| t.is("[")))?;
            used(&body[open + 1..closing(body, open)?]).then(|| of.name.clone())
        });
        if let Some(indexed) = indexed {
            found.insert(integer.name.clone(), indexed);
        }
    }
    found
}

/// Whether a name names a type: `f32`, `f16x8`, `bf16`.
fn lanes_of_word(word: &str) -> Option<i64> {
    let (base, lanes) = word.split_once('x')?;
    let base = base.strip_prefix("bf").or_else(|| base.strip_prefix(['f', 'i', 'u']))?;
    (!base.is_empty() && base.chars().all(|c| c.is_ascii_digit())).then(|| lanes.parse().ok()).flatten()
}

/// Whether a body compares the end of a vector with a bound: `i + 3 < n`.
fn serves_rest(name: &str, body: &[Token]) -> bool {
    let is_number = |t: &Token| t.kind == Kind::Number;
    (3..body.len()).any(|at| {
        let equal = usize::from(body[at - 1].is("="));
        let compared = body[at].is(name) && body[at - 1 - equal].is("<");
        compared && at >= 4 && is_number(&body[at - 2 - equal]) && body[at - 3 - equal].is("+")
    })
}

/// Whether a body stores single elements of what it writes, as it does for the rest of vectors: `y[i] = v`.
fn stores_elements(guess: &Guess, body: &[Token]) -> bool {
    let written: Vec<&Tensor> = guess.tensors.iter().filter(|t| t.role != Role::Input).collect();
    (0..body.len()).any(|at| {
        let element = written.iter().any(|t| body[at].is(&t.name)) && body.get(at + 1).is_some_and(|t| t.is("["));
        let close = || closing(body, at + 1);
        element && close().is_some_and(|close| body.get(close + 1).is_some_and(|t| t.is("=")))
    })
}

/// Whether a body compares something with a name, other than as the bound of a loop.
fn is_bounded(name: &str, body: &[Token]) -> bool {
    (0..body.len()).any(|at| {
        let conditional = body[at].is("if") || body[at].is("min") || body[at].is("while");
        let open = at + 1;
        let inside = || closing(body, open).map_or(&body[at..at], |close| &body[open..close]);
        if conditional && body.get(open).is_some_and(|t| t.is("(")) && inside().iter().any(|t| t.is(name)) {
            return true;
        }
        // `i < n ? a : b`, `bool inside = i < n;`
        let compared = (body[at].is("<") || body[at].is(">")) && body.get(open).is_some_and(|t| t.is(name));
        let rest = || body[open..].iter().take_while(|t| !t.is(";") && !t.is("{") && !t.is("}"));
        compared && (rest().any(|t| t.is("?") || t.is("&")) || in_flag(body, at) || strided(body, at))
    })
}

/// Whether a comparison is the value of a variable.
fn in_flag(body: &[Token], at: usize) -> bool {
    body[..at].iter().rev().take_while(|t| !t.is(";") && !t.is("{") && !t.is("}") && !t.is("(")).any(|t| t.is("="))
}

/// Whether a comparison bounds a loop that begins at the thread's own index.
fn strided(body: &[Token], at: usize) -> bool {
    let start = (0..at).rev().find(|i| body[*i].is("for"));
    start.is_some_and(|start| at - start < 48 && body[start..at].iter().all(|t| !t.is("{") && !t.is("}")))
        && body[at..]
            .iter()
            .take(24)
            .take_while(|t| !t.is("{"))
            .any(|t| t.is("blockDim") || t.is("gridDim") || t.text.to_ascii_lowercase().contains("stride"))
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a.max(1) } else { gcd(b, a % b) }
}
