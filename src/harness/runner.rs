//! `kforge worker --runner`: confines itself, then passes the candidate to the emulator. Knows the verifier's request and how to report; the verifier does not
//! trust its reports. The process has only a pipe and buffers.
//!
//! Its exit status is its own only until it reports that the candidate's code is about to run. Until then, [`REFUSED`] means an error of kforge or of the
//! system, which is printed on standard error. After that, a candidate can end with any status, and the verifier attributes each to the candidate.
//!
//! The thread that reports runs none of the candidate's code, and the candidate's threads cannot write to the report (`confine`).
#![expect(unsafe_code, reason = "dup2 onto descriptor 1, and the end of the process, are only system calls")]

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use serde::de::DeserializeOwned;

use super::confine::{Confinement, confine, watch};
use super::message::{RunnerReport, RunnerRequest};

/// The exit status of a runner that could not run the candidate, by no fault of the candidate.
pub const REFUSED: u8 = 70;
/// The exit status of a Rust program that panicked.
pub(super) const PANICKED: i32 = 101;

/// Runs the trials of a request and reports as it proceeds. Runs the candidate's code only in threads that have called `confine::candidate_thread`.
pub type RunTrials<E> = fn(&RunnerRequest, &mut dyn FnMut(RunnerReport)) -> Result<(), E>;

/// The main function of a runner. `args` is the [`Confinement`] as JSON. The request is a line on standard input; reports go to standard output.
pub fn runner_main<E: Display>(args: &[OsString], run: RunTrials<E>) -> ExitCode {
    started(args, |confinement| run_confined(confinement, run))
}

/// The main function of a process of kforge whose only argument, JSON, describes how it starts.
pub fn started<T: DeserializeOwned, E: Display>(args: &[OsString], serve: impl FnOnce(T) -> Result<(), E>) -> ExitCode {
    let start = match args {
        [text] => serde_json::from_str(&text.to_string_lossy())
            .map_err(|e| format!("the argument does not say how to start: {e}")),
        _ => Err("expected one argument".to_string()),
    };
    match start.and_then(|start| serve(start).map_err(|e| e.to_string())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            // Standard error is the only way to report.
            let _ = writeln!(io::stderr(), "{message}");
            ExitCode::from(REFUSED)
        }
    }
}

/// Returns only with an error that precedes the run; the process ends here otherwise.
fn run_confined<E: Display>(confinement: Confinement, run: RunTrials<E>) -> Result<(), String> {
    // Comes first: this process has started no thread and opened no descriptor yet.
    let confined = confine(&confinement).map_err(|e| format!("cannot confine the runner: {e}"))?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(|e| format!("cannot read the request: {e}"))?;
    let request: RunnerRequest = serde_json::from_str(&line).map_err(|e| format!("not a request to a runner: {e}"))?;
    let mut reports = take_reports().map_err(|e| format!("cannot open the report: {e}"))?;
    watch(&confinement, reports.as_raw_fd()).map_err(|e| format!("cannot confine the runner: {e}"))?;
    let mut broken = None;
    let mut report = |report| {
        // Writes each line at once, so that reports made before a crash are not lost.
        let written = serde_json::to_vec(&report).map_err(io::Error::other).and_then(|mut line| {
            line.push(b'\n');
            reports.write_all(&line)
        });
        if let Err(e) = written {
            broken.get_or_insert(e);
        }
    };
    report(RunnerReport::Confined { missing: confined.missing });
    let ran = catch_unwind(AssertUnwindSafe(|| run(&request, &mut report).map_err(|e| e.to_string())));
    let status = match ran.map(|ran| ran.and_then(|()| broken.map_or(Ok(()), |e| Err(format!("cannot report: {e}"))))) {
        Ok(Ok(())) => 0,
        Ok(Err(message)) => {
            let _ = writeln!(io::stderr(), "{message}");
            i32::from(REFUSED)
        }
        // The message was printed.
        Err(_) => PANICKED,
    };
    // SAFETY: ends the process at once. Any other end would call, in this thread, what the candidate left to be called at the end.
    unsafe { libc::_exit(status) }
}

/// Moves the report to another descriptor, so that a library that prints writes to standard error. A candidate that writes to the report can only break the
/// protocol.
pub fn take_reports() -> io::Result<File> {
    let reports = io::stdout().as_fd().try_clone_to_owned()?;
    // SAFETY: both numbers are those of standard streams. From now on our code reaches the report only through the copy.
    match unsafe { libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(File::from(reports)),
    }
}
