//! Imports tasks of problem sets in PyTorch: finds task files, describes them with PyTorch in confined processes, and writes a package for each. A task that
//! cannot be imported does not stop the others. Never overwrites a file, and leaves nothing half written.

mod candidates;
pub(super) mod files;
mod source;
pub(super) mod torch;
pub(super) mod write;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::{ImportError, SkippedFile};
use crate::new::Surroundings;
use crate::session::memory;
use crate::{Error, Session};
pub use candidates::CandidateKernel;
use files::{Found, TaskFile};
use kforge_harness::problem_sets::{Describer, TaskForm, TaskText, describe};
use kforge_project::source::import::tasks::{
    Constant, ImportedTask, Refusal, TaskAnswer, TaskRequest, TaskSource, too_large, write_task,
};
pub use kforge_project::source::import::tasks::{Finding, FindingKind, ImportedShape, Origin};
use kforge_project::workspace::find::{MANIFEST, tidy};
use torch::TorchHere;

/// How long one task may take. Most take less than a second.
const LIMIT: Duration = Duration::from_secs(300);
/// How many tasks one process describes: importing PyTorch takes as long as a few tasks.
pub(super) const CHUNK: usize = 12;
/// The least address space of a reference, whatever the settings say: `harness::oracle::call`.
const LEAST: u64 = 8 << 30;
/// The name of a task's file in its package.
pub(super) const FILE: &str = "task.py";

/// The request for packages of tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TasksRequest {
    /// A task file, or a folder with task files below it. Relative to the session's folder.
    pub path: PathBuf,
    /// The folder for the packages, relative to the session's folder; `kernelbench` if none is given.
    pub output: Option<PathBuf>,
    /// The release of PyTorch; none for that of the system.
    pub torch: Option<String>,
    /// A file with a `ModelNew`, or a folder with such files below it: kernels of the tasks. Relative to the session's folder.
    pub candidates: Option<PathBuf>,
    /// Whether nothing is written: the result says what would be imported.
    pub dry_run: bool,
}

/// What became of task files.
#[derive(Debug)]
pub struct ImportedTasks {
    /// The problem set.
    pub set: &'static str,
    /// The folder of the packages.
    pub folder: PathBuf,
    /// The tasks by file.
    pub tasks: Vec<TaskResult>,
    /// Files that were not read, and why.
    pub skipped: Vec<SkippedFile>,
    /// How many files are no tasks.
    pub others: usize,
    /// The root manifest that was written for the packages.
    pub workspace: Option<PathBuf>,
    /// The paths of candidates for which there is no task.
    pub strangers: Vec<String>,
}

/// What became of a task file.
#[derive(Debug)]
pub struct TaskResult {
    /// Its path, from the folder that was named.
    pub path: String,
    /// The package's name.
    pub package: String,
    /// The package's folder.
    pub folder: PathBuf,
    /// Where the task is from.
    pub origin: Origin,
    /// What became of it.
    pub outcome: TaskOutcome,
}

/// What became of a task.
#[derive(Debug)]
pub enum TaskOutcome {
    /// Its package was written, or would be.
    Imported(Box<ImportedTask>, Vec<CandidateKernel>, Option<Surroundings>),
    /// It cannot be imported.
    Refused(Refusal),
    /// Its folder exists already.
    Exists,
}

/// A task whose source was read, and that PyTorch describes.
struct Pending {
    file: TaskFile,
    constants: Vec<Constant>,
}

/// Why a text is not Python, by Python's own parser, which runs nothing of it; none if it is.
///
/// # Errors
/// There is no Python, or it does not answer.
pub fn not_python(session: &Session, text: &str) -> Result<Option<Refusal>, Error> {
    source::not_python(session, text)
}

/// Writes a package for each task file in KernelBench's form, unless the request is a dry run. `told` hears of each task as soon as it is done.
///
/// # Errors
/// [`ImportError`], there is no Python or PyTorch, or a file cannot be written.
pub fn kernelbench(
    session: &Session,
    request: &TasksRequest,
    told: &mut dyn FnMut(&TaskResult),
) -> Result<ImportedTasks, Error> {
    let absolute = |path: &Path| {
        let path = session.cwd.join(path);
        tidy(&std::path::absolute(&path).unwrap_or(path))
    };
    let output = absolute(request.output.as_deref().unwrap_or(Path::new("kernelbench")));
    let path = absolute(&request.path);
    let Found { files, mut skipped } = files::find(&path, &output, &request.path)?;
    let is_folder = path.is_dir();
    let sources = source::read(session, &files)?;
    let candidates = match &request.candidates {
        Some(candidates) => {
            let (found, more) = candidates::find(&absolute(candidates), candidates, files.len())?;
            skipped.extend(more);
            found
        }
        None => vec![],
    };
    let strangers = candidates::strangers(&candidates, &files);
    let mut results: Vec<TaskResult> = vec![];
    let mut pending = vec![];
    let mut others = 0;
    for file in files {
        match sources.get(&file.path) {
            Some(TaskSource::Other { .. }) | None if is_folder => others += 1,
            Some(TaskSource::Other { other }) => {
                let names: Vec<String> = other.iter().map(|name| format!("`{name}`")).collect();
                let message = format!("defines no {}", names.join(", no "));
                results.push(file.result(TaskOutcome::Refused(Refusal { kind: "form".into(), message, line: None })));
            }
            None => {}
            // Also a link that leads nowhere.
            Some(_) if file.folder.symlink_metadata().is_ok() => {
                if !is_folder {
                    return Err(ImportError::FileExists(file.folder).into());
                }
                results.push(file.result(TaskOutcome::Exists));
            }
            Some(_) if pending.iter().any(|other: &Pending| other.file.folder == file.folder) => {
                results.push(file.result(TaskOutcome::Exists));
            }
            Some(TaskSource::Refused { refused }) => {
                results.push(file.result(TaskOutcome::Refused(refused.clone())));
            }
            Some(TaskSource::Task { constants }) => pending.push(Pending { file, constants: constants.clone() }),
        }
    }
    results.iter().for_each(&mut *told);
    let mut workspace = None;
    if !pending.is_empty() {
        let torch = TorchHere::find(session, request.torch.as_deref(), &output)?;
        let limit = reference_limit(session);
        for chunk in pending.chunks(CHUNK) {
            let texts = chunk.iter().map(text).collect::<Result<Vec<_>, _>>()?;
            let answers = described(session, &torch, TaskForm::KernelBench, &texts)?;
            for (pending, answer) in chunk.iter().zip(answers) {
                let outcome = match packed(request, pending, answer) {
                    Ok(mut task) => {
                        task.findings.extend(task.reference_bytes.and_then(|bytes| too_large(bytes, limit)));
                        if workspace.is_none() && !request.dry_run {
                            workspace = write::root(&output, &pending.file.folder)?;
                        }
                        let kernels = candidates::of_task(&candidates, &pending.file);
                        task.text += &candidates::manifest(&task.operator, &kernels);
                        // Each kernel is in a folder of its own, so that none can import another.
                        let sources: Vec<(String, &str)> = kernels
                            .iter()
                            .map(|kernel| (format!("{}/{}", kernel.kernel, candidates::SOURCE), kernel.text.as_str()))
                            .collect();
                        let files = [(FILE, pending.file.text.as_str()), (MANIFEST, task.text.as_str())];
                        let sources = sources.iter().map(|(path, text)| (path.as_str(), *text));
                        let files: Vec<(&str, &str)> = files.into_iter().chain(sources).collect();
                        let around = match request.dry_run {
                            true => None,
                            false => write::package(&pending.file.folder, &files, &[])?,
                        };
                        TaskOutcome::Imported(Box::new(task), kernels, around)
                    }
                    Err(refusal) => TaskOutcome::Refused(refusal),
                };
                let result = pending.file.result(outcome);
                told(&result);
                results.push(result);
            }
        }
    }
    let none = results.iter().all(|result| !matches!(result.outcome, TaskOutcome::Imported(..) | TaskOutcome::Exists));
    if none {
        let form = "no file defines `Model`, `get_inputs` and `get_init_inputs`";
        let path = request.path.clone();
        return Err(ImportError::NoTasks { path, form, tasks: results, skipped, others }.into());
    }
    results.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(ImportedTasks { set: "kernelbench", folder: output, tasks: results, skipped, others, workspace, strangers })
}

/// What PyTorch shows of a task; none if it took longer than its limit or ended its process.
pub(super) type Described<A> = Option<Result<A, serde_json::Error>>;

/// What PyTorch shows of tasks.
pub(super) fn described<A: DeserializeOwned>(
    session: &Session,
    torch: &TorchHere,
    form: TaskForm,
    texts: &[TaskText],
) -> Result<Vec<Described<A>>, Error> {
    let home = session.home()?;
    let scratch = tempfile::Builder::new().prefix("tasks-").tempdir_in(home.tmp());
    let scratch = scratch.map_err(Error::write(&home.tmp()))?;
    let describer = Describer {
        worker: session.worker.program(),
        python: &torch.python.path,
        torch: &torch.places,
        scratch: scratch.path(),
        limit: LIMIT,
        allow_unconfined: session.options.allow_unconfined || !session.settings.flag("sandbox.required"),
        interrupted: &session.interrupted,
    };
    let answers = describe(&describer, form, texts).map_err(ImportError::Describe)?;
    Ok(answers.into_iter().map(|answer| answer.map(|bytes| serde_json::from_slice(&bytes))).collect())
}

/// A task as its program reads it.
fn text(pending: &Pending) -> Result<TaskText, serde_json::Error> {
    let constants = serde_json::to_value(&pending.constants)?;
    let asked = [("constants".to_string(), constants)].into_iter().collect();
    Ok(TaskText { files: vec![(FILE.into(), pending.file.text.clone())], main: FILE, asked })
}

/// The manifest of a task.
fn packed(request: &TasksRequest, pending: &Pending, answer: Described<TaskAnswer>) -> Result<ImportedTask, Refusal> {
    let facts = match answered(answer)? {
        TaskAnswer::Refused(refused) => return Err(refused),
        TaskAnswer::Found(facts) => facts,
    };
    write_task(&TaskRequest {
        package: &pending.file.package,
        file: FILE,
        torch: request.torch.as_deref(),
        origin: &pending.file.origin,
        constants: &pending.constants,
        facts: &facts,
    })
}

/// The answer about a task, or why there is none.
pub(super) fn answered<A>(answer: Described<A>) -> Result<A, Refusal> {
    let refusal = |kind: &str, message: String| Refusal { kind: kind.into(), message, line: None };
    match answer {
        None => Err(refusal("time", format!("took longer than {} s, or ended its process", LIMIT.as_secs()))),
        Some(Err(why)) => Err(refusal("error", format!("was described in an unknown form: {why}"))),
        Some(Ok(answer)) => Ok(answer),
    }
}

/// The memory that a reference may use here: the limit of its process, or what the machine has.
pub(super) fn reference_limit(session: &Session) -> u64 {
    let setting: u64 = session.settings.number("build.memory-limit");
    let limit = setting.saturating_mul(2).max(LEAST);
    memory::total().map_or(limit, |total| total.min(limit))
}
