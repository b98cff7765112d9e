//! Arguments of `ci` and `affected`.

use std::path::PathBuf;

use clap::Args;

use super::build::percent;
use super::{MessageFormat, RequiredStanding, Select};

/// `kforge affected`.
#[derive(Debug, Clone, Args)]
pub struct AffectedArgs {
    /// Git revision with which the working tree is compared
    #[arg(value_name = "REV")]
    pub base: String,
    /// The selection.
    #[command(flatten)]
    pub select: Select,
    /// Output format
    #[arg(long, value_name = "FORMAT", visible_alias = "message-format", default_value = "human")]
    pub format: MessageFormat,
}

/// `kforge ci`.
#[derive(Debug, Clone, Args)]
pub struct CiArgs {
    /// Git revision with which the working tree is compared, such as the base of a pull request [default: build everything]
    #[arg(long, value_name = "REV")]
    pub base: Option<String>,
    /// The selection.
    #[command(flatten)]
    pub select: Select,
    /// Difference in time, in percent, below which base and working tree count as equal
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = percent)]
    pub margin: f64,
    /// Which evidence counts: that of this machine and of keys that the base trusts, or with `claimed` also evidence that nobody whom you trust signed
    #[arg(
        hide_short_help = true,
        long,
        value_name = "STANDING",
        num_args = 0..=1,
        require_equals = true,
        default_value = "signed",
        default_missing_value = "signed"
    )]
    pub require_evidence: RequiredStanding,
    /// Note missing or undecided evidence instead of exiting with code 103
    #[arg(hide_short_help = true, long)]
    pub allow_missing_evidence: bool,
    /// If nothing is wrong, also package what the change touches, whole packages at a time, into the folder `package` beside the reports
    #[arg(hide_short_help = true, long, conflicts_with_all = ["kernel", "operator", "shape"])]
    pub artifacts: bool,
    /// Sign the artifacts with this private key, or with the public half of a key in ssh-agent or in a security key
    #[arg(hide_short_help = true, long, value_name = "PATH", requires = "artifacts")]
    pub sign_key: Option<PathBuf>,
    /// Folder for ci.json and the other reports [default: target/kforge/ci]
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Number of steps to run in parallel; -N means all cores except N
    #[arg(hide_short_help = true, short, long, value_name = "N", allow_hyphen_values = true)]
    pub jobs: Option<i64>,
}
