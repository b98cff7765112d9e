//! Names and texts that would be markup, script or another direction of reading.

use super::super::page;
use super::read::Page;
use super::synthetic::synthetic;
use crate::report::Report;
use serde_json::Value;

const HOSTILE: [&str; 6] = [
    "<script>document.title='taken'</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onclick='alert(1)",
    "</style></script></svg><b>",
    "\u{202e}txt.exe\u{2066}",
    "javascript:alert(1)&lt;&#60;\u{0}\u{8}",
];

/// Words of the document's format, which are not names or texts of anybody.
const OURS: [&str; 8] = ["verdict", "fate", "became", "strategy", "over", "standing", "bound", "dtype"];
/// Maps whose keys are names.
const NAMED: [&str; 4] = ["achieved", "classes", "opcodes", "toolchains"];

/// Appends to every text of a document that a person, a compiler or an agent wrote.
fn poison(value: &mut Value, key: &str, with: &str) {
    match value {
        Value::String(text) if !OURS.contains(&key) && key != "shown" && !text.is_empty() => text.push_str(with),
        Value::Array(all) => all.iter_mut().for_each(|one| poison(one, key, with)),
        Value::Object(all) => {
            all.iter_mut().for_each(|(key, one)| poison(one, key, with));
            if NAMED.contains(&key) {
                *all = std::mem::take(all).into_iter().map(|(name, one)| (name + with, one)).collect();
            }
        }
        _ => {}
    }
}

/// The kernels of a synthetic report with these endings. Left out are those with a third tunable: of a label, only the last tunable would take the text.
fn kernels(ending: &[&str]) -> Report {
    let mut report = synthetic(13);
    report.packages[0].kernels.retain(|kernel| ending.iter().any(|end| kernel.name.ends_with(end)));
    report
}

/// Compares a page with poisoned texts with the page without them.
fn holds(plain: &Report, hostile: &str) {
    let clean = Page::read(&page(plain));
    let mut value = serde_json::to_value(plain).unwrap();
    poison(&mut value, "", hostile);
    let report: Report = serde_json::from_value(value).unwrap_or_else(|e| panic!("{hostile:?}: {e}"));
    let text = page(&report);
    let read = Page::read(&text);
    for (found, expected) in [(&read.elements, &clean.elements), (&read.attributes, &clean.attributes)] {
        let differ = found.iter().zip(expected).position(|(a, b)| a != b);
        let near = differ.map(|at| (&found[at.saturating_sub(8)..=at], &expected[at.saturating_sub(8)..=at]));
        assert_eq!(near, None, "{hostile:?} adds or removes elements or attributes");
        assert_eq!(found.len(), expected.len(), "{hostile:?}");
    }
    assert!(read.links.iter().all(|link| link.starts_with('#')), "{hostile:?}");
    let shown: String = hostile
        .chars()
        .map(|c| match c {
            '\u{202e}' | '\u{2066}' => format!("\\u{{{:x}}}", u32::from(c)),
            '\u{0}' | '\u{8}' => "\u{fffd}".into(),
            c => c.into(),
        })
        .collect();
    assert!(read.text.contains(&shown), "{hostile:?} is shown as it is");
    assert!(!text.contains(['\u{202e}', '\u{2066}', '\u{0}']), "{hostile:?}");
}

#[test]
fn hostile_texts_show_as_text_and_make_no_element_and_no_attribute() {
    let plain = kernels(&["0", "1", "3", "4", "5", "6", "7", "8", "9"]);
    for hostile in HOSTILE {
        holds(&plain, hostile);
    }
}

#[test]
fn texts_of_three_hundred_characters_show_whole() {
    for ending in ["05", "07"] {
        holds(&kernels(&[ending]), &"x".repeat(300));
    }
}
