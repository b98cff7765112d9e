//! GitLab's Code Quality report: a list of messages, each with a fingerprint and a line. Knows that format.

use serde::Serialize;

use super::message::{fingerprints, messages};
use super::{ExportError, json};
use crate::report::Report;
use kforge_foundation::base::{Diagnostic, Severity};

#[derive(Debug, Serialize)]
struct Violation {
    description: String,
    check_name: String,
    fingerprint: String,
    severity: &'static str,
    location: Location,
}

#[derive(Debug, Serialize)]
struct Location {
    path: String,
    lines: Lines,
}

#[derive(Debug, Serialize)]
struct Lines {
    begin: u64,
}

/// The messages that are about a file. The format requires a line; a message about a file as a whole has the first one.
pub(super) fn code_quality(report: &Report, diagnostics: &[Diagnostic]) -> Result<String, ExportError> {
    let all = messages(report, diagnostics);
    let violations = all.iter().zip(fingerprints(&all)).filter_map(|(message, fingerprint)| {
        let place = message.place.as_ref()?;
        let severity = match message.severity {
            Severity::Error => "critical",
            Severity::Warning => "minor",
            Severity::Note => "info",
        };
        Some(Violation {
            description: message.whole_text(),
            check_name: message.code.clone(),
            fingerprint,
            severity,
            location: Location {
                path: place.path.clone(),
                lines: Lines { begin: place.region.map_or(1, |region| region.line) },
            },
        })
    });
    json(&violations.collect::<Vec<Violation>>())
}
