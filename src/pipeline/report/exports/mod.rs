//! The results of a build in the formats of other tools: CI servers, code hosts and dashboards of benchmarks. Knows the report and diagnostics; does not know
//! where the texts go.
//!
//! Two values are derived from a report, and each format is written from one of them, so that no format reads the report in a way of its own.
//!
//! | value | what it is | formats |
//! |---|---|---|
//! | [`message::Message`] | what is wrong, with its place: diagnostics, compilers' messages, findings | SARIF, annotations, Code Quality |
//! | [`measurement::Measurement`] | a median time of a champion at a shape, on one class of devices | BMF, github-action-benchmark, PyTorch, LNT |
//!
//! JUnit and the job summary show verdicts, and read the report itself.
//!
//! Names and messages come from anywhere, and other tools show them to people. So every format names hidden characters as the terminal does
//! ([`kforge_foundation::base::hidden`]).

mod annotations;
mod bmf;
mod code_quality;
mod github_benchmark;
mod junit;
mod lnt;
pub mod measurement;
pub mod message;
mod pytorch_benchmark;
mod sarif;
mod summary;
#[cfg(test)]
mod tests;
mod visible;

use self::visible::json;
use super::Report;
use kforge_foundation::base::{Diagnostic, unhidden};

/// A format of another tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ExportFormat {
    /// JUnit's XML: test results of CI servers.
    Junit,
    /// SARIF 2.1.0: code scanning.
    Sarif,
    /// Markdown for the summary of a job: `$GITHUB_STEP_SUMMARY`.
    Summary,
    /// Workflow commands of GitHub Actions, one a line, which annotate lines of a change.
    Annotations,
    /// GitLab's Code Quality report.
    CodeQuality,
    /// Bencher Metric Format.
    Bmf,
    /// github-action-benchmark, `customSmallerIsBetter`.
    GithubBenchmark,
    /// PyTorch's benchmark database, schema v3.
    PytorchBenchmark,
    /// LLVM's LNT, report format 2, suite `nts`.
    Lnt,
}

impl ExportFormat {
    /// Every format.
    pub const ALL: [ExportFormat; 9] = [
        ExportFormat::Junit,
        ExportFormat::Sarif,
        ExportFormat::Summary,
        ExportFormat::Annotations,
        ExportFormat::CodeQuality,
        ExportFormat::Bmf,
        ExportFormat::GithubBenchmark,
        ExportFormat::PytorchBenchmark,
        ExportFormat::Lnt,
    ];

    /// The usual name of a file in this format.
    pub fn file_name(self) -> &'static str {
        match self {
            ExportFormat::Junit => "junit.xml",
            ExportFormat::Sarif => "results.sarif",
            ExportFormat::Summary => "summary.md",
            ExportFormat::Annotations => "annotations.txt",
            ExportFormat::CodeQuality => "code-quality.json",
            ExportFormat::Bmf => "bmf.json",
            ExportFormat::GithubBenchmark => "github-benchmark.json",
            ExportFormat::PytorchBenchmark => "pytorch-benchmark.json",
            ExportFormat::Lnt => "lnt.json",
        }
    }

    /// Whether the format shows diagnostics, so that it has something to say about a workspace that cannot be built.
    pub fn has_diagnostics(self) -> bool {
        match self {
            ExportFormat::Junit
            | ExportFormat::Sarif
            | ExportFormat::Summary
            | ExportFormat::Annotations
            | ExportFormat::CodeQuality => true,
            ExportFormat::Bmf | ExportFormat::GithubBenchmark | ExportFormat::PytorchBenchmark | ExportFormat::Lnt => {
                false
            }
        }
    }
}

/// Why results cannot be written in a format.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// As JUnit's XML.
    #[error("cannot write JUnit's XML: {0}")]
    Junit(#[from] quick_junit::SerializeError),
    /// As JSON.
    #[error("cannot write JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// The results of a build in a format. `diagnostics` are those of the workspace's manifests and settings; a report that is empty and diagnostics that are
/// errors show a workspace that cannot be built. The text ends with a newline, unless it is empty.
///
/// # Errors
/// The text cannot be written; see [`ExportError`].
pub fn export(report: &Report, diagnostics: &[Diagnostic], format: ExportFormat) -> Result<String, ExportError> {
    match format {
        ExportFormat::Junit => junit::junit(report, diagnostics),
        ExportFormat::Sarif => sarif::sarif(report, diagnostics),
        ExportFormat::Summary => Ok(summary::summary(report, diagnostics)),
        ExportFormat::Annotations => Ok(unhidden(&annotations::annotations(report, diagnostics))),
        ExportFormat::CodeQuality => code_quality::code_quality(report, diagnostics),
        ExportFormat::Bmf => bmf::bmf(report),
        ExportFormat::GithubBenchmark => github_benchmark::github_benchmark(report),
        ExportFormat::PytorchBenchmark => pytorch_benchmark::pytorch_benchmark(report),
        ExportFormat::Lnt => lnt::lnt(report),
    }
}

/// The results of a build as markdown, as the job summary has them below its heading, for a summary with a heading of its own. Begins with an empty line.
pub fn summary_results(report: &Report) -> String {
    summary::results(report, &[])
}
