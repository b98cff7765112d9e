//! The Python interpreter that runs references, and its numpy. Knows how to ask one what it is; does not know what it runs.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::DigestFile;
use super::run::{self, ask, compiler_environment, find as find_program};
use crate::base::Digest;
use crate::record::params::Toolchain;

const WHAT: &str = "Python interpreter";

/// Interpreters that are looked for, in order.
const NAMES: [&str; 2] = ["python3", "python"];

/// numpy, as an interpreter imports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Numpy {
    /// Its version.
    pub version: String,
    /// Its `RECORD`, which lists every installed file with its hash; none where it was not installed from a wheel.
    pub record: Option<PathBuf>,
}

/// An interpreter found on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Python {
    /// What was named or found on `PATH`; a version manager's wrapper where there is one.
    pub asked: PathBuf,
    /// The executable as it names itself, absolute: behind version managers' wrappers, but before links, for a virtual environment is known by it.
    pub path: PathBuf,
    /// The file behind it, links followed, and its shared library where it has one.
    pub files: Vec<PathBuf>,
    /// `3.11.7`.
    pub version: String,
    /// All that it says of its build.
    pub version_text: String,
    /// numpy, if it can be imported.
    pub numpy: Option<Numpy>,
}

/// What the question prints.
#[derive(Deserialize)]
struct Answer {
    executable: PathBuf,
    files: Vec<PathBuf>,
    version: String,
    text: String,
    numpy: Option<Numpy>,
}

/// Isolated (`-I`) so that neither the user's environment nor the current folder adds modules.
const QUESTION: &str = r#"
import json, os, platform, sys, sysconfig
files = [os.path.realpath(sys.executable)]
library = os.path.join(sysconfig.get_config_var("LIBDIR") or "", sysconfig.get_config_var("INSTSONAME") or "")
if sysconfig.get_config_var("Py_ENABLE_SHARED") and os.path.isfile(library):
    files.append(os.path.realpath(library))
numpy = None
try:
    import numpy as found
    import importlib.metadata as metadata
    record = None
    try:
        for file in metadata.distribution("numpy").files or []:
            if file.name == "RECORD":
                record = os.path.realpath(file.locate())
    except metadata.PackageNotFoundError:
        pass
    numpy = {"version": found.__version__, "record": record}
except ImportError:
    pass
print(json.dumps({"executable": os.path.abspath(sys.executable), "files": files, "version": platform.python_version(), "text": sys.version, "numpy": numpy}))
"#;

/// Where [`find`] looks in vain before it finds what it finds.
pub fn passed_over(explicit: Option<&Path>, path_var: &str) -> Vec<PathBuf> {
    run::passed_over(explicit, &NAMES, path_var)
}

/// The interpreter the user named, else `python3`, else `python` in the folders of `path_var`.
///
/// # Errors
/// There is none, it does not answer, or it is older than 3.8.
pub fn find(explicit: Option<&Path>, path_var: &str) -> Result<Python, String> {
    let path = find_program(explicit, &NAMES, path_var, WHAT)?;
    let said = ask(&path, &["-I", "-c", QUESTION], &compiler_environment(path_var), "")?;
    if !said.success {
        return Err(format!("`{}` does not answer: {}", path.display(), said.err.trim()));
    }
    let answer: Answer = serde_json::from_str(said.out.trim())
        .map_err(|e| format!("`{}` does not answer as Python 3.8 or later does: {e}", path.display()))?;
    Ok(Python {
        asked: path,
        path: answer.executable,
        files: answer.files,
        version: answer.version,
        version_text: answer.text,
        numpy: answer.numpy,
    })
}

/// The interpreter that [`find`] finds: what was kept with its fingerprint if all of it is as it was, else anew. It is asked every time where a
/// change would not show: behind a wrapper, which may choose another one tomorrow, and without an installed numpy, which may come.
///
/// # Errors
/// As [`find`]; or a file cannot be read.
pub fn recall(
    kept: Option<(Python, Toolchain)>,
    explicit: Option<&Path>,
    path_var: &str,
    digest: DigestFile<'_>,
) -> Result<(Python, Toolchain), String> {
    let path = find_program(explicit, &NAMES, path_var, WHAT)?;
    if let Some((python, fingerprint)) = kept
        && python.asked == path
        && python.steady()
        && python.fingerprint(digest).is_ok_and(|now| now == fingerprint)
    {
        return Ok((python, fingerprint));
    }
    let python = find(explicit, path_var)?;
    let fingerprint =
        python.fingerprint(digest).map_err(|e| format!("could not read `{}`: {e}", python.path.display()))?;
    Ok((python, fingerprint))
}

impl Python {
    /// Whether it is the same as long as its files are: not behind a wrapper, which may choose another one tomorrow, and with an installed numpy.
    pub fn steady(&self) -> bool {
        self.numpy.as_ref().is_some_and(|n| n.record.is_some())
            && self.asked.canonicalize().is_ok_and(|real| self.files.first() == Some(&real))
    }

    /// The interpreter and numpy by content: entries `python`, `version`, and `numpy` where there is one. The standard library is taken to be the one of
    /// the version.
    ///
    /// # Errors
    /// A file cannot be read any more: find again.
    pub fn fingerprint(&self, digest: DigestFile<'_>) -> io::Result<Toolchain> {
        let mut tools = BTreeMap::new();
        let files: Vec<Digest> = self.files.iter().map(|p| digest(p)).collect::<io::Result<_>>()?;
        tools.insert("python".to_string(), super::digest_of_sequence(&files));
        tools.insert("version".to_string(), Digest::of(self.version_text.as_bytes()));
        if let Some(numpy) = &self.numpy {
            let mut parts = vec![Digest::of(numpy.version.as_bytes())];
            if let Some(record) = &numpy.record {
                parts.push(digest(record)?);
            }
            tools.insert("numpy".to_string(), super::digest_of_sequence(&parts));
        }
        Ok(Toolchain { tools })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn stand_in(dir: &Path, numpy: &str) -> PathBuf {
        let path = dir.join("python3");
        let answer = format!(
            r#"{{"executable":"{0}","files":["{0}"],"version":"3.12.1","text":"3.12.1 (x)","numpy":{numpy}}}"#,
            path.display()
        );
        std::fs::write(&path, format!("#!/bin/sh\necho '{answer}'\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn another_numpy_is_another_fingerprint() {
        let dir = tempfile::tempdir().unwrap();
        let python = find(Some(&stand_in(dir.path(), "null")), "/usr/bin:/bin").unwrap();
        assert_eq!((python.version.as_str(), &python.numpy), ("3.12.1", &None));
        let with =
            |version: &str| Python { numpy: Some(Numpy { version: version.into(), record: None }), ..python.clone() };
        let fingerprints: Vec<Toolchain> = [python.clone(), with("1.26"), with("2.0")]
            .iter()
            .map(|p| p.fingerprint(&|p: &Path| Digest::of_file(p)).unwrap())
            .collect();
        assert_ne!(fingerprints[0], fingerprints[1]);
        assert_ne!(fingerprints[1], fingerprints[2]);
        assert_eq!(fingerprints[0].tools["python"], fingerprints[2].tools["python"]);
    }

    #[test]
    fn a_kept_answer_is_taken_while_nothing_changed() {
        let dir = tempfile::tempdir().unwrap();
        let record = dir.path().join("RECORD");
        std::fs::write(&record, "numpy/__init__.py,sha256=x,1").unwrap();
        let numpy = format!(r#"{{"version":"2.0","record":"{}"}}"#, record.display());
        let named = stand_in(dir.path(), &numpy).canonicalize().unwrap();
        let ask = |kept| recall(kept, Some(&named), "/usr/bin:/bin", &|p: &Path| Digest::of_file(p)).unwrap();
        let mut kept = ask(None);
        kept.0.version = "kept".into();
        assert_eq!(ask(Some(kept.clone())).0.version, "kept");
        std::fs::write(&record, "numpy/__init__.py,sha256=y,1").unwrap();
        assert_eq!(ask(Some(kept)).0.version, "3.12.1", "numpy changed");
        stand_in(dir.path(), "null");
        let mut without = ask(None);
        without.0.version = "kept".into();
        assert_eq!(ask(Some(without)).0.version, "3.12.1", "numpy may have come");
    }

    #[test]
    fn a_program_that_is_no_interpreter_is_refused() {
        let error = find(Some(Path::new("/bin/echo")), "/usr/bin:/bin").unwrap_err();
        assert!(error.contains("/bin/echo"), "{error}");
        assert!(find(None, "/nowhere").unwrap_err().contains("`python3`, `python`"));
    }
}
