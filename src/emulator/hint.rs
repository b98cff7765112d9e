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

/// What a message on a race of two threads of a block of so many ends with; nothing where one instruction races with itself,
/// for which a wrong index may be to blame as well as a barrier that a loop lacks.
pub(super) fn order(threads: u32, [one, other]: [u32; 2], same_place: bool) -> &'static str {
    match (one / WARP == other / WARP, threads <= WARP) {
        _ if same_place => "",
        (false, _) => ACROSS,
        (true, true) => ALONE,
        (true, false) => WITHIN,
    }
}

/// Whether of two findings of one race the second says more of what is missing: it is of two warps, and the first of one.
pub(super) fn shows_more(known: &Finding, new: &Finding) -> bool {
    known.message.ends_with(WITHIN) && new.message.ends_with(ACROSS)
}

/// Takes the hint from races within a warp one of whose places races across warps elsewhere.
pub(super) fn settle(findings: &mut [Finding]) {
    let places = |f: &Finding| [f.line.clone(), f.other_line.clone()].into_iter().flatten().collect::<Vec<_>>();
    let across: Vec<_> = findings
        .iter()
        .filter(|f| f.kind == FindingKind::Race && f.message.ends_with(ACROSS))
        .map(|f| (f.buffer.clone(), places(f)))
        .collect();
    for finding in findings.iter_mut() {
        let own = places(finding);
        let shared =
            |(buffer, of): &(Option<String>, Vec<_>)| *buffer == finding.buffer && own.iter().any(|p| of.contains(p));
        let without = finding.message.strip_suffix(WITHIN).map(str::len);
        if let Some(length) = without.filter(|_| across.iter().any(shared)) {
            finding.message.truncate(length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn race(buffer: &str, places: [u32; 2], hint: &str) -> Finding {
        let mut finding = Finding::new(FindingKind::Race, format!("race{hint}"));
        finding.buffer = Some(buffer.into());
        [finding.line, finding.other_line] = places.map(|at| Some(("@pc".to_string(), at)));
        finding
    }

    #[test]
    fn a_race_within_a_warp_gives_no_hint_where_one_across_warps_shares_its_place() {
        let mut all = [
            race("s", [1, 2], ACROSS),
            race("s", [3, 2], WITHIN),
            race("s", [4, 5], WITHIN),
            race("t", [1, 2], WITHIN),
        ];
        settle(&mut all);
        let left = all.map(|f| f.message);
        assert_eq!(left, [format!("race{ACROSS}"), "race".into(), format!("race{WITHIN}"), format!("race{WITHIN}")]);
    }
}
