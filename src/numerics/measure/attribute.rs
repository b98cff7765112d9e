//! Attribution: whether machine code shows a method, and the time without it minus the time with it (docs/design.md, section 9.5).

use super::orders::{Comparison, Orders};
use super::paired::{figures, percent, said};
use super::stats::{Paired, answer};
use kforge_types::record::Verdict;
use kforge_types::record::params::{AttributeParams, Attribution, Fate, Matched, Shown};
use kforge_types::record::timing::PairsObserved;

/// The reason if the kernel without the method has no result: there was no device, or the kernel could not be built.
const UNTRIED: &str =
    "the kernel without it was neither verified nor timed on a device, so the saving of the method is unknown";

/// What stands before what pairs say of the kernel without a method.
pub const WITHOUT: &str = "without it ";

/// Classifies a method from its match, from pairs of (without, with), and from the verdict on the kernel without the method, at each shape where these were
/// requested; none if that step had no result.
pub fn attribute(
    matched: Option<&Matched>,
    pairs: &[Option<PairsObserved>],
    without: &[Option<Verdict>],
    policy: &AttributeParams,
) -> Attribution {
    if policy.unused {
        let because = "the champion does not use it".into();
        return Attribution { fate: Fate::NotUsed, because, detail: None, saving: None };
    }
    // A saving covers all bench shapes: if it is unknown at one shape, it is unknown.
    let all: Option<Vec<&PairsObserved>> = pairs.iter().map(Option::as_ref).collect();
    // Log-ratios of time(without)/time(with): the saving relative to the champion is their exponential minus one.
    let seen = all.and_then(|shapes| Comparison::of(&shapes));
    let interval = seen.as_ref().map(|seen| share(seen.interval));
    let effect = seen.as_ref().map(|seen| effect(seen, policy));
    let without = worst(without);
    let shown = matched.map(|m| &m.shown);
    let harmful = match (without, &effect) {
        // Whether machine code shows a method does not matter if the method costs time.
        (Some(Verdict::Pass), Some((Fate::Harmful, because))) => Some(because.clone()),
        _ => None,
    };
    // The text of a verdict may name a shape.
    let detail = match (shown, without) {
        (Some(Shown::Shown), Some(Verdict::Fail(why))) => Some(why.clone()),
        (Some(Shown::Shown), Some(Verdict::Unknown(why))) => Some(why.to_string()),
        _ => None,
    };
    let (fate, because) = match (shown, without, effect) {
        _ if harmful.is_some() => (Fate::Harmful, harmful.unwrap_or_default()),
        (Some(Shown::NotShown), ..) => (Fate::ImplementationFailed, "the machine code does not show it".to_string()),
        (None, ..) => (Fate::Inconclusive, "the machine code was not inspected".into()),
        (Some(Shown::Unknown(why)), ..) => (Fate::Inconclusive, why.clone()),
        (_, Some(Verdict::Fail(_)), _) => (Fate::Inconclusive, "the kernel without it is wrong".into()),
        (_, Some(Verdict::Unknown(_)), _) => {
            (Fate::Inconclusive, "it is unknown whether the kernel without it is correct".into())
        }
        (_, None, None) => (Fate::Inconclusive, UNTRIED.into()),
        (_, None, Some(_)) => {
            (Fate::Inconclusive, "the kernel without it was not verified, so its times do not count".into())
        }
        (.., None) => (Fate::Inconclusive, "not timed in pairs".into()),
        (.., Some(effect)) => effect,
    };
    Attribution { fate, because, detail, saving: interval }
}

/// A median and an interval of log-ratios as shares of time.
fn share((median, low, high): (f64, f64, f64)) -> (f64, f64, f64) {
    (median.exp_m1(), low.exp_m1(), high.exp_m1())
}

/// What an interval of log-ratios says of a method that machine code shows.
fn fate_of(interval: (f64, f64, f64), policy: &AttributeParams) -> Fate {
    if answer(interval, policy.margin) == Paired::Faster {
        return Fate::Harmful;
    }
    if share(interval).1 > policy.threshold { Fate::Effective } else { Fate::Ineffective }
}

/// What pairs say of a method that machine code shows, and why.
fn effect(seen: &Comparison, policy: &AttributeParams) -> (Fate, String) {
    let disagree =
        |orders: &&Orders| orders.are_apart() && fate_of(orders.a_first, policy) != fate_of(orders.b_first, policy);
    let over_all = seen.orders.iter().find(disagree).map(|orders| ("", orders));
    let at_one = || seen.single.iter().find(disagree).map(|orders| ("at one shape, ", orders));
    if let Some((place, Orders { a_first, b_first })) = over_all.or_else(at_one) {
        let of = |interval| {
            let (median, low, high) = share(interval);
            figures(median, Some((low, high)))
        };
        let because = format!(
            "{place}the two orders disagree: the kernel without it takes {} where it came first, and {} where it came second",
            of(*a_first),
            of(*b_first)
        );
        return (Fate::Inconclusive, because);
    }
    let (median, low, high) = share(seen.interval);
    let fate = fate_of(seen.interval, policy);
    let answer = answer(seen.interval, policy.margin);
    let because = match (fate, answer) {
        // Slower without it, but not by enough to count.
        (Fate::Ineffective, Paired::Slower) => format!(
            "{}; a method is effective if the whole interval is above {}",
            figures(median, Some((low, high))),
            percent(policy.threshold)
        ),
        _ => said(answer, median, (low, high)),
    };
    (fate, format!("{WITHOUT}{because}"))
}

/// The verdict over all shapes: wrong at one shape means wrong, and otherwise unknown at one shape means unknown.
fn worst(verdicts: &[Option<Verdict>]) -> Option<&Verdict> {
    let badness = |v: &Option<Verdict>| match v {
        Some(Verdict::Fail(_)) => 2,
        Some(Verdict::Unknown(_)) | None => 1,
        Some(Verdict::Pass) => 0,
    };
    // The first of the worst, so that the reason does not depend on how many there are.
    verdicts.iter().rev().max_by_key(|v| badness(v)).and_then(Option::as_ref)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::record::Unknown;
    use kforge_types::record::timing::Side;

    const POLICY: AttributeParams = AttributeParams { threshold: 0.02, margin: 0.01, unused: false };

    fn shown(shown: Shown) -> Matched {
        Matched { shown, counts: vec![] }
    }

    fn unordered(blocks: Vec<Vec<f64>>) -> PairsObserved {
        PairsObserved { blocks, first: vec![] }
    }

    fn pairs(low: f64, high: f64) -> PairsObserved {
        unordered((0..=20).map(|i| vec![(low + (high - low) * f64::from(i) / 20.0).ln_1p()]).collect())
    }

    fn fate(m: Shown, p: Option<PairsObserved>, v: Verdict) -> Fate {
        attribute(Some(&shown(m)), &[p], &[Some(v)], &POLICY).fate
    }

    #[test]
    fn what_a_verdict_adds_is_apart_from_the_reason() {
        let bad = attribute(
            Some(&shown(Shown::Shown)),
            &[None],
            &[Some(Verdict::Fail("`y` is wrong at 7918".into()))],
            &POLICY,
        );
        assert_eq!(
            (&*bad.because, bad.detail.as_deref()),
            ("the kernel without it is wrong", Some("`y` is wrong at 7918"))
        );
        assert_eq!(bad.reason(), "the kernel without it is wrong: `y` is wrong at 7918");
        let unknown = Some(Verdict::Unknown(Unknown::Missing("only 1 of 4 trials were compared".into())));
        let open = attribute(Some(&shown(Shown::Shown)), &[None], &[unknown], &POLICY);
        assert_eq!(open.because, "it is unknown whether the kernel without it is correct");
        assert_eq!(open.detail.as_deref(), Some("missing: only 1 of 4 trials were compared"));
        let faster = attribute(Some(&shown(Shown::Shown)), &[Some(pairs(0.5, 0.6))], &[Some(Verdict::Pass)], &POLICY);
        assert_eq!((faster.detail.as_deref(), faster.reason()), (None, faster.because.clone()));
    }

    #[test]
    fn the_lower_bound_decides() {
        assert_eq!(fate(Shown::Shown, Some(pairs(1.2, 1.3)), Verdict::Pass), Fate::Effective);
        assert_eq!(fate(Shown::Shown, Some(pairs(0.0, 0.01)), Verdict::Pass), Fate::Ineffective);
        assert_eq!(fate(Shown::Shown, Some(pairs(0.005, 0.06)), Verdict::Pass), Fate::Effective);
        assert_eq!(fate(Shown::Shown, Some(pairs(0.021, 0.026)), Verdict::Pass), Fate::Effective);
    }

    #[test]
    fn a_method_without_which_the_kernel_is_decidedly_faster_is_harmful() {
        let told = |low, high, verdict, seen| {
            attribute(Some(&shown(seen)), &[Some(pairs(low, high))], &[Some(verdict)], &POLICY)
        };
        let found = told(-0.054, -0.029, Verdict::Pass, Shown::Shown);
        assert_eq!(found.fate, Fate::Harmful);
        assert_eq!(found.because, "without it faster, -4.2 % [-4.7, -3.7]");
        // Within the margin of the selection it costs nothing that would move a champion.
        let little = told(-0.009, -0.002, Verdict::Pass, Shown::Shown);
        assert_eq!(little.fate, Fate::Ineffective);
        assert!(little.because.starts_with("without it same, -0.6 % [-0."), "{}", little.because);
        // Slower than with it, but not by enough to count, and not decided.
        let some = told(0.012, 0.018, Verdict::Pass, Shown::Shown);
        assert_eq!(some.fate, Fate::Ineffective);
        assert!(some.because.starts_with("without it +1.5 % [+1."), "{}", some.because);
        assert!(
            some.because.ends_with("]; a method is effective if the whole interval is above 2 %"),
            "{}",
            some.because
        );
        let open = told(-0.01, 0.04, Verdict::Pass, Shown::Shown);
        assert!(open.because.starts_with("without it undecided, +1.5 % [+0."), "{}", open.because);
        assert_eq!(told(0.08, 0.12, Verdict::Pass, Shown::Shown).because.split(' ').nth(2), Some("slower,"));
        // Time decides, whether or not machine code shows the method, but only if the kernel without it is correct.
        for seen in [Shown::NotShown, Shown::Unknown("x".into())] {
            assert_eq!(told(-0.054, -0.029, Verdict::Pass, seen).fate, Fate::Harmful);
        }
        assert_eq!(told(-0.054, -0.029, Verdict::Fail("x".into()), Shown::Shown).fate, Fate::Inconclusive);
    }

    #[test]
    fn orders_that_disagree_are_inconclusive_with_both_answers() {
        let ordered = |a: f64, b: f64| {
            let first: Vec<Side> = (0..16).map(|i| if i % 2 == 0 { Side::A } else { Side::B }).collect();
            let block = |(i, side): (usize, &Side)| {
                vec![if *side == Side::A { a } else { b } + 0.001 * ((i / 2 % 4) as f64 - 1.5)]
            };
            Some(PairsObserved { blocks: first.iter().enumerate().map(block).collect(), first })
        };
        let told = |a, b| attribute(Some(&shown(Shown::Shown)), &[ordered(a, b)], &[Some(Verdict::Pass)], &POLICY);
        let found = told(0.05, -0.03);
        assert_eq!(found.fate, Fate::Inconclusive);
        assert!(
            found.because.starts_with("the two orders disagree: the kernel without it takes +5.1 % ["),
            "{}",
            found.because
        );
        assert!(found.because.contains(" where it came first, and -3.0 % ["), "{}", found.because);
        // Orders that differ but lead to one fate decide.
        assert_eq!((told(0.08, 0.04).fate, told(-0.08, -0.04).fate), (Fate::Effective, Fate::Harmful));
        // At one of two shapes. The other stopped after few blocks.
        let mut few = ordered(0.05, 0.05);
        if let Some(PairsObserved { blocks, first }) = &mut few {
            blocks.truncate(8);
            first.truncate(8);
        }
        let shapes = [few, ordered(0.12, -0.03)];
        let found = attribute(Some(&shown(Shown::Shown)), &shapes, &[Some(Verdict::Pass)], &POLICY);
        assert_eq!(found.fate, Fate::Inconclusive);
        assert!(
            found.because.starts_with("at one shape, the two orders disagree: the kernel without it takes +12."),
            "{}",
            found.because
        );
    }

    #[test]
    fn a_method_that_the_champion_does_not_use_has_no_other_fate() {
        let found = attribute(None, &[], &[], &AttributeParams { unused: true, ..POLICY });
        assert_eq!((found.fate, &*found.because), (Fate::NotUsed, "the champion does not use it"));
    }

    #[test]
    fn code_that_does_not_show_it_failed_whatever_the_time() {
        assert_eq!(fate(Shown::NotShown, Some(pairs(0.5, 0.6)), Verdict::Pass), Fate::ImplementationFailed);
    }

    #[test]
    fn unknowns_and_a_wrong_ablation_are_inconclusive() {
        assert_eq!(fate(Shown::Unknown("x".into()), Some(pairs(0.5, 0.6)), Verdict::Pass), Fate::Inconclusive);
        assert_eq!(fate(Shown::Shown, Some(pairs(0.5, 0.6)), Verdict::Fail("x".into())), Fate::Inconclusive);
        assert_eq!(fate(Shown::Shown, None, Verdict::Pass), Fate::Inconclusive);
        assert_eq!(attribute(None, &[], &[], &POLICY).fate, Fate::Inconclusive);
        // The reason says which of the two is unknown: the kernel was never tried, or it has times but no verdict.
        let of = |pairs| attribute(Some(&shown(Shown::Shown)), &[pairs], &[None], &POLICY).because;
        assert_eq!(of(None), UNTRIED);
        assert!(of(Some(pairs(0.5, 0.6))).contains("was not verified, so its times"), "{}", of(Some(pairs(0.5, 0.6))));
    }

    #[test]
    fn every_shape_counts() {
        let at = |p: &[Option<PairsObserved>], v: &[Option<Verdict>]| {
            attribute(Some(&shown(Shown::Shown)), p, v, &POLICY).fate
        };
        let (pass, fast, slow) = (Some(Verdict::Pass), Some(pairs(0.5, 0.6)), Some(pairs(-0.5, -0.4)));
        let passes = [pass.clone(), pass.clone()];
        assert_eq!(at(&[fast.clone(), fast.clone()], &passes), Fate::Effective);
        assert_eq!(at(&[fast.clone(), slow.clone()], &passes), Fate::Harmful, "1.55 times 0.55");
        assert_eq!(at(&[slow.clone(), None], &passes), Fate::Inconclusive);
        assert_eq!(at(&[fast.clone(), None], &passes), Fate::Inconclusive);
        for bad in [None, Some(Verdict::Fail("x".into()))] {
            assert_eq!(at(&[fast.clone(), fast.clone()], &[pass.clone(), bad]), Fate::Inconclusive);
        }
    }

    /// Pairs in which every block shows the same saving, so that the interval is that saving.
    fn exactly(saving: f64) -> Option<PairsObserved> {
        Some(unordered(vec![vec![saving.ln_1p()]; 12]))
    }

    #[test]
    fn the_worked_example() {
        // Milliseconds of the champion, and of the champion without each of its methods: issue 3, check 6.
        let (champion, a, b, c) = (2.14, 4.82, 2.31, 2.19);
        let told = |without: f64| {
            let pairs = exactly(without / champion - 1.0);
            attribute(Some(&shown(Shown::Shown)), &[pairs], &[Some(Verdict::Pass)], &POLICY)
        };
        let saved = |a: &Attribution| (a.saving.unwrap().0 * 1000.0).round() / 10.0;
        let (a, b, c) = (told(a), told(b), told(c));
        assert_eq!((a.fate, saved(&a)), (Fate::Effective, 125.2));
        assert_eq!((b.fate, saved(&b)), (Fate::Effective, 7.9));
        // The median is 2.3 %, but the interval decides.
        assert_eq!(saved(&c), 2.3);
        let c = |low: f64, high: f64| {
            attribute(Some(&shown(Shown::Shown)), &[between(low, high)], &[Some(Verdict::Pass)], &POLICY)
        };
        let (wide, narrow) = (c(0.016, 0.031), c(0.021, 0.026));
        assert_eq!((wide.fate, interval(&wide)), (Fate::Ineffective, (1.6, 3.1)));
        assert_eq!((narrow.fate, interval(&narrow)), (Fate::Effective, (2.1, 2.6)));
        // The compiler did not emit the method, though the kernel is faster with it.
        let unseen = attribute(Some(&shown(Shown::NotShown)), &[exactly(0.08)], &[Some(Verdict::Pass)], &POLICY);
        assert_eq!(unseen.fate, Fate::ImplementationFailed);
        assert!(unseen.saving.is_some_and(|(_, low, _)| low > 0.07), "what it saved is still said");
    }

    /// Blocks that show one end or the other equally often: the interval of their median spans both ends.
    fn between(low: f64, high: f64) -> Option<PairsObserved> {
        let blocks = (0..12).map(|i| vec![if i % 2 == 0 { low } else { high }.ln_1p()]).collect();
        Some(unordered(blocks))
    }

    fn interval(of: &Attribution) -> (f64, f64) {
        let (_, low, high) = of.saving.unwrap();
        ((low * 1000.0).round() / 10.0, (high * 1000.0).round() / 10.0)
    }
}
