//! The journal: what a workspace remembers between builds. Knows frames, names and rows; does not know what steps do or when one is stale.
//!
//! The journal is one file, which is read completely at the start and then only appended to. That is the cheapest form to load and to write while steps end,
//! and the simplest to keep correct when the process dies. `frame` is the outer format of the file, `row` the contents of its records.
//!
//! **Crash safety.** Records gather in memory and are written in batches, in order, each with its length and a checksum. They are synced every few seconds and
//! when the build ends. A process that dies loses the records that it had not written. The next writer cuts off a torn record at the end and reports that once.
//! A power cut may lose what was written after the last sync and leave a tail with wrong checksums, which is cut off in the same way. Lost results are found
//! again in the action cache or computed again, and a result here counts only if its outputs are in the store.
//!
//! **One writer, many readers.** [`Journal::open`] needs the workspace lock. [`Journal::view`] needs no lock: it reads the undamaged records.
//!
//! **Rows.** The last row of a node describes its last run. It holds the key and explanation even if the step failed, so that the next run has something to
//! compare with. Of the earlier rows, the last one with a result is kept too. A replaced row is dead. Once dead bytes exceed twice the live ones, the live rows
//! are written to a new file, which is renamed over the old one.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::home::{Doing, named};
use super::machine_key::Tag;
use kforge_foundation::base::Digest;
use kforge_foundation::base::files::write_atomically;
use kforge_types::record::StepResult;

mod cache;
mod frame;
mod index;
mod memory;
mod row;

pub use cache::JournalCache;
pub use memory::JournalMemory;
pub use row::{StatRow, StepRow};

use frame::{HEADER, Start};
use index::Index;

/// Records are written when this many wait ...
const BATCH: usize = 64;
/// ... or when another record comes this long after the last write.
const LATEST: Duration = Duration::from_millis(100);
/// A write is followed by a sync if the last sync is at least this long ago.
const SYNC: Duration = Duration::from_secs(5);
/// A smaller file is never compacted.
const SMALL: usize = 64 << 10;

/// The journal of a workspace. Threads may share it.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    index: Index,
    /// The file to write to; none for a view.
    out: Option<File>,
    /// The number of the index's bytes that are in the file.
    written: usize,
    /// Records not yet written.
    waiting: usize,
    wrote_at: Instant,
    synced_at: Instant,
    synced: bool,
}

impl Journal {
    /// Opens the journal at `path` for writing and creates it if it does not exist. Also returns warnings about lost records. The caller holds the workspace
    /// lock.
    pub fn open(path: &Path) -> io::Result<(Journal, Vec<String>)> {
        let mut warnings = Vec::new();
        let (mut index, start) = load(path, &mut warnings)?;
        let whole = index.bytes().len();
        let dead = index.dead();
        if whole > SMALL && dead > 2 * (whole - dead) {
            index = index.compacted();
            write_atomically(path, index.bytes(), true).map_err(|e| named(e, Doing::Write, path))?;
        } else if start != Start::Ours {
            write_atomically(path, HEADER, false).map_err(|e| named(e, Doing::Write, path))?;
        }
        let out = OpenOptions::new().write(true).open(path).map_err(|e| named(e, Doing::Write, path))?;
        // Cuts off a torn tail. A file without one is not touched, so that its times stay the same: a certificate may name it.
        let whole = index.bytes().len() as u64;
        if out.metadata().map_err(|e| named(e, Doing::Read, path))?.len() != whole {
            out.set_len(whole).map_err(|e| named(e, Doing::Write, path))?;
        }
        Ok((Journal::of(path, index, Some(out)), warnings))
    }

    /// Reads the journal at `path` as it is now, without a lock. Records added to a view stay in memory. Returns no warnings: a torn tail may be a record that
    /// is being written.
    pub fn view(path: &Path) -> io::Result<Journal> {
        let (index, _) = load(path, &mut Vec::new())?;
        Ok(Journal::of(path, index, None))
    }

    fn of(path: &Path, index: Index, out: Option<File>) -> Journal {
        let now = Instant::now();
        let written = index.bytes().len();
        let inner = Inner { index, out, written, waiting: 0, wrote_at: now, synced_at: now, synced: true };
        Journal { path: path.to_path_buf(), inner: Mutex::new(inner) }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The row of a node's last run, with or without a result.
    pub fn last(&self, id: &str) -> Option<StepRow> {
        self.inner().index.last(id)
    }

    /// The key of a node's last row. Cheaper than reading the whole row.
    pub fn last_key(&self, id: &str) -> Option<Digest> {
        self.inner().index.last_key(id)
    }

    /// The last result recorded under a key, by any node.
    pub fn by_key(&self, key: &Digest) -> Option<StepResult> {
        self.tagged(key).map(|(result, _)| result)
    }

    /// Like [`Journal::by_key`], with the tag of the result.
    pub fn tagged(&self, key: &Digest) -> Option<(StepResult, Option<Tag>)> {
        self.inner().index.by_key(key)
    }

    /// Records a run of a node, whose outputs and explanation are already in the store.
    pub fn record_step(&self, id: &str, row: &StepRow) -> io::Result<()> {
        self.record(|index| index.add_step(id, row))
    }

    /// Forgets all results under a key, because they refer to a missing content.
    pub fn forget(&self, key: &Digest) -> io::Result<()> {
        self.record(|index| index.add_forget(key))
    }

    /// How long a node took when it last ran, in milliseconds.
    pub fn duration(&self, id: &str) -> Option<u64> {
        self.inner().index.duration(id)
    }

    /// How long each node took when it last ran, in milliseconds.
    pub fn durations(&self) -> HashMap<String, u64> {
        self.inner().index.durations()
    }

    /// The row recorded for a leaf file.
    pub fn stat(&self, path: &Path) -> Option<StatRow> {
        self.inner().index.stat(path)
    }

    /// Records a row for a leaf file.
    pub fn record_stat(&self, path: &Path, row: &StatRow) -> io::Result<()> {
        self.record(|index| index.add_stat(path, row))
    }

    /// The recorded scan of a content.
    pub fn scan(&self, content: &Digest) -> Option<Vec<u8>> {
        self.inner().index.scan(content)
    }

    /// Records the scan of a content, in the scanner's own format.
    pub fn record_scan(&self, content: &Digest, found: &[u8]) -> io::Result<()> {
        self.record(|index| index.add_scan(content, found))
    }

    /// The last certificate.
    pub fn certificate(&self) -> Option<Vec<u8>> {
        self.inner().index.certificate()
    }

    /// Records an encoded certificate. Empty bytes remove the last one.
    pub fn record_certificate(&self, bytes: &[u8]) -> io::Result<()> {
        self.record(|index| index.add_certificate(bytes))
    }

    /// The last value recorded under a name.
    pub fn meta(&self, name: &str) -> Option<Vec<u8>> {
        self.inner().index.meta(name)
    }

    /// Records a value under a name.
    pub fn record_meta(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.record(|index| index.add_meta(name, bytes))
    }

    /// Every content that live rows refer to, outputs and explanations: collection must keep them.
    pub fn contents(&self) -> Vec<Digest> {
        self.inner().index.contents()
    }

    /// Writes the waiting records, and syncs. After an error no record is lost: the next call writes them.
    pub fn flush(&self) -> io::Result<()> {
        let mut inner = self.inner();
        inner.write().and_then(|()| inner.sync()).map_err(|e| named(e, Doing::Write, &self.path))
    }

    fn record(&self, add: impl FnOnce(&mut Index)) -> io::Result<()> {
        let mut inner = self.inner();
        add(&mut inner.index);
        inner.waiting += 1;
        let now = Instant::now();
        if inner.waiting >= BATCH || now - inner.wrote_at >= LATEST {
            inner.write().map_err(|e| named(e, Doing::Write, &self.path))?;
            if now - inner.synced_at >= SYNC {
                inner.sync().map_err(|e| named(e, Doing::Write, &self.path))?;
            }
        }
        Ok(())
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // A caller that needs the error has called `flush`.
        let _ = self.inner().write();
    }
}

impl Inner {
    fn write(&mut self) -> io::Result<()> {
        let bytes = &self.index.bytes()[self.written..];
        if let Some(out) = self.out.as_ref().filter(|_| !bytes.is_empty()) {
            // Writes at this position instead of appending, so that the write after a partial one overwrites it.
            out.write_all_at(bytes, self.written as u64)?;
            self.synced = false;
        }
        self.written = self.index.bytes().len();
        self.waiting = 0;
        self.wrote_at = Instant::now();
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        if let Some(out) = self.out.as_ref().filter(|_| !self.synced) {
            out.sync_data()?;
        }
        self.synced = true;
        self.synced_at = Instant::now();
        Ok(())
    }
}

/// Reads the file, if it exists, up to the first damaged record.
fn load(path: &Path, warnings: &mut Vec<String>) -> io::Result<(Index, Start)> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok((Index::new(), Start::Empty)),
        Err(e) => return Err(named(e, Doing::Read, path)),
    };
    let start = frame::start(&bytes);
    match start {
        Start::Ours => {}
        Start::Empty => return Ok((Index::new(), start)),
        Start::Foreign => {
            warnings.push(format!("the journal `{}` has another version; starting a new one", path.display()));
            return Ok((Index::new(), start));
        }
    }
    let all = bytes.len();
    let index = Index::load(bytes);
    let lost = all - index.bytes().len();
    if lost > 0 {
        let place = path.display();
        warnings.push(format!(
            "the journal `{place}` is damaged at its end, as after a crash; dropping its last {lost} bytes"
        ));
    }
    Ok((index, start))
}

#[cfg(test)]
mod random;
#[cfg(test)]
mod tests;
