//! The HTTP server: connections, limits, who sends a request, and the routes of each interface. Other interfaces are further files here, which call
//! [`crate::service`] only.
//!
//! The server speaks HTTP/1.1 without TLS, which a proxy adds.

mod auth;
mod body;
mod described;
mod events;
mod failure;
mod flashinfer_bench;
mod kernelgym;
mod openapi;
mod own;
mod pages;
mod places;
mod routes;
mod server;
mod slime;
mod stalled;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use self::auth::Auth;
use self::failure::Failure;
use crate::api::ErrorCode;
use crate::service::{Client, Counter, Service};

pub use self::auth::{Tokens, TokensError};
pub use self::flashinfer_bench::{TraceSet, TraceSetError};
pub use self::server::{HttpConfig, ListenError, Says, Server};

/// The OpenAPI document of kforge's own interface.
pub fn openapi() -> serde_json::Value {
    let routes: Vec<&openapi::Route> = routes::ROUTES.iter().collect();
    openapi::document(&routes, routes::ERROR)
}

/// What every route can reach.
#[derive(Clone)]
pub(crate) struct App {
    service: Arc<Service>,
    auth: Arc<Auth>,
    limits: body::Limits,
    /// The requests that each client may have under way.
    under_way: Arc<places::Places>,
    document: Arc<serde_json::Value>,
    traffic: Arc<Traffic>,
    /// The dataset of the interface of `flashinfer-bench serve`.
    traces: Option<Arc<TraceSet>>,
}

/// Figures of requests.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    requests: Counter,
    errors: Counter,
    connections: AtomicU64,
}

impl Traffic {
    fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }
}

/// The client of a request. A request without a known token ends here.
pub(crate) struct Caller(pub(crate) Client);

impl FromRequestParts<App> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        if app.auth.is_open() && auth::is_from_a_page(&parts.headers) {
            let why = "a server without tokens accepts no requests of web pages: no header `Origin`, and no `Host` with a public name";
            return Err(Failure::new(ErrorCode::Forbidden, why));
        }
        let client = app.auth.client(&parts.headers);
        client.map(Caller).ok_or_else(|| {
            Failure::new(ErrorCode::Unauthorized, "the header `Authorization: Bearer TOKEN` has no known token")
        })
    }
}

/// The id in a path.
pub(crate) struct Id(pub(crate) String);

impl FromRequestParts<App> for Id {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        let found = axum::extract::Path::from_request_parts(parts, app).await;
        let found = found.map_err(|wrong: axum::extract::rejection::PathRejection| wrong.body_text());
        found.map(|axum::extract::Path(id)| Id(id)).map_err(|why| Failure::new(ErrorCode::BadRequest, why))
    }
}

/// All routes.
fn router(app: App) -> Router {
    let traces = app.traces.clone().map(flashinfer_bench::router).unwrap_or_default();
    Router::new()
        .merge(own::router())
        .merge(kernelgym::router())
        .merge(slime::router())
        .merge(traces)
        .layer(from_fn_with_state(app.clone(), places::within_share))
        // Whether the server is there is answered always.
        .merge(pages::router())
        .fallback(async || Failure::new(ErrorCode::NotFound, "there is no such route: `/openapi.json` lists them"))
        .method_not_allowed_fallback(async || {
            Failure::new(ErrorCode::MethodNotAllowed, "the route has no such method: `/openapi.json` lists them")
        })
        .layer(from_fn_with_state(app.clone(), count))
        .with_state(app)
}

async fn count(State(app): State<App>, request: Request, next: Next) -> Response {
    app.traffic.requests.add();
    let response = next.run(request).await;
    if response.status().is_client_error() || response.status().is_server_error() {
        app.traffic.errors.add();
    }
    response
}

/// An answer of JSON.
pub(crate) fn json_of(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(text) => {
            (status, [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], text).into_response()
        }
        // What answers hold can always be written as JSON.
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("BUG: {error}")).into_response(),
    }
}
