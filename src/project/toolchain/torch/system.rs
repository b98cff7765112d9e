//! The PyTorch that the Python of this machine imports. Knows how to ask for it, and which of its files are in keys.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::of_tools;
use crate::toolchain::python::{TORCH, modules_below};
use crate::toolchain::run::{ask, compiler_environment};
use crate::toolchain::{DigestFile, Error, Python, digest_of_sequence};
use kforge_foundation::base::Digest;
use kforge_types::record::params::Toolchain;

/// A PyTorch of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct System {
    /// Its version.
    pub version: String,
    /// The folder that holds it and the packages that it imports.
    pub folder: PathBuf,
    /// The libraries that it loads from elsewhere, without those of CUDA.
    pub loaded: Vec<PathBuf>,
}

const QUESTION: &str = r#"
import json, os, sys
try:
    import torch
except ImportError as error:
    print(json.dumps({"missing": getattr(error, "name", None) == "torch", "why": str(error)}))
    sys.exit(0)
folder = os.path.dirname(os.path.dirname(os.path.abspath(torch.__file__)))
own = os.path.join(os.path.realpath(folder), "torch") + os.sep
cuda = ("libcu", "libnv", "libnccl")
loaded = set()
with open("/proc/self/maps") as maps:
    for line in maps:
        path = line.rstrip("\n").split(None, 5)[5:]
        name = os.path.basename(path[0]) if path else ""
        if ".so" in name and path[0].startswith("/") and not path[0].startswith(own) and not name.startswith(cuda):
            loaded.add(path[0])
print(json.dumps({"found": {"version": torch.__version__, "folder": folder, "loaded": sorted(loaded)}}))
"#;

#[derive(Deserialize)]
struct Answer {
    found: Option<System>,
    #[serde(default)]
    missing: bool,
    #[serde(default)]
    why: String,
}

/// Asks a Python for its PyTorch.
///
/// # Errors
/// It has none, cannot import the one it has, or does not answer.
pub fn find(python: &Python) -> Result<System, Error> {
    let said = ask(&python.path, &["-I", "-c", QUESTION], &compiler_environment("/usr/bin:/bin"), "")?;
    let program = || python.path.clone();
    if !said.success {
        return Err(Error::NoAnswer { program: program(), said: said.err.trim().to_string() });
    }
    // PyTorch may print warnings.
    let line = said.out.lines().last().unwrap_or_default();
    let answer: Answer =
        serde_json::from_str(line).map_err(|source| Error::NotPython { program: program(), source })?;
    match answer.found {
        Some(found) => Ok(found),
        None if answer.missing => Err(Error::NoTorch { python: program() }),
        None => Err(Error::TorchImport { python: program(), why: answer.why }),
    }
}

impl System {
    /// The fingerprint, without paths.
    ///
    /// # Errors
    /// A file can no longer be read: ask again.
    pub fn fingerprint(&self, digest: DigestFile<'_>) -> io::Result<Toolchain> {
        let mut parts = vec![Digest::of(self.version.as_bytes())];
        for name in TORCH {
            let path = self.folder.join(name);
            if path.is_dir() {
                for module in modules_below(&path, &mut vec![])? {
                    let named = format!("{name}/{}", module.name);
                    parts.extend([Digest::of(named.as_bytes()), digest(&module.path)?]);
                }
            } else if path.is_file() {
                parts.extend([Digest::of(name.as_bytes()), digest(&path)?]);
            }
        }
        for library in &self.loaded {
            parts.push(digest(library)?);
        }
        Ok(of_tools(digest_of_sequence(&parts)))
    }

    /// The tools of a reference by the names that workers use.
    pub fn places(&self) -> BTreeMap<String, PathBuf> {
        [("torch".to_string(), self.folder.clone())].into()
    }
}

/// Releases in a folder of packages that decide what PyTorch computes on a GPU: the libraries of CUDA, and the Triton that `torch.compile` uses. The folder of
/// each release is named after it. Libraries of a toolkit elsewhere are not among them.
const WITH_CUDA: [&str; 4] = ["nvidia", "cuda", "triton", "pytorch_triton"];

/// The fingerprint of what PyTorch uses on a GPU, from the folder that holds PyTorch: names and releases, because the libraries are gigabytes.
///
/// # Errors
/// The folder cannot be read.
pub fn with_cuda(folder: &Path) -> io::Result<Toolchain> {
    let mut found = vec![];
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let is_release = name.ends_with(".dist-info") || name.ends_with(".egg-info");
        if is_release && WITH_CUDA.iter().any(|prefix| name.to_lowercase().starts_with(prefix)) {
            found.push(name);
        }
    }
    found.sort();
    let parts: Vec<Digest> = found.iter().map(|name| Digest::of(name.as_bytes())).collect();
    let tools = [("torch-cuda".to_string(), digest_of_sequence(&parts))];
    Ok(Toolchain { tools: BTreeMap::from(tools), ..Toolchain::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn asked(dir: &Path, answer: &str) -> Result<System, Error> {
        let path = dir.join("python3");
        std::fs::write(&path, format!("#!/bin/sh\necho a warning\necho '{answer}'\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        find(&Python {
            asked: path.clone(),
            path,
            files: vec![],
            library: vec![],
            version: "3.12.1".into(),
            version_text: "3.12.1".into(),
            numpy: None,
        })
    }

    #[test]
    fn a_missing_torch_says_how_to_install_it_and_a_broken_one_why() {
        let dir = tempfile::tempdir().unwrap();
        let said = asked(dir.path(), r#"{"missing": true, "why": "x"}"#).unwrap_err().to_string();
        assert!(said.contains("-m pip install torch") && said.contains("toolchain.torch"), "{said}");
        let said = asked(dir.path(), r#"{"missing": false, "why": "libcublas.so.12: not found"}"#).unwrap_err();
        assert!(said.to_string().contains("libcublas.so.12: not found"), "{said}");
    }

    #[test]
    fn the_releases_of_the_libraries_of_cuda_count_for_baselines_only() {
        let dir = tempfile::tempdir().unwrap();
        let key = || with_cuda(dir.path()).unwrap().tools["torch-cuda"];
        let put = |name: &str| std::fs::create_dir(dir.path().join(name)).unwrap();
        let none = key();
        for other in ["numpy-2.1.0.dist-info", "nvidia", "triton"] {
            put(other);
        }
        assert_eq!(key(), none);
        let mut last = none;
        for release in
            ["nvidia_cublas_cu12-12.8.4.1.dist-info", "triton-3.6.0.dist-info", "nvidia_cudnn_cu12-9.1.dist-info"]
        {
            put(release);
            assert_ne!(key(), last, "{release}");
            last = key();
        }
        assert!(with_cuda(&dir.path().join("absent")).is_err());
    }

    #[test]
    fn the_files_of_torch_count_and_those_of_other_packages_do_not() {
        let dir = tempfile::tempdir().unwrap();
        let put = |file: &str, text: &str| {
            let path = dir.path().join("site").join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("torch/__init__.py", "");
        let answer = format!(
            r#"{{"found": {{"version": "2.9.1", "folder": "{}", "loaded": []}}}}"#,
            dir.path().join("site").display()
        );
        let found = asked(dir.path(), &answer).unwrap();
        let key = |of: &System| of.fingerprint(&|path: &Path| Digest::of_file(path)).unwrap().tools["torch"];
        let mut last = key(&found);
        for file in ["torch/lib/libtorch_cpu.so", "torch/nn/functional.py", "typing_extensions.py", "sympy/core.py"] {
            put(file, "x");
            assert_ne!(key(&found), last, "{file}");
            last = key(&found);
        }
        put("einops/__init__.py", "x");
        put("nvidia/cublas/lib/libcublas.so.12", "x");
        assert_eq!(key(&found), last);
        assert_ne!(key(&System { version: "2.9.2".into(), ..found }), last);
    }
}
