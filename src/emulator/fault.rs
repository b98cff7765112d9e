//! Handles signals that kernels raise: a bad address, a division by zero, `abort`. The handler runs on its own stack. It then enters a landing function in the
//! faulting thread, so that the launch ends like any other and the process can report what happened before it exits.
#![expect(unsafe_code, reason = "installs signal handlers and redirects the interrupted thread")]

use std::mem;
use std::ptr;
use std::sync::Once;

use super::core::{self, Core};
use super::hooks;
use super::job::finding;
use super::stack::STACK_BYTES;
use kforge_harness::message::Unemulated;
use kforge_types::model::coordinates::stored;
use kforge_types::record::{FindingKind, Space};

const SIGNALS: [i32; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT];

/// The signal that asks a long-running thread to let others run.
const PREEMPT: i32 = libc::SIGURG;
static ONCE_PREEMPT: Once = Once::new();

/// An OS thread that can be preempted; kernels may spin on plain or volatile memory that another thread has yet to write.
#[derive(Clone, Copy)]
pub(super) struct Preemptible(libc::pthread_t);

impl Preemptible {
    /// The calling OS thread.
    pub(super) fn here() -> Self {
        // SAFETY: always succeeds.
        Preemptible(unsafe { libc::pthread_self() })
    }

    /// Asks the running thread of this OS thread to let others of its block run, if it is in a kernel's code.
    ///
    /// # Safety
    /// The OS thread has not ended.
    pub(super) unsafe fn ask(self) {
        // SAFETY: as stated.
        unsafe { libc::pthread_kill(self.0, PREEMPT) };
    }
}

unsafe extern "C" fn preempt(_signal: i32, _info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid context. Only a thread that was interrupted in the binary's own code gives way, so nothing of ours is half done. Its
    // registers stay on its own stack until it is resumed and returns from here.
    unsafe {
        let core = core::current();
        if core.is_null() || (*core).running == core::NONE || (*core).job.is_null() || (*core).collecting {
            return;
        }
        // No thread comes between a store and the look at what it stored.
        if (*core).store.is_some() {
            return;
        }
        let job = &*(*core).job;
        let pc = (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_RIP as usize] as usize;
        if !(job.loaded.base..job.loaded.base + job.loaded.image.end as usize).contains(&pc) {
            return;
        }
        (*(*core).block).preempted = true;
        let Some(thread) = (*core).stoppable() else { return };
        let at = &mut (&mut (*(*core).block).threads)[thread as usize];
        (at.state, at.pc) = (super::block::State::Poll, pc + 1);
        core::park(core, thread);
    }
}

/// The alternate signal stack of one OS thread; released when dropped.
pub(super) struct AlternateStack(Vec<u8>);

/// Installs the handlers of the process, once, and an alternate signal stack for the calling OS thread.
pub(super) fn guard() -> AlternateStack {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for signal in SIGNALS {
            // SAFETY: `handle` only touches this thread's core, or restores the default action.
            unsafe {
                let mut action: libc::sigaction = mem::zeroed();
                action.sa_sigaction = handle as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                libc::sigaction(signal, &action, ptr::null_mut());
            }
        }
    });
    ONCE_PREEMPT.call_once(|| {
        // SAFETY: `preempt` gives way only from inside a kernel. It does not run on the alternate stack, where only one thread could stop.
        unsafe {
            let mut action: libc::sigaction = mem::zeroed();
            action.sa_sigaction = preempt as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER | libc::SA_RESTART;
            libc::sigaction(PREEMPT, &action, ptr::null_mut());
        }
    });
    let mut room = vec![0u8; 64 * 1024];
    let stack = libc::stack_t { ss_sp: room.as_mut_ptr().cast(), ss_flags: 0, ss_size: room.len() };
    // SAFETY: `room` lives as long as the guard, which removes the stack before `room` is freed.
    unsafe { libc::sigaltstack(&stack, ptr::null_mut()) };
    AlternateStack(room)
}

impl Drop for AlternateStack {
    fn drop(&mut self) {
        let none = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: self.0.len() };
        // SAFETY: the calling OS thread set this stack and is not on it.
        unsafe { libc::sigaltstack(&none, ptr::null_mut()) };
    }
}

unsafe extern "C" fn handle(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes valid pointers; the core belongs to this OS thread, and its coroutine is stopped in this very handler.
    unsafe {
        let core = core::current();
        if core.is_null() || (*core).running == core::NONE || (*core).fault.signal != 0 {
            // Not a kernel's signal: restores the default action.
            libc::signal(signal, libc::SIG_DFL);
            return;
        }
        let context = &mut *context.cast::<libc::ucontext_t>();
        let registers = &mut context.uc_mcontext.gregs;
        (*core).fault = core::Fault {
            signal,
            address: if signal == libc::SIGSEGV || signal == libc::SIGBUS { (*info).si_addr() as usize } else { 0 },
            pc: registers[libc::REG_RIP as usize] as usize,
        };
        // As if the faulting instruction had called the landing function, on a stack that cannot have overflowed.
        let top = (*core).landing_stack.range().1 - 4096;
        registers[libc::REG_RIP as usize] = land as *const () as i64;
        registers[libc::REG_RSP as usize] = (top & !15) as i64 - 8;
        registers[libc::REG_RDI as usize] = core as i64;
    }
}

unsafe extern "C" fn land(core: *mut Core) {
    // SAFETY: entered from `handle` on this core's OS thread, during a launch; it gives way and is never resumed.
    unsafe {
        let job = &*(*core).job;
        let thread = (*core).faulting();
        let fault = (*core).fault;
        // Places are return addresses: that of the instruction after.
        let pc = fault.pc + 1;
        if (*core).overflowed(fault.address) {
            let what = format!("a thread that needs more than {STACK_BYTES} bytes of stack at {}", job.at(pc));
            job.notebook.not_emulated(Unemulated::Stack, what);
        } else {
            let name = match fault.signal {
                libc::SIGSEGV | libc::SIGBUS => "access to a bad address",
                libc::SIGFPE => "division by zero",
                libc::SIGILL => "illegal instruction",
                _ => "abort",
            };
            let block = (*(*core).block).linear;
            let near = job.arena.nearest(fault.address).filter(|_| fault.address != 0);
            let mut found = match near {
                Some(region) => {
                    let offset = fault.address as i64 - region.start as i64;
                    let index = offset.div_euclid(region.element as i64);
                    let inside = (0..region.bytes as i64).contains(&offset);
                    let (kind, what) = if inside {
                        (FindingKind::InputModified, "write to the read-only buffer")
                    } else {
                        (FindingKind::OutOfBounds, "access outside the buffer")
                    };
                    let who = format!("thread {} of block {}", job.thread_named(thread), job.block_named(block));
                    let element = stored(index, &region.axes);
                    let message = format!("{what} `{}` at element {element}, at {} by {who}", region.name, job.at(pc));
                    let mut found = finding(job, kind, message, pc, block, thread);
                    (found.buffer, found.index, found.space) =
                        (Some(region.name.clone()), Some(index), Some(Space::Global));
                    found
                }
                None => {
                    let message = if fault.signal == libc::SIGSEGV || fault.signal == libc::SIGBUS {
                        format!("{name} {:#x} at {}", fault.address, job.at(pc))
                    } else {
                        format!("{name} at {}", job.at(pc))
                    };
                    let kind = if fault.signal == libc::SIGABRT { FindingKind::Trap } else { FindingKind::Crash };
                    finding(job, kind, message, pc, block, thread)
                }
            };
            found.count = 1;
            job.notebook.add(found);
        }
        job.crashed.store(true, std::sync::atomic::Ordering::Relaxed);
        hooks::end(core, job, thread);
    }
}
