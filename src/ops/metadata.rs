//! Describes the workspace in a document for other programs. Runs nothing and takes no lock.

use crate::session::needs::DEFAULT_CUDA;
use crate::{Error, Session};
use kforge_pipeline::report::metadata::{self, Metadata};

/// The metadata of the current workspace.
///
/// # Errors
/// There is no workspace, or its manifests have errors.
pub fn metadata(session: &Session) -> Result<Metadata, Error> {
    let workspace = session.workspace()?;
    let target = session.target(&workspace);
    Ok(metadata::metadata(&workspace, &target, DEFAULT_CUDA))
}
