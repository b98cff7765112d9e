//! The champion of each shape, and the step that timed it. Knows how select steps name their inputs; decides nothing.

use super::build::Ready;
use kforge_engine::{Blobs, Node, NodeId, Questions, Source};
use kforge_pipeline::release::bundle::TimedChampion;
use kforge_types::record::params::Selection;
use kforge_types::record::{Spec, StepResult};

/// A champion at a shape at which it is timed.
#[derive(Debug, Clone)]
pub struct Champion {
    /// The champion and its seat.
    pub timed: TimedChampion,
    /// The step that times it.
    pub node: Node,
    /// The spec of that step.
    pub spec: Spec,
    /// The select node that decided.
    pub selection: NodeId,
    /// The position of the shape among those of the selection.
    pub at: u32,
}

impl Ready<'_> {
    /// The champions that known results name, at each of their bench shapes with a known question, in the order of the plan.
    pub fn champions(&self, known: &Questions) -> Vec<Champion> {
        let mut out = Vec::new();
        for (node, result) in &known.decided {
            let Some(selected) = self.expander.selected(&node.id).filter(|s| s.stage.is_last) else { continue };
            let Some(selection) = self.selection(result) else { continue };
            for champion in &selection.champions {
                for at in &champion.shapes {
                    let Some(variant) = champion.variant else { continue };
                    let Some(input) = node.inputs.get(&format!("bench:{variant}:{at}")) else { continue };
                    let Source::Output { node: bench, .. } = &input.source else { continue };
                    let Some(timed) = known.asked.iter().find(|q| q.node.id == *bench) else { continue };
                    let Some(spec) = &timed.spec else { continue };
                    let label = |text: &Option<String>| text.clone().unwrap_or_default();
                    out.push(Champion {
                        timed: TimedChampion {
                            package: node.labels.package.clone(),
                            kernel: label(&node.labels.kernel),
                            types: selected.choice.label.clone(),
                            target: label(&node.labels.target),
                            shape: label(&timed.node.labels.shape),
                            variant: label(&timed.node.labels.variant),
                            hot: node.params.get("hot").and_then(serde_json::Value::as_bool).unwrap_or(false),
                            bench: spec.key(),
                        },
                        node: timed.node.clone(),
                        spec: spec.clone(),
                        selection: node.id.clone(),
                        at: *at,
                    });
                }
            }
        }
        out
    }

    /// The selection that a deciding select node gave.
    pub(crate) fn selection(&self, result: &StepResult) -> Option<Selection> {
        let bytes = self.leaves.get(result.outputs.get("selection")?).ok()??;
        serde_json::from_slice(&bytes).ok()
    }
}
