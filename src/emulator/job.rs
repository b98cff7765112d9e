//! One kernel launch as all OS threads of the runner see it, and what is recorded while it runs.
//! Knows grids, orders and findings; does not know coroutines.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::abi::Entry;
use super::hint::PendingFinding;
use super::image::Image;
use super::lines;
use super::watch::Watch;
use kforge_harness::message::{NotEmulated, ThreadOrder, Unemulated};
use kforge_types::record::{Finding, FindingKind};

/// Limits on the different findings and on the bytes of printed text that are kept for a trial.
const MOST_FINDINGS: usize = 32;
const MOST_TEXT: usize = 64 * 1024;

/// The loaded binary: what its image contains and where it is loaded.
pub(super) struct Loaded {
    pub(super) image: Image,
    pub(super) base: usize,
    /// Returns the address of the calling thread's dynamic shared memory.
    pub(super) anchor: unsafe extern "C" fn() -> usize,
}

/// A launch.
pub(super) struct Job {
    pub(super) loaded: Arc<Loaded>,
    pub(super) entry: Entry,
    /// The entry as the launch names it.
    pub(super) name: String,
    /// Addresses of argument values, in order.
    pub(super) args: Vec<usize>,
    /// The values that `args` points to.
    #[expect(dead_code, reason = "read by kernels through `args`")]
    pub(super) values: Vec<Box<[u64]>>,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) shared: u64,
    pub(super) blocks: u64,
    pub(super) next_block: AtomicU64,
    /// The linear thread index at each position; empty for ascending order.
    pub(super) order: Vec<u32>,
    /// The position of each linear thread index in `order`; empty for ascending order.
    pub(super) turns: Vec<u32>,
    /// x, y, z of each linear thread index.
    pub(super) coords: Vec<u32>,
    /// The byte that fills shared memory at the start of a block.
    pub(super) poison: u8,
    pub(super) cooperative: bool,
    /// How many OS threads share this launch, and how many of them see no progress.
    pub(super) cores: u32,
    pub(super) starved: AtomicU32,
    pub(super) grid_arrived: AtomicU64,
    pub(super) grid_generation: AtomicU64,
    /// The number of coroutines that one OS thread may hold.
    pub(super) most_fibers: usize,
    pub(super) stop: AtomicBool,
    pub(super) crashed: AtomicBool,
    pub(super) watch: Option<Watch>,
    /// Buffers by address: start, bytes, element, name.
    pub(super) arena: Arc<super::memory::Arena>,
    pub(super) notebook: Arc<Notebook>,
}

impl Job {
    /// Whether a finding ended the launch.
    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Ends the launch: no thread continues.
    pub(super) fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The program counter relative to the image, for the line tables; none if it is outside the image.
    pub(super) fn place(&self, pc: usize) -> Option<u32> {
        let offset = pc.wrapping_sub(self.loaded.base);
        (offset as u64 <= self.loaded.image.end).then(|| u32::try_from(offset).ok()).flatten()
    }

    /// The place of a program counter as text for a message; the place is resolved later.
    pub(super) fn at(&self, pc: usize) -> String {
        self.place(pc).map_or_else(|| "an unknown place".to_owned(), lines::mark)
    }

    /// Like [`Self::at`], followed by the calls that led there, as far as the compiler put the called functions into their callers.
    pub(super) fn at_with_callers(&self, pc: usize) -> String {
        self.place(pc).map_or_else(|| "an unknown place".to_owned(), lines::mark_with_callers)
    }

    /// Bytes of a block's shared memory: static variables, then the dynamic area.
    pub(super) fn shared_bytes(&self) -> usize {
        (self.loaded.image.dynamic.0 + self.shared) as usize
    }

    /// Argument addresses in the form that the trampoline takes.
    pub(super) fn arguments(&self) -> *mut *mut c_void {
        self.args.as_ptr().cast_mut().cast()
    }

    /// The block's coordinates.
    pub(super) fn block_index(&self, linear: u64) -> [u32; 3] {
        let (x, y) = (u64::from(self.grid[0]), u64::from(self.grid[1]));
        [(linear % x) as u32, (linear / x % y) as u32, (linear / x / y) as u32]
    }

    /// The thread's coordinates.
    pub(super) fn thread_index(&self, linear: u32) -> [u32; 3] {
        let at = 3 * linear as usize;
        [self.coords[at], self.coords[at + 1], self.coords[at + 2]]
    }

    /// A thread's index for messages: `3`, or `(3, 1)` if blocks have two axes.
    pub(super) fn thread_named(&self, linear: u32) -> String {
        named(self.thread_index(linear), self.block)
    }

    /// A block's index for messages, likewise.
    pub(super) fn block_named(&self, linear: u64) -> String {
        named(self.block_index(linear), self.grid)
    }
}

/// An index along the axes that the extents use.
fn named(at: [u32; 3], extents: [u32; 3]) -> String {
    match (extents[1], extents[2]) {
        (1, 1) => at[0].to_string(),
        (_, 1) => format!("({}, {})", at[0], at[1]),
        _ => format!("({}, {}, {})", at[0], at[1], at[2]),
    }
}

/// What the launches of a trial recorded.
#[derive(Default)]
pub(super) struct Notebook {
    kept: Mutex<NotebookContents>,
}

/// See [`Notebook`].
#[derive(Default)]
pub(super) struct NotebookContents {
    pub(super) findings: Vec<PendingFinding>,
    pub(super) not_emulated: Vec<NotEmulated>,
    pub(super) printed: Vec<u8>,
    /// Places that are known as looks before an atomic operation.
    looks: BTreeSet<u32>,
    /// Races of a read with an atomic write, by the place of the read: findings unless that place becomes known as a look.
    waiting: BTreeMap<u32, Vec<PendingFinding>>,
}

impl Notebook {
    fn lock(&self) -> MutexGuard<'_, NotebookContents> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a finding whose message is complete; one that repeats an earlier finding only increases its count.
    pub(super) fn add(&self, finding: Finding) {
        self.note(PendingFinding { finding, hint: None, across: false, same_value: false });
    }

    /// Like [`Self::add`], for a finding whose message is not complete yet.
    pub(super) fn note(&self, new: PendingFinding) {
        note(&mut self.lock().findings, new);
    }

    /// Keeps a race of a read at `place` with an atomic write until it is known whether the read was a look.
    pub(super) fn look(&self, place: u32, new: PendingFinding) {
        let mut kept = self.lock();
        if !kept.looks.contains(&place) {
            note(kept.waiting.entry(place).or_default(), new);
        }
    }

    /// Reads at `place` are looks before an atomic operation.
    pub(super) fn is_look(&self, place: u32) {
        let mut kept = self.lock();
        kept.waiting.remove(&place);
        kept.looks.insert(place);
    }

    /// Keeps a claim that something is not emulated.
    pub(super) fn not_emulated(&self, cause: Unemulated, what: String) {
        let claim = NotEmulated { cause, what };
        let mut kept = self.lock();
        if kept.not_emulated.len() < MOST_FINDINGS && !kept.not_emulated.contains(&claim) {
            kept.not_emulated.push(claim);
        }
    }

    /// Keeps printed text, up to a limit.
    pub(super) fn print(&self, text: &[u8]) {
        let mut kept = self.lock();
        let room = MOST_TEXT.saturating_sub(kept.printed.len());
        kept.printed.extend_from_slice(&text[..text.len().min(room)]);
    }

    /// Takes everything recorded so far.
    pub(super) fn take(&self) -> NotebookContents {
        let mut kept = std::mem::take(&mut *self.lock());
        for race in std::mem::take(&mut kept.waiting).into_values().flatten() {
            note(&mut kept.findings, race);
        }
        super::hint::settle(&mut kept.findings);
        kept
    }
}

/// Adds a finding to others; one that repeats another increases its count.
fn note(findings: &mut Vec<PendingFinding>, new: PendingFinding) {
    let finding = &new.finding;
    // A race is the same in either order of its two places.
    let turned =
        |f: &Finding| f.kind == FindingKind::Race && f.line == finding.other_line && f.other_line == finding.line;
    let like = findings.iter().map(|noted| &noted.finding).position(|f| {
        f.kind == finding.kind
            && f.buffer == finding.buffer
            && ((f.line == finding.line && f.other_line == finding.other_line) || turned(f))
    });
    match like {
        Some(known) => {
            let known = &mut findings[known];
            match finding.kind {
                FindingKind::Race => super::hint::merge(known, new),
                _ => known.finding.count += finding.count,
            }
        }
        None if findings.len() < MOST_FINDINGS => findings.push(new),
        None => {}
    }
}

/// The order in which the threads of a block start and resume: the linear index at each position; empty for ascending order.
pub(super) fn positions(order: ThreadOrder, threads: u32, salt: u64) -> Vec<u32> {
    match order {
        ThreadOrder::Forward => Vec::new(),
        ThreadOrder::Reversed => (0..threads).rev().collect(),
        ThreadOrder::Random(seed) => {
            let mut order: Vec<u32> = (0..threads).collect();
            let mut state = seed ^ salt.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            for at in (1..order.len()).rev() {
                // splitmix64 (Steele, Lea and Flood, 2014)
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut z = state;
                z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                order.swap(at, ((z ^ (z >> 31)) % (at as u64 + 1)) as usize);
            }
            order
        }
    }
}

/// The position of each linear thread index in `order`, which [`positions`] made.
pub(super) fn turns(order: &[u32]) -> Vec<u32> {
    let mut turns = vec![0; order.len()];
    for (turn, thread) in (0..).zip(order) {
        turns[*thread as usize] = turn;
    }
    turns
}

/// A finding at a program counter of a thread.
pub(super) fn finding(job: &Job, kind: FindingKind, message: String, pc: usize, block: u64, thread: u32) -> Finding {
    let mut finding = Finding::new(kind, message);
    finding.line = job.place(pc).map(lines::pending);
    finding.block = Some(job.block_index(block));
    finding.thread = Some(job.thread_index(thread));
    finding
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_named_along_the_axes_that_there_are() {
        let of = |extents| named([3, 1, 2], extents);
        assert_eq!((of([8, 1, 1]), of([8, 4, 1]), of([8, 1, 4])), ("3".into(), "(3, 1)".into(), "(3, 1, 2)".into()));
    }

    #[test]
    fn a_random_order_is_a_permutation_that_its_seed_decides() {
        let a = positions(ThreadOrder::Random(7), 100, 1);
        let mut sorted = a.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<_>>());
        assert_eq!(a, positions(ThreadOrder::Random(7), 100, 1));
        assert_ne!(a, positions(ThreadOrder::Random(8), 100, 1));
        assert_eq!(positions(ThreadOrder::Reversed, 3, 0), [2, 1, 0]);
        let turn_of = turns(&a);
        assert!((0..).zip(&a).all(|(turn, thread)| turn_of[*thread as usize] == turn), "{turn_of:?}");
    }
}
