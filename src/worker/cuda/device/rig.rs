//! A runner with the candidate's buffers on it: what verify, bench and pairs do alike. Knows asks and images; judges nothing.

use std::time::Duration;

use super::buffers::{self, Image};
use super::client::{Client, Lost};
use super::wire::{Answer, Ask, Set, Shot, Slot};
use crate::engine::lock::{Lock, Mode, Wait};
use crate::model::Tensor;
use crate::record::Provenance;
use crate::record::params::{CompileFacts, VerifyParams};
use crate::worker::message::Response;
use crate::worker::oracle::Named;
use crate::worker::task::{Task, failed};

/// What is launched: a binary and how.
pub(super) struct Candidate<'a> {
    pub(super) params: &'a VerifyParams,
    pub(super) binary: Vec<u8>,
    pub(super) entries: Vec<(String, String)>,
}

impl<'a> Candidate<'a> {
    /// From a task's inputs, whose names end in `suffix`.
    pub(super) fn new(task: &Task, params: &'a VerifyParams, suffix: &str) -> Result<Self, Response> {
        let facts: CompileFacts = task.document(&format!("facts{suffix}"))?;
        if facts.symbols.len() != params.entries.len() {
            return Err(failed("the compiler's facts name another number of entries than the step"));
        }
        let entries = params.entries.iter().cloned().zip(facts.symbols).collect();
        Ok(Candidate { params, binary: task.read(&format!("binary{suffix}"))?, entries })
    }
}

/// A runner at work.
pub(super) struct Rig<'a> {
    pub(super) client: Client,
    task: &'a Task,
    /// Held while anything runs on the device: nobody measures beside it, or beside whom it measures.
    held: Option<Lock>,
}

/// A little of a step's time is kept for comparing, so that a time-out is told rather than suffered.
fn share(left: Duration) -> Duration {
    (left / 10 * 9).max(Duration::from_millis(10))
}

impl<'a> Rig<'a> {
    /// On the device that the task asks for.
    pub(super) fn new(task: &'a Task, arch: &str, fresh: bool) -> Result<Self, Response> {
        Ok(Rig { client: Client::start(task, arch, fresh)?, task, held: None })
    }

    /// Waits until no other process of this home measures on the device, or, `alone`, until none uses it.
    pub(super) fn lock(&mut self, alone: bool) -> Result<(), Response> {
        let mode = if alone { Mode::Exclusive } else { Mode::Shared };
        if let Some(path) = self.client.lock_file(self.task) {
            let lock = Lock::acquire(&path, mode, Wait::Forever(&mut || {}));
            self.held = Some(lock.map_err(|e| failed(e.to_string()))?);
        }
        Ok(())
    }

    /// How long the runner may take for its next answer.
    pub(super) fn left(&self) -> Duration {
        share(self.task.left())
    }

    /// Asks, and waits for as long as the step may take.
    pub(super) fn ask(&mut self, ask: &Ask) -> Result<Answer, Lost> {
        let left = self.left();
        self.client.ask(ask, left)
    }

    /// Loads a candidate and states its launches.
    pub(super) fn load(&mut self, slot: Slot, candidate: &Candidate<'_>) -> Result<(), Lost> {
        let (bytes, entries) = (candidate.binary.len() as u64, candidate.entries.clone());
        let left = self.left();
        self.client.hand(&candidate.binary, &Ask::Load { slot, bytes, entries }, left)?;
        self.ask(&Ask::Launches { slot, launches: candidate.params.launches.clone() }).map(drop)
    }

    /// Waits, and unloads.
    pub(super) fn unload(&mut self, slot: Slot) -> Result<(), Lost> {
        self.ask(&Ask::Unload { slot }).map(drop)
    }

    /// Has buffers like these in a set, instead of those it had.
    pub(super) fn allocate(&mut self, set: Set, images: &[Image<'_>]) -> Result<(), Lost> {
        for image in images {
            let (name, bytes) = (image.laid.name.to_string(), image.whole.len() as u64);
            self.ask(&Ask::Allocate { set, name, bytes, offset: image.offset(), own: image.own() })?;
        }
        Ok(())
    }

    /// Writes every buffer of a set.
    pub(super) fn write(&mut self, set: Set, images: &[Image<'_>]) -> Result<(), Lost> {
        for image in images {
            let left = self.left();
            let ask = Ask::Write { set, name: image.laid.name.to_string(), before: image.before };
            self.client.hand(&image.whole, &ask, left)?;
        }
        Ok(())
    }

    /// Fills the candidate's constants from a set.
    pub(super) fn constants(&mut self, slot: Slot, candidate: &Candidate<'_>, set: Set) -> Result<(), Lost> {
        for constant in &candidate.params.constants {
            let bytes = candidate.params.problem.tensor(&constant.buffer).map_or(0, |t| t.bytes());
            let (symbol, name) = (constant.symbol.clone(), constant.buffer.clone());
            self.ask(&Ask::Constant { slot, symbol, set, name, bytes })?;
        }
        Ok(())
    }

    /// What the launches left in every written tensor.
    pub(super) fn outputs<'p>(&mut self, set: Set, images: &[Image<'p>]) -> Result<Vec<(&'p Tensor, Vec<u8>)>, Lost> {
        let mut outputs = vec![];
        for image in images {
            if let Some(tensor) = image.laid.written() {
                outputs.push((tensor, image.laid.after(&self.read(set, image)?).bytes));
            }
        }
        Ok(outputs)
    }

    /// Frees all buffers and modules.
    pub(super) fn clear(&mut self) -> Result<(), Lost> {
        self.ask(&Ask::Clear).map(drop)
    }

    /// Takes memory that nobody uses.
    pub(super) fn pad(&mut self, set: Set, bytes: u64) -> Result<(), Lost> {
        self.ask(&Ask::Allocate { set, name: "padding".into(), bytes, offset: 0, own: bytes }).map(drop)
    }

    /// Runs the launches once.
    pub(super) fn run(&mut self, slot: Slot, set: Set) -> Result<(), Lost> {
        self.ask(&Ask::Run { slot, set }).map(drop)
    }

    /// Reads a buffer back whole.
    pub(super) fn read(&mut self, set: Set, image: &Image<'_>) -> Result<Vec<u8>, Lost> {
        let left = self.left();
        let ask = Ask::Read { set, name: image.laid.name.to_string() };
        self.client.read(&ask, image.whole.len() as u64, left)
    }

    /// The sum of a buffer, canaries included.
    pub(super) fn checksum(&mut self, set: Set, image: &Image<'_>) -> Result<u64, Lost> {
        match self.ask(&Ask::Checksum { set, name: image.laid.name.to_string() })? {
            Answer::Sum { sum } => Ok(sum),
            other => Err(Lost::Died(format!("answered `{other:?}` when it was asked for a sum"))),
        }
    }

    /// Takes samples.
    pub(super) fn time(&mut self, shots: Vec<Shot>) -> Result<Vec<f64>, Lost> {
        let asked = shots.len();
        match self.ask(&Ask::Time { shots })? {
            Answer::Times { ns } if ns.len() == asked => Ok(ns),
            other => Err(Lost::Died(format!("answered `{other:?}` when it was asked for {asked} samples"))),
        }
    }

    /// How many sets of buffers to take in turn: as many as `most`, in half of the memory that is free.
    pub(super) fn sets(&self, params: &VerifyParams, most: u32) -> Result<u32, Response> {
        let each = buffers::bytes(&params.problem, &params.workspaces).max(1);
        match (self.client.free / 2 / each).min(u64::from(most)) as u32 {
            0 => Err(Response::Unavailable {
                why: format!(
                    "its buffers take {each} bytes of the device's memory, of which {} are free",
                    self.client.free
                ),
            }),
            sets => Ok(sets),
        }
    }

    /// Every buffer of a run.
    pub(super) fn images<'p>(params: &'p VerifyParams, inputs: &Named, poison: u8, canary: u8) -> Vec<Image<'p>> {
        buffers::images(&params.problem, &params.workspaces, inputs, poison, canary)
    }

    /// Where what is observed comes from, without the state of the device.
    pub(super) fn provenance(&self, protocol: u32) -> Provenance {
        Provenance {
            device: self.client.facts.class(),
            driver: self.client.facts.driver.clone(),
            kforge: env!("CARGO_PKG_VERSION").into(),
            protocol,
            measured_at: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            clocks_mhz: None,
            temperature_c: None,
            throttle: vec![],
        }
    }
}
