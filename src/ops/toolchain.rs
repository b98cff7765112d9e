//! Installs the toolchains and libraries that kforge.lock names, and lists installed toolchains.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::session::build::PlanRequest;
use crate::session::evidence_policy::EvidencePolicy;
use crate::session::needs::needs_cuda;
use crate::session::sources::emulates_cub;
use crate::session::tools::{TorchRequest, install, install_torch, install_triton};
use crate::{Error, Session};
use kforge_pipeline::plan::Goal;
use kforge_project::toolchain::{self, Cuda, Group};
use kforge_project::workspace::select::SelectionArgs;
use kforge_types::model::Arch;

/// The request for a fetch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FetchRequest {
    /// Also install nvcc.
    pub nvcc: bool,
}

/// What was installed, or was already installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The number of toolchains.
    pub toolchains: usize,
    /// The number of libraries.
    pub libraries: usize,
    /// The folder that holds them.
    pub folder: PathBuf,
}

/// An installed toolchain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledToolchain {
    /// Its folder.
    pub folder: PathBuf,
    /// The size of its files.
    pub bytes: u64,
    /// Its wheels: project and version.
    pub wheels: Vec<(String, String)>,
}

/// The file in a toolchain's folder that lists its wheels.
const WHEELS: &str = "wheels.txt";

/// Installs the toolchains and libraries of all packages of the workspace, after resolving those that kforge.lock lacks.
///
/// # Errors
/// Something cannot be resolved or installed. If a toolchain cannot be resolved, a diagnostic reports the reason and the error is [`Error::Refused`].
pub fn fetch(session: &Session, request: FetchRequest) -> Result<Fetched, Error> {
    let mut opened = session.open()?;
    let selected = session.select(&opened.workspace, &SelectionArgs { workspace: true, ..SelectionArgs::default() })?;
    let asked = PlanRequest {
        selected,
        goal: Goal::Check,
        jobs: None,
        keep_going: true,
        remeasure: false,
        evidence: EvidencePolicy::default(),
        overlay: None,
        write: true,
        looks: false,
    };
    let packages = session.packages(&opened, &asked)?;
    // kforge.lock may change, so no build may run at the same time.
    let _lock = session.lock(&mut opened)?;
    let mut cudas: Vec<(Cuda, BTreeSet<Group>)> = Vec::new();
    let mut refused = false;
    let members = packages.all().filter_map(|package| packages.member(&package.name));
    let with_cub = members.filter(|m| emulates_cub(m)).map(|m| m.package.name.clone()).collect();
    let found = session.cudas(&mut opened, &packages, &asked, &with_cub, &mut refused)?;
    for (package, cuda) in found {
        let cuda = cuda.map_err(|why| if refused { Error::Refused } else { Error::Cuda(why) })?;
        let package = packages.member(&package).map(|member| &member.package);
        let targets = || package.into_iter().flat_map(|package| package.targets.values());
        let mut groups = BTreeSet::new();
        if package.is_none_or(needs_cuda) && targets().any(|target| target.arch != Arch::Cpu) {
            groups.extend([Group::Compile, Group::Disassemble]);
            groups.extend(request.nvcc.then_some(Group::Nvcc));
            // After nvcc, which brings it.
            groups.extend(targets().any(|target| target.fatbin).then_some(Group::Fatbin));
        } else {
            groups.insert(Group::Cub);
        }
        match cudas.iter_mut().find(|(known, _)| *known == cuda) {
            Some((_, known)) => known.extend(groups),
            None => cudas.push((cuda, groups)),
        }
    }
    let mut wheels = BTreeMap::new();
    for found in session.tritons(&mut opened, &packages, &asked, &mut refused)?.into_values() {
        let found = found.map_err(|why| if refused { Error::Refused } else { Error::Triton(why) })?;
        let (named, path) = (session.settings.path("toolchain.python"), session.environment.path());
        let python = toolchain::python::find(named.as_deref(), path).map_err(Error::Toolchain)?;
        let wheel = toolchain::triton::wheel_for(&found, &python).map_err(Error::Toolchain)?;
        wheels.insert(wheel.clone(), python);
    }
    let mut torches = BTreeMap::new();
    for found in session.torches(&mut opened, &packages, &asked, &mut refused)?.into_values() {
        let found = found.map_err(|why| if refused { Error::Refused } else { Error::Torch(why) })?;
        // The system's is not kforge's to install.
        let TorchRequest::Release(_, found) = found else { continue };
        let (named, path) = (session.settings.path("toolchain.python"), session.environment.path());
        let python = toolchain::python::find(named.as_deref(), path).map_err(Error::Toolchain)?;
        torches.insert(found.for_python(&python).map_err(Error::Toolchain)?, python);
    }
    let libraries = session.libraries(&mut opened, &packages, &asked)?;
    let folder = opened.home.toolchains();
    let (offline, environment) = (session.offline(), session.environment.all());
    for (cuda, groups) in &cudas {
        for group in groups {
            install(cuda, *group, &folder, offline, environment, &session.reporter)?;
        }
    }
    for of_triton in &wheels {
        install_triton(of_triton, &folder, offline, environment, &session.reporter)?;
    }
    for of_torch in &torches {
        install_torch(of_torch, &folder, offline, environment, &session.reporter)?;
    }
    Ok(Fetched { toolchains: cudas.len() + wheels.len() + torches.len(), libraries: libraries.len(), folder })
}

/// The installed toolchains, sorted by folder.
///
/// # Errors
/// The folder that holds them cannot be read.
pub fn list(session: &Session) -> Result<Vec<InstalledToolchain>, Error> {
    let toolchains = session.home()?.toolchains();
    let entries = std::fs::read_dir(&toolchains).map_err(Error::read(&toolchains))?;
    let mut folders: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    folders.retain(|f| f.join(WHEELS).is_file());
    folders.sort();
    let installed = |folder: PathBuf| {
        let text = std::fs::read_to_string(folder.join(WHEELS)).map_err(Error::read(&toolchains))?;
        let wheels = text.lines().filter_map(wheel).collect();
        Ok(InstalledToolchain { bytes: size_of(&folder), wheels, folder })
    };
    folders.into_iter().map(installed).collect()
}

/// The project and version in a line of the file.
fn wheel(line: &str) -> Option<(String, String)> {
    let mut words = line.split(' ');
    Some((words.next()?.into(), words.next()?.into()))
}

fn size_of(folder: &Path) -> u64 {
    let files = walkdir::WalkDir::new(folder).into_iter().flatten().filter(|e| e.file_type().is_file());
    files.filter_map(|e| e.metadata().ok()).map(|m| m.len()).sum()
}
