//! Refuses what a runner had to do before but a candidate may not: writing to files or foreign descriptors. Reports attempts. Knows calls, threads and one
//! signal; does not know who reads the report.
//!
//! A refused call is not executed but raises SIGSYS. The handler here has the number of the call written to the report, and the process ended by a call for
//! which the filter kills. So the exit status shows what happened even if the report is lost. A candidate cannot install another handler. If it blocks or ignores
//! the signal, the system kills it. If it overwrites this code, its calls are refused without a report.
//!
//! The threads of a runner on `cpu` are not equal, because a candidate that reported the end of its run, and ended the process, would hide every finding that
//! the runner had yet to report:
//!
//! | thread | candidate code | may write the report, and end the process |
//! |---|---|---|
//! | the first one | never: it starts no code of the binary, and all signals are blocked in it, because a handler may be the candidate's | yes |
//! | the one that waits for attempts | never, likewise | yes |
//! | each that calls [`candidate_thread`], and those that it starts | yes | no: the system refuses both, and that is an attempt like any other |
#![expect(unsafe_code, reason = "installs a signal handler, which makes system calls")]

use std::io;
use std::mem;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc;

use libc as c;
use seccompiler::{SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

use super::calls::{F_SETOWN_EX, Threads};
use super::{Confinement, calls, table};

/// The report's descriptor, for the handler.
static REPORT: AtomicI32 = AtomicI32::new(-1);

/// Whether candidate code has threads of its own, which may not write to the report.
static APART: AtomicBool = AtomicBool::new(false);

/// The number of the first refused call of such a thread.
static ATTEMPTED: AtomicI32 = AtomicI32::new(NOTHING);
const NOTHING: i32 = -1;

/// A call that no program makes; the filter kills the process for it.
const LAST: c::c_long = c::SYS_uselib;

/// Refuses writes to files and to descriptors other than standard output, standard error and `report`. Every refused call is written to `report` and then ends
/// the process. Called once, by the first thread, when nothing but reporting is left to do for the runner: all signals are blocked in this thread from now on, and
/// candidate code runs only in threads that have called [`candidate_thread`]. Does nothing if the system has no filters.
pub fn watch(keep: &Confinement, report: RawFd) -> io::Result<()> {
    if keep.programs || !calls::missing_here().is_empty() {
        return Ok(());
    }
    let mut refused = refused(keep, report)?;
    // Each thread of the candidate installs one more filter.
    refused.remove(&c::SYS_seccomp);
    refused.remove(&c::SYS_prctl);
    tell(Threads::Own, report, refused)?;
    signals(c::SIG_BLOCK)?;
    // Its start takes locks of the loader, which the candidate may hold for ever as soon as it is loaded.
    let (starts, started) = mpsc::channel::<()>();
    std::thread::Builder::new().name("attempts".into()).stack_size(64 << 10).spawn(move || {
        drop(starts);
        wait_for_attempts();
    })?;
    let _ = started.recv();
    APART.store(true, Ordering::Release);
    Ok(())
}

/// Makes the calling thread, and those that it starts later, one of the candidate: it can neither write to the report nor end the process. Must be called before
/// the thread runs any of the candidate's code. Does nothing in a process that does not [`watch`].
pub fn candidate_thread() -> io::Result<()> {
    if !APART.load(Ordering::Acquire) {
        return Ok(());
    }
    let report = u64::from(REPORT.load(Ordering::Relaxed).unsigned_abs());
    let mut rules: calls::Rules = [(c::SYS_exit_group, vec![]), (c::SYS_seccomp, vec![])].into();
    for call in table::numbers(table::WRITES) {
        rules.insert(call, vec![calls::when(0, SeccompCmpOp::Eq, report)?]);
    }
    rules.insert(c::SYS_prctl, vec![calls::when(0, SeccompCmpOp::Eq, u64::from(c::PR_SET_SECCOMP.unsigned_abs()))?]);
    // Other code for the threads that may do what these may not. The loader maps code from files, and none that can be written.
    let bits = |argument, bits: i32| {
        let bits = u64::from(bits.unsigned_abs());
        calls::when(argument, SeccompCmpOp::MaskedEq(bits), bits)
    };
    rules.insert(c::SYS_mmap, vec![bits(2, c::PROT_WRITE | c::PROT_EXEC)?]);
    for call in [c::SYS_mprotect, c::SYS_pkey_mprotect] {
        rules.insert(call, vec![bits(2, c::PROT_EXEC)?]);
    }
    signals(c::SIG_UNBLOCK)?;
    // Last, because it refuses to install filters.
    calls::install(Threads::Own, rules, SeccompAction::Trap)
}

/// Blocks or unblocks every signal in the calling thread.
fn signals(how: i32) -> io::Result<()> {
    // SAFETY: the set is initialized before it is used, and is this function's own.
    let failed = unsafe {
        let mut all = mem::zeroed();
        c::sigfillset(&raw mut all);
        c::pthread_sigmask(how, &raw const all, ptr::null_mut())
    };
    if failed == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(failed)) }
}

/// Waits until a thread of the candidate attempts a refused call, reports the call, and ends the process.
fn wait_for_attempts() {
    while ATTEMPTED.load(Ordering::Acquire) == NOTHING {
        // SAFETY: waits on a word that lives as long as the process.
        unsafe {
            c::syscall(
                c::SYS_futex,
                ATTEMPTED.as_ptr(),
                c::FUTEX_WAIT | c::FUTEX_PRIVATE_FLAG,
                NOTHING,
                ptr::null::<c::timespec>(),
            )
        };
    }
    report_and_end(ATTEMPTED.load(Ordering::Acquire))
}

/// Like [`watch`], for all threads of a process with a driver. Also refuses the calls that are refused to all confined processes.
pub(super) fn watch_all(keep: &Confinement, report: RawFd) -> io::Result<()> {
    if !calls::missing_here().is_empty() {
        return Ok(());
    }
    calls::refuse_to(Threads::All, keep, SeccompAction::Trap)?;
    let refused = refused(keep, report)?;
    tell(Threads::All, report, refused)
}

/// Installs the handler that reports refused calls to `report`, and refuses the calls in `refused`.
fn tell(threads: Threads, report: RawFd, refused: calls::Rules) -> io::Result<()> {
    REPORT.store(report, Ordering::Relaxed);
    // SAFETY: `told` makes only system calls, on its own memory.
    let installed = unsafe {
        let mut action: c::sigaction = mem::zeroed();
        action.sa_sigaction = told as *const () as usize;
        action.sa_flags = c::SA_SIGINFO | c::SA_ONSTACK;
        c::sigaction(c::SIGSYS, &action, ptr::null_mut())
    };
    if installed != 0 {
        return Err(io::Error::last_os_error());
    }
    calls::install(threads, [(LAST, vec![])].into(), SeccompAction::KillProcess)?;
    // Comes last, because it refuses to install filters.
    calls::install(threads, refused, SeccompAction::Trap)
}

fn refused(keep: &Confinement, report: RawFd) -> io::Result<calls::Rules> {
    let is = |argument, value: i32| calls::when(argument, SeccompCmpOp::Eq, u64::from(value.unsigned_abs()));
    let mut rules: calls::Rules = table::numbers(table::DESCRIPTORS).map(|call| (call, vec![])).collect();
    // A driver duplicates a descriptor that it opened; the copy does not replace another descriptor.
    let driven = !keep.devices.is_empty();
    let duplicates: &[i32] = if driven { &[] } else { &[c::F_DUPFD, c::F_DUPFD_CLOEXEC] };
    if driven {
        rules.remove(&c::SYS_dup);
    }
    // A descriptor can be set to send any signal to any process when data arrives; Landlock prevents that only since version 6.
    let commands = duplicates.iter().chain(&[c::F_SETPIPE_SZ, c::F_SETOWN, F_SETOWN_EX]);
    rules.insert(c::SYS_fcntl, commands.map(|command| is(1, *command)).collect::<Result<_, _>>()?);
    // Its own limits too, because the superuser could raise them. The third argument is null when limits are only read.
    let sets = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0).map_err(io::Error::other)?;
    rules.insert(c::SYS_prlimit64, vec![SeccompRule::new(vec![sets]).map_err(io::Error::other)?]);
    rules.insert(c::SYS_setrlimit, vec![]);
    rules.insert(c::SYS_rt_sigaction, vec![is(0, c::SIGSYS)?]);
    rules.insert(c::SYS_prctl, vec![is(0, c::PR_SET_SECCOMP)?]);
    if keep.scratch.is_none() {
        rules.extend(table::numbers(table::FILES).map(|call| (call, vec![])));
    }
    if keep.scratch.is_none() && !driven {
        let other = |fd: RawFd| calls::condition(0, SeccompCmpOp::Ne, u64::from(fd.unsigned_abs()));
        for call in table::numbers(table::WRITES) {
            let others = [c::STDOUT_FILENO, c::STDERR_FILENO, report].map(other);
            let others = others.into_iter().collect::<Result<_, _>>()?;
            rules.insert(call, vec![SeccompRule::new(others).map_err(io::Error::other)?]);
        }
        for (call, argument) in [(c::SYS_open, 1), (c::SYS_openat, 2)] {
            let any = [c::O_WRONLY, c::O_RDWR, c::O_CREAT, c::O_TRUNC].map(|flag| {
                let flag = u64::from(flag.unsigned_abs());
                calls::when(argument, SeccompCmpOp::MaskedEq(flag), flag)
            });
            rules.insert(call, any.into_iter().collect::<Result<_, _>>()?);
        }
    }
    Ok(rules)
}

/// Has a refused call reported. Must work whatever state the process is in.
unsafe extern "C" fn told(_signal: i32, info: *mut c::siginfo_t, _context: *mut c::c_void) {
    /// The beginning of the data that the kernel passes with SIGSYS (`_sigsys` of its `siginfo`).
    #[repr(C)]
    struct Sigsys {
        signal: i32,
        errno: i32,
        code: i32,
        address: *mut c::c_void,
        call: i32,
    }
    // SAFETY: the system passes a valid description of the signal, laid out as above.
    let call = unsafe { (*info.cast::<Sigsys>()).call };
    if !APART.load(Ordering::Acquire) {
        report_and_end(call);
    }
    // This thread may be the candidate's, which cannot write to the report. Of several attempts, the first is reported.
    let _ = ATTEMPTED.compare_exchange(NOTHING, call, Ordering::AcqRel, Ordering::Relaxed);
    // SAFETY: wakes whoever waits on the word; then waits for the end of the process.
    unsafe {
        c::syscall(c::SYS_futex, ATTEMPTED.as_ptr(), c::FUTEX_WAKE | c::FUTEX_PRIVATE_FLAG, 1);
        loop {
            c::pause();
        }
    }
}

/// Writes `{"attempted":{"call":41}}` as a line of its own, and ends the process.
fn report_and_end(call: i32) -> ! {
    let mut line = *b"\n{\"attempted\":{\"call\":          0}}\n";
    // Numbers in JSON have no leading zeros, but may have spaces before them.
    let (mut at, mut rest) = (line.len() - 4, call.unsigned_abs());
    while rest > 0 {
        line[at] = b'0' + (rest % 10) as u8;
        (at, rest) = (at - 1, rest / 10);
    }
    // SAFETY: the line is ours. The filter ends the process at the second call; without the filter, the third call does.
    unsafe {
        c::write(REPORT.load(Ordering::Relaxed), line.as_ptr().cast(), line.len());
        c::syscall(LAST);
        c::_exit(i32::from(u8::MAX));
    }
}
