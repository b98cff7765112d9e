//! The plan as a graph: nodes with dense indices, and edges from each node to its dependents. Enforces the rules that make cycles impossible; does not know the
//! state of any node.
//!
//! | rule | why |
//! |---|---|
//! | ids are unique | results, explanations and the journal name nodes by them |
//! | an input names an existing node | no node waits for a result that never arrives |
//! | a dependency's rank is below the node's, or equal to it without a cycle among equals | the graph is acyclic by construction |
//! | nodes are only ever appended | an index stays valid while a build runs |
//! | nodes that an expansion adds rank above the expanding node | expansion ends |

use std::collections::HashMap;
use std::ops::Range;

use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::graphmap::DiGraphMap;
use petgraph::{Direction, algo};
use serde_json::Value;

use super::{Node, NodeId, Rank, Source};

/// A node's index in its graph: dense, from zero, and stable.
pub type Index = u32;

/// The value in [`Graph::sources`] for an input that is already in the store.
pub(super) const STORED: Index = Index::MAX;

/// Why nodes cannot be added. Each reason is a bug of the planner.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// Two nodes have the same id.
    #[error("two nodes are called `{0}`: expected unique ids")]
    Twice(NodeId),
    /// An input or an order names a node that does not exist.
    #[error("`{node}` needs `{names}`, which is not in the plan")]
    NoSuch {
        /// The node that needs it.
        node: NodeId,
        /// The missing node.
        names: NodeId,
    },
    /// A dependency ranks after the node that needs it.
    #[error("`{node}` needs `{dependency}`, which ranks after it")]
    Backwards {
        /// The node that needs it.
        node: NodeId,
        /// What it needs.
        dependency: NodeId,
    },
    /// Nodes of one rank need each other.
    #[error("`{0}` needs itself, through nodes of its own rank")]
    Cycle(NodeId),
    /// An added node does not rank after the node that expands.
    #[error("`{node}`, added by `{expander}`, does not rank after it")]
    NotAfter {
        /// The added node.
        node: NodeId,
        /// The node that expands.
        expander: NodeId,
    },
}

/// The plan.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// Edges run from a node to the nodes that read it.
    inner: DiGraph<Node, (), Index>,
    index: HashMap<NodeId, Index>,
    /// For each node, for each input in the order of its name: the node that produces it, or [`STORED`].
    sources: Vec<Index>,
    /// The position in `sources` at which each node's part begins.
    first: Vec<u32>,
}

impl Graph {
    /// A graph of `nodes`, given in any order.
    pub fn new(nodes: Vec<Node>) -> Result<Graph, GraphError> {
        let mut graph = Graph::default();
        graph.append(nodes)?;
        Ok(graph)
    }

    /// Adds the nodes that the expansion of `expander` returned; returns their indices. Leaves out nodes that exist already and are equal in every field, so
    /// that two expansions may need the same node. On an error nothing is added.
    pub fn expand(&mut self, expander: Index, mut nodes: Vec<Node>) -> Result<Range<Index>, GraphError> {
        let above: Rank = self.node(expander).rank;
        nodes.retain(|new| self.find(&new.id).is_none_or(|i| self.node(i) != new));
        if let Some(low) = nodes.iter().find(|n| n.rank <= above) {
            return Err(GraphError::NotAfter { node: low.id.clone(), expander: self.node(expander).id.clone() });
        }
        self.append(nodes)
    }

    fn append(&mut self, nodes: Vec<Node>) -> Result<Range<Index>, GraphError> {
        let start = self.len() as Index;
        self.index.reserve(nodes.len());
        for (i, node) in nodes.iter().enumerate() {
            if self.index.insert(node.id.clone(), start + i as Index).is_some() {
                let twice = GraphError::Twice(node.id.clone());
                // An older node's entry must be restored; all others of this call are removed.
                self.forget(&nodes, start);
                return Err(twice);
            }
        }
        match self.resolve(&nodes, start) {
            Ok(resolved) => {
                self.commit(nodes, resolved);
                Ok(start..self.len() as Index)
            }
            Err(error) => {
                self.forget(&nodes, start);
                Err(error)
            }
        }
    }

    /// Removes the names of rejected nodes from the index.
    fn forget(&mut self, nodes: &[Node], start: Index) {
        for node in nodes {
            self.index.remove(&node.id);
        }
        for i in 0..start {
            // Needed only if a rejected node had the id of an older one. The linear walk does not matter, because a rejection ends the build.
            let id = &self.inner[NodeIndex::new(i as usize)].id;
            if !self.index.contains_key(id) {
                self.index.insert(id.clone(), i);
            }
        }
    }

    /// Resolves the dependencies of new nodes to indices: first those of their inputs, then those of their order.
    fn resolve(&self, nodes: &[Node], start: Index) -> Result<Resolved, GraphError> {
        let mut resolved = Resolved::default();
        let mut equals: DiGraphMap<Index, ()> = DiGraphMap::new();
        for (i, node) in nodes.iter().enumerate() {
            let me = start + i as Index;
            let mut depend = |name: &NodeId| -> Result<Index, GraphError> {
                let missing = || GraphError::NoSuch { node: node.id.clone(), names: name.clone() };
                let dep = *self.index.get(name).ok_or_else(missing)?;
                let rank = match dep.checked_sub(start) {
                    Some(new) => nodes[new as usize].rank,
                    None => self.node(dep).rank,
                };
                if rank > node.rank {
                    return Err(GraphError::Backwards { node: node.id.clone(), dependency: name.clone() });
                }
                if rank == node.rank {
                    equals.add_edge(dep, me, ());
                }
                resolved.edges.push((dep, me));
                Ok(dep)
            };
            resolved.first.push(resolved.sources.len() as u32);
            for input in node.inputs.values() {
                resolved.sources.push(match &input.source {
                    Source::Blob(_) => STORED,
                    Source::Output { node: name, .. } => depend(name)?,
                });
            }
            for name in &node.after {
                depend(name)?;
            }
        }
        match algo::toposort(&equals, None) {
            Ok(_) => Ok(resolved),
            Err(cycle) => {
                let at = cycle.node_id().checked_sub(start).map(|new| nodes[new as usize].id.clone());
                Err(GraphError::Cycle(at.unwrap_or_default()))
            }
        }
    }

    fn commit(&mut self, nodes: Vec<Node>, resolved: Resolved) {
        let base = self.sources.len() as u32;
        self.inner.reserve_nodes(nodes.len());
        self.inner.reserve_edges(resolved.edges.len());
        for node in nodes {
            self.inner.add_node(node);
        }
        for (from, to) in resolved.edges {
            self.inner.add_edge(NodeIndex::new(from as usize), NodeIndex::new(to as usize), ());
        }
        self.first.extend(resolved.first.iter().map(|f| base + f));
        self.sources.extend(resolved.sources);
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.inner.node_count()
    }

    /// Whether the graph has no nodes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The node at an index of this graph.
    pub fn node(&self, index: Index) -> &Node {
        &self.inner[NodeIndex::new(index as usize)]
    }

    /// All nodes in the order of their indices.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.inner.node_weights()
    }

    /// The index of the node `id`.
    pub fn find(&self, id: &str) -> Option<Index> {
        self.index.get(id).copied()
    }

    /// The nodes that read or wait for this node, once for each such input.
    pub fn dependents(&self, index: Index) -> impl Iterator<Item = Index> + '_ {
        self.neighbours(index, Direction::Outgoing)
    }

    /// The nodes that this node reads or waits for, once for each such input.
    pub fn dependencies(&self, index: Index) -> impl Iterator<Item = Index> + '_ {
        self.neighbours(index, Direction::Incoming)
    }

    fn neighbours(&self, index: Index, direction: Direction) -> impl Iterator<Item = Index> + '_ {
        self.inner.neighbors_directed(NodeIndex::new(index as usize), direction).map(|n| n.index() as Index)
    }

    /// For each input in the order of its name: the node that produces it, or [`STORED`].
    pub(super) fn sources(&self, index: Index) -> &[Index] {
        let start = self.first[index as usize] as usize;
        let end = self.first.get(index as usize + 1).map_or(self.sources.len(), |f| *f as usize);
        &self.sources[start..end]
    }

    /// Takes out a node's parameters, to form its spec without copying them: a spec owns its parameters, and copying a hundred thousand of them only to find
    /// every step fresh would be most of the work. [`Graph::put_params`] must follow.
    pub(super) fn take_params(&mut self, index: Index) -> Value {
        std::mem::take(&mut self.inner[NodeIndex::new(index as usize)].params)
    }

    /// Puts back the parameters that [`Graph::take_params`] took.
    pub(super) fn put_params(&mut self, index: Index, params: Value) {
        self.inner[NodeIndex::new(index as usize)].params = params;
    }
}

/// The dependencies of new nodes by index.
#[derive(Default)]
struct Resolved {
    edges: Vec<(Index, Index)>,
    sources: Vec<Index>,
    first: Vec<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{node, output};
    use kforge_types::record::StepKind;

    fn reads(id: &str, kind: StepKind, from: &str) -> Node {
        node(id, kind, &[("in", output(from, true))])
    }

    #[test]
    fn what_breaks_a_rule_is_refused_and_named() {
        let a = || node("a", StepKind::Compile, &[]);
        let refused = |nodes: Vec<Node>| Graph::new(nodes).map(|g| g.len()).unwrap_err();
        assert_eq!(refused(vec![a(), a()]), GraphError::Twice("a".into()));
        let (node, names) = ("b".to_string(), "x".to_string());
        assert_eq!(refused(vec![reads("b", StepKind::Verify, "x")]), GraphError::NoSuch { node: node.clone(), names });
        let dependency = "a".to_string();
        assert_eq!(
            refused(vec![a(), reads("b", StepKind::Generate, "a")]),
            GraphError::Backwards { node: node.clone(), dependency }
        );
        let circle = vec![reads("b", StepKind::Verify, "c"), reads("c", StepKind::Verify, "b")];
        assert!(matches!(refused(circle), GraphError::Cycle(at) if at == "b" || at == "c"));
        let after = Node { after: vec!["b".into()], ..a() };
        assert!(matches!(refused(vec![after, reads("b", StepKind::Verify, "a")]), GraphError::Backwards { .. }));
    }

    #[test]
    fn an_expansion_comes_after_its_node_and_may_name_what_is_there() {
        let mut graph = Graph::new(vec![node("a", StepKind::Compile, &[])]).unwrap();
        let low = node("low", StepKind::Compile, &[]);
        let refused = graph.expand(0, vec![reads("b", StepKind::Verify, "a"), low]).unwrap_err();
        assert_eq!(refused, GraphError::NotAfter { node: "low".into(), expander: "a".into() });
        assert_eq!((graph.len(), graph.find("b")), (1, None));
        assert_eq!(graph.expand(0, vec![reads("b", StepKind::Verify, "a")]).unwrap(), 1..2);
        assert_eq!(graph.expand(0, vec![reads("b", StepKind::Verify, "a")]).unwrap(), 2..2, "the same again");
        let other = reads("b", StepKind::Bench, "a");
        assert_eq!(graph.expand(0, vec![other]).unwrap_err(), GraphError::Twice("b".into()));
        assert_eq!((graph.find("b"), graph.dependents(0).collect::<Vec<_>>()), (Some(1), vec![1]));
    }
}
