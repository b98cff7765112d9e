//! Runs a candidate on prepared buffers in a confined runner, to its end. Knows processes and limits; does not know which values are correct.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use kforge_emulator::{Claim, Claimant, credible, gaps};
use kforge_foundation::process::{Command, Limits, run};
use kforge_harness::confine::Confinement;
use kforge_harness::memory_file::MemoryFile;
use kforge_harness::message::{RunnerRequest, RunnerTrial};
use kforge_harness::reports::{RunSummary, hear};
use kforge_types::model::bound::{Constant, Launch};

/// Bytes kept of a runner's reports.
const REPORTS: usize = 4 << 20;

/// Threads that a kernel may start beside those that the emulator runs it on.
const THREADS: u32 = 256;

/// What is run: the same in every run.
#[derive(Debug, Clone)]
pub struct Launchable<'a> {
    /// The binary, in a memory file that may be loaded.
    pub binary: MemoryFile,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// As in the runner's request.
    pub entries: &'a [String],
    /// As in the runner's request.
    pub check: bool,
    /// As in the runner's request.
    pub launches: &'a [Launch],
    /// As in the runner's request.
    pub constants: &'a [Constant],
    /// Threads of the host it may use.
    pub threads: u32,
    /// Bytes of memory it may take beyond its buffers and what watches them.
    pub memory: u64,
}

/// Why a candidate was not run, for reasons other than itself.
#[derive(Debug, thiserror::Error)]
pub enum NotRun {
    /// Its binary cannot be handed over.
    #[error("cannot hand over the binary: {0}")]
    Binary(std::io::Error),
    /// What is to be run cannot be written.
    #[error("cannot describe the run: {0}")]
    Describe(serde_json::Error),
    /// Its process cannot be started.
    #[error("cannot run the kernel: {0}")]
    Start(std::io::Error),
}

/// A runner that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedRunner {
    /// What it said, and how it ended.
    pub heard: RunSummary,
    /// The end of what went to its standard error.
    pub stderr: String,
}

/// Runs the candidate on each set of buffers, which lie in `files`, in a process of its own, and waits for the end of that and its group, `time` at most.
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
    // The coordinator ends a worker that is interrupted, and its runner with it.
    let finished = run(&command, Some(time), &AtomicBool::new(false)).map_err(NotRun::Start)?;
    let mut heard = hear(&finished.stdout, &finished.stderr, finished.end, count);
    doubt(&mut heard, candidate);
    Ok(EndedRunner { heard, stderr: finished.stderr.text() })
}

/// Accepts a claim that something is not emulated only if the candidate's binary and launches can have caused it; otherwise the run fails.
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
    // A construct ends the launch and not the process.
    if !claims.is_empty() && !heard.done && !abrupt && !forged && heard.findings.iter().all(|f| f.kind.is_allowed()) {
        heard.ended_early("");
    }
}

/// Address space: the buffers, `apart` bytes between them, shadow state of up to sixteen bytes for each of theirs where accesses are watched, what the C library reserves for each
/// thread, the loaded programs, and what was granted.
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
