//! Arguments of `package`, `verify-artifact`, `publish`, `install`, `bindings` and `reproduce`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{MessageFormat, SelectPackages};
use kforge_project::workspace::select::SelectionArgs;

/// The selection of whole packages for targets.
#[derive(Debug, Clone, Default, Args)]
pub struct SelectWhole {
    /// The packages.
    #[command(flatten)]
    pub packages: SelectPackages,
    /// Select targets by name or glob [default: every GPU target]
    #[arg(long, value_name = "NAME", help_heading = "Selection")]
    pub target: Vec<String>,
}

impl SelectWhole {
    /// The selection in the form that operations take.
    pub fn words(&self) -> SelectionArgs {
        SelectionArgs { targets: self.target.clone(), ..self.packages.words() }
    }
}

/// `kforge package`.
#[derive(Debug, Clone, Default, Args)]
pub struct PackageArgs {
    /// The selection.
    #[command(flatten)]
    pub select: SelectWhole,
    /// Folder to write the artifacts into [default: target/kforge/package]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Sign with this private key, or with the public half of a key in ssh-agent or in a security key
    #[arg(long, value_name = "PATH")]
    pub sign_key: Option<PathBuf>,
    /// Also package evidence that is only claimed; the artifact then says so
    #[arg(long)]
    pub allow_claimed: bool,
    /// Number of steps to run in parallel; -N means all cores except N
    #[arg(short, long, value_name = "N", allow_hyphen_values = true)]
    pub jobs: Option<i64>,
    /// Report what would be packaged, and write no artifact
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Output format
    #[arg(hide_short_help = true, long, value_name = "FORMAT", visible_alias = "format", default_value = "human")]
    pub message_format: MessageFormat,
}

/// `kforge reproduce`.
#[derive(Debug, Clone, Default, Args)]
pub struct ReproduceArgs {
    /// The selection.
    #[command(flatten)]
    pub select: SelectWhole,
    /// Output format
    #[arg(hide_short_help = true, long, value_name = "FORMAT", visible_alias = "format", default_value = "human")]
    pub message_format: MessageFormat,
}

/// The global option `--trust` as it is for artifacts: the value is the global one, and only the help differs.
#[derive(Debug, Clone, Default, Args)]
pub struct TrustForArtifacts {
    /// File of the keys that may sign artifacts [default: the setting evidence.trust; a repository's list never counts]
    #[arg(
        hide_short_help = true,
        long,
        value_name = "FILE",
        global = true,
        help_heading = "Common options",
        display_order = 100
    )]
    pub trust: Option<PathBuf>,
}

/// `kforge verify-artifact`.
#[derive(Debug, Clone, Args)]
pub struct VerifyArtifactArgs {
    /// The folder or the archive of an artifact
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
    /// Build its sources again, and compare the machine code
    #[arg(long)]
    pub rebuild: bool,
    /// Verify and time its champions again on the devices of this machine, and compare with its evidence
    #[arg(long)]
    pub rerun: bool,
    /// Do not require the signature of a trusted key
    #[arg(long)]
    pub allow_untrusted: bool,
    /// Output format
    #[arg(hide_short_help = true, long, value_name = "FORMAT", visible_alias = "format", default_value = "human")]
    pub message_format: MessageFormat,
    /// Whom to trust.
    #[command(flatten)]
    pub trust: TrustForArtifacts,
}

/// `kforge publish`.
#[derive(Debug, Clone, Args)]
pub struct PublishArgs {
    /// The folder or the archive of an artifact
    #[arg(value_name = "ARTIFACT")]
    pub artifact: PathBuf,
    /// A folder, oci://HOST/NAME[:TAG], or kernels://FOLDER for a repository that Hugging Face `kernels` loads
    #[arg(value_name = "DESTINATION")]
    pub destination: String,
    /// Tag to publish under [default: the version of the package]
    #[arg(long, value_name = "TAG")]
    pub tag: Option<String>,
    /// Replace another artifact that has this tag, or is in this repository for `kernels`
    #[arg(long)]
    pub replace: bool,
    /// Also publish an artifact that is not signed
    #[arg(long)]
    pub allow_unsigned: bool,
    /// Reach the registry by http; registries on this machine are reached so anyway
    #[arg(long)]
    pub plain_http: bool,
    /// Report what would be published, and write nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Output format
    #[arg(hide_short_help = true, long, value_name = "FORMAT", visible_alias = "format", default_value = "human")]
    pub message_format: MessageFormat,
}

/// `kforge install`.
#[derive(Debug, Clone, Args)]
pub struct InstallArgs {
    /// Artifacts, folders with published artifacts (PATH[:TAG]), or oci://HOST/NAME[:TAG|@DIGEST] [default: what
    /// kforge-install.lock says]
    #[arg(value_name = "SOURCE")]
    pub sources: Vec<String>,
    /// Folder to install into [default: kernels]
    #[arg(long, value_name = "DIR", requires = "sources")]
    pub into: Option<PathBuf>,
    /// Do not require the signature of a trusted key
    #[arg(long)]
    pub allow_untrusted: bool,
    /// Accept an older version, another source, or other contents than kforge-install.lock says
    #[arg(long, requires = "sources")]
    pub update: bool,
    /// Reach registries by http; registries on this machine are reached so anyway
    #[arg(long)]
    pub plain_http: bool,
    /// Report what would be installed, and write nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Output format
    #[arg(hide_short_help = true, long, value_name = "FORMAT", visible_alias = "format", default_value = "human")]
    pub message_format: MessageFormat,
    /// Whom to trust.
    #[command(flatten)]
    pub trust: TrustForArtifacts,
}

/// Languages of loaders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the values of the option")]
pub enum LoaderLanguage {
    C,
    Rust,
    Python,
}

/// `kforge bindings`.
#[derive(Debug, Clone, Args)]
pub struct BindingsArgs {
    /// The folder or the archive of an artifact
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
    /// Language of the loader: a header for C and C++, a crate, or a folder for Hugging Face `kernels`
    #[arg(short, long, value_name = "LANGUAGE")]
    pub language: LoaderLanguage,
    /// Folder to write [default: PACKAGE-LANGUAGE]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Also write a wheel of the Python package, into `dist` of the folder
    #[arg(long)]
    pub wheel: bool,
    /// Output format
    #[arg(hide_short_help = true, long, value_name = "FORMAT", visible_alias = "format", default_value = "human")]
    pub message_format: MessageFormat,
}
