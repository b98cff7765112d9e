//! What kforge.lock, or pip, gives of toolchains and libraries.

use crate::session::tools::NoCuda;
use std::collections::BTreeMap;

use super::super::open::{Opened, Session};
use super::super::sources::Libraries;
use super::{Asked, Packages};
use crate::Error;
use kforge_project::toolchain::Cuda;

/// What packages are built with that this machine does not bring itself.
pub(super) struct Resolved {
    /// By package with a device target: its CUDA, or why there is none.
    pub(super) cudas: BTreeMap<String, Result<Cuda, NoCuda>>,
    pub(super) libraries: Libraries,
    /// Whether a toolchain could not be resolved though the network may be used.
    pub(super) unresolved: bool,
    /// Whether the lockfile alone decides what these are.
    pub(super) decided: bool,
}

impl Session {
    pub(super) fn toolchains(
        &self,
        opened: &mut Opened,
        packages: &Packages,
        asked: &Asked,
    ) -> Result<Resolved, Error> {
        let mut unresolved = false;
        let cudas = self.cudas(opened, packages, asked, &mut unresolved)?;
        let libraries = self.libraries(opened, packages, asked)?;
        let decided = cudas.values().all(|c| matches!(c, Ok(Cuda::Wheels(_))));
        Ok(Resolved { cudas, libraries, unresolved, decided })
    }
}
