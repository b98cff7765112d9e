//! Adds entries to the current manifest and removes entries from it. Nothing is written if the edited manifest would have errors, old ones included.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Error, Session};
use kforge_foundation::base::{Diagnostic, SourceFile, files};
use kforge_project::workspace::edit::{self, ManifestEntry};
use kforge_project::workspace::find;
use kforge_project::workspace::join::EnclosingWorkspace;
use kforge_types::model::{self, Manifest};

/// Why a manifest was not changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The text cannot be edited.
    #[error(transparent)]
    NotEdited(#[from] edit::EditError),
    /// The edited manifest would have errors.
    #[error("`{}` would have errors; it was not changed", manifest.display())]
    Wrong {
        /// The manifest.
        manifest: PathBuf,
        /// The errors that it would have.
        found: Vec<Diagnostic>,
    },
}

/// Adds an entry with these fields (`KEY=VALUE`) to the current manifest.
///
/// # Errors
/// [`EditError`], or the manifest cannot be read or written.
pub fn add(session: &Session, thing: ManifestEntry, name: &str, fields: &[String]) -> Result<(), Error> {
    let (manifest, text) = read(session)?;
    let edited = edit::add(&text, thing, name, fields).map_err(EditError::from)?;
    write(&manifest, edited)
}

/// Removes an entry from the current manifest.
///
/// # Errors
/// [`EditError`], or the manifest cannot be read or written.
pub fn remove(session: &Session, thing: ManifestEntry, name: &str) -> Result<(), Error> {
    let (manifest, text) = read(session)?;
    let edited = edit::remove(&text, thing, name).map_err(EditError::from)?;
    write(&manifest, edited)
}

/// The current manifest: its path, its text and what it declares, unless it has errors.
pub(crate) fn manifest_of(session: &Session) -> Result<(PathBuf, String, Option<Manifest>), Error> {
    let (manifest, text) = read(session)?;
    let file = Arc::new(SourceFile { name: find::MANIFEST.into(), text: text.clone() });
    Ok((manifest, text, model::parse(&file).0))
}

/// Writes a manifest in place of another, or only checks it.
pub(crate) fn replaced(manifest: &Path, text: String, dry_run: bool) -> Result<(), Error> {
    let text = checked(manifest, text)?;
    if dry_run {
        return Ok(());
    }
    files::write_if_changed(manifest, text.as_bytes()).map(drop).map_err(Error::write(manifest))
}

fn read(session: &Session) -> Result<(PathBuf, String), Error> {
    let manifest = find::tidy(&session.manifest()?);
    let text = std::fs::read_to_string(&manifest).map_err(Error::read(&manifest))?;
    Ok((manifest, text))
}

fn write(manifest: &Path, text: String) -> Result<(), Error> {
    replaced(manifest, text, false)
}

/// A text that has no errors as this manifest.
fn checked(manifest: &Path, text: String) -> Result<String, Error> {
    let folder = manifest.parent().unwrap_or(Path::new("."));
    let around = EnclosingWorkspace::find(folder).map(|a| a.manifest);
    let root = around.as_deref().and_then(Path::parent).unwrap_or(folder);
    let found = edit::check(manifest, root, text.clone());
    if edit::is_wrong(&found) {
        return Err(EditError::Wrong { manifest: manifest.to_path_buf(), found }.into());
    }
    Ok(text)
}
