//! The memory of the process that times calls: for each tensor the memory that the kernel's process shares, and memory that it does not reach, with the next
//! inputs and the last outputs. Knows bytes and the driver; takes no time and waits for nobody.
#![expect(unsafe_code, reason = "the driver's C interface is called")]

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use cudarc::driver::sys::{
    self, CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationGranularity_flags, CUmemAllocationHandleType,
    CUmemAllocationProp, CUmemAllocationType, CUmemGenericAllocationHandle, CUmemLocation, CUmemLocationType,
};

use super::super::context::{Context, Memory, Stream, copy, set};
use super::super::driver::{self, check};
use super::super::fault::Fault;
use super::super::session::Trouble;
use super::TensorMemory;
use kforge_harness::memory_file::MemoryFile;

/// What can be done with the memory of tensors. A tensor is named by its position.
pub(super) trait Store {
    /// The descriptors of the shared memory of all tensors, and its sizes.
    fn shared(&self) -> Vec<(BorrowedFd<'_>, u64)>;
    /// Keeps contents of a tensor for the next call, where the kernel's process does not reach them.
    fn stage(&mut self, tensor: usize, contents: &[u8]) -> Result<(), Trouble>;
    /// Fills everything that is only written, on both sides, with a byte.
    fn poison(&mut self, byte: u8) -> Result<(), Trouble>;
    /// Copies what is staged to the shared memory. It is there when this returns.
    fn give(&mut self) -> Result<(), Trouble>;
    /// Copies what is written from the shared memory. It is here when this returns, and the kernel's process reaches it no longer.
    fn take(&mut self) -> Result<(), Trouble>;
    /// The contents of a written tensor as they were taken.
    fn taken(&self, tensor: usize) -> Result<Vec<u8>, Trouble>;
    /// The contents of a tensor in the shared memory.
    fn left(&self, tensor: usize) -> Result<Vec<u8>, Trouble>;
}

/// Memory of a device.
pub(super) struct OnDevice {
    tensors: Vec<DeviceTensor>,
    stream: Stream,
}

struct DeviceTensor {
    of: TensorMemory,
    shared: Exported,
    staged: Option<Memory>,
    taken: Option<Memory>,
}

impl OnDevice {
    /// Allocates everything on the first visible device.
    pub(super) fn new(tensors: &[TensorMemory]) -> Result<Self, Trouble> {
        let device = driver::devices()?.into_iter().next();
        let device = device.ok_or_else(|| Trouble::Refused("there is no device".into()))?;
        let context = Context::new(device)?;
        let make = |of: &TensorMemory| {
            let own = |wanted: bool| wanted.then(|| Memory::new(&context, of.bytes)).transpose();
            let (staged, taken) = (own(of.read)?, own(of.written)?);
            Ok(DeviceTensor { of: *of, shared: Exported::new(&context, device, of.bytes)?, staged, taken })
        };
        let tensors = tensors.iter().map(make).collect::<Result<_, Fault>>()?;
        Ok(OnDevice { tensors, stream: Stream::new(&context)? })
    }

    fn tensor(&self, at: usize) -> Result<&DeviceTensor, Trouble> {
        self.tensors.get(at).ok_or_else(|| Trouble::Refused(format!("there is no tensor {at}")))
    }
}

impl Store for OnDevice {
    fn shared(&self) -> Vec<(BorrowedFd<'_>, u64)> {
        self.tensors.iter().map(|tensor| (tensor.shared.descriptor.as_fd(), tensor.shared.bytes)).collect()
    }

    fn stage(&mut self, tensor: usize, contents: &[u8]) -> Result<(), Trouble> {
        match &self.tensor(tensor)?.staged {
            Some(staged) => Ok(staged.write(contents)?),
            None => Err(Trouble::Refused(format!("tensor {tensor} is not read"))),
        }
    }

    fn poison(&mut self, byte: u8) -> Result<(), Trouble> {
        for tensor in self.tensors.iter().filter(|tensor| !tensor.of.read) {
            for at in [Some(tensor.shared.at), tensor.taken.as_ref().map(Memory::at)].into_iter().flatten() {
                // SAFETY: both were allocated with at least this many bytes, and live as long as `self`.
                unsafe { set(at, byte, tensor.of.bytes, &self.stream) }?;
            }
        }
        Ok(self.stream.synchronize("while outputs were poisoned")?)
    }

    fn give(&mut self) -> Result<(), Trouble> {
        for tensor in &self.tensors {
            if let Some(staged) = tensor.staged.as_ref().filter(|_| tensor.of.bytes > 0) {
                // SAFETY: both were allocated with at least this many bytes, and live as long as `self`.
                unsafe { copy(tensor.shared.at, staged.at(), tensor.of.bytes, &self.stream) }?;
            }
        }
        Ok(self.stream.synchronize("while inputs were handed over")?)
    }

    fn take(&mut self) -> Result<(), Trouble> {
        for tensor in &self.tensors {
            if let Some(taken) = tensor.taken.as_ref().filter(|_| tensor.of.bytes > 0) {
                // SAFETY: both were allocated with at least this many bytes, and live as long as `self`.
                unsafe { copy(taken.at(), tensor.shared.at, tensor.of.bytes, &self.stream) }?;
            }
        }
        Ok(self.stream.synchronize("while outputs were taken back")?)
    }

    fn taken(&self, tensor: usize) -> Result<Vec<u8>, Trouble> {
        let found = self.tensor(tensor)?;
        let taken = found.taken.as_ref().ok_or_else(|| Trouble::Refused(format!("tensor {tensor} is not written")))?;
        let mut contents = vec![0; found.of.bytes as usize];
        taken.read(&mut contents)?;
        Ok(contents)
    }

    fn left(&self, tensor: usize) -> Result<Vec<u8>, Trouble> {
        let found = self.tensor(tensor)?;
        let mut contents = vec![0; found.of.bytes as usize];
        if !contents.is_empty() {
            // SAFETY: the shared memory has at least this many bytes, and the call returns when the copy is complete.
            let read = unsafe { sys::cuMemcpyDtoH_v2(contents.as_mut_ptr().cast(), found.shared.at, contents.len()) };
            check(read, "while shared memory was read")?;
        }
        Ok(contents)
    }
}

/// Memory of a device that other processes can map by its descriptor. It shares no page with other memory.
struct Exported {
    at: CUdeviceptr,
    bytes: u64,
    handle: CUmemGenericAllocationHandle,
    descriptor: OwnedFd,
    _context: Rc<Context>,
}

impl Exported {
    fn new(context: &Rc<Context>, device: i32, bytes: u64) -> Result<Self, Fault> {
        let during = "while memory was allocated that another process can map";
        let location = CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: device };
        // SAFETY: all fields of the structure may be zero.
        let mut wanted: CUmemAllocationProp = unsafe { std::mem::zeroed() };
        wanted.type_ = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        let kind = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        (wanted.requestedHandleTypes, wanted.location) = (kind, location);
        let least = CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
        let (mut page, mut handle, mut at, mut number) = (0, 0, 0, -1_i32);
        // SAFETY: what the calls read and write lives across them; the sizes are multiples of the granularity, and the range is reserved before it is mapped.
        unsafe {
            check(sys::cuMemGetAllocationGranularity(&mut page, &wanted, least), during)?;
            let bytes = (bytes.max(1) as usize).next_multiple_of(page.max(1));
            check(sys::cuMemCreate(&mut handle, bytes, &wanted, 0), during)?;
            check(sys::cuMemExportToShareableHandle((&raw mut number).cast(), handle, kind, 0), during)?;
            let descriptor = OwnedFd::from_raw_fd(number);
            check(sys::cuMemAddressReserve(&mut at, bytes, 0, 0, 0), during)?;
            check(sys::cuMemMap(at, bytes, 0, handle, 0), during)?;
            let access = CUmemAccessDesc { location, flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
            check(sys::cuMemSetAccess(at, bytes, &access, 1), during)?;
            Ok(Exported { at, bytes: bytes as u64, handle, descriptor, _context: Rc::clone(context) })
        }
    }
}

impl Drop for Exported {
    fn drop(&mut self) {
        // SAFETY: the range was mapped, and the handle made, by `new`; each is given back once.
        unsafe {
            let _ = sys::cuMemUnmap(self.at, self.bytes as usize);
            let _ = sys::cuMemAddressFree(self.at, self.bytes as usize);
            let _ = sys::cuMemRelease(self.handle);
        }
    }
}

/// Memory files, in the place of a device's memory.
pub(super) struct InFiles(Vec<FileTensor>);

struct FileTensor {
    of: TensorMemory,
    shared: MemoryFile,
    staged: Vec<u8>,
    taken: Vec<u8>,
}

/// The granularity of memory files.
const PAGE: u64 = 4096;

impl InFiles {
    /// Allocates everything.
    pub(super) fn new(tensors: &[TensorMemory]) -> Result<Self, Trouble> {
        let make = |of: &TensorMemory| {
            let size = of.bytes.max(1).next_multiple_of(PAGE);
            let shared = MemoryFile::writable(&vec![0; size as usize]).map_err(refused)?;
            Ok(FileTensor { of: *of, shared, staged: vec![0; of.bytes as usize], taken: vec![0; of.bytes as usize] })
        };
        tensors.iter().map(make).collect::<Result<_, _>>().map(InFiles)
    }

    fn tensor(&self, at: usize) -> Result<&FileTensor, Trouble> {
        self.0.get(at).ok_or_else(|| Trouble::Refused(format!("there is no tensor {at}")))
    }
}

fn refused(e: std::io::Error) -> Trouble {
    Trouble::Refused(e.to_string())
}

impl FileTensor {
    fn file(&self) -> Result<File, Trouble> {
        self.shared.descriptor().try_clone().map(File::from).map_err(refused)
    }

    fn write(&self, bytes: &[u8]) -> Result<(), Trouble> {
        self.file()?.write_all_at(bytes, 0).map_err(refused)
    }

    fn read(&self) -> Result<Vec<u8>, Trouble> {
        let mut bytes = vec![0; self.of.bytes as usize];
        self.file()?.read_exact_at(&mut bytes, 0).map_err(refused)?;
        Ok(bytes)
    }
}

impl Store for InFiles {
    fn shared(&self) -> Vec<(BorrowedFd<'_>, u64)> {
        let of = |tensor: &FileTensor| tensor.of.bytes.max(1).next_multiple_of(PAGE);
        self.0.iter().map(|tensor| (tensor.shared.descriptor().as_fd(), of(tensor))).collect()
    }

    fn stage(&mut self, tensor: usize, contents: &[u8]) -> Result<(), Trouble> {
        match self.0.get_mut(tensor).filter(|found| found.of.read && found.staged.len() == contents.len()) {
            Some(found) => found.staged.copy_from_slice(contents),
            None => return Err(Trouble::Refused(format!("tensor {tensor} is not read, or has another size"))),
        }
        Ok(())
    }

    fn poison(&mut self, byte: u8) -> Result<(), Trouble> {
        for tensor in self.0.iter_mut().filter(|tensor| !tensor.of.read) {
            tensor.taken.fill(byte);
            tensor.write(&tensor.taken)?;
        }
        Ok(())
    }

    fn give(&mut self) -> Result<(), Trouble> {
        self.0.iter().filter(|tensor| tensor.of.read).try_for_each(|tensor| tensor.write(&tensor.staged))
    }

    fn take(&mut self) -> Result<(), Trouble> {
        for tensor in self.0.iter_mut().filter(|tensor| tensor.of.written) {
            tensor.taken = tensor.read()?;
        }
        Ok(())
    }

    fn taken(&self, tensor: usize) -> Result<Vec<u8>, Trouble> {
        Ok(self.tensor(tensor)?.taken.clone())
    }

    fn left(&self, tensor: usize) -> Result<Vec<u8>, Trouble> {
        self.tensor(tensor)?.read()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(result: Result<Vec<u8>, Trouble>) -> Vec<u8> {
        result.unwrap_or_else(|_| panic!("refused"))
    }

    fn done(result: Result<(), Trouble>) {
        assert!(result.is_ok());
    }

    #[test]
    fn inputs_are_shared_only_when_they_are_given_and_outputs_are_kept_when_they_are_taken() {
        let [x, y] = [(true, false), (false, true)].map(|(read, written)| TensorMemory { bytes: 4, read, written });
        let Ok(mut store) = InFiles::new(&[x, y]) else { panic!("no memory") };
        done(store.stage(0, b"abcd"));
        done(store.poison(7));
        assert_eq!((held(store.left(0)), held(store.left(1))), (vec![0; 4], vec![7; 4]));
        done(store.give());
        assert_eq!(held(store.left(0)), b"abcd");
        // What the kernel's process writes.
        done(store.0[1].write(b"wxyz"));
        assert_eq!(held(store.taken(1)), [7; 4]);
        done(store.take());
        done(store.0[1].write(b"late"));
        assert_eq!(held(store.taken(1)), b"wxyz");
        assert!(store.stage(1, b"abcd").is_err() && store.stage(0, b"abc").is_err() && store.taken(2).is_err());
        assert_eq!(store.shared().iter().map(|(_, bytes)| *bytes).collect::<Vec<_>>(), [PAGE, PAGE]);
    }

    #[test]
    fn what_is_read_and_written_keeps_its_contents_until_it_is_given_again() {
        let Ok(mut store) = InFiles::new(&[TensorMemory { bytes: 2, read: true, written: true }]) else { panic!() };
        done(store.stage(0, b"ab"));
        done(store.give());
        done(store.poison(7));
        done(store.take());
        assert_eq!(held(store.taken(0)), b"ab");
    }
}
