//! Builds. `build`, `check`, `verify`, `bench` and `ablate` are one operation with different goals.

mod outcome;
mod plan;
pub mod report;
pub mod result;
pub mod steps;
mod timings;
mod unknown;
mod untried;

use std::path::PathBuf;
use std::time::Instant;

use crate::Error;
use crate::affected::{Asked, narrowed};
use crate::contradictions;
use crate::event::Warning;
use crate::rebuild::inputs;
use crate::session::build::{Packages, PlanRequest, Ready};
use crate::session::certificate::Question;
use crate::session::evidence_policy::EvidencePolicy;
use crate::session::request::LastRequest;
use crate::session::{Opened, Session};
use kforge_engine::BuildOutcome;
use kforge_pipeline::plan::Goal;
use kforge_pipeline::release::affected::Affected;
use kforge_pipeline::release::evidence_list::reused;
use kforge_pipeline::report::brief::brief;
use kforge_project::workspace::select::{Selected, SelectionArgs};
use kforge_types::record::{Outcome, Standing};

pub use outcome::{Ended, Lacking, failing};
pub use plan::{Plan, plan};
pub use result::{Built, Champion, Finished, Unchanged};
pub use steps::{is_about_values, is_doubt};
pub use unknown::UnknownCounts;
pub use untried::Untried;

/// The request for a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildRequest {
    /// What to build.
    pub words: SelectionArgs,
    /// How far to go.
    pub goal: Goal,
    /// The number of steps to run in parallel; a negative number means all cores except that many. If none, the setting `build.jobs`.
    pub jobs: Option<i64>,
    /// After a failure, continue with steps that do not depend on the failed step.
    pub keep_going: bool,
    /// Measure on a device again, even if there are records.
    pub remeasure: bool,
    /// Which evidence counts. If some is required and missing, the build ends with [`Ended::NoEvidence`].
    pub evidence: EvidencePolicy,
    /// The revision whose trusted keys may sign evidence, instead of those in the tree that is built.
    pub base: Option<String>,
    /// The revision since which a kernel must have changed to be built.
    pub changed_since: Option<String>,
    /// A manifest whose operators and shapes are added to the packages.
    pub overlay: Option<PathBuf>,
    /// Write a page that shows where the time went.
    pub timings: bool,
    /// Plan even if a certificate proves that there is nothing to do, because the caller needs the whole result and not only its text.
    pub plans: bool,
    /// The process builds again after this build: the plan is freed, and the result says what was read.
    pub goes_on: bool,
}

impl BuildRequest {
    /// A build of everything in the current package or workspace up to the goal, with the jobs of the settings.
    pub fn new(goal: Goal) -> Self {
        BuildRequest {
            words: SelectionArgs::default(),
            goal,
            jobs: None,
            keep_going: false,
            remeasure: false,
            evidence: EvidencePolicy::default(),
            base: None,
            changed_since: None,
            overlay: None,
            timings: false,
            plans: false,
            goes_on: false,
        }
    }

    /// The selection: what is selected or, if only changes are built, the part of it that they touch.
    fn selected(&self, session: &Session, opened: &Opened) -> Result<Result<Selected, Affected>, Error> {
        let selected = session.select_over(&opened.workspace, &self.words, self.overlay.as_deref())?;
        let Some(since) = &self.changed_since else { return Ok(Ok(selected)) };
        let overlay = self.overlay.as_ref().map(|path| session.cwd.join(path));
        let asked = Asked { selected: &selected, goal: self.goal, overlay, observes: false };
        let (affected, narrowed) = narrowed(session, opened, asked, since)?;
        Ok(narrowed.ok_or(affected))
    }

    /// The request for the plan. `write` is false if nothing may be written.
    pub(crate) fn asked(&self, selected: Selected, write: bool) -> PlanRequest {
        PlanRequest {
            selected,
            goal: self.goal,
            jobs: self.jobs,
            keep_going: self.keep_going,
            remeasure: self.remeasure,
            evidence: self.evidence,
            overlay: self.overlay.clone(),
            write,
            looks: false,
        }
    }
}

/// Builds.
///
/// # Errors
/// The build could not be started, or its results could not be stored. The result says how the build ended.
pub fn build(session: &Session, request: &BuildRequest) -> Result<Built, Error> {
    let began = Instant::now();
    let question = session.question(request);
    if let Some(held) = question.as_ref().and_then(|q| session.certified(q)) {
        held.answer.request.note(session, &held.target);
        return Ok(Built::Unchanged(Box::new(Unchanged::new(held, request.goal))));
    }
    let opened = session.open()?;
    let trusting = trusting(session, &opened, request.base.as_deref())?;
    let session = trusting.as_ref().unwrap_or(session);
    let selected = match request.selected(session, &opened)? {
        Ok(selected) => selected,
        Err(affected) => return Ok(Built::Unaffected(Box::new(affected))),
    };
    // A plan of a hundred thousand nodes is left to the end of the process: see `Ready::end`.
    let forget = |_: BuildState<'_, '_>, outcome: BuildOutcome| {
        match request.goes_on {
            true => drop(outcome),
            false => std::mem::forget(outcome),
        }
        Ok(())
    };
    let (finished, ()) = execute(session, opened, selected, request, (began, question), forget)?;
    Ok(Built::Finished(Box::new(finished)))
}

/// The state in which a build has ended, while it still holds its locks.
pub(crate) struct BuildState<'a, 'p> {
    /// The workspace.
    pub(crate) opened: &'a Opened,
    /// The plan and the services that built it.
    pub(crate) ready: &'a Ready<'p>,
    /// The packages.
    pub(crate) packages: &'a Packages,
    /// How it ended.
    pub(crate) ended: &'a Ended,
}

/// Builds a selection, and passes the state in which that ended to `then`. `began` and `question` are those of the request.
///
/// # Errors
/// Those of [`build()`], or those of `then`.
pub(crate) fn execute<R>(
    session: &Session,
    mut opened: Opened,
    selected: Selected,
    request: &BuildRequest,
    (began, question): (Instant, Option<Question>),
    then: impl FnOnce(BuildState<'_, '_>, BuildOutcome) -> Result<R, Error>,
) -> Result<(Finished, R), Error> {
    let asked = request.asked(selected, true);
    let packages = session.packages(&opened, &asked)?;
    let mut ready = session.ready(&mut opened, &packages, &asked)?;
    let asked_for = LastRequest::of(session, &opened.workspace, &asked);
    asked_for.note(session, &opened.target);
    let said = session.reporter.said();
    let mut timed = request.timings.then(Vec::new);
    let purpose = crate::event::Purpose::Build;
    let outcome = steps::execute(session, &opened, &mut ready, &packages, purpose, timed.as_mut());
    ready.journal.flush()?;
    ready.sweep_lost(&outcome);
    // Nothing may have been said since the plan, except about signatures, which a certificate repeats.
    let is_plain = said == session.reporter.said();
    for (bundles, why) in ready.signed.distrusted() {
        let quoted: Vec<String> = bundles.iter().map(|name| format!("`{name}`")).collect();
        let name = if quoted.is_empty() { "imported evidence".into() } else { quoted.join(", ") };
        session.reporter.warn(Warning::Distrusted { name, why });
    }
    let said = session.reporter.said();
    let mut report = report::assemble(&ready, &outcome);
    report::locate(&mut report, &opened.workspace);
    report::add_earlier(&opened, &ready, &outcome, &mut report);
    report::add_not_built(&opened, &outcome, &mut report);
    // Candidates are remembered only after a whole build: results for some shapes, or of an interrupted build, say too little.
    if request.goal == Goal::Build && asked.selected.shapes.is_empty() && !outcome.interrupted {
        session.remember(&opened, &packages, &ready, &report);
    }
    let text = match outcome.interrupted {
        true => brief(&report.clone().begun()),
        false => brief(&report),
    };
    let (outdated, seen) = ready.outdated(&opened, &outcome);
    // The results of a partial or interrupted build do not replace the report of a whole one.
    if request.goal == Goal::Build {
        match outcome::is_interrupted(&ready, &outcome) {
            true => report::note_interrupted(session, &opened),
            false => {
                report.built = Some(report::built(session, &opened, &asked_for, &outcome));
                report::keep(&opened, &report)?;
            }
        }
    }
    let contradictions = contradictions::report(session, &ready, &outcome);
    let ended = Ended::of(request, &ready, &outcome, contradictions);
    let quiet = said == session.reporter.said();
    if request.evidence.required == Some(Standing::Claimed) {
        session.report_claims(&outcome);
    }
    let timings = timed.map(|steps| timings::write(&opened, &ready, &outcome, steps, began.elapsed()));
    // A build with complaints from the engine is not certified, because the next build may not repeat them.
    if let (Ended::Done, Some(question), true) = (&ended, question, ready.decided)
        && quiet
        && is_plain
        && !steps::complains(&outcome)
    {
        ready.keep_committed(&outcome)?;
        let mut witness = ready.witness.clone();
        witness.add(seen);
        let messages = (text.clone(), session.reporter.said(), outdated.clone(), asked_for);
        session.certify(question, &opened, witness, &outcome, messages, &ready);
    }
    // Only results from earlier builds are listed with their age.
    let fresh = outcome.steps.iter().filter(|done| done.outcome == Outcome::Fresh);
    let finished = Finished {
        ended,
        text,
        champions: result::champions(&ready, &outcome),
        steps: outcome.counts,
        verdicts: outcome.verdicts,
        unknown: UnknownCounts::of(&outcome),
        reused: reused(fresh.filter_map(|done| done.evidence.as_ref())),
        outdated,
        untried: untried::untried(&outcome),
        timings,
        inputs: request.goes_on.then(|| inputs(session, &opened, &ready, request.overlay.as_deref())),
        report,
        packages: vec![],
    };
    let state = BuildState { opened: &opened, ready: &ready, packages: &packages, ended: &finished.ended };
    let known = then(state, outcome)?;
    match request.goes_on {
        true => drop(ready),
        false => ready.end(),
    }
    Ok((Finished { packages: packages.into_packages(), ..finished }, known))
}

/// The session that trusts the keys of a base revision, if one is named.
pub(crate) fn trusting(session: &Session, opened: &Opened, base: Option<&str>) -> Result<Option<Session>, Error> {
    let Some(revision) = base else { return Ok(None) };
    let found = session.trusted(Some(&opened.workspace.root), Some(revision))?;
    Ok(Some(session.trusting(found.trust)))
}
