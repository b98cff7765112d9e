//! Where the manifest at hand is.

use std::path::PathBuf;

use crate::{Error, Session};
use kforge_project::workspace::find::{MANIFEST, tidy};

/// The path of the manifest at hand.
///
/// # Errors
/// There is none.
pub fn manifest(session: &Session) -> Result<PathBuf, Error> {
    Ok(tidy(&session.manifest()?))
}

/// The path of the manifest of the workspace's root.
///
/// # Errors
/// There is no workspace, or its manifests have errors.
pub fn root_manifest(session: &Session) -> Result<PathBuf, Error> {
    Ok(session.workspace()?.root.join(MANIFEST))
}
