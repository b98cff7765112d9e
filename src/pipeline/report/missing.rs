//! Verdicts that are unknown because a step failed: they name that step. Texts that list the failure leave them out, because it says the same once. Knows outcomes
//! and the document; judges nothing.

use std::collections::{HashMap, HashSet};

use super::assemble::StepView;
use super::document::{PackageReport, ShapeReport, TargetReport};
use kforge_types::record::event::Labels;
use kforge_types::record::{Outcome, StepKind, Unknown, Verdict};

/// What a verification is about: package, kernel, target, variant, shape.
type Place<'a> = [&'a str; 5];

fn place(labels: &Labels) -> Option<Place<'_>> {
    let Labels { package, kernel, target, variant, shape, .. } = labels;
    Some([package, kernel.as_deref()?, target.as_deref()?, variant.as_deref()?, shape.as_deref()?])
}

/// Names the failed step in every verdict that it prevents.
pub(super) fn name(packages: &mut [PackageReport], steps: &[StepView<'_>]) {
    let failed: HashSet<&str> =
        steps.iter().filter(|step| matches!(step.outcome, Outcome::Failed(_))).map(|step| step.id).collect();
    if failed.is_empty() {
        return;
    }
    let mut roots: HashMap<Place<'_>, &str> = HashMap::new();
    // A confirmation, a candidate of a round and a kernel without a method have no verdict of their own in the report.
    let own = |labels: &Labels| !labels.confirms && labels.method.is_none() && labels.round.is_none();
    for step in steps.iter().filter(|step| step.kind == StepKind::Verify && own(step.labels)) {
        let root = match step.outcome {
            Outcome::Failed(_) => Some(step.id),
            Outcome::Skipped(root) => failed.get(root.as_str()).copied(),
            _ => None,
        };
        if let (Some(place), Some(root)) = (place(step.labels), root) {
            roots.insert(place, root);
        }
    }
    for package in packages {
        for kernel in &mut package.kernels {
            for target in &mut kernel.targets {
                for shape in &mut target.shapes {
                    let Verdict::Unknown(Unknown::Missing(why)) = &mut shape.verdict else { continue };
                    let place = [&*package.name, &*kernel.name, &*target.target, &*shape.variant, &*shape.shape];
                    let Some(root) = roots.get(&place) else { continue };
                    *why = format!("`{root}` failed");
                    shape.prevented_by = Some((*root).to_string());
                }
            }
        }
    }
}

impl TargetReport {
    /// Whether the failure that prevents a verdict is among those of this kernel and target.
    pub(super) fn has_failure_of(&self, shape: &ShapeReport) -> bool {
        shape.prevented_by.as_ref().is_some_and(|root| self.failed.iter().any(|(step, _)| step == root))
    }
}

#[cfg(test)]
mod tests {
    use super::super::document::{KernelReport, TargetReport};
    use super::*;

    #[test]
    fn a_failed_step_is_named_in_the_verdicts_that_it_prevents() {
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
        // A correct result at one shape does not make up for what is unknown at another.
        let passed = ShapeReport { shape: "t".into(), ..shape("A=1", serde_json::json!("pass")) };
        shapes.push(passed);
        let failed = vec![("compile".to_string(), "no".to_string()), ("verify 4".into(), "no".into())];
        let target = TargetReport { target: "cpu".into(), shapes, failed, ..TargetReport::default() };
        let kernel = KernelReport { name: "k".into(), operator: "o".into(), targets: vec![target] };
        let mut packages = [PackageReport { name: "p".into(), kernels: vec![kernel], ..PackageReport::default() }];
        name(&mut packages, &views);
        let target = &packages[0].kernels[0].targets[0];
        let left: Vec<(&str, String, bool)> = target
            .shapes
            .iter()
            .map(|shape| (shape.variant.as_str(), shape.verdict.to_string(), target.has_failure_of(shape)))
            .collect();
        // The failure of the oracle is reported for another kernel of the operator.
        let expected = [
            ("A=1", "unknown: missing: `compile` failed", true),
            ("A=2", "unknown: missing: `oracle` failed", false),
            ("A=3", "unknown: missing: verify gave no result", false),
            ("A=4", "unknown: missing: `verify 4` failed", true),
            ("A=1", "pass", false),
        ];
        assert_eq!(left, expected.map(|(variant, verdict, known)| (variant, verdict.to_string(), known)));
    }
}
