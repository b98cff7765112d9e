//! Makes nodes: ids, ranks, inputs. Knows the engine's node; does not know which nodes there are.

use std::collections::BTreeMap;

use serde::Serialize;

use kforge_engine::{InputRef, Node, Rank, Resources, Source};
use kforge_foundation::base::{Digest, worded};
use kforge_types::record::event::Labels;
use kforge_types::record::{Form, StepKind, Uuids};

/// Seconds after which a step is ended that says nothing else.
pub const TIME_LIMIT_S: u64 = 600;

/// The phase of [`Rank::phase`] up to the nomination of those near the best.
pub const MAIN: u8 = 0;
/// The phase of pairs among them.
pub const PAIRING: u8 = 1;
/// The phase in which champions are selected.
pub const DECISION: u8 = 2;
/// The phase of nodes that are known only once champions are.
pub const ABLATION: u8 = 3;

/// A node in the making.
pub struct NodeBuilder(Node);

impl NodeBuilder {
    /// The id of a node of that kind: `parts`, empty ones left out, and the kind.
    pub fn id(kind: StepKind, parts: &[&str]) -> String {
        let parts = parts.iter().copied().filter(|p| !p.is_empty());
        parts.chain([kind.name()]).collect::<Vec<_>>().join("/")
    }

    /// A node of the main phase of round 0. `parts` are joined to its id, empty ones left out; the kind comes last.
    pub fn new(kind: StepKind, parts: &[&str], labels: Labels, params: &impl Serialize) -> Self {
        NodeBuilder(Node {
            id: Self::id(kind, parts),
            labels,
            rank: Rank { round: 0, phase: 0, wave: 0, kind },
            kind,
            // Parameters are structs of numbers, texts, lists and maps with text keys: they always serialise.
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

    /// In that phase. What ablation makes is there to be compared with: that it is wrong, or shows no method, is a finding.
    #[must_use]
    pub fn phase(mut self, phase: u8) -> Self {
        self.0.rank.phase = phase;
        self.0.advisory = phase == ABLATION;
        self
    }

    /// In that round. What a round tries is there to be tried: that it is wrong is a finding.
    #[must_use]
    pub fn round(mut self, round: u32) -> Self {
        self.0.rank.round = round;
        self.0.advisory |= round > 0;
        self
    }

    /// Ends after those nodes, but reads nothing from them.
    #[must_use]
    pub fn after(mut self, nodes: impl IntoIterator<Item = String>) -> Self {
        self.0.after.extend(nodes);
        self
    }

    /// Its failing verdict is a finding.
    #[must_use]
    pub fn advisory(mut self) -> Self {
        self.0.advisory = true;
        self
    }

    /// Its failing verdict counts, notwithstanding its round.
    #[must_use]
    pub fn binding(mut self) -> Self {
        self.0.advisory = false;
        self
    }

    /// With bytes that are there already.
    #[must_use]
    pub fn blob(mut self, name: &str, digest: Digest) -> Self {
        self.0.inputs.insert(name.into(), InputRef { source: Source::Blob(digest), form: Form::Blob });
        self
    }

    /// With a tree that already exists.
    #[must_use]
    pub fn tree(mut self, name: &str, digest: Digest) -> Self {
        self.0.inputs.insert(name.into(), InputRef { source: Source::Blob(digest), form: Form::Tree });
        self
    }

    /// With a tool, or unavailable for want of it.
    #[must_use]
    pub fn tool(self, name: &str, tool: &super::Tool) -> Self {
        match tool {
            super::Tool::Known(digest) => self.blob(name, *digest),
            super::Tool::Missing(why) => self.unavailable(why),
        }
    }

    /// With another node's output, which it cannot do without.
    #[must_use]
    pub fn output(self, name: &str, node: &str, output: &str) -> Self {
        self.from(name, node, output, Form::Blob, true)
    }

    /// With what these steps made of a source, under names that end so.
    #[must_use]
    pub fn build(self, of: &str, compile: &str, inspect: &str) -> Self {
        let named = |name: &str| format!("{name}{of}");
        self.output(&named("binary"), compile, "binary").output(&named("facts"), compile, "facts").output(
            &named("inspection"),
            inspect,
            "inspection",
        )
    }

    /// With another node's output, absent if that node gave nothing.
    #[must_use]
    pub fn optional(self, name: &str, node: &str, output: &str) -> Self {
        self.from(name, node, output, Form::Blob, false)
    }

    /// With another node's output as a folder.
    #[must_use]
    pub fn output_tree(self, name: &str, node: &str, output: &str) -> Self {
        self.from(name, node, output, Form::Tree, true)
    }

    fn from(mut self, name: &str, node: &str, output: &str, form: Form, required: bool) -> Self {
        let source = Source::Output { node: node.into(), name: output.into(), required };
        self.0.inputs.insert(name.into(), InputRef { source, form });
        self
    }

    /// Cannot run on this machine.
    #[must_use]
    pub fn unavailable(mut self, why: &str) -> Self {
        self.0.unavailable.get_or_insert_with(|| worded(why));
        self
    }

    /// Ended after this many seconds.
    #[must_use]
    pub fn limit(mut self, seconds: u64) -> Self {
        self.0.time_limit_s = seconds;
        self
    }

    /// Takes up one of these devices, and observes that product, or whichever there is. It takes no slot of the processors: few of them are at work for a
    /// device at once, and most of their time they wait for it.
    #[must_use]
    pub fn device(mut self, (uuids, product): (Uuids, Option<String>), exclusive: bool) -> Self {
        self.0.resources.device = Some(uuids);
        self.0.resources.cpus = 0;
        self.0.resources.exclusive = exclusive;
        self.0.product = product;
        self
    }

    /// Cannot run on this machine, if there is a reason.
    #[must_use]
    pub fn unless(self, why: Option<String>) -> Self {
        match why {
            Some(why) => self.unavailable(&why),
            None => self,
        }
    }

    /// Expected to need so much memory, in MiB.
    #[must_use]
    pub fn memory(mut self, mib: u64) -> Self {
        self.0.resources.memory_mib = mib;
        self
    }

    /// Its result adds nodes.
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
