//! The action cache: results under their keys, shared by all workspaces. Knows specs, keys and results; does not know what steps do.
//!
//! Each entry is one small JSON file, `actions/xx/HEX` for the key `HEX`. Nothing is synced and disks fail, so an entry contains a hash of its contents: a torn
//! or changed entry is a miss and is removed. An entry of another version is a miss too, but it is left to the program that wrote it. An entry is written after
//! its outputs, and is a hit only if all of them still exist. The hash finds damage; the tag beside the result shows that this machine computed it
//! ([`super::authentication`]).
//!
//! Results of steps that observe a device are kept in the evidence index instead. Their key (a *question*) omits the device, so this cache could not tell
//! which device answered ([`asks_device`]).

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::authentication::Authentication;
use super::home::{Doing, Home, named, publish, shard};
use super::lock::{Lock, LockError, Mode, Wait};
use super::machine_key::Tag;
use super::{Blobs, Cache, Hit, KeyGuard, KeyLocks, Unanswered};
use kforge_foundation::base::Digest;
use kforge_types::record::event::CacheOrigin;
use kforge_types::record::params::{HOST, Toolchain};
use kforge_types::record::{Spec, StepKind, StepResult};

/// The format version of an entry.
const VERSION: u32 = 1;

/// An entry's time of last use is renewed once it is older than this. That is exact enough for collection and costs almost nothing.
const TOUCH: Duration = Duration::from_secs(24 * 3600);

/// Whether a step observes a real device. Its result is then valid only for a device class, and its key is a question.
pub fn asks_device(spec: &Spec) -> bool {
    spec.kind.observes_device() && spec.params.get("arch").and_then(|a| a.as_str()) != Some("cpu")
}

/// Whether a step produces a binary for a device: it compiles for a target other than `cpu`.
pub fn makes_binary(spec: &Spec) -> bool {
    spec.kind == StepKind::Compile && spec.params.get("arch").and_then(|a| a.as_str()) != Some("cpu")
}

/// The question that an imported binary answers: its inputs, its target and the device compiler. As for observations, the question leaves out the code of
/// kforge that compiled the binary. It also leaves out the host compiler, which differs between machines. So a binary outlasts an upgrade and travels between
/// machines, like the evidence about it, until the version of the compile step
/// changes. None if the description of the toolchain is not stored or cannot be parsed.
pub fn of_binary(spec: &Spec, blobs: &dyn Blobs) -> io::Result<Option<Spec>> {
    let mut spec = Spec { implementation: None, ..spec.clone() };
    if let Some(input) = spec.inputs.get_mut("toolchain")
        && let Some(digest) = &input.digest
    {
        let read = blobs.get(digest)?.and_then(|bytes| serde_json::from_slice::<Toolchain>(&bytes).ok());
        let Some(Toolchain { tools, .. }) = read else { return Ok(None) };
        let devices = tools.into_iter().filter(|(name, _)| !name.starts_with(HOST)).collect();
        let devices = Toolchain { tools: devices, ..Toolchain::default() };
        input.digest = Some(Digest::of(&serde_json::to_vec(&devices)?));
    }
    Ok(Some(spec))
}

/// Stores the fields that were hashed into a spec's key, for a later `kforge explain`. Returns their digest.
pub fn keep_explanation(blobs: &dyn Blobs, spec: &Spec) -> io::Result<Digest> {
    blobs.put(&serde_json::to_vec(&spec.explain())?)
}

/// The fields stored by [`keep_explanation`]; none if they were removed.
pub fn read_explanation(blobs: &dyn Blobs, digest: &Digest) -> io::Result<Option<Vec<(String, String)>>> {
    Ok(blobs.get(digest)?.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

/// The contents of an entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Body {
    /// The key.
    pub key: Digest,
    /// The fields that were hashed into the key: the digest of a blob of [`keep_explanation`].
    pub explanation: Digest,
    /// The result.
    pub result: StepResult,
}

/// A file of the cache, as written.
#[derive(Serialize, Deserialize)]
struct Entry {
    version: u32,
    /// The digest of the body as JSON.
    check: Digest,
    body: Body,
    /// The tag of the result. Entries of machines without a key, and of earlier versions, have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tag: Option<Tag>,
}

/// The version, the only field that an entry of any version has.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// What a file in the cache holds.
#[derive(Debug, PartialEq)]
pub(super) enum Read {
    /// An entry, and the tag of its result.
    Entry(Box<Body>, Option<Tag>),
    /// An entry of another version.
    Foreign,
    /// Truncated, changed, or not an entry.
    Corrupt,
}

/// Reads the bytes of a file.
pub(super) fn parse(bytes: &[u8]) -> Read {
    match serde_json::from_slice::<Versioned>(bytes) {
        Ok(v) if v.version == VERSION => {}
        Ok(_) => return Read::Foreign,
        Err(_) => return Read::Corrupt,
    }
    let Ok(entry) = serde_json::from_slice::<Entry>(bytes) else { return Read::Corrupt };
    match serde_json::to_vec(&entry.body) {
        Ok(body) if Digest::of(&body) == entry.check => Read::Entry(Box::new(entry.body), entry.tag),
        _ => Read::Corrupt,
    }
}

/// The action cache of a [`Home`].
pub struct ActionCache {
    root: PathBuf,
    tmp: PathBuf,
    locks: PathBuf,
    blobs: Arc<dyn Blobs>,
    authentication: Authentication,
}

/// Held while the step of a key is executed, so that no other process executes it too. Dropping the lock removes its file.
#[derive(Debug)]
pub struct KeyLock(Option<Lock>);

impl Drop for KeyLock {
    fn drop(&mut self) {
        if let Some(lock) = self.0.take() {
            lock.remove();
        }
    }
}

impl ActionCache {
    /// The action cache of `home`, whose outputs are stored in `blobs`. Every result counts, and new results get no tag.
    pub fn new(home: &Home, blobs: Arc<dyn Blobs>) -> ActionCache {
        let locks = home.locks().join("keys");
        ActionCache { root: home.actions(), tmp: home.tmp(), locks, blobs, authentication: Authentication::default() }
    }

    /// The same, in which only those results count that `authentication` accepts, and which gives new results a tag.
    pub fn with(self, authentication: Authentication) -> ActionCache {
        ActionCache { authentication, ..self }
    }

    /// Takes the lock of a key, waiting for a process that executes the key now. Look the key up again afterwards: that process may have stored its result.
    /// Calls `contended` once if it must wait.
    pub fn key_lock(
        &self,
        key: &Digest,
        interrupted: &AtomicBool,
        contended: &mut dyn FnMut(),
    ) -> Result<KeyLock, LockError> {
        let path = self.locks.join(shard(key));
        Lock::acquire(&path, Mode::Exclusive, Wait::Unless(interrupted, contended)).map(|l| KeyLock(Some(l)))
    }

    /// The lock of a key if it is free; none if another process executes the key now.
    pub fn try_key_lock(&self, key: &Digest) -> Result<Option<KeyLock>, LockError> {
        match Lock::acquire(&self.locks.join(shard(key)), Mode::Exclusive, Wait::No) {
            Ok(lock) => Ok(Some(KeyLock(Some(lock)))),
            Err(LockError::Busy(_)) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The entry of a key, whether or not its outputs are in the store. Does not count as a use.
    pub fn entry(&self, key: &Digest) -> io::Result<Option<Body>> {
        Ok(self.tagged(key)?.map(|(body, _)| body))
    }

    /// Like [`ActionCache::entry`], with the tag of the result.
    fn tagged(&self, key: &Digest) -> io::Result<Option<(Body, Option<Tag>)>> {
        let path = self.root.join(shard(key));
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(named(e, Doing::Read, &path)),
        };
        match parse(&bytes) {
            Read::Entry(body, tag) if body.key == *key => Ok(Some((*body, tag))),
            Read::Foreign => Ok(None),
            Read::Entry(..) | Read::Corrupt => self.forget(key).map(|()| None),
        }
    }

    /// The fields that were hashed into a key; none if they are no longer stored.
    pub fn explanation(&self, key: &Digest) -> io::Result<Option<Vec<(String, String)>>> {
        match self.entry(key)? {
            Some(body) => read_explanation(&*self.blobs, &body.explanation),
            None => Ok(None),
        }
    }

    /// Removes the entry of a key, if there is one.
    pub fn forget(&self, key: &Digest) -> io::Result<()> {
        let path = self.root.join(shard(key));
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(named(e, Doing::Remove, &path)),
            _ => Ok(()),
        }
    }

    /// Notes that an entry was used.
    fn touch(&self, key: &Digest) {
        // A failure is ignored: in a cache that this user can only read, uses are not recorded.
        let now = SystemTime::now();
        let Ok(file) = File::open(self.root.join(shard(key))) else { return };
        let old = |t| now.duration_since(t).is_ok_and(|age| age > TOUCH);
        if file.metadata().and_then(|m| m.modified()).is_ok_and(old) {
            let _ = file.set_modified(now);
        }
    }
}

impl KeyLocks for ActionCache {
    fn lock(&self, key: &Digest, interrupted: &AtomicBool) -> io::Result<Option<KeyGuard>> {
        match self.key_lock(key, interrupted, &mut || {}) {
            Ok(lock) => Ok(Some(Box::new(lock))),
            Err(LockError::Interrupted(_)) => Ok(None),
            Err(e) => Err(io::Error::other(e)),
        }
    }
}

impl Cache for ActionCache {
    fn get(&self, key: &Digest, spec: &Spec) -> io::Result<Option<Hit>> {
        if asks_device(spec) {
            return Ok(None);
        }
        let Some((body, tag)) = self.tagged(key)? else { return Ok(None) };
        let there = body.result.outputs.values().all(|output| self.blobs.has(output));
        if !there || !self.authentication.accepts(key, &body.result, tag.as_ref()) {
            return Ok(None);
        }
        self.touch(key);
        Ok(Some(Hit { result: body.result, origin: CacheOrigin::Local, evidence: None, tag }))
    }

    fn lacks(&self, key: &Digest, spec: &Spec, _: Option<&str>) -> Option<Unanswered> {
        let held = self.authentication.is_required() && !asks_device(spec) && matches!(self.entry(key), Ok(Some(_)));
        held.then_some(Unanswered::Unauthenticated)
    }

    fn put(&self, key: &Digest, spec: &Spec, result: &StepResult) -> io::Result<()> {
        if asks_device(spec) {
            return Ok(());
        }
        let explanation = keep_explanation(&*self.blobs, spec)?;
        let body = Body { key: *key, explanation, result: result.clone() };
        let check = Digest::of(&serde_json::to_vec(&body)?);
        let tag = self.authentication.tag(key, result);
        let bytes = serde_json::to_vec(&Entry { version: VERSION, check, body, tag })?;
        publish(&self.tmp, &self.root.join(shard(key)), &bytes, 0o644)
    }
}

#[cfg(test)]
mod tests;
