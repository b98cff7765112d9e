//! Runs a kernel in Triton on prepared buffers with Triton's interpreter, in a confined Python process, and waits for its end. Knows processes and limits, but
//! not which values are correct.
//!
//! The process reports as the emulator's runner does. It imports the source, so all of its reports may be forged: as those of a runner, they can only make a
//! result worse or unknown.
//!
//! | decision | reason |
//! |---|---|
//! | Python runs confined in a process of its own, as references do | a source is a program that runs while it is imported |
//! | what a source takes from PyTorch does nothing (`kforge_jitted.py`) | only wrappers around kernels use it |
//! | buffers are the verifier's memory files, mapped (`kforge_memory.py`) | nothing is copied, and the judge reads them after the process has ended |
//! | every access is checked before it happens (`kforge_memory.py`) | the interpreter follows any address |
//! | programs run in three orders; what nothing orders is a race (`kforge_memory.py`) | a device runs programs at once |
//! | functions of CUDA's libdevice are computed (`kforge_libdevice.py`) | the interpreter has their names only |
//! | arithmetic of bf16 and fp8 is replaced (`kforge_narrow.py`) | the interpreter computes with their bits as integers |
//! | what is not replaced there, and what the interpreter lacks, is not emulated | an unknown result is better than a wrong one |
//! | all runs of several trials are in one process | importing Triton takes half a second, and a Triton function keeps nothing between launches |

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::Serialize;
use tempfile::TempDir;

use super::runs::{EndedRunner, NotRun};
use crate::steps::interpreted::Interpretable;
use kforge_emulator::{gaps, placement};
use kforge_foundation::process::{Command, End, Limits, Room, run};
use kforge_harness::arguments;
use kforge_harness::confine::{self, Confinement};
use kforge_harness::memory_file::MemoryFile;
use kforge_harness::message::{Response, RunnerTrial, SharedBuffer, ThreadOrder};
use kforge_harness::reports::hear;
use kforge_harness::task::{Task, failed};
use kforge_harness::triton::{JITTED, JITTED_NAME};
use kforge_types::model::bound::{Arg, Launch};
use kforge_types::record::params::{INTERPRETER_NUMPY, INTERPRETER_PYTHON};

/// The programs in Python by their names in the working folder. `driver.py` is started.
const PROGRAMS: [(&str, &str); 5] = [
    ("driver.py", include_str!("driver.py")),
    ("kforge_libdevice.py", include_str!("kforge_libdevice.py")),
    ("kforge_memory.py", include_str!("kforge_memory.py")),
    ("kforge_narrow.py", include_str!("kforge_narrow.py")),
    (JITTED_NAME, JITTED),
];
/// Bytes of reports that are kept.
const REPORTS: usize = 4 << 20;
/// Memory that Python, numpy and Triton take, beyond what the kernel may take.
const OWN: u64 = 1 << 30;
/// Address space that they take: Triton's library is half a gigabyte.
const ADDRESSES: u64 = 8 << 30;
/// The most processes and threads.
const PROCESSES: usize = 32;
/// The most bytes and files that a kernel may leave in the working folder while it runs.
const FILES: (u64, usize) = (64 << 20, 1000);

/// A kernel that can be run.
pub(super) struct Interpreted<'a> {
    task: &'a Task,
    kernel: Interpretable,
    launches: Vec<LaunchAsked>,
    folder: TempDir,
}

/// What the program reads: one line on its standard input.
#[derive(Serialize)]
struct Asked<'a> {
    /// The folder of Triton.
    triton: &'a Path,
    /// How many seconds a run may take.
    limit: f64,
    kernel: &'a Interpretable,
    launches: &'a [LaunchAsked],
    runs: Vec<RunAsked<'a>>,
}

/// A run.
#[derive(Serialize)]
struct RunAsked<'a> {
    /// The order of programs.
    order: ThreadOrder,
    buffers: Vec<BufferAsked<'a>>,
}

/// A buffer in its memory file.
#[derive(Serialize)]
struct BufferAsked<'a> {
    #[serde(flatten)]
    shared: &'a SharedBuffer,
    /// The bytes of the file, and where the buffer begins in it.
    file: u64,
    offset: u64,
    /// The inaccessible bytes before the buffer's file.
    gap: u64,
}

/// A launch.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum LaunchAsked {
    Memset { buffer: String, value: u8 },
    Kernel { entry: String, grid: [u32; 3], args: Vec<ArgAsked> },
}

/// An argument.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum ArgAsked {
    /// An address in a buffer.
    Pointer { buffer: String, offset: u64 },
    /// The bytes of a scalar, as hexadecimal digits.
    Scalar(String),
    /// A tensor descriptor: extents, strides in elements and block, the outermost axis first.
    Descriptor { buffer: String, shape: Vec<u64>, strides: Vec<u64>, block: Vec<u32>, nan: bool },
}

impl<'a> Interpreted<'a> {
    /// Prepares a kernel, given as the binary of its compile step.
    ///
    /// # Errors
    /// The binary is none of a kernel in Triton, or a working folder cannot be written.
    pub(super) fn new(task: &'a Task, binary: &[u8], launches: &[Launch]) -> Result<Self, Response> {
        let kernel: Interpretable = serde_json::from_slice(binary)
            .map_err(|e| failed(format!("not a kernel for Triton's interpreter: {e}")))?;
        let io = |e: std::io::Error| failed(format!("cannot prepare Triton's interpreter: {e}"));
        let folder = tempfile::Builder::new().prefix(".interpreter-").tempdir_in(&task.output).map_err(io)?;
        for (name, text) in PROGRAMS {
            std::fs::write(folder.path().join(name), text).map_err(io)?;
        }
        // Other packages beside numpy stay out of reach.
        let numpy = task.tool(INTERPRETER_NUMPY)?;
        let site = folder.path().join("site");
        std::fs::create_dir(&site).map_err(io)?;
        let beside = numpy.with_file_name("numpy.libs");
        for (name, from) in [("numpy", numpy), ("numpy.libs", beside.as_path())] {
            if from.is_dir() {
                std::os::unix::fs::symlink(from, site.join(name)).map_err(io)?;
            }
        }
        Ok(Interpreted { task, kernel, launches: launches.iter().map(asked).collect(), folder })
    }

    /// Runs the kernel on each set of buffers, which are in `files`, one after another in one new process. Waits at most `time` until the process and its group
    /// have ended.
    pub(super) fn run(
        &self,
        trials: &[RunnerTrial],
        files: &[MemoryFile],
        time: Duration,
    ) -> Result<EndedRunner, NotRun> {
        let (python, triton) = (self.tool(INTERPRETER_PYTHON)?, self.tool("triton")?);
        let runs = trials.iter().map(|trial| RunAsked {
            order: trial.order,
            buffers: trial.buffers.iter().map(|shared| place(shared, trial.guard_after)).collect(),
        });
        let limit = self.task.run_limit.as_secs_f64();
        let asked = Asked { triton, limit, kernel: &self.kernel, launches: &self.launches, runs: runs.collect() };
        let line = serde_json::to_string(&asked).map_err(NotRun::Describe)? + "\n";
        let buffers: u64 = trials.iter().flat_map(|trial| &trial.buffers).map(|buffer| buffer.bytes).sum();
        let keep = self.confinement(files, trials, buffers, time);
        let keep = serde_json::to_string(&keep).map_err(NotRun::Describe)?;
        let room = Room {
            processes: PROCESSES,
            memory: self.task.memory_limit.saturating_add(OWN).saturating_add(buffers.saturating_mul(2)),
            folder: self.folder.path().to_path_buf(),
            bytes: FILES.0,
            files: FILES.1,
        };
        let mut command = Command::own().args(["worker", "--confined", &keep]).arg(python).dir(self.folder.path());
        command = command.args(["-I", "-S", "-B", "driver.py"]).stdin(line).capture(REPORTS).room(room);
        for (name, value) in variables(self.folder.path()) {
            command = command.env(name, value);
        }
        for file in files {
            command = command.inherit(file.descriptor());
        }
        // The coordinator ends a worker that is interrupted, and this process ends with it.
        let finished = run(&command, Some(time), &AtomicBool::new(false)).map_err(NotRun::Start)?;
        // A run that takes too long is ended by its clock; all runs together, by that of this process.
        let end = match finished.end {
            End::Signalled(libc::SIGALRM) => End::TimedOut(self.task.run_limit),
            end => end,
        };
        let mut heard = hear(&finished.stdout, &finished.stderr, end, trials.len() as u32);
        if heard.unconfined.is_empty() {
            heard.unconfined = confine::missing_here().missing;
        }
        Ok(EndedRunner { heard, stderr: finished.stderr.text() })
    }

    fn tool(&self, name: &'static str) -> Result<&Path, NotRun> {
        self.task.places.tools.get(name).map(PathBuf::as_path).ok_or(NotRun::Tool(name))
    }

    fn confinement(&self, files: &[MemoryFile], trials: &[RunnerTrial], buffers: u64, time: Duration) -> Confinement {
        let apart: u64 = trials.iter().map(|trial| gaps(trial.buffers.len())).sum();
        // Shadow state takes 28 bytes for each element, of at least one byte.
        let addresses = self.task.memory_limit + ADDRESSES + apart + buffers.saturating_mul(32);
        Confinement {
            scratch: Some(self.folder.path().to_path_buf()),
            read: self.task.places.tools.values().cloned().collect(),
            devices: vec![],
            // The interpreter is a program that is started behind the confinement.
            programs: true,
            keep: files.iter().map(MemoryFile::number).collect(),
            limits: Limits {
                address_space: Some(addresses),
                cpu_s: Some(time.as_secs().saturating_add(1).saturating_mul(2)),
                open_files: Some(4096),
                die_with: Some(std::process::id()),
                ..Limits::default()
            },
        }
    }
}

/// The whole environment. Hashes are fixed, and one thread keeps sums reproducible.
fn variables(folder: &Path) -> [(&'static str, PathBuf); 9] {
    [
        ("PATH", "/usr/bin:/bin".into()),
        ("HOME", folder.to_path_buf()),
        ("TMPDIR", folder.to_path_buf()),
        ("TRITON_HOME", folder.to_path_buf()),
        ("TRITON_INTERPRET", "1".into()),
        ("PYTHONHASHSEED", "0".into()),
        ("OPENBLAS_NUM_THREADS", "1".into()),
        ("OMP_NUM_THREADS", "1".into()),
        ("MKL_NUM_THREADS", "1".into()),
    ]
}

fn place(shared: &SharedBuffer, guard_after: bool) -> BufferAsked<'_> {
    let place = placement(shared.bytes, guard_after);
    BufferAsked { shared, file: place.file, offset: place.offset, gap: gaps(0) }
}

fn asked(launch: &Launch) -> LaunchAsked {
    match launch {
        Launch::Memset { buffer, value } => LaunchAsked::Memset { buffer: buffer.clone(), value: *value },
        Launch::Kernel(kernel) => {
            let args = kernel.args.iter().map(argument).collect();
            LaunchAsked::Kernel { entry: kernel.entry.clone(), grid: kernel.grid, args }
        }
    }
}

fn argument(arg: &Arg) -> ArgAsked {
    match arg {
        Arg::Pointer { buffer, offset } => ArgAsked::Pointer { buffer: buffer.clone(), offset: *offset },
        Arg::TensorMap(map) => ArgAsked::Descriptor {
            buffer: map.buffer.clone(),
            shape: map.shape().collect(),
            strides: map.element_strides().collect(),
            block: map.block().collect(),
            nan: map.nan,
        },
        // The plan refuses every other argument of a kernel in Triton, and null pointers are constants.
        other => {
            let bytes = arguments::bytes(other, &mut |_| Ok::<u64, std::convert::Infallible>(0));
            let bytes = match bytes {
                Ok(bytes) => bytes,
                Err(never) => match never {},
            };
            ArgAsked::Scalar(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::model::DType;
    use kforge_types::model::bound::{KernelLaunch, Scalar};
    use kforge_types::model::tensor_map::TensorMap;

    #[test]
    fn scalars_are_passed_as_their_bytes_and_pointers_by_name() {
        let args = vec![
            Arg::Pointer { buffer: "x".into(), offset: 8 },
            Arg::Scalar { dtype: DType::I64, value: Scalar::Int(-2) },
            Arg::Scalar { dtype: DType::F32, value: Scalar::Float(f64::INFINITY) },
            Arg::TensorMap(TensorMap {
                buffer: "z".into(),
                dtype: DType::F16,
                extents: vec![24, 30],
                strides: vec![64],
                tile: vec![16, 8],
                swizzle: 0,
                nan: true,
                l2_promotion: 0,
                descriptor: true,
            }),
        ];
        let launch = KernelLaunch { entry: "f".into(), grid: [2, 1, 1], args, ..KernelLaunch::default() };
        let expected = vec![
            ArgAsked::Pointer { buffer: "x".into(), offset: 8 },
            ArgAsked::Scalar("feffffffffffffff".into()),
            ArgAsked::Scalar("0000807f".into()),
            ArgAsked::Descriptor {
                buffer: "z".into(),
                shape: vec![30, 24],
                strides: vec![32, 1],
                block: vec![8, 16],
                nan: true,
            },
        ];
        let expected = LaunchAsked::Kernel { entry: "f".into(), grid: [2, 1, 1], args: expected };
        assert_eq!(asked(&Launch::Kernel(launch)), expected);
    }
}
