//! Accesses to global memory: the buffers, and the image's globals. Knows what blocks hand over to each other by fence and atomic.
#![expect(unsafe_code, reason = "the block that runs is found through the core")]

use std::sync::atomic::Ordering;

use super::super::abi::{ATOMIC, READ_ONLY, VOLATILE, WRITE};
use super::super::core::Core;
use super::super::job::Job;
use super::super::shadow::{Cell, Knowledge, Record};
use super::report::{Place, by, found, stale_read, stop, verb};
use super::state::{BlockWatch, CHUNK, Shadow, Watch, lock};
use super::{Access, Races, look_of, may_look, misaligned, operates, parts, reads, unwritten};
use kforge_foundation::base::count;
use kforge_types::record::{FindingKind, Space};

/// Checks an access to the buffers, which the arena holds.
///
/// # Safety
/// As for [`super::access`].
pub(super) unsafe fn global(core: *mut Core, job: &Job, watch: &Watch, a: &Access) {
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
            // An access that begins inside and ends outside has coordinates.
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
                "{} of {} of `{}` at byte {offset}, which is not aligned to its size, at {} by {}",
                verb(a.kind),
                count(a.size, "byte"),
                region.name,
                job.at_with_callers(a.pc),
                by(core, job, a)
            );
            return stop(core, job, a, found(core, job, a, FindingKind::Misaligned, message, &at));
        }
        if a.kind & WRITE != 0 && !region.writable {
            let message = format!("{} to `{}`, which is read-only, at {}", verb(a.kind), region.name, job.at(a.pc));
            return stop(core, job, a, found(core, job, a, FindingKind::InputModified, message, &at));
        }
        let shadow = &watch.shadows[which];
        if let Some(written) = &shadow.written {
            let bytes = &written[offset..offset + a.size];
            if reads(a.kind) && unwritten(a, bytes.iter().map(|b| b.load(Ordering::Relaxed))) {
                let message = format!(
                    "element {} of `{}` is read before it is written, at {} by {}",
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

/// Checks an access to the image's globals.
///
/// # Safety
/// As for [`super::access`].
pub(super) unsafe fn image(core: *mut Core, job: &Job, watch: &Watch, a: &Access) {
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
        // PTX's volatile accesses are relaxed: they do not race with each other.
        let atomic = a.kind & (ATOMIC | VOLATILE) != 0;
        own.handover.settle(a.thread, block.epoch);
        // An atomic operation's address is acquired again after the operation: another core may have handed over between the first call and
        // the operation itself.
        own.end(a.thread);
        while let Some(address) = own.ended.pop_first() {
            acquire(watch, own, address);
        }
        if atomic {
            acquire(watch, own, a.address);
            own.pending.insert(a.thread, a.address);
            own.handover.atomic(a.thread, block.epoch, a.address, a.kind & WRITE != 0);
        }
        let told = own.handover.taken(a.thread, block.epoch).is_some();
        let hands_over = own.fences.covers(a.thread, told).filter(|_| atomic && a.kind & WRITE != 0);
        let new = Record {
            phase: watch.phase.load(Ordering::Relaxed),
            block: block.linear as u32,
            thread: a.thread,
            epoch: block.epoch,
            clock: own.clocks.of(a.thread as usize)[a.thread as usize % 32],
            // Who takes over has seen the atomic write itself, as if it came before the fence.
            release: hands_over.map_or(own.fences.passed(), |fence| fence - 1),
            pc: job.place(a.pc).unwrap_or(0),
            from: 0,
            bytes: 0,
            atomic,
            look: may_look(a),
            meetings: own.looks.meetings(a.thread),
        };
        if operates(a.kind) {
            own.looks.operated(a.thread, block.epoch, (a.address, a.size), job);
        } else if new.look && job.loaded.image.settles {
            own.looks.read(look_of(job, own, a), block.epoch);
        }
        let threads = own.handover.taken(a.thread, block.epoch);
        let knows =
            Knowledge { clocks: &own.clocks, lanes: own.clocks.of(a.thread as usize), threads, blocks: &own.knows };
        let mut races = Races::default();
        let mut stale = None;
        for (cell, from, bytes) in parts(offset, a.size, shadow.granule) {
            let mut chunk = lock(&shadow.chunks[cell / CHUNK]);
            if chunk.is_empty() {
                chunk.resize(CHUNK, Cell::default());
            }
            let new = Record { from, bytes, ..new };
            if a.kind & READ_ONLY != 0 {
                stale = stale.or_else(|| chunk[cell % CHUNK].written_since(watch.launch.load(Ordering::Relaxed), &new));
            }
            if operates(a.kind) {
                own.looks.shown(chunk[cell % CHUNK].looks(&new), &new, job);
            }
            races.check(&mut chunk[cell % CHUNK], cell * shadow.granule, new, a.kind, &knows);
        }
        if let Some(fence) = hands_over {
            release(watch, own, (block.linear as u32, fence), a.address);
        }
        // Without an order between the two, it is also a race.
        if let Some(write) = stale {
            job.notebook.add(stale_read(core, job, a, at, &write));
        }
        races.report(core, job, a, at, a.address - offset);
    }
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

/// Hands over at an address what the block knows, and what it did before a fence.
fn release(watch: &Watch, own: &BlockWatch, (block, fence): (u32, u32), address: usize) {
    let mut all = lock(&watch.handed);
    let handed = all.entry(address).or_default();
    for (block, seen) in own.knows.iter().map(|(b, s)| (*b, *s)).chain([(block, fence)]) {
        let known = handed.entry(block).or_default();
        *known = (*known).max(seen);
    }
    watch.any_handed.store(true, Ordering::Release);
}
