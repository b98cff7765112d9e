//! Runs trials in the runner's process: loads the binary, maps buffers, sets globals, and passes each launch to the cores.
//! Knows requests and reports; does not know seeds or expected values, which the verifier keeps.
//!
//! The calling thread reports, and runs no code of the binary: not its kernels, and not what runs when a library is loaded, looked up or closed. The threads that
//! do cannot report (`confine::candidate_thread`).
#![expect(unsafe_code, reason = "loads a compiled kernel and writes its globals")]

use std::ffi::{CStr, CString, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use super::abi::{CALLS, Entry, MAX_DYNAMIC_SHARED, PAGE};
use super::core::{self, Core};
use super::error::{LaunchError, MapError, RunError};
use super::hint::PendingFinding;
use super::image::Image;
use super::job::{Job, Loaded, Notebook, positions, turns};
use super::memory::Arena;
use super::stack::{mapping_limit, most_cores};
use super::watch::Watch;
use super::{args, fault, hooks};
use kforge_harness::arguments;
use kforge_harness::confine::candidate_thread;
use kforge_harness::message::{RunnerReport, RunnerRequest, RunnerTrial};
use kforge_types::model::bound::{Arg, KernelLaunch, Launch, StructField};

/// How long a launch runs before threads that never yield are asked to, and the interval between later requests.
const SLICE: Duration = Duration::from_millis(20);

/// Runs every trial of the request and reports as it goes: findings, text, what is not emulated, and the end of each trial except one that crashed, after which
/// nothing more runs. An error means that the request itself cannot be served.
pub fn run_trials(request: &RunnerRequest, report: &mut dyn FnMut(RunnerReport)) -> Result<(), RunError> {
    let path = format!("/proc/self/fd/{}", request.binary_fd);
    let binary = std::fs::read(&path).map_err(RunError::Read)?;
    let image = Image::parse(&binary, request.entries.len())?;
    let widest = request.launches.iter().filter_map(threads_of).max().unwrap_or(1);
    let limit = mapping_limit();
    let cores = u64::from(request.threads.max(1)).min(most_cores(widest, limit)) as u32;
    let most_fibers = most_fibers(limit, cores);
    // A trial that continues another is mapped at the same addresses.
    let first = |trial: &&RunnerTrial| !trial.goes_on;
    let arenas = request.trials.iter().filter(first).map(|t| arena(request, t, 0)).collect::<Result<Vec<_>, _>>()?;
    // Most failures with a cause in kforge or the system are known by now.
    report(RunnerReport::Loading);
    thread::scope(|scope| {
        let (give, loaded) = mpsc::channel();
        // The binary is closed when this sender is dropped: after the threads that run its code have ended.
        let (_open, until) = mpsc::channel::<()>();
        scope.spawn(move || hold(&path, image, &give, &until));
        let (loaded, entries) = loaded.recv().map_err(|_| RunError::ThreadEnded)??;
        run_loaded(&Session { request, loaded, entries, cores, most_fibers }, arenas, report)
    })
}

/// Loads the binary, gives what it holds, and closes it when nobody can use it any longer.
fn hold(path: &str, image: Image, give: &mpsc::Sender<Result<Bound, RunError>>, until: &mpsc::Receiver<()>) {
    let opened = candidate_thread().map_err(RunError::Confine).and_then(|()| Library::open(path));
    let library = match opened {
        Ok(library) => library,
        Err(e) => return drop(give.send(Err(e))),
    };
    // Fails only if nobody receives any longer; then nobody holds the sender either.
    let _ = give.send(library.bind(image));
    let _ = until.recv();
}

fn run_loaded(session: &Session<'_>, arenas: Vec<Arena>, report: &mut dyn FnMut(RunnerReport)) -> Result<(), RunError> {
    let (request, cores) = (session.request, session.cores);
    let saved = session.save_globals();
    thread::scope(|scope| {
        let (done, finished) = mpsc::channel();
        let (ready, started) = mpsc::channel();
        let crew: Vec<mpsc::Sender<Arc<Job>>> = (0..cores)
            .map(|_| {
                let (give, take) = mpsc::channel::<Arc<Job>>();
                let (done, ready) = (done.clone(), ready.clone());
                scope.spawn(move || serve(&take, &done, &ready));
                give
            })
            .collect();
        let asked: Vec<fault::Preemptible> = started.iter().take(cores as usize).collect();
        let run = |job: Arc<Job>| -> Result<(), RunError> {
            for core in &crew {
                core.send(Arc::clone(&job)).map_err(|_| RunError::ThreadEnded)?;
            }
            let mut left = crew.len();
            while left > 0 {
                match finished.recv_timeout(SLICE) {
                    Ok(result) => {
                        result?;
                        left -= 1;
                    }
                    Err(mpsc::RecvTimeoutError::Timeout) => {
                        for core in &asked {
                            // SAFETY: the crew ends only when its senders are dropped, and `run` borrows them.
                            unsafe { core.ask() };
                        }
                    }
                    Err(mpsc::RecvTimeoutError::Disconnected) => return Err(RunError::ThreadsEnded),
                }
            }
            Ok(())
        };
        let (mut arenas, mut place) = (arenas.into_iter(), 0);
        for (number, trial) in request.trials.iter().enumerate() {
            let arena = if trial.goes_on {
                arena(request, trial, place)?
            } else {
                session.restore_globals(&saved);
                arenas.next().expect("BUG: one was mapped for each trial that goes on from no other")
            };
            place = arena.start;
            if !session.trial(number as u32, trial, arena, &run, report)? {
                break;
            }
        }
        Ok(())
    })
}

/// The number of coroutines that one of `cores` OS threads may hold if the system allows `limit` mappings.
pub(super) fn most_fibers(limit: u64, cores: u32) -> usize {
    (limit / 4 * 3 / 2 / u64::from(cores)) as usize
}

/// The lengths of the arrays of addresses of an argument.
fn arrays(arg: &Arg) -> Vec<usize> {
    match arg {
        Arg::Pointers(names) => vec![names.len()],
        Arg::Struct(fields) => fields
            .iter()
            .flat_map(|field| match field {
                StructField::Member(arg) => arrays(arg),
                StructField::Scalar { .. } => vec![],
            })
            .collect(),
        _ => vec![],
    }
}

/// The mapped buffers of a trial, with room for the arrays of addresses that launches take.
fn arena(request: &RunnerRequest, trial: &RunnerTrial, near: usize) -> Result<Arena, MapError> {
    let args = request.launches.iter().flat_map(|l| match l {
        Launch::Kernel(k) => k.args.as_slice(),
        Launch::Memset { .. } => &[],
    });
    let room = Arena::room(args.flat_map(arrays));
    Arena::map(&trial.buffers, trial.guard_after, room, near)
}

/// One OS thread: runs its share of each launch it is given.
fn serve(
    take: &mpsc::Receiver<Arc<Job>>,
    done: &mpsc::Sender<Result<(), RunError>>,
    ready: &mpsc::Sender<fault::Preemptible>,
) {
    let _stack = fault::guard();
    if ready.send(fault::Preemptible::here()).is_err() {
        return;
    }
    if let Err(e) = candidate_thread() {
        // If nobody receives any longer, nobody waits.
        let _ = done.send(Err(RunError::Confine(e)));
        return;
    }
    let mut core = match Core::new() {
        Ok(core) => core,
        Err(e) => {
            // If nobody receives any longer, nobody waits.
            let _ = done.send(Err(RunError::Stack(e)));
            return;
        }
    };
    core::enter(&raw mut *core);
    while let Ok(job) = take.recv() {
        // SAFETY: the core is this OS thread's and was just entered; launches come one at a time.
        unsafe { core::run_job(&raw mut *core, &job) };
        drop(job);
        if done.send(Ok(())).is_err() {
            break;
        }
    }
    core::enter(ptr::null_mut());
}

fn threads_of(launch: &Launch) -> Option<u64> {
    match launch {
        Launch::Kernel(k) => Some(k.block.iter().map(|n| u64::from(*n)).product()),
        Launch::Memset { .. } => None,
    }
}

/// What a loaded binary holds: its image, and its entries in order.
type Bound = (Arc<Loaded>, Vec<Entry>);

/// A loaded binary; closed when dropped. Opening it, looking up its symbols and closing it run its code, so only a thread of the candidate does that.
struct Library(*mut c_void);

impl Library {
    fn open(path: &str) -> Result<Library, RunError> {
        let path = CString::new(path).map_err(|e| RunError::Load(e.to_string()))?;
        // SAFETY: loading runs the binary's constructors, which is what a runner is for.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() { Err(RunError::Load(error())) } else { Ok(Library(handle)) }
    }

    fn symbol(&self, name: &str) -> Result<*mut c_void, RunError> {
        let none = |why: String| RunError::NoSymbol { symbol: name.to_owned(), why };
        let c = CString::new(name).map_err(|e| none(e.to_string()))?;
        // SAFETY: the handle is open.
        let at = unsafe { libc::dlsym(self.0, c.as_ptr()) };
        if at.is_null() { Err(none(error())) } else { Ok(at) }
    }

    /// Fills the table of calls. Returns where the image and its entries are.
    fn bind(&self, image: Image) -> Result<Bound, RunError> {
        let targets = self.symbol("kf_targets")?;
        let table = hooks::table();
        // SAFETY: the stub reserves as many words under this name.
        unsafe { ptr::copy_nonoverlapping(table.as_ptr(), targets.cast(), CALLS.len()) };
        // A kernel that put calls of its own there would not be watched.
        // SAFETY: the stub gives the table the whole page.
        if unsafe { libc::mprotect(targets, PAGE, libc::PROT_READ) } != 0 {
            return Err(RunError::Protect(std::io::Error::last_os_error()));
        }
        let anchor = self.symbol("kf_tls_anchor")?;
        // SAFETY: the stub defines it as a function without parameters that returns an address.
        let anchor = unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> usize>(anchor) };
        let entries = (0..image.entries.len())
            .map(|i| {
                let at = self.symbol(&format!("kf_entry_{i}"))?;
                // SAFETY: `KF_ENTRY` defines it with this type.
                Ok(unsafe { std::mem::transmute::<*mut c_void, Entry>(at) })
            })
            .collect::<Result<_, RunError>>()?;
        let base = targets as usize - image.targets as usize;
        Ok((Arc::new(Loaded { image, base, anchor }), entries))
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: opened once; the OS threads that ran its code have ended.
        unsafe { libc::dlclose(self.0) };
    }
}

fn error() -> String {
    // SAFETY: returns a string or null.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "no reason given".into();
    }
    // SAFETY: not null, and valid until the next call.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

struct Session<'a> {
    request: &'a RunnerRequest,
    loaded: Arc<Loaded>,
    entries: Vec<Entry>,
    cores: u32,
    most_fibers: usize,
}

impl Session<'_> {
    /// Runs one trial. Returns whether the next may follow.
    fn trial(
        &self,
        number: u32,
        trial: &RunnerTrial,
        mut arena: Arena,
        run: &dyn Fn(Arc<Job>) -> Result<(), RunError>,
        report: &mut dyn FnMut(RunnerReport),
    ) -> Result<bool, RunError> {
        let refused = |why: LaunchError| RunnerReport::Finding { trial: number, finding: why.finding() };
        if let Err(why) = self.fill_constants(&arena) {
            report(refused(why));
            report(RunnerReport::TrialDone { trial: number });
            return Ok(true);
        }
        let mut prepared = Vec::new();
        for launch in &self.request.launches {
            match self.prepare(launch, &mut arena) {
                Ok(values) => prepared.push(values),
                Err(why) => {
                    report(refused(why));
                    report(RunnerReport::TrialDone { trial: number });
                    return Ok(true);
                }
            }
        }
        let arena = Arc::new(arena);
        let notebook = Arc::new(Notebook::default());
        let watch = self.request.check.then(|| Watch::new(&arena, &self.loaded));
        let mut crashed = false;
        let mut watch = watch;
        for (position, (launch, values)) in self.request.launches.iter().zip(prepared).enumerate() {
            match launch {
                Launch::Memset { buffer, value } => memset(&arena, buffer, *value, watch.as_ref()),
                Launch::Kernel(kernel) => {
                    if let Some(watch) = &watch {
                        watch.next_launch();
                    }
                    let job = self.job(position, trial, kernel, values, &arena, &notebook, watch.take());
                    let job = Arc::new(job);
                    run(Arc::clone(&job))?;
                    crashed = job.crashed.load(Ordering::Relaxed);
                    let stopped = job.stopped();
                    watch = Arc::into_inner(job).and_then(|j| j.watch);
                    if stopped {
                        break;
                    }
                }
            }
        }
        let kept = notebook.take();
        if !kept.printed.is_empty() {
            report(RunnerReport::Printed { text: String::from_utf8_lossy(&kept.printed).into_owned() });
        }
        for claim in kept.not_emulated {
            report(RunnerReport::NotEmulated(claim));
        }
        for finding in kept.findings.into_iter().map(PendingFinding::told) {
            report(RunnerReport::Finding { trial: number, finding });
        }
        if !crashed {
            report(RunnerReport::TrialDone { trial: number });
        }
        Ok(!crashed)
    }

    /// The values of a launch's arguments, checked against the entry's parameters.
    fn prepare(&self, launch: &Launch, arena: &mut Arena) -> Result<Vec<Box<[u64]>>, LaunchError> {
        let kernel = match launch {
            Launch::Memset { buffer, .. } => {
                return match arena.region(buffer) {
                    Some(region) if region.writable => Ok(Vec::new()),
                    Some(_) => Err(LaunchError::ReadOnly(buffer.clone())),
                    None => Err(LaunchError::NoBuffer(buffer.clone())),
                };
            }
            Launch::Kernel(kernel) => kernel,
        };
        let entry = self.entry(kernel)?;
        if !self.loaded.image.unknown {
            args::check(&kernel.entry, &kernel.args, &self.loaded.image.entries[entry])?;
        }
        refuse_shape(kernel)?;
        let address = |arena: &Arena, name: &str| {
            arena.region(name).map(|r| r.start as u64).ok_or_else(|| LaunchError::NoBuffer(name.to_owned()))
        };
        kernel
            .args
            .iter()
            .enumerate()
            .map(|(position, arg)| {
                let mut place = |arg: &Arg| match arg {
                    Arg::Pointer { buffer, offset } => Ok(address(arena, buffer)? + offset),
                    Arg::Pointers(names) => {
                        let all = names.iter().map(|n| address(arena, n)).collect::<Result<Vec<u64>, _>>()?;
                        Ok(arena.place(format!("argument {} of `{}`", position + 1, kernel.entry), &all)?)
                    }
                    _ => Ok(0),
                };
                if matches!(arg, Arg::Pointer { .. } | Arg::Pointers(_)) {
                    place(arg).map(|at| Box::from([at]))
                } else {
                    let bytes = arguments::bytes(arg, &mut place)?;
                    let mut words = vec![0u64; bytes.len().div_ceil(8).max(1) + 1];
                    for (word, chunk) in words.iter_mut().zip(bytes.chunks(8)) {
                        let mut eight = [0; 8];
                        eight[..chunk.len()].copy_from_slice(chunk);
                        *word = u64::from_le_bytes(eight);
                    }
                    Ok(words.into_boxed_slice())
                }
            })
            .collect()
    }

    fn entry(&self, kernel: &KernelLaunch) -> Result<usize, LaunchError> {
        self.request
            .entries
            .iter()
            .position(|e| *e == kernel.entry)
            .ok_or_else(|| LaunchError::NoEntry(kernel.entry.clone()))
    }

    #[expect(clippy::too_many_arguments, reason = "all that one launch is made of, used in one place")]
    fn job(
        &self,
        position: usize,
        trial: &RunnerTrial,
        kernel: &KernelLaunch,
        values: Vec<Box<[u64]>>,
        arena: &Arc<Arena>,
        notebook: &Arc<Notebook>,
        watch: Option<Watch>,
    ) -> Job {
        let entry = self.entry(kernel).map_or(0, |e| e);
        let threads: u32 = kernel.block.iter().product();
        let [x, y, _] = kernel.block;
        let order = positions(trial.order, threads, position as u64);
        Job {
            loaded: Arc::clone(&self.loaded),
            entry: self.entries[entry],
            name: kernel.entry.clone(),
            args: values.iter().map(|v| v.as_ptr() as usize).collect(),
            values,
            grid: kernel.grid,
            block: kernel.block,
            shared: kernel.shared,
            blocks: kernel.grid.iter().map(|n| u64::from(*n)).product(),
            next_block: AtomicU64::new(0),
            turns: turns(&order),
            order,
            coords: (0..threads).flat_map(|t| [t % x, t / x % y, t / x / y]).collect(),
            poison: trial.poison,
            cooperative: kernel.cooperative,
            cores: self.cores,
            starved: AtomicU32::new(0),
            grid_arrived: AtomicU64::new(0),
            grid_generation: AtomicU64::new(0),
            most_fibers: self.most_fibers,
            stop: AtomicBool::new(false),
            crashed: AtomicBool::new(false),
            watch,
            arena: Arc::clone(arena),
            notebook: Arc::clone(notebook),
        }
    }

    /// Fills `__constant__` symbols from their buffers.
    fn fill_constants(&self, arena: &Arena) -> Result<(), LaunchError> {
        // The symbols of a source that did not compile here do not exist. Its entries report why.
        let constants = if self.loaded.image.unknown { &[] } else { self.request.constants.as_slice() };
        for constant in constants {
            let symbol = constant.symbol.trim_start_matches("::");
            let variable = self.loaded.image.globals.iter().find(|v| v.name == symbol || v.symbol == symbol);
            let Some(variable) = variable else {
                return Err(LaunchError::NoConstant(symbol.to_owned()));
            };
            let Some(region) = arena.region(&constant.buffer) else {
                return Err(LaunchError::NoBuffer(constant.buffer.clone()));
            };
            if region.bytes as u64 > variable.size {
                return Err(LaunchError::ConstantTooSmall {
                    buffer: constant.buffer.clone(),
                    bytes: region.bytes,
                    symbol: symbol.to_owned(),
                    room: variable.size,
                });
            }
            let to = (self.loaded.base + variable.start as usize) as *mut u8;
            // SAFETY: the symbol spans at least as many bytes, in the writable data of the loaded image; no launch runs.
            unsafe { ptr::copy_nonoverlapping(region.start as *const u8, to, region.bytes) };
        }
        Ok(())
    }

    fn save_globals(&self) -> Vec<(usize, Vec<u8>)> {
        let ranges =
            self.loaded.image.writable.iter().map(|(start, size)| (self.loaded.base + *start as usize, *size as usize));
        // SAFETY: sections of the loaded image.
        ranges.map(|(at, size)| (at, unsafe { std::slice::from_raw_parts(at as *const u8, size) }.to_vec())).collect()
    }

    fn restore_globals(&self, saved: &[(usize, Vec<u8>)]) {
        for (at, bytes) in saved {
            // SAFETY: the writable section it was read from; no launch runs.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), *at as *mut u8, bytes.len()) };
        }
    }
}

/// Refuses blocks and grids that no device would take.
fn refuse_shape(kernel: &KernelLaunch) -> Result<(), LaunchError> {
    let threads: u64 = kernel.block.iter().map(|n| u64::from(*n)).product();
    let entry = || kernel.entry.clone();
    if threads == 0 || threads > 1024 || kernel.block[2] > 64 {
        return Err(LaunchError::Block { entry: entry(), block: kernel.block });
    }
    if kernel.grid.contains(&0) || kernel.grid[1] > 65535 || kernel.grid[2] > 65535 || kernel.grid[0] > i32::MAX as u32
    {
        return Err(LaunchError::Grid { entry: entry(), grid: kernel.grid });
    }
    if kernel.shared > MAX_DYNAMIC_SHARED {
        return Err(LaunchError::Shared { entry: entry(), bytes: kernel.shared });
    }
    Ok(())
}

fn memset(arena: &Arena, buffer: &str, value: u8, watch: Option<&Watch>) {
    if let Some((position, region)) = arena.regions.iter().enumerate().find(|(_, r)| r.name == buffer) {
        // SAFETY: mapped writable, as `prepare` checked; no launch runs.
        unsafe { ptr::write_bytes(region.start as *mut u8, value, region.bytes) };
        if let Some(watch) = watch {
            watch.filled(position);
        }
    }
}
