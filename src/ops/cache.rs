//! The shared cache: collected, measured, checked.

use std::time::{Duration, SystemTime};

use crate::event::Blocked;
use crate::{Error, Session};
use kforge_engine::collect::{self, Checked, Collected, Limits, Report, Usage};

/// Removes what is older or larger than the settings allow.
///
/// # Errors
/// [`Error::Busy`] while a build uses the cache; the cache cannot be read or written.
pub fn collect(session: &Session) -> Result<Report, Error> {
    match collect::collect(&session.home()?, limits(session), SystemTime::now())? {
        Collected::Busy => Err(Error::Busy(Blocked::Cache)),
        Collected::Done(report) => Ok(report),
    }
}

/// Collects after a build, once a day, if the settings allow it and nobody else is at it. Whoever builds calls it once the build is over.
///
/// # Errors
/// The cache cannot be read or written. The build has ended well.
pub fn collect_sometimes(session: &Session) -> Result<Option<Report>, Error> {
    let (home, now) = (session.home()?, SystemTime::now());
    // Offline, what is removed may not come back.
    if !session.settings.flag("cache.auto-gc") || session.offline() || !collect::due(&home, now) {
        return Ok(None);
    }
    match collect::collect(&home, limits(session), now)? {
        Collected::Done(report) => Ok(Some(report)),
        Collected::Busy => Ok(None),
    }
}

/// How large the cache is, by part.
///
/// # Errors
/// It cannot be read.
pub fn usage(session: &Session) -> Result<Usage, Error> {
    Ok(collect::usage(&session.home()?)?)
}

/// Hashes everything again and removes what is corrupt.
///
/// # Errors
/// The cache cannot be read or written.
pub fn verify(session: &Session) -> Result<Checked, Error> {
    Ok(collect::verify(&session.home()?)?)
}

/// What the settings allow.
fn limits(session: &Session) -> Limits {
    Limits {
        max_age: Duration::from_secs(session.settings.number("cache.max-age")),
        max_size: session.settings.number("cache.max-size"),
    }
}
