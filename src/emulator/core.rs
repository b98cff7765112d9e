//! One OS thread of the runner: a pool of coroutines, and how threads of a block take turns on them. [`blocks`] decides which block runs.
//!
//! A coroutine enters the entry's trampoline, which takes threads of the block one after another. A thread that never waits is one iteration of a loop. Only a
//! thread that waits keeps its coroutine; the next thread then starts on another coroutine. Threads never change their OS thread.
#![expect(
    unsafe_code,
    reason = "kernels call back into a scheduler that holds raw pointers to itself across coroutine switches"
)]

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
use std::cell::Cell;
use std::ptr;

use super::abi::Context;
use super::block::{Block, State};
use super::fiber::{Fiber, switch};
use super::job::Job;
use super::stack::ThreadStack;
use super::watch::{ConflictingStore, Copies};

mod blocks;

pub(super) use blocks::run_job;

/// No thread, no coroutine.
pub(super) const NONE: u32 = u32::MAX;
/// How often a spinning thread may poll before other threads get a turn.
pub(super) const POLLS: u32 = 64;

thread_local! {
    static CURRENT: Cell<*mut Core> = const { Cell::new(ptr::null_mut()) };
}

/// The core of this OS thread; null outside the emulator.
pub(super) fn current() -> *mut Core {
    CURRENT.get()
}

/// What a signal handler leaves for the landing function that runs after it.
#[derive(Default, Clone, Copy)]
pub(super) struct Fault {
    pub(super) signal: i32,
    pub(super) address: usize,
    pub(super) pc: usize,
}

/// See the module. The context must be the first field: kernels get its address.
#[repr(C)]
pub(super) struct Core {
    pub(super) ctx: Context,
    pub(super) job: *const Job,
    pub(super) block: *mut Block,
    fibers: Vec<Fiber>,
    free: Vec<u32>,
    /// The coroutine that runs; [`NONE`] while the scheduler runs.
    pub(super) running: u32,
    /// The top of the scheduler's own stack while a coroutine runs.
    scheduler: usize,
    /// First byte of this OS thread's shared memory.
    pub(super) tls: usize,
    pub(super) fault: Fault,
    /// The stack on which a fault is reported: the faulting stack may have overflowed.
    pub(super) landing_stack: ThreadStack,
    /// Whether kernel code runs on behalf of a whole warp inside the scheduler, where no thread can be stopped.
    pub(super) collecting: bool,
    /// The last store of a watched kernel, if its value decides whether it is a race.
    pub(super) store: Option<Box<ConflictingStore>>,
    /// The last accesses of a watched kernel, if they may be a copy.
    pub(super) copies: Copies,
    /// Number of stores of watched kernels: a sign of progress.
    pub(super) writes: u64,
    #[expect(clippy::vec_box, reason = "a block is pointed to while it runs")]
    spare: Vec<Box<Block>>,
}

impl Core {
    /// A core for the calling OS thread. No other OS thread may use it.
    pub(super) fn new() -> std::io::Result<Box<Core>> {
        Ok(Box::new(Core {
            ctx: Context {
                tid: [0; 3],
                linear: 0,
                bid: [0; 3],
                exited: 0,
                bdim: [1; 3],
                next: 0,
                gdim: [1; 3],
                count: 0,
                order: ptr::null(),
                coords: ptr::null(),
                exited_lanes: ptr::null_mut(),
                dynamic_shared: 0,
                polls: POLLS,
                total_shared: 0,
                exit_pc: ptr::null(),
                carry: 0,
            },
            job: ptr::null(),
            block: ptr::null_mut(),
            fibers: Vec::new(),
            free: Vec::new(),
            running: NONE,
            scheduler: 0,
            tls: 0,
            fault: Fault::default(),
            landing_stack: ThreadStack::map(0)?,
            collecting: false,
            store: None,
            copies: Copies::default(),
            writes: 0,
            spare: Vec::new(),
        }))
    }

    /// Whether `address` is in the guard page of the running stack.
    pub(super) fn overflowed(&self, address: usize) -> bool {
        self.fibers.get(self.running as usize).is_some_and(|f| ThreadStack::guard(f.range().0).contains(&address))
    }

    /// Whether `address` is on the running stack.
    pub(super) fn on_stack(&self, address: usize) -> bool {
        self.fibers.get(self.running as usize).is_some_and(|f| within(f, address))
    }

    /// Whether `address` is on the stack of any thread of this core.
    pub(super) fn on_any_stack(&self, address: usize) -> bool {
        self.fibers.iter().any(|f| within(f, address))
    }

    /// Whether `address` is in the context, from which kernels read their indices.
    pub(super) fn is_own(&self, address: usize) -> bool {
        let start = ptr::from_ref(self) as usize;
        (start..start + size_of::<Context>()).contains(&address)
    }

    /// Called before a coroutine takes its first thread: until then, no thread runs. The last thread that ran may belong to another block. A coroutine that was
    /// stopped under that thread's number would never be found again.
    fn begins(&mut self) {
        self.ctx.linear = NONE;
    }

    /// The thread that runs kernel code and may be stopped there; none while the trampoline is between two threads or before its first.
    ///
    /// # Safety
    /// A block of this core's launch is loaded.
    pub(super) unsafe fn stoppable(&self) -> Option<u32> {
        let thread = self.ctx.linear;
        // SAFETY: as stated.
        let block = unsafe { &*self.block };
        let at = block.threads.get(thread as usize)?;
        let exited = block.exited_lanes[thread as usize / 32] >> (thread % 32) & 1 == 1;
        (at.state == State::Running && !exited).then_some(thread)
    }

    /// The thread that a fault is reported for: the running thread, or the first one if the trampoline, whose frame includes the kernel's, has not taken any.
    pub(super) fn faulting(&self) -> u32 {
        if self.ctx.linear < self.ctx.count { self.ctx.linear } else { 0 }
    }

    fn save(&mut self, block: &mut Block) {
        block.saved_context = (self.ctx.next, self.ctx.exited);
        let bytes = self.shared_bytes();
        // SAFETY: the segment of this OS thread holds the static variables and then the dynamic area, `bytes` in all.
        block.saved_shared = Some(unsafe { std::slice::from_raw_parts(self.tls as *const u8, bytes) }.to_vec());
    }

    fn shared_bytes(&self) -> usize {
        // SAFETY: set for the time of a launch by `run_job`.
        let job = unsafe { &*self.job };
        job.shared_bytes()
    }

    /// Makes `block` the one whose threads run.
    fn load(&mut self, block: &mut Block) {
        // SAFETY: set for the time of a launch by `run_job`.
        let job = unsafe { &*self.job };
        self.block = block;
        (self.ctx.next, self.ctx.exited) = block.saved_context;
        self.ctx.bid = job.block_index(block.linear);
        self.ctx.exited_lanes = block.exited_lanes.as_mut_ptr();
        match block.saved_shared.take() {
            // SAFETY: as many bytes as `save` read from the same place.
            Some(bytes) => unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.tls as *mut u8, bytes.len()) },
            None => {
                let image = &job.loaded.image;
                let dynamic = (image.dynamic.0, if image.dynamic.1 { job.shared } else { 0 });
                for (start, size) in image.shared.iter().map(|v| (v.start, v.size)).chain([dynamic]) {
                    // SAFETY: variables of the TLS segment that starts at `tls`.
                    unsafe { ptr::write_bytes((self.tls as *mut u8).add(start as usize), job.poison, size as usize) };
                }
            }
        }
    }
}

fn within(fiber: &Fiber, address: usize) -> bool {
    let (low, high) = fiber.range();
    (low..high).contains(&address)
}

/// Makes `core` the one that kernels on this OS thread call.
pub(super) fn enter(core: *mut Core) {
    CURRENT.set(core);
}

/// Takes the next ready thread of the block, and makes it the one that kernels see. Returns its coroutine.
///
/// # Safety
/// `core` belongs to this OS thread, and a block of its launch is loaded.
#[inline]
unsafe fn next_ready(core: *mut Core) -> Option<u32> {
    // SAFETY: as stated; nothing else refers to the block meanwhile.
    let (c, block) = unsafe { (&mut *core, &mut *(*core).block) };
    let thread = *block.ready.get(block.head)?;
    block.head += 1;
    let at = &mut block.threads[thread as usize];
    at.state = State::Running;
    // SAFETY: set for the time of a launch by `run_job`.
    let coords = unsafe { &(&(*c.job).coords)[3 * thread as usize..][..3] };
    c.ctx.linear = thread;
    c.ctx.tid = [coords[0], coords[1], coords[2]];
    c.ctx.carry = at.carry;
    Some(at.fiber)
}

/// Runs a coroutine, and the coroutines that it switches to, until one finds no ready thread.
unsafe fn switch_to(core: *mut Core, fiber: u32) {
    // SAFETY: `fiber` belongs to this core and does not run.
    unsafe {
        (*core).running = fiber;
        let take = (&(*core).fibers)[fiber as usize].top;
        switch(&raw mut (*core).scheduler, take);
        (*core).running = NONE;
    }
}

/// Prefetches the top of the stack that is resumed after the next one: many stacks do not fit in the nearest cache, but their order is known.
#[inline]
fn fetch_after_next(core: &Core, block: &Block) {
    let fiber = block.ready.get(block.head).and_then(|thread| block.threads.get(*thread as usize)).map(|t| t.fiber);
    if let Some(fiber) = fiber.and_then(|fiber| core.fibers.get(fiber as usize)) {
        for line in 0..4 {
            let at = ptr::without_provenance::<i8>(fiber.top + 64 * line);
            // SAFETY: a hint, which does not fail for any address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(at) };
        }
    }
}

/// Switches from the running coroutine to that of the next ready thread, or to the scheduler if no thread is ready.
///
/// # Safety
/// Called on a coroutine of `core` that has recorded where it can be resumed.
#[inline]
unsafe fn leave(core: *mut Core) {
    // SAFETY: as stated. Pointers into the pool are not kept across the switch.
    unsafe {
        let own = (*core).running;
        let next = if (*(*core).job).stopped() { None } else { next_ready(core) };
        let take = match next {
            Some(fiber) => {
                (*core).running = fiber;
                fetch_after_next(&*core, &*(*core).block);
                (&(*core).fibers)[fiber as usize].top
            }
            None => (*core).scheduler,
        };
        let top = &raw mut (&mut (*core).fibers)[own as usize].top;
        switch(top, take);
    }
}

/// Parks the running thread `thread` until another resumes it.
///
/// # Safety
/// Called on a coroutine of `core`.
#[inline(never)]
pub(super) unsafe fn park(core: *mut Core, thread: u32) {
    // SAFETY: as stated.
    unsafe {
        let fiber = (*core).running;
        let at = &mut (&mut (*(*core).block).threads)[thread as usize];
        (at.fiber, at.carry) = (fiber, (*core).ctx.carry);
        leave(core);
    }
}

unsafe fn new_fiber(core: *mut Core) -> std::io::Result<u32> {
    // SAFETY: only this OS thread uses `core`.
    let c = unsafe { &mut *core };
    c.fibers.push(Fiber::new(c.fibers.len(), run_threads)?);
    Ok((c.fibers.len() - 1) as u32)
}

/// The body of a coroutine: it enters the trampoline, which takes threads while any are left. The coroutine is then free again.
unsafe extern "C" fn run_threads() -> ! {
    let core = current();
    loop {
        // SAFETY: the core outlives its coroutines, and a launch is under way whenever one runs.
        unsafe {
            let job = (*core).job;
            ((*job).entry)(&raw mut (*core).ctx, (*job).arguments());
            let own = (*core).running;
            let free = &mut (*core).free;
            free.push(own);
            leave(core);
        }
    }
}

/// Discards every thread that has not ended: the stack of its coroutine is freed without unwinding.
unsafe fn abandon(core: *mut Core) {
    // SAFETY: the scheduler runs, so no coroutine does; kernels own nothing that unwinding would free.
    let c = unsafe { &mut *core };
    c.fibers.clear();
    c.free.clear();
}

impl Drop for Core {
    fn drop(&mut self) {
        // SAFETY: a core is dropped by its OS thread between launches.
        unsafe { abandon(self) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_stopped_only_while_it_runs() {
        let mut core = Core::new().unwrap();
        let mut block = Block::default();
        core.block = &raw mut block;
        core.ctx.linear = 5;
        block.begin(1, 64);
        core.begins();
        // SAFETY: the block was just loaded.
        let stoppable = |core: &Core| unsafe { core.stoppable() };
        assert_eq!(stoppable(&core), None, "5 was of the block before, and no thread was taken yet");
        core.ctx.linear = 63;
        assert_eq!(stoppable(&core), Some(63));
        block.threads[63].state = State::Warp;
        assert_eq!(stoppable(&core), None, "it waits");
        block.threads[63].state = State::Running;
        block.exited_lanes[1] = 1 << 31;
        assert_eq!(stoppable(&core), None, "it has left");
    }
}
