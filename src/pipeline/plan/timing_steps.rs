//! Steps that time variants on a device: bench of one, and pairs of two. Knows the variants; does not know which is champion.

use std::collections::BTreeMap;

use super::calls::{CALLS_PROTOCOL, is_called};
use super::context::{Planner, Scope, is_benched};
use super::input::Goal;
use super::memory;
use super::node_builder::{MAIN, NodeBuilder};
use super::operators::{Case, scaled};
use super::pair_order::{by_content, is_turned};
use super::variants::PlannedVariant;
use kforge_foundation::base::Diagnostic;
use kforge_types::model::{Arch, Language, Metric};
use kforge_types::record::StepKind;
use kforge_types::record::params::PairsParams;

/// Version of the timing protocol. Raise it when what a sample is, or how it is taken, changes.
pub const BENCH_PROTOCOL: u32 = 4;

/// Version of the pairing protocol. Raise it when the way of taking pairs changes. 3: the order of each block is drawn, covers slots, checks and warming, and is
/// recorded; orders that disagree get more blocks.
pub const PAIRS_PROTOCOL: u32 = 3;

impl Planner<'_> {
    /// The bench step of a variant on a bench shape of a device target; none if nothing is timed.
    pub fn bench(
        &mut self,
        scope: Scope<'_>,
        build: &PlannedVariant,
        case: &Case,
    ) -> Result<Option<String>, Diagnostic> {
        self.timing(scope, build, case, None, None)
    }

    /// Like [`Planner::bench`], with at most `few` samples of the series that selection uses, and a separate id. It starts once the step `after` has ended, if
    /// there is one: the outputs of a verified variant are known, and a timing would otherwise have to find them out.
    pub fn timing(
        &mut self,
        scope: Scope<'_>,
        build: &PlannedVariant,
        case: &Case,
        few: Option<u32>,
        after: Option<String>,
    ) -> Result<Option<String>, Diagnostic> {
        let shape = &scope.operator.shapes[case.at];
        if !is_timed(scope) || !is_benched(shape) || self.input.goal < Goal::Bench {
            return Ok(None);
        }
        let compiler = Self::compiler(scope, case.work);
        let (compile, inspect) = self.compile(scope, build, compiler, MAIN, Some(&case.problem))?;
        let mut params = self.verify_params(scope, build, case, compiler, &BTreeMap::new())?;
        params.protocol = BENCH_PROTOCOL;
        if few.is_none() {
            // Launches on inputs of a stress class are compared with the expected values, and judged when a champion is confirmed.
            params.scaled = scaled(&case.tolerance);
        }
        params.samples = few;
        params.only = few.map(|_| scope.kernel.select.metric);
        params.flops_min = scope.operator.flops_min(scope.choice, shape)?;
        params.bytes = scope.operator.bytes(scope.choice, shape)?;
        let mut parts = self.parts(scope, build);
        parts.push(&shape.name);
        parts.extend(few.map(|_| "few"));
        let node = NodeBuilder::new(StepKind::Bench, &parts, self.labels(scope, build, Some(&shape.name)), &params)
            .round(scope.round)
            .memory(memory::timing(&params))
            .after(after)
            .build("", &compile, &inspect)
            .device(self.observed(scope), true)
            .unless(self.no_device(scope));
        let functions = self.input_functions(scope.package, &case.problem);
        Ok(Some(self.add(functions.read_by(node).done())))
    }

    /// The pairs step of two variants on a bench shape. It is the same step for `y` and `x`; its labels are those of the one that was named first when it was
    /// planned.
    pub fn pairs(
        &mut self,
        scope: Scope<'_>,
        x: &PlannedVariant,
        y: &PlannedVariant,
        case: &Case,
        phase: u8,
    ) -> Result<PairStep, Diagnostic> {
        self.pairs_between((scope, x), (scope, y), case, phase)
    }

    /// Like [`Planner::pairs`], of variants of two kernels of one operator that select by the same times.
    pub(super) fn pairs_between(
        &mut self,
        x: (Scope<'_>, &PlannedVariant),
        y: (Scope<'_>, &PlannedVariant),
        case: &Case,
        phase: u8,
    ) -> Result<PairStep, Diagnostic> {
        let called = is_called(x.0);
        // Outputs of calls are judged under the tolerance, and those of launches only compared with earlier ones.
        let tolerance = if called { case.tolerance.clone() } else { BTreeMap::new() };
        let launched = |(scope, build): (Scope<'_>, &PlannedVariant)| {
            self.verify_params(scope, build, case, Self::compiler(scope, case.work), &tolerance)
        };
        let (of_x, of_y) = (launched(x)?, launched(y)?);
        let compiled = |(scope, build): (Scope<'_>, &PlannedVariant)| {
            self.compile_params(scope, build, Self::compiler(scope, case.work), Some(&case.problem))
        };
        let (as_x, as_y) = (compiled(x)?, compiled(y)?);
        let turned = is_turned(&of_x, &of_y, || by_content(&as_x, &as_y));
        let (a, b, of_a, of_b) = if turned { (y, x, of_y, of_x) } else { (x, y, of_x, of_y) };
        let scope = x.0;
        let params = PairsParams {
            arch: scope.target.arch.name().into(),
            hot: scope.kernel.select.metric == Metric::Hot && !called,
            a: of_a,
            b: of_b,
            protocol: if called { CALLS_PROTOCOL } else { PAIRS_PROTOCOL },
        };
        let shape = &scope.operator.shapes[case.at].name;
        let mut parts = self.parts(a.0, a.1);
        parts.push(shape);
        let other = if a.0.kernel.name == b.0.kernel.name { "" } else { &b.0.kernel.name };
        if [other, &b.1.label, &b.1.without].iter().any(|part| !part.is_empty()) {
            parts.extend(["against", other, &b.1.label, &b.1.without]);
        }
        let mut node = NodeBuilder::new(StepKind::Pairs, &parts, self.labels(scope, x.1, Some(shape)), &params)
            .phase(phase)
            .round(scope.round)
            .memory(memory::timing(&params.a).saturating_add(memory::timing(&params.b)))
            .device(self.observed(scope), true)
            .unless(self.no_device(scope));
        for (side, (scope, build)) in [(":a", a), (":b", b)] {
            let compiler = Self::compiler(scope, case.work);
            let (compile, inspect) = self.compile(scope, build, compiler, phase, Some(&case.problem))?;
            node = node.build(side, &compile, &inspect);
        }
        if called {
            let node = self.paired_calls(scope, case, &params, node).done();
            return Ok(PairStep { id: self.add(node), turned });
        }
        let functions = self.input_functions(scope.package, &case.problem);
        Ok(PairStep { id: self.add(functions.read_by(node).done()), turned })
    }
}

/// A pairs step as one of its two variants sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairStep {
    /// The id of the step.
    pub id: String,
    /// Whether the variant is B of the step's parameters rather than A.
    pub turned: bool,
}

/// Whether a kernel is timed on a target. A kernel's own launcher shares the process, the context and the clock with the code that would take its times, so its
/// times could not be trusted (docs/design.md, section 5). What is timed of a kernel in PyTorch are its calls, by the clock of another process ([`super::calls`]).
pub fn is_timed(scope: Scope<'_>) -> bool {
    scope.target.arch != Arch::Cpu && scope.kernel.host.is_none() && scope.kernel.language != Language::Torch
}
