//! Artifacts: what `kforge package` writes, what it refuses, and that `kforge verify-artifact` names whatever in an artifact is not so.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use kforge::base::testing::skipped;
use kforge::release::artifact::files::PackageIdentity;
use kforge::release::artifact::{ArtifactFiles, INDEX, KERNELS, KernelsDocument, tar};
use kforge::release::signature::{ARTIFACT_NAMESPACE, NAMESPACE, SigningKey};
use serde_json::Value;

use crate::compared::{commit, git};
use crate::lab::{Lab, Machine, SOURCE};
use crate::packaged_again::unsigned;

pub(crate) const ARCHIVE: &str = "target/kforge/package/p-0.1.0.tar";
pub(crate) const FOLDER: &str = "target/kforge/package/p-0.1.0";

const METHOD: &str = r#"
[kernel.k.methods."memory.vectorized_access"]
off = { V = 1 }
sass.any = ['LDG\.E\.128']
"#;

pub(crate) fn machine() -> Machine {
    Machine::with(&[(4, 1000.0), (1, 1400.0)])
}

/// A built package with a licence.
pub(crate) fn built() -> Lab {
    let lab = licensed();
    lab.built(&[]);
    lab
}

pub(crate) fn licensed() -> Lab {
    let lab = Lab::with_method(&machine(), METHOD);
    let lab = lab.manifest("version = \"0.1.0\"", "version = \"0.1.0\"\nlicense = \"MIT\"");
    // The sources of an artifact have no toolchain beside them.
    let cuda = lab.project.root().join("cuda").display().to_string();
    lab.manifest("path = \"cuda\"", &format!("path = \"{cuda}\""))
}

/// Runs `kforge WORDS`, checks the exit code, and returns what it printed.
#[track_caller]
pub(crate) fn run(lab: &Lab, words: &[&str], code: i32) -> String {
    let output = lab.project.command(&[words, &["--offline"]].concat()).stdin(Stdio::null()).output().unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
    said
}

/// A private key in a file, and a file that trusts it for a namespace.
pub(crate) fn key(lab: &Lab, namespace: &str) -> (PathBuf, PathBuf) {
    let (private, trusted) = (lab.project.place().join("key"), lab.project.place().join("trusted"));
    let _ = fs::remove_file(&private);
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "me", "-f"])
        .arg(&private)
        .status()
        .unwrap();
    assert!(made.success());
    let public = fs::read_to_string(private.with_extension("pub")).unwrap();
    fs::write(&trusted, format!("me@x namespaces=\"{namespace}\" {public}")).unwrap();
    (private, trusted)
}

pub(crate) fn files(lab: &Lab) -> BTreeMap<String, Vec<u8>> {
    tar::unpack(&fs::read(lab.project.root().join(ARCHIVE)).unwrap()).unwrap().all().clone()
}

/// Writes the files with a new index as an archive, as a forger does who has no key.
pub(crate) fn forged(lab: &Lab, files: BTreeMap<String, Vec<u8>>) -> PathBuf {
    let package = PackageIdentity { name: "p".into(), version: "0.1.0".into(), license: "MIT".into() };
    let files = ArtifactFiles::new(files).unwrap().indexed(package).unwrap();
    let path = lab.project.place().join("forged.tar");
    fs::write(&path, tar::pack(&files).unwrap()).unwrap();
    path
}

/// Writes the files into a folder.
fn write_folder(files: &BTreeMap<String, Vec<u8>>, folder: &Path) {
    for (name, bytes) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

#[track_caller]
pub(crate) fn verify(lab: &Lab, path: &Path, code: i32) -> String {
    run(lab, &["verify-artifact", path.to_str().unwrap(), "--allow-untrusted"], code)
}

/// The licensed package, committed and built on a device.
pub(crate) fn committed() -> Lab {
    let lab = licensed();
    lab.project.write(".gitignore", "/target\n");
    git(&lab, &["init", "--quiet"]);
    commit(&lab, "first");
    lab.built(&[]);
    lab
}

/// The machine without a device.
pub(crate) fn without() -> Machine {
    Machine { device: None, ..machine() }
}

/// A change to the files of an artifact, by name, and to its index.
pub(crate) type Change<'a> = dyn Fn(&mut BTreeMap<String, Vec<u8>>, &mut Value) + 'a;

#[test]
fn an_artifact_holds_champions_sources_and_evidence_and_is_verified_with_nothing_else() {
    let lab = built();
    let (private, trusted) = key(&lab, ARTIFACT_NAMESPACE);
    let said = run(&lab, &["package", "--sign-key", private.to_str().unwrap()], 0);
    assert!(said.contains("Packaged p 0.1.0 (1 kernel,") && said.contains("Signed with SHA256:"), "{said}");
    let files = files(&lab);
    let names: Vec<&str> = files.keys().map(String::as_str).filter(|name| !name.starts_with("binaries/")).collect();
    let expected = [
        "evidence.kfe",
        "kernels.json",
        "kforge-artifact.json",
        "kforge-artifact.json.sig",
        "provenance.intoto.json",
        "sbom.spdx.json",
        "source/k.cu",
        "source/kernel.toml",
        "source/kforge.lock",
    ];
    assert_eq!(names, expected);
    let document: Value = serde_json::from_slice(&files[KERNELS]).unwrap();
    let kernel = &document["kernels"][0];
    assert_eq!((&kernel["arch"], &kernel["classes"][0]["variant"]), (&"sm_90a".into(), &"V=4".into()));
    let launch = &kernel["variants"][0]["launch"];
    assert_eq!(launch["tunables"]["V"], 4);
    let action = &launch["launches"][0]["action"]["kernel"];
    assert_eq!(
        (&action["entry"], &action["grid"], &action["block"]),
        (&"k<4>".into(), &serde_json::json!(["n"]), &serde_json::json!(["32"]))
    );
    assert_eq!(action["args"][2], serde_json::json!({ "scalar": { "dtype": "i32", "value": "n" } }));
    let shapes = kernel["shapes"].as_array().unwrap();
    assert_eq!(shapes.iter().map(|s| s["shape"].as_str().unwrap()).collect::<Vec<_>>(), ["tiny", "big"]);
    assert!(shapes[0]["time"].is_null() && shapes[1]["time"]["median_ns"].as_f64().unwrap() > 900.0);
    assert_eq!(kernel["methods"][0]["fate"], "effective");
    let standings: Vec<&Value> = kernel["records"].as_object().unwrap().values().map(|r| &r["standing"]).collect();
    assert!(standings.len() > 4 && standings.iter().all(|standing| **standing == "here"), "{standings:?}");
    let index: Value = serde_json::from_slice(&files[INDEX]).unwrap();
    let statement: Value = serde_json::from_slice(&files["provenance.intoto.json"]).unwrap();
    let binary =
        index["files"].as_array().unwrap().iter().find(|f| f["name"].as_str().unwrap().starts_with("binaries/"));
    assert_eq!(statement["subject"][0]["digest"]["sha256"], binary.unwrap()["sha256"]);
    let beside = fs::read(lab.project.root().join("target/kforge/package/p-0.1.0.intoto.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&beside).unwrap()["subject"][1]["name"], "p-0.1.0.tar");

    // Elsewhere, with the archive or the folder, a list of keys, and neither home nor workspace of the package.
    let reader = lab.anew("reader");
    for name in ["kernel.toml", "k.cu"] {
        fs::remove_file(reader.project.root().join(name)).unwrap();
    }
    let [archive, folder] = [ARCHIVE, FOLDER].map(|path| lab.project.root().join(path));
    for path in [&archive, &folder] {
        let path = path.to_str().unwrap();
        let said = run(&reader, &["verify-artifact", path, "--trust", trusted.to_str().unwrap()], 0);
        assert!(
            said.contains("Verified p 0.1.0, signed by me@x") && said.contains("1 kernel, 2 passing shapes"),
            "{said}"
        );
        let said = run(&reader, &["verify-artifact", path], 103);
        assert!(said.contains("is not trusted") && said.contains("no list of trusted keys"), "{said}");
    }
    let path = archive.to_str().unwrap();
    let other = key(&lab, ARTIFACT_NAMESPACE).1;
    let said = run(&reader, &["verify-artifact", path, "--trust", other.to_str().unwrap()], 103);
    assert!(said.contains("does not list"), "{said}");
    let (_, of_evidence) = key(&lab, NAMESPACE);
    run(&lab, &["package", "--sign-key", lab.project.place().join("key").to_str().unwrap()], 0);
    let said = run(&reader, &["verify-artifact", path, "--trust", of_evidence.to_str().unwrap()], 103);
    assert!(said.contains("(me@x), a key that `") && said.contains("trusted` (`--trust`) does not"), "{said}");
    assert!(said.contains("does not allow to sign for `kforge-artifact`"), "{said}");
    unsigned(&lab);
    let said = run(&reader, &["verify-artifact", path], 103);
    assert!(said.contains("is not signed"), "{said}");
    // A list in a repository does not count: an artifact could bring one.
    let (private, trusted) = key(&lab, ARTIFACT_NAMESPACE);
    run(&lab, &["package", "--sign-key", private.to_str().unwrap()], 0);
    lab.project.write(".kforge/allowed_signers", &fs::read_to_string(trusted).unwrap());
    let said = run(&lab, &["verify-artifact", path], 103);
    assert!(said.contains("no list of trusted keys"), "{said}");
}

/// What the refusals advise, done word by word.
#[test]
fn a_key_is_trusted_for_artifacts_by_the_command_that_the_refusal_names() {
    let lab = built();
    let (private, _) = key(&lab, ARTIFACT_NAMESPACE);
    run(&lab, &["package", "--sign-key", private.to_str().unwrap()], 0);
    let archive = lab.project.root().join(ARCHIVE);
    let (path, public) = (archive.to_str().unwrap(), private.with_extension("pub"));
    let (mine, public) = (lab.project.place().join("mine"), public.to_str().unwrap());
    let file = mine.to_str().unwrap();
    let said = run(&lab, &["verify-artifact", path], 103);
    assert!(said.contains("trust --add PRINCIPAL KEY.pub --for artifacts --file FILE`"), "{said}");
    assert!(said.contains("`--trust FILE`") && said.contains("`evidence.trust`"), "{said}");
    let add =
        |more: &[&str], code: i32| run(&lab, &[&["evidence", "trust", "--add", "me@x", public], more].concat(), code);
    // No list of a repository takes such a key unless it is named.
    let said = add(&["--for", "artifacts"], 101);
    assert!(said.contains("that of a repository never does") && said.contains("`--file FILE`"), "{said}");
    assert!(!lab.project.root().join(".kforge/allowed_signers").exists());
    add(&["--for", "evidence", "--file", file], 0);
    let said = run(&lab, &["verify-artifact", path, "--trust", file], 103);
    assert!(said.contains(&format!("KEY.pub --for artifacts --file {file}`")), "{said}");
    let said = add(&["--for", "artifacts", "--file", file], 0);
    assert!(said.contains("for artifacts in") && said.contains(&format!("`--trust {file}` uses it once")), "{said}");
    let lines = fs::read_to_string(&mine).unwrap();
    let [evidence, artifact] = lines.lines().collect::<Vec<_>>()[..] else { panic!("{lines}") };
    assert!(evidence.starts_with("me@x namespaces=\"kforge-evidence\" ssh-ed25519 "), "{lines}");
    assert!(artifact.starts_with("me@x namespaces=\"kforge-artifact\" ssh-ed25519 "), "{lines}");
    assert!(run(&lab, &["verify-artifact", path, "--trust", file], 0).contains("signed by me@x"));
    assert!(run(&lab, &["--trust", file, "verify-artifact", path], 0).contains("signed by me@x"));
    // The home's configuration names the file for every command, also for `--add`.
    fs::write(lab.project.home().join("config.toml"), format!("[evidence]\ntrust = \"{file}\"\n")).unwrap();
    assert!(run(&lab, &["verify-artifact", path], 0).contains("signed by me@x"));
    let said = add(&["--for", "artifacts"], 0);
    assert!(said.contains("there already") && !said.contains("uses it once"), "{said}");
    run(&lab, &["evidence", "trust", "--for", "artifacts"], 2);
}

#[test]
fn a_file_that_is_no_artifact_is_not_shown() {
    let lab = built();
    let path = lab.project.place().join("passwd");
    fs::write(&path, "root:x:0:0:hidden:/root:/bin/sh\n".repeat(40)).unwrap();
    let said = verify(&lab, &path, 101);
    assert!(said.contains("not an artifact: neither a folder nor a tar archive") && !said.contains("root:"), "{said}");
    // An archive that was cut off, and one that was compressed.
    run(&lab, &["package"], 0);
    let archive = fs::read(lab.project.root().join(ARCHIVE)).unwrap();
    fs::write(&path, &archive[..archive.len() / 2]).unwrap();
    let said = verify(&lab, &path, 101);
    assert!(said.contains(&format!("the archive ends early, at byte {}: get it again", archive.len() / 2)), "{said}");
    let gzip = Command::new("gzip").args(["-c", ARCHIVE]).current_dir(lab.project.root()).output();
    fs::write(&path, gzip.unwrap().stdout).unwrap();
    let said = verify(&lab, &path, 101);
    assert!(said.contains("it is compressed with gzip") && said.contains("`gzip -d`"), "{said}");
}

#[test]
fn equal_inputs_give_equal_archives_wherever_and_however_they_are_packaged() {
    let lab = built();
    run(&lab, &["evidence", "export"], 0);
    let bundle = lab.project.root().join("evidence/virtual-h.kfe");
    let key = SigningKey::generate().unwrap();
    let file = fs::read(&bundle).unwrap();
    let document = kforge::release::archive::unpack(&file, kforge::release::archive::LIMITS).unwrap().document;
    let signature = key.sign(NAMESPACE, &document).unwrap();
    fs::write(&bundle, kforge::release::archive::sign(&file, &signature).unwrap()).unwrap();
    let trusted = lab.project.place().join("trusted");
    fs::write(&trusted, format!("gpu@x {}\n", key.public().text())).unwrap();
    let mut archives = vec![];
    for (name, jobs, vars) in [
        ("one", "1", [("TZ", "Pacific/Kiritimati"), ("LC_ALL", "C"), ("USER", "a"), ("LOGNAME", "a")]),
        (
            "another/deeper/folder",
            "2",
            [("TZ", "America/Adak"), ("LC_ALL", "tr_TR.UTF-8"), ("USER", "b"), ("LOGNAME", "b")],
        ),
    ] {
        let mut other = lab.anew(name);
        other.on(&Machine { device: None, ..machine() });
        for (variable, value) in vars {
            other.project = other.project.clone().var(variable, value);
        }
        let trust = ["--trust", trusted.to_str().unwrap()];
        run(&other, &[&["build", "--require-evidence", "-j", jobs][..], &trust].concat(), 0);
        run(&other, &[&["package"][..], &trust].concat(), 0);
        archives.push(fs::read(other.project.root().join(ARCHIVE)).unwrap());
        let records =
            serde_json::from_slice::<Value>(&files(&other)[KERNELS]).unwrap()["kernels"][0]["records"].clone();
        assert!(
            records.as_object().unwrap().values().all(|r| r["standing"] == "signed" && r["signer"] == "gpu@x"),
            "{records}"
        );
    }
    assert!(archives[0] == archives[1]);
    // An artifact that is packaged once more is not written again, and nothing else lies beside it.
    let place = lab.anew("one-more");
    place.on(&Machine { device: None, ..machine() });
}

#[test]
#[ignore = "second tier: many builds"]
fn what_is_not_so_is_named() {
    let lab = built();
    run(&lab, &["package"], 0);
    let whole = files(&lab);
    let binary = whole.keys().find(|name| name.starts_with("binaries/")).unwrap().clone();
    assert!(verify(&lab, &forged(&lab, whole.clone()), 0).contains("Verified p 0.1.0, not signed"));
    // Without a new index, the file itself is named.
    for name in [binary.as_str(), "evidence.kfe", "kernels.json", "sbom.spdx.json", "source/k.cu"] {
        let mut files = whole.clone();
        files.get_mut(name).unwrap().push(b' ');
        let path = lab.project.place().join("tampered.tar");
        fs::write(&path, tar::pack(&ArtifactFiles::new(files).unwrap()).unwrap()).unwrap();
        let said = verify(&lab, &path, 101);
        assert!(said.contains(&format!("`{name}` is not the file that `kforge-artifact.json` lists")), "{said}");
    }
    // With a new index, what it claims is compared with its evidence and its sources.
    let edit = |name: &str, from: &str, to: &str| {
        let mut files = whole.clone();
        let text = String::from_utf8(files[name].clone()).unwrap();
        assert!(text.contains(from), "`{from}` in {text}");
        files.insert(name.into(), text.replacen(from, to, 1).into_bytes());
        verify(&lab, &forged(&lab, files), 101)
    };
    let document: Value = serde_json::from_slice(&whole[KERNELS]).unwrap();
    let shape = &document["kernels"][0]["shapes"][1];
    let text = |value: &Value| value.as_str().unwrap().to_string();
    let median = format!("\"median_ns\":{}", shape["time"]["median_ns"]);
    for (name, from, to, says) in [
        (
            "source/k.cu",
            "__global__",
            "__global__ ",
            "its source `k.cu` is not the file from which the binary was compiled",
        ),
        ("source/kernel.toml", "grid = [\"n\"]", "grid = [\"n + 1\"]", "gives launches that differ"),
        ("source/kernel.toml", "atol = 1e-6", "atol = 1e-2", "gives tolerances that differ"),
        (
            "source/kernel.toml",
            "shapes.tiny = { n = 10 }",
            "shapes.tiny = { n = 10 }\nshapes.more = { n = 11 }",
            "but the operator has big, more, tiny",
        ),
        ("source/kernel.toml", "2 * x + 1", "2 * x", "is of another problem"),
        (KERNELS, median.as_str(), "\"median_ns\":1.0", "does not show the time"),
        (KERNELS, "\"entry\":\"k<4>\"", "\"entry\":\"k<1>\"", "gives launches that differ"),
        (KERNELS, "\"standing\":\"here\"", "\"standing\":\"hear\"", "does not match its schema"),
        (
            KERNELS,
            "\"measured_at\":\"2026",
            "\"measured_at\":\"2025",
            "its records in `kernels.json` are not those of the evidence",
        ),
        (KERNELS, &text(&shape["verification"]), &text(&shape["confirmation"]), "is of another process"),
    ] {
        let said = edit(name, from, to);
        assert!(said.contains(says), "{name}, `{from}`: {said}");
    }
    for (name, from, to, says) in [
        (KERNELS, "{\"k<4>\":\"k<4>\"}", "{\"k<4>\":\"evil\"}", "its label or its symbols are not those"),
        (KERNELS, "\"class\":\"all\",\"shapes\"", "\"class\":\"big\",\"shapes\"", "has shapes or a champion that"),
        (KERNELS, "\"devices\":[\"Virtual H", "\"devices\":[\"Virtual X", "gives devices that differ"),
        (
            KERNELS,
            "\"method\":\"memory.vectorized_access\",\"variant\":\"V=4\"",
            "\"method\":\"x\",\"variant\":\"V=9\"",
            "gives methods that differ",
        ),
        ("source/kernel.toml", "version = \"0.1.0\"", "version = \"9.1.0\"", "holds p 9.1.0 (MIT)"),
        ("source/kernel.toml", "[targets.h]", "[targets.h]\ndevice = \"Virtual X\"", "gives devices that differ"),
        (
            "source/kernel.toml",
            "source = \"k.cu\"",
            "source = \"kernel.toml\"",
            "is of other entries, flags, source or architecture",
        ),
        ("sbom.spdx.json", "SPDX-2.3", "SPDX-2.2", "`sbom.spdx.json`: it does not follow from the other files"),
        ("provenance.intoto.json", "kernel.toml", "other.toml", "`provenance.intoto.json`: it does not follow"),
    ] {
        let said = edit(name, from, to);
        assert!(said.contains(says), "{name}, `{from}`: {said}");
    }
    // A key that is repeated, a compiler that the artifact brings, and a name that is no text.
    let said = edit(KERNELS, "{\"kernel\":\"k\"", "{\"kernel\":\"evil\",\"kernel\":\"k\"");
    assert!(said.contains("does not match its schema") && said.contains("duplicate field"), "{said}");
    let said = edit(KERNELS, "{\"k<4>\":\"k<4>\"}", "{\"k<4>\":\"evil\",\"k<4>\":\"k<4>\"}");
    assert!(said.contains("is not in the text that kforge writes"), "{said}");
    let cuda = format!("path = \"{}\"", lab.project.root().join("cuda").display());
    let said = edit("source/kernel.toml", &cuda, "path = \"cuda\"");
    assert!(said.contains("would bring the compiler that judges it"), "{said}");
    let folder = lab.project.place().join("folder");
    write_folder(&whole, &folder);
    fs::write(folder.join(std::ffi::OsStr::from_bytes(b"a\xff")), "").unwrap();
    assert!(verify(&lab, &folder, 101).contains("expected names"), "a name that is not UTF-8");
    // What is left out or repeated.
    let change = |change: &dyn Fn(&mut Value)| {
        let mut document: Value = serde_json::from_slice(&whole[KERNELS]).unwrap();
        change(&mut document);
        let document: KernelsDocument = serde_json::from_value(document).unwrap();
        let mut files = whole.clone();
        files.insert(KERNELS.into(), kforge::release::artifact::files::document(&document).unwrap());
        verify(&lab, &forged(&lab, files), 101)
    };
    let said = change(&|document| document["kernels"] = serde_json::json!([]));
    assert!(said.contains("the artifact has 0 of it, but expected is 1"), "{said}");
    let said = change(&|document| {
        let one = document["kernels"][0].clone();
        document["kernels"].as_array_mut().unwrap().push(one);
    });
    assert!(said.contains("the artifact has 2 of it, but expected is 1"), "{said}");
    for (field, says) in
        [("confirmation", "no verification in a process of its own of it"), ("time", "no timing of it")]
    {
        let said = change(&|document| drop(document["kernels"][0]["shapes"][1].as_object_mut().unwrap().remove(field)));
        assert!(said.contains(says), "{field}: {said}");
    }
    // Files that no part has, among them a list of keys that would make the artifact trust itself.
    for name in ["binaries/evil.cubin", "extra/file", "run.sh", "source/.kforge/allowed_signers"] {
        let mut files = whole.clone();
        files.insert(name.into(), b"x".to_vec());
        let said = verify(&lab, &forged(&lab, files), 101);
        assert!(said.contains("no part of an artifact has this name"), "{name}: {said}");
    }
    // The machine code of another variant, under the name of the champion's.
    let mut files = whole.clone();
    files.insert(binary.clone(), b"other".to_vec());
    let said = verify(&lab, &forged(&lab, files), 101);
    assert!(said.contains("is not in the artifact under the digest that `kernels.json` states"), "{said}");
    // Evidence of another kernel.
    let other = built();
    other.project.write("k.cu", "#pragma sass k<4> LDG.E.128 2\ntemplate <int V> __global__ void k(const float *x, float *y, int n) { other; }\n");
    other.built(&[]);
    run(&other, &["package"], 0);
    let mut files = whole.clone();
    files.insert("evidence.kfe".into(), self::files(&other)["evidence.kfe"].clone());
    let said = verify(&lab, &forged(&lab, files), 101);
    assert!(said.contains("the evidence has no compilation of its binary"), "{said}");
    // A file outside of the folder, or another form.
    let archive = lab.project.place().join("more.tar");
    fs::write(&archive, [fs::read(lab.project.root().join(ARCHIVE)).unwrap(), vec![0; 512]].concat()).unwrap();
    assert!(verify(&lab, &archive, 101).contains("is not in the form that kforge writes"));
}

#[test]
#[ignore = "second tier: many builds"]
fn what_cannot_be_vouched_for_is_not_packaged_and_everything_is_listed() {
    let lab = Lab::with_method(&machine(), METHOD);
    let said = run(&lab, &["package"], 101);
    assert!(
        said.contains("2 reasons") && said.contains("it states no licence") && !said.contains("Compiling"),
        "{said}"
    );
    assert!(said.contains("its CUDA toolkit lies in a folder of the workspace"), "{said}");
    let lab = licensed();
    let dark = lab.anew("dark");
    dark.on(&Machine { device: None, ..machine() });
    dark.built(&[]);
    let said = run(&dark, &["package"], 103);
    assert!(said.contains("its champion is provisional") && said.contains("no evidence"), "{said}");
    assert!(!dark.project.root().join("target/kforge/package").exists(), "nothing is written");
    // What a build on the device would show is no reason before it.
    let dark = dark.manifest("license = \"MIT\"\n", "");
    assert!(run(&dark, &["package"], 101).contains("provisional"));
    dark.on(&machine());
    let said = run(&dark, &["package"], 101);
    assert!(said.contains("states no licence") && !said.contains("provisional"), "{said}");
    // Nor is anything of what a build here has shown.
    let said = run(&built().manifest("license = \"MIT\"\n", ""), &["package"], 101);
    assert!(said.contains("states no licence") && !said.contains("reasons"), "{said}");
    // Evidence that is only claimed.
    lab.on(&machine());
    lab.built(&[]);
    run(&lab, &["evidence", "export"], 0);
    let claims = lab.anew("claims");
    claims.on(&Machine { device: None, ..machine() });
    run(&claims, &["build", "--require-evidence=claimed"], 0);
    let said = run(&claims, &["package"], 103);
    assert!(said.contains("only claimed by `evidence/virtual-h.kfe`"), "{said}");
    assert!(said.contains("trusts, or `--allow-claimed`") && !said.contains("--require-evidence=claimed"), "{said}");
    let said = run(&claims, &["package", "--allow-claimed"], 0);
    assert!(said.contains("some evidence of p is only claimed"), "{said}");
    let said = verify(&claims, &claims.project.root().join(ARCHIVE), 0);
    assert!(said.contains("only claimed"), "{said}");
    // Before a build, only what a build cannot change is listed: with a device, it would observe what is only claimed.
    let claims = claims.manifest("license = \"MIT\"\n", "");
    let said = run(&claims, &["package"], 101);
    assert!(said.contains("states no licence") && said.contains("only claimed by"), "{said}");
    claims.on(&machine());
    let said = run(&claims, &["package"], 101);
    assert!(said.contains("states no licence") && !said.contains("only claimed by"), "{said}");
    // A wrong kernel, and a target that has no evidence beside one that has.
    let wrong = built();
    let machine_of_2 = Machine { day: 2, ..machine() };
    wrong.on(&machine_of_2.first("^k<4>", "error = 1.0").first("^k<1>", "error = 1.0"));
    let built = wrong.project.build(&["--remeasure", "--keep-going"]);
    assert_eq!(built.code(), 100);
    let said = run(&wrong, &["package"], 100);
    assert!(said.contains("there is no champion") && said.contains("every variant that serves it is wrong"), "{said}");
    // What is unknown is not wrong; where a reason lies in the package, that is the code.
    let indecisive = licensed().manifest("atol = 1e-6", "atol = 1e6");
    let said = run(&indecisive, &["package"], 103);
    assert!(said.contains("there is no champion: the operator is indecisive"), "{said}");
    let said = run(&wrong.manifest("license = \"MIT\"\n", ""), &["package"], 101);
    assert!(said.contains("states no licence") && said.contains("2 reasons"), "{said}");
    assert!(said.contains("p/k/h: there is no champion: every variant that serves it is wrong"), "{said}");
    let two = licensed().manifest("[operator.twice]", "[targets.other]\narch = \"sm_80\"\n[operator.twice]");
    let two = two.manifest("targets = [\"h\"]", "targets = [\"h\", \"other\"]");
    two.built(&[]);
    let said = run(&two, &["package"], 103);
    assert!(
        said.contains("p/k/other: its champion is provisional") && said.contains("`--target` leaves out"),
        "{said}"
    );
    run(&two, &["package", "--target", "h"], 0);
    assert!(verify(&two, &two.project.root().join(ARCHIVE), 0).contains("1 kernel"));
    let said = run(&two, &["package", "--target", "x"], 4);
    assert!(said.contains('x'), "{said}");
}

#[test]
#[ignore = "second tier: many builds"]
fn a_rebuild_compares_the_machine_code_and_names_what_made_it_differ() {
    let lab = built();
    run(&lab, &["package"], 0);
    let reader = lab.anew("reader");
    reader.on(&Machine { device: None, ..machine() });
    let archive = lab.project.root().join(ARCHIVE);
    let words = ["verify-artifact", archive.to_str().unwrap(), "--allow-untrusted", "--rebuild"];
    let said = run(&reader, &words, 0);
    assert!(said.contains("Rebuilt 1 of 1 binary with equal bytes"), "{said}");
    assert!(!said.contains("warning"), "that the artifact claims its evidence is no news: {said}");
    // A compiler that makes other bytes each time.
    lab.on(&machine());
    lab.project.write("k.cu", &format!("#pragma unlike\n#pragma sass k<4> LDG.E.128 2\n{SOURCE}"));
    lab.built(&[]);
    run(&lab, &["package"], 0);
    reader.on(&Machine { device: None, ..machine() });
    let said = run(&reader, &words, 103);
    assert!(
        said.contains("Rebuilt 0 of 1 binary") && said.contains("all inputs of the compilation are equal"),
        "{said}"
    );
    // Another compiler at the same place.
    fs::write(lab.project.root().join("cuda/lib64/libnvrtc.so.13"), "another").unwrap();
    let said = run(&reader, &words, 101);
    assert!(said.contains("it was compiled with other toolchain"), "{said}");
}

#[test]
#[ignore = "second tier: many builds"]
fn a_dry_run_writes_nothing_and_two_at_once_or_a_kill_leave_nothing_half() {
    let lab = built();
    let place = lab.project.root().join("target/kforge/package");
    // Somebody's folder of the same name is not replaced.
    lab.project.write("out/p-0.1.0/thesis.txt", "mine");
    let said = run(&lab, &["package", "--output", "out"], 101);
    assert!(
        said.contains("does not hold exactly the files of an artifact")
            && said.contains("--output")
            && lab.project.root().join("out/p-0.1.0/thesis.txt").exists(),
        "{said}"
    );
    let said = run(&lab, &["package", "--dry-run"], 0);
    assert!(said.contains("Packaging p 0.1.0") && !place.exists(), "{said}");
    let mut running: Vec<_> = (0..3).map(|_| lab.project.command(&["package", "--offline"]).spawn().unwrap()).collect();
    assert!(running.iter_mut().all(|child| child.wait().unwrap().success()));
    let names = |folder: &Path| {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&place), ["p-0.1.0", "p-0.1.0.intoto.json", "p-0.1.0.tar"]);
    verify(&lab, &lab.project.root().join(FOLDER), 0);
    let temporary = lab.project.root().join("temporary");
    fs::create_dir(&temporary).unwrap();
    for at in 0..12 {
        let _ = fs::remove_dir_all(&place);
        let mut child = lab.project.command(&["package", "--offline"]).env("TMPDIR", &temporary).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(5 * at));
        child.kill().unwrap();
        child.wait().unwrap();
        for whole in [ARCHIVE, FOLDER].map(|path| lab.project.root().join(path)) {
            if whole.exists() {
                verify(&lab, &whole, 0);
            }
        }
    }
    run(&lab, &["package"], 0);
    assert_eq!(names(&place), ["p-0.1.0", "p-0.1.0.intoto.json", "p-0.1.0.tar"]);
    // What a killed process left in the temporary folder goes with the next verification, unless a living process has it.
    let left = temporary.join(".kforge-artifact-killed");
    fs::create_dir(&left).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    fs::set_permissions(&left, mode).unwrap();
    fs::create_dir(left.join("files")).unwrap();
    fs::write(left.join("lock"), "").unwrap();
    let words = ["verify-artifact", FOLDER, "--allow-untrusted", "--offline"];
    let verify = || assert!(lab.project.command(&words).env("TMPDIR", &temporary).status().unwrap().success());
    let living = fs::File::open(left.join("lock")).unwrap();
    rustix::fs::flock(&living, rustix::fs::FlockOperation::LockExclusive).unwrap();
    verify();
    assert_eq!(names(&temporary), [".kforge-artifact-killed"]);
    drop(living);
    verify();
    assert_eq!(names(&temporary), [""; 0]);
}

#[test]
fn a_full_disk_is_one_error_that_names_the_file_and_leaves_nothing_half() {
    let lab = built();
    let can = Command::new("unshare").args(["-rm", "sh", "-c", "mount -t tmpfs -o size=64k none /tmp"]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        return skipped("this system lets no test mount a small file system (`unshare -rm`)");
    }
    fs::create_dir(lab.project.place().join("small")).unwrap();
    let place = lab.project.place().join("small/out");
    let like = lab.project.command(&[]);
    let mut named = vec![];
    for size in (1..64).map(|at| 16 * at) {
        let script = format!(
            "mount -t tmpfs -o size={size}k none ../small && code=0 && \"$0\" -q package --offline --output {} || code=$?\nls -A ../small; exit $code",
            place.display()
        );
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", &script]).arg(lab.project.program()).current_dir(lab.project.root());
        command.env_clear().envs(like.get_envs().filter_map(|(k, v)| Some((k, v?))));
        let output = command.stdin(Stdio::null()).output().unwrap();
        let (left, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        if output.status.success() {
            break;
        }
        assert_eq!((output.status.code(), said.lines().count()), (Some(101), 1), "{said}");
        assert!(said.contains("No space left on device") && !said.contains(".kforge-package-"), "{said}");
        assert_eq!(left, "", "{size} KiB: {said}");
        let file = said.split_once("small/out/").and_then(|(_, rest)| rest.split_once('`'));
        named.push(file.unwrap_or_else(|| panic!("{said}")).0.to_string());
    }
    assert!(named.iter().any(|name| name.starts_with("p-0.1.0/")), "{named:?}");
    assert!(named.contains(&"p-0.1.0.tar".to_string()), "{named:?}");
}

#[test]
#[ignore = "second tier: builds twice in a terminal"]
fn a_terminal_shows_the_progress_of_both_builds_of_a_reproduction() {
    let lab = built();
    let like = lab.project.command(&[]);
    let mut command = Command::new("script");
    command.args(["-qec", &format!("{} reproduce --offline", lab.project.program().display()), "/dev/null"]);
    command.env_clear().envs(like.get_envs().filter_map(|(k, v)| Some((k, v?)))).env("TERM", "xterm");
    command.current_dir(lab.project.root()).stdin(Stdio::null());
    let Ok(output) = command.output() else { return skipped("there is no `script`") };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    let (_, after) = said.split_once("the first of two builds").unwrap();
    for part in after.split("the second of two builds") {
        assert!(part.contains("Building") && part.contains("] 0/"), "{said:?}");
    }
    assert_eq!(after.split("the second of two builds").count(), 2, "{said:?}");
    assert!(!said.contains("0/0"), "{said:?}");
    // Elsewhere nobody waits and watches.
    let said = run(&lab, &["reproduce"], 0);
    assert!(!said.contains("] 0/"), "{said}");
}

#[test]
fn programs_read_a_line_for_each_artifact() {
    let lab = built();
    let line = |words: &[&str]| -> Value {
        let output =
            lab.project.command(&[words, &["--message-format", "json", "--offline"]].concat()).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said.lines().count(), 1, "{said}");
        serde_json::from_str(&said).unwrap()
    };
    let packaged = line(&["package"]);
    assert_eq!(
        [&packaged["reason"], &packaged["package"], &packaged["written"]],
        [&Value::from("packaged"), &"p".into(), &true.into()]
    );
    let verified = line(&["verify-artifact", ARCHIVE, "--allow-untrusted"]);
    assert_eq!([&verified["reason"], &verified["root"]], [&Value::from("artifact-verified"), &packaged["root"]]);
}

#[test]
#[ignore = "second tier: many builds"]
fn two_builds_under_changed_circumstances_give_the_same_bytes_or_every_difference_is_named() {
    let lab = built();
    let said = run(&lab, &["reproduce"], 0);
    assert!(said.contains("Reproduced 2 binaries for GPUs and 1 artifact: all bytes are equal"), "{said}");
    lab.project.write("k.cu", &format!("#pragma unlike\n#pragma sass k<4> LDG.E.128 2\n{SOURCE}"));
    lab.built(&[]);
    let said = run(&lab, &["reproduce"], 103);
    assert!(said.contains("p/k/V=4/h/compile differs in"), "{said}");
    let said = run(&lab, &["reproduce", "--target", "x"], 4);
    assert!(said.contains('x'), "{said}");
    // Equal machine code is not enough where no artifact could be compared.
    lab.project.write("k.cu", &format!("#pragma sass k<4> LDG.E.128 2\n{SOURCE}"));
    lab.built(&[]);
    let lab = lab.manifest("license = \"MIT\"\n", "");
    let said = run(&lab, &["reproduce"], 103);
    assert!(said.contains("no artifacts were compared") && said.contains("states no licence"), "{said}");
}

#[test]
#[ignore = "second tier: many builds"]
fn ptx_lies_beside_machine_code_if_its_target_asks_for_it_and_is_marked_as_without_evidence() {
    // What was verified stays verified: no device is needed once PTX is asked for.
    let lab = built().manifest("[targets.h]", "[targets.h]\nptx = true");
    lab.on(&Machine { device: None, ..machine() });
    run(&lab, &["package"], 0);
    let whole = files(&lab);
    let (ptx, text) = whole.iter().find(|(name, _)| name.ends_with(".ptx")).unwrap();
    assert!(String::from_utf8_lossy(text).contains(".target sm_90a"), "{text:?}");
    let of = |name: &str| serde_json::from_slice::<Value>(&whole[name]).unwrap();
    let (document, index) = (of(KERNELS), of(INDEX));
    let variants = document["kernels"][0]["variants"].as_array().unwrap();
    assert_eq!(variants[0]["ptx"]["file"], ptx.as_str());
    let marked = |entry: &&Value| entry["without_evidence"] == true;
    let marked: Vec<&Value> = index["files"].as_array().unwrap().iter().filter(marked).map(|e| &e["name"]).collect();
    assert_eq!(marked, [ptx.as_str()]);
    let statement = of("provenance.intoto.json");
    let subjects: Vec<&Value> = statement["subject"].as_array().unwrap().iter().map(|s| &s["name"]).collect();
    assert!(subjects.len() == 2 && subjects.contains(&&Value::from(ptx.as_str())), "{subjects:?}");
    let packages = of("sbom.spdx.json")["packages"].as_array().unwrap().clone();
    let listed = packages.iter().find(|package| package["name"] == ptx.as_str()).unwrap();
    assert!(listed["comment"].as_str().unwrap().contains("without evidence"), "{listed}");
    let path = lab.project.root().join(ARCHIVE);
    verify(&lab, &path, 0);
    let said = run(&lab, &["verify-artifact", path.to_str().unwrap(), "--allow-untrusted", "--rebuild"], 0);
    assert!(said.contains("Rebuilt 2 of 2 binaries with equal bytes"), "{said}");

    // Other PTX, no PTX, PTX that nobody asked for, and PTX without its mark.
    let change = |change: &Change<'_>| {
        let (mut files, mut document) = (whole.clone(), document.clone());
        change(&mut files, &mut document["kernels"][0]["variants"][0]);
        let document: KernelsDocument = serde_json::from_value(document).unwrap();
        files.insert(KERNELS.into(), kforge::release::artifact::files::document(&document).unwrap());
        verify(&lab, &forged(&lab, files), 101)
    };
    let said = change(&|files, variant| {
        let other = [&text[..], b"// other\n"].concat();
        variant["ptx"]["digest"] = kforge::base::Digest::of(&other).to_string().into();
        files.insert(ptx.clone(), other);
    });
    assert!(said.contains("its compilation in the evidence is of other PTX"), "{said}");
    let said = change(&|files, _| drop(files.insert(ptx.clone(), b"other".to_vec())));
    assert!(said.contains("is not in the artifact under the digest that `kernels.json` states"), "{said}");
    let said = change(&|files, variant| {
        files.remove(ptx);
        variant.as_object_mut().unwrap().remove("ptx");
    });
    assert!(said.contains("gives forms of its binaries that differ"), "{said}");
    let said = change(&|files, _| {
        let manifest = String::from_utf8(files["source/kernel.toml"].clone()).unwrap();
        files.insert("source/kernel.toml".into(), manifest.replace("ptx = true", "ptx = false").into_bytes());
    });
    assert!(said.contains("gives forms of its binaries that differ"), "{said}");
    let mut files = whole.clone();
    let text = String::from_utf8(files[INDEX].clone()).unwrap();
    assert!(text.contains(",\"without_evidence\":true"), "{text}");
    files.insert(INDEX.into(), text.replace(",\"without_evidence\":true", "").into_bytes());
    let unmarked = lab.project.place().join("unmarked.tar");
    fs::write(&unmarked, tar::pack(&ArtifactFiles::new(files).unwrap()).unwrap()).unwrap();
    assert!(verify(&lab, &unmarked, 101).contains("its mark `without_evidence` is true, listed is false"));
}

#[test]
#[ignore = "second tier: many builds"]
fn a_dependency_that_is_a_folder_is_packed_and_the_artifact_builds_without_it() {
    let lab =
        licensed().manifest("[operator.twice]", "[dependencies]\ncommon = { path = \"../common\" }\n[operator.twice]");
    lab.project.write("../common/h.cuh", "// Shared.\n");
    lab.project.write("k.cu", &format!("#include \"h.cuh\"\n#pragma sass k<4> LDG.E.128 2\n{SOURCE}"));
    lab.built(&[]);
    run(&lab, &["package"], 0);
    let whole = files(&lab);
    assert_eq!(whole["source/dependencies/common/h.cuh"], b"// Shared.\n");
    fs::remove_dir_all(lab.project.root().join("../common")).unwrap();
    let path = lab.project.root().join(ARCHIVE);
    let said = run(&lab, &["verify-artifact", path.to_str().unwrap(), "--allow-untrusted", "--rebuild"], 0);
    assert!(said.contains("Rebuilt 1 of 1 binary with equal bytes"), "{said}");
    let mut files = whole;
    files.insert("source/dependencies/common/h.cuh".into(), b"// Another.\n".to_vec());
    let said = verify(&lab, &forged(&lab, files), 101);
    assert!(said.contains("its source `@common/h.cuh` is not the file from which the binary was compiled"), "{said}");
}

#[test]
fn a_class_that_cannot_be_timed_is_packaged_as_verified() {
    let lab = licensed().manifest("source = \"k.cu\"", "source = \"k.cu\"\nselect = { per = \"n > 50\" }");
    lab.built(&[]);
    run(&lab, &["package"], 0);
    let document: Value = serde_json::from_slice(&files(&lab)[KERNELS]).unwrap();
    let classes = document["kernels"][0]["classes"].as_array().unwrap();
    assert_eq!(classes.len(), 2, "{classes:?}");
    let shapes = document["kernels"][0]["shapes"].as_array().unwrap();
    assert!(shapes[0]["time"].is_null() && !shapes[1]["time"].is_null(), "{shapes:?}");
    assert!(verify(&lab, &lab.project.root().join(ARCHIVE), 0).contains("2 passing shapes"));
}
