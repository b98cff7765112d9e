//! The words of what kforge keeps: `clean`, `fetch`, `update`, `toolchain`, `cache`, `evidence`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{MessageFormat, Select};

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
