//! Installs artifacts for somebody who uses them: fetches, verifies against that person's own trust, and only then makes a folder visible. Knows sessions, the
//! lockfile and its rules; [`source`] knows where artifacts come from, and [`place`] knows folders.
//!
//! | decision | because |
//! |---|---|
//! | everything is fetched and verified before the first folder appears | an installation of several is not half done because the last is refused |
//! | trust is judged at every installation, also of what is already there | a key can expire, or be withdrawn |
//! | a tag or a version that names other contents than the lockfile says is an error | whoever moved it may not be who published it |
//! | so is an older version, or another source with other contents, for an installed package | a signature does not say that what it signs is the newest |
//! | the same contents from another source are installed, and the change of the source is told | the next installation asks that source |
//! | nothing is read or written through a symbolic link below the folder | a repository may hold one that leads out of it |
//! | a folder is replaced only if it holds exactly the files of an artifact of that package | nothing of the user's is lost |
//! | without sources, each package is fetched by its digest | a lockfile gives the same bytes everywhere |

pub(crate) mod place;
mod source;

use std::io::ErrorKind;
use std::path::PathBuf;

use crate::event::{Blocked, Event};
use crate::verify_artifact::VerifiedArtifact;
use crate::{Error, Session};
use kforge_engine::lock::{Lock, Mode};
use kforge_foundation::base::files::write_if_changed;
use kforge_pipeline::release::install_lock::{FILE_NAME, InstallLock, InstallLockError, InstalledPackage, is_within};
use kforge_pipeline::release::registry::OciDigest;
use kforge_pipeline::release::registry::reference::NotReference;
use kforge_pipeline::release::trust::Distrusted;

use self::place::{Found, Placed};
use self::source::{Fetched, Work};

/// The folder into which artifacts are installed.
pub const DEFAULT_FOLDER: &str = "kernels";

/// The file that is locked while something is installed.
const LOCK: &str = ".kforge-installing";

/// The request for an installation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstallRequest {
    /// Artifacts, folders with published artifacts (`PATH[:TAG]`, `PATH@DIGEST`), and references (`oci://HOST/NAME[:TAG]`); if there are none, what the
    /// lockfile says.
    pub sources: Vec<String>,
    /// The folder to install into, below the session's folder; [`DEFAULT_FOLDER`] if none is named.
    pub into: Option<PathBuf>,
    /// Do not require the signature of a trusted key.
    pub allow_untrusted: bool,
    /// Accept that a tag or a version names other contents than the lockfile says.
    pub update: bool,
    /// Reach registries in plain text, which is otherwise only done on this machine.
    pub plain_http: bool,
    /// Write nothing.
    pub dry_run: bool,
}

/// What an installation changed, or would change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstallStatus {
    /// The folder is new.
    Added,
    /// The folder held another artifact of the package.
    Replaced,
    /// The folder held this artifact.
    Present,
}

/// Why what a source gives is not what the lockfile lets expect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unexpected {
    /// Its version is not later than the installed one.
    #[error("which is not a later version")]
    Version,
    /// The same, and the user named that version, or the artifact itself.
    #[error("which is not a later version")]
    Asked,
    /// The package was installed from another source, with other contents.
    #[error("with other contents and from another source")]
    Source,
    /// Another package was installed from there.
    #[error("which is another package")]
    Package,
}

/// An installed artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Its entry in the lockfile.
    pub package: InstalledPackage,
    /// What changed, or would change.
    pub status: InstallStatus,
    /// The version that its folder held, if the status is [`InstallStatus::Replaced`].
    pub replaced: Option<String>,
    /// Why its signature does not count, if it has one that does not, and none was required.
    pub distrusted: Option<Distrusted>,
    /// The number of its kernels, each for one choice of types and one target.
    pub kernels: u64,
    /// Who had signed these contents before, by the lockfile, if it was another key.
    pub signed_before: Option<String>,
    /// The source that the lockfile named before, if it was another place.
    pub source_before: Option<String>,
}

/// Why an artifact cannot be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// There is nothing to install.
    #[error(
        "`{FILE_NAME}` does not exist here, so there is nothing to install: name an artifact, a folder or `oci://HOST/NAME`"
    )]
    Nothing,
    /// The lockfile is wrong.
    #[error(transparent)]
    Lockfile(#[from] InstallLockError),
    /// The text of a source is wrong.
    #[error(transparent)]
    Reference(#[from] NotReference),
    /// A source is a path at which there is nothing to install.
    #[error("`{0}` is neither an artifact nor a folder to which artifacts were published")]
    NoSource(String),
    /// The folder lies elsewhere.
    #[error("`{}` is not below the folder of `{FILE_NAME}`: expected a relative path without `..`", .0.display())]
    Outside(PathBuf),
    /// A part of a path is a symbolic link, which may lead anywhere.
    #[error(
        "`{0}` is a symbolic link, and kforge installs only below the folder of `{FILE_NAME}`: name the folder itself, or remove the link"
    )]
    Link(String),
    /// Two sources give the same package.
    #[error("two of the sources hold the package `{0}`: expected each package once")]
    Twice(String),
    /// The package of an artifact has a name that no folder can have.
    #[error("`{source_name}` holds a package whose name no folder can have: `{}`", .name.escape_default())]
    Name {
        /// The source.
        source_name: String,
        /// The name.
        name: String,
    },
    /// A tag or a version names other contents than before.
    #[error(
        "{what} of `{source_name}` is {found}, but `{FILE_NAME}` says {locked}: it was changed after it was installed here"
    )]
    Moved {
        /// The tag or the version, in words.
        what: String,
        /// The source.
        source_name: String,
        /// The digest that it names now.
        found: String,
        /// The digest in the lockfile.
        locked: String,
    },
    /// A tag that states a version names another one.
    #[error("the tag `{tag}` of `{source_name}` names version {}: whoever can write there may have put an older artifact under it", .version.escape_default())]
    OtherVersion {
        /// The source.
        source_name: String,
        /// The tag.
        tag: String,
        /// The version in the artifact.
        version: String,
    },
    /// A source gives what would take the place of something that the user did not expect to change.
    #[error("`{source_name}` holds {found}, {why}, but `{FILE_NAME}` says {locked}")]
    Unexpected {
        /// The source.
        source_name: String,
        /// The package with its version.
        found: String,
        /// What is unexpected.
        why: Unexpected,
        /// What the lockfile says.
        locked: String,
    },
    /// A source does not hold what the lockfile says.
    #[error("`{source_name}` holds {found}, but `{FILE_NAME}` says {locked}")]
    Other {
        /// The source.
        source_name: String,
        /// The package with its root.
        found: String,
        /// What the lockfile says.
        locked: String,
    },
    /// The folder holds something that would be lost.
    #[error("`{folder}` is not replaced: {why}")]
    Occupied {
        /// The folder.
        folder: String,
        /// What it holds.
        why: String,
    },
    /// `--locked` forbids a change.
    #[error("`{FILE_NAME}` needs an update but --locked was passed: {}", .0.join("; "))]
    Locked(
        /// What would change.
        Vec<String>,
    ),
}

/// Installs artifacts.
///
/// # Errors
/// [`InstallError`], an artifact is refused, or a place cannot be used. No folder has changed then, unless writing itself failed.
pub fn install(session: &Session, request: &InstallRequest) -> Result<Vec<Installed>, Error> {
    if request.dry_run {
        return install_locked(session, request);
    }
    if session.cwd.join(LOCK).is_symlink() {
        return Err(InstallError::Link(LOCK.into()).into());
    }
    let mut blocked = || session.reporter.event(&Event::Blocked(Blocked::Folder));
    let lock = Lock::acquire(&session.cwd.join(LOCK), Mode::Exclusive, session.wait(&mut blocked));
    let lock = lock.map_err(Error::lock(Blocked::Folder))?;
    let installed = install_locked(session, request);
    lock.remove();
    installed
}

/// The same by the holder of the lock, which a dry run does not need.
fn install_locked(session: &Session, request: &InstallRequest) -> Result<Vec<Installed>, Error> {
    let lock = read_lock(session)?;
    let work = Work { session, request, lock: lock.as_ref() };
    let fetched = match (&lock, request.sources.is_empty()) {
        (None, true) => return Err(InstallError::Nothing.into()),
        (Some(lock), true) => lock.all().map(|entry| work.locked(entry)).collect::<Result<Vec<_>, _>>()?,
        (_, false) => {
            let into = into(session, request)?;
            request.sources.iter().map(|source| work.named(source, &into)).collect::<Result<Vec<_>, _>>()?
        }
    };
    let old = lock.clone().unwrap_or_default();
    let (mut new, mut installed, mut changed) = (old.clone(), vec![], vec![]);
    for one in fetched {
        if installed.iter().any(|other: &Installed| other.package.name == one.index.package) {
            return Err(InstallError::Twice(one.index.package).into());
        }
        let verified = work.verify(&one)?;
        place::check_links(&session.cwd, &one.folder)?;
        let folder = session.cwd.join(&one.folder);
        let (status, replaces) = match place::look(&folder, &one.index.package)? {
            Found::Nothing => (InstallStatus::Added, None),
            Found::Artifact(found) if *found == one.files => (InstallStatus::Present, None),
            Found::Artifact(found) => (InstallStatus::Replaced, Some(found)),
            Found::Other(why) => return Err(InstallError::Occupied { folder: one.folder, why }.into()),
        };
        let package = entry(&one, &verified);
        let replaced = replaces.as_ref().and_then(|found| found.index().ok()).map(|index| index.version);
        let before = old.get(&package.name).filter(|old| old.key != package.key);
        let signed_before = before.and_then(|old| old.signed_by.clone()).filter(|_| package.key.is_some());
        let moved = old.get(&package.name).filter(|old| !work.is_same(&old.source, &package.source));
        let source_before = moved.map(|old| old.source.clone());
        new.insert(package.clone());
        let VerifiedArtifact { kernels, distrusted, .. } = verified;
        installed.push(Installed { package, status, replaced, distrusted, kernels, signed_before, source_before });
        if status != InstallStatus::Present {
            changed.push(Placed { base: &session.cwd, relative: one.folder, files: one.files, replaces });
        }
    }
    // What would not be read back is not written: a folder within another.
    InstallLock::parse(&new.to_text()).map_err(InstallError::Lockfile)?;
    if session.options.locked && new != old {
        return Err(InstallError::Locked(old.changes(&new)).into());
    }
    if !request.dry_run {
        place::write(&changed)?;
        let path = session.cwd.join(FILE_NAME);
        if new != old || lock.is_none() {
            write_if_changed(&path, new.to_text().as_bytes()).map_err(Error::write(&path))?;
        }
    }
    Ok(installed)
}

/// The lockfile; none if there is none.
fn read_lock(session: &Session) -> Result<Option<InstallLock>, Error> {
    let path = session.cwd.join(FILE_NAME);
    match path.symlink_metadata() {
        Ok(found) if found.is_symlink() => return Err(InstallError::Link(FILE_NAME.into()).into()),
        // Reading a pipe would wait for somebody who writes.
        Ok(found) if !found.is_file() => {
            return Err(Error::read(&path)(std::io::Error::new(ErrorKind::InvalidInput, "it is no regular file")));
        }
        _ => {}
    }
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some(InstallLock::parse(&text).map_err(InstallError::Lockfile)?)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::read(&path)(e)),
    }
}

/// The folder to install into, relative to the session's, with `/`; empty for that folder itself.
fn into(session: &Session, request: &InstallRequest) -> Result<String, InstallError> {
    let Some(named) = &request.into else { return Ok(DEFAULT_FOLDER.into()) };
    let outside = || InstallError::Outside(named.clone());
    let relative = if named.is_absolute() { named.strip_prefix(&session.cwd).map_err(|_| outside())? } else { named };
    let text = relative.to_str().ok_or_else(outside)?;
    let text = text.trim_end_matches('/');
    let text = text.strip_prefix("./").unwrap_or(text);
    match text.is_empty() || text == "." {
        true => Ok(String::new()),
        false if is_within(text) => Ok(text.into()),
        false => Err(outside()),
    }
}

/// The entry of an artifact in the lockfile.
fn entry(one: &Fetched, verified: &VerifiedArtifact) -> InstalledPackage {
    InstalledPackage {
        name: one.index.package.clone(),
        version: one.index.version.clone(),
        folder: one.folder.clone(),
        source: one.source.clone(),
        tag: one.tag.clone(),
        manifest: one.manifest.as_ref().map(OciDigest::to_string),
        root: one.index.root.clone(),
        signed_by: verified.signer.as_ref().map(|signer| signer.principals.clone()),
        key: verified.signer.as_ref().map(|signer| signer.fingerprint.clone()),
    }
}
