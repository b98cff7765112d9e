//! Installs artifacts for somebody who uses them: fetches, verifies against that person's own trust, and only then makes a folder visible. Knows sessions, the
//! lockfile and its rules; [`place`] knows folders.
//!
//! | decision | because |
//! |---|---|
//! | everything is fetched and verified before the first folder appears | an installation of several is not half done because the last is refused |
//! | trust is judged at every installation, also of what is already there | a key can expire, or be withdrawn |
//! | a tag or a version that names other contents than the lockfile says is an error | whoever moved it may not be who published it |
//! | a folder is replaced only if it holds exactly the files of an artifact of that package | nothing of the user's is lost |
//! | without sources, each package is fetched by its digest | a lockfile gives the same bytes everywhere |

mod place;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::event::{Blocked, Event};
use crate::verify_artifact::{VerifiedArtifact, VerifyArtifactError, VerifyArtifactRequest, read, verify_files};
use crate::{Error, Session};
use kforge_engine::lock::{Lock, Mode};
use kforge_foundation::base::files::write_if_changed;
use kforge_pipeline::release::artifact::{ArtifactFiles, INDEX, Index};
use kforge_pipeline::release::install_lock::{
    FILE_NAME, InstallLock, InstallLockError, InstalledPackage, is_package_name, is_within,
};
use kforge_pipeline::release::registry::exchange::Access;
use kforge_pipeline::release::registry::reference::{NotReference, split_path};
use kforge_pipeline::release::registry::repository::{Pulled, Resolved, pull, resolve};
use kforge_pipeline::release::registry::{Layout, OciDigest, Place, Reference, Repository, Version};
use kforge_pipeline::release::signature::{Purpose, Signature};

use self::place::{Found, Placed};

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

/// An installed artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Its entry in the lockfile.
    pub package: InstalledPackage,
    /// What changed, or would change.
    pub status: InstallStatus,
    /// The number of its kernels, each for one choice of types and one target.
    pub kernels: u64,
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

/// What a source gave, before it is verified.
struct Fetched {
    /// The files, with the signature that counts most.
    files: ArtifactFiles,
    index: Index,
    source: String,
    tag: Option<String>,
    manifest: Option<OciDigest>,
    folder: String,
}

/// A source that was opened.
enum Opened {
    Artifact(PathBuf),
    Published(Box<dyn Repository>, Version),
}

/// Installs artifacts.
///
/// # Errors
/// [`InstallError`], an artifact is refused, or a place cannot be used. No folder has changed then, unless writing itself failed.
pub fn install(session: &Session, request: &InstallRequest) -> Result<Vec<Installed>, Error> {
    if request.dry_run {
        return install_locked(session, request);
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
        let folder = session.cwd.join(&one.folder);
        let status = match place::look(&folder, &one.index.package)? {
            Found::Nothing => InstallStatus::Added,
            Found::Artifact(found) if *found == one.files => InstallStatus::Present,
            Found::Artifact(_) => InstallStatus::Replaced,
            Found::Other(why) => return Err(InstallError::Occupied { folder: one.folder, why }.into()),
        };
        let package = entry(&one, &verified);
        new.insert(package.clone());
        installed.push(Installed { package, status, kernels: verified.kernels });
        if status != InstallStatus::Present {
            changed.push(Placed { folder, files: one.files, replaces: status == InstallStatus::Replaced });
        }
    }
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

/// An installation at work.
struct Work<'w> {
    session: &'w Session,
    request: &'w InstallRequest,
    lock: Option<&'w InstallLock>,
}

impl Work<'_> {
    /// What a source that the user named gives.
    fn named(&self, text: &str, into: &str) -> Result<Fetched, Error> {
        let (source, opened) = self.open(text)?;
        let place = |index: &Index| match into.is_empty() {
            true => index.package.clone(),
            false => format!("{into}/{}", index.package),
        };
        match opened {
            Opened::Artifact(path) => {
                let (files, index) = self.artifact(&path, &source)?;
                let known = self.lock.iter().flat_map(|lock| lock.all());
                let mut known = known.filter(|entry| entry.source == source && entry.version == index.version);
                match known.find(|entry| entry.name == index.package && entry.root != index.root) {
                    Some(entry) if !self.request.update => Err(InstallError::Moved {
                        what: format!("version {}", index.version),
                        source_name: source,
                        found: index.root,
                        locked: entry.root.clone(),
                    }
                    .into()),
                    _ => {
                        let folder = place(&index);
                        Ok(Fetched { files, source, tag: None, manifest: None, folder, index })
                    }
                }
            }
            Opened::Published(repository, version) => {
                self.session.reporter.event(&Event::Fetching(text));
                let resolved = resolve(&*repository, &version)?;
                self.check_moved(&source, &resolved)?;
                let tag = resolved.tag.clone();
                let known = self.lock.iter().flat_map(|lock| lock.all()).find(|entry| entry.source == source);
                let key = known.and_then(|entry| entry.key.as_deref());
                let (files, index, manifest) = self.pull(&*repository, resolved, &source, key)?;
                let folder = place(&index);
                Ok(Fetched { files, source, tag, manifest: Some(manifest), folder, index })
            }
        }
    }

    /// Checks that a tag still names what it named when it was installed.
    fn check_moved(&self, source: &str, resolved: &Resolved) -> Result<(), InstallError> {
        let Some(tag) = resolved.tag.as_ref().filter(|_| !self.request.update) else { return Ok(()) };
        let mut known = self.lock.iter().flat_map(|lock| lock.all());
        let known = known.find(|entry| entry.source == *source && entry.tag.as_ref() == Some(tag));
        let locked = known.and_then(|entry| entry.manifest.clone());
        match locked.filter(|locked| *locked != resolved.digest.to_string()) {
            None => Ok(()),
            Some(locked) => Err(InstallError::Moved {
                what: format!("the tag `{tag}`"),
                source_name: source.into(),
                found: resolved.digest.to_string(),
                locked,
            }),
        }
    }

    /// What an entry of the lockfile says, from its folder if it is there.
    fn locked(&self, entry: &InstalledPackage) -> Result<Fetched, Error> {
        let manifest = entry.manifest.as_deref().map(str::parse).transpose();
        let manifest: Option<OciDigest> = manifest.map_err(|why| InstallError::Reference(NotReference::Digest(why)))?;
        let (source, tag, folder) = (entry.source.clone(), entry.tag.clone(), entry.folder.clone());
        if let Found::Artifact(files) = place::look(&self.session.cwd.join(&folder), &entry.name)?
            && let Ok(index) = files.index()
            && index.root == entry.root
        {
            return Ok(Fetched { files: *files, index, source, tag, manifest, folder });
        }
        let (files, index) = match &manifest {
            None => self.artifact(&self.session.cwd.join(&source), &source)?,
            Some(digest) => {
                let repository = self.repository(&source)?;
                self.session.reporter.event(&Event::Fetching(&source));
                let resolved = resolve(&*repository, &Version::Digest(digest.clone()))?;
                let (files, index, _) = self.pull(&*repository, resolved, &source, entry.key.as_deref())?;
                (files, index)
            }
        };
        if (&index.package, &index.version, &index.root) != (&entry.name, &entry.version, &entry.root) {
            return Err(InstallError::Other {
                source_name: source,
                found: format!(
                    "{} {} ({})",
                    index.package.escape_default(),
                    index.version.escape_default(),
                    index.root
                ),
                locked: format!("{} {} ({})", entry.name, entry.version, entry.root),
            }
            .into());
        }
        Ok(Fetched { files, index, source, tag, manifest, folder })
    }

    /// Opens a source, and states it without tag and digest, as the lockfile does.
    fn open(&self, text: &str) -> Result<(String, Opened), Error> {
        let path = match Place::parse(text).map_err(InstallError::Reference)? {
            Place::Registry(reference) => {
                let (source, version) = (reference.repository(), reference.version.clone());
                return Ok((source, Opened::Published(self.remote(&reference)?, version)));
            }
            Place::Path(path) => path,
        };
        let place = self.session.cwd.join(&path);
        let (name, version) = match place.exists() {
            true if place.is_file() || place.join(INDEX).is_file() => return Ok((path, Opened::Artifact(place))),
            true => (path.as_str(), Version::Newest),
            false => split_path(&path).map_err(InstallError::Reference)?,
        };
        Ok((name.into(), Opened::Published(self.layout(name)?, version)))
    }

    /// The repository of a source in the lockfile.
    fn repository(&self, source: &str) -> Result<Box<dyn Repository>, Error> {
        match Place::parse(source).map_err(InstallError::Reference)? {
            Place::Registry(reference) => self.remote(&reference),
            Place::Path(path) => self.layout(&path),
        }
    }

    fn remote(&self, reference: &Reference) -> Result<Box<dyn Repository>, Error> {
        Ok(Box::new(self.session.remote(reference, Access::Pull, self.request.plain_http)?))
    }

    fn layout(&self, name: &str) -> Result<Box<dyn Repository>, Error> {
        let root = self.session.cwd.join(name);
        match Layout::is_at(&root) {
            true => Ok(Box::new(Layout::open(&root, name)?)),
            false => Err(InstallError::NoSource(name.into()).into()),
        }
    }

    /// The files of an artifact that lies in a folder or an archive.
    fn artifact(&self, place: &Path, source: &str) -> Result<(ArtifactFiles, Index), Error> {
        let refused = |why| Error::from(VerifyArtifactError::Files { path: source.into(), why });
        let files = read(place, Path::new(source)).map_err(refused)?;
        let index = files.index().map_err(refused)?;
        self.check_name(&index, source)?;
        Ok((files, index))
    }

    /// Fetches a published artifact. It gets the signature that counts most: that of the locked key, then of any other that is trusted.
    fn pull(
        &self,
        from: &dyn Repository,
        resolved: Resolved,
        source: &str,
        key: Option<&str>,
    ) -> Result<(ArtifactFiles, Index, OciDigest), Error> {
        let Pulled { manifest, files, mut signatures, .. } = pull(from, resolved)?;
        let index = files.index().map_err(|why| VerifyArtifactError::Files { path: source.into(), why })?;
        self.check_name(&index, source)?;
        signatures.sort_by_key(|signature| Some(signature.key().fingerprint()).as_deref() != key);
        Ok((
            match self.best(&files, signatures)? {
                Some(signature) => files.signed(&signature),
                None => files,
            },
            index,
            manifest,
        ))
    }

    fn check_name(&self, index: &Index, source: &str) -> Result<(), InstallError> {
        match is_package_name(&index.package) {
            true => Ok(()),
            false => Err(InstallError::Name { source_name: source.into(), name: index.package.clone() }),
        }
    }

    /// The first trusted signature; if there is none, one that its key at least made over this index, then any.
    fn best(&self, files: &ArtifactFiles, signatures: Vec<Signature>) -> Result<Option<Signature>, Error> {
        let Some(index) = files.get(INDEX) else { return Ok(None) };
        let trust = self.session.trusted(None, None)?.trust;
        let is_trusted = |signature: &&Signature| trust.judge_for(Purpose::Artifact, index, signature).is_ok();
        let is_real = |signature: &&Signature| signature.verifies(index);
        let best = signatures.iter().find(is_trusted).or_else(|| signatures.iter().find(is_real));
        Ok(best.or(signatures.first()).cloned())
    }

    /// Verifies an artifact against the trust of whoever installs it.
    fn verify(&self, one: &Fetched) -> Result<VerifiedArtifact, Error> {
        let request = VerifyArtifactRequest {
            path: one.source.clone().into(),
            allow_untrusted: self.request.allow_untrusted,
            rebuild: false,
        };
        verify_files(self.session, &request, &one.files)
    }
}
