//! Timing of many variants: first a few samples of each, then a full timing only of those that may be the fastest. Knows how to turn the variants that a step
//! names into steps; [`kforge_numerics::measure::select::finalists`] names them. Pure.
//!
//! | wave | holds |
//! |---|---|
//! | 0 | every variant, verified and timed with few samples, and the step that names which variants to time in full |
//! | n | full timings of the named variants, and the step that names further ones, in case some of these failed or gave no answer |
//! | the last | selection, only by full timings |
//!
//! A full timing includes all checks against kernels that behave differently when they are timed. So no variant becomes champion without one, and a variant
//! that was fast by cheating is excluded once it fails there.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::calls::is_called;
use super::context::{Planner, Scope};
use super::input::Goal;
use super::kernels::{Field, Stage};
use super::node_builder::NodeBuilder;
use super::operators::Case;
use super::search::FEW;
use super::timing_steps::is_timed;
use kforge_foundation::base::Diagnostic;
use kforge_types::model::TypeChoice;
use kforge_types::record::StepKind;
use kforge_types::record::event::Labels;
use kforge_types::record::params::{Finals, Nomination, Nominees, SelectParams};

/// With more variants than this, few samples come first. This many are timed in full within seconds, and their times are worth having.
const MANY: usize = 8;

/// Selects the variants to time in full: those whose fastest of few samples is within 7 % of the best. Medians of separate runs of one binary differ by up to 5
/// % as clocks and temperatures change, and samples of one run by 2 %. If a slower variant could win, every one of its samples would have been unlucky.
const FINALS: Finals = Finals { within: 0.07, correct: false };

/// What expands a step that names finalists.
#[derive(Clone)]
pub struct Contest {
    /// Position of the package.
    pub(super) package: usize,
    /// The kernel's name.
    pub(super) kernel: String,
    /// The target's name.
    pub(super) target: String,
    /// The choice of types.
    pub(super) choice: TypeChoice,
    /// Every contender, with benches of few samples.
    field: Field,
    cases: Vec<Case>,
    /// Full benches: contender, case, id.
    full: Vec<(u32, usize, String)>,
    wave: u32,
}

impl Planner<'_> {
    /// The number of samples with which the variants of a kernel are first timed; none if all are timed in full at once.
    pub(super) fn few(&self, scope: Scope<'_>, variants: usize) -> Option<u32> {
        let timed = is_timed(scope) && scope.kernel.rounds.is_none();
        (timed && self.input.goal == Goal::Build && variants > MANY).then_some(FEW)
    }

    /// Plans the naming of finalists and everything that follows. The field's benches have few samples.
    pub(super) fn finals(&mut self, scope: Scope<'_>, field: Field, cases: Vec<Case>) -> Result<(), Diagnostic> {
        if field.benched.is_empty() && !is_called(scope) {
            let only = Stage { is_last: true, ..Stage::default() };
            return self.select(scope, field, &cases, only).map(drop);
        }
        self.contest(
            scope,
            Contest {
                package: scope.package,
                kernel: scope.kernel.name.clone(),
                target: scope.target.name.clone(),
                choice: scope.choice.clone(),
                field,
                cases,
                full: vec![],
                wave: self.wave,
            },
        )
    }

    /// The step that names finalists.
    fn contest(&mut self, scope: Scope<'_>, contest: Contest) -> Result<(), Diagnostic> {
        let (_, params) = self.selection(scope, &contest.field, &contest.cases, true)?;
        let params = SelectParams { finals: Some(Finals { correct: is_called(scope), ..FINALS }), ..params };
        let package = self.package_input(scope.package).package.name.clone();
        let labels = Labels {
            package: package.clone(),
            kernel: Some(contest.kernel.clone()),
            operator: Some(scope.operator.name.clone()),
            target: Some(contest.target.clone()),
            ..Labels::default()
        };
        let wave = format!("finals-{}", contest.wave);
        let parts = [package.as_str(), &contest.kernel, &scope.choice.label, &contest.target, &wave];
        let node = NodeBuilder::new(StepKind::Select, &parts, labels, &params).expands();
        let mut node = self.judged_by(scope, node, &contest.field, &contest.cases)?;
        for (name, benches) in [("few", &contest.field.benched), ("bench", &contest.full)] {
            for (variant, shape, bench) in benches {
                node = node.optional(&format!("{name}:{variant}:{shape}"), bench, "observation");
            }
        }
        let id = self.add(node.done());
        self.contests.insert(id, Arc::new(contest));
        Ok(())
    }

    /// Plans full timings of the named variants, or the selection if none was named.
    pub(super) fn named(&mut self, contest: &Contest, nomination: &Nomination) -> Result<(), Diagnostic> {
        let Some(found) = self.find(contest.package, &contest.kernel, &contest.target) else { return Ok(()) };
        let scope = found.scope(&contest.choice, 0);
        let mut next = Contest { wave: contest.wave + 1, ..contest.clone() };
        let of_class = |class: &Nominees| -> Vec<(u32, u32)> {
            class.near.iter().flat_map(|variant| class.shapes.iter().map(|at| (*variant, *at))).collect()
        };
        let named: BTreeSet<(u32, u32)> = nomination.classes.iter().flat_map(of_class).collect();
        self.wave = next.wave;
        let planned = match is_called(scope) {
            true => self.call(scope, contest, &named),
            false => self.next_contest(scope, &mut next, &named),
        };
        self.wave = 0;
        planned
    }

    /// Plans the timed calls of variants in PyTorch that are correct, and the selection among all. Calls of the others would show nothing, and take long.
    fn call(&mut self, scope: Scope<'_>, contest: &Contest, named: &BTreeSet<(u32, u32)>) -> Result<(), Diagnostic> {
        let mut field = contest.field.clone();
        for (variant, at) in named {
            let build = contest.field.builds.iter().find(|build| build.variant.order == *variant);
            let (Some(build), at) = (build, *at as usize) else { continue };
            if let Some(called) = self.calls(scope, build, &contest.cases[at])? {
                field.called.push((*variant, at, called));
            }
        }
        let only = Stage { is_last: true, ..Stage::default() };
        self.select(scope, field, &contest.cases, only).map(drop)
    }

    /// `named` are variants with the positions of the shapes at which each is to be timed.
    fn next_contest(
        &mut self,
        scope: Scope<'_>,
        next: &mut Contest,
        named: &BTreeSet<(u32, u32)>,
    ) -> Result<(), Diagnostic> {
        if named.is_empty() {
            let field = Field { benched: next.full.clone(), ..next.field.clone() };
            let only = Stage { is_last: true, ..Stage::default() };
            return self.select(scope, field, &next.cases, only).map(drop);
        }
        let (field, asked) = (next.field.clone(), next.full.len());
        for build in &field.builds {
            for at in
                named.range((build.variant.order, 0)..=(build.variant.order, u32::MAX)).map(|(_, at)| *at as usize)
            {
                let known = next.full.iter().any(|(variant, case, _)| (*variant, *case) == (build.variant.order, at));
                if known {
                    continue;
                }
                if let Some(bench) = self.bench(scope, build, &next.cases[at])? {
                    next.full.push((build.variant.order, at, bench));
                }
            }
        }
        if next.full.len() == asked {
            // All of them were requested before, and no device has answered: they exclude no variant and are not requested again.
            next.field.benched.retain(|(variant, at, _)| !named.contains(&(*variant, *at as u32)));
        }
        self.contest(scope, next.clone())
    }
}
