//! The hidden command `kforge worker`: what this program does when it starts itself. Knows the words of that command line; everything else is elsewhere.
//!
//! | arguments | does |
//! |---|---|
//! | none | serves requests until its input ends ([`serve`]) |
//! | `--within CONFINEMENT` | the same, confined for all its life ([`kforge_harness::compilers::of_worker`]) |
//! | `--once SPEC IN OUT` | one step; the response goes to standard output as JSON ([`once`]) |
//! | `--runner CONFINEMENT` | runs candidate code ([`runner`]) |
//! | `--device-runner START` | holds a device's context for a verifier ([`kforge_cuda::device`]) |
//! | `--product-runner START` | multiplies for the oracle on a device ([`kforge_cuda::device`]) |
//! | `--check-products` | says whether products on a device have the bits of those here |
//! | `--host-runner START` | runs a launcher of a kernel's own on a device ([`kforge_cuda::device`]) |
//! | `--probe-devices` | says what devices there are |
//! | `--exec LIMITS PROGRAM ARGS...` | becomes a program under limits ([`kforge_foundation::process::limits`]) |
//! | `--confined CONFINEMENT PROGRAM ARGS...` | becomes a program that is confined ([`confine`]) |

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::ExitCode;

use super::once::{self, OnceLimits};
use super::serve;
use super::steps::Dispatch;
use kforge_cuda::device;
use kforge_emulator::RunError;
use kforge_foundation::process::limits;
use kforge_harness::confine::{self, Confinement};
use kforge_harness::message::{Places, Response};
use kforge_harness::runner::{self, RunTrials};

/// What a worker of this program can do.
pub struct Parts {
    /// Finds what does a step: [`super::steps::handler`].
    pub steps: Dispatch,
    /// What runs candidate code in a runner.
    pub run: RunTrials<RunError>,
}

/// Does what `args`, those after `worker`, say. `places` is asked only for `--once`: a worker that serves is told with each request. The exit code of
/// `--once` is 0 if the step gave outputs, else 101; 2 for words that are none of the above.
pub fn worker_main(args: &[OsString], parts: &Parts, places: impl FnOnce() -> Places, limits: OnceLimits) -> ExitCode {
    let word = args.first().map(|word| word.to_string_lossy().into_owned());
    match (word.as_deref(), args.get(1..).unwrap_or_default()) {
        (None, _) => serve::serve_main(parts.steps),
        // Before it starts a thread.
        (Some("--within"), [confinement]) => match keep(confinement).and_then(|keep| confine::confine_worker(&keep)) {
            Ok(()) => serve::serve_main(parts.steps),
            Err(e) => refuse(&e),
        },
        (Some("--once"), [spec, input, output]) => {
            let paths = [spec, input, output].map(Path::new);
            tell(&once::once(paths[0], paths[1], paths[2], places(), limits, parts.steps))
        }
        (Some("--runner"), rest) => runner::runner_main(rest, parts.run),
        (Some("--device-runner"), rest) => device::device_runner_main(rest),
        (Some("--product-runner"), rest) => device::product_runner_main(rest),
        (Some("--check-products"), []) => device::check_products_main(),
        (Some("--host-runner"), rest) => device::host_runner_main(rest),
        (Some("--probe-devices"), rest) => device::probe_main(rest),
        (Some("--exec"), rest) => refuse(&limits::exec_main(rest)),
        (Some("--confined"), rest) => refuse(&become_confined(rest)),
        _ => {
            let _ = writeln!(io::stderr(), "error: not a command for a worker");
            ExitCode::from(2)
        }
    }
}

fn tell(response: &Response) -> ExitCode {
    let text = serde_json::to_string_pretty(response).unwrap_or_default();
    let written = writeln!(io::stdout(), "{text}");
    match (response, written) {
        (Response::Done { .. }, Ok(())) => ExitCode::SUCCESS,
        _ => ExitCode::from(101),
    }
}

fn refuse(e: &io::Error) -> ExitCode {
    let _ = writeln!(io::stderr(), "cannot start the program: {e}");
    ExitCode::from(runner::REFUSED)
}

/// Confines this process and becomes a program; returns only if it cannot.
fn become_confined(args: &[OsString]) -> io::Error {
    let [confinement, program, args @ ..] = args else {
        return io::Error::other("expected a confinement, a program and its arguments");
    };
    match keep(confinement).and_then(|keep| confine::confine(&keep)) {
        Ok(_) => std::process::Command::new(program).args(args).exec(),
        Err(e) => e,
    }
}

fn keep(confinement: &OsString) -> io::Result<Confinement> {
    serde_json::from_str(&confinement.to_string_lossy())
        .map_err(|e| io::Error::other(format!("not a confinement: {e}")))
}
