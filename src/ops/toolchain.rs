//! Installs the toolchains and libraries that kforge.lock names, and lists installed toolchains.

use std::path::{Path, PathBuf};

use crate::session::build::PlanRequest;
use crate::session::evidence_policy::EvidencePolicy;
use crate::session::tools::install;
use crate::{Error, Session};
use kforge_pipeline::plan::Goal;
use kforge_project::toolchain::{Cuda, Group};
use kforge_project::workspace::select::SelectionArgs;

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
    let mut cudas: Vec<(Cuda, bool)> = Vec::new();
    let mut refused = false;
    let found = session.cudas(&mut opened, &packages, &asked, &mut refused)?;
    for (package, cuda) in found {
        let cuda = cuda.map_err(|why| if refused { Error::Refused } else { Error::Cuda(why) })?;
        let package = packages.member(&package).map(|member| &member.package);
        let asks = package.is_some_and(|package| package.targets.values().any(|target| target.fatbin));
        match cudas.iter_mut().find(|(known, _)| *known == cuda) {
            Some((_, fatbins)) => *fatbins |= asks,
            None => cudas.push((cuda, asks)),
        }
    }
    let libraries = session.libraries(&mut opened, &packages, &asked)?;
    let folder = opened.home.toolchains();
    let mut groups = vec![Group::Compile, Group::Disassemble];
    if request.nvcc {
        groups.push(Group::Nvcc);
    }
    let (offline, environment) = (session.offline(), session.environment.all());
    for (cuda, fatbins) in &cudas {
        // After nvcc, which brings it.
        for group in groups.iter().chain(fatbins.then_some(&Group::Fatbin)) {
            install(cuda, *group, &folder, offline, environment, &session.reporter)?;
        }
    }
    Ok(Fetched { toolchains: cudas.len(), libraries: libraries.len(), folder })
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
