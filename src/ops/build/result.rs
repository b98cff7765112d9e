//! What a build comes to.

use std::path::PathBuf;

use super::{Ended, Untried};
use crate::Error;
use crate::session::build::Ready;
use crate::session::certificate::{Answer, Held};
use crate::session::outdated::Outdated;
use kforge_engine::home::Home;
use kforge_engine::{Blobs, BuildOutcome};
use kforge_pipeline::plan::Goal;
use kforge_pipeline::release::evidence_list::Reused;
use kforge_pipeline::report::Report;
use kforge_types::model::Package;
use kforge_types::record::StepKind;
use kforge_types::record::event::{StepCounts, VerdictCounts};
use kforge_types::record::params::Selection;

/// What a build came to.
#[derive(Debug)]
pub enum Built {
    /// There was nothing to do, which a certificate said without planning.
    Unchanged(Box<Unchanged>),
    /// It was planned and done.
    Finished(Box<Finished>),
}

/// A build that had nothing to do.
#[derive(Debug)]
pub struct Unchanged {
    /// What is known of it.
    pub answer: Answer,
    /// The home, open.
    pub home: Home,
    /// The report that it found unchanged, as JSON; none of a build that stops before champions.
    pub report_file: Option<PathBuf>,
}

impl Unchanged {
    /// Lets the locks go.
    pub(super) fn new(held: Held, goal: Goal) -> Self {
        let report_file = (goal == Goal::Build).then(|| held.target.join("report.json"));
        Unchanged { answer: held.answer, home: held.home, report_file }
    }
}

/// A build that was done.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub ended: Ended,
    /// What was found.
    pub report: Report,
    /// The same for people, with styles.
    pub text: String,
    /// Who stands for what, in the order of the plan.
    pub champions: Vec<Champion>,
    /// How many steps ended how.
    pub steps: StepCounts,
    /// How many steps said what.
    pub verdicts: VerdictCounts,
    /// Where answers of devices came from.
    pub reused: Vec<Reused>,
    /// Where there are records of another version of what was built.
    pub outdated: Vec<Outdated>,
    /// Which steps a failure kept from being tried.
    pub untried: Option<Untried>,
    /// Where the page of timings is, if one was asked for.
    pub timings: Option<Result<PathBuf, Error>>,
    /// The packages as they were built, with an overlay laid over them.
    pub packages: Vec<Package>,
}

/// The variant that stands for a class of shapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Champion {
    /// The package.
    pub package: String,
    /// The kernel.
    pub kernel: String,
    /// The target.
    pub target: String,
    /// The class of shapes: `all`, a shape's name, or the value of the class expression.
    pub class: String,
    /// The variant.
    pub variant: String,
    /// Whether it stands for want of evidence rather than by it.
    pub provisional: bool,
}

/// The champions that a build selected.
pub fn champions(ready: &Ready<'_>, outcome: &BuildOutcome) -> Vec<Champion> {
    let mut out = vec![];
    for (node, done) in outcome.graph.nodes().zip(&outcome.steps).filter(|(n, _)| n.kind == StepKind::Select) {
        let Some(names) = ready.names(&node.id) else { continue };
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
                variant,
                provisional: champion.provisional,
            });
        }
    }
    out
}
