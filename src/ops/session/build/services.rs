//! The services with which the engine executes a plan: executors, caches, and evidence of devices. Runs nothing.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::super::open::{Opened, Session};
#[cfg(feature = "remote")]
use super::super::remote_workers::{RemoteWorkers, Slots};
use super::super::workers::Workers;
use super::Ready;
use crate::event::{Event, Warning};
use kforge_engine::action::asks_device;
use kforge_engine::evidence::{self, BundledBinaries, EvidenceCache, Findings, Index};
use kforge_engine::journal::JournalCache;
use kforge_engine::{Blobs, BuildOutcome, Cache, Services};
use kforge_foundation::base::Diagnostic;
use kforge_pipeline::step::RemoteExecutor;
use kforge_pipeline::step::StepExecutor;
use kforge_types::record::event::CacheOrigin;
use kforge_types::record::{Device, Devices, Spec};

impl Ready<'_> {
    /// Calls `with` with all the services for the engine.
    pub fn with_services<R>(&self, session: &Session, opened: &Opened, with: impl FnOnce(&Services<'_>) -> R) -> R {
        // Removed at the end of the build. Without it, a candidate that timed out is merely launched again.
        let steps = opened.home.steps();
        let hangs = std::fs::create_dir_all(&steps)
            .and_then(|()| tempfile::Builder::new().prefix("hangs-").tempdir_in(&steps))
            .ok();
        let workers = Workers {
            pool: &self.pool,
            devices: self.devices_of_steps(),
            warm: &self.warm,
            tools: &self.tools,
            reporter: &session.reporter,
            beside: &self.devices.tools,
            hangs: hangs.as_ref().map_or(&steps, |folder| folder.path()),
            scratch: steps.clone(),
            expected: (opened.home.scratch(), session.settings.number("cache.scratch-size")),
            run_limit_s: session.settings.number("build.time-limit"),
            memory_limit: session.settings.number("build.memory-limit"),
            compiler_memory: session.settings.number("build.compiler-memory-limit"),
            allow_unconfined: session.options.allow_unconfined || !session.settings.flag("sandbox.required"),
        };
        #[cfg(feature = "remote")]
        if let Some((remote, execution)) = self.remote.executing() {
            let here = Slots::new(execution.local_jobs);
            let (home, index) = (opened.home.clone(), self.index(opened));
            let workers = RemoteWorkers {
                local: workers,
                remote,
                execution,
                here,
                turns: self.turns.clone(),
                takes_claims: self.remote.takes_claims,
                home,
                index,
                brought: self.brought.clone(),
                holdouts: &self.holdouts,
            };
            return self.with_remote(session, opened, workers, with);
        }
        self.with_remote(session, opened, workers, with)
    }

    /// The devices of this machine at which the plan has steps; not those of a scenario, which have no runner.
    fn devices_of_steps(&self) -> Devices {
        let has_runners = self.devices.tools.contains_key(kforge_cuda::device::TOOL);
        let is_used = |device: &&Device| has_runners && self.observed.contains(&device.uuid);
        Devices(self.devices.present.0.iter().filter(is_used).cloned().collect())
    }

    /// Like [`Self::with_services`], with another executor in place of the worker processes.
    pub fn with_remote<R>(
        &self,
        session: &Session,
        opened: &Opened,
        workers: impl RemoteExecutor,
        with: impl FnOnce(&Services<'_>) -> R,
    ) -> R {
        let executor = StepExecutor { workers };
        let blobs: Arc<dyn Blobs> = self.leaves.clone();
        let from_journal = JournalCache::new(self.journal.clone(), blobs).with(self.authentication.clone());
        let evidence = self.evidence(opened);
        let brought = BundledBinaries::new(evidence.index().clone());
        let caches: Vec<&dyn Cache> = vec![&brought, &from_journal, &self.actions, &evidence];
        let services = Services {
            executor: &executor,
            caches,
            remote: self.remote.cache(),
            blobs: &*self.leaves,
            memory: &self.memory,
            locks: &self.actions,
            expand: &self.expander,
            implementations: &self.implementations,
            machine_key: self.machine_key.as_deref(),
        };
        let done = with(&services);
        self.remote.finish(session);
        self.keep_findings(session, evidence.findings());
        // The records are stored and used in any case. A failed sync is worth a warning, because only the device could produce them again.
        let brought = self.brought.swap(false, Ordering::Relaxed);
        if let Err(e) = evidence.sync().and_then(|()| if brought { evidence.index().sync() } else { Ok(()) }) {
            let message = format!("a power failure may lose the new records of the device: {e}");
            let keep = "`kforge evidence export` writes it to a file";
            session.reporter.event(&Event::Diagnostic(&Diagnostic::warning("evidence.sync", message).hint(keep)));
        }
        done
    }

    /// Keeps what lookups found besides answers, and reports each record from the future once.
    fn keep_findings(&self, session: &Session, new: Findings) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.rivals.extend(new.rivals);
        found.claimed.extend(new.claimed);
        for (digest, seen) in new.ahead {
            if found.ahead.insert(digest, seen.clone()).is_none() {
                session.reporter.warn(Warning::Ahead {
                    record: digest,
                    origin: seen.origin,
                    measured_at: seen.record.provenance.measured_at,
                });
            }
        }
    }

    /// The cache of evidence that answers questions to devices: the home's index, and the bundles in the repository.
    pub fn evidence(&self, opened: &Opened) -> EvidenceCache {
        let (devices, least) = (self.devices.present.clone(), self.policy.least());
        let wanted = move |spec: &Spec, product: Option<&str>| {
            let asks = asks_device(spec).then(|| spec.params.get("arch").and_then(|a| a.as_str()));
            Some(evidence::AcceptedSource {
                here: devices.resolve(asks??, product).map(|resolved| resolved.class.clone()),
                device: product.map(str::to_string),
                validity: spec.kind.descriptor().observes.as_ref()?.validity,
                least,
            })
        };
        EvidenceCache::new(self.index(opened), wanted)
    }

    /// The records of the home and of the bundles in the repository.
    pub fn index(&self, opened: &Opened) -> Index {
        let index = Index::new(&opened.home, self.leaves.clone()).keyed(self.machine_key.clone());
        index.with(self.committed.clone(), self.about.clone()).signed_by(self.signed.clone())
    }

    /// Copies the results that bundles in the repository have answered to the store, where a certificate looks for them.
    pub fn keep_committed(&self, outcome: &BuildOutcome) -> io::Result<()> {
        let answered = outcome.steps.iter().filter(|done| done.cache == CacheOrigin::Evidence);
        let answered = answered.filter_map(|done| done.result.as_ref());
        for digest in answered.flat_map(|result| result.outputs.values()) {
            self.leaves.path(digest)?;
        }
        Ok(())
    }
}
