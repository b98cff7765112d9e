//! PyTorch for references: the one that the Python of this machine imports, or locked wheels. Knows names of wheels and their layout; computes nothing.
//!
//! | decision | reason |
//! |---|---|
//! | of a release, only what runs on the processor is installed: 0.5 GB in place of 3 | references run on the processor; `stubs` stands for the rest |
//! | the lockfile holds the wheels of every kind of Python | one file would fail for a colleague who has another Python |
//! | the key holds the wheels that are used, or the files of the system's PyTorch by content, and the processor | all of them decide how results are rounded |
//! | the libraries of CUDA are not in the key | no reference calls them; baselines have their releases in a key of its own |
//! | an installation imports PyTorch once | that shows whether it works, and leaves the compiled modules that make later imports fast |

mod stubs;
mod system;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::cuda::{Progress, Source, folder_of, install_wheels};
use super::pip::Pip;
use super::run::{ask, compiler_environment};
use super::triton::serves;
use super::{Error, Python, digest_of_sequence, processor};
use crate::workspace::lockfile::LockedWheel;
use kforge_foundation::base::Digest;
use kforge_foundation::base::files::write_atomically;
use kforge_types::record::params::Toolchain;

pub use system::{System, find, with_cuda};

/// The minor versions of Python 3 for which wheels are locked.
const PYTHONS: [u32; 5] = [10, 11, 12, 13, 14];

/// Other wheels that PyTorch imports on the processor.
const BESIDE: [&str; 3] = ["typing-extensions", "sympy", "mpmath"];

/// The folder of stand-ins in an installation.
const STUBS: &str = "kforge-stubs";

/// The file in an installation that says that it was imported.
const IMPORTED: &str = "kforge-imported";

/// The name of a release's wheels in the lockfile.
pub fn lock_name(release: &str) -> String {
    format!("torch {release}")
}

/// The wheels of a release (`2.9`, `2.9.1`) for every kind of Python, with the user's indexes as they are today. Installs nothing.
///
/// # Errors
/// pip cannot resolve the release for any Python.
pub fn resolve(release: &str, pip: &Pip) -> Result<Vec<LockedWheel>, Error> {
    let exact = release.split('.').count() > 2;
    let requirement = if exact { format!("torch=={release}") } else { format!("torch=={release}.*") };
    let mut wheels: Vec<LockedWheel> = vec![];
    let mut refused = None;
    for minor in PYTHONS {
        match pip.resolve_for(&requirement, &format!("3.{minor}")) {
            Ok(found) => wheels.extend(found),
            Err(why) => refused = refused.or(Some(why)),
        }
    }
    match refused {
        Some(why) if wheels.is_empty() => return Err(why),
        _ => wheels.extend(pip.resolve(&BESIDE.map(String::from))?),
    }
    wheels.sort();
    wheels.dedup();
    Ok(wheels)
}

/// The wheels that a Python imports: of PyTorch the one for it, and all that are for any Python.
///
/// # Errors
/// The lockfile names no PyTorch for it.
pub fn wheels_for(wheels: &[LockedWheel], python: &Python) -> Result<Vec<LockedWheel>, Error> {
    let minor = python.version.strip_prefix("3.").and_then(|rest| rest.split('.').next()?.parse::<u32>().ok());
    let of = |minor: u32| -> Vec<LockedWheel> {
        wheels.iter().filter(|wheel| wheel.name != "torch" || serves(&wheel.file, minor)).cloned().collect()
    };
    let found = minor.filter(|_| !python.version_text.contains("free-threading")).map(of).unwrap_or_default();
    match found.iter().any(|wheel| wheel.name == "torch") {
        true => Ok(found),
        false => Err(Error::TorchPython { python: python.path.clone(), version: python.version.clone() }),
    }
}

/// The fingerprint of wheels, for keys.
pub fn fingerprint(wheels: &[LockedWheel]) -> Toolchain {
    let parts: Vec<Digest> = wheels
        .iter()
        .flat_map(|wheel| [wheel.file.clone(), wheel.digest.to_string()])
        .map(|text| Digest::of(text.as_bytes()))
        .collect();
    of_tools(digest_of_sequence(&parts))
}

/// A PyTorch by content, with the processor's features by which it chooses its code.
fn of_tools(torch: Digest) -> Toolchain {
    let tools = [("torch".to_string(), torch), ("torch-processor".to_string(), processor::of_torch())];
    Toolchain { tools: BTreeMap::from(tools), ..Toolchain::default() }
}

/// The folder of wheels below `toolchains`, if they are installed.
pub fn installed(wheels: &[LockedWheel], toolchains: &Path) -> Option<PathBuf> {
    Some(folder_of(wheels, toolchains)).filter(|folder| folder.join(IMPORTED).is_file())
}

/// Installs wheels below `toolchains`, unless they are installed already. Returns their folder.
///
/// # Errors
/// A wheel cannot be downloaded or differs from the locked one, `source` is offline, or Python cannot import the installation.
pub fn install(
    (wheels, python): (&[LockedWheel], &Python),
    toolchains: &Path,
    source: Source<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<PathBuf, Error> {
    if let Some(folder) = installed(wheels, toolchains) {
        return Ok(folder);
    }
    let folder = install_wheels(wheels, toolchains, source, progress)?;
    write_stubs(&folder).map_err(|source| Error::Install { folder: folder.clone(), source })?;
    import(&folder, python)?;
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

/// Imports PyTorch, and what kernels import later. Only the first has to succeed.
const IMPORT: &str = "import ctypes, sys\n\
    for library in sys.argv[2:]: ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)\n\
    sys.path.append(sys.argv[1])\n\
    import torch\n\
    try: import torch._dynamo\n\
    except Exception: pass";

/// Imports an installation.
fn import(folder: &Path, python: &Python) -> Result<(), Error> {
    let stubs = stubs_of(folder).map_err(|source| Error::Install { folder: folder.to_owned(), source })?;
    let paths: Vec<String> =
        [folder.to_path_buf()].iter().chain(&stubs).map(|path| path.to_string_lossy().into_owned()).collect();
    let args: Vec<&str> = ["-I", "-S", "-c", IMPORT].into_iter().chain(paths.iter().map(String::as_str)).collect();
    let said = ask(&python.path, &args, &compiler_environment("/usr/bin:/bin"), "")?;
    match said.success {
        true => Ok(()),
        false => Err(Error::NoAnswer { program: python.path.clone(), said: said.err.trim().to_string() }),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::lockfile::WheelDigest;

    fn wheel(name: &str, tags: &str) -> LockedWheel {
        LockedWheel {
            name: name.into(),
            version: "2.9.1".into(),
            file: format!("{name}-2.9.1-{tags}.whl"),
            digest: WheelDigest { sha256: "ab".repeat(32), size: 1 },
        }
    }

    fn python(version: &str) -> Python {
        Python {
            asked: "/usr/bin/python3".into(),
            path: "/usr/bin/python3".into(),
            files: vec!["/usr/bin/python3".into()],
            library: vec![],
            version: version.into(),
            version_text: version.into(),
            numpy: None,
        }
    }

    #[test]
    fn each_python_gets_its_wheel_and_what_is_for_any() {
        let wheels = [
            wheel("sympy", "py3-none-any"),
            wheel("torch", "cp311-cp311-manylinux_2_28_x86_64"),
            wheel("torch", "cp313-cp313-manylinux_2_28_x86_64"),
            wheel("torch", "cp313-cp313t-manylinux_2_28_x86_64"),
        ];
        let of = |version: &str| wheels_for(&wheels, &python(version)).map_err(|e| e.to_string());
        assert_eq!(of("3.11.7").unwrap(), [wheels[0].clone(), wheels[1].clone()]);
        assert_eq!(of("3.13.1").unwrap(), [wheels[0].clone(), wheels[2].clone()]);
        let none = of("3.12.1").unwrap_err();
        assert!(none.contains("3.12.1") && none.contains("kforge update"), "{none}");
        let keys = ["3.11.7", "3.13.1"].map(|version| fingerprint(&of(version).unwrap()).tools["torch"]);
        assert_ne!(keys[0], keys[1], "the key is of the wheel that is used");
        assert!(fingerprint(&wheels).tools.contains_key("torch-processor"));
    }
}
