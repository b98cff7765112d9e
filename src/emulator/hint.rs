//! Describes what would order two racing accesses of one block to its shared memory. Knows warps and places; does not find races.
//!
//! The first pair that is found need not show which barrier is missing. If a block lacks `__syncthreads`, neighbors also race within a warp, and are found
//! before threads of different warps. So a pair from two warps replaces a pair from one warp at the same two places ([`merge`]), and only a race within a warp on
//! memory for which no two warps race gets a hint about `__syncwarp`. One statement may compile to several instructions, and a barrier in a loop may be missing
//! at places that are not those of the pair: any race of two warps for the same variable counts ([`settle`]).

use std::collections::BTreeSet;

use kforge_types::record::Finding;

/// Threads of a warp.
const WARP: u32 = 32;
/// The end of a message if the threads are in different warps.
const ACROSS: &str = "; the two threads are in different warps: `__syncthreads` between the two places orders them";
/// The end of a message if the threads are in one warp, and other pairs are not.
const ELSEWHERE: &str =
    "; threads of different warps also race for this variable: `__syncthreads` between the two places orders them";
/// The end of a message if the threads are in one warp, which is the whole block.
const ALONE: &str = "; the lanes of one warp often run in step on hardware, but only `__syncwarp` guarantees it";
/// The end of a message if the threads are in one of several warps.
const WITHIN: &str = "; `__syncthreads` orders the whole block, and no race between different warps was seen here: the lanes of one warp often run in step on hardware, but only `__syncwarp` guarantees it";

/// The hint about the order of two racing accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hint {
    /// The threads are in different warps.
    Across,
    /// The threads are in one of several warps, and threads of different warps race for the same variable.
    Elsewhere,
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
            Hint::Elsewhere => ELSEWHERE,
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
    /// Whether it is, or was also seen as, a race of two warps of one block for its shared memory.
    pub(super) across: bool,
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

/// Whether two threads of a block are in different warps.
pub(super) fn across([one, other]: [u32; 2]) -> bool {
    one / WARP != other / WARP
}

/// The hint for a race of two threads of a block of `threads` threads. None if one instruction races with itself: the cause may be a
/// wrong index as well as a missing barrier in a loop.
pub(super) fn order(threads: u32, pair: [u32; 2], same_place: bool) -> Option<Hint> {
    match (!across(pair), threads <= WARP) {
        _ if same_place => None,
        (false, _) => Some(Hint::Across),
        (true, true) => Some(Hint::Alone),
        (true, false) => Some(Hint::Within),
    }
}

/// Merges a finding of a race with another one of the same race: keeps the one that shows more clearly what is wrong, and the count of both.
pub(super) fn merge(known: &mut PendingFinding, new: PendingFinding) {
    let (count, across) = (known.finding.count + new.finding.count, known.across || new.across);
    if shows_more(known, &new) {
        *known = new;
    }
    (known.finding.count, known.across) = (count, across);
}

/// Whether the second of two findings of one race shows more clearly what is wrong: different values are stored, and the first stored the same value; or
/// its threads are in two warps, and those of the first are in one.
fn shows_more(known: &PendingFinding, new: &PendingFinding) -> bool {
    match (known.same_value, new.same_value) {
        (true, false) => true,
        (false, true) => false,
        _ => (known.hint, new.hint) == (Some(Hint::Within), Some(Hint::Across)),
    }
}

/// Gives each race within a warp the hint about the whole block if two warps race for the same variable.
pub(super) fn settle(noted: &mut [PendingFinding]) {
    let across: BTreeSet<Option<String>> =
        noted.iter().filter(|n| n.across).map(|n| n.finding.buffer.clone()).collect();
    for noted in noted.iter_mut().filter(|n| n.hint == Some(Hint::Within)) {
        if across.contains(&noted.finding.buffer) {
            noted.hint = Some(Hint::Elsewhere);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::record::FindingKind;

    fn race(buffer: &str, hint: Option<Hint>, across: bool) -> PendingFinding {
        let mut finding = Finding::new(FindingKind::Race, "race");
        finding.buffer = Some(buffer.into());
        PendingFinding { finding, hint, across, same_value: false }
    }

    fn settled(mut all: Vec<PendingFinding>) -> Vec<String> {
        settle(&mut all);
        all.into_iter().map(|noted| noted.told().message).collect()
    }

    #[test]
    fn a_race_within_a_warp_names_the_barrier_of_the_block_where_two_warps_race_for_the_variable() {
        let (within, across) = (Some(Hint::Within), Some(Hint::Across));
        let all = vec![race("s", across, true), race("s", within, false), race("t", within, false)];
        assert_eq!(settled(all), [format!("race{ACROSS}"), format!("race{ELSEWHERE}"), format!("race{WITHIN}")]);
        // A place that races with itself across warps has no hint of its own.
        let all = vec![race("s", None, true), race("s", within, false)];
        assert_eq!(settled(all), ["race".into(), format!("race{ELSEWHERE}")]);
    }

    #[test]
    fn a_race_that_stores_different_values_is_shown_and_the_other_warps_are_remembered() {
        let mut known = PendingFinding { same_value: true, ..race("s", Some(Hint::Across), true) };
        merge(&mut known, race("s", Some(Hint::Within), false));
        assert_eq!((known.hint, known.same_value, known.finding.count), (Some(Hint::Within), false, 2));
        assert_eq!(settled(vec![known]), [format!("race{ELSEWHERE}")]);
    }
}
