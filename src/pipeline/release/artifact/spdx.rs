//! The bill of materials of an artifact: an SPDX 2.3 document (<https://spdx.github.io/spdx-spec/v2.3/>). Knows the form; gets every value.
//!
//! SPDX requires the time at which a document was created. A time would make each document another one, so it is always the first second of 1970, which the
//! comment of the creation info says. Files are not listed: SPDX requires their SHA-1, and the index of the artifact lists them. PTX, and a
//! fatbin with PTX in it, is listed as a package of one file, because what it becomes on a device was never verified.

use serde_json::json;

use super::files::{document, is_ptx, lacks_evidence, sha256};
use super::{ArtifactError, ArtifactFiles, INDEX, INDEX_SIGNATURE, SBOM, STATEMENT};
use kforge_project::workspace::lockfile::LockedWheel;

/// The inputs of a bill of materials.
pub struct Materials<'a> {
    /// The package.
    pub package: &'a str,
    /// Its version.
    pub version: &'a str,
    /// Its licence, as an SPDX expression.
    pub license: &'a str,
    /// The wheels with which it was compiled.
    pub wheels: &'a [LockedWheel],
}

/// Each character that an SPDX id cannot have as `-`.
fn id(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect()
}

/// The document about these files.
///
/// # Errors
/// It has no JSON form.
pub fn materials(files: &ArtifactFiles, about: &Materials<'_>) -> Result<Vec<u8>, ArtifactError> {
    const PACKAGE: &str = "SPDXRef-Package";
    let tools: Vec<(String, &LockedWheel)> = about
        .wheels
        .iter()
        .map(|wheel| (format!("SPDXRef-Tool-{}-{}", id(&wheel.name), id(&wheel.version)), wheel))
        .collect();
    let mut packages = vec![json!({
        "SPDXID": PACKAGE,
        "name": about.package,
        "versionInfo": about.version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": false,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": about.license,
        "copyrightText": "NOASSERTION",
    })];
    packages.extend(tools.iter().map(|(id, wheel)| {
        json!({
            "SPDXID": id,
            "name": wheel.name,
            "versionInfo": wheel.version,
            "packageFileName": wheel.file,
            "downloadLocation": "NOASSERTION",
            "filesAnalyzed": false,
            "checksums": [{ "algorithm": "SHA256", "checksumValue": wheel.digest.sha256 }],
            "externalRefs": [{
                "referenceCategory": "PACKAGE-MANAGER",
                "referenceType": "purl",
                "referenceLocator": format!("pkg:pypi/{}@{}", wheel.name, wheel.version),
            }],
        })
    }));
    let unverified: Vec<(String, &String, String)> = files
        .all()
        .iter()
        .filter(|(name, bytes)| lacks_evidence(name, bytes))
        .map(|(name, bytes)| (format!("SPDXRef-{}", id(name)), name, sha256(bytes)))
        .collect();
    packages.extend(unverified.iter().map(|(id, name, sha256)| {
        let what =
            if is_ptx(name) { "PTX without evidence" } else { "A fatbin with PTX in it, which is without evidence" };
        json!({
            "SPDXID": id,
            "name": name,
            "packageFileName": name,
            "primaryPackagePurpose": "FILE",
            "downloadLocation": "NOASSERTION",
            "filesAnalyzed": false,
            "checksums": [{ "algorithm": "SHA256", "checksumValue": sha256 }],
            "comment": format!("{what}: a driver makes other machine code of PTX than what was verified."),
        })
    }));
    let relation = |from: &str, kind: &str, to: &str| json!({ "spdxElementId": from, "relationshipType": kind, "relatedSpdxElement": to });
    let mut relations = vec![relation("SPDXRef-DOCUMENT", "DESCRIBES", PACKAGE)];
    relations.extend(tools.iter().map(|(id, _)| relation(id, "BUILD_TOOL_OF", PACKAGE)));
    relations.extend(unverified.iter().map(|(id, ..)| relation(PACKAGE, "CONTAINS", id)));
    // The namespace must be another one for other contents.
    let own = |name: &str| [INDEX, INDEX_SIGNATURE, SBOM, STATEMENT].contains(&name);
    let others = files.all().iter().filter(|(name, _)| !own(name));
    let contents: String = others.map(|(name, bytes)| format!("{}  {name}\n", sha256(bytes))).collect();
    document(&json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": format!("{}-{}", about.package, about.version),
        "documentNamespace": format!("urn:kforge:artifact:{}:{}:{}", about.package, about.version, sha256(contents.as_bytes())),
        "creationInfo": {
            "created": "1970-01-01T00:00:00Z",
            "creators": [format!("Tool: kforge-{}", env!("CARGO_PKG_VERSION"))],
            "comment": "The time of creation is left out, so that equal inputs give an equal document.",
        },
        "packages": packages,
        "relationships": relations,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_that_a_relationship_names_exists_and_ids_have_no_other_characters() {
        let files = ["source/k.cu", "binaries/0a.ptx", "binaries/0b.cubin"].map(|name| (name.to_string(), vec![]));
        let files = ArtifactFiles::new(files.into()).unwrap();
        let digest = format!("sha256:{}:9", "0".repeat(64)).parse().unwrap();
        let wheel = LockedWheel { name: "nvidia_nvrtc".into(), version: "13.0+x".into(), file: "f".into(), digest };
        let of = |files: &ArtifactFiles| {
            let about = Materials {
                package: "p",
                version: "1.0.0",
                license: "MIT OR Apache-2.0",
                wheels: std::slice::from_ref(&wheel),
            };
            serde_json::from_slice::<serde_json::Value>(&materials(files, &about).unwrap()).unwrap()
        };
        let found = of(&files);
        let packages = found["packages"].as_array().unwrap();
        let ids: Vec<&str> = packages.iter().map(|package| package["SPDXID"].as_str().unwrap()).collect();
        assert_eq!(ids, ["SPDXRef-Package", "SPDXRef-Tool-nvidia-nvrtc-13.0-x", "SPDXRef-binaries-0a.ptx"]);
        for relation in found["relationships"].as_array().unwrap() {
            for end in ["spdxElementId", "relatedSpdxElement"] {
                let id = relation[end].as_str().unwrap();
                assert!(id == "SPDXRef-DOCUMENT" || ids.contains(&id), "{relation}");
            }
        }
        assert_eq!(packages[0]["licenseDeclared"], "MIT OR Apache-2.0");
        let other = ArtifactFiles::new([("source/k.cu".to_string(), vec![1])].into()).unwrap();
        assert_ne!(of(&other)["documentNamespace"], found["documentNamespace"], "other contents, another document");
    }
}
