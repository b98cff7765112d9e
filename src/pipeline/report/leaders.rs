//! Leaders: which of several kernels of one operator is the fastest at a bench shape, as values and lines. Knows the selection among their champions and the
//! document; selects nothing.

use serde::{Deserialize, Serialize};

use super::assemble::{Names, Reader};
use super::document::{KernelReport, PackageReport, TargetReport, VersusReport};
use super::text::variant;
use super::versus::{Pairs, compared};
use crate::plan::kernels::MARGIN;
use kforge_numerics::measure::paired::{answer_of, difference, said};
use kforge_types::record::StepResult;
use kforge_types::record::event::Labels;
use kforge_types::record::params::{Champion, Selection};

/// The champion that leads among the kernels of one operator at a bench shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LeaderReport {
    /// The operator.
    pub operator: String,
    /// The choice of types; empty without types.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub types: String,
    /// The target.
    pub target: String,
    /// The bench shape.
    pub shape: String,
    /// The kernel.
    pub kernel: String,
    /// Its champion at the shape.
    pub variant: String,
    /// Why it leads.
    pub because: String,
    /// The comparisons by pairs with champions of other kernels, by kernel. A champion that is far slower by its median is not compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versus: Vec<KernelVersusReport>,
}

/// A comparison by pairs of another kernel's champion with the one that leads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct KernelVersusReport {
    /// The other kernel.
    pub kernel: String,
    /// The comparison.
    pub pairs: VersusReport,
}

/// The leaders that the result of a selection among kernels names.
pub fn of_result(
    labels: &Labels,
    result: Option<&StepResult>,
    names: &Names,
    pairs: &Pairs<'_>,
    reader: &Reader<'_>,
) -> Vec<LeaderReport> {
    let selection: Option<Selection> = reader.document(result, "selection");
    let champions = selection.map(|selection| selection.champions).unwrap_or_default();
    let of = |champion: &Champion| {
        let order = champion.variant?;
        let of_kernel = |(other, pairs): (u32, VersusReport)| {
            Some(KernelVersusReport { kernel: names.kernels.get(&other)?.clone(), pairs })
        };
        let mut versus: Vec<KernelVersusReport> =
            compared(champion, names, pairs, reader).into_iter().filter_map(of_kernel).collect();
        versus.sort_by(|a, b| (&a.kernel, &a.pairs.variant).cmp(&(&b.kernel, &b.pairs.variant)));
        Some(LeaderReport {
            operator: labels.operator.clone()?,
            types: names.types.clone(),
            target: labels.target.clone()?,
            // A class of a selection among kernels is one shape.
            shape: champion.shapes.first().and_then(|at| names.shapes.get(*at as usize)).cloned()?,
            kernel: names.kernels.get(&order)?.clone(),
            variant: names.variants.get(&order)?.clone(),
            because: champion.because.clone(),
            versus,
        })
    };
    champions.iter().filter_map(of).collect()
}

/// Sorts leaders, so that their order does not depend on which step ended first.
pub(super) fn sort(leaders: &mut [LeaderReport]) {
    let order = |one: &LeaderReport| (one.operator.clone(), one.types.clone(), one.target.clone(), one.shape.clone());
    leaders.sort_by_key(order);
}

impl LeaderReport {
    /// Whether it is about a kernel: as the one that leads, or as one that was compared with it.
    pub fn is_about(&self, kernel: &str) -> bool {
        self.kernel == kernel || self.versus.iter().any(|other| other.kernel == kernel)
    }

    /// The target of a kernel for the choice of types.
    fn seat<'k>(&self, kernel: &'k KernelReport) -> Option<&'k TargetReport> {
        kernel.targets.iter().find(|target| target.target == self.target && target.types == self.types)
    }

    /// The median time of a kernel's champion at the shape.
    fn time(&self, kernel: &KernelReport) -> Option<f64> {
        let seat = self.seat(kernel)?;
        let champion = seat.champion_at(&self.shape)?.variant.as_ref()?;
        let hot = seat.basis.as_ref().is_some_and(|basis| basis.hot);
        seat.times.iter().find(|time| time.shape == self.shape && time.variant == *champion)?.ns(hot)
    }

    /// The other kernels of the operator: compared by pairs, or else by medians.
    fn others(&self, package: &PackageReport) -> Vec<String> {
        let own = package.kernels.iter().find(|kernel| kernel.name == self.kernel).and_then(|kernel| self.time(kernel));
        let mut all: Vec<String> = self.versus.iter().map(KernelVersusReport::line).collect();
        let kernels = package.kernels.iter().filter(|kernel| kernel.operator == self.operator);
        for kernel in kernels.filter(|kernel| !self.is_about(&kernel.name)) {
            if let Some((time, own)) = self.time(kernel).zip(own) {
                all.push(format!("{}: {} by medians", kernel.name, difference(time / own - 1.0)));
            }
        }
        all
    }

    /// As [`Self::line`], without times of kernels that were not compared in pairs.
    pub(super) fn by_pairs(&self) -> String {
        self.line(&PackageReport::default())
    }

    /// In one line: `fastest kernel of softmax on h200 at large: tiled BLOCK=256 (plain: slower, +3.1 % [+2.9, +3.3])`.
    pub(super) fn line(&self, package: &PackageReport) -> String {
        let LeaderReport { operator, types, target, shape, kernel, .. } = self;
        let types = if types.is_empty() { String::new() } else { format!(" [{types}]") };
        let others = self.others(package);
        let others = if others.is_empty() { String::new() } else { format!(" ({})", others.join("; ")) };
        let named = variant(&self.variant);
        format!("fastest kernel of {operator}{types} on {target} at {shape}: {kernel}, {named}{others}")
    }
}

impl KernelVersusReport {
    /// `plain: slower, +3.1 % [+2.9, +3.3]`.
    fn line(&self) -> String {
        let VersusReport { ratio, interval: (low, high), orders_disagree, .. } = &self.pairs;
        let (median, ends) = (ratio - 1.0, (low - 1.0, high - 1.0));
        let answer = answer_of(median, ends, orders_disagree.is_some(), MARGIN);
        format!("{}: {}", self.kernel, said(answer, median, ends))
    }
}

/// The leaders of a package, a line each.
pub(super) fn lines(package: &PackageReport) -> Vec<String> {
    package.leaders.iter().map(|leader| leader.line(package)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::document::{ChampionReport, TimeReport};
    use super::*;

    fn kernel(name: &str, ns: f64) -> KernelReport {
        let champion = ChampionReport {
            class: "all".into(),
            shapes: vec!["big".into()],
            variant: Some("A=1".into()),
            provisional: false,
            because: String::new(),
            versus: vec![],
        };
        let time = TimeReport {
            shape: "big".into(),
            variant: "A=1".into(),
            cold_ns: Some(ns),
            hot_ns: None,
            few: false,
            by_class: None,
            seen: None,
        };
        let target = TargetReport {
            target: "h200".into(),
            champions: vec![champion],
            times: vec![time],
            ..TargetReport::default()
        };
        KernelReport { name: name.into(), operator: "o".into(), targets: vec![target] }
    }

    fn leader(versus: Vec<KernelVersusReport>) -> LeaderReport {
        LeaderReport {
            operator: "o".into(),
            types: String::new(),
            target: "h200".into(),
            shape: "big".into(),
            kernel: "a".into(),
            variant: "A=1".into(),
            because: "fastest".into(),
            versus,
        }
    }

    #[test]
    fn a_leader_is_named_beside_every_other_kernel_with_a_time() {
        let kernels = vec![kernel("a", 100.0), kernel("b", 103.0), kernel("c", 150.0)];
        let pairs = VersusReport {
            shape: "big".into(),
            variant: "A=1".into(),
            ratio: 1.031,
            interval: (1.029, 1.033),
            orders_disagree: None,
        };
        let versus = vec![KernelVersusReport { kernel: "b".into(), pairs }];
        let package = PackageReport { kernels, leaders: vec![leader(versus)], ..PackageReport::default() };
        assert_eq!(
            lines(&package),
            ["fastest kernel of o on h200 at big: a, A=1 (b: slower, +3.1 % [+2.9, +3.3]; c: +50.0 % by medians)"]
        );
    }

    #[test]
    fn a_comparison_whose_orders_disagree_is_undecided() {
        let pairs = VersusReport {
            shape: "big".into(),
            variant: "A=1".into(),
            ratio: 1.05,
            interval: (1.04, 1.06),
            orders_disagree: Some((1.02, 1.08)),
        };
        let other = KernelVersusReport { kernel: "b".into(), pairs };
        assert!(other.line().starts_with("b: undecided, +5.0 %"), "{}", other.line());
        assert!(leader(vec![other.clone()]).is_about("b") && !leader(vec![other]).is_about("c"));
    }
}
