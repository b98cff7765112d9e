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
    /// The counterpart of the folder that was asked for.
    pub folder: PathBuf,
    /// Beside it: for what is built there.
    pub outputs: PathBuf,
    _place: tempfile::TempDir,
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
    fn say(&self, folder: &Path, index: Option<&Path>, words: &[&str]) -> Result<String, String> {
        let mut command = Command::new(&self.program).dir(folder).args(words);
        for (name, value) in self.environment.iter().filter(|(name, _)| !OF_HOOKS.contains(&name.as_str())) {
            command = command.env(name, value);
        }
        if let Some(index) = index {
            command = command.env("GIT_INDEX_FILE", index);
        }
        let said =
            run(&command, None, self.interrupted).map_err(|e| format!("cannot run `{}`: {e}", command.line()))?;
        match said.end.success() {
            true => Ok(said.stdout.text().trim_end().to_string()),
            false => Err(format!("`git {}` failed: {}", words.join(" "), said.stderr.text().trim())),
        }
    }

    /// Checks out a revision of the repository that holds `at`, into a new folder in `into`.
    ///
    /// # Errors
    /// `at` is in no repository, there is no such commit, that has no such folder, or git cannot do it.
    pub fn check_out(&self, at: &Path, revision: &str, into: &Path) -> Result<Revision, String> {
        let top = self.say(at, None, &["rev-parse", "--show-toplevel"])?;
        let top = PathBuf::from(top);
        if revision.is_empty() || revision.starts_with('-') {
            return Err(format!("`{revision}` is no revision"));
        }
        let commit = self
            .say(&top, None, &["rev-parse", "--verify", "--quiet", &format!("{revision}^{{commit}}")])
            .map_err(|_| format!("`{revision}` is no commit of the repository `{}`, and no file", top.display()))?;
        let place = tempfile::Builder::new().prefix("compare-").tempdir_in(into);
        let place = place.map_err(|e| format!("cannot make a folder in `{}`: {e}", into.display()))?;
        let (tree, index) = (place.path().join("tree"), place.path().join("index"));
        self.say(&top, Some(&index), &["read-tree", &commit])?;
        let prefix = format!("--prefix={}/", tree.display());
        self.say(&top, Some(&index), &["checkout-index", "--all", &prefix])?;
        let real = |path: &Path| path.canonicalize().map_err(|e| format!("cannot find `{}`: {e}", path.display()));
        let (at, top) = (real(at)?, real(&top)?);
        let below =
            at.strip_prefix(&top).map_err(|_| format!("`{}` is not below `{}`", at.display(), top.display()))?;
        let folder = tree.join(below);
        if !folder.is_dir() {
            return Err(format!("`{revision}` has no folder `{}`", below.display()));
        }
        Ok(Revision { commit, folder, outputs: place.path().join("target"), _place: place })
    }
}
