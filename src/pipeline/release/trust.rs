//! Whom a build trusts to sign evidence and artifacts, and how a signature stands with it. Knows keys, their sources and one point in time; reads no file.
//!
//! | decision | because |
//! |---|---|
//! | the table of keys is not part of what is judged | whoever changes a kernel could add a key of his own in the same change |
//! | one source counts, the first that is set | a union would let the least protected source extend the others |
//! | a key must be valid *now*, when the build judges | a signature of OpenSSH holds no time, and a time that the document states is chosen by whoever signs it: an expired key that leaked could sign a document of last year |
//! | the time of the observations does not matter beside that | evidence that was observed before a key existed may be signed with it, and signing follows observing |
//! | a signature that does not count makes a bundle *claimed*, not invalid | somebody else may trust its key; without it, the same bundle would be claimed, too |

use std::fmt;
use std::path::PathBuf;

use jiff::Timestamp;

use super::allowed_signers::{AllowedSigners, SignerLine};
use super::signature::{Purpose, Signature};

/// Where a repository keeps the keys that may sign its evidence, from the folder of the root manifest.
pub const REPOSITORY_FILE: &str = ".kforge/allowed_signers";

/// Where the table of trusted keys comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustSource {
    /// A file that the command line names.
    Flag(PathBuf),
    /// A file that an environment variable names.
    Variable {
        /// The variable.
        name: String,
        /// The file.
        path: PathBuf,
    },
    /// A file that the configuration in the home names.
    Home {
        /// The configuration.
        config: PathBuf,
        /// The file.
        path: PathBuf,
    },
    /// The repository's file as it is in a revision.
    Revision {
        /// The revision as the user named it.
        revision: String,
        /// Its commit.
        commit: String,
        /// Whether the revision has the file.
        exists: bool,
    },
    /// The repository's file as it is now.
    Repository(PathBuf),
    /// No file names a key.
    Nothing,
}

impl TrustSource {
    /// What kind of source it is, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            TrustSource::Flag(_) => "flag",
            TrustSource::Variable { .. } => "variable",
            TrustSource::Home { .. } => "home",
            TrustSource::Revision { .. } => "revision",
            TrustSource::Repository(_) => "repository",
            TrustSource::Nothing => "none",
        }
    }

    /// The file that a key can be added to, if it is one.
    pub fn file(&self) -> Option<&PathBuf> {
        match self {
            TrustSource::Flag(path)
            | TrustSource::Variable { path, .. }
            | TrustSource::Home { path, .. }
            | TrustSource::Repository(path) => Some(path),
            TrustSource::Revision { .. } | TrustSource::Nothing => None,
        }
    }
}

impl fmt::Display for TrustSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrustSource::Flag(path) => write!(f, "`{}` (`--trust`)", path.display()),
            TrustSource::Variable { name, path } => write!(f, "`{}` (`{name}`)", path.display()),
            TrustSource::Home { config, path } => {
                write!(f, "`{}` (`evidence.trust` in `{}`)", path.display(), config.display())
            }
            TrustSource::Revision { revision, commit, exists: true } => {
                write!(f, "`{REPOSITORY_FILE}` as it is in {revision} ({})", short(commit))
            }
            TrustSource::Revision { revision, commit, exists: false } => {
                write!(f, "`{REPOSITORY_FILE}` as it is in {revision} ({}, where it does not exist)", short(commit))
            }
            TrustSource::Repository(path) => write!(f, "`{}`", path.display()),
            TrustSource::Nothing => f.write_str("no list"),
        }
    }
}

/// The first characters of a commit.
fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

/// Whom a build trusts to sign evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trust {
    /// Where the keys come from.
    pub source: TrustSource,
    /// The keys.
    pub signers: AllowedSigners,
    /// When the build judges.
    pub now: Timestamp,
}

/// Who signed, by a key that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signer {
    /// The principals of the key, as the line of the file states them.
    pub principals: String,
    /// The key's fingerprint.
    pub fingerprint: String,
}

/// A signature that does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct Distrusted {
    /// The fingerprint of the key that is said to have made it.
    pub fingerprint: String,
    /// The reason.
    pub why: Distrust,
    /// The list of the keys that count; [`TrustSource::Nothing`] if there is none.
    pub list: TrustSource,
    /// What was signed.
    pub purpose: Purpose,
}

/// What whoever trusts the owner of a key can do so that its signatures count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustAdvice {
    /// Make a list of keys.
    Make(Purpose),
    /// Add the key to a list.
    Add {
        /// What the key is to sign.
        purpose: Purpose,
        /// The list, unless it is the one to which keys are added if none is named.
        file: Option<PathBuf>,
    },
}

impl fmt::Display for TrustAdvice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const ADD: &str = "kforge evidence trust --add PRINCIPAL KEY.pub";
        let option = |purpose: &Purpose| match purpose {
            Purpose::Evidence => "",
            Purpose::Artifact => " --for artifacts",
        };
        match self {
            TrustAdvice::Make(Purpose::Evidence) => write!(f, "make one with `{ADD}`"),
            TrustAdvice::Make(purpose @ Purpose::Artifact) => write!(
                f,
                "make one with `{ADD}{} --file FILE`, and name it with `--trust FILE` or as `evidence.trust` in the configuration of the home",
                option(purpose)
            ),
            TrustAdvice::Add { purpose, file: None } => write!(f, "add it with `{ADD}{}`", option(purpose)),
            TrustAdvice::Add { purpose, file: Some(file) } => {
                write!(f, "add it with `{ADD}{} --file {}`", option(purpose), file.display())
            }
        }
    }
}

/// Why a signature does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Distrust {
    /// It was made for another purpose.
    Namespace(String),
    /// kforge cannot check signatures by such a key.
    Unsupported(String),
    /// Its key did not make it over this document.
    Tampered,
    /// No line names its key.
    Unknown,
    /// The line that names its key does not allow it to sign for this purpose.
    NotFor {
        /// Whose key it is.
        principals: String,
        /// The purpose.
        purpose: Purpose,
    },
    /// Its key does not count yet.
    NotYet {
        /// Whose key it is.
        principals: String,
        /// The time from which it counts.
        from: Timestamp,
    },
    /// Its key counts no longer.
    Expired {
        /// Whose key it is.
        principals: String,
        /// The time until which it counted.
        until: Timestamp,
    },
}

impl Distrust {
    /// The reason in one word, for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Distrust::Namespace(_) => "namespace",
            Distrust::Unsupported(_) => "unsupported",
            Distrust::Tampered => "tampered",
            Distrust::Unknown => "unknown-key",
            Distrust::NotFor { purpose: Purpose::Evidence, .. } => "not-for-evidence",
            Distrust::NotFor { purpose: Purpose::Artifact, .. } => "not-for-artifacts",
            Distrust::NotYet { .. } => "not-yet-valid",
            Distrust::Expired { .. } => "expired",
        }
    }
}

impl Distrusted {
    /// What makes signatures of this key for this purpose count; none if the key is not what is missing.
    pub fn advice(&self) -> Option<TrustAdvice> {
        let purpose = self.purpose;
        match &self.why {
            Distrust::Unknown | Distrust::NotFor { .. } => Some(match &self.list {
                TrustSource::Nothing => TrustAdvice::Make(purpose),
                TrustSource::Flag(path) => TrustAdvice::Add { purpose, file: Some(path.clone()) },
                _ => TrustAdvice::Add { purpose, file: None },
            }),
            _ => None,
        }
    }

    fn text(&self) -> String {
        let Distrusted { fingerprint, why, purpose, list } = self;
        let advice = self.advice().map_or(String::new(), |advice| advice.to_string());
        let namespace = purpose.namespace();
        let sign = match purpose {
            Purpose::Evidence => "kforge evidence sign",
            Purpose::Artifact => "kforge package --sign-key",
        };
        match why {
            Distrust::Namespace(other) => format!(
                "its signature by {fingerprint} is for the namespace `{other}`, not `{namespace}`; sign it with `{sign}`"
            ),
            Distrust::Unsupported(algorithm) => format!(
                "its signature is by {fingerprint}, a key of type {algorithm}, which kforge does not check; sign it with an ed25519 or ecdsa-sha2-nistp256 key"
            ),
            Distrust::Tampered => format!(
                "its signature by {fingerprint} is not one of this document: somebody changed it after it was signed; get it again, or sign it yourself if you know what is in it"
            ),
            Distrust::Unknown if *list == TrustSource::Nothing => format!(
                "its signature is by {fingerprint}, and there is no list of trusted keys that counts for {}; if you trust its owner, {advice}",
                purpose.plural()
            ),
            Distrust::Unknown => format!(
                "its signature is by {fingerprint}, a key that {list} does not list; if you trust its owner, {advice}"
            ),
            Distrust::NotFor { principals, .. } => format!(
                "its signature is by {fingerprint} ({principals}), a key that {list} does not allow to sign for `{namespace}`; if you trust its owner with {}, {advice}",
                purpose.plural()
            ),
            Distrust::NotYet { principals, from } => format!(
                "its signature is by {fingerprint} ({principals}), a key that {list} does not accept before {from}"
            ),
            Distrust::Expired { principals, until } => format!(
                "its signature is by {fingerprint} ({principals}), a key that expired at {until}; sign it with a key that {list} accepts, or extend `valid-before` there"
            ),
        }
    }
}

impl Trust {
    /// Trust in nobody.
    pub fn nobody(now: Timestamp) -> Trust {
        Trust { source: TrustSource::Nothing, signers: AllowedSigners::default(), now }
    }

    /// Who signed a bundle's document, if the signature counts.
    ///
    /// # Errors
    /// It does not count.
    pub fn judge(&self, document: &[u8], signature: &Signature) -> Result<Signer, Distrusted> {
        self.judge_for(Purpose::Evidence, document, signature)
    }

    /// Who signed a document for this purpose, if the signature counts.
    ///
    /// # Errors
    /// It does not count.
    pub fn judge_for(&self, purpose: Purpose, document: &[u8], signature: &Signature) -> Result<Signer, Distrusted> {
        let (key, fingerprint) = (signature.key(), signature.key().fingerprint());
        let distrusted = |why| Distrusted { fingerprint: fingerprint.clone(), why, list: self.source.clone(), purpose };
        if signature.namespace() != purpose.namespace() {
            return Err(distrusted(Distrust::Namespace(signature.namespace().into())));
        }
        if !key.is_supported() {
            return Err(distrusted(Distrust::Unsupported(key.algorithm())));
        }
        if !signature.verifies(document) {
            return Err(distrusted(Distrust::Tampered));
        }
        let mut why = Distrust::Unknown;
        for line in self.signers.lines.iter().filter(|line| line.key == *key) {
            match self.refuses_for(purpose, line) {
                None => return Ok(Signer { principals: line.principals.clone(), fingerprint }),
                Some(reason) => why = reason,
            }
        }
        Err(distrusted(why))
    }

    /// Why a line does not accept signatures of evidence now.
    pub fn refuses(&self, line: &SignerLine) -> Option<Distrust> {
        self.refuses_for(Purpose::Evidence, line)
    }

    /// Why a line does not accept signatures for this purpose now.
    fn refuses_for(&self, purpose: Purpose, line: &SignerLine) -> Option<Distrust> {
        let principals = || line.principals.clone();
        if !line.is_for(purpose.namespace()) {
            return Some(Distrust::NotFor { principals: principals(), purpose });
        }
        if let Some(from) = line.valid_after.filter(|from| self.now < *from) {
            return Some(Distrust::NotYet { principals: principals(), from });
        }
        let until = line.valid_before.filter(|until| self.now > *until)?;
        Some(Distrust::Expired { principals: principals(), until })
    }

    /// The next time at which a key begins or ceases to count.
    pub fn changes(&self) -> Option<Timestamp> {
        let times = self.signers.lines.iter().flat_map(|line| [line.valid_after, line.valid_before]);
        times.flatten().filter(|time| *time >= self.now).min()
    }
}

#[cfg(test)]
mod tests;
