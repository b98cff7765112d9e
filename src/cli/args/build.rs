//! Arguments of `build`, `check`, `verify`, `bench`, `ablate`, `run` and `compare`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clap_complete::{ArgValueCandidates, ArgValueCompleter};

use super::{MessageFormat, Select};
use crate::cli::complete;
use kforge_project::workspace::select::SelectionArgs;
use kforge_types::record::Standing;

/// Arguments of commands that build.
#[derive(Debug, Clone, Default, Args)]
pub struct BuildArgs {
    /// Kernels, by name or glob [default: all kernels]
    #[arg(value_name = "KERNEL", add = ArgValueCandidates::new(complete::kernels))]
    pub kernels: Vec<String>,
    /// The selection.
    #[command(flatten)]
    pub select: Select,
    /// Number of steps to run in parallel; -N means all cores except N
    #[arg(short, long, value_name = "N", allow_hyphen_values = true)]
    pub jobs: Option<i64>,
    /// After a failure, continue with steps that do not depend on it
    #[arg(long)]
    pub keep_going: bool,
    /// List the steps that would run, without running them
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Build again whenever a file that the build read changes, until Ctrl-C
    #[arg(long, conflicts_with_all = ["dry_run", "changed_since", "remeasure"])]
    pub watch: bool,
    /// Output format; `json` prints one event per line
    #[arg(hide_short_help = true, long, value_name = "FORMAT", visible_alias = "format", default_value = "human")]
    pub message_format: MessageFormat,
    /// Write an HTML page of step timings to target/kforge/timings
    #[arg(hide_short_help = true, long)]
    pub timings: bool,
    /// Ignore earlier measurements and measure on the device again
    #[arg(hide_short_help = true, long)]
    pub remeasure: bool,
    /// Exit with code 103 if evidence from a device is missing; `claimed` also takes evidence that nobody whom you trust signed
    #[arg(hide_short_help = true, long, value_name = "STANDING", num_args = 0..=1, require_equals = true, default_missing_value = "signed")]
    pub require_evidence: Option<RequiredStanding>,
    /// Repeat this part of the verifications from bundles on the device that is here; an error if one contradicts its bundle
    #[arg(hide_short_help = true, long, value_name = "PERCENT", value_parser = part)]
    pub recheck: Option<u32>,
    /// Trust the keys in the repository's .kforge/allowed_signers as it is in REV, such as the base of a pull request
    #[arg(hide_short_help = true, long, value_name = "REV")]
    pub base: Option<String>,
    /// Build only kernels that the changes since REV touch; `kforge affected REV` lists them
    #[arg(hide_short_help = true, long, value_name = "REV")]
    pub changed_since: Option<String>,
    /// Add operators and shapes from a manifest outside the repository
    #[arg(hide_short_help = true, long, value_name = "PATH")]
    pub overlay: Option<PathBuf>,
}

impl BuildArgs {
    /// The selection in the form that operations take.
    pub fn words(&self) -> SelectionArgs {
        let mut words = self.select.words();
        words.kernels.extend(self.kernels.iter().cloned());
        words
    }
}

/// The least standing of required evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RequiredStanding {
    /// Observed by this machine, or signed by a key that this build trusts
    Signed,
    /// Also claimed by anybody
    Claimed,
}

impl From<RequiredStanding> for Standing {
    fn from(required: RequiredStanding) -> Self {
        match required {
            RequiredStanding::Signed => Standing::Signed,
            RequiredStanding::Claimed => Standing::Claimed,
        }
    }
}

/// `kforge run`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// Kernel, or id of a step (PACKAGE/KERNEL/...) to run only that step
    #[arg(value_name = "KERNEL|STEP", add = ArgValueCompleter::new(complete::kernels_or_steps))]
    pub what: String,
    /// Shape [default: the only shape of the operator]
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(complete::shapes))]
    pub shape: Option<String>,
    /// Variant, such as BLOCK=256,VEC=4 [default: the variant declared first]
    #[arg(long, value_name = "NAME=VALUE,...")]
    pub variant: Option<String>,
    /// Package, if several have a kernel of this name
    #[arg(short, long, value_name = "NAME", add = ArgValueCandidates::new(complete::packages))]
    pub package: Option<String>,
    /// Add operators and shapes from a manifest outside the repository
    #[arg(hide_short_help = true, long, value_name = "PATH")]
    pub overlay: Option<PathBuf>,
}

/// `kforge compare`.
#[derive(Debug, Clone, Args)]
pub struct CompareArgs {
    /// Base: a git revision, a bundle of evidence (FILE.kfe), or the digest of a stored binary
    pub base: String,
    /// Head: a git revision [default: the working tree]
    pub head: Option<String>,
    /// The selection.
    #[command(flatten)]
    pub select: Select,
    /// Difference in time, in percent, below which base and head count as equal
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = percent)]
    pub margin: f64,
    /// Exit with code 103 if evidence is missing or undecided; `claimed` also takes evidence that nobody whom you trust signed
    #[arg(hide_short_help = true, long, value_name = "STANDING", num_args = 0..=1, require_equals = true, default_missing_value = "signed")]
    pub require_evidence: Option<RequiredStanding>,
    /// Ignore earlier measurements and measure again
    #[arg(hide_short_help = true, long)]
    pub remeasure: bool,
    /// Number of steps to run in parallel; -N means all cores except N
    #[arg(hide_short_help = true, short, long, value_name = "N", allow_hyphen_values = true)]
    pub jobs: Option<i64>,
    /// Output format
    #[arg(hide_short_help = true, long, value_name = "FORMAT", visible_alias = "format", default_value = "human")]
    pub message_format: CompareFormat,
    /// Also write the comparison as one HTML page, by default to target/kforge/compare.html
    #[arg(long, value_name = "PATH", num_args = 0..=1, require_equals = true)]
    pub html: Option<Option<PathBuf>>,
}

/// Output formats of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the values of the option")]
pub enum CompareFormat {
    Human,
    Json,
    Markdown,
}

/// A fraction of time, from a percentage: `1`, `0.5`, `2%`.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim_end().parse::<f64>().ok();
    let share = number.filter(|n| (0.0..100.0).contains(n) && *n > 0.0);
    share.map(|n| n / 100.0).ok_or_else(|| "expected a percentage above 0 and below 100, such as `1` or `0.5%`".into())
}

/// A part in hundredths of a per cent, from a percentage: `5`, `0.5%`, `100`.
fn part(text: &str) -> Result<u32, String> {
    let number = text.trim_end_matches('%').trim_end().parse::<f64>().ok();
    let part = number.filter(|n| *n > 0.0 && *n <= 100.0).map(|n| (n * 100.0).round() as u32).filter(|part| *part > 0);
    part.ok_or_else(|| "expected a percentage above 0 and up to 100, such as `5` or `0.5%`".into())
}
