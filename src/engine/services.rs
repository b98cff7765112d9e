//! The services of a build: what executes steps, remembers results, adds nodes, and prevents two processes from doing the same work. Declares the traits that
//! only the coordinator uses; does not know their implementations.

use std::any::Any;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use serde::{Deserialize, Serialize};

use super::resources::Capacity;
use super::{Blobs, Cache, Executor, Expand, Hit, Node};
use kforge_foundation::base::Digest;
use kforge_types::record::event::{CacheOrigin, EvidenceSeen, Why};
use kforge_types::record::{Implementations, Spec, StepKind, StepResult};

/// One link of the chain of reasons for which a step ran: the step, or below the last step the file, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Because {
    /// A step's id; for a file of a folder that was read, the input and the file: `inputs.source/softmax.cu`.
    pub what: String,
    /// Why it ran, or what became of the file (`added`, `removed`, `changed`).
    pub why: Why,
}

/// What this workspace remembers of the last time a step had a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PreviousResult {
    /// Its key then.
    pub key: Digest,
    /// The fields that were hashed then, in canonical order.
    pub explanation: Vec<(String, String)>,
    /// Whether the result was of the kind that is not kept (a time-out).
    pub forgotten: bool,
    /// Why it had another key than the time before, from itself to the root cause.
    pub because: Vec<Because>,
    /// Whether its result was known then: it did not run.
    pub known: bool,
}

/// A row for the journal: a step had this result under this key.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// The step.
    pub id: &'a str,
    /// Its kind.
    pub kind: StepKind,
    /// Its key.
    pub key: &'a Digest,
    /// The fields that were hashed, in canonical order.
    pub explanation: &'a [(String, String)],
    /// The result; none where it must not be kept.
    pub result: Option<&'a StepResult>,
    /// Who remembered it; [`CacheOrigin::None`] if it ran.
    pub origin: CacheOrigin,
    /// Where it was observed, for observations of a device. What they answer depends on more than the key, so a journal must not answer for them.
    pub evidence: Option<&'a EvidenceSeen>,
    /// How long it ran, in milliseconds; none if it did not.
    pub duration_ms: Option<u64>,
    /// Why it has another key than the time before.
    pub because: &'a [Because],
    /// Whether its result was known before the build: neither it nor another step with the same key ran.
    pub known: bool,
}

/// The journal as the coordinator sees it. Called from one thread.
pub trait Memory {
    /// The key under which this step last had a result. Asked for every step, so it must be cheap.
    fn last_key(&self, id: &str) -> Option<Digest>;
    /// All that is remembered of the last time. Asked for steps with another key only.
    fn last(&self, id: &str) -> Option<PreviousResult>;
    /// Remembers. Called after every cache has the result.
    fn remember(&self, row: &Row<'_>) -> io::Result<()>;
    /// How long this step ran last time, in milliseconds, or else one of its kind does.
    fn duration(&self, id: &str, kind: StepKind) -> Option<u64>;
}

/// Held while a key is computed; dropping it lets go.
pub type KeyGuard = Box<dyn Any>;

/// Keeps two processes that share a store from computing one key at once.
pub trait KeyLocks: Send + Sync {
    /// Waits until no other process computes this key; none if `interrupted` was set meanwhile. A thread holds one at a time, so none can wait in a circle.
    fn lock(&self, key: &Digest, interrupted: &AtomicBool) -> io::Result<Option<KeyGuard>>;
}

/// For a process that shares its stores with none.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLocks;

impl KeyLocks for NoLocks {
    fn lock(&self, _: &Digest, _: &AtomicBool) -> io::Result<Option<KeyGuard>> {
        Ok(Some(Box::new(())))
    }
}

/// What a build is given.
pub struct Services<'a> {
    /// What runs steps, of whatever kind.
    pub executor: &'a dyn Executor,
    /// Memories of results in the order in which they are asked: journal, local, evidence, remote.
    pub caches: Vec<&'a dyn Cache>,
    /// The store.
    pub blobs: &'a dyn Blobs,
    /// The journal.
    pub memory: &'a dyn Memory,
    /// Keeps other processes from the same work.
    pub locks: &'a dyn KeyLocks,
    /// Adds nodes.
    pub expand: &'a dyn Expand,
    /// The code that does steps, for their keys.
    pub implementations: &'a Implementations,
}

/// Asks every cache in turn, for an answer of that product where one is named. One that cannot answer is passed over, and `troubles` says so.
pub(super) fn look_up(
    caches: &[&dyn Cache],
    key: &Digest,
    spec: &Spec,
    product: Option<&str>,
    troubles: &mut Vec<String>,
) -> Option<Hit> {
    for cache in caches {
        match cache.answer(key, spec, product) {
            Ok(Some(hit)) => return Some(hit),
            Ok(None) => {}
            Err(error) => troubles.push(format!("cannot read a cache: {error}; its results count as unknown")),
        }
    }
    None
}

/// Says of a node whether it is to run although its result is known.
pub type Chosen = Arc<dyn Fn(&Node) -> bool + Send + Sync>;

/// How to build.
#[derive(Clone, Default)]
pub struct BuildOptions {
    /// After a failure or a failing verdict, go on with what does not depend on it.
    pub keep_going: bool,
    /// What this machine has.
    pub capacity: Capacity,
    /// Set from outside when the build is to end.
    pub interrupted: Arc<AtomicBool>,
    /// Steps to run although their result is known (`--remeasure`).
    pub remeasure: Option<Chosen>,
    /// Set to how many steps there are; it grows while results add steps. For a progress bar.
    pub total: Arc<AtomicU64>,
    /// Leave out the events of fresh steps that have neither notes nor a failing verdict: for terminals, where they would show nothing.
    pub quiet_fresh: bool,
}
