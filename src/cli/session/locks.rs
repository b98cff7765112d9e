//! Keeps two processes that share a home from computing one key at once.

use std::io;
use std::sync::atomic::AtomicBool;

use crate::base::Digest;
use crate::engine::action::ActionCache;
use crate::engine::lock::LockError;
use crate::engine::{KeyGuard, KeyLocks};

/// Key locks of the shared action cache.
pub struct Shared<'a> {
    /// The cache.
    pub actions: &'a ActionCache,
}

impl KeyLocks for Shared<'_> {
    fn lock(&self, key: &Digest, interrupted: &AtomicBool) -> io::Result<Option<KeyGuard>> {
        match self.actions.key_lock(key, interrupted, &mut || ()) {
            Ok(lock) => Ok(Some(Box::new(lock))),
            Err(LockError::Interrupted(_)) => Ok(None),
            Err(e) => Err(io::Error::other(e.to_string())),
        }
    }
}
