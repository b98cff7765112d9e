//! A revision of the repository in a separate folder. Knows git's plumbing; reads the repository and never writes to it: neither to its working tree, nor to
//! its index, nor to a branch.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use kforge_foundation::process::{Captured, Command, run};

/// Variables that git sets for its hooks. They would make the commands here use another repository or index.
const OF_HOOKS: [&str; 5] = ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY"];

/// Variables that change what a pattern of paths matches.
const OF_PATHS: [&str; 4] =
    ["GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS"];

/// A revision that was checked out. Dropping it removes its folder.
#[derive(Debug)]
pub struct Revision {
    /// The commit, in hexadecimal.
    pub commit: String,
    /// The folder in the checkout that corresponds to the requested one.
    pub folder: PathBuf,
    /// A folder next to the checkout for build outputs.
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
        /// The system's error.
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
    /// git says more than is kept.
    #[error("`git {words}` says more than {limit} bytes")]
    TooLong {
        /// Its arguments.
        words: String,
        /// The limit.
        limit: usize,
    },
    /// git says something that it should not.
    #[error("`git {words}` says `{line}`, which has no meaning here")]
    Unexpected {
        /// Its arguments.
        words: String,
        /// A line of its output.
        line: String,
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
    /// No folder can be created for the checkout.
    #[error("cannot make a folder in `{}`: {source}", .into.display())]
    Folder {
        /// The parent folder.
        into: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A folder does not exist.
    #[error("cannot find `{}`: {source}", .path.display())]
    Find {
        /// The folder.
        path: PathBuf,
        /// The system's error.
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

/// How git is run.
pub struct Git<'a> {
    /// Its program.
    pub program: PathBuf,
    /// The environment of this process.
    pub environment: &'a BTreeMap<String, String>,
    /// Set to stop git.
    pub interrupted: &'a AtomicBool,
}

impl Git<'_> {
    fn say(&self, folder: &Path, index: Option<&Path>, words: &[&str]) -> Result<String, RevisionError> {
        let command = Command::new(&self.program);
        let command = if let Some(index) = index { command.env("GIT_INDEX_FILE", index) } else { command };
        Ok(self.output(command, folder, words)?.text().trim_end().to_string())
    }

    /// What git writes to its standard output, given a command without arguments and folder.
    pub(super) fn output(&self, command: Command, folder: &Path, words: &[&str]) -> Result<Captured, RevisionError> {
        let mut command = command.dir(folder).args(words);
        let others = |name: &str| !OF_HOOKS.contains(&name) && !OF_PATHS.contains(&name);
        for (name, value) in self.environment.iter().filter(|(name, _)| others(name)) {
            command = command.env(name, value);
        }
        let said = run(&command, None, self.interrupted)
            .map_err(|source| RevisionError::Run { line: command.line(), source })?;
        match said.end.success() {
            true => Ok(said.stdout),
            false => Err(RevisionError::Git { words: words.join(" "), said: said.stderr.text().trim().to_string() }),
        }
    }

    /// The short names of the branches and tags of the repository that holds `at`.
    ///
    /// # Errors
    /// `at` is in no repository, or git fails.
    pub fn names(&self, at: &Path) -> Result<Vec<String>, RevisionError> {
        let words = ["for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags"];
        Ok(self.say(at, None, &words)?.lines().map(String::from).collect())
    }

    /// The commit of a revision of the repository that holds `at`.
    ///
    /// # Errors
    /// `at` is in no repository, the commit does not exist, or git fails.
    pub fn commit(&self, at: &Path, revision: &str) -> Result<String, RevisionError> {
        let top = PathBuf::from(self.say(at, None, &["rev-parse", "--show-toplevel"])?);
        if revision.is_empty() || revision.starts_with('-') {
            return Err(RevisionError::NotRevision(revision.to_string()));
        }
        self.say(&top, None, &["rev-parse", "--verify", "--quiet", &format!("{revision}^{{commit}}")])
            .map_err(|_| RevisionError::NotCommit { revision: revision.to_string(), repository: top })
    }

    /// The text of a file of a commit, without blanks at its end; none if the commit does not have it. The path starts at the folder `at`.
    ///
    /// # Errors
    /// `at` is in no repository, or git fails.
    pub fn file(&self, at: &Path, commit: &str, path: &str) -> Result<Option<String>, RevisionError> {
        let name = format!("./{path}");
        let listed = self.say(at, None, &["ls-tree", "--name-only", commit, "--", &name])?;
        match listed.is_empty() {
            true => Ok(None),
            false => self.say(at, None, &["cat-file", "blob", &format!("{commit}:{name}")]).map(Some),
        }
    }

    /// The files in which git records where the current branch is. They change whenever `HEAD` names another commit.
    ///
    /// # Errors
    /// `at` is in no repository.
    pub fn heads(&self, at: &Path) -> Result<Vec<PathBuf>, RevisionError> {
        let said = self.say(at, None, &["rev-parse", "--git-path", "HEAD", "--git-path", "logs/HEAD"])?;
        Ok(said.lines().map(|path| at.join(path)).collect())
    }

    /// The commit of the repository that holds `at`, and whether `at` has changes that the commit does not have, new files included. None outside a repository,
    /// in one without commits, or if git fails.
    pub fn state(&self, at: &Path) -> Option<(String, bool)> {
        // Without the option, git may write the index.
        let words = ["--no-optional-locks", "status", "--porcelain=v2", "--branch", "--", "."];
        let said = self.say(at, None, &words).ok()?;
        let commit = said.lines().find_map(|line| line.strip_prefix("# branch.oid "))?;
        let dirty = said.lines().any(|line| !line.starts_with('#'));
        commit.bytes().all(|b| b.is_ascii_hexdigit()).then(|| (commit.to_string(), dirty))
    }

    /// Checks out a revision of the repository that holds `at`, into a new folder in `into`.
    ///
    /// # Errors
    /// `at` is in no repository, the commit does not exist, the commit has no such folder, or git fails.
    pub fn check_out(&self, at: &Path, revision: &str, into: &Path) -> Result<Revision, RevisionError> {
        let top = PathBuf::from(self.say(at, None, &["rev-parse", "--show-toplevel"])?);
        let commit = self.commit(at, revision)?;
        let place = tempfile::Builder::new().prefix("compare-").tempdir_in(into);
        let place = place.map_err(|source| RevisionError::Folder { into: into.to_owned(), source })?;
        let (tree, index) = (place.path().join("tree"), place.path().join("index"));
        self.say(&top, Some(&index), &["read-tree", &commit])?;
        std::fs::create_dir(&tree).map_err(|source| RevisionError::Folder { into: tree.clone(), source })?;
        // With the folder as the work tree, only the attributes of the commit itself count: those of the current files could change what is compared with.
        let folder = self.say(&top, None, &["rev-parse", "--absolute-git-dir"])?;
        let (of, work_tree) = (format!("--git-dir={folder}"), format!("--work-tree={}", tree.display()));
        self.say(&tree, Some(&index), &[&of, &work_tree, "checkout-index", "--all"])?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test stands where a shell does, and looks for git on PATH")]
    fn the_attributes_of_later_commits_do_not_change_a_revision() {
        let (folder, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = std::env::var("PATH").unwrap_or_default();
        let program = kforge_project::toolchain::on_path("git", &path).unwrap();
        let environment =
            BTreeMap::from([("PATH".to_string(), path), ("HOME".into(), into.path().display().to_string())]);
        let interrupted = AtomicBool::new(false);
        let git = Git { program, environment: &environment, interrupted: &interrupted };
        let run = |words: &[&str]| {
            let names = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"];
            git.say(folder.path(), None, &[&names, words].concat()).unwrap()
        };
        let commit = |file: &str, text: &str| {
            std::fs::write(folder.path().join(file), text).unwrap();
            run(&["add", "--all"]);
            run(&["commit", "--quiet", "-m", file]);
            run(&["rev-parse", "HEAD"])
        };
        run(&["init", "--quiet"]);
        let first = commit("evidence.kfe", "a\nb\n");
        let second = commit(".gitattributes", "*.kfe text eol=crlf\n");
        let read = |commit: &str| {
            let found = git.check_out(folder.path(), commit, into.path()).unwrap();
            std::fs::read_to_string(found.folder.join("evidence.kfe")).unwrap()
        };
        assert_eq!(read(&first), "a\nb\n");
        assert_eq!(read(&second), "a\r\nb\r\n", "its own attributes count");
    }
}
