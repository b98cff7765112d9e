//! The results of a build for one kernel's rounds: the champion, the correct variants, what the next round tries. Knows ids and documents of steps; decides
//! nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::session::build::Ready;
use crate::session::places::Places;
use crate::session::rounds::Seat;
use kforge_engine::{Blobs, BuildOutcome};
use kforge_pipeline::optimize::next::RoundState;
use kforge_pipeline::plan::kernels::Selected;
use kforge_pipeline::plan::variants::PlannedVariant;
use kforge_types::model::{Operator, ShapeRole};
use kforge_types::record::params::{Judgement, Selection};
use kforge_types::record::profile::Roofline;
use kforge_types::record::round::Decision;
use kforge_types::record::{Outcome, StepKind, Unknown, Verdict};

/// The results of one build, for one seat.
pub(super) struct Results<'r, 'p> {
    ready: &'r Ready<'p>,
    places: Places<'r>,
    outcome: &'r BuildOutcome,
    seat: &'r Seat,
    /// The subject of the last selection; none if there was nothing to select from.
    pub(super) selected: Option<Arc<Selected>>,
}

/// The result of one variant.
#[derive(Debug, Clone, PartialEq)]
pub enum Became {
    /// Correct on every shape.
    Correct,
    /// Not known to be wrong, but not everything is known.
    Undecided,
    /// The compiler refused it: the compiler's message.
    Refused(String),
    /// Wrong on a shape that may be shown: the shape and the error.
    Wrong(String),
    /// Correct on every shown shape that it serves, but not on every shape: it does not serve one, or is wrong on a holdout shape.
    Hidden,
    /// Serves no shape that is shown.
    Idle,
}

impl<'r, 'p> Results<'r, 'p> {
    pub(super) fn new(ready: &'r Ready<'p>, outcome: &'r BuildOutcome, seat: &'r Seat) -> Self {
        let places = Places::new(&outcome.graph, &ready.journal, &*ready.leaves);
        let mut results = Results { ready, places, outcome, seat, selected: None };
        results.selected = ready.expander.selected(&results.select());
        results
    }

    /// The id of a step of the seat itself.
    fn id(&self, parts: &[&str], kind: StepKind) -> String {
        let seat = self.seat;
        let front = [seat.package.as_str(), &seat.kernel, &seat.types, &seat.target];
        joined(front.into_iter().chain(parts.iter().copied()).chain([kind.name()]))
    }

    /// The id of the step that selects the champions.
    fn select(&self) -> String {
        self.ready.expander.decisive(&self.id(&[], StepKind::Select))
    }

    /// The id of a step of a variant.
    fn of(&self, build: &PlannedVariant, parts: &[&str], kind: StepKind) -> String {
        let seat = self.seat;
        let front = [seat.package.as_str(), &seat.kernel, &build.label, &seat.target, &build.without];
        joined(front.into_iter().chain(parts.iter().copied()).chain([kind.name()]))
    }

    fn document<T: DeserializeOwned>(&self, id: &str, output: &str) -> Option<T> {
        let digest = self.outcome.step(id)?.result.as_ref()?.outputs.get(output).copied()?;
        serde_json::from_slice(&self.ready.leaves.get(&digest).ok()??).ok()
    }

    /// The champion of the last selection, for the first class of shapes that has one.
    pub(super) fn champion(&self) -> Option<&PlannedVariant> {
        let selection: Selection = self.document(&self.select(), "selection")?;
        let order = selection.champions.iter().find_map(|c| c.variant)?;
        self.selected.as_ref()?.builds.iter().find(|b| b.variant.order == order)
    }

    /// The decision of what a round tries.
    pub(super) fn decision(&self, round: u32) -> Option<Decision> {
        self.document(&self.id(&[&format!("r{round}")], StepKind::Round), "decision")
    }

    /// How far the champion is from the limits of the device.
    pub(super) fn roofline(&self, champion: &PlannedVariant) -> Option<Roofline> {
        self.document(&self.of(champion, &[], StepKind::Roofline), "roofline")
    }

    /// Why no times can be measured here; none if they can.
    pub(super) fn untimed(&self) -> Option<String> {
        self.outcome.graph.nodes().zip(&self.outcome.steps).find_map(|(node, done)| {
            let ours = node.labels.package == self.seat.package
                && node.labels.kernel.as_ref() == Some(&self.seat.kernel)
                && node.labels.target.as_ref() == Some(&self.seat.target);
            match &done.outcome {
                // A baseline needs more than a device: PyTorch, or a second device.
                Outcome::Unavailable(why) if ours && node.kind.observes_device() && node.kind != StepKind::Baseline => {
                    Some(why.clone())
                }
                _ => None,
            }
        })
    }

    /// The variants of a round, with their results.
    pub(super) fn of_round(&self, operator: &Operator, round: u32) -> Vec<(&PlannedVariant, Became)> {
        let builds = self.selected.iter().flat_map(|s| &s.builds);
        builds.filter(|b| b.round == round).map(|b| (b, self.became(operator, b))).collect()
    }

    /// The state of a round as a whole.
    pub(super) fn found(&self, operator: &Operator, round: u32) -> RoundState {
        let all = self.of_round(operator, round);
        match () {
            () if all.iter().any(|(_, became)| *became == Became::Correct) => RoundState::Correct,
            () if all.iter().any(|(_, became)| *became == Became::Undecided) => RoundState::Undecided,
            () => RoundState::Wrong,
        }
    }

    /// The result of a variant.
    pub(super) fn became(&self, operator: &Operator, build: &PlannedVariant) -> Became {
        if let Some(why) = self.refused(build) {
            return Became::Refused(why);
        }
        let Some(selected) = &self.selected else { return Became::Idle };
        // The result must not depend on which holdout shapes a variant serves. Otherwise an agent that states `requires` could find out what they are.
        let (mut shown, mut whole, mut unknown, mut wrong) = (0, true, false, None);
        let (mut passes, mut indecisive) = (false, false);
        for case in &selected.cases {
            let shape = &operator.shapes[case.at];
            let is_shown = shape.role != ShapeRole::Holdout;
            let id = self.of(build, &[&shape.name], StepKind::Judge);
            let Some(done) = self.outcome.step(&id) else {
                whole = false;
                continue;
            };
            shown += u32::from(is_shown);
            match done.result.as_ref().and_then(|r| r.verdict.as_ref()) {
                Some(Verdict::Pass) => passes = true,
                Some(Verdict::Unknown(Unknown::Indecisive(_))) => indecisive = true,
                Some(Verdict::Fail(_)) if !is_shown => whole = false,
                Some(Verdict::Fail(why)) => {
                    let told: Option<Judgement> = self.document(&id, "judgement");
                    let told = told.map(|j| j.explanation).filter(|text| !text.is_empty());
                    let told = self.places.text(&id, &told.unwrap_or_else(|| why.clone()));
                    wrong.get_or_insert_with(|| format!("shape `{}`: {told}", shape.name));
                }
                Some(Verdict::Unknown(_)) | None => unknown = true,
            }
        }
        // A shape that tells nothing counts for nothing beside one that does.
        unknown |= indecisive && !passes;
        match (wrong, shown, unknown, whole) {
            (Some(why), ..) => Became::Wrong(why),
            (None, 0, ..) => Became::Idle,
            (None, _, _, false) => Became::Hidden,
            (None, _, true, _) => Became::Undecided,
            (None, ..) => Became::Correct,
        }
    }

    /// The error of the step that refused to compile a variant or found its launches impossible.
    fn refused(&self, build: &PlannedVariant) -> Option<String> {
        let steps = [
            (&[][..], StepKind::Compile),
            (&["plain"][..], StepKind::Compile),
            (&[][..], StepKind::Inspect),
            (&["plain"][..], StepKind::Inspect),
        ];
        steps.into_iter().find_map(|(parts, kind)| {
            let done = self.outcome.step(&self.of(build, parts, kind))?;
            if let Outcome::Failed(why) = &done.outcome {
                return Some(why.clone());
            }
            let result = done.result.as_ref()?;
            let Some(Verdict::Fail(why)) = &result.verdict else { return None };
            let notes: Vec<&str> = result.notes.iter().map(|n| n.message.as_str()).collect();
            Some(if notes.is_empty() { why.clone() } else { format!("{why}\n{}", notes.join("\n")) })
        })
    }

    /// The median times in nanoseconds, by label, of the variants that were timed at the shape with index `at`.
    pub(super) fn times(&self, at: u32) -> BTreeMap<String, f64> {
        let Some(selected) = &self.selected else { return BTreeMap::new() };
        let id = self.select();
        let Some(select) = self.outcome.graph.nodes().find(|n| n.id == id) else {
            return BTreeMap::new();
        };
        let hot = select.params.get("hot").and_then(serde_json::Value::as_bool).unwrap_or(false);
        let mut out = BTreeMap::new();
        for build in &selected.builds {
            let Some(input) = select.inputs.get(&format!("bench:{}:{at}", build.variant.order)) else { continue };
            let kforge_engine::Source::Output { node, .. } = &input.source else { continue };
            let Some(seen) = self.document::<kforge_types::record::timing::BenchObserved>(node, "observation") else {
                continue;
            };
            let series = if hot { seen.hot } else { seen.cold };
            let samples = series.map(|s| s.samples_ns).unwrap_or_default();
            if !samples.is_empty() {
                out.insert(build.label.clone(), kforge_numerics::measure::stats::median(&samples));
            }
        }
        out
    }
}

fn joined<'p>(parts: impl Iterator<Item = &'p str>) -> String {
    parts.filter(|p| !p.is_empty()).collect::<Vec<_>>().join("/")
}
