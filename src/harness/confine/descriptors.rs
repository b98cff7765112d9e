//! Closes inherited descriptors. Knows only descriptor numbers.
#![expect(unsafe_code, reason = "descriptors are closed by number")]

use std::io;
use std::os::fd::RawFd;

/// Closes every descriptor from 3 on, except those in `keep`.
pub(super) fn close_all_but(keep: &[RawFd]) -> io::Result<()> {
    let mut keep: Vec<u32> = keep.iter().filter_map(|fd| u32::try_from(*fd).ok()).filter(|fd| *fd > 2).collect();
    keep.sort_unstable();
    keep.dedup();
    let mut first = 3;
    for kept in keep {
        close_range(first, kept.checked_sub(1))?;
        first = kept + 1;
    }
    close_range(first, Some(u32::MAX))
}

fn close_range(first: u32, last: Option<u32>) -> io::Result<()> {
    let Some(last) = last.filter(|last| *last >= first) else { return Ok(()) };
    // The system call, because the function needs glibc 2.34, and a released program runs with 2.28.
    // SAFETY: only numbers are passed. The caller runs before this process has opened a descriptor that it will use, so no descriptor that a Rust value owns is
    // closed.
    match unsafe { libc::syscall(libc::SYS_close_range, first, last, 0u32) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
