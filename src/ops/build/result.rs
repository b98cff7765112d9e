//! The result of a build.

use std::path::PathBuf;

use super::unknown::UnknownCounts;
use super::{Ended, Untried};
use crate::Error;
use crate::rebuild::BuildInputs;
use crate::session::build::Ready;
use crate::session::certificate::{Answer, Held};
use crate::session::outdated::Outdated;
use kforge_engine::home::Home;
use kforge_engine::{Blobs, BuildOutcome};
use kforge_pipeline::plan::Goal;
use kforge_pipeline::release::affected::Affected;
use kforge_pipeline::release::evidence_list::Reused;
use kforge_pipeline::report::Report;
use kforge_types::model::Package;
use kforge_types::record::StepKind;
use kforge_types::record::event::{StepCounts, VerdictCounts};
use kforge_types::record::params::Selection;

/// The result of a build.
#[derive(Debug)]
pub enum Built {
    /// A certificate proved, without planning, that there was nothing to do.
    Unchanged(Box<Unchanged>),
    /// Only changes were to be built, and they touch nothing of the selection.
    Unaffected(Box<Affected>),
    /// The build was planned and executed.
    Finished(Box<Finished>),
}

/// A build that had nothing to do.
#[derive(Debug)]
pub struct Unchanged {
    /// The stored answer of the certified build.
    pub answer: Answer,
    /// The opened home.
    pub home: Home,
    /// The unchanged report, as JSON; none if the build's goal comes before selecting champions.
    pub report_file: Option<PathBuf>,
}

impl Unchanged {
    /// Releases the locks.
    pub(super) fn new(held: Held, goal: Goal) -> Self {
        let report_file = (goal == Goal::Build).then(|| held.target.join("report.json"));
        Unchanged { answer: held.answer, home: held.home, report_file }
    }
}

/// A build that was executed.
#[derive(Debug)]
pub struct Finished {
    /// How the build ended.
    pub ended: Ended,
    /// The report.
    pub report: Report,
    /// The results in brief as styled text, for people.
    pub text: String,
    /// The champions, in the order of the plan.
    pub champions: Vec<Champion>,
    /// The number of steps by outcome.
    pub steps: StepCounts,
    /// The number of steps by verdict.
    pub verdicts: VerdictCounts,
    /// What the unknown verdicts are about.
    pub unknown: UnknownCounts,
    /// The origins of reused evidence.
    pub reused: Vec<Reused>,
    /// Records that exist for another version of the code that was built.
    pub outdated: Vec<Outdated>,
    /// The steps that were not tried because of a failure.
    pub untried: Option<Untried>,
    /// The path of the page of timings, if it was requested.
    pub timings: Option<Result<PathBuf, Error>>,
    /// The packages as they were built, with the overlay applied.
    pub packages: Vec<Package>,
    /// What the build read of its workspace; none unless [`BuildRequest::goes_on`](super::BuildRequest::goes_on).
    pub inputs: Option<BuildInputs>,
}

/// The champion for a class of shapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Champion {
    /// The package.
    pub package: String,
    /// The kernel.
    pub kernel: String,
    /// The target.
    pub target: String,
    /// The class of shapes: `all`, a shape's name, or the value of the class expression; with `@` and a shape's name, the class of a shape that was split from
    /// it.
    pub class: String,
    /// The shapes of the class.
    pub shapes: Vec<String>,
    /// The variant.
    pub variant: String,
    /// Whether the champion was selected without measurements.
    pub provisional: bool,
}

/// The champions that a build selected.
pub fn champions(ready: &Ready<'_>, outcome: &BuildOutcome) -> Vec<Champion> {
    let mut out = vec![];
    for (node, done) in outcome.graph.nodes().zip(&outcome.steps).filter(|(n, _)| n.kind == StepKind::Select) {
        // A selection among kernels names champions that are known already.
        let Some(names) = ready.names(&node.id).filter(|names| names.kernels.is_empty()) else { continue };
        let digest = done.result.as_ref().and_then(|r| r.outputs.get("selection"));
        let bytes = digest.and_then(|d| ready.leaves.get(d).ok().flatten());
        let Some(selection) = bytes.and_then(|b| serde_json::from_slice::<Selection>(&b).ok()) else { continue };
        for champion in selection.champions {
            let Some(variant) = champion.variant.and_then(|v| names.variants.get(&v).cloned()) else { continue };
            out.push(Champion {
                package: node.labels.package.clone(),
                kernel: node.labels.kernel.clone().unwrap_or_default(),
                target: node.labels.target.clone().unwrap_or_default(),
                class: names.classes.get(&champion.class).cloned().unwrap_or(champion.class),
                shapes: champion.shapes.iter().filter_map(|at| names.shapes.get(*at as usize).cloned()).collect(),
                variant,
                provisional: champion.provisional,
            });
        }
    }
    out
}
