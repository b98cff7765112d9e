//! An installed CUDA: finds its folder and fingerprints its contents. Knows its layout; does not compile.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Group, Installed};
use crate::toolchain::run::on_path;
use crate::toolchain::{DigestFile, Error};
use kforge_foundation::base::Digest;
use kforge_types::record::params::Toolchain;

/// The files that nvcc runs or reads, besides nvcc itself.
const NVCC_PARTS: [&str; 8] = [
    "bin/cudafe++",
    "bin/fatbinary",
    "bin/ptxas",
    "bin/nvlink",
    "bin/nvcc.profile",
    "nvvm/bin/cicc",
    "nvvm/libdevice/libdevice.10.bc",
    "bin/crt/link.stub",
];

/// The folder of the installed CUDA: `CUDA_HOME` or `CUDA_PATH` of the environment, else the folder of the `nvcc` on `PATH`, else `/usr/local/cuda`.
///
/// # Errors
/// No CUDA is installed, or a variable names something that is not a folder.
pub fn find_root(environment: &BTreeMap<String, String>) -> Result<PathBuf, Error> {
    for name in ["CUDA_HOME", "CUDA_PATH"] {
        if let Some(value) = environment.get(name).filter(|v| !v.is_empty()) {
            let root = PathBuf::from(value);
            return if root.is_dir() {
                Ok(root)
            } else {
                Err(Error::NoFolder { variable: name, value: value.clone() })
            };
        }
    }
    let path_var = environment.get("PATH").map_or("", String::as_str);
    let beside_nvcc = on_path("nvcc", path_var)
        .and_then(|nvcc| nvcc.canonicalize().ok())
        .and_then(|nvcc| nvcc.parent().and_then(Path::parent).map(Path::to_path_buf));
    beside_nvcc.into_iter().chain([PathBuf::from("/usr/local/cuda")]).find(|root| root.is_dir()).ok_or(Error::NoCuda)
}

/// The fingerprint of a group of an installed CUDA: the contents of the files that the group runs and includes.
///
/// # Errors
/// A part is missing or cannot be read.
pub(super) fn fingerprint(root: &Path, group: Group, digest: DigestFile<'_>) -> Result<Toolchain, Error> {
    let cannot = |path: &Path, source| Error::Read { path: path.to_owned(), source };
    let installed = Installed::of_local(root, group)?;
    let mut tools = BTreeMap::new();
    for (name, path) in &installed.tools {
        match name.as_str() {
            "cuda-include" => drop(tools.insert("headers".to_string(), headers(path, digest)?)),
            // Beside the tools of the host's compiler, whose headers have that name.
            "cub-include" => drop(tools.insert("cub".to_string(), headers(path, digest)?)),
            "cuobjdump" => {}
            _ => drop(tools.insert(name.clone(), digest(path).map_err(|e| cannot(path, e))?)),
        }
    }
    if group == Group::Nvcc {
        for part in NVCC_PARTS {
            let path = root.join(part);
            if path.is_file() {
                tools.insert(part.to_string(), digest(&path).map_err(|e| cannot(&path, e))?);
            }
        }
    }
    Ok(Toolchain { tools, ..Toolchain::default() })
}

/// The digest of every file below an include folder: relative names and contents, in order of names.
fn headers(folder: &Path, digest: DigestFile<'_>) -> Result<Digest, Error> {
    let mut encoded = Vec::new();
    for entry in walkdir::WalkDir::new(folder).follow_links(true).sort_by_file_name() {
        let entry = entry.map_err(|e| Error::Read { path: folder.to_owned(), source: e.into() })?;
        if !entry.file_type().is_file() {
            continue;
        }
        let path = entry.path();
        let name = path.strip_prefix(folder).unwrap_or(path).to_string_lossy();
        let content = digest(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        encoded.extend((name.len() as u64).to_le_bytes());
        encoded.extend(name.as_bytes());
        encoded.extend(content.hash());
    }
    Ok(Digest::of(&encoded))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// Creates a folder with the layout of CUDA and dummy files.
    fn stand_in(root: &Path) {
        for file in [
            "lib64/libnvrtc.so.13",
            "lib64/libnvrtc.so.13.0.88",
            "lib64/libnvrtc-builtins.so.13.0",
            "include/cuda_runtime.h",
            "include/cccl/cub/cub.cuh",
            "bin/nvcc",
            "bin/nvdisasm",
            "bin/ptxas",
            "bin/fatbinary",
        ] {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, file).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    fn of(root: &Path, group: Group) -> Toolchain {
        fingerprint(root, group, &|p: &Path| Digest::of_file(p)).unwrap()
    }

    #[test]
    fn the_library_is_the_one_it_is_loaded_by() {
        let dir = tempfile::tempdir().unwrap();
        stand_in(dir.path());
        let installed = Installed::of_local(dir.path(), Group::Compile).unwrap();
        assert!(installed.tools["nvrtc"].ends_with("lib64/libnvrtc.so.13"), "{installed:?}");
    }

    #[test]
    fn a_byte_appended_to_a_library_or_header_is_another_compiler() {
        let dir = tempfile::tempdir().unwrap();
        stand_in(dir.path());
        for (file, group) in [
            ("lib64/libnvrtc.so.13", Group::Compile),
            ("include/cccl/cub/cub.cuh", Group::Compile),
            ("bin/ptxas", Group::Nvcc),
            ("bin/nvdisasm", Group::Disassemble),
            ("bin/fatbinary", Group::Fatbin),
        ] {
            let before = Group::ALL.map(|g| of(dir.path(), g));
            std::fs::write(dir.path().join(file), format!("{file}+")).unwrap();
            let after = Group::ALL.map(|g| of(dir.path(), g));
            assert_ne!(before[group as usize], after[group as usize], "{file}");
        }
        let before = of(dir.path(), Group::Compile);
        std::fs::write(dir.path().join("include/new.h"), "").unwrap();
        assert_ne!(before, of(dir.path(), Group::Compile), "a header that was not there");
    }

    #[test]
    fn another_place_with_the_same_contents_is_the_same_compiler() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        stand_in(one.path());
        stand_in(two.path());
        assert_eq!(of(one.path(), Group::Nvcc), of(two.path(), Group::Nvcc));
    }

    #[test]
    fn a_missing_part_and_a_missing_cuda_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let error = Installed::of_local(dir.path(), Group::Compile).unwrap_err().to_string();
        assert!(error.contains("no nvrtc") && error.contains("cuda-compile"), "{error}");
        let environment = [("CUDA_HOME".to_string(), "/nowhere/cuda".to_string())].into();
        assert!(find_root(&environment).unwrap_err().to_string().contains("`/nowhere/cuda`"));
    }
}
