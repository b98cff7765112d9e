//! The folder in which a compiler works, and the file names that it sees. Knows how to lay out trees for a compiler; does not run one.
//!
//! A compiler puts file names into its output (`assert`, `__FILE__`), so it must see the same names on every machine: the files of the source tree by their
//! package-relative names, CUDA's headers below `@cuda`, the stand-ins below `@shim`. The folder holds a link for each entry of the tree's root and for each of
//! these two, and is the compiler's working directory. A compiler stores the path of that directory, so its length moves what the compiler allocates next, and
//! a compiler that orders things by their addresses then makes other machine code. Therefore the path has a fixed length.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use kforge_harness::trees::{self, Replaced};
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

/// The length of a working directory's path, or that of a longer one is a multiple of it.
const LENGTH: usize = 256;
/// The length of a folder's name that only lengthens the path.
const NAME: usize = 60;

/// A staged tree, with texts in place of some of its files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Given<'a> {
    /// The tree.
    pub(super) folder: &'a Path,
    /// Texts that take the place of files or are added, by their names in the tree. If there are any, the folder [`ABSENT`] is searched last.
    pub(super) replaced: &'a Replaced,
}

/// A folder that is removed when it is dropped.
pub(super) struct Stage {
    /// What is removed.
    _folder: TempDir,
    /// The compiler's working directory, in that folder.
    path: PathBuf,
    has_cccl: bool,
}

/// A folder below `folder` whose path has a length that is a multiple of [`LENGTH`].
fn lengthened(folder: &Path) -> PathBuf {
    // Each name follows a separator, and the last name has at least one character.
    let mut missing = (LENGTH - (folder.as_os_str().len() + 2) % LENGTH) % LENGTH + 2;
    let mut path = folder.to_path_buf();
    while missing > NAME + 3 {
        path.push("-".repeat(NAME));
        missing -= NAME + 1;
    }
    path.push("-".repeat(missing - 1));
    path
}

impl Stage {
    /// Lays out a tree, CUDA's headers and the stand-ins in a new folder below `scratch`.
    pub(super) fn new(source: Given<'_>, cuda_include: &Path, shim: Option<&Path>, scratch: &Path) -> io::Result<Self> {
        // Without links: a compiler asks the system for the path.
        let folder = tempfile::Builder::new().prefix(".compile-").tempdir_in(scratch.canonicalize()?)?;
        let path = lengthened(folder.path());
        std::fs::create_dir_all(&path)?;
        if source.replaced.is_empty() {
            for entry in std::fs::read_dir(source.folder)? {
                let entry = entry?;
                symlink(std::path::absolute(entry.path())?, path.join(entry.file_name()))?;
            }
        } else {
            trees::lay_out(source.folder, source.replaced, &path)?;
        }
        symlink(std::path::absolute(cuda_include)?, path.join(CUDA))?;
        if let Some(shim) = shim {
            symlink(std::path::absolute(shim)?, path.join(SHIM))?;
        }
        Ok(Stage { _folder: folder, path, has_cccl: cuda_include.join("cccl").is_dir() })
    }

    /// The path of the folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
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

/// The file to compile in a tree: its path, if it was not replaced, and its text.
///
/// # Errors
/// The name leaves the tree, or the file cannot be read.
pub(super) fn main_file(params: &CompileParams, source: Given<'_>) -> Result<(Option<PathBuf>, Vec<u8>), String> {
    let name = Path::new(&params.main);
    if name.components().any(|c| !matches!(c, std::path::Component::Normal(_))) {
        return Err(format!("`{}` is not a name within the source tree", params.main));
    }
    if let Some(text) = source.replaced.get(&params.main) {
        return Ok((None, text.clone().into_bytes()));
    }
    let path = source.folder.join(name);
    let bytes = std::fs::read(&path).map_err(|e| format!("could not read `{}`: {e}", params.main))?;
    Ok((Some(path), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn working_directories_have_paths_of_one_length() {
        for length in 1..300 {
            let folder = PathBuf::from(format!("/{}", "x".repeat(length)));
            let path = lengthened(&folder);
            let whole = path.as_os_str().len();
            assert_eq!(whole % LENGTH, 0, "{length}: {}", path.display());
            assert!(whole <= (length + 3).next_multiple_of(LENGTH), "{length}: {whole}");
            assert!(path.starts_with(&folder) && path != folder);
            assert!(path.strip_prefix(&folder).unwrap().iter().all(|name| name.len() < 256));
        }
    }
}
