//! The thread that talks to the server. Requests come over a channel; all that belongs to one connection stays on this thread.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use crossbeam_channel::Sender;
use kforge_engine::{Blobs, Hit, RemoteAnswer, RemoteQuestion};
use kforge_foundation::base::Digest;
use kforge_types::record::StepResult;
use kforge_types::record::event::CacheOrigin;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{OnceCell, watch};
use tokio::task::JoinHandle;

use super::address::address;
use super::batches::Batches;
use super::breaker::Breaker;
use super::connection::{Access, Connection};
use super::digests::HashFunction;
use super::entry;
use super::error::RemoteError;
use super::retry::{Limiter, sent};
use super::step::{ReadAnswer, RemoteStep};
use super::upload::Uploads;

/// How often a wait for the server looks whether the command was interrupted.
pub(crate) const TICK: Duration = Duration::from_millis(50);

/// What other threads ask for.
pub(crate) enum Request {
    Ask(RemoteQuestion, Answer),
    /// Brings contents to the store; then sends.
    Fetch(Vec<Digest>, Sender<()>),
    Store(Digest, StepResult),
    /// Executes a step; then sends what the worker answered, or nothing.
    Execute(Box<RemoteStep>, ReadAnswer, Sender<Option<Vec<u8>>>),
    /// Sends once everything is stored, or cannot be.
    Finish(Sender<()>),
}

/// Answers a question, without a result at the latest when it is dropped: whoever asked waits for it.
pub(crate) struct Answer(Option<RemoteAnswer>);

impl Answer {
    pub(crate) fn new(answer: RemoteAnswer) -> Answer {
        Answer(Some(answer))
    }

    fn give(mut self, hit: Option<Hit>) {
        if let Some(answer) = self.0.take() {
            answer(hit);
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some(answer) = self.0.take() {
            answer(None);
        }
    }
}

/// What the thread shares with others.
pub(crate) struct Shared {
    pub(crate) access: Access,
    pub(crate) store: Arc<dyn Blobs>,
    pub(crate) interrupted: Arc<AtomicBool>,
    pub(crate) reading: Breaker,
    pub(crate) writing: Breaker,
    pub(crate) executing: Breaker,
    /// Of steps that only workers can execute: what fails at other steps says nothing about them.
    pub(crate) observing: Breaker,
    /// How many results were given and are not stored yet, or could not be.
    pub(crate) unstored: AtomicUsize,
    /// The contents that hits named, as the server calls them.
    names: Mutex<HashMap<Digest, reapi::Digest>>,
    /// The server's digests of contents that were sent with steps, and of the program.
    hashes: Mutex<HashMap<Digest, reapi::Digest>>,
    program: Mutex<Option<(PathBuf, reapi::Digest)>>,
}

impl Shared {
    pub(crate) fn new(
        access: Access,
        store: Arc<dyn Blobs>,
        interrupted: Arc<AtomicBool>,
        [reading, writing, executing, observing]: [Breaker; 4],
    ) -> Shared {
        let (unstored, names, hashes, program) =
            (AtomicUsize::new(0), Mutex::default(), Mutex::default(), Mutex::default());
        Shared { access, store, interrupted, reading, writing, executing, observing, unstored, names, hashes, program }
    }

    /// The server's digest of a stored content, which is read at the first time.
    pub(crate) fn hashed(&self, digest: &Digest, function: HashFunction) -> io::Result<reapi::Digest> {
        let hashes = || self.hashes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = hashes().get(digest) {
            return Ok(known.clone());
        }
        let hashed = match function {
            HashFunction::Blake3 => function.named(digest),
            HashFunction::Sha256 => function.of(&self.store.get(digest)?.ok_or(io::ErrorKind::NotFound)?),
        };
        hashes().insert(*digest, hashed.clone());
        Ok(hashed)
    }

    /// The server's digest of the program, which is read once.
    pub(crate) fn hashed_program(&self, path: &Path, function: HashFunction) -> io::Result<reapi::Digest> {
        let mut program = self.program.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = program.as_ref().filter(|(known, _)| known == path) {
            return Ok(known.clone());
        }
        let hashed = function.of(&std::fs::read(path)?);
        *program = Some((path.to_path_buf(), hashed.clone()));
        Ok(hashed)
    }

    fn names(&self) -> std::sync::MutexGuard<'_, HashMap<Digest, reapi::Digest>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server's digest of a content that a hit named.
    pub(crate) fn named(&self, digest: &Digest) -> Option<reapi::Digest> {
        self.names().get(digest).cloned()
    }

    /// A content cannot be had.
    pub(crate) fn forget(&self, digest: &Digest) {
        self.names().remove(digest);
    }
}

/// The state of the thread.
pub(crate) struct Client {
    pub(crate) shared: Arc<Shared>,
    pub(crate) limiter: Limiter,
    pub(crate) batches: Batches,
    pub(crate) uploads: Uploads,
    /// The hash of the program, once the server has it; and the turn of whoever sends it.
    pub(crate) offered: RefCell<HashSet<String>>,
    pub(crate) offering: tokio::sync::Mutex<()>,
    /// How many workers in a row refused steps that compare this.
    pub(crate) refused: RefCell<HashMap<Digest, u32>>,
    /// The operations that are being cancelled.
    pub(crate) ending: RefCell<Vec<JoinHandle<()>>>,
    connection: OnceCell<Option<Connection>>,
    interrupted: watch::Receiver<bool>,
}

/// Serves requests until no thread can send any.
pub(crate) fn serve(shared: Arc<Shared>, requests: UnboundedReceiver<Request>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, go_on(shared, requests));
    // A blocking task may still be writing a content; it is not waited for.
    runtime.shutdown_background();
    Ok(())
}

async fn go_on(shared: Arc<Shared>, mut requests: UnboundedReceiver<Request>) {
    let (interrupt, interrupted) = watch::channel(false);
    let client = Rc::new(Client {
        shared: shared.clone(),
        limiter: Limiter::new(),
        batches: Batches::default(),
        uploads: Uploads::default(),
        offered: RefCell::default(),
        offering: tokio::sync::Mutex::default(),
        refused: RefCell::default(),
        ending: RefCell::default(),
        connection: OnceCell::new(),
        interrupted,
    });
    loop {
        let request = tokio::select! {
            request = requests.recv() => request,
            () = tokio::time::sleep(TICK) => {
                if shared.interrupted.load(Ordering::Relaxed) {
                    interrupt.send_replace(true);
                }
                continue;
            }
        };
        let Some(request) = request else { break };
        let client = Rc::clone(&client);
        match request {
            Request::Ask(question, answer) => drop(tokio::task::spawn_local(async move {
                let hit = client.unless_interrupted(client.hit(&question)).await.flatten();
                answer.give(hit);
            })),
            Request::Fetch(digests, done) => drop(tokio::task::spawn_local(async move {
                client.unless_interrupted(client.fetch(&digests)).await;
                let _ = done.send(());
            })),
            Request::Execute(step, read, done) => drop(tokio::task::spawn_local(async move {
                client.execute(&step, &read, done).await;
            })),
            Request::Store(key, result) => client.uploads.add(&client, key, result),
            Request::Finish(done) => drop(tokio::task::spawn_local(async move {
                client.unless_interrupted(client.uploads.ended()).await;
                let _ = done.send(());
            })),
        }
    }
    // Each has a limit.
    for ends in client.ending.take() {
        let _ = ends.await;
    }
}

impl Client {
    /// What the future gives; none if the build is interrupted first.
    pub(crate) async fn unless_interrupted<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut interrupted = self.interrupted.clone();
        tokio::select! {
            biased;
            _ = interrupted.wait_for(|is| *is) => None,
            given = future => Some(given),
        }
    }

    /// The connection, opened when it is first needed. None if it could not be opened.
    pub(crate) async fn connection(&self) -> Option<Connection> {
        let open = || async {
            match Connection::open(&self.shared.access, &self.shared.interrupted).await {
                Ok(connection) => Some(connection),
                Err(error) => {
                    self.shared.reading.failure(&error);
                    None
                }
            }
        };
        self.connection.get_or_init(open).await.clone()
    }

    /// The result that the server has, with the outputs that are read in the store.
    async fn hit(self: &Rc<Self>, question: &RemoteQuestion) -> Option<Hit> {
        if self.shared.reading.is_open() {
            return None;
        }
        let connection = self.connection().await?;
        let (result, digests) = match self.result(&connection, question).await {
            Ok(found) => {
                self.shared.reading.success();
                found?
            }
            Err(error) => {
                self.shared.reading.failure(&error);
                return None;
            }
        };
        self.shared.names().extend(digests);
        let read: Vec<Digest> = question.read.iter().filter_map(|name| result.outputs.get(name)).copied().collect();
        self.fetch(&read).await;
        let is_whole = read.iter().all(|digest| self.shared.store.has(digest));
        is_whole.then_some(Hit { result, origin: CacheOrigin::Remote, evidence: None, tag: None })
    }

    async fn result(
        &self,
        connection: &Connection,
        question: &RemoteQuestion,
    ) -> Result<Option<entry::Entry>, RemoteError> {
        let function = connection.capabilities.function;
        let request = reapi::GetActionResultRequest {
            instance_name: connection.instance.clone(),
            action_digest: Some(address(function, &question.key)),
            inline_stdout: true,
            digest_function: function.number(),
            ..Default::default()
        };
        let send = || {
            let (mut actions, request) = (connection.actions.clone(), request.clone());
            async move { actions.get_action_result(request).await }
        };
        match sent(&self.limiter, connection.timeout, "GetActionResult", send).await? {
            Some(answer) => entry::read(question.spec.kind, answer.get_ref()),
            None => Ok(None),
        }
    }
}
