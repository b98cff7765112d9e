//! Finds the tools of a CUDA in a folder of unpacked wheels or of an installed CUDA. Knows file names and layouts; runs nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Group;
use crate::toolchain::Error;
use crate::toolchain::run::is_executable;

/// The tools of a group, by the names that workers use: `nvrtc`, `nvrtc-builtins`, `nvcc`, `nvdisasm`, `cuobjdump`, `fatbinary`, `cuda-include`, `cub-include`. The subfolder `cccl`
/// of `cuda-include`, if it exists, is an include folder too; `cub-include` is the one of both that holds `cub/`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Installed {
    /// Absolute paths by name.
    pub tools: BTreeMap<String, PathBuf>,
}

impl Installed {
    /// The tools of a group in a folder of unpacked wheels.
    ///
    /// # Errors
    /// A tool of the group is missing.
    pub fn of_wheels(folder: &Path, group: Group) -> Result<Self, Error> {
        // One folder per major release: `nvidia/cu13`.
        let inner = std::fs::read_dir(folder.join("nvidia"))
            .map_err(|source| Error::Read { path: folder.to_owned(), source })?
            .flatten()
            .map(|entry| entry.path())
            .find(|path| path.is_dir() && path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("cu")))
            .ok_or_else(|| Error::Layout(folder.to_owned()))?;
        Self::of_local(&inner, group)
    }

    /// The tools of a group in an installed CUDA.
    ///
    /// # Errors
    /// A tool of the group is missing.
    pub fn of_local(root: &Path, group: Group) -> Result<Self, Error> {
        let root = std::path::absolute(root).map_err(|source| Error::Absolute { path: root.to_owned(), source })?;
        let program = |name: &str| Some(root.join("bin").join(name)).filter(|p| is_executable(p));
        let include = || {
            ["include", "targets/x86_64-linux/include"]
                .map(|folder| root.join(folder))
                .into_iter()
                .find(|folder| folder.join("cuda_runtime.h").is_file())
        };
        let wanted: Vec<(&'static str, Option<PathBuf>)> = match group {
            Group::Compile => vec![
                ("nvrtc", library(&root, "libnvrtc.so.")),
                ("nvrtc-builtins", library(&root, "libnvrtc-builtins.so.")),
                ("cuda-include", include()),
            ],
            Group::Nvcc => vec![("nvcc", program("nvcc")), ("cuda-include", include())],
            Group::Disassemble => vec![("nvdisasm", program("nvdisasm"))],
            Group::Fatbin => vec![("fatbinary", program("fatbinary"))],
            Group::Cub => vec![("cub-include", with_cub(&root))],
        };
        let mut tools = BTreeMap::new();
        for (name, path) in wanted {
            let path = path.ok_or_else(|| Error::Incomplete { root: root.clone(), tool: name, group })?;
            tools.insert(name.to_string(), path);
        }
        if group == Group::Disassemble {
            tools.extend(program("cuobjdump").map(|path| ("cuobjdump".to_string(), path)));
        }
        Ok(Installed { tools })
    }
}

/// The include folder that holds `cub/`: CUDA 13 has a folder of its own for it.
fn with_cub(root: &Path) -> Option<PathBuf> {
    let folders = ["include/cccl", "targets/x86_64-linux/include/cccl", "include", "targets/x86_64-linux/include"];
    folders.map(|folder| root.join(folder)).into_iter().find(|folder| folder.join("cub").is_dir())
}

/// The library whose file name is the prefix followed by a version. If there are several, the one with the shortest name, which is the name that programs load.
fn library(root: &Path, prefix: &str) -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = ["lib64", "lib", "targets/x86_64-linux/lib"]
        .into_iter()
        .filter_map(|folder| std::fs::read_dir(root.join(folder)).ok())
        .flat_map(|entries| entries.flatten().map(|entry| entry.path()))
        .filter(|path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(prefix)))
        .collect();
    found.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    found.into_iter().next()
}
