//! verify, bench, calls, peaks, pairs, baseline and profile on a virtual device. Knows parameters, behaviours and observations; judges nothing.

use std::collections::BTreeMap;
use std::convert::Infallible;

use super::TOOL;
use super::clock::Clock;
use super::scenario::{Behaviour, Fault, Scenario};
use crate::steps::verifier::{OwnFunctions, call_pairs, calls as timed_calls, stand_in};
use kforge_harness::fresh::FreshTrials;
use kforge_harness::message::Response;
use kforge_harness::task::{Task, failed};
use kforge_numerics::measure::compare::Comparison;
use kforge_numerics::measure::floor::Floor;
use kforge_numerics::measure::implausible::{Freshness, OnFresh, below_floor, freshness};
use kforge_numerics::measure::sampling::{self, Side};
use kforge_numerics::reference::fresh;
use kforge_types::model::{Metric, Role, Tensor};
use kforge_types::record::device::device_id;
use kforge_types::record::kind::baseline::documents::{BaselineObserved, BaselineParams, Callee};
use kforge_types::record::kind::calls::documents::{CallsObserved, LaunchedKernel, LaunchedKernels, qualified_name};
use kforge_types::record::params::{PairsParams, VerifyParams};
use kforge_types::record::peaks::{PeaksObserved, PeaksParams};
use kforge_types::record::profile::{Peaks, ProfileObserved, ProfileParams};
use kforge_types::record::timing::{BenchObserved, PairsObserved, Series, StressObserved};
use kforge_types::record::{
    Determinism, Finding, FindingKind, OutputObserved, Provenance, TrialObserved, Unknown, Verdict, VerifyObservation,
};

/// Why nothing is known of a launch that the device does not start.
const NOT_LAUNCHED: &str = "the device starts no launch";

/// Samples of a series.
const SAMPLES: usize = 31;
/// Samples on inputs of a stress class in a series.
const STRESSED: usize = 8;
/// What a hand-over without a call takes.
const HAND_OVER_NS: f64 = 20_000.0;
/// Pairs per block: ABBA twice.
const PAIRS_PER_BLOCK: usize = 4;
/// The message of a crash.
const CRASHED: &str = "CUDA error 700: an illegal memory access was encountered";

/// The message of what a rule finds.
const FOUND: &str = "the device found what its rule says";

/// The device during one step.
struct DeviceStep {
    scenario: Scenario,
    provenance: Provenance,
    clock: Clock,
    peaks: Option<Peaks>,
    measured: PeaksObserved,
    refused: Option<String>,
}

impl DeviceStep {
    fn new(task: &Task, protocol: u32) -> Result<Self, Response> {
        let none = |why: &str| Response::Unavailable { why: why.to_string() };
        let scenario = Scenario::read(task.tool(TOOL)?).map_err(|e| none(&e.to_string()))?;
        // A step that a person runs names no device.
        let present = scenario.present();
        let at = task.device.as_ref().map_or(Some(0), |uuid| present.0.iter().position(|d| d.uuid == *uuid));
        let device = at.and_then(|at| scenario.devices.get(at));
        let device = device.ok_or_else(|| none("the scenario has no such device"))?;
        let provenance = Provenance {
            device: device.class(),
            driver: device.driver.clone(),
            kforge: env!("CARGO_PKG_VERSION").into(),
            protocol,
            measured_at: scenario.now.clone(),
            clocks_mhz: None,
            temperature_c: None,
            throttle: vec![],
            spent_us: Default::default(),
        };
        let clock = Clock::new(scenario.seed, task.spec.key().hash(), scenario.noise, scenario.drift);
        let (peaks, refused) = (device.peaks.clone(), device.refused.clone());
        let measured = device.measured.clone().unwrap_or_default();
        Ok(DeviceStep { scenario, provenance, clock, peaks, measured, refused })
    }

    fn behaviour(&self, params: &VerifyParams) -> Result<Behaviour, Response> {
        let product = &self.provenance.device.product;
        let found = match &params.torch {
            Some(launch) => {
                let constants = launch.call.constants.iter().map(|(name, value)| format!(" {name}={value}"));
                self.scenario.called(&(launch.function.clone() + &constants.collect::<String>()), product)
            }
            None => self.scenario.behaviour(&params.launches, product),
        };
        found.map_err(failed)
    }

    /// Samples of launches of `ns` that were not dropped.
    fn series(&mut self, ns: f64, seen: &Behaviour, samples: usize) -> Series {
        let moment = self.clock.moment();
        let mut series = Series { samples_ns: vec![], dropped: 0 };
        for _ in 0..samples {
            let (sample, luck) = (self.clock.sample(ns, moment), self.clock.uniform());
            if luck < seen.throttled {
                series.dropped += 1;
                self.provenance.throttle = vec!["hw_thermal_slowdown".into()];
            } else {
                series.samples_ns.push(sample);
            }
        }
        series
    }

    /// Writes the observation and its provenance.
    fn done(
        self,
        task: &Task,
        seen: &impl serde::Serialize,
        fault: Option<Fault>,
        summary: String,
    ) -> Result<Response, Response> {
        if fault == Some(Fault::TimeOut) {
            task.timed_out();
        }
        task.write_document("observation", seen)?;
        task.write_document(kforge_engine::evidence::PROVENANCE, &self.provenance)?;
        let verdict = match fault {
            Some(Fault::TimeOut) => Some(Verdict::Fail("timed out".into())),
            Some(Fault::Crash) => Some(Verdict::Fail(CRASHED.into())),
            Some(Fault::NotLaunched) => Some(Verdict::Unknown(Unknown::Missing(NOT_LAUNCHED.into()))),
            Some(Fault::Evades) => Some(Verdict::Fail("an output of a timed launch is wrong".into())),
            None => None,
        };
        Ok(Response::Done { verdict, notes: vec![], summary, forget: fault == Some(Fault::TimeOut) })
    }
}

/// Executes a verify step.
pub(crate) fn verify(task: &Task) -> Response {
    let run = || {
        let params: VerifyParams = task.params()?;
        let at = DeviceStep::new(task, params.protocol)?;
        if let Some(launch) = params.torch.as_ref().filter(|_| at.scenario.torch) {
            return stand_in(task, &params, launch, at.provenance);
        }
        let mut behaviour = at.behaviour(&params)?;
        if params.isolated {
            if behaviour.isolated_gone {
                return Err(Response::Unavailable { why: "the device is gone".into() });
            }
            let error = behaviour.isolated_error;
            (behaviour.error, behaviour.fresh_error) = (behaviour.error.max(error), behaviour.fresh_error.max(error));
        }
        // Evading shows only when a launch is timed.
        behaviour.fault = behaviour.fault.filter(|fault| *fault != Fault::Evades);
        let written = || params.problem.tensors.iter().filter(|t| t.role != Role::Input);
        let fresh = if behaviour.no_fresh { None } else { Some(FreshTrials::draw(task, &params)?) };
        let drawn = fresh.iter().flat_map(FreshTrials::trials).map(|trial| (trial, behaviour.fresh_error));
        let all = params.trials.iter().map(|trial| (trial, behaviour.error)).chain(drawn);
        let trials = all.map(|(trial, error)| TrialObserved {
            trial: trial.trial,
            distribution: trial.distribution.clone(),
            outputs: written().map(|t| output(t, error)).collect(),
        });
        // As on a real device.
        let finding = match behaviour.fault {
            Some(Fault::Crash) => Some(Finding::new(FindingKind::Crash, CRASHED)),
            Some(Fault::TimeOut) => Some(Finding::new(FindingKind::NoProgress, "the kernel timed out")),
            _ => behaviour.finds.map(|kind| Finding::new(kind, FOUND)),
        };
        let is_compared = finding.is_none() && behaviour.fault.is_none();
        let observation = VerifyObservation {
            emulated: false,
            findings: finding.into_iter().collect(),
            not_emulated: None,
            not_launched: (behaviour.fault == Some(Fault::NotLaunched)).then(|| NOT_LAUNCHED.into()),
            asked: (params.trials.len() + fresh.as_ref().map_or(0, |fresh| fresh.trials().len())) as u32,
            fresh: fresh.as_ref().filter(|_| is_compared).map(FreshTrials::observed),
            trials: if is_compared { trials.collect() } else { vec![] },
            determinism: if is_compared { Determinism::Stable } else { Determinism::Unknown },
            unconfined: vec![],
            ran_as: at.provenance.device.to_string(),
        };
        // A crash is a finding, which the judge turns into a failure.
        let told = behaviour.fault.filter(|f| *f == Fault::TimeOut);
        at.done(task, &observation, told, format!("{} trials", observation.trials.len()))
    };
    run().unwrap_or_else(|response: Response| response)
}

/// An output whose first element has an error.
fn output(tensor: &Tensor, error: f64) -> OutputObserved {
    let n = tensor.elements() as usize;
    let mut comparison = Comparison::new(&tensor.name, tensor.dtype, &tensor.shape, 1.0, None);
    if tensor.dtype.is_float() {
        let want = vec![1.0; n];
        let mut got = want.clone();
        got.iter_mut().take(1).for_each(|v| *v += error);
        comparison.floats(0, &got, &want, None);
    } else {
        let want = vec![1; n];
        let mut got = want.clone();
        got.iter_mut().take(1).for_each(|v| *v += i64::from(error != 0.0));
        comparison.ints(0, &got, &want);
    }
    comparison.finish()
}

/// Executes a bench step.
pub(crate) fn bench(task: &Task) -> Response {
    let run = || {
        let params: VerifyParams = task.params()?;
        let mut at = DeviceStep::new(task, params.protocol)?;
        let behaviour = at.behaviour(&params)?;
        let samples = params.samples.map_or(SAMPLES, |few| SAMPLES.min(few as usize));
        let took_s = Some(at.scenario.bench_s * samples as f64 / SAMPLES as f64);
        let fault = behaviour.fault.filter(|fault| *fault != Fault::Evades || params.samples.is_none());
        let few = params.samples.is_some();
        let mut seen = BenchObserved { peaks: at.peaks.clone(), few, took_s, ..BenchObserved::default() };
        let mut implausible = None;
        if fault.is_none() {
            // Both are drawn, so that the numbers of one do not depend on whether the other was requested.
            let (cold, hot) =
                (at.series(behaviour.ns, &behaviour, samples), at.series(behaviour.hot_ns, &behaviour, samples));
            let wanted = |metric| params.only.is_none_or(|only| only == metric);
            seen.cold = wanted(Metric::Cold).then_some(cold);
            seen.hot = wanted(Metric::Hot).then_some(hot);
            seen.stress = stress(&params, &mut at, &behaviour);
            implausible = judged(&seen, &behaviour);
            seen.verified = implausible.is_none();
        }
        let kept = [&seen.cold, &seen.hot].into_iter().flatten().next().map_or(0, |s| s.samples_ns.len());
        let response = at.done(task, &seen, fault, format!("{kept} samples"))?;
        Ok(match (implausible, response) {
            (Some(verdict), Response::Done { notes, summary, forget, .. }) => {
                Response::Done { verdict: Some(verdict), notes, summary, forget }
            }
            (_, response) => response,
        })
    };
    run().unwrap_or_else(|response: Response| response)
}

/// Executes a calls step.
pub(crate) fn calls(task: &Task) -> Response {
    let run = || {
        let params: VerifyParams = task.params()?;
        let mut at = DeviceStep::new(task, params.protocol)?;
        if at.scenario.torch {
            return timed_calls::stand_in(task, &params, at.provenance);
        }
        let behaviour = at.behaviour(&params)?;
        let fault = behaviour.fault.filter(|fault| *fault != Fault::Evades);
        let ran_as = at.provenance.device.to_string();
        let mut compared = VerifyObservation::begun(false, u32::from(fault.is_none()), ran_as);
        if fault.is_none() {
            let error = match behaviour.fault {
                Some(_) => 1.0,
                None => behaviour.error,
            };
            let outputs = params.problem.written().map(|tensor| output(tensor, error)).collect();
            let trial = params.trials.len() as u32;
            compared.trials.push(TrialObserved { trial, distribution: "normal".into(), outputs });
        }
        let mut seen = CallsObserved::begun(compared);
        if fault.is_none() {
            let series = at.series(behaviour.ns, &behaviour, SAMPLES);
            (seen.call_ns, seen.dropped) = (series.samples_ns, series.dropped);
            (seen.hand_over_ns, seen.checked) = (vec![HAND_OVER_NS; STRESSED], 1);
        }
        if params.torch.as_ref().is_some_and(|launch| launch.recorded) {
            seen.launched = Some(launched(task, &behaviour.launched)?);
        }
        let timed = seen.call_ns.len();
        at.done(task, &seen, fault, format!("{timed} calls"))
    };
    run().unwrap_or_else(|response: Response| response)
}

/// The kernels that a call launched.
fn launched(task: &Task, kernels: &BTreeMap<String, f64>) -> Result<LaunchedKernels, Response> {
    let own = OwnFunctions::of_task(task)?;
    let of = |(name, ns): (&String, &f64)| LaunchedKernel {
        name: name.clone(),
        launches: 1,
        ns: *ns,
        copies: false,
        declared: own.define(&qualified_name(name), name.contains('(')),
    };
    let absent = kernels.is_empty().then(|| "the virtual device records no kernels".to_string());
    Ok(LaunchedKernels { calls: 1, kernels: kernels.iter().map(of).collect(), absent })
}

/// What launches on inputs of a stress class left and took; none with few samples or if no class suits.
fn stress(params: &VerifyParams, at: &mut DeviceStep, behaviour: &Behaviour) -> Option<StressObserved> {
    if params.samples.is_some() || behaviour.no_fresh {
        return None;
    }
    // Not drawn, so that what is observed follows from the scenario.
    let class = fresh::classes(&params.problem).first().map(|class| (*class).to_string())?;
    let seed = fresh::FRESH | at.scenario.seed;
    let mut series = |ns| at.series(ns, behaviour, STRESSED).samples_ns;
    let (cold_ns, hot_ns) = (series(behaviour.stress_ns), series(behaviour.stress_ns));
    let written = params.problem.tensors.iter().filter(|t| t.role != Role::Input);
    let outputs = written.map(|tensor| output(tensor, behaviour.stress_error)).collect();
    Some(StressObserved { class, seed, cold_ns, hot_ns, outputs })
}

/// The verdict on times that are not believed, decided as on a real device.
fn judged(seen: &BenchObserved, behaviour: &Behaviour) -> Option<Verdict> {
    if let (false, Some(cold)) = (seen.few, &seen.cold) {
        let mut samples = vec![];
        loop {
            let first_ns = behaviour.fresh_ns.get(samples.len()).copied().unwrap_or(behaviour.ns);
            samples.push(OnFresh { first_ns, again_ns: behaviour.ns });
            match freshness(&cold.samples_ns, &samples) {
                Freshness::Believed => break,
                Freshness::Suspected(_) => {}
                Freshness::Refused(why) => return Some(Verdict::Unknown(why)),
            }
        }
    }
    let [cold, hot] = behaviour.floor_ns;
    let floor = |is_cold| Floor { ns: if is_cold { cold } else { hot }, what: "move the operator's bytes" };
    let clock = |_| Ok::<f64, Infallible>(behaviour.clock_ns);
    below_floor(seen, floor, clock).unwrap_or_else(|never| match never {})
}

/// Executes a peaks step.
pub(crate) fn peaks(task: &Task) -> Response {
    let run = || {
        let params: PeaksParams = task.params()?;
        let at = DeviceStep::new(task, params.protocol)?;
        let seen = at.measured.clone();
        at.done(task, &seen, None, seen.summary())
    };
    run().unwrap_or_else(|response: Response| response)
}

/// Executes a pairs step.
pub(crate) fn pairs(task: &Task) -> Response {
    let run = || {
        let params: PairsParams = task.params()?;
        let mut at = DeviceStep::new(task, params.protocol)?;
        if at.scenario.torch && params.a.torch.is_some() {
            return call_pairs::stand_in(task, &params, &at.provenance);
        }
        let (a, b) = (at.behaviour(&params.a)?, at.behaviour(&params.b)?);
        let fault = a.fault.or(b.fault);
        let mut seen = PairsObserved::default();
        let seed = sampling::seed(task.spec.key().hash());
        while fault.is_none() && seen.blocks.len() < sampling::most(&seen) {
            let first = sampling::first(seed, seen.blocks.len());
            let of = |side: Side, seen: &Behaviour| seen.ns * if side == first { seen.when_first } else { 1.0 };
            let (a_ns, b_ns) = (of(Side::A, &a), of(Side::B, &b));
            let moment = at.clock.moment();
            let mut block = vec![];
            for _ in 0..PAIRS_PER_BLOCK {
                let ratio = (at.clock.sample(a_ns, moment) / at.clock.sample(b_ns, moment)).ln();
                if at.clock.uniform() >= a.throttled.max(b.throttled) {
                    block.push(ratio);
                }
            }
            seen.blocks.push(block);
            seen.first.push(first);
        }
        for (name, side, behaviour) in [("called-a", &params.a, &a), ("called-b", &params.b, &b)] {
            if side.torch.is_some() {
                let called = paired(&at.provenance.device.to_string(), side, behaviour);
                task.write_document(name, &called)?;
            }
        }
        let blocks = seen.blocks.len();
        at.done(task, &seen, fault, format!("{blocks} blocks"))
    };
    run().unwrap_or_else(|response: Response| response)
}

/// What calls of a kernel in PyTorch gave beside another one.
fn paired(ran_as: &str, params: &VerifyParams, behaviour: &Behaviour) -> CallsObserved {
    let mut compared = VerifyObservation::begun(false, 1, ran_as.to_string());
    let outputs = params.problem.written().map(|tensor| output(tensor, behaviour.stress_error)).collect();
    let trial = params.trials.len() as u32;
    compared.trials.push(TrialObserved { trial, distribution: "normal".into(), outputs });
    CallsObserved { call_ns: vec![behaviour.ns], checked: 1, ..CallsObserved::begun(compared) }
}

/// A baseline as text for rules: `compile max-autotune fast.py::softmax on Virtual H`.
fn called(params: &BaselineParams, product: &str) -> String {
    let what = match &params.calls {
        Callee::Function { file, function, .. } => format!("{file}::{function}"),
        Callee::Product(_) => "torch.matmul".into(),
    };
    let mode = params.mode.as_ref().map_or(String::new(), |mode| format!(" {mode}"));
    format!("{}{mode} {what} on {product}", params.how.name())
}

/// Executes a baseline step.
pub(crate) fn baseline(task: &Task) -> Response {
    let run = || {
        let params: BaselineParams = task.params()?;
        let mut at = DeviceStep::new(task, params.protocol)?;
        let of_calls = params.champion.torch.is_some();
        if at.scenario.torch && of_calls {
            return call_pairs::baseline_stand_in(task, &params, &at.provenance);
        }
        let champion = at.behaviour(&params.champion)?;
        let text = called(&params, &at.provenance.device.product);
        let mut rule = at.scenario.baseline(&text).map_err(failed)?.clone();
        rule.ns *= task.device.as_ref().and_then(|uuid| rule.on.get(uuid)).copied().unwrap_or(1.0);
        let device = at.provenance.device.to_string();
        let mut seen = BaselineObserved {
            runs: params.runs(),
            versions: [("torch".to_string(), "2.11.0".to_string())].into(),
            compared: VerifyObservation::begun(false, params.champion.trials.len() as u32, device),
            converted: rule.converted.clone(),
            pairs: PairsObserved::default(),
            device_ns: vec![],
            champion_ns: vec![],
            call_ns: vec![],
            waited: 0,
            of_calls,
            device: task.device.as_deref().map(device_id).unwrap_or_default(),
        };
        if let Some(raised) = &rule.raises {
            seen.versions.clear();
            seen.compared.findings.push(Finding::new(rule.finds, raised.clone()));
            return at.done(task, &seen, None, "0 blocks".into());
        }
        let written = || params.champion.problem.tensors.iter().filter(|t| t.role != Role::Input);
        let trials = params.champion.trials.iter().map(|trial| TrialObserved {
            trial: trial.trial,
            distribution: trial.distribution.clone(),
            outputs: written().map(|tensor| output(tensor, rule.error)).collect(),
        });
        seen.compared.trials = trials.collect();
        let is_wrong = champion.beside_error > 0.0 || rule.spoils_second && params.confirms;
        if is_wrong && !of_calls {
            let mut launched = VerifyObservation::begun(false, 0, at.provenance.device.to_string());
            let what = "timed beside a baseline: `y` differs from its value before the timing";
            launched.findings.push(Finding::new(FindingKind::KeepsState, what));
            task.write_document("launched", &launched)?;
            return at.done(task, &seen, None, "0 blocks".into());
        }
        let seed = sampling::seed(task.spec.key().hash());
        while seen.pairs.blocks.len() < sampling::most(&seen.pairs) {
            let moment = at.clock.moment();
            let mut block = vec![];
            for _ in 0..PAIRS_PER_BLOCK {
                let (a, b) = (at.clock.sample(rule.ns, moment), at.clock.sample(champion.ns, moment));
                block.push((a / b).ln());
                seen.device_ns.push(a);
                seen.champion_ns.push(b);
                seen.waited += u32::from(rule.waits);
            }
            seen.pairs.first.push(sampling::first(seed, seen.pairs.blocks.len()));
            seen.pairs.blocks.push(block);
        }
        if of_calls {
            seen.call_ns = std::mem::take(&mut seen.device_ns);
            let moment = at.clock.moment();
            let device_ns = rule.device_ns.into_iter().flat_map(|ns| [ns; SAMPLES]);
            seen.device_ns = device_ns.map(|ns| at.clock.sample(ns, moment)).collect();
            let stress_error = champion.stress_error.max(champion.beside_error);
            let beside = Behaviour { stress_error, ..champion };
            task.write_document("called", &paired(&at.provenance.device.to_string(), &params.champion, &beside))?;
            let blocks = seen.pairs.blocks.len();
            return at.done(task, &seen, None, format!("{blocks} blocks"));
        }
        let moment = at.clock.moment();
        seen.call_ns = (0..SAMPLES).map(|_| at.clock.sample(rule.call_ns, moment)).collect();
        let blocks = seen.pairs.blocks.len();
        at.done(task, &seen, None, format!("{blocks} blocks"))
    };
    run().unwrap_or_else(|response: Response| response)
}

/// Executes a profile step.
pub(crate) fn profile(task: &Task) -> Response {
    let run = || {
        let params: ProfileParams = task.params()?;
        let at = DeviceStep::new(task, params.protocol)?;
        let behaviour = at.behaviour(&params.of)?;
        let mut seen = ProfileObserved::default();
        match &at.refused {
            Some(why) => seen.absent = Some(Unknown::NoCounters(why.clone())),
            None if behaviour.fault.is_some() => {
                seen.absent = Some(Unknown::Missing("the launches did not end".into()))
            }
            None => {
                for name in params.metrics {
                    match behaviour.metrics.get(&name) {
                        Some(value) => drop(seen.metrics.insert(name, *value)),
                        None => drop(seen.missing.insert(name, "the device has no such counter".into())),
                    }
                }
            }
        }
        let summary = match &seen.absent {
            Some(why) => why.to_string(),
            None => format!("{} of {} metrics", seen.metrics.len(), seen.metrics.len() + seen.missing.len()),
        };
        at.done(task, &seen, behaviour.fault, summary)
    };
    run().unwrap_or_else(|response: Response| response)
}
