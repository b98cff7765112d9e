//! The hidden command `kforge worker`, which kforge starts itself. Knows only the arguments of this command.
//!
//! | arguments | does |
//! |---|---|
//! | none | serves requests until its input ends ([`serve`]) |
//! | `--within CONFINEMENT` | the same, but confined from the start ([`kforge_harness::compilers::of_worker`]) |
//! | `--once SPEC IN OUT` | executes one step; prints the answer to standard output as JSON ([`once`]) |
//! | `--once SPEC IN OUT --places FILE` | the same for another machine: compares the tools with those of the spec first, and queries no compiler if they are the same |
//! | `--once SPEC IN OUT --places FILE --own TOOLS` | the same for a worker of a server: it takes no path of a tool from `FILE`, only those in `TOOLS` |
//! | `--runner CONFINEMENT` | runs candidate code ([`runner`]) |
//! | `--nvrtc START` | holds NVRTC for a worker, and compiles in copies of itself ([`kforge_cuda::compiler_server_main`]) |
//! | `--device-runner START` | holds a device's context for a worker ([`kforge_cuda::device`]) |
//! | `--product-runner START` | computes matrix products for the oracle on a device ([`kforge_cuda::device`]) |
//! | `--call-clock START` | holds the memory of a kernel in PyTorch, and times its calls ([`kforge_cuda::device`]) |
//! | `--check-products` | prints whether products on a device equal those of the host bit for bit |
//! | `--host-runner START` | runs a kernel's own launcher on a device ([`kforge_cuda::device`]) |
//! | `--probe-devices` | prints the devices of this machine |
//! | `--examine-driver [TARGETS]` | prints what the driver uses, and what it is refused in a confined process ([`kforge_cuda::device`]) |
//! | `--implementation` | prints the digests of the code that executes steps; handled above this package, where all parts are known |
//! | `--exec LIMITS PROGRAM ARGS...` | becomes a program under limits ([`kforge_foundation::process::limits`]) |
//! | `--confined CONFINEMENT PROGRAM ARGS...` | becomes a program under confinement ([`confine`]) |

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use super::once::{self, OnceLimits, Ready};
use super::serve;
use super::steps::Dispatch;
use kforge_cuda::device;
use kforge_emulator::RunError;
use kforge_foundation::process::{exec_when_not_busy, limits};
use kforge_harness::confine::{self, Confinement};
use kforge_harness::elsewhere::OnceAnswer;
use kforge_harness::message::{Places, Response};
use kforge_harness::runner::{self, RunTrials};
use kforge_types::record::Spec;

/// The first words of [`worker_main`]: those that people do not write after `worker`.
pub const WORDS: [&str; 14] = [
    "--within",
    "--once",
    "--runner",
    "--nvrtc",
    "--device-runner",
    "--product-runner",
    "--call-clock",
    "--check-products",
    "--host-runner",
    "--probe-devices",
    "--examine-driver",
    "--implementation",
    "--exec",
    "--confined",
];

/// The code that a worker of this program runs.
pub struct Parts {
    /// Finds the code that executes a step: [`super::steps::handler`].
    pub steps: Dispatch,
    /// Runs candidate code in a runner.
    pub run: RunTrials<RunError>,
}

/// How a worker that executes one step finds tools.
pub struct Finders<'f> {
    /// Finds the tools of this machine, for a person.
    pub search: &'f dyn Fn() -> Places,
    /// The limits of a step that a person runs.
    pub limits: OnceLimits,
    /// Finds the tools that a file describes, for another machine.
    pub described: &'f once::FindDescribed<'f>,
    /// Signs what a step for another machine observed, if this machine has a key.
    pub seal: &'f once::Seal<'f>,
}

/// Handles the arguments after `worker`. Tools are searched for only for `--once` without `--places` and for `--examine-driver`; a serving worker receives them
/// with each request. The exit code of `--once` is 0 if the step gave outputs and 101 otherwise. Unknown arguments give 2.
pub fn worker_main(args: &[OsString], parts: &Parts, finders: &Finders<'_>) -> ExitCode {
    let word = args.first().map(|word| word.to_string_lossy().into_owned());
    match (word.as_deref(), args.get(1..).unwrap_or_default()) {
        (None, _) => serve::serve_main(parts.steps),
        // Confinement must happen before this process starts a thread.
        (Some("--within"), [confinement]) => match keep(confinement).and_then(|keep| confine::confine_worker(&keep)) {
            Ok(()) => serve::serve_main(parts.steps),
            Err(e) => refuse(&e),
        },
        (Some("--once"), [spec, input, output]) => {
            let paths = [spec, input, output].map(Path::new);
            let find = |_: &Spec, _: &Path| Ok(Ready { places: (finders.search)(), limits: finders.limits });
            let as_it_is = |_: &Spec, _: &Path, _: &Path, answer| answer;
            tell(&once::once(paths[0], paths[1], paths[2], &find, &as_it_is, parts.steps))
        }
        (Some("--once"), [spec, input, output, places, file, rest @ ..])
            if places == "--places" && (rest.is_empty() || rest.len() == 2 && rest[0] == "--own") =>
        {
            let paths = [spec, input, output].map(Path::new);
            let own = rest.get(1).map(Path::new);
            let find = |spec: &Spec, input: &Path| (finders.described)((Path::new(file), own), spec, input);
            tell(&once::once(paths[0], paths[1], paths[2], &find, finders.seal, parts.steps))
        }
        (Some("--runner"), rest) => runner::runner_main(rest, parts.run),
        (Some("--nvrtc"), rest) => kforge_cuda::compiler_server_main(rest),
        (Some("--device-runner"), rest) => device::device_runner_main(rest),
        (Some("--product-runner"), rest) => device::product_runner_main(rest),
        (Some("--call-clock"), rest) => device::call_clock_main(rest),
        (Some("--check-products"), []) => device::check_products_main(),
        (Some("--host-runner"), rest) => device::host_runner_main(rest),
        (Some("--probe-devices"), rest) => device::probe_main(rest),
        (Some("--examine-driver"), rest) => device::examine_driver_main(rest, || (finders.search)()),
        (Some("--exec"), rest) => refuse(&limits::exec_main(rest)),
        (Some("--confined"), rest) => refuse(&become_confined(rest)),
        _ => {
            let _ = writeln!(io::stderr(), "error: not a command for a worker");
            ExitCode::from(2)
        }
    }
}

fn tell(answer: &OnceAnswer) -> ExitCode {
    let text = serde_json::to_string_pretty(answer).unwrap_or_default();
    let written = writeln!(io::stdout(), "{text}");
    match (answer, written) {
        (OnceAnswer::Answered { response: Response::Done { .. }, .. }, Ok(())) => ExitCode::SUCCESS,
        _ => ExitCode::from(101),
    }
}

fn refuse(e: &io::Error) -> ExitCode {
    let _ = writeln!(io::stderr(), "cannot start the program: {e}");
    ExitCode::from(runner::REFUSED)
}

/// Confines this process and replaces it with a program. Returns only if that fails.
fn become_confined(args: &[OsString]) -> io::Error {
    let [confinement, program, args @ ..] = args else {
        return io::Error::other("expected a confinement, a program and its arguments");
    };
    // Most of these programs are compilers, which repeat their machine code more often this way.
    confine::fix_addresses();
    match keep(confinement).and_then(|keep| confine::confine(&keep)) {
        Ok(_) => exec_when_not_busy(std::process::Command::new(program).args(args)),
        Err(e) => e,
    }
}

fn keep(confinement: &OsString) -> io::Result<Confinement> {
    serde_json::from_str(&confinement.to_string_lossy())
        .map_err(|e| io::Error::other(format!("not a confinement: {e}")))
}
