//! Arguments of commands that manage stored files: `clean`, `fetch`, `update`, `toolchain`, `cache`, `evidence`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{MessageFormat, Select};

/// `kforge clean`.
#[derive(Debug, Clone, Args)]
pub struct CleanArgs {
    /// Print what would be removed, without removing it
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

/// `kforge doctor`.
#[derive(Debug, Clone, Args)]
pub struct DoctorArgs {
    /// Report what the server of `remote.url` can do, and let one of its workers answer a trial step
    #[arg(long)]
    pub remote: bool,
}

/// `kforge fetch`.
#[derive(Debug, Clone, Args)]
pub struct FetchArgs {
    /// Also install nvcc, which only kernels with host headers or host code need
    #[arg(long)]
    pub nvcc: bool,
}

/// `kforge update`.
#[derive(Debug, Clone, Args)]
pub struct UpdateArgs {
    /// Pin the champions of the last build instead: a pinned champion wins ties
    #[arg(long)]
    pub champions: bool,
    /// Print what would change, without writing it
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

/// `kforge toolchain`.
#[derive(Debug, Clone, Subcommand)]
pub enum ToolchainCommand {
    /// Install the toolchains and libraries that kforge.lock names, as `kforge fetch` does
    Install(FetchArgs),
    /// List installed toolchains and their wheels
    List,
}

/// `kforge cache`.
#[derive(Debug, Clone, Subcommand)]
pub enum CacheCommand {
    /// Remove entries until the cache is within cache.max-age and cache.max-size
    Gc,
    /// Print the size of each part of the cache
    Du,
    /// Check the digest of every entry and remove corrupt ones
    Verify,
}

/// `kforge evidence`.
#[derive(Debug, Clone, Subcommand)]
pub enum EvidenceCommand {
    /// Write the evidence of the current plan to a bundle
    Export(EvidenceExport),
    /// Import bundles into the home, for builds of every workspace
    Import(EvidenceImport),
    /// List records with their devices and times
    List(EvidenceList),
    /// Sign bundles with an SSH key
    Sign(EvidenceSign),
    /// Say who signed bundles; exit with code 103 unless trusted keys signed all of them
    Verify(EvidenceVerify),
    /// List the keys that may sign evidence, or add one, for evidence or for artifacts
    Trust(EvidenceTrust),
}

/// `kforge evidence sign`.
#[derive(Debug, Clone, Args)]
pub struct EvidenceSign {
    /// Bundles to sign, in place
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Private key, or the public half of a key in ssh-agent or in a security key
    #[arg(long, value_name = "PATH", required_unless_present = "once", conflicts_with = "once")]
    pub key: Option<PathBuf>,
    /// Sign with a new key that is discarded, and write its public half as a line of this allowed_signers file
    #[arg(long, value_name = "PUBLIC_FILE", requires = "principal")]
    pub once: Option<PathBuf>,
    /// Who signs, in the line that --once writes
    #[arg(long, value_name = "NAME", requires = "once")]
    pub principal: Option<String>,
    /// Replace signatures of other keys
    #[arg(long)]
    pub replace: bool,
}

/// `kforge evidence verify`.
#[derive(Debug, Clone, Args)]
pub struct EvidenceVerify {
    /// Bundles to check
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Trust the keys in the repository's .kforge/allowed_signers as it is in REV
    #[arg(long, value_name = "REV")]
    pub base: Option<String>,
    /// Output format
    #[arg(long, value_name = "FORMAT", visible_alias = "format", default_value = "human")]
    pub message_format: MessageFormat,
}

/// What an added key may sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the values of the option")]
pub enum KeyFor {
    Evidence,
    Artifacts,
}

/// `kforge evidence trust`.
#[derive(Debug, Clone, Args)]
pub struct EvidenceTrust {
    /// Add a key for this principal
    #[arg(long, num_args = 2, value_names = ["PRINCIPAL", "KEY.pub"])]
    pub add: Option<Vec<String>>,
    /// What the added key may sign: bundles of evidence, or artifacts that verify-artifact and install read
    #[arg(long = "for", value_name = "WHAT", default_value = "evidence", requires = "add")]
    pub purpose: KeyFor,
    /// File to add the key to [default: the file that counts here, or for evidence the repository's
    /// .kforge/allowed_signers]
    #[arg(long, value_name = "FILE", requires = "add")]
    pub file: Option<PathBuf>,
    /// List the keys in the repository's .kforge/allowed_signers as it is in REV
    #[arg(long, value_name = "REV", conflicts_with = "add")]
    pub base: Option<String>,
    /// Output format
    #[arg(long, value_name = "FORMAT", visible_alias = "format", default_value = "human")]
    pub message_format: MessageFormat,
}

/// `kforge evidence export`.
#[derive(Debug, Clone, Args)]
pub struct EvidenceExport {
    /// The selection.
    #[command(flatten)]
    pub select: Select,
    /// Output file [default: evidence/PRODUCT.kfe beside the root manifest, where builds find it]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Export every record of a question, not only the one that answers it
    #[arg(long)]
    pub all: bool,
}

/// `kforge evidence import`.
#[derive(Debug, Clone, Args)]
pub struct EvidenceImport {
    /// Bundles to import
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

/// `kforge evidence list`.
#[derive(Debug, Clone, Args)]
pub struct EvidenceList {
    /// The selection.
    #[command(flatten)]
    pub select: Select,
    /// List the records of this bundle
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// List all records, not only those of the current plan
    #[arg(long)]
    pub all: bool,
    /// Output format
    #[arg(long, value_name = "FORMAT", visible_alias = "format", default_value = "human")]
    pub message_format: MessageFormat,
}
