//! How kernels go through their dims: by blocks of a grid, threads of a block and loops. Knows extents of launches and headers of loops; does not know
//! what a kernel computes.

use super::super::declarations::closing;
use super::super::tokens::{Kind, Token};
use super::arithmetic::{binary, ceil_div};
use super::expression::Expression;
use super::guess::{Guess, Sizes};
use super::kernel::Kernel;
use super::scope::statement;

/// How a kernel goes through a dim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cover {
    /// Each thread goes through all of it, or nothing is known.
    Serial,
    /// The threads of a block go through it in steps of so many.
    Loop(i64),
    /// Blocks share it, and each takes so many.
    Grid(i64),
    /// One of these threads takes one element, and there is no loop.
    Threads(i64),
    /// Each of these threads takes some elements, in a loop that ends at another number: how many it serves is not known.
    Unrolled(i64),
    /// A block has so many threads, up to a limit.
    Capped(Cap),
    /// A block has so many threads.
    Block,
}

/// The limit of a block whose threads follow a dim: `min(n, 1024)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cap {
    /// How many of the dim the largest block takes.
    pub(super) step: i64,
    /// How many of it a warp takes, where a smaller block has a thread for each one: a block that ends in part of a warp has no threads for its shuffles.
    pub(super) warp: i64,
    /// Whether blocks share the dim, so that a loop is not needed.
    pub(super) shared: bool,
}

/// The threads of a block, where the launch states no number.
const USUAL: i64 = 256;

/// The extents of a kernel's grid and block: those of the launch, or a guess.
pub(super) fn launch_of(kernel: &Kernel, guess: &Guess) -> (Vec<Expression>, Vec<Expression>) {
    let plane = kernel.body.iter().enumerate().any(|(at, t)| is_member(&kernel.body, at, t, "threadIdx", "y"));
    let block = match kernel.block.unknown {
        None => kernel.block.known.clone(),
        Some(_) if plane => vec![Expression::Int(16), Expression::Int(16)],
        Some(_) => vec![Expression::Int(USUAL)],
    };
    if kernel.grid.unknown.is_none() {
        return (kernel.grid.known.clone(), block);
    }
    let threads = |axis: usize| match block.get(axis) {
        Some(Expression::Int(count)) => *count,
        None => 1,
        Some(_) => USUAL,
    };
    let name = |dim: &String| Expression::Name(dim.clone());
    let many = |dim: &String, count: i64| ceil_div(name(dim), Expression::Int(count));
    let blocks = kernel.body.iter().any(|t| t.is("blockDim") || t.is("gridDim"));
    let grid = match &guess.dims[..] {
        [] => vec![Expression::Int(1)],
        [rows, columns] if plane => vec![many(columns, threads(0)), many(rows, threads(1))],
        [rows, columns, _] if plane && guess.sizes == Sizes::Product => {
            vec![many(columns, threads(0)), many(rows, threads(1))]
        }
        [rows, _] if guess.sizes == Sizes::Rows && !blocks => vec![name(rows)],
        dims => {
            let all = dims.iter().map(name).reduce(|a, b| binary('*', a, b));
            let all = all.unwrap_or(Expression::Int(1));
            vec![ceil_div(all, Expression::Int(threads(0) * threads(1)))]
        }
    };
    (grid, block)
}

/// Whether a position of a body is `of.axis`.
fn is_member(body: &[Token], at: usize, token: &Token, of: &str, axis: &str) -> bool {
    token.is(of) && body.get(at + 1).is_some_and(|t| t.is(".")) && body.get(at + 2).is_some_and(|t| t.is(axis))
}

/// How a kernel goes through each of its dims.
pub(super) fn covers(kernel: &Kernel, guess: &Guess) -> Vec<Cover> {
    let (grid, block) = launch_of(kernel, guess);
    let threads = threads(&block);
    let of = |dim: &String| {
        if block.iter().any(|e| e.mentions(dim)) {
            let shared = grid.iter().any(|e| e.mentions(dim));
            let caps: Option<Vec<Cap>> =
                block.iter().filter(|e| e.mentions(dim)).map(|e| cap(e, dim, shared)).collect();
            return caps.and_then(|caps| caps.into_iter().max()).map_or(Cover::Block, Cover::Capped);
        }
        if let Some(step) = grid.iter().filter_map(|e| step(e, dim)).max_by(f64::total_cmp) {
            #[expect(clippy::cast_possible_truncation, reason = "the step of a launch is small; the cast saturates")]
            return Cover::Grid((step.ceil() as i64).clamp(1, 1 << 16));
        }
        // What the launch passes for a dim of its own has the names of parameters in the body.
        let names: Vec<&String> =
            kernel.integers.iter().filter(|(_, e)| e.mentions(dim)).map(|(name, _)| name).chain([dim]).collect();
        loop_over(kernel, &names, threads)
    };
    guess.dims.iter().map(of).collect()
}

/// The most threads of a block, as far as its extents say.
pub(super) fn threads(block: &[Expression]) -> i64 {
    let numbers = block.iter().filter_map(|e| match e {
        Expression::Int(count) => Some(*count),
        other => limit(other).map(|(_, count)| count),
    });
    numbers.fold(1_i64, i64::saturating_mul).clamp(1, 1024)
}

/// What a limit of an extent is for, and the limit: `n` and 1024 of `min(n, 1024)`.
pub(super) fn limit(extent: &Expression) -> Option<(&Expression, i64)> {
    match extent {
        Expression::Call("min", both) => match &both[..] {
            [Expression::Int(count), of] | [of, Expression::Int(count)] => Some((of, *count)),
            _ => None,
        },
        Expression::Call("max", all) => all.iter().find_map(limit),
        _ => None,
    }
}

/// The limit of an extent of a block that follows a dim.
fn cap(extent: &Expression, dim: &str, shared: bool) -> Option<Cap> {
    let (of, most) = limit(extent).filter(|(_, most)| (2..=1024).contains(most))?;
    #[expect(clippy::cast_possible_truncation, reason = "the step of a launch is small; the cast saturates")]
    let each = (step(of, dim)?.ceil() as i64).clamp(1, 1 << 12);
    // `ceil_div(n, 32) * 32`
    let whole = matches!(of, Expression::Binary('*', _, by) if matches!(**by, Expression::Int(by) if by % 32 == 0));
    Some(Cap { step: most * each, warp: if whole { 1 } else { 32 * each }, shared })
}

/// The least size of each dim with which the grid has a block, where it is a quotient that is not rounded up.
pub(super) fn least(kernel: &Kernel, guess: &Guess) -> Vec<i64> {
    let (grid, _) = launch_of(kernel, guess);
    let of = |dim: &String| {
        let quotients = grid.iter().flat_map(Expression::quotients);
        let steps = quotients.filter_map(|(dividend, by)| divided(&dividend, &Expression::Int(by), dim));
        #[expect(clippy::cast_possible_truncation, reason = "the step of a launch is small; the cast saturates")]
        let steps = steps.map(|step| (step.ceil() as i64).clamp(1, 1 << 16));
        steps.max().unwrap_or(1)
    };
    guess.dims.iter().map(of).collect()
}

/// How many of a dim a block takes, where an extent of the grid depends on it.
pub(super) fn step(extent: &Expression, dim: &str) -> Option<f64> {
    let number = |e: &Expression| if let Expression::Int(value) = e { Some(*value as f64) } else { None };
    match extent {
        Expression::Name(name) => (name == dim).then_some(1.0),
        Expression::Binary('*', a, b) => match (number(a), number(b)) {
            (_, Some(by)) => step(a, dim).map(|s| s / by.max(1.0)),
            (Some(by), _) => step(b, dim).map(|s| s / by.max(1.0)),
            _ => step(a, dim).or_else(|| step(b, dim)),
        },
        Expression::Binary('/', a, b) => divided(a, b, dim),
        Expression::Call("ceil_div", both) => divided(&both[0], &both[1], dim),
        Expression::Binary(_, a, b) => [step(a, dim), step(b, dim)].into_iter().flatten().max_by(f64::total_cmp),
        Expression::Call(_, all) => all.iter().filter_map(|e| step(e, dim)).max_by(f64::total_cmp),
        Expression::Int(_) | Expression::Opaque(_) | Expression::Either(..) => None,
    }
}

/// The step of a quotient. Of a product, the last dim makes the blocks: the others only repeat them.
fn divided(a: &Expression, b: &Expression, dim: &str) -> Option<f64> {
    let whole = step(a, dim)?;
    let Expression::Int(by) = b else { return Some(whole) };
    let names = a.names().unwrap_or_default();
    match names.last().is_none_or(|last| last == dim) {
        true => Some(whole * *by as f64),
        false => Some(whole.min(1.0)),
    }
}

/// How the loops of a body go through what has one of these names.
fn loop_over(kernel: &Kernel, names: &[&String], threads: i64) -> Cover {
    let body = &kernel.body;
    let mut found = None;
    for at in (0..body.len()).filter(|at| body[*at].is("for") || body[*at].is("while")) {
        let Some(close) = closing(body, at + 1) else { continue };
        let header = &body[at + 1..close];
        if !header.iter().any(|t| t.is_word() && names.iter().any(|name| t.is(name))) {
            continue;
        }
        let cover = match by(header, kernel) {
            Some(Some(number)) => Cover::Loop(number),
            Some(None) if is_strided(header) => Cover::Loop(threads),
            Some(None) => Cover::Loop(threads.min(USUAL)),
            None if is_strided(header) => Cover::Loop(threads),
            None => Cover::Serial,
        };
        found = found.max(Some(cover));
    }
    let used = body.iter().any(|t| t.is_word() && names.iter().any(|name| t.is(name)));
    let unrolled = || {
        let loops =
            (0..body.len()).filter(|at| body[*at].is("for")).map(|at| &body[at..statement(body, at).min(body.len())]);
        let compared =
            |w: &[Token]| (w[0].is("<") || w[0].is(">") || w[0].is("=")) && names.iter().any(|name| w[1].is(name));
        loops.into_iter().any(|text| text.windows(2).any(compared))
    };
    found.unwrap_or_else(|| match used {
        true if unrolled() => Cover::Unrolled(threads),
        true => Cover::Threads(threads),
        false => Cover::Serial,
    })
}

/// The step of a loop, if its header has `+=`: a number, or something else.
fn by(header: &[Token], kernel: &Kernel) -> Option<Option<i64>> {
    let at = header.windows(2).position(|w| w[0].is("+") && w[1].is("=") && w[1].glued)? + 2;
    let [one] = &header[at..] else { return Some(None) };
    let literal = || (one.kind == Kind::Number).then(|| one.text.parse().ok()).flatten();
    let number = kernel.values.get(&one.text).copied().or_else(literal);
    Some(number.filter(|step| *step > 1))
}

/// Whether the header of a loop begins or goes on at the index of a thread or block.
fn is_strided(header: &[Token]) -> bool {
    let of_threads = |t: &Token| ["threadIdx", "blockIdx", "blockDim", "gridDim"].iter().any(|word| t.is(word));
    header.iter().any(of_threads)
}

/// The cover that serves several kernels.
pub(super) fn joined(a: Cover, b: Cover) -> Cover {
    match (a, b) {
        // Blocks of one kernel may take more than the threads of the other.
        (Cover::Threads(a), Cover::Grid(b)) | (Cover::Grid(b), Cover::Threads(a)) => Cover::Grid(a.max(b)),
        (Cover::Threads(a), Cover::Loop(b)) | (Cover::Loop(b), Cover::Threads(a)) => Cover::Loop(a.max(b)),
        _ => a.max(b),
    }
}
