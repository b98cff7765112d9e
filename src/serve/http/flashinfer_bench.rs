//! The interface of `flashinfer-bench serve` below `/flashinfer-bench`, for a dataset in FlashInfer-Trace's form. Calls [`crate::service`] only.
//!
//! | decision | because |
//! |---|---|
//! | a solution is a kernel in PyTorch, called as its reference | so are solutions in Python and Triton that return their outputs |
//! | a solution that cannot be called has failed as a task | the dataset has no status for it |
//! | a task whose result another run could change runs again when it is sent again | a fault of a moment must not stay under the digest of a request |
//! | nobody drains or ends the server by a request | signals do, and a client must not end another one's server |

mod dataset;
mod solution;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Router};
use serde::Deserialize;
use serde_json::{Value, json};

pub use self::dataset::{TraceSet, TraceSetError};
use self::solution::{Solution, traces};
use super::described::{self, ByClient, References};
use super::failure::Failure;
use super::{App, Caller, Id, body, json_of};
use crate::api::{ErrorCode, HealthStatus, Task, TaskStatus};
use crate::service::{Client, Service, is_over};
use kforge_foundation::base::Digest;

/// The longest wait for the end of a task, in seconds.
const LONGEST: f64 = 3600.0;

/// The most tasks that one request asks for.
const MOST_IN_BATCH: usize = 100;

/// What the interface keeps besides the service.
struct Bench {
    set: Arc<TraceSet>,
    references: References,
    /// What tasks were asked for.
    asked: ByClient<Arc<Asked>>,
    began: SystemTime,
}

/// What a task was asked for.
struct Asked {
    definition: String,
    solution: String,
    /// By uuid.
    workloads: Vec<String>,
    /// Why it is no task of the service.
    failed: Option<String>,
    /// The digest of the request.
    content: Digest,
    /// The id under which the service keeps its newest run; none if it is no task of the service.
    kept: Option<String>,
}

impl Asked {
    /// About how many bytes it takes.
    fn size(&self) -> usize {
        let texts = [Some(&self.definition), Some(&self.solution), self.failed.as_ref(), self.kept.as_ref()];
        256 + texts.into_iter().flatten().chain(&self.workloads).map(|text| text.len() + 24).sum::<usize>()
    }
}

/// The routes for a dataset.
pub(super) fn router(set: Arc<TraceSet>) -> Router<App> {
    let bench = Bench { set, references: References::default(), asked: ByClient::default(), began: SystemTime::now() };
    Router::new()
        .route("/flashinfer-bench/definitions", get(definitions))
        .route("/flashinfer-bench/definitions/{name}", get(definition))
        .route("/flashinfer-bench/definitions/{name}/workloads", get(workloads))
        .route("/flashinfer-bench/workloads/{uuid}", get(workload))
        .route("/flashinfer-bench/evaluate", post(evaluate))
        .route("/flashinfer-bench/tasks/{id}", get(task))
        .route("/flashinfer-bench/tasks/batch", post(tasks))
        .route("/flashinfer-bench/health", get(health))
        .layer(Extension(Arc::new(bench)))
}

#[derive(Debug, Deserialize)]
struct Evaluate {
    solution: Value,
    #[serde(default)]
    workload_uuids: Option<Vec<String>>,
    #[serde(default)]
    task_id: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Waiting {
    #[serde(default)]
    timeout: f64,
}

#[derive(Debug, Deserialize)]
struct Tasks {
    task_ids: Vec<String>,
    #[serde(default)]
    timeout: f64,
}

/// The name of the interface in the ids of the service.
const NAME: &str = "flashinfer";

fn not_found(what: &str, name: &str) -> Failure {
    Failure::new(ErrorCode::NotFound, format!("there is no {what} `{name}`"))
}

impl Bench {
    /// Submits a solution.
    async fn submit(&self, app: &App, client: &Client, request: Evaluate) -> Result<Value, Failure> {
        let wrong = |why: String| Failure::new(ErrorCode::BadRequest, why);
        let content = Digest::of(format!("{} {:?}", request.solution, request.workload_uuids).as_bytes());
        let solution: Solution =
            serde_json::from_value(request.solution).map_err(|error| wrong(format!("`solution`: {error}")))?;
        let definition = self.set.definitions.get(&solution.definition);
        let definition =
            definition.ok_or_else(|| wrong(format!("there is no definition `{}`", solution.definition)))?;
        let known = |uuid: &&String| definition.workloads.iter().any(|(known, _)| known == *uuid);
        if let Some(unknown) = request.workload_uuids.iter().flatten().find(|uuid| !known(uuid)) {
            return Err(wrong(format!("the definition `{}` has no workload `{unknown}`", solution.definition)));
        }
        let is_wanted = |uuid: &String| request.workload_uuids.as_ref().is_none_or(|wanted| wanted.contains(uuid));
        let chosen: Vec<&(String, Value)> = definition.workloads.iter().filter(|(uuid, _)| is_wanted(uuid)).collect();
        let id = request.task_id.unwrap_or_else(|| content.hex());
        let name = solution.unique_name();
        if self.asked.get(client, &id).is_some_and(|known| known.content != content) {
            let why = format!("the task `{id}` has another request: choose another id");
            return Err(Failure::new(ErrorCode::Conflict, why));
        }
        let lines: String = chosen.iter().map(|(_, line)| format!("{line}\n")).collect();
        let text = definition.text.clone();
        let unfit = match chosen.is_empty() {
            true => Some("no workload of the definition was chosen".to_string()),
            false => solution.unusable(),
        };
        let submitted = match unfit {
            Some(why) => Err(why),
            None => {
                let digest = Digest::of(format!("{text}{lines}").as_bytes());
                let describe = move |service: &Service| service.definition(&text, &lines);
                let evaluation = match self.references.package(app, client, digest, describe).await? {
                    Ok(Ok(reference)) if !reference.left_out.is_empty() => Err(reference.left_out.join("; ")),
                    Ok(Ok(reference)) => solution.evaluation(&reference, app.service.first_device().as_ref()),
                    Ok(Err((_, message))) => Err(message),
                    Err(why) => Err(why),
                };
                match evaluation {
                    Ok(evaluation) => Ok(described::submit(app, client, (NAME, &id), evaluation).await?),
                    Err(why) => Err(why),
                }
            }
        };
        let (kept, failed) = match submitted {
            Ok(kept) => (Some(kept), None),
            Err(why) => (None, Some(why)),
        };
        let workloads = chosen.iter().map(|(uuid, _)| uuid.clone()).collect();
        let definition = solution.definition.clone();
        let asked = Asked { definition, solution: name.clone(), workloads, failed, content, kept };
        let bytes = asked.size();
        // What a task that has not ended was asked for is needed for its answer.
        let has_not_ended = |one: &str| app.service.log(client, one).is_some();
        self.asked.put(client, &id, Arc::new(asked), bytes, |asked| asked.kept.as_deref().is_some_and(has_not_ended));
        Ok(json!({ "task_id": id, "normalized_solution_name": name }))
    }

    /// A task, at its end or after so long.
    async fn task(&self, app: &App, client: &Client, id: &str, longest: Duration) -> Result<Value, Failure> {
        let asked = self.asked.get(client, id).ok_or_else(|| not_found("task", id))?;
        let Some(kept) = &asked.kept else {
            return Ok(answer(id, &asked, "failed", None, asked.failed.as_deref()));
        };
        let task = app.service.wait(client, kept, longest).await?;
        Ok(self.answered(id, &asked, &task))
    }

    fn answered(&self, id: &str, asked: &Asked, task: &Task) -> Value {
        let status = match task.status {
            TaskStatus::Queued => "pending",
            TaskStatus::Running => "running",
            TaskStatus::Done => "completed",
            TaskStatus::Cancelled => "failed",
        };
        let Some(result) = &task.result else {
            let why = is_over(task.status).then_some("the task was cancelled");
            return answer(id, asked, status, None, why);
        };
        let names = (asked.definition.as_str(), asked.solution.as_str());
        let all = self.set.definitions.get(&asked.definition).into_iter().flat_map(|definition| &definition.workloads);
        let chosen = all.filter(|(uuid, _)| asked.workloads.contains(uuid));
        let workloads: BTreeMap<String, Value> =
            chosen.map(|(uuid, line)| (uuid.clone(), line["workload"].clone())).collect();
        match traces(result, names, &workloads, task.finished_at.as_deref()) {
            Ok(traces) => answer(id, asked, "completed", Some(traces), None),
            Err(why) => answer(id, asked, "failed", None, Some(&why)),
        }
    }
}

fn answer(id: &str, asked: &Asked, status: &str, traces: Option<Vec<Value>>, error: Option<&str>) -> Value {
    json!({
        "task_id": id, "status": status, "definition": asked.definition, "solution": asked.solution, "traces": traces,
        "error": error,
    })
}

type Set = Extension<Arc<Bench>>;

async fn definitions(Extension(bench): Set, Caller(_): Caller) -> Response {
    let one = |(name, file): (&String, &dataset::DefinitionFile)| json!({ "name": name, "description": file.value.get("description") });
    json_of(StatusCode::OK, &bench.set.definitions.iter().map(one).collect::<Vec<Value>>())
}

async fn definition(Extension(bench): Set, Caller(_): Caller, Id(name): Id) -> Result<Response, Failure> {
    let found = bench.set.definitions.get(&name).ok_or_else(|| not_found("definition", &name))?;
    Ok(json_of(StatusCode::OK, &found.value))
}

async fn workloads(Extension(bench): Set, Caller(_): Caller, Id(name): Id) -> Result<Response, Failure> {
    let found = bench.set.definitions.get(&name).ok_or_else(|| not_found("definition", &name))?;
    let all: Vec<&Value> = found.workloads.iter().map(|(_, line)| &line["workload"]).collect();
    Ok(json_of(StatusCode::OK, &all))
}

async fn workload(Extension(bench): Set, Caller(_): Caller, Id(uuid): Id) -> Result<Response, Failure> {
    let found = bench.set.workload(&uuid).ok_or_else(|| not_found("workload", &uuid))?;
    Ok(json_of(StatusCode::OK, found))
}

async fn evaluate(
    State(app): State<App>,
    Extension(bench): Set,
    Caller(client): Caller,
    request: Request,
) -> Result<Response, Failure> {
    let (parts, body) = request.into_parts();
    let (request, _values) = body::counted::<Evaluate>(&parts.headers, body, &app.limits, &client).await?;
    Ok(json_of(StatusCode::OK, &bench.submit(&app, &client, request).await?))
}

async fn task(
    State(app): State<App>,
    Extension(bench): Set,
    Caller(client): Caller,
    Id(id): Id,
    waiting: Result<Query<Waiting>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, Failure> {
    let wrong = |why: String| Failure::new(ErrorCode::BadRequest, why);
    let Query(Waiting { timeout }) = waiting.map_err(|rejected| wrong(rejected.body_text()))?;
    if !(0.0..=LONGEST).contains(&timeout) {
        return Err(wrong(format!("`timeout` is {timeout}: expected 0 to {LONGEST} seconds")));
    }
    Ok(json_of(StatusCode::OK, &bench.task(&app, &client, &id, Duration::from_secs_f64(timeout)).await?))
}

async fn tasks(
    State(app): State<App>,
    Extension(bench): Set,
    Caller(client): Caller,
    request: Request,
) -> Result<Response, Failure> {
    let (parts, body) = request.into_parts();
    let Tasks { task_ids, timeout } = body::json(&parts.headers, body, &app.limits, &client).await?;
    let unique: std::collections::BTreeSet<&String> = task_ids.iter().collect();
    if task_ids.len() > MOST_IN_BATCH || unique.len() < task_ids.len() {
        let why = format!("`task_ids`: expected at most {MOST_IN_BATCH} ids, each of them once");
        return Err(Failure::new(ErrorCode::BadRequest, why));
    }
    let longest = if timeout > 0.0 { timeout.min(LONGEST) } else { 0.0 };
    let until = tokio::time::Instant::now() + Duration::from_secs_f64(longest);
    // All of them are looked for before any is waited for.
    for id in &task_ids {
        bench.task(&app, &client, id, Duration::ZERO).await?;
    }
    let mut answers = vec![];
    for id in &task_ids {
        let left = until.saturating_duration_since(tokio::time::Instant::now());
        answers.push(bench.task(&app, &client, id, left).await?);
    }
    Ok(json_of(StatusCode::OK, &answers))
}

async fn health(State(app): State<App>, Extension(bench): Set) -> Response {
    let health = app.service.health();
    let began = bench.began.duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
    let worker = |device: &String| json!({ "device": device, "healthy": true });
    let workers: Vec<Value> = health.devices.iter().map(worker).collect();
    let status = match health.status {
        HealthStatus::Ok => "ok",
        HealthStatus::Draining => "draining",
        HealthStatus::Storage => "unavailable",
    };
    let value = json!({
        "status": status, "instance_id": Digest::of(format!("{began}").as_bytes()).short(), "dataset_id": bench.set.id,
        "started_at": began, "accepting": app.service.is_ready(), "workers": workers,
        "healthy_workers": workers.len(), "total_workers": workers.len(), "queue_size": health.queued,
        "active_tasks": health.queued + health.running,
    });
    json_of(StatusCode::OK, &value)
}
