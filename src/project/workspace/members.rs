//! Finds the members of a workspace by its globs. Knows folders; does not read manifests.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::find::{MANIFEST, tidy};
use kforge_foundation::base::{Diagnostic, Witness};
use kforge_types::model::WorkspaceTable;

/// The manifests of members.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Expanded {
    /// The manifests of all members, sorted.
    pub members: Vec<PathBuf>,
    /// The manifests of the members to which commands in the root apply; empty for all.
    pub default: Vec<PathBuf>,
}

/// Expands the globs of a workspace's table. `witness` records the folders that determined the result, even in case of errors.
pub(super) fn expand(root: &Path, table: &WorkspaceTable, witness: &mut Witness) -> Result<Expanded, Vec<Diagnostic>> {
    let mut wrong = Vec::new();
    let mut members = Vec::new();
    let exclude = globs(&table.exclude, &mut wrong);
    for pattern in &table.members {
        let found = folders(root, pattern, &mut wrong, witness);
        let kept: Vec<PathBuf> =
            found.into_iter().filter(|f| !f.strip_prefix(root).is_ok_and(|r| exclude.is_match(r))).collect();
        members.extend(kept.into_iter().map(|f| f.join(MANIFEST)));
    }
    members.sort();
    members.dedup();
    let mut default = Vec::new();
    for pattern in &table.default_members {
        default.extend(folders(root, pattern, &mut wrong, witness).into_iter().map(|f| f.join(MANIFEST)));
    }
    if wrong.is_empty() { Ok(Expanded { members, default }) } else { Err(wrong) }
}

/// The folders with a manifest that match a pattern: a path, or a glob over folders below the root.
fn folders(root: &Path, pattern: &str, wrong: &mut Vec<Diagnostic>, witness: &mut Witness) -> Vec<PathBuf> {
    if !pattern.contains(['*', '?', '[', '{']) {
        let folder = tidy(&root.join(pattern));
        if witness.is_file(&folder.join(MANIFEST)) {
            return vec![folder];
        }
        wrong.push(
            Diagnostic::error("workspace.no-member", format!("member `{pattern}` has no `{MANIFEST}`"))
                .expected(format!("a folder `{pattern}` with a `{MANIFEST}` below the workspace's root"))
                .hint("create one with `kforge new`, or remove it from `workspace.members`"),
        );
        return vec![];
    }
    let globs = globs(&[pattern.to_string()], wrong);
    let depth = pattern.split('/').count();
    let deep = if pattern.contains("**") { usize::MAX } else { depth };
    let skip = |e: &walkdir::DirEntry| {
        e.depth() > 0 && e.file_name().to_str().is_none_or(|n| n.starts_with('.') || n == "target")
    };
    // The walk does not visit the root, so its listing is recorded here.
    witness.listed(root);
    walkdir::WalkDir::new(root)
        .min_depth(1)
        .max_depth(deep)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(|e| !skip(e))
        .flatten()
        .filter(|e| {
            let folder = e.file_type().is_dir();
            if folder && e.depth() < deep {
                witness.listed(e.path());
            }
            folder
                && e.path().strip_prefix(root).is_ok_and(|r| globs.is_match(r))
                && witness.is_file(&e.path().join(MANIFEST))
        })
        .map(walkdir::DirEntry::into_path)
        .collect()
}

/// A set of globs in which `*` does not cross folders.
fn globs(patterns: &[String], wrong: &mut Vec<Diagnostic>) -> GlobSet {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        match GlobBuilder::new(pattern.trim_end_matches('/')).literal_separator(true).build() {
            Ok(glob) => drop(set.add(glob)),
            Err(error) => {
                wrong.push(Diagnostic::error("workspace.glob", format!("`{pattern}` is not a glob: {}", error.kind())))
            }
        }
    }
    set.build().unwrap_or_else(|_| GlobSet::empty())
}
