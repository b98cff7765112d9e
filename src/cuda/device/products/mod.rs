//! Computes large matrix products of the oracle on a device, bit for bit as on the host. Knows products and processes, but not what the products are for.
//!
//! The process with the context of the matrices loads one kernel, kforge's own, and never a candidate, so that expected values are never where candidate code
//! runs. The process is started for the first large product of a step and ends with the step. After any failure, including a device that is busy for too long,
//! the host multiplies instead.

mod check;
mod runner;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

pub use check::check_main;
pub use runner::product_runner_main;

use super::client::{at_device, lock_file, probed};
use super::exchange::Exchange;
use super::facts::{DeviceFacts, Probed};
use super::wire::{Answer, Start};
use kforge_engine::lock::{Lock, LockError, Mode, Wait};
use kforge_foundation::process::{Command, Talker};
use kforge_harness::task::Task;
use kforge_numerics::reference::{Matrix, Product, ProductBackend};

/// How long to wait for a busy device before the host multiplies.
const BUSY: Duration = Duration::from_secs(3);
/// The time limit for starting the process and for one product. A device with 0.5 TFLOP/s takes three seconds for 8192 x 8192 x 8192.
const PATIENCE: Duration = Duration::from_secs(60);

/// A matrix in the device's memory: element (i, j) is at `i * row + j * column`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct MatrixLayout {
    row: u64,
    column: u64,
}

/// The requests to the process.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Ask {
    /// Take this many bytes from the exchange, as the left or the right matrix.
    Take { left: bool, bytes: u64 },
    /// Multiply, and put the product into the exchange.
    Multiply { m: u64, k: u64, n: u64, left: MatrixLayout, right: MatrixLayout },
}

/// A device that multiplies, for one step.
#[derive(Debug)]
pub(super) struct Products {
    probed: Probed,
    facts: DeviceFacts,
    lock: Option<std::path::PathBuf>,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Untried,
    /// The process has computed products so far.
    Open(Box<Open>),
    /// The process did not start, or failed after some products: the reason.
    Gone(String),
}

struct Open {
    talker: Talker,
    exchange: Exchange,
    product: String,
}

impl std::fmt::Debug for Open {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Open({})", self.product)
    }
}

impl Products {
    /// Uses the first device that the task names; none if there is none.
    fn new(task: &Task) -> Option<Self> {
        let probed = probed(task).ok()?;
        Self::of(probed, |facts| lock_file(task, facts))
    }

    fn of(probed: Probed, lock: impl FnOnce(&DeviceFacts) -> Option<std::path::PathBuf>) -> Option<Self> {
        let facts = probed.devices.first()?.clone();
        let lock = lock(&facts);
        Some(Products { probed, facts, lock, state: Mutex::new(State::Untried) })
    }

    fn make(&self, product: &Product<'_>, c: &mut [f64]) -> Result<(), String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let open = match std::mem::replace(&mut *state, State::Gone(String::new())) {
            State::Untried => self.turn().and_then(|turn| Ok((turn, self.open()?))),
            State::Open(open) => self.turn().map(|turn| (turn, open)),
            State::Gone(why) => Err(why),
        };
        // The lock is held for one product at a time, because the host's work between two products must not delay measurements.
        let (_turn, open) = match open {
            Ok((turn, open)) => (turn, Ok(open)),
            Err(why) => (None, Err(why)),
        };
        match open.and_then(|open| open.make(product, c)) {
            Ok(open) => {
                *state = State::Open(open);
                Ok(())
            }
            Err(why) => {
                *state = State::Gone(why.clone());
                Err(why)
            }
        }
    }

    /// The device's lock, if there is one, shared with other products.
    fn turn(&self) -> Result<Option<Lock>, String> {
        self.lock.as_deref().map(|path| turn(path, BUSY)).transpose()
    }

    fn open(&self) -> Result<Box<Open>, String> {
        let system = |e: std::io::Error| format!("the device's process cannot be started: {e}");
        let exchange = Exchange::new().map_err(system)?;
        let start = Start {
            libcuda: self.probed.libcuda.clone(),
            exchange: exchange.inherited(),
            parent: Some(std::process::id()),
            // It never loads a candidate.
            keep: None,
        };
        let start = serde_json::to_string(&start).map_err(|e| e.to_string())?;
        let command = Command::own().inherit(exchange.descriptor()).args(["worker", "--product-runner", &start]);
        let talker = Talker::start(&at_device(command, &self.probed, &self.facts)).map_err(system)?;
        let open = Open { talker, exchange, product: self.facts.product.clone() };
        Ok(Box::new(open.line("")?.0))
    }
}

/// The device's lock, after measurements on the device have ended. Waits behind earlier waiters, like every step that runs on the device (`rig::turn`);
/// otherwise consecutive products would lock out a step that needs exclusive use.
fn turn(path: &Path, patience: Duration) -> Result<Lock, String> {
    let began = Instant::now();
    let take = |path: &Path, mode| loop {
        match Lock::acquire(path, mode, Wait::No) {
            Ok(lock) => return Ok(lock),
            Err(LockError::Busy(_)) if began.elapsed() < patience => std::thread::sleep(Duration::from_millis(10)),
            Err(LockError::Busy(_)) => return Err("the device is in use".to_string()),
            Err(e) => return Err(e.to_string()),
        }
    };
    let next = take(&path.with_extension("next"), Mode::Exclusive)?;
    let held = take(path, Mode::Shared);
    drop(next);
    held
}

/// The backend for large products of a task's oracle, if there is a device.
pub fn products(task: &Task) -> Option<Box<dyn ProductBackend>> {
    Products::new(task).map(|products| Box::new(products) as Box<dyn ProductBackend>)
}

impl ProductBackend for Products {
    fn place(&self) -> Option<String> {
        match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Untried => None,
            State::Open(open) => Some(format!("products on {}", open.product)),
            State::Gone(why) => Some(format!("products on the host: {why}")),
        }
    }

    fn multiply(&self, product: &Product<'_>, c: &mut [f64]) -> bool {
        self.make(product, c).is_ok()
    }

    fn disagreed(&self) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State::Gone("the device's bits differ".into());
    }
}

impl Open {
    /// Sends a line and reads the answer. After any unexpected answer the process ends, because `self` is dropped.
    fn line(self, line: &str) -> Result<(Self, Answer), String> {
        let Open { talker, exchange, product } = self;
        let answered = talker.exchange(line, PATIENCE, &AtomicBool::new(false));
        let (talker, text) =
            answered.map_err(|e| e.to_string())?.map_err(|died| format!("its process {}", died.end))?;
        let open = Open { talker, exchange, product };
        match serde_json::from_str(&text).map_err(|e| e.to_string())? {
            Answer::Fault(fault) => Err(fault.to_string()),
            Answer::Refused { why } => Err(why),
            answer => Ok((open, answer)),
        }
    }

    fn ask(self, ask: &Ask) -> Result<(Self, Answer), String> {
        let line = serde_json::to_string(ask).map_err(|e| e.to_string())?;
        self.line(&line)
    }

    fn give(mut self, left: bool, values: &[f64]) -> Result<Self, String> {
        self.exchange.put_numbers(values).map_err(|e| e.to_string())?;
        Ok(self.ask(&Ask::Take { left, bytes: size_of_val(values) as u64 })?.0)
    }

    fn make(self: Box<Self>, product: &Product<'_>, c: &mut [f64]) -> Result<Box<Self>, String> {
        let Product { m, k, n, a, b } = *product;
        let mut open = self.give(true, a.span(m, k))?.give(false, b.span(k, n))?;
        open.exchange.make_room(size_of_val(c) as u64).map_err(|e| e.to_string())?;
        let lies = |of: Matrix<'_>| MatrixLayout { row: of.row as u64, column: of.column as u64 };
        let (m, k, n) = (m as u64, k as u64, n as u64);
        match open.ask(&Ask::Multiply { m, k, n, left: lies(a), right: lies(b) })? {
            (open, Answer::Bytes { bytes }) if bytes == size_of_val(c) as u64 => {
                open.exchange.take_numbers(c).map_err(|e| e.to_string())?;
                Ok(Box::new(open))
            }
            (_, other) => Err(format!("its process answered `{other:?}`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_waits_behind_who_waits_for_the_device_and_shares_it_with_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("device.lock");
        let busy = || turn(&path, Duration::ZERO).err();
        let both = [turn(&path, Duration::ZERO).unwrap(), turn(&path, Duration::ZERO).unwrap()];
        // A step waits for exclusive use of the device: from then on, no product may start.
        let waits = Lock::acquire(&path.with_extension("next"), Mode::Exclusive, Wait::No).unwrap();
        assert_eq!(busy().as_deref(), Some("the device is in use"));
        drop(both);
        let alone = Lock::acquire(&path, Mode::Exclusive, Wait::No).unwrap();
        drop(waits);
        assert!(busy().is_some());
        // A waiter that gave up does not block others.
        assert!(Lock::acquire(&path.with_extension("next"), Mode::Exclusive, Wait::No).is_ok());
        drop(alone);
        assert!(busy().is_none());
    }
}
