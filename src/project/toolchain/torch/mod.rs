//! PyTorch for references, kernels in PyTorch and baselines: the one that the Python of this machine imports, or locked wheels. Knows names of wheels and their
//! layout; computes nothing.
//!
//! | decision | reason |
//! |---|---|
//! | without `cuda`, only what runs on the processor is installed: 0.5 GB in place of 3 | references run on the processor; `stubs` stands for the rest |
//! | with `cuda`, everything that pip would install is locked and installed, without stand-ins | a GPU needs it, and references can use it, too |
//! | the lockfile holds the wheels of every kind of Python | one file would fail for a colleague who has another Python |
//! | the key holds the wheels that are used, or the files of the system's PyTorch by content, and the processor | all of them decide how results are rounded |
//! | of the system's PyTorch, the libraries of CUDA are not in the key of references | no reference calls them; what runs on a GPU has their releases in its key |
//! | of locked wheels, all are in it | the digest of a toolchain leads to its folder, and the folder holds all of them |
//! | an installation imports PyTorch once | that shows whether it works, and leaves the compiled modules that make later imports fast |

mod release;
mod stubs;
mod system;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::cuda::{Progress, Source, folder_of, install_wheels};
use super::run::{ask, compiler_environment};
use super::{Error, Python, processor};
use kforge_foundation::base::Digest;
use kforge_foundation::base::files::write_atomically;
use kforge_types::record::params::Toolchain;

pub use release::{ResolvedTorch, TorchSet, TorchWheels, is_lock_name};
pub use system::{System, find, with_cuda};

/// The folder of stand-ins in an installation.
const STUBS: &str = "kforge-stubs";

/// The file in an installation that says that it was imported.
const IMPORTED: &str = "kforge-imported";

/// A PyTorch by content, with the processor's features by which it chooses its code.
fn of_tools(torch: Digest) -> Toolchain {
    let tools = [("torch".to_string(), torch), ("torch-processor".to_string(), processor::of_torch())];
    Toolchain { tools: BTreeMap::from(tools), ..Toolchain::default() }
}

/// The folder of an installation below `toolchains`, if it is there and works.
pub fn installed(set: &TorchSet, toolchains: &Path) -> Option<PathBuf> {
    Some(folder_of(&set.wheels, toolchains)).filter(|folder| folder.join(IMPORTED).is_file())
}

/// Installs wheels below `toolchains`, unless they are installed already. Returns their folder.
///
/// # Errors
/// A wheel cannot be downloaded or differs from the locked one, `source` is offline, Python cannot import the installation, or it lacks CUDA although it should
/// have it.
pub fn install(
    (set, python): (&TorchSet, &Python),
    toolchains: &Path,
    source: Source<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<PathBuf, Error> {
    if let Some(folder) = installed(set, toolchains) {
        return Ok(folder);
    }
    let folder = install_wheels(&set.wheels, toolchains, source, progress)?;
    if !set.cuda {
        write_stubs(&folder).map_err(|source| Error::Install { folder: folder.clone(), source })?;
    }
    import(&folder, python, set)?;
    write_atomically(&folder.join(IMPORTED), b"", false)
        .map_err(|source| Error::Install { folder: folder.clone(), source })?;
    Ok(folder)
}

/// Writes the stand-ins for the libraries of CUDA. Processes that do so at once write the same.
fn write_stubs(folder: &Path) -> io::Result<()> {
    let libraries = |folder: PathBuf| -> io::Result<Vec<PathBuf>> {
        let files = std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
        let is_library = |path: &PathBuf| path.file_name().is_some_and(|n| n.to_string_lossy().contains(".so"));
        Ok(files.collect::<io::Result<Vec<_>>>()?.into_iter().filter(is_library).collect())
    };
    let mut all = vec![];
    for path in [libraries(folder.join("torch/lib"))?, libraries(folder.join("torch"))?].concat() {
        let file = object::read::ReadCache::new(std::fs::File::open(&path)?);
        let wants = stubs::wants(&file);
        all.push(
            wants.map_err(|why| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {why}", path.display())))?,
        );
    }
    let into = folder.join(STUBS);
    std::fs::create_dir_all(&into)?;
    for (name, bytes) in stubs::stubs(&all) {
        write_atomically(&into.join(name), &bytes, false)?;
    }
    Ok(())
}

/// Imports PyTorch, says with which CUDA it was built, and imports what kernels import later. Only PyTorch has to succeed.
const IMPORT: &str = "import ctypes, importlib, sys\n\
    for library in sys.argv[2:]: ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)\n\
    sys.path.append(sys.argv[1])\n\
    import torch\n\
    print('cuda', torch.version.cuda)\n\
    for name in ('torch._dynamo', 'triton'):\n    \
        try: importlib.import_module(name)\n    \
        except Exception: pass";

/// The line of [`IMPORT`] for a PyTorch that was built without CUDA.
const WITHOUT_CUDA: &str = "cuda None";

/// Imports an installation.
fn import(folder: &Path, python: &Python, set: &TorchSet) -> Result<(), Error> {
    let failed = |source| Error::Install { folder: folder.to_owned(), source };
    let stubs = if set.cuda { vec![] } else { stubs_of(folder).map_err(failed)? };
    let paths: Vec<String> =
        [folder.to_path_buf()].iter().chain(&stubs).map(|path| path.to_string_lossy().into_owned()).collect();
    let args: Vec<&str> = ["-I", "-S", "-c", IMPORT].into_iter().chain(paths.iter().map(String::as_str)).collect();
    let said = ask(&python.path, &args, &compiler_environment("/usr/bin:/bin"), "")?;
    if !said.success {
        return Err(Error::NoAnswer { program: python.path.clone(), said: said.err.trim().to_string() });
    }
    if set.cuda && said.out.lines().any(|line| line == WITHOUT_CUDA) {
        return Err(Error::TorchWithoutCuda { version: set.version().to_string() });
    }
    Ok(())
}

/// The stand-ins in an installation, in order of names.
///
/// # Errors
/// Their folder cannot be read.
pub fn stubs_of(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder.join(STUBS))?;
    let mut all = entries.map(|entry| entry.map(|e| e.path())).collect::<io::Result<Vec<_>>>()?;
    all.sort();
    Ok(all)
}

/// The tools of a reference by the names that workers use: the folder that holds PyTorch, and the stand-ins.
pub fn places(folder: &Path) -> BTreeMap<String, PathBuf> {
    let mut places: BTreeMap<String, PathBuf> = [("torch".to_string(), folder.to_path_buf())].into();
    // An installation without stand-ins needs none.
    let stubs = stubs_of(folder).unwrap_or_default();
    places.extend(stubs.into_iter().enumerate().map(|(at, path)| (format!("torch-stub:{at:02}"), path)));
    places
}
