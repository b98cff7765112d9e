//! Arguments of commands that create and edit packages: `new`, `init`, `add`, `remove`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Templates of packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the values of the option")]
pub enum Template {
    Elementwise,
    RowReduction,
    Matmul,
}

/// CI services for which a workflow can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the values of the option")]
pub enum Ci {
    Github,
    Gitlab,
}

/// `kforge new`.
#[derive(Debug, Clone, Args)]
pub struct NewArgs {
    /// Folder to create; its last component becomes the name of the package
    pub path: PathBuf,
    /// Name of the package [default: the name of the folder]
    #[arg(long)]
    pub name: Option<String>,
    /// Template of the first kernel
    #[arg(long, value_name = "TEMPLATE", default_value = "elementwise")]
    pub template: Template,
    /// Also write a workflow for a CI service, at the root of the repository
    #[arg(long, value_name = "SERVICE")]
    pub ci: Option<Ci>,
}

/// `kforge init`.
#[derive(Debug, Clone, Args)]
pub struct InitArgs {
    /// Name of the package [default: the name of the folder]
    #[arg(long)]
    pub name: Option<String>,
    /// Template of the first kernel
    #[arg(long, value_name = "TEMPLATE", default_value = "elementwise")]
    pub template: Template,
    /// Also write a workflow for a CI service, at the root of the repository; only the workflow if the folder has a package
    #[arg(long, value_name = "SERVICE")]
    pub ci: Option<Ci>,
}

/// The kinds of entries in a manifest.
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
    /// Name; for a shape, OPERATOR.SHAPE
    pub name: String,
    /// Fields as in kernel.toml, such as arch=sm_90a, rows=1, role=bench
    #[arg(value_name = "FIELD=VALUE")]
    pub fields: Vec<String>,
}

/// `kforge remove`.
#[derive(Debug, Clone, Args)]
pub struct RemoveArgs {
    /// What to remove
    pub item: Item,
    /// Name; for a shape, OPERATOR.SHAPE
    pub name: String,
}
