//! Memory files: passed to a runner as descriptors, and sealed so that the runner can use them only as intended. Knows bytes; does not know what they mean.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

/// A memory file of fixed size.
#[derive(Debug, Clone)]
pub struct MemoryFile {
    file: Arc<OwnedFd>,
    bytes: u64,
}

impl MemoryFile {
    /// A file that no process can write, not even this one.
    pub fn sealed(contents: &[u8]) -> io::Result<Self> {
        Self::make(contents, SealFlags::WRITE, MemfdFlags::NOEXEC_SEAL)
    }

    /// A file that no process can write and that may be loaded as a program.
    pub fn program(contents: &[u8]) -> io::Result<Self> {
        Self::make(contents, SealFlags::WRITE, MemfdFlags::EXEC)
    }

    /// A file that may be written, but neither grown nor shrunk.
    pub fn writable(contents: &[u8]) -> io::Result<Self> {
        Self::make(contents, SealFlags::empty(), MemfdFlags::NOEXEC_SEAL)
    }

    fn make(contents: &[u8], seals: SealFlags, kind: MemfdFlags) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = match memfd_create("kforge", flags | kind) {
            // Kernels before 6.3 do not support memory files that cannot be executed; there, all of them can.
            Err(rustix::io::Errno::INVAL) => memfd_create("kforge", flags)?,
            made => made?,
        };
        let file = File::from(fd);
        file.write_all_at(contents, 0)?;
        let fd = OwnedFd::from(file);
        fcntl_add_seals(&fd, seals | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
        Ok(MemoryFile { file: Arc::new(fd), bytes: contents.len() as u64 })
    }

    /// The same bytes behind another descriptor, for reading. Operations on one descriptor (its offset, its locks) do not affect the other.
    pub fn again(&self) -> io::Result<Self> {
        let file = File::open(format!("/proc/self/fd/{}", self.number()))?;
        Ok(MemoryFile { file: Arc::new(file.into()), bytes: self.bytes })
    }

    /// The descriptor, to be inherited.
    pub fn descriptor(&self) -> &Arc<OwnedFd> {
        &self.file
    }

    /// The number of the descriptor, here and in a child that inherits it.
    pub fn number(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// A copy of the current contents, which can no longer change while they are compared.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.bytes as usize];
        File::from(self.file.try_clone()?).read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(file: &MemoryFile, at: u64) -> io::Result<()> {
        File::from(file.descriptor().try_clone().unwrap()).write_all_at(b"x", at)
    }

    #[test]
    fn sealed_files_cannot_be_written_and_writable_ones_not_grown() {
        let sealed = MemoryFile::sealed(b"abc").unwrap();
        assert!(write(&sealed, 0).is_err());
        let path = format!("/proc/self/fd/{}", sealed.number());
        assert!(File::options().write(true).open(path).and_then(|f| f.write_all_at(b"x", 0)).is_err());
        let writable = MemoryFile::writable(b"abc").unwrap();
        write(&writable, 1).unwrap();
        assert!(write(&writable, 3).is_err());
        assert!(File::from(writable.descriptor().try_clone().unwrap()).set_len(1).is_err());
        assert_eq!((sealed.read().unwrap(), writable.read().unwrap()), (b"abc".to_vec(), b"axc".to_vec()));
    }
}
