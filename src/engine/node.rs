//! A node of the plan: what to do, with inputs still to be bound. Knows names of other nodes; does not know what they do.

use std::collections::BTreeMap;

use kforge_foundation::base::Digest;
use kforge_types::record::event::Labels;
use kforge_types::record::{Form, StepKind, Uuids};

/// A readable, unique name: `norms/rms_norm/BLOCK=256,VEC=4/h200/llama/bench`.
pub type NodeId = String;

/// When a node may come relative to others: lexicographic, so that what expansion adds can never close a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank {
    /// Round of the optimisation loop.
    pub round: u32,
    /// 0: the main phase, up to who is near the best; 1: pairing them; 2: the decision; 3: ablation of what was decided. Each phase but the first is
    /// added by a result of an earlier one.
    pub phase: u8,
    /// Within a phase: how many results had to be known before it was. Each turn of a search over tunables is a wave of the main phase; all else is wave 0.
    pub wave: u32,
    /// The kind.
    pub kind: StepKind,
}

/// What one input is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Bytes that are in the store already.
    Blob(Digest),
    /// An output of another node.
    Output {
        /// The node.
        node: NodeId,
        /// The name of its output.
        name: String,
        /// Whether this node cannot run without it. If not, the input is bound as absent when that node gave nothing.
        required: bool,
    },
}

/// One input of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputRef {
    /// What it is made of.
    pub source: Source,
    /// How it is laid out for the step.
    pub form: Form,
}

/// What a node takes up while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resources {
    /// Processor slots; 0 for pure steps.
    pub cpus: u32,
    /// Memory in MiB that it is expected to need; steps that need more together than there is wait for each other. An estimate: it ends nothing.
    pub memory_mib: u64,
    /// The devices of this machine that it may use, of which it takes one; none where it uses no device. Empty where no device here would do: it cannot run then.
    pub device: Option<Uuids>,
    /// Whether it needs the device for itself.
    pub exclusive: bool,
}

/// A node of the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its readable id.
    pub id: NodeId,
    /// What it is about, for people and filters.
    pub labels: Labels,
    /// Its place in the order.
    pub rank: Rank,
    /// What to do.
    pub kind: StepKind,
    /// The kind's typed parameters, serialised.
    pub params: serde_json::Value,
    /// Inputs by name.
    pub inputs: BTreeMap<String, InputRef>,
    /// Ids of nodes that must end first though nothing of them is read; one that failed does not hold this one back.
    pub after: Vec<NodeId>,
    /// What it takes up.
    pub resources: Resources,
    /// For steps that observe a device: the product whose answer counts, `NVIDIA H200`; none where any may answer. It is no part of the key: what devices
    /// answered lies under one question side by side, and two nodes that ask different products are not the same work.
    pub product: Option<String>,
    /// Seconds after which it is ended.
    pub time_limit_s: u64,
    /// Set where this machine cannot run it, with what is missing; a cached result still counts.
    pub unavailable: Option<String>,
    /// Whether [`super::Expand`] wants its result to add nodes.
    pub expands: bool,
    /// Whether a failing verdict of it is a finding rather than a failure, which ends no build: of what is made for comparison only.
    pub advisory: bool,
}
