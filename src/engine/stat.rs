//! The stat cache: digests of leaf files, which are read again only if they may have changed. Knows files and the journal; does not know what the files are
//! for.
//!
//! A row is valid only if size, modification time, change time and inode are unchanged, *and* both times are older than the moment at which reading the
//! contents began, by more than the granularity of the file system's clock. Otherwise the file may have been written again within the same tick of the clock,
//! and the times would not show it. Setting a file's modification time back does not deceive the cache, because it updates the change time.
//!
//! | file system | assumed granularity |
//! |---|---|
//! | both times are whole seconds (FAT, some network file systems) | 2 s |
//! | any other | 20 ms: a kernel's tick is at most 10 ms |
//!
//! So a file that was just checked out is read by the first build and the next, then never again. Times never enter a key.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rayon::prelude::*;

use super::Blobs;
use super::home::{Doing, named};
use super::journal::{Journal, StatRow};
use kforge_foundation::base::Digest;

const SECOND: i128 = 1_000_000_000;
const FINE: Duration = Duration::from_millis(20);
const COARSE: Duration = Duration::from_secs(2);

/// The maximum number of attempts to read a file that changes while it is read.
const ATTEMPTS: u32 = 3;

/// The metadata that show whether a file's contents or a folder's entries have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) size: u64,
    pub(super) mtime_ns: i128,
    pub(super) ctime_ns: i128,
    pub(super) inode: u64,
}

impl Stat {
    pub(super) fn of(metadata: &Metadata) -> Stat {
        let ns = |s: i64, ns: i64| i128::from(s) * SECOND + i128::from(ns);
        Stat {
            size: metadata.size(),
            mtime_ns: ns(metadata.mtime(), metadata.mtime_nsec()),
            ctime_ns: ns(metadata.ctime(), metadata.ctime_nsec()),
            inode: metadata.ino(),
        }
    }

    /// The same from the raw structure of the system.
    pub(super) fn of_raw(stat: &rustix::fs::Stat) -> Stat {
        let ns = |s: i64, ns: u64| i128::from(s) * SECOND + i128::from(ns);
        Stat {
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mtime_ns: ns(stat.st_mtime, stat.st_mtime_nsec),
            ctime_ns: ns(stat.st_ctime, stat.st_ctime_nsec),
            inode: stat.st_ino,
        }
    }

    /// Whether a row still describes the file.
    fn agrees_with(&self, row: &StatRow) -> bool {
        let then = Stat { size: row.size, mtime_ns: row.mtime_ns, ctime_ns: row.ctime_ns, inode: row.inode };
        *self == then && then.older_than(row.recorded_ns)
    }

    /// Whether the file has been unchanged since before `moment_ns`, by more than the granularity of the file system's clock.
    pub(super) fn older_than(&self, moment_ns: i128) -> bool {
        let coarse = self.mtime_ns % SECOND == 0 && self.ctime_ns % SECOND == 0;
        let granularity = if coarse { COARSE } else { FINE }.as_nanos() as i128;
        self.mtime_ns.max(self.ctime_ns) + granularity < moment_ns
    }
}

/// A point in time in nanoseconds since 1970.
pub(super) fn ns_of(moment: SystemTime) -> i128 {
    moment.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i128)
}

/// The digests of the leaf files below a folder.
#[derive(Debug)]
pub struct StatCache<'a> {
    journal: &'a Journal,
    root: PathBuf,
    trust: bool,
}

impl<'a> StatCache<'a> {
    /// A cache for files whose paths are absolute or relative to `root`; `root` may be moved. Rows are stored in `journal`. Without `trust` every file is read:
    /// for file systems whose times are unreliable.
    pub fn new(journal: &'a Journal, root: &Path, trust: bool) -> StatCache<'a> {
        StatCache { journal, root: root.to_path_buf(), trust }
    }

    /// The digest of each file, in the order of `paths`; none for a file that does not exist.
    pub fn digests(&self, paths: &[PathBuf]) -> Vec<io::Result<Option<Digest>>> {
        paths.par_iter().map(|path| self.one(path, None)).collect()
    }

    /// The digest of one file; none if it does not exist. Starts no thread.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn digest(&self, path: &Path) -> io::Result<Option<Digest>> {
        self.one(path, None)
    }

    /// The same, and stores the contents in `blobs`: a step then reads exactly what was hashed, even if the file changes.
    pub fn keep(&self, paths: &[PathBuf], blobs: &dyn Blobs) -> Vec<io::Result<Option<Digest>>> {
        paths.par_iter().map(|path| self.one(path, Some(blobs))).collect()
    }

    fn one(&self, path: &Path, blobs: Option<&dyn Blobs>) -> io::Result<Option<Digest>> {
        let place = self.root.join(path);
        let seen = match std::fs::metadata(&place) {
            Ok(metadata) => Stat::of(&metadata),
            Err(e) if absent(&e) => return Ok(None),
            Err(e) => return Err(named(e, Doing::Read, &place)),
        };
        let row = self.journal.stat(path).filter(|row| self.trust && seen.agrees_with(row));
        if let Some(row) = row.filter(|row| blobs.is_none_or(|blobs| blobs.has(&row.digest))) {
            return Ok(Some(row.digest));
        }
        match self.read(path, &place, blobs) {
            Err(e) if absent(&e) => Ok(None),
            other => other.map(Some),
        }
    }

    /// Reads the file, and records a row if the file did not change meanwhile.
    fn read(&self, path: &Path, place: &Path, blobs: Option<&dyn Blobs>) -> io::Result<Digest> {
        let mut attempt = 1;
        loop {
            let recorded_ns = ns_of(SystemTime::now());
            let mut file = File::open(place).map_err(|e| named(e, Doing::Read, place))?;
            let look = |file: &File| file.metadata().map(|m| Stat::of(&m)).map_err(|e| named(e, Doing::Read, place));
            let before = look(&file)?;
            let digest = match blobs {
                None => Digest::of_reader(&file).map_err(|e| named(e, Doing::Read, place))?,
                Some(blobs) => {
                    let mut bytes = Vec::new();
                    io::Read::read_to_end(&mut file, &mut bytes).map_err(|e| named(e, Doing::Read, place))?;
                    blobs.put(&bytes)?
                }
            };
            let Stat { size, mtime_ns, ctime_ns, inode } = before;
            if look(&file)? == before && size == digest.size() {
                let row = StatRow { size, mtime_ns, ctime_ns, inode, recorded_ns, digest };
                // The row only saves work. If the journal cannot be written, the build gets the error when it flushes the journal.
                let _ = self.journal.record_stat(path, &row);
                return Ok(digest);
            }
            if attempt == ATTEMPTS {
                return Ok(digest);
            }
            attempt += 1;
        }
    }
}

/// Whether the error means that the file does not exist.
fn absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests;
