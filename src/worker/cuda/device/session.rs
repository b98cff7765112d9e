//! The runner of a device: one context, kept warm; modules, buffers and launches as the judge asks. Knows the driver through its neighbours; judges nothing, and
//! holds no expectation.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::context::{Context, Function, Memory, Module, Stream, copy, set};
use super::driver;
use super::exchange::Handed;
use super::fault::Fault;
use super::launch::{Place, Ready, Unready, symbol};
use super::own::Own;
use super::timing::Timer;
use super::wire::{Answer, Ask, Before, Set, Slot};
use crate::model::bound::Launch;

/// Why an ask could not be met.
pub(super) enum Trouble {
    /// The driver's error: the context is lost or may be.
    Fault(Fault),
    /// What was asked for makes no sense, or a system call failed.
    Refused(String),
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        Trouble::Fault(fault)
    }
}

impl From<Unready> for Trouble {
    fn from(unready: Unready) -> Self {
        match unready {
            Unready::Fault(fault) => Trouble::Fault(fault),
            Unready::Unknown(why) => Trouble::Refused(why),
        }
    }
}

/// A buffer: the whole, and the kernel's part of it.
struct Held {
    whole: Memory,
    offset: u64,
    own: u64,
    before: Before,
    /// What is restored.
    kept: Option<Memory>,
}

impl Held {
    fn place(&self) -> Place {
        Place { at: self.whole.at() + self.offset, bytes: self.own }
    }
}

struct Loaded {
    functions: BTreeMap<String, Function>,
    launches: Vec<Launch>,
    // Last, so that functions are forgotten before it goes.
    module: Module,
}

/// All that a runner holds.
pub(super) struct Session {
    ready: BTreeMap<(Slot, Set), Rc<Ready>>,
    modules: BTreeMap<Slot, Loaded>,
    buffers: BTreeMap<(Set, String), Held>,
    /// Borrowed by one sample at a time, which looks at the buffers meanwhile.
    timer: RefCell<Timer>,
    own: Own,
    stream: Stream,
    handed: Handed,
    context: Rc<Context>,
}

fn none(what: &str) -> Trouble {
    Trouble::Refused(format!("there is no {what}"))
}

impl Session {
    /// On the first device that this process may see.
    pub(super) fn new(handed: Handed) -> Result<Self, Trouble> {
        let device = driver::devices()?.into_iter().next().ok_or_else(|| none("device"))?;
        let facts = super::probe::facts(device, "0")?;
        let context = Context::new(device)?;
        let (stream, own) = (Stream::new(&context)?, Own::new(&context, facts.processors)?);
        let timer = RefCell::new(Timer::new(&context, facts.l2)?);
        Ok(Session {
            ready: BTreeMap::new(),
            modules: BTreeMap::new(),
            buffers: BTreeMap::new(),
            timer,
            own,
            stream,
            handed,
            context,
        })
    }

    /// Bytes of memory that are free.
    pub(super) fn free_memory(&self) -> Result<u64, Fault> {
        self.context.free_memory()
    }

    /// Meets one ask.
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
                let whole = Memory::new(&self.context, bytes)?;
                self.buffers.insert((set, name), Held { whole, offset, own, before: Before::Keep, kept: None });
            }
            Ask::Write { set, name, before } => self.write(set, &name, before)?,
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
            Ask::Checksum { set, name } => {
                let whole = &self.held(set, &name)?.whole;
                return Ok(Answer::Sum { sum: self.own.checksum(&self.context, whole, &self.stream)? });
            }
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
            Ask::Clear => {
                self.context.synchronize("before buffers were freed")?;
                self.forget(|_, _| true);
                self.buffers.clear();
                self.modules.clear();
            }
        }
        Ok(Answer::Done)
    }

    /// Forgets launches that were made ready for what changes.
    fn forget(&mut self, which: impl Fn(Slot, Set) -> bool) {
        self.ready.retain(|(slot, set), _| !which(*slot, *set));
        self.timer.get_mut().forget(which);
    }

    fn held(&self, set: Set, name: &str) -> Result<&Held, Trouble> {
        self.buffers.get(&(set, name.to_string())).ok_or_else(|| none(&format!("buffer `{name}`")))
    }

    fn load(&mut self, slot: Slot, bytes: u64, entries: &[(String, String)]) -> Result<(), Trouble> {
        let mut image = self.handed.take(bytes).map_err(|e| Trouble::Refused(e.to_string()))?;
        // A cubin states its own size; should it lie, zeros follow.
        image.extend([0; 64]);
        let module = Module::new(&self.context, &image, "while the binary was loaded")?;
        let mut functions = BTreeMap::new();
        for (entry, symbol) in entries {
            functions.insert(entry.clone(), module.function(symbol)?);
        }
        self.modules.insert(slot, Loaded { functions, launches: vec![], module });
        Ok(())
    }

    fn write(&mut self, set: Set, name: &str, before: Before) -> Result<(), Trouble> {
        let bytes = self.held(set, name)?.whole.bytes();
        let contents = self.handed.take(bytes).map_err(|e| Trouble::Refused(e.to_string()))?;
        let context = Rc::clone(&self.context);
        let held = self.buffers.get_mut(&(set, name.to_string())).ok_or_else(|| none("such buffer"))?;
        held.whole.write(&contents)?;
        held.before = before;
        if before == Before::Restore {
            let kept = match held.kept.take() {
                Some(kept) => kept,
                None => Memory::new(&context, bytes)?,
            };
            kept.write(&contents)?;
            held.kept = Some(kept);
        }
        Ok(())
    }

    #[expect(unsafe_code, reason = "device memory is copied by address")]
    fn constant(&self, slot: Slot, spelt: &str, from: (Set, &str), bytes: u64) -> Result<(), Trouble> {
        let held = self.held(from.0, from.1)?;
        let module = &self.modules.get(&slot).ok_or_else(|| none("such module"))?.module;
        let (at, size) = module.global(&symbol(spelt))?;
        if bytes > size || bytes > held.place().bytes {
            return Err(Trouble::Refused(format!("`{spelt}` has {size} bytes, `{}` has {bytes}", from.1)));
        }
        // SAFETY: both ranges were found to be as long.
        unsafe { copy(at, held.place().at, bytes, &self.stream) }?;
        Ok(self.stream.synchronize("while a constant was filled")?)
    }

    fn ready(&mut self, slot: Slot, set: Set) -> Result<Rc<Ready>, Trouble> {
        if let Some(ready) = self.ready.get(&(slot, set)) {
            return Ok(Rc::clone(ready));
        }
        let loaded = self.modules.get(&slot).ok_or_else(|| none("such module"))?;
        let place = |name: &str| self.buffers.get(&(set, name.to_string())).map(Held::place);
        let ready = Rc::new(Ready::new(&self.context, &loaded.launches, &loaded.functions, place)?);
        self.ready.insert((slot, set), Rc::clone(&ready));
        Ok(ready)
    }

    /// Queues what happens to a set's buffers before a sample.
    #[expect(unsafe_code, reason = "device memory is written by address")]
    fn before(&self, set_: Set) -> Result<(), Fault> {
        for held in self.buffers.iter().filter(|((of, _), _)| *of == set_).map(|(_, held)| held) {
            match (held.before, &held.kept) {
                (Before::Set { byte, count }, _) => {
                    let place = held.place();
                    // SAFETY: no more than the place has.
                    unsafe { set(place.at, byte, count.min(place.bytes), &self.stream) }?;
                }
                (Before::Restore, Some(kept)) => {
                    // SAFETY: both are of the same size.
                    unsafe { copy(held.whole.at(), kept.at(), kept.bytes(), &self.stream) }?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}
