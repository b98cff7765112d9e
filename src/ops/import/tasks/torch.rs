//! The PyTorch that describes tasks: the same as that of references.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::event::{Event, Resolving};
use crate::import::ImportError;
use crate::session::lacking_pythons::lacking_pythons;
use crate::session::tools::{NoTorch, install_torch};
use crate::{Error, Session};
use kforge_project::toolchain::torch::TorchWheels;
use kforge_project::toolchain::{self, Pip, Python};
use kforge_project::workspace::join::EnclosingWorkspace;
use kforge_project::workspace::lockfile::Lockfile;

/// A PyTorch, and the Python that imports it.
pub(in crate::import) struct TorchHere {
    /// The interpreter.
    pub(in crate::import) python: Python,
    /// The tools by the names that references use.
    pub(in crate::import) places: BTreeMap<String, PathBuf>,
}

impl TorchHere {
    /// The PyTorch of the system, or a release: its wheels are those of the lockfile of the packages' workspace or of the session's folder, or are resolved.
    /// Installs them if they are missing.
    pub(in crate::import) fn find(session: &Session, release: Option<&str>, output: &Path) -> Result<Self, Error> {
        let (named, path) = (session.settings.path("toolchain.python"), session.environment.path());
        let python = toolchain::python::find(named.as_deref(), path).map_err(Error::Toolchain)?;
        let Some(release) = release else {
            let places = toolchain::torch::find(&python).map_err(Error::Toolchain)?.places();
            return Ok(TorchHere { python, places });
        };
        let wheels = wheels(session, release, output)?;
        let set = wheels.for_python(&python).map_err(Error::Toolchain)?;
        let (toolchains, offline) = (session.home()?.toolchains(), session.offline());
        let environment = session.environment.all();
        let folder = install_torch((&set, &python), &toolchains, offline, environment, &session.reporter)?;
        Ok(TorchHere { python, places: toolchain::torch::places(&folder) })
    }
}

/// Whether a text names a release: `2.9`, `2.9.1`.
pub(in crate::import) fn is_release(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let numbers = parts.iter().all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    numbers && (2..=3).contains(&parts.len()) && parts[0] == "2"
}

fn wheels(session: &Session, release: &str, output: &Path) -> Result<TorchWheels, Error> {
    if !is_release(release) {
        return Err(ImportError::TorchRelease(release.into()).into());
    }
    let root =
        EnclosingWorkspace::find(&output.join("task")).and_then(|around| around.manifest.parent().map(PathBuf::from));
    for folder in root.iter().map(PathBuf::as_path).chain([output, session.cwd.as_path()]) {
        if let Some(wheels) = TorchWheels::locked(&Lockfile::read(folder)?.wheels, release, false) {
            return Ok(wheels);
        }
    }
    if session.offline() {
        return Err(Error::Torch(NoTorch::NotLocked(release.into())));
    }
    session.reporter.event(&Event::Resolving(Resolving::Torch(release)));
    let pip = Pip::find(None, session.environment.all()).map_err(Error::Toolchain)?;
    let resolved = TorchWheels::resolve(release, false, &pip).map_err(Error::Toolchain)?;
    if let Some(warning) = lacking_pythons(release, &resolved.lacking) {
        session.reporter.event(&Event::Diagnostic(&warning));
    }
    Ok(resolved.wheels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_those_of_manifests() {
        for good in ["2.9", "2.15.0"] {
            assert!(is_release(good), "{good}");
        }
        for bad in ["2", "1.9", "2.x", "2.9.0.1", "", "system "] {
            assert!(!is_release(bad), "{bad}");
        }
    }
}
