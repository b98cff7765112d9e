//! Refuses what a runner had to do before but a candidate may not: writing to files or foreign descriptors. Reports attempts. Knows calls and one signal; does
//! not know who reads the report.
//!
//! A refused call is not executed but raises SIGSYS. The handler here writes the number of the call to the report and ends the process by a call for which the
//! filter kills. So the exit status shows what happened even if the report is lost. A candidate cannot install another handler. If it blocks or ignores the
//! signal, the system kills it. If it overwrites this code, its calls are refused without a report.
#![expect(unsafe_code, reason = "installs a signal handler, which makes system calls")]

use std::io;
use std::mem;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use libc as c;
use seccompiler::{SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

use super::calls::{F_SETOWN_EX, Threads};
use super::{Confinement, calls, table};

/// The report's descriptor, for the handler.
static REPORT: AtomicI32 = AtomicI32::new(-1);

/// A call that no program makes; the filter kills the process for it.
const LAST: c::c_long = c::SYS_uselib;

/// Refuses writes to files and to descriptors other than standard output, standard error and `report`. Every refused call is written to `report` before it ends
/// the process. Called once, when nothing but reporting is left to do for the runner. Does nothing if the system has no filters.
pub fn watch(keep: &Confinement, report: RawFd) -> io::Result<()> {
    if keep.programs || !calls::missing_here().is_empty() {
        return Ok(());
    }
    let refused = refused(keep, report)?;
    tell(Threads::Own, report, refused)
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

/// Writes `{"attempted":{"call":41}}` as a line of its own. Must work whatever state the process is in.
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
