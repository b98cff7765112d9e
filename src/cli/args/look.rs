//! The words of what looks at a build, past or to come: `report`, `explain`, `metadata`, `tree`.

use clap::{Args, ValueEnum};

use super::Select;

/// `kforge report`.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// The form of the report
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: ReportFormat,
    /// Show scores of kernels against a baseline instead: how many times as fast, the same from 0 to 1 with 0.5 at parity, or right, faster, and by code of its own
    #[arg(long, value_name = "FORM")]
    pub score: Option<ScoreForm>,
    /// What is compared with: a kernel of the same operator, a variant, or `declared`, the variant declared first
    #[arg(long, value_name = "NAME", default_value = "declared", requires = "score")]
    pub baseline: String,
    /// The shares of right kernels that are more than so many times as fast
    #[arg(long, value_name = "P", value_delimiter = ',', default_value = "1", requires = "score")]
    pub fast_p: Vec<f64>,
    /// What of the last build to show.
    #[command(flatten)]
    pub select: Select,
}

/// Scores, as `measure::score` has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the words of the option")]
pub enum ScoreForm {
    Speedup,
    Logistic,
    Weighted,
}

/// Forms of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the words of the option")]
pub enum ReportFormat {
    Text,
    Markdown,
    Json,
}

/// `kforge explain`.
#[derive(Debug, Clone, Args)]
pub struct ExplainArgs {
    /// The step's id, as `kforge tree` and `build -v` show it, or a part that it alone has; or a method of the registry
    pub step: String,
    /// Print the explanation as JSON
    #[arg(long)]
    pub json: bool,
    /// Print every field that is hashed into its key
    #[arg(long)]
    pub fields: bool,
}

/// `kforge metadata`.
#[derive(Debug, Clone, Args)]
pub struct MetadataArgs {
    /// The version of the format to print; this kforge knows 1
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub format_version: u32,
}

/// `kforge tree`.
#[derive(Debug, Clone, Args)]
pub struct TreeArgs {
    /// What to act on.
    #[command(flatten)]
    pub select: Select,
    /// Show what depends on each step rather than what it depends on
    #[arg(long)]
    pub invert: bool,
    /// Show only so many levels below the roots
    #[arg(long, value_name = "N")]
    pub depth: Option<usize>,
    /// Start from the steps of one kind, such as `compile` or `verify`
    #[arg(long, value_name = "KIND")]
    pub stage: Option<String>,
}
