//! A home without results, for builds that nothing from before may answer.

use std::path::Path;

use super::open::Session;
use crate::Error;

/// Makes a folder a home that has only the toolchains of the session's home: installing them again would prove nothing and cost gigabytes.
pub(crate) fn fresh_home(session: &Session, home: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(home).map_err(Error::write(home))?;
    let (own, link) = (session.home()?.toolchains(), home.join("toolchains"));
    std::fs::create_dir_all(&own).map_err(Error::write(&own))?;
    std::os::unix::fs::symlink(&own, &link).map_err(Error::write(&link))
}
