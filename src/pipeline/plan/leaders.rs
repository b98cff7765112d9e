//! Leaders: where several kernels implement one operator, their champions take part in one more selection, at each bench shape. Knows which kernels have champions;
//! who leads is decided by [`kforge_numerics::measure::select`]. Pure.
//!
//! | step | decides |
//! |---|---|
//! | `OPERATOR/TYPES/TARGET/kernels/nominate/select` | which champions are near enough to the fastest to be compared with it in pairs |
//! | `OPERATOR/TYPES/TARGET/kernels/select` | the leader at each bench shape; it reads these pairs |
//!
//! | decision | reason |
//! |---|---|
//! | only champions take part, each at the bench shapes of its classes | every other variant of a kernel lost to one of them already |
//! | it waits for all kernels of the operator, and comes after their last challenge | a champion that a challenge replaces would be compared for nothing |
//! | kernels that select by other times (`select.metric`) than the first one are left out | cold and hot times compare with nothing but their own kind |
//! | nothing is pinned, packaged or confirmed by it | each kernel's own selection leads to all of that, and loaders call a kernel by its name; a report leaves out a leader whose confirmation fails |
//! | a shape that only one kernel serves has no leader | nothing is compared there |
//! | evidence of these pairs is never required | they decide nothing that a kernel ships |

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::calls::{CalledSteps, is_called, sound};
use super::challenge::MOST;
use super::context::{Planner, Scope};
use super::input::Goal;
use super::kernels::{MARGIN, SHORTLIST, Selected};
use super::node_builder::{DECISION, MAIN, NodeBuilder, PAIRING, PHASES};
use super::operators::Case;
use super::timing_steps::is_timed;
use super::variants::PlannedVariant;
use kforge_engine::{InputRef, Node, Source};
use kforge_foundation::base::Diagnostic;
use kforge_types::model::{Metric, TypeChoice};
use kforge_types::record::event::Labels;
use kforge_types::record::params::{Champion, Contender, Nomination, SelectParams};
use kforge_types::record::{Form, StepKind};

/// The part of the ids of these steps.
const KERNELS: &str = "kernels";
/// The same for kernels in PyTorch.
const CALLED: &str = "kernels-called";

/// An operator on a target for one choice of types: the position of the package, then their names. Kernels in PyTorch compete with each other only, because call
/// times compare with no device times.
type Place = (usize, String, String, String, bool);

/// The kernels of operators that have champions to compare.
#[derive(Default)]
pub(super) struct Fields {
    /// The kernels whose selection is planned.
    expected: BTreeMap<Place, BTreeSet<String>>,
    /// Those whose champions are final.
    entrants: BTreeMap<Place, BTreeMap<String, Entrant>>,
    /// By id of a nominating select node: what expands it.
    nominating: BTreeMap<String, Arc<Leading>>,
    /// By id of a deciding select node: the names behind its numbers.
    deciding: BTreeMap<String, Arc<Leading>>,
}

impl Fields {
    /// Adds those of other packages.
    pub(super) fn join(&mut self, part: Fields) {
        self.expected.extend(part.expected);
    }
}

/// The champions of a kernel that are timed.
#[derive(Clone)]
struct Entrant {
    round: u32,
    metric: Metric,
    champions: Vec<Timed>,
}

/// A champion with the bench shapes at which it was selected by its times.
#[derive(Clone)]
struct Timed {
    build: PlannedVariant,
    at: Vec<TimedCase>,
}

/// A bench shape with the steps that judged and timed a champion there.
#[derive(Clone)]
struct TimedCase {
    case: Case,
    judged: String,
    times: Times,
}

/// The steps that timed a champion.
#[derive(Clone)]
enum Times {
    Bench(String),
    Calls(CalledSteps),
}

/// A selection among the champions of several kernels.
pub struct Leading {
    package: usize,
    operator: String,
    target: String,
    choice: TypeChoice,
    round: u32,
    /// The contenders, by position: the kernel, and its champion.
    contenders: Vec<(String, PlannedVariant)>,
    /// The bench shapes, by position.
    cases: Vec<Case>,
    /// The deciding node without pairs.
    decision: Node,
}

impl Leading {
    /// The kernel and the variant's label of each contender, by position.
    pub fn contenders(&self) -> impl Iterator<Item = (&str, &str)> {
        self.contenders.iter().map(|(kernel, build)| (kernel.as_str(), build.label.as_str()))
    }

    /// The choice of types.
    pub fn types(&self) -> &str {
        &self.choice.label
    }
}

impl Planner<'_> {
    /// Notes that a kernel will have a selection on a target. Every kernel is noted before the first one has champions.
    pub(super) fn awaits(&mut self, scope: Scope<'_>) {
        if (is_timed(scope) || is_called(scope)) && self.input.goal == Goal::Build {
            self.fields.expected.entry(place(scope)).or_default().insert(scope.kernel.name.clone());
        }
    }

    /// Notes that a kernel has no selection after all.
    pub(super) fn awaits_no_longer(&mut self, scope: Scope<'_>) {
        if let Some(kernels) = self.fields.expected.get_mut(&place(scope)) {
            kernels.remove(&scope.kernel.name);
        }
    }

    /// Enters the final champions of a kernel. Once those of every kernel of its operator are known, plans the selection among them.
    pub(super) fn lead(&mut self, selected: &Selected, champions: &[Champion]) -> Result<(), Diagnostic> {
        let Some(found) = self.found(selected) else { return Ok(()) };
        let scope = found.scope(&selected.choice, selected.stage.round);
        let place = place(scope);
        let Some(expected) = self.fields.expected.get(&place).filter(|kernels| kernels.len() > 1) else {
            return Ok(());
        };
        if !selected.stage.is_last || !expected.contains(&scope.kernel.name) {
            return Ok(());
        }
        let several = expected.len();
        let entrants = self.fields.entrants.entry(place.clone()).or_default();
        entrants.insert(scope.kernel.name.clone(), entrant(scope, selected, champions));
        if entrants.len() < several {
            return Ok(());
        }
        let entrants = std::mem::take(entrants);
        let before = self.after_all_challenges();
        let planned = self.among(scope, entrants);
        (self.later, self.wave) = before;
        planned
    }

    /// Moves what is planned behind the last challenge, whichever kernel ended last. Returns the place before.
    fn after_all_challenges(&mut self) -> (u8, u32) {
        let before = (self.later, self.wave);
        (self.later, self.wave) = (PHASES * (MOST + 1), 0);
        before
    }

    /// Plans the selection among the champions of these kernels, at the bench shapes at which at least two have one.
    fn among(&mut self, scope: Scope<'_>, mut entrants: BTreeMap<String, Entrant>) -> Result<(), Diagnostic> {
        let declared = &self.package_input(scope.package).package.kernels;
        let in_order = declared.iter().filter_map(|kernel| Some((kernel.name.clone(), entrants.remove(&kernel.name)?)));
        let mut entrants: Vec<(String, Entrant)> =
            in_order.filter(|(_, entrant)| !entrant.champions.is_empty()).collect();
        let Some(metric) = entrants.first().map(|(_, first)| first.metric) else { return Ok(()) };
        entrants.retain(|(_, entrant)| entrant.metric == metric);
        if entrants.len() < 2 {
            return Ok(());
        }
        let mut count: BTreeMap<usize, usize> = BTreeMap::new();
        for at in entrants.iter().flat_map(|(_, of)| of.champions.iter().flat_map(|one| &one.at)) {
            // A kernel has one champion at a shape.
            *count.entry(at.case.at).or_default() += 1;
        }
        for one in entrants.iter_mut().flat_map(|(_, of)| &mut of.champions) {
            one.at.retain(|at| count.get(&at.case.at).is_some_and(|kernels| *kernels > 1));
        }
        entrants.iter_mut().for_each(|(_, of)| of.champions.retain(|one| !one.at.is_empty()));
        entrants.retain(|(_, of)| !of.champions.is_empty());
        if entrants.is_empty() {
            return Ok(());
        }
        let round = entrants.iter().map(|(_, entrant)| entrant.round).max().unwrap_or(0);
        let timed = || entrants.iter().flat_map(|(kernel, of)| of.champions.iter().map(move |one| (kernel, one)));
        let shapes: BTreeMap<usize, &Case> =
            timed().flat_map(|(_, one)| &one.at).map(|at| (at.case.at, &at.case)).collect();
        let positions: BTreeMap<usize, u32> = shapes.keys().copied().zip(0..).collect();
        let contender = |(order, (_, one)): (u32, (_, &Timed))| Contender {
            order,
            identity: order.to_string(),
            serves: one.at.iter().filter_map(|at| positions.get(&at.case.at).copied()).collect(),
        };
        let count = positions.len() as u32;
        let params = SelectParams {
            candidates: (0..).zip(timed()).map(contender).collect(),
            shapes: (0..count).map(|at| at.to_string()).collect(),
            bench: (0..count).collect(),
            most_classes: 1,
            pinned: BTreeMap::new(),
            margin: MARGIN,
            hot: metric == Metric::Hot && !is_called(scope),
            timed: true,
            answers: false,
            shortlist: None,
            finals: None,
            challenge: false,
        };
        let package = self.package_input(scope.package).package.name.clone();
        let (types, target) = (&scope.choice.label, &scope.target.name);
        let labels = Labels {
            package: package.clone(),
            operator: Some(scope.operator.name.clone()),
            types: Some(types.clone()).filter(|types| !types.is_empty()),
            target: Some(target.clone()),
            ..Labels::default()
        };
        let which = if is_called(scope) { CALLED } else { KERNELS };
        let parts = [package.as_str(), &scope.operator.name, types, target, which];
        let mut decision =
            NodeBuilder::new(StepKind::Select, &parts, labels.clone(), &params).phase(DECISION).round(round);
        for (order, (_, one)) in timed().enumerate() {
            for at in &one.at {
                let position = positions[&at.case.at];
                decision = decision.optional(&format!("judgement:{order}:{position}"), &at.judged, "judgement");
                decision = match &at.times {
                    Times::Bench(id) => decision.optional(&format!("bench:{order}:{position}"), id, "observation"),
                    Times::Calls(steps) => steps.read_by(decision, (order as u32, position)),
                };
            }
        }
        let decision = decision.done();
        let params = SelectParams { shortlist: Some(SHORTLIST), ..params };
        let parts = [package.as_str(), &scope.operator.name, types, target, which, "nominate"];
        let nominate =
            NodeBuilder::new(StepKind::Select, &parts, labels, &params).phase(MAIN).round(round).expands().done();
        let leading = Leading {
            package: scope.package,
            operator: scope.operator.name.clone(),
            target: target.clone(),
            choice: scope.choice.clone(),
            round,
            contenders: timed().map(|(kernel, one)| (kernel.clone(), one.build.clone())).collect(),
            cases: shapes.into_values().cloned().collect(),
            decision: decision.clone(),
        };
        let id = self.add(Node { inputs: decision.inputs, ..nominate });
        self.fields.nominating.insert(id, Arc::new(leading));
        Ok(())
    }

    /// The selection that a nominating select node among kernels prepares.
    pub(super) fn nominating_leaders(&self, id: &str) -> Option<Arc<Leading>> {
        self.fields.nominating.get(id).cloned()
    }

    /// The selection of a deciding select node among kernels.
    pub(super) fn leading(&self, id: &str) -> Option<Arc<Leading>> {
        self.fields.deciding.get(id).cloned()
    }

    /// The names of the shapes of a selection among kernels, by position.
    pub(super) fn shapes_of(&self, leading: &Leading) -> Vec<String> {
        let package = self.package_input(leading.package).package;
        let Some(operator) = package.operator(&leading.operator) else { return vec![] };
        leading.cases.iter().map(|case| operator.shapes[case.at].name.clone()).collect()
    }

    /// Plans pairs of the nominated champions with the fastest, and the decision, which reads them.
    pub(super) fn nominated_leaders(
        &mut self,
        leading: &Arc<Leading>,
        nomination: &Nomination,
    ) -> Result<(), Diagnostic> {
        let mut decision = leading.decision.clone();
        let before = self.after_all_challenges();
        let pairs = self.pairs_of_leaders(leading, nomination);
        if let Ok(pairs) = &pairs {
            decision.inputs.extend(pairs.clone());
            let id = self.add(decision);
            self.fields.deciding.insert(id, leading.clone());
        }
        (self.later, self.wave) = before;
        pairs.map(drop)
    }

    fn pairs_of_leaders(
        &mut self,
        leading: &Leading,
        nomination: &Nomination,
    ) -> Result<BTreeMap<String, InputRef>, Diagnostic> {
        let mut pairs = BTreeMap::new();
        for class in &nomination.classes {
            let Some(best) = class.best else { continue };
            for near in &class.near {
                for at in &class.shapes {
                    let of = |order: u32| leading.contenders.get(order as usize);
                    let (Some((kernel, build)), Some((against, fastest)), Some(case)) =
                        (of(*near), of(best), leading.cases.get(*at as usize))
                    else {
                        continue;
                    };
                    let found = |kernel| self.find(leading.package, kernel, &leading.target);
                    let (Some(x), Some(y)) = (found(kernel), found(against)) else { continue };
                    let (x, y) = (x.scope(&leading.choice, leading.round), y.scope(&leading.choice, leading.round));
                    let pair = self.pairs_between((x, build), (y, fastest), case, PAIRING)?;
                    let (a, b) = if pair.turned { (best, *near) } else { (*near, best) };
                    let source = Source::Output { node: pair.id.clone(), name: "observation".into(), required: false };
                    pairs.insert(format!("pairs:{a}:{b}:{at}"), InputRef { source, form: Form::Blob });
                    if is_called(x) {
                        let judged = self.judged_pairs((x, build), (y, fastest), case, (&pair, PAIRING));
                        pairs.extend(sound((*near, best), *at, judged));
                    }
                }
            }
        }
        Ok(pairs)
    }
}

fn place(scope: Scope<'_>) -> Place {
    (
        scope.package,
        scope.operator.name.clone(),
        scope.choice.label.clone(),
        scope.target.name.clone(),
        is_called(scope),
    )
}

/// The champions of a kernel that were selected by their times, at the bench shapes of their classes.
fn entrant(scope: Scope<'_>, selected: &Selected, champions: &[Champion]) -> Entrant {
    let mut timed: BTreeMap<u32, Timed> = BTreeMap::new();
    for champion in champions.iter().filter(|champion| !champion.provisional) {
        let build = champion.variant.and_then(|order| selected.builds.iter().find(|b| b.variant.order == order));
        let Some(build) = build else { continue };
        let order = build.variant.order;
        let step = |steps: &[(u32, usize, String)], at: usize| {
            steps.iter().find(|(variant, case, _)| (*variant, *case) == (order, at)).map(|(_, _, id)| id.clone())
        };
        for (at, case) in selected.benched(scope.operator, &champion.shapes) {
            let called = selected.field.called.iter().find(|(variant, case, _)| (*variant, *case) == (order, at));
            let times = match called {
                Some((.., steps)) => Some(Times::Calls(steps.clone())),
                None => step(&selected.field.benched, at).map(Times::Bench),
            };
            let Some((judged, times)) = step(&selected.field.judged, at).zip(times) else { continue };
            let one = timed.entry(order).or_insert_with(|| Timed { build: build.clone(), at: vec![] });
            one.at.push(TimedCase { case: case.clone(), judged, times });
        }
    }
    Entrant {
        round: selected.stage.round,
        metric: scope.kernel.select.metric,
        champions: timed.into_values().collect(),
    }
}
