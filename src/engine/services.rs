//! The services of a build: what executes steps, remembers results, adds nodes, and prevents two processes from doing the same work. Declares the traits that
//! only the coordinator uses; does not know their implementations.

use std::any::Any;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::gauge::Gauge;
use super::machine_key::{MachineKey, Tag};
use super::resources::Capacity;
use super::{Blobs, Cache, Executor, Expand, Hit, Node, RemoteCache, Unanswered};
use kforge_foundation::base::Digest;
use kforge_types::record::event::{CacheOrigin, EvidenceSeen, Why};
use kforge_types::record::{Implementations, Spec, StepKind, StepResult};

/// One link of the chain of reasons why a step ran: a step or, at the end of the chain, a file, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Because {
    /// A step's id; for a file of a tree that was read, the input and the file: `inputs.source/softmax.cu`.
    pub what: String,
    /// Why the step ran, or what changed about the file (`added`, `removed`, `changed`).
    pub why: Why,
}

/// What this workspace remembers of a step's last result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PreviousResult {
    /// The step's key then.
    pub key: Digest,
    /// The fields that were hashed then, in canonical order.
    pub explanation: Vec<(String, String)>,
    /// Whether the result was not stored, because another run may give a different one (a time-out).
    pub forgotten: bool,
    /// Why the step's key had changed, from the step to the root cause.
    pub because: Vec<Because>,
    /// Whether the step did not run then, because its result was known.
    pub known: bool,
}

/// A row for the journal: the result of a step under its key.
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
    /// The result; none if it must not be stored.
    pub result: Option<&'a StepResult>,
    /// The cache that had the result; [`CacheOrigin::None`] if the step ran.
    pub origin: CacheOrigin,
    /// The provenance of an observation of a device. Which observation answers depends on more than the key, so the journal must not answer for it.
    pub evidence: Option<&'a EvidenceSeen>,
    /// The duration of the run in milliseconds; none if the step did not run.
    pub duration_ms: Option<u64>,
    /// Why the step's key changed.
    pub because: &'a [Because],
    /// Whether the result was known before the build: neither this step nor another with the same key ran.
    pub known: bool,
    /// The tag of the result: made here if the step ran, else as it was stored.
    pub tag: Option<Tag>,
}

/// The journal as the coordinator sees it. Called from one thread.
pub trait Memory {
    /// The key under which this step last had a result. Called for every step, so it must be cheap.
    fn last_key(&self, id: &str) -> Option<Digest>;
    /// Everything that is remembered of the step's last result. Called only for steps with another key.
    fn last(&self, id: &str) -> Option<PreviousResult>;
    /// Stores a row. Called after every cache has the result.
    fn remember(&self, row: &Row<'_>) -> io::Result<()>;
    /// The duration of this step's last run in milliseconds or, if it never ran, of a step of its kind.
    fn duration(&self, id: &str, kind: StepKind) -> Option<u64>;
}

/// Held while a key is computed; dropping it releases the lock.
pub type KeyGuard = Box<dyn Any>;

/// Prevents two processes that share a store from computing the same key at once.
pub trait KeyLocks: Send + Sync {
    /// Waits until no other process computes this key; returns none if `interrupted` was set meanwhile. A thread holds one such lock at a time, so threads
    /// cannot wait for each other in a circle.
    fn lock(&self, key: &Digest, interrupted: &AtomicBool) -> io::Result<Option<KeyGuard>>;
}

/// Key locks for a process that does not share its stores.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLocks;

impl KeyLocks for NoLocks {
    fn lock(&self, _: &Digest, _: &AtomicBool) -> io::Result<Option<KeyGuard>> {
        Ok(Some(Box::new(())))
    }
}

/// The services that a build uses.
pub struct Services<'a> {
    /// Executes steps of all kinds.
    pub executor: &'a dyn Executor,
    /// Caches of results, in the order in which they are asked: journal, local, evidence.
    pub caches: Vec<&'a dyn Cache>,
    /// The cache that is asked after them, on another machine.
    pub remote: Option<&'a dyn RemoteCache>,
    /// The store.
    pub blobs: &'a dyn Blobs,
    /// The journal.
    pub memory: &'a dyn Memory,
    /// Prevents other processes from doing the same work.
    pub locks: &'a dyn KeyLocks,
    /// Adds nodes.
    pub expand: &'a dyn Expand,
    /// The code that executes steps, for their keys.
    pub implementations: &'a Implementations,
    /// Authenticates the results of this build; none if this machine has no key.
    pub machine_key: Option<&'a MachineKey>,
}

/// Asks every cache in turn; if `product` is set, only its answers count. A cache that fails is skipped and reported in `troubles`.
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

/// Why no cache has a result; none if none of them says why.
pub(super) fn lacking(caches: &[&dyn Cache], key: &Digest, spec: &Spec, product: Option<&str>) -> Option<Unanswered> {
    caches.iter().find_map(|cache| cache.lacks(key, spec, product))
}

/// Decides whether a node is to run even if its result is known.
pub type Chosen = Arc<dyn Fn(&Node) -> bool + Send + Sync>;

/// Decides whether a node, whose key and known result are given, is to run nevertheless.
pub type Rechecked = Arc<dyn Fn(&Node, &Digest, &Hit) -> bool + Send + Sync>;

/// The options of a build.
#[derive(Clone, Default)]
pub struct BuildOptions {
    /// After a failure or a failing verdict, continue with the steps that do not depend on it.
    pub keep_going: bool,
    /// The resources of this machine.
    pub capacity: Capacity,
    /// Set by another thread to end the build.
    pub interrupted: Arc<AtomicBool>,
    /// The steps to run even if their results are known (`--remeasure`).
    pub remeasure: Option<Chosen>,
    /// The steps to run although a result was found, to compare with it (`--recheck`).
    pub recheck: Option<Rechecked>,
    /// How far the build is. For a progress bar.
    pub gauge: Arc<Gauge>,
    /// Leave out the events of fresh steps that have neither notes nor a failing verdict. For terminals, which would show nothing for them.
    pub quiet_fresh: bool,
}
