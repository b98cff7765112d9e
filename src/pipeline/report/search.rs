//! The result of a search over tunables, in one line. Knows the tally; does not know how it was counted.

use serde::{Deserialize, Serialize};

use kforge_foundation::base::count;
use kforge_numerics::measure::stats::geometric_mean;
use kforge_types::model::Strategy;
use kforge_types::record::search::{Over, Stage, Tally, Trail};

use super::Names;
use super::document::TargetReport;
use super::text::variant;

/// A search over the tunables of a kernel on a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SearchReport {
    /// The strategy that chose the variants to visit.
    pub strategy: Strategy,
    /// The number of visited variants.
    pub visited: u32,
    /// The number of variants in the space.
    pub of: u32,
    /// Visited variants that were dropped because of their machine code, or were not built.
    pub on_facts: u32,
    /// Visited variants that were dropped after few samples: slow, wrong, or without a time.
    pub on_samples: u32,
    /// Seconds for which its timings held the device, as counted when they were taken.
    pub took_s: f64,
    /// The fastest variant of each class of shapes by medians, and the number of the visit that found it.
    pub best: Vec<BestReport>,
    /// Why the search is over.
    pub over: Over,
    /// The visited variants, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub visits: Vec<VisitReport>,
}

/// A variant that a search visited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct VisitReport {
    /// The variant.
    pub variant: String,
    /// What became of it.
    pub fate: VisitFate,
    /// Why it was dropped, if its machine code was the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// The geometric mean of its median times over the bench shapes at which it was timed, in nanoseconds; of few samples if it was not timed in full. None
    /// without a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns: Option<f64>,
}

/// What became of a variant that a search visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VisitFate {
    /// The search ended before it was decided.
    Open,
    /// Correct, and timed at every bench shape.
    Timed,
    /// Correct, and dropped after few samples because it was too slow.
    Slow,
    /// It produced no binary.
    Unbuilt,
    /// Dropped because of its machine code.
    Discarded,
    /// Its outputs are wrong.
    Wrong,
    /// Not known to be correct, or without a time.
    Failed,
    /// Not observed.
    Unrecorded,
}

impl VisitFate {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            VisitFate::Open => "not finished",
            VisitFate::Timed => "timed",
            VisitFate::Slow => "too slow",
            VisitFate::Unbuilt => "not built",
            VisitFate::Discarded => "dropped by its machine code",
            VisitFate::Wrong => "wrong",
            VisitFate::Failed => "failed",
            VisitFate::Unrecorded => "not observed",
        }
    }
}

/// The visits of a trail, with the names of the variants.
fn visits(trail: Trail, names: &Names) -> Vec<VisitReport> {
    let of = |visit: kforge_types::record::search::Visit| {
        let times = if visit.full.is_empty() { &visit.few } else { &visit.full };
        let ns: Vec<f64> = times.values().copied().filter(|ns| ns.is_finite() && *ns > 0.0).collect();
        let (fate, because) = match visit.stage {
            Stage::Compiling | Stage::Sampling | Stage::Timing => (VisitFate::Open, None),
            Stage::Timed => (VisitFate::Timed, None),
            Stage::Slow => (VisitFate::Slow, None),
            Stage::Unbuilt => (VisitFate::Unbuilt, None),
            Stage::Discarded(why) => (VisitFate::Discarded, Some(why)),
            Stage::Wrong => (VisitFate::Wrong, None),
            Stage::Failed => (VisitFate::Failed, None),
            Stage::Unrecorded => (VisitFate::Unrecorded, None),
        };
        let variant = names.variants.get(&visit.variant)?.clone();
        Some(VisitReport { variant, fate, because, ns: (!ns.is_empty()).then(|| geometric_mean(&ns)) })
    };
    trail.visits.into_iter().filter_map(of).collect()
}

/// The fastest variant that a search found for a class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BestReport {
    /// The class.
    pub class: String,
    /// The variant.
    pub variant: String,
    /// The number of the visit, from one.
    pub visit: u32,
}

impl SearchReport {
    /// From a tally, the trail and the names of their numbers; none if the search is not over.
    pub(super) fn of(tally: Tally, trail: Trail, names: &Names) -> Option<Self> {
        let best = tally.best.into_iter().filter_map(|found| {
            let variant = names.variants.get(&found.variant)?.clone();
            let class = names.classes.get(&found.class).cloned().unwrap_or(found.class);
            Some(BestReport { class, variant, visit: found.visit })
        });
        Some(SearchReport {
            strategy: tally.strategy,
            visited: tally.visited,
            of: tally.of,
            on_facts: tally.on_facts,
            on_samples: tally.on_samples,
            took_s: tally.took_s,
            best: best.collect(),
            over: tally.over?,
            visits: visits(trail, names),
        })
    }

    /// The result on that target: `random search: 40 of 864 variants visited, 3 dropped on facts, 21 on few samples; best found at visit 31 (BLOCK=256); the
    /// budget of variants is spent`.
    pub fn line(&self, target: &TargetReport) -> String {
        let SearchReport { strategy, visited, of, on_facts, on_samples, over, .. } = self;
        if *over == Over::Untimed {
            return format!(
                "{} search: a sample of {visited} of {} represents all: {}",
                strategy.name(),
                count(*of, "variant"),
                over.why()
            );
        }
        let mut line = format!(
            "{} search: {visited} of {} visited, {on_facts} dropped on facts, {on_samples} on few samples",
            strategy.name(),
            count(*of, "variant")
        );
        for best in &self.best {
            let class = target.stands_for(&best.class);
            line += &format!("; best{class} found at visit {} ({})", best.visit, variant(&best.variant));
        }
        format!("{line}; {}", over.why())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::record::search::{BestVisit, Visit};

    #[test]
    fn a_search_is_told_in_a_line() {
        let names = Names { variants: [(7, "BLOCK=256".to_string())].into(), ..Names::default() };
        let tally = Tally {
            strategy: Strategy::Model,
            visited: 40,
            of: 864,
            on_facts: 3,
            on_samples: 21,
            took_s: 12.5,
            best: vec![BestVisit { class: "all".into(), variant: 7, visit: 31 }],
            over: Some(Over::Variants),
        };
        let line = SearchReport::of(tally.clone(), Trail::default(), &names).unwrap().line(&TargetReport::default());
        assert_eq!(
            line,
            "model search: 40 of 864 variants visited, 3 dropped on facts, 21 on few samples; best found at visit 31 (BLOCK=256); the budget of variants is spent"
        );
        let per = TargetReport { per: Some("r".into()), ..TargetReport::default() };
        let of_class = SearchReport::of(tally.clone(), Trail::default(), &names).unwrap().line(&per);
        assert!(of_class.contains("; best for r = all found at visit 31"), "{of_class}");
        let untimed = Tally { best: vec![], over: Some(Over::Untimed), ..tally.clone() };
        assert_eq!(
            SearchReport::of(untimed, Trail::default(), &names).unwrap().line(&TargetReport::default()),
            "model search: a sample of 40 of 864 variants represents all: this target is not timed"
        );
        assert_eq!(SearchReport::of(Tally { over: None, ..tally }, Trail::default(), &names), None);
    }

    #[test]
    fn visits_are_told_in_order_by_name_fate_and_time() {
        let names = Names { variants: [(0, "A=1".to_string()), (7, "A=8".to_string())].into(), ..Names::default() };
        let visit = |variant: u32, stage: Stage, few: &[f64], full: &[f64]| Visit {
            variant,
            chain: 0,
            spent: 0.0,
            stage,
            spills: None,
            few: (0..).zip(few.iter().copied()).collect(),
            full: (0..).zip(full.iter().copied()).collect(),
            took_s: 0.0,
        };
        let trail = Trail {
            visits: vec![
                visit(7, Stage::Timed, &[90.0], &[100.0, 400.0]),
                visit(0, Stage::Slow, &[900.0], &[]),
                visit(0, Stage::Discarded("spills".into()), &[], &[]),
                visit(9, Stage::Wrong, &[], &[]),
            ],
            turns: 3,
        };
        let found = visits(trail, &names);
        let of = |variant: &str, fate, because: Option<&str>, ns: Option<f64>| VisitReport {
            variant: variant.into(),
            fate,
            because: because.map(String::from),
            ns,
        };
        assert_eq!(found.len(), 3, "a number without a name is left out");
        assert!((found[0].ns.unwrap() - 200.0).abs() < 1e-9 && found[0].fate == VisitFate::Timed);
        assert!((found[1].ns.unwrap() - 900.0).abs() < 1e-9 && found[1].fate == VisitFate::Slow);
        assert_eq!(found[2], of("A=1", VisitFate::Discarded, Some("spills"), None));
    }
}
