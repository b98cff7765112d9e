//! Refuses what a candidate may not do although its runner had to do it before: write files or foreign descriptors. Reports attempts. Knows calls and one
//! signal; does not know who reads the report.
//!
//! A call that is refused to a candidate raises SIGSYS instead of being made. The handler here writes its number to the report and ends the process by a call
//! for which the filter kills, so that the end itself shows what happened even if the report is lost. A candidate cannot put another handler in its
//! place; one that blocks or ignores the signal is killed by the system. If it overwrites this code, its calls are refused without a report.
#![expect(unsafe_code, reason = "installs a signal handler, which makes system calls")]

use std::io;
use std::mem;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use libc as c;
use seccompiler::{SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

use super::calls::Threads;
use super::{Confinement, calls, table};

/// The descriptor of the report, for the handler.
static REPORT: AtomicI32 = AtomicI32::new(-1);

/// What the C library's headers know and `libc` does not.
const F_SETOWN_EX: i32 = 15;

/// A call that nothing makes; the filter kills for it.
const LAST: c::c_long = c::SYS_uselib;

/// Refuses writes to files and to descriptors other than the standard output and error and `report`, and has every refused call reported there before it ends
/// the process. Comes once, when nothing of ours but reporting is left to do. Does nothing where the system has no filters.
pub fn watch(keep: &Confinement, report: RawFd) -> io::Result<()> {
    if keep.programs || !calls::missing_here().is_empty() {
        return Ok(());
    }
    let refused = refused(keep, report)?;
    tell(Threads::Own, report, refused)
}

/// As [`watch`], for every thread of a process that has a driver's; calls that are refused to all confined processes are refused here too.
pub(super) fn watch_all(keep: &Confinement, report: RawFd) -> io::Result<()> {
    if !calls::missing_here().is_empty() {
        return Ok(());
    }
    calls::refuse_to(Threads::All, keep, SeccompAction::Trap)?;
    let refused = refused(keep, report)?;
    tell(Threads::All, report, refused)
}

/// Has every refused call reported to `report`, and refuses these too.
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
    // Last, because it refuses to install filters.
    calls::install(threads, refused, SeccompAction::Trap)
}

fn refused(keep: &Confinement, report: RawFd) -> io::Result<calls::Rules> {
    let is = |argument, value: i32| calls::when(argument, SeccompCmpOp::Eq, u64::from(value.unsigned_abs()));
    let mut rules: calls::Rules = table::numbers(table::DESCRIPTORS).map(|call| (call, vec![])).collect();
    // A driver has two descriptors for what it opened once; neither stands in the place of another.
    let driven = !keep.devices.is_empty();
    let duplicates: &[i32] = if driven { &[] } else { &[c::F_DUPFD, c::F_DUPFD_CLOEXEC] };
    if driven {
        rules.remove(&c::SYS_dup);
    }
    // A descriptor can be made to send any signal to any process when bytes come; Landlock knows of that since version 6 only.
    let commands = duplicates.iter().chain(&[c::F_SETPIPE_SZ, c::F_SETOWN, F_SETOWN_EX]);
    rules.insert(c::SYS_fcntl, commands.map(|command| is(1, *command)).collect::<Result<_, _>>()?);
    // Its own limits too, which the superuser could raise; to be asked for they leave out what to set.
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

/// Writes `{"attempted":{"call":41}}` as a line of its own, in whatever state the process is.
unsafe extern "C" fn told(_signal: i32, info: *mut c::siginfo_t, _context: *mut c::c_void) {
    /// The beginning of what the kernel gives with SIGSYS (`_sigsys` of its `siginfo`).
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
    // SAFETY: the line is ours. The second call ends the process: the filter says so; where it is not there, the third does.
    unsafe {
        c::write(REPORT.load(Ordering::Relaxed), line.as_ptr().cast(), line.len());
        c::syscall(LAST);
        c::_exit(i32::from(u8::MAX));
    }
}
