//! Whether a second device of the class confirms a speed-up over a baseline. Pure: knows the ratings of both; does not know which ratios need it.
//!
//! A large speed-up is more often a fault of one device or of its measurement than a fact: a throttled baseline, an L2 cache that another client fills. Both
//! devices time the baseline beside the champion by pairs, so a device that is slower as a whole gives the same ratio.

use kforge_types::record::Verdict;
use kforge_types::record::kind::baseline::documents::{Confirmation, Rating};

/// The most by which the ratio of the second device may differ from the first's, as a share of the first's.
pub const AGREES_WITHIN: f64 = 0.1;

/// Why the ratio of an older observation has no confirmation.
pub const UNNAMED: &str = "the measurement does not say on which device it was made: `--remeasure` repeats it";

/// What the second device says of the first's ratio.
pub fn confirmation(first: &Rating, second: &Rating) -> Confirmation {
    let ratio = second.ratio;
    let open = |why: String| Confirmation::Unconfirmed { why, ratio };
    let (Some(claimed), false) = (first.ratio, first.device.is_empty()) else {
        return open(UNNAMED.into());
    };
    if first.device == second.device || second.device.is_empty() {
        return open("both measurements were made on one device: `--remeasure` repeats them".into());
    }
    let Some(found) = ratio else {
        return open(match &second.verdict {
            Verdict::Fail(why) => format!("on a second device the baseline is wrong: {why}"),
            Verdict::Unknown(why) => format!("on a second device: {why}"),
            Verdict::Pass => "a second device gave too few pairs".into(),
        });
    };
    if (found.median / claimed.median - 1.0).abs() <= AGREES_WITHIN {
        return Confirmation::Confirmed { ratio: found };
    }
    open(format!(
        "a second device measures {:.3}, which differs from it by more than {:.0} %",
        found.median,
        100.0 * AGREES_WITHIN
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::record::kind::baseline::documents::Ratio;
    use serde_json::json;

    fn rated(device: &str, ratio: Option<f64>) -> Rating {
        let ratio = ratio.map(|r| Ratio { median: r, low: r, high: r, disputed: false });
        serde_json::from_value(json!({ "verdict": Verdict::Pass, "ratio": ratio, "device": device })).unwrap()
    }

    fn why(found: Confirmation) -> String {
        match found {
            Confirmation::Unconfirmed { why, .. } => why,
            Confirmation::Confirmed { .. } => "confirmed".into(),
        }
    }

    #[test]
    fn a_second_device_confirms_a_ratio_within_ten_per_cent_of_it() {
        let of = |second: f64| why(confirmation(&rated("a", Some(5.0)), &rated("b", Some(second))));
        for near in [4.51, 5.0, 5.49] {
            assert_eq!(of(near), "confirmed");
        }
        for far in [4.49, 5.51] {
            assert!(of(far).starts_with(&format!("a second device measures {far:.3}")), "{}", of(far));
        }
    }

    #[test]
    fn only_another_device_and_a_correct_baseline_confirm() {
        let first = rated("a", Some(5.0));
        assert!(why(confirmation(&first, &rated("a", Some(5.0)))).contains("on one device"));
        assert!(why(confirmation(&first, &rated("", Some(5.0)))).contains("on one device"));
        assert!(why(confirmation(&rated("", Some(5.0)), &first)).contains("--remeasure"));
        assert!(why(confirmation(&first, &rated("b", None))).contains("too few pairs"));
        let wrong = Rating { verdict: Verdict::Fail("`y`".into()), ..rated("b", None) };
        assert!(why(confirmation(&first, &wrong)).contains("is wrong: `y`"));
    }
}
