//! The result of a search over tunables, in one line. Knows the tally; does not know how it was counted.

use serde::{Deserialize, Serialize};

use kforge_foundation::base::count;
use kforge_types::model::Strategy;
use kforge_types::record::search::{Over, Tally};

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
    /// From a tally and the names of its numbers; none if the search is not over.
    pub(super) fn of(tally: Tally, names: &Names) -> Option<Self> {
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
    use kforge_types::record::search::BestVisit;

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
        let line = SearchReport::of(tally.clone(), &names).unwrap().line(&TargetReport::default());
        assert_eq!(
            line,
            "model search: 40 of 864 variants visited, 3 dropped on facts, 21 on few samples; best found at visit 31 (BLOCK=256); the budget of variants is spent"
        );
        let per = TargetReport { per: Some("r".into()), ..TargetReport::default() };
        let of_class = SearchReport::of(tally.clone(), &names).unwrap().line(&per);
        assert!(of_class.contains("; best for r = all found at visit 31"), "{of_class}");
        let untimed = Tally { best: vec![], over: Some(Over::Untimed), ..tally.clone() };
        assert_eq!(
            SearchReport::of(untimed, &names).unwrap().line(&TargetReport::default()),
            "model search: a sample of 40 of 864 variants represents all: this target is not timed"
        );
        assert_eq!(SearchReport::of(Tally { over: None, ..tally }, &names), None);
    }
}
