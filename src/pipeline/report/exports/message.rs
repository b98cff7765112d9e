//! What is wrong, with its place in the repository: diagnostics of manifests, and what steps reported. The value from which SARIF, annotations and Code Quality
//! are written. Knows the report and diagnostics; does not know those formats.

use std::collections::HashMap;

use crate::report::Report;
use crate::report::document::PackageReport;
use crate::report::messages::MessageReport;
use kforge_foundation::base::diag::Label;
use kforge_foundation::base::{Diagnostic, Digest, Severity};
use kforge_types::record::SourcePlace;

/// The name of manifests.
const MANIFEST: &str = "kernel.toml";

/// A message with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its stable code, such as `verify.race`.
    pub code: String,
    /// Its severity.
    pub severity: Severity,
    /// The text. The first line says what is wrong.
    pub text: String,
    /// The place that it is about. Without a line it is the manifest of the package. None if it is about no file.
    pub place: Option<Place>,
    /// Other places, with a text about each.
    pub others: Vec<(Place, String)>,
    /// What it is about: package, kernel, operator, target, variant and shape, as far as it is about one, in this order, each with the name of its sort.
    pub about: Vec<(&'static str, String)>,
    /// How many steps reported it.
    pub steps: u64,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, relative to the root of the repository, with slashes. Absolute if it lies elsewhere.
    pub path: String,
    /// The region; none for the file as a whole.
    pub region: Option<Region>,
}

/// A region of a file. Lines and columns count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// The first line.
    pub line: u64,
    /// The column of its first character; none if unknown.
    pub column: Option<u64>,
    /// The last line, and the column after the last character; none if unknown.
    pub end: Option<(u64, u64)>,
}

impl Message {
    /// The name of what it is about, of one sort.
    fn part(&self, sort: &str) -> Option<&str> {
        self.about.iter().find(|(known, _)| *known == sort).map(|(_, name)| name.as_str())
    }

    /// What it is about in words: `k on cpu`, or the operator or package; empty if it is about neither.
    pub fn subject(&self) -> String {
        let part = |sort: &str| self.part(sort);
        match (part("kernel"), part("target"), part("operator").or(part("package"))) {
            (Some(kernel), Some(target), _) => format!("{kernel} on {target}"),
            (Some(kernel), None, _) => kernel.to_string(),
            (None, _, other) => other.unwrap_or_default().to_string(),
        }
    }

    /// The text, the variant and the shape of the step that reported it, and how many more steps reported the same.
    pub fn whole_text(&self) -> String {
        let at = match (self.part("variant"), self.part("shape")) {
            (Some(variant), Some(shape)) => format!("{variant} at shape {shape}"),
            (Some(one), None) | (None, Some(one)) => one.to_string(),
            (None, None) => String::new(),
        };
        let more = match self.steps.saturating_sub(1) {
            0 => String::new(),
            more => format!("{} more reported the same", kforge_foundation::base::count(more, "step")),
        };
        match (at.is_empty(), more.is_empty()) {
            (true, true) => self.text.clone(),
            (false, true) => format!("{}\n(in {at})", self.text),
            (true, false) => format!("{}\n({more})", self.text),
            (false, false) => format!("{}\n(in {at}; {more})", self.text),
        }
    }
}

/// All messages: errors first, each severity in the order of the diagnostics and of the report.
pub fn messages(report: &Report, diagnostics: &[Diagnostic]) -> Vec<Message> {
    let root = report.built.as_ref().and_then(|built| built.folder.as_deref()).unwrap_or_default();
    let mut all: Vec<Message> = diagnostics.iter().map(|diagnostic| of_diagnostic(root, diagnostic)).collect();
    for package in &report.packages {
        all.extend(package.messages.iter().map(|message| of_report(root, package, message)));
    }
    all.sort_by_key(|message| std::cmp::Reverse(message.severity));
    all
}

/// Fingerprints of messages: of what each is about and its file, not of its line, so that an edit above it changes nothing. Messages that have this in common
/// are counted.
pub fn fingerprints(messages: &[Message]) -> Vec<String> {
    let mut known: HashMap<String, u64> = HashMap::new();
    let of = |message: &Message| {
        let path = message.place.as_ref().map(|place| place.path.as_str()).unwrap_or_default();
        // The variant and the shape are those of the first step that reported it, which another selection may change.
        let about = message.about.iter().filter(|(sort, _)| !matches!(*sort, "variant" | "shape"));
        let about: Vec<String> = about.map(|(sort, name)| format!("{sort}={name}")).collect();
        format!("{}\n{path}\n{}", message.code, about.join("\n"))
    };
    let numbered = |message: &Message| {
        let text = of(message);
        let number = known.entry(text.clone()).or_default();
        *number += 1;
        Digest::of(format!("{text}\n{number}").as_bytes()).hex()[..32].to_string()
    };
    messages.iter().map(numbered).collect()
}

/// A path below a folder.
fn below(folder: &str, path: &str) -> String {
    match (folder, path) {
        ("", path) | (path, "") => path.to_string(),
        (_, path) if path.starts_with('/') => path.to_string(),
        (folder, path) => format!("{folder}/{path}"),
    }
}

fn of_report(root: &str, package: &PackageReport, message: &MessageReport) -> Message {
    let MessageReport {
        code,
        severity,
        message: text,
        place,
        other_place,
        kernel,
        operator,
        target,
        variant,
        shape,
        steps,
    } = message.clone();
    // An earlier kforge did not say where the package is.
    let folder = package.folder.as_ref().map(|folder| below(root, folder));
    let at = |place: SourcePlace| {
        let region = Region { line: place.line.max(1).into(), column: place.column.map(u64::from), end: None };
        Some(Place { path: below(folder.as_ref()?, &place.file), region: Some(region) })
    };
    let manifest = || Some(Place { path: below(folder.as_ref()?, MANIFEST), region: None });
    let name = |sort: &'static str, name: Option<String>| name.filter(|name| !name.is_empty()).map(|name| (sort, name));
    Message {
        code,
        severity,
        text,
        place: place.and_then(at).or_else(manifest),
        others: other_place
            .and_then(at)
            .map(|place| (place, "the other access or barrier".to_string()))
            .into_iter()
            .collect(),
        about: [
            name("package", Some(package.name.clone())),
            name("kernel", kernel),
            name("operator", operator),
            name("target", target),
            name("variant", variant),
            name("shape", shape),
        ]
        .into_iter()
        .flatten()
        .collect(),
        steps,
    }
}

fn of_diagnostic(root: &str, diagnostic: &Diagnostic) -> Message {
    let at = |label: &Label| Place { path: below(root, &label.file.name), region: Some(region(label)) };
    let first = diagnostic.labels.iter().position(|label| label.primary);
    let others = diagnostic.labels.iter().enumerate().filter(|(i, _)| Some(*i) != first);
    let mut text = diagnostic.message.clone();
    let expected = diagnostic.expected.iter().map(|expected| format!("\nexpected {expected}"));
    let notes = diagnostic.notes.iter().map(|note| format!("\nnote: {note}"));
    let hints = diagnostic.hints.iter().map(|hint| format!("\nhelp: {hint}"));
    text.extend(expected.chain(notes).chain(hints));
    Message {
        code: diagnostic.code.to_string(),
        severity: diagnostic.severity,
        text,
        place: first.map(|i| at(&diagnostic.labels[i])),
        others: others.map(|(_, label)| (at(label), label.text.clone())).collect(),
        about: vec![],
        steps: 1,
    }
}

/// The region of a label. Columns count characters.
fn region(label: &Label) -> Region {
    let text = label.file.text.as_str();
    let at = |byte: usize| {
        // A span may end within a character only by mistake, and then counts from its start.
        let byte = (0..=byte.min(text.len())).rev().find(|byte| text.is_char_boundary(*byte)).unwrap_or(0);
        let before = &text[..byte];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        (line as u64, column as u64)
    };
    let (line, column) = at(label.span.start);
    Region { line, column: Some(column), end: Some(at(label.span.end.max(label.span.start))) }
}
