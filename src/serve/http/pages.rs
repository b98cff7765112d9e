//! Health, metrics, the OpenAPI document and the status page.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;

use super::{App, Caller, json_of};
use crate::api::VerdictWord;
use crate::service::{counter, gauge};

/// The routes.
pub(super) fn router() -> Router<App> {
    Router::new()
        .route("/", get(page))
        .route("/healthz", get(health))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .route("/openapi.json", get(document))
}

async fn health(State(app): State<App>) -> Response {
    json_of(StatusCode::OK, &app.service.health())
}

async fn ready(State(app): State<App>) -> Response {
    let status = if app.service.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    json_of(status, &app.service.health())
}

async fn metrics(State(app): State<App>, Caller(_): Caller) -> Response {
    let mut text = app.service.prometheus();
    counter(&mut text, "kforge_http_requests_total", "Requests.", app.traffic.requests.get());
    counter(&mut text, "kforge_http_errors_total", "Answers with a status of 400 or above.", app.traffic.errors.get());
    gauge(&mut text, "kforge_http_connections", "Open connections.", app.traffic.connections());
    let plain = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    ([(header::CONTENT_TYPE, plain)], text).into_response()
}

async fn document(State(app): State<App>) -> Response {
    let json = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, json)], Arc::clone(&app.document).to_string()).into_response()
}

/// A page for people. It holds numbers only: no ids, no clients, no sources.
async fn page(State(app): State<App>) -> Html<String> {
    let health = app.service.health();
    let metrics = &app.service.metrics;
    let devices = if health.devices.is_empty() { "none: target `cpu` only".into() } else { health.devices.join(", ") };
    let seconds = metrics.seconds.mean().map_or("none yet".into(), |mean| format!("{mean:.2} s"));
    let verdicts = [VerdictWord::Pass, VerdictWord::Fail, VerdictWord::Unknown]
        .map(|verdict| format!("{} {}", metrics.of(verdict).get(), verdict.name()))
        .join(", ");
    let rows = [
        ("state", health.status.name().into()),
        ("kforge", health.kforge),
        ("devices", devices),
        ("evaluations that run", health.running.to_string()),
        ("evaluations that wait", health.queued.to_string()),
        ("tasks accepted", metrics.accepted.get().to_string()),
        ("of these, with a known result", metrics.known.get().to_string()),
        ("of these, joined to another evaluation", metrics.joined.get().to_string()),
        ("evaluations that ended", verdicts),
        ("mean time of an evaluation", seconds),
    ];
    let row = |(name, value): &(&str, String)| format!("<tr><th>{name}</th><td>{}</td></tr>\n", escaped(value));
    let rows: String = rows.iter().map(row).collect();
    Html(format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>kforge serve</title>\n\
         <meta name=\"viewport\" content=\"width=device-width\"><meta http-equiv=\"refresh\" content=\"5\">\n\
         <style>body{{font:16px/1.5 sans-serif;margin:2em auto;max-width:40em;padding:0 1em}}\
         th{{text-align:left;font-weight:normal;padding-right:2em}}</style></head>\n\
         <body><main><h1>kforge serve</h1>\n<table>\n{rows}</table>\n\
         <p><a href=\"openapi.json\">Interface</a></p></main></body></html>\n"
    ))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
