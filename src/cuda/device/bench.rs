//! The bench step: takes cold and hot samples of launches and checks that their outputs are correct. Knows runners, sets and states; [`sampling`] decides how
//! many samples are enough and which of them count.
//!
//! | what a kernel might do | what prevents it |
//! |---|---|
//! | store an answer for the next sample | outputs and workspaces are poisoned, and inouts restored, before each sample and each copy in a graph |
//! | compute only if its outputs will be read | only this process knows how long batches are, and after which batches it checks outputs |
//! | cache answers by address, launch count or content | sets of buffers alternate and swap inputs; the first sample on new inputs must not take longer, or that on any of three sets if it does |
//! | give other outputs when it is timed | outputs must equal those of an untimed launch of a newly loaded module |
//! | finish faster than bytes can move | a floor; for times below it, the worker measures again with its own clock |
//! | know the inputs of fixed trials | timed launches have inputs that were drawn from the system's entropy |
//! | be careful only with inputs that a verification may have, and only until it is timed | between timed launches there are others, in the same way, on inputs of a stress class; [`stress`] compares them with the expected values |
//!
//! A bench with few samples (`samples`) decides which variants are timed in full; no variant is selected because of it. Its outputs are checked once, at its
//! end, and may equal those that a launch of any variant left when that variant was verified. If each of the first two launches is long, the second is enough:
//! the number of samples depends on the request and on the series, never on what another variant took, because that variant may be wrong.
//!
//! This step reads no tolerance: outputs of timed and untimed launches may differ as much as another order of the same additions explains. Verify decides what
//! is correct.
//!
//! Runners are warm: a context is shared with earlier steps, whose modules are unloaded. The pairs step, which compares two kernels, starts a runner of its
//! own.

use std::sync::Arc;
use std::time::Instant;

use super::client::Lost;
use super::inputs::{self, Inputs, Luck};
use super::monitor::{Monitor, State};
use super::read_back::{self, UntimedOutputs};
use super::rig::{Launchable, Rig, completed};
use kforge_engine::evidence::PROVENANCE;
use kforge_harness::fresh::FreshTrials;
use kforge_harness::layout::POISONS;
use kforge_harness::message::Response;
use kforge_harness::task::{Task, failed};
use kforge_numerics::measure::sampling;
use kforge_numerics::measure::stats::median;
use kforge_types::model::Metric;
use kforge_types::record::params::{Trial, VerifyParams};
use kforge_types::record::timing::{BenchObserved, Series};
use kforge_types::record::{Provenance, Verdict};

mod output_checks;
mod plausible;
mod samples;
mod stress;

use output_checks::FreshInputs;
use stress::StressTrial;

const SLOT: u8 = 0;
/// Sets of buffers that cold samples use in turn.
const SETS: u32 = 4;
/// The byte around buffers.
const CANARY: u8 = 0xc5;

/// Executes a bench step.
pub fn bench(task: &Task) -> Response {
    benched(task).unwrap_or_else(|response| response)
}

fn benched(task: &Task) -> Result<Response, Response> {
    let params = completed(task, task.params()?, "")?;
    let candidate = Launchable::new(task, &params, "")?;
    let mut seen = BenchObserved {
        cold: None,
        hot: None,
        verified: false,
        peaks: None,
        few: params.samples.is_some(),
        took_s: None,
        stress: None,
    };
    let mut rig = Rig::new(task, &params.arch, false)?;
    let mut provenance = rig.provenance(params.protocol);
    rig.possible(&params)?;
    // Inputs are made before the device is locked, so that no other process waits for them.
    let draw = || inputs::unkept(task, &params.problem, &unseen(&params));
    let (mut inputs, fresh) = match params.samples {
        Some(_) => (vec![first_inputs(task, &params)?], None),
        None => (timed_inputs(task, &params)?, Some(FreshInputs::new(&draw)?)),
    };
    let ordinary = inputs.len();
    let mut stress = if fresh.is_some() { StressTrial::draw(task, &params)? } else { None };
    inputs.extend(stress.iter().map(StressTrial::inputs));
    let monitor = Monitor::new(&rig.client.facts.uuid);
    rig.lock(true)?;
    let sets = rig.sets(&params, sets(&params))?;
    let held = Instant::now();
    let untimed = inputs.iter().map(|_| UntimedRuns::default()).collect();
    let mut bench = Bench {
        params: &params,
        candidate: &candidate,
        rig,
        monitor,
        sets,
        turn: 0,
        inputs: &inputs,
        ordinary,
        stress: stress.as_mut(),
        is_stressed: false,
        untimed,
        states: vec![],
        luck: Luck::new(),
        is_warm: false,
    };
    let verdict = match bench.all(fresh.as_ref(), &mut seen) {
        Ok(verdict) => verdict.map(|verdict| (verdict, false)),
        Err(lost) => Some(lost.verdict()?),
    };
    tell(&mut provenance, &bench.states);
    seen.peaks = bench.rig.client.facts.stated();
    seen.took_s = Some(held.elapsed().as_secs_f64());
    bench.rig.unlock();
    bench.rig.leave(&mut provenance);
    // Like a verification, the comparison does not keep others from the device.
    seen.stress = stress.map(|stress| stress.compared(task, &params)).transpose()?;
    task.write_document("observation", &seen)?;
    task.write_document(PROVENANCE, &provenance)?;
    let kept = |series: &Option<Series>| series.as_ref().map_or(0, |s| s.samples_ns.len());
    let summary = format!("{} cold and {} hot samples", kept(&seen.cold), kept(&seen.hot));
    let (verdict, forget) = verdict.map_or((None, false), |(verdict, forget)| (Some(verdict), forget));
    Ok(Response::Done { verdict, notes: vec![], summary, forget })
}

/// The number of sets of buffers on which samples are taken in turn: hot samples need only one.
fn sets(params: &VerifyParams) -> u32 {
    match (params.samples, params.only) {
        (Some(_), Some(Metric::Hot)) => 1,
        _ => SETS,
    }
}

/// The inputs of the first fixed trial. Their outputs are known from verifications, so few samples need no untimed launch.
fn first_inputs(task: &Task, params: &VerifyParams) -> Result<Arc<Inputs>, Response> {
    let trial = params.trials.first().ok_or_else(|| failed("there are no inputs to time it on"))?;
    inputs::inputs(task, &params.problem, trial)
}

/// The inputs of timed launches that a selection may use: two, to detect cached answers, and drawn from the system's entropy, so that no kernel knows them.
pub(super) fn timed_inputs(task: &Task, params: &VerifyParams) -> Result<Vec<Arc<Inputs>>, Response> {
    FreshTrials::timed(task, params)?
        .trials()
        .iter()
        .map(|trial| inputs::inputs(task, &params.problem, trial))
        .collect()
}

/// A trial that no other step has: the distribution of the first trial, with a seed that only this process knows.
fn unseen(params: &VerifyParams) -> Trial {
    let distribution = params.trials.first().map_or("uniform", |trial| &trial.distribution).to_string();
    Trial { trial: params.trials.len() as u32, seed: inputs::secret(), distribution }
}

/// Writes the states of the device to the provenance: median clocks, the highest temperature, and all limits that applied.
pub(super) fn tell(provenance: &mut Provenance, states: &[State]) {
    let middle = |of: fn(&State) -> Option<u32>| {
        let all: Vec<f64> = states.iter().filter_map(of).map(f64::from).collect();
        (!all.is_empty()).then(|| median(&all) as u32)
    };
    let sm = middle(|s| s.clocks_mhz.map(|c| c.0));
    provenance.clocks_mhz = sm.zip(middle(|s| s.clocks_mhz.map(|c| c.1)));
    provenance.temperature_c = states.iter().filter_map(|s| s.temperature_c).max();
    provenance.throttle = sampling::names(states.iter().filter_map(|s| s.reasons).fold(0, |all, bits| all | bits));
}

/// The outputs of untimed launches on one of the inputs.
#[derive(Default)]
struct UntimedRuns<'a> {
    /// Empty until there was an untimed launch.
    sums: Vec<u64>,
    /// Read only if the sums differ.
    usual: Option<UntimedOutputs<'a>>,
}

struct Bench<'a> {
    params: &'a VerifyParams,
    candidate: &'a Launchable<'a>,
    rig: Rig<'a>,
    monitor: Monitor,
    sets: u32,
    /// How often the sets have swapped inputs.
    turn: u32,
    /// The inputs of timed launches, and then those of the stress class, if there are any.
    inputs: &'a [Arc<Inputs>],
    /// The number of inputs of timed launches.
    ordinary: usize,
    stress: Option<&'a mut StressTrial>,
    /// Whether the sets hold the inputs of the stress class.
    is_stressed: bool,
    /// The outputs of untimed launches, for each of the inputs.
    untimed: Vec<UntimedRuns<'a>>,
    states: Vec<State>,
    /// Decides when outputs are checked.
    luck: Luck,
    /// Whether the last launch was a hot sample whose buffers are unchanged since then.
    is_warm: bool,
}

impl<'a> Bench<'a> {
    fn all(&mut self, fresh: Option<&FreshInputs<'_>>, seen: &mut BenchObserved) -> Result<Option<Verdict>, Lost> {
        let images = Rig::images(self.params, &self.inputs[0], POISONS[0]);
        for set in 0..self.sets {
            self.rig.allocate(set, &images);
        }
        self.rig.load(SLOT, self.candidate)?;
        // No variant is selected because of few samples, so it is enough that their outputs equal those of some verified launch of a variant.
        if fresh.is_some() {
            for trial in 0..self.inputs.len() {
                self.untimed[trial].sums = self.launch_untimed(&self.inputs[trial], 0)?;
            }
            self.reload()?;
        }
        let said = self.series_and_looks(fresh, seen)?;
        // An implausible time is unknown, and no variant is selected because of it.
        seen.verified = said.is_none();
        self.rig.unload(SLOT);
        Ok(said)
    }

    fn series_and_looks(
        &mut self,
        fresh: Option<&FreshInputs<'_>>,
        seen: &mut BenchObserved,
    ) -> Result<Option<Verdict>, Lost> {
        for (metric, place) in [(Metric::Cold, &mut seen.cold), (Metric::Hot, &mut seen.hot)] {
            if self.params.only.is_some_and(|only| only != metric) {
                continue;
            }
            let (series, wrong) = self.series(metric == Metric::Cold)?;
            *place = Some(series);
            if let Some(wrong) = wrong {
                return Ok(Some(Verdict::Fail(wrong)));
            }
        }
        if let (Some(fresh), Some(cold)) = (fresh, &seen.cold)
            && let Some(said) = self.fresh(fresh, cold)?
        {
            return Ok(Some(said));
        }
        self.plausible(seen)
    }

    /// Loads the module again, so that nothing is left of what the kernel kept in globals.
    fn reload(&mut self) -> Result<(), Lost> {
        self.rig.unload(SLOT);
        self.rig.load(SLOT, self.candidate)
    }

    /// Sums of the outputs that an untimed launch leaves in a set.
    fn launch_untimed(&mut self, inputs: &Inputs, set: u32) -> Result<Vec<u64>, Lost> {
        let images = Rig::images(self.params, inputs, POISONS[0]);
        self.rig.lay(set, &images, CANARY)?;
        self.rig.constants(SLOT, self.candidate, set);
        let shown = self.rig.run_and_show(SLOT, set, &images, CANARY)?;
        Ok(read_back::sums(&images, &shown))
    }

    /// The index of the inputs that a set currently holds.
    fn trial(&self, set: u32) -> usize {
        match self.is_stressed {
            true => self.ordinary,
            false => (set + self.turn) as usize % self.ordinary,
        }
    }

    fn lay(&mut self, set: u32) -> Result<(), Lost> {
        self.is_warm = false;
        let inputs = &self.inputs[self.trial(set)];
        let images = Rig::images(self.params, inputs, POISONS[self.turn as usize % 2]);
        self.rig.lay(set, &images, CANARY)
    }

    /// Lays all sets and fills the constants. Constants belong to the module, so all sets that share it use the constants of the first set.
    fn lay_all(&mut self) -> Result<(), Lost> {
        for set in 0..self.sets {
            self.lay(set)?;
        }
        self.rig.constants(SLOT, self.candidate, 0);
        Ok(())
    }

    /// Swaps the inputs of the sets, and fills the other buffers with the other poison.
    fn swap(&mut self) -> Result<(), Lost> {
        self.turn += 1;
        self.lay_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_come_to_median_clocks_and_all_that_limited_them() {
        let state = |mhz, reasons| State {
            clocks_mhz: Some((mhz, 3201)),
            temperature_c: Some(mhz / 30),
            power_mw: None,
            reasons: Some(reasons),
        };
        let mut provenance = Provenance {
            device: crate::device::testing::h200().class(),
            driver: "1".into(),
            kforge: "1".into(),
            protocol: 1,
            measured_at: String::new(),
            clocks_mhz: None,
            temperature_c: None,
            throttle: vec![],
            spent_us: Default::default(),
        };
        tell(&mut provenance, &[state(1980, 1), state(1965, 4), state(1200, 0x40)]);
        assert_eq!((provenance.clocks_mhz, provenance.temperature_c), (Some((1965, 3201)), Some(66)));
        assert_eq!(provenance.throttle, ["sw_power_cap", "hw_thermal_slowdown"]);
        tell(&mut provenance, &[]);
        assert_eq!(provenance.clocks_mhz, None);
    }
}
