//! Why an artifact cannot be published or fetched. Knows the conditions; no message holds a login.

use std::io;
use std::path::PathBuf;

use super::challenge::NoChallenge;
use super::credentials::CredentialsError;
use super::digest::OciDigest;
use super::manifest::ARTIFACT;
use super::reference::NotReference;
use crate::optimize::agents::ask::NotProxy;
use crate::release::artifact::ArtifactError;

/// Why an artifact cannot be published or fetched.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// A file of a folder cannot be read or written.
    #[error("cannot use `{}`: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A folder holds something else.
    #[error("`{}` holds other files: expected a new folder, an empty one, or one to which artifacts were published", .0.display())]
    NotLayout(PathBuf),
    /// A folder has a form of a later version.
    #[error("`{}` is an OCI image layout of version `{version}`: this kforge reads version 1.0.0", path.display())]
    LayoutVersion {
        /// The folder.
        path: PathBuf,
        /// Its version.
        version: String,
    },
    /// A document has another form.
    #[error("{what} does not have the form that it should have: {source}")]
    Document {
        /// The document.
        what: String,
        /// The cause.
        source: serde_json::Error,
    },
    /// Contents are of another type.
    #[error("{what} is `{found}`, expected `{expected}`: it is no artifact of kforge")]
    MediaType {
        /// The contents.
        what: String,
        /// Their type.
        found: String,
        /// The expected type.
        expected: String,
    },
    /// A manifest has another number of layers.
    #[error("{what} has {found} layers, expected one: it is no artifact of kforge")]
    Layers {
        /// The manifest.
        what: String,
        /// The number.
        found: usize,
    },
    /// Contents are too large.
    #[error("{what} is too large: expected at most {limit} bytes")]
    TooLarge {
        /// The contents.
        what: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// Contents are not those that their digest names.
    #[error("{what} has the digest {found}, expected {expected}: it was changed or damaged")]
    Changed {
        /// The contents.
        what: String,
        /// Their digest.
        found: OciDigest,
        /// The digest under which they were requested.
        expected: OciDigest,
    },
    /// Contents do not have the size that the manifest states.
    #[error("{what} has {found} bytes, and its manifest states {stated}")]
    Size {
        /// The contents.
        what: String,
        /// Their size in bytes.
        found: u64,
        /// The stated size in bytes.
        stated: u64,
    },
    /// There is no such tag.
    #[error("{place} has no tag `{tag}`")]
    NoTag {
        /// The folder or the repository.
        place: String,
        /// The tag.
        tag: String,
    },
    /// No tag is a version.
    #[error("{place} has no tag that is a version: name a tag or a digest{}", listed(.known))]
    NoVersion {
        /// The folder or the repository.
        place: String,
        /// Its tags.
        known: Vec<String>,
    },
    /// A folder lists contents, and none are an artifact of kforge with a tag.
    #[error("{place} lists {}: expected a manifest of the type `{ARTIFACT}` with a tag", shown(.found))]
    NoArtifacts {
        /// The folder.
        place: String,
        /// What it lists, in words.
        found: Vec<String>,
    },
    /// There are no such contents.
    #[error("{place} does not hold {digest}")]
    Missing {
        /// The folder or the repository.
        place: String,
        /// The digest.
        digest: OciDigest,
    },
    /// A tag names another artifact.
    #[error("the tag `{tag}` in {place} names another artifact ({found})")]
    Taken {
        /// The folder or the repository.
        place: String,
        /// The tag.
        tag: String,
        /// The digest of the manifest that it names.
        found: OciDigest,
    },
    /// Another client overwrote the list of signatures each time.
    #[error(
        "{place} does not keep the signature: other clients write the list of signatures at the same time; try again"
    )]
    Contended {
        /// The repository.
        place: String,
    },
    /// The archive or the files are not those of an artifact.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// The text of a reference is wrong.
    #[error(transparent)]
    Reference(#[from] NotReference),
    /// The logins of Docker cannot be read.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The proxy of the environment cannot be used.
    #[error(transparent)]
    Proxy(#[from] NotProxy),
    /// Requests would go over a network in plain text.
    #[error("`{0}` would be reached in plain text: expected `https://`, or an address of this machine")]
    Plain(String),
    /// A login would go over a network in plain text.
    #[error("a login would go to `{0}` in plain text: kforge sends logins only by https, or to this machine")]
    PlainLogin(String),
    /// The registry cannot be reached, or does not answer as a registry.
    #[error("cannot {what} at `{host}`: {why}")]
    Unreachable {
        /// What was requested.
        what: String,
        /// The host.
        host: String,
        /// The cause.
        why: String,
    },
    /// The registry refuses a request.
    #[error("`{host}` refuses to {what}: status {status}{}", after_colon(.message))]
    Status {
        /// What was requested.
        what: String,
        /// The host.
        host: String,
        /// The status of HTTP.
        status: u16,
        /// What the registry says, without logins.
        message: String,
    },
    /// The registry demands a login, or the login does not suffice.
    #[error("`{host}` does not permit to {what}: {login}{}", after_colon(.message))]
    Denied {
        /// What was requested.
        what: String,
        /// The host.
        host: String,
        /// Which login was used.
        login: UsedLogin,
        /// What the registry says, without logins.
        message: String,
    },
    /// The registry demands a login of a kind that kforge does not know.
    #[error("`{host}` demands a login that kforge cannot make: {why}")]
    Challenge {
        /// The host.
        host: String,
        /// The cause.
        why: NoChallenge,
    },
    /// The registry sends the client to a place that it does not go to.
    #[error("`{host}` redirects to a place that kforge does not follow: {why}")]
    Redirect {
        /// The host.
        host: String,
        /// The reason.
        why: &'static str,
    },
    /// The registry lacks something that the protocol demands.
    #[error("`{host}` does not answer as a registry: {why}")]
    Protocol {
        /// The host.
        host: String,
        /// What is wrong.
        why: &'static str,
    },
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
}

/// The login with which a request was made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UsedLogin {
    /// There is none for the host.
    #[error("there is no login for it; `docker login {0}` adds one")]
    None(String),
    /// The program that keeps logins gave none.
    #[error("`{helper}` gave no login for it ({end})")]
    Helper {
        /// The program.
        helper: String,
        /// How it ended.
        end: String,
    },
    /// The login of a file or a helper.
    #[error("the login in {0} does not suffice")]
    Kept(String),
}

fn after_colon(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

/// The tags that a message lists.
fn listed(known: &[String]) -> String {
    let tags: Vec<String> = known.iter().map(|tag| format!("`{tag}`")).collect();
    if tags.is_empty() { "; it has no tags".into() } else { format!("; there are {}", shown(&tags)) }
}

/// The first of many names, and the number of the others.
fn shown(names: &[String]) -> String {
    const MOST: usize = 12;
    let more = if names.len() > MOST { format!(" and {} more", names.len() - MOST) } else { String::new() };
    format!("{}{more}", names.iter().take(MOST).cloned().collect::<Vec<_>>().join(", "))
}
