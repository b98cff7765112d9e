//! The first stage: locks. A build locks its workspace exclusively and shares the cache with other builds.

use super::super::open::{Opened, Session, make_target};
use super::PlanRequest;
use crate::Error;
use crate::event::{Blocked, Event};
use kforge_engine::lock::{Lock, Mode, Wait};

impl Session {
    /// Takes the locks of a build. Takes no locks if the request does not write.
    pub(super) fn locks(&self, opened: &mut Opened, asked: &PlanRequest) -> Result<Vec<Lock>, Error> {
        if !asked.write {
            return Ok(vec![]);
        }
        make_target(&opened.target)?;
        self.lock(opened)
    }

    /// Locks the workspace, and the shared cache against its collection, and reads the lockfile again. Reports if it must wait.
    pub fn lock(&self, opened: &mut Opened) -> Result<Vec<Lock>, Error> {
        let path = opened.target.join(".lock");
        let mut blocked = || self.reporter.event(&Event::Blocked(Blocked::Workspace));
        let own = Lock::acquire(&path, Mode::Exclusive, self.wait(&mut blocked));
        let own = own.map_err(Error::lock(Blocked::Workspace))?;
        let mut blocked = || self.reporter.event(&Event::Blocked(Blocked::Cache));
        let cache = opened.home.lock_cache(Mode::Shared, self.wait(&mut blocked));
        let locks = vec![own, cache.map_err(Error::lock(Blocked::Cache))?];
        // The process that held the lock may have written the lockfile.
        opened.workspace.read_lock()?;
        Ok(locks)
    }

    /// How to wait for a lock.
    pub(crate) fn wait<'w>(&'w self, blocked: &'w mut dyn FnMut()) -> Wait<'w> {
        if self.options.no_wait { Wait::No } else { Wait::Unless(&self.interrupted, blocked) }
    }
}
