//! One OS thread of the runner: a pool of coroutines, and the scheduler that runs blocks on them.
//!
//! A coroutine enters the entry's trampoline, which takes threads of the block one after another. A thread that never waits is a turn of a loop; only one that
//! waits keeps its coroutine, and the next thread starts on another. Threads never change their OS thread. A block that can only wait (for the grid, or polling)
//! stays resident, its shared memory saved, while others run.
#![expect(
    unsafe_code,
    reason = "kernels call back into a scheduler that holds raw pointers to itself across coroutine switches"
)]

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::Ordering;

use super::abi::Context;
use super::block::{Block, State};
use super::fiber::{Fiber, switch};
use super::job::{Job, finding};
use super::stack::ThreadStack;
use super::watch::BlockWatch;
use crate::record::FindingKind;

/// No thread, no coroutine.
pub(super) const NONE: u32 = u32::MAX;
/// How often a spinning thread may poll before others get a turn.
pub(super) const POLLS: u32 = 64;
/// After this many rounds in which threads only polled and nothing changed, nothing will.
const FRUITLESS_ROUNDS: u32 = 4096;
/// Rounds of polling before another block is started beside those that wait.
const PATIENCE: u32 = 8;

thread_local! {
    static CURRENT: Cell<*mut Core> = const { Cell::new(ptr::null_mut()) };
}

/// The core of this OS thread; null outside the emulator.
pub(super) fn current() -> *mut Core {
    CURRENT.get()
}

/// What a signal handler leaves for the landing that runs after it.
#[derive(Default, Clone, Copy)]
pub(super) struct Fault {
    pub(super) signal: i32,
    pub(super) address: usize,
    pub(super) pc: usize,
}

/// See the module. The context comes first: kernels get its address.
#[repr(C)]
pub(super) struct Core {
    pub(super) ctx: Context,
    pub(super) job: *const Job,
    pub(super) block: *mut Block,
    fibers: Vec<Fiber>,
    free: Vec<u32>,
    /// The coroutine that runs, or none while the scheduler does.
    pub(super) running: u32,
    /// The scheduler's own stack, while a coroutine runs.
    scheduler: usize,
    /// First byte of this OS thread's shared memory.
    pub(super) tls: usize,
    pub(super) fault: Fault,
    /// Where a fault is reported from: the faulting stack may have overflowed.
    pub(super) landing_stack: ThreadStack,
    /// Whether kernel code runs on behalf of a whole warp, inside the scheduler, where no thread can be stopped.
    pub(super) collecting: bool,
    /// Stores of watched kernels, as signs of progress.
    pub(super) writes: u64,
    #[expect(clippy::vec_box, reason = "a block is pointed to while it runs")]
    spare: Vec<Box<Block>>,
}

/// How a block's turn ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Done,
    /// All its threads wait for the grid.
    Grid,
    /// All its threads wait, some of them polling memory.
    Polling,
    /// The launch was ended.
    Stopped,
}

impl Core {
    /// A core for the calling OS thread, which must be the only one to use it.
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
            writes: 0,
            spare: Vec::new(),
        }))
    }

    /// Whether `address` lies in the guard page of the stack that runs.
    pub(super) fn overflowed(&self, address: usize) -> bool {
        self.fibers.get(self.running as usize).is_some_and(|f| ThreadStack::guard(f.range().0).contains(&address))
    }

    /// Whether `address` lies on the stack that runs.
    pub(super) fn on_stack(&self, address: usize) -> bool {
        self.fibers.get(self.running as usize).is_some_and(|f| within(f, address))
    }

    /// Whether `address` lies on any thread's stack of this core.
    pub(super) fn on_any_stack(&self, address: usize) -> bool {
        self.fibers.iter().any(|f| within(f, address))
    }

    /// Whether `address` lies in the context, which kernels read for their indices.
    pub(super) fn is_own(&self, address: usize) -> bool {
        let start = ptr::from_ref(self) as usize;
        (start..start + size_of::<Context>()).contains(&address)
    }

    /// A coroutine is about to take its first thread: until it has, none runs. What ran last may be of another block, and who is stopped under its number with a
    /// thread in hand would never be found again.
    fn begins(&mut self) {
        self.ctx.linear = NONE;
    }

    /// The thread that runs kernel code and may be stopped there. None while the trampoline is between two, or before its first.
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

    /// The thread that a fault is told of: who runs, or is about to, in a trampoline that has the kernel's frame in its own.
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

/// Makes `core` the one that calls of kernels on this OS thread reach.
pub(super) fn enter(core: *mut Core) {
    CURRENT.set(core);
}

/// Runs this OS thread's share of a launch: all blocks it can get.
///
/// # Safety
/// `core` is this OS thread's, entered, and no launch runs on it.
pub(super) unsafe fn run_job(core: *mut Core, job: &Job) {
    // SAFETY: `core` is valid, and only this OS thread uses it.
    let c = unsafe { &mut *core };
    c.job = job;
    // SAFETY: the stub's function, which takes nothing.
    c.tls = unsafe { (job.loaded.anchor)() } - job.loaded.image.dynamic.0 as usize;
    c.ctx.bdim = job.block;
    c.ctx.gdim = job.grid;
    c.ctx.count = job.block.iter().product();
    c.ctx.order = if job.order.is_empty() { ptr::null() } else { job.order.as_ptr() };
    c.ctx.coords = job.coords.as_ptr();
    c.ctx.dynamic_shared = job.shared;
    c.ctx.polls = POLLS;
    // SAFETY: as stated for this function.
    unsafe { run_blocks(core, job) };
    c.job = ptr::null();
    c.block = ptr::null_mut();
}

unsafe fn run_blocks(core: *mut Core, job: &Job) {
    let mut resident: Vec<(Box<Block>, Turn)> = Vec::new();
    // Several blocks at a time where they are many: the counter is shared by all cores.
    let step = (job.blocks / (u64::from(job.cores) * 64)).clamp(1, 64);
    let mut taken = 0..0u64;
    let mut rounds = 0u32;
    let mut starving = false;
    loop {
        if job.stopped() {
            break;
        }
        let generation = job.grid_generation.load(Ordering::Acquire);
        let released = resident.iter().position(|(b, turn)| *turn == Turn::Grid && b.generation != generation);
        let polling = || resident.iter().position(|(_, turn)| *turn == Turn::Polling);
        let mut block = if let Some(at) = released {
            resident.swap_remove(at).0
        } else if let Some(at) = polling().filter(|_| rounds % (PATIENCE + 1) != PATIENCE) {
            resident.remove(at).0
        } else {
            if taken.is_empty() {
                let from = job.next_block.fetch_add(step, Ordering::Relaxed);
                taken = from.min(job.blocks)..(from + step).min(job.blocks);
            }
            if let Some(linear) = taken.next() {
                // SAFETY: only this OS thread uses `core`.
                let c = unsafe { &mut *core };
                let mut block = c.spare.pop().unwrap_or_default();
                if job.watch.is_some() {
                    let (threads, bytes) = (c.ctx.count as usize, job.shared_bytes());
                    if !block.watch.as_ref().is_some_and(|w| w.fits(threads, bytes)) {
                        block.watch = Some(Box::new(BlockWatch::new(threads, bytes)));
                    }
                }
                block.begin(linear, c.ctx.count);
                if c.fibers.len() - c.free.len() + c.ctx.count as usize > job.most_fibers && !resident.is_empty() {
                    job.notebook.not_emulated(format!(
                        "more than {} threads that wait for each other across blocks on one core",
                        job.most_fibers
                    ));
                    job.end();
                    break;
                }
                block
            } else if let Some(at) = polling() {
                resident.remove(at).0
            } else if resident.is_empty() {
                break;
            } else {
                // All wait for the grid, which blocks on other cores have to reach.
                rounds += 1;
                if fruitless(job, &mut starving, rounds) {
                    report_stuck(job, &resident[0].0);
                    break;
                }
                if rounds > 64 {
                    std::thread::sleep(std::time::Duration::from_micros(50));
                } else {
                    std::thread::yield_now();
                }
                continue;
            }
        };
        // SAFETY: only this OS thread uses `core`; the block stays where it is while boxed.
        let turn = unsafe {
            let c = &mut *core;
            c.load(&mut block);
            run_block(core, job, &mut block)
        };
        // SAFETY: only this OS thread uses `core`.
        let (exited, writes) = unsafe { ((*core).ctx.exited, (*core).writes) };
        let stamp = block.events + u64::from(exited) + writes;
        let advanced = turn != Turn::Polling || stamp != block.stamp || std::mem::take(&mut block.preempted);
        block.stamp = stamp;
        if advanced {
            rounds = 0;
            if std::mem::take(&mut starving) {
                job.starved.fetch_sub(1, Ordering::AcqRel);
            }
        } else {
            rounds += 1;
        }
        match turn {
            Turn::Done => {
                // SAFETY: only this OS thread uses `core`.
                unsafe { (*core).spare.push(block) };
            }
            Turn::Stopped => {
                resident.push((block, turn));
                break;
            }
            Turn::Grid | Turn::Polling => {
                // SAFETY: only this OS thread uses `core`.
                unsafe { (*core).save(&mut block) };
                resident.push((block, turn));
                if turn == Turn::Polling && !advanced {
                    if fruitless(job, &mut starving, rounds) {
                        report_stuck(job, &resident[0].0);
                        break;
                    }
                    std::thread::yield_now();
                }
            }
        }
    }
    if !starving {
        job.starved.fetch_add(1, Ordering::AcqRel);
    }
    if job.stopped() || !resident.is_empty() {
        // SAFETY: nothing runs on this OS thread's coroutines any more.
        unsafe { abandon(core) };
    }
}

/// Whether nothing can change any more: this core has seen no progress for long, and neither has any other.
fn fruitless(job: &Job, starving: &mut bool, rounds: u32) -> bool {
    if rounds >= FRUITLESS_ROUNDS && !std::mem::replace(starving, true) {
        job.starved.fetch_add(1, Ordering::AcqRel);
    }
    rounds >= FRUITLESS_ROUNDS + 256 && job.starved.load(Ordering::Acquire) >= job.cores && !job.stopped()
}

fn report_stuck(job: &Job, block: &Block) {
    let waiting = block.threads.iter().position(|t| matches!(t.state, State::Poll | State::Grid)).unwrap_or(0);
    let thread = &block.threads[waiting];
    let message = match thread.state {
        State::Grid => format!("the grid barrier at {} is never reached by all blocks", job.at(thread.pc)),
        _ => format!("threads spin at {} on memory that nothing changes", job.at(thread.pc)),
    };
    job.notebook.add(finding(job, FindingKind::NoProgress, message, thread.pc, block.linear, waiting as u32));
    job.end();
}

unsafe fn run_block(core: *mut Core, job: &Job, block: &mut Box<Block>) -> Turn {
    let block: *mut Block = &mut **block;
    // SAFETY: `core` and `block` are this OS thread's; references to them do not outlive the statements that a coroutine switch stands between.
    unsafe {
        (*core).block = block;
        loop {
            // Those that may go on first: so a kernel with warp operations alone needs few coroutines.
            while let Some(fiber) = next_ready(core) {
                switch_to(core, fiber);
                if job.stopped() {
                    return Turn::Stopped;
                }
            }
            (*block).ready.clear();
            (*block).head = 0;
            if (*core).ctx.next < (*core).ctx.count {
                let fiber = match (*core).free.pop() {
                    Some(fiber) => fiber,
                    None => match new_fiber(core) {
                        Ok(fiber) => fiber,
                        Err(e) => {
                            job.notebook
                                .not_emulated(format!("so many threads at once that no stack is left for one: {e}"));
                            job.end();
                            return Turn::Stopped;
                        }
                    },
                };
                (*core).begins();
                switch_to(core, fiber);
                if job.stopped() {
                    return Turn::Stopped;
                }
                continue;
            }
            let (count, exited) = ((*core).ctx.count, (*core).ctx.exited);
            if exited == count {
                return Turn::Done;
            }
            match (*block).unblock(job, exited, count) {
                super::block::Unblocked::Ready => {}
                super::block::Unblocked::Poll => return Turn::Polling,
                super::block::Unblocked::Grid => return Turn::Grid,
                super::block::Unblocked::Never => return Turn::Stopped,
            }
        }
    }
}

/// Takes the next thread of the block that may go on, and makes it the one that kernels see; gives its coroutine.
///
/// # Safety
/// `core` is this OS thread's, and a block of its launch is loaded.
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
    Some(at.fiber)
}

/// Runs a coroutine, and those it gives way to, until one finds no other.
unsafe fn switch_to(core: *mut Core, fiber: u32) {
    // SAFETY: `fiber` is one of this core's that does not run.
    unsafe {
        (*core).running = fiber;
        let take = (&(*core).fibers)[fiber as usize].top;
        switch(&raw mut (*core).scheduler, take);
        (*core).running = NONE;
    }
}

/// Asks for the top of the stack that is taken up after the next one: many stacks do not stay in the nearest cache, and their order is known.
#[inline]
fn fetch_after_next(core: &Core, block: &Block) {
    let fiber = block.ready.get(block.head).and_then(|thread| block.threads.get(*thread as usize)).map(|t| t.fiber);
    if let Some(fiber) = fiber.and_then(|fiber| core.fibers.get(fiber as usize)) {
        for line in 0..4 {
            let at = ptr::without_provenance::<i8>(fiber.top + 64 * line);
            // SAFETY: a hint, which no address makes fail.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(at) };
        }
    }
}

/// Leaves the running coroutine for that of the next thread that may go on, else for the scheduler.
///
/// # Safety
/// Called on a coroutine of `core`, which has noted where it is to be found again.
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

/// Gives way: thread `thread`, which runs, stops here until somebody resumes it.
///
/// # Safety
/// Called on a coroutine of `core`.
#[inline(never)]
pub(super) unsafe fn park(core: *mut Core, thread: u32) {
    // SAFETY: as stated.
    unsafe {
        let fiber = (*core).running;
        (&mut (*(*core).block).threads)[thread as usize].fiber = fiber;
        leave(core);
    }
}

unsafe fn new_fiber(core: *mut Core) -> std::io::Result<u32> {
    // SAFETY: only this OS thread uses `core`.
    let c = unsafe { &mut *core };
    c.fibers.push(Fiber::new(c.fibers.len(), run_threads)?);
    Ok((c.fibers.len() - 1) as u32)
}

/// What a coroutine does: it enters the trampoline, which takes threads while there are some, and is free again.
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

/// Forgets every thread that has not ended: its coroutine's stack goes, without unwinding.
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
