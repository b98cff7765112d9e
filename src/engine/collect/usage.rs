//! Disk usage of the stores. Knows only files and their sizes.

use std::io;
use std::path::Path;

use super::super::home::Home;

/// A number of files and their total size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of files.
    pub count: u64,
    /// The sum of the file lengths in bytes, not of disk blocks.
    pub bytes: u64,
}

impl Tally {
    pub(super) fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }
}

/// The disk usage of each store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Contents.
    pub contents: Tally,
    /// Results.
    pub results: Tally,
    /// Records of evidence and signed documents, without the outputs of records, which are contents.
    pub evidence: Tally,
    /// The agents' answers; collection does not touch them.
    pub answers: Tally,
    /// The records of candidates; collection does not touch them.
    pub candidates: Tally,
    /// Installed tools.
    pub toolchains: Tally,
    /// Files that can be computed again, and files being written.
    pub scratch: Tally,
}

impl Usage {
    /// The sum over all stores.
    pub fn total(&self) -> Tally {
        let all =
            [self.contents, self.results, self.evidence, self.answers, self.candidates, self.toolchains, self.scratch];
        Tally { count: all.iter().map(|t| t.count).sum(), bytes: all.iter().map(|t| t.bytes).sum() }
    }
}

/// The disk usage of the stores of a home now. Takes no lock; files that are removed meanwhile are not counted.
pub fn usage(home: &Home) -> io::Result<Usage> {
    let mut scratch = below(&home.scratch())?;
    let writing = below(&home.tmp())?;
    scratch.count += writing.count;
    scratch.bytes += writing.bytes;
    let (mut evidence, documents) = (below(&home.evidence())?, below(&home.signed(""))?);
    evidence.count += documents.count;
    evidence.bytes += documents.bytes;
    Ok(Usage {
        contents: below(&home.cas())?,
        results: below(&home.actions())?,
        evidence,
        answers: below(&home.answers())?,
        candidates: below(&home.candidates())?,
        toolchains: below(&home.toolchains())?,
        scratch,
    })
}

fn below(folder: &Path) -> io::Result<Tally> {
    let mut tally = Tally::default();
    for entry in walkdir::WalkDir::new(folder) {
        let entry = match entry {
            Ok(entry) => entry,
            Err(e) if e.io_error().is_some_and(|e| e.kind() == io::ErrorKind::NotFound) => continue,
            // The error names the path.
            Err(e) => return Err(io::Error::other(e)),
        };
        if entry.file_type().is_file() {
            tally.add(entry.metadata().map_or(0, |m| m.len()));
        }
    }
    Ok(tally)
}
