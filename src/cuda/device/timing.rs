//! One sample: a stream that the gate holds until everything is queued, two events around the launches. Knows streams and events; decides nothing.
//!
//! | | before the first event | between the events |
//! |---|---|---|
//! | cold | buffers as they were, persisting lines reset, twice the L2 cache read and written | the launches |
//! | hot | the launches once, so that caches hold what they can, unless they ran just before; buffers as they were | the launches |
//! | copies | as hot | a graph of this many sequences, each of what happens to buffers before a sample and the launches |
//! | bare copies | as hot | a graph of this many times what happens to buffers before a sample, which is to be taken off |
//!
//! Buffers are prepared again before each copy in a graph; otherwise a kernel would find the answer of the previous copy.
//!
//! The gate waits on a word of device memory, which a copy of one byte on another stream sets: no memory of the host is mapped while a candidate can run.
#![expect(unsafe_code, reason = "device memory is written by address")]

use std::collections::BTreeMap;
use std::rc::Rc;

use super::context::{Context, Event, Graph, Memory, Stream, set};
use super::fault::Fault;
use super::launch::PreparedLaunches;
use super::own_kernels::OwnKernels;
use super::session::Trouble;
use super::wire::{SampleRequest, Set, Slot};

/// A driver's queue holds about a thousand calls; who queues more behind a shut gate would wait for room that never comes.
const MOST_CALLS: usize = 256;

/// What a graph holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum GraphContents {
    /// The launches, once: too many to be queued one by one behind a gate.
    Launches,
    /// Copies of what happens before a sample and the launches.
    Both,
    /// Copies of what happens before a sample.
    Bare,
}

/// What samples are taken with.
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
    /// With an area of twice the L2 cache.
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

    /// Forgets graphs of what changes.
    pub(super) fn forget(&mut self, which: impl Fn(Slot, Set) -> bool) {
        self.graphs.retain(|(slot, set, ..), _| !which(*slot, *set));
    }

    /// Takes a sample: nanoseconds.
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
        // Where a launch was refused too: the stream would stay held.
        // SAFETY: the gate has eight bytes; the first makes its word not zero.
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
