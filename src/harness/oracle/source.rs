//! Where a trial's inputs and expected values come from. Knows the three kinds of reference; does not know how each is run.

use std::collections::BTreeMap;

use super::{cpp, python};
use crate::compare::CheckResult;
use crate::message::Response;
use crate::oracle::Scratch;
use crate::task::{Task, failed};
use kforge_numerics::reference::oracle::{self, OracleOutput};
use kforge_numerics::reference::{ProductBackend, Values, generate};
use kforge_types::model::{Compare, DType, Problem, Reference, Tensor};
use kforge_types::record::params::{Expected, Trial};

/// Inputs and expected values of a problem, made with the tools and files of a task.
pub struct Source<'a> {
    task: &'a Task,
    problem: &'a Problem,
    scratch: Option<Scratch>,
    /// Who makes large products, if anyone does.
    products: Option<Box<dyn ProductBackend>>,
}

/// Tensors and their values.
pub type Named = BTreeMap<String, Values>;

impl<'a> Source<'a> {
    /// For one problem.
    pub fn new(task: &'a Task, problem: &'a Problem) -> Self {
        let scratch = task.places.scratch.as_ref().map(|(folder, limit)| Scratch::new(folder, *limit));
        Source { task, problem, scratch, products: None }
    }

    /// The same, with large products made by `products` where there is one: to the same bits, so that no result depends on who made them.
    #[must_use]
    pub fn with_products(self, products: Option<Box<dyn ProductBackend>>) -> Self {
        Source { products, ..self }
    }

    /// Where large products were made, where there were any and there is a device.
    pub fn said(&self) -> Option<String> {
        self.products.as_ref().and_then(|products| products.place())
    }

    /// Every tensor that is read, with values that its type can hold.
    pub fn inputs(&self, trial: &Trial) -> Result<Named, Response> {
        let Some((file, function)) = &self.problem.generate_inputs else {
            return generate::inputs(self.problem, trial).map_err(|e| failed(format!("cannot generate inputs: {e}")));
        };
        python::inputs(self.task, self.problem, trial, file, function)
    }

    /// Every written tensor, and the scales where they are asked for and the reference has them.
    pub fn expected(&self, inputs: &Named, scale: bool) -> Result<OracleOutput, Response> {
        match &self.problem.reference {
            Reference::Builtin { .. } => oracle::expected_with(self.problem, inputs, scale, self.products.as_deref())
                .map_err(|e| failed(format!("cannot compute the expected values: {e}"))),
            Reference::Python { file, function } => {
                python::expected(self.task, self.problem, inputs, file, function, scale)
            }
            Reference::Cpp { file, function } => cpp::expected(self.task, self.problem, inputs, file, function, scale),
        }
    }

    /// What a function of the package says of answers for one output, whose expectation comes with it.
    pub fn checked(
        &self,
        inputs: &Named,
        output: (&Tensor, &Values),
        answers: &[(String, &Values)],
        check: (&str, &str),
    ) -> Result<Vec<CheckResult>, Response> {
        python::checked(self.task, self.problem, inputs, output, answers, check)
    }

    /// Keeps expected values in the scratch folder, and gives their digests.
    pub fn keep(&self, output: &OracleOutput) -> Result<Expected, Response> {
        let put = |bytes: Vec<u8>| match &self.scratch {
            Some(scratch) => scratch
                .put(&bytes)
                .map_err(|e| failed(format!("cannot write expected values to the scratch folder: {e}"))),
            None => Ok(kforge_foundation::base::Digest::of_long(&bytes)),
        };
        let mut expected = Expected::default();
        for (name, values) in &output.outputs {
            expected.outputs.insert(name.clone(), put(values.to_le_bytes())?);
        }
        for (name, values) in &output.scales {
            expected.scales.insert(name.clone(), put(Values::Float(values.clone()).to_le_bytes())?);
        }
        Ok(expected)
    }

    /// The values whose digests `expected` states: from the scratch folder, or computed again from `inputs`. Values that are not those of the digests are
    /// an error: the reference does not give the same twice, or something of it did not enter the key.
    pub fn recall(&self, expected: &Expected, inputs: &Named) -> Result<OracleOutput, Response> {
        if let Some(kept) = self.kept(expected) {
            return Ok(kept);
        }
        let output = self.expected(inputs, !expected.scales.is_empty())?;
        let again = self.keep(&output)?;
        let same =
            again.outputs == expected.outputs && expected.scales.iter().all(|(k, v)| again.scales.get(k) == Some(v));
        if !same {
            return Err(failed(
                "the reference computed other values than the first time: it must compute the same values for the same inputs",
            ));
        }
        Ok(output)
    }

    /// Inputs and expected values of a trial, to hold outputs against that are compared so. Inputs are made only where expected values have to be computed again, or a
    /// comparison reads them.
    pub fn held(
        &self,
        trial: &Trial,
        expected: &Expected,
        compare: &BTreeMap<String, Compare>,
    ) -> Result<(Named, OracleOutput), Response> {
        let reads = |compare: &Compare| matches!(compare, Compare::ArgmaxOf(_) | Compare::Python(..));
        if !compare.values().any(reads)
            && let Some(kept) = self.kept(expected)
        {
            return Ok((Named::new(), kept));
        }
        let inputs = self.inputs(trial)?;
        let expected = self.recall(expected, &inputs)?;
        Ok((inputs, expected))
    }

    fn kept(&self, expected: &Expected) -> Option<OracleOutput> {
        let scratch = self.scratch.as_ref()?;
        let mut output = OracleOutput::default();
        for (name, digest) in &expected.outputs {
            let tensor = self.problem.tensor(name)?;
            output.outputs.insert(name.clone(), Values::from_le_bytes(tensor.dtype, &scratch.get(digest)?));
        }
        for (name, digest) in &expected.scales {
            if let Values::Float(values) = Values::from_le_bytes(DType::F64, &scratch.get(digest)?) {
                output.scales.insert(name.clone(), values);
            }
        }
        Some(output)
    }
}
