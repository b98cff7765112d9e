//! What the driver of a GPU needs and other confined processes do not have: a table of paths and calls, each with its reason. Knows names; applies nothing.
//!
//! `kforge worker --examine-driver` shows, on the machine at hand, what the driver uses and which entry is missing.

use std::path::PathBuf;

use libc::c_long;

/// Something that a driver may use.
pub(super) struct Grant<T> {
    /// What it is.
    pub(super) what: T,
    /// Why the driver needs it.
    pub(super) why: &'static str,
}

macro_rules! grants {
    ($($what:expr => $why:literal),* $(,)?) => { &[$(Grant { what: $what, why: $why }),*] };
}

/// Files and folders that a driver reads.
pub(super) const READ: &[Grant<&str>] = grants![
    "/proc/cpuinfo" => "the processor's features",
    "/proc/devices" => "the major numbers of its device files",
    "/proc/driver" => "the parameters of its kernel modules, and the list of GPUs",
    "/proc/meminfo" => "the size of the host's memory",
    "/proc/modules" => "which of its kernel modules are loaded",
    "/proc/sys/vm" => "overcommitment and the lowest address that can be mapped, before it reserves address space",
    "/sys/bus" => "the PCI devices",
    "/sys/devices" => "PCI devices, processors and NUMA nodes",
    "/sys/module" => "the parameters of its kernel modules",
    "/etc/nvidia" => "its configuration",
    "/usr/share/nvidia" => "its profiles of applications",
    "/etc/localtime" => "the time zone of its messages",
    "/usr/share/zoneinfo" => "the time zone of its messages",
];

/// Files and folders that a driver reads and writes, in addition to [`device_files`].
pub(super) const WRITE: &[Grant<&str>] = grants![
    "/proc/self" => "it names its threads by writing to `task/THREAD/comm`, and otherwise does not start",
];

/// Calls that are refused to other confined processes.
pub(super) const CALLS: &[Grant<(c_long, &str)>] = grants![
    (libc::SYS_memfd_create, "memfd_create") => "memory that it shares among its parts; its memory has no limit that this could exceed",
    (libc::SYS_socket, "socket") => "sockets of this machine only (`AF_UNIX`): driver 580 listens on one, for processes that import memory, and otherwise does not start",
    (libc::SYS_bind, "bind") => "the name of that socket, which is no file: Landlock lets it create none",
    (libc::SYS_listen, "listen") => "that socket; nothing can be accepted on it, because `accept`, `recvmsg` and `sendmsg` stay refused",
    (libc::SYS_unlink, "unlink") => "driver 580 removes old sockets of its own and does not start if the call is refused; Landlock refuses it for every file",
];

/// The prefixes of the names in `/dev` of files through which a driver controls devices.
const DEVICES: &[Grant<&str>] = grants![
    "nvidia" => "nvidiactl, one file for each GPU, nvidia-uvm (memory), nvidia-uvm-tools (from driver 570 on), nvidia-caps (slices of a GPU)",
    "dxg" => "the device of WSL",
];

/// The device files of this machine through which a driver controls devices.
pub fn device_files() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/dev").into_iter().flatten().flatten();
    let named = entries.filter(|entry| {
        let name = entry.file_name();
        DEVICES.iter().any(|prefix| name.to_string_lossy().starts_with(prefix.what))
    });
    // This file is always listed, because a confinement with device files is taken to include a driver.
    let mut all: Vec<PathBuf> = named.map(|entry| entry.path()).chain(["/dev/nvidiactl".into()]).collect();
    all.sort();
    all.dedup();
    all
}

/// The table for people: what a driver may use, and why.
pub fn table() -> Vec<(String, &'static str)> {
    let path = |how: &str, grant: &Grant<&str>| (format!("{how} {}", grant.what), grant.why);
    let devices = DEVICES.iter().map(|grant| (format!("control /dev/{}*", grant.what), grant.why));
    let calls = CALLS.iter().map(|grant| (format!("call {}", grant.what.1), grant.why));
    let paths = READ.iter().map(|grant| path("read", grant)).chain(WRITE.iter().map(|grant| path("write", grant)));
    devices.chain(paths).chain(calls).collect()
}

#[cfg(test)]
mod tests {
    use super::super::table::{ALONE, FILES, MODES, NEVER, numbers};
    use super::*;

    #[test]
    fn only_calls_that_are_otherwise_refused_are_granted() {
        let refused: Vec<c_long> = [NEVER, ALONE, MODES, FILES].into_iter().flat_map(numbers).collect();
        assert!(CALLS.iter().all(|grant| refused.contains(&grant.what.0)));
    }

    #[test]
    fn every_entry_has_a_reason_and_is_listed_once() {
        let all = table();
        assert!(all.iter().all(|(_, why)| !why.is_empty()));
        let mut names: Vec<&String> = all.iter().map(|(what, _)| what).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all.len());
    }
}
