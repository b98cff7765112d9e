//! A lease: an action that a server gives to this worker. Knows how an action's files get here and its outputs there; does not know what a step does, and keeps no
//! session.
//!
//! | decision | because |
//! |---|---|
//! | the only command is that of a step of kforge | a worker is no shell for whoever may write to the server |
//! | this machine's own program executes it; one that is sent is not even fetched | what runs here is what was installed here. The step states the code that it needs, and the program compares |
//! | every content is compared with its digest, and no path leads out of the folder | the server may be wrong |
//! | the result is given to the server, and nothing is written to its action cache | servers do that themselves, for actions that may be remembered |

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use bazel_remote_apis::google::protobuf::Any;
use bazel_remote_apis::google::rpc;
use kforge_foundation::process::{End, Finished};
use prost::Message;
use tokio::time::Instant;
use tonic::Code;

use crate::connection::Connection;
use crate::contents::{self, BESIDE};
use crate::entry::LARGEST;
use crate::error::RemoteError;
use crate::execute::{MISSING, PreconditionFailure, Violation};
use crate::retry::Limiter;
use crate::streams;
use crate::tree::{OUTPUTS, PROGRAM, WORDS};

/// The most files that a step may have, their bytes together, and those of one.
const MOST_FILES: usize = 100_000;
const MOST_BYTES: u64 = 8 << 30;
const LARGEST_FILE: i64 = 1 << 30;
/// How many bytes of contents are in memory at once.
const ROUND: u64 = 64 << 20;
/// The most contents in one batch.
const MOST: usize = 1000;
/// The time limit of an action that states none.
const LONGEST: Duration = Duration::from_secs(3600);
/// How long outputs are offered to a server that does not take them, and how often.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(250);
/// How many bytes of what a step prints to standard error are given back.
const SHOWN: usize = 16 << 10;

/// Why a lease has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeaseError {
    /// It holds no action.
    #[error("the lease holds no action")]
    NoAction,
    /// Its command is none of a step of kforge.
    #[error("this worker executes only steps of kforge, and not `{0}`")]
    NotKforge(String),
    /// The server lacks a content of it.
    #[error("the server lacks a content of the action: {0}")]
    Missing(String),
    /// The server gave other bytes than those with the digest.
    #[error("the server gave other bytes than those of {0}")]
    WrongBytes(String),
    /// Its tree of files cannot be laid out.
    #[error("the files of the action cannot be laid out: {0}")]
    Tree(String),
    /// The server failed.
    #[error(transparent)]
    Server(#[from] RemoteError),
    /// The program could not be executed.
    #[error("the step cannot be executed: {0}")]
    NotExecuted(String),
    /// The time of the action was over.
    #[error("the step took longer than {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The server does not want its result any more.
    #[error("the server cancelled the lease")]
    Cancelled,
    /// The worker leaves.
    #[error("the worker leaves")]
    Leaves,
}

impl LeaseError {
    /// What the server gets. A code after which another worker may be asked says that the step itself is well.
    pub(crate) fn status(&self) -> rpc::Status {
        let code = match self {
            LeaseError::NoAction | LeaseError::Tree(_) => Code::InvalidArgument,
            LeaseError::NotKforge(_) | LeaseError::Missing(_) => Code::FailedPrecondition,
            LeaseError::WrongBytes(_) | LeaseError::NotExecuted(_) => Code::Internal,
            LeaseError::Server(_) | LeaseError::Leaves => Code::Unavailable,
            LeaseError::TimedOut(_) => Code::DeadlineExceeded,
            LeaseError::Cancelled => Code::Cancelled,
        };
        let details = match self {
            LeaseError::Missing(named) => {
                let violations = vec![Violation { kind: MISSING.into(), subject: format!("blobs/{named}") }];
                let value = PreconditionFailure { violations }.encode_to_vec();
                vec![Any { type_url: "type.googleapis.com/google.rpc.PreconditionFailure".into(), value }]
            }
            _ => vec![],
        };
        rpc::Status { code: code as i32, message: self.to_string(), details }
    }
}

/// Executes the step whose files are in a folder, within a time limit, unless the flag is set.
pub type ExecuteIn = Arc<dyn Fn(&Path, Duration, &AtomicBool) -> io::Result<Finished> + Send + Sync>;

/// How a lease is stopped.
#[derive(Clone, Default)]
pub(crate) struct Stop {
    flag: Arc<AtomicBool>,
    told: Arc<tokio::sync::Notify>,
}

impl Stop {
    pub(crate) fn stop(&self) {
        self.flag.store(true, Ordering::Relaxed);
        // One that does not wait yet finds this later.
        self.told.notify_one();
    }

    /// What the future gives; an error if the lease is stopped first.
    async fn unless<T>(&self, future: impl Future<Output = Result<T, LeaseError>>) -> Result<T, LeaseError> {
        tokio::select! {
            biased;
            () = self.told.notified() => Err(LeaseError::Cancelled),
            given = future => given,
        }
    }
}

/// What executes leases.
#[derive(Clone)]
pub(crate) struct Executor {
    pub(crate) connection: Connection,
    pub(crate) limiter: std::rc::Rc<Limiter>,
    /// The parent of the folders of steps.
    pub(crate) scratch: PathBuf,
    pub(crate) execute: ExecuteIn,
}

/// A file of an action: its path in the folder, and whether it may be executed.
type Place = (PathBuf, bool);

impl Executor {
    /// Executes an action, and gives its outputs to the server. A stopped one has no result.
    pub(crate) async fn executed(&self, payload: Option<Any>, stop: Stop) -> Result<reapi::ActionResult, LeaseError> {
        let (folder, limit) = stop.unless(self.laid_out(payload)).await?;
        let folder = Arc::new(folder);
        let (execute, of_step, flag) = (self.execute.clone(), folder.clone(), stop.flag.clone());
        // Its processes have ended when this has.
        let ran = tokio::task::spawn_blocking(move || execute(of_step.path(), limit, &flag)).await;
        let ran = ran.map_err(|e| LeaseError::NotExecuted(e.to_string()))?;
        let ran = ran.map_err(|e| LeaseError::NotExecuted(e.to_string()))?;
        let code = match ran.end {
            End::Exited(code) => code,
            End::Signalled(signal) => 128 + signal,
            End::TimedOut(limit) => return Err(LeaseError::TimedOut(limit)),
            End::Interrupted => return Err(LeaseError::Cancelled),
            End::Misbehaved(_) => return Err(LeaseError::NotExecuted(ran.end.to_string())),
        };
        let result = stop.unless(self.given_at_last(folder.path(), code, &ran)).await;
        drop(folder);
        result
    }

    /// The result of an action. A server that is away for a moment does not cost a step that has ended.
    async fn given_at_last(&self, folder: &Path, code: i32, ran: &Finished) -> Result<reapi::ActionResult, LeaseError> {
        let began = Instant::now();
        loop {
            match self.given(folder, code, ran).await {
                Err(LeaseError::Server(error)) if error.is_outage() && began.elapsed() < PATIENCE => {
                    tokio::time::sleep(PAUSE).await;
                }
                result => return result,
            }
        }
    }

    /// The folder with the files of an action, and its time limit.
    async fn laid_out(&self, payload: Option<Any>) -> Result<(tempfile::TempDir, Duration), LeaseError> {
        let action = self.action(payload.ok_or(LeaseError::NoAction)?).await?;
        let command: reapi::Command = self.message(action.command_digest.as_ref()).await?;
        let program = step_program(&command)?;
        let limit = action.timeout.as_ref().and_then(|limit| {
            Some(Duration::new(u64::try_from(limit.seconds).ok()?, u32::try_from(limit.nanos).ok()?))
        });
        let limit = limit.filter(|limit| !limit.is_zero()).unwrap_or(LONGEST);
        let root = action.input_root_digest.ok_or(LeaseError::NoAction)?;
        // Whoever tidies the home may have removed it.
        let folder = fs::create_dir_all(&self.scratch)
            .and_then(|()| tempfile::Builder::new().prefix("lease-").tempdir_in(&self.scratch));
        let folder = folder.map_err(|e| LeaseError::NotExecuted(e.to_string()))?;
        self.bring(root, folder.path(), program == format!("./{PROGRAM}")).await?;
        Ok((folder, limit))
    }

    async fn action(&self, payload: Any) -> Result<reapi::Action, LeaseError> {
        let name = payload.type_url.rsplit('/').next().unwrap_or_default();
        let decoded = |bytes: &[u8]| reapi::Action::decode(bytes).map_err(|_| LeaseError::NoAction);
        match name {
            "build.bazel.remote.execution.v2.Action" => decoded(&payload.value),
            "build.bazel.remote.execution.v2.Digest" => {
                let digest = reapi::Digest::decode(payload.value.as_slice()).map_err(|_| LeaseError::NoAction)?;
                self.message(Some(&digest)).await
            }
            _ => Err(LeaseError::NoAction),
        }
    }

    async fn message<M: Message + Default>(&self, digest: Option<&reapi::Digest>) -> Result<M, LeaseError> {
        let digest = digest.ok_or(LeaseError::NoAction)?;
        let mut read = self.contents(vec![digest.clone()]).await?;
        let bytes = read.remove(&digest.hash).unwrap_or_default();
        M::decode(bytes.as_slice()).map_err(|_| LeaseError::NoAction)
    }

    /// Brings the files of a tree to a folder. `has_program` says that a program was sent.
    async fn bring(&self, root: reapi::Digest, folder: &Path, has_program: bool) -> Result<(), LeaseError> {
        let unwritten = |e: io::Error| LeaseError::NotExecuted(e.to_string());
        let mut files: HashMap<String, (reapi::Digest, Vec<Place>)> = HashMap::new();
        let mut level = vec![(root, folder.to_path_buf())];
        let (mut count, mut size) = (0, 0u64);
        while !level.is_empty() {
            let mut digests: Vec<reapi::Digest> = level.iter().map(|(digest, _)| digest.clone()).collect();
            digests.sort_by(|a, b| a.hash.cmp(&b.hash));
            digests.dedup();
            let read = self.contents(digests).await?;
            let mut next = vec![];
            for (digest, at) in level {
                let bytes = read.get(&digest.hash).map(Vec::as_slice).unwrap_or_default();
                let inner = reapi::Directory::decode(bytes).map_err(|e| LeaseError::Tree(e.to_string()))?;
                if let Some(link) = inner.symlinks.first() {
                    return Err(LeaseError::Tree(format!("`{}` is a link", link.name.escape_debug())));
                }
                count += inner.files.len() + inner.directories.len();
                if count > MOST_FILES {
                    return Err(LeaseError::Tree(format!("there are more than {MOST_FILES} of them")));
                }
                for directory in inner.directories {
                    let place = at.join(plain(&directory.name)?);
                    fs::create_dir(&place).map_err(unwritten)?;
                    next.push((directory.digest.unwrap_or_default(), place));
                }
                for file in inner.files {
                    let place = at.join(plain(&file.name)?);
                    if has_program && file.name == PROGRAM && at == folder {
                        continue;
                    }
                    let digest = file.digest.unwrap_or_default();
                    size = size.saturating_add(u64::try_from(digest.size_bytes).unwrap_or(u64::MAX));
                    if size > MOST_BYTES {
                        return Err(LeaseError::Tree(format!("they have more than {MOST_BYTES} bytes")));
                    }
                    let known = files.entry(digest.hash.clone()).or_insert_with(|| (digest, vec![]));
                    known.1.push((place, file.is_executable));
                }
            }
            level = next;
        }
        let mut files: Vec<(reapi::Digest, Vec<Place>)> = files.into_values().collect();
        while !files.is_empty() {
            let mut own = 0u64;
            let fits = |(digest, _): &&(reapi::Digest, Vec<Place>)| {
                own = own.saturating_add(digest.size_bytes.unsigned_abs());
                own <= ROUND
            };
            let count = files.iter().take_while(fits).count().clamp(1, files.len());
            let round: Vec<(reapi::Digest, Vec<Place>)> = files.drain(..count).collect();
            let read = self.contents(round.iter().map(|(digest, _)| digest.clone()).collect()).await?;
            for (digest, places) in round {
                let bytes = read.get(&digest.hash).map(Vec::as_slice).unwrap_or_default();
                for (place, is_executable) in places {
                    fs::write(&place, bytes).map_err(unwritten)?;
                    let mode = if is_executable { 0o755 } else { 0o644 };
                    fs::set_permissions(&place, fs::Permissions::from_mode(mode)).map_err(unwritten)?;
                }
            }
        }
        Ok(())
    }

    /// Contents of the server by hash, each compared with its digest.
    async fn contents(&self, digests: Vec<reapi::Digest>) -> Result<HashMap<String, Vec<u8>>, LeaseError> {
        let (connection, function) = (&self.connection, self.connection.capabilities.function);
        let mut read = HashMap::new();
        let (mut batches, mut size): (Vec<Vec<reapi::Digest>>, u64) = (vec![], u64::MAX);
        for digest in &digests {
            let own = u64::try_from(digest.size_bytes).ok().filter(|_| digest.size_bytes <= LARGEST_FILE);
            let own = own.ok_or_else(|| LeaseError::Tree(format!("one has {} bytes", digest.size_bytes)))?;
            if own == 0 {
                // Servers need not have it.
                read.insert(digest.hash.clone(), vec![]);
            } else if own + BESIDE > connection.capabilities.batch {
                let bytes = streams::read(&self.limiter, connection, digest, own).await?;
                read.extend(bytes.map(|bytes| (digest.hash.clone(), bytes)));
            } else {
                size = size.saturating_add(own + BESIDE);
                if size > connection.capabilities.batch || batches.last().is_none_or(|batch| batch.len() >= MOST) {
                    batches.push(vec![]);
                    size = own + BESIDE;
                }
                if let Some(batch) = batches.last_mut() {
                    batch.push(digest.clone());
                }
            }
        }
        for batch in batches {
            read.extend(contents::read(&self.limiter, connection, batch).await?);
        }
        for digest in &digests {
            let named = || format!("{}/{}", digest.hash, digest.size_bytes);
            let bytes = read.get(&digest.hash).ok_or_else(|| LeaseError::Missing(named()))?;
            if function.of(bytes) != *digest {
                return Err(LeaseError::WrongBytes(named()));
            }
        }
        Ok(read)
    }

    /// The result of an action, after its outputs were given to the server.
    async fn given(&self, folder: &Path, code: i32, ran: &Finished) -> Result<reapi::ActionResult, LeaseError> {
        let function = self.connection.capabilities.function;
        let unread = |e: io::Error| LeaseError::NotExecuted(format!("an output cannot be read: {e}"));
        let mut all: HashMap<String, (reapi::Digest, Vec<u8>)> = HashMap::new();
        let mut keep = |bytes: Vec<u8>| {
            let digest = function.of(&bytes);
            all.insert(digest.hash.clone(), (digest.clone(), bytes));
            digest
        };
        let mut files = vec![];
        let entries = match fs::read_dir(folder.join(OUTPUTS)) {
            Ok(entries) => entries.collect::<io::Result<Vec<_>>>().map_err(unread)?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => vec![],
            Err(e) => return Err(unread(e)),
        };
        for entry in entries {
            // What a step gives are files, and no link leads to one.
            if !entry.file_type().map_err(unread)?.is_file() {
                continue;
            }
            let Ok(name) = entry.file_name().into_string() else { continue };
            let digest = Some(keep(fs::read(entry.path()).map_err(unread)?));
            files.push(reapi::FileNode { name, digest, ..Default::default() });
        }
        files.sort_by(|a, b| a.name.cmp(&b.name));
        let tree = reapi::Tree { root: Some(reapi::Directory { files, ..Default::default() }), children: vec![] };
        let tree_digest = Some(keep(tree.encode_to_vec()));
        let output = reapi::OutputDirectory { path: OUTPUTS.into(), tree_digest, ..Default::default() };
        let stdout = ran.stdout.whole().ok_or_else(|| LeaseError::NotExecuted("its answer is too large".into()))?;
        let stdout_digest = (!stdout.is_empty()).then(|| keep(stdout.clone()));
        let stderr = ran.stderr.text();
        let from = stderr.char_indices().map(|(at, _)| at).find(|at| stderr.len() - at <= SHOWN).unwrap_or(0);
        let lacking =
            contents::missing(&self.limiter, &self.connection, all.values().map(|(d, _)| d.clone()).collect());
        let lacking = lacking.await?.into_iter().filter_map(|digest| all.remove(&digest.hash)).collect();
        contents::upload(&self.limiter, &self.connection, lacking).await?;
        Ok(reapi::ActionResult {
            output_directories: vec![output],
            exit_code: code,
            stdout_raw: if stdout.len() <= LARGEST { stdout } else { vec![] },
            stdout_digest,
            stderr_raw: stderr.as_bytes()[from..].to_vec(),
            ..Default::default()
        })
    }
}

/// The program of a command, if it is one of a step.
fn step_program(command: &reapi::Command) -> Result<&str, LeaseError> {
    let is_step = command.arguments.get(1..).is_some_and(|words| words == WORDS)
        && command.output_paths == [OUTPUTS]
        && command.working_directory.is_empty();
    match command.arguments.first().filter(|_| is_step) {
        Some(program) => Ok(program),
        None => {
            let words: String = command.arguments.join(" ").chars().filter(|c| !c.is_control()).take(200).collect();
            Err(LeaseError::NotKforge(words))
        }
    }
}

/// A name of a file or folder, if it is one.
fn plain(name: &str) -> Result<&str, LeaseError> {
    match name {
        "" | "." | ".." => Err(LeaseError::Tree(format!("`{name}` is no name"))),
        name if name.contains(['/', '\0']) => Err(LeaseError::Tree(format!("`{}` is no name", name.escape_debug()))),
        name => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_command_of_a_step_is_executed() {
        let words = |words: &str| words.split(' ').map(String::from).collect::<Vec<_>>();
        let step = reapi::Command {
            arguments: words("./kforge worker --once spec.json in out --places places.json"),
            output_paths: vec!["out".into()],
            ..Default::default()
        };
        assert_eq!(step_program(&step), Ok("./kforge"));
        let others = [
            reapi::Command { arguments: words("/bin/sh -c true"), ..step.clone() },
            reapi::Command { arguments: words("kforge worker --once spec.json in out"), ..step.clone() },
            reapi::Command {
                arguments: words("kforge worker --once spec.json in /etc --places places.json"),
                ..step.clone()
            },
            reapi::Command { arguments: [step.arguments.clone(), words("more")].concat(), ..step.clone() },
            reapi::Command { working_directory: "in".into(), ..step.clone() },
            reapi::Command { output_paths: vec!["/etc".into()], ..step.clone() },
            reapi::Command { arguments: vec![], ..step },
        ];
        for other in others {
            assert!(matches!(step_program(&other), Err(LeaseError::NotKforge(_))), "{other:?}");
        }
    }

    #[test]
    fn a_name_leads_nowhere_else() {
        assert_eq!(plain("a-b.json"), Ok("a-b.json"));
        for name in ["", ".", "..", "a/b", "/etc", "a\0"] {
            assert!(matches!(plain(name), Err(LeaseError::Tree(_))), "{name:?}");
        }
    }

    #[test]
    fn a_missing_content_is_named_as_the_protocol_asks() {
        let status = LeaseError::Missing("ab/3".into()).status();
        assert_eq!(status.code, Code::FailedPrecondition as i32);
        let details = PreconditionFailure::decode(status.details[0].value.as_slice()).unwrap();
        assert_eq!(details.violations, [Violation { kind: "MISSING".into(), subject: "blobs/ab/3".into() }]);
        assert!(LeaseError::Leaves.status().details.is_empty());
    }
}
