//! Challenges: the kernel without a method that costs a champion time takes part in another selection. Knows how to turn attributions into steps; which methods
//! cost time is decided by [`kforge_numerics::measure::attribute`], and who is champion by [`kforge_numerics::measure::select`]. Pure.
//!
//! A champion is compared with the best by medians, and attribution compares it with the kernel without each of its methods. So attribution may show one of
//! these kernels to be faster than the champion although the selection did not. The plan then grows:
//!
//! | step | decides |
//! |---|---|
//! | `challenge-N/nominate/select` | which methods of the champions are harmful |
//! | `challenge-N/select` | the champions, among the same contenders and the kernels without these methods; it reads the pairs of attribution, too |
//!
//! Each challenge can lead to the next one, at most [`MOST`]. Only variants of the declared space take part: a champion has a name that `kforge.lock` can pin,
//! and turning a method off by flags, by another source or by a value that the space excludes makes no such variant. An accepted variant has no challengers.
//! The last of these selections takes the place of the first one for everybody who asks for champions ([`super::expand::Expander::decisive`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::context::{Planner, Scope, is_benched};
use super::kernels::{MARGIN, Selected};
use super::node_builder::{NodeBuilder, PHASES};
use super::timing_steps::PairStep;
use super::variants::PlannedVariant;
use kforge_engine::{InputRef, Source};
use kforge_foundation::base::Diagnostic;
use kforge_types::model::Variant;
use kforge_types::record::event::Labels;
use kforge_types::record::params::{Champion, Nomination, SelectParams};
use kforge_types::record::{Form, StepKind};

/// The most challenges of a kernel on a target. A champion has few methods, and each challenge removes one that costs time.
pub(crate) const MOST: u8 = 3;

/// The kernel without a method of a champion.
#[derive(Clone)]
pub struct Without {
    /// It, as it is built for attribution.
    pub build: PlannedVariant,
    /// The champion's order.
    pub champion: u32,
    /// The step that says what the method is worth.
    pub attribute: String,
    /// The pairs of it and the champion, by case.
    pub pairs: Vec<(usize, PairStep)>,
}

/// What expands a step that names harmful methods.
#[derive(Clone)]
pub struct Challenge {
    /// The selection that is challenged, and its id.
    selected: Arc<Selected>,
    decision: String,
    /// Its champions.
    champions: Vec<Champion>,
    /// The kernels without methods, in the order of the step's inputs.
    without: Vec<Without>,
}

impl Planner<'_> {
    /// Plans the step that names the harmful methods of a selection's champions. Returns false if there is nothing to name.
    pub(super) fn challenge(
        &mut self,
        decision: &str,
        selected: &Arc<Selected>,
        champions: &[Champion],
        without: Vec<Without>,
    ) -> Result<bool, Diagnostic> {
        let Some(found) = self.found(selected) else { return Ok(false) };
        let scope = found.scope(&selected.choice, selected.stage.round);
        if !selected.stage.is_last || selected.accepted || selected.challenge >= MOST {
            return Ok(false);
        }
        let mut possible = vec![];
        for one in without {
            if Self::is_in_space(scope, &one.build)? {
                possible.push(one);
            }
        }
        if possible.is_empty() {
            return Ok(false);
        }
        let package = self.package_input(scope.package).package.name.clone();
        let labels = Labels {
            package: package.clone(),
            kernel: Some(selected.kernel.clone()),
            operator: Some(scope.operator.name.clone()),
            target: Some(selected.target.clone()),
            ..Labels::default()
        };
        let name = challenge_name(selected.challenge + 1);
        let parts = [package.as_str(), &selected.kernel, &scope.choice.label, &selected.target, &name, "nominate"];
        let params = SelectParams {
            candidates: vec![],
            shapes: vec![],
            bench: vec![],
            most_classes: 1,
            pinned: BTreeMap::new(),
            margin: MARGIN,
            hot: false,
            timed: true,
            answers: false,
            shortlist: None,
            finals: None,
            challenge: true,
        };
        let mut node =
            NodeBuilder::new(StepKind::Select, &parts, labels, &params).round(selected.stage.round).expands();
        for (at, one) in possible.iter().enumerate() {
            node = node.optional(&format!("attribution:{at}"), &one.attribute, "attribution");
        }
        self.later = PHASES * (selected.challenge + 1);
        let id = self.add(node.done());
        self.later = 0;
        let (selected, decision) = (selected.clone(), decision.to_string());
        let champions = champions.to_vec();
        self.challenges.insert(id, Arc::new(Challenge { selected, decision, champions, without: possible }));
        Ok(true)
    }

    /// Whether a kernel without a method is a variant of the declared space.
    fn is_in_space(scope: Scope<'_>, build: &PlannedVariant) -> Result<bool, Diagnostic> {
        let kernel = scope.of(build).kernel;
        Ok(build.without.is_empty() && kernel.variant(scope.target, scope.choice, &build.variant.values)?.is_some())
    }

    /// Plans the selection in which the kernels without the named methods take part; if none was named, what follows the selection.
    pub(super) fn challenged(&mut self, challenge: &Challenge, nomination: &Nomination) -> Result<(), Diagnostic> {
        let selected = &challenge.selected;
        (self.later, self.wave) = (PHASES * (selected.challenge + 1), 1);
        let named = nomination.classes.iter().flat_map(|class| class.near.iter());
        let named: Vec<_> = named.filter_map(|at| challenge.without.get(*at as usize)).collect();
        let planned = match named.is_empty() {
            true => self.settled(selected, &challenge.champions),
            false => self.again(challenge, &named),
        };
        (self.later, self.wave) = (0, 0);
        planned
    }

    fn again(&mut self, challenge: &Challenge, named: &[&Without]) -> Result<(), Diagnostic> {
        let selected = &*challenge.selected;
        let Some(found) = self.found(selected) else { return Ok(()) };
        let scope = found.scope(&selected.choice, selected.stage.round);
        let name = challenge_name(selected.challenge + 1);
        let (mut field, mut pairs) = (selected.field.clone(), selected.pairs.clone());
        for without in named {
            let known = field.builds.iter().find(|b| b.label == without.build.label).map(|b| b.variant.order);
            let order = match known {
                Some(order) => order,
                None => {
                    // The order of a contender is its position. A search visits a part of the space, so the number in declared order may be another
                    // contender's position.
                    let order = field.builds.len() as u32;
                    let variant = Variant { order, ..without.build.variant.clone() };
                    // The steps of attribution are about the champion, so a contender has steps of its own, with the same keys.
                    let build =
                        PlannedVariant { variant, method: None, without: name.clone(), ..without.build.clone() };
                    self.enter(scope, build, &selected.cases, &mut field, None)?;
                    order
                }
            };
            // A contender that was timed with few samples only is timed in full.
            let contender = field.builds.iter().zip(&field.serves).find(|(b, _)| b.variant.order == order);
            let Some((build, serves)) = contender.map(|(b, s)| (b.clone(), s.clone())) else { continue };
            for at in serves.iter().map(|at| *at as usize) {
                let timed = field.benched.iter().any(|(variant, case, _)| (*variant, *case) == (order, at));
                if !timed
                    && is_benched(&scope.operator.shapes[selected.cases[at].at])
                    && let Some(bench) = self.bench(scope, &build, &selected.cases[at])?
                {
                    field.benched.push((order, at, bench));
                }
            }
            for (at, pair) in &without.pairs {
                let (a, b) = if pair.turned { (without.champion, order) } else { (order, without.champion) };
                let source = Source::Output { node: pair.id.clone(), name: "observation".into(), required: false };
                pairs.insert(format!("pairs:{a}:{b}:{at}"), InputRef { source, form: Form::Blob });
            }
        }
        let (mut node, again) = self.deciding(scope, field, &selected.cases, selected.stage.clone(), &name)?;
        node.inputs.extend(pairs.clone());
        let id = self.add(node);
        self.superseded.insert(challenge.decision.clone(), id.clone());
        let again = Selected { pairs, challenge: selected.challenge + 1, ..again };
        self.selected.insert(id, Arc::new(again));
        Ok(())
    }
}

/// The part of the ids of a challenge's steps.
pub(crate) fn challenge_name(number: u8) -> String {
    format!("challenge-{number}")
}
