//! The manifests of artifacts and of their signatures, as the OCI image specification 1.1 writes them. Knows JSON and its conditions; reads no file and asks
//! nobody.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::digest::OciDigest;
use super::error::RegistryError;
use crate::release::artifact::files::LIMIT;
use crate::release::artifact::{INDEX_SIGNATURE, Index, tar};

/// The type of artifacts.
pub const ARTIFACT: &str = "application/vnd.kforge.package.v1";
/// The type of an artifact's archive.
pub const ARCHIVE: &str = "application/vnd.kforge.package.v1.tar";
/// The type of signatures, as a manifest and as its only layer.
pub const SIGNATURE: &str = "application/vnd.kforge.signature.v1";
/// The type of manifests.
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// The type of lists of manifests.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// The type of the configuration that says nothing.
pub const EMPTY: &str = "application/vnd.oci.empty.v1+json";
/// The configuration that says nothing.
pub const EMPTY_BYTES: &[u8] = b"{}";

/// The annotation with the root of an artifact.
pub const ROOT: &str = "dev.kforge.root";
/// The annotation with a tag, in the list of a folder.
pub const REF_NAME: &str = "org.opencontainers.image.ref.name";
const TITLE: &str = "org.opencontainers.image.title";
const VERSION: &str = "org.opencontainers.image.version";
const LICENSES: &str = "org.opencontainers.image.licenses";

/// The largest manifest, or list of manifests, in bytes. The specification asks registries to take 4 MiB.
pub const LARGEST: u64 = 4 << 20;
/// The largest signature in bytes.
pub const LARGEST_SIGNATURE: u64 = 64 << 10;

/// What a manifest says about other contents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// Their type.
    pub media_type: String,
    /// Their digest.
    pub digest: OciDigest,
    /// Their size in bytes.
    pub size: u64,
    /// The type of the artifact, if they are its manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// Further properties.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// What kforge does not read. It is kept, because others may have written it.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

impl Descriptor {
    /// The descriptor of these bytes.
    pub fn of(media_type: &str, bytes: &[u8]) -> Descriptor {
        Descriptor {
            media_type: media_type.into(),
            digest: OciDigest::of(bytes),
            size: bytes.len() as u64,
            artifact_type: None,
            annotations: BTreeMap::new(),
            other: BTreeMap::new(),
        }
    }

    /// The same with an annotation.
    fn with(mut self, name: &str, value: &str) -> Descriptor {
        self.annotations.insert(name.into(), value.into());
        self
    }
}

/// The manifest of an artifact or of a signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Always 2.
    pub schema_version: u32,
    /// [`MANIFEST`].
    pub media_type: String,
    /// [`ARTIFACT`] or [`SIGNATURE`].
    pub artifact_type: String,
    /// The configuration, which says nothing.
    pub config: Descriptor,
    /// The archive, or the signature.
    pub layers: Vec<Descriptor>,
    /// What a signature is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    /// Further properties.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// A list of manifests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageIndex {
    /// Always 2.
    pub schema_version: u32,
    /// [`INDEX`], which folders may leave out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The manifests.
    pub manifests: Vec<Descriptor>,
    /// What kforge does not read, and keeps.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

impl Default for ImageIndex {
    fn default() -> Self {
        ImageIndex { schema_version: 2, media_type: Some(INDEX.into()), manifests: vec![], other: BTreeMap::new() }
    }
}

/// What decides how the rest of a document is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Typed {
    schema_version: u64,
    #[serde(default)]
    media_type: Option<String>,
    #[serde(default)]
    artifact_type: Option<String>,
}

impl Manifest {
    /// The manifest of an artifact with this archive.
    pub fn of_artifact(index: &Index, archive: &[u8]) -> Manifest {
        let title = format!("{}-{}.{}", index.package, index.version, tar::EXTENSION);
        let of = [(TITLE, &index.package), (VERSION, &index.version), (LICENSES, &index.license), (ROOT, &index.root)];
        Manifest {
            layers: vec![Descriptor::of(ARCHIVE, archive).with(TITLE, &title)],
            annotations: of.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
            ..Manifest::empty(ARTIFACT)
        }
    }

    /// The manifest of a signature of what `subject` names.
    pub fn of_signature(subject: &Descriptor, signature: &[u8]) -> Manifest {
        Manifest {
            layers: vec![Descriptor::of(SIGNATURE, signature).with(TITLE, INDEX_SIGNATURE)],
            subject: Some(Descriptor { annotations: BTreeMap::new(), ..subject.clone() }),
            ..Manifest::empty(SIGNATURE)
        }
    }

    fn empty(artifact_type: &str) -> Manifest {
        Manifest {
            schema_version: 2,
            media_type: MANIFEST.into(),
            artifact_type: artifact_type.into(),
            config: Descriptor::of(EMPTY, EMPTY_BYTES),
            layers: vec![],
            subject: None,
            annotations: BTreeMap::new(),
        }
    }

    /// Reads the manifest of an artifact.
    ///
    /// # Errors
    /// It is the manifest of something else, or has another form.
    pub fn artifact(what: &str, bytes: &[u8]) -> Result<Manifest, RegistryError> {
        Manifest::read(what, bytes, ARTIFACT, ARCHIVE, LIMIT)
    }

    /// Reads the manifest of a signature.
    ///
    /// # Errors
    /// It is the manifest of something else, or has another form.
    pub fn signature(what: &str, bytes: &[u8]) -> Result<Manifest, RegistryError> {
        Manifest::read(what, bytes, SIGNATURE, SIGNATURE, LARGEST_SIGNATURE)
    }

    fn read(what: &str, bytes: &[u8], of: &str, layer: &str, limit: u64) -> Result<Manifest, RegistryError> {
        typed(what, bytes, MANIFEST, Some(of))?;
        let manifest: Manifest = parse(what, bytes)?;
        let [only] = &manifest.layers[..] else {
            return Err(RegistryError::Layers { what: what.into(), found: manifest.layers.len() });
        };
        if only.media_type != layer {
            return Err(RegistryError::MediaType {
                what: format!("the layer of {what}"),
                found: only.media_type.escape_default().to_string(),
                expected: layer.into(),
            });
        }
        match only.size > limit {
            true => Err(RegistryError::TooLarge { what: format!("the layer of {what}"), limit }),
            false => Ok(manifest),
        }
    }

    /// The only layer.
    ///
    /// # Panics
    /// Never for a manifest that this module made or read.
    pub fn layer(&self) -> &Descriptor {
        self.layers.first().expect("BUG: a manifest that was made or read here has one layer")
    }

    /// The bytes of the manifest, and what names them.
    pub fn encode(&self) -> (Descriptor, Vec<u8>) {
        let bytes = encoded(self);
        let artifact_type = Some(self.artifact_type.clone());
        (Descriptor { artifact_type, ..Descriptor::of(MANIFEST, &bytes) }, bytes)
    }
}

impl ImageIndex {
    /// Reads a list of manifests.
    ///
    /// # Errors
    /// It is something else.
    pub fn read(what: &str, bytes: &[u8]) -> Result<ImageIndex, RegistryError> {
        typed(what, bytes, INDEX, None)?;
        parse(what, bytes)
    }

    /// The bytes of the list.
    pub fn encode(&self) -> Vec<u8> {
        encoded(self)
    }
}

/// Checks what a document says that it is, before its fields are read.
fn typed(what: &str, bytes: &[u8], media_type: &str, artifact_type: Option<&str>) -> Result<(), RegistryError> {
    if bytes.len() as u64 > LARGEST {
        return Err(RegistryError::TooLarge { what: what.into(), limit: LARGEST });
    }
    let typed: Typed = parse(what, bytes)?;
    let other = |found: Option<String>, expected: &str| RegistryError::MediaType {
        what: what.into(),
        found: found.map_or_else(|| "nothing".into(), |found| found.escape_default().to_string()),
        expected: expected.into(),
    };
    if typed.schema_version != 2 {
        return Err(other(Some(format!("schema version {}", typed.schema_version)), "schema version 2"));
    }
    // A list may leave its type out; a manifest must have one.
    let is_typed = typed.media_type.as_deref().map_or(artifact_type.is_none(), |found| found == media_type);
    if !is_typed {
        return Err(other(typed.media_type, media_type));
    }
    match artifact_type {
        Some(expected) if typed.artifact_type.as_deref() != Some(expected) => Err(other(typed.artifact_type, expected)),
        _ => Ok(()),
    }
}

fn parse<T: serde::de::DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, RegistryError> {
    serde_json::from_slice(bytes).map_err(|source| RegistryError::Document { what: what.into(), source })
}

fn encoded(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("BUG: a manifest holds texts and numbers, which JSON can say")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index() -> Index {
        Index {
            format_version: 1,
            kforge: "0.1.0".into(),
            package: "p".into(),
            version: "1.2.3".into(),
            license: "MIT".into(),
            root: "sha256:00".into(),
            files: vec![],
        }
    }

    #[test]
    fn a_manifest_has_the_form_that_registries_expect() {
        let (descriptor, bytes) = Manifest::of_artifact(&index(), b"tar").encode();
        assert_eq!(
            String::from_utf8(bytes.clone()).unwrap(),
            "{\"schemaVersion\":2,\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\",\
             \"artifactType\":\"application/vnd.kforge.package.v1\",\
             \"config\":{\"mediaType\":\"application/vnd.oci.empty.v1+json\",\
             \"digest\":\"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a\",\"size\":2},\
             \"layers\":[{\"mediaType\":\"application/vnd.kforge.package.v1.tar\",\
             \"digest\":\"sha256:1b57a3cf0cc72c97d437f8bc53dc7f69a357546b1d64af9a6ec7b2ba58b3e8d7\",\"size\":3,\
             \"annotations\":{\"org.opencontainers.image.title\":\"p-1.2.3.tar\"}}],\
             \"annotations\":{\"dev.kforge.root\":\"sha256:00\",\"org.opencontainers.image.licenses\":\"MIT\",\
             \"org.opencontainers.image.title\":\"p\",\"org.opencontainers.image.version\":\"1.2.3\"}}"
                .replace(
                    "1b57a3cf0cc72c97d437f8bc53dc7f69a357546b1d64af9a6ec7b2ba58b3e8d7",
                    OciDigest::of(b"tar").hex()
                )
        );
        assert_eq!(Manifest::artifact("it", &bytes).unwrap().encode(), (descriptor.clone(), bytes));
        let signature = Manifest::of_signature(&descriptor, b"sig");
        let (_, bytes) = signature.encode();
        let read = Manifest::signature("it", &bytes).unwrap();
        assert_eq!(read.subject.unwrap().digest, descriptor.digest);
    }

    #[test]
    fn whatever_is_not_such_a_manifest_is_refused_by_name() {
        let (_, bytes) = Manifest::of_artifact(&index(), b"tar").encode();
        let text = String::from_utf8(bytes).unwrap();
        let of = |from: &str, to: &str| {
            assert!(text.contains(from), "{from}");
            Manifest::artifact("it", text.replacen(from, to, 1).as_bytes()).unwrap_err()
        };
        assert!(matches!(of("image.manifest", "image.index"), RegistryError::MediaType { .. }));
        assert!(matches!(of("kforge.package.v1\"", "other.v1\""), RegistryError::MediaType { .. }));
        assert!(matches!(of("package.v1.tar", "package.v1.tar+gzip"), RegistryError::MediaType { .. }));
        assert!(matches!(of("\"schemaVersion\":2", "\"schemaVersion\":1"), RegistryError::MediaType { .. }));
        assert!(matches!(of("\"size\":3", "\"size\":99999999999"), RegistryError::TooLarge { .. }));
        assert!(matches!(of("\"size\":3", "\"size\":-1"), RegistryError::Document { .. }));
        assert!(matches!(of("\"digest\":\"sha256:", "\"digest\":\"sha512:"), RegistryError::Document { .. }));
        let none = |what: &str| RegistryError::Layers { what: what.into(), found: 0 };
        let empty = format!(
            "{}\"layers\":[]{}",
            text.split("\"layers\"").next().unwrap(),
            &text[text.find("],\"annot").unwrap() + 1..]
        );
        assert_eq!(Manifest::artifact("it", empty.as_bytes()).unwrap_err().to_string(), none("it").to_string());
        assert!(matches!(Manifest::artifact("it", b"<html>"), Err(RegistryError::Document { .. })));
        let large = vec![b' '; LARGEST as usize + 1];
        assert!(matches!(Manifest::artifact("it", &large), Err(RegistryError::TooLarge { .. })));
        assert!(ImageIndex::read("it", br#"{"schemaVersion":2,"manifests":[]}"#).is_ok());
    }

    #[test]
    fn what_others_wrote_into_a_list_is_kept() {
        let digest = OciDigest::of(b"x");
        let text = format!(
            r#"{{"schemaVersion":2,"manifests":[{{"mediaType":"x","digest":"{digest}","size":1,"platform":{{"os":"linux"}}}}],"annotations":{{"a":"b"}}}}"#
        );
        let read = ImageIndex::read("it", text.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(read.encode()).unwrap(), text);
    }
}
