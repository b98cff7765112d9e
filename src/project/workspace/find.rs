//! Finds the manifest of the current package and the root of its workspace. Knows folders; reads a manifest only to check whether it is a workspace's root.

use std::path::{Component, Path, PathBuf};

use kforge_foundation::base::{Diagnostic, Witness};

/// The file every package and workspace has.
pub const MANIFEST: &str = "kernel.toml";

/// The manifest in `cwd` or its nearest ancestor that has one.
pub fn manifest_at(cwd: &Path) -> Result<PathBuf, Diagnostic> {
    cwd.ancestors().map(|d| d.join(MANIFEST)).find(|p| p.is_file()).ok_or_else(|| {
        Diagnostic::error(
            "workspace.no-manifest",
            format!("no `{MANIFEST}` in `{}` or any folder above it", cwd.display()),
        )
        .hint("run `kforge init` to create one here, or pass one with `--manifest-path`")
    })
}

/// The manifest that `--manifest-path` names: a file, or a folder that holds one.
pub fn manifest_named(path: &Path) -> Result<PathBuf, Diagnostic> {
    let file = if path.is_dir() { path.join(MANIFEST) } else { path.to_path_buf() };
    if file.is_file() {
        Ok(file)
    } else {
        Err(Diagnostic::error("workspace.no-manifest", format!("`{}` is not a file", file.display()))
            .expected(format!("the path of a `{MANIFEST}`")))
    }
}

/// The nearest manifest above `manifest` for which `claims` holds: the root of `manifest`'s workspace.
pub fn root_above(
    manifest: &Path,
    witness: &mut Witness,
    mut claims: impl FnMut(&Path, &mut Witness) -> bool,
) -> Option<PathBuf> {
    let above = manifest.parent()?.ancestors().skip(1).map(|d| d.join(MANIFEST));
    above.into_iter().find(|p| witness.is_file(p) && claims(p, witness))
}

/// `path` with `.` and `..` resolved lexically, without accessing the file system.
pub fn tidy(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(out.components().next_back(), Some(Component::Normal(_))) => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_manifest_is_found_and_a_missing_one_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("w/p/src")).unwrap();
        std::fs::write(dir.path().join("w/kernel.toml"), "").unwrap();
        std::fs::write(dir.path().join("w/p/kernel.toml"), "").unwrap();
        let found = manifest_at(&dir.path().join("w/p/src")).unwrap();
        assert_eq!(found, dir.path().join("w/p/kernel.toml"));
        let root_above = |claims| {
            let mut witness = Witness::default();
            (root_above(&found, &mut witness, |_, _| claims), witness)
        };
        let root = dir.path().join("w/kernel.toml");
        let (claimed, seen) = root_above(true);
        assert_eq!((claimed, seen.files), (Some(root.clone()), [root].into()));
        let (claimed, seen) = root_above(false);
        assert_eq!(claimed, None);
        assert!(seen.absent.contains(&dir.path().join(MANIFEST)), "one that comes above may claim it");
        assert_eq!(manifest_named(&dir.path().join("w")).unwrap(), dir.path().join("w/kernel.toml"));
        assert_eq!(manifest_named(&dir.path().join("x")).unwrap_err().code, "workspace.no-manifest");
    }

    #[test]
    fn tidy_resolves_dots() {
        assert_eq!(tidy(Path::new("a/./b/../c")), Path::new("a/c"));
        assert_eq!(tidy(Path::new("../a")), Path::new("../a"));
    }
}
