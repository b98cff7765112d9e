//! The bundles in the commits of a repository. Knows git's plumbing; reads objects, and writes nothing. Does not know what is in a bundle.

use std::collections::BTreeSet;
use std::path::Path;

use super::super::archive::EXTENSION;
use super::super::committed::FOLDER;
use super::super::revision::{Git, RevisionError};
use kforge_foundation::process::Command;
use kforge_project::workspace::find::MANIFEST;

/// The most bytes of a list that git writes. A path has up to 4 KiB.
const LIST: usize = 64 << 20;

/// The mode of a file, and of one that may be executed.
const FILES: [&str; 2] = ["100644", "100755"];

/// A commit that changed a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Commit {
    /// Its name, in hexadecimal.
    pub(super) id: String,
    /// When it was committed, in seconds since 1970.
    pub(super) seconds: i64,
    /// The first line of its message.
    pub(super) subject: String,
}

/// A bundle in the tree of a commit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    /// Its path from the workspace's root.
    pub(super) path: String,
    /// The name of its contents, in hexadecimal.
    pub(super) blob: String,
    /// Whether it is a file, not a link or another repository.
    pub(super) is_file: bool,
}

impl Git<'_> {
    /// The root of the repository that holds `at`.
    ///
    /// # Errors
    /// `at` is in no repository, or git fails.
    pub(super) fn top(&self, at: &Path) -> Result<String, RevisionError> {
        self.text(at, &["rev-parse", "--show-toplevel"], vec![])
    }

    /// Whether the repository that holds `at` lacks the beginning of its history.
    ///
    /// # Errors
    /// `at` is in no repository, or git fails.
    pub(super) fn is_shallow(&self, at: &Path) -> Result<bool, RevisionError> {
        Ok(self.text(at, &["rev-parse", "--is-shallow-repository"], vec![])? == "true")
    }

    /// The commits among the first parents of a commit that changed a bundle below `at`, newest first and at most that many.
    ///
    /// # Errors
    /// git fails.
    pub(super) fn changes(&self, at: &Path, commit: &str, most: usize) -> Result<Vec<Commit>, RevisionError> {
        let most = format!("--max-count={most}");
        let bundles = pattern(&format!("{FOLDER}/*.{EXTENSION}"));
        let words = ["rev-list", "--first-parent", &most, "--format=%ct %s", commit, "--", &bundles];
        let said = self.text(at, &words, vec![])?;
        let mut lines = said.lines();
        let mut all = vec![];
        while let Some(line) = lines.next() {
            let told = || {
                let id = line.strip_prefix("commit ")?.to_string();
                let (seconds, subject) = lines.next()?.split_once(' ')?;
                Some(Commit { id, seconds: seconds.parse().ok()?, subject: subject.to_string() })
            };
            all.push({ told }().ok_or_else(|| unexpected(&words, line))?);
        }
        Ok(all)
    }

    /// The bundles beside manifests in the tree of a commit, below `at`, in the order of their paths. `empty` is the empty tree.
    ///
    /// # Errors
    /// git fails.
    pub(super) fn bundles(&self, at: &Path, commit: &str, empty: &str) -> Result<Vec<Entry>, RevisionError> {
        // Of the commands that list a tree, only those that compare trees know patterns.
        let (bundles, manifests) = (pattern(&format!("{FOLDER}/*.{EXTENSION}")), pattern(MANIFEST));
        let words = [
            "diff-tree",
            "-r",
            "-z",
            "--raw",
            "--no-renames",
            "--no-abbrev",
            "--relative",
            empty,
            commit,
            "--",
            &bundles,
            &manifests,
        ];
        let said = self.text(at, &words, vec![])?;
        let mut fields = said.split('\0').filter(|field| !field.is_empty());
        let (mut all, mut manifests) = (vec![], BTreeSet::new());
        while let Some(about) = fields.next() {
            // `:000000 100644 0000 1a2b A`, then the path.
            let (Some(path), [_, mode, _, blob, _]) = (fields.next(), &about.split(' ').collect::<Vec<_>>()[..]) else {
                return Err(unexpected(&words, about));
            };
            match path.rsplit_once('/').unwrap_or(("", path)) {
                (folder, MANIFEST) => drop(manifests.insert(folder.to_string())),
                _ => all.push(Entry { path: path.into(), blob: blob.to_string(), is_file: FILES.contains(mode) }),
            }
        }
        let is_beside = |entry: &Entry| {
            let folder = entry.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            manifests.contains(folder.strip_suffix(FOLDER).unwrap_or(folder).trim_end_matches('/'))
        };
        all.retain(is_beside);
        all.sort();
        Ok(all)
    }

    /// The name of the empty tree, which differs by the hash of a repository.
    ///
    /// # Errors
    /// git fails.
    pub(super) fn empty_tree(&self, at: &Path) -> Result<String, RevisionError> {
        self.text(at, &["hash-object", "-t", "tree", "--stdin"], vec![])
    }

    /// The sizes of blobs in bytes; none for one that the clone does not have.
    ///
    /// # Errors
    /// git fails.
    pub(super) fn sizes(&self, at: &Path, blobs: &[&str]) -> Result<Vec<Option<u64>>, RevisionError> {
        let words = ["cat-file", "--batch-check=%(objecttype) %(objectsize)"];
        let asked: String = blobs.iter().map(|blob| format!("{blob}\n")).collect();
        let said = self.text(at, &words, asked.into_bytes())?;
        let sizes = said.lines().map(|line| line.strip_prefix("blob ").and_then(|size| size.parse().ok()));
        let sizes: Vec<Option<u64>> = sizes.collect();
        if sizes.len() == blobs.len() { Ok(sizes) } else { Err(unexpected(&words, &said)) }
    }

    /// The bytes of a blob of this size.
    ///
    /// # Errors
    /// git fails, or the blob is larger.
    pub(super) fn blob(&self, at: &Path, blob: &str, size: u64) -> Result<Vec<u8>, RevisionError> {
        let limit = usize::try_from(size).unwrap_or(usize::MAX);
        self.kept(at, &["cat-file", "blob", blob], vec![], limit)
    }

    fn text(&self, at: &Path, words: &[&str], stdin: Vec<u8>) -> Result<String, RevisionError> {
        let bytes = self.kept(at, words, stdin, LIST)?;
        Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_string())
    }

    /// The whole output of git.
    fn kept(&self, at: &Path, words: &[&str], stdin: Vec<u8>, limit: usize) -> Result<Vec<u8>, RevisionError> {
        // A clone without some contents would fetch them; a report asks nobody.
        let command = Command::new(&self.program).env("GIT_NO_LAZY_FETCH", "1").stdin(stdin).capture(limit);
        let said = self.output(command, at, words)?;
        said.whole().ok_or_else(|| RevisionError::TooLong { words: words.join(" "), limit })
    }
}

/// A pattern of paths at any depth below the current folder.
fn pattern(name: &str) -> String {
    format!(":(glob)**/{name}")
}

fn unexpected(words: &[&str], line: &str) -> RevisionError {
    RevisionError::Unexpected { words: words.join(" "), line: line.chars().take(200).collect() }
}
