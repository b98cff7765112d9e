//! Slots for methods by axis (docs/design.md, section 9.2). Knows gaps; does not know methods.
//!
//! There are three slots. A gap under 0.10 counts as zero. Shares are proportional to the squares of the gaps and are assigned by the largest remainder, with
//! at most two slots per axis. A slot that no axis earned goes to the largest remaining gap, to an axis without a slot first. Ties go to memory, then latency,
//! then compute. If a gap is unknown, no share can be computed, so every axis gets one slot and the budget is degraded.

use std::cmp::Reverse;

use kforge_types::model::Axis;
use kforge_types::record::profile::Gaps;
use kforge_types::record::round::Slots;

/// Slots of a round.
pub const SLOTS: u32 = 3;
/// The most slots of an axis.
pub const MOST: u32 = 2;
/// A smaller gap counts as zero.
const ZERO: f64 = 0.10;
/// Shares that differ by less are equal, because each results from a few roundings of doubles.
const ROUNDING: f64 = 1e-9;

/// The order in which ties are broken.
pub const TIES: [Axis; 3] = [Axis::Memory, Axis::Latency, Axis::Compute];

/// The budget for these gaps, and whether it is degraded because a gap is unknown.
pub fn slots(gaps: &Gaps) -> (Slots, bool) {
    let known: Option<Vec<f64>> = TIES.into_iter().map(|axis| gaps.of(axis).filter(|g| g.is_finite())).collect();
    let Some(known) = known else { return (Slots { compute: 1, memory: 1, latency: 1 }, true) };
    let weights: Vec<f64> = known.iter().map(|g| if *g < ZERO { 0.0 } else { g * g }).collect();
    let all: f64 = weights.iter().sum();
    let share = |at: usize| if all > 0.0 { f64::from(SLOTS) * weights[at] / all } else { 0.0 };
    let mut got: Vec<u32> = (0..TIES.len()).map(|at| ((share(at) + ROUNDING).floor() as u32).min(MOST)).collect();
    let mut left = SLOTS - got.iter().sum::<u32>();
    // The remainders that gave no whole slot. An axis at its maximum has none.
    let mut earned: Vec<(i64, usize)> = (0..TIES.len())
        .filter(|at| got[*at] < MOST)
        .map(|at| (((share(at) - f64::from(got[at])) / ROUNDING).round() as i64, at))
        .filter(|(remainder, _)| *remainder > 0)
        .collect();
    earned.sort_by_key(|(remainder, at)| (Reverse(*remainder), *at));
    for (_, at) in earned {
        if left > 0 {
            got[at] += 1;
            left -= 1;
        }
    }
    while left > 0 {
        let room = (0..TIES.len()).filter(|at| got[*at] < MOST);
        // The first of equals, in the order of ties.
        let next = room.min_by(|a, b| got[*a].min(1).cmp(&got[*b].min(1)).then(known[*b].total_cmp(&known[*a])));
        let Some(at) = next else { break };
        got[at] += 1;
        left -= 1;
    }
    let [memory, latency, compute] = [got[0], got[1], got[2]];
    (Slots { compute, memory, latency }, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(compute: f64, memory: f64, latency: f64) -> Gaps {
        Gaps { compute: Some(compute), memory: Some(memory), latency: Some(latency) }
    }

    #[test]
    fn the_table_holds() {
        // Gaps and slots in the order compute, memory, latency.
        let table = [
            ((0.92, 0.57, 0.61), (2, 0, 1), "the example of the design"),
            ((0.85, 0.60, 0.55), (1, 1, 1), "shares 1.57, 0.78, 0.66: both remainders beat that of compute"),
            ((0.50, 0.50, 0.50), (1, 1, 1), "equal"),
            ((0.30, 0.30, 0.30), (1, 1, 1), "equal, and no double"),
            ((0.90, 0.05, 0.05), (2, 1, 0), "one axis earned all three: the rest to memory by the tie"),
            ((0.90, 0.04, 0.05), (2, 0, 1), "the same, to the largest gap left"),
            ((0.05, 0.90, 0.05), (0, 2, 1), "latency before compute"),
            ((0.05, 0.05, 0.90), (0, 1, 2), "memory before compute"),
            ((0.90, 0.00, 0.00), (2, 1, 0), "one axis alone"),
            ((0.90, 0.90, 0.05), (1, 2, 0), "a remainder of a half each: memory"),
            ((0.05, 0.90, 0.90), (0, 2, 1), "memory before latency"),
            ((0.90, 0.05, 0.90), (1, 0, 2), "latency before compute"),
            ((0.90, 0.30, 0.10), (2, 1, 0), "shares 2.67, 0.30, 0.03: compute is at its most, memory earned more"),
            ((0.90, 0.10, 0.30), (2, 0, 1), "the same the other way"),
            ((0.60, 0.20, 0.20), (2, 1, 0), "shares 2.45, 0.27, 0.27: compute is at its most, the tie is memory's"),
            ((0.20, 0.09, 0.09), (2, 1, 0), "0.09 counts as zero"),
            ((0.20, 0.10, 0.09), (2, 1, 0), "0.10 does not"),
            ((0.20, 0.09, 0.10), (2, 0, 1), "nor here"),
            ((0.09, 0.08, 0.07), (1, 1, 1), "all count as zero: nobody earned any"),
            ((0.00, 0.00, 0.00), (1, 1, 1), "no gap at all"),
            ((1.00, 1.00, 1.00), (1, 1, 1), "nothing is used"),
            ((0.70, 0.70, 0.40), (1, 1, 1), "shares 1.29, 1.29, 0.42"),
        ];
        for ((compute, memory, latency), wanted, why) in table {
            let (slots, degraded) = slots(&gaps(compute, memory, latency));
            assert_eq!((slots.compute, slots.memory, slots.latency), wanted, "{compute} {memory} {latency}: {why}");
            assert!(!degraded);
        }
    }

    #[test]
    fn unknown_gaps_give_every_axis_a_slot_and_say_so() {
        let one = Slots { compute: 1, memory: 1, latency: 1 };
        for axis in Axis::ALL {
            let mut some = gaps(0.9, 0.9, 0.9);
            match axis {
                Axis::Compute => some.compute = None,
                Axis::Memory => some.memory = None,
                Axis::Latency => some.latency = None,
            }
            assert_eq!(slots(&some), (one, true), "{axis:?}");
        }
        assert_eq!(slots(&Gaps::default()), (one, true));
        assert_eq!(slots(&gaps(f64::NAN, 0.5, 0.5)), (one, true));
    }

    #[test]
    fn there_are_always_three_at_most_two_an_axis_and_a_larger_gap_never_has_fewer() {
        let steps = || (0..=20).map(|i| f64::from(i) / 20.0);
        for (c, m, l) in steps().flat_map(|c| steps().flat_map(move |m| steps().map(move |l| (c, m, l)))) {
            let (got, _) = slots(&gaps(c, m, l));
            let each = Axis::ALL.map(|axis| got.of(axis));
            assert_eq!(each.iter().sum::<u32>(), 3, "{c} {m} {l}");
            assert!(each.iter().all(|n| *n <= 2), "{c} {m} {l}");
            let of = [c, m, l];
            for (a, b) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
                assert!(of[a] <= of[b] || each[a] >= each[b] || of[a] < ZERO, "{c} {m} {l}: {each:?}");
            }
        }
    }
}
