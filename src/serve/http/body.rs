//! Bodies of requests: their size, their time, their depth, and their type. Knows JSON; does not know what it means.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::failure::Failure;
use crate::api::ErrorCode;

/// The deepest nesting of JSON.
const DEEPEST: usize = 64;

/// The most values of JSON. Each takes much more memory than its text.
const MOST_VALUES: usize = 500_000;

/// The bytes of all bodies that are held at once, in units of [`UNIT`].
const ALL_BODIES: usize = 256 << 10;

/// The bytes that are reserved together.
const UNIT: usize = 1 << 10;

/// The limits of bodies.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    /// The most bytes of one.
    pub(crate) bytes: usize,
    /// The most time from the end of the headers to the end of the body.
    pub(crate) time: Duration,
    /// Room for the bodies that are held at once.
    room: Arc<Semaphore>,
}

impl Limits {
    pub(crate) fn new(bytes: usize, time: Duration) -> Limits {
        // One body of the greatest size fits in any case.
        let room = ALL_BODIES.max(bytes.div_ceil(UNIT) + 1);
        Limits { bytes, time, room: Arc::new(Semaphore::new(room)) }
    }
}

/// The bytes of a body, and the room that they take.
struct Held {
    bytes: Vec<u8>,
    _room: Vec<OwnedSemaphorePermit>,
}

/// Reads a body as JSON of a type.
pub(crate) async fn json<T: DeserializeOwned>(headers: &HeaderMap, body: Body, limits: &Limits) -> Result<T, Failure> {
    let Held { bytes, _room } = read(headers, body, limits).await?;
    if let Some(why) = excess(&bytes) {
        return Err(Failure::new(ErrorCode::BadRequest, why));
    }
    // Otherwise an array would count as the fields of an object in order.
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()).is_some_and(|first| *first != b'{') {
        return Err(Failure::new(ErrorCode::BadRequest, "the body is not a JSON object"));
    }
    serde_json::from_slice(&bytes).map_err(|error| {
        Failure::new(ErrorCode::BadRequest, format!("the body is not the JSON that is expected: {error}"))
    })
}

async fn read(headers: &HeaderMap, body: Body, limits: &Limits) -> Result<Held, Failure> {
    let too_large = || Failure::new(ErrorCode::TooLarge, format!("the body is larger than {} bytes", limits.bytes));
    let stated = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if stated.is_some_and(|length| length > limits.bytes as u64) {
        return Err(too_large());
    }
    let mut held = Held { bytes: vec![], _room: vec![] };
    let mut body = Limited::new(body, limits.bytes);
    let all = async {
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| match error.is::<LengthLimitError>() {
                true => too_large(),
                false => Failure::new(ErrorCode::BadRequest, format!("the body was cut off: {error}")),
            })?;
            let Ok(data) = frame.into_data() else { continue };
            let units = (held.bytes.len() + data.len()).div_ceil(UNIT) - held.bytes.len().div_ceil(UNIT);
            // Closing the semaphore would be a bug; without a permit, the body counts nowhere.
            if let Ok(room) = limits.room.clone().acquire_many_owned(u32::try_from(units).unwrap_or(u32::MAX)).await {
                held._room.push(room);
            }
            held.bytes.extend_from_slice(&data);
        }
        Ok(())
    };
    match tokio::time::timeout(limits.time, all).await {
        Err(_) => {
            let why = format!("the body did not arrive within {} s", limits.time.as_secs_f64());
            Err(Failure::new(ErrorCode::SlowBody, why))
        }
        Ok(Err(failure)) => Err(failure),
        Ok(Ok(())) => Ok(held),
    }
}

/// What JSON has in excess, if it does: depth or values.
fn excess(text: &[u8]) -> Option<String> {
    let (mut depth, mut values, mut in_string, mut escaped) = (0usize, 1usize, false, false);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                values += 1;
                if depth > DEEPEST {
                    return Some(format!("the body is nested deeper than {DEEPEST} levels at byte {at}"));
                }
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            b',' if !in_string => values += 1,
            _ => {}
        }
    }
    (values > MOST_VALUES).then(|| format!("the body has more than {MOST_VALUES} values"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_and_values_count_outside_of_strings() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert_eq!(excess(nested(DEEPEST).as_bytes()), None);
        assert!(excess(nested(DEEPEST + 1).as_bytes()).unwrap().ends_with(&format!("at byte {DEEPEST}")));
        let text = format!(r#"{{"a": "{}\"{}", "b": []}}"#, "[".repeat(100), "{".repeat(100));
        assert_eq!(excess(text.as_bytes()), None);
        let row = |n: usize| format!("[{}1]", "1,".repeat(n));
        assert_eq!(excess(row(MOST_VALUES - 2).as_bytes()), None);
        assert!(excess(row(MOST_VALUES).as_bytes()).unwrap().contains("values"));
        assert_eq!(excess(format!("\"{}\"", ",".repeat(MOST_VALUES)).as_bytes()), None);
    }
}
