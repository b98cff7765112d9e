//! Runs a plan: what is stale, in which order, with which resources, remembered where. Nodes are opaque: it binds inputs, forms keys, asks caches and
//! calls runners; it does not know what a kernel is.

pub mod action;
pub mod blobs;
pub mod collect;
pub mod evidence;
pub mod home;
pub mod journal;
pub mod lock;
pub mod node;
pub mod stat;
pub mod traits;

#[cfg(test)]
#[path = "lock/testing.rs"]
mod lock_testing;

pub use node::{InputRef, Node, NodeId, Rank, Resources, Source};
pub use traits::{Blobs, Cache, Expand, Hit, Job, Ran, RunError, Runner};
