//! Tests of the lockfile's format: stable text, small diffs, refusals. Needs no network.

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
    let types = String::new();
    Seat { package: "norms".into(), kernel: kernel.into(), types, target: "h200".into(), class: class.into() }
}

fn variant(name: &str) -> Pin {
    Pin::Variant(name.into())
}

fn full() -> Lockfile {
    let mut lock = Lockfile::default();
    lock.wheels
        .insert("cuda 13.0".into(), vec![wheel("nvidia-cuda-nvrtc", "13.0.88"), wheel("nvidia-cuda-crt", "13.0.88")]);
    lock.dependencies
        .insert(("norms".into(), "cutlass".into()), LockedDependency::Wheel(wheel("nvidia-cutlass", "4.2.0")));
    let path = LockedDependency::Path { path: "common".into(), digest: Digest::of(b"tree") };
    lock.dependencies.insert(("norms".into(), "common".into()), path);
    lock.champions.insert(seat("rms_norm", "all"), variant("BLOCK=1"));
    lock.champions.insert(seat("layer_norm", "all"), variant("BLOCK=2"));
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
    more.champions.insert(seat("softmax", "all"), variant("BLOCK=3"));
    let (old, new) = (full().to_text(), more.to_text());
    let added: Vec<&str> = new.lines().filter(|l| !old.lines().any(|o| o == *l)).collect();
    assert_eq!(added, ["kernel = \"softmax\"", "variant = \"BLOCK=3\""]);
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
        ("version = 2", "", "a known version"),
        ("version = 2", "version = 0", "a known version"),
        ("variant = \"BLOCK=1\"\n", "", "one of `variant` and `identity`"),
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

#[test]
fn a_wheel_that_changes_is_told_by_its_version_and_by_its_file_where_that_is_all() {
    let wheel = |lock: &mut Lockfile, change: &dyn Fn(&mut LockedWheel)| {
        change(&mut lock.wheels.get_mut("cuda 13.0").unwrap()[0]);
    };
    let mut newer = full();
    wheel(&mut newer, &|w| (w.version, w.file) = ("13.0.99".into(), "nvidia_cuda_nvrtc-13.0.99-none.whl".into()));
    let changes = full().changes(&newer);
    assert_eq!(changes, ["wheel `nvidia-cuda-nvrtc` of cuda 13.0 would change from 13.0.88 to 13.0.99"]);
    let mut other = full();
    wheel(&mut other, &|w| w.digest.sha256 = "00".repeat(32));
    let changes = full().changes(&other);
    assert!(changes.len() == 1 && changes[0].contains(&"00".repeat(32)), "{changes:?}");
    assert!(full().changes(&full()).is_empty());
}

#[test]
fn each_choice_of_types_has_a_pin_of_its_own() {
    let mut lock = Lockfile::default();
    for (types, name) in [("T=f16", "BLOCK=64"), ("T=f32", "BLOCK=128")] {
        lock.champions.insert(Seat { types: types.into(), ..seat("k", "all") }, variant(name));
    }
    assert_eq!(Lockfile::parse(&lock.to_text()).unwrap(), lock);
    let changes = Lockfile::default().changes(&lock);
    assert_eq!(changes[0], "champion of `k` with T=f16 in `norms` on `h200` would be added: `BLOCK=64`");
    assert_eq!(changes.len(), 2);
}

#[test]
fn a_file_of_version_one_keeps_its_pins() {
    let identity = Digest::of(b"BLOCK=1").short();
    let old = format!(
        "version = 1\nkforge = \"0.1\"\n\n[[champion]]\npackage = \"norms\"\nkernel = \"k\"\ntarget = \"h200\"\nclass = \"all\"\nvariant = \"{identity}\"\n"
    );
    let lock = Lockfile::parse(&old).unwrap();
    assert_eq!(lock.champions[&seat("k", "all")], Pin::Identity(identity.clone()));
    assert_eq!(lock.champions[&seat("k", "all")].identity(), variant("BLOCK=1").identity());
    assert!(lock.to_text().contains(&format!("identity = \"{identity}\"")), "{}", lock.to_text());
    assert_eq!(Lockfile::parse(&lock.to_text()).unwrap(), lock, "written back as it was meant");
}
