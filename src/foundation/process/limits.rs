//! Limits on what a process may use. A process sets its own limits, because nothing runs between fork and exec.

use std::ffi::OsString;
use std::io;

use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};

use super::family;

/// Limits on one process and what it starts. `None` leaves a limit unchanged. Core dumps are always off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of address space.
    pub address_space: Option<u64>,
    /// Seconds of processor time of all threads together.
    pub cpu_s: Option<u64>,
    /// Bytes of one file that the process writes.
    pub file_size: Option<u64>,
    /// File descriptors.
    pub open_files: Option<u64>,
    /// Processes and threads of this user in all programs together. The system ignores this limit for the superuser.
    pub processes: Option<u64>,
    /// The process id of the parent. This process is killed when the thread that started it ends.
    pub die_with: Option<u32>,
}

impl Limits {
    /// Sets the limits for this process. A limit that is already lower stays.
    pub fn apply(&self) -> io::Result<()> {
        if let Some(parent) = self.die_with {
            family::die_with_parent(parent)?;
        }
        let wanted = [
            (Resource::As, self.address_space),
            (Resource::Cpu, self.cpu_s),
            (Resource::Fsize, self.file_size),
            (Resource::Nofile, self.open_files),
            (Resource::Nproc, self.processes),
            (Resource::Core, Some(0)),
        ];
        for (resource, value) in wanted {
            let Some(value) = value else { continue };
            let old = rustix::process::getrlimit(resource);
            let value = old.maximum.map_or(value, |most| most.min(value));
            setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })?;
        }
        Ok(())
    }
}

/// The hidden command that a [`super::Command`] with limits starts. `args` are the limits as JSON, the program, and the arguments of the program. Sets the
/// limits and becomes the program; returns only if that fails.
pub fn exec_main(args: &[OsString]) -> io::Error {
    let [limits, program, args @ ..] = args else {
        return io::Error::other("expected limits, a program and its arguments");
    };
    let limits: Limits = match limits.to_str().map(serde_json::from_str) {
        Some(Ok(limits)) => limits,
        _ => return io::Error::other("the limits are not as `process::Limits` writes them"),
    };
    match limits.apply() {
        Ok(()) => super::exec_when_not_busy(std::process::Command::new(program).args(args)),
        Err(e) => e,
    }
}
