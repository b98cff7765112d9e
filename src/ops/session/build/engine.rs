//! The options that the engine gets for a build: how many steps run in parallel, with which resources, and in which worker program.

use std::sync::Arc;

use super::super::open::{Opened, Session, Worker};
use super::PlanRequest;
use crate::Error;
use kforge_engine::lock::Lock;
use kforge_engine::services::Chosen;
use kforge_engine::{BuildOptions, Capacity};
use kforge_foundation::process::Command;
use kforge_harness::pool::{FOR_A_DEVICE, Pool};

impl Session {
    pub(super) fn build_options(&self, asked: &PlanRequest, locks: &[Lock]) -> Result<BuildOptions, Error> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let jobs = match asked.jobs {
            Some(0) => return Err(Error::NoJobs),
            Some(n) if n > 0 => n as usize,
            Some(n) => cores.saturating_sub(n.unsigned_abs() as usize).max(1),
            None => self.settings.jobs(cores),
        };
        let remeasure = asked.remeasure.then(|| -> Chosen { Arc::new(|node| node.resources.device.is_some()) });
        Ok(BuildOptions {
            keep_going: asked.keep_going || self.settings.flag("build.keep-going"),
            capacity: Capacity {
                cpus: jobs as u32,
                memory_mib: super::super::memory::capacity_mib(&self.settings),
                shared: FOR_A_DEVICE,
                // If locks have no effect here, the steps of this build still take turns.
                takes_turns: locks.iter().all(Lock::is_held),
                ..Capacity::default()
            },
            interrupted: self.interrupted.clone(),
            remeasure,
            quiet_fresh: !self.options.every_step,
            total: Arc::default(),
        })
    }

    /// The worker processes. For an installed kforge, first checks that it executes steps as this program would.
    pub(super) fn pool(&self, opened: &Opened) -> Result<Pool, Error> {
        if let Worker::Installed(program) = &self.worker {
            super::super::agreement::check(program, &self.interrupted)?;
        }
        Ok(Pool::new(Command::new(self.worker.program()).arg("worker")).within(opened.home.steps()))
    }
}
