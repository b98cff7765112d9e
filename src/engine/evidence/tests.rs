//! Which record answers, and records that are damaged, duplicated or incomplete.

use super::*;
use crate::blobs::Store;
use kforge_types::record::Validity;
use kforge_types::record::{DeviceClass, StepKind, Verdict};

fn class(product: &str, driver_major: u32, mig: Option<&str>) -> DeviceClass {
    DeviceClass { product: product.into(), arch: "sm_90".into(), driver_major, mig: mig.map(str::to_string) }
}

fn record(device: DeviceClass, measured_at: &str) -> Record {
    let provenance = Provenance {
        driver: format!("{}.1", device.driver_major),
        device,
        kforge: "0.1.0".into(),
        protocol: 1,
        measured_at: measured_at.into(),
        clocks_mhz: Some((1980, 3201)),
        temperature_c: None,
        throttle: vec![],
        spent_us: Default::default(),
    };
    let result = StepResult {
        outputs: [].into(),
        verdict: Some(Verdict::Pass),
        notes: vec![],
        summary: measured_at.into(),
        duration_ms: 3,
    };
    Record { question: Digest::of(b"question"), provenance, result }
}

fn seen(product: &str, driver_major: u32, mig: Option<&str>, day: &str) -> IndexedRecord {
    let record = record(class(product, driver_major, mig), &format!("2026-11-{day}T00:00:00Z"));
    IndexedRecord {
        digest: Digest::of(&serde_json::to_vec(&record).unwrap()),
        record,
        origin: HERE.into(),
        signer: None,
    }
}

const H200: &str = "NVIDIA H200";
const A100: &str = "NVIDIA A100";

/// The day of the record that answers, or a text for another answer.
fn day(records: &[IndexedRecord], here: Option<DeviceClass>, device: Option<&str>, validity: Validity) -> String {
    let wanted = AcceptedSource { here, device: device.map(str::to_string), validity };
    let text = |answer: &Answer| match answer {
        Answer::Found(seen) => seen.record.provenance.measured_at[8..10].to_string(),
        Answer::AskHere => "ask".into(),
        Answer::Unknown { products } => format!("unknown: {}", products.join(", ")),
    };
    let answer = choose(records, &wanted);
    let backwards: Vec<IndexedRecord> = records.iter().rev().cloned().collect();
    assert_eq!(choose(&backwards, &wanted), answer, "the order of records must not matter");
    text(&answer)
}

use Validity::{Product, Timing};

#[test]
fn the_local_device_answers_with_its_newest() {
    let records = [
        seen(H200, 580, None, "01"),
        seen(H200, 580, None, "03"),
        seen(H200, 580, None, "02"),
        seen(A100, 580, None, "09"),
    ];
    let here = || Some(class(H200, 580, None));
    for device in [None, Some(H200)] {
        assert_eq!(day(&records, here(), device, Timing), "03");
        assert_eq!(day(&records, here(), device, Product), "03");
    }
}

#[test]
fn a_timing_is_valid_for_driver_and_profile_a_verification_for_any() {
    let others = [seen(H200, 570, None, "01"), seen(H200, 580, Some("1g.18gb"), "02")];
    let here = || Some(class(H200, 580, None));
    assert_eq!(day(&others, here(), None, Timing), "ask");
    assert_eq!(day(&others, here(), None, Product), "02");
    assert_eq!(day(&others, Some(class(H200, 580, Some("1g.18gb"))), None, Timing), "02");
    assert_eq!(day(&others, Some(class(H200, 580, Some("2g.35gb"))), None, Timing), "ask");
    let other_arch = DeviceClass { arch: "sm_100".into(), ..class(H200, 580, None) };
    assert_eq!(day(&others, Some(other_arch), None, Product), "ask");
}

#[test]
fn the_local_device_is_asked_rather_than_another_product_believed() {
    let records = [seen(A100, 580, None, "01")];
    assert_eq!(day(&records, Some(class(H200, 580, None)), None, Product), "ask");
    assert_eq!(day(&[], Some(class(H200, 580, None)), None, Timing), "ask");
}

#[test]
fn a_local_device_that_the_target_does_not_name_does_not_count() {
    let records = [seen(A100, 580, None, "01"), seen(H200, 580, None, "02")];
    assert_eq!(day(&records, Some(class(A100, 580, None)), Some(H200), Timing), "02");
    assert_eq!(day(&records[..1], Some(class(A100, 580, None)), Some(H200), Timing), format!("unknown: {A100}"));
}

#[test]
fn without_a_device_the_targets_product_answers() {
    let records = [seen(A100, 580, None, "09"), seen(H200, 580, None, "01")];
    assert_eq!(day(&records, None, Some(H200), Timing), "01");
    assert_eq!(day(&records, None, Some("NVIDIA B200"), Timing), format!("unknown: {A100}, {H200}"));
}

#[test]
fn with_neither_the_only_product_answers_and_several_do_not() {
    let records = [seen(H200, 580, None, "01"), seen(H200, 570, None, "02"), seen(A100, 580, None, "03")];
    assert_eq!(day(&records[..2], None, None, Product), "02");
    assert_eq!(day(&records, None, None, Product), format!("unknown: {A100}, {H200}"));
    assert_eq!(day(&[], None, None, Product), "unknown: ");
}

#[test]
fn among_a_products_classes_whole_devices_and_newer_drivers_come_first() {
    let records = [
        seen(H200, 580, Some("1g.18gb"), "09"),
        seen(H200, 570, None, "08"),
        seen(H200, 580, None, "01"),
        seen(H200, 580, None, "02"),
        seen(H200, 590, Some("1g.18gb"), "07"),
    ];
    assert_eq!(day(&records, None, None, Timing), "02");
    assert_eq!(day(&records, None, Some(H200), Product), "09");
    let slices = [seen(H200, 580, Some("2g.35gb"), "05"), seen(H200, 580, Some("1g.18gb"), "01")];
    assert_eq!(day(&slices, None, None, Timing), "01");
}

#[test]
fn an_illegible_time_is_older_than_any_and_equal_times_are_decided() {
    let mut illegible = seen(H200, 580, None, "01");
    illegible.record.provenance.measured_at = "yesterday!".into();
    let records = [illegible, seen(H200, 580, None, "01")];
    assert_eq!(day(&records, None, None, Timing), "01");
    let mut offset = seen(H200, 580, None, "02");
    // The day is the same, but in another time zone: the time is an hour earlier than it looks.
    offset.record.provenance.measured_at = "2026-11-02T00:30:00+01:00".into();
    assert_eq!(
        choose(
            &[offset.clone(), seen(H200, 580, None, "02")],
            &AcceptedSource { here: None, device: None, validity: Timing }
        ),
        Answer::Found(Box::new(seen(H200, 580, None, "02")))
    );
    let mut twin = seen(H200, 580, None, "02");
    twin.record.result.summary = "twin".into();
    twin.digest = Digest::of(b"twin");
    day(&[twin, seen(H200, 580, None, "02")], None, None, Timing);
}

fn index(dir: &Path) -> (Index, Arc<Store>) {
    let home = Home::open(dir).unwrap();
    let store = Arc::new(Store::new(&home));
    (Index::new(&home, store.clone()), store)
}

fn days(index: &Index) -> Vec<String> {
    let mut days: Vec<String> =
        index.records(&Digest::of(b"question")).unwrap().into_iter().map(|s| s.record.result.summary).collect();
    days.sort();
    days
}

#[test]
fn records_add_up_and_the_same_record_is_one() {
    let dir = tempfile::tempdir().unwrap();
    let (index, _) = index(dir.path());
    let (one, two) = (record(class(H200, 580, None), "1"), record(class(H200, 580, None), "2"));
    let digest = index.add(&one).unwrap();
    assert_eq!(index.import([&one], "bundle", &About::new(), None).unwrap(), 0, "held already");
    assert_eq!(index.import([&one, &two], "../a bundle", &About::new(), None).unwrap(), 1);
    assert_eq!(index.import([&one, &two], "another", &About::new(), None).unwrap(), 0, "to import again adds nothing");
    index.add(&two).unwrap();
    assert_eq!(index.records(&Digest::of(b"question")).unwrap().iter().filter(|s| s.digest == digest).count(), 1);
    assert_eq!(days(&index), ["1", "2"]);
    let origins: Vec<String> = index.all().unwrap().into_iter().map(|s| s.origin).collect();
    assert_eq!(origins.iter().filter(|o| *o == HERE).count(), 1);
    assert_eq!(origins.iter().filter(|o| *o == ".._a_bundle").count(), 1);
    assert!(index.records(&Digest::of(b"another")).unwrap().is_empty());
}

#[test]
fn records_beside_the_home_answer_with_it_and_are_never_written() {
    let dir = tempfile::tempdir().unwrap();
    let (index, store) = index(dir.path());
    let (one, two) = (record(class(H200, 580, None), "1"), record(class(H200, 580, None), "2"));
    index.add(&one).unwrap();
    let seen = |record: &Record| IndexedRecord {
        record: record.clone(),
        digest: Digest::of(&serde_json::to_vec(record).unwrap()),
        origin: "evidence/h200.kfe".into(),
        signer: None,
    };
    let mut lost = record(class(H200, 580, None), "3");
    lost.result.outputs = [("samples".to_string(), Digest::of(b"samples"))].into();
    let beside = HashMap::from([(Digest::of(b"question"), vec![seen(&one), seen(&two), seen(&lost)])]);
    let both = index.clone().with(Arc::new(beside), Arc::default());
    assert_eq!(days(&both), ["1", "2"]);
    let origins: Vec<String> = both.records(&Digest::of(b"question")).unwrap().into_iter().map(|s| s.origin).collect();
    assert_eq!(origins, [HERE, "evidence/h200.kfe"], "what is held here is not from elsewhere");
    store.put(b"samples").unwrap();
    assert_eq!(days(&both), ["1", "2", "3"]);
    assert_eq!((days(&index), index.all().unwrap().len()), (vec!["1".to_string()], 1));
}

/// The record of a compilation that produced a binary.
fn compiled(question: Digest, binary: Digest) -> Record {
    let mut made = record(class(H200, 580, None), "1");
    made.question = question;
    made.result.outputs = [(BINARY.to_string(), binary)].into();
    made
}

#[test]
fn of_several_binaries_that_were_brought_that_counts_of_which_most_is_known() {
    let dir = tempfile::tempdir().unwrap();
    let (index, store) = index(dir.path());
    let params = serde_json::json!({ "arch": "sm_90a" });
    let spec = Spec { kind: StepKind::Compile, version: 1, implementation: None, params, inputs: [].into() };
    let question = of_binary(&spec, &*store).unwrap().unwrap().key();
    let brought = |binary: &str| compiled(question, store.put(binary.as_bytes()).unwrap());
    let about = |binary: &str, known| About::from([(Digest::of(binary.as_bytes()), known)]);
    let taken = |index: &Index| {
        let hit = BundledBinaries::new(index.clone()).get(&spec.key(), &spec).unwrap().unwrap();
        let note = hit.result.notes.first().map(|note| note.message.clone()).unwrap_or_default();
        (String::from_utf8(store.get(&hit.result.outputs[BINARY]).unwrap().unwrap()).unwrap(), note)
    };
    // In one of the two orders, each binary comes first by its digest.
    for (few, many) in [("x", "y"), ("y", "x")] {
        std::fs::remove_dir_all(index.root.join(question.hex())).ok();
        index.import([&brought(few)], "few.kfe", &about(few, 3), None).unwrap();
        assert_eq!(taken(&index), (few.to_string(), String::new()));
        index.import([&brought(many)], "many.kfe", &about(many, 5), None).unwrap();
        let (binary, note) = taken(&index);
        assert_eq!(binary, many);
        assert!(
            note.contains("kforge uses the one from `many.kfe`, which has 5") && note.contains("`few.kfe` (3)"),
            "{note}"
        );
        // Among two with equally many observations, the one from the repository wins.
        let record = brought("z");
        let seen = IndexedRecord {
            digest: Digest::of(&serde_json::to_vec(&record).unwrap()),
            record,
            origin: "evidence/z.kfe".into(),
            signer: None,
        };
        let beside = Arc::new(HashMap::from([(question, vec![seen])]));
        assert_eq!(taken(&index.clone().with(beside.clone(), Arc::new(about("z", 5)))).0, "z");
        assert_eq!(taken(&index.clone().with(beside, Arc::new(about("z", 4)))).0, many);
    }
}

#[test]
fn which_binary_is_built_upon_does_not_hang_on_the_order_in_which_bundles_were_imported() {
    let params = serde_json::json!({ "arch": "sm_90a" });
    let spec = Spec { kind: StepKind::Compile, version: 1, implementation: None, params, inputs: [].into() };
    let imported = |order: [usize; 3]| {
        let dir = tempfile::tempdir().unwrap();
        let (index, store) = index(dir.path());
        let question = of_binary(&spec, &*store).unwrap().unwrap().key();
        let brought = |binary: &str| compiled(question, store.put(binary.as_bytes()).unwrap());
        // Two bundles bring the same record of `x`: one has few observations of `x`, the other many.
        let bundles = [("a.kfe", "x", 1), ("b.kfe", "x", 9), ("c.kfe", "y", 5)];
        for (name, binary, known) in order.map(|at| bundles[at]) {
            let about = About::from([(Digest::of(binary.as_bytes()), known)]);
            index.import([&brought(binary)], name, &about, None).unwrap();
        }
        let hit = BundledBinaries::new(index.clone()).get(&spec.key(), &spec).unwrap().unwrap();
        let note = hit.result.notes.first().map(|note| note.message.clone()).unwrap_or_default();
        (String::from_utf8(store.get(&hit.result.outputs[BINARY]).unwrap().unwrap()).unwrap(), note)
    };
    let (binary, note) = imported([0, 1, 2]);
    assert!(binary == "x" && note.contains("kforge uses the one from `b.kfe`, which has 9"), "{binary}: {note}");
    for order in [[1, 0, 2], [2, 0, 1], [2, 1, 0], [0, 2, 1], [1, 2, 0]] {
        assert_eq!(imported(order), (binary.clone(), note.clone()), "{order:?}");
    }
}

#[test]
fn what_cannot_be_made_to_last_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let (index, store) = index(dir.path());
    let cache = EvidenceCache::new(index.clone(), |_, _| None);
    let params = serde_json::json!({ "arch": "sm_90a" });
    let spec = Spec { kind: StepKind::Bench, version: 1, implementation: None, params, inputs: [].into() };
    let mut seen = record(class(H200, 580, None), "1");
    let provenance = store.put(&serde_json::to_vec(&seen.provenance).unwrap()).unwrap();
    seen.result.outputs = [(PROVENANCE.to_string(), provenance)].into();
    std::fs::rename(&index.root, dir.path().join("away")).unwrap();
    cache.sync().unwrap();
    std::fs::rename(dir.path().join("away"), &index.root).unwrap();
    cache.put(&spec.key(), &spec, &seen.result).unwrap();
    std::fs::rename(&index.root, dir.path().join("away")).unwrap();
    assert!(cache.sync().unwrap_err().to_string().contains("cannot sync"));
}

#[test]
fn damaged_and_misplaced_records_are_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let (index, _) = index(dir.path());
    index.add(&record(class(H200, 580, None), "1")).unwrap();
    let digest = index.add(&record(class(H200, 580, None), "2")).unwrap();
    let folder = index.root.join(Digest::of(b"question").hex());
    let path = folder.join(format!("{}.json", digest.hex()));
    let whole = std::fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        std::fs::write(&path, &flipped).unwrap();
        assert_eq!(days(&index), ["1"]);
    }
    std::fs::write(&path, &whole[..9]).unwrap();
    std::fs::write(folder.join("README"), "x").unwrap();
    assert_eq!(days(&index), ["1"]);
    let other = index.root.join(Digest::of(b"other").hex());
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join(path.file_name().unwrap()), &whole).unwrap();
    assert!(index.records(&Digest::of(b"other")).unwrap().is_empty());
    // Adding the record again repairs the file.
    index.add(&record(class(H200, 580, None), "2")).unwrap();
    assert_eq!(days(&index), ["1", "2"]);
}

#[test]
fn a_record_without_its_outputs_does_not_answer_and_is_not_taken() {
    let dir = tempfile::tempdir().unwrap();
    let (index, store) = index(dir.path());
    let mut with = record(class(H200, 580, None), "1");
    with.result.outputs = [("samples".to_string(), Digest::of(b"samples"))].into();
    assert!(index.add(&with).unwrap_err().to_string().contains("not in the store"));
    store.put(b"samples").unwrap();
    index.add(&with).unwrap();
    assert_eq!(days(&index), ["1"]);
    std::fs::remove_file(store.place(&Digest::of(b"samples"))).unwrap();
    assert!(days(&index).is_empty());
}

#[test]
fn as_a_cache_it_answers_questions_with_where_they_were_asked() {
    let dir = tempfile::tempdir().unwrap();
    let (index, store) = index(dir.path());
    let spec = |kind, arch| Spec {
        kind,
        version: 1,
        implementation: None,
        params: serde_json::json!({"arch": arch}),
        inputs: [].into(),
    };
    let wanted = |spec: &Spec, device: Option<&str>| {
        let validity = spec.kind.descriptor().observes.as_ref().map_or(Timing, |seen| seen.validity);
        (spec.kind != StepKind::Compile).then_some(AcceptedSource {
            here: None,
            device: device.map(str::to_string),
            validity,
        })
    };
    let cache = EvidenceCache::new(index, wanted);
    let bench = spec(StepKind::Bench, "sm_90a");
    let Record { provenance, mut result, .. } = record(class(H200, 580, None), "2026-11-01T00:00:00Z");
    let refused = cache.put(&bench.key(), &bench, &result).unwrap_err().to_string();
    assert!(refused.contains("`provenance` is missing"), "{refused}");
    let kept = store.put(&serde_json::to_vec(&provenance).unwrap()).unwrap();
    result.outputs.insert(PROVENANCE.into(), kept);
    assert_eq!(cache.get(&bench.key(), &bench).unwrap(), None);
    cache.put(&bench.key(), &bench, &result).unwrap();
    let hit = cache.get(&bench.key(), &bench).unwrap().unwrap();
    assert_eq!((&hit.result, hit.origin), (&result, CacheOrigin::Evidence));
    let evidence = hit.evidence.unwrap();
    assert_eq!((evidence.origin.as_str(), evidence.measured_at.as_str()), (HERE, "2026-11-01T00:00:00Z"));
    assert_eq!(evidence.device_class, "NVIDIA H200 (sm_90, driver 580)");
    let lacks = |product: Option<&str>| cache.lacks(&bench.key(), &bench, product);
    assert_eq!(cache.answer(&bench.key(), &bench, Some(H200)).unwrap().map(|h| h.result), Some(result.clone()));
    assert_eq!(cache.answer(&bench.key(), &bench, Some("NVIDIA H100")).unwrap(), None);
    assert_eq!(lacks(Some("NVIDIA H100")).as_deref(), Some("no evidence from one"));
    assert_eq!((lacks(Some(H200)), lacks(None)), (None, None));
    for other in [spec(StepKind::Compile, "sm_90a"), spec(StepKind::Verify, "cpu")] {
        cache.put(&other.key(), &other, &result).unwrap();
        assert_eq!(cache.get(&other.key(), &other).unwrap(), None);
    }
}
