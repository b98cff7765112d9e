//! Check builds: checks every access of a kernel before it happens, against where it may go, what was written, and which other threads accessed the same place.
//! Knows buffers, shared variables and globals by address; the rules of races are in `shadow`.
#![expect(unsafe_code, reason = "called from kernels with raw addresses, which it looks up and does not follow")]

use super::abi::{ATOMIC, COPY, EXCHANGE, RELAXED, SETTLES, SHARED_FROM, UNALIGNED, VOLATILE, WHOLE, WRITE};
use super::block::State;
use super::core::{Core, POLLS, park};
use super::hooks;
use super::job::{Job, finding};
use super::shadow::{Cell, Knowledge, Race, Record, same_warp};
use kforge_foundation::base::count;
use kforge_types::record::{FindingKind, Space};

mod bounds;
mod copies;
mod fences;
mod global;
mod looks;
mod meetings;
mod state;
mod shared;
mod stores;
mod report;

pub(super) use bounds::{array_type, shared_of_type};
pub(super) use copies::Copies;
use global::{global, image};
use looks::Look;
use report::{Place, by, found, race_found, stop, verb};
use shared::shared;
pub(super) use state::{BlockWatch, Watch};
pub(super) use stores::{ConflictingStore, settle};

/// The most bytes that one access of a device has.
const WIDEST: usize = 16;

/// The end of a message about an address that was not converted.
const NOT_CONVERTED: &str =
    ": a generic address of shared memory where PTX takes a shared one; convert it with `__cvta_generic_to_shared`";

/// An access that is about to happen, as the functions below pass it on.
struct Access {
    address: usize,
    size: usize,
    kind: u32,
    pc: usize,
    thread: u32,
}

/// Checks an access of the running thread. Returns if the access may happen.
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
        let continues = copies::continues(core, &access);
        if !continues {
            settle(core, job);
        }
        if (job.arena.start..job.arena.start + job.arena.bytes).contains(&address) {
            global(core, job, watch, &access);
        } else if (0..job.loaded.image.shared_window()).contains(&address.wrapping_sub((*core).tls)) {
            if kind & VOLATILE != 0 && job.loaded.image.warp_synchronous {
                hooks::step_together(core, pc);
                (*core).ctx.polls = POLLS;
            }
            shared(core, job, &access);
        } else if (*core).on_stack(address) || (*core).is_own(address) {
            (*core).copies = Copies::None;
            return;
        } else if (job.loaded.base..job.loaded.base + job.loaded.image.end as usize).contains(&address) {
            image(core, job, watch, &access);
        } else if !(*core).on_any_stack(address) {
            let what = if address < 4096 { "a null pointer" } else { "an address in no buffer" };
            // PTX takes what was not converted for a shared address.
            let unconverted = address.wrapping_add(SHARED_FROM).wrapping_sub((*core).tls);
            let hint = match (0..job.loaded.image.shared_window()).contains(&unconverted) {
                true => NOT_CONVERTED,
                false => "",
            };
            let bytes = count(size, "byte");
            // A device, and a build that is not watched, ends the kernel here.
            let message = format!("{} of {bytes} through {what} ({address:#x}) at {}{hint}", verb(kind), job.at(pc));
            stop(core, job, &access, finding(job, FindingKind::Crash, message, pc, (*(*core).block).linear, thread));
        }
        copies::checked(core, job, watch, &access, continues);
        if kind & WRITE != 0 {
            (*core).writes = (*core).writes.wrapping_add(1);
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

/// Whether the address is misaligned for the size. The compiler marks accesses through types of lesser alignment.
fn misaligned(a: &Access) -> bool {
    a.kind & UNALIGNED == 0 && a.size.is_power_of_two() && !a.address.is_multiple_of(a.size.min(WIDEST))
}

/// Whether the access depends on the old value.
fn reads(kind: u32) -> bool {
    kind & WRITE == 0 || (kind & ATOMIC != 0 && kind & EXCHANGE == 0)
}

/// Whether the access may be a look before an atomic operation: a read of a word at once, plain or, in shared memory, volatile.
fn may_look(a: &Access) -> bool {
    a.kind & (WRITE | ATOMIC | RELAXED) == 0
        && a.size <= looks::WORD
        && a.size.is_power_of_two()
        && a.address.is_multiple_of(a.size)
}

/// The access as a look.
fn look_of(job: &Job, own: &BlockWatch, a: &Access) -> Look {
    let (place, meetings) = (job.place(a.pc).unwrap_or(0), own.looks.meetings(a.thread));
    Look { place, thread: a.thread, address: a.address, size: a.size, meetings }
}

/// Whether the access is an atomic operation that decides by itself, so that a read before it may have been a look.
fn operates(kind: u32) -> bool {
    kind & (ATOMIC | WRITE | SETTLES) == ATOMIC | WRITE | SETTLES
}

/// Whether an access reads what was never written, given which of its bytes were. A load of the widest vector may use only those elements that were written: how
/// wide they are is not known. A read of a whole object need not use its padding, and not all of its members. So these count only if they read nothing that was
/// written. A narrower load may be that of one element, and an atomic operation is that of one. A word of a copy to shared memory never counts: what uses it does.
fn unwritten(a: &Access, mut written: impl Iterator<Item = bool>) -> bool {
    if a.kind & (COPY | WHOLE) == COPY {
        return false;
    }
    match a.kind & WHOLE != 0 || a.size == WIDEST && a.kind & (ATOMIC | UNALIGNED) == 0 {
        true => !written.any(|byte| byte),
        false => !written.all(|byte| byte),
    }
}

/// The cells that an access touches, and the bytes of each.
fn parts(offset: usize, size: usize, granule: usize) -> impl Iterator<Item = (usize, u8, u8)> {
    let end = offset + size;
    (offset / granule..end.div_ceil(granule)).map(move |cell| {
        let from = offset.max(cell * granule);
        let to = end.min((cell + 1) * granule);
        (cell, (from - cell * granule) as u8, (to - from) as u8)
    })
}

/// The races of an access, over the cells that it touches.
#[derive(Default)]
struct Races {
    /// The first that no value can decide, of two warps rather than of one.
    certain: Option<(Record, bool)>,
    /// The first of two stores to the same bytes, whether all of them are made in one instruction, and where: offset and bytes.
    stores: Option<(Record, bool)>,
    parts: Vec<(usize, u8)>,
    /// Races of a word's read with an atomic write, and whether the earlier access is the write.
    looks: Vec<(Record, bool)>,
}

impl Races {
    /// Checks and records an access to a cell that begins at offset `start`.
    fn check(&mut self, cell: &mut Cell, start: usize, new: Record, kind: u32, knows: &Knowledge<'_>) {
        let race = if kind & WRITE != 0 { cell.write(new, knows) } else { cell.read(new, knows).map(Race::Write) };
        match race {
            None => {}
            Some(Race::Read(old, other)) => {
                for old in [Some(old), other].into_iter().flatten() {
                    match new.atomic && old.look {
                        true => self.looks.push((old, false)),
                        false => self.certain(&new, old, false),
                    }
                }
            }
            Some(Race::Write(old)) if new.look && old.atomic => self.looks.push((old, true)),
            Some(Race::Write(old)) => self.certain(&new, old, true),
            Some(Race::Stores { old, together }) => {
                let (first, all) = self.stores.unwrap_or((old, true));
                // Named: the first that is a race whatever the values.
                self.stores = Some((if all && !together { old } else { first }, all && together));
                self.parts.push((start + usize::from(new.from), new.bytes));
            }
        }
    }

    fn certain(&mut self, new: &Record, old: Record, wrote: bool) {
        match &self.certain {
            Some((known, _)) if !same_warp(known, new) || same_warp(&old, new) => {}
            _ => self.certain = Some((old, wrote)),
        }
    }

    /// Reports what was found. Offsets begin at address `base`.
    ///
    /// # Safety
    /// As for [`access`]; the access is inside what may be read.
    unsafe fn report(mut self, core: *mut Core, job: &Job, a: &Access, at: &Place<'_>, base: usize) {
        // SAFETY: as stated.
        unsafe {
            for (old, wrote) in &self.looks {
                let block = &mut *(*core).block;
                let Some(own) = &mut block.watch else { continue };
                let read = look_of(job, own, a);
                let read = if *wrote {
                    read
                } else {
                    Look { place: old.pc, thread: old.thread, meetings: old.meetings, ..read }
                };
                let here = *wrote || u64::from(old.block) == block.linear & 0xffff_ffff;
                let place = read.place;
                if own.looks.asks(place, here.then_some(read), block.epoch) {
                    job.notebook.look(place, race_found(core, job, a, at, old, *wrote));
                }
            }
            if let Some((old, wrote)) = self.certain {
                job.notebook.note(race_found(core, job, a, at, &old, wrote));
            } else if let Some((old, together)) = self.stores {
                self.parts.iter_mut().for_each(|(offset, _)| *offset += base);
                let race = race_found(core, job, a, at, &old, true);
                (*core).store = Some(Box::new(ConflictingStore::new(&self.parts, together, race)));
            }
        }
    }
}

/// Handles an access through a pointer whose alignment does not fit its type.
///
/// # Safety
/// As for [`access`].
pub(super) unsafe fn crooked(core: *mut Core, address: usize, pc: usize) {
    // SAFETY: as stated.
    unsafe {
        // A device accesses at most 16 bytes at once, whatever a type is declared to be aligned to.
        if address.is_multiple_of(WIDEST) {
            return;
        }
        let job = &*(*core).job;
        let thread = (*core).ctx.linear;
        let a = Access { address, size: 1, kind: 0, pc, thread };
        let message = |name: &str, byte: usize| {
            format!(
                "an access to byte {byte} of `{name}` is not aligned to its size, at {} by {}",
                job.at_with_callers(pc),
                by(core, job, &a)
            )
        };
        if let Some(region) = job.arena.nearest(address) {
            let byte = address.wrapping_sub(region.start);
            // An address before the buffer is out of bounds, which the access itself shows.
            if address < region.start || byte >= region.bytes {
                return;
            }
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
        let image = (job.loaded.base..job.loaded.base + job.loaded.image.end as usize).contains(&address);
        let offset = address.wrapping_sub(job.loaded.base) as u64;
        if let Some(variable) = job.loaded.image.global_at(offset).filter(|_| image) {
            let byte = (offset - variable.start) as usize;
            let at = Place { name: &variable.name, space: Space::Global, index: byte as i64, axes: &[] };
            stop(core, job, &a, found(core, job, &a, FindingKind::Misaligned, message(&variable.name, byte), &at));
        }
        // The check of the access itself reports anything else. A thread's own variables are not checked: how far a device aligns them is not known here.
    }
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
