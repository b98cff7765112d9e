//! The journal: what a workspace remembers between builds. Knows frames, names and rows; does not know what steps do or when one is stale.
//!
//! One file, read completely at the start and then only appended to: the cheapest form to load and to write while steps end, and the simplest to keep correct
//! when the process dies. `frame` is the file's outer format, `row` the contents of its records.
//!
//! **Crash safety.** Records gather in memory and are written in batches, in order, each with its length and a check, and synced when the build ends and
//! every few seconds. A process that dies loses what it had not written; the torn record at the end, if any, is cut off by the next writer, who says so
//! once. A disk that loses what was written after the last sync leaves a tail that does not check, which is cut off the same way. What is lost here is
//! found again in the action cache, or computed again; nothing here is believed unless its outputs are in the store.
//!
//! **One writer, many readers.** [`Journal::open`] needs the workspace's lock. [`Journal::view`] needs none: it reads what is whole.
//!
//! **Rows.** The last row of a node describes its last run: its key and explanation are kept even if it failed, so that "why did this run" has
//! something to compare with. Of earlier rows, the last one with a result is kept too. A replaced row is dead; once dead bytes exceed twice the live ones,
//! the live rows are written to a new file, which is renamed over the old one.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::home::{Doing, named};
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

/// Records are written at the latest when so many wait ...
const BATCH: usize = 64;
/// ... or the oldest has waited so long and another comes.
const LATEST: Duration = Duration::from_millis(100);
/// A sync comes at the latest with the first write after so long.
const SYNC: Duration = Duration::from_secs(5);
/// A file smaller than this is never compacted: not worth it.
const SMALL: usize = 64 << 10;

/// A workspace's journal. Shared by threads.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    index: Index,
    /// Where to write; none for a view.
    out: Option<File>,
    /// How many of the index's bytes are in the file.
    written: usize,
    /// Records not yet written.
    waiting: usize,
    wrote_at: Instant,
    synced_at: Instant,
    synced: bool,
}

impl Journal {
    /// The journal at `path`, for writing; made if it is not there. Gives warnings too: what was lost of it. The caller holds the workspace's lock.
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
        // Cuts off a torn tail. A file that has none is left alone, times and all: a certificate may name it.
        let whole = index.bytes().len() as u64;
        if out.metadata().map_err(|e| named(e, Doing::Read, path))?.len() != whole {
            out.set_len(whole).map_err(|e| named(e, Doing::Write, path))?;
        }
        Ok((Journal::of(path, index, Some(out)), warnings))
    }

    /// The journal at `path` as it is now, for reading only, without a lock. What is recorded in it stays in memory. Gives no warnings: a torn tail may be
    /// one that is being written.
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

    /// What the node of that id was when it last ran, with or without a result.
    pub fn last(&self, id: &str) -> Option<StepRow> {
        self.inner().index.last(id)
    }

    /// The key of the node's last row: cheaper than the whole.
    pub fn last_key(&self, id: &str) -> Option<Digest> {
        self.inner().index.last_key(id)
    }

    /// The last result recorded under that key, by whichever node.
    pub fn by_key(&self, key: &Digest) -> Option<StepResult> {
        self.inner().index.by_key(key)
    }

    /// Records what a node was. Its outputs and explanation are in the store already.
    pub fn record_step(&self, id: &str, row: &StepRow) -> io::Result<()> {
        self.record(|index| index.add_step(id, row))
    }

    /// Takes back all results under that key: they led to something missing.
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

    /// What was known of a leaf file.
    pub fn stat(&self, path: &Path) -> Option<StatRow> {
        self.inner().index.stat(path)
    }

    /// Records what is known of a leaf file.
    pub fn record_stat(&self, path: &Path, row: &StatRow) -> io::Result<()> {
        self.record(|index| index.add_stat(path, row))
    }

    /// What scanning the contents of that digest gave.
    pub fn scan(&self, content: &Digest) -> Option<Vec<u8>> {
        self.inner().index.scan(content)
    }

    /// Records what scanning some contents gave, in the scanner's own form.
    pub fn record_scan(&self, content: &Digest, found: &[u8]) -> io::Result<()> {
        self.record(|index| index.add_scan(content, found))
    }

    /// The last certificate.
    pub fn certificate(&self) -> Option<Vec<u8>> {
        self.inner().index.certificate()
    }

    /// Records what proves that nothing is to be done, in its maker's own form. Empty bytes take it back.
    pub fn record_certificate(&self, bytes: &[u8]) -> io::Result<()> {
        self.record(|index| index.add_certificate(bytes))
    }

    /// The last value under a name.
    pub fn meta(&self, name: &str) -> Option<Vec<u8>> {
        self.inner().index.meta(name)
    }

    /// Records a value under a name.
    pub fn record_meta(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.record(|index| index.add_meta(name, bytes))
    }

    /// Every content that living rows speak of, outputs and explanations: what collection must keep.
    pub fn contents(&self) -> Vec<Digest> {
        self.inner().index.contents()
    }

    /// Writes what waits, and syncs. On an error nothing is lost: what waits is written by the next call.
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
        // Whoever cares for errors has called `flush`.
        let _ = self.inner().write();
    }
}

impl Inner {
    fn write(&mut self) -> io::Result<()> {
        let bytes = &self.index.bytes()[self.written..];
        if let Some(out) = self.out.as_ref().filter(|_| !bytes.is_empty()) {
            // At its place, not at the end: after a write that failed half-way the next one begins where that began.
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

/// Reads the file, if there is one, up to where it stops being whole.
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
