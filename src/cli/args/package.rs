//! The words of what makes and edits packages: `new`, `init`, `add`, `remove`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

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
    /// The folder to make; its last part becomes the package's name
    pub path: PathBuf,
    /// The package's name, where it is not the folder's
    #[arg(long)]
    pub name: Option<String>,
    /// The kernel to start from
    #[arg(long, value_name = "TEMPLATE", default_value = "elementwise")]
    pub template: Template,
}

/// `kforge init`.
#[derive(Debug, Clone, Args)]
pub struct InitArgs {
    /// The package's name, where it is not the folder's
    #[arg(long)]
    pub name: Option<String>,
    /// The kernel to start from
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
    /// Its fields, as in kernel.toml: arch=sm_90a, rows=1, role=bench
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
