//! Attribution: whether machine code shows a method, and the time without it minus the time with it (docs/design.md, section 9.5).

use super::stats::{block_interval, over_shapes};
use kforge_types::record::Verdict;
use kforge_types::record::params::{Attribution, Fate, Matched, Shown};
use kforge_types::record::timing::PairsObserved;

/// The reason if the kernel without the method has no result: there was no device, or the kernel could not be built.
const UNTRIED: &str =
    "the kernel without it was neither verified nor timed on a device, so the saving of the method is unknown";

/// Classifies a method from its match, from pairs of (without, with), and from the verdict on the kernel without the method, at each shape where these were
/// requested; none if that step had no result. `threshold` is the share of time (0.02) that the lower bound of the interval must exceed.
pub fn attribute(
    matched: Option<&Matched>,
    pairs: &[Option<PairsObserved>],
    without: &[Option<Verdict>],
    threshold: f64,
) -> Attribution {
    // A saving covers all bench shapes: if it is unknown at one shape, it is unknown.
    let blocks: Option<Vec<&[Vec<f64>]>> = pairs.iter().map(|p| p.as_ref().map(|p| p.blocks.as_slice())).collect();
    // Log-ratios of time(without)/time(with): the saving relative to the champion is their exponential minus one.
    let interval = blocks.and_then(|b| block_interval(&over_shapes(&b)));
    let interval = interval.map(|(m, l, h)| (m.exp_m1(), l.exp_m1(), h.exp_m1()));
    let without = worst(without);
    // The text of a verdict may name a shape.
    let detail = match (matched.map(|m| &m.shown), without) {
        (Some(Shown::Shown), Some(Verdict::Fail(why))) => Some(why.clone()),
        (Some(Shown::Shown), Some(Verdict::Unknown(why))) => Some(why.to_string()),
        _ => None,
    };
    let (fate, because) = match (matched.map(|m| &m.shown), without, interval) {
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
        (.., Some((_, low, _))) if low > threshold => (Fate::Effective, format!("saves at least {:.1} %", low * 100.0)),
        (.., Some((_, low, _))) => (
            Fate::Ineffective,
            format!("saves at least {:.1} %, which is within the noise of {:.1} %", low * 100.0, threshold * 100.0),
        ),
    };
    Attribution { fate, because, detail, saving: interval }
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

    fn shown(shown: Shown) -> Matched {
        Matched { shown, counts: vec![] }
    }

    fn pairs(low: f64, high: f64) -> PairsObserved {
        PairsObserved { blocks: (0..=20).map(|i| vec![(low + (high - low) * f64::from(i) / 20.0).ln_1p()]).collect() }
    }

    fn fate(m: Shown, p: Option<PairsObserved>, v: Verdict) -> Fate {
        attribute(Some(&shown(m)), &[p], &[Some(v)], 0.02).fate
    }

    #[test]
    fn what_a_verdict_adds_is_apart_from_the_reason() {
        let bad =
            attribute(Some(&shown(Shown::Shown)), &[None], &[Some(Verdict::Fail("`y` is wrong at 7918".into()))], 0.02);
        assert_eq!(
            (&*bad.because, bad.detail.as_deref()),
            ("the kernel without it is wrong", Some("`y` is wrong at 7918"))
        );
        assert_eq!(bad.reason(), "the kernel without it is wrong: `y` is wrong at 7918");
        let unknown = Some(Verdict::Unknown(Unknown::Missing("only 1 of 4 trials were compared".into())));
        let open = attribute(Some(&shown(Shown::Shown)), &[None], &[unknown], 0.02);
        assert_eq!(open.because, "it is unknown whether the kernel without it is correct");
        assert_eq!(open.detail.as_deref(), Some("missing: only 1 of 4 trials were compared"));
        let faster = attribute(Some(&shown(Shown::Shown)), &[Some(pairs(0.5, 0.6))], &[Some(Verdict::Pass)], 0.02);
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
    fn code_that_does_not_show_it_failed_whatever_the_time() {
        assert_eq!(fate(Shown::NotShown, Some(pairs(0.5, 0.6)), Verdict::Pass), Fate::ImplementationFailed);
    }

    #[test]
    fn unknowns_and_a_wrong_ablation_are_inconclusive() {
        assert_eq!(fate(Shown::Unknown("x".into()), Some(pairs(0.5, 0.6)), Verdict::Pass), Fate::Inconclusive);
        assert_eq!(fate(Shown::Shown, Some(pairs(0.5, 0.6)), Verdict::Fail("x".into())), Fate::Inconclusive);
        assert_eq!(fate(Shown::Shown, None, Verdict::Pass), Fate::Inconclusive);
        assert_eq!(attribute(None, &[], &[], 0.02).fate, Fate::Inconclusive);
        // The reason says which of the two is unknown: the kernel was never tried, or it has times but no verdict.
        let of = |pairs| attribute(Some(&shown(Shown::Shown)), &[pairs], &[None], 0.02).because;
        assert_eq!(of(None), UNTRIED);
        assert!(of(Some(pairs(0.5, 0.6))).contains("was not verified, so its times"), "{}", of(Some(pairs(0.5, 0.6))));
    }

    #[test]
    fn every_shape_counts() {
        let at =
            |p: &[Option<PairsObserved>], v: &[Option<Verdict>]| attribute(Some(&shown(Shown::Shown)), p, v, 0.02).fate;
        let (pass, fast, slow) = (Some(Verdict::Pass), Some(pairs(0.5, 0.6)), Some(pairs(-0.5, -0.4)));
        let passes = [pass.clone(), pass.clone()];
        assert_eq!(at(&[fast.clone(), fast.clone()], &passes), Fate::Effective);
        assert_eq!(at(&[fast.clone(), slow], &passes), Fate::Ineffective);
        assert_eq!(at(&[fast.clone(), None], &passes), Fate::Inconclusive);
        for bad in [None, Some(Verdict::Fail("x".into()))] {
            assert_eq!(at(&[fast.clone(), fast.clone()], &[pass.clone(), bad]), Fate::Inconclusive);
        }
    }

    /// Pairs in which every block shows the same saving, so that the interval is that saving.
    fn exactly(saving: f64) -> Option<PairsObserved> {
        Some(PairsObserved { blocks: vec![vec![saving.ln_1p()]; 12] })
    }

    #[test]
    fn the_worked_example() {
        // Milliseconds of the champion, and of the champion without each of its methods: issue 3, check 6.
        let (champion, a, b, c) = (2.14, 4.82, 2.31, 2.19);
        let told = |without: f64| {
            let pairs = exactly(without / champion - 1.0);
            attribute(Some(&shown(Shown::Shown)), &[pairs], &[Some(Verdict::Pass)], 0.02)
        };
        let saved = |a: &Attribution| (a.saving.unwrap().0 * 1000.0).round() / 10.0;
        let (a, b, c) = (told(a), told(b), told(c));
        assert_eq!((a.fate, saved(&a)), (Fate::Effective, 125.2));
        assert_eq!((b.fate, saved(&b)), (Fate::Effective, 7.9));
        // The median is 2.3 %, but the interval decides.
        assert_eq!(saved(&c), 2.3);
        let c = |low: f64, high: f64| {
            attribute(Some(&shown(Shown::Shown)), &[between(low, high)], &[Some(Verdict::Pass)], 0.02)
        };
        let (wide, narrow) = (c(0.016, 0.031), c(0.021, 0.026));
        assert_eq!((wide.fate, interval(&wide)), (Fate::Ineffective, (1.6, 3.1)));
        assert_eq!((narrow.fate, interval(&narrow)), (Fate::Effective, (2.1, 2.6)));
        // The compiler did not emit the method, though the kernel is faster with it.
        let unseen = attribute(Some(&shown(Shown::NotShown)), &[exactly(0.08)], &[Some(Verdict::Pass)], 0.02);
        assert_eq!(unseen.fate, Fate::ImplementationFailed);
        assert!(unseen.saving.is_some_and(|(_, low, _)| low > 0.07), "what it saved is still said");
    }

    /// Blocks that show one end or the other equally often: the interval of their median spans both ends.
    fn between(low: f64, high: f64) -> Option<PairsObserved> {
        let blocks = (0..12).map(|i| vec![if i % 2 == 0 { low } else { high }.ln_1p()]).collect();
        Some(PairsObserved { blocks })
    }

    fn interval(of: &Attribution) -> (f64, f64) {
        let (_, low, high) = of.saving.unwrap();
        ((low * 1000.0).round() / 10.0, (high * 1000.0).round() / 10.0)
    }
}
