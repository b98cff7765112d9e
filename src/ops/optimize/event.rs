//! Events of rounds: the results of each build, and the progress of attempts.

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

/// An event of the rounds.
#[derive(Debug)]
pub enum RoundEvent<'a> {
    /// A build ended, and there is more to ask.
    Built {
        /// Whether the build found nothing wrong.
        success: bool,
        /// The number of steps by outcome.
        steps: StepCounts,
        /// The number of steps by verdict.
        verdicts: VerdictCounts,
    },
    /// The result of a variant of the last attempt.
    Judged {
        /// The seat of the rounds.
        seat: &'a Seat,
        /// The variant.
        variant: &'a str,
        /// The variant's result.
        became: &'a Became,
    },
    /// There is nothing left to ask for a kernel.
    Rests {
        /// The seat of the rounds.
        seat: &'a Seat,
        /// Whether anything was ever tried.
        tried: bool,
        /// The reason.
        why: &'a Rest,
    },
    /// Methods that no variant has together with the other methods of a round.
    LeftOut(&'a [String]),
}

/// Why there is nothing left to ask for a kernel.
#[derive(Debug, thiserror::Error)]
pub enum Rest {
    /// Its champion was accepted.
    #[error("accepted in kforge.lock: `kforge accept {kernel} --undo` releases it")]
    Accepted {
        /// The kernel.
        kernel: String,
    },
    /// Its declaration does not exist: a bug.
    #[error("BUG: its declaration is gone")]
    Gone,
    /// No times can be measured here.
    #[error("nothing can be measured: {0}")]
    Untimed(String),
    /// A kernel is correct on a target that is not timed.
    #[error("a kernel is correct, and without times on `cpu` no better one can be found")]
    Correct,
    /// The champion on a target that is not timed is undecided.
    #[error("the kernel is not known to be wrong and not known to be correct: `cpu` cannot judge it")]
    Undecided,
    /// The rounds are used up, or it was decided to stop.
    #[error("{0}")]
    Done(End),
    /// The rounds are done, and no kernel is correct.
    #[error(
        "{why}, and no kernel is correct{}: `--rounds {}` continues",
        refused.as_ref().map(|why| format!(" (the last answer: {why})")).unwrap_or_default(),
        rounds + 1
    )]
    NoneCorrect {
        /// Why the rounds are done.
        why: End,
        /// Why the last refused answer was refused.
        refused: Option<String>,
        /// The allowed number of rounds.
        rounds: u32,
    },
    /// The space of the kernel's variants cannot be determined.
    #[error("{}", .0.message)]
    NoSpace(Box<Diagnostic>),
    /// The rules have nothing more to try.
    #[error("every variant was tried")]
    AllTried,
    /// The rules have nothing more to try with these methods.
    #[error("no untried variant has {}", listed(.0))]
    NoneWith(Vec<String>),
}

/// A request for an attempt at a round.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptRequest {
    /// The seat of the rounds.
    pub seat: Seat,
    /// The question.
    pub question: Question,
}

/// An event of a requested attempt.
#[derive(Debug)]
pub enum AttemptEvent {
    /// The request begins.
    Begins,
    /// The attempt waits for another kforge that asks the same question.
    Blocked,
    /// An event of asking an agent.
    Asking(AskEvent),
    /// The attempt ended: the answer is recorded, or there is none.
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
    /// An answer exists, but of another version.
    #[error(
        "another version of kforge recorded an answer to this request: use that version, or remove `{}`",
        .0.display()
    )]
    OtherVersion(PathBuf),
    /// The agents gave no answer.
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

/// Watches attempts that are requested in parallel.
pub trait AskWatch {
    /// Called for each event of the attempt at this position.
    fn event(&mut self, attempt: usize, event: &AttemptEvent);
    /// Called regularly, with what all agents together have spent in this run.
    fn tick(&mut self, spent: Spent);
    /// Called when all attempts have ended.
    fn ended(&mut self) {}
}

/// Ignores all events.
pub(crate) struct Unwatched;

impl AskWatch for Unwatched {
    fn event(&mut self, _: usize, _: &AttemptEvent) {}

    fn tick(&mut self, _: Spent) {}
}

fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
