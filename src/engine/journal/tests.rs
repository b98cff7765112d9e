//! The journal against torn tails, flipped bits, full disks and killed writers.

use std::collections::BTreeMap;

use super::*;
use crate::blobs::Store;
use crate::home::Home;
use crate::lock_testing as testing;
use crate::{Blobs, Cache};
use kforge_foundation::base::Severity;
use kforge_types::record::{Note, Spec, StepKind, Unknown, Verdict};
use std::sync::Arc;

pub(super) fn open(path: &Path) -> Journal {
    let (journal, warnings) = Journal::open(path).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    journal
}

pub(super) fn digest(n: u64) -> Digest {
    Digest::of(&n.to_le_bytes())
}

pub(super) fn row(n: u64) -> StepRow {
    let verdict = match n % 4 {
        0 => None,
        1 => Some(Verdict::Pass),
        2 => Some(Verdict::Fail("wrong at 7".into())),
        _ => Some(Verdict::Unknown(Unknown::NoDevice("NVIDIA H200".into()))),
    };
    let note = Note::new(Severity::Warning, "compile.warning", "unused é");
    let result = StepResult {
        outputs: (0..n % 3).map(|i| (format!("output{i}"), digest(n + i))).collect(),
        verdict,
        notes: if n.is_multiple_of(5) { vec![note] } else { vec![] },
        summary: format!("{n} registers"),
        duration_ms: n,
    };
    let result = (n % 7 != 6).then_some(result);
    let tag = result.as_ref().filter(|_| n.is_multiple_of(2)).map(|_| Tag::of_bytes([n as u8; 32]));
    StepRow { key: digest(n), result, explanation: Some(digest(n)), duration_ms: n, tag }
}

pub(super) fn stat(n: u64) -> StatRow {
    let t = i128::from(n) << 60;
    StatRow { size: n, mtime_ns: t, ctime_ns: -t, inode: n, recorded_ns: t + 1, digest: digest(n) }
}

/// Adds records of every kind.
fn fill(journal: &Journal, from: u64, to: u64) {
    for n in from..to {
        journal.record_step(&format!("kernel/variant/{}", n % 5), &row(n)).unwrap();
        journal.record_stat(Path::new(&format!("src/{}.cu", n % 4)), &stat(n)).unwrap();
        journal.record_scan(&digest(n % 3), &n.to_le_bytes()).unwrap();
        journal.record_certificate(&n.to_le_bytes()).unwrap();
        journal.record_meta("boot", &n.to_le_bytes()).unwrap();
    }
}

/// The end of each frame of an undamaged file.
fn ends(bytes: &[u8]) -> Vec<usize> {
    let next = |at: &usize| frame::Frame::at(bytes, *at).map(|frame| frame.end());
    std::iter::successors(next(&HEADER.len()), next).collect()
}

/// The answers to all queries of a journal that [`fill`] filled.
fn answers(journal: &Journal) -> String {
    let mut text = String::new();
    for n in 0..40 {
        text += &format!(
            "{:?} {:?} {:?} {:?}\n",
            journal.last(&format!("kernel/variant/{n}")),
            journal.by_key(&digest(n)),
            journal.stat(Path::new(&format!("src/{n}.cu"))),
            journal.scan(&digest(n))
        );
    }
    text + &format!("{:?} {:?} {:?}", journal.certificate(), journal.meta("boot"), journal.contents())
}

#[test]
fn what_was_recorded_is_there_in_the_next_process() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("target/kforge/journal");
    let journal = open(&path);
    fill(&journal, 0, 20);
    let before = answers(&journal);
    journal.flush().unwrap();
    assert_eq!(answers(&Journal::view(&path).unwrap()), before);
    drop(journal);
    assert_eq!(answers(&open(&path)), before);
    let journal = open(&path);
    assert_eq!(journal.last("kernel/variant/1"), Some(row(16)));
    assert_eq!(journal.by_key(&digest(3)), row(3).result);
    assert_eq!(journal.by_key(&Digest::from_parts(*digest(3).hash(), 9)), None);
    assert_eq!(journal.durations()["kernel/variant/1"], 16);
    assert_eq!(journal.stat(Path::new("src/3.cu")), Some(stat(19)));
}

#[test]
fn dropping_writes_what_waits() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    open(&path).record_step("a", &row(1)).unwrap();
    assert_eq!(open(&path).last("a"), Some(row(1)));
}

#[test]
fn many_records_are_written_before_anyone_asks() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let journal = open(&path);
    fill(&journal, 0, BATCH as u64);
    let seen = Journal::view(&path).unwrap();
    assert!(seen.last("kernel/variant/0").is_some());
    drop(journal);
}

#[test]
fn a_file_torn_at_any_byte_gives_its_whole_records_and_one_warning() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let journal = open(&path);
    // The answers after each batch of records, by the length of the file.
    let mut known = BTreeMap::from([(HEADER.len(), answers(&journal))]);
    for n in 0..4 {
        fill(&journal, n, n + 1);
        journal.flush().unwrap();
        known.insert(path.metadata().unwrap().len() as usize, answers(&journal));
    }
    drop(journal);
    let whole = std::fs::read(&path).unwrap();
    let ends = ends(&whole);
    for length in 0..=whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        let (journal, warnings) = Journal::open(&path).unwrap();
        let torn = length != 0 && length != HEADER.len() && !ends.contains(&length);
        assert_eq!(warnings.len(), usize::from(torn), "at {length}: {warnings:?}");
        if let Some((_, answers_then)) = known.get_key_value(&length) {
            assert_eq!(answers(&journal), *answers_then, "at {length}");
        }
        // The tail is gone from the file, and a new record is read back.
        journal.record_step("new", &row(8)).unwrap();
        let after = answers(&journal);
        drop(journal);
        let journal = open(&path);
        assert_eq!((answers(&journal), journal.last("new")), (after, Some(row(8))), "at {length}");
    }
}

#[test]
fn no_flipped_bit_goes_unseen() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let journal = open(&path);
    fill(&journal, 0, 3);
    drop(journal);
    let whole = std::fs::read(&path).unwrap();
    let ends = ends(&whole);
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        std::fs::write(&path, &flipped).unwrap();
        let (journal, warnings) = Journal::open(&path).unwrap();
        assert_eq!(warnings.len(), 1, "at {at}");
        // Exactly the records before the damaged one are left.
        let kept = ends.iter().rev().find(|end| **end <= at).copied().unwrap_or(HEADER.len());
        assert_eq!(journal.inner().index.bytes(), &whole[..kept], "at {at}");
    }
}

#[test]
fn a_tail_of_zeros_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    fill(&open(&path), 0, 3);
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, [&whole[..], &[0; 4096]].concat()).unwrap();
    let (journal, warnings) = Journal::open(&path).unwrap();
    assert_eq!((journal.inner().index.bytes(), warnings.len()), (&whole[..], 1));
    assert!(frame::Frame::at(&[0; 100], 16).is_none());
}

#[test]
fn names_whose_mixtures_are_equal_are_told_apart() {
    use std::os::unix::ffi::OsStrExt;
    // The second word cancels the change of the first, so all hashes are equal.
    let begun = |word: u64| frame::step(frame::step(0x9e37_79b9_7f4a_7c15, 16), word);
    let name = |first: u64| [first.to_le_bytes(), begun(first).to_le_bytes()].concat();
    let names: Vec<Vec<u8>> = (1..4).map(name).collect();
    assert!(names.iter().all(|n| frame::mix(0, n) == frame::mix(0, &names[0])));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let journal = open(&path);
    let place = |i: u64| Path::new(std::ffi::OsStr::from_bytes(&names[i as usize]));
    for i in [0, 1] {
        journal.record_stat(place(i), &stat(i)).unwrap();
    }
    drop(journal);
    let journal = open(&path);
    for i in [0, 1] {
        assert_eq!(journal.stat(place(i)), Some(stat(i)));
    }
    assert_eq!(journal.stat(place(2)), None);
    let compacted = Journal::of(&path, journal.inner().index.compacted(), None);
    assert_eq!(compacted.stat(place(1)), Some(stat(1)));
}

#[test]
fn another_version_starts_over_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    fill(&open(&path), 0, 3);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[15] = 2;
    std::fs::write(&path, &bytes).unwrap();
    let (journal, warnings) = Journal::open(&path).unwrap();
    assert!(warnings[0].contains("another version"), "{warnings:?}");
    assert_eq!(journal.last("kernel/variant/0"), None);
    fill(&journal, 0, 1);
    drop(journal);
    assert!(open(&path).last("kernel/variant/0").is_some());
}

#[test]
fn a_failed_run_keeps_its_key_and_takes_back_no_result() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(&dir.path().join("journal"));
    let failed = StepRow { key: digest(100), result: None, explanation: Some(digest(101)), duration_ms: 5, tag: None };
    journal.record_step("a", &row(1)).unwrap();
    journal.record_step("a", &failed).unwrap();
    assert_eq!(journal.last("a"), Some(failed));
    assert_eq!(journal.by_key(&digest(1)), row(1).result);
    assert_eq!(journal.by_key(&digest(100)), None);
}

#[test]
fn a_forgotten_key_answers_no_more_until_it_is_recorded_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let journal = open(&path);
    journal.record_step("a", &row(1)).unwrap();
    journal.forget(&digest(1)).unwrap();
    let check = |journal: &Journal| {
        assert_eq!(journal.by_key(&digest(1)), None);
        assert_eq!(journal.last("a"), Some(StepRow { result: None, ..row(1) }));
    };
    check(&journal);
    drop(journal);
    let journal = open(&path);
    check(&journal);
    check(&Journal::of(&path, journal.inner().index.compacted(), None));
    // A row that is kept behind a failed one only for its result is dropped when the result is forgotten.
    journal.record_step("b", &row(1)).unwrap();
    journal.record_step("b", &row(6)).unwrap();
    journal.forget(&digest(1)).unwrap();
    assert_eq!(journal.inner().index.compacted().dead(), 0);
    journal.record_step("a", &row(1)).unwrap();
    assert_eq!(journal.by_key(&digest(1)), row(1).result);
}

#[test]
fn a_journal_of_mostly_dead_rows_is_made_small_and_says_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let journal = open(&path);
    fill(&journal, 0, 1000);
    journal.record_step("failed", &row(15)).unwrap();
    journal.record_step("failed", &row(13)).unwrap();
    let last = |journal: &Journal| {
        let ids: Vec<_> = (0..5).map(|n| journal.last(&format!("kernel/variant/{n}"))).collect();
        let stats: Vec<_> = (0..4).map(|n| journal.stat(Path::new(&format!("src/{n}.cu")))).collect();
        let scans: Vec<_> = (0..3).map(|n| journal.scan(&digest(n))).collect();
        // For the node that failed last, the earlier row with a result is kept too.
        let keys = [
            journal.by_key(&digest(15)),
            journal.by_key(&digest(999)),
            journal.last("failed").map(|_| row(15).result).unwrap(),
        ];
        (ids, stats, scans, keys, journal.certificate(), journal.meta("boot"), journal.contents(), journal.durations())
    };
    let before = last(&journal);
    drop(journal);
    let size = path.metadata().unwrap().len();
    let journal = open(&path);
    assert!(path.metadata().unwrap().len() * 20 < size);
    assert_eq!(last(&journal), before);
    assert_eq!(journal.inner().index.dead(), 0);
    fill(&journal, 0, 1);
    let before = last(&journal);
    drop(journal);
    assert_eq!(last(&open(&path)), before);
}

#[test]
fn a_journal_in_a_place_that_cannot_be_written_is_named() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("target"), "").unwrap();
    let error = Journal::open(&dir.path().join("target/journal")).unwrap_err().to_string();
    assert!(error.contains("target/journal`"), "{error}");
}

#[test]
fn a_full_disk_is_named_and_what_waits_is_written_when_there_is_room() {
    let Some(disk) = testing::SmallDisk::mount() else { return };
    let path = disk.path().join("journal");
    let ballast = disk.path().join("ballast");
    let journal = open(&path);
    journal.record_step("before", &row(1)).unwrap();
    journal.flush().unwrap();
    let mut room = vec![0u8; 1 << 20];
    while std::fs::write(&ballast, &room).is_err() {
        room.truncate(room.len() - 4096);
    }
    let noise: Vec<u8> = (0..40_000u32).flat_map(u32::to_le_bytes).collect();
    // Recording may or may not write at once; flushing always does.
    let _ = journal.record_meta("noise", &noise);
    let error = journal.flush().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert!(error.to_string().contains("journal`: "), "{error}");
    // Meanwhile a reader sees the undamaged records, as it would after a crash.
    assert_eq!(Journal::view(&path).unwrap().last("before"), Some(row(1)));
    std::fs::remove_file(&ballast).unwrap();
    journal.flush().unwrap();
    drop(journal);
    assert_eq!(open(&path).meta("noise"), Some(noise));
}

#[test]
#[ignore = "runs in a process of its own"]
fn child_records_without_end() {
    let Some((dir, _)) = testing::orders() else { return };
    let (journal, _) = Journal::open(&dir.join("journal")).unwrap();
    let from = journal.meta("count").map_or(0, |b| u64::from_le_bytes(b.try_into().unwrap()));
    testing::say("ready");
    for n in from.. {
        journal.record_step(&format!("step/{n}"), &row(n)).unwrap();
        journal.record_meta("count", &(n + 1).to_le_bytes()).unwrap();
        if n == from + 200 {
            journal.flush().unwrap();
            testing::say("under way");
        }
    }
}

#[test]
fn a_writer_killed_at_any_moment_loses_only_its_tail() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let mut least = 0;
    for _ in 0..6 {
        let mut child = testing::spawn("journal::tests::child_records_without_end", dir.path(), "");
        child.hear("under way");
        child.kill();
        least += 201;
        let (journal, warnings) = Journal::open(&path).unwrap();
        assert!(warnings.len() <= 1, "{warnings:?}");
        let count = u64::from_le_bytes(journal.meta("count").unwrap().try_into().unwrap());
        assert!(count >= least, "{count} of {least}");
        for n in 0..count {
            assert_eq!(journal.last(&format!("step/{n}")), Some(row(n)));
        }
        least = count;
    }
}

#[test]
fn as_a_cache_it_answers_by_key_if_the_outputs_are_there_but_not_for_a_device() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::new(&Home::open(dir.path()).unwrap()));
    let journal = Arc::new(open(&dir.path().join("journal")));
    let cache = JournalCache::new(journal.clone(), store.clone());
    let spec = |kind| Spec {
        kind,
        version: 1,
        implementation: None,
        params: serde_json::json!({"arch": "sm_90a"}),
        inputs: [].into(),
    };
    let (compile, bench) = (spec(StepKind::Compile), spec(StepKind::Bench));
    let result = StepResult {
        outputs: [("binary".to_string(), store.put(b"binary").unwrap())].into(),
        ..row(1).result.unwrap()
    };
    for (id, spec) in [("c", &compile), ("b", &bench)] {
        let row =
            StepRow { key: spec.key(), result: Some(result.clone()), explanation: None, duration_ms: 1, tag: None };
        journal.record_step(id, &row).unwrap();
    }
    let hit = cache.get(&compile.key(), &compile).unwrap().unwrap();
    assert_eq!((hit.result, hit.origin), (result.clone(), kforge_types::record::event::CacheOrigin::Journal));
    assert_eq!(cache.get(&bench.key(), &bench).unwrap(), None);
    std::fs::remove_file(store.place(&result.outputs["binary"])).unwrap();
    assert_eq!(cache.get(&compile.key(), &compile).unwrap(), None);
}
