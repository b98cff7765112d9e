//! What happens to a source that CUDA's compilers reject as it is written: its host code is left out, or the error is worded. Knows the order of these attempts;
//! compiles nothing itself.
//!
//! | attempt | the result |
//! |---|---|
//! | the file ends inside a brace, a template or a comment | one error with the line at which that opens |
//! | the source without what no entry reaches, and empty headers for those that are absent; not for a candidate of a round, whose author is to mend it | a note lists what was left out |
//! | that needs a name that only an absent header can declare | an error that names it |
//! | an entry means several kernels | an error that lists them |
//! | none of these | the compiler's error; that about the source as it is written, if it includes everything |

use std::path::{Path, PathBuf};

use super::compile::{CudaCompileError, CudaCompiled};
use super::log;
use kforge_foundation::base::Severity;
use kforge_harness::trees::{self, Replaced};
use kforge_project::source::{AbsentHeader, Place, SourceTree, Sources, is_standard};
use kforge_types::record::Note;
use kforge_types::record::params::{CompileParams, Compiler};

/// How a compiler refused a source.
pub(super) struct Refusal {
    pub(super) message: String,
    pub(super) log: String,
}

impl From<Refusal> for CudaCompileError {
    fn from(Refusal { message, log }: Refusal) -> Self {
        CudaCompileError::Failed { message, log, ended: None }
    }
}

/// Where the headers are that are no part of a source.
pub(super) struct Headers<'a> {
    /// CUDA's.
    pub(super) cuda: Option<&'a PathBuf>,
    /// The stand-ins for NVRTC.
    pub(super) shim: &'a Path,
}

impl Headers<'_> {
    fn lack(&self, header: &AbsentHeader, compiler: &str) -> bool {
        let cuda = self.cuda.into_iter().flat_map(|folder| [folder.clone(), folder.join("cccl")]);
        // The host's compiler, which nvcc calls, has more.
        let known = compiler == "nvcc" && is_standard(&header.name);
        !known && !cuda.chain([self.shim.to_path_buf()]).any(|folder| folder.join(&header.name).is_file())
    }
}

/// Compiles a source that was refused as it is written; `compile` does so with other texts in place of some files.
pub(super) fn again(
    params: &CompileParams,
    source: &Path,
    headers: &Headers<'_>,
    refused: Refusal,
    compile: impl Fn(&Replaced) -> Result<CudaCompiled, CudaCompileError>,
) -> Result<CudaCompiled, CudaCompileError> {
    let unread = |e: std::io::Error| CudaCompileError::Unavailable { why: format!("could not read the sources: {e}") };
    let files = trees::texts(source).map_err(unread)?;
    let sources = Sources::read(SourceTree { files: &files, main: &params.main, include: &params.include });
    if let Some(unfinished) = sources.unfinished() {
        return Err(Refusal { message: unfinished.to_string(), log: unfinished.as_error() }.into());
    }
    let given = params.defines.iter().flat_map(|(name, value)| [name, value]).chain(&params.flags).map(String::as_str);
    let mut reduced = sources.without_host_code(&params.entries, given);
    if params.candidate {
        return Err(worded(params, &sources, refused).into());
    }
    let compiler = if params.compiler == Compiler::Nvcc { "nvcc" } else { "nvrtc" };
    if reduced.files.is_empty() && !reduced.absent.iter().any(|header| headers.lack(header, compiler)) {
        return Err(worded(params, &sources, refused).into());
    }
    match compile(&reduced.replaced()) {
        Ok(mut compiled) => {
            reduced.retain_absent(|header| headers.lack(header, &compiled.facts.compiler));
            compiled.notes.push(Note::new(Severity::Note, LEFT_OUT, reduced.listed(&params.main)));
            Ok(compiled)
        }
        Err(CudaCompileError::Failed { message, log, ended: None }) => {
            reduced.retain_absent(|header| headers.lack(header, "nvcc"));
            let errors: Vec<_> =
                log::undeclared(&log).into_iter().map(|(name, (file, line))| (name, Place { file, line })).collect();
            if let Some(need) = sources.need(&params.entries, &errors, &reduced.absent) {
                return Err(
                    Refusal { message: need.to_string(), log: format!("{}:1: error: {need}\n", need.place) }.into()
                );
            }
            // What was left out cannot be the reason: the source as it is written says more.
            let second = Refusal { message, log };
            Err(worded(params, &sources, if reduced.absent.is_empty() { refused } else { second }).into())
        }
        Err(other) => Err(other),
    }
}

/// The code of the note that lists what was left out of a source.
pub(super) const LEFT_OUT: &str = "compile.left-out";

/// A refusal; if an entry means several kernels, one that lists them.
fn worded(params: &CompileParams, sources: &Sources<'_>, refused: Refusal) -> Refusal {
    let about_entries = log::is_about_entries(&refused.log);
    match params.entries.iter().filter(|_| about_entries).find_map(|entry| sources.ambiguous(entry)) {
        Some(several) => {
            let message = several.lines().next().unwrap_or_default().to_string();
            Refusal { message, log: several }
        }
        None => refused,
    }
}
