//! The verify step on a device: the candidate runs in another process, on a device; here inputs are made, expectations are held, and what came back is compared once
//! the module is unloaded. Knows trials and runs; reads no tolerance but those to count elements beyond.
//!
//! | run | inputs | what it finds |
//! |---|---|---|
//! | first | the trial's, other buffers poisoned | wrong answers |
//! | other poison, other buffers | the same | elements nobody wrote, what hangs on addresses |
//! | again | the same | what is not the same twice |
//! | again after other inputs | those of the first trial, once all others have run | what is kept in the module's globals |
//!
//! All run in one loaded module, whose globals nobody resets: an answer that was kept from an earlier trial is a wrong one now.

use super::buffers::{self, Image};
use super::client::Lost;
use super::fault::Meaning;
use super::rig::{Candidate, Rig};
use super::sanitize;
use crate::engine::evidence::PROVENANCE;
use crate::model::Tensor;
use crate::record::params::{Expected, Trial, VerifyParams};
use crate::record::{Determinism, Finding, FindingKind, Provenance, Verdict};
use crate::worker::judge::compared::{Left, Observer};
use crate::worker::judge::laid::POISONS;
use crate::worker::message::Response;
use crate::worker::oracle::{Named, Source};
use crate::worker::task::Task;

/// Where the candidate is loaded.
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

/// What a run left.
struct Kept<'a> {
    trial: usize,
    run: &'static Run,
    outputs: Vec<(&'a Tensor, Vec<u8>)>,
}

/// Does a verify step on a device.
pub fn verify(task: &Task) -> Response {
    verified(task).unwrap_or_else(|response| response)
}

fn verified(task: &Task) -> Result<Response, Response> {
    let params: VerifyParams = task.params()?;
    let candidate = Candidate::new(task, &params, "")?;
    sanitize::possible(task, &params)?;
    let most = buffers::bytes(&params.problem, &params.workspaces).saturating_mul(params.trials.len() as u64 + 4);
    if most > task.memory_limit {
        let limit = task.memory_limit;
        let why =
            format!("its buffers take {most} bytes of memory, the limit is {limit} (setting `build.memory-limit`)");
        return Err(Response::Unavailable { why });
    }
    let mut rig = Rig::new(task, &params.arch, false)?;
    let (sets, provenance) = (rig.sets(&params, 2)?, rig.provenance(params.protocol));
    let inputs = params.trials.iter().map(|t| Source::new(task, &params.problem).inputs(t));
    let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
    rig.lock(false)?;
    let observer =
        Observer::new(task, &params, false, provenance.device.to_string(), "something other than its inputs");
    let mut judge = Judge { task, params: &params, rig, sets, observer, kept: vec![], passing: None };
    match judge.runs(&candidate, &inputs) {
        Ok(()) => {}
        Err(lost) => judge.lost(lost)?,
    }
    judge.compare(&inputs)?;
    if let Some(first) = inputs.first().filter(|_| judge.passing.is_none()) {
        sanitize::sanitize(task, &params, first)?.into_iter().for_each(|finding| judge.observer.find(finding));
    }
    judge.finish(provenance)
}

struct Judge<'a> {
    task: &'a Task,
    params: &'a VerifyParams,
    rig: Rig<'a>,
    /// Sets of buffers that runs take in turn.
    sets: u32,
    observer: Observer<'a>,
    kept: Vec<Kept<'a>>,
    /// A failure that may pass, such as a time-out.
    passing: Option<String>,
}

impl<'a> Judge<'a> {
    /// Runs every trial, then the first once more; the module is loaded before and unloaded after.
    fn runs(&mut self, candidate: &Candidate<'_>, inputs: &[Named]) -> Result<(), Lost> {
        self.rig.load(SLOT, candidate)?;
        let mut turn = 0;
        for (trial, inputs) in inputs.iter().enumerate() {
            for run in &RUNS {
                self.run(candidate, (trial, run), inputs, turn)?;
                turn += 1;
            }
        }
        if let (Some(first), 2..) = (inputs.first(), inputs.len()) {
            self.run(candidate, (0, &LAST), first, turn)?;
        }
        self.rig.unload(SLOT)
    }

    fn run(
        &mut self,
        candidate: &Candidate<'_>,
        (trial, run): (usize, &'static Run),
        inputs: &Named,
        turn: u32,
    ) -> Result<(), Lost> {
        let set = turn % self.sets;
        let canary = buffers::canary(self.params.trials[trial].seed, u64::from(turn));
        let images: Vec<Image<'a>> = Rig::images(self.params, inputs, run.poison, canary);
        if turn < self.sets {
            self.rig.allocate(set, &images)?;
        }
        self.rig.write(set, &images)?;
        self.rig.constants(SLOT, candidate, set)?;
        self.rig.run(SLOT, set)?;
        let mut outputs = vec![];
        for image in &images {
            let after = image.laid.after(&self.rig.read(set, image)?);
            after.findings.into_iter().for_each(|finding| self.observer.find(finding));
            outputs.extend(image.laid.written().map(|tensor| (tensor, after.bytes)));
        }
        self.kept.push(Kept { trial, run, outputs });
        Ok(())
    }

    /// Why not everything ran: the candidate's doing is a finding, anything else is the step's end.
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

    /// Compares what all runs of each trial left.
    fn compare(&mut self, inputs: &[Named]) -> Result<(), Response> {
        let kept = std::mem::take(&mut self.kept);
        let trials: &'a [Trial] = &self.params.trials;
        for (at, (trial, inputs)) in trials.iter().zip(inputs).enumerate() {
            let runs = kept.iter().filter(|kept| kept.trial == at);
            let ended: Vec<Left<'_>> = runs
                .map(|kept| Left {
                    said: kept.run.said,
                    poison: kept.run.poison,
                    outputs: kept.outputs.iter().map(|(tensor, bytes)| (*tensor, bytes.as_slice())).collect(),
                })
                .collect();
            if ended.is_empty() {
                continue;
            }
            let expected: Expected = self.task.document(&format!("expected:{}", trial.trial))?;
            let expected = Source::new(self.task, &self.params.problem).recall(&expected, inputs)?;
            self.observer.compare(trial, inputs, &expected, &ended)?;
        }
        Ok(())
    }

    fn finish(self, provenance: Provenance) -> Result<Response, Response> {
        let Judge { task, params, rig, mut observer, passing, .. } = self;
        // Where anything failed, that repeated runs agree says nothing.
        let seen = &mut observer.seen;
        if (seen.trials.len() < params.trials.len() || passing.is_some()) && seen.determinism == Determinism::Stable {
            seen.determinism = Determinism::Unknown;
        }
        rig.client.keep();
        task.write_document("observation", &*seen)?;
        task.write_document(PROVENANCE, &provenance)?;
        let summary = match seen.findings.len() {
            0 => format!("{} trials on {}", params.trials.len(), provenance.device.product),
            found => format!("{found} findings on {}", provenance.device.product),
        };
        let (verdict, forget) = (passing.clone().map(Verdict::Fail), passing.is_some());
        Ok(Response::Done { verdict, notes: vec![], summary, forget })
    }
}
