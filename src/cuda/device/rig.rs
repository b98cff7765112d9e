//! A runner with the candidate's buffers: what verify, bench and pairs have in common. Knows requests and images; judges nothing.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::buffers::{self, Image, InitialContents};
use super::client::{Client, Lost, at_most};
use super::facts::DeviceFacts;
use super::inputs::{self, Inputs, TensorBytes};
use super::read_back::{self, Outputs, UntimedOutputs};
use super::run_limit::run_limit;
use super::wire::{Answer, Ask, BufferSum, SampleRequest, Set, Slot};
use kforge_engine::lock::{Lock, Mode, Wait};
use kforge_foundation::base::Digest;
use kforge_harness::message::Response;
use kforge_harness::task::{Task, failed};
use kforge_types::record::Provenance;
use kforge_types::record::contract::complete;
use kforge_types::record::params::{CompileFacts, VerifyParams};

/// A binary and its launches.
pub(super) struct Launchable<'a> {
    pub(super) params: &'a VerifyParams,
    pub(super) binary: Vec<u8>,
    pub(super) entries: Vec<(String, String)>,
}

impl<'a> Launchable<'a> {
    /// Creates it from a task's inputs whose names end in `suffix`.
    pub(super) fn new(task: &Task, params: &'a VerifyParams, suffix: &str) -> Result<Self, Response> {
        let facts: CompileFacts = task.document(&format!("facts{suffix}"))?;
        if facts.symbols.len() != params.entries.len() {
            return Err(failed("the compiler reports another number of entries than the step"));
        }
        let entries = params.entries.iter().cloned().zip(facts.symbols).collect();
        Ok(Launchable { params, binary: task.read(&format!("binary{suffix}"))?, entries })
    }
}

/// The parameters with launches and workspaces as the binary among the task's inputs whose names end in `suffix` asks for them.
pub(super) fn completed(task: &Task, mut params: VerifyParams, suffix: &str) -> Result<VerifyParams, Response> {
    let facts: CompileFacts = task.document(&format!("facts{suffix}"))?;
    complete(&mut params.launches, &mut params.workspaces, &params.entries, &facts)
        .map_err(|why| failed(format!("the binary: {why}")))?;
    Ok(params)
}

/// A runner in use by a step.
pub(super) struct Rig<'a> {
    pub(super) client: Client,
    task: &'a Task,
    /// The time limit of one run of the candidate.
    run_limit: Duration,
    /// Held while anything runs on the device, so that no other step measures at the same time.
    held: Option<Lock>,
    /// The name of the contents of each laid buffer.
    laid: BTreeMap<(Set, String), String>,
    /// Contents that were put on the device or checked during this step.
    trusted: Vec<String>,
    /// The longest time that one run of launches has taken.
    took: Duration,
    /// The number of runs that are sent with the next request.
    runs: usize,
    /// The time that the step waited for its turn at the device.
    waited: Duration,
    /// The start of the current turn.
    since: Option<Instant>,
    /// The duration of earlier turns.
    on_device: Duration,
}

/// The time that each further run of a request may take, whatever the earlier ones took: the resets of buffers and the flushes of caches between samples.
const BETWEEN: Duration = Duration::from_millis(10);

/// A part of the step's time is kept for comparing, so that the step can report a time-out before its own time limit.
fn share(left: Duration) -> Duration {
    (left / 10 * 9).max(Duration::from_millis(10))
}

/// Waits for the task's turn at the device and returns its lock. The wait does not count as the task's time.
pub(super) fn turn(task: &Task, path: &Path, mode: Mode) -> Result<Lock, Response> {
    let began = Instant::now();
    let take =
        |path: &Path, mode| Lock::acquire(path, mode, Wait::Forever(&mut || {})).map_err(|e| failed(e.to_string()));
    // A newcomer waits behind earlier waiters: otherwise steps that share the device would lock out a step that needs it exclusively.
    let next = take(&path.with_extension("next"), Mode::Exclusive)?;
    let held = take(path, mode);
    drop(next);
    task.waited(began.elapsed());
    held
}

impl<'a> Rig<'a> {
    /// A runner on the device that the task names.
    pub(super) fn new(task: &'a Task, arch: &str, fresh: bool) -> Result<Self, Response> {
        Ok(Self::of(task, Client::start(task, arch, fresh)?))
    }

    /// A runner on the device that the task names, which has run no other candidate than this one.
    pub(super) fn isolated(task: &'a Task, arch: &str, candidate: &Launchable<'_>) -> Result<Self, Response> {
        Ok(Self::of(task, Client::start_isolated(task, arch, &Digest::of(&candidate.binary))?))
    }

    /// Uses a runner that was started for this step.
    pub(super) fn of(task: &'a Task, client: Client) -> Self {
        let none = Duration::ZERO;
        Rig {
            client,
            task,
            run_limit: task.run_limit,
            held: None,
            laid: BTreeMap::new(),
            trusted: vec![],
            took: none,
            runs: 0,
            waited: none,
            since: None,
            on_device: none,
        }
    }

    /// Waits until no other process of this home measures on the device, or, with `alone`, until no other process uses it.
    pub(super) fn lock(&mut self, alone: bool) -> Result<(), Response> {
        let mode = if alone { Mode::Exclusive } else { Mode::Shared };
        let began = Instant::now();
        if let Some(path) = self.client.lock_file(self.task) {
            self.held = Some(turn(self.task, &path, mode)?);
        }
        // The candidate may have timed out while this step waited.
        if let Some(response) = self.task.not_launched() {
            return Err(response);
        }
        self.waited += began.elapsed();
        self.since = Some(Instant::now());
        Ok(())
    }

    /// Makes the runner drop everything of this step, and lets other steps use the device, because the rest of this step does not need it.
    pub(super) fn unlock(&mut self) {
        self.client.rest();
        self.release();
    }

    fn release(&mut self) {
        self.held = None;
        self.on_device += self.since.take().map_or(Duration::ZERO, |since| since.elapsed());
    }

    /// Keeps the runner for the next step, and records the time that this step spent.
    pub(super) fn leave(mut self, provenance: &mut Provenance) {
        self.release();
        let phases = self.client.spent.iter().map(|(phase, spent)| (*phase, *spent));
        let whole = self.task.started.elapsed();
        let all = phases.chain([("wait", self.waited), ("device", self.on_device), ("whole", whole)]);
        provenance.spent_us = all.map(|(phase, spent)| (phase.to_string(), spent.as_micros() as u64)).collect();
        self.client.keep();
    }

    /// The time that the step has left.
    pub(super) fn left(&self) -> Duration {
        share(self.task.left())
    }

    /// The time limit for the runner's next answer if it includes `runs` runs of the candidate: the limit of one run, plus twice the longest observed run, or
    /// [`BETWEEN`] if that is longer, for each of the others. A run that never ends is therefore stopped about when its own limit ends, however many runs were requested at once.
    fn patience(&self, runs: usize) -> Duration {
        let others = u32::try_from(runs).unwrap_or(u32::MAX).saturating_sub(1);
        let each = self.took.saturating_mul(2).max(BETWEEN);
        self.left().min(self.run_limit.saturating_add(each.saturating_mul(others)))
    }

    /// Sends a request and waits for at most the time that the step has left.
    pub(super) fn ask(&mut self, ask: Ask) -> Result<Answer, Lost> {
        let left = self.left();
        self.client.ask(ask, left)
    }

    /// Loads a candidate and passes its launches to the runner.
    pub(super) fn load(&mut self, slot: Slot, candidate: &Launchable<'_>) -> Result<(), Lost> {
        let (bytes, entries) = (candidate.binary.len() as u64, candidate.entries.clone());
        let left = self.left();
        self.client.ran.insert(Digest::of(&candidate.binary));
        self.client.hand(&candidate.binary, Ask::Load { slot, bytes, entries }, left)?;
        self.client.later(Ask::Launches { slot, launches: candidate.params.launches.clone() });
        Ok(())
    }

    /// Unloads the candidate with the next request.
    pub(super) fn unload(&mut self, slot: Slot) {
        self.client.later(Ask::Unload { slot });
    }

    /// Allocates buffers of these sizes in a set, with the next request. They replace the set's buffers of the same names.
    pub(super) fn allocate(&mut self, set: Set, images: &[Image<'_>]) {
        for image in images {
            let (name, bytes) = (image.name.to_string(), image.whole());
            self.client.later(Ask::Allocate { set, name, bytes, offset: image.offset(), own: image.own });
        }
    }

    /// Lays every buffer of a set with the next request.
    pub(super) fn lay(&mut self, set: Set, images: &[Image<'_>], canary: u8) -> Result<(), Lost> {
        self.laid.retain(|(of, _), _| *of != set);
        let contents = |image: &Image<'_>| match &image.holds {
            InitialContents::Contents(made) => Some(Arc::clone(made)),
            InitialContents::Byte(_) => None,
        };
        let needed: Vec<Arc<TensorBytes>> = images.iter().filter_map(contents).collect();
        for made in &needed {
            self.keep(made, &needed)?;
        }
        for (image, made) in images.iter().filter_map(|image| Some((image, contents(image)?))) {
            self.laid.insert((set, image.name.to_string()), made.name.clone());
        }
        let buffers: Vec<_> = images.iter().map(Image::lay).collect();
        self.client.later(Ask::Lay { set, canary, buffers: buffers.clone() });
        // Contents from an earlier step were on the device while another candidate ran, so their sums are checked.
        let doubted: Vec<(&Image<'_>, Arc<TensorBytes>)> = images
            .iter()
            .filter_map(|image| Some((image, contents(image)?)))
            .filter(|(_, made)| !self.trusted.contains(&made.name))
            .collect();
        if doubted.is_empty() {
            return Ok(());
        }
        let shown = self.show(set, doubted.iter().map(|(image, _)| *image), canary, inputs::salt())?;
        let spoilt: Vec<_> = doubted.iter().zip(shown).filter(|((_, made), shown)| shown.sum != made.sum).collect();
        for ((_, made), _) in &spoilt {
            self.forget(&made.name);
            self.keep(made, &needed)?;
        }
        self.trusted.extend(doubted.iter().map(|(_, made)| made.name.clone()));
        if !spoilt.is_empty() {
            self.client.later(Ask::Lay { set, canary, buffers });
        }
        Ok(())
    }

    /// Allocates buffers without canaries, and lays only those that a kernel may read before it writes them.
    pub(super) fn bare(&mut self, set: Set, images: &[Image<'_>]) -> Result<(), Lost> {
        for image in images {
            let (name, own) = (image.name.to_string(), image.own);
            self.client.later(Ask::Allocate { set, name, bytes: own, offset: 0, own });
        }
        let given: Vec<Image<'_>> = images.iter().filter(|image| image.is_given()).cloned().collect();
        self.lay(set, &given, 0)
    }

    /// Puts contents on the device. If too many are kept, drops the least recently used ones that no buffer uses.
    fn keep(&mut self, made: &TensorBytes, needed: &[Arc<TensorBytes>]) -> Result<(), Lost> {
        let kept = &mut self.client.contents;
        if let Some(at) = kept.iter().position(|(name, _)| *name == made.name) {
            let found = kept.remove(at);
            kept.push(found);
            return Ok(());
        }
        let bytes = made.bytes.len() as u64;
        let room = at_most(self.client.free);
        while self.client.contents.iter().map(|(_, bytes)| bytes).sum::<u64>() + bytes > room {
            let used =
                |name: &String| self.laid.values().any(|laid| laid == name) || needed.iter().any(|n| n.name == *name);
            let Some((name, _)) = self.client.contents.iter().find(|(name, _)| !used(name)).cloned() else { break };
            self.forget(&name);
        }
        let left = self.left();
        self.client.hand(&made.bytes, Ask::Keep { contents: made.name.clone(), bytes }, left)?;
        self.client.contents.push((made.name.clone(), bytes));
        self.trusted.push(made.name.clone());
        Ok(())
    }

    fn forget(&mut self, name: &str) {
        self.client.contents.retain(|(kept, _)| kept != name);
        self.client.later(Ask::Drop { contents: name.to_string() });
    }

    /// The sums of buffers, without reading the buffers back.
    pub(super) fn show<'i, 'p: 'i>(
        &mut self,
        set: Set,
        images: impl Iterator<Item = &'i Image<'p>>,
        canary: u8,
        salt: u64,
    ) -> Result<Vec<BufferSum>, Lost> {
        let names: Vec<String> = images.map(|image| image.name.to_string()).collect();
        let asked = names.len();
        let shown = self.waited(Ask::Show { set, names, canary, salt });
        self.client.is_salted = true;
        match shown? {
            Answer::Shown { shown } if shown.len() == asked => Ok(shown),
            other => Err(Lost::Died(format!("answered `{other:?}` when asked about {asked} buffers"))),
        }
    }

    /// Fills the candidate's constants from a set with the next request.
    pub(super) fn constants(&mut self, slot: Slot, candidate: &Launchable<'_>, set: Set) {
        for constant in &candidate.params.constants {
            let bytes = candidate.params.problem.tensor(&constant.buffer).map_or(0, |t| t.bytes());
            let (symbol, name) = (constant.symbol.clone(), constant.buffer.clone());
            self.client.later(Ask::Constant { slot, symbol, set, name, bytes });
        }
    }

    /// The contents of every written tensor after the launches.
    pub(super) fn outputs<'p>(&mut self, set: Set, images: &[Image<'p>]) -> Result<Outputs<'p>, Lost> {
        let mut outputs = vec![];
        for image in images {
            if let Some(tensor) = image.written() {
                outputs.push((tensor, self.own(set, image)?));
            }
        }
        Ok(outputs)
    }

    /// The contents of a buffer without its canaries.
    pub(super) fn own(&mut self, set: Set, image: &Image<'_>) -> Result<Vec<u8>, Lost> {
        let mut bytes = self.read(set, image)?;
        bytes.truncate((image.offset() + image.own) as usize);
        bytes.drain(..image.offset() as usize);
        Ok(bytes)
    }

    /// Frees all buffers and modules with the next request.
    pub(super) fn clear(&mut self) {
        self.laid.clear();
        self.client.later(Ask::Clear);
    }

    /// Allocates unused memory with the next request.
    pub(super) fn pad(&mut self, set: Set, bytes: u64) {
        self.client.later(Ask::Allocate { set, name: "padding".into(), bytes, offset: 0, own: bytes });
    }

    /// Runs the launches once.
    pub(super) fn run(&mut self, slot: Slot, set: Set) -> Result<(), Lost> {
        self.runs += 1;
        self.waited(Ask::Run { slot, set }).map(drop)
    }

    /// Runs the launches once and returns the sums of the buffers. The salt is not sent before a candidate's first run in a runner has ended. Later it may be
    /// left in the memory of the runner's process anyway, so it is sent together with the run.
    pub(super) fn run_and_show(
        &mut self,
        slot: Slot,
        set: Set,
        images: &[Image<'_>],
        canary: u8,
    ) -> Result<Vec<BufferSum>, Lost> {
        if self.client.is_salted {
            self.client.later(Ask::Run { slot, set });
            self.runs += 1;
        } else {
            self.run(slot, set)?;
        }
        self.show(set, images.iter(), canary, inputs::salt())
    }

    /// Sends a request and waits for as long as the runs that are sent with it may take.
    fn waited(&mut self, ask: Ask) -> Result<Answer, Lost> {
        let runs = std::mem::take(&mut self.runs);
        if runs == 0 {
            return self.ask(ask);
        }
        // What is loaded and copied before the run does not count as its time. Both are sent with the next request, which therefore waits for them.
        let left = self.left();
        self.client.prepare(left)?;
        let (patience, began) = (self.patience(runs), Instant::now());
        let answer = self.client.ask(ask, patience);
        self.took = self.took.max(began.elapsed());
        self.noted(answer)
    }

    /// Remembers a time-out, before another step can use the device.
    fn noted<T>(&self, answer: Result<T, Lost>) -> Result<T, Lost> {
        if let Err(Lost::TimedOut(_)) = &answer {
            self.task.timed_out();
        }
        answer
    }

    /// The outputs of `times` untimed launches, each on newly laid buffers, with a newly loaded module, so that its globals keep nothing of earlier launches.
    /// Loads the module again afterwards. If the sums are those of `like`, the bytes of `like` are used.
    pub(super) fn usual<'p>(
        &mut self,
        slot: Slot,
        candidate: &Launchable<'_>,
        (set, images, canary): (Set, &[Image<'p>], u8),
        times: usize,
        like: Option<&(Vec<u64>, Outputs<'p>)>,
    ) -> Result<UntimedOutputs<'p>, Lost> {
        self.unload(slot);
        self.load(slot, candidate)?;
        let mut all: Vec<Outputs<'p>> = vec![];
        let mut sums = vec![];
        for _ in 0..times {
            self.lay(set, images, canary)?;
            self.constants(slot, candidate, set);
            let shown = self.run_and_show(slot, set, images, canary)?;
            let now = read_back::sums(images, &shown);
            // Outputs with known sums are not read again.
            if !sums.contains(&now) {
                all.push(match like.filter(|(of, _)| *of == now) {
                    Some((_, outputs)) => outputs.clone(),
                    None => self.outputs(set, images)?,
                });
                sums.push(now);
            }
        }
        self.unload(slot);
        self.load(slot, candidate)?;
        UntimedOutputs::new(all).ok_or_else(|| Lost::Refused("nothing was launched".into()))
    }

    /// Reads a whole buffer back.
    pub(super) fn read(&mut self, set: Set, image: &Image<'_>) -> Result<Vec<u8>, Lost> {
        let left = self.left();
        let ask = Ask::Read { set, name: image.name.to_string() };
        self.client.read(ask, image.whole(), left)
    }

    /// Takes samples.
    pub(super) fn time(&mut self, shots: Vec<SampleRequest>) -> Result<Vec<f64>, Lost> {
        let asked = shots.len();
        let runs: usize = shots.iter().map(|shot| 2 * shot.copies.max(1) as usize).sum();
        let patience = self.patience(runs);
        let left = self.left();
        self.client.prepare(left)?;
        let answer = self.client.ask(Ask::Time { shots }, patience);
        match self.noted(answer)? {
            Answer::Times { ns } if ns.len() == asked => Ok(ns),
            other => Err(Lost::Died(format!("answered `{other:?}` when asked for {asked} samples"))),
        }
    }

    /// Refuses work that can never fit on the device, before anything is prepared for it. Sets the time limit of a run. A runner under a tool, which makes runs
    /// many times slower, is not asked, and has the limit of the task.
    pub(super) fn possible(&mut self, params: &VerifyParams) -> Result<(), Response> {
        self.run_limit = run_limit(params, &self.client.facts, self.task.run_limit);
        let (each, contents) = needed(params);
        match fits(each + contents, self.client.facts.memory) {
            true => Ok(()),
            false => Err(too_much(each + contents, &format!("which has {}", self.client.facts.memory))),
        }
    }

    /// The number of sets of buffers to use in turn: at most `most`, in half of the free memory, minus the contents of two trials. Called during the step's
    /// turn, because other processes may have freed memory since the runner started.
    pub(super) fn sets(&mut self, params: &VerifyParams, most: u32) -> Result<u32, Response> {
        let (each, contents) = needed(params);
        let fitting = |free: u64| ((free / 2).saturating_sub(2 * contents) / each).min(u64::from(most)) as u32;
        let mut free = self.client.free;
        if fitting(free) < most
            && let Answer::Ready { free: now, .. } = self.ask(Ask::Free).map_err(Lost::response)?
        {
            // This excludes the memory that the runner itself keeps, which was not free at the start either.
            free = free.max(now);
        }
        match fitting(free) {
            0 if fits(each + contents, free) => Ok(1),
            0 => Err(too_much(each + contents, &format!("and {free} are free"))),
            sets => Ok(sets),
        }
    }

    /// Every buffer of a run.
    pub(super) fn images<'p>(params: &'p VerifyParams, inputs: &Inputs, poison: u8) -> Vec<Image<'p>> {
        buffers::images(&params.problem, &params.workspaces, inputs, poison)
    }

    /// The provenance of observations, without the state of the device.
    pub(super) fn provenance(&self, protocol: u32) -> Provenance {
        provenance(&self.client.facts, protocol)
    }
}

/// Bytes of a set of buffers, and of the contents of a trial.
fn needed(params: &VerifyParams) -> (u64, u64) {
    (buffers::bytes(&params.problem, &params.workspaces).max(1), buffers::contents(&params.problem))
}

/// Whether this many bytes fit into the memory, with a small reserve.
fn fits(bytes: u64, memory: u64) -> bool {
    bytes < memory / 10 * 9
}

fn too_much(bytes: u64, memory: &str) -> Response {
    Response::Unavailable { why: format!("its buffers need {bytes} bytes of the device's memory, {memory}") }
}

/// The provenance of observations on a device, without the state of the device.
pub(super) fn provenance(facts: &DeviceFacts, protocol: u32) -> Provenance {
    Provenance {
        device: facts.class(),
        driver: facts.driver.clone(),
        kforge: env!("CARGO_PKG_VERSION").into(),
        protocol,
        measured_at: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        clocks_mhz: None,
        temperature_c: None,
        throttle: vec![],
        spent_us: Default::default(),
    }
}
