//! Compiles with NVRTC. Knows its options and its need for a working directory; [`super::compiler_process`] is where the compilations of steps run.
//!
//! NVRTC looks up files in the process's working directory, which threads share. A compilation of the caller's own source runs in this process, in a thread with
//! its own working directory (Linux lets a thread stop sharing it) and a large stack.
#![expect(unsafe_code, reason = "a thread takes a working directory of its own")]

use std::path::Path;

use super::compile::CudaCompileError;
use super::compiler_process::{self, Request};
use super::compiler_server::STACK;
use super::load::{Compilation, LoadError, load};
use super::shim;
use super::stage::{self, Given, SHIM, Stage};
use kforge_harness::compilers::ToolSandbox;
use kforge_project::source::{ABSENT, with_parameters};
use kforge_types::record::params::CompileParams;

/// Compiles; the log is NVRTC's, unchanged.
pub(super) fn compile(
    params: &CompileParams,
    source: Given<'_>,
    shim: &Path,
    nvrtc: (&Path, &Path),
    cuda_include: &Path,
    within: &ToolSandbox<'_>,
) -> Result<Compilation, CudaCompileError> {
    let unavailable =
        |e: std::io::Error| CudaCompileError::Unavailable { why: format!("could not lay out the source: {e}") };
    let (file, text) = stage::main_file(params, source).map_err(CudaCompileError::failed)?;
    let stage = Stage::new(source, cuda_include, Some(shim), within.scratch).map_err(unavailable)?;
    let mut options = options(params, &stage).map_err(CudaCompileError::failed)?;
    if !source.replaced.is_empty() {
        options.push(format!("-I{ABSENT}"));
    }
    let entries: Vec<String> = params.entries.iter().map(|entry| name_expression(entry)).collect();
    if let Some(bounds) = within.bounds {
        let request = Request {
            folder: stage.path().to_path_buf(),
            file: std::path::absolute(file.unwrap_or_else(|| stage.path().join(&params.main))).map_err(unavailable)?,
            name: params.main.clone(),
            options,
            entries,
            ptx: params.ptx,
            keep: bounds.of_library(stage.path()),
        };
        return compiler_process::compile(nvrtc.0, &request, (bounds.outside(), within.deadline));
    }
    let library = load(nvrtc.0, nvrtc.1).map_err(|e| match e {
        LoadError::Another(place) => CudaCompileError::NeedsFreshProcess {
            why: format!("this process has loaded `{}`, but the step needs `{}`", place.display(), nvrtc.0.display()),
        },
        LoadError::Broken(why) => CudaCompileError::Unavailable { why },
    })?;
    let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
    let run = || {
        own_directory(stage.path()).map_err(|e| format!("could not give NVRTC a folder of its own: {e}"))?;
        library.compile(&text, &params.main, &options, &entries, params.ptx)
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("nvrtc".into()).stack_size(STACK).spawn_scoped(scope, run);
        match thread.map_err(unavailable)?.join() {
            Ok(made) => made.map_err(|why| CudaCompileError::Unavailable { why }),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// An entry as NVRTC looks it up.
fn name_expression(entry: &str) -> String {
    match with_parameters(entry) {
        Some((name, parameters)) => format!("static_cast<void (*)({parameters})>({name})"),
        None => entry.to_string(),
    }
}

/// Gives this thread its own working directory and changes to `folder`.
fn own_directory(folder: &Path) -> std::io::Result<()> {
    // SAFETY: the call takes no pointers. It only stops sharing the working directory, root and umask with other threads.
    if unsafe { libc::unshare(libc::CLONE_FS) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(rustix::process::chdir(folder)?)
}

/// NVRTC's options; [`super::load`] adds one for its release. These are always present:
///
/// | option | why |
/// |---|---|
/// | `-default-device` | functions without annotation, as in shared headers, are device functions |
/// | `--ptxas-options=-v` | reports spills; it changes a note in the cubin, so it must be present either always or never |
/// | `--pre-include` | the prelude: `uint32_t`, `INFINITY` and similar names |
fn options(params: &CompileParams, stage: &Stage) -> Result<Vec<String>, String> {
    let mut options = vec![
        format!("--gpu-architecture={}", params.arch),
        format!("-std={}", params.std),
        "-default-device".to_string(),
        "--ptxas-options=-v".to_string(),
        format!("--pre-include={SHIM}/{}", shim::PRELUDE),
    ];
    options.extend(stage::defines(params));
    options.extend(Stage::own_includes(params).into_iter().map(|folder| format!("-I{folder}")));
    options.extend(stage.cuda_includes().into_iter().map(|folder| format!("-I{folder}")));
    options.push(format!("-I{SHIM}"));
    options.extend(stage::flags(params)?.iter().cloned());
    Ok(options)
}
