//! Header libraries from wheels: resolved once into the lockfile, and installed beside the toolchains.

use std::path::PathBuf;

use super::open::{Opened, Session};
use crate::Error;
use crate::error::Locked;
use crate::event::{Event, Resolving};
use kforge_project::toolchain;
use kforge_project::toolchain::Pip;
use kforge_project::toolchain::cuda::{Source, folder_of, install_wheels};
use kforge_project::workspace::lockfile::{LockedDependency, Lockfile};

/// The folder of a library, which is installed if necessary.
pub(crate) fn install(
    session: &Session,
    opened: &Opened,
    lock: &mut Lockfile,
    seat: &(String, String),
    requirement: &str,
    write: bool,
) -> Result<PathBuf, Error> {
    let toolchains = opened.home.toolchains();
    let failed = |why: toolchain::Error| Error::Library { requirement: requirement.into(), why };
    let wheel = match lock.dependencies.get(seat) {
        Some(LockedDependency::Wheel(wheel)) => wheel.clone(),
        _ if session.offline() || !write => return Err(Error::Unresolved { requirement: requirement.into() }),
        _ if session.options.locked => return Err(Error::LockfileLacks(Locked::Requirement(requirement.into()))),
        _ => {
            session.reporter.event(&Event::Resolving(Resolving::Requirement(requirement)));
            let resolved =
                Pip::find(None, session.environment.all()).and_then(|pip| pip.resolve(&[requirement.to_string()]));
            let wheel = resolved.map_err(failed)?.into_iter().next();
            let wheel = wheel.ok_or_else(|| Error::NothingResolved { requirement: requirement.into() })?;
            lock.dependencies.insert(seat.clone(), LockedDependency::Wheel(wheel.clone()));
            wheel
        }
    };
    let wheels = [wheel];
    let folder = folder_of(&wheels, &toolchains);
    if folder.is_dir() {
        return Ok(folder);
    }
    session.reporter.event(&Event::Downloading(&[requirement.to_string()]));
    let pip = if session.offline() { None } else { Some(Pip::find(None, session.environment.all()).map_err(failed)?) };
    let source = pip.as_ref().map_or(Source::Offline, Source::Pip);
    install_wheels(&wheels, &toolchains, source, &mut |_| ()).map_err(failed)
}
