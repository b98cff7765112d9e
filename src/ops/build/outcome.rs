//! How a build ended.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use super::BuildRequest;
use crate::contradictions::Contradiction;
use crate::session::build::Ready;
use crate::session::evidence_policy::EvidencePolicy;
use kforge_engine::{BuildOutcome, Done, Node, Source, Unanswered};
use kforge_types::record::{Outcome, StepKind, StepResult, Unknown, Verdict};

/// How a build ended. If several variants apply, the first of these counts: interrupted, not built, contradicted, wrong, no evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Everything requested is done.
    Done,
    /// A step failed, or a toolchain could not be installed.
    NotBuilt,
    /// Evidence contradicts other evidence.
    Contradicted(Vec<Contradiction>),
    /// A kernel is wrong, or an operator that must decide is indecisive.
    Wrong,
    /// Evidence is required but missing.
    NoEvidence(Vec<Lacking>),
    /// The build was interrupted.
    Interrupted,
}

/// A step that lacks evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lacking {
    /// The step.
    pub id: String,
    /// Why the evidence is missing, for messages.
    pub why: String,
    /// Why stored evidence does not answer, if that is the reason.
    pub unanswered: Option<Unanswered>,
}

impl Ended {
    /// How a build of this request ended.
    pub(super) fn of(
        request: &BuildRequest,
        ready: &Ready<'_>,
        outcome: &BuildOutcome,
        contradictions: Vec<Contradiction>,
    ) -> Ended {
        let ended = Ended::plain(outcome, is_interrupted(ready, outcome)).unless_contradicted(contradictions);
        ended.unless_lacking_evidence(request.evidence, outcome).unless_lacking_toolchain(ready)
    }

    /// How a build that requires no evidence ended.
    pub fn plain(outcome: &BuildOutcome, interrupted: bool) -> Ended {
        match () {
            () if interrupted || outcome.interrupted => Ended::Interrupted,
            () if outcome.counts.failed > 0 => Ended::NotBuilt,
            () if failing(outcome).next().is_some() => Ended::Wrong,
            () => Ended::Done,
        }
    }

    /// The same, unless evidence contradicts other evidence.
    pub(crate) fn unless_contradicted(self, contradictions: Vec<Contradiction>) -> Ended {
        match self {
            Ended::Done | Ended::Wrong if !contradictions.is_empty() => Ended::Contradicted(contradictions),
            ended => ended,
        }
    }

    /// The same, unless evidence is required and missing.
    pub(crate) fn unless_lacking_evidence(self, policy: EvidencePolicy, outcome: &BuildOutcome) -> Ended {
        match self {
            Ended::Done if policy.required.is_some() => match lacking(outcome) {
                lacking if lacking.is_empty() => Ended::Done,
                lacking => Ended::NoEvidence(lacking),
            },
            ended => ended,
        }
    }

    fn unless_lacking_toolchain(self, ready: &Ready<'_>) -> Ended {
        match self {
            Ended::Done | Ended::Wrong | Ended::NoEvidence(_) if ready.lacks_toolchain() => Ended::NotBuilt,
            ended => ended,
        }
    }
}

/// Whether a build was interrupted, before or at its end.
pub(super) fn is_interrupted(ready: &Ready<'_>, outcome: &BuildOutcome) -> bool {
    ready.options.interrupted.load(Ordering::Relaxed) || outcome.interrupted
}

/// The steps with the verdict fail, their results, and their explanations. Steps that are only for comparison are left out.
pub fn failing(outcome: &BuildOutcome) -> impl Iterator<Item = (&Node, &StepResult, &str)> {
    outcome.graph.nodes().zip(&outcome.steps).filter(|(node, _)| !node.advisory).filter_map(|(node, done)| {
        let result = done.result.as_ref()?;
        match result.verdict.as_ref()? {
            Verdict::Fail(why) => Some((node, result, why.as_str())),
            _ => None,
        }
    })
}

/// Missing evidence of devices: steps without an observation, and judgements whose observation does not decide them.
fn lacking(outcome: &BuildOutcome) -> Vec<Lacking> {
    let on_device = |n: &Node| n.kind.observes_device() && n.resources.device.is_some();
    let targets: BTreeSet<_> = outcome.graph.nodes().filter(|n| on_device(n)).map(|n| &n.labels.target).collect();
    // A profile and a device's peaks decide no verdict, champion or attribution. Without them, only the bound of a kernel is unknown; without a baseline, only
    // how champions compare with it; without timed calls, only how long those of a kernel in PyTorch take; without pairs of champions of two kernels, only which
    // of the kernels leads.
    let adds = [StepKind::Profile, StepKind::Peaks, StepKind::Baseline, StepKind::Calls];
    let kernel_of = |n: &Node, side: &str| match n.inputs.get(side).map(|input| &input.source) {
        Some(Source::Output { node, .. }) => outcome.graph.find(node).map(|at| &outcome.graph.node(at).labels.kernel),
        _ => None,
    };
    let leads = |n: &Node| n.kind == StepKind::Pairs && kernel_of(n, "binary:a") != kernel_of(n, "binary:b");
    let decides = |n: &Node| on_device(n) && !adds.contains(&n.kind) && !leads(n);
    let is_called = |n: &Node| n.inputs.contains_key("called");
    // What a second device says of a speed-up decides nothing.
    let is_second = |n: &Node| n.kind == StepKind::Baseline && n.labels.confirms;
    // A step is skipped for the reason of the first step that gave no result, so steps that lack one thing have one reason.
    let reason = |root: &str| {
        let at = outcome.graph.nodes().position(|node| node.id == root)?;
        match &outcome.steps.get(at)?.outcome {
            Outcome::Unavailable(why) | Outcome::Failed(why) => Some(why.clone()),
            _ => None,
        }
    };
    let lacks = |node: &Node, done: &Done| match (&done.result, &done.outcome) {
        // A kernel that is not generated yet has no evidence at all.
        (None, Outcome::Unavailable(why)) if node.kind == StepKind::Generate => Some(why.clone()),
        // Of any kind: what another machine stored does not count, and this machine cannot compute it.
        (None, Outcome::Unavailable(why))
            if done.unanswered.as_ref().is_some_and(Unanswered::is_refused) && !is_second(node) =>
        {
            Some(why.clone())
        }
        (None, why) if decides(node) => Some(match why {
            Outcome::Unavailable(why) | Outcome::Failed(why) => why.clone(),
            Outcome::Skipped(root) => reason(root).unwrap_or_else(|| format!("skipped: {root}")),
            Outcome::Executed | Outcome::Fresh => "nothing was observed".into(),
        }),
        (Some(result), _)
            if node.kind == StepKind::Judge
                && !is_called(node)
                && !node.advisory
                && targets.contains(&node.labels.target) =>
        {
            match &result.verdict {
                // If nothing was observed, the step that should have observed is listed itself.
                Some(Verdict::Unknown(why)) if !matches!(why, Unknown::NoDevice(_)) => Some(why.to_string()),
                _ => None,
            }
        }
        _ => None,
    };
    let steps = outcome.graph.nodes().zip(&outcome.steps);
    let of = |(node, done): (&Node, &Done)| {
        let (id, unanswered) = (node.id.clone(), done.unanswered.clone());
        Some(Lacking { id, why: lacks(node, done)?, unanswered })
    };
    steps.filter_map(of).collect()
}
