//! Which variant stands for a class of shapes: a function of verdicts, times, paired comparisons, the lockfile's pin and the declared order.
//!
//! Among the variants that serve the whole class, that are right on all of it, and that no paired comparison shows slower than the best by more than the
//! margin, the pinned one wins, else the first in declared order. So noise does not flip champions, and an incremental build selects as a clean one does.

use std::collections::BTreeMap;

use super::stats::{self, Paired};
use crate::record::Verdict;
use crate::record::params::{Candidate, Champion, Judgement, SelectParams, Selection};
use crate::record::timing::{BenchObserved, PairsObserved};

/// What is known when selecting; keys are positions in the parameters.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// Judgement of (variant, shape).
    pub judgements: BTreeMap<(u32, u32), Judgement>,
    /// What the emulator says of (variant, shape), for a target that is a device: counts only where the device says nothing, and never in times.
    pub emulated: BTreeMap<(u32, u32), Judgement>,
    /// Times of (variant, shape).
    pub benches: BTreeMap<(u32, u32), BenchObserved>,
    /// Pairs of (variant A, variant B, shape).
    pub pairs: BTreeMap<(u32, u32, u32), PairsObserved>,
}

/// What is known of a variant's correctness on a class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Wrong,
    Unknown,
    Right,
}

/// Selects.
pub fn select(params: &SelectParams, known: &Known) -> Selection {
    let mut classes: Vec<&str> = Vec::new();
    for class in &params.shapes {
        if !classes.contains(&class.as_str()) {
            classes.push(class);
        }
    }
    let one = |judgement: Option<&Judgement>| match judgement.map(|j| &j.verdict) {
        Some(Verdict::Pass) => Standing::Right,
        Some(Verdict::Fail(_)) => Standing::Wrong,
        Some(Verdict::Unknown(_)) | None => Standing::Unknown,
    };
    let standing = |candidate: &Candidate, shapes: &[u32]| {
        shapes.iter().map(|s| one(known.judgements.get(&(candidate.order, *s)))).min().unwrap_or(Standing::Unknown)
    };
    // For want of a device's word, the emulator's: enough to stand provisionally.
    let supposed = |candidate: &Candidate, shapes: &[u32]| {
        let of = |s: &u32| match one(known.judgements.get(&(candidate.order, *s))) {
            Standing::Unknown => one(known.emulated.get(&(candidate.order, *s))),
            known => known,
        };
        shapes.iter().map(of).min().unwrap_or(Standing::Unknown)
    };
    let mut champions = Vec::new();
    for class in classes {
        let shapes: Vec<u32> = (0u32..).zip(&params.shapes).filter(|(_, c)| *c == class).map(|(i, _)| i).collect();
        let serving: Vec<&Candidate> =
            params.candidates.iter().filter(|c| shapes.iter().all(|s| c.serves.contains(s))).collect();
        let right: Vec<&Candidate> =
            serving.iter().copied().filter(|c| standing(c, &shapes) == Standing::Right).collect();
        champions.push(
            if params.timed && !right.is_empty() && right.iter().any(|c| time(c, &shapes, params, known).is_some()) {
                timed(class, &right, &shapes, params, known)
            } else {
                provisional(class, &serving, |c| supposed(c, &shapes), params)
            },
        );
    }
    let is_champion = |order: u32| champions.iter().any(|c: &Champion| c.variant == Some(order));
    let overall = |c: &Candidate| standing(c, &c.serves);
    Selection {
        frontier: params
            .candidates
            .iter()
            .filter(|c| overall(c) == Standing::Right && !is_champion(c.order))
            .map(|c| c.order)
            .collect(),
        wrong: params.candidates.iter().filter(|c| overall(c) == Standing::Wrong).map(|c| c.order).collect(),
        champions,
    }
}

/// The first right variant in declared order; where nothing is known to be right, the first not known to be wrong.
fn provisional(
    class: &str,
    serving: &[&Candidate],
    standing: impl Fn(&Candidate) -> Standing,
    params: &SelectParams,
) -> Champion {
    let pick = |wanted: Standing| {
        let fit: Vec<&&Candidate> = serving.iter().filter(|c| standing(c) == wanted).collect();
        let pinned = fit.iter().find(|c| params.pinned.get(class) == Some(&c.identity)).copied();
        pinned.map(|c| (c.order, true)).or_else(|| fit.first().map(|c| (c.order, false)))
    };
    let (found, what) = match pick(Standing::Right) {
        Some(found) => (Some(found), "correct"),
        None => (pick(Standing::Unknown), "not known to be wrong"),
    };
    let because = match found {
        Some((_, true)) => format!("pinned in kforge.lock, {what}; not timed"),
        Some((_, false)) => format!("the first variant {what}, in declared order; not timed"),
        None if serving.is_empty() => "no variant serves every shape of the class".into(),
        None => "every variant that serves it is wrong".into(),
    };
    Champion { class: class.into(), variant: found.map(|f| f.0), provisional: true, because }
}

/// The geometric mean of a variant's median times over the bench shapes of a class, in nanoseconds; none unless all are there.
fn time(candidate: &Candidate, shapes: &[u32], params: &SelectParams, known: &Known) -> Option<f64> {
    let medians: Option<Vec<f64>> = shapes
        .iter()
        .filter(|s| params.bench.contains(s))
        .map(|s| {
            let seen = known.benches.get(&(candidate.order, *s))?;
            let series = if params.hot { &seen.hot } else { &seen.cold };
            series.as_ref().filter(|s| !s.samples_ns.is_empty()).map(|s| stats::median(&s.samples_ns))
        })
        .collect();
    medians.filter(|m| !m.is_empty()).map(|m| stats::geometric_mean(&m))
}

/// The champion by times: the fastest by medians is the one to beat; whoever pairs do not show slower than it stays in the running.
fn timed(class: &str, right: &[&Candidate], shapes: &[u32], params: &SelectParams, known: &Known) -> Champion {
    let mut by_time: Vec<(f64, &Candidate)> =
        right.iter().filter_map(|c| time(c, shapes, params, known).map(|t| (t, *c))).collect();
    by_time.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.order.cmp(&b.1.order)));
    let (best_time, best) = by_time[0];
    let slower = |c: &Candidate, t: f64| {
        let mut paired = None;
        for s in shapes.iter().filter(|s| params.bench.contains(s)) {
            if let Some(p) = known.pairs.get(&(c.order, best.order, *s)) {
                paired.get_or_insert_with(Vec::new).extend(p.blocks.iter().cloned());
            }
        }
        match paired {
            Some(blocks) => stats::decide(&blocks, params.margin) == Paired::Slower,
            // Pairs are taken only among variants near the best; without them the medians decide.
            None => c.order != best.order && t > best_time * (1.0 + params.margin),
        }
    };
    let running: Vec<&Candidate> = {
        let mut kept: Vec<&Candidate> = by_time.iter().filter(|(t, c)| !slower(c, *t)).map(|(_, c)| *c).collect();
        kept.sort_by_key(|c| c.order);
        kept
    };
    let pinned = running.iter().find(|c| params.pinned.get(class) == Some(&c.identity));
    let champion = pinned.or(running.first()).map_or(best.order, |c| c.order);
    let because = match (pinned.is_some(), running.len()) {
        (true, n) => format!("pinned in kforge.lock, among {n} that no comparison shows slower"),
        (false, 1) => "faster than every other by more than the margin".into(),
        (false, n) => format!("first in declared order of {n} that no comparison shows slower than the best"),
    };
    Champion { class: class.into(), variant: Some(champion), provisional: false, because }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Unknown;
    use crate::record::timing::Series;

    fn params(candidates: u32, timed: bool) -> SelectParams {
        SelectParams {
            candidates: (0..candidates)
                .map(|o| Candidate { order: o, identity: format!("v{o}"), serves: vec![0] })
                .collect(),
            shapes: vec!["all".into()],
            bench: vec![0],
            pinned: BTreeMap::new(),
            margin: 0.01,
            hot: false,
            timed,
        }
    }

    fn judged(verdict: Verdict) -> Judgement {
        Judgement { verdict, explanation: String::new(), emulated: false, worst: None }
    }

    fn known(verdicts: &[Verdict], times: &[f64]) -> Known {
        let bench = |t: &f64| BenchObserved {
            cold: Some(Series { samples_ns: vec![*t; 5], dropped: 0 }),
            hot: None,
            verified: true,
        };
        Known {
            judgements: (0u32..).zip(verdicts).map(|(v, j)| ((v, 0), judged(j.clone()))).collect(),
            emulated: BTreeMap::new(),
            benches: (0u32..).zip(times).map(|(v, t)| ((v, 0), bench(t))).collect(),
            pairs: BTreeMap::new(),
        }
    }

    fn unknown() -> Verdict {
        Verdict::Unknown(Unknown::NoDevice("x".into()))
    }

    #[test]
    fn without_times_the_first_right_variant_is_provisional() {
        let s = select(&params(3, false), &known(&[Verdict::Fail("x".into()), Verdict::Pass, Verdict::Pass], &[]));
        assert_eq!((s.champions[0].variant, s.champions[0].provisional), (Some(1), true));
        assert_eq!((s.frontier, s.wrong), (vec![2], vec![0]));
    }

    #[test]
    fn unknown_never_beats_right_and_wrong_is_never_chosen() {
        let s = select(&params(2, false), &known(&[unknown(), Verdict::Pass], &[]));
        assert_eq!(s.champions[0].variant, Some(1));
        let s = select(&params(2, false), &known(&[Verdict::Fail("x".into()), unknown()], &[]));
        assert_eq!(s.champions[0].variant, Some(1));
        assert!(s.champions[0].because.contains("not known to be wrong"));
        let s = select(&params(1, false), &known(&[Verdict::Fail("x".into())], &[]));
        assert_eq!(s.champions[0].variant, None);
    }

    #[test]
    fn the_emulator_counts_only_where_the_device_says_nothing() {
        let mut k = known(&[unknown(), unknown()], &[]);
        k.emulated.insert((0, 0), judged(Verdict::Fail("x".into())));
        k.emulated.insert((1, 0), judged(Verdict::Pass));
        let s = select(&params(2, true), &k);
        assert_eq!((s.champions[0].variant, s.champions[0].provisional, &s.wrong[..]), (Some(1), true, &[][..]));
        k.judgements.insert((0, 0), judged(Verdict::Pass));
        assert_eq!(select(&params(2, true), &k).champions[0].variant, Some(0));
    }

    #[test]
    fn the_fastest_wins_by_more_than_the_margin_only() {
        let all = [Verdict::Pass, Verdict::Pass, Verdict::Pass];
        assert_eq!(select(&params(3, true), &known(&all, &[120.0, 100.0, 100.5])).champions[0].variant, Some(1));
        assert_eq!(select(&params(3, true), &known(&all, &[100.9, 100.0, 100.5])).champions[0].variant, Some(0));
    }

    #[test]
    fn pairs_overrule_medians() {
        let mut k = known(&[Verdict::Pass, Verdict::Pass], &[105.0, 100.0]);
        k.pairs.insert((0, 1, 0), PairsObserved { blocks: vec![vec![0.0, 0.001]; 8] });
        assert_eq!(select(&params(2, true), &k).champions[0].variant, Some(0));
        k.pairs.insert((0, 1, 0), PairsObserved { blocks: vec![vec![0.03, 0.031]; 8] });
        assert_eq!(select(&params(2, true), &k).champions[0].variant, Some(1));
    }

    #[test]
    fn a_pin_holds_among_equals_and_not_against_a_faster_one() {
        let mut p = params(3, true);
        p.pinned.insert("all".into(), "v2".into());
        let all = [Verdict::Pass, Verdict::Pass, Verdict::Pass];
        assert_eq!(select(&p, &known(&all, &[100.0, 100.0, 100.5])).champions[0].variant, Some(2));
        assert_eq!(select(&p, &known(&all, &[100.0, 100.0, 150.0])).champions[0].variant, Some(0));
    }

    #[test]
    fn each_class_gets_its_champion_from_those_that_serve_it() {
        let mut p = params(2, false);
        p.shapes = vec!["a".into(), "b".into()];
        p.candidates[0].serves = vec![0];
        p.candidates[1].serves = vec![0, 1];
        let mut k = known(&[Verdict::Pass, Verdict::Pass], &[]);
        k.judgements.insert((1, 1), judged(Verdict::Pass));
        let s = select(&p, &k);
        assert_eq!(s.champions.iter().map(|c| c.variant).collect::<Vec<_>>(), [Some(0), Some(1)]);
    }
}
