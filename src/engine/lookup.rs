//! The part of a check that does not depend on the order in which nodes are checked: binding inputs, forming the key, asking the caches. It is separate so that
//! many nodes can be looked up in parallel, on all cores. Knows states; does not change any.

use serde_json::Value;

use super::bind::{Bound, OutputState, bind_inputs};
use super::graph::STORED;
use super::services::{BuildOptions, look_up};
use super::state::State;
use super::{Cache, Graph, Hit, Index};
use kforge_foundation::base::Digest;
use kforge_types::record::{Implementations, Outcome, Spec};

/// The result of binding a node's inputs and asking the caches.
#[derive(Debug)]
pub(super) enum Lookup {
    /// All inputs are bound.
    Found(Box<BoundNode>),
    /// The inputs are not bound; returns the node's parameters.
    Not(Bound<()>, Value),
}

/// A node whose inputs are bound.
#[derive(Debug)]
pub(super) struct BoundNode {
    pub(super) spec: Spec,
    pub(super) key: Digest,
    /// The step is to run even if its result is known.
    pub(super) again: bool,
    /// The result in a cache, unless the step is to run again.
    pub(super) hit: Option<Hit>,
    pub(super) troubles: Vec<String>,
}

/// The shared state of the threads that look nodes up.
#[derive(Clone, Copy)]
pub(super) struct View<'v> {
    pub(super) graph: &'v Graph,
    pub(super) states: &'v [State],
    pub(super) caches: &'v [&'v dyn Cache],
    pub(super) options: &'v BuildOptions,
    pub(super) implementations: &'v Implementations,
}

impl View<'_> {
    /// The state of another node's output.
    pub(super) fn given(&self, source: Index, output: &str) -> OutputState<'_> {
        match &self.states[source as usize] {
            State::Open | State::Unknown => OutputState::Unknown,
            State::Done(done) if done.stopped => OutputState::Stopped,
            State::Done(done) => match (&done.result, &done.outcome) {
                (Some(result), _) => match result.outputs.get(output) {
                    Some(digest) => OutputState::Contents(*digest),
                    None => OutputState::Nothing(&self.graph.node(source).id),
                },
                (None, Outcome::Skipped(root)) => OutputState::Nothing(root),
                (None, _) => OutputState::Nothing(&self.graph.node(source).id),
            },
        }
    }

    /// Binds a node's inputs, forms its key and asks the caches.
    pub(super) fn look(&self, index: Index, params: Value) -> Lookup {
        let node = self.graph.node(index);
        let sources = self.graph.sources(index);
        assert_eq!(sources.len(), node.inputs.len(), "the graph's sources stand in the order of inputs");
        let bound = bind_inputs(node, |position, output| match sources[position] {
            STORED => OutputState::Unknown,
            source => self.given(source, output),
        });
        let inputs = match bound {
            Bound::Ready(inputs) => inputs,
            Bound::NotYet => return Lookup::Not(Bound::NotYet, params),
            Bound::Skipped(root) => return Lookup::Not(Bound::Skipped(root), params),
            Bound::Stopped => return Lookup::Not(Bound::Stopped, params),
        };
        let again = node.unavailable.is_none() && self.options.remeasure.as_ref().is_some_and(|chosen| chosen(node));
        let (kind, version) = (node.kind, node.kind.version());
        let spec = Spec { kind, version, implementation: self.implementations.of(kind, &params), params, inputs };
        let key = spec.key();
        let mut troubles = vec![];
        let product = node.product.as_deref();
        let hit = if again { None } else { look_up(self.caches, &key, &spec, product, &mut troubles) };
        let chosen = |hit: &Hit| self.options.recheck.as_ref().is_some_and(|chosen| chosen(node, &key, hit));
        let rechecked = node.unavailable.is_none() && hit.as_ref().is_some_and(chosen);
        let (again, hit) = if rechecked { (true, None) } else { (again, hit) };
        Lookup::Found(Box::new(BoundNode { spec, key, again, hit, troubles }))
    }
}
