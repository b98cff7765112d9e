//! Loads the workspace that a manifest belongs to: its root, its members, what each member inherits, its lockfile. Knows files and manifests; does not plan.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;

use super::find::{MANIFEST, root_above, tidy};
use super::generated::{self, Templates};
use super::lockfile::{FILE_NAME, Lockfile, LockfileError};
use super::members;
use kforge_foundation::base::{Diagnostic, SourceFile, Witness};
use kforge_types::model::{self, Manifest, Package, UNNAMED};

/// A package and its folder.
#[derive(Debug, Clone)]
pub struct Member {
    /// The package.
    pub package: Package,
    /// Its folder, absolute.
    pub folder: PathBuf,
}

/// A workspace, or a single package, which is a workspace of one.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// The absolute folder of the root manifest; the lockfile and `target` are here.
    pub root: PathBuf,
    /// Packages in order of their folders.
    pub members: Vec<Member>,
    /// Positions of the members to which commands in the root apply.
    pub default: Vec<usize>,
    /// The manifest that was loaded.
    pub manifest: PathBuf,
    /// The lockfile; empty if there is none.
    pub lock: Lockfile,
    /// Whether there is a lockfile.
    pub locked: bool,
    /// The file system queries that loading the workspace made, except for the lockfile.
    pub witness: Witness,
}

impl Workspace {
    /// Reads the lockfile again, because another command may have written it.
    ///
    /// # Errors
    /// Same as [`Lockfile::read`].
    pub fn read_lock(&mut self) -> Result<(), LockfileError> {
        self.locked = self.root.join(FILE_NAME).exists();
        self.lock = Lockfile::read(&self.root)?;
        Ok(())
    }
}

/// Loads the workspace of `manifest`. `templates` generates kernels. All errors of all manifests are returned together; with any error, the workspace is none.
pub fn load(manifest: &Path, templates: &Templates) -> (Option<Workspace>, Vec<Diagnostic>) {
    let mut found = Vec::new();
    let manifest = tidy(&std::path::absolute(manifest).unwrap_or_else(|_| manifest.to_path_buf()));
    let mut witness = Witness::default();
    let own = read(&manifest, &manifest, &mut found);
    witness.saw(&manifest, true);
    let root_path = root_of(&manifest, own.as_ref(), &mut witness);
    let Some(folder) = root_path.parent().map(Path::to_path_buf) else { return (None, found) };
    let root = if root_path == manifest { own.clone() } else { read(&root_path, &root_path, &mut found) };
    // kforge reads a manifest with errors as far as possible, so that errors across its tables are reported together with the others.
    let mut manifests: Vec<(PathBuf, Manifest)> = Vec::new();
    let mut default = None;
    if let Some(root) = &root {
        if root.package.is_some() {
            manifests.push((root_path.clone(), root.clone()));
        }
        if let Some(table) = &root.workspace {
            match members::expand(&folder, table, &mut witness) {
                Ok(expanded) => {
                    let one = |path: &PathBuf| {
                        let mut said = vec![];
                        (read(path, &root_path, &mut said).map(|member| (path.clone(), member)), said)
                    };
                    let members: Vec<_> = expanded.members.par_iter().map(one).collect();
                    for (member, said) in members {
                        manifests.extend(member);
                        found.extend(said);
                    }
                    default = Some(expanded.default);
                }
                Err(diagnostics) => found.extend(diagnostics),
            }
        }
    }
    let root = root.filter(|r| r.workspace.is_some());
    let mut loaded = Vec::new();
    for (path, manifest) in &mut manifests {
        let folder = path.parent().unwrap_or(&folder);
        found.extend(generated::complete(manifest, folder, templates, &mut witness));
    }
    let inherited: Vec<_> = manifests.par_iter().map(|(_, manifest)| model::inherit(manifest, root.as_ref())).collect();
    for ((path, _), (package, diagnostics)) in manifests.iter().zip(inherited) {
        found.extend(diagnostics);
        if let (Some(package), Some(folder)) = (package, path.parent()) {
            loaded.push(Member { package, folder: folder.to_path_buf() });
        }
    }
    check(&loaded, &mut found);
    // Builds read these files when they start. If manifests have errors, missing files are reported together with those errors.
    if found.iter().any(|d| d.severity == kforge_foundation::base::Severity::Error) {
        found.extend(loaded.iter().flat_map(missing));
    }
    let mut said = Vec::new();
    found.retain(|d: &Diagnostic| {
        let new = !said.contains(d);
        new.then(|| said.push(d.clone()));
        new
    });
    let locked = folder.join(FILE_NAME).exists();
    let lock = Lockfile::read(&folder).unwrap_or_else(|e| {
        found.push(
            Diagnostic::error("workspace.lockfile", e.to_string())
                .hint("delete kforge.lock to create a new one, or restore it from version control"),
        );
        Lockfile::default()
    });
    if found.iter().any(|d| d.severity == kforge_foundation::base::Severity::Error) {
        return (None, found);
    }
    let is_default = |m: &Member| default.as_ref().is_none_or(|d| d.is_empty() || d.contains(&m.folder.join(MANIFEST)));
    let default = loaded.iter().enumerate().filter(|(_, m)| is_default(m)).map(|(i, _)| i).collect();
    (Some(Workspace { root: folder, members: loaded, default, manifest, lock, locked, witness }), found)
}

/// The manifest of the root of a manifest's workspace, which may be itself. `own` is its contents, if it can be read.
fn root_of(manifest: &Path, own: Option<&Manifest>, witness: &mut Witness) -> PathBuf {
    let above = match own {
        Some(own) if own.workspace.is_some() => None,
        _ => root_above(manifest, witness, |path, witness| claims(path, manifest, witness)),
    };
    above.unwrap_or_else(|| manifest.to_path_buf())
}

/// The folder of the root of a manifest's workspace, also if manifests have errors. Names of files in diagnostics of [`load`] are relative to it.
pub fn root_folder(manifest: &Path) -> PathBuf {
    let manifest = tidy(&std::path::absolute(manifest).unwrap_or_else(|_| manifest.to_path_buf()));
    let own = read(&manifest, &manifest, &mut vec![]);
    let root = root_of(&manifest, own.as_ref(), &mut Witness::default());
    root.parent().map(Path::to_path_buf).unwrap_or_default()
}

/// The missing sources of a member's kernels.
fn missing(member: &Member) -> Vec<Diagnostic> {
    let written =
        |k: &&model::Kernel| !k.source.is_empty() && k.made().is_none() && !k.is_unstarted() && !k.is_ungenerated();
    let is_gone = |k: &&model::Kernel| !member.folder.join(&k.source).exists();
    let kernels = member.package.kernels.iter().filter(written).filter(is_gone);
    kernels.map(|kernel| no_source(&kernel.source_place, &kernel.source)).collect()
}

/// The error for a missing source of a kernel.
pub fn no_source(place: &model::Place, source: &str) -> Diagnostic {
    let error = place.error("package.source", format!("`{source}` does not exist"));
    error.expected("a file of the package, its path relative to kernel.toml")
}

/// Reads and parses a manifest and reports its errors; none if it cannot be read or is not TOML.
fn read(path: &Path, root: &Path, found: &mut Vec<Diagnostic>) -> Option<Manifest> {
    let folder = root.parent().unwrap_or(root);
    let name = path.strip_prefix(folder).unwrap_or(path).display().to_string();
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            found.push(Diagnostic::error("workspace.unreadable", format!("cannot read `{}`: {error}", path.display())));
            return None;
        }
    };
    let file = Arc::new(SourceFile { name, text });
    let (manifest, diagnostics) = model::parse(&file);
    // A misspelled table may be the missing one. It has its own error.
    if diagnostics.is_empty() && manifest.as_ref().is_some_and(|m| m.package.is_none() && m.workspace.is_none()) {
        found.push(
            Diagnostic::error("manifest.no-package", "this manifest declares neither a package nor a workspace")
                .at(&file, 0..0, "")
                .expected("a [package] table with a name, or a [workspace] table with members")
                .hint("a minimal package is `[package]` and, on the next line, `name = \"norms\"`; `kforge new` creates one that builds"),
        );
    }
    found.extend(diagnostics);
    manifest
}

/// Whether a manifest is a workspace's root with `member` among its members. A root that cannot be parsed counts as one if it contains `[workspace]`, so that
/// its errors are shown and its members are not built without it.
fn claims(root: &Path, member: &Path, witness: &mut Witness) -> bool {
    let Ok(text) = std::fs::read_to_string(root) else { return false };
    let (manifest, _) = model::parse(&Arc::new(SourceFile { name: String::new(), text }));
    let (Some(table), Some(folder)) = (manifest.and_then(|m| m.workspace), root.parent()) else { return false };
    members::expand(folder, &table, witness).is_ok_and(|e| e.members.iter().any(|m| m == member))
}

/// Checks across packages.
fn check(members: &[Member], found: &mut Vec<Diagnostic>) {
    for (i, member) in members.iter().enumerate() {
        let name = &member.package.name;
        let same = |m: &&Member| m.package.name == *name && *name != UNNAMED;
        if let Some(other) = members[..i].iter().find(same) {
            found.push(
                Diagnostic::error("workspace.same-name", format!("two packages are named `{name}`"))
                    .note(format!("in `{}` and `{}`", other.folder.display(), member.folder.display()))
                    .hint("rename one of them in its [package] table"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_foundation::base::testing::tree;

    fn load(manifest: &Path) -> (Option<Workspace>, Vec<Diagnostic>) {
        super::load(manifest, &generated::NONE)
    }

    const PACKAGE: &str = "[package]\nname = \"NAME\"\nversion = \"0.1.0\"\n";

    fn package(name: &str) -> String {
        PACKAGE.replace("NAME", name)
    }

    fn names(w: &Workspace) -> Vec<&str> {
        w.members.iter().map(|m| m.package.name.as_str()).collect()
    }

    #[test]
    fn members_are_found_from_the_root_and_from_a_member() {
        let root = "[workspace]\nmembers = [\"kernels/*\"]\nexclude = [\"kernels/old\"]\n";
        let dir = tree(&[
            ("kernel.toml", root),
            ("kernels/a/kernel.toml", &package("a")),
            ("kernels/b/kernel.toml", &package("b")),
            ("kernels/old/kernel.toml", &package("old")),
            ("kernels/notes.txt", ""),
        ]);
        for from in ["kernel.toml", "kernels/b/kernel.toml"] {
            let (w, d) = load(&dir.path().join(from));
            let w = w.unwrap_or_else(|| panic!("{d:?}"));
            assert_eq!(names(&w), ["a", "b"]);
            assert_eq!(w.root, dir.path());
        }
        let (w, _) = load(&dir.path().join("kernels/old/kernel.toml"));
        assert_eq!(names(&w.unwrap()), ["old"]);
    }

    #[test]
    fn all_that_decides_who_the_members_are_is_witnessed() {
        let dir = tree(&[
            ("kernel.toml", "[workspace]\nmembers = [\"kernels/*\"]\n"),
            ("kernels/a/kernel.toml", &package("a")),
            ("kernels/empty/notes.txt", ""),
        ]);
        let (w, _) = load(&dir.path().join("kernels/a/kernel.toml"));
        let seen = w.unwrap().witness;
        let at = |name: &str| dir.path().join(name);
        assert_eq!(seen.files, [at("kernel.toml"), at("kernels/a/kernel.toml")].into());
        // A new manifest may appear between the member and its root, or in a folder that matches; a new folder may appear beside the members.
        assert!(
            seen.absent.is_superset(&[at("kernels/kernel.toml"), at("kernels/empty/kernel.toml")].into()),
            "{seen:?}"
        );
        assert_eq!(seen.folders, [at(""), at("kernels")].map(|p| p.components().collect()).into());
    }

    #[test]
    fn errors_of_all_members_come_at_once() {
        let dir = tree(&[
            ("kernel.toml", "[workspace]\nmembers = [\"a\", \"b\"]\n"),
            ("a/kernel.toml", "[package]\nnam = \"a\"\n"),
            ("b/kernel.toml", "[package]\nname = \"b\"\nversio = \"1\"\n"),
        ]);
        let (w, d) = load(&dir.path().join("kernel.toml"));
        assert!(w.is_none());
        let files: std::collections::BTreeSet<_> =
            d.iter().filter_map(|d| d.position().map(|p| p.0.name.clone())).collect();
        assert_eq!(files.into_iter().collect::<Vec<_>>(), ["a/kernel.toml", "b/kernel.toml"]);
    }

    #[test]
    fn two_packages_of_one_name_and_a_missing_member_are_errors() {
        let dir = tree(&[
            ("kernel.toml", "[workspace]\nmembers = [\"a\", \"b\"]\n"),
            ("a/kernel.toml", &package("x")),
            ("b/kernel.toml", &package("x")),
        ]);
        assert!(load(&dir.path().join("kernel.toml")).1.iter().any(|d| d.code == "workspace.same-name"));
        let dir = tree(&[("kernel.toml", "[workspace]\nmembers = [\"gone\"]\n")]);
        assert!(load(&dir.path().join("kernel.toml")).1.iter().any(|d| d.code == "workspace.no-member"));
    }

    #[test]
    fn errors_within_tables_and_across_them_come_together() {
        let text = "[package]\nname = \"a\"\nversio = \"1\"\n[operator.o]\ndims = [\"n\"]\nreference = \"builtin:sum\"\n\
                    outputs.y = { dtype = \"f32\", shape = [\"n\"] }\n[operator.o.shapes]\ns = { n = 1 }\n\
                    [kernel.k]\noperator = \"oo\"\nsource = \"k.cu\"\n[[kernel.k.launch]]\nentry = \"k\"\ngrid = [1]\nblock = [1]\nargs = [\"y\"]\n";
        let dir = tree(&[("kernel.toml", text)]);
        let (w, d) = load(&dir.path().join("kernel.toml"));
        assert!(w.is_none());
        let codes: Vec<&str> = d.iter().map(|d| d.code).collect();
        assert_eq!(codes, ["manifest.unknown-key", "manifest.unknown-operator", "package.source"]);
    }

    #[test]
    fn a_manifest_of_nothing_says_what_it_must_hold() {
        for text in ["", "# nothing yet\n", "[targets.cpu]\n"] {
            let dir = tree(&[("kernel.toml", text)]);
            let (w, d) = load(&dir.path().join("kernel.toml"));
            assert!(w.is_none());
            let [one] = d.as_slice() else { panic!("{d:?}") };
            assert_eq!(
                (one.code, one.position().map(|p| (p.0.name.as_str(), p.1, p.2))),
                ("manifest.no-package", Some(("kernel.toml", 1, 1)))
            );
            assert!(one.hints[0].contains("name = \"norms\""), "{one:?}");
        }
        // Only the manifest's own error is reported.
        let dir = tree(&[("kernel.toml", "[pakage]\nname = \"a\"\n")]);
        let codes: Vec<&str> = load(&dir.path().join("kernel.toml")).1.iter().map(|d| d.code).collect();
        assert_eq!(codes, ["manifest.unknown-key"]);
    }

    #[test]
    fn two_packages_without_a_name_have_not_the_same_one() {
        let dir = tree(&[
            ("kernel.toml", "[workspace]\nmembers = [\"a\", \"b\"]\n"),
            ("a/kernel.toml", "[package]\n"),
            ("b/kernel.toml", "[package]\n"),
        ]);
        let codes: Vec<&str> = load(&dir.path().join("kernel.toml")).1.iter().map(|d| d.code).collect();
        assert_eq!(codes, ["manifest.missing-key"; 2]);
    }

    #[test]
    fn a_manifest_for_a_newer_kforge_is_refused_once_and_where_it_says_so() {
        let dir = tree(&[("kernel.toml", "[package]\nname = \"a\"\nkforge = \"99.0\"\n")]);
        let (w, d) = load(&dir.path().join("kernel.toml"));
        assert!(w.is_none());
        assert_eq!(
            d.iter().map(|d| (d.code, d.position().map(|p| p.1))).collect::<Vec<_>>(),
            [("manifest.kforge", Some(3))]
        );
    }

    #[test]
    fn a_source_that_is_missing_is_said_with_what_else_is_wrong() {
        let wrong = "[targets.cpu]\n[operator.o]\ndims = [\"n\"]\ninputs.x = { dtype = \"f32\", shape = [\"n\"] }\n\
                     outputs.y = { dtype = \"f32\", shape = [\"n\"] }\nreference = \"builtin:copy\"\nshapes.s = { n = 1 }\n\
                     [kernel.k]\noperator = \"o\"\nsource = \"gone.cu\"\n\
                     launch = [{ entry = \"k\", grid = [\"m\"], block = [1], args = [\"x\", \"y\"] }]\n";
        let dir = tree(&[("kernel.toml", &format!("{}{wrong}", package("a")))]);
        let codes = |d: &[Diagnostic]| d.iter().map(|d| d.code).collect::<Vec<_>>();
        let (none, found) = load(&dir.path().join("kernel.toml"));
        assert!(none.is_none());
        assert_eq!(codes(&found), ["manifest.unknown-name", "package.source"]);
        std::fs::write(dir.path().join("gone.cu"), "").unwrap();
        assert_eq!(codes(&load(&dir.path().join("kernel.toml")).1), ["manifest.unknown-name"]);
    }
}
