//! From steps and their documents to a [`Report`]. Knows labels and documents; does not know how steps were scheduled.

use std::collections::{BTreeMap, HashMap};

use serde::de::DeserializeOwned;

use super::baselines::BaselineReport;
use super::calls::CallsReport;
use super::classes::{OvertakenReport, reason};
use super::document::{
    BasisReport, ChampionReport, ClassTimeReport, IndexLimitReport, KernelReport, MachineReport, MethodReport,
    OperatorReport, PackageReport, Report, RooflineReport, ShapeReport, SpreadReport, TargetReport, TimeReport,
    TimeSeenReport,
};
use super::failure;
use super::leaders;
use super::messages;
use super::missing;
use super::provenance;
use super::quantiles::thin;
use super::search::SearchReport;
use super::versus::{Pairs, PairsRead, versus};
use super::wrong;
use kforge_foundation::base::Digest;
use kforge_numerics::measure::apart::is_apart;
use kforge_numerics::measure::stats::median;
use kforge_types::record::event::{EvidenceSeen, Labels, VerdictCounts};
use kforge_types::record::kind::baseline::documents::{Confirmation, Rating};
use kforge_types::record::kind::calls::documents::CallsObserved;
use kforge_types::record::params::{Judgement, Selection};
use kforge_types::record::profile::Roofline;
use kforge_types::record::search::{Searched, Trail};
use kforge_types::record::timing::{BenchObserved, Series, StressObserved};
use kforge_types::record::{FunctionFacts, Inspection, Note, Outcome, StepKind, StepResult, Unknown, Verdict};

/// A step that has ended.
#[derive(Clone, Copy)]
pub struct StepView<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its kind.
    pub kind: StepKind,
    /// Its labels.
    pub labels: &'a Labels,
    /// Its outcome.
    pub outcome: &'a Outcome,
    /// Its result, if any.
    pub result: Option<&'a StepResult>,
    /// Its messages, with or without a result.
    pub notes: &'a [Note],
    /// The origin of its observation, if it observes a device.
    pub evidence: Option<&'a EvidenceSeen>,
}

/// The names behind the numbers of a select step.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// Labels of its contenders by position.
    pub variants: BTreeMap<u32, String>,
    /// The kernels of its contenders by position, if it is a selection among kernels of one operator.
    pub kernels: BTreeMap<u32, String>,
    /// Names of its classes, with those that may be split from others.
    pub classes: BTreeMap<String, String>,
    /// Names of its shapes by position.
    pub shapes: Vec<String>,
    /// The names of the shapes that it leaves to other kernels.
    pub not_served: Vec<String>,
    /// How to compare its times; none if nothing is timed.
    pub basis: Option<BasisReport>,
    /// The choice of types.
    pub types: String,
    /// The expression whose values are the classes, if declared.
    pub per: Option<String>,
    /// Whether only the lockfile's variants take part.
    pub accepted: bool,
    /// The kernel's own launcher, if it has one.
    pub host: Option<String>,
    /// The index type that none of its shapes comes near.
    pub index_limit: Option<IndexLimitReport>,
    /// The pairs that the step reads.
    pub pairs: Vec<PairsRead>,
}

/// A file and a line in it, or what an observation has in their place until they are looked up.
pub type Line = (String, u32);

/// Reads documents of results.
pub struct Reader<'a> {
    /// The bytes of a blob.
    pub read: &'a dyn Fn(&Digest) -> Option<Vec<u8>>,
    /// A text of a step, with its places shown as file and line.
    pub places: &'a dyn Fn(&str, &str) -> String,
    /// A place of a finding of a step, as file and line.
    pub place: &'a dyn Fn(&str, &Line) -> Option<Line>,
    /// The first place in a text of a step, as file and line.
    pub first_place: &'a dyn Fn(&str, &str) -> Option<Line>,
}

impl Reader<'_> {
    /// An output of a step as a document; none if it is missing.
    pub fn document<T: DeserializeOwned>(&self, result: Option<&StepResult>, output: &str) -> Option<T> {
        serde_json::from_slice(&(self.read)(result?.outputs.get(output)?)?).ok()
    }
}

/// The end of the id of a search's first step.
const FIRST_SEARCH: &str = "/wave-0/search";

/// Assembles a report. `names` returns the names behind the numbers of a select step.
pub fn assemble(steps: &[StepView<'_>], names: &dyn Fn(&str) -> Option<Names>, reader: &Reader<'_>) -> Report {
    let mut packages = Packages { all: vec![], at: HashMap::new() };
    let mut shapes: Shapes = HashMap::new();
    // Everything is placed in the order of the plan first, because select steps come in the order in which devices answered.
    for step in steps {
        let Labels { package, kernel, operator, variant, target, .. } = step.labels;
        let package = packages.get(package);
        if let (Some(kernel), Some(operator), Some(target), Some(variant)) = (kernel, operator, target, variant) {
            target_of(package, kernel, operator, target, types_of(variant));
        }
        // A kernel that is not written yet has only its rounds.
        if let (Some(kernel), Some(operator), Some(target), None, Some(_)) =
            (kernel, operator, target, variant, step.labels.round)
        {
            target_of(package, kernel, operator, target, step.labels.types.as_deref().unwrap_or_default());
        }
        // A searched kernel has only its first search step at the start.
        if let (Some(kernel), Some(operator), Some(target), true) =
            (kernel, operator, target, step.kind == StepKind::Search && step.id.ends_with(FIRST_SEARCH))
            && let Some(names) = names(step.id)
        {
            target_of(package, kernel, operator, target, &names.types);
        }
    }
    let pairs: Pairs<'_> =
        steps.iter().filter(|step| step.kind == StepKind::Pairs).map(|step| (step.id, step.result)).collect();
    for step in steps {
        let package = packages.get(&step.labels.package);
        if let Some(verdict) = step.result.and_then(|result| result.verdict.as_ref()) {
            counts_of(package, step.labels).add(verdict);
        }
        match step.kind {
            StepKind::Calibrate => operator(package, step),
            StepKind::Search => search(package, step, names, reader),
            StepKind::Select => {
                if let Some(names) = names(step.id) {
                    if !names.kernels.is_empty() {
                        package.leaders.extend(leaders::of_result(step.labels, step.result, &names, &pairs, reader));
                        continue;
                    }
                    select(package, step, &names, &pairs, reader);
                    shapes.insert(place_of(step.labels, &names.types), names.shapes);
                }
            }
            _ => {}
        }
    }
    // Champions are known now, so the other steps can be filed under them.
    for step in steps {
        let package = packages.get(&step.labels.package);
        let Labels { kernel, operator, variant, target, .. } = step.labels;
        // A step that is not about a variant (generate, oracle, select) has no place of its own; only its failure or unavailability is reported.
        let (Some(kernel), Some(target), Some(variant)) = (kernel, target, variant) else {
            match (step.outcome, kernel, operator, target, step.labels.round) {
                (Outcome::Unavailable(why), Some(kernel), Some(operator), Some(target), Some(_)) => {
                    unavailable(
                        target_of(package, kernel, operator, target, step.labels.types.as_deref().unwrap_or_default()),
                        step.kind,
                        why,
                    );
                }
                (Outcome::Unavailable(why), ..) => unavailable_operator(package, step, why),
                _ => {}
            }
            if let Outcome::Failed(why) = step.outcome {
                stray(package, step, why);
            }
            continue;
        };
        let operator = operator.clone().unwrap_or_default();
        let types = types_of(variant);
        file(target_of(package, kernel, &operator, target, types), step, reader);
        if step.kind == StepKind::Roofline
            && let Some(mut roofline) = reader.document::<Roofline>(step.result, "roofline")
        {
            let named = shapes.get(&place_of(step.labels, types));
            let name = |at: u32| named?.get(at as usize).cloned();
            let shape = roofline.shape.and_then(name);
            // By name instead of by position.
            let achieved = std::mem::take(&mut roofline.achieved);
            let achieved = achieved.into_iter().filter_map(|(at, reached)| Some((name(at)?, reached))).collect();
            let report = target_of(package, kernel, &operator, target, types);
            report.rooflines.push(RooflineReport { variant: variant.clone(), shape, roofline, achieved });
        }
    }
    missing::name(&mut packages.all, steps);
    packages.all.iter_mut().flat_map(|p| &mut p.kernels).flat_map(|k| &mut k.targets).for_each(tidy);
    packages.all.iter_mut().for_each(leaders::complete);
    for (place, untried) in wrong::untried(steps, types_of) {
        let [package, kernel, target, types] = &place;
        let kernels = packages.get(package).kernels.iter_mut().filter(|of| of.name == *kernel);
        let mut targets = kernels.flat_map(|of| &mut of.targets);
        if let Some(found) = targets.find(|of| of.target == *target && of.types == *types) {
            found.untried = Some(untried);
        }
    }
    for (package, messages) in messages::all(steps, reader) {
        packages.get(&package).messages = messages;
    }
    Report { format_version: kforge_types::record::FORMAT_VERSION, packages: packages.all, ..Report::default() }
}

/// Names of shapes by position, by package, kernel, target and types.
type Shapes = HashMap<[String; 4], Vec<String>>;

fn place_of(labels: &Labels, types: &str) -> [String; 4] {
    let part = |label: &Option<String>| label.clone().unwrap_or_default();
    [labels.package.clone(), part(&labels.kernel), part(&labels.target), types.to_string()]
}

/// If a step of an operator cannot run here, it is unavailable to every kernel of the operator.
fn unavailable_operator(package: &mut PackageReport, step: &StepView<'_>, why: &str) {
    for kernel in package.kernels.iter_mut().filter(|k| Some(&k.operator) == step.labels.operator.as_ref()) {
        kernel.targets.iter_mut().for_each(|target| unavailable(target, step.kind, why));
    }
}

/// Counts a step that cannot run here.
fn unavailable(report: &mut TargetReport, kind: StepKind, why: &str) {
    match report.unavailable.iter_mut().find(|(k, _, w)| k == kind.name() && w == why) {
        Some(entry) => entry.1 += 1,
        None => report.unavailable.push((kind.name().to_string(), 1, why.to_string())),
    }
}

/// Files a failure of a step without a target under the first target of its kernel, of the first kernel of its operator, or of the package if it has neither.
fn stray(package: &mut PackageReport, step: &StepView<'_>, why: &str) {
    let Labels { kernel, operator, .. } = step.labels;
    let is_its = |k: &KernelReport| match (kernel, operator) {
        (Some(name), _) => *name == k.name,
        (None, Some(name)) => *name == k.operator,
        (None, None) => true,
    };
    let at = package.kernels.iter().position(is_its).unwrap_or(0);
    if let Some(target) = package.kernels.get_mut(at).and_then(|k| k.targets.first_mut()) {
        target.failed.push((step.id.into(), why.into()));
        failure::add(&mut target.failures, step, why);
    }
}

/// The part of a variant's label that names types. Types come first, and their values are dtypes.
pub fn types_of(label: &str) -> &str {
    let is_type =
        |part: &str| part.split_once('=').is_some_and(|(_, v)| v.parse::<kforge_types::model::DType>().is_ok());
    let end = label.split(',').take_while(|p| is_type(p)).map(|p| p.len() + 1).sum::<usize>();
    label[..end.min(label.len())].trim_end_matches(',')
}

/// Packages of a report by name. There may be thousands, each looked up by thousands of steps.
struct Packages {
    all: Vec<PackageReport>,
    at: HashMap<String, usize>,
}

impl Packages {
    fn get(&mut self, name: &str) -> &mut PackageReport {
        let at = match self.at.get(name) {
            Some(at) => *at,
            None => {
                self.all.push(PackageReport { name: name.into(), ..PackageReport::default() });
                self.at.insert(name.into(), self.all.len() - 1);
                self.all.len() - 1
            }
        };
        &mut self.all[at]
    }
}

/// The place at which a step's verdict is counted: with its kernel on its target if the report has that, otherwise with the package.
fn counts_of<'p>(package: &'p mut PackageReport, labels: &Labels) -> &'p mut VerdictCounts {
    let types = labels.types.as_deref().or(labels.variant.as_deref().map(types_of)).unwrap_or_default();
    let kernel = package.kernels.iter_mut().find(|k| Some(&k.name) == labels.kernel.as_ref());
    let targets = kernel.into_iter().flat_map(|k| &mut k.targets);
    let mut mine = targets.filter(|t| Some(&t.target) == labels.target.as_ref() && t.types == types);
    match mine.next() {
        Some(target) => &mut target.verdicts,
        None => &mut package.verdicts,
    }
}

fn target_of<'p>(
    package: &'p mut PackageReport,
    kernel: &str,
    operator: &str,
    target: &str,
    types: &str,
) -> &'p mut TargetReport {
    let at = package.kernels.iter().position(|k| k.name == kernel).unwrap_or_else(|| {
        package.kernels.push(KernelReport { name: kernel.into(), operator: operator.into(), targets: vec![] });
        package.kernels.len() - 1
    });
    let kernel = &mut package.kernels[at];
    let at = kernel.targets.iter().position(|t| t.target == target && t.types == types).unwrap_or_else(|| {
        kernel.targets.push(TargetReport { target: target.into(), types: types.into(), ..TargetReport::default() });
        kernel.targets.len() - 1
    });
    &mut kernel.targets[at]
}

fn operator(package: &mut PackageReport, step: &StepView<'_>) {
    let Some(result) = step.result else { return };
    let verdict = result.verdict.clone().unwrap_or(Verdict::Pass);
    let notes: Vec<String> = result.notes.iter().map(|n| n.message.clone()).collect();
    if verdict != Verdict::Pass || !notes.is_empty() {
        package.operators.push(OperatorReport {
            name: step.labels.operator.clone().unwrap_or_default(),
            verdict,
            notes,
        });
    }
}

fn select(package: &mut PackageReport, step: &StepView<'_>, names: &Names, pairs: &Pairs<'_>, reader: &Reader<'_>) {
    let labels = step.labels;
    let (Some(kernel), Some(target)) = (&labels.kernel, &labels.target) else { return };
    let operator = labels.operator.clone().unwrap_or_default();
    let report = target_of(package, kernel, &operator, target, &names.types);
    // If there are several rounds, the first one counts, because its variants are the declared ones.
    if report.basis.is_none() {
        report.basis.clone_from(&names.basis);
    }
    let Some(selection) = reader.document::<Selection>(step.result, "selection") else { return };
    report.accepted = names.accepted;
    report.host.clone_from(&names.host);
    report.not_served.clone_from(&names.not_served);
    report.index_limit.clone_from(&names.index_limit);
    report.per.clone_from(&names.per);
    let variant = |order: u32| names.variants.get(&order).cloned().unwrap_or_default();
    let shape = |at: u32| names.shapes.get(at as usize).cloned().unwrap_or_default();
    let class = |class: &str| names.classes.get(class).cloned().unwrap_or_else(|| class.into());
    for champion in selection.champions {
        let shapes: Vec<String> = champion.shapes.iter().map(|at| shape(*at)).collect();
        let class_name = class(&champion.class);
        if let Some(basis) = &mut report.basis {
            basis.classes.extend(shapes.iter().map(|shape| (shape.clone(), class_name.clone())));
        }
        report.champions.push(ChampionReport {
            because: reason(&champion, &variant, &shape, &class),
            versus: versus(&champion, names, pairs, reader),
            class: class_name,
            shapes,
            variant: champion.variant.and_then(|v| names.variants.get(&v).cloned()),
            provisional: champion.provisional,
        });
    }
    let overtaken = selection.overtaken.iter().map(|o| OvertakenReport::of(o, shape(o.shape), variant(o.by)));
    report.overtaken.extend(overtaken);
    report.wrong_on_cpu = selection.wrong_on_cpu.len() as u64;
    let champions = report.champions.iter().filter(|c| c.variant.is_some()).count() as u64;
    report.variants =
        (names.variants.len() as u64, champions.min(1) + selection.frontier.len() as u64, selection.wrong.len() as u64);
}

/// Adds the result of a search, from its last step.
fn search(
    package: &mut PackageReport,
    step: &StepView<'_>,
    names: &dyn Fn(&str) -> Option<Names>,
    reader: &Reader<'_>,
) {
    let (Some(kernel), Some(target)) = (&step.labels.kernel, &step.labels.target) else { return };
    let Some(searched) = reader.document::<Searched>(step.result, "search") else { return };
    // Naming a whole space takes time, so it is done only for the step that ends the search.
    if searched.tally.over.is_none() {
        return;
    }
    let Some(names) = names(step.id) else { return };
    let trail: Trail = reader.document(step.result, "trail").unwrap_or_default();
    let Some(found) = SearchReport::of(searched.tally, trail, &names) else { return };
    let operator = step.labels.operator.clone().unwrap_or_default();
    target_of(package, kernel, &operator, target, &names.types).search = Some(found);
}

/// Files the results of a step under its target.
fn file(report: &mut TargetReport, step: &StepView<'_>, reader: &Reader<'_>) {
    let variant = step.labels.variant.clone().unwrap_or_default();
    // If nothing was selected (`verify`, `check`), every variant is shown.
    let is_champion =
        report.champions.is_empty() || report.champions.iter().any(|c| c.variant.as_deref() == Some(&variant));
    let has_champion = report.champions.iter().any(|champion| champion.variant.is_some());
    if let Some(evidence) = step.evidence {
        provenance::observe(&mut report.observed, evidence);
        if !report.observed_on.contains(&evidence.device_class) {
            report.observed_on.push(evidence.device_class.clone());
        }
    }
    if step.labels.confirms && matches!(step.kind, StepKind::Baseline | StepKind::Rate) {
        second_device(report, reader, step, &variant);
        // A missing second device keeps nothing from being known but the confirmation.
        if !matches!(step.outcome, Outcome::Failed(_)) {
            return;
        }
    }
    match step.outcome {
        Outcome::Unavailable(why) => unavailable(report, step.kind, why),
        Outcome::Failed(why) => {
            let why = (reader.places)(step.id, why);
            failure::add(&mut report.failures, step, &why);
            report.failed.push((step.id.into(), why));
        }
        _ => {}
    }
    match step.kind {
        // Its reason says more than that of the judge step, which knows only that there is no observation.
        StepKind::Verify | StepKind::Calls if step.labels.confirms => {
            if let (StepKind::Calls, Some(seen), Some(shape)) =
                (step.kind, reader.document::<CallsObserved>(step.result, "observation"), &step.labels.shape)
                && is_champion
            {
                report.calls.extend(CallsReport::of(shape, &variant, &seen));
            }
            if let (Outcome::Unavailable(why) | Outcome::Failed(why) | Outcome::Skipped(why), Some(shape)) =
                (step.outcome, &step.labels.shape)
                && let Some(earlier) = report.shapes.iter_mut().find(|s| s.shape == *shape && s.variant == variant)
            {
                earlier.not_confirmed = Some((reader.places)(step.id, why));
            }
        }
        StepKind::Judge => {
            if let (Some(judgement), Some(shape)) =
                (reader.document::<Judgement>(step.result, "judgement"), &step.labels.shape)
                // Wrong candidates of rounds are shown in the tree of candidates.
                // If the operator is indecisive, no variant is champion, and the report says that of each.
                && (is_champion
                    || (matches!(judgement.verdict, Verdict::Fail(_))
                        || matches!(judgement.verdict, Verdict::Unknown(Unknown::Indecisive(_))) && !has_champion)
                        && step.labels.round.is_none())
                && step.labels.method.is_none()
            {
                let text = |t: &str| (reader.places)(step.id, t);
                let refused = step.notes.iter().any(|note| note.launch.is_some());
                // A confirmation is filed under the verdict that it confirms, which is that of an earlier step.
                let earlier = report.shapes.iter_mut().find(|s| s.shape == *shape && s.variant == variant);
                // Calls beside another kernel or a baseline can only fail a champion, which calls by itself confirm.
                if step.labels.confirms && !judgement.confirms && !matches!(judgement.verdict, Verdict::Fail(_)) {
                    return;
                }
                if let (true, Some(earlier)) = (step.labels.confirms, earlier) {
                    match judgement.verdict {
                        Verdict::Pass => earlier.confirmed = true,
                        // The earlier verdict says so already.
                        Verdict::Unknown(Unknown::Indecisive(_))
                            if matches!(earlier.verdict, Verdict::Unknown(Unknown::Indecisive(_))) => {}
                        Verdict::Fail(why) => {
                            earlier.not_confirmed = None;
                            (earlier.verdict, earlier.explanation) =
                                (Verdict::Fail(text(&why)), text(&judgement.explanation));
                            earlier.diagnoses = judgement.diagnoses;
                            (earlier.refused, earlier.finding) = (refused, judgement.finding);
                        }
                        Verdict::Unknown(why) => {
                            earlier.not_confirmed.get_or_insert_with(|| text(&why.to_string()));
                        }
                    }
                    return;
                }
                report.shapes.push(ShapeReport {
                    shape: shape.clone(),
                    variant,
                    verdict: match judgement.verdict {
                        Verdict::Fail(why) => Verdict::Fail(text(&why)),
                        Verdict::Unknown(Unknown::NotEmulated(what)) => {
                            Verdict::Unknown(Unknown::NotEmulated(text(&what)))
                        }
                        Verdict::Unknown(Unknown::Missing(what)) => Verdict::Unknown(Unknown::Missing(text(&what))),
                        other => other,
                    },
                    emulated: judgement.emulated,
                    interpreted: judgement.interpreted,
                    in_torch: judgement.in_torch,
                    unconfined: judgement.unconfined,
                    worst: judgement.worst,
                    no_fresh: judgement.no_fresh,
                    known_inputs: judgement.known_inputs,
                    confirmed: false,
                    not_confirmed: None,
                    explanation: text(&judgement.explanation),
                    diagnoses: judgement.diagnoses,
                    refused,
                    finding: judgement.finding,
                    prevented_by: None,
                });
            }
        }
        StepKind::Bench if step.labels.method.is_none() => {
            if let (Some(seen), Some(shape)) =
                (reader.document::<BenchObserved>(step.result, "observation"), &step.labels.shape)
            {
                report.times.push(timed(shape, &variant, &seen, step.evidence));
            }
        }
        StepKind::Inspect if is_champion && step.labels.method.is_none() => {
            if let Some(found) = reader.document::<Inspection>(step.result, "inspection")
                && found.functions.iter().any(|f| f.registers.is_some())
            {
                let Inspection { architectures, functions, disassembled, .. } = found;
                match report.machine.iter_mut().find(|m| m.variant == variant) {
                    // A step of its own counts opcodes, after the one that gives the other facts.
                    Some(known) if disassembled => count_opcodes(&mut known.functions, &functions),
                    Some(_) => {}
                    None => report.machine.push(MachineReport { variant, architectures, functions }),
                }
            }
        }
        StepKind::Rate if !step.labels.confirms => {
            let named = step.labels.shape.clone().zip(step.labels.baseline.clone());
            if let (Some((shape, baseline)), Some(rating)) = (named, reader.document(step.result, "rating")) {
                report.baselines.push(BaselineReport::new(shape, baseline, variant, rating));
            }
        }
        StepKind::Match | StepKind::Attribute => {
            let Some(method) = step.labels.method.clone() else { return };
            let at =
                report.methods.iter().position(|m| m.method == method && m.variant == variant).unwrap_or_else(|| {
                    report.methods.push(MethodReport {
                        method,
                        variant,
                        matched: None,
                        attribution: None,
                        shapes: vec![],
                    });
                    report.methods.len() - 1
                });
            if step.kind == StepKind::Match {
                report.methods[at].matched = reader.document(step.result, "match");
            } else {
                report.methods[at].attribution = reader.document(step.result, "attribution");
            }
        }
        _ => {}
    }
}

/// Files what a second device says of a speed-up under that speed-up, which is that of an earlier step.
fn second_device(report: &mut TargetReport, reader: &Reader<'_>, step: &StepView<'_>, variant: &str) {
    let Some((shape, baseline)) = step.labels.shape.as_ref().zip(step.labels.baseline.as_ref()) else { return };
    let is_its = |first: &&mut BaselineReport| {
        (first.shape.as_str(), first.baseline.as_str(), first.variant.as_str()) == (shape, baseline, variant)
    };
    let Some(first) = report.baselines.iter_mut().find(is_its) else { return };
    first.second_standing = step.evidence.map(|evidence| evidence.standing).or(first.second_standing);
    match (step.kind, step.outcome) {
        (StepKind::Baseline, Outcome::Unavailable(why) | Outcome::Failed(why)) => {
            let why = (reader.places)(step.id, why);
            first.confirmation = Some(Confirmation::Unconfirmed { why, ratio: None });
        }
        _ => {
            let rating: Option<Rating> = reader.document(step.result, "rating");
            let heard = rating.and_then(|rating| rating.confirmation);
            first.confirmation = heard.or(first.confirmation.take());
        }
    }
}

/// Adds the counts of another inspection of the same functions, as far as there are none.
fn count_opcodes(functions: &mut [FunctionFacts], counted: &[FunctionFacts]) {
    for function in functions.iter_mut().filter(|function| function.opcodes.is_empty()) {
        if let Some(same) = counted.iter().find(|other| other.symbol == function.symbol) {
            function.opcodes.clone_from(&same.opcodes);
        }
    }
}

/// The times of a variant at a shape, from what was observed and its origin.
pub fn timed(shape: &str, variant: &str, seen: &BenchObserved, from: Option<&EvidenceSeen>) -> TimeReport {
    let of = |series: &Option<Series>| {
        series.as_ref().map(|s| median(&s.samples_ns)).filter(|ns| ns.is_finite() && *ns > 0.0)
    };
    TimeReport {
        shape: shape.into(),
        variant: variant.into(),
        cold_ns: of(&seen.cold),
        hot_ns: of(&seen.hot),
        few: seen.few,
        by_class: seen.stress.as_ref().map(|stress| by_class(stress, seen)),
        seen: from.map(|evidence| TimeSeenReport {
            device: evidence.device_class.clone(),
            at: Some(evidence.measured_at.clone()),
            standing: Some(evidence.standing),
            clocks_mhz: evidence.clocks_mhz,
            temperature_c: evidence.temperature_c,
            throttle: evidence.throttle.clone(),
            cold: seen.cold.as_ref().map(SpreadReport::of),
            hot: seen.hot.as_ref().map(SpreadReport::of),
        }),
    }
}

/// The times on inputs of a stress class.
fn by_class(stress: &StressObserved, seen: &BenchObserved) -> ClassTimeReport {
    let both = [(&seen.cold, &stress.cold_ns), (&seen.hot, &stress.hot_ns)];
    let of = |ns: &[f64]| Some(median(ns)).filter(|ns| ns.is_finite() && *ns > 0.0);
    let apart = |(series, class): &(&Option<Series>, &Vec<f64>)| {
        series.as_ref().is_some_and(|series| is_apart(&series.samples_ns, class))
    };
    ClassTimeReport {
        class: stress.class.clone(),
        cold_ns: of(&stress.cold_ns),
        hot_ns: of(&stress.hot_ns),
        differs: both.iter().any(apart),
    }
}

/// Sorts the entries, so that their order does not depend on which step ended first.
fn tidy(report: &mut TargetReport) {
    report.observed_on.sort();
    provenance::sort(&mut report.observed);
    report.shapes.sort_by(|a, b| (&a.shape, &a.variant).cmp(&(&b.shape, &b.variant)));
    report.machine.sort_by(|a, b| a.variant.cmp(&b.variant));
    // A full timing replaces one with few samples.
    report.times.sort_by(|a, b| (&a.shape, &a.variant, a.few).cmp(&(&b.shape, &b.variant, b.few)));
    report.times.dedup_by(|b, a| b.few && (&a.shape, &a.variant) == (&b.shape, &b.variant));
    thin(report);
    report.rooflines.sort_by(|a, b| a.variant.cmp(&b.variant));
    report.baselines.sort_by(|a, b| a.order().cmp(&b.order()));
    // What is wrong has no time.
    let is_wrong = |call: &CallsReport| {
        let mut shapes = report.shapes.iter().filter(|of| of.shape == call.shape && of.variant == call.variant);
        shapes.any(|of| matches!(of.verdict, Verdict::Fail(_)))
    };
    report.calls.retain(|call| !is_wrong(call));
    report.calls.sort_by(|a, b| a.order().cmp(&b.order()));
    report.methods.sort_by(|a, b| (&a.method, &a.variant).cmp(&(&b.method, &b.variant)));
    report.unavailable.sort();
    report.failed.sort();
    failure::sort(&mut report.failures);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_told_from_tunables() {
        assert_eq!(types_of("T=f16,BLOCK=256"), "T=f16");
        assert_eq!(types_of("T=f16"), "T=f16");
        assert_eq!(types_of("BLOCK=256"), "");
        assert_eq!(types_of(""), "");
    }

    #[test]
    fn what_is_unavailable_is_counted_by_kind_and_reason() {
        let part = |text: &str| Some(text.to_string());
        let (kernel, target, variant) = (part("k"), part("h200"), part("BLOCK=1"));
        let labels = Labels { package: "p".into(), kernel, target, variant, ..Labels::default() };
        let outcome = Outcome::Unavailable("no device".into());
        let view = |id| StepView {
            id,
            kind: StepKind::Bench,
            labels: &labels,
            outcome: &outcome,
            result: None,
            notes: &[],
            evidence: None,
        };
        let reader = Reader {
            read: &|_| None,
            places: &|_, text| text.to_string(),
            place: &|_, place| Some(place.clone()),
            first_place: &|_, _| None,
        };
        let report = assemble(&[view("a"), view("b")], &|_| None, &reader);
        assert_eq!(
            report.packages[0].kernels[0].targets[0].unavailable,
            [("bench".to_string(), 2, "no device".to_string())]
        );
    }

    #[test]
    fn opcodes_come_from_a_step_of_their_own_whichever_is_first() {
        let facts = |opcodes: &[(&str, u64)]| FunctionFacts {
            symbol: "k".into(),
            registers: Some(32),
            opcodes: opcodes.iter().map(|(name, count)| (name.to_string(), *count)).collect(),
            ..FunctionFacts::default()
        };
        let of = |opcodes: &[(&str, u64)], disassembled| {
            let functions = vec![facts(opcodes)];
            serde_json::to_vec(&Inspection { functions, disassembled, ..Inspection::default() }).unwrap()
        };
        let documents = [of(&[], false), of(&[("LDG.E", 4)], true)];
        let results = documents.each_ref().map(|bytes| StepResult {
            outputs: [("inspection".to_string(), Digest::of(bytes))].into(),
            verdict: None,
            notes: vec![],
            summary: String::new(),
            duration_ms: 0,
        });
        let part = |text: &str| Some(text.to_string());
        let (kernel, target, variant) = (part("k"), part("h200"), part("A=1"));
        let labels = Labels { package: "p".into(), kernel, target, variant, ..Labels::default() };
        let view = |at: usize| StepView {
            id: "p/k/A=1/h200/inspect",
            kind: StepKind::Inspect,
            labels: &labels,
            outcome: &Outcome::Fresh,
            result: Some(&results[at]),
            notes: &[],
            evidence: None,
        };
        let reader = Reader {
            read: &|digest| documents.iter().find(|bytes| Digest::of(bytes) == *digest).cloned(),
            places: &|_, text| text.to_string(),
            place: &|_, place| Some(place.clone()),
            first_place: &|_, _| None,
        };
        for order in [[0, 1], [1, 0]] {
            let report = assemble(&order.map(view), &|_| None, &reader);
            let machine = &report.packages[0].kernels[0].targets[0].machine;
            assert_eq!((machine.len(), machine[0].functions[0].opcodes.get("LDG.E")), (1, Some(&4)), "{order:?}");
        }
    }

    #[test]
    fn what_fails_for_an_operator_is_filed_under_a_kernel_of_it() {
        let part = |text: &str| Some(text.to_string());
        let of = |kernel: &str, operator: &str| Labels {
            package: "p".into(),
            kernel: part(kernel),
            operator: part(operator),
            variant: part(""),
            target: part("cpu"),
            ..Labels::default()
        };
        let kernels = [of("first", "o"), of("second", "q"), of("third", "q")];
        let oracle = Labels { kernel: None, variant: None, target: None, ..of("", "q") };
        let outside = Labels { operator: part("unused"), ..oracle.clone() };
        let (fresh, failed) = (Outcome::Fresh, Outcome::Failed("exited with 1".into()));
        let view = |id, kind, labels, outcome| StepView {
            id,
            kind,
            labels,
            outcome,
            result: None,
            notes: &[],
            evidence: None,
        };
        let mut steps = vec![
            view("q/oracle", StepKind::Oracle, &oracle, &failed),
            view("unused/oracle", StepKind::Oracle, &outside, &failed),
        ];
        steps.extend(kernels.iter().map(|labels| view("verify", StepKind::Verify, labels, &fresh)));
        let reader = Reader {
            read: &|_| None,
            places: &|_, text| text.to_string(),
            place: &|_, place| Some(place.clone()),
            first_place: &|_, _| None,
        };
        let report = assemble(&steps, &|_| None, &reader);
        let failed = |at: usize| {
            let kernel = &report.packages[0].kernels[at];
            let steps = kernel.targets[0].failed.iter().map(|(step, _)| step.as_str());
            (kernel.name.as_str(), steps.collect::<Vec<_>>())
        };
        // An operator that no kernel of the report has: its failure must still be seen.
        assert_eq!(failed(0), ("first", vec!["unused/oracle"]));
        assert_eq!(failed(1), ("second", vec!["q/oracle"]));
        assert_eq!(failed(2), ("third", vec![]));
    }
}
