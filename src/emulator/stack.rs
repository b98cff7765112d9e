//! Stacks of emulated threads: each has a guard page below, and is not returned to the system while the pool lives.
//! Knows sizes and mappings; does not know what runs on them.
#![expect(unsafe_code, reason = "maps memory and protects the guard page")]

use std::io;
use std::ptr;

/// Bytes of stack of an emulated thread, including its local arrays. CUDA allows 512 KiB of local memory; a thread that needs more
/// than this stack is not emulated.
pub const STACK_BYTES: usize = 128 * 1024;
const PAGE: usize = 4096;
/// Tops of stacks are staggered by cache lines. Otherwise the hot ends of all stacks would share the same few cache sets.
const STAGGER: usize = 192;

/// One stack.
pub(super) struct ThreadStack {
    low: usize,
    base: usize,
}

impl ThreadStack {
    /// Maps stack number `number` of a pool.
    pub(super) fn map(number: usize) -> io::Result<Self> {
        let size = STACK_BYTES + PAGE;
        // SAFETY: an anonymous mapping at an address that the system chooses touches no memory of ours.
        let low = unsafe {
            libc::mmap(
                ptr::null_mut(),
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if low == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the first page of the new mapping.
        if unsafe { libc::mprotect(low, PAGE, libc::PROT_NONE) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let low = low as usize;
        Ok(ThreadStack { low, base: low + size - (number % 20) * STAGGER })
    }

    /// The guard page of the stack whose lowest address is `low`.
    pub(super) fn guard(low: usize) -> std::ops::Range<usize> {
        low..low + PAGE
    }

    /// The address from which the stack grows down: a multiple of sixteen.
    pub(super) fn base(&self) -> usize {
        self.base
    }

    /// First and last address.
    pub(super) fn range(&self) -> (usize, usize) {
        (self.low, self.low + STACK_BYTES + PAGE)
    }
}

impl Drop for ThreadStack {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `map`; a coroutine gives its stack back only when nothing runs on it.
        unsafe { libc::munmap(self.low as *mut libc::c_void, STACK_BYTES + PAGE) };
    }
}

/// How many OS threads may emulate blocks of `block` threads at once: each thread's stack takes two mappings, and the system allows `limit` per process.
pub(super) fn most_cores(block: u64, limit: u64) -> u64 {
    (limit / 4 * 3 / (2 * block.max(1))).max(1)
}

/// The system's limit on mappings of a process, or the kernel's default if the limit cannot be read.
pub(super) fn mapping_limit() -> u64 {
    std::fs::read_to_string("/proc/sys/vm/max_map_count").ok().and_then(|t| t.trim().parse().ok()).unwrap_or(65530)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_of_all_cores_stay_within_the_limit_on_mappings() {
        assert_eq!(most_cores(1024, 65530), 23);
        assert_eq!(most_cores(256, 65530), 95);
        assert!(most_cores(1024, 65530) * 1024 * 2 < 65530);
        assert_eq!(most_cores(1024, 100), 1);
    }
}
