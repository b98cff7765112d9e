//! Executes steps on a server's workers. Knows the protocol of execution, and when to give up; does not know what a step does.
//!
//! | what happens | what follows |
//! |---|---|
//! | the answer is a failure, or must not be remembered, and comes from a cache of the server | the server is asked again, without its cache |
//! | the server refuses the properties of the step | nothing more is executed there in this build |
//! | no worker takes the step in time | it is cancelled |
//! | the connection breaks | the operation is waited for by its name |
//! | any other error | all contents are offered again, and the server is asked once more: some servers answer a missing content with an error of another name |
//! | after that | nothing: the step runs on this machine |

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use bazel_remote_apis::google::longrunning::{self, operation};
use kforge_foundation::base::Digest;
use prost::Message as _;
use reapi::execution_stage::Value as Stage;
use tokio::time::{Instant, timeout_at};
use tonic::{Code, Status, Streaming};

use super::client::Client;
use super::connection::Connection;
use super::entry::LARGEST;
use super::error::RemoteError;
use super::retry::{failed, within};
use super::step::{Meaning, ReadAnswer, RemoteStep};
use super::streams;
use super::tree::{self, BEYOND_S, Content, OUTPUTS, Prepared};

/// How many bytes of contents are in memory at once.
const ROUND: u64 = 64 << 20;
/// How often a broken connection is followed by a new one without any news of the operation.
const ATTEMPTS: u32 = 4;
/// The wait before the second attempt. It doubles before each further one.
const PAUSE: Duration = Duration::from_millis(100);
/// How long the end of a step's time may take to arrive.
const GRACE: Duration = Duration::from_secs(30);
/// The largest description of a folder of outputs, in bytes.
const LARGEST_TREE: i64 = 4 << 20;

/// What a worker gave.
struct Given {
    answer: Vec<u8>,
    meaning: Meaning,
    /// Whether the server remembered it from an earlier execution.
    is_remembered: bool,
    result: reapi::ActionResult,
}

/// An operation of the server: what is known of it.
struct Watched {
    /// Its name, once the server has said it.
    name: Rc<RefCell<Option<String>>>,
    queued: bool,
    /// When the server last counted it as waiting or, later, when it began to run.
    since: Instant,
}

impl Client {
    /// Executes a step. Returns the answer of the worker, with the outputs of the step in the store. None if it is to run here.
    pub(crate) async fn execute(self: &Rc<Self>, step: &RemoteStep, read: &ReadAnswer) -> Option<Vec<u8>> {
        let executing = &self.shared.executing;
        if executing.is_open() || self.shared.reading.is_open() {
            return None;
        }
        let connection = self.connection().await?;
        let name = Rc::new(RefCell::new(None));
        let executed = self.unless_interrupted(self.executed(&connection, step, read, &name)).await;
        let answer = match executed {
            Some(Ok(answer)) => {
                executing.success();
                return answer;
            }
            Some(Err(error)) => {
                executing.failure(&error);
                None
            }
            None => None,
        };
        // Nobody waits for it any more.
        self.cancel(&connection, name.take()).await;
        answer
    }

    async fn executed(
        self: &Rc<Self>,
        connection: &Connection,
        step: &RemoteStep,
        read: &ReadAnswer,
        name: &Rc<RefCell<Option<String>>>,
    ) -> Result<Option<Vec<u8>>, RemoteError> {
        if !connection.capabilities.executes {
            return Err(RemoteError::Lacks("no execution of steps, which `remote.execute` asks for"));
        }
        let (shared, function, owned) = (self.shared.clone(), connection.capabilities.function, step.clone());
        let made = tokio::task::spawn_blocking(move || tree::prepared(&owned, &shared, function)).await;
        let prepared = made.map_err(|e| RemoteError::Entry(e.to_string()))?;
        let prepared = prepared.map_err(|e| RemoteError::Inputs(e.to_string()))?;
        let mut is_again = false;
        let mut skips_cache = false;
        loop {
            self.offer(connection, &prepared).await?;
            let given = match self.run(connection, step, &prepared.action, skips_cache, read, name).await {
                Ok(given) => given,
                Err(error) if is_again || error.is_final() || matches!(error, RemoteError::NotTaken { .. }) => {
                    return Err(error);
                }
                Err(_) => {
                    is_again = true;
                    // The server may have lost the program too.
                    self.offered.borrow_mut().clear();
                    continue;
                }
            };
            let Given { answer, meaning, is_remembered, result } = given;
            let outputs = match meaning {
                Meaning::Result(outputs) => Ok(outputs),
                Meaning::Fleeting(outputs) if !is_remembered => Ok(outputs),
                Meaning::Failed if !is_remembered => return Ok(None),
                Meaning::Fleeting(_) | Meaning::Failed => Err(RemoteError::Remembered),
                Meaning::Refused(why) => Err(RemoteError::Worker(why)),
            };
            let brought = match outputs {
                Ok(outputs) => self.bring(connection, &result, &outputs).await,
                Err(error) => Err(error),
            };
            match brought {
                Ok(()) => return Ok(Some(answer)),
                // What was remembered may be the word of a worker that is gone, with outputs that are gone.
                Err(_) if is_remembered && !skips_cache => skips_cache = true,
                Err(error) => return Err(error),
            }
        }
    }

    /// Brings the contents of an action to the server that it lacks.
    async fn offer(&self, connection: &Connection, prepared: &Prepared) -> Result<(), RemoteError> {
        // The program is large: where several steps begin at once, one of them sends it.
        let is_known = prepared.program.as_ref().is_none_or(|hash| self.offered.borrow().contains(hash));
        let _turn = if is_known { None } else { Some(self.offering.lock().await) };
        let all = prepared.contents.values().map(|(digest, _)| digest.clone()).collect();
        let missing = self.missing(connection, all).await?;
        let wanted = missing.into_iter().filter_map(|digest| prepared.contents.get(&digest.hash).cloned());
        let mut rounds: Vec<Vec<(reapi::Digest, Content)>> = vec![];
        let mut size = ROUND;
        for (digest, content) in wanted {
            let own = u64::try_from(digest.size_bytes).unwrap_or_default();
            if size.saturating_add(own) > ROUND {
                rounds.push(vec![]);
                size = 0;
            }
            size += own;
            if let Some(round) = rounds.last_mut() {
                round.push((digest, content));
            }
        }
        for round in rounds {
            let store = self.shared.store.clone();
            let read = move || -> std::io::Result<Vec<(reapi::Digest, Vec<u8>)>> {
                let one = |(digest, content): (reapi::Digest, Content)| {
                    let bytes = content.bytes(&*store)?.ok_or(std::io::ErrorKind::NotFound)?;
                    Ok((digest, bytes))
                };
                round.into_iter().map(one).collect()
            };
            let read = tokio::task::spawn_blocking(read).await.map_err(|e| RemoteError::Entry(e.to_string()))?;
            self.upload(connection, read.map_err(|e| RemoteError::Inputs(e.to_string()))?).await?;
        }
        self.offered.borrow_mut().extend(prepared.program.clone());
        Ok(())
    }

    /// Asks the server to execute an action, and waits for what a worker gives.
    async fn run(
        &self,
        connection: &Connection,
        step: &RemoteStep,
        action: &reapi::Digest,
        skips_cache: bool,
        read: &ReadAnswer,
        name: &Rc<RefCell<Option<String>>>,
    ) -> Result<Given, RemoteError> {
        let request = reapi::ExecuteRequest {
            instance_name: connection.instance.clone(),
            skip_cache_lookup: skips_cache,
            action_digest: Some(action.clone()),
            digest_function: connection.capabilities.function.number(),
            inline_stdout: true,
            ..Default::default()
        };
        name.take();
        let mut watched = Watched { name: name.clone(), queued: true, since: Instant::now() };
        let response = self.watch(connection, step, request, &mut watched).await?;
        // It has ended, so there is nothing to cancel.
        name.take();
        if let Some(status) = response.status.filter(|status| status.code != 0) {
            return Err(failed("Execute")(Status::new(Code::from(status.code), status.message)));
        }
        let result = response.result.ok_or_else(|| RemoteError::Entry("an execution without a result".into()))?;
        let answer = self.standard_output(connection, &result).await?;
        let meaning = read(&answer);
        let is_done = matches!(meaning, Meaning::Result(_) | Meaning::Fleeting(_));
        // A program that did not start has an exit code of its own, and writes nothing.
        let meaning = match (is_done, result.exit_code) {
            (true, code) if code != 0 => Meaning::Refused(format!("says that it is done, and ended with code {code}")),
            _ => meaning,
        };
        Ok(Given { answer, meaning, is_remembered: response.cached_result, result })
    }

    /// Waits for the end of an operation, over several connections if they break.
    async fn watch(
        &self,
        connection: &Connection,
        step: &RemoteStep,
        request: reapi::ExecuteRequest,
        watched: &mut Watched,
    ) -> Result<reapi::ExecuteResponse, RemoteError> {
        let mut attempt = 0;
        loop {
            let mut client = connection.execution.clone();
            let known = watched.name.borrow().clone();
            let began = async {
                match known {
                    Some(name) => client.wait_execution(reapi::WaitExecutionRequest { name }).await,
                    None => client.execute(request.clone()).await,
                }
            };
            let ended = match watched.within(step, began).await? {
                Ok(stream) => self.follow(stream.into_inner(), step, watched, &mut attempt).await?,
                Err(status) => Err(status),
            };
            let status = match ended {
                Ok(response) => return Ok(response),
                Err(status) => status,
            };
            attempt += 1;
            if status.code() == Code::FailedPrecondition && !names_missing(&status) {
                let properties = step.properties.iter().map(|(name, value)| format!("{name}={value}"));
                let properties = properties.collect::<Vec<_>>().join(",");
                let RemoteError::Status { message, .. } = failed("Execute")(status) else { continue };
                return Err(RemoteError::Unroutable { properties, message });
            }
            let may_go_away = matches!(status.code(), Code::Unavailable | Code::ResourceExhausted | Code::Unknown);
            if attempt >= ATTEMPTS || !may_go_away {
                return Err(failed("Execute")(status));
            }
            tokio::time::sleep(PAUSE * 2u32.pow(attempt - 1)).await;
        }
    }

    /// Reads the messages about an operation until it ends or they do.
    async fn follow(
        &self,
        mut stream: Streaming<longrunning::Operation>,
        step: &RemoteStep,
        watched: &mut Watched,
        attempt: &mut u32,
    ) -> Result<Result<reapi::ExecuteResponse, Status>, RemoteError> {
        loop {
            let operation = match watched.within(step, stream.message()).await? {
                Ok(Some(operation)) => operation,
                Ok(None) => return Ok(Err(Status::unavailable("the messages about an operation ended before it did"))),
                Err(status) => return Ok(Err(status)),
            };
            *attempt = 0;
            if !operation.name.is_empty() {
                *watched.name.borrow_mut() = Some(operation.name.clone());
            }
            watched.hears(&operation);
            let damaged = |e: prost::DecodeError| RemoteError::Entry(e.to_string());
            match operation.result {
                _ if !operation.done => {}
                Some(operation::Result::Response(any)) => {
                    return Ok(Ok(reapi::ExecuteResponse::decode(any.value.as_slice()).map_err(damaged)?));
                }
                Some(operation::Result::Error(status)) => {
                    return Ok(Err(Status::new(Code::from(status.code), status.message)));
                }
                None => return Err(RemoteError::Entry("an operation that ended with nothing".into())),
            }
        }
    }

    /// Ends an operation. A server that cannot, or does not answer, ends it by its time limit.
    async fn cancel(&self, connection: &Connection, name: Option<String>) {
        let Some(name) = name else { return };
        let mut operations = connection.operations.clone();
        let request = longrunning::CancelOperationRequest { name };
        let _ = within(connection.timeout.min(GRACE), "CancelOperation", operations.cancel_operation(request)).await;
    }

    /// What the worker wrote to its standard output.
    async fn standard_output(
        &self,
        connection: &Connection,
        result: &reapi::ActionResult,
    ) -> Result<Vec<u8>, RemoteError> {
        let named = result.stdout_digest.as_ref().filter(|digest| digest.size_bytes > 0);
        let answer = match named.filter(|_| result.stdout_raw.is_empty()) {
            Some(digest) => self.blob(connection, digest, LARGEST as i64).await?,
            None => result.stdout_raw.clone(),
        };
        if answer.len() > LARGEST {
            return Err(RemoteError::Entry(format!("an answer of more than {LARGEST} bytes")));
        }
        Ok(answer)
    }

    /// A small content by the server's own digest.
    async fn blob(&self, connection: &Connection, digest: &reapi::Digest, most: i64) -> Result<Vec<u8>, RemoteError> {
        let size = u64::try_from(digest.size_bytes).ok().filter(|_| digest.size_bytes <= most);
        let size = size.ok_or_else(|| RemoteError::Entry("a message that is too large".into()))?;
        let bytes = streams::read(&self.limiter, connection, digest, size).await?.ok_or(RemoteError::Gone)?;
        match connection.capabilities.function.of(&bytes) == *digest {
            true => Ok(bytes),
            false => Err(RemoteError::Entry("the server gave other bytes than those of an answer".into())),
        }
    }

    /// Brings the outputs that a worker states to the store.
    async fn bring(
        self: &Rc<Self>,
        connection: &Connection,
        result: &reapi::ActionResult,
        outputs: &BTreeMap<String, Digest>,
    ) -> Result<(), RemoteError> {
        let mut given: BTreeMap<String, reapi::Digest> = BTreeMap::new();
        for file in &result.output_files {
            let name = file.path.strip_prefix(OUTPUTS).and_then(|rest| rest.strip_prefix('/'));
            given.extend(name.zip(file.digest.clone()).map(|(name, digest)| (name.to_string(), digest)));
        }
        if let Some(folder) = result.output_directories.iter().find(|folder| folder.path == OUTPUTS)
            && !outputs.is_empty()
        {
            let digest = folder.tree_digest.as_ref().ok_or_else(|| RemoteError::Output(OUTPUTS.into()))?;
            let bytes = self.blob(connection, digest, LARGEST_TREE).await?;
            let tree = reapi::Tree::decode(bytes.as_slice()).map_err(|e| RemoteError::Entry(e.to_string()))?;
            let files = tree.root.into_iter().flat_map(|root| root.files);
            given.extend(files.filter_map(|file| Some((file.name, file.digest?))));
        }
        let mut named = BTreeMap::new();
        for (name, digest) in outputs {
            let given = given.get(name).filter(|given| u64::try_from(given.size_bytes) == Ok(digest.size()));
            let given = given.ok_or_else(|| RemoteError::Output(name.clone()))?;
            named.insert(*digest, given.clone());
        }
        let digests: Vec<Digest> = named.keys().copied().collect();
        self.shared.name(named);
        self.fetch(&digests).await;
        match digests.iter().find(|digest| !self.shared.store.has(digest)) {
            Some(lost) => Err(RemoteError::WrongBytes(*lost)),
            None => Ok(()),
        }
    }
}

impl Watched {
    /// What a future gives, unless no worker takes the step in time, or a worker does not end it in time.
    async fn within<T>(&self, step: &RemoteStep, future: impl Future<Output = T>) -> Result<T, RemoteError> {
        let (limit, error) = match self.queued {
            true => (step.queue_limit, RemoteError::NotTaken { seconds: step.queue_limit.as_secs() }),
            false => {
                let limit = Duration::from_secs(step.time_limit_s.saturating_add(BEYOND_S)).saturating_add(GRACE);
                (limit, RemoteError::Late { method: "Execute", seconds: limit.as_secs() })
            }
        };
        timeout_at(self.since + limit, future).await.map_err(|_| error)
    }

    /// Reads in which stage an operation is. A server that does not say so counts as one that executes.
    fn hears(&mut self, operation: &longrunning::Operation) {
        let metadata = operation.metadata.as_ref();
        let decoded = metadata.and_then(|any| reapi::ExecuteOperationMetadata::decode(any.value.as_slice()).ok());
        let stage = decoded.and_then(|metadata| Stage::try_from(metadata.stage).ok()).unwrap_or(Stage::Unknown);
        let queued = matches!(stage, Stage::CacheCheck | Stage::Queued);
        if queued != self.queued {
            self.queued = queued;
            self.since = Instant::now();
        }
    }
}

/// Whether a refusal says that a content of the action is missing: its details hold a violation of that type.
fn names_missing(status: &Status) -> bool {
    // The type of a violation is a text that the API fixes: `MISSING`. Its message is not in the generated code of the API.
    let details = status.details();
    details.windows(MISSING.len()).any(|window| window == MISSING)
}

/// The field `type` of a violation: its tag, its length, its value.
const MISSING: &[u8] = b"\x0a\x07MISSING";
