//! The machine key: made once, outside the home, for its owner only; and what its tags cover.

use std::path::PathBuf;

use super::*;
use kforge_types::record::Verdict;

/// A folder for keys and a home beside it.
fn places() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let (place, home) = (dir.path().join("state/kforge/machine-key"), dir.path().join("home"));
    (dir, place, home)
}

fn result(summary: &str) -> StepResult {
    StepResult {
        outputs: [("observation".to_string(), Digest::of(b"seen"))].into(),
        verdict: Some(Verdict::Pass),
        notes: vec![],
        summary: summary.into(),
        duration_ms: 1,
    }
}

#[test]
fn the_key_is_made_once_and_only_its_owner_can_read_it() {
    let (_dir, place, home) = places();
    assert!(matches!(MachineKey::open(Some(&place), &home, false), Err(NoKey::NotMade(_))));
    assert!(!place.exists(), "a command that writes nothing makes no key");
    let key = MachineKey::open(Some(&place), &home, true).unwrap();
    assert_eq!(MachineKey::open(Some(&place), &home, true).unwrap(), key);
    assert_eq!(MachineKey::open(Some(&place), &home, false).unwrap(), key);
    let metadata = std::fs::metadata(&place).unwrap();
    assert_eq!((metadata.len(), metadata.permissions().mode() & 0o777), (32, 0o600));
    let (_other, elsewhere, _) = places();
    assert_ne!(MachineKey::open(Some(&elsewhere), &home, true).unwrap(), key);
}

#[test]
fn many_processes_that_make_the_key_at_once_get_the_same_one() {
    let (_dir, place, home) = places();
    let keys: Vec<MachineKey> = std::thread::scope(|scope| {
        let open = || MachineKey::open(Some(&place), &home, true).unwrap();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(keys.iter().all(|key| *key == keys[0]));
    let left: Vec<_> = std::fs::read_dir(place.parent().unwrap()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["machine-key"]);
}

#[test]
fn a_key_that_others_have_or_that_is_none_is_refused_by_name() {
    let (dir, place, home) = places();
    assert!(matches!(MachineKey::open(None, &home, true), Err(NoKey::NoPlace)));
    let within = home.join("machine-key");
    assert!(matches!(MachineKey::open(Some(&within), &home, true), Err(NoKey::InHome(path)) if path == within));
    std::fs::create_dir_all(&home).unwrap();
    std::os::unix::fs::symlink(&home, dir.path().join("link")).unwrap();
    let linked = dir.path().join("link/deep/machine-key");
    assert!(matches!(MachineKey::open(Some(&linked), &home, true), Err(NoKey::InHome(_))));
    MachineKey::open(Some(&place), &home, true).unwrap();
    std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o640)).unwrap();
    let refused = MachineKey::open(Some(&place), &home, true).unwrap_err();
    assert!(matches!(refused, NoKey::Exposed { mode: 0o640, .. }));
    assert!(refused.to_string().contains("chmod 600"), "{refused}");
    std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o600)).unwrap();
    for bytes in [&b""[..], &[7; 31], &[7; 33]] {
        std::fs::write(&place, bytes).unwrap();
        assert!(matches!(MachineKey::open(Some(&place), &home, true), Err(NoKey::NotAKey(_))), "{}", bytes.len());
    }
    std::fs::write(dir.path().join("file"), "").unwrap();
    let blocked = dir.path().join("file/machine-key");
    assert!(matches!(MachineKey::open(Some(&blocked), &home, true), Err(NoKey::Io { .. })));
}

#[test]
fn a_tag_covers_the_key_and_everything_that_a_result_says() {
    let (key, other) = (MachineKey::of_bytes(&[1; 32]), MachineKey::of_bytes(&[2; 32]));
    let question = Digest::of(b"question");
    let tag = key.of_result(&question, &result("s"));
    assert_eq!(key.of_result(&question, &StepResult { duration_ms: 9, ..result("s") }), tag);
    assert_eq!((Tag::of_hex(&tag.hex()), Tag::of_bytes(*tag.bytes())), (Some(tag), tag));
    let fail = Some(Verdict::Fail("no".into()));
    for changed in [
        key.of_result(&Digest::of(b"another"), &result("s")),
        key.of_result(&question, &result("t")),
        key.of_result(&question, &StepResult { verdict: fail, ..result("s") }),
        key.of_result(&question, &StepResult { outputs: Default::default(), ..result("s") }),
        other.of_result(&question, &result("s")),
        key.of_record(&question),
        key.of_certificate(question.hash()),
    ] {
        assert_ne!(changed, tag);
    }
    assert_eq!(Tag::of_hex("not a tag"), None);
    assert_eq!(format!("{key:?}"), "MachineKey(..)", "a key is never printed");
}

#[test]
fn a_sample_is_a_part_that_only_the_key_determines() {
    let records: Vec<Digest> = (0u32..2000).map(|n| Digest::of(&n.to_le_bytes())).collect();
    let (key, other) = (MachineKey::of_bytes(&[1; 32]), MachineKey::of_bytes(&[2; 32]));
    let drawn = |key: &MachineKey, part| records.iter().filter(|r| key.samples(r, part)).copied().collect::<Vec<_>>();
    assert_eq!((drawn(&key, 0).len(), drawn(&key, WHOLE).len()), (0, 2000));
    let tenth = drawn(&key, WHOLE / 10);
    assert!((140..=260).contains(&tenth.len()), "{}", tenth.len());
    assert_eq!(drawn(&key, WHOLE / 10), tenth);
    assert_ne!(drawn(&other, WHOLE / 10), tenth);
}
