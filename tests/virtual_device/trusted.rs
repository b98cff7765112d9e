//! Who signed evidence, and whether that counts: for bundles in the repository and imported ones, by keys that the judged tree cannot choose.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use kforge::release::archive;
use kforge::release::signature::{NAMESPACE, SigningKey};
use serde_json::Value;

use crate::lab::{Lab, Machine, SOURCE};
use crate::packaged::licensed;
use crate::project::Built;

const BUNDLE: &str = "evidence/virtual-h.kfe";

fn machine() -> Machine {
    Machine::with(&[(1, 1000.0), (2, 1400.0), (4, 1500.0)])
}

/// A workspace with a bundle of what its device showed, on a machine without a device, with a fresh home.
fn lab() -> Lab {
    let lab = Lab::new(&machine());
    lab.built(&[]);
    run(&lab, &["evidence", "export"], 0);
    let laptop = lab.anew("laptop");
    laptop.on(&Machine { device: None, ..machine() });
    laptop
}

fn output(lab: &Lab, words: &[&str]) -> Output {
    lab.project.command(&[words, &["--offline"]].concat()).stdin(Stdio::null()).output().unwrap()
}

/// Runs `kforge WORDS`, checks the exit code, and returns what it printed.
#[track_caller]
fn run(lab: &Lab, words: &[&str], code: i32) -> String {
    let output = output(lab, words);
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
    said
}

fn git(lab: &Lab, words: &[&str]) {
    let mut command = Command::new("git");
    command
        .current_dir(lab.project.root())
        .args(["-c", "user.name=x", "-c", "user.email=x@x", "-c", "commit.gpgsign=false"])
        .args(words);
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn place(lab: &Lab, name: &str) -> PathBuf {
    lab.project.place().join(name)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Signs the lab's bundle with a new key for a namespace. Returns the line of the key.
fn signed(lab: &Lab, namespace: &str) -> String {
    let key = SigningKey::generate().unwrap();
    sign_with(&lab.project.root().join(BUNDLE), &key, namespace);
    format!("ci@x {}\n", key.public().text())
}

fn sign_with(path: &Path, key: &SigningKey, namespace: &str) {
    let file = fs::read(path).unwrap();
    let document = archive::unpack(&file, archive::LIMITS).unwrap().document;
    fs::write(path, archive::sign(&file, &key.sign(namespace, &document).unwrap()).unwrap()).unwrap();
}

/// How the records that answered a build stand, and who signed them.
#[track_caller]
fn standing(built: &Built) -> (String, Value) {
    let seen = built.finished().filter(|step| step["evidence"].is_object()).map(|step| &step["evidence"]);
    let mut all: Vec<(String, Value)> =
        seen.map(|seen| (seen["standing"].as_str().unwrap().to_string(), seen["signer"].clone())).collect();
    all.dedup();
    let [one] = &all[..] else { panic!("{all:?}") };
    one.clone()
}

fn claimed() -> (String, Value) {
    ("claimed".into(), Value::Null)
}

fn by(signer: &str) -> (String, Value) {
    ("signed".into(), signer.into())
}

#[test]
fn a_bundle_signed_by_a_trusted_key_is_said_to_be_and_any_other_signature_is_named_and_only_claimed() {
    let lab = lab();
    assert_eq!(standing(&lab.built(&[])), claimed());
    assert!(run(&lab, &["build"], 0).contains("claimed by `evidence/virtual-h.kfe`"));
    let line = signed(&lab, NAMESPACE);
    let keys = place(&lab, "keys");
    let trusting = ["--trust", text(&keys)];
    let public = line.trim().strip_prefix("ci@x ").unwrap();
    let print = kforge::release::signature::PublicKey::parse(public).unwrap().0.fingerprint();
    for (lines, says) in [
        (String::new(), "does not list"),
        (format!("ci@x valid-before=\"20260101\" {public}\n"), "a key that expired at 2026-01-01T00:00:00Z"),
        (format!("ci@x valid-after=\"20990101\" {public}\n"), "does not accept before 2099"),
        (format!("ci@x namespaces=\"git\" {public}\n"), "does not allow to sign for `kforge-evidence`"),
    ] {
        fs::write(&keys, lines).unwrap();
        let built = lab.built(&trusting);
        assert_eq!(standing(&built), claimed(), "{says}");
        // A build that has nothing to do says it again.
        for _ in 0..3 {
            let said = run(&lab, &[&["build"], &trusting[..]].concat(), 0);
            assert_eq!(said.matches("is only claimed").count(), 1, "{said}");
            assert!(said.contains("`evidence/virtual-h.kfe` is only claimed") && said.contains(says), "{says}: {said}");
            assert!(said.contains(&print), "{said}");
        }
        // A report says whose claims its results rest on, and an explanation, which plans several times, says it once.
        let said = run(&lab, &[&["report"], &trusting[..]].concat(), 0);
        assert!(!said.contains("is only claimed") && said.contains("claimed by `evidence/virtual-h.kfe`"), "{said}");
        let said = run(&lab, &[&["explain", "p/k/h/select"], &trusting[..]].concat(), 0);
        assert_eq!(said.matches("is only claimed").count(), 1, "{said}");
    }
    fs::write(&keys, &line).unwrap();
    let built = lab.built(&trusting);
    assert_eq!(standing(&built), by("ci@x"));
    for _ in 0..3 {
        let said = run(&lab, &[&["build"], &trusting[..]].concat(), 0);
        let line = "13 observations of Virtual H (sm_90, driver 580) from `evidence/virtual-h.kfe`, signed by ci@x";
        assert!(said.contains(line) && !said.contains("claimed"), "{said}");
    }
    // A signature for another purpose.
    let line = signed(&lab, "git");
    fs::write(&keys, &line).unwrap();
    let built = lab.built(&trusting).says("is for the namespace `git`, not `kforge-evidence`");
    assert_eq!(standing(&built), claimed());
}

#[test]
fn a_document_that_was_changed_after_it_was_signed_is_only_claimed() {
    let lab = lab();
    let line = signed(&lab, NAMESPACE);
    let keys = place(&lab, "keys");
    fs::write(&keys, line).unwrap();
    let path = lab.project.root().join(BUNDLE);
    let unpacked = archive::unpack(&fs::read(&path).unwrap(), archive::LIMITS).unwrap();
    let mut bundle = unpacked.bundle;
    bundle.champions.clear();
    // A consistent bundle of another document, with the signature of the first.
    let mut file = zip::ZipWriter::new(std::io::Cursor::new(vec![]));
    let plain = archive::encode(&bundle).unwrap();
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(&plain[..])).unwrap();
    for at in 0..2 {
        file.raw_copy_file(archive.by_index_raw(at).unwrap()).unwrap();
    }
    file.start_file("signature", zip::write::SimpleFileOptions::default()).unwrap();
    std::io::Write::write_all(&mut file, unpacked.signature.unwrap().text().as_bytes()).unwrap();
    fs::write(&path, file.finish().unwrap().into_inner()).unwrap();
    let built = lab.built(&["--trust", text(&keys)]).says("is not one of this document");
    assert_eq!(standing(&built), claimed());
    run(&lab, &["evidence", "verify", BUNDLE, "--trust", text(&keys)], 103);
}

#[test]
#[ignore = "second tier: many builds"]
fn a_key_that_the_change_itself_adds_does_not_count_with_a_base() {
    let lab = lab();
    let line = signed(&lab, NAMESPACE);
    let ours = ".kforge/allowed_signers";
    lab.project.write(ours, &line);
    // In a folder that is no repository, the tree is the owner's own.
    assert!(!run(&lab, &["build"], 0).contains("differs from `HEAD`"));
    git(&lab, &["init", "--quiet"]);
    lab.project.write(".gitignore", ".kforge\n/target\n");
    git(&lab, &["add", "--all"]);
    git(&lab, &["commit", "--quiet", "-m", "without a key"]);
    for _ in 0..3 {
        let said = run(&lab, &["build"], 0);
        assert!(said.contains("differs from `HEAD`") && said.contains("signed by ci@x"), "{said}");
    }
    let built = lab.built(&["--base", "HEAD"]).says("as it is in HEAD").says("does not list");
    assert_eq!(standing(&built), claimed());
    let views = run(&lab, &["evidence", "verify", BUNDLE, "--base", "HEAD"], 103);
    assert!(views.contains("only claimed"), "{views}");
    lab.project.write(".gitignore", "/target\n");
    git(&lab, &["add", "--all"]);
    git(&lab, &["commit", "--quiet", "-m", "with a key"]);
    for _ in 0..3 {
        let said = run(&lab, &["build"], 0);
        assert!(!said.contains("differs from `HEAD`") && said.contains("signed by ci@x"), "{said}");
    }
    assert_eq!(standing(&lab.built(&["--base", "HEAD"])), by("ci@x"));
    assert_eq!(standing(&lab.built(&["--base", "HEAD~1"])), claimed());
    // What is committed is taken, not what lies there; and `HEAD` may move without a change of the file.
    lab.project.write(ours, "");
    assert_eq!(standing(&lab.built(&["--base", "HEAD"])), by("ci@x"));
    lab.project.write(ours, &line);
    run(&lab, &["build"], 0);
    git(&lab, &["reset", "--quiet", "--soft", "HEAD~1"]);
    assert!(run(&lab, &["build"], 0).contains("differs from `HEAD`"));
    lab.project.build(&["--base", "nowhere"]).expect(101).says("cannot read the revision `nowhere`");
    // A file that the user names comes before the base.
    let keys = place(&lab, "keys");
    fs::write(&keys, &line).unwrap();
    assert_eq!(standing(&lab.built(&["--base", "HEAD", "--trust", text(&keys)])), by("ci@x"));
}

#[test]
fn a_comparison_trusts_the_keys_of_its_base() {
    let lab = lab();
    git(&lab, &["init", "--quiet"]);
    lab.project.write(".gitignore", "/target\n");
    git(&lab, &["add", "--all"]);
    git(&lab, &["commit", "--quiet", "-m", "without a key"]);
    let line = signed(&lab, NAMESPACE);
    lab.project.write(".kforge/allowed_signers", &line);
    git(&lab, &["add", "--all"]);
    git(&lab, &["commit", "--quiet", "-m", "a key and a bundle that it signed"]);
    let said = run(&lab, &["compare", "HEAD~1"], 0);
    assert!(said.contains("is only claimed") && said.contains("HEAD~1"), "{said}");
    let said = run(&lab, &["compare", "HEAD~1", "HEAD"], 0);
    assert!(said.contains("is only claimed"), "{said}");
    assert!(!run(&lab, &["compare", "HEAD"], 0).contains("is only claimed"));
}

#[test]
#[ignore = "second tier: many builds"]
fn a_run_in_ci_trusts_the_keys_of_its_base() {
    let lab = lab();
    git(&lab, &["init", "--quiet"]);
    lab.project.write(".gitignore", "/target\n");
    git(&lab, &["add", "--all"]);
    git(&lab, &["commit", "--quiet", "-m", "without a key"]);
    lab.project.write(".kforge/allowed_signers", &signed(&lab, NAMESPACE));
    // The change brings a signed bundle and the key. A tolerance is judged again on the same observations.
    lab.project.edit("kernel.toml", "atol = 1e-6", "atol = 1e-5");
    run(&lab, &["build", "--require-evidence"], 0);
    let said = run(&lab, &["ci", "--base", "HEAD"], 103);
    assert!(said.contains("does not list") && said.contains("evidence is missing or undecided"), "{said}");
    // Whoever takes claims takes those of the change, too.
    run(&lab, &["ci", "--base", "HEAD", "--require-evidence=claimed"], 0);
    git(&lab, &["add", "--all"]);
    git(&lab, &["commit", "--quiet", "-m", "a key and a bundle that it signed"]);
    assert!(run(&lab, &["ci", "--base", "HEAD"], 0).contains("Affected 0 of 1 kernel\n"));
    lab.project.edit("kernel.toml", "atol = 1e-5", "atol = 1e-6");
    let said = run(&lab, &["ci", "--base", "HEAD"], 0);
    assert!(said.contains("Affected 1 of 1 kernel: p/k\n") && said.contains("same       p/k on h at big"), "{said}");
}

#[test]
#[ignore = "second tier: many builds"]
fn trust_is_asked_for_again_in_each_build_with_imported_evidence() {
    let lab = lab();
    let path = lab.project.root().join(BUNDLE);
    let line = signed(&lab, NAMESPACE);
    let (bundle, keys) = (place(&lab, "h.kfe"), place(&lab, "keys"));
    fs::rename(&path, &bundle).unwrap();
    let trusted = lab.clone();
    let trusted = Lab { project: trusted.project.var("KFORGE_EVIDENCE_TRUST", keys.as_os_str()), ..trusted };
    fs::write(&keys, "").unwrap();
    let said = run(&trusted, &["evidence", "import", text(&bundle)], 0);
    assert!(said.contains("only claimed") && said.contains("(`KFORGE_EVIDENCE_TRUST`)"), "{said}");
    assert_eq!(standing(&trusted.built(&[])), claimed());
    for _ in 0..3 {
        let said = run(&trusted, &["build"], 0);
        assert!(said.contains("`h.kfe` is only claimed") && said.contains("does not list"), "{said}");
    }
    fs::write(&keys, &line).unwrap();
    assert_eq!(standing(&trusted.built(&[])), by("ci@x"));
    for _ in 0..3 {
        let said = run(&trusted, &["build"], 0);
        assert!(said.contains("from `h.kfe`, signed by ci@x") && !said.contains("claimed"), "{said}");
    }
    let said = run(&trusted, &["evidence", "list"], 0);
    assert!(said.contains("from `h.kfe`, signed by ci@x"), "{said}");
    // Revoked: from the next build on.
    fs::write(&keys, line.replace("ci@x ", "ci@x valid-before=\"20260101\" ")).unwrap();
    for _ in 0..3 {
        let said = run(&trusted, &["build"], 0);
        assert!(said.contains("claimed by `h.kfe`") && said.contains("expired"), "{said}");
    }
    assert_eq!(standing(&trusted.built(&[])), claimed());
    fs::write(&keys, &line).unwrap();
    assert_eq!(standing(&trusted.built(&[])), by("ci@x"));
    // A home may be a copy of somebody else's: a name beside a record vouches for nothing.
    let documents = lab.project.home().join("signed");
    let document = fs::read_dir(&documents).unwrap().next().unwrap().unwrap().path();
    let bytes = fs::read(&document).unwrap();
    fs::write(&document, &bytes[..bytes.len() - 1]).unwrap();
    assert_eq!(standing(&trusted.built(&[])), claimed());
    fs::write(&document, bytes).unwrap();
    assert_eq!(standing(&trusted.built(&[])), by("ci@x"));
    run(&trusted, &["cache", "verify"], 0);
    // Without the document, no later import of the unsigned bundle brings the signer back; that of the signed one does.
    fs::remove_file(&document).unwrap();
    assert_eq!(standing(&trusted.built(&[])), claimed());
    run(&trusted, &["evidence", "import", text(&bundle)], 0);
    assert_eq!(standing(&trusted.built(&[])), by("ci@x"));
}

#[test]
fn a_signer_vouches_only_for_the_records_of_the_document() {
    let lab = lab();
    let line = signed(&lab, NAMESPACE);
    let (keys, path) = (place(&lab, "keys"), lab.project.root().join(BUNDLE));
    fs::write(&keys, &line).unwrap();
    let trust = ["--trust", text(&keys)];
    run(&lab, &["evidence", "import", BUNDLE], 0);
    fs::remove_file(&path).unwrap();
    assert_eq!(standing(&lab.built(&trust)), by("ci@x"));
    // Somebody who can write the home forges a record and lays the name of the signed document beside it.
    for folder in fs::read_dir(lab.project.home().join("evidence")).unwrap() {
        let folder = folder.unwrap().path();
        let files: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
        let record = files.iter().find(|file| file.extension().is_some_and(|e| e == "json")).unwrap();
        let name = record.file_name().unwrap().to_str().unwrap();
        let hex = name.split('@').next().unwrap();
        let mut value: Value = serde_json::from_slice(&fs::read(record).unwrap()).unwrap();
        value["provenance"]["driver"] = "580.9".into();
        let forged: kforge::engine::evidence::Record = serde_json::from_value(value).unwrap();
        let bytes = serde_json::to_vec(&forged).unwrap();
        let other = kforge::base::Digest::of(&bytes).hex();
        for file in &files {
            let name = file.file_name().unwrap().to_str().unwrap();
            let to = folder.join(name.replace(hex, &other));
            match name.ends_with(".json") {
                true => fs::write(to, &bytes).unwrap(),
                false => drop(fs::copy(file, to).unwrap()),
            }
            fs::remove_file(file).unwrap();
        }
    }
    assert_eq!(standing(&lab.built(&trust)), claimed());
}

#[test]
fn the_sources_of_trust_have_an_order_and_a_repository_cannot_name_one() {
    let lab = lab();
    let line = signed(&lab, NAMESPACE);
    let listed = |words: &[&str]| run(&lab, &[&["evidence", "trust"], words].concat(), 0);
    assert!(listed(&[]).contains("nobody"), "{}", listed(&[]));
    lab.project.write(".kforge/allowed_signers", &line.replace("ci@x", "of-the-repository"));
    assert!(listed(&[]).contains("of-the-repository"));
    let file = |name: &str| {
        let path = place(&lab, name);
        fs::write(&path, line.replace("ci@x", name)).unwrap();
        path
    };
    let (of_home, of_variable, of_flag) = (file("of-the-home"), file("of-the-variable"), file("of-the-flag"));
    let config = lab.project.home().join("config.toml");
    fs::create_dir_all(lab.project.home()).unwrap();
    fs::write(&config, format!("[evidence]\ntrust = \"{}\"\n", of_home.display())).unwrap();
    let said = listed(&[]);
    assert!(said.contains("of-the-home") && !said.contains("of-the-repository"), "{said}");
    assert_eq!(standing(&lab.built(&[])), by("of-the-home"));
    let varied = lab.clone();
    let varied = Lab { project: varied.project.var("KFORGE_EVIDENCE_TRUST", of_variable.as_os_str()), ..varied };
    assert_eq!(standing(&varied.built(&[])), by("of-the-variable"));
    assert_eq!(standing(&varied.built(&["--trust", text(&of_flag)])), by("of-the-flag"));
    let lines = run(&varied, &["evidence", "trust", "--message-format", "json", "--trust", text(&of_flag)], 0);
    let view: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&view["source"], &view["principals"], &view["reason"]),
        (&"flag".into(), &"of-the-flag".into(), &Value::Null)
    );
    valid("trusted", &view);
    lab.project.write(".kforge/config.toml", "[evidence]\ntrust = \".kforge/allowed_signers\"\n");
    let said = run(&lab, &["build"], 101);
    assert!(said.contains("`evidence.trust` cannot be set by the configuration of a repository"), "{said}");
    fs::remove_file(lab.project.root().join(".kforge/config.toml")).unwrap();
    // A file that is named must exist and be of the format.
    let said = run(&lab, &["build", "--trust", "nothing"], 101);
    assert!(said.contains("nothing` (`--trust`): No such file"), "{said}");
    fs::write(&of_flag, format!("\n{}", line.replace("ci@x", "ci@x cert-authority"))).unwrap();
    let said = run(&lab, &["build", "--trust", text(&of_flag)], 101);
    assert!(said.contains("line 2: `cert-authority` is not supported"), "{said}");
}

#[track_caller]
fn valid(schema: &str, value: &Value) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("schemas/{schema}.json"));
    let schema = jsonschema::validator_for(&serde_json::from_slice(&fs::read(file).unwrap()).unwrap()).unwrap();
    assert!(schema.is_valid(value), "{value}");
}

/// Makes a key with OpenSSH. Returns whether this machine has it.
fn keygen(lab: &Lab, name: &str, passphrase: &str) -> bool {
    let path = place(lab, name);
    let mut command = Command::new("ssh-keygen");
    command.args(["-q", "-t", "ed25519", "-C", "of a test", "-N", passphrase, "-f", text(&path)]);
    match command.status() {
        Ok(status) => {
            assert!(status.success(), "ssh-keygen made no key");
            true
        }
        Err(_) => {
            kforge::base::testing::skipped("no ssh-keygen on PATH");
            false
        }
    }
}

#[test]
fn bundles_are_signed_verified_and_trusted_by_commands() {
    let lab = lab();
    if !keygen(&lab, "key", "") {
        return;
    }
    let (key, public) = (place(&lab, "key"), place(&lab, "key.pub"));
    let said = run(&lab, &["evidence", "verify", BUNDLE], 103);
    assert!(said.contains("it is unsigned"), "{said}");
    let plain = fs::read(lab.project.root().join(BUNDLE)).unwrap();
    let said = run(&lab, &["evidence", "sign", BUNDLE, "--key", text(&key)], 0);
    assert!(said.contains("Signed `evidence/virtual-h.kfe` with SHA256:"), "{said}");
    let said = run(&lab, &["evidence", "verify", BUNDLE], 103);
    assert!(said.contains("and there is no list of trusted keys that counts for evidence"), "{said}");
    let said = run(&lab, &["evidence", "trust", "--add", "ci@x", text(&public)], 0);
    assert!(said.contains(".kforge/allowed_signers"), "{said}");
    let lines = fs::read_to_string(lab.project.root().join(".kforge/allowed_signers")).unwrap();
    assert!(lines.starts_with("ci@x namespaces=\"kforge-evidence\" ssh-ed25519 "), "{lines}");
    assert!(run(&lab, &["evidence", "trust", "--add", "ci@x", text(&public)], 0).contains("there already"));
    assert_eq!(lines, fs::read_to_string(lab.project.root().join(".kforge/allowed_signers")).unwrap());
    let said = run(&lab, &["evidence", "verify", BUNDLE], 0);
    assert!(said.contains("signed by ci@x (SHA256:"), "{said}");
    // One bundle that is not signed decides the exit code; each has its line.
    let other = place(&lab, "plain.kfe");
    fs::write(&other, plain).unwrap();
    let words = ["evidence", "verify", BUNDLE, text(&other), "--message-format", "json"];
    let found = output(&lab, &words);
    assert_eq!(found.status.code(), Some(103));
    let views: Vec<Value> =
        String::from_utf8(found.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    views.iter().for_each(|view| valid("signature", view));
    assert_eq!((&views[0]["standing"], &views[0]["signer"]), (&"signed".into(), &"ci@x".into()));
    assert_eq!((&views[1]["standing"], &views[1]["reason"]), (&"claimed".into(), &"unsigned".into()));
    // A signature of another key is replaced only on request, and its key may sign again.
    run(&lab, &["evidence", "sign", BUNDLE, "--key", text(&key)], 0);
    if !keygen(&lab, "mine", "") {
        return;
    }
    let mine = place(&lab, "mine");
    let before = fs::read(lab.project.root().join(BUNDLE)).unwrap();
    let words = ["evidence", "sign", text(&other), BUNDLE, "--key", text(&mine)];
    let said = run(&lab, &words, 101);
    let told = "`evidence/virtual-h.kfe` is signed by ci@x (SHA256:";
    assert!(said.contains(told) && said.contains("`--replace`"), "{said}");
    assert!(fs::read(lab.project.root().join(BUNDLE)).unwrap() == before, "nothing is signed");
    run(&lab, &["evidence", "verify", text(&other)], 103);
    run(&lab, &["evidence", "sign", BUNDLE, "--key", text(&mine), "--replace"], 0);
    assert!(run(&lab, &["evidence", "verify", BUNDLE], 103).contains("SHA256:"));
    let said = run(&lab, &["evidence", "sign", BUNDLE, "--key", text(&key)], 101);
    assert!(said.contains("is signed by SHA256:"), "{said}");
    // What cannot be signed or added changes nothing.
    let before = fs::read(&other).unwrap();
    let said = run(&lab, &["evidence", "sign", text(&other), "nothing.kfe", "--key", text(&key)], 101);
    assert!(said.contains("cannot read `nothing.kfe`") && fs::read(&other).unwrap() == before, "{said}");
    run(&lab, &["evidence", "sign", text(&other)], 2);
    for name in ["", "a b", "a,b", "*", "!a", "#a"] {
        let said = run(&lab, &["evidence", "trust", "--add", name, text(&public)], 101);
        assert!(said.contains("is no principal"), "{name}: {said}");
    }
    let said = run(&lab, &["evidence", "trust", "--add", "a", BUNDLE], 101);
    assert!(said.contains("cannot read") || said.contains("not a public key"), "{said}");
    let said = run(&lab, &["evidence", "trust", "--add", "a", text(&key)], 101);
    assert!(said.contains("is a private key: expected its public half") && said.contains("`.pub`"), "{said}");
}

#[test]
fn a_key_behind_a_passphrase_is_not_asked_for_without_a_terminal_and_an_agent_signs_instead() {
    let lab = lab();
    if !keygen(&lab, "locked", "open sesame") {
        return;
    }
    let (key, public) = (place(&lab, "locked"), place(&lab, "locked.pub"));
    let said = run(&lab, &["evidence", "sign", BUNDLE, "--key", text(&key)], 101);
    assert!(said.contains("is behind a passphrase") && said.contains("ssh-agent"), "{said}");
    let said = run(&lab, &["evidence", "sign", BUNDLE, "--key", text(&public)], 101);
    assert!(said.contains("ssh-keygen did not sign"), "{said}");
    if !keygen(&lab, "open", "") {
        return;
    }
    let socket = place(&lab, "agent");
    let Ok(mut agent) = Command::new("ssh-agent").args(["-D", "-a", text(&socket)]).stdout(Stdio::null()).spawn()
    else {
        return kforge::base::testing::skipped("no ssh-agent on PATH");
    };
    while !socket.exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let (key, public) = (place(&lab, "open"), place(&lab, "open.pub"));
    let added = Command::new("ssh-add").args(["-q", text(&key)]).env("SSH_AUTH_SOCK", &socket).status().unwrap();
    fs::remove_file(&key).unwrap();
    let with = lab.clone();
    let with = Lab { project: with.project.var("SSH_AUTH_SOCK", socket.as_os_str()), ..with };
    let said = output(&with, &["evidence", "sign", BUNDLE, "--key", text(&public)]);
    let _ = agent.kill();
    let _ = agent.wait();
    assert!(added.success() && said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    run(&lab, &["evidence", "trust", "--add", "agent@x", text(&public)], 0);
    assert!(run(&lab, &["evidence", "verify", BUNDLE], 0).contains("signed by agent@x"));
}

#[test]
fn a_key_that_signs_once_leaves_only_its_public_half() {
    let lab = lab();
    let keys = lab.project.root().join("allowed_signers");
    fs::write(&keys, "# ours\n").unwrap();
    let once = ["evidence", "sign", BUNDLE, "--once", "allowed_signers", "--principal", "recording@x"];
    let said = run(&lab, &once, 0);
    assert!(said.contains("Discarded the key"), "{said}");
    let trust = ["--trust", text(&keys)];
    run(&lab, &[&["evidence", "verify", BUNDLE], &trust[..]].concat(), 0);
    let first = fs::read_to_string(&keys).unwrap();
    assert!(first.starts_with("# ours\nrecording@x namespaces=\"kforge-evidence\" ssh-ed25519 "), "{first}");
    // Another recording has another key, which replaces the first.
    run(&lab, &once, 0);
    let second = fs::read_to_string(&keys).unwrap();
    assert!(second != first && second.lines().count() == 2, "{second}");
    assert_eq!(standing(&lab.built(&trust)), by("recording@x"));
    run(&lab, &["evidence", "sign", BUNDLE, "--once", "allowed_signers"], 2);
}

#[test]
#[ignore = "second tier: many builds"]
fn reproduce_trusts_the_keys_that_it_is_given_in_both_builds() {
    let lab = licensed();
    // No two compilations give the same machine code, so all depends on whether the binary of the signed bundle counts.
    lab.project.write("k.cu", &format!("#pragma unlike\n#pragma sass k<4> LDG.E.128 2\n{SOURCE}"));
    lab.built(&[]);
    run(&lab, &["evidence", "export"], 0);
    fs::write(place(&lab, "keys"), signed(&lab, NAMESPACE)).unwrap();
    lab.on(&Machine { device: None, ..machine() });
    let said = run(&lab, &["reproduce"], 103);
    assert!(said.contains("differs in"), "{said}");
    let said = run(&lab, &["reproduce", "--trust", "../keys"], 0);
    assert!(said.contains("1 artifact: all bytes are equal"), "{said}");
}
