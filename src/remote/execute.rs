//! Executes steps on a server's workers. Knows the protocol of execution, and when to give up; does not know what a step does.
//!
//! | what happens | what follows |
//! |---|---|
//! | the answer is a failure or a time-out, and comes from a cache of the server | the server is asked again, without its cache |
//! | the server refuses the properties of the step, also after all contents were offered again | nothing more is executed there in this build |
//! | the program cannot be sent | nothing more is executed there in this build |
//! | several workers in a row are other machines than a step needs | nothing more that needs the same machine is executed there in this build |
//! | the answer is too large | nothing: the step runs on this machine |
//! | no worker takes the step in time, or the server says nothing about it | it is cancelled |
//! | the connection breaks | the operation is waited for by its name |
//! | the step's time is over, at the server or here | nothing: the step runs on this machine |
//! | any other error | the operation is cancelled, all contents are offered again, and the server is asked once more: some servers answer a missing content with an error of another name |
//! | after that | nothing: the step runs on this machine |
//! | a step that only a worker can execute has no result | it is unknown; errors of such steps are counted apart |

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use bazel_remote_apis::google::longrunning::{self, operation};
use bazel_remote_apis::google::rpc;
use crossbeam_channel::Sender;
use kforge_foundation::base::Digest;
use prost::Message as _;
use reapi::execution_stage::Value as Stage;
use tokio::time::{Instant, timeout_at};
use tonic::{Code, Status, Streaming};

use super::batches::Wants;
use super::breaker::{Breaker, MOST};
use super::client::Client;
use super::connection::Connection;
use super::contents;
use super::entry::{LARGEST, is_readable};
use super::error::RemoteError;
use super::retry::{failed, within};
use super::step::{Meaning, ReadAnswer, RemoteStep};
use super::streams;
use super::tree::{self, BEYOND_S, Content, OUTPUTS, Prepared};

/// How many bytes of contents are in memory at once. A step with more than [`SMALL`] bytes waits until others with as much have sent theirs.
const ROUND: u64 = 64 << 20;
/// How many bytes of contents each of the steps in flight may have in memory.
const SMALL: u64 = 1 << 20;
/// How often a broken connection is followed by a new one without any news of the operation.
const ATTEMPTS: u32 = 4;
/// The wait before the second attempt. It doubles before each further one.
const PAUSE: Duration = Duration::from_millis(100);
/// How long the end of a step's time may take to arrive.
const GRACE: Duration = Duration::from_secs(30);
/// How long the end of an operation that nobody waits for may take.
pub(crate) const CANCEL: Duration = Duration::from_secs(2);
/// A limit that is as good as none, which can be added to the time of the clock.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
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

/// What is known of an operation of the server.
struct Watched {
    /// Its name, once the server has said it.
    name: Rc<RefCell<Option<String>>>,
    queued: bool,
    /// When the server last counted it as waiting or, later, when it began to run.
    since: Instant,
    /// When it ends, in whichever stage it is: a server may go from one stage to another for ever.
    ends: Instant,
}

impl Client {
    /// Executes a step. Gives the answer of the worker, with the outputs of the step in the store. Gives none if it is to run here.
    pub(crate) async fn execute(self: &Rc<Self>, step: &RemoteStep, read: &ReadAnswer, done: Sender<Option<Vec<u8>>>) {
        let executing = self.breaker(step);
        let name = Rc::new(RefCell::new(None));
        let mut answer = None;
        if !executing.is_open()
            && !self.shared.reading.is_open()
            && !self.is_refused(&step.compared)
            && let Some(connection) = self.unless_interrupted(self.connection()).await.flatten()
        {
            match self.unless_interrupted(self.executed(&connection, step, read, &name)).await {
                Some(Ok(given)) => {
                    // A worker that fails at every step is noticed by whoever runs these steps here.
                    if given.is_some() {
                        executing.success();
                        self.refused.borrow_mut().remove(&step.compared);
                    }
                    answer = given;
                }
                // The server is well, and so are its workers of another kind.
                Some(Err(error @ RemoteError::Differs(_))) => {
                    executing.say(&error);
                    *self.refused.borrow_mut().entry(step.compared).or_default() += 1;
                }
                Some(Err(error)) => executing.failure(&error),
                None => {}
            }
            // Nobody waits for it any more, so whoever asked does not wait for its end.
            if let Some(name) = name.take() {
                let client = Rc::clone(self);
                let ends = tokio::task::spawn_local(async move { client.cancel(&connection, name).await });
                let mut ending = self.ending.borrow_mut();
                ending.retain(|task| !task.is_finished());
                ending.push(ends);
            }
        }
        let _ = done.send(answer);
    }

    /// Counts the errors of such steps.
    fn breaker(&self, step: &RemoteStep) -> &Breaker {
        if step.is_observed { &self.shared.observing } else { &self.shared.executing }
    }

    /// Whether so many workers refused steps that need the same machine that no more are asked.
    fn is_refused(&self, compared: &Digest) -> bool {
        self.refused.borrow().get(compared).is_some_and(|count| *count >= MOST)
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
        // What was observed before answers nothing.
        let mut skips_cache = step.is_observed;
        let mut ends = None;
        loop {
            if !self.offer(connection, &prepared, self.breaker(step)).await? {
                return Ok(None);
            }
            let all = step.queue_limit.saturating_add(time_limit(step)).min(LONGEST);
            let watched = Watched::new(name, *ends.get_or_insert(Instant::now() + all));
            let given = match self.run(connection, step, &prepared.action, skips_cache, read, watched).await {
                Ok(Some(given)) => given,
                Ok(None) => return Ok(None),
                Err(error) if is_again || ends_step(&error) => return Err(error),
                Err(_) => {
                    is_again = true;
                    // Two executions of one step are never waited for.
                    let before = name.take();
                    if let Some(before) = before {
                        self.cancel(connection, before).await;
                    }
                    // The server may have lost the program as well.
                    self.offered.borrow_mut().clear();
                    continue;
                }
            };
            let Given { answer, meaning, is_remembered, result } = given;
            let outputs = match meaning {
                _ if is_remembered && step.is_observed => Err(RemoteError::Remembered),
                Meaning::Result(outputs) => Ok(outputs),
                Meaning::Answer => Ok(BTreeMap::new()),
                Meaning::Failed if !is_remembered => return Ok(None),
                Meaning::Failed => Err(RemoteError::Remembered),
                Meaning::Differs(why) => Err(RemoteError::Differs(why)),
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

    /// Brings the contents of an action to the server that it lacks. Returns whether the server is still used: where one step could not send the program, the
    /// others that waited for that do not try it again.
    async fn offer(
        &self,
        connection: &Connection,
        prepared: &Prepared,
        breaker: &Breaker,
    ) -> Result<bool, RemoteError> {
        // The program is large: where several steps begin at once, one of them sends it.
        let is_known = prepared.program.as_ref().is_none_or(|hash| self.offered.borrow().contains(hash));
        let turn = if is_known { None } else { Some(self.offering.lock().await) };
        if breaker.is_open() || self.shared.reading.is_open() {
            return Ok(false);
        }
        let all = prepared.contents.values().map(|(digest, _)| digest.clone()).collect();
        let missing = contents::missing(&self.limiter, connection, all).await?;
        // By hash: a server may name one twice.
        let wanted = missing.into_iter().filter_map(|digest| prepared.contents.get_key_value(&digest.hash));
        let wanted: HashMap<&String, &(reapi::Digest, Content)> = wanted.collect();
        let (mut rounds, mut size, mut all): (Vec<Vec<(reapi::Digest, Content)>>, _, u64) = (vec![], ROUND, 0);
        for (digest, content) in wanted.into_values().cloned() {
            let own = u64::try_from(digest.size_bytes).unwrap_or_default();
            if size.saturating_add(own) > ROUND {
                rounds.push(vec![]);
                size = 0;
            }
            size += own;
            all = all.saturating_add(own);
            if let Some(round) = rounds.last_mut() {
                round.push((digest, content));
            }
        }
        let _turn = match turn {
            None if all > SMALL => Some(self.offering.lock().await),
            turn => turn,
        };
        if breaker.is_open() || self.shared.reading.is_open() {
            return Ok(false);
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
            let contents = read.map_err(|e| RemoteError::Inputs(e.to_string()))?;
            let holds_program = contents.iter().any(|(digest, _)| Some(&digest.hash) == prepared.program.as_ref());
            if let Err(error) = contents::upload(&self.limiter, connection, contents).await {
                if holds_program {
                    breaker.failure(&error);
                    breaker.open();
                }
                return Err(error);
            }
        }
        self.offered.borrow_mut().extend(prepared.program.clone());
        Ok(true)
    }

    /// Asks the server to execute an action, and waits for what a worker gives. None if that is too large to be a result.
    async fn run(
        &self,
        connection: &Connection,
        step: &RemoteStep,
        action: &reapi::Digest,
        skips_cache: bool,
        read: &ReadAnswer,
        mut watched: Watched,
    ) -> Result<Option<Given>, RemoteError> {
        let request = reapi::ExecuteRequest {
            instance_name: connection.instance.clone(),
            skip_cache_lookup: skips_cache,
            action_digest: Some(action.clone()),
            digest_function: connection.capabilities.function.number(),
            inline_stdout: true,
            ..Default::default()
        };
        let response = self.watch(connection, step, request, &mut watched).await?;
        // It has ended, so there is nothing to cancel.
        watched.name.take();
        if let Some(status) = response.status.filter(|status| status.code != 0) {
            return Err(failed("Execute")(Status::new(Code::from(status.code), status.message)));
        }
        let result = response.result.ok_or_else(|| RemoteError::Entry("an execution without a result".into()))?;
        let Some(answer) = self.standard_output(connection, &result).await? else { return Ok(None) };
        let meaning = read(&answer);
        let is_done = matches!(meaning, Meaning::Result(_));
        // A program that did not start has an exit code of its own, and writes nothing.
        let meaning = match (is_done, result.exit_code) {
            (true, code) if code != 0 => Meaning::Refused(format!("says that it is done, and ended with code {code}")),
            _ => meaning,
        };
        Ok(Some(Given { answer, meaning, is_remembered: response.cached_result, result }))
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
                    let details = status.encode_to_vec().into();
                    return Ok(Err(Status::with_details(Code::from(status.code), status.message, details)));
                }
                None => return Err(RemoteError::Entry("an operation that ended with nothing".into())),
            }
        }
    }

    /// Ends an operation. A server that cannot, or does not answer, ends it by its time limit.
    async fn cancel(&self, connection: &Connection, name: String) {
        let mut operations = connection.operations.clone();
        let request = longrunning::CancelOperationRequest { name };
        let _ = within(connection.timeout.min(CANCEL), "CancelOperation", operations.cancel_operation(request)).await;
    }

    /// What the worker wrote to its standard output. None if it is larger than a result may be, as after very many messages of a compiler.
    async fn standard_output(
        &self,
        connection: &Connection,
        result: &reapi::ActionResult,
    ) -> Result<Option<Vec<u8>>, RemoteError> {
        let named = result.stdout_digest.as_ref().filter(|digest| digest.size_bytes > 0);
        let answer = match named.filter(|_| result.stdout_raw.is_empty()) {
            Some(digest) if digest.size_bytes > LARGEST as i64 => return Ok(None),
            Some(digest) => self.blob(connection, digest, LARGEST as i64).await?,
            None => result.stdout_raw.clone(),
        };
        Ok(Some(answer).filter(|answer| answer.len() <= LARGEST))
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
        let mut named = vec![];
        for (name, digest) in outputs {
            let given = given.get(name).filter(|given| is_readable(given, digest));
            let given = given.ok_or_else(|| RemoteError::Output(name.clone()))?;
            named.push((*digest, given.clone()));
        }
        let error = self.fetch_named(named, Wants::Outputs).await;
        match outputs.values().find(|digest| !self.shared.store.has(digest)) {
            Some(lost) => Err(error.unwrap_or(RemoteError::WrongBytes(*lost))),
            None => Ok(()),
        }
    }
}

/// The time that a worker has for a step, with what its end may take.
fn time_limit(step: &RemoteStep) -> Duration {
    Duration::from_secs(step.time_limit_s.saturating_add(BEYOND_S)).saturating_add(GRACE)
}

/// Whether a step is not tried again after an error: a second execution would not be faster.
fn ends_step(error: &RemoteError) -> bool {
    match error {
        // A content that is missing can look so, at servers that say it only in words.
        RemoteError::Unroutable { .. } => false,
        RemoteError::NotTaken { .. } | RemoteError::Late { .. } => true,
        RemoteError::Status { code, .. } => code == "DeadlineExceeded" || error.is_final(),
        error => error.is_final(),
    }
}

impl Watched {
    /// An operation of which the server has said nothing yet counts as one that waits: nothing says that a worker has it.
    fn new(name: &Rc<RefCell<Option<String>>>, ends: Instant) -> Watched {
        Watched { name: name.clone(), queued: true, since: Instant::now(), ends }
    }

    /// What a future gives, unless no worker takes the step in time, or a worker does not end it in time.
    async fn within<T>(&self, step: &RemoteStep, future: impl Future<Output = T>) -> Result<T, RemoteError> {
        let (limit, error) = match self.queued {
            true => (step.queue_limit, RemoteError::NotTaken { seconds: step.queue_limit.as_secs() }),
            false => (time_limit(step), RemoteError::Late { method: "Execute", seconds: time_limit(step).as_secs() }),
        };
        let by_stage = self.since + limit.min(LONGEST);
        timeout_at(by_stage.min(self.ends), future).await.map_err(|_| error)
    }

    /// Reads in which stage an operation is. One of which the server speaks without naming a stage counts as one that is executed.
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
    let details = rpc::Status::decode(status.details()).map(|status| status.details).unwrap_or_default();
    let failures = details.iter().filter(|any| any.type_url.ends_with("/google.rpc.PreconditionFailure"));
    let mut failures = failures.filter_map(|any| PreconditionFailure::decode(any.value.as_slice()).ok());
    failures.any(|failure| failure.violations.iter().any(|violation| violation.kind == MISSING))
}

/// The type of a violation by a content that is missing, which the API fixes.
pub(crate) const MISSING: &str = "MISSING";

/// `google.rpc.PreconditionFailure`, which the generated code of the API does not have.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PreconditionFailure {
    #[prost(message, repeated, tag = "1")]
    pub(crate) violations: Vec<Violation>,
}

/// What a precondition is violated by; without its text.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub(crate) struct Violation {
    #[prost(string, tag = "1")]
    pub(crate) kind: String,
    #[prost(string, tag = "2")]
    pub(crate) subject: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use bazel_remote_apis::google::protobuf::Any;

    #[test]
    fn only_the_type_of_a_violation_says_that_a_content_is_missing() {
        let status = |name: &str, value: Vec<u8>| {
            let details = vec![Any { type_url: format!("type.googleapis.com/google.rpc.{name}"), value }];
            let details = rpc::Status { code: 9, details, ..Default::default() }.encode_to_vec();
            Status::with_details(Code::FailedPrecondition, "a content is MISSING", details.into())
        };
        let failure = |kinds: &[&str]| {
            let violations =
                kinds.iter().map(|kind| Violation { kind: (*kind).into(), subject: String::new() }).collect();
            PreconditionFailure { violations }.encode_to_vec()
        };
        assert!(names_missing(&status("PreconditionFailure", failure(&["OTHER", "MISSING"]))));
        assert!(!names_missing(&status("PreconditionFailure", failure(&["OTHER"]))));
        // The same bytes in another message.
        assert!(!names_missing(&status("BadRequest", failure(&["MISSING"]))));
        assert!(!names_missing(&Status::failed_precondition("MISSING")));
        // The subject and the text of a violation, as servers send them.
        let whole = b"\x0a\x15\x0a\x07MISSING\x12\x05blobs\x1a\x03why".to_vec();
        assert!(names_missing(&status("PreconditionFailure", whole)));
    }
}
