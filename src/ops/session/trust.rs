//! Whom a session trusts to sign evidence. Knows where the table of keys may come from and in which order; [`kforge_pipeline::release::trust`] judges.
//!
//! The first of these that is set counts: `--trust`; the setting `evidence.trust` (which a repository cannot set); with a base revision, the repository's file
//! as it is there; the repository's file. Only the last is part of what is built, so it is for the owner's own tree: a warning says where it differs from
//! `HEAD`.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;

use super::open::Session;
use crate::Error;
use crate::event::Warning;
use kforge_foundation::base::Witness;
use kforge_foundation::config::Origin;
use kforge_pipeline::release::allowed_signers::{AllowedSigners, BadLine};
use kforge_pipeline::release::revision::RevisionError;
use kforge_pipeline::release::trust::{REPOSITORY_FILE, Trust, TrustSource};

/// Why the trusted keys are not known.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// A file cannot be read.
    #[error("cannot read the trusted keys in {from}: {source}")]
    Read {
        /// The source, in words.
        from: TrustSource,
        /// The cause.
        source: std::io::Error,
    },
    /// A file has a bad line.
    #[error("the trusted keys in {from}: {bad}")]
    Line {
        /// The source, in words.
        from: TrustSource,
        /// The line.
        bad: BadLine,
    },
    /// The base revision cannot be looked up.
    #[error("cannot read the revision `{revision}`: {why}")]
    Revision {
        /// The revision.
        revision: String,
        /// The error of git.
        why: RevisionError,
    },
    /// There is no git.
    #[error("cannot read the revision `{0}`: there is no `git` on PATH")]
    NoGit(String),
    /// The clock is out of the range of times.
    #[error("the clock of this machine is out of range, so no key can be checked: {0}")]
    Clock(jiff::Error),
}

/// What a session found out about its trusted keys.
pub struct Found {
    /// Whom it trusts.
    pub trust: Arc<Trust>,
    /// The files that decided it.
    pub witness: Witness,
    /// Whether the repository's file differs from the one in `HEAD`.
    pub differs: bool,
}

impl Session {
    /// The same session, which trusts these keys and no others.
    pub fn trusting(&self, trust: Arc<Trust>) -> Session {
        Session { trust: Some(trust), ..self.same() }
    }

    /// Whom the session trusts in the workspace with that root, if there is one. `base` is the revision in which the repository's file counts.
    ///
    /// # Errors
    /// The source cannot be read, or has a bad line.
    pub fn trusted(&self, root: Option<&Path>, base: Option<&str>) -> Result<Found, Error> {
        let mut witness = Witness::default();
        if let Some(trust) = &self.trust {
            return Ok(Found { trust: trust.clone(), witness, differs: false });
        }
        let now = Timestamp::try_from(self.began).map_err(TrustError::Clock)?;
        let (mut source, mut differs) = (self.named_trust(), false);
        let text = match (&source, root, base) {
            (Some(named), ..) => {
                let path = named.file().cloned().unwrap_or_default();
                witness.saw(&path, path.exists());
                std::fs::read_to_string(path).map_err(|e| TrustError::Read { from: named.clone(), source: e })?
            }
            (None, Some(root), Some(revision)) => {
                let (commit, text) = self.in_revision(root, revision)?;
                let exists = text.is_some();
                source = Some(TrustSource::Revision { revision: revision.into(), commit, exists });
                text.unwrap_or_default()
            }
            (None, Some(root), None) => {
                let path = root.join(REPOSITORY_FILE);
                let read = std::fs::read_to_string(&path);
                witness.saw(&path, read.is_ok());
                match read {
                    Ok(text) => {
                        differs = self.differs(root, &text, &mut witness);
                        source = Some(TrustSource::Repository(path));
                        text
                    }
                    Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
                        String::new()
                    }
                    Err(e) => return Err(TrustError::Read { from: TrustSource::Repository(path), source: e }.into()),
                }
            }
            (None, None, _) => String::new(),
        };
        let source = source.unwrap_or(TrustSource::Nothing);
        let signers = AllowedSigners::parse(&text).map_err(|bad| TrustError::Line { from: source.clone(), bad })?;
        Ok(Found { trust: Arc::new(Trust { source, signers, now }), witness, differs })
    }

    /// Whom the session trusts in the current workspace, or without one.
    ///
    /// # Errors
    /// Those of [`Session::trusted`], or the workspace cannot be opened.
    pub fn trusted_here(&self, base: Option<&str>) -> Result<Arc<Trust>, Error> {
        let root = if self.has_manifest() { Some(self.workspace()?.root) } else { None };
        self.told(self.trusted(root.as_deref(), base)?)
    }

    /// Reports what is remarkable about the trusted keys.
    pub(crate) fn told(&self, found: Found) -> Result<Arc<Trust>, Error> {
        if found.differs
            && let Some(path) = found.trust.source.file()
        {
            self.reporter.warn(Warning::TrustDiffers(path.clone()));
        }
        Ok(found.trust)
    }

    /// The file that an option or a setting names.
    pub(crate) fn named_trust(&self) -> Option<TrustSource> {
        if let Some(path) = &self.options.trust {
            return Some(TrustSource::Flag(self.cwd.join(path)));
        }
        let (value, path) = (self.settings.get("evidence.trust")?, self.settings.path("evidence.trust")?);
        Some(match &value.origin {
            Origin::Variable(name) => TrustSource::Variable { name: name.clone(), path },
            Origin::File(config) => TrustSource::Home { config: config.clone(), path },
            Origin::Flag | Origin::Default => TrustSource::Flag(path),
        })
    }

    /// The commit of a revision, and the repository's file in it.
    fn in_revision(&self, root: &Path, revision: &str) -> Result<(String, Option<String>), Error> {
        let git = self.git().ok_or_else(|| TrustError::NoGit(revision.into()))?;
        let wrong = |why| TrustError::Revision { revision: revision.into(), why };
        let commit = git.commit(root, revision).map_err(wrong)?;
        let text = git.file(root, &commit, REPOSITORY_FILE).map_err(wrong)?;
        Ok((commit, text))
    }

    /// Whether the repository's file differs from the one in `HEAD`. In a folder of no repository there is nothing that it could differ from.
    fn differs(&self, root: &Path, text: &str, witness: &mut Witness) -> bool {
        let Some(git) = self.git() else { return false };
        let Ok(heads) = git.heads(root) else { return false };
        heads.iter().for_each(|path| witness.saw(path, path.exists()));
        let committed = git.commit(root, "HEAD").and_then(|commit| git.file(root, &commit, REPOSITORY_FILE));
        // A repository without a commit has nothing that somebody else has seen.
        committed.ok().flatten().as_deref() != Some(text.trim_end())
    }
}
