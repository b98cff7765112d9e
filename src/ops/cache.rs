//! Collects, measures and verifies the shared cache.

use std::time::{Duration, SystemTime};

use crate::event::Blocked;
use crate::{Error, Session};
use kforge_engine::collect::{self, Checked, Collected, Limits, Report, Usage};
use kforge_engine::home::Home;

/// Removes entries that exceed the age or size that the settings allow.
///
/// # Errors
/// [`Error::Busy`] if a build is using the cache; or the cache cannot be read or written.
pub fn collect(session: &Session) -> Result<Report, Error> {
    match collect::collect(&session.home()?, limits(session), SystemTime::now())? {
        Collected::Busy => Err(Error::Busy(Blocked::Cache)),
        Collected::Done(report) => Ok(report),
    }
}

/// Collects after a build, once a day, if the settings allow it and no other process is collecting. To be called once the build is over.
///
/// # Errors
/// The cache cannot be read or written. The build itself is not affected.
pub fn collect_sometimes(session: &Session) -> Result<Option<Report>, Error> {
    // Check the settings first, because opening a home takes longer.
    if may_collect(session) { collect_due(session, &session.home()?) } else { Ok(None) }
}

/// Like [`collect_sometimes`], in an open home.
///
/// # Errors
/// Same as [`collect_sometimes`].
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

/// Whether [`collect_sometimes`] would collect now. A home that cannot be opened is not due.
pub fn is_due(session: &Session) -> bool {
    may_collect(session) && session.home().is_ok_and(|home| collect::due(&home, SystemTime::now()))
}

/// Whether the settings let builds collect. Offline, a removed entry could not be downloaded again.
fn may_collect(session: &Session) -> bool {
    session.settings.flag("cache.auto-gc") && !session.offline()
}

/// The size of the cache, by part.
///
/// # Errors
/// The cache cannot be read.
pub fn usage(session: &Session) -> Result<Usage, Error> {
    Ok(collect::usage(&session.home()?)?)
}

/// Hashes everything again and removes corrupt entries.
///
/// # Errors
/// The cache cannot be read or written.
pub fn verify(session: &Session) -> Result<Checked, Error> {
    Ok(collect::verify(&session.home()?)?)
}

/// The limits from the settings.
fn limits(session: &Session) -> Limits {
    Limits {
        max_age: Duration::from_secs(session.settings.number("cache.max-age")),
        max_size: session.settings.number("cache.max-size"),
    }
}
