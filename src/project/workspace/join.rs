//! Adds a new package to the members of the enclosing workspace, as cargo does. Knows the root manifest's text; keeps its formatting.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml_edit::{Array, DocumentMut, Item, Value};

use super::find::{MANIFEST, root_above};
use super::generated::Templates;
use super::members;
use kforge_foundation::base::{SourceFile, Witness};
use kforge_types::model::{self, WorkspaceTable};

/// The workspace that encloses a folder.
#[derive(Debug, Clone)]
pub struct EnclosingWorkspace {
    /// Its root manifest.
    pub manifest: PathBuf,
    table: WorkspaceTable,
}

/// The result of joining a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Joined {
    /// The root's globs already include the package.
    Already,
    /// The root excludes the package.
    Excluded,
    /// The package was added under this path.
    Added(String),
}

/// Why a package cannot join a workspace.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The package's folder is not below the root.
    #[error(transparent)]
    NotBelow(#[from] std::path::StripPrefixError),
    /// The package cannot be added to the root manifest.
    #[error("cannot add it to `{}`: {why}", .manifest.display())]
    Manifest {
        /// The root manifest.
        manifest: PathBuf,
        /// The cause.
        #[source]
        why: MemberError,
    },
}

/// Why a member cannot be added to a manifest.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    /// The manifest cannot be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The manifest is not TOML.
    #[error("{}", .0.message())]
    NotToml(#[from] toml_edit::TomlError),
    /// The manifest has no `[workspace]` table.
    #[error("it has no `[workspace]`")]
    NoWorkspace,
    /// `workspace.members` is not a list.
    #[error("its `workspace.members` is not a list")]
    NotList,
}

impl EnclosingWorkspace {
    /// The nearest manifest above `folder` that is a workspace's root.
    pub fn find(folder: &Path) -> Option<Self> {
        let mut table = None;
        let manifest = root_above(&folder.join(MANIFEST), &mut Witness::default(), |path, _| {
            let Ok(text) = std::fs::read_to_string(path) else { return false };
            table = model::parse(&Arc::new(SourceFile { name: String::new(), text })).0.and_then(|m| m.workspace);
            table.is_some()
        })?;
        Some(EnclosingWorkspace { manifest, table: table? })
    }

    /// The names of the workspace's packages. Empty if the workspace has errors.
    pub fn names(&self, templates: &Templates) -> Vec<String> {
        super::load(&self.manifest, templates)
            .0
            .map_or_else(Vec::new, |w| w.members.into_iter().map(|m| m.package.name).collect())
    }

    /// Adds the package in `folder`, whose manifest already exists, unless a glob already includes it or the root excludes it.
    ///
    /// # Errors
    /// The folder is not below the root, or the root manifest cannot be read, edited or written.
    pub fn join(&self, folder: &Path) -> Result<Joined, JoinError> {
        let root = self.manifest.parent().unwrap_or(Path::new("."));
        let own = folder.join(MANIFEST);
        let takes = |table: &WorkspaceTable| {
            members::expand(root, table, &mut Witness::default()).is_ok_and(|e| e.members.contains(&own))
        };
        if takes(&self.table) {
            return Ok(Joined::Already);
        }
        let open = WorkspaceTable { exclude: vec![], ..self.table.clone() };
        let path = folder.strip_prefix(root)?.display().to_string();
        let alone = WorkspaceTable { members: vec![path.clone()], ..self.table.clone() };
        if takes(&open) || !takes(&alone) {
            return Ok(Joined::Excluded);
        }
        let fail = |why: MemberError| JoinError::Manifest { manifest: self.manifest.clone(), why };
        let text = std::fs::read_to_string(&self.manifest).map_err(|e| fail(e.into()))?;
        let text = with_member(&text, &path).map_err(fail)?;
        kforge_foundation::base::files::write_atomically(&self.manifest, text.as_bytes(), false)
            .map_err(|e| fail(e.into()))?;
        Ok(Joined::Added(path))
    }
}

/// The manifest's text with one more member: in its sorted position if the list is sorted, else at the end.
fn with_member(text: &str, path: &str) -> Result<String, MemberError> {
    let mut document: DocumentMut = text.parse()?;
    let table = document.get_mut("workspace").and_then(Item::as_table_like_mut).ok_or(MemberError::NoWorkspace)?;
    let members = table.entry("members").or_insert(Item::Value(Value::Array(Array::new())));
    let members = members.as_array_mut().ok_or(MemberError::NotList)?;
    let listed: Vec<&str> = members.iter().filter_map(Value::as_str).collect();
    let at = if listed.is_sorted() { listed.partition_point(|m| *m < path) } else { listed.len() };
    let many = members.iter().next().and_then(|v| v.decor().prefix()).and_then(|p| p.as_str()).map(str::to_string);
    match many.filter(|prefix| prefix.contains('\n')) {
        Some(prefix) => members.insert_formatted(at, Value::from(path).decorated(prefix, "")),
        None => {
            members.insert(at, path);
            members.fmt();
        }
    }
    Ok(document.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_goes_where_it_belongs_and_the_rest_stays_as_it_was() {
        let edited = |text: &str| with_member(text, "m").unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(
            edited("[workspace]\nmembers = [\"a\", \"z\"] # all\n"),
            "[workspace]\nmembers = [\"a\", \"m\", \"z\"] # all\n"
        );
        assert_eq!(edited("[workspace] # here\n"), "[workspace] # here\nmembers = [\"m\"]\n");
        assert_eq!(
            edited("[workspace]\nmembers = [\n    \"b\",\n    \"a\",\n]\n"),
            "[workspace]\nmembers = [\n    \"b\",\n    \"a\",\n    \"m\",\n]\n"
        );
    }

    #[test]
    fn a_package_joins_once_and_never_against_the_roots_word() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let package = |name: &str| format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\n");
        write("kernel.toml", "[workspace]\nmembers = [\"globbed/*\"]\nexclude = [\"old\"]\n");
        for name in ["globbed/a", "old", "new"] {
            write(&format!("{name}/kernel.toml"), &package(&name.replace('/', "-")));
        }
        let join = |name: &str| {
            EnclosingWorkspace::find(&dir.path().join(name)).unwrap().join(&dir.path().join(name)).unwrap()
        };
        assert_eq!(join("globbed/a"), Joined::Already);
        assert_eq!(join("old"), Joined::Excluded);
        assert_eq!(join("new"), Joined::Added("new".into()));
        assert_eq!(join("new"), Joined::Already);
        assert_eq!(EnclosingWorkspace::find(dir.path()).map(|a| a.manifest), None);
        let around = EnclosingWorkspace::find(&dir.path().join("new")).unwrap();
        assert_eq!(around.names(&crate::workspace::generated::NONE), ["globbed-a", "new"]);
    }
}
