//! The inputs and expected values of a trial. Knows the kinds of reference; does not know how each is run.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::shared::{self, TrialValues};
use super::torch::Precision;
use super::{cpp, python, stored, torch, torch_inputs};
use crate::compare::CheckResult;
use crate::message::Response;
use crate::oracle::Scratch;
use crate::task::{Task, failed};
use kforge_foundation::base::Digest;
use kforge_numerics::reference::oracle::{self, OracleOutput};
use kforge_numerics::reference::{ProductBackend, Values, generate};
use kforge_types::model::{Compare, DType, InputsFunction, Problem, Reference, Tensor};
use kforge_types::record::params::{Expected, Trial};

/// The input of a step that holds the files with the values of stored tensors.
const INPUTS: &str = "tree:inputs";

/// Makes the inputs and expected values of a problem with the tools and files of a task.
pub struct Source<'a> {
    task: &'a Task,
    problem: &'a Problem,
    scratch: Option<Scratch>,
    /// Computes large products, if set.
    products: Option<Box<dyn ProductBackend>>,
    /// The precision of the first expected values, if a reference states it.
    precision: OnceLock<Precision>,
}

/// Tensors and their values.
pub type Named = BTreeMap<String, Values>;

impl<'a> Source<'a> {
    /// The source for one problem.
    pub fn new(task: &'a Task, problem: &'a Problem) -> Self {
        let scratch = task.places.scratch.as_ref().map(|(folder, limit)| Scratch::new(folder, *limit));
        Source { task, problem, scratch, products: None, precision: OnceLock::new() }
    }

    /// The same, with large products computed by `products`, if there is one. They have the same bits, so no result depends on who computed them.
    #[must_use]
    pub fn with_products(self, products: Option<Box<dyn ProductBackend>>) -> Self {
        Source { products, ..self }
    }

    /// Where large products were computed, if there were any and a device is present.
    pub fn said(&self) -> Option<String> {
        self.products.as_ref().and_then(|products| products.place())
    }

    /// The values of every tensor that is read, each rounded to its type. Inputs that a function of the package does not return are drawn as usual.
    pub fn inputs(&self, trial: &Trial) -> Result<Named, Response> {
        let (task, problem) = (self.task, self.problem);
        let mut values = match &problem.generate_inputs {
            None => Named::new(),
            Some(InputsFunction::Python(file, function)) => python::inputs(task, problem, trial, file, function)?,
            Some(InputsFunction::Torch { torch: (file, function) }) => {
                torch_inputs::inputs(task, problem, trial, (file, function))?
            }
        };
        for (tensor, file, key) in problem.stored() {
            let path = task.required(INPUTS)?.join(file);
            let of = stored::values(&path, key, tensor);
            values.insert(tensor.name.clone(), of.map_err(|why| failed(format!("`{file}` {why}")))?);
        }
        let drawn = match problem.generate_inputs {
            None => generate::inputs(problem, trial),
            Some(_) => generate::inputs(&Problem { generate_inputs: None, ..problem.clone() }, trial),
        };
        for (name, drawn) in drawn.map_err(|e| failed(format!("cannot generate inputs: {e}")))? {
            values.entry(name).or_insert(drawn);
        }
        Ok(values)
    }

    /// The values of every written tensor, and the scales if `scale` is set and the reference returns them.
    pub fn expected(&self, inputs: &Named, scale: bool) -> Result<OracleOutput, Response> {
        match &self.problem.reference {
            Reference::Builtin { .. } => oracle::expected_with(self.problem, inputs, scale, self.products.as_deref())
                .map_err(|e| failed(format!("cannot compute the expected values: {e}"))),
            Reference::Python { file, function } => {
                python::expected(self.task, self.problem, inputs, file, function, scale)
            }
            Reference::Torch { .. } => {
                let computed = self.expected_of_all(&[inputs], scale)?.pop();
                computed.ok_or_else(|| failed("BUG: one set of inputs gave no expected values".to_string()))
            }
            Reference::Cpp { file, function } => cpp::expected(self.task, self.problem, inputs, file, function, scale),
        }
    }

    /// The expected values of several sets of inputs. For a reference in PyTorch, one process computes them all.
    pub fn expected_of_all(&self, sets: &[&Named], scale: bool) -> Result<Vec<OracleOutput>, Response> {
        let Reference::Torch { file, function, call } = &self.problem.reference else {
            return sets.iter().map(|inputs| self.expected(inputs, scale)).collect();
        };
        let computed = torch::expected(self.task, self.problem, sets, (file, function, call), scale)?;
        if let Some((_, precision)) = computed.first() {
            self.precision.get_or_init(|| precision.clone());
        }
        Ok(computed.into_iter().map(|(output, _)| output).collect())
    }

    /// The precision of the first expected values, if the reference is one that states it.
    pub fn precision(&self) -> Option<&Precision> {
        self.precision.get()
    }

    /// Asks a function of the package about answers for one output, given with its expected values.
    pub fn checked(
        &self,
        inputs: &Named,
        output: (&Tensor, &Values),
        answers: &[(String, &Values)],
        check: (&str, &str),
    ) -> Result<Vec<CheckResult>, Response> {
        python::checked(self.task, self.problem, inputs, output, answers, check)
    }

    /// Stores expected values in the scratch folder. Returns their digests.
    pub fn keep(&self, output: &OracleOutput) -> Result<Expected, Response> {
        let put = |bytes: Vec<u8>| match &self.scratch {
            Some(scratch) => scratch
                .put(&bytes)
                .map_err(|e| failed(format!("cannot write expected values to the scratch folder: {e}"))),
            None => Ok(Digest::of_long(&bytes)),
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

    /// The values with the digests in `expected`: from the scratch folder, or computed again from `inputs`. If the computed values have other digests, that is
    /// an error: the reference does not reproduce its values, or the key omits something that the values depend on.
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

    /// The inputs and expected values of a trial, for comparing outputs as `compare` declares. Inputs are made only if expected values must be computed again
    /// or a comparison reads them.
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

    /// All values of a trial: kept by this process, or made and computed. Inputs that depend on files of the package are not kept, because the files may
    /// change.
    pub fn whole(&self, trial: &Trial, expected: &Expected) -> Result<Arc<TrialValues>, Response> {
        if let Some((_, name)) = self.names(trial, expected)?
            && let Some(kept) = shared::kept(&name)
        {
            return Ok(kept);
        }
        let inputs = self.inputs(trial)?;
        let output = self.recall(expected, &inputs)?;
        self.share(trial, expected, (inputs, output))
    }

    /// Keeps all values of a trial for later calls of [`Source::whole`].
    pub fn share(&self, trial: &Trial, expected: &Expected, values: TrialValues) -> Result<Arc<TrialValues>, Response> {
        let values = Arc::new(values);
        if let Some((problem, name)) = self.names(trial, expected)? {
            shared::keep(problem, name, &values);
        }
        Ok(values)
    }

    /// What identifies the problem, and what identifies the values of a trial; none if they are not kept.
    fn names(&self, trial: &Trial, expected: &Expected) -> Result<Option<(Digest, Digest)>, Response> {
        if self.problem.has_own_inputs() {
            return Ok(None);
        }
        let cannot = |e: serde_json::Error| failed(e.to_string());
        let problem = serde_json::to_vec(&self.problem).map_err(cannot)?;
        let all = serde_json::to_vec(&(&self.problem, trial, expected)).map_err(cannot)?;
        Ok(Some((Digest::of(&problem), Digest::of(&all))))
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
