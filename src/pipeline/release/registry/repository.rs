//! What a place of publication can do, and how an artifact goes there and comes back. Knows manifests and their order; does not know whether the place is a
//! folder or a registry.

use super::digest::OciDigest;
use super::error::RegistryError;
use super::manifest::{ARTIFACT, Descriptor, EMPTY_BYTES, ImageIndex, LARGEST_SIGNATURE, Manifest, SIGNATURE};
use super::reference::Version;
use crate::release::artifact::{ArtifactFiles, Index, tar};
use crate::release::signature::Signature;
use crate::release::version::numbers;

/// The most manifests that are said to be signatures of one artifact and are looked at. Whoever may write there may list anything.
const MOST_REFERRERS: usize = 1000;

/// A place of publication for the versions of one package.
pub trait Repository {
    /// The place in words.
    fn place(&self) -> String;

    /// All tags, except those that list referrers.
    ///
    /// # Errors
    /// The place cannot be read.
    fn tags(&self) -> Result<Vec<String>, RegistryError>;

    /// What the place lists besides those tags, in words. A registry lists only tags.
    ///
    /// # Errors
    /// The place cannot be read.
    fn others(&self) -> Result<Vec<String>, RegistryError> {
        Ok(vec![])
    }

    /// The bytes of the manifest that a tag names; none if there is no such tag.
    ///
    /// # Errors
    /// The place cannot be read.
    fn tagged(&self, tag: &str) -> Result<Option<Vec<u8>>, RegistryError>;

    /// The bytes of the manifest with a digest, which are those that it names; none if it is not there.
    ///
    /// # Errors
    /// The place cannot be read, or holds other bytes.
    fn manifest(&self, digest: &OciDigest) -> Result<Option<Vec<u8>>, RegistryError>;

    /// The contents that a manifest names. They have the digest and the size that it states.
    ///
    /// # Errors
    /// They are not there, or differ.
    fn blob(&self, blob: &Descriptor) -> Result<Vec<u8>, RegistryError>;

    /// Whether such contents are there.
    ///
    /// # Errors
    /// The place cannot be read.
    fn has_blob(&self, blob: &Descriptor) -> Result<bool, RegistryError>;

    /// Adds contents.
    ///
    /// # Errors
    /// The place cannot be written.
    fn put_blob(&self, blob: &Descriptor, bytes: &[u8]) -> Result<(), RegistryError>;

    /// Adds a manifest under its digest.
    ///
    /// # Errors
    /// The place cannot be written.
    fn put_manifest(&self, manifest: &Descriptor, bytes: &[u8]) -> Result<(), RegistryError>;

    /// Makes a tag name a manifest that is there.
    ///
    /// # Errors
    /// The place cannot be written.
    fn tag(&self, tag: &str, manifest: &Descriptor, bytes: &[u8]) -> Result<(), RegistryError>;

    /// The list under the fallback tag of a manifest; an empty one if there is none.
    ///
    /// # Errors
    /// The place cannot be read, or the tag names something else.
    fn fallback(&self, subject: &OciDigest) -> Result<ImageIndex, RegistryError> {
        match self.tagged(&subject.fallback_tag())? {
            None => Ok(ImageIndex::default()),
            Some(bytes) => ImageIndex::read(&format!("the list of signatures in {}", self.place()), &bytes),
        }
    }

    /// The manifests that refer to a manifest.
    ///
    /// # Errors
    /// The place cannot be read.
    fn referrers(&self, subject: &OciDigest) -> Result<Vec<Descriptor>, RegistryError>;

    /// Adds a manifest that refers to another, and lists it there.
    ///
    /// # Errors
    /// The place cannot be written.
    fn refer(&self, subject: &OciDigest, manifest: &Descriptor, bytes: &[u8]) -> Result<(), RegistryError>;
}

/// An artifact that is to be published.
pub struct Publication {
    /// Its index.
    pub index: Index,
    /// Its archive without the signature.
    archive: Vec<u8>,
    /// Its manifest.
    manifest: Manifest,
    /// Its signature, if it is signed.
    signature: Option<Signature>,
}

/// What a publication changed, or would change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The artifact was not there under this tag.
    Added,
    /// The tag named another artifact.
    Replaced,
    /// The artifact was there, and this signature of it was not.
    SignatureAdded,
    /// Everything was there.
    Present,
}

/// An artifact that was fetched.
#[derive(Debug)]
pub struct Pulled {
    /// The tag under which it was found, unless a digest was requested.
    pub tag: Option<String>,
    /// The digest of its manifest.
    pub manifest: OciDigest,
    /// Its files, without signatures.
    pub files: ArtifactFiles,
    /// The signatures that are said to be of it, by anybody.
    pub signatures: Vec<Signature>,
}

/// A manifest that was looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The tag, unless a digest was requested.
    pub tag: Option<String>,
    /// The digest of the manifest.
    pub digest: OciDigest,
    /// Its bytes.
    bytes: Vec<u8>,
}

impl Publication {
    /// The publication of an artifact's files, which match their index.
    ///
    /// # Errors
    /// They do not, or their signature cannot be read.
    pub fn of(files: ArtifactFiles) -> Result<Publication, RegistryError> {
        let (index, signature) = (files.index()?, files.signature()?);
        let archive = tar::pack(&files.unsigned())?;
        let manifest = Manifest::of_artifact(&index, &archive);
        Ok(Publication { index, archive, manifest, signature })
    }

    /// The tag that it has unless another is named: its version.
    pub fn own_tag(&self) -> String {
        self.index.version.clone()
    }

    /// The digest of its manifest.
    pub fn manifest(&self) -> OciDigest {
        self.manifest.encode().0.digest
    }

    /// The signature, if it is signed.
    pub fn signature(&self) -> Option<&Signature> {
        self.signature.as_ref()
    }

    /// The bytes that go to a place that has none of them.
    pub fn bytes(&self) -> u64 {
        self.archive.len() as u64
    }

    /// What publishing under a tag would change.
    ///
    /// # Errors
    /// The place cannot be read, or, unless `replace`, the tag names another artifact.
    pub fn status(&self, to: &dyn Repository, tag: &str, replace: bool) -> Result<Status, RegistryError> {
        let own = self.manifest();
        match to.tagged(tag)?.map(|bytes| OciDigest::of(&bytes)) {
            None => Ok(Status::Added),
            Some(found) if found == own => match self.lacks_signature(to)? {
                true => Ok(Status::SignatureAdded),
                false => Ok(Status::Present),
            },
            Some(_) if replace => Ok(Status::Replaced),
            Some(found) => Err(RegistryError::Taken { place: to.place(), tag: tag.into(), found }),
        }
    }

    fn lacks_signature(&self, to: &dyn Repository) -> Result<bool, RegistryError> {
        let Some(signature) = self.signature_manifest() else { return Ok(false) };
        let known = to.referrers(&self.manifest())?;
        Ok(known.iter().all(|known| known.digest != signature.encode().0.digest))
    }

    fn signature_manifest(&self) -> Option<Manifest> {
        let signature = self.signature.as_ref()?;
        Some(Manifest::of_signature(&self.manifest.encode().0, signature.text().as_bytes()))
    }

    /// Publishes under a tag: contents, manifests, and the tag at last.
    ///
    /// # Errors
    /// Those of [`Publication::status`], or the place cannot be written.
    pub fn push(&self, to: &dyn Repository, tag: &str, replace: bool) -> Result<Status, RegistryError> {
        let status = self.status(to, tag, replace)?;
        let (descriptor, bytes) = self.manifest.encode();
        if status != Status::Present {
            let put = |blob: &Descriptor, bytes: &[u8]| match to.has_blob(blob)? {
                true => Ok(()),
                false => to.put_blob(blob, bytes),
            };
            put(&self.manifest.config, EMPTY_BYTES)?;
            put(self.manifest.layer(), &self.archive)?;
            to.put_manifest(&descriptor, &bytes)?;
            if let (Some(signature), Some(manifest)) = (&self.signature, self.signature_manifest()) {
                put(manifest.layer(), signature.text().as_bytes())?;
                let (of_signature, bytes) = manifest.encode();
                to.refer(&descriptor.digest, &of_signature, &bytes)?;
            }
        }
        if matches!(status, Status::Added | Status::Replaced) {
            to.tag(tag, &descriptor, &bytes)?;
        }
        Ok(status)
    }
}

/// Looks an artifact up.
///
/// # Errors
/// It is not there, or is no artifact of kforge.
pub fn resolve(from: &dyn Repository, version: &Version) -> Result<Resolved, RegistryError> {
    let tag = match version {
        Version::Newest => Some(newest(from)?),
        Version::Tag(tag) => Some(tag.clone()),
        Version::Digest(_) => None,
    };
    let bytes = match (&tag, version) {
        (Some(tag), _) => {
            let no_tag = || RegistryError::NoTag { place: from.place(), tag: tag.clone() };
            from.tagged(tag)?.ok_or_else(no_tag)?
        }
        (None, Version::Digest(digest)) => {
            let missing = || RegistryError::Missing { place: from.place(), digest: digest.clone() };
            from.manifest(digest)?.ok_or_else(missing)?
        }
        (None, _) => return Err(RegistryError::NoVersion { place: from.place(), known: vec![] }),
    };
    Ok(Resolved { tag, digest: OciDigest::of(&bytes), bytes })
}

/// Fetches an artifact that was looked up, with its signatures until one of them is `enough`. Nothing about it is believed yet except its digests.
///
/// # Errors
/// Something of it is missing, differs from its digest, or is of another type.
pub fn pull(
    from: &dyn Repository,
    resolved: Resolved,
    enough: &dyn Fn(&ArtifactFiles, &Signature) -> bool,
) -> Result<Pulled, RegistryError> {
    let Resolved { tag, digest, bytes } = resolved;
    let what = || format!("the manifest {digest} in {}", from.place());
    let manifest = Manifest::artifact(&what(), &bytes)?;
    let files = tar::unpack(&from.blob(manifest.layer())?)?;
    let mut signatures: Vec<Signature> = files.signature()?.into_iter().collect();
    let mut referrers = from.referrers(&digest)?;
    let is_signature = |of: &Descriptor| of.artifact_type.as_deref() == Some(SIGNATURE) && of.size <= LARGEST_SIGNATURE;
    referrers.retain(is_signature);
    referrers.sort_by(|a, b| a.digest.cmp(&b.digest));
    referrers.dedup();
    for referrer in referrers.iter().take(MOST_REFERRERS) {
        if signatures.last().is_some_and(|signature| enough(&files, signature)) {
            break;
        }
        // Whoever may write there may have listed anything. What is no signature of this artifact is as good as absent.
        let Some(bytes) = if_sound(from.manifest(&referrer.digest))?.flatten() else { continue };
        let Ok(of_signature) = Manifest::signature(&what(), &bytes) else { continue };
        if of_signature.subject.as_ref().map(|subject| &subject.digest) != Some(&digest) {
            continue;
        }
        let Some(text) = if_sound(from.blob(of_signature.layer()))? else { continue };
        signatures.extend(Signature::parse(&String::from_utf8_lossy(&text)).ok());
    }
    Ok(Pulled { tag, manifest: digest, files: files.unsigned(), signatures })
}

/// What a place gave; none if it lacks it, or holds other contents than it states.
fn if_sound<T>(given: Result<T, RegistryError>) -> Result<Option<T>, RegistryError> {
    match given {
        Ok(given) => Ok(Some(given)),
        Err(
            RegistryError::Missing { .. }
            | RegistryError::Changed { .. }
            | RegistryError::Size { .. }
            | RegistryError::TooLarge { .. },
        ) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The tag with the greatest version.
fn newest(from: &dyn Repository) -> Result<String, RegistryError> {
    let tags = from.tags()?;
    if let Some((_, tag)) = tags.iter().filter_map(|tag| Some((numbers(tag)?, tag))).max() {
        return Ok(tag.clone());
    }
    let found = if tags.is_empty() { from.others()? } else { vec![] };
    Err(match found.is_empty() {
        true => RegistryError::NoVersion { place: from.place(), known: tags },
        false => RegistryError::NoArtifacts { place: from.place(), found },
    })
}

/// Whether a list of manifests holds an artifact of kforge.
pub(super) fn is_artifact(manifest: &Descriptor) -> bool {
    manifest.artifact_type.as_deref() == Some(ARTIFACT)
}
