//! Arguments of commands that improve kernels: `optimize`, `accept`, `export`, `candidates`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use clap_complete::ArgValueCandidates;

use super::build::RequiredStanding;
use super::{MessageFormat, Select};
use crate::cli::complete;
use kforge_numerics::measure::reward::DISCOUNT;
use kforge_pipeline::release::trajectory::filter::Band;
use kforge_types::model::Pattern;
use kforge_types::model::pattern::HIGHEST_LEVEL;

/// `kforge optimize`.
#[derive(Debug, Clone, Default, Args)]
pub struct OptimizeArgs {
    /// Kernels to improve, by name or glob [default: all kernels that name an agent]
    #[arg(value_name = "KERNEL", add = ArgValueCandidates::new(complete::kernels))]
    pub kernels: Vec<String>,
    /// The selection.
    #[command(flatten)]
    pub select: Select,
    /// Number of rounds; overrides `generate.rounds`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
    /// Number of steps to run in parallel; -N means all cores except N
    #[arg(short, long, value_name = "N", allow_hyphen_values = true)]
    pub jobs: Option<i64>,
    /// Output format; `json` prints one event per line
    #[arg(hide_short_help = true, long, value_name = "FORMAT", visible_alias = "format", default_value = "human")]
    pub message_format: MessageFormat,
    /// Exit with code 103 if evidence from a device is missing; `claimed` also takes evidence that nobody whom you trust signed
    #[arg(hide_short_help = true, long, value_name = "STANDING", num_args = 0..=1, require_equals = true, default_missing_value = "signed")]
    pub require_evidence: Option<RequiredStanding>,
    /// Trust the keys in the repository's .kforge/allowed_signers as it is in REV, such as the base of a pull request
    #[arg(hide_short_help = true, long, value_name = "REV")]
    pub base: Option<String>,
    /// Add operators and shapes from a manifest outside the repository
    #[arg(hide_short_help = true, long, value_name = "PATH")]
    pub overlay: Option<PathBuf>,
}

/// `kforge accept`.
#[derive(Debug, Clone, Default, Args)]
pub struct AcceptArgs {
    /// Kernel whose champion is accepted
    #[arg(value_name = "KERNEL", add = ArgValueCandidates::new(complete::kernels))]
    pub kernel: String,
    /// Select the kernel's package by name or glob
    #[arg(short, long, value_name = "NAME")]
    pub package: Vec<String>,
    /// Targets whose champions are accepted; can be repeated [default: all]
    #[arg(long, value_name = "NAME")]
    pub target: Vec<String>,
    /// Types whose champions are accepted, such as `T=f16`; can be repeated [default: all]
    #[arg(long, value_name = "TYPES")]
    pub types: Vec<String>,
    /// File to write the source to [default: KERNEL.cu beside the manifest or in its `kernels` folder]
    #[arg(long = "as", value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Declare the champion as a new kernel, and leave this kernel unchanged; needs exactly one `--target`
    #[arg(long, value_name = "NEW", requires = "target")]
    pub name: Option<String>,
    /// Overwrite a file that is not the source of this kernel
    #[arg(long)]
    pub force: bool,
    /// Undo an acceptance: build all variants again. The accepted source stays
    #[arg(long, conflicts_with_all = ["file", "name", "force"])]
    pub undo: bool,
    /// Print what would change, without writing it
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

/// `kforge export`.
#[derive(Debug, Clone, Subcommand)]
pub enum ExportCommand {
    /// Export recorded attempts as lines of JSON: request, answer, verdicts, times, rewards and returns, or conversations for fine-tuning
    Trajectories(ExportTrajectories),
    /// Export the packages of a dataset in FlashInfer-Trace's form: its files as they were, with solutions and traces of what is known
    FlashinferTrace(ExportTraces),
    /// Export what is known of every variant in the T4 format of the autotuning community, which Kernel Tuner reads
    T4(ExportT4),
}

/// `kforge export t4`.
#[derive(Debug, Clone, Default, Args)]
pub struct ExportT4 {
    /// Folder for the documents: one for each kernel, target and shape
    pub folder: PathBuf,
    /// The selection.
    #[command(flatten)]
    pub select: Select,
}

/// `kforge export flashinfer-trace`.
#[derive(Debug, Clone, Default, Args)]
pub struct ExportTraces {
    /// Folder of the dataset to write. Files of other authors are never replaced
    pub folder: PathBuf,
    /// The selection.
    #[command(flatten)]
    pub select: Select,
}

/// `kforge export trajectories`.
#[derive(Debug, Clone, Args)]
pub struct ExportTrajectories {
    /// The selection.
    #[command(flatten)]
    pub select: Select,
    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// What a line is. A line of `sft` has the messages of a correct attempt, for supervised fine-tuning
    #[arg(long, value_name = "FORM", default_value = "trajectory")]
    pub form: LineWord,
    /// The factor by which each later turn counts less in a return
    #[arg(hide_short_help = true, long, value_name = "FACTOR", default_value_t = DISCOUNT, value_parser = factor, help_heading = "Rewards")]
    pub discount: f64,
    /// Export only correct candidates
    #[arg(long, help_heading = "Filters")]
    pub correct: bool,
    /// Export only candidates whose median time lies within a band, such as 1us..10ms; either end can be left out
    #[arg(hide_short_help = true, long, value_name = "FROM..TO", value_parser = band, help_heading = "Filters")]
    pub runtime: Option<Band>,
    /// Export each source of a problem once, whatever its comments and white space
    #[arg(hide_short_help = true, long, help_heading = "Filters")]
    pub dedup: bool,
    /// Export as many attempts of each level as of the level with the fewest, or at most N
    #[arg(hide_short_help = true, long, value_name = "N", num_args = 0..=1, require_equals = true, help_heading = "Filters")]
    pub balance: Option<Option<NonZeroUsize>>,
}

/// What a line of an export is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the values of the option")]
pub enum LineWord {
    #[default]
    Trajectory,
    Sft,
}

/// `kforge candidates`.
#[derive(Debug, Clone, Default, Args)]
pub struct CandidatesArgs {
    /// Select packages by name or glob; options with a value can be repeated
    #[arg(short, long, value_name = "NAME", help_heading = "Search")]
    pub package: Vec<String>,
    /// Select kernels by name or glob
    #[arg(long, value_name = "NAME", help_heading = "Search")]
    pub kernel: Vec<String>,
    /// Select operators by name or glob
    #[arg(long, value_name = "NAME", help_heading = "Search")]
    pub operator: Vec<String>,
    /// Select targets by name or glob
    #[arg(long, value_name = "NAME", help_heading = "Search")]
    pub target: Vec<String>,
    /// Select operators by pattern
    #[arg(long, value_name = "PATTERN", help_heading = "Search")]
    pub pattern: Vec<PatternWord>,
    /// Select operators by level, from 0 (copies or elementwise) to 5 (several passes), such as 3 or L3
    #[arg(long, value_name = "LEVEL", value_parser = level, help_heading = "Search")]
    pub level: Vec<u8>,
    /// List only correct candidates
    #[arg(long, alias = "right", help_heading = "Search")]
    pub correct: bool,
    /// Print the source of the candidate whose id starts with ID
    #[arg(long, value_name = "ID", conflicts_with_all = ["package", "kernel", "operator", "target", "pattern", "level", "correct", "message_format"])]
    pub source: Option<String>,
    /// Output format; `json` prints one candidate per line
    #[arg(hide_short_help = true, long, value_name = "FORMAT", visible_alias = "format", default_value = "human")]
    pub message_format: MessageFormat,
}

/// Patterns of operators, as in `model::Pattern`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the values of the option")]
pub enum PatternWord {
    Elementwise,
    Reduction,
    MatrixProduct,
    Attention,
    MultiPass,
}

impl PatternWord {
    /// The pattern that the word names.
    pub fn pattern(self) -> Pattern {
        match self {
            PatternWord::Elementwise => Pattern::Elementwise,
            PatternWord::Reduction => Pattern::Reduction,
            PatternWord::MatrixProduct => Pattern::MatrixProduct,
            PatternWord::Attention => Pattern::Attention,
            PatternWord::MultiPass => Pattern::MultiPass,
        }
    }
}

/// A factor from 0 to 1.
fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor| (0.0..=1.0).contains(factor));
    factor.ok_or_else(|| "expected a number from 0 to 1, such as `0.4`".into())
}

/// A band of times: `1us..10ms`, `..1ms`.
fn band(text: &str) -> Result<Band, String> {
    let time = |text: &str| {
        let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
        let (number, unit) = units.iter().find_map(|(name, ns)| Some((text.strip_suffix(name)?, ns)))?;
        number.parse::<f64>().ok().filter(|number| *number >= 0.0).map(|number| number * unit)
    };
    let found = text.split_once("..").and_then(|(from, to)| {
        let from_ns = if from.is_empty() { 0.0 } else { time(from)? };
        let to_ns = if to.is_empty() { f64::INFINITY } else { time(to)? };
        Some(Band { from_ns, to_ns }).filter(|band| band.from_ns <= band.to_ns)
    });
    found.ok_or_else(|| "expected two times with units (ns, us, ms, s), such as `1us..10ms`, or one: `..10ms`".into())
}

/// A level: `3`, `L3`.
fn level(text: &str) -> Result<u8, String> {
    let number = text.strip_prefix(['L', 'l']).unwrap_or(text).parse().ok();
    number
        .filter(|level| *level <= HIGHEST_LEVEL)
        .ok_or_else(|| format!("expected a level from L0 to L{HIGHEST_LEVEL}, such as `L2` or `2`"))
}
