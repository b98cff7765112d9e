//! Launches on inputs of a stress class, at random positions among the timed ones. Knows trials, outputs and expected values; uses no tolerance: the step that
//! confirms a champion judges what is observed here.
//!
//! Such a launch is made exactly like a timed one: in a batch of random length, after all sets were laid again, on the same buffers, behind the same gate, and
//! in graphs if the others are. Only its inputs differ, which it cannot know without reading them. Its outputs must equal those of an untimed launch, like those
//! of timed launches, and are compared with the expected values.

use std::sync::Arc;

use super::super::buffers::Image;
use super::super::client::Lost;
use super::super::inputs::{self, Inputs};
use super::super::products::products;
use super::super::read_back::{self, ReadBack};
use super::super::rig::Rig;
use super::samples::BATCH;
use super::{Bench, CANARY};
use kforge_harness::fresh::{FreshTrials, NotComputed};
use kforge_harness::layout::POISONS;
use kforge_harness::message::Response;
use kforge_harness::observer::{Against, Bytes, Observer, RunOutputs};
use kforge_harness::oracle::Source;
use kforge_harness::task::{Task, failed};
use kforge_types::model::{Compare, Reference, Tensor};
use kforge_types::record::params::{Trial, VerifyParams};
use kforge_types::record::timing::StressObserved;

/// The most different outputs of one tensor that are kept. Only a kernel whose additions have no order leaves more.
const KEPT: usize = 4;

/// What a launch left: the sums and the bytes of each written tensor.
type Left = (Vec<u64>, Vec<Arc<ReadBack>>);

/// A trial of a stress class, and what launches on its inputs left.
pub(super) struct StressTrial {
    drawn: FreshTrials,
    trial: Trial,
    inputs: Arc<Inputs>,
    seen: StressObserved,
    /// Outputs of launches with different sums.
    left: Vec<Left>,
}

/// Whether the expected values are computed and compared by kforge itself. What a function of the package needs is no input of this step.
fn is_own(params: &VerifyParams) -> bool {
    let problem = &params.problem;
    matches!(problem.reference, Reference::Builtin { .. })
        && problem.generate_inputs.is_none()
        && !params.compare.values().any(|compare| matches!(compare, Compare::Python(..)))
}

fn source<'a>(task: &'a Task, params: &'a VerifyParams) -> Source<'a> {
    Source::new(task, &params.problem).with_products(products(task))
}

impl StressTrial {
    /// Draws a trial, or takes one that another timing drew; none if no stress class suits the problem. The expected values are computed here, before the
    /// device is locked, unless another timing has computed them.
    pub(super) fn draw(task: &Task, params: &VerifyParams) -> Result<Option<Self>, Response> {
        let Some(drawn) = FreshTrials::stress(task, params)? else { return Ok(None) };
        if is_own(params)
            && let Err(why) = drawn.expected(0, &source(task, params))
        {
            return match why {
                NotComputed::Unavailable { .. } => Ok(None),
                why => Err(failed(why.to_string())),
            };
        }
        let (trial, seed) = drawn.trial(0);
        let inputs = inputs::inputs(task, &params.problem, &trial)?;
        let seen = StressObserved { class: trial.distribution.clone(), seed, ..StressObserved::default() };
        Ok(Some(StressTrial { drawn, trial, inputs, seen, left: vec![] }))
    }

    /// Its inputs.
    pub(super) fn inputs(&self) -> Arc<Inputs> {
        Arc::clone(&self.inputs)
    }

    /// The observation, with the outputs compared with the expected values.
    pub(super) fn compared(self, task: &Task, params: &VerifyParams) -> Result<StressObserved, Response> {
        let StressTrial { drawn, trial, mut seen, left, .. } = self;
        if left.is_empty() || !is_own(params) {
            return Ok(seen);
        }
        let source = source(task, params);
        let expected = drawn.expected(0, &source).map_err(|why| failed(why.to_string()))?.0;
        let make = || source.held(&trial, &expected, &params.compare);
        let written: Vec<&Tensor> = params.problem.written().collect();
        let mut observer = Observer::new(task, params, false, String::new(), "something other than its inputs");
        for (_, outputs) in &left {
            let outputs = written.iter().zip(outputs);
            let outputs =
                outputs.map(|(tensor, known)| (*tensor, Bytes { of: &known.bytes, digest: Some(known.digest) }));
            let outputs = outputs.collect();
            let run = RunOutputs { said: "", poison: POISONS[0], outputs };
            observer.compare(&trial, &Against::later(&expected, &make), &[run])?;
        }
        seen.outputs = observer.seen.trials.into_iter().flat_map(|trial| trial.outputs).collect();
        Ok(seen)
    }
}

impl Bench<'_> {
    /// How many batches of a series have inputs of the stress class: one or two.
    pub(super) fn stresses(&mut self) -> u64 {
        if self.stress.is_some() { 1 + self.luck.below(2) } else { 0 }
    }

    /// Takes a batch on inputs of the stress class, and keeps what it left. Returns the fault of the outputs, if any. The sets then hold other inputs again.
    pub(super) fn stressed(&mut self, cold: bool, graphs: (u32, f64)) -> Result<Option<String>, Lost> {
        let count = BATCH - self.luck.below(BATCH as u64 / 2) as usize;
        self.is_stressed = true;
        self.swap()?;
        // Samples that limits of the device invalidate say nothing of the class either.
        let took = self.batch(cold, graphs, count)?.unwrap_or_default();
        let sets = if cold { self.sets.min(count as u32) } else { 1 };
        let left = self.left(sets)?;
        let of =
            self.stress.as_ref().map_or((String::new(), 0), |stress| (stress.seen.class.clone(), stress.seen.seed));
        if let Some(stress) = &mut self.stress {
            if cold { &mut stress.seen.cold_ns } else { &mut stress.seen.hot_ns }.extend(took);
            for (sums, outputs) in left {
                if stress.left.len() < KEPT && stress.left.iter().all(|(known, _)| *known != sums) {
                    stress.left.push((sums, outputs));
                }
            }
        }
        let wrong = self.look(sets)?;
        self.is_stressed = false;
        self.swap()?;
        Ok(wrong.map(|wrong| format!("{wrong}, on inputs of the stress class `{}` (seed {})", of.0, of.1)))
    }

    /// The outputs that the first sets hold, with their sums. Bytes that this process knows are not read again.
    fn left(&mut self, sets: u32) -> Result<Vec<Left>, Lost> {
        let sets = if self.params.constants.is_empty() { sets } else { 1 };
        let mut all: Vec<Left> = vec![];
        for set in 0..sets {
            let images: Vec<Image<'_>> =
                Rig::images(self.params, &self.inputs[self.trial(set)], POISONS[self.turn as usize % 2]);
            self.is_warm = false;
            let shown = self.rig.show(set, images.iter(), CANARY, inputs::salt())?;
            let sums = read_back::sums(&images, &shown);
            if all.iter().any(|(known, _)| *known == sums) {
                continue;
            }
            let mut outputs = vec![];
            for (image, shown) in images.iter().zip(&shown).filter(|(image, _)| image.written().is_some()) {
                outputs.push(match read_back::known(shown.sum, image.own) {
                    Some(known) => known,
                    None => Arc::new(ReadBack::new(self.rig.own(set, image)?)),
                });
            }
            all.push((sums, outputs));
        }
        Ok(all)
    }
}
