//! The client of registries against a registry of the test's own: what is sent where, what is refused, and what passes by itself. Needs no network and no
//! kernels: the artifacts hold a few bytes.

mod logins;
mod faults;
mod server;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use kforge::config::Environment;
use kforge::release::artifact::ArtifactFiles;
use kforge::release::artifact::files::PackageIdentity;
use kforge::release::registry::exchange::{Access, Means};
use kforge::release::registry::repository::{pull, resolve};
use kforge::release::registry::{Publication, Pulled, RegistryError, Remote, Repository, Status, Version};
use kforge::release::signature::{ARTIFACT_NAMESPACE, SigningKey};

use server::Server;

/// A small artifact, unsigned.
fn artifact(version: &str) -> ArtifactFiles {
    let files = [("a".to_string(), b"1".to_vec())].into();
    let identity = PackageIdentity { name: "p".into(), version: version.into(), license: "MIT".into() };
    ArtifactFiles::new(files).unwrap().indexed(identity).unwrap()
}

/// The same, signed with a new key.
fn signed(version: &str) -> ArtifactFiles {
    let files = artifact(version);
    let signature = SigningKey::generate().unwrap();
    let signature = signature.sign(ARTIFACT_NAMESPACE, files.get("kforge-artifact.json").unwrap()).unwrap();
    files.signed(&signature)
}

fn publication(files: ArtifactFiles) -> Publication {
    Publication::of(files).unwrap()
}

/// A client of `oci://HOST/team/p` with an environment.
fn client(host: &str, environment: &[(&str, &str)], plain_http: bool) -> Result<Remote, RegistryError> {
    let means = Means {
        plain_http,
        access: Access::PullPush,
        environment: Environment::of(environment.iter().map(|(k, v)| (k.to_string(), v.to_string()))),
        interrupted: Arc::new(AtomicBool::new(false)),
        limit: Duration::from_secs(20),
        pause: Duration::from_millis(1),
    };
    Remote::new(&format!("oci://{host}/team/p").parse().unwrap(), means)
}

fn remote(server: &Server) -> Remote {
    client(&server.address.to_string(), &[], false).unwrap()
}

fn fetch(from: &Remote, version: &Version) -> Result<Pulled, RegistryError> {
    pull(from, resolve(from, version)?, &|_, _| false)
}

#[test]
fn an_artifact_comes_back_with_its_signatures_with_and_without_a_list_of_the_registry() {
    for lists_referrers in [false, true] {
        let server = Server::new();
        server.state().lists_referrers = lists_referrers;
        let (remote, one) = (remote(&server), signed("1.0.0"));
        assert_eq!(publication(one.clone()).push(&remote, "1.0.0", false).unwrap(), Status::Added);
        let pulled = fetch(&remote, &Version::Tag("1.0.0".into())).unwrap();
        assert_eq!(pulled.files, one.clone().unsigned());
        assert_eq!(pulled.signatures, [one.signature().unwrap().unwrap()]);
        assert_eq!(fetch(&remote, &Version::Digest(pulled.manifest.clone())).unwrap().files, pulled.files);
        // Once more, nothing is sent; another signature of the same files leaves the artifact as it is.
        let sent = |server: &Server| ["PUT", "POST"].map(|method| server.count(method, ""));
        let before = sent(&server);
        assert_eq!(publication(one.clone()).push(&remote, "1.0.0", false).unwrap(), Status::Present);
        assert_eq!(sent(&server), before);
        let again = signed("1.0.0");
        assert_eq!(publication(again).push(&remote, "1.0.0", false).unwrap(), Status::SignatureAdded);
        let both = fetch(&remote, &Version::Newest).unwrap();
        assert_eq!((both.manifest, both.signatures.len()), (pulled.manifest.clone(), 2));
        let fallback = server.state().tags.contains_key(&pulled.manifest.fallback_tag());
        assert_eq!(fallback, !lists_referrers);
    }
}

#[test]
fn the_tag_is_written_last() {
    let server = Server::new();
    publication(signed("1.0.0")).push(&remote(&server), "1.0.0", false).unwrap();
    let state = server.state();
    let puts: Vec<&str> =
        state.requests.iter().map(|(line, _)| line.as_str()).filter(|line| line.starts_with("PUT")).collect();
    assert_eq!(*puts.last().unwrap(), "PUT /v2/team/p/manifests/1.0.0", "{puts:?}");
    assert!(puts[..puts.len() - 1].iter().all(|line| !line.ends_with("/1.0.0")), "{puts:?}");
}

#[test]
fn a_tag_that_names_another_artifact_is_kept_unless_it_is_to_be_replaced() {
    let server = Server::new();
    let (remote, one, two) = (remote(&server), publication(artifact("1.0.0")), publication(artifact("2.0.0")));
    one.push(&remote, "stable", false).unwrap();
    let refused = two.push(&remote, "stable", false).unwrap_err();
    assert!(matches!(refused, RegistryError::Taken { ref tag, .. } if tag == "stable"), "{refused}");
    assert_eq!(server.state().tags["stable"], one.manifest().to_string());
    assert_eq!(two.status(&remote, "stable", true).unwrap(), Status::Replaced);
    assert_eq!(server.state().tags["stable"], one.manifest().to_string(), "a look changes nothing");
    assert_eq!(two.push(&remote, "stable", true).unwrap(), Status::Replaced);
    assert_eq!(server.state().tags["stable"], two.manifest().to_string());
}

#[test]
fn the_newest_version_is_found_on_any_page_and_other_tags_are_no_versions() {
    let server = Server::new();
    let remote = remote(&server);
    let none = fetch(&remote, &Version::Newest).unwrap_err();
    assert!(none.to_string().contains("it has no tags"), "{none}");
    publication(artifact("0.9.0")).push(&remote, "edge", false).unwrap();
    let none = fetch(&remote, &Version::Newest).unwrap_err();
    assert!(none.to_string().contains("there are `edge`"), "{none}");
    for version in ["0.9.0", "0.10.0", "0.2.0"] {
        publication(artifact(version)).push(&remote, version, false).unwrap();
    }
    server.state().page = 1;
    assert_eq!(fetch(&remote, &Version::Newest).unwrap().tag.as_deref(), Some("0.10.0"));
    let missing = fetch(&remote, &Version::Tag("3".into())).unwrap_err();
    assert!(matches!(missing, RegistryError::NoTag { .. }), "{missing}");
}

#[test]
fn signatures_of_others_and_nonsense_in_the_list_do_not_count() {
    let server = Server::new();
    let (remote, one) = (remote(&server), signed("1.0.0"));
    publication(one).push(&remote, "1.0.0", false).unwrap();
    publication(signed("2.0.0")).push(&remote, "2.0.0", false).unwrap();
    let fallback = |tag: &str| fetch(&remote, &Version::Tag(tag.into())).unwrap().manifest.fallback_tag();
    let (of_one, of_two) = (fallback("1.0.0"), fallback("2.0.0"));
    {
        // The list of the first now names the signature of the second, an artifact, and something that is not there.
        let mut state = server.state();
        let list = |state: &server::State, tag: &str| -> serde_json::Value {
            serde_json::from_slice(&state.manifests[&state.tags[tag]].1).unwrap()
        };
        let (mut one, two) = (list(&state, &of_one), list(&state, &of_two));
        let entries = one["manifests"].as_array_mut().unwrap();
        entries.push(two["manifests"][0].clone());
        let mut gone = two["manifests"][0].clone();
        gone["digest"] = format!("sha256:{}", "0".repeat(64)).into();
        entries.push(gone);
        // A signature whose contents are lost.
        let manifest = one["manifests"][0]["digest"].as_str().unwrap();
        let text = String::from_utf8(state.manifests[manifest].1.clone()).unwrap();
        let known: serde_json::Value = serde_json::from_str(&text).unwrap();
        let blob = known["layers"][0]["digest"].as_str().unwrap();
        let text = text.replace(blob, &format!("sha256:{}", "1".repeat(64))).into_bytes();
        let digest = format!("sha256:{}", kforge::release::artifact::files::sha256(&text));
        state.manifests.insert(digest.clone(), (String::new(), text));
        let mut lost = two["manifests"][0].clone();
        lost["digest"] = digest.into();
        let entries = one["manifests"].as_array_mut().unwrap();
        entries.push(lost);
        let mut wrong = two["manifests"][0].clone();
        wrong["digest"] = state.tags["2.0.0"].clone().into();
        entries.push(wrong);
        let bytes = one.to_string().into_bytes();
        let digest = format!("sha256:{}", kforge::release::artifact::files::sha256(&bytes));
        state.manifests.insert(digest.clone(), ("application/vnd.oci.image.index.v1+json".into(), bytes));
        state.tags.insert(of_one, digest);
    }
    assert_eq!(fetch(&remote, &Version::Tag("1.0.0".into())).unwrap().signatures.len(), 1);
}

#[test]
fn folders_and_registries_hold_the_same() {
    let server = Server::new();
    let (remote, one) = (remote(&server), signed("1.0.0"));
    publication(one.clone()).push(&remote, "1.0.0", false).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let layout = kforge::release::registry::Layout::make(folder.path(), "it").unwrap();
    publication(one).push(&layout, "1.0.0", false).unwrap();
    for tag in ["1.0.0".to_string(), publication(signed("1.0.0")).manifest().fallback_tag()] {
        assert_eq!(remote.tagged(&tag).unwrap(), layout.tagged(&tag).unwrap(), "{tag}");
    }
    let blobs = std::fs::read_dir(folder.path().join("blobs/sha256")).unwrap();
    let mut names: Vec<String> =
        blobs.map(|entry| format!("sha256:{}", entry.unwrap().file_name().to_string_lossy())).collect();
    names.sort();
    let state = server.state();
    let mut known: Vec<&String> = state.blobs.keys().chain(state.manifests.keys()).collect();
    known.sort();
    assert_eq!(names.iter().collect::<Vec<_>>(), known);
}
