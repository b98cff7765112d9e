//! Sizes at which kernels are tried, from the numbers of their launches: less than one block, several blocks with a rest, whole blocks. Does not know
//! kernels, only how they go through their dims.
//!
//! A kernel that runs in one block shows neither a wrong index of a block nor a missing check of bounds, and races between blocks do not exist. So each axis that
//! a grid covers has a size of at least two blocks and a rest, as far as the kernel serves such a size.

use super::covers::{Cap, Cover};
use super::guess::Sizes;
use super::operators::common_multiple;

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
            1 => ((7 * warps) | 1).min(self.step - 1),
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
mod tests;
