//! Operators on rows, guessed from names: softmax, norms, transposes; and which dims count rows and columns.

use super::super::expression::Expression::{Binary, Int, Name};
use super::super::kernel::Kernel;
use super::{Guess, Role, Sizes, builtin, has, in_order, quoted, shaped, split};

/// Rows and columns, by names where they say so.
pub(super) fn rows(kernel: &Kernel, guess: &Guess) -> Option<(String, String)> {
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
pub(super) fn by_rows(row: &str, col: &str) -> Vec<String> {
    vec![format!("that `{row}` counts rows and `{col}` columns is a guess")]
}
/// The extents that are dims.
pub(super) fn named(extents: [String; 2]) -> Vec<String> {
    extents.into_iter().filter(|extent| extent.parse::<i64>().is_err()).collect()
}
pub(super) fn softmax(kernel: &Kernel, words: &[String], guess: &Guess) -> Option<Guess> {
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
pub(super) fn norm(kernel: &Kernel, words: &[String], guess: &Guess) -> Option<Guess> {
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
    let order = in_order(kernel, &inputs);
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
pub(super) fn transpose(kernel: &Kernel, words: &[String], guess: &Guess) -> Option<Guess> {
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
