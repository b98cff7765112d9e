//! What the service knows: tasks, the evaluations that they wait for, and results. Changes only by rows, whether they are written now or read at the start, so
//! that a restart gives the same state. Knows where rows are; runs nothing.
//!
//! A *task* is an accepted request, under an id of its client. An *evaluation* is that of a content, and may have several tasks. A *result* is that of an
//! evaluation; it lives as long as a task refers to it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::clock::Moment;
use super::journal::Place;
use super::progress::ProgressLog;
use super::queue::Queue;
use crate::api::{EvaluationRequest, EvaluationResult, Measure, Priority, TaskStatus, VerdictWord};
use kforge_foundation::base::Digest;

/// The version of the journal's rows.
pub(super) const FORMAT: u32 = 1;

/// A task by its client and id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct TaskKey {
    pub(super) client: Arc<str>,
    pub(super) id: Arc<str>,
}

/// A row of the journal. Times are milliseconds since 1970.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Row {
    /// The version of the rows; the first one.
    Format(u32),
    /// What is evaluated. Precedes the first task that waits for it.
    Request { content: Digest, request: Box<EvaluationRequest> },
    /// A task was accepted. `known` is the result that it has already.
    Accepted(Accepted),
    /// An evaluation ended: so have all tasks that wait for it. `keeps` says that the result answers later tasks as well.
    Finished { content: Digest, result: u64, keeps: bool, at: i64, verdict: VerdictWord, value: Box<EvaluationResult> },
    /// A task was cancelled.
    Cancelled { client: Arc<str>, id: Arc<str>, at: i64 },
    /// A task that has ended, in a journal that was written again.
    Ended(Ended),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Accepted {
    pub(super) client: Arc<str>,
    pub(super) id: Arc<str>,
    pub(super) content: Digest,
    pub(super) measure: Measure,
    pub(super) priority: Priority,
    pub(super) timeout_s: u32,
    pub(super) at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) known: Option<u64>,
    /// In a journal that was written again: whether it joined an evaluation of another task, which may have been cancelled since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) shared: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Ended {
    pub(super) accepted: Accepted,
    pub(super) at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<u64>,
    pub(super) shared: bool,
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

/// Why an evaluation is to be stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopReason {
    /// No task waits for it any more.
    Abandoned = 1,
    /// Its time is over.
    TimedOut = 2,
    /// The server ends.
    Drained = 3,
}

/// Stops an evaluation.
#[derive(Debug)]
pub(super) struct Stop {
    pub(super) began: Instant,
    pub(super) interrupted: Arc<AtomicBool>,
    reason: AtomicU8,
}

impl Default for Stop {
    fn default() -> Self {
        Stop { began: Instant::now(), interrupted: Arc::default(), reason: AtomicU8::new(0) }
    }
}

impl Stop {
    /// Stops it. The first reason counts.
    pub(super) fn set(&self, reason: StopReason) {
        // If there is a reason already, the flag is set already.
        let _ = self.reason.compare_exchange(0, reason as u8, Ordering::SeqCst, Ordering::SeqCst);
        self.interrupted.store(true, Ordering::SeqCst);
    }

    pub(super) fn reason(&self) -> Option<StopReason> {
        [StopReason::Abandoned, StopReason::TimedOut, StopReason::Drained]
            .into_iter()
            .find(|reason| *reason as u8 == self.reason.load(Ordering::SeqCst))
    }
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
}

/// An evaluation that begins.
pub(super) struct Begun {
    pub(super) content: Digest,
    pub(super) request: Place,
    pub(super) stop: Arc<Stop>,
    pub(super) log: Arc<ProgressLog>,
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
    next_task: u64,
    next_result: u64,
    unfinished: usize,
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
        self.entries.values().filter(|entry| entry.running.is_some()).count()
    }

    pub(super) fn next_result(&self) -> u64 {
        self.next_result
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
            self.live -= std::mem::replace(&mut entry.request, place).bytes();
            return;
        }
        let entry = Entry {
            request: place,
            tasks: vec![],
            log: Arc::default(),
            timeout_s: 0,
            priority: Priority::Low,
            running: None,
        };
        self.entries.insert(content, entry);
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
        self.insert(key, TaskState { number: self.next_task, accepted, shared, phase, ended: at.steady, rows });
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
            self.insert(key, TaskState { number: self.next_task, accepted, shared, phase, ended, rows: 0 });
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
        self.next_task += 1;
        let client = self.clients.entry(key.client.clone()).or_default();
        client.tasks.insert(task.number, key.id.clone());
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
        let entry = self.entries.remove(&content);
        self.live += place.bytes();
        self.results.insert(result, ResultState { place, verdict, content, tasks: 0, rows });
        if keeps {
            self.known.insert(content, result);
        }
        let Some(entry) = entry else { return };
        self.live -= entry.request.bytes();
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
                None => {
                    self.live -= entry.request.bytes();
                    self.entries.remove(&content);
                }
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
        }
    }

    /// The next evaluation, which runs from now on.
    pub(super) fn begin(&mut self) -> Option<Begun> {
        let entries = &self.entries;
        let content = self.queue.pop(|content| entries.get(content).is_some_and(|entry| entry.running.is_none()))?;
        let entry = self.entries.get_mut(&content)?;
        let stop = Arc::new(Stop::default());
        entry.running = Some(stop.clone());
        entry.log.clear();
        entry.log.changed();
        Some(Begun { content, request: entry.request.clone(), stop, log: entry.log.clone() })
    }

    /// An evaluation was stopped, and has no result. It waits again if a task still waits for it.
    pub(super) fn put_back(&mut self, content: Digest) {
        let Some(entry) = self.entries.get_mut(&content) else { return };
        entry.running = None;
        match entry.tasks.first() {
            Some(first) => self.queue.push(content, &first.client.clone(), entry.priority),
            None => {
                self.live -= entry.request.bytes();
                self.entries.remove(&content);
            }
        }
    }

    /// Removes from the queue what does not wait any more, if that is most of it: so contents that are accepted and cancelled do not fill it.
    fn compact(&mut self) {
        // A content that waits is in it at most once in each priority.
        if self.queue.len() > 4 * self.entries.len() + 64 {
            let entries = &self.entries;
            self.queue.compact(|content| entries.get(content).is_some_and(|entry| entry.running.is_none()));
        }
    }

    /// Forgets tasks that ended before `until`, and the oldest of more than `most` that have ended. The time is that of [`Moment::steady`].
    pub(super) fn forget(&mut self, until: i64, most: usize) -> usize {
        let mut count = 0;
        while let Some((at, key)) = self.ended.first_key_value().map(|(at, key)| (*at, key.clone())) {
            if at.0 >= until && self.ended.len() <= most {
                break;
            }
            self.remove(&key);
            count += 1;
        }
        count
    }

    /// Removes a task that has ended.
    fn remove(&mut self, key: &TaskKey) {
        let Some(task) = self.tasks.remove(key) else { return };
        self.ended.remove(&(task.ended, task.number));
        if let Some(client) = self.clients.get_mut(&key.client) {
            client.tasks.remove(&task.number);
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
    pub(super) fn forget_unused(&mut self) {
        let live = &mut self.live;
        self.entries.retain(|_, entry| {
            let is_used = !entry.tasks.is_empty() || entry.running.is_some();
            if !is_used {
                *live -= entry.request.bytes();
            }
            is_used
        });
        let unused: Vec<u64> = self.results.iter().filter(|(_, r)| r.tasks == 0).map(|(id, _)| *id).collect();
        for result in unused {
            if let Some(state) = self.results.get_mut(&result) {
                state.tasks = 1;
            }
            self.release(result);
        }
    }

    /// The state as rows: places of results and requests, which are copied, and new rows for tasks. The places of the copies are set by [`State::moved`].
    pub(super) fn rows(&self) -> Vec<Snapshot> {
        let mut results: Vec<&u64> = self.results.keys().collect();
        results.sort_unstable();
        let mut tasks: Vec<&TaskState> = self.tasks.values().collect();
        tasks.sort_unstable_by_key(|task| task.number);
        let mut rows: Vec<Snapshot> = vec![Snapshot::Row(Row::Format(FORMAT))];
        rows.extend(results.into_iter().map(|id| Snapshot::Result(*id, self.results[id].place.clone())));
        for task in &tasks {
            let ended = |at, result| Ended { accepted: task.accepted.clone(), at, result, shared: task.shared };
            match task.phase {
                TaskPhase::Done { result, at, .. } => rows.push(Snapshot::Row(Row::Ended(ended(at, Some(result))))),
                TaskPhase::Cancelled { at, .. } => rows.push(Snapshot::Row(Row::Ended(ended(at, None)))),
                TaskPhase::Waiting => {}
            }
        }
        let entries = self.entries.iter().filter(|(_, entry)| !entry.tasks.is_empty());
        rows.extend(entries.map(|(content, entry)| Snapshot::Request(*content, entry.request.clone())));
        let waiting = tasks.into_iter().filter(|task| task.phase == TaskPhase::Waiting);
        rows.extend(
            waiting.map(|task| Snapshot::Row(Row::Accepted(Accepted { shared: task.shared, ..task.accepted.clone() }))),
        );
        rows
    }

    /// The rows lie elsewhere now.
    pub(super) fn moved(&mut self, rows: Vec<Snapshot>, places: Vec<Place>) {
        for (row, place) in rows.into_iter().zip(places) {
            match row {
                Snapshot::Row(_) => {}
                Snapshot::Result(id, _) => {
                    if let Some(result) = self.results.get_mut(&id) {
                        result.place = place;
                    }
                }
                Snapshot::Request(content, _) => {
                    if let Some(entry) = self.entries.get_mut(&content) {
                        entry.request = place;
                    }
                }
            }
        }
    }

    /// Applies a row that was read. Returns false if it has a later version.
    pub(super) fn replay(&mut self, row: Row, place: Place) -> bool {
        match row {
            Row::Format(version) => return version <= FORMAT,
            Row::Request { content, .. } => self.add_request(content, place),
            Row::Accepted(accepted) => {
                let at = Moment::of_row(accepted.at);
                self.accept(accepted, at, 0);
            }
            Row::Finished { content, result, keeps, at, verdict, .. } => {
                self.finish(content, result, verdict, keeps, (Moment::of_row(at), 0), place);
            }
            Row::Cancelled { client, id, at } => self.cancel(&TaskKey { client, id }, Moment::of_row(at), 0),
            Row::Ended(ended) => self.add_ended(ended),
        }
        true
    }
}

/// A row of a snapshot.
pub(super) enum Snapshot {
    Row(Row),
    Result(u64, Place),
    Request(Digest, Place),
}

#[cfg(test)]
mod tests;
