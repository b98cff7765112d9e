//! The timed calls of kernels in PyTorch: a step that times a variant's calls at a bench shape and the judgement of what they gave; pairs of two variants, whose
//! calls are timed in turn, and the judgements of both. Knows the variants; does not know how calls are timed. Pure.
//!
//! Selection reads call times as it reads the times of benches, and never beside them: a kernel in PyTorch competes with kernels in PyTorch only. A call that is
//! wrong while it is timed fails the kernel, as for the confirmation of other champions.

use super::context::{Planner, Scope, is_benched};
use super::input::Goal;
use super::memory;
use super::node_builder::{MAIN, NodeBuilder};
use super::operators::Case;
use super::timing_steps::PairStep;
use super::variants::{CONFIRMED, PlannedVariant};
use kforge_engine::{InputRef, Source};
use kforge_foundation::base::Diagnostic;
use kforge_types::model::{Arch, Language};
use kforge_types::record::event::Labels;
use kforge_types::record::params::{JudgeParams, PairsParams};
use kforge_types::record::{Form, StepKind};

/// Version of the protocol of timed calls. Raise it when what a call time is, how it is taken, or what is compared changes.
pub const CALLS_PROTOCOL: u32 = 2;

/// The time limit of a step in seconds: a kernel may compile something before its first call, and expected values may take long.
pub(super) const TIME_LIMIT_S: u64 = 1800;

/// Whether calls of a kernel are timed on a target, in place of its launches.
pub fn is_called(scope: Scope<'_>) -> bool {
    scope.target.arch != Arch::Cpu && scope.kernel.language == Language::Torch
}

/// The steps of a variant's timed calls at a bench shape: that which times them, and their judgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalledSteps {
    /// The step that times calls.
    pub calls: String,
    /// The judgement of what they gave.
    pub judge: String,
}

/// The judgements of two contenders' calls in a pairs step at a shape, as inputs of a selection.
pub(super) fn sound((x, y): (u32, u32), shape: u32, judged: [String; 2]) -> [(String, InputRef); 2] {
    let [of_x, of_y] = judged.map(|node| {
        let source = Source::Output { node, name: "judgement".into(), required: false };
        InputRef { source, form: Form::Blob }
    });
    [(format!("sound:{x}:{y}:{shape}"), of_x), (format!("sound:{y}:{x}:{shape}"), of_y)]
}

impl CalledSteps {
    /// Adds them to a selection, as those of a contender at a shape.
    pub(super) fn read_by(&self, node: NodeBuilder, (contender, shape): (u32, impl std::fmt::Display)) -> NodeBuilder {
        node.optional(&format!("called:{contender}:{shape}"), &self.calls, "observation").optional(
            &format!("confirmed:{contender}:{shape}"),
            &self.judge,
            "judgement",
        )
    }
}

impl Planner<'_> {
    /// Plans the timed calls of a variant in PyTorch at a bench shape; none if nothing is timed there.
    pub(super) fn calls(
        &mut self,
        scope: Scope<'_>,
        build: &PlannedVariant,
        case: &Case,
    ) -> Result<Option<CalledSteps>, Diagnostic> {
        let shape = &scope.operator.shapes[case.at];
        // Without expected values there is no time, because nothing would show that a timed call is correct.
        if !is_called(scope) || !is_benched(shape) || case.oracles.is_none() || self.input.goal < Goal::Build {
            return Ok(None);
        }
        let compiler = Self::compiler(scope, case.work);
        let (compile, inspect) = self.compile(scope, build, compiler, MAIN, Some(&case.problem))?;
        let mut params = self.verify_params(scope, build, case, compiler, &case.tolerance)?;
        params.protocol = CALLS_PROTOCOL;
        if let Some(launch) = &mut params.torch {
            launch.recorded = scope.kernel.torch.as_ref().is_some_and(|torch| torch.policy.is_some());
        }
        let own = self.own_functions(scope.package, &case.problem, &params.compare);
        let mut parts = self.parts(scope, build);
        parts.extend([shape.name.as_str(), CONFIRMED]);
        let mut labels = self.labels(scope, build, Some(&shape.name));
        labels.confirms = true;
        let verified = self.verification(scope, build, case);
        let node = NodeBuilder::new(StepKind::Calls, &parts, labels.clone(), &params)
            .round(scope.round)
            .limit(TIME_LIMIT_S)
            .memory(memory::verify(&params).saturating_add(self.products(&case.problem)))
            .after(verified)
            .build("", &compile, &inspect)
            .device(self.observed(scope), true)
            .unless(self.no_device(scope));
        let node = self.with_torch(scope, own.read_by(node));
        let calls = self.add(node.done());
        let judge = self.called_judge((scope, case), ("", labels, MAIN), (&calls, "observation"));
        Ok(Some(CalledSteps { calls, judge }))
    }

    /// Adds what runs PyTorch on a device to a step.
    pub(super) fn with_torch(&self, scope: Scope<'_>, node: NodeBuilder) -> NodeBuilder {
        let tools = &self.package_input(scope.package).toolchains;
        node.tool("toolchain:python", &tools.python)
            .tool("toolchain:torch", &tools.torch)
            .tool("toolchain:torch-cuda", &tools.torch_cuda)
    }

    /// Plans the judgement of the timed calls of a variant that a step gives as an output of that name; `part` tells it from others of that step. Returns its id.
    pub(super) fn called_judge(
        &mut self,
        (scope, case): (Scope<'_>, &Case),
        (part, labels, phase): (&str, Labels, u8),
        (step, output): (&str, &str),
    ) -> String {
        // Kernels are recorded in no other step than that which times a variant by itself.
        let judged = self.judging((scope, case), output == "observation");
        let calibration = self.calibration_id(scope.package, scope.operator, scope.choice);
        let of = step.rsplit_once('/').map_or(step, |(of, _)| of);
        let judge = NodeBuilder::new(StepKind::Judge, &[of, part], labels, &judged)
            .phase(phase)
            .round(scope.round)
            .optional("calibration", &calibration, &case.indecision())
            .binding();
        self.add(judge.optional("called", step, output).done())
    }

    /// What the judgement of a variant at a shape reads beside what was observed while it was timed.
    pub(super) fn judging(&self, (scope, case): (Scope<'_>, &Case), confirms: bool) -> JudgeParams {
        JudgeParams {
            tolerance: case.tolerance.clone(),
            absent: self.absence(scope, case),
            confirms,
            policy: scope.kernel.torch.as_ref().filter(|_| confirms).and_then(|of| of.policy.clone()),
            known_inputs: case.problem.stored().map(|(tensor, ..)| tensor.name.clone()).collect(),
        }
    }

    /// The judgements of the calls of two variants in a pairs step, as those who compare `x` with `y` name them: of `x`, and of `y`.
    pub(super) fn judged_pairs(
        &mut self,
        x: (Scope<'_>, &PlannedVariant),
        y: (Scope<'_>, &PlannedVariant),
        case: &Case,
        (pair, phase): (&PairStep, u8),
    ) -> [String; 2] {
        // After the pairs, and before whatever reads them.
        let phase = phase + 1;
        [(x, pair.turned), (y, !pair.turned)].map(|((scope, build), is_b)| {
            let output = if is_b { "called-b" } else { "called-a" };
            let mut labels = self.labels(scope, build, Some(&scope.operator.shapes[case.at].name));
            labels.confirms = true;
            self.called_judge((scope, case), (output, labels, phase), (&pair.id, output))
        })
    }

    /// The pairs step of two variants in PyTorch, with what it reads beside their sources.
    pub(super) fn paired_calls(
        &mut self,
        scope: Scope<'_>,
        case: &Case,
        params: &PairsParams,
        node: NodeBuilder,
    ) -> NodeBuilder {
        let own = self.own_functions(scope.package, &case.problem, &params.a.compare);
        let node = own.read_by(node.limit(TIME_LIMIT_S));
        self.with_torch(scope, node)
    }
}
