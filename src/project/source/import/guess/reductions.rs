//! Sums, means and extremes, guessed from names, and outputs that a kernel adds to.

use super::super::expression::Expression;
use super::super::extent::extent;
use super::super::kernel::Kernel;
use super::super::parameter::Access;
use super::rows::{by_rows, named, rows};
use super::{Guess, Role, Sizes, Tensor, builtin, half_arithmetic, has, shaped, split};

/// Makes a tensor that the kernel adds to an output that is zero before.
pub(super) fn accumulated(kernel: &Kernel, written: &Tensor, out: &mut Guess) -> Option<()> {
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
pub(super) fn sum(kernel: &Kernel, words: &[String], guess: &Guess) -> Option<Guess> {
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
            let blocks = kernel.grid.known.iter().any(|e| !matches!(e, Expression::Int(1)));
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
