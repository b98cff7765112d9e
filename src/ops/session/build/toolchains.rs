//! The toolchains from kforge.lock or from pip.

use crate::session::tools::{NoCuda, NoTorch, NoTriton, TorchRequest};
use std::collections::{BTreeMap, BTreeSet};

use super::super::open::{Opened, Session};
use super::{Packages, PlanRequest};
use crate::Error;
use kforge_project::toolchain::Cuda;
use kforge_project::workspace::lockfile::LockedWheel;

/// The parts of packages' toolchains that are not tools of this machine.
pub(super) struct Resolved {
    /// By package with a device target, or with cub for `cpu`: its CUDA, or why it has none.
    pub(super) cudas: BTreeMap<String, Result<Cuda, NoCuda>>,
    /// By package with a kernel in Triton: the wheels of its Triton, or why there are none.
    pub(super) tritons: BTreeMap<String, Result<Vec<LockedWheel>, NoTriton>>,
    /// By package with a reference in PyTorch: its PyTorch, or why there is none.
    pub(super) torches: BTreeMap<String, Result<TorchRequest, NoTorch>>,
    /// Whether a toolchain could not be resolved although the network may be used.
    pub(super) unresolved: bool,
    /// Whether only the lockfile determines these toolchains.
    pub(super) decided: bool,
}

impl Session {
    pub(super) fn toolchains(
        &self,
        opened: &mut Opened,
        packages: &Packages,
        asked: &PlanRequest,
        cub: &BTreeSet<String>,
    ) -> Result<Resolved, Error> {
        let mut unresolved = false;
        let cudas = self.cudas(opened, packages, asked, cub, &mut unresolved)?;
        let tritons = self.tritons(opened, packages, asked, &mut unresolved)?;
        let torches = self.torches(opened, packages, asked, &mut unresolved)?;
        let decided = cudas.values().all(|c| matches!(c, Ok(Cuda::Wheels(_))))
            && tritons.values().all(Result::is_ok)
            && torches.values().all(Result::is_ok);
        Ok(Resolved { cudas, tritons, torches, unresolved, decided })
    }
}
