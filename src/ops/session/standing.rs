//! The champion of each class of shapes according to known results, the evidence for it, and the origin of its source. Knows how select steps name their
//! inputs; runs nothing.

use std::collections::HashMap;

use serde::de::DeserializeOwned;

use super::build::Ready;
use super::rounds::Seat;
use kforge_engine::{Blobs, Done, Node, ReadyResult, Source};
use kforge_numerics::measure::stats::median;
use kforge_pipeline::plan::variants::{PlannedVariant, confirmation_of};
use kforge_pipeline::report::classes::stands_for;
use kforge_types::record::params::{Judgement, Selection};
use kforge_types::record::timing::BenchObserved;
use kforge_types::record::{StepKind, Unknown, Verdict};

/// The champion of a class of shapes.
#[derive(Clone)]
pub struct Stands {
    /// The kernel, target and types.
    pub seat: Seat,
    /// The class, for people.
    pub class: String,
    /// The shapes of the class, in words: empty for all shapes, else ` for SHAPE`, ` at SHAPE` or ` for r = 2`.
    pub stands_for: String,
    /// The variant.
    pub build: PlannedVariant,
    /// Whether the champion was selected without measurements.
    pub provisional: bool,
    /// The number of shapes at which it is verified, or why it is not.
    pub verified: Result<usize, NotVerified>,
    /// Where it was verified: `the emulator`, or device classes.
    pub on: Vec<String>,
    /// Its longest median time in nanoseconds, and the shape; none if it was not timed.
    pub time: Option<(String, f64)>,
}

/// Why a champion is not verified.
#[derive(Debug, Clone, thiserror::Error)]
#[error("shape `{shape}`{}", .verdict.as_ref().map_or_else(|| " has no verdict".into(), |verdict| format!(": {verdict}")))]
pub struct NotVerified {
    /// A shape at which it does not pass.
    pub shape: String,
    /// Its verdict there, if there is one.
    pub verdict: Option<Verdict>,
}

/// A class that has no champion.
#[derive(Debug, Clone, thiserror::Error)]
#[error("there is no champion{stands_for}: {because}")]
pub struct Vacant {
    /// The kernel, target and types.
    pub seat: Seat,
    /// The shapes of the class, as in [`Stands::stands_for`].
    pub stands_for: String,
    /// The reason, for people.
    pub because: String,
}

impl Ready<'_> {
    /// The champions of the classes of every seat that results decide, in the order of the plan. A class without a champion is returned as an error with its
    /// seat.
    pub fn standing(&self, known: &ReadyResult) -> Vec<Result<Stands, Vacant>> {
        let by_id: HashMap<&str, &Done> =
            known.steps.iter().filter_map(|(node, done)| Some((node.id.as_str(), done.as_ref()?))).collect();
        let nodes: HashMap<&str, &Node> = known.steps.iter().map(|(node, _)| (node.id.as_str(), node)).collect();
        let all = Steps { ready: self, done: by_id, nodes };
        let mut out = vec![];
        for (node, done) in known.steps.iter().filter(|(node, _)| node.kind == StepKind::Select) {
            let Some(selected) = self.expander.selected(&node.id).filter(|s| s.stage.is_last) else { continue };
            let Some(selection) = all.output::<Selection>(done.as_ref(), "selection") else { continue };
            let seat = Seat {
                package: node.labels.package.clone(),
                kernel: selected.kernel.clone(),
                types: selected.choice.label.clone(),
                target: selected.target.clone(),
            };
            let about = self.expander.about(&selected);
            let per = about.as_ref().and_then(|about| about.per.clone());
            let shapes: Vec<String> = about.into_iter().flat_map(|about| about.shapes).map(|(name, _)| name).collect();
            for champion in selection.champions {
                let class = selected.class_name(&champion.class);
                let stands_for = stands_for(per.as_deref(), &class);
                let build = selected.builds.iter().find(|b| Some(b.variant.order) == champion.variant);
                let Some(build) = build else {
                    out.push(Err(Vacant { seat: seat.clone(), stands_for, because: champion.because }));
                    continue;
                };
                let of_class = champion.shapes.iter().filter_map(|at| Some((*at as usize, shapes.get(*at as usize)?)));
                let of_class: Vec<(usize, &String)> = of_class.collect();
                let (verified, on) = all.verified(node, build, &of_class);
                out.push(Ok(Stands {
                    seat: seat.clone(),
                    class,
                    stands_for,
                    build: build.clone(),
                    provisional: champion.provisional,
                    verified,
                    on,
                    time: all.time(node, build, &of_class),
                }));
            }
        }
        out
    }
}

struct Steps<'a, 'p> {
    ready: &'a Ready<'p>,
    done: HashMap<&'a str, &'a Done>,
    nodes: HashMap<&'a str, &'a Node>,
}

impl<'a> Steps<'a, '_> {
    fn output<T: DeserializeOwned>(&self, done: Option<&Done>, output: &str) -> Option<T> {
        let digest = done?.result.as_ref()?.outputs.get(output).copied()?;
        serde_json::from_slice(&self.ready.leaves.get(&digest).ok()??).ok()
    }

    /// The step whose output is this input of a node.
    fn from<'n>(node: &'n Node, input: &str) -> Option<&'n str> {
        match &node.inputs.get(input)?.source {
            Source::Output { node, .. } => Some(node),
            Source::Blob(_) => None,
        }
    }

    /// The number of shapes at which a champion passes, or where it does not, and the places of its verifications. Shapes whose results tell nothing do not count. A champion whose confirmation fails does not
    /// pass; without a confirmation it is as correct as it was when it was selected.
    fn verified(
        &self,
        select: &Node,
        build: &PlannedVariant,
        shapes: &[(usize, &String)],
    ) -> (Result<usize, NotVerified>, Vec<String>) {
        let (mut on, mut undecided): (Vec<String>, usize) = (vec![], 0);
        for (at, shape) in shapes {
            let judge = Self::from(select, &format!("judgement:{}:{at}", build.variant.order));
            let done = judge.and_then(|id| self.done.get(id).copied());
            let Some(found) = self.output::<Judgement>(done, "judgement") else {
                return (Err(NotVerified { shape: shape.to_string(), verdict: None }), on);
            };
            // A champion passes at other shapes of its class.
            if matches!(found.verdict, Verdict::Unknown(Unknown::Indecisive(_))) {
                undecided += 1;
                continue;
            }
            if found.verdict != Verdict::Pass {
                return (Err(NotVerified { shape: shape.to_string(), verdict: Some(found.verdict) }), on);
            }
            let confirmation = judge.and_then(confirmation_of).and_then(|id| self.done.get(id.as_str()).copied());
            if let Some(Judgement { verdict: verdict @ Verdict::Fail(_), .. }) = self.output(confirmation, "judgement")
            {
                return (Err(NotVerified { shape: shape.to_string(), verdict: Some(verdict) }), on);
            }
            let verify = judge.and_then(|id| self.nodes.get(id)).and_then(|node| Self::from(node, "observation"));
            let seen = verify.and_then(|id| self.done.get(id)).and_then(|done| done.evidence.as_ref());
            let place = match seen {
                Some(seen) if !found.emulated => seen.device_class.clone(),
                _ => "the emulator".into(),
            };
            if !on.contains(&place) {
                on.push(place);
            }
        }
        (Ok(shapes.len() - undecided), on)
    }

    fn time(&self, select: &Node, build: &PlannedVariant, shapes: &[(usize, &String)]) -> Option<(String, f64)> {
        let hot = select.params.get("hot").and_then(serde_json::Value::as_bool).unwrap_or(false);
        let of = |(at, shape): &(usize, &String)| {
            let bench = Self::from(select, &format!("bench:{}:{at}", build.variant.order))?;
            let seen: BenchObserved = self.output(self.done.get(bench).copied(), "observation")?;
            let samples = if hot { seen.hot } else { seen.cold }?.samples_ns;
            (!samples.is_empty()).then(|| ((*shape).clone(), median(&samples)))
        };
        shapes.iter().filter_map(of).max_by(|a, b| a.1.total_cmp(&b.1))
    }
}
