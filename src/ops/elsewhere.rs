//! A step on another machine: how that machine finds the tools of the step, and how it checks that they are those which the step's key states. Knows toolchains;
//! the package `kforge-remote` knows how a step gets there, and `kforge worker --once` executes it.
//!
//! | decision | because |
//! |---|---|
//! | the machine that asks sends how it found its tools ([`StepFile`]), not their contents | the paths and the list of parts make queries of the compiler needless where the same compiler is installed |
//! | the machine that executes reads every part itself, but the wheels of a CUDA | a key states contents; a result of another compiler under that key would be wrong everywhere. Wheels are installed by digest |
//! | its loader says which libraries are loaded, and its Python which numpy | the files at the paths of the machine that asks may be equal and not be those that are used here |
//! | a compiler that is a script is surveyed again | it may choose another compiler here |
//! | what cannot be compared is a difference | no result is better than one of an unknown compiler |
//! | digests are remembered by the times of files only below `KFORGE_HOME` | whoever may write that memory decides what is compared |
//! | a worker that anyone may send steps to uses only the tools that it found itself ([`WorkerTools`]) | a path that is sent could name any program, which would run before anything is compared, and any file, which the sandbox would show |

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::implementation::implementations;
use crate::session::machine::Machine;
use crate::session::tools::{PRELUDE, is_script};
use kforge_engine::home::Home;
use kforge_engine::stat::StatCache;
use kforge_foundation::base::Digest;
use kforge_harness::elsewhere::Difference;
use kforge_harness::message::Places;
use kforge_harness::task::file_name;
use kforge_project::toolchain::cxx::CachedSurvey;
use kforge_project::toolchain::{Cuda, DigestFile, Group, cxx, processor, python};
use kforge_types::record::Spec;
use kforge_types::record::params::{Compiler, Toolchain};

/// How a toolchain was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The C++ compiler of the machine.
    Cxx,
    /// The Python of the machine, with numpy.
    Python,
    /// A CUDA, to compile.
    CudaCompiler(Cuda, Compiler),
    /// A part of a CUDA.
    Cuda(Cuda, Group),
    /// The headers of cub, and the C++ compiler of the machine.
    Cub(Cuda),
}

impl Origin {
    /// Whether it is found only in a home, where wheels are installed.
    pub fn needs_home(&self) -> bool {
        match self {
            Origin::CudaCompiler(cuda, _) | Origin::Cuda(cuda, _) | Origin::Cub(cuda) => {
                matches!(cuda, Cuda::Wheels(_))
            }
            Origin::Cxx | Origin::Python => false,
        }
    }

    /// Whether it has the C++ compiler of the machine.
    pub fn has_cxx(&self) -> bool {
        match self {
            Origin::Cxx | Origin::Cub(_) => true,
            // nvcc preprocesses with it, and `auto` may choose nvcc.
            Origin::CudaCompiler(_, compiler) => *compiler != Compiler::Nvrtc,
            Origin::Python | Origin::Cuda(..) => false,
        }
    }
}

/// The limits of a step, in seconds and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepLimits {
    /// The time of the step.
    pub time_s: u64,
    /// The time of one run of candidate code.
    pub run_s: u64,
    /// The memory of candidate code.
    pub memory: u64,
    /// The memory of compilers.
    pub compiler_memory: u64,
}

/// The file that `kforge worker --once SPEC IN OUT --places FILE` reads: how the machine that asks found the tools of the step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepFile {
    /// The C++ compiler with its parts, if the step uses one, or what programs that it linked load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cxx: Option<CachedSurvey>,
    /// The path of the Python, if the step uses one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<PathBuf>,
    /// The toolchains of the step, by the digest of their descriptions.
    pub toolchains: BTreeMap<Digest, Origin>,
    /// The limits of the step.
    pub limits: StepLimits,
}

/// What a worker of a server found itself, and its own limits. They take the place of what a step comes with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerTools {
    /// The C++ compiler, if there is one.
    pub cxx: Option<CachedSurvey>,
    /// The Python, if there is one.
    pub python: Option<PathBuf>,
    /// The folder of the installed CUDA, if there is one.
    pub cuda: Option<PathBuf>,
    /// What a step that observes a device gets.
    pub device: BTreeMap<String, PathBuf>,
    /// The file of the key with which it signs what its device shows, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// The most that a step may ask for.
    pub limits: StepLimits,
}

impl StepLimits {
    /// The smaller one of each.
    fn at_most(self, most: StepLimits) -> StepLimits {
        StepLimits {
            time_s: self.time_s.min(most.time_s),
            run_s: self.run_s.min(most.run_s),
            memory: self.memory.min(most.memory),
            compiler_memory: self.compiler_memory.min(most.compiler_memory),
        }
    }
}

/// The part of an input's name that says what it describes: `toolchain` of `toolchain:python`.
pub fn described(input: &str) -> Option<Described> {
    match input.split(':').next() {
        Some("toolchain") => Some(Described::Toolchain),
        Some("runtime") => Some(Described::Runtime),
        Some("processor") => Some(Described::Processor),
        _ => None,
    }
}

/// What an input describes of the machine that executes the step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Described {
    /// Tools.
    Toolchain,
    /// The libraries that a program loads, and the processor.
    Runtime,
    /// The processor.
    Processor,
}

/// A tool of this machine: its description and its paths.
type Found = (Toolchain, BTreeMap<String, PathBuf>);

/// The tools of this machine for a step.
struct Here<'a> {
    file: StepFile,
    /// This program, which loads what programs load that the compiler links.
    program: &'a Path,
    /// The C++ compiler of this machine, if it was found.
    cxx: Option<CachedSurvey>,
    /// Where toolchains are installed; none if no variable names a home.
    toolchains: Option<PathBuf>,
    digest: DigestFile<'a>,
}

impl StepFile {
    /// The same with the tools of a worker, and no path that was sent.
    ///
    /// # Errors
    /// The step needs an installed CUDA that is not the worker's.
    pub fn with_tools_of(self, own: &WorkerTools) -> Result<StepFile, Difference> {
        for origin in self.toolchains.values() {
            let (Origin::CudaCompiler(cuda, _) | Origin::Cuda(cuda, _) | Origin::Cub(cuda)) = origin else { continue };
            if let Cuda::Local(root) = cuda
                && own.cuda.as_ref() != Some(root)
            {
                let why = format!("the CUDA in `{}` is not the one of this worker", root.display());
                return Err(Difference::Missing { input: "toolchain".into(), why });
            }
        }
        let limits = self.limits.at_most(own.limits);
        Ok(StepFile { cxx: own.cxx.clone(), python: own.python.clone(), toolchains: self.toolchains, limits })
    }

    /// The places of the step's tools on this machine. `home` is the home that the environment names, and `program` is this program. Starts no
    /// thread, and no compiler where the tools are the same and the compiler is no script.
    ///
    /// # Errors
    /// In what this machine differs from the one that the spec states.
    pub fn places(
        self,
        spec: &Spec,
        input: &Path,
        home: Option<&Path>,
        program: &Path,
    ) -> Result<Places, Vec<Difference>> {
        let mut differences = vec![];
        if spec.implementation != implementations().of(spec.kind, &spec.params) {
            differences.push(Difference::Code);
        }
        // A home that cannot be opened only makes the comparison slower.
        let opened = home.and_then(|path| Home::open(path).ok());
        let machine = opened.as_ref().and_then(|home| Machine::open(home, true));
        let stats = machine.as_ref().map(|machine| StatCache::new(machine.journal(), Path::new("/"), true));
        let digest = |path: &Path| -> io::Result<Digest> {
            let missing = || io::Error::new(io::ErrorKind::NotFound, format!("`{}` is gone", path.display()));
            match &stats {
                Some(stats) => stats.digest(path)?.ok_or_else(missing),
                None => Digest::of_file(path),
            }
        };
        let toolchains = opened.as_ref().map(Home::toolchains);
        let mut here = Here { file: self, program, cxx: None, toolchains, digest: &digest };
        let mut places = Places::default();
        for (name, stated) in &spec.inputs {
            let (Some(stated), Some(described)) = (&stated.digest, described(name)) else { continue };
            match here.compared(input, name, stated, described) {
                Ok(tools) => places.tools.extend(tools),
                Err(difference) => differences.push(difference),
            }
        }
        places.read = here.cxx.as_ref().or(here.file.cxx.as_ref()).map(|cxx| cxx.survey.folders()).unwrap_or_default();
        if let Some(machine) = machine {
            machine.close();
        }
        if differences.is_empty() { Ok(places) } else { Err(differences) }
    }
}

impl Here<'_> {
    /// The tools of an input, if they are those that it describes.
    fn compared(
        &mut self,
        folder: &Path,
        name: &str,
        stated: &Digest,
        described: Described,
    ) -> Result<BTreeMap<String, PathBuf>, Difference> {
        let missing = |why: String| Difference::Missing { input: name.to_string(), why };
        let bytes = std::fs::read(folder.join(file_name(name))).map_err(|e| missing(e.to_string()))?;
        if Digest::of(&bytes) != *stated {
            return Err(missing("the description is damaged".into()));
        }
        let theirs: Toolchain = serde_json::from_slice(&bytes).map_err(|e| missing(e.to_string()))?;
        let (ours, places) = match described {
            Described::Processor => (processor::fingerprint(), BTreeMap::new()),
            Described::Runtime => (self.runtime().map_err(missing)?, BTreeMap::new()),
            Described::Toolchain => self.toolchain(stated).map_err(missing)?,
        };
        match differing(&theirs, &ours) {
            names if names.is_empty() => Ok(places),
            names => Err(Difference::Parts { input: name.to_string(), names }),
        }
    }

    /// What a program that the C++ compiler links loads here, and the processor.
    fn runtime(&self) -> Result<Toolchain, String> {
        let cxx = self.file.cxx.as_ref().ok_or("the request says nothing of libraries")?;
        let mut survey = cxx.survey.clone();
        survey.load_runtime(self.program).map_err(|e| e.to_string())?;
        let mut runtime = survey.loaded(self.digest).map_err(|e| e.to_string())?;
        runtime.tools.extend(processor::fingerprint().tools);
        Ok(runtime)
    }

    /// The C++ compiler of this machine, at the path of the other one.
    fn cxx(&mut self) -> Result<Found, String> {
        let mut known = self.file.cxx.clone().ok_or("the request says nothing of a C++ compiler")?;
        let path = known.survey.compiler.path.clone();
        let is_loaded =
            !is_script(&path) && known.survey.load_tools().is_ok() && known.survey.load_runtime(self.program).is_ok();
        let recalled = cxx::recall(Some(known).filter(|_| is_loaded), Some(&path), "", PRELUDE, self.digest);
        let (found, _) = recalled.map_err(|e| e.to_string())?;
        let places = [("c++".to_string(), found.survey.compiler.path.clone())].into();
        let fingerprint = found.fingerprint.clone();
        self.cxx = Some(found);
        Ok((fingerprint, places))
    }

    fn python(&mut self) -> Result<Found, String> {
        let asked = self.file.python.as_ref().ok_or("the request says nothing of a Python")?;
        let (python, fingerprint) = python::recall(None, Some(asked), "", self.digest).map_err(|e| e.to_string())?;
        Ok((fingerprint, python::places(&python)))
    }

    /// The paths of a part of a CUDA that is installed here.
    fn installed(&self, cuda: &Cuda, group: Group) -> Result<BTreeMap<String, PathBuf>, String> {
        let none = || "no home is named in which a CUDA is installed (variable `KFORGE_HOME`)".to_string();
        let toolchains = match cuda {
            Cuda::Wheels(_) => self.toolchains.as_deref().ok_or_else(none)?,
            Cuda::Local(root) => root.as_path(),
        };
        let installed = cuda.installed(group, toolchains).map_err(|e| e.to_string())?;
        installed.map(|installed| installed.tools).ok_or_else(|| format!("`{}` is not installed", group.name()))
    }

    fn toolchain(&mut self, stated: &Digest) -> Result<Found, String> {
        let origin = self.file.toolchains.get(stated).cloned();
        let origin = origin.ok_or("the request does not say how it is found")?;
        let host = if origin.has_cxx() { Some(self.cxx()?) } else { None };
        match origin {
            Origin::Cxx => host.ok_or_else(|| "BUG: no C++ compiler".to_string()),
            Origin::Python => self.python(),
            Origin::Cuda(cuda, group) => {
                let places = self.installed(&cuda, group)?;
                Ok((cuda.fingerprint(group, self.digest).map_err(|e| e.to_string())?, places))
            }
            Origin::CudaCompiler(cuda, compiler) => {
                let group = if compiler == Compiler::Nvcc { Group::Nvcc } else { Group::Compile };
                let mut places = self.installed(&cuda, group)?;
                if compiler == Compiler::Auto {
                    // A source that needs nvcc is refused without it, and then compiled by who asked.
                    places.extend(self.installed(&cuda, Group::Nvcc).unwrap_or_default());
                }
                let described = cuda.for_compiler(compiler, host.as_ref().map(|(found, _)| found), self.digest);
                places.extend(host.into_iter().flat_map(|(_, places)| places));
                Ok((described.map_err(|e| e.to_string())?, places))
            }
            Origin::Cub(cuda) => {
                let mut places = self.installed(&cuda, Group::Cub)?;
                let mut described = cuda.fingerprint(Group::Cub, self.digest).map_err(|e| e.to_string())?;
                if let Some((found, of_host)) = host {
                    described.tools.extend(found.tools);
                    described.headers.extend(found.headers);
                    places.extend(of_host);
                }
                Ok((described, places))
            }
        }
    }
}

/// The names of the parts that differ.
fn differing(theirs: &Toolchain, ours: &Toolchain) -> Vec<String> {
    let names: std::collections::BTreeSet<&String> = theirs.tools.keys().chain(ours.tools.keys()).collect();
    let differs = |name: &&&String| theirs.tools.get(**name) != ours.tools.get(**name);
    let mut differing: Vec<String> = names.iter().filter(differs).map(ToString::to_string).collect();
    if theirs.headers != ours.headers && !differing.iter().any(|name| name == "headers") {
        differing.push("headers".into());
    }
    differing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_takes_no_installed_cuda_but_its_own() {
        let limits = StepLimits { time_s: 1, run_s: 1, memory: 1, compiler_memory: 1 };
        let own = WorkerTools {
            cxx: None,
            python: None,
            cuda: Some("/opt/cuda".into()),
            device: BTreeMap::new(),
            key: None,
            limits: StepLimits { memory: 0, ..limits },
        };
        let of = |root: &str| {
            let cuda = || Cuda::Local(root.into());
            let all = [
                Origin::Cub(cuda()),
                Origin::Cuda(cuda(), Group::Fatbin),
                Origin::CudaCompiler(cuda(), Compiler::Nvcc),
            ];
            all.map(|origin| {
                let toolchains = [(Digest::of(b"x"), origin)].into();
                let file = StepFile { cxx: None, python: Some("/sent/python".into()), toolchains, limits };
                file.with_tools_of(&own)
            })
        };
        assert!(of("/").iter().all(|file| matches!(file, Err(Difference::Missing { .. }))));
        for file in of("/opt/cuda") {
            let file = file.unwrap();
            assert_eq!((file.python, file.limits), (None, StepLimits { memory: 0, ..limits }));
        }
    }
}
