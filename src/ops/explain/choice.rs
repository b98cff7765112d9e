//! What a selection read about each variant: verdicts, times and pairs, by the names of the plan. Knows how select steps name their inputs; selects nothing.

use std::collections::HashMap;

use serde::de::DeserializeOwned;

use crate::session::build::Ready;
use kforge_engine::{Blobs, Done, Node, ReadyResult, Source};
use kforge_numerics::measure::orders::Comparison;
use kforge_numerics::measure::stats::{geometric_mean, median};
use kforge_pipeline::plan::kernels::{MARGIN, Selected};
use kforge_pipeline::plan::variants::PlannedVariant;
use kforge_pipeline::report::choice::{Choice, Compared, HeldBack, Rival, Time};
use kforge_pipeline::report::classes::{OvertakenReport, reason, stands_for};
use kforge_types::record::params::{Champion, Judgement, Overtaken, Selection};
use kforge_types::record::timing::{BenchObserved, PairsObserved};
use kforge_types::record::{StepKind, Unknown, Verdict};

/// The results that a selection read.
struct Inputs<'a, 'p> {
    ready: &'a Ready<'p>,
    node: &'a Node,
    done: &'a HashMap<&'a str, &'a Done>,
    hot: bool,
    /// Names of shapes by position.
    shapes: Vec<String>,
}

/// The choices of a select step, if it is one that decides and its result is known.
pub(super) fn choices(ready: &Ready<'_>, known: &ReadyResult, id: &str) -> Option<Vec<Choice>> {
    let selected = ready.expander.selected(id).filter(|selected| selected.stage.is_last)?;
    let (node, done) = known.steps.iter().find(|(node, _)| node.id == id && node.kind == StepKind::Select)?;
    let by_id: HashMap<&str, &Done> =
        known.steps.iter().filter_map(|(node, done)| Some((node.id.as_str(), done.as_ref()?))).collect();
    let about = ready.expander.about(&selected)?;
    let inputs = Inputs {
        ready,
        node,
        done: &by_id,
        hot: about.hot,
        shapes: about.shapes.iter().map(|(name, _)| name.clone()).collect(),
    };
    let selection: Selection = inputs.read(done.as_ref(), "selection")?;
    let of = |champion: &Champion| inputs.choice(&selected, about.per.as_deref(), champion, &selection.overtaken);
    Some(selection.champions.iter().map(of).collect())
}

impl Inputs<'_, '_> {
    fn read<T: DeserializeOwned>(&self, done: Option<&Done>, output: &str) -> Option<T> {
        let digest = done?.result.as_ref()?.outputs.get(output).copied()?;
        serde_json::from_slice(&self.ready.leaves.get(&digest).ok()??).ok()
    }

    /// The document of an input.
    fn input<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        match &self.node.inputs.get(name)?.source {
            Source::Output { node, name, .. } => self.read(self.done.get(node.as_str()).copied(), name),
            Source::Blob(_) => None,
        }
    }

    fn overtaken(&self, found: &Overtaken, named: &dyn Fn(u32) -> String) -> OvertakenReport {
        OvertakenReport::of(found, self.shape(found.shape), named(found.by))
    }

    fn choice(&self, selected: &Selected, per: Option<&str>, champion: &Champion, overtaken: &[Overtaken]) -> Choice {
        let class = selected.class_name(&champion.class);
        let shapes = &champion.shapes;
        let label = |order: u32| selected.builds.iter().find(|b| b.variant.order == order).map(|b| b.label.clone());
        let named = |order: u32| label(order).unwrap_or_default();
        let rivals = selected.builds.iter().filter(|b| Some(b.variant.order) != champion.variant);
        let time = champion.variant.and_then(|order| {
            let times = shapes.iter().filter_map(|at| Some((*at, self.time(order, *at)?)));
            times.max_by(|a, b| a.1.total_cmp(&b.1))
        });
        Choice {
            stands_for: stands_for(per, &class),
            class,
            champion: champion.variant.and_then(label),
            provisional: champion.provisional,
            because: reason(champion, &named, &|at| self.shape(at), &|class| selected.class_name(class)),
            overtaken: overtaken
                .iter()
                .filter(|o| shapes.contains(&o.shape))
                .map(|o| self.overtaken(o, &named))
                .collect(),
            time: time.map(|(at, ns)| Time { shape: self.shape(at), ns }),
            rivals: rivals.map(|build| self.rival(build, champion.variant, shapes)).collect(),
        }
    }

    fn shape(&self, at: u32) -> String {
        self.shapes.get(at as usize).cloned().unwrap_or_default()
    }

    /// The judgement that counts: the emulator's only if the target has none.
    fn verdict(&self, order: u32, at: u32) -> Option<Verdict> {
        let of = |kind: &str| self.input::<Judgement>(&format!("{kind}:{order}:{at}")).map(|found| found.verdict);
        match of("judgement") {
            Some(verdict @ (Verdict::Pass | Verdict::Fail(_))) => Some(verdict),
            unknown => of("emulated").or(unknown),
        }
    }

    fn time(&self, order: u32, at: u32) -> Option<f64> {
        let of = |kind: &str| -> Option<f64> {
            let seen: BenchObserved = self.input(&format!("{kind}:{order}:{at}"))?;
            let samples = if self.hot { seen.hot } else { seen.cold }?.samples_ns;
            (!samples.is_empty()).then(|| median(&samples))
        };
        of("bench").or_else(|| of("few"))
    }

    fn rival(&self, build: &PlannedVariant, champion: Option<u32>, shapes: &[u32]) -> Rival {
        let order = build.variant.order;
        let serves = shapes.iter().all(|at| self.node.inputs.contains_key(&format!("judgement:{order}:{at}")));
        let passes = shapes.iter().any(|at| self.verdict(order, *at) == Some(Verdict::Pass));
        let held_back = shapes.iter().find_map(|at| match self.verdict(order, *at) {
            Some(Verdict::Pass) => None,
            // The shape tells nothing, and others do.
            Some(Verdict::Unknown(Unknown::Indecisive(_))) if passes => None,
            verdict => Some(HeldBack { shape: self.shape(*at), verdict }),
        });
        let both = |at: &u32| Some((self.time(order, *at)? / self.time(champion?, *at)?).max(f64::MIN_POSITIVE));
        let ratios: Vec<f64> = shapes.iter().filter_map(both).collect();
        Rival {
            variant: build.label.clone(),
            held_back,
            serves,
            slower_by: (!ratios.is_empty()).then(|| geometric_mean(&ratios) - 1.0),
            pairs: shapes.iter().filter_map(|at| self.pairs(order, champion?, *at)).collect(),
        }
    }

    /// The pairs of a rival and the champion at a shape, in whichever order they were taken.
    fn pairs(&self, rival: u32, champion: u32, at: u32) -> Option<Compared> {
        let pairs = |a: u32, b: u32| self.input::<PairsObserved>(&format!("pairs:{a}:{b}:{at}"));
        let seen = pairs(rival, champion).or_else(|| pairs(champion, rival).map(PairsObserved::turned))?;
        let found = Comparison::of(&[&seen])?;
        let (estimate, low, high) = found.interval;
        Some(Compared {
            shape: self.shape(at),
            slower_by: estimate.exp_m1(),
            interval: (low.exp_m1(), high.exp_m1()),
            orders_disagree: found.contested(MARGIN).map(|o| (o.a_first.0.exp_m1(), o.b_first.0.exp_m1())),
        })
    }
}
