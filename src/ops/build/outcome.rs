//! How a build ended.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use super::BuildRequest;
use crate::session::build::Ready;
use kforge_engine::{BuildOutcome, Done, Node};
use kforge_types::record::{Outcome, StepKind, Unknown, Verdict};

/// How a build ended. Of several reasons the first of these counts: interrupted, not built, wrong, no evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// All that was asked for is done.
    Done,
    /// A step failed, or a toolchain could not be installed.
    NotBuilt,
    /// A kernel is wrong, or an operator cannot tell right from wrong.
    Wrong,
    /// Evidence was required, and is missing here.
    NoEvidence(Vec<Lacking>),
    /// It was interrupted.
    Interrupted,
}

/// A step that lacks evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lacking {
    /// The step.
    pub id: String,
    /// Why there is none, for people.
    pub why: String,
}

impl Ended {
    /// How a build of this request ended.
    pub(super) fn of(request: &BuildRequest, ready: &Ready<'_>, outcome: &BuildOutcome) -> Ended {
        match Ended::plain(outcome, is_interrupted(ready, outcome)) {
            Ended::Done if request.require_evidence => match lacking(outcome) {
                lacking if lacking.is_empty() => Ended::Done,
                lacking => Ended::NoEvidence(lacking),
            },
            ended => ended,
        }
        .unless_lacking_toolchain(ready)
    }

    /// How a build ended that requires no evidence.
    pub fn plain(outcome: &BuildOutcome, interrupted: bool) -> Ended {
        match () {
            () if interrupted || outcome.interrupted => Ended::Interrupted,
            () if outcome.counts.failed > 0 => Ended::NotBuilt,
            () if failing(outcome).next().is_some() => Ended::Wrong,
            () => Ended::Done,
        }
    }

    fn unless_lacking_toolchain(self, ready: &Ready<'_>) -> Ended {
        match self {
            Ended::Done | Ended::Wrong | Ended::NoEvidence(_) if ready.lacks_toolchain() => Ended::NotBuilt,
            ended => ended,
        }
    }
}

/// Whether a build was interrupted, before its end or at it.
pub(super) fn is_interrupted(ready: &Ready<'_>, outcome: &BuildOutcome) -> bool {
    ready.options.interrupted.load(Ordering::Relaxed) || outcome.interrupted
}

/// The steps that say what is wrong, and their words. What is made for comparison only is no wrong kernel.
pub fn failing(outcome: &BuildOutcome) -> impl Iterator<Item = (&Node, &str)> {
    outcome.graph.nodes().zip(&outcome.steps).filter(|(node, _)| !node.advisory).filter_map(|(node, done)| {
        match done.result.as_ref()?.verdict.as_ref()? {
            Verdict::Fail(why) => Some((node, why.as_str())),
            _ => None,
        }
    })
}

/// Where a device should have answered: the steps that have no observation, and the judgements that theirs does not decide.
fn lacking(outcome: &BuildOutcome) -> Vec<Lacking> {
    let on_device = |n: &Node| n.kind.observes_device() && n.resources.device.is_some();
    let targets: BTreeSet<_> = outcome.graph.nodes().filter(|n| on_device(n)).map(|n| &n.labels.target).collect();
    // A profile decides neither a verdict nor a champion nor what a method buys, and a device's peaks do not: without them it is only not known what bounds a kernel.
    let decides = |n: &Node| on_device(n) && !matches!(n.kind, StepKind::Profile | StepKind::Peaks);
    let lacks = |node: &Node, done: &Done| match (&done.result, &done.outcome) {
        // A kernel that nobody has written yet has no evidence of anything.
        (None, Outcome::Unavailable(why)) if node.kind == StepKind::Generate => Some(why.clone()),
        (None, why) if decides(node) => Some(match why {
            Outcome::Unavailable(why) | Outcome::Failed(why) => why.clone(),
            Outcome::Skipped(why) => format!("skipped: {why}"),
            Outcome::Executed | Outcome::Fresh => "nothing was observed".into(),
        }),
        (Some(result), _)
            if node.kind == StepKind::Judge && !node.advisory && targets.contains(&node.labels.target) =>
        {
            match &result.verdict {
                // Where nothing was observed, the step that should have is listed itself.
                Some(Verdict::Unknown(why)) if !matches!(why, Unknown::NoDevice(_)) => Some(why.to_string()),
                _ => None,
            }
        }
        _ => None,
    };
    let steps = outcome.graph.nodes().zip(&outcome.steps);
    steps.filter_map(|(node, done)| Some(Lacking { id: node.id.clone(), why: lacks(node, done)? })).collect()
}
