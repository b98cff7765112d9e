//! The words of what kforge says of itself and of where it stands: `config`, `locate-project`, `completions`, `schema`; and of what it has other processes do.

use clap::{Args, Subcommand, ValueEnum};

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
    let mut names: Vec<&str> =
        kforge_pipeline::report::schemas::NAMES.into_iter().chain(kforge_pipeline::release::SCHEMAS).collect();
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
