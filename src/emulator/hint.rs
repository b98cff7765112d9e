//! Describes what would order two racing accesses of one block to its shared memory. Knows warps and places; does not find races.
//!
//! The first pair that is found need not show which barrier is missing. If a block lacks `__syncthreads`, neighbors also race within a warp, and are found
//! before threads of different warps. So a pair from two warps replaces a pair from one warp at the same two places ([`shows_more`]), and only a race that was
//! never seen across warps gets a hint about `__syncwarp`. One statement may compile to several instructions: if one of the two places races across warps with
//! a third place, the pair within a warp gets no hint ([`settle`]).

use kforge_types::record::{Finding, FindingKind};

/// Threads of a warp.
const WARP: u32 = 32;
/// The end of a message if the threads are in different warps.
const ACROSS: &str = "; the two threads are in different warps: `__syncthreads` between the two places orders them";
/// The end of a message if the threads are in one warp, which is the whole block.
const ALONE: &str = "; the lanes of one warp often run in step on hardware, but only `__syncwarp` guarantees it";
/// The end of a message if the threads are in one of several warps.
const WITHIN: &str = "; `__syncthreads` orders the whole block, and no race between different warps was seen here: the lanes of one warp often run in step on hardware, but only `__syncwarp` guarantees it";

/// The hint about the order of two racing accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hint {
    /// The threads are in different warps.
    Across,
    /// The threads are in one warp, which is the whole block.
    Alone,
    /// The threads are in one of several warps.
    Within,
}

impl Hint {
    /// The end of a message with this hint.
    fn words(self) -> &'static str {
        match self {
            Hint::Across => ACROSS,
            Hint::Alone => ALONE,
            Hint::Within => WITHIN,
        }
    }
}

/// A finding whose message is not complete yet.
#[derive(Debug, Clone)]
pub(super) struct PendingFinding {
    pub(super) finding: Finding,
    /// The hint at the end of its message, if any.
    pub(super) hint: Option<Hint>,
    /// Whether it is a race of two stores of the same value.
    pub(super) same_value: bool,
}

impl PendingFinding {
    /// The finding with its complete message.
    pub(super) fn told(self) -> Finding {
        let PendingFinding { mut finding, hint, .. } = self;
        finding.message += hint.map_or("", Hint::words);
        finding
    }
}

/// The hint for a race of two threads of a block of `threads` threads. None if one instruction races with itself: the cause may be a
/// wrong index as well as a missing barrier in a loop.
pub(super) fn order(threads: u32, [one, other]: [u32; 2], same_place: bool) -> Option<Hint> {
    match (one / WARP == other / WARP, threads <= WARP) {
        _ if same_place => None,
        (false, _) => Some(Hint::Across),
        (true, true) => Some(Hint::Alone),
        (true, false) => Some(Hint::Within),
    }
}

/// Whether the second of two findings of one race shows more clearly what is wrong: different values are stored, and the first stored the same value; or
/// its threads are in two warps, and those of the first are in one.
pub(super) fn shows_more(known: &PendingFinding, new: &PendingFinding) -> bool {
    match (known.same_value, new.same_value) {
        (true, false) => true,
        (false, true) => false,
        _ => (known.hint, new.hint) == (Some(Hint::Within), Some(Hint::Across)),
    }
}

/// Removes the hint from each race within a warp if one of its places races across warps elsewhere.
pub(super) fn settle(noted: &mut [PendingFinding]) {
    let places = |f: &Finding| [f.line.clone(), f.other_line.clone()].into_iter().flatten().collect::<Vec<_>>();
    let across: Vec<_> = noted
        .iter()
        .filter(|n| n.finding.kind == FindingKind::Race && n.hint == Some(Hint::Across))
        .map(|n| (n.finding.buffer.clone(), places(&n.finding)))
        .collect();
    for noted in noted.iter_mut().filter(|n| n.hint == Some(Hint::Within)) {
        let own = places(&noted.finding);
        let shared = |(buffer, of): &(Option<String>, Vec<_>)| {
            *buffer == noted.finding.buffer && own.iter().any(|p| of.contains(p))
        };
        if across.iter().any(shared) {
            noted.hint = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn race(buffer: &str, places: [u32; 2], hint: Hint) -> PendingFinding {
        let mut finding = Finding::new(FindingKind::Race, "race");
        finding.buffer = Some(buffer.into());
        [finding.line, finding.other_line] = places.map(|at| Some(("@pc".to_string(), at)));
        PendingFinding { finding, hint: Some(hint), same_value: false }
    }

    #[test]
    fn a_race_within_a_warp_gives_no_hint_where_one_across_warps_shares_its_place() {
        let mut all = [
            race("s", [1, 2], Hint::Across),
            race("s", [3, 2], Hint::Within),
            race("s", [4, 5], Hint::Within),
            race("t", [1, 2], Hint::Within),
        ];
        settle(&mut all);
        let left = all.map(|noted| noted.told().message);
        assert_eq!(left, [format!("race{ACROSS}"), "race".into(), format!("race{WITHIN}"), format!("race{WITHIN}")]);
    }
}
