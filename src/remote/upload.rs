//! Stores results at the server, in the background: first the contents that it lacks, in batches, then the results that name them.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use futures_util::future::try_join_all;
use kforge_foundation::base::Digest;
use kforge_types::record::StepResult;
use reapi::batch_update_blobs_request::Request as Content;
use tokio::sync::Notify;
use tonic::{Code, Status};

use super::address::address;
use super::client::Client;
use super::connection::Connection;
use super::digests::HashFunction;
use super::entry;
use super::error::RemoteError;
use super::retry::{failed, sent};
use super::streams;

/// How many bytes of contents are in memory at once.
const ROUND: u64 = 64 << 20;

/// The results that are not stored yet.
#[derive(Default)]
pub(crate) struct Uploads {
    queue: RefCell<Vec<(Digest, StepResult)>>,
    is_running: Cell<bool>,
    ended: Notify,
}

/// A result with its outputs as the server calls them.
struct Prepared {
    key: Digest,
    result: StepResult,
    digests: Vec<reapi::Digest>,
}

impl Uploads {
    /// Stores a result soon.
    pub(crate) fn add(&self, client: &Rc<Client>, key: Digest, result: StepResult) {
        self.queue.borrow_mut().push((key, result));
        if !self.is_running.replace(true) {
            tokio::task::spawn_local(run(Rc::clone(client)));
        }
    }

    /// Waits until nothing is left to store.
    pub(crate) async fn ended(&self) {
        while self.is_running.get() {
            self.ended.notified().await;
        }
    }

    /// The results of the next round.
    fn next(&self) -> Vec<(Digest, StepResult)> {
        let mut queue = self.queue.borrow_mut();
        let mut size = 0;
        let fits = |(_, result): &&(Digest, StepResult)| {
            size += result.outputs.values().map(Digest::size).sum::<u64>();
            size <= ROUND
        };
        let count = queue.iter().take_while(fits).count().max(1).min(queue.len());
        queue.drain(..count).collect()
    }
}

async fn run(client: Rc<Client>) {
    loop {
        let round = client.uploads.next();
        if round.is_empty() {
            break;
        }
        let count = round.len();
        let (reading, writing) = (&client.shared.reading, &client.shared.writing);
        if reading.is_open() || writing.is_open() {
            continue;
        }
        let Some(connection) = client.connection().await else { continue };
        match client.store(&connection, round).await {
            Ok(()) => {
                writing.success();
                client.shared.unstored.fetch_sub(count, Ordering::Relaxed);
            }
            Err(error) => writing.failure(&error),
        }
    }
    client.uploads.is_running.set(false);
    client.uploads.ended.notify_waiters();
}

impl Client {
    async fn store(&self, connection: &Connection, round: Vec<(Digest, StepResult)>) -> Result<(), RemoteError> {
        if !connection.capabilities.stores_results {
            return Err(RemoteError::Lacks("no results stored by this client: it announces that it takes none"));
        }
        let (prepared, contents) = self.prepared(connection, round).await;
        let missing = self.missing(connection, contents.values().map(|(digest, _)| digest.clone()).collect()).await?;
        let missing = missing.into_iter().filter_map(|digest| contents.get(&digest.hash).cloned()).collect();
        self.upload(connection, missing).await?;
        let update = |Prepared { key, result, digests }| {
            let function = connection.capabilities.function;
            let action_result = entry::written(&result, digests);
            let request = action_result.map(|action_result| reapi::UpdateActionResultRequest {
                instance_name: connection.instance.clone(),
                action_digest: Some(address(function, &key)),
                action_result: Some(action_result),
                digest_function: function.number(),
                ..Default::default()
            });
            async move {
                let Some(request) = request else { return Ok(()) };
                let send = || {
                    let (mut actions, request) = (connection.actions.clone(), request.clone());
                    async move { actions.update_action_result(request).await }
                };
                sent(&self.limiter, connection.timeout, "UpdateActionResult", send).await.map(drop)
            }
        };
        try_join_all(prepared.into_iter().map(update)).await.map(drop)
    }

    /// Reads and hashes the outputs of results. A result without all its outputs, or with one that is too large, is left out.
    async fn prepared(
        &self,
        connection: &Connection,
        round: Vec<(Digest, StepResult)>,
    ) -> (Vec<Prepared>, HashMap<String, (reapi::Digest, Vec<u8>)>) {
        let (store, function) = (self.shared.store.clone(), connection.capabilities.function);
        let largest = connection.capabilities.largest.unwrap_or(u64::MAX);
        let work = move || {
            let mut contents = HashMap::new();
            let mut prepared = vec![];
            for (key, result) in round {
                let read =
                    |digest: &Digest| store.get(digest).ok().flatten().filter(|bytes| bytes.len() as u64 <= largest);
                let bytes: Option<Vec<Vec<u8>>> = result.outputs.values().map(read).collect();
                let Some(bytes) = bytes else { continue };
                let digests: Vec<reapi::Digest> = bytes.iter().map(|bytes| function.of(bytes)).collect();
                contents.extend(digests.iter().zip(bytes).map(|(d, bytes)| (d.hash.clone(), (d.clone(), bytes))));
                prepared.push(Prepared { key, result, digests });
            }
            (prepared, contents)
        };
        tokio::task::spawn_blocking(work).await.unwrap_or_default()
    }

    /// The contents that the server does not have.
    pub(crate) async fn missing(
        &self,
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
        let answer = sent(&self.limiter, connection.timeout, "FindMissingBlobs", send).await?;
        Ok(answer.map(|answer| answer.into_inner().missing_blob_digests).unwrap_or_default())
    }

    /// Sends contents: small ones in batches, others in streams.
    pub(crate) async fn upload(
        &self,
        connection: &Connection,
        contents: Vec<(reapi::Digest, Vec<u8>)>,
    ) -> Result<(), RemoteError> {
        let limit = connection.capabilities.batch;
        let (small, large): (Vec<_>, Vec<_>) =
            contents.into_iter().partition(|(_, bytes)| bytes.len() as u64 + 200 <= limit);
        let mut batches: Vec<Vec<Content>> = vec![];
        let mut size = u64::MAX;
        for (digest, bytes) in small {
            let own = bytes.len() as u64 + 200;
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
        try_join_all(batches.into_iter().map(|batch| self.upload_batch(connection, batch))).await?;
        for (at, (digest, bytes)) in large.into_iter().enumerate() {
            let unique = unique(&digest, at);
            streams::write(&self.limiter, connection, &digest, bytes, &unique).await?;
        }
        Ok(())
    }

    async fn upload_batch(&self, connection: &Connection, requests: Vec<Content>) -> Result<(), RemoteError> {
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
        let answer = sent(&self.limiter, connection.timeout, method, send).await?;
        let responses = answer.map(|answer| answer.into_inner().responses).unwrap_or_default();
        let refused = responses.into_iter().filter_map(|response| response.status).find(|status| status.code != 0);
        match refused {
            Some(status) => Err(failed(method)(Status::new(Code::from(status.code), status.message))),
            None => Ok(()),
        }
    }
}

/// A name for an upload in the form of a UUID, as servers expect it: of this process, so that two machines do not disturb each other.
fn unique(digest: &reapi::Digest, at: usize) -> String {
    let seed = format!("{} {} {at} {:?}", digest.hash, std::process::id(), std::time::SystemTime::now());
    let hex = HashFunction::Blake3.of(seed.as_bytes()).hash;
    format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}
