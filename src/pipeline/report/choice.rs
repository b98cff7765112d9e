//! Why a variant is the champion of a class of shapes: its rivals, and what is known of each, as a document and as text. Knows what the selection read; selects
//! nothing.

use std::fmt::Write;

use anstyle::Style;
use serde::Serialize;

use super::classes::{OvertakenReport, stands_for};
use super::document::{ChampionReport, Report, TargetReport};
use super::duration::duration;
use super::legend;
use super::text::variant;
use super::wrong::word;
use crate::plan::kernels::MARGIN;
use kforge_foundation::base::count;
use kforge_numerics::measure::paired::{self, answer_of, difference, said};
use kforge_numerics::measure::stats::Paired;
use kforge_types::record::params::split_from;
use kforge_types::record::{FindingKind, Verdict};

const DIM: Style = Style::new().dimmed();

/// The rivals of a champion that are named. The others are counted.
const NAMED: usize = 12;

/// Who was chosen for a class of shapes, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Chosen {
    /// The class: `all`, a shape's name, or the value of the class expression; with `@` and a shape's name, the class of a shape that was split from it.
    pub class: String,
    /// The shapes of the class, as a part of a line: empty for all shapes.
    #[serde(skip)]
    pub stands_for: String,
    /// The champion; none if no variant can be selected.
    pub champion: Option<String>,
    /// Whether it was selected without measurements.
    pub provisional: bool,
    /// Why it was selected.
    pub because: String,
}

/// The choice for one class of shapes.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Choice {
    /// Who was chosen.
    #[serde(flatten)]
    pub chosen: Chosen,
    /// Bench shapes of the class at which another variant is faster, as far as is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overtaken: Vec<OvertakenReport>,
    /// The longest of its median times at the bench shapes, in nanoseconds, and the shape.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
    /// The other variants, in declared order.
    pub rivals: Vec<Rival>,
}

impl Chosen {
    /// The champions of a kernel on a target for one choice of types, in a report.
    pub fn of(report: &Report, package: &str, kernel: &str, (target, types): (&str, &str)) -> Vec<Chosen> {
        let last = |of: &TargetReport, champion: &ChampionReport| Chosen {
            class: champion.class.clone(),
            stands_for: stands_for(of.per.as_deref(), &champion.class),
            champion: champion.variant.clone(),
            provisional: champion.provisional,
            because: champion.because.clone(),
        };
        let targets = report.at(package, kernel, target, types);
        targets.flat_map(|of| of.champions.iter().map(move |champion| last(of, champion))).collect()
    }

    /// The choice of the last build, in a line.
    pub(super) fn last_line(&self) -> String {
        let Chosen { stands_for, champion, provisional, because, .. } = self;
        let name = champion.as_deref().map_or("none", variant);
        let provisional = if *provisional && champion.is_some() { "provisional; " } else { "" };
        format!("the last build selected{stands_for}: {name}  {DIM}({provisional}{because}){DIM:#}")
    }
}

impl Choice {
    /// What would make another variant champion, as far as its rivals show: a sentence for each.
    fn would_change(&self) -> Vec<String> {
        let mut lines = vec![];
        if self.chosen.champion.is_some() && self.chosen.provisional {
            lines.push("times at its bench shapes: it was selected without them".to_string());
        }
        let serving = || self.rivals.iter().filter(|rival| rival.serves);
        let open = |rival: &&Rival| {
            let held = rival.held_back.as_ref();
            held.is_some_and(|held| !matches!(held.verdict, Some(Verdict::Pass | Verdict::Fail(_))))
        };
        let undecided = serving().filter(open).count() as u64;
        if undecided > 0 {
            lines.push(format!("a verdict on {}, unknown so far", count(undecided, "variant")));
        }
        let on_cpu = serving().filter(|rival| rival.held_back.as_ref().is_some_and(|held| held.on_cpu)).count() as u64;
        if self.chosen.champion.is_none() && on_cpu > 0 {
            lines.push(format!("a verdict of the device on {}, where only `cpu` has one", count(on_cpu, "variant")));
        }
        let close = |rival: &&Rival| {
            let is_open = |pair: &Compared| pair.answer() == Paired::Undecided && pair.interval.0 <= 0.0;
            rival.held_back.is_none() && rival.pairs.iter().any(is_open)
        };
        let close: Vec<&str> = serving().filter(close).map(|rival| variant(&rival.variant)).collect();
        if !close.is_empty() {
            let more = close.len().saturating_sub(NEAR);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let near = close.iter().take(NEAR).copied().collect::<Vec<_>>().join(" or ");
            lines.push(format!("other pairs with {near}{more}: undecided so far, and perhaps faster"));
        }
        lines
    }
}

/// Rivals that pairs do not separate from the champion, by name. The others are counted.
const NEAR: usize = 3;

/// A median time at a shape.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Time {
    /// The shape.
    pub shape: String,
    /// The time in nanoseconds.
    pub ns: f64,
}

/// Another variant of the kernel.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Rival {
    /// The variant.
    pub variant: String,
    /// The verdict that keeps it from being selected, and the shape; none if it is correct at every shape of the class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_back: Option<HeldBack>,
    /// Whether it serves every shape of the class.
    pub serves: bool,
    /// Whether it ties with the champion for fastest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ties: bool,
    /// Its times relative to those of the champion: their geometric mean over the shapes at which both were timed, minus one. None if they were not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slower_by: Option<f64>,
    /// The comparisons by pairs with the champion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<Compared>,
}

/// Why a variant cannot be selected.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct HeldBack {
    /// The shape.
    pub shape: String,
    /// The verdict there; none if there is none.
    pub verdict: Option<Verdict>,
    /// For a failure: the finding that decides it; none if only values are wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<FindingKind>,
    /// Whether the verdict is that of `cpu`, because the device that is the target has none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_cpu: bool,
}

/// A comparison by pairs of a rival with the champion at a shape. The shares are the rival's time over the champion's, minus one.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Compared {
    /// The shape.
    pub shape: String,
    /// The estimate.
    pub slower_by: f64,
    /// Its interval of 95 %.
    pub interval: (f64, f64),
    /// Whether the selection read the pairs. Others were taken later, such as those of an attribution.
    pub read: bool,
    /// The estimates where the rival came first and where the champion did, if they disagree. The comparison then decides nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orders_disagree: Option<(f64, f64)>,
}

impl Compared {
    /// How the rival compares with the champion, at the margin of selections.
    pub fn answer(&self) -> Paired {
        answer_of(self.slower_by, self.interval, self.orders_disagree.is_some(), MARGIN)
    }
}

impl Rival {
    /// What is known of it, in one line.
    fn line(&self) -> String {
        if !self.serves {
            return "does not serve every shape of the class".into();
        }
        if let Some(HeldBack { shape, verdict, finding, on_cpu }) = &self.held_back {
            let on_cpu = if *on_cpu { " on `cpu`" } else { "" };
            return match verdict {
                Some(Verdict::Fail(why)) => {
                    format!("{}{on_cpu} at {shape}: {why}", word(finding.and_then(FindingKind::not_run)))
                }
                Some(verdict) => format!("{verdict}, at {shape}"),
                None => format!("not verified at {shape}"),
            };
        }
        let mut parts = vec!["correct".to_string()];
        // The selection may not have read the pairs that separate the two.
        let is_apart = |pair: &Compared| !pair.read && matches!(pair.answer(), Paired::Slower | Paired::Faster);
        parts.extend(self.ties.then(|| match self.pairs.iter().any(is_apart) {
            true => "tied for fastest before these pairs".to_string(),
            false => "ties for fastest".to_string(),
        }));
        parts.extend(self.slower_by.map(|by| format!("median {}", difference(by))));
        for pair in &self.pairs {
            parts.push(format!("in pairs at {}: {}", pair.shape, said(pair.answer(), pair.slower_by, pair.interval)));
            if let Some((rival, champion)) = pair.orders_disagree {
                let (rival, champion) = (difference(rival), difference(champion));
                parts.push(format!(
                    "the two orders disagree: {rival} where it came first, {champion} where it came second"
                ));
            }
        }
        if self.slower_by.is_none() && self.pairs.is_empty() {
            parts.push("not timed".into());
        }
        parts.join("; ")
    }
}

/// What the figures of choices mean, as a line for below them; none if they have none.
pub fn legend<'c>(choices: impl IntoIterator<Item = &'c Choice>) -> Option<String> {
    let has_figures = |choice: &Choice| {
        let mut rivals = choice.rivals.iter().take(NAMED);
        let is_split = split_from(&choice.chosen.class).is_some();
        let is_compared = rivals.any(|rival| rival.slower_by.is_some() || !rival.pairs.is_empty());
        is_split || is_compared || choice.overtaken.iter().any(legend::has_figures)
    };
    let any = choices.into_iter().any(has_figures);
    any.then(|| paired::legend("the other variant", "the champion", MARGIN))
}

/// The choices of a selection as text, indented by two columns.
pub fn text(choices: &[Choice]) -> String {
    let mut out = String::new();
    for choice in choices {
        let Chosen { stands_for, champion, provisional, because, .. } = &choice.chosen;
        let name = champion.as_deref().map_or("none", variant);
        let standing = if *provisional && champion.is_some() { "provisional" } else { "champion" };
        let time = choice.time.as_ref().map(|time| format!("  {} at {}", duration(time.ns), time.shape));
        let time = time.unwrap_or_default();
        let _ = writeln!(out, "  {standing}{stands_for}: {name}{time}  {DIM}({because}){DIM:#}");
        for overtaken in &choice.overtaken {
            let _ = writeln!(out, "    {}", overtaken.line());
        }
        for rival in choice.rivals.iter().take(NAMED) {
            let _ = writeln!(out, "    {}  {DIM}{}{DIM:#}", variant(&rival.variant), rival.line());
        }
        let more = choice.rivals.len().saturating_sub(NAMED);
        if more > 0 {
            let _ = writeln!(out, "    {DIM}and {more} more, which --json lists{DIM:#}");
        }
        for line in choice.would_change() {
            let _ = writeln!(out, "    {DIM}would change it: {line}{DIM:#}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;
    use kforge_types::record::Unknown;

    fn rival(variant: &str) -> Rival {
        Rival { variant: variant.into(), held_back: None, serves: true, ties: false, slower_by: None, pairs: vec![] }
    }

    #[test]
    fn each_rival_is_told_by_what_decided_against_it() {
        let held =
            |verdict: Option<Verdict>| Some(HeldBack { shape: "odd".into(), verdict, finding: None, on_cpu: false });
        let raised = HeldBack {
            shape: "odd".into(),
            verdict: Some(Verdict::Fail("ValueError: no, at k.py:3".into())),
            finding: Some(FindingKind::Raised),
            on_cpu: false,
        };
        let paired = |low, orders_disagree| {
            vec![Compared {
                shape: "big".into(),
                slower_by: 0.018,
                interval: (low, 0.025),
                read: true,
                orders_disagree,
            }]
        };
        let (pairs, contested) = (paired(0.009, None), paired(0.012, Some((0.03, -0.01))));
        let mut later = paired(0.012, None);
        later[0].read = false;
        let rivals = vec![
            Rival { slower_by: Some(0.02), pairs, ties: true, ..rival("A=2") },
            Rival { held_back: held(Some(Verdict::Fail("`y` is wrong".into()))), ..rival("A=3") },
            Rival { held_back: held(Some(Verdict::Unknown(Unknown::NoDevice("none".into())))), ..rival("A=4") },
            Rival { held_back: held(None), ..rival("A=5") },
            Rival { serves: false, ..rival("A=6") },
            Rival { slower_by: Some(-0.004), ..rival("A=7") },
            Rival { pairs: contested, ..rival("A=8") },
            Rival { pairs: paired(0.012, None), ..rival("A=9") },
            Rival { held_back: Some(raised), ..rival("A=10") },
            rival(""),
            Rival { pairs: later, ties: true, ..rival("A=11") },
        ];
        let choice = Choice {
            chosen: Chosen {
                class: "all".into(),
                stands_for: String::new(),
                champion: Some("A=1".into()),
                provisional: false,
                because: "of two".into(),
            },
            overtaken: vec![],
            time: Some(Time { shape: "big".into(), ns: 7870.0 }),
            rivals,
        };
        let plain = anstream::adapter::strip_str(&text(slice::from_ref(&choice))).to_string();
        assert!(
            legend([&choice]).is_some_and(|line| line.starts_with("signs: + means that the other variant is slower"))
        );
        assert_eq!(legend([&Choice { rivals: vec![rival("A=2")], ..choice }]), None, "not timed");
        let lines = [
            "  champion: A=1  7.87 us at big  (of two)",
            "    A=2  correct; ties for fastest; median +2.0 %; in pairs at big: undecided, +1.8 % [+0.9, +2.5]",
            "    A=3  wrong at odd: `y` is wrong",
            "    A=4  unknown: no device: none, at odd",
            "    A=5  not verified at odd",
            "    A=6  does not serve every shape of the class",
            "    A=7  correct; median -0.4 %",
            "    A=8  correct; in pairs at big: undecided, +1.8 % [+1.2, +2.5]; the two orders disagree: +3.0 % where it came first, -1.0 % where it came second",
            "    A=9  correct; in pairs at big: slower, +1.8 % [+1.2, +2.5]",
            "    A=10  does not run at odd: ValueError: no, at k.py:3",
            "    the only variant  correct; not timed",
            "    A=11  correct; tied for fastest before these pairs; in pairs at big: slower, +1.8 % [+1.2, +2.5]",
            "    would change it: a verdict on 2 variants, unknown so far",
        ];
        assert_eq!(plain, lines.join("\n") + "\n");
    }

    #[test]
    fn what_only_the_emulator_found_wrong_is_told_as_that() {
        let verdict = Some(Verdict::Fail("`y` is wrong".into()));
        let held_back = Some(HeldBack { shape: "odd".into(), verdict, finding: None, on_cpu: true });
        let choice = Choice {
            chosen: Chosen {
                class: "all".into(),
                stands_for: String::new(),
                champion: None,
                provisional: true,
                because: "every variant that serves it is wrong on `cpu`".into(),
            },
            overtaken: vec![],
            time: None,
            rivals: vec![Rival { held_back, ..rival("A=1") }],
        };
        let plain = anstream::adapter::strip_str(&text(&[choice])).to_string();
        let lines = [
            "  champion: none  (every variant that serves it is wrong on `cpu`)",
            "    A=1  wrong on `cpu` at odd: `y` is wrong",
            "    would change it: a verdict of the device on 1 variant, where only `cpu` has one",
        ];
        assert_eq!(plain, lines.join("\n") + "\n");
    }

    #[test]
    fn of_many_rivals_some_are_counted() {
        let rivals = (0..NAMED + 3).map(|i| rival(&format!("A={i}"))).collect();
        let choice = Choice {
            chosen: Chosen {
                class: "all".into(),
                stands_for: " for r = 2".into(),
                champion: None,
                provisional: true,
                because: "all are wrong".into(),
            },
            overtaken: vec![],
            time: None,
            rivals,
        };
        let plain = anstream::adapter::strip_str(&text(&[choice])).to_string();
        assert!(plain.starts_with("  champion for r = 2: none  (all are wrong)\n"), "{plain}");
        assert!(plain.ends_with("    and 3 more, which --json lists\n"), "{plain}");
    }

    #[test]
    fn rivals_that_pairs_do_not_separate_and_missing_times_could_change_the_choice() {
        let near = |label: &str| {
            let pair = Compared {
                shape: "big".into(),
                slower_by: 0.001,
                interval: (-0.002, 0.013),
                read: true,
                orders_disagree: None,
            };
            Rival { pairs: vec![pair], ..rival(label) }
        };
        let choice = |rivals, provisional| Choice {
            chosen: Chosen {
                class: "all".into(),
                stands_for: String::new(),
                champion: Some("A=1".into()),
                provisional,
                because: "of two".into(),
            },
            overtaken: vec![],
            time: None,
            rivals,
        };
        let close = vec![near("A=2"), near("A=3"), near("A=4"), near("A=5"), Rival { serves: false, ..near("A=6") }];
        let near = "other pairs with A=2 or A=3 or A=4 and 1 more: undecided so far, and perhaps faster";
        assert_eq!(choice(close, false).would_change(), [near]);
        assert_eq!(choice(vec![], true).would_change(), ["times at its bench shapes: it was selected without them"]);
    }
}
