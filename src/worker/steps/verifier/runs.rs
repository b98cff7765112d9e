//! Runs a candidate on prepared buffers in a confined runner and waits for its end. Knows processes and limits, but not which values are correct.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use kforge_emulator::{Claim, Claimant, credible, gaps};
use kforge_foundation::process::{Command, Limits, run};
use kforge_harness::confine::Confinement;
use kforge_harness::memory_file::MemoryFile;
use kforge_harness::message::{RunnerRequest, RunnerTrial};
use kforge_harness::reports::{RunSummary, hear};
use kforge_types::model::bound::{Constant, Launch};

/// Bytes of a runner's reports that are kept.
const REPORTS: usize = 4 << 20;

/// Threads that a kernel may start in addition to those on which the emulator runs it.
const THREADS: u32 = 256;

/// What is the same in every run of a candidate.
#[derive(Debug, Clone)]
pub struct Launchable<'a> {
    /// The binary, in a memory file that may be loaded.
    pub binary: MemoryFile,
    /// The bytes of the binary.
    pub bytes: &'a [u8],
    /// As in the runner's request.
    pub entries: &'a [String],
    /// As in the runner's request.
    pub check: bool,
    /// As in the runner's request.
    pub launches: &'a [Launch],
    /// As in the runner's request.
    pub constants: &'a [Constant],
    /// Threads of the host that the candidate may use.
    pub threads: u32,
    /// Bytes of memory that the candidate may use beyond its buffers and their shadow state.
    pub memory: u64,
}

/// Why a candidate was not run, for reasons other than the candidate itself.
#[derive(Debug, thiserror::Error)]
pub enum NotRun {
    /// The binary cannot be passed to the runner.
    #[error("cannot hand over the binary: {0}")]
    Binary(std::io::Error),
    /// The request to the runner cannot be serialized.
    #[error("cannot describe the run: {0}")]
    Describe(serde_json::Error),
    /// The toolchain lacks a tool here: a bug.
    #[error("the toolchain has no `{0}` here")]
    Tool(&'static str),
    /// The runner cannot be started.
    #[error("cannot run the kernel: {0}")]
    Start(std::io::Error),
}

/// A runner that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedRunner {
    /// The runner's reports, and how it ended.
    pub heard: RunSummary,
    /// The end of the runner's standard error.
    pub stderr: String,
}

/// Runs the candidate on each set of buffers, which are in `files`, in a new process. Waits at most `time` until the process and its group have ended.
pub fn run_candidate(
    candidate: &Launchable<'_>,
    trials: Vec<RunnerTrial>,
    files: &[MemoryFile],
    time: Duration,
) -> Result<EndedRunner, NotRun> {
    let buffers: u64 = trials.iter().flat_map(|trial| &trial.buffers).map(|buffer| buffer.bytes).sum();
    let count = trials.len() as u32;
    let binary = candidate.binary.again().map_err(NotRun::Binary)?;
    let apart = trials.iter().map(|trial| gaps(trial.buffers.len())).sum();
    let request = RunnerRequest {
        binary_fd: binary.number(),
        entries: candidate.entries.to_vec(),
        check: candidate.check,
        launches: candidate.launches.to_vec(),
        constants: candidate.constants.to_vec(),
        trials,
        threads: candidate.threads,
    };
    let all = || files.iter().chain([&binary]);
    let keep = Confinement {
        devices: vec![],
        scratch: None,
        read: vec!["/proc/sys/vm/max_map_count".into()],
        programs: false,
        keep: all().map(MemoryFile::number).collect(),
        limits: limits(candidate, buffers, apart, time),
    };
    let keep = serde_json::to_string(&keep).map_err(NotRun::Describe)?;
    let line = serde_json::to_string(&request).map_err(NotRun::Describe)? + "\n";
    let mut command = Command::own().args(["worker", "--runner", &keep]).stdin(line).capture(REPORTS);
    command = command.threads(candidate.threads + THREADS);
    for file in all() {
        command = command.inherit(file.descriptor());
    }
    // The coordinator ends a worker that is interrupted, and the runner ends with it.
    let finished = run(&command, Some(time), &AtomicBool::new(false)).map_err(NotRun::Start)?;
    let mut heard = hear(&finished.stdout, &finished.stderr, finished.end, count);
    doubt(&mut heard, candidate);
    Ok(EndedRunner { heard, stderr: finished.stderr.text() })
}

/// Accepts a claim that something is not emulated only if the candidate's binary and launches can have caused it. Otherwise the run fails.
fn doubt(heard: &mut RunSummary, candidate: &Launchable<'_>) {
    let of = Claimant {
        binary: candidate.bytes,
        launches: candidate.launches,
        threads: candidate.threads,
        memory: candidate.memory,
    };
    let claims: Vec<_> =
        std::mem::take(&mut heard.not_emulated).into_iter().map(|c| (credible(&c.cause, &of), c)).collect();
    let abrupt = claims.iter().any(|(found, _)| *found == Ok(Claim::Abrupt));
    let forged = claims.iter().any(|(found, _)| found.is_err());
    for (found, claim) in &claims {
        match found {
            Ok(_) => heard.not_emulated.push(claim.clone()),
            Err(why) => heard.forged(&claim.what, why),
        }
    }
    // A construct that is not emulated ends the launch, not the process.
    if !claims.is_empty() && !heard.done && !abrupt && !forged && heard.findings.iter().all(|f| f.kind.is_allowed()) {
        heard.ended_early("");
    }
}

/// The limit of address space: the buffers, `apart` bytes between them, up to sixteen bytes of shadow state per byte of buffers if accesses are checked, what
/// the C library reserves for each thread, the loaded programs, and the memory of the candidate.
fn limits(candidate: &Launchable<'_>, buffers: u64, apart: u64, time: Duration) -> Limits {
    let shadow = if candidate.check { 16 } else { 0 };
    let threads = u64::from(candidate.threads) + 1;
    Limits {
        address_space: Some(candidate.memory + buffers * (1 + shadow) + apart + threads * (256 << 20) + (1 << 30)),
        cpu_s: Some(time.as_secs().saturating_add(1).saturating_mul(threads)),
        file_size: None,
        open_files: None,
        processes: None,
        die_with: Some(std::process::id()),
    }
}
