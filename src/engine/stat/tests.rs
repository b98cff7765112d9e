//! The racy-clean rule, and files that vanish, move and change.

use super::*;
use crate::blobs::Store;
use crate::home::Home;

const OLD: Stat = Stat { size: 3, mtime_ns: 5 * SECOND + 1, ctime_ns: 6 * SECOND + 1, inode: 9 };

fn row(stat: Stat, recorded_ns: i128) -> StatRow {
    let Stat { size, mtime_ns, ctime_ns, inode } = stat;
    StatRow { size, mtime_ns, ctime_ns, inode, recorded_ns, digest: Digest::of(b"abc") }
}

/// A row as a build long after the file's last change would have recorded it, with a wrong digest that shows whether the row is used.
fn plant(journal: &Journal, root: &Path, path: &Path) -> Digest {
    let stat = Stat::of(&std::fs::metadata(root.join(path)).unwrap());
    let planted = Digest::of(b"planted");
    let recorded_ns = stat.mtime_ns.max(stat.ctime_ns) + 10 * SECOND;
    journal.record_stat(path, &StatRow { digest: planted, ..row(stat, recorded_ns) }).unwrap();
    planted
}

fn fixture() -> (tempfile::TempDir, Journal, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::view(&dir.path().join("journal")).unwrap();
    std::fs::write(dir.path().join("a.cu"), b"abc").unwrap();
    (dir, journal, PathBuf::from("a.cu"))
}

fn one(journal: &Journal, root: &Path, path: &Path) -> Option<Digest> {
    StatCache::new(journal, root, true).digests(&[path.to_path_buf()]).remove(0).unwrap()
}

#[test]
fn a_row_agrees_only_if_all_four_are_what_they_were() {
    let later = OLD.ctime_ns + SECOND;
    assert!(OLD.agrees_with(&row(OLD, later)));
    for other in [
        Stat { size: 4, ..OLD },
        Stat { mtime_ns: OLD.mtime_ns - 1, ..OLD },
        Stat { ctime_ns: OLD.ctime_ns + 1, ..OLD },
        Stat { inode: 10, ..OLD },
    ] {
        assert!(!other.agrees_with(&row(OLD, later)), "{other:?}");
    }
}

#[test]
fn a_row_made_within_the_granularity_of_a_change_is_not_believed() {
    let ms = SECOND / 1000;
    let newer_contents = Stat { mtime_ns: 8 * SECOND + 1, ..OLD };
    let coarse = Stat { mtime_ns: 5 * SECOND, ctime_ns: 6 * SECOND, ..OLD };
    for (stat, changed, granularity) in [
        (OLD, OLD.ctime_ns, 20 * ms),
        (newer_contents, newer_contents.mtime_ns, 20 * ms),
        (coarse, coarse.ctime_ns, 2000 * ms),
    ] {
        assert!(!stat.agrees_with(&row(stat, changed - 1)), "{stat:?}");
        assert!(!stat.agrees_with(&row(stat, changed + granularity)), "{stat:?}");
        assert!(stat.agrees_with(&row(stat, changed + granularity + 1)), "{stat:?}");
    }
}

#[test]
fn an_unchanged_file_is_not_read_and_a_changed_one_is() {
    let (dir, journal, path) = fixture();
    assert_eq!(one(&journal, dir.path(), &path), Some(Digest::of(b"abc")));
    assert_eq!(journal.stat(&path).unwrap().digest, Digest::of(b"abc"));
    let planted = plant(&journal, dir.path(), &path);
    assert_eq!(one(&journal, dir.path(), &path), Some(planted));
    // Without trust the row is not used.
    let careful = StatCache::new(&journal, dir.path(), false);
    assert_eq!(careful.digests(std::slice::from_ref(&path))[0].as_ref().unwrap(), &Some(Digest::of(b"abc")));
    plant(&journal, dir.path(), &path);
    std::fs::write(dir.path().join(&path), b"abd").unwrap();
    assert_eq!(one(&journal, dir.path(), &path), Some(Digest::of(b"abd")));
}

#[test]
fn a_file_of_the_same_size_with_its_times_set_back_is_read() {
    let (dir, journal, path) = fixture();
    plant(&journal, dir.path(), &path);
    let place = dir.path().join(&path);
    let modified = place.metadata().unwrap().modified().unwrap();
    // Until the file system's clock has moved on: the granularity rule covers a change within the tick of the planted row.
    while Stat::of(&place.metadata().unwrap()).ctime_ns == journal.stat(&path).unwrap().ctime_ns {
        std::fs::write(&place, b"abd").unwrap();
        File::options().write(true).open(&place).unwrap().set_modified(modified).unwrap();
    }
    assert_eq!(Stat::of(&place.metadata().unwrap()).mtime_ns, journal.stat(&path).unwrap().mtime_ns);
    assert_eq!(one(&journal, dir.path(), &path), Some(Digest::of(b"abd")));
}

#[test]
fn a_file_replaced_by_rename_is_read() {
    let (dir, journal, path) = fixture();
    plant(&journal, dir.path(), &path);
    std::fs::write(dir.path().join("new"), b"xyz").unwrap();
    std::fs::rename(dir.path().join("new"), dir.path().join(&path)).unwrap();
    assert_eq!(one(&journal, dir.path(), &path), Some(Digest::of(b"xyz")));
}

#[test]
fn a_file_just_written_is_not_believed_until_it_has_aged() {
    let (dir, journal, path) = fixture();
    assert!(one(&journal, dir.path(), &path).is_some());
    let row = journal.stat(&path).unwrap();
    let stat = Stat::of(&dir.path().join(&path).metadata().unwrap());
    let aged = row.recorded_ns - row.mtime_ns.max(row.ctime_ns) > FINE.as_nanos() as i128;
    assert_eq!(stat.agrees_with(&row), aged);
}

#[test]
fn missing_files_are_reported_in_their_place() {
    let (dir, journal, path) = fixture();
    let paths = [PathBuf::from("gone.cu"), path, PathBuf::from("a.cu/below"), PathBuf::from(".")];
    let got = StatCache::new(&journal, dir.path(), true).digests(&paths);
    assert_eq!(got[0].as_ref().unwrap(), &None);
    assert_eq!(got[1].as_ref().unwrap(), &Some(Digest::of(b"abc")));
    assert_eq!(got[2].as_ref().unwrap(), &None);
    let error = got[3].as_ref().unwrap_err().to_string();
    assert!(error.contains(&*dir.path().to_string_lossy()), "a folder is an error: {error}");
}

#[test]
fn rows_hold_in_a_checkout_that_was_moved() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::view(&dir.path().join("journal")).unwrap();
    let (old, new) = (dir.path().join("old"), dir.path().join("new"));
    std::fs::create_dir(&old).unwrap();
    std::fs::write(old.join("a.cu"), b"abc").unwrap();
    let planted = plant(&journal, &old, Path::new("a.cu"));
    std::fs::rename(&old, &new).unwrap();
    assert_eq!(one(&journal, &new, Path::new("a.cu")), Some(planted));
}

#[test]
fn contents_are_kept_and_kept_again_if_they_are_gone() {
    let (dir, journal, path) = fixture();
    let store = Store::new(&Home::open(&dir.path().join("home")).unwrap());
    let cache = StatCache::new(&journal, dir.path(), true);
    for _ in 0..2 {
        let digest = cache.keep(std::slice::from_ref(&path), &store).remove(0).unwrap().unwrap();
        assert_eq!(store.get(&digest).unwrap().unwrap(), b"abc");
        assert!(dir.path().join(&path).exists(), "a user's file is never moved");
        // The same with a valid row.
        let stat = Stat::of(&dir.path().join(&path).metadata().unwrap());
        journal.record_stat(&path, &row(stat, stat.ctime_ns + 10 * SECOND)).unwrap();
        std::fs::remove_file(store.place(&digest)).unwrap();
    }
}

#[test]
fn many_files_keep_their_order() {
    let (dir, journal, _) = fixture();
    let paths: Vec<PathBuf> = (0..200).map(|n| PathBuf::from(format!("{n}.cu"))).collect();
    for path in &paths {
        std::fs::write(dir.path().join(path), path.as_os_str().as_encoded_bytes()).unwrap();
    }
    let got = StatCache::new(&journal, dir.path(), true).digests(&paths);
    for (path, digest) in paths.iter().zip(got) {
        assert_eq!(digest.unwrap(), Some(Digest::of(path.as_os_str().as_encoded_bytes())));
    }
}
