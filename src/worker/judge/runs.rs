//! Runs a candidate on prepared buffers in a confined runner, to its end. Knows processes and limits; not what values are right.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::memory::MemoryFile;
use super::reports::{Heard, hear};
use crate::model::bound::{Constant, Launch};
use crate::process::{Command, Limits, run};
use crate::worker::confine::Confinement;
use crate::worker::message::{RunnerRequest, RunnerTrial};

/// Bytes kept of a runner's reports.
const REPORTS: usize = 4 << 20;

/// What is run: the same for every trial.
#[derive(Debug, Clone)]
pub struct Candidate<'a> {
    /// The binary, in a memory file that may be loaded.
    pub binary: MemoryFile,
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

/// A runner that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// What it said, and how it ended.
    pub heard: Heard,
    /// The end of what went to its standard error.
    pub stderr: String,
}

/// Runs the candidate once on each set of buffers, `files`, and waits for the end of the runner and its group, `time` at most.
pub fn run_candidate(
    candidate: &Candidate<'_>,
    trials: Vec<RunnerTrial>,
    files: &[MemoryFile],
    time: Duration,
) -> Result<Ran, String> {
    let runs = trials.len() as u32;
    let buffers: u64 = trials.iter().flat_map(|trial| &trial.buffers).map(|buffer| buffer.bytes).sum();
    let request = RunnerRequest {
        binary_fd: candidate.binary.number(),
        entries: candidate.entries.to_vec(),
        check: candidate.check,
        launches: candidate.launches.to_vec(),
        constants: candidate.constants.to_vec(),
        trials,
        threads: candidate.threads,
    };
    let all = || files.iter().chain([&candidate.binary]);
    let keep = Confinement {
        scratch: None,
        read: vec!["/proc/sys/vm/max_map_count".into()],
        programs: false,
        keep: all().map(MemoryFile::number).collect(),
        limits: limits(candidate, buffers, time),
    };
    let json = |e: serde_json::Error| format!("cannot describe the run: {e}");
    let keep = serde_json::to_string(&keep).map_err(json)?;
    let line = serde_json::to_string(&request).map_err(json)? + "\n";
    let mut command = Command::own().args(["worker", "--runner", &keep]).stdin(line).capture(REPORTS);
    for file in all() {
        command = command.inherit(file.descriptor());
    }
    // The coordinator ends a worker that is interrupted, and its runner with it.
    let finished =
        run(&command, Some(time), &AtomicBool::new(false)).map_err(|e| format!("cannot run the kernel: {e}"))?;
    let heard = hear(&finished.stdout, &finished.stderr, finished.end, runs);
    Ok(Ran { heard, stderr: finished.stderr.text() })
}

/// Address space: the buffers, shadow state of up to sixteen bytes for each of theirs where accesses are watched, what the C library reserves for each
/// thread, the loaded programs, and what was granted.
fn limits(candidate: &Candidate<'_>, buffers: u64, time: Duration) -> Limits {
    let shadow = if candidate.check { 16 } else { 0 };
    let threads = u64::from(candidate.threads) + 1;
    Limits {
        address_space: Some(candidate.memory + buffers * (1 + shadow) + threads * (256 << 20) + (1 << 30)),
        cpu_s: Some(time.as_secs().saturating_add(1).saturating_mul(threads)),
        file_size: None,
        open_files: None,
        processes: None,
        die_with: Some(std::process::id()),
    }
}
