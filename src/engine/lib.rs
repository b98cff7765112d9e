//! Runs a plan: decides what is stale, in which order steps run, with which resources, and where results are remembered. Nodes are opaque: the engine binds
//! inputs, forms keys, asks caches and calls executors. Does not know what a kernel is.

pub mod bind;
pub mod coordinator;
pub mod certificate;
pub mod dryrun;
pub mod explain;
pub mod gauge;
pub mod graph;
pub mod action;
pub mod answers;
pub mod authentication;
pub mod blobs;
pub mod candidates;
pub mod collect;
pub mod evidence;
pub mod home;
pub mod journal;
pub mod lock;
mod lookup;
pub mod machine_key;
pub mod node;
pub mod resources;
mod schedule;
pub mod services;
pub mod stamps;
pub mod state;
pub mod stat;
pub mod symbolic;
pub mod temporary;
pub mod traits;
pub mod unanswered;
mod work;

#[cfg(test)]
mod behaviour;
#[cfg(test)]
#[path = "lock/testing.rs"]
mod lock_testing;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod testing;

pub use coordinator::{BuildOutcome, build};
pub use dryrun::{
    Compiled, DryRun, Lack, Question, Questions, ReadyResult, dry_run, expanded, explain, known, known_and_asked,
    lacking, questions, recalled,
};
pub use explain::{Earlier, Explanation, Prospect, result_digest, why};
pub use graph::{Graph, GraphError, Index};
pub use node::{InputRef, Node, NodeId, Rank, Resources, Source};
pub use resources::Capacity;
pub use services::{Because, BuildOptions, KeyGuard, KeyLocks, Memory, NoLocks, PreviousResult, Row, Services};
pub use state::Done;
pub use symbolic::{symbolic_keys, symbolic_spec};
pub use traits::{
    Blobs, Cache, Execution, Executor, Expand, ExpandError, Hit, Job, RemoteAnswer, RemoteCache, RemoteQuestion,
    RunError,
};
pub use unanswered::{ClaimsOption, Unanswered};
