//! The bench step: samples, cold and hot, of launches whose outputs are then found to be right. Knows runners, sets and states; when enough is enough and which
//! samples count says [`sampling`].
//!
//! | what a kernel might do | what stands against it |
//! |---|---|
//! | leave an answer for the next sample to find | outputs and workspaces are poisoned, and inouts restored, before each sample and each copy in a graph |
//! | work only where its outputs will be read | batches have lengths, and are followed by a look at outputs, that nobody outside this process knows |
//! | keep answers by address, by how often it ran or by content | sets of buffers take turns and swap inputs; the first sample on inputs that never were on the device must take no longer |
//! | answer otherwise when it is timed | outputs are those of a launch that nobody timed, of a module loaded anew |
//! | answer sooner than bytes can move | a floor; below it the judge's own clock measures again |
//!
//! A bench of few samples (`samples`) says who is worth a full one, and nobody wins by it: it is looked at once, at its end, and its outputs may be those that a launch
//! of any variant left when it was verified. Of a variant whose first two launches are each slower by four tenths than the best whose few samples stand the second of them
//! is enough.
//!
//! No tolerance is read here: outputs of timed and untimed launches may differ by what another order of the same additions explains. What is right, verify says.
//!
//! Runners are warm: a context is shared with earlier steps, whose modules are unloaded. Where two kernels are compared, pairs does it in a runner of its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::buffers::Image;
use super::client::Lost;
use super::left::{self, Outputs, Usual};
use super::made::{self, Inputs};
use super::monitor::{Monitor, State};
use super::rig::{Candidate, Rig};
use super::wire::Shot;
use crate::base::Digest;
use crate::engine::evidence::PROVENANCE;
use crate::measure::floor::{Arithmetic, Moved};
use crate::measure::sampling::{self, BENCH, SHORT_NS, Stopping};
use crate::measure::stats::median;
use crate::model::{Metric, Role};
use crate::record::params::{Trial, VerifyParams};
use crate::record::timing::{BenchObserved, Series};
use crate::record::{Provenance, Unknown, Verdict};
use crate::worker::judge::laid::POISONS;
use crate::worker::message::Response;
use crate::worker::task::{Task, failed};

const SLOT: u8 = 0;
/// Sets of buffers that cold samples take in turn.
const SETS: u32 = 4;
/// Samples between two looks at the device's state, at most.
const BATCH: usize = 10;
/// Batches after which a device that has not settled is measured all the same.
const WARMING: usize = 20;
/// How many times slower than the best a variant is of which one sample is enough: beyond 1.3, within which a search times all in full, by what two launches in a row
/// may be slower than a median, which is half of a tenth.
const HOPELESS: f64 = 1.4;
/// Of so many batches one is followed by a look at outputs, on average.
const LOOKS: u64 = 3;
/// By how much a sample on fresh inputs may exceed the median, as a factor and by nanoseconds beyond, before answers are taken for kept ones.
const FRESH: (f64, f64) = (1.25, 5000.0);
/// The byte around buffers.
const CANARY: u8 = 0xc5;

/// Does a bench step.
pub fn bench(task: &Task) -> Response {
    benched(task).unwrap_or_else(|response| response)
}

fn benched(task: &Task) -> Result<Response, Response> {
    let params: VerifyParams = task.params()?;
    let candidate = Candidate::new(task, &params, "")?;
    let mut seen = BenchObserved {
        cold: None,
        hot: None,
        verified: false,
        peaks: None,
        few: params.samples.is_some(),
        took_s: None,
    };
    let mut rig = Rig::new(task, &params.arch, false)?;
    let mut provenance = rig.provenance(params.protocol);
    rig.possible(&params)?;
    // Made before anyone is kept waiting.
    let (inputs, fresh) = match params.samples {
        Some(_) => (inputs(task, &params, 1)?, None),
        None => (inputs(task, &params, 2)?, Some(made::unkept(task, &params.problem, &unseen(&params))?)),
    };
    let work = work(&params, &rig.client.facts.uuid)?;
    let monitor = Monitor::new(&rig.client.facts.uuid);
    rig.lock(true)?;
    let sets = rig.sets(&params, sets(&params))?;
    let held = Instant::now();
    let untimed = inputs.iter().map(|_| Untimed::default()).collect();
    let mut bench = Bench {
        params: &params,
        candidate: &candidate,
        rig,
        monitor,
        sets,
        turn: 0,
        inputs: &inputs,
        untimed,
        states: vec![],
        luck: made::secret(),
        is_warm: false,
        best: best(&work),
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
    task.write_document("observation", &seen)?;
    task.write_document(PROVENANCE, &provenance)?;
    // Nobody is measured by one whose samples do not count.
    if let ([Some(series), None] | [None, Some(series)], true) = ([&seen.cold, &seen.hot], seen.verified && seen.few)
        && !series.samples_ns.is_empty()
    {
        remember(work, median(&series.samples_ns));
    }
    let kept = |series: &Option<Series>| series.as_ref().map_or(0, |s| s.samples_ns.len());
    let summary = format!("{} cold and {} hot samples", kept(&seen.cold), kept(&seen.hot));
    let (verdict, forget) = verdict.map_or((None, false), |(verdict, forget)| (Some(verdict), forget));
    Ok(Response::Done { verdict, notes: vec![], summary, forget })
}

/// Sets of buffers to take samples on in turn: hot samples are taken on one.
fn sets(params: &VerifyParams) -> u32 {
    match (params.samples, params.only) {
        (Some(_), Some(Metric::Hot)) => 1,
        _ => SETS,
    }
}

/// Inputs of the first trials: of two, where answers that were kept are to show.
pub(super) fn inputs(task: &Task, params: &VerifyParams, most: usize) -> Result<Vec<Arc<Inputs>>, Response> {
    let trials = params.trials.iter().take(most);
    let inputs: Vec<_> = trials.map(|trial| made::inputs(task, &params.problem, trial)).collect::<Result<_, _>>()?;
    if inputs.is_empty() { Err(failed("there are no inputs to time it on")) } else { Ok(inputs) }
}

/// A trial that no other step has: the first one's distribution, from a seed that nobody outside this process knows.
fn unseen(params: &VerifyParams) -> Trial {
    let distribution = params.trials.first().map_or("uniform", |trial| &trial.distribution).to_string();
    Trial { trial: params.trials.len() as u32, seed: made::secret(), distribution }
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

/// What an operator has to move. Of bytes that it states itself nobody says which way they go: at least half of them go one way.
fn moved(params: &VerifyParams) -> Moved {
    if let Some(stated) = params.bytes {
        let half = (stated / 2.0) as u64;
        return Moved { read: half, written: half };
    }
    let sum = |not: Role| {
        let tensors = params.problem.tensors.iter().filter(|t| t.role != not);
        tensors.map(|t| t.elements() * t.dtype.bytes()).sum()
    };
    Moved { read: sum(Role::Output), written: sum(Role::Input) }
}

/// What launches that nobody timed left, on one of the inputs.
#[derive(Default)]
struct Untimed<'a> {
    /// None where there were none yet.
    sums: Vec<u64>,
    /// Looked at once sums do not suffice.
    usual: Option<Usual<'a>>,
}

/// Launches that nobody times, where timed ones left something else.
const REPEATS: usize = 6;

struct Bench<'a> {
    params: &'a VerifyParams,
    candidate: &'a Candidate<'a>,
    rig: Rig<'a>,
    monitor: Monitor,
    sets: u32,
    /// How often inputs were swapped.
    turn: u32,
    inputs: &'a [Arc<Inputs>],
    /// What each of the inputs comes to when nobody times it.
    untimed: Vec<Untimed<'a>>,
    states: Vec<State>,
    /// What decides when outputs are looked at.
    luck: u64,
    /// Whether the last that ran was a hot sample on buffers that nobody touched since.
    is_warm: bool,
    /// The least median of few samples that this process has seen of another variant at the same work.
    best: Option<f64>,
}

/// Whether one of few samples may be enough: of a variant that is slower than another by so much that no luck makes up for it. Hot times below some length come from
/// graphs, of which the event's own time is no part, and the best may be one of them.
fn is_hopeless(cold: bool, ns: f64, best: Option<f64>) -> bool {
    (cold || ns >= 2.0 * SHORT_NS) && best.is_some_and(|best| ns > HOPELESS * best)
}

/// The least medians of few samples that this process has seen, by what was to be done. Only what is plausible, of right outputs, is among them.
static BEST: Mutex<BTreeMap<Digest, f64>> = Mutex::new(BTreeMap::new());
/// Works that are remembered at most.
const WORKS: usize = 1024;

/// The name of the work that a variant is timed at, on a device.
fn work(params: &VerifyParams, device: &str) -> Result<Digest, Response> {
    let all = (&params.problem, &params.arch, device, params.only);
    Ok(Digest::of(&serde_json::to_vec(&all).map_err(|e| failed(e.to_string()))?))
}

fn best(work: &Digest) -> Option<f64> {
    BEST.lock().unwrap_or_else(PoisonError::into_inner).get(work).copied()
}

fn remember(work: Digest, ns: f64) {
    let mut all = BEST.lock().unwrap_or_else(PoisonError::into_inner);
    if all.len() >= WORKS {
        all.clear();
    }
    let best = all.entry(work).or_insert(ns);
    *best = best.min(ns);
}

impl<'a> Bench<'a> {
    fn all(&mut self, fresh: Option<&Arc<Inputs>>, seen: &mut BenchObserved) -> Result<Option<Verdict>, Lost> {
        let images = Rig::images(self.params, &self.inputs[0], POISONS[0]);
        for set in 0..self.sets {
            self.rig.allocate(set, &images);
        }
        self.rig.load(SLOT, self.candidate)?;
        // After few samples nobody wins: that they left what a launch of some variant left when it was verified is enough then.
        if fresh.is_some() {
            for trial in 0..self.inputs.len() {
                self.untimed[trial].sums = self.launch_untimed(&self.inputs[trial], 0)?;
            }
            self.reload()?;
        }
        let said = self.series_and_looks(fresh, seen)?;
        // What is implausible is unknown, and nobody wins by it.
        seen.verified = said.is_none();
        self.rig.unload(SLOT);
        Ok(said)
    }

    fn series_and_looks(
        &mut self,
        fresh: Option<&Arc<Inputs>>,
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

    /// A number below `below` that nobody outside this process can know.
    fn chance(&mut self, below: u64) -> u64 {
        self.luck = made::another(self.luck);
        self.luck % below
    }

    /// The module loaded anew: nothing is left of what it kept in globals.
    fn reload(&mut self) -> Result<(), Lost> {
        self.rig.unload(SLOT);
        self.rig.load(SLOT, self.candidate)
    }

    /// Sums of what launches that nobody times leave in a set.
    fn launch_untimed(&mut self, inputs: &Inputs, set: u32) -> Result<Vec<u64>, Lost> {
        let images = Rig::images(self.params, inputs, POISONS[0]);
        self.rig.lay(set, &images, CANARY)?;
        self.rig.constants(SLOT, self.candidate, set);
        let shown = self.rig.run_and_show(SLOT, set, &images, CANARY)?;
        Ok(left::sums(&images, &shown))
    }

    /// Which inputs a set holds now.
    fn trial(&self, set: u32) -> usize {
        (set + self.turn) as usize % self.inputs.len()
    }

    fn lay(&mut self, set: u32) -> Result<(), Lost> {
        self.is_warm = false;
        let inputs = &self.inputs[self.trial(set)];
        let images = Rig::images(self.params, inputs, POISONS[self.turn as usize % 2]);
        self.rig.lay(set, &images, CANARY)
    }

    /// Lays all sets, and fills constants, which are the module's: the sets that share it hold what the first does.
    fn lay_all(&mut self) -> Result<(), Lost> {
        for set in 0..self.sets {
            self.lay(set)?;
        }
        self.rig.constants(SLOT, self.candidate, 0);
        Ok(())
    }

    /// Has the sets swap inputs, and poisons the rest otherwise.
    fn swap(&mut self) -> Result<(), Lost> {
        self.turn += 1;
        self.lay_all()
    }

    fn shots(&self, cold: bool, count: usize) -> Vec<Shot> {
        let set = |i: usize| if cold { i as u32 % self.sets } else { 0 };
        // A hot sample finds in the caches what the one before left there, as that found what a run before it had left.
        let warm = |i: usize| !cold && (i > 0 || self.is_warm);
        (0..count).map(|i| Shot { slot: SLOT, set: set(i), cold, copies: 0, bare: false, warm: warm(i) }).collect()
    }

    /// Samples of launches that are not in graphs.
    fn take(&mut self, cold: bool, count: usize) -> Result<Vec<f64>, Lost> {
        let ns = self.rig.time(self.shots(cold, count))?;
        self.is_warm = !cold;
        Ok(ns)
    }

    /// Samples until the median is known well enough, the cap is reached, or half of the time is over; and what was wrong with outputs, if anything was.
    fn series(&mut self, cold: bool) -> Result<(Series, Option<String>), Lost> {
        self.swap()?;
        let half = self.rig.left() / 2;
        let mut series = Series { samples_ns: vec![], dropped: 0 };
        let (about, stopping) = match self.params.samples.map(|few| few as usize) {
            None => (self.warmed(cold)?, BENCH),
            Some(few) => {
                let ([first, second], limited) = self.two(cold)?;
                // That a launch took so long which nobody prepared says little; that the one after it does too is enough.
                if !limited && [first, second].iter().all(|ns| is_hopeless(cold, *ns, self.best)) {
                    series.samples_ns.push(second);
                    // Two cold samples were taken on two sets.
                    let wrong = self.look(if cold { self.sets.min(2) } else { 1 })?;
                    return Ok((series, wrong));
                }
                (second, Stopping { least: few, most: few, width: 0.0 })
            }
        };
        let copies = if !cold && about < SHORT_NS { sampling::copies(about) } else { 0 };
        let bare = self.bare(copies)?;
        let mut taken = 0;
        while !stopping.enough(&series.samples_ns) && taken < stopping.most && self.rig.left() > half {
            // How long a batch is, nobody outside can count on.
            let batch =
                if stopping.most < BATCH { stopping.most } else { BATCH - self.chance(BATCH as u64 / 2) as usize };
            let count = batch.min(stopping.most - taken);
            taken += count;
            match self.batch(cold, (copies, bare), count)? {
                Ok(ns) => series.samples_ns.extend(ns),
                Err(dropped) => series.dropped += dropped,
            }
            let last = stopping.enough(&series.samples_ns) || taken >= stopping.most;
            // Few samples are looked at once, at their end.
            if last || (self.params.samples.is_none() && self.chance(LOOKS) == 0) {
                // A batch shorter than there are sets left some untouched.
                let sets = if cold { self.sets.min(count as u32) } else { 1 };
                if let Some(wrong) = self.look(sets)? {
                    return Ok((series, Some(wrong)));
                }
                if !last {
                    self.swap()?;
                }
            }
        }
        Ok((series, None))
    }

    /// How long a sample is once the device has settled, in nanoseconds.
    fn warmed(&mut self, cold: bool) -> Result<f64, Lost> {
        let mut warming = vec![];
        for _ in 0..WARMING {
            warming.extend(self.take(cold, BATCH)?);
            if sampling::settled(&warming) {
                break;
            }
        }
        Ok(median(&warming[warming.len().saturating_sub(BATCH)..]))
    }

    /// Two samples, of which the first is all that prepares the second, and whether limits make them worthless.
    fn two(&mut self, cold: bool) -> Result<([f64; 2], bool), Lost> {
        self.is_warm = true;
        let (ns, limited) = self.watched(|bench| bench.take(cold, 2))?;
        let two = ns.try_into().map_err(|ns| Lost::Died(format!("gave `{ns:?}` for two samples")))?;
        Ok((two, limited))
    }

    /// What `take` gives, and whether the device was under limits meanwhile that make samples worthless.
    fn watched<T>(&mut self, take: impl FnOnce(&mut Self) -> Result<T, Lost>) -> Result<(T, bool), Lost> {
        let before = self.monitor.state();
        let taken = take(self)?;
        let after = self.monitor.state();
        let reasons = before.reasons.unwrap_or(0) | after.reasons.unwrap_or(0);
        self.states.extend([before, after]);
        Ok((taken, sampling::dropped(reasons)))
    }

    /// Nanoseconds that one laying of buffers takes in a graph of copies.
    fn bare(&mut self, copies: u32) -> Result<f64, Lost> {
        if copies == 0 {
            return Ok(0.0);
        }
        let shot = |copies| Shot { slot: SLOT, set: 0, cold: false, copies, bare: true, warm: false };
        let ns = self.rig.time((0..BATCH).flat_map(|_| [shot(1), shot(copies)]).collect())?;
        let of = |pair: &[f64]| ((pair[1] - pair[0]) / f64::from(copies - 1)).max(0.0);
        Ok(median(&ns.chunks(2).map(of).collect::<Vec<_>>()))
    }

    /// Samples of one batch, or how many were taken under limits that make them worthless.
    fn batch(&mut self, cold: bool, (copies, bare): (u32, f64), count: usize) -> Result<Result<Vec<f64>, u32>, Lost> {
        let (ns, limited) = self.watched(|bench| match copies {
            0 => bench.take(cold, count),
            many => {
                let shot = |copies| Shot { slot: SLOT, set: 0, cold: false, copies, bare: false, warm: false };
                let shots = (0..count).flat_map(|_| [shot(1), shot(many)]).collect();
                let both = bench.rig.time(shots)?;
                let slopes = both.chunks(2).filter_map(|pair| sampling::slope(pair[0], pair[1], many));
                Ok(slopes.map(|ns| ns - bare).filter(|ns| *ns > 0.0).collect::<Vec<_>>())
            }
        })?;
        Ok(if limited { Err(ns.len() as u32) } else { Ok(ns) })
    }

    /// Whether the first sets hold the outputs of their inputs, and the inputs themselves; else what is wrong.
    fn look(&mut self, sets: u32) -> Result<Option<String>, Lost> {
        // Constants are those of the first set's inputs.
        let sets = if self.params.constants.is_empty() { sets } else { 1 };
        for set in 0..sets {
            let trial = self.trial(set);
            let images = Rig::images(self.params, &self.inputs[trial], POISONS[self.turn as usize % 2]);
            self.is_warm = false;
            let shown = self.rig.show(set, images.iter(), CANARY, made::salt())?;
            if let Some(damage) = left::damage(&images, &shown) {
                return Ok(Some(damage));
            }
            let sums = left::sums(&images, &shown);
            if sums == self.untimed[trial].sums || self.params.samples.is_some() && left::all_known(&images, &shown) {
                continue;
            }
            let now = self.rig.outputs(set, &images)?;
            if self.untimed[trial].sums.is_empty() {
                self.reload()?;
                self.untimed[trial].sums = self.launch_untimed(&self.inputs[trial], set)?;
                self.lay(set)?;
                self.rig.constants(SLOT, self.candidate, 0);
                if self.untimed[trial].sums == sums {
                    continue;
                }
            }
            if self.untimed[trial].usual.is_none() {
                let images = Rig::images(self.params, &self.inputs[trial], POISONS[0]);
                self.untimed[trial].usual = Some(self.usual(set, &images, None)?);
                self.lay(set)?;
                self.rig.constants(SLOT, self.candidate, 0);
            }
            let usual = self.untimed[trial].usual.as_ref();
            if let Some(output) = usual.and_then(|usual| usual.differing(&now)) {
                return Ok(Some(not_the_same(&output)));
            }
        }
        Ok(None)
    }

    /// What launches that nobody times leave; `like` are the sums and bytes of outputs that may be theirs too.
    fn usual(
        &mut self,
        set: u32,
        images: &[Image<'a>],
        like: Option<&(Vec<u64>, Outputs<'a>)>,
    ) -> Result<Usual<'a>, Lost> {
        self.rig.usual(SLOT, self.candidate, (set, images, CANARY), REPEATS, like)
    }

    /// A sample on inputs that were never on the device: it must take no longer than others, and leave what launches that nobody times leave.
    fn fresh(&mut self, inputs: &Arc<Inputs>, cold: &Series) -> Result<Option<Verdict>, Lost> {
        let images = Rig::images(self.params, inputs, POISONS[1]);
        self.rig.lay(0, &images, CANARY)?;
        self.rig.constants(SLOT, self.candidate, 0);
        let first = self.rig.time(self.shots(true, 1))?[0];
        let shown = self.rig.show(0, images.iter(), CANARY, made::salt())?;
        if let Some(damage) = left::damage(&images, &shown) {
            return Ok(Some(Verdict::Fail(damage)));
        }
        let now = (left::sums(&images, &shown), self.rig.outputs(0, &images)?);
        // Before launches that nobody times see these inputs: those that see them again.
        let again = self.rig.time(self.shots(true, 1))?[0];
        if let Some(output) = self.usual(0, &images, Some(&now))?.differing(&now.1) {
            return Ok(Some(Verdict::Fail(not_the_same(&output))));
        }
        let usual = median(&cold.samples_ns);
        if first > FRESH.0 * usual + FRESH.1 {
            // What takes as long on inputs that are no longer fresh is slow for another reason.
            if again < first / FRESH.0 {
                let message = format!("{first:.0} ns on fresh inputs, {usual:.0} ns on those it had seen");
                return Ok(Some(Verdict::Unknown(Unknown::Implausible(message))));
            }
        }
        Ok(None)
    }

    /// Times below a floor are measured again by the judge's own clock: a fail where the two disagree, else unknown.
    fn plausible(&mut self, seen: &BenchObserved) -> Result<Option<Verdict>, Lost> {
        let (peaks, moved) = (self.rig.client.facts.peaks(), moved(self.params));
        let read = self.params.problem.read().map(|t| t.dtype).collect();
        let arithmetic = self.params.flops_min.map(|least| Arithmetic { least, read });
        let told = |series: &Option<Series>| series.as_ref().map_or(f64::NAN, |series| median(&series.samples_ns));
        let (cold, hot) = (told(&seen.cold), told(&seen.hot));
        for (what, told) in [("cold", cold), ("hot", hot)] {
            let floor = peaks.floor(what == "cold", moved, arithmetic.as_ref());
            if told.is_nan() || told >= floor.ns {
                continue;
            }
            self.swap()?;
            let clocked = self.clocked(told)?;
            // Hot times are what the clock can see: it sees many copies, of which the first alone is cold.
            let hot = if hot.is_nan() { told } else { hot };
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

    /// Nanoseconds of one hot copy by the judge's clock, as the slope over graphs of one and many, less that of laying buffers: what asking costs cancels out.
    fn clocked(&mut self, about: f64) -> Result<f64, Lost> {
        let many = sampling::copies(about / 20.0);
        let mut slopes = vec![];
        for _ in 0..BATCH {
            let mut took = |copies, bare| -> Result<f64, Lost> {
                let start = Instant::now();
                self.rig.time(vec![Shot { slot: SLOT, set: 0, cold: false, copies, bare, warm: false }])?;
                Ok(start.elapsed().as_secs_f64() * 1e9)
            };
            let (one, all) = (took(1, false)?, took(many, false)?);
            let (bare_one, bare_all) = (took(1, true)?, took(many, true)?);
            // The runner runs everything once before, to warm up.
            slopes.push(((all - one) - (bare_all - bare_one)) / 2.0 / f64::from(many - 1));
        }
        Ok(median(&slopes))
    }
}

fn not_the_same(output: &str) -> String {
    format!("`{output}` of a timed launch is not that of one that nobody timed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{DType, Problem, Reference, Tensor};
    use crate::record::testing::verification;

    #[test]
    fn of_a_hopeless_variant_one_sample_may_be_enough() {
        let of = |about, best| is_hopeless(true, about, best);
        assert_eq!([of(100.0, None), of(139.0, Some(100.0)), of(141.0, Some(100.0))], [false, false, true]);
        let hot = |about, best| is_hopeless(false, about, Some(best));
        assert_eq!(
            [hot(141.0, 100.0), hot(2.0 * SHORT_NS, SHORT_NS), hot(2.0 * SHORT_NS, 1.9 * SHORT_NS)],
            [false, true, false]
        );
        let work = Digest::of(b"a work of this test");
        assert_eq!(best(&work), None);
        [3.0, 2.0, 4.0].iter().for_each(|ns| remember(work, *ns));
        assert_eq!(best(&work), Some(2.0));
    }

    #[test]
    fn what_an_operator_states_that_it_moves_counts_before_its_tensors() {
        let tensor = |role| Tensor::dense("x", role, DType::F32, &[100]);
        let tensors = vec![tensor(Role::Input), tensor(Role::Inout), tensor(Role::Output)];
        let params = verification("sm_90a", Problem::of(tensors, Reference::builtin("sum", &[])));
        assert_eq!(moved(&params), Moved { read: 800, written: 800 });
        assert_eq!(moved(&VerifyParams { bytes: Some(90.0), ..params }), Moved { read: 45, written: 45 });
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
            spent_us: Default::default(),
        };
        tell(&mut provenance, &[state(1980, 1), state(1965, 4), state(1200, 0x40)]);
        assert_eq!((provenance.clocks_mhz, provenance.temperature_c), (Some((1965, 3201)), Some(66)));
        assert_eq!(provenance.throttle, ["sw_power_cap", "hw_thermal_slowdown"]);
        tell(&mut provenance, &[]);
        assert_eq!(provenance.clocks_mhz, None);
    }
}
