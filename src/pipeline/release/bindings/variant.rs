//! What a variant folder of `kernels` says of itself: whether kforge wrote it, from which artifact, and whether it is as it was written. Knows `metadata.json`;
//! reads nothing.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// The file of a variant that lists the others with their digests.
pub const METADATA: &str = "metadata.json";

/// The artifact that a variant was made from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Origin {
    /// The package.
    pub package: String,
    /// Its version.
    pub version: String,
    /// The root digest of the artifact: `sha256:` and the digits.
    pub root: String,
}

/// Why a folder is not one that kforge wrote, or not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Foreign {
    /// Its metadata are missing, or do not say so.
    #[error("kforge did not write it")]
    Other,
    /// It has another file.
    #[error("`{0}` is not a file that kforge wrote")]
    Added(String),
    /// A file differs, or is gone.
    #[error("`{0}` was changed or removed after kforge wrote it")]
    Changed(String),
}

/// The fields of `metadata.json` by which kforge knows its own.
#[derive(Deserialize)]
struct Metadata {
    digest: Digests,
    kforge: Origin,
}

#[derive(Deserialize)]
struct Digests {
    algorithm: String,
    files: BTreeMap<String, String>,
}

/// The artifact that these files of a variant, by their names in it, were made from. `metadata.json` itself has no digest, so edits of it are not seen.
///
/// # Errors
/// [`Foreign`].
pub fn origin(files: &BTreeMap<String, Vec<u8>>) -> Result<Origin, Foreign> {
    let metadata = files.get(METADATA).ok_or(Foreign::Other)?;
    let Metadata { digest, kforge } = serde_json::from_slice(metadata).map_err(|_| Foreign::Other)?;
    if digest.algorithm != "sha256" {
        return Err(Foreign::Other);
    }
    if let Some(name) = files.keys().find(|name| *name != METADATA && !digest.files.contains_key(*name)) {
        return Err(Foreign::Added(name.clone()));
    }
    let differs = |(name, digest): &(&String, &String)| {
        files.get(*name).is_none_or(|bytes| STANDARD.encode(Sha256::digest(bytes)) != **digest)
    };
    match digest.files.iter().find(differs) {
        Some((name, _)) => Err(Foreign::Changed(name.clone())),
        None => Ok(kforge),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_folder_that_is_as_kforge_wrote_it_has_an_origin() {
        let digest = STANDARD.encode(Sha256::digest(b"a"));
        let metadata = serde_json::json!({
            "name": "p",
            "digest": { "algorithm": "sha256", "files": { "a.py": digest } },
            "kforge": { "package": "p", "version": "1.0.0", "root": "sha256:12" },
        });
        let own: BTreeMap<String, Vec<u8>> =
            [(METADATA.into(), serde_json::to_vec(&metadata).unwrap()), ("a.py".into(), b"a".to_vec())].into();
        let found = origin(&own).unwrap();
        assert_eq!((&*found.package, &*found.version, &*found.root), ("p", "1.0.0", "sha256:12"));
        let with = |name: &str, bytes: Option<&[u8]>| {
            let mut files = own.clone();
            files.remove(name);
            files.extend(bytes.map(|bytes| (name.to_string(), bytes.to_vec())));
            origin(&files)
        };
        assert_eq!(with("a.py", Some(b"b")), Err(Foreign::Changed("a.py".into())));
        assert_eq!(with("a.py", None), Err(Foreign::Changed("a.py".into())));
        assert_eq!(with("b.py", Some(b"b")), Err(Foreign::Added("b.py".into())));
        assert_eq!(with(METADATA, None), Err(Foreign::Other));
        let others = serde_json::json!({ "name": "p", "digest": metadata["digest"] });
        assert_eq!(with(METADATA, Some(&serde_json::to_vec(&others).unwrap())), Err(Foreign::Other));
    }
}
