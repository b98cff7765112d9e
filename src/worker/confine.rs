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
//! the [`Report`] rather than an error: a laptop without Landlock still verifies, and `doctor` says what is missing. A means that is there and fails is an error.

use std::io;
use std::os::fd::RawFd;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

mod calls;
mod descriptors;
mod files;

use crate::process::Limits;

/// What a process keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// The folder it may write in; none: it writes no files.
    pub scratch: Option<PathBuf>,
    /// Files and folders it may read, besides system libraries.
    pub read: Vec<PathBuf>,
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
    /// The sentences.
    pub missing: Vec<String>,
}

/// Gives up everything else. Must come before this process starts threads or opens what it does not name.
pub fn confine(keep: &Confinement) -> io::Result<Report> {
    let mut report = Report::default();
    descriptors::close_all_but(&keep.keep)?;
    keep.limits.apply()?;
    rustix::thread::set_no_new_privs(true)?;
    report.missing.extend(files::restrict(keep)?);
    report.missing.extend(calls::restrict(keep)?);
    Ok(report)
}

/// What [`confine`] would report here, without confining anything: for `doctor`.
pub fn missing_here() -> Vec<String> {
    files::missing_here().into_iter().chain(calls::missing_here()).collect()
}
