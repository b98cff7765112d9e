//! The rows of the journal: what they hold, the state as rows, and rows as changes of the state.
//!
//! Fields are only added, and have defaults. Requests and results are in rows as the text that they had, so that a later kforge with other fields reads them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Moment, Place, State, TaskKey, TaskPhase, TaskState};
use crate::api::{Measure, Priority, VerdictWord};
use kforge_foundation::base::Digest;

/// The version of the journal's rows.
pub(in crate::service) const FORMAT: u32 = 1;

/// A row of the journal. Times are milliseconds since 1970.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::service) enum Row {
    /// The version of the rows; the first one.
    Format(u32),
    /// What is evaluated. Precedes the first task that waits for it.
    Request { content: Digest, request: Box<RawValue> },
    /// A task was accepted. `known` is the result that it has already.
    Accepted(Accepted),
    /// An evaluation began, perhaps once more because a worker was killed. One that neither ends nor stops was running when the server ended.
    Began { content: Digest },
    /// An evaluation that began was stopped, and waits again or is abandoned.
    Stopped { content: Digest },
    /// An evaluation ended: so have all tasks that wait for it. `keeps` says that the result answers later tasks as well.
    Finished { content: Digest, result: u64, keeps: bool, at: i64, verdict: VerdictWord, value: Box<RawValue> },
    /// A task was cancelled.
    Cancelled { client: Arc<str>, id: Arc<str>, at: i64 },
    /// A task that has ended, in a journal that was written again.
    Ended(Ended),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::service) struct Accepted {
    pub(in crate::service) client: Arc<str>,
    pub(in crate::service) id: Arc<str>,
    /// Tasks have numbers in the order in which they were accepted.
    pub(in crate::service) number: u64,
    pub(in crate::service) content: Digest,
    pub(in crate::service) measure: Measure,
    pub(in crate::service) priority: Priority,
    pub(in crate::service) timeout_s: u32,
    pub(in crate::service) at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::service) known: Option<u64>,
    /// In a journal that was written again: whether it joined an evaluation of another task, which may have been cancelled since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::service) shared: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::service) struct Ended {
    pub(in crate::service) accepted: Accepted,
    pub(in crate::service) at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::service) result: Option<u64>,
    pub(in crate::service) shared: bool,
}

impl State {
    /// The state as rows: places of results and requests, which are copied, and new rows for tasks.
    pub(in crate::service) fn rows(&self) -> Vec<Snapshot> {
        let mut results: Vec<&u64> = self.results.keys().collect();
        results.sort_unstable();
        let mut tasks: Vec<&TaskState> = self.tasks.values().collect();
        tasks.sort_unstable_by_key(|task| task.number);
        let mut rows: Vec<Snapshot> = vec![Snapshot::Row(Row::Format(FORMAT))];
        rows.extend(results.into_iter().map(|id| Snapshot::Copy(self.results[id].place.clone())));
        for task in &tasks {
            let ended = |at, result| Ended { accepted: task.accepted.clone(), at, result, shared: task.shared };
            match task.phase {
                TaskPhase::Done { result, at, .. } => rows.push(Snapshot::Row(Row::Ended(ended(at, Some(result))))),
                TaskPhase::Cancelled { at, .. } => rows.push(Snapshot::Row(Row::Ended(ended(at, None)))),
                TaskPhase::Waiting => {}
            }
        }
        let entries = self.entries.iter().filter(|(_, entry)| !entry.tasks.is_empty());
        for (content, entry) in entries {
            rows.push(Snapshot::Copy(entry.request.clone()));
            rows.extend((0..entry.begun).map(|_| Snapshot::Row(Row::Began { content: *content })));
        }
        let waiting = tasks.into_iter().filter(|task| task.phase == TaskPhase::Waiting);
        rows.extend(
            waiting.map(|task| Snapshot::Row(Row::Accepted(Accepted { shared: task.shared, ..task.accepted.clone() }))),
        );
        rows
    }

    /// Applies a row that was read. Returns false if it has a later version.
    pub(in crate::service) fn replay(&mut self, row: Row, place: Place) -> bool {
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
            Row::Began { content } => self.began(content),
            Row::Stopped { content } => self.put_back(content),
        }
        true
    }
}

/// A row of a snapshot.
pub(in crate::service) enum Snapshot {
    Row(Row),
    Copy(Place),
}
