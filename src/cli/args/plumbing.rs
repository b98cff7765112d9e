//! Arguments of `config`, `locate-project`, `completions`, `man`, `schema` and `worker`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// `kforge config`.
#[derive(Debug, Clone, Subcommand)]
pub enum ConfigCommand {
    /// List all settings with their values and sources
    List,
    /// Show one setting, or the settings of a table, with their sources
    Get {
        /// The setting, such as `build.jobs`, or a table, such as `build`
        key: Option<String>,
    },
}

/// `kforge locate-project`.
#[derive(Debug, Clone, Args)]
pub struct LocateArgs {
    /// Print the path of the workspace root's manifest
    #[arg(long)]
    pub workspace: bool,
    /// Output format
    #[arg(long, value_name = "FORMAT", visible_alias = "format", default_value = "json")]
    pub message_format: LocateFormat,
}

/// Forms of a located path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the values of the option")]
pub enum LocateFormat {
    Plain,
    Json,
}

/// `kforge completions`.
#[derive(Debug, Clone, Args)]
pub struct CompletionsArgs {
    /// Shell to generate the script for
    pub shell: clap_complete::Shell,
}

/// `kforge man`.
#[derive(Debug, Clone, Args)]
pub struct ManArgs {
    /// Folder for the pages, such as ~/.local/share/man/man1
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// `kforge schema`.
#[derive(Debug, Clone, Args)]
pub struct SchemaArgs {
    /// Name of the schema
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

/// `kforge worker --bots URL`. `dispatch` handles the other arguments of `kforge worker`.
#[derive(Debug, Clone, Args)]
pub struct WorkerArgs {
    /// Server that gives work by the Remote Workers API, such as BuildGrid: grpcs://HOST:PORT, or grpc://HOST:PORT without encryption
    #[arg(long, value_name = "URL")]
    pub bots: String,
    /// Instance at the server; by default that of `remote.instance-name`
    #[arg(long, value_name = "NAME")]
    pub instance: Option<String>,
    /// Name of this worker, which no other worker of the server has; by default the machine's name and the number of the process
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Hold no device and execute no step that needs one
    #[arg(long)]
    pub no_device: bool,
}
