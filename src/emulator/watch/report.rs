//! Describes an access: its target, its thread, and the finding. Does not decide anything.
#![expect(unsafe_code, reason = "the block that runs is found through the core")]

use super::super::abi::{ATOMIC, WRITE};
use super::super::core::Core;
use super::super::hint::{self, PendingFinding};
use super::super::job::{Job, finding};
use super::super::shadow::Record;
use super::super::{hooks, lines};
use super::Access;
use kforge_types::model::coordinates::stored;
use kforge_types::record::{Finding, FindingKind, Space};

pub(super) fn verb(kind: u32) -> &'static str {
    match (kind & WRITE != 0, kind & ATOMIC != 0) {
        (_, true) => "atomic operation",
        (true, _) => "write",
        _ => "read",
    }
}

/// What an access does to its target: the target *is read*.
fn participle(kind: u32) -> &'static str {
    match (kind & WRITE != 0, kind & ATOMIC != 0) {
        (true, true) => "updated atomically",
        (false, true) => "read atomically",
        (true, false) => "written",
        (false, false) => "read",
    }
}

/// The thread of an access: `thread 3 of block 0`.
pub(super) unsafe fn by(core: *mut Core, job: &Job, a: &Access) -> String {
    // SAFETY: as for `access`.
    let block = unsafe { (*(*core).block).linear };
    format!("thread {} of block {}", job.thread_named(a.thread), job.block_named(block))
}

pub(super) unsafe fn stop(core: *mut Core, job: &Job, access: &Access, found: Finding) {
    job.notebook.add(found);
    // SAFETY: as for `access`.
    unsafe { hooks::end(core, job, access.thread) };
}

/// A finding at the access, in the running block.
pub(super) unsafe fn found(
    core: *mut Core,
    job: &Job,
    a: &Access,
    kind: FindingKind,
    message: String,
    at: &Place<'_>,
) -> Finding {
    // SAFETY: as for `access`.
    let block = unsafe { (*(*core).block).linear };
    let mut found = finding(job, kind, message, a.pc, block, a.thread);
    found.buffer = Some(at.name.to_owned());
    found.space = Some(at.space);
    found.index = Some(at.index);
    found
}

/// The target of an access, for messages.
pub(super) struct Place<'a> {
    pub(super) name: &'a str,
    pub(super) space: Space,
    pub(super) index: i64,
    /// Extent and stride of each axis, if the target is a tensor.
    pub(super) axes: &'a [(u64, u64)],
}

impl Place<'_> {
    /// The element as text.
    pub(super) fn element(&self) -> String {
        stored(self.index, self.axes)
    }
}

/// The end of a message about a race in which one side reads.
const RACING_READ: &str =
    "; such a read is undefined in CUDA C++, even if its value is not used; it may work on hardware";

/// The thread of a recorded access, as told beside one in block `block`.
fn other(job: &Job, old: &Record, block: u64) -> String {
    if u64::from(old.block) == block & 0xffff_ffff {
        format!("thread {} of the same block", job.thread_named(old.thread))
    } else {
        format!("thread {} of block {}", job.thread_named(old.thread), job.block_named(u64::from(old.block)))
    }
}

/// A read through the read-only cache of what the launch has written.
///
/// # Safety
/// As for `access`.
pub(super) unsafe fn stale_read(core: *mut Core, job: &Job, a: &Access, at: &Place<'_>, write: &Record) -> Finding {
    // SAFETY: as for `access`.
    unsafe {
        let message = format!(
            "element {} of `{}` is read through the read-only cache at {} by {}, and was written in the same launch at {} by {}; such a read is undefined in \
             CUDA C++ and may give the value from before",
            at.element(),
            at.name,
            job.at(a.pc),
            by(core, job, a),
            lines::mark(write.pc),
            other(job, write, (*(*core).block).linear)
        );
        let mut finding = found(core, job, a, FindingKind::StaleRead, message, at);
        finding.other_line = Some(lines::pending(write.pc));
        finding
    }
}

/// A race of an access with a recorded one.
///
/// # Safety
/// As for `access`.
pub(super) unsafe fn race_found(
    core: *mut Core,
    job: &Job,
    a: &Access,
    at: &Place<'_>,
    old: &Record,
    wrote: bool,
) -> PendingFinding {
    // SAFETY: as for `access`.
    unsafe {
        let block = (*(*core).block).linear;
        let (does, did) = (participle(a.kind), if wrote { "written" } else { "read" });
        let did = if does == did { String::new() } else { format!("{did} ") };
        let other = other(job, old, block);
        let reads = !wrote || a.kind & (WRITE | ATOMIC) == 0;
        let end = if reads { RACING_READ } else { "" };
        let message = format!(
            "race on element {} of `{}`: it is {does} at {} by {} and {did}at {} by {other}, with no synchronisation between them{end}",
            at.element(),
            at.name,
            job.at(a.pc),
            by(core, job, a),
            lines::mark(old.pc)
        );
        let within = u64::from(old.block) == block & 0xffff_ffff && at.space == Space::Shared;
        let same_place = job.place(a.pc) == Some(old.pc);
        let pair = [old.thread, a.thread];
        let order = || hint::order(job.block.iter().product(), pair, same_place);
        let hint = within.then(order).flatten();
        let mut finding = found(core, job, a, FindingKind::Race, message, at);
        finding.other_line = Some(lines::pending(old.pc));
        PendingFinding { finding, hint, across: within && hint::across(pair), same_value: false }
    }
}
