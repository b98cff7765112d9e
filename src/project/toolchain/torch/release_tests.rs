//! Tests of releases of PyTorch. A stand-in for pip answers with reports, and a stand-in for Python imports; neither uses the network.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use zip::write::SimpleFileOptions;

use super::*;
use crate::toolchain::cuda::Source;
use crate::toolchain::torch::{install, installed, places};
use crate::workspace::lockfile::{Lockfile, WheelDigest};

fn wheel(name: &str, version: &str, tags: &str) -> LockedWheel {
    LockedWheel {
        name: name.into(),
        version: version.into(),
        file: format!("{name}-{version}-{tags}.whl"),
        digest: WheelDigest { sha256: "ab".repeat(32), size: 1 },
    }
}

fn python(version: &str) -> Python {
    Python {
        asked: "/usr/bin/python3".into(),
        path: "/usr/bin/python3".into(),
        files: vec!["/usr/bin/python3".into()],
        library: vec![],
        version: version.into(),
        version_text: version.into(),
        numpy: None,
    }
}

fn script(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn found(shelf: &Path) -> Pip {
    let path = format!("{}:/usr/bin:/bin", shelf.join("bin").display());
    Pip::find(None, &BTreeMap::from([("PATH".to_string(), path)])).unwrap()
}

/// The Python here that has pip: it evaluates the conditions of requirements.
fn real() -> Option<PathBuf> {
    let said = std::process::Command::new("python3")
        .args(["-c", "import sys, pip._vendor.packaging.requirements; print(sys.executable)"])
        .output();
    let said = said.ok().filter(|said| said.status.success())?;
    Some(String::from_utf8_lossy(&said.stdout).trim().into())
}

/// A pip that answers with the file that is named after the Python and the last requirement, and keeps the constraints that it gets.
fn pip(shelf: &Path, real: &Path) -> Pip {
    let text = format!(
        "case \"$1\" in -c) exec {} \"$@\";; esac\n\
         case \"$3\" in --version) echo pip 99 from here; exit;; esac\n\
         for word; do\n\
         case \"$before\" in --python-version) python=$word;; --constraint) constraints=$word;; esac\n\
         before=$word\n\
         done\n\
         [ -z \"$constraints\" ] || cp \"$constraints\" \"{shelf}/constraints-$python\"\n\
         exec cat \"{shelf}/$python-$before\"",
        real.display(),
        shelf = shelf.display()
    );
    script(&shelf.join("bin/python3"), &text);
    found(shelf)
}

/// Writes what pip answers for a Python and a requirement: wheels with their requirements.
fn answer(shelf: &Path, name: &str, items: &[(&LockedWheel, &[&str])]) {
    let items: Vec<serde_json::Value> = items
        .iter()
        .map(|(wheel, requires)| {
            std::fs::write(shelf.join(&wheel.file), "w").unwrap();
            serde_json::json!({
                "metadata": { "name": wheel.name, "version": wheel.version, "requires_dist": requires },
                "download_info": {
                    "url": format!("file://{}/{}", shelf.display(), wheel.file),
                    "archive_info": { "hashes": { "sha256": wheel.digest.sha256 } },
                },
            })
        })
        .collect();
    std::fs::write(shelf.join(name), serde_json::json!({ "install": items }).to_string()).unwrap();
}

const REQUIRED: [&str; 6] = [
    "networkx>=2.5.1",
    "nvidia-cublas==13.0; platform_system == \"Linux\"",
    "cuda-toolkit[cudart]==13.0",
    "setuptools; python_version >= \"3.12\"",
    "importlib-metadata; python_version < \"3.12\"",
    "einops; extra == \"more\"",
];

/// What two kinds of Python need, as a pip of a Python 3.11 answers: it leaves out what only 3.12 needs, and has what only 3.11 needs for both.
fn resolved(shelf: &Path, real: &Path) -> (TorchWheels, BTreeMap<&'static str, LockedWheel>) {
    let any = "py3-none-any";
    let wheels = BTreeMap::from([
        ("torch 11", wheel("torch", "2.9.1", "cp311-cp311-linux_x86_64")),
        ("torch 12", wheel("torch", "2.9.1", "cp312-cp312-linux_x86_64")),
        ("networkx 11", wheel("networkx", "3.4", any)),
        ("networkx 12", wheel("networkx", "3.6", any)),
        ("cublas", wheel("nvidia-cublas", "13.0", any)),
        ("toolkit", wheel("cuda-toolkit", "13.0", any)),
        ("runtime", wheel("nvidia-cuda-runtime", "13.0", any)),
        ("metadata", wheel("importlib-metadata", "8.0", any)),
        ("setuptools", wheel("setuptools", "80.0", any)),
        ("wheel", wheel("wheel", "1.0", any)),
    ]);
    for (python, torch, networkx) in [("3.11", "torch 11", "networkx 11"), ("3.12", "torch 12", "networkx 12")] {
        let toolkit = ["nvidia-cuda-runtime==13.0; extra == \"cudart\"", "nvidia-nvcc; extra == \"nvcc\""];
        let items: [(&LockedWheel, &[&str]); 6] = [
            (&wheels[torch], &REQUIRED),
            (&wheels[networkx], &[]),
            (&wheels["cublas"], &[]),
            (&wheels["toolkit"], &toolkit),
            (&wheels["runtime"], &[]),
            (&wheels["metadata"], &[]),
        ];
        answer(shelf, &format!("{python}-torch==2.9.1"), &items);
    }
    answer(shelf, "3.12-setuptools", &[(&wheels["setuptools"], &["wheel"]), (&wheels["wheel"], &[])]);
    let ResolvedTorch { wheels: all, lacking } = TorchWheels::resolve("2.9.1", true, &pip(shelf, real)).unwrap();
    let without: Vec<&str> = lacking.iter().map(|(python, _)| python.as_str()).collect();
    assert_eq!(without, ["3.10", "3.13", "3.14"], "each is named with its reason");
    (all, wheels)
}

#[test]
fn a_release_with_cuda_has_what_each_python_needs_by_the_conditions_of_its_requirements() {
    let shelf = tempfile::tempdir().unwrap();
    let Some(real) = real() else { return kforge_foundation::base::testing::skipped("no Python here has pip") };
    let (all, wheels) = resolved(shelf.path(), &real);
    let TorchWheels::WithCuda(found) = &all else { panic!("{all:?}") };
    assert_eq!(found.keys().collect::<Vec<_>>(), [&11, &12], "the index has no others");
    let named = |minor: u32| found[&minor].iter().map(|wheel| wheel.name.as_str()).collect::<Vec<_>>();
    let common = ["cuda-toolkit", "networkx", "nvidia-cublas", "nvidia-cuda-runtime", "torch"];
    let mut of_old = [&common[..], &["importlib-metadata"]].concat();
    of_old.sort_unstable();
    assert_eq!(named(11), of_old);
    let mut of_new = [&common[..], &["setuptools", "wheel"]].concat();
    of_new.sort_unstable();
    assert_eq!(named(12), of_new);
    assert!(found[&12].contains(&wheels["networkx 12"]) && found[&11].contains(&wheels["networkx 11"]));
    // What pip resolved first stays as it is.
    let kept = std::fs::read_to_string(shelf.path().join("constraints-3.12")).unwrap();
    assert!(kept.contains("networkx==3.6\n") && kept.contains("torch==2.9.1\n"), "{kept}");
    assert!(!shelf.path().join("constraints-3.11").exists());
}

#[test]
fn the_lockfile_names_once_what_every_python_needs_and_gives_each_its_own() {
    let shelf = tempfile::tempdir().unwrap();
    let Some(real) = real() else { return kforge_foundation::base::testing::skipped("no Python here has pip") };
    let (all, wheels) = resolved(shelf.path(), &real);
    let mut lock = Lockfile::default();
    // Of an earlier resolution.
    lock.wheels.insert("torch-cuda 2.9.1 python 3.10".into(), vec![wheels["torch 11"].clone()]);
    lock.wheels.insert("torch 2.9.1".into(), vec![wheels["torch 11"].clone()]);
    all.lock("2.9.1", &mut lock.wheels);
    let names: Vec<&str> = lock.wheels.keys().map(String::as_str).collect();
    let own = ["torch-cuda 2.9.1", "torch-cuda 2.9.1 python 3.11", "torch-cuda 2.9.1 python 3.12"];
    assert_eq!(names, [&["torch 2.9.1"][..], &own].concat());
    assert_eq!(
        lock.wheels["torch-cuda 2.9.1"],
        [&wheels["toolkit"], &wheels["cublas"], &wheels["runtime"]].map(Clone::clone)
    );
    assert!(own.iter().all(|name| is_lock_name(name, "2.9.1", true)));
    assert!(!is_lock_name("torch 2.9.1", "2.9.1", true) && !is_lock_name(own[0], "2.9", true));
    assert!(!is_lock_name(own[0], "2.9.1", false));
    let read = Lockfile::parse(&lock.to_text()).unwrap();
    let read = TorchWheels::locked(&read.wheels, "2.9.1", true).unwrap();
    assert_eq!(read, all);
    assert_eq!(TorchWheels::locked(&lock.wheels, "2.9.2", true), None);
    for (version, torch) in [("3.11.7", "torch 11"), ("3.12.1", "torch 12")] {
        let set = read.for_python(&python(version)).unwrap();
        assert!(set.cuda && set.wheels.contains(&wheels[torch]) && set.wheels.contains(&wheels["cublas"]), "{set:?}");
    }
    for none in ["3.13.1", "2.7.1"] {
        let error = read.for_python(&python(none)).unwrap_err().to_string();
        assert!(error.contains(none) && error.contains("kforge update"), "{error}");
    }
}

#[test]
fn a_release_for_one_kind_of_python_is_all_its_own() {
    let all = TorchWheels::WithCuda(BTreeMap::from([(
        13,
        vec![wheel("nvidia-cublas", "13", "any"), wheel("torch", "2.9.1", "cp313")],
    )]));
    let mut lock = BTreeMap::new();
    all.lock("2.9.1", &mut lock);
    assert_eq!(lock.keys().collect::<Vec<_>>(), ["torch-cuda 2.9.1 python 3.13"]);
    assert_eq!(TorchWheels::locked(&lock, "2.9.1", true), Some(all));
}

#[test]
fn each_python_gets_its_wheel_and_what_is_for_any() {
    let wheels = [
        wheel("sympy", "1", "py3-none-any"),
        wheel("torch", "2.9.1", "cp311-cp311-manylinux_2_28_x86_64"),
        wheel("torch", "2.9.1", "cp313-cp313-manylinux_2_28_x86_64"),
        wheel("torch", "2.9.1", "cp313-cp313t-manylinux_2_28_x86_64"),
    ];
    let all = TorchWheels::Processor(wheels.to_vec());
    let of = |version: &str| all.for_python(&python(version)).map_err(|e| e.to_string());
    assert_eq!(of("3.11.7").unwrap().wheels, [wheels[0].clone(), wheels[1].clone()]);
    assert_eq!(of("3.13.1").unwrap().wheels, [wheels[0].clone(), wheels[2].clone()]);
    let none = of("3.12.1").unwrap_err();
    assert!(none.contains("3.12.1") && none.contains("kforge update"), "{none}");
    let keys = ["3.11.7", "3.13.1"].map(|version| of(version).unwrap().fingerprint().tools["torch"]);
    assert_ne!(keys[0], keys[1], "the key is of the wheel that is used");
    assert!(of("3.11.7").unwrap().fingerprint().tools.contains_key("torch-processor"));
    assert_eq!(of("3.11.7").unwrap().with_cuda(), None);
}

#[test]
fn another_library_of_cuda_is_another_key_and_what_runs_on_the_processor_is_in_no_key_of_a_gpu() {
    let set = |torch: &str, cublas: &str| TorchSet {
        wheels: vec![wheel("nvidia-cublas", cublas, "any"), wheel("sympy", "1", "any"), wheel("torch", torch, "any")],
        cuda: true,
    };
    let key = |set: &TorchSet| set.with_cuda().unwrap().tools["torch-cuda"];
    let first = set("2.9.1", "12.8");
    assert_ne!(key(&first), key(&set("2.9.1", "12.9")));
    assert_eq!(key(&first), key(&set("2.9.2", "12.8")));
    for other in [set("2.9.2", "12.8"), set("2.9.1", "12.9")] {
        assert_ne!(first.fingerprint(), other.fingerprint(), "a toolchain leads to one folder");
    }
}

/// A set of one wheel on a shelf, and a pip that copies it.
fn shelved(shelf: &Path) -> (TorchSet, Pip) {
    let file = "torch-2.9.1-cp311-cp311-linux_x86_64.whl";
    let mut archive = zip::ZipWriter::new(std::fs::File::create(shelf.join(file)).unwrap());
    archive.start_file("torch/__init__.py", SimpleFileOptions::default()).unwrap();
    archive.write_all(b"").unwrap();
    archive.finish().unwrap();
    let bytes = std::fs::read(shelf.join(file)).unwrap();
    let sha256: String = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
    let digest = WheelDigest { sha256, size: bytes.len() as u64 };
    let wheels = vec![LockedWheel { name: "torch".into(), version: "2.9.1".into(), file: file.into(), digest }];
    let text = format!(
        "case \"$3\" in --version) echo pip 99 from here; exit;; esac\n\
         while [ $# -gt 0 ]; do [ \"$1\" = --dest ] && dest=$2; shift; done\ncp {}/*.whl $dest/",
        shelf.display()
    );
    script(&shelf.join("bin/python3"), &text);
    (TorchSet { wheels, cuda: true }, found(shelf))
}

#[test]
fn an_installation_with_cuda_has_no_stand_ins_and_is_refused_if_it_was_built_without() {
    let (shelf, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (set, pip) = shelved(shelf.path());
    let with = |said: &str| {
        let path = shelf.path().join("imports");
        script(&path, said);
        install((&set, &Python { path, ..python("3.11.7") }), home.path(), Source::Pip(&pip), &mut |_| {})
    };
    let without = with("echo cuda None").unwrap_err();
    assert!(matches!(&without, Error::TorchWithoutCuda { version } if version == "2.9.1"), "{without}");
    assert!(without.to_string().contains("without CUDA") && without.to_string().contains("kforge update"), "{without}");
    assert_eq!(installed(&set, home.path()), None);
    let broken = with("echo libcudnn.so.9: not found >&2; exit 1").unwrap_err().to_string();
    assert!(broken.contains("libcudnn.so.9"), "{broken}");
    assert_eq!(installed(&set, home.path()), None);
    let folder = with("echo a warning; echo cuda 12.8").unwrap();
    assert_eq!(installed(&set, home.path()).as_ref(), Some(&folder));
    assert_eq!(places(&folder), [("torch".to_string(), folder.clone())].into());
    assert!(!folder.join("kforge-stubs").exists());
    let again = install((&set, &python("3.11.7")), home.path(), Source::Offline, &mut |_| {});
    assert_eq!(again.unwrap(), folder, "what is there needs no network");
}
