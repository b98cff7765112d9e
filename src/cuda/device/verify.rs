//! The verify step on a device: the candidate runs in another process, on a device; this side makes inputs, holds expected values, and compares the outputs
//! after the module is unloaded. Knows trials and runs; uses tolerances only to count the elements that exceed them.
//!
//! | run | inputs | what it detects |
//! |---|---|---|
//! | first | the trial's inputs, other buffers poisoned | wrong answers |
//! | other poison, other buffers | the same | unwritten elements, dependence on addresses |
//! | again | the same | outputs that differ between equal runs |
//! | again after other inputs | those of the first trial, after all other trials have run | state in the module's globals |
//! | of a fresh trial, once | inputs that were drawn for this verification | answers that were known before |
//!
//! A verification that confirms a champion (`isolated`) runs in a process that has run no other candidate, which could have left something in its memory. The
//! others share a warm process.
//!
//! All runs use one loaded module, and nothing resets its globals, so an answer that was kept from an earlier trial is now wrong.
//!
//! Buffers are read back only if that gives new information: outputs whose sum on the device is new to this process (in this step and in those of other
//! variants), and everything that has changed according to its sum. Sums are salted with a number that the candidate cannot know.

use std::sync::Arc;

use super::buffers::{self, Image};
use super::client::Lost;
use super::fault::Meaning;
use super::hosted;
use super::inputs::{self, Inputs};
use super::products::products;
use super::read_back::{self, ReadBack};
use super::rig::{Launchable, Rig, completed};
use super::sanitize;
use kforge_engine::evidence::PROVENANCE;
use kforge_foundation::base::count;
use kforge_harness::fresh::{FreshTrials, NotComputed};
use kforge_harness::layout::POISONS;
use kforge_harness::message::Response;
use kforge_harness::observer::{Against, Bytes, Observer, RunOutputs};
use kforge_harness::oracle::Source;
use kforge_harness::task::Task;
use kforge_types::model::Tensor;
use kforge_types::record::params::{Expected, Trial, VerifyParams};
use kforge_types::record::{Determinism, Finding, FindingKind, Fresh, Provenance, Verdict};

/// The slot of the candidate.
const SLOT: u8 = 0;

/// One way of running a trial.
struct Run {
    poison: u8,
    said: &'static str,
}

const RUNS: [Run; 3] = [
    Run { poison: POISONS[0], said: "" },
    Run { poison: POISONS[1], said: ", other buffers" },
    Run { poison: POISONS[0], said: ", again" },
];
const LAST: Run = Run { poison: POISONS[1], said: ", again after other inputs" };

/// The outputs of one run.
struct ComparedRun<'a> {
    trial: usize,
    run: &'static Run,
    /// Each written tensor, the sum of its bytes, and the bytes.
    outputs: Vec<(&'a Tensor, u64, Arc<ReadBack>)>,
}

/// Executes a verify step on a device.
pub fn verify(task: &Task) -> Response {
    verified(task).unwrap_or_else(|response| response)
}

fn verified(task: &Task) -> Result<Response, Response> {
    let params: VerifyParams = task.params()?;
    if params.host.is_some() {
        return hosted::verify(task, &params);
    }
    let params = completed(task, params, "")?;
    let candidate = Launchable::new(task, &params, "")?;
    sanitize::possible(task, &params)?;
    // The inputs and outputs of the current trial, its expected values, and the outputs of two trials.
    let fresh = FreshTrials::draw(task, &params)?;
    let trials: Vec<Trial> = params.trials.iter().chain(fresh.trials()).cloned().collect();
    let most = buffers::bytes(&params.problem, &params.workspaces).saturating_mul(trials.len() as u64 + 4);
    if most > task.memory_limit {
        let limit = task.memory_limit;
        let why =
            format!("its buffers need {most} bytes of memory, but the limit is {limit} (setting `build.memory-limit`)");
        return Err(Response::Unavailable { why });
    }
    // An earlier step may have left the runner without enough memory. In that case the step is repeated in a new runner.
    match observed(task, &params, (&fresh, &trials), &candidate, false) {
        Err(Response::Unavailable { .. }) => observed(task, &params, (&fresh, &trials), &candidate, true),
        other => other,
    }
}

fn observed(
    task: &Task,
    params: &VerifyParams,
    trials: (&FreshTrials, &[Trial]),
    candidate: &Launchable<'_>,
    new_runner: bool,
) -> Result<Response, Response> {
    // A runner may still be being started meanwhile.
    inputs::ahead(task, &params.problem, trials.1)?;
    let mut rig = match params.isolated && !new_runner {
        true => Rig::isolated(task, &params.arch, candidate)?,
        false => Rig::new(task, &params.arch, new_runner)?,
    };
    let provenance = rig.provenance(params.protocol);
    rig.possible(params)?;
    // Exclusive use: steps that share the device wait for each other's time slices, which takes longer than running in sequence.
    rig.lock(true)?;
    let sets = rig.sets(params, 2)?;
    let mut observer =
        Observer::new(task, params, false, provenance.device.to_string(), "something other than its inputs");
    observer.seen.unconfined.clone_from(&rig.client.unconfined);
    let (fresh, trials) = trials;
    let mut verifier = Verifier { task, params, trials, fresh, rig, sets, observer, kept: vec![], passing: None };
    match verifier.runs(candidate) {
        Ok(()) => {}
        Err(Trouble::Lost(lost)) => verifier.lost(lost)?,
        Err(Trouble::Answer(response)) => return Err(response),
    }
    verifier.observer.within(None);
    verifier.rig.unlock();
    let sanitized = match verifier.passing {
        None if !params.sanitize.is_empty() => {
            verifier.rig.lock(false)?;
            let found = sanitize::sanitize(task, params)?;
            verifier.rig.unlock();
            found
        }
        _ => vec![],
    };
    verifier.compare()?;
    sanitized.into_iter().for_each(|finding| verifier.observer.find(finding));
    verifier.finish(provenance)
}

fn bytes(known: &ReadBack) -> Bytes<'_> {
    Bytes { of: &known.bytes, digest: Some(known.digest) }
}

/// Why not every run was completed.
enum Trouble {
    Lost(Lost),
    Answer(Response),
}

impl From<Lost> for Trouble {
    fn from(lost: Lost) -> Self {
        Trouble::Lost(lost)
    }
}

struct Verifier<'a> {
    task: &'a Task,
    params: &'a VerifyParams,
    /// The trials of the parameters, and then the fresh ones.
    trials: &'a [Trial],
    fresh: &'a FreshTrials,
    rig: Rig<'a>,
    /// Sets of buffers that runs use in turn.
    sets: u32,
    observer: Observer<'a>,
    kept: Vec<ComparedRun<'a>>,
    /// A failure that may not recur, such as a time-out.
    passing: Option<String>,
}

impl<'a> Verifier<'a> {
    /// Runs every trial, then the first trial again. The module is loaded before and unloaded after.
    fn runs(&mut self, candidate: &Launchable<'_>) -> Result<(), Trouble> {
        let params = self.params;
        let inputs = |trial: &Trial| inputs::inputs(self.task, &params.problem, trial).map_err(Trouble::Answer);
        self.rig.load(SLOT, candidate)?;
        let mut turn = 0;
        for (at, trial) in params.trials.iter().enumerate() {
            let inputs = inputs(trial)?;
            for run in &RUNS {
                self.run(candidate, (at, run), &inputs, turn)?;
                turn += 1;
            }
        }
        if let [first, _, ..] = &params.trials[..] {
            let inputs = inputs::inputs(self.task, &params.problem, first).map_err(Trouble::Answer)?;
            self.run(candidate, (0, &LAST), &inputs, turn)?;
            turn += 1;
        }
        self.observer.drawn(self.fresh);
        for (at, trial) in self.trials.iter().enumerate().skip(params.trials.len()) {
            let inputs = match inputs::inputs(self.task, &params.problem, trial) {
                Ok(inputs) => inputs,
                Err(response) => {
                    self.observer.left_out(&NotComputed::from(response)).map_err(Trouble::Answer)?;
                    break;
                }
            };
            self.observer.within(Some(trial.trial));
            self.run(candidate, (at, &RUNS[at % 2]), &inputs, turn)?;
            turn += 1;
        }
        // Each run was waited for, so its effects are visible by now.
        self.rig.unload(SLOT);
        Ok(())
    }

    fn run(
        &mut self,
        candidate: &Launchable<'_>,
        (trial, run): (usize, &'static Run),
        inputs: &Inputs,
        turn: u32,
    ) -> Result<(), Lost> {
        // The sets are 0, 1 1, 1 0 0, 0 1 1: each run except the first of its kind uses the set of the previous run, with the same or other inputs.
        let set = turn.div_ceil(3) % self.sets;
        let canary = buffers::canary(self.trials[trial].seed, u64::from(turn));
        let images: Vec<Image<'a>> = Rig::images(self.params, inputs, run.poison);
        if turn == 0 {
            (0..self.sets).for_each(|set| self.rig.allocate(set, &images));
        }
        self.rig.lay(set, &images, canary)?;
        self.rig.constants(SLOT, candidate, set);
        let shown = self.rig.run_and_show(SLOT, set, &images, canary)?;
        let first = self.kept.iter().find(|kept| kept.trial == trial).map(|kept| kept.outputs.clone());
        let mut outputs = vec![];
        for (image, shown) in images.iter().zip(shown) {
            let tensor = image.written();
            let before = tensor.and_then(|tensor| {
                let same = |(of, sum, _): &&(&Tensor, u64, Arc<ReadBack>)| of.name == tensor.name && *sum == shown.sum;
                let first = first.as_ref().and_then(|first| first.iter().find(same));
                first.map(|(_, _, bytes)| Arc::clone(bytes)).or_else(|| read_back::known(shown.sum, image.own))
            });
            let changed = image.kept_sum().is_some_and(|sum| sum != shown.sum);
            let unseen = tensor.is_some() && (before.is_none() || !image.is_dense());
            let read = if shown.spoilt > 0 || changed || unseen || image.must_be_read() {
                let after = image.after(canary, self.rig.read(set, image)?);
                after.findings.into_iter().for_each(|finding| self.observer.find(finding));
                let read = tensor.map(|_| Arc::new(ReadBack::new(after.bytes)));
                read.iter().for_each(|read| read_back::know(shown.sum, read));
                read
            } else {
                before
            };
            outputs.extend(tensor.zip(read).map(|(tensor, read)| (tensor, shown.sum, read)));
        }
        self.kept.push(ComparedRun { trial, run, outputs });
        Ok(())
    }

    /// Handles a loss: a fault of the candidate becomes a finding, anything else ends the step.
    fn lost(&mut self, lost: Lost) -> Result<(), Response> {
        match lost {
            Lost::Fault(fault) => match fault.meaning() {
                Meaning::Candidate(_) => {
                    self.passing = fault.passes().then(|| fault.to_string());
                    fault.finding().into_iter().for_each(|finding| self.observer.find(finding));
                    Ok(())
                }
                _ => Err(Lost::Fault(fault).response()),
            },
            Lost::TimedOut(limit) => {
                let message = format!("the kernel timed out after {} s", limit.as_secs_f64().round());
                self.passing = Some(message.clone());
                self.observer.find(Finding::new(FindingKind::NoProgress, message));
                Ok(())
            }
            other => Err(other.response()),
        }
    }

    /// Compares the outputs of all runs of each trial.
    fn compare(&mut self) -> Result<(), Response> {
        let kept = std::mem::take(&mut self.kept);
        let known = self.params.trials.len();
        let source = || Source::new(self.task, &self.params.problem).with_products(products(self.task));
        let mut drawn = vec![];
        if let Some(Fresh::Drawn(_)) = self.observer.seen.fresh {
            let computed = (0..self.fresh.trials().len()).map(|at| Ok(self.fresh.expected(at, &source())?.0));
            match computed.collect::<Result<Vec<Expected>, NotComputed>>() {
                Ok(expected) => drawn = expected,
                Err(why) => self.observer.left_out(&why)?,
            }
        }
        for (at, trial) in self.trials.iter().enumerate().take(known + drawn.len()) {
            let runs = kept.iter().filter(|kept| kept.trial == at);
            let ended: Vec<RunOutputs<'_>> = runs
                .map(|kept| RunOutputs {
                    said: if at < known { kept.run.said } else { "" },
                    poison: kept.run.poison,
                    outputs: kept.outputs.iter().map(|(tensor, _, known)| (*tensor, bytes(known))).collect(),
                })
                .collect();
            if ended.is_empty() {
                continue;
            }
            let expected: Expected = match at.checked_sub(known).and_then(|at| drawn.get(at)) {
                Some(expected) => expected.clone(),
                None => self.task.document(&format!("expected:{}", trial.trial))?,
            };
            let source = source();
            let make = || source.held(trial, &expected, &self.params.compare);
            self.observer.compare(trial, &Against::later(&expected, &make), &ended)?;
        }
        Ok(())
    }

    fn finish(self, provenance: Provenance) -> Result<Response, Response> {
        let Verifier { task, params, rig, mut observer, passing, .. } = self;
        let mut provenance = provenance;
        // After a failure, equal outputs of repeated runs do not show that the kernel is deterministic.
        let seen = &mut observer.seen;
        if (seen.trials.len() < params.trials.len() || passing.is_some()) && seen.determinism == Determinism::Stable {
            seen.determinism = Determinism::Unknown;
        }
        rig.leave(&mut provenance);
        task.write_document("observation", &*seen)?;
        task.write_document(PROVENANCE, &provenance)?;
        let summary = match seen.findings.len() {
            0 => format!("{} on {}", count(params.trials.len(), "trial"), provenance.device.product),
            found => format!("{} on {}", count(found, "finding"), provenance.device.product),
        };
        let (verdict, forget) = (passing.clone().map(Verdict::Fail), passing.is_some());
        Ok(Response::Done { verdict, notes: vec![], summary, forget })
    }
}
