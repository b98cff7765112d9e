//! Errors as answers of HTTP.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::api::{ErrorAnswer, ErrorCode};
use crate::service::Refusal;

/// The most bytes of a message. Messages quote requests.
const LONGEST: usize = 2000;

/// A message without what is too long.
fn shortened(mut message: String) -> String {
    if message.len() > LONGEST {
        message.truncate(message.floor_char_boundary(LONGEST));
        message += " ...";
    }
    message
}

/// An error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) ErrorAnswer);

impl Failure {
    /// An error of this kind.
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Failure {
        Failure(ErrorAnswer { code, message: shortened(message.into()), retry_after_s: None })
    }

    /// Its status.
    pub(crate) fn status(&self) -> StatusCode {
        match self.0.code {
            ErrorCode::BadRequest => StatusCode::BAD_REQUEST,
            ErrorCode::Unauthorized => StatusCode::UNAUTHORIZED,
            ErrorCode::Forbidden => StatusCode::FORBIDDEN,
            ErrorCode::NotFound => StatusCode::NOT_FOUND,
            ErrorCode::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            ErrorCode::SlowBody => StatusCode::REQUEST_TIMEOUT,
            ErrorCode::Conflict => StatusCode::CONFLICT,
            ErrorCode::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            ErrorCode::QueueFull | ErrorCode::ClientLimit => StatusCode::TOO_MANY_REQUESTS,
            ErrorCode::Draining | ErrorCode::Storage => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        let message = shortened(refusal.to_string());
        let (code, retry_after_s) = match refusal {
            Refusal::Invalid(_) => (ErrorCode::BadRequest, None),
            Refusal::Conflict(_) => (ErrorCode::Conflict, None),
            Refusal::NoTask(_) => (ErrorCode::NotFound, None),
            Refusal::QueueFull { retry_after_s, .. } | Refusal::QueueBytes { retry_after_s, .. } => {
                (ErrorCode::QueueFull, Some(retry_after_s))
            }
            Refusal::ClientLimit { retry_after_s, .. } | Refusal::ClientBytes { retry_after_s, .. } => {
                (ErrorCode::ClientLimit, Some(retry_after_s))
            }
            Refusal::Draining => (ErrorCode::Draining, Some(5)),
            Refusal::Storage(_) => (ErrorCode::Storage, Some(30)),
        };
        Failure(ErrorAnswer { code, message, retry_after_s })
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = self.status();
        let mut response = super::json_of(status, &self.0);
        let headers = response.headers_mut();
        if let Some(seconds) = self.0.retry_after_s {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
