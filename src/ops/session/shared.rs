//! What the builds of one process share, where it runs many: warm workers, the devices, and the processors. A build by itself opens its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::devices::Devices;
use super::open::Session;
use crate::Error;
use kforge_harness::execute::WarmUp;
use kforge_harness::pool::Pool;
use kforge_types::record;

/// What several builds share: see [`Session::shared`].
pub struct Shared {
    /// The workers.
    pub(crate) pool: Arc<Pool>,
    /// The devices, which are asked for once.
    pub(crate) devices: Devices,
    /// The runners that were started at devices, by UUID.
    pub(crate) warm: Arc<Mutex<BTreeMap<String, WarmUp>>>,
    /// The turns at devices that workers of a server hold.
    #[cfg(feature = "remote")]
    pub(crate) turns: Arc<super::remote_workers::Turns>,
    /// The number of steps that may run on processors at once.
    jobs: u32,
}

impl Shared {
    /// Asks for the devices, and prepares a pool of workers. `jobs` limits the steps of all builds together that need no device; if none, the setting
    /// `build.jobs`.
    ///
    /// # Errors
    /// The home cannot be used, the worker program executes steps differently, or the devices cannot be described to workers.
    pub fn open(session: &Session, jobs: Option<u32>) -> Result<Shared, Error> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let jobs = jobs.unwrap_or_else(|| u32::try_from(session.settings.jobs(cores)).unwrap_or(u32::MAX)).max(1);
        let pool = Arc::new(session.pool(&session.home()?)?.with_processors(jobs));
        let devices = Devices::find(&session.environment, session.worker.program(), &session.settings)?;
        Ok(Shared {
            pool,
            devices,
            warm: Arc::default(),
            #[cfg(feature = "remote")]
            turns: Arc::default(),
            jobs,
        })
    }

    /// The devices of this machine.
    pub fn devices(&self) -> &record::Devices {
        &self.devices.present
    }

    /// The number of steps that may run on processors at once.
    pub fn jobs(&self) -> u32 {
        self.jobs
    }
}
