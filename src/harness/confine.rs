//! Confines a process that is about to run untrusted code, irrevocably. Knows the system's mechanisms (closed descriptors, resource limits, Landlock, seccomp);
//! does not know the code.
//!
//! | mechanism | takes away |
//! |---|---|
//! | descriptors closed | everything that the parent left open: the process can write only to the report and the buffers |
//! | resource limits | address space, processor time, file sizes, descriptors, core dumps |
//! | no new privileges | set-user-id programs |
//! | Landlock | reading anything except system libraries and named files, writing outside the scratch folder, signals to other processes |
//! | seccomp | sockets, other processes' memory, new processes and programs, mounts, file metadata, memory beyond the limits, unneeded kernel interfaces |
//!
//! Everything applies to the calling thread and to those that it starts later, so [`confine`] must come before any thread is started. A mechanism that the
//! system lacks is listed in the [`Report`] and is not an error. `doctor` shows it, and the verifier then refuses to run candidates unless the user permits
//! that. A mechanism that exists and fails is an error.
//!
//! A system call that seccomp refuses to a candidate ends its process and is reported ([`watch`]). What Landlock refuses (reading a file) fails without a
//! report. On `cpu`, candidate code has threads of its own ([`candidate_thread`]), which can neither write reports nor end the process.
//!
//! An old Landlock does not count as missing: seccomp also refuses candidates what later versions of Landlock cover (truncating files, moving them, the
//! network, devices, signals).

use std::io;
use std::os::fd::RawFd;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

mod addresses;
mod attempts;
mod calls;
mod descriptors;
pub mod driver;
pub mod examined;
mod files;
mod portable;
mod seal;
mod table;

pub use addresses::fix_addresses;
pub use attempts::{candidate_thread, watch};
pub use portable::PortableConfinement;
pub use seal::{filters, seal};
pub use table::attempt;

use kforge_foundation::process::Limits;

/// What a confined process may still use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// The folder that it may write in. If none, it may not write files.
    pub scratch: Option<PathBuf>,
    /// Files and folders that it may read, in addition to system libraries.
    pub read: Vec<PathBuf>,
    /// Device files that it may control, which it needs to call a driver. The driver's threads exist before calls are refused, and it writes to descriptors of
    /// its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<PathBuf>,
    /// Whether it may start processes and programs (a Python interpreter, a compiler). They inherit its confinement.
    pub programs: bool,
    /// Descriptors that it keeps, in addition to the three standard ones.
    pub keep: Vec<RawFd>,
    /// Its resource limits.
    pub limits: Limits,
}

/// What the system could not do, one sentence each; empty if it did everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Missing mechanisms without which a candidate is not confined.
    pub missing: Vec<String>,
    /// Missing mechanisms for which another one compensates where candidates run.
    pub weaker: Vec<String>,
}

/// Gives up everything that `keep` does not name. Must be called before this process starts threads or opens other files.
pub fn confine(keep: &Confinement) -> io::Result<Report> {
    let mut report = confine_files(keep)?;
    report.missing.extend(calls::restrict(keep)?);
    Ok(report)
}

/// The part of [`confine`] that must precede the start of a device driver: everything except refusing calls, which [`watch_all`] does.
pub fn confine_files(keep: &Confinement) -> io::Result<Report> {
    descriptors::close_all_but(&keep.keep)?;
    keep.limits.apply()?;
    rustix::thread::set_no_new_privs(true)?;
    files::restrict(keep)
}

/// The rest of [`confine`], and [`watch`], for all threads of this process, including those of a driver. Returns what the system could not do. Only Landlock
/// prevents such a process from writing files, because a driver opens its devices for writing and writes to descriptors.
pub fn watch_all(keep: &Confinement, report: RawFd) -> io::Result<Vec<String>> {
    attempts::watch_all(keep, report)?;
    Ok(calls::missing_here())
}

/// Confines a process that loads a driver and otherwise runs only code of kforge's own, before the driver is loaded. A refused call fails, so that a driver that
/// only tries it continues. Code that took the process over through the device could do no more than the driver: [`driver`] is the list.
pub fn confine_driver(keep: &Confinement) -> io::Result<Report> {
    let mut report = confine_files(keep)?;
    calls::refuse_beside_driver(keep)?;
    report.missing.extend(calls::missing_here());
    Ok(report)
}

/// Confines only this thread and the threads that it starts later. Landlock limits its files. If it may not start programs, refused calls fail too. Programs
/// that it starts confine themselves and must first be put into a group of their own. For trusted code that processes untrusted data: if the data made it run
/// other code, that code could still reach the other threads of this process.
pub fn confine_thread(keep: &Confinement) -> io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    files::restrict(keep)?;
    if keep.programs { Ok(()) } else { calls::refuse(keep, calls::fails()) }
}

/// Limits the files and resources of this process, before it starts threads. Programs that it starts confine themselves further.
pub fn confine_worker(keep: &Confinement) -> io::Result<()> {
    keep.limits.apply()?;
    rustix::thread::set_no_new_privs(true)?;
    files::restrict(keep).map(drop)
}

/// The text that explains why `what`, such as `kernels`, does not run without these mechanisms, and how to permit it.
pub fn refusal(what: &str, missing: &[String]) -> String {
    let missing = missing.join("; ");
    format!(
        "{what} do not run unconfined, and {missing} (--allow-unconfined, or the setting `sandbox.required`, permits it)"
    )
}

/// What [`confine`] would report here, without confining anything.
pub fn missing_here() -> Report {
    let mut report = files::missing_here();
    report.missing.extend(calls::missing_here());
    report
}
