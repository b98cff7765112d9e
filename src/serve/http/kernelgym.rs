//! KernelGYM's interface below `/kernelgym`, for its clients as they are. Calls [`crate::service`] only.
//!
//! | decision | because |
//! |---|---|
//! | a task is found by its id, and an id has one content | the same id with other code is a conflict, and never the old result |
//! | a task whose result another run could change runs again when it is sent again | a fault of a moment must not stay under an id |
//! | a reference is described once, whoever sends it, and no more than a few at once | it takes seconds and a process |
//! | a client that may have no more tasks is refused before its sources are read | that takes a process, and others wait for it |
//! | what cannot be evaluated, such as a module that cannot be a reference, has an answer and no task | nothing is lost with it: the request had its answer |
//! | entries of a batch run in parallel, and one that is wrong fails by itself | so do tasks of the service |
//! | an entry of a batch waits for its place in the queue | KernelGYM's client sends no entry again |

mod answer;
mod decoy;
mod request;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Extension, Router};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use self::answer::{GymAnswer, GymCode, GymStatus};
use self::request::{GymBatch, GymRequest, WorkflowRequest, WrongField};
use super::described::{self, ByClient, Kept, Processes, References};
use super::failure::Failure;
use super::{App, Caller, Id, body, json_of};
use crate::api::ErrorCode;
use crate::service::{Client, is_over};
use kforge_foundation::base::Digest;

/// The most tasks of a batch.
const MOST_IN_BATCH: usize = 100;

/// The longest time that a request waits for its evaluation: the longest that one may take, and some time in the queue.
const LONGEST: Duration = Duration::from_secs(2 * 3600);

/// The bytes of what is kept about an id besides its answer's text.
const ENTRY: usize = 512;

/// What the interface keeps besides the service.
#[derive(Default)]
struct Gym {
    references: References,
    /// What reads the sources of candidates.
    readers: Processes,
    /// Why sources are not Python; none for those that are. By digest.
    syntax: Mutex<Kept<Digest, Option<String>>>,
    /// What ids were used for.
    asked: ByClient<Entry>,
}

/// What an id was used for.
#[derive(Clone)]
struct Entry {
    /// The digest of the request.
    content: Digest,
    /// The answer about what was not evaluated; none for a task.
    answer: Option<GymAnswer>,
}

/// The routes.
pub(super) fn router() -> Router<App> {
    Router::new()
        .route("/kernelgym/evaluate", post(evaluate))
        .route("/kernelgym/evaluate/batch", post(batch))
        .route("/kernelgym/workflow/submit", post(submit))
        .route("/kernelgym/workflow/results/{id}", get(results))
        .route("/kernelgym/status/{id}", get(status))
        .route("/kernelgym/results/{id}", get(results))
        .route("/kernelgym/tasks/{id}", delete(cancel))
        .route("/kernelgym/health", get(health))
        .route("/kernelgym/metrics", get(metrics))
        .route("/kernelgym/queue/status", get(queue))
        .route("/kernelgym/workers/status", get(workers))
        .layer(Extension(Arc::new(Gym::default())))
}

/// An error in the form of KernelGYM.
enum GymFailure {
    Refused(Failure),
    Wrong(WrongField),
}

impl From<Failure> for GymFailure {
    fn from(failure: Failure) -> Self {
        GymFailure::Refused(failure)
    }
}

impl From<crate::service::Refusal> for GymFailure {
    fn from(refusal: crate::service::Refusal) -> Self {
        GymFailure::Refused(refusal.into())
    }
}

impl GymFailure {
    fn parts(&self) -> (GymCode, String) {
        match self {
            GymFailure::Refused(Failure(error)) => (GymCode::of_refusal(error.code), error.message.clone()),
            GymFailure::Wrong(wrong) => (GymCode::ValidationError, format!("`{}`: {}", wrong.field, wrong.expected)),
        }
    }
}

impl IntoResponse for GymFailure {
    fn into_response(self) -> Response {
        let (code, message) = self.parts();
        match self {
            GymFailure::Wrong(WrongField { field, expected }) => {
                let detail = json!([{ "loc": ["body", field], "msg": expected, "type": "value_error" }]);
                json_of(StatusCode::UNPROCESSABLE_ENTITY, &json!({ "detail": detail, "error_code": code }))
            }
            GymFailure::Refused(failure) => {
                let seconds = failure.0.retry_after_s;
                let mut response = json_of(failure.status(), &json!({ "detail": message, "error_code": code }));
                if let Some(seconds) = seconds {
                    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
                }
                response
            }
        }
    }
}

/// Whoever sends a request. A request without a known token ends here, in the form of KernelGYM.
struct GymCaller(Client);

impl axum::extract::FromRequestParts<App> for GymCaller {
    type Rejection = GymFailure;

    async fn from_request_parts(parts: &mut axum::http::request::Parts, app: &App) -> Result<Self, GymFailure> {
        let Caller(client) = Caller::from_request_parts(parts, app).await?;
        Ok(GymCaller(client))
    }
}

/// The name of the interface in the ids of the service.
const NAME: &str = "gym";

/// The newest run of a task.
async fn newest(app: &App, client: &Client, id: &str) -> Result<Option<described::Run>, GymFailure> {
    Ok(described::newest(app, client, NAME, id).await?)
}

/// The id in a path.
struct GymId(String);

impl axum::extract::FromRequestParts<App> for GymId {
    type Rejection = GymFailure;

    async fn from_request_parts(parts: &mut axum::http::request::Parts, app: &App) -> Result<Self, GymFailure> {
        let Id(id) = Id::from_request_parts(parts, app).await?;
        Ok(GymId(id))
    }
}

/// What became of a request.
enum Begun {
    /// It is a task: its id, and the one under which the service keeps it.
    Task { id: String, kept: String },
    /// It cannot be evaluated.
    Answer(Box<GymAnswer>),
}

impl Gym {
    /// Why a source is not Python. Where nothing can say it, its evaluation will.
    async fn not_python(&self, app: &App, client: &Client, source: &str) -> Result<Option<String>, Failure> {
        let digest = Digest::of(source.as_bytes());
        let known = self.syntax.lock().unwrap_or_else(PoisonError::into_inner).get(&digest);
        if let Some(known) = known {
            return Ok(known);
        }
        let _admitted = self.readers.admit(app, client)?;
        let text = source.to_string();
        let Ok(found) = self.readers.run(app, client, move |service| service.not_python(&text)).await else {
            return Ok(None);
        };
        let bytes = found.as_ref().map_or(0, String::len);
        self.syntax.lock().unwrap_or_else(PoisonError::into_inner).put(digest, found.clone(), bytes, |_| false);
        Ok(found)
    }

    fn keep(&self, client: &Client, id: &str, entry: Entry) {
        let text = entry.answer.as_ref().and_then(|answer| answer.error_message.as_ref()).map_or(0, String::len);
        self.asked.put(client, id, entry, ENTRY + text, |_| false);
    }

    /// Submits a request. Its task is on disk when this returns.
    async fn begin(&self, app: &App, client: &Client, request: GymRequest) -> Result<Begun, GymFailure> {
        let (id, content) = (request.task_id.clone(), request.content());
        let run = newest(app, client, &id).await?;
        // What is left of a task that was forgotten says nothing.
        let entry = self.asked.get(client, &id).filter(|entry| entry.answer.is_some() || run.is_some());
        let is_same = entry.as_ref().map(|entry| entry.content == content);
        let conflict = || {
            let why = format!("the id `{id}` belongs to a task with another content: choose another id");
            Err(Failure::new(ErrorCode::Conflict, why).into())
        };
        let task = |kept: &str| Ok(Begun::Task { id: id.clone(), kept: kept.into() });
        match (is_same, &run) {
            (Some(false), _) => return conflict(),
            (Some(true), Some(run)) if !run.can_change() => return task(&run.id),
            _ => {}
        }
        let refused = |status, code, message| match (&run, is_same) {
            // What was evaluated under this id was this candidate, when it could be.
            (Some(run), Some(true)) => task(&run.id),
            // It was another one: this one is never evaluated.
            (Some(_), _) => conflict(),
            (None, _) => {
                let answer = GymAnswer::not_evaluated(&id, status, code, message);
                self.keep(client, &id, Entry { content, answer: Some(answer.clone()) });
                Ok(Begun::Answer(Box::new(answer)))
            }
        };
        let text = request.reference();
        let digest = Digest::of(text.as_bytes());
        let described = self.references.package(app, client, digest, move |service| service.reference(&text)).await?;
        let reference = match described {
            Ok(Ok(reference)) => reference,
            Ok(Err((kind, message))) => {
                let message = format!("the reference: {message}");
                return refused(GymStatus::Completed, GymCode::of_reference(&kind), message);
            }
            // Nothing says whether the candidate is the one that was evaluated under this id before a restart.
            Err(why) if run.is_some() && is_same.is_none() => {
                let mut failure = Failure::new(ErrorCode::QueueFull, why);
                failure.0.retry_after_s = Some(30);
                return Err(failure.into());
            }
            Err(why) => return refused(GymStatus::Failed, GymCode::ResourceError, why),
        };
        if let Some(message) = self.not_python(app, client, &request.kernel_code).await? {
            return refused(GymStatus::Completed, GymCode::SyntaxError, message);
        }
        let is_decoy = decoy::is_decoy(&request.kernel_code, request.backend);
        let device = app.service.first_device();
        let evaluation = request.evaluation(&reference, is_decoy, device.as_ref());
        let kept = described::submit(app, client, (NAME, &id), evaluation).await?;
        self.keep(client, &id, Entry { content, answer: None });
        Ok(Begun::Task { id, kept })
    }

    /// The answer to a request, once there is one.
    async fn evaluated(&self, app: &App, client: &Client, request: GymRequest) -> Result<GymAnswer, GymFailure> {
        match self.begin(app, client, request).await? {
            Begun::Answer(answer) => Ok(*answer),
            Begun::Task { id, kept } => Ok(GymAnswer::of(&id, &app.service.wait(client, &kept, LONGEST).await?)),
        }
    }

    /// The answer to an entry of a batch. It waits for its place in the queue.
    async fn entry(&self, app: &App, client: &Client, value: Value) -> Result<GymAnswer, GymFailure> {
        let request = GymRequest::of(value).map_err(GymFailure::Wrong)?;
        let until = tokio::time::Instant::now() + LONGEST;
        loop {
            let failure = match self.evaluated(app, client, request.clone()).await {
                Err(GymFailure::Refused(failure)) => failure,
                ended => return ended,
            };
            let is_full = matches!(failure.0.code, ErrorCode::QueueFull | ErrorCode::ClientLimit);
            let pause = Duration::from_secs(failure.0.retry_after_s.unwrap_or(1));
            if !is_full || *app.service.closing().borrow() || tokio::time::Instant::now() + pause > until {
                return Err(failure.into());
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// The answer about an id, as it is now.
    async fn found(&self, app: &App, client: &Client, id: &str) -> Result<GymAnswer, GymFailure> {
        if let Some(run) = newest(app, client, id).await? {
            return Ok(GymAnswer::of(id, &run.task));
        }
        let answer = self.asked.get(client, id).and_then(|entry| entry.answer);
        answer.ok_or_else(|| Failure::new(ErrorCode::NotFound, format!("there is no task `{id}`")).into())
    }
}

async fn read<T: serde::de::DeserializeOwned + Send + 'static>(
    app: &App,
    client: &Client,
    request: Request,
) -> Result<T, GymFailure> {
    let (parts, body) = request.into_parts();
    Ok(body::json(&parts.headers, body, &app.limits, client).await?)
}

async fn evaluate(
    State(app): State<App>,
    Extension(gym): Extension<Arc<Gym>>,
    GymCaller(client): GymCaller,
    request: Request,
) -> Result<Response, GymFailure> {
    let request = GymRequest::of(read(&app, &client, request).await?).map_err(GymFailure::Wrong)?;
    Ok(json_of(StatusCode::OK, &gym.evaluated(&app, &client, request).await?))
}

async fn batch(
    State(app): State<App>,
    Extension(gym): Extension<Arc<Gym>>,
    GymCaller(client): GymCaller,
    request: Request,
) -> Result<Response, GymFailure> {
    let GymBatch { batch_id, tasks } = read(&app, &client, request).await?;
    if tasks.is_empty() || tasks.len() > MOST_IN_BATCH {
        let expected = format!("expected 1 to {MOST_IN_BATCH} tasks");
        return Err(GymFailure::Wrong(WrongField { field: "tasks", expected }));
    }
    let count = tasks.len();
    let mut running = JoinSet::new();
    for (at, value) in tasks.into_iter().enumerate() {
        let (app, gym, client) = (app.clone(), gym.clone(), client.clone());
        running.spawn(async move {
            let id = value.get("task_id").and_then(Value::as_str).unwrap_or_default().to_string();
            let answer = gym.entry(&app, &client, value).await.unwrap_or_else(|failure| {
                let (code, message) = failure.parts();
                GymAnswer::not_evaluated(&id, GymStatus::Failed, code, message)
            });
            (at, answer)
        });
    }
    // A panic there is a bug that has been printed, and its entry is missing.
    let mut results: Vec<(usize, GymAnswer)> = vec![];
    while let Some(ended) = running.join_next().await {
        results.extend(ended.ok());
    }
    results.sort_by_key(|(at, _)| *at);
    let completed = results.iter().filter(|(_, answer)| answer.status == GymStatus::Completed).count();
    let results: Vec<GymAnswer> = results.into_iter().map(|(_, answer)| answer).collect();
    Ok(json_of(
        StatusCode::OK,
        &json!({
            "batch_id": batch_id, "status": "completed", "total_tasks": count, "completed_tasks": completed,
            "failed_tasks": count - completed, "results": results,
        }),
    ))
}

async fn submit(
    State(app): State<App>,
    Extension(gym): Extension<Arc<Gym>>,
    GymCaller(client): GymCaller,
    request: Request,
) -> Result<Response, GymFailure> {
    let WorkflowRequest { workflow, mut payload, task_id } = read(&app, &client, request).await?;
    if workflow.as_deref().is_some_and(|name| name != "kernelbench") {
        return Err(GymFailure::Wrong(WrongField { field: "workflow", expected: "expected `kernelbench`".into() }));
    }
    if let Some(id) = task_id {
        payload.insert("task_id".into(), id.into());
    }
    if !payload.contains_key("task_id") {
        let text = Value::Object(payload.clone()).to_string();
        payload.insert("task_id".into(), Digest::of(text.as_bytes()).hex().into());
    }
    let request = GymRequest::of(Value::Object(payload)).map_err(GymFailure::Wrong)?;
    let answer = match gym.begin(&app, &client, request).await? {
        Begun::Answer(answer) => {
            json!({ "task_id": answer.task_id, "status": answer.status, "workflow": "kernelbench" })
        }
        Begun::Task { id, .. } => {
            let answer = gym.found(&app, &client, &id).await?;
            json!({ "task_id": id, "status": answer.status, "workflow": "kernelbench" })
        }
    };
    Ok(json_of(StatusCode::OK, &answer))
}

async fn status(
    State(app): State<App>,
    Extension(gym): Extension<Arc<Gym>>,
    GymCaller(client): GymCaller,
    GymId(id): GymId,
) -> Result<Response, GymFailure> {
    let answer = gym.found(&app, &client, &id).await?;
    let GymAnswer { task_id, status, error_message, error_code, .. } = &answer;
    let value =
        json!({ "task_id": task_id, "status": status, "error_message": error_message, "error_code": error_code });
    Ok(json_of(StatusCode::OK, &value))
}

async fn results(
    State(app): State<App>,
    Extension(gym): Extension<Arc<Gym>>,
    GymCaller(client): GymCaller,
    GymId(id): GymId,
) -> Result<Response, GymFailure> {
    let answer = gym.found(&app, &client, &id).await?;
    let is_there = !matches!(answer.status, GymStatus::Pending | GymStatus::Processing);
    Ok(json_of(if is_there { StatusCode::OK } else { StatusCode::ACCEPTED }, &answer))
}

async fn cancel(
    State(app): State<App>,
    Extension(gym): Extension<Arc<Gym>>,
    GymCaller(client): GymCaller,
    GymId(id): GymId,
) -> Result<Response, GymFailure> {
    let has_ended = match newest(&app, &client, &id).await? {
        Some(run) => is_over(app.service.cancel(&client, &run.id).await?.status),
        // It was refused, so nothing waits.
        None => true,
    };
    let answer = gym.found(&app, &client, &id).await?;
    Ok(json_of(StatusCode::OK, &json!({ "task_id": id, "status": answer.status, "ended": has_ended })))
}

async fn health(State(app): State<App>) -> Response {
    let health = app.service.health();
    let is_ready = app.service.is_ready();
    let status = if is_ready { "healthy" } else { "unhealthy" };
    let value = json!({
        "status": status, "version": health.kforge, "devices": health.devices, "queue_size": health.queued,
        "processing": health.running,
    });
    json_of(if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, &value)
}

async fn metrics(State(app): State<App>, GymCaller(_): GymCaller) -> Response {
    let health = app.service.health();
    json_of(StatusCode::OK, &json!({ "pending_tasks": health.queued, "processing_tasks": health.running }))
}

async fn queue(State(app): State<App>, GymCaller(_): GymCaller) -> Response {
    let health = app.service.health();
    json_of(StatusCode::OK, &json!({ "total": health.queued, "processing": health.running }))
}

async fn workers(State(app): State<App>, GymCaller(_): GymCaller) -> Response {
    let health = app.service.health();
    let status = if health.running > 0 { "busy" } else { "idle" };
    let worker =
        |(at, device): (usize, &String)| json!({ "worker_id": at.to_string(), "device": device, "status": status });
    let workers: Vec<Value> = health.devices.iter().enumerate().map(worker).collect();
    json_of(StatusCode::OK, &json!({ "total_workers": workers.len(), "workers": workers }))
}
