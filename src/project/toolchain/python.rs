//! The Python interpreter that runs references, its standard library, and its numpy. Knows how to query an interpreter, but not what it runs.
//!
//! | entry | what | why |
//! |---|---|---|
//! | `python` | the program, and every shared library that the program and numpy have loaded | they compute |
//! | `version` | the build information that the interpreter reports | identifies the build |
//! | `stdlib` | the modules of the interpreter's own library, by name and content | a reference may import any of them |
//! | `numpy` | the version of numpy, and its modules and libraries by name and content | the same |
//!
//! A reference can import nothing else except files of its package. When a reference runs, imports from [`LEFT_OUT`] and from other installed packages are
//! refused. So nothing else enters the fingerprint.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::run::{self, ask, compiler_environment, find as find_program};
use super::{DigestFile, Error};
use kforge_foundation::base::Digest;
use kforge_types::record::params::{PYTHON_PROGRAM, PYTHON_READS, Toolchain};

const WHAT: &str = "Python interpreter";

/// Names of interpreters to look for, in order.
const NAMES: [&str; 2] = ["python3", "python"];

/// numpy, as an interpreter imports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Numpy {
    /// Its version.
    pub version: String,
    /// Its folder.
    pub folder: PathBuf,
}

/// Folders within Python's own library and numpy from which no reference can import: packages that people installed, and the tests of these libraries. kforge
/// passes this list to the driver of references.
pub const LEFT_OUT: [&str; 6] = ["site-packages", "dist-packages", "__pycache__", "test", "tests", "idlelib"];

/// The packages beside PyTorch, PyTorch included, that a reference in PyTorch can import. kforge passes this list to the driver of such references.
pub const TORCH: [&str; 6] = ["torch", "torchgen", "functorch", "typing_extensions.py", "sympy", "mpmath"];

/// An interpreter found on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Python {
    /// The program that was named or found on `PATH`; possibly a version manager's wrapper.
    pub asked: PathBuf,
    /// The executable as the interpreter reports it, absolute. Wrappers of version managers are resolved, but links are not, because a virtual environment is
    /// identified by its link.
    pub path: PathBuf,
    /// The file that `path` resolves to, links followed, and the shared libraries that the interpreter and numpy load.
    pub files: Vec<PathBuf>,
    /// The folders of the interpreter's own library.
    pub library: Vec<PathBuf>,
    /// The version: `3.11.7`.
    pub version: String,
    /// All build information that the interpreter reports.
    pub version_text: String,
    /// numpy, if it can be imported.
    pub numpy: Option<Numpy>,
}

/// The output of [`QUESTION`].
#[derive(Deserialize)]
struct Answer {
    executable: PathBuf,
    files: Vec<PathBuf>,
    library: Vec<PathBuf>,
    version: String,
    text: String,
    numpy: Option<Numpy>,
}

/// Run as isolated (`-I`), so that neither the user's environment nor the current folder adds modules.
const QUESTION: &str = r#"
import json, os, platform, sys, sysconfig
numpy = None
try:
    import numpy as found
    numpy = {"version": found.__version__, "folder": os.path.dirname(os.path.abspath(found.__file__))}
except ImportError:
    pass
program = os.path.realpath(sys.executable)
loaded = set()
with open("/proc/self/maps") as maps:
    for line in maps:
        path = line.rstrip("\n").split(None, 5)[5:]
        if path and path[0].startswith("/") and ".so" in os.path.basename(path[0]):
            loaded.add(path[0])
paths = sysconfig.get_paths()
library = sorted(set(os.path.abspath(paths[name]) for name in ("stdlib", "platstdlib")))
print(json.dumps({"executable": os.path.abspath(sys.executable), "files": [program] + sorted(loaded - {program}), "library": library, "version": platform.python_version(), "text": sys.version, "numpy": numpy}))
"#;

/// An interpreter by the names that workers use: `python`, [`PYTHON_PROGRAM`], and what that program reads.
pub fn places(python: &Python) -> BTreeMap<String, PathBuf> {
    let program = python.files.first().unwrap_or(&python.path).clone();
    let mut places: BTreeMap<String, PathBuf> =
        [("python".to_string(), python.path.clone()), (PYTHON_PROGRAM.to_string(), program)].into();
    let read = python.library.iter().chain(python.files.iter().skip(1)).enumerate();
    places.extend(read.map(|(at, path)| (format!("{PYTHON_READS}{at}"), path.clone())));
    places
}

/// The places that [`find`] searches in vain before it finds an interpreter.
pub fn passed_over(explicit: Option<&Path>, path_var: &str) -> Vec<PathBuf> {
    run::passed_over(explicit, &NAMES, path_var)
}

/// Finds an interpreter: the one that the user named, else `python3`, else `python` in the folders of `path_var`.
///
/// # Errors
/// There is no interpreter, it does not answer, or it is older than 3.8.
pub fn find(explicit: Option<&Path>, path_var: &str) -> Result<Python, Error> {
    let path = find_program(explicit, &NAMES, path_var, WHAT)?;
    let mut environment = compiler_environment(path_var);
    // The query only imports numpy. OpenBLAS would start one spinning thread per processor.
    environment.insert("OPENBLAS_NUM_THREADS".into(), "1".into());
    let said = ask(&path, &["-I", "-c", QUESTION], &environment, "")?;
    if !said.success {
        return Err(Error::NoAnswer { program: path, said: said.err.trim().to_string() });
    }
    let answer: Answer =
        serde_json::from_str(said.out.trim()).map_err(|source| Error::NotPython { program: path.clone(), source })?;
    Ok(Python {
        asked: path,
        path: answer.executable,
        files: answer.files,
        library: answer.library,
        version: answer.version,
        version_text: answer.text,
        numpy: answer.numpy,
    })
}

/// Returns the interpreter that [`find`] finds: the stored one if its fingerprint is unchanged, else a new query. kforge always queries the interpreter if its
/// files would not show a change: behind a wrapper, which may choose another interpreter later, and without numpy, which may be installed later.
/// # Errors
/// Same as [`find`]; or a file cannot be read.
pub fn recall(
    kept: Option<(Python, Toolchain)>,
    explicit: Option<&Path>,
    path_var: &str,
    digest: DigestFile<'_>,
) -> Result<(Python, Toolchain), Error> {
    let path = find_program(explicit, &NAMES, path_var, WHAT)?;
    if let Some((python, fingerprint)) = kept
        && python.asked == path
        && python.steady()
        && python.fingerprint(digest).is_ok_and(|now| now == fingerprint)
    {
        return Ok((python, fingerprint));
    }
    let python = find(explicit, path_var)?;
    let fingerprint = python.fingerprint(digest).map_err(|source| Error::Read { path: python.path.clone(), source })?;
    Ok((python, fingerprint))
}

impl Python {
    /// Whether unchanged files mean an unchanged interpreter. This is false behind a wrapper, which may choose another interpreter later, and without numpy,
    /// which may be installed later.
    pub fn steady(&self) -> bool {
        self.numpy.is_some() && self.asked.canonicalize().is_ok_and(|real| self.files.first() == Some(&real))
    }

    /// The files of the interpreter's own library and numpy by name, and the folders that were listed to find them.
    fn modules(&self) -> io::Result<(Modules, Vec<PathBuf>)> {
        let (mut all, mut folders) = (BTreeMap::new(), Vec::new());
        for folder in &self.library {
            all.entry("stdlib".to_string()).or_insert_with(Vec::new).extend(modules_below(folder, &mut folders)?);
        }
        if let Some(numpy) = &self.numpy {
            let found: &mut Vec<Module> = all.entry("numpy".to_string()).or_default();
            found.extend(modules_below(&numpy.folder, &mut folders)?);
            let libraries = numpy.folder.with_file_name("numpy.libs");
            if libraries.is_dir() {
                found.extend(modules_below(&libraries, &mut folders)?);
            }
        }
        Ok((all, folders))
    }

    /// The folders whose entries affect the fingerprint.
    ///
    /// # Errors
    /// A folder can no longer be read: find the interpreter again.
    pub fn folders(&self) -> io::Result<Vec<PathBuf>> {
        Ok(self.modules()?.1)
    }

    /// The fingerprint of the interpreter, without paths: see the table above.
    ///
    /// # Errors
    /// A file can no longer be read: find the interpreter again.
    pub fn fingerprint(&self, digest: DigestFile<'_>) -> io::Result<Toolchain> {
        let mut tools = BTreeMap::new();
        let files: Vec<Digest> = self.files.iter().map(|p| digest(p)).collect::<io::Result<_>>()?;
        tools.insert("python".to_string(), super::digest_of_sequence(&files));
        tools.insert("version".to_string(), Digest::of(self.version_text.as_bytes()));
        for (name, modules) in self.modules()?.0 {
            let mut parts = Vec::new();
            if let Some(numpy) = self.numpy.as_ref().filter(|_| name == "numpy") {
                parts.push(Digest::of(numpy.version.as_bytes()));
            }
            for module in modules {
                parts.extend([Digest::of(module.name.as_bytes()), digest(&module.path)?]);
            }
            tools.insert(name, super::digest_of_sequence(&parts));
        }
        Ok(Toolchain { tools, ..Toolchain::default() })
    }
}

/// Importable files, by `stdlib` or `numpy`.
type Modules = BTreeMap<String, Vec<Module>>;

/// A file that can be imported or loaded.
pub(super) struct Module {
    pub(super) name: String,
    pub(super) path: PathBuf,
}

/// Importable or loadable files below a folder, in order of names. Every folder that was searched is added to `listed`.
pub(super) fn modules_below(folder: &Path, listed: &mut Vec<PathBuf>) -> io::Result<Vec<Module>> {
    let left_out = |e: &walkdir::DirEntry| {
        e.depth() > 0 && e.file_type().is_dir() && e.file_name().to_str().is_none_or(|n| LEFT_OUT.contains(&n))
    };
    let mut found = Vec::new();
    let walk = walkdir::WalkDir::new(folder).follow_links(true).sort_by_file_name();
    for entry in walk.into_iter().filter_entry(|e| !left_out(e)) {
        let entry = entry.map_err(io::Error::from)?;
        let name = entry.file_name().to_string_lossy();
        if entry.file_type().is_dir() {
            listed.push(entry.path().to_path_buf());
        } else if name.ends_with(".py") || name.ends_with(".so") || name.contains(".so.") {
            let below = entry.path().strip_prefix(folder).unwrap_or(entry.path());
            found.push(Module { name: below.to_string_lossy().into_owned(), path: entry.path().to_path_buf() });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn stand_in(dir: &Path, numpy: &str) -> PathBuf {
        let path = dir.join("python3");
        std::fs::create_dir_all(dir.join("lib")).unwrap();
        let answer = format!(
            r#"{{"executable":"{0}","files":["{0}"],"library":["{1}"],"version":"3.12.1","text":"3.12.1 (x)","numpy":{numpy}}}"#,
            path.display(),
            dir.join("lib").display()
        );
        std::fs::write(&path, format!("#!/bin/sh\necho '{answer}'\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn of(python: &Python) -> Toolchain {
        python.fingerprint(&|p: &Path| Digest::of_file(p)).unwrap()
    }

    #[test]
    fn every_module_that_a_reference_can_import_counts_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("numpy");
        std::fs::create_dir_all(folder.join("tests")).unwrap();
        std::fs::create_dir_all(dir.path().join("numpy.libs")).unwrap();
        let python = find(Some(&stand_in(dir.path(), "null")), "/usr/bin:/bin").unwrap();
        assert_eq!((python.version.as_str(), &python.numpy), ("3.12.1", &None));
        let python = Python { numpy: Some(Numpy { version: "2.0".into(), folder: folder.clone() }), ..python };
        let mut last = of(&python);
        for (file, entry) in [
            (folder.join("__init__.py"), "numpy"),
            (folder.join("core.so"), "numpy"),
            (dir.path().join("numpy.libs/libopenblas.so.0"), "numpy"),
            (dir.path().join("lib/random.py"), "stdlib"),
        ] {
            for text in ["", "one", "two"] {
                std::fs::write(&file, text).unwrap();
                let now = of(&python);
                assert_ne!(now.tools[entry], last.tools[entry], "{}: {text}", file.display());
                last = now;
            }
        }
        std::fs::write(folder.join("tests/test_core.py"), "").unwrap();
        std::fs::create_dir_all(dir.path().join("lib/site-packages")).unwrap();
        std::fs::write(dir.path().join("lib/site-packages/scipy.py"), "").unwrap();
        assert_eq!(of(&python), last);
        let other = Python { numpy: Some(Numpy { version: "2.1".into(), folder }), ..python };
        assert_ne!(of(&other).tools["numpy"], last.tools["numpy"]);
    }

    #[test]
    fn a_kept_answer_is_taken_while_nothing_changed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("numpy");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("core.py"), "x").unwrap();
        let numpy = format!(r#"{{"version":"2.0","folder":"{}"}}"#, folder.display());
        let named = stand_in(dir.path(), &numpy).canonicalize().unwrap();
        let ask = |kept| recall(kept, Some(&named), "/usr/bin:/bin", &|p: &Path| Digest::of_file(p)).unwrap();
        let mut kept = ask(None);
        kept.0.version = "kept".into();
        assert_eq!(ask(Some(kept.clone())).0.version, "kept");
        std::fs::write(folder.join("core.py"), "y").unwrap();
        assert_eq!(ask(Some(kept)).0.version, "3.12.1", "numpy changed");
        stand_in(dir.path(), "null");
        let mut without = ask(None);
        without.0.version = "kept".into();
        assert_eq!(ask(Some(without)).0.version, "3.12.1", "numpy may have come");
    }

    #[test]
    fn a_program_that_is_no_interpreter_is_refused() {
        let error = find(Some(Path::new("/bin/echo")), "/usr/bin:/bin").unwrap_err().to_string();
        assert!(error.contains("/bin/echo"), "{error}");
        assert!(find(None, "/nowhere").unwrap_err().to_string().contains("`python3`, `python`"));
    }
}
