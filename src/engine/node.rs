//! A node of the plan: what to do, with inputs that are bound later. Knows the ids of other nodes; does not know what they do.

use std::collections::BTreeMap;

use kforge_foundation::base::Digest;
use kforge_types::record::event::Labels;
use kforge_types::record::{Form, StepKind, Uuids};

/// A readable, unique id: `norms/rms_norm/BLOCK=256,VEC=4/h200/llama/bench`.
pub type NodeId = String;

/// The place of a node relative to others, compared lexicographically, so that nodes added by an expansion can never close a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank {
    /// The round of the optimization loop.
    pub round: u32,
    /// 0: the main phase, until it is known which variants are near the best; 1: pairing those; 2: naming variants for single shapes; 3: pairing those; 4: the
    /// decision; 5: ablation of the champions. Every phase except the first is added by a result of an earlier phase.
    pub phase: u8,
    /// The number of results in the same phase that had to be known before the node could be planned. Each turn of a search over tunables is a wave of the main
    /// phase, and what a second device measures is wave 1 of its phase; all other nodes are in wave 0.
    pub wave: u32,
    /// The kind.
    pub kind: StepKind,
}

/// The source of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Bytes that are already in the store.
    Blob(Digest),
    /// An output of another node.
    Output {
        /// The node.
        node: NodeId,
        /// The name of its output.
        name: String,
        /// Whether the reading node cannot run without the output. If it can, the input is bound as absent when the other node gave nothing.
        required: bool,
    },
}

/// One input of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputRef {
    /// Its source.
    pub source: Source,
    /// The form in which the step gets it.
    pub form: Form,
}

/// The resources that a node occupies while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resources {
    /// Processor slots; 0 for pure steps.
    pub cpus: u32,
    /// The memory in MiB that the step is expected to need. Steps that together need more than the machine has wait for each other. An estimate: a step that
    /// exceeds it is not ended.
    pub memory_mib: u64,
    /// The devices of this machine that the step may use; it takes one of them. None if it uses no device. Empty if no device here is suitable, so that the
    /// step cannot run.
    pub device: Option<Uuids>,
    /// Whether the step needs the device exclusively.
    pub exclusive: bool,
}

/// A node of the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its readable id.
    pub id: NodeId,
    /// The subject of the step, for people and filters.
    pub labels: Labels,
    /// Its rank.
    pub rank: Rank,
    /// The kind of the step.
    pub kind: StepKind,
    /// The kind's typed parameters, serialized.
    pub params: serde_json::Value,
    /// Inputs by name.
    pub inputs: BTreeMap<String, InputRef>,
    /// Ids of nodes that must end first although this node does not read them. A failure of one does not hold this node back.
    pub after: Vec<NodeId>,
    /// The resources that it occupies.
    pub resources: Resources,
    /// For a step that observes a device: the product whose answer counts, such as `NVIDIA H200`; none if any product may answer. It is not in the key: the
    /// answers of all devices are recorded under one question. Two nodes that ask different products are still different work.
    pub product: Option<String>,
    /// The time in seconds after which the step is ended.
    pub time_limit_s: u64,
    /// What is missing, if this machine cannot run the step; a cached result still counts.
    pub unavailable: Option<String>,
    /// Whether the result is passed to [`super::Expand`], to add nodes.
    pub expands: bool,
    /// Whether a failing verdict is a finding rather than a failure, so that it does not end the build: for kernels that are built only for comparison.
    pub advisory: bool,
}
