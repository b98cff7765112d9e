//! What the stores take up. Knows files and their sizes only.

use std::io;
use std::path::Path;

use super::super::home::Home;

/// How many, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many.
    pub count: u64,
    /// Their bytes, as contents count, not blocks of the disk.
    pub bytes: u64,
}

impl Tally {
    pub(super) fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }
}

/// What each store takes up, in files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Contents.
    pub contents: Tally,
    /// Results.
    pub results: Tally,
    /// Records of evidence, without their outputs, which are contents.
    pub evidence: Tally,
    /// What agents answered; collection does not touch it.
    pub answers: Tally,
    /// The records of candidates; collection does not touch them.
    pub candidates: Tally,
    /// Installed tools.
    pub toolchains: Tally,
    /// What can be made again, and files being written.
    pub scratch: Tally,
}

impl Usage {
    /// All together.
    pub fn total(&self) -> Tally {
        let all =
            [self.contents, self.results, self.evidence, self.answers, self.candidates, self.toolchains, self.scratch];
        Tally { count: all.iter().map(|t| t.count).sum(), bytes: all.iter().map(|t| t.bytes).sum() }
    }
}

/// What the stores of a home take up now. Takes no lock; files that go meanwhile are not counted.
pub fn usage(home: &Home) -> io::Result<Usage> {
    let mut scratch = below(&home.scratch())?;
    let writing = below(&home.tmp())?;
    scratch.count += writing.count;
    scratch.bytes += writing.bytes;
    Ok(Usage {
        contents: below(&home.cas())?,
        results: below(&home.actions())?,
        evidence: below(&home.evidence())?,
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
            // Says which path.
            Err(e) => return Err(io::Error::other(e)),
        };
        if entry.file_type().is_file() {
            tally.add(entry.metadata().map_or(0, |m| m.len()));
        }
    }
    Ok(tally)
}
