//! The worker's side of NVRTC's process: starts it, keeps it between steps, and asks it for compilations. Knows requests and answers; [`super::compiler_server`]
//! is the process.
//!
//! A compiler that orders things by their addresses makes other machine code when its memory is laid out differently. Then evidence of a kernel is of no use to
//! others, whose compiler makes another binary. So every compilation has a process of its own whose memory is laid out alike on every machine:
//!
//! | what moves addresses | what is done |
//! |---|---|
//! | address randomisation | it is off in that process; where the system does not permit that, compilations repeat less often |
//! | earlier compilations, their order and their number | each compilation begins in a copy of a process that only loaded NVRTC |
//! | variables of the environment | there is one, which says that the time zone is UTC |
//! | the lengths of paths: of the home, of temporary folders, of NVRTC | the libraries are opened by descriptors with fixed numbers; the working folder's path is padded ([`super::stage`]) |
//! | what reads the request and loads the source | NVRTC runs in a thread of its own, whose heap begins at a multiple of 64 MiB |
//! | the sizes of the program and of the system's libraries | the address space above a fixed address is taken before NVRTC is loaded |
//!
//! That makes machine code equal more often; it does not promise it.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::compile::CudaCompileError;
use super::load::Compilation;
use kforge_foundation::process::{Command, Died, End, Talker};
use kforge_harness::compilers::{self, Outside};
use kforge_harness::confine::Confinement;

/// The file in the working folder that receives machine code. Names that begin with `@` are kforge's.
pub(super) const CODE: &str = "@code";
/// The file in the working folder that receives PTX, if it was asked for.
pub(super) const PTX: &str = "@ptx";
/// The file in the working folder that receives the rest of the answer.
pub(super) const ANSWER: &str = "@answer";

/// What a process of NVRTC is started with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Start {
    /// The path of NVRTC.
    pub(super) nvrtc: PathBuf,
    /// The path of its library of built-in functions.
    pub(super) builtins: PathBuf,
    /// The process that starts it, with which it ends.
    pub(super) parent: u32,
}

/// One compilation.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    /// The working folder.
    pub(super) folder: PathBuf,
    /// The file to compile, and its name for NVRTC.
    pub(super) file: PathBuf,
    pub(super) name: String,
    pub(super) options: Vec<String>,
    pub(super) entries: Vec<String>,
    /// Whether PTX is asked for.
    pub(super) ptx: bool,
    /// What the compilation may use.
    pub(super) keep: Confinement,
}

/// What a compilation leaves in [`ANSWER`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// NVRTC ran. The symbols of the entries are there if [`CODE`] is.
    Compiled { symbols: Option<Vec<String>>, log: String },
    /// It could not run.
    Unavailable { why: String },
}

/// What the process says about each compilation: how the copy ended.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Ended {
    /// By itself, with this status.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// No copy could be made.
    NotStarted(String),
}

/// The process of this worker, which has loaded one NVRTC.
struct Kept {
    start: Start,
    talker: Talker,
}

static KEPT: Mutex<Option<Kept>> = Mutex::new(None);

fn kept() -> std::sync::MutexGuard<'static, Option<Kept>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The process that is kept between steps, if there is one. It must not be killed with the processes that a step left behind.
pub fn kept_process() -> Option<u32> {
    kept().as_ref().map(|kept| kept.talker.pid())
}

/// Starts the process for the NVRTC of these tools, unless it runs. Must be called outside the confinement of a step, which the process would inherit. Without
/// NVRTC among the tools, nothing is started.
///
/// # Errors
/// It cannot be started.
pub fn prepare(tools: &std::collections::BTreeMap<String, PathBuf>) -> std::io::Result<()> {
    let (Some(nvrtc), Some(builtins)) = (tools.get("nvrtc"), tools.get("nvrtc-builtins")) else { return Ok(()) };
    let start = Start { nvrtc: nvrtc.clone(), builtins: builtins.clone(), parent: std::process::id() };
    let mut kept = kept();
    if kept.as_ref().is_some_and(|kept| kept.start == start && kept.talker.is_alive()) {
        return Ok(());
    }
    // A process has one NVRTC; one of another toolchain gets another process.
    *kept = None;
    let words = serde_json::to_string(&start).map_err(std::io::Error::other)?;
    let command = Command::own().args(["worker", "--nvrtc", &words]).env("TZ", "UTC0");
    *kept = Some(Kept { start, talker: Talker::start(&command)? });
    Ok(())
}

/// Compiles in a new copy of the process. The thread of the step could not end it, so the one that waits asks it.
///
/// # Errors
/// The process was not prepared or ended, the compilation was ended, or it cannot be done here.
pub(super) fn compile(
    nvrtc: &Path,
    request: &Request,
    within: (&Outside, Instant),
) -> Result<Compilation, CudaCompileError> {
    let (outside, deadline) = within;
    let unavailable = |why: String| CudaCompileError::Unavailable { why };
    let Some(Kept { start, talker }) = kept().take().filter(|kept| kept.start.nvrtc == nvrtc) else {
        return Err(unavailable(format!("no process has loaded `{}`", nvrtc.display())));
    };
    let line = serde_json::to_string(request).map_err(|e| unavailable(e.to_string()))?;
    let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    let asked = outside.run(move || talker.exchange(&line, left, &AtomicBool::new(false)));
    let ended = match asked.flatten() {
        Ok(Ok((talker, line))) => {
            *kept() = Some(Kept { start, talker });
            serde_json::from_str(&line)
                .map_err(|e| unavailable(format!("NVRTC's process gave a malformed answer: {e}")))?
        }
        Ok(Err(Died { end: end @ End::TimedOut(_), .. })) => return Err(stopped(end)),
        Ok(Err(died)) => {
            let said = died.stderr.text();
            return Err(unavailable(format!("NVRTC's process {}: {}", died.end, said.trim())));
        }
        Err(e) => return Err(unavailable(format!("NVRTC's process cannot be asked: {e}"))),
    };
    match ended {
        Ended::Exited(0) => answer(&request.folder, request.ptx)
            .map_err(|e| unavailable(format!("NVRTC's answer cannot be read: {e}")))?,
        Ended::Exited(status) => Err(stopped(End::Exited(status))),
        Ended::Signalled(signal) => Err(stopped(End::Signalled(signal))),
        Ended::NotStarted(why) => Err(unavailable(format!("NVRTC's process could not start a compilation: {why}"))),
    }
}

/// NVRTC ended with its process.
fn stopped(end: End) -> CudaCompileError {
    CudaCompileError::Failed { message: compilers::ended("NVRTC", end), log: String::new(), ended: Some(end) }
}

fn answer(folder: &Path, with_ptx: bool) -> std::io::Result<Result<Compilation, CudaCompileError>> {
    let answer = serde_json::from_slice(&std::fs::read(folder.join(ANSWER))?).map_err(std::io::Error::other)?;
    Ok(match answer {
        Answer::Compiled { symbols, log } => {
            let code = symbols.is_some().then(|| std::fs::read(folder.join(CODE))).transpose()?;
            let ptx = (symbols.is_some() && with_ptx).then(|| std::fs::read(folder.join(PTX))).transpose()?;
            Ok(Compilation { result: code.zip(symbols), ptx, log })
        }
        Answer::Unavailable { why } => Err(CudaCompileError::Unavailable { why }),
    })
}
