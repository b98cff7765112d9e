//! Accesses to a block's shared memory, by variable. Knows the threads of the running block, and no other block.
#![expect(unsafe_code, reason = "the block that runs is found through the core")]

use super::super::abi::{ATOMIC, RELAXED, WRITE};
use super::super::core::Core;
use super::super::job::Job;
use super::super::shadow::{Knowledge, Record};
use super::report::{Place, by, found, stop, verb};
use super::{Access, Races, look_of, may_look, misaligned, operates, parts, reads, unwritten};
use kforge_foundation::base::count;
use kforge_types::record::{FindingKind, Space};

/// Checks an access to the shared memory of the running block.
///
/// # Safety
/// As for [`super::access`].
pub(super) unsafe fn shared(core: *mut Core, job: &Job, a: &Access) {
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
                "{} of {} of `{name}` at byte {}, which is not aligned to its size, at {} by {}",
                verb(a.kind),
                count(a.size, "byte"),
                offset - start,
                job.at_with_callers(a.pc),
                by(core, job, a)
            );
            return stop(core, job, a, found(core, job, a, FindingKind::Misaligned, message, &at));
        }
        let block = &mut *(*core).block;
        let Some(own) = &mut block.watch else { return };
        let written = &mut own.written[offset..offset + a.size];
        let unwritten = reads(a.kind) && unwritten(a, written.iter().copied());
        if a.kind & WRITE != 0 {
            written.fill(true);
        }
        let atomic = a.kind & (ATOMIC | RELAXED) != 0;
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
            atomic,
            look: may_look(a),
            meetings: own.looks.meetings(a.thread),
        };
        if a.size < own.granule && a.size.is_power_of_two() {
            own.refine(a.size);
        }
        own.handover.settle(a.thread, block.epoch);
        if atomic {
            own.handover.atomic(a.thread, block.epoch, a.address, a.kind & WRITE != 0);
        }
        if operates(a.kind) {
            own.looks.operated(a.thread, block.epoch, (a.address, a.size), job);
        } else if new.look && job.loaded.image.settles {
            own.looks.read(look_of(job, own, a), block.epoch);
        }
        let threads = own.handover.taken(a.thread, block.epoch);
        let knows =
            Knowledge { clocks: &own.clocks, lanes: own.clocks.of(a.thread as usize), threads, blocks: &own.knows };
        let mut races = Races::default();
        for (cell, from, bytes) in parts(offset, a.size, own.granule) {
            let new = Record { from, bytes, ..new };
            if operates(a.kind) {
                own.looks.shown(own.cells[cell].looks(&new), &new, job);
            }
            races.check(&mut own.cells[cell], cell * own.granule, new, a.kind, &knows);
        }
        if unwritten {
            let message = format!(
                "element {} of `{name}` in shared memory is read before it is written, at {} by {}",
                at.index,
                job.at(a.pc),
                by(core, job, a)
            );
            job.notebook.add(found(core, job, a, FindingKind::Uninitialised, message, &at));
        }
        races.report(core, job, a, &at, (*core).tls);
    }
}
