//! Shapes without a verdict because a step failed. Where a step of the variant itself failed, that failure is reported in their place; otherwise they name the step
//! that failed. Knows outcomes and the document; judges nothing.

use std::collections::HashMap;

use super::assemble::StepView;
use super::document::{PackageReport, ShapeReport};
use kforge_types::record::event::Labels;
use kforge_types::record::{Outcome, StepKind, Unknown, Verdict};

/// What a verification is about: package, kernel, target, variant, shape.
type Place<'a> = [&'a str; 5];

fn place(labels: &Labels) -> Option<Place<'_>> {
    let Labels { package, kernel, target, variant, shape, .. } = labels;
    Some([package, kernel.as_deref()?, target.as_deref()?, variant.as_deref()?, shape.as_deref()?])
}

/// Says why shapes have no verdict, or removes them where a failure of the report says it.
pub(super) fn explain(packages: &mut [PackageReport], steps: &[StepView<'_>]) {
    let outcomes: HashMap<&str, &StepView<'_>> = steps.iter().map(|step| (step.id, step)).collect();
    let failed = |id: &str| outcomes.get(id).copied().filter(|root| matches!(root.outcome, Outcome::Failed(_)));
    let mut roots: HashMap<Place<'_>, &StepView<'_>> = HashMap::new();
    for step in steps.iter().filter(|step| step.kind == StepKind::Verify) {
        // A confirmation and a kernel without a method have no shape of their own in the report.
        if step.labels.confirms || step.labels.method.is_some() {
            continue;
        }
        let root = match step.outcome {
            Outcome::Failed(_) => Some(step),
            Outcome::Skipped(root) => failed(root),
            _ => None,
        };
        if let (Some(place), Some(root)) = (place(step.labels), root) {
            roots.insert(place, root);
        }
    }
    if roots.is_empty() {
        return;
    }
    for package in packages {
        for kernel in &mut package.kernels {
            for target in &mut kernel.targets {
                let stays = |shape: &mut ShapeReport| {
                    let Verdict::Unknown(Unknown::Missing(why)) = &mut shape.verdict else { return true };
                    let place = [&*package.name, &*kernel.name, &*target.target, &*shape.variant, &*shape.shape];
                    let Some(root) = roots.get(&place) else { return true };
                    if root.labels.variant.as_ref() == Some(&shape.variant) {
                        return false;
                    }
                    *why = format!("`{}` failed", root.id);
                    true
                };
                target.shapes.retain_mut(stays);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::document::{KernelReport, TargetReport};
    use super::*;

    #[test]
    fn what_failed_stands_in_the_place_of_verdicts_that_it_prevents() {
        let labels = |variant: Option<&str>, shape: Option<&str>| Labels {
            package: "p".into(),
            kernel: variant.map(|_| "k".into()),
            target: variant.map(|_| "cpu".into()),
            variant: variant.map(Into::into),
            shape: shape.map(Into::into),
            ..Labels::default()
        };
        let (failed, ran) = (Outcome::Failed("no".into()), Outcome::Executed);
        let after = |root: &str| Outcome::Skipped(root.into());
        let of_method = Labels { method: Some("m".into()), ..labels(Some("A=3"), Some("s")) };
        let steps = [
            ("compile", StepKind::Compile, labels(Some("A=1"), None), failed.clone()),
            ("oracle", StepKind::Oracle, labels(None, Some("s")), failed.clone()),
            ("verify 1", StepKind::Verify, labels(Some("A=1"), Some("s")), after("compile")),
            ("verify 2", StepKind::Verify, labels(Some("A=2"), Some("s")), after("oracle")),
            ("verify 3", StepKind::Verify, labels(Some("A=3"), Some("s")), ran),
            ("verify 3 without m", StepKind::Verify, of_method, after("compile")),
            ("verify 4", StepKind::Verify, labels(Some("A=4"), Some("s")), failed),
        ];
        let views: Vec<StepView<'_>> = steps
            .iter()
            .map(|(id, kind, labels, outcome)| StepView {
                id,
                kind: *kind,
                labels,
                outcome,
                result: None,
                notes: &[],
                evidence: None,
            })
            .collect();
        let shape = |variant: &str, verdict: serde_json::Value| -> ShapeReport {
            let shape = serde_json::json!({
                "shape": "s", "variant": variant, "verdict": verdict, "emulated": true, "worst": null, "explanation": "",
            });
            serde_json::from_value(shape).unwrap()
        };
        let none = serde_json::json!({ "unknown": { "missing": "verify gave no result" } });
        let mut shapes: Vec<ShapeReport> =
            ["A=1", "A=2", "A=3", "A=4"].into_iter().map(|variant| shape(variant, none.clone())).collect();
        // An earlier build's verdict of the same binary counts, whatever failed now.
        shapes.push(shape("A=1", serde_json::json!("pass")));
        let target = TargetReport { target: "cpu".into(), shapes, ..TargetReport::default() };
        let kernel = KernelReport { name: "k".into(), operator: "o".into(), targets: vec![target] };
        let mut packages = [PackageReport { name: "p".into(), kernels: vec![kernel], ..PackageReport::default() }];
        explain(&mut packages, &views);
        let left: Vec<(&str, String)> = packages[0].kernels[0].targets[0]
            .shapes
            .iter()
            .map(|shape| (shape.variant.as_str(), shape.verdict.to_string()))
            .collect();
        let expected = [
            ("A=2", "unknown: missing: `oracle` failed"),
            ("A=3", "unknown: missing: verify gave no result"),
            ("A=1", "pass"),
        ];
        assert_eq!(left, expected.map(|(variant, verdict)| (variant, verdict.to_string())));
    }
}
