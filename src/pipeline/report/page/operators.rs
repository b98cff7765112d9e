//! Operators whose reference or tolerance is wrong or decides nothing, and what calibration noted about operators. Knows the document.

use super::super::document::{OperatorReport, Report};
use super::html::Html;
use super::seat::Level;
use super::table::section;
use kforge_types::record::Verdict;

/// The section; nothing if no operator needs attention.
pub(super) fn operators(h: &mut Html, report: &Report) {
    let several = report.packages.len() > 1;
    let all = report.packages.iter().flat_map(|package| package.operators.iter().map(move |of| (&package.name, of)));
    let mut all: Vec<(&String, &OperatorReport)> = all.collect();
    if all.is_empty() {
        return;
    }
    all.sort_by_key(|(_, operator)| level(&operator.verdict));
    let about =
        "Operators whose reference or tolerance needs attention: a kernel is only as correct as its operator can tell.";
    section(h, "operators", "Operators", about, |h| {
        for (package, operator) in all {
            let level = level(&operator.verdict);
            h.open("p", &[("class", &format!("v {}", level.class()))], |h| {
                h.leaf("b", &[], level.sign());
                let name = if several { format!("{package}/{}", operator.name) } else { operator.name.clone() };
                h.text(format!(" {name}: {}", operator.verdict));
            });
            operator.notes.iter().for_each(|note| h.leaf("p", &[("class", &"s")], note));
        }
    });
}

fn level(verdict: &Verdict) -> Level {
    match verdict {
        Verdict::Fail(_) => Level::Failed,
        Verdict::Unknown(_) => Level::Unknown,
        Verdict::Pass => Level::Device,
    }
}
