//! The services with which the engine executes a plan: executors, caches, and evidence of devices. Runs nothing.

use std::io;
use std::sync::Arc;

use super::super::open::{Opened, Session};
use super::super::workers::Workers;
use super::Ready;
use crate::event::Event;
use kforge_engine::action::asks_device;
use kforge_engine::evidence::{self, BundledBinaries, EvidenceCache, Index};
use kforge_engine::journal::JournalCache;
use kforge_engine::{Blobs, BuildOutcome, Cache, Services};
use kforge_foundation::base::Diagnostic;
use kforge_pipeline::step::RemoteExecutor;
use kforge_pipeline::step::StepExecutor;
use kforge_types::record::Spec;
use kforge_types::record::event::CacheOrigin;

impl Ready<'_> {
    /// Calls `with` with all the services for the engine.
    pub fn with_services<R>(&self, session: &Session, opened: &Opened, with: impl FnOnce(&Services<'_>) -> R) -> R {
        let workers = Workers {
            pool: &self.pool,
            tools: &self.tools,
            reporter: &session.reporter,
            beside: &self.devices.tools,
            scratch: opened.home.steps(),
            expected: (opened.home.scratch(), session.settings.number("cache.scratch-size")),
            run_limit_s: session.settings.number("build.time-limit"),
            memory_limit: session.settings.number("build.memory-limit"),
            compiler_memory: session.settings.number("build.compiler-memory-limit"),
            allow_unconfined: session.options.allow_unconfined || !session.settings.flag("sandbox.required"),
        };
        self.with_remote(session, opened, workers, with)
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
        let from_journal = JournalCache::new(self.journal.clone(), blobs);
        let evidence = self.evidence(opened);
        let brought = BundledBinaries::new(evidence.index().clone());
        let caches: Vec<&dyn Cache> = vec![&brought, &from_journal, &self.actions, &evidence];
        let services = Services {
            executor: &executor,
            caches,
            blobs: &*self.leaves,
            memory: &self.memory,
            locks: &self.actions,
            expand: &self.expander,
            implementations: &self.implementations,
        };
        let done = with(&services);
        // The records are stored and used in any case. A failed sync is worth a warning, because only the device could produce them again.
        if let Err(e) = evidence.sync() {
            let message = format!("a power failure may lose the new records of the device: {e}");
            let keep = "`kforge evidence export` writes it to a file";
            session.reporter.event(&Event::Diagnostic(&Diagnostic::warning("evidence.sync", message).hint(keep)));
        }
        done
    }

    /// The cache of evidence that answers questions to devices: the home's index, and the bundles in the repository.
    pub fn evidence(&self, opened: &Opened) -> EvidenceCache {
        let devices = self.devices.present.clone();
        let wanted = move |spec: &Spec, product: Option<&str>| {
            let asks = asks_device(spec).then(|| spec.params.get("arch").and_then(|a| a.as_str()));
            Some(evidence::AcceptedSource {
                here: devices.resolve(asks??, product).map(|resolved| resolved.class.clone()),
                device: product.map(str::to_string),
                validity: spec.kind.descriptor().observes.as_ref()?.validity,
            })
        };
        let index = Index::new(&opened.home, self.leaves.clone()).with(self.committed.clone(), self.about.clone());
        let index = index.signed_by(self.signed.clone());
        EvidenceCache::new(index, wanted)
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
