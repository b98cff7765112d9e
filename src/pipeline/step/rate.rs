//! rate: is a baseline correct, and how does its device time compare with the champion's?

use kforge_engine::{Execution, Job, RunError};
use kforge_foundation::base::Severity;
use kforge_numerics::measure::judge::judge;
use kforge_numerics::measure::orders::Comparison;
use kforge_numerics::measure::sampling::BENCH;
use kforge_numerics::measure::second_device::confirmation;
use kforge_numerics::measure::stats::median;
use kforge_types::record::kind::baseline::documents::{BaselineObserved, Confirmation, RateParams, Rating, Ratio};
use kforge_types::record::kind::calls::documents::CallsObserved;
use kforge_types::record::params::Indecision;
use kforge_types::record::{Unknown, Verdict, VerifyObservation};

use super::io;
use super::judge::decided;

/// The code of the note that says that a baseline is wrong.
pub const WRONG: &str = "baseline.wrong";

/// The orders of a comparison disagree if their answers differ at this margin, which is that of the selection (docs/design.md, section 4.7).
const MARGIN: f64 = 0.01;

/// The samples of device time that give a time where the champion is wrong beside the baseline, as many as for a time of a kernel.
const LEAST_SAMPLES: usize = BENCH.least;

/// Runs the step.
pub fn run(job: &Job<'_>) -> Result<Execution, RunError> {
    let params: RateParams = io::params(job)?;
    let seen: BaselineObserved = io::required(job, "observation")?;
    let samples = seen.device_ns.len();
    let mut rating = rating(&params, seen, io::document(job, "calibration")?);
    let champion: Option<CallsObserved> = io::document(job, "champion")?;
    let launched: Option<VerifyObservation> = io::document(job, "launched")?;
    beside(&mut rating, (champion.as_ref(), launched.as_ref()), &params, samples);
    rating.is_unusual = params.confirm_above.zip(rating.ratio).is_some_and(|(above, ratio)| exceeds(ratio, above));
    if let Some(first) = io::document::<Rating>(job, "first")? {
        rating.confirmation = Some(match &rating.champion_wrong {
            Some(why) => {
                let why = format!("on a second device the champion is wrong: {why}");
                Confirmation::Unconfirmed { why, ratio: None }
            }
            None => confirmation(&first, &rating),
        });
    }
    let summary = match (&rating.verdict, rating.ratio) {
        (Verdict::Fail(why), _) => format!("wrong: {why}"),
        _ if rating.champion_wrong.is_some() => "the champion is wrong beside it".into(),
        _ if rating.confirmation.is_some() => confirmed(&rating),
        (_, Some(ratio)) if rating.of_calls => format!("{:.3} times the champion's call time", ratio.median),
        (_, Some(ratio)) => format!("{:.3} times the champion's device time", ratio.median),
        (Verdict::Unknown(why), None) => why.to_string(),
        (Verdict::Pass, None) => "correct".into(),
    };
    let mut ran = io::one(job, "rating", &rating, summary)?;
    if !rating.explanation.is_empty() {
        let text =
            format!("the baseline is wrong, so its times compare with nothing\n{}", rating.explanation.trim_end());
        ran.notes.push(io::note(Severity::Warning, WRONG, text));
    }
    Ok(ran)
}

/// Whether a ratio exceeds a factor, in the three decimals that reports show.
fn exceeds(ratio: Ratio, factor: f64) -> bool {
    (1000.0 * ratio.median).round() > (1000.0 * factor).round()
}

/// What the summary says of a second device.
fn confirmed(rating: &Rating) -> String {
    match &rating.confirmation {
        Some(Confirmation::Confirmed { ratio }) => format!("confirmed: {:.3} on a second device", ratio.median),
        Some(Confirmation::Unconfirmed { why, .. }) => format!("unconfirmed: {why}"),
        None => String::new(),
    }
}

/// Takes away what is no ratio because the champion is wrong beside the baseline, or because its calls were not timed, and says so. `samples` of device time
/// were taken.
fn beside(
    rating: &mut Rating,
    (called, launched): (Option<&CallsObserved>, Option<&VerifyObservation>),
    params: &RateParams,
    samples: usize,
) {
    let seen = called.map(|called| &called.compared).or(launched);
    let untimed = called.and_then(|called| called.untimed.as_ref());
    match (seen.map(|seen| judge(seen, &params.tolerance).verdict), untimed) {
        (Some(Verdict::Fail(why)), _) => rating.champion_wrong = Some(why),
        (_, Some(why)) if !matches!(rating.verdict, Verdict::Fail(_)) => {
            rating.verdict = Verdict::Unknown(Unknown::Missing(format!("calls were not timed: {why}")));
        }
        (_, Some(_)) => {}
        (_, None) => return,
    }
    (rating.ratio, rating.champion_ns) = (None, None);
    // Samples end where the champion is found wrong, which can be after a few.
    rating.device_ns = rating.device_ns.filter(|_| samples >= LEAST_SAMPLES);
}

fn rating(params: &RateParams, seen: BaselineObserved, calibration: Option<Indecision>) -> Rating {
    let mut judgement = judge(&seen.compared, &params.tolerance);
    let is_wrong = matches!(judgement.verdict, Verdict::Fail(_));
    judgement.verdict = match &params.absent {
        // What a baseline raises is known without expected values.
        Some(why) if !is_wrong => Verdict::Unknown(why.clone()),
        _ => decided(judgement.verdict, calibration),
    };
    let typical = |ns: &[f64]| Some(median(ns)).filter(|ns| ns.is_finite() && *ns > 0.0);
    let comparison = if is_wrong { None } else { Comparison::of(&[&seen.pairs]) };
    Rating {
        explanation: if is_wrong { judgement.explanation } else { String::new() },
        verdict: judgement.verdict,
        call_ns: typical(&seen.call_ns),
        device_ns: typical(&seen.device_ns),
        champion_ns: typical(&seen.champion_ns),
        ratio: comparison.map(|comparison| {
            let (middle, low, high) = comparison.interval;
            let disputed = comparison.contested(MARGIN).is_some();
            Ratio { median: middle.exp(), low: low.exp(), high: high.exp(), disputed }
        }),
        // A few late launches do not move a median.
        waited: 10 * u64::from(seen.waited) > seen.device_ns.len() as u64,
        of_calls: seen.of_calls,
        runs: seen.runs,
        versions: seen.versions,
        converted: seen.converted,
        device: seen.device,
        is_unusual: false,
        confirmation: None,
        champion_wrong: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::record::timing::{PairsObserved, Side};
    use kforge_types::record::{Finding, FindingKind, TrialObserved};

    fn seen(ratio: f64) -> BaselineObserved {
        let first = (0..8).map(|block| if block % 2 == 0 { Side::A } else { Side::B }).collect();
        BaselineObserved {
            runs: "PyTorch of f.py::g".into(),
            versions: [("torch".to_string(), "2.11.0".to_string())].into(),
            compared: VerifyObservation {
                trials: vec![TrialObserved { trial: 0, distribution: "normal".into(), outputs: vec![] }],
                ..VerifyObservation::begun(false, 1, "device".into())
            },
            converted: [].into(),
            pairs: PairsObserved { blocks: vec![vec![ratio.ln(); 4]; 8], first },
            device_ns: vec![2000.0 * ratio; 10],
            champion_ns: vec![2000.0; 10],
            call_ns: vec![9000.0, 9100.0, 9200.0],
            waited: 0,
            of_calls: false,
            device: "a".into(),
        }
    }

    fn rated(seen: BaselineObserved) -> Rating {
        let params = RateParams { tolerance: [].into(), absent: None, confirm_above: None };
        rating(&params, seen, Some(Indecision { why: None }))
    }

    #[test]
    fn a_ratio_is_of_device_times_and_call_times_stand_apart() {
        let found = rated(seen(1.5));
        assert_eq!((found.verdict, found.waited), (Verdict::Pass, false));
        assert_eq!((found.call_ns, found.device_ns, found.champion_ns), (Some(9100.0), Some(3000.0), Some(2000.0)));
        let ratio = found.ratio.unwrap();
        assert!((ratio.median - 1.5).abs() < 1e-9 && ratio.low <= ratio.median && ratio.median <= ratio.high);
        assert!(!ratio.disputed);
        let few = PairsObserved { blocks: vec![vec![0.1]], first: vec![] };
        assert_eq!(rated(BaselineObserved { pairs: few, ..seen(1.5) }).ratio, None);
    }

    #[test]
    fn a_wrong_baseline_has_no_ratio_and_says_why() {
        let mut wrong = seen(1.5);
        wrong.compared.findings.push(Finding::new(FindingKind::InputModified, "the input `x` was changed"));
        let found = rated(wrong);
        assert_eq!(found.verdict, Verdict::Fail("the input `x` was changed".into()));
        assert!(found.explanation.contains("`x` was changed") && found.ratio.is_none() && found.device_ns.is_some());
    }

    #[test]
    fn beside_a_champion_in_pytorch_that_is_wrong_there_is_no_ratio() {
        let params = RateParams { tolerance: [].into(), absent: None, confirm_above: None };
        let mut right = rated(BaselineObserved { of_calls: true, ..seen(1.5) });
        let calls = CallsObserved::begun(seen(1.5).compared);
        beside(&mut right, (Some(&calls), None), &params, 10);
        assert!(right.ratio.is_some() && right.of_calls);
        let mut called = calls.clone();
        called.compared.findings.push(Finding::new(FindingKind::InputModified, "the input `x` was changed"));
        let mut wrong = right.clone();
        beside(&mut wrong, (Some(&called), None), &params, 10);
        assert_eq!((wrong.ratio, wrong.verdict), (None, Verdict::Pass), "the verdict is the baseline's own");
        assert_eq!(wrong.champion_wrong.as_deref(), Some("the input `x` was changed"));
        let untimed = CallsObserved { untimed: Some("no memory".into()), ..calls };
        beside(&mut right, (Some(&untimed), None), &params, 10);
        assert_eq!((right.ratio, right.champion_wrong), (None, None));
    }

    #[test]
    fn beside_a_champion_whose_timed_launches_are_wrong_there_is_no_ratio() {
        let params = RateParams { tolerance: [].into(), absent: None, confirm_above: None };
        let mut found = rated(seen(1.5));
        let mut launched = VerifyObservation::begun(false, 0, "device".into());
        beside(&mut found, (None, None), &params, 10);
        assert!(found.ratio.is_some() && found.champion_wrong.is_none());
        launched.findings.push(Finding::new(FindingKind::KeepsState, "`y` differs"));
        let mut long = found.clone();
        beside(&mut long, (None, Some(&launched)), &params, LEAST_SAMPLES);
        assert_eq!((long.ratio, long.champion_ns, long.device_ns), (None, None, Some(3000.0)));
        beside(&mut found, (None, Some(&launched)), &params, LEAST_SAMPLES - 1);
        assert_eq!((found.ratio, found.champion_ns, found.device_ns), (None, None, None), "a few samples are no time");
        assert_eq!(found.champion_wrong.as_deref(), Some("`y` differs"));
    }

    #[test]
    fn what_was_not_compared_is_unknown_and_still_timed() {
        let params = RateParams {
            tolerance: [].into(),
            absent: Some(Unknown::TooLarge("1e15 operations".into())),
            confirm_above: None,
        };
        let uncompared = || {
            let compared = VerifyObservation::begun(false, 1, "device".into());
            BaselineObserved { compared, ..seen(0.5) }
        };
        let found = rating(&params, uncompared(), None);
        assert!(matches!(found.verdict, Verdict::Unknown(Unknown::TooLarge(_))) && found.ratio.is_some());
        let mut raised = uncompared();
        raised.compared.findings.push(Finding::new(FindingKind::Exited, "`f.py::g` raised ValueError"));
        let found = rating(&params, raised, None);
        assert!(matches!(found.verdict, Verdict::Fail(_)) && found.ratio.is_none());
    }

    #[test]
    fn a_ratio_exceeds_a_factor_if_reports_show_that_it_does() {
        let of = |median: f64| exceeds(Ratio { median, low: median, high: median, disputed: false }, 3.0);
        assert_eq!([2.9, 3.0, 3.0f64.ln().exp(), 3.0004, 3.0006].map(of), [false, false, false, false, true]);
    }

    #[test]
    fn device_times_that_hold_time_of_the_host_are_marked() {
        let waited = |waited| rated(BaselineObserved { waited, ..seen(1.5) }).waited;
        assert_eq!([0, 1, 2].map(waited), [false, false, true]);
    }
}
