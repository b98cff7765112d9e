//! Copies of whole objects: they also read and write padding and members without a value, which is no mistake. So a byte that was never written has not been
//! written in the copy either, and a later use of it is reported. Knows bytes and whether they were written; reports nothing.
//!
//! | copy | how it is seen |
//! |---|---|
//! | `memcpy`, `memmove`, and copies of structs as clang++ compiles them | one call with both addresses ([`COPY`]) |
//! | copies of our headers, such as `memcpy_async` | the same, by words |
//! | an assignment between structs as g++ compiles it | it checks the write, then the read, then copies. So the target is as before at the read, and equal to the source afterwards |
//! | a struct in a local variable that is stored later | not at all: every byte counts as written |
#![expect(unsafe_code, reason = "reads what kernels stored, at addresses that were checked")]

use std::sync::atomic::Ordering;

use super::super::abi::{ATOMIC, COPY, RELAXED, VOLATILE, WHOLE, WRITE};
use super::super::core::Core;
use super::super::job::Job;
use super::state::Watch;
use super::{Access, WIDEST};

/// The most bytes of an object that are compared.
const MOST_COMPARED: usize = 1024;

/// What may be a copy that is under way.
#[derive(Debug, Default)]
pub(crate) enum Copies {
    #[default]
    None,
    /// The first half of a call with both addresses: which bytes were written, if not all of them were.
    Read { thread: u32, size: usize, written: Vec<bool> },
    /// A write of a whole object is checked: the bytes that it held.
    Write { thread: u32, address: usize, before: Vec<u8> },
    /// A read of a whole object of the same size is checked right after.
    Both { to: usize, from: usize, before: Vec<u8> },
}

/// Whether an access reads or writes a whole object.
fn is_whole(a: &Access) -> bool {
    a.kind & (ATOMIC | VOLATILE | RELAXED) == 0 && (a.kind & (WHOLE | COPY) != 0 || a.size == WIDEST)
}

/// Whether the access is the second check of an assignment whose first check was the last access: nothing was stored yet.
///
/// # Safety
/// As for [`super::access`].
pub(super) unsafe fn continues(core: *mut Core, a: &Access) -> bool {
    // SAFETY: as stated; what a check remembers stays mapped for the launch.
    unsafe {
        let Copies::Write { thread, address, before } = &(*core).copies else { return false };
        *thread == a.thread
            && a.kind & WRITE == 0
            && is_whole(a)
            && before.len() == a.size
            && bytes(*address, before.len()) == *before
    }
}

/// The access was checked. Carries over what was written if it ends a copy with both addresses.
///
/// # Safety
/// As for [`super::access`]; the access may happen.
pub(super) unsafe fn checked(core: *mut Core, job: &Job, watch: &Watch, a: &Access, continues: bool) {
    // SAFETY: as stated.
    unsafe {
        let copies = &mut (*core).copies;
        if !is_whole(a) {
            if !matches!(copies, Copies::None) {
                *copies = Copies::None;
            }
            return;
        }
        let writes = a.kind & WRITE != 0;
        *copies = match std::mem::take(copies) {
            Copies::Write { address, before, .. } if continues => Copies::Both { to: address, from: a.address, before },
            Copies::Read { thread, size, written } if a.kind & COPY != 0 && writes => {
                if (thread, size) == (a.thread, a.size) {
                    unwrite(core, job, watch, a.address, written.iter().map(|w| !w));
                }
                return;
            }
            _ if a.kind & COPY != 0 && !writes => match written(core, job, watch, a.address, a.size) {
                Some(written) => Copies::Read { thread: a.thread, size: a.size, written },
                None => Copies::None,
            },
            _ if a.kind & COPY == 0 && writes && a.size <= MOST_COMPARED && holds(core, job, a.address, a.size) => {
                Copies::Write { thread: a.thread, address: a.address, before: bytes(a.address, a.size) }
            }
            _ => Copies::None,
        };
    }
}

/// An assignment that waits in the core, if any, was performed: carries over what was written.
///
/// # Safety
/// As for [`super::settle`].
pub(super) unsafe fn performed(core: *mut Core, job: &Job) {
    // SAFETY: as stated.
    unsafe {
        let copies = &mut (*core).copies;
        if !matches!(copies, Copies::Both { .. }) {
            return;
        }
        let Copies::Both { to, from, before } = std::mem::take(copies) else { return };
        let Some(watch) = &job.watch else { return };
        let Some(written) = written(core, job, watch, from, before.len()) else { return };
        let now = bytes(from, before.len());
        if now != before && bytes(to, before.len()) == now {
            unwrite(core, job, watch, to, written.iter().map(|w| !w));
        }
    }
}

/// Bytes that another OS thread may write meanwhile.
unsafe fn bytes(address: usize, size: usize) -> Vec<u8> {
    // SAFETY: as stated by the callers: they were checked.
    (0..size).map(|at| unsafe { (address as *const u8).wrapping_add(at).read_volatile() }).collect()
}

/// Whether each of some bytes was written; none if all were, or if it is not known.
unsafe fn written(core: *mut Core, job: &Job, watch: &Watch, address: usize, size: usize) -> Option<Vec<bool>> {
    // SAFETY: as for `checked`.
    let written: Vec<bool> = unsafe {
        match place(core, job, address)? {
            Where::Region(region, offset) => {
                let bytes = watch.shadows[region].written.as_ref()?.get(offset..offset + size)?;
                bytes.iter().map(|b| b.load(Ordering::Relaxed)).collect()
            }
            Where::Shared(offset) => (&*(*core).block).watch.as_ref()?.written.get(offset..offset + size)?.to_vec(),
        }
    };
    (!written.iter().all(|w| *w)).then_some(written)
}

/// Some of the bytes that were just written have no value.
unsafe fn unwrite(core: *mut Core, job: &Job, watch: &Watch, address: usize, none: impl Iterator<Item = bool>) {
    let none = none.enumerate().filter(|(_, none)| *none).map(|(at, _)| at);
    // SAFETY: as for `checked`.
    unsafe {
        match place(core, job, address) {
            Some(Where::Region(region, offset)) => {
                let Some(bytes) = &watch.shadows[region].written else { return };
                none.filter_map(|at| bytes.get(offset + at)).for_each(|byte| byte.store(false, Ordering::Relaxed));
            }
            Some(Where::Shared(offset)) => {
                let Some(own) = &mut (&mut *(*core).block).watch else { return };
                for at in none {
                    if let Some(byte) = own.written.get_mut(offset + at) {
                        *byte = false;
                    }
                }
            }
            None => {}
        }
    }
}

/// Whether the bytes lie in one region, or in the running block's shared memory.
unsafe fn holds(core: *mut Core, job: &Job, address: usize, size: usize) -> bool {
    // SAFETY: as for `checked`.
    unsafe {
        match place(core, job, address) {
            Some(Where::Region(region, offset)) => offset + size <= job.arena.regions[region].bytes,
            Some(Where::Shared(offset)) => {
                (&*(*core).block).watch.as_ref().is_some_and(|own| offset + size <= own.written.len())
            }
            None => false,
        }
    }
}

/// Memory whose written bytes are known.
enum Where {
    /// A region of the arena, and the offset in it.
    Region(usize, usize),
    /// The offset in the running block's shared memory.
    Shared(usize),
}

unsafe fn place(core: *mut Core, job: &Job, address: usize) -> Option<Where> {
    if (job.arena.start..job.arena.start + job.arena.bytes).contains(&address) {
        let region = job.arena.regions.partition_point(|r| r.start <= address).checked_sub(1)?;
        return Some(Where::Region(region, address - job.arena.regions[region].start));
    }
    // SAFETY: as for `checked`.
    let offset = address.wrapping_sub(unsafe { (*core).tls });
    (0..job.loaded.image.shared_window()).contains(&offset).then_some(Where::Shared(offset))
}
