//! Publishes an artifact: to a folder, to a registry, or to a repository that Hugging Face `kernels` loads. Verifies it first, so that nothing is published that every reader would refuse. Knows sessions and
//! locks; [`kforge_pipeline::release::registry`] knows the places.
//!
//! | decision | because |
//! |---|---|
//! | everything but trust is verified before anything leaves | whoever publishes need not trust the key that signed; readers decide that |
//! | an unsigned artifact needs a flag | most readers refuse it |
//! | a dry run reads the place and writes nothing | it finds a tag that is taken, and a login that is missing |

mod kernels;

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::event::{Blocked, Event};
use crate::verify_artifact::{VerifyArtifactError, VerifyArtifactRequest, read, verify_files};
use crate::{Error, Session};
use kforge_engine::lock::{Lock, Mode};
use kforge_pipeline::release::artifact::{INDEX, Index};
use kforge_pipeline::release::registry::exchange::Access;
use kforge_pipeline::release::registry::reference::{NotReference, check_tag, split_path};
use kforge_pipeline::release::registry::{
    Layout, OciDigest, Place, Publication, RegistryError, Repository, Status, Version, layout,
};
use kforge_pipeline::release::signature::Purpose;
use kforge_pipeline::release::trust::{Distrust, Trust};
use kforge_pipeline::release::version::fits_tag;

/// The request for a publication.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PublishRequest {
    /// The folder or the archive of the artifact.
    pub artifact: PathBuf,
    /// A folder, with `:TAG` or without, `oci://HOST/NAME[:TAG]`, or `kernels://FOLDER`.
    pub destination: String,
    /// The tag; the version of the package if neither this nor the destination names one.
    pub tag: Option<String>,
    /// Make the tag name this artifact even if it names another.
    pub replace: bool,
    /// Also publish an artifact that nobody signed.
    pub allow_unsigned: bool,
    /// Reach the registry in plain text, which is otherwise only done on this machine.
    pub plain_http: bool,
    /// Write nothing.
    pub dry_run: bool,
}

/// A published artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// What its index says.
    pub index: Index,
    /// The folder as it was named, `oci://HOST/NAME` or `kernels://FOLDER`.
    pub destination: String,
    /// The tag; none in a repository for `kernels`.
    pub tag: Option<String>,
    /// The digest of its manifest; none in a repository for `kernels`.
    pub manifest: Option<OciDigest>,
    /// The fingerprint of the key that signed it.
    pub signed_by: Option<String>,
    /// The size of its archive in bytes.
    pub bytes: u64,
    /// What changed there, or would change.
    pub status: Status,
    /// Whether a repository for `kernels` has a page of somebody else's, which stays.
    pub keeps_card: bool,
}

/// Why an artifact cannot be published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// Nobody signed it for this purpose.
    #[error("`{}` is not signed, and its readers would refuse it", .0.display())]
    Unsigned(PathBuf),
    /// The destination or the tag is none.
    #[error(transparent)]
    Reference(#[from] NotReference),
    /// The destination and the option name different tags.
    #[error("the destination names the tag `{destination}`, and `--tag` names `{option}`: expected one of them")]
    TwoTags {
        /// The tag in the destination.
        destination: String,
        /// The tag of the option.
        option: String,
    },
    /// The destination names a digest.
    #[error("`{0}` names a digest, which follows from what is published: expected a tag, or neither")]
    Digest(String),
    /// A tag for a place without tags.
    #[error("`--tag` names `{0}`, and the folder of a repository for `kernels` has no tags: expected no tag")]
    NoTags(String),
    /// The folder of a repository for `kernels` holds what kforge did not write.
    #[error("`{folder}` is not replaced: {why}")]
    Foreign {
        /// The folder.
        folder: String,
        /// What it holds.
        why: String,
    },
    /// It holds another artifact.
    #[error("`{folder}` holds another artifact, {found}")]
    Taken {
        /// The folder.
        folder: String,
        /// The artifact.
        found: String,
    },
    /// The tag states another version.
    #[error("the tag `{tag}` states a version, and the package has version {version}: nobody could install it")]
    OtherVersion {
        /// The tag.
        tag: String,
        /// The version of the package.
        version: String,
    },
}

/// Publishes an artifact.
///
/// # Errors
/// [`PublishError`], the artifact is refused, or the place cannot be used.
pub fn publish(session: &Session, request: &PublishRequest) -> Result<Published, Error> {
    let place = Place::parse(&request.destination).map_err(PublishError::Reference)?;
    let (place, in_path) = split(session, place)?;
    let tag = named_tag(&place, in_path.as_ref(), request.tag.as_ref())?;
    let path = &request.artifact;
    let refused = |why| Error::from(VerifyArtifactError::Files { path: path.clone(), why });
    let files = read(&session.cwd.join(path), path).map_err(refused)?;
    let verification =
        VerifyArtifactRequest { path: path.clone(), allow_untrusted: true, ..VerifyArtifactRequest::default() };
    verify_files(session, &verification, &files)?;
    check_signature(session, request, &files)?;
    if let Place::Kernels(name) = &place {
        return kernels::publish(session, request, name, &files);
    }
    let publication = Publication::of(files)?;
    let tag = tag.unwrap_or_else(|| publication.own_tag());
    check_tag(&tag).map_err(PublishError::Reference)?;
    if !fits_tag(&publication.index.version, &tag) {
        return Err(PublishError::OtherVersion { tag, version: publication.index.version }.into());
    }
    let status = match &place {
        Place::Registry(reference) => {
            let access = if request.dry_run { Access::Pull } else { Access::PullPush };
            let remote = session.remote(reference, access, request.plain_http)?;
            session.reporter.event(&Event::Publishing(&reference.repository()));
            send(&publication, &remote, &tag, request)?
        }
        Place::Path(name) | Place::Kernels(name) => to_folder(session, &publication, name, &tag, request)?,
    };
    Ok(Published {
        destination: match &place {
            Place::Registry(reference) => reference.repository(),
            Place::Path(name) | Place::Kernels(name) => name.clone(),
        },
        tag: Some(tag),
        manifest: Some(publication.manifest()),
        signed_by: publication.signature().map(|signature| signature.key().fingerprint()),
        bytes: publication.bytes(),
        status,
        keeps_card: false,
        index: publication.index,
    })
}

/// A path apart from the tag at its end, as `install` reads it. A folder that is there under the whole text is meant as it is.
fn split(session: &Session, place: Place) -> Result<(Place, Option<String>), PublishError> {
    let Place::Path(text) = &place else { return Ok((place, None)) };
    if session.cwd.join(text).exists() {
        return Ok((place, None));
    }
    match split_path(text)? {
        (path, Version::Tag(tag)) => Ok((Place::Path(path.into()), Some(tag))),
        (_, Version::Digest(_)) => Err(PublishError::Digest(text.clone())),
        (_, Version::Newest) => Ok((place, None)),
    }
}

/// The tag that the destination or the option names.
fn named_tag(place: &Place, in_path: Option<&String>, option: Option<&String>) -> Result<Option<String>, PublishError> {
    let destination = match place {
        Place::Registry(reference) => match &reference.version {
            Version::Newest => None,
            Version::Tag(tag) => Some(tag),
            Version::Digest(_) => return Err(PublishError::Digest(reference.to_string())),
        },
        Place::Path(_) => in_path,
        Place::Kernels(_) => match option {
            Some(tag) => return Err(PublishError::NoTags(tag.clone())),
            None => None,
        },
    };
    match (destination, option) {
        (Some(destination), Some(option)) if destination != option => {
            Err(PublishError::TwoTags { destination: destination.clone(), option: option.clone() })
        }
        (destination, option) => {
            let tag = destination.or(option);
            tag.map(|tag| check_tag(tag)).transpose()?;
            Ok(tag.cloned())
        }
    }
}

/// Checks that somebody signed the artifact as one. Who may is decided by its readers.
fn check_signature(
    session: &Session,
    request: &PublishRequest,
    files: &kforge_pipeline::release::artifact::ArtifactFiles,
) -> Result<(), Error> {
    let path = &request.artifact;
    let refused = |why| Error::from(VerifyArtifactError::Files { path: path.clone(), why });
    let Some(signature) = files.signature().map_err(refused)? else {
        return match request.allow_unsigned {
            true => Ok(()),
            false => Err(PublishError::Unsigned(path.clone()).into()),
        };
    };
    let now = Timestamp::try_from(session.began).map_err(crate::session::trust::TrustError::Clock)?;
    let index = files.required(INDEX).map_err(refused)?;
    match Trust::nobody(now).judge_for(Purpose::Artifact, index, &signature) {
        Err(why) if why.why != Distrust::Unknown => {
            Err(VerifyArtifactError::Distrusted { path: path.clone(), why }.into())
        }
        _ => Ok(()),
    }
}

fn send(
    publication: &Publication,
    to: &dyn Repository,
    tag: &str,
    request: &PublishRequest,
) -> Result<Status, RegistryError> {
    match request.dry_run {
        true => publication.status(to, tag, request.replace),
        false => publication.push(to, tag, request.replace),
    }
}

fn to_folder(
    session: &Session,
    publication: &Publication,
    name: &str,
    tag: &str,
    request: &PublishRequest,
) -> Result<Status, Error> {
    let root: &Path = &session.cwd.join(name);
    Layout::check(root, name)?;
    session.reporter.event(&Event::Publishing(name));
    if request.dry_run {
        return match Layout::is_at(root) {
            true => Ok(send(publication, &Layout::open(root, name)?, tag, request)?),
            false => Ok(Status::Added),
        };
    }
    let mut blocked = || session.reporter.event(&Event::Blocked(Blocked::Folder));
    let lock = Lock::acquire(&root.join(layout::LOCK), Mode::Exclusive, session.wait(&mut blocked));
    let lock = lock.map_err(Error::lock(Blocked::Folder))?;
    let status = Layout::make(root, name).and_then(|layout| send(publication, &layout, tag, request));
    lock.remove();
    Ok(status?)
}
