//! What a process that is about to run untrusted code gives up, for good. Knows the system's means (closed descriptors, resource limits, Landlock, seccomp);
//! does not know what the code is.
//!
//! | means | what it takes away |
//! |---|---|
//! | descriptors closed | whatever the parent left open: nothing to write to but the report and the buffers that were handed over |
//! | resource limits | address space, processor time, file sizes, descriptors, core dumps |
//! | no new privileges | set-user-id programs |
//! | Landlock | reading but system libraries and what is named, writing outside the scratch folder, signals to other processes |
//! | seccomp | sockets, other processes' memory, new processes and programs, mounts, metadata of files, memory outside the limits, kernel interfaces that a kernel never needs |
//!
//! Everything holds for the calling thread and those it starts later, so [`confine`] comes before any thread. What the running system cannot do is in
//! the [`Report`] rather than an error, and `doctor` says it: the verifier refuses to run candidates without it unless it was told to. A means that is there and
//! fails is an error.
//!
//! A candidate's attempt at what is refused by seccomp ends its process and is told ([`watch`]); what Landlock refuses (reading a file) fails quietly.
//!
//! An old Landlock is not a missing one: rights that later versions added (cutting files off, moving them, the network, devices, signals) are refused to
//! a candidate by seccomp too.

use std::io;
use std::os::fd::RawFd;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

mod attempts;
mod calls;
mod descriptors;
mod files;
mod table;

pub use attempts::watch;
pub use table::attempt;

use kforge_foundation::process::Limits;

/// What a process keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// The folder it may write in; none: it writes no files.
    pub scratch: Option<PathBuf>,
    /// Files and folders it may read, besides system libraries.
    pub read: Vec<PathBuf>,
    /// Files of devices that it may control: through these it calls a driver, whose threads are there before calls are refused, and which writes to descriptors of its
    /// own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<PathBuf>,
    /// Whether it may start processes and programs (a Python interpreter, a compiler). These are confined as it is.
    pub programs: bool,
    /// Descriptors it keeps, besides the three standard ones.
    pub keep: Vec<RawFd>,
    /// Its resource limits.
    pub limits: Limits,
}

/// What the system could not do, a sentence each; empty where it did everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Without which a candidate is not confined.
    pub missing: Vec<String>,
    /// What another means makes up for where candidates run.
    pub weaker: Vec<String>,
}

/// Gives up everything else. Must come before this process starts threads or opens what it does not name.
pub fn confine(keep: &Confinement) -> io::Result<Report> {
    let mut report = confine_files(keep)?;
    report.missing.extend(calls::restrict(keep)?);
    Ok(report)
}

/// The part of [`confine`] that a driver of devices can be started after: all but refused calls, which are [`watch_all`]'s.
pub fn confine_files(keep: &Confinement) -> io::Result<Report> {
    descriptors::close_all_but(&keep.keep)?;
    keep.limits.apply()?;
    rustix::thread::set_no_new_privs(true)?;
    files::restrict(keep)
}

/// The rest of [`confine`], and [`watch`], for every thread that this process has, a driver's among them. Gives what the system could not do. What such a process
/// writes to files is Landlock's alone to refuse: a driver opens its devices for writing, and writes to descriptors.
pub fn watch_all(keep: &Confinement, report: RawFd) -> io::Result<Vec<String>> {
    attempts::watch_all(keep, report)?;
    Ok(calls::missing_here())
}

/// Confines this thread only, and those that it starts later, as far as files go; where it may not start programs, by refused calls too, which fail. What it may
/// start is confined by itself, and has to be put into a group of its own first. For work of ours on what others made: one that came to run code of its own
/// could reach this process's other threads.
pub fn confine_thread(keep: &Confinement) -> io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    files::restrict(keep)?;
    if keep.programs { Ok(()) } else { calls::refuse(keep, calls::fails()) }
}

/// Confines this process as far as files and limits go, before it starts threads. It may start programs, which are confined further by themselves.
pub fn confine_worker(keep: &Confinement) -> io::Result<()> {
    keep.limits.apply()?;
    rustix::thread::set_no_new_privs(true)?;
    files::restrict(keep).map(drop)
}

/// Why nothing of a kind, `kernels`, is run where this is missing, and what permits it.
pub fn refusal(what: &str, missing: &[String]) -> String {
    let missing = missing.join("; ");
    format!(
        "{what} are not run unconfined, and {missing} (--allow-unconfined, or the setting `sandbox.required`, permits it)"
    )
}

/// What [`confine`] would report here, without confining anything.
pub fn missing_here() -> Report {
    let mut report = files::missing_here();
    report.missing.extend(calls::missing_here());
    report
}
