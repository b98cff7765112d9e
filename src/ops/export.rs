//! Exports recorded attempts at rounds as lines of JSON: the request, the answer and the results, or conversations for fine-tuning. Asks no agent and runs
//! nothing.

pub mod t4;
pub mod traces;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

use crate::build::report::view;
use crate::session::build::{Packages, Ready};
use crate::session::places::Places;
use crate::session::rounds::Recorded;
use crate::{Error, Session};
use kforge_engine::{Blobs, ReadyResult};
use kforge_foundation::base::files::write_if_changed;
use kforge_numerics::measure::reward::DISCOUNT;
use kforge_pipeline::optimize::holdout::HeldBack;
use kforge_pipeline::optimize::kind::Kind;
use kforge_pipeline::plan::{Goal, Selection};
use kforge_pipeline::release::trajectory::conversation::conversation;
use kforge_pipeline::release::trajectory::filter::Filter;
use kforge_pipeline::release::trajectory::{FoundVerdict, Rollout, trajectories as of_rollouts};
use kforge_pipeline::report::{self, Report, StepView};
use kforge_project::workspace::select::SelectionArgs;
use kforge_types::model::ShapeRole;
use kforge_types::record::params::Judgement;
use kforge_types::record::{StepKind, Verdict};

/// The request for an export of attempts.
#[derive(Debug, Clone, PartialEq)]
pub struct TrajectoriesRequest {
    /// The selection.
    pub words: SelectionArgs,
    /// The file to write; if none is named, the result contains the lines.
    pub output: Option<PathBuf>,
    /// What a line is.
    pub form: LineForm,
    /// Which attempts are exported.
    pub filter: Filter,
    /// The factor by which each later turn counts less in a return.
    pub discount: f64,
}

impl Default for TrajectoriesRequest {
    fn default() -> Self {
        TrajectoriesRequest {
            words: SelectionArgs::default(),
            output: None,
            form: LineForm::default(),
            filter: Filter::default(),
            discount: DISCOUNT,
        }
    }
}

/// What a line of an export is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LineForm {
    /// An attempt with everything that is known about it.
    #[default]
    Trajectory,
    /// The messages of a correct attempt, for supervised fine-tuning.
    Conversation,
}

/// The result of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trajectories {
    /// The number of lines.
    pub count: u64,
    /// The number of recorded attempts.
    pub recorded: u64,
    /// Where the lines are.
    pub to: Destination,
}

/// Where lines were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// In this file.
    File(PathBuf),
    /// In this string.
    Lines(String),
}

/// Why there is nothing to export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoTrajectories {
    /// Nothing is recorded.
    #[error("there are no trajectories: no attempt at a round is recorded for the selection")]
    NothingRecorded,
    /// No recorded attempt passes the filters.
    #[error("no attempt passes the filters: {} recorded for the selection", if *.0 == 1 { "1 is".into() } else { format!("{} are", .0) })]
    Filtered(u64),
    /// No attempt that passes the filters has messages.
    #[error("there are no conversations: no correct attempt among the recorded ones is the reply of an agent")]
    NoConversations,
}

/// Exports recorded attempts.
///
/// # Errors
/// [`NoTrajectories`], or the plan cannot be made.
pub fn trajectories(session: &Session, request: &TrajectoriesRequest) -> Result<Trajectories, Error> {
    let looking = session.look(&request.words, Goal::Build)?;
    let selected = session.select(&looking.opened.workspace, &request.words)?;
    let rollouts = looking.plan_of(session, |opened, packages, ready| {
        let known = ready.with_services(session, opened, |services| {
            kforge_engine::known(ready.graph.clone(), &ready.options, services)
        });
        let nodes: Vec<_> = known.steps.iter().map(|(node, _)| node).collect();
        let places = Places::of_steps(&nodes, &ready.journal, &*ready.leaves);
        let report = assembled(ready, &known, &places);
        let takes = |of: &&Recorded| {
            Selection::takes(&selected.kernels, &of.seat.kernel) && Selection::takes(&selected.targets, &of.seat.target)
        };
        let rollouts = ready.recorded.iter().filter(takes).map(|recorded| {
            let judged = judged(ready, &known, recorded, &places);
            rollout(packages, &report, recorded, judged)
        });
        Ok::<_, Error>(rollouts.collect::<Vec<Rollout>>())
    })?;
    let all = of_rollouts(&rollouts, request.discount);
    let recorded = all.len() as u64;
    if recorded == 0 {
        return Err(NoTrajectories::NothingRecorded.into());
    }
    let is_conversation = request.form == LineForm::Conversation;
    let filter = Filter { correct: request.filter.correct || is_conversation, ..request.filter };
    let passed = filter.applied(all);
    if passed.is_empty() && !is_conversation {
        return Err(NoTrajectories::Filtered(recorded).into());
    }
    let texts: Vec<String> = match request.form {
        LineForm::Trajectory => passed.iter().map(serde_json::to_string).collect::<Result<_, _>>()?,
        LineForm::Conversation => {
            passed.iter().filter_map(conversation).map(|c| serde_json::to_string(&c)).collect::<Result<_, _>>()?
        }
    };
    if texts.is_empty() {
        return Err(NoTrajectories::NoConversations.into());
    }
    let count = texts.len() as u64;
    let lines = texts.into_iter().fold(String::new(), |mut lines, text| {
        let _ = writeln!(lines, "{text}");
        lines
    });
    let to = match &request.output {
        None => Destination::Lines(lines),
        Some(path) => {
            let path = session.cwd.join(path);
            write_if_changed(&path, lines.as_bytes()).map_err(Error::write(&path))?;
            Destination::File(path)
        }
    };
    Ok(Trajectories { count, recorded, to })
}

/// The recorded attempts of a seat.
fn rollout(packages: &Packages, report: &Report, recorded: &Recorded, judged: Vec<FoundVerdict>) -> Rollout {
    let seat = &recorded.seat;
    let package = packages.member(&seat.package).map(|m| &m.package);
    let operator = package.and_then(|p| p.operator(&p.kernel(&seat.kernel)?.operator));
    let shapes = operator.into_iter().flat_map(|o| &o.shapes);
    let held_back: BTreeSet<String> = shapes.filter(|s| s.role == ShapeRole::Holdout).map(|s| s.name.clone()).collect();
    let targets = report.packages.iter().filter(|p| p.name == seat.package).flat_map(|p| &p.kernels);
    let mut targets = targets.filter(|k| k.name == seat.kernel).flat_map(|k| &k.targets);
    let target = targets.find(|t| t.target == seat.target && t.types == seat.types);
    let kind = operator.map(Kind::of);
    Rollout {
        seat: [&seat.package, &seat.kernel, &seat.types, &seat.target].map(Clone::clone),
        language: recorded.language,
        pattern: kind.as_ref().and_then(|kind| kind.pattern),
        level: kind.as_ref().and_then(|kind| kind.level),
        contract: recorded.contract.clone(),
        problem: recorded.asked,
        chain: recorded.chain,
        held_back,
        hidden: HeldBack::of(operator),
        rounds: target.and_then(|t| t.rounds.clone()),
        judged,
        // Times of launches that are all the kernel's own contain nothing else. Otherwise nothing measures the share.
        ratio: target.and_then(|t| t.basis.as_ref()).filter(|basis| basis.whole).map(|_| 1.0),
        answers: recorded.answers.clone(),
        refused: recorded.refused.clone(),
    }
}

/// A report of the known results.
fn assembled(ready: &Ready<'_>, known: &ReadyResult, places: &Places<'_>) -> Report {
    let views: Vec<StepView<'_>> =
        known.steps.iter().filter_map(|(node, done)| Some(view(node, done.as_ref()?))).collect();
    let read = |digest: &kforge_foundation::base::Digest| ready.leaves.get(digest).ok().flatten();
    let reader = report::assemble::Reader {
        read: &read,
        places: &|id, text| places.text(id, text),
        place: &|id, place| places.place(id, place),
        first_place: &|id, text| places.first_place(id, text),
    };
    let mut report = report::assemble(&views, &|id| ready.names(id), &reader);
    report::rounds::add(&mut report, &views, &ready.tried(), &reader);
    report
}

/// The judgements of a seat's variants. Where the confirmation of a champion fails, its judgement takes the place of the one that it was to confirm.
fn judged(ready: &Ready<'_>, known: &ReadyResult, recorded: &Recorded, places: &Places<'_>) -> Vec<FoundVerdict> {
    let mut judged = judgements(ready, known, recorded, places, false);
    let confirmations = judgements(ready, known, recorded, places, true);
    for failed in confirmations.iter().filter(|found| matches!(found.verdict, Verdict::Fail(_))) {
        for found in judged.iter_mut().filter(|f| (&f.variant, &f.shape) == (&failed.variant, &failed.shape)) {
            found.clone_from(failed);
        }
    }
    judged
}

/// The judgements of a seat's variants: of their verifications, or of the confirmations of those that became champions.
fn judgements(
    ready: &Ready<'_>,
    known: &ReadyResult,
    recorded: &Recorded,
    places: &Places<'_>,
    confirms: bool,
) -> Vec<FoundVerdict> {
    let seat = &recorded.seat;
    let found = |(node, done): &(kforge_engine::Node, Option<kforge_engine::Done>)| {
        let labels = &node.labels;
        let mine = node.kind == StepKind::Judge
            && labels.method.is_none()
            && labels.confirms == confirms
            && labels.package == seat.package
            && labels.kernel.as_ref() == Some(&seat.kernel)
            && labels.target.as_ref() == Some(&seat.target);
        let result = done.as_ref().filter(|_| mine)?.result.as_ref()?;
        let bytes = ready.leaves.get(result.outputs.get("judgement")?).ok()??;
        let judgement: Judgement = serde_json::from_slice(&bytes).ok()?;
        Some(FoundVerdict {
            variant: labels.variant.clone()?,
            shape: labels.shape.clone()?,
            verdict: places.verdict(&node.id, judgement.verdict),
            explanation: places.text(&node.id, &judgement.explanation),
        })
    };
    known.steps.iter().filter_map(found).collect()
}
