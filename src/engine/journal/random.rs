//! The journal against plain maps, under random records, reopenings and compactions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proptest::prelude::*;

use super::tests::{digest, open, row, stat};

/// A random operation on the journal.
#[derive(Debug, Clone)]
enum Call {
    Step(u8, u8),
    Stat(u8, u8),
    Scan(u8, Vec<u8>),
    Certificate(Vec<u8>),
    Meta(String, Vec<u8>),
    Forget(u8),
    Reopen,
    Compact,
}

fn call() -> impl Strategy<Value = Call> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..20);
    prop_oneof![
        8 => (0u8..6, 0u8..12).prop_map(|(id, n)| Call::Step(id, n)),
        2 => (0u8..6, any::<u8>()).prop_map(|(id, n)| Call::Stat(id, n)),
        2 => (0u8..6, bytes()).prop_map(|(id, b)| Call::Scan(id, b)),
        1 => bytes().prop_map(Call::Certificate),
        1 => ("[a-c\u{e9}]{0,2}", bytes()).prop_map(|(name, b)| Call::Meta(name, b)),
        1 => (0u8..12).prop_map(Call::Forget),
        1 => Just(Call::Reopen),
        1 => Just(Call::Compact),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(96) })]

    #[test]
    fn over_random_records_it_says_what_a_plain_map_says(calls in prop::collection::vec(call(), 0..60)) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let mut journal = open(&path);
        // The last row of each node, and whether its result was forgotten since.
        let mut steps: BTreeMap<u8, (u8, bool)> = BTreeMap::new();
        let mut stats: BTreeMap<u8, u8> = BTreeMap::new();
        let mut scans = BTreeMap::new();
        let mut metas = BTreeMap::new();
        let mut certificate = vec![];
        let mut known = BTreeSet::new();
        for call in calls {
            match call {
                Call::Step(id, n) => {
                    journal.record_step(&format!("id{id}"), &row(n.into())).unwrap();
                    steps.insert(id, (n, false));
                    known.insert(n);
                }
                Call::Stat(id, n) => {
                    journal.record_stat(Path::new(&format!("id{id}")), &stat(n.into())).unwrap();
                    stats.insert(id, n);
                }
                Call::Scan(id, bytes) => {
                    journal.record_scan(&digest(id.into()), &bytes).unwrap();
                    scans.insert(id, bytes);
                }
                Call::Certificate(bytes) => {
                    journal.record_certificate(&bytes).unwrap();
                    certificate = bytes;
                }
                Call::Meta(name, bytes) => {
                    journal.record_meta(&name, &bytes).unwrap();
                    metas.insert(name, bytes);
                }
                Call::Forget(n) => {
                    journal.forget(&digest(n.into())).unwrap();
                    known.remove(&n);
                    steps.values_mut().filter(|(m, _)| *m == n).for_each(|(_, back)| *back = true);
                }
                Call::Reopen => {
                    drop(journal);
                    journal = open(&path);
                }
                Call::Compact => {
                    let index = journal.inner().index.compacted();
                    drop(journal);
                    std::fs::write(&path, index.bytes()).unwrap();
                    journal = open(&path);
                    prop_assert_eq!(journal.inner().index.dead(), 0);
                }
            }
            for (id, (n, back)) in &steps {
                let mut want = row((*n).into());
                if !back || !known.contains(n) {
                    prop_assert_eq!(journal.by_key(&want.key), want.result.clone().filter(|_| !back));
                }
                (want.result, want.tag) = (want.result.filter(|_| !back), want.tag.filter(|_| !back));
                prop_assert_eq!(journal.last(&format!("id{id}")), Some(want));
            }
            for (id, n) in &stats {
                prop_assert_eq!(journal.stat(Path::new(&format!("id{id}"))), Some(stat((*n).into())));
            }
            for (id, bytes) in &scans {
                prop_assert_eq!(journal.scan(&digest((*id).into())), Some(bytes.clone()));
            }
            for (name, bytes) in &metas {
                prop_assert_eq!(journal.meta(name), Some(bytes.clone()));
            }
            prop_assert_eq!(journal.certificate().unwrap_or_default(), certificate.clone());
        }
    }
}
