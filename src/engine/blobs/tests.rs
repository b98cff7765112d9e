//! The content store against damage, full disks, other threads and killed processes.

use super::*;
use crate::home::files_in;
use crate::lock_testing as testing;

fn store(dir: &Path) -> Store {
    Store::new(&Home::open(dir).unwrap())
}

/// Overwrites a content, bypassing the store.
fn damage(path: &Path, bytes: &[u8]) {
    std::fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn gives_back_what_was_put() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    for bytes in [&b""[..], b"a", &[7; 100_000]] {
        let digest = store.put(bytes).unwrap();
        assert_eq!(digest, Digest::of(bytes));
        assert!(store.has(&digest));
        assert_eq!(store.get(&digest).unwrap().unwrap(), bytes);
        let path = store.path(&digest).unwrap().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o444);
    }
    let other = Digest::of(b"never put");
    assert!(!store.has(&other));
    assert_eq!((store.get(&other).unwrap(), store.path(&other).unwrap()), (None, None));
    assert_eq!(files_in(&store.tmp).unwrap().len(), 0);
}

#[test]
fn damaged_contents_are_not_there_and_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    for wrong in [&b"kernex"[..], b"kerne", b"", b"kernels"] {
        let ask: [fn(&Store, &Digest) -> bool; 2] =
            [|s, d| s.get(d).unwrap().is_some(), |s, d| s.path(d).unwrap().is_some()];
        for ask in ask {
            let digest = store(dir.path()).put(b"kernel").unwrap();
            // A new store, which has not checked the bytes yet.
            let store = store(dir.path());
            damage(&store.place(&digest), wrong);
            assert!(!ask(&store, &digest), "{wrong:?}");
            assert!(!store.place(&digest).exists());
            assert!(!store.has(&digest));
        }
    }
}

#[test]
fn bytes_are_verified_at_every_get() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let digest = store.put(b"kernel").unwrap();
    assert!(store.get(&digest).unwrap().is_some());
    damage(&store.place(&digest), b"kernex");
    assert_eq!(store.get(&digest).unwrap(), None);
}

#[test]
fn putting_again_repairs_and_otherwise_leaves_alone() {
    let dir = tempfile::tempdir().unwrap();
    let digest = store(dir.path()).put(b"kernel").unwrap();
    for wrong in [&b"kern"[..], b"kernex"] {
        let store = store(dir.path());
        damage(&store.place(&digest), wrong);
        store.put(b"kernel").unwrap();
        assert_eq!(store.get(&digest).unwrap().unwrap(), b"kernel");
    }
    let store = store(dir.path());
    let before = store.place(&digest).metadata().unwrap().ino();
    store.put(b"kernel").unwrap();
    assert_eq!(store.place(&digest).metadata().unwrap().ino(), before);
}

#[test]
fn who_asks_for_a_wrong_size_does_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let digest = store.put(b"kernel").unwrap();
    let wrong = Digest::from_parts(*digest.hash(), 7);
    assert!(!store.has(&wrong));
    assert_eq!(store.get(&wrong).unwrap(), None);
    assert_eq!(store.path(&wrong).unwrap(), None);
    assert!(store.get(&digest).unwrap().is_some());
}

#[test]
fn a_file_is_moved_in() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let from = dir.path().join("made");
    std::fs::write(&from, b"binary").unwrap();
    let before = from.metadata().unwrap().ino();
    let digest = store.put_file(&from).unwrap();
    let there = store.place(&digest).metadata().unwrap();
    assert!(!from.exists());
    assert_eq!((there.ino(), there.permissions().mode() & 0o777), (before, 0o444));
    // Put again: the stored file stays.
    std::fs::write(&from, b"binary").unwrap();
    assert_eq!(store.put_file(&from).unwrap(), digest);
    assert_eq!(store.place(&digest).metadata().unwrap().ino(), before);
    assert_eq!(files_in(&store.tmp).unwrap().len(), 0);
}

#[test]
fn a_file_with_another_name_is_copied_so_that_nobody_can_change_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let (from, other, link) = (dir.path().join("a"), dir.path().join("b"), dir.path().join("c"));
    std::fs::write(&from, b"binary").unwrap();
    std::fs::hard_link(&from, &other).unwrap();
    std::os::unix::fs::symlink(&other, &link).unwrap();
    for path in [&from, &link] {
        let digest = store.put_file(path).unwrap();
        assert_ne!(store.place(&digest).metadata().unwrap().ino(), other.metadata().unwrap().ino());
        assert_eq!(store.get(&digest).unwrap().unwrap(), b"binary");
    }
    std::fs::write(&other, b"changed").unwrap();
    assert!(store.get(&Digest::of(b"binary")).unwrap().is_some());
    assert!(from.exists());
}

#[test]
fn a_file_of_another_file_system_is_copied() {
    let shm = Path::new("/dev/shm");
    let dir = tempfile::tempdir().unwrap();
    let device = |p: &Path| p.metadata().map(|m| m.dev()).ok();
    if device(shm).is_none() || device(shm) == device(dir.path()) {
        kforge_foundation::base::testing::skipped("no second file system at /dev/shm");
        return;
    }
    let store = store(dir.path());
    let from = tempfile::NamedTempFile::new_in(shm).unwrap();
    std::fs::write(from.path(), b"binary").unwrap();
    let digest = store.put_file(from.path()).unwrap();
    assert_eq!(store.get(&digest).unwrap().unwrap(), b"binary");
}

#[test]
fn a_missing_file_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let error = store(dir.path()).put_file(&dir.path().join("nothing")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert!(error.to_string().contains("nothing`"), "{error}");
}

#[test]
fn the_listing_answers_for_what_was_there_and_forgets_what_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let one = store(dir.path()).put(b"one").unwrap();
    let store = store(dir.path());
    store.preload().unwrap();
    let two = store.put(b"two").unwrap();
    assert!(store.has(&one) && store.has(&two) && !store.has(&Digest::of(b"three")));
    damage(&store.place(&one), b"xxx");
    assert_eq!(store.get(&one).unwrap(), None);
    assert!(!store.has(&one));
}

#[test]
fn many_threads_put_and_get_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let stores = [store(dir.path()), store(dir.path())];
    (0..64u32).into_par_iter().for_each(|i| {
        let bytes = vec![(i % 4) as u8; 5000];
        let store = &stores[i as usize % 2];
        let digest = store.put(&bytes).unwrap();
        assert_eq!(store.get(&digest).unwrap().unwrap(), bytes);
    });
    assert_eq!(crate::home::sharded(&stores[0].root).unwrap().len(), 4);
}

#[test]
fn a_full_disk_is_named_and_leaves_no_part() {
    let Some(full) = testing::SmallDisk::mount() else { return };
    let store = store(full.path());
    let small = store.put(b"small").unwrap();
    let error = store.put(&vec![1; 4 << 20]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    let text = error.to_string();
    assert!(text.contains("cannot write") && text.contains(&*full.path().to_string_lossy()), "{text}");
    let dir = tempfile::tempdir().unwrap();
    let large = dir.path().join("large");
    std::fs::write(&large, vec![1; 4 << 20]).unwrap();
    assert_eq!(store.put_file(&large).unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert!(large.exists());
    assert!(!store.has(&Digest::of(&vec![1; 4 << 20])));
    assert_eq!(files_in(&store.tmp).unwrap().len(), 0);
    assert_eq!(store.get(&small).unwrap().unwrap(), b"small");
}

#[test]
fn a_store_that_cannot_be_written_still_answers_and_says_what_is_wrong() {
    // A file in place of a folder stops even root, unlike permissions.
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let digest = store.put(b"kept").unwrap();
    std::fs::remove_dir(&store.tmp).unwrap();
    std::fs::write(&store.tmp, "").unwrap();
    assert!(store.get(&digest).unwrap().is_some());
    assert_eq!(store.put(b"kept").unwrap(), digest);
    let error = store.put(b"new").unwrap_err().to_string();
    assert!(error.contains(&*store.tmp.to_string_lossy()), "{error}");
}

#[test]
#[ignore = "runs in a process of its own"]
fn child_puts_without_end() {
    let Some((dir, _)) = testing::orders() else { return };
    let store = store(&dir);
    testing::say("ready");
    for i in 0u64.. {
        let bytes = i.to_le_bytes().repeat(1 << 12);
        store.put(&bytes).unwrap();
        let file = dir.join("made");
        std::fs::write(&file, &bytes[8..]).unwrap();
        store.put_file(&file).unwrap();
        if i == 3 {
            testing::say("under way");
        }
    }
}

#[test]
fn a_writer_killed_at_any_moment_leaves_only_whole_contents() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..5 {
        let mut child = testing::spawn("blobs::tests::child_puts_without_end", dir.path(), "");
        child.hear("under way");
        child.kill();
        let files = crate::home::sharded(&dir.path().join("cas")).unwrap();
        assert!(files.len() > 3);
        for file in files {
            assert_eq!(
                Some(*Digest::of_file(&file).unwrap().hash()),
                hash_of(file.file_name().unwrap()),
                "{}",
                file.display()
            );
        }
    }
}
