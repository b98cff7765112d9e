//! The timed calls of champions in PyTorch: a step that times them at each bench shape, and the judgement of what they gave. Knows the champion; does not know
//! how calls are timed. Pure.
//!
//! Call times decide nothing: a kernel in PyTorch is champion as the first correct variant. A call that is wrong while it is timed fails the kernel, as for the
//! confirmation of other champions.

use super::context::{Planner, Scope, is_benched};
use super::kernels::Selected;
use super::memory;
use super::node_builder::{ABLATION, NodeBuilder};
use super::operators::Case;
use super::variants::{CONFIRMED, PlannedVariant};
use kforge_foundation::base::Diagnostic;
use kforge_types::record::StepKind;
use kforge_types::record::params::{Champion, JudgeParams};

/// Version of the protocol of timed calls. Raise it when what a call time is, how it is taken, or what is compared changes.
pub const CALLS_PROTOCOL: u32 = 1;

/// The time limit of a step in seconds: a kernel may compile something before its first call, and expected values may take long.
const TIME_LIMIT_S: u64 = 1800;

impl Planner<'_> {
    /// Plans the timed calls of a champion in PyTorch at the bench shapes of its classes.
    pub(super) fn called(
        &mut self,
        selected: &Selected,
        scope: Scope<'_>,
        build: &PlannedVariant,
        of: &[&Champion],
    ) -> Result<(), Diagnostic> {
        for (at, case) in selected.cases.iter().enumerate() {
            let serves = of.iter().any(|champion| champion.shapes.contains(&(at as u32)));
            // Without expected values there is no time, because nothing would show that a timed call is correct.
            if serves && is_benched(&scope.operator.shapes[case.at]) && case.oracles.is_some() {
                self.calls(scope, build, case)?;
            }
        }
        Ok(())
    }

    fn calls(&mut self, scope: Scope<'_>, build: &PlannedVariant, case: &Case) -> Result<(), Diagnostic> {
        let shape = &scope.operator.shapes[case.at].name;
        let compiler = Self::compiler(scope, case.work);
        let (compile, inspect) = self.compile(scope, build, compiler, ABLATION, Some(&case.problem))?;
        let mut params = self.verify_params(scope, build, case, compiler, &case.tolerance)?;
        params.protocol = CALLS_PROTOCOL;
        let policy = scope.kernel.torch.as_ref().and_then(|torch| torch.policy.clone());
        if let Some(launch) = &mut params.torch {
            launch.recorded = policy.is_some();
        }
        let own = self.own_functions(scope.package, &case.problem, &params.compare);
        let mut parts = self.parts(scope, build);
        parts.extend([shape.as_str(), CONFIRMED]);
        let mut labels = self.labels(scope, build, Some(shape));
        labels.confirms = true;
        let tools = &self.package_input(scope.package).toolchains;
        let node = NodeBuilder::new(StepKind::Calls, &parts, labels.clone(), &params)
            .phase(ABLATION)
            .round(scope.round)
            .limit(TIME_LIMIT_S)
            .memory(memory::verify(&params).saturating_add(self.products(&case.problem)))
            .build("", &compile, &inspect)
            .device(self.observed(scope), true)
            .unless(self.no_device(scope))
            .tool("toolchain:python", &tools.python)
            .tool("toolchain:torch", &tools.torch)
            .tool("toolchain:torch-cuda", &tools.torch_cuda);
        let judged = JudgeParams {
            tolerance: case.tolerance.clone(),
            absent: self.absence(scope, case),
            confirms: true,
            policy,
            known_inputs: case.problem.stored().map(|(tensor, ..)| tensor.name.clone()).collect(),
        };
        let calibration = self.calibration_id(scope.package, scope.operator, scope.choice);
        let judge = NodeBuilder::new(StepKind::Judge, &parts, labels, &judged)
            .phase(ABLATION)
            .round(scope.round)
            .optional("calibration", &calibration, &case.indecision())
            .binding();
        let calls = self.add(own.read_by(node).done());
        self.add(judge.optional("called", &calls, "observation").done());
        Ok(())
    }
}
