//! Stores results at the server, in the background: first the contents that it lacks, in batches, then the results that name them.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use futures_util::future::try_join_all;
use kforge_foundation::base::Digest;
use kforge_types::record::StepResult;
use tokio::sync::Notify;

use super::address::address;
use super::client::Client;
use super::connection::Connection;
use super::contents;
use super::entry;
use super::error::RemoteError;
use super::retry::sent;

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
        let all = contents.values().map(|(digest, _)| digest.clone()).collect();
        let missing = contents::missing(&self.limiter, connection, all).await?;
        let missing = missing.into_iter().filter_map(|digest| contents.get(&digest.hash).cloned()).collect();
        contents::upload(&self.limiter, connection, missing).await?;
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
}
