//! Faults of registries and networks: what is tried again, what ends, and that nothing wrong is believed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kforge::config::Environment;
use kforge::release::registry::exchange::{Access, Means};
use kforge::release::registry::{RegistryError, Remote, Repository, Status, Version};

use super::server::{Fault, Server};
use super::{artifact, client, fetch, publication, remote, signed};

fn says(status: u16) -> Fault {
    Fault::Says(status, "Retry-After: 0", "{\"errors\":[{\"code\":\"TOOMANYREQUESTS\"}]}".into())
}

#[test]
fn a_busy_registry_and_a_cut_connection_are_tried_again() {
    let server = Server::new();
    let remote = remote(&server);
    server.state().faults.extend([
        ("GET", "/manifests/1.0.0", says(429)),
        ("GET", "/manifests/1.0.0", says(503)),
        ("HEAD", "/blobs/", Fault::Drops),
        ("POST", "/uploads/", says(500)),
        ("PUT", "/uploads/", Fault::Drops),
        ("PUT", "/uploads/", says(502)),
        ("PUT", "/manifests/1.0.0", Fault::Drops),
    ]);
    assert_eq!(publication(signed("1.0.0")).push(&remote, "1.0.0", false).unwrap(), Status::Added);
    assert!(server.state().faults.is_empty());
    server.state().faults.extend([
        ("GET", "/manifests/1.0.0", Fault::Cuts),
        ("GET", "/blobs/", Fault::Cuts),
        ("GET", "/blobs/", Fault::Drops),
    ]);
    assert!(fetch(&remote, &Version::Tag("1.0.0".into())).is_ok());
    assert!(server.state().faults.is_empty());
}

#[test]
fn attempts_end() {
    let server = Server::new();
    server.state().faults.extend((0..100).map(|_| ("GET", "/tags/", says(429))));
    let error = remote(&server).tags().unwrap_err();
    assert!(matches!(error, RegistryError::Status { status: 429, .. }), "{error}");
    assert!(error.to_string().contains("TOOMANYREQUESTS"), "{error}");
    assert_eq!(server.count("GET", "/tags/"), 5);
    server.state().faults.clear();
    server.state().faults.extend((0..100).map(|_| ("GET", "/manifests/", Fault::Drops)));
    let error = fetch(&remote(&server), &Version::Tag("1".into())).unwrap_err();
    assert!(matches!(error, RegistryError::Unreachable { .. }), "{error}");
    // What does not pass is not tried again.
    server.state().faults.clear();
    server.state().faults.push_back(("GET", "/manifests/", says(418)));
    assert!(matches!(
        fetch(&remote(&server), &Version::Tag("2".into())),
        Err(RegistryError::Status { status: 418, .. })
    ));
    assert_eq!(server.count("GET", "/manifests/2"), 1);
}

#[test]
fn contents_that_differ_from_their_digest_are_refused() {
    let server = Server::new();
    let remote = remote(&server);
    publication(signed("1.0.0")).push(&remote, "1.0.0", false).unwrap();
    let tag = Version::Tag("1.0.0".into());
    for path in ["/manifests/1.0.0", "/blobs/"] {
        server.state().faults.push_back(("GET", path, Fault::Corrupts));
        let error = fetch(&remote, &tag).unwrap_err();
        assert!(matches!(error, RegistryError::Changed { .. }), "{path}: {error}");
    }
    // A blob of another length, and an endless one.
    let (digest, whole) =
        server.state().blobs.iter().max_by_key(|(_, blob)| blob.len()).map(|(d, b)| (d.clone(), b.clone())).unwrap();
    server.state().blobs.insert(digest.clone(), whole[..10].to_vec());
    assert!(matches!(fetch(&remote, &tag), Err(RegistryError::Size { found: 10, .. })));
    server.state().blobs.insert(digest.clone(), [whole.clone(), vec![0; 1 << 20]].concat());
    assert!(matches!(fetch(&remote, &tag), Err(RegistryError::TooLarge { .. })));
    server.state().blobs.remove(&digest);
    assert!(matches!(fetch(&remote, &tag), Err(RegistryError::Missing { .. })));
    server.state().blobs.insert(digest, whole);
    assert!(fetch(&remote, &tag).is_ok());
}

#[test]
fn what_is_no_artifact_is_refused_by_name() {
    let server = Server::new();
    let remote = remote(&server);
    publication(artifact("1.0.0")).push(&remote, "1.0.0", false).unwrap();
    let whole = String::from_utf8(remote.tagged("1.0.0").unwrap().unwrap()).unwrap();
    let of = |text: String| {
        let digest = format!("sha256:{}", kforge::release::artifact::files::sha256(text.as_bytes()));
        server.state().manifests.insert(digest.clone(), ("x".into(), text.into_bytes()));
        server.state().tags.insert("other".into(), digest);
        fetch(&remote, &Version::Tag("other".into())).unwrap_err()
    };
    let error = of(whole.replace("vnd.kforge.package.v1\"", "vnd.helm.chart.v1\""));
    assert!(matches!(&error, RegistryError::MediaType { found, .. } if found.contains("helm")), "{error}");
    assert!(matches!(of(whole.replace("package.v1.tar", "package.v9.tar")), RegistryError::MediaType { .. }));
    assert!(matches!(of("<html>".into()), RegistryError::Document { .. }));
    let error = of(format!("{whole}{}", " ".repeat(5 << 20)));
    assert!(matches!(error, RegistryError::TooLarge { .. }), "{error}");
    // A tar with a name that leads out of the folder, under a manifest that is well formed.
    let mut header = tar_header("../x");
    header.extend([0; 1024]);
    let digest = format!("sha256:{}", kforge::release::artifact::files::sha256(&header));
    let layer: serde_json::Value = serde_json::from_str(&whole).unwrap();
    let (old, size) =
        (layer["layers"][0]["digest"].as_str().unwrap().to_string(), layer["layers"][0]["size"].to_string());
    let text = whole.replace(&old, &digest).replace(&format!("\"size\":{size}"), &format!("\"size\":{}", header.len()));
    server.state().blobs.insert(digest, header);
    let error = of(text);
    assert!(matches!(&error, RegistryError::Artifact(why) if why.to_string().contains("`../x`")), "{error}");
}

/// The header of an empty file in a tar archive.
fn tar_header(name: &str) -> Vec<u8> {
    let mut header = vec![0u8; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..108].copy_from_slice(b"0000644\0");
    header[108..116].copy_from_slice(b"0000000\0");
    header[116..124].copy_from_slice(b"0000000\0");
    header[124..136].copy_from_slice(b"00000000000\0");
    header[136..148].copy_from_slice(b"00000000000\0");
    header[156] = b'0';
    header[257..265].copy_from_slice(b"ustar\x0000");
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

#[test]
fn redirects_end_and_lead_to_no_other_scheme() {
    let server = Server::new();
    let remote = remote(&server);
    publication(artifact("1.0.0")).push(&remote, "1.0.0", false).unwrap();
    for to in ["http://registry.test/", "ftp://127.0.0.1/", "//127.0.0.1/", "http://user@127.0.0.1/", "../elsewhere/"] {
        server.state().redirects_to = Some(to.into());
        let error = fetch(&remote, &Version::Newest).unwrap_err();
        assert!(matches!(error, RegistryError::Redirect { .. }), "{to}: {error}");
    }
    // An address may be relative to that of the request.
    server.state().redirects_to = Some("elsewhere/".into());
    assert!(fetch(&remote, &Version::Newest).is_err());
    assert!(server.count("GET", "/v2/team/p/blobs/elsewhere/sha256:") > 0);
    server.state().redirects_to = Some(format!("http://{}/v2/team/p/blobs/", server.address));
    let before = server.count("GET", "/blobs/");
    let error = fetch(&remote, &Version::Newest).unwrap_err();
    assert!(error.to_string().contains("again and again"), "{error}");
    assert!(server.count("GET", "/blobs/") - before < 10);
}

/// A registry without an API for referrers has no way to add to the list in one step, so a signature can be lost. Whoever publishes again finds that.
#[test]
fn a_signature_that_another_client_overwrote_is_added_again() {
    let server = Server::new();
    let both = [signed("1.0.0"), signed("1.0.0")];
    publication(artifact("1.0.0")).push(&remote(&server), "1.0.0", false).unwrap();
    std::thread::scope(|scope| {
        for one in &both {
            scope.spawn(|| publication(one.clone()).push(&remote(&server), "1.0.0", false).unwrap());
        }
    });
    for one in both {
        publication(one).push(&remote(&server), "1.0.0", false).unwrap();
    }
    assert_eq!(fetch(&remote(&server), &Version::Newest).unwrap().signatures.len(), 2);
}

#[test]
fn what_is_listed_as_a_signature_and_is_none_hides_no_signature() {
    let server = Server::new();
    server.state().lists_referrers = true;
    let (remote, one) = (remote(&server), signed("1.0.0"));
    let publication = publication(one.clone());
    publication.push(&remote, "1.0.0", false).unwrap();
    // They have low digests, so they come before the signature.
    let subject = publication.manifest();
    let junk = (0..).map(|at| {
        let subject = serde_json::json!({ "digest": subject.to_string() });
        let of = "application/vnd.kforge.signature.v1";
        let junk = serde_json::json!({ "schemaVersion": 2, "artifactType": of, "at": at, "subject": subject });
        let bytes = serde_json::to_vec(&junk).unwrap();
        (format!("sha256:{}", kforge::release::artifact::files::sha256(&bytes)), bytes)
    });
    for (digest, bytes) in junk.filter(|(digest, _)| digest.starts_with("sha256:00")).take(40) {
        server.state().manifests.insert(digest, ("application/vnd.oci.image.manifest.v1+json".into(), bytes));
    }
    let pulled = fetch(&remote, &Version::Newest).unwrap();
    assert_eq!(pulled.signatures, [one.signature().unwrap().unwrap()]);
}

#[test]
fn an_interruption_ends_the_pauses() {
    let server = Server::new();
    server
        .state()
        .faults
        .extend((0..10).map(|_| ("GET", "/tags/", Fault::Says(429, "Retry-After: 600", String::new()))));
    let interrupted = Arc::new(AtomicBool::new(false));
    let means = Means {
        plain_http: false,
        access: Access::Pull,
        environment: Environment::default(),
        interrupted: interrupted.clone(),
        limit: Duration::from_secs(20),
        pause: Duration::from_secs(60),
    };
    let remote = Remote::new(&server.repository("team/p").parse().unwrap(), means).unwrap();
    let began = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while server.count("GET", "/tags/") == 0 {
                std::thread::yield_now();
            }
            interrupted.store(true, Ordering::Relaxed);
        });
        assert!(matches!(remote.tags(), Err(RegistryError::Interrupted)));
    });
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_registry_that_says_nothing_is_given_up() {
    let server = Server::new();
    server.state().faults.extend((0..10).map(|_| ("GET", "/tags/", Fault::Hangs)));
    let means = Means {
        plain_http: false,
        access: Access::Pull,
        environment: Environment::default(),
        interrupted: Arc::default(),
        limit: Duration::from_millis(100),
        pause: Duration::from_millis(1),
    };
    let remote = Remote::new(&server.repository("team/p").parse().unwrap(), means).unwrap();
    let error = remote.tags().unwrap_err();
    assert!(matches!(error, RegistryError::Unreachable { .. }) && error.to_string().contains("timeout"), "{error}");
    assert_eq!(server.count("GET", "/tags/"), 2);
    // Nor is one that begins an answer and does not go on.
    server.state().faults.clear();
    server.state().faults.extend((0..10).map(|_| ("GET", "/tags/", Fault::Stops)));
    let error = remote.tags().unwrap_err();
    assert!(matches!(error, RegistryError::Unreachable { .. }) && error.to_string().contains("timeout"), "{error}");
    assert_eq!(server.count("GET", "/tags/"), 4);
}

#[test]
fn a_host_that_is_not_there_is_named() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = client(&free.to_string(), &[], false).unwrap().tags().unwrap_err();
    assert!(matches!(error, RegistryError::Unreachable { .. }) && error.to_string().contains("127.0.0.1"), "{error}");
}
