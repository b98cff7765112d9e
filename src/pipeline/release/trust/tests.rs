//! Which signatures count: each way in which one does not is told apart, names the key, and says what to do. Real OpenSSH makes and checks the same signatures.

use std::path::Path;
use std::process::{Command, Stdio};

use super::*;
use crate::release::signature::{KeyError, KeyFile, NAMESPACE, PublicKey, SigningKey};

const DOCUMENT: &[u8] = b"{\"format_version\":2}";

fn trust(lines: &str, now: &str) -> Trust {
    let source = TrustSource::Flag("keys".into());
    Trust { source, signers: AllowedSigners::parse(lines).unwrap(), now: now.parse().unwrap() }
}

const NOW: &str = "2026-11-25T12:00:00Z";

#[test]
fn a_key_for_evidence_does_not_sign_artifacts_and_neither_signature_stands_for_the_other() {
    let key = SigningKey::generate().unwrap();
    let public = key.public().text();
    let [evidence, artifact] =
        [Purpose::Evidence, Purpose::Artifact].map(|purpose| key.sign(purpose.namespace(), DOCUMENT).unwrap());
    let both = trust(&format!("ci@x {public}"), NOW);
    assert!(both.judge_for(Purpose::Evidence, DOCUMENT, &evidence).is_ok());
    assert!(both.judge_for(Purpose::Artifact, DOCUMENT, &artifact).is_ok());
    let why = both.judge_for(Purpose::Artifact, DOCUMENT, &evidence).unwrap_err();
    assert_eq!(why.why, Distrust::Namespace("kforge-evidence".into()));
    assert!(why.to_string().contains("sign it with `kforge package --sign-key`"), "{why}");
    let one = trust(&format!("gpu@x namespaces=\"kforge-evidence\" {public}"), NOW);
    assert!(one.judge_for(Purpose::Evidence, DOCUMENT, &evidence).is_ok());
    let why = one.judge_for(Purpose::Artifact, DOCUMENT, &artifact).unwrap_err();
    assert_eq!((why.why.name(), why.to_string().contains("`kforge-artifact`")), ("not-for-artifacts", true), "{why}");
    assert_eq!(why.advice(), Some(TrustAdvice::Add { purpose: Purpose::Artifact, file: Some("keys".into()) }));
}

/// The advice is for what was signed, and names a file wherever the default of `--add` is another than the one that counts.
#[test]
fn advice_names_the_purpose_and_the_file() {
    let key = SigningKey::generate().unwrap();
    let add = "kforge evidence trust --add PRINCIPAL KEY.pub";
    let home = TrustSource::Home { config: "config.toml".into(), path: "keys".into() };
    for (purpose, source, says) in [
        (Purpose::Evidence, TrustSource::Nothing, format!("make one with `{add}`")),
        (
            Purpose::Artifact,
            TrustSource::Nothing,
            format!("make one with `{add} --for artifacts --file FILE`, and name it"),
        ),
        (Purpose::Evidence, TrustSource::Flag("keys".into()), format!("add it with `{add} --file keys`")),
        (
            Purpose::Artifact,
            TrustSource::Flag("keys".into()),
            format!("add it with `{add} --for artifacts --file keys`"),
        ),
        (Purpose::Evidence, TrustSource::Repository("keys".into()), format!("add it with `{add}`")),
        (Purpose::Artifact, home, format!("add it with `{add} --for artifacts`")),
    ] {
        let trust = Trust { source, ..trust("", NOW) };
        let signature = key.sign(purpose.namespace(), DOCUMENT).unwrap();
        let why = trust.judge_for(purpose, DOCUMENT, &signature).unwrap_err();
        assert!(why.to_string().contains(&says), "`{says}`: {why}");
        assert!(why.advice().is_some() && !why.to_string().contains("names does"), "{why}");
        let tampered = trust.judge_for(purpose, b"another", &signature).unwrap_err();
        assert_eq!(tampered.advice(), None);
    }
}

#[test]
fn a_signature_counts_only_by_a_listed_key_for_evidence_over_this_document_now() {
    let (key, other) = (SigningKey::generate().unwrap(), SigningKey::generate().unwrap());
    let (public, stranger) = (key.public().text(), other.public().text());
    let good = key.sign(NAMESPACE, DOCUMENT).unwrap();
    let print = key.public().fingerprint();
    let signer = trust(&format!("ci@x namespaces=\"kforge-evidence\" {public}"), NOW).judge(DOCUMENT, &good).unwrap();
    assert_eq!((signer.principals.as_str(), &signer.fingerprint), ("ci@x", &print));
    let refused = |lines: &str, document: &[u8], signature: &Signature, name: &str, says: &str| {
        let why = trust(lines, NOW).judge(document, signature).expect_err(name);
        let text = why.to_string();
        assert_eq!(why.why.name(), name, "{text}");
        assert!(text.contains(&signature.key().fingerprint()) && text.contains(says), "`{says}`: {text}");
    };
    let listed = format!("ci@x {public}");
    refused(&format!("ci@x {stranger}"), DOCUMENT, &good, "unknown-key", "does not list");
    refused("", DOCUMENT, &good, "unknown-key", "kforge evidence trust --add");
    refused(&listed, b"another", &good, "tampered", "not one of this document");
    refused(&listed, DOCUMENT, &key.sign("git", DOCUMENT).unwrap(), "namespace", "for the namespace `git`");
    refused(&format!("ci@x namespaces=\"git\" {public}"), DOCUMENT, &good, "not-for-evidence", "does not allow");
    let until = |time: &str| format!("ci@x valid-before=\"{time}\" {public}");
    refused(&until("20261125115959Z"), DOCUMENT, &good, "expired", "expired at 2026-11-25T11:59:59Z");
    refused(&format!("ci@x valid-after=\"20261126\" {public}"), DOCUMENT, &good, "not-yet-valid", "before 2026-11-26");
    assert!(trust(&until("20261125120000Z"), NOW).judge(DOCUMENT, &good).is_ok(), "as OpenSSH: up to that time");
    // A key in two lines counts if one of them accepts it.
    let two = format!("{}\nci@y {public}", until("20200101"));
    assert_eq!(trust(&two, NOW).judge(DOCUMENT, &good).unwrap().principals, "ci@y");
}

#[test]
fn the_next_change_of_trust_is_known() {
    let public = SigningKey::generate().unwrap().public().text();
    let lines = format!(
        "a valid-before=\"20270101\" {public}\nb valid-after=\"20261201\" {public}\nc valid-before=\"20200101\" {public}"
    );
    assert_eq!(trust(&lines, NOW).changes(), Some("2026-12-01T00:00:00Z".parse().unwrap()));
    assert_eq!(trust(&format!("a {public}"), NOW).changes(), None);
}

/// Runs OpenSSH's program in a folder. None if this machine lacks it.
fn keygen(folder: &Path, args: &[&str], input: &[u8]) -> Option<bool> {
    let mut command = Command::new("ssh-keygen");
    command.args(args).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), input).unwrap();
    Some(child.wait().unwrap().success())
}

fn is_there() -> bool {
    let there = Command::new("ssh-keygen").arg("-?").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !there {
        kforge_foundation::base::testing::skipped("no ssh-keygen on PATH");
    }
    there
}

#[test]
fn openssh_accepts_what_is_signed_here_and_the_reverse() {
    if !is_there() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    for kind in ["ed25519", "ecdsa"] {
        assert_eq!(keygen(folder, &["-q", "-t", kind, "-N", "", "-C", "a test", "-f", kind], b""), Some(true));
        let KeyFile::Private(key) = KeyFile::parse(&read(kind)).unwrap() else { panic!("{kind}") };
        let (public, comment) = PublicKey::parse(&read(&format!("{kind}.pub"))).unwrap();
        assert_eq!((&key.public(), comment.as_str()), (&public, "a test"));
        let line = format!("me@x namespaces=\"kforge-evidence\" {}\n", public.text());
        std::fs::write(folder.join("allowed"), &line).unwrap();
        // Signed here, checked there.
        std::fs::write(folder.join("sig"), key.sign(NAMESPACE, DOCUMENT).unwrap().text()).unwrap();
        let check = |namespace, document: &[u8]| {
            let args = ["-Y", "verify", "-f", "allowed", "-I", "me@x", "-n", namespace, "-s", "sig"];
            keygen(folder, &args, document).unwrap()
        };
        assert!(check(NAMESPACE, DOCUMENT), "{kind}");
        assert!(!check(NAMESPACE, b"another") && !check("git", DOCUMENT), "{kind}");
        // Signed there, checked here.
        std::fs::write(folder.join("document"), DOCUMENT).unwrap();
        let _ = std::fs::remove_file(folder.join("document.sig"));
        let sign = ["-q", "-Y", "sign", "-n", NAMESPACE, "-f", kind, "document"];
        assert_eq!(keygen(folder, &sign, b""), Some(true), "{kind}");
        let signature = Signature::parse(&read("document.sig")).unwrap();
        assert_eq!(trust(&line, NOW).judge(DOCUMENT, &signature).unwrap().principals, "me@x");
        assert!(trust(&line, NOW).judge(b"another", &signature).is_err());
    }
}

#[test]
fn keys_behind_a_passphrase_open_with_it_and_keys_that_are_not_supported_are_named() {
    if !is_there() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!(keygen(folder, &["-q", "-t", "ed25519", "-N", "open sesame", "-f", "locked"], b""), Some(true));
    let KeyFile::Encrypted(locked) = KeyFile::parse(&read("locked")).unwrap() else { panic!() };
    assert!(matches!(locked.open("close sesame"), Err(KeyError::Passphrase(_))));
    let signature = locked.open("open sesame").unwrap().sign(NAMESPACE, DOCUMENT).unwrap();
    assert!(signature.verifies(DOCUMENT));
    assert!(matches!(KeyFile::parse(&read("locked.pub")).unwrap(), KeyFile::Elsewhere(_)));
    assert_eq!(keygen(folder, &["-q", "-t", "rsa", "-b", "2048", "-N", "", "-f", "rsa"], b""), Some(true));
    for file in ["rsa", "rsa.pub"] {
        let Err(why) = KeyFile::parse(&read(file)) else { panic!("{file}") };
        assert!(why.to_string().contains("ssh-rsa") && why.to_string().contains("ed25519"), "{why}");
    }
    // Others may sign with RSA: that is reported as such.
    std::fs::write(folder.join("document"), DOCUMENT).unwrap();
    assert_eq!(keygen(folder, &["-q", "-Y", "sign", "-n", NAMESPACE, "-f", "rsa", "document"], b""), Some(true));
    let signature = Signature::parse(&read("document.sig")).unwrap();
    let why = trust(&format!("me@x {}", read("rsa.pub")), NOW).judge(DOCUMENT, &signature).unwrap_err();
    assert_eq!(why.why.name(), "unsupported", "{why}");
    for text in ["", "hello", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n"] {
        assert!(matches!(KeyFile::parse(text), Err(KeyError::NotKey(_))), "{text}");
    }
}
