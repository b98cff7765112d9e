//! The words of the command line. Knows their spelling; does nothing. Here is what all commands share, and which there are; the words of each are by what it is for.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use kforge_project::workspace::select::Words;

mod build;
mod improve;
mod itself;
mod look;
mod package;
mod stores;

pub use build::{BuildArgs, CompareArgs, CompareFormat, RunArgs};
pub use improve::{AcceptArgs, CandidatesArgs, ExportCommand, ExportTrajectories, OptimizeArgs, PatternWord};
pub use itself::{CompletionsArgs, ConfigCommand, LocateArgs, LocateFormat, SchemaArgs, WorkerArgs};
pub use look::{ExplainArgs, MetadataArgs, ReportArgs, ReportFormat, ScoreForm, TreeArgs};
pub use package::{AddArgs, InitArgs, Item, NewArgs, RemoveArgs, Template};
pub use stores::{
    CacheCommand, CleanArgs, EvidenceCommand, EvidenceExport, EvidenceImport, EvidenceList, FetchArgs,
    ToolchainCommand, UpdateArgs,
};

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

impl Select {
    /// The words as operations take them.
    pub fn words(&self) -> Words {
        Words {
            packages: self.package.clone(),
            workspace: self.workspace,
            exclude: self.exclude.clone(),
            kernels: self.kernel.clone(),
            operators: self.operator.clone(),
            shapes: self.shape.clone(),
            targets: self.target.clone(),
        }
    }
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
