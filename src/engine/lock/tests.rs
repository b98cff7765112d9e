//! Locks between threads and between processes.

use super::*;
use crate::lock_testing as testing;

fn exclusive(path: &Path) -> Result<Lock, LockError> {
    Lock::acquire(path, Mode::Exclusive, Wait::No)
}

#[test]
fn one_holds_it_exclusively_many_hold_it_shared() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a/b/lock");
    let one = Lock::acquire(&path, Mode::Shared, Wait::No).unwrap();
    let two = Lock::acquire(&path, Mode::Shared, Wait::No).unwrap();
    assert!(one.is_held() && two.is_held());
    assert!(matches!(exclusive(&path), Err(LockError::Busy(p)) if p == path));
    drop((one, two));
    let held = exclusive(&path).unwrap();
    assert!(matches!(Lock::acquire(&path, Mode::Shared, Wait::No), Err(LockError::Busy(_))));
    drop(held);
    exclusive(&path).unwrap();
}

#[test]
fn the_callback_is_called_once_and_only_if_it_must_wait() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lock");
    let mut calls = 0;
    let held = Lock::acquire(&path, Mode::Exclusive, Wait::Forever(&mut || calls += 1)).unwrap();
    assert_eq!(calls, 0);
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let waiter = scope
            .spawn(|| Lock::acquire(&path, Mode::Exclusive, Wait::Forever(&mut || tell.send(()).unwrap())).map(drop));
        told.recv().unwrap();
        drop(held);
        waiter.join().unwrap().unwrap();
    });
    assert!(told.try_recv().is_err(), "told twice");
}

#[test]
fn a_wait_can_be_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lock");
    let held = exclusive(&path).unwrap();
    let flag = AtomicBool::new(false);
    let got = Lock::acquire(
        &path,
        Mode::Exclusive,
        Wait::Unless(&flag, &mut || {
            flag.store(true, Ordering::Relaxed);
        }),
    );
    assert!(matches!(got, Err(LockError::Interrupted(_))));
    drop(held);
}

#[test]
fn who_waited_for_a_removed_lock_file_locks_the_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lock");
    let inside = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let lock = Lock::acquire(&path, Mode::Exclusive, Wait::Forever(&mut || {})).unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two hold it at once");
                    inside.fetch_sub(1, Ordering::SeqCst);
                    lock.remove();
                }
            });
        }
    });
    assert!(!path.exists());
}

#[test]
#[ignore = "runs in a process of its own"]
fn child_holds_a_lock() {
    let Some((dir, _)) = testing::orders() else { return };
    let _lock = exclusive(&dir.join("lock")).unwrap();
    testing::say("locked");
    loop {
        std::thread::park();
    }
}

#[test]
fn a_lock_vanishes_with_its_process() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = testing::spawn("lock::tests::child_holds_a_lock", dir.path(), "");
    child.hear("locked");
    let path = dir.path().join("lock");
    assert!(matches!(exclusive(&path), Err(LockError::Busy(_))));
    child.kill();
    exclusive(&path).unwrap();
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), "").unwrap();
    let error = exclusive(&dir.path().join("file/lock")).unwrap_err().to_string();
    assert!(error.contains("file/lock`"), "{error}");
}

#[test]
fn only_what_says_that_there_are_no_locks_is_taken_for_that() {
    for (code, no_locks) in [(libc::ENOLCK, true), (libc::EOPNOTSUPP, true), (libc::ENOSYS, true), (libc::EIO, false)] {
        assert_eq!(unsupported(&io::Error::from_raw_os_error(code)), no_locks, "{code}");
    }
}
