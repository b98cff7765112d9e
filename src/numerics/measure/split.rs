//! Splits classes of shapes: where another variant than the champion of a class is decidedly faster at a bench shape, the shape gets a class of its own. Knows
//! the champions of whole classes; does not know how they were selected.
//!
//! | decision | why |
//! |---|---|
//! | Only pairs split a class: with its champion, or of both with a third variant. | Medians of separate runs differ by more than the margin without any cause. |
//! | A contender must be correct at the shape, and wrong at none. | It serves only this shape. What is wrong elsewhere, as at a holdout, is not trusted. |
//! | The greatest gains come first if there are more than the classes that the manifest allows. | They are worth a class most. |
//! | If a class loses every bench shape, one of the new champions that is correct on the rest takes it over. | No time would support its champion. |
//! | A variant that is pinned for the class of a shape keeps it unless pairs show it to be slower. | Noise must not move splits. Without times, pins decide. |
//! | A shape that could not be split is named with the variant that is faster there. | Nobody should take the champion for the fastest where it is not. |

use super::orders::Comparison;
use super::select::{SelectInputs, UNDIVIDED, at_shape, correct_on, may_be_correct_at, over_rest, shape_time};
use super::stats::Paired;
use kforge_types::record::params::{
    Champion, Contender, Gain, Nomination, Nominees, Overtaken, PairsWithChampion, SelectParams, Shortlist, Stays,
    split_class,
};

/// The bench shapes of a class.
fn benched(shapes: &[u32], params: &SelectParams) -> Vec<u32> {
    shapes.iter().copied().filter(|s| params.bench.contains(s)).collect()
}

/// The bench shapes at which a class may split, if the manifest allows more than this number of classes: those of a class with several.
pub(super) fn divisible(shapes: &[u32], classes: usize, params: &SelectParams) -> Vec<u32> {
    let bench = benched(shapes, params);
    if bench.len() > 1 && classes < params.most_classes as usize { bench } else { vec![] }
}

/// Names, for each bench shape of a class with several, the champion of the class and the variants whose median there is better than the champion's and near
/// the best: only pairs can decide whether they are faster. A variant that is pinned for the shape is named, too, if it is near the best.
pub(super) fn nominate(
    params: &SelectParams,
    shortlist: &Shortlist,
    champions: &[Champion],
    known: &SelectInputs,
) -> Nomination {
    let mut classes = vec![];
    for champion in champions.iter().filter(|c| !c.provisional) {
        let Some(order) = champion.variant else { continue };
        for shape in divisible(&champion.shapes, champions.len(), params) {
            let class = split_class(&champion.class, shape);
            let Some(own) = shape_time(order, shape, params, known) else { continue };
            let all = at_shape(shape, params, known);
            let Some(best) = all.first().map(|(time, _)| *time) else { continue };
            let is_pinned = |c: &Contender| params.pinned.get(&class) == Some(&c.identity);
            let near = all.iter().filter(|(time, c)| {
                c.order != order && *time <= best * (1.0 + shortlist.within) && (*time < own || is_pinned(c))
            });
            let mut near: Vec<&Contender> = near.map(|(_, c)| *c).collect();
            // The first is the fastest by medians; of the others, those come first that would be selected first.
            if let Some(rest) = near.get_mut(1..) {
                rest.sort_by_key(|c| (!is_pinned(c), c.order));
            }
            near.truncate((shortlist.most as usize).saturating_sub(1));
            let mut near: Vec<u32> = near.iter().map(|c| c.order).collect();
            near.sort_unstable();
            if !near.is_empty() {
                classes.push(Nominees { class, best: Some(order), near, shapes: vec![shape] });
            }
        }
    }
    Nomination { classes }
}

/// A bench shape that is to have its own champion.
struct Want {
    /// The class's position among the champions.
    class: usize,
    shape: u32,
    winner: u32,
    gain: Gain,
    /// The others that tie for fastest at the shape, in declaration order.
    ties: Vec<u32>,
}

/// The pairs of X, as A, and Y at a shape, if there are enough for an interval.
fn paired(x: u32, y: u32, shape: u32, known: &SelectInputs) -> Option<Comparison> {
    Comparison::of(&[&known.paired(x, y, shape)?])
}

/// How X compares with Y at a shape: by their pairs, otherwise through a third variant with which both were paired. None if there is no such variant.
fn compared(x: u32, y: u32, shape: u32, params: &SelectParams, known: &SelectInputs) -> Option<Comparison> {
    let third = |z: u32| Comparison::through(&paired(x, z, shape, known)?, &paired(y, z, shape, known)?, params.margin);
    paired(x, y, shape, known).or_else(|| params.candidates.iter().find_map(|z| third(z.order)))
}

/// The champion that a bench shape would have as a class of its own, if it is not the champion of its class.
fn want(class: usize, champion: &Champion, shape: u32, params: &SelectParams, known: &SelectInputs) -> Option<Want> {
    let over = champion.variant?;
    let rivals: Vec<(&Contender, Comparison)> = at_shape(shape, params, known)
        .into_iter()
        .filter(|(_, c)| c.order != over)
        .filter_map(|(_, c)| Some((c, compared(c.order, over, shape, params, known)?)))
        .collect();
    let faster = || rivals.iter().filter(|(_, seen)| seen.decide(params.margin) == Paired::Faster);
    let best = faster().min_by(|a, b| a.1.typical().total_cmp(&b.1.typical()));
    let slower = |seen: &Comparison| {
        let than_best = best.and_then(|(_, best)| Comparison::through(seen, best, params.margin));
        than_best.as_ref().unwrap_or(seen).decide(params.margin) == Paired::Slower
    };
    let running: Vec<&(&Contender, Comparison)> = faster().filter(|(_, seen)| !slower(seen)).collect();
    let pin = params.pinned.get(&split_class(&champion.class, shape));
    let pinned = rivals.iter().find(|(c, seen)| pin == Some(&c.identity) && !slower(seen));
    let first = running.iter().copied().min_by_key(|(c, _)| c.order);
    let (winner, seen) = pinned.or(first)?;
    let (estimate, low, high) = seen.interval;
    let saved = |log: f64| -log.exp_m1();
    let gain = Gain {
        over,
        shape,
        faster_by: saved(estimate),
        interval: (saved(high), saved(low)),
        tied: running.len().max(1) as u32,
        pinned: pinned.is_some(),
    };
    let mut ties: Vec<u32> = running.iter().map(|(c, _)| c.order).filter(|order| *order != winner.order).collect();
    ties.sort_unstable();
    Some(Want { class, shape, winner: winner.order, gain, ties })
}

/// What becomes of the classes if these of the shapes split.
fn divided(whole: &[Champion], wants: &[Want], params: &SelectParams, known: &SelectInputs) -> Vec<Champion> {
    let mut out = vec![];
    for (at, champion) in whole.iter().enumerate() {
        let mut split: Vec<&Want> = wants.iter().filter(|w| w.class == at).collect();
        split.sort_by_key(|w| w.shape);
        let without = |split: &[&Want]| -> Vec<u32> {
            champion.shapes.iter().copied().filter(|s| !split.iter().any(|w| w.shape == *s)).collect()
        };
        let others = |winner: u32| split.iter().copied().filter(|w| w.winner != winner).collect::<Vec<_>>();
        let loses_all = benched(&champion.shapes, params).iter().all(|s| split.iter().any(|w| w.shape == *s));
        let fit =
            split.iter().filter(|w| loses_all && correct_on(w.winner, &without(&others(w.winner)), params, known));
        // The one with which the fewest classes are left; of these, the first.
        let heir = fit.min_by_key(|w| (others(w.winner).len(), w.winner, w.shape)).copied();
        let mut base = champion.clone();
        if let Some(heir) = heir {
            base.variant = Some(heir.winner);
            base.because = heir.gain.reason(UNDIVIDED);
            base.gain = Some(heir.gain.clone());
            split = others(heir.winner);
        }
        base.shapes = without(&split);
        if heir.is_some() {
            // They tied with another champion.
            base.ties.clear();
        } else if base.shapes != champion.shapes {
            // They tied over all shapes of the class; over what is left of it, others may.
            (base.because, base.ties) = over_rest(champion, &base.shapes, params, known);
        }
        out.push(base);
        out.extend(split.iter().map(|want| Champion {
            class: split_class(&champion.class, want.shape),
            shapes: vec![want.shape],
            variant: Some(want.winner),
            provisional: false,
            because: want.gain.reason(UNDIVIDED),
            gain: Some(want.gain.clone()),
            ties: want.ties.clone(),
        }));
    }
    out
}

/// Of a class that is not timed: the bench shapes for which `kforge.lock` pins another variant than the class has.
fn pinned(champion: Champion, room: &mut usize, params: &SelectParams, known: &SelectInputs) -> Vec<Champion> {
    let bench = benched(&champion.shapes, params);
    let mut base = champion;
    let mut out = vec![];
    for shape in bench.iter().copied().filter(|_| bench.len() > 1) {
        let class = split_class(&base.class, shape);
        let pin = params.pinned.get(&class);
        let fits = |c: &&Contender| {
            pin == Some(&c.identity) && Some(c.order) != base.variant && may_be_correct_at(c, shape, known)
        };
        let Some(found) = params.candidates.iter().find(fits).filter(|_| *room > 0 && base.shapes.len() > 1) else {
            continue;
        };
        *room -= 1;
        base.shapes.retain(|s| *s != shape);
        out.push(Champion {
            class,
            shapes: vec![shape],
            variant: Some(found.order),
            provisional: true,
            because: "pinned in kforge.lock; not timed".into(),
            gain: None,
            ties: vec![],
        });
    }
    out.insert(0, base);
    out
}

/// Splits the classes of these champions, and says where another variant is faster than the champion that remains.
pub(super) fn divide(
    params: &SelectParams,
    whole: Vec<Champion>,
    known: &SelectInputs,
) -> (Vec<Champion>, Vec<Overtaken>) {
    let of = |(at, champion): (usize, &Champion)| {
        let shapes = if champion.provisional { vec![] } else { divisible(&champion.shapes, whole.len(), params) };
        shapes.into_iter().filter_map(|s| want(at, champion, s, params, known)).collect::<Vec<_>>()
    };
    let mut wants: Vec<Want> = whole.iter().enumerate().flat_map(of).collect();
    wants.sort_by(|a, b| b.gain.faster_by.total_cmp(&a.gain.faster_by).then(a.shape.cmp(&b.shape)));
    let most = whole.len().max(params.most_classes as usize);
    let of_first = |n: usize| (divided(&whole, &wants[..n], params, known), n);
    let fits = |(champions, _): &(Vec<Champion>, usize)| champions.len() <= most;
    // A class that is taken over needs fewer classes than shapes.
    let found = (0..=wants.len()).rev().map(of_first).find(fits);
    let (champions, granted) = found.unwrap_or((vec![], 0));
    let mut room = most.saturating_sub(champions.len());
    let champions: Vec<Champion> = (champions.into_iter())
        .flat_map(|c| if c.provisional { pinned(c, &mut room, params, known) } else { vec![c] })
        .collect();
    let mut overtaken: Vec<Overtaken> = wants[granted..]
        .iter()
        .map(|w| Overtaken {
            shape: w.shape,
            by: w.winner,
            faster_by: w.gain.faster_by,
            because: Stays::Classes,
            pairs: None,
        })
        .collect();
    for champion in champions.iter().filter(|c| !c.provisional) {
        let open = benched(&champion.shapes, params);
        let open = open.into_iter().filter(|s| !wants[granted..].iter().any(|w| w.shape == *s));
        overtaken.extend(open.filter_map(|shape| faster_by_medians(champion, shape, &whole, params, known)));
    }
    overtaken.sort_by_key(|o| o.shape);
    (champions, overtaken)
}

/// The fastest variant whose median at a shape is better than the champion's by more than the margin, unless pairs contradict.
fn faster_by_medians(
    champion: &Champion,
    shape: u32,
    whole: &[Champion],
    params: &SelectParams,
    known: &SelectInputs,
) -> Option<Overtaken> {
    let order = champion.variant?;
    let own = shape_time(order, shape, params, known)?;
    let undivided = whole.iter().find(|c| c.shapes.contains(&shape))?;
    let of_class = benched(&undivided.shapes, params);
    // If the shape could never have a class of its own, only those that could be champion of the class count.
    let might_win = |c: &Contender| of_class.len() > 1 || correct_on(c.order, &undivided.shapes, params, known);
    let near = at_shape(shape, params, known);
    let faster = near.into_iter().filter(|(t, c)| c.order != order && t * (1.0 + params.margin) < own && might_win(c));
    faster.into_iter().find_map(|(time, c)| {
        let seen = compared(c.order, order, shape, params, known);
        let because = match seen.as_ref().map(|seen| seen.decide(params.margin)) {
            Some(Paired::Same | Paired::Slower) => return None,
            _ if of_class.len() > 1 && divisible(&undivided.shapes, whole.len(), params).is_empty() => Stays::Classes,
            Some(_) => Stays::Undecided,
            None => Stays::Unpaired,
        };
        // Only what the two did in pairs with each other has figures.
        let open = paired(c.order, order, shape, known).filter(|_| because == Stays::Undecided);
        let pairs = open.map(|seen| PairsWithChampion {
            slower_by: seen.interval.0.exp_m1(),
            interval: (seen.interval.1.exp_m1(), seen.interval.2.exp_m1()),
            orders_disagree: seen.contested(params.margin).is_some(),
        });
        Some(Overtaken { shape, by: c.order, faster_by: 1.0 - time / own, because, pairs })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::select::{nominate, select};
    use super::*;
    use kforge_types::record::Verdict;
    use kforge_types::record::params::Judgement;
    use kforge_types::record::timing::{BenchObserved, PairsObserved, Series, Side};

    /// Variants with their median times at the bench shapes 1, 2, and so on; shape 0 is only verified.
    fn timed(times: &[&[f64]]) -> (SelectParams, SelectInputs) {
        let count = times[0].len() as u32 + 1;
        let candidate = |order: u32| Contender { order, identity: format!("v{order}"), serves: (0..count).collect() };
        let params = SelectParams {
            candidates: (0..times.len() as u32).map(candidate).collect(),
            shapes: vec!["0".into(); count as usize],
            bench: (1..count).collect(),
            most_classes: 4,
            pinned: BTreeMap::new(),
            margin: 0.01,
            hot: false,
            timed: true,
            answers: false,
            shortlist: None,
            finals: None,
            challenge: false,
        };
        let mut known = SelectInputs::default();
        for (v, times) in (0u32..).zip(times) {
            known.judgements.extend((0..count).map(|s| ((v, s), Judgement::bare(Verdict::Pass))));
            known.benches.extend((1u32..).zip(*times).map(|(s, t)| ((v, s), bench(*t))));
        }
        (params, known)
    }

    fn bench(ns: f64) -> BenchObserved {
        let cold = Some(Series { samples_ns: vec![ns; 5], dropped: 0 });
        BenchObserved { cold, hot: None, verified: true, peaks: None, few: false, took_s: None, stress: None }
    }

    fn pair(known: &mut SelectInputs, (a, b, shape): (u32, u32, u32), ratio: f64, spread: f64) {
        let block = |i: u32| vec![ratio.ln() + spread * (f64::from(i % 5) - 2.0); 2];
        known.pairs.insert((a, b, shape), PairsObserved { blocks: (0..10).map(block).collect(), first: vec![] });
    }

    /// Pairs of everything with everything at the bench shapes, as the medians are.
    fn pair_all(params: &SelectParams, known: &mut SelectInputs) {
        let count = params.candidates.len() as u32;
        for (a, b) in (0..count).flat_map(|a| (0..a).map(move |b| (a, b))) {
            for s in &params.bench {
                let ratio = shape_time(a, *s, params, known).unwrap() / shape_time(b, *s, params, known).unwrap();
                pair(known, (a, b, *s), ratio, 0.0002);
            }
        }
    }

    /// Class, variant and shapes of each champion.
    fn seats(champions: &[Champion]) -> Vec<(&str, u32, &[u32])> {
        champions.iter().map(|c| (c.class.as_str(), c.variant.unwrap(), &c.shapes[..])).collect()
    }

    fn left(found: &[Overtaken]) -> Vec<(u32, u32, Stays)> {
        found.iter().map(|o| (o.shape, o.by, o.because)).collect()
    }

    #[test]
    fn a_shape_at_which_another_is_faster_gets_a_class() {
        let (params, mut known) = timed(&[&[100.0, 100.0], &[125.0, 90.0]]);
        pair(&mut known, (1, 0, 2), 0.9, 0.001);
        assert_eq!(select(&params, &SelectInputs { pairs: BTreeMap::new(), ..known.clone() }).overtaken[0].pairs, None);
        let found = select(&params, &known);
        assert_eq!(seats(&found.champions), [("0", 0, &[0, 1][..]), ("0@2", 1, &[2])]);
        let gain = found.champions[1].gain.as_ref().unwrap();
        assert_eq!((gain.over, gain.shape, gain.tied, gain.pinned), (0, 2, 1, false));
        assert_eq!(found.champions[1].because, "10.0 % [9.9, 10.1] faster than the champion of the undivided class");
        assert_eq!((found.overtaken, found.frontier), (vec![], vec![]));
        // Also where the pair was taken in the other order.
        let pairs = known.pairs.remove(&(1, 0, 2)).unwrap();
        known.pairs.insert((0, 1, 2), pairs.turned());
        assert_eq!(seats(&select(&params, &known).champions), [("0", 0, &[0, 1][..]), ("0@2", 1, &[2])]);
    }

    #[test]
    fn only_pairs_of_the_two_themselves_have_figures() {
        let (params, mut known) = timed(&[&[100.0, 100.0], &[125.0, 90.0], &[150.0, 150.0]]);
        pair(&mut known, (1, 2, 2), 0.65, 0.2);
        pair(&mut known, (0, 2, 2), 0.7, 0.001);
        let found = select(&params, &known).overtaken;
        assert_eq!(left(&found), [(2, 1, Stays::Undecided)]);
        assert_eq!(found[0].pairs, None);
    }

    #[test]
    fn a_class_keeps_no_ties_over_shapes_that_it_lost() {
        let (params, mut known) = timed(&[&[100.0, 100.0], &[104.0, 96.0]]);
        pair(&mut known, (1, 0, 1), 1.04, 0.001);
        let ties = |known: &SelectInputs| {
            let champions = select(&params, known).champions;
            champions.into_iter().map(|c| (c.class, c.variant, c.ties)).collect::<Vec<_>>()
        };
        pair(&mut known, (1, 0, 2), 0.96, 0.05);
        assert_eq!(ties(&known), [("0".to_string(), Some(0), vec![1])]);
        pair(&mut known, (1, 0, 2), 0.96, 0.001);
        assert_eq!(ties(&known), [("0".to_string(), Some(0), vec![]), ("0@2".into(), Some(1), vec![])]);
    }

    #[test]
    fn a_class_that_a_split_reduced_counts_ties_over_the_shapes_that_it_still_has() {
        let (mut params, mut known) = timed(&[&[100.0, 100.0], &[104.0, 96.0], &[100.2, 100.1]]);
        pair(&mut known, (1, 0, 1), 1.04, 0.001);
        pair(&mut known, (1, 0, 2), 0.96, 0.05);
        pair(&mut known, (2, 0, 1), 1.002, 0.001);
        pair(&mut known, (2, 0, 2), 1.001, 0.001);
        let base = |params: &SelectParams, known: &SelectInputs| {
            let champion = select(params, known).champions.remove(0);
            (champion.shapes, champion.variant, champion.because, champion.ties)
        };
        let told = |n: u32| format!("first declared of {n} variants that tie for fastest");
        assert_eq!(base(&params, &known), (vec![0, 1, 2], Some(0), told(3), vec![1, 2]));
        // Variant 1 gets a shape, and is slower at the other.
        pair(&mut known, (1, 0, 2), 0.96, 0.001);
        assert_eq!(base(&params, &known), (vec![0, 1], Some(0), told(2), vec![2]));
        params.pinned.insert("0".into(), "v2".into());
        let of_pin = "pinned in kforge.lock, among 2 variants that tie for fastest".to_string();
        assert_eq!(base(&params, &known), (vec![0, 1], Some(2), of_pin, vec![0]));
        // Where another is faster at what is left, the champion of the class stays, and ties with nobody.
        params.pinned.clear();
        let whole = select(&params, &known).champions.remove(0);
        pair(&mut known, (2, 0, 1), 0.97, 0.001);
        assert_eq!(over_rest(&whole, &[0, 1], &params, &known), (UNDIVIDED.to_string(), vec![]));
    }

    #[test]
    fn who_was_paired_only_with_the_winner_and_is_faster_wins_the_shape() {
        let (params, mut known) = timed(&[&[100.0, 100.0], &[125.0, 90.0], &[150.0, 91.0]]);
        pair(&mut known, (1, 0, 2), 0.9, 0.001);
        // As attribution pairs the champion of the shape with the kernel without a method of it.
        pair(&mut known, (2, 1, 2), 0.95, 0.001);
        let found = select(&params, &known);
        assert_eq!(seats(&found.champions), [("0", 0, &[0, 1][..]), ("0@2", 2, &[2])]);
        assert!(found.champions[1].because.starts_with("14.5 % "), "{}", found.champions[1].because);
    }

    #[test]
    fn what_pairs_do_not_decide_splits_nothing_and_is_named() {
        let (params, mut known) = timed(&[&[100.0, 100.0], &[125.0, 90.0]]);
        assert_eq!(left(&select(&params, &known).overtaken), [(2, 1, Stays::Unpaired)]);
        pair(&mut known, (1, 0, 2), 0.9, 0.2);
        let found = select(&params, &known);
        assert_eq!((found.champions.len(), left(&found.overtaken)), (1, vec![(2, 1, Stays::Undecided)]));
        assert!((found.overtaken[0].faster_by - 0.1).abs() < 1e-9);
        let pairs = found.overtaken[0].pairs.as_ref().unwrap();
        assert!((pairs.slower_by + 0.1).abs() < 0.05 && !pairs.orders_disagree, "{pairs:?}");
        assert!(pairs.interval.0 < -0.1 && pairs.interval.1 > -0.1, "{pairs:?}");
        // Where the two orders disagree, nothing is decided either.
        let first: Vec<Side> = (0..16).map(|i| if i % 2 == 0 { Side::A } else { Side::B }).collect();
        let blocks = first.iter().map(|side| vec![if *side == Side::A { -0.2 } else { -0.001 }; 2]).collect();
        known.pairs.insert((1, 0, 2), PairsObserved { blocks, first });
        let found = select(&params, &known);
        assert_eq!((found.champions.len(), left(&found.overtaken)), (1, vec![(2, 1, Stays::Undecided)]));
        assert!(found.overtaken[0].pairs.as_ref().unwrap().orders_disagree);
        // Pairs overrule medians.
        pair(&mut known, (1, 0, 2), 1.0, 0.001);
        let found = select(&params, &known);
        assert_eq!((found.champions.len(), found.overtaken), (1, vec![]));
    }

    #[test]
    fn of_one_bench_shape_those_that_could_have_won_the_class_are_named() {
        let (mut params, known) = timed(&[&[100.0], &[97.0], &[90.0]]);
        params.candidates[2].serves = vec![1];
        let mut pinned = params.clone();
        pinned.pinned.insert("0".into(), "v0".into());
        let mut k = known.clone();
        pair(&mut k, (0, 1, 1), 1.02, 0.05);
        let found = select(&pinned, &k);
        assert_eq!(
            (seats(&found.champions), left(&found.overtaken)),
            (vec![("0", 0, &[0, 1][..])], vec![(1, 1, Stays::Undecided)])
        );
    }

    #[test]
    fn no_more_classes_than_the_manifest_allows_and_the_greatest_gain_first() {
        let (mut params, mut known) = timed(&[&[100.0, 100.0, 100.0, 100.0], &[130.0, 90.0, 80.0, 130.0]]);
        pair_all(&params, &mut known);
        let with = |most: u32, params: &mut SelectParams| {
            params.most_classes = most;
            let found = select(params, &known);
            (found.champions.iter().map(|c| c.class.clone()).collect::<Vec<_>>(), left(&found.overtaken))
        };
        let classes = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(with(3, &mut params), (classes(&["0", "0@2", "0@3"]), vec![]));
        assert_eq!(with(2, &mut params), (classes(&["0", "0@3"]), vec![(2, 1, Stays::Classes)]));
        assert_eq!(with(1, &mut params), (classes(&["0"]), vec![(2, 1, Stays::Classes), (3, 1, Stays::Classes)]));
        params.shortlist = Some(Shortlist { within: 0.05, most: 8, splits: true });
        assert_eq!(nominate(&params, &params.shortlist.unwrap(), &known).classes, [], "nothing is paired in vain");
    }

    #[test]
    fn a_class_that_loses_every_bench_shape_is_taken_over() {
        // Variant 0 is the best compromise, and the best nowhere.
        let (params, mut known) = timed(&[&[100.0, 100.0], &[80.0, 130.0], &[130.0, 90.0]]);
        pair_all(&params, &mut known);
        let found = select(&params, &known);
        assert_eq!(seats(&found.champions), [("0", 1, &[0, 1][..]), ("0@2", 2, &[2])]);
        assert_eq!((found.frontier, found.overtaken), (vec![0], vec![]));
        // Who is not correct on the rest takes over nothing.
        for v in [1, 2] {
            known.judgements.remove(&(v, 0));
        }
        let found = select(&params, &known);
        assert_eq!(seats(&found.champions), [("0", 0, &[0][..]), ("0@1", 1, &[1]), ("0@2", 2, &[2])]);
        // One that wins both shapes leaves one class.
        let (params, mut known) = timed(&[&[100.0, 100.0], &[80.0, 90.0]]);
        known.judgements.remove(&(1, 0));
        pair_all(&params, &mut known);
        assert_eq!(seats(&select(&params, &known).champions), [("0", 0, &[0][..]), ("0@1", 1, &[1]), ("0@2", 1, &[2])]);
    }

    #[test]
    fn who_serves_only_the_shape_may_win_it_and_who_is_wrong_elsewhere_may_not() {
        let (mut params, mut known) = timed(&[&[100.0, 100.0], &[125.0, 90.0]]);
        pair(&mut known, (1, 0, 2), 0.9, 0.001);
        params.candidates[1].serves = vec![2];
        assert_eq!(seats(&select(&params, &known).champions), [("0", 0, &[0, 1][..]), ("0@2", 1, &[2])]);
        params.candidates[1].serves = vec![0, 2];
        known.judgements.insert((1, 0), Judgement::bare(Verdict::Fail("wrong".into())));
        let found = select(&params, &known);
        assert_eq!((found.champions.len(), found.overtaken, found.wrong), (1, vec![], vec![1]));
        // Also if only the emulator says so.
        known.judgements.remove(&(1, 0));
        known.emulated.insert((1, 0), Judgement::bare(Verdict::Fail("wrong".into())));
        assert_eq!(select(&params, &known).champions.len(), 1);
    }

    #[test]
    fn of_those_that_tie_at_a_shape_the_pinned_one_wins_or_the_first() {
        let (mut params, mut known) = timed(&[&[100.0, 100.0], &[150.0, 90.2], &[150.0, 90.0], &[150.0, 94.0]]);
        pair_all(&params, &mut known);
        let winner = |params: &SelectParams, known: &SelectInputs| select(params, known).champions[1].clone();
        let first = winner(&params, &known);
        assert_eq!((first.variant, first.gain.unwrap().tied, first.ties), (Some(1), 2, vec![2]));
        params.pinned.insert("0@2".into(), "v2".into());
        let of_pin = winner(&params, &known);
        assert_eq!((of_pin.variant, of_pin.ties), (Some(2), vec![1]));
        assert!(of_pin.because.ends_with("; pinned in kforge.lock"), "{}", of_pin.because);
        params.pinned.insert("0@2".into(), "v3".into());
        assert_eq!(winner(&params, &known).variant, Some(1), "a pin does not hold against a faster one");
    }

    #[test]
    fn a_pinned_split_holds_until_its_champion_is_slower_and_a_pin_of_the_class_prevents_none() {
        let (mut params, mut known) = timed(&[&[100.0, 100.0], &[125.0, 100.5]]);
        params.pinned.insert("0@2".into(), "v1".into());
        let shortlist = Shortlist { within: 0.05, most: 8, splits: true };
        let named = nominate(&params, &shortlist, &known).classes;
        assert_eq!(
            (named[0].class.as_str(), named[0].best, &named[0].near[..], &named[0].shapes[..]),
            ("0@2", Some(0), &[1][..], &[2][..])
        );
        pair(&mut known, (1, 0, 2), 1.005, 0.02);
        assert_eq!(seats(&select(&params, &known).champions), [("0", 0, &[0, 1][..]), ("0@2", 1, &[2])]);
        pair(&mut known, (1, 0, 2), 1.03, 0.001);
        assert_eq!(select(&params, &known).champions.len(), 1);
        let (mut params, mut known) = timed(&[&[100.0, 100.0], &[125.0, 90.0]]);
        params.pinned.insert("0".into(), "v0".into());
        pair(&mut known, (1, 0, 2), 0.9, 0.001);
        assert_eq!(select(&params, &known).champions.len(), 2);
    }

    #[test]
    fn without_times_a_class_splits_only_where_it_is_pinned() {
        let (mut params, mut known) = timed(&[&[100.0, 100.0], &[125.0, 90.0]]);
        known.benches.clear();
        assert_eq!(select(&params, &known).champions.len(), 1);
        params.pinned.insert("0@2".into(), "v1".into());
        let found = select(&params, &known).champions;
        assert_eq!(seats(&found), [("0", 0, &[0, 1][..]), ("0@2", 1, &[2])]);
        assert!(found[1].provisional && found[1].because.starts_with("pinned in kforge.lock"));
        params.most_classes = 1;
        assert_eq!(select(&params, &known).champions.len(), 1);
        params.most_classes = 4;
        known.judgements.insert((1, 1), Judgement::bare(Verdict::Fail("wrong".into())));
        assert_eq!(select(&params, &known).champions.len(), 1);
    }

    #[test]
    fn the_fastest_at_a_shape_is_paired_with_the_champion_and_no_more_than_a_shortlist_holds() {
        let shortlist = |most| Shortlist { within: 0.05, most, splits: true };
        let times: [&[f64]; 6] =
            [&[100.0, 100.0], &[150.0, 91.0], &[150.0, 92.0], &[150.0, 90.0], &[150.0, 99.0], &[150.0, 89.0]];
        let (mut params, mut known) = timed(&times);
        let named = |params: &SelectParams, known: &SelectInputs, most| {
            let mut all = nominate(params, &shortlist(most), known).classes;
            assert_eq!(
                (all.len(), all[0].class.as_str(), all[0].best, &all[0].shapes[..]),
                (1, "0@2", Some(0), &[2][..])
            );
            all.remove(0).near
        };
        assert_eq!(named(&params, &known, 8), [1, 2, 3, 5], "variant 4 is far from the best");
        assert_eq!(named(&params, &known, 3), [1, 5], "the fastest, and the first");
        params.pinned.insert("0@2".into(), "v3".into());
        assert_eq!(named(&params, &known, 3), [3, 5], "the fastest, and the pinned one");
        known.benches.get_mut(&(5, 2)).unwrap().verified = false;
        assert_eq!(named(&params, &known, 8), [1, 2, 3]);
    }
}
