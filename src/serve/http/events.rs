//! Server-sent events of a task. Knows what has been sent; each connection begins with everything that has happened.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;

use super::failure::Failure;
use super::{App, Caller, Id};
use crate::api::{Progress, Task, TaskStatus};
use crate::service::{Client, ProgressLog, Seen, Service};

/// How often a comment is sent, so that proxies keep the connection and the server sees that it is gone.
const PING: Duration = Duration::from_secs(15);

/// A task that is followed.
struct Following {
    service: Arc<Service>,
    client: Client,
    id: String,
    /// The log of the evaluation, also once that has ended.
    log: Option<Arc<ProgressLog>>,
    /// Which of its steps were sent.
    seen: Seen,
    status: Option<TaskStatus>,
    ready: VecDeque<Progress>,
    over: bool,
}

pub(super) async fn follow(State(app): State<App>, Caller(client): Caller, Id(id): Id) -> Result<Response, Failure> {
    app.service.task(&client, &id).await?;
    let following = Following {
        service: app.service.clone(),
        client,
        id,
        log: None,
        seen: Seen::default(),
        status: None,
        ready: VecDeque::new(),
        over: false,
    };
    let events = stream::unfold(following, |mut following| async move {
        let progress = following.next().await?;
        Some((Ok::<_, Infallible>(event(&progress)), following))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(PING)).into_response())
}

impl Following {
    async fn next(&mut self) -> Option<Progress> {
        let mut closing = self.service.closing();
        loop {
            if let Some(next) = self.ready.pop_front() {
                return Some(next);
            }
            if self.over || *closing.borrow() {
                return None;
            }
            if let Some(log) = self.service.log(&self.client, &self.id) {
                self.log = Some(log);
            }
            let mut changed = self.log.as_ref().map(|log| log.subscribe());
            // A task that is gone was kept for its time.
            let task = self.service.task(&self.client, &self.id).await.ok()?;
            self.see(task);
            if self.ready.is_empty() {
                let changed = changed.as_mut()?;
                tokio::select! {
                    _ = changed.changed() => {}
                    _ = closing.changed() => {}
                }
            }
        }
    }

    fn see(&mut self, task: Task) {
        let is_new = self.status != Some(task.status);
        if is_new && task.status == TaskStatus::Queued {
            self.ready.push_back(Progress::Queued);
        }
        // An evaluation that ended at once was not seen to run.
        if is_new && matches!(task.status, TaskStatus::Running) {
            self.ready.push_back(Progress::Running);
        }
        let steps = self.log.as_ref().map(|log| log.steps_after(&mut self.seen)).unwrap_or_default();
        self.ready.extend(steps.into_iter().map(Progress::Step));
        self.status = Some(task.status);
        match task.status {
            TaskStatus::Queued | TaskStatus::Running => {}
            TaskStatus::Done => self.ready.push_back(Progress::Done(Box::new(task))),
            TaskStatus::Cancelled => self.ready.push_back(Progress::Cancelled),
        }
        self.over = matches!(self.ready.back(), Some(Progress::Done(_) | Progress::Cancelled));
    }
}

fn event(progress: &Progress) -> Event {
    let name = match progress {
        Progress::Queued => "queued",
        Progress::Running => "running",
        Progress::Step(_) => "step",
        Progress::Done(_) => "done",
        Progress::Cancelled => "cancelled",
    };
    // What these types hold can always be written as JSON.
    Event::default().event(name).data(serde_json::to_string(progress).unwrap_or_default())
}
