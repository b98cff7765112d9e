//! The routes of kforge's own interface as a table, from which the OpenAPI document is made. [`super::own`] and [`super::pages`] answer them; a test compares.

use super::openapi::{Answer, Body, Query, Route, of};
use crate::api::{Batch, BatchAnswer, ErrorAnswer, EvaluationRequest, Health, Progress, Task, TaskList, TaskStatus};

const WAIT: Query = Query {
    name: "wait",
    about: "The seconds to wait for the end of the task, at most 3600; 0 by default.",
    schema: of::<f64>,
};

const TASK: Answer =
    Answer { status: 200, about: "The task. One that is done has its result.", body: Body::Json(of::<Task>) };

const ACCEPTED: Answer = Answer {
    status: 202,
    about: "The task is accepted, and on disk: no end of the server loses it.",
    body: Body::Json(of::<Task>),
};

/// All routes.
pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: "post",
        path: "/v1/evaluations",
        summary: "Submit one evaluation",
        open: false,
        query: &[WAIT],
        body: Some(of::<EvaluationRequest>),
        answers: &[TASK, ACCEPTED],
    },
    Route {
        method: "post",
        path: "/v1/batches",
        summary: "Submit several evaluations",
        open: false,
        query: &[],
        body: Some(of::<Batch>),
        answers: &[Answer {
            status: 200,
            about: "What became of each. The tasks that were accepted are on disk.",
            body: Body::Json(of::<BatchAnswer>),
        }],
    },
    Route {
        method: "get",
        path: "/v1/tasks",
        summary: "List the client's tasks, the newest first",
        open: false,
        query: &[
            Query { name: "status", about: "Only tasks with this status.", schema: of::<TaskStatus> },
            Query { name: "limit", about: "The most tasks, up to 1000; 100 by default.", schema: of::<u32> },
            Query { name: "before", about: "The value of `next` in the list before.", schema: of::<u64> },
        ],
        body: None,
        answers: &[Answer { status: 200, about: "The tasks.", body: Body::Json(of::<TaskList>) }],
    },
    Route {
        method: "get",
        path: "/v1/tasks/{id}",
        summary: "Get a task, or wait for its end",
        open: false,
        query: &[WAIT],
        body: None,
        answers: &[TASK],
    },
    Route {
        method: "delete",
        path: "/v1/tasks/{id}",
        summary: "Cancel a task",
        open: false,
        query: &[],
        body: None,
        answers: &[Answer {
            status: 200,
            about: "The task: cancelled, or done if it had a result already.",
            body: Body::Json(of::<Task>),
        }],
    },
    Route {
        method: "get",
        path: "/v1/tasks/{id}/events",
        summary: "Follow a task by server-sent events",
        open: false,
        query: &[],
        body: None,
        answers: &[Answer {
            status: 200,
            about: "Events named `queued`, `running`, `step`, `done` and `cancelled`; the data of each is a `Progress`.",
            body: Body::Events(of::<Progress>),
        }],
    },
    Route {
        method: "get",
        path: "/healthz",
        summary: "Whether the server is there",
        open: true,
        query: &[],
        body: None,
        answers: &[Answer { status: 200, about: "It is.", body: Body::Json(of::<Health>) }],
    },
    Route {
        method: "get",
        path: "/readyz",
        summary: "Whether the server accepts tasks",
        open: true,
        query: &[],
        body: None,
        answers: &[
            Answer { status: 200, about: "It does.", body: Body::Json(of::<Health>) },
            Answer { status: 503, about: "It does not.", body: Body::Json(of::<Health>) },
        ],
    },
    Route {
        method: "get",
        path: "/metrics",
        summary: "Metrics for Prometheus",
        open: false,
        query: &[],
        body: None,
        answers: &[Answer { status: 200, about: "The metrics.", body: Body::Other("text/plain") }],
    },
    Route {
        method: "get",
        path: "/openapi.json",
        summary: "This document",
        open: true,
        query: &[],
        body: None,
        answers: &[Answer { status: 200, about: "The document.", body: Body::Other("application/json") }],
    },
    Route {
        method: "get",
        path: "/",
        summary: "The status page",
        open: true,
        query: &[],
        body: None,
        answers: &[Answer { status: 200, about: "A page for people.", body: Body::Other("text/html") }],
    },
];

/// The type of errors.
pub(crate) const ERROR: super::openapi::SchemaOf = of::<ErrorAnswer>;
