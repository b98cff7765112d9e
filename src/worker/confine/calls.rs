//! Which system calls a confined process may not make, by seccomp. Knows calls; does not know files.
//!
//! A list of what is refused rather than of what is allowed: what a C library calls for memory, threads and time differs from system to system, and what
//! is refused here is what could reach other processes, the network, files' metadata, or memory beyond the limits. Refused calls fail with EPERM, so that
//! a library that merely asks goes on.

use std::collections::BTreeMap;
use std::io;

use libc::{self as c, c_long};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter,
};

use super::Confinement;

/// Refused always.
#[rustfmt::skip]
const NEVER: &[c_long] = &[
    // The network, and pipes that could be mistaken for it.
    c::SYS_socket, c::SYS_socketpair, c::SYS_connect, c::SYS_bind, c::SYS_listen, c::SYS_accept, c::SYS_accept4, c::SYS_sendto, c::SYS_sendmsg,
    c::SYS_sendmmsg, c::SYS_recvmsg, c::SYS_recvmmsg,
    // Other processes: their memory, their descriptors, their scheduling.
    c::SYS_ptrace, c::SYS_process_vm_readv, c::SYS_process_vm_writev, c::SYS_process_madvise, c::SYS_process_mrelease, c::SYS_kcmp,
    c::SYS_pidfd_open, c::SYS_pidfd_getfd, c::SYS_pidfd_send_signal, c::SYS_tkill, c::SYS_rt_sigqueueinfo, c::SYS_rt_tgsigqueueinfo,
    c::SYS_migrate_pages, c::SYS_move_pages, c::SYS_setpriority, c::SYS_ioprio_set, c::SYS_sched_setscheduler, c::SYS_sched_setattr,
    c::SYS_sched_setparam,
    // Leaving the group that is killed as one.
    c::SYS_setpgid, c::SYS_setsid,
    // The kernel's own doors.
    c::SYS_bpf, c::SYS_keyctl, c::SYS_add_key, c::SYS_request_key, c::SYS_perf_event_open, c::SYS_io_uring_setup, c::SYS_io_uring_enter,
    c::SYS_io_uring_register, c::SYS_userfaultfd, c::SYS_init_module, c::SYS_finit_module, c::SYS_delete_module, c::SYS_kexec_load,
    c::SYS_kexec_file_load, c::SYS_reboot, c::SYS_swapon, c::SYS_swapoff, c::SYS_syslog, c::SYS_acct, c::SYS_quotactl, c::SYS_personality,
    c::SYS_settimeofday, c::SYS_clock_settime, c::SYS_adjtimex, c::SYS_clock_adjtime, c::SYS_sethostname, c::SYS_setdomainname,
    c::SYS_iopl, c::SYS_ioperm, c::SYS_modify_ldt, c::SYS_vhangup, c::SYS_fanotify_init, c::SYS_lookup_dcookie,
    // Mounts and name spaces.
    c::SYS_mount, c::SYS_umount2, c::SYS_pivot_root, c::SYS_chroot, c::SYS_move_mount, c::SYS_fsopen, c::SYS_fsconfig, c::SYS_fsmount,
    c::SYS_fspick, c::SYS_open_tree, c::SYS_mount_setattr, c::SYS_setns, c::SYS_unshare, c::SYS_name_to_handle_at, c::SYS_open_by_handle_at,
    // Memory that no limit on address space counts, and ways to other processes.
    c::SYS_memfd_create, c::SYS_memfd_secret, c::SYS_shmget, c::SYS_shmat, c::SYS_shmctl, c::SYS_msgget, c::SYS_msgsnd, c::SYS_msgrcv,
    c::SYS_msgctl, c::SYS_semget, c::SYS_semop, c::SYS_semctl, c::SYS_mq_open, c::SYS_mq_unlink,
    // What Landlock leaves open: metadata of files, of whatever path.
    c::SYS_chown, c::SYS_fchown, c::SYS_lchown, c::SYS_fchownat, c::SYS_setxattr, c::SYS_lsetxattr,
    c::SYS_fsetxattr, c::SYS_removexattr, c::SYS_lremovexattr, c::SYS_fremovexattr,
];

/// Refused to a process that may not start programs. Programs such as compilers set times and modes of the files they write.
#[rustfmt::skip]
const NOT_ALONE: &[c_long] = &[
    c::SYS_execve, c::SYS_execveat, c::SYS_fork, c::SYS_vfork,
    c::SYS_chmod, c::SYS_fchmod, c::SYS_fchmodat, FCHMODAT2, c::SYS_utime, c::SYS_utimes, c::SYS_utimensat, c::SYS_futimesat, c::SYS_truncate,
];

/// fchmodat2, since Linux 6.6.
const FCHMODAT2: c_long = 452;
/// Calls of the x32 interface carry this bit and do what the same number does without it.
const X32: c_long = 0x4000_0000;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Restricts this thread and its future ones. Gives what the kernel could not do.
pub(super) fn restrict(keep: &Confinement) -> io::Result<Vec<String>> {
    let missing = missing_here();
    if missing.is_empty() {
        install(refused(keep)?, c::EPERM)?;
        // The arguments of clone3 lie in memory, where no filter can look: a C library that is told there is no such call uses clone.
        install([(c::SYS_clone3, vec![])].into(), c::ENOSYS)?;
    }
    Ok(missing)
}

fn refused(keep: &Confinement) -> io::Result<Rules> {
    let mut rules: Rules = NEVER.iter().map(|call| (*call, vec![])).collect();
    // Dying with the parent, and who adopts orphans, were settled before.
    let options = [c::PR_SET_PDEATHSIG, c::PR_SET_CHILD_SUBREAPER, c::PR_SET_MM, c::PR_SET_PTRACER];
    let options = options.iter().map(|option| when(0, SeccompCmpOp::Eq, option.unsigned_abs().into()));
    rules.insert(c::SYS_prctl, options.collect::<Result<_, _>>()?);
    // Limits of others; 0 is oneself. Input typed into a terminal by whoever holds it.
    rules.insert(c::SYS_prlimit64, vec![when(0, SeccompCmpOp::Ne, 0)?]);
    rules.insert(c::SYS_ioctl, vec![when(1, SeccompCmpOp::Eq, c::TIOCSTI)?]);
    if !keep.programs {
        rules.extend(NOT_ALONE.iter().map(|call| (*call, vec![])));
        let own = u64::from(std::process::id());
        // To oneself signals may go: abort does that.
        rules.insert(c::SYS_kill, vec![when(0, SeccompCmpOp::Ne, own)?]);
        rules.insert(c::SYS_tgkill, vec![when(0, SeccompCmpOp::Ne, own)?]);
        rules.insert(c::SYS_clone, vec![when(0, SeccompCmpOp::MaskedEq(c::CLONE_THREAD as u64), 0)?]);
    }
    Ok(rules)
}

fn when(argument: u8, is: SeccompCmpOp, value: u64) -> io::Result<SeccompRule> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, is, value).map_err(io::Error::other)?;
    SeccompRule::new(vec![condition]).map_err(io::Error::other)
}

fn install(rules: Rules, errno: i32) -> io::Result<()> {
    let arch = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let x32 = rules.iter().map(|(call, rules)| (call | X32, rules.clone())).collect::<Vec<_>>();
    let rules = rules.into_iter().chain(x32).collect();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno.unsigned_abs()), arch);
    let program: BpfProgram = filter.and_then(TryInto::try_into).map_err(io::Error::other)?;
    apply_filter(&program).map_err(io::Error::other)
}

/// What [`restrict`] would give, without restricting.
pub(super) fn missing_here() -> Vec<String> {
    match std::path::Path::new("/proc/sys/kernel/seccomp/actions_avail").exists() {
        true => vec![],
        false => {
            vec!["the kernel has no seccomp filters: candidate code could open sockets and start processes".to_string()]
        }
    }
}
