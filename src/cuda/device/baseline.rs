//! The baseline step: PyTorch in a process of its own, compared with the expected values and timed in turn with a champion. Knows both processes and blocks;
//! [`sampling`] decides the order of samples and how many blocks are enough, and a pure step decides what is correct.
//!
//! | decision | reason |
//! |---|---|
//! | one lock of the device covers everything that either process does there | clocks and temperature are shared, and nobody else disturbs |
//! | blocks of samples in ABBA order, as for pairs of kernels | a drift of the device favours neither |
//! | both samples are taken in the same way: a gate, flushed or warm caches, events around the work | a difference in the way would show as a difference of the work |
//! | a sample is one call, also for short times | a graph of many calls, by which short hot times of kernels are measured, would take the host's share from a baseline |
//! | inputs of timed calls are drawn from the system's entropy, like those of pairs | the champion must not know them |
//! | outputs of timed calls of the baseline are not compared | it gains nothing by being wrong here |
//! | those of timed launches of the champion are compared with those of an untimed one, after samples that only this process knows | as in pairs of kernels: a champion may be careful only while it is timed by itself |
//! | host time of calls is taken in the end, and apart | it holds what device times leave out |

use std::sync::Arc;
use std::time::Duration;

use super::bench::{tell, timed_inputs};
use super::blocks::{self, CANARY, KnownOutputs, Laid, ROUNDS, WARMING};
use super::buffers::Image;
use super::client::{Client, Lost};
use super::facts::Probed;
use super::in_torch;
use super::inputs::{self, Inputs, Luck};
use super::monitor::{Monitor, State};
use super::products::products;
use super::read_back;
use super::rig::{Launchable, Rig, completed};
use super::wire::{BufferSum, SampleRequest, Set, Slot};
use kforge_engine::evidence::PROVENANCE;
use kforge_foundation::base::{Severity, count};
use kforge_harness::baseline::{BaselineCall, BaselineProcess, NoBaseline, Ran};
use kforge_harness::layout::POISONS;
use kforge_harness::message::Response;
use kforge_harness::observer::{Against, Bytes, Observer, RunOutputs};
use kforge_harness::oracle::Source;
use kforge_harness::task::{Task, failed};
use kforge_numerics::measure::sampling::{self, Side};
use kforge_types::record::device::device_id;
use kforge_types::record::kind::baseline::documents::{BaselineObserved, BaselineParams};
use kforge_types::record::params::{Expected, Trial};
use kforge_types::record::timing::PairsObserved;
use kforge_types::record::{Finding, FindingKind, Note, VerifyObservation};

/// The champion's slot, and the set of its buffers.
const SLOT: Slot = 0;
const SET: Set = 0;
/// Samples of host time.
const CALLS: usize = 50;
/// Calls on the inputs of each trial whose outputs are compared.
const RUNS: [(u8, &str); 2] = [(POISONS[0], ""), (POISONS[1], ", again")];
/// The code of the note with a baseline's traceback.
const RAISED: &str = "baseline.raised";

/// Executes a baseline step.
pub fn baseline(task: &Task) -> Response {
    run(task).unwrap_or_else(|response| response)
}

/// Why nothing more can be asked.
enum Trouble {
    /// Of the baseline.
    Baseline(NoBaseline),
    /// Of the champion.
    Champion(Lost),
    /// The champion is wrong.
    Wrong(Finding),
}

impl From<NoBaseline> for Trouble {
    fn from(why: NoBaseline) -> Self {
        Trouble::Baseline(why)
    }
}

impl From<Lost> for Trouble {
    fn from(lost: Lost) -> Self {
        Trouble::Champion(lost)
    }
}

fn run(task: &Task) -> Result<Response, Response> {
    let mut params: BaselineParams = task.params()?;
    params.champion = completed(task, params.champion, "")?;
    let champion = Launchable::new(task, &params.champion, "")?;
    let (probed, _) = Client::find(task, &params.arch)?;
    let mut rig = Rig::new(task, &params.arch, true)?;
    rig.possible(&params.champion)?;
    let timed = timed_inputs(task, &params.champion)?;
    let problem = &params.champion.problem;
    let trials: Vec<(&Trial, Arc<Inputs>)> = params
        .champion
        .trials
        .iter()
        .map(|trial| Ok((trial, inputs::inputs(task, problem, trial)?)))
        .collect::<Result<_, Response>>()?;
    let mut provenance = rig.provenance(params.protocol);
    let monitor = Monitor::new(&rig.client.facts.uuid);
    let uuid = rig.client.facts.uuid.clone();
    // Importing PyTorch takes seconds and uses no device.
    let mut process = start(task, &params, &probed, &uuid, true).map_err(|why| ended(why).1)?;
    rig.lock(true)?;
    rig.sets(&params.champion, 1)?;
    let mut unconfined = rig.client.unconfined.clone();
    // What a driver needs in a confined process differs between machines.
    let begun = match process.begin(rig.left()) {
        Err(NoBaseline::Missing(why)) if task.allow_unconfined => {
            process = start(task, &params, &probed, &uuid, false).map_err(|why| ended(why).1)?;
            unconfined.push(format!("the baseline does not start confined: {why}"));
            process.begin(rig.left())
        }
        Err(NoBaseline::Missing(why)) => Err(NoBaseline::Missing(format!(
            "{why} (--allow-unconfined permits a baseline to run unconfined, if its confinement is the cause)"
        ))),
        begun => begun,
    };
    let mut seen = empty(&params, provenance.device.to_string(), device_id(&uuid));
    let mut step = Step {
        params: &params,
        rig,
        process,
        monitor,
        states: vec![],
        runs: vec![],
        seed: sampling::seed(task.spec.key().hash()),
        luck: Luck::new(),
        first: KnownOutputs::default(),
    };
    let done = match begun {
        Ok(()) => step.all(&champion, &trials, &timed, &mut seen),
        Err(why) => Err(Trouble::Baseline(why)),
    };
    let Step { process, mut rig, states, runs, .. } = step;
    drop(process);
    tell(&mut provenance, &states);
    rig.unlock();
    let mut of_champion = None;
    let (finding, notes, forget) = match done {
        Ok(()) => (None, vec![], false),
        Err(Trouble::Wrong(found)) => {
            of_champion = Some(found);
            (None, vec![], false)
        }
        Err(Trouble::Champion(lost)) => {
            // A fault of the candidate is a finding, unless another run may not have it.
            let found = match &lost {
                Lost::Fault(fault) if !fault.passes() => fault.finding(),
                _ => None,
            };
            let Some(found) = found else { return Err(lost.response()) };
            let message = format!("timed beside a baseline: {}", found.message);
            of_champion = Some(Finding { message, ..found });
            (None, vec![], false)
        }
        Err(Trouble::Baseline(why)) => match ended(why) {
            (Some((finding, notes, forget)), _) => (Some(finding), notes, forget),
            (None, response) => return Err(response),
        },
    };
    let mut observer =
        Observer::new(task, &params.champion, false, provenance.device.to_string(), "something other than its inputs");
    observer.seen.unconfined = unconfined;
    finding.into_iter().for_each(|finding| observer.find(finding));
    compare(task, &params, &mut observer, &runs)?;
    seen.compared = observer.seen;
    rig.leave(&mut provenance);
    if let Some(found) = of_champion {
        let mut launched = VerifyObservation::begun(false, 0, provenance.device.to_string());
        launched.findings.push(found);
        task.write_document("launched", &launched)?;
    }
    task.write_document("observation", &seen)?;
    task.write_document(PROVENANCE, &provenance)?;
    let summary = count(seen.pairs.blocks.len(), "block");
    Ok(Response::Done { verdict: None, notes, summary, forget })
}

fn empty(params: &BaselineParams, ran_as: String, device: String) -> BaselineObserved {
    BaselineObserved {
        runs: params.runs(),
        versions: [].into(),
        compared: VerifyObservation::begun(false, params.champion.trials.len() as u32, ran_as),
        converted: [].into(),
        pairs: PairsObserved::default(),
        device_ns: vec![],
        champion_ns: vec![],
        call_ns: vec![],
        waited: 0,
        of_calls: false,
        device,
    }
}

fn start<'p>(
    task: &Task,
    params: &'p BaselineParams,
    probed: &Probed,
    uuid: &str,
    confined: bool,
) -> Result<BaselineProcess<'p>, NoBaseline> {
    let machine = in_torch::machine(probed, uuid, confined);
    let call = BaselineCall { how: params.how, mode: params.mode.as_deref(), calls: &params.calls, cold: !params.hot };
    BaselineProcess::start(task, &params.champion.problem, &call, &machine)
}

/// What it means that a baseline gave nothing: a finding with its notes, and whether the step is to be repeated; or else the step's response.
type Ended = (Option<(Finding, Vec<Note>, bool)>, Response);

fn ended(why: NoBaseline) -> Ended {
    match why {
        NoBaseline::Missing(why) => (None, Response::Unavailable { why }),
        NoBaseline::Response(response) => (None, response),
        NoBaseline::TimedOut(limit) => {
            let message = format!("the baseline timed out after {} s", limit.as_secs_f64().round());
            (Some((Finding::new(FindingKind::NoProgress, &message), vec![], true)), failed(message))
        }
        NoBaseline::Failed { finding, log } => {
            let log = log.trim();
            let note = (!log.is_empty()).then(|| Note::new(Severity::Warning, RAISED, log.to_string()));
            let response = failed(finding.message.clone());
            (Some((*finding, note.into_iter().collect(), false)), response)
        }
    }
}

/// The outputs of the calls on the inputs of one trial.
struct TrialRuns<'a> {
    trial: &'a Trial,
    runs: Vec<Ran>,
}

struct Step<'a> {
    params: &'a BaselineParams,
    rig: Rig<'a>,
    process: BaselineProcess<'a>,
    monitor: Monitor,
    states: Vec<State>,
    runs: Vec<TrialRuns<'a>>,
    /// The seed of the orders of blocks.
    seed: u64,
    /// Decides after which samples outputs of the champion are checked.
    luck: Luck,
    /// The champion's first outputs on each of the timed inputs.
    first: KnownOutputs<'a, usize>,
}

/// What a block reads of the champion: its launches, the position of the inputs, and its buffers.
type InBlock<'l, 'a> = (&'l Launchable<'l>, usize, &'l [Image<'a>]);

impl<'a> Step<'a> {
    /// Calls on the inputs of every trial, then takes samples.
    fn all(
        &mut self,
        champion: &Launchable<'_>,
        trials: &[(&'a Trial, Arc<Inputs>)],
        timed: &[Arc<Inputs>],
        seen: &mut BaselineObserved,
    ) -> Result<(), Trouble> {
        for (trial, inputs) in trials {
            self.lay(inputs)?;
            if seen.versions.is_empty() {
                seen.versions = self.process.prepare(self.rig.left())?;
            }
            let mut runs = vec![];
            for _ in RUNS {
                runs.push(self.process.run(self.rig.left())?);
            }
            seen.converted.extend(runs.iter().flat_map(|ran| ran.converted.clone()));
            self.runs.push(TrialRuns { trial, runs });
        }
        self.blocks(champion, timed, seen)?;
        let limit = self.rig.left();
        seen.call_ns = self.process.call_times(CALLS, limit)?.ns;
        Ok(())
    }

    fn lay(&mut self, inputs: &Inputs) -> Result<(), NoBaseline> {
        let limit = self.rig.left();
        self.process.lay(inputs.iter().map(|(name, made)| (name.as_str(), made.bytes.as_slice())), limit)
    }

    fn blocks(
        &mut self,
        champion: &Launchable<'_>,
        timed: &[Arc<Inputs>],
        seen: &mut BaselineObserved,
    ) -> Result<(), Trouble> {
        let reserve: Duration = self.rig.left() / 10;
        for block in 0.. {
            if block >= sampling::most(&seen.pairs) {
                break;
            }
            let lead = sampling::first(self.seed, block);
            // The inputs change after every two blocks, so that each of the inputs is used with each order.
            let at = block / 2 % timed.len();
            let inputs = &timed[at];
            self.lay(inputs)?;
            let params = self.params;
            let images = Rig::images(&params.champion, inputs, POISONS[0]);
            self.lay_champion((champion, at, &images), block)?;
            let ratios = self.block((champion, at, &images), lead, seen)?;
            seen.pairs.blocks.push(ratios);
            seen.pairs.first.push(lead);
            if self.rig.left() < reserve || sampling::known(&seen.pairs.blocks) {
                break;
            }
        }
        Ok(())
    }

    /// Allocates the champion's buffers at other addresses, loads it, and launches it once.
    fn lay_champion(&mut self, laid: InBlock<'_, 'a>, block: usize) -> Result<(), Trouble> {
        let (champion, _, images) = laid;
        blocks::begin(&mut self.rig, block);
        self.rig.allocate(SET, images);
        self.rig.lay(SET, images, CANARY)?;
        self.rig.load(SLOT, champion)?;
        self.rig.constants(SLOT, champion, SET);
        let shown = self.rig.run_and_show(SLOT, SET, images, CANARY)?;
        self.same(laid, &shown)
    }

    /// Checks that the champion left what it left on these inputs before.
    fn same(&mut self, (champion, at, images): InBlock<'_, 'a>, shown: &[BufferSum]) -> Result<(), Trouble> {
        let wrong = |kind, what: String| Trouble::Wrong(Finding::new(kind, format!("timed beside a baseline: {what}")));
        if let Some((kind, damage)) = read_back::damaged(images, shown) {
            return Err(wrong(kind, damage));
        }
        let laid = Laid { candidate: champion, slot: SLOT, set: SET, images };
        match self.first.differing(&mut self.rig, at, laid, shown)? {
            None => Ok(()),
            Some(output) => {
                Err(wrong(FindingKind::KeepsState, format!("`{output}` differs from its value before the timing")))
            }
        }
    }

    /// Takes a sample of a side: nanoseconds, and whether the device waited for the host.
    fn sample(&mut self, side: Side, times: usize) -> Result<(Vec<f64>, u32), Trouble> {
        match side {
            Side::A => {
                let limit = self.rig.left();
                let taken = self.process.device_times(times, limit)?;
                Ok((taken.ns, taken.waited))
            }
            Side::B => {
                let shot =
                    SampleRequest { slot: SLOT, set: SET, cold: !self.params.hot, copies: 0, bare: false, warm: false };
                Ok((self.rig.time(vec![shot; times])?, 0))
            }
        }
    }

    /// The log-ratios of a block, without samples that were taken under limits or at different clocks.
    fn block(&mut self, laid: InBlock<'_, 'a>, lead: Side, seen: &mut BaselineObserved) -> Result<Vec<f64>, Trouble> {
        for side in [lead, lead.other()] {
            self.sample(side, WARMING)?;
        }
        let mut ratios = vec![];
        for _ in 0..ROUNDS {
            let order = sampling::order(lead);
            let before = self.monitor.state();
            let (mut ns, mut waited) = ([0.0; 4], 0);
            // On average, the champion's outputs are checked in half of the rounds.
            let checked = self.luck.below(2 * order.len() as u64) as usize;
            for (at, side) in order.into_iter().enumerate() {
                let (taken, late) = self.sample(side, 1)?;
                ns[at] = taken.first().copied().unwrap_or(0.0);
                waited += late;
                // The buffers hold what its last launch left, whoever was timed since.
                if at == checked {
                    let shown = self.rig.show(SET, laid.2.iter(), CANARY, inputs::salt())?;
                    self.same(laid, &shown)?;
                }
            }
            let after = self.monitor.state();
            self.states.extend([before, after]);
            if !blocks::is_steady(&before, &after) {
                continue;
            }
            seen.waited += waited;
            for (side, ns) in order.into_iter().zip(ns) {
                match side {
                    Side::A => seen.device_ns.push(ns),
                    Side::B => seen.champion_ns.push(ns),
                }
            }
            ratios.extend(sampling::log_ratio(order, ns));
        }
        Ok(ratios)
    }
}

/// Compares the outputs of the calls with the expected values, where there are any.
fn compare(
    task: &Task,
    params: &BaselineParams,
    observer: &mut Observer<'_>,
    runs: &[TrialRuns<'_>],
) -> Result<(), Response> {
    let problem = &params.champion.problem;
    for TrialRuns { trial, runs } in runs {
        for name in runs.iter().flat_map(|ran| &ran.changed) {
            observer.find(Finding::new(FindingKind::InputModified, format!("the input `{name}` was changed")));
        }
        let name = format!("expected:{}", trial.trial);
        if task.path(&name).is_none() {
            continue;
        }
        let expected: Expected = task.document(&name)?;
        let source = Source::new(task, problem).with_products(products(task));
        let make = || source.held(trial, &expected, &params.champion.compare);
        let ended: Vec<RunOutputs<'_>> = runs
            .iter()
            .zip(RUNS)
            .map(|(ran, (poison, said))| {
                let outputs = problem.written().zip(&ran.outputs);
                let outputs = outputs.map(|(tensor, (_, bytes))| (tensor, Bytes::from(bytes.as_slice()))).collect();
                RunOutputs { said, poison, outputs }
            })
            .collect();
        observer.compare(trial, &Against::later(&expected, &make), &ended)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_baseline_raises_is_a_finding_and_what_a_machine_lacks_is_none() {
        let raised = |kind| NoBaseline::Failed {
            finding: Box::new(Finding::new(kind, "`f.py::f` raised ValueError: no")),
            log: "Traceback".into(),
        };
        let (shaped, _) = ended(raised(FindingKind::WrongShape));
        assert_eq!(shaped.unwrap().0.kind, FindingKind::WrongShape);
        let (finding, _) = ended(raised(FindingKind::Exited));
        let (finding, notes, forget) = finding.unwrap();
        assert_eq!((finding.kind, forget), (FindingKind::Exited, false));
        assert!(finding.message.contains("ValueError") && notes[0].message == "Traceback");
        let (none, response) = ended(NoBaseline::Missing("no torch".into()));
        assert!(none.is_none() && matches!(response, Response::Unavailable { why } if why == "no torch"));
        let (late, _) = ended(NoBaseline::TimedOut(Duration::from_secs(9)));
        assert!(late.is_some_and(|(finding, _, forget)| forget && finding.message.contains("9 s")));
    }
}
