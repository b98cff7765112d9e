//! The in-toto statement of an artifact (<https://in-toto.io/Statement/v1>) with its SLSA provenance (<https://slsa.dev/provenance/v1>). Knows the form; gets
//! every value.
//!
//! Inside an artifact, the subjects are its binaries. The statement beside an archive also has the archive, which cannot name itself. There is no time in it, so
//! equal inputs give an equal statement.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::files::sha256;
use super::{ArtifactError, BINARIES, SOURCE};
use crate::release::artifact::ArtifactFiles;
use kforge_foundation::base::Digest;
use kforge_project::workspace::lockfile::LockedWheel;

/// What makes artifacts: the builder of the provenance, and the type of the build.
const BUILDER: &str = "https://crates.io/crates/kforge";

/// The inputs of a statement.
pub struct Provenance<'a> {
    /// The package.
    pub package: &'a str,
    /// Its version.
    pub version: &'a str,
    /// The targets, in order.
    pub targets: Vec<&'a str>,
    /// The wheels with which it was compiled.
    pub wheels: &'a [LockedWheel],
    /// The device compilers by content.
    pub tools: &'a BTreeMap<String, Digest>,
    /// The name and the bytes of the archive, for the statement beside it.
    pub archive: Option<(&'a str, &'a [u8])>,
}

#[derive(Serialize)]
struct Subject {
    name: String,
    digest: Value,
}

/// The statement about these files.
///
/// # Errors
/// It has no JSON form.
pub fn statement(files: &ArtifactFiles, about: &Provenance<'_>) -> Result<Vec<u8>, ArtifactError> {
    let of = |name: &str, bytes: &[u8]| Subject { name: name.into(), digest: json!({ "sha256": sha256(bytes) }) };
    let within = |folder: &str, name: &str| name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    let mut subjects: Vec<Subject> =
        files.all().iter().filter(|(name, _)| within(BINARIES, name)).map(|(name, bytes)| of(name, bytes)).collect();
    subjects.extend(about.archive.map(|(name, bytes)| of(name, bytes)));
    let sources = files.all().iter().filter(|(name, _)| within(SOURCE, name));
    let sources = sources.map(|(name, bytes)| json!({ "name": name, "digest": { "sha256": sha256(bytes) } }));
    let wheels = about.wheels.iter().map(|wheel| {
        let uri = format!("pkg:pypi/{}@{}?file_name={}", wheel.name, wheel.version, wheel.file);
        json!({ "uri": uri, "digest": { "sha256": wheel.digest.sha256 } })
    });
    let tools =
        about.tools.iter().map(|(name, digest)| json!({ "name": name, "digest": { "blake3": digest.to_string() } }));
    super::files::document(&json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects,
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": format!("{BUILDER}/package/v1"),
                "externalParameters": { "package": about.package, "version": about.version, "targets": about.targets },
                "internalParameters": {},
                "resolvedDependencies": sources.chain(wheels).chain(tools).collect::<Vec<_>>(),
            },
            "runDetails": {
                "builder": { "id": BUILDER, "version": { "kforge": env!("CARGO_PKG_VERSION") } },
            },
        },
    }))
}

/// The compilers that a statement names by content; none if the bytes are something else.
pub fn tools_of(statement: &[u8]) -> BTreeMap<String, Digest> {
    let statement: Value = serde_json::from_slice(statement).unwrap_or_default();
    let dependencies = &statement["predicate"]["buildDefinition"]["resolvedDependencies"];
    let tool = |one: &Value| {
        let digest = one["digest"]["blake3"].as_str()?.parse().ok()?;
        Some((one["name"].as_str()?.to_string(), digest))
    };
    dependencies.as_array().into_iter().flatten().filter_map(tool).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_the_binaries_and_the_archive_and_dependencies_are_what_they_were_made_from() {
        let files = [("binaries/a.cubin", "1"), ("source/k.cu", "2"), ("kernels.json", "3")];
        let files = files.map(|(name, text)| (name.to_string(), text.as_bytes().to_vec()));
        let files = ArtifactFiles::new(files.into()).unwrap();
        let digest = format!("sha256:{}:9", "0".repeat(64)).parse().unwrap();
        let wheel = LockedWheel { name: "nvrtc".into(), version: "13.0".into(), file: "nvrtc.whl".into(), digest };
        let about = Provenance {
            package: "p",
            version: "1.0.0",
            targets: vec!["h200"],
            wheels: &[wheel],
            tools: &BTreeMap::from([("nvrtc".to_string(), Digest::of(b"tool"))]),
            archive: Some(("p-1.0.0.tar", b"tar")),
        };
        let bytes = statement(&files, &about).unwrap();
        let found: Value = serde_json::from_slice(&bytes).unwrap();
        let names = |list: &Value, key: &str| -> Vec<String> {
            list.as_array().unwrap().iter().filter_map(|one| Some(one.get(key)?.as_str()?.to_string())).collect()
        };
        assert_eq!(names(&found["subject"], "name"), ["binaries/a.cubin", "p-1.0.0.tar"]);
        assert_eq!(found["subject"][0]["digest"]["sha256"], sha256(b"1"));
        let dependencies = &found["predicate"]["buildDefinition"]["resolvedDependencies"];
        assert_eq!(names(dependencies, "name"), ["source/k.cu", "nvrtc"]);
        assert_eq!(names(dependencies, "uri"), ["pkg:pypi/nvrtc@13.0?file_name=nvrtc.whl"]);
        assert_eq!(bytes, statement(&files, &about).unwrap(), "there is no time in it");
        let inside = statement(&files, &Provenance { archive: None, ..about }).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&inside).unwrap()["subject"].as_array().unwrap().len(), 1);
    }
}
