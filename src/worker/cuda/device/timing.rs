//! One sample: a stream held by the gate until all is queued, two events around the launches. Knows streams and events; decides nothing.
//!
//! | | before the first event | between the events |
//! |---|---|---|
//! | cold | buffers as they were, persisting lines reset, twice the L2 cache read and written | the launches |
//! | hot | the launches once, so that caches hold what they can; buffers as they were | the launches |
//! | copies | as hot | a graph of so many sequences of the launches |
//!
//! The gate waits on a word of device memory, which a copy of one byte on another stream sets: no memory of the host is mapped while a candidate can run.
#![expect(unsafe_code, reason = "device memory is written by address")]

use std::collections::BTreeMap;
use std::rc::Rc;

use super::context::{Context, Event, Graph, Memory, Stream, set};
use super::fault::Fault;
use super::launch::Ready;
use super::own::Own;
use super::session::Trouble;
use super::wire::{Set, Shot, Slot};

/// A driver's queue holds about a thousand calls; who queues more behind a shut gate would wait for room that never comes.
const MOST_CALLS: usize = 256;

/// What samples are taken with.
pub(super) struct Timer {
    graphs: BTreeMap<(Slot, Set, u32), Graph>,
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
        self.graphs.retain(|(slot, set, _), _| !which(*slot, *set));
    }

    /// Takes a sample: nanoseconds.
    pub(super) fn take(
        &mut self,
        shot: Shot,
        context: &Rc<Context>,
        own: &Own,
        ready: &Ready,
        stream: &Stream,
        before: &dyn Fn() -> Result<(), Fault>,
    ) -> Result<f64, Trouble> {
        let copies = if ready.calls() > MOST_CALLS { shot.copies.max(1) } else { shot.copies };
        let key = (shot.slot, shot.set, copies);
        if copies > 0 && !self.graphs.contains_key(&key) {
            let queue = || (0..copies).try_for_each(|_| ready.queue(stream));
            self.graphs.insert(key, stream.capture(queue)?);
        }
        let graph = self.graphs.get(&key);
        let queue = || match graph {
            Some(graph) => graph.launch(stream),
            None => ready.queue(stream),
        };
        let ran = "while the launches ran";
        if shot.cold {
            context.reset_persisting()?;
        } else {
            before()?;
            queue()?;
            stream.synchronize(ran)?;
        }
        // SAFETY: the gate has eight bytes.
        unsafe { set(self.gate.at(), 0, 8, &self.opener) }?;
        self.opener.synchronize("while the gate was shut")?;
        self.shots = self.shots.wrapping_add(1);
        own.hold(&self.gate, stream)?;
        before()?;
        if shot.cold {
            own.flush(&self.area, self.shots | 1, stream)?;
        }
        self.start.record(stream)?;
        queue()?;
        self.end.record(stream)?;
        // SAFETY: the gate has eight bytes; the first makes its word not zero.
        unsafe { set(self.gate.at(), 1, 1, &self.opener) }?;
        stream.synchronize(ran)?;
        let mut word = [0; 8];
        self.gate.read(&mut word)?;
        if word[4] != 0 {
            return Err(Trouble::Refused("the gate opened by itself before everything was queued".into()));
        }
        Ok(self.end.since(&self.start)?)
    }
}
