//! The words of the command line. Knows their spelling; does nothing.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use crate::model::Pattern;
use crate::model::pattern::HIGHEST_LEVEL;

/// Cargo for GPU kernels.
#[derive(Debug, Parser)]
#[command(
    name = "kforge",
    version,
    about = "Cargo for GPU kernels",
    bin_name = "kforge",
    disable_help_subcommand = false,
    max_term_width = 120,
    after_help = "\
Start with `kforge new sums --template row-reduction`, then `kforge build` in it.
A word that is none of these is an alias of the settings, or a program `kforge-WORD` on PATH."
)]
pub struct Cli {
    /// What every command takes.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What every command takes.
#[derive(Debug, Clone, Args)]
pub struct Global {
    /// Change to DIR before doing anything, as `make -C` does
    #[arg(short = 'C', value_name = "DIR", global = true, help_heading = "Common options")]
    pub directory: Option<PathBuf>,
    /// The kernel.toml to work on, or its folder; by default the nearest one upward
    #[arg(long, value_name = "PATH", global = true, help_heading = "Common options")]
    pub manifest_path: Option<PathBuf>,
    /// When to use colour
    #[arg(long, value_name = "WHEN", global = true, help_heading = "Common options")]
    pub color: Option<When>,
    /// Print errors only
    #[arg(short, long, global = true, help_heading = "Common options")]
    pub quiet: bool,
    /// Say why each step ran; twice: show the tools' own output too
    #[arg(short, long, action = ArgAction::Count, global = true, help_heading = "Common options")]
    pub verbose: u8,
    /// Override a setting; `kforge config list` shows them
    #[arg(long, value_name = "KEY=VALUE", global = true, help_heading = "Common options")]
    pub config: Vec<String>,
    /// Never use the network, not even to install a toolchain
    #[arg(long, global = true, help_heading = "Common options")]
    pub offline: bool,
    /// Fail if kforge.lock would have to change
    #[arg(long, global = true, help_heading = "Common options")]
    pub locked: bool,
    /// Both --locked and --offline
    #[arg(long, global = true, help_heading = "Common options")]
    pub frozen: bool,
    /// Fail at once, with exit code 75, where another kforge holds a lock
    #[arg(long, global = true, help_heading = "Common options")]
    pub no_wait: bool,
    /// Run kernels even where the system cannot confine them; verdicts then say so
    #[arg(long, global = true, help_heading = "Common options")]
    pub allow_unconfined: bool,
    /// The folder for what builds write; by default `target` at the workspace's root
    #[arg(long, value_name = "DIR", global = true, help_heading = "Common options")]
    pub target_dir: Option<PathBuf>,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the words of the option")]
pub enum When {
    Auto,
    Always,
    Never,
}

/// How results are said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
#[expect(missing_docs, reason = "the words of the option")]
pub enum MessageFormat {
    #[default]
    Human,
    Json,
}

/// What a build acts on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Select {
    /// Packages to act on: a name or glob; may be repeated, as all of these may
    #[arg(short, long, value_name = "NAME", help_heading = "Selection")]
    pub package: Vec<String>,
    /// Act on all packages of the workspace
    #[arg(long, help_heading = "Selection")]
    pub workspace: bool,
    /// Packages to leave out: a name or glob
    #[arg(long, value_name = "NAME", help_heading = "Selection")]
    pub exclude: Vec<String>,
    /// Kernels to act on: a name or glob
    #[arg(long, value_name = "NAME", help_heading = "Selection")]
    pub kernel: Vec<String>,
    /// Operators whose kernels to act on: a name or glob
    #[arg(long, value_name = "NAME", help_heading = "Selection")]
    pub operator: Vec<String>,
    /// Shapes to act on: a name or glob
    #[arg(long, value_name = "NAME", help_heading = "Selection")]
    pub shape: Vec<String>,
    /// Targets to act on: a name or glob
    #[arg(long, value_name = "NAME", help_heading = "Selection")]
    pub target: Vec<String>,
}

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

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compile every variant, verify it, time it, and select champions
    #[command(visible_alias = "b")]
    Build(BuildArgs),
    /// Compile and inspect kernels; run none
    #[command(visible_alias = "c")]
    Check(BuildArgs),
    /// Compile kernels and compare what they compute with their references
    #[command(visible_aliases = ["test", "t"])]
    Verify(BuildArgs),
    /// Verify kernels and time them, where there is a GPU
    #[command(visible_alias = "profile")]
    Bench(BuildArgs),
    /// Build, then say what each method of the champions buys
    Ablate(BuildArgs),
    /// Improve kernels over rounds: ask for candidates, verify, time and ablate them
    Optimize(OptimizeArgs),
    /// Make a champion the package's own: write its source into the repository, and pin it
    Accept(AcceptArgs),
    /// Write recorded attempts at rounds for those who train on them
    #[command(subcommand)]
    Export(ExportCommand),
    /// Search what became of candidates so far, by operator, pattern, level and target, and print sources
    Candidates(CandidatesArgs),
    /// Show again what the last build found
    Report(ReportArgs),
    /// Say why a step ran, or would run: which input changed, from what to what
    Explain(ExplainArgs),
    /// Print the workspace, its kernels and variants as JSON
    Metadata(MetadataArgs),
    /// Print the steps of a build and what each depends on, as a tree
    Tree(TreeArgs),
    /// Run one variant of a kernel on one shape, or any one step, and show what it gave
    Run(RunArgs),
    /// Make a package in a new folder
    New(NewArgs),
    /// Make a package in this folder
    Init(InitArgs),
    /// Add a kernel, operator, shape, target or dependency to kernel.toml
    Add(AddArgs),
    /// Remove a kernel, operator, shape, target or dependency from kernel.toml
    Remove(RemoveArgs),
    /// Remove what builds have written: target/kforge
    Clean(CleanArgs),
    /// Install the toolchains and libraries that kforge.lock names
    Fetch(FetchArgs),
    /// Resolve toolchains and libraries anew, or pin champions, in kforge.lock
    Update(UpdateArgs),
    /// Say what is on this machine and what that makes possible, what is missing and what to do
    Doctor,
    /// Install and list CUDA toolchains
    #[command(subcommand)]
    Toolchain(ToolchainCommand),
    /// Measure, collect and check the cache that all workspaces share
    #[command(subcommand)]
    Cache(CacheCommand),
    /// Export, import and list what devices were seen to do
    #[command(subcommand)]
    Evidence(EvidenceCommand),
    /// Compare champions with those of another state, and fail where one is slower
    Compare(CompareArgs),
    /// Show settings and where they come from
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print the path of the manifest at hand
    LocateProject(LocateArgs),
    /// Print a script that completes kforge's words in a shell
    Completions(CompletionsArgs),
    /// Print the JSON Schema of something that kforge reads or writes
    Schema(SchemaArgs),
    /// Print the version
    Version,
    /// Do steps for another kforge
    #[command(hide = true, disable_help_flag = true)]
    Worker(WorkerArgs),
    /// A plugin: `kforge-NAME` on PATH
    #[command(external_subcommand)]
    External(Vec<String>),
}

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

/// Templates of packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the words of the option")]
pub enum Template {
    Elementwise,
    RowReduction,
    Matmul,
}

/// `kforge new`.
#[derive(Debug, Clone, Args)]
pub struct NewArgs {
    /// The folder to make; its last part becomes the package's name
    pub path: PathBuf,
    /// The package's name, where it is not the folder's
    #[arg(long)]
    pub name: Option<String>,
    /// The kernel to start from
    #[arg(long, value_name = "TEMPLATE", default_value = "elementwise")]
    pub template: Template,
}

/// `kforge init`.
#[derive(Debug, Clone, Args)]
pub struct InitArgs {
    /// The package's name, where it is not the folder's
    #[arg(long)]
    pub name: Option<String>,
    /// The kernel to start from
    #[arg(long, value_name = "TEMPLATE", default_value = "elementwise")]
    pub template: Template,
}

/// What a manifest holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the words of the argument")]
pub enum Item {
    Target,
    Shape,
    Dependency,
    Kernel,
    Operator,
}

/// `kforge add`.
#[derive(Debug, Clone, Args)]
pub struct AddArgs {
    /// What to add
    pub item: Item,
    /// Its name (of a shape: OPERATOR.SHAPE)
    pub name: String,
    /// Its fields, as in kernel.toml: arch=sm_90a, rows=1, role=bench
    #[arg(value_name = "FIELD=VALUE")]
    pub fields: Vec<String>,
}

/// `kforge remove`.
#[derive(Debug, Clone, Args)]
pub struct RemoveArgs {
    /// What to remove
    pub item: Item,
    /// Its name (of a shape: OPERATOR.SHAPE)
    pub name: String,
}

/// `kforge clean`.
#[derive(Debug, Clone, Args)]
pub struct CleanArgs {
    /// Say what would be removed, and remove nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

/// `kforge fetch`.
#[derive(Debug, Clone, Args)]
pub struct FetchArgs {
    /// Install nvcc too, which only kernels with host headers or host code need
    #[arg(long)]
    pub nvcc: bool,
}

/// `kforge update`.
#[derive(Debug, Clone, Args)]
pub struct UpdateArgs {
    /// Pin the champions of the last build instead: they win among equals from now on
    #[arg(long)]
    pub champions: bool,
    /// Say what would change, and write nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

/// `kforge toolchain`.
#[derive(Debug, Clone, Subcommand)]
pub enum ToolchainCommand {
    /// Install the toolchains and libraries that kforge.lock names, as `kforge fetch` does
    Install(FetchArgs),
    /// List the toolchains that are installed, and their wheels
    List,
}

/// `kforge cache`.
#[derive(Debug, Clone, Subcommand)]
pub enum CacheCommand {
    /// Remove what is older or larger than cache.max-age and cache.max-size allow
    Gc,
    /// Say how large it is, by part
    Du,
    /// Hash everything again and remove what is corrupt
    Verify,
}

/// `kforge evidence`.
#[derive(Debug, Clone, Subcommand)]
pub enum EvidenceCommand {
    /// Write what answers the plan at hand into a bundle
    Export(EvidenceExport),
    /// Take bundles into the home, where builds of every workspace see them
    Import(EvidenceImport),
    /// List what was observed, on what, when
    List(EvidenceList),
}

/// `kforge evidence export`.
#[derive(Debug, Clone, Args)]
pub struct EvidenceExport {
    /// What to act on.
    #[command(flatten)]
    pub select: Select,
    /// The bundle to write [default: evidence/PRODUCT.kfe beside the root manifest, where builds find it]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Every record under a question, not only the one that answers it here
    #[arg(long)]
    pub all: bool,
}

/// `kforge evidence import`.
#[derive(Debug, Clone, Args)]
pub struct EvidenceImport {
    /// Bundles
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

/// `kforge evidence list`.
#[derive(Debug, Clone, Args)]
pub struct EvidenceList {
    /// What to act on.
    #[command(flatten)]
    pub select: Select,
    /// List what this bundle holds
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Everything that is held, not only what the plan at hand asks for
    #[arg(long)]
    pub all: bool,
    /// How it is listed
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub message_format: MessageFormat,
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

/// `kforge config`.
#[derive(Debug, Clone, Subcommand)]
pub enum ConfigCommand {
    /// List all settings, their values, and where each comes from
    List,
    /// Show one setting, or those of a table, and where each comes from
    Get {
        /// The setting, such as `build.jobs`, or a table, such as `build`
        key: Option<String>,
    },
}

/// `kforge locate-project`.
#[derive(Debug, Clone, Args)]
pub struct LocateArgs {
    /// Print that of the workspace's root instead
    #[arg(long)]
    pub workspace: bool,
    /// The form of the answer
    #[arg(long, value_name = "FORMAT", default_value = "json")]
    pub message_format: LocateFormat,
}

/// Forms of a located path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the words of the option")]
pub enum LocateFormat {
    Plain,
    Json,
}

/// `kforge completions`.
#[derive(Debug, Clone, Args)]
pub struct CompletionsArgs {
    /// The shell that is to read it
    pub shell: clap_complete::Shell,
}

/// `kforge schema`.
#[derive(Debug, Clone, Args)]
pub struct SchemaArgs {
    /// What it is the schema of
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(schemas()))]
    pub name: String,
}

/// The names of all schemas, sorted.
fn schemas() -> Vec<&'static str> {
    let mut names: Vec<&str> = crate::report::schemas::NAMES.into_iter().chain(crate::release::SCHEMAS).collect();
    names.sort_unstable();
    names
}

/// `kforge worker`.
#[derive(Debug, Clone, Args)]
pub struct WorkerArgs {
    /// Its words.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<std::ffi::OsString>,
}
