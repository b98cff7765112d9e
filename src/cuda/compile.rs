//! Compiles a staged source to a cubin, once by one compiler. Knows what each compiler gives, but not when another is tried ([`super::attempts`]) or where either
//! was installed from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::attempts;
use super::host_code::Headers;
use super::load::Compilation;
use super::stage::Given;
use super::triton::compile_triton;
use super::{elf, fatbin, log, nvcc, nvrtc};
use kforge_foundation::process::End;
use kforge_harness::compilers::ToolSandbox;
use kforge_harness::trees::Replaced;
use kforge_types::model::target::capability;
use kforge_types::record::Note;
use kforge_types::record::params::{CompileFacts, CompileParams, Compiler};

/// A compiled source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CudaCompiled {
    /// Machine code for one architecture, or the library that holds it together with the kernel's own launcher: the step's `binary`.
    pub cubin: Vec<u8>,
    /// The PTX from which the machine code was made, if the parameters ask for it: the step's `ptx`.
    pub ptx: Option<Vec<u8>>,
    /// Facts that only the compiler knows: the step's `facts`.
    pub facts: CompileFacts,
    /// The compiler's output, without times: the step's `log`.
    pub log: String,
    /// The compiler's warnings and other notes.
    pub notes: Vec<Note>,
}

/// Why there is no binary.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CudaCompileError {
    /// The source is wrong.
    #[error("{message}")]
    Failed {
        /// The first error in one line: `norms/main.cu:9: identifier "foo" is undefined`.
        message: String,
        /// The whole output of the compiler.
        log: String,
        /// How the compiler ended, if it did not exit by itself.
        ended: Option<End>,
    },
    /// Only nvcc can compile the source, and no path of nvcc was given. Install nvcc and compile again.
    #[error("nvcc is needed: {why}")]
    NeedsNvcc {
        /// What NVRTC lacks.
        why: String,
        /// The output of NVRTC.
        log: String,
    },
    /// This process has loaded another NVRTC. Use a new process.
    #[error("a fresh worker is needed: {why}")]
    NeedsFreshProcess {
        /// The loaded library and the required one.
        why: String,
    },
    /// This machine cannot compile the source.
    #[error("{why}")]
    Unavailable {
        /// What is missing.
        why: String,
    },
}

impl CudaCompileError {
    pub(super) fn failed(message: String) -> Self {
        CudaCompileError::Failed { message, log: String::new(), ended: None }
    }
}

/// The time limit for compiling a source of the caller's own.
const LONGEST: Duration = Duration::from_secs(600);

/// Compiles a source of the caller's own, unconfined: see [`compile_within`].
///
/// # Errors
/// As for [`compile_within`].
pub fn compile(
    params: &CompileParams,
    source: &Path,
    shim: &Path,
    tools: &BTreeMap<String, PathBuf>,
    scratch: &Path,
) -> Result<CudaCompiled, CudaCompileError> {
    compile_within(
        params,
        source,
        shim,
        tools,
        &ToolSandbox { scratch, bounds: None, deadline: Instant::now() + LONGEST },
    )
}

/// Compiles the source tree at `source` as `params` specify. `shim` is the folder of the stand-ins, which only NVRTC reads. `tools` has the paths of compilers
/// (names as in [`kforge_harness::message::Places`]). `within` is where compilers work and how they are confined.
///
/// # Errors
/// The source is wrong, or a tool is missing: see [`CudaCompileError`].
pub fn compile_within(
    params: &CompileParams,
    source: &Path,
    shim: &Path,
    tools: &BTreeMap<String, PathBuf>,
    within: &ToolSandbox<'_>,
) -> Result<CudaCompiled, CudaCompileError> {
    capability(&params.arch).map_err(|unknown| CudaCompileError::failed(unknown.to_string()))?;
    if !params.triton.is_empty() {
        return compile_triton(params, source, tools, within);
    }
    if let Some(function) = &params.host {
        let Some(nvcc) = tools.get("nvcc") else {
            let why = "the kernel has a launcher of its own, which is host code".to_string();
            return Err(CudaCompileError::NeedsNvcc { why, log: String::new() });
        };
        let given = Given { folder: source, replaced: &Replaced::new() };
        let made = nvcc::Unit::new(params, given, nvcc, tool(tools, "c++")?, within)?.compile_library()?;
        return finish_library(params, function, made);
    }
    if params.entries.is_empty() {
        return Err(CudaCompileError::failed(format!("no launch names an entry of `{}`", params.main)));
    }
    let headers = Headers { cuda: tools.get("cuda-include"), shim };
    attempts::compile(params, source, &headers, |compiler, replaced| {
        let given = Given { folder: source, replaced };
        match compiler {
            Compiler::Nvcc => finish(params, by_nvcc(params, given, tools, within)?, "nvcc"),
            Compiler::Nvrtc => finish(params, by_nvrtc(params, given, shim, tools, within)?, "nvrtc"),
            Compiler::Auto => Err(CudaCompileError::failed("BUG: no attempt chooses a compiler".into())),
            Compiler::Triton => {
                Err(CudaCompileError::failed("BUG: a compilation by Triton without a signature".into()))
            }
            Compiler::EmulatorPlain | Compiler::EmulatorCheck | Compiler::TritonInterpreter | Compiler::Torch => {
                Err(CudaCompileError::failed(format!("the emulator's compiler does not compile `{}`", params.arch)))
            }
        }
    })
}

fn tool<'a>(tools: &'a BTreeMap<String, PathBuf>, name: &str) -> Result<&'a Path, CudaCompileError> {
    let missing = || CudaCompileError::Unavailable { why: format!("the toolchain has no {name} here") };
    tools.get(name).map(PathBuf::as_path).ok_or_else(missing)
}

fn by_nvrtc(
    params: &CompileParams,
    source: Given<'_>,
    shim: &Path,
    tools: &BTreeMap<String, PathBuf>,
    within: &ToolSandbox<'_>,
) -> Result<Compilation, CudaCompileError> {
    let library = (tool(tools, "nvrtc")?, tool(tools, "nvrtc-builtins")?);
    nvrtc::compile(params, source, shim, library, tool(tools, "cuda-include")?, within)
}

fn by_nvcc(
    params: &CompileParams,
    source: Given<'_>,
    tools: &BTreeMap<String, PathBuf>,
    within: &ToolSandbox<'_>,
) -> Result<Compilation, CudaCompileError> {
    let Some(nvcc) = tools.get("nvcc") else {
        let why = "the kernel asks for it".to_string();
        return Err(CudaCompileError::NeedsNvcc { why, log: String::new() });
    };
    nvcc::Unit::new(params, source, nvcc, tool(tools, "c++")?, within)?.compile()
}

/// Checks that the library exports the launcher, and collects the facts about the kernels in the library.
fn finish_library(params: &CompileParams, function: &str, made: Compilation) -> Result<CudaCompiled, CudaCompileError> {
    let messages = log::messages(&made.log);
    let failed = |message: String| CudaCompileError::Failed { message, log: log::timeless(&made.log), ended: None };
    let Some((library, _)) = &made.result else {
        let message = log::first_error(&messages, &[]).or_else(|| log::linkers_error(&made.log));
        return Err(failed(message.unwrap_or_else(|| format!("`{}` does not compile", params.main))));
    };
    if !fatbin::exports(library, function).map_err(|e| CudaCompileError::failed(e.to_string()))? {
        return Err(failed(format!("`{}` has no function `{function}`: is it `extern \"C\"`?", params.main)));
    }
    let mut symbols = vec![];
    for cubin in fatbin::cubins(library).map_err(|e| CudaCompileError::failed(e.to_string()))? {
        symbols.extend(elf::kernels(cubin).map_err(|e| CudaCompileError::failed(e.to_string()))?);
    }
    symbols.sort();
    let facts = CompileFacts { compiler: "nvcc".into(), symbols, spills: log::spills(&made.log), triton: vec![] };
    let (notes, log) = (log::warnings(&messages), log::timeless(&made.log));
    let library = made.result.map(|(library, _)| library).unwrap_or_default();
    Ok(CudaCompiled { cubin: library, ptx: None, facts, log, notes })
}

/// Checks that every entry has machine code, and collects the facts about it.
fn finish(params: &CompileParams, made: Compilation, compiler: &str) -> Result<CudaCompiled, CudaCompileError> {
    let messages = log::messages(&made.log);
    let Some((cubin, symbols)) = made.result else {
        let message = log::first_error(&messages, &params.entries)
            .unwrap_or_else(|| format!("`{}` does not compile", params.main));
        return Err(CudaCompileError::Failed { message, log: log::timeless(&made.log), ended: None });
    };
    // A template without an instantiation compiles successfully to nothing.
    let there = elf::functions(&cubin).map_err(|e| CudaCompileError::failed(e.to_string()))?;
    if let Some((entry, symbol)) = params.entries.iter().zip(&symbols).find(|(_, symbol)| !there.contains(*symbol)) {
        return Err(CudaCompileError::Failed {
            message: format!(
                "entry `{entry}` (`{symbol}`) has no machine code in `{}`: is it a `__global__` function?",
                params.main
            ),
            log: log::timeless(&made.log),
            ended: None,
        });
    }
    if params.ptx && made.ptx.as_ref().is_none_or(Vec::is_empty) {
        let why = format!("{compiler} gives no PTX of `{}` for {}", params.main, params.arch);
        return Err(CudaCompileError::failed(why));
    }
    let spills = log::spills(&made.log);
    let facts = CompileFacts { compiler: compiler.to_string(), symbols, spills, triton: vec![] };
    let notes = log::warnings(&messages);
    Ok(CudaCompiled { cubin, ptx: made.ptx, facts, log: log::timeless(&made.log), notes })
}
