//! Check builds: every access of a kernel, before it happens, against where it may go, what was written and who else was there.
//! Knows buffers, shared variables and globals by address; the rules of races are in `shadow`.
#![expect(unsafe_code, reason = "called from kernels with raw addresses, which it looks up and does not follow")]

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::abi::{ATOMIC, EXCHANGE, UNALIGNED, VOLATILE, WRITE};
use super::block::State;
use super::core::{Core, POLLS, park};
use super::handover::Handover;
use super::hooks;
use super::job::{Job, Loaded, finding};
use super::memory::Arena;
use super::shadow::{Cell, Clocks, Knowledge, Record};
use crate::base::count;
use crate::model::coordinates::stored;
use crate::record::{Finding, FindingKind, Space};

/// Bytes that one cell stands for: of shared memory until a smaller access is seen, and of globals.
const SHARED_GRANULE: usize = 4;
const IMAGE_GRANULE: usize = 4;
/// Cells that share a lock and are made at first touch.
const CHUNK: usize = 1024;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shadow of a buffer, or of the image's globals.
struct Shadow {
    granule: usize,
    chunks: Vec<Mutex<Vec<Cell>>>,
    /// A byte each, for buffers that are poisoned.
    written: Option<Vec<AtomicBool>>,
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

/// What is known of global memory over the launches of a trial.
pub(super) struct Watch {
    shadows: Vec<Shadow>,
    image: Shadow,
    /// Rises with every launch and every grid barrier.
    phase: AtomicU32,
    /// What was handed over at an address by fence and atomic: releases by block.
    handed: Mutex<HashMap<usize, HashMap<u32, u32>>>,
    any_handed: AtomicBool,
}

impl Watch {
    /// Knows nothing written of poisoned buffers.
    pub(super) fn new(arena: &Arena, loaded: &Loaded) -> Watch {
        Watch {
            shadows: arena.regions.iter().map(|r| Shadow::new(r.bytes, r.element.min(16), r.poisoned)).collect(),
            image: Shadow::new(loaded.image.end as usize, IMAGE_GRANULE, false),
            phase: AtomicU32::new(1),
            handed: Mutex::default(),
            any_handed: AtomicBool::new(false),
        }
    }

    /// A launch begins, or the whole grid has met.
    pub(super) fn next_phase(&self) {
        self.phase.fetch_add(1, Ordering::AcqRel);
        lock(&self.handed).clear();
    }

    /// The bytes of the region were written from outside.
    pub(super) fn filled(&self, region: usize) {
        for byte in self.shadows[region].written.iter().flatten() {
            byte.store(true, Ordering::Relaxed);
        }
    }
}

/// What is known of a block: its shared memory, its lanes' clocks, what other blocks handed over to it.
pub(super) struct BlockWatch {
    /// Tells this run of the block's memory from earlier ones.
    run: u32,
    cells: Vec<Cell>,
    granule: usize,
    written: Vec<bool>,
    clocks: Clocks,
    handover: Handover,
    knows: HashMap<u32, u32>,
    releases: u32,
    fenced: bool,
    /// Where the last atomic or volatile access went.
    pending: Option<usize>,
}

impl BlockWatch {
    /// For blocks of `threads` threads with `bytes` of shared memory.
    pub(super) fn new(threads: usize, bytes: usize) -> Self {
        BlockWatch {
            run: 0,
            cells: vec![Cell::default(); bytes.div_ceil(SHARED_GRANULE)],
            granule: SHARED_GRANULE,
            written: vec![false; bytes],
            clocks: Clocks::new(threads),
            handover: Handover::default(),
            knows: HashMap::new(),
            releases: 0,
            fenced: false,
            pending: None,
        }
    }

    /// Whether it serves blocks of this make.
    pub(super) fn fits(&self, threads: usize, bytes: usize) -> bool {
        self.clocks.of_threads() == threads && self.written.len() == bytes
    }

    /// Another block begins.
    pub(super) fn begin(&mut self) {
        self.run += 1;
        self.written.fill(false);
        self.handover.begin();
        self.knows.clear();
        self.releases = 0;
        self.fenced = false;
        self.pending = None;
    }

    /// Accesses of `bytes` bytes occur: from now on a cell stands for no more.
    fn refine(&mut self, bytes: usize) {
        let parts = self.granule / bytes;
        self.cells = self.cells.iter().flat_map(|c| (0..parts).map(|p| c.part(p as u8, bytes as u8))).collect();
        self.granule = bytes;
    }

    /// Lanes of a warp have synchronised.
    pub(super) fn warp(&mut self, warp: usize, mask: u32) {
        self.clocks.join(warp, mask);
        self.handover.together(super::warp::lanes(mask).map(|lane| (warp * 32 + lane) as u32));
    }

    /// A thread has passed a fence: its next atomic or volatile store hands over what came before.
    pub(super) fn fence(&mut self, thread: u32, epoch: u32) {
        self.fenced = true;
        self.handover.fence(thread, epoch, &mut self.clocks);
    }
}

/// An access on its way: what the parts below pass on.
struct Access {
    address: usize,
    size: usize,
    kind: u32,
    pc: usize,
    thread: u32,
}

/// Looks at an access of the running thread. Comes back if it may happen.
///
/// # Safety
/// Called on a coroutine of `core` in a launch that is watched.
pub(super) unsafe fn access(core: *mut Core, address: usize, size: usize, kind: u32, pc: usize) {
    // SAFETY: as stated. References end before the coroutine can give way.
    unsafe {
        let job = &*(*core).job;
        let Some(watch) = &job.watch else { return };
        let thread = (*core).ctx.linear;
        let access = Access { address, size, kind, pc, thread };
        if (job.arena.start..job.arena.start + job.arena.bytes).contains(&address) {
            global(core, job, watch, &access);
        } else if (0..job.loaded.image.shared_window()).contains(&address.wrapping_sub((*core).tls)) {
            if kind & VOLATILE != 0 && job.loaded.image.warp_synchronous {
                hooks::step_together(core, pc);
                (*core).ctx.polls = POLLS;
            }
            shared(core, job, &access);
        } else if (*core).on_stack(address) || (*core).is_own(address) {
            return;
        } else if (job.loaded.base..job.loaded.base + job.loaded.image.end as usize).contains(&address) {
            image(core, job, watch, &access);
        } else if !(*core).on_any_stack(address) {
            let what = if address < 4096 { "a null pointer" } else { "an address in no buffer" };
            let message =
                format!("{} of {} through {what} ({address:#x}) at {}", verb(kind), count(size, "byte"), job.at(pc));
            stop(
                core,
                job,
                &access,
                finding(job, FindingKind::OutOfBounds, message, pc, (*(*core).block).linear, thread),
            );
        }
        if kind & WRITE != 0 {
            (*core).writes += 1;
        } else if kind & VOLATILE != 0 {
            (*core).ctx.polls -= 1;
            if (*core).ctx.polls == 0 {
                (*core).ctx.polls = POLLS;
                let at = &mut (&mut (*(*core).block).threads)[thread as usize];
                (at.state, at.pc) = (State::Poll, pc);
                park(core, thread);
            }
        }
    }
}

fn verb(kind: u32) -> &'static str {
    match (kind & WRITE != 0, kind & ATOMIC != 0) {
        (_, true) => "atomic operation",
        (true, _) => "write",
        _ => "read",
    }
}

/// Whose access it is: `thread 3 of block 0`.
unsafe fn by(core: *mut Core, job: &Job, a: &Access) -> String {
    // SAFETY: as for `access`.
    let block = unsafe { (*(*core).block).linear };
    format!("thread {} of block {}", job.thread_named(a.thread), job.block_named(block))
}

unsafe fn stop(core: *mut Core, job: &Job, access: &Access, found: Finding) {
    job.notebook.add(found);
    // SAFETY: as for `access`.
    unsafe { hooks::end(core, job, access.thread) };
}

/// A finding at the access, in the block that runs.
unsafe fn found(core: *mut Core, job: &Job, a: &Access, kind: FindingKind, message: String, at: &Place<'_>) -> Finding {
    // SAFETY: as for `access`.
    let block = unsafe { (*(*core).block).linear };
    let mut found = finding(job, kind, message, a.pc, block, a.thread);
    found.buffer = Some(at.name.to_owned());
    found.space = Some(at.space);
    found.index = Some(at.index);
    found
}

/// Where an access goes, for people.
struct Place<'a> {
    name: &'a str,
    space: Space,
    index: i64,
    /// Extent and stride of each axis, where it goes into a tensor.
    axes: &'a [(u64, u64)],
}

impl Place<'_> {
    /// The element, for people.
    fn element(&self) -> String {
        stored(self.index, self.axes)
    }
}

/// Whether the address suits the size: the compiler marks accesses through types of lesser alignment.
fn misaligned(a: &Access) -> bool {
    a.kind & UNALIGNED == 0 && a.size.is_power_of_two() && !a.address.is_multiple_of(a.size.min(16))
}

unsafe fn global(core: *mut Core, job: &Job, watch: &Watch, a: &Access) {
    // SAFETY: as for `access`.
    unsafe {
        let after = job.arena.regions.partition_point(|r| r.start <= a.address);
        let inside = after.checked_sub(1).filter(|i| {
            let r = &job.arena.regions[*i];
            a.address + a.size <= r.start + r.bytes
        });
        let Some(which) = inside else {
            let Some(region) = job.arena.nearest(a.address) else { return };
            let offset = a.address as i64 - region.start as i64;
            let index = offset.div_euclid(region.element as i64);
            let at = Place { name: &region.name, space: Space::Global, index, axes: &region.axes };
            // One that begins inside and ends outside has coordinates.
            let element = at.element();
            let elements = region.bytes / region.element;
            let message = format!(
                "{} of {} at element {element} of `{}`, which has {elements}, at {} by {}",
                verb(a.kind),
                count(a.size, "byte"),
                region.name,
                job.at(a.pc),
                by(core, job, a)
            );
            return stop(core, job, a, found(core, job, a, FindingKind::OutOfBounds, message, &at));
        };
        let region = &job.arena.regions[which];
        let offset = a.address - region.start;
        let index = (offset / region.element) as i64;
        let at = Place { name: &region.name, space: Space::Global, index, axes: &region.axes };
        if misaligned(a) {
            let message = format!(
                "{} of {} of `{}` at byte {offset}, at {}",
                verb(a.kind),
                count(a.size, "byte"),
                region.name,
                job.at(a.pc)
            );
            return stop(core, job, a, found(core, job, a, FindingKind::Misaligned, message, &at));
        }
        if a.kind & WRITE != 0 && !region.writable {
            let message =
                format!("{} to `{}`, which may not be written, at {}", verb(a.kind), region.name, job.at(a.pc));
            return stop(core, job, a, found(core, job, a, FindingKind::InputModified, message, &at));
        }
        let shadow = &watch.shadows[which];
        if let Some(written) = &shadow.written {
            let bytes = &written[offset..offset + a.size];
            if reads(a.kind) && !bytes.iter().all(|b| b.load(Ordering::Relaxed)) {
                let message = format!(
                    "element {} of `{}` is read before anything wrote it, at {} by {}",
                    at.element(),
                    at.name,
                    job.at(a.pc),
                    by(core, job, a)
                );
                job.notebook.add(found(core, job, a, FindingKind::Uninitialised, message, &at));
            }
            if a.kind & WRITE != 0 {
                bytes.iter().for_each(|b| b.store(true, Ordering::Relaxed));
            }
        }
        in_global(core, job, watch, shadow, offset, a, &at);
    }
}

/// Whether it depends on what was there.
fn reads(kind: u32) -> bool {
    kind & WRITE == 0 || (kind & ATOMIC != 0 && kind & EXCHANGE == 0)
}

unsafe fn image(core: *mut Core, job: &Job, watch: &Watch, a: &Access) {
    let offset = a.address - job.loaded.base;
    let Some(variable) = job.loaded.image.global_at(offset as u64) else { return };
    let index = (offset as u64 - variable.start) / a.size.max(1) as u64;
    let at = Place { name: &variable.name, space: Space::Global, index: index as i64, axes: &[] };
    // SAFETY: as for `access`.
    unsafe {
        if variable.start + variable.size < (offset + a.size) as u64 {
            let message = format!("{} beyond the end of `{}` at {}", verb(a.kind), variable.name, job.at(a.pc));
            return stop(core, job, a, found(core, job, a, FindingKind::OutOfBounds, message, &at));
        }
        in_global(core, job, watch, &watch.image, offset, a, &at);
    }
}

unsafe fn in_global(
    core: *mut Core,
    job: &Job,
    watch: &Watch,
    shadow: &Shadow,
    offset: usize,
    a: &Access,
    at: &Place<'_>,
) {
    // SAFETY: as for `access`.
    unsafe {
        let block = &mut *(*core).block;
        let Some(own) = &mut block.watch else { return };
        // PTX's volatile accesses are relaxed ones: they do not race with each other.
        let atomic = a.kind & (ATOMIC | VOLATILE) != 0;
        own.handover.settle(a.thread, block.epoch);
        // What an atomic operation acquires is looked at again after it: another core may have handed over between this call and the operation itself.
        if let Some(address) = own.pending.take() {
            acquire(watch, own, address);
        }
        if atomic {
            acquire(watch, own, a.address);
            own.pending = Some(a.address);
            own.handover.atomic(a.thread, block.epoch, a.address, a.kind & WRITE != 0);
        }
        let new = Record {
            phase: watch.phase.load(Ordering::Relaxed),
            block: block.linear as u32,
            thread: a.thread,
            epoch: block.epoch,
            clock: own.clocks.of(a.thread as usize)[a.thread as usize % 32],
            release: own.releases,
            pc: job.place(a.pc).unwrap_or(0),
            from: 0,
            bytes: 0,
            atomic,
        };
        let threads = own.handover.taken(a.thread, block.epoch);
        let knows = Knowledge { lanes: own.clocks.of(a.thread as usize), threads, blocks: &own.knows };
        let mut race = None;
        for (cell, from, bytes) in parts(offset, a.size, shadow.granule) {
            let mut chunk = lock(&shadow.chunks[cell / CHUNK]);
            if chunk.is_empty() {
                chunk.resize(CHUNK, Cell::default());
            }
            race = race.or(look(&mut chunk[cell % CHUNK], Record { from, bytes, ..new }, a.kind, &knows));
        }
        if atomic && a.kind & WRITE != 0 && own.fenced {
            release(watch, own, block.linear as u32, a.address);
        }
        if let Some((old, wrote)) = race {
            job.notebook.add(race_found(core, job, a, at, &old, wrote));
        }
    }
}

/// The cells that an access touches, and which bytes of each.
fn parts(offset: usize, size: usize, granule: usize) -> impl Iterator<Item = (usize, u8, u8)> {
    let end = offset + size;
    (offset / granule..end.div_ceil(granule)).map(move |cell| {
        let from = offset.max(cell * granule);
        let to = end.min((cell + 1) * granule);
        (cell, (from - cell * granule) as u8, (to - from) as u8)
    })
}

fn look(cell: &mut Cell, new: Record, kind: u32, knows: &Knowledge<'_>) -> Option<(Record, bool)> {
    if kind & WRITE != 0 { cell.write(new, knows) } else { cell.read(new, knows).map(|old| (old, true)) }
}

fn acquire(watch: &Watch, own: &mut BlockWatch, address: usize) {
    if watch.any_handed.load(Ordering::Acquire)
        && let Some(handed) = lock(&watch.handed).get(&address)
    {
        for (block, seen) in handed {
            let known = own.knows.entry(*block).or_default();
            *known = (*known).max(*seen);
        }
    }
}

fn release(watch: &Watch, own: &mut BlockWatch, block: u32, address: usize) {
    own.releases += 1;
    let mut all = lock(&watch.handed);
    let handed = all.entry(address).or_default();
    for (block, seen) in own.knows.iter().map(|(b, s)| (*b, *s)).chain([(block, own.releases)]) {
        let known = handed.entry(block).or_default();
        *known = (*known).max(seen);
    }
    watch.any_handed.store(true, Ordering::Release);
}

unsafe fn race_found(core: *mut Core, job: &Job, a: &Access, at: &Place<'_>, old: &Record, wrote: bool) -> Finding {
    // SAFETY: as for `access`.
    unsafe {
        let block = (*(*core).block).linear;
        let did = if wrote { "written" } else { "read" };
        let other = if u64::from(old.block) == block & 0xffff_ffff {
            format!("thread {} of the same block", job.thread_named(old.thread))
        } else {
            format!("thread {} of block {}", job.thread_named(old.thread), job.block_named(u64::from(old.block)))
        };
        let mut message = format!(
            "race on element {} of `{}`: {} at {} by {}, {did} at {} by {other}, with nothing between that orders them",
            at.element(),
            at.name,
            verb(a.kind),
            job.at(a.pc),
            by(core, job, a),
            super::lines::mark(old.pc)
        );
        if u64::from(old.block) == block & 0xffff_ffff && at.space == Space::Shared {
            let same_place = job.place(a.pc) == Some(old.pc);
            message += super::hint::order(job.block.iter().product(), [old.thread, a.thread], same_place);
        }
        let mut found = found(core, job, a, FindingKind::Race, message, at);
        found.other_line = Some(super::lines::pending(old.pc));
        found
    }
}

unsafe fn shared(core: *mut Core, job: &Job, a: &Access) {
    // SAFETY: as for `access`.
    unsafe {
        let offset = a.address - (*core).tls;
        let image = &job.loaded.image;
        let dynamic = image.dynamic.0 as usize;
        let (name, start, size) = if offset >= dynamic {
            (image.dynamic_name.as_str(), dynamic, job.shared as usize)
        } else if let Some(v) = image.shared_at(offset as u64) {
            (v.name.as_str(), v.start as usize, v.size as usize)
        } else if image.is_exempt(offset as u64) {
            return;
        } else {
            match image.shared.iter().rev().find(|v| v.start as usize <= offset) {
                Some(v) => (v.name.as_str(), v.start as usize, v.size as usize),
                None => ("shared memory", 0, 0),
            }
        };
        let at = Place { name, space: Space::Shared, index: ((offset - start) / a.size.max(1)) as i64, axes: &[] };
        if offset + a.size > start + size {
            let message = format!(
                "{} of {} at byte {} of `{name}` in shared memory, which has {size}, at {} by {}",
                verb(a.kind),
                count(a.size, "byte"),
                offset - start,
                job.at(a.pc),
                by(core, job, a)
            );
            return stop(core, job, a, found(core, job, a, FindingKind::OutOfBounds, message, &at));
        }
        if misaligned(a) {
            let message = format!(
                "{} of {} of `{name}` at byte {}, at {}",
                verb(a.kind),
                count(a.size, "byte"),
                offset - start,
                job.at(a.pc)
            );
            return stop(core, job, a, found(core, job, a, FindingKind::Misaligned, message, &at));
        }
        let block = &mut *(*core).block;
        let Some(own) = &mut block.watch else { return };
        let written = &mut own.written[offset..offset + a.size];
        let unwritten = reads(a.kind) && !written.iter().all(|w| *w);
        if a.kind & WRITE != 0 {
            written.fill(true);
        }
        let new = Record {
            phase: own.run,
            block: block.linear as u32,
            thread: a.thread,
            epoch: block.epoch,
            clock: own.clocks.of(a.thread as usize)[a.thread as usize % 32],
            release: 0,
            pc: job.place(a.pc).unwrap_or(0),
            from: 0,
            bytes: 0,
            atomic: a.kind & ATOMIC != 0,
        };
        if a.size < own.granule && a.size.is_power_of_two() {
            own.refine(a.size);
        }
        own.handover.settle(a.thread, block.epoch);
        if a.kind & ATOMIC != 0 {
            own.handover.atomic(a.thread, block.epoch, a.address, a.kind & WRITE != 0);
        }
        let threads = own.handover.taken(a.thread, block.epoch);
        let knows = Knowledge { lanes: own.clocks.of(a.thread as usize), threads, blocks: &own.knows };
        let mut race = None;
        for (cell, from, bytes) in parts(offset, a.size, own.granule) {
            race = race.or(look(&mut own.cells[cell], Record { from, bytes, ..new }, a.kind, &knows));
        }
        if unwritten {
            let message = format!(
                "element {} of `{name}` in shared memory is read before anything wrote it, at {} by {}",
                at.index,
                job.at(a.pc),
                by(core, job, a)
            );
            job.notebook.add(found(core, job, a, FindingKind::Uninitialised, message, &at));
        }
        if let Some((old, wrote)) = race {
            job.notebook.add(race_found(core, job, a, &at, &old, wrote));
        }
    }
}

/// A pointer is followed whose alignment does not suit its type.
///
/// # Safety
/// As for [`access`].
pub(super) unsafe fn crooked(core: *mut Core, address: usize, pc: usize) {
    // SAFETY: as stated.
    unsafe {
        let job = &*(*core).job;
        let thread = (*core).ctx.linear;
        let a = Access { address, size: 1, kind: 0, pc, thread };
        let message = |name: &str, byte: usize| {
            format!("an access to byte {byte} of `{name}` is not aligned to its size, at {}", job.at(pc))
        };
        if let Some(region) = job.arena.nearest(address) {
            let byte = address.wrapping_sub(region.start);
            let at =
                Place { name: &region.name, space: Space::Global, index: (byte / region.element) as i64, axes: &[] };
            stop(core, job, &a, found(core, job, &a, FindingKind::Misaligned, message(&region.name, byte), &at));
        } else if (0..job.loaded.image.shared_window()).contains(&address.wrapping_sub((*core).tls)) {
            let offset = (address - (*core).tls) as u64;
            let image = &job.loaded.image;
            let (name, start) = image
                .shared_at(offset)
                .map_or((image.dynamic_name.as_str(), image.dynamic.0), |v| (v.name.as_str(), v.start));
            let byte = offset.saturating_sub(start) as usize;
            let at = Place { name, space: Space::Shared, index: byte as i64, axes: &[] };
            stop(core, job, &a, found(core, job, &a, FindingKind::Misaligned, message(name, byte), &at));
        }
        // Anything else is reported by the access itself.
    }
}

/// The type of the array that a bounds check of the compiler is about: `float [32]`.
///
/// # Safety
/// `data` is what the compiler passes to the handler: a location of sixteen bytes, then the address of the type, whose name stands after four bytes.
pub(super) unsafe fn array_type(data: *const c_void) -> String {
    // SAFETY: as stated.
    unsafe {
        let described = *data.cast::<*const u8>().add(2);
        CStr::from_ptr(described.add(4).cast::<c_char>()).to_string_lossy().trim_matches('\'').to_owned()
    }
}

/// The shared variable that an array type can only mean, if one alone has its size.
pub(super) fn shared_of_type<'a>(job: &'a Job, array: &str) -> Option<&'a str> {
    let (element, extents) = array.split_once(" [")?;
    let size = match element {
        "char" | "signed char" | "unsigned char" | "bool" => 1,
        "short int" | "short unsigned int" | "__half" | "__nv_bfloat16" | "half" => 2,
        "int" | "unsigned int" | "float" | "__half2" | "half2" => 4,
        "double" | "long int" | "long unsigned int" | "long long int" | "long long unsigned int" | "float2" => 8,
        "float4" | "int4" | "uint4" => 16,
        _ => return None,
    };
    let bytes =
        extents.trim_end_matches(']').split("][").map(|n| n.trim().parse::<u64>().ok()).product::<Option<u64>>()?
            * size;
    let mut alike = job.loaded.image.shared.iter().filter(|v| v.size == bytes);
    let first = alike.next()?;
    alike.next().is_none().then_some(first.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_touches_parts_of_granules() {
        assert_eq!(parts(6, 4, 4).collect::<Vec<_>>(), [(1, 2, 2), (2, 0, 2)]);
        assert_eq!(parts(8, 1, 4).collect::<Vec<_>>(), [(2, 0, 1)]);
        assert_eq!(parts(0, 16, 8).collect::<Vec<_>>(), [(0, 0, 8), (1, 0, 8)]);
    }
}
