//! Contents that are too large for a batch, one stream each. With zstd, if the server has it.

use std::io::Read as _;
use std::sync::Arc;

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use bazel_remote_apis::google::bytestream::{ReadRequest, WriteRequest};
use futures_util::future::{Either, select};
use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tonic::Status;

use super::connection::Connection;
use super::error::RemoteError;
use super::retry::{Limiter, failed, sent, within};

/// The size of one part of a stream in bytes. The time limit is for each part.
const PART: usize = 256 << 10;
/// How many time limits the answer to a whole stream may take: parts are under way after the last one was given to the system.
const ANSWER: u32 = 6;

/// Reads a content of `size` bytes. None if the server does not have it. The caller compares it with its digest.
pub(crate) async fn read(
    limiter: &Limiter,
    connection: &Connection,
    named: &reapi::Digest,
    size: u64,
) -> Result<Option<Vec<u8>>, RemoteError> {
    let is_packed = connection.capabilities.has_zstd;
    let kind = if is_packed { "compressed-blobs/zstd" } else { "blobs" };
    let function = connection.capabilities.function.in_names();
    let resource = connection.resource(&format!("{kind}/{function}{}/{}", named.hash, named.size_bytes));
    // What cannot be compressed becomes a little longer.
    let most = if is_packed { size + size / 64 + 1024 } else { size };
    let method = "ByteStream.Read";
    let send = || {
        let mut streams = connection.streams.clone();
        let request = ReadRequest { resource_name: resource.clone(), ..Default::default() };
        async move {
            let late = |late: RemoteError| Status::deadline_exceeded(late.to_string());
            let answer = within(connection.timeout, method, streams.read(request)).await.map_err(late)??;
            let mut parts = answer.into_inner();
            let mut bytes = vec![];
            // The time limit is for each part, because a large content takes its time.
            while let Some(part) = within(connection.timeout, method, parts.message()).await.map_err(late)?? {
                bytes.extend_from_slice(&part.data);
                if bytes.len() as u64 > most {
                    return Err(Status::data_loss("more bytes than the content has"));
                }
            }
            Ok(bytes)
        }
    };
    let Some(bytes) = sent(limiter, connection.timeout.saturating_mul(60), method, send).await? else {
        return Ok(None);
    };
    if !is_packed {
        return Ok(Some(bytes));
    }
    let unpacked = move || {
        let mut out = vec![];
        let decoder = StreamingDecoder::new(bytes.as_slice()).map_err(std::io::Error::other)?;
        // One byte more than expected is enough to know that the content is another one.
        decoder.take(size + 1).read_to_end(&mut out).map(|_| out)
    };
    let out = tokio::task::spawn_blocking(unpacked).await.unwrap_or_else(|e| Err(std::io::Error::other(e)));
    out.map(Some).map_err(|e| RemoteError::Entry(e.to_string()))
}

/// Writes a content. `unique` tells this upload from others of the same content.
pub(crate) async fn write(
    limiter: &Limiter,
    connection: &Connection,
    digest: &reapi::Digest,
    bytes: Vec<u8>,
    unique: &str,
) -> Result<(), RemoteError> {
    let is_packed = connection.capabilities.has_zstd;
    let kind = if is_packed { "compressed-blobs/zstd" } else { "blobs" };
    let function = connection.capabilities.function.in_names();
    let name = format!("uploads/{unique}/{kind}/{function}{}/{}", digest.hash, digest.size_bytes);
    let resource = connection.resource(&name);
    let packed = move || if is_packed { compress_to_vec(bytes.as_slice(), CompressionLevel::Fastest) } else { bytes };
    let bytes = tokio::task::spawn_blocking(packed).await.map_err(|e| RemoteError::Entry(e.to_string()))?;
    let (bytes, method) = (Arc::new(bytes), "ByteStream.Write");
    let send = || {
        let (mut streams, resource, bytes) = (connection.streams.clone(), resource.clone(), bytes.clone());
        async move {
            let late = |late: RemoteError| Status::deadline_exceeded(late.to_string());
            let (feed, fed) = tokio::sync::mpsc::channel(1);
            let fed =
                futures_util::stream::unfold(fed, |mut fed| async move { fed.recv().await.map(|part| (part, fed)) });
            let fed = Box::pin(streams.write(fed));
            let feeding = Box::pin(async move {
                for part in parts(&resource, &bytes) {
                    // A server that has answered takes no more.
                    if within(connection.timeout, method, feed.send(part)).await?.is_err() {
                        break;
                    }
                }
                Ok(())
            });
            match select(fed, feeding).await {
                Either::Left((answer, _)) => answer,
                Either::Right((Err(error), _)) => Err(late(error)),
                Either::Right((Ok(()), answer)) => {
                    within(connection.timeout.saturating_mul(ANSWER), method, answer).await.map_err(late)?
                }
            }
        }
    };
    let missing = || failed(method)(Status::not_found("the server has no such resource"));
    // Some servers end the stream early, with success, because another client has stored the content meanwhile.
    sent(limiter, connection.timeout.saturating_mul(60), method, send).await?.map(drop).ok_or_else(missing)
}

fn parts(resource: &str, bytes: &[u8]) -> impl Iterator<Item = WriteRequest> {
    let all = bytes.chunks(PART).enumerate();
    all.map(move |(at, part)| WriteRequest {
        // Only the first part needs the name.
        resource_name: if at == 0 { resource.to_string() } else { String::new() },
        write_offset: (at * PART) as i64,
        finish_write: (at + 1) * PART >= bytes.len(),
        data: part.to_vec(),
    })
}
