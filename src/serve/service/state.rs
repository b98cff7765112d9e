//! What the service knows: tasks, the evaluations that they wait for, and results. Changes only by rows, whether they are written now or read at the start, so
//! that a restart gives the same state. Knows where rows are; runs nothing.
//!
//! A *task* is an accepted request, under an id of its client. An *evaluation* is that of a content, and may have several tasks. A *result* is that of an
//! evaluation; it lives as long as a task refers to it. A *suspect* is an evaluation during which an earlier server, or a worker of it, was killed: suspects run
//! one after another, so that the one that ends servers is found.

mod retention;
mod rows;
mod schedule;
mod stop;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use super::clock::Moment;
use super::journal::{Moved, Place};
use super::progress::ProgressLog;
use super::queue::Queue;
use crate::api::{Priority, TaskStatus, VerdictWord};
use kforge_foundation::base::Digest;

pub(super) use self::rows::{Accepted, Ended, FORMAT, Row, Snapshot};
pub(super) use self::schedule::Begun;
pub(super) use self::stop::{Stop, StopReason};

/// A task by its client and id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct TaskKey {
    pub(super) client: Arc<str>,
    pub(super) id: Arc<str>,
}

/// A task.
#[derive(Debug, Clone)]
pub(super) struct TaskState {
    pub(super) accepted: Accepted,
    pub(super) number: u64,
    pub(super) shared: bool,
    pub(super) phase: TaskPhase,
    /// From when its age counts, if it has ended.
    ended: i64,
    /// How many rows there were with the one that accepted it.
    pub(super) rows: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskPhase {
    Waiting,
    /// The row that ended it counts once so many rows are on disk.
    Done {
        result: u64,
        at: i64,
        rows: u64,
    },
    Cancelled {
        at: i64,
        rows: u64,
    },
}

/// An evaluation that has not ended.
pub(super) struct Entry {
    pub(super) request: Place,
    pub(super) tasks: Vec<TaskKey>,
    pub(super) log: Arc<ProgressLog>,
    /// The greatest time limit of its tasks.
    pub(super) timeout_s: u32,
    priority: Priority,
    /// What stops it, if it runs.
    pub(super) running: Option<Arc<Stop>>,
    /// The client to which the bytes of the request count.
    owner: Option<Arc<str>>,
    /// How often it began without an end, with the run that is in progress.
    begun: u32,
    is_suspect: bool,
}

/// A result.
pub(super) struct ResultState {
    pub(super) place: Place,
    pub(super) verdict: VerdictWord,
    content: Digest,
    tasks: usize,
    /// How many rows there were with that of the result.
    rows: u64,
}

#[derive(Default)]
struct ClientState {
    /// Ids by the number of the task.
    tasks: BTreeMap<u64, Arc<str>>,
    /// Tasks that have ended, by the time from which their age counts, and number.
    ended: BTreeSet<(i64, u64)>,
    unfinished: usize,
}

/// The state.
#[derive(Default)]
pub(super) struct State {
    tasks: HashMap<TaskKey, TaskState>,
    clients: HashMap<Arc<str>, ClientState>,
    pub(super) entries: HashMap<Digest, Entry>,
    known: HashMap<Digest, u64>,
    results: HashMap<u64, ResultState>,
    /// Tasks that have ended, by the time from which their age counts, and number.
    ended: BTreeMap<(i64, u64), TaskKey>,
    queue: Queue,
    suspects: VecDeque<Digest>,
    /// The suspect that runs.
    tried: Option<Digest>,
    next_task: u64,
    next_result: u64,
    unfinished: usize,
    running: usize,
    /// The bytes of requests that wait or run.
    requests: u64,
    /// The same of each client.
    requests_of: HashMap<Arc<str>, u64>,
    /// The bytes of rows that are still needed.
    live: u64,
}

/// About how many bytes the row of a task has.
const ROW: u64 = 300;

impl State {
    pub(super) fn task(&self, key: &TaskKey) -> Option<&TaskState> {
        self.tasks.get(key)
    }

    pub(super) fn result(&self, result: u64) -> Option<&ResultState> {
        self.results.get(&result)
    }

    /// The result that answers later tasks of a content.
    pub(super) fn known(&self, content: &Digest) -> Option<u64> {
        self.known.get(content).copied()
    }

    /// How many tasks wait for an evaluation, of all clients.
    pub(super) fn unfinished(&self) -> usize {
        self.unfinished
    }

    /// The same of one client.
    pub(super) fn unfinished_of(&self, client: &str) -> usize {
        self.clients.get(client).map_or(0, |client| client.unfinished)
    }

    /// How many tasks there are, with those that have ended.
    pub(super) fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// How many evaluations run.
    pub(super) fn running(&self) -> usize {
        self.running
    }

    /// The bytes of requests that wait or run, of all clients.
    pub(super) fn requests(&self) -> u64 {
        self.requests
    }

    /// The same of one client.
    pub(super) fn requests_of(&self, client: &str) -> u64 {
        self.requests_of.get(client).copied().unwrap_or(0)
    }

    /// The number of the next task.
    pub(super) fn next_task(&self) -> u64 {
        self.next_task
    }

    /// The number of the next result, which no other has.
    pub(super) fn take_result(&mut self) -> u64 {
        self.next_result += 1;
        self.next_result - 1
    }

    /// The bytes of rows that are still needed.
    pub(super) fn live(&self) -> u64 {
        self.live + self.tasks.len() as u64 * ROW
    }

    pub(super) fn status(&self, task: &TaskState) -> TaskStatus {
        match task.phase {
            TaskPhase::Done { .. } => TaskStatus::Done,
            TaskPhase::Cancelled { .. } => TaskStatus::Cancelled,
            TaskPhase::Waiting => {
                let runs = self.entries.get(&task.accepted.content).is_some_and(|entry| entry.running.is_some());
                if runs { TaskStatus::Running } else { TaskStatus::Queued }
            }
        }
    }

    /// The tasks of a client whose numbers are below `before`, the newest first.
    pub(super) fn tasks_of<'s>(&'s self, client: &Arc<str>, before: u64) -> impl Iterator<Item = &'s TaskState> {
        let ids = self.clients.get(client).map(|of| of.tasks.range(..before).rev()).into_iter().flatten();
        let client = client.clone();
        ids.filter_map(move |(_, id)| self.tasks.get(&TaskKey { client: client.clone(), id: id.clone() }))
    }

    /// A request that the next tasks wait for.
    pub(super) fn add_request(&mut self, content: Digest, place: Place) {
        self.live += place.bytes();
        if let Some(entry) = self.entries.get_mut(&content) {
            let old = std::mem::replace(&mut entry.request, place);
            let owner = entry.owner.take();
            self.live -= old.bytes();
            self.discharge(owner, old.bytes());
            return;
        }
        let entry = Entry {
            request: place,
            tasks: vec![],
            log: Arc::default(),
            timeout_s: 0,
            priority: Priority::Low,
            running: None,
            owner: None,
            begun: 0,
            is_suspect: false,
        };
        self.entries.insert(content, entry);
    }

    fn discharge(&mut self, owner: Option<Arc<str>>, bytes: u64) {
        let Some(owner) = owner else { return };
        self.requests -= bytes;
        if let Some(own) = self.requests_of.get_mut(&owner) {
            *own -= bytes;
            if *own == 0 {
                self.requests_of.remove(&owner);
            }
        }
    }

    /// Removes an evaluation that ended, or for which no task waits.
    fn remove_entry(&mut self, content: &Digest) -> Option<Entry> {
        let mut entry = self.entries.remove(content)?;
        self.live -= entry.request.bytes();
        self.discharge(entry.owner.take(), entry.request.bytes());
        self.running -= usize::from(entry.running.is_some());
        if self.tried == Some(*content) {
            self.tried = None;
        }
        Some(entry)
    }

    /// Whether a request must precede the next task of a content that is not known.
    pub(super) fn needs_request(&self, content: &Digest) -> bool {
        self.entries.get(content).is_none_or(|entry| entry.tasks.is_empty())
    }

    /// A task was accepted at a time that is known already. `rows` is the number of rows with that one. A task without its request, because a row was damaged,
    /// is left out.
    pub(super) fn accept(&mut self, accepted: Accepted, at: Moment, rows: u64) {
        let key = TaskKey { client: accepted.client.clone(), id: accepted.id.clone() };
        if !self.make_free(&key) {
            return;
        }
        let known = accepted.known.and_then(|result| Some((result, self.results.get(&result)?.rows)));
        let (phase, shared) = match known {
            // The row of the task need not be on disk, but that of the result.
            Some((result, rows)) => (TaskPhase::Done { result, at: accepted.at, rows }, true),
            None => {
                let Some(entry) = self.entries.get_mut(&accepted.content) else { return };
                let (first, raised) = (entry.tasks.is_empty(), accepted.priority > entry.priority);
                if entry.owner.is_none() {
                    entry.owner = Some(key.client.clone());
                    self.requests += entry.request.bytes();
                    *self.requests_of.entry(key.client.clone()).or_default() += entry.request.bytes();
                }
                entry.tasks.push(key.clone());
                entry.timeout_s = entry.timeout_s.max(accepted.timeout_s);
                if first || raised {
                    entry.priority = accepted.priority;
                    self.queue.push(accepted.content, &key.client, accepted.priority);
                    self.compact();
                }
                (TaskPhase::Waiting, !first || accepted.shared)
            }
        };
        self.insert(key, TaskState { number: accepted.number, accepted, shared, phase, ended: at.steady, rows });
    }

    /// A task that ended before the journal was written again.
    pub(super) fn add_ended(&mut self, ended: Ended) {
        let key = TaskKey { client: ended.accepted.client.clone(), id: ended.accepted.id.clone() };
        let phase = match ended.result {
            Some(result) if self.results.contains_key(&result) => TaskPhase::Done { result, at: ended.at, rows: 0 },
            Some(_) => return,
            None => TaskPhase::Cancelled { at: ended.at, rows: 0 },
        };
        if self.make_free(&key) {
            let Ended { accepted, at, shared, .. } = ended;
            let ended = Moment::of_row(at).steady;
            self.insert(key, TaskState { number: accepted.number, accepted, shared, phase, ended, rows: 0 });
        }
    }

    /// Removes the task of a key that is used again, if it has ended: it was forgotten, which has no row. Returns false if it waits.
    fn make_free(&mut self, key: &TaskKey) -> bool {
        if let Some(task) = self.tasks.get(key) {
            if task.phase == TaskPhase::Waiting {
                return false;
            }
            self.remove(key);
        }
        true
    }

    fn insert(&mut self, key: TaskKey, task: TaskState) {
        self.next_task = self.next_task.max(task.number + 1);
        let client = self.clients.entry(key.client.clone()).or_default();
        client.tasks.insert(task.number, key.id.clone());
        if task.phase != TaskPhase::Waiting {
            client.ended.insert((task.ended, task.number));
        }
        match task.phase {
            TaskPhase::Waiting => {
                client.unfinished += 1;
                self.unfinished += 1;
            }
            TaskPhase::Done { result, .. } => {
                self.ended.insert((task.ended, task.number), key.clone());
                if let Some(result) = self.results.get_mut(&result) {
                    result.tasks += 1;
                }
            }
            TaskPhase::Cancelled { .. } => drop(self.ended.insert((task.ended, task.number), key.clone())),
        }
        self.tasks.insert(key, task);
    }

    /// An evaluation ended, and its tasks with it.
    pub(super) fn finish(
        &mut self,
        content: Digest,
        result: u64,
        verdict: VerdictWord,
        keeps: bool,
        (at, rows): (Moment, u64),
        place: Place,
    ) {
        self.next_result = self.next_result.max(result + 1);
        let entry = self.remove_entry(&content);
        self.live += place.bytes();
        self.results.insert(result, ResultState { place, verdict, content, tasks: 0, rows });
        if keeps {
            self.known.insert(content, result);
        }
        let Some(entry) = entry else { return };
        for key in &entry.tasks {
            self.end(key, TaskPhase::Done { result, at: at.wall, rows }, at);
        }
        entry.log.changed();
    }

    /// Whether a task can be cancelled.
    pub(super) fn is_waiting(&self, key: &TaskKey) -> bool {
        self.tasks.get(key).is_some_and(|task| task.phase == TaskPhase::Waiting)
    }

    /// A task was cancelled. Its evaluation ends if no other task waits for it.
    pub(super) fn cancel(&mut self, key: &TaskKey, at: Moment, rows: u64) {
        let Some(content) = self.tasks.get(key).map(|task| task.accepted.content) else { return };
        if !self.is_waiting(key) {
            return;
        }
        self.end(key, TaskPhase::Cancelled { at: at.wall, rows }, at);
        let Some(entry) = self.entries.get_mut(&content) else { return };
        entry.tasks.retain(|other| other != key);
        entry.log.changed();
        if entry.tasks.is_empty() {
            match &entry.running {
                Some(stop) => stop.set(StopReason::Abandoned),
                None => drop(self.remove_entry(&content)),
            }
        }
    }

    fn end(&mut self, key: &TaskKey, phase: TaskPhase, at: Moment) {
        let Some(task) = self.tasks.get_mut(key) else { return };
        (task.phase, task.ended) = (phase, at.steady);
        if let TaskPhase::Done { result, .. } = phase
            && let Some(result) = self.results.get_mut(&result)
        {
            result.tasks += 1;
        }
        self.ended.insert((task.ended, task.number), key.clone());
        self.unfinished -= 1;
        if let Some(client) = self.clients.get_mut(&key.client) {
            client.unfinished -= 1;
            client.ended.insert((task.ended, task.number));
        }
    }

    /// The journal was written again.
    pub(super) fn moved(&mut self, moved: &Moved) {
        let places = self.results.values_mut().map(|result| &mut result.place);
        for place in places.chain(self.entries.values_mut().map(|entry| &mut entry.request)) {
            *place = moved.place(place);
        }
    }
}

#[cfg(test)]
mod tests;
