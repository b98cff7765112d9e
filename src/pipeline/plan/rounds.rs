//! The recorded rounds of a kernel's optimization: the candidates of each, the selection after each, and what the next round would try. Pure: knows the
//! answers; asks no agent.
//!
//! # Why rounds are planned from records
//!
//! An agent's answer is not a function of its inputs, so a plan cannot compute it. Answers are recorded, and a plan continues from the records. What rounds 1
//! to n tried is an input of the plan, as sources are: these candidates are compiled, verified and timed like declared variants. After each round one selection
//! over all candidates so far decides the champion; the last selection's champion is the kernel's. So a build replays the records regardless of later
//! measurements and asks no agent, and a champion that loses its place in a new measurement changes no answer.
//!
//! A step (`round`) decides what a round tries. It reads the roofline and the attributions of the champion before it. The plan holds one more such step than
//! there are recorded rounds, and, unless that step ends the rounds, a step after it that is unavailable until someone runs `kforge optimize`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::context::{Planner, Scope};
use super::input::{Attempt, Goal};
use super::kernels::{Field, Selected, Stage};
use super::node_builder::{ABLATION, NodeBuilder};
use super::operators::Case;
use super::variants::{PlannedVariant, WrittenKernel, label_of};
use kforge_engine::Node;
use kforge_foundation::base::Diagnostic;
use kforge_types::model::agent::RULES;
use kforge_types::model::generate::GENERATED;
use kforge_types::model::{Arch, Axis, Kernel, Variant};
use kforge_types::record::StepKind;
use kforge_types::record::event::Labels;
use kforge_types::record::params::GenerateParams;
use kforge_types::record::round::{Decision, OpenMethod, RoundParams};

/// The variants of one round.
#[derive(Clone, Default)]
pub struct RoundVariants {
    /// The round, from 1.
    pub round: u32,
    /// Its variants, repairs after what they repair. Variants that were contenders before are left out.
    pub builds: Vec<PlannedVariant>,
}

/// A round that waits for its decision.
#[derive(Clone)]
pub struct Waiting {
    /// The step that represents the missing answer.
    pub answer: Node,
}

impl Planner<'_> {
    /// The variants of the recorded rounds, in order. `declared` are the variants that need no rounds.
    pub(super) fn tried(
        &self,
        scope: Scope<'_>,
        declared: &[PlannedVariant],
    ) -> Result<Vec<RoundVariants>, Diagnostic> {
        let mut labels: Vec<String> = declared.iter().map(|b| b.label.clone()).collect();
        let mut out: Vec<RoundVariants> = Vec::new();
        for attempt in self.attempts(scope) {
            if out.last().is_none_or(|last| last.round != attempt.round) {
                out.push(RoundVariants { round: attempt.round, builds: vec![] });
            }
            for build in self.branches(scope, attempt)? {
                if !labels.contains(&build.label)
                    && let Some(last) = out.last_mut()
                {
                    labels.push(build.label.clone());
                    last.builds.push(build);
                }
            }
        }
        Ok(out)
    }

    /// The recorded attempts at the rounds of a kernel.
    fn attempts(&self, scope: Scope<'_>) -> &[Attempt] {
        let seat = (scope.kernel.name.clone(), scope.choice.label.clone(), scope.target.name.clone());
        self.package_input(scope.package).tried.get(&seat).map_or(&[], Vec::as_slice)
    }

    /// The variants of one attempt that still exist: a space may have changed since.
    fn branches(&self, scope: Scope<'_>, attempt: &Attempt) -> Result<Vec<PlannedVariant>, Diagnostic> {
        let name = match attempt.attempt {
            0 => format!("r{}", attempt.round),
            repair => format!("r{}.{repair}", attempt.round),
        };
        let written = attempt
            .written
            .as_ref()
            .map(|kernel| Arc::new(WrittenKernel { written_in: name.clone(), kernel: kernel.clone() }));
        let kernel = written.as_ref().map_or(scope.kernel, |w| &w.kernel);
        let mut out = vec![];
        for values in &attempt.branches {
            let Some(variant) = kernel.variant(scope.target, scope.choice, values)? else { continue };
            let plain = self.build_of(scope, &variant);
            out.push(match &written {
                None => PlannedVariant { round: attempt.round, ..plain },
                Some(written) => PlannedVariant {
                    label: label_of(&[&scope.choice.label, &name, &variant.label]),
                    source: written.kernel.source.clone(),
                    written: Some(written.clone()),
                    round: attempt.round,
                    ..plain
                },
            });
        }
        Ok(out)
    }

    /// Plans the candidates of every recorded round, and the selection after each.
    pub(super) fn rounds(
        &mut self,
        scope: Scope<'_>,
        mut field: Field,
        cases: &[Case],
        tried: Vec<RoundVariants>,
    ) -> Result<(), Diagnostic> {
        let last = tried.last().map_or(0, |t| t.round);
        let mut stage = Stage { is_last: last == 0, ..Stage::default() };
        let selects = self.input.goal == Goal::Build;
        if selects && field.builds.is_empty() {
            let params = self.round_params(scope, 1, None, &[]);
            self.decision(scope, params, BTreeMap::new());
        }
        if selects && !field.builds.is_empty() {
            stage = self.staged(scope, &field, cases, stage)?;
        }
        for round in tried {
            for build in round.builds {
                self.enter(Scope { round: round.round, ..scope }, build, cases, &mut field, None)?;
            }
            if selects && !field.builds.is_empty() {
                let next = Stage { round: round.round, is_last: round.round == last, ..stage };
                stage = self.staged(scope, &field, cases, next)?;
            }
        }
        // If there is nothing to select from, only the next round can follow.
        if selects && field.builds.is_empty() {
            self.awaits_no_longer(scope);
            match scope.kernel.rounds.as_ref().is_some_and(|rounds| last < rounds.rounds) {
                true => {
                    let params = self.round_params(scope, last + 1, None, &[]);
                    self.decision(scope, params, BTreeMap::new());
                }
                false => {
                    let name = &scope.kernel.name;
                    let why = format!(
                        "no answer of its rounds contains a kernel: `kforge optimize {name} --rounds {}` asks again",
                        last + 1
                    );
                    let answer = self.missing(scope, last + 1, &why).done();
                    self.add(answer);
                }
            }
        }
        Ok(())
    }

    /// Plans one selection; returns the stage that the next one comes after.
    fn staged(&mut self, scope: Scope<'_>, field: &Field, cases: &[Case], stage: Stage) -> Result<Stage, Diagnostic> {
        let id = self.select(Scope { round: stage.round, ..scope }, field.clone(), cases, stage.clone())?;
        let parts = self.seat(scope, &stage.name(), StepKind::Select);
        Ok(Stage { after: Some(id), decided: Some(parts), ..stage })
    }

    /// The id of a step that belongs to a kernel on a target, but to no variant.
    fn seat(&self, scope: Scope<'_>, part: &str, kind: StepKind) -> String {
        let package = &self.package_input(scope.package).package.name;
        let parts = [package.as_str(), &scope.kernel.name, &scope.choice.label, &scope.target.name, part, kind.name()];
        parts.iter().filter(|p| !p.is_empty()).copied().collect::<Vec<_>>().join("/")
    }

    /// Plans the decision of the round after a selection, once its champion is known and the attributions of the champion's methods are planned.
    pub(super) fn next_round(&mut self, selected: &Selected, champion: Option<u32>) {
        let Some(found) = self.found(selected) else { return };
        let scope = found.scope(&selected.choice, selected.stage.round);
        let round = selected.stage.round + 1;
        if self.is_accepted(scope) {
            return;
        }
        if scope.kernel.rounds.as_ref().is_none_or(|rounds| round > rounds.rounds) {
            return;
        }
        let build = champion.and_then(|order| selected.builds.iter().find(|b| b.variant.order == order));
        // If nothing is timed, a correct kernel leaves nothing to improve.
        if scope.target.arch == Arch::Cpu && build.is_some() {
            return;
        }
        let params = self.round_params(scope, round, build, &selected.builds);
        let mut inputs = BTreeMap::new();
        if let Some(build) = build {
            let parts = self.parts(scope, build);
            let id = |extra: &[&str]| {
                parts.iter().chain(extra).filter(|p| !p.is_empty()).copied().collect::<Vec<_>>().join("/")
            };
            inputs.insert("roofline".to_string(), (id(&[StepKind::Roofline.name()]), "roofline"));
            for method in &scope.of(build).kernel.methods {
                let attribute = id(&[&method.id, StepKind::Attribute.name()]);
                inputs.insert(format!("attribution:{}", method.id), (attribute, "attribution"));
            }
        }
        let before = self.seat(scope, &format!("r{}", round - 1), StepKind::Round);
        inputs.insert("before".into(), (before, "decision"));
        self.decision(scope, params, inputs);
    }

    /// The step that decides a round. Inputs whose steps do not exist are left out.
    fn decision(&mut self, scope: Scope<'_>, params: RoundParams, inputs: BTreeMap<String, (String, &str)>) {
        let name = format!("r{}", params.round);
        let id = self.seat(scope, &name, StepKind::Round);
        if self.ids.contains(&id) {
            return;
        }
        let labels = self.labels_of_round(scope, params.round);
        let answered = self.attempts(scope).iter().any(|a| a.round == params.round);
        let parts = [
            labels.package.clone(),
            scope.kernel.name.clone(),
            scope.choice.label.clone(),
            scope.target.name.clone(),
            name,
        ];
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        // The step reads the previous stage's results, so its rank is the last of that stage.
        let mut node = NodeBuilder::new(StepKind::Round, &parts, labels.clone(), &params)
            .phase(ABLATION)
            .round(params.round - 1)
            .advisory();
        for (input, (from, output)) in &inputs {
            if self.ids.contains(from) {
                node = node.optional(input, from, output);
            }
        }
        if answered {
            self.add(node.done());
            return;
        }
        let why = format!("round {} has no record: `kforge optimize {}` asks for one", params.round, scope.kernel.name);
        let answer = self.missing(scope, params.round, &why).output("decision", &id, "decision");
        let id = self.add(node.expands().done());
        self.waiting.insert(id, Waiting { answer: answer.done() });
    }

    /// Reports a kernel that is not written yet.
    pub(super) fn unwritten(&mut self, scope: Scope<'_>) {
        let why = format!("it is not written yet: `kforge optimize {}` asks for one", scope.kernel.name);
        let answer = self.missing(scope, 1, &why).done();
        self.add(answer);
    }

    /// The step that represents a missing answer.
    fn missing(&self, scope: Scope<'_>, round: u32, why: &str) -> NodeBuilder {
        let labels = self.labels_of_round(scope, round);
        let (kernel, name) = (&scope.kernel.name, format!("r{round}"));
        let ending = scope.kernel.language.ending();
        let params = GenerateParams { main: format!("{GENERATED}/{kernel}-{name}.{ending}") };
        let parts = [labels.package.as_str(), kernel, &scope.choice.label, &scope.target.name, &name];
        NodeBuilder::new(StepKind::Generate, &parts, labels.clone(), &params).round(round).unavailable(why)
    }

    fn labels_of_round(&self, scope: Scope<'_>, round: u32) -> Labels {
        Labels {
            package: self.package_input(scope.package).package.name.clone(),
            kernel: Some(scope.kernel.name.clone()),
            operator: Some(scope.operator.name.clone()),
            target: Some(scope.target.name.clone()),
            types: Some(scope.choice.label.clone()).filter(|label| !label.is_empty()),
            round: Some(round),
            ..Labels::default()
        }
    }

    /// Plans what follows a decision: nothing if it says stop, otherwise the missing answer.
    pub(super) fn decided(&mut self, waiting: Waiting, decision: &Decision) {
        if decision.stop.is_none() {
            self.add(waiting.answer);
        }
    }

    /// The parameters of a round's decision, without the observations. `candidates` are the variants that were tried so far.
    fn round_params(
        &self,
        scope: Scope<'_>,
        round: u32,
        champion: Option<&PlannedVariant>,
        candidates: &[PlannedVariant],
    ) -> RoundParams {
        let kernel = champion.map_or(scope.kernel, |build| scope.of(build).kernel);
        let writes = scope.kernel.rounds.as_ref().is_some_and(|rounds| rounds.agent.value != RULES);
        let on = |id: &str| {
            let method = kernel.methods.iter().find(|m| m.id == id);
            champion.zip(method).is_some_and(|(build, method)| kernel.without(&build.variant, method).is_some())
        };
        let mut methods: Vec<OpenMethod> = kernel
            .methods
            .iter()
            .map(|m| OpenMethod {
                id: m.id.clone(),
                axis: m.axis,
                on: on(&m.id),
                possible: writes || self.turns(scope, kernel, m, candidates),
            })
            .collect();
        if writes {
            // A method without a form in the kernel's language is none that an agent can add.
            let known = self.input.methods.keys().filter(|id| (self.input.has_form)(id, kernel.language));
            let known = known.filter(|id| !kernel.methods.iter().any(|m| m.id == **id));
            let other =
                |id: &String| Some(OpenMethod { id: id.clone(), axis: Axis::of(id)?, on: false, possible: true });
            methods.extend(known.filter_map(other));
        }
        methods.sort_by(|a, b| a.id.cmp(&b.id));
        let mut tried: Vec<Vec<String>> = vec![vec![]; round as usize - 1];
        for attempt in self.attempts(scope) {
            if let Some(of) = tried.get_mut(attempt.round as usize - 1) {
                of.clone_from(&attempt.methods);
            }
        }
        RoundParams {
            round,
            arch: scope.target.arch.name().into(),
            from_nothing: champion.is_none(),
            facts: (self.input.facts)(scope.operator, scope.choice, kernel),
            methods,
            tried,
        }
    }

    /// Whether a kernel has a variant outside `candidates` in which the method's switch turns it off. If all variants with the method were tried, choosing it
    /// would take a slot from another method and try nothing.
    fn turns(
        &self,
        scope: Scope<'_>,
        kernel: &Kernel,
        method: &kforge_types::model::Method,
        candidates: &[PlannedVariant],
    ) -> bool {
        let tried: BTreeSet<_> = candidates.iter().filter(|b| b.written.is_none()).map(|b| &b.variant.values).collect();
        let untried = |variant: &&Variant| !tried.contains(&variant.values);
        kernel
            .variants(scope.target, scope.choice)
            .is_ok_and(|all| all.iter().filter(untried).any(|variant| kernel.without(variant, method).is_some()))
    }
}
