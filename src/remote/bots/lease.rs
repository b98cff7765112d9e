//! A lease: an action that a server gives to this worker. Knows how an action's files get here and its outputs there; does not know what a step does, and keeps no
//! session.
//!
//! | decision | because |
//! |---|---|
//! | the only command is that of a step of kforge | a worker is no shell for whoever may write to the server |
//! | this machine's own program executes it; one that is sent is not even fetched | what runs here is what was installed here. The step states the code that it needs, and the program compares |
//! | every content is compared with its digest, no path leads out of the folder, and the folder holds only what a step of kforge has | the server may be wrong |
//! | no file may be executed | a step executes none of its inputs |
//! | files are written and hashed by other threads, in rounds | the server must hear of this worker meanwhile, and memory has an end |
//! | the server hears no text of this machine's system | it may name paths of this machine |
//! | a lock is held on each folder | the next worker removes those of workers that were killed |
//! | the result is given to the server, and nothing is written to its action cache | servers do that themselves, for actions that may be remembered |

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use bazel_remote_apis::google::protobuf::Any;
use bazel_remote_apis::google::rpc;
use kforge_engine::lock::{Lock, Mode, Wait};
use kforge_foundation::process::{End, Finished};
use prost::Message;
use tokio::time::Instant;
use tonic::Code;

use super::line::Line;
use super::outputs::Outputs;
use crate::connection::Connection;
use crate::contents::{self, BESIDE};
use crate::error::RemoteError;
use crate::execute::{MISSING, PreconditionFailure, Violation};
use crate::retry::Limiter;
use crate::streams;
use crate::tree::{INPUTS, OUTPUTS, PLACES, PROGRAM, SPEC, WORDS};

/// The most files that a step may have, their bytes together, and those of one. The same for its outputs.
pub(crate) const MOST_FILES: usize = 100_000;
pub(crate) const MOST_BYTES: u64 = 8 << 30;
pub(crate) const LARGEST_FILE: u64 = 1 << 30;
/// The most bytes of messages about an action: its command and its folders, together.
const LARGEST_MESSAGES: u64 = 16 << 20;
/// How many bytes of contents are in memory at once, if one is not larger.
pub(crate) const ROUND: u64 = 64 << 20;
/// The most contents in one batch.
const MOST: usize = 1000;
/// The time limit of an action that states none.
const LONGEST: Duration = Duration::from_secs(3600);
/// How long outputs are offered to a server that does not take them, and how often.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(250);
/// The parts of the names of leases' folders, and the name of the lock in one.
const FOLDER: &str = "lease-";
const LOCK: &str = "lock";

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
        let message = match self {
            LeaseError::NotExecuted(_) => "the step cannot be executed: the log of the worker says why".into(),
            LeaseError::Server(_) => "the server cannot be used: the log of the worker says why".into(),
            known => known.to_string(),
        };
        rpc::Status { code: code as i32, message, details }
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
    pub(crate) line: Rc<Line>,
    pub(crate) limiter: Rc<Limiter>,
    /// The parent of the folders of steps.
    pub(crate) scratch: PathBuf,
    /// The longest time of a step.
    pub(crate) longest: Duration,
    pub(crate) execute: ExecuteIn,
}

/// The folder of a lease. It is removed when it is dropped.
struct Folder {
    place: tempfile::TempDir,
    /// Held as long as the folder is used.
    _lock: Lock,
}

impl Folder {
    fn new(scratch: &Path) -> Result<Folder, LeaseError> {
        // Whoever tidies the home may have removed it.
        let made =
            fs::create_dir_all(scratch).and_then(|()| tempfile::Builder::new().prefix(FOLDER).tempdir_in(scratch));
        let place = made.map_err(|e| LeaseError::NotExecuted(e.to_string()))?;
        let lock = Lock::acquire(&place.path().join(LOCK), Mode::Exclusive, Wait::No);
        Ok(Folder { place, _lock: lock.map_err(|e| LeaseError::NotExecuted(e.to_string()))? })
    }
}

/// Removes the folders of leases whose workers were killed.
pub(crate) fn tidy(scratch: &Path) {
    for entry in fs::read_dir(scratch).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(FOLDER.as_bytes())
            && let Some(lock) = Lock::of_existing(&entry.path().join(LOCK))
        {
            // What stays is only litter.
            let _ = fs::remove_dir_all(entry.path());
            drop(lock);
        }
    }
}

/// Does what blocks in another thread.
pub(crate) async fn in_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LeaseError> + Send + 'static,
) -> Result<T, LeaseError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|e| Err(LeaseError::NotExecuted(e.to_string())))
}

impl Executor {
    /// Executes an action, and gives its outputs to the server. A stopped one has no result.
    pub(crate) async fn executed(&self, payload: Option<Any>, stop: Stop) -> Result<reapi::ActionResult, LeaseError> {
        let (folder, limit) = stop.unless(self.laid_out(payload)).await?;
        let folder = Arc::new(folder);
        let (execute, of_step, flag) = (self.execute.clone(), folder.clone(), stop.flag.clone());
        // Its processes have ended when this has.
        let ran = in_thread(move || {
            execute(of_step.place.path(), limit, &flag).map_err(|e| LeaseError::NotExecuted(e.to_string()))
        });
        let ran = ran.await?;
        let code = match ran.end {
            End::Exited(code) => code,
            End::Signalled(signal) => 128 + signal,
            End::TimedOut(limit) => return Err(LeaseError::TimedOut(limit)),
            End::Interrupted => return Err(LeaseError::Cancelled),
            End::Misbehaved(_) => return Err(LeaseError::NotExecuted(ran.end.to_string())),
        };
        let (read, function) = (folder.clone(), self.line.current().capabilities.function);
        let outputs = in_thread(move || Outputs::read(read.place.path(), code, &ran, function));
        let outputs = stop.unless(outputs).await?;
        let result = stop.unless(self.given_at_last(&outputs)).await;
        // It has many files.
        let _ = in_thread(move || {
            drop(folder);
            Ok(())
        })
        .await;
        result
    }

    /// The result of an action. A server that is away for a moment does not cost a step that has ended.
    async fn given_at_last(&self, outputs: &Outputs) -> Result<reapi::ActionResult, LeaseError> {
        let (began, mut is_renewed) = (Instant::now(), false);
        loop {
            let connection = self.line.current();
            let error = match outputs.given(&connection, &self.limiter).await {
                Err(LeaseError::Server(error)) if error.is_unauthenticated() && !is_renewed => {
                    match self.line.renew(&connection).await {
                        Ok(()) => {
                            is_renewed = true;
                            continue;
                        }
                        Err(error) => error,
                    }
                }
                Err(LeaseError::Server(error)) => error,
                result => return result,
            };
            if !error.is_outage() || began.elapsed() >= PATIENCE {
                return Err(error.into());
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The folder with the files of an action, and its time limit.
    async fn laid_out(&self, payload: Option<Any>) -> Result<(Folder, Duration), LeaseError> {
        let action = self.action(payload.ok_or(LeaseError::NoAction)?).await?;
        let command: reapi::Command = self.message(action.command_digest.as_ref()).await?;
        check_command(&command)?;
        let limit = action.timeout.as_ref().and_then(|limit| {
            Some(Duration::new(u64::try_from(limit.seconds).ok()?, u32::try_from(limit.nanos).ok()?))
        });
        let limit = limit.filter(|limit| !limit.is_zero()).unwrap_or(LONGEST).min(self.longest);
        let root = action.input_root_digest.ok_or(LeaseError::NoAction)?;
        let folder = Folder::new(&self.scratch)?;
        self.bring(root, folder.place.path()).await?;
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
        if digest.size_bytes.unsigned_abs() > LARGEST_MESSAGES {
            return Err(LeaseError::Tree("a message about it is too large".into()));
        }
        let mut read = self.contents(vec![digest.clone()]).await?;
        let bytes = read.remove(&digest.hash).unwrap_or_default();
        M::decode(bytes.as_slice()).map_err(|_| LeaseError::NoAction)
    }

    /// Brings the files of a tree to a folder.
    async fn bring(&self, root: reapi::Digest, folder: &Path) -> Result<(), LeaseError> {
        let mut files: HashMap<String, (reapi::Digest, Vec<PathBuf>)> = HashMap::new();
        let mut level = vec![(root, folder.to_path_buf())];
        let (mut count, mut size, mut of_messages) = (0, 0u64, 0u64);
        while !level.is_empty() {
            let mut digests: Vec<reapi::Digest> = level.iter().map(|(digest, _)| digest.clone()).collect();
            digests.sort_by(|a, b| a.hash.cmp(&b.hash));
            digests.dedup();
            let own = digests.iter().map(|digest| digest.size_bytes.unsigned_abs());
            of_messages = own.fold(of_messages, u64::saturating_add);
            if of_messages > LARGEST_MESSAGES {
                return Err(LeaseError::Tree(format!("their names take more than {LARGEST_MESSAGES} bytes")));
            }
            let read = self.contents(digests).await?;
            let (mut next, mut made) = (vec![], vec![]);
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
                    if at == folder && directory.name != INPUTS {
                        return Err(foreign(&directory.name));
                    }
                    made.push(place.clone());
                    next.push((directory.digest.unwrap_or_default(), place));
                }
                for file in inner.files {
                    let place = at.join(plain(&file.name)?);
                    match file.name.as_str() {
                        PROGRAM if at == folder => continue,
                        SPEC | PLACES => {}
                        name if at == folder => return Err(foreign(name)),
                        _ => {}
                    }
                    let digest = file.digest.unwrap_or_default();
                    size = size.saturating_add(u64::try_from(digest.size_bytes).unwrap_or(u64::MAX));
                    if size > MOST_BYTES {
                        return Err(LeaseError::Tree(format!("they have more than {MOST_BYTES} bytes")));
                    }
                    let known = files.entry(digest.hash.clone()).or_insert_with(|| (digest, vec![]));
                    known.1.push(place);
                }
            }
            in_thread(move || made.iter().try_for_each(fs::create_dir).map_err(unwritten)).await?;
            level = next;
        }
        let mut files: Vec<(reapi::Digest, Vec<PathBuf>)> = files.into_values().collect();
        while !files.is_empty() {
            let mut own = 0u64;
            let fits = |(digest, _): &&(reapi::Digest, Vec<PathBuf>)| {
                own = own.saturating_add(digest.size_bytes.unsigned_abs());
                own <= ROUND
            };
            let count = files.iter().take_while(fits).count().clamp(1, files.len());
            let round: Vec<(reapi::Digest, Vec<PathBuf>)> = files.drain(..count).collect();
            let read = self.contents(round.iter().map(|(digest, _)| digest.clone()).collect()).await?;
            let written = move || {
                for (digest, places) in round {
                    let bytes = read.get(&digest.hash).map(Vec::as_slice).unwrap_or_default();
                    places.iter().try_for_each(|place| fs::write(place, bytes)).map_err(unwritten)?;
                }
                Ok(())
            };
            in_thread(written).await?;
        }
        Ok(())
    }

    /// Contents of the server by hash, each compared with its digest.
    async fn contents(&self, digests: Vec<reapi::Digest>) -> Result<HashMap<String, Vec<u8>>, LeaseError> {
        let current = self.line.current();
        let (most, function) = (current.capabilities.batch, current.capabilities.function);
        let mut read = HashMap::new();
        let (mut batches, mut size): (Vec<Vec<reapi::Digest>>, u64) = (vec![], u64::MAX);
        for digest in &digests {
            let own = u64::try_from(digest.size_bytes).ok().filter(|own| *own <= LARGEST_FILE);
            let own = own.ok_or_else(|| LeaseError::Tree(format!("one has {} bytes", digest.size_bytes)))?;
            if own == 0 {
                // Servers need not have it.
                read.insert(digest.hash.clone(), vec![]);
            } else if own + BESIDE > most {
                let ask = async |connection: &Connection| streams::read(&self.limiter, connection, digest, own).await;
                let bytes = self.line.asked(ask).await?;
                read.extend(bytes.map(|bytes| (digest.hash.clone(), bytes)));
            } else {
                size = size.saturating_add(own + BESIDE);
                if size > most || batches.last().is_none_or(|batch| batch.len() >= MOST) {
                    batches.push(vec![]);
                    size = own + BESIDE;
                }
                if let Some(batch) = batches.last_mut() {
                    batch.push(digest.clone());
                }
            }
        }
        for batch in batches {
            let ask = async |connection: &Connection| contents::read(&self.limiter, connection, batch.clone()).await;
            read.extend(self.line.asked(ask).await?);
        }
        in_thread(move || {
            for digest in &digests {
                let named = || format!("{}/{}", digest.hash, digest.size_bytes);
                let bytes = read.get(&digest.hash).ok_or_else(|| LeaseError::Missing(named()))?;
                if function.of(bytes) != *digest {
                    return Err(LeaseError::WrongBytes(named()));
                }
            }
            Ok(read)
        })
        .await
    }
}

/// Refuses a command that is none of a step.
fn check_command(command: &reapi::Command) -> Result<(), LeaseError> {
    let is_step = command.arguments.get(1..).is_some_and(|words| words == WORDS)
        && command.output_paths == [OUTPUTS]
        && command.working_directory.is_empty();
    if is_step {
        return Ok(());
    }
    let words = command.arguments.iter().flat_map(|word| word.chars().chain([' ']));
    let words: String = words.filter(|c| !c.is_control()).take(200).collect();
    Err(LeaseError::NotKforge(words.trim_end().to_string()))
}

fn unwritten(e: io::Error) -> LeaseError {
    LeaseError::NotExecuted(e.to_string())
}

/// The error for a file or folder that no step of kforge has.
fn foreign(name: &str) -> LeaseError {
    LeaseError::Tree(format!("`{}` is none of a step", name.escape_debug()))
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
        assert_eq!(check_command(&step), Ok(()));
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
            assert!(matches!(check_command(&other), Err(LeaseError::NotKforge(_))), "{other:?}");
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

    #[test]
    fn the_server_hears_no_path_of_this_machine() {
        let connect = RemoteError::File { path: "/home/me/token".into(), why: "no".into() };
        for error in [LeaseError::NotExecuted("`/home/me/x` is gone".into()), LeaseError::Server(connect)] {
            let (here, there) = (error.to_string(), error.status().message);
            assert!(here.contains("/home/me") && !there.contains("/home") && there.contains("the log of the worker"));
        }
    }
}
