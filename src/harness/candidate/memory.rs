//! The memory that a kernel in PyTorch computes on: one memory file for each tensor, with canaries around it. Its contents change between calls and its address
//! does not, so that a kernel that takes the same address for the same contents is wrong.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::layout::{BufferAfterRun, Filled, GuardedBuffer, Use};
use crate::memory_file::MemoryFile;
use kforge_types::model::{Problem, Tensor};

/// The fill around tensors. It is neither poison nor zero, so that a copy from within a tensor is noticed.
const CANARY: u8 = 0xc5;
/// The bytes before and after a tensor, at least: a page, so that the tensor is aligned as PyTorch aligns its own.
const AROUND: usize = 4096;

/// The place of a tensor.
#[derive(Debug, Clone)]
pub struct Area<'a> {
    /// The tensor.
    pub tensor: &'a Tensor,
    /// The file that holds it.
    pub file: MemoryFile,
}

/// Bytes of all tensors of a problem.
pub fn bytes(problem: &Problem) -> u64 {
    problem.tensors.iter().map(Tensor::bytes).fold(0, u64::saturating_add)
}

/// A place for each tensor of a problem.
///
/// # Errors
/// The system has no memory.
pub fn areas(problem: &Problem) -> io::Result<Vec<Area<'_>>> {
    problem
        .tensors
        .iter()
        .map(|tensor| Ok(Area { tensor, file: MemoryFile::writable(&vec![CANARY; size(tensor)])? }))
        .collect()
}

/// The size of a tensor's file.
pub(super) fn size(tensor: &Tensor) -> usize {
    (tensor.bytes() as usize).next_multiple_of(AROUND) + 2 * AROUND
}

/// Where a tensor begins in its file.
pub(super) fn offset() -> usize {
    AROUND
}

impl Area<'_> {
    /// Writes the tensor's contents, and its canaries.
    ///
    /// # Errors
    /// The system fails.
    pub fn write(&self, contents: &[u8]) -> io::Result<()> {
        let file = File::from(self.file.descriptor().try_clone()?);
        file.write_all_at(&[CANARY; AROUND], 0)?;
        file.write_all_at(contents, AROUND as u64)?;
        let end = AROUND + contents.len();
        file.write_all_at(&vec![CANARY; size(self.tensor) - end], end as u64)
    }

    /// The tensor's contents, and what happened around it since `before` was written.
    ///
    /// # Errors
    /// The system fails.
    pub fn after(&self, before: &[u8]) -> io::Result<BufferAfterRun> {
        let (tensor, element) = (self.tensor, self.tensor.dtype.bytes());
        let (before, used) = (Filled::Bytes(before), Use::Tensor(tensor));
        let laid = GuardedBuffer { name: &tensor.name, element, offset: AROUND, before, used, canary: CANARY };
        Ok(laid.after(self.file.read()?))
    }

    /// The tensor's contents.
    ///
    /// # Errors
    /// The system fails.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        let mut all = self.file.read()?;
        all.truncate(AROUND + self.tensor.bytes() as usize);
        all.drain(..AROUND);
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::model::{DType, Reference, Role};
    use kforge_types::record::FindingKind;

    #[test]
    fn contents_change_in_place_and_what_is_written_around_them_is_found() {
        let x = Tensor::dense("x", Role::Input, DType::F32, &[3]);
        let problem = Problem::of(vec![x], Reference::builtin("sum", &[]));
        let areas = areas(&problem).unwrap();
        let area = &areas[0];
        for fill in [1, 2] {
            area.write(&[fill; 12]).unwrap();
            assert_eq!(area.read().unwrap(), [fill; 12]);
            assert!(area.after(&[fill; 12]).unwrap().findings.is_empty());
        }
        assert_eq!(area.after(&[1; 12]).unwrap().findings[0].kind, FindingKind::InputModified);
        let file = File::from(area.file.descriptor().try_clone().unwrap());
        file.write_all_at(&[0], (AROUND + 12) as u64).unwrap();
        assert_eq!(area.after(&[2; 12]).unwrap().findings[0].kind, FindingKind::Canary);
        area.write(&[2; 12]).unwrap();
        assert!(area.after(&[2; 12]).unwrap().findings.is_empty());
    }
}
