//! Builds nodes: ids, ranks, inputs. Knows the engine's node; does not know which nodes there are.

use std::collections::BTreeMap;

use serde::Serialize;

use kforge_engine::{InputRef, Node, Rank, Resources, Source};
use kforge_foundation::base::{Digest, worded};
use kforge_types::record::event::Labels;
use kforge_types::record::{Form, StepKind, Uuids};

/// The default time limit of a step, in seconds.
pub const TIME_LIMIT_S: u64 = 600;

/// The phase of [`Rank::phase`] up to the nomination of the variants near the best.
pub const MAIN: u8 = 0;
/// The phase of pairs among the nominated variants.
pub const PAIRING: u8 = 1;
/// The phase in which the champions of whole classes are known, and variants are nominated for single shapes.
pub const SPLITTING: u8 = 2;
/// The phase of pairs of these variants with the champions of whole classes.
pub const SPLIT_PAIRING: u8 = 3;
/// The phase in which champions are selected.
pub const DECISION: u8 = 4;
/// The phase of nodes that are known only once champions are selected.
pub const ABLATION: u8 = 5;
/// The number of phases. Each challenge of a selection has them again ([`super::challenge`]).
pub(super) const PHASES: u8 = 6;

/// A node while it is built.
pub struct NodeBuilder(Node);

impl NodeBuilder {
    /// The id of a node: the non-empty `parts`, then the kind.
    pub fn id(kind: StepKind, parts: &[&str]) -> String {
        let parts = parts.iter().copied().filter(|p| !p.is_empty());
        parts.chain([kind.name()]).collect::<Vec<_>>().join("/")
    }

    /// A node of the main phase of round 0. Its id is the non-empty `parts`, then the kind.
    pub fn new(kind: StepKind, parts: &[&str], labels: Labels, params: &impl Serialize) -> Self {
        NodeBuilder(Node {
            id: Self::id(kind, parts),
            labels,
            rank: Rank { round: 0, phase: 0, wave: 0, kind },
            kind,
            // Parameters are structs of numbers, texts, lists and maps with text keys, which always serialize.
            params: serde_json::to_value(params).expect("BUG: parameters that do not serialise"),
            inputs: BTreeMap::new(),
            after: vec![],
            resources: Resources {
                cpus: u32::from(kind.lane().is_some()),
                memory_mib: kind.descriptor().memory_mib,
                ..Resources::default()
            },
            product: None,
            time_limit_s: TIME_LIMIT_S,
            unavailable: None,
            expands: false,
            advisory: false,
        })
    }

    /// Puts the node in that phase. Nodes of the ablation phase are advisory: a variant that is wrong or does not show its method is a finding.
    #[must_use]
    pub fn phase(mut self, phase: u8) -> Self {
        self.0.rank.phase = phase;
        self.0.advisory = phase == ABLATION;
        self
    }

    /// Puts the node in that round. Nodes of rounds are advisory: a candidate that is wrong is a finding.
    #[must_use]
    pub fn round(mut self, round: u32) -> Self {
        self.0.rank.round = round;
        self.0.advisory |= round > 0;
        self
    }

    /// Orders the node after those nodes, without reading anything from them.
    #[must_use]
    pub fn after(mut self, nodes: impl IntoIterator<Item = String>) -> Self {
        self.0.after.extend(nodes);
        self
    }

    /// Makes a failing verdict a finding.
    #[must_use]
    pub fn advisory(mut self) -> Self {
        self.0.advisory = true;
        self
    }

    /// Makes a failing verdict count in every round.
    #[must_use]
    pub fn binding(mut self) -> Self {
        self.0.advisory = false;
        self
    }

    /// Adds bytes that already exist as an input.
    #[must_use]
    pub fn blob(mut self, name: &str, digest: Digest) -> Self {
        self.0.inputs.insert(name.into(), InputRef { source: Source::Blob(digest), form: Form::Blob });
        self
    }

    /// Adds a tree that already exists as an input.
    #[must_use]
    pub fn tree(mut self, name: &str, digest: Digest) -> Self {
        self.0.inputs.insert(name.into(), InputRef { source: Source::Blob(digest), form: Form::Tree });
        self
    }

    /// Adds a tool as an input. Without the tool the node is unavailable.
    #[must_use]
    pub fn tool(self, name: &str, tool: &super::Tool) -> Self {
        match tool {
            super::Tool::Known(digest) => self.blob(name, *digest),
            super::Tool::Missing(why) => self.unavailable(why),
        }
    }

    /// Adds another node's output as a required input.
    #[must_use]
    pub fn output(self, name: &str, node: &str, output: &str) -> Self {
        self.from(name, node, output, Form::Blob, true)
    }

    /// Adds the outputs of a compile and an inspect step as inputs. Their names end in `of`.
    #[must_use]
    pub fn build(self, of: &str, compile: &str, inspect: &str) -> Self {
        let named = |name: &str| format!("{name}{of}");
        self.output(&named("binary"), compile, "binary").output(&named("facts"), compile, "facts").output(
            &named("inspection"),
            inspect,
            "inspection",
        )
    }

    /// Adds another node's output as an optional input: absent if that node gave none.
    #[must_use]
    pub fn optional(self, name: &str, node: &str, output: &str) -> Self {
        self.from(name, node, output, Form::Blob, false)
    }

    /// Adds another node's output as an input folder.
    #[must_use]
    pub fn output_tree(self, name: &str, node: &str, output: &str) -> Self {
        self.from(name, node, output, Form::Tree, true)
    }

    fn from(mut self, name: &str, node: &str, output: &str, form: Form, required: bool) -> Self {
        let source = Source::Output { node: node.into(), name: output.into(), required };
        self.0.inputs.insert(name.into(), InputRef { source, form });
        self
    }

    /// Sets the number of results of the same phase that were known before the node could be planned.
    #[must_use]
    pub fn wave(mut self, wave: u32) -> Self {
        self.0.rank.wave = wave;
        self
    }

    /// Makes the node unavailable on this machine.
    #[must_use]
    pub fn unavailable(mut self, why: &str) -> Self {
        self.0.unavailable.get_or_insert_with(|| worded(why));
        self
    }

    /// Sets the time limit in seconds.
    #[must_use]
    pub fn limit(mut self, seconds: u64) -> Self {
        self.0.time_limit_s = seconds;
        self
    }

    /// Lets the node use one of these devices and observe that product, or any product. The node takes no processor slot: few such nodes run for a device at
    /// once, and most of the time they wait for it.
    #[must_use]
    pub fn device(mut self, (uuids, product): (Uuids, Option<String>), exclusive: bool) -> Self {
        self.0.resources.device = Some(uuids);
        self.0.resources.cpus = 0;
        self.0.resources.exclusive = exclusive;
        self.0.product = product;
        self
    }

    /// Makes the node unavailable on this machine, if there is a reason.
    #[must_use]
    pub fn unless(self, why: Option<String>) -> Self {
        match why {
            Some(why) => self.unavailable(&why),
            None => self,
        }
    }

    /// Sets the expected memory in MiB.
    #[must_use]
    pub fn memory(mut self, mib: u64) -> Self {
        self.0.resources.memory_mib = mib;
        self
    }

    /// Says that the result adds nodes.
    #[must_use]
    pub fn expands(mut self) -> Self {
        self.0.expands = true;
        self
    }

    /// The node.
    pub fn done(self) -> Node {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_at_a_device_keeps_no_processor_from_others() {
        let make = || NodeBuilder::new(StepKind::Verify, &["v"], Labels::default(), &());
        assert_eq!(make().done().resources.cpus, 1);
        let node = make().device((["GPU-0".into()].into(), None), false).done();
        assert_eq!((node.resources.cpus, node.resources.device.as_deref()), (0, Some(&["GPU-0".to_string()][..])));
    }
}
