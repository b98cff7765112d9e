//! One evaluation: a workspace of its own, a build in it, and the result. Knows operations; decides nothing about tasks.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use super::fields::Fields;
use super::files::{Files, LOCKFILE, MANIFEST, goal};
use super::progress::{Listener, ProgressLog};
use super::summary::Summary;
use crate::api::{Candidate, Cause, EvaluationRequest};
use kforge_foundation::base::Digest;
use kforge_foundation::base::files::write_atomically;
use kforge_ops::build::{BuildRequest, Built, Ended, build, plan};
use kforge_ops::session::Shared;
use kforge_ops::{Error, Options, Session};

/// The most lockfiles that are kept.
const MOST_LOCKFILES: usize = 1000;

/// Evaluates candidates in folders of its own.
pub(super) struct Evaluator {
    /// The server's session: its environment, settings and options are those of every build.
    session: Session,
    pub(super) shared: Arc<Shared>,
    /// The folder of lockfiles that builds resolved.
    lockfiles: PathBuf,
    /// Lockfiles are written one after another.
    writing: Mutex<()>,
    /// The most steps of one kind of a request.
    most_steps: usize,
}

/// How an evaluation ended.
pub(super) enum Evaluated {
    /// With a result.
    Done(Box<Summary>),
    /// It was interrupted.
    Interrupted,
}

impl Evaluator {
    pub(super) fn new(session: Session, shared: Arc<Shared>, lockfiles: PathBuf, most_steps: usize) -> Evaluator {
        Evaluator { session, shared, lockfiles, writing: Mutex::default(), most_steps }
    }

    /// Evaluates a request in a folder, whose contents are removed before and after.
    pub(super) fn evaluate(
        &self,
        request: &EvaluationRequest,
        folder: &Path,
        interrupted: &Arc<AtomicBool>,
        log: &Arc<ProgressLog>,
    ) -> Evaluated {
        let run = AssertUnwindSafe(|| named(self.build(request, folder, interrupted, log), request, folder));
        let ended = catch_unwind(run).unwrap_or_else(|panic| {
            without(Cause::Internal, format!("BUG: the evaluation panicked: {}", words(&*panic)))
        });
        // What is left is removed before the next evaluation.
        drop(std::fs::remove_dir_all(folder));
        match ended {
            Evaluated::Done(mut summary) => {
                let home = self.session.settings.home.display().to_string();
                summary.without_folders(&[(&folder.display().to_string(), "."), (&home, "$KFORGE_HOME")]);
                Evaluated::Done(summary)
            }
            Evaluated::Interrupted => Evaluated::Interrupted,
        }
    }

    fn build(
        &self,
        request: &EvaluationRequest,
        folder: &Path,
        interrupted: &Arc<AtomicBool>,
        log: &Arc<ProgressLog>,
    ) -> Evaluated {
        let fault = |what: &str, error: &io::Error| {
            without(Cause::Internal, format!("the server cannot {what} its workspace: {error}"))
        };
        let files = match Files::of(request) {
            Ok(files) => files,
            // It was checked when it was accepted; a later kforge may check more.
            Err(refusal) => {
                return without(Cause::NotAccepted, refusal.to_string());
            }
        };
        let steps = files.steps();
        if steps > self.most_steps {
            let most = self.most_steps;
            let why = format!("the candidate has {steps} variants times shapes, and this server accepts {most}");
            return without(Cause::NotAccepted, why);
        }
        let kept = self.lockfile(request);
        let known = kept.as_ref().and_then(|path| std::fs::read(path).ok());
        match std::fs::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return fault("clear", &error),
            _ => {}
        }
        if let Err(error) = files.write(folder, known.as_deref()) {
            return fault("write", &error);
        }
        let session = self.session(folder, interrupted, log);
        let asked = BuildRequest {
            words: files.words.clone(),
            keep_going: true,
            plans: true,
            goes_on: true,
            ..BuildRequest::new(goal(request.measure))
        };
        let built = build(&session, &asked);
        if let (Some(path), false) = (kept, files.has_lockfile()) {
            self.keep_lockfile(&path, folder, known.as_deref());
        }
        let error = match built {
            Err(error) if files.has_holdout() => error,
            built => return summarised(built, request),
        };
        // Its text can have numbers that an expression of the client makes from holdout shapes, so it is not shown.
        match &error {
            Error::Interrupted => Evaluated::Interrupted,
            error if is_unavailable(error) => without(Cause::Unavailable, WITHHELD.into()),
            error if !is_refusal(error) => without(Cause::Internal, WITHHELD.into()),
            // What is wrong without these shapes is all that is answered.
            _ => match files.write_without_holdout(folder) {
                Err(error) => fault("write", &error),
                Ok(_) => match plan(&session, &asked) {
                    Ok(_) => without(Cause::NotAccepted, "the operator or a launch is wrong at a holdout shape".into()),
                    Err(error) => summarised(Err(error), request),
                },
            },
        }
    }

    fn session(&self, folder: &Path, interrupted: &Arc<AtomicBool>, log: &Arc<ProgressLog>) -> Session {
        let Session { environment, settings, worker, options, has_warned_of_key, .. } = &self.session;
        let listener = Listener { log: log.clone(), server: self.session.reporter.observer().clone() };
        Session {
            options: Options {
                manifest_path: Some(folder.join("kernel.toml")),
                target_dir: Some(folder.join("target")),
                offline: options.offline,
                allow_unconfined: options.allow_unconfined,
                every_step: true,
                ..Options::default()
            },
            interrupted: interrupted.clone(),
            has_warned_of_key: has_warned_of_key.clone(),
            shared: Some(self.shared.clone()),
            ..Session::new(folder, worker.clone(), environment.clone(), settings.clone(), Arc::new(listener))
        }
    }

    /// The file with the lockfile that requests such as this one resolved: one for each toolchain and language of candidates of operators, and one for each
    /// manifest of packages.
    fn lockfile(&self, request: &EvaluationRequest) -> Option<PathBuf> {
        let about = match &request.candidate {
            Candidate::Operator(candidate) => {
                let is_cpu = request.target.as_deref().is_none_or(|target| target == "cpu");
                serde_json::to_vec(&(&candidate.toolchain, candidate.language, is_cpu)).ok()?
            }
            Candidate::Package(package) => package.manifest.clone().into_bytes(),
        };
        Some(self.lockfiles.join(Digest::of(&about).hex()))
    }

    /// Keeps a lockfile that the build changed. If that fails, the next build resolves again.
    fn keep_lockfile(&self, path: &Path, folder: &Path, known: Option<&[u8]>) {
        let Ok(text) = std::fs::read(folder.join(LOCKFILE)) else { return };
        if Some(text.as_slice()) == known {
            return;
        }
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if write_atomically(path, &text, false).is_ok() {
            remove_oldest(&self.lockfiles, MOST_LOCKFILES);
        }
    }
}

/// With the fields of the request in place of lines of a manifest that the server wrote: the one in the folder is what the build read.
fn named(evaluated: Evaluated, request: &EvaluationRequest, folder: &Path) -> Evaluated {
    let Evaluated::Done(mut summary) = evaluated else { return Evaluated::Interrupted };
    if matches!(request.candidate, Candidate::Operator(_)) {
        let fields = std::fs::read_to_string(folder.join(MANIFEST)).ok().and_then(Fields::of);
        summary.name_fields(|message| {
            if let Some(fields) = &fields {
                fields.name(message, MANIFEST);
            }
        });
    }
    Evaluated::Done(summary)
}

/// Removes the oldest of more than `most` files.
fn remove_oldest(folder: &Path, most: usize) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let aged = |entry: io::Result<std::fs::DirEntry>| {
        let path = entry.ok()?.path();
        Some((std::fs::metadata(&path).ok()?.modified().ok()?, path))
    };
    let mut files: Vec<_> = entries.filter_map(aged).collect();
    files.sort();
    for (_, path) in files.iter().take(files.len().saturating_sub(most)) {
        drop(std::fs::remove_file(path));
    }
}

/// In place of the text of an error that prevented a build with holdout shapes.
const WITHHELD: &str = "the evaluation could not begin; the reason is held back, because it could name a holdout shape";

/// Whether a build could not be started because something is missing, such as a toolchain.
fn is_unavailable(error: &Error) -> bool {
    matches!(
        error,
        Error::LockfileLacks(_)
            | Error::Unresolved { .. }
            | Error::Library { .. }
            | Error::NothingResolved { .. }
            | Error::Toolchain(_)
            | Error::Cuda(_)
            | Error::Triton(_)
            | Error::Torch(_)
            | Error::Tools(_)
            | Error::Refused
    )
}

/// Whether the candidate is the reason why a build could not be started.
fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Wrong(_) | Error::Selection(_) | Error::NoManifest(_) | Error::NothingToDo { .. })
}

/// A result without a report.
fn without(cause: Cause, reason: String) -> Evaluated {
    Evaluated::Done(Box::new(Summary::without_report(cause, reason, vec![])))
}

/// The result of a build.
fn summarised(built: Result<Built, Error>, request: &EvaluationRequest) -> Evaluated {
    let summary = match built {
        Ok(Built::Finished(finished)) if finished.ended == Ended::Interrupted => return Evaluated::Interrupted,
        Ok(Built::Finished(finished)) => Summary::of(&finished.report, &finished.packages, request.measure),
        Ok(Built::Unchanged(_) | Built::Unaffected(_)) => {
            return without(Cause::Internal, "BUG: a new workspace was already built".into());
        }
        Err(Error::Interrupted) => return Evaluated::Interrupted,
        Err(Error::Wrong(found) | Error::Selection(found)) => Summary::refused(&found),
        Err(Error::NoManifest(found)) => Summary::refused(&[*found]),
        Err(error @ Error::NothingToDo { .. }) => return without(Cause::NotAccepted, error.to_string()),
        Err(error) if is_unavailable(&error) => return without(Cause::Unavailable, error.to_string()),
        Err(error) => return without(Cause::Internal, error.to_string()),
    };
    Evaluated::Done(Box::new(summary))
}

/// The words of a panic.
pub(super) fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without words")
}
