//! Compiles with NVRTC, in this process. Knows its options and its need for a working directory.
//!
//! NVRTC looks up files in the process's working directory, which threads share. Therefore each compilation runs in a confined thread with its own working
//! directory (Linux lets a thread stop sharing it). The thread has a large stack, because NVRTC's front end recurses with the nesting of the source and a stack
//! overflow ends the process.
#![expect(unsafe_code, reason = "a thread takes a working directory of its own")]

use std::path::Path;

use super::compile::CudaCompileError;
use super::load::{Compilation, LoadError, load};
use super::stage::{self, SHIM, Stage};
use super::{log, shim};
use kforge_harness::compilers::ToolSandbox;
use kforge_types::record::params::CompileParams;

/// Address space for the stack of NVRTC's thread; pages are allocated as they are used.
const STACK: usize = 256 << 20;

/// Compiles; the log is NVRTC's, unchanged.
pub(super) fn compile(
    params: &CompileParams,
    source: &Path,
    shim: &Path,
    nvrtc: (&Path, &Path),
    cuda_include: &Path,
    within: &ToolSandbox<'_>,
) -> Result<Compilation, CudaCompileError> {
    let library = load(nvrtc.0, nvrtc.1).map_err(|e| match e {
        LoadError::Another(place) => CudaCompileError::NeedsFreshProcess {
            why: format!("this process has loaded `{}`, but the step needs `{}`", place.display(), nvrtc.0.display()),
        },
        LoadError::Broken(why) => CudaCompileError::Unavailable { why },
    })?;
    let unavailable =
        |e: std::io::Error| CudaCompileError::Unavailable { why: format!("could not lay out the source: {e}") };
    let (_, text) = stage::main_file(params, source).map_err(CudaCompileError::failed)?;
    let stage = Stage::new(source, cuda_include, Some(shim), within.scratch).map_err(unavailable)?;
    let options = options(params, &stage, library.version()).map_err(CudaCompileError::failed)?;
    let entries: Vec<&str> = params.entries.iter().map(String::as_str).collect();
    let run = || {
        own_directory(stage.path()).map_err(|e| format!("could not give NVRTC a folder of its own: {e}"))?;
        if let Some(bounds) = within.bounds {
            bounds.confine_thread(stage.path()).map_err(|e| format!("could not confine NVRTC: {e}"))?;
        }
        library.compile(&text, &params.main, &options, &entries)
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("nvrtc".into()).stack_size(STACK).spawn_scoped(scope, run);
        match thread.map_err(unavailable)?.join() {
            Ok(made) => made.map_err(|why| CudaCompileError::Unavailable { why }),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Gives this thread its own working directory and changes to `folder`.
fn own_directory(folder: &Path) -> std::io::Result<()> {
    // SAFETY: the call takes no pointers. It only stops sharing the working directory, root and umask with other threads.
    if unsafe { libc::unshare(libc::CLONE_FS) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(rustix::process::chdir(folder)?)
}

/// NVRTC's options. These are always present:
///
/// | option | why |
/// |---|---|
/// | `-default-device` | functions without annotation, as in shared headers, are device functions |
/// | `--ptxas-options=-v` | reports spills; it changes a note in the cubin, so it must be present either always or never |
/// | `-frandom-seed` | otherwise a file whose kernels are all `static` has the process id in its symbols (since 12.9) |
/// | `--pre-include` | the prelude: `uint32_t`, `INFINITY` and similar names |
fn options(params: &CompileParams, stage: &Stage, version: (i32, i32)) -> Result<Vec<String>, String> {
    let mut options = vec![
        format!("--gpu-architecture={}", params.arch),
        format!("-std={}", params.std),
        "-default-device".to_string(),
        "--ptxas-options=-v".to_string(),
        format!("--pre-include={SHIM}/{}", shim::PRELUDE),
    ];
    if version >= (12, 9) {
        options.push("-frandom-seed=kforge".to_string());
    }
    options.extend(stage::defines(params));
    options.extend(Stage::own_includes(params).into_iter().map(|folder| format!("-I{folder}")));
    options.extend(stage.cuda_includes().into_iter().map(|folder| format!("-I{folder}")));
    options.push(format!("-I{SHIM}"));
    options.extend(stage::flags(params)?.iter().cloned());
    Ok(options)
}

/// Why nvcc should be tried, if NVRTC failed because of something that it does not support.
pub(super) fn wants_nvcc(made: &Compilation) -> Option<String> {
    if made.result.is_some() { None } else { log::wants_nvcc(&log::messages(&made.log)) }
}
