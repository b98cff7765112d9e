//! What clients see of tasks, and cancelling one.

use std::sync::Arc;
use std::time::Duration;

use super::clock::Moment;
use super::journal::Place;
use super::state::{Accepted, Row, State, TaskKey, TaskPhase, TaskState};
use super::summary::Summary;
use super::{Client, Inner, LARGE, ProgressLog, Refusal, Service, clock};
use crate::api::{Cause, EvaluationResult, Task, TaskList, TaskStatus, TaskSummary};

/// The most tasks that are looked at for one list.
const MOST_LOOKED_AT: usize = 10_000;

/// The result of a task whose row cannot be read as one.
const UNREADABLE: &str =
    "the result was stored by another kforge, and cannot be read: send the request again under another id";

impl Service {
    /// A task as its client sees it.
    ///
    /// # Errors
    /// There is no such task, or its result cannot be read.
    pub async fn task(&self, client: &Client, id: &str) -> Result<Task, Refusal> {
        self.seen(&TaskKey { client: client.0.clone(), id: id.into() }).await
    }

    pub(super) async fn seen(&self, key: &TaskKey) -> Result<Task, Refusal> {
        let (mut task, place, rows) = {
            let inner = self.lock();
            let found = inner.state.task(key).ok_or_else(|| Refusal::NoTask(key.id.to_string()))?;
            let (place, rows) = match found.phase {
                TaskPhase::Waiting => (None, 0),
                TaskPhase::Cancelled { rows, .. } => (None, rows),
                TaskPhase::Done { result, rows, .. } => (inner.state.result(result).map(|of| of.place.clone()), rows),
            };
            (view(&inner.state, found), place, rows)
        };
        // What is shown is on disk.
        if !self.synced.clone().reaches(rows).await {
            return Err(Refusal::Storage("its journal cannot be written to disk".into()));
        }
        if let Some(place) = place {
            let read = match place.bytes() > LARGE {
                true => tokio::task::spawn_blocking(move || read(&place)).await.map_err(|_| Refusal::Draining)?,
                false => read(&place),
            };
            task.result = Some(read?);
        }
        Ok(task)
    }

    /// A task when it has ended, or after so long.
    ///
    /// # Errors
    /// Same as [`Service::task`].
    pub async fn wait(&self, client: &Client, id: &str, longest: Duration) -> Result<Task, Refusal> {
        let until = tokio::time::Instant::now() + longest;
        let mut closing = self.closing.subscribe();
        loop {
            let log = self.log(client, id);
            let mut changed = log.as_ref().map(|log| log.subscribe_to_status());
            let task = self.task(client, id).await?;
            let Some(changed) = changed.as_mut().filter(|_| !is_over(task.status) && !*closing.borrow()) else {
                return Ok(task);
            };
            tokio::select! {
                _ = changed.changed() => {}
                _ = closing.changed() => {}
                () = tokio::time::sleep_until(until) => return self.task(client, id).await,
            }
        }
    }

    /// The progress of a task's evaluation; none if it has ended or there is no such task.
    pub fn log(&self, client: &Client, id: &str) -> Option<Arc<ProgressLog>> {
        let inner = self.lock();
        let task = inner.state.task(&TaskKey { client: client.0.clone(), id: id.into() })?;
        let is_waiting = task.phase == TaskPhase::Waiting;
        is_waiting.then(|| inner.state.entries.get(&task.accepted.content).map(|entry| entry.log.clone()))?
    }

    /// Cancels a task, unless it has ended.
    ///
    /// # Errors
    /// There is no such task, or the journal cannot be written.
    pub async fn cancel(&self, client: &Client, id: &str) -> Result<Task, Refusal> {
        let key = TaskKey { client: client.0.clone(), id: id.into() };
        self.change(|Inner { state, journal }| {
            if state.is_waiting(&key) {
                let at = Moment::now();
                let row = Row::Cancelled { client: key.client.clone(), id: key.id.clone(), at: at.wall };
                let (_, rows) = journal.append(&row).map_err(|error| Refusal::Storage(error.to_string()))?;
                state.cancel(&key, at, rows);
                journal.sync();
                self.metrics.cancelled.add();
            }
            Ok::<_, Refusal>(())
        })?;
        self.seen(&key).await
    }

    /// Tasks of a client, the newest first: at most `limit` with this status, of those below `before`. If few have it, the list can end early; its `next` then
    /// goes on.
    pub fn list(&self, client: &Client, status: Option<TaskStatus>, limit: usize, before: Option<u64>) -> TaskList {
        let inner = self.lock();
        listed(&inner.state, client, status, (limit, MOST_LOOKED_AT), before)
    }
}

fn listed(
    state: &State,
    client: &Client,
    status: Option<TaskStatus>,
    (limit, most): (usize, usize),
    before: Option<u64>,
) -> TaskList {
    let mut found = state.tasks_of(&client.0, before.unwrap_or(u64::MAX)).peekable();
    let (mut tasks, mut last) = (vec![], None);
    for task in found.by_ref().take(most) {
        last = Some(task.number);
        if status.is_none_or(|wanted| state.status(task) == wanted) {
            tasks.push(summary_of(state, task));
            if tasks.len() >= limit {
                break;
            }
        }
    }
    let next = last.filter(|_| found.peek().is_some());
    TaskList { tasks, next }
}

/// The result in a row.
fn read(place: &Place) -> Result<EvaluationResult, Refusal> {
    let row = place.read::<Row>().map_err(|error| Refusal::Storage(error.to_string()))?;
    let Row::Finished { value, .. } = row else {
        return Err(Refusal::Storage("a row of its journal is not a result".into()));
    };
    let unreadable = |_| Summary::without_report(Cause::Internal, UNREADABLE.into(), vec![]).result;
    Ok(serde_json::from_str(value.get()).unwrap_or_else(unreadable))
}

/// Whether a task has ended.
pub(crate) fn is_over(status: TaskStatus) -> bool {
    matches!(status, TaskStatus::Done | TaskStatus::Cancelled)
}

/// A task without its result.
fn view(state: &State, task: &TaskState) -> Task {
    let Accepted { id, content, measure, priority, at, .. } = &task.accepted;
    let finished = match task.phase {
        TaskPhase::Waiting => None,
        TaskPhase::Done { at, .. } | TaskPhase::Cancelled { at, .. } => Some(clock::text(at)),
    };
    Task {
        id: id.to_string(),
        status: state.status(task),
        content: content.hex(),
        measure: *measure,
        priority: *priority,
        submitted_at: clock::text(*at),
        finished_at: finished,
        shared: task.shared,
        result: None::<EvaluationResult>,
    }
}

fn summary_of(state: &State, task: &TaskState) -> TaskSummary {
    let verdict = match task.phase {
        TaskPhase::Done { result, .. } => state.result(result).map(|of| of.verdict),
        TaskPhase::Waiting | TaskPhase::Cancelled { .. } => None,
    };
    TaskSummary {
        id: task.accepted.id.to_string(),
        status: state.status(task),
        priority: task.accepted.priority,
        submitted_at: clock::text(task.accepted.at),
        verdict,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Measure, Priority};
    use crate::service::state::Ended;
    use kforge_foundation::base::Digest;

    #[test]
    fn a_list_looks_at_so_many_tasks_and_says_where_it_goes_on() {
        let (mut state, client) = (State::default(), Client::new("c"));
        for number in 0..25 {
            let accepted = Accepted {
                client: client.0.clone(),
                id: number.to_string().into(),
                number,
                content: Digest::of(b""),
                measure: Measure::Verify,
                priority: Priority::Low,
                timeout_s: 1,
                at: 0,
                known: None,
                shared: false,
            };
            state.add_ended(Ended { accepted, at: 0, result: None, shared: false });
        }
        let list = |status, before| listed(&state, &client, Some(status), (7, 10), before);
        let none = list(TaskStatus::Done, None);
        assert_eq!((none.tasks.len(), none.next), (0, Some(15)));
        assert_eq!(list(TaskStatus::Done, none.next).next, Some(5));
        assert_eq!(list(TaskStatus::Done, Some(5)).next, None);
        let (mut seen, mut before) = (0, None);
        loop {
            let part = list(TaskStatus::Cancelled, before);
            (seen, before) = (seen + part.tasks.len(), part.next);
            if before.is_none() {
                break;
            }
        }
        assert_eq!(seen, 25);
    }
}
