//! Triton: the wheels of a release, one for each kind of Python, and the one that the Python of this machine can import. Knows names of wheels and their layout;
//! does not download by itself and compiles nothing.
//!
//! | decision | reason |
//! |---|---|
//! | the lockfile holds the wheels of every kind of Python | one file would fail for a colleague who has another Python |
//! | the key holds the wheel that is used, the interpreter and its own library | all of them execute what a source says at import; equal binaries end a rebuild |
//! | numpy is not in the key of compilations | neither Triton's compiler nor a source can import it there: packages that people installed are left out |
//! | numpy is in the key of the interpreter | Triton's interpreter computes with it |
//! | the disassembler is that of the wheel | another one may not know what Triton's assembler writes |

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::cuda::{Progress, Source, folder_of, install_wheels};
use super::pip::Pip;
use super::run::{ask, compiler_environment};
use super::{DigestFile, Error, Python, digest_of_sequence};
use crate::workspace::lockfile::LockedWheel;
use kforge_foundation::base::Digest;
use kforge_types::record::params::{INTERPRETER_NUMPY, INTERPRETER_PYTHON, Toolchain};

/// The minor versions of Python 3 for which wheels are locked.
const PYTHONS: [u32; 4] = [11, 12, 13, 14];

/// The name of a release's wheels in the lockfile.
pub fn lock_name(release: &str) -> String {
    format!("triton {release}")
}

/// The wheels of a release (`3.9`) for every kind of Python, with the user's indexes as they are today. Installs nothing.
///
/// # Errors
/// pip cannot resolve the release for any Python.
pub fn resolve(release: &str, pip: &Pip) -> Result<Vec<LockedWheel>, Error> {
    let requirement = format!("triton=={release}.*");
    let mut wheels: Vec<LockedWheel> = vec![];
    let mut refused = None;
    for minor in PYTHONS {
        // A later Python may be able to import what is known already.
        if wheels.iter().any(|wheel| serves(&wheel.file, minor)) {
            continue;
        }
        match pip.resolve_for(&requirement, &format!("3.{minor}")) {
            Ok(found) => wheels.extend(found),
            Err(why) => refused = refused.or(Some(why)),
        }
    }
    match refused {
        Some(why) if wheels.is_empty() => Err(why),
        _ => {
            wheels.sort();
            wheels.dedup();
            Ok(wheels)
        }
    }
}

/// Whether a wheel is for a minor version of Python 3: by its tags, as in `triton-3.9.0-cp311-cp311-PLATFORM.whl`. A stable interface serves later versions, too.
pub(super) fn serves(file: &str, minor: u32) -> bool {
    let parts: Vec<&str> = file.trim_end_matches(".whl").split('-').collect();
    let [.., python, abi, _] = parts.as_slice() else { return false };
    let Some(least) = python.strip_prefix("cp3").and_then(|text| text.parse::<u32>().ok()) else { return false };
    if *abi == "abi3" { least <= minor } else { least == minor && *abi == *python }
}

/// The wheel that a Python can import.
///
/// # Errors
/// The Python is too old, or the lockfile names no wheel for it.
pub fn wheel_for<'w>(wheels: &'w [LockedWheel], python: &Python) -> Result<&'w LockedWheel, Error> {
    let unfit = |why| Error::TritonPython { python: python.path.clone(), version: python.version.clone(), why };
    let minor = python.version.strip_prefix("3.").and_then(|rest| rest.split('.').next()?.parse::<u32>().ok());
    let Some(minor) = minor.filter(|minor| *minor >= PYTHONS[0]) else {
        return Err(unfit("it needs Python 3.11 or later".into()));
    };
    if python.version_text.contains("free-threading") {
        return Err(unfit("it needs a Python with a global interpreter lock".into()));
    }
    let found = wheels.iter().find(|wheel| serves(&wheel.file, minor));
    found.ok_or_else(|| unfit("`kforge.lock` names no wheel for it: run `kforge update`".into()))
}

/// The fingerprint that enters the keys of compilations.
///
/// # Errors
/// A file of the interpreter can no longer be read.
pub fn fingerprint(wheel: &LockedWheel, python: &Python, digest: DigestFile<'_>) -> io::Result<Toolchain> {
    let own = Python { numpy: None, files: files(python), ..python.clone() };
    let mut toolchain = own.fingerprint(digest)?;
    toolchain.tools.insert("triton".into(), of_wheel(wheel));
    Ok(toolchain)
}

/// The fingerprint of a wheel's interpreter, and of the Python with numpy that runs it.
///
/// # Errors
/// A file of the interpreter can no longer be read.
pub fn fingerprint_of_interpreter(
    wheel: &LockedWheel,
    python: &Python,
    digest: DigestFile<'_>,
) -> io::Result<Toolchain> {
    let mut toolchain = python.fingerprint(digest)?;
    toolchain.tools.insert("triton".into(), of_wheel(wheel));
    Ok(toolchain)
}

/// The fingerprint of the disassembler that comes with a wheel.
pub fn fingerprint_of_disassembler(wheel: &LockedWheel) -> Toolchain {
    Toolchain { tools: [("nvdisasm".to_string(), of_wheel(wheel))].into(), ..Toolchain::default() }
}

/// The wheel by content. Wheels of one release for several kinds of Python differ.
fn of_wheel(wheel: &LockedWheel) -> Digest {
    digest_of_sequence(&[Digest::of(wheel.file.as_bytes()), Digest::of(wheel.digest.to_string().as_bytes())])
}

/// The interpreter and the libraries that it loads, without those of numpy.
fn files(python: &Python) -> Vec<PathBuf> {
    let of_numpy = |path: &Path| {
        let Some(numpy) = &python.numpy else { return false };
        path.starts_with(&numpy.folder) || path.starts_with(numpy.folder.with_file_name("numpy.libs"))
    };
    python.files.iter().filter(|path| !of_numpy(path)).cloned().collect()
}

/// The folder of a wheel below `toolchains`, if it is installed.
pub fn installed(wheel: &LockedWheel, toolchains: &Path) -> Option<PathBuf> {
    Some(folder_of(std::slice::from_ref(wheel), toolchains)).filter(|folder| folder.is_dir())
}

/// Installs a wheel below `toolchains`, unless it is installed already, and has Python compile its modules. Returns its folder.
///
/// # Errors
/// It cannot be downloaded, differs from the locked one, `source` is offline, or Python cannot be started.
pub fn install(
    (wheel, python): (&LockedWheel, &Python),
    toolchains: &Path,
    source: Source<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<PathBuf, Error> {
    if let Some(folder) = installed(wheel, toolchains) {
        return Ok(folder);
    }
    let folder = install_wheels(std::slice::from_ref(wheel), toolchains, source, progress)?;
    // A process that imports Triton may not write beside it. What cannot be compiled is compiled at each import, which only takes time.
    let args = ["-I", "-S", "-m", "compileall", "-q", &folder.to_string_lossy()];
    ask(&python.path, &args, &compiler_environment("/usr/bin:/bin"), "")?;
    Ok(folder)
}

/// The tools of a compilation by the names that workers use: `triton`, `python`, and what Python reads.
pub fn places(folder: &Path, python: &Python) -> BTreeMap<String, PathBuf> {
    let files = files(python);
    let program = files.first().unwrap_or(&python.path).clone();
    let mut places: BTreeMap<String, PathBuf> =
        [("triton".to_string(), folder.to_path_buf()), ("python".to_string(), program)].into();
    let read = python.library.iter().chain(files.iter().skip(1)).enumerate();
    places.extend(read.map(|(at, path)| (format!("python-reads:{at}"), path.clone())));
    places
}

/// The tools of a run by Triton's interpreter by the names that workers use: `triton`, [`INTERPRETER_PYTHON`], [`INTERPRETER_NUMPY`], and what they read.
pub fn places_of_interpreter(folder: &Path, python: &Python) -> BTreeMap<String, PathBuf> {
    let program = python.files.first().unwrap_or(&python.path).clone();
    let mut places: BTreeMap<String, PathBuf> =
        [("triton".to_string(), folder.to_path_buf()), (INTERPRETER_PYTHON.to_string(), program)].into();
    if let Some(numpy) = &python.numpy {
        places.insert(INTERPRETER_NUMPY.into(), numpy.folder.clone());
    }
    let libraries = python.numpy.iter().map(|numpy| numpy.folder.with_file_name("numpy.libs"));
    let libraries: Vec<PathBuf> = libraries.filter(|folder| folder.is_dir()).collect();
    let read = python.library.iter().chain(python.files.iter().skip(1)).chain(&libraries).enumerate();
    places.extend(read.map(|(at, path)| (format!("triton-reads:{at}"), path.clone())));
    places
}

/// The disassembler in the folder of a wheel, by the name that workers use.
pub fn disassembler(folder: &Path) -> BTreeMap<String, PathBuf> {
    [("nvdisasm".to_string(), folder.join("triton/backends/nvidia/bin/nvdisasm"))].into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::lockfile::WheelDigest;

    fn wheel(tags: &str) -> LockedWheel {
        LockedWheel {
            name: "triton".into(),
            version: "3.9.0".into(),
            file: format!("triton-3.9.0-{tags}-manylinux_2_28_x86_64.whl"),
            digest: WheelDigest { sha256: "ab".repeat(32), size: 1 },
        }
    }

    fn python(version: &str) -> Python {
        Python {
            asked: "/usr/bin/python3".into(),
            path: "/usr/bin/python3".into(),
            files: vec!["/usr/bin/python3".into(), "/n/numpy/core.so".into(), "/n/numpy.libs/libblas.so".into()],
            library: vec!["/usr/lib/python3".into()],
            version: version.into(),
            version_text: version.into(),
            numpy: Some(super::super::python::Numpy { version: "2".into(), folder: "/n/numpy".into() }),
        }
    }

    #[test]
    fn each_python_gets_the_wheel_that_it_can_import() {
        let wheels = [wheel("cp311-cp311"), wheel("cp312-abi3")];
        let of = |version: &str| wheel_for(&wheels, &python(version)).map(|wheel| wheel.file.clone());
        assert_eq!(of("3.11.7").unwrap(), wheels[0].file);
        for version in ["3.12.1", "3.14.0"] {
            assert_eq!(of(version).unwrap(), wheels[1].file, "{version}");
        }
        let old = of("3.10.2").unwrap_err().to_string();
        assert!(old.contains("Python 3.11 or later"), "{old}");
        let none = wheel_for(&wheels[..1], &python("3.13.1")).unwrap_err().to_string();
        assert!(none.contains("kforge update") && none.contains("3.13.1"), "{none}");
        let free = Python { version_text: "3.13.1 experimental free-threading build".into(), ..python("3.13.1") };
        assert!(wheel_for(&wheels, &free).unwrap_err().to_string().contains("global interpreter lock"));
    }

    #[test]
    fn a_lock_made_under_another_python_serves_this_one_and_the_key_is_of_the_wheel_that_is_used() {
        let of = |tags| fingerprint_of_disassembler(&wheel(tags)).tools["nvdisasm"];
        assert_ne!(of("cp311-cp311"), of("cp313-cp313"));
        assert!(serves(&wheel("cp313-cp313").file, 13) && !serves(&wheel("cp313-cp313t").file, 13));
    }

    #[test]
    fn the_interpreter_has_numpy_and_names_that_no_reference_uses() {
        let places = places_of_interpreter(Path::new("/t"), &python("3.11.7"));
        let names: Vec<&str> = places.keys().map(String::as_str).collect();
        let read = ["triton-reads:0", "triton-reads:1", "triton-reads:2"];
        assert_eq!(names, [&["triton", "triton-numpy", "triton-python"][..], &read[..]].concat());
        assert_eq!(places[INTERPRETER_NUMPY], Path::new("/n/numpy"));
    }

    #[test]
    fn numpy_is_no_part_of_what_compiles() {
        assert_eq!(files(&python("3.11.7")), [PathBuf::from("/usr/bin/python3")]);
        let places = places(Path::new("/t"), &python("3.11.7"));
        assert_eq!(places.keys().collect::<Vec<_>>(), ["python", "python-reads:0", "triton"]);
    }
}
