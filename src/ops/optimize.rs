//! Rounds. Builds what is recorded, decides what the next round is to try, asks for it, records the answer, and begins anew until there is nothing left to ask. It
//! is the only operation that asks agents.
//!
//! Nothing is kept between turns but what is on disk: answers in the home, results in the caches. So a run that was killed goes on where it was, and pays for
//! nothing twice.

mod ask;
mod brief;
pub mod event;
mod results;
mod next;
mod memory;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use self::event::{NotAnswered, Rest, RoundEvent};
use self::memory::Memory;
use self::next::{Due, comes_next, nothing_is_right};
pub use self::results::Became;
use self::results::Results;
use crate::build::report::{assemble, keep};
use crate::build::steps::execute;
use crate::build::{Champion, Ended, result};
use crate::event::{Event, Purpose};
use crate::session::Opened;
use crate::session::build::{Asked, Packages};
use crate::session::rounds::Seat;
use crate::{Error, Session};
use kforge_pipeline::optimize::agents::ask::{AskError, Clock, Ledger, Spent, SystemClock};
use kforge_pipeline::plan::{Goal, Selection};
use kforge_pipeline::report::Report;
use kforge_project::workspace::select::SelectionArgs;
use kforge_types::record::event::{StepCounts, VerdictCounts};

/// What rounds are asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OptimizeRequest {
    /// What to improve: all that name an agent if no kernel is selected.
    pub words: SelectionArgs,
    /// The number of rounds, in place of `generate.rounds`.
    pub rounds: Option<u32>,
    /// Steps at once; a negative number is cores less that many. `build.jobs` of the settings if there is none.
    pub jobs: Option<i64>,
    /// A manifest whose operators and shapes are added to the packages.
    pub overlay: Option<PathBuf>,
}

/// How rounds ended.
#[derive(Debug)]
pub enum Optimized {
    /// They were interrupted; what was measured and answered is kept.
    Interrupted {
        /// Whether agents were asked at that time, rather than steps run.
        asking: bool,
    },
    /// There is nothing left to ask.
    Finished(Box<Finished>),
}

/// Rounds after which there is nothing left to ask: the last build.
#[derive(Debug)]
pub struct Finished {
    /// How they ended.
    pub ended: Ended,
    /// What was found.
    pub report: Report,
    /// Who stands for what, in the order of the plan.
    pub champions: Vec<Champion>,
    /// What each agent that was asked has spent, by its name.
    pub spent: Vec<(String, Spent)>,
    /// How many steps ended how.
    pub steps: StepCounts,
    /// How many steps said what.
    pub verdicts: VerdictCounts,
}

/// Why there are no rounds.
#[derive(Debug, thiserror::Error)]
pub enum OptimizeError {
    /// No kernel that is selected names an agent.
    #[error("no agent is declared for {}", kernels.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "))]
    NoAgent {
        /// The kernels that are selected.
        kernels: Vec<String>,
    },
    /// The first attempts cannot be asked for.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// A declaration that was planned is not there: a bug.
    #[error("BUG: the declaration of `{0}` is gone")]
    Gone(String),
}

/// Runs rounds until there is nothing left to ask.
///
/// # Errors
/// [`OptimizeError`], or a build could not be started. An agent that does not answer is reported, and the others go on.
pub fn optimize(session: &Session, request: &OptimizeRequest) -> Result<Optimized, Error> {
    let mut run = Run::new();
    loop {
        let mut opened = session.open()?;
        let selected = session.select_over(&opened.workspace, &request.words, request.overlay.as_deref())?;
        let asked = Asked {
            selected,
            goal: Goal::Build,
            jobs: request.jobs,
            keep_going: true,
            remeasure: false,
            overlay: request.overlay.clone(),
            write: true,
            looks: false,
        };
        let mut packages = session.packages(&opened, &asked)?;
        packages.with_rounds(request.rounds);
        has_rounds(&packages, &asked)?;
        let due = match turn(session, &mut opened, &packages, &asked, &mut run)? {
            Turn::Over(optimized) => return Ok(optimized),
            Turn::Due(due) => due,
        };
        // Nobody else has to wait for an agent: the workspace is not locked meanwhile.
        let answered = ask::answers(session, &opened, &packages, due, &run)?;
        if answered.iter().any(|(_, how)| matches!(how, Err(NotAnswered::Interrupted))) {
            return Ok(Optimized::Interrupted { asking: true });
        }
        for (seat, how) in answered {
            match how {
                Ok(()) => drop(run.asked.insert(seat)),
                Err(_) => {
                    run.ended.insert(seat);
                    run.failed = true;
                }
            }
        }
    }
}

/// What one run of the operation keeps.
struct Run {
    clock: Arc<dyn Clock>,
    /// What agents have spent of their budgets, and when they were asked.
    ledger: Ledger,
    /// What nothing comes next for.
    ended: BTreeSet<Seat>,
    /// What was asked for in the turn before.
    asked: BTreeSet<Seat>,
    /// Whether asking failed somewhere: the others go on.
    failed: bool,
}

impl Run {
    fn new() -> Self {
        let (clock, ledger) = (Arc::new(SystemClock::default()), Ledger::default());
        Run { clock, ledger, ended: BTreeSet::new(), asked: BTreeSet::new(), failed: false }
    }
}

/// What one build led to.
enum Turn {
    /// Nobody is to be asked any more.
    Over(Optimized),
    /// What is to be asked.
    Due(Vec<Due>),
}

/// Builds what is recorded, and finds what comes next.
fn turn(
    session: &Session,
    opened: &mut Opened,
    packages: &Packages,
    asked: &Asked,
    run: &mut Run,
) -> Result<Turn, Error> {
    let mut ready = session.ready(opened, packages, asked)?;
    let outcome = execute(session, opened, &mut ready, packages, Purpose::Round, None);
    ready.journal.flush()?;
    if outcome.interrupted || session.interrupted.load(Ordering::Relaxed) {
        return Ok(Turn::Over(Optimized::Interrupted { asking: false }));
    }
    let report = assemble(&ready, &outcome);
    if asked.selected.shapes.is_empty() {
        session.remember(opened, packages, &ready, &report);
    }
    let memory = Memory::new(session, opened)?;
    let mut due = Vec::new();
    let mut none = false;
    for recorded in &ready.recorded {
        let seat = &recorded.seat;
        if !selects(asked, seat) || run.ended.contains(seat) {
            continue;
        }
        let mut rests = |why: &Rest| {
            let tried = !recorded.answers.is_empty();
            session.reporter.event(&Event::Round(&RoundEvent::Rests { seat, tried, why }));
            run.ended.insert(seat.clone());
        };
        if is_accepted(opened, seat) {
            rests(&Rest::Accepted { kernel: seat.kernel.clone() });
            continue;
        }
        let results = Results::new(&ready, &outcome, seat);
        none |= results.champion().is_none() && nothing_is_right(packages, recorded, &results);
        if run.asked.remove(seat) {
            ask::tell(session, packages, recorded, &results);
        }
        match comes_next(session, packages, recorded, &results, &memory) {
            Ok(next) => due.push(next),
            Err(why) => rests(&why),
        }
    }
    let ended = match Ended::plain(&outcome, false) {
        _ if run.failed => Ended::NotBuilt,
        // There is no kernel that could be one.
        Ended::Done if none => Ended::NotBuilt,
        ended => ended,
    };
    let (steps, verdicts) = (outcome.counts, outcome.verdicts);
    let turn = if due.is_empty() {
        keep(opened, &report)?;
        let champions = result::champions(&ready, &outcome);
        let spent = run.ledger.all();
        Turn::Over(Optimized::Finished(Box::new(Finished { ended, report, champions, spent, steps, verdicts })))
    } else {
        let success = ended == Ended::Done;
        session.reporter.event(&Event::Round(&RoundEvent::Built { success, steps, verdicts }));
        Turn::Due(due)
    };
    ready.end();
    std::mem::forget(outcome);
    Ok(turn)
}

/// Whether kforge.lock says that a seat's champion stays.
fn is_accepted(opened: &Opened, seat: &Seat) -> bool {
    let accepted = opened.workspace.lock.accepted(&seat.package);
    accepted.contains(&(seat.kernel.clone(), seat.types.clone(), seat.target.clone()))
}

/// Whether a seat was selected.
fn selects(asked: &Asked, seat: &Seat) -> bool {
    Selection::takes(&asked.selected.kernels, &seat.kernel) && Selection::takes(&asked.selected.targets, &seat.target)
}

/// Refuses a selection in which nothing has rounds.
fn has_rounds(packages: &Packages, asked: &Asked) -> Result<(), OptimizeError> {
    let kernels =
        || packages.all().flat_map(|p| &p.kernels).filter(|k| Selection::takes(&asked.selected.kernels, &k.name));
    if kernels().any(|kernel| kernel.rounds.is_some()) {
        return Ok(());
    }
    Err(OptimizeError::NoAgent { kernels: kernels().map(|kernel| kernel.name.clone()).collect() })
}
