//! The sources of an installation: what a user or the lockfile names, opened, fetched and verified. Knows places of publication and artifacts; writes nothing.

use std::path::{Path, PathBuf};

use super::place::{self, Found};
use super::{InstallError, InstallRequest};
use crate::event::Event;
use crate::verify_artifact::{VerifiedArtifact, VerifyArtifactError, VerifyArtifactRequest, read, verify_files};
use crate::{Error, Session};
use kforge_pipeline::release::artifact::{ArtifactFiles, INDEX, Index};
use kforge_pipeline::release::install_lock::{InstallLock, InstalledPackage, is_package_name};
use kforge_pipeline::release::registry::exchange::Access;
use kforge_pipeline::release::registry::reference::{NotReference, split_path};
use kforge_pipeline::release::registry::repository::{Pulled, Resolved, pull, resolve};
use kforge_pipeline::release::registry::{Layout, OciDigest, Place, Reference, Repository, Version};
use kforge_pipeline::release::signature::{Purpose, Signature};

/// What a source gave, before it is verified.
pub(super) struct Fetched {
    /// The files, with the signature that counts most.
    pub(super) files: ArtifactFiles,
    pub(super) index: Index,
    pub(super) source: String,
    pub(super) tag: Option<String>,
    pub(super) manifest: Option<OciDigest>,
    pub(super) folder: String,
}

/// A source that was opened.
enum Opened {
    Artifact(PathBuf),
    Published(Box<dyn Repository>, Version),
}

/// An installation at work.
pub(super) struct Work<'w> {
    pub(super) session: &'w Session,
    pub(super) request: &'w InstallRequest,
    pub(super) lock: Option<&'w InstallLock>,
}

impl Work<'_> {
    /// What a source that the user named gives.
    pub(super) fn named(&self, text: &str, into: &str) -> Result<Fetched, Error> {
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
    pub(super) fn locked(&self, entry: &InstalledPackage) -> Result<Fetched, Error> {
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
            Place::Kernels(_) => return Err(InstallError::Reference(NotReference::Kernels(text.into())).into()),
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
            Place::Kernels(_) => Err(InstallError::Reference(NotReference::Kernels(source.into())).into()),
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
    pub(super) fn verify(&self, one: &Fetched) -> Result<VerifiedArtifact, Error> {
        let request = VerifyArtifactRequest {
            path: one.source.clone().into(),
            allow_untrusted: self.request.allow_untrusted,
            ..VerifyArtifactRequest::default()
        };
        verify_files(self.session, &request, &one.files)
    }
}
