//! What methods save at each bench shape: the pairs that an attribute step judged together, shape by shape. Knows the names of its inputs; concludes nothing.

use std::collections::HashMap;

use super::assemble::{Reader, StepView};
use super::document::{MethodShapeReport, Report};
use super::versus::Pairs;
use crate::plan::kernels::MARGIN;
use kforge_numerics::measure::orders::Comparison;
use kforge_types::record::StepKind;
use kforge_types::record::event::Labels;
use kforge_types::record::params::TURNED;
use kforge_types::record::timing::PairsObserved;

/// Pairs that an attribute step reads: of the variant without the method and the champion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodPairs {
    /// Whether the champion is A in what the pairs step saw.
    pub turned: bool,
    /// The id of the pairs step.
    pub step: String,
}

impl MethodPairs {
    /// From the name of an input, `pairs:S` or `pairs:S:turned`, and the step that gives it; none for other inputs.
    pub fn of(input: &str, step: &str) -> Option<Self> {
        let shape = input.strip_prefix("pairs:")?;
        let turned = shape.ends_with(TURNED);
        shape.strip_suffix(TURNED).unwrap_or(shape).parse::<u32>().ok()?;
        Some(MethodPairs { turned, step: step.into() })
    }
}

/// Adds to the methods of a report what they save at each shape. `pairs` returns the pairs that an attribute step reads.
pub fn add(report: &mut Report, steps: &[StepView<'_>], pairs: &dyn Fn(&str) -> Vec<MethodPairs>, reader: &Reader<'_>) {
    let paired = || steps.iter().filter(|step| step.kind == StepKind::Pairs);
    let results: Pairs<'_> = paired().map(|step| (step.id, step.result)).collect();
    let labels: HashMap<&str, &Labels> = paired().map(|step| (step.id, step.labels)).collect();
    let at = |read: &MethodPairs| {
        let shape = labels.get(read.step.as_str())?.shape.clone()?;
        let seen: PairsObserved = reader.document(results.get(read.step.as_str()).copied()?, "observation")?;
        let found = Comparison::of(&[&if read.turned { seen.turned() } else { seen }])?;
        let (median, low, high) = found.interval;
        let disagree = |ends: (f64, f64, f64)| ends.0.exp_m1();
        Some(MethodShapeReport {
            shape,
            saving: (median.exp_m1(), low.exp_m1(), high.exp_m1()),
            orders_disagree: found.contested(MARGIN).map(|orders| (disagree(orders.a_first), disagree(orders.b_first))),
        })
    };
    for step in steps.iter().filter(|step| step.kind == StepKind::Attribute && step.result.is_some()) {
        let Labels { package, kernel, target, variant, method, .. } = step.labels;
        let packages = report.packages.iter_mut().filter(|one| one.name == *package);
        let kernels = packages.flat_map(|one| &mut one.kernels).filter(|one| Some(&one.name) == kernel.as_ref());
        let targets = kernels.flat_map(|one| &mut one.targets).filter(|one| Some(&one.target) == target.as_ref());
        let mut methods = targets.flat_map(|one| &mut one.methods);
        let mine = methods.find(|one| Some(&one.method) == method.as_ref() && Some(&one.variant) == variant.as_ref());
        if let Some(mine) = mine {
            mine.shapes = pairs(step.id).iter().filter_map(at).collect();
            mine.shapes.sort_by(|a, b| a.shape.cmp(&b.shape));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_a_method_are_told_by_the_names_of_inputs() {
        let of = |input: &str| MethodPairs::of(input, "x").map(|found| found.turned);
        assert_eq!((of("pairs:12"), of("pairs:3:turned")), (Some(false), Some(true)));
        for other in ["match", "judgement:1", "pairs:1:2", "pairs:x", "pairs:", "pairs:1:other"] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
