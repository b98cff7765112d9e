//! The worker's side of a device's runner: starts the runner, sends requests to it, kills it when its time is over, and keeps it warm for the next step. Knows
//! processes and messages, but not the purpose of the requests.
//!
//! The worker keeps a runner that answered every request, because creating a context takes a third of a second. Between steps the runner holds no module and no
//! buffer, only inputs that the next step may need again, and unused memory. After an error of the driver (other than a refused launch), a time-out or a crash,
//! the runner is ended with its process group, and the next step starts another one.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::confined::{ConfinedDriverError, confinement};
use super::exchange::Exchange;
use super::facts::{DeviceFacts, Probed};
use super::fault::{Fault, Meaning};
use super::wire::{Answer, Ask, Start};
use super::{TOOL, known_list};
use kforge_engine::lock::{Lock, Mode, Wait};
use kforge_foundation::base::Digest;
use kforge_foundation::process::{Command, End, Limits, Talker};
use kforge_harness::confine;
use kforge_harness::message::{Places, Response};
use kforge_harness::task::{Task, done, failed};
use kforge_types::record::Verdict;

/// The time limit for creating a context: a driver that wakes a device takes some seconds.
const CREATING: Duration = Duration::from_secs(60);

/// The time limit for a tool to write its results after the runner has ended.
pub(super) const WRITING: Duration = Duration::from_secs(30);

/// The most bytes of device memory that a runner keeps between steps, for contents and for the memory of earlier buffers. The current step may need more.
const KEPT: u64 = 2 << 30;

/// The same limit on a device with this many free bytes. There may be several runners.
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
    ran: BTreeSet<Digest>,
    unconfined: Vec<String>,
}

static IDLE: Mutex<Option<Idle>> = Mutex::new(None);

/// A runner that is being started: its process, and the thread that waits for it and then keeps it as the idle one.
static STARTING: Mutex<Option<(u32, JoinHandle<()>)>> = Mutex::new(None);

/// The processes that are kept between steps. They must not be killed with the processes that a step left behind.
pub fn warm() -> Vec<u32> {
    // In this order: a runner is idle before its thread ends.
    let starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    let starting = starting.as_ref().filter(|(_, thread)| !thread.is_finished()).map(|(pid, _)| *pid);
    let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    starting.into_iter().chain(idle.as_ref().map(|idle| idle.talker.pid())).collect()
}

/// Why a request has no answer.
#[derive(Debug)]
pub(super) enum Lost {
    /// The driver's error.
    Fault(Fault),
    /// The worker's time limit passed.
    TimedOut(Duration),
    /// The runner ended: how, and the last line of its output.
    Died(String),
    /// The runner cannot do it.
    Refused(String),
    /// The step ends without an answer, because the device is another one, or because the step cannot make what a further request needs: the step's response.
    Unasked(Response),
}

impl Lost {
    /// The failing verdict of a candidate that was being timed, and whether the failure may be temporary.
    ///
    /// # Errors
    /// The candidate did not cause the loss: the step's response.
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

    /// The response of a step that ends with this loss. Faults of the candidate are not handled here.
    pub(super) fn response(self) -> Response {
        match self {
            Lost::Fault(fault) if fault.meaning() == Meaning::Lacking => {
                Response::Unavailable { why: fault.to_string() }
            }
            Lost::Fault(fault) => failed(fault.to_string()),
            Lost::TimedOut(limit) => failed(format!("the device's runner gave no answer within {limit:?}")),
            Lost::Died(how) => failed(format!("the device's runner {how}")),
            Lost::Refused(why) => failed(format!("the device's runner refused: {why}")),
            Lost::Unasked(response) => response,
        }
    }
}

/// How a runner is started.
pub(super) enum Starter<'a> {
    /// It confines itself.
    Confined,
    /// It does not confine itself: the user permits that, and the driver does not start otherwise.
    Unconfined,
    /// By a tool. It does not confine itself, because the tool's library in its process opens files and sockets of its own.
    Under(&'a WrappingTool),
}

/// A tool that starts a runner and observes it.
#[derive(Debug)]
pub(super) struct WrappingTool {
    /// The tool.
    pub(super) program: PathBuf,
    /// Its arguments, up to the runner's own command.
    pub(super) args: Vec<OsString>,
    /// The folder for the tool's files.
    pub(super) folder: PathBuf,
}

impl WrappingTool {
    /// The command of the tool with the path of this program. A tool needs the real path, because it would resolve `/proc/self/exe` to itself.
    fn command(&self) -> io::Result<Command> {
        let own = std::fs::read_link("/proc/self/exe")?;
        // Tools are scripts that start other programs in their folder, and keep locks in the folder for temporary files. Without a home, none of the user's
        // settings are read.
        let command = Command::new(&self.program).args(&self.args).arg(own);
        let command = command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("LC_ALL", "C");
        Ok(command.env("TMPDIR", &self.folder))
    }
}

/// A runner that executes one step.
pub(super) struct Client {
    talker: Option<Talker>,
    pub(super) exchange: Exchange,
    pub(super) facts: DeviceFacts,
    /// Bytes of device memory that were free when the runner started.
    pub(super) free: u64,
    /// Whether the runner was started by a tool.
    is_under: bool,
    /// Names and sizes of the contents that the runner keeps, least recently used first.
    pub(super) contents: Vec<(String, u64)>,
    /// How long the current step waited for answers, by [`Ask::phase`].
    pub(super) spent: BTreeMap<&'static str, Duration>,
    /// Whether the runner holds nothing of the current step.
    rested: bool,
    /// Whether the runner refused a request: it may then not hold what the worker assumes.
    has_refused: bool,
    /// Requests that are sent together with the next one.
    queued: Vec<Ask>,
    /// Whether a queued request reads bytes from the exchange.
    is_handed: bool,
    /// Whether the runner ever received the salt of the sums, which may then still be in its memory.
    pub(super) is_salted: bool,
    /// The binaries that were loaded into the runner since it started.
    pub(super) ran: BTreeSet<Digest>,
    /// In which respects the runner is not confined, one sentence each.
    pub(super) unconfined: Vec<String>,
}

/// The UUID of the device for a step of this architecture that names no device, as a step that a person runs; none if no device fits.
pub fn resolve(places: &Places, arch: &str) -> Option<String> {
    let bytes = std::fs::read(places.tools.get(TOOL)?).ok()?;
    let probed: Probed = serde_json::from_slice(&bytes).ok()?;
    probed.present().resolve(arch, None).and_then(|resolved| resolved.uuids.first().cloned())
}

/// Starts the runner of the task's device, which is kept for the first step there. Does not wait until it is ready: that takes a third of a second, in which the
/// step can make its inputs. If the runner does not start, the step starts one itself and reports why that fails.
pub fn warm_up(task: &Task) -> Response {
    if !warm().is_empty() {
        return done("warm already", vec![]);
    }
    let arch = task.spec.params.get("arch").and_then(|arch| arch.as_str()).unwrap_or_default();
    let begin = || -> Result<(), Response> {
        let (probed, facts) = Client::find(task, arch)?;
        let turn = starting(task, &facts)?;
        let client = Client::spawn(&probed, facts, &Starter::Confined).map_err(Lost::response)?;
        let (left, allow_unconfined) = (task.left(), task.allow_unconfined);
        let pid = client.talker.as_ref().map_or(0, Talker::pid);
        let waits = std::thread::Builder::new().spawn(move || {
            if let Ok(client) = client.ready(left)
                && (client.unconfined.is_empty() || allow_unconfined)
            {
                client.keep();
            }
            drop(turn);
        });
        let waits = waits.map_err(|e| failed(format!("cannot start a thread: {e}")))?;
        *STARTING.lock().unwrap_or_else(PoisonError::into_inner) = Some((pid, waits));
        Ok(())
    };
    begin().map_or_else(|response| response, |()| done("started", vec![]))
}

/// Whether a thread waits for a runner that is being started. Until it has ended, no other code may wait for any child.
pub fn is_starting() -> bool {
    let starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    starting.as_ref().is_some_and(|(_, thread)| !thread.is_finished())
}

/// Waits for a runner that is being started. This does not count as the task's time.
fn started(task: &Task) {
    let began = Instant::now();
    let thread = STARTING.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some((_, thread)) = thread {
        // A panic of the thread is a runner that did not start.
        drop(thread.join());
        task.waited(began.elapsed());
    }
}

/// Removes the list of devices that the builds of this user share, so that the next one asks the driver.
fn forget_known(task: &Task) {
    if let Some(folder) = task.tool(TOOL).ok().and_then(Path::parent) {
        let _ = std::fs::remove_file(known_list(folder));
    }
}

/// The devices that the task names.
pub(super) fn probed(task: &Task) -> Result<Probed, Response> {
    let none = |why: String| Response::Unavailable { why };
    let place = task.tool(TOOL)?;
    let bytes = std::fs::read(place).map_err(|e| none(format!("cannot read `{}`: {e}", place.display())))?;
    serde_json::from_slice(&bytes).map_err(|e| none(format!("`{}` lists no devices: {e}", place.display())))
}

/// The file that is locked while a device is used; it is next to the list of devices.
pub(super) fn lock_file(task: &Task, facts: &DeviceFacts) -> Option<PathBuf> {
    Some(lock_path(task.tool(TOOL).ok()?.parent()?, &facts.uuid))
}

/// The same for the device with this UUID. `folder` is that of the list.
pub fn lock_path(folder: &Path, uuid: &str) -> PathBuf {
    folder.join("locks").join(format!("device-{uuid}"))
}

/// The lock for starting a runner on a device. Creating two contexts at once takes as long as creating one after the other, so in sequence the first one is
/// ready sooner. Runners that a tool starts do not take this lock; they start while the tool's step holds the device. The wait for this lock does not count as
/// the task's time.
fn starting(task: &Task, facts: &DeviceFacts) -> Result<Option<Lock>, Response> {
    let began = Instant::now();
    let take = |path: PathBuf| Lock::acquire(&path.with_extension("start"), Mode::Exclusive, Wait::Forever(&mut || {}));
    let lock = lock_file(task, facts).map(take).transpose().map_err(|e| failed(e.to_string()))?;
    task.waited(began.elapsed());
    Ok(lock)
}

/// Why a step does not run at a device that is not what the driver stated when the devices were listed.
fn differs(listed: &DeviceFacts) -> String {
    let DeviceFacts { product, uuid, .. } = listed;
    format!(
        "the device {product} ({uuid}) changed since kforge listed the devices of this machine; run the command again, or restart the server or worker"
    )
}

/// Restricts a command to one device.
pub(super) fn at_device(command: Command, probed: &Probed, facts: &DeviceFacts) -> Command {
    let command = command
        .env("CUDA_VISIBLE_DEVICES", &facts.uuid)
        // With one visible device the order of ordinals does not matter, but setting it removes a dependency on the machine.
        .env("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        // Nothing is written to a cache, and nothing is compiled or loaded while samples are taken.
        .env("CUDA_CACHE_DISABLE", "1")
        .env("CUDA_MODULE_LOADING", "EAGER");
    match &probed.library_path {
        Some(path) => command.env("LD_LIBRARY_PATH", path),
        None => command,
    }
}

impl Client {
    /// The task's device, with the list of devices that it is from. Waits for a runner that is being started, because it would disturb what uses the device.
    pub(super) fn find(task: &Task, arch: &str) -> Result<(Probed, DeviceFacts), Response> {
        started(task);
        let probed = probed(task)?;
        let none = |why: String| Response::Unavailable { why };
        let uuid = task.device.as_ref().ok_or_else(|| none(format!("no device here runs `{arch}`")))?;
        let facts = probed.devices.iter().find(|device| device.uuid == *uuid).cloned();
        Ok((probed, facts.ok_or_else(|| none(format!("the device `{uuid}` is no longer on this machine")))?))
    }

    /// A runner on the task's device: the warm one, unless `fresh` is set.
    pub(super) fn start(task: &Task, arch: &str, fresh: bool) -> Result<Self, Response> {
        Self::start_where(task, arch, &|_| !fresh)
    }

    /// A runner on the task's device that has run no other binary than this one: the warm one, if that is true of it.
    pub(super) fn start_isolated(task: &Task, arch: &str, binary: &Digest) -> Result<Self, Response> {
        Self::start_where(task, arch, &|ran| ran.iter().all(|other| other == binary))
    }

    /// A runner on the task's device: the warm one, if the binaries that it ran suit.
    fn start_where(task: &Task, arch: &str, suits: &dyn Fn(&BTreeSet<Digest>) -> bool) -> Result<Self, Response> {
        let (probed, facts) = Self::find(task, arch)?;
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).take();
        let fits = |i: &Idle| i.uuid == facts.uuid && (i.unconfined.is_empty() || task.allow_unconfined);
        if let Some(idle) = idle.filter(|i| suits(&i.ran) && fits(i) && i.talker.is_alive()) {
            let Idle { talker, exchange, free, contents, is_salted, ran, unconfined, .. } = idle;
            return Ok(Client {
                free,
                contents,
                is_salted,
                ran,
                unconfined,
                ..Self::new(talker, exchange, facts, false)
            });
        }
        let turn = starting(task, &facts)?;
        let begun = Self::begin(&probed, facts.clone(), task.left(), &Starter::Confined);
        drop(turn);
        match begun {
            Ok(client) if client.unconfined.is_empty() || task.allow_unconfined => Ok(client),
            Ok(client) => Err(Response::Unavailable { why: confine::refusal("kernels", &client.unconfined) }),
            Err(lost) => {
                forget_known(task);
                Self::start_unconfined(task, &probed, facts, lost)
            }
        }
    }

    /// A runner that is not confined, if that is why none has started, and if the user permits it.
    fn start_unconfined(task: &Task, probed: &Probed, facts: DeviceFacts, lost: Lost) -> Result<Self, Response> {
        // No candidate code has run yet.
        let response = |lost: Lost| match lost {
            Lost::Refused(why) => Response::Unavailable { why },
            lost => lost.response(),
        };
        let why = match &lost {
            Lost::Refused(why) | Lost::Died(why) => why.clone(),
            Lost::Fault(fault) if fault.meaning() != Meaning::Lacking => fault.to_string(),
            _ => return Err(response(lost)),
        };
        let Some(refused) = ConfinedDriverError::of(probed, &facts, &why, task.left()) else {
            return Err(response(lost));
        };
        if !task.allow_unconfined {
            return Err(Response::Unavailable { why: refused.refusal() });
        }
        let begun = Self::begin(probed, facts, task.left(), &Starter::Unconfined).map_err(response)?;
        Ok(Client { unconfined: vec![refused.to_string()], ..begun })
    }

    /// Starts a runner on a device, confined, or under a tool, and waits until it is ready.
    pub(super) fn begin(
        probed: &Probed,
        facts: DeviceFacts,
        left: Duration,
        starter: &Starter<'_>,
    ) -> Result<Self, Lost> {
        Self::spawn(probed, facts, starter)?.ready(left)
    }

    /// Starts the process of a runner.
    fn spawn(probed: &Probed, facts: DeviceFacts, starter: &Starter<'_>) -> Result<Self, Lost> {
        let system = |e: io::Error| Lost::Refused(format!("it cannot be started: {e}"));
        let exchange = Exchange::new().map_err(system)?;
        let own = std::process::id();
        let (at, parent, keep) = match starter {
            Starter::Confined => {
                let limits = Limits { die_with: Some(own), ..Limits::default() };
                let keep = confinement(probed, vec![exchange.descriptor().as_raw_fd()], limits);
                (exchange.inherited(), Some(own), Some(keep))
            }
            Starter::Unconfined => (exchange.inherited(), Some(own), None),
            Starter::Under(_) => (exchange.path(), None, None),
        };
        let start = Start { libcuda: probed.libcuda.clone(), exchange: at, parent, keep };
        let start = serde_json::to_string(&start).map_err(|e| system(io::Error::other(e)))?;
        let command = match starter {
            Starter::Confined | Starter::Unconfined => Command::own().inherit(exchange.descriptor()),
            Starter::Under(tool) => tool.command().map_err(system)?,
        };
        let command = at_device(command.args(["worker", "--device-runner", &start]), probed, &facts);
        let talker = Talker::start(&command).map_err(system)?.awake(super::AWAKE);
        Ok(Self::new(talker, exchange, facts, matches!(starter, Starter::Under(_))))
    }

    /// Waits until the runner has a context.
    fn ready(mut self, left: Duration) -> Result<Self, Lost> {
        match self.line("", CREATING.min(left))? {
            Answer::Ready { free, missing, device } => {
                let device = DeviceFacts { driver: self.facts.driver.clone(), ..*device };
                // A tool may alter what the driver states.
                if device != self.facts && !self.is_under {
                    return Err(Lost::Unasked(Response::Unavailable { why: differs(&self.facts) }));
                }
                (self.free, self.unconfined) = (free, missing);
            }
            other => return Err(Lost::Died(format!("answered `{other:?}` when kforge started it"))),
        }
        Ok(self)
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
            ran: BTreeSet::new(),
            unconfined: vec![],
        }
    }

    /// The file that is locked while the device is used.
    pub(super) fn lock_file(&self, task: &Task) -> Option<PathBuf> {
        lock_file(task, &self.facts)
    }

    /// Queues a request that has no result of its own, to be sent with the next request: a round trip costs more than most requests.
    pub(super) fn later(&mut self, ask: Ask) {
        self.rested = false;
        self.queued.push(ask);
    }

    /// Sends a request and waits for at most `limit`. After any loss except a refusal, the runner is gone.
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

    /// Sends the queued requests now, within `limit`, if they include any that may take long: loading a module, and copying contents to the device.
    pub(super) fn prepare(&mut self, limit: Duration) -> Result<(), Lost> {
        let long = |ask: &Ask| matches!(ask, Ask::Load { .. } | Ask::Keep { .. });
        // What follows the last of them does not take long, and may be sent with the run.
        let Some(last) = self.queued.iter().rposition(long) else { return Ok(()) };
        let after = self.queued.split_off(last + 1);
        let sent = self.queued.pop().map_or(Ok(()), |ask| self.ask(ask, limit).map(drop));
        self.queued = after;
        sent
    }

    /// Puts bytes into the exchange and queues a request that reads them. If the bytes of an earlier request are still in the exchange, that request is sent
    /// first, within `limit`.
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

    /// Reads a whole buffer.
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
        // The coordinator ends a worker that is interrupted, and the runner ends with it.
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
            // The runner ends itself, and dropping the talker ensures that. A tool around the runner first has to write its results. After a refused launch the
            // runner continues; if it has ended nevertheless, the next request reports that.
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

    /// Lets the runner, and the tool around it, end by themselves within `grace` after the queued requests. Returns how they ended.
    pub(super) fn end(mut self, grace: Duration) -> Result<End, Lost> {
        if let Some(last) = self.queued.pop() {
            self.ask(last, grace)?;
        }
        let talker = self.talker.take().ok_or_else(|| Lost::Refused("it has ended".into()))?;
        talker.dismiss(grace).map_err(|e| Lost::Died(format!("cannot be reached: {e}")))
    }

    /// Makes the runner drop everything of the current step. The work that this takes on the device is complete when this returns.
    pub(super) fn rest(&mut self) {
        let kept: u64 = self.contents.iter().map(|(_, bytes)| bytes).sum();
        let keep = at_most(self.free).saturating_sub(kept);
        self.rested = self.talker.is_some() && self.ask(Ask::Rest { keep }, Duration::from_secs(10)).is_ok();
    }

    /// Keeps the runner for the next step if it is in a known state. A runner that refused a request may not hold the contents that the worker assumes.
    pub(super) fn keep(mut self) {
        if !self.rested {
            self.rest();
        }
        if !self.rested || self.has_refused {
            return;
        }
        let (Some(talker), Ok(())) = (self.talker.take(), self.exchange.empty()) else { return };
        let Client { exchange, facts, free, contents, is_salted, ran, unconfined, .. } = self;
        let idle = Idle { uuid: facts.uuid, talker, exchange, free, contents, is_salted, ran, unconfined };
        let old = IDLE.lock().unwrap_or_else(PoisonError::into_inner).replace(idle);
        // Its process is ended without the lock.
        drop(old);
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
