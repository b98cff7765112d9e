//! One side of a difference: what a plan and the stores know of a variant. Knows how steps name their outputs; compares nothing.

use std::collections::{BTreeMap, HashMap};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Seat;
use crate::Error;
use crate::session::build::Ready;
use crate::session::places::Places;
use crate::session::{Opened, Session};
use kforge_engine::lock::{Mode, Wait};
use kforge_engine::{Blobs, BuildOutcome, Done, Graph, Node, Questions, ReadyResult, Source};
use kforge_numerics::measure::orders::Comparison;
use kforge_pipeline::plan::kernels::MARGIN;
use kforge_pipeline::plan::regression;
use kforge_pipeline::report::assemble::timed;
use kforge_pipeline::report::difference::{
    DiffSeat, Missing, PairsAt, PairsFound, RatioReport, SelectedHow, SideFound,
};
use kforge_types::model::Launch;
use kforge_types::record::event::Event;
use kforge_types::record::params::{GenerateParams, InspectParams, Judgement, VerifyParams};
use kforge_types::record::timing::{BenchObserved, PairsObserved};
use kforge_types::record::{Inspection, Outcome, Spec, StepKind, Verdict};

/// Why there is nothing to disassemble.
pub(crate) const NO_CODE: &str = "the kernel has no machine code of its own";

/// Fields of a compilation that change no machine code, or that say only in which round a variant was tried.
const UNTOLD: [&str; 3] = ["candidate", "lined", "ptx"];

/// Files by path, with their contents as far as they are stored.
pub(crate) type Files = BTreeMap<String, Option<Vec<u8>>>;

/// A plan with what is known of it.
pub(crate) struct Plan<'a, 'p> {
    session: &'a Session,
    opened: &'a Opened,
    ready: &'a Ready<'p>,
    pub(crate) known: ReadyResult,
    asked: Questions,
    /// Positions in `known`, by id.
    at: HashMap<String, usize>,
}

/// One side.
#[derive(Clone)]
pub(super) struct Side {
    pub(super) found: SideFound,
    /// The steps that time it, by shape.
    benches: BTreeMap<String, (Node, Spec)>,
}

/// What the disassembler gave.
pub(crate) enum Disassembled {
    /// The output.
    Output(Vec<u8>),
    /// Nothing, for this reason.
    Missing(String),
}

/// How a variant was selected for several classes, as far as it is the same for all of them.
fn how_of_all(mut all: impl Iterator<Item = SelectedHow>) -> SelectedHow {
    let Some(first) = all.next() else { return SelectedHow::default() };
    all.fold(first, |a, b| SelectedHow {
        provisional: a.provisional && b.provisional,
        last_build: a.last_build && b.last_build,
        of_correct: a.of_correct && b.of_correct,
    })
}

impl<'a, 'p> Plan<'a, 'p> {
    pub(crate) fn of(session: &'a Session, opened: &'a Opened, ready: &'a Ready<'p>) -> Self {
        let (known, asked) = ready.with_services(session, opened, |services| {
            kforge_engine::known_and_asked(ready.graph.clone(), &ready.options, services)
        });
        let at = known.steps.iter().enumerate().map(|(at, (node, _))| (node.id.clone(), at)).collect();
        Plan { session, opened, ready, known, asked, at }
    }

    fn step(&self, id: &str) -> Option<(&Node, Option<&Done>)> {
        let (node, done) = self.known.steps.get(*self.at.get(id)?)?;
        Some((node, done.as_ref()))
    }

    fn document<T: DeserializeOwned>(&self, done: Option<&Done>, output: &str) -> Option<T> {
        let digest = done?.result.as_ref()?.outputs.get(output).copied()?;
        serde_json::from_slice(&self.ready.leaves.get(&digest).ok()??).ok()
    }

    /// The steps of a variant, in the order of the plan.
    fn steps_of<'s>(
        &'s self,
        seat: &'s DiffSeat,
        label: &'s str,
    ) -> impl Iterator<Item = (&'s Node, Option<&'s Done>)> {
        self.all_steps_of(seat, label).filter(|(node, _)| !node.labels.confirms)
    }

    /// The judgements that confirm a variant as champion.
    fn confirmations<'s>(
        &'s self,
        seat: &'s DiffSeat,
        label: &'s str,
    ) -> impl Iterator<Item = (&'s Node, Option<&'s Done>)> {
        let confirms = |node: &Node| node.labels.confirms && node.kind == StepKind::Judge;
        self.all_steps_of(seat, label).filter(move |(node, _)| confirms(node))
    }

    fn all_steps_of<'s>(
        &'s self,
        seat: &'s DiffSeat,
        label: &'s str,
    ) -> impl Iterator<Item = (&'s Node, Option<&'s Done>)> {
        let mine = move |node: &Node| {
            let labels = &node.labels;
            labels.package == seat.package
                && labels.kernel.as_ref() == Some(&seat.kernel)
                && labels.target.as_ref() == Some(&seat.target)
                && labels.variant.as_deref() == Some(label)
                && labels.method.is_none()
        };
        self.known.steps.iter().filter(move |(node, _)| mine(node)).map(|(node, done)| (node, done.as_ref()))
    }

    /// The first step of a variant that failed without a result in the last build, and why. Such a failure is no result that is kept, so only the report of
    /// that build knows of it.
    fn failed(&self, seat: &DiffSeat, label: &str) -> Option<(String, String)> {
        let report = crate::build::report::stored(self.opened)?;
        let targets = report.packages.iter().flat_map(|package| &package.kernels).flat_map(|kernel| &kernel.targets);
        let failed: HashMap<&str, &str> =
            targets.flat_map(|target| &target.failed).map(|(id, why)| (id.as_str(), why.as_str())).collect();
        let is_open = |done: Option<&Done>| done.is_none_or(|done| done.result.is_none());
        self.steps_of(seat, label)
            .filter(|(_, done)| is_open(*done))
            .find_map(|(node, _)| Some((node.id.clone(), (*failed.get(node.id.as_str())?).to_string())))
    }

    /// What is known of a variant of the plan.
    pub(super) fn side(&self, seat: &Seat, label: &str, state: &str) -> Side {
        let of = &seat.seat;
        let mut found = SideFound {
            state: state.into(),
            variant: label.into(),
            champion_of: seat.champions_of(label).map(|of| of.class.clone()).collect(),
            selected: how_of_all(seat.champions_of(label).map(|of| of.how)),
            ..SideFound::default()
        };
        let compile = self.steps_of(of, label).find(|(node, _)| node.kind == StepKind::Compile);
        if let Some((compile, _)) = compile {
            found.files = self.files(compile);
            flatten("", &compile.params, &mut found.settings);
        }
        let nodes: Vec<&Node> = self.known.steps.iter().map(|(node, _)| node).collect();
        let places = Places::of_steps(&nodes, &self.ready.journal, &*self.ready.leaves);
        for (node, done) in self.steps_of(of, label) {
            let Some(shape) = &node.labels.shape else { continue };
            match node.kind {
                StepKind::Verify => {
                    found.launches.entry(shape.clone()).or_insert_with(|| launches(node));
                }
                StepKind::Judge => {
                    let Some(mut judged) = self.document::<Judgement>(done, "judgement") else { continue };
                    judged.verdict = places.verdict(&node.id, judged.verdict);
                    found.judged(shape, judged);
                }
                StepKind::Bench => {
                    let Some(seen) = self.document::<BenchObserved>(done, "observation") else { continue };
                    let time = timed(shape, label, &seen, done.and_then(|done| done.evidence.as_ref()));
                    // A full timing replaces one with few samples.
                    match found.times.get(shape) {
                        Some(known) if !known.few => {}
                        _ => drop(found.times.insert(shape.clone(), time)),
                    }
                }
                _ => {}
            }
        }
        for (node, done) in self.confirmations(of, label) {
            let judged = self.document::<Judgement>(done, "judgement");
            // A confirmation can only take a pass back.
            let judged = judged.filter(|judged| matches!(judged.verdict, Verdict::Fail(_)));
            if let (Some(shape), Some(mut judged)) = (&node.labels.shape, judged) {
                judged.verdict = places.verdict(&node.id, judged.verdict);
                found.judged(shape, judged);
            }
        }
        found.verdicts.retain(|shape, _| of.shapes.contains(shape));
        found.failed = self.failed(of, label);
        self.machine_code(seat, label, &mut found);
        if seat.on_device && found.times.is_empty() {
            found.missing.push(Missing { what: "times".into(), why: self.untimed(of, label) });
        }
        let mut benches = BTreeMap::new();
        for question in self.asked.asked.iter().filter(|question| question.node.kind == StepKind::Bench) {
            let labels = &question.node.labels;
            let mine = self.at.contains_key(&question.node.id)
                && self.steps_of(of, label).any(|(node, _)| node.id == question.node.id);
            if let (true, Some(shape), Some(spec)) = (mine, &labels.shape, &question.spec) {
                benches.entry(shape.clone()).or_insert_with(|| (question.node.clone(), spec.clone()));
            }
        }
        Side { found, benches }
    }

    /// The file that is compiled for a variant, and all files that its compilation can reach. None if the plan does not have them.
    pub(crate) fn sources(&self, seat: &DiffSeat, label: &str) -> Option<(String, Files)> {
        let (compile, _) = self.steps_of(seat, label).find(|(node, _)| node.kind == StepKind::Compile)?;
        let Source::Output { node, .. } = &compile.inputs.get("tree:source")?.source else { return None };
        let params: GenerateParams = serde_json::from_value(self.step(node)?.0.params.clone()).ok()?;
        Some((params.main, self.files(compile))).filter(|(_, files)| !files.is_empty())
    }

    /// The files that a compilation can reach.
    fn files(&self, compile: &Node) -> Files {
        let from = compile.inputs.get("tree:source").map(|input| &input.source);
        let Some(Source::Output { node, .. }) = from else { return BTreeMap::new() };
        let Some((generate, _)) = self.step(node) else { return BTreeMap::new() };
        let file = |(name, input): (&String, &kforge_engine::InputRef)| {
            let name = name.strip_prefix("file:")?;
            let Source::Blob(digest) = &input.source else { return None };
            Some((name.to_string(), self.ready.leaves.get(digest).ok().flatten()))
        };
        generate.inputs.iter().filter_map(file).collect()
    }

    /// Adds the functions of the machine code, or why they are not known.
    fn machine_code(&self, seat: &Seat, label: &str, found: &mut SideFound) {
        if !seat.on_device {
            return;
        }
        let counts = |node: &Node| {
            let params = serde_json::from_value::<InspectParams>(node.params.clone());
            params.is_ok_and(|params| params.disassemble)
        };
        let steps = || self.steps_of(&seat.seat, label).filter(|(node, _)| node.kind == StepKind::Inspect);
        let inspected =
            steps().filter(|(node, _)| !counts(node)).find_map(|(_, done)| self.document(done, "inspection"));
        let Some(Inspection { functions, .. }) = inspected else {
            let compile = self.steps_of(&seat.seat, label).find(|(node, _)| node.kind == StepKind::Compile);
            found.missing.push(Missing { what: "machine code".into(), why: why(compile.and_then(|(_, done)| done)) });
            return;
        };
        found.functions = functions;
        match self.counted(seat, label) {
            Ok(counted) => {
                for (function, counted) in found.functions.iter_mut().zip(counted.functions) {
                    function.opcodes = counted.opcodes;
                }
            }
            Err(why) => found.missing.push(Missing { what: "opcode counts".into(), why }),
        }
    }

    /// The inspection that counts opcodes: of the plan, or made here from the binary.
    fn counted(&self, seat: &Seat, label: &str) -> Result<Inspection, String> {
        let build = seat.selected.builds.iter().find(|build| build.label == label);
        let node = build.and_then(|build| self.ready.expander.disassembly(&seat.selected, build));
        let node = node.ok_or(NO_CODE)?;
        if let Some(found) = self.step(&node.id).and_then(|(_, done)| self.document(done, "inspection")) {
            return Ok(found);
        }
        match self.disassembled(vec![node], "inspection", &|| {}).pop().expect("BUG: a step without an answer") {
            Disassembled::Output(bytes) => serde_json::from_slice(&bytes).map_err(|error| error.to_string()),
            Disassembled::Missing(why) => Err(why),
        }
    }

    /// What steps give that run the disassembler on binaries of the plan, in their order; or why there is nothing. Calls `begun` before the first one runs, if any
    /// has to.
    pub(crate) fn disassembled(&self, nodes: Vec<Node>, output: &str, begun: &dyn Fn()) -> Vec<Disassembled> {
        let prepared: Vec<Result<Node, String>> = nodes.into_iter().map(|node| self.prepared(node)).collect();
        // Steps of equal ids are one.
        let mut graph = BTreeMap::new();
        graph.extend(prepared.iter().flatten().map(|node| (node.id.clone(), node.clone())));
        let built = self.built(graph.into_values().collect(), begun);
        let of = |node: Result<Node, String>| -> Result<Vec<u8>, String> {
            let (node, built) = (node?, built.as_ref().map_err(Clone::clone)?);
            let done = built.step(&node.id);
            let digest = done.and_then(|done| done.result.as_ref()?.outputs.get(output).copied());
            let bytes = digest.and_then(|digest| self.ready.leaves.get(&digest).ok().flatten());
            bytes.ok_or_else(|| match done.map(|done| &done.outcome) {
                // All else that the step reads is in the store.
                Some(Outcome::Unavailable(_)) => "the disassembler is not installed here".into(),
                _ => why(done),
            })
        };
        let answer = |node| of(node).map_or_else(Disassembled::Missing, Disassembled::Output);
        prepared.into_iter().map(answer).collect()
    }

    /// A step of no plan, which reads what is in the store.
    fn prepared(&self, mut node: Node) -> Result<Node, String> {
        if let Some(why) = &node.unavailable {
            return Err(why.clone());
        }
        for input in node.inputs.values_mut() {
            let Source::Output { node: maker, name, .. } = &input.source else { continue };
            let done = self.step(maker).and_then(|(_, done)| done);
            let digest = done.and_then(|done| done.result.as_ref()?.outputs.get(name).copied());
            let digest = digest.filter(|digest| self.ready.leaves.has(digest));
            input.source = Source::Blob(digest.ok_or_else(|| format!("its {name} is not in the store"))?);
        }
        node.expands = false;
        Ok(node)
    }

    /// Builds steps that read what is in the store.
    fn built(&self, nodes: Vec<Node>, begun: &dyn Fn()) -> Result<BuildOutcome, String> {
        // Collection must not remove binaries meanwhile; while it collects, nothing is disassembled.
        let _shared = self.opened.home.lock_cache(Mode::Shared, Wait::No).map_err(|e| e.to_string())?;
        let graph = Graph::new(nodes).map_err(|e| e.to_string())?;
        let mut is_begun = false;
        Ok(self.ready.with_services(self.session, self.opened, |services| {
            kforge_engine::build(graph, &self.ready.options, services, &mut |event| {
                if matches!(event, Event::StepStarted { .. }) && !std::mem::replace(&mut is_begun, true) {
                    begun();
                }
            })
        }))
    }

    /// Why a variant has no times.
    fn untimed(&self, seat: &DiffSeat, label: &str) -> String {
        let mut benches = self.steps_of(seat, label).filter(|(node, _)| node.kind == StepKind::Bench).peekable();
        match benches.peek() {
            None => "no step of the plan times it".into(),
            Some(_) => benches.find(|(_, done)| done.is_some()).map_or_else(|| why(None), |(_, done)| why(done)),
        }
    }

    /// What pairs say of both sides at each shape at which both are timed, or why there are none.
    pub(super) fn paired(&self, seat: &DiffSeat, a: &Side, b: &Side) -> Result<PairsFound, Error> {
        let evidence = self.ready.evidence(self.opened);
        let mut out = PairsFound::new();
        for shape in &seat.shapes {
            let (Some((_, before)), Some((bench, after))) = (a.benches.get(shape), b.benches.get(shape)) else {
                continue;
            };
            if before.key() == after.key() {
                out.insert(shape.clone(), PairsAt::Missing("both are the same binary with the same launches".into()));
                continue;
            }
            let pair = match regression::pairs(bench, after, before, seat.hot) {
                Ok(pair) => pair,
                Err(why) => {
                    out.insert(shape.clone(), PairsAt::Missing(why.to_string()));
                    continue;
                }
            };
            let mut found = PairsAt::Missing("they were not timed in turn".into());
            // A plan orders equal launches by their compilations, and this question by binaries.
            for pair in [pair.clone(), pair.exchanged()] {
                let spec = pair.spec();
                let Some(seen) = evidence.seen(&spec.key(), &spec, pair.node.product.as_deref())? else { continue };
                let provenance = &seen.record.provenance;
                let observed = seen.record.result.outputs.get("observation").copied();
                let bytes = observed.and_then(|digest| self.ready.leaves.get(&digest).ok().flatten());
                let Some(pairs) = bytes.and_then(|b| serde_json::from_slice::<PairsObserved>(&b).ok()) else {
                    continue;
                };
                let pairs = if pair.turned { pairs.turned() } else { pairs };
                let measured = format!("{}, {}", provenance.device, provenance.measured_at);
                let few = || PairsAt::Missing("too few pairs were measured".into());
                found = ratio(&pairs, measured).map_or_else(few, PairsAt::Taken);
                break;
            }
            out.insert(shape.clone(), found);
        }
        Ok(out)
    }
}

/// The ratio of times that pairs show, whose A is the second side.
fn ratio(pairs: &PairsObserved, measured: String) -> Option<RatioReport> {
    let found = Comparison::of(&[pairs])?;
    let (estimate, low, high) = found.interval;
    Some(RatioReport {
        ratio: estimate.exp(),
        interval: Some((low.exp(), high.exp())),
        paired: true,
        orders_disagree: found.contested(MARGIN).map(|orders| (orders.a_first.0.exp(), orders.b_first.0.exp())),
        measured: Some(measured),
    })
}

/// Why a step has no result.
fn why(done: Option<&Done>) -> String {
    match done.map(|done| &done.outcome) {
        Some(Outcome::Unavailable(why) | Outcome::Failed(why)) => why.clone(),
        Some(Outcome::Skipped(root)) => format!("`{root}` gave no result"),
        Some(Outcome::Executed | Outcome::Fresh) => "its result is gone from the store".into(),
        None => "no build has found it out yet".into(),
    }
}

/// The launches of a verification, by position.
fn launches(verify: &Node) -> BTreeMap<String, String> {
    let Ok(params) = serde_json::from_value::<VerifyParams>(verify.params.clone()) else { return BTreeMap::new() };
    let size = |of: [u32; 3]| of.map(|n| n.to_string()).join(" x ");
    let told = |launch: &Launch| match launch {
        Launch::Memset { buffer, value } => format!("fill `{buffer}` with {value}"),
        Launch::Kernel(kernel) => {
            let grid = match &kernel.open_grid {
                Some(_) => "grid by the device".to_string(),
                None => format!("grid {}", size(kernel.grid)),
            };
            let mut parts = vec![grid, format!("block {}", size(kernel.block))];
            parts.extend((kernel.shared > 0).then(|| format!("{} B of dynamic shared memory", kernel.shared)));
            parts.extend(kernel.cluster.map(|cluster| format!("cluster {}", size(cluster))));
            parts.extend(kernel.cooperative.then(|| "cooperative".to_string()));
            parts.join(", ")
        }
    };
    params.launches.iter().enumerate().map(|(at, launch)| (format!("launch {}", at + 1), told(launch))).collect()
}

/// The fields of a document as texts, by their paths.
fn flatten(path: &str, value: &Value, out: &mut BTreeMap<String, String>) {
    let below = |name: &str| if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
    match value {
        Value::Object(fields) => {
            let told = fields.iter().filter(|(name, _)| !(path.is_empty() && UNTOLD.contains(&name.as_str())));
            told.for_each(|(name, value)| flatten(&below(name), value, out));
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            items.iter().enumerate().for_each(|(at, item)| flatten(&below(&at.to_string()), item, out));
        }
        Value::Array(items) => {
            let text = |item: &Value| item.as_str().map_or_else(|| item.to_string(), String::from);
            out.insert(path.into(), items.iter().map(text).collect::<Vec<_>>().join(" "));
        }
        Value::String(text) => drop(out.insert(path.into(), text.clone())),
        other => drop(out.insert(path.into(), other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_says_of_several_classes_only_what_is_true_of_all() {
        let how = |provisional, last_build| SelectedHow { provisional, last_build, of_correct: true };
        let all = how_of_all([how(true, true), how(false, true)].into_iter());
        assert_eq!((all.provisional, all.last_build, all.of_correct), (false, true, true));
        assert_eq!(how_of_all([how(true, false)].into_iter()), how(true, false));
        assert_eq!(how_of_all([].into_iter()), SelectedHow::default());
    }

    #[test]
    fn fields_are_named_by_their_paths_and_what_changes_no_code_is_left_out() {
        let value = serde_json::json!({
            "arch": "sm_90a", "flags": ["-a", "-b"], "defines": { "VEC": "4" }, "candidate": true,
            "triton": [{ "options": { "num_warps": 4, "ptx": true } }],
        });
        let mut out = BTreeMap::new();
        flatten("", &value, &mut out);
        let all: Vec<(&str, &str)> = out.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let expected = [
            ("arch", "sm_90a"),
            ("defines.VEC", "4"),
            ("flags", "-a -b"),
            ("triton.0.options.num_warps", "4"),
            ("triton.0.options.ptx", "true"),
        ];
        assert_eq!(all, expected);
    }
}
