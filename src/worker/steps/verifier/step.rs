//! The verify step on `cpu`: runs one trial after another and writes an observation. Knows the step's parameters and the order of work. Uses tolerances only to
//! count the elements that exceed them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::buffers::{self, BufferFile, Manner};
use super::candidate::Candidate;
use super::interpreter::Interpreted;
use super::near_inputs;
use super::runs::Launchable;
use kforge_emulator::keeps_state;
use kforge_foundation::base::{Severity, count};
use kforge_harness::compare::spread;
use kforge_harness::compilers;
use kforge_harness::confine;
use kforge_harness::fresh::{FreshTrials, NotComputed};
use kforge_harness::layout::{BufferAfterRun, POISONS};
use kforge_harness::memory_file::MemoryFile;
use kforge_harness::message::{NotEmulated, Response, RunnerTrial, ThreadOrder};
use kforge_harness::observer::{Against, Observer, RunOutputs};
use kforge_harness::oracle::{Named, Source, TrialValues};
use kforge_harness::reports::RunSummary;
use kforge_harness::task::{Task, failed};
use kforge_numerics::reference::float::gather_strided;
use kforge_numerics::reference::oracle::OracleOutput;
use kforge_types::model::bound::{Arg, Launch};
use kforge_types::model::grid;
use kforge_types::record::observation::INTERPRETED;
use kforge_types::record::params::{Compiler, Expected, Trial, VerifyParams};
use kforge_types::record::{Determinism, Finding, FindingKind, Note, TrialObserved, Verdict};

/// A launch with at least this number of threads uses more than one thread of the host.
const WORTH_SHARING: u64 = 1 << 16;
/// The most threads of the host for one candidate.
const MOST_THREADS: usize = 8;
/// The fill of shared memory, by pattern of poison.
const SHARED_POISONS: [u8; 2] = [0xff, 0x5a];
/// Bytes of printed text that are shown.
const SHOWN: usize = 4096;

/// Executes a verify step on `cpu`.
pub fn run(task: &Task) -> Response {
    verify(task).unwrap_or_else(|response| response)
}

/// One way of running a trial.
pub(super) struct Run {
    pub(super) order: ThreadOrder,
    pub(super) manner: Manner,
    /// The fill of shared memory.
    pub(super) shared: u8,
    /// A suffix for the name of the distribution.
    pub(super) said: &'static str,
}

/// The runs of a trial. The side of the guard page alternates, so that over several trials each order runs with each side.
pub(super) fn runs(trial: &Trial) -> [Run; Trial::RUNS] {
    let side = trial.trial.is_multiple_of(2);
    let run = |order, set: usize, guard_after, said| {
        let manner = Manner { poison: POISONS[set], guard_after };
        Run { order, manner, shared: SHARED_POISONS[set], said }
    };
    [
        run(ThreadOrder::Forward, 0, side, ""),
        run(ThreadOrder::Reversed, 1, !side, ", threads reversed"),
        run(ThreadOrder::Random(order_seed(trial.seed)), 0, side, ", threads shuffled"),
    ]
}

/// The seed of the shuffled order. The runner receives it, so the trial's seed must not be computable from it: inputs, and therefore expected values, are
/// derived from the trial's seed.
fn order_seed(seed: u64) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"thread order").update(&seed.to_le_bytes());
    let mut eight = [0; 8];
    hasher.finalize_xof().fill(&mut eight);
    u64::from_le_bytes(eight)
}

fn verify(task: &Task) -> Result<Response, Response> {
    let params: VerifyParams = task.params()?;
    if let Some(launch) = &params.torch {
        return super::torch::verify(task, &params, launch);
    }
    let check = match params.compiler {
        Compiler::EmulatorCheck => true,
        Compiler::EmulatorPlain | Compiler::TritonInterpreter => false,
        _ => return Err(failed("a verify step on `cpu` needs a binary built for the emulator")),
    };
    let most = buffers::bytes(&params.problem, &params.workspaces).saturating_mul(5);
    if most > task.memory_limit {
        let why = format!(
            "its buffers need {most} bytes of memory, but the limit is {} (setting `build.memory-limit`)",
            task.memory_limit
        );
        return Err(Response::Unavailable { why });
    }
    compilers::permitted(task, "kernels")?;
    let binary = task.read("binary")?;
    let launches = grid::emulated(&params.launches);
    let interpreted = params.compiler == Compiler::TritonInterpreter;
    let launched = launches.as_deref().unwrap_or_default();
    let emulated = || -> Result<Launchable<'_>, Response> {
        Ok(Launchable {
            binary: MemoryFile::program(&binary).map_err(|e| failed(format!("cannot hold the binary: {e}")))?,
            bytes: &binary,
            entries: &params.entries,
            check,
            launches: launched,
            constants: &params.constants,
            threads: threads(launched),
            memory: task.memory_limit,
        })
    };
    let candidate = match interpreted {
        true => Candidate::Interpreted(Interpreted::new(task, &binary, launched)?),
        false => Candidate::Emulated(emulated()?),
    };
    let mut verifier = Verifier::new(task, &params, candidate);
    // Triton's interpreter has descriptors.
    if let Some(what) = unemulated(&params.launches).filter(|_| !interpreted) {
        verifier.observer.seen.not_emulated = Some(what);
        verifier.stop = true;
    }
    if let Err(why) = &launches {
        verifier.observer.find(Finding::new(FindingKind::LaunchRefused, why.to_string()));
        verifier.stop = true;
    }
    if interpreted {
        verifier.together()?;
        return verifier.finish();
    }
    for trial in &params.trials {
        if verifier.stop {
            break;
        }
        verifier.trial(trial)?;
    }
    if !verifier.stop {
        verifier.fresh()?;
    }
    verifier.finish()
}

/// The parts of the launches that the emulator cannot execute, independent of the kernel's code.
fn unemulated(launches: &[Launch]) -> Option<String> {
    launches.iter().find_map(|launch| match launch {
        Launch::Kernel(k) => {
            let at = k.args.iter().position(|arg| matches!(arg, Arg::TensorMap(_)))?;
            Some(format!("a tensor map, argument {} of `{}`", at + 1, k.entry))
        }
        Launch::Memset { .. } => None,
    })
}

fn threads(launches: &[Launch]) -> u32 {
    let of = |launch: &Launch| match launch {
        Launch::Kernel(k) => k.grid.iter().chain(&k.block).map(|n| u64::from(*n)).product(),
        Launch::Memset { .. } => 0,
    };
    let most: u64 = launches.iter().map(of).max().unwrap_or(0);
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get()).min(MOST_THREADS);
    if most < WORTH_SHARING { 1 } else { cores as u32 }
}

pub(super) struct Verifier<'a> {
    pub(super) task: &'a Task,
    pub(super) params: &'a VerifyParams,
    candidate: Candidate<'a>,
    /// Inputs of the previous trial, until a kernel that can keep state between launches has been launched on both.
    before: Option<Arc<TrialValues>>,
    pub(super) observer: Observer<'a>,
    notes: Vec<Note>,
    /// A failure that may not recur, such as a time-out.
    passing: Option<String>,
    /// Set when a crash or a refusal makes further trials pointless.
    pub(super) stop: bool,
}

impl<'a> Verifier<'a> {
    fn new(task: &'a Task, params: &'a VerifyParams, candidate: Candidate<'a>) -> Self {
        let (ran_as, orders) = match &candidate {
            Candidate::Emulated(candidate) if candidate.check => ("check", "the order of threads"),
            Candidate::Emulated(_) => ("plain", "the order of threads"),
            Candidate::Interpreted(_) => (INTERPRETED, "the order of programs"),
        };
        let observer = Observer::new(task, params, true, ran_as.to_string(), orders);
        Verifier { task, params, candidate, before: None, observer, notes: vec![], passing: None, stop: false }
    }

    fn trial(&mut self, trial: &Trial) -> Result<(), Response> {
        let problem = &self.params.problem;
        let source = Source::new(self.task, problem);
        let expected: Expected = self.task.document(&format!("expected:{}", trial.trial))?;
        let held = source.whole(trial, &expected)?;
        let (inputs, expected) = &*held;
        let runs = runs(trial);
        let mut sealed = BTreeMap::new();
        let make = |run: &Run, sealed: &mut _| {
            buffers::make(problem, &self.params.workspaces, inputs, run.manner, sealed)
                .map_err(|e| failed(format!("cannot make buffers: {e}")))
        };
        let placed = runs.iter().map(|run| make(run, &mut sealed)).collect::<Result<Vec<_>, _>>()?;
        let mut ended = vec![];
        for (run, placed) in runs.iter().zip(&placed) {
            let heard = self.run(&[(run, placed)], false)?;
            self.hear(&heard);
            self.damage(placed, heard.not_emulated.is_empty())?;
            // A run that did not complete leaves incomplete outputs, which show nothing.
            if heard.is_whole() {
                ended.push((run, placed));
            }
            if !heard.orderly {
                break;
            }
        }
        self.stop |= ended.len() < runs.len();
        self.compare(trial, inputs, expected, &ended)?;
        let keeps = match &self.candidate {
            Candidate::Emulated(candidate) => keeps_state(candidate.bytes, self.params.entries.len()),
            // A function in Triton has no variables of its own.
            Candidate::Interpreted(_) => false,
        };
        if !self.stop && keeps {
            match self.before.take() {
                None if self.observer.seen.trials.iter().all(|seen| seen.trial == trial.trial) => {
                    self.before = Some(Arc::clone(&held))
                }
                None => {}
                Some(before) => {
                    self.again(trial, ("other inputs", &before.0), (inputs, expected), ended[0])?;
                    let near = near_inputs::near(problem, inputs, &before.0, trial.seed).filter(|_| !self.stop);
                    if let Some(near) = near {
                        let said = "inputs that differ in one element";
                        self.again(trial, (said, &near), (inputs, expected), ended[0])?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Runs the fresh trials, each once, with the ways of running in turn.
    fn fresh(&mut self) -> Result<(), Response> {
        self.before = None;
        let drawn = FreshTrials::draw(self.task, self.params)?;
        let source = Source::new(self.task, &self.params.problem);
        let held: Result<Vec<_>, NotComputed> = (0..drawn.trials().len()).map(|at| drawn.held(at, &source)).collect();
        let held = match held {
            Ok(held) => held,
            Err(why) => {
                return self.observer.left_out(&why);
            }
        };
        self.observer.drawn(&drawn);
        for (at, (trial, held)) in drawn.trials().iter().zip(&held).enumerate() {
            let (inputs, expected) = &**held;
            let [forward, reversed, shuffled] = runs(trial);
            let run = match at % Trial::RUNS {
                0 => forward,
                1 => reversed,
                _ => shuffled,
            };
            let run = Run { said: "", ..run };
            self.observer.within(Some(trial.trial));
            let placed =
                buffers::make(&self.params.problem, &self.params.workspaces, inputs, run.manner, &mut BTreeMap::new());
            let placed = placed.map_err(|e| failed(format!("cannot make buffers: {e}")))?;
            let mut heard = self.run(&[(&run, &placed)], false)?;
            // Nobody may learn these inputs from what the kernel prints.
            heard.printed.clear();
            self.hear(&heard);
            self.damage(&placed, heard.not_emulated.is_empty())?;
            if !heard.is_whole() {
                self.stop = true;
                break;
            }
            self.compare(trial, inputs, expected, &[(&run, &placed)])?;
        }
        Ok(())
    }

    /// Launches the kernel on the inputs `before`, which `said` describes, and then on those of this trial, in the same process: the kernel's variables are as
    /// the first launch left them, and the buffers have the same addresses. The outputs must equal those of a launch by itself, `alone`, because a device
    /// launches a loaded kernel many times.
    fn again(
        &mut self,
        trial: &Trial,
        (said, before): (&str, &Named),
        (inputs, expected): (&Named, &OracleOutput),
        (run, alone): (&Run, &Vec<BufferFile<'_>>),
    ) -> Result<(), Response> {
        let (problem, workspaces) = (&self.params.problem, &self.params.workspaces);
        let make = |inputs| buffers::make(problem, workspaces, inputs, run.manner, &mut BTreeMap::new());
        let made = make(before).and_then(|first| Ok((first, make(inputs)?)));
        let (first, second) = made.map_err(|e| failed(format!("cannot make buffers: {e}")))?;
        let heard = self.run(&[(run, &first), (run, &second)], true)?;
        self.hear(&heard);
        self.damage(&second, heard.not_emulated.is_empty())?;
        if !heard.is_whole() {
            self.stop = true;
            return Ok(());
        }
        let read = |one: &BufferFile<'_>| one.after().map_err(|e| failed(format!("cannot read buffers back: {e}")));
        for (alone, after) in alone.iter().zip(&second) {
            let Some(tensor) = after.written() else { continue };
            let (was, is) = (read(alone)?.bytes, read(after)?.bytes);
            if was == is {
                continue;
            }
            let (was, is) =
                (gather_strided(tensor, &was).map_err(failed)?, gather_strided(tensor, &is).map_err(failed)?);
            let outputs = vec![self.observer.observe(tensor, inputs, expected, &is)?];
            let distribution = format!("{}, after a launch on {said}", trial.distribution);
            self.observer.seen.trials.push(TrialObserved { trial: trial.trial, distribution, outputs });
            if spread(tensor.dtype, &was, &is).1 && self.observer.by_element(tensor) {
                let name = &tensor.name;
                let message = format!(
                    "`{name}` changes after a launch on {said} (trial {}): the kernel keeps state between launches",
                    trial.trial
                );
                let finding = Finding::new(FindingKind::KeepsState, message);
                self.observer.find(Finding { buffer: Some(name.clone()), ..finding });
            }
        }
        Ok(())
    }

    /// Runs the candidate in a process that has the buffers of these runs and no others. If the state `goes_on`, a second run continues from what the first one
    /// left.
    pub(super) fn run(&self, runs: &[(&Run, &Vec<BufferFile<'_>>)], goes_on: bool) -> Result<RunSummary, Response> {
        let of = |(at, (run, placed)): (usize, &(&Run, &Vec<BufferFile<'_>>))| RunnerTrial {
            buffers: placed.iter().map(|one| one.shared.clone()).collect(),
            goes_on: goes_on && at > 0,
            order: run.order,
            guard_after: run.manner.guard_after,
            poison: run.shared,
        };
        let request: Vec<RunnerTrial> = runs.iter().enumerate().map(of).collect();
        let files: Vec<MemoryFile> =
            runs.iter().flat_map(|(_, placed)| placed.iter()).map(|one| one.file.clone()).collect();
        // The time limit starts with the candidate's process, so that it excludes making inputs, computing expected values and comparing.
        let time = self.task.run_limit.saturating_mul(runs.len() as u32);
        let ran = self.candidate.run(request, &files, time).map_err(failed)?;
        if let Some(why) = ran.heard.refused {
            return Err(Response::Failed { message: why, notes: text_note("verify.runner", &ran.stderr) });
        }
        if !ran.heard.unconfined.is_empty() && !self.task.allow_unconfined {
            return Err(Response::Unavailable { why: confine::refusal("kernels", &ran.heard.unconfined) });
        }
        Ok(ran.heard)
    }

    /// Records the reports of a runner.
    pub(super) fn hear(&mut self, heard: &RunSummary) {
        // Places stay symbolic: lines are not part of this step's key, so they are looked up when they are shown.
        heard.findings.iter().for_each(|finding| self.observer.find(finding.clone()));
        if let Some(NotEmulated { what, .. }) = heard.not_emulated.first() {
            self.observer.seen.not_emulated.get_or_insert_with(|| what.clone());
        }
        if self.notes.is_empty() && !self.params.holdout {
            self.notes.extend(text_note("verify.printed", &heard.printed));
        }
        if heard.passing.is_some() {
            self.passing.clone_from(&heard.passing);
        }
        if heard.timed_out {
            self.task.timed_out();
        }
        if self.observer.seen.unconfined.is_empty() {
            self.observer.seen.unconfined.clone_from(&heard.unconfined);
        }
    }

    /// Records the damage that a run did to its buffers and around them, no matter how the run ended. A workspace that must be zero again can be checked only
    /// if the run completed.
    pub(super) fn damage(&mut self, placed: &[BufferFile<'_>], ended: bool) -> Result<(), Response> {
        for one in placed {
            for finding in one.after().map_err(|e| failed(format!("cannot read buffers back: {e}")))?.findings {
                if ended || finding.kind != FindingKind::WorkspaceDirty {
                    self.observer.find(finding);
                }
            }
        }
        Ok(())
    }

    /// Reads every output of every completed run and compares it in full.
    pub(super) fn compare(
        &mut self,
        trial: &Trial,
        inputs: &Named,
        expected: &OracleOutput,
        ended: &[(&Run, &Vec<BufferFile<'_>>)],
    ) -> Result<(), Response> {
        let mut after: Vec<Vec<BufferAfterRun>> = vec![];
        for (_, placed) in ended {
            let read = placed.iter().map(BufferFile::after).collect::<Result<Vec<_>, _>>();
            after.push(read.map_err(|e| failed(format!("cannot read buffers back: {e}")))?);
        }
        let lefts: Vec<RunOutputs<'_>> = ended
            .iter()
            .zip(&after)
            .map(|((run, placed), after)| {
                let written = placed
                    .iter()
                    .zip(after)
                    .filter_map(|(one, after)| Some((one.written()?, after.bytes.as_slice().into())));
                RunOutputs { said: run.said, poison: run.manner.poison, outputs: written.collect() }
            })
            .collect();
        self.observer.compare(trial, &Against::Values(inputs, expected), &lefts)
    }

    fn finish(mut self) -> Result<Response, Response> {
        // After a failure, equal outputs of repeated runs do not show that the kernel is deterministic.
        if self.stop && self.observer.seen.determinism == Determinism::Stable {
            self.observer.seen.determinism = Determinism::Unknown;
        }
        self.task.write_document("observation", &self.observer.seen)?;
        let (trials, found) = (self.params.trials.len(), self.observer.seen.findings.len());
        let summary = match (&self.observer.seen.not_emulated, found) {
            (_, 1..) => format!("{}, emulated ({})", count(found, "finding"), self.observer.seen.ran_as),
            (Some(what), 0) => format!("not emulated: {what}"),
            (None, 0) => {
                let (trials, ordered) = (count(trials, "trial"), self.candidate.ordered());
                format!("{trials} in 3 {ordered} orders, emulated ({})", self.observer.seen.ran_as)
            }
        };
        let (verdict, forget) = (self.passing.clone().map(Verdict::Fail), self.passing.is_some());
        Ok(Response::Done { verdict, notes: self.notes, summary, forget })
    }
}

/// A note with the beginning of a text, if there is any.
fn text_note(code: &str, text: &str) -> Vec<Note> {
    let text = text.trim();
    let end = (0..=text.len().min(SHOWN)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let message = text[..end].to_string();
    let note = Note::new(Severity::Note, code, message);
    if text.is_empty() { vec![] } else { vec![note] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_of_the_thread_order_does_not_give_the_trials_away() {
        // A pinned value: changing it changes what is run, so a change must be intended.
        let hash = blake3::hash(b"thread order\x07\0\0\0\0\0\0\0");
        assert_eq!(order_seed(7).to_le_bytes(), hash.as_bytes()[..8]);
        let trial = Trial { trial: 0, seed: 7, distribution: "normal".into() };
        let orders = runs(&trial).map(|run| run.order);
        assert!(!orders.contains(&ThreadOrder::Random(7)));
        assert!(orders.contains(&ThreadOrder::Random(order_seed(7))));
    }
}
