//! Header libraries from wheels: resolved once into the lockfile, installed where toolchains are.

use std::path::PathBuf;

use super::open::{Context, Opened};
use crate::cli::exit::Exit;
use kforge_project::toolchain::Pip;
use kforge_project::toolchain::cuda::{Source, folder_of, install_wheels};
use kforge_project::workspace::lockfile::{LockedDependency, Lockfile};

/// The folder of a library, installed if it is not.
pub fn install(
    context: &Context,
    opened: &Opened,
    lock: &mut Lockfile,
    seat: &(String, String),
    requirement: &str,
    write: bool,
) -> Result<PathBuf, Exit> {
    let toolchains = opened.home.toolchains();
    let wheel = match lock.dependencies.get(seat) {
        Some(LockedDependency::Wheel(wheel)) => wheel.clone(),
        _ if context.offline() || !write => {
            return Err(
                context.fail(&format!("kforge.lock does not name `{requirement}`: run `kforge update` with a network"))
            );
        }
        _ if context.locked() => {
            return Err(context
                .fail(&format!("kforge.lock must change: it does not name `{requirement}`, and --locked was given")));
        }
        _ => {
            context.console.status("Resolving", requirement);
            let resolved =
                Pip::find(None, context.environment.all()).and_then(|pip| pip.resolve(&[requirement.to_string()]));
            let wheel = resolved.map_err(|e| context.fail(&e))?.into_iter().next();
            let wheel = wheel.ok_or_else(|| context.fail(&format!("pip resolved nothing for `{requirement}`")))?;
            lock.dependencies.insert(seat.clone(), LockedDependency::Wheel(wheel.clone()));
            wheel
        }
    };
    let wheels = [wheel];
    let folder = folder_of(&wheels, &toolchains);
    if folder.is_dir() {
        return Ok(folder);
    }
    context.console.status("Downloading", requirement);
    let pip = if context.offline() {
        None
    } else {
        Some(Pip::find(None, context.environment.all()).map_err(|e| context.fail(&e))?)
    };
    let source = pip.as_ref().map_or(Source::Offline, Source::Pip);
    install_wheels(&wheels, &toolchains, source, &mut |_| ()).map_err(|e| context.fail(&e))
}
