//! Sizes at which a grid of a limited number of blocks must go through its elements more than once: `min(ceil_div(n, 256), 1024)`. A kernel without that loop
//! passes at every smaller size. Knows limits of grids, and how many elements are few enough to try.

use super::covers::{launch_of, limit, step, threads};
use super::expression::Expression;
use super::guess::Guess;
use super::kernel::Kernel;

/// What all blocks of a limited grid take at once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pass {
    /// How many elements all blocks take.
    total: i64,
    /// The dims whose product counts, by position. The last one makes the blocks.
    dims: Vec<usize>,
    /// How many of the last dim a block takes.
    step: i64,
}

/// The most threads of a pass that is tried.
const MOST_THREADS: i64 = 1 << 22;
/// The most elements of a shape that exceeds a pass: of one that is timed, and of another.
const MOST: (i64, i64) = (1 << 22, 1 << 18);

/// The pass of a kernel, if its grid has a limit.
pub(super) fn pass(kernel: &Kernel, guess: &Guess) -> Option<Pass> {
    let (grid, block) = launch_of(kernel, guess);
    let [extent] = &grid[..] else { return None };
    let (of, most) = limit(extent)?;
    let names = of.names()?;
    let mut dims: Vec<usize> = vec![];
    for name in &names {
        let at = guess.dims.iter().position(|dim| dim == name)?;
        if !dims.contains(&at) {
            dims.push(at);
        }
    }
    let whole = |e: &Expression| step(e, names.last()?);
    #[expect(clippy::cast_possible_truncation, reason = "the step of a launch is small; the cast saturates")]
    let step = (whole(of)?.ceil() as i64).clamp(1, 1 << 16);
    let few = most.checked_mul(threads(&block)).is_some_and(|all| all <= MOST_THREADS);
    let total = most.checked_mul(step).filter(|total| *total <= MOST.0 && few && most > 0)?;
    Some(Pass { total, dims, step })
}

impl Pass {
    fn product(&self, sizes: &[i64]) -> i64 {
        self.dims.iter().filter_map(|dim| sizes.get(*dim)).fold(1, |all, size| all.saturating_mul(*size))
    }

    /// Sizes that exceed a pass with a rest; `small` are those of dims that have no part in it. None if these are too many elements.
    fn beyond(&self, sizes: &[i64], small: &[i64], multiples: &[i64], most: i64) -> Option<Vec<i64>> {
        let last = *self.dims.last()?;
        let mut out = sizes.to_vec();
        let others = self.product(&out) / out.get(last)?.max(&1);
        let by = multiples.get(last).copied().unwrap_or(1).max(1);
        let wanted = self.total / others.max(1) + 2 * self.step + ((self.step * 5 / 16) | 1).min(self.step - 1).max(0);
        // With whole blocks alone, one more.
        out[last] = (wanted / by + i64::from(wanted % by != 0)) * by;
        let all = |sizes: &[i64]| sizes.iter().fold(1_i64, |all, size| all.saturating_mul(*size));
        if all(&out) > most {
            for (at, size) in out.iter_mut().enumerate().filter(|(at, _)| !self.dims.contains(at)) {
                *size = small.get(at).map_or(*size, |small| (*size).min(*small));
            }
        }
        (all(&out) <= most).then_some(out)
    }
}

/// Makes the ragged sizes exceed a pass, or the large ones where those would be too many.
pub(super) fn exceed(pass: &Pass, small: &[i64], ragged: &mut Vec<i64>, large: &mut Vec<i64>, multiples: [&[i64]; 2]) {
    if pass.product(ragged) > pass.total {
        return;
    }
    if let Some(found) = pass.beyond(ragged, ragged, multiples[0], MOST.1).filter(|_| pass.total <= 1 << 13) {
        *ragged = found;
    } else if pass.product(large) <= pass.total
        && let Some(found) = pass.beyond(large, small, multiples[1], MOST.0)
    {
        *large = found;
    }
}
