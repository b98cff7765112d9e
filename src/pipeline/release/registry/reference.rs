//! The places that people name: `oci://HOST[:PORT]/NAME[:TAG][@DIGEST]`, or a folder. Knows texts; does not know what is there.

use std::fmt;
use std::str::FromStr;

use super::digest::OciDigest;
use crate::optimize::agents::ask::is_here;

/// The scheme of registries.
pub const SCHEME: &str = "oci://";

/// A repository of a registry, and optionally one of its artifacts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The host in lower case, with its port if the text has one.
    pub host: String,
    /// The name of the repository, such as `team/norms`.
    pub name: String,
    /// The artifact.
    pub version: Version,
}

/// Which artifact of a repository is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Version {
    /// The greatest version among the tags.
    Newest,
    /// The artifact with this tag.
    Tag(String),
    /// The artifact whose manifest has this digest.
    Digest(OciDigest),
}

/// A place that a user named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A registry.
    Registry(Reference),
    /// A path, as it was named.
    Path(String),
    /// The folder of a repository that Hugging Face `kernels` loads, as it was named.
    Kernels(String),
}

/// A text is not a reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotReference {
    /// It has another scheme.
    #[error(
        "`{0}` has a scheme that kforge does not know: expected a folder or `oci://HOST/NAME`, or to publish `kernels://FOLDER`"
    )]
    Scheme(String),
    /// The folder is missing.
    #[error("`{0}` names no folder: expected `kernels://FOLDER`")]
    Folder(String),
    /// Nothing can be installed from there.
    #[error(
        "`{0}` is a place to publish to, from which `kernels` loads: expected a folder or `oci://HOST/NAME` to install from"
    )]
    Kernels(String),
    /// The host is wrong.
    #[error("`{0}` names no host: expected `oci://HOST/NAME` or `oci://HOST:PORT/NAME`")]
    Host(String),
    /// The name is wrong.
    #[error(
        "`{0}` has no name that a registry accepts: expected lower-case letters, digits, `.`, `_`, `-` and `/`, such as `oci://HOST/team/norms`"
    )]
    Name(String),
    /// The tag is wrong.
    #[error("`{0}` is not a tag: expected at most 128 letters, digits, `_`, `.` and `-`")]
    Tag(String),
    /// The tag is one of those that list referrers.
    #[error("`{0}` is not a tag for an artifact: registries list the signatures of artifacts under such names")]
    Reserved(String),
    /// The digest is wrong.
    #[error(transparent)]
    Digest(#[from] super::digest::NotOciDigest),
    /// It has both a tag and a digest.
    #[error("`{0}` names both a tag and a digest: expected one of them")]
    Both(String),
}

impl Place {
    /// The place in a text.
    ///
    /// # Errors
    /// It has a scheme and is not a reference.
    pub fn parse(text: &str) -> Result<Place, NotReference> {
        match text.split_once("://") {
            Some(("oci", _)) => text.parse().map(Place::Registry),
            Some(("kernels", "")) => Err(NotReference::Folder(text.into())),
            Some(("kernels", folder)) => Ok(Place::Kernels(folder.into())),
            Some((scheme, _)) if !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric()) => {
                Err(NotReference::Scheme(text.into()))
            }
            _ => Ok(Place::Path(text.into())),
        }
    }
}

/// Splits a path into the path itself and the artifact that a suffix `:TAG` or `@sha256:HEX` names, if it has one.
///
/// # Errors
/// The suffix begins as a digest and is none.
pub fn split_path(text: &str) -> Result<(&str, Version), NotReference> {
    if let Some((path, digest)) = text.rsplit_once('@').filter(|(_, digest)| digest.starts_with("sha256:")) {
        return Ok((path, Version::Digest(digest.parse()?)));
    }
    match text.rsplit_once(':').filter(|(_, tag)| is_tag(tag)) {
        Some((path, tag)) => Ok((path, Version::Tag(tag.into()))),
        None => Ok((text, Version::Newest)),
    }
}

/// Checks that an artifact can have this tag.
///
/// # Errors
/// It cannot.
pub fn check_tag(tag: &str) -> Result<(), NotReference> {
    let is_reserved = tag.strip_prefix("sha256-").is_some_and(|rest| rest.len() == 64);
    match (is_tag(tag), is_reserved) {
        (true, false) => Ok(()),
        (true, true) => Err(NotReference::Reserved(tag.into())),
        (false, _) => Err(NotReference::Tag(tag.into())),
    }
}

fn is_tag(tag: &str) -> bool {
    let (first, rest) = (tag.bytes().next(), tag.bytes().skip(1));
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    tag.len() <= 128 && first.is_some_and(is_word) && rest.into_iter().all(|b| is_word(b) || b == b'.' || b == b'-')
}

/// Whether a repository can have this name: parts of lower-case letters and digits, joined within by `.`, `_`, `__` or any number of `-`.
fn is_name(name: &str) -> bool {
    let is_part = |part: &str| {
        let words: Vec<&str> = part.split(['.', '_', '-']).collect();
        let is_word = |word: &&str| word.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9'));
        let ends = [words.first(), words.last()].iter().all(|word| word.is_some_and(|word| !word.is_empty()));
        // An empty word stands between two separators, which only `__` and `--` are.
        ends && words.iter().all(is_word)
            && ["..", "___", "._", "_.", ".-", "-.", "_-", "-_"].iter().all(|s| !part.contains(s))
    };
    !name.is_empty() && name.len() <= 255 && name.split('/').all(is_part)
}

/// Whether a text is a host with an optional port. A user's name before the host is no part of one.
fn is_host(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => match address.parse::<std::net::Ipv6Addr>() {
            Ok(_) => ("v6", port.strip_prefix(':').or((!port.is_empty()).then_some("?"))),
            Err(_) => return false,
        },
        None => host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port))),
    };
    let is_label = |label: &str| {
        let inner = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
        !label.is_empty() && !label.starts_with('-') && !label.ends_with('-') && label.bytes().all(inner)
    };
    let is_port =
        |port: &str| port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0);
    name.len() <= 253 && name.split('.').all(is_label) && port.is_none_or(is_port)
}

impl Reference {
    /// The address without tag and digest.
    pub fn repository(&self) -> String {
        format!("{SCHEME}{}/{}", self.host, self.name)
    }

    /// The same, but one text for all addresses of one repository: without a port that is the usual one of its host, and Docker's registry under one name.
    pub fn identity(&self) -> String {
        let usual = if is_here(&Reference::host_name(&self.host)) { ":80" } else { ":443" };
        let host = self.host.strip_suffix(usual).unwrap_or(&self.host);
        let host = if matches!(host, "index.docker.io" | "registry-1.docker.io") { "docker.io" } else { host };
        format!("{SCHEME}{host}/{}", self.name)
    }

    /// A host without its port.
    fn host_name(host: &str) -> String {
        match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name.into(),
            _ => host.into(),
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.repository())?;
        match &self.version {
            Version::Newest => Ok(()),
            Version::Tag(tag) => write!(f, ":{tag}"),
            Version::Digest(digest) => write!(f, "@{digest}"),
        }
    }
}

impl FromStr for Reference {
    type Err = NotReference;

    fn from_str(text: &str) -> Result<Self, NotReference> {
        let rest = text.strip_prefix(SCHEME).ok_or_else(|| NotReference::Scheme(text.into()))?;
        let (host, rest) = rest.split_once('/').unwrap_or((rest, ""));
        let host = host.to_ascii_lowercase();
        if !is_host(&host) {
            return Err(NotReference::Host(text.into()));
        }
        let (rest, digest) = match rest.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest.parse::<OciDigest>()?)),
            None => (rest, None),
        };
        let (name, tag) = rest.split_once(':').map_or((rest, None), |(name, tag)| (name, Some(tag)));
        if !is_name(name) {
            return Err(NotReference::Name(text.into()));
        }
        let version = match (tag, digest) {
            (None, None) => Version::Newest,
            (Some(tag), None) => {
                check_tag(tag)?;
                Version::Tag(tag.into())
            }
            (None, Some(digest)) => Version::Digest(digest),
            (Some(_), Some(_)) => return Err(NotReference::Both(text.into())),
        };
        Ok(Reference { host, name: name.into(), version })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_and_written_back() {
        let digest = OciDigest::of(b"x");
        for (text, host, name, version) in [
            ("oci://a.b/c".to_string(), "a.b", "c", Version::Newest),
            ("oci://LocalHost:5000/c/d-e__f.g".into(), "localhost:5000", "c/d-e__f.g", Version::Newest),
            ("oci://[::1]:5000/c:1.2.3".into(), "[::1]:5000", "c", Version::Tag("1.2.3".into())),
            (format!("oci://127.0.0.1/c@{digest}"), "127.0.0.1", "c", Version::Digest(digest.clone())),
        ] {
            let found: Reference = text.parse().unwrap();
            assert_eq!(found, Reference { host: host.into(), name: name.into(), version }, "{text}");
            assert_eq!(found.to_string(), text.to_lowercase());
        }
    }

    #[test]
    fn what_is_wrong_in_a_reference_is_named() {
        let of = |text: &str| text.parse::<Reference>().unwrap_err();
        for text in [
            "oci:///c",
            "oci://a b/c",
            "oci://user@a.b/c",
            "oci://a.b:0/c",
            "oci://a.b:x/c",
            "oci://-a/c",
            "oci://[::1/c",
        ] {
            assert_eq!(of(text), NotReference::Host(text.into()));
        }
        for text in [
            "oci://a.b",
            "oci://a.b/",
            "oci://a.b/C",
            "oci://a.b/../c",
            "oci://a.b/c//d",
            "oci://a.b/c?x",
            "oci://a.b/-c",
        ] {
            assert_eq!(of(text), NotReference::Name(text.into()));
        }
        assert_eq!(of("oci://a.b/c:"), NotReference::Tag(String::new()));
        assert_eq!(of("oci://a.b/c:-x"), NotReference::Tag("-x".into()));
        assert!(matches!(of("oci://a.b/c@sha256:12"), NotReference::Digest(_)));
        let both = format!("oci://a.b/c:1@{}", OciDigest::of(b""));
        assert_eq!(of(&both), NotReference::Both(both.clone()));
        let reserved = OciDigest::of(b"").fallback_tag();
        assert_eq!(of(&format!("oci://a.b/c:{reserved}")), NotReference::Reserved(reserved));
    }

    #[test]
    fn what_has_no_scheme_is_a_path_and_other_schemes_are_refused() {
        assert_eq!(Place::parse("out/of:this"), Ok(Place::Path("out/of:this".into())));
        assert!(matches!(Place::parse("oci://a.b/c"), Ok(Place::Registry(_))));
        assert_eq!(Place::parse("kernels://../a"), Ok(Place::Kernels("../a".into())));
        assert_eq!(Place::parse("kernels:1.0"), Ok(Place::Path("kernels:1.0".into())));
        assert_eq!(Place::parse("kernels://"), Err(NotReference::Folder("kernels://".into())));
        assert!(matches!(Place::parse("https://a.b/c"), Err(NotReference::Scheme(_))));
    }

    #[test]
    fn a_path_can_end_with_a_tag_or_a_digest() {
        let digest = OciDigest::of(b"x");
        assert_eq!(split_path("a/b:1.0.0"), Ok(("a/b", Version::Tag("1.0.0".into()))));
        assert_eq!(split_path("a/b"), Ok(("a/b", Version::Newest)));
        assert_eq!(split_path("a:b/c"), Ok(("a:b/c", Version::Newest)), "a tag has no `/`");
        assert_eq!(split_path(&format!("a/b@{digest}")), Ok(("a/b", Version::Digest(digest))));
        assert!(split_path("a/b@sha256:1").is_err());
    }
}
