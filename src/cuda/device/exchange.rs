//! The memory file through which verifier and runner exchange bytes: one writes bytes before it sends a line, the other reads them after it. Knows sizes, but
//! not the meaning of the bytes.
//!
//! The runner holds a part of the file in its own memory only while it copies, and no kernel runs at that time. On machines where device code can reach the
//! memory of its process, it therefore finds nothing of the file there. Expected values are never put into it.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rayon::prelude::*;
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};

use super::wire::ExchangeAddress;
use kforge_foundation::base::pieces::PIECE;

/// The worker's end.
pub(super) struct Exchange {
    file: Arc<OwnedFd>,
    bytes: u64,
}

impl Exchange {
    /// Creates an empty file.
    pub(super) fn new() -> io::Result<Self> {
        let file = memfd_create("kforge-exchange", MemfdFlags::CLOEXEC)?;
        Ok(Exchange { file: Arc::new(file), bytes: 0 })
    }

    /// The descriptor for a child process to inherit.
    pub(super) fn descriptor(&self) -> &Arc<OwnedFd> {
        &self.file
    }

    /// The address for a process that inherits the descriptor.
    pub(super) fn inherited(&self) -> ExchangeAddress {
        ExchangeAddress::Descriptor(self.file.as_raw_fd())
    }

    /// The address for any other process of this user while this process lives.
    pub(super) fn path(&self) -> ExchangeAddress {
        ExchangeAddress::Path(format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into())
    }

    fn file(&self) -> io::Result<File> {
        Ok(File::from(self.file.try_clone()?))
    }

    /// Puts bytes at the beginning.
    pub(super) fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.make_room(bytes.len() as u64)?;
        put(&self.file()?, bytes)
    }

    /// Grows the file to at least this many bytes.
    pub(super) fn make_room(&mut self, bytes: u64) -> io::Result<()> {
        if bytes > self.bytes {
            self.file()?.set_len(bytes)?;
            self.bytes = bytes;
        }
        Ok(())
    }

    /// Takes this many bytes from the beginning.
    pub(super) fn take(&self, bytes: u64) -> io::Result<Vec<u8>> {
        take(&self.file()?, bytes)
    }

    /// Puts numbers at the beginning, little endian. All processors share the work, because new pages of the file are allocated as they are written.
    pub(super) fn put_numbers(&mut self, numbers: &[f64]) -> io::Result<()> {
        self.make_room(size_of_val(numbers) as u64)?;
        let file = self.file()?;
        numbers.par_chunks(PIECE).enumerate().try_for_each(|(at, piece)| {
            let mut bytes = vec![0; piece.len() * 8];
            piece.iter().zip(bytes.as_chunks_mut::<8>().0).for_each(|(x, word)| *word = x.to_le_bytes());
            file.write_all_at(&bytes, (at * PIECE * 8) as u64)
        })
    }

    /// Takes numbers from the beginning.
    pub(super) fn take_numbers(&self, numbers: &mut [f64]) -> io::Result<()> {
        let file = self.file()?;
        numbers.par_chunks_mut(PIECE).enumerate().try_for_each(|(at, piece)| {
            let mut bytes = vec![0; piece.len() * 8];
            file.read_exact_at(&mut bytes, (at * PIECE * 8) as u64)?;
            piece.iter_mut().zip(bytes.as_chunks::<8>().0).for_each(|(x, word)| *x = f64::from_le_bytes(*word));
            Ok(())
        })
    }

    /// Frees the file's memory.
    pub(super) fn empty(&self) -> io::Result<()> {
        if self.bytes > 0 {
            fallocate(&*self.file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, self.bytes)?;
        }
        Ok(())
    }
}

/// Bytes that one processor moves at a time.
const SHARE: usize = 1 << 20;

/// Takes this many bytes from a file's beginning. All processors share the work, because allocating new memory costs more than writing to it.
fn take(file: &File, bytes: u64) -> io::Result<Vec<u8>> {
    let mut taken = vec![0; usize::try_from(bytes).map_err(io::Error::other)?];
    if taken.len() <= SHARE {
        file.read_exact_at(&mut taken, 0)?;
        return Ok(taken);
    }
    let shares = taken.par_chunks_mut(SHARE).enumerate();
    shares.try_for_each(|(at, share)| file.read_exact_at(share, (at * SHARE) as u64))?;
    Ok(taken)
}

/// Puts bytes at a file's beginning, in the same way.
fn put(file: &File, bytes: &[u8]) -> io::Result<()> {
    if bytes.len() <= SHARE {
        return file.write_all_at(bytes, 0);
    }
    let shares = bytes.par_chunks(SHARE).enumerate();
    shares.try_for_each(|(at, share)| file.write_all_at(share, (at * SHARE) as u64))
}

/// The runner's end.
pub(super) struct RunnerExchange(File);

impl RunnerExchange {
    /// Opens the exchange at the address that the verifier names.
    ///
    /// # Errors
    /// The file does not exist, or this process may not open it.
    #[expect(unsafe_code, reason = "an inherited descriptor has no owner yet")]
    pub(super) fn open(at: &ExchangeAddress) -> io::Result<Self> {
        Ok(RunnerExchange(match at {
            // SAFETY: the verifier names a descriptor that this process inherited and that nothing else here uses.
            ExchangeAddress::Descriptor(number) => unsafe { File::from_raw_fd(*number) },
            ExchangeAddress::Path(path) => File::options().read(true).write(true).open(path)?,
        }))
    }

    /// Takes this many bytes from the beginning.
    pub(super) fn take(&self, bytes: u64) -> io::Result<Vec<u8>> {
        take(&self.0, bytes)
    }

    /// Puts bytes at the beginning.
    pub(super) fn put(&self, bytes: &[u8]) -> io::Result<()> {
        put(&self.0, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_taken_as_they_were_put() {
        let numbers: Vec<f64> = (0..3 * PIECE + 5).map(|i| i as f64 - 0.5).collect();
        let mut exchange = Exchange::new().unwrap();
        exchange.put_numbers(&numbers).unwrap();
        assert_eq!(exchange.take(16).unwrap(), [(-0.5f64).to_le_bytes(), 0.5f64.to_le_bytes()].concat());
        let mut taken = vec![0.0; numbers.len()];
        exchange.take_numbers(&mut taken).unwrap();
        assert!(taken == numbers);
    }

    #[test]
    fn what_one_end_puts_the_other_takes() {
        let mut exchange = Exchange::new().unwrap();
        let long: Vec<u8> = (0..3 * SHARE + 5).map(|i| (i / 7) as u8).collect();
        exchange.put(&long).unwrap();
        assert!(RunnerExchange(exchange.file().unwrap()).take(long.len() as u64).unwrap() == long);
        exchange.put(b"abc").unwrap();
        let other = RunnerExchange(exchange.file().unwrap());
        assert_eq!(other.take(3).unwrap(), b"abc");
        exchange.make_room(8).unwrap();
        other.put(b"defghijk").unwrap();
        assert_eq!(exchange.take(8).unwrap(), b"defghijk");
        let by_path = RunnerExchange::open(&exchange.path()).unwrap();
        assert_eq!(by_path.take(3).unwrap(), b"def");
        exchange.empty().unwrap();
        assert_eq!(exchange.take(8).unwrap(), [0; 8]);
    }
}
