//! The services that execute: an action is laid out in a folder and run as a process, or done by a function of the test. Operations are followed by streams that
//! may break, and can be waited for and cancelled.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use bazel_remote_apis::build::bazel::remote::execution::v2 as re;
use bazel_remote_apis::google::longrunning::{self as lr, operation, operations_server};
use bazel_remote_apis::google::protobuf;
use futures_util::stream;
use prost::Message;
use re::execution_stage::Value as Stage;
use tokio::sync::watch;
use tonic::{Request, Response, Status};

use super::services::{Answer, Answers, Services, hash};
use super::{Blob, Function, Method, State, Stored};

/// What a worker of the test gets: the files of the input root by path, and the words of the command.
pub(crate) struct Task {
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    pub(crate) words: Vec<String>,
    /// Which files may be executed.
    executable: Vec<String>,
}

/// What a worker gives: an exit code, its standard output, and the files in `out`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Given {
    pub(crate) code: i32,
    pub(crate) answer: Vec<u8>,
    pub(crate) outputs: BTreeMap<String, Vec<u8>>,
}

/// Does what a worker does.
pub(crate) type Worker = Arc<dyn Fn(Task) -> Given + Send + Sync>;

/// Runs the command as a process, in a folder with the files.
pub(crate) fn process(task: Task) -> Given {
    process_with(task, &[])
}

/// The same with these variables of the worker's machine.
pub(crate) fn process_with(task: Task, vars: &[(&str, &OsStr)]) -> Given {
    let folder = tempfile::tempdir().unwrap();
    for (path, bytes) in &task.files {
        let place = folder.path().join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(&place, bytes).unwrap();
        if task.executable.contains(path) {
            fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    fs::create_dir_all(folder.path().join("in")).unwrap();
    let program = match task.words[0].strip_prefix("./") {
        Some(name) => folder.path().join(name),
        None => task.words[0].clone().into(),
    };
    let ran = Command::new(program)
        .args(&task.words[1..])
        .current_dir(folder.path())
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .envs(vars.iter().copied())
        .stdin(Stdio::null())
        .output();
    let Ok(ran) = ran else { return Given { code: 127, ..Given::default() } };
    let out = |dir: &Path| -> BTreeMap<String, Vec<u8>> {
        let entries = fs::read_dir(dir).into_iter().flatten().map(Result::unwrap);
        entries.map(|e| (e.file_name().to_string_lossy().into_owned(), fs::read(e.path()).unwrap())).collect()
    };
    Given { code: ran.status.code().unwrap_or(137), answer: ran.stdout, outputs: out(&folder.path().join("out")) }
}

impl State {
    fn kept(&self, digest: Option<&re::Digest>) -> Result<Vec<u8>, Status> {
        let lost = || Status::internal("a content of the action is missing");
        let digest = digest.ok_or_else(lost)?;
        if digest.size_bytes == 0 {
            return Ok(vec![]);
        }
        let is_missing = self.options.missing.as_ref().is_some_and(|missing| missing(&digest.hash));
        let blob = self.blobs.get(&digest.hash).filter(|_| !is_missing);
        blob.map(|blob| blob.bytes.clone()).ok_or_else(lost)
    }

    fn decoded<M: Message + Default>(&self, digest: Option<&re::Digest>) -> Result<M, Status> {
        M::decode(self.kept(digest)?.as_slice()).map_err(|e| Status::invalid_argument(e.to_string()))
    }

    /// Whether the result of an action may be remembered.
    fn may_remember(&self, action: &re::Digest) -> bool {
        self.options.remembers_observations
            || self.decoded::<re::Action>(Some(action)).map_or(true, |action| !action.do_not_cache)
    }

    fn lay_out(&self, digest: Option<&re::Digest>, at: &str, task: &mut Task) -> Result<(), Status> {
        let folder: re::Directory = self.decoded(digest)?;
        for file in &folder.files {
            let path = format!("{at}{}", file.name);
            if file.is_executable {
                task.executable.push(path.clone());
            }
            task.files.insert(path, self.kept(file.digest.as_ref())?);
        }
        for inner in &folder.directories {
            self.lay_out(inner.digest.as_ref(), &format!("{at}{}/", inner.name), task)?;
        }
        Ok(())
    }

    fn keep(&mut self, function: Function, bytes: Vec<u8>) -> re::Digest {
        let digest = re::Digest { hash: hash(function, &bytes), size_bytes: bytes.len() as i64 };
        self.blobs.insert(digest.hash.clone(), Blob { function, size: digest.size_bytes, bytes });
        digest
    }

    /// The result of what a worker gave, with the faults of the test.
    fn result(&mut self, function: Function, given: Given) -> re::ActionResult {
        let mut files = vec![];
        for (name, mut bytes) in given.outputs {
            if self.options.other_outputs {
                bytes.push(0);
            }
            files.push(re::FileNode { name, digest: Some(self.keep(function, bytes)), ..Default::default() });
        }
        if self.options.no_outputs {
            files.clear();
        }
        let root = re::Directory { files, ..Default::default() };
        let tree = re::Tree { root: Some(root), children: vec![] };
        let tree_digest = Some(self.keep(function, tree.encode_to_vec()));
        let folder = re::OutputDirectory { path: "out".into(), tree_digest, ..Default::default() };
        re::ActionResult {
            exit_code: given.code,
            stdout_raw: given.answer,
            output_directories: vec![folder],
            ..Default::default()
        }
    }
}

fn any(name: &str, message: &impl Message) -> Option<protobuf::Any> {
    let type_url = format!("type.googleapis.com/build.bazel.remote.execution.v2.{name}");
    Some(protobuf::Any { type_url, value: message.encode_to_vec() })
}

/// An operation in a stage, or at its end.
fn operation(name: &str, stage: Stage, response: Option<re::ExecuteResponse>) -> lr::Operation {
    let metadata = re::ExecuteOperationMetadata { stage: stage as i32, ..Default::default() };
    let done = response.is_some();
    let result = response.and_then(|response| any("ExecuteResponse", &response)).map(operation::Result::Response);
    lr::Operation { name: name.into(), metadata: any("ExecuteOperationMetadata", &metadata), done, result }
}

impl Services {
    /// The messages about an operation: the first one at once, then one for each change. If streams break, only the first one.
    fn followed(&self, operation: watch::Receiver<lr::Operation>) -> Answers<lr::Operation> {
        let breaks = {
            let breaking = &mut self.state().options.breaking_streams;
            std::mem::replace(breaking, breaking.saturating_sub(1)) > 0
        };
        let next = move |state: Option<(watch::Receiver<lr::Operation>, bool)>| async move {
            let (mut operation, is_first) = state?;
            if !is_first && (breaks || operation.changed().await.is_err()) {
                return None;
            }
            let now = operation.borrow_and_update().clone();
            let rest = if now.done { None } else { Some((operation, false)) };
            Some((Ok(now), rest))
        };
        Box::pin(stream::unfold(Some((operation, true)), next))
    }

    /// The same by a worker that registered. The server remembers what it gives.
    async fn executed_by_bot(
        self,
        name: String,
        (function, action): (Function, re::Digest),
        told: watch::Sender<lr::Operation>,
    ) {
        let Ok(payload) = self.state().kept(Some(&action)) else { return };
        let type_url = "type.googleapis.com/build.bazel.remote.execution.v2.Action".into();
        let lease = self.by_worker(&name, protobuf::Any { type_url, value: payload }).await;
        let result = lease.result.and_then(|any| re::ActionResult::decode(any.value.as_slice()).ok());
        let may_remember = self.state().may_remember(&action);
        if let Some(result) = result.clone().filter(|result| result.exit_code == 0 && may_remember) {
            self.state().results.insert(action.hash, Stored { function, result });
        }
        let response = re::ExecuteResponse { result, status: lease.status, ..Default::default() };
        told.send_replace(operation(&name, Stage::Completed, Some(response)));
    }

    /// Executes an action, and says in `told` how far it is.
    async fn executed(
        self,
        name: String,
        (function, action): (Function, re::Digest),
        task: Task,
        told: watch::Sender<lr::Operation>,
    ) {
        told.send_replace(operation(&name, Stage::Executing, None));
        for turn in 0.. {
            if !self.state().options.alternates {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
            let stage = if turn % 2 == 0 { Stage::Queued } else { Stage::Executing };
            told.send_replace(operation(&name, stage, None));
        }
        if self.state().options.by_bots {
            return self.executed_by_bot(name, (function, action), told).await;
        }
        let worker = self.state().options.worker.clone();
        // Only a test that was ended has no result.
        let Ok(given) = tokio::task::spawn_blocking(move || worker(task)).await else { return };
        let result = {
            let mut state = self.state();
            let result = state.result(function, given);
            let is_good = result.exit_code == 0 || state.options.remembers_failures;
            if is_good && state.may_remember(&action) {
                state.results.insert(action.hash, Stored { function, result: result.clone() });
            }
            result
        };
        let response = re::ExecuteResponse { result: Some(result), ..Default::default() };
        told.send_replace(operation(&name, Stage::Completed, Some(response)));
    }
}

#[tonic::async_trait]
impl re::execution_server::Execution for Services {
    type ExecuteStream = Answers<lr::Operation>;
    type WaitExecutionStream = Answers<lr::Operation>;

    async fn execute(&self, request: Request<re::ExecuteRequest>) -> Answer<Self::ExecuteStream> {
        let _in_flight = self.admit(Method::Execute, &request).await?;
        let request = request.into_inner();
        let (name, following, run) = {
            let mut state = self.state();
            let function = state.function(request.digest_function)?;
            let digest = request.action_digest.ok_or_else(|| Status::invalid_argument("no action"))?;
            let action: re::Action = state.decoded(Some(&digest))?;
            let properties = action.platform.unwrap_or_default().properties;
            let allowed = &state.options.properties;
            if let Some(unknown) = properties.iter().find(|p| !allowed.contains(&p.name)) {
                return Err(Status::failed_precondition(format!("`{}` is unknown; known: {allowed:?}", unknown.name)));
            }
            let name = format!("operation {}", state.counts.of(Method::Execute));
            let skips = request.skip_cache_lookup && !state.options.ignores_skip;
            let remembered = state.results.get(&digest.hash).filter(|_| !skips).cloned();
            let first = match remembered {
                Some(stored) => {
                    let response =
                        re::ExecuteResponse { result: Some(stored.result), cached_result: true, ..Default::default() };
                    operation(&name, Stage::Completed, Some(response))
                }
                None => operation(&name, Stage::Queued, None),
            };
            let is_known = first.done;
            let (told, following) = watch::channel(first);
            state.operations.insert(name.clone(), following.clone());
            let mut task = Task { files: BTreeMap::new(), words: vec![], executable: vec![] };
            let command: re::Command = state.decoded(action.command_digest.as_ref())?;
            task.words = command.arguments;
            state.lay_out(action.input_root_digest.as_ref(), "", &mut task)?;
            if state.options.queues_forever {
                state.queued.push(told);
                (name, following, None)
            } else {
                (name, following, Some(((function, digest), task, told)).filter(|_| !is_known))
            }
        };
        if let Some((action, task, told)) = run {
            tokio::spawn(self.clone().executed(name, action, task, told));
        }
        Ok(Response::new(self.followed(following)))
    }

    async fn wait_execution(&self, request: Request<re::WaitExecutionRequest>) -> Answer<Self::WaitExecutionStream> {
        let _in_flight = self.admit(Method::WaitExecution, &request).await?;
        let known = self.state().operations.get(&request.get_ref().name).cloned();
        let known = known.ok_or_else(|| Status::not_found("there is no such operation"))?;
        Ok(Response::new(self.followed(known)))
    }
}

#[tonic::async_trait]
impl operations_server::Operations for Services {
    async fn list_operations(&self, _: Request<lr::ListOperationsRequest>) -> Answer<lr::ListOperationsResponse> {
        Err(Status::unimplemented("operations are not listed"))
    }

    async fn get_operation(&self, _: Request<lr::GetOperationRequest>) -> Answer<lr::Operation> {
        Err(Status::unimplemented("operations are followed"))
    }

    async fn delete_operation(&self, _: Request<lr::DeleteOperationRequest>) -> Answer<protobuf::Empty> {
        Err(Status::unimplemented("operations are not deleted"))
    }

    async fn cancel_operation(&self, request: Request<lr::CancelOperationRequest>) -> Answer<protobuf::Empty> {
        let _in_flight = self.admit(Method::CancelOperation, &request).await?;
        let name = request.into_inner().name;
        let mut state = self.state();
        let known = state.operations.remove(&name).is_some();
        known.then(|| Response::new(protobuf::Empty {})).ok_or_else(|| Status::not_found("no such operation"))
    }

    async fn wait_operation(&self, _: Request<lr::WaitOperationRequest>) -> Answer<lr::Operation> {
        Err(Status::unimplemented("operations are followed"))
    }
}
