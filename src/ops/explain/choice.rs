//! What a selection read about each variant: verdicts, times and pairs, by the names of the plan. Knows how select steps name their inputs; selects nothing.

use std::collections::HashMap;

use serde::de::DeserializeOwned;

use crate::session::build::Ready;
use crate::session::places::Places;
use kforge_engine::{Blobs, Done, Node, ReadyResult, Source};
use kforge_numerics::measure::orders::Comparison;
use kforge_numerics::measure::stats::{geometric_mean, median};
use kforge_pipeline::plan::kernels::{MARGIN, Selected};
use kforge_pipeline::plan::variants::PlannedVariant;
use kforge_pipeline::report::choice::{Choice, Chosen, Compared, HeldBack, Rival, Time};
use kforge_pipeline::report::classes::{OvertakenReport, reason, stands_for};
use kforge_types::record::params::{Champion, Judgement, Overtaken, Selection};
use kforge_types::record::timing::{BenchObserved, PairsObserved};
use kforge_types::record::{StepKind, Unknown, Verdict};

/// The results that a selection read.
struct Inputs<'a, 'p> {
    ready: &'a Ready<'p>,
    /// The steps by id.
    nodes: &'a HashMap<&'a str, &'a Node>,
    node: &'a Node,
    done: &'a HashMap<&'a str, &'a Done>,
    /// The steps that compare two variants in pairs.
    pairs: Vec<(&'a Node, Option<&'a Done>)>,
    hot: bool,
    /// Names of shapes by position.
    shapes: Vec<String>,
    places: Places<'a>,
}

/// The choices of a select step, if it is one that decides and its result is known.
pub(super) fn choices(ready: &Ready<'_>, known: &ReadyResult, id: &str) -> Option<Vec<Choice>> {
    let selected = ready.expander.selected(id).filter(|selected| selected.stage.is_last)?;
    let (node, done) = known.steps.iter().find(|(node, _)| node.id == id && node.kind == StepKind::Select)?;
    let by_id: HashMap<&str, &Done> =
        known.steps.iter().filter_map(|(node, done)| Some((node.id.as_str(), done.as_ref()?))).collect();
    let about = ready.expander.about(&selected)?;
    let nodes: Vec<&Node> = known.steps.iter().map(|(node, _)| node).collect();
    let by_name: HashMap<&str, &Node> = nodes.iter().map(|node| (node.id.as_str(), *node)).collect();
    let inputs = Inputs {
        ready,
        nodes: &by_name,
        node,
        done: &by_id,
        pairs: (known.steps.iter().map(|(node, done)| (node, done.as_ref())))
            .filter(|(node, _)| node.kind == StepKind::Pairs)
            .collect(),
        hot: about.hot,
        shapes: about.shapes.iter().map(|(name, _)| name.clone()).collect(),
        places: Places::of_steps(&nodes, &ready.journal, &*ready.leaves),
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
            chosen: Chosen {
                stands_for: stands_for(per, &class),
                class,
                champion: champion.variant.and_then(label),
                provisional: champion.provisional,
                because: reason(champion, &named, &|at| self.shape(at), &|class| selected.class_name(class)),
            },
            overtaken: overtaken
                .iter()
                .filter(|o| shapes.contains(&o.shape))
                .map(|o| self.overtaken(o, &named))
                .collect(),
            time: time.map(|(at, ns)| Time { shape: self.shape(at), ns }),
            rivals: rivals
                .map(|build| {
                    let ties = champion.ties.contains(&build.variant.order);
                    let of_champion = champion.variant.map(|order| (order, named(order)));
                    Rival { ties, ..self.rival(build, of_champion, shapes) }
                })
                .collect(),
        }
    }

    fn shape(&self, at: u32) -> String {
        self.shapes.get(at as usize).cloned().unwrap_or_default()
    }

    /// The judgement that counts, and whether it is the emulator's, which counts only if the target has none.
    fn judgement(&self, order: u32, at: u32) -> Option<(Judgement, bool)> {
        let of = |kind: &str| {
            let name = format!("{kind}:{order}:{at}");
            let mut found = self.input::<Judgement>(&name)?;
            if let Source::Output { node, .. } = &self.node.inputs.get(&name)?.source {
                found.verdict = self.places.verdict(node, found.verdict);
            }
            Some(found)
        };
        match of("judgement") {
            Some(decided) if matches!(decided.verdict, Verdict::Pass | Verdict::Fail(_)) => Some((decided, false)),
            unknown => of("emulated").map(|found| (found, true)).or(unknown.map(|found| (found, false))),
        }
    }

    fn verdict(&self, order: u32, at: u32) -> Option<Verdict> {
        self.judgement(order, at).map(|(found, _)| found.verdict)
    }

    fn time(&self, order: u32, at: u32) -> Option<f64> {
        let of = |kind: &str| -> Option<f64> {
            let seen: BenchObserved = self.input(&format!("{kind}:{order}:{at}"))?;
            let samples = if self.hot { seen.hot } else { seen.cold }?.samples_ns;
            (!samples.is_empty()).then(|| median(&samples))
        };
        of("bench").or_else(|| of("few"))
    }

    fn rival(&self, build: &PlannedVariant, champion: Option<(u32, String)>, shapes: &[u32]) -> Rival {
        let order = build.variant.order;
        let serves = shapes.iter().all(|at| self.node.inputs.contains_key(&format!("judgement:{order}:{at}")));
        let passes = shapes.iter().any(|at| self.verdict(order, *at) == Some(Verdict::Pass));
        let held_back = shapes.iter().find_map(|at| match self.verdict(order, *at) {
            Some(Verdict::Pass) => None,
            // The shape tells nothing, and others do.
            Some(Verdict::Unknown(Unknown::Indecisive(_))) if passes => None,
            verdict => {
                let (finding, on_cpu) =
                    self.judgement(order, *at).map_or((None, false), |(found, on_cpu)| (found.finding, on_cpu));
                Some(HeldBack { shape: self.shape(*at), verdict, finding, on_cpu })
            }
        });
        let both =
            |at: &u32| Some((self.time(order, *at)? / self.time(champion.as_ref()?.0, *at)?).max(f64::MIN_POSITIVE));
        let ratios: Vec<f64> = shapes.iter().filter_map(both).collect();
        Rival {
            variant: build.label.clone(),
            held_back,
            serves,
            ties: false,
            slower_by: (!ratios.is_empty()).then(|| geometric_mean(&ratios) - 1.0),
            pairs: shapes
                .iter()
                .filter_map(|at| {
                    let (champion, named) = champion.as_ref()?;
                    self.pairs((order, &build.label), (*champion, named), *at)
                })
                .collect(),
        }
    }

    /// The pairs of a rival and the champion at a shape, in whichever order they were taken: those that the selection read, or those that another step asked
    /// for, such as an attribution. Two variants have one comparison, so they are shown also where the selection did not read them.
    fn pairs(&self, rival: (u32, &str), champion: (u32, &str), at: u32) -> Option<Compared> {
        let pairs = |a: u32, b: u32| self.input::<PairsObserved>(&format!("pairs:{a}:{b}:{at}"));
        let read = pairs(rival.0, champion.0).or_else(|| pairs(champion.0, rival.0).map(PairsObserved::turned));
        let is_read = read.is_some();
        let seen = read.or_else(|| self.taken(rival.1, champion.1, at))?;
        let found = Comparison::of(&[&seen])?;
        let (estimate, low, high) = found.interval;
        Some(Compared {
            shape: self.shape(at),
            slower_by: estimate.exp_m1(),
            interval: (low.exp_m1(), high.exp_m1()),
            read: is_read,
            orders_disagree: found.contested(MARGIN).map(|o| (o.a_first.0.exp_m1(), o.b_first.0.exp_m1())),
        })
    }

    /// The pairs of two variants at a shape, as any step of the plan took them.
    fn taken(&self, rival: &str, champion: &str, at: u32) -> Option<PairsObserved> {
        let (mine, shape) = (&self.node.labels, self.shape(at));
        let of_kernel = |node: &Node| {
            let labels = &node.labels;
            (&labels.package, &labels.kernel, &labels.target) == (&mine.package, &mine.kernel, &mine.target)
                && labels.shape.as_ref() == Some(&shape)
        };
        let variant = |node: &Node, side: &str| {
            let Source::Output { node, .. } = &node.inputs.get(side)?.source else { return None };
            let labels = &self.nodes.get(node.as_str())?.labels;
            // Pairs may be with a variant of another kernel, which may have the same label.
            labels.variant.clone().filter(|_| labels.method.is_none() && labels.kernel == mine.kernel)
        };
        self.pairs.iter().filter(|(node, _)| of_kernel(node)).find_map(|(node, done)| {
            let (a, b) = (variant(node, "binary:a")?, variant(node, "binary:b")?);
            let seen = || self.read::<PairsObserved>(*done, "observation");
            match (a == rival && b == champion, a == champion && b == rival) {
                (true, _) => seen(),
                (_, true) => seen().map(PairsObserved::turned),
                _ => None,
            }
        })
    }
}
