//! The peaks step: runs kforge's own kernels on a device to measure how fast they run. Knows runners and buffers; [`super::ptx`] holds the kernels, and
//! [`super::super::timing`] takes a sample.
//!
//! | what | how |
//! |---|---|
//! | memory | a read, a copy and a write of buffers that are far larger than the L2 cache |
//! | `f32` | fused multiply-adds in registers on every thread that a multiprocessor keeps busy |
//! | matrix units | the architecture's fastest instruction, on random operands |
//!
//! Samples take about a millisecond, like kernels: longer ones would reach the device's power limit, and shorter ones would consist mostly of start and end.
//! Each sample follows an untimed run of the same kernel. A rate whose kernel the driver refuses to run is missing, with the driver's error; other units may
//! still be measured.

use super::ptx::{self, FMA_OPS, Matrix, OPERANDS, STREAMS, THREADS};
use crate::device::bench::tell;
use crate::device::client::Lost;
use crate::device::facts::DeviceFacts;
use crate::device::monitor::{Monitor, State};
use crate::device::rig::Rig;
use crate::device::wire::{Ask, SampleRequest};
use kforge_engine::evidence::PROVENANCE;
use kforge_harness::message::Response;
use kforge_harness::task::Task;
use kforge_numerics::measure::sampling;
use kforge_numerics::measure::stats::median;
use kforge_numerics::measure::units;
use kforge_types::model::DType;
use kforge_types::model::bound::{Arg, KernelLaunch, Launch, Scalar};
use kforge_types::record::Provenance;
use kforge_types::record::peaks::{PeaksObserved, PeaksParams, Rate};

const SLOT: u8 = 0;
const SET: u32 = 0;
/// The target duration of a sample, in nanoseconds.
const SAMPLE_NS: f64 = 1e6;
/// Samples of each kernel.
const SAMPLES: usize = 200;
/// Samples between two readings of the device's state.
const BATCH: usize = 20;
/// The seed of the words that fill buffers.
const SEED: u64 = 0x6b66_6f72_6765;
/// Rounds of a first run, from which the number of rounds of a sample is computed.
const FIRST: u64 = 64;
/// The most bytes of a streamed buffer, and the least size as a multiple of the L2 cache, below which cached data would distort the rate.
const STREAM: (u64, u64) = (4 << 30, 16);
/// Blocks of `fma` per multiprocessor: as many as fit.
const FMA_BLOCKS: u32 = 8;

/// Executes a peaks step.
pub fn peaks(task: &Task) -> Response {
    measured(task).unwrap_or_else(|response| response)
}

fn measured(task: &Task) -> Result<Response, Response> {
    let params: PeaksParams = task.params()?;
    let rig = started(task, &params.arch)?;
    let (facts, free, provenance) = (rig.client.facts.clone(), rig.client.free, rig.provenance(params.protocol));
    let monitor = Monitor::new(&facts.uuid);
    let mut bench = Bench { task, arch: &params.arch, facts, rig: Some(rig), monitor, states: vec![] };
    let mut seen = PeaksObserved::default();
    bench.streams(free, &mut seen)?;
    let blocks = bench.facts.processors * FMA_BLOCKS;
    let multiply_adds = Reckoning {
        unit: "f32",
        with: "fma.rn.f32",
        ops: FMA_OPS * u64::from(blocks),
        blocks,
        numbers: (u32::MAX, 0),
        text: ptx::plain(),
        launch: &|rounds| launch("fma", blocks, 0, vec![count(rounds), pointer("to")]),
    };
    bench.reckon(&multiply_adds, &mut seen)?;
    let number = bench.facts.arch.trim_start_matches("sm_").parse().unwrap_or(0);
    for way in ptx::ways(number) {
        bench.matrices(way, &mut seen)?;
    }
    for (unit, _) in units::per_clock(&bench.facts.arch) {
        let none = || format!("kforge has no kernel for the fastest instruction of {}", bench.facts.arch);
        seen.missing.entry((*unit).to_string()).or_insert_with(none);
    }
    // One of several ways may have been refused.
    seen.missing.retain(|unit, _| !seen.ops_per_s.contains_key(unit));
    bench.done(&seen, provenance)
}

/// A separate runner, with exclusive use of the device.
fn started<'t>(task: &'t Task, arch: &str) -> Result<Rig<'t>, Response> {
    let mut rig = Rig::new(task, arch, true)?;
    rig.lock(true)?;
    Ok(rig)
}

struct Bench<'t> {
    task: &'t Task,
    arch: &'t str,
    facts: DeviceFacts,
    /// None after an error of the driver, which ended the runner.
    rig: Option<Rig<'t>>,
    monitor: Monitor,
    states: Vec<State>,
}

/// A kernel of a module, its buffers, and the masks of the words that fill them.
struct Work<'w> {
    text: &'w str,
    launch: KernelLaunch,
    buffers: [(&'w str, u64); 2],
    numbers: (u32, u32),
}

/// A kernel that computes for a variable number of rounds.
struct Reckoning<'w> {
    unit: &'w str,
    with: &'w str,
    /// Operations of all blocks per round.
    ops: u64,
    blocks: u32,
    numbers: (u32, u32),
    text: String,
    launch: &'w dyn Fn(u64) -> KernelLaunch,
}

/// Nanoseconds of samples, or the reason why there are none.
type Samples = Result<Vec<f64>, String>;

impl Bench<'_> {
    /// Reads, copies and writes buffers of at most an eighth of the free memory.
    fn streams(&mut self, free: u64, seen: &mut PeaksObserved) -> Result<(), Response> {
        let whole = STREAMS.iter().map(|of| of.block()).max().unwrap_or(1);
        let (bytes, l2) = (STREAM.0.min(free / 8) / whole * whole, self.facts.l2);
        if bytes < STREAM.1 * l2 {
            let why =
                format!("an eighth of its free memory, {bytes} bytes, is too small compared with an L2 cache of {l2}");
            seen.missing.insert("dram".into(), why);
            return Ok(());
        }
        let text = ptx::plain();
        for of in STREAMS {
            let blocks = u32::try_from(bytes / of.block()).unwrap_or(u32::MAX);
            let launch = launch(of.name, blocks, 0, ["to", "from"].map(pointer).to_vec());
            let buffers = [("from", bytes), ("to", bytes)];
            match self.sampled(&Work { text: &text, launch, buffers, numbers: (u32::MAX, 0) }, SAMPLES)? {
                Ok(ns) => {
                    let rate = rate(&ns, (of.times() * bytes) as f64, of.name);
                    if seen.dram_bytes_per_s.get(of.of).is_none_or(|other| other.per_s < rate.per_s) {
                        seen.dram_bytes_per_s.insert(of.of.into(), rate);
                    }
                }
                Err(why) => drop(seen.missing.insert("dram".into(), why)),
            }
        }
        if seen.dram().is_some() {
            seen.missing.remove("dram");
        }
        Ok(())
    }

    fn matrices(&mut self, way: Matrix, seen: &mut PeaksObserved) -> Result<(), Response> {
        let blocks = self.facts.processors * way.blocks();
        let args = |rounds| vec![pointer("from"), count(rounds), pointer("to")];
        let reckoning = Reckoning {
            unit: way.unit,
            with: way.with,
            ops: way.ops() * u64::from(blocks),
            blocks,
            numbers: way.numbers(),
            text: ptx::matrix(way),
            launch: &|rounds| launch("matrix", blocks, way.shared(), args(rounds)),
        };
        self.reckon(&reckoning, seen)
    }

    /// Records the rate of a kernel if it is the fastest of its unit.
    fn reckon(&mut self, what: &Reckoning<'_>, seen: &mut PeaksObserved) -> Result<(), Response> {
        let buffers = [("from", OPERANDS), ("to", u64::from(what.blocks) * u64::from(THREADS) * 4)];
        let work = |rounds| Work { text: &what.text, launch: (what.launch)(rounds), buffers, numbers: what.numbers };
        let mut rounds = FIRST;
        let mut samples = self.sampled(&work(rounds), BATCH)?;
        if let Ok(ns) = &samples {
            rounds = (FIRST as f64 * SAMPLE_NS / median(ns).max(1.0)).clamp(1.0, 1e8) as u64;
            samples = self.sampled(&work(rounds), SAMPLES)?;
        }
        match samples.map(|ns| rate(&ns, what.ops as f64 * rounds as f64, what.with)) {
            Ok(rate) if seen.ops(what.unit).is_none_or(|other| other < rate.per_s) => {
                seen.ops_per_s.insert(what.unit.into(), rate);
            }
            Ok(_) => {}
            Err(why) => drop(seen.missing.insert(what.unit.into(), why)),
        }
        Ok(())
    }

    fn sampled(&mut self, work: &Work<'_>, count: usize) -> Result<Samples, Response> {
        let rig = match self.rig.take() {
            Some(rig) => rig,
            None => started(self.task, self.arch)?,
        };
        let rig = self.rig.insert(rig);
        match run(rig, work, self.facts.processors, count, &self.monitor, &mut self.states) {
            Ok(ns) if ns.is_empty() => Ok(Err("every sample was taken under thermal limits or slowdown".into())),
            Ok(ns) => Ok(Ok(ns)),
            Err(Lost::Fault(fault)) => {
                self.rig = None;
                Ok(Err(fault.to_string()))
            }
            Err(lost) => Err(lost.response()),
        }
    }

    fn done(self, seen: &PeaksObserved, mut provenance: Provenance) -> Result<Response, Response> {
        tell(&mut provenance, &self.states);
        if let Some(rig) = self.rig {
            rig.leave(&mut provenance);
        }
        self.task.write_document("observation", seen)?;
        self.task.write_document(PROVENANCE, &provenance)?;
        Ok(Response::Done { verdict: None, notes: vec![], summary: seen.summary(), forget: false })
    }
}

/// Samples of a kernel on newly filled buffers, without samples that limits of the device invalidate.
fn run(
    rig: &mut Rig<'_>,
    work: &Work<'_>,
    processors: u32,
    count: usize,
    monitor: &Monitor,
    states: &mut Vec<State>,
) -> Result<Vec<f64>, Lost> {
    rig.clear();
    for (name, bytes) in work.buffers {
        rig.ask(Ask::Allocate { set: SET, name: name.into(), bytes, offset: 0, own: bytes })?;
    }
    let (keep, set) = work.numbers;
    let fill = |(name, bytes): (&str, u64)| {
        let numbers = [scalar(DType::U64, bytes / 4), scalar(DType::U32, keep.into()), scalar(DType::U32, set.into())];
        let args = [pointer(name)].into_iter().chain(numbers).chain([scalar(DType::U64, SEED)]).collect();
        Launch::Kernel(launch("fill", processors.max(1) * FMA_BLOCKS, 0, args))
    };
    load(rig, &ptx::plain(), "fill")?;
    rig.ask(Ask::Launches { slot: SLOT, launches: work.buffers.map(fill).to_vec() })?;
    rig.run(SLOT, SET)?;
    rig.unload(SLOT);
    load(rig, work.text, &work.launch.entry)?;
    rig.ask(Ask::Launches { slot: SLOT, launches: vec![Launch::Kernel(work.launch.clone())] })?;
    let mut ns = vec![];
    for _ in 0..count.div_ceil(BATCH) {
        let before = monitor.state();
        let batch =
            rig.time(vec![
                SampleRequest { slot: SLOT, set: SET, cold: false, copies: 0, bare: false, warm: false };
                BATCH
            ])?;
        let after = monitor.state();
        if !sampling::dropped(before.reasons.unwrap_or(0) | after.reasons.unwrap_or(0)) {
            ns.extend(batch);
        }
        states.extend([before, after]);
    }
    rig.unload(SLOT);
    Ok(ns)
}

/// Loads a PTX module for one of its kernels.
fn load(rig: &mut Rig<'_>, text: &str, entry: &str) -> Result<(), Lost> {
    let entries = vec![(entry.to_string(), entry.to_string())];
    let ask = Ask::Load { slot: SLOT, bytes: text.len() as u64, entries };
    let left = rig.left();
    rig.client.hand(text.as_bytes(), ask, left)
}

fn launch(entry: &str, blocks: u32, shared: u64, args: Vec<Arg>) -> KernelLaunch {
    KernelLaunch {
        entry: entry.into(),
        grid: [blocks, 1, 1],
        open_grid: None,
        block: [THREADS, 1, 1],
        shared,
        args,
        cooperative: false,
        cluster: None,
        pdl: false,
        triton: None,
    }
}

fn pointer(buffer: &str) -> Arg {
    Arg::Pointer { buffer: buffer.into(), offset: 0 }
}

fn scalar(dtype: DType, value: u64) -> Arg {
    Arg::Scalar { dtype, value: Scalar::Int(value as i64) }
}

fn count(rounds: u64) -> Arg {
    scalar(DType::U32, rounds)
}

/// The rate for samples of this amount of work.
fn rate(ns: &[f64], work: f64, with: &str) -> Rate {
    let mut sorted = ns.to_vec();
    sorted.sort_by(f64::total_cmp);
    let per_s = |ns: f64| work / ns * 1e9;
    // There is at least one sample.
    let fast = sorted.get(sorted.len() / 10).copied().unwrap_or(f64::INFINITY);
    Rate { per_s: per_s(fast), sustained_per_s: per_s(median(&ns[ns.len() / 2..])), with: with.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_of_the_fastest_tenth_and_what_lasts_that_of_the_later_half() {
        let ns: Vec<f64> = (0..100).map(|i| if i < 30 { 1000.0 } else { 1250.0 }).chain([1.0]).collect();
        let rate = rate(&ns, 1e6, "x");
        assert_eq!((rate.per_s, rate.sustained_per_s, rate.with.as_str()), (1e12, 8e11, "x"));
    }
}
