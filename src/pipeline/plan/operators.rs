//! Steps of an operator: expected values, and whether its tolerance can tell correct from wrong. Does not know kernels.

use std::collections::BTreeMap;

use super::context::{CHECK_WORK, Planner};
use super::input::Selection;
use super::memory;
use super::node_builder::NodeBuilder;
use super::triton;
use kforge_foundation::base::{Diagnostic, Digest};
use kforge_numerics::measure::calibrate;
use kforge_numerics::reference::{self, cost, fresh, generate};
use kforge_types::model::{
    Arch, Compare, Language, Operator, Precision, Problem, Reference, Shape, ShapeRole, Tensor, Tolerance, TypeChoice,
};
use kforge_types::record::event::Labels;
use kforge_types::record::params::{CalibrateCase, CalibrateParams, OracleParams, Trial};
use kforge_types::record::spec::Tree;
use kforge_types::record::{StepKind, Unknown};

/// Work above which null candidates are not compared, if a smaller shape can decide.
const NULLS_WORK: f64 = 1e8;

/// One bound shape with its trials and the ids of their oracles.
#[derive(Clone)]
pub struct Case {
    /// The shape's position in the operator.
    pub at: usize,
    /// The bound problem.
    pub problem: Problem,
    /// The sets of inputs.
    pub trials: Vec<Trial>,
    /// The oracle of each trial; none if the shape is too large to compute here.
    pub oracles: Option<Vec<String>>,
    /// Whether its null candidates are compared with the expectation.
    pub nulls: bool,
    /// The tolerance of each output, declared or derived.
    pub tolerance: BTreeMap<String, Tolerance>,
    /// Terms of the longest sum, if the tolerance was derived from it.
    pub derived: Option<u64>,
    /// Scalar operations of one run.
    pub work: f64,
}

impl Case {
    /// The output of the calibrate step that judgements at this shape read: whether the shape decides, where that is known, and whether the operator does.
    pub fn indecision(&self) -> String {
        match self.nulls && self.oracles.is_some() {
            true => format!("indecision:{}", self.at),
            false => "indecision".into(),
        }
    }
}

/// The package's own functions that a step calls.
pub struct OwnFunctions {
    /// All their files and what these need, in one tree.
    tree: Option<Digest>,
    /// The files that hold values of inputs.
    inputs: Option<Digest>,
    /// What runs them, by name of the input.
    tools: Vec<(&'static str, super::Tool)>,
}

impl OwnFunctions {
    /// Adds the functions to a step that calls them.
    #[must_use]
    pub fn read_by(&self, node: NodeBuilder) -> NodeBuilder {
        let node = self.tree.iter().fold(node, |node, tree| node.tree("tree:reference", *tree));
        let node = self.inputs.iter().fold(node, |node, tree| node.tree("tree:inputs", *tree));
        self.tools.iter().fold(node, |node, (name, tool)| node.tool(name, tool))
    }
}

/// What runs a function of a package.
#[derive(Clone, Copy, PartialEq)]
enum Runtime {
    Python,
    /// PyTorch, in Python.
    Torch,
    /// Machine code that the C++ compiler of the machine makes.
    Cxx,
}

/// A file with a function of a package, and what runs it.
type OwnFile<'a> = (&'a String, Runtime);

/// The file with the function that makes the inputs of a problem; none if they are drawn or stored.
fn generator(problem: &Problem) -> Option<OwnFile<'_>> {
    let own = problem.generate_inputs.as_ref()?;
    Some((own.file(), if own.needs_torch() { Runtime::Torch } else { Runtime::Python }))
}

impl Planner<'_> {
    /// The selected shapes of an operator, bound, with their oracles.
    pub fn cases(&mut self, package: usize, operator: &Operator, choice: &TypeChoice) -> Result<Vec<Case>, Diagnostic> {
        let within = self.null_limit(operator, choice);
        let mut cases = Vec::new();
        for (at, shape) in (0..).zip(&operator.shapes) {
            if Selection::takes(&self.input.selection.shapes, &shape.name) {
                let problem = operator.bind(choice, shape)?;
                cases.push(self.case(package, operator, choice, (shape, at, problem), within)?);
            }
        }
        Ok(cases)
    }

    /// The work up to which null candidates of an operator are compared. It does not depend on the selection, so that a shape has the same oracles whichever
    /// others are selected.
    fn null_limit(&self, operator: &Operator, choice: &TypeChoice) -> f64 {
        let works = operator.shapes.iter().filter_map(|shape| Some(cost::work(&operator.bind(choice, shape).ok()?)));
        nulls_work(works, self.input.emulator_limit)
    }

    /// The cases of the shapes that are not selected. Whether a tolerance can tell correct from wrong is a property of the operator: some shapes alone do not
    /// show it. A shape that cannot be planned is left out; it is an error where it is selected.
    fn other_cases(&mut self, package: usize, operator: &Operator, choice: &TypeChoice) -> Vec<Case> {
        let within = self.null_limit(operator, choice);
        let other = |(_, shape): &(usize, &Shape)| !Selection::takes(&self.input.selection.shapes, &shape.name);
        let others: Vec<(usize, &Shape)> = operator.shapes.iter().enumerate().filter(other).collect();
        let mut cases = vec![];
        for (at, shape) in others {
            let problem = operator.bind(choice, shape).ok().filter(|problem| cost::work(problem) <= within);
            cases.extend(problem.and_then(|p| self.case(package, operator, choice, (shape, at, p), within).ok()));
        }
        cases
    }

    /// Whether a device target of a package is selected.
    fn on_devices(&self, package: usize) -> bool {
        let selected = |name: &String| Selection::takes(&self.input.selection.targets, name);
        self.package_input(package)
            .package
            .targets
            .iter()
            .any(|(name, target)| target.arch != Arch::Cpu && selected(name))
    }

    /// Whether all kernels of an operator are in Triton.
    fn only_in_triton(&self, package: usize, operator: &Operator) -> bool {
        let package = self.package_input(package).package;
        let mut kernels = package.kernels.iter().filter(|kernel| kernel.operator == operator.name).peekable();
        kernels.peek().is_some() && kernels.all(|kernel| kernel.language == Language::Triton)
    }

    /// Additional memory in MiB for a step that may compute products of a reference on a device of this machine.
    pub(super) fn products(&self, problem: &Problem) -> u64 {
        if self.input.devices.is_empty() { 0 } else { memory::products(problem) }
    }

    fn case(
        &mut self,
        package: usize,
        operator: &Operator,
        choice: &TypeChoice,
        (shape, at, problem): (&Shape, usize, Problem),
        within: f64,
    ) -> Result<Case, Diagnostic> {
        reference::check(&problem).map_err(|wrong| operator.misfit(&shape.name, wrong.faults))?;
        let compare = operator.compare();
        for (output, compare) in &compare {
            if let Compare::ArgmaxOf(input) = compare
                && let Err(why) = reference::extreme(&problem, output, input)
            {
                return Err(operator
                    .place
                    .error("reference.argmax-of", format!("operator `{}`: {why}", operator.name)));
            }
        }
        let work = cost::work(&problem);
        let trials = trials_of(operator, &problem);
        let is_derived = operator.tolerances(choice, shape).is_none();
        let derived_from = is_derived.then(|| cost::reduction_length(&problem));
        let tolerance = tolerance_of(operator, choice, shape, &problem);
        scaleless(operator, shape, &problem, &tolerance)?;
        let nulls = work <= within;
        // A device can run shapes that the emulator cannot, and is compared with the same values.
        let emulator = self.input.emulator_limit;
        let limit = match (self.on_devices(package), self.only_in_triton(package, operator)) {
            (true, _) => self.input.oracle_limit.max(emulator),
            (false, true) => triton::limit(emulator),
            (false, false) => emulator,
        };
        let products = self.products(&problem);
        // Calibration needs shapes that the interpreter may be too slow for.
        let oracles = (work <= limit || (nulls && work <= emulator)).then(|| {
            let compare = if nulls { compare } else { BTreeMap::new() };
            let own = self.own_functions(package, &problem, &compare);
            trials
                .iter()
                .map(|trial| {
                    let params = OracleParams {
                        problem: problem.clone(),
                        trial: trial.clone(),
                        scaled: scaled(&tolerance),
                        nulls,
                        compare: compare.clone(),
                        count_beyond: if nulls { count_beyond(&tolerance) } else { BTreeMap::new() },
                        holdout: shape.role == ShapeRole::Holdout,
                    };
                    let name = self.input.packages[package].package.name.clone();
                    let labels = Labels {
                        operator: Some(operator.name.clone()),
                        shape: Some(shape.name.clone()),
                        package: name.clone(),
                        ..Labels::default()
                    };
                    let parts = [name.as_str(), &operator.name, &choice.label, &shape.name, &trial.trial.to_string()];
                    let processor = self.package_input(package).toolchains.processor;
                    let oracle =
                        NodeBuilder::new(StepKind::Oracle, &parts, labels, &params).blob("processor", processor);
                    self.add(own.read_by(oracle.memory(memory::oracle(&problem) + products)).done())
                })
                .collect()
        });
        Ok(Case { at, problem, trials, oracles, nulls, tolerance, derived: derived_from, work })
    }

    /// The package's own functions that give expected values, inputs and comparisons.
    pub fn own_functions(
        &mut self,
        package: usize,
        problem: &Problem,
        compare: &BTreeMap<String, Compare>,
    ) -> OwnFunctions {
        let mut files: Vec<OwnFile<'_>> = Vec::new();
        match &problem.reference {
            Reference::Builtin { .. } => {}
            Reference::Python { file, .. } => files.push((file, Runtime::Python)),
            Reference::Torch { file, .. } => files.push((file, Runtime::Torch)),
            Reference::Cpp { file, .. } => files.push((file, Runtime::Cxx)),
        }
        files.extend(generator(problem));
        files.extend(compare.values().filter_map(|compare| match compare {
            Compare::Python(file, _) => Some((file, Runtime::Python)),
            Compare::Elements | Compare::ArgmaxOf(_) | Compare::Unordered => None,
        }));
        self.functions_in(package, problem, &files)
    }

    /// What a step needs that makes inputs and computes no expected values: the package's own generator, and the files that hold values.
    pub(super) fn input_functions(&mut self, package: usize, problem: &Problem) -> OwnFunctions {
        let files: Vec<OwnFile<'_>> = generator(problem).into_iter().collect();
        self.functions_in(package, problem, &files)
    }

    fn functions_in(&mut self, package: usize, problem: &Problem, files: &[OwnFile<'_>]) -> OwnFunctions {
        let inputs = self.stored(package, problem);
        if files.is_empty() {
            return OwnFunctions { tree: None, inputs, tools: vec![] };
        }
        let input = self.package_input(package);
        let mut tree = Tree::default();
        for of in files.iter().filter_map(|(file, _)| input.references.get(*file)) {
            tree.files.extend(of.files.iter().map(|(name, digest)| (name.clone(), *digest)));
        }
        let (python, torch, cxx) = (&input.toolchains.python, &input.toolchains.torch, &input.toolchains.cxx);
        let uses = |runtimes: &[Runtime]| files.iter().any(|(_, runtime)| runtimes.contains(runtime));
        let tools = [
            (uses(&[Runtime::Python, Runtime::Torch]), ("toolchain:python", python)),
            (uses(&[Runtime::Torch]), ("toolchain:torch", torch)),
            (uses(&[Runtime::Cxx]), ("toolchain:c++", cxx)),
        ];
        let tools = tools.into_iter().filter(|(used, _)| *used);
        let tools = tools.map(|(_, (name, tool))| (name, tool.clone())).collect();
        OwnFunctions { tree: Some(self.tree(&tree)), inputs, tools }
    }

    /// The files that hold values of a problem's inputs, as a tree; none if all inputs are made. Every step that makes inputs reads it.
    fn stored(&mut self, package: usize, problem: &Problem) -> Option<Digest> {
        let known = &self.package_input(package).stored;
        let of = |(_, file, _): (&Tensor, &str, &str)| Some((file.to_string(), *known.get(file)?));
        let tree = Tree { files: problem.stored().filter_map(of).collect() };
        (!tree.files.is_empty()).then(|| self.tree(&tree))
    }

    /// Plans the calibrate step of an operator whose selected shapes are `cases`. It covers all shapes, unless none is selected. If nothing is computed for any of
    /// them, the step only reports that.
    pub fn calibrate(&mut self, package: usize, operator: &Operator, choice: &TypeChoice, cases: &[Case]) {
        let name = self.input.packages[package].package.name.clone();
        let others = if cases.is_empty() { vec![] } else { self.other_cases(package, operator, choice) };
        let mut all: Vec<&Case> = cases.iter().chain(&others).collect();
        all.sort_by_key(|case| case.at);
        let mut listed = Vec::new();
        let mut nulls = Vec::new();
        for case in &all {
            let Some(oracles) = case.oracles.as_ref().filter(|_| case.nulls) else { continue };
            for (trial, oracle) in case.trials.iter().zip(oracles) {
                listed.push(CalibrateCase {
                    shape: case.at.to_string(),
                    distribution: trial.distribution.clone(),
                    tolerance: case.tolerance.clone(),
                    derived: case.derived,
                    own: operator.shapes[case.at].tolerance.is_some(),
                });
                nulls.push(oracle.clone());
            }
        }
        let absent = listed.is_empty().then(|| match all.as_slice() {
            [] if operator.shapes.is_empty() => Unknown::Missing("it declares no shapes".into()),
            [] => Unknown::Missing("none of its shapes was selected".into()),
            cases => {
                let least = cases.iter().map(|case| case.work).fold(f64::INFINITY, f64::min);
                Unknown::TooLarge(format!(
                    "its smallest shape needs {least:.1e} scalar operations, but the limit is {:.1e} (setting `emulator.max-work`)",
                    self.input.emulator_limit
                ))
            }
        });
        let params = declared(operator, listed, absent);
        let mut node = Self::calibration(&name, operator, choice, &params);
        for (i, oracle) in nulls.iter().enumerate() {
            node = node.output(&format!("nulls:{i}"), oracle, "nulls");
        }
        self.add(node.done());
    }

    /// Plans the calibrate steps of an operator for which nothing is computed, to report that.
    pub fn uncalibrated(&mut self, package: usize, operator: &Operator, why: &str) {
        let name = self.input.packages[package].package.name.clone();
        let params = declared(operator, vec![], Some(Unknown::Missing(why.into())));
        for choice in operator.choices() {
            self.add(Self::calibration(&name, operator, &choice, &params).done());
        }
    }

    /// The id of the calibrate step of an operator.
    pub(super) fn calibration_id(&self, package: usize, operator: &Operator, choice: &TypeChoice) -> String {
        let package = &self.input.packages[package].package.name;
        NodeBuilder::id(StepKind::Calibrate, &[package, &operator.name, &choice.label])
    }

    fn calibration(package: &str, operator: &Operator, choice: &TypeChoice, params: &CalibrateParams) -> NodeBuilder {
        let labels = Labels { package: package.into(), operator: Some(operator.name.clone()), ..Labels::default() };
        NodeBuilder::new(StepKind::Calibrate, &[package, &operator.name, &choice.label], labels, params)
    }
}

/// Parameters with what an operator declares about its decisiveness.
fn declared(operator: &Operator, cases: Vec<CalibrateCase>, absent: Option<Unknown>) -> CalibrateParams {
    let undecidable = operator.undecidable.iter().map(|name| name.value.clone()).collect();
    CalibrateParams { cases, absent, undecidable, typed: !operator.types.is_empty(), require: operator.must_decide }
}

/// Refuses a tolerance in units of the scale if the reference has no scale. Whether a function of the package returns one is known only once it has run.
fn scaleless(
    operator: &Operator,
    shape: &Shape,
    problem: &Problem,
    tolerance: &BTreeMap<String, Tolerance>,
) -> Result<(), Diagnostic> {
    let asks = |output: &&str| tolerance.get(*output).is_some_and(|t| t.scaled > 0.0);
    let written = problem.written().map(|t| t.name.as_str());
    let Some(output) = written.into_iter().filter(asks).find(|output| !reference::has_scale(problem, output)) else {
        return Ok(());
    };
    let place = if shape.tolerance.is_some() { &shape.place } else { operator.tolerance_place() };
    let why = match &problem.reference {
        Reference::Builtin { name, .. } => format!("the built-in `{name}` gives no scale for `{output}`"),
        Reference::Python { .. } | Reference::Torch { .. } | Reference::Cpp { .. } => {
            format!("`{output}` holds integers, which have no scale")
        }
    };
    let message = format!("the tolerance of `{output}` of operator `{}` declares `scaled`, but {why}", operator.name);
    let error = place.error("reference.no-scale", message);
    Err(error.expected("an output that holds floats: every built-in except `argmax` and `argmin` gives a scale").hint(
        "integers are exact: leave `scaled` out, or state it for the other outputs only, as `tolerance = { y = { scaled = 4 } }`",
    ))
}

/// The fixed trials of a verification. Small shapes are verified with every distribution; large ones with two trials.
pub fn trials_of(operator: &Operator, problem: &Problem) -> Vec<Trial> {
    let count = if cost::work(problem) <= CHECK_WORK { 4 } else { 2 };
    trials(problem, count, &operator.seeds)
}

/// The trials of a problem: `count` trials whose seeds derive from the problem, and one for each private seed. So no two contracts or shapes share inputs, and
/// no seeds are known before the manifest is.
fn trials(problem: &Problem, count: u32, private: &[u64]) -> Vec<Trial> {
    let mut trials = generate::trials(problem, fresh::seed(problem, None), count);
    for number in private {
        trials.push(fresh::private(problem, trials.len() as u32, *number));
    }
    trials
}

/// Outputs whose tolerance is in units of the scale.
pub fn scaled(tolerance: &BTreeMap<String, Tolerance>) -> Vec<String> {
    tolerance.iter().filter(|(_, t)| t.scaled > 0.0).map(|(output, _)| output.clone()).collect()
}

/// Tolerances that only a share of the elements must meet.
pub fn count_beyond(tolerance: &BTreeMap<String, Tolerance>) -> BTreeMap<String, Tolerance> {
    tolerance.iter().filter(|(_, t)| t.matched < 1.0).map(|(output, t)| (output.clone(), t.clone())).collect()
}

/// The tolerance of each output at a shape, declared or derived. Outputs that a function of the package decides have none.
pub fn tolerance_of(
    operator: &Operator,
    choice: &TypeChoice,
    shape: &Shape,
    problem: &Problem,
) -> BTreeMap<String, Tolerance> {
    let compare = operator.compare();
    let mut tolerance =
        operator.tolerances(choice, shape).unwrap_or_else(|| derived(problem, &operator.precision(choice)));
    tolerance.retain(|output, _| !matches!(compare.get(output), Some(Compare::Python(..))));
    tolerance
}

/// The tolerance of every output for `tolerance = "auto"`, from its type and the problem's longest reduction.
fn derived(problem: &Problem, precision: &Precision) -> BTreeMap<String, Tolerance> {
    let reduction = cost::reduction_length(problem);
    // Whether a function of the package gives a scale is known only once it has run.
    let scaled =
        |output: &str| matches!(problem.reference, Reference::Builtin { .. }) && reference::has_scale(problem, output);
    let of = |t: &Tensor| calibrate::derived_with(t.dtype, reduction, precision, scaled(&t.name));
    problem.written().map(|t| (t.name.clone(), of(t))).collect()
}

/// The work up to which null candidates are compared: [`NULLS_WORK`], or that of the smallest computed shape if every shape exceeds [`NULLS_WORK`].
fn nulls_work(works: impl Iterator<Item = f64>, limit: f64) -> f64 {
    let least = works.filter(|work| *work <= limit).fold(f64::INFINITY, f64::min);
    if least.is_finite() { NULLS_WORK.max(least) } else { NULLS_WORK }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kforge_types::model::{DType, Role};

    #[test]
    fn the_smallest_shape_that_is_computed_is_always_calibrated() {
        assert_eq!(nulls_work([1e3, 5e8].into_iter(), 1e10), NULLS_WORK);
        assert_eq!(nulls_work([9e9, 5e8].into_iter(), 1e10), 5e8);
        assert_eq!(nulls_work([9e11, 5e12].into_iter(), 1e10), NULLS_WORK);
    }

    #[test]
    fn seeds_follow_from_the_contract_and_the_shape_and_private_ones_add_trials() {
        let problem = |cols: u64, name: &str| Problem {
            dims: [("cols".to_string(), cols as i64)].into(),
            ..Problem::of(vec![], Reference::builtin(name, &[]))
        };
        let seeds = |problem: &Problem, private: &[u64]| -> Vec<u64> {
            trials(problem, 4, private).iter().map(|trial| trial.seed).collect()
        };
        let one = seeds(&problem(8, "sum"), &[]);
        assert_eq!(one, seeds(&problem(8, "sum"), &[]), "the same on every machine");
        let others = [seeds(&problem(9, "sum"), &[]), seeds(&problem(8, "max"), &[])].concat();
        assert!(one.iter().all(|seed| !others.contains(seed)));
        let all = trials(&problem(8, "sum"), 4, &[1, 2]);
        assert_eq!(all.iter().map(|trial| trial.seed).take(4).collect::<Vec<_>>(), one);
        assert_eq!(all.iter().map(|trial| trial.trial).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
        assert_eq!((all[4].distribution == all[3].distribution, all[4].seed == all[5].seed), (false, false));
        assert_ne!(all[4].seed, trials(&problem(9, "sum"), 4, &[1])[4].seed);
        // A number that a verification drew states its distribution, so an overlay repeats the trial wherever it lists it.
        let x = Tensor::dense("x", Role::Input, DType::F32, &[8]);
        let problem = Problem::of(vec![x], Reference::builtin("sum", &[]));
        let number = fresh::numbers(&problem, [7; 4]).pop().unwrap();
        let [alone, listed] = [&[number][..], &[1, number]].map(|all| trials(&problem, 4, all).pop().unwrap());
        assert_eq!((&alone.distribution, alone.seed), (&listed.distribution, listed.seed));
        assert_eq!(alone.distribution, "ties");
    }

    #[test]
    fn a_derived_tolerance_is_that_of_the_shapes_own_reduction() {
        let tensor = |name: &str, role, shape: &[u64]| Tensor::dense(name, role, DType::F32, shape);
        let sum = |cols: u64| {
            let tensors = vec![tensor("x", Role::Input, &[2, cols]), tensor("y", Role::Output, &[2])];
            Problem::of(tensors, Reference::builtin("sum", &[]))
        };
        let plain = |cols| derived(&sum(cols), &Precision::default()).remove("y").unwrap();
        assert_eq!(plain(16), calibrate::derived(DType::F32, 16));
        assert!(plain(1 << 20).rtol > plain(16).rtol);
        // A built-in gives its scale.
        let narrow = Precision { accumulate: Some(DType::F16), intermediates: vec![] };
        assert_eq!(derived(&sum(16), &narrow)["y"], calibrate::derived_with(DType::F32, 16, &narrow, true));
    }

    #[test]
    fn only_what_a_tolerance_asks_for_is_carried_along() {
        let of = |scaled: f64, matched: f64| Tolerance { scaled, matched, ..Tolerance::default() };
        let all: BTreeMap<_, _> = [("y".to_string(), of(0.0, 0.9)), ("z".to_string(), of(4.0, 1.0))].into();
        assert_eq!(scaled(&all), ["z"]);
        assert_eq!(count_beyond(&all), [("y".to_string(), of(0.0, 0.9))].into());
    }
}
