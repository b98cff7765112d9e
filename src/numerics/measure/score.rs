//! Scores: of one candidate against a baseline, and of many. Knows verdicts, speed-ups and profiling ratios; does not know where they come from.
//!
//! | score | for a correct candidate that is s times as fast | source |
//! |---|---|---|
//! | speed-up | s | the common measure of KernelBench and its successors |
//! | logistic | s^k / (1 + s^k), 0.5 at parity, k = [`STEEPNESS`] | the reward that Makora describes; it states no constants, so k is given with the score |
//! | weighted | 0.5, + 0.5 if s is at least 1.01, + 0.25 of the profiling ratio | Dr. Kernel's `calculate_reward_weighted` with its coverage term |
//!
//! Every score of a wrong candidate is 0. Unknown is not 0: a candidate that was not verified or not timed has a score between bounds. A suite reports the
//! number of such candidates, gives bounds for its shares, and leaves them out of statistics without bounds. The profiling ratio is the share of the time that
//! is spent in the candidate's own code.
//!
//! For suites, as the papers define them: the correctness rate; the median, geometric mean and 75th percentile of speed-ups over correct candidates; and
//! fast_p, the share of *all* candidates that are correct and more than p times as fast (KernelBench).

use serde::{Deserialize, Serialize};

use super::stats::{geometric_mean, median};

/// The exponent k of the logistic score: with k = 1, a candidate that is twice as fast scores 2/3.
pub const STEEPNESS: f64 = 1.0;
/// The speed-up from which a candidate counts as faster (Dr. Kernel: one percent).
const FASTER: f64 = 1.01;
/// The weights of being correct, of being faster, and of the profiling ratio.
const WEIGHTS: (f64, f64, f64) = (0.5, 0.5, 0.25);

/// The form of a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// How many times as fast.
    Speedup,
    /// The speed-up mapped to 0 to 1, 0.5 at parity.
    Logistic,
    /// Whether it is correct, whether it is faster, and how much of its time is spent in its own code.
    Weighted,
}

/// What is known about a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Scored {
    /// Whether it is correct; none if unknown.
    pub correct: Option<bool>,
    /// The baseline's time over the candidate's time; none if either is unknown.
    pub speedup: Option<f64>,
    /// Share of the candidate's time that is spent in its own code; none if unknown.
    pub ratio: Option<f64>,
}

/// A score: known if both bounds are the same.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Score {
    /// The lower bound.
    pub at_least: f64,
    /// The upper bound; none if the score is unbounded.
    pub at_most: Option<f64>,
}

impl Score {
    fn known(value: f64) -> Self {
        Score { at_least: value, at_most: Some(value) }
    }

    /// The score, if it is known.
    pub fn value(&self) -> Option<f64> {
        self.at_most.filter(|most| *most == self.at_least)
    }
}

/// The score of a candidate.
pub fn score(form: Form, of: &Scored) -> Score {
    if of.correct == Some(false) {
        return Score::known(0.0);
    }
    let speedup = of.speedup.filter(|s| s.is_finite() && *s > 0.0);
    let right = match form {
        Form::Speedup => speedup.map_or(Score { at_least: 0.0, at_most: None }, Score::known),
        Form::Logistic => speedup.map_or(Score { at_least: 0.0, at_most: Some(1.0) }, |s| Score::known(logistic(s))),
        Form::Weighted => {
            let faster = speedup.map(|s| f64::from(u8::from(s >= FASTER)));
            let ratio = of.ratio.map(|r| r.clamp(0.0, 1.0));
            let sum = |or: f64| WEIGHTS.0 + WEIGHTS.1 * faster.unwrap_or(or) + WEIGHTS.2 * ratio.unwrap_or(or);
            Score { at_least: sum(0.0), at_most: Some(sum(1.0)) }
        }
    };
    match of.correct {
        Some(_) => right,
        // The candidate may be wrong.
        None => Score { at_least: 0.0, ..right },
    }
}

/// s^k / (1 + s^k), in a form that does not overflow.
fn logistic(speedup: f64) -> f64 {
    1.0 / (1.0 + (-STEEPNESS * speedup.ln()).exp())
}

/// The share of all candidates that are correct and more than p times as fast.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Fast {
    /// The factor p.
    pub p: f64,
    /// The share if no unknown candidate counts.
    pub at_least: f64,
    /// The share if every unknown candidate counts.
    pub at_most: f64,
}

/// The scores of a suite of candidates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Suite {
    /// The number of candidates.
    pub candidates: u32,
    /// The number known to be correct.
    pub correct: u32,
    /// The number known to be wrong.
    pub wrong: u32,
    /// The number whose correctness is unknown.
    pub unverified: u32,
    /// The number known to be correct whose speed-up is unknown: left out of median, mean and percentile.
    pub untimed: u32,
    /// The share that is correct: if no unverified candidate is correct, and if all are. None without candidates.
    pub correctness: Option<(f64, f64)>,
    /// The mean of the requested score. None without candidates.
    pub mean: Option<Score>,
    /// The median of the known speed-ups of correct candidates; none if there are none. The same holds for the next two.
    pub median: Option<f64>,
    /// Their geometric mean.
    pub geometric_mean: Option<f64>,
    /// Their 75th percentile, by linear interpolation between neighbors.
    pub percentile_75: Option<f64>,
    /// fast_p for each requested p.
    pub fast: Vec<Fast>,
}

/// The scores of these candidates, for one form of score and for these p.
pub fn suite(form: Form, of: &[Scored], ps: &[f64]) -> Suite {
    let n = of.len() as f64;
    let count = |takes: &dyn Fn(&Scored) -> bool| of.iter().filter(|c| takes(c)).count() as u32;
    let correct = count(&|c| c.correct == Some(true));
    // A speed-up that is not a positive number counts as unknown.
    let timed = |c: &Scored| c.speedup.filter(|s| s.is_finite() && *s > 0.0);
    let unverified = count(&|c| c.correct.is_none());
    let mut speedups: Vec<f64> = of.iter().filter(|c| c.correct == Some(true)).filter_map(timed).collect();
    speedups.sort_by(f64::total_cmp);
    let of_some = |value: &dyn Fn(&[f64]) -> f64| (!speedups.is_empty()).then(|| value(&speedups));
    let fast = |p: &f64| {
        // For a candidate that is not wrong, its correctness or its speed-up may be unknown.
        // Every correct candidate is more than 0 times as fast: fast_0 is the correctness rate.
        let sure = count(&|c| c.correct == Some(true) && timed(c).map_or(*p <= 0.0, |s| s > *p));
        let perhaps = count(&|c| c.correct != Some(false) && timed(c).is_none_or(|s| s > *p));
        Fast { p: *p, at_least: f64::from(sure) / n, at_most: f64::from(perhaps) / n }
    };
    let scores: Vec<Score> = of.iter().map(|c| score(form, c)).collect();
    let mean = Score {
        at_least: scores.iter().map(|s| s.at_least).sum::<f64>() / n,
        at_most: scores.iter().map(|s| s.at_most).sum::<Option<f64>>().map(|sum| sum / n),
    };
    Suite {
        candidates: of.len() as u32,
        correct,
        wrong: count(&|c| c.correct == Some(false)),
        unverified,
        untimed: count(&|c| c.correct == Some(true) && timed(c).is_none()),
        correctness: (!of.is_empty()).then(|| (f64::from(correct) / n, f64::from(correct + unverified) / n)),
        mean: (!of.is_empty()).then_some(mean),
        median: of_some(&median),
        geometric_mean: of_some(&geometric_mean),
        percentile_75: of_some(&|sorted| percentile(sorted, 0.75)),
        fast: if of.is_empty() { vec![] } else { ps.iter().map(fast).collect() },
    }
}

/// The percentile of sorted values at a share: interpolated between the two nearest values.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let at = share * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    low + (high - low) * at.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn right(speedup: f64) -> Scored {
        Scored { correct: Some(true), speedup: Some(speedup), ratio: Some(1.0) }
    }

    fn wrong() -> Scored {
        Scored { correct: Some(false), ..right(9.0) }
    }

    const FORMS: [Form; 3] = [Form::Speedup, Form::Logistic, Form::Weighted];

    #[test]
    fn a_wrong_candidate_scores_zero_however_fast() {
        for form in FORMS {
            assert_eq!(score(form, &wrong()).value(), Some(0.0));
            assert_eq!(score(form, &Scored { correct: Some(false), ..Scored::default() }).value(), Some(0.0));
        }
    }

    #[test]
    fn a_right_one_scores_by_its_speed_up() {
        assert_eq!(score(Form::Speedup, &right(1.7)).value(), Some(1.7));
        let logistic = |s: f64| score(Form::Logistic, &right(s)).value().unwrap();
        assert_eq!(logistic(1.0), 0.5);
        assert!((logistic(2.0) - 2.0 / 3.0).abs() < 1e-12 && (logistic(0.5) - 1.0 / 3.0).abs() < 1e-12);
        assert!(logistic(1e300) <= 1.0 && logistic(1e-300) >= 0.0);
        let weighted = |s: f64, ratio: f64| score(Form::Weighted, &Scored { ratio: Some(ratio), ..right(s) }).value();
        assert_eq!((weighted(1.01, 1.0), weighted(1.009, 1.0)), (Some(1.25), Some(0.75)));
        assert_eq!((weighted(2.0, 0.0), weighted(0.1, 0.4)), (Some(1.0), Some(0.6)));
    }

    #[test]
    fn what_is_unknown_is_between_bounds_and_not_zero() {
        let untimed = Scored { speedup: None, ..right(1.0) };
        let unverified = Scored { correct: None, ..right(2.0) };
        let nothing = Scored::default();
        let bounds = |form, of| (score(form, of).at_least, score(form, of).at_most);
        assert_eq!(bounds(Form::Speedup, &untimed), (0.0, None));
        assert_eq!(bounds(Form::Speedup, &unverified), (0.0, Some(2.0)));
        assert_eq!(bounds(Form::Logistic, &untimed), (0.0, Some(1.0)));
        assert_eq!(bounds(Form::Logistic, &unverified), (0.0, Some(logistic(2.0))));
        assert_eq!(bounds(Form::Weighted, &untimed), (0.75, Some(1.25)));
        assert_eq!(bounds(Form::Weighted, &unverified), (0.0, Some(1.25)));
        assert_eq!(bounds(Form::Weighted, &Scored { ratio: None, ..right(2.0) }), (1.0, Some(1.25)));
        for form in FORMS {
            assert!(score(form, &nothing).value().is_none());
        }
        let odd = Scored { speedup: Some(f64::NAN), ..right(1.0) };
        assert_eq!(score(Form::Speedup, &odd).value(), None);
    }

    #[test]
    fn a_suite_is_over_all_of_them() {
        let of = [right(0.5), right(1.0), right(2.0), right(4.0), wrong()];
        let found = suite(Form::Logistic, &of, &[1.0, 1.2, 0.0]);
        assert_eq!((found.candidates, found.correct, found.wrong, found.unverified, found.untimed), (5, 4, 1, 0, 0));
        assert_eq!(found.correctness, Some((0.8, 0.8)));
        assert_eq!((found.median, found.percentile_75), (Some(1.5), Some(2.5)));
        assert!((found.geometric_mean.unwrap() - 2f64.sqrt()).abs() < 1e-12);
        let shares: Vec<(f64, f64)> = found.fast.iter().map(|f| (f.at_least, f.at_most)).collect();
        assert_eq!(
            shares,
            [(0.4, 0.4), (0.4, 0.4), (0.8, 0.8)],
            "parity is not faster, and the wrong one counts in all"
        );
        let mean = (1.0 / 3.0 + 0.5 + 2.0 / 3.0 + 0.8) / 5.0;
        assert!((found.mean.unwrap().value().unwrap() - mean).abs() < 1e-12);
    }

    #[test]
    fn a_suite_with_unknowns_says_how_many_and_gives_bounds() {
        let untimed = Scored { speedup: None, ..right(1.0) };
        let unverified = Scored { correct: None, ..right(3.0) };
        let found = suite(Form::Speedup, &[right(2.0), wrong(), untimed, unverified], &[1.0, 5.0, 0.0, 1e308]);
        assert_eq!((found.correct, found.unverified, found.untimed), (2, 1, 1));
        assert_eq!(found.correctness, Some((0.5, 0.75)));
        assert_eq!((found.median, found.geometric_mean), (Some(2.0), Some(2.0)), "of the one that is known");
        let shares: Vec<(f64, f64)> = found.fast.iter().map(|f| (f.at_least, f.at_most)).collect();
        assert_eq!(shares, [(0.25, 0.75), (0.0, 0.25), (0.5, 0.75), (0.0, 0.25)], "fast_0 is the correctness rate");
        let odd = Scored { speedup: Some(f64::INFINITY), ..right(1.0) };
        let odd = suite(Form::Speedup, &[odd, Scored { speedup: Some(f64::NAN), ..right(1.0) }], &[1.0]);
        assert_eq!((odd.untimed, odd.median, odd.fast[0].at_least, odd.fast[0].at_most), (2, None, 0.0, 1.0));
        assert_eq!(found.mean, Some(Score { at_least: 0.5, at_most: None }));
    }

    #[test]
    fn a_suite_of_nothing_has_no_numbers() {
        let none = suite(Form::Speedup, &[], &[1.0]);
        assert_eq!((none.correctness, none.mean, none.median, none.fast.len()), (None, None, None, 0));
        let all_wrong = suite(Form::Speedup, &[wrong(), wrong()], &[1.0]);
        assert_eq!((all_wrong.median, all_wrong.fast[0].at_most), (None, 0.0));
        assert_eq!(all_wrong.mean.unwrap().value(), Some(0.0));
    }
}
