//! What the state forgets: tasks that ended long ago, the oldest of too many, and results without a task.

use std::sync::Arc;

use super::{Entry, State, TaskKey, TaskPhase};

impl State {
    /// Forgets tasks that ended before `until`, and of each client the oldest of more than `most` that have ended, unless they ended after `young`. Times are those
    /// of [`super::Moment::steady`].
    pub(in crate::service) fn forget(&mut self, until: i64, most: usize, young: i64) -> usize {
        let mut count = 0;
        while let Some((at, key)) = self.ended.first_key_value().map(|(at, key)| (*at, key.clone())) {
            if at.0 >= until {
                break;
            }
            self.remove(&key);
            count += 1;
        }
        let many = self.clients.iter().filter(|(_, client)| client.ended.len() > most);
        for client in many.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            count += self.forget_of(&client, most, young);
        }
        count
    }

    /// The same of one client, by the number of its tasks only.
    pub(in crate::service) fn forget_of(&mut self, client: &Arc<str>, most: usize, young: i64) -> usize {
        let mut count = 0;
        while let Some(key) = self.oldest_of(client, most, young) {
            self.remove(&key);
            count += 1;
        }
        count
    }

    fn oldest_of(&self, client: &Arc<str>, most: usize, young: i64) -> Option<TaskKey> {
        let ended = &self.clients.get(client).filter(|client| client.ended.len() > most)?.ended;
        let oldest = ended.first().filter(|(at, _)| *at < young)?;
        self.ended.get(oldest).cloned()
    }

    /// Removes a task that has ended.
    pub(super) fn remove(&mut self, key: &TaskKey) {
        let Some(task) = self.tasks.remove(key) else { return };
        self.ended.remove(&(task.ended, task.number));
        if let Some(client) = self.clients.get_mut(&key.client) {
            client.tasks.remove(&task.number);
            client.ended.remove(&(task.ended, task.number));
            if client.tasks.is_empty() {
                self.clients.remove(&key.client);
            }
        }
        if let TaskPhase::Done { result, .. } = task.phase {
            self.release(result);
        }
    }

    fn release(&mut self, result: u64) {
        let Some(state) = self.results.get_mut(&result) else { return };
        state.tasks -= 1;
        if state.tasks > 0 {
            return;
        }
        self.live -= state.place.bytes();
        let content = state.content;
        self.results.remove(&result);
        if self.known.get(&content) == Some(&result) {
            self.known.remove(&content);
        }
    }

    /// Forgets results without a task, of evaluations that were abandoned as they ended, and requests without a task, whose row was the last that could be
    /// written.
    pub(in crate::service) fn forget_unused(&mut self) {
        let is_used = |entry: &Entry| !entry.tasks.is_empty() || entry.running.is_some();
        let entries = self.entries.iter().filter(|(_, entry)| !is_used(entry));
        for content in entries.map(|(content, _)| *content).collect::<Vec<_>>() {
            self.remove_entry(&content);
        }
        let unused: Vec<u64> = self.results.iter().filter(|(_, r)| r.tasks == 0).map(|(id, _)| *id).collect();
        for result in unused {
            if let Some(state) = self.results.get_mut(&result) {
                state.tasks = 1;
            }
            self.release(result);
        }
    }
}
