//! Tests of differences of variants: what is said to differ, and in which words.

use super::*;
use crate::report::difference_text::{heading, rest, sources};
use crate::report::document::{SpreadReport, TimeReport, TimeSeenReport};
use kforge_types::record::Unknown;

fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(name, value)| ((*name).to_string(), (*value).to_string())).collect()
}

fn found(variant: &str, source: &str) -> SideFound {
    SideFound {
        state: "the working tree".into(),
        variant: variant.into(),
        files: [
            ("k.cu".to_string(), Some(source.as_bytes().to_vec())),
            ("common.h".to_string(), Some(b"#pragma once\n".to_vec())),
        ]
        .into(),
        ..SideFound::default()
    }
}

fn seat() -> DiffSeat {
    DiffSeat {
        package: "p".into(),
        kernel: "k".into(),
        target: "h200".into(),
        types: String::new(),
        hot: false,
        shapes: vec!["big".into(), "odd".into()],
    }
}

fn time(shape: &str, ns: f64, device: &str) -> (String, TimeReport) {
    let spread =
        SpreadReport { samples: 100, interval_ns: Some((ns * 0.99, ns * 1.01)), dropped: 0, quantiles_ns: vec![] };
    let seen = TimeSeenReport {
        device: device.into(),
        at: None,
        standing: None,
        clocks_mhz: None,
        temperature_c: None,
        throttle: vec![],
        cold: Some(spread),
        hot: None,
    };
    let time = TimeReport {
        shape: shape.into(),
        variant: String::new(),
        cold_ns: Some(ns),
        hot_ns: None,
        few: false,
        by_class: None,
        seen: Some(seen),
    };
    (shape.into(), time)
}

fn function(entry: &str, registers: u32, opcodes: &[(&str, u64)]) -> FunctionFacts {
    FunctionFacts {
        entry: entry.into(),
        registers: Some(registers),
        shared: Some(1024),
        spill_stores: Some(0),
        spill_loads: Some(0),
        opcodes: opcodes.iter().map(|(name, n)| ((*name).to_string(), *n)).collect(),
        ..FunctionFacts::default()
    }
}

fn plain(document: &DiffDocument) -> String {
    let all = format!("{}{}{}", heading(document), sources(document), rest(document));
    anstream::adapter::strip_str(&all).to_string()
}

#[test]
fn a_changed_source_is_shown_in_the_unified_format_and_the_others_are_named() {
    let found = difference(seat(), found("A=1", "int a;\nint b;\n"), found("A=1", "int a;\nint c;\n"), [].into());
    let [one] = found.sources.as_slice() else { panic!("{:?}", found.sources) };
    let unified = "--- a/k.cu\n+++ b/k.cu\n@@ -1,2 +1,2 @@\n int a;\n-int b;\n+int c;\n";
    assert_eq!((one.file.as_str(), one.unified.as_deref()), ("k.cu", Some(unified)));
    assert_eq!(found.same_sources, ["common.h"]);
    assert!(plain(&found).contains(unified), "{}", plain(&found));
}

#[test]
fn a_file_of_one_side_and_one_that_is_no_text_are_said_so() {
    let mut b = found("A=1", "int a;\n");
    b.files.insert("new.h".into(), Some(b"int n;\n".to_vec()));
    b.files.insert("common.h".into(), Some(vec![0xff, 0xfe]));
    let found = difference(seat(), found("A=1", "int a;\n"), b, [].into());
    let of = |file: &str| found.sources.iter().find(|source| source.file == file).unwrap();
    assert!(of("new.h").unified.as_ref().unwrap().starts_with("--- /dev/null\n+++ b/new.h\n"));
    assert!(!of("new.h").in_a && of("new.h").in_b);
    assert_eq!(of("common.h").unified, None);
    assert!(plain(&found).contains("common.h differs, and one side is no text"), "{}", plain(&found));
}

#[test]
fn what_differs_in_compilation_and_launch_is_listed_with_both_values() {
    let launches = |block: &str| [("odd".to_string(), map(&[("launch 1", block)]))].into();
    let a = SideFound {
        settings: map(&[("std", "c++17"), ("defines.VEC", "4")]),
        launches: launches("block 64 x 1 x 1"),
        ..found("VEC=4", "same\n")
    };
    let b = SideFound {
        settings: map(&[("std", "c++17"), ("defines.VEC", "1"), ("flags", "-lineinfo")]),
        launches: launches("block 32 x 1 x 1"),
        ..found("VEC=1", "same\n")
    };
    let told = plain(&difference(seat(), a, b, [].into()));
    for line in [
        "  defines.VEC      4 -> 1\n",
        "  flags            none -> -lineinfo\n",
        "  launch 1 at odd  block 64 x 1 x 1 -> block 32 x 1 x 1\n",
    ] {
        assert!(told.contains(line), "{line:?} in {told}");
    }
    assert!(!told.contains("std"), "{told}");
    assert!(told.contains("Source: the same in both (common.h, k.cu)"), "{told}");
}

#[test]
fn functions_are_matched_by_their_names_and_counted_side_by_side() {
    let a = SideFound {
        functions: vec![function("sum<4>", 40, &[("LDG.E.128", 4), ("EXIT", 1)]), function("old", 8, &[])],
        ..found("VEC=4", "same\n")
    };
    let b = SideFound {
        functions: vec![function("sum<1>", 32, &[("LDG.E", 16), ("EXIT", 1)])],
        ..found("VEC=1", "same\n")
    };
    let document = difference(seat(), a, b, [].into());
    assert_eq!(document.functions.len(), 2);
    assert_eq!(document.functions[1].b, None);
    let told = plain(&document);
    for line in ["sum<4> against sum<1>", "old, only in A"] {
        assert!(told.contains(line), "{line:?} in {told}");
    }
    let row = |name: &str| -> Vec<String> {
        let line =
            told.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_else(|| panic!("{name}: {told}"));
        line.split_whitespace().map(String::from).collect()
    };
    assert_eq!(row("registers"), ["registers", "40", "32", "-8"]);
    assert_eq!(row("LDG.E.128"), ["LDG.E.128", "4", "0", "-4"]);
    assert_eq!(row("LDG.E "), ["LDG.E", "0", "16", "+16"]);
    assert_eq!(row("instructions"), ["instructions", "5", "17", "+12"]);
    assert!(!told.contains("EXIT"), "an opcode that is as frequent in both: {told}");
}

#[test]
fn a_champion_is_told_with_how_it_was_selected() {
    let told = |classes: &[&str], provisional, last_build, of_correct| {
        let selected = SelectedHow { provisional, last_build, of_correct };
        let champion_of = classes.iter().map(ToString::to_string).collect();
        let a = SideFound { champion_of, selected, ..found("VEC=4", "same\n") };
        let document = difference(seat(), a, found("VEC=1", "same\n"), [].into());
        let line = plain(&document).lines().find(|line| line.starts_with("  A")).unwrap().to_string();
        (line, serde_json::to_value(&document).unwrap()["a"].get("selected").is_some())
    };
    let all = &["all"];
    assert_eq!(told(all, false, false, false), ("  A  VEC=4  champion".into(), false));
    assert_eq!(told(all, true, false, false), ("  A  VEC=4  champion (provisional)".into(), true));
    assert_eq!(told(all, false, true, false), ("  A  VEC=4  champion (in the last build)".into(), true));
    let partly = "  A  VEC=4  champion of big, odd (provisional; of the correct variants, in the last build)";
    assert_eq!(told(&["big", "odd"], true, true, true), (partly.into(), true));
}

#[test]
fn pairs_come_before_the_ratio_of_medians_and_what_is_missing_is_said() {
    let a = SideFound {
        champion_of: vec!["all".into()],
        times: [time("big", 1000.0, "H200"), time("odd", 500.0, "H200")].into(),
        verdicts: [("odd".to_string(), Verdict::Pass)].into(),
        ..found("VEC=4", "same\n")
    };
    let b = SideFound {
        times: [time("big", 900.0, "H200"), time("odd", 600.0, "H100")].into(),
        verdicts: [("odd".to_string(), Verdict::Unknown(Unknown::NoDevice("none".into())))].into(),
        missing: vec![Missing { what: "machine code".into(), why: "not compiled".into() }],
        ..found("VEC=1", "same\n")
    };
    let ratio = RatioReport {
        ratio: 0.95,
        interval: Some((0.94, 0.96)),
        paired: true,
        orders_disagree: None,
        measured: Some("H200, 2026".into()),
    };
    let pairs: PairsFound =
        [("big".to_string(), PairsAt::Taken(ratio)), ("odd".to_string(), PairsAt::Missing("never paired".into()))]
            .into();
    let document = difference(seat(), a.clone(), b.clone(), pairs);
    assert!(document.shapes[0].ratio.as_ref().is_some_and(|ratio| ratio.paired));
    assert_eq!(document.shapes[1].ratio, None, "medians of two products are not compared");
    let told = plain(&document);
    for part in [
        "A  VEC=4  champion",
        "B  VEC=1\n",
        "Verdicts:\n  A  pass at odd\n  B  unknown at odd: no device: none\n",
        "B in pairs with A: faster, -5.0 % [-6.0, -4.0] (H200, 2026)",
        "no pairs: never paired",
        "B: no machine code: not compiled",
    ] {
        assert!(told.contains(part), "{part:?} in {told}");
    }
    let document = difference(seat(), a, b, [].into());
    let apart = document.shapes[0].ratio.as_ref().unwrap();
    assert!(!apart.paired && (apart.ratio - 0.9).abs() < 1e-12 && apart.interval.unwrap().0 < 0.9);
    assert!(
        plain(&document).contains("B against A -10.0 % [")
            && plain(&document).contains("] by separate medians, which say less"),
        "{}",
        plain(&document)
    );
}

#[test]
fn both_sides_have_their_verdicts_with_the_first_failure_and_only_timed_shapes_have_times() {
    let fail = |why: &str| Verdict::Fail(why.into());
    let mut a = SideFound { times: [time("big", 1000.0, "H200")].into(), ..found("VEC=4", "same\n") };
    a.judged("big", Judgement::bare(Verdict::Pass));
    a.judged("odd", Judgement::bare(Verdict::Pass));
    let mut b = found("VEC=1", "same\n");
    let raised = Judgement { finding: Some(FindingKind::Raised), ..Judgement::bare(fail("ValueError: no, at k.py:3")) };
    b.judged("big", raised.clone());
    b.judged("odd", Judgement::bare(fail("`y` is wrong at [0]")));
    let document = difference(seat(), a.clone(), b.clone(), [].into());
    assert_eq!((document.a.verdict, document.b.verdict), (SideVerdict::Pass, SideVerdict::Fail));
    assert_eq!(document.b.failure.as_ref().and_then(|failure| failure.shape.as_deref()), Some("big"));
    let told = plain(&document);
    let verdicts =
        "\nVerdicts:\n  A  pass at big, odd\n  B  does not run at big: ValueError: no, at k.py:3; also fails at odd\n";
    assert!(told.contains(verdicts), "{told}");
    let times = told.split("Cold times:\n").nth(1).unwrap();
    assert!(times.starts_with("  big: A 1.00 us, B not timed") && !times.contains("odd"), "{told}");
    // A confirmation takes a pass back, and what never ran is said, too.
    a.judged("odd", Judgement::bare(fail("`y` is wrong at [7]")));
    let failed = Some(("p/k/VEC=1/h200/compile".to_string(), "cannot compile `k.cu`\nmore".to_string()));
    let document = difference(seat(), a, SideFound { failed, ..found("VEC=1", "same\n") }, [].into());
    let told = plain(&document);
    let verdicts = "  A  wrong at odd: `y` is wrong at [7]; pass at big\n  B  failed in the last build: `p/k/VEC=1/h200/compile`: cannot compile `k.cu`\n";
    assert!(told.contains(verdicts), "{told}");
    let untried = difference(seat(), found("VEC=4", ""), found("VEC=1", ""), [].into());
    assert!(plain(&untried).contains("  A  not verified\n  B  not verified\n"));
    assert_eq!((untried.a.verdict, untried.a.failure), (SideVerdict::Untried, None));
}
