//! The folder in which a compiler works, and the file names that it sees. Knows how to lay out trees for a compiler; does not run one.
//!
//! A compiler puts file names into its output (`assert`, `__FILE__`), so it must see the same names on every machine: the files of the source tree by their
//! package-relative names, CUDA's headers below `@cuda`, the stand-ins below `@shim`. The folder holds a link for each entry of the tree's root and for each of
//! these two, and is the compiler's working directory.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use kforge_types::record::params::CompileParams;

/// The name of the folder of CUDA's headers.
pub(super) const CUDA: &str = "@cuda";
/// The name of the folder of the stand-ins.
pub(super) const SHIM: &str = "@shim";

/// Flags that would override what kforge sets itself; the manifest has a key for each.
const OWNED: [&str; 14] = [
    "-I",
    "--include-path",
    "-isystem",
    "-include",
    "--pre-include",
    "-o",
    "--output-file",
    "-arch",
    "--gpu-architecture",
    "-gencode",
    "--generate-code",
    "-std",
    "--std",
    "-ccbin",
];

/// A folder that is removed when it is dropped.
pub(super) struct Stage {
    folder: TempDir,
    has_cccl: bool,
}

impl Stage {
    /// Lays out the tree at `source`, CUDA's headers and the stand-ins in a new folder below `scratch`.
    pub(super) fn new(source: &Path, cuda_include: &Path, shim: Option<&Path>, scratch: &Path) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix(".compile-").tempdir_in(scratch)?;
        for entry in std::fs::read_dir(source)? {
            let entry = entry?;
            symlink(std::path::absolute(entry.path())?, folder.path().join(entry.file_name()))?;
        }
        symlink(std::path::absolute(cuda_include)?, folder.path().join(CUDA))?;
        if let Some(shim) = shim {
            symlink(std::path::absolute(shim)?, folder.path().join(SHIM))?;
        }
        Ok(Stage { folder, has_cccl: cuda_include.join("cccl").is_dir() })
    }

    /// The path of the folder.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Include folders of the source, in order: the folder of the file itself, then the declared ones.
    pub(super) fn own_includes(params: &CompileParams) -> Vec<String> {
        let beside = match params.main.rsplit_once('/') {
            Some((folder, _)) => folder.to_string(),
            None => ".".to_string(),
        };
        let mut folders = vec![beside];
        folders.extend(params.include.iter().map(|f| if f.is_empty() { ".".to_string() } else { f.clone() }));
        let mut seen = std::collections::BTreeSet::new();
        folders.retain(|f| seen.insert(f.clone()));
        folders
    }

    /// Include folders of CUDA.
    pub(super) fn cuda_includes(&self) -> Vec<String> {
        let mut folders = vec![CUDA.to_string()];
        if self.has_cccl {
            folders.push(format!("{CUDA}/cccl"));
        }
        folders
    }
}

/// The definitions as flags, sorted by name.
pub(super) fn defines(params: &CompileParams) -> impl Iterator<Item = String> {
    params.defines.iter().map(|(name, value)| format!("-D{name}={value}"))
}

/// The flags as declared.
///
/// # Errors
/// A flag duplicates another part of the manifest.
pub(super) fn flags(params: &CompileParams) -> Result<&[String], String> {
    let owned = params.flags.iter().find(|flag| {
        OWNED.iter().any(|owned| {
            flag.strip_prefix(owned)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('=') || (*owned == "-I" && !rest.is_empty()))
        })
    });
    match owned {
        Some(flag) => Err(format!("kforge sets the flag `{flag}` itself: use `include`, `std` or the target instead")),
        None => Ok(&params.flags),
    }
}

/// The file to compile, in the tree at `source`.
///
/// # Errors
/// The name leaves the tree, or the file cannot be read.
pub(super) fn main_file(params: &CompileParams, source: &Path) -> Result<(PathBuf, Vec<u8>), String> {
    let name = Path::new(&params.main);
    if name.components().any(|c| !matches!(c, std::path::Component::Normal(_))) {
        return Err(format!("`{}` is not a name within the source tree", params.main));
    }
    let path = source.join(name);
    let bytes = std::fs::read(&path).map_err(|e| format!("could not read `{}`: {e}", params.main))?;
    Ok((path, bytes))
}
