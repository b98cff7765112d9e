//! A revision of the repository in a folder of its own. Knows git's plumbing; reads the repository and never writes it: neither its working tree, nor its index, nor a branch.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use kforge_foundation::process::{Command, run};

/// What git tells its hooks: it would have the commands here speak of another repository or index.
const OF_HOOKS: [&str; 5] = ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY"];

/// A revision that was checked out. Its folder goes when this does.
#[derive(Debug)]
pub struct Revision {
    /// The commit, in hexadecimal.
    pub commit: String,
    /// The counterpart of the requested folder.
    pub folder: PathBuf,
    /// Beside it: for what is built there.
    pub outputs: PathBuf,
    _place: tempfile::TempDir,
}

/// Why a revision cannot be checked out.
#[derive(Debug, thiserror::Error)]
pub enum RevisionError {
    /// git cannot be run.
    #[error("cannot run `{line}`: {source}")]
    Run {
        /// The command.
        line: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// git fails.
    #[error("`git {words}` failed: {said}")]
    Git {
        /// Its arguments.
        words: String,
        /// Its message.
        said: String,
    },
    /// No revision has such a name.
    #[error("`{0}` is not a revision")]
    NotRevision(String),
    /// The repository has no such commit.
    #[error("`{revision}` is neither a commit of the repository `{}` nor a file", .repository.display())]
    NotCommit {
        /// The revision.
        revision: String,
        /// The repository.
        repository: PathBuf,
    },
    /// No folder can be made for it.
    #[error("cannot make a folder in `{}`: {source}", .into.display())]
    Folder {
        /// Where it should be.
        into: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A folder is not there.
    #[error("cannot find `{}`: {source}", .path.display())]
    Find {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A folder is not in the repository.
    #[error("`{}` is not below `{}`", .at.display(), .top.display())]
    NotBelow {
        /// The folder.
        at: PathBuf,
        /// The repository.
        top: PathBuf,
    },
    /// The commit has no such folder.
    #[error("`{revision}` has no folder `{}`", .folder.display())]
    NoFolder {
        /// The revision.
        revision: String,
        /// The folder.
        folder: PathBuf,
    },
}

/// Where git is, and how it is spoken to.
pub struct Git<'a> {
    /// Its program.
    pub program: PathBuf,
    /// The environment of this process.
    pub environment: &'a BTreeMap<String, String>,
    /// Set when it is to end.
    pub interrupted: &'a AtomicBool,
}

impl Git<'_> {
    fn say(&self, folder: &Path, index: Option<&Path>, words: &[&str]) -> Result<String, RevisionError> {
        let mut command = Command::new(&self.program).dir(folder).args(words);
        for (name, value) in self.environment.iter().filter(|(name, _)| !OF_HOOKS.contains(&name.as_str())) {
            command = command.env(name, value);
        }
        if let Some(index) = index {
            command = command.env("GIT_INDEX_FILE", index);
        }
        let said = run(&command, None, self.interrupted)
            .map_err(|source| RevisionError::Run { line: command.line(), source })?;
        match said.end.success() {
            true => Ok(said.stdout.text().trim_end().to_string()),
            false => Err(RevisionError::Git { words: words.join(" "), said: said.stderr.text().trim().to_string() }),
        }
    }

    /// Checks out a revision of the repository that holds `at`, into a new folder in `into`.
    ///
    /// # Errors
    /// `at` is in no repository, there is no such commit, that has no such folder, or git cannot do it.
    pub fn check_out(&self, at: &Path, revision: &str, into: &Path) -> Result<Revision, RevisionError> {
        let top = self.say(at, None, &["rev-parse", "--show-toplevel"])?;
        let top = PathBuf::from(top);
        if revision.is_empty() || revision.starts_with('-') {
            return Err(RevisionError::NotRevision(revision.to_string()));
        }
        let commit = self
            .say(&top, None, &["rev-parse", "--verify", "--quiet", &format!("{revision}^{{commit}}")])
            .map_err(|_| RevisionError::NotCommit { revision: revision.to_string(), repository: top.clone() })?;
        let place = tempfile::Builder::new().prefix("compare-").tempdir_in(into);
        let place = place.map_err(|source| RevisionError::Folder { into: into.to_owned(), source })?;
        let (tree, index) = (place.path().join("tree"), place.path().join("index"));
        self.say(&top, Some(&index), &["read-tree", &commit])?;
        let prefix = format!("--prefix={}/", tree.display());
        self.say(&top, Some(&index), &["checkout-index", "--all", &prefix])?;
        let real =
            |path: &Path| path.canonicalize().map_err(|source| RevisionError::Find { path: path.to_owned(), source });
        let (at, top) = (real(at)?, real(&top)?);
        let below = at.strip_prefix(&top).map_err(|_| RevisionError::NotBelow { at: at.clone(), top: top.clone() })?;
        let folder = tree.join(below);
        if !folder.is_dir() {
            return Err(RevisionError::NoFolder { revision: revision.to_string(), folder: below.to_owned() });
        }
        Ok(Revision { commit, folder, outputs: place.path().join("target"), _place: place })
    }
}
