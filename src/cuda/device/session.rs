//! The session of a device's runner: one warm context, and the modules, contents, buffers and launches that the verifier requests. Uses the driver through the
//! neighboring modules; judges nothing, and holds no expected values.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use super::context::{Context, Function, Memory, Module, Stream, copy, set};
use super::driver;
use super::exchange::RunnerExchange;
use super::facts::DeviceFacts;
use super::fault::{Fault, Meaning};
use super::launch::{Place, PrepareError, PreparedLaunches, symbol};
use super::own_kernels::OwnKernels;
use super::timing::Timer;
use super::wire::{Answer, Ask, BufferFill, BufferLayout, BufferSum, Reset, Set, Slot};
use kforge_types::model::bound::Launch;
use kforge_types::record::machine_code::{self, DamagedArchive};

/// Why a request failed.
pub(super) enum Trouble {
    /// The driver's error: the context is or may be lost.
    Fault(Fault),
    /// The request is invalid, or a system call failed.
    Refused(String),
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        Trouble::Fault(fault)
    }
}

impl From<PrepareError> for Trouble {
    fn from(unready: PrepareError) -> Self {
        match unready {
            PrepareError::Fault(fault) => Trouble::Fault(fault),
            PrepareError::Unknown(why) => Trouble::Refused(why),
        }
    }
}

/// A whole buffer and the position of the kernel's part in it.
struct DeviceBuffer {
    whole: Memory,
    offset: u64,
    own: u64,
    /// The contents, if the buffer has been laid.
    with: Option<(BufferFill, Reset)>,
}

impl DeviceBuffer {
    fn place(&self) -> Place {
        Place { at: self.whole.at() + self.offset, bytes: self.own }
    }
}

struct Loaded {
    functions: BTreeMap<String, Function>,
    launches: Vec<Launch>,
    // Last, so that the functions are dropped before the modules.
    modules: Vec<Module>,
}

/// The fill of memory that no step uses.
const SPARE: u8 = 0xff;

/// The initial size of the memory for sums: sixteen bytes per buffer.
const FOUND: u64 = 1024;

/// All resources of a runner.
pub(super) struct Session {
    ready: BTreeMap<(Slot, Set), Rc<PreparedLaunches>>,
    modules: BTreeMap<Slot, Loaded>,
    buffers: BTreeMap<(Set, String), DeviceBuffer>,
    /// The contents of buffers, by name.
    contents: BTreeMap<String, Memory>,
    /// Memory of buffers of earlier steps, poisoned, the oldest first.
    spare: VecDeque<Memory>,
    /// The memory for the sums of buffers.
    found: Memory,
    /// Borrowed by one sample at a time, which also uses the buffers.
    timer: RefCell<Timer>,
    own: OwnKernels,
    stream: Stream,
    handed: RunnerExchange,
    /// The device, without the driver's version.
    facts: DeviceFacts,
    context: Rc<Context>,
}

fn none(what: &str) -> Trouble {
    Trouble::Refused(format!("there is no {what}"))
}

impl Session {
    /// Creates a session on the first device that is visible to this process.
    pub(super) fn new(handed: RunnerExchange) -> Result<Self, Trouble> {
        let device = driver::devices()?.into_iter().next().ok_or_else(|| none("device"))?;
        let facts = super::probe::facts(device, "0")?;
        let context = Context::new(device)?;
        let (stream, own) = (Stream::new(&context)?, OwnKernels::new(&context, facts.processors)?);
        let timer = RefCell::new(Timer::new(&context, facts.l2)?);
        Ok(Session {
            ready: BTreeMap::new(),
            modules: BTreeMap::new(),
            buffers: BTreeMap::new(),
            contents: BTreeMap::new(),
            spare: VecDeque::new(),
            found: Memory::new(&context, FOUND)?,
            timer,
            own,
            stream,
            handed,
            facts,
            context,
        })
    }

    /// The answer of a runner that has started, or was asked for its free memory. `missing` says what the system could not confine.
    pub(super) fn describe(&self, missing: Vec<String>) -> Result<Answer, Fault> {
        Ok(Answer::Ready { free: self.context.free_memory()?, missing, device: Box::new(self.facts.clone()) })
    }

    /// Whether all queued work is complete and none of it has failed.
    pub(super) fn is_sound(&self) -> bool {
        self.context.synchronize("after a launch was refused").is_ok()
    }

    /// Executes one request.
    pub(super) fn meet(&mut self, ask: Ask) -> Result<Answer, Trouble> {
        match ask {
            Ask::Load { slot, bytes, entries } => self.load(slot, bytes, &entries)?,
            Ask::Unload { slot } => {
                self.context.synchronize("before the module was unloaded")?;
                self.forget(|of, _| of == slot);
                self.modules.remove(&slot);
            }
            Ask::Allocate { set, name, bytes, offset, own } => {
                if offset.saturating_add(own) > bytes {
                    return Err(Trouble::Refused(format!("`{name}` does not fit its buffer")));
                }
                self.forget(|_, of| of == set);
                let whole = self.memory(bytes)?;
                self.buffers.insert((set, name), DeviceBuffer { whole, offset, own, with: None });
            }
            Ask::Keep { contents, bytes } => {
                let given = self.handed.take(bytes).map_err(|e| Trouble::Refused(e.to_string()))?;
                let kept = self.fresh(bytes)?;
                kept.write(&given)?;
                self.contents.insert(contents, kept);
            }
            Ask::Drop { contents } => {
                self.context.synchronize("before contents were freed")?;
                self.timer.get_mut().forget(|_, _| true);
                self.contents.remove(&contents);
            }
            Ask::Lay { set, canary, buffers } => {
                // A captured graph contains the addresses of the contents that it was laid with.
                self.timer.get_mut().forget(|_, of| of == set);
                buffers.into_iter().try_for_each(|lay| self.lay(set, canary, lay))?;
            }
            Ask::Constant { slot, symbol, set, name, bytes } => self.constant(slot, &symbol, (set, &name), bytes)?,
            Ask::Launches { slot, launches } => {
                self.forget(|of, _| of == slot);
                self.modules.get_mut(&slot).ok_or_else(|| none("such module"))?.launches = launches;
            }
            Ask::Run { slot, set } => {
                let ready = self.ready(slot, set)?;
                ready.queue(&self.stream)?;
                self.stream.synchronize("while the launches ran")?;
            }
            Ask::Read { set, name } => {
                let held = self.held(set, &name)?;
                let mut bytes = vec![0; held.whole.bytes() as usize];
                held.whole.read(&mut bytes)?;
                self.handed.put(&bytes).map_err(|e| Trouble::Refused(e.to_string()))?;
                return Ok(Answer::Bytes { bytes: bytes.len() as u64 });
            }
            Ask::Show { set, names, canary, salt } => return self.show(set, &names, canary, salt),
            Ask::Time { shots } => {
                let mut ns = vec![];
                for shot in shots {
                    let ready = self.ready(shot.slot, shot.set)?;
                    let before = || self.before(shot.set);
                    ns.push(self.timer.borrow_mut().take(
                        shot,
                        &self.context,
                        &self.own,
                        &ready,
                        &self.stream,
                        &before,
                    )?);
                }
                return Ok(Answer::Times { ns });
            }
            Ask::Free => return Ok(self.describe(vec![])?),
            Ask::Clear => {
                self.context.synchronize("before buffers were freed")?;
                self.forget(|_, _| true);
                self.buffers.clear();
                self.spare.clear();
                self.modules.clear();
            }
            Ask::Rest { keep } => self.rest(keep)?,
            Ask::All { asks } => {
                let mut last = Answer::Done;
                for ask in asks {
                    last = self.meet(ask)?;
                }
                return Ok(last);
            }
        }
        Ok(Answer::Done)
    }

    /// Memory of this size: that of an earlier step's buffer if there is one, because an allocation by the driver takes longer than many launches.
    fn memory(&mut self, bytes: u64) -> Result<Memory, Fault> {
        match self.spare.iter().position(|spare| spare.bytes() == bytes).and_then(|at| self.spare.remove(at)) {
            Some(spare) => Ok(spare),
            None => self.fresh(bytes),
        }
    }

    /// Memory from the driver. Spare memory is freed if there is not enough.
    fn fresh(&mut self, bytes: u64) -> Result<Memory, Fault> {
        match Memory::new(&self.context, bytes) {
            Err(fault) if fault.meaning() == Meaning::Lacking && !self.spare.is_empty() => {
                self.spare.clear();
                Memory::new(&self.context, bytes)
            }
            other => other,
        }
    }

    /// Drops modules and buffers. The next step finds nothing of this step in their memory.
    #[expect(unsafe_code, reason = "device memory is written by address")]
    fn rest(&mut self, keep: u64) -> Result<(), Trouble> {
        self.context.synchronize("before buffers were left")?;
        self.forget(|_, _| true);
        self.modules.clear();
        self.spare.extend(std::mem::take(&mut self.buffers).into_values().map(|held| held.whole));
        while self.spare.iter().map(Memory::bytes).sum::<u64>() > keep {
            self.spare.pop_front();
        }
        for spare in &self.spare {
            // SAFETY: the range is the whole memory.
            unsafe { set(spare.at(), SPARE, spare.bytes(), &self.stream) }?;
        }
        Ok(self.stream.synchronize("while memory was poisoned")?)
    }

    /// Drops prepared launches of what has changed.
    fn forget(&mut self, which: impl Fn(Slot, Set) -> bool) {
        self.ready.retain(|(slot, set), _| !which(*slot, *set));
        self.timer.get_mut().forget(which);
    }

    fn held(&self, set: Set, name: &str) -> Result<&DeviceBuffer, Trouble> {
        self.buffers.get(&(set, name.to_string())).ok_or_else(|| none(&format!("buffer `{name}`")))
    }

    fn load(&mut self, slot: Slot, bytes: u64, entries: &[(String, String)]) -> Result<(), Trouble> {
        let handed = self.handed.take(bytes).map_err(|e| Trouble::Refused(e.to_string()))?;
        let refused = |why: DamagedArchive| Trouble::Refused(why.to_string());
        let (mut functions, mut modules) = (BTreeMap::new(), vec![]);
        for cubin in machine_code::cubins(&handed).map_err(refused)? {
            // A cubin states its own size; zeros follow in case the size is wrong.
            let image = [cubin, &[0; 64]].concat();
            modules.push(Module::new(&self.context, &image, "while the binary was loaded")?);
        }
        for (at, (entry, symbol)) in entries.iter().enumerate() {
            // Entries that were compiled each by itself have a cubin each.
            let own = if machine_code::is_archive(&handed) { at } else { 0 };
            let module: &Module = modules.get(own).ok_or_else(|| none("machine code of the entry"))?;
            functions.insert(entry.clone(), module.function(symbol)?);
        }
        self.modules.insert(slot, Loaded { functions, launches: vec![], modules });
        Ok(())
    }

    /// Queues the canaries around a buffer, and the contents of the kernel's part.
    #[expect(unsafe_code, reason = "device memory is written by address")]
    fn lay(&mut self, of: Set, canary: u8, lay: BufferLayout) -> Result<(), Trouble> {
        let key = (of, lay.name);
        let held = self.buffers.get(&key).ok_or_else(|| none(&format!("buffer `{}`", key.1)))?;
        let (at, end) = (held.whole.at(), held.offset + held.own);
        // SAFETY: both ranges are within the buffer.
        unsafe {
            set(at, canary, held.offset, &self.stream)?;
            set(at + end, canary, held.whole.bytes() - end, &self.stream)?;
        }
        self.renew(held.place(), &lay.with)?;
        let held = self.buffers.get_mut(&key).ok_or_else(|| none("such buffer"))?;
        held.with = Some((lay.with, lay.before));
        Ok(())
    }

    /// Queues the contents of the kernel's part of a buffer.
    #[expect(unsafe_code, reason = "device memory is written by address")]
    fn renew(&self, place: Place, with: &BufferFill) -> Result<(), Trouble> {
        match with {
            // SAFETY: the range is the kernel's part of a buffer.
            BufferFill::Byte(byte) => unsafe { set(place.at, *byte, place.bytes, &self.stream) }?,
            BufferFill::Contents(name) => {
                let kept = self.contents.get(name).filter(|kept| kept.bytes() == place.bytes);
                let kept = kept.ok_or_else(|| none(&format!("contents `{name}` of {} bytes", place.bytes)))?;
                // SAFETY: both ranges have the same size.
                unsafe { copy(place.at, kept.at(), place.bytes, &self.stream) }?;
            }
        }
        Ok(())
    }

    /// Computes the sum of the kernel's part of each buffer, and the number of damaged bytes around it.
    #[expect(unsafe_code, reason = "device memory is read by address")]
    fn show(&mut self, of: Set, names: &[String], canary: u8, salt: u64) -> Result<Answer, Trouble> {
        let bytes = 16 * names.len() as u64;
        if self.found.bytes() < bytes {
            self.found = Memory::new(&self.context, bytes)?;
        }
        let found = &self.found;
        // SAFETY: the range is within the memory.
        unsafe { set(found.at(), 0, bytes, &self.stream) }?;
        for (i, name) in names.iter().enumerate() {
            let held = self.held(of, name)?;
            let (whole, part) = ((held.whole.at(), held.whole.bytes()), (held.offset, held.own));
            // SAFETY: the part is within the buffer, and an allocation begins at a line boundary. The results have sixteen bytes per buffer.
            unsafe { self.own.show(whole, part, (canary, salt), found.at() + 16 * i as u64, &self.stream) }?;
        }
        self.stream.synchronize("while buffers were looked at")?;
        let mut bytes = vec![0; 16 * names.len()];
        found.read(&mut bytes)?;
        // The next kernel finds no sums here.
        // SAFETY: the range is within the memory.
        unsafe { set(found.at(), 0, found.bytes(), &self.stream) }?;
        let (eights, _) = bytes.as_chunks::<8>();
        let (pairs, _) = eights.as_chunks::<2>();
        let shown = |[sum, spoilt]: &[[u8; 8]; 2]| BufferSum {
            sum: u64::from_le_bytes(*sum),
            spoilt: u64::from_le_bytes(*spoilt),
        };
        Ok(Answer::Shown { shown: pairs.iter().map(shown).collect() })
    }

    #[expect(unsafe_code, reason = "device memory is copied by address")]
    fn constant(&self, slot: Slot, spelt: &str, from: (Set, &str), bytes: u64) -> Result<(), Trouble> {
        let held = self.held(from.0, from.1)?;
        let loaded = self.modules.get(&slot).ok_or_else(|| none("such module"))?;
        // Only machine code with one module has constants to fill.
        let module = loaded.modules.first().ok_or_else(|| none("such module"))?;
        let (at, size) = module.global(&symbol(spelt))?;
        if bytes > size || bytes > held.place().bytes {
            return Err(Trouble::Refused(format!("`{spelt}` has {size} bytes, `{}` has {bytes}", from.1)));
        }
        // SAFETY: both ranges were checked to have this size.
        unsafe { copy(at, held.place().at, bytes, &self.stream) }?;
        Ok(self.stream.synchronize("while a constant was filled")?)
    }

    fn ready(&mut self, slot: Slot, set: Set) -> Result<Rc<PreparedLaunches>, Trouble> {
        if let Some(ready) = self.ready.get(&(slot, set)) {
            return Ok(Rc::clone(ready));
        }
        let loaded = self.modules.get(&slot).ok_or_else(|| none("such module"))?;
        let place = |name: &str| self.buffers.get(&(set, name.to_string())).map(DeviceBuffer::place);
        let ready = Rc::new(PreparedLaunches::new(&self.context, &loaded.launches, &loaded.functions, place)?);
        self.ready.insert((slot, set), Rc::clone(&ready));
        Ok(ready)
    }

    /// Queues the resets of a set's buffers before a sample.
    fn before(&self, of: Set) -> Result<(), Trouble> {
        for held in self.buffers.iter().filter(|((set, _), _)| *set == of).map(|(_, held)| held) {
            if let Some((with, Reset::Renew)) = &held.with {
                self.renew(held.place(), with)?;
            }
        }
        Ok(())
    }
}
