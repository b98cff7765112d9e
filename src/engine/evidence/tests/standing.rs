//! How far a record is trusted, and what that decides: which record answers, and which binary takes the place of a compilation.

use super::*;
use crate::action::of_binary;

/// A record that stands as it says: of this machine, signed by somebody, or from somewhere.
fn standing(standing: Standing, day: &str) -> IndexedRecord {
    let record = seen(H200, 580, None, day);
    match standing {
        Standing::Here => record,
        Standing::Signed => IndexedRecord { origin: "s.kfe".into(), signer: Some("ci@example.com".into()), ..record },
        Standing::Claimed => IndexedRecord { origin: "c.kfe".into(), ..record },
    }
}

fn wanted(here: bool, least: Standing) -> AcceptedSource {
    AcceptedSource { here: here.then(|| class(H200, 580, None)), device: None, validity: Timing, least }
}

/// The origin of the record that answers.
fn origin(records: &[IndexedRecord], wanted: &AcceptedSource) -> String {
    match choose(records, wanted, now()) {
        Answer::Found(seen) => seen.origin,
        other => format!("{other:?}"),
    }
}

#[test]
fn standing_comes_before_time() {
    use Standing::{Claimed, Here, Signed};
    let records = [standing(Here, "01"), standing(Signed, "02"), standing(Claimed, "03")];
    for here in [true, false] {
        assert_eq!(origin(&records, &wanted(here, Claimed)), HERE);
        assert_eq!(origin(&records[1..], &wanted(here, Claimed)), "s.kfe");
        assert_eq!(origin(&records[2..], &wanted(here, Claimed)), "c.kfe");
    }
    let again = [standing(Claimed, "03"), standing(Claimed, "04")];
    let Answer::Found(newest) = choose(&again, &wanted(false, Claimed), now()) else { panic!("no answer") };
    assert!(newest.record.provenance.measured_at.contains("-04T"));
}

#[test]
fn a_record_of_less_standing_than_is_required_does_not_answer() {
    use Standing::{Claimed, Signed};
    let records = [standing(Claimed, "03")];
    assert_eq!(choose(&records, &wanted(true, Signed), now()), Answer::AskHere, "the device that is here is asked");
    assert_eq!(choose(&records, &wanted(false, Signed), now()), Answer::Unknown { products: vec![] });
    // Claims of another product do not make the question ambiguous.
    let mut other = seen(A100, 580, None, "04");
    other.origin = "c.kfe".into();
    assert_eq!(origin(&[standing(Signed, "01"), other], &wanted(false, Signed)), "s.kfe");
}

#[test]
fn a_record_from_more_than_five_minutes_ahead_never_answers() {
    let at = |text: &str| {
        let mut seen = standing(Standing::Here, "01");
        seen.record.provenance.measured_at = text.into();
        seen
    };
    let wanted = wanted(true, Standing::Claimed);
    for (time, answers) in [
        ("2026-12-01T00:05:00Z", true),
        ("2026-12-01T00:05:01Z", false),
        ("2099-01-01T00:00:00Z", false),
        ("2026-12-01T02:04:00+02:00", true),
    ] {
        let answer = choose(&[at(time)], &wanted, now());
        assert_eq!(answer != Answer::AskHere, answers, "{time}");
        assert_eq!(is_ahead(&at(time).record, now()), !answers, "{time}");
    }
    let day = choose(&[at("2099-01-01T00:00:00Z"), standing(Standing::Claimed, "02")], &wanted, now());
    assert!(matches!(day, Answer::Found(seen) if seen.origin == "c.kfe"), "what is ahead outlasts nothing");
}

#[test]
fn rivals_are_the_newest_of_other_origins_that_saw_something_else() {
    let of = |origin: &str, day: &str, saw: &str| {
        let mut seen = seen(H200, 580, None, day);
        seen.record.result.outputs = [("observation".to_string(), Digest::of(saw.as_bytes()))].into();
        IndexedRecord { origin: origin.into(), ..seen }
    };
    let answer = of(HERE, "05", "right");
    let records = [
        answer.clone(),
        of(HERE, "01", "wrong"),
        of("a.kfe", "02", "right"),
        of("b.kfe", "03", "wrong"),
        of("c.kfe", "02", "wrong"),
        of("c.kfe", "03", "right"),
        of("d.kfe", "02", "right"),
        of("d.kfe", "03", "wrong"),
    ];
    let names = |least| {
        let wanted = wanted(true, least);
        rivals(&records, &answer, &wanted, now()).iter().map(|seen| seen.origin.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(Standing::Claimed), ["b.kfe", "d.kfe"]);
    assert_eq!(names(Standing::Signed), Vec::<String>::new(), "what does not count contradicts nothing");
    let mut other = of("b.kfe", "03", "wrong");
    other.record.provenance.device.product = A100.into();
    assert!(rivals(&[other], &answer, &wanted(true, Standing::Claimed), now()).is_empty());
}

#[test]
fn only_the_machine_that_observed_a_record_stands_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let (index, store) = index(dir.path());
    let (one, two) = (record(class(H200, 580, None), "1"), record(class(H200, 580, None), "2"));
    let digest = index.add(&one).unwrap();
    let standings = |index: &Index| -> Vec<(String, Standing)> {
        let records = index.records(&Digest::of(b"question")).unwrap();
        records.into_iter().map(|seen| (seen.origin.clone(), seen.standing())).collect()
    };
    let here = vec![(HERE.to_string(), Standing::Here)];
    let claimed = vec![(HOME.to_string(), Standing::Claimed)];
    assert_eq!(standings(&index), here);
    // The record does not depend on the machine; the tag beside it does.
    let home = Home::open(dir.path()).unwrap();
    let of = |key| Index::new(&home, store.clone()).keyed(key);
    assert_eq!(standings(&of(Some(key(2)))), claimed, "another machine");
    assert_eq!(standings(&of(None)), claimed, "no key");
    assert_eq!(of(None).add(&one).unwrap(), digest);
    let tag = index.tag_of(&Digest::of(b"question"), &digest);
    let whole = std::fs::read_to_string(&tag).unwrap();
    for damaged in ["", &whole[1..], &"0".repeat(64)] {
        std::fs::write(&tag, damaged).unwrap();
        assert_eq!(standings(&index), claimed, "{damaged}");
    }
    std::fs::remove_file(&tag).unwrap();
    assert_eq!(standings(&index), claimed, "as an earlier version left it");
    index.add(&one).unwrap();
    assert_eq!(standings(&index), here, "to observe it again authenticates it");
    // A tag of another record is none, and what a bundle brings stands `here` under no name.
    std::fs::remove_dir_all(index.root.join(Digest::of(b"question").hex())).unwrap();
    index.import([&two], "here", &About::new()).unwrap();
    std::fs::write(index.tag_of(&Digest::of(b"question"), &Digest::of(&serde_json::to_vec(&two).unwrap())), &whole)
        .unwrap();
    assert_eq!(standings(&index), [("@here".to_string(), Standing::Claimed)]);
    // What was brought and is observed here too stands `here`, once.
    index.add(&two).unwrap();
    assert_eq!(standings(&index), here);
}

fn compilation() -> Spec {
    let params = serde_json::json!({ "arch": "sm_90a" });
    Spec { kind: StepKind::Compile, version: 1, implementation: None, params, inputs: [].into() }
}

/// A bundle with a compilation that gave `binary`.
fn brought(question: Digest, binary: Digest, name: &str, signer: Option<&str>) -> IndexedRecord {
    let mut record = record(class(H200, 580, None), "1");
    record.question = question;
    record.result.outputs = [(BINARY.to_string(), binary)].into();
    let digest = Digest::of(&serde_json::to_vec(&record).unwrap());
    IndexedRecord { digest, record, origin: name.into(), signer: signer.map(str::to_string) }
}

#[test]
fn a_binary_takes_the_place_of_a_compilation_only_if_it_is_signed() {
    let dir = tempfile::tempdir().unwrap();
    let (index, store) = index(dir.path());
    let spec = compilation();
    let question = of_binary(&spec, &*store).unwrap().unwrap().key();
    let binary = store.put(b"x").unwrap();
    let with = |signer| {
        let seen = brought(question, binary, "evidence/x.kfe", signer);
        BundledBinaries::new(index.clone().with(Arc::new(HashMap::from([(question, vec![seen])])), Arc::default()))
    };
    let answered =
        |cache: &BundledBinaries| cache.get(&spec.key(), &spec).unwrap().map(|hit| hit.result.outputs[BINARY]);
    assert_eq!(answered(&with(Some("ci@example.com"))), Some(binary));
    let claimed = with(None);
    assert_eq!(answered(&claimed), None);
    let by = vec!["evidence/x.kfe".to_string()];
    assert_eq!(claimed.lacks(&spec.key(), &spec, None), Some(Unanswered::BinaryClaimed { by: by.clone() }));
    // Compiling here gives the same bytes, or other bytes.
    let made = |bytes: &[u8]| {
        let mut result = record(class(H200, 580, None), "1").result;
        result.outputs = [(BINARY.to_string(), Digest::of(bytes))].into();
        result
    };
    assert_eq!(claimed.unlike(&spec, &made(b"x")), None);
    let other = claimed.unlike(&spec, &made(b"y")).unwrap();
    assert_eq!(other, Unanswered::OtherBinary { by });
    assert_eq!(
        other.to_string(),
        "evidence is of another binary than this compiler makes (claimed by `evidence/x.kfe`)"
    );
    let nothing = BundledBinaries::new(index);
    assert_eq!((nothing.lacks(&spec.key(), &spec, None), nothing.unlike(&spec, &made(b"y"))), (None, None));
    // An imported bundle is no better than one in the repository.
    let (dir, ours) = (tempfile::tempdir().unwrap(), brought(question, binary, "", None).record);
    let (index, store) = super::index(dir.path());
    store.put(b"x").unwrap();
    index.import([&ours], "x.kfe", &About::new()).unwrap();
    assert_eq!(answered(&BundledBinaries::new(index)), None);
}

#[test]
fn of_several_signed_binaries_that_counts_of_which_most_is_known() {
    let dir = tempfile::tempdir().unwrap();
    let (index, store) = index(dir.path());
    let spec = compilation();
    let question = of_binary(&spec, &*store).unwrap().unwrap().key();
    // In one of the two orders, each binary comes first by its digest.
    for (few, many) in [("x", "y"), ("y", "x")] {
        let of = |binary: &str, name: &str| {
            brought(question, store.put(binary.as_bytes()).unwrap(), name, Some("ci@example.com"))
        };
        let about: About = [(few, 3), (many, 5)].map(|(binary, n)| (Digest::of(binary.as_bytes()), n)).into();
        for records in [vec![of(few, "few.kfe"), of(many, "many.kfe")], vec![of(many, "many.kfe"), of(few, "few.kfe")]]
        {
            let beside = Arc::new(HashMap::from([(question, records)]));
            let cache = BundledBinaries::new(index.clone().with(beside, Arc::new(about.clone())));
            let hit = cache.get(&spec.key(), &spec).unwrap().unwrap();
            assert_eq!(hit.result.outputs[BINARY], Digest::of(many.as_bytes()));
            let note = &hit.result.notes[0].message;
            assert!(
                note.contains("kforge uses the one from `many.kfe`, which has 5") && note.contains("`few.kfe` (3)"),
                "{note}"
            );
        }
        // A claimed one does not compete, however much is said of it.
        let mut claimed = of(many, "many.kfe");
        claimed.signer = None;
        let beside = Arc::new(HashMap::from([(question, vec![of(few, "few.kfe"), claimed])]));
        let cache = BundledBinaries::new(index.clone().with(beside, Arc::new(about)));
        let hit = cache.get(&spec.key(), &spec).unwrap().unwrap();
        assert_eq!((hit.result.outputs[BINARY], hit.result.notes.len()), (Digest::of(few.as_bytes()), 0));
    }
}

#[test]
fn the_bundle_with_the_most_observations_of_an_imported_binary_counts_in_any_order() {
    let spec = compilation();
    let imported = |order: [usize; 3]| {
        let dir = tempfile::tempdir().unwrap();
        let (index, store) = index(dir.path());
        let question = of_binary(&spec, &*store).unwrap().unwrap().key();
        // Two bundles bring the same record of `x`: one has few observations of `x`, the other many.
        let bundles = [("a.kfe", "x", 1), ("b.kfe", "x", 9), ("c.kfe", "y", 5)];
        for (name, binary, known) in order.map(|at| bundles[at]) {
            let record = brought(question, store.put(binary.as_bytes()).unwrap(), name, None).record;
            index.import([&record], name, &About::from([(Digest::of(binary.as_bytes()), known)])).unwrap();
        }
        let records = index.records(&question).unwrap();
        let mut all: Vec<_> = records.into_iter().map(|seen| index.about(seen)).map(|(n, s)| (n, s.origin)).collect();
        all.sort();
        all
    };
    let expected = [(5, "c.kfe".to_string()), (9, "b.kfe".to_string())];
    for order in [[0, 1, 2], [1, 0, 2], [2, 0, 1], [2, 1, 0], [0, 2, 1], [1, 2, 0]] {
        assert_eq!(imported(order), expected, "{order:?}");
    }
}
