//! One sample: a gate holds the stream until everything is queued, with one event before and one after the launches. Knows streams and events; decides nothing.
//!
//! | | before the first event | between the events |
//! |---|---|---|
//! | cold | buffers reset, persisting lines reset, twice the L2 cache read and written | the launches |
//! | hot | the launches once, so that caches hold what they can, unless they ran just before; buffers reset | the launches |
//! | copies | as hot | a graph of this many sequences, each of the resets before a sample and the launches |
//! | bare copies | as hot | a graph of this many times the resets before a sample, whose time is subtracted |
//!
//! Buffers are reset before each copy in a graph; otherwise a kernel would find the answer of the previous copy.
//!
//! The gate waits for a word of device memory, which a copy of one byte on another stream sets: no host memory is mapped while a candidate can run.
#![expect(unsafe_code, reason = "device memory is written by address")]

use std::collections::BTreeMap;
use std::rc::Rc;

use super::context::{Context, Event, Graph, Memory, Stream, set};
use super::fault::Fault;
use super::launch::PreparedLaunches;
use super::own_kernels::OwnKernels;
use super::session::Trouble;
use super::wire::{SampleRequest, Set, Slot};

/// A driver's queue holds about a thousand calls; queueing more behind a closed gate would wait forever for room.
const MOST_CALLS: usize = 256;

/// The contents of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum GraphContents {
    /// The launches, once, if they are too many to be queued one by one behind a gate.
    Launches,
    /// Copies of the resets before a sample and the launches.
    Both,
    /// Copies of the resets before a sample.
    Bare,
}

/// The resources for samples.
pub(super) struct Timer {
    graphs: BTreeMap<(Slot, Set, u32, GraphContents), Graph>,
    gate: Memory,
    area: Memory,
    start: Event,
    end: Event,
    opener: Stream,
    shots: u32,
}

impl Timer {
    /// Creates a timer with an area of twice the L2 cache.
    pub(super) fn new(context: &Rc<Context>, l2: u64) -> Result<Self, Fault> {
        Ok(Timer {
            graphs: BTreeMap::new(),
            gate: Memory::new(context, 8)?,
            area: Memory::new(context, (2 * l2).next_multiple_of(4096))?,
            start: Event::new(context)?,
            end: Event::new(context)?,
            opener: Stream::new(context)?,
            shots: 0,
        })
    }

    /// Drops graphs of what has changed.
    pub(super) fn forget(&mut self, which: impl Fn(Slot, Set) -> bool) {
        self.graphs.retain(|(slot, set, ..), _| !which(*slot, *set));
    }

    /// Takes a sample, in nanoseconds.
    pub(super) fn take(
        &mut self,
        shot: SampleRequest,
        context: &Rc<Context>,
        own: &OwnKernels,
        ready: &PreparedLaunches,
        stream: &Stream,
        before: &dyn Fn() -> Result<(), Trouble>,
    ) -> Result<f64, Trouble> {
        let of = match (shot.copies, shot.bare) {
            (0, _) if ready.calls() > MOST_CALLS => Some(GraphContents::Launches),
            (0, _) => None,
            (_, true) => Some(GraphContents::Bare),
            (_, false) => Some(GraphContents::Both),
        };
        let key = (shot.slot, shot.set, shot.copies, of.unwrap_or(GraphContents::Launches));
        if let (Some(of), false) = (of, self.graphs.contains_key(&key)) {
            let one = || {
                if of != GraphContents::Launches {
                    before()?;
                }
                if of != GraphContents::Bare {
                    ready.queue(stream)?;
                }
                Ok::<(), Trouble>(())
            };
            let queue = || (0..shot.copies.max(1)).try_for_each(|_| one());
            self.graphs.insert(key, stream.capture(queue)?);
        }
        let graph = of.and_then(|_| self.graphs.get(&key));
        let queue = || match graph {
            Some(graph) => graph.launch(stream),
            None => ready.queue(stream),
        };
        let ran = "while the launches ran";
        if shot.cold {
            context.reset_persisting()?;
        } else if !shot.warm {
            before()?;
            queue()?;
            stream.synchronize(ran)?;
        }
        // SAFETY: the gate has eight bytes.
        unsafe { set(self.gate.at(), 0, 8, &self.opener) }?;
        self.opener.synchronize("while the gate was shut")?;
        self.shots = self.shots.wrapping_add(1);
        own.hold(&self.gate, stream)?;
        let queued = || -> Result<(), Trouble> {
            before()?;
            if shot.cold {
                own.flush(&self.area, self.shots | 1, stream)?;
            }
            self.start.record(stream)?;
            queue()?;
            Ok(self.end.record(stream)?)
        };
        let queued = queued();
        // The gate is also opened if a launch was refused; otherwise the stream would stay blocked.
        // SAFETY: the gate has eight bytes; setting the first byte makes its first word non-zero.
        unsafe { set(self.gate.at(), 1, 1, &self.opener) }?;
        queued?;
        stream.synchronize(ran)?;
        let mut word = [0; 8];
        self.gate.read(&mut word)?;
        if word[4] != 0 {
            return Err(Trouble::Refused("the gate opened by itself before everything was queued".into()));
        }
        Ok(self.end.since(&self.start)?)
    }
}
