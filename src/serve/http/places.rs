//! Places of each client, so that one client takes none of another's.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use tokio::sync::Semaphore;

use super::App;
use super::failure::Failure;
use crate::api::ErrorCode;
use crate::service::Client;

/// The seconds after which a client with too many requests may try again.
const RETRY_AFTER_S: u64 = 1;

/// As many places for each client.
#[derive(Debug)]
pub(super) struct Places {
    /// Clients are those of the file of tokens.
    of: Mutex<HashMap<Client, Arc<Semaphore>>>,
    each: usize,
}

impl Places {
    pub(super) fn new(each: usize) -> Places {
        Places { of: Mutex::default(), each }
    }

    /// The places of a client.
    pub(super) fn of(&self, client: &Client) -> Arc<Semaphore> {
        let mut all = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(client.clone()).or_insert_with(|| Arc::new(Semaphore::new(self.each))).clone()
    }
}

/// Refuses a request of a client that has as many under way as it may have. A request is under way until its answer is complete, also one of events.
pub(super) async fn within_share(State(app): State<App>, request: Request, next: Next) -> Response {
    // Who has no token is refused by the route.
    let Some(client) = app.auth.client(request.headers()) else { return next.run(request).await };
    let Ok(place) = app.under_way.of(&client).try_acquire_owned() else {
        let most = app.under_way.each;
        let why = format!("this client has {most} requests under way, and may not have more");
        let mut failure = Failure::new(ErrorCode::ClientLimit, why);
        failure.0.retry_after_s = Some(RETRY_AFTER_S);
        return failure.into_response();
    };
    let response = next.run(request).await;
    let kind = response.headers().get(header::CONTENT_TYPE);
    if kind.is_none_or(|kind| !kind.as_bytes().starts_with(b"text/event-stream")) {
        return response;
    }
    response.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let _held = &place;
            frame
        }))
    })
}
