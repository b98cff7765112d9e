//! What collection keeps and removes, during builds and after damage.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use super::*;
use crate::action::ActionCache;
use crate::blobs::Store;
use crate::evidence::{Index, Record};
use crate::journal::StepRow;
use crate::lock_testing as testing;
use crate::{Blobs, Cache};
use kforge_types::record::spec::Tree;
use kforge_types::record::{DeviceClass, Provenance, Spec, StepKind, StepResult};

const HOUR: Duration = Duration::from_secs(3600);
const ALL: Limits = Limits { max_age: Duration::from_secs(30 * 24 * 3600), max_size: u64::MAX };

struct Fixture {
    dir: tempfile::TempDir,
    home: Home,
    store: Arc<Store>,
    cache: ActionCache,
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::open(&dir.path().join("home")).unwrap();
    let store = Arc::new(Store::new(&home));
    let cache = ActionCache::new(&home, store.clone());
    Fixture { dir, home, store, cache }
}

fn result(output: Digest) -> StepResult {
    StepResult {
        outputs: [("out".to_string(), output)].into(),
        verdict: None,
        notes: vec![],
        summary: String::new(),
        duration_ms: 0,
    }
}

fn spec(n: u32) -> Spec {
    Spec {
        kind: StepKind::Compile,
        version: 1,
        implementation: None,
        params: serde_json::json!({"n": n}),
        inputs: [].into(),
    }
}

impl Fixture {
    /// Stores contents, last modified `age` ago.
    fn put(&self, bytes: &[u8], age: Duration) -> Digest {
        let digest = self.store.put(bytes).unwrap();
        self.age(&self.store.place(&digest), age);
        digest
    }

    fn age(&self, path: &Path, age: Duration) {
        File::open(path).unwrap().set_modified(SystemTime::now() - age).unwrap();
    }

    fn entry(&self, n: u32) -> PathBuf {
        self.home.actions().join(shard(&spec(n).key()))
    }

    /// Stores the result `output` of spec `n`, last used `age` ago.
    fn remember(&self, n: u32, output: Digest, age: Duration) {
        self.cache.put(&spec(n).key(), &spec(n), &result(output)).unwrap();
        self.age(&self.entry(n), age);
        let explanation = self.cache.entry(&spec(n).key()).unwrap().unwrap().explanation;
        self.age(&self.store.place(&explanation), 2 * HOUR);
    }

    fn hit(&self, n: u32) -> bool {
        self.cache.get(&spec(n).key(), &spec(n)).unwrap().is_some()
    }

    fn collect(&self, limits: Limits) -> Report {
        match collect(&self.home, limits, SystemTime::now()).unwrap() {
            Collected::Done(report) => report,
            Collected::Busy => panic!("nobody else is here"),
        }
    }
}

#[test]
fn what_nothing_reaches_goes_after_an_hour_and_no_sooner() {
    let f = fixture();
    let (old, young) = (f.put(b"old", 2 * HOUR), f.put(b"young", HOUR / 2));
    let future = f.put(b"future", Duration::ZERO);
    File::open(f.store.place(&future)).unwrap().set_modified(SystemTime::now() + 5 * HOUR).unwrap();
    let report = f.collect(ALL);
    assert!(!f.store.has(&old) && f.store.has(&young) && f.store.has(&future));
    assert_eq!(report.contents_removed, Tally { count: 1, bytes: 3 });
    assert_eq!(report.contents_kept, Tally { count: 2, bytes: 11 });
}

#[test]
fn results_unused_for_too_long_go_with_what_only_they_reach() {
    let f = fixture();
    let (shared, alone, kept) = (f.put(b"shared", 2 * HOUR), f.put(b"alone", 2 * HOUR), f.put(b"kept", 2 * HOUR));
    let day = 24 * HOUR;
    f.remember(1, alone, 31 * day);
    f.remember(2, shared, 31 * day);
    f.remember(3, shared, 29 * day);
    f.remember(4, kept, Duration::ZERO);
    let report = f.collect(ALL);
    assert_eq!([1, 2, 3, 4].map(|n| f.hit(n)), [false, false, true, true]);
    assert!(!f.store.has(&alone) && f.store.has(&shared));
    assert_eq!((report.results_removed.count, report.results_kept.count), (2, 2));
    assert_eq!(f.cache.explanation(&spec(3).key()).unwrap().unwrap(), spec(3).explain());
}

#[test]
fn a_tree_keeps_its_files() {
    let f = fixture();
    let file = f.put(b"source", 2 * HOUR);
    let nested = f.put(b"nested", 2 * HOUR);
    let inner = f.put(format!("[\"{nested}\"]").as_bytes(), 2 * HOUR);
    let tree = Tree { files: [("a.cu".to_string(), file), ("b".to_string(), inner)].into() };
    let tree = f.put(&serde_json::to_vec(&tree).unwrap(), 2 * HOUR);
    f.remember(1, tree, Duration::ZERO);
    f.collect(ALL);
    for digest in [tree, file, inner, nested] {
        assert!(f.store.has(&digest));
    }
}

#[test]
fn evidence_and_journals_of_living_workspaces_keep_their_outputs() {
    let f = fixture();
    let [seen, ours, explanation, theirs] = [b"a", b"b", b"c", b"d"].map(|b| f.put(b, 2 * HOUR));
    let device = DeviceClass { product: "P".into(), arch: "sm_90".into(), driver_major: 580, mig: None };
    let provenance = Provenance {
        device,
        driver: "580".into(),
        kforge: "0".into(),
        protocol: 1,
        measured_at: "2026-11-01T00:00:00Z".into(),
        clocks_mhz: None,
        temperature_c: None,
        throttle: vec![],
        spent_us: Default::default(),
    };
    let index = Index::new(&f.home, f.store.clone());
    index.add(&Record { question: Digest::of(b"q"), provenance, result: result(seen) }).unwrap();
    for (name, output) in [("ours", ours), ("theirs", theirs)] {
        let path = f.dir.path().join(name).join("journal");
        let (journal, _) = Journal::open(&path).unwrap();
        let row = StepRow {
            key: Digest::of(name.as_bytes()),
            result: Some(result(output)),
            explanation: Some(explanation),
            duration_ms: 0,
            tag: None,
        };
        journal.record_step("id", &row).unwrap();
        f.home.register(&path).unwrap();
    }
    std::fs::remove_dir_all(f.dir.path().join("theirs")).unwrap();
    f.collect(Limits { max_age: Duration::ZERO, max_size: 0 });
    assert!(f.store.has(&seen) && f.store.has(&ours) && f.store.has(&explanation) && !f.store.has(&theirs));
}

#[test]
fn over_the_greatest_size_the_least_recently_used_goes() {
    let f = fixture();
    let shared = f.put(&[9; 1000], 2 * HOUR);
    for n in 0..4u8 {
        let own = f.put(&[n; 1000], 2 * HOUR);
        let both = f.put(format!("[\"{own}\",\"{shared}\"]").as_bytes(), 2 * HOUR);
        f.remember(n.into(), both, HOUR * u32::from(n + 1));
    }
    let whole = f.collect(ALL);
    assert_eq!(whole.results_kept.count, 4);
    let fits = whole.contents_kept.bytes + whole.results_kept.bytes;
    assert_eq!(f.collect(Limits { max_size: fits, ..ALL }).results_removed.count, 0);
    let report = f.collect(Limits { max_size: fits - 1, ..ALL });
    assert_eq!((report.results_removed.count, report.results_kept.count), (1, 3));
    assert_eq!([0, 1, 2, 3].map(|n| f.hit(n)), [true, true, true, false]);
    assert!(f.store.has(&shared) && !f.store.has(&Digest::of(&[3; 1000])));
    let report = f.collect(Limits { max_size: 0, ..ALL });
    assert_eq!((report.results_kept.count, report.contents_kept.count), (0, 0));
}

#[test]
fn beside_a_build_nothing_is_collected() {
    let f = fixture();
    let old = f.put(b"old", 2 * HOUR);
    let build = f.home.lock_cache(Mode::Shared, Wait::No).unwrap();
    assert_eq!(collect(&f.home, ALL, SystemTime::now()).unwrap(), Collected::Busy);
    assert!(f.store.has(&old));
    drop(build);
    f.collect(ALL);
    assert!(!f.store.has(&old));
}

#[test]
fn a_collection_is_due_once_a_day() {
    let f = fixture();
    assert!(due(&f.home, SystemTime::now()));
    let build = f.home.lock_cache(Mode::Shared, Wait::No).unwrap();
    collect(&f.home, ALL, SystemTime::now()).unwrap();
    assert!(due(&f.home, SystemTime::now()), "one that was not done does not count");
    drop(build);
    f.collect(ALL);
    assert!(!due(&f.home, SystemTime::now()) && !due(&f.home, SystemTime::now() + 23 * HOUR));
    assert!(due(&f.home, SystemTime::now() + 25 * HOUR));
}

#[test]
fn lock_files_and_temporary_files_of_the_dead_go() {
    let f = fixture();
    let held = f.cache.try_key_lock(&Digest::of(b"held")).unwrap();
    // A lock file as a killed process leaves it.
    let dead = f.home.locks().join("keys").join(shard(&Digest::of(b"dead")));
    std::fs::create_dir_all(dead.parent().unwrap()).unwrap();
    std::fs::write(&dead, "").unwrap();
    let temp = f.home.tmp().join(".tmp-x");
    std::fs::write(&temp, "").unwrap();
    f.age(&temp, 2 * HOUR);
    assert_eq!(f.collect(ALL).litter_removed, 2);
    assert!(!dead.exists() && !temp.exists());
    assert!(f.cache.try_key_lock(&Digest::of(b"held")).unwrap().is_none());
    drop(held);
}

#[test]
fn damaged_and_foreign_entries_do_not_stop_it() {
    let f = fixture();
    let output = f.put(b"out", 2 * HOUR);
    for n in [1, 2, 3] {
        f.remember(n, output, Duration::ZERO);
    }
    std::fs::write(f.entry(1), "{").unwrap();
    std::fs::write(f.entry(2), r#"{"version":2}"#).unwrap();
    std::fs::write(f.home.cas().join("README"), "x").unwrap();
    let report = f.collect(ALL);
    assert!(!f.entry(1).exists() && f.entry(2).exists() && f.hit(3));
    assert_eq!(report.results_kept.count, 2);
}

#[test]
fn usage_counts_every_store() {
    let f = fixture();
    assert_eq!(usage(&f.home).unwrap(), Usage::default());
    f.put(b"four", Duration::ZERO);
    std::fs::create_dir(f.home.toolchains().join("nvrtc")).unwrap();
    std::fs::write(f.home.toolchains().join("nvrtc/lib"), [0; 10]).unwrap();
    std::fs::write(f.home.scratch().join("x"), [0; 5]).unwrap();
    std::fs::write(f.home.tmp().join(".tmp-x"), [0; 2]).unwrap();
    let usage = usage(&f.home).unwrap();
    assert_eq!(usage.contents, Tally { count: 1, bytes: 4 });
    assert_eq!(usage.toolchains, Tally { count: 1, bytes: 10 });
    assert_eq!(usage.scratch, Tally { count: 2, bytes: 7 });
    assert_eq!(usage.total(), Tally { count: 4, bytes: 21 });
}

#[test]
fn rehashing_removes_what_is_wrong_and_what_leads_there() {
    let f = fixture();
    let [good, bad, member] = [b"good", b"bad!", b"memb"].map(|b| f.put(b, Duration::ZERO));
    let tree = |file| serde_json::to_vec(&Tree { files: [("a".to_string(), file)].into() }).unwrap();
    let (whole, broken) = (f.put(&tree(good), Duration::ZERO), f.put(&tree(member), Duration::ZERO));
    // Refers to contents that were never stored.
    let speaks = f.put(format!("{{\"outputs\":\"{}\"}}", Digest::of(b"scratch")).as_bytes(), Duration::ZERO);
    for (n, output) in [good, bad, whole, broken, speaks].into_iter().enumerate() {
        f.remember(n as u32, output, Duration::ZERO);
    }
    let place = f.store.place(&bad);
    std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::write(&place, b"bad?").unwrap();
    std::fs::remove_file(f.store.place(&member)).unwrap();
    let checked = verify(&f.home).unwrap();
    assert_eq!(checked.corrupt, [place]);
    assert_eq!((checked.incomplete_trees, checked.results.count, checked.results_removed), (1, 3, 2));
    assert_eq!([0, 1, 2, 3, 4].map(|n| f.hit(n)), [true, false, true, false, true]);
    let again = verify(&f.home).unwrap();
    assert_eq!((again.corrupt.len(), again.incomplete_trees, again.results_removed), (0, 0, 0));
    assert_eq!(again.contents.count, usage(&f.home).unwrap().contents.count);
}

#[test]
fn damaged_evidence_is_reported_and_left() {
    let f = fixture();
    let folder = f.home.evidence().join(Digest::of(b"q").hex());
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join(format!("{}.json", Digest::of(b"x").hex()));
    std::fs::write(&path, "y").unwrap();
    assert_eq!(verify(&f.home).unwrap().evidence_unusable, std::slice::from_ref(&path));
    assert!(path.exists());
}

#[test]
fn texts_that_look_like_digests_are_found_only_in_documents() {
    let (a, b) = (Digest::of(b"a"), Digest::of(b"b"));
    assert_eq!(mentioned(format!("{{\"x\":\"{a}\",\"y\":[\"{b}\",\"blake3:12:3\",\"{a}zz\"]}}").as_bytes()), [a, b]);
    assert!(mentioned(format!("binary {a}").as_bytes()).is_empty());
    assert!(mentioned(b"").is_empty());
    assert!(mentioned(b"{\xff").is_empty());
}

#[test]
#[ignore = "runs in a process of its own"]
fn child_collects_without_end() {
    let Some((_, root)) = testing::orders() else { return };
    let home = Home::open(Path::new(&root)).unwrap();
    testing::say("ready");
    loop {
        // A time in the future makes everything old, so that all unreachable contents are removed.
        collect(&home, Limits { max_age: HOUR, max_size: u64::MAX }, SystemTime::now() + 3 * HOUR).unwrap();
    }
}

#[test]
fn a_build_beside_a_collecting_process_that_is_killed_misses_nothing_it_holds() {
    let f = fixture();
    let child_dir = tempfile::tempdir().unwrap();
    let name = "collect::tests::child_collects_without_end";
    for round in 0..3 {
        let mut child = testing::spawn(name, child_dir.path(), &f.home.root().to_string_lossy());
        child.hear("ready");
        for n in 0..20 {
            let _build = f.home.lock_cache(Mode::Shared, Wait::Forever(&mut || {})).unwrap();
            let output = f.store.put(&[round, n]).unwrap();
            f.cache.put(&spec(n.into()).key(), &spec(n.into()), &result(output)).unwrap();
            let hit = f.cache.get(&spec(n.into()).key(), &spec(n.into())).unwrap().unwrap();
            assert_eq!(f.store.get(&hit.result.outputs["out"]).unwrap().unwrap(), [round, n]);
        }
        child.kill();
        // No result is left without its outputs.
        for result in results(&f.home).unwrap() {
            assert!(result.outputs.iter().all(|digest| f.store.has(digest)), "{}", result.path.display());
        }
    }
}
