//! Classes of shapes in words: for which shapes a champion is, why a class was split, and where another variant is faster than the champion. Knows names;
//! selects nothing.

use serde::{Deserialize, Serialize};

use super::text::variant;
use crate::plan::kernels::MARGIN;
use kforge_numerics::measure::paired::{answer_of, difference, said};
use kforge_numerics::measure::stats::Paired;
use kforge_types::record::params::{Champion, Overtaken, PairsWithChampion, Stays, split_from};

/// The shapes for which a champion is selected, as a part of a line: empty for all shapes, otherwise ` for SHAPE`, or ` for r = 2`, where `per` is the
/// expression `r` and 2 is its value. A shape that was split from its class follows as ` at SHAPE`.
pub fn stands_for(per: Option<&str>, class: &str) -> String {
    if let Some((class, shape)) = split_from(class) {
        return format!("{} at {shape}", stands_for(per, class));
    }
    match per {
        None if class == "all" => String::new(),
        None => format!(" for {class}"),
        Some(name) if name.chars().all(|c| c.is_alphanumeric() || c == '_') => format!(" for {name} = {class}"),
        Some(expression) => format!(" for `{expression}` = {class}"),
    }
}

/// Why a champion was selected, with the names of variants, shapes and classes.
pub fn reason(
    champion: &Champion,
    of_variant: &dyn Fn(u32) -> String,
    of_shape: &dyn Fn(u32) -> String,
    of_class: &dyn Fn(&str) -> String,
) -> String {
    let Some(gain) = &champion.gain else { return champion.because.clone() };
    let (over, shape) = (of_variant(gain.over), of_shape(gain.shape));
    let over = match split_from(&champion.class) {
        Some((class, _)) => format!("{} of class {} at {shape}", variant(&over), of_class(class)),
        // The class itself has another champion since it has split.
        None => format!("{}, the champion of the undivided class, at {shape}", variant(&over)),
    };
    gain.reason(&over)
}

/// A bench shape at which another variant is faster than the champion, as far as is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OvertakenReport {
    /// The shape.
    pub shape: String,
    /// The other variant.
    pub by: String,
    /// The share of the champion's time that it saves: from pairs if they decide, otherwise from medians.
    pub faster_by: f64,
    /// Why the champion stays.
    pub because: Stays,
    /// The pairs of the two with each other, where pairs do not decide; none if each was paired only with a third.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<PairsWithChampion>,
}

impl OvertakenReport {
    /// The report of a finding, given its names.
    pub fn of(found: &Overtaken, shape: String, by: String) -> Self {
        let Overtaken { faster_by, because, pairs, .. } = found.clone();
        OvertakenReport { shape, by, faster_by, because, pairs }
    }

    /// The finding in one line.
    pub fn line(&self) -> String {
        let OvertakenReport { shape, by, faster_by, because, pairs } = self;
        let by = variant(by);
        let in_pairs = match (because, pairs) {
            (Stays::Classes, _) => {
                return format!(
                    "at {shape}, {by} is {:.1} % {} than the champion, but `select.classes` allows no more classes",
                    faster_by * 100.0,
                    Paired::Faster.name()
                );
            }
            (Stays::Unpaired, _) => "not compared in pairs".to_string(),
            (Stays::Undecided, None) => format!("in pairs: {}", Paired::Undecided.name()),
            (Stays::Undecided, Some(pairs)) => {
                let disagree = if pairs.orders_disagree { "; the two orders disagree" } else { "" };
                let answer = answer_of(pairs.slower_by, pairs.interval, pairs.orders_disagree, MARGIN);
                format!("in pairs: {}{disagree}", said(answer, pairs.slower_by, pairs.interval))
            }
        };
        format!("at {shape}, {by} against the champion: median {}; {in_pairs}", difference(-faster_by))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::record::params::Gain;

    #[test]
    fn a_champion_says_for_which_shapes_it_is() {
        let all = [
            (None, "all", ""),
            (None, "llama", " for llama"),
            (None, "all@llama", " at llama"),
            (Some("r"), "2", " for r = 2"),
            (Some("r"), "2@llama", " for r = 2 at llama"),
            (Some("n > 9"), "true@a", " for `n > 9` = true at a"),
        ];
        for (per, class, expected) in all {
            assert_eq!(stands_for(per, class), expected, "{class}");
        }
    }

    #[test]
    fn the_reason_of_a_split_names_the_champion_that_is_slower() {
        let gain = Gain { over: 1, shape: 3, faster_by: 0.031, interval: (0.024, 0.039), tied: 1, pinned: false };
        let split = |class: &str, gain: Option<Gain>| Champion {
            class: class.into(),
            shapes: vec![3],
            variant: Some(0),
            provisional: false,
            because: "x".into(),
            gain,
            ties: vec![],
        };
        let of = |champion: &Champion| {
            let class = |class: &str| if class == "0" { "all".to_string() } else { class.into() };
            reason(champion, &|v| format!("V={v}"), &|s| format!("s{s}"), &class)
        };
        assert_eq!(of(&split("0", None)), "x");
        assert_eq!(of(&split("0@3", Some(gain.clone()))), "3.1 % [2.4, 3.9] faster than V=1 of class all at s3");
        let of_class = of(&split("0", Some(Gain { tied: 2, ..gain.clone() })));
        assert!(of_class.ends_with("at s3; first declared of 2 variants that tie for fastest there"), "{of_class}");
        assert!(of(&split("0@3", Some(Gain { pinned: true, ..gain }))).ends_with("; pinned in kforge.lock"));
    }

    #[test]
    fn a_shape_with_a_faster_variant_says_why_the_champion_stays() {
        let line = |because, pairs| {
            let found = Overtaken { shape: 0, by: 1, faster_by: 0.096, because, pairs };
            OvertakenReport::of(&found, "llama".into(), "V=2".into()).line()
        };
        let begins = "at llama, V=2 against the champion: median -9.6 %; ";
        assert_eq!(line(Stays::Undecided, None), format!("{begins}in pairs: undecided"));
        let pairs =
            |orders_disagree| Some(PairsWithChampion { slower_by: -0.006, interval: (-0.014, 0.003), orders_disagree });
        let in_pairs = format!("{begins}in pairs: undecided, -0.6 % [-1.4, +0.3]");
        assert_eq!(line(Stays::Undecided, pairs(false)), in_pairs);
        assert_eq!(line(Stays::Undecided, pairs(true)), format!("{in_pairs}; the two orders disagree"));
        // The two can be decided where the choice of a split shape was made through a third.
        let decided = PairsWithChampion { slower_by: -0.03, interval: (-0.04, -0.02), orders_disagree: false };
        let faster = format!("{begins}in pairs: faster, -3.0 % [-4.0, -2.0]");
        assert_eq!(line(Stays::Undecided, Some(decided)), faster);
        assert_eq!(line(Stays::Unpaired, None), format!("{begins}not compared in pairs"));
        let faster = "at llama, V=2 is 9.6 % faster than the champion, but `select.classes` allows no more classes";
        assert_eq!(line(Stays::Classes, None), faster);
    }
}
