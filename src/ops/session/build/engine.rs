//! The options that the engine gets for a build: how many steps run in parallel, with which resources, and in which worker program.

use std::sync::Arc;

use super::super::open::{Session, Worker};
use super::super::remote::BuildRemote;
use super::PlanRequest;
use crate::Error;
use kforge_engine::home::Home;
use kforge_engine::lock::Lock;
use kforge_engine::machine_key::MachineKey;
use kforge_engine::services::{Chosen, Rechecked};
use kforge_engine::{BuildOptions, Capacity};
use kforge_foundation::process::Command;
use kforge_harness::pool::{FOR_A_DEVICE, Pool};
use kforge_types::record::device::is_remote;
use kforge_types::record::{Standing, StepKind};

impl Session {
    /// How many steps run on this machine at once.
    pub(super) fn local_jobs(&self, asked: &PlanRequest) -> Result<usize, Error> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        match asked.jobs {
            Some(0) => Err(Error::NoJobs),
            Some(n) if n > 0 => Ok(n as usize),
            Some(n) => Ok(cores.saturating_sub(n.unsigned_abs() as usize).max(1)),
            None => Ok(self.settings.jobs(cores).max(1)),
        }
    }

    pub(super) fn build_options(
        &self,
        asked: &PlanRequest,
        locks: &[Lock],
        machine_key: Option<Arc<MachineKey>>,
        remote: &BuildRemote,
    ) -> Result<BuildOptions, Error> {
        let local = self.local_jobs(asked)?;
        // Of the steps in flight, those that have to run here wait for each other. Any of them may have to, so all count with their memory.
        let remote = if remote.executes() { self.settings.number("remote.jobs") as usize } else { 0 };
        let remeasure = asked.remeasure.then(|| -> Chosen { Arc::new(|node| node.resources.device.is_some()) });
        Ok(BuildOptions {
            keep_going: asked.keep_going || self.settings.flag("build.keep-going"),
            capacity: Capacity {
                cpus: remote.max(local) as u32,
                pure: Some(local as u32),
                memory_mib: super::super::memory::capacity_mib(&self.settings),
                shared: FOR_A_DEVICE,
                // If locks have no effect here, the steps of this build still take turns.
                takes_turns: locks.iter().all(Lock::is_held),
                ..Capacity::default()
            },
            interrupted: self.interrupted.clone(),
            remeasure,
            recheck: rechecked(asked.evidence.recheck, machine_key)?,
            quiet_fresh: !self.options.every_step,
            gauge: Arc::default(),
        })
    }

    /// The worker processes. For an installed kforge, first checks that it executes steps as this program would.
    pub(crate) fn pool(&self, home: &Home) -> Result<Pool, Error> {
        if let Worker::Installed(program) = &self.worker {
            super::super::agreement::check(program, &self.interrupted)?;
        }
        Ok(Pool::new(Command::new(self.worker.program()).arg("worker")).within(home.steps()))
    }
}

/// Decides which brought verifications are repeated: a sample that follows from the machine's key, so that whoever forges a bundle cannot know it. Without a
/// key it is drawn anew.
fn rechecked(part: u32, machine_key: Option<Arc<MachineKey>>) -> Result<Option<Rechecked>, Error> {
    if part == 0 {
        return Ok(None);
    }
    let key = match machine_key {
        Some(key) => key,
        None => Arc::new(MachineKey::random()?),
    };
    Ok(Some(Arc::new(move |node, question, hit| {
        // A worker of a server would give one more record that is brought.
        let is_here = node.resources.device.as_ref().is_some_and(|all| !all.iter().any(|uuid| is_remote(uuid)));
        let brought = hit.evidence.as_ref().is_some_and(|seen| seen.standing < Standing::Here);
        brought && is_here && node.kind == StepKind::Verify && key.samples(question, part)
    })))
}
