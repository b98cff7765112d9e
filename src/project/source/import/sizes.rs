//! Sizes at which kernels are tried, from the numbers of their launches: less than one block, several blocks with a rest, whole blocks. Knows grids, blocks and
//! loops; does not know what a kernel computes.
//!
//! A kernel that runs in one block shows neither a wrong index of a block nor a missing check of bounds, and races between blocks do not exist. So each axis that
//! a grid covers has a size of at least two blocks and a rest, as far as the kernel serves such a size.

use super::super::declarations::closing;
use super::super::tokens::{Kind, Token};
use super::expression::{Expression, binary, ceil_div};
use super::guess::{Guess, Sizes};
use super::kernel::Kernel;
use super::manifest::common_multiple;

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
    step: i64,
    /// How many of it a warp takes, where a smaller block has a thread for each one: a block that ends in part of a warp has no threads for its shuffles.
    warp: i64,
    /// Whether blocks share the dim, so that a loop is not needed.
    shared: bool,
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
        let loops = (0..body.len())
            .filter(|at| body[*at].is("for"))
            .map(|at| &body[at..super::scope::statement(body, at).min(body.len())]);
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

/// How large a shape is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    /// Less than one block.
    Small,
    /// Several blocks and a rest.
    Ragged,
    /// Whole blocks.
    Large,
}

/// The most elements of all dims together.
const MOST_ELEMENTS: i64 = 1 << 17;
/// The most products of a matrix product.
const MOST_PRODUCTS: i64 = 1 << 23;

/// The sizes of dims that are covered so. `multiples` are numbers that divide them.
pub(super) fn sizes(covers: &[Cover], kind: Sizes, size: Size, multiples: &[i64]) -> Vec<i64> {
    let most = if kind == Sizes::Product { MOST_PRODUCTS } else { MOST_ELEMENTS };
    let several = covers.iter().filter(|c| **c == Cover::Block).count() > 1;
    // Less and less of what matters least, until it is few enough.
    let mut out = vec![];
    for effort in (0..=4).rev() {
        out = covers
            .iter()
            .enumerate()
            .map(|(at, cover)| {
                let wanted = one(*cover, at, covers.len(), kind, size, effort, several);
                fitted(wanted, multiples.get(at).copied().unwrap_or(1), *cover, size)
            })
            .collect();
        if size == Size::Large {
            apart(&mut out, covers, multiples);
        }
        if out.iter().try_fold(1_i64, |all, size| all.checked_mul(*size)).is_some_and(|all| all <= most) {
            break;
        }
    }
    out
}

/// Makes sizes of whole blocks differ, where dims that are exchanged would not show.
fn apart(sizes: &mut [i64], covers: &[Cover], multiples: &[i64]) {
    for at in 1..sizes.len() {
        let by = multiples.get(at).copied().unwrap_or(1).max(1);
        let (unit, most) = match covers[at] {
            Cover::Grid(step) | Cover::Loop(step) if sizes[at] % step.max(1) == 0 => {
                (common_multiple(step.max(1), by), i64::MAX)
            }
            Cover::Serial | Cover::Grid(_) | Cover::Loop(_) => (common_multiple(8, by), i64::MAX),
            Cover::Threads(threads) | Cover::Unrolled(threads) => (common_multiple(4, by), threads),
            Cover::Capped(cap) => (common_multiple(cap.warp, by), i64::MAX),
            Cover::Block => (common_multiple(8, by), 512),
        };
        while sizes[..at].contains(&sizes[at]) && sizes[at] + unit <= most {
            sizes[at] += unit;
        }
        while sizes[..at].contains(&sizes[at]) && sizes[at] > unit {
            sizes[at] -= unit;
        }
    }
}

/// One size. Sizes of different dims differ, so that exchanged dims show. With less effort, what has no part in the grid is smaller.
fn one(cover: Cover, at: usize, count: usize, kind: Sizes, size: Size, effort: usize, several: bool) -> i64 {
    let odd = 2 * number(at);
    let rest = |step: i64| (((step * (5 + odd) / 16) % step.max(1)) | 1).min(step - 1);
    let alone = count == 1;
    match (cover, size) {
        (Cover::Grid(step), Size::Small) => {
            let part = ((step * 3 / 16 + odd) | 1).min(step - 1);
            if step == 1 { 1 + odd.min(1) } else { part.max(1) }
        }
        (Cover::Grid(1), Size::Ragged) => {
            if effort > 0 {
                3 + odd
            } else {
                2
            }
        }
        (Cover::Grid(step), Size::Ragged) => {
            if effort > 1 {
                2 * step + rest(step)
            } else {
                step + rest(step)
            }
        }
        (Cover::Grid(step), Size::Large) => {
            let usual = match (kind, effort) {
                (Sizes::Elements, 4) if alone => 65536,
                (Sizes::Rows, 4) => 64,
                (Sizes::Product, 4) => 128,
                (_, 0..=1) => 2,
                _ => 4,
            };
            step * ((usual + step - 1) / step).max(2)
        }
        (Cover::Loop(step), Size::Small) => {
            if effort > 2 {
                (step * 3 / 16 + odd) | 1
            } else {
                3
            }
        }
        (Cover::Loop(step), Size::Ragged) => match effort {
            0 => 5 + odd,
            1 => step / 2 + rest(step),
            // The threads go through it a third time, and not all of them.
            _ => 2 * step + rest(step),
        },
        (Cover::Loop(step), Size::Large) => match (kind, effort) {
            (Sizes::Rows, 4) => step * ((1024 + step - 1) / step),
            (Sizes::Product, 3..=4) => step * ((64 + step - 1) / step),
            (_, 0..=1) => step.min(16),
            (_, 2) => step,
            _ => 2 * step,
        },
        (Cover::Serial, Size::Small) => {
            if effort > 2 {
                5 + odd
            } else {
                3
            }
        }
        (Cover::Serial, Size::Ragged) => {
            if effort > 2 {
                37 + odd
            } else {
                5 + odd
            }
        }
        (Cover::Serial, Size::Large) => {
            if effort > 2 {
                64
            } else {
                8
            }
        }
        (Cover::Unrolled(threads), Size::Ragged) => {
            let wanted = if effort > 2 { 37 + odd } else { 13 + odd };
            if wanted < threads { wanted } else { (threads - 3 - odd).max(1) }
        }
        (Cover::Threads(threads) | Cover::Unrolled(threads), Size::Small) => (13 + odd).min(threads),
        // A kernel that forgot the loop shows.
        (Cover::Threads(threads), Size::Ragged) => match effort {
            0..=2 => (13 + odd).min(threads),
            _ => beyond(threads, odd),
        },
        (Cover::Threads(threads) | Cover::Unrolled(threads), Size::Large) => {
            threads.min(if effort > 2 { 64 } else { 16 })
        }
        (Cover::Capped(cap), Size::Small) => cap.below(2 + number(at)),
        // The rest of a second pass, in which not all threads have a part. With few warps, none may have one alone.
        (Cover::Capped(cap), Size::Ragged) => match (effort, cap.shared) {
            (0, _) => cap.below(3 + number(at)),
            (2.., true) => 2 * cap.step + rest(cap.step).max(1),
            _ => cap.step + if cap.step > 128 { 95 + odd } else { rest(cap.step).max(1) },
        },
        (Cover::Capped(cap), Size::Large) if effort > 0 => {
            let of = if cap.shared { Cover::Grid(cap.step) } else { Cover::Loop(cap.step) };
            one(of, at, count, kind, size, effort, several)
        }
        (Cover::Capped(cap), Size::Large) => cap.below(4 + number(at)),
        (Cover::Block, Size::Small) => {
            if several {
                3 + odd
            } else {
                13 + odd
            }
        }
        (Cover::Block, Size::Ragged) => {
            if several || effort < 3 {
                7 + odd
            } else {
                77 + odd
            }
        }
        (Cover::Block, Size::Large) => {
            if several || effort < 3 {
                8
            } else {
                128
            }
        }
    }
}

/// A size that the threads of a block do not cover at once.
fn beyond(threads: i64, odd: i64) -> i64 {
    threads + ((threads * (5 + odd) / 16 % threads.max(1)) | 1)
}

/// Makes sizes of less than one block exceed the threads of a block where ragged ones do not, as far as these are few enough elements.
pub(super) fn exceed_threads(covers: &[Cover], ragged: &[i64], multiples: &[i64], small: &mut [i64]) {
    for (at, cover) in covers.iter().enumerate() {
        let Cover::Threads(threads) = *cover else { continue };
        let by = multiples.get(at).copied().unwrap_or(1).max(1);
        let size = (beyond(threads, 2 * number(at)) + by - 1) / by * by;
        let others = small.iter().enumerate().filter(|(other, _)| *other != at);
        let all = others.fold(size, |all, (_, size)| all.saturating_mul(*size));
        if ragged[at] <= threads && all <= MOST_ELEMENTS {
            small[at] = size;
        }
    }
}

impl Cap {
    /// So many whole warps, as far as the largest block has more.
    fn below(self, warps: i64) -> i64 {
        match self.warp {
            // Blocks are whole warps at every size.
            1 => (7 * warps | 1).min(self.step - 1),
            warp => (warp * warps).min((self.step - warp) / warp * warp).max(warp),
        }
    }
}

/// A position as a number.
fn number(at: usize) -> i64 {
    i64::try_from(at).unwrap_or(0)
}

/// The multiple of `by` for a size. A ragged one is no multiple of what a block takes, if there is such a size.
fn fitted(wanted: i64, by: i64, cover: Cover, size: Size) -> i64 {
    let step = match cover {
        Cover::Grid(step) | Cover::Loop(step) => step.max(1),
        Cover::Capped(cap) => cap.step,
        _ => 1,
    };
    let by = by.max(1);
    match size {
        _ if by == 1 && size != Size::Large => wanted,
        Size::Small => by * (wanted / by).max(1),
        // Whole blocks only: an odd number of them.
        Size::Ragged if by % step == 0 => {
            let times = (wanted / by).max(if matches!(cover, Cover::Grid(_)) { 3 } else { 1 });
            by * (times | 1)
        }
        Size::Ragged => {
            let times = (wanted / by).max(1);
            by * if by > 1 && by * times % step == 0 { times + 1 } else { times }
        }
        Size::Large => by * ((wanted + by - 1) / by).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_axis_of_a_grid_has_several_blocks_and_a_rest_and_less_than_one_block() {
        for step in [2, 4, 8, 16, 32, 64, 128, 192, 256, 1024] {
            for count in 1..=3 {
                for kind in [Sizes::Elements, Sizes::Rows, Sizes::Product, Sizes::Unknown] {
                    let covers = vec![Cover::Grid(step); count];
                    let none = vec![1; count];
                    let of = |size| sizes(&covers, kind, size, &none);
                    assert!(of(Size::Small).iter().all(|n| *n >= 1 && *n < step), "{covers:?}");
                    let ragged = of(Size::Ragged);
                    assert!(ragged.iter().all(|n| *n > step && n % step != 0), "{covers:?} {ragged:?}");
                    assert!(of(Size::Large).iter().all(|n| *n >= 2 * step && n % step == 0), "{covers:?}");
                    if count == 1 {
                        assert!(ragged[0] > 2 * step);
                    }
                }
            }
        }
    }

    #[test]
    fn sizes_are_multiples_of_what_a_kernel_serves() {
        for by in [2, 4, 8, 32, 128, 512] {
            for step in [1, 32, 256] {
                for size in [Size::Small, Size::Ragged, Size::Large] {
                    let found = sizes(&[Cover::Grid(step)], Sizes::Elements, size, &[by]);
                    assert!(found[0] > 0 && found[0] % by == 0, "{by} {step} {size:?} {found:?}");
                    if size == Size::Ragged {
                        assert!(found[0] > 2 * step.min(by) && (by % step == 0 || found[0] % step != 0), "{found:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn many_dims_stay_few_elements() {
        for cover in [Cover::Serial, Cover::Loop(256), Cover::Threads(256), Cover::Block, Cover::Grid(1)] {
            for size in [Size::Small, Size::Ragged, Size::Large] {
                let all = [cover, Cover::Grid(16), Cover::Grid(16), cover];
                let found = sizes(&all, Sizes::Unknown, size, &[1; 4]);
                assert!(found.iter().product::<i64>() <= MOST_ELEMENTS * 6, "{all:?} {size:?} {found:?}");
            }
        }
    }

    #[test]
    fn whole_blocks_of_different_dims_differ() {
        for cover in
            [Cover::Serial, Cover::Loop(256), Cover::Threads(16), Cover::Block, Cover::Grid(1), Cover::Grid(32)]
        {
            for kind in [Sizes::Elements, Sizes::Rows, Sizes::Product, Sizes::Unknown] {
                for by in [1, 4, 16] {
                    for count in 2..=3 {
                        let by = if matches!(cover, Cover::Threads(_)) { 1 } else { by };
                        let found = sizes(&vec![cover; count], kind, Size::Large, &vec![by; count]);
                        let different: std::collections::BTreeSet<&i64> = found.iter().collect();
                        assert_eq!(different.len(), count, "{cover:?} {kind:?} {by} {found:?}");
                        assert!(found.iter().all(|size| *size > 0 && size % by == 0), "{found:?}");
                    }
                }
            }
        }
    }
}
