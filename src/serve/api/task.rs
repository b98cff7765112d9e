//! Tasks: one for each accepted request. What clients see of them, their events, and errors.

use serde::{Deserialize, Serialize};

use super::request::{Measure, Priority};
use super::result::{EvaluationResult, VerdictWord};

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TaskStatus {
    /// It waits.
    Queued,
    /// Its evaluation runs.
    Running,
    /// It has a result.
    Done,
    /// It was cancelled, and has no result.
    Cancelled,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Task {
    /// Its id.
    pub id: String,
    /// How far it is.
    pub status: TaskStatus,
    /// The digest of what is evaluated. Tasks with one digest have one evaluation.
    pub content: String,
    /// What is done.
    pub measure: Measure,
    /// Its priority.
    pub priority: Priority,
    /// When it was accepted, as RFC 3339.
    pub submitted_at: String,
    /// When it ended, as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<String>,
    /// Whether its result was known before, or is that of an evaluation that another task had begun.
    #[serde(default)]
    pub shared: bool,
    /// The result of a task that is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<EvaluationResult>,
}

/// A task in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TaskSummary {
    /// Its id.
    pub id: String,
    /// How far it is.
    pub status: TaskStatus,
    /// Its priority.
    pub priority: Priority,
    /// When it was accepted, as RFC 3339.
    pub submitted_at: String,
    /// The verdict of a task that is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictWord>,
}

/// Tasks of a client, the newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TaskList {
    /// The tasks.
    pub tasks: Vec<TaskSummary>,
    /// The value of `before` that gives the tasks after these; none if these are the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// An event of a task, as the data of a server-sent event of that name. The last one is `done` or `cancelled`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Progress {
    /// It waits.
    Queued,
    /// Its evaluation began.
    Running,
    /// A step of its evaluation ended. Steps about holdout shapes have no events.
    Step(StepDone),
    /// It has a result.
    Done(Box<Task>),
    /// It was cancelled.
    Cancelled,
}

/// A step of an evaluation that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepDone {
    /// Its kind: `compile`, `verify`, `bench`.
    pub kind: String,
    /// The kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The variant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<String>,
    /// How it ended: `executed`, `fresh`, `unavailable`, `skipped` or `failed`.
    pub outcome: String,
    /// Its verdict, if its kind has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictWord>,
    /// How long it took, in milliseconds.
    pub ms: u64,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorCode {
    /// The body is not what the route expects.
    BadRequest,
    /// The token is missing or unknown.
    Unauthorized,
    /// A web page sent the request, or may have, and the server has no tokens.
    Forbidden,
    /// There is no such task or route.
    NotFound,
    /// The route has no such method.
    MethodNotAllowed,
    /// The body did not arrive in time.
    SlowBody,
    /// The id belongs to a task with another content.
    Conflict,
    /// The body is larger than the limit.
    TooLarge,
    /// The queue is full.
    QueueFull,
    /// The client has as many unfinished tasks as it may have.
    ClientLimit,
    /// The server is about to end.
    Draining,
    /// The server cannot store tasks.
    Storage,
}

/// An error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ErrorAnswer {
    /// What kind of error it is.
    pub code: ErrorCode,
    /// What is wrong, for people.
    pub message: String,
    /// The seconds after which to try again, if that may help; the header `Retry-After` has the same value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_s: Option<u64>,
}

/// Whether the server accepts tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HealthStatus {
    /// It does.
    Ok,
    /// It accepts none any more, because it is about to end.
    Draining,
    /// Tasks cannot be stored.
    Storage,
}

impl HealthStatus {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            HealthStatus::Ok => "ok",
            HealthStatus::Draining => "draining",
            HealthStatus::Storage => "storage",
        }
    }
}

/// Whether the server is there, or ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Health {
    /// Whether tasks are accepted.
    pub status: HealthStatus,
    /// The version of kforge.
    pub kforge: String,
    /// The devices of the server: product and architecture.
    pub devices: Vec<String>,
    /// The number of evaluations that wait.
    pub queued: u64,
    /// The number of evaluations that run.
    pub running: u64,
}
