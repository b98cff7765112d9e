//! Stores that conflict with an earlier store to the same bytes: whether both store the same value is known only after the second was performed. Until then
//! the check waits in the core; whatever the core does next settles it. Knows bytes, not which accesses conflict.
#![expect(unsafe_code, reason = "reads what kernels stored, at addresses that were checked")]

use super::super::core::Core;
use super::super::hint::PendingFinding;
use super::super::job::Job;

/// The end of a message if both stores have the same value and nothing makes that legal.
const SAME_VALUE: &str = "; both store the same value, which is undefined in CUDA C++; it may work on hardware";

/// A store that was checked and is about to happen, and that conflicts with earlier ones.
pub(crate) struct ConflictingStore {
    /// Address, number of bytes and the bytes of the earlier stores.
    parts: Vec<(usize, u8, [u8; 16])>,
    /// Whether lanes of one warp make all of the stores in one instruction, so that equal values are no race.
    together: bool,
    /// The race, unless equal values make it none.
    race: PendingFinding,
}

impl ConflictingStore {
    /// A store whose conflicting parts (address and bytes) still hold what the earlier stores left.
    ///
    /// # Safety
    /// The parts may be read.
    pub(super) unsafe fn new(parts: &[(usize, u8)], together: bool, race: PendingFinding) -> Self {
        let held = |&(address, bytes): &(usize, u8)| {
            // SAFETY: as stated.
            (address, bytes, unsafe { held(address, bytes) })
        };
        ConflictingStore { parts: parts.iter().map(held).collect(), together, race }
    }
}

/// The bytes at an address: at most sixteen.
unsafe fn held(address: usize, bytes: u8) -> [u8; 16] {
    let mut out = [0; 16];
    for (at, byte) in out.iter_mut().enumerate().take(bytes.into()) {
        // SAFETY: as stated by the callers. Another OS thread may write the byte meanwhile: volatile, so that one value is read.
        *byte = unsafe { (address as *const u8).wrapping_add(at).read_volatile() };
    }
    out
}

/// Settles the check and the copy that wait in the core, if any: the store was performed.
///
/// # Safety
/// Called on the core's OS thread, before the block's shared memory is replaced and before any further store of the core.
pub(crate) unsafe fn settle(core: *mut Core, job: &Job) {
    // SAFETY: only this OS thread uses `core`; the parts were readable when the check began, and stay mapped for the launch.
    unsafe {
        super::copies::performed(core, job);
        let Some(store) = (*core).store.take() else { return };
        let same = store.parts.iter().all(|(address, bytes, before)| held(*address, *bytes) == *before);
        let ConflictingStore { together, mut race, .. } = *store;
        if same && together {
            return;
        }
        if same {
            race.finding.message += SAME_VALUE;
            race.same_value = true;
        }
        job.notebook.note(race);
    }
}
