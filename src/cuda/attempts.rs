//! The attempts to compile a source: by which compiler, and as it is written or without its host code. Knows their order, which depends only on what the
//! compilers say about the source; compiles nothing itself.
//!
//! | attempt | when |
//! |---|---|
//! | the compiler that the kernel names, or NVRTC, without kernels that nothing needs ([`without_other_kernels`]) | the source holds such kernels and is the package's own |
//! | the same one, as the source is written | it refuses that, or there is no such kernel |
//! | the same one without the host code ([`super::host_code`]) | it refuses the text, and the kernel is not a candidate of a round |
//! | nvcc, without kernels that nothing needs, and as the source is written | the kernel leaves the choice, and a message of NVRTC is one that nvcc may not have ([`log::wants_nvcc`]) |
//! | nvcc without the host code | nvcc refuses the source as it is written, or lacks a header of it |
//!
//! | decision | reason |
//! |---|---|
//! | NVRTC without the host code comes before nvcc | what only host code needs is no reason to install nvcc, and NVRTC is several times as fast |
//! | but not if a condition asks about a macro that a header of the host may define, which NVRTC lacks | an empty header could change what the kernel means; nvcc has the header |
//! | if the source includes a header that nvcc lacks, too, only what NVRTC says without the host code leads to nvcc | nvcc refuses the source as it is written |
//! | a generated source is never compiled with nvcc, unless its kernel names nvcc | it needs no header of the host; another compiler would hide a mistake of the template or agent |
//! | if both refuse, the error holds the messages of both | either may name the cause |

use std::path::Path;

use super::compile::{CudaCompileError, CudaCompiled};
use super::host_code::{Headers, LEFT_OUT, Refusal, Without, given, worded};
use super::log;
use kforge_foundation::base::Severity;
use kforge_harness::trees::{self, Replaced};
use kforge_project::source::{SourceTree, Sources, without_other_kernels};
use kforge_types::model::generate::GENERATED;
use kforge_types::record::Note;
use kforge_types::record::params::{CompileParams, Compiler};

/// Compiles a source. `with` compiles it once, by NVRTC or nvcc, with other texts in place of some files.
pub(super) fn compile(
    params: &CompileParams,
    source: &Path,
    headers: &Headers<'_>,
    with: impl Fn(Compiler, &Replaced) -> Result<CudaCompiled, CudaCompileError>,
) -> Result<CudaCompiled, CudaCompileError> {
    let first = if params.compiler == Compiler::Auto { Compiler::Nvrtc } else { params.compiler };
    let unread = |e: std::io::Error| CudaCompileError::Unavailable { why: format!("could not read the sources: {e}") };
    let files = trees::texts(source).map_err(unread)?;
    let tree = SourceTree { files: &files, main: &params.main, include: &params.include };
    let own = !params.candidate && !is_generated(params);
    let alone = own.then(|| without_other_kernels(tree, &params.entries, given(params))).flatten();
    // The source without other kernels, if it has any and a compiler accepts it so.
    let by_itself = |by| {
        let Some(alone) = &alone else { return Ok(None) };
        let Ok(mut compiled) = attempt(with(by, &alone.replaced()))? else { return Ok(None) };
        compiled.notes.push(Note::new(Severity::Note, LEFT_OUT, alone.listed(&params.main)));
        Ok(Some(compiled))
    };
    if let Some(compiled) = by_itself(first)? {
        return Ok(compiled);
    }
    let written = |by| attempt(with(by, &Replaced::new()));
    let refused = match written(first)? {
        Ok(compiled) => return Ok(compiled),
        Err(refused) if refused.log.is_empty() => return Err(refused.into()),
        Err(refused) => refused,
    };
    let sources = Sources::read_given(tree, given(params));
    let unfinished = sources.unfinished();
    let without = if params.candidate || unfinished.is_some() { None } else { Without::new(params, &sources, headers) };
    let reduced = |by, without: &Without<'_>| attempt(with(by, &without.replaced()));

    let why_written = log::wants_nvcc(&log::messages(&refused.log)).filter(|_| falls_back(params));
    // Whether nvcc cannot compile the source as it is written.
    let hopeless = without.as_ref().is_some_and(Without::lacks_for_certain);
    let mut second = None;
    if let Some(without) = without.as_ref().filter(|w| why_written.is_none() || hopeless || !w.asks_standard()) {
        match reduced(first, without)? {
            Ok(compiled) => return Ok(without.noted(compiled)),
            Err(refused) => second = Some(refused),
        }
    }
    let why_reduced = second.as_ref().filter(|_| falls_back(params));
    let why_reduced = why_reduced.and_then(|refused| log::wants_nvcc(&log::messages(&refused.log)));
    let why = why_reduced.or(why_written.filter(|_| !hopeless));

    // The refusals that count in the end: of the source as it is written, and without its host code.
    let (mut of_written, mut of_reduced) = (refused.clone(), second.clone());
    // What the source lacks, only the last compiler says: NVRTC lacks more.
    let mut last = second.as_ref().map(|second| second.log.clone()).unwrap_or_default();
    if let Some(why) = &why {
        let by_nvcc = |compiled: CudaCompiled| {
            let note = Note::new(Severity::Note, "compile.nvcc", format!("compiled with nvcc: {why}"));
            CudaCompiled { notes: compiled.notes.into_iter().chain([note]).collect(), ..compiled }
        };
        let needs = |error| match error {
            CudaCompileError::NeedsNvcc { .. } => {
                CudaCompileError::NeedsNvcc { why: why.clone(), log: refused.log.clone() }
            }
            other => other,
        };
        if !hopeless {
            if let Some(compiled) = by_itself(Compiler::Nvcc).map_err(needs)? {
                return Ok(by_nvcc(compiled));
            }
            match written(Compiler::Nvcc).map_err(needs)? {
                Ok(compiled) => return Ok(by_nvcc(compiled)),
                Err(nvccs) => of_written = nvccs.after_nvrtc(why, &refused.log),
            }
        }
        if let Some(without) = without.as_ref().filter(|without| without.differs("nvcc")) {
            match reduced(Compiler::Nvcc, without).map_err(needs)? {
                Ok(compiled) => return Ok(without.noted(by_nvcc(compiled))),
                Err(nvccs) => {
                    last.clone_from(&nvccs.log);
                    let said = second.as_ref().map_or(&refused.log, |second| &second.log);
                    of_reduced = Some(nvccs.after_nvrtc(why, said));
                }
            }
        }
    }
    if let Some(unfinished) = unfinished {
        return Err(Refusal { message: unfinished.to_string(), log: unfinished.as_error() }.into());
    }
    Err(match (&without, of_reduced) {
        (Some(without), Some(of_reduced)) => without.refusal(of_written, of_reduced, &last),
        _ => worded(params, &sources, of_written),
    }
    .into())
}

/// Whether a source may be compiled with nvcc although its kernel does not name it.
fn falls_back(params: &CompileParams) -> bool {
    params.compiler == Compiler::Auto && !is_generated(params)
}

/// Whether a template or an agent made the source: such sources have a folder of their own.
fn is_generated(params: &CompileParams) -> bool {
    params.main.strip_prefix(GENERATED).is_some_and(|rest| rest.starts_with('/'))
}

/// A refusal of the source's text is a result of an attempt; every other error ends the attempts.
fn attempt(made: Result<CudaCompiled, CudaCompileError>) -> Result<Result<CudaCompiled, Refusal>, CudaCompileError> {
    match made {
        Ok(compiled) => Ok(Ok(compiled)),
        Err(CudaCompileError::Failed { message, log, ended: None }) => Ok(Err(Refusal { message, log })),
        Err(other) => Err(other),
    }
}
