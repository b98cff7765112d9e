//! Workflow commands of GitHub Actions, one a line, which annotate lines of a change: `::error file=k.cu,line=3::TEXT`. Knows that format.

use std::fmt::Write;

use super::message::{Message, messages};
use crate::report::Report;
use kforge_foundation::base::{Diagnostic, Severity};

/// All messages, errors first: GitHub shows only the first ones of each severity.
pub(super) fn annotations(report: &Report, diagnostics: &[Diagnostic]) -> String {
    messages(report, diagnostics).iter().map(line).collect()
}

fn line(message: &Message) -> String {
    let command = match message.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "notice",
    };
    let mut properties: Vec<(&str, String)> = vec![];
    if let Some(place) = &message.place {
        properties.push(("file", place.path.clone()));
        if let Some(region) = place.region {
            properties.push(("line", region.line.to_string()));
            properties.extend(region.end.map(|(line, _)| ("endLine", line.to_string())));
            properties.extend(region.column.map(|column| ("col", column.to_string())));
            // GitHub takes the last column only where it is on the first line.
            let end = region.end.filter(|(line, _)| *line == region.line);
            properties.extend(end.map(|(_, column)| ("endColumn", column.to_string())));
        }
    }
    let subject = message.subject();
    let title = if subject.is_empty() { message.code.clone() } else { format!("{subject}: {}", message.code) };
    properties.push(("title", title));
    let properties: Vec<String> =
        properties.into_iter().map(|(name, value)| format!("{name}={}", property(&value))).collect();
    let mut out = String::new();
    let _ = writeln!(out, "::{command} {}::{}", properties.join(","), data(&message.whole_text()));
    out
}

/// A text after `::`, on one line.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A value of a property, which a comma or colon would end.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
