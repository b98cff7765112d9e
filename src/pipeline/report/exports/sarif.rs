//! A log in SARIF 2.1.0, with one run: rules by code, results with places. Knows that format.
//!
//! | what | why |
//! |---|---|
//! | paths relative to `%SRCROOT%`, which is not defined | the log says nothing of the machine; code hosts take the root of the repository |
//! | rules are the codes of messages, with the description of their sort | a code is stable, so alerts stay the same |
//! | columns count characters | as the diagnostics do |
//! | a message without a line is at its manifest, without a region | code hosts show no result without a file |
//! | fingerprints leave out lines | an edit above a result does not make it a new one |

use std::collections::BTreeMap;

use serde::Serialize;

use super::message::{Message, Place, Region, fingerprints, messages};
use super::{ExportError, json};
use crate::report::Report;
use kforge_foundation::base::{Diagnostic, Severity};

/// The schema of the format.
pub(super) const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The name of this program's fingerprints, with the version of what they are made of.
const FINGERPRINT: &str = "kforge/v1";

#[derive(Debug, Serialize)]
struct Log {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    tool: Tool,
    column_kind: &'static str,
    results: Vec<ResultObject>,
}

#[derive(Debug, Serialize)]
struct Tool {
    driver: Driver,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Driver {
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    rules: Vec<Rule>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    id: String,
    short_description: Text,
}

#[derive(Debug, Serialize)]
struct Text {
    text: String,
}

/// A result; `Result` has another meaning in Rust.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ResultObject {
    rule_id: String,
    rule_index: usize,
    level: &'static str,
    message: Text,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    locations: Vec<Location>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related_locations: Vec<Location>,
    partial_fingerprints: BTreeMap<&'static str, String>,
    occurrence_count: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    properties: BTreeMap<&'static str, String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<usize>,
    physical_location: PhysicalLocation,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Text>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: ArtifactLocation,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<RegionObject>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ArtifactLocation {
    uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri_base_id: Option<&'static str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RegionObject {
    start_line: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_column: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_column: Option<u64>,
}

/// All messages as results.
pub(super) fn sarif(report: &Report, diagnostics: &[Diagnostic]) -> Result<String, ExportError> {
    let all = messages(report, diagnostics);
    let mut codes: Vec<&str> = all.iter().map(|message| message.code.as_str()).collect();
    codes.sort_unstable();
    codes.dedup();
    let result = |(message, fingerprint): (&Message, String)| {
        let index = codes.binary_search(&message.code.as_str()).unwrap_or_default();
        result(message, index, fingerprint)
    };
    let results = all.iter().zip(fingerprints(&all)).map(result).collect();
    let rules =
        codes.iter().map(|code| Rule { id: code.to_string(), short_description: text(described(code)) }).collect();
    let version = report.built.as_ref().map(|built| built.kforge.clone());
    let driver = Driver { name: "kforge", version, rules };
    let run = Run { tool: Tool { driver }, column_kind: "unicodeCodePoints", results };
    json(&Log { schema: SCHEMA, version: "2.1.0", runs: [run] })
}

fn result(message: &Message, rule_index: usize, fingerprint: String) -> ResultObject {
    let related = message.others.iter().enumerate().map(|(i, (place, said))| Location {
        id: Some(i + 1),
        message: (!said.is_empty()).then(|| text(said.as_str())),
        ..location(place)
    });
    ResultObject {
        rule_id: message.code.clone(),
        rule_index,
        level: match message.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        },
        message: text(message.text.as_str()),
        locations: message.place.iter().map(location).collect(),
        related_locations: related.collect(),
        partial_fingerprints: [(FINGERPRINT, fingerprint)].into(),
        occurrence_count: message.steps.max(1),
        properties: message.about.iter().cloned().collect(),
    }
}

fn text(text: impl Into<String>) -> Text {
    Text { text: text.into() }
}

fn location(place: &Place) -> Location {
    let absolute = place.path.starts_with('/');
    let artifact_location = ArtifactLocation {
        uri: if absolute { format!("file://{}", uri(&place.path)) } else { uri(&place.path) },
        uri_base_id: (!absolute).then_some("%SRCROOT%"),
    };
    let region = place.region.map(|Region { line, column, end }| RegionObject {
        start_line: line,
        start_column: column,
        end_line: end.map(|(line, _)| line),
        end_column: end.map(|(_, column)| column),
    });
    Location { id: None, physical_location: PhysicalLocation { artifact_location, region }, message: None }
}

/// A path as a URI: all but slashes and unreserved characters are escaped.
fn uri(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    path.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// The description of a rule: that of its code, else that of its sort.
fn described(code: &str) -> &'static str {
    match code {
        "calibrate.constant" => "All results of a shape are one value",
        "calibrate.indecisive" => "The tolerance accepts answers that need no work",
        "compile.error" | "compile.refused" => "The compiler refuses the source",
        "compile.warning" => "The compiler warns",
        "inspect.arguments" => "A launch does not fit the kernel's parameters",
        "verify.absent-lane" => "A shuffle reads a lane that takes no part in it",
        "verify.assertion" => "An assertion failed in the kernel",
        "verify.canary" => "The bytes around a buffer were changed",
        "verify.crash" => "The kernel was killed by a signal",
        "verify.divergent-barrier" => "Not all threads of a block reach the same barrier",
        "verify.exited" => "The kernel ended its process",
        "verify.exited-before-barrier" => "Threads leave the kernel before a barrier",
        "verify.forbidden" => "The kernel tried something forbidden",
        "verify.input-modified" => "The kernel changed an input",
        "verify.keeps-state" => "The kernel keeps state between launches",
        "verify.launch-refused" => "The launch was refused",
        "verify.limit-exceeded" => "The kernel exceeded the limits of memory or processes",
        "verify.misaligned" => "An access is misaligned",
        "verify.no-progress" => "Threads wait for each other forever",
        "verify.not-emulated" => "The emulator does not support a construct",
        "verify.order-dependent" => "Results depend on the order of threads",
        "verify.out-of-bounds" => "An access is outside its buffer",
        "verify.protocol" => "The kernel broke the protocol with its runner",
        "verify.race" => "Threads race",
        "verify.raised" => "The kernel raised an exception",
        "verify.stale-read" => "A read through the read-only cache of memory that the same launch wrote",
        "verify.trap" => "The kernel stopped itself",
        "verify.uninitialised" => "A read of memory that nothing wrote",
        "verify.unwritten" => "An output was not written, or only partly",
        "verify.values" => "The kernel's output is wrong",
        "verify.warp-mask" => "The mask of a warp operation is wrong",
        "verify.workspace-dirty" => "A workspace was not zero again",
        _ => match code.split('.').next().unwrap_or_default() {
            "manifest" => "A mistake in a manifest",
            "workspace" | "package" => "A mistake in the layout of a workspace",
            "compile" => "A source could not be compiled",
            "verify" => "A kernel could not be verified, or is wrong",
            "calibrate" => "A remark about an operator's tolerance",
            _ => "A step of the build failed, or its input is wrong",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_escaped_and_absolute_ones_have_no_base() {
        assert_eq!(uri("a b/ü#1.cu"), "a%20b/%C3%BC%231.cu");
        let of = |path: &str| {
            let at = location(&Place { path: path.into(), region: None }).physical_location.artifact_location;
            (at.uri, at.uri_base_id)
        };
        assert_eq!(of("p/k.cu"), ("p/k.cu".into(), Some("%SRCROOT%")));
        assert_eq!(of("/o v.toml"), ("file:///o%20v.toml".into(), None));
    }
}
