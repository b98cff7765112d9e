//! The files of an artifact by name, and the index that names each with its digests. Knows names and digests, and which files have code without evidence; does
//! not know what the files mean otherwise.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{ArtifactError, BINARIES, FATBIN_ENDING, INDEX, INDEX_SIGNATURE, PTX_ENDING};
use crate::release::signature::Signature;
use kforge_foundation::base::Digest;
use kforge_types::record::fatbin::holds_ptx;

/// The version of the index.
pub const FORMAT_VERSION: u32 = 1;

/// The longest name in bytes: what a header of a ustar archive holds, split at a `/`.
const LONGEST: usize = 255;

/// The largest artifact in bytes.
pub const LIMIT: u64 = 1 << 30;

/// `kforge-artifact.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// Version of this format.
    pub format_version: u32,
    /// Version of kforge that packed it.
    pub kforge: String,
    /// The package.
    pub package: String,
    /// Its version.
    pub version: String,
    /// Its licence, as an SPDX expression.
    pub license: String,
    /// `sha256:` and the SHA-256 of the lines `SHA256  NAME` of all files, in order.
    pub root: String,
    /// Every file but the index and its signature, sorted by name.
    pub files: Vec<FileEntry>,
}

/// A file of an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Its name, with `/`.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its SHA-256 in hexadecimal digits.
    pub sha256: String,
    /// Its BLAKE3 hash in hexadecimal digits.
    pub blake3: String,
    /// True for a file with code that no evidence is about: PTX, or a fatbin with PTX in it. A driver makes other machine code of PTX than what was verified.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_evidence: bool,
}

/// Whether a file of an artifact is PTX.
pub fn is_ptx(name: &str) -> bool {
    is_binary(name, PTX_ENDING)
}

/// Whether a file of an artifact is a fatbin.
pub fn is_fatbin(name: &str) -> bool {
    is_binary(name, FATBIN_ENDING)
}

fn is_binary(name: &str, ending: &str) -> bool {
    name.strip_prefix(BINARIES).is_some_and(|rest| rest.starts_with('/')) && name.ends_with(ending)
}

/// Whether a file of an artifact has code that no evidence is about: PTX, alone or in a fatbin.
pub fn lacks_evidence(name: &str, bytes: &[u8]) -> bool {
    is_ptx(name) || (is_fatbin(name) && holds_ptx(bytes))
}

/// What an index says about a package, besides its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageIdentity {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its licence.
    pub license: String,
}

/// The files of an artifact, with the index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArtifactFiles(BTreeMap<String, Vec<u8>>);

/// The SHA-256 of bytes in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Whether a file of an artifact can have this name.
fn is_name(name: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part != "." && part != "..";
    name.len() <= LONGEST && name.split('/').all(is_part) && !name.chars().any(|c| c.is_control() || c == '\\')
}

/// The root of listed files.
fn root(files: &[FileEntry]) -> String {
    let lines: String = files.iter().map(|file| format!("{}  {}\n", file.sha256, file.name)).collect();
    format!("sha256:{}", sha256(lines.as_bytes()))
}

impl ArtifactFiles {
    /// Files without an index. Fails if a name cannot be one of an artifact.
    ///
    /// # Errors
    /// [`ArtifactError::Name`] or [`ArtifactError::TooLarge`].
    pub fn new(files: BTreeMap<String, Vec<u8>>) -> Result<Self, ArtifactError> {
        if let Some(name) = files.keys().find(|name| !is_name(name)) {
            return Err(ArtifactError::Name(name.clone()));
        }
        let parents = |name: &str| name.match_indices('/').map(|(at, _)| name[..at].to_string()).collect::<Vec<_>>();
        if let Some(name) = files.keys().find(|name| parents(name).iter().any(|parent| files.contains_key(parent))) {
            return Err(ArtifactError::Name(name.clone()));
        }
        match files.values().map(|bytes| bytes.len() as u64).sum::<u64>() > LIMIT {
            true => Err(ArtifactError::TooLarge { limit: LIMIT }),
            false => Ok(ArtifactFiles(files)),
        }
    }

    /// All files by name.
    pub fn all(&self) -> &BTreeMap<String, Vec<u8>> {
        &self.0
    }

    /// The contents of a file.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.get(name).map(Vec::as_slice)
    }

    /// The contents of a file that every artifact has.
    ///
    /// # Errors
    /// [`ArtifactError::Missing`].
    pub fn required(&self, name: &str) -> Result<&[u8], ArtifactError> {
        self.get(name).ok_or_else(|| ArtifactError::Missing(name.into()))
    }

    /// The same files with an index of them.
    ///
    /// # Errors
    /// The index cannot be written.
    pub fn indexed(mut self, package: PackageIdentity) -> Result<Self, ArtifactError> {
        self.0.remove(INDEX);
        self.0.remove(INDEX_SIGNATURE);
        let entry = |(name, bytes): (&String, &Vec<u8>)| FileEntry {
            name: name.clone(),
            size: bytes.len() as u64,
            sha256: sha256(bytes),
            blake3: Digest::of(bytes).hex(),
            without_evidence: lacks_evidence(name, bytes),
        };
        let files: Vec<FileEntry> = self.0.iter().map(entry).collect();
        let PackageIdentity { name, version, license } = package;
        let index = Index {
            format_version: FORMAT_VERSION,
            kforge: env!("CARGO_PKG_VERSION").into(),
            package: name,
            version,
            license,
            root: root(&files),
            files,
        };
        self.0.insert(INDEX.into(), document(&index)?);
        Ok(self)
    }

    /// The same files with a signature of the index.
    pub fn signed(mut self, signature: &Signature) -> Self {
        self.0.insert(INDEX_SIGNATURE.into(), signature.text().as_bytes().to_vec());
        self
    }

    /// The same files without a signature.
    #[must_use]
    pub fn unsigned(mut self) -> Self {
        self.0.remove(INDEX_SIGNATURE);
        self
    }

    /// The signature of the index, which may be by anybody; none if there is none.
    ///
    /// # Errors
    /// The file holds something else.
    pub fn signature(&self) -> Result<Option<Signature>, ArtifactError> {
        let Some(bytes) = self.get(INDEX_SIGNATURE) else { return Ok(None) };
        Signature::parse(&String::from_utf8_lossy(bytes)).map(Some).map_err(ArtifactError::Signature)
    }

    /// The index, after every file was compared with it.
    ///
    /// # Errors
    /// A file is missing, changed or not listed, or the index is not one of this format.
    pub fn index(&self) -> Result<Index, ArtifactError> {
        let index: Index = parse(INDEX, FORMAT_VERSION, self.required(INDEX)?)?;
        for entry in &index.files {
            let bytes = self.get(&entry.name).ok_or_else(|| ArtifactError::NotThere(entry.name.clone()))?;
            let changed = |what, found: String, listed: &str| ArtifactError::Changed {
                name: entry.name.clone(),
                what,
                found,
                listed: listed.into(),
            };
            if bytes.len() as u64 != entry.size {
                return Err(changed("size in bytes", bytes.len().to_string(), &entry.size.to_string()));
            }
            let (sha256, blake3) = (sha256(bytes), Digest::of(bytes).hex());
            if sha256 != entry.sha256 {
                return Err(changed("SHA-256", sha256, &entry.sha256));
            }
            if blake3 != entry.blake3 {
                return Err(changed("BLAKE3 hash", blake3, &entry.blake3));
            }
            let lacks = lacks_evidence(&entry.name, bytes);
            if lacks != entry.without_evidence {
                let listed = entry.without_evidence.to_string();
                return Err(changed("mark `without_evidence`", lacks.to_string(), &listed));
            }
        }
        let own = |name: &str| name == INDEX || name == INDEX_SIGNATURE;
        let listed = |name: &str| index.files.iter().any(|entry| entry.name == name);
        if let Some(name) = self.0.keys().find(|name| !own(name) && !listed(name)) {
            return Err(ArtifactError::NotListed(name.clone()));
        }
        let expected = root(&index.files);
        match index.root == expected && index.files.is_sorted_by(|a, b| a.name < b.name) {
            true => Ok(index),
            false => Err(ArtifactError::Root(expected)),
        }
    }
}

/// A document as a file: JSON on one line. Indented, the documents of an artifact would be half as large again.
///
/// # Errors
/// It has no JSON form.
pub fn document(value: &impl Serialize) -> Result<Vec<u8>, ArtifactError> {
    let mut bytes = serde_json::to_vec(value).map_err(ArtifactError::Encode)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Reads a document of this version, in the text that [`document`] writes.
///
/// # Errors
/// It is of another version, form or text.
pub fn parse<T: serde::de::DeserializeOwned + Serialize>(
    name: &'static str,
    known: u32,
    bytes: &[u8],
) -> Result<T, ArtifactError> {
    #[derive(Deserialize)]
    struct Versioned {
        format_version: u64,
    }
    let schema = |source| ArtifactError::Schema { name, source };
    let Versioned { format_version: version } = serde_json::from_slice(bytes).map_err(schema)?;
    if version != u64::from(known) {
        return Err(ArtifactError::Version { name, version, known });
    }
    let parsed: T = serde_json::from_slice(bytes).map_err(schema)?;
    // Another text of the same value could repeat a key, and readers would not agree which value counts.
    match document(&parsed)? == bytes {
        true => Ok(parsed),
        false => Err(ArtifactError::OtherText(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> BTreeMap<String, Vec<u8>> {
        [("b/two", "2"), ("a", "1")].map(|(name, text)| (name.to_string(), text.as_bytes().to_vec())).into()
    }

    fn indexed() -> ArtifactFiles {
        let package = PackageIdentity { name: "p".into(), version: "1.0.0".into(), license: "MIT".into() };
        ArtifactFiles::new(files()).unwrap().indexed(package).unwrap()
    }

    #[test]
    fn the_root_is_what_sha256sum_gives() {
        let index = indexed().index().unwrap();
        let lines = "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b  a\n\
                     d4735e3a265e16eee03f59718b9b5d03019c07d8b6c51f90da3a666eec13ab35  b/two\n";
        assert_eq!(index.root, format!("sha256:{}", sha256(lines.as_bytes())));
    }

    #[test]
    fn whatever_changes_in_a_file_or_in_the_list_is_refused() {
        type Change = fn(&mut BTreeMap<String, Vec<u8>>);
        let refused = |change: Change| {
            let mut all = indexed().0;
            change(&mut all);
            ArtifactFiles(all).index().unwrap_err()
        };
        let edit = |all: &mut BTreeMap<String, Vec<u8>>, from: &str, to: &str| {
            let text = String::from_utf8(all[INDEX].clone()).unwrap();
            assert!(text.contains(from), "{text}");
            all.insert(INDEX.into(), text.replacen(from, to, 1).into_bytes());
        };
        assert!(matches!(
            refused(|all| drop(all.insert("a".into(), b"3".to_vec()))),
            ArtifactError::Changed { what: "SHA-256", .. }
        ));
        assert!(matches!(
            refused(|all| drop(all.insert("a".into(), b"13".to_vec()))),
            ArtifactError::Changed { what: "size in bytes", .. }
        ));
        assert!(matches!(refused(|all| drop(all.remove("a"))), ArtifactError::NotThere(name) if name == "a"));
        assert!(
            matches!(refused(|all| drop(all.insert("c".into(), vec![]))), ArtifactError::NotListed(name) if name == "c")
        );
        assert!(matches!(refused(|all| drop(all.remove(INDEX))), ArtifactError::Missing(_)));
        let rewritten = |from: &str, to: &str| {
            let mut all = indexed().0;
            edit(&mut all, from, to);
            ArtifactFiles(all).index().unwrap_err()
        };
        assert!(matches!(
            rewritten("\"format_version\":1", "\"format_version\":2"),
            ArtifactError::Version { version: 2, .. }
        ));
        assert!(matches!(rewritten("\"root\":\"sha256:", "\"root\":\"sha256:0"), ArtifactError::Root(_)));
        assert!(matches!(
            rewritten("\"license\":\"MIT\"", "\"license\":\"MIT\",\"more\":1"),
            ArtifactError::Schema { .. }
        ));
    }

    #[test]
    fn names_that_leave_the_folder_or_do_not_fit_are_refused() {
        let long = "n".repeat(256);
        for name in ["../a", "/a", "a//b", "a/./b", "a\n", "a\\b", "", long.as_str()] {
            let files = BTreeMap::from([(name.to_string(), vec![])]);
            assert!(matches!(ArtifactFiles::new(files), Err(ArtifactError::Name(_))), "{name:?}");
        }
        // A file that is also a folder.
        let both = BTreeMap::from([("a".to_string(), vec![]), ("a/b".to_string(), vec![])]);
        assert!(matches!(ArtifactFiles::new(both), Err(ArtifactError::Name(name)) if name == "a/b"));
    }
}
