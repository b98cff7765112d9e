//! What rounds report while they run: what each build found, and how asking for attempts goes on.

use std::io;
use std::path::PathBuf;

use super::results::Became;
use crate::session::rounds::Seat;
use kforge_engine::lock::LockError;
use kforge_foundation::base::Diagnostic;
use kforge_pipeline::optimize::agents::ask::{AskError, AskEvent, Spent};
use kforge_pipeline::optimize::next::End;
use kforge_types::record::answer::Question;
use kforge_types::record::event::{StepCounts, VerdictCounts};

/// Something that rounds report.
#[derive(Debug)]
pub enum RoundEvent<'a> {
    /// A build ended after which more is asked.
    Built {
        /// Whether it found nothing wrong.
        success: bool,
        /// How many steps ended how.
        steps: StepCounts,
        /// How many steps said what.
        verdicts: VerdictCounts,
    },
    /// What became of a variant of the last attempt.
    Judged {
        /// Whose rounds these are.
        seat: &'a Seat,
        /// The variant.
        variant: &'a str,
        /// What became of it.
        became: &'a Became,
    },
    /// Nothing comes next for a kernel.
    Rests {
        /// Whose rounds these are.
        seat: &'a Seat,
        /// Whether anything was ever tried.
        tried: bool,
        /// Why.
        why: &'a Rest,
    },
    /// Methods that no variant has beside the others of a round.
    LeftOut(&'a [String]),
}

/// Why nothing comes next for a kernel.
#[derive(Debug, thiserror::Error)]
pub enum Rest {
    /// Its champion was accepted.
    #[error("accepted in kforge.lock: `kforge accept {kernel} --undo` releases it")]
    Accepted {
        /// The kernel.
        kernel: String,
    },
    /// Its declaration is not there: a bug.
    #[error("BUG: its declaration is gone")]
    Gone,
    /// No time can be taken here.
    #[error("nothing can be measured: {0}")]
    Untimed(String),
    /// A kernel is correct on a target that is not timed.
    #[error("a kernel is correct, and without times on `cpu` no better one can be found")]
    Right,
    /// What stands on a target that is not timed is undecided.
    #[error("the kernel is not known to be wrong and not known to be correct: `cpu` cannot judge it")]
    Undecided,
    /// Its rounds are done, or were decided to stop.
    #[error("{0}")]
    Done(End),
    /// The same, and no kernel is correct.
    #[error(
        "{why}, and no kernel is correct{}: `--rounds {}` continues",
        refused.as_ref().map(|why| format!(" (the last answer: {why})")).unwrap_or_default(),
        rounds + 1
    )]
    NoneRight {
        /// Why its rounds are done.
        why: End,
        /// Why the last answer that was refused was.
        refused: Option<String>,
        /// The rounds that it was allowed.
        rounds: u32,
    },
    /// The space of its variants cannot be laid out.
    #[error("{}", .0.message)]
    NoSpace(Box<Diagnostic>),
    /// The rules know nothing more to try.
    #[error("every variant was tried")]
    AllTried,
    /// The rules know nothing more to try with these methods.
    #[error("no untried variant has {}", listed(.0))]
    NoneWith(Vec<String>),
}

/// An attempt at a round that is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptRequest {
    /// Whose rounds these are.
    pub seat: Seat,
    /// What is asked.
    pub question: Question,
}

/// Something that happens to an attempt that is asked for.
#[derive(Debug)]
pub enum AttemptEvent {
    /// It begins.
    Begins,
    /// Another kforge asks the same, and is waited for.
    Blocked,
    /// Something that asking an agent reports.
    Asking(AskEvent),
    /// It ended: the answer is recorded, or there is none.
    Ended(Result<(), NotAnswered>),
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum NotAnswered {
    /// [`crate::Session::interrupted`] was set.
    #[error("interrupted")]
    Interrupted,
    /// The lock of the question cannot be taken.
    #[error(transparent)]
    Lock(LockError),
    /// Recorded answers cannot be read.
    #[error("cannot read recorded answers: {0}")]
    Unreadable(io::Error),
    /// There is an answer, of another version.
    #[error(
        "another version of kforge recorded an answer to this request: use that version, or remove `{}`",
        .0.display()
    )]
    OtherVersion(PathBuf),
    /// The agents gave none.
    #[error(transparent)]
    Ask(AskError),
    /// The answer cannot be recorded.
    #[error("cannot record the answer: {0}")]
    NotRecorded(io::Error),
}

impl From<AskError> for NotAnswered {
    fn from(why: AskError) -> Self {
        match why {
            AskError::Interrupted => NotAnswered::Interrupted,
            why => NotAnswered::Ask(why),
        }
    }
}

/// Watches attempts that are asked for at the same time.
pub trait AskWatch {
    /// Something happened to the attempt at this position.
    fn event(&mut self, attempt: usize, event: &AttemptEvent);
    /// Some time has passed; all agents together have spent this much in this run.
    fn tick(&mut self, spent: Spent);
    /// All attempts have ended.
    fn ended(&mut self) {}
}

/// Watches nothing.
pub(crate) struct Unwatched;

impl AskWatch for Unwatched {
    fn event(&mut self, _: usize, _: &AttemptEvent) {}

    fn tick(&mut self, _: Spent) {}
}

fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
