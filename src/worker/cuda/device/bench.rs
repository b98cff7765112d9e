//! The bench step: samples, cold and hot, of launches whose outputs are then found to be right. Knows runners, sets and states; when enough is enough and which
//! samples count says [`sampling`].
//!
//! | what a kernel might do | what stands against it |
//! |---|---|
//! | leave an answer for the next sample to find | outputs and workspaces are poisoned, and inouts restored, before each sample, outside its interval |
//! | keep answers by address or by how often it ran | sets of buffers take turns, and swap inputs; after the last swap it is timed and its outputs are read |
//! | answer otherwise when it is timed | outputs are compared with those of a launch that nobody timed, in another process |
//! | answer sooner than bytes can move | a floor; below it the judge's own clock measures again |
//!
//! No tolerance is read here: outputs of timed and untimed launches may differ by what another order of the same additions explains. What is right, verify says.

use std::time::Instant;

use super::buffers;
use super::client::Lost;
use super::fault::Meaning;
use super::monitor::{Monitor, State};
use super::own;
use super::rig::{Candidate, Rig};
use super::wire::Shot;
use crate::engine::evidence::PROVENANCE;
use crate::measure::floor::{Arithmetic, Moved};
use crate::measure::sampling::{self, BENCH, SHORT_NS, Stopping};
use crate::measure::stats::median;
use crate::model::{Problem, Role, Tensor};
use crate::record::params::VerifyParams;
use crate::record::timing::{BenchObserved, Series};
use crate::record::{Provenance, Unknown, Verdict};
use crate::reference::float::gather_strided;
use crate::worker::compare::spread;
use crate::worker::judge::laid::POISONS;
use crate::worker::message::Response;
use crate::worker::oracle::{Named, Source};
use crate::worker::task::{Task, failed};

const SLOT: u8 = 0;
/// Sets of buffers that cold samples take in turn.
const SETS: u32 = 4;
/// Samples between two looks at the device's state.
const BATCH: usize = 10;
/// Batches after which a device that has not settled is measured all the same.
const WARMING: usize = 20;
/// Bytes of a set up to which inputs are swapped after every batch; larger ones only before the last.
const SWAPPED: u64 = 16 << 20;
/// By how much a sample on fresh inputs may exceed the median before answers are taken for kept ones.
const FRESH: f64 = 1.25;

/// Each written tensor and its bytes.
pub(super) type Outputs<'a> = Vec<(&'a Tensor, Vec<u8>)>;

/// Does a bench step.
pub fn bench(task: &Task) -> Response {
    benched(task).unwrap_or_else(|response| response)
}

fn benched(task: &Task) -> Result<Response, Response> {
    let params: VerifyParams = task.params()?;
    let candidate = Candidate::new(task, &params, "")?;
    let mut seen = BenchObserved { cold: None, hot: None, verified: false, peaks: None, took_s: None };
    let mut rig = Rig::new(task, &params.arch, true)?;
    let (sets, mut provenance) = (rig.sets(&params, SETS)?, rig.provenance(params.protocol));
    // Made before anyone is kept waiting.
    let inputs = inputs(task, &params)?;
    rig.lock(true)?;
    let held = Instant::now();
    let monitor = Monitor::new(&rig.client.facts.uuid);
    let mut bench =
        Bench { params: &params, rig, monitor, sets, turn: 0, inputs: &inputs, untimed: vec![], states: vec![] };
    let verdict = match bench.all(task, &candidate, &mut seen) {
        Ok(verdict) => verdict,
        Err(Lost::Fault(fault)) if matches!(fault.meaning(), Meaning::Candidate(_)) => {
            Some((Verdict::Fail(fault.to_string()), fault.passes()))
        }
        Err(Lost::TimedOut(limit)) => {
            Some((Verdict::Fail(format!("timed out after {} s", limit.as_secs_f64().round())), true))
        }
        Err(lost) => return Err(lost.response()),
    };
    tell(&mut provenance, &bench.states);
    seen.peaks = bench.rig.client.facts.stated();
    seen.took_s = Some(held.elapsed().as_secs_f64());
    bench.rig.client.keep();
    task.write_document("observation", &seen)?;
    task.write_document(PROVENANCE, &provenance)?;
    let kept = |series: &Option<Series>| series.as_ref().map_or(0, |s| s.samples_ns.len());
    let summary = format!("{} cold and {} hot samples", kept(&seen.cold), kept(&seen.hot));
    let (verdict, forget) = verdict.map_or((None, false), |(verdict, forget)| (Some(verdict), forget));
    Ok(Response::Done { verdict, notes: vec![], summary, forget })
}

/// Inputs of the first trials: two, that answers which were kept show.
pub(super) fn inputs(task: &Task, params: &VerifyParams) -> Result<Vec<Named>, Response> {
    let trials = params.trials.iter().take(2);
    let inputs: Vec<_> =
        trials.map(|trial| Source::new(task, &params.problem).inputs(trial)).collect::<Result<_, _>>()?;
    if inputs.is_empty() { Err(failed("there are no inputs to time it on")) } else { Ok(inputs) }
}

/// Writes the states of the device into the provenance: median clocks, highest temperature, all that limited it.
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

/// What an operator has to move: as it states it, else every tensor that is read and every one that is written.
fn moved(problem: &Problem, stated: Option<f64>) -> Moved {
    let sum = |not: Role| {
        let tensors = problem.tensors.iter().filter(|t| t.role != not);
        tensors.map(|t| t.elements() * t.dtype.bytes()).sum()
    };
    let all = Moved { read: sum(Role::Output), written: sum(Role::Input) };
    match stated {
        None => all,
        // Which of them are written is not said: as many as there are outputs, which are compared whole.
        Some(bytes) => {
            let written = all.written.min(bytes as u64);
            Moved { read: bytes as u64 - written, written }
        }
    }
}

/// Whether outputs are those of the other launch, but for another order of the same additions; else the first that is not.
pub(super) fn differing(now: &Outputs<'_>, then: &Outputs<'_>) -> Option<String> {
    let differs = |tensor: &Tensor, now: &[u8], then: &[u8]| {
        if now == then {
            return false;
        }
        match (gather_strided(tensor, now), gather_strided(tensor, then)) {
            (Ok(now), Ok(then)) => spread(tensor.dtype, &now, &then).1 || !tensor.dtype.is_float(),
            _ => true,
        }
    };
    let wrong = now.iter().zip(then).find(|((tensor, now), (_, then))| differs(tensor, now, then));
    wrong.map(|((tensor, _), _)| tensor.name.clone())
}

/// A verdict, and whether it is not to be remembered.
type Said = Option<(Verdict, bool)>;

struct Bench<'a> {
    params: &'a VerifyParams,
    rig: Rig<'a>,
    monitor: Monitor,
    sets: u32,
    /// How often inputs were swapped.
    turn: u32,
    inputs: &'a [Named],
    /// What each of the inputs comes to when nobody times it.
    untimed: Vec<Outputs<'a>>,
    states: Vec<State>,
}

impl<'a> Bench<'a> {
    fn all(&mut self, task: &'a Task, candidate: &Candidate<'_>, seen: &mut BenchObserved) -> Result<Said, Lost> {
        self.untimed = self.untimed_launches(task, candidate)?;
        self.rig.load(SLOT, candidate)?;
        for set in 0..self.sets {
            let images = Rig::images(self.params, &self.inputs[0], POISONS[0], 0xc5);
            self.rig.allocate(set, &images)?;
        }
        let cold = self.series(candidate, true)?;
        let hot = self.series(candidate, false)?;
        let wrong = self.swapped(candidate, &cold, &hot)?;
        let said = match wrong {
            Some(said) => Some((said, false)),
            None => self.plausible(candidate, &cold, &hot)?.map(|said| (said, false)),
        };
        seen.verified = !matches!(said, Some((Verdict::Fail(_), _)));
        (seen.cold, seen.hot) = (Some(cold), Some(hot));
        self.rig.unload(SLOT)?;
        Ok(said)
    }

    /// Outputs of launches that nobody times, in a process of their own.
    fn untimed_launches(&self, task: &'a Task, candidate: &Candidate<'_>) -> Result<Vec<Outputs<'a>>, Lost> {
        let refused = |response: Response| match response {
            Response::Failed { message, .. } => Lost::Refused(message),
            Response::Unavailable { why } => Lost::Refused(why),
            Response::Done { summary, .. } => Lost::Refused(summary),
        };
        let mut rig = Rig::new(task, &self.params.arch, true).map_err(refused)?;
        rig.load(SLOT, candidate)?;
        let mut all = vec![];
        for inputs in self.inputs {
            let images = Rig::images(self.params, inputs, POISONS[0], 0xc5);
            if all.is_empty() {
                rig.allocate(0, &images)?;
            }
            rig.write(0, &images)?;
            rig.constants(SLOT, candidate, 0)?;
            rig.run(SLOT, 0)?;
            all.push(rig.outputs(0, &images)?);
        }
        Ok(all)
    }

    /// Which inputs a set holds now.
    fn trial(&self, set: u32) -> usize {
        (set + self.turn) as usize % self.inputs.len()
    }

    /// Has the sets swap inputs, and poisons the rest.
    fn swap(&mut self, candidate: &Candidate<'_>) -> Result<(), Lost> {
        self.turn += 1;
        for set in 0..self.sets {
            let inputs = &self.inputs[self.trial(set)];
            let images = Rig::images(self.params, inputs, POISONS[self.turn as usize % 2], 0xc5);
            self.rig.write(set, &images)?;
        }
        // A constant is the module's: the sets that share it hold what the first does.
        self.rig.constants(SLOT, candidate, 0)
    }

    fn shots(&self, cold: bool, copies: u32, count: usize) -> Vec<Shot> {
        let set = |i: usize| if cold { i as u32 % self.sets } else { 0 };
        (0..count).map(|i| Shot { slot: SLOT, set: set(i), cold, copies }).collect()
    }

    /// Samples of one batch, or none under limits that make them worthless.
    fn batch(&mut self, cold: bool, copies: u32, count: usize) -> Result<Result<Vec<f64>, u32>, Lost> {
        let before = self.monitor.state();
        let ns = match copies {
            0 => self.rig.time(self.shots(cold, 0, count))?,
            many => {
                let shot = |copies| Shot { slot: SLOT, set: 0, cold: false, copies };
                let shots = (0..count).flat_map(|_| [shot(1), shot(many)]).collect();
                let both = self.rig.time(shots)?;
                both.chunks(2).filter_map(|pair| sampling::slope(pair[0], pair[1], many)).collect()
            }
        };
        let after = self.monitor.state();
        let reasons = before.reasons.unwrap_or(0) | after.reasons.unwrap_or(0);
        self.states.extend([before, after]);
        Ok(if sampling::dropped(reasons) { Err(ns.len() as u32) } else { Ok(ns) })
    }

    /// Samples until the median is known well enough, the cap is reached, or half of the time is over.
    fn series(&mut self, candidate: &Candidate<'_>, cold: bool) -> Result<Series, Lost> {
        self.swap(candidate)?;
        let half = self.rig.left() / 2;
        let mut warming = vec![];
        for _ in 0..WARMING {
            warming.extend(self.rig.time(self.shots(cold, 0, BATCH))?);
            if sampling::settled(&warming) {
                break;
            }
        }
        let about = median(&warming[warming.len().saturating_sub(BATCH)..]);
        let copies = if !cold && about < SHORT_NS { sampling::copies(about) } else { 0 };
        let small = buffers::bytes(&self.params.problem, &self.params.workspaces) <= SWAPPED;
        let mut series = Series { samples_ns: vec![], dropped: 0 };
        let mut batches = 0;
        let stopping = stopping(self.params.samples);
        while !stopping.enough(&series.samples_ns) && batches * BATCH < stopping.most && self.rig.left() > half {
            batches += 1;
            // Of few samples none is taken too many.
            let count = BATCH.min(stopping.most - series.samples_ns.len());
            match self.batch(cold, copies, count)? {
                Ok(ns) => series.samples_ns.extend(ns),
                Err(dropped) => series.dropped += dropped,
            }
            if small {
                self.swap(candidate)?;
            }
        }
        Ok(series)
    }

    /// One more batch on swapped inputs, after which every set must hold the outputs of its inputs and the inputs themselves, and which must take no longer.
    fn swapped(&mut self, candidate: &Candidate<'_>, cold: &Series, hot: &Series) -> Result<Option<Verdict>, Lost> {
        for (is_cold, series) in [(true, cold), (false, hot)] {
            self.swap(candidate)?;
            // Constants are those of the first set's inputs.
            let sets = match (is_cold, self.params.constants.is_empty()) {
                (true, true) => self.sets,
                _ => 1,
            };
            let shots = (0..BATCH as u32).map(|i| Shot { slot: SLOT, set: i % sets, cold: is_cold, copies: 0 });
            let first = self.rig.time(shots.collect())?[0];
            for set in 0..sets {
                let trial = self.trial(set);
                let poison = POISONS[self.turn as usize % 2];
                let images = Rig::images(self.params, &self.inputs[trial], poison, 0xc5);
                let now = self.rig.outputs(set, &images)?;
                if let Some(output) = differing(&now, &self.untimed[trial]) {
                    let message = format!("`{output}` of a timed launch is not that of one that nobody timed");
                    return Ok(Some(Verdict::Fail(message)));
                }
                for image in images.iter().filter(|i| is_input(i.laid.name, &self.params.problem)) {
                    if self.rig.checksum(set, image)? != own::checksum(&image.whole) {
                        let message = format!("the input `{}` was changed by timed launches", image.laid.name);
                        return Ok(Some(Verdict::Fail(message)));
                    }
                }
            }
            let usual = median(&series.samples_ns);
            if usual >= SHORT_NS && first > FRESH * usual {
                let message = format!("{first:.0} ns on fresh inputs, {usual:.0} ns on those it had seen");
                return Ok(Some(Verdict::Unknown(Unknown::Implausible(message))));
            }
        }
        Ok(None)
    }

    /// Times below a floor are measured again by the judge's own clock: a fail where the two disagree, else unknown.
    fn plausible(&mut self, candidate: &Candidate<'_>, cold: &Series, hot: &Series) -> Result<Option<Verdict>, Lost> {
        let (peaks, moved) = (self.rig.client.facts.peaks(), moved(&self.params.problem, self.params.bytes));
        let read = self.params.problem.read().map(|t| t.dtype).collect();
        let arithmetic = self.params.flops_min.map(|least| Arithmetic { least, read });
        for (what, series) in [("cold", cold), ("hot", hot)] {
            let floor = peaks.floor(what == "cold", moved, arithmetic.as_ref());
            let told = median(&series.samples_ns);
            if told.is_nan() || told >= floor.ns {
                continue;
            }
            self.swap(candidate)?;
            let clocked = self.clocked(told)?;
            let hot = median(&hot.samples_ns);
            if !(0.5..=1.5).contains(&(clocked / hot)) {
                let message = format!("events say {hot:.0} ns hot, the judge's clock {clocked:.0} ns");
                return Ok(Some(Verdict::Fail(message)));
            }
            let (least, needed) = (floor.ns, floor.what);
            let message = format!("{told:.0} ns {what}, where the hardware needs {least:.0} ns to {needed}");
            return Ok(Some(Verdict::Unknown(Unknown::Implausible(message))));
        }
        Ok(None)
    }

    /// Nanoseconds of one hot copy by the judge's clock, as the slope over graphs of one and many: what asking costs cancels out.
    fn clocked(&mut self, about: f64) -> Result<f64, Lost> {
        let many = sampling::copies(about / 20.0);
        let mut slopes = vec![];
        for _ in 0..BATCH {
            let mut took = |copies| -> Result<f64, Lost> {
                let start = Instant::now();
                self.rig.time(vec![Shot { slot: SLOT, set: 0, cold: false, copies }])?;
                Ok(start.elapsed().as_secs_f64() * 1e9)
            };
            let (one, all) = (took(1)?, took(many)?);
            // The runner runs everything once before, to warm up.
            slopes.push((all - one) / 2.0 / f64::from(many - 1));
        }
        Ok(median(&slopes))
    }
}

/// When a series ends: of few samples when there are as many as were asked for.
fn stopping(few: Option<u32>) -> Stopping {
    Stopping { most: few.map_or(BENCH.most, |few| BENCH.most.min(few as usize)), ..BENCH }
}

fn is_input(name: &str, problem: &Problem) -> bool {
    problem.tensor(name).is_some_and(|t| t.role == Role::Input)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{DType, Init};

    fn tensor(dtype: DType, role: Role) -> Tensor {
        Tensor { name: "y".into(), role, dtype, shape: vec![2], strides: vec![1], align: 256, init: Init::Auto }
    }

    #[test]
    fn outputs_may_differ_by_an_order_of_additions_and_by_no_more() {
        let y = tensor(DType::F32, Role::Output);
        let bytes = |values: [f32; 2]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        let then: Outputs<'_> = vec![(&y, bytes([1.0, 2.0]))];
        assert_eq!(differing(&then, &then), None);
        assert_eq!(differing(&vec![(&y, bytes([1.0, 2.000_001]))], &then), None);
        assert_eq!(differing(&vec![(&y, bytes([1.0, 3.0]))], &then), Some("y".into()));
        let i = tensor(DType::I32, Role::Output);
        let whole = |n: i32| vec![(&i, [n, 0].iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>())];
        assert_eq!(differing(&whole(1_000_000), &whole(1_000_001)), Some("y".into()));
    }

    #[test]
    fn states_come_to_median_clocks_and_all_that_limited_them() {
        let state = |mhz, reasons| State {
            clocks_mhz: Some((mhz, 3201)),
            temperature_c: Some(mhz / 30),
            power_mw: None,
            reasons: Some(reasons),
        };
        let mut provenance = Provenance {
            device: super::super::facts::tests::h200().class(),
            driver: "1".into(),
            kforge: "1".into(),
            protocol: 1,
            measured_at: String::new(),
            clocks_mhz: None,
            temperature_c: None,
            throttle: vec![],
        };
        tell(&mut provenance, &[state(1980, 1), state(1965, 4), state(1200, 0x40)]);
        assert_eq!((provenance.clocks_mhz, provenance.temperature_c), (Some((1965, 3201)), Some(66)));
        assert_eq!(provenance.throttle, ["sw_power_cap", "hw_thermal_slowdown"]);
        tell(&mut provenance, &[]);
        assert_eq!(provenance.clocks_mhz, None);
    }
}
