//! Bodies of requests: their size, their time, their depth, and their type. Knows JSON; does not know what it means.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use super::failure::Failure;
use crate::api::ErrorCode;

/// The deepest nesting of JSON.
const DEEPEST: usize = 64;

/// The limits of bodies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The most bytes.
    pub(crate) bytes: usize,
    /// The most time from the end of the headers to the end of the body.
    pub(crate) time: Duration,
}

/// Reads a body as JSON of a type.
pub(crate) async fn json<T: DeserializeOwned>(headers: &HeaderMap, body: Body, limits: Limits) -> Result<T, Failure> {
    let bytes = read(headers, body, limits).await?;
    if let Some(at) = too_deep(&bytes) {
        let why = format!("the body is nested deeper than {DEEPEST} levels at byte {at}");
        return Err(Failure::new(ErrorCode::BadRequest, why));
    }
    serde_json::from_slice(&bytes).map_err(|error| {
        Failure::new(ErrorCode::BadRequest, format!("the body is not the JSON that is expected: {error}"))
    })
}

async fn read(headers: &HeaderMap, body: Body, limits: Limits) -> Result<Vec<u8>, Failure> {
    let too_large = || Failure::new(ErrorCode::TooLarge, format!("the body is larger than {} bytes", limits.bytes));
    let stated = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if stated.is_some_and(|length| length > limits.bytes as u64) {
        return Err(too_large());
    }
    let collected = tokio::time::timeout(limits.time, Limited::new(body, limits.bytes).collect()).await;
    match collected {
        Err(_) => {
            let why = format!("the body did not arrive within {} s", limits.time.as_secs_f64());
            Err(Failure::new(ErrorCode::SlowBody, why))
        }
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => Err(Failure::new(ErrorCode::BadRequest, format!("the body was cut off: {error}"))),
        Ok(Ok(collected)) => Ok(collected.to_bytes().into()),
    }
}

/// Where JSON is nested too deeply, if it is.
fn too_deep(text: &[u8]) -> Option<usize> {
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                if depth > DEEPEST {
                    return Some(at);
                }
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_brackets_outside_of_strings() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert_eq!(too_deep(nested(DEEPEST).as_bytes()), None);
        assert_eq!(too_deep(nested(DEEPEST + 1).as_bytes()), Some(DEEPEST));
        let text = format!(r#"{{"a": "{}\"{}", "b": []}}"#, "[".repeat(100), "{".repeat(100));
        assert_eq!(too_deep(text.as_bytes()), None);
        let row = format!("[{}]", "[],".repeat(1000));
        assert_eq!(too_deep(row.as_bytes()), None);
    }
}
