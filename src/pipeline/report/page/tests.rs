//! Tests of the page: what it says is what the document says, whoever wrote the names in it.

mod hostile;
mod numbers;
pub(crate) mod read;
pub(super) mod synthetic;

use super::page;
use crate::report::document::TargetReport;
use crate::report::earlier::EarlierReport;
use crate::report::provenance::SelectedReport;
use read::Page;
use synthetic::{CHAMPION, synthetic};

#[test]
fn a_page_of_a_hundred_kernels_is_small_and_whole() {
    let report = synthetic(100);
    let text = page(&report);
    assert!(text.len() < 300_000, "{} bytes", text.len());
    let read = Page::read(&text);
    assert_eq!(read.tables.iter().find(|table| table.label == "kernels on targets").unwrap().rows.len(), 100);
    for id in ["ladder", "speedups", "scores", "roofline", "methods", "details", "provenance"] {
        assert!(read.ids.iter().any(|known| known == id), "{id}");
    }
}

#[test]
fn long_messages_and_many_shapes_leave_a_page_small() {
    let mut report = synthetic(100);
    let log: String = (0..40).map(|line| format!("step: line {line} of a message that a program wrote\n")).collect();
    for (at, kernel) in report.packages[0].kernels.iter_mut().enumerate() {
        let target = &mut kernel.targets[0];
        target.failed = (0..8).map(|step| (format!("p/k/cpu/{step}/compile"), format!("{at} {step} {log}"))).collect();
        target.shapes.iter_mut().for_each(|shape| shape.explanation.clone_from(&log));
        let achieved = &mut target.rooflines[0].achieved;
        let one = achieved["large"].clone();
        achieved.extend((0..12).map(|shape| (format!("shape_{shape}"), one.clone())));
        target.champions[0].shapes.extend((0..12).map(|shape| format!("shape_{shape}")));
    }
    let text = page(&report);
    assert!(text.len() < 300_000, "{} bytes", text.len());
    let read = Page::read(&text);
    assert!(read.text.contains("more failures"), "those beyond some are counted");
    assert!(read.text.contains("`kforge report --kernel kernel_07` shows all of it"));
    let roofline = read.tables.iter().find(|table| table.label == "what champions reach").unwrap();
    assert_eq!(roofline.rows.len(), 100, "a row for each kernel");
    assert!(read.text.contains("Only the bench shapes where champions take longest"));
}

#[test]
fn operators_that_decide_nothing_come_before_kernels() {
    let mut report = synthetic(1);
    let operator = |name: &str, verdict: serde_json::Value| serde_json::json!({ "name": name, "verdict": verdict, "notes": ["<note>"] });
    let all = [
        operator("softmax", serde_json::json!("pass")),
        operator("sum", serde_json::json!({ "fail": "it <decides> nothing" })),
    ];
    report.packages[0].operators = all.map(|one| serde_json::from_value(one).unwrap()).into();
    let text = page(&report);
    let read = Page::read(&text);
    assert!(read.text.contains("✕ sum: fail: it <decides> nothing") && read.text.contains("<note>"), "{}", read.text);
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}"));
    assert!(at("id=operators") < at("id=ladder") && at("✕</b> sum") < at("●</b> softmax"));
}

#[test]
fn what_the_terminal_says_of_champions_stands_on_the_page() {
    let mut report = synthetic(1);
    let target = &mut report.packages[0].kernels[0].targets[0];
    (target.accepted, target.host) = (true, Some("launch.cpp".into()));
    let time = target.times.iter_mut().find(|time| time.variant == CHAMPION).unwrap();
    let by = serde_json::json!({ "class": "ties", "cold_ns": 12_000.0, "hot_ns": 9_000.0, "differs": true });
    time.by_class = Some(serde_json::from_value(by).unwrap());
    let read = Page::read(&page(&report));
    for said in ["kforge.lock pins", "host-launched by `launch.cpp`", "on inputs of the class `ties`"] {
        assert!(read.text.contains(said), "{said}");
    }
}

#[test]
fn a_build_that_ended_early_shows_how_many_variants_passed_and_no_pass() {
    let mut report = synthetic(5);
    let [short, failed] = report.packages[0].kernels.get_disjoint_mut([0, 3]).unwrap();
    assert!(
        failed.targets[0].shapes.iter().any(|shape| matches!(shape.verdict, kforge_types::record::Verdict::Fail(_)))
    );
    let target = &mut short.targets[0];
    target.champions.clear();
    let mut again = target.shapes.clone();
    again.iter_mut().for_each(|shape| shape.variant = "BLOCK=128,VEC=1".into());
    target.shapes.extend(again);
    let read = Page::read(&page(&report));
    let ladder = read.tables.iter().find(|table| table.label == "kernels on targets").unwrap();
    let row = ladder.rows.iter().find(|row| row[0].text.contains("kernel_00")).unwrap();
    assert!(row[0].text.trim().starts_with('?'), "{}", row[0].text);
    assert!(row[2].text.contains("large (2 variants), llama (2 variants)"), "{}", row[2].text);
    assert!(row[2].small.iter().any(|line| line.contains("ended before a champion")), "{:?}", row[2].small);
}

#[test]
fn what_has_no_result_says_why_in_its_row() {
    let mut report = synthetic(3);
    let bare = |target: &str| TargetReport { target: target.into(), ..TargetReport::default() };
    let not_built = serde_json::json!({
        "step": "p/k/judge", "stopped": true,
        "last": { "champions": ["A=1"], "provisional": true, "failed": false, "passed": 2, "unknown": 0, "by": "emulated" },
    });
    let not_built = Some(serde_json::from_value(not_built).unwrap());
    report.packages[0].kernels[1].targets = vec![TargetReport { not_built, ..bare("h200") }];
    let mut champion = report.packages[0].kernels[2].targets[0].champions[0].clone();
    (champion.variant, champion.because) = (None, "every variant is wrong on `cpu`".into());
    report.packages[0].kernels[2].targets = vec![TargetReport { champions: vec![champion], ..bare("h200") }];
    let read = Page::read(&page(&report));
    let rows = &read.tables.iter().find(|table| table.label == "kernels on targets").unwrap().rows;
    let is_in = |cell: &read::Cell, text: &str| cell.text == text || cell.small.iter().any(|small| small == text);
    let has = |text: &str| rows.iter().flatten().any(|cell| is_in(cell, text));
    assert!(has("? not built: the build stopped at `p/k/judge`"), "{rows:?}");
    assert!(has("last known: pass emulated, A=1 (provisional)"), "{rows:?}");
    assert!(has("No champion: every variant is wrong on `cpu`"), "{rows:?}");
}

#[test]
fn a_damaged_report_is_a_page() {
    let mut report = synthetic(30);
    for kernel in &mut report.packages[0].kernels {
        let target = &mut kernel.targets[0];
        if let Some(search) = &mut target.search {
            search.visits.iter_mut().for_each(|visit| visit.ns = visit.ns.map(|_| 0.0));
        }
        target.times.iter_mut().for_each(|time| time.cold_ns = Some(0.0));
        // Each is its own parent, and that of all others.
        for (round, of) in target.rounds.iter_mut().flat_map(|rounds| &mut rounds.candidates).enumerate() {
            (of.round, of.variant, of.parent) = (round as u32, Some("x".into()), (round > 0).then(|| "x".into()));
        }
    }
    assert!(Page::read(&page(&report)).ids.iter().any(|id| id == "details"));
}

#[test]
fn times_of_few_samples_are_no_best_ones() {
    let mut report = synthetic(1);
    let target = &mut report.packages[0].kernels[0].targets[0];
    for time in target.times.iter_mut().filter(|time| time.variant == "BLOCK=512,VEC=1") {
        (time.cold_ns, time.few) = (Some(1.0), true);
    }
    let read = Page::read(&page(&report));
    let variants = read.tables.iter().find(|table| table.label == "variants").unwrap();
    let row = |what: &str| variants.rows.iter().find(|row| row.last().unwrap().text == what).unwrap();
    assert_eq!(row("champion")[3].text, "1.000");
    assert!(row("few samples")[3].text.starts_with("0.0"), "{:?}", row("few samples"));
    assert!(read.text.contains("~0.0"), "the heat map marks it");
}

#[test]
fn a_shape_that_was_asked_for_is_the_only_one_on_the_page() {
    let mut report = synthetic(4);
    for kernel in &mut report.packages[0].kernels {
        kernel.targets[0].narrow(&|shape| shape == "llama");
    }
    let read = Page::read(&page(&report));
    for table in read.tables.iter().filter(|table| table.label != "observations") {
        let named = table.rows.iter().flatten().filter(|cell| cell.text == "large" || cell.text.ends_with("at large"));
        assert_eq!(named.count(), 0, "{}", table.label);
    }
    let roofline = read.tables.iter().find(|table| table.label == "what champions reach").unwrap();
    assert_eq!(roofline.rows.len(), 4);
}

#[test]
fn one_document_gives_one_page() {
    let report = synthetic(30);
    let json = serde_json::to_string(&report).unwrap();
    let again: super::Report = serde_json::from_str(&json).unwrap();
    assert_eq!(page(&report), page(&again), "a document that was stored and read back gives the same bytes");
}

#[test]
fn nothing_on_a_page_is_requested_from_elsewhere() {
    let text = page(&synthetic(13));
    for request in
        ["http://", "https://", "src=", "url(", "@import", "<link", "<iframe", "<img", "fetch(", "XMLHttpRequest"]
    {
        assert!(!text.contains(request), "{request}");
    }
    assert!(text.contains("default-src &#39;none&#39;"), "the policy forbids requests");
}

#[test]
fn failures_come_first_and_verdicts_differ_without_colour() {
    let report = synthetic(30);
    let read = Page::read(&page(&report));
    let ladder = read.tables.iter().find(|table| table.label == "kernels on targets").unwrap();
    let signs: Vec<char> = ladder.rows.iter().map(|row| row[0].text.trim().chars().next().unwrap()).collect();
    let mut order: Vec<char> = signs.clone();
    order.dedup();
    assert_eq!(order, ['✕', '?', '◐', '●'], "{signs:?}");
    let words: Vec<&str> = ["failed", "unknown", "passes, emulated", "passes on the device"].into();
    for (sign, word) in order.iter().zip(words) {
        let row = ladder.rows.iter().find(|row| row[0].text.trim().starts_with(*sign)).unwrap();
        assert!(row[2].text.contains(&format!("{sign} {word}")), "{}", row[2].text);
    }
}

#[test]
fn labels_of_variants_may_break_after_each_tunable_wherever_they_stand() {
    let text = page(&synthetic(13));
    let broken = CHAMPION.replace(',', ",<wbr>");
    assert!(
        text.contains(&format!("<code>{broken}</code>")) && text.contains(&format!("champion {broken}")),
        "{broken}"
    );
    assert!(text.contains(&format!("</b> {broken} at tails")), "beside what fails");
}

#[test]
fn a_time_of_an_earlier_version_is_said_to_be_one() {
    let mut report = synthetic(1);
    let target = &mut report.packages[0].kernels[0].targets[0];
    let earlier = EarlierReport { shape: "llama".into(), variant: "BLOCK=64".into(), ns: 7_870.4, at: None };
    (target.times, target.rooflines, target.earlier) = (vec![], vec![], Some(earlier));
    let read = Page::read(&page(&report));
    let ladder = read.tables.iter().find(|table| table.label == "kernels on targets").unwrap();
    let time = &ladder.rows[0][3];
    assert_eq!((time.text.as_str(), time.value.as_deref()), ("7.87 us", Some("7870.40")));
    assert_eq!(time.small, ["at llama of an earlier version"]);
}

#[test]
#[ignore = "second tier: prints the page that `.ci/pages` opens in browsers"]
#[expect(clippy::print_stdout, reason = "the script reads it there")]
fn a_page_of_a_hundred_kernels_for_browsers() {
    println!("{}", page(&synthetic(100)));
}

#[test]
fn a_page_of_a_part_of_a_report_says_of_which() {
    let mut report = synthetic(1);
    let says = |report: &super::Report| Page::read(&page(report)).text.contains("Narrowed");
    assert!(!says(&report));
    let names = |all: &[&str]| all.iter().map(|name| name.to_string()).collect::<Vec<_>>();
    let (kernels, targets) = (names(&["a", "b", "<c>"]), names(&["h200"]));
    report.narrowed = Some(SelectedReport { kernels, targets, ..SelectedReport::default() });
    let text = Page::read(&page(&report)).text;
    let line = "Narrowed to kernels `a`, `b` and `<c>`, target `h200`. `kforge report --html` writes the whole page.";
    assert!(text.contains(line), "{text}");
}

#[test]
fn a_kernel_whose_opcodes_nobody_counted_says_who_counts_them() {
    let mut report = synthetic(1);
    let says = "Builds count opcodes of kernels with methods; `kforge diff` counts them for any kernel.";
    assert!(!Page::read(&page(&report)).text.contains(says));
    let machine = &mut report.packages[0].kernels[0].targets[0].machine;
    machine.iter_mut().flat_map(|of| &mut of.functions).for_each(|function| function.opcodes.clear());
    assert!(Page::read(&page(&report)).text.contains(says));
}

#[test]
fn the_page_says_what_signs_and_brackets_of_pairs_mean_once_and_what_is_counted() {
    let report = synthetic(1);
    let text = Page::read(&page(&report)).text;
    assert_eq!(
        text.matches("+ means that the kernel without the method is slower than the champion").count(),
        1,
        "{text}"
    );
    assert!(text.contains("Kernels on targets: "), "{text}");
}

#[test]
fn what_bounds_a_kernel_stands_on_the_page_as_in_the_terminal_with_what_it_means() {
    let report = synthetic(1);
    let bound = report.packages[0].kernels[0].targets[0].rooflines[0].roofline.summary();
    assert!(bound.starts_with("bound by memory: used compute 5 %, memory 80 %; 40 % of warps wait"), "{bound}");
    let text = Page::read(&page(&report)).text;
    assert!(text.contains(&bound) && text.contains("By timing: of what the operator requires"), "{text}");
    assert!(text.contains("registers32") && !text.contains("32.00"), "a count has no decimals: {text}");
}

#[test]
fn the_roofline_says_of_each_shape_whether_it_fills_the_device_or_that_this_is_unknown() {
    let mut report = synthetic(1);
    let found = &mut report.packages[0].kernels[0].targets[0].rooflines[0];
    found.roofline.metrics.insert("waves".into(), 0.4);
    found.achieved.values_mut().for_each(|reached| reached.time_ns = 1e6);
    let told = |report: &super::Report| {
        let read = Page::read(&page(report));
        let table = read.tables.iter().find(|table| table.label == "what champions reach").unwrap();
        let mut cells: Vec<String> = table.rows.iter().map(|row| row.last().unwrap().text.clone()).collect();
        cells.sort();
        cells
    };
    assert_eq!(told(&report), ["no: 0.40 waves of blocks", "unknown without a profile"]);
    let found = &mut report.packages[0].kernels[0].targets[0].rooflines[0];
    found.achieved.get_mut("llama").unwrap().waves = Some(3.0);
    assert_eq!(told(&report), ["no: 0.40 waves of blocks", "yes: 3.00 waves of blocks"]);
}

#[test]
fn every_link_leads_to_a_place_on_the_page() {
    let read = Page::read(&page(&synthetic(30)));
    assert!(read.links.len() > 30);
    for link in &read.links {
        let id = link.strip_prefix('#').unwrap_or_else(|| panic!("{link}"));
        assert_eq!(read.ids.iter().filter(|known| *known == id).count(), 1, "{link}");
    }
}

#[test]
fn a_report_of_nothing_is_a_page() {
    let read = Page::read(&page(&super::Report::default()));
    assert!(read.ids.iter().any(|id| id == "ladder"));
}
