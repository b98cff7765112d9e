//! A kernel as `kforge explain KERNEL` shows it: who is champion and why, and its steps by kind. Knows the plan and its known results; runs nothing.

use std::collections::BTreeMap;

use super::choice::choices;
use crate::session::build::Ready;
use kforge_engine::{Blobs, Done, Node, ReadyResult};
use kforge_pipeline::plan::kernels::Selected;
use kforge_pipeline::report::baselines::BaselineReport;
use kforge_pipeline::report::kernel::{KernelDocument, SeatDocument};
use kforge_pipeline::report::provenance;
use kforge_types::record::{FORMAT_VERSION, StepKind};

/// What is known of a kernel of that name, for each package that has one with steps in the plan.
pub(super) fn kernels(ready: &Ready<'_>, known: &ReadyResult, name: &str) -> Vec<KernelDocument> {
    let mut out: Vec<KernelDocument> = vec![];
    for (node, _) in known.steps.iter().filter(|(node, _)| node.labels.kernel.as_deref() == Some(name)) {
        let labels = &node.labels;
        let at = out.iter().position(|k| k.package == labels.package).unwrap_or_else(|| {
            out.push(KernelDocument {
                format_version: FORMAT_VERSION,
                package: labels.package.clone(),
                kernel: name.into(),
                operator: labels.operator.clone().unwrap_or_default(),
                seats: vec![],
                steps: BTreeMap::new(),
                open: vec![],
            });
            out.len() - 1
        });
        let kernel = &mut out[at];
        *kernel.steps.entry(node.kind.name().into()).or_default() += 1;
        if known.open.contains(&node.id) {
            kernel.open.push(node.id.to_string());
        }
        if kernel.operator.is_empty() {
            kernel.operator = labels.operator.clone().unwrap_or_default();
        }
        kernel.seats.extend(seat(ready, known, node));
    }
    out
}

/// The seat whose champion this step selects; none for another step.
fn seat(ready: &Ready<'_>, known: &ReadyResult, node: &Node) -> Option<SeatDocument> {
    let selected = ready.expander.selected(&node.id).filter(|s| node.kind == StepKind::Select && s.stage.is_last)?;
    Some(SeatDocument {
        target: selected.target.clone(),
        types: selected.choice.label.clone(),
        select: node.id.clone(),
        choices: choices(ready, known, &node.id).unwrap_or_default(),
        baselines: baselines(ready, known, &selected),
        observed: provenance::observed(
            known
                .steps
                .iter()
                .filter(|(node, _)| is_its(node, &selected))
                .filter_map(|(_, done)| done.as_ref()?.evidence.as_ref()),
        ),
    })
}

/// Whether a step is about a kernel on a target, for the choice of types of a selection.
fn is_its(node: &Node, selected: &Selected) -> bool {
    let labels = &node.labels;
    let variant = |label: &String| selected.builds.iter().any(|build| build.label == *label);
    labels.kernel.as_ref() == Some(&selected.kernel)
        && labels.target.as_ref() == Some(&selected.target)
        && labels.variant.as_ref().is_none_or(variant)
}

/// The baselines beside the champions of a selection that are rated.
fn baselines(ready: &Ready<'_>, known: &ReadyResult, selected: &Selected) -> Vec<BaselineReport> {
    let rated = |(node, done): &(Node, Option<Done>)| {
        let labels = &node.labels;
        let is_rated = node.kind == StepKind::Rate && labels.variant.is_some() && is_its(node, selected);
        let digest = done.as_ref()?.result.as_ref()?.outputs.get("rating").copied().filter(|_| is_rated)?;
        let rating = serde_json::from_slice(&ready.leaves.get(&digest).ok()??).ok()?;
        let (shape, baseline, variant) = (labels.shape.clone()?, labels.baseline.clone()?, labels.variant.clone()?);
        Some(BaselineReport { shape, baseline, variant, rating })
    };
    known.steps.iter().filter_map(rated).collect()
}
