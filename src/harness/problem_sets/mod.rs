//! Describes task files of problem sets: which tensors a task has, which of its integers its shapes depend on, and what its results show. Others wrote
//! task files, so they run confined, each in a process of its own. Knows PyTorch's `meta` device by the programs below; knows no manifests.
//!
//! | program | does |
//! |---|---|
//! | `meta.py` | evaluates a task without values |
//! | `shapes.py` | which integers can have other values, and small and ragged sizes |
//! | `values.py` | values at a small size: random numbers, changed buffers, constant results |
//! | `driver.py` | a task in KernelBench's form |
//! | `gpu_mode.py` | a task of gpu-mode |
//! | `apart.py` | one process for each task |

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::confine::{self, Confinement};
use crate::message::Response;
use crate::oracle::python::Interpreter;
use crate::oracle::torch::NO_TORCH;
use kforge_foundation::process::{Command, End, Limits, run};
use kforge_project::toolchain::python::{LEFT_OUT, TORCH};

/// Describes tasks in KernelBench's form.
const KERNELBENCH: &str = concat!(
    include_str!("../oracle/known.py"),
    "\n\n",
    include_str!("../oracle/read_call.py"),
    "\n\n",
    include_str!("../oracle/torch_imports.py"),
    "\n\n",
    include_str!("../oracle/torch_call.py"),
    "\n\n",
    include_str!("../oracle/torch_module.py"),
    "\n\n",
    include_str!("meta.py"),
    "\n\n",
    include_str!("shapes.py"),
    "\n\n",
    include_str!("values.py"),
    "\n\n",
    include_str!("apart.py"),
    "\n\n",
    include_str!("driver.py"),
);
/// Describes tasks of gpu-mode.
const GPU_MODE: &str = concat!(
    include_str!("../oracle/known.py"),
    "\n\n",
    include_str!("../oracle/read_call.py"),
    "\n\n",
    include_str!("../oracle/torch_imports.py"),
    "\n\n",
    include_str!("../oracle/torch_call.py"),
    "\n\n",
    include_str!("../oracle/torch_module.py"),
    "\n\n",
    include_str!("../oracle/torch_processor.py"),
    "\n\n",
    include_str!("meta.py"),
    "\n\n",
    include_str!("apart.py"),
    "\n\n",
    include_str!("gpu_mode.py"),
);

/// Address space of the programs. PyTorch alone takes 1.5 GB of it.
const ADDRESSES: u64 = 8 << 30;

/// The form of tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskForm {
    /// KernelBench's: a module and the functions that give its arguments.
    KernelBench,
    /// gpu-mode's: a function of one value, and one that makes it.
    GpuMode,
}

impl TaskForm {
    /// The program that describes such tasks.
    fn driver(self) -> &'static str {
        match self {
            TaskForm::KernelBench => KERNELBENCH,
            TaskForm::GpuMode => GPU_MODE,
        }
    }

    /// What is called of a task, for messages.
    fn called(self) -> &'static str {
        match self {
            TaskForm::KernelBench => "Model",
            TaskForm::GpuMode => "ref_kernel",
        }
    }
}

/// A task.
#[derive(Debug, Clone)]
pub struct TaskText {
    /// Its files by name: the one that is loaded, and those that it imports.
    pub files: Vec<(String, String)>,
    /// The file that is loaded.
    pub main: &'static str,
    /// What the program reads of it, by name: constants, cases.
    pub asked: serde_json::Map<String, Value>,
}

/// What describes tasks, and within which limits.
#[derive(Debug)]
pub struct Describer<'a> {
    /// The program that executes steps: it confines, then becomes Python.
    pub worker: &'a Path,
    /// The Python interpreter.
    pub python: &'a Path,
    /// The tools of PyTorch by the names that references use.
    pub torch: &'a BTreeMap<String, PathBuf>,
    /// An empty folder.
    pub scratch: &'a Path,
    /// How long one task may take.
    pub limit: Duration,
    /// Whether tasks run even if the system cannot confine them.
    pub allow_unconfined: bool,
    /// Ends it once it is set.
    pub interrupted: &'a AtomicBool,
}

/// Why tasks cannot be described.
#[derive(Debug, thiserror::Error)]
pub enum DescribeError {
    /// The system lacks what confines them.
    #[error("{}", confine::refusal("tasks", missing))]
    Unconfined {
        /// What is missing, one sentence each.
        missing: Vec<String>,
    },
    /// Python cannot import PyTorch.
    #[error("`{}` cannot import PyTorch: {why}", python.display())]
    NoTorch {
        /// The interpreter.
        python: PathBuf,
        /// What it says.
        why: String,
    },
    /// Python does not answer.
    #[error("cannot ask `{}` for its paths", .0.display())]
    Python(PathBuf),
    /// The program ended before its work was done.
    #[error("describing tasks {end}: {said}")]
    Ended {
        /// How it ended.
        end: End,
        /// What it said last.
        said: String,
    },
    /// A file cannot be written, or the program cannot be started.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The call cannot be written.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// The call, as the driver reads it.
#[derive(Serialize)]
struct Described<'a> {
    root: PathBuf,
    torch: &'a Path,
    packages: [&'static str; TORCH.len()],
    stubs: Vec<&'a Path>,
    numpy: Option<&'a Path>,
    library: &'a [PathBuf],
    left_out: [&'static str; LEFT_OUT.len()],
    module: &'static str,
    function: &'static str,
    train: bool,
    seconds: u64,
    tasks: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    folder: String,
    file: &'static str,
    #[serde(flatten)]
    asked: &'a serde_json::Map<String, Value>,
}

/// Describes tasks, in one process that imports PyTorch once. Gives the JSON text of each answer; none for a task that took longer than its limit or ended its
/// process.
///
/// # Errors
/// [`DescribeError`].
pub fn describe(of: &Describer<'_>, form: TaskForm, tasks: &[TaskText]) -> Result<Vec<Option<Vec<u8>>>, DescribeError> {
    let missing = confine::missing_here().missing;
    if !missing.is_empty() && !of.allow_unconfined {
        return Err(DescribeError::Unconfined { missing });
    }
    let interpreter = Interpreter::of(of.python).map_err(|_: Response| DescribeError::Python(of.python.into()))?;
    let root = of.scratch.join("tasks");
    let mut entries = vec![];
    for (at, task) in tasks.iter().enumerate() {
        let folder = at.to_string();
        std::fs::create_dir_all(root.join(&folder))?;
        for (name, text) in &task.files {
            std::fs::write(root.join(&folder).join(name), text)?;
        }
        entries.push(Entry { folder, file: task.main, asked: &task.asked });
    }
    let none = PathBuf::new();
    let folder = of.torch.get("torch").unwrap_or(&none);
    let stubs = of.torch.iter().filter(|(name, _)| name.starts_with("torch-stub:")).map(|(_, path)| path.as_path());
    let described = Described {
        root,
        torch: folder,
        packages: TORCH,
        stubs: stubs.collect(),
        numpy: interpreter.numpy.as_deref(),
        library: &interpreter.library,
        left_out: LEFT_OUT,
        // Each task has its own.
        module: "",
        function: form.called(),
        train: true,
        seconds: of.limit.as_secs().max(1),
        tasks: entries,
    };
    std::fs::write(of.scratch.join("call.json"), serde_json::to_vec(&described)?)?;
    std::fs::write(of.scratch.join("driver.py"), form.driver())?;
    let mut read = interpreter.folders.clone();
    read.push(folder.clone());
    let limits = Limits {
        address_space: Some(ADDRESSES),
        open_files: Some(512),
        die_with: Some(std::process::id()),
        ..Limits::default()
    };
    let keep =
        Confinement { scratch: Some(of.scratch.to_path_buf()), read, programs: true, limits, ..Confinement::default() };
    let mut command = Command::new(of.worker)
        .args(["worker", "--confined", &serde_json::to_string(&keep)?])
        .arg(&interpreter.executable);
    command = command.args(["-S", "-s", "-P", "-B", "driver.py", "call.json"]).dir(of.scratch);
    for name in ["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"] {
        command = command.env(name, "1");
    }
    command = command.env("PYTHONHASHSEED", "0");
    // The import, and every task.
    let all = of.limit * u32::try_from(tasks.len() + 1).unwrap_or(u32::MAX);
    let finished = run(&command, Some(all), of.interrupted)?;
    match finished.end {
        end if end.success() => {}
        End::Exited(NO_TORCH) => {
            let why = finished.stdout.text().trim().to_string();
            return Err(DescribeError::NoTorch { python: interpreter.executable, why });
        }
        // What was answered before counts.
        End::TimedOut(_) => {}
        end => {
            let text = finished.stderr.text();
            let said = text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
            return Err(DescribeError::Ended { end, said: said.to_string() });
        }
    }
    let answer = |at: usize| std::fs::read(of.scratch.join(format!("answer-{at}.json"))).ok();
    Ok((0..tasks.len()).map(answer).collect())
}
