//! `kforge worker --examine-driver`: shows on the machine at hand what a driver uses of the system, whether it starts in a confined process, and which entry of
//! the confinement is missing if it does not. Also tries, in a process confined as a device's runner is, what such a process must not be able to do. Knows
//! policies and processes; starts the driver only in child processes, one for each policy.
//!
//! | policy | files | calls | shows |
//! |---|---|---|---|
//! | `unconfined` | all | all | every file that the driver opens, and every call of the list of refused calls that it makes |
//! | `files` | as in a runner | all | which files the driver cannot open |
//! | `calls` | all | as in a runner | which calls fail |
//! | `both` | as in a runner | as in a runner | the same, together |
//! | `runner` | as in a runner | as in a runner | exactly what runners get, without the record: decides whether runners start |
//! | `only NAME` | all | this one is refused | whether the driver starts without the call |
//! | `all but NAME` | as in a runner | all but this one are refused | whether the call is the missing entry |

mod escapes;

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::client::at_device;
use super::confined::confinement;
use super::exchange::{Exchange, RunnerExchange};
use super::facts::{DeviceFacts, Probed};
use super::session::{Session, Trouble};
use super::wire::{Ask, BufferFill, BufferLayout, ExchangeAddress, Reset};
use super::{TOOL, driver};
use escapes::{Attempted, Targets};
use kforge_foundation::process::{Command, Limits, run};
use kforge_harness::confine::examined::{Policy, RefusedCalls, SeenCall, SeenFile, examine};
use kforge_harness::confine::{Confinement, confine_driver, driver as needs};
use kforge_harness::message::Places;
use kforge_harness::runner::take_reports;

/// The time limit of one child: a driver that wakes a device takes some seconds.
const LONGEST: Duration = Duration::from_secs(60);

/// What a child does.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Child {
    libcuda: Option<PathBuf>,
    exchange: ExchangeAddress,
    keep: Confinement,
    /// The parts of the confinement that apply, with a record; none to be confined as runners are.
    policy: Option<Policy>,
    /// What to try after the driver has started.
    escapes: Option<Targets>,
}

/// What a child found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Findings {
    /// Why the driver does not work; none if it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// What the system cannot confine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) missing: Vec<String>,
    /// The calls of the list of refused calls that were made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) calls: Vec<SeenCall>,
    /// The files that were opened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) files: Vec<SeenFile>,
    /// The results of attempts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) attempts: Vec<Attempted>,
}

/// A line of the output.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum Line<'a> {
    Grant { what: String, why: &'static str },
    Device { product: &'a str, driver: &'a str, libcuda: Option<PathBuf>, user: u32 },
    Policy { name: String, findings: Findings },
}

/// The main function. Without arguments it examines the first device of the machine's list and prints JSON lines; with one argument, the JSON of [`Targets`], it
/// also tries to escape. With `--child` and JSON it is the child. `places` says where the list of devices is.
pub fn examine_driver_main(args: &[OsString], places: impl FnOnce() -> Places) -> ExitCode {
    let json = |arg: &OsString| arg.to_string_lossy().into_owned();
    let list = || -> io::Result<Probed> {
        let places = places();
        let none = || io::Error::other("there is no list of this machine's devices; `kforge doctor` makes one");
        let list = std::fs::read(places.tools.get(TOOL).ok_or_else(none)?)?;
        Ok(serde_json::from_slice(&list)?)
    };
    let done = match args {
        [word, child] if word == "--child" => {
            serde_json::from_str(&json(child)).map_err(io::Error::other).and_then(child_main)
        }
        [] => list().and_then(|probed| all(&probed, None)),
        [targets] => serde_json::from_str(&json(targets))
            .map_err(io::Error::other)
            .and_then(|targets| all(&list()?, Some(targets))),
        _ => Err(io::Error::other("expected the targets of escapes, or nothing")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            let _ = writeln!(io::stderr(), "cannot examine the driver: {e}");
            ExitCode::FAILURE
        }
    }
}

fn say(line: &Line<'_>) -> io::Result<()> {
    writeln!(io::stdout(), "{}", serde_json::to_string(line)?)
}

fn all(probed: &Probed, escapes: Option<Targets>) -> io::Result<()> {
    let Some(facts) = probed.devices.first() else {
        return Err(io::Error::other(probed.why.clone().unwrap_or_else(|| "there is no device".into())));
    };
    for (what, why) in needs::table() {
        say(&Line::Grant { what, why })?;
    }
    let (product, driver) = (facts.product.as_str(), facts.driver.as_str());
    say(&Line::Device { product, driver, libcuda: probed.libcuda.clone(), user: rustix::process::getuid().as_raw() })?;
    let look = |name: String, policy: Option<Policy>, escapes: Option<Targets>| -> io::Result<Findings> {
        let findings = examined(probed, facts, policy, escapes, LONGEST);
        say(&Line::Policy { name, findings: findings.clone() })?;
        Ok(findings)
    };
    let policy = |files, calls| Some(Policy { files, calls });
    let free = look("unconfined".into(), policy(false, RefusedCalls::None), None)?;
    look("files".into(), policy(true, RefusedCalls::None), None)?;
    let calls = look("calls".into(), policy(false, RefusedCalls::All), None)?;
    let both = look("both".into(), policy(true, RefusedCalls::All), None)?;
    look("runner".into(), None, escapes)?;
    let mut made: Vec<&SeenCall> = free.calls.iter().chain(&calls.calls).chain(&both.calls).collect();
    made.sort_by_key(|call| call.call);
    made.dedup_by_key(|call| call.call);
    for call in made {
        look(format!("only {}", call.attempt), policy(false, RefusedCalls::Only(vec![call.call])), None)?;
        if both.error.is_some() {
            look(format!("all but {}", call.attempt), policy(true, RefusedCalls::AllBut(vec![call.call])), None)?;
        }
    }
    Ok(())
}

/// What a driver uses unconfined, and what it is refused in a runner.
pub(super) fn both(probed: &Probed, facts: &DeviceFacts, left: Duration) -> (Findings, Findings) {
    let look = |files, calls| examined(probed, facts, Some(Policy { files, calls }), None, LONGEST.min(left / 2));
    (look(false, RefusedCalls::None), look(true, RefusedCalls::All))
}

/// Starts the driver in a child under a policy.
fn examined(
    probed: &Probed,
    facts: &DeviceFacts,
    policy: Option<Policy>,
    escapes: Option<Targets>,
    limit: Duration,
) -> Findings {
    let failed = |why: String| Findings { error: Some(why), ..Findings::default() };
    let exchange = match Exchange::new() {
        Ok(exchange) => exchange,
        Err(e) => return failed(format!("there is no memory to exchange bytes in: {e}")),
    };
    let limits = Limits { die_with: Some(std::process::id()), ..Limits::default() };
    let kept = exchange.descriptor().as_raw_fd();
    let child = Child {
        libcuda: probed.libcuda.clone(),
        exchange: exchange.inherited(),
        keep: confinement(probed, vec![kept], limits),
        policy,
        escapes,
    };
    let Ok(child) = serde_json::to_string(&child) else { return failed("the examination cannot be described".into()) };
    let command = Command::own().inherit(exchange.descriptor()).args(["worker", "--examine-driver", "--child", &child]);
    let finished = match run(&at_device(command, probed, facts), Some(limit), &AtomicBool::new(false)) {
        Ok(finished) => finished,
        Err(e) => return failed(format!("its process cannot be started: {e}")),
    };
    let text = finished.stdout.text();
    text.lines().find_map(|line| serde_json::from_str(line).ok()).unwrap_or_else(|| {
        let stderr = finished.stderr.text();
        let last = stderr.trim().lines().last().unwrap_or_default();
        failed(format!("its process {}: {last}", finished.end).trim_end_matches(": ").to_string())
    })
}

/// Confines itself, uses the driver, and prints what it found as one line.
fn child_main(child: Child) -> io::Result<()> {
    let mut found = Findings::default();
    let mut examination = None;
    match &child.policy {
        Some(policy) => {
            let (report, started) = examine(&child.keep, policy)?;
            found.missing = report.missing;
            examination = Some(started);
        }
        None => found.missing = confine_driver(&child.keep)?.missing,
    }
    let mut out = take_reports()?;
    let session = used(&child);
    found.error = session.as_ref().err().cloned();
    if let Some(examination) = examination {
        (found.calls, found.files) = examination.seen();
    }
    if let Some(targets) = child.escapes {
        found.attempts = escapes::attempt(&targets);
    }
    writeln!(out, "{}", serde_json::to_string(&found)?)?;
    // As a runner does after a fault: freeing what the driver holds could wait.
    std::mem::forget(session);
    Ok(())
}

/// Does with the driver what steps do, except that no candidate runs: loads modules, allocates, copies, launches kforge's own kernels, and takes times.
fn used(child: &Child) -> Result<Session, String> {
    let of = |trouble: Trouble| match trouble {
        Trouble::Fault(fault) => fault.to_string(),
        Trouble::Refused(why) => why,
    };
    driver::load(child.libcuda.as_deref())?;
    let handed = RunnerExchange::open(&child.exchange).map_err(|e| format!("the exchange cannot be opened: {e}"))?;
    handed.put(&[7; 4096]).map_err(|e| format!("the exchange cannot be written: {e}"))?;
    let mut session = Session::new(handed).map_err(of)?;
    let name = || "buffer".to_string();
    let with = BufferFill::Contents("contents".into());
    let asks = [
        Ask::Keep { contents: "contents".into(), bytes: 4096 },
        Ask::Allocate { set: 0, name: name(), bytes: 8192, offset: 1024, own: 4096 },
        Ask::Lay { set: 0, canary: 1, buffers: vec![BufferLayout { name: name(), with, before: Reset::Keep }] },
        Ask::Show { set: 0, names: vec![name()], canary: 1, salt: 3 },
        Ask::Read { set: 0, name: name() },
        Ask::Rest { keep: 0 },
    ];
    for ask in asks {
        let what = ask.phase();
        session.meet(ask).map_err(|trouble| format!("{what}: {}", of(trouble)))?;
    }
    Ok(session)
}
