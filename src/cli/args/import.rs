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
    /// Write a package for each task in KernelBench's form; runs tasks confined, and needs PyTorch
    Kernelbench(ImportTasksArgs),
    /// Write a package for each definition of a dataset in FlashInfer-Trace's or SOL-ExecBench's form; runs nothing of it, and needs Python to parse references
    FlashinferTrace(ImportTracesArgs),
    /// Write a package for each task of gpu-mode; needs PyTorch
    GpuMode(ImportGpuModeArgs),
    /// Write the fastest configurations of a cache of Kernel Tuner into the manifest as hints, which a search visits first. No time of the cache is kept
    KernelTuner(ImportTunerArgs),
}

/// `kforge import kernel-tuner`.
#[derive(Debug, Clone, Args)]
pub struct ImportTunerArgs {
    /// A cache of Kernel Tuner
    pub path: PathBuf,
    /// The kernel of the current package
    #[arg(long, value_name = "NAME")]
    pub kernel: String,
    /// A parameter of the cache and the tunable that it is; the others go by their names
    #[arg(long, value_name = "PARAMETER=TUNABLE", value_parser = pair)]
    pub map: Vec<(String, String)>,
    /// The most hints
    #[arg(long, value_name = "N", default_value = "16")]
    pub most: usize,
    /// Report the hints, and leave the manifest as it is
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

/// `A=B` as two names.
fn pair(text: &str) -> Result<(String, String), Malformed> {
    match text.split_once('=') {
        Some((from, to)) if !from.is_empty() && !to.is_empty() => Ok((from.to_string(), to.to_string())),
        _ => Err(Malformed),
    }
}

/// A text that is no pair of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Malformed;

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("expected `PARAMETER=TUNABLE`")
    }
}

impl std::error::Error for Malformed {}

/// `kforge import flashinfer-trace`.
#[derive(Debug, Clone, Args)]
pub struct ImportTracesArgs {
    /// The folder of a dataset: `definitions/`, `workloads/`, `solutions/` and `traces/`, or folders with a `definition.json` each
    pub path: PathBuf,
    /// Folder for the packages
    #[arg(short, long, value_name = "DIR", default_value = "flashinfer-trace")]
    pub output: PathBuf,
    #[command(flatten)]
    pub torch: ImportTorchArgs,
}

/// What the references of tasks need, and what is printed.
#[derive(Debug, Clone, Args)]
pub struct ImportTorchArgs {
    /// PyTorch of the references: `system`, or a release such as `2.9`, whose part for processors is installed
    #[arg(long, value_name = "RELEASE", default_value = "system")]
    pub torch: String,
    /// Report what would be imported, and write nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Output format
    #[arg(long, value_name = "FORMAT", visible_alias = "format", default_value = "human")]
    pub message_format: MessageFormat,
}

/// `kforge import kernelbench`.
#[derive(Debug, Clone, Args)]
pub struct ImportTasksArgs {
    /// A task's `.py` file, or a folder with such files below it
    pub path: PathBuf,
    /// Folder for the packages
    #[arg(short, long, value_name = "DIR", default_value = "kernelbench")]
    pub output: PathBuf,
    /// Kernels of the tasks: a file with a `ModelNew`, or a folder of them
    ///
    /// The folder may be that of a run of KernelBench.
    #[arg(long, value_name = "PATH")]
    pub candidates: Option<PathBuf>,
    /// What their references need.
    #[command(flatten)]
    pub torch: ImportTorchArgs,
}

/// `kforge import gpu-mode`.
#[derive(Debug, Clone, Args)]
pub struct ImportGpuModeArgs {
    /// A `task.yml`, or a folder with such files below it
    pub path: PathBuf,
    /// Folder for the packages
    #[arg(short, long, value_name = "DIR", default_value = "gpu-mode")]
    pub output: PathBuf,
    /// Submissions: a file with a `custom_kernel`, or a folder of them
    #[arg(long, value_name = "PATH")]
    pub candidates: Option<PathBuf>,
    /// What their references need.
    #[command(flatten)]
    pub torch: ImportTorchArgs,
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
