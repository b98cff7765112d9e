//! A block's threads and what they wait for. Knows barriers, warps and when each thread may continue; does not know coroutines.

use std::sync::atomic::Ordering;

use super::job::{Job, finding};
use super::warp::{self, Pending, lanes};
use super::watch::BlockWatch;
use kforge_types::record::FindingKind;

/// The end of a message about what CUDA C++ does not define and hardware may execute as the author meant it.
const WORKS: &str = ", which is undefined in CUDA C++; it may work on hardware";

/// The state of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum State {
    /// Not started, running, ready, or exited: other fields show which.
    #[default]
    Running,
    Barrier,
    Warp,
    /// Waits to learn which lanes are at the same place.
    Converge,
    /// Like `Converge`, and the lanes then continue in step.
    Step,
    Poll,
    Grid,
    /// Ended by a finding.
    Dead,
}

/// A thread.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Thread {
    pub(super) fiber: u32,
    /// The carry flag of inline PTX, while the thread waits.
    pub(super) carry: u32,
    pub(super) state: State,
    pub(super) site: u32,
    pub(super) pc: usize,
    pub(super) result: u64,
}

/// A warp's lanes that wait at warp operations.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Warp {
    pub(super) waiting: u32,
    pub(super) lanes: [Pending; 32],
}

/// The block's barrier, as the threads that wait at it see it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Barrier {
    pub(super) waiting: u32,
    pub(super) kind: u32,
    pub(super) site: u32,
    pub(super) pc: usize,
    pub(super) thread: u32,
    pub(super) sum: u32,
    pub(super) result: i32,
    /// A thread that waits at another site.
    pub(super) other: Option<(u32, usize)>,
}

/// A block that runs or stays resident.
#[derive(Default)]
pub(super) struct Block {
    pub(super) linear: u64,
    pub(super) threads: Vec<Thread>,
    pub(super) warps: Vec<Warp>,
    /// Lanes that have exited or never existed, by warp; written by the trampoline.
    pub(super) exited_lanes: Vec<u32>,
    pub(super) ready: Vec<u32>,
    pub(super) head: usize,
    pub(super) barrier: Barrier,
    /// Number of barriers passed.
    pub(super) epoch: u32,
    /// Number of completed barriers and warp operations: signs of progress.
    pub(super) events: u64,
    pub(super) stamp: u64,
    /// Number of threads that wait for the grid, and the generation that they wait in.
    pub(super) at_grid: u32,
    pub(super) generation: u64,
    pub(super) saved_context: (u32, u32),
    pub(super) saved_shared: Option<Vec<u8>>,
    /// Whether a thread was preempted in its own code, which says nothing about progress.
    pub(super) preempted: bool,
    pub(super) watch: Option<Box<BlockWatch>>,
}

/// What a block without ready threads can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unblocked {
    Ready,
    Poll,
    Grid,
    Never,
}

impl Block {
    /// Turns this value into the block `linear` of a launch with `count` threads per block.
    pub(super) fn begin(&mut self, linear: u64, count: u32) {
        let warps = count.div_ceil(32) as usize;
        self.linear = linear;
        self.threads.clear();
        self.threads.resize(count as usize, Thread::default());
        self.warps.clear();
        self.warps.resize(warps, Warp::default());
        self.exited_lanes.clear();
        self.exited_lanes.resize(warps, 0);
        if !count.is_multiple_of(32) {
            self.exited_lanes[warps - 1] = u32::MAX << (count % 32);
        }
        self.ready.clear();
        self.head = 0;
        self.barrier = Barrier::default();
        (self.epoch, self.events, self.stamp, self.at_grid, self.generation) = (0, 0, 0, 0, 0);
        self.saved_context = (0, 0);
        self.saved_shared = None;
        self.preempted = false;
        if let Some(watch) = &mut self.watch {
            watch.begin();
        }
    }

    /// Records that thread `thread` has reached the barrier. Returns whether all threads have, so that this one need not wait.
    pub(super) fn reach_barrier(
        &mut self,
        thread: u32,
        kind: u32,
        site: u32,
        value: i32,
        pc: usize,
        alive: u32,
    ) -> bool {
        let b = &mut self.barrier;
        if b.waiting == 0 {
            *b = Barrier { kind, site, pc, thread, result: b.result, ..Barrier::default() };
        } else if b.site != site && b.other.is_none() {
            b.other = Some((thread, pc));
        }
        b.waiting += 1;
        b.sum += u32::from(value != 0);
        let at = &mut self.threads[thread as usize];
        at.state = State::Barrier;
        at.pc = pc;
        b.waiting == alive
    }

    /// Empties the list of ready threads once all of them have resumed.
    fn forget_resumed(&mut self) {
        if self.head == self.ready.len() {
            self.ready.clear();
            self.head = 0;
        }
    }

    /// Releases every thread that waits at the barrier, except `running`, which continues anyway. Returns false if threads wait at different barriers.
    pub(super) fn release_barrier(&mut self, job: &Job, exited: u32, running: Option<u32>) -> bool {
        let b = self.barrier;
        if let Some((thread, pc)) = b.other {
            let message = format!(
                "thread {} waits at the barrier at {}, thread {thread} at another barrier at {}{WORKS}",
                b.thread,
                job.at(b.pc),
                job.at(pc)
            );
            let mut found = finding(job, FindingKind::DivergentBarrier, message, b.pc, self.linear, b.thread);
            found.other_line = job.place(pc).map(super::lines::pending);
            job.notebook.add(found);
            job.end();
            return false;
        }
        if exited > 0 && job.watch.is_some() {
            let message = format!(
                "{exited} of {} threads left the kernel before the barrier at {}",
                self.threads.len(),
                job.at(b.pc)
            );
            job.notebook.add(finding(job, FindingKind::ExitedBeforeBarrier, message, b.pc, self.linear, b.thread));
        }
        self.barrier.result = match b.kind {
            1 => b.sum as i32,
            2 => i32::from(b.sum == b.waiting),
            3 => i32::from(b.sum > 0),
            _ => 0,
        };
        self.barrier.waiting = 0;
        self.pass_barrier();
        self.events += 1;
        let skip = running.unwrap_or(u32::MAX);
        self.forget_resumed();
        let threads = &mut self.threads;
        let ready = &mut self.ready;
        let mut wake = |t: u32| {
            let at = &mut threads[t as usize];
            if at.state == State::Barrier {
                at.state = State::Running;
                if t != skip {
                    ready.push(t);
                }
            }
        };
        if job.order.is_empty() {
            (0..b.waiting + exited).for_each(&mut wake);
        } else {
            job.order.iter().copied().for_each(&mut wake);
        }
        true
    }

    /// All threads of the block have met: what they did before is ordered before what they do now.
    fn pass_barrier(&mut self) {
        self.epoch += 1;
        if let Some(watch) = &mut self.watch {
            watch.barrier();
        }
    }

    /// Evaluates the warp operation at which lane `lane` of warp `warp` waits, if every lane that it names has arrived or exited.
    /// `running` is not added to the ready threads.
    pub(super) fn try_warp(&mut self, job: &Job, warp: usize, lane: usize, running: Option<u32>) -> bool {
        let w = &mut self.warps[warp];
        let first = w.lanes[lane];
        let needed = first.mask & !self.exited_lanes[warp];
        if w.waiting & needed != needed {
            return false;
        }
        if !lanes(needed).all(|l| w.lanes[l].kind == first.kind && w.lanes[l].mask == first.mask) {
            return false;
        }
        w.waiting &= !needed;
        self.events += 1;
        let mut results = [0u64; 32];
        if let Some(watch) = &mut self.watch {
            watch.met(warp, needed);
        }
        match first.kind {
            warp::SYNC => {
                if let Some(watch) = &mut self.watch {
                    watch.warp(warp, needed);
                }
            }
            warp::COLLECT => super::hooks::collect(&w.lanes, needed),
            kind => warp::evaluate(kind, needed, &w.lanes, job.poison, &mut results),
        }
        if first.kind == warp::SHUFFLE
            && self.watch.is_some()
            && let Some((reader, source)) = warp::reads_absent(needed, &w.lanes)
        {
            let why = match warp * 32 + source {
                beyond if beyond >= self.threads.len() => "the block has no such lane",
                _ if self.exited_lanes[warp] >> source & 1 == 1 => "that lane has left the kernel",
                _ => "the mask leaves that lane out",
            };
            let pc = w.lanes[reader].pc;
            let message = format!(
                "lane {reader} reads lane {source} in the shuffle at {}, and {why}: the value is undefined",
                job.at(pc)
            );
            let thread = (warp * 32 + reader) as u32;
            job.notebook.add(finding(job, FindingKind::AbsentLane, message, pc, self.linear, thread));
        }
        let skip = running.unwrap_or(u32::MAX);
        self.forget_resumed();
        let mut wake = |lane: usize| {
            let thread = (warp * 32 + lane) as u32;
            let at = &mut self.threads[thread as usize];
            at.result = results[lane];
            at.state = State::Running;
            if thread != skip {
                self.ready.push(thread);
            }
        };
        if job.order.is_empty() {
            lanes(needed).for_each(&mut wake);
        } else {
            let mut by_order: Vec<usize> = lanes(needed).collect();
            by_order.sort_unstable_by_key(|lane| job.turns[warp * 32 + lane]);
            by_order.into_iter().for_each(&mut wake);
        }
        true
    }

    /// Called when no thread is ready and all have started. Finds threads that may continue because others have exited, or because no other thread can arrive.
    pub(super) fn unblock(&mut self, job: &Job, exited: u32, count: u32) -> Unblocked {
        for warp in 0..self.warps.len() {
            let mut tried = 0;
            while self.warps[warp].waiting & !tried != 0 {
                let lane = (self.warps[warp].waiting & !tried).trailing_zeros();
                tried |= 1 << lane;
                self.try_warp(job, warp, lane as usize, None);
            }
        }
        if self.barrier.waiting > 0
            && self.barrier.waiting + exited == count
            && !self.release_barrier(job, exited, None)
        {
            return Unblocked::Never;
        }
        if self.ready.is_empty() {
            self.converge();
        }
        if !self.ready.is_empty() {
            return Unblocked::Ready;
        }
        let mut polled = false;
        for position in 0..count {
            let thread = job.order.get(position as usize).copied().unwrap_or(position);
            if self.threads[thread as usize].state == State::Poll {
                self.ready.push(thread);
                polled = true;
            }
        }
        if polled {
            return Unblocked::Poll;
        }
        if self.at_grid > 0 && self.at_grid + exited == count {
            return self.reach_grid(job, count);
        }
        self.report_deadlock(job, count);
        Unblocked::Never
    }

    /// Groups lanes that asked which others are with them: lanes at the same place continue together, as none of them waits for anything else.
    fn converge(&mut self) {
        for warp in 0..self.warps.len() {
            let threads = warp * 32..(warp * 32 + 32).min(self.threads.len());
            for first in threads.clone() {
                let Thread { state, site, .. } = self.threads[first];
                if !matches!(state, State::Converge | State::Step) {
                    continue;
                }
                let with = |t: &Thread| t.state == state && t.site == site;
                let mask = threads.clone().filter(|t| with(&self.threads[*t])).fold(0u32, |m, t| m | 1 << (t % 32));
                if let Some(watch) = self.watch.as_mut().filter(|_| state == State::Step) {
                    watch.warp(warp, mask);
                }
                for lane in lanes(mask) {
                    let at = &mut self.threads[warp * 32 + lane];
                    at.result = u64::from(mask);
                    at.state = State::Running;
                    self.ready.push((warp * 32 + lane) as u32);
                }
            }
        }
        self.events += u64::from(!self.ready.is_empty());
    }

    /// All threads wait for the grid: the block arrives once, and continues when the generation changes.
    fn reach_grid(&mut self, job: &Job, count: u32) -> Unblocked {
        let now = job.grid_generation.load(Ordering::Acquire);
        self.generation = now;
        self.at_grid = 0;
        // For the block's own memory, a barrier of the grid is a barrier of the block.
        self.pass_barrier();
        self.events += 1;
        for position in 0..count {
            let thread = job.order.get(position as usize).copied().unwrap_or(position);
            if self.threads[thread as usize].state == State::Grid {
                self.ready.push(thread);
            }
        }
        if job.grid_arrived.fetch_add(1, Ordering::AcqRel) + 1 == job.blocks {
            job.grid_arrived.store(0, Ordering::Release);
            if let Some(watch) = &job.watch {
                watch.next_phase();
            }
            job.grid_generation.store(now + 1, Ordering::Release);
        }
        Unblocked::Grid
    }

    fn report_deadlock(&self, job: &Job, count: u32) {
        let place = |t: usize| (t, &self.threads[t]);
        let waits = |state: State| (0..count as usize).find(|t| self.threads[*t].state == state).map(place);
        let (kind, message, thread, other) = match (waits(State::Barrier), waits(State::Warp)) {
            (_, Some((t, at))) => {
                let pending = self.warps[t / 32].lanes[t % 32];
                let missing: Vec<String> =
                    lanes(pending.mask & !self.exited_lanes[t / 32] & !self.warps[t / 32].waiting)
                        .map(|l| l.to_string())
                        .collect();
                let why = if missing.is_empty() {
                    "lanes wait at different operations or with different masks".to_owned()
                } else {
                    format!("lanes {} never arrive", missing.join(", "))
                };
                let message =
                    format!("the warp operation at {} with mask {:#010x}: {why}", job.at(at.pc), pending.mask);
                (FindingKind::WarpMask, message, (t, at.pc), waits(State::Barrier))
            }
            (Some((t, at)), None) => {
                let other = waits(State::Grid);
                let message = format!("the threads of the block never all reach the barrier at {}", job.at(at.pc));
                (FindingKind::DivergentBarrier, message, (t, at.pc), other)
            }
            (None, None) => {
                let (t, at) = waits(State::Grid).unwrap_or(place(0));
                (FindingKind::NoProgress, format!("threads wait forever at {}", job.at(at.pc)), (t, at.pc), None)
            }
        };
        let mut found = finding(job, kind, message, thread.1, self.linear, thread.0 as u32);
        found.other_line = other.and_then(|(_, at)| job.place(at.pc)).map(super::lines::pending);
        job.notebook.add(found);
        job.end();
    }
}
