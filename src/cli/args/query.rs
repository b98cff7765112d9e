//! Arguments of commands that show a build: `report`, `explain`, `diff`, `metadata`, `tree`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clap_complete::{ArgValueCandidates, ArgValueCompleter};

use super::{MessageFormat, Select};
use crate::cli::complete;
use kforge_pipeline::report::exports::ExportFormat;

/// `kforge report`.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// Output format: for people, or for the tool of that name
    #[arg(long, value_name = "FORMAT", visible_alias = "message-format", default_value = "text")]
    pub format: ReportFormat,
    /// Show scores against a baseline: `speedup` (ratio of times), `logistic` (0.5 at parity), `weighted` (correct, faster, own code), or `kernelbench`
    #[arg(long, value_name = "FORM")]
    pub score: Option<ScoreForm>,
    /// Baseline: a kernel of the same operator, a variant, a `[baseline.NAME]` of the manifest, or `declared` for the variant declared first [default: declared;
    /// with `--score kernelbench`, eager]
    #[arg(hide_short_help = true, long, value_name = "NAME", requires = "score")]
    pub baseline: Option<String>,
    /// Report the share of correct kernels that are more than P times as fast as the baseline [default: 1; with `--score kernelbench`, 0,0.5,0.8,1,1.5,2]
    #[arg(hide_short_help = true, long, value_name = "P", value_delimiter = ',', requires = "score")]
    pub fast_p: Option<Vec<f64>>,
    /// Write the report as one HTML page, by default to target/kforge/report.html (report.narrowed.html for a part of it); `-` prints it
    #[arg(long, value_name = "PATH", num_args = 0..=1, conflicts_with_all = ["format", "score"])]
    pub html: Option<Option<PathBuf>>,
    /// With `--html`, show champions over the evidence bundles that git holds, by default in target/kforge/history.html
    #[arg(hide_short_help = true, long, requires = "html")]
    pub history: bool,
    /// Open the page in a browser: that of $BROWSER, or the desktop's
    #[arg(hide_short_help = true, long, requires = "html")]
    pub open: bool,
    /// The selection.
    #[command(flatten)]
    pub select: Select,
}

/// Forms of scores, as in `measure::score`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the values of the option")]
pub enum ScoreForm {
    Speedup,
    Logistic,
    Weighted,
    Kernelbench,
}

/// Forms of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the values of the option")]
pub enum ReportFormat {
    // What other commands call it.
    #[value(alias = "human")]
    Text,
    Markdown,
    Json,
    Junit,
    Sarif,
    Summary,
    Annotations,
    CodeQuality,
    Bmf,
    GithubBenchmark,
    PytorchBenchmark,
    Lnt,
}

impl ReportFormat {
    /// The format of another tool; none for the formats of kforge.
    pub fn exported(self) -> Option<ExportFormat> {
        match self {
            ReportFormat::Text | ReportFormat::Markdown | ReportFormat::Json => None,
            ReportFormat::Junit => Some(ExportFormat::Junit),
            ReportFormat::Sarif => Some(ExportFormat::Sarif),
            ReportFormat::Summary => Some(ExportFormat::Summary),
            ReportFormat::Annotations => Some(ExportFormat::Annotations),
            ReportFormat::CodeQuality => Some(ExportFormat::CodeQuality),
            ReportFormat::Bmf => Some(ExportFormat::Bmf),
            ReportFormat::GithubBenchmark => Some(ExportFormat::GithubBenchmark),
            ReportFormat::PytorchBenchmark => Some(ExportFormat::PytorchBenchmark),
            ReportFormat::Lnt => Some(ExportFormat::Lnt),
        }
    }
}

/// `kforge explain`.
#[derive(Debug, Clone, Args)]
pub struct ExplainArgs {
    /// Id of a step, as `kforge tree` and `build -v` print it, a unique part of an id, a kernel, or a method
    #[arg(add = ArgValueCompleter::new(complete::what_to_explain))]
    pub step: String,
    /// The selection.
    #[command(flatten)]
    pub select: Select,
    /// Print the explanation as JSON
    #[arg(long)]
    pub json: bool,
    /// Print every field of the step's key
    #[arg(long)]
    pub fields: bool,
}

/// `kforge diff`.
#[derive(Debug, Clone, Args)]
pub struct DiffArgs {
    /// Kernel
    #[arg(add = ArgValueCandidates::new(complete::kernels))]
    pub kernel: String,
    /// First variant, such as BLOCK=256,VEC=4; if only one is named, the champion is compared with it [default: the champion]
    #[arg(value_name = "A", add = ArgValueCandidates::new(complete::variants))]
    pub a: Option<String>,
    /// Second variant [default: the variant declared first; with --base, the first variant]
    #[arg(value_name = "B", add = ArgValueCandidates::new(complete::variants))]
    pub b: Option<String>,
    /// Compare the kernel at this git revision with the working tree
    #[arg(long, value_name = "REV", add = ArgValueCandidates::new(complete::revisions))]
    pub base: Option<String>,
    /// Package, if several have a kernel of this name
    #[arg(short, long, value_name = "NAME", help_heading = "Selection", add = ArgValueCandidates::new(complete::packages))]
    pub package: Vec<String>,
    /// Targets [default: those on devices, or `cpu` if there is no other]
    #[arg(long, value_name = "NAME", help_heading = "Selection", add = ArgValueCandidates::new(complete::targets))]
    pub target: Vec<String>,
    /// Shapes whose times are shown [default: all]
    #[arg(long, value_name = "NAME", help_heading = "Selection", add = ArgValueCandidates::new(complete::shapes))]
    pub shape: Vec<String>,
    /// Output format
    #[arg(hide_short_help = true, long, value_name = "FORMAT", visible_alias = "format", default_value = "human")]
    pub message_format: MessageFormat,
}

/// `kforge metadata`.
#[derive(Debug, Clone, Args)]
pub struct MetadataArgs {
    /// Version of the output format: 1 or 2
    #[arg(long, value_name = "N", default_value_t = kforge_types::record::FORMAT_VERSION)]
    pub format_version: u32,
}

/// `kforge tree`.
#[derive(Debug, Clone, Args)]
pub struct TreeArgs {
    /// The selection.
    #[command(flatten)]
    pub select: Select,
    /// Show the dependents of each step instead of its dependencies
    #[arg(long)]
    pub invert: bool,
    /// Limit the depth of the tree
    #[arg(long, value_name = "N")]
    pub depth: Option<usize>,
    /// Start from the steps of a kind, such as `compile` or `verify`
    #[arg(long, value_name = "KIND")]
    pub stage: Option<String>,
}
