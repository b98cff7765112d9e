//! Selection: which variant is the champion of a class of shapes, from verdicts, times, paired comparisons, the lockfile's pin and the declaration order.
//!
//! A variant takes part only if it serves the whole class, is correct on all of it, and no paired comparison shows it to be slower than the best by more than
//! the margin. Of these variants the pinned one wins, or else the first in declaration order. So noise does not change champions, and an incremental build
//! selects the same variant as a clean one. [`super::split`] splits classes afterwards.

use std::collections::{BTreeMap, BTreeSet};

use super::orders::Comparison;
use super::split;
use super::stats::{self, Paired};
use kforge_types::record::params::{
    Champion, Contender, Finals, Judgement, Nomination, Nominees, SelectParams, Selection, Shortlist, split_class,
};
use kforge_types::record::timing::{BenchObserved, PairsObserved};
use kforge_types::record::{Unknown, Verdict};

/// What is known for a selection; keys are positions in the parameters.
#[derive(Debug, Clone, Default)]
pub struct SelectInputs {
    /// Variants that could not be compiled, or whose binary does not accept their launches: none of these can be a champion.
    pub unbuilt: BTreeSet<u32>,
    /// Judgement of (variant, shape).
    pub judgements: BTreeMap<(u32, u32), Judgement>,
    /// Judgement of (variant, shape) on the emulator, for a target that is a device: it counts only if the device has none, and never for times.
    pub emulated: BTreeMap<(u32, u32), Judgement>,
    /// Times of (variant, shape).
    pub benches: BTreeMap<(u32, u32), BenchObserved>,
    /// Times of (variant, shape) from few samples.
    pub few: BTreeMap<(u32, u32), BenchObserved>,
    /// Pairs of (variant A, variant B, shape). Two variants have them in one order only.
    pub pairs: BTreeMap<(u32, u32, u32), PairsObserved>,
}

impl SelectInputs {
    /// The pairs of two variants at a shape, with `x` as A, in whichever order they were taken.
    pub(super) fn paired(&self, x: u32, y: u32, shape: u32) -> Option<PairsObserved> {
        let straight = self.pairs.get(&(x, y, shape)).cloned();
        straight.or_else(|| self.pairs.get(&(y, x, shape)).cloned().map(PairsObserved::turned))
    }
}

/// What is known about a variant's correctness on a class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Wrong,
    /// The operator's tolerance, or the results of the shape, cannot tell it from a variant that computes nothing.
    Indecisive,
    Unknown,
    Correct,
}

/// The standing according to one judgement, if there is one.
fn one(judgement: Option<&Judgement>) -> Standing {
    match judgement.map(|j| &j.verdict) {
        Some(Verdict::Pass) => Standing::Correct,
        Some(Verdict::Fail(_)) => Standing::Wrong,
        Some(Verdict::Unknown(Unknown::Indecisive(_))) => Standing::Indecisive,
        Some(Verdict::Unknown(_)) | None => Standing::Unknown,
    }
}

/// The standing of a contender on these shapes, according to the device's judgements.
fn standing(candidate: &Contender, shapes: &[u32], known: &SelectInputs) -> Standing {
    together(shapes.iter().map(|s| one(known.judgements.get(&(candidate.order, *s)))))
}

/// The standing at several shapes: the worst. A shape whose results tell nothing says nothing beside one at which the contender is correct; if the operator tells
/// nothing, there is none.
fn together(standings: impl Iterator<Item = Standing> + Clone) -> Standing {
    let is_told = standings.clone().any(|standing| standing == Standing::Correct);
    let counts = |standing: &Standing| !(is_told && *standing == Standing::Indecisive);
    standings.filter(counts).min().unwrap_or(Standing::Unknown)
}

/// The classes in the order of their first shapes, with the positions of each class's shapes.
fn classes(params: &SelectParams) -> Vec<(&str, Vec<u32>)> {
    let mut classes: Vec<(&str, Vec<u32>)> = Vec::new();
    for (at, class) in (0u32..).zip(&params.shapes) {
        match classes.iter_mut().find(|(name, _)| name == class) {
            Some((_, shapes)) => shapes.push(at),
            None => classes.push((class, vec![at])),
        }
    }
    classes
}

/// The contenders that serve every shape of a class.
fn serving<'p>(shapes: &[u32], params: &'p SelectParams) -> Vec<&'p Contender> {
    params.candidates.iter().filter(|c| shapes.iter().all(|s| c.serves.contains(s))).collect()
}

/// The median time of a variant at a bench shape, in nanoseconds, if its timing is valid.
pub(super) fn shape_time(order: u32, shape: u32, params: &SelectParams, known: &SelectInputs) -> Option<f64> {
    over(&[shape], params.hot, stats::median, |s| known.benches.get(&(order, s)))
}

/// Whether a contender serves a shape, is correct there, and is not known to be wrong at any other shape.
fn is_fit_at(candidate: &Contender, shape: u32, known: &SelectInputs) -> bool {
    candidate.serves.contains(&shape)
        && standing(candidate, &[shape], known) == Standing::Correct
        && !matches!(supposed(candidate, &candidate.serves, known), Standing::Wrong | Standing::Indecisive)
}

/// The contenders at one bench shape, whether or not they serve the whole class: those that are correct and were timed there and are not known to be wrong
/// elsewhere, with their times there, the fastest first.
pub(super) fn at_shape<'p>(shape: u32, params: &'p SelectParams, known: &SelectInputs) -> Vec<(f64, &'p Contender)> {
    let fit = params.candidates.iter().filter(|c| params.timed && is_fit_at(c, shape, known));
    let mut by_time: Vec<(f64, &Contender)> =
        fit.filter_map(|c| Some((shape_time(c.order, shape, params, known)?, c))).collect();
    by_time.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.order.cmp(&b.1.order)));
    by_time
}

/// Whether a variant serves these shapes and is correct at all of them.
pub(super) fn correct_on(order: u32, shapes: &[u32], params: &SelectParams, known: &SelectInputs) -> bool {
    let of_order = serving(shapes, params).into_iter().find(|c| c.order == order);
    of_order.is_some_and(|c| standing(c, shapes, known) == Standing::Correct)
}

/// Whether a contender was built, serves a shape, and is not known to be wrong at any.
pub(super) fn may_be_correct_at(candidate: &Contender, shape: u32, known: &SelectInputs) -> bool {
    candidate.serves.contains(&shape)
        && !known.unbuilt.contains(&candidate.order)
        && !matches!(supposed(candidate, &candidate.serves, known), Standing::Wrong | Standing::Indecisive)
}

/// The standing of a contender on these shapes; where the device has no judgement, according to the emulator's, which is enough for a provisional champion.
fn supposed(candidate: &Contender, shapes: &[u32], known: &SelectInputs) -> Standing {
    let of = |s: &u32| match one(known.judgements.get(&(candidate.order, *s))) {
        Standing::Unknown => one(known.emulated.get(&(candidate.order, *s))),
        known => known,
    };
    together(shapes.iter().map(of))
}

/// The contenders that serve a class, are correct on all of it and were timed on all its bench shapes: with their times, the fastest first.
fn by_time<'p>(shapes: &[u32], params: &'p SelectParams, known: &SelectInputs) -> Vec<(f64, &'p Contender)> {
    let right = serving(shapes, params).into_iter().filter(|c| standing(c, shapes, known) == Standing::Correct);
    let mut by_time: Vec<(f64, &Contender)> =
        right.filter_map(|c| time(c, shapes, params, known).map(|t| (t, c))).collect();
    by_time.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.order.cmp(&b.1.order)));
    by_time
}

/// Names, for each class, the fastest by medians and those so near to it that only pairs can decide. If there are more than a
/// shortlist holds, it keeps those that [`select`] would take first: the pinned one, then in declaration order. If any of them is not
/// slower than the best, none of those left out could have won. If the champions of whole classes are known, [`split::nominate`] names instead.
pub fn nominate(params: &SelectParams, shortlist: &Shortlist, known: &SelectInputs) -> Nomination {
    if shortlist.splits {
        return split::nominate(params, shortlist, &undivided(params, known), known);
    }
    let nominees = |(class, shapes): (&str, Vec<u32>)| {
        let by_time = if params.timed { by_time(&shapes, params, known) } else { vec![] };
        let shapes: Vec<u32> = shapes.into_iter().filter(|s| params.bench.contains(s)).collect();
        let Some((best_time, best)) = by_time.first().copied() else {
            return Nominees { class: class.into(), best: None, near: vec![], shapes };
        };
        let close = |(t, c): &(f64, &Contender)| c.order != best.order && *t <= best_time * (1.0 + shortlist.within);
        let mut near: Vec<&Contender> = by_time.iter().filter(|e| close(e)).map(|(_, c)| *c).collect();
        near.sort_by_key(|c| (params.pinned.get(class) != Some(&c.identity), c.order));
        near.truncate((shortlist.most as usize).saturating_sub(1));
        let mut near: Vec<u32> = near.iter().map(|c| c.order).collect();
        near.sort_unstable();
        Nominees { class: class.into(), best: Some(best.order), near, shapes }
    };
    Nomination { classes: classes(params).into_iter().map(nominees).collect() }
}

/// Names, for each class and each bench shape at which a class may split, the fastest after few samples, and the contenders to be timed in full: those not yet
/// timed in full whose fastest samples are not slower than the best's median by more than the share. A contender whose full timing failed is excluded. A full
/// timing that is slower than the few samples by more than the share replaces them, so that a variant that was fast by cheating, or for a moment, does not
/// hide others for long.
pub fn finalists(params: &SelectParams, finals: &Finals, known: &SelectInputs) -> Nomination {
    let named = |class: String, bench: Vec<u32>, right: Vec<&Contender>| {
        if finals.correct {
            return Nominees { class, best: None, near: right.iter().map(|c| c.order).collect(), shapes: bench };
        }
        let in_full = |c: &Contender| bench.iter().all(|s| known.benches.contains_key(&(c.order, *s)));
        let failed =
            |c: &Contender| bench.iter().filter_map(|s| known.benches.get(&(c.order, *s))).any(|seen| !seen.verified);
        let contenders: Vec<(f64, f64, &Contender)> = right
            .into_iter()
            .filter(|c| params.timed && !failed(c))
            .filter_map(|c| {
                let of = |typical| over(&bench, params.hot, typical, |s| known.few.get(&(c.order, s)));
                let few = of(stats::median)?;
                let full = time(c, &bench, params, known).filter(|full| *full > few * (1.0 + finals.within));
                Some((full.unwrap_or(few), of(least)?, c))
            })
            .collect();
        let best = contenders.iter().min_by(|a, b| a.0.total_cmp(&b.0).then(a.2.order.cmp(&b.2.order)));
        let Some((best_time, _, best)) = best else {
            return Nominees { class, best: None, near: vec![], shapes: bench };
        };
        let close =
            |(_, least, c): &&(f64, f64, &Contender)| *least <= best_time * (1.0 + finals.within) && !in_full(c);
        let near = contenders.iter().filter(close).map(|(.., c)| c.order).collect();
        Nominees { class, best: Some(best.order), near, shapes: bench }
    };
    let all = classes(params);
    let count = all.len();
    let of_class = |(class, shapes): (&str, Vec<u32>)| {
        let right = serving(&shapes, params).into_iter().filter(|c| standing(c, &shapes, known) == Standing::Correct);
        let bench = shapes.iter().copied().filter(|s| params.bench.contains(s)).collect();
        let whole = named(class.into(), bench, right.collect());
        let of_shape = |shape: u32| {
            let fit = params.candidates.iter().filter(|c| is_fit_at(c, shape, known)).collect();
            named(split_class(class, shape), vec![shape], fit)
        };
        let single = split::divisible(&shapes, count, params).into_iter().map(of_shape);
        std::iter::once(whole).chain(single).collect::<Vec<_>>()
    };
    Nomination { classes: all.into_iter().flat_map(of_class).collect() }
}

fn least(samples: &[f64]) -> f64 {
    samples.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The champions of whole classes.
fn undivided(params: &SelectParams, known: &SelectInputs) -> Vec<Champion> {
    let mut champions = Vec::new();
    for (class, shapes) in classes(params) {
        let by_time = if params.timed { by_time(&shapes, params, known) } else { vec![] };
        champions.push(match by_time.first() {
            Some(best) => timed(class, *best, &by_time, &shapes, params, known),
            None => {
                let built = serving(&shapes, params).into_iter().filter(|c| !known.unbuilt.contains(&c.order));
                let is_timed = |c: &Contender| time(c, &shapes, params, known).is_some();
                let seen = |c: &Contender| (standing(c, &shapes, known), is_timed(c));
                let built = built.collect::<Vec<_>>();
                let elsewhere = |c: &Contender| match shapes.iter().all(|s| c.serves.contains(s)) {
                    true => None,
                    false if known.unbuilt.contains(&c.order) => None,
                    false => Some(supposed(c, &c.serves, known)),
                };
                let found = provisional(class, &built, |c| supposed(c, &shapes, known), elsewhere, seen, params);
                Champion { shapes, ..found }
            }
        });
    }
    champions
}

/// Selects the champions.
pub fn select(params: &SelectParams, known: &SelectInputs) -> Selection {
    let (champions, overtaken) = split::divide(params, undivided(params, known), known);
    let is_champion = |order: u32| champions.iter().any(|c: &Champion| c.variant == Some(order));
    let overall = |c: &Contender| standing(c, &c.serves, known);
    Selection {
        frontier: params
            .candidates
            .iter()
            .filter(|c| overall(c) == Standing::Correct && !is_champion(c.order))
            .map(|c| c.order)
            .collect(),
        wrong: params.candidates.iter().filter(|c| overall(c) == Standing::Wrong).map(|c| c.order).collect(),
        wrong_on_cpu: (params.candidates.iter())
            .filter(|c| overall(c) != Standing::Wrong && supposed(c, &c.serves, known) == Standing::Wrong)
            .map(|c| c.order)
            .collect(),
        champions,
        overtaken,
    }
}

/// The first correct variant in declaration order; if none is known to be correct, the first not known to be wrong, unless its operator is indecisive. `elsewhere`
/// is the standing of a contender that does not serve every shape of the class, at the shapes that it serves. `seen` is the standing of a contender on the target
/// itself, and whether it was timed there.
fn provisional(
    class: &str,
    serving: &[&Contender],
    standing: impl Fn(&Contender) -> Standing,
    elsewhere: impl Fn(&Contender) -> Option<Standing>,
    seen: impl Fn(&Contender) -> (Standing, bool),
    params: &SelectParams,
) -> Champion {
    let pick = |wanted: Standing| {
        let fit: Vec<&&Contender> = serving.iter().filter(|c| standing(c) == wanted).collect();
        let pinned = fit.iter().find(|c| params.pinned.get(class) == Some(&c.identity)).copied();
        pinned.map(|c| (c.order, true)).or_else(|| fit.first().map(|c| (c.order, false)))
    };
    let right = pick(Standing::Correct);
    let found = right.or_else(|| pick(Standing::Unknown));
    let chosen = serving.iter().find(|c| found.is_some_and(|(order, _)| order == c.order));
    let (is_seen, is_timed) = chosen.map_or((false, false), |c| {
        let (standing, is_timed) = seen(c);
        (standing == Standing::Correct, is_timed)
    });
    let (what, variant) = match (right.is_some(), is_seen) {
        (true, true) => ("correct", "correct variant"),
        // The target itself has not verified it.
        (true, false) => ("correct on `cpu`", "variant correct on `cpu`"),
        _ => ("not known to be wrong", "variant not known to be wrong"),
    };
    let times = match is_timed {
        true => "timed, but the times count only once it is known to be correct at every shape",
        false => "not timed",
    };
    // An earlier one that is as good where it runs was passed over.
    let least = if right.is_some() { Standing::Correct } else { Standing::Unknown };
    let before = |order: u32| params.candidates.iter().filter(move |c| c.order < order);
    let passed = |order: u32| before(order).any(|c| elsewhere(c).is_some_and(|found| found >= least));
    let because = match found {
        Some((_, true)) => format!("pinned in kforge.lock, {what}; {times}"),
        Some((order, false)) if passed(order) => {
            format!("first {variant} in declaration order that serves every shape of the class; {times}")
        }
        Some((_, false)) => format!("first {variant} in declaration order; {times}"),
        None if serving.is_empty() => "no variant that was built serves every shape of the class".into(),
        None if serving.iter().any(|c| standing(c) == Standing::Indecisive) => {
            "the operator is indecisive here: nothing tells a correct variant from a wrong one".into()
        }
        // The target itself has not judged those that are wrong on `cpu`.
        None => match serving.iter().filter(|c| seen(c).0 != Standing::Wrong).count() {
            0 => "every variant that serves it is wrong".into(),
            all if all == serving.len() => {
                "every variant that serves it is wrong on `cpu`, at shapes that no device has judged".into()
            }
            some => format!(
                "every variant that serves it is wrong, {some} of {} only on `cpu`, at shapes that no device has judged",
                serving.len()
            ),
        },
    };
    Champion {
        class: class.into(),
        shapes: vec![],
        variant: found.map(|f| f.0),
        provisional: true,
        because,
        gain: None,
        ties: vec![],
    }
}

/// The geometric mean of a variant's median times over the bench shapes of a class, in nanoseconds; none unless all of them have a time.
fn time(candidate: &Contender, shapes: &[u32], params: &SelectParams, known: &SelectInputs) -> Option<f64> {
    let bench: Vec<u32> = shapes.iter().copied().filter(|s| params.bench.contains(s)).collect();
    over(&bench, params.hot, stats::median, |s| known.benches.get(&(candidate.order, s)))
}

/// The geometric mean over shapes of a statistic of the samples at each; none unless all shapes have valid samples.
fn over<'b>(
    shapes: &[u32],
    hot: bool,
    typical: fn(&[f64]) -> f64,
    seen: impl Fn(u32) -> Option<&'b BenchObserved>,
) -> Option<f64> {
    let times: Option<Vec<f64>> = shapes
        .iter()
        .map(|s| {
            let seen = seen(*s).filter(|seen| seen.verified)?;
            let series = if hot { &seen.hot } else { &seen.cold };
            series.as_ref().filter(|s| !s.samples_ns.is_empty()).map(|s| typical(&s.samples_ns))
        })
        .collect();
    times.filter(|m| !m.is_empty()).map(|m| stats::geometric_mean(&m))
}

/// The pairs of a contender and the best by medians, over all bench shapes of a class; none unless pairs were taken at all of them and sufficed for an
/// interval.
fn ratios(
    candidate: &Contender,
    best: &Contender,
    shapes: &[u32],
    params: &SelectParams,
    known: &SelectInputs,
) -> Option<Comparison> {
    let bench = shapes.iter().filter(|s| params.bench.contains(s));
    let paired: Option<Vec<PairsObserved>> = bench.map(|s| known.paired(candidate.order, best.order, *s)).collect();
    Comparison::of(&paired?.iter().collect::<Vec<_>>())
}

/// The contenders that may be champion by times, in declaration order, and how many of them the two orders of pairs disagree about. The best is the fastest by
/// medians, or a contender that pairs show to be even faster. Contenders that pairs do not show to be slower than the best stay in the running.
fn in_running<'c>(
    by_time: &[(f64, &'c Contender)],
    shapes: &[u32],
    params: &SelectParams,
    known: &SelectInputs,
) -> (Vec<&'c Contender>, usize) {
    let Some((best_time, best)) = by_time.first().copied() else { return (vec![], 0) };
    let margin = params.margin;
    let paired: BTreeMap<u32, Comparison> =
        (by_time.iter()).filter_map(|(_, c)| Some((c.order, ratios(c, best, shapes, params, known)?))).collect();
    // Clocks drift between runs, so medians may have named the wrong one.
    let faster = paired.iter().filter(|(_, seen)| seen.decide(margin) == Paired::Faster);
    let beat = faster.min_by(|a, b| a.1.typical().total_cmp(&b.1.typical()));
    let directly = |c: &Contender, order: u32| {
        let (_, other) = by_time.iter().find(|(_, other)| other.order == order)?;
        ratios(c, other, shapes, params, known)
    };
    let contested = |c: &Contender| paired.get(&c.order).is_some_and(|seen| seen.contested(margin).is_some());
    let slower = |c: &Contender, t: f64| match (paired.get(&c.order), beat) {
        // Undecided is not slower: a contender that noise alone could exclude stays.
        (Some(seen), None) => seen.decide(margin) == Paired::Slower,
        (Some(_), Some(_)) if contested(c) => false,
        // Pairs of the two say it directly. Otherwise both were paired with the best by medians.
        (Some(seen), Some((order, beat))) => directly(c, *order)
            .or_else(|| Comparison::through(seen, beat, margin))
            .is_some_and(|seen| seen.decide(margin) == Paired::Slower),
        (None, _) if c.order == best.order => beat.is_some(),
        // Pairs are taken only among variants near the best, and all samples of a pair may have been dropped; then the medians decide.
        (None, _) => t > best_time * beat.map_or(1.0, |(_, b)| b.typical().exp()) * (1.0 + margin),
    };
    let mut kept: Vec<&Contender> = by_time.iter().filter(|(t, c)| !slower(c, *t)).map(|(_, c)| *c).collect();
    kept.sort_by_key(|c| c.order);
    let running = unbeaten(kept, by_time, shapes, params, known);
    let disagree = running.iter().filter(|c| contested(c)).count();
    (running, disagree)
}

/// The reason of a champion that is in the running, without what the two orders of pairs disagree about.
fn because_of(champion: u32, is_pinned: bool, running: &[&Contender], not_timed: impl Fn() -> usize) -> String {
    match (is_pinned, running.len()) {
        (true, n) => format!("pinned in kforge.lock, among {n} variants that tie for fastest"),
        (false, 1) => match not_timed() {
            0 => "faster than every other by more than the margin".into(),
            n => format!(
                "faster by more than the margin than every other that was timed in full; {n} {} not",
                if n == 1 { "was" } else { "were" }
            ),
        },
        (false, n) if running.first().is_some_and(|c| c.order == champion) => {
            format!("first declared of {n} variants that tie for fastest")
        }
        (false, n) => format!("{UNDIVIDED}, among {n} variants that tie for fastest"),
    }
}

/// The reason with the number of those in the running about whom the two orders of pairs disagree.
fn with_orders(because: String, disagree: usize) -> String {
    match disagree {
        0 => because,
        n => format!("{because}; undecided: the two orders disagree about {n} of them"),
    }
}

/// The champion by times: of those in the running, the pinned one, or the first.
fn timed(
    class: &str,
    (_, best): (f64, &Contender),
    by_time: &[(f64, &Contender)],
    shapes: &[u32],
    params: &SelectParams,
    known: &SelectInputs,
) -> Champion {
    let (running, disagree) = in_running(by_time, shapes, params, known);
    let pinned = running.iter().find(|c| params.pinned.get(class) == Some(&c.identity));
    let champion = pinned.or(running.first()).map_or(best.order, |c| c.order);
    let because = because_of(champion, pinned.is_some(), &running, || not_timed(by_time, shapes, params, known));
    let because = with_orders(because, disagree);
    let ties = running.iter().map(|c| c.order).filter(|order| *order != champion).collect();
    let (class, shapes) = (class.into(), shapes.to_vec());
    Champion { class, shapes, variant: Some(champion), provisional: false, because, gain: None, ties }
}

/// What a class is called before it splits, as the reason of a champion.
pub(super) const UNDIVIDED: &str = "the champion of the undivided class";

/// The reason and the ties of a champion whose class has lost shapes to others: over the shapes that are left. It stays champion, although another may be as fast
/// or faster there: what is faster at a shape splits the class, or is named beside it.
pub(super) fn over_rest(
    champion: &Champion,
    shapes: &[u32],
    params: &SelectParams,
    known: &SelectInputs,
) -> (String, Vec<u32>) {
    let is_suspect = |c: &Contender| matches!(supposed(c, &c.serves, known), Standing::Wrong | Standing::Indecisive);
    let by_time: Vec<(f64, &Contender)> =
        by_time(shapes, params, known).into_iter().filter(|(_, c)| !is_suspect(c)).collect();
    let (running, disagree) = in_running(&by_time, shapes, params, known);
    let Some(own) = running.iter().find(|c| Some(c.order) == champion.variant) else {
        return (UNDIVIDED.into(), vec![]);
    };
    let is_pinned = params.pinned.get(&champion.class) == Some(&own.identity);
    let because = because_of(own.order, is_pinned, &running, || not_timed(&by_time, shapes, params, known));
    let ties = running.iter().map(|c| c.order).filter(|order| *order != own.order).collect();
    (with_orders(because, disagree), ties)
}

/// The number of contenders that may be correct on a class and have no full timing there: nobody timed them, few samples showed them to be slower, or the timing
/// is not valid.
fn not_timed(by_time: &[(f64, &Contender)], shapes: &[u32], params: &SelectParams, known: &SelectInputs) -> usize {
    let timed: BTreeSet<u32> = by_time.iter().map(|(_, c)| c.order).collect();
    let may_be_correct = |c: &&Contender| {
        !known.unbuilt.contains(&c.order)
            && !matches!(supposed(c, shapes, known), Standing::Wrong | Standing::Indecisive)
    };
    serving(shapes, params).into_iter().filter(may_be_correct).filter(|c| !timed.contains(&c.order)).count()
}

/// Those in the running whom no pairs show to be slower than another contender, and, in place of the others, whoever pairs show to be faster than they are,
/// directly or through others in turn: attribution compares champions, one after another, with contenders that were never compared with the best. If each is
/// slower than another, all stay.
fn unbeaten<'c>(
    running: Vec<&'c Contender>,
    by_time: &[(f64, &'c Contender)],
    shapes: &[u32],
    params: &SelectParams,
    known: &SelectInputs,
) -> Vec<&'c Contender> {
    let is_slower = |a: &Contender, b: &Contender| {
        a.order != b.order
            && ratios(a, b, shapes, params, known).is_some_and(|seen| seen.decide(params.margin) == Paired::Slower)
    };
    let mut reached: BTreeSet<u32> = BTreeSet::new();
    let mut next = running.clone();
    let mut kept: Vec<&Contender> = vec![];
    while let Some(c) = next.pop() {
        if reached.insert(c.order) {
            let faster: Vec<&Contender> = by_time.iter().map(|(_, other)| *other).filter(|o| is_slower(c, o)).collect();
            if faster.is_empty() {
                kept.push(c);
            }
            next.extend(faster);
        }
    }
    kept.sort_by_key(|c| c.order);
    if kept.is_empty() { running } else { kept }
}

#[cfg(test)]
mod tests;
