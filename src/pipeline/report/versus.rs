//! What pairs say of champions: which pairs a selection read, and the comparisons in them. Knows the names of a select step's inputs; selects nothing.

use std::collections::HashMap;

use super::assemble::{Names, Reader};
use super::document::VersusReport;
use crate::plan::kernels::MARGIN;
use kforge_numerics::measure::orders::Comparison;
use kforge_types::record::StepResult;
use kforge_types::record::params::Champion;
use kforge_types::record::timing::PairsObserved;

/// Pairs that a select step reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairsRead {
    /// The two contenders: the first is A in what the pairs step saw.
    pub contenders: (u32, u32),
    /// The shape, by position.
    pub shape: u32,
    /// The id of the pairs step.
    pub step: String,
}

impl PairsRead {
    /// From the name of an input, `pairs:V:W:S`, and the step that gives it; none for other inputs.
    pub fn of(input: &str, step: &str) -> Option<Self> {
        let numbers: Vec<u32> =
            input.strip_prefix("pairs:")?.split(':').map(|n| n.parse().ok()).collect::<Option<_>>()?;
        let [a, b, shape] = numbers[..] else { return None };
        Some(PairsRead { contenders: (a, b), shape, step: step.into() })
    }
}

/// The results of pairs steps, by id.
pub type Pairs<'a> = HashMap<&'a str, Option<&'a StepResult>>;

/// The comparisons by pairs with a champion at its shapes.
pub(super) fn versus(champion: &Champion, names: &Names, pairs: &Pairs<'_>, reader: &Reader<'_>) -> Vec<VersusReport> {
    let mut all: Vec<VersusReport> =
        compared(champion, names, pairs, reader).into_iter().map(|(_, versus)| versus).collect();
    all.sort_by(|a, b| (&a.shape, &a.variant).cmp(&(&b.shape, &b.variant)));
    all
}

/// The same, with the number of the other contender, in the order of the pairs.
pub(super) fn compared(
    champion: &Champion,
    names: &Names,
    pairs: &Pairs<'_>,
    reader: &Reader<'_>,
) -> Vec<(u32, VersusReport)> {
    let of = |read: &PairsRead| {
        let (a, b) = read.contenders;
        let is_champion = |order: u32| champion.variant == Some(order);
        let other = if is_champion(b) { a } else { b };
        let mine = champion.shapes.contains(&read.shape) && (is_champion(a) || is_champion(b));
        let result = pairs.get(read.step.as_str()).copied().filter(|_| mine)?;
        let seen: PairsObserved = reader.document(result, "observation")?;
        let found = Comparison::of(&[&if is_champion(a) { seen.turned() } else { seen }])?;
        let (estimate, low, high) = found.interval;
        let versus = VersusReport {
            shape: names.shapes.get(read.shape as usize)?.clone(),
            variant: names.variants.get(&other)?.clone(),
            ratio: estimate.exp(),
            interval: (low.exp(), high.exp()),
            orders_disagree: found.contested(MARGIN).map(|orders| (orders.a_first.0.exp(), orders.b_first.0.exp())),
        };
        Some((other, versus))
    };
    names.pairs.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_that_a_selection_reads_are_told_by_the_names_of_its_inputs() {
        let found = PairsRead::of("pairs:3:0:12", "p/k/pairs").unwrap();
        assert_eq!(found, PairsRead { contenders: (3, 0), shape: 12, step: "p/k/pairs".into() });
        for other in ["bench:0:1", "pairs:1:2", "pairs:a:b:c", "pairs:1:2:x"] {
            assert_eq!(PairsRead::of(other, "x"), None, "{other}");
        }
    }
}
