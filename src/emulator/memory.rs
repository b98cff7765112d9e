//! Buffers of a trial in the runner: memory files mapped into one reserved range, far apart, each next to an inaccessible page.
//! Knows addresses and names; does not know their contents, or what wrote them.
#![expect(unsafe_code, reason = "maps memory files at fixed addresses inside a range it reserved")]

use std::io;
use std::ptr;

use super::error::MapError;
use kforge_harness::message::SharedBuffer;

const PAGE: u64 = 4096;
/// The alignment of a buffer's start, even if its end touches a guard page: the widest vector access.
const ALIGN: u64 = 16;

/// The inaccessible range on either side of every buffer. An address does not show which buffer it was meant for. So buffers are far apart: an access with a
/// wrong index then hits no buffer. In another buffer it would look like a race, or go unnoticed. This takes only address space, no memory.
const GAP: u64 = 16 << 20;

/// Address space between and around the `buffers` buffers of a trial.
pub fn gaps(buffers: usize) -> u64 {
    (buffers as u64 + 1) * GAP
}

/// The position of a buffer's bytes in its memory file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placement {
    /// Length of the memory file.
    pub file: u64,
    /// Offset of the buffer's first byte in the file.
    pub offset: u64,
}

/// The layout of `bytes` in a memory file of whole pages, at least one. The buffer is at the end of the file with `guard_after` (up to fifteen bytes short of
/// it, to keep vector accesses aligned), else at the start. All other bytes of the file are canaries.
pub fn placement(bytes: u64, guard_after: bool) -> Placement {
    let file = bytes.div_ceil(PAGE).max(1) * PAGE;
    Placement { file, offset: if guard_after { (file - bytes) / ALIGN * ALIGN } else { 0 } }
}

/// A mapped buffer.
#[derive(Debug, Clone)]
pub(super) struct Region {
    pub(super) name: String,
    /// The first byte that a kernel may touch.
    pub(super) start: usize,
    pub(super) bytes: usize,
    pub(super) element: usize,
    /// Extent and stride of each axis, in elements; empty for a buffer that is not a tensor.
    pub(super) axes: Vec<(u64, u64)>,
    pub(super) writable: bool,
    pub(super) poisoned: bool,
}

/// All buffers of a trial.
pub(super) struct Arena {
    pub(super) start: usize,
    pub(super) bytes: usize,
    /// Sorted by address.
    pub(super) regions: Vec<Region>,
    /// The address of the next mapping.
    next: usize,
}

impl Arena {
    /// Reserves address space, at address `near` if that is free, and maps every buffer, with `extra` bytes for arrays of addresses.
    pub(super) fn map(
        buffers: &[SharedBuffer],
        guard_after: bool,
        extra: usize,
        near: usize,
    ) -> Result<Arena, MapError> {
        let pages = |bytes: usize| bytes.div_ceil(PAGE as usize) * PAGE as usize;
        let files: usize = buffers.iter().map(|b| placement(b.bytes, guard_after).file as usize).sum();
        let bytes = files + gaps(buffers.len()) as usize + pages(extra) + PAGE as usize;
        // SAFETY: an anonymous, inaccessible mapping at an address that the system chooses: at the requested address only if nothing is mapped there.
        let start = unsafe {
            libc::mmap(
                near as *mut libc::c_void,
                bytes,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(MapError::Reserve { bytes, source: io::Error::last_os_error() });
        }
        let start = start as usize;
        let mut arena = Arena { start, bytes, regions: Vec::new(), next: start + GAP as usize };
        for buffer in buffers {
            let place = placement(buffer.bytes, guard_after);
            let protection = if buffer.writable { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
            arena.map_fixed(place.file as usize, protection, buffer.fd).map_err(|source| MapError::Buffer {
                name: buffer.name.clone(),
                bytes: buffer.bytes,
                fd: buffer.fd,
                source,
            })?;
            arena.regions.push(Region {
                name: buffer.name.clone(),
                start: arena.next + place.offset as usize,
                bytes: buffer.bytes as usize,
                element: buffer.element.max(1) as usize,
                axes: buffer.axes.clone(),
                writable: buffer.writable,
                poisoned: buffer.poisoned,
            });
            arena.next += place.file as usize + GAP as usize;
        }
        Ok(arena)
    }

    fn map_fixed(&self, bytes: usize, protection: i32, fd: i32) -> io::Result<()> {
        let flags = libc::MAP_FIXED | if fd < 0 { libc::MAP_PRIVATE | libc::MAP_ANONYMOUS } else { libc::MAP_SHARED };
        // SAFETY: `next` and `bytes` are inside the range reserved in `map`, which nothing else uses.
        let at = unsafe { libc::mmap(self.next as *mut libc::c_void, bytes, protection, flags, fd, 0) };
        if at == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Places an array of addresses where kernels may read it, and returns its address.
    pub(super) fn place(&mut self, name: String, words: &[u64]) -> Result<u64, MapError> {
        let bytes = words.len() * 8;
        let mapped = bytes.div_ceil(PAGE as usize).max(1) * PAGE as usize;
        if self.next + mapped > self.start + self.bytes {
            return Err(MapError::NoRoom(name));
        }
        if let Err(source) = self.map_fixed(mapped, libc::PROT_READ | libc::PROT_WRITE, -1) {
            return Err(MapError::Place { name, source });
        }
        let start = self.next;
        // SAFETY: `mapped` bytes were just mapped writable at `start`, at least as many as the words take.
        unsafe { ptr::copy_nonoverlapping(words.as_ptr(), start as *mut u64, words.len()) };
        self.regions.push(Region { name, start, bytes, element: 8, axes: vec![], writable: false, poisoned: false });
        self.next += mapped;
        Ok(start as u64)
    }

    /// Size in bytes that `place` needs for arrays of these lengths.
    pub(super) fn room(lengths: impl Iterator<Item = usize>) -> usize {
        lengths.map(|n| (n * 8).div_ceil(PAGE as usize).max(1) * PAGE as usize).sum()
    }

    /// The buffer of that name.
    pub(super) fn region(&self, name: &str) -> Option<&Region> {
        self.regions.iter().find(|r| r.name == name)
    }

    /// The buffer that holds `address`, else the nearest one, if the address is in the reserved range at all.
    pub(super) fn nearest(&self, address: usize) -> Option<&Region> {
        if !(self.start..self.start + self.bytes).contains(&address) {
            return None;
        }
        self.regions.iter().min_by_key(|r| {
            if address < r.start { r.start - address } else { (address + 1).saturating_sub(r.start + r.bytes) }
        })
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the range reserved in `map`; no launch runs when a trial's arena is dropped.
        unsafe { libc::munmap(self.start as *mut libc::c_void, self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_end_against_the_guard_page_as_far_as_alignment_allows() {
        assert_eq!(placement(4096, true), Placement { file: 4096, offset: 0 });
        assert_eq!(placement(1028, true), Placement { file: 4096, offset: 3056 });
        assert_eq!(placement(1024, true), Placement { file: 4096, offset: 3072 });
        assert_eq!(placement(5000, false), Placement { file: 8192, offset: 0 });
        assert_eq!(placement(0, true), Placement { file: 4096, offset: 4096 });
    }
}
