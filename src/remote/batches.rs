//! Reads many contents of the server at once. A content that is wanted while others are being gathered joins their batch, so that ten thousand small contents
//! are some dozens of requests.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use kforge_foundation::base::Digest;
use tokio::sync::oneshot;

use super::client::Client;
use super::connection::Connection;
use super::contents;
use super::error::RemoteError;
use super::streams;

/// How long contents are gathered for a batch.
const GATHER: Duration = Duration::from_millis(1);
/// The largest number of contents in one batch.
const MOST: usize = 1000;

/// What a content is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wants {
    /// It is a content that a hit named: an error is one of reading.
    Content,
    /// It is an output that a worker states: whoever executes the step judges the error.
    Outputs,
}

/// A content that is wanted.
struct Wanted {
    wants: Wants,
    digest: Digest,
    named: reapi::Digest,
}

/// A content, and the server's hash of it: another answer may name it wrongly.
type Named = (Digest, String);

/// Who waits for a content, and hears why it cannot be had.
type Waiting = oneshot::Sender<Option<RemoteError>>;

/// The contents that are wanted and not here yet, with those who wait for them.
#[derive(Default)]
pub(crate) struct Batches {
    queue: RefCell<Vec<Wanted>>,
    waiting: RefCell<HashMap<Named, Vec<Waiting>>>,
    is_gathering: Cell<bool>,
}

impl Client {
    /// Brings contents that hits have named to the store. Returns once each is there or cannot be had; those that cannot are no longer named.
    pub(crate) async fn fetch(self: &Rc<Self>, digests: &[Digest]) {
        let named = digests.iter().filter_map(|digest| Some((*digest, self.shared.named(digest)?))).collect();
        self.fetch_named(named, Wants::Content).await;
    }

    /// Brings contents to the store. Returns once each is there or cannot be had, with the first error.
    pub(crate) async fn fetch_named(
        self: &Rc<Self>,
        named: Vec<(Digest, reapi::Digest)>,
        wants: Wants,
    ) -> Option<RemoteError> {
        let mut waits = vec![];
        for (digest, named) in named.into_iter().filter(|(digest, _)| !self.shared.store.has(digest)) {
            let (done, wait) = oneshot::channel();
            waits.push(wait);
            let mut waiting = self.batches.waiting.borrow_mut();
            let others = waiting.entry((digest, named.hash.clone())).or_default();
            if others.is_empty() {
                self.batches.queue.borrow_mut().push(Wanted { wants, digest, named });
            }
            others.push(done);
        }
        if !waits.is_empty() && !self.batches.is_gathering.replace(true) {
            tokio::task::spawn_local(Rc::clone(self).send_batches());
        }
        let mut first = None;
        for wait in waits {
            // The sender is dropped only with this client.
            let error = wait.await.ok().flatten();
            first = first.or(error);
        }
        first
    }

    /// Sends what is wanted in batches, until nothing more is.
    async fn send_batches(self: Rc<Self>) {
        loop {
            tokio::time::sleep(GATHER).await;
            let limit = self.connection().await.map_or(0, |connection| connection.capabilities.batch);
            let Some(batch) = self.next_batch(limit) else { break };
            tokio::task::spawn_local(Rc::clone(&self).read(batch));
        }
        self.batches.is_gathering.set(false);
    }

    /// Takes contents from the queue that fit into one batch; a larger one is alone.
    fn next_batch(&self, limit: u64) -> Option<Vec<Wanted>> {
        let mut queue = self.batches.queue.borrow_mut();
        let mut size: u64 = 0;
        let mut count = 0;
        while let Some(wanted) = queue.get(count) {
            // The digest and the lengths in the message take some bytes.
            size = wanted.digest.size().saturating_add(size).saturating_add(200);
            if count > 0 && (size > limit || count >= MOST) {
                break;
            }
            count += 1;
        }
        (count > 0).then(|| queue.drain(..count).collect())
    }

    /// Reads a batch and stores what is correct. Whoever waits for it goes on.
    async fn read(self: Rc<Self>, batch: Vec<Wanted>) {
        let (contents, mut errors) = match self.connection().await {
            Some(connection) => self.contents(&connection, &batch).await,
            None => Default::default(),
        };
        let store = self.shared.store.clone();
        // A failure to write is like a content that is not there; the store reports its own troubles.
        let written = move || contents.into_iter().filter_map(|bytes| store.put(&bytes).ok()).collect::<Vec<_>>();
        let stored = tokio::task::spawn_blocking(written).await.unwrap_or_default();
        for Wanted { wants, digest, named } in batch {
            if wants == Wants::Content && !stored.contains(&digest) {
                self.shared.forget(&digest);
            }
            let error = errors.remove(&(digest, named.hash.clone()));
            for waiting in self.batches.waiting.borrow_mut().remove(&(digest, named.hash)).unwrap_or_default() {
                // Nobody waits any more if the build was interrupted.
                let _ = waiting.send(error.clone());
            }
        }
    }

    /// The contents of a batch, those that are correct, and the errors of others.
    async fn contents(&self, connection: &Connection, batch: &[Wanted]) -> (Vec<Vec<u8>>, HashMap<Named, RemoteError>) {
        let read = match batch {
            [one] if one.digest.size() > connection.capabilities.batch => {
                let bytes = streams::read(&self.limiter, connection, &one.named, one.digest.size()).await;
                bytes.map(|bytes| bytes.map(|bytes| (one.named.hash.clone(), bytes)).into_iter().collect())
            }
            _ => {
                let named = batch.iter().map(|wanted| wanted.named.clone()).collect();
                contents::read(&self.limiter, connection, named).await
            }
        };
        let reading = &self.shared.reading;
        let read: HashMap<String, Vec<u8>> = match read {
            Ok(read) => read,
            Err(error) => {
                if batch.iter().any(|wanted| wanted.wants == Wants::Content) {
                    reading.failure(&error);
                }
                let each = |wanted: &Wanted| ((wanted.digest, wanted.named.hash.clone()), error.clone());
                return (vec![], batch.iter().map(each).collect());
            }
        };
        let (mut contents, mut errors) = (vec![], HashMap::new());
        for Wanted { wants, digest, named } in batch {
            let error = match read.get(&named.hash) {
                Some(bytes) if Digest::of(bytes) == *digest => {
                    contents.push(bytes.clone());
                    None
                }
                Some(_) => Some(RemoteError::WrongBytes(*digest)),
                None => Some(RemoteError::Gone),
            };
            match (wants, &error) {
                (Wants::Content, Some(error)) => reading.failure(error),
                (Wants::Content, None) => reading.success(),
                (Wants::Outputs, _) => {}
            }
            errors.extend(error.map(|error| ((*digest, named.hash.clone()), error)));
        }
        (contents, errors)
    }
}
