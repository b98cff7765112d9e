//! The resources of a context, each freed when it is dropped: memory, modules, streams, events, graphs. Knows the driver's calls, but not what the resources
//! hold.
//!
//! A context belongs to one thread. The runner has only one thread, and nothing here may leave it. The results of calls that free resources are not checked:
//! after a fault that ends the context they all fail, and the process ends with it.
#![expect(unsafe_code, reason = "the driver's C interface is called")]

use std::ffi::CString;
use std::rc::Rc;

use cudarc::driver::sys::{
    self, CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUevent, CUfunction, CUfunction_attribute, CUgraphExec,
    CUmodule, CUstream, CUstreamCaptureMode,
};

use super::driver::check;
use super::fault::{During, Fault};

/// The primary context of a device, current on the calling thread.
pub(super) struct Context {
    device: CUdevice,
}

impl Context {
    /// Retains the context and makes it current.
    pub(super) fn new(device: CUdevice) -> Result<Rc<Self>, Fault> {
        let during = "while a context was made";
        let mut context: CUcontext = std::ptr::null_mut();
        // SAFETY: `context` lives across the call, and the driver returned the device.
        check(unsafe { sys::cuDevicePrimaryCtxRetain(&mut context, device) }, during)?;
        let own = Context { device };
        // SAFETY: the context was retained above.
        check(unsafe { sys::cuCtxSetCurrent(context) }, during)?;
        Ok(Rc::new(own))
    }

    /// The number of multiprocessors of the device.
    pub(super) fn processors(&self) -> Result<u32, Fault> {
        let what = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        Ok(u32::try_from(super::driver::attribute(self.device, what)?).unwrap_or(0))
    }

    /// Waits until all work of the context is done.
    pub(super) fn synchronize(&self, during: &str) -> Result<(), Fault> {
        // SAFETY: the context is current.
        check(unsafe { sys::cuCtxSynchronize() }, during)
    }

    /// Bytes of free memory.
    pub(super) fn free_memory(&self) -> Result<u64, Fault> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: both live across the call.
        check(unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) }, "while free memory was asked for")?;
        Ok(free as u64)
    }

    /// Releases lines in the L2 cache that were requested to persist.
    pub(super) fn reset_persisting(&self) -> Result<(), Fault> {
        // SAFETY: the context is current.
        check(unsafe { sys::cuCtxResetPersistingL2Cache() }, "while persisting lines were reset")
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context was retained once.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

/// Device memory.
pub(super) struct Memory {
    at: CUdeviceptr,
    bytes: u64,
    _context: Rc<Context>,
}

impl Memory {
    /// Allocates this many bytes, at least one.
    pub(super) fn new(context: &Rc<Context>, bytes: u64) -> Result<Self, Fault> {
        let mut at = 0;
        // SAFETY: `at` lives across the call.
        check(unsafe { sys::cuMemAlloc_v2(&mut at, bytes.max(1) as usize) }, "while memory was allocated")?;
        Ok(Memory { at, bytes, _context: Rc::clone(context) })
    }

    /// The address.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// The size.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Copies to the beginning of the memory and waits until the bytes have arrived. The copy by itself returns when `bytes` may be reused, and may then still
    /// be in progress (CUDA driver API, "API synchronization behavior"), and the streams here do not wait for the stream of the copy.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<(), Fault> {
        let count = bytes.len().min(self.bytes as usize);
        let during = "while a buffer was written";
        // SAFETY: both ranges have the stated length.
        check(unsafe { sys::cuMemcpyHtoD_v2(self.at, bytes.as_ptr().cast(), count) }, during)?;
        // SAFETY: the null stream exists in every context.
        check(unsafe { sys::cuStreamSynchronize(std::ptr::null_mut()) }, during)
    }

    /// Copies from the beginning of the memory and waits.
    pub(super) fn read(&self, bytes: &mut [u8]) -> Result<(), Fault> {
        let count = bytes.len().min(self.bytes as usize);
        // SAFETY: both ranges have the stated length, and the call returns when the copy is complete.
        check(
            unsafe { sys::cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), self.at, count) },
            "while a buffer was read back",
        )
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated here and is freed once.
        let _ = unsafe { sys::cuMemFree_v2(self.at) };
    }
}

/// Sets a range of device memory to a byte, in stream order.
///
/// # Safety
/// The range must be allocated.
pub(super) unsafe fn set(at: u64, byte: u8, count: u64, stream: &Stream) -> Result<(), Fault> {
    if count == 0 {
        return Ok(());
    }
    // SAFETY: the caller guarantees the requirements.
    check(
        unsafe { sys::cuMemsetD8Async(at, byte, count as usize, stream.0) },
        During::launching("while launching a memset"),
    )
}

/// Copies a range of device memory to another, in stream order.
///
/// # Safety
/// Both ranges must be allocated.
pub(super) unsafe fn copy(to: u64, from: u64, count: u64, stream: &Stream) -> Result<(), Fault> {
    // SAFETY: the caller guarantees the requirements.
    check(unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, count as usize, stream.0) }, "while buffers were copied")
}

/// A loaded module.
pub(super) struct Module {
    module: CUmodule,
    _context: Rc<Context>,
}

impl Module {
    /// Loads a cubin, or PTX that ends with a zero.
    pub(super) fn new(context: &Rc<Context>, image: &[u8], during: &str) -> Result<Self, Fault> {
        let mut module: CUmodule = std::ptr::null_mut();
        // SAFETY: the image is a cubin, whose header states its size, or a text that ends with a zero. The driver checks what a cubin states about itself.
        check(unsafe { sys::cuModuleLoadData(&mut module, image.as_ptr().cast()) }, during)?;
        Ok(Module { module, _context: Rc::clone(context) })
    }

    /// A kernel by its symbol. It must not be used after the module is unloaded.
    pub(super) fn function(&self, symbol: &str) -> Result<Function, Fault> {
        let during = format!("while `{symbol}` was looked up");
        let name = CString::new(symbol).unwrap_or_default();
        let mut function: CUfunction = std::ptr::null_mut();
        // SAFETY: the module is loaded, and the name ends with a zero.
        check(unsafe { sys::cuModuleGetFunction(&mut function, self.module, name.as_ptr()) }, &during)?;
        Ok(Function(function))
    }

    /// The address and size of a global by its symbol.
    pub(super) fn global(&self, symbol: &str) -> Result<(u64, u64), Fault> {
        let during = format!("while the global `{symbol}` was looked up");
        let name = CString::new(symbol).unwrap_or_default();
        let (mut at, mut bytes) = (0, 0);
        // SAFETY: the module is loaded, the name ends with a zero, and the rest lives across the call.
        check(unsafe { sys::cuModuleGetGlobal_v2(&mut at, &mut bytes, self.module, name.as_ptr()) }, &during)?;
        Ok((at, bytes as u64))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: the module was loaded here and is unloaded once.
        let _ = unsafe { sys::cuModuleUnload(self.module) };
    }
}

/// A kernel of a module.
#[derive(Clone, Copy)]
pub(super) struct Function(pub(super) CUfunction);

impl Function {
    /// Allows this many bytes of dynamic shared memory. A kernel needs this above 48 KiB.
    pub(super) fn permit_shared(self, bytes: u64) -> Result<(), Fault> {
        let what = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let value = i32::try_from(bytes).unwrap_or(i32::MAX);
        // SAFETY: the function's module is loaded.
        check(
            unsafe { sys::cuFuncSetAttribute(self.0, what, value) },
            During::launching("while launching: shared memory was asked for"),
        )
    }

    /// Allows clusters that are larger than the size that every device supports.
    pub(super) fn permit_clusters(self) -> Result<(), Fault> {
        let what = CUfunction_attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
        // SAFETY: the function's module is loaded.
        check(
            unsafe { sys::cuFuncSetAttribute(self.0, what, 1) },
            During::launching("while launching: large clusters were asked for"),
        )
    }

    /// The number of blocks with this many threads and bytes of dynamic shared memory that a multiprocessor holds at once.
    pub(super) fn resident(self, threads: u64, shared: u64) -> Result<u32, Fault> {
        let (mut blocks, threads) = (0, i32::try_from(threads).unwrap_or(i32::MAX));
        // SAFETY: the function's module is loaded, and `blocks` lives across the call.
        let asked =
            unsafe { sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, self.0, threads, shared as usize) };
        check(asked, During::launching("while launching: the occupancy was asked for"))?;
        Ok(u32::try_from(blocks).unwrap_or(0))
    }
}

/// A stream that does not synchronize with the null stream.
pub(super) struct Stream(pub(super) CUstream);

impl Stream {
    /// Creates a stream.
    pub(super) fn new(_: &Rc<Context>) -> Result<Self, Fault> {
        let mut stream: CUstream = std::ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: `stream` lives across the call.
        check(unsafe { sys::cuStreamCreate(&mut stream, flags) }, "while a stream was made")?;
        Ok(Stream(stream))
    }

    /// The handle, which is also valid in CUDA's runtime.
    pub(super) fn handle(&self) -> *mut std::ffi::c_void {
        self.0.cast()
    }

    /// Waits until all queued work is done.
    pub(super) fn synchronize(&self, during: &str) -> Result<(), Fault> {
        // SAFETY: the stream is alive.
        check(unsafe { sys::cuStreamSynchronize(self.0) }, during)
    }

    /// The work that `queue` queues, as a graph that has not run yet.
    pub(super) fn capture<E: From<Fault>>(&self, queue: impl FnOnce() -> Result<(), E>) -> Result<Graph, E> {
        let during = || During::launching("while launching: a graph was made");
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is alive and is not capturing.
        check(unsafe { sys::cuStreamBeginCapture_v2(self.0, mode) }, during())?;
        let queued = queue();
        let mut graph = std::ptr::null_mut();
        // SAFETY: the stream is capturing.
        let ended = check(unsafe { sys::cuStreamEndCapture(self.0, &mut graph) }, during());
        queued?;
        ended?;
        let mut ready: CUgraphExec = std::ptr::null_mut();
        // SAFETY: the graph was captured above.
        let made = check(unsafe { sys::cuGraphInstantiateWithFlags(&mut ready, graph, 0) }, during());
        // SAFETY: the executable graph no longer needs it.
        let _ = unsafe { sys::cuGraphDestroy(graph) };
        made.map(|()| Graph(ready)).map_err(E::from)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the stream was created here and is destroyed once.
        let _ = unsafe { sys::cuStreamDestroy_v2(self.0) };
    }
}

/// Launches that run as one graph.
pub(super) struct Graph(CUgraphExec);

impl Graph {
    /// Queues the graph.
    pub(super) fn launch(&self, stream: &Stream) -> Result<(), Fault> {
        // SAFETY: both are alive.
        check(unsafe { sys::cuGraphLaunch(self.0, stream.0) }, During::launching("while launching a graph"))
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: the graph was created here and is destroyed once.
        let _ = unsafe { sys::cuGraphExecDestroy(self.0) };
    }
}

/// A point in a stream.
pub(super) struct Event(CUevent);

impl Event {
    /// Creates an event with timing.
    pub(super) fn new(_: &Rc<Context>) -> Result<Self, Fault> {
        let mut event: CUevent = std::ptr::null_mut();
        // SAFETY: `event` lives across the call. No flags: timing is enabled.
        check(unsafe { sys::cuEventCreate(&mut event, 0) }, "while an event was made")?;
        Ok(Event(event))
    }

    /// Queues the event.
    pub(super) fn record(&self, stream: &Stream) -> Result<(), Fault> {
        // SAFETY: both are alive.
        check(unsafe { sys::cuEventRecord(self.0, stream.0) }, "while an event was recorded")
    }

    /// Nanoseconds since an earlier event. Both events must have happened.
    pub(super) fn since(&self, start: &Event) -> Result<f64, Fault> {
        let mut ms = 0f32;
        // SAFETY: both are alive, and `ms` lives across the call. cudarc resolves either name to the version that this driver has.
        check(unsafe { sys::cuEventElapsedTime_v2(&mut ms, start.0, self.0) }, "while the launches ran")?;
        Ok(f64::from(ms) * 1e6)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the event was created here and is destroyed once.
        let _ = unsafe { sys::cuEventDestroy_v2(self.0) };
    }
}
