//! What runs left in their outputs, against what was expected and against each other: into the observation of a verify step. Knows values, trials and findings;
//! does not know what ran the candidate, or where its buffers lay.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::compare::{Compared, Leniency, observe, spread};
use crate::layout;
use crate::message::Response;
use crate::oracle::{Named, python};
use crate::task::{Task, failed};
use kforge_foundation::base::Digest;
use kforge_numerics::reference::Values;
use kforge_numerics::reference::float::gather_strided;
use kforge_numerics::reference::oracle::OracleOutput;
use kforge_types::model::{Compare, Tensor};
use kforge_types::record::params::{Expected, Trial, VerifyParams};
use kforge_types::record::{Determinism, Finding, FindingKind, OutputObserved, TrialObserved, VerifyObservation};

/// What one run that got to its end left in each written tensor, in the problem's order.
pub struct RunOutputs<'a> {
    /// What is added to the name of the distribution; empty for the first.
    pub said: &'static str,
    /// The byte that outputs held before.
    pub poison: u8,
    /// Each written tensor and its bytes. Runs that are known to have left the same may show the very same memory.
    pub outputs: Vec<(&'a Tensor, Bytes<'a>)>,
}

/// Bytes, and their digest where it is known.
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
    /// Whether they are the same; quick where they are the same memory.
    fn same(&self, other: &Self) -> bool {
        std::ptr::eq(self.of, other.of) || self.of == other.of
    }

    fn digest(&self) -> Digest {
        self.digest.unwrap_or_else(|| Digest::of_long(self.of))
    }
}

/// Inputs of a trial, and what is expected of it.
type TrialValues = (Named, OracleOutput);

/// What outputs of a trial are held against.
pub enum Against<'a> {
    /// It is there.
    Values(&'a Named, &'a OracleOutput),
    /// It is made when an output comes that no step of this process has held against it: what is expected, how it is made, and what was.
    Later(&'a Expected, &'a dyn Fn() -> Result<TrialValues, Response>, OnceCell<TrialValues>),
}

impl<'a> Against<'a> {
    /// Made only if it is needed.
    pub fn later(expected: &'a Expected, make: &'a dyn Fn() -> Result<TrialValues, Response>) -> Self {
        Against::Later(expected, make, OnceCell::new())
    }

    fn get(&self) -> Result<(&Named, &OracleOutput), Response> {
        match self {
            Against::Values(inputs, expected) => Ok((inputs, expected)),
            Against::Later(_, make, made) => {
                if made.get().is_none() {
                    // Nobody else can have set it: there is one thread here.
                    let _ = made.set(make()?);
                }
                let held = made.get().ok_or_else(|| failed("BUG: what was just made is gone"))?;
                Ok((&held.0, &held.1))
            }
        }
    }
}

/// What this process has observed of outputs, by all that enters it: variants of a kernel often leave the very same bytes.
static OBSERVED: Mutex<BTreeMap<Digest, OutputObserved>> = Mutex::new(BTreeMap::new());
/// Observations that are kept at most.
const KEPT: usize = 1024;

/// The observation as it grows.
pub struct Observer<'a> {
    task: &'a Task,
    params: &'a VerifyParams,
    /// What was seen so far.
    pub seen: VerifyObservation,
    /// What runs on the same inputs depend on where they differ: `the order of threads`.
    pub hangs_on: &'static str,
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

impl<'a> Observer<'a> {
    /// Nothing seen yet. `ran_as` as in the observation.
    pub fn new(
        task: &'a Task,
        params: &'a VerifyParams,
        emulated: bool,
        ran_as: String,
        hangs_on: &'static str,
    ) -> Self {
        let seen = VerifyObservation::begun(emulated, params.trials.len() as u32, ran_as);
        Observer { task, params, seen, hangs_on }
    }

    /// Adds a finding; one that an earlier trial gave already counts with it, whichever element and thread it was about there.
    pub fn find(&mut self, finding: Finding) {
        let same = |other: &&mut Finding| {
            other.kind == finding.kind && (other.message == finding.message || is_same_place(other, &finding))
        };
        match self.seen.findings.iter_mut().find(same) {
            Some(other) => other.count = other.count.saturating_add(finding.count),
            None => self.seen.findings.push(finding),
        }
    }

    /// Compares every output of every run whole: with what is expected, and with the first run.
    pub fn compare(&mut self, trial: &Trial, against: &Against<'_>, ended: &[RunOutputs<'_>]) -> Result<(), Response> {
        let mut trials: Vec<TrialObserved> = vec![];
        for (at, (tensor, _)) in ended.first().map_or(&vec![], |left| &left.outputs).iter().enumerate() {
            let of_runs: Vec<(u8, &[u8])> = ended.iter().map(|left| (left.poison, left.outputs[at].1.of)).collect();
            let unwritten = layout::unwritten(tensor, &of_runs);
            // Unwritten elements hold the poison, which differs between runs: that says nothing about how runs differ.
            let whole = unwritten.is_none();
            if let Some(finding) = unwritten {
                self.find(finding);
            }
            let first = ended[0].outputs[at].1;
            for (run, left) in ended.iter().enumerate() {
                let bytes = left.outputs[at].1;
                // A run that gave the very bytes of the first is as correct or wrong as that.
                if run > 0 && bytes.same(&first) {
                    continue;
                }
                let seen = self.observe_bytes(trial, tensor, against, bytes)?;
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
        Ok(())
    }

    /// One output's bytes against what is expected, or what was found of the same before.
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
        let seen = self.observe(tensor, inputs, expected, &got)?;
        if let Some(name) = name {
            let mut all = lock();
            if all.len() >= KEPT {
                all.clear();
            }
            all.insert(name, seen.clone());
        }
        Ok(seen)
    }

    /// A digest of all that enters an observation; none if a function of the package says what may stand, whose file may be another next time.
    fn name(
        &self,
        trial: &Trial,
        tensor: &Tensor,
        against: &Against<'_>,
        bytes: Bytes<'_>,
    ) -> Result<Option<Digest>, Response> {
        let (Against::Later(expected, ..), of) = (against, &tensor.name) else { return Ok(None) };
        let compare = self.params.compare.get(of);
        if matches!(compare, Some(Compare::Python(..))) || self.params.problem.generate_inputs.is_some() {
            return Ok(None);
        }
        let scaled = self.params.scaled.contains(of);
        let rest = (&self.params.problem, trial, of, compare, scaled, self.params.count_beyond.get(of), expected);
        let mut all = serde_json::to_vec(&rest).map_err(|e| failed(e.to_string()))?;
        all.extend(bytes.digest().to_string().as_bytes());
        Ok(Some(Digest::of(&all)))
    }

    /// One output against what is expected.
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
        observe(&Compared { tensor, got, want, scale, beyond }, &leniency).map_err(failed)
    }

    /// Whether elements of an output are compared by themselves, so that other values in their places mean something.
    pub fn by_element(&self, tensor: &Tensor) -> bool {
        matches!(self.params.compare.get(&tensor.name), None | Some(Compare::Elements)) && tensor.dtype.is_float()
    }

    /// Notes that a run differed from the first.
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
            // Infinity has no place in JSON; a difference of the largest number says as much.
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
