//! The functions that kernels call: each implements one name of the stub, and finds the running thread through the core of its OS thread.
//! Each gets its return address as the sixth argument. They run on coroutines: a function that waits yields to the scheduler.
#![expect(unsafe_code, reason = "called by compiled kernels through a table of addresses")]

use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;
use std::time::Instant;

use super::abi::{CALLS, Context, PTX};
use super::block::State;
use super::core::{self, Core, POLLS, park};
use super::error::LaunchError;
use super::job::{Job, finding};
use super::warp::{COLLECT, Pending, lanes};
use super::watch;
use kforge_harness::message::Unemulated;
use kforge_types::record::FindingKind;

/// The table of calls, in the order of [`CALLS`].
pub(super) fn table() -> [*const c_void; CALLS.len()] {
    [
        this as *const c_void,
        barrier as *const c_void,
        warp as *const c_void,
        converge as *const c_void,
        fence as *const c_void,
        poll as *const c_void,
        print as *const c_void,
        assert_failed as *const c_void,
        trap as *const c_void,
        not_emulated as *const c_void,
        access as *const c_void,
        out_of_bounds as *const c_void,
        grid_sync as *const c_void,
        clock as *const c_void,
        crooked as *const c_void,
        bounds_exceeded as *const c_void,
    ]
}

/// The running thread's core, launch and linear index.
///
/// # Safety
/// Called on a coroutine during a launch.
unsafe fn here<'a>() -> (*mut Core, &'a Job, u32) {
    let core = core::current();
    // SAFETY: as stated: the core is entered and the launch under way.
    unsafe { (core, &*(*core).job, (*core).ctx.linear) }
}

/// Ends the launch: the running thread never continues.
///
/// # Safety
/// Called on a coroutine of `core`, in thread `thread`.
pub(super) unsafe fn end(core: *mut Core, job: &Job, thread: u32) {
    job.end();
    // SAFETY: as stated.
    unsafe {
        (&mut (*(*core).block).threads)[thread as usize].state = State::Dead;
        loop {
            park(core, thread);
        }
    }
}

unsafe extern "C" fn this() -> *mut Context {
    core::current().cast()
}

unsafe extern "C" fn barrier(kind: u32, site: u32, value: i32, _: u64, _: u64, pc: usize) -> i32 {
    // SAFETY: called by a kernel; the block is not touched across the switch.
    unsafe {
        let (core, job, thread) = here();
        let exited = (*core).ctx.exited;
        let block = &mut *(*core).block;
        if block.reach_barrier(thread, kind, site, value, pc, (*core).ctx.count - exited) {
            if !block.release_barrier(job, exited, Some(thread)) {
                end(core, job, thread);
            }
        } else {
            park(core, thread);
        }
        (*(*core).block).barrier.result
    }
}

unsafe extern "C" fn warp(kind: u32, mask: u32, value: u64, arg: u32, _: u64, pc: usize) -> u64 {
    // SAFETY: as for `barrier`.
    unsafe {
        let (core, job, thread) = here();
        let block = &mut *(*core).block;
        let (w, lane) = (thread as usize / 32, thread as usize % 32);
        if mask >> lane & 1 == 0 {
            let message = format!(
                "lane {lane} calls the warp operation at {} with mask {mask:#010x}, which excludes it",
                job.at(pc)
            );
            job.notebook.add(finding(job, FindingKind::WarpMask, message, pc, block.linear, thread));
            end(core, job, thread);
        }
        let warp = &mut block.warps[w];
        warp.lanes[lane] = Pending { kind, mask, arg, value, pc };
        warp.waiting |= 1 << lane;
        // Not before every lane of the mask has started: those not yet started have not exited either.
        if !block.try_warp(job, w, lane, Some(thread)) {
            let at = &mut block.threads[thread as usize];
            at.state = State::Warp;
            at.pc = pc;
            park(core, thread);
        }
        (&(*(*core).block).threads)[thread as usize].result
    }
}

#[repr(C)]
struct Collect {
    with: unsafe extern "C" fn(*mut u64, u32),
    mine: u64,
}

/// Runs the function that all lanes of a collecting operation named, on the values that they handed over.
pub(super) fn collect(waiting: &[Pending; 32], present: u32) {
    let mut values = [0u64; 32];
    let mut with = None;
    for lane in lanes(present) {
        debug_assert_eq!(waiting[lane].kind, COLLECT, "only collecting lanes come here");
        // SAFETY: each lane waits inside the call that owns its request.
        let request = unsafe { &*(waiting[lane].value as *const Collect) };
        values[lane] = request.mine;
        with.get_or_insert(request.with);
    }
    if let Some(with) = with {
        // SAFETY: a function of the binary; the addresses are those of variables of waiting lanes.
        unsafe {
            let core = core::current();
            (*core).collecting = true;
            with(values.as_mut_ptr(), present);
            (*core).collecting = false;
        }
    }
}

unsafe extern "C" fn converge(site: u32, _: u64, _: u64, _: u64, _: u64, pc: usize) -> u32 {
    // SAFETY: as for `barrier`.
    unsafe {
        let (core, _, thread) = here();
        let at = &mut (&mut (*(*core).block).threads)[thread as usize];
        (at.state, at.site, at.pc) = (State::Converge, site, pc);
        park(core, thread);
        (&(*(*core).block).threads)[thread as usize].result as u32
    }
}

/// Waits until no other lane of the running thread's warp can reach the same place. The lanes that are there then continue in step.
///
/// # Safety
/// Called on a coroutine of `core`.
pub(super) unsafe fn step_together(core: *mut Core, pc: usize) {
    // SAFETY: as stated; the block is not touched across the switch.
    unsafe {
        let thread = (*core).ctx.linear;
        let at = &mut (&mut (*(*core).block).threads)[thread as usize];
        (at.state, at.site, at.pc) = (State::Step, pc as u32, pc);
        park(core, thread);
    }
}

unsafe extern "C" fn fence(scope: u32, _: u64, _: u64, _: u64, _: u64, _pc: usize) {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    // SAFETY: as for `barrier`.
    unsafe {
        let (core, _, thread) = here();
        let block = &mut *(*core).block;
        if let Some(watch) = &mut block.watch {
            watch.fence(thread, block.epoch, scope == 0);
        }
    }
}

/// A thread polls. `unchanged`: by an atomic operation that was counted as a write and changed nothing.
unsafe extern "C" fn poll(unchanged: u32, _: u64, _: u64, _: u64, _: u64, pc: usize) {
    // SAFETY: as for `barrier`.
    unsafe {
        let (core, _, thread) = here();
        (*core).ctx.polls = POLLS;
        (*core).writes = (*core).writes.wrapping_sub(u64::from(unchanged));
        let at = &mut (&mut (*(*core).block).threads)[thread as usize];
        (at.state, at.pc) = (State::Poll, pc);
        park(core, thread);
    }
}

unsafe extern "C" fn print(text: *const u8, size: usize) {
    // SAFETY: the header passes a text on the caller's stack and its length.
    unsafe {
        let (_, job, _) = here();
        job.notebook.print(std::slice::from_raw_parts(text, size));
    }
}

unsafe fn text<'a>(at: *const c_char) -> std::borrow::Cow<'a, str> {
    // SAFETY: the header passes string literals only.
    unsafe { CStr::from_ptr(at) }.to_string_lossy()
}

unsafe extern "C" fn assert_failed(condition: *const c_char, _: u64, _: u64, _: u64, _: u64, pc: usize) {
    // SAFETY: as for `barrier`.
    unsafe {
        let (core, job, thread) = here();
        let message = format!("assertion `{}` failed at {}", text(condition), job.at(pc));
        job.notebook.add(finding(job, FindingKind::Assertion, message, pc, (*(*core).block).linear, thread));
        end(core, job, thread);
    }
}

unsafe extern "C" fn trap(_: u64, _: u64, _: u64, _: u64, _: u64, pc: usize) {
    // SAFETY: as for `barrier`.
    unsafe {
        let (core, job, thread) = here();
        let message = format!("`__trap` at {}", job.at(pc));
        job.notebook.add(finding(job, FindingKind::Trap, message, pc, (*(*core).block).linear, thread));
        end(core, job, thread);
    }
}

unsafe extern "C" fn not_emulated(what: *const c_char, _: u64, _: u64, _: u64, _: u64, pc: usize) -> i32 {
    // SAFETY: as for `barrier`.
    unsafe {
        let (core, job, thread) = here();
        let what = text(what);
        if what.strip_prefix(PTX).is_some_and(is_hint) {
            return 0;
        }
        // For inline PTX, the name is the operation: the first word of the first string.
        let name = match what.strip_prefix(PTX) {
            Some(ptx) => operation(ptx),
            None => &what,
        };
        job.notebook.not_emulated(Unemulated::Construct(name.to_owned()), format!("{name} at {}", job.at(pc)));
        end(core, job, thread);
    }
    0
}

/// Whether a statement of inline PTX is one instruction that computes nothing: a hint to the caches, or a wait for an earlier launch (all have ended).
fn is_hint(ptx: &str) -> bool {
    let hint =
        ["prefetch", "discard", "applypriority", "griddepcontrol"].iter().any(|name| operation(ptx).starts_with(name));
    hint && ptx.matches(';').count() <= 1
}

/// The operation of an inline PTX statement: `mma.sync` of `"{ mma.sync.aligned ..."`.
pub(super) fn operation(ptx: &str) -> &str {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':');
    let mut words = ptx.split(|c: char| !is_word(c)).filter(|w| w.starts_with(|c: char| c.is_ascii_alphabetic()));
    // A register declaration or an escape is not the operation.
    words.find(|w| w.len() > 1 && !w.starts_with("reg") && !w.contains(':')).unwrap_or("inline PTX")
}

unsafe extern "C" fn access(address: usize, size: usize, kind: u32, _: u64, _: u64, pc: usize) {
    // SAFETY: as for `barrier`.
    unsafe {
        let core = core::current();
        if !(*core).job.is_null() && (*core).running != core::NONE {
            watch::access(core, address, size, kind, pc);
        }
    }
}

unsafe extern "C" fn out_of_bounds(data: *const c_void, index: u64, _: u64, _: u64, _: u64, pc: usize) {
    // SAFETY: as for `barrier`; `data` points to what the compiler lays out for its bounds checks.
    unsafe {
        let (core, job, thread) = here();
        let array = watch::array_type(data);
        let index = index.cast_signed();
        let message = format!("index {index} of an array of type `{array}` at {}", job.at(pc));
        let mut found = finding(job, FindingKind::OutOfBounds, message, pc, (*(*core).block).linear, thread);
        found.index = Some(index);
        if let Some(name) = watch::shared_of_type(job, &array) {
            (found.buffer, found.space) = (Some(name.to_owned()), Some(kforge_types::record::Space::Shared));
        }
        job.notebook.add(found);
        end(core, job, thread);
    }
}

unsafe extern "C" fn crooked(_data: *const c_void, address: usize, _: u64, _: u64, _: u64, pc: usize) {
    // SAFETY: as for `barrier`.
    unsafe { watch::crooked(core::current(), address, pc) };
}

unsafe extern "C" fn bounds_exceeded(most: u32) {
    // SAFETY: as for `barrier`.
    unsafe {
        let (core, job, thread) = here();
        let why = LaunchError::Bounds { entry: job.name.clone(), threads: job.block.iter().product(), most };
        job.notebook.add(why.finding());
        end(core, job, thread);
    }
}

unsafe extern "C" fn grid_sync(_: u64, _: u64, _: u64, _: u64, _: u64, pc: usize) {
    // SAFETY: as for `barrier`.
    unsafe {
        let (core, job, thread) = here();
        let block = &mut *(*core).block;
        if !job.cooperative {
            let message = format!("grid synchronisation at {} in a launch that is not cooperative", job.at(pc));
            job.notebook.add(finding(job, FindingKind::LaunchRefused, message, pc, block.linear, thread));
            end(core, job, thread);
        }
        block.at_grid += 1;
        let at = &mut block.threads[thread as usize];
        (at.state, at.pc) = (State::Grid, pc);
        park(core, thread);
        (&mut (*(*core).block).threads)[thread as usize].state = State::Running;
    }
}

unsafe extern "C" fn clock(_which: u32) -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inline_ptx_is_named_by_its_operation() {
        assert_eq!(operation(r#""mma.sync.aligned.m16n8k16 {%0}, {%1};" : "=f"(x)"#), "mma.sync.aligned.m16n8k16");
        assert_eq!(operation(r#""{ .reg .pred p; setp.ne.b32 p, %0, 0; }""#), "setp.ne.b32");
        assert_eq!(operation(r#""bar.sync 1, 64;""#), "bar.sync");
        assert!(
            is_hint(r#""griddepcontrol.wait;" ::: "memory""#) && is_hint(r#""prefetch.global.L2 [%0];" :: "l"(p)"#)
        );
        assert!(!is_hint(r#""prefetch.global.L2 [%0]; st.global.u32 [%0], 1;""#) && !is_hint(r#""bar.sync 0;""#));
    }
}
