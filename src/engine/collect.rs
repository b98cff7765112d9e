//! Keeps the stores small and intact: collection by age and size, disk usage, and rehashing everything. Knows the stores' files; does not print.
//!
//! **Roots** are the results that the limits of age and size keep, all evidence, and the contents that live rows of the registered workspaces' journals refer to.
//! Everything reachable from a root stays. Contents refer to other contents (a tree to its files) in documents whose formats this module does not know. So
//! in every content of at most [`DOCUMENT`] bytes that begins like JSON, each text that has the form of a digest counts as a reference. That may keep too much.
//!
//! **Order.** Results are removed first, then the contents that have become unreachable. So a crash in between leaves contents without results, never the
//! reverse. Contents younger than [`GRACE`] stay, even if unreachable. Builds hold the cache lock shared and collection holds it exclusively, so that no build
//! looks for a content that is being removed. While a build runs, nothing is collected.
//!
//! **Size.** If the reachable contents exceed the maximum size, results are removed, least recently used first, until the rest fits. Evidence and the contents
//! that journals refer to are counted first and never removed.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::action::{Read, parse};
use super::home::{Doing, Home, hash_of, named, shard, sharded};
use super::journal::Journal;
use super::lock::{Lock, LockError, Mode, Wait};
use kforge_foundation::base::Digest;

mod check;
mod usage;

pub use check::{Checked, verify};
pub use usage::{Tally, Usage, usage};

/// Unreachable contents that are younger are not removed.
pub const GRACE: Duration = Duration::from_secs(3600);

/// How often builds collect.
pub const EVERY: Duration = Duration::from_secs(24 * 3600);

/// A file whose modification time is the end of the last collection.
const STAMP: &str = "collected";

/// Larger contents count as data and are not searched for digests.
const DOCUMENT: u64 = 4 << 20;

/// The limits on what is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Results that were unused for longer are removed.
    pub max_age: Duration,
    /// The total bytes of contents and results above which results are removed. Evidence and what journals refer to stay even above it.
    pub max_size: u64,
}

/// What a collection did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Report {
    /// Results removed.
    pub results_removed: Tally,
    /// Results kept.
    pub results_kept: Tally,
    /// Contents removed.
    pub contents_removed: Tally,
    /// Contents kept.
    pub contents_kept: Tally,
    /// Lock files that nobody holds, and files and folders that dead processes left behind; all removed.
    pub litter_removed: u64,
}

/// The outcome of a request to collect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collected {
    /// The collection ran.
    Done(Report),
    /// A build is running, or may be running because the file system does not support locks.
    Busy,
}

/// A result in the cache.
struct CachedResult {
    path: PathBuf,
    size: u64,
    at: SystemTime,
    outputs: Vec<Digest>,
}

/// Removes old results, then the least recently used ones until the rest fits, then unreachable contents. Ages are relative to `now`.
pub fn collect(home: &Home, limits: Limits, now: SystemTime) -> io::Result<Collected> {
    let _lock = match home.lock_cache(Mode::Exclusive, Wait::No) {
        Ok(lock) if lock.is_held() => lock,
        Ok(_) | Err(LockError::Busy(_)) => return Ok(Collected::Busy),
        Err(e) => return Err(io::Error::other(e)),
    };
    let mut report = Report { litter_removed: home.sweep(now)? + free_locks(home)?, ..Report::default() };

    let mut reached = ReachableContents { cas: home.cas(), seen: HashSet::new(), trail: vec![], bytes: 0 };
    for seen in evidence(home)? {
        reached.mark(seen);
    }
    for journal in home.journals()? {
        // A journal that cannot be read protects nothing. Its workspace computes again what was removed.
        if let Ok(journal) = Journal::view(&journal) {
            journal.contents().into_iter().for_each(|digest| reached.mark(digest));
        }
    }

    let mut results = results(home)?;
    results.sort_by(|a, b| b.at.cmp(&a.at).then_with(|| a.path.cmp(&b.path)));
    let mut full = false;
    for result in results {
        let old = now.duration_since(result.at).is_ok_and(|age| age > limits.max_age);
        if !old && !full {
            let before = reached.trail.len();
            result.outputs.iter().for_each(|digest| reached.mark(*digest));
            if reached.bytes + result.size <= limits.max_size {
                reached.bytes += result.size;
                report.results_kept.add(result.size);
                continue;
            }
            reached.undo(before);
            full = true;
        }
        std::fs::remove_file(&result.path).map_err(|e| named(e, Doing::Remove, &result.path))?;
        report.results_removed.add(result.size);
    }

    for path in sharded(&home.cas())? {
        let Some(hash) = path.file_name().and_then(hash_of) else { continue };
        let Ok(metadata) = path.symlink_metadata() else { continue };
        let young = metadata.modified().is_ok_and(|t| now.duration_since(t).map_or(true, |age| age <= GRACE));
        if young || reached.seen.contains(&hash) {
            report.contents_kept.add(metadata.len());
        } else {
            std::fs::remove_file(&path).map_err(|e| named(e, Doing::Remove, &path))?;
            report.contents_removed.add(metadata.len());
        }
    }
    // Without the stamp the next build collects again, which does no harm.
    let _ = std::fs::write(home.root().join(STAMP), "");
    Ok(Collected::Done(report))
}

/// Whether the last collection was at least [`EVERY`] ago, so that a build should collect when it ends.
pub fn due(home: &Home, now: SystemTime) -> bool {
    let last = std::fs::metadata(home.root().join(STAMP)).and_then(|m| m.modified());
    last.map_or(true, |last| now.duration_since(last).is_ok_and(|ago| ago >= EVERY))
}

/// All outputs of all evidence.
fn evidence(home: &Home) -> io::Result<Vec<Digest>> {
    let mut outputs = Vec::new();
    for folder in super::evidence::folders(&home.evidence())? {
        for path in super::home::files_in(&folder)? {
            outputs.extend(super::evidence::read(&path).iter().flat_map(|s| s.record.result.outputs.values().copied()));
        }
    }
    Ok(outputs)
}

/// All results in the action cache. Removes damaged entries; an entry of another version is listed without references.
fn results(home: &Home) -> io::Result<Vec<CachedResult>> {
    let mut results = Vec::new();
    for path in sharded(&home.actions())? {
        let (Ok(metadata), Ok(bytes)) = (path.metadata(), std::fs::read(&path)) else { continue };
        let outputs = match parse(&bytes) {
            Read::Entry(body, _) => body.result.outputs.values().copied().chain([body.explanation]).collect(),
            Read::Foreign => vec![],
            Read::Corrupt => {
                let _ = std::fs::remove_file(&path);
                continue;
            }
        };
        let at = metadata.modified().map_err(|e| named(e, Doing::Read, &path))?;
        results.push(CachedResult { path, size: metadata.len(), at, outputs });
    }
    Ok(results)
}

/// Removes lock files of keys that no process holds any more. Returns how many.
fn free_locks(home: &Home) -> io::Result<u64> {
    let folder = home.locks().join("keys");
    if !folder.is_dir() {
        return Ok(0);
    }
    let mut removed = 0;
    for path in sharded(&folder)? {
        if let Ok(lock) = Lock::acquire(&path, Mode::Exclusive, Wait::No) {
            lock.remove();
            removed += 1;
        }
    }
    Ok(removed)
}

/// The contents that a document in the store refers to.
fn mentioned(bytes: &[u8]) -> Vec<Digest> {
    if !bytes.first().is_some_and(|first| begins_document(*first)) {
        return vec![];
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return vec![] };
    let digest = |(at, _): (usize, &str)| {
        let rest = &text[at..];
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == ':')).unwrap_or(rest.len());
        rest[..end].parse().ok()
    };
    text.match_indices("blake3:").filter_map(digest).collect()
}

/// The contents that roots reach.
struct ReachableContents {
    cas: PathBuf,
    seen: HashSet<[u8; 32]>,
    /// The same contents with their sizes, in the order in which they were reached.
    trail: Vec<([u8; 32], u64)>,
    /// Total bytes of these contents and of the results that reach them.
    bytes: u64,
}

impl ReachableContents {
    /// Marks a content, and everything that it refers to, as reached.
    fn mark(&mut self, root: Digest) {
        let mut open = vec![root];
        while let Some(digest) = open.pop() {
            let path = self.cas.join(shard(&digest));
            if self.seen.contains(digest.hash()) {
                continue;
            }
            // Documents also refer to contents that are not stored: expected outputs, tools.
            let Ok(metadata) = path.metadata() else { continue };
            self.seen.insert(*digest.hash());
            self.trail.push((*digest.hash(), metadata.len()));
            self.bytes += metadata.len();
            if metadata.len() <= DOCUMENT && digest.size() == metadata.len() {
                open.extend(document(&path));
            }
        }
    }

    /// Forgets all but the first `length` contents.
    fn undo(&mut self, length: usize) {
        for (hash, size) in self.trail.drain(length..) {
            self.seen.remove(&hash);
            self.bytes -= size;
        }
    }
}

/// The contents that the document in a file refers to; none if its first byte shows that the file is data.
fn document(path: &Path) -> Vec<Digest> {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let mut bytes = vec![0];
        file.read_exact(&mut bytes)?;
        if begins_document(bytes[0]) {
            file.read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    };
    read().map(|bytes| mentioned(&bytes)).unwrap_or_default()
}

fn begins_document(first: u8) -> bool {
    matches!(first, b'{' | b'[')
}

#[cfg(test)]
mod tests;
