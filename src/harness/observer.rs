//! Compares the outputs of runs with the expected values and with each other, for the observation of a verify step. Knows values, trials and findings; does not
//! know what ran the candidate, or where its buffers were.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::compare::{Compared, Leniency, observe, spread};
use crate::fresh::{FreshTrials, NotComputed};
use crate::layout;
use crate::message::Response;
use crate::oracle::{Named, TrialValues, python};
use crate::task::{Task, failed};
use kforge_foundation::base::Digest;
use kforge_numerics::measure::diagnose::{self, element};
use kforge_numerics::measure::diagnosed::speaks_of_values;
use kforge_numerics::reference::Values;
use kforge_numerics::reference::float::{gather_strided, round_values};
use kforge_numerics::reference::logical_shape;
use kforge_numerics::reference::oracle::OracleOutput;
use kforge_types::model::{Compare, Tensor};
use kforge_types::record::params::{Expected, Trial, VerifyParams};
use kforge_types::record::{
    Determinism, Diagnosis, Finding, FindingKind, Fresh, OutputObserved, TrialObserved, VerifyObservation, WrongPattern,
};

/// The contents of each written tensor after a run that ended normally, in the problem's order.
pub struct RunOutputs<'a> {
    /// Appended to the name of the distribution; empty for the first run.
    pub said: &'static str,
    /// The byte that filled the outputs before the run.
    pub poison: u8,
    /// Each written tensor and its bytes. Runs with outputs that are known to be equal may share the same memory.
    pub outputs: Vec<(&'a Tensor, Bytes<'a>)>,
}

/// Bytes, and their digest if it is known.
#[derive(Debug, Clone, Copy)]
pub struct Bytes<'a> {
    /// The bytes.
    pub of: &'a [u8],
    /// Their digest.
    pub digest: Option<Digest>,
}

impl<'a> From<&'a [u8]> for Bytes<'a> {
    fn from(of: &'a [u8]) -> Self {
        Bytes { of, digest: None }
    }
}

impl Bytes<'_> {
    /// Whether the bytes are equal; fast if both are the same memory.
    fn same(&self, other: &Self) -> bool {
        std::ptr::eq(self.of, other.of) || self.of == other.of
    }

    fn digest(&self) -> Digest {
        self.digest.unwrap_or_else(|| Digest::of_long(self.of))
    }
}

/// The inputs and expected values with which outputs of a trial are compared.
pub enum Against<'a> {
    /// They exist.
    Values(&'a Named, &'a OracleOutput),
    /// They are computed when an output occurs that no step of this process has compared with them before. Holds what identifies the expected values, the
    /// function that computes everything, and its result.
    Later(&'a Expected, &'a dyn Fn() -> Result<TrialValues, Response>, OnceCell<TrialValues>),
}

impl<'a> Against<'a> {
    /// Computes the values only if they are needed.
    pub fn later(expected: &'a Expected, make: &'a dyn Fn() -> Result<TrialValues, Response>) -> Self {
        Against::Later(expected, make, OnceCell::new())
    }

    fn get(&self) -> Result<(&Named, &OracleOutput), Response> {
        match self {
            Against::Values(inputs, expected) => Ok((inputs, expected)),
            Against::Later(_, make, made) => {
                if made.get().is_none() {
                    // The cell is still empty: only this thread uses it.
                    let _ = made.set(make()?);
                }
                let held = made.get().ok_or_else(|| failed("BUG: what was just made is gone"))?;
                Ok((&held.0, &held.1))
            }
        }
    }
}

/// The observations of outputs that this process has made, by a digest of everything that determines each one. Variants of a kernel often leave exactly the
/// same bytes.
static OBSERVED: Mutex<BTreeMap<Digest, OutputObserved>> = Mutex::new(BTreeMap::new());
/// The maximum number of stored observations.
const KEPT: usize = 1024;

/// Builds the observation of a verify step.
pub struct Observer<'a> {
    task: &'a Task,
    params: &'a VerifyParams,
    /// What was observed so far.
    pub seen: VerifyObservation,
    /// What differs between runs on the same inputs, for messages: `the order of threads`.
    pub hangs_on: &'static str,
    /// The seed of the fresh trial that is being run.
    fresh: Option<u64>,
}

/// Whether two findings are about the same lines and the same memory.
fn is_same_place(a: &Finding, b: &Finding) -> bool {
    let lines = |f: &Finding| {
        let mut lines = [f.line.clone(), f.other_line.clone()];
        lines.sort();
        lines
    };
    a.line.is_some() && a.buffer.is_some() && a.buffer == b.buffer && lines(a) == lines(b)
}

/// What explains an output with elements that were not written, whose other elements are `seen`: only the type or size of its elements can. `missing` are the
/// first such element and their number.
fn of_written(tensor: &Tensor, seen: &OutputObserved, missing: (u64, u64)) -> Option<Diagnosis> {
    let by_type = |found: &&Diagnosis| matches!(found.pattern, WrongPattern::ElementType { .. });
    let wrong = seen.gross.as_ref().map_or(0, |gross| gross.count);
    let by_size = || element::written_part(tensor.dtype, tensor.elements(), missing, wrong);
    let found = seen.diagnosis.as_ref().filter(by_type).cloned().or_else(by_size);
    found.filter(|_| tensor.is_contiguous())
}

impl<'a> Observer<'a> {
    /// An empty observation. `ran_as` is as in the observation.
    pub fn new(
        task: &'a Task,
        params: &'a VerifyParams,
        emulated: bool,
        ran_as: String,
        hangs_on: &'static str,
    ) -> Self {
        let seen = VerifyObservation::begun(emulated, params.trials.len() as u32, ran_as);
        Observer { task, params, seen, hangs_on, fresh: None }
    }

    /// Records that these trials are run in addition to those that the parameters request.
    pub fn drawn(&mut self, fresh: &FreshTrials) {
        self.seen.asked += fresh.trials().len() as u32;
        self.seen.fresh = Some(fresh.observed());
    }

    /// Records that there are no fresh trials, for this reason. A fault of the system is none: the step fails, and the next build tries again.
    pub fn left_out(&mut self, why: &NotComputed) -> Result<(), Response> {
        if let NotComputed::NotKept { message } = why {
            return Err(failed(message));
        }
        if let Some(Fresh::Drawn(drawn)) = &self.seen.fresh {
            self.seen.asked -= drawn.len() as u32;
        }
        self.seen.fresh = Some(Fresh::LeftOut(why.to_string()));
        Ok(())
    }

    /// Says which trial the next findings are about, if they are about one. Findings of a fresh trial say its seed.
    pub fn within(&mut self, trial: Option<u32>) {
        self.fresh = trial.and_then(|trial| self.seen.fresh_trial(trial)).map(|fresh| fresh.seed);
    }

    /// Adds a finding. If an earlier trial had the same finding, only its count grows, whichever element and thread it is about.
    pub fn find(&mut self, finding: Finding) {
        let same = |other: &&mut Finding| {
            other.kind == finding.kind && (other.message == finding.message || is_same_place(other, &finding))
        };
        match self.seen.findings.iter_mut().find(same) {
            Some(other) => other.count = other.count.saturating_add(finding.count),
            None => {
                let message = match self.fresh {
                    Some(seed) => format!("{} (on inputs of a fresh trial: seed {seed})", finding.message),
                    None => finding.message.clone(),
                };
                self.seen.findings.push(Finding { message, ..finding });
            }
        }
    }

    /// Compares every output of every run, whole, with the expected values and with the first run.
    pub fn compare(&mut self, trial: &Trial, against: &Against<'_>, ended: &[RunOutputs<'_>]) -> Result<(), Response> {
        let mut trials: Vec<TrialObserved> = vec![];
        self.within(Some(trial.trial));
        for (at, (tensor, _)) in ended.first().map_or(&vec![], |left| &left.outputs).iter().enumerate() {
            let of_runs: Vec<(u8, &[u8])> = ended.iter().map(|left| (left.poison, left.outputs[at].1.of)).collect();
            let unwritten = layout::unwritten(tensor, &of_runs);
            // Unwritten elements hold the poison, which differs between runs, so a comparison with the first run would say nothing.
            let whole = unwritten.is_none();
            let missing = unwritten.as_ref().map(|finding| (finding.index.unwrap_or(0) as u64, finding.count));
            if let Some(finding) = unwritten {
                self.find(finding);
            }
            let first = ended[0].outputs[at].1;
            for (run, left) in ended.iter().enumerate() {
                let bytes = left.outputs[at].1;
                // A run with exactly the bytes of the first is as correct or wrong as the first.
                if run > 0 && bytes.same(&first) {
                    continue;
                }
                let mut seen = self.observe_bytes(trial, tensor, against, bytes)?;
                if let Some(missing) = missing {
                    seen.diagnosis = of_written(tensor, &seen, missing);
                    let of_values = seen.diagnosis.as_ref().is_some_and(|found| speaks_of_values(&found.pattern));
                    seen.fit = seen.fit.take().filter(|_| of_values);
                }
                let distribution = format!("{}{}", trial.distribution, ended[run].said);
                match trials.iter_mut().find(|other| other.distribution == distribution) {
                    Some(other) => other.outputs.push(seen),
                    None => trials.push(TrialObserved { trial: trial.trial, distribution, outputs: vec![seen] }),
                }
                if run > 0 && whole {
                    let got = gather_strided(tensor, bytes.of).map_err(failed)?;
                    self.differs(tensor, first.of, &got, trial, ended[run].said)?;
                }
            }
        }
        if ended.len() > 1 && self.seen.determinism == Determinism::Unknown {
            self.seen.determinism = Determinism::Stable;
        }
        self.seen.trials.extend(trials);
        self.within(None);
        Ok(())
    }

    /// Compares an output's bytes with the expected values, or returns the stored observation of the same bytes.
    fn observe_bytes(
        &self,
        trial: &Trial,
        tensor: &Tensor,
        against: &Against<'_>,
        bytes: Bytes<'_>,
    ) -> Result<OutputObserved, Response> {
        let name = self.name(trial, tensor, against, bytes)?;
        let lock = || OBSERVED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = name.as_ref().and_then(|name| lock().get(name).cloned()) {
            return Ok(known);
        }
        let got = gather_strided(tensor, bytes.of).map_err(failed)?;
        let (inputs, expected) = against.get()?;
        let mut seen = self.observe(tensor, inputs, expected, &got)?;
        let want = expected.outputs.get(&tensor.name);
        if let (Some(gross), Some(want), true) = (&seen.gross, want, seen.diagnosis.is_none() && self.is_plain(tensor))
            && tensor.is_contiguous()
        {
            let found = element::other_type(tensor.dtype, bytes.of, &want.as_f64(tensor.dtype), gross.count);
            (seen.diagnosis, seen.fit) = found.map(|found| (found.diagnosis, found.fit)).unzip();
        }
        if let Some(name) = name {
            let mut all = lock();
            if all.len() >= KEPT {
                all.clear();
            }
            all.insert(name, seen.clone());
        }
        Ok(seen)
    }

    /// A digest of everything that determines an observation; none if a function of the package decides, because its file may change.
    fn name(
        &self,
        trial: &Trial,
        tensor: &Tensor,
        against: &Against<'_>,
        bytes: Bytes<'_>,
    ) -> Result<Option<Digest>, Response> {
        let (Against::Later(expected, ..), of) = (against, &tensor.name) else { return Ok(None) };
        let compare = self.params.compare.get(of);
        if matches!(compare, Some(Compare::Python(..))) || self.params.problem.has_own_inputs() {
            return Ok(None);
        }
        let scaled = self.params.scaled.contains(of);
        let rest = (&self.params.problem, trial, of, compare, scaled, self.params.count_beyond.get(of), expected);
        let mut all = serde_json::to_vec(&rest).map_err(|e| failed(e.to_string()))?;
        all.extend(bytes.digest().to_string().as_bytes());
        Ok(Some(Digest::of(&all)))
    }

    /// Compares one output with its expected values.
    pub fn observe(
        &self,
        tensor: &Tensor,
        inputs: &Named,
        expected: &OracleOutput,
        got: &Values,
    ) -> Result<OutputObserved, Response> {
        let name = &tensor.name;
        let want = expected.outputs.get(name).ok_or_else(|| failed(format!("no values are expected for `{name}`")))?;
        let (problem, compare) = (&self.params.problem, self.params.compare.get(name).unwrap_or(&Compare::Elements));
        let leniency = match compare {
            Compare::Python(file, function) => {
                let answers = [("the kernel".to_string(), got)];
                let check = (file.as_str(), function.as_str());
                let said = python::checked(self.task, problem, inputs, (tensor, want), &answers, check)?;
                said.into_iter().next().map(|said| Leniency::Check(format!("{file}::{function}"), said))
            }
            other => Leniency::declared(other, problem, name, inputs).map_err(failed)?,
        };
        let leniency =
            leniency.ok_or_else(|| failed(format!("nothing says which elements of `{name}` are acceptable")))?;
        let scaled = self.params.scaled.contains(name);
        let scale = expected.scales.get(name).filter(|_| scaled).map(Vec::as_slice);
        let beyond = self.params.count_beyond.get(name);
        let mut seen = observe(&Compared { tensor, got, want, scale, beyond }, &leniency).map_err(failed)?;
        if seen.gross.is_some() && self.is_plain(tensor) {
            let want = round_values(tensor.dtype, want);
            let shape: Vec<u64> = logical_shape(tensor).into_iter().map(|extent| extent as u64).collect();
            let (got, want) = (got.as_f64(tensor.dtype), want.as_f64(tensor.dtype));
            let (dtype, dims) = (tensor.dtype, &problem.dims);
            let output = diagnose::Output { dtype, shape: &shape, dims, got: &got, want: &want, scale };
            (seen.diagnosis, seen.fit) = diagnose::diagnose(&output).map(|found| (found.diagnosis, found.fit)).unzip();
        }
        Ok(seen)
    }

    /// Whether each element of an output has one expected value, so that values in other places can be found.
    fn is_plain(&self, tensor: &Tensor) -> bool {
        matches!(self.params.compare.get(&tensor.name), None | Some(Compare::Elements))
    }

    /// Whether the elements of an output are compared one by one, so that a different value in one place matters.
    pub fn by_element(&self, tensor: &Tensor) -> bool {
        matches!(self.params.compare.get(&tensor.name), None | Some(Compare::Elements)) && tensor.dtype.is_float()
    }

    /// Records that a run differed from the first.
    fn differs(
        &mut self,
        tensor: &Tensor,
        first: &[u8],
        got: &Values,
        trial: &Trial,
        said: &str,
    ) -> Result<(), Response> {
        let first = gather_strided(tensor, first).map_err(failed)?;
        let (apart, gross) = spread(tensor.dtype, &first, got);
        let most = match &self.seen.determinism {
            Determinism::Differs { spread, .. } => *spread,
            _ => -1.0,
        };
        if apart > most {
            // JSON cannot represent infinity; the largest finite number serves as well.
            let spread = apart.min(f64::MAX);
            self.seen.determinism = Determinism::Differs { output: tensor.name.clone(), spread };
        }
        if gross && self.by_element(tensor) {
            let name = &tensor.name;
            let message =
                format!("`{name}` depends on {} beyond rounding (trial {}{said})", self.hangs_on, trial.trial);
            let finding = Finding::new(FindingKind::OrderDependent, message);
            self.find(Finding { buffer: Some(name.clone()), ..finding });
        }
        Ok(())
    }
}
