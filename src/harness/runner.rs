//! `kforge worker --runner`: confines itself, then hands the candidate to the emulator. Knows the verifier's request and how to report; what it reports the
//! verifier does not believe. It has a pipe and buffers, and nothing else.
//!
//! Its exit status is its own only until the report says that the candidate's code is about to run: [`REFUSED`] is then an error of ours or of the system, told
//! on standard error. From there on a candidate can end with any status, and the verifier takes each for the candidate's.
#![expect(unsafe_code, reason = "dup2 onto descriptor 1 is only a system call")]

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::process::ExitCode;

use serde::de::DeserializeOwned;

use super::confine::{Confinement, confine, watch};
use super::message::{RunnerReport, RunnerRequest};

/// The exit status of a runner that could not do what it was asked to, by no fault of the candidate's.
pub const REFUSED: u8 = 70;

/// What runs the trials of a request, reporting as it goes.
pub type RunTrials<E> = fn(&RunnerRequest, &mut dyn FnMut(RunnerReport)) -> Result<(), E>;

/// The whole life of a runner. `args` is the [`Confinement`] as JSON; the request comes as a line on standard input, reports go to standard output.
pub fn runner_main<E: Display>(args: &[OsString], run: RunTrials<E>) -> ExitCode {
    started(args, |confinement| run_confined(confinement, run))
}

/// The whole life of a process of kforge's own whose only argument, JSON, says how it starts.
pub fn started<T: DeserializeOwned, E: Display>(args: &[OsString], serve: impl FnOnce(T) -> Result<(), E>) -> ExitCode {
    let start = match args {
        [text] => serde_json::from_str(&text.to_string_lossy()).map_err(|e| format!("not a start: {e}")),
        _ => Err("expected how to start".to_string()),
    };
    match start.and_then(|start| serve(start).map_err(|e| e.to_string())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            // Nobody else is left to tell.
            let _ = writeln!(io::stderr(), "{message}");
            ExitCode::from(REFUSED)
        }
    }
}

fn run_confined<E: Display>(confinement: Confinement, run: RunTrials<E>) -> Result<(), String> {
    // Before anything else: no thread, no descriptor of ours is there yet.
    let confined = confine(&confinement).map_err(|e| format!("cannot confine the runner: {e}"))?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(|e| format!("cannot read the request: {e}"))?;
    let request: RunnerRequest = serde_json::from_str(&line).map_err(|e| format!("not a request to a runner: {e}"))?;
    let mut reports = take_reports().map_err(|e| format!("cannot open the report: {e}"))?;
    watch(&confinement, reports.as_raw_fd()).map_err(|e| format!("cannot confine the runner: {e}"))?;
    let mut broken = None;
    let mut report = |report| {
        // A line at a time and at once: what was seen before a crash is told.
        let written = serde_json::to_vec(&report).map_err(io::Error::other).and_then(|mut line| {
            line.push(b'\n');
            reports.write_all(&line)
        });
        if let Err(e) = written {
            broken.get_or_insert(e);
        }
    };
    report(RunnerReport::Confined { missing: confined.missing });
    run(&request, &mut report).map_err(|e| e.to_string())?;
    broken.map_or(Ok(()), |e| Err(format!("cannot report: {e}")))
}

/// Moves the report to another descriptor, so that a library that prints does so to the standard error. What a candidate writes to it all the same can
/// only break the protocol.
pub fn take_reports() -> io::Result<File> {
    let reports = io::stdout().as_fd().try_clone_to_owned()?;
    // SAFETY: both numbers are those of the standard streams; nothing of ours writes to descriptor 1 from now on but through the copy.
    match unsafe { libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(File::from(reports)),
    }
}
