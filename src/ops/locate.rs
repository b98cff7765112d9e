//! Locates the current manifest.

use std::path::PathBuf;

use crate::{Error, Session};
use kforge_project::workspace::find::{MANIFEST, tidy};

/// The path of the current manifest.
///
/// # Errors
/// There is no manifest in the current folder or above it.
pub fn manifest(session: &Session) -> Result<PathBuf, Error> {
    Ok(tidy(&session.manifest()?))
}

/// The path of the workspace's root manifest.
///
/// # Errors
/// There is no workspace, or its manifests have errors.
pub fn root_manifest(session: &Session) -> Result<PathBuf, Error> {
    Ok(session.workspace()?.root.join(MANIFEST))
}
