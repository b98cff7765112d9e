//! Decides which block runs next on an OS thread, until the thread's share of a launch is done or nothing can change any longer. A block that can only wait
//! (for the grid, or polling) stays resident, with its shared memory saved, while others run.
#![expect(unsafe_code, reason = "blocks run on coroutines, which hold raw pointers to the core")]

use std::ptr;
use std::sync::atomic::Ordering;

use super::super::block::{Block, State, Unblocked};
use super::super::job::{Job, finding};
use super::super::watch::{BlockWatch, settle};
use super::{Core, POLLS, abandon, new_fiber, next_ready, switch_to};
use kforge_harness::message::Unemulated;
use kforge_types::record::FindingKind;

/// If threads only polled and nothing changed for this many rounds, nothing will change.
const FRUITLESS_ROUNDS: u32 = 4096;
/// Rounds of polling before another block is started in addition to those that wait.
const PATIENCE: u32 = 8;

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

/// Runs this OS thread's share of a launch: all blocks that it can get.
///
/// # Safety
/// `core` belongs to this OS thread and was entered, and no launch runs on it.
pub(crate) unsafe fn run_job(core: *mut Core, job: &Job) {
    // SAFETY: `core` is valid, and only this OS thread uses it.
    let c = unsafe { &mut *core };
    c.job = job;
    // SAFETY: a function of the stub without parameters.
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
    // Takes several blocks at a time if there are many, because all cores share the counter.
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
                    let what = format!(
                        "more than {} threads that wait for each other across blocks on one core",
                        job.most_fibers
                    );
                    job.notebook.not_emulated(Unemulated::Threads, what);
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
            let turn = run_block(core, job, &mut block);
            settle(core, job);
            turn
        };
        // SAFETY: only this OS thread uses `core`.
        let (exited, writes) = unsafe { ((*core).ctx.exited, (*core).writes) };
        let stamp = (block.events + u64::from(exited)).wrapping_add(writes);
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

/// Whether nothing can change any longer: neither this core nor any other has seen progress for a long time.
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
        State::Grid => format!("the blocks never all reach the grid barrier at {}", job.at(thread.pc)),
        _ => format!("threads spin at {} on memory that nothing changes", job.at(thread.pc)),
    };
    job.notebook.add(finding(job, FindingKind::NoProgress, message, thread.pc, block.linear, waiting as u32));
    job.end();
}

unsafe fn run_block(core: *mut Core, job: &Job, block: &mut Box<Block>) -> Turn {
    let block: *mut Block = &mut **block;
    // SAFETY: `core` and `block` belong to this OS thread; references to them do not outlive a statement, so none is held across a coroutine switch.
    unsafe {
        (*core).block = block;
        loop {
            // Threads that can continue come first, so a kernel with only warp operations needs few coroutines.
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
                            let what = format!("too many threads at once to allocate a stack for each: {e}");
                            job.notebook.not_emulated(Unemulated::Threads, what);
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
                Unblocked::Ready => {}
                Unblocked::Poll => return Turn::Polling,
                Unblocked::Grid => return Turn::Grid,
                Unblocked::Never => return Turn::Stopped,
            }
        }
    }
}
