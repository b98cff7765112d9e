//! Tests of the page: what it says is what the document says, whoever wrote the names in it.

mod hostile;
mod numbers;
pub(crate) mod read;
pub(super) mod synthetic;

use super::page;
use crate::report::earlier::EarlierReport;
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
    assert_eq!((time.text.as_str(), time.value.as_deref()), ("7.870 us", Some("7870.40")));
    assert_eq!(time.small, ["at llama of an earlier version"]);
}

#[test]
#[ignore = "second tier: prints the page that `.ci/pages` opens in browsers"]
#[expect(clippy::print_stdout, reason = "the script reads it there")]
fn a_page_of_a_hundred_kernels_for_browsers() {
    println!("{}", page(&synthetic(100)));
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
