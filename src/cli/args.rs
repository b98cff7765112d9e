//! The words of the command line. Knows their spelling; does nothing.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

/// Cargo for GPU kernels.
#[derive(Debug, Parser)]
#[command(
    name = "kforge",
    version,
    about = "Cargo for GPU kernels",
    disable_help_subcommand = false,
    propagate_version = true,
    max_term_width = 120
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
    /// Change to DIR before doing anything
    #[arg(short = 'C', value_name = "DIR", global = true, help_heading = "Common options")]
    pub directory: Option<PathBuf>,
    /// Path of a kernel.toml
    #[arg(long, value_name = "PATH", global = true, help_heading = "Common options")]
    pub manifest_path: Option<PathBuf>,
    /// Coloring: auto, always, never
    #[arg(long, value_name = "WHEN", global = true, help_heading = "Common options")]
    pub color: Option<When>,
    /// Print errors only
    #[arg(short, long, global = true, help_heading = "Common options")]
    pub quiet: bool,
    /// Say why each step ran; twice: show the tools' own output too
    #[arg(short, long, action = ArgAction::Count, global = true, help_heading = "Common options")]
    pub verbose: u8,
    /// Override a setting
    #[arg(long, value_name = "KEY=VALUE", global = true, help_heading = "Common options")]
    pub config: Vec<String>,
    /// Never use the network
    #[arg(long, global = true, help_heading = "Common options")]
    pub offline: bool,
    /// Fail if kforge.lock would change
    #[arg(long, global = true, help_heading = "Common options")]
    pub locked: bool,
    /// --locked and --offline
    #[arg(long, global = true, help_heading = "Common options")]
    pub frozen: bool,
    /// Fail at once where a lock is held
    #[arg(long, global = true, help_heading = "Common options")]
    pub no_wait: bool,
    /// Run kernels even where the system cannot confine them
    #[arg(long, global = true, help_heading = "Common options")]
    pub allow_unconfined: bool,
    /// Where outputs go
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
#[derive(Debug, Clone, Default, Args)]
pub struct Select {
    /// Packages to act on (names or globs)
    #[arg(short, long, value_name = "SPEC", help_heading = "Selection")]
    pub package: Vec<String>,
    /// All packages of the workspace
    #[arg(long, help_heading = "Selection")]
    pub workspace: bool,
    /// Packages to leave out
    #[arg(long, value_name = "SPEC", help_heading = "Selection")]
    pub exclude: Vec<String>,
    /// Kernels to act on
    #[arg(long, value_name = "NAME", help_heading = "Selection")]
    pub kernel: Vec<String>,
    /// Operators whose kernels to act on
    #[arg(long, value_name = "NAME", help_heading = "Selection")]
    pub operator: Vec<String>,
    /// Shapes to act on
    #[arg(long, value_name = "NAME", help_heading = "Selection")]
    pub shape: Vec<String>,
    /// Targets to act on
    #[arg(long, value_name = "NAME", help_heading = "Selection")]
    pub target: Vec<String>,
}

/// How a build is done.
#[derive(Debug, Clone, Default, Args)]
pub struct BuildArgs {
    /// What to act on.
    #[command(flatten)]
    pub select: Select,
    /// Steps to run at once (negative: cores less that many)
    #[arg(short, long, value_name = "N", allow_hyphen_values = true)]
    pub jobs: Option<i64>,
    /// After a failure, finish what does not depend on it
    #[arg(long)]
    pub keep_going: bool,
    /// List what will run and what may, and run nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// How results are said
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub message_format: MessageFormat,
    /// Write an HTML page that shows where the time went
    #[arg(long)]
    pub timings: bool,
    /// Measure again although there are records
    #[arg(long)]
    pub remeasure: bool,
    /// Fail where evidence from a device is missing
    #[arg(long)]
    pub require_evidence: bool,
    /// Add shapes and operators from a private manifest
    #[arg(long, value_name = "PATH")]
    pub overlay: Option<PathBuf>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compile, verify, time and select kernels
    #[command(visible_alias = "b")]
    Build(BuildArgs),
    /// Compile and inspect kernels without running them
    #[command(visible_alias = "c")]
    Check(BuildArgs),
    /// Verify kernels against their references
    #[command(visible_aliases = ["test", "t"])]
    Verify(BuildArgs),
    /// Verify and time kernels
    #[command(visible_alias = "profile")]
    Bench(BuildArgs),
    /// Compare champions with themselves less each of their methods
    Ablate(BuildArgs),
    /// Show what the last build found
    Report(ReportArgs),
    /// Say why a step ran, or would run
    Explain(ExplainArgs),
    /// Print the workspace as JSON
    Metadata(MetadataArgs),
    /// Print the plan as a tree
    Tree(TreeArgs),
    /// Run one variant of a kernel on one shape and show what it gave
    Run(RunArgs),
    /// Make a new package in a new folder
    New(NewArgs),
    /// Make a new package in this folder
    Init(InitArgs),
    /// Add a kernel, operator, shape, target or dependency to kernel.toml
    Add(AddArgs),
    /// Remove a kernel, operator, shape, target or dependency from kernel.toml
    Remove(RemoveArgs),
    /// Remove what builds have written
    Clean(CleanArgs),
    /// Install the toolchains that kforge.lock names
    Fetch(FetchArgs),
    /// Resolve toolchains anew and write kforge.lock
    Update(UpdateArgs),
    /// Say what is on this machine, what is missing, and what that costs
    Doctor,
    /// Work with toolchains
    #[command(subcommand)]
    Toolchain(ToolchainCommand),
    /// Work with the shared cache
    #[command(subcommand)]
    Cache(CacheCommand),
    /// Work with evidence from devices
    #[command(subcommand)]
    Evidence(EvidenceCommand),
    /// Show settings and where they come from
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print the path of the manifest at hand
    LocateProject(LocateArgs),
    /// Print a script that completes kforge's words in a shell
    Completions(CompletionsArgs),
    /// Print a JSON Schema
    #[command(hide = true)]
    Schema(SchemaArgs),
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
    /// text, markdown or json
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: ReportFormat,
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
    /// The step's id, or part of it that only one has; or a method of the registry
    pub step: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Print every field of the key
    #[arg(long)]
    pub fields: bool,
}

/// `kforge metadata`.
#[derive(Debug, Clone, Args)]
pub struct MetadataArgs {
    /// Version of the format
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
    /// Only this deep
    #[arg(long, value_name = "N")]
    pub depth: Option<usize>,
    /// Start from steps of this kind
    #[arg(long, value_name = "KIND")]
    pub stage: Option<String>,
}

/// `kforge run`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// The kernel
    pub kernel: String,
    /// The shape
    #[arg(long)]
    pub shape: String,
    /// The variant: BLOCK=256,VEC=4 (the first in declared order if left out)
    #[arg(long)]
    pub variant: Option<String>,
    /// The package, where several have such a kernel
    #[arg(short, long)]
    pub package: Option<String>,
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
    /// Where; its last part is the package's name
    pub path: PathBuf,
    /// The package's name
    #[arg(long)]
    pub name: Option<String>,
    /// What to start from
    #[arg(long, value_name = "TEMPLATE", default_value = "elementwise")]
    pub template: Template,
}

/// `kforge init`.
#[derive(Debug, Clone, Args)]
pub struct InitArgs {
    /// The package's name
    #[arg(long)]
    pub name: Option<String>,
    /// What to start from
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
    /// Its fields as TOML: arch="sm_90a" (repeatable)
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
    /// Say what would be removed
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

/// `kforge fetch`.
#[derive(Debug, Clone, Args)]
pub struct FetchArgs {
    /// nvcc too, which few kernels need
    #[arg(long)]
    pub nvcc: bool,
}

/// `kforge update`.
#[derive(Debug, Clone, Args)]
pub struct UpdateArgs {
    /// Pin the champions of the last build
    #[arg(long)]
    pub champions: bool,
    /// Say what would change
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

/// `kforge toolchain`.
#[derive(Debug, Clone, Subcommand)]
pub enum ToolchainCommand {
    /// Install the toolchains that kforge.lock names
    Install(FetchArgs),
    /// List installed toolchains
    List,
}

/// `kforge cache`.
#[derive(Debug, Clone, Subcommand)]
pub enum CacheCommand {
    /// Collect what is old or too much
    Gc,
    /// Say how large it is
    Du,
    /// Hash everything again and remove what is corrupt
    Verify,
}

/// `kforge evidence`.
#[derive(Debug, Clone, Subcommand)]
pub enum EvidenceCommand {
    /// List what was observed, on what, when
    List,
}

/// `kforge config`.
#[derive(Debug, Clone, Subcommand)]
pub enum ConfigCommand {
    /// Show one setting, or all, with where each comes from
    Get {
        /// The setting: build.jobs
        key: Option<String>,
    },
}

/// `kforge locate-project`.
#[derive(Debug, Clone, Args)]
pub struct LocateArgs {
    /// The workspace's root instead
    #[arg(long)]
    pub workspace: bool,
    /// plain or json
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
    /// The shell
    pub shell: clap_complete::Shell,
}

/// `kforge schema`.
#[derive(Debug, Clone, Args)]
pub struct SchemaArgs {
    /// manifest, events, evidence, lockfile or report
    pub name: String,
}

/// `kforge worker`.
#[derive(Debug, Clone, Args)]
pub struct WorkerArgs {
    /// Its words.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<std::ffi::OsString>,
}
