//! Logins: who gets them, and who does not.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use kforge::release::registry::{RegistryError, Remote, Repository, Version};

use super::server::{Login, Server};
use super::{artifact, client, fetch, publication, signed};

/// `me:s3cret` as base64.
const ENCODED: &str = "bWU6czNjcmV0";

/// A configuration of Docker with a login for one host, and a client with it.
fn with_login(server: &Server, entry: &str) -> (tempfile::TempDir, Remote) {
    let folder = tempfile::tempdir().unwrap();
    let config = format!("{{\"auths\": {{\"{}\": {entry}}}}}", server.address);
    fs::write(folder.path().join("config.json"), config).unwrap();
    let place = folder.path().to_str().unwrap().to_string();
    (folder, client(&server.address.to_string(), &[("DOCKER_CONFIG", &place)], false).unwrap())
}

fn password() -> String {
    format!("{{\"auth\": \"{ENCODED}\"}}")
}

/// The values of `Authorization` that a server received.
fn received(server: &Server) -> Vec<String> {
    let mut all: Vec<String> = server.state().requests.iter().filter_map(|(_, value)| value.clone()).collect();
    all.dedup();
    all
}

#[test]
fn a_password_is_sent_when_it_is_demanded_and_not_before() {
    let server = Server::new();
    let (_folder, remote) = with_login(&server, &password());
    publication(artifact("1.0.0")).push(&remote, "1.0.0", false).unwrap();
    assert_eq!(received(&server), Vec::<String>::new());
    server.state().login = Login::Basic(format!("Basic {ENCODED}"));
    publication(signed("2.0.0")).push(&remote, "2.0.0", false).unwrap();
    assert_eq!(received(&server), [format!("Basic {ENCODED}")]);
    let refusals = server.count("GET", "/manifests/2.0.0");
    assert_eq!(refusals, 2, "only the first request is sent twice");
}

#[test]
fn a_token_is_fetched_with_the_login_and_used_for_the_registry_only() {
    let (server, tokens) = (Server::new(), Server::new());
    let realm = format!("http://{}/token", tokens.address);
    let login = Login::Token { realm, token: "t0ken".into() };
    (server.state().login, tokens.state().login) = (login.clone(), login);
    let (_folder, remote) = with_login(&server, &password());
    publication(signed("1.0.0")).push(&remote, "1.0.0", false).unwrap();
    assert_eq!(received(&server), ["Bearer t0ken"]);
    assert_eq!(received(&tokens), [format!("Basic {ENCODED}")]);
    assert_eq!(tokens.state().tokens, ["scope=repository%3Ateam%2Fp%3Apull%2Cpush&service=registry"]);
    // An expired token is fetched again.
    let renewed = Login::Token { realm: format!("http://{}/token", tokens.address), token: "t1".into() };
    (server.state().login, tokens.state().login) = (renewed.clone(), renewed);
    assert!(fetch(&remote, &Version::Newest).is_ok());
    assert_eq!(tokens.state().tokens.len(), 2);
}

#[test]
fn an_identity_token_is_exchanged_in_a_form() {
    let server = Server::new();
    let realm = format!("http://{}/token", server.address);
    server.state().login = Login::Token { realm, token: "t0ken".into() };
    let (_folder, remote) = with_login(&server, "{\"identitytoken\": \"refresh&me\"}");
    publication(artifact("1.0.0")).push(&remote, "1.0.0", false).unwrap();
    let form = server.state().tokens[0].clone();
    assert!(form.contains("grant_type=refresh_token") && form.contains("refresh_token=refresh%26me"), "{form}");
    assert_eq!(received(&server), ["Bearer t0ken"]);
}

#[test]
fn without_a_login_a_token_is_asked_for_all_the_same() {
    let server = Server::new();
    let realm = format!("http://{}/token", server.address);
    server.state().login = Login::Token { realm, token: "public".into() };
    let remote = client(&server.address.to_string(), &[], false).unwrap();
    publication(artifact("1.0.0")).push(&remote, "1.0.0", false).unwrap();
    assert_eq!(received(&server), ["Bearer public"]);
}

#[test]
fn a_service_for_tokens_may_state_a_token_under_either_name_or_both() {
    for names in [vec!["token"], vec!["access_token"], vec!["token", "access_token"], vec!["access_token", "token"]] {
        let server = Server::new();
        server.state().token_names = names.clone();
        let realm = format!("http://{}/token", server.address);
        server.state().login = Login::Token { realm, token: "public".into() };
        let remote = client(&server.address.to_string(), &[], false).unwrap();
        assert!(remote.tags().is_ok(), "{names:?}");
        assert_eq!(received(&server), ["Bearer public"], "{names:?}");
    }
}

#[test]
fn a_refusal_says_which_login_was_used_and_shows_none() {
    let server = Server::new();
    server.state().login = Login::Basic("Basic another".into());
    let nobody = client(&server.address.to_string(), &[], false).unwrap().tags().unwrap_err().to_string();
    assert!(nobody.contains("there is no login for it") && nobody.contains("authentication required"), "{nobody}");
    let (folder, remote) = with_login(&server, &password());
    let refused = remote.tags().unwrap_err();
    assert!(matches!(refused, RegistryError::Denied { .. }));
    let said = format!("{refused} {refused:?}");
    assert!(said.contains("config.json") && !said.contains(ENCODED) && !said.contains("s3cret"), "{said}");
    // A registry that repeats what it received.
    let body = format!("{{\"errors\":[{{\"message\":\"bad {ENCODED} of s3cret \\u001b[31m\"}}]}}");
    server.state().faults.push_back((
        "GET",
        "/tags/",
        super::server::Fault::Says(401, "WWW-Authenticate: Basic", body.clone()),
    ));
    server.state().faults.push_back(("GET", "/tags/", super::server::Fault::Says(403, "", body)));
    let said = remote.tags().unwrap_err().to_string();
    assert!(said.contains("bad [login] of [login]") && !said.contains('\u{1b}'), "{said}");
    drop(folder);
    // Nothing of it is written anywhere.
    let (folder, remote) = with_login(&server, &password());
    server.state().login = Login::Basic(format!("Basic {ENCODED}"));
    remote.tags().unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_helper_gives_the_login() {
    let server = Server::new();
    server.state().login = Login::Basic(format!("Basic {ENCODED}"));
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap().to_string();
    fs::write(folder.path().join("config.json"), "{\"credsStore\": \"test\"}").unwrap();
    let helper = folder.path().join("docker-credential-test");
    let script = format!(
        "#!/bin/sh\nread host; test \"$host\" = {} && echo '{{\"Username\":\"me\",\"Secret\":\"s3cret\"}}'\n",
        server.address
    );
    fs::write(&helper, script).unwrap();
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{place}:/usr/bin:/bin");
    let environment = [("DOCKER_CONFIG", place.as_str()), ("PATH", path.as_str())];
    let remote = client(&server.address.to_string(), &environment, false).unwrap();
    publication(artifact("1.0.0")).push(&remote, "1.0.0", false).unwrap();
    assert_eq!(received(&server), [format!("Basic {ENCODED}")]);
    fs::write(&helper, "#!/bin/sh\nexit 3\n").unwrap();
    let remote = client(&server.address.to_string(), &environment, false).unwrap();
    let said = remote.tags().unwrap_err().to_string();
    assert!(said.contains("`docker-credential-test` gave no login for it") && said.contains('3'), "{said}");
}

#[test]
fn no_login_follows_a_redirect_or_an_upload_to_another_host() {
    let (server, store) = (Server::new(), Server::new());
    server.state().login = Login::Basic(format!("Basic {ENCODED}"));
    let (_folder, remote) = with_login(&server, &password());
    let one = publication(signed("1.0.0"));
    // Uploads go elsewhere.
    server.state().uploads_to = Some(format!("http://{}/v2/team/p/blobs/uploads/x", store.address));
    let descriptor = kforge::release::registry::manifest::Descriptor::of("x", b"contents");
    remote.put_blob(&descriptor, b"contents").unwrap();
    assert_eq!(store.count("PUT", "/uploads/x"), 1);
    assert_eq!(received(&store), Vec::<String>::new());
    // Contents come from elsewhere.
    server.state().uploads_to = None;
    one.push(&remote, "1.0.0", false).unwrap();
    store.state().blobs = server.state().blobs.clone();
    server.state().redirects_to = Some(format!("http://{}/store/", store.address));
    assert!(fetch(&remote, &Version::Newest).is_ok());
    assert!(store.count("GET", "/store/") >= 2);
    assert_eq!(received(&store), Vec::<String>::new());
    assert_eq!(received(&server), [format!("Basic {ENCODED}")]);
}

#[test]
fn nothing_goes_over_a_network_in_plain_text_unless_it_is_asked_for_and_a_login_never_does() {
    let server = Server::new();
    // A name for this machine that does not say so. The proxy is the server itself.
    let proxy = format!("http://{}", server.address);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("config.json"), format!("{{\"auths\": {{\"registry.test\": {}}}}}", password()))
        .unwrap();
    let environment = [("DOCKER_CONFIG", folder.path().to_str().unwrap()), ("http_proxy", proxy.as_str())];
    // By default, the client speaks TLS, which this server does not.
    let remote = client("registry.test", &[("https_proxy", &proxy)], false).unwrap();
    assert!(matches!(remote.tags().unwrap_err(), RegistryError::Unreachable { .. }));
    server.state().login = Login::Basic(format!("Basic {ENCODED}"));
    let remote = client("registry.test", &environment, true).unwrap();
    let refused = remote.tags().unwrap_err();
    assert!(matches!(&refused, RegistryError::PlainLogin(host) if host == "registry.test"), "{refused}");
    assert_eq!(received(&server), Vec::<String>::new());
    // Whoever sits between may name a service of his own by https.
    server.state().login = Login::Token { realm: "https://evil.test/token".into(), token: "t".into() };
    let remote = client("registry.test", &[environment[0], environment[1], ("https_proxy", &proxy)], true).unwrap();
    let refused = remote.tags().unwrap_err();
    assert!(matches!(&refused, RegistryError::PlainLogin(host) if host == "registry.test"), "{refused}");
    assert_eq!(server.count("", "/token"), 0);
    // A service for tokens that this machine cannot have named.
    let (server, remote) = {
        let server = Server::new();
        let remote = with_login(&server, &password());
        (server, remote)
    };
    server.state().login = Login::Token { realm: "http://registry.test/token".into(), token: "t".into() };
    let refused = remote.1.tags().unwrap_err();
    assert!(matches!(refused, RegistryError::Redirect { .. }), "{refused}");
}
