//! The routes of kforge's own interface below `/v1`. [`super::routes`] describes them.

use std::time::Duration;

use axum::Router;
use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::failure::Failure;
use super::{App, Caller, Id, body, events, json_of};
use crate::api::{BatchAnswer, BatchEntry, ErrorCode, EvaluationRequest, MOST_IN_BATCH, Task, TaskList, TaskStatus};
use crate::service::is_over;

/// The longest time that a request waits for the end of a task, in seconds.
const LONGEST_WAIT: f64 = 3600.0;

/// The most tasks of a list.
const MOST_IN_LIST: usize = 1000;

/// The routes.
pub(super) fn router() -> Router<App> {
    Router::new()
        .route("/v1/evaluations", post(submit))
        .route("/v1/batches", post(submit_all))
        .route("/v1/tasks", get(list))
        .route("/v1/tasks/{id}", get(task).delete(cancel))
        .route("/v1/tasks/{id}/events", get(events::follow))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Waiting {
    #[serde(default)]
    wait: f64,
}

impl Waiting {
    fn longest(&self) -> Result<Duration, Failure> {
        if (0.0..=LONGEST_WAIT).contains(&self.wait) {
            return Ok(Duration::from_secs_f64(self.wait));
        }
        Err(Failure::new(
            ErrorCode::BadRequest,
            format!("`wait` is {}: expected 0 to {LONGEST_WAIT} seconds", self.wait),
        ))
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listing {
    status: Option<TaskStatus>,
    limit: Option<usize>,
    before: Option<u64>,
}

/// A [`crate::api::Batch`] whose evaluations are read one by one, so that one of a wrong form refuses no other.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UnreadBatch {
    evaluations: Vec<Box<RawValue>>,
}

impl UnreadBatch {
    fn read(&self) -> Vec<Result<EvaluationRequest, Failure>> {
        self.evaluations.iter().map(|text| body::parsed(text.get().as_bytes(), "the evaluation")).collect()
    }
}

/// The query of a request.
fn query<T>(found: Result<Query<T>, axum::extract::rejection::QueryRejection>) -> Result<T, Failure> {
    found.map(|Query(query)| query).map_err(|wrong| Failure::new(ErrorCode::BadRequest, wrong.body_text()))
}

type Rejected = axum::extract::rejection::QueryRejection;

async fn submit(
    State(app): State<App>,
    Caller(client): Caller,
    waiting: Result<Query<Waiting>, Rejected>,
    request: Request,
) -> Result<Response, Failure> {
    let longest = query(waiting)?.longest()?;
    let (parts, body) = request.into_parts();
    let (request, values) = body::counted::<EvaluationRequest>(&parts.headers, body, &app.limits, &client).await?;
    let mut task = app.service.submit(&client, request).await?;
    drop(values);
    if !is_over(task.status) && !longest.is_zero() {
        task = app.service.wait(&client, &task.id, longest).await?;
    }
    Ok(answer(&task))
}

/// A task that has ended is the answer; another one is accepted.
fn answer(task: &Task) -> Response {
    json_of(if is_over(task.status) { StatusCode::OK } else { StatusCode::ACCEPTED }, task)
}

async fn submit_all(State(app): State<App>, Caller(client): Caller, request: Request) -> Result<Response, Failure> {
    let (parts, body) = request.into_parts();
    let (batch, _values) = body::counted::<UnreadBatch>(&parts.headers, body, &app.limits, &client).await?;
    let count = batch.evaluations.len();
    if count == 0 || count > MOST_IN_BATCH {
        let why = format!("the batch has {count} evaluations: expected 1 to {MOST_IN_BATCH}");
        return Err(Failure::new(ErrorCode::BadRequest, why));
    }
    let read = tokio::task::spawn_blocking(move || batch.read()).await;
    // A panic there is a bug that has been printed.
    let read =
        read.map_err(|error| Failure::new(ErrorCode::BadRequest, format!("the batch cannot be parsed: {error}")))?;
    let (requests, wrong): (Vec<_>, Vec<_>) = read
        .into_iter()
        .map(|one| match one {
            Ok(request) => (Some(request), None),
            Err(failure) => (None, Some(failure)),
        })
        .unzip();
    let mut submitted = app.service.submit_all(&client, requests.into_iter().flatten().collect()).await.into_iter();
    let entry = |wrong: Option<Failure>| match wrong {
        Some(failure) => Some(BatchEntry::Error(failure.0)),
        None => submitted.next().map(|submitted| match submitted {
            Ok(task) => BatchEntry::Task(Box::new(task)),
            Err(refusal) => BatchEntry::Error(Failure::from(refusal).0),
        }),
    };
    Ok(json_of(StatusCode::OK, &BatchAnswer { tasks: wrong.into_iter().filter_map(entry).collect() }))
}

async fn task(
    State(app): State<App>,
    Caller(client): Caller,
    Id(id): Id,
    waiting: Result<Query<Waiting>, Rejected>,
) -> Result<Response, Failure> {
    let longest = query(waiting)?.longest()?;
    Ok(json_of(StatusCode::OK, &app.service.wait(&client, &id, longest).await?))
}

async fn cancel(State(app): State<App>, Caller(client): Caller, Id(id): Id) -> Result<Response, Failure> {
    Ok(json_of(StatusCode::OK, &app.service.cancel(&client, &id).await?))
}

async fn list(
    State(app): State<App>,
    Caller(client): Caller,
    listing: Result<Query<Listing>, Rejected>,
) -> Result<Response, Failure> {
    let Listing { status, limit, before } = query(listing)?;
    let limit = limit.unwrap_or(100).clamp(1, MOST_IN_LIST);
    let list: TaskList = app.service.list(&client, status, limit, before);
    Ok(json_of(StatusCode::OK, &list))
}
