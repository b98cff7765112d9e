//! The worker's side of a device's runner: starts it, sends it requests, kills it when its time is over, and keeps it warm for the next step. Knows processes and
//! messages; does not know what the requests are for.
//!
//! The worker keeps a runner that answered everything, because a context costs a third of a second. Between steps it holds no module and no
//! buffer, only inputs that the next step may want again, and memory that holds nothing. One that met an error of
//! the driver (other than a refused launch), ran out of time or died is ended with its process group, and the next step gets another.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::TOOL;
use super::exchange::Exchange;
use super::facts::{DeviceFacts, Probed};
use super::fault::{Fault, Meaning};
use super::wire::{Answer, Ask, Start};
use kforge_engine::lock::{Lock, Mode, Wait};
use kforge_foundation::process::{Command, End, Talker};
use kforge_harness::message::{Places, Response};
use kforge_harness::task::{Task, failed};
use kforge_types::record::Verdict;

/// How long a context may take to be made: a driver that wakes a device takes some seconds.
const STARTING: Duration = Duration::from_secs(60);

/// How long a tool may take to write what it saw once the runner has ended.
pub(super) const WRITING: Duration = Duration::from_secs(30);

/// Bytes of device memory that a runner keeps between steps at most, of contents and of what buffers lay in; where the step at hand needs no more.
const KEPT: u64 = 2 << 30;

/// The same on a device with this many bytes free. There may be several runners.
pub(super) fn at_most(free: u64) -> u64 {
    KEPT.min(free / 16)
}

/// An idle runner.
struct Idle {
    uuid: String,
    talker: Talker,
    exchange: Exchange,
    free: u64,
    contents: Vec<(String, u64)>,
    is_salted: bool,
}

static IDLE: Mutex<Option<Idle>> = Mutex::new(None);

/// The process that is kept between steps, if there is one: it is not to be ended with what a step left behind.
pub fn warm() -> Option<u32> {
    let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    idle.as_ref().map(|idle| idle.talker.pid())
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Lost {
    /// The driver's error.
    Fault(Fault),
    /// The worker's time limit passed.
    TimedOut(Duration),
    /// The runner ended: how, and what it said last.
    Died(String),
    /// It cannot be done.
    Refused(String),
}

impl Lost {
    /// What this says of a candidate that was being timed: a failing verdict, and whether it may be another next time.
    ///
    /// # Errors
    /// The step's response, where the candidate did not do it.
    pub(super) fn verdict(self) -> Result<(Verdict, bool), Response> {
        match self {
            Lost::Fault(fault) if matches!(fault.meaning(), Meaning::Candidate(_)) => {
                Ok((Verdict::Fail(fault.to_string()), fault.passes()))
            }
            Lost::TimedOut(limit) => {
                Ok((Verdict::Fail(format!("timed out after {} s", limit.as_secs_f64().round())), true))
            }
            lost => Err(lost.response()),
        }
    }

    /// The response of a step that can say nothing but this. What the candidate did is not among it.
    pub(super) fn response(self) -> Response {
        match self {
            Lost::Fault(fault) if fault.meaning() == Meaning::Lacking => {
                Response::Unavailable { why: fault.to_string() }
            }
            Lost::Fault(fault) => failed(fault.to_string()),
            Lost::TimedOut(limit) => failed(format!("the device's runner gave no answer within {limit:?}")),
            Lost::Died(how) => failed(format!("the device's runner {how}")),
            Lost::Refused(why) => failed(format!("the device's runner refused: {why}")),
        }
    }
}

/// A tool that starts a runner and looks into what it does.
#[derive(Debug)]
pub(super) struct WrappingTool {
    /// The tool.
    pub(super) program: PathBuf,
    /// Its arguments, up to the runner's own command.
    pub(super) args: Vec<OsString>,
    /// Where it keeps what it keeps.
    pub(super) folder: PathBuf,
}

impl WrappingTool {
    /// The tool and this very program, whose path a tool wants: `/proc/self/exe` would be the tool's own.
    fn command(&self) -> io::Result<Command> {
        let own = std::fs::read_link("/proc/self/exe")?;
        // Tools are scripts that start programs beside them, and keep locks in the folder for temporary files. Without a home none of the user's settings are read.
        let command = Command::new(&self.program).args(&self.args).arg(own);
        let command = command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("LC_ALL", "C");
        Ok(command.env("TMPDIR", &self.folder))
    }
}

/// A runner at work for one step.
pub(super) struct Client {
    talker: Option<Talker>,
    pub(super) exchange: Exchange,
    pub(super) facts: DeviceFacts,
    /// Bytes of device memory that were free when it started.
    pub(super) free: u64,
    /// Whether a tool started it.
    is_under: bool,
    /// Names and bytes of the contents that it keeps, the one that was used longest ago first.
    pub(super) contents: Vec<(String, u64)>,
    /// How long the step at hand waited for its answers, by [`Ask::phase`].
    pub(super) spent: BTreeMap<&'static str, Duration>,
    /// Whether nothing of the step at hand is left in it.
    rested: bool,
    /// Whether it could not do something: what it holds is then not what it was asked to.
    has_refused: bool,
    /// Requests that are sent together with the next one.
    queued: Vec<Ask>,
    /// Whether one of those takes bytes from the exchange.
    is_handed: bool,
    /// Whether it ever received the salt of the sums: the salt may then still be in its memory.
    pub(super) is_salted: bool,
}

/// The UUID of the device on which a step for that architecture runs that was given none, as one that is run by hand is; none if no device fits.
pub fn resolve(places: &Places, arch: &str) -> Option<String> {
    let bytes = std::fs::read(places.tools.get(TOOL)?).ok()?;
    let probed: Probed = serde_json::from_slice(&bytes).ok()?;
    probed.present().resolve(arch, None).and_then(|resolved| resolved.uuids.first().cloned())
}

/// The devices that the task names.
pub(super) fn probed(task: &Task) -> Result<Probed, Response> {
    let none = |why: String| Response::Unavailable { why };
    let place = task.tool(TOOL)?;
    let bytes = std::fs::read(place).map_err(|e| none(format!("cannot read `{}`: {e}", place.display())))?;
    serde_json::from_slice(&bytes).map_err(|e| none(format!("`{}` lists no devices: {e}", place.display())))
}

/// The file whose lock says who uses a device: beside the list of devices.
pub(super) fn lock_file(task: &Task, facts: &DeviceFacts) -> Option<PathBuf> {
    let folder = task.tool(TOOL).ok()?.parent()?;
    Some(folder.join("locks").join(format!("device-{}", facts.uuid)))
}

/// The lock of who starts a runner on a device: two contexts that are made at once take each as long as both one after the other, and so the first of them can be used
/// sooner. Runners that a tool starts begin in a turn of their own at the device. What it waits is not the task's time.
fn starting(task: &Task, facts: &DeviceFacts) -> Result<Option<Lock>, Response> {
    let began = Instant::now();
    let take = |path: PathBuf| Lock::acquire(&path.with_extension("start"), Mode::Exclusive, Wait::Forever(&mut || {}));
    let lock = lock_file(task, facts).map(take).transpose().map_err(|e| failed(e.to_string()))?;
    task.waited(began.elapsed());
    Ok(lock)
}

/// A command that sees one device only.
pub(super) fn at_device(command: Command, probed: &Probed, facts: &DeviceFacts) -> Command {
    let command = command
        .env("CUDA_VISIBLE_DEVICES", &facts.uuid)
        // The order in which ordinals count does not matter then, but it is one thing less that depends on the machine.
        .env("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        // Nothing is written outside, and nothing is compiled or loaded while samples are taken.
        .env("CUDA_CACHE_DISABLE", "1")
        .env("CUDA_MODULE_LOADING", "EAGER");
    match &probed.library_path {
        Some(path) => command.env("LD_LIBRARY_PATH", path),
        None => command,
    }
}

impl Client {
    /// The device of the task, among those that it names.
    pub(super) fn find(task: &Task, arch: &str) -> Result<(Probed, DeviceFacts), Response> {
        let probed = probed(task)?;
        let none = |why: String| Response::Unavailable { why };
        let uuid = task.device.as_ref().ok_or_else(|| none(format!("no device here runs `{arch}`")))?;
        let facts = probed.devices.iter().find(|device| device.uuid == *uuid).cloned();
        Ok((probed, facts.ok_or_else(|| none(format!("the device `{uuid}` is no longer on this machine")))?))
    }

    /// A runner on the device that the task asks for: the warm one, unless a `fresh` one is wanted.
    pub(super) fn start(task: &Task, arch: &str, fresh: bool) -> Result<Self, Response> {
        let (probed, facts) = Self::find(task, arch)?;
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(idle) = idle.filter(|i| !fresh && i.uuid == facts.uuid && i.talker.is_alive()) {
            let Idle { talker, exchange, free, contents, is_salted, .. } = idle;
            return Ok(Client { free, contents, is_salted, ..Self::new(talker, exchange, facts, false) });
        }
        let turn = starting(task, &facts)?;
        let begun = Self::begin(&probed, facts, task.left(), None);
        drop(turn);
        begun.map_err(|lost| match lost {
            // Nothing of the candidate's is there yet.
            Lost::Refused(why) => Response::Unavailable { why },
            lost => lost.response(),
        })
    }

    /// Starts a runner on a device, under a tool if one is given.
    pub(super) fn begin(
        probed: &Probed,
        facts: DeviceFacts,
        left: Duration,
        under: Option<&WrappingTool>,
    ) -> Result<Self, Lost> {
        let system = |e: io::Error| Lost::Refused(format!("it cannot be started: {e}"));
        let exchange = Exchange::new().map_err(system)?;
        let (at, parent) = match under {
            None => (exchange.inherited(), Some(std::process::id())),
            Some(_) => (exchange.path(), None),
        };
        let start = Start { libcuda: probed.libcuda.clone(), exchange: at, parent };
        let start = serde_json::to_string(&start).map_err(|e| system(io::Error::other(e)))?;
        let command = match under {
            None => Command::own().inherit(exchange.descriptor()),
            Some(under) => under.command().map_err(system)?,
        };
        let command = at_device(command.args(["worker", "--device-runner", &start]), probed, &facts);
        let talker = Talker::start(&command).map_err(system)?.awake(super::AWAKE);
        let mut client = Self::new(talker, exchange, facts, under.is_some());
        match client.line("", STARTING.min(left))? {
            Answer::Ready { free } => client.free = free,
            other => return Err(Lost::Died(format!("answered `{other:?}` when kforge started it"))),
        }
        Ok(client)
    }

    fn new(talker: Talker, exchange: Exchange, facts: DeviceFacts, is_under: bool) -> Self {
        Client {
            talker: Some(talker),
            exchange,
            facts,
            free: 0,
            is_under,
            contents: vec![],
            spent: BTreeMap::new(),
            rested: false,
            has_refused: false,
            queued: vec![],
            is_handed: false,
            is_salted: false,
        }
    }

    /// The file whose lock says who uses the device.
    pub(super) fn lock_file(&self, task: &Task) -> Option<PathBuf> {
        lock_file(task, &self.facts)
    }

    /// Asks for what has no answer but that it is done together with the next request: each turn of asking and answering costs more than most of what is asked.
    pub(super) fn later(&mut self, ask: Ask) {
        self.rested = false;
        self.queued.push(ask);
    }

    /// Asks, and waits for `limit` at most. After any loss but a refusal the runner is gone.
    pub(super) fn ask(&mut self, ask: Ask, limit: Duration) -> Result<Answer, Lost> {
        let ask = if self.queued.is_empty() {
            ask
        } else {
            self.queued.push(ask);
            Ask::All { asks: std::mem::take(&mut self.queued) }
        };
        let line = serde_json::to_string(&ask).map_err(|e| Lost::Refused(e.to_string()))?;
        (self.rested, self.is_handed) = (false, false);
        let began = Instant::now();
        let answer = self.line(&line, limit);
        *self.spent.entry(ask.phase()).or_default() += began.elapsed();
        answer
    }

    /// Puts bytes into the exchange, and asks together with the next request; what was handed before is taken first, within `limit`.
    pub(super) fn hand(&mut self, bytes: &[u8], ask: Ask, limit: Duration) -> Result<(), Lost> {
        if self.is_handed
            && let Some(last) = self.queued.pop()
        {
            self.ask(last, limit)?;
        }
        self.exchange.put(bytes).map_err(|e| Lost::Refused(format!("bytes cannot be handed over: {e}")))?;
        self.is_handed = true;
        self.later(ask);
        Ok(())
    }

    /// Asks for a whole buffer.
    pub(super) fn read(&mut self, ask: Ask, bytes: u64, limit: Duration) -> Result<Vec<u8>, Lost> {
        let system = |e: io::Error| Lost::Refused(format!("bytes cannot be taken: {e}"));
        self.exchange.make_room(bytes).map_err(system)?;
        match self.ask(ask, limit)? {
            Answer::Bytes { bytes: got } if got == bytes => self.exchange.take(bytes).map_err(system),
            other => Err(Lost::Died(format!("answered `{other:?}` when asked for {bytes} bytes"))),
        }
    }

    fn line(&mut self, line: &str, limit: Duration) -> Result<Answer, Lost> {
        let talker = self.talker.take().ok_or_else(|| Lost::Refused("it has ended".into()))?;
        // The coordinator ends a worker that is interrupted, and its runner with it.
        let answered = talker.exchange(line, limit, &AtomicBool::new(false));
        let (talker, text) = match answered.map_err(|e| Lost::Died(format!("cannot be reached: {e}")))? {
            Ok(answered) => answered,
            Err(died) if matches!(died.end, End::TimedOut(_)) => return Err(Lost::TimedOut(limit)),
            Err(died) => {
                let said = died.stderr.text();
                let last = said.trim().lines().last().unwrap_or_default();
                return Err(Lost::Died(format!("{}: {last}", died.end).trim_end_matches(": ").to_string()));
            }
        };
        let unknown =
            |_| Lost::Died(format!("gave a malformed answer: {}", text.chars().take(200).collect::<String>()));
        let answer = serde_json::from_str(&text).map_err(unknown)?;
        match answer {
            // It ends itself; dropping it makes sure. A tool around it has something to write first. After a launch that was refused it goes on; should it not, it is
            // found to have ended by the next request.
            Answer::Fault(fault) => {
                if self.is_under {
                    drop(talker.dismiss(WRITING));
                } else if fault.is_refusal() {
                    self.talker = Some(talker);
                }
                Err(Lost::Fault(fault))
            }
            Answer::Refused { why } => {
                self.talker = Some(talker);
                self.has_refused = true;
                Err(Lost::Refused(why))
            }
            answer => {
                self.talker = Some(talker);
                Ok(answer)
            }
        }
    }

    /// Has the runner, and the tool that it is under, end by themselves within `grace`, once it has done what is asked; says how they did.
    pub(super) fn end(mut self, grace: Duration) -> Result<End, Lost> {
        if let Some(last) = self.queued.pop() {
            self.ask(last, grace)?;
        }
        let talker = self.talker.take().ok_or_else(|| Lost::Refused("it has ended".into()))?;
        talker.dismiss(grace).map_err(|e| Lost::Died(format!("cannot be reached: {e}")))
    }

    /// Has the runner leave all that is of the step at hand. What that takes on the device is done when this returns.
    pub(super) fn rest(&mut self) {
        let kept: u64 = self.contents.iter().map(|(_, bytes)| bytes).sum();
        let keep = at_most(self.free).saturating_sub(kept);
        self.rested = self.talker.is_some() && self.ask(Ask::Rest { keep }, Duration::from_secs(10)).is_ok();
    }

    /// Keeps the runner for the next step, if all is well with it. One that has refused something may not hold the contents that are thought to be there.
    pub(super) fn keep(mut self) {
        if !self.rested {
            self.rest();
        }
        if !self.rested || self.has_refused {
            return;
        }
        let (Some(talker), Ok(())) = (self.talker.take(), self.exchange.empty()) else { return };
        let Client { exchange, facts, free, contents, is_salted, .. } = self;
        let idle = Idle { uuid: facts.uuid, talker, exchange, free, contents, is_salted };
        *IDLE.lock().unwrap_or_else(PoisonError::into_inner) = Some(idle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_candidate_did_is_a_verdict_and_the_rest_the_steps_end() {
        let fault =
            |name: &str| Lost::Fault(Fault { code: 2, name: name.into(), text: String::new(), during: "x".into() });
        assert!(matches!(fault("CUDA_ERROR_ILLEGAL_ADDRESS").verdict(), Ok((Verdict::Fail(_), false))));
        let late = Lost::TimedOut(Duration::from_secs(5)).verdict();
        assert!(matches!(late, Ok((Verdict::Fail(why), true)) if why == "timed out after 5 s"));
        assert!(fault("CUDA_ERROR_UNKNOWN").verdict().is_err());
    }

    #[test]
    fn what_the_machine_lacks_is_unavailable_and_the_rest_has_failed() {
        let fault =
            |name: &str| Lost::Fault(Fault { code: 2, name: name.into(), text: String::new(), during: "x".into() });
        let lacking = fault("CUDA_ERROR_OUT_OF_MEMORY").response();
        assert!(matches!(lacking, Response::Unavailable { .. }), "{lacking:?}");
        let broken = fault("CUDA_ERROR_UNKNOWN").response();
        assert!(matches!(broken, Response::Failed { .. }), "{broken:?}");
    }
}
