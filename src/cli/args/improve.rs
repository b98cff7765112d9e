//! The words of the loop that improves kernels, and of what comes of it: `optimize`, `accept`, `export`, `candidates`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{MessageFormat, Select};
use kforge_types::model::Pattern;
use kforge_types::model::pattern::HIGHEST_LEVEL;

/// How kernels are improved.
#[derive(Debug, Clone, Default, Args)]
pub struct OptimizeArgs {
    /// Kernels to improve: a name or glob; all that name an agent if none is given
    #[arg(value_name = "KERNEL")]
    pub kernels: Vec<String>,
    /// What to act on.
    #[command(flatten)]
    pub select: Select,
    /// How many rounds there are to be, in place of `generate.rounds`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
    /// Steps to run at once; a negative number is cores less that many
    #[arg(short, long, value_name = "N", allow_hyphen_values = true)]
    pub jobs: Option<i64>,
    /// `json` writes one event a line to standard output
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub message_format: MessageFormat,
    /// Add the operators and shapes of a manifest that is not in the repository
    #[arg(long, value_name = "PATH")]
    pub overlay: Option<PathBuf>,
}

/// How a champion is accepted.
#[derive(Debug, Clone, Default, Args)]
pub struct AcceptArgs {
    /// The kernel whose champion to accept
    #[arg(value_name = "KERNEL")]
    pub kernel: String,
    /// The package that has it
    #[arg(short, long, value_name = "NAME")]
    pub package: Vec<String>,
    /// The target whose champion to accept, in place of all
    #[arg(long, value_name = "NAME")]
    pub target: Vec<String>,
    /// The types whose champion to accept, such as `T=f16`, in place of all
    #[arg(long, value_name = "TYPES")]
    pub types: Vec<String>,
    /// The file to write the source to; by default KERNEL.cu beside the manifest, or in its `kernels` folder
    #[arg(long = "as", value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Make another kernel of it, for one target, and leave this one as it is
    #[arg(long, value_name = "NEW", requires = "target")]
    pub name: Option<String>,
    /// Write over a file that is there
    #[arg(long)]
    pub force: bool,
    /// Free what was accepted: builds, searches and rounds go on as before
    #[arg(long, conflicts_with_all = ["file", "name", "force"])]
    pub undo: bool,
    /// Say what would change, and write nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

/// `kforge export`.
#[derive(Debug, Clone, Subcommand)]
pub enum ExportCommand {
    /// Every recorded attempt at a round as a line of JSON: what was asked and answered, verdicts, times and scores
    Trajectories(ExportTrajectories),
}

/// Which attempts are exported, and where to.
#[derive(Debug, Clone, Default, Args)]
pub struct ExportTrajectories {
    /// What to export.
    #[command(flatten)]
    pub select: Select,
    /// The file to write; standard output if none is named
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `kforge candidates`.
#[derive(Debug, Clone, Default, Args)]
pub struct CandidatesArgs {
    /// Packages whose candidates to list: a name or glob; may be repeated, as all of these may
    #[arg(short, long, value_name = "NAME", help_heading = "Search")]
    pub package: Vec<String>,
    /// Kernels: a name or glob
    #[arg(long, value_name = "NAME", help_heading = "Search")]
    pub kernel: Vec<String>,
    /// Operators: a name or glob
    #[arg(long, value_name = "NAME", help_heading = "Search")]
    pub operator: Vec<String>,
    /// Targets: a name or glob
    #[arg(long, value_name = "NAME", help_heading = "Search")]
    pub target: Vec<String>,
    /// Patterns of operators
    #[arg(long, value_name = "PATTERN", help_heading = "Search")]
    pub pattern: Vec<PatternWord>,
    /// Levels of operators: 0 (one value moved or mapped) to 5 (several passes); `L3` is 3
    #[arg(long, value_name = "LEVEL", value_parser = level, help_heading = "Search")]
    pub level: Vec<u8>,
    /// Only those that are right
    #[arg(long, help_heading = "Search")]
    pub right: bool,
    /// Print the source of the candidate with this id, or this beginning of one, instead
    #[arg(long, value_name = "ID", conflicts_with_all = ["package", "kernel", "operator", "target", "pattern", "level", "right", "message_format"])]
    pub source: Option<String>,
    /// `json` writes one candidate a line to standard output
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub message_format: MessageFormat,
}

/// Patterns of operators, as `model::Pattern` has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the words of the option")]
pub enum PatternWord {
    Elementwise,
    Reduction,
    MatrixProduct,
    Attention,
    MultiPass,
}

impl PatternWord {
    /// The pattern.
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

/// A level: `3`, `L3`.
fn level(text: &str) -> Result<u8, String> {
    let number = text.strip_prefix(['L', 'l']).unwrap_or(text).parse().ok();
    number
        .filter(|level| *level <= HIGHEST_LEVEL)
        .ok_or_else(|| format!("expected a level from L0 to L{HIGHEST_LEVEL}, such as `L2` or `2`"))
}
