//! Runs rounds: builds the recorded candidates, decides what the next round tries, asks for it, records the answer, and repeats until there is nothing left to
//! ask. This is the only operation that asks agents.
//!
//! Only what is on disk is kept between turns: answers in the home, results in the caches. So a run that was killed continues where it stopped, and nothing is
//! paid for twice.

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
use crate::build::{Champion, Ended, UnknownCounts, result, trusting};
use crate::contradictions;
use crate::event::{Event, Purpose};
use crate::session::Opened;
use crate::session::build::{Packages, PlanRequest};
use crate::session::evidence_policy::EvidencePolicy;
use crate::session::rounds::Seat;
use crate::{Error, Session};
use kforge_pipeline::optimize::agents::ask::{AskError, Clock, Ledger, Spent, SystemClock};
use kforge_pipeline::plan::{Goal, Selection};
use kforge_pipeline::report::Report;
use kforge_project::workspace::select::SelectionArgs;
use kforge_types::record::Standing;
use kforge_types::record::event::{StepCounts, VerdictCounts};

/// The request for rounds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OptimizeRequest {
    /// The kernels to improve; if no kernel is selected, all kernels that name an agent.
    pub words: SelectionArgs,
    /// The number of rounds, overriding `generate.rounds`.
    pub rounds: Option<u32>,
    /// The number of steps to run in parallel; a negative number means all cores except that many. If none, the setting `build.jobs`.
    pub jobs: Option<i64>,
    /// The least standing of evidence that is required; none if evidence need not exist.
    pub require_evidence: Option<Standing>,
    /// A revision whose `.kforge/allowed_signers` is trusted. If none, the sources of trust of the session.
    pub base: Option<String>,
    /// A manifest whose operators and shapes are added to the packages.
    pub overlay: Option<PathBuf>,
}

/// How rounds ended.
#[derive(Debug)]
pub enum Optimized {
    /// The rounds were interrupted. Measurements and answers so far are stored.
    Interrupted {
        /// Whether the interrupt came while agents were asked, rather than while steps ran.
        asking: bool,
    },
    /// There is nothing left to ask.
    Finished(Box<Finished>),
}

/// The result of rounds that have nothing left to ask, from their last build.
#[derive(Debug)]
pub struct Finished {
    /// How the last build ended.
    pub ended: Ended,
    /// The report.
    pub report: Report,
    /// The champions, in the order of the plan.
    pub champions: Vec<Champion>,
    /// What each agent that was asked has spent, by the agent's name.
    pub spent: Vec<(String, Spent)>,
    /// The number of steps by outcome.
    pub steps: StepCounts,
    /// The number of steps by verdict.
    pub verdicts: VerdictCounts,
    /// What the unknown verdicts are about.
    pub unknown: UnknownCounts,
}

/// Why rounds cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum OptimizeError {
    /// No selected kernel names an agent.
    #[error("no agent is declared for {}", kernels.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "))]
    NoAgent {
        /// The selected kernels.
        kernels: Vec<String>,
    },
    /// The first attempts cannot be requested.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// A planned declaration does not exist: a bug.
    #[error("BUG: the declaration of `{0}` is gone")]
    Gone(String),
}

/// Runs rounds until there is nothing left to ask.
///
/// # Errors
/// [`OptimizeError`], or a build could not be started. An agent that does not answer is reported, and the rounds of other agents continue.
pub fn optimize(session: &Session, request: &OptimizeRequest) -> Result<Optimized, Error> {
    let mut run = Run::new();
    let mut judging = None;
    loop {
        let mut opened = session.open()?;
        // Once, so that one run says once what it does not trust.
        if judging.is_none() {
            judging = trusting(session, &opened, request.base.as_deref())?;
        }
        let session = judging.as_ref().unwrap_or(session);
        let selected = session.select_over(&opened.workspace, &request.words, request.overlay.as_deref())?;
        let asked = PlanRequest {
            selected,
            goal: Goal::Build,
            jobs: request.jobs,
            keep_going: true,
            remeasure: false,
            evidence: EvidencePolicy::requiring(request.require_evidence),
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
        // The workspace is not locked while agents answer, so that no other process has to wait for them.
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

/// The state of one run of the operation.
struct Run {
    clock: Arc<dyn Clock>,
    /// What agents have spent of their budgets, and when they were asked.
    ledger: Ledger,
    /// Seats with nothing left to ask.
    ended: BTreeSet<Seat>,
    /// Seats that were asked in the previous turn.
    asked: BTreeSet<Seat>,
    /// Whether a request failed for any seat; the others continue.
    failed: bool,
}

impl Run {
    fn new() -> Self {
        let (clock, ledger) = (Arc::new(SystemClock::default()), Ledger::default());
        Run { clock, ledger, ended: BTreeSet::new(), asked: BTreeSet::new(), failed: false }
    }
}

/// The result of one turn.
enum Turn {
    /// There is nothing left to ask.
    Over(Optimized),
    /// What to ask next.
    Due(Vec<Due>),
}

/// Builds the recorded candidates, and finds what to ask next.
fn turn(
    session: &Session,
    opened: &mut Opened,
    packages: &Packages,
    asked: &PlanRequest,
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
    let contradictions = contradictions::report(session, &ready, &outcome);
    let ended = match Ended::plain(&outcome, false).unless_contradicted(contradictions) {
        _ if run.failed => Ended::NotBuilt,
        // No variant of a seat can be a correct kernel.
        Ended::Done if none => Ended::NotBuilt,
        ended => ended.unless_lacking_evidence(asked.evidence, &outcome),
    };
    let (steps, verdicts) = (outcome.counts, outcome.verdicts);
    let turn = if due.is_empty() {
        keep(opened, &report)?;
        if asked.evidence.required == Some(Standing::Claimed) {
            session.report_claims(&outcome);
        }
        let champions = result::champions(&ready, &outcome);
        let spent = run.ledger.all();
        let unknown = UnknownCounts::of(&outcome);
        Turn::Over(Optimized::Finished(Box::new(Finished {
            ended,
            report,
            champions,
            spent,
            steps,
            verdicts,
            unknown,
        })))
    } else {
        let success = ended == Ended::Done;
        session.reporter.event(&Event::Round(&RoundEvent::Built { success, steps, verdicts }));
        Turn::Due(due)
    };
    ready.end();
    std::mem::forget(outcome);
    Ok(turn)
}

/// Whether kforge.lock has an accepted champion for a seat.
fn is_accepted(opened: &Opened, seat: &Seat) -> bool {
    let accepted = opened.workspace.lock.accepted(&seat.package);
    accepted.contains(&(seat.kernel.clone(), seat.types.clone(), seat.target.clone()))
}

/// Whether a seat is selected.
fn selects(asked: &PlanRequest, seat: &Seat) -> bool {
    Selection::takes(&asked.selected.kernels, &seat.kernel) && Selection::takes(&asked.selected.targets, &seat.target)
}

/// Refuses a selection in which no kernel has rounds.
fn has_rounds(packages: &Packages, asked: &PlanRequest) -> Result<(), OptimizeError> {
    let kernels =
        || packages.all().flat_map(|p| &p.kernels).filter(|k| Selection::takes(&asked.selected.kernels, &k.name));
    if kernels().any(|kernel| kernel.rounds.is_some()) {
        return Ok(());
    }
    Err(OptimizeError::NoAgent { kernels: kernels().map(|kernel| kernel.name.clone()).collect() })
}
