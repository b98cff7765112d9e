//! Tests of the lockfile's form: stable text, small diffs, refusals. Needs no network.

use super::*;

fn wheel(name: &str, version: &str) -> LockedWheel {
    LockedWheel {
        name: name.into(),
        version: version.into(),
        file: format!("{}-{version}-py3-none-any.whl", name.replace('-', "_")),
        digest: WheelDigest { sha256: "ab".repeat(32), size: 7 },
    }
}

fn seat(kernel: &str, class: &str) -> Seat {
    Seat { package: "norms".into(), kernel: kernel.into(), target: "h200".into(), class: class.into() }
}

fn full() -> Lockfile {
    let mut lock = Lockfile::default();
    lock.wheels
        .insert("cuda 13.0".into(), vec![wheel("nvidia-cuda-nvrtc", "13.0.88"), wheel("nvidia-cuda-crt", "13.0.88")]);
    lock.dependencies
        .insert(("norms".into(), "cutlass".into()), LockedDependency::Wheel(wheel("nvidia-cutlass", "4.2.0")));
    let path = LockedDependency::Path { path: "common".into(), digest: Digest::of(b"tree") };
    lock.dependencies.insert(("norms".into(), "common".into()), path);
    lock.champions.insert(seat("rms_norm", "all"), "blake3:1".into());
    lock.champions.insert(seat("layer_norm", "all"), "blake3:2".into());
    lock
}

#[test]
fn text_and_back() {
    let mut expected = full();
    let text = expected.to_text();
    expected.sort();
    assert_eq!(Lockfile::parse(&text).unwrap(), expected);
    assert_eq!(Lockfile::parse(&text).unwrap().to_text(), text);
    assert!(text.starts_with("# @generated"), "{text}");
}

#[test]
fn order_of_insertion_does_not_show() {
    let mut other = full();
    other.wheels.get_mut("cuda 13.0").unwrap().reverse();
    assert_eq!(other.to_text(), full().to_text());
}

#[test]
fn one_champion_more_is_one_table_more() {
    let mut more = full();
    more.champions.insert(seat("softmax", "all"), "blake3:3".into());
    let (old, new) = (full().to_text(), more.to_text());
    let added: Vec<&str> = new.lines().filter(|l| !old.lines().any(|o| o == *l)).collect();
    assert_eq!(added, ["kernel = \"softmax\"", "variant = \"blake3:3\""]);
    assert_eq!(new.lines().count(), old.lines().count() + 7);
}

#[test]
fn no_address_is_ever_written() {
    assert!(!full().to_text().contains("://"));
}

#[test]
fn a_later_form_names_the_kforge_that_reads_it() {
    let text = "version = 9\nkforge = \"3.1\"\n[future]\nshape = 1\n";
    let error = Lockfile::parse(text).unwrap_err().to_string();
    assert!(error.contains("version 9") && error.contains("needs kforge 3.1 or later"), "{error}");
}

#[test]
fn damage_is_refused_by_name() {
    let good = full().to_text();
    for (from, to, says) in [
        ("version = 1", "", "no version"),
        ("variant =", "varient =", "varient"),
        ("sha256:abab", "sha256:zzab", "is not a wheel's digest"),
        ("file = \"nvidia_cuda_crt", "file = \"../nvidia_cuda_crt", "not the file name of a wheel"),
        ("path = \"common\"\n", "", "expected `path`"),
        ("kernel = \"rms_norm\"", "kernel = \"layer_norm\"", "twice"),
    ] {
        let error = Lockfile::parse(&good.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("kforge.lock"), "{says} in {error}");
    }
}

#[test]
fn an_unchanged_file_is_not_written_again() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(Lockfile::read(dir.path()).unwrap(), Lockfile::default());
    assert!(!Lockfile::default().write(dir.path(), false).unwrap(), "nothing to say, no file");
    assert!(full().write(dir.path(), false).unwrap());
    assert!(!full().write(dir.path(), false).unwrap());
    assert!(!full().write(dir.path(), true).unwrap());
}

#[test]
fn locked_says_what_would_change_and_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    full().write(dir.path(), false).unwrap();
    let mut other = full();
    other.wheels.get_mut("cuda 13.0").unwrap()[0].version = "13.0.99".into();
    other.champions.remove(&seat("rms_norm", "all"));
    let error = other.write(dir.path(), true).unwrap_err().to_string();
    for part in
        ["--locked", "`nvidia-cuda-nvrtc` of cuda 13.0 would change from 13.0.88", "`rms_norm` in `norms`", "removed"]
    {
        assert!(error.contains(part), "{part} in {error}");
    }
    assert_eq!(std::fs::read_to_string(dir.path().join(FILE_NAME)).unwrap(), full().to_text());
}
