//! The toolchains of this machine and of the lockfile, by content and by path. Knows how to query them; `toolchain` finds and installs them.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::needs::needs_cuda;
use crate::elsewhere::{Described, Origin, StepFile, StepLimits, described};
use crate::event::{Blocked, Event, Reporter};
use kforge_cuda::shim_headers;
use kforge_engine::journal::Journal;
use kforge_foundation::base::{Diagnostic, Digest, Witness};
use kforge_pipeline::plan::{Tool, Toolchains};
use kforge_project::toolchain::cuda::{Progress, Source};
use kforge_project::toolchain::torch::{TorchSet, TorchWheels};
use kforge_project::toolchain::{self, Cuda, Group, Pip, Python, cxx, processor, python};
use kforge_project::workspace::lockfile::LockedWheel;
use kforge_types::model::{Arch, Package, TorchSpec};
use kforge_types::record::Spec;
use kforge_types::record::params::{Compiler, Toolchain};
use kforge_types::record::spec::Tree;

/// System headers that sources may reach, surveyed with the compiler.
pub(crate) const PRELUDE: &str = include_str!("prelude.h");

/// The release of Triton for packages without `toolchain.triton`.
pub const DEFAULT_TRITON: &str = "3.9";

/// The paths of a toolchain's tools, or what would install them.
#[derive(Clone)]
enum Behind {
    /// Tools of this machine.
    Here(BTreeMap<String, PathBuf>),
    /// A group of a CUDA, installed or not, and additional tools of this machine.
    Cuda(Cuda, Group, BTreeMap<String, PathBuf>),
    /// A wheel of Triton, installed or not, the Python that imports it, and the part of it that is used.
    Triton(LockedWheel, Box<Python>, TritonPart),
    /// Wheels of PyTorch, installed or not, and the Python that imports them.
    Torch(TorchSet, Box<Python>),
}

/// A part of Triton.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TritonPart {
    /// The compiler.
    Compiler,
    /// The interpreter.
    Interpreter,
    /// The disassembler that comes with it.
    Disassembler,
}

/// Why the tools of a toolchain are not available.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MissingTools {
    /// The tools are not installed, and cannot be.
    #[error("{why}")]
    NotInstalled {
        /// The group of the toolchain.
        group: Group,
        /// The error of pip or of the installation.
        why: String,
    },
    /// Triton is not installed, and cannot be.
    #[error("{why}")]
    TritonNotInstalled {
        /// The version of the wheel.
        version: String,
        /// The error of pip or of the installation.
        why: String,
    },
    /// PyTorch is not installed, and cannot be.
    #[error("{why}")]
    TorchNotInstalled {
        /// The error of pip or of the installation.
        why: String,
    },
    /// No plan of this build names the toolchain: a bug.
    #[error("BUG: an unknown toolchain")]
    Unknown,
    /// An earlier installation panicked: a bug.
    #[error("BUG: installing panicked before")]
    Panicked,
}

/// All toolchains of a build.
pub struct Tools {
    documents: BTreeMap<Digest, Vec<u8>>,
    behind: HashMap<Digest, Behind>,
    /// How those toolchains are found that another machine can find as well.
    origins: HashMap<Digest, Origin>,
    cxx: Option<Arc<cxx::CachedSurvey>>,
    python: Option<PathBuf>,
    /// The trees of the headers of the emulator and of the shim.
    headers: Option<(Digest, Digest)>,
    /// The files and folders that the C++ compiler reads.
    read: Vec<PathBuf>,
    toolchains: PathBuf,
    offline: bool,
    environment: BTreeMap<String, String>,
    /// The groups that could not be installed although the network may be used, and why. Locked while a thread installs.
    refused: Mutex<Vec<(Cuda, Group, MissingTools)>>,
    /// The same for wheels of Triton.
    refused_triton: Mutex<Vec<(LockedWheel, MissingTools)>>,
    /// The same for sets of wheels of PyTorch.
    refused_torch: Mutex<Vec<(TorchSet, MissingTools)>>,
}

/// Why a package has no CUDA.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NoCuda {
    /// The package has no target that needs a CUDA.
    #[error("the package has no device target")]
    NoTarget,
    /// kforge.lock lacks the wheels, and using the network or writing is forbidden.
    #[error("kforge.lock names no wheels for CUDA {0}: run `kforge build` with a network")]
    NotLocked(String),
    /// The CUDA cannot be found or resolved.
    #[error(transparent)]
    Toolchain(Arc<toolchain::Error>),
}

impl From<toolchain::Error> for NoCuda {
    fn from(why: toolchain::Error) -> Self {
        NoCuda::Toolchain(Arc::new(why))
    }
}

impl NoCuda {
    /// The first line of the error, as a step reports it.
    fn cause(&self) -> String {
        self.to_string().lines().next().unwrap_or_default().to_string()
    }
}

/// Why a package has no Triton.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NoTriton {
    /// The package has no kernel that needs one.
    #[error("the package has no kernel in Triton")]
    NoKernel,
    /// kforge.lock lacks the wheels, and using the network or writing is forbidden.
    #[error("kforge.lock names no wheels for Triton {0}: run `kforge build` with a network")]
    NotLocked(String),
    /// The release cannot be resolved.
    #[error(transparent)]
    Toolchain(Arc<toolchain::Error>),
}

impl From<toolchain::Error> for NoTriton {
    fn from(why: toolchain::Error) -> Self {
        NoTriton::Toolchain(Arc::new(why))
    }
}

impl NoTriton {
    /// The first line of the error, as a step reports it.
    fn cause(&self) -> String {
        self.to_string().lines().next().unwrap_or_default().to_string()
    }
}

/// Why a package has no PyTorch.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NoTorch {
    /// The package has no reference or kernel that needs one.
    #[error("no reference or kernel of the package is written in PyTorch")]
    NoReference,
    /// kforge.lock lacks the wheels, and using the network or writing is forbidden.
    #[error("kforge.lock names no wheels for PyTorch {0}: run `kforge build` with a network")]
    NotLocked(String),
    /// The release cannot be resolved.
    #[error(transparent)]
    Toolchain(Arc<toolchain::Error>),
}

impl From<toolchain::Error> for NoTorch {
    fn from(why: toolchain::Error) -> Self {
        NoTorch::Toolchain(Arc::new(why))
    }
}

/// The PyTorch that a package requests.
#[derive(Debug, Clone)]
pub enum TorchRequest {
    /// That of the Python of this machine.
    System,
    /// A release, with the wheels for each kind of Python.
    Release(String, TorchWheels),
}

/// Returns the PyTorch that a package requests, or why there is none.
pub type TorchOf<'a> = &'a dyn Fn(&Package) -> Result<TorchRequest, NoTorch>;

/// Returns the CUDA that a package requests (a folder, or locked wheels), or why there is none.
pub type CudaOf<'a> = &'a dyn Fn(&Package) -> Result<Cuda, NoCuda>;

/// Returns the wheels of the Triton that a package requests, one for each kind of Python, or why there are none.
pub type TritonOf<'a> = &'a dyn Fn(&Package) -> Result<Vec<LockedWheel>, NoTriton>;

impl Tools {
    /// Without any toolchains yet. Toolchains are installed below `toolchains`.
    pub fn new(toolchains: &Path, offline: bool, environment: &BTreeMap<String, String>) -> Self {
        Tools {
            documents: BTreeMap::new(),
            behind: HashMap::new(),
            origins: HashMap::new(),
            cxx: None,
            python: None,
            headers: None,
            read: vec![],
            toolchains: toolchains.to_path_buf(),
            offline,
            environment: environment.clone(),
            refused: Mutex::default(),
            refused_triton: Mutex::default(),
            refused_torch: Mutex::default(),
        }
    }

    /// The files and folders that the tools of this machine read.
    pub fn read(&self) -> &[PathBuf] {
        &self.read
    }

    /// The documents that specs name: toolchains, trees of headers, and headers.
    pub fn documents(&self) -> &BTreeMap<Digest, Vec<u8>> {
        &self.documents
    }

    fn keep(&mut self, bytes: Vec<u8>) -> Digest {
        let digest = Digest::of(&bytes);
        self.documents.insert(digest, bytes);
        digest
    }

    fn tree(&mut self, files: impl Iterator<Item = (&'static str, &'static [u8])>) -> Digest {
        let files = files.map(|(name, bytes)| (name.to_string(), self.keep(bytes.to_vec()))).collect();
        let bytes = serde_json::to_vec(&Tree { files }).unwrap_or_default();
        self.keep(bytes)
    }

    fn toolchain(&mut self, toolchain: &Toolchain, behind: Behind) -> Digest {
        let digest = self.keep(serde_json::to_vec(toolchain).unwrap_or_default());
        self.behind.insert(digest, behind);
        digest
    }

    /// A toolchain that another machine can find as well.
    fn found_from(&mut self, origin: Origin, toolchain: &Toolchain, behind: Behind) -> Digest {
        let digest = self.toolchain(toolchain, behind);
        self.origins.insert(digest, origin);
        digest
    }

    /// What another machine needs to find the tools of a step; none if only this machine finds them.
    pub fn step_file(&self, spec: &Spec, limits: StepLimits) -> Option<StepFile> {
        let mut file = StepFile { cxx: None, python: None, toolchains: BTreeMap::new(), limits };
        for (name, input) in &spec.inputs {
            let (Some(digest), Some(described)) = (&input.digest, described(name)) else { continue };
            let mut needs_cxx = described == Described::Runtime;
            if described == Described::Toolchain {
                let origin = self.origins.get(digest)?.clone();
                needs_cxx = origin.has_cxx();
                if origin == Origin::Python {
                    file.python = Some(self.python.clone()?);
                }
                file.toolchains.insert(*digest, origin);
            }
            if needs_cxx && file.cxx.is_none() {
                file.cxx = Some(self.cxx.as_deref()?.clone());
            }
        }
        Some(file)
    }

    /// The toolchains of a package. `with_cub` says whether a kernel of it for `cpu` includes cub, and `digest` computes the digest of a file.
    pub fn of_package(
        &mut self,
        package: &Package,
        host: &Host,
        (cuda, triton, torch): (CudaOf<'_>, TritonOf<'_>, TorchOf<'_>),
        with_cub: bool,
        digest: &dyn Fn(&Path) -> io::Result<Digest>,
    ) -> Toolchains {
        // These are the same for every package, and there may be thousands of packages.
        let (emulator, shim) = match self.headers {
            Some(known) => known,
            None => {
                let emulator = self.tree(kforge_emulator::headers().into_iter());
                (emulator, self.tree(shim_headers().iter().map(|(n, t)| (*n, t.as_bytes()))))
            }
        };
        self.headers = Some((emulator, shim));
        self.read.clone_from(&host.read);
        self.cxx.clone_from(&host.survey);
        self.python = host.interpreter.as_ref().map(|python| python.asked.clone());
        let wants_cuda = package.targets.values().any(|t| t.arch != Arch::Cpu) && needs_cuda(package);
        let none = || Err(NoCuda::NoTarget);
        let for_cub = if with_cub { cuda(package) } else { none() };
        let cuda = if wants_cuda { cuda(package) } else { none() };
        let cxx_of_host = host.cxx.as_ref().ok();
        let mut compiler = |compiler: Compiler| -> Result<Digest, String> {
            let cuda = cuda.clone().map_err(|why| why.cause())?;
            let found = cuda.for_compiler(compiler, cxx_of_host.map(|(t, _)| t), digest).map_err(|e| e.to_string())?;
            let group = if compiler == Compiler::Nvcc { Group::Nvcc } else { Group::Compile };
            // nvcc preprocesses with the host's compiler.
            let beside = cxx_of_host.map(|(_, places)| places.clone()).unwrap_or_default();
            let origin = Origin::CudaCompiler(cuda.clone(), compiler);
            Ok(self.found_from(origin, &found, Behind::Cuda(cuda, group, beside)))
        };
        let (auto, nvrtc, nvcc) = (compiler(Compiler::Auto), compiler(Compiler::Nvrtc), compiler(Compiler::Nvcc));
        let mut group = |group: Group| -> Result<Digest, String> {
            let cuda = cuda.clone().map_err(|why| why.cause())?;
            let found = cuda.fingerprint(group, digest).map_err(|e| e.to_string())?;
            let origin = Origin::Cuda(cuda.clone(), group);
            Ok(self.found_from(origin, &found, Behind::Cuda(cuda, group, BTreeMap::new())))
        };
        let disassembler = group(Group::Disassemble);
        // An installed CUDA may lack what no target asks for, and reading it takes time.
        let fatbinary = match package.targets.values().any(|target| target.fatbin) {
            true => group(Group::Fatbin),
            false => Err("no target of the package asks for fatbins".into()),
        };
        let cub = for_cub.map_err(|why| why.cause()).and_then(|cuda| {
            let (host, places) = host.cxx.clone()?;
            let mut found = cuda.fingerprint(Group::Cub, digest).map_err(|e| e.to_string())?;
            found.tools.extend(host.tools);
            found.headers.extend(host.headers);
            Ok(self.found_from(Origin::Cub(cuda.clone()), &found, Behind::Cuda(cuda, Group::Cub, places)))
        });
        let wheel = triton(package).map_err(|why| why.cause()).and_then(|wheels| host.wheel(&wheels));
        let with_triton = wheel.clone().and_then(|(wheel, python)| {
            let found = toolchain::triton::fingerprint(&wheel, &python, digest);
            let found = found.map_err(|e| format!("could not read Python: {e}"))?;
            Ok(self.toolchain(&found, Behind::Triton(wheel, Box::new(python), TritonPart::Compiler)))
        });
        let triton_interpreter = wheel.clone().and_then(|(wheel, python)| {
            if python.numpy.is_none() {
                return Err(no_numpy(&python.path));
            }
            let found = toolchain::triton::fingerprint_of_interpreter(&wheel, &python, digest);
            let found = found.map_err(|e| format!("could not read Python: {e}"))?;
            Ok(self.toolchain(&found, Behind::Triton(wheel, Box::new(python), TritonPart::Interpreter)))
        });
        let triton_disassembler = wheel.map(|(wheel, python)| {
            let found = toolchain::triton::fingerprint_of_disassembler(&wheel);
            self.toolchain(&found, Behind::Triton(wheel, Box::new(python), TritonPart::Disassembler))
        });
        let torch = torch(package).map_err(|why| why.to_string().lines().next().unwrap_or_default().to_string());
        let (torch, torch_cuda): (Tool, Tool) = match torch {
            Ok(TorchRequest::System) => {
                let found = host.torch.clone().unwrap_or_else(|| Err("BUG: PyTorch was not looked for".into()));
                let cuda = found.clone().and_then(|(_, places)| {
                    let folder = places.get("torch").ok_or_else(|| "BUG: PyTorch has no folder".to_string())?;
                    let found = toolchain::torch::with_cuda(folder)
                        .map_err(|e| format!("could not read the packages beside PyTorch: {e}"))?;
                    Ok(self.toolchain(&found, Behind::Here(BTreeMap::new())))
                });
                let found = found.map(|(toolchain, places)| self.toolchain(&toolchain, Behind::Here(places)));
                (found.into(), cuda.into())
            }
            Ok(TorchRequest::Release(release, wheels)) => match host.torch_set(&wheels) {
                Ok((set, python)) => {
                    // The folder of both is that of PyTorch.
                    let cuda = set.with_cuda().map(|found| self.toolchain(&found, Behind::Here(BTreeMap::new())));
                    let cuda = cuda.ok_or_else(|| TorchSpec::only_processors(&release));
                    let found = self.toolchain(&set.fingerprint(), Behind::Torch(set, Box::new(python)));
                    (Tool::Known(found), cuda.into())
                }
                Err(why) => (Tool::Missing(why.clone()), Tool::Missing(why)),
            },
            Err(why) => (Tool::Missing(why.clone()), Tool::Missing(why)),
        };
        let mut of_host = |found: &Found, origin: Origin| -> Tool {
            found.clone().map(|(found, places)| self.found_from(origin, &found, Behind::Here(places))).into()
        };
        Toolchains {
            cxx: of_host(&host.cxx, Origin::Cxx),
            cub: Tool::from(cub),
            auto: auto.into(),
            nvrtc: nvrtc.into(),
            nvcc: nvcc.into(),
            triton: with_triton.into(),
            disassembler: disassembler.into(),
            triton_interpreter: triton_interpreter.into(),
            triton_disassembler: triton_disassembler.into(),
            fatbinary: fatbinary.into(),
            python: of_host(&host.python, Origin::Python),
            torch,
            torch_cuda,
            runtime: Tool::from(
                host.runtime.clone().map(|runtime| self.keep(serde_json::to_vec(&runtime).unwrap_or_default())),
            ),
            processor: self.keep(serde_json::to_vec(&processor::fingerprint()).unwrap_or_default()),
            emulator,
            shim,
        }
    }

    /// The paths of the tools with this digest. Installs the tools if they are missing and that is allowed.
    pub fn places(&self, toolchain: &Digest, reporter: &Reporter) -> Result<BTreeMap<String, PathBuf>, MissingTools> {
        match self.behind.get(toolchain) {
            Some(Behind::Here(places)) => Ok(places.clone()),
            Some(Behind::Triton(wheel, python, part)) => {
                let folder = self.triton(wheel, python, reporter)?;
                Ok(match part {
                    TritonPart::Compiler => toolchain::triton::places(&folder, python),
                    TritonPart::Interpreter => toolchain::triton::places_of_interpreter(&folder, python),
                    TritonPart::Disassembler => toolchain::triton::disassembler(&folder),
                })
            }
            Some(Behind::Torch(set, python)) => {
                let folder = self.torch(set, python, reporter)?;
                Ok(toolchain::torch::places(&folder))
            }
            Some(Behind::Cuda(cuda, group, beside)) => {
                let mut places = self.installed(cuda, *group, reporter)?;
                places.extend(beside.clone());
                Ok(places)
            }
            None => Err(MissingTools::Unknown),
        }
    }

    /// Like [`Self::places`], with nvcc in addition to NVRTC, for a source that needs nvcc.
    pub fn nvcc(&self, toolchain: &Digest, reporter: &Reporter) -> Result<BTreeMap<String, PathBuf>, MissingTools> {
        let mut places = self.places(toolchain, reporter)?;
        if let Some(Behind::Cuda(cuda, ..)) = self.behind.get(toolchain) {
            places.extend(self.installed(cuda, Group::Nvcc, reporter)?);
        }
        Ok(places)
    }

    fn installed(
        &self,
        cuda: &Cuda,
        group: Group,
        reporter: &Reporter,
    ) -> Result<BTreeMap<String, PathBuf>, MissingTools> {
        if let Some(installed) = cuda.installed(group, &self.toolchains).map_err(not_installed(group))? {
            return Ok(installed.tools);
        }
        // One thread installs. The others find the tools installed or the installation refused, so that no two threads wait for the same download.
        let mut refused = self.refused.lock().map_err(|_| MissingTools::Panicked)?;
        if let Some((.., why)) = refused.iter().find(|(c, g, _)| c == cuda && *g == group) {
            return Err(why.clone());
        }
        let installed = install(cuda, group, &self.toolchains, self.offline, &self.environment, reporter);
        if self.offline {
            return installed.map(|i| i.tools);
        }
        installed.map(|i| i.tools).map_err(|error| {
            let why = error.to_string();
            reporter.event(&Event::Diagnostic(&refusal(&why)));
            let first = not_installed(group)(why.lines().next().unwrap_or_default());
            refused.push((cuda.clone(), group, first.clone()));
            first
        })
    }

    /// The folder of a wheel of Triton, which is installed if necessary and allowed. One thread installs, as for a CUDA.
    fn triton(&self, wheel: &LockedWheel, python: &Python, reporter: &Reporter) -> Result<PathBuf, MissingTools> {
        if let Some(folder) = toolchain::triton::installed(wheel, &self.toolchains) {
            return Ok(folder);
        }
        let mut refused = self.refused_triton.lock().map_err(|_| MissingTools::Panicked)?;
        if let Some((_, why)) = refused.iter().find(|(known, _)| known == wheel) {
            return Err(why.clone());
        }
        let found = install_triton((wheel, python), &self.toolchains, self.offline, &self.environment, reporter);
        if self.offline {
            return found;
        }
        found.inspect_err(|error| {
            reporter.event(&Event::Diagnostic(&refusal(&error.to_string())));
            refused.push((wheel.clone(), error.clone()));
        })
    }

    /// The folder of wheels of PyTorch, which are installed if necessary and allowed. One thread installs, as for a CUDA.
    fn torch(&self, set: &TorchSet, python: &Python, reporter: &Reporter) -> Result<PathBuf, MissingTools> {
        if let Some(folder) = toolchain::torch::installed(set, &self.toolchains) {
            return Ok(folder);
        }
        let mut refused = self.refused_torch.lock().map_err(|_| MissingTools::Panicked)?;
        if let Some((_, why)) = refused.iter().find(|(known, _)| known == set) {
            return Err(why.clone());
        }
        let found = install_torch((set, python), &self.toolchains, self.offline, &self.environment, reporter);
        if self.offline {
            return found;
        }
        found.inspect_err(|error| {
            reporter.event(&Event::Diagnostic(&refusal(&error.to_string())));
            refused.push((set.clone(), error.clone()));
        })
    }

    /// Whether a toolchain could not be installed although the network may be used. If so, the build has failed, even if no step needed that toolchain.
    pub fn is_refused(&self) -> bool {
        self.refused.lock().is_ok_and(|refused| !refused.is_empty())
            || self.refused_triton.lock().is_ok_and(|refused| !refused.is_empty())
            || self.refused_torch.lock().is_ok_and(|refused| !refused.is_empty())
    }
}

/// The diagnostic for an unavailable toolchain: the cause, and below it the output of the tool that reported it.
pub fn refusal(why: &str) -> Diagnostic {
    let (first, rest) = why.split_once('\n').unwrap_or((why, ""));
    let error = Diagnostic::error("toolchain.refused", first);
    let error = rest.lines().fold(error, |error, line| error.note(line.trim()));
    error.hint("`--offline` builds without what is not installed")
}

/// Installs a group, and reports the progress.
pub fn install(
    cuda: &Cuda,
    group: Group,
    toolchains: &Path,
    offline: bool,
    environment: &BTreeMap<String, String>,
    reporter: &Reporter,
) -> Result<toolchain::cuda::Installed, MissingTools> {
    let mut progress = shown(reporter);
    if offline {
        return cuda.install(group, toolchains, Source::Offline, &mut progress).map_err(not_installed(group));
    }
    let pip = Pip::find(None, environment).map_err(not_installed(group))?;
    cuda.install(group, toolchains, Source::Pip(&pip), &mut progress).map_err(not_installed(group))
}

/// Installs a wheel of Triton, and reports the progress. Returns its folder.
pub fn install_triton(
    (wheel, python): (&LockedWheel, &Python),
    toolchains: &Path,
    offline: bool,
    environment: &BTreeMap<String, String>,
    reporter: &Reporter,
) -> Result<PathBuf, MissingTools> {
    let version = || wheel.version.clone();
    let cannot = |why: toolchain::Error| MissingTools::TritonNotInstalled { version: version(), why: why.to_string() };
    let mut progress = shown(reporter);
    if offline {
        return toolchain::triton::install((wheel, python), toolchains, Source::Offline, &mut progress).map_err(cannot);
    }
    // pip downloads the wheel for its own Python.
    let pip = Pip::find(Some(&python.path), environment).map_err(cannot)?;
    toolchain::triton::install((wheel, python), toolchains, Source::Pip(&pip), &mut progress).map_err(cannot)
}

/// Installs wheels of PyTorch, and reports the progress. Returns their folder.
pub fn install_torch(
    (set, python): (&TorchSet, &Python),
    toolchains: &Path,
    offline: bool,
    environment: &BTreeMap<String, String>,
    reporter: &Reporter,
) -> Result<PathBuf, MissingTools> {
    let cannot = |why: toolchain::Error| MissingTools::TorchNotInstalled { why: why.to_string() };
    let mut progress = shown(reporter);
    if offline {
        return toolchain::torch::install((set, python), toolchains, Source::Offline, &mut progress).map_err(cannot);
    }
    // pip downloads the wheels for its own Python.
    let pip = Pip::find(Some(&python.path), environment).map_err(cannot)?;
    toolchain::torch::install((set, python), toolchains, Source::Pip(&pip), &mut progress).map_err(cannot)
}

/// Reports the progress of an installation.
fn shown(reporter: &Reporter) -> impl FnMut(Progress) {
    let mut said = false;
    move |progress| match progress {
        Progress::Waiting => reporter.event(&Event::Blocked(Blocked::Toolchain)),
        Progress::Downloading { names, bytes, total } => {
            if !said {
                said = true;
                reporter.event(&Event::Downloading(&names));
            }
            reporter.event(&Event::Downloaded { bytes, total });
        }
        Progress::Unpacking { name } => reporter.event(&Event::Installing(&name)),
    }
}

fn not_installed<E: std::fmt::Display>(group: Group) -> impl FnOnce(E) -> MissingTools {
    move |why| MissingTools::NotInstalled { group, why: why.to_string() }
}

/// What this machine has, by content.
type Description = Result<Toolchain, String>;

/// A tool of this machine, by content and by path.
type Found = Result<(Toolchain, BTreeMap<String, PathBuf>), String>;

/// The tools of this machine.
pub struct Host {
    /// The C++ compiler.
    pub(crate) cxx: Found,
    /// Python with numpy.
    pub(crate) python: Found,
    /// The parts of that compiler.
    pub(crate) survey: Option<Arc<cxx::CachedSurvey>>,
    /// The same Python, as it describes itself.
    pub(crate) interpreter: Option<Python>,
    /// The PyTorch that this Python imports; none if no package asks for it.
    torch: Option<Found>,
    /// The files and folders that the C++ compiler reads: [`cxx::Survey::folders`].
    pub read: Vec<PathBuf>,
    /// The libraries and the processor with which a program compiled here runs.
    pub(crate) runtime: Description,
    /// Why the C++ compiler that was found cannot be used, if it is too old.
    pub too_old: Option<toolchain::Error>,
    /// The file system queries of the search for tools. None if these do not determine whether the same tools would be found again: a tool is missing, or is a
    /// script that may choose another tool later.
    pub witness: Option<Witness>,
}

impl Host {
    /// Finds the tools. Their parts are stored in the journal. Python is searched for only if a package has a reference in Python.
    pub fn find(
        cxx_named: Option<&Path>,
        python_named: Option<&Path>,
        path_var: &str,
        (wants_python, wants_torch): (bool, bool),
        journal: &Journal,
        digest: &dyn Fn(&Path) -> io::Result<Digest>,
    ) -> Self {
        let mut witness = Witness::default();
        let mut too_old = None;
        let (cxx, read, runtime, survey, steady) = match host_cxx(cxx_named, path_var, journal, digest) {
            Ok((found, steady)) => {
                witness.absent = found.survey.absent.iter().cloned().collect();
                // The loader's configuration.
                Self::LOADER.iter().map(Path::new).for_each(|p| witness.saw(p, p.exists()));
                let runtime = found.survey.loaded(digest).map_err(|e| format!("could not read the C library: {e}"));
                let runtime = runtime.map(|mut runtime| {
                    runtime.tools.extend(processor::fingerprint().tools);
                    runtime
                });
                let read = found.survey.folders();
                let places = [("c++".to_string(), found.survey.compiler.path.clone())].into();
                (Ok((found.fingerprint.clone(), places)), read, runtime, Some(Arc::new(found)), steady)
            }
            Err(error) => {
                let why = error.to_string();
                too_old = Some(error).filter(|error| matches!(error, toolchain::Error::TooOld { .. }));
                (Err(why.clone()), vec![], Err(why), None, false)
            }
        };
        let mut witnessed = steady;
        cxx::passed_over(cxx_named, path_var).iter().for_each(|p| witness.saw(p, false));
        let mut interpreter = None;
        let python = if wants_python {
            python::passed_over(python_named, path_var).iter().for_each(|p| witness.saw(p, false));
            match host_python(python_named, path_var, journal, digest) {
                Ok((toolchain, python)) => {
                    witnessed &= python.steady();
                    match python.folders() {
                        Ok(folders) => folders.iter().for_each(|folder| witness.listed(folder)),
                        Err(_) => witnessed = false,
                    }
                    witness.saw(&python.asked, true);
                    interpreter = Some(python.clone());
                    Ok((toolchain, python::places(&python)))
                }
                Err(why) => {
                    witnessed = false;
                    Err(why)
                }
            }
        } else {
            Err("no reference of this build is written in Python".into())
        };
        // Its files are so many that it is looked at in every build.
        witnessed &= !wants_torch;
        let torch = wants_torch.then(|| match &interpreter {
            Some(python) => host_torch(python, journal, digest),
            None => Err(format!("PyTorch needs Python: {}", python.as_ref().err().map_or("", String::as_str))),
        });
        Host { cxx, python, survey, interpreter, torch, read, runtime, too_old, witness: witnessed.then_some(witness) }
    }

    /// The wheel of Triton that the Python of this machine can import, and that Python.
    fn wheel(&self, wheels: &[LockedWheel]) -> Result<(LockedWheel, Python), String> {
        let Some(python) = &self.interpreter else {
            let why = self.python.as_ref().err().map_or("", String::as_str);
            return Err(format!("Triton needs Python 3.11 or later: {why} (setting `toolchain.python`)"));
        };
        let wheel = toolchain::triton::wheel_for(wheels, python).map_err(|e| e.to_string())?;
        Ok((wheel.clone(), python.clone()))
    }

    /// The wheels of PyTorch that the Python of this machine can import, and that Python.
    fn torch_set(&self, wheels: &TorchWheels) -> Result<(TorchSet, Python), String> {
        let Some(python) = &self.interpreter else {
            let why = self.python.as_ref().err().map_or("", String::as_str);
            return Err(format!("PyTorch needs Python: {why} (setting `toolchain.python`)"));
        };
        let found = wheels.for_python(python).map_err(|e| e.to_string())?;
        Ok((found, python.clone()))
    }

    /// Files with which the loader decides which library a name means.
    const LOADER: [&str; 2] = ["/etc/ld.so.cache", "/etc/ld.so.preload"];
}

/// Python, queried only if its last answer may be outdated.
fn host_python(
    named: Option<&Path>,
    path_var: &str,
    journal: &Journal,
    digest: &dyn Fn(&Path) -> io::Result<Digest>,
) -> Result<(Toolchain, Python), String> {
    let name = memo_name("python", named, path_var);
    let kept = journal.meta(&name);
    let known = kept.as_deref().and_then(|b| serde_json::from_slice::<(Python, Toolchain)>(b).ok());
    let found = python::recall(known, named, path_var, digest).map_err(|e| e.to_string())?;
    remember(journal, &name, kept, &found);
    Ok((found.1, found.0))
}

/// The PyTorch of a Python. It is asked again only if one of its files changed; importing it takes seconds.
fn host_torch(python: &Python, journal: &Journal, digest: &dyn Fn(&Path) -> io::Result<Digest>) -> Found {
    let name = memo_name("torch", Some(&python.path), "");
    let kept = journal.meta(&name);
    let known = kept.as_deref().and_then(|b| serde_json::from_slice::<(toolchain::torch::System, Toolchain)>(b).ok());
    if let Some((torch, fingerprint)) = known
        && torch.fingerprint(digest).is_ok_and(|now| now == fingerprint)
    {
        return Ok((fingerprint, torch.places()));
    }
    let found = toolchain::torch::find(python).map_err(|e| e.to_string())?;
    let fingerprint = found.fingerprint(digest).map_err(|e| format!("could not read PyTorch: {e}"))?;
    let places = found.places();
    let found = (found, fingerprint);
    remember(journal, &name, kept, &found);
    Ok((found.1, places))
}

/// The memo's name for a tool, from the parameters of the search: workspaces that share a home may alternate between different tools.
fn memo_name(tool: &str, named: Option<&Path>, path_var: &str) -> String {
    let asked = format!("{}\0{path_var}", named.unwrap_or(Path::new("")).display());
    format!("{tool}/{}", Digest::of(asked.as_bytes()).short())
}

/// Stores a memo if it has changed. If the memo cannot be written, later builds only take longer.
fn remember(journal: &Journal, name: &str, before: Option<Vec<u8>>, now: &impl serde::Serialize) {
    if let Ok(bytes) = serde_json::to_vec(now)
        && before.as_ref() != Some(&bytes)
    {
        let _ = journal.record_meta(name, &bytes);
    }
}

/// Whether a tool is a script, which may choose another tool later.
pub(crate) fn is_script(path: &Path) -> bool {
    let mut head = [0; 2];
    let read = std::fs::File::open(path).and_then(|mut f| io::Read::read_exact(&mut f, &mut head));
    read.is_err() || head == *b"#!"
}

/// The C++ compiler, and whether unchanged files mean an unchanged compiler. A script is always asked for its version.
fn host_cxx(
    named: Option<&Path>,
    path_var: &str,
    journal: &Journal,
    digest: &dyn Fn(&Path) -> io::Result<Digest>,
) -> Result<(cxx::CachedSurvey, bool), toolchain::Error> {
    let name = memo_name("c++", named, path_var);
    let kept = journal.meta(&name);
    let mut known = kept.as_deref().and_then(|b| serde_json::from_slice::<cxx::CachedSurvey>(b).ok());
    if let Some(old) = known.as_ref().filter(|k| is_script(&k.survey.compiler.path))
        && cxx::find(named, path_var).ok().as_ref() != Some(&old.survey.compiler)
    {
        known = None;
    }
    let (found, anew) = cxx::recall(known, named, path_var, PRELUDE, digest)?;
    // The survey names thousands of files. Encoding it takes as long as much of a small build.
    if anew {
        remember(journal, &name, kept, &found);
    }
    let steady = !is_script(&found.survey.compiler.path);
    Ok((found, steady))
}

/// The files and folders that this C++ compiler reads, queried again: [`cxx::Survey::folders`].
pub fn read_by(cxx: &cxx::Cxx) -> Vec<PathBuf> {
    cxx.survey(PRELUDE).map(|survey| survey.folders()).unwrap_or_default()
}

/// What is said where the Python that runs Triton's interpreter has no numpy.
fn no_numpy(python: &Path) -> String {
    let python = python.display();
    format!(
        "Triton's interpreter needs numpy, which is missing for `{python}`: install it with `{python} -m pip install numpy`, or set another Python with the \
         setting `toolchain.python`"
    )
}
