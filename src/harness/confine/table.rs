//! The system calls that a confined process may not make, and what a process that makes them attempts. Knows names and numbers; does not install filters.

use libc::c_long;

use super::calls;

/// Calls that attempt the same thing.
pub(super) struct Group {
    /// The attempt, to complete "the kernel tried to ...".
    pub(super) tried: &'static str,
    /// Numbers and names.
    pub(super) calls: &'static [(c_long, &'static str)],
}

macro_rules! group {
    ($tried:literal: $($name:ident)*) => { Group { tried: $tried, calls: &[$((libc::$name, stringify!($name))),*] } };
}

/// Refused to every confined process.
#[rustfmt::skip]
pub(super) const NEVER: &[Group] = &[
    group!("open a socket": SYS_socket SYS_socketpair),
    // These calls work only on sockets, which inherited pipes could be.
    group!("use the network": SYS_connect SYS_bind SYS_listen SYS_accept SYS_accept4 SYS_sendto SYS_sendmsg SYS_sendmmsg SYS_recvmsg SYS_recvmmsg),
    // Its memory, descriptors and scheduling.
    group!("access another process": SYS_ptrace SYS_process_vm_readv SYS_process_vm_writev SYS_process_madvise SYS_process_mrelease SYS_kcmp
        SYS_pidfd_open SYS_pidfd_getfd SYS_migrate_pages SYS_move_pages SYS_setpriority SYS_ioprio_set SYS_sched_setscheduler SYS_sched_setattr
        SYS_sched_setparam),
    group!("send a signal to another process": SYS_pidfd_send_signal SYS_tkill SYS_rt_sigqueueinfo SYS_rt_tgsigqueueinfo),
    group!("leave its process group": SYS_setpgid SYS_setsid),
    group!("use a system interface that no kernel needs": SYS_bpf SYS_keyctl SYS_add_key SYS_request_key SYS_perf_event_open
        SYS_io_uring_setup SYS_io_uring_enter SYS_io_uring_register SYS_userfaultfd SYS_init_module SYS_finit_module SYS_delete_module
        SYS_kexec_load SYS_kexec_file_load SYS_reboot SYS_swapon SYS_swapoff SYS_syslog SYS_acct SYS_quotactl SYS_personality SYS_settimeofday
        SYS_clock_settime SYS_adjtimex SYS_clock_adjtime SYS_sethostname SYS_setdomainname SYS_iopl SYS_ioperm SYS_modify_ldt SYS_vhangup
        SYS_fanotify_init SYS_lookup_dcookie),
    group!("change mounts or namespaces": SYS_mount SYS_umount2 SYS_pivot_root SYS_chroot SYS_move_mount SYS_fsopen SYS_fsconfig SYS_fsmount
        SYS_fspick SYS_open_tree SYS_mount_setattr SYS_setns SYS_unshare SYS_name_to_handle_at SYS_open_by_handle_at),
    // Memory that no limit on address space counts, and channels to other processes.
    group!("share memory or messages beyond its limits": SYS_memfd_create SYS_memfd_secret SYS_shmget SYS_shmat SYS_shmctl SYS_msgget SYS_msgsnd
        SYS_msgrcv SYS_msgctl SYS_semget SYS_semop SYS_semctl SYS_mq_open SYS_mq_unlink),
    // Landlock does not restrict these, whatever the path.
    group!("change metadata of files": SYS_chown SYS_fchown SYS_lchown SYS_fchownat SYS_setxattr SYS_lsetxattr SYS_fsetxattr SYS_removexattr
        SYS_lremovexattr SYS_fremovexattr),
];

/// The number of fchmodat2, available since Linux 6.6.
const FCHMODAT2: c_long = 452;

/// Refused to a process that may not start programs.
#[rustfmt::skip]
pub(super) const ALONE: &[Group] = &[
    group!("start a process": SYS_execve SYS_execveat SYS_fork SYS_vfork),
    group!("truncate a file": SYS_truncate),
];

/// Refused to a process that may not start programs. For other processes these calls succeed without effect: compilers and linkers set times and modes of their
/// output, which nothing needs, and Landlock would let them do that to any file of this user.
#[rustfmt::skip]
pub(super) const MODES: &[Group] = &[
    group!("change metadata of files": SYS_chmod SYS_fchmod SYS_fchmodat SYS_utime SYS_utimes SYS_utimensat SYS_futimesat),
    Group { tried: "change metadata of files", calls: &[(FCHMODAT2, "SYS_fchmodat2")] },
];

/// Also refused to a candidate: all ways to create, rename or remove files.
#[rustfmt::skip]
pub(super) const FILES: &[Group] = &[
    // The flags of `openat2` are in memory, which filters cannot read.
    group!("open a file for writing": SYS_creat SYS_openat2),
    group!("make, rename or remove files": SYS_mkdir SYS_mkdirat SYS_mknod SYS_mknodat SYS_unlink SYS_unlinkat SYS_rmdir SYS_rename SYS_renameat
        SYS_renameat2 SYS_link SYS_linkat SYS_symlink SYS_symlinkat),
];

/// Also refused to a candidate: calls that write to a descriptor other than by stores to memory, or that put another file behind a descriptor.
#[rustfmt::skip]
pub(super) const DESCRIPTORS: &[Group] = &[
    group!("write to a descriptor that is not its own": SYS_sendfile SYS_splice SYS_tee SYS_vmsplice SYS_copy_file_range SYS_ftruncate SYS_fallocate),
    group!("replace a descriptor with another": SYS_dup SYS_dup2 SYS_dup3),
    group!("change which calls are refused": SYS_seccomp),
];

/// Refused to a candidate on descriptors other than standard output, standard error and the report.
#[rustfmt::skip]
pub(super) const WRITES: &[Group] = &[
    group!("write to a descriptor that is not its own": SYS_write SYS_writev SYS_pwrite64 SYS_pwritev SYS_pwritev2),
];

/// Refused only with some arguments.
#[rustfmt::skip]
const BY_ARGUMENT: &[Group] = &[
    group!("open a file for writing": SYS_open SYS_openat),
    group!("start a process": SYS_clone),
    group!("send a signal to another process": SYS_kill SYS_tgkill),
    group!("change limits": SYS_prlimit64 SYS_setrlimit),
    group!("set the CPU affinity of another process": SYS_sched_setaffinity),
    group!("leave its confinement": SYS_prctl),
    group!("write input to a terminal": SYS_ioctl),
    group!("duplicate a descriptor, or have signals sent by one": SYS_fcntl),
    group!("hide a call that is refused": SYS_rt_sigaction),
    group!("make memory executable": SYS_mmap SYS_mprotect SYS_pkey_mprotect),
    group!("end the process before the run had ended": SYS_exit_group),
];

/// What a call attempts, with the name of the call: `open a socket (socket)`.
pub fn attempt(call: i64) -> String {
    let call = call & !calls::X32;
    let all = [NEVER, ALONE, MODES, FILES, DESCRIPTORS, WRITES, BY_ARGUMENT].into_iter().flatten();
    let found = all.flat_map(|group| group.calls.iter().map(move |(number, name)| (group.tried, *number, *name)));
    match found.into_iter().find(|(_, number, _)| *number == call) {
        Some((tried, _, name)) => format!("{tried} ({})", name.trim_start_matches("SYS_")),
        None => format!("make the system call {call}"),
    }
}

/// The numbers of all calls of some groups.
pub(super) fn numbers(groups: &'static [Group]) -> impl Iterator<Item = c_long> {
    groups.iter().flat_map(|group| group.calls.iter().map(|(number, _)| *number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_said_in_words() {
        assert_eq!(attempt(libc::SYS_socket), "open a socket (socket)");
        assert_eq!(attempt(libc::SYS_openat), "open a file for writing (openat)");
        assert_eq!(attempt(FCHMODAT2), "change metadata of files (fchmodat2)");
        assert_eq!(attempt(libc::SYS_exit_group), "end the process before the run had ended (exit_group)");
        assert_eq!(attempt(9999), "make the system call 9999");
    }
}
