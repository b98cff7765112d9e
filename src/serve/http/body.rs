//! Bodies of requests: their size, their time, their depth, and their type. Knows JSON; does not know what it means.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::failure::Failure;
use super::places::Places;
use crate::api::ErrorCode;
use crate::service::Client;

/// The deepest nesting of JSON.
const DEEPEST: usize = 64;

/// The most values of JSON. Each takes much more memory than its text.
const MOST_VALUES: usize = 100_000;

/// The values of all bodies that are parsed and accepted at once.
const ALL_VALUES: usize = 2 * MOST_VALUES;

/// The bytes of a body from which on it is parsed on a thread of its own.
const LARGE: usize = 64 << 10;

/// The bytes of all bodies that are held at once, in units of [`UNIT`].
const ALL_BODIES: usize = 256 << 10;

/// The bytes that are reserved together.
const UNIT: usize = 1 << 10;

/// The limits of bodies.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    /// The most bytes of one.
    bytes: usize,
    /// The most time of one, from the moment that there is room for it.
    time: Duration,
    /// Room for the bodies that are held at once.
    room: Arc<Semaphore>,
    /// The units of that room that each client may have.
    shares: Arc<Places>,
    /// Room for the values that are parsed and accepted at once.
    values: Arc<Semaphore>,
}

impl Limits {
    pub(crate) fn new(bytes: usize, time: Duration) -> Limits {
        Limits::with_room(bytes, time, ALL_BODIES)
    }

    fn with_room(bytes: usize, time: Duration, units: usize) -> Limits {
        // One body of the greatest size fits in any case.
        let largest = bytes.div_ceil(UNIT);
        let (units, share) = (units.max(largest), (units / 2).max(largest));
        let [room, values] = [units, ALL_VALUES].map(|places| Arc::new(Semaphore::new(places)));
        Limits { bytes, time, room, shares: Arc::new(Places::new(share)), values }
    }

    /// Reserves the room of a whole body, in the order of requests. Who waits here holds no room of others, and each body that has room ends within its time.
    async fn reserve(&self, client: &Client, bytes: usize) -> [Option<OwnedSemaphorePermit>; 2] {
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
        // Closing the semaphores would be a bug; without a permit, the body counts nowhere.
        let own = self.shares.of(client).acquire_many_owned(units).await.ok();
        [own, self.room.clone().acquire_many_owned(units).await.ok()]
    }
}

/// The room that the values of a body take, until it is dropped.
pub(crate) struct Values(#[expect(dead_code, reason = "it is kept for its end")] Option<OwnedSemaphorePermit>);

/// Reads a body as JSON of a type.
pub(crate) async fn json<T: DeserializeOwned + Send + 'static>(
    headers: &HeaderMap,
    body: Body,
    limits: &Limits,
    client: &Client,
) -> Result<T, Failure> {
    Ok(counted(headers, body, limits, client).await?.0)
}

/// The same, with the room of its values: it is held until they were accepted, because that copies them.
pub(crate) async fn counted<T: DeserializeOwned + Send + 'static>(
    headers: &HeaderMap,
    body: Body,
    limits: &Limits,
    client: &Client,
) -> Result<(T, Values), Failure> {
    let too_large = || Failure::new(ErrorCode::TooLarge, format!("the body is larger than {} bytes", limits.bytes));
    let stated = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if stated.is_some_and(|length| length > limits.bytes as u64) {
        return Err(too_large());
    }
    let length = stated.and_then(|length| usize::try_from(length).ok()).unwrap_or(limits.bytes);
    let _room = limits.reserve(client, length).await;
    let bytes = read(body, limits).await?;
    let values = values(&bytes).map_err(|why| Failure::new(ErrorCode::BadRequest, why))?;
    let values = u32::try_from(values).unwrap_or(u32::MAX);
    let values = Values(limits.values.clone().acquire_many_owned(values).await.ok());
    if bytes.len() < LARGE {
        return Ok((parsed(&bytes, "the body")?, values));
    }
    match tokio::task::spawn_blocking(move || parsed(&bytes, "the body")).await {
        Ok(value) => Ok((value?, values)),
        // A panic there is a bug that has been printed.
        Err(error) => Err(Failure::new(ErrorCode::BadRequest, format!("the body cannot be parsed: {error}"))),
    }
}

/// Reads JSON, which is called `what` in messages.
pub(super) fn parsed<T: DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T, Failure> {
    // Otherwise an array would count as the fields of an object in order.
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => {}
        Some(_) => return Err(Failure::new(ErrorCode::BadRequest, format!("{what} is not a JSON object"))),
        None => return Err(Failure::new(ErrorCode::BadRequest, format!("{what} is empty: expected a JSON object"))),
    }
    let wrong = |place: String, error: serde_json::Error| {
        Failure::new(ErrorCode::BadRequest, format!("{what} is not the JSON that is expected: {place}{error}"))
    };
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        // At the top there is no field to name.
        let place = if path == "." || error.inner().is_syntax() { String::new() } else { format!("in `{path}`: ") };
        wrong(place, error.into_inner())
    })?;
    reader.end().map_err(|error| wrong(String::new(), error))?;
    Ok(value)
}

async fn read(body: Body, limits: &Limits) -> Result<Vec<u8>, Failure> {
    let too_large = || Failure::new(ErrorCode::TooLarge, format!("the body is larger than {} bytes", limits.bytes));
    let mut body = Limited::new(body, limits.bytes);
    let all = async {
        let mut bytes = vec![];
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| match error.is::<LengthLimitError>() {
                true => too_large(),
                false => Failure::new(ErrorCode::BadRequest, format!("the body was cut off: {error}")),
            })?;
            if let Ok(data) = frame.into_data() {
                bytes.extend_from_slice(&data);
            }
        }
        Ok(bytes)
    };
    match tokio::time::timeout(limits.time, all).await {
        Err(_) => {
            let why = format!("the body did not arrive within {} s", limits.time.as_secs_f64());
            Err(Failure::new(ErrorCode::SlowBody, why))
        }
        Ok(read) => read,
    }
}

/// The number of values of JSON, or what it has in excess: depth or values.
fn values(text: &[u8]) -> Result<usize, String> {
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
                    return Err(format!("the body is nested deeper than {DEEPEST} levels at byte {at}"));
                }
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            b',' if !in_string => values += 1,
            _ => {}
        }
    }
    if values > MOST_VALUES { Err(format!("the body has more than {MOST_VALUES} values")) } else { Ok(values) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn brackets_and_values_count_outside_of_strings() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert_eq!(values(nested(DEEPEST).as_bytes()), Ok(DEEPEST + 1));
        assert!(values(nested(DEEPEST + 1).as_bytes()).unwrap_err().ends_with(&format!("at byte {DEEPEST}")));
        let text = format!(r#"{{"a": "{}\"{}", "b": []}}"#, "[".repeat(100), "{".repeat(100));
        assert_eq!(values(text.as_bytes()), Ok(4));
        let row = |n: usize| format!("[{}1]", "1,".repeat(n));
        assert_eq!(values(row(MOST_VALUES - 2).as_bytes()), Ok(MOST_VALUES));
        assert!(values(row(MOST_VALUES).as_bytes()).unwrap_err().contains("values"));
        assert_eq!(values(format!("\"{}\"", ",".repeat(MOST_VALUES)).as_bytes()), Ok(1));
    }

    /// A body of spaces and an object in parts of one unit, with a moment between them.
    fn slow(units: usize) -> Body {
        let parts = futures_util::stream::unfold(0, move |at| async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            let part = if at + 1 == units { "{}".to_string() } else { " ".repeat(UNIT) };
            (at < units).then(|| (Ok::<_, std::io::Error>(part), at + 1))
        });
        Body::from_stream(parts)
    }

    #[test]
    fn bodies_that_do_not_fit_together_arrive_one_after_another_and_a_client_has_a_share() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            // Each body takes three of the four units, in six parts of the time that a body has.
            let limits = Limits::with_room(3 * UNIT, Duration::from_millis(500), 4);
            let clients = ["a", "b", "c"].map(Client::new);
            let all = clients
                .each_ref()
                .map(|client| async { json::<HashMap<String, u8>>(&HeaderMap::new(), slow(3), &limits, client).await });
            for read in futures_util::future::join_all(all).await {
                assert_eq!(read, Ok(HashMap::new()));
            }
            let limits = Limits::with_room(UNIT, Duration::from_secs(10), 8);
            let mut held = vec![];
            for _ in 0..4 {
                held.push(limits.reserve(&clients[0], UNIT).await);
            }
            let moment = Duration::from_millis(50);
            assert!(tokio::time::timeout(moment, limits.reserve(&clients[0], UNIT)).await.is_err(), "it has its share");
            assert!(tokio::time::timeout(moment, limits.reserve(&clients[1], UNIT)).await.is_ok(), "others have room");
        });
    }

    #[test]
    fn values_have_room_until_they_were_accepted() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let limits = Limits::new(1 << 20, Duration::from_secs(10));
            let text = format!("{{\"a\": [{}1]}}", "1,".repeat(MOST_VALUES - 3));
            let read = || async {
                let (headers, client) = (HeaderMap::new(), Client::new("a"));
                counted::<HashMap<String, Vec<u8>>>(&headers, Body::from(text.clone()), &limits, &client).await.unwrap()
            };
            let held = [read().await, read().await];
            assert_eq!(held[0].0["a"].len(), MOST_VALUES - 2);
            let moment = Duration::from_millis(50);
            assert!(tokio::time::timeout(moment, read()).await.is_err(), "their values are not accepted yet");
            drop(held);
            read().await;
        });
    }
}
