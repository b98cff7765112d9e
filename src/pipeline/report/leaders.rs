//! Leaders: which of several kernels of one operator is the fastest at a bench shape, as values and lines. Knows the selection among their champions and the
//! document; selects nothing.

use serde::{Deserialize, Serialize};

use super::assemble::{Names, Reader};
use super::document::{PackageReport, TargetReport, VersusReport};
use super::text::variant;
use super::versus::{Pairs, compared};
use crate::plan::kernels::MARGIN;
use kforge_numerics::measure::paired::{answer_of, difference, said};
use kforge_types::record::event::Labels;
use kforge_types::record::params::{Champion, Selection};
use kforge_types::record::{StepResult, Verdict};

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
    /// The champions of the other kernels that were compared there, by kernel.
    pub others: Vec<OtherKernelReport>,
    /// Whether call times decide, among kernels in PyTorch. They compare with no device time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub called: bool,
}

/// The champion of another kernel beside the one that leads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OtherKernelReport {
    /// The kernel.
    pub kernel: String,
    /// Its champion.
    pub variant: String,
    /// Its median time over that of the leader, if both are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median: Option<f64>,
    /// The comparison by pairs. A champion that is far slower by its median is not compared so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<VersusReport>,
    /// Whether it ties with the leader for fastest, which is declared first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ties: bool,
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
        let mut compared = compared(champion, names, pairs, reader);
        let other = |(at, kernel): (&u32, &String)| {
            let pairs = compared.iter().position(|(other, _)| other == at).map(|found| compared.swap_remove(found).1);
            let ties = champion.ties.contains(at);
            Some(OtherKernelReport {
                kernel: kernel.clone(),
                variant: names.variants.get(at)?.clone(),
                median: None,
                pairs,
                ties,
            })
        };
        let own = names.kernels.get(&order)?;
        let mut others: Vec<OtherKernelReport> =
            names.kernels.iter().filter(|(_, kernel)| *kernel != own).filter_map(other).collect();
        others.sort_by(|a, b| (&a.kernel, &a.variant).cmp(&(&b.kernel, &b.variant)));
        Some(LeaderReport {
            operator: labels.operator.clone()?,
            types: names.types.clone(),
            target: labels.target.clone()?,
            // A class of a selection among kernels is one shape.
            shape: champion.shapes.first().and_then(|at| names.shapes.get(*at as usize)).cloned()?,
            kernel: own.clone(),
            variant: names.variants.get(&order)?.clone(),
            because: champion.because.clone(),
            others,
            called: false,
        })
    };
    champions.iter().filter_map(of).collect()
}

/// Sorts leaders, so that their order does not depend on which step ended first.
fn sort(leaders: &mut [LeaderReport]) {
    let order = |one: &LeaderReport| {
        (one.operator.clone(), one.types.clone(), one.target.clone(), one.shape.clone(), one.called)
    };
    leaders.sort_by_key(order);
}

/// Completes the leaders of a package by what the rest of the report knows: medians of the others, without those that are not timed at the shape. Removes the
/// leaders whose champion is wrong after all, because its confirmation failed.
pub(super) fn complete(package: &mut PackageReport) {
    let mut leaders = std::mem::take(&mut package.leaders);
    leaders.retain(|leader| !leader.fails(package));
    for leader in &mut leaders {
        let own = leader.time(package, &leader.kernel, &leader.variant);
        let (shape, place) = (leader.shape.clone(), leader.clone());
        for other in &mut leader.others {
            let time = place.time(package, &other.kernel, &other.variant);
            other.median = time.zip(own).map(|(time, own)| time / own);
        }
        leader.called = leader.seat(package, &leader.kernel).is_some_and(TargetReport::is_called);
        leader.others.retain(|other| {
            other.pairs.is_some() || other.ties || place.is_champion(package, other, &shape) && other.median.is_some()
        });
    }
    sort(&mut leaders);
    package.leaders = leaders;
}

impl LeaderReport {
    /// Whether it is about a kernel: as the one that leads, or as another one.
    pub fn is_about(&self, kernel: &str) -> bool {
        self.kernel == kernel || self.others.iter().any(|other| other.kernel == kernel)
    }

    /// A kernel on the target for the choice of types.
    fn seat<'p>(&self, package: &'p PackageReport, kernel: &str) -> Option<&'p TargetReport> {
        let kernel = package.kernels.iter().find(|of| of.name == kernel)?;
        kernel.targets.iter().find(|target| target.target == self.target && target.types == self.types)
    }

    fn fails(&self, package: &PackageReport) -> bool {
        let shapes = self.seat(package, &self.kernel).map(|seat| seat.shapes.as_slice()).unwrap_or_default();
        shapes
            .iter()
            .any(|of| of.shape == self.shape && of.variant == self.variant && matches!(of.verdict, Verdict::Fail(_)))
    }

    fn is_champion(&self, package: &PackageReport, other: &OtherKernelReport, shape: &str) -> bool {
        let champion = self.seat(package, &other.kernel).and_then(|seat| seat.champion_at(shape));
        champion.is_some_and(|champion| champion.variant.as_ref() == Some(&other.variant))
    }

    /// The median time of a variant of a kernel at the shape, cold or hot as its kernel selects.
    fn time(&self, package: &PackageReport, kernel: &str, variant: &str) -> Option<f64> {
        let seat = self.seat(package, kernel)?;
        let hot = seat.basis.as_ref().is_some_and(|basis| basis.hot);
        let of_call = seat.calls.iter().find(|call| call.shape == self.shape && call.variant == variant);
        if let Some(call) = of_call {
            return call.call_ns;
        }
        seat.times.iter().find(|time| time.shape == self.shape && time.variant == variant)?.ns(hot)
    }

    /// In one line: `fastest kernel of softmax on h200 at large: tiled, BLOCK=256 (plain: slower, +3.1 % [+2.9, +3.3])`.
    pub(super) fn line(&self) -> String {
        let LeaderReport { operator, types, target, shape, kernel, .. } = self;
        let types = if types.is_empty() { String::new() } else { format!(" [{types}]") };
        let others: Vec<String> = self.others.iter().filter_map(OtherKernelReport::words).collect();
        let others = if others.is_empty() { String::new() } else { format!(" ({})", others.join("; ")) };
        let named = variant(&self.variant);
        let which = if self.called { "kernel in PyTorch, by call times," } else { "kernel" };
        format!("fastest {which} of {operator}{types} on {target} at {shape}: {kernel}, {named}{others}")
    }
}

impl OtherKernelReport {
    /// `plain: slower, +3.1 % [+2.9, +3.3]`; none if nothing is known of it but its name.
    fn words(&self) -> Option<String> {
        let kernel = &self.kernel;
        if let Some(VersusReport { ratio, interval: (low, high), orders_disagree, .. }) = &self.pairs {
            let (median, ends) = (ratio - 1.0, (low - 1.0, high - 1.0));
            let answer = answer_of(median, ends, orders_disagree.is_some(), MARGIN);
            return Some(format!("{kernel}: {}", said(answer, median, ends)));
        }
        if self.ties {
            return Some(format!("{kernel}: ties with it"));
        }
        self.median.map(|median| format!("{kernel}: {} by medians", difference(median - 1.0)))
    }
}

/// The leaders of a package, a line each.
pub(super) fn lines(package: &PackageReport) -> Vec<String> {
    package.leaders.iter().map(LeaderReport::line).collect()
}

#[cfg(test)]
mod tests {
    use super::super::document::{ChampionReport, KernelReport, TimeReport};
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

    fn other(kernel: &str, pairs: Option<VersusReport>) -> OtherKernelReport {
        OtherKernelReport { kernel: kernel.into(), variant: "A=1".into(), median: None, pairs, ties: false }
    }

    fn pairs(ratio: f64, orders_disagree: Option<(f64, f64)>) -> VersusReport {
        let interval = (ratio - 0.002, ratio + 0.002);
        VersusReport { shape: "big".into(), variant: "A=1".into(), ratio, interval, orders_disagree }
    }

    fn leader(others: Vec<OtherKernelReport>) -> LeaderReport {
        LeaderReport {
            operator: "o".into(),
            types: String::new(),
            target: "h200".into(),
            shape: "big".into(),
            kernel: "a".into(),
            variant: "A=1".into(),
            because: "fastest".into(),
            others,
            called: false,
        }
    }

    fn completed(others: Vec<OtherKernelReport>, kernels: Vec<KernelReport>) -> PackageReport {
        let mut package = PackageReport { kernels, leaders: vec![leader(others)], ..PackageReport::default() };
        complete(&mut package);
        package
    }

    #[test]
    fn a_leader_is_named_beside_every_other_kernel_that_is_compared_at_the_shape() {
        let kernels = vec![kernel("a", 100.0), kernel("b", 103.0), kernel("c", 150.0), kernel("d", 100.1)];
        let tied = OtherKernelReport { ties: true, ..other("d", None) };
        let others = vec![other("b", Some(pairs(1.031, None))), other("c", None), tied, other("elsewhere", None)];
        assert_eq!(
            lines(&completed(others, kernels)),
            [
                "fastest kernel of o on h200 at big: a, A=1 (b: slower, +3.1 % [+2.9, +3.3]; c: +50.0 % by medians; d: ties with it)"
            ]
        );
    }

    #[test]
    fn a_comparison_whose_orders_disagree_is_undecided() {
        let found = other("b", Some(pairs(1.05, Some((1.02, 1.08)))));
        assert!(found.words().is_some_and(|words| words.starts_with("b: undecided, +5.0 %")), "{:?}", found.words());
        assert!(leader(vec![found.clone()]).is_about("b") && !leader(vec![found]).is_about("c"));
    }
}
