//! What would order two accesses of one block to its shared memory that race, in words. Knows warps and places; does not find races.
//!
//! The first pair that is found need not show which barrier is missing: the neighbours of a block that lacks `__syncthreads` race within a warp, too, before they do
//! so across warps. So a race is told by a pair from two warps as soon as there is one at the same two places ([`shows_more`]), and only what nobody saw across warps
//! is left with a word on `__syncwarp`. One statement may have become several instructions: where one of the two places races across warps with a third, nothing is
//! said of the pair within a warp ([`settle`]).

use kforge_types::record::{Finding, FindingKind};

/// Threads of a warp.
const WARP: u32 = 32;
/// How a message ends whose threads are of different warps.
const ACROSS: &str = "; the two are of different warps: `__syncthreads` between the two places orders them";
/// How it ends where they are of one warp, which is the whole block ...
const ALONE: &str = "; lanes of one warp may happen to run in step on hardware, which `__syncwarp` makes sure of";
/// ... or one of several.
const WITHIN: &str = "; `__syncthreads` orders the whole block, and threads of different warps were not seen to race here: lanes of one warp may happen to run in step on hardware, which `__syncwarp` makes sure of";

/// What is said of the order of two accesses that race.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hint {
    /// Their threads are of different warps.
    Across,
    /// They are of one warp, which is the whole block.
    Alone,
    /// They are of one warp of several.
    Within,
}

impl Hint {
    /// How a message with it ends.
    fn words(self) -> &'static str {
        match self {
            Hint::Across => ACROSS,
            Hint::Alone => ALONE,
            Hint::Within => WITHIN,
        }
    }
}

/// A finding before its message is whole.
#[derive(Debug, Clone)]
pub(super) struct PendingFinding {
    pub(super) finding: Finding,
    /// What its message ends with, if anything.
    pub(super) hint: Option<Hint>,
}

impl PendingFinding {
    /// The finding with its whole message.
    pub(super) fn told(self) -> Finding {
        let PendingFinding { mut finding, hint } = self;
        finding.message += hint.map_or("", Hint::words);
        finding
    }
}

/// What is said of a race of two threads of a block of so many; nothing where one instruction races with itself,
/// for which a wrong index may be to blame as well as a barrier that a loop lacks.
pub(super) fn order(threads: u32, [one, other]: [u32; 2], same_place: bool) -> Option<Hint> {
    match (one / WARP == other / WARP, threads <= WARP) {
        _ if same_place => None,
        (false, _) => Some(Hint::Across),
        (true, true) => Some(Hint::Alone),
        (true, false) => Some(Hint::Within),
    }
}

/// Whether of two findings of one race the second says more of what is missing: it is of two warps, and the first of one.
pub(super) fn shows_more(known: &PendingFinding, new: &PendingFinding) -> bool {
    (known.hint, new.hint) == (Some(Hint::Within), Some(Hint::Across))
}

/// Takes the hint from races within a warp one of whose places races across warps elsewhere.
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
        PendingFinding { finding, hint: Some(hint) }
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
