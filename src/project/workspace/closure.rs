//! Finds every file that a source can reach, resolving includes as a compiler does: quoted includes from the includer's folder, then from the include folders
//! in order. A header that is not found belongs to the toolchain. Every build resolves includes again, so that it notices a new header that shadows another.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::find::tidy;
use super::includes::Scan;
use kforge_foundation::base::Digest;

/// File extensions of headers, for computed includes.
const HEADERS: [&str; 8] = ["h", "cuh", "hpp", "hh", "hxx", "inl", "inc", "cuinl"];

/// A folder on disk and the name it has in the staged tree: the package itself (``), or a dependency (`@common`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The folder's name in the tree, empty for the package.
    pub name: String,
    /// The folder on disk.
    pub folder: PathBuf,
}

/// Files by their names in the tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Closure {
    /// Each file and its digest.
    pub files: BTreeMap<String, Digest>,
    /// Each file and its path on disk.
    pub paths: BTreeMap<String, PathBuf>,
    /// Each file and the scan of its text.
    pub scans: BTreeMap<String, Arc<Scan>>,
}

impl Closure {
    /// Whether the source can use a macro of that name.
    pub fn sees(&self, name: &str) -> bool {
        self.scans.values().any(|s| s.pastes || s.identifiers.binary_search_by(|i| i.as_str().cmp(name)).is_ok())
    }

    /// The first file whose preprocessor directives depend on a macro of that name.
    pub fn asks(&self, name: &str) -> Option<&str> {
        let asks = |s: &Scan| s.directives.binary_search_by(|i| i.as_str().cmp(name)).is_ok();
        self.scans.iter().find(|(_, scan)| asks(scan)).map(|(file, _)| file.as_str())
    }

    /// Whether a comment that moves lines changes the binary.
    pub fn bakes_lines(&self) -> bool {
        self.scans.values().any(|s| s.bakes_lines)
    }
}

/// Reads and scans files: through the stat cache and the journal in a build, directly in a test.
pub trait Reader {
    /// The digest and the scan of a file; none if the file does not exist.
    fn read(&mut self, path: &Path) -> io::Result<Option<(Digest, Arc<Scan>)>>;

    /// Whether there is a file at `path`.
    fn is_file(&mut self, path: &Path) -> bool {
        path.is_file()
    }

    /// Called for each folder whose entries affect the closure, because an include is computed.
    fn listed(&mut self, folder: &Path) {
        let _ = folder;
    }
}

/// Why a closure cannot be determined.
#[derive(Debug, thiserror::Error)]
pub enum ClosureError {
    /// The source itself does not exist.
    #[error("`{0}` does not exist")]
    Missing(String),
    /// An include leaves the package and its dependencies.
    #[error("`{from}` includes `{name}`, which lies outside the package and its dependencies")]
    Outside {
        /// The file with the include.
        from: String,
        /// The included name.
        name: String,
    },
    /// A file cannot be read.
    #[error("cannot read `{0}`: {1}")]
    Io(String, #[source] io::Error),
}

/// Finds every file that `main` (a name in the package) can reach. `include` lists the include folders by their names in the tree, in order.
pub fn closure(
    main: &str,
    include: &[String],
    mounts: &[Mount],
    reader: &mut dyn Reader,
) -> Result<Closure, ClosureError> {
    let mut found = Closure::default();
    let mut open = vec![main.to_string()];
    let path_of = |name: &str| mounts.iter().rev().find_map(|m| place(m, name));
    while let Some(name) = open.pop() {
        if found.files.contains_key(&name) {
            continue;
        }
        let path = path_of(&name).ok_or_else(|| ClosureError::Missing(name.clone()))?;
        let read = reader.read(&path).map_err(|e| ClosureError::Io(name.clone(), e))?;
        let Some((digest, scan)) = read else { return Err(ClosureError::Missing(name)) };
        found.files.insert(name.clone(), digest);
        found.paths.insert(name.clone(), path);
        found.scans.insert(name.clone(), Arc::clone(&scan));
        let folder = name.rsplit_once('/').map_or("", |(f, _)| f).to_string();
        let own = std::iter::once(&folder);
        for (wanted, folders) in scan
            .quoted
            .iter()
            .map(|w| (w, own.clone().chain(include).collect::<Vec<_>>()))
            .chain(scan.angled.iter().map(|w| (w, include.iter().collect())))
        {
            for folder in folders {
                let candidate = join(folder, wanted);
                let Some(candidate) = candidate else {
                    // The path leaves the tree. This is an error only if a file exists there.
                    if path_of(folder).is_some_and(|f| reader.is_file(&tidy(&f.join(wanted)))) {
                        return Err(ClosureError::Outside { from: name, name: wanted.clone() });
                    }
                    continue;
                };
                if path_of(&candidate).is_some_and(|p| reader.is_file(&p)) {
                    open.push(candidate);
                    break;
                }
            }
        }
        if scan.computed {
            for folder in std::iter::once(&folder).chain(include) {
                let Some(path) = path_of(folder) else { continue };
                open.extend(
                    headers_below(&path, reader)
                        .map_err(|e| ClosureError::Io(folder.clone(), e))?
                        .into_iter()
                        .map(|h| join(folder, &h).unwrap_or(h)),
                );
            }
        }
    }
    Ok(found)
}

/// The path on disk of the tree's `name`, if `name` belongs to this mount.
fn place(mount: &Mount, name: &str) -> Option<PathBuf> {
    if mount.name.is_empty() {
        return (!name.starts_with('@')).then(|| mount.folder.join(name));
    }
    let rest = name.strip_prefix(&mount.name)?;
    if rest.is_empty() { Some(mount.folder.clone()) } else { rest.strip_prefix('/').map(|r| mount.folder.join(r)) }
}

/// `folder/name` with dots resolved; none if it leaves the tree or its mount.
fn join(folder: &str, name: &str) -> Option<String> {
    if name.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = folder.split('/').filter(|p| !p.is_empty() && *p != ".").collect();
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if parts.last().is_none_or(|p| p.starts_with('@')) {
                    return None;
                }
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Headers below a folder, by relative name, sorted. Hidden folders and `target` are left out.
fn headers_below(folder: &Path, reader: &mut dyn Reader) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    let skip = |e: &walkdir::DirEntry| {
        e.depth() > 0
            && e.file_name().to_str().is_none_or(|n| n.starts_with('.') || (n == "target" && e.file_type().is_dir()))
    };
    for entry in walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().filter_entry(|e| !skip(e)) {
        let entry = entry.map_err(io::Error::from)?;
        if entry.file_type().is_dir() {
            reader.listed(entry.path());
        }
        let header = entry.path().extension().and_then(|e| e.to_str()).is_some_and(|e| HEADERS.contains(&e));
        if entry.file_type().is_file()
            && header
            && let Ok(relative) = entry.path().strip_prefix(folder)
            && let Some(name) = relative.to_str()
        {
            names.push(name.to_string());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_foundation::base::testing::tree;

    struct Plain;

    impl Reader for Plain {
        fn read(&mut self, path: &Path) -> io::Result<Option<(Digest, Arc<Scan>)>> {
            match std::fs::read_to_string(path) {
                Ok(text) => Ok(Some((Digest::of(text.as_bytes()), Arc::new(super::super::includes::scan(&text))))),
                Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(e) => Err(e),
            }
        }
    }

    fn names(dir: &tempfile::TempDir, include: &[&str]) -> Result<Vec<String>, ClosureError> {
        let mounts = [
            Mount { name: String::new(), folder: dir.path().join("p") },
            Mount { name: "@common".into(), folder: dir.path().join("common") },
        ];
        let include: Vec<String> = include.iter().map(|s| s.to_string()).collect();
        closure("k.cu", &include, &mounts, &mut Plain).map(|c| c.files.into_keys().collect())
    }

    #[test]
    fn includes_are_followed_through_packages() {
        let dir = tree(&[
            ("p/k.cu", "#include \"sub/a.h\"\n#include <shared.h>\n#include <cuda_fp16.h>\n"),
            ("p/sub/a.h", "#include \"b.h\"\n#include \"../top.h\"\n"),
            ("p/sub/b.h", ""),
            ("p/top.h", ""),
            ("p/unused.h", ""),
            ("common/shared.h", "#include \"deep/c.h\"\n"),
            ("common/deep/c.h", ""),
        ]);
        assert_eq!(
            names(&dir, &["@common"]).unwrap(),
            ["@common/deep/c.h", "@common/shared.h", "k.cu", "sub/a.h", "sub/b.h", "top.h"]
        );
    }

    #[test]
    fn a_new_header_that_shadows_another_is_found_first() {
        let dir = tree(&[("p/k.cu", "#include <x.h>\n"), ("p/inc2/x.h", ""), ("common/y.h", "")]);
        assert_eq!(names(&dir, &["inc1", "inc2"]).unwrap(), ["inc2/x.h", "k.cu"]);
        std::fs::create_dir(dir.path().join("p/inc1")).unwrap();
        std::fs::write(dir.path().join("p/inc1/x.h"), "").unwrap();
        assert_eq!(names(&dir, &["inc1", "inc2"]).unwrap(), ["inc1/x.h", "k.cu"]);
    }

    #[test]
    fn a_computed_include_brings_every_header_of_the_include_folders() {
        let dir = tree(&[
            ("p/k.cu", "#include PICK\n"),
            ("p/a.h", ""),
            ("p/inc/b.cuh", ""),
            ("p/c.cpp", ""),
            ("common/d.h", ""),
        ]);
        assert_eq!(names(&dir, &["inc"]).unwrap(), ["a.h", "inc/b.cuh", "k.cu"]);
    }

    #[test]
    fn leaving_the_package_is_an_error_only_where_a_file_is_there() {
        let dir = tree(&[("p/k.cu", "#include \"../other/x.h\"\n#include \"../no/y.h\"\n"), ("other/x.h", "")]);
        assert!(matches!(names(&dir, &[]), Err(ClosureError::Outside { .. })));
        std::fs::remove_file(dir.path().join("other/x.h")).unwrap();
        assert_eq!(names(&dir, &[]).unwrap(), ["k.cu"]);
    }

    #[test]
    fn the_file_whose_directives_ask_a_name_is_found() {
        let dir = tree(&[("p/k.cu", "#include \"a.h\"\nint VEC;\n"), ("p/a.h", "#if VEC == 3\n#endif\nint TILE;\n")]);
        let mount = Mount { name: String::new(), folder: dir.path().join("p") };
        let found = closure("k.cu", &[], &[mount], &mut Plain).unwrap();
        assert_eq!((found.asks("VEC"), found.asks("TILE")), (Some("a.h"), None));
    }

    #[test]
    fn a_missing_source_is_named() {
        let dir = tree(&[("p/x", "")]);
        assert!(matches!(names(&dir, &[]), Err(ClosureError::Missing(n)) if n == "k.cu"));
    }
}
