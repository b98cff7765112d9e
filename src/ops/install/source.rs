//! The sources of an installation: what a user or the lockfile names, opened, fetched and verified. Knows places of publication and artifacts; writes nothing.

use std::path::{Path, PathBuf};

use super::place::{self, Found};
use super::{InstallError, InstallRequest, Unexpected};
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
use kforge_pipeline::release::version::{fits_tag, is_later, states_version};

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
                let folder = place(&index);
                let fetched = Fetched { files, source, tag: None, manifest: None, folder, index };
                self.check_asked(&fetched, true)?;
                Ok(fetched)
            }
            Opened::Published(repository, version) => {
                self.session.reporter.event(&Event::Fetching(text));
                let resolved = resolve(&*repository, &version)?;
                self.check_moved(&source, &resolved)?;
                let tag = resolved.tag.clone();
                let known = self.entries().find(|entry| self.is_same(&entry.source, &source));
                let key = known.and_then(|entry| entry.key.as_deref());
                let (files, index, manifest) = self.pull(&*repository, resolved, &source, key)?;
                let folder = place(&index);
                let fetched = Fetched { files, source, tag, manifest: Some(manifest), folder, index };
                let by_name = match &version {
                    Version::Newest => false,
                    Version::Tag(tag) => states_version(tag),
                    Version::Digest(_) => true,
                };
                self.check_asked(&fetched, by_name)?;
                Ok(fetched)
            }
        }
    }

    fn entries(&self) -> impl Iterator<Item = &InstalledPackage> {
        self.lock.iter().flat_map(|lock| lock.all())
    }

    /// Whether two texts of sources, without tags and digests, name one place.
    pub(super) fn is_same(&self, one: &str, other: &str) -> bool {
        identity(&self.session.cwd, one) == identity(&self.session.cwd, other)
    }

    /// Checks that what a source gave is what was asked for. Its signature says who made it, not that it is the version, the package or the newest that a user
    /// expects there: whoever can write to a place can put an older artifact, or that of another package, under any tag.
    /// `by_name` says whether the user named the version, or the artifact itself.
    fn check_asked(&self, one: &Fetched, by_name: bool) -> Result<(), InstallError> {
        let Fetched { source, index, .. } = one;
        if let Some(tag) = one.tag.as_ref().filter(|tag| !fits_tag(&index.version, tag)) {
            let (source_name, tag, version) = (source.clone(), tag.clone(), index.version.clone());
            return Err(InstallError::OtherVersion { source_name, tag, version });
        }
        if self.request.update {
            return Ok(());
        }
        let Some(known) = self.lock.and_then(|lock| lock.get(&index.package)) else {
            let other = self.entries().find(|entry| one.manifest.is_some() && self.is_same(&entry.source, source));
            return other.map_or(Ok(()), |other| Err(self.unexpected(one, other, Unexpected::Package)));
        };
        let is_same_source = self.is_same(&known.source, source);
        match (known.root == index.root, known.version == index.version) {
            (true, _) => Ok(()),
            (false, _) if !is_same_source => Err(self.unexpected(one, known, Unexpected::Source)),
            (false, true) => Err(InstallError::Moved {
                what: format!("version {}", index.version),
                source_name: source.clone(),
                found: index.root.clone(),
                locked: known.root.clone(),
            }),
            (false, false) if !is_later(&index.version, &known.version) => {
                let why = if by_name { Unexpected::Asked } else { Unexpected::Version };
                Err(self.unexpected(one, known, why))
            }
            (false, false) => Ok(()),
        }
    }

    fn unexpected(&self, one: &Fetched, known: &InstalledPackage, why: Unexpected) -> InstallError {
        InstallError::Unexpected {
            source_name: one.source.clone(),
            found: format!("{} {}", one.index.package, one.index.version.escape_default()),
            why,
            locked: format!("{} {} from `{}`", known.name, known.version, known.source),
        }
    }

    /// Checks that a tag still names what it named when it was installed.
    fn check_moved(&self, source: &str, resolved: &Resolved) -> Result<(), InstallError> {
        let Some(tag) = resolved.tag.as_ref().filter(|_| !self.request.update) else { return Ok(()) };
        let is_known = |e: &&InstalledPackage| e.tag.as_ref() == Some(tag) && self.is_same(&e.source, source);
        let known = self.entries().find(is_known);
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
            true if place.is_file() || place.join(INDEX).is_file() => {
                return Ok((tidy(&path), Opened::Artifact(place)));
            }
            true => (path.as_str(), Version::Newest),
            false => split_path(&path).map_err(InstallError::Reference)?,
        };
        Ok((tidy(name), Opened::Published(self.layout(name)?, version)))
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
        let trust = self.session.trusted(None, None)?.trust;
        let is_enough = |files: &ArtifactFiles, signature: &Signature| {
            let is_expected = key.is_none_or(|key| signature.key().fingerprint() == key);
            let index = files.get(INDEX);
            is_expected && index.is_some_and(|index| trust.judge_for(Purpose::Artifact, index, signature).is_ok())
        };
        let Pulled { manifest, files, mut signatures, .. } = pull(from, resolved, &is_enough)?;
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

/// A path without what changes nothing: `./`, repeated and final slashes.
fn tidy(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    match (path.starts_with('/'), parts.is_empty()) {
        (true, _) => format!("/{}", parts.join("/")),
        (false, true) => ".".into(),
        (false, false) => parts.join("/"),
    }
}

/// A text that two sources share only if they are one place: the real path of a folder, or a registry without a port that is the usual one.
fn identity(cwd: &Path, source: &str) -> String {
    match Place::parse(source) {
        Ok(Place::Registry(reference)) => reference.identity(),
        _ => {
            let path = cwd.join(tidy(source));
            std::fs::canonicalize(&path).unwrap_or(path).display().to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_one_however_it_is_spelt() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
        let absolute = dir.path().join("a/b").display().to_string();
        for text in ["a/b", "./a/b", "a//b/", "a/./b", "a/../a/b", &absolute] {
            assert_eq!(identity(dir.path(), text), identity(dir.path(), "a/b"), "{text}");
        }
        assert_ne!(identity(dir.path(), "a"), identity(dir.path(), "a/b"));
        let of = |text: &str| identity(dir.path(), text);
        assert_eq!(of("oci://A.b:443/c"), of("oci://a.b/c"));
        assert_eq!(of("oci://localhost:80/c"), of("oci://localhost/c"));
        assert_eq!(of("oci://index.docker.io/c"), of("oci://docker.io/c"));
        assert_ne!(of("oci://a.b:444/c"), of("oci://a.b/c"));
        assert_eq!(["./a", "a/", "/a//b", ".", "./", "/"].map(tidy), ["a", "a", "/a/b", ".", ".", "/"]);
    }
}
