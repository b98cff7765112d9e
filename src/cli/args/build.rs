//! The words of `build` and its kin: `check`, `verify`, `bench`, `ablate`, `run`, `compare`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{MessageFormat, Select};

/// How a build is done.
#[derive(Debug, Clone, Default, Args)]
pub struct BuildArgs {
    /// What to act on.
    #[command(flatten)]
    pub select: Select,
    /// Steps to run at once; a negative number is cores less that many
    #[arg(short, long, value_name = "N", allow_hyphen_values = true)]
    pub jobs: Option<i64>,
    /// After a failure, finish what does not depend on it
    #[arg(long)]
    pub keep_going: bool,
    /// List the steps that will run and those that may, and run nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// `json` writes one event a line to standard output
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub message_format: MessageFormat,
    /// Write an HTML page under target/kforge/timings that shows where the time went
    #[arg(long)]
    pub timings: bool,
    /// Measure on a device again although it was measured before
    #[arg(long)]
    pub remeasure: bool,
    /// Fail, with exit code 103, where a device's evidence is missing
    #[arg(long)]
    pub require_evidence: bool,
    /// Add the operators and shapes of a manifest that is not in the repository
    #[arg(long, value_name = "PATH")]
    pub overlay: Option<PathBuf>,
}

/// `kforge run`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// The kernel; or the id of a step (PACKAGE/KERNEL/...), to run just that
    #[arg(value_name = "KERNEL|STEP")]
    pub what: String,
    /// The shape (may be left out where the operator has one only)
    #[arg(long, value_name = "NAME")]
    pub shape: Option<String>,
    /// The variant: BLOCK=256,VEC=4 (the first in declared order if left out)
    #[arg(long, value_name = "NAME=VALUE,...")]
    pub variant: Option<String>,
    /// The package, where several have such a kernel
    #[arg(short, long, value_name = "NAME")]
    pub package: Option<String>,
    /// Add shapes and operators from a private manifest
    #[arg(long, value_name = "PATH")]
    pub overlay: Option<PathBuf>,
}

/// `kforge compare`.
#[derive(Debug, Clone, Args)]
pub struct CompareArgs {
    /// What to compare with: a git revision, a bundle of evidence (FILE.kfe), or the digest of a stored binary
    pub base: String,
    /// What to compare: a git revision [default: the working tree]
    pub head: Option<String>,
    /// What to act on.
    #[command(flatten)]
    pub select: Select,
    /// Per cent of time within which both count as the same
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = percent)]
    pub margin: f64,
    /// Fail where evidence is missing or does not decide
    #[arg(long)]
    pub require_evidence: bool,
    /// Measure again although there are records
    #[arg(long)]
    pub remeasure: bool,
    /// Steps to run at once (negative: cores less that many)
    #[arg(short, long, value_name = "N", allow_hyphen_values = true)]
    pub jobs: Option<i64>,
    /// How the result is said
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub message_format: CompareFormat,
}

/// Forms of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the words of the option")]
pub enum CompareFormat {
    Human,
    Json,
    Markdown,
}

/// A share of time, from per cent: `1`, `0.5`, `2%`.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim_end().parse::<f64>().ok();
    let share = number.filter(|n| (0.0..100.0).contains(n) && *n > 0.0);
    share.map(|n| n / 100.0).ok_or_else(|| "expected per cent above 0 and below 100, such as `1` or `0.5%`".into())
}
