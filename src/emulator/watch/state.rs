//! What is known about memory while a trial runs: about buffers and globals over its launches, and about a block's shared memory and threads while the block
//! runs. Knows which threads and blocks have synchronized; does not check accesses.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::super::handover::Handover;
use super::super::job::Loaded;
use super::super::memory::Arena;
use super::super::shadow::{Cell, Clocks};
use super::super::warp;
use super::fences::Fences;
use super::looks::Looks;

/// Bytes per cell: of shared memory until a smaller access is seen, and of globals.
const SHARED_GRANULE: usize = 4;
const IMAGE_GRANULE: usize = 4;
/// Cells that share a lock, and are allocated together at first touch.
pub(super) const CHUNK: usize = 1024;

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shadow of a buffer, or of the image's globals.
pub(super) struct Shadow {
    pub(super) granule: usize,
    pub(super) chunks: Vec<Mutex<Vec<Cell>>>,
    /// Whether each byte was written, for poisoned buffers.
    pub(super) written: Option<Vec<AtomicBool>>,
}

impl Shadow {
    fn new(bytes: usize, granule: usize, poisoned: bool) -> Self {
        let chunks = bytes.div_ceil(granule * CHUNK);
        Shadow {
            granule,
            chunks: (0..chunks).map(|_| Mutex::default()).collect(),
            written: poisoned.then(|| (0..bytes).map(|_| AtomicBool::new(false)).collect()),
        }
    }
}

/// What is known about global memory over the launches of a trial.
pub(crate) struct Watch {
    pub(super) shadows: Vec<Shadow>,
    pub(super) image: Shadow,
    /// Increases with every launch and every grid barrier.
    pub(super) phase: AtomicU32,
    /// The first phase of the launch.
    pub(super) launch: AtomicU32,
    /// What was handed over at each address by fence and atomic: releases by block.
    pub(super) handed: Mutex<HashMap<usize, HashMap<u32, u32>>>,
    pub(super) any_handed: AtomicBool,
}

impl Watch {
    /// The initial state: no byte of a poisoned buffer was written.
    pub(crate) fn new(arena: &Arena, loaded: &Loaded) -> Watch {
        Watch {
            shadows: arena.regions.iter().map(|r| Shadow::new(r.bytes, r.element.min(16), r.poisoned)).collect(),
            image: Shadow::new(loaded.image.end as usize, IMAGE_GRANULE, false),
            phase: AtomicU32::new(1),
            launch: AtomicU32::new(1),
            handed: Mutex::default(),
            any_handed: AtomicBool::new(false),
        }
    }

    /// A launch begins.
    pub(crate) fn next_launch(&self) {
        self.next_phase();
        self.launch.store(self.phase.load(Ordering::Acquire), Ordering::Release);
    }

    /// The whole grid has met, or a launch begins.
    pub(crate) fn next_phase(&self) {
        self.phase.fetch_add(1, Ordering::AcqRel);
        lock(&self.handed).clear();
    }

    /// The bytes of the region were written from outside the kernel.
    pub(crate) fn filled(&self, region: usize) {
        for byte in self.shadows[region].written.iter().flatten() {
            byte.store(true, Ordering::Relaxed);
        }
    }
}

/// What is known about a block: its shared memory, its lanes' clocks, and what other blocks handed over to it.
pub(crate) struct BlockWatch {
    /// Distinguishes this run of the block's memory from earlier ones.
    pub(super) run: u32,
    pub(super) cells: Vec<Cell>,
    pub(super) granule: usize,
    pub(super) written: Vec<bool>,
    pub(super) clocks: Clocks,
    pub(super) handover: Handover,
    pub(super) looks: Looks,
    pub(super) knows: HashMap<u32, u32>,
    pub(super) fences: Fences,
    /// The address of each thread's last atomic or volatile access, until its next access. A thread may wait in the middle of an operation while others go on.
    pub(super) pending: HashMap<u32, usize>,
    /// The addresses of operations that have ended since the block's last access to global memory: other threads may know their outcome.
    pub(super) ended: BTreeSet<usize>,
}

impl BlockWatch {
    /// For blocks of `threads` threads with `bytes` of shared memory.
    pub(crate) fn new(threads: usize, bytes: usize) -> Self {
        BlockWatch {
            run: 0,
            cells: vec![Cell::default(); bytes.div_ceil(SHARED_GRANULE)],
            granule: SHARED_GRANULE,
            written: vec![false; bytes],
            clocks: Clocks::new(threads),
            handover: Handover::default(),
            looks: Looks::new(threads),
            knows: HashMap::new(),
            fences: Fences::default(),
            pending: HashMap::new(),
            ended: BTreeSet::new(),
        }
    }

    /// Whether this value fits blocks of that many threads and bytes.
    pub(crate) fn fits(&self, threads: usize, bytes: usize) -> bool {
        self.clocks.of_threads() == threads && self.written.len() == bytes
    }

    /// Another block begins.
    pub(crate) fn begin(&mut self) {
        self.run += 1;
        self.written.fill(false);
        self.handover.begin();
        self.looks.begin();
        self.knows.clear();
        self.fences.begin();
        self.pending.clear();
        self.ended.clear();
    }

    /// Accesses of `bytes` bytes occur: from now on, a cell covers no more bytes than that.
    pub(super) fn refine(&mut self, bytes: usize) {
        let parts = self.granule / bytes;
        self.cells = self.cells.iter().flat_map(|c| (0..parts).map(|p| c.part(p as u8, bytes as u8))).collect();
        self.granule = bytes;
    }

    /// All threads of the block have met.
    pub(crate) fn barrier(&mut self) {
        self.clocks.level();
        self.fences.all_met();
        self.ended.extend(self.pending.drain().map(|(_, address)| address));
    }

    /// Lanes of a warp have met in a warp operation. Of those, only a synchronization orders their accesses ([`Self::warp`]).
    pub(crate) fn met(&mut self, warp: usize, mask: u32) {
        self.looks.met(warp, mask);
        self.fences.have_met(warp::lanes(mask).map(|lane| (warp * 32 + lane) as u32));
    }

    /// Lanes of a warp have synchronized.
    pub(crate) fn warp(&mut self, warp: usize, mask: u32) {
        self.clocks.join(warp, mask);
        let lanes = warp::lanes(mask).map(|lane| (warp * 32 + lane) as u32);
        lanes.clone().for_each(|thread| self.end(thread));
        self.fences.have_met(lanes.clone());
        self.handover.together(lanes);
    }

    /// A thread has passed a fence: its next atomic or volatile store hands over everything before the fence; to other blocks only if the fence is not one of
    /// the block alone.
    pub(crate) fn fence(&mut self, thread: u32, epoch: u32, of_block: bool) {
        if !of_block {
            self.fences.passes(thread);
        }
        self.end(thread);
        self.handover.fence(thread, epoch, &mut self.clocks);
    }

    /// The thread is past its last atomic operation.
    pub(super) fn end(&mut self, thread: u32) {
        // Every access and fence comes here, and most kernels hand nothing over.
        if !self.pending.is_empty() {
            self.ended.extend(self.pending.remove(&thread));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_thread_found_is_due_to_its_block_once_it_passes_a_fence_or_a_barrier() {
        let mut block = BlockWatch::new(64, 0);
        let due = |block: &BlockWatch| block.ended.iter().copied().collect::<Vec<_>>();
        block.pending.extend([(0, 0x100), (1, 0x200), (2, 0x300), (40, 0x400)]);
        block.fence(1, 0, false);
        assert_eq!(due(&block), [0x200]);
        block.warp(0, 0b101);
        assert_eq!(due(&block), [0x100, 0x200, 0x300], "thread 40 is of another warp");
        block.barrier();
        assert_eq!(due(&block), [0x100, 0x200, 0x300, 0x400]);
        assert!(block.pending.is_empty());
        block.begin();
        assert!(due(&block).is_empty());
    }
}
