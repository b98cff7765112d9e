//! Baselines beside champions: PyTorch in place of a kernel, timed in turn with the champion of each bench shape. Knows which baselines an operator has; does
//! not know who is champion. Pure.
//!
//! The champion is part of the question: a ratio of two times that were not taken in turn would hold the state of the device. So another champion is timed
//! beside the baselines again, and an edit of a baseline measures only that baseline. Steps of baselines decide nothing: they are advisory, and come after
//! everything that decides. One thing counts all the same: a champion that is found wrong beside a baseline is a wrong kernel, whichever step saw it. Then a
//! judgement is added that fails it; where nothing is found of the champion, no step says so.
//!
//! A ratio above a baseline's `confirm_above` is measured again on a second device of the class. Where there is none, that measurement is unavailable and the
//! speed-up stands as unconfirmed; evidence of such a measurement answers it.

use std::sync::Arc;

use super::calls::{CALLS_PROTOCOL, is_called};
use super::context::{Planner, Scope};
use super::expand::by_number;
use super::input::Goal;
use super::kernels::Selected;
use super::memory;
use super::node_builder::{ABLATION, NodeBuilder};
use super::operators::Case;
use super::timing_steps::is_timed;
use super::variants::PlannedVariant;
use kforge_foundation::base::Diagnostic;
use kforge_types::model::baseline::{Baseline, How, Product};
use kforge_types::model::torch::TorchCall;
use kforge_types::model::{Metric, Problem, Reference, Role, TorchSpec, TypeChoice};
use kforge_types::record::device::{Uuids, device_id, is_remote};
use kforge_types::record::event::Labels;
use kforge_types::record::kind::baseline::documents::{BaselineParams, Callee, RateParams, Rating};
use kforge_types::record::params::Champion;
use kforge_types::record::{StepKind, Unknown};

/// Version of the protocol of baselines. Raise it when the way in which a baseline is called, compared or timed changes.
pub const BASELINE_PROTOCOL: u32 = 2;

/// The time limit of a baseline's step in seconds: `torch.compile` may try many kernels.
const TIME_LIMIT_S: u64 = 1800;

/// The part of the ids of steps of baselines.
const AGAINST: &str = "against";

/// The output of a baseline's step with what it found of the champion's launches.
const LAUNCHED: &str = "launched";

/// The part of the ids of steps that measure on a second device.
const SECOND: &str = "second";

/// What expands the rating of a baseline into its measurement on a second device.
#[derive(Clone)]
pub struct RatedBaseline {
    package: usize,
    kernel: String,
    target: String,
    choice: TypeChoice,
    round: u32,
    later: u8,
    build: PlannedVariant,
    case: Case,
    baseline: Baseline,
    /// The step that timed it.
    timed: String,
}

/// Which measurement of a baseline is planned.
enum Measurement<'m> {
    First,
    /// On a device other than that of a rating, which the step of this id gives.
    Second {
        first: &'m Rating,
        rate: &'m str,
    },
}

impl Planner<'_> {
    /// Plans the baselines of a champion at its bench shapes. `of` are the classes that it serves. A provisional champion is not timed, so nothing is timed
    /// beside it.
    pub(super) fn baselines(&mut self, selected: &Selected, champion: u32, of: &[&Champion]) -> Result<(), Diagnostic> {
        let Some(found) = self.found(selected) else { return Ok(()) };
        let Some(build) = by_number(selected, champion) else { return Ok(()) };
        let scope = found.scope(&selected.choice, selected.stage.round);
        if !(is_timed(scope) || is_called(scope)) || !selected.stage.is_last || self.input.goal < Goal::Build {
            return Ok(());
        }
        let scope = scope.of(build);
        let declared = &self.package_input(scope.package).package.baselines;
        let baselines: Vec<Baseline> = declared.iter().filter(|b| b.is_of(scope.operator)).cloned().collect();
        let timed = of.iter().filter(|champion| !champion.provisional);
        for (_, case) in timed.flat_map(|champion| selected.benched(scope.operator, &champion.shapes)) {
            for baseline in &baselines {
                self.baseline(scope, build, case, baseline, &Measurement::First)?;
            }
        }
        Ok(())
    }

    /// Stores the trees of files that baselines of a package can reach. The steps that read them are added by results, and only the plan stores documents.
    pub(super) fn keep_baselines(&mut self, package: usize) {
        let input = self.package_input(package);
        let declared = &input.package.baselines;
        let own = declared.iter().filter_map(|baseline| Some(&baseline.source.as_ref()?.0));
        let references = input.package.operators.iter().filter_map(|operator| match &operator.reference {
            Reference::Torch { file, .. } if !declared.is_empty() => Some(file),
            _ => None,
        });
        let trees = own.chain(references).filter_map(|file| input.references.get(file).cloned());
        for tree in trees.collect::<Vec<_>>() {
            self.tree(&tree);
        }
    }

    /// Plans the step that times a baseline beside a champion at a shape, and the one that rates it.
    fn baseline(
        &mut self,
        scope: Scope<'_>,
        build: &PlannedVariant,
        case: &Case,
        baseline: &Baseline,
        measurement: &Measurement<'_>,
    ) -> Result<(), Diagnostic> {
        let Some(calls) = callee(baseline, &case.problem) else { return Ok(()) };
        let shape = &scope.operator.shapes[case.at].name;
        let compiler = Self::compiler(scope, case.work);
        let (compile, inspect) = self.compile(scope, build, compiler, ABLATION, Some(&case.problem))?;
        let champion = self.verify_params(scope, build, case, compiler, &case.tolerance)?;
        let needs = memory::baseline(&champion).saturating_add(self.products(&case.problem));
        let own = self.own_functions(scope.package, &case.problem, &champion.compare);
        let files = match &calls {
            Callee::Function { file, .. } => {
                let files = self.package_input(scope.package).references.get(file).cloned();
                files.map(|files| self.tree(&files))
            }
            Callee::Product(_) => None,
        };
        let params = BaselineParams {
            arch: scope.target.arch.name().into(),
            how: baseline.how,
            mode: baseline.mode.clone(),
            calls,
            hot: scope.kernel.select.metric == Metric::Hot && !is_called(scope),
            champion,
            protocol: if is_called(scope) { CALLS_PROTOCOL } else { BASELINE_PROTOCOL },
            confirms: matches!(measurement, Measurement::Second { .. }),
            apart_from: match measurement {
                Measurement::First => None,
                // Another first measurement needs another second device.
                Measurement::Second { first, .. } => Some(first.device.clone()),
            },
        };
        let mut parts = self.parts(scope, build);
        parts.extend([shape.as_str(), AGAINST, &baseline.name]);
        parts.extend(params.confirms.then_some(SECOND));
        let confirms = params.confirms;
        let labels =
            Labels { baseline: Some(baseline.name.clone()), confirms, ..self.labels(scope, build, Some(shape)) };
        let (devices, unless) = match measurement {
            Measurement::First => (self.observed(scope), self.no_device(scope)),
            Measurement::Second { first, .. } => self.second_device(scope, &first.device),
        };
        let mut node = NodeBuilder::new(StepKind::Baseline, &parts, labels.clone(), &params)
            .phase(ABLATION)
            .wave(u32::from(confirms))
            .round(scope.round)
            .limit(TIME_LIMIT_S)
            .memory(needs)
            .build("", &compile, &inspect)
            .device(devices, true)
            .unless(unless);
        for (trial, oracle) in case.trials.iter().zip(case.oracles.iter().flatten()) {
            node = node.output(&format!("expected:{}", trial.trial), oracle, "expected");
        }
        node = own.read_by(node);
        if let Some(files) = files {
            node = node.tree("tree:baseline", files);
        }
        let input = self.package_input(scope.package);
        node = match &input.package.toolchain.torch {
            Some(TorchSpec::Release { release, cuda: false }) => node.unavailable(&TorchSpec::only_processors(release)),
            Some(TorchSpec::Release { cuda: true, .. } | TorchSpec::System) | None => node
                .tool("toolchain:python", &input.toolchains.python)
                .tool("toolchain:torch", &input.toolchains.torch)
                .tool("toolchain:torch-cuda", &input.toolchains.torch_cuda),
        };
        let absent = case.oracles.is_none().then(|| {
            let (work, limit) = (case.work, self.input.oracle_limit);
            Unknown::TooLarge(format!(
                "{work:.1e} scalar operations, but the limit for expected values is {limit:.1e} (setting `oracle.max-work`)"
            ))
        });
        let confirm_above = (!confirms).then_some(baseline.confirm_above);
        let rated = RateParams { tolerance: case.tolerance.clone(), absent, confirm_above };
        let calibration = self.calibration_id(scope.package, scope.operator, scope.choice);
        let rate = NodeBuilder::new(StepKind::Rate, &parts, labels, &rated)
            .phase(ABLATION)
            .wave(u32::from(confirms))
            .round(scope.round);
        let node = node.done();
        let id = self.add(node);
        let rate = match is_called(scope) {
            true => rate.optional("champion", &id, "called"),
            false => rate.optional("launched", &id, LAUNCHED),
        };
        let rate =
            rate.output("observation", &id, "observation").optional("calibration", &calibration, &case.indecision());
        let rate = match measurement {
            Measurement::First => rate,
            Measurement::Second { rate: first, .. } => rate.output("first", first, "rating"),
        };
        let timed = id;
        let id = self.add(rate.expands().done());
        let rated = RatedBaseline {
            package: scope.package,
            kernel: scope.kernel.name.clone(),
            target: scope.target.name.clone(),
            choice: scope.choice.clone(),
            round: scope.round,
            later: self.later,
            build: build.clone(),
            case: case.clone(),
            baseline: baseline.clone(),
            timed,
        };
        self.rated.insert(id, Arc::new(rated));
        Ok(())
    }

    /// Plans what follows from a rating: the measurement on a second device of a ratio that needs it, and the judgement of a champion that is wrong beside the
    /// baseline. A measurement that does not name its device can be confirmed by none.
    pub(super) fn after_rating(
        &mut self,
        rate: &str,
        rated: &RatedBaseline,
        rating: &Rating,
    ) -> Result<(), Diagnostic> {
        let confirms = rating.is_unusual && !rating.device.is_empty();
        if !confirms && rating.champion_wrong.is_none() {
            return Ok(());
        }
        let Some(found) = self.find(rated.package, &rated.kernel, &rated.target) else { return Ok(()) };
        let scope = found.scope(&rated.choice, rated.round).of(&rated.build);
        self.later = rated.later;
        if rating.champion_wrong.is_some() {
            self.wrong_beside(scope, rated);
        }
        let second = Measurement::Second { first: rating, rate };
        let planned = match confirms {
            true => self.baseline(scope, &rated.build, &rated.case, &rated.baseline, &second),
            false => Ok(()),
        };
        self.later = 0;
        planned
    }

    /// Plans the judgement of a champion that is wrong beside a baseline.
    fn wrong_beside(&mut self, scope: Scope<'_>, rated: &RatedBaseline) {
        let case = &rated.case;
        let mut labels = self.labels(scope, &rated.build, Some(&scope.operator.shapes[case.at].name));
        (labels.confirms, labels.baseline) = (true, Some(rated.baseline.name.clone()));
        let (input, output) = if is_called(scope) { ("called", "called") } else { ("observation", LAUNCHED) };
        let of = rated.timed.rsplit_once('/').map_or(rated.timed.as_str(), |(of, _)| of);
        let calibration = self.calibration_id(scope.package, scope.operator, scope.choice);
        let node = NodeBuilder::new(StepKind::Judge, &[of, output], labels, &self.judging((scope, case), false))
            .phase(ABLATION)
            // After ratings, also of a second device.
            .wave(2)
            .round(scope.round)
            .optional("calibration", &calibration, &case.indecision())
            .optional(input, &rated.timed, output)
            .binding();
        self.add(node.done());
    }

    /// The devices that a target means without the one of that name, the product, and why there is none, if so.
    fn second_device(&self, scope: Scope<'_>, first: &str) -> ((Uuids, Option<String>), Option<String>) {
        let (uuids, product) = self.observed(scope);
        // MIG instances of one GPU share its clocks and its power, and nothing here says which GPU is theirs.
        let is_part = self.devices(scope).is_some_and(|devices| devices.class.mig.is_some());
        // Which device a worker of a server has is not known, so it may be the first one.
        let is_other = |uuid: &&String| !is_part && !is_remote(uuid) && device_id(uuid) != first;
        let others: Uuids = uuids.iter().filter(is_other).cloned().collect();
        let why = match self.no_device(scope) {
            None if others.is_empty() => Some(format!("no second {} here", product.as_deref().unwrap_or("device"))),
            why => why,
        };
        ((others, product), why)
    }
}

/// What a baseline calls at a shape; none if it does not suit the operator.
fn callee(baseline: &Baseline, problem: &Problem) -> Option<Callee> {
    if let Some((file, function)) = &baseline.source {
        let call = Box::new(TorchCall::default());
        return Some(Callee::Function { file: file.clone(), function: function.clone(), call });
    }
    match (&problem.reference, baseline.how) {
        (reference, How::Cublas) => {
            let inputs = problem.tensors.iter().filter(|tensor| tensor.role == Role::Input);
            let inputs: Vec<&str> = inputs.map(|tensor| tensor.name.as_str()).collect();
            Product::of(reference, &inputs).map(Callee::Product)
        }
        (Reference::Torch { file, function, call }, _) => {
            Some(Callee::Function { file: file.clone(), function: function.clone(), call: call.clone() })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_foundation::base::SourceFile;
    use kforge_types::model::baseline::CONFIRM_ABOVE;
    use kforge_types::model::{DType, Place, Tensor};

    fn baseline(how: How, source: Option<(&str, &str)>) -> Baseline {
        let file = Arc::new(SourceFile { name: "kernel.toml".into(), text: String::new() });
        Baseline {
            name: "b".into(),
            place: Place::new(&file, 0..0),
            how,
            mode: None,
            source: source.map(|(file, function)| (file.into(), function.into())),
            operator: None,
            confirm_above: CONFIRM_ABOVE,
        }
    }

    #[test]
    fn a_function_of_the_package_replaces_the_reference() {
        let call = TorchCall { train: true, ..TorchCall::default() };
        let reference =
            Reference::Torch { file: "task.py".into(), function: "Model".into(), call: Box::new(call.clone()) };
        let problem = Problem::of(vec![], reference);
        let own = callee(&baseline(How::Eager, None), &problem);
        assert_eq!(
            own,
            Some(Callee::Function { file: "task.py".into(), function: "Model".into(), call: Box::new(call) })
        );
        let other = callee(&baseline(How::Compile, Some(("fast.py", "f"))), &problem);
        let call = Box::new(TorchCall::default());
        assert_eq!(other, Some(Callee::Function { file: "fast.py".into(), function: "f".into(), call }));
    }

    #[test]
    fn cublas_multiplies_what_the_built_in_multiplies_and_nothing_else() {
        let tensor = |name: &str, role| Tensor::dense(name, role, DType::F32, &[4, 4]);
        let tensors = || vec![tensor("a", Role::Input), tensor("b", Role::Input), tensor("c", Role::Output)];
        let product = Problem::of(tensors(), Reference::builtin("matmul", &[("transpose_a", true.into())]));
        let Some(Callee::Product(found)) = callee(&baseline(How::Cublas, None), &product) else { panic!("no product") };
        assert_eq!(found.transposed, ["a"]);
        let sum = Problem::of(tensors(), Reference::builtin("sum", &[]));
        assert_eq!(callee(&baseline(How::Cublas, None), &sum), None);
        assert_eq!(callee(&baseline(How::Eager, None), &sum), None);
    }
}
