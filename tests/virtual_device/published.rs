//! `kforge publish` and `kforge install`: from a package to a folder or a registry, and from there to somebody who trusts its key, or does not.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use kforge::release::install_lock::InstallLock;
use kforge::release::signature::{ARTIFACT_NAMESPACE, NAMESPACE};
use serde_json::Value;

use crate::lab::{Lab, Machine};
use crate::packaged::{ARCHIVE, FOLDER, built, key, run};
use crate::packaged_again::unsigned;
use crate::server::{Fault, Server};

const LOCK: &str = "kforge-install.lock";

/// A package with a signed artifact, and somebody else with an empty folder.
pub(crate) struct World {
    pub(crate) lab: Lab,
    pub(crate) reader: Lab,
    pub(crate) archive: String,
    /// The list of keys that the reader trusts.
    pub(crate) trusted: String,
}

pub(crate) fn world() -> World {
    world_of(built())
}

/// The same with a kernel whose entry has a name that a loader can hold: the stub compiler does not mangle names.
fn loadable() -> World {
    let machine = Machine::default().rule("", "ns = 1000.0");
    let lab = Lab::new(&machine).manifest("version = \"0.1.0\"", "version = \"0.1.0\"\nlicense = \"MIT\"");
    let cuda = lab.project.root().join("cuda").display().to_string();
    let lab = lab.manifest("path = \"cuda\"", &format!("path = \"{cuda}\""));
    let lab = lab.manifest("tune.V = [1, 2, 4]\n", "").manifest("entry = \"k<V>\"", "entry = \"k\"");
    lab.project.write("k.cu", "extern \"C\" __global__ void k(const float *x, float *y, int n) {}\n");
    lab.built(&[]);
    world_of(lab)
}

fn world_of(lab: Lab) -> World {
    let (private, trusted) = key(&lab, ARTIFACT_NAMESPACE);
    run(&lab, &["package", "--sign-key", private.to_str().unwrap()], 0);
    let reader = lab.anew("reader");
    fs::remove_dir_all(reader.project.root()).unwrap();
    fs::create_dir(reader.project.root()).unwrap();
    let archive = lab.project.root().join(ARCHIVE).display().to_string();
    World { archive, trusted: trusted.display().to_string(), lab, reader }
}

impl World {
    /// A second version, packaged and signed.
    pub(crate) fn another_version(&self, version: &str) -> String {
        self.changed("version = \"0.1.0\"", &format!("version = \"{version}\""), version)
    }

    /// The package of this version with another text in its manifest, packaged and signed.
    pub(crate) fn changed(&self, from: &str, to: &str, version: &str) -> String {
        let lab = self.lab.clone().manifest(from, to);
        lab.built(&[]);
        let private = lab.project.place().join("key");
        run(&lab, &["package", "--sign-key", private.to_str().unwrap()], 0);
        lab.project.root().join(format!("target/kforge/package/p-{version}.tar")).display().to_string()
    }

    pub(crate) fn publish(&self, words: &[&str], code: i32) -> String {
        run(&self.lab, &[&["publish"], words].concat(), code)
    }

    /// `kforge install` by the reader, who trusts the key.
    #[track_caller]
    pub(crate) fn install(&self, words: &[&str], code: i32) -> String {
        run(&self.reader, &[&["install", "--trust", &self.trusted], words].concat(), code)
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.reader.project.root().join(name)
    }

    pub(crate) fn registry(&self) -> String {
        self.lab.project.place().join("registry").display().to_string()
    }

    pub(crate) fn lock(&self) -> InstallLock {
        InstallLock::parse(&fs::read_to_string(self.at(LOCK)).unwrap()).unwrap()
    }
}

/// The names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return vec![] };
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Every file below a folder with its bytes.
pub(crate) fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files =
        walkdir::WalkDir::new(folder).into_iter().map(Result::unwrap).filter(|entry| entry.file_type().is_file());
    files.map(|e| (e.path().strip_prefix(folder).unwrap().to_path_buf(), fs::read(e.path()).unwrap())).collect()
}

#[test]
fn an_artifact_goes_through_a_folder_to_somebody_who_trusts_its_key() {
    let world = world();
    let registry = world.registry();
    let said = world.publish(&[&world.archive, &registry, "--dry-run"], 0);
    assert!(said.contains("would publish p 0.1.0 as `0.1.0`") && !Path::new(&registry).exists(), "{said}");
    let said = world.publish(&[&world.archive, &registry], 0);
    assert!(said.contains("Published p 0.1.0 as `0.1.0`") && said.contains("signed with SHA256:"), "{said}");
    assert_eq!(names(Path::new(&registry)), ["blobs", "index.json", "oci-layout"]);
    let before = tree(Path::new(&registry));
    let said = world.publish(&[world.lab.project.root().join(FOLDER).to_str().unwrap(), &registry], 0);
    assert!(said.contains("nothing changes"), "{said}");
    assert_eq!(tree(Path::new(&registry)), before);

    let said = world.install(&[&registry, "--dry-run"], 0);
    assert!(said.contains("would install p 0.1.0 (1 kernel, signed by me@x) in `kernels/p`"), "{said}");
    assert_eq!(names(&world.at("")), Vec::<String>::new());
    let said = world.install(&[&registry], 0);
    assert!(said.contains("Installed p 0.1.0"), "{said}");
    // What is there is the artifact as it was packaged, signature included.
    assert_eq!(tree(&world.at("kernels/p")), tree(&world.lab.project.root().join(FOLDER)));
    assert_eq!(
        (names(&world.at("")), names(&world.at("kernels"))),
        (vec!["kernels".into(), LOCK.into()], vec!["p".into()])
    );
    let lock = world.lock();
    let entry = lock.get("p").unwrap();
    assert_eq!(
        (entry.tag.as_deref(), entry.signed_by.as_deref(), &*entry.source),
        (Some("0.1.0"), Some("me@x"), &*registry)
    );
    let schema = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/install-lock.json")).unwrap();
    let schema = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    let table: toml::Table = fs::read_to_string(world.at(LOCK)).unwrap().parse().unwrap();
    assert!(schema.is_valid(&serde_json::to_value(table).unwrap()));
    // Without sources, the lockfile says what is installed, and what is there needs nothing.
    fs::rename(&registry, format!("{registry}-away")).unwrap();
    assert!(world.install(&["--locked"], 0).contains("Fresh p 0.1.0"));
    let text = fs::read_to_string(world.at(LOCK)).unwrap();
    fs::remove_dir_all(world.at("kernels")).unwrap();
    let said = world.install(&[], 101);
    assert!(said.contains("is neither an artifact nor a folder to which artifacts were published"), "{said}");
    fs::rename(format!("{registry}-away"), &registry).unwrap();
    assert!(world.install(&["--locked"], 0).contains("Installed p 0.1.0"));
    assert_eq!(fs::read_to_string(world.at(LOCK)).unwrap(), text);
    let said = world.install(&[&registry, "--message-format", "json"], 0);
    let value: Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
    assert_eq!([&value["reason"], &value["status"], &value["name"]], ["installed", "present", "p"]);
    assert_eq!(value["source_before"], Value::Null);
}

#[test]
fn a_layout_that_was_copied_without_types_is_read_and_what_else_lies_there_is_told() {
    let world = world();
    let registry = world.registry();
    world.publish(&[&world.archive, &registry], 0);
    let index = Path::new(&registry).join("index.json");
    let whole: Value = serde_json::from_slice(&fs::read(&index).unwrap()).unwrap();
    let changed = |change: &dyn Fn(&mut serde_json::Map<String, Value>)| {
        let mut value = whole.clone();
        value["manifests"].as_array_mut().unwrap().iter_mut().for_each(|entry| change(entry.as_object_mut().unwrap()));
        fs::write(&index, value.to_string()).unwrap();
    };
    // The manifest itself says what it is.
    changed(&|entry| drop(entry.remove("artifactType")));
    assert!(world.install(&[&registry], 0).contains("Installed p 0.1.0"));
    changed(&|entry| drop(entry.insert("artifactType".into(), "application/x.other".into())));
    let said = world.install(&[&registry], 101);
    assert!(said.contains("lists `0.1.0` of the type `application/x.other`"), "{said}");
    assert!(said.contains("expected a manifest of the type `application/vnd.kforge.package.v1` with a tag"), "{said}");
    changed(&|entry| drop(entry.remove("annotations")));
    let said = world.install(&[&registry], 101);
    assert!(said.contains("of the type `application/vnd.kforge.package.v1` without a tag"), "{said}");
    changed(&|entry| drop(entry.insert("mediaType".into(), "application/x.other".into())));
    world.install(&[&registry], 0);
}

#[test]
fn nothing_appears_that_the_reader_does_not_trust() {
    let world = world();
    let registry = world.registry();
    world.publish(&[&world.archive, &registry], 0);
    let refused = |words: &[&str], trust: Option<&str>, says: &str| {
        let trust: Vec<&str> = trust.iter().flat_map(|file| ["--trust", file]).collect();
        let said = run(&world.reader, &[&["install"], words, &trust].concat(), 103);
        assert!(said.contains(says), "{words:?}: {said}");
        assert_eq!(names(&world.at("")), Vec::<String>::new(), "{words:?}");
    };
    refused(&[&registry], None, "no list of trusted keys");
    refused(&[&world.archive], None, "no list of trusted keys");
    let other = world.lab.project.place().join("other");
    let theirs = fs::read_to_string(&world.trusted).unwrap();
    fs::write(&other, theirs.replace(ARTIFACT_NAMESPACE, NAMESPACE)).unwrap();
    refused(&[&registry], other.to_str(), "does not allow to sign for `kforge-artifact`");
    let said = run(&world.reader, &["install", &registry, "--allow-untrusted"], 0);
    assert!(said.contains("with a signature by SHA256:") && said.contains("does not count (unknown-key)"), "{said}");
    // Trust is judged again, also of what is there.
    let said = run(&world.reader, &["install"], 103);
    assert!(said.contains("is not trusted"), "{said}");
    let said = world.install(&["--locked"], 101);
    assert!(said.contains("--locked was passed") && said.contains("signed by me@x"), "{said}");
    world.install(&[], 0);
    assert_eq!(world.lock().get("p").unwrap().signed_by.as_deref(), Some("me@x"));

    // An unsigned artifact is published only on request, and installed only on request.
    unsigned(&world.lab);
    let elsewhere = world.lab.project.place().join("unsigned").display().to_string();
    let said = world.publish(&[&world.archive, &elsewhere], 103);
    assert!(
        said.contains("is not signed, and its readers would refuse it") && !Path::new(&elsewhere).exists(),
        "{said}"
    );
    assert!(world.publish(&[&world.archive, &elsewhere, "--allow-unsigned"], 0).contains("is not signed"));
    assert!(world.install(&[&elsewhere], 103).contains("is not signed"));
    // Nor is one that was signed as evidence, or changed.
    let (evidence, _) = key(&world.lab, NAMESPACE);
    run(&world.lab, &["package", "--sign-key", evidence.to_str().unwrap()], 0);
    let folder = world.lab.project.root().join(FOLDER);
    fs::write(folder.join("kernels.json"), "{}").unwrap();
    let said = world.publish(&[folder.to_str().unwrap(), &elsewhere], 101);
    assert!(said.contains("`kernels.json` is not the file"), "{said}");
}

#[test]
fn a_tag_that_was_moved_and_a_folder_with_changes_are_refused() {
    let world = world();
    let registry = world.registry();
    world.publish(&[&world.archive, &registry, "--tag", "stable"], 0);
    world.install(&[&format!("{registry}:stable")], 0);
    let second = world.another_version("0.2.0");
    let said = world.publish(&[&second, &registry, "--tag", "stable"], 101);
    assert!(said.contains("the tag `stable`") && said.contains("names another artifact"), "{said}");
    world.publish(&[&second, &registry, "--tag", "stable", "--replace"], 0);
    let said = world.install(&[&format!("{registry}:stable")], 101);
    assert!(said.contains("it was changed after it was installed here") && said.contains("--update"), "{said}");
    // The lockfile still gives what it says, by its digest.
    fs::remove_dir_all(world.at("kernels")).unwrap();
    assert!(world.install(&["--locked"], 0).contains("Installed p 0.1.0"));
    let said = world.install(&[&format!("{registry}:stable"), "--update", "--locked"], 101);
    assert!(said.contains("`p` would change from 0.1.0"), "{said}");
    let said = world.install(&[&format!("{registry}:stable"), "--update"], 0);
    assert!(said.contains("Installed p 0.2.0") && said.contains("in place of 0.1.0"), "{said}");
    // What the user changed or put there is not replaced.
    fs::write(world.at("kernels/p/notes.txt"), "mine").unwrap();
    world.publish(&[&world.archive, &registry], 0);
    let said = world.install(&[&format!("{registry}:0.1.0"), "--update"], 101);
    assert!(said.contains("`kernels/p` is not replaced") && said.contains("`notes.txt` is not listed"), "{said}");
    assert_eq!(fs::read_to_string(world.at("kernels/p/notes.txt")).unwrap(), "mine");
    fs::create_dir_all(world.at("mine/p")).unwrap();
    fs::write(world.at("mine/p/thesis.txt"), "mine").unwrap();
    assert!(world.install(&[&world.archive, "--into", "mine", "--update"], 101).contains("`mine/p` is not replaced"));
    for into in ["../out", "/elsewhere", "a/../../b"] {
        assert!(world.install(&[&world.archive, "--into", into], 2).contains("is not below the folder of"), "{into}");
    }
    // A lockfile that somebody else wrote leads nowhere else.
    let text = fs::read_to_string(world.at(LOCK)).unwrap();
    fs::write(world.at(LOCK), text.replace("kernels/p", "../p")).unwrap();
    assert!(world.install(&[], 101).contains("names a folder outside of its own"));
    fs::write(
        world.at(LOCK),
        text.replace("root = \"sha256:", "root = \"sha256:0").replacen("0\"\nsigned", "\"\nsigned", 1),
    )
    .unwrap();
    fs::remove_dir_all(world.at("kernels")).unwrap();
    world.install(&[], 101);
    assert!(!world.at("kernels").exists());
    fs::remove_file(world.at(LOCK)).unwrap();
    assert!(world.install(&[], 101).contains("there is nothing to install"));
    // The newest version is taken unless a tag is named, and a folder of other things is no place for artifacts.
    world.publish(&[&second, &registry], 0);
    assert!(world.install(&[&registry], 0).contains("Installed p 0.2.0"));
    let said = world.publish(&[&world.archive, world.at("mine").to_str().unwrap()], 101);
    assert!(said.contains("holds other files"), "{said}");
}

/// Whoever can write to a place has no key, but has every artifact that was ever signed.
#[test]
#[ignore = "second tier: many builds"]
fn a_signed_artifact_under_a_false_tag_or_in_place_of_another_is_refused() {
    let world = world();
    let registry = world.registry();
    let said = world.publish(&[&world.archive, &registry, "--tag", "9.9.9"], 2);
    assert!(said.contains("the tag `9.9.9` states a version") && !Path::new(&registry).exists(), "{said}");
    // A path names a tag as `install` reads it.
    let said = world.publish(&[&world.archive, &format!("{registry}:beta")], 0);
    assert!(said.contains("as `beta`") && names(Path::new(&registry)).contains(&"index.json".into()), "{said}");
    let digest = format!("{registry}@sha256:{}", "0".repeat(64));
    assert!(world.publish(&[&world.archive, &digest], 2).contains("names a digest"));
    let index = Path::new(&registry).join("index.json");
    let honest = fs::read_to_string(&index).unwrap();
    fs::write(&index, honest.replace("\"beta\"", "\"9.9.9\"")).unwrap();
    for source in [registry.clone(), format!("{registry}:9.9.9")] {
        for words in [vec![source.as_str()], vec![&source, "--update"]] {
            let said = world.install(&words, 101);
            assert!(said.contains("the tag `9.9.9` of") && said.contains("names version 0.1.0"), "{said}");
        }
    }
    assert!(!world.at(LOCK).exists());
    // The newest that a place offers is older than what is installed.
    let second = world.another_version("0.2.0");
    let both = format!("{registry}-both");
    world.publish(&[&second, &both], 0);
    world.install(&[&both], 0);
    fs::remove_dir_all(&both).unwrap();
    world.publish(&[&world.archive, &both], 0);
    let kept = fs::read_to_string(world.at(LOCK)).unwrap();
    let refused = |source: &str, says: &str| {
        let said = world.install(&[source], 101);
        assert!(said.contains(says) && said.contains("--update"), "{source}: {said}");
        assert_eq!(fs::read_to_string(world.at(LOCK)).unwrap(), kept, "{source}");
    };
    refused(&both, "holds p 0.1.0, which is not a later version, but");
    refused(&format!("{both}/"), "which is not a later version");
    // Whoever names the older version itself is told how to get it, and nothing about who publishes it.
    let said = world.install(&[&format!("{both}:0.1.0")], 101);
    assert!(said.contains("not a later version") && said.contains("`--update` installs it"), "{said}");
    assert!(!said.contains("ask whoever publishes it"), "{said}");
    assert!(world.install(&[&both], 101).contains("ask whoever publishes it"));
    // Other contents from elsewhere, although the version is later.
    let elsewhere = format!("{registry}-elsewhere");
    let later = world.changed("version = \"0.2.0\"", "version = \"0.3.0\"", "0.3.0");
    world.publish(&[&later, &elsewhere], 0);
    refused(&elsewhere, "holds p 0.3.0, with other contents and from another source, but");
    assert!(world.install(&[&elsewhere, "--update"], 0).contains("Installed p 0.3.0"));
    // The same contents from elsewhere are the same, and the change of the source is told.
    fs::remove_dir_all(&both).unwrap();
    fs::rename(&elsewhere, &both).unwrap();
    let said = world.install(&[&both, "--locked"], 101);
    assert!(said.contains(&format!("would change from 0.3.0 from `{elsewhere}`")), "{said}");
    let told = |names: &str| format!("warning: `{LOCK}` {names} another source of p: `{both}`; it was `{elsewhere}`");
    assert!(world.install(&[&both, "--dry-run"], 0).contains(&told("would name")));
    assert_eq!(world.lock().get("p").unwrap().source, elsewhere);
    let said = world.install(&[&format!("{both}//.")], 0);
    assert!(said.contains("Fresh p 0.3.0") && said.contains(&told("now names")), "{said}");
    assert!(!world.install(&[&format!("{both}//.")], 0).contains("another source"));
    assert_eq!(world.lock().get("p").unwrap().source, both);
    // A version whose contents differ, under another tag.
    let third = world.changed("license = \"MIT\"", "license = \"Apache-2.0\"", "0.3.0");
    world.publish(&[&third, &both, "--tag", "b"], 0);
    let said = world.install(&[&format!("{both}:b")], 101);
    assert!(said.contains("version 0.3.0 of") && said.contains("it was changed after it was installed"), "{said}");
}

#[test]
fn a_repository_with_links_or_hidden_folders_leads_nowhere_else() {
    let world = world();
    let victim = world.lab.project.place().join("victim");
    fs::create_dir_all(victim.join(".kforge-install-theirs")).unwrap();
    std::os::unix::fs::symlink(&victim, world.at("kernels")).unwrap();
    let said = world.install(&[&world.archive], 101);
    assert!(said.contains("`kernels` is a symbolic link"), "{said}");
    assert_eq!(names(&victim), [".kforge-install-theirs"]);
    assert!(world.install(&[&world.archive, "--into", ".git/hooks"], 2).contains("is not below the folder of"));
    fs::remove_file(world.at("kernels")).unwrap();
    std::os::unix::fs::symlink(victim.join("made"), world.at(".kforge-installing")).unwrap();
    let said = world.install(&[&world.archive], 101);
    assert!(said.contains("`.kforge-installing` is a symbolic link") && !victim.join("made").exists(), "{said}");
    fs::remove_file(world.at(".kforge-installing")).unwrap();
    world.install(&[&world.archive], 0);
    // A lockfile from before the link.
    fs::rename(world.at("kernels"), world.at("real")).unwrap();
    std::os::unix::fs::symlink("real", world.at("kernels")).unwrap();
    assert!(world.install(&[], 101).contains("`kernels` is a symbolic link"));
}

/// Errors show names that others chose, before any signature is looked at.
#[test]
fn a_name_in_an_artifact_does_nothing_to_a_terminal() {
    let world = world();
    let folder = world.lab.project.root().join(FOLDER);
    std::os::unix::fs::symlink("x", folder.join("a\u{1b}[2J\u{1b}]0;x\u{7}\u{9b}2J\u{202e}b")).unwrap();
    let said = world.install(&[folder.to_str().unwrap(), "--color", "always"], 101);
    assert!(said.contains("a\\u{1b}[2J\\u{1b}]0;x\\u{7}\\u{9b}2J\\u{202e}b"), "{said}");
    assert!(said.contains("\u{1b}[1m") || said.contains("\u{1b}[31m"), "styles stay: {said:?}");
    assert!(!["\u{1b}[2J", "\u{1b}]", "\u{9b}", "\u{202e}"].iter().any(|text| said.contains(text)), "{said:?}");
}

#[test]
fn another_key_for_the_same_contents_is_told() {
    let world = world();
    world.install(&[&world.archive], 0);
    let before = fs::read_to_string(&world.trusted).unwrap();
    let (private, trusted) = key(&world.lab, ARTIFACT_NAMESPACE);
    run(&world.lab, &["package", "--sign-key", private.to_str().unwrap()], 0);
    let now = fs::read_to_string(trusted).unwrap();
    fs::write(&world.trusted, before + &now).unwrap();
    let said = world.install(&[&world.archive], 0);
    assert!(said.contains("p was signed by me@x before, and 0.1.0 is signed with another key"), "{said}");
    assert!(!world.install(&[&world.archive], 0).contains("before"));
}

#[test]
#[ignore = "second tier: many builds"]
fn an_artifact_goes_through_a_registry_and_offline_nothing_is_asked() {
    let world = world();
    let server = Server::new();
    let to = server.repository("team/p");
    let said = world.publish(&[&world.archive, &to], 101);
    assert!(said.contains("the network must not be used"), "{said}");
    let online = |lab: &Lab, words: &[&str], code: i32| {
        let output = lab.project.command(words).output().unwrap();
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        said
    };
    let said = online(&world.lab, &["publish", &world.archive, &to, "--dry-run"], 0);
    assert!(said.contains("would publish"), "{said}");
    assert_eq!((server.count("PUT", ""), server.count("POST", "")), (0, 0));
    online(&world.lab, &["publish", &world.archive, &to], 0);
    assert_eq!(world.install(&[&to], 101).matches("the network must not be used").count(), 1);
    let install =
        |words: &[&str], code| online(&world.reader, &[&["install", "--trust", &world.trusted], words].concat(), code);
    // A connection that breaks, and contents that differ, leave nothing.
    server.state().faults.extend((0..5).map(|_| ("GET", "/blobs/", Fault::Cuts)));
    assert!(install(&[&to], 101).contains("cannot fetch contents"));
    server.state().faults.clear();
    server.state().faults.push_back(("GET", "/blobs/", Fault::Corrupts));
    assert!(install(&[&to], 101).contains("it was changed or damaged"));
    assert_eq!(names(&world.at("")), Vec::<String>::new());
    assert!(install(&[&to], 0).contains("Installed p 0.1.0"));
    // What is there is verified without the network; what is not, needs it.
    assert!(world.install(&["--locked"], 0).contains("Fresh p 0.1.0"));
    fs::remove_dir_all(world.at("kernels")).unwrap();
    assert!(world.install(&[], 101).contains("the network must not be used"));
    install(&["--locked"], 0);
    let digest = world.lock().get("p").unwrap().manifest.clone().unwrap();
    install(&[&format!("{to}@{digest}"), "--into", "."], 0);
    assert_eq!(tree(&world.at("p")), tree(&world.at("kernels/p")));
}

/// Starts a command, kills it after a while, and waits for its end. Returns whether it was still running.
pub(crate) fn killed(mut child: Child, after: Duration) -> bool {
    std::thread::sleep(after);
    let was_running = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    was_running
}

#[expect(clippy::disallowed_methods, reason = "the environment says how hard the test is")]
pub(crate) fn kills() -> u32 {
    std::env::var("KFORGE_TEST_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(12)
}

#[test]
#[ignore = "second tier: kills and two at once"]
fn two_at_once_or_a_kill_leave_nothing_half_in_a_folder() {
    let world = world();
    let registry = world.registry();
    let (path, kills) = (Path::new(&registry), kills());
    let publish = || world.lab.project.command(&["publish", &world.archive, &registry, "--offline"]).spawn().unwrap();
    let install = || {
        let words = ["install", &registry, "--trust", &world.trusted, "--offline"];
        world.reader.project.command(&words).spawn().unwrap()
    };
    let took = {
        let began = Instant::now();
        assert!(publish().wait().unwrap().success());
        began.elapsed()
    };
    let mut running = 0;
    for at in 0..kills {
        let _ = fs::remove_dir_all(path);
        running += u32::from(killed(publish(), took * at / kills));
        // Whatever has a tag is whole.
        if path.join("oci-layout").exists() {
            let index: Value = serde_json::from_slice(&fs::read(path.join("index.json")).unwrap()).unwrap();
            let has_tag = index["manifests"].as_array().unwrap().iter().any(|entry| !entry["artifactType"].is_null());
            let said = world.install(&[&registry, "--dry-run"], if has_tag { 0 } else { 101 });
            assert!(has_tag || said.contains("it has no tags"), "{said}");
        }
    }
    assert!(running > 0, "no publication was killed");
    let mut all: Vec<Child> = (0..3).map(|_| publish()).collect();
    assert!(all.iter_mut().all(|child| child.wait().unwrap().success()));
    assert_eq!(names(path), ["blobs", "index.json", "oci-layout"]);
    assert!(names(&path.join("blobs/sha256")).iter().all(|name| name.len() == 64));

    let whole = tree(&world.lab.project.root().join(FOLDER));
    let took = {
        let began = Instant::now();
        assert!(install().wait().unwrap().success());
        began.elapsed()
    };
    let mut running = 0;
    for at in 0..kills {
        let _ = fs::remove_dir_all(world.at("kernels"));
        running += u32::from(killed(install(), took * at / kills));
        if world.at("kernels/p").exists() {
            assert_eq!(tree(&world.at("kernels/p")), whole);
        }
    }
    assert!(running > 0, "no installation was killed");
    let mut all: Vec<Child> = (0..3).map(|_| install()).collect();
    assert!(all.iter_mut().all(|child| child.wait().unwrap().success()));
    assert_eq!((names(&world.at("kernels")), tree(&world.at("kernels/p"))), (vec!["p".into()], whole.clone()));
    // Of two versions, one or the other is there.
    let second = world.another_version("0.2.0");
    world.publish(&[&second, &registry], 0);
    let other = tree(&world.lab.project.root().join("target/kforge/package/p-0.2.0"));
    for at in 0..kills {
        // An installation that was killed too late has left 0.2.0 in the lockfile.
        world.install(&[&format!("{registry}:0.1.0"), "--update"], 0);
        killed(install(), took * at / kills);
        let found = tree(&world.at("kernels/p"));
        assert!(found == whole || found == other);
    }
}

/// The repository of the tests that `kernels` loads, and the destination that names it.
fn kernels(world: &World) -> (PathBuf, String) {
    let folder = world.lab.project.place().join("repository");
    let to = format!("kernels://{}", folder.display());
    (folder, to)
}

#[test]
fn a_repository_for_kernels_gets_the_loader_and_a_page_and_keeps_what_others_put_there() {
    let world = loadable();
    let (folder, to) = kernels(&world);
    let variant = folder.join("build/torch-cuda");
    let said = world.publish(&[&world.archive, &to, "--dry-run"], 0);
    assert!(said.contains("would publish p 0.1.0 in `kernels://") && !folder.exists(), "{said}");
    fs::create_dir_all(folder.join("build/torch-rocm")).unwrap();
    for name in ["build/torch-rocm/__init__.py", "LICENSE"] {
        fs::write(folder.join(name), "theirs").unwrap();
    }
    let said = world.publish(&[&world.archive, &to], 0);
    assert!(said.contains("Published p 0.1.0 in `kernels://") && said.contains("signed with SHA256:"), "{said}");
    assert_eq!(names(&folder), ["LICENSE", "README.md", "build"]);
    assert_eq!(names(&folder.join("build")), ["torch-cuda", "torch-rocm"]);
    // It is what `kforge bindings` writes.
    run(&world.lab, &["bindings", &world.archive, "--language", "python", "--output", "loader"], 0);
    assert_eq!(tree(&variant), tree(&world.lab.project.root().join("loader/build/torch-cuda")));
    let page = fs::read_to_string(folder.join("README.md")).unwrap();
    assert!(page.starts_with("---\nlibrary_name: kernels\nlicense: mit\n---\n\n# p\n"), "{page}");
    assert!(page.contains("| `k` | `x` | `y` |") && page.contains("capability 9.0a"), "{page}");
    let before = tree(&folder);
    // What Python leaves there is no change.
    fs::create_dir(variant.join("__pycache__")).unwrap();
    fs::write(variant.join("__pycache__/x.pyc"), "x").unwrap();
    assert!(world.publish(&[&world.archive, &to], 0).contains("nothing changes"));
    fs::remove_dir_all(variant.join("__pycache__")).unwrap();
    assert_eq!(tree(&folder), before);

    // Another version takes its place, with the page, unless the page was edited.
    let second = world.another_version("0.2.0");
    let said = world.publish(&[&second, &to, "--dry-run"], 0);
    assert!(said.contains("in place of another artifact") && tree(&folder) == before, "{said}");
    world.publish(&[&second, &to], 0);
    assert!(fs::read_to_string(folder.join("README.md")).unwrap().contains("version 0.2.0"));
    fs::write(folder.join("README.md"), page.replace("# p", "# My kernels")).unwrap();
    let said = world.publish(&[&world.archive, &to], 0);
    assert!(said.contains("its README.md is yours"), "{said}");
    assert!(fs::read_to_string(folder.join("README.md")).unwrap().contains("# My kernels"));
    let said = world.publish(&[&world.archive, &to, "--message-format", "json"], 0);
    let value: Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
    assert_eq!(value["reason"], "published");
    assert_eq!([&value["tag"], &value["manifest"], &value["status"]], [&Value::Null, &Value::Null, &"present".into()]);

    // The same version of other contents needs a flag, and so does another package.
    let whole = tree(&variant);
    world.lab.project.edit("kernel.toml", "version = \"0.2.0\"", "version = \"0.1.0\"");
    world.lab.project.edit("k.cu", "void k(", "void /* other */ k(");
    world.lab.project.edit("kernel.toml", "shapes.tiny = { n = 10 }", "shapes.tiny = { n = 11 }");
    let other = world.another_version("0.1.0");
    let said = world.publish(&[&other, &to], 101);
    assert!(said.contains("holds another artifact, p 0.1.0 (sha256:") && tree(&variant) == whole, "{said}");
    world.publish(&[&other, &to, "--replace"], 0);
    assert_ne!(tree(&variant), whole);
}

#[test]
#[ignore = "second tier: many builds"]
fn nothing_that_kforge_did_not_write_is_replaced_in_a_repository_for_kernels() {
    let world = loadable();
    let (folder, to) = kernels(&world);
    let variant = folder.join("build/torch-cuda");
    let refused = |archive: &str, says: &str| {
        let before = tree(&folder);
        for words in [&[][..], &["--replace"], &["--dry-run"]] {
            let said = world.publish(&[&[archive, &to], words].concat(), 101);
            assert!(said.contains("is not replaced: ") && said.contains(says), "{words:?}: {said}");
            assert_eq!(tree(&folder), before);
        }
    };
    fs::create_dir_all(&variant).unwrap();
    fs::write(variant.join("__init__.py"), "mine").unwrap();
    refused(&world.archive, "kforge did not write it");
    fs::remove_dir_all(&folder).unwrap();
    world.publish(&[&world.archive, &to], 0);
    let second = world.another_version("0.2.0");
    fs::write(variant.join("notes.txt"), "mine").unwrap();
    refused(&second, "`notes.txt` is not a file that kforge wrote");
    fs::remove_file(variant.join("notes.txt")).unwrap();
    let init = fs::read_to_string(variant.join("__init__.py")).unwrap();
    fs::write(variant.join("__init__.py"), format!("{init}\n# mine\n")).unwrap();
    refused(&second, "`__init__.py` was changed or removed");
    fs::remove_file(variant.join("__init__.py")).unwrap();
    refused(&second, "`__init__.py` was changed or removed");
    // A link leads nowhere.
    let elsewhere = world.lab.project.place().join("elsewhere");
    fs::rename(&variant, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &variant).unwrap();
    refused(&second, "it is no folder");
    fs::remove_dir_all(&folder).unwrap();
    // Nothing is written where a link leads.
    fs::create_dir(&folder).unwrap();
    let aside = world.lab.project.place().join("aside");
    fs::create_dir(&aside).unwrap();
    std::os::unix::fs::symlink(&aside, folder.join("build")).unwrap();
    let said = world.publish(&[&second, &to], 101);
    assert!(
        said.contains("is not replaced: ") && said.contains("is a symbolic link") && names(&aside).is_empty(),
        "{said}"
    );
    fs::remove_dir_all(&folder).unwrap();
    // What other destinations refuse is refused here.
    let said = world.publish(&[&second, &to, "--tag", "x"], 2);
    assert!(said.contains("has no tags"), "{said}");
    assert!(world.publish(&[&second, "kernels://"], 2).contains("names no folder"));
    assert!(world.install(&[&to], 2).contains("is a place to publish to"));
    unsigned(&world.lab);
    let unsigned = second.as_str();
    assert!(world.publish(&[unsigned, &to], 103).contains("is not signed") && !folder.exists());
    assert!(world.publish(&[unsigned, &to, "--allow-unsigned"], 0).contains("the artifact is not signed"));
    let changed = world.lab.project.root().join("target/kforge/package/p-0.2.0");
    fs::write(changed.join("kernels.json"), "{}").unwrap();
    assert!(world.publish(&[changed.to_str().unwrap(), &to], 101).contains("`kernels.json` is not the file"));
}

#[test]
#[ignore = "second tier: many builds"]
fn two_at_once_or_a_kill_leave_nothing_half_in_a_repository_for_kernels() {
    let world = loadable();
    let (folder, to) = kernels(&world);
    let (variant, kills) = (folder.join("build/torch-cuda"), kills());
    let publish = |archive: &str| world.lab.project.command(&["publish", archive, &to, "--offline"]).spawn().unwrap();
    let second = world.another_version("0.2.0");
    let began = Instant::now();
    assert!(publish(&second).wait().unwrap().success());
    let took = began.elapsed();
    let other = tree(&variant);
    world.publish(&[&world.archive, &to], 0);
    let whole = tree(&variant);
    let mut running = 0;
    for at in 0..kills {
        let _ = fs::remove_dir_all(&folder);
        running += u32::from(killed(publish(&world.archive), took * at / kills));
        assert!(!variant.exists() || tree(&variant) == whole);
        // Of two versions, one or the other is there.
        world.publish(&[&world.archive, &to], 0);
        running += u32::from(killed(publish(&second), took * at / kills));
        let found = tree(&variant);
        assert!(found == whole || found == other);
    }
    assert!(running > 0, "no publication was killed");
    let mut all: Vec<Child> = (0..3).map(|_| publish(&second)).collect();
    assert!(all.iter_mut().all(|child| child.wait().unwrap().success()));
    assert_eq!((tree(&variant), names(&folder)), (other, vec!["README.md".into(), "build".into()]));
}
