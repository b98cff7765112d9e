//! The arguments of the command line: the commands, and the options that all commands share. The options of each command are in one file per topic.
//! Declarations only.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use clap_complete::ArgValueCandidates;

use super::complete;
use kforge_project::workspace::select::SelectionArgs;

mod build;
mod ci;
mod import;
mod improve;
mod plumbing;
mod query;
mod package;
mod release;
#[cfg(feature = "serve")]
mod serve;
mod stores;

pub use build::{BuildArgs, CompareArgs, CompareFormat, RequiredStanding, RunArgs};
pub use ci::{AffectedArgs, CiArgs};
pub use import::{ImportCommand, ImportTorchArgs, ImportTunerArgs, ImportWrittenArgs};
pub use improve::{
    AcceptArgs, CandidatesArgs, ExportCommand, ExportT4, ExportTraces, ExportTrajectories, LineWord, OptimizeArgs,
    PatternWord,
};
pub use package::{AddArgs, Ci, InitArgs, Item, NewArgs, RemoveArgs, Template};
pub use plumbing::{CompletionsArgs, ConfigCommand, LocateArgs, LocateFormat, ManArgs, SchemaArgs, WorkerArgs};
pub use query::{DiffArgs, ExplainArgs, MetadataArgs, ReportArgs, ReportFormat, ScoreForm, TreeArgs};
pub use release::{
    BindingsArgs, InstallArgs, LoaderLanguage, PackageArgs, PublishArgs, ReproduceArgs, VerifyArtifactArgs,
};
#[cfg(feature = "serve")]
pub use serve::ServeArgs;
pub use stores::{
    CacheCommand, CleanArgs, DoctorArgs, EvidenceCommand, EvidenceExport, EvidenceImport, EvidenceList, EvidenceSign,
    EvidenceTrust, EvidenceVerify, FetchArgs, KeyFor, ToolchainCommand, UpdateArgs,
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
Any other word is looked up as an alias in the settings, then as a program `kforge-WORD` on PATH."
)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub struct Global {
    /// Change to DIR before doing anything else
    #[arg(short = 'C', value_name = "DIR", global = true, hide_short_help = true, help_heading = "Common options")]
    pub directory: Option<PathBuf>,
    /// Path to kernel.toml or its folder [default: search this folder and its parents]
    #[arg(long, value_name = "PATH", global = true, hide_short_help = true, help_heading = "Common options")]
    pub manifest_path: Option<PathBuf>,
    /// When to use color
    #[arg(long, value_name = "WHEN", global = true, hide_short_help = true, help_heading = "Common options")]
    pub color: Option<When>,
    /// Print errors only
    #[arg(hide_short_help = true, short, long, global = true, help_heading = "Common options")]
    pub quiet: bool,
    /// Print why each step ran, and the whole report; -vv also prints the output of tools
    #[arg(hide_short_help = true, short, long, action = ArgAction::Count, global = true, help_heading = "Common options")]
    pub verbose: u8,
    /// Override a setting; `kforge config list` lists all settings
    #[arg(long, value_name = "KEY=VALUE", global = true, hide_short_help = true, help_heading = "Common options")]
    pub config: Vec<String>,
    /// Do not use the network, not even to install a toolchain
    #[arg(long, global = true, hide_short_help = true, help_heading = "Common options")]
    pub offline: bool,
    /// Fail if kforge.lock or kforge-install.lock would have to change
    #[arg(long, global = true, hide_short_help = true, help_heading = "Common options")]
    pub locked: bool,
    /// Equivalent to --locked and --offline
    #[arg(long, global = true, hide_short_help = true, help_heading = "Common options")]
    pub frozen: bool,
    /// Exit with code 75 instead of waiting for a lock that another kforge holds
    #[arg(long, global = true, hide_short_help = true, help_heading = "Common options")]
    pub no_wait: bool,
    /// Run kernels even if the system cannot confine them; their verdicts then say so
    #[arg(long, global = true, hide_short_help = true, help_heading = "Common options")]
    pub allow_unconfined: bool,
    /// File of the keys that may sign evidence [default: the setting evidence.trust, or the repository's]
    #[arg(long, value_name = "FILE", global = true, hide_short_help = true, help_heading = "Common options")]
    pub trust: Option<PathBuf>,
    /// Folder for build output [default: `target` in the workspace root]
    #[arg(long, value_name = "DIR", global = true, hide_short_help = true, help_heading = "Common options")]
    pub target_dir: Option<PathBuf>,
}

/// When to use color.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the values of the option")]
pub enum When {
    Auto,
    Always,
    Never,
}

/// The format of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
#[expect(missing_docs, reason = "the values of the option")]
pub enum MessageFormat {
    #[default]
    Human,
    Json,
}

/// The selection of packages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct SelectPackages {
    /// Select packages by name or glob
    ///
    /// Every selection option can be repeated.
    #[arg(short, long, value_name = "NAME", help_heading = "Selection", add = ArgValueCandidates::new(complete::packages))]
    pub package: Vec<String>,
    /// Select all packages of the workspace
    #[arg(hide_short_help = true, long, help_heading = "Selection")]
    pub workspace: bool,
    /// Exclude packages by name or glob
    #[arg(hide_short_help = true, long, value_name = "NAME", help_heading = "Selection", add = ArgValueCandidates::new(complete::packages))]
    pub exclude: Vec<String>,
}

impl SelectPackages {
    /// The selection in the form that operations take.
    pub fn words(&self) -> SelectionArgs {
        SelectionArgs {
            packages: self.package.clone(),
            workspace: self.workspace,
            exclude: self.exclude.clone(),
            ..SelectionArgs::default()
        }
    }
}

/// The selection of a build.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Select {
    /// The packages.
    #[command(flatten)]
    pub packages: SelectPackages,
    /// Select kernels by name or glob
    #[arg(long, value_name = "NAME", help_heading = "Selection", add = ArgValueCandidates::new(complete::kernels))]
    pub kernel: Vec<String>,
    /// Select the kernels of operators by name or glob
    #[arg(hide_short_help = true, long, value_name = "NAME", help_heading = "Selection", add = ArgValueCandidates::new(complete::operators))]
    pub operator: Vec<String>,
    /// Select shapes by name or glob
    #[arg(long, value_name = "NAME", help_heading = "Selection", add = ArgValueCandidates::new(complete::shapes))]
    pub shape: Vec<String>,
    /// Select targets by name or glob
    #[arg(long, value_name = "NAME", help_heading = "Selection", add = ArgValueCandidates::new(complete::targets))]
    pub target: Vec<String>,
}

impl Select {
    /// The selection in the form that operations take.
    pub fn words(&self) -> SelectionArgs {
        SelectionArgs {
            kernels: self.kernel.clone(),
            operators: self.operator.clone(),
            shapes: self.shape.clone(),
            targets: self.target.clone(),
            ..self.packages.words()
        }
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compile, verify and time every variant, and select champions
    #[command(visible_alias = "b")]
    Build(BuildArgs),
    /// Compile and inspect kernels without running them
    #[command(visible_alias = "c")]
    Check(BuildArgs),
    /// Compile kernels and compare their outputs with references
    #[command(visible_aliases = ["test", "t"])]
    Verify(BuildArgs),
    /// Verify kernels, and time them if there is a GPU
    #[command(visible_alias = "profile")]
    Bench(BuildArgs),
    /// Build, and report the speedup that each method of the champions gives
    Ablate(BuildArgs),
    /// Improve kernels over rounds: request, verify, time and ablate candidates
    Optimize(OptimizeArgs),
    /// Write the source of a champion into the repository and pin it
    Accept(AcceptArgs),
    /// Export recorded attempts of rounds, or results in the forms of other programs
    #[command(subcommand)]
    Export(ExportCommand),
    /// Search earlier candidates and their results, and print their sources
    Candidates(CandidatesArgs),
    /// Show the results of the last build
    Report(ReportArgs),
    /// Explain a kernel (who is champion and why), a step (why it ran or would run), or a method
    Explain(ExplainArgs),
    /// Show how two variants of a kernel differ, or a kernel and its earlier revision: source, machine code, times
    Diff(DiffArgs),
    /// Print the workspace, its kernels and their variants as JSON
    Metadata(MetadataArgs),
    /// Print the steps of a build and their dependencies as a tree
    Tree(TreeArgs),
    /// Run one variant of a kernel on one shape, or one step, and show its result
    Run(RunArgs),
    /// Create a package in a new folder
    New(NewArgs),
    /// Create a package in the current folder
    Init(InitArgs),
    /// Write kernel.toml for kernels that you have
    #[command(subcommand)]
    Import(ImportCommand),
    /// Add a kernel, operator, shape, target or dependency to kernel.toml
    Add(AddArgs),
    /// Remove a kernel, operator, shape, target or dependency from kernel.toml
    Remove(RemoveArgs),
    /// Remove the output of builds: target/kforge
    Clean(CleanArgs),
    /// Install the toolchains and libraries that kforge.lock names
    Fetch(FetchArgs),
    /// Update toolchains and libraries in kforge.lock, or pin champions
    Update(UpdateArgs),
    /// Report which tools this machine has, which are missing, and how to install them
    Doctor(DoctorArgs),
    /// Install and list CUDA toolchains
    #[command(subcommand)]
    Toolchain(ToolchainCommand),
    /// Manage the cache that all workspaces share
    #[command(subcommand)]
    Cache(CacheCommand),
    /// Export, import, list and sign evidence from devices
    #[command(subcommand)]
    Evidence(EvidenceCommand),
    /// Package champions with their sources and evidence as an artifact
    Package(PackageArgs),
    /// Verify an artifact: its digests, its signature, and what its evidence shows
    VerifyArtifact(VerifyArtifactArgs),
    /// Publish an artifact to a folder or an OCI registry
    Publish(PublishArgs),
    /// Install published artifacts after verifying them against the keys that you trust
    Install(InstallArgs),
    /// Write a loader of an artifact's kernels: a C header, a Rust crate or a Python package
    Bindings(BindingsArgs),
    /// Build and package twice under changed circumstances, and report every byte that differs
    Reproduce(ReproduceArgs),
    /// Compare champions with those of another revision, and fail if one is slower
    Compare(CompareArgs),
    /// List the kernels that the changes since a revision touch
    Affected(AffectedArgs),
    /// Build what the changes since a revision touch, require evidence, and compare champions
    Ci(CiArgs),
    /// Evaluate kernels that others send over HTTP: a queue in front of builds
    #[cfg(feature = "serve")]
    Serve(ServeArgs),
    /// Show settings and where they come from
    ///
    /// A setting is set in a file: `.kforge/config.toml` in this folder or one above it, or `config.toml` in the home. `build.jobs` is `jobs` in the
    /// table `[build]` there. A variable, such as KFORGE_BUILD_JOBS, comes before files, and `--config build.jobs=4` before variables.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print the path of the manifest
    LocateProject(LocateArgs),
    /// Print a script that completes kforge's words in a shell
    Completions(CompletionsArgs),
    /// Write manual pages, one for each command
    Man(ManArgs),
    /// Print the JSON Schema of something that kforge reads or writes
    Schema(SchemaArgs),
    /// Print the version
    Version,
    /// Execute steps for other machines as a worker of a server such as BuildGrid
    #[command(hide = true)]
    Worker(WorkerArgs),
    /// A plugin: `kforge-NAME` on PATH
    #[command(external_subcommand)]
    External(Vec<String>),
}
