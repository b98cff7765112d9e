//! Unknown verdicts of a build by what is unknown, for its last line. Knows steps and verdicts; reads no reason.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use kforge_engine::BuildOutcome;
use kforge_types::record::Verdict;

/// The most kinds that a line names.
const NAMED: usize = 2;

/// The number of unknown verdicts by what is unknown: `no evidence of h200`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownCounts(BTreeMap<String, u64>);

impl UnknownCounts {
    /// Those of a build.
    pub fn of(outcome: &BuildOutcome) -> Self {
        let mut counts = UnknownCounts::default();
        for (node, done) in outcome.graph.nodes().zip(&outcome.steps) {
            if let Some(Verdict::Unknown(why)) = done.result.as_ref().and_then(|result| result.verdict.as_ref()) {
                counts.add(why.kind(node.labels.target.as_deref()));
            }
        }
        counts
    }

    fn add(&mut self, kind: String) {
        *self.0.entry(kind).or_default() += 1;
    }

    /// What follows the number of unknown verdicts: ` (no evidence of h200)`, ` (3 no evidence of h200, 1 not emulated)`; empty if there are none. The most
    /// frequent come first.
    pub fn text(&self) -> String {
        let mut kinds: Vec<(&str, u64)> = self.0.iter().map(|(kind, number)| (kind.as_str(), *number)).collect();
        kinds.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
        match kinds.as_slice() {
            [] => String::new(),
            [(kind, _)] => format!(" ({kind})"),
            _ => {
                let others: u64 = kinds.iter().skip(NAMED).map(|(_, number)| number).sum();
                let others = (others > 0).then(|| format!("{others} for other reasons"));
                let named = kinds.iter().take(NAMED).map(|(kind, number)| format!("{number} {kind}"));
                format!(" ({})", named.chain(others).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_is_named_the_most_frequent_first() {
        let said = |all: &[(&str, u64)]| {
            let mut counts = UnknownCounts::default();
            all.iter().for_each(|(kind, number)| (0..*number).for_each(|_| counts.add((*kind).into())));
            counts.text()
        };
        assert_eq!(said(&[]), "");
        assert_eq!(said(&[("no evidence of h200", 3)]), " (no evidence of h200)");
        assert_eq!(said(&[("a", 1), ("b", 2)]), " (2 b, 1 a)");
        assert_eq!(said(&[("a", 1), ("b", 2), ("c", 3), ("d", 1)]), " (3 c, 2 b, 2 for other reasons)");
    }
}
