//! Whether the service accepts tasks, and its figures. Health takes no lock: a probe must not wait for a write.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{Inner, Service, gauge};
use crate::api::{Health, HealthStatus};

/// What was there when the lock was released last.
#[derive(Debug, Default)]
pub(super) struct Figures {
    queued: AtomicU64,
    running: AtomicU64,
    works: AtomicBool,
}

impl Figures {
    pub(super) fn set(&self, inner: &Inner) {
        let (state, running) = (&inner.state, inner.state.running());
        self.queued.store((state.entries.len() - running) as u64, Ordering::SeqCst);
        self.running.store(running as u64, Ordering::SeqCst);
        self.works.store(inner.journal.works(), Ordering::SeqCst);
    }
}

impl Service {
    /// Whether it accepts tasks, and what it does.
    pub fn health(&self) -> Health {
        Health {
            status: self.status(),
            kforge: env!("CARGO_PKG_VERSION").into(),
            devices: self.devices.clone(),
            queued: self.figures.queued.load(Ordering::SeqCst),
            running: self.figures.running.load(Ordering::SeqCst),
        }
    }

    /// Whether it accepts tasks.
    pub fn is_ready(&self) -> bool {
        self.status() == HealthStatus::Ok
    }

    fn status(&self) -> HealthStatus {
        match () {
            () if self.draining.load(Ordering::SeqCst) => HealthStatus::Draining,
            () if !self.figures.works.load(Ordering::SeqCst) || !self.synced.works() => HealthStatus::Storage,
            () => HealthStatus::Ok,
        }
    }

    /// Its figures in the format of Prometheus.
    pub fn prometheus(&self) -> String {
        let mut out = String::new();
        self.metrics.write(&mut out);
        let (tasks, unfinished, running, entries, requests, bytes) = {
            let inner = self.lock();
            let state = &inner.state;
            let (running, entries) = (state.running(), state.entries.len());
            (state.tasks(), state.unfinished(), running, entries, state.requests(), inner.journal.bytes())
        };
        gauge(&mut out, "kforge_tasks", "Tasks that are kept.", tasks as u64);
        gauge(&mut out, "kforge_tasks_unfinished", "Tasks without a result.", unfinished as u64);
        gauge(&mut out, "kforge_evaluations_running", "Evaluations that run.", running as u64);
        gauge(&mut out, "kforge_evaluations_queued", "Evaluations that wait.", (entries - running) as u64);
        gauge(&mut out, "kforge_requests_bytes", "The size of requests that wait or run.", requests);
        gauge(&mut out, "kforge_journal_bytes", "The size of the journal.", bytes);
        gauge(&mut out, "kforge_ready", "1 if tasks are accepted.", u64::from(self.is_ready()));
        out
    }
}
