//! Times calls of kernels in PyTorch, by the clock of a process that holds the memory of their tensors. Knows that process and its turn at the device; the step
//! (`worker/steps/verifier/calls.rs`) knows the kernel's process, inputs and expected values.

mod descriptors;
mod process;
mod store;

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use process::call_clock_main;

use super::bench::tell;
use super::client::at_device;
use super::exchange::Exchange;
use super::fault::Meaning;
use super::in_torch::TorchDevice;
use super::monitor::{Monitor, State};
use super::wire::{Answer, Start};
use kforge_foundation::process::{Command, Talker};
use kforge_harness::candidate::{GIVEN_UP, Shared, SharedTensor, WORDS};
use kforge_harness::memory_file::MemoryFile;
use kforge_harness::message::Response;
use kforge_harness::task::failed;
use kforge_numerics::measure::sampling;
use kforge_types::model::{Problem, Role};
use kforge_types::record::Provenance;

/// The time for starting a driver, and for moving the bytes of a tensor.
const MOVING: Duration = Duration::from_secs(120);

/// The argument that starts the process, after `--call-clock`.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ClockStart {
    start: Start,
    /// Whether the memory is that of a device.
    on_device: bool,
    /// The path of the page.
    page: PathBuf,
    /// The number of an inherited socket, for descriptors.
    socket: i32,
    tensors: Vec<TensorMemory>,
}

/// The memory that a tensor needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct TensorMemory {
    bytes: u64,
    /// Whether kernels read it, and whether they write it.
    read: bool,
    written: bool,
}

/// The requests to the process, after an empty line that starts it. Tensors are named by their positions.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Ask {
    /// Keep this many bytes of the exchange as the tensor's contents in the next call.
    Stage { tensor: usize, bytes: u64 },
    /// Time a call.
    Time { number: u64, poison: u8, limit_ms: u64 },
    /// Put the contents that the last call left in a written tensor into the exchange.
    Taken { tensor: usize },
    /// The same of what the kernel's process has in its memory now.
    Left { tensor: usize },
}

/// The answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ClockAnswer {
    /// The memory exists: its sizes. Its descriptors went through the socket.
    Shared { sizes: Vec<u64> },
    /// The call did not end.
    GivenUp,
    /// As a device's runner answers.
    Device(Answer),
}

/// A process that holds memory of tensors, and a clock.
pub struct CallClock {
    talker: Option<Talker>,
    exchange: Exchange,
    shared: Shared,
    page: File,
    monitor: Option<Monitor>,
    states: Vec<State>,
    number: u64,
}

/// The end of a call that was timed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Timed {
    /// It took this many nanoseconds.
    Took(f64),
    /// The device was under hardware slowdown or thermal limits. The outputs count, the time does not.
    Limited,
    /// It did not end.
    GivenUp,
}

impl CallClock {
    /// Starts the process for the tensors of a problem: on a device, or with memory files in the place of a device's memory.
    ///
    /// # Errors
    /// The device or the system has no memory, or does not share it between processes.
    pub fn start(problem: &Problem, on: Option<&TorchDevice>) -> Result<Self, Response> {
        let io = |e: io::Error| failed(format!("the process that times calls cannot be started: {e}"));
        let exchange = Exchange::new().map_err(io)?;
        let page = MemoryFile::writable(&vec![0; 8 * WORDS]).map_err(io)?;
        let (ours, theirs) = UnixStream::pair().map_err(io)?;
        let theirs = Arc::new(OwnedFd::from(theirs));
        let own = File::from(page.descriptor().try_clone().map_err(io)?);
        let tensors = problem.tensors.iter().map(|tensor| TensorMemory {
            bytes: tensor.bytes(),
            read: tensor.role != Role::Output,
            written: tensor.role != Role::Input,
        });
        let start = ClockStart {
            start: Start {
                libcuda: on.and_then(|device| device.probed().libcuda.clone()),
                exchange: exchange.path(),
                parent: Some(std::process::id()),
                // It never loads a candidate.
                keep: None,
            },
            on_device: on.is_some(),
            page: format!("/proc/{}/fd/{}", std::process::id(), page.number()).into(),
            socket: theirs.as_raw_fd(),
            tensors: tensors.collect(),
        };
        let text = serde_json::to_string(&start).map_err(|e| failed(e.to_string()))?;
        let command = Command::own().inherit(&theirs).args(["worker", "--call-clock", &text]);
        let command = match on {
            Some(device) => at_device(command, device.probed(), device.facts()),
            None => command,
        };
        let talker = Talker::start(&command).map_err(io)?.awake(super::AWAKE);
        drop((command, theirs));
        let monitor = on.map(|device| Monitor::new(&device.facts().uuid));
        let shared = Shared { tensors: vec![], page };
        let mut clock =
            CallClock { talker: Some(talker), exchange, shared, page: own, monitor, states: vec![], number: 0 };
        let ClockAnswer::Shared { sizes } = clock.line("", MOVING)? else {
            return Err(failed("the process that times calls answered something else"));
        };
        let got = descriptors::receive(&ours, sizes.len()).map_err(io)?;
        let both = got.into_iter().zip(sizes);
        clock.shared.tensors = both.map(|(fd, bytes)| SharedTensor { descriptor: Arc::new(fd), bytes }).collect();
        Ok(clock)
    }

    /// The process, unless it has ended.
    pub fn pid(&self) -> Option<u32> {
        self.talker.as_ref().map(Talker::pid)
    }

    /// The memory, for the kernel's process.
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The number of another call.
    pub fn number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// Keeps the contents of a tensor for the next call.
    ///
    /// # Errors
    /// The process fails.
    pub fn stage(&mut self, tensor: usize, contents: &[u8]) -> Result<(), Response> {
        self.exchange.put(contents).map_err(|e| failed(format!("cannot pass inputs on: {e}")))?;
        self.ask(&Ask::Stage { tensor, bytes: contents.len() as u64 }, MOVING).map(drop)
    }

    /// Times the call of that number, which the kernel's process has to be asked for at the same time.
    ///
    /// # Errors
    /// The process fails.
    pub fn time(&mut self, number: u64, poison: u8, limit: Duration) -> Result<Timed, Response> {
        let before = self.state();
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX).max(1);
        let answer = self.ask(&Ask::Time { number, poison, limit_ms }, limit.saturating_add(MOVING))?;
        let after = self.state();
        let is_limited = [before, after].into_iter().flatten().any(is_limited);
        Ok(match answer {
            ClockAnswer::GivenUp => Timed::GivenUp,
            ClockAnswer::Device(Answer::Times { .. }) if is_limited => Timed::Limited,
            ClockAnswer::Device(Answer::Times { ns }) if ns.len() == 1 => Timed::Took(ns[0]),
            other => return Err(failed(format!("the process that times calls answered `{other:?}`"))),
        })
    }

    /// Says to the process, from another thread, that nobody waits for a call any more.
    pub fn giver_up(&self) -> io::Result<GiverUp> {
        self.page.try_clone().map(GiverUp)
    }

    /// The contents that the last call left in a written tensor.
    ///
    /// # Errors
    /// The process fails.
    pub fn taken(&mut self, tensor: usize) -> Result<Vec<u8>, Response> {
        self.fetched(&Ask::Taken { tensor })
    }

    /// The contents of a tensor in the memory that the kernel's process shares.
    ///
    /// # Errors
    /// The process fails.
    pub fn left(&mut self, tensor: usize) -> Result<Vec<u8>, Response> {
        self.fetched(&Ask::Left { tensor })
    }

    /// Whether the device is under hardware slowdown or thermal limits.
    pub fn is_limited(&mut self) -> bool {
        self.state().is_some_and(is_limited)
    }

    /// Adds the states of the device to the provenance.
    pub fn tell(&self, provenance: &mut Provenance) {
        if self.monitor.is_some() {
            tell(provenance, &self.states);
        }
    }

    fn state(&mut self) -> Option<State> {
        let state = self.monitor.as_ref()?.state();
        self.states.push(state);
        Some(state)
    }

    fn fetched(&mut self, ask: &Ask) -> Result<Vec<u8>, Response> {
        let (Ask::Stage { tensor, .. } | Ask::Taken { tensor } | Ask::Left { tensor }) = *ask else {
            return Ok(vec![]);
        };
        let room = self.shared.tensors.get(tensor).map_or(0, |tensor| tensor.bytes);
        let io = |e: io::Error| failed(format!("cannot take outputs: {e}"));
        self.exchange.make_room(room).map_err(io)?;
        match self.ask(ask, MOVING)? {
            ClockAnswer::Device(Answer::Bytes { bytes }) => self.exchange.take(bytes).map_err(io),
            other => Err(failed(format!("the process that times calls answered `{other:?}`"))),
        }
    }

    fn ask(&mut self, ask: &Ask, limit: Duration) -> Result<ClockAnswer, Response> {
        let line = serde_json::to_string(ask).map_err(|e| failed(e.to_string()))?;
        self.line(&line, limit)
    }

    fn line(&mut self, line: &str, limit: Duration) -> Result<ClockAnswer, Response> {
        let system = |what: String| failed(format!("the process that times calls {what}"));
        let talker = self.talker.take().ok_or_else(|| system("has ended".into()))?;
        // The coordinator ends a worker that is interrupted, and this process with it.
        let exchanged = talker.exchange(line, limit, &AtomicBool::new(false));
        let (talker, text) = match exchanged.map_err(|e| system(format!("cannot be asked: {e}")))? {
            Ok(answered) => answered,
            Err(died) => return Err(system(format!("{}: {}", died.end, died.stderr.text().trim()))),
        };
        match serde_json::from_str(&text).map_err(|e| system(format!("gave no answer: {e}")))? {
            ClockAnswer::Device(Answer::Fault(fault)) if fault.meaning() == Meaning::Lacking => {
                Err(Response::Unavailable { why: fault.to_string() })
            }
            ClockAnswer::Device(Answer::Fault(fault)) => Err(system(format!("met an error: {fault}"))),
            ClockAnswer::Device(Answer::Refused { why }) => Err(system(format!("refused: {why}"))),
            answer => {
                self.talker = Some(talker);
                Ok(answer)
            }
        }
    }
}

/// Whether times under the limits of this state do not count.
fn is_limited(state: State) -> bool {
    sampling::dropped(state.reasons.unwrap_or(0))
}

/// What ends the wait for a call.
pub struct GiverUp(File);

impl GiverUp {
    /// Ends the wait for the call of that number. If the system fails, the wait ends with its limit.
    pub fn give_up(&self, number: u64) {
        let _ = self.0.write_all_at(&number.to_ne_bytes(), 8 * GIVEN_UP as u64);
    }
}
