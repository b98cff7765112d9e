//! Which evaluation runs next, and what happens when it begins, stops, or a server ended during it.

use std::sync::Arc;

use super::{Entry, State, Stop};
use crate::service::journal::Place;
use crate::service::progress::ProgressLog;
use kforge_foundation::base::Digest;

/// An evaluation that begins.
pub(in crate::service) struct Begun {
    pub(in crate::service) content: Digest,
    pub(in crate::service) request: Place,
    pub(in crate::service) stop: Arc<Stop>,
    pub(in crate::service) log: Arc<ProgressLog>,
    /// How many of its runs ended because the server or a worker was killed.
    pub(in crate::service) attempts: u32,
}

impl State {
    /// The next evaluation, which runs from now on.
    pub(in crate::service) fn begin(&mut self) -> Option<Begun> {
        let content = self.next_suspect().or_else(|| {
            let entries = &self.entries;
            self.queue.pop(|content| entries.get(content).is_some_and(|entry| entry.waits() && !entry.is_suspect))
        })?;
        let entry = self.entries.get_mut(&content)?;
        let stop = Arc::new(Stop::default());
        entry.running = Some(stop.clone());
        let attempts = entry.begun;
        entry.begun += 1;
        self.running += 1;
        if entry.is_suspect {
            self.tried = Some(content);
        }
        entry.log.begin();
        Some(Begun { content, request: entry.request.clone(), stop, log: entry.log.clone(), attempts })
    }

    fn next_suspect(&mut self) -> Option<Digest> {
        if self.tried.is_some() {
            return None;
        }
        let entries = &self.entries;
        let is_next = |content: &Digest| entries.get(content).is_some_and(|entry| entry.waits() && entry.is_suspect);
        std::iter::from_fn(|| self.suspects.pop_front()).find(is_next)
    }

    /// An evaluation was stopped, and has no result. It waits again if a task still waits for it. The run that was stopped is none that counts; earlier ones do.
    pub(in crate::service) fn put_back(&mut self, content: Digest) {
        let Some(entry) = self.entries.get_mut(&content) else { return };
        self.running -= usize::from(entry.running.take().is_some());
        entry.begun = entry.begun.saturating_sub(1);
        if self.tried == Some(content) {
            self.tried = None;
        }
        match entry.tasks.first() {
            Some(_) if entry.is_suspect => self.suspects.push_back(content),
            Some(first) => self.queue.push(content, &first.client.clone(), entry.priority),
            None => drop(self.remove_entry(&content)),
        }
    }

    /// An evaluation began: in a server that ended before it did, or once more after a worker was killed.
    pub(in crate::service) fn began(&mut self, content: Digest) {
        if let Some(entry) = self.entries.get_mut(&content) {
            entry.begun += 1;
        }
    }

    /// All rows were read. Results of earlier processes answer their tasks and no others, because another kforge or another device may have made them.
    pub(in crate::service) fn started(&mut self) {
        self.known.clear();
        let mut suspects: Vec<(u64, Digest)> = vec![];
        for (content, entry) in self.entries.iter_mut().filter(|(_, entry)| entry.begun > 0) {
            entry.is_suspect = true;
            let first = entry.tasks.first().and_then(|key| self.tasks.get(key));
            suspects.push((first.map_or(0, |task| task.number), *content));
        }
        suspects.sort_unstable();
        self.suspects = suspects.into_iter().map(|(_, content)| content).collect();
    }

    /// Removes from the queue what does not wait any more, if that is most of it: so contents that are accepted and cancelled do not fill it.
    pub(super) fn compact(&mut self) {
        // A content that waits is in it at most once in each priority.
        if self.queue.len() > 4 * self.entries.len() + 64 {
            let entries = &self.entries;
            self.queue.compact(|content| entries.get(content).is_some_and(|entry| entry.running.is_none()));
        }
    }
}

impl Entry {
    fn waits(&self) -> bool {
        self.running.is_none()
    }
}
