//! Arguments of `kforge import`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::MessageFormat;

/// `kforge import`.
#[derive(Debug, Clone, Subcommand)]
pub enum ImportCommand {
    /// Write kernel.toml for the kernels of a CUDA C++ source, or of all sources below a folder
    Cuda(ImportCudaArgs),
    /// Write kernel.toml for the kernels of a Python source in Triton, or of all sources below a folder; parses them, and runs nothing of them
    Triton(ImportTritonArgs),
    /// Write a package for each task in KernelBench's form: its module is the reference. Runs tasks confined, and needs PyTorch
    Kernelbench(ImportTasksArgs),
}

/// `kforge import kernelbench`.
#[derive(Debug, Clone, Args)]
pub struct ImportTasksArgs {
    /// A task's `.py` file, or a folder with such files below it
    pub path: PathBuf,
    /// Folder for the packages
    #[arg(short, long, value_name = "DIR", default_value = "kernelbench")]
    pub output: PathBuf,
    /// Kernels of the tasks: a file with a `ModelNew`, or a folder with such files below it, as a run of KernelBench leaves them
    #[arg(long, value_name = "PATH")]
    pub candidates: Option<PathBuf>,
    /// PyTorch of the references: `system`, or a release such as `2.9`, whose part for processors is installed
    #[arg(long, value_name = "RELEASE", default_value = "system")]
    pub torch: String,
    /// Output format
    #[arg(long, value_name = "FORMAT", visible_alias = "format", default_value = "human")]
    pub message_format: MessageFormat,
}

/// `kforge import cuda`.
#[derive(Debug, Clone, Args)]
pub struct ImportCudaArgs {
    /// A `.cu` or `.cuh` file, or a folder
    pub path: PathBuf,
    #[command(flatten)]
    pub written: ImportWrittenArgs,
}

/// `kforge import triton`.
#[derive(Debug, Clone, Args)]
pub struct ImportTritonArgs {
    /// A `.py` file, or a folder
    pub path: PathBuf,
    #[command(flatten)]
    pub written: ImportWrittenArgs,
}

/// What is written for imported kernels.
#[derive(Debug, Clone, Args)]
pub struct ImportWrittenArgs {
    /// Name of the package [default: the name of the folder]
    #[arg(long)]
    pub name: Option<String>,
    /// File to write; its folder is that of the package [default: kernel.toml in the folder, or beside the file]
    #[arg(short, long, value_name = "FILE", conflicts_with = "stdout")]
    pub output: Option<PathBuf>,
    /// Print the manifest, and write no file
    #[arg(long, conflicts_with = "message_format")]
    pub stdout: bool,
    /// Output format
    #[arg(long, value_name = "FORMAT", visible_alias = "format", default_value = "human")]
    pub message_format: MessageFormat,
}
