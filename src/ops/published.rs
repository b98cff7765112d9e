//! Places of publication as operations open them: with the session's environment, and not without the network where one is needed. Knows sessions; what the
//! places hold is in [`kforge_pipeline::release::registry`].

use std::time::Duration;

use crate::{Error, Session};
use kforge_pipeline::release::registry::exchange::{Access, Means};
use kforge_pipeline::release::registry::{Reference, Remote};

/// How long a registry may send nothing.
const LIMIT: Duration = Duration::from_secs(60);

/// The first pause before a request is repeated.
const PAUSE: Duration = Duration::from_millis(500);

/// A registry is needed, and the network must not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is on a network, and the network must not be used")]
pub struct NoNetwork(pub String);

impl Session {
    /// The repository of a registry.
    pub(crate) fn remote(&self, reference: &Reference, access: Access, plain_http: bool) -> Result<Remote, Error> {
        if self.offline() {
            return Err(NoNetwork(reference.repository()).into());
        }
        let means = Means {
            plain_http,
            access,
            environment: self.environment.clone(),
            interrupted: self.interrupted.clone(),
            limit: LIMIT,
            pause: PAUSE,
        };
        Ok(Remote::new(reference, means)?)
    }
}
