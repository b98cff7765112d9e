//! Contenders without evidence: variants that might have been champion in place of the one that was selected. Knows selections and questions; times nothing.

use std::collections::BTreeSet;

use super::sides::Side;
use crate::session::champions::Champion;
use kforge_engine::{Compiled, Node, NodeId, Source};
use kforge_types::record::StepKind;

/// Whether a variant was a contender for the place of this champion and might have taken it with more evidence: it serves every shape of the class, its compilation
/// was not refused, nothing shows that it is wrong, and a question about it at a shape of the class has no answer that counts. A variant that a search did not
/// try is no contender.
pub(super) fn lacks_evidence(side: &Side<'_, '_>, champion: &Champion, variant: &str) -> bool {
    let (ready, known) = (side.ready, &side.known);
    let decided = known.decided.iter().find(|(node, _)| node.id == champion.selection);
    let selection = decided.and_then(|(_, result)| ready.selection(result));
    let selected = ready.expander.selected(&champion.selection);
    let (Some(selection), Some(selected)) = (selection, selected) else { return false };
    let Some(about) = ready.expander.about(&selected) else { return false };
    let class = &selected.shapes[champion.at as usize];
    let of_class: Vec<u32> = (0..).zip(&selected.shapes).filter(|(_, of)| *of == class).map(|(at, _)| at).collect();
    let names: BTreeSet<&str> = of_class.iter().map(|at| about.shapes[*at as usize].0.as_str()).collect();
    let is_out = |order| selection.wrong.contains(&order) || selection.wrong_on_cpu.contains(&order);
    let fields = selected.field.builds.iter().zip(&selected.field.serves);
    let contenders = fields.filter(|(build, serves)| {
        build.label == variant && !is_out(build.variant.order) && of_class.iter().all(|at| serves.contains(at))
    });
    let rounds: BTreeSet<u32> = contenders.map(|(build, _)| build.round).collect();
    known.asked.iter().filter(|question| !question.answered && is_about_contender(&question.node)).any(|question| {
        let (of, timed) = (&question.node.labels, &champion.timed);
        of.package == timed.package
            && (of.kernel.as_ref(), of.target.as_ref()) == (Some(&timed.kernel), Some(&timed.target))
            && of.variant.as_deref() == Some(variant)
            && rounds.contains(&of.round.unwrap_or(0))
            && of.shape.as_ref().is_some_and(|shape| names.contains(shape.as_str()))
            && !was_refused(&question.node, &known.made)
    })
}

/// Whether a step verifies or times a contender. A variant without a method bears the label of the one that has it, and a champion is verified once more.
fn is_about_contender(node: &Node) -> bool {
    match node.kind {
        StepKind::Verify => node.labels.method.is_none() && !node.labels.confirms,
        StepKind::Bench | StepKind::Calls => node.labels.method.is_none(),
        _ => false,
    }
}

/// Whether the compiler refused the variant of a step: its compilation has ended without a binary.
fn was_refused(node: &Node, made: &[Compiled]) -> bool {
    let refused = |node: &NodeId| made.iter().any(|c| c.node.id == *node && c.result.outputs.is_empty());
    node.inputs.values().any(|input| match &input.source {
        Source::Output { node, .. } => refused(node),
        Source::Blob(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_foundation::base::Digest;
    use kforge_pipeline::plan::node_builder::NodeBuilder;
    use kforge_types::record::event::Labels;
    use kforge_types::record::{Spec, StepResult};

    fn node(kind: StepKind, labels: Labels) -> Node {
        NodeBuilder::new(kind, &["k"], labels, &()).optional("binary", "k/compile", "binary").done()
    }

    #[test]
    fn variants_without_a_method_and_confirmations_are_no_contenders() {
        let own = |kind, labels| is_about_contender(&node(kind, labels));
        let without = || Labels { method: Some("m".into()), ..Labels::default() };
        let confirms = || Labels { confirms: true, ..Labels::default() };
        let kinds = [StepKind::Verify, StepKind::Bench, StepKind::Calls];
        assert_eq!(kinds.map(|kind| own(kind, Labels::default())), [true; 3]);
        assert_eq!(kinds.map(|kind| own(kind, without())), [false; 3]);
        // Calls of kernels in PyTorch are timed in a process of their own, as confirmations are.
        assert_eq!(kinds.map(|kind| own(kind, confirms())), [false, true, true]);
        assert!(!own(StepKind::Profile, Labels::default()));
    }

    #[test]
    fn a_variant_that_the_compiler_refused_is_no_contender() {
        let compile = NodeBuilder::new(StepKind::Compile, &["k"], Labels::default(), &()).done();
        let spec = Spec {
            kind: StepKind::Compile,
            version: 1,
            implementation: None,
            params: serde_json::Value::Null,
            inputs: [].into(),
        };
        let of = |outputs: &[&str]| {
            let outputs = outputs.iter().map(|name| (name.to_string(), Digest::of(b"x"))).collect();
            let result = StepResult { outputs, verdict: None, notes: vec![], summary: String::new(), duration_ms: 0 };
            Compiled { node: compile.clone(), spec: spec.clone(), result }
        };
        let verify = node(StepKind::Verify, Labels::default());
        assert!(was_refused(&verify, &[of(&[])]));
        assert!(!was_refused(&verify, &[of(&["binary"])]) && !was_refused(&verify, &[]));
    }
}
