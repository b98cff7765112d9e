//! What would order two accesses of one block to its shared memory that race, in words. Knows warps and places; does not find races.
//!
//! The first pair that is found need not show which barrier is missing: the neighbours of a block that lacks `__syncthreads` race within a warp, too, before they do
//! so across warps. So a race is told by a pair from two warps as soon as there is one at the same two places ([`shows_more`]), and only what nobody saw across warps
//! is left with a word on `__syncwarp`.

use crate::record::Finding;

/// Threads of a warp.
const WARP: u32 = 32;
/// How a message ends whose threads are of one warp.
const WITHIN: &str = "lanes of one warp may happen to run in step on hardware, which `__syncwarp` makes sure of";

/// What a message on a race of two threads of a block of so many ends with; nothing where one instruction races with itself, between which no barrier can stand.
pub(super) fn order(threads: u32, [one, other]: [u32; 2], same_place: bool) -> String {
    if same_place {
        return String::new();
    }
    match (one / WARP == other / WARP, threads <= WARP) {
        (false, _) => "; the two are of different warps: `__syncthreads` between the two places orders them".into(),
        (true, true) => format!("; {WITHIN}"),
        (true, false) => {
            format!(
                "; `__syncthreads` orders the whole block, and threads of different warps were not seen to race here: {WITHIN}"
            )
        }
    }
}

/// Whether of two findings of one race the second says more of what is missing: it is of two warps, and the first of one.
pub(super) fn shows_more(known: &Finding, new: &Finding) -> bool {
    known.message.ends_with(WITHIN) && !new.message.ends_with(WITHIN)
}
