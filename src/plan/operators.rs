//! Steps of an operator: expected values, and whether its tolerance can tell right from wrong. Knows nothing of kernels.

use super::context::{CHECK_WORK, Planner};
use super::make::Make;
use crate::base::{Diagnostic, Digest};
use crate::model::{Operator, Problem, Reference, Shape, TypeChoice};
use crate::record::StepKind;
use crate::record::event::Labels;
use crate::record::params::{CalibrateCase, CalibrateParams, OracleParams, Trial};
use crate::record::spec::Tree;
use crate::reference::{self, cost, generate};

/// Seed of the first trial; those of a private overlay come with its operators.
const SEED: u64 = 0x6b66_6f72_6765;

/// Work beyond which null candidates are not compared: other shapes decide.
const NULLS_WORK: f64 = 1e8;

/// One shape, bound, with its trials and the ids of their oracles.
#[derive(Clone)]
pub struct Case {
    /// The shape's position in the operator.
    pub at: usize,
    /// Everything bound.
    pub problem: Problem,
    /// Which inputs.
    pub trials: Vec<Trial>,
    /// The oracle of each trial; none where the shape is too large to compute here.
    pub oracles: Option<Vec<String>>,
    /// Scalar operations of one run.
    pub work: f64,
}

impl Planner<'_> {
    /// The selected shapes of an operator, bound, with their oracles.
    pub fn cases(&mut self, package: usize, operator: &Operator, choice: &TypeChoice) -> Result<Vec<Case>, Diagnostic> {
        let mut cases = Vec::new();
        for shape in self.shapes(operator) {
            let at = operator.shapes.iter().position(|s| s.name == shape.name).unwrap_or(0);
            cases.push(self.case(package, operator, choice, shape, at)?);
        }
        Ok(cases)
    }

    fn case(
        &mut self,
        package: usize,
        operator: &Operator,
        choice: &TypeChoice,
        shape: &Shape,
        at: usize,
    ) -> Result<Case, Diagnostic> {
        let problem = operator.bind(choice, shape)?;
        if let Err(mut wrong) = reference::check(&problem) {
            let first = if wrong.is_empty() { "it does not fit".to_string() } else { wrong.remove(0) };
            let message = format!("the reference of operator `{}`, at shape `{}`: {first}", operator.name, shape.name);
            let mut error = operator.place.error("reference.mismatch", message);
            error.notes = wrong;
            return Err(error.hint("docs/references.md says what each built-in takes"));
        }
        let work = cost::work(&problem);
        // Small shapes are asked with every distribution; of large ones two trials must do.
        let count = if work <= CHECK_WORK { 4 } else { 2 };
        let trials = generate::trials(&problem, SEED, count);
        let scaled = operator.tolerances(choice, shape).is_some_and(|t| t.values().any(|t| t.scaled > 0.0));
        let oracles = (work <= self.input.emulator_limit).then(|| {
            let own = self.own_reference(package, &problem);
            trials
                .iter()
                .map(|trial| {
                    let params = OracleParams {
                        problem: problem.clone(),
                        trial: trial.clone(),
                        scale: scaled,
                        nulls: work <= NULLS_WORK,
                    };
                    let name = self.input.packages[package].package.name.clone();
                    let labels = Labels {
                        operator: Some(operator.name.clone()),
                        shape: Some(shape.name.clone()),
                        package: name.clone(),
                        ..Labels::default()
                    };
                    let parts = [name.as_str(), &operator.name, &choice.label, &shape.name, &trial.trial.to_string()];
                    let mut node = Make::new(StepKind::Oracle, &parts, labels, &params);
                    if let Some((tree, tool)) = &own {
                        node = node.tree("tree:reference", *tree).tool("toolchain", tool);
                    }
                    self.add(node.done())
                })
                .collect()
        });
        Ok(Case { at, problem, trials, oracles, work })
    }

    /// The tree of a reference of the package's own, and what runs it.
    pub fn own_reference(&mut self, package: usize, problem: &Problem) -> Option<(Digest, super::Tool)> {
        let input = self.package_input(package);
        let (file, tool) = match &problem.reference {
            Reference::Builtin { .. } => (&problem.generate_inputs.as_ref()?.0, input.toolchains.python.clone()),
            Reference::Python { file, .. } => (file, input.toolchains.python.clone()),
            Reference::Cpp { file, .. } => (file, input.toolchains.cxx.clone()),
        };
        let (_, tree): &(Digest, Tree) = input.references.get(file)?;
        let tree = tree.clone();
        Some((self.tree(&tree), tool))
    }

    /// The calibrate step of an operator over its selected shapes. Gives its id and, for each case, the position of its first trial among the step's cases.
    pub fn calibrate(
        &mut self,
        package: usize,
        operator: &Operator,
        choice: &TypeChoice,
        cases: &[Case],
    ) -> Option<(String, Vec<usize>)> {
        let name = self.input.packages[package].package.name.clone();
        let mut listed = Vec::new();
        let mut nulls = Vec::new();
        let mut first = Vec::new();
        for case in cases {
            first.push(listed.len());
            let Some(oracles) = case.oracles.as_ref().filter(|_| case.work <= NULLS_WORK) else { continue };
            let tolerance = operator.tolerances(choice, &operator.shapes[case.at]);
            for (trial, oracle) in case.trials.iter().zip(oracles) {
                listed.push(CalibrateCase { distribution: trial.distribution.clone(), tolerance: tolerance.clone() });
                nulls.push(oracle.clone());
            }
        }
        if listed.is_empty() {
            return None;
        }
        let labels = Labels { package: name.clone(), operator: Some(operator.name.clone()), ..Labels::default() };
        let mut node = Make::new(
            StepKind::Calibrate,
            &[&name, &operator.name, &choice.label],
            labels,
            &CalibrateParams { cases: listed },
        );
        for (i, oracle) in nulls.iter().enumerate() {
            node = node.output(&format!("nulls:{i}"), oracle, "nulls");
        }
        Some((self.add(node.done()), first))
    }
}
