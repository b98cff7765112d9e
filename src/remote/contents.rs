//! Contents of a server by its own digests: which it lacks, several at once, in both directions. Knows batches and streams; does not know what contents are for.

use std::collections::HashMap;

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use futures_util::future::try_join_all;
use reapi::batch_update_blobs_request::Request as Content;
use tonic::{Code, Status};

use super::connection::Connection;
use super::digests::HashFunction;
use super::error::RemoteError;
use super::retry::{Limiter, failed, sent};
use super::streams;

/// What a content needs in a message beyond its own bytes: the digest and the lengths.
pub(crate) const BESIDE: u64 = 200;

/// The contents that the server does not have.
pub(crate) async fn missing(
    limiter: &Limiter,
    connection: &Connection,
    digests: Vec<reapi::Digest>,
) -> Result<Vec<reapi::Digest>, RemoteError> {
    if digests.is_empty() {
        return Ok(vec![]);
    }
    let request = reapi::FindMissingBlobsRequest {
        instance_name: connection.instance.clone(),
        blob_digests: digests,
        digest_function: connection.capabilities.function.number(),
    };
    let send = || {
        let (mut contents, request) = (connection.contents.clone(), request.clone());
        async move { contents.find_missing_blobs(request).await }
    };
    let answer = sent(limiter, connection.timeout, "FindMissingBlobs", send).await?;
    Ok(answer.map(|answer| answer.into_inner().missing_blob_digests).unwrap_or_default())
}

/// Reads contents that fit into one batch. Gives those that the server has, by hash. The caller compares them with their digests.
pub(crate) async fn read(
    limiter: &Limiter,
    connection: &Connection,
    digests: Vec<reapi::Digest>,
) -> Result<HashMap<String, Vec<u8>>, RemoteError> {
    let request = reapi::BatchReadBlobsRequest {
        instance_name: connection.instance.clone(),
        digests,
        acceptable_compressors: vec![],
        digest_function: connection.capabilities.function.number(),
    };
    let send = || {
        let (mut contents, request) = (connection.contents.clone(), request.clone());
        async move { contents.batch_read_blobs(request).await }
    };
    let answer = sent(limiter, connection.timeout, "BatchReadBlobs", send).await?;
    let responses = answer.map(|answer| answer.into_inner().responses).unwrap_or_default();
    let is_fine = |code: i32| code == Code::Ok as i32;
    let good = responses.into_iter().filter(|r| r.status.as_ref().is_none_or(|status| is_fine(status.code)));
    Ok(good.filter_map(|r| Some((r.digest?.hash, r.data))).collect())
}

/// Sends contents: small ones in batches, others in streams.
pub(crate) async fn upload(
    limiter: &Limiter,
    connection: &Connection,
    contents: Vec<(reapi::Digest, Vec<u8>)>,
) -> Result<(), RemoteError> {
    let limit = connection.capabilities.batch;
    let (small, large): (Vec<_>, Vec<_>) =
        contents.into_iter().partition(|(_, bytes)| bytes.len() as u64 + BESIDE <= limit);
    let mut batches: Vec<Vec<Content>> = vec![];
    let mut size = u64::MAX;
    for (digest, bytes) in small {
        let own = bytes.len() as u64 + BESIDE;
        if size.saturating_add(own) > limit {
            batches.push(vec![]);
            size = 0;
        }
        size += own;
        let content = Content { digest: Some(digest), data: bytes, compressor: 0 };
        if let Some(batch) = batches.last_mut() {
            batch.push(content);
        }
    }
    try_join_all(batches.into_iter().map(|batch| upload_batch(limiter, connection, batch))).await?;
    for (at, (digest, bytes)) in large.into_iter().enumerate() {
        let unique = unique(&digest, at);
        streams::write(limiter, connection, &digest, bytes, &unique).await?;
    }
    Ok(())
}

async fn upload_batch(limiter: &Limiter, connection: &Connection, requests: Vec<Content>) -> Result<(), RemoteError> {
    let method = "BatchUpdateBlobs";
    let request = reapi::BatchUpdateBlobsRequest {
        instance_name: connection.instance.clone(),
        requests,
        digest_function: connection.capabilities.function.number(),
    };
    let send = || {
        let (mut contents, request) = (connection.contents.clone(), request.clone());
        async move { contents.batch_update_blobs(request).await }
    };
    let answer = sent(limiter, connection.timeout, method, send).await?;
    let responses = answer.map(|answer| answer.into_inner().responses).unwrap_or_default();
    let refused = responses.into_iter().filter_map(|response| response.status).find(|status| status.code != 0);
    match refused {
        Some(status) => Err(failed(method)(Status::new(Code::from(status.code), status.message))),
        None => Ok(()),
    }
}

/// A name for an upload in the form of a UUID, as servers expect it: of this process, so that two machines do not disturb each other.
fn unique(digest: &reapi::Digest, at: usize) -> String {
    let seed = format!("{} {} {at} {:?}", digest.hash, std::process::id(), std::time::SystemTime::now());
    let hex = HashFunction::Blake3.of(seed.as_bytes()).hash;
    format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}
