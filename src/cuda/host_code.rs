//! A source that CUDA's compilers reject as it is written, without its host code; and the words of a refusal. Knows what can be left out and what that means for
//! an error; does not know when it is tried ([`super::attempts`]), and compiles nothing.
//!
//! | outcome | the result |
//! |---|---|
//! | the source compiles without what no entry reaches, and with empty headers for those that are absent | a note lists what was left out |
//! | it needs a name that only an absent header can declare | an error that names it |
//! | an entry means several kernels | an error that lists them |
//! | none of these | the compiler's error; that about the source as it is written, if nothing that it includes is absent |

use std::path::{Path, PathBuf};

use super::compile::{CudaCompileError, CudaCompiled};
use super::log;
use kforge_foundation::base::Severity;
use kforge_harness::trees::Replaced;
use kforge_project::source::{AbsentHeader, Given, Place, Reduced, Sources, is_standard};
use kforge_types::record::Note;
use kforge_types::record::params::{CompileParams, Compiler};

/// How a compiler refused a source.
#[derive(Debug, Clone)]
pub(super) struct Refusal {
    pub(super) message: String,
    pub(super) log: String,
}

impl Refusal {
    /// The refusal of nvcc, with what NVRTC reported before: the source is wrong for both, and either may name the cause.
    pub(super) fn after_nvrtc(self, why: &str, said: &str) -> Self {
        Refusal {
            message: format!("{} (nvcc was tried because NVRTC refused the source: {why})", self.message),
            log: format!("{}\nNVRTC, before nvcc:\n{said}", self.log.trim_end()),
        }
    }
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

/// A source without its host code.
pub(super) struct Without<'a> {
    params: &'a CompileParams,
    sources: &'a Sources<'a>,
    headers: &'a Headers<'a>,
    reduced: Reduced,
}

impl<'a> Without<'a> {
    /// The source without what its entries do not reach; none if that is the source as it is written.
    pub(super) fn new(params: &'a CompileParams, sources: &'a Sources<'a>, headers: &'a Headers<'a>) -> Option<Self> {
        let reduced = sources.without_host_code(&params.entries, given(params));
        let compiler = if params.compiler == Compiler::Nvcc { "nvcc" } else { "nvrtc" };
        Some(Without { params, sources, headers, reduced }).filter(|without| without.differs(compiler))
    }

    /// Whether it differs for a compiler from the source as it is written.
    pub(super) fn differs(&self, compiler: &str) -> bool {
        !self.reduced.files.is_empty() || self.reduced.absent.iter().any(|header| self.headers.lack(header, compiler))
    }

    /// The texts that take the place of files.
    pub(super) fn replaced(&self) -> Replaced {
        self.reduced.replaced()
    }

    /// Whether the source as it is written includes a header that even nvcc lacks, under no condition.
    pub(super) fn lacks_for_certain(&self) -> bool {
        self.reduced.absent.iter().any(|header| header.certain && self.headers.lack(header, "nvcc"))
    }

    /// Whether a condition asks about a macro that a header of the host may define.
    pub(super) fn asks_standard(&self) -> bool {
        self.reduced.asks_standard()
    }

    /// What was compiled, with a note that lists what was left out.
    pub(super) fn noted(&self, mut compiled: CudaCompiled) -> CudaCompiled {
        let mut reduced = self.reduced.clone();
        reduced.retain_absent(|header| self.headers.lack(header, &compiled.facts.compiler));
        compiled.notes.push(Note::new(Severity::Note, LEFT_OUT, reduced.listed(&self.params.main)));
        compiled
    }

    /// The refusal to report, of those of the source as it is written and without its host code. `last` is what the last compiler said without the host code.
    pub(super) fn refusal(&self, written: Refusal, reduced: Refusal, last: &str) -> Refusal {
        let absent: Vec<_> =
            self.reduced.absent.iter().filter(|header| self.headers.lack(header, "nvcc")).cloned().collect();
        let undeclared = log::undeclared(last).into_iter();
        let errors: Vec<_> = undeclared.map(|(name, (file, line))| (name, Place { file, line })).collect();
        if let Some(need) = self.sources.need(&self.params.entries, &errors, &absent) {
            return Refusal { message: need.to_string(), log: format!("{}:1: error: {need}\n", need.place) };
        }
        // What was left out cannot be the reason: the source as it is written says more.
        let mut refused = worded(self.params, self.sources, if absent.is_empty() { written } else { reduced });
        refused.log += &self.reduced.why_whole();
        refused
    }
}

/// The macros and the flags.
pub(super) fn given(params: &CompileParams) -> Given<'_> {
    Given::new(&params.defines, &params.flags)
}

/// The code of the note that lists what was left out of a source.
pub(super) const LEFT_OUT: &str = "compile.left-out";

/// A refusal; if an entry means several kernels, one that lists them.
pub(super) fn worded(params: &CompileParams, sources: &Sources<'_>, refused: Refusal) -> Refusal {
    let about_entries = log::is_about_entries(&refused.log);
    match params.entries.iter().filter(|_| about_entries).find_map(|entry| sources.ambiguous(entry)) {
        Some(several) => {
            let message = several.lines().next().unwrap_or_default().to_string();
            Refusal { message, log: several }
        }
        None => refused,
    }
}
