//! Tests of installing. They create wheels and use a pip that copies them, so they need no network.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use sha2::{Digest as _, Sha256};
use zip::write::SimpleFileOptions;

use super::*;
use crate::workspace::lockfile::WheelDigest;

/// Writes a wheel with an executable and a header to `shelf`.
fn wheel(shelf: &Path, name: &str) -> LockedWheel {
    let file = format!("{}-1.0-py3-none-any.whl", name.replace('-', "_"));
    let mut archive = zip::ZipWriter::new(std::fs::File::create(shelf.join(&file)).unwrap());
    for (path, mode) in
        [(format!("nvidia/cu13/bin/{name}"), 0o755), ("nvidia/cu13/include/shared.h".to_string(), 0o644)]
    {
        archive.start_file(path, SimpleFileOptions::default().unix_permissions(mode)).unwrap();
        archive.write_all(b"contents").unwrap();
    }
    archive.finish().unwrap();
    let bytes = std::fs::read(shelf.join(&file)).unwrap();
    let sha256: String = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
    let digest = WheelDigest { sha256, size: bytes.len() as u64 };
    LockedWheel { name: name.into(), version: "1.0".into(), file, digest }
}

/// A `python3 -m pip` that takes every wheel from `shelf` and records each download.
fn pip(shelf: &Path) -> Pip {
    let bin = shelf.join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let script = format!(
        "#!/bin/sh\ncase \"$3\" in --version) echo pip 99 from here; exit;; esac\n\
         while [ $# -gt 0 ]; do [ \"$1\" = --dest ] && dest=$2; shift; done\n\
         echo x >> {0}/downloads\ncp {0}/*.whl $dest/\n",
        shelf.display()
    );
    std::fs::write(bin.join("python3"), script).unwrap();
    std::fs::set_permissions(bin.join("python3"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    Pip::find(None, &BTreeMap::from([("PATH".to_string(), path)])).unwrap()
}

fn downloads(shelf: &Path) -> usize {
    std::fs::read_to_string(shelf.join("downloads")).unwrap_or_default().lines().count()
}

fn visible(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    names.filter(|n| !n.ends_with(".lock")).collect()
}

#[test]
fn wheels_land_in_one_tree_with_their_executable_bits() {
    let (shelf, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let wheels = [wheel(shelf.path(), "nvcc"), wheel(shelf.path(), "ptxas")];
    let mut seen = vec![];
    let pip = pip(shelf.path());
    let folder = install_wheels(&wheels, home.path(), Source::Pip(&pip), &mut |p| seen.push(p)).unwrap();
    let mode =
        |file: &str| std::fs::metadata(folder.join("nvidia/cu13").join(file)).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        [mode("bin/nvcc") & 0o111, mode("bin/ptxas") & 0o111, mode("include/shared.h") & 0o111],
        [0o111, 0o111, 0]
    );
    assert!(seen.iter().any(|p| matches!(p, Progress::Downloading { .. })), "{seen:?}");
    assert!(seen.contains(&Progress::Unpacking { name: "ptxas".into() }));
    assert_eq!(visible(home.path()).len(), 1, "nothing else is left behind");
    install_wheels(&wheels, home.path(), Source::Offline, &mut |_| {}).expect("what is there needs no network");
    assert_eq!(downloads(shelf.path()), 1);
}

#[test]
fn a_file_that_is_not_the_locked_one_is_refused_and_nothing_is_installed() {
    let (shelf, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let good = wheel(shelf.path(), "nvcc");
    let mut other_hash = good.clone();
    other_hash.digest.sha256 = "00".repeat(32);
    let mut other_size = good;
    other_size.digest.size += 1;
    let pip = pip(shelf.path());
    for (wheel, says) in [(other_hash, "SHA-256"), (other_size, "size")] {
        let error = install_wheels(&[wheel], home.path(), Source::Pip(&pip), &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("nvcc-1.0-py3-none-any.whl"), "{error}");
        assert_eq!(visible(home.path()), Vec::<String>::new());
    }
}

#[test]
fn offline_names_the_missing_files_and_what_to_run() {
    let (shelf, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let wheels = [wheel(shelf.path(), "nvcc")];
    let error = install_wheels(&wheels, home.path(), Source::Offline, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("nvcc 1.0") && error.contains("kforge fetch"), "{error}");
}

#[test]
fn a_download_that_fails_says_why_in_its_first_line_and_leaves_nothing() {
    let (shelf, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let wheels = [wheel(shelf.path(), "nvcc")];
    let pip = pip(shelf.path());
    let script = shelf.path().join("bin/python3");
    let works = std::fs::read_to_string(&script).unwrap();
    std::fs::write(&script, "#!/bin/sh\necho \"OSError: [Errno 28] No space left on device\" >&2\nexit 2\n").unwrap();
    let error = install_wheels(&wheels, home.path(), Source::Pip(&pip), &mut |_| {}).unwrap_err().to_string();
    let (first, rest) = error.split_once('\n').unwrap();
    assert!(first.starts_with("cannot download nvcc 1.0: there is no space left"), "{error}");
    assert!(rest.contains("pip: OSError: [Errno 28]"), "{error}");
    assert_eq!(visible(home.path()), Vec::<String>::new());
    std::fs::write(&script, works).unwrap();
    install_wheels(&wheels, home.path(), Source::Pip(&pip), &mut |_| {}).unwrap();
}

#[test]
fn installers_at_once_download_once() {
    let (shelf, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let wheels = [wheel(shelf.path(), "nvcc")];
    let pip = pip(shelf.path());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| install_wheels(&wheels, home.path(), Source::Pip(&pip), &mut |_| {}).unwrap());
        }
    });
    assert_eq!(downloads(shelf.path()), 1);
}

#[test]
fn what_a_killed_installation_left_is_removed() {
    let (shelf, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let wheels = [wheel(shelf.path(), "nvcc")];
    let left = home.path().join(format!(".installing-{}-abc", name_of(&wheels)));
    std::fs::create_dir_all(left.join("tree")).unwrap();
    install_wheels(&wheels, home.path(), Source::Pip(&pip(shelf.path())), &mut |_| {}).unwrap();
    assert!(!left.exists());
}

#[test]
fn a_wheel_that_leaves_its_folder_is_refused() {
    let (shelf, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = shelf.path().join("evil-1.0-py3-none-any.whl");
    let mut archive = zip::ZipWriter::new(std::fs::File::create(&file).unwrap());
    archive.start_file("../outside", SimpleFileOptions::default()).unwrap();
    archive.finish().unwrap();
    let error = unpack::unpack(&file, &home.path().join("tree")).unwrap_err().to_string();
    assert!(error.contains("`../outside` leaves its folder"), "{error}");
    assert!(!home.path().join("outside").exists());
}
