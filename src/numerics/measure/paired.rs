//! What pairs say of A against B, in words and figures. Every report, command and attribution words a pair here, so that one pair reads the same everywhere.
//! Knows answers and shares of time; does not know who compares.
//!
//! | said | when |
//! |---|---|
//! | `slower`, `faster` | the whole interval lies beyond the margin |
//! | `same` | the whole interval lies within it |
//! | `undecided` | neither, or the two orders disagree |
//!
//! The figures are times of A over those of B, minus one: the median, and in brackets the ends of its interval of 95 %. A median alone has no word: it does not
//! decide. Whoever prints figures prints [`legend`] once below them.

use super::orders::Comparison;
use super::stats::{Paired, answer};

impl Paired {
    /// The word for A.
    pub fn name(self) -> &'static str {
        match self {
            Paired::Faster => "faster",
            Paired::Slower => "slower",
            Paired::Same => "same",
            Paired::Undecided => "undecided",
        }
    }
}

/// A share of time as a difference in percent: `-2.4 %`.
pub fn difference(share: f64) -> String {
    // What rounds to nothing has no sign.
    let tenths = (share * 1000.0).round();
    match tenths == 0.0 {
        true => "0.0 %".into(),
        false => format!("{:+.1} %", tenths / 10.0),
    }
}

/// The figures: `+1.8 % [+0.9, +2.5]`; without an interval, the median.
pub fn figures(median: f64, ends: Option<(f64, f64)>) -> String {
    let bare = |share: f64| difference(share).trim_end_matches(" %").to_string();
    let ends = ends.map(|(low, high)| format!(" [{}, {}]", bare(low), bare(high)));
    format!("{}{}", difference(median), ends.unwrap_or_default())
}

/// A share as a percentage in as few decimals as show it: `1 %`, `2.5 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", (share * 1e4).round() / 100.0)
}

/// What the figures mean where `a` is compared with `b`.
pub fn legend(a: &str, b: &str, margin: f64) -> String {
    format!(
        "signs: + means that {a} is slower than {b}, - that it is faster; brackets hold the interval of 95 %; the margin is {}",
        percent(margin)
    )
}

/// The answer and the figures: `undecided, +1.8 % [+0.9, +2.5]`.
pub fn said(answer: Paired, median: f64, ends: (f64, f64)) -> String {
    format!("{}, {}", answer.name(), figures(median, Some(ends)))
}

/// The answer of a recorded interval, in shares of time, at a margin. Undecided if the two orders disagree.
pub fn answer_of(median: f64, (low, high): (f64, f64), disagree: bool, margin: f64) -> Paired {
    match disagree {
        true => Paired::Undecided,
        false => answer((median.ln_1p(), low.ln_1p(), high.ln_1p()), margin),
    }
}

impl Comparison {
    /// The answer at a margin and the figures.
    pub fn said(&self, margin: f64) -> String {
        let (median, low, high) = self.interval;
        said(self.decide(margin), median.exp_m1(), (low.exp_m1(), high.exp_m1()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::record::timing::PairsObserved;

    #[test]
    fn a_word_stands_only_where_the_whole_interval_decides() {
        let of = |low: f64, high: f64| {
            let median = f64::midpoint(low, high);
            said(answer_of(median, (low, high), false, 0.01), median, (low, high))
        };
        assert_eq!(of(0.02, 0.03), "slower, +2.5 % [+2.0, +3.0]");
        assert_eq!(of(-0.03, -0.02), "faster, -2.5 % [-3.0, -2.0]");
        assert_eq!(of(-0.004, 0.004), "same, 0.0 % [-0.4, +0.4]");
        assert_eq!(of(0.009, 0.025), "undecided, +1.7 % [+0.9, +2.5]");
        assert_eq!(answer_of(0.02, (0.02, 0.03), true, 0.01), Paired::Undecided);
        assert_eq!((figures(0.02, None), difference(-0.0001)), ("+2.0 %".into(), "0.0 %".into()));
    }

    #[test]
    fn a_margin_has_no_more_decimals_than_it_needs() {
        assert_eq!([0.01, 0.025, 0.0025, 0.0].map(percent), ["1 %", "2.5 %", "0.25 %", "0 %"]);
        assert!(legend("A", "B", 0.02).starts_with("signs: + means that A is slower than B"));
        assert!(legend("A", "B", 0.02).ends_with("the margin is 2 %"));
    }

    #[test]
    fn a_recorded_interval_is_worded_as_the_pairs_themselves() {
        let blocks = (0..=20).map(|i| vec![(0.02 + 0.001 * f64::from(i)).ln_1p()]).collect();
        let found = Comparison::of(&[&PairsObserved { blocks, first: vec![] }]).unwrap();
        let (median, low, high) = found.interval;
        let shares = (median.exp_m1(), (low.exp_m1(), high.exp_m1()));
        let recorded = said(answer_of(shares.0, shares.1, false, 0.01), shares.0, shares.1);
        assert_eq!(found.said(0.01), recorded);
        assert!(recorded.starts_with("slower, +3.0 % [+2."), "{recorded}");
    }
}
