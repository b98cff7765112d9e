//! Refuses system calls to a confined process, with seccomp. Knows how calls are refused; `table` lists the calls, `files` handles paths.
//!
//! This is a list of refused calls rather than of allowed ones, because the calls of a C library for memory, threads and time differ between systems. The
//! refused calls could reach other processes, the network, file metadata, or memory beyond the limits. For a program (an interpreter, a compiler) refused calls
//! fail with EPERM, so that a library that only tries a call continues. For a candidate they raise SIGSYS, which ends it: see `attempts`.

use std::collections::BTreeMap;
use std::io;

use libc as c;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter, apply_filter_all_threads,
};

use super::{Confinement, driver, table};

/// Defined in the headers of the C library but not in `libc`.
pub(super) const F_SETOWN_EX: i32 = 15;

/// Calls of the x32 interface have this bit set, and otherwise the same numbers and effects.
pub(super) const X32: i64 = 0x4000_0000;

pub(super) type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The threads to which calls are refused.
#[derive(Debug, Clone, Copy)]
pub(super) enum Threads {
    /// This thread and the threads that it starts later.
    Own,
    /// All threads of this process and the threads that they start later.
    All,
}

/// Restricts this thread and the threads that it starts later. Returns what the kernel could not do.
pub(super) fn restrict(keep: &Confinement) -> io::Result<Vec<String>> {
    let missing = missing_here();
    refuse(keep, if keep.programs { fails() } else { SeccompAction::Trap })?;
    Ok(missing)
}

/// A refused call fails, so that a library that only tries it continues.
pub(super) fn fails() -> SeccompAction {
    SeccompAction::Errno(c::EPERM.unsigned_abs())
}

/// Refuses calls with the action `refusal`, if the kernel can.
pub(super) fn refuse(keep: &Confinement, refusal: SeccompAction) -> io::Result<()> {
    refuse_to(Threads::Own, keep, refusal)
}

/// The same for `threads`.
pub(super) fn refuse_to(threads: Threads, keep: &Confinement, refusal: SeccompAction) -> io::Result<()> {
    if !missing_here().is_empty() {
        return Ok(());
    }
    filters(keep, refusal)?.into_iter().try_for_each(|(rules, action)| install(threads, rules, action))
}

/// The calls that are refused, and what happens instead: a filter each, to be installed in this order.
fn filters(keep: &Confinement, refusal: SeccompAction) -> io::Result<Vec<(Rules, SeccompAction)>> {
    let mut filters = vec![(refused(keep)?, refusal)];
    if keep.programs {
        let done = SeccompAction::Errno(0);
        filters.push((table::numbers(table::MODES).map(|call| (call, vec![])).collect(), done));
    }
    // The arguments of clone3 are in memory, which filters cannot read. When the call fails as unknown, the C library uses clone.
    filters.push(([(c::SYS_clone3, vec![])].into(), SeccompAction::Errno(c::ENOSYS.unsigned_abs())));
    Ok(filters)
}

/// The filters of a process that may start programs, each as the bytes of its instructions in hexadecimal digits; none if the kernel has no filters.
pub(super) fn portable(keep: &Confinement) -> io::Result<Vec<String>> {
    if !missing_here().is_empty() {
        return Ok(vec![]);
    }
    filters(keep, fails())?.into_iter().map(|(rules, action)| Ok(digits(&program(rules, action)?))).collect()
}

/// The bytes of a filter's instructions in hexadecimal digits.
pub(super) fn digits(program: &BpfProgram) -> String {
    let bytes = program.iter().flat_map(|one| {
        let ([a, b], [e, f, g, h]) = (one.code.to_ne_bytes(), one.k.to_ne_bytes());
        [a, b, one.jt, one.jf, e, f, g, h]
    });
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

/// Refuses calls to this thread and the threads that it starts later, before it loads a driver: a refused call fails.
pub(super) fn refuse_beside_driver(keep: &Confinement) -> io::Result<()> {
    if !missing_here().is_empty() {
        return Ok(());
    }
    // As in `refuse_to`. The other filter comes last, because it refuses to install filters.
    install(Threads::Own, [(c::SYS_clone3, vec![])].into(), SeccompAction::Errno(c::ENOSYS.unsigned_abs()))?;
    install(Threads::Own, refused_beside_driver(keep)?, fails())
}

/// The calls that are refused to a process that loads a driver and otherwise runs only code of kforge's own: those that are refused to every confined process
/// without programs, what creates or removes files, and what would change its limits or the list of refused calls. Calls that write to descriptors are allowed,
/// because Landlock decides which files there are descriptors for.
pub(super) fn refused_beside_driver(keep: &Confinement) -> io::Result<Rules> {
    let is = |argument, value: i32| when(argument, SeccompCmpOp::Eq, u64::from(value.unsigned_abs()));
    let mut rules = refused(&Confinement { programs: false, ..keep.clone() })?;
    rules.extend(table::numbers(table::FILES).map(|call| (call, vec![])));
    let sets = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0).map_err(io::Error::other)?;
    rules.entry(c::SYS_prlimit64).or_default().push(SeccompRule::new(vec![sets]).map_err(io::Error::other)?);
    rules.insert(c::SYS_setrlimit, vec![]);
    rules.insert(c::SYS_fcntl, vec![is(1, c::F_SETOWN)?, is(1, F_SETOWN_EX)?]);
    rules.entry(c::SYS_prctl).or_default().push(is(0, c::PR_SET_SECCOMP)?);
    rules.insert(c::SYS_seccomp, vec![]);
    grant_driver(&mut rules)?;
    Ok(rules)
}

/// Allows what a driver needs. The network stays refused.
fn grant_driver(rules: &mut Rules) -> io::Result<()> {
    for granted in driver::CALLS {
        rules.remove(&granted.what.0);
    }
    rules.insert(c::SYS_socket, vec![when(0, SeccompCmpOp::Ne, u64::from(c::AF_UNIX.unsigned_abs()))?]);
    Ok(())
}

fn refused(keep: &Confinement) -> io::Result<Rules> {
    let mut rules: Rules = table::numbers(table::NEVER).map(|call| (call, vec![])).collect();
    // The parent-death signal and the subreaper were set before.
    let options = [c::PR_SET_PDEATHSIG, c::PR_SET_CHILD_SUBREAPER, c::PR_SET_MM, c::PR_SET_PTRACER];
    let options = options.iter().map(|option| when(0, SeccompCmpOp::Eq, option.unsigned_abs().into()));
    rules.insert(c::SYS_prctl, options.collect::<Result<_, _>>()?);
    // Limits of other processes (0 is this process), and simulated input to a terminal.
    rules.insert(c::SYS_prlimit64, vec![when(0, SeccompCmpOp::Ne, 0)?]);
    rules.insert(c::SYS_ioctl, vec![when(1, SeccompCmpOp::Eq, c::TIOCSTI)?]);
    // The processors of other processes: the verifier counts its processors by its own mask, and if every kernel ran on one processor, it would run out of
    // time.
    rules.insert(c::SYS_sched_setaffinity, vec![when(0, SeccompCmpOp::Ne, 0)?]);
    if !keep.programs {
        rules.extend(table::numbers(table::ALONE).chain(table::numbers(table::MODES)).map(|call| (call, vec![])));
        let own = u64::from(std::process::id());
        // A process may signal itself: abort does.
        rules.insert(c::SYS_kill, vec![when(0, SeccompCmpOp::Ne, own)?]);
        rules.insert(c::SYS_tgkill, vec![when(0, SeccompCmpOp::Ne, own)?]);
        rules.insert(c::SYS_clone, vec![when(0, SeccompCmpOp::MaskedEq(c::CLONE_THREAD as u64), 0)?]);
    } else if !keep.devices.is_empty() {
        // A program that loads a driver itself, such as Python with PyTorch.
        grant_driver(&mut rules)?;
    }
    Ok(rules)
}

pub(super) fn when(argument: u8, is: SeccompCmpOp, value: u64) -> io::Result<SeccompRule> {
    SeccompRule::new(vec![condition(argument, is, value)?]).map_err(io::Error::other)
}

pub(super) fn condition(argument: u8, is: SeccompCmpOp, value: u64) -> io::Result<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, is, value).map_err(io::Error::other)
}

pub(super) fn install(threads: Threads, rules: Rules, refusal: SeccompAction) -> io::Result<()> {
    let program = program(rules, refusal)?;
    match threads {
        Threads::Own => apply_filter(&program),
        Threads::All => apply_filter_all_threads(&program),
    }
    .map_err(io::Error::other)
}

pub(super) fn program(rules: Rules, refusal: SeccompAction) -> io::Result<BpfProgram> {
    let arch = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let x32 = rules.iter().map(|(call, rules)| (call | X32, rules.clone())).collect::<Vec<_>>();
    let rules = rules.into_iter().chain(x32).collect();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refusal, arch);
    filter.and_then(TryInto::try_into).map_err(io::Error::other)
}

/// What [`restrict`] would return, without restricting.
pub(super) fn missing_here() -> Vec<String> {
    match std::path::Path::new("/proc/sys/kernel/seccomp/actions_avail").exists() {
        true => vec![],
        false => {
            vec!["the kernel has no seccomp filters: candidate code and compilers could open sockets and start processes".to_string()]
        }
    }
}
