//! The shared cache: collected, measured, checked.

use std::time::{Duration, SystemTime};

use crate::event::Blocked;
use crate::{Error, Session};
use kforge_engine::collect::{self, Checked, Collected, Limits, Report, Usage};
use kforge_engine::home::Home;

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
    // To open a home takes longer than to look at the settings.
    if may_collect(session) { collect_due(session, &session.home()?) } else { Ok(None) }
}

/// The same in a home that is open.
///
/// # Errors
/// As [`collect_sometimes`].
pub fn collect_due(session: &Session, home: &Home) -> Result<Option<Report>, Error> {
    let now = SystemTime::now();
    if !may_collect(session) || !collect::due(home, now) {
        return Ok(None);
    }
    match collect::collect(home, limits(session), now)? {
        Collected::Done(report) => Ok(Some(report)),
        Collected::Busy => Ok(None),
    }
}

/// Whether the settings let builds collect. Offline, what is removed may not come back.
fn may_collect(session: &Session) -> bool {
    session.settings.flag("cache.auto-gc") && !session.offline()
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
