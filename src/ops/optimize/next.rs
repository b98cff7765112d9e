//! Decides what comes next for one kernel's rounds: the next question, or why there is none. Asks no agent.

use std::collections::{BTreeMap, BTreeSet};

use super::brief;
use super::event::{Rest, RoundEvent};
use super::memory::Memory;
use super::results::{Became, Results};
use crate::Session;
use crate::event::{Event, Warning};
use crate::session::build::Packages;
use crate::session::rounds::{About, Recorded, agent_of};
use kforge_pipeline::optimize::agents::briefing::Briefing;
use kforge_pipeline::optimize::next::{Allowed, Next, RoundState, next};
use kforge_pipeline::optimize::round::{Branches, branches};
use kforge_types::model::agent::RULES;
use kforge_types::model::{Arch, Kernel, Target, TuneValue, TypeChoice};
use kforge_types::record::answer::{Proposal, Question};

/// The next attempt of one kernel's rounds.
pub(super) struct Due {
    pub(super) recorded: Recorded,
    pub(super) question: Question,
    /// For agents: the briefing.
    pub(super) briefing: Briefing,
    /// For `rules`: the proposal.
    pub(super) proposal: Option<Proposal>,
}

/// The next attempt for one kernel, or why there is none.
pub(super) fn comes_next(
    session: &Session,
    packages: &Packages,
    recorded: &Recorded,
    results: &Results<'_, '_>,
    memory: &Memory<'_>,
) -> Result<Due, Rest> {
    let gone = || Rest::Gone;
    let seat = &recorded.seat;
    let package = packages.all().find(|p| p.name == seat.package).ok_or_else(gone)?;
    let kernel = package.kernel(&seat.kernel).ok_or_else(gone)?;
    let operator = package.operator(&kernel.operator).ok_or_else(gone)?;
    let target = package.targets.get(&seat.target).ok_or_else(gone)?;
    let choices = operator.choices();
    let choice = choices.iter().find(|c| c.label == seat.types).ok_or_else(gone)?;
    let rounds = kernel.rounds.as_ref().ok_or_else(gone)?;
    if target.arch != Arch::Cpu
        && let Some(why) = results.untimed()
    {
        return Err(Rest::Untimed(why));
    }
    if target.arch == Arch::Cpu
        && let Some(champion) = results.champion()
    {
        return Err(match results.became(operator, champion) {
            Became::Correct => Rest::Correct,
            _ => Rest::Undecided,
        });
    }
    let by_rules = rounds.agent.value == RULES;
    let last = recorded.answers.last().map_or(0, |answer| answer.question.round);
    let found = results.found(operator, last);
    // Rules write no code, so there is nothing to repair.
    let allowed = Allowed { rounds: rounds.rounds, repairs: if by_rules { 0 } else { rounds.repairs } };
    let decision = results.decision(last + 1);
    let (round, attempt) = match next(&recorded.answers, found, allowed, decision.as_ref()) {
        Next::Done(why) if results.champion().is_none() => {
            let refused = recorded.refused.values().next_back().and_then(|why| why.lines().next()).map(String::from);
            return Err(Rest::NoneCorrect { why, refused, rounds: rounds.rounds });
        }
        Next::Done(why) => return Err(Rest::Done(why)),
        Next::Ask { round, attempt } => (round, attempt),
    };
    let decision = results.decision(round);
    // A repair keeps the methods of the attempt that it repairs, whatever a decision made now would choose.
    let methods = match recorded.answers.last().filter(|_| attempt > 0) {
        Some(answer) => answer.question.methods.clone(),
        None => decision.iter().flat_map(|d| &d.methods).map(|m| m.id.clone()).collect(),
    };
    let about = About { package, kernel, operator, choice, target };
    let mut briefing = brief::briefing(about, recorded, results, decision.as_ref(), (round, attempt, rounds.branches));
    let (methods, proposal) = match by_rules {
        // Rules need no briefing.
        true => {
            let found = by_the_rules(session, kernel, (target, choice), results, &methods, rounds.branches)?;
            (found.tries(&methods), Some(Proposal { branches: found.values, ..Proposal::default() }))
        }
        false => {
            memory.add(about, recorded, rounds.exemplars, &mut briefing);
            for what in memory.tells(about, recorded).into_iter().filter(|_| (round, attempt) == (1, 0)) {
                session.reporter.warn(Warning::HoldoutRevealed { seat: seat.clone(), what });
            }
            (methods, None)
        }
    };
    let question = Question {
        contract: recorded.asked,
        parent: brief::parent_digest(recorded, results),
        methods,
        round,
        attempt,
        agent: agent_of(package, kernel),
    };
    Ok(Due { recorded: recorded.clone(), question, briefing, proposal })
}

/// Variants of the package's own kernel with the chosen methods.
fn by_the_rules(
    session: &Session,
    kernel: &Kernel,
    (target, choice): (&Target, &TypeChoice),
    results: &Results<'_, '_>,
    methods: &[String],
    wanted: u32,
) -> Result<Branches, Rest> {
    let space = kernel.variants(target, choice).map_err(|d| Rest::NoSpace(Box::new(d)))?;
    let champion = results.champion().map(|b| b.variant.values.clone());
    let start = kernel.start(target, choice).map_err(|d| Rest::NoSpace(Box::new(d)))?.map(|v| v.values);
    let parent = champion.or(start).unwrap_or_default();
    let tried: BTreeSet<BTreeMap<String, TuneValue>> =
        results.selected.iter().flat_map(|s| &s.builds).map(|b| b.variant.values.clone()).collect();
    let found = branches(kernel, &space, &parent, methods, wanted as usize, &tried);
    if found.values.is_empty() {
        return Err(match methods {
            [] => Rest::AllTried,
            _ => Rest::NoneWith(methods.to_vec()),
        });
    }
    if !found.left_out.is_empty() {
        session.reporter.event(&Event::Round(&RoundEvent::LeftOut(&found.left_out)));
    }
    Ok(found)
}

/// Whether every variant of the last round is known to be wrong, or the last round had no variants.
pub(super) fn nothing_is_right(packages: &Packages, recorded: &Recorded, results: &Results<'_, '_>) -> bool {
    let package = packages.all().find(|p| p.name == recorded.seat.package);
    let kernel = package.and_then(|p| p.kernel(&recorded.seat.kernel));
    let operator = package.zip(kernel).and_then(|(p, k)| p.operator(&k.operator));
    let last = recorded.answers.last().map(|answer| answer.question.round);
    operator.zip(last).is_some_and(|(operator, last)| results.found(operator, last) == RoundState::Wrong)
}
