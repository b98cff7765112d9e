//! The action cache against damage, missing outputs, other processes.

use super::*;
use crate::blobs::Store;
use crate::lock_testing as testing;
use kforge_types::record::{Note, StepKind, Verdict};
use std::path::Path;

fn open(dir: &Path) -> (ActionCache, Arc<Store>) {
    let home = Home::open(dir).unwrap();
    let store = Arc::new(Store::new(&home));
    (ActionCache::new(&home, store.clone()), store)
}

fn spec(kind: StepKind, params: serde_json::Value) -> Spec {
    Spec { kind, version: 1, implementation: None, params, inputs: [].into() }
}

fn compile() -> Spec {
    spec(StepKind::Compile, serde_json::json!({"arch": "sm_90a"}))
}

fn result(store: &Store) -> StepResult {
    StepResult {
        outputs: [("binary".to_string(), store.put(b"binary").unwrap())].into(),
        verdict: Some(Verdict::Fail("wrong".into())),
        notes: vec![Note::new(kforge_foundation::base::Severity::Warning, "t.t", "m")],
        summary: "42 registers".into(),
        duration_ms: 7,
    }
}

#[test]
fn a_result_is_remembered_with_its_explanation() {
    let dir = tempfile::tempdir().unwrap();
    let (cache, store) = open(dir.path());
    let (spec, result) = (compile(), result(&store));
    let key = spec.key();
    assert_eq!(cache.get(&key, &spec).unwrap(), None);
    cache.put(&key, &spec, &result).unwrap();
    let hit = open(dir.path()).0.get(&key, &spec).unwrap().unwrap();
    assert_eq!(hit, Hit { result, origin: CacheOrigin::Local, evidence: None, tag: None });
    assert_eq!(cache.explanation(&key).unwrap().unwrap(), spec.explain());
    cache.forget(&key).unwrap();
    cache.forget(&key).unwrap();
    assert_eq!(cache.get(&key, &spec).unwrap(), None);
}

#[test]
fn without_its_outputs_it_is_a_miss() {
    let dir = tempfile::tempdir().unwrap();
    let (cache, store) = open(dir.path());
    let (spec, result) = (compile(), result(&store));
    cache.put(&spec.key(), &spec, &result).unwrap();
    std::fs::remove_file(store.place(&result.outputs["binary"])).unwrap();
    assert_eq!(cache.get(&spec.key(), &spec).unwrap(), None);
    store.put(b"binary").unwrap();
    assert!(cache.get(&spec.key(), &spec).unwrap().is_some());
}

#[test]
fn an_entry_torn_or_changed_anywhere_is_a_miss_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let (cache, store) = open(dir.path());
    let (spec, result) = (compile(), result(&store));
    let key = spec.key();
    cache.put(&key, &spec, &result).unwrap();
    let path = cache.root.join(shard(&key));
    let whole = std::fs::read(&path).unwrap();
    let digits = whole.windows(11).position(|w| w == b"\"version\":1").unwrap() + 10;
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        for wrong in [&whole[..at], &flipped] {
            std::fs::write(&path, wrong).unwrap();
            assert_eq!(cache.get(&key, &spec).unwrap(), None, "at {at}");
            // A flipped version digit makes an entry of another version, which is left alone.
            assert!(!path.exists() || (at == digits && wrong.len() == whole.len()), "at {at}");
        }
    }
    cache.put(&key, &spec, &result).unwrap();
    assert!(cache.get(&key, &spec).unwrap().is_some());
}

#[test]
fn an_entry_under_another_key_is_a_miss() {
    let dir = tempfile::tempdir().unwrap();
    let (cache, store) = open(dir.path());
    let spec = compile();
    cache.put(&spec.key(), &spec, &result(&store)).unwrap();
    let other = Digest::of(b"other");
    let to = cache.root.join(shard(&other));
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    std::fs::copy(cache.root.join(shard(&spec.key())), &to).unwrap();
    assert_eq!(cache.get(&other, &spec).unwrap(), None);
}

#[test]
fn an_entry_of_another_version_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (cache, _) = open(dir.path());
    let spec = compile();
    let path = cache.root.join(shard(&spec.key()));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, r#"{"version":2,"news":[]}"#).unwrap();
    assert_eq!(cache.get(&spec.key(), &spec).unwrap(), None);
    assert!(path.exists());
}

#[test]
fn a_hit_renews_the_time_of_use_once_a_day() {
    let dir = tempfile::tempdir().unwrap();
    let (cache, store) = open(dir.path());
    let spec = compile();
    cache.put(&spec.key(), &spec, &result(&store)).unwrap();
    let path = cache.root.join(shard(&spec.key()));
    let hours_ago = |n: u64| SystemTime::now() - Duration::from_secs(3600 * n);
    for (set, renewed) in [(hours_ago(48), true), (hours_ago(5), false)] {
        File::open(&path).unwrap().set_modified(set).unwrap();
        assert!(cache.get(&spec.key(), &spec).unwrap().is_some());
        assert_eq!(path.metadata().unwrap().modified().unwrap() != set, renewed);
    }
}

#[test]
fn questions_to_a_device_are_not_kept_here_but_those_to_the_emulator_are() {
    let dir = tempfile::tempdir().unwrap();
    let (cache, store) = open(dir.path());
    for (kind, arch, kept) in [
        (StepKind::Verify, "sm_90a", false),
        (StepKind::Bench, "sm_90a", false),
        (StepKind::Verify, "cpu", true),
        (StepKind::Compile, "sm_90a", true),
    ] {
        let spec = spec(kind, serde_json::json!({"arch": arch}));
        cache.put(&spec.key(), &spec, &result(&store)).unwrap();
        assert_eq!(cache.get(&spec.key(), &spec).unwrap().is_some(), kept, "{kind} {arch}");
    }
}

#[test]
fn a_key_is_locked_while_it_is_executed_and_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let (cache, _) = open(dir.path());
    let (key, never) = (Digest::of(b"key"), AtomicBool::new(false));
    let held = cache.key_lock(&key, &never, &mut || panic!("not contended")).unwrap();
    assert!(cache.try_key_lock(&key).unwrap().is_none());
    assert!(cache.try_key_lock(&Digest::of(b"other")).unwrap().is_some());
    assert!(KeyLocks::lock(&cache, &key, &AtomicBool::new(true)).unwrap().is_none());
    drop(held);
    assert!(cache.try_key_lock(&key).unwrap().is_some());
    let guard = KeyLocks::lock(&cache, &key, &never).unwrap().unwrap();
    assert!(cache.try_key_lock(&key).unwrap().is_none());
    drop(guard);
    assert!(crate::home::sharded(&cache.locks).unwrap().is_empty());
}

#[test]
#[ignore = "runs in a process of its own"]
fn child_executes_keys() {
    let Some((dir, home)) = testing::orders() else { return };
    let (cache, store) = open(Path::new(&home));
    for i in 0..30 {
        let spec = spec(StepKind::Compile, serde_json::json!({"n": i}));
        let key = spec.key();
        let _lock = cache.key_lock(&key, &AtomicBool::new(false), &mut || {}).unwrap();
        if cache.get(&key, &spec).unwrap().is_none() {
            // One file for each execution, in this process's folder.
            std::fs::write(dir.join(format!("executed-{i}")), "").unwrap();
            cache.put(&key, &spec, &result(&store)).unwrap();
        }
    }
    testing::say("done");
}

#[test]
fn two_processes_never_execute_one_key() {
    let home = tempfile::tempdir().unwrap();
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let name = "action::tests::child_executes_keys";
    let children: Vec<_> =
        dirs.iter().map(|d| testing::spawn(name, d.path(), &home.path().to_string_lossy())).collect();
    for mut child in children {
        child.hear("done");
        assert!(child.end().success());
    }
    for i in 0..30 {
        let times = dirs.iter().filter(|d| d.path().join(format!("executed-{i}")).exists()).count();
        assert_eq!(times, 1, "key {i}");
    }
}

#[test]
#[ignore = "runs in a process of its own"]
fn child_remembers_without_end() {
    let Some((dir, _)) = testing::orders() else { return };
    let (cache, store) = open(&dir);
    for i in 0u64.. {
        let spec = spec(StepKind::Compile, serde_json::json!({"n": i}));
        let output = store.put(&i.to_le_bytes().repeat(100)).unwrap();
        let result = StepResult { outputs: [("binary".to_string(), output)].into(), ..result(&store) };
        cache.put(&spec.key(), &spec, &result).unwrap();
        if i == 5 {
            testing::say("under way");
        }
    }
}

#[test]
fn a_writer_killed_at_any_moment_leaves_only_whole_entries_with_their_outputs() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..4 {
        let mut child = testing::spawn("action::tests::child_remembers_without_end", dir.path(), "");
        child.hear("under way");
        child.kill();
        let (cache, store) = open(dir.path());
        let entries = crate::home::sharded(&cache.root).unwrap();
        assert!(entries.len() > 5);
        for entry in entries {
            let Read::Entry(body, _) = parse(&std::fs::read(&entry).unwrap()) else {
                panic!("{} is not whole", entry.display());
            };
            let read = |digest| store.get(digest).unwrap().is_some();
            assert!(body.result.outputs.values().all(read) && read(&body.explanation));
        }
    }
}

#[test]
fn a_full_disk_is_named_and_leaves_no_entry() {
    let Some(disk) = testing::SmallDisk::mount() else { return };
    let (cache, store) = open(disk.path());
    let spec = compile();
    let large = StepResult { summary: "x".repeat(2 << 20), ..result(&store) };
    let error = cache.put(&spec.key(), &spec, &large).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert!(error.to_string().contains("`kforge cache gc`"), "{error}");
    assert_eq!(cache.get(&spec.key(), &spec).unwrap(), None);
    assert_eq!(crate::home::files_in(&cache.tmp).unwrap().len(), 0);
    cache.put(&spec.key(), &spec, &result(&store)).unwrap();
    assert!(cache.get(&spec.key(), &spec).unwrap().is_some());
}

#[test]
fn a_home_that_cannot_be_written_still_answers() {
    let Some(disk) = testing::SmallDisk::mount() else { return };
    let (cache, store) = open(disk.path());
    let spec = compile();
    cache.put(&spec.key(), &spec, &result(&store)).unwrap();
    let old = SystemTime::now() - 9 * TOUCH;
    File::open(cache.root.join(shard(&spec.key()))).unwrap().set_modified(old).unwrap();
    drop(Home::open(disk.path()).unwrap().lock_cache(Mode::Shared, Wait::No).unwrap());
    disk.make_read_only();
    let (cache, store) = open(disk.path());
    let home = Home::open(disk.path()).unwrap();
    assert!(home.lock_cache(Mode::Shared, Wait::No).unwrap().is_held());
    let hit = cache.get(&spec.key(), &spec).unwrap().unwrap();
    assert_eq!(store.get(&hit.result.outputs["binary"]).unwrap().unwrap(), b"binary");
    store.put(b"binary").unwrap();
    for error in [store.put(b"new").unwrap_err(), cache.put(&spec.key(), &spec, &hit.result).unwrap_err()] {
        assert_eq!(error.kind(), io::ErrorKind::ReadOnlyFilesystem);
        assert!(error.to_string().contains("`KFORGE_HOME`"), "{error}");
    }
    assert!(matches!(cache.try_key_lock(&Digest::of(b"k")), Err(LockError::Io { .. })));
}
