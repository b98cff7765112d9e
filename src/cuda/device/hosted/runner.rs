//! `kforge worker --host-runner START`: the process of a launcher. Confines itself, creates a context, and calls the launcher once per run. Has a pipe and
//! memory files, but no expected values; the verifier does not trust its reports.
#![expect(unsafe_code, reason = "a library that others wrote is loaded and called")]

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::process::ExitCode;
use std::rc::Rc;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::abi::{Call, CallMemory};
use super::message::{BufferFiles, Request, Start};
use crate::device::context::{Context, Memory, Stream};
use crate::device::driver;
use crate::device::fault::Fault;
use kforge_harness::confine::{confine_files, watch_all};
use kforge_harness::message::RunnerReport;
use kforge_harness::runner::{started, take_reports};
use kforge_types::record::{Finding, FindingKind};

/// A launcher, as `kforge_host.h` declares it.
type Launcher = unsafe extern "C" fn(*const Call<'_>) -> i32;

/// The main function of the process. Its exit status is trusted only until it reports that the launcher's library is about to be loaded.
pub fn host_runner_main(args: &[OsString]) -> ExitCode {
    started(args, |start| -> Result<(), String> {
        serve(&start)?;
        // Destructors of the library are not part of a run.
        // SAFETY: the process has no unwritten output of its own.
        unsafe { libc::_exit(0) }
    })
}

fn serve(start: &Start) -> Result<(), String> {
    let mut confined = confine_files(&start.keep).map_err(|e| format!("cannot confine the launcher: {e}"))?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(|e| format!("cannot read the request: {e}"))?;
    let request: Request = serde_json::from_str(&line).map_err(|e| format!("not a request to a launcher: {e}"))?;
    let mut reports = take_reports().map_err(|e| format!("cannot open the report: {e}"))?;
    let device = Device::new(start, &request)?;
    let calls = watch_all(&start.keep, reports.as_raw_fd()).map_err(|e| format!("cannot confine the launcher: {e}"))?;
    confined.missing.extend(calls);
    let mut report = |report: RunnerReport| -> Result<(), String> {
        let text = serde_json::to_string(&report).map_err(|e| e.to_string())?;
        // Each report is written immediately as one line, so that findings before a crash are reported.
        reports.write_all((text + "\n").as_bytes()).map_err(|e| format!("cannot report: {e}"))
    };
    report(RunnerReport::Confined { missing: confined.missing })?;
    report(RunnerReport::Loading)?;
    let found = run(&request, &device, &mut report)?;
    // After a fault the context is unusable, and nothing may wait for its work.
    std::mem::forget(device);
    found.map_or(Ok(()), |(trial, finding)| report(RunnerReport::Finding { trial, finding }))
}

/// The device, and the memory that all runs share.
struct Device {
    buffers: Vec<Memory>,
    stream: Stream,
    context: Rc<Context>,
}

impl Device {
    fn new(start: &Start, request: &Request) -> Result<Self, String> {
        driver::load(start.libcuda.as_deref())?;
        let first = driver::devices().map_err(|fault| fault.to_string())?.into_iter().next();
        let context = Context::new(first.ok_or("the driver shows no device")?).map_err(|fault| fault.to_string())?;
        let stream = Stream::new(&context).map_err(|fault| fault.to_string())?;
        let of = |handed: &BufferFiles| Memory::new(&context, handed.bytes).map_err(|fault| fault.to_string());
        let buffers = request.runs.first().map_or(Ok(vec![]), |run| run.iter().map(of).collect())?;
        Ok(Device { buffers, stream, context })
    }
}

/// The result of a run that did not finish.
type RunFinding = Option<(u32, Finding)>;

/// Loads the library and runs the launcher on each set of buffers. Returns the finding of the run that failed, if any.
fn run(
    request: &Request,
    device: &Device,
    report: &mut dyn FnMut(RunnerReport) -> Result<(), String>,
) -> Result<RunFinding, String> {
    let wrong = |kind, message: String| Ok(Some((0, Finding::new(kind, message))));
    let path = format!("/proc/self/fd/{}", request.library);
    // SAFETY: this runs untrusted code, which is the purpose of this process: it has dropped all privileges that it does not need, and its reports are not
    // trusted.
    let library = match unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) } {
        Ok(library) => std::mem::ManuallyDrop::new(library),
        Err(e) => {
            // The source of the error is the loader's message.
            let why = std::error::Error::source(&e).map_or_else(|| e.to_string(), ToString::to_string);
            return wrong(FindingKind::Crash, format!("the launcher's library cannot be loaded: {why}"));
        }
    };
    // SAFETY: the function should be declared as in the header; a function with another declaration can only harm this process.
    let launcher = match unsafe { library.get::<Launcher>(&request.function) } {
        Ok(launcher) => *launcher,
        Err(_) => return wrong(FindingKind::Crash, format!("the library has no function `{}`", request.function)),
    };
    let offsets = request.runs.first().into_iter().flatten().map(|handed| handed.offset);
    let places: Vec<u64> = device.buffers.iter().zip(offsets).map(|(memory, offset)| memory.at() + offset).collect();
    let made = CallMemory::new(&request.asked, &places);
    for (trial, buffers) in (0u32..).zip(&request.runs) {
        match once(device, buffers, || {
            // SAFETY: as above; the call and all data that it points to live across it.
            unsafe { launcher(&made.call(device.stream.handle())) }
        }) {
            Ok(0) => report(RunnerReport::TrialDone { trial })?,
            Ok(number) => {
                let message = format!("the launcher `{}` returned {number}, where 0 is success", request.function);
                return Ok(Some((trial, Finding::new(FindingKind::LaunchRefused, message))));
            }
            Err(Trouble::Fault(fault)) => {
                let finding = fault.finding().unwrap_or_else(|| Finding::new(FindingKind::Crash, fault.to_string()));
                return Ok(Some((trial, finding)));
            }
            Err(Trouble::System(why)) => return Err(why),
        }
    }
    Ok(None)
}

enum Trouble {
    Fault(Fault),
    System(String),
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        Trouble::Fault(fault)
    }
}

impl From<io::Error> for Trouble {
    fn from(e: io::Error) -> Self {
        Trouble::System(format!("cannot pass a buffer: {e}"))
    }
}

/// One run: copies the buffers to the device, calls the launcher, and copies the buffers back. Returns the launcher's return value.
fn once(device: &Device, buffers: &[BufferFiles], launch: impl Fn() -> i32) -> Result<i32, Trouble> {
    for (memory, handed) in device.buffers.iter().zip(buffers) {
        let mut bytes = vec![0; handed.bytes as usize];
        file(handed.before).read_exact_at(&mut bytes, 0)?;
        memory.write(&bytes)?;
    }
    // Streams that the launcher creates do not wait for earlier work.
    device.context.synchronize("while buffers were written")?;
    let returned = launch();
    device.stream.synchronize("while the launches ran")?;
    device.context.synchronize("while the launches ran")?;
    if returned == 0 {
        for (memory, handed) in device.buffers.iter().zip(buffers) {
            let mut bytes = vec![0; handed.bytes as usize];
            memory.read(&mut bytes)?;
            file(handed.after).write_all_at(&bytes, 0)?;
        }
    }
    Ok(returned)
}

/// An inherited file, which stays open.
fn file(descriptor: i32) -> std::mem::ManuallyDrop<File> {
    // SAFETY: the verifier passed the descriptor for this purpose. It is not closed here, so that the next run can use it.
    std::mem::ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) })
}
